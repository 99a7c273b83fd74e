"""Named data sets and files as tables of features and classes."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certree.extras import needed

if TYPE_CHECKING:
    import pyarrow as pa

DATA_VARIABLE = "CERTREE_DATA"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features and, if there is one, a target.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features: float64, or objects where some hold strings, which are categories.
    y : ndarray of shape (n,), or None
        Target.
    feature_names : list of str
        Names of the features.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    feature_names: list[str]

    @property
    def categorical(self) -> list[int]:
        """Numbers of the features that hold strings."""
        if self.X.dtype != object:
            return []
        return [j for j, x in enumerate(self.X.T) if any(isinstance(value, str) for value in x)]


# The UCI tables of the paper that OpenML has, by OpenML's data id. Its wine lacks the colour.
OPENML_IDS = {"spam": 44, "eeg": 1471, "wine": 287, "digit": 28, "letter": 6}


def _numbers(X: Any, y: Any, names: Any) -> Table:
    return Table(np.asarray(X, dtype=np.float64), np.asarray(y), list(map(str, names)))


def _bundled(loader: str) -> Table:
    from sklearn import datasets

    bunch = getattr(datasets, loader)()
    return _numbers(bunch.data, bunch.target, bunch.feature_names)


BUNDLED: dict[str, Callable[[], Table]] = {
    "iris": lambda: _bundled("load_iris"),
    "cultivars": lambda: _bundled("load_wine"),
    "cancer": lambda: _bundled("load_breast_cancer"),
    "digits": lambda: _bundled("load_digits"),
}


def load(name: str, directory: str | os.PathLike[str] | None = None) -> Table:
    """Load a data set by its name.

    Looked for in this order: ``<directory>/<name>.parquet`` with the label in its last column, the
    sets that scikit-learn brings along ("iris", "cultivars", "cancer", "digits"), OpenML.

    Parameters
    ----------
    name : str
        Name of the set.
    directory : path or None
        Where Parquet files are; None: what the environment variable CERTREE_DATA says, if set.

    Returns
    -------
    Table

    Raises
    ------
    FileNotFoundError
        If the set is in none of these places.
    ImportError
        If it is a Parquet file and pyarrow is not installed.
    """
    directory = os.environ.get(DATA_VARIABLE) if directory is None else directory
    file = None if directory is None else Path(directory) / f"{name}.parquet"
    if file is not None and file.is_file():
        columns = _read_parquet(file)
        return split_target(columns, columns.column_names[-1])
    if name in BUNDLED:
        return BUNDLED[name]()
    looked = (
        f"{file} is no file"
        if file
        else f"no directory of Parquet files was given (option --data or variable {DATA_VARIABLE})"
    )
    if name in OPENML_IDS:
        return _download(name, looked)
    known = ", ".join(sorted({*BUNDLED, *OPENML_IDS}))
    raise FileNotFoundError(
        f"data set {name!r}: {looked}, and it can be had without one only for {known}"
    )


def _download(name: str, looked: str) -> Table:
    from sklearn.datasets import fetch_openml

    number = OPENML_IDS[name]
    try:
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except (OSError, ValueError, HTTPException) as error:
        raise FileNotFoundError(
            f"data set {name!r}: {looked}, and data set {number} could not be downloaded from "
            f"OpenML ({error})"
        ) from error
    return _numbers(bunch.data, bunch.target, bunch.feature_names)


def read(path: str | os.PathLike[str]) -> "pa.Table":
    """Read a CSV, Parquet or Arrow (Feather) file.

    Parameters
    ----------
    path : path
        The file; its suffix says what it is.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix is unknown or the file is not what the suffix says.
    ImportError
        If pyarrow is not installed.
    """
    pa = needed("pyarrow", "files")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no such file: {file}")
    suffix = file.suffix.lower()
    if suffix not in _READERS:
        raise ValueError(f"expected a .csv, .parquet, .arrow or .feather file, got {file}")
    try:
        return _READERS[suffix](file)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{file} could not be read as {suffix[1:]}: {error}") from error


def _read_csv(file: Path) -> "pa.Table":
    csv = needed("pyarrow.csv", "files")
    table = csv.read_csv(file, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    _expect_utf8(table, file)
    return table


def _expect_utf8(table: "pa.Table", file: Path) -> None:
    """Refuse bytes, which is what is read of words in another encoding."""
    wanted = f"{file} must be text in UTF-8, but"
    try:
        names = table.column_names
    except UnicodeDecodeError:
        raise ValueError(f"{wanted} the names of its columns are in another encoding") from None
    is_binary = needed("pyarrow", "files").types.is_binary
    kinds = zip(names, table.schema.types, strict=True)
    other = [name for name, kind in kinds if is_binary(kind)]
    if other:
        columns = ", ".join(map(repr, other))
        raise ValueError(f"{wanted} column {columns} is in another encoding, such as latin-1")


def _read_parquet(file: Path) -> "pa.Table":
    return _without_index(needed("pyarrow.parquet", "files").read_table(file))


def _read_feather(file: Path) -> "pa.Table":
    return _without_index(needed("pyarrow.feather", "files").read_table(file))


def _without_index(table: "pa.Table") -> "pa.Table":
    """Leave out what pandas has written as the index of its rows: often their numbers."""
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return table.drop_columns([name for name in index if name in table.column_names])


_READERS: dict[str, Callable[[Path], "pa.Table"]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".arrow": _read_feather,
    ".feather": _read_feather,
}


def split_target(columns: "pa.Table", target: str | None) -> Table:
    """Split a table into its features and its target.

    Parameters
    ----------
    columns : pyarrow.Table
        All columns. Strings in features are categories; nulls become NaN, or None among strings.
    target : str or None
        Name of the target; None if there is none.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If the target is missing or holds nulls, or a feature is neither numbers nor strings.
    """
    names = columns.column_names
    if len(set(names)) < len(names):
        raise ValueError(f"the names of columns must differ, got {', '.join(names)}")
    y = None
    if target is not None:
        if target not in columns.column_names:
            raise ValueError(f"no column {target!r}; there are {', '.join(columns.column_names)}")
        values = columns.column(target).combine_chunks()
        if values.null_count:
            raise ValueError(f"the target {target!r} has {values.null_count} missing values")
        y = np.asarray(values.to_numpy(zero_copy_only=False))
        if y.dtype == object:
            y = _strings(y, target)
        columns = columns.drop_columns([target])
    features = [_feature(columns, name) for name in columns.column_names]
    if not features:
        raise ValueError("there is no feature column")
    kind = np.result_type(*features)  # object as soon as one of them is
    X = np.empty((columns.num_rows, len(features)), dtype=kind)
    for j, feature in enumerate(features):
        X[:, j] = feature
    return Table(X, y, list(columns.column_names))


def _strings(values: NDArray[Any], target: str) -> NDArray[Any]:
    if any(isinstance(value, str) and value.endswith("\0") for value in values):
        raise ValueError(f"the target {target!r} has values that end in a NUL, which NumPy drops")
    return values.astype(str)


def _feature(columns: "pa.Table", name: str) -> NDArray[Any]:
    pa = needed("pyarrow", "files")
    kind, values = columns.schema.field(name).type, columns.column(name)
    of = pa.types
    if of.is_string(kind) or of.is_large_string(kind) or of.is_dictionary(kind):
        return np.asarray(values.cast(pa.string()).to_numpy(), dtype=object)
    # A column without any value has a type of its own; all of it is NaN.
    accepted = (of.is_integer, of.is_floating, of.is_boolean, of.is_null)
    if not any(accepts(kind) for accepts in accepted):
        raise ValueError(f"feature {name!r} must hold numbers or strings, got {kind}")
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())
