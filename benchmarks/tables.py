"""Tables of the benchmarks: public ones in the directory CERTREE_DATA, and those of scikit-learn."""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn import datasets
from sklearn.model_selection import train_test_split

REGRESSION = {
    *("abalone", "airfoil_self_noise", "auto_mpg", "bike_sharing", "california_housing"),
    *("concrete", "diamonds", "energy_efficiency", "house_8L", "kin8nm", "parkinsons_updrs"),
    *("sklearn_diabetes", "taxis_fare"),
}
SHIPPED = ("iris", "breast_cancer", "wine", "digits", "diabetes")
MAX_TEST_ROWS = 4000

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Data(NamedTuple):
    """Features with codes of categories, the target, a mask of categories, and the kind of target."""

    X: np.ndarray
    y: np.ndarray
    categorical: np.ndarray
    is_regression: bool

    def draw(self, seed: int, *sizes: int) -> list[np.ndarray]:
        """Return random rows: row indices in blocks of the given sizes, the last one the rest."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return np.split(order, np.cumsum(sizes))


def has_chosen_defaults(name: str) -> bool:
    """Return whether a table was used to choose defaults; comparisons use the other tables."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0


def find_directory() -> Path:
    """Return the directory of the tables; end the program if CERTREE_DATA does not name it."""
    if not (directory := os.environ.get("CERTREE_DATA")):
        print("skipped: set CERTREE_DATA to the directory of the tables")
        raise SystemExit(0)
    return Path(directory)


def load_tables(
    only: str = "", *, regression: bool | None = None, shipped: bool = False
) -> dict[str, Data]:
    """Load tables whose target is in the last column.

    only: names of tables, separated by commas, or "" for all; regression: whether targets are
    numbers (None: both kinds); shipped: add tables of scikit-learn.
    """
    directory = find_directory()
    paths = [*sorted(directory.glob("*.parquet")), *sorted(directory.glob("more/*.parquet"))]
    readers: dict[str, Any] = {path.stem: (_read, path) for path in paths}
    if shipped:
        readers |= {f"sklearn_{name}": (_read_shipped, name) for name in SHIPPED}
    return {
        name: read(source)
        for name, (read, source) in readers.items()
        if (not only or name in only.split(",")) and regression in (None, name in REGRESSION)
    }


def _read(path: Path) -> Data:
    """Read a table from a Parquet file."""
    *features, target = pq.read_table(path).itercolumns()
    is_text = np.array([_is_text(column) for column in features])
    X = np.column_stack([_encode(column) for column in features])
    if path.stem in REGRESSION:
        return Data(X, target.to_numpy().astype(float), is_text, True)
    return Data(X, np.unique(target.to_numpy(), return_inverse=True)[1], is_text, False)


def _read_shipped(name: str) -> Data:
    """Read a table of scikit-learn."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return Data(X, y, np.zeros(X.shape[1], dtype=bool), name == "diabetes")


def _is_text(column: pa.ChunkedArray) -> bool:
    """Return whether a column has texts, which are categories."""
    return pa.types.is_large_string(column.type) or pa.types.is_string(column.type)


def _encode(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column as numbers; texts become their ranks, dates a number of their unit."""
    if _is_text(column):
        return np.unique(column.to_numpy(), return_inverse=True)[1].astype(float)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.float64()).to_numpy()


def split_rows(data: Data, n_train: int, seed: int) -> Split:
    """Return X, y of random training rows and of test rows, whose classes the training rows have."""
    train, test, _ = data.draw(seed, n_train, MAX_TEST_ROWS)
    y, y_test = data.y[train], data.y[test]
    if not data.is_regression:
        is_known = np.isin(y_test, y)
        classes, y = np.unique(y, return_inverse=True)
        test, y_test = test[is_known], np.searchsorted(classes, y_test[is_known])
    return data.X[train], y, data.X[test], y_test


def split_fraction(data: Data, seed: int, test_size: float | int = 0.3, **options: Any) -> Split:
    """Return X, y of random training rows and of test rows, stratified by class."""
    strata = None if data.is_regression else data.y
    X, X_test, y, y_test = train_test_split(
        data.X, data.y, test_size=test_size, random_state=seed, stratify=strata, **options
    )
    return X, y, X_test, y_test
