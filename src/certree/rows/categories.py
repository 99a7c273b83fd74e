"""Categories at the door: names become codes 0, 1, ..., the rest of a table stays numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.arrays import Float64

CategoricalFeatures = ArrayLike | Literal["from_dtype"] | None


Names = tuple[str, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """The categories of a table's features, learned from training rows.

    Parameters
    ----------
    names : tuple of (tuple or None), one per feature
        The categories of each feature in the order of their codes 0, 1, ...; None for a feature of
        numbers. Categories that are numbers or booleans are floats, all others strings.
    """

    names: tuple[Names | None, ...]

    @classmethod
    def of(
        cls,
        X: Any,
        categorical_features: CategoricalFeatures = "from_dtype",
        feature_names: Sequence[str] | None = None,
    ) -> "Categories":
        """Learn the categories of training rows, sorted.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (n, p)
            Training rows. None, NaN and pandas.NA are missing values, not categories.
        categorical_features : "from_dtype", None, or array-like of bool, int or str
            Which features hold categories: those of a DataFrame with a dtype of categories, strings
            or objects; none; or those of a mask (p,), of indices or of names.
        feature_names : sequence of str, or None
            Names of the features; None: those of the DataFrame.

        Returns
        -------
        Categories

        Raises
        ------
        ValueError
            If categorical_features does not fit X, or categories are of several types.
        """
        table = _table(X)
        names = table.names if feature_names is None else list(feature_names)
        if isinstance(categorical_features, str):
            if categorical_features != "from_dtype":
                raise ValueError(
                    'categorical_features must be "from_dtype", None, or a mask, indices or names, '
                    f"got {categorical_features!r}"
                )
            chosen = np.array([_holds_names(column) for column in table.columns], dtype=bool)
        else:
            chosen = categorical_mask(categorical_features, len(table.columns), names)
        return cls(
            tuple(
                _sorted_names(column, j) if chosen[j] else None
                for j, column in enumerate(table.columns)
            )
        )

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Whether each feature holds categories, (p,)."""
        return np.array([names is not None for names in self.names], dtype=bool)

    def encode(self, X: Any) -> Float64:
        """Make a matrix of numbers and codes.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of float64, shape (n, p)
            Features of categories as codes; NaN where a value is missing, and for categories that
            were not seen in training.

        Raises
        ------
        ValueError
            If X has another number of features, a feature of numbers holds something else, or
            categories are of another type than those learned.
        """
        table = _table(X)
        if len(table.columns) != len(self.names):
            raise ValueError(
                f"X has {len(table.columns)} features, but the categories are those of "
                f"{len(self.names)} features"
            )
        encoded: Float64 = np.empty((table.n_rows, len(self.names)))
        for j, (column, names) in enumerate(zip(table.columns, self.names, strict=True)):
            encoded[:, j] = _numbers(column) if names is None else _codes(column, j, names)
        return encoded


def categories_of(X: Any, categorical_features: CategoricalFeatures) -> Categories | None:
    """Learn the categories of training rows; None if all features are numbers."""
    if categorical_features is None:
        return None
    if isinstance(categorical_features, str) and _library(X) not in ("pandas", "polars"):
        return None
    categories = Categories.of(X, categorical_features)
    return categories if categories.mask.any() else None


def categorical_mask(
    categorical_features: ArrayLike | None, n_features: int, names: Sequence[str] | None = None
) -> NDArray[np.bool_]:
    """Say for each feature whether a mask, indices or names choose it.

    Parameters
    ----------
    categorical_features : array-like of bool, int or str, or None
        A mask of shape (n_features,), indices, or names; None chooses none.
    n_features : int
        Number of features.
    names : sequence of str, or None
        Names of the features.

    Returns
    -------
    ndarray of bool, shape (n_features,)

    Raises
    ------
    ValueError
        If a mask has another length, or an index or a name is unknown or comes twice.
    """
    mask = np.zeros(n_features, dtype=bool)
    if categorical_features is None:
        return mask
    given = np.asarray(categorical_features)
    if given.size == 0:
        return mask
    if given.ndim != 1 or given.dtype.kind not in "biuOU":
        raise ValueError(
            "categorical_features must be a mask, indices or names, got an array of shape "
            f"{given.shape} and dtype {given.dtype}"
        )
    if given.dtype.kind == "b":
        if len(given) != n_features:
            raise ValueError(
                f"categorical_features as a mask must have shape ({n_features},), got {given.shape}"
            )
        return given
    if given.dtype.kind in "OU":
        given = _positions(given.tolist(), names)
    if given.min() < 0 or given.max() >= n_features:
        raise ValueError(
            f"categorical_features must lie in 0 .. {n_features - 1}, got "
            f"{given.min()} .. {given.max()}"
        )
    if len(np.unique(given)) != len(given):
        raise ValueError(f"categorical_features must be distinct, got {given.tolist()}")
    mask[given] = True
    return mask


def _positions(chosen: list[Any], names: Sequence[str] | None) -> NDArray[np.intp]:
    if not all(isinstance(name, str) for name in chosen):
        raise ValueError(f"categorical_features must be a mask, indices or names, got {chosen!r}")
    if names is None:
        raise ValueError(
            f"categorical_features names features, got {chosen!r}, but X has no feature names"
        )
    position = {name: j for j, name in enumerate(names)}
    unknown = [name for name in chosen if name not in position]
    if unknown:
        raise ValueError(
            f"categorical_features must be among the feature names {list(names)}, got {unknown}"
        )
    return np.array([position[name] for name in chosen])


# -- tables: columns of arrays, of pandas or of polars ----------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    columns: list[Any]
    n_rows: int
    names: list[str] | None


def _table(X: Any) -> _Table:
    if _library(X) == "pandas":
        columns = [X.iloc[:, j] for j in range(X.shape[1])]
        return _Table(columns, len(X), [*X.columns])
    if _library(X) == "polars":
        return _Table(X.get_columns(), len(X), [*X.columns])
    array = np.asarray(X)
    if array.dtype.kind == "U":
        array = np.asarray(X, dtype=object)  # numbers beside strings stay numbers
    if array.ndim != 2:
        raise ValueError(f"Expected 2D array, got array of shape {array.shape} instead")
    return _Table([*array.T], len(array), None)


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def _holds_names(column: Any) -> bool:
    """Whether the dtype of a DataFrame's column is one of categories, strings or objects."""
    if _library(column) == "pandas":
        return column.dtype.kind in "OU"
    if _library(column) == "polars":
        return str(column.dtype).startswith(("Categorical", "Enum", "String"))
    return False


def _numbers(column: Any) -> Float64:
    library = _library(column)
    if library == "pandas" and column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.asarray(column if library == "numpy" else column.to_numpy())
    if values.dtype.kind not in "biufO":
        raise ValueError(f"could not convert dtype {values.dtype} to float")
    try:
        return values.astype(np.float64)
    except TypeError as error:
        raise ValueError(f"could not convert to float: {error}") from error


def _arrow(column: Any, j: int) -> Any:
    """The values of feature j as an Arrow array of strings, float64 or nulls, which are missing."""
    import pyarrow as pa  # takes longer to load than all of certree
    import pyarrow.compute as pc

    try:
        is_polars = _library(column) == "polars"
        values = column.to_arrow() if is_polars else pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(
            f"the categories of feature {j} must be strings or numbers, not both: {error}"
        ) from error
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return values
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return values.cast(pa.string())
    values = pc.add(values.cast(pa.float64()), 0.0)  # -0.0 is 0.0
    return pc.if_else(pc.is_nan(values), None, values)


def _sorted_names(column: Any, j: int) -> Names:
    return tuple(sorted(_arrow(column, j).unique().drop_null().to_pylist()))


def _codes(column: Any, j: int, names: Names) -> Float64:
    import pyarrow as pa
    import pyarrow.compute as pc

    values, known = _arrow(column, j), pa.array(names)
    if not names or values.null_count == len(values):
        return np.full(len(values), np.nan)
    if values.type != known.type:
        raise ValueError(
            f"feature {j} has categories of type {values.type}, but learned ones of {known.type}"
        )
    codes: Float64 = pc.index_in(values, value_set=known).to_numpy(zero_copy_only=False)
    return codes
