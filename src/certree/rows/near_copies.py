"""Near copies: rows of a certified fit that repeat others in nearly all values.

Rows that are equal are counted in `duplicates`. Copies that differ a little pass that count: they have
a row number or a key, went through another number format, or carry noise. Two comparisons of the
calibration rows with the training rows look for them, and neither changes the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certree.interface.arrays import Float64, UInt64
from certree.interface.formatting import format_percent
from certree.interface.signatures import validate_settings
from certree.rows.duplicates import (
    FEW_ROWS,
    ColumnKind,
    Duplicates,
    count_repeats,
    find_first_equal_keys,
    get_allowed_repeats,
)
from certree.rows.folds import Indices
from certree.rows.hashes import hash_samples, mix

# The comparison starts with so many bins, with fewer if rows are few, with more if they are sampled. It
# ends with the last bins that hold so many rows, or rows of the sample: the sizes of smaller bins vary.
_FIRST_BINS, _FIRST_OF_SAMPLE = 16, 64
_FEWEST_IN_BIN, _FEWEST_OF_SAMPLE = 3, 12
# A fit warns if more than this share of the calibration rows have neighbours of which more than
# _LEAST_KEPT stay neighbours when the bins are halved. Half of the neighbours of independent rows stay,
# or fewer.
_LEAST_FRACTION, _LEAST_KEPT = 0.05, 0.65
# Standard deviations that are added to _LEAST_KEPT; that of a share of one row is at most a half.
_DEVIATIONS = 3.0
# The features with the most values are compared: very many would separate copies that carry noise.
_MOST_FEATURES = 8
# Of more rows than _ALL_ROWS a sample of so many has the quantiles, and about _SOME_ROWS are compared:
# those of some bins of one feature, of _FEWEST_PICKED at least.
_ALL_ROWS, _SOME_ROWS, _FEWEST_PICKED = 2**13, 2**12, 3
# A bin is halved within this part of it, and so many ranks at most, from its middle on.
_REACH, _MOST_REACH = 4, 16
# Numbers of a block of columns, which fits into the processor's cache.
_CACHED = 2**17
# So many values of a column are looked at before all of them.
_FIRST_VALUES = 1024
# Names of features that a message lists.
_MOST_NAMES = 5
_STEP = np.uint64(0x9E3779B97F4A7C15)


class NearCopiesWarning(UserWarning):
    """Category of the warning that calibration rows nearly repeat training rows.

    A certificate then counts rows that depend on each other as independent ones. Nothing is wrong if
    all rows were drawn independently, from a source in which values cluster this closely.

    Examples
    --------
    >>> import warnings
    >>> import certree
    >>> warnings.filterwarnings("ignore", category=certree.NearCopiesWarning)
    """


@dataclass(frozen=True, slots=True)
class NearCopies:
    """Result of the search for near copies in a certified fit.

    A neighbour of a calibration row is a training row with the same quantile codes of the compared
    features (and the same class) that differs in at least one of these features.

    Parameters
    ----------
    n : int
        Calibration rows whose quantile codes were compared; 0: none were, as rows are out of core or
        sparse, or no feature is numeric.
    bins : int
        Quantile bins of each feature in the comparison that looks most like copies.
    share : float
        Share of these rows that have a neighbour.
    kept : float
        Share of the neighbours that are left with twice as many bins, averaged over these rows.
    left_out : tuple of str
        Features that both comparisons leave out: text or integers whose values all differ.
    n_alike : int
        Calibration rows that repeat another row in all other features, but not in `left_out`.
    is_key : bool
        Whether one of `left_out` is text, or numbers the rows.
    is_balanced : bool
        Whether there are several classes, all with the same number of rows.
    with_target : bool
        Whether rows count as repeated only if their target is the same.
    grouped : bool
        Whether groups of calibration rows were counted in place of rows.
    """

    n: int
    bins: int = 0
    share: float = 0.0
    kept: float = 0.0
    left_out: tuple[str, ...] = ()
    n_alike: int = 0
    is_key: bool = False
    is_balanced: bool = False
    with_target: bool = True
    grouped: bool = False

    def __post_init__(self) -> None:
        validate_settings(self)
        if self.n < 0 or self.bins < 0 or self.n_alike < 0:
            raise ValueError("numbers of rows and bins must not be negative")
        if not (0 <= self.share <= 1 and 0 <= self.kept <= 1):
            raise ValueError(f"shares must lie in 0 .. 1, got {self.share!r} and {self.kept!r}")

    @property
    def are_likely(self) -> bool:
        """Whether more neighbours stay with finer bins than those of independent rows do."""
        return self.share > _LEAST_FRACTION and self.kept >= _compute_least_kept(
            round(self.share * self.n)
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the certificate assumes, with what the comparison found."""
        found = [f"rows are no near copies of others ({self._comparison})"]
        if self.left_out:
            found.append(
                f"{self.n_alike:,} calibration rows that repeat other rows in all features but "
                f"{self.names}, whose values all differ, are draws of their own"
            )
        if self.is_balanced:
            found.append(
                "all classes are equally frequent in the source, as they are in the table: rows that "
                "were made or repeated before the split, as by SMOTE, void the certificate"
            )
        return tuple(found)

    @property
    def names(self) -> str:
        """The features that were left out, in words."""
        more = len(self.left_out) - _MOST_NAMES
        return ", ".join(self.left_out[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

    @property
    def _comparison(self) -> str:
        if not self.n:
            return "which was not checked: rows are out of core or sparse, or no feature is numeric"
        units = "groups of calibration rows" if self.grouped else "calibration rows"
        said = (
            f"of {self.n:,} {units} that were compared, {format_percent(self.share)} share the codes "
            f"of {self.bins} quantile bins with training rows"
        )
        if self.share > _LEAST_FRACTION:
            said += f", of which {format_percent(self.kept)} are left with {2 * self.bins} bins"
        return said


def restore_near_copies(entries: Any) -> NearCopies | None:
    """Return what a file holds of a search for near copies; None: there was none.

    Raises
    ------
    ValueError
        If entries are missing or out of range.
    """
    if entries is None:
        return None
    names = {one.name for one in fields(NearCopies)}
    if not isinstance(entries, dict) or set(entries) != names:
        raise ValueError(f"expected near copies with {sorted(names)}, got {entries!r}")
    left_out = entries["left_out"]
    if not isinstance(left_out, (list, tuple)) or not all(isinstance(one, str) for one in left_out):
        raise ValueError(f"left_out must hold names of features, got {left_out!r}")
    return NearCopies(**{**entries, "left_out": tuple(left_out)})


def _compute_least_kept(n: int) -> float:
    """The share of neighbours kept from which on n rows with neighbours look like copies."""
    return _LEAST_KEPT + _DEVIATIONS * 0.5 / sqrt(max(n, 1))


class ComparedRows(NamedTuple):
    """Rows of a certified fit as both comparisons read them.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n,)
        Numbers of each feature; values of other kinds by places among them.
    kinds : sequence of {"number", "text", "other"}
        What each feature holds.
    target : ndarray of shape (n,)
        Class of each row as a number, or a numeric target.
    train, calibration : ndarray of intp
        Rows of both sides; one side empty: all rows are on both, though never for one tree.
    groups : ndarray of shape (n,), or None
        Group of each row.
    """

    columns: Sequence[NDArray[Any]]
    kinds: Sequence[ColumnKind]
    target: NDArray[Any]
    train: Indices
    calibration: Indices
    groups: NDArray[Any] | None


def find_near_copies(
    rows: ComparedRows,
    names: Sequence[str] | None,
    keys: UInt64,
    repeats: int,
    *,
    with_target: bool,
) -> NearCopies:
    """Compare the calibration rows of a fit with its training rows, beyond equality.

    Parameters
    ----------
    rows : ComparedRows
        The rows of the fit.
    names : sequence of str, or None
        Names of the features; None: they have numbers.
    keys : ndarray of uint64, shape (n,)
        Hashes of the rows, which decide what a sample of many rows holds.
    repeats : int
        Calibration rows that repeat another row in all features and the target.
    with_target : bool
        Whether a row repeats another one only if their targets are equal: true for classes.

    Returns
    -------
    NearCopies
    """
    grouped = rows.groups is not None
    about: dict[str, Any] = {"grouped": grouped, "with_target": with_target}
    if with_target:
        n_of_class = np.unique(rows.target, return_counts=True)[1]
        about["is_balanced"] = len(n_of_class) > 1 and bool((n_of_class == n_of_class[0]).all())
    if not rows.columns or any(map(issparse, rows.columns)):
        return NearCopies(0, **about)
    left_out = _find_identifiers(rows)
    others = [j for j in range(len(rows.columns)) if j not in left_out]
    if not others:
        return NearCopies(0, **about)
    if left_out:
        about["left_out"] = tuple(
            f"feature {j}" if names is None else str(names[j]) for j in left_out
        )
        about["is_key"] = any(left_out.values())
        about["n_alike"] = max(
            0, _count_repeats_without_identifiers(rows, others, with_target) - repeats
        )
    return NearCopies(*_compare_codes(rows, others, keys, with_target), **about)


def expect_few_near_copies(found: NearCopies, n: int, duplicates: Duplicates) -> None:
    """Warn of near copies among n calibration rows, or refuse copies that a key tells apart.

    Raises
    ------
    ValueError
        If too many rows repeat others in all features but a text or a row number, and nothing says
        that such rows are genuine draws.
    """
    few, most = get_allowed_repeats(n, "auto" if duplicates == "copies" else duplicates)
    if found.n_alike > (few if found.with_target else _LEAST_FRACTION * n):
        target = ", target included," if found.with_target else ""
        said = (
            f"{found.n_alike:,} of {n:,} rows that certify repeat other rows{target} in all features "
            f"but {found.names}, whose values all differ. If rows were copied, by oversampling or a "
            f'join, leave {found.names} out of X and give duplicates="copies", as no certificate '
            "holds for copies that are taken for draws"
        )
        if found.is_key and found.with_target and n >= FEW_ROWS and found.n_alike > most:
            raise ValueError(f'{said}. If each row was drawn by itself, give duplicates="genuine"')
        _warn(said)
    if found.are_likely:
        units = "groups" if found.grouped else "rows"
        _warn(
            f"{format_percent(found.share)} of the {found.n:,} {units} that certify, as far as they "
            f"were compared, nearly repeat training rows: they share the codes of {found.bins} "
            f"quantile bins of the features, and {format_percent(found.kept)} of such neighbours are "
            f"left with {2 * found.bins} bins, where about half are left of independent rows. If these "
            "are copies that were rounded or carry noise, or measurements that depend on each other, "
            "no certificate holds: keep one row of each, or give groups= (the draw of each row), where "
            "fit takes it"
        )


def _warn(said: str) -> None:
    warnings.warn(
        f"{said}. If all rows were drawn independently, nothing is wrong: ignore the category "
        "certree.NearCopiesWarning",
        NearCopiesWarning,
        stacklevel=3,
    )


# -- rows that are equal but for identifiers -------------------------------------------------------


def _count_repeats_without_identifiers(
    rows: ComparedRows, features: list[int], with_target: bool
) -> int:
    """Count the calibration rows that repeat other rows in some features; see `n_repeats`."""
    tables = [rows.columns[j] for j in features] + ([rows.target] if with_target else [])
    return count_repeats(
        find_first_equal_keys(hash_samples(*tables)), rows.train, rows.calibration, rows.groups
    )


def _find_identifiers(rows: ComparedRows) -> dict[int, bool]:
    """Find the columns of text or integers whose values all differ, and whether each is a key.

    A key is text, or integers in a range below twice the number of rows: those of other columns may be
    measurements. Fractions are never identifiers: five measurements tell all rows apart.
    """
    n, found = len(rows.target), {}
    for j, (column, kind) in enumerate(zip(rows.columns, rows.kinds, strict=True)):
        if n > 1 and all(
            _has_distinct_integers(one, kind) for one in (column[:_FIRST_VALUES], column)
        ):
            span = float(column.max()) - float(column.min())
            found[j] = kind == "text" or (kind == "number" and span < 2 * n)
    return found


def _has_distinct_integers(column: NDArray[Any], kind: ColumnKind) -> bool:
    """Whether no value is missing, a fraction, or there twice."""
    if kind == "number" and column.dtype.kind == "f" and not (column == np.rint(column)).all():
        return False
    ordered = np.sort(column)  # missing values are the last ones
    return bool((ordered[1:] != ordered[:-1]).all() and ordered[-1] == ordered[-1])


# -- rows with the same quantile codes -------------------------------------------------------------


def _compare_codes(
    rows: ComparedRows, features: list[int], keys: UInt64, with_target: bool
) -> tuple[int, int, float, float]:
    """Find how many calibration rows have neighbours, and how many of these finer bins keep.

    Returns `NearCopies.n`, `bins`, `share` and `kept` of that number of bins at which neighbours look
    most like copies. Bins are halved until few rows have neighbours. The mean is one of shares row by
    row, so that rows in dense regions, with many neighbours, do not hide others.
    """
    numeric = [rows.columns[j] for j in features if rows.kinds[j] == "number"]
    if not numeric:
        return 0, 0, 0.0, 0.0
    codes = QuantileCodes.rank_rows(numeric, keys)
    words = [rows.columns[j] for j in features if rows.kinds[j] != "number"]
    same = codes.hash_fixed_columns([*words, rows.target] if with_target else words)
    is_judge = _calibration_mask(rows, keys)[codes.rows]
    judges, others = np.flatnonzero(is_judge), np.flatnonzero(~is_judge)
    group = None
    if rows.groups is not None:
        group = np.unique(rows.groups[codes.rows], return_inverse=True)[1]
    n, bins = _count_units(judges, group), codes.fewest_bins
    own, other = codes.keys(bins, same, judges, others)
    n_found = _count_equal_keys(own, other)
    has_any = n_found > 0
    others = others[np.isin(other, own[has_any])]
    exact = np.isin(codes.exact_keys(judges[has_any], same), codes.exact_keys(others, same))
    has_any[has_any] = ~exact
    judges, n_found = judges[has_any], n_found[has_any]
    most = (-np.inf, bins, _count_units(judges, group) / max(n, 1), 0.0)
    while (m := _count_units(judges, group)) > _LEAST_FRACTION * n and 2 * bins <= codes.most_bins:
        finer = _count_equal_keys(*codes.keys(2 * bins, same, judges, others))
        kept = _average_units(finer / n_found, None if group is None else group[judges])
        most = max(most, (kept - _compute_least_kept(m), bins, m / n, kept), key=lambda one: one[0])
        judges, n_found, bins = judges[finer > 0], finer[finer > 0], 2 * bins
    return n, *most[1:]


def _calibration_mask(rows: ComparedRows, keys: UInt64) -> NDArray[np.bool_]:
    """Mark the calibration rows; where all rows train and calibrate, a half by their hashes."""
    if not len(rows.calibration) or not len(rows.train):
        return np.asarray(keys % np.uint64(2) == 1)
    mask = np.zeros(len(rows.target), dtype=np.bool_)
    mask[rows.calibration] = True
    return mask


def _count_units(rows: Indices, group: Indices | None) -> int:
    return len(rows) if group is None else len(np.unique(group[rows]))


def _average_units(values: Float64, group: Indices | None) -> float:
    """Average values of rows, or the means of their groups."""
    if group is None:
        return float(values.mean())
    n_rows = np.bincount(group)
    sums = np.bincount(group, values)
    return float((sums[n_rows > 0] / n_rows[n_rows > 0]).mean())


def _count_equal_keys(keys: UInt64, others: UInt64) -> NDArray[np.intp]:
    """Count for each key how many others equal it."""
    ordered = np.sort(others)
    counts: NDArray[np.intp] = np.searchsorted(ordered, keys, "right") - np.searchsorted(
        ordered, keys
    )
    return counts


class QuantileCodes(NamedTuple):
    """Ranks of the compared rows in each feature, from which codes of any number of bins follow.

    Parameters
    ----------
    columns : list of ndarray of shape (n,)
        The compared features: those with the most values, if there are many.
    rows : ndarray of intp, shape (m,)
        The compared rows.
    ordered : ndarray of float64, shape (q, n_ranked)
        The values of the ranked rows in each feature, ascending: of all rows, or of a sample of many.
    ranks : ndarray of int64, shape (q, m)
        How many of these values are smaller than that of each compared row.
    """

    columns: list[NDArray[Any]]
    rows: Indices
    ordered: Float64
    ranks: NDArray[np.int64]

    @classmethod
    def rank_rows(cls, columns: list[NDArray[Any]], keys: UInt64) -> QuantileCodes:
        """Rank rows by each column; of many rows those in some bins of one column are compared."""
        n = len(keys)
        sample = np.arange(n)
        if n > _ALL_ROWS:
            chosen_rows = np.flatnonzero(keys < np.uint64((_ALL_ROWS << 64) // n))
            # Of rows that are nearly all equal none or all may be chosen.
            sample = chosen_rows if len(chosen_rows) else sample
        table, chosen = _choose_features(columns, sample)
        columns = [columns[j] for j in chosen]
        if n <= _ALL_ROWS:
            return cls(columns, sample, *_rank_values(table))
        table.sort(axis=1)
        first = int(np.argmax(np.count_nonzero(table[:, 1:] != table[:, :-1], axis=1)))
        every = _copy_columns(columns[first : first + 1], np.arange(n))[0]
        rows = np.flatnonzero(_mark_rows_in_bins(every, table[first]))
        pairs = zip(table, _copy_columns(columns, rows), strict=True)
        return cls(columns, rows, table, np.array([np.searchsorted(*pair) for pair in pairs]))

    @property
    def is_sampled(self) -> bool:
        """Whether some of the rows are ranked and compared."""
        return len(self.columns[0]) > _ALL_ROWS

    @property
    def most_bins(self) -> int:
        """The largest number of bins to compare by."""
        fewest = _FEWEST_OF_SAMPLE if self.is_sampled else _FEWEST_IN_BIN
        return self.ordered.shape[1] // fewest

    @property
    def fewest_bins(self) -> int:
        """The smallest number of bins to compare by, a power of two."""
        if self.is_sampled:
            return _FIRST_OF_SAMPLE
        return min(_FIRST_BINS, 1 << max(0, self.most_bins.bit_length() - 2))

    def keys(self, bins: int, same: UInt64, *some: Indices) -> list[UInt64]:
        """Hash the codes of some of the compared rows, and what must be the same beside them."""
        q, n = self.ordered.shape
        place = (n + 1) * np.arange(q)[:, None]
        starts = halve_at_gaps(self.ordered, bins) + place
        code = np.bincount(starts.ravel(), minlength=q * (n + 1)).reshape(q, n + 1).cumsum(axis=1)
        hashes = []
        for rows in some:
            codes = code.take(self.ranks.take(rows, axis=1) + place)
            hashes.append(codes.view(np.uint64).T @ _make_factors(q) + same[rows])
        return hashes

    def exact_keys(self, some: Indices, same: UInt64) -> UInt64:
        """Hash the values themselves likewise."""
        rows = self.rows[some]
        return hash_samples(*(one[rows] for one in self.columns), same[some].astype(np.float64))

    def hash_fixed_columns(self, columns: list[NDArray[Any]]) -> UInt64:
        """Hash values that must be the same in copies, (m,)."""
        if not columns:
            return np.zeros(len(self.rows), dtype=np.uint64)
        return hash_samples(*(one[self.rows] for one in columns))


def halve_at_gaps(ordered: Float64, bins: int) -> NDArray[np.int64]:
    """Find the ranks at which bins start, (q, bins + 1), the first and the end included.

    Bins are halved again and again, each at the widest gap between values near its middle, which hardly
    ever separates copies. Those of fewer bins are unions of them.

    Parameters
    ----------
    ordered : ndarray of float64, shape (q, n)
        Ascending values of each feature.
    bins : int
        Number of bins, a power of two.
    """
    q, n = ordered.shape
    gaps = np.zeros((q, n + 1))
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values have no gap between them
        gaps[:, 1:n] = np.nan_to_num(ordered[:, 1:] - ordered[:, :-1])
    starts, feature = np.tile([0, n], (q, 1)), np.arange(q)[:, None, None]
    steps = np.arange(-_MOST_REACH, _MOST_REACH + 1)
    while starts.shape[1] <= bins:
        low, high = starts[:, :-1], starts[:, 1:]
        middle, reach = (low + high) // 2, (high - low) // _REACH
        near = (middle[:, :, None] + steps).clip(0, n)
        is_near = abs(steps) <= reach[:, :, None]
        widest = np.where(is_near, gaps[feature, near], -1.0).argmax(axis=2)
        halves = np.stack([low, middle + steps[widest]], axis=2).reshape(q, -1)
        starts = np.append(halves, starts[:, -1:], axis=1)
    return starts


def _copy_columns(columns: list[NDArray[Any]], rows: Indices) -> Float64:
    """Copy some rows of columns, (q, m); missing values are infinite, and so equal each other."""
    table = np.empty((len(columns), len(rows)))
    for values, column in zip(table, columns, strict=True):
        values[:] = column if len(rows) == len(column) else column[rows]
    table[np.isnan(table)] = np.inf
    return table


def _make_factors(n: int) -> UInt64:
    """Odd numbers by which codes are multiplied and added up to hashes, (n,)."""
    return mix(np.arange(1, n + 1, dtype=np.uint64) * _STEP) | np.uint64(1)


def _rank_values(table: Float64) -> tuple[Float64, NDArray[np.int64]]:
    """Sort each row of a table, and count for each value how many of its row are smaller."""
    q, n = table.shape
    flat = np.argsort(table, axis=1) + n * np.arange(q)[:, None]
    ordered = table.take(flat)
    first = np.zeros(table.shape, dtype=np.int64)
    np.multiply(ordered[:, 1:] != ordered[:, :-1], np.arange(1, n), out=first[:, 1:])
    np.maximum.accumulate(first, axis=1, out=first)
    ranks = np.empty_like(first)
    ranks.put(flat, first)
    return ordered, ranks


def _choose_features(columns: list[NDArray[Any]], rows: Indices) -> tuple[Float64, list[int]]:
    """Choose the features with the most values in some rows; return these values, (q, m), and which."""
    values, chosen = np.empty((0, len(rows))), list[int]()
    counts, step = np.empty(0, dtype=np.intp), max(1, _CACHED // max(len(rows), 1))
    for start in range(0, len(columns), step):
        block = _copy_columns(columns[start : start + step], rows)
        numbers = [*chosen, *range(start, start + len(block))]
        values = np.concatenate([values, block])
        if len(columns) <= _MOST_FEATURES:
            chosen = numbers
            continue
        ordered = np.sort(block, axis=1)
        n_values = np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)
        counts = np.append(counts, n_values)
        kept = np.sort(np.argsort(-counts, kind="stable")[:_MOST_FEATURES])
        values, counts, chosen = values[kept], counts[kept], [numbers[i] for i in kept]
    return values, chosen


def _mark_rows_in_bins(column: Float64, ordered: Float64) -> NDArray[np.bool_]:
    """Mark the rows in some of the first bins of a column, about as many as are to be compared.

    ordered: the values of a sample of the rows, ascending.
    """
    n, m = len(column), len(ordered)
    n_picked = max(_FEWEST_PICKED, round(_SOME_ROWS * _FIRST_OF_SAMPLE / n))
    starts = halve_at_gaps(ordered[None], _FIRST_OF_SAMPLE)[0]
    marked = np.zeros(n, dtype=np.bool_)
    for middle in (2 * np.arange(n_picked) + 1) * m // (2 * n_picked):
        k = np.searchsorted(starts, middle, "right")
        inside = column <= ordered[starts[k] - 1]
        if starts[k - 1] > 0:
            inside &= column > ordered[starts[k - 1] - 1]
        marked |= inside
    return marked
