"""A model card: a short text about a fitted model, for its users and those who approve it."""

from __future__ import annotations

import hashlib
import platform
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

import certree
from certree.certificates import Certificate
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.files.models import save
from certree.files.output_paths import expect_suffix, expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.formatting import format_percent, format_quantity, shorten_label
from certree.interface.signatures import validate_arguments
from certree.show.model_description import describe_features
from certree.show.page.binary_scores import BinaryPredictions
from certree.show.page.evaluated_model import EvaluatedModel, ignore_unnamed_rows
from certree.show.page.markup import Html, concatenate, table, tag
from certree.show.page.report_page import PAGE_SUFFIXES, render_page
from certree.show.page.scores import RowErrors, Score, describe_verdict
from certree.show.page.section import Section
from certree.show.page.sections import describe_known_rows, describe_model

# Most features, classes and groups that a card lists.
_MAX_FEATURES, _MAX_CLASSES, _MAX_GROUPS = 50, 20, 30
# Packages whose versions a card names.
_PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "pyarrow")
# Suffixes of cards in Markdown.
_MARKDOWN_SUFFIXES = (".md", ".markdown", ".txt")
# Characters that Markdown would interpret.
_MARKDOWN = re.compile(r"([\\`*{}\[\]<>#|]|(?<!\w)_|_(?!\w))")


@dataclass(frozen=True, slots=True)
class CardTable:
    """A table of a model card.

    Parameters
    ----------
    headings : sequence of str
        Headings of the columns.
    rows : sequence of sequences of str
        The cells of each line, as plain text.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class CardSection:
    """A section of a model card.

    Parameters
    ----------
    title : str
        Its heading.
    blocks : sequence of str, list of str, or CardTable
        Paragraphs, lists and tables in their order, as plain text.
    """

    title: str
    blocks: Sequence[str | list[str] | CardTable]


@validate_arguments
def model_card(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    path: str | PathLike[str] | None = None,
    *,
    groups: ArrayLike | None = None,
    notes: Mapping[str, str] | None = None,
    pos_label: Any = None,
) -> str:
    """Describe a fitted model on one page: data, scores, certificate, groups and versions.

    The form is that of Mitchell and others, Model Cards for Model Reporting (FAT* 2019). What only
    its author knows, such as the intended use, comes from `notes`.

    Parameters
    ----------
    model : fitted estimator of certree, or Pipeline that ends in one
        A tree, forest, boosted trees, AdaBoost or naive Bayes with one target. The card of a pipeline
        lists the features that its last step reads, and has the hash of the pipeline's file.
    X : array-like of shape (n, p)
        Test rows: rows that were not used to fit the model.
    y : array-like of shape (n,)
        Their classes or numbers.
    path : str, path-like or None
        File to write: an HTML page if its suffix is .html or .htm; Markdown if it is .md, .markdown or
        .txt, or there is none. None: no file is written.
    groups : array-like of shape (n,), or None
        Group of each row, such as a branch; the card has the scores of each group.
    notes : mapping from str to str, or None
        Paragraphs by heading, such as {"Intended use": "..."}. They come first.
    pos_label : object or None
        The positive one of two classes, such as "default": recall, precision and rules are about it.
        None: the second class.

    Returns
    -------
    str
        The card as Markdown, or as HTML if `path` ends in .html or .htm.

    Raises
    ------
    TypeError
        If the model is not a tree, forest, boosted trees, AdaBoost or naive Bayes of certree.
    ValueError
        If X, y and groups differ in length or are empty, or y has a class that the model lacks, or
        `pos_label` is not one of two classes; if `path` has another suffix.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import PACBayesTreeClassifier
    >>> from certree.show import model_card
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PACBayesTreeClassifier(random_state=0).fit(X[:400], y[:400])
    >>> print(model_card(model, X[400:], y[400:])[:24])
    # PACBayesTreeClassifier
    """
    expect_card_path(path)
    with ignore_unnamed_rows(model):
        evaluated = EvaluatedModel.from_rows(model, X, y, groups, pos_label=pos_label)
        evaluated.expect_known_classes()
        title, sections = type(evaluated.model).__name__, _build_card(model, evaluated, notes or {})
    if path is not None and Path(path).suffix.lower() in PAGE_SUFFIXES:
        text = render_page(title, [_to_page_section(section) for section in sections])
    else:
        text = _to_markdown(title, sections)
    if path is not None:
        write_atomically(path, lambda file: file.write(text.encode()))
    return text


def expect_card_path(path: str | PathLike[str] | None) -> None:
    """Raise an error if a model card cannot be written to a path; nothing is written.

    path: the file to write; None: nothing is checked. Raise a ValueError if its suffix is that of
    another format, and an OSError if it is a directory, its parent does not exist, or write
    permission is missing.
    """
    expect_writable(path)
    expect_suffix(path, "a model card", [*PAGE_SUFFIXES, *_MARKDOWN_SUFFIXES])


def _build_card(
    model: Any, evaluated: EvaluatedModel, notes: Mapping[str, str]
) -> list[CardSection]:
    """Return the sections of a model card in their order.

    model: the model or pipeline of the caller; evaluated: the fitted model, the test rows, their
    groups and predictions; notes: paragraphs of the user by heading.
    """
    sections: list[CardSection] = [CardSection(key, (text,)) for key, text in notes.items()]
    sections += [_describe_model(model, evaluated), _describe_test_rows(evaluated)]
    errors = RowErrors.from_evaluation(evaluated)
    binary = BinaryPredictions.from_evaluation(evaluated)
    scores = [*errors.scores(), *(binary.scores() if binary is not None else [])]
    sections.append(_describe_scores(scores))
    certificate = getattr(evaluated.model, "certificate_", None)
    if isinstance(certificate, Certificate):
        assumptions = [*certificate.assumptions]
        blocks = (str(certificate), "The certificate assumes:", assumptions)
        sections.append(CardSection("Certificate", blocks))
    rules = _describe_rules(evaluated.model, evaluated.pos_label)
    if rules is not None:
        sections.append(rules)
    if evaluated.groups is not None:
        sections.append(_compare_groups(evaluated, errors))
    sections.append(_describe_versions(model))
    return sections


def _describe_model(passed: Any, evaluated: EvaluatedModel) -> CardSection:
    """Return the section with class, size and features of the model, and changed parameters.

    passed: the model or pipeline of the caller; evaluated: the fitted model and the test rows.
    """
    model = evaluated.model
    names = [shorten_label(str(name)) for name in model._feature_names()]
    types = describe_features(model)
    described = [f"{name} ({text})" for name, text in zip(names, types, strict=True)]
    features = ", ".join(described[:_MAX_FEATURES])
    n_more = len(described) - _MAX_FEATURES
    more = f" and {n_more:,} more" if n_more > 0 else ""
    blocks: list[str | list[str] | CardTable] = [
        f"{model!r}",
        *_describe_steps(passed),
        " ".join(describe_model(evaluated)),
        f"Features: {features}{more}.",
    ]
    if evaluated.classes:
        blocks.append(f"Classes: {_list_classes(evaluated.classes)}.")
    return CardSection("Model", blocks)


def _describe_steps(model: Any) -> list[str]:
    """Return a sentence on the steps of a pipeline before its last one, as a list of one str.

    model: the model that the caller passed; the list is empty if it is no pipeline.
    """
    if not isinstance(model, Pipeline) or len(model.steps) == 1:
        return []
    steps = ", ".join(f"{name} ({type(step).__name__})" for name, step in model.steps[:-1])
    return [f"It is the last step of a pipeline. The steps before it: {steps}."]


def _describe_rules(model: Any, pos_label: Any) -> CardSection | None:
    """Return the section of a model card with the rules of a model that is one tree of few leaves.

    A rule is the path to a leaf, with its prediction. For a certified tree the table also has a bound
    on the error of each rule, or a text says why there are none. Return None for a tree of more than
    64 leaves, for a vote over the prunings of a tree (subtrees that remain after cutting branches),
    and for ensembles. model: the fitted model; pos_label: the class whose probability the rules have;
    None: the class that each rule predicts.
    """
    if not isinstance(model, TreeVoteEstimator) or not hasattr(model, "rules"):
        return None
    rules = model.rules(model.get_n_leaves(), pos_label=pos_label)
    if rules[0].number is None:
        return None
    return CardSection(
        "Rules", [*([rules.title] if rules.title else []), CardTable(*rules.table())]
    )


def _list_classes(texts: Sequence[Any]) -> str:
    """Return up to 20 class names in one text, separated by commas, and how many more there are.

    texts: the class names.
    """
    shown = ", ".join(shorten_label(str(text)) for text in texts[:_MAX_CLASSES])
    n_more = len(texts) - _MAX_CLASSES
    return f"{shown} and {n_more:,} more" if n_more > 0 else shown


def _describe_test_rows(evaluated: EvaluatedModel) -> CardSection:
    """Return the section on the test rows: their number, their targets, and rows of the fit.

    evaluated: the fitted model, the test rows and their targets.
    """
    n_rows = format_quantity(evaluated.n, "row")
    if evaluated.probabilities is None:
        low, middle, high = np.quantile(evaluated.y, [0, 0.5, 1])
        target = f"The target runs from {low:.4g} to {high:.4g}, with median {middle:.4g}."
    else:
        counts = Counter(evaluated.y.tolist()).most_common()
        target = _list_classes(
            [f"{name} {format_percent(count / evaluated.n)}" for name, count in counts]
        )
        target = f"Their classes: {target}."
    text = f"The scores are of {n_rows}. {target} {describe_known_rows(evaluated)}"
    return CardSection("Test data", [text])


def _describe_scores(scores: Sequence[Score]) -> CardSection:
    """Return the section with a table of scores, 95 % intervals and scores of constant predictions.

    scores: the scores of the model on the test rows.
    """
    rows = [
        (
            score.name,
            score.format_value(score.value),
            f"{score.format_value(score.low)} to {score.format_value(score.high)}",
            ""
            if score.baseline is None
            else f"{score.format_value(score.baseline.value)} ({score.baseline.name})",
        )
        for score in scores
    ]
    blocks: list[str | list[str] | CardTable] = [
        CardTable(("score", "value", "95 % interval", "without the model"), rows)
    ]
    verdict = describe_verdict(scores)
    if verdict is not None:
        blocks.append(f"On these rows {verdict}.")
    return CardSection("Scores", blocks)


def _compare_groups(evaluated: EvaluatedModel, errors: RowErrors) -> CardSection:
    """Return the section with the scores of each group, at most 30 groups with the most rows.

    evaluated: the fitted model, the test rows, their groups, which are not None, and predictions;
    errors: the losses of these rows.
    """
    groups = evaluated.groups
    assert groups is not None  # Call it only with groups.
    n_rows = np.bincount(groups.codes, minlength=len(groups.names))
    largest = np.argsort(-n_rows, kind="stable")[:_MAX_GROUPS].tolist()
    lines: list[tuple[str, ...]] = []
    names: list[str] = []
    for k in largest:
        scores = _take_errors(errors, evaluated.y, groups.codes == k).scores()
        names = [score.name for score in scores] if len(scores) > len(names) else names
        cells = [
            f"{score.format_value(score.value)} "
            f"({score.format_value(score.low)} to {score.format_value(score.high)})"
            for score in scores
        ]
        lines.append((shorten_label(str(groups.names[k])), f"{n_rows[k]:,}", *cells))
    width = 2 + len(names)
    rows = [(*line, *[""] * (width - len(line))) for line in lines]
    blocks: list[str | list[str] | CardTable] = [
        CardTable(("group", "rows", *names), rows),
        "Each interval is a 95 % interval for its own group.",
    ]
    n_hidden = len(groups.names) - len(largest)
    if n_hidden:
        blocks.append(f"{n_hidden:,} smaller groups are not shown.")
    return CardSection("Groups", blocks)


def _take_errors(errors: RowErrors, y: NDArray[Any], rows: NDArray[np.bool_]) -> RowErrors:
    """Return the losses of the rows for which `rows`, (n,), is True, as another `RowErrors`.

    errors: losses of all n rows; y: their true classes or numbers, (n,), by which the rows of each
    class are counted again. The field `n_known_rows` stays that of all rows.
    """
    return replace(
        errors,
        losses=errors.losses[rows],
        is_wrong=None if errors.is_wrong is None else errors.is_wrong[rows],
        y=None if errors.y is None else errors.y[rows],
        class_counts=None if errors.class_counts is None else Counter(y[rows].tolist()),
    )


def _describe_versions(model: Any) -> CardSection:
    """Return the section with versions of packages and the SHA-256 hash of the model file.

    model: the fitted model or pipeline that the caller passed.
    """
    lines = [f"certree {certree.__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):  # PyArrow is optional.
            lines.append(f"{package} {version(package)}")
    return CardSection("Versions", [lines, _describe_hash(model)])


def _describe_hash(model: Any) -> str:
    """Return a sentence with the SHA-256 hash of the file that `certree.save` writes of a model.

    If the model cannot be saved, the sentence says why there is no hash. model: the fitted model or
    pipeline.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.certree"
        try:
            save(model, path)
        except (TypeError, ValueError) as error:
            return f"There is no hash of a model file: {error}."
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"SHA-256 of the file that certree.save writes: {digest}"


def _to_markdown(title: str, sections: Sequence[CardSection]) -> str:
    """Return a model card as the text of a Markdown page, which ends with a line break.

    title: its heading; sections: its sections in their order.
    """
    blocks = [f"# {_escape(title)}"]
    for section in sections:
        blocks.append(f"## {_escape(section.title)}")
        for block in section.blocks:
            if isinstance(block, CardTable):
                lines = [block.headings, ["---"] * len(block.headings), *block.rows]
                escaped = [
                    [cell if cell == "---" else _escape(cell) for cell in row] for row in lines
                ]
                blocks.append("\n".join(f"| {' | '.join(row)} |" for row in escaped))
            elif isinstance(block, list):
                blocks.append("\n".join(f"- {_escape(item)}" for item in block))
            else:
                blocks.append(_escape(block))
    return "\n\n".join(blocks) + "\n"


def _escape(text: str) -> str:
    """Return a text in one line, with a backslash before each character that Markdown interprets."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _to_page_section(section: CardSection) -> Section:
    """Convert a section of a model card to a section of an HTML page.

    section: the section, with its title and its paragraphs, lists and tables.
    """
    name = "-".join(re.findall(r"\w+", section.title.lower())) or "section"
    return Section(name, section.title, concatenate(map(_to_html, section.blocks)))


def _to_html(block: str | list[str] | CardTable) -> Html:
    """Convert a block of a model card to HTML.

    block: a str becomes a paragraph, a list of str a list, and a `CardTable` a table.
    """
    if isinstance(block, CardTable):
        return table(block.headings, block.rows)
    if isinstance(block, list):
        return tag("ul", *(tag("li", item) for item in block))
    return tag("p", block)
