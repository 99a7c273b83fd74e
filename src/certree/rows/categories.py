"""Learn the categories of a table's features, and encode them as codes 0, 1, ...."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from itertools import repeat
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, Literal, NamedTuple

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
from certree.tables.column_evidence import find_text_format
from certree.tables.text_formats import DAY_FIRST

CategoricalFeatures = ArrayLike | Literal["from_dtype"] | None
CategoryNames = tuple[str, ...] | tuple[float, ...]

# A categorical feature is nearly an identifier if it has more categories than this fraction of the
# rows in which it is present. With fewer rows than _FEW_ROWS there is no warning.
_IDENTIFIER_FRACTION = 0.5
_FEW_ROWS = 50
# Categories that are looked at to see whether they are numbers or dates written as text, and the
# fraction of them that must be.
_N_TEXTS, _MANY_TEXTS = 1000, 0.9
# The function that converts texts which pandas does not.
_READ_TABLE = "certree.read_table"
# float32 holds this many consecutive integers.
MAX_FLOAT32_CODES = 2**24
# Code of the categories that the fit does not know.
UNKNOWN_CODE = -1.0
# Length of a digest: 64 bits in hexadecimal.
_DIGEST = 16
# The address of an object in memory, in the text of objects whose class defines no text.
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+>")


@dataclass(frozen=True, eq=False)
class Categories:
    """Categories of the features of a table; `encode` turns them into codes.

    `learn` makes an instance.

    Parameters
    ----------
    names : tuple of (tuple or None), length p
        Categories of each feature in the order of their codes 0, 1, ...; None for a numeric
        feature. Categories that are numbers or booleans are floats, all others strings.
    digested : tuple of int
        Indices, ascending, of features whose `names` hold hashes in place of the texts; see
        `digest_texts`.
    unknown_are_missing : bool
        Whether `encode` gives categories that are not in `names` the code NaN of missing values
        instead of -1. It is True for models that do not split on sets of categories, and for models
        that earlier versions of certree have saved.
    """

    names: tuple[CategoryNames | None, ...]
    digested: tuple[int, ...] = ()
    unknown_are_missing: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields by name, for pickles and copies, without the computed property `codes`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def codes(self) -> tuple[Mapping[Any, float] | None, ...]:
        """For each of the p features a dict of codes by category; None for a numeric feature.

        Keys are the entries of `names`: hashes of texts for the features in `digested`.
        """
        return tuple(
            None if names is None else dict(zip(names, map(float, range(len(names))), strict=True))
            for names in self.names
        )

    @classmethod
    def learn(
        cls,
        X: Any,
        categorical_features: CategoricalFeatures = "from_dtype",
        feature_names: Sequence[str] | None = None,
    ) -> Categories:
        """Learn the categories of training rows, and number them 0, 1, ... in sorted order.

        Parameters
        ----------
        X : data frame of any library that narwhals reads, or array-like of shape (n, p)
            Training rows. None, NaN and pandas.NA are missing values, not categories.
        categorical_features : "from_dtype", None, or array-like of bool, int or str
            Features that hold categories. "from_dtype": in a data frame columns of categorical or
            string type, and of objects without dates and decimals; in an array of objects columns
            with at least one string, or with missing values only; in other arrays none. None: no
            feature. Else a mask (p,), indices, or names.
        feature_names : sequence of str, or None
            Names of the features; None: those of the data frame.

        Returns
        -------
        Categories
            Its `names` has the categories of each of the p features, or None for a numeric one.

        Raises
        ------
        ValueError
            If categorical_features does not fit X, or one feature holds both strings and numbers.
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
        """Return these categories and, with higher codes, the new categories in the rows of X.

        Parameters
        ----------
        X : data frame of any library that narwhals reads, or array-like of shape (n, p)
            Rows, not encoded. If X has another number of features, nothing is added. Nor is
            anything added to a feature that holds strings in X and numbers here, or the other way
            round. In both cases `encode` raises an error for X.

        Returns
        -------
        Categories
            Categories of this object keep their codes; new ones get the next codes in sorted order.
            This object is not changed.
        """
        table = TableColumns.read(X)
        if len(table.columns) != len(self.names):
            return self
        joined = (
            None if names is None else _join_names(names, self._sorted_names(column, table, j))
            for j, (column, names) in enumerate(zip(table.columns, self.names, strict=True))
        )
        return replace(self, names=tuple(joined))

    def _sorted_names(self, column: SeriesOrArray, table: TableColumns, j: int) -> CategoryNames:
        found: Any = _find_names(column, table.get_label(j))
        return tuple(map(_digest_text, found)) if j in self.digested else found

    def digest_texts(self, unused: NDArray[np.bool_]) -> Categories:
        """Return the categories with texts replaced by hashes, for smaller model files.

        A hash has 16 hexadecimal digits. `encode` hashes the texts of rows for such features, so it
        gives the same codes as before. Features keep their texts if these have at most 16 letters
        on average, or if two texts of the feature have the same hash.

        Parameters
        ----------
        unused : ndarray of bool, shape (p,)
            True for features whose texts may be replaced, because no output of the model, such as a
            plot or an export, contains them.

        Returns
        -------
        Categories
            `digested` lists the features with hashes. This object is not changed.
        """
        names, digested = [*self.names], {*self.digested}
        for j in np.flatnonzero(unused).tolist():
            known: Any = names[j]
            if known and isinstance(known[0], str) and sum(map(len, known)) > _DIGEST * len(known):
                digests = tuple(map(_digest_text, known))
                if j not in digested and len(set(digests)) == len(digests):
                    names[j] = digests
                    digested.add(j)
        return replace(self, names=tuple(names), digested=tuple(sorted(digested)))

    def select_known_texts(self, j: int, texts: Iterable[str]) -> frozenset[str]:
        """Return the texts that are categories of a feature, also if it stores hashes of texts.

        j: index of a categorical feature whose categories are texts. texts: texts to look up, not
        hashed. The result is the subset of texts that occurs among the categories.
        """
        known: Any = {*self.names[j]}  # type: ignore[misc]
        return frozenset(
            one for one in texts if (_digest_text(one) if j in self.digested else one) in known
        )

    def equals(self, other: Categories) -> bool:
        """Return whether both objects have the same categories with the same codes in all features.

        If only one of both objects holds hashes of a feature in place of its texts (which
        `digest_texts` makes), the texts of the other one are hashed for the comparison.
        """
        digested = {*self.digested, *other.digested}
        mine, theirs = (
            [
                tuple(map(_digest_text, map(str, known)))
                if known and j in digested and j not in each.digested
                else known
                for j, known in enumerate(each.names)
            ]
            for each in (self, other)
        )
        return mine == theirs

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """Number of categories of each of the p features; None for a numeric feature."""
        return tuple(None if names is None else len(names) for names in self.names)

    def extend(self, n_features: int) -> Categories:
        """Return the categories with numeric features appended, up to `n_features` features.

        The appended features are the calendar parts of dates (such as the month), which follow the
        features of the user in encoded rows. n_features: number of features of the result. This
        object is not changed.
        """
        n_new = n_features - len(self.names)
        return replace(self, names=(*self.names, *((None,) * n_new))) if n_new > 0 else self

    def renumber(self, numbers: Mapping[int, Int32]) -> Categories:
        """Return the categories with other codes for some features.

        Rows that are encoded already keep their codes; the function `renumber_codes` of the module
        `features` changes those.

        Parameters
        ----------
        numbers : mapping of int to ndarray of int32, shape (n_categories,)
            For each feature to change, by its index: the new code of each category, a permutation
            of 0, ..., n_categories - 1.

        Returns
        -------
        Categories
            `names` has the categories in the order of the new codes; other features are unchanged.
        """
        names: list[Any] = [*self.names]
        for j, number in numbers.items():
            names[j] = tuple(names[j][k] for k in np.argsort(number))
        return replace(self, names=tuple(names))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Mask of the features that hold categories, (p,) bool."""
        return np.array([names is not None for names in self.names], dtype=bool)

    def encode(self, X: Any) -> Float64:
        """Encode rows as one matrix of numbers and category codes.

        Parameters
        ----------
        X : data frame of any library that narwhals reads, or array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of float64, shape (n, p)
            Numbers, and codes of categories. NaN where a value is missing; -1 for categories that
            are not in `names`, or NaN if `unknown_are_missing`.

        Raises
        ------
        TypeError, ValueError
            If X has another number of features, or a feature holds values of another type than in
            the fit, such as text in place of numbers; see `encode_columns`.
        """
        encoded: Float64 = np.column_stack(self.encode_columns(X)).astype(np.float64, copy=False)
        return encoded

    def encode_columns(self, X: Any) -> list[NDArray[Any]]:
        """Encode rows as columns of numbers and category codes.

        Columns of float64 and float32 numbers are not copied.

        Parameters
        ----------
        X : data frame of any library that narwhals reads, or array-like of shape (n, p)
            Rows.

        Returns
        -------
        list of p ndarrays of shape (n,), float64 or float32
            The columns of the matrix that `encode` returns.

        Raises
        ------
        TypeError
            If a numeric feature holds objects that are neither numbers nor text.
        ValueError
            If X has another number of features, if a numeric feature holds text or dates, or if a
            feature holds strings and its categories are numbers, or the other way round.
        """
        table = TableColumns.read(X)
        if len(table.columns) != len(self.names):
            raise ValueError(
                f"X must have {len(self.names)} features, as the rows of the fit, got "
                f"{len(table.columns)}: pass the columns of the fit in their order"
            )
        return [
            to_float_column(column, table.get_label(j))
            if names is None
            else _shrink_codes(self._encode_categories(column, table.get_label(j), j), names)
            for j, (column, names) in enumerate(zip(table.columns, self.names, strict=True))
        ]

    def _encode_categories(self, column: SeriesOrArray, label: str, j: int) -> Float64:
        """Return the codes of a categorical column, (n,) float64, as `encode` describes them.

        column: raw values, a narwhals Series or an array (n,). label: how error messages name the
        feature, such as "feature 'age'". j: index of the feature.
        """
        code: Any = self.codes[j]
        codes = _encode_column(column, label, code, j in self.digested)
        return np.where(codes == UNKNOWN_CODE, np.nan, codes) if self.unknown_are_missing else codes


def _shrink_codes(codes: Float64, names: CategoryNames) -> NDArray[Any]:
    """Convert category codes to float32 if a feature has at most 2^24 categories.

    float32 holds these codes exactly; codes of more categories are returned unchanged, as float64.

    codes: codes of the rows, (n,), NaN for missing values, -1 for unknown categories. names: the
    categories of the feature, of which only the number is read.
    """
    return codes.astype(np.float32) if len(names) <= MAX_FLOAT32_CODES else codes


def learn_categories(X: Any, categorical_features: CategoricalFeatures) -> Categories | None:
    """Learn the categories of training rows; return None if no feature is categorical.

    X is not read if categorical_features is None, or if it is "from_dtype" and X is neither a data
    frame nor an array of objects.

    X: training rows, an array-like or data frame. categorical_features: "from_dtype", None, a mask,
    indices or names; see `Categories.learn`, which computes the result in all other cases.
    """
    if categorical_features is None:
        return None
    objects = isinstance(X, np.ndarray) and X.dtype == object
    if isinstance(categorical_features, str) and not objects and as_data_frame(X) is None:
        return None
    categories = Categories.learn(X, categorical_features)
    return categories if categories.mask.any() else None


def warn_about_identifiers(
    features: DenseFeatures, categories: Categories, names: Any, are_inferred: bool
) -> None:
    """Issue a UserWarning for each categorical feature that has nearly as many categories as rows.

    That is: more than n / 2 categories in the n >= 50 rows in which the feature is not missing. Other
    features of at least 50 categories get a warning if their categories are numbers or dates
    written as text.

    Parameters
    ----------
    features : DenseFeatures
        Encoded training rows.
    categories : Categories
        The categories of the features.
    names : sequence of str, or None
        Names of the p features; None: warnings show their indices.
    are_inferred : bool
        Whether the types of the columns determine which features are categorical. If the user has
        named them, there is no warning of numbers and dates.
    """
    for j in np.flatnonzero(categories.mask):
        column = features.columns[j]
        present = column[column >= 0]
        known, n_categories = categories.names[j] or (), len(np.unique(present))
        warn_if_identifier(j, names, len(present), n_categories, known)
        if are_inferred and _FEW_ROWS <= n_categories <= _IDENTIFIER_FRACTION * len(present):
            _warn_of_numbers_and_dates(j, names, known)


def _warn_of_numbers_and_dates(j: Any, names: Any, categories: CategoryNames) -> None:
    """Issue a UserWarning if the categories of a feature are numbers or dates written as text.

    Features of which all categories are integers in plain form, such as "12", get no warning: these
    are most likely codes. j: index of the feature. names: names of all features; None: the warning
    shows the index. categories: the categories of this feature.
    """
    found = _find_text_kind(categories)
    if found is None or all(str(text).strip().isdecimal() for text in categories):
        return
    remedy = "" if found.function == _READ_TABLE else f"convert it by {found.function}, or "
    warnings.warn(
        f"feature {_name_feature(j, names)} holds {found.kind} written as text, such as "
        f"{found.example!r}, and is read as {len(categories)} categories: {remedy}read the file by "
        f"{_READ_TABLE}, or list it in categorical_features if it holds names.",
        UserWarning,
        stacklevel=3,
    )


def warn_if_identifier(
    j: Any, names: Any, n: int, n_categories: int, categories: CategoryNames
) -> None:
    """Issue a UserWarning if n >= 50 and a feature has more than n / 2 categories in n rows.

    Such a feature is nearly an identifier, which says nothing about new rows. The warning says how to
    convert the feature if most of its categories are numbers or dates that are written as text.

    Parameters
    ----------
    j : int
        Index of the feature.
    names : sequence of str, or None
        Names of all features; None: the warning shows the index.
    n : int
        Number of rows in which the feature is not missing.
    n_categories : int
        Number of distinct categories in these rows.
    categories : sequence of str or float
        The categories of the feature.
    """
    if n < _FEW_ROWS or n_categories <= _IDENTIFIER_FRACTION * n:
        return
    feature, remedy = _name_feature(j, names), ""
    if (found := _find_text_kind(categories)) is not None:
        remedy = (
            f" Most of its texts are {found.kind}, such as {found.example!r}: {found.function} "
            "converts them, and makes the other texts missing."
        )
    warnings.warn(
        f"feature {feature} has {n_categories} categories in {n} rows: it nearly is an identifier, "
        "which says nothing about new rows. Leave it out (--drop on the command line), or convert "
        f"it to numbers or dates if its order matters.{remedy}",
        UserWarning,
        stacklevel=3,
    )


def _name_feature(j: Any, names: Any) -> str:
    """Return the name of feature j in quotes, or its index if names is None."""
    return str(j) if names is None else repr(str(names[j]))


class _TextKind(NamedTuple):
    """What a warning says about a text feature most of whose categories are numbers or dates.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    kind : str
        "numbers" or "dates".
    example : str
        One of the categories, such as "2024-05-01".
    function : str
        Function call that converts the column, such as 'pandas.to_numeric(column,
        errors="coerce")'.
    """

    kind: str
    example: str
    function: str


def _find_text_kind(categories: CategoryNames) -> _TextKind | None:
    """Return what most categories of a feature are: numbers or dates written as text; None: neither.

    At most 1,000 evenly spaced categories are read. Most are of a kind if Python reads 90 % of them
    as numbers or as ISO dates, or if the reader of CSV files converts 99 %. categories: the
    categories of the feature, in order. Categories that are floats are not texts, so they count as
    neither.
    """
    spaced = categories[:: -(-len(categories) // _N_TEXTS) or 1]
    texts = [text for text in spaced if isinstance(text, str)]
    for is_of_kind, kind, function in (
        (_is_number, "numbers", "pandas.to_numeric"),
        (_is_date, "dates", "pandas.to_datetime"),
    ):
        found = [text for text in texts if is_of_kind(text)]
        if found and len(found) >= _MANY_TEXTS * len(spaced):
            return _TextKind(kind, found[0], f'{function}(column, errors="coerce")')
    # Names without digits are not worth the time in which PyArrow is imported.
    has_digits = [any(map(str.isdigit, text)) for text in texts]
    if len(texts) < len(spaced) or sum(has_digits) < _MANY_TEXTS * len(texts) or not texts:
        return None
    form = find_text_format(texts)
    if form is None:
        return None
    example = texts[has_digits.index(True)]
    if form.kind == "number":
        return _TextKind("numbers", example, _READ_TABLE)
    first = {DAY_FIRST: "dayfirst=True, ", "": "dayfirst=..., "}.get(form.order, "")
    return _TextKind("dates", example, f'pandas.to_datetime(column, {first}errors="coerce")')


def _is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    """Return whether a text is a date as ISO 8601 writes it, with hyphens, with or without a time."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return "-" in text


def make_categorical_mask(
    categorical_features: ArrayLike | None, n_features: int, names: Sequence[str] | None = None
) -> NDArray[np.bool_]:
    """Convert the parameter categorical_features to a mask of the features.

    Parameters
    ----------
    categorical_features : array-like of bool, int or str, or None
        A mask of shape (n_features,), indices, or names; None or an empty list: no feature is
        categorical. The value "from_dtype" is not accepted here.
    n_features : int
        Number of features.
    names : sequence of str, or None
        Names of the features; None: they have none, and names raise an error.

    Returns
    -------
    ndarray of bool, shape (n_features,)
        True for categorical features.

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
            f"{given.shape} and dtype {given.dtype}: pass a list of names or indices"
        )
    if given.dtype.kind == "b":
        if len(given) != n_features:
            raise ValueError(
                f"categorical_features must have shape ({n_features},) if it is a mask, got "
                f"{given.shape}: pass True or False for each feature"
            )
        return given
    if given.dtype.kind in "OU":
        given = _find_feature_positions(given.tolist(), names)
    if given.min() < 0 or given.max() >= n_features:
        raise ValueError(
            f"categorical_features must lie in 0 .. {n_features - 1}, got {given.min()} .. "
            f"{given.max()}: number the columns of X from 0"
        )
    if len(np.unique(given)) != len(given):
        raise ValueError(
            f"categorical_features must name each feature once, got {given.tolist()}: remove "
            "repetitions"
        )
    mask[given] = True
    return mask


def _find_feature_positions(chosen: list[Any], names: Sequence[str] | None) -> NDArray[np.intp]:
    if not all(isinstance(name, str) for name in chosen):
        raise ValueError(
            f"categorical_features must be a mask, indices or names, got a mixture, {chosen!r}: "
            "pass one kind"
        )
    if names is None:
        raise ValueError(
            "categorical_features must be a mask or indices, as X has no feature names, got "
            f"{chosen!r}: pass indices, or X as a data frame"
        )
    position = {name: j for j, name in enumerate(names)}
    unknown = [name for name in chosen if name not in position]
    if unknown:
        raise ValueError(
            f"categorical_features must be among the feature names {list(names)}, got {unknown}: "
            "correct these names"
        )
    return np.array([position[name] for name in chosen])


# -- reading categorical columns ---------------------------------------------------------------------

_TEXTS = (nw.String, nw.Categorical, nw.Enum)


def _is_categorical_column(column: SeriesOrArray) -> bool:
    """Return whether categorical_features="from_dtype" makes a column categorical.

    True for data frame columns of strings or of a categorical type, and for columns of objects
    other than dates and decimal numbers. In arrays, True for columns of dtype object that hold at
    least one string, or nothing but missing values.
    """
    if isinstance(column, nw.Series):
        if column.dtype != nw.Object:
            return column.dtype in _TEXTS
        return not has_times(column) and not _holds_decimals(column.to_list())
    if column.dtype != object:
        return False
    return any(isinstance(value, str) for value in column) or all(map(is_missing, column))


def _holds_decimals(values: list[Any]) -> bool:
    """Return whether objects are numbers, of which at least one is a `decimal.Decimal`.

    values: Python objects, which may be missing values as well.
    """
    is_decimal = any(isinstance(value, Decimal) for value in values)
    return is_decimal and not any(isinstance(value, str) for value in values)


@dataclass(frozen=True, slots=True, eq=False)
class _IndexedNames:
    """A dictionary-encoded categorical column: distinct category names, and an index for each row.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    names : list of str or None
        Distinct category names in the column; None stands for a missing value. In intermediate
        results of this module also other Python objects.
    row : ndarray of intp, shape (n,)
        Index of each row's name in `names`.
    are_digits : bool
        True if the column holds integers that float64 cannot represent; `names` are then the
        integers as strings of decimal digits.
    """

    names: list[Any]
    row: NDArray[np.intp]
    are_digits: bool = False

    def spread(self, numbers: ArrayLike) -> Float64:
        """Expand one number per name to one number per row: ``numbers[row]``, (n,) float64.

        numbers: number of each entry of `names`, such as its code, in the same order.
        """
        return np.array(numbers, dtype=np.float64)[self.row]


def _read_values(column: SeriesOrArray, label: str) -> Float64 | _IndexedNames:
    """Read a categorical column: as float64 if its values are numbers, else as category names.

    column: raw values, a narwhals Series or an array (n,). label: how error messages name the
    feature. Return an array (n,) with NaN for missing values. For texts, other objects, and integers
    that float64 cannot represent, return `_IndexedNames`: the distinct names, None for a missing
    value, and each row's index among them. Raise a TypeError if a value is a tuple, list, dictionary
    or set. Raise a ValueError if the column mixes texts with numbers, or fractions with integers
    that float64 cannot represent.
    """
    if isinstance(column, nw.Series):
        if column.dtype in _TEXTS:
            return _read_texts(column, label)
        if is_numeric(column):
            return _read_numbers(column, column.to_list, label)
        column = column.to_numpy()
    if column.dtype.kind in "biuf":
        return _read_numbers(column, column.tolist, label)
    if column.dtype.kind in "mM":
        # All dates get one unit, so that a date has the same name in every library.
        column = column.astype(f"{column.dtype.kind}8[us]")
    return _read_objects(column.tolist(), label)


def _read_numbers(
    column: SeriesOrArray, values: Callable[[], list[Any]], label: str
) -> Float64 | _IndexedNames:
    """Read a column of numbers as float64, (n,), with NaN for missing values.

    If the column holds only integers, and float64 cannot represent some of them, return
    `_IndexedNames` instead, whose names are the decimal digits of all these integers.

    column: raw values, a narwhals Series or an array (n,). values: function without arguments that
    returns the column as a list of Python objects; it is called only if an integer is too large.
    label: how error messages name the feature. Raise a ValueError for dates.
    """
    try:
        return to_float64_column(column, label)
    except ValueError:
        known = [None if is_missing(value) else value for value in values()]
        if not all(value is None or isinstance(value, Integral) for value in known):
            raise
    words = _index_values([None if value is None else str(int(value)) for value in known], label)
    return _IndexedNames(words.names, words.row, are_digits=True)


def _has_inexact_digits(names: Iterable[Any]) -> bool:
    """Return whether any of the names is the decimal digits of an integer beyond 2^53.

    Signs are ignored. float64 represents all integers up to 2^53. names: categories of a feature,
    strings or numbers.
    """
    digits = (name.lstrip("-") for name in names if isinstance(name, str))
    most = len(str(MAX_EXACT_INTEGER))  # Python refuses to parse very long integers
    return any(
        one.isdecimal() and (len(one) > most or int(one) > MAX_EXACT_INTEGER) for one in digits
    )


def _format_integers(numbers: Iterable[float]) -> list[str | None]:
    """Return a list with the decimal digits of each integer, and None for all other numbers."""
    return [str(int(one)) if np.isfinite(one) and one == int(one) else None for one in numbers]


def _parse_digits(names: list[Any]) -> list[float]:
    """Convert strings of decimal digits to a list of floats.

    names: the strings, or None in some places. The result has NaN for None, and for integers that
    float64 cannot represent.
    """
    return [np.nan if name is None else _parse_exact(int(name)) for name in names]


def _parse_exact(number: int) -> float:
    try:
        return float(number) if float(number) == number else np.nan
    except OverflowError:
        return np.nan


def match_category_type(names: Iterable[Any], others: Iterable[Any]) -> tuple[Any, ...]:
    """Convert categories to strings of digits if others of the feature are strings of digits.

    A feature of integers has its categories as floats in one table, and as decimal digits in
    another table if that one has integers that float64 cannot represent. This function makes them
    comparable.

    names: categories to convert. others: categories of the same feature in the other table. Return
    the digits of all names if others has digits of an integer beyond 2^53 and all names are
    integers; else return names unchanged, as a tuple.
    """
    given = tuple(names)
    if any(isinstance(name, str) for name in given) or not _has_inexact_digits(others):
        return given
    digits = _format_integers(given)
    return given if None in digits else tuple(digits)


def _read_texts(column: nw.Series[Any], label: str) -> Float64 | _IndexedNames:
    try:
        texts = column.to_arrow()
    except (ModuleNotFoundError, ValueError, TypeError):
        # Arrow is several times as fast, but may not be installed, and refuses objects of mixed types.
        return _read_objects(column.to_list(), label)
    if hasattr(texts, "combine_chunks"):  # the column of a concatenated frame has several chunks
        texts = texts.combine_chunks()
    coded = texts if hasattr(texts, "dictionary") else texts.dictionary_encode("encode")
    if "string" not in str(
        coded.type.value_type
    ):  # categories of dates and intervals have other Arrow types
        return _read_objects(column.to_list(), label)
    distinct = coded.dictionary.to_numpy(zero_copy_only=False).tolist()
    row = coded.indices.to_numpy(zero_copy_only=False)
    if coded is texts:  # a categorical type: unused categories are possible, and NaN is missing
        row = np.where(np.isnan(row), len(distinct), row).astype(np.intp)
        used = np.bincount(row, minlength=len(distinct)) > 0
        distinct = [name if rows else None for name, rows in zip(distinct, used, strict=False)]
    return _to_numbers_or_names(_IndexedNames([*distinct, None], row), label)


def _read_objects(values: list[Any], label: str) -> Float64 | _IndexedNames:
    words = _index_values(values, label)
    if any(_classify_value(value) is None for value in words.names):
        # Equal objects may have different texts; each row keeps its own.
        words = _index_values(
            [_get_text(one, label) if _classify_value(one) is None else one for one in values],
            label,
        )
    return _to_numbers_or_names(words, label)


def _get_text(value: Any, label: str) -> str:
    """Return the text of an object, which is its category.

    value: an object that is neither text, number nor missing value. label: how the message names the
    feature. Raise a TypeError for bytes, and for objects whose text contains their address in memory,
    so that equal objects would be different categories in every process.
    """
    text, kind = str(value), type(value).__name__
    if isinstance(value, bytes):
        remedy = "decode the bytes to text, or convert them to numbers"
    elif _ADDRESS.search(text):
        remedy = f"convert them to text or numbers, as their own text is {shortened(text)}"
    else:
        return text
    raise TypeError(
        f"{label} must hold numbers, text, booleans or dates, got objects of type {kind}: {remedy}"
    )


def _index_values(values: list[Any], label: str) -> _IndexedNames:
    try:
        number = {value: place for place, value in enumerate(dict.fromkeys(values))}
        several = next((value for value in number if isinstance(value, tuple | frozenset)), None)
    except TypeError:
        several = next(value for value in values if not _has_hash(value))
    if several is not None:
        raise TypeError(
            f"{label} must hold numbers, text, booleans or dates, got an object of type "
            f"{type(several).__name__}: make a column of each of its entries, or convert it to text"
        )
    row = np.fromiter(map(number.__getitem__, values), np.intp, len(values))
    return _IndexedNames(list(number), row)


def _has_hash(value: Any) -> bool:
    """Return whether a value can be a key of a dictionary; dictionaries, lists and sets cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _to_numbers_or_names(values: _IndexedNames, label: str) -> Float64 | _IndexedNames:
    """Return a column as float64, (n,), if its distinct values are numbers; else as category names.

    values: the column, with distinct values that may be any Python objects: numbers, texts, members
    of an enumeration of strings, or missing values (None, NaN, ...). label: how error messages name
    the feature. Names in the result are plain strings, or None for a missing value. Raise a
    ValueError if the column holds both strings and numbers.
    """
    if set(map(type, values.names)) <= {str, type(None)}:
        return values
    known = [None if is_missing(value) else value for value in values.names]
    kinds = {_classify_value(value) for value in known if value is not None}
    if kinds == {str, Real}:
        raise ValueError(
            f"{label} must have categories that are all strings or all numbers, got both: "
            f"{', '.join(sorted({type(value).__name__ for value in known if value is not None}))}. "
            "Convert them to one type, and write missing values as NaN or None"
        )
    if kinds == {Real}:
        objects = np.array(known, dtype=object)
        numbers = _read_numbers(objects, objects.tolist, label)
        if isinstance(numbers, _IndexedNames):
            return _IndexedNames(numbers.names, numbers.row[values.row], are_digits=True)
        return values.spread(numbers)
    # Members of an enumeration of strings, for instance, become plain strings.
    return _IndexedNames(
        [None if value is None else str.__str__(value) for value in known], values.row
    )


def _classify_value(value: Any) -> type | None:
    """Return the type Real if a value is a number, str if it is a text, and None for other objects.

    Missing values (None, NaN, pandas.NA) count as texts; callers who must not mix them up with text
    drop them first. Real is `numbers.Real`; a Decimal counts as one.
    """
    if isinstance(value, str) or is_missing(value):
        return str
    return Real if isinstance(value, (Real, Decimal)) else None


def _find_names(column: SeriesOrArray, label: str) -> CategoryNames:
    values = _read_values(column, label)
    if isinstance(values, _IndexedNames):
        return tuple(sorted({name for name in values.names if name is not None}))
    return tuple(np.unique(values[~np.isnan(values)] + 0.0).tolist())  # -0.0 is 0.0


def _join_names(names: CategoryNames, others: CategoryNames) -> tuple[Any, ...]:
    names, others = match_category_type(names, others), match_category_type(others, names)
    of_other_type = names and others and isinstance(names[0], str) != isinstance(others[0], str)
    return names if of_other_type else tuple(dict.fromkeys((*names, *others)))


def _digest_text(text: str) -> str:
    """Return a hash of a text, 16 hexadecimal digits by BLAKE2b, the same in every process."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST // 2).hexdigest()


def _encode_column(
    column: SeriesOrArray, label: str, code: Mapping[Any, float], are_digests: bool
) -> Float64:
    """Return the codes of a categorical column, (n,): NaN for missing values, -1 for unknown ones.

    column: raw values, a narwhals Series or an array (n,). label: how error messages name the
    feature. code: code of each category, in the order 0, 1, .... are_digests: whether the
    categories are hashes of texts. Raise a ValueError if the column holds strings and the
    categories are numbers, or the other way round.
    """
    names = (*code,)
    looked_up = None if are_digests else _look_up_codes(column, code)
    if looked_up is not None:
        return looked_up
    values = _read_values(column, label)
    if isinstance(values, _IndexedNames):
        absent = values.spread([np.nan if one is None else UNKNOWN_CODE for one in values.names])
        if values.are_digits and names and not isinstance(names[0], str):
            values = values.spread(_parse_digits(values.names))
    else:
        absent = np.where(np.isnan(values), np.nan, UNKNOWN_CODE)
        if _has_inexact_digits(names):
            values = _index_values(_format_integers(values.tolist()), label)
    if not names or np.isnan(absent).all():
        return absent
    words = isinstance(values, _IndexedNames)
    if words != isinstance(names[0], str):
        kinds = ("text", "numbers") if words else ("numbers", "text")
        raise ValueError(
            f"{label} must have categories that are {kinds[1]}, as in the fit, got {kinds[0]}: "
            "convert the column"
        )
    if isinstance(values, _IndexedNames):
        texts = values.names
        if are_digests:
            texts = [None if text is None else _digest_text(text) for text in texts]
        codes = values.spread(list(map(code.get, texts, repeat(np.nan))))
        return np.where(np.isnan(codes), absent, codes)
    known = np.array(names, dtype=np.float64)
    order = np.argsort(known)  # categories that were added later are not in order
    place = np.searchsorted(known, values, sorter=order)
    place = order[np.minimum(place, len(known) - 1)]
    return np.where(known[place] == values, place, absent)


def _look_up_codes(column: SeriesOrArray, code: Mapping[Any, float]) -> Float64 | None:
    """Encode a column of strings by one dictionary look-up per row; return None for other columns.

    Return the codes, (n,) float64, with NaN for missing values and -1 for unknown categories.
    Return None if the column is not an array of dtype object, or if categories or values are
    anything but strings and None. The caller must then use `_read_values`, which takes twice as
    long.

    column: raw values, a narwhals Series or an array (n,). code: code of each category of the
    feature.
    """
    if not (isinstance(column, np.ndarray) and column.dtype == object):
        return None
    try:
        found = map(code.get, column.tolist(), repeat(UNKNOWN_CODE))
        codes = np.fromiter(found, np.float64, len(column))
    except TypeError:  # `_read_values` raises the error for unhashable values
        return None
    is_other = codes == UNKNOWN_CODE
    others = column[is_other].tolist()
    if set(map(type, code)) - {str} or set(map(type, others)) - {str, type(None)}:
        return None
    codes[is_other] = [np.nan if other is None else UNKNOWN_CODE for other in others]
    return codes
