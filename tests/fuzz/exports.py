"""Cases that write a model in the words of others, and let their engines predict.

Names of features, categories and classes are hostile: what differs by case alone, quotes, "", NUL, and
names that the statements themselves may use. An export is refused with a ValueError or predicts what
the model does.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from random import Random
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import pyarrow as pa
from sklearn.base import is_classifier

from certree.explain.tree_model import TreeModel
from fuzz.functions import Attempt
from fuzz.relations import Subject
from reference import predicted_by

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
    """Fit to a table of hostile names, and export in every way."""
    names, classes = random.sample(_NAMES, 4), random.choice(_CLASSES)
    subject = Subject(random, _KINDS, names=names, classes=classes)
    if not isinstance(subject.model, TreeModel):
        return
    yield subject.fit
    if subject.is_fitted:
        for way in random.sample(WAYS, 2):
            yield partial(way, random, subject)


def _truth(subject: Subject) -> np.ndarray:
    """Probabilities (n, K), or predictions (n, 1)."""
    model = subject.model
    if is_classifier(model):
        return model.predict_proba(subject.X)
    return np.asarray(model.predict(subject.X))[:, None]


def _expect(found: Any, truth: np.ndarray, rounding: float) -> None:
    scale = max(float(np.abs(truth).max()), 5e-324)
    np.testing.assert_allclose(np.asarray(found, dtype=float) / scale, truth / scale, 0, rounding)


def _expect_labels(found: Sequence[Any], subject: Subject) -> None:
    """Classes as they are, or as text."""
    if is_classifier(subject.model):
        expected = subject.model.predict(subject.X).tolist()
        wrong = [k for k, one in enumerate(expected) if found[k] not in (one, str(one))]
        said = f"{[*found]} instead of {expected}"
        assert _are_tied(subject, [str(found[k]) for k in wrong], wrong), said


def _are_tied(subject: Subject, found: Sequence[str], rows: Sequence[int]) -> bool:
    """Whether classes of some rows, as text, are as probable as the likeliest but for rounding."""
    names = [*map(str, subject.model.classes_)]
    shares = _truth(subject)[rows]
    return all(
        name in names and share[names.index(name)] > share.max() - 1e-12
        for name, share in zip(found, shares, strict=True)
    )


# -- databases -------------------------------------------------------------------------------------


def by_duckdb(random: Random, subject: Subject) -> None:
    """DuckDB predicts what the model does."""
    _by_database(random, subject, _in_duckdb)


def by_sqlite(random: Random, subject: Subject) -> None:
    """SQLite predicts what the model does."""
    _by_database(random, subject, _in_sqlite)


def _by_database(random: Random, subject: Subject, run: Callable[..., Any]) -> None:
    features, table = subject.table, random.choice(["rows", 'the "rows"', "x0", "layer_0", "Ä"])
    kept = {name: np.arange(features.n) for name in random.sample(_NAMES, random.choice([0, 1, 2]))}
    columns = {name: _plain(of) for name, of in features.columns.items()}
    columns |= {name: of.tolist() for name, of in kept.items() if name not in columns}
    keep = [*kept]
    statement = subject.model.to_sql(table, keep=keep)
    names = {name.lower() for name in columns}
    if len(names) < len(columns) or "" in names or any("\0" in name for name in names):
        return  # no database has such a table
    rows = run(columns, table, statement)
    assert len(rows) == features.n
    places = [*columns]
    for number, row in enumerate(rows):
        expected = [columns[places[places.index(name)]][number] for name in keep]
        assert [*row[: len(keep)]] == expected, f"{row} keeps {expected}"
    said = [row[len(keep) :] for row in rows]
    _expect([row[-_truth(subject).shape[1] :] for row in said], _truth(subject), 1e-12)
    _expect_labels([row[0] for row in said], subject)


def _plain(column: Any) -> list[Any]:
    """Values of a column as a database has them: NULL where one is missing."""
    return [None if value is None or value != value else value for value in [*column.tolist()]]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@cache
def _duckdb() -> Any:
    return duckdb.connect(config={"threads": 1})


def _in_duckdb(columns: dict[str, list[Any]], table: str, statement: str) -> list[Any]:
    connection = _duckdb().cursor()
    given = pa.table({f"c{k}": pa.array(values) for k, values in enumerate(columns.values())})
    connection.register("given", given)
    named = ", ".join(f"c{k} AS {_quoted(name)}" for k, name in enumerate(columns))
    here = f"CREATE OR REPLACE TEMP TABLE {_quoted(table)}"
    connection.execute(f"{here} AS SELECT {named} FROM given")
    return connection.execute(statement).fetchall()


def _in_sqlite(columns: dict[str, list[Any]], table: str, statement: str) -> list[Any]:
    connection = sqlite3.connect(":memory:")
    named = ", ".join(map(_quoted, columns))
    connection.execute(f"CREATE TABLE {_quoted(table)} ({named})")
    marks = ", ".join("?" * len(columns))
    rows = zip(*columns.values(), strict=True)
    connection.executemany(f"INSERT INTO {_quoted(table)} VALUES ({marks})", rows)
    return connection.execute(statement).fetchall()


# -- other formats ---------------------------------------------------------------------------------


def by_onnx(random: Random, subject: Subject) -> None:
    """Onnxruntime predicts what the model does."""
    model, rows = subject.model, _coded(subject)
    graph = model.to_onnx("float64")
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    found = session.run(None, {"X": rows})
    _expect(found[-1], _truth(subject), 1e-12)
    _expect_labels(np.asarray(found[0]).ravel().tolist(), subject)


def _coded(subject: Subject) -> np.ndarray:
    known = subject.model.categories_
    return np.asarray(subject.X, dtype=float) if known is None else known.encode(subject.X)


def by_dict(random: Random, subject: Subject) -> None:
    """Whoever walks through the dictionary predicts what the model does."""
    document = json.loads(json.dumps(subject.model.to_dict(), allow_nan=False))
    columns = [
        _plain(of if known["categories"] is not None else np.asarray(of, dtype=float))
        for known, of in zip(document["features"], subject.table.columns.values(), strict=True)
    ]
    chosen = random.sample(range(subject.table.n), 4)
    found = [predicted_by(document, [of[row] for of in columns]) for row in chosen]
    _expect(np.reshape(found, (len(chosen), -1)), _truth(subject)[chosen], 1e-12)


def by_sklearn(random: Random, subject: Subject) -> None:
    """scikit-learn predicts what the model does, for rows of float32 that have all values."""
    model, rows = subject.model, _coded(subject)
    if hasattr(model, "leaves_") and model.leaves_.power != 1:
        return  # it has no such average
    other = model.to_sklearn()
    known = (rows == rows.astype(np.float32)).all(axis=1)
    if not known.any():
        return
    given = pd.DataFrame(rows, columns=[*subject.table.columns])[known]
    given = given if hasattr(other, "feature_names_in_") else given.to_numpy()
    found = other.predict_proba(given) if is_classifier(model) else other.predict(given)[:, None]
    _expect(found, _truth(subject)[known], 1e-6)


WAYS = [by_duckdb, by_sqlite, by_onnx, by_dict, by_sklearn]
