"""Categories at the door: names become codes 0, 1, ..., the rest of a table stays numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from itertools import repeat
from numbers import Integral, Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import MAX_EXACT_INTEGER, Float64, Int32, to_array
from certree.rows.columns import (
    SeriesOrArray,
    TableColumns,
    as_data_frame,
    has_times,
    is_missing,
    is_numeric,
    to_float64_column,
    to_float_column,
)
from certree.rows.features import DenseFeatures

CategoricalFeatures = ArrayLike | Literal["from_dtype"] | None
CategoryNames = tuple[str, ...] | tuple[float, ...]

# A feature of categories is nearly an identifier where they are more than this share of the rows that
# have one; of fewer rows than _FEW_ROWS nothing is said.
_IDENTIFIER_FRACTION = 0.5
_FEW_ROWS = 50
# So many codes are numbers of float32.
_MAX_FLOAT32_CODES = 2**24
# Letters of a digest: 64 bits in hexadecimal.
_DIGEST = 16


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """The categories of a table's features, learned from training rows.

    Parameters
    ----------
    names : tuple of (tuple or None), one per feature
        The categories of each feature in the order of their codes 0, 1, ...; None for a feature of
        numbers. Categories that are numbers or booleans are floats, all others strings.
    digested : tuple of int
        Features, ascending, whose names are not their texts but digests of these: see `digest_texts`.
    """

    names: tuple[CategoryNames | None, ...]
    digested: tuple[int, ...] = ()

    @classmethod
    def learn(
        cls,
        X: Any,
        categorical_features: CategoricalFeatures = "from_dtype",
        feature_names: Sequence[str] | None = None,
    ) -> Categories:
        """Learn the categories of training rows, sorted.

        Parameters
        ----------
        X : data frame of any library that narwhals knows, or array-like of shape (n, p)
            Training rows. None, NaN and pandas.NA are missing values, not categories.
        categorical_features : "from_dtype", None, or array-like of bool, int or str
            Which features hold categories: those of a data frame with a type of categories, strings
            or objects that are no dates, and those of an array of objects with a string in them; none;
            or those of a mask (p,), of indices or of names.
        feature_names : sequence of str, or None
            Names of the features; None: those of the data frame.

        Returns
        -------
        Categories

        Raises
        ------
        ValueError
            If categorical_features does not fit X, or categories are of several types.
        """
        table = TableColumns.read(X)
        names = table.names if feature_names is None else list(feature_names)
        if isinstance(categorical_features, str):
            if categorical_features != "from_dtype":
                raise ValueError(
                    'categorical_features must be "from_dtype", None, or a mask, indices or names, '
                    f"got {categorical_features!r}"
                )
            chosen = np.array(
                [_is_categorical_column(column) for column in table.columns], dtype=bool
            )
        else:
            chosen = make_categorical_mask(categorical_features, len(table.columns), names)
        return cls(
            tuple(
                _find_names(column, table.get_label(j)) if chosen[j] else None
                for j, column in enumerate(table.columns)
            )
        )

    def add_categories(self, X: Any) -> Categories:
        """Add the categories of more rows.

        Parameters
        ----------
        X : data frame of any library that narwhals knows, or array-like of shape (n, p)
            Rows. A table with other features, or categories of another type, adds none: `encode`
            says what is wrong with it.

        Returns
        -------
        Categories
            New ones stand behind those known, which keep their codes.
        """
        table = TableColumns.read(X)
        if len(table.columns) != len(self.names):
            return self
        return Categories(
            tuple(
                None if names is None else _join_names(names, self._sorted_names(column, table, j))
                for j, (column, names) in enumerate(zip(table.columns, self.names, strict=True))
            ),
            self.digested,
        )

    def _sorted_names(self, column: SeriesOrArray, table: TableColumns, j: int) -> CategoryNames:
        found: Any = _find_names(column, table.get_label(j))
        return tuple(map(_digest_text, found)) if j in self.digested else found

    def digest_texts(self, unused: NDArray[np.bool_]) -> Categories:
        """Replace long texts of features by digests of 16 letters, so that files need not hold them.

        Rows are encoded as before. Where two texts have one digest, or texts are shorter than
        digests, the feature keeps them.

        Parameters
        ----------
        unused : ndarray of bool, shape (p,)
            Features whose texts nobody reads.

        Returns
        -------
        Categories
        """
        names, digested = [*self.names], {*self.digested}
        for j in np.flatnonzero(unused).tolist():
            known: Any = names[j]
            if known and isinstance(known[0], str) and sum(map(len, known)) > _DIGEST * len(known):
                digests = tuple(map(_digest_text, known))
                if j not in digested and len(set(digests)) == len(digests):
                    names[j] = digests
                    digested.add(j)
        return Categories(tuple(names), tuple(sorted(digested)))

    def equals(self, other: Categories) -> bool:
        """Whether features have the same categories with the same codes, as texts or digests."""
        digested = {*self.digested, *other.digested}
        one, two = (
            [
                tuple(map(_digest_text, map(str, known)))
                if known and j in digested and j not in each.digested
                else known
                for j, known in enumerate(each.names)
            ]
            for each in (self, other)
        )
        return one == two

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """How many categories each feature has, (p,); None for one of numbers."""
        return tuple(None if names is None else len(names) for names in self.names)

    def renumber(self, numbers: Mapping[int, Int32]) -> Categories:
        """Give the categories of some features other codes.

        Parameters
        ----------
        numbers : mapping of int to ndarray of int32
            Of each of these features the new code of each category.

        Returns
        -------
        Categories
        """
        names: list[Any] = [*self.names]
        for j, number in numbers.items():
            names[j] = tuple(names[j][k] for k in np.argsort(number))
        return Categories(tuple(names), self.digested)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Whether each feature holds categories, (p,)."""
        return np.array([names is not None for names in self.names], dtype=bool)

    def encode(self, X: Any) -> Float64:
        """Make a matrix of numbers and codes.

        Parameters
        ----------
        X : data frame of any library that narwhals knows, or array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of float64, shape (n, p)
            Features of categories as codes; NaN where a value is missing, and for categories that
            were not seen in training.

        Raises
        ------
        TypeError, ValueError
            As `columns` does.
        """
        encoded: Float64 = np.column_stack(self.encode_columns(X)).astype(np.float64, copy=False)
        return encoded

    def encode_columns(self, X: Any) -> list[NDArray[Any]]:
        """Make columns of numbers and codes, those of float64 and float32 without a copy.

        Parameters
        ----------
        X : data frame of any library that narwhals knows, or array-like of shape (n, p)
            Rows.

        Returns
        -------
        list of ndarray of shape (n,), float64 or float32
            The columns of `encode`.

        Raises
        ------
        TypeError
            If a feature of numbers holds objects that are neither numbers nor text.
        ValueError
            If X has another number of features, a feature of numbers holds something else, or
            categories are of another type than those learned.
        """
        table = TableColumns.read(X)
        if len(table.columns) != len(self.names):
            raise ValueError(
                f"X has {len(table.columns)} features, but the categories are those of "
                f"{len(self.names)} features"
            )
        return [
            to_float_column(column, table.get_label(j))
            if names is None
            else _shrink_codes(
                _encode_column(column, table.get_label(j), names, j in self.digested), names
            )
            for j, (column, names) in enumerate(zip(table.columns, self.names, strict=True))
        ]


def _shrink_codes(codes: Float64, names: CategoryNames) -> NDArray[Any]:
    """Codes in as little memory as holds them."""
    return codes.astype(np.float32) if len(names) <= _MAX_FLOAT32_CODES else codes


def learn_categories(X: Any, categorical_features: CategoricalFeatures) -> Categories | None:
    """Learn the categories of training rows; None if all features are numbers."""
    if categorical_features is None:
        return None
    objects = isinstance(X, np.ndarray) and X.dtype == object
    if isinstance(categorical_features, str) and not objects and as_data_frame(X) is None:
        return None
    categories = Categories.learn(X, categorical_features)
    return categories if categories.mask.any() else None


def warn_about_identifiers(features: DenseFeatures, categories: Categories, names: Any) -> None:
    """Warn of each feature whose categories are nearly as many as the rows that have one.

    Parameters
    ----------
    features : FeatureColumns
        Those of training rows, categories as codes.
    categories : Categories
        Which features hold categories.
    names : sequence of str, or None
        Names of the features; None: they have numbers.
    """
    for j in np.flatnonzero(categories.mask):
        column = features.columns[j]
        present = column[~np.isnan(column)]
        warn_if_identifier(j, names, len(present), len(np.unique(present)))


def warn_if_identifier(j: Any, names: Any, n: int, n_categories: int) -> None:
    """Warn of the j-th feature if so many categories are nearly as many as n rows that have one."""
    if n < _FEW_ROWS or n_categories <= _IDENTIFIER_FRACTION * n:
        return
    feature = j if names is None else repr(str(names[j]))
    warnings.warn(
        f"feature {feature} has {n_categories} categories in {n} rows: it nearly is an identifier, "
        "which tells nothing of new rows. Leave it out, or make it a number if its order means "
        "something.",
        UserWarning,
        stacklevel=3,
    )


def make_categorical_mask(
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
    given = to_array("categorical_features", categorical_features)
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
        given = _find_feature_positions(given.tolist(), names)
    if given.min() < 0 or given.max() >= n_features:
        raise ValueError(
            f"categorical_features must lie in 0 .. {n_features - 1}, got "
            f"{given.min()} .. {given.max()}"
        )
    if len(np.unique(given)) != len(given):
        raise ValueError(f"categorical_features must be distinct, got {given.tolist()}")
    mask[given] = True
    return mask


def _find_feature_positions(chosen: list[Any], names: Sequence[str] | None) -> NDArray[np.intp]:
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


# -- what columns hold -----------------------------------------------------------------------------

_TEXTS = (nw.String, nw.Categorical, nw.Enum)


def _is_categorical_column(column: SeriesOrArray) -> bool:
    """Whether a data frame's column is of categories, strings or objects, or objects hold a string.

    Ensembles of scikit-learn make an array of objects of a data frame, and draw rows of it: where all
    values are missing, others may be strings. Dates that nobody has declared are no names.
    """
    if isinstance(column, nw.Series):
        return column.dtype in _TEXTS or (column.dtype == nw.Object and not has_times(column))
    if column.dtype != object:
        return False
    return any(isinstance(value, str) for value in column) or all(map(is_missing, column))


@dataclass(frozen=True, slots=True, eq=False)
class _IndexedNames:
    """A column of names: the distinct ones, None for missing values, and which each row has.

    are_digits: whether they are integers of which float64 does not hold some.
    """

    names: list[Any]
    row: NDArray[np.intp]
    are_digits: bool = False

    def spread(self, numbers: ArrayLike) -> Float64:
        """Give every row the number of its name."""
        return np.array(numbers, dtype=np.float64)[self.row]


def _read_values(column: SeriesOrArray, called: str) -> Float64 | _IndexedNames:
    """The values of a feature of categories: numbers, NaN where one is missing, or names."""
    if isinstance(column, nw.Series):
        if column.dtype in _TEXTS:
            return _read_texts(column, called)
        if is_numeric(column):
            return _read_numbers(column, column.to_list, called)
        column = column.to_numpy()
    if column.dtype.kind in "biuf":
        return _read_numbers(column, column.tolist, called)
    if column.dtype.kind in "mM":
        # In one unit, so that a date has the same name in every library.
        column = column.astype(f"{column.dtype.kind}8[us]")
    return _read_objects(column.tolist(), called)


def _read_numbers(
    column: SeriesOrArray, values: Callable[[], list[Any]], called: str
) -> Float64 | _IndexedNames:
    """The numbers of a column; the digits of all of them if float64 does not hold some integer."""
    try:
        return to_float64_column(column, called)
    except ValueError:
        known = [None if is_missing(value) else value for value in values()]
        if not all(value is None or isinstance(value, Integral) for value in known):
            raise
    words = _index_values([None if value is None else str(int(value)) for value in known], called)
    return _IndexedNames(words.names, words.row, are_digits=True)


def _has_inexact_digits(names: Iterable[Any]) -> bool:
    """Whether names are the digits of integers of which float64 does not hold some."""
    digits = (name.lstrip("-") for name in names if isinstance(name, str))
    most = len(str(MAX_EXACT_INTEGER))  # Python makes no integers of very long texts
    return any(
        one.isdecimal() and (len(one) > most or int(one) > MAX_EXACT_INTEGER) for one in digits
    )


def _format_integers(numbers: Iterable[float]) -> list[str | None]:
    """The digits of integers; None for all other numbers."""
    return [str(int(one)) if np.isfinite(one) and one == int(one) else None for one in numbers]


def _parse_digits(names: list[Any]) -> list[float]:
    """The numbers of digits; NaN for None, and for those that float64 does not hold."""
    return [np.nan if name is None else _parse_exact(int(name)) for name in names]


def _parse_exact(number: int) -> float:
    try:
        return float(number) if float(number) == number else np.nan
    except OverflowError:
        return np.nan


def match_category_type(names: Iterable[Any], others: Iterable[Any]) -> tuple[Any, ...]:
    """Names as those of more rows are: digits, if float64 does not hold some integer of these.

    Names that are no integers stay as they are.
    """
    given = tuple(names)
    if any(isinstance(name, str) for name in given) or not _has_inexact_digits(others):
        return given
    digits = _format_integers(given)
    return given if None in digits else tuple(digits)


def _read_texts(column: nw.Series[Any], called: str) -> Float64 | _IndexedNames:
    try:
        texts = column.to_arrow()
    except (ModuleNotFoundError, ValueError, TypeError):
        # Arrow is several times as fast, but may not be installed, and takes no objects of many types.
        return _read_objects(column.to_list(), called)
    if hasattr(texts, "combine_chunks"):  # of frames that have been put together
        texts = texts.combine_chunks()
    coded = texts if hasattr(texts, "dictionary") else texts.dictionary_encode("encode")
    if "string" not in str(coded.type.value_type):  # Arrow has other types of dates and intervals
        return _read_objects(column.to_list(), called)
    distinct = coded.dictionary.to_numpy(zero_copy_only=False).tolist()
    row = coded.indices.to_numpy(zero_copy_only=False)
    if coded is texts:  # a type of categories: some may be in no row, and NaN stands for none
        row = np.where(np.isnan(row), len(distinct), row).astype(np.intp)
        used = np.bincount(row, minlength=len(distinct)) > 0
        distinct = [name if rows else None for name, rows in zip(distinct, used, strict=False)]
    return _to_numbers_or_names(_IndexedNames([*distinct, None], row), called)


def _read_objects(values: list[Any], called: str) -> Float64 | _IndexedNames:
    words = _index_values(values, called)
    if any(_classify_value(value) is None for value in words.names):
        # What is equal may have several texts, of which each row is to have its own.
        words = _index_values(
            [str(one) if _classify_value(one) is None else one for one in values], called
        )
    return _to_numbers_or_names(words, called)


def _index_values(values: list[Any], called: str) -> _IndexedNames:
    try:
        number = {value: place for place, value in enumerate(dict.fromkeys(values))}
    except TypeError as error:
        raise ValueError(f"the categories of {called} must be hashable: {error}") from error
    row = np.fromiter(map(number.__getitem__, values), np.intp, len(values))
    return _IndexedNames(list(number), row)


def _to_numbers_or_names(words: _IndexedNames, called: str) -> Float64 | _IndexedNames:
    """Numbers or names of the rows, by what their distinct values are."""
    if set(map(type, words.names)) <= {str, type(None)}:
        return words
    known = [None if is_missing(value) else value for value in words.names]
    kinds = {_classify_value(value) for value in known if value is not None}
    if kinds == {str, Real}:
        raise ValueError(
            f"the categories of {called} must be strings or numbers, not both: got "
            f"{', '.join(sorted({type(value).__name__ for value in known if value is not None}))}"
        )
    if kinds == {Real}:
        objects = np.array(known, dtype=object)
        numbers = _read_numbers(objects, objects.tolist, called)
        if isinstance(numbers, _IndexedNames):
            return _IndexedNames(numbers.names, numbers.row[words.row], are_digits=True)
        return words.spread(numbers)
    # The text itself of what is more than text, such as members of an enumeration.
    return _IndexedNames(
        [None if value is None else str.__str__(value) for value in known], words.row
    )


def _classify_value(value: Any) -> type | None:
    """Whether a value is text, a number or missing; None: something else, which has a text."""
    if isinstance(value, str) or is_missing(value):
        return str
    return Real if isinstance(value, (Real, Decimal)) else None


def _find_names(column: SeriesOrArray, called: str) -> CategoryNames:
    values = _read_values(column, called)
    if isinstance(values, _IndexedNames):
        return tuple(sorted({name for name in values.names if name is not None}))
    return tuple(np.unique(values[~np.isnan(values)] + 0.0).tolist())  # -0.0 is 0.0


def _join_names(names: CategoryNames, others: CategoryNames) -> tuple[Any, ...]:
    names, others = match_category_type(names, others), match_category_type(others, names)
    of_other_type = names and others and isinstance(names[0], str) != isinstance(others[0], str)
    return names if of_other_type else tuple(dict.fromkeys((*names, *others)))


def _digest_text(text: str) -> str:
    """Shorten a text to 16 letters, the same in every process; halves of characters are texts, too."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST // 2).hexdigest()


def _encode_column(
    column: SeriesOrArray, called: str, names: CategoryNames, are_digests: bool
) -> Float64:
    code: dict[Any, float] = dict(zip(names, range(len(names)), strict=True))
    looked_up = None if are_digests else _look_up_codes(column, code)
    if looked_up is not None:
        return looked_up
    values = _read_values(column, called)
    if not isinstance(values, _IndexedNames):
        if _has_inexact_digits(names):
            values = _index_values(_format_integers(values.tolist()), called)
    elif values.are_digits and names and not isinstance(names[0], str):
        values = values.spread(_parse_digits(values.names))
    words = isinstance(values, _IndexedNames)
    found = values.names if isinstance(values, _IndexedNames) else values
    if not names or all(map(is_missing, found)):
        return np.full(len(column), np.nan)
    if words != isinstance(names[0], str):
        kinds = ("string", "double") if words else ("double", "string")
        raise ValueError(
            f"{called} has categories of type {kinds[0]}, but learned ones of {kinds[1]}"
        )
    if isinstance(values, _IndexedNames):
        texts = values.names
        if are_digests:
            texts = [None if text is None else _digest_text(text) for text in texts]
        return values.spread(list(map(code.get, texts, repeat(np.nan))))
    known = np.array(names, dtype=np.float64)
    order = np.argsort(known)  # those of later rows stand behind
    place = np.searchsorted(known, values, sorter=order)
    place = order[np.minimum(place, len(known) - 1)]
    return np.where(known[place] == values, place, np.nan)


def _look_up_codes(column: SeriesOrArray, code: dict[Any, float]) -> Float64 | None:
    """The codes of an array of objects, if all that is not among the names is None or a string.

    So it is with most of them, and one look-up for each row takes half as long as `_values`.
    """
    if not (isinstance(column, np.ndarray) and column.dtype == object):
        return None
    try:
        codes = np.fromiter(map(code.get, column.tolist(), repeat(np.nan)), np.float64, len(column))
    except TypeError:  # what has no hash is named by `_values`
        return None
    others = set(map(type, column[np.isnan(codes)].tolist()))
    known = set(map(type, code))
    return codes if known <= {str} and others <= {str, type(None)} else None
