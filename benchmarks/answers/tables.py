"""Small tables of the cases: rows to fit, and rows to predict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets


def normal_table(n: int, p: int, n_classes: int = 2) -> tuple[NDArray[Any], NDArray[Any]]:
    """Make normal features, and classes that depend on three of them and on noise."""
    rng = np.random.default_rng(n + p)
    X = rng.normal(size=(n, p))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(edges, score)


def missing_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make the normal table with missing values."""
    X, y = normal_table(420, 4)
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    return X, y


def whole_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make features of integers, so that many rows are equal."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 8, size=(360, 3)).astype(np.float64)
    return X, (X[:, 0] + X[:, 1] + rng.integers(0, 5, size=360) > 9).astype(np.int64)


def plane_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make two features in the unit square, with noisy classes in and out of a circle."""
    rng = np.random.default_rng(3)
    X = rng.random((480, 2))
    inside = ((X - [0.3, 0.7]) ** 2).sum(axis=1) < 0.1
    return X, (inside ^ (rng.random(480) < 0.08)).astype(np.int64)


def line_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make one feature, and two noisy classes that alternate along it."""
    rng = np.random.default_rng(9)
    X = rng.random((800, 1))
    odd = np.isin((11 * X[:, 0]).astype(int), (1, 2, 4, 7, 8, 9))
    return X, (odd ^ (rng.random(800) < 0.1)).astype(np.int64)


def coded_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make two features of category codes and two of numbers, with missing values."""
    rng = np.random.default_rng(4)
    n = 400
    codes = np.column_stack([rng.integers(0, 6, n), rng.integers(0, 15, n)]).astype(np.float64)
    X = np.column_stack([codes, rng.normal(size=(n, 2))])
    y = (np.isin(codes[:, 0], (1, 4)) ^ (codes[:, 1] % 4 < 2)) | (X[:, 2] > 1.2)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y.astype(np.int64)


def frame_table() -> tuple[Any, NDArray[Any]]:
    """Make the table of category codes as a data frame with names of categories and classes."""
    import pandas as pd

    X, y = coded_table()
    colours = np.array(["red", "blue", "green", "black", "white", "grey"], dtype=object)
    colour = [None if np.isnan(code) else colours[int(code)] for code in X[:, 0]]
    place = [None if np.isnan(code) else f"place {int(code)}" for code in X[:, 1]]
    columns = {"colour": pd.Categorical(colour), "place": place, "u": X[:, 2], "v": X[:, 3]}
    return pd.DataFrame(columns), np.array(["no", "yes"])[y]


def wave_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make a number that depends on two of three features and on noise."""
    rng = np.random.default_rng(5)
    X = rng.random((420, 3))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=420)


def rough_wave_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make the wave table with missing values and a feature of categories."""
    X, y = wave_table()
    rng = np.random.default_rng(6)
    code = rng.integers(0, 7, len(y)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    return np.column_stack([X, code]), y + np.array([0.0, 1, 0, 2, 1, 0, 3])[code.astype(int)]


def counts_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Make counts whose logarithm is linear, some of them 0, and a feature of categories."""
    rng = np.random.default_rng(10)
    X = np.column_stack([rng.normal(size=(420, 3)), rng.integers(0, 9, 420)])
    return X, rng.poisson(np.exp(0.6 * X[:, 0] + 0.3 * (X[:, 3] % 3))).astype(np.float64)


def bundled(name: str, n_rows: int | None = None) -> Callable[[], tuple[Any, Any]]:
    """Return a function that reads a data set of scikit-learn, or its first rows."""

    def read() -> tuple[Any, Any]:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X[:n_rows], y[:n_rows]

    return read


TABLES: Mapping[str, Callable[[], tuple[Any, Any]]] = {
    "iris": bundled("iris"),
    "cultivars": bundled("wine"),
    "cancer": bundled("breast_cancer"),
    "digits": bundled("digits", 600),
    "diabetes": bundled("diabetes"),
    "normal": lambda: normal_table(480, 4),
    "three": lambda: normal_table(450, 5, n_classes=3),
    "single": lambda: (normal_table(480, 4)[0].astype(np.float32), normal_table(480, 4)[1]),
    "missing": missing_table,
    "whole": whole_table,
    "plane": plane_table,
    "line": line_table,
    "coded": coded_table,
    "frame": frame_table,
    "wave": wave_table,
    "rough wave": rough_wave_table,
    "counts": counts_table,
    "positive": lambda: (counts_table()[0], counts_table()[1] + 0.5),
    "tiny": lambda: normal_table(8, 3),
    "one class": lambda: (normal_table(60, 3)[0], np.full(60, 7)),
    "constant": lambda: (np.ones((40, 2)), np.arange(40) % 3),
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to fit and rows to predict."""

    X: Any
    y: NDArray[Any]
    new: Any
    truth: NDArray[Any]


@cache
def table(name: str) -> Table:
    """Shuffle a table; its last quarter is for prediction."""
    X, y = TABLES[name]()
    order = np.random.default_rng(7).permutation(len(y))
    first, last = order[: 3 * len(y) // 4], order[3 * len(y) // 4 :]
    part = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    return Table(part(first), y[first], part(last), y[last])


def row_weights(kind: str, n: int) -> NDArray[np.float64]:
    """Draw row weights: any number, eighths, or integers from 1 or from 0."""
    rng = np.random.default_rng(8)
    drawn = {
        "any": lambda: rng.uniform(0.2, 3.0, n),
        "eighths": lambda: rng.integers(2, 25, n) / 8,
        "whole": lambda: rng.integers(1, 4, n).astype(np.float64),
        "zero": lambda: rng.integers(0, 3, n).astype(np.float64),
    }
    return drawn[kind]()
