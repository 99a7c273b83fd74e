"""Writing a page that holds all it needs: no network, no other file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any

from numpy.typing import ArrayLike

from certree.interface.atomic_write import write_atomically
from certree.interface.signatures import validate_arguments
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, joined, tag, text_of
from certree.show.page.section import Section
from certree.show.page.sections import SECTIONS


@validate_arguments
def report(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    path: str | PathLike[str],
    title: str | None = None,
    *,
    groups: ArrayLike | None = None,
    costs: tuple[float, float] | None = None,
) -> Path:
    """Write a page about a fitted model and how it does on some rows.

    The page is one file of HTML, below two megabytes, that opens without a network: what the model is,
    its scores with intervals, calibration, confusions and ranking, how it does on groups of rows, its
    certificate if it has one, importances,
    the loss by round of boosted trees, the tree to walk through, and some rows explained.

    Parameters
    ----------
    model : fitted estimator of certree
        The model.
    X : array-like of shape (n, p)
        Rows, best such that the model has not seen.
    y : array-like of shape (n,)
        Their classes or numbers.
    path : str or path-like
        Where to write; a file that is there is replaced.
    title : str or None
        Title of the page; None: the name of the estimator.
    groups : array-like of shape (n,), or None
        A group of each row, such as a branch or a region, fixed without the targets: the page compares
        them, and says what is promised of each if the model has not seen the rows.
    costs : pair of float, or None
        What a missed row of the second of two classes costs, and a false alarm, named before the rows
        are looked at; None: alike.

    Returns
    -------
    Path
        Where the page is.

    Raises
    ------
    TypeError
        If the model is no tree, forest, boosted trees, AdaBoost or naive Bayes of certree.
    ValueError
        If rows, targets and groups do not go together, there are none, or a cost is negative, or both
        are 0.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import PACBayesTreeClassifier
    >>> from certree.show import report
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = PACBayesTreeClassifier(random_state=0).fit(X[:400], y[:400])
    >>> report(model, X[400:], y[400:], "report.html")  # doctest: +SKIP
    """
    judged = Judged.of(model, X, y, groups, costs)
    named = f"{type(model).__name__} on {judged.n:,} rows" if title is None else title
    return write_page(named, sections_of(judged), path)


def sections_of(judged: Judged) -> list[Section]:
    """All that a page says of a model, in its order."""
    return [section for make in SECTIONS if (section := make(judged)) is not None]


def write_page(title: str, sections: Sequence[Section], path: str | PathLike[str]) -> Path:
    """Write sections as one file of HTML, whole or not at all."""
    page = Template(_part("page.html")).substitute(
        title=text_of(title),
        style=_part("page.css"),
        script=_part("page.js"),
        contents=_contents(sections).text,
        sections=joined(map(_written, sections)).text,
    )
    write_atomically(path, lambda file: file.write(page.encode()))
    return Path(path)


def _part(name: str) -> str:
    return (files("certree.show.page") / name).read_text(encoding="utf-8")


def _contents(sections: Sequence[Section]) -> Html:
    links = (tag("li", tag("a", each.title, href=f"#{each.name}")) for each in sections)
    return tag("ul", *links)


def _written(section: Section) -> Html:
    heading = tag("h2", section.title, id=f"{section.name}-title")
    return tag(
        "section",
        heading,
        section.content,
        id=section.name,
        aria_labelledby=f"{section.name}-title",
    )
