"""Cases that export a model and compare predictions of other engines with its own."""

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import numpy as np

from certree.explain.tree_model import TreeModel
from certree.export import check_export
from certree.export.comparison import Predictions, compare_predictions, predict_with_model
from certree.export.engines import RunSQL, run_in_duckdb, run_in_sqlite
from certree.rows.columns import take_rows
from fuzz.functions import Attempt
from fuzz.relations import Subject

_NAMES = [
    *("x0", "X1", "a", "A", "", " ", 'say "x"', "it's", "é", "É", "nul\0here", "a;--", "select"),
    *("score_0", "Score_1", "part_0", "PART_1", "probability_0", "Probability_a", "prediction"),
    *("layer_0", "Layer_1", "row", "rowid", "x" * 300, "[0]", "a.b", "%s", "?", "\n", "NULL"),
]
_CLASSES: list[list[Any]] = [
    *([["a", "A"], ["a", "A", "b"], ["", " "], ["it's", 'say "x"', "\\"], ["x\0y", "x"]]),
    *([["prediction", "Prediction"], ["é", "É", "e"], ["0", "1"], ["nan", "None", "NULL"]]),
    *([[0, 1], [-3, 7, 2**53 + 1], [False, True], [0.5, -1.5], [1e-300, 1e300, 0.1], ["one"]]),
]
# Bytes have no form in databases.
_KINDS = [
    *("normal", "few", "lacking", "float32", "integers", "int8", "booleans", "constant"),
    *("neighbours", "words", "words that lack", "levels", "levels that lack", "levels of numbers"),
]


def export(random: Random) -> Iterator[Attempt]:
    """Fit to a table with hostile names, and compare every export with the model."""
    names, classes = random.sample(_NAMES, 4), random.choice(_CLASSES)
    subject = Subject(random, _KINDS, names=names, classes=classes)
    if not isinstance(subject.model, TreeModel):
        return
    yield subject.fit
    if subject.is_fitted:
        for way in random.sample(WAYS, 2):
            yield partial(way, random, subject)


# -- databases -------------------------------------------------------------------------------------


def by_duckdb(random: Random, subject: Subject) -> None:
    """Assert that DuckDB predicts the same as the model."""
    _by_database(random, subject, run_in_duckdb)


def by_sqlite(random: Random, subject: Subject) -> None:
    """Assert that SQLite predicts the same as the model."""
    _by_database(random, subject, run_in_sqlite)


def _by_database(random: Random, subject: Subject, run: RunSQL) -> None:
    """Run the exported statement on a table of any name, with all columns of the subject and
    columns to keep.
    """
    features, table = subject.table, random.choice(["rows", 'the "rows"', "x0", "layer_0", "Ä"])
    kept = {name: np.arange(features.n) for name in random.sample(_NAMES, random.choice([0, 1, 2]))}
    columns = {name: _plain(of) for name, of in features.columns.items()}
    columns |= {name: of.tolist() for name, of in kept.items() if name not in columns}
    keep = [*kept]
    statement = subject.model.to_sql(table, keep=keep)
    names = {name.lower() for name in columns}
    if len(names) < len(columns) or "" in names or any("\0" in name for name in names):
        return  # no database has such a table
    rows = run(table, columns, statement)
    assert len(rows) == features.n
    for number, row in enumerate(rows):
        expected = [columns[name][number] for name in keep]
        assert [*row[: len(keep)]] == expected, f"{row} keeps {expected}"
    truth = predict_with_model(subject.model, subject.X)
    n_values = truth.values.shape[1]
    first = len(keep) + (truth.classes is not None)  # behind the values there may be a rule
    found = np.array([row[first : first + n_values] for row in rows], dtype=float)
    classes = None if truth.classes is None else [row[len(keep)] for row in rows]
    known = [*getattr(subject.model, "classes_", ())]
    check = compare_predictions(truth, Predictions(found, classes), known, 1e-12)
    assert not check.n_different, check


def _plain(column: Any) -> list[Any]:
    """Return values of a column as a database has them: None for missing values."""
    return [None if value is None or value != value else value for value in [*column.tolist()]]


# -- all exports -----------------------------------------------------------------------------------


def by_any(random: Random, subject: Subject) -> None:
    """Assert that every export that reads float64 predicts the same as the model, or is refused."""
    _agree(subject, subject.X, ["dict", "onnx_float64", "sqlite", "duckdb"])


def by_float32(random: Random, subject: Subject) -> None:
    """Exports that read float32 predict what the model does, unless a feature needs float64.

    Then rows that float32 holds must agree, and so where values are neighbours among all numbers.
    """
    rows = np.asarray(subject.model._encode_new_rows(subject.X), dtype=float)
    needs_float64 = len(subject.model._float64_features) or "neighbours" in subject.table.kinds
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    agree = rows == narrow if needs_float64 else ~np.isinf(narrow)
    known = np.flatnonzero(agree.all(axis=1))
    if len(known):
        _agree(subject, take_rows(subject.X, known), ["sklearn"])
        values = predict_with_model(subject.model, subject.X).values
        with np.errstate(over="ignore"):
            if np.allclose(values, values.astype(np.float32), rtol=1e-6, atol=0):
                _agree(subject, take_rows(subject.X, known), ["onnx"])


def _agree(subject: Subject, X: Any, exports: list[str]) -> None:
    report = check_export(subject.model, X, exports=exports)
    assert report.all_agree, str(report)
    missing = [why for why in report.skipped.values() if "is not installed" in why]
    assert not missing, missing


WAYS = [by_duckdb, by_sqlite, by_any, by_float32]
