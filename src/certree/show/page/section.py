"""A section of the report."""

from dataclasses import dataclass

from certree.show.page.markup import Html


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the HTML report. `build_..._section` functions make them.

    Parameters
    ----------
    name : str
        The id of the HTML element, to which links lead.
    title : str
        The text of its heading.
    content : Html
        The markup after the heading.
    """

    name: str
    title: str
    content: Html
