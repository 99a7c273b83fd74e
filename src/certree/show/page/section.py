"""A section of the report."""

from dataclasses import dataclass

from certree.show.page.markup import Html


@dataclass(frozen=True, slots=True)
class Section:
    """A section of an HTML page.

    Parameters
    ----------
    name : str
        The id of the HTML element, which links use.
    title : str
        Its heading.
    content : Html
        What follows the heading.
    """

    name: str
    title: str
    content: Html
