"""Writing of the HTML report: one file that needs no network and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any

from numpy.typing import ArrayLike

from certree.certificates.thresholds import OperatingPoint, read_threshold
from certree.files.output_paths import expect_path, expect_suffix, expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_arguments
from certree.show.calibration import plot_calibration
from certree.show.page.evaluated_model import EvaluatedModel, ignore_unnamed_rows
from certree.show.page.markup import Html, concatenate, tag, to_markup
from certree.show.page.section import Section
from certree.show.page.sections import SECTION_BUILDERS

# Suffixes of HTML pages.
PAGE_SUFFIXES = (".html", ".htm")


@validate_arguments
@copy_descriptions_from(plot_calibration)
def report(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    path: str | PathLike[str],
    title: str | None = None,
    *,
    groups: ArrayLike | None = None,
    costs: tuple[float, float] | None = None,
    pos_label: Any = None,
    threshold: float | OperatingPoint | None = None,
) -> Path:
    """Write an HTML page about a fitted model and its scores on some rows.

    The page is one file of less than two megabytes that needs no network. It has the parameters of
    the model, scores with intervals, calibration, confusion matrix and ranking, a comparison of
    groups, the certificate if there is one, feature importances, the loss by boosting round, a tree
    explorer, and explanations of some rows.

    Parameters
    ----------
    model : fitted estimator of certree, or Pipeline that ends in one
        The model. The page about a pipeline shows the features that its last step reads.
    {X}
    y : array-like of shape (n,)
        Classes or numbers of the rows.
    path : str or path-like
        The HTML file to write, such as report.html; an existing file is replaced.
    title : str or None
        Title of the page; None: the estimator's class and the number of rows.
    groups : array-like of shape (n,), or None
        Group of each row, such as a branch or a region, chosen without looking at the targets. The
        page compares the groups. If the rows are new to the model, it gives guarantees for each
        group.
    costs : pair of float, or None
        Cost of a missed row of the positive class, and of a false alarm, chosen before the rows are
        seen; None: both cost 1.
    pos_label : object or None
        The positive one of two classes, such as "default": ranking, calibration, thresholds and
        explanations are about its probability. None: the class of the operating point that `threshold`
        is, or else the second of ``classes_``.
    threshold : float, OperatingPoint or None
        Predict the positive class if its probability is at least this: scores, confusion matrix and
        errors of groups are those of these predictions. Choose it before the rows are seen, or by
        guarantees that hold at all thresholds. None: predict the more probable class.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    TypeError
        If the model is not a tree, forest, boosted trees, AdaBoost or naive Bayes of certree, or X
        or y is text.
    OSError
        If the page cannot be written, for instance because its folder does not exist.
    ValueError
        If `path` has another suffix than .html and .htm; if X, y and groups differ in length or are
        empty, y has a class that the model lacks, a cost is negative, both costs are 0, or `pos_label`
        is not one of two classes; if `threshold` is not in [0, 1], or the model has not two classes.
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
    if isinstance(X, str | PathLike) or isinstance(y, str | PathLike):
        raise TypeError(
            "X and y must hold rows and their targets, got a path or text: call "
            "report(model, X, y, path)"
        )
    expect_path(path)
    expect_page_path(path)
    number, positive = read_threshold(threshold, pos_label)
    with ignore_unnamed_rows(model):
        evaluated = EvaluatedModel.from_rows(model, X, y, groups, costs, positive, number)
        evaluated.expect_known_classes()
        sections = build_sections(evaluated)
    if title is None:
        title = f"{type(evaluated.model).__name__} on {evaluated.n:,} rows"
    return write_page(title, sections, path)


def expect_page_path(path: str | PathLike[str]) -> None:
    """Raise an error if an HTML page cannot be written to a path; nothing is written.

    path: the file to write. Raise a ValueError if its suffix is that of another format, and an OSError
    if it is a directory, its parent does not exist, or write permission is missing.
    """
    expect_writable(path)
    expect_suffix(path, "an HTML page", PAGE_SUFFIXES)


def build_sections(evaluated: EvaluatedModel) -> list[Section]:
    """Return the sections of the report that apply to a model, in the order of the page.

    evaluated: the fitted model, the rows of the report and their predictions.
    """
    sections = (build(evaluated) for build in SECTION_BUILDERS)
    return [section for section in sections if section is not None]


def write_page(title: str, sections: Sequence[Section], path: str | PathLike[str]) -> Path:
    """Write an HTML page with a table of contents and sections to a file, and return its path.

    An existing file is replaced at once, so it is never seen half written.

    Parameters
    ----------
    title : str
        Heading of the page.
    sections : sequence of Section
        The sections in the order of the page.
    path : str or path-like
        The file to write.

    Returns
    -------
    Path
        The path of the file.
    """
    page = render_page(title, sections)
    write_atomically(path, lambda file: file.write(page.encode()))
    return Path(path)


def render_page(title: str, sections: Sequence[Section]) -> str:
    """Return the HTML of a page with a table of contents and sections.

    title: heading of the page; sections: the sections in the order of the page.
    """
    return Template(_read_resource("page.html")).substitute(
        title=to_markup(title),
        style=_read_resource("page.css"),
        script=_read_resource("page.js"),
        contents=_build_contents(sections).text,
        sections=concatenate(map(_build_element, sections)).text,
    )


def _read_resource(name: str) -> str:
    """Return the text of the file `name` in the folder of this module, such as "page.css"."""
    return (files("certree.show.page") / name).read_text(encoding="utf-8")


def _build_contents(sections: Sequence[Section]) -> Html:
    """Return the table of contents as an HTML list with a link to each section.

    sections: the sections in the order of the page.
    """
    links = (tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections)
    return tag("ul", *links)


def _build_element(section: Section) -> Html:
    """Return a section as an HTML section element that contains its heading and its content."""
    heading = tag("h2", section.title, id=f"{section.name}-title")
    return tag(
        "section",
        heading,
        section.content,
        id=section.name,
        aria_labelledby=f"{section.name}-title",
    )
