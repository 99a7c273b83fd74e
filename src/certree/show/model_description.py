"""Short descriptions of a fitted model: its features, its size and the rows of its fit."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from certree.ensembles.boosting import BoostedTrees
from certree.estimators.naive_bayes import NaiveBayesClassifier
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.interface.extras import import_extra
from certree.interface.formatting import format_quantity
from certree.tables.column_types import is_date_type
from certree.tables.fitted_types import get_model_format
from certree.tables.pipeline_columns import InputColumn

# What a feature of dates is called, by the kind of its `DateColumn`.
_DATE_KINDS = {
    "date": "date",
    "midnight": "date",
    "datetime": "date with time",
    "span": "time span",
}


def describe_features(model: Any) -> list[str]:
    """Describe the type of each feature of a fitted model, in the order of the fit.

    Examples are "number, decimal comma", "category" and "date with time, time zone UTC; the model
    reads its month and weekday". The formats are those of the CSV files of the fit.

    model: the fitted model. Return a list of `model.n_features_in_` texts.
    """
    texts = ["number"] * model.n_features_in_
    if model.categories_ is not None:
        texts = ["number" if known is None else "category" for known in model.categories_.names]
    dates = getattr(model, "dates_", None) or {}
    for j, column in dates.items():
        texts[j] = _DATE_KINDS[column.kind]
    table_format = get_model_format(model)
    forms = {} if table_format is None else table_format.columns
    texts = [
        str(forms.get(name, text)) for name, text in zip(model._feature_names(), texts, strict=True)
    ]
    for j, column in dates.items():
        if column.zone is not None:
            texts[j] += f", time zone {column.zone}"
        if column.parts:
            texts[j] += f"; the model reads its {_join_words(column.parts)}"
    return texts


def describe_columns(columns: Sequence[InputColumn]) -> list[str]:
    """Return the type of each column that a pipeline reads, as words such as "number" or "text".

    columns: the columns of the rows that the pipeline was fitted to.
    """
    return [_describe_type(column.type) for column in columns]


def _describe_type(kind: Any) -> str:
    """Return words for the type of a column of the fit, such as "number" or "date or time span".

    kind: type of pyarrow, or None if no step of the pipeline stores it.
    """
    pa = import_extra("pyarrow", "files")
    if kind is None or pa.types.is_null(kind):
        return "as in the file (no step stores its type)"
    if is_date_type(kind):
        return "date or time span"
    return "text" if pa.types.is_string(kind) else "number"


def _join_words(words: tuple[str, ...]) -> str:
    """Join one or more words as in a sentence: "month", "month and day", "month, day and hour"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def describe_size(model: Any) -> str:
    """Return text on the size of a fitted model, such as "100 trees with 3,000 leaves in total".

    A single tree is a "tree of 7 leaves". Naive Bayes has a number of densities instead, and AdaBoost
    of other learners than trees a number of learners. Text on boosted trees describes their rounds,
    too.
    """
    if isinstance(model, NaiveBayesClassifier):
        return format_quantity(len(model.densities_), "density", "densities")
    if isinstance(model, TreeVoteEstimator):
        return f"tree of {format_quantity(model.get_n_leaves(), 'leaf', 'leaves')}"
    trees = model.trees_
    if trees is None:
        return format_quantity(len(model.estimators_), "learner")
    leaves = format_quantity(int(np.sum(trees.left < 0)), "leaf", "leaves")
    rounds = f", {model._describe_rounds()}" if isinstance(model, BoostedTrees) else ""
    return f"{format_quantity(len(trees), 'tree')} with {leaves} in total{rounds}"


def count_fitted_rows(model: Any) -> int | None:
    """Return the number of rows of a model's fit; None if the model does not store it.

    Classifiers store it with the hashes of their rows. model: the fitted model.
    """
    counts = getattr(model, "_sample_counts", None)
    return None if counts is None else int(counts.n)
