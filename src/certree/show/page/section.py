"""A part of a page."""

from dataclasses import dataclass

from certree.show.page.markup import Html


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and what stands below it.

    Parameters
    ----------
    name : str
        Its place in the address.
    title : str
        Its heading.
    content : Html
        What is in it.
    """

    name: str
    title: str
    content: Html
