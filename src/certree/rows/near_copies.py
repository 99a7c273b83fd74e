"""Near copies: calibration rows that repeat training rows in nearly all values.

Rows that are equal are counted in `duplicates`. This count misses copies that differ a little, by
a row number, a key, another number format or noise. Two comparisons of calibration and training
rows search for them: one leaves out identifiers, the other one compares quantile bins. Neither
changes the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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

# Number of bins with which the comparison starts (fewer if there are few rows), and that for a
# sample of rows. Smallest mean number of rows in a bin, and that for a sample: the sizes of smaller
# bins vary too much.
_FIRST_BINS, _FIRST_OF_SAMPLE = 16, 64
_FEWEST_IN_BIN, _FEWEST_OF_SAMPLE = 3, 12
# A fit warns if more than this fraction of the calibration rows have neighbours, and more than
# _LEAST_KEPT of these remain neighbours when the bins are halved. At most half of the neighbours of
# independent rows remain.
_LEAST_FRACTION, _LEAST_KEPT = 0.05, 0.65
# Standard deviations that are added to _LEAST_KEPT; that of one row's fraction is at most a half.
_DEVIATIONS = 3.0
# Number of compared features, those with the most values: more would separate noisy copies.
_MOST_FEATURES = 8
# With more than _ALL_ROWS rows, a sample of that size determines the quantiles, and about _SOME_ROWS
# rows are compared: those in some bins of one feature, at least _FEWEST_PICKED bins.
_ALL_ROWS, _SOME_ROWS, _FEWEST_PICKED = 2**13, 2**12, 3
# A bin is halved at most 1 / _REACH of its size, and at most _MOST_REACH ranks, from its middle.
_REACH, _MOST_REACH = 4, 16
# Numbers in a block of columns that fits into the processor's cache.
_CACHED = 2**17
# Values of a column that are checked before all of them are.
_FIRST_VALUES = 1024
# Largest number of feature names in a message.
_MOST_NAMES = 5
_STEP = np.uint64(0x9E3779B97F4A7C15)


class NearCopiesWarning(UserWarning):
    """Category of the warning that calibration rows nearly repeat training rows.

    If such rows depend on each other, a certificate wrongly counts them as independent draws.
    Nothing is wrong if all rows were drawn independently, from a source in which values cluster
    this closely.

    Examples
    --------
    >>> import warnings
    >>> import certree
    >>> warnings.filterwarnings("ignore", category=certree.NearCopiesWarning)
    """


@dataclass(frozen=True, slots=True)
class NearCopies:
    """Result of the search for calibration rows that are nearly copies of training rows.

    There are two searches. The first one bins the numeric features by quantiles. A calibration row
    has a *neighbour* if a training row has the same bin numbers, equal values in features that are
    not numeric, and the same class (if `with_target`), but differs from it in a value. If bins are
    halved, at most half of the neighbours of independent rows remain, but most near copies do. The
    second search leaves out features whose values all differ, such as row numbers, and counts rows
    that are equal in all others.

    Parameters
    ----------
    n : int
        Number of calibration rows that were binned; 0 if rows are out of core or sparse, or no
        feature is numeric.
    bins : int
        Number of bins of each feature for which `share` and `kept` are given. Of all numbers of
        bins that were tried it is the one for which `kept` most exceeds its threshold; see
        `are_likely`.
    share : float
        Fraction of the n rows that have a neighbour.
    kept : float
        Fraction of a row's neighbours that remain with 2 * bins bins, averaged over the rows with
        neighbours.
    left_out : tuple of str
        Names of the features that both searches leave out: texts or integers whose values all
        differ.
    n_alike : int
        Result of the second search: number of calibration rows that equal another row in all
        features except `left_out`, without those that equal it in all features.
    is_key : bool
        Whether a feature of `left_out` holds texts, or integers in a range below twice the number
        of rows, as row numbers do.
    is_balanced : bool
        Whether there are several classes, all with the same number of rows; this is a hint that
        rows were resampled.
    with_target : bool
        Whether rows must also have equal targets to count as copies: True for classifiers.
    grouped : bool
        Whether `n`, `share` and `kept` count groups of calibration rows instead of rows.
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
            raise ValueError(
                "n, bins and n_alike must not be negative, got "
                f"{self.n}, {self.bins} and {self.n_alike}"
            )
        if not (0 <= self.share <= 1 and 0 <= self.kept <= 1):
            raise ValueError(
                f"share and kept must lie in 0 .. 1, got {self.share!r} and {self.kept!r}"
            )

    @property
    def are_likely(self) -> bool:
        """Whether near copies are likely: more neighbours remain in halved bins than by chance.

        True if `share` exceeds 5 %, and `kept` is at least 0.65 plus three standard deviations,
        each 0.5 / sqrt(number of rows with neighbours).
        """
        return self.share > _LEAST_FRACTION and self.kept >= _compute_least_kept(
            round(self.share * self.n)
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of a certificate about copies, as phrases for its list of assumptions.

        The first phrase says that rows are no near copies of others, with `n`, `share`, `bins` and
        `kept`. A second one follows if there is `left_out`: the `n_alike` rows are independent
        draws. A third one follows if `is_balanced`: the source of the data has equally frequent
        classes, too.
        """
        found = [f"rows are no near copies of others ({self._comparison})"]
        if self.left_out:
            found.append(
                f"{self.n_alike:,} calibration rows that repeat other rows in all features but "
                f"{self.names}, whose values all differ, are independent draws"
            )
        if self.is_balanced:
            found.append(
                "all classes are equally frequent in the source, as they are in the table: rows that "
                "were made or repeated before the split, as by SMOTE, void the certificate"
            )
        return tuple(found)

    @property
    def names(self) -> str:
        """Names in `left_out` as one text, such as "id, code"; at most five are listed."""
        more = len(self.left_out) - _MOST_NAMES
        return ", ".join(self.left_out[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

    @property
    def _comparison(self) -> str:
        if not self.n:
            return "which was not checked: rows are out of core or sparse, or no feature is numeric"
        units = "groups of calibration rows" if self.grouped else "calibration rows"
        text = (
            f"of {self.n:,} {units} that were compared, {format_percent(self.share)} share the codes "
            f"of {self.bins} quantile bins with training rows"
        )
        if self.share > _LEAST_FRACTION:
            text += f", of which {format_percent(self.kept)} are left with {2 * self.bins} bins"
        return text


def _compute_least_kept(n: int) -> float:
    """Return the least value of `NearCopies.kept` for which near copies are likely.

    `kept` is the mean fraction of a row's neighbours (training rows in the same bins) that remain
    if bins are halved. The result is 0.65 + 3 * 0.5 / sqrt(n): 0.5 bounds the standard deviation of
    a single row's fraction. n: number of calibration rows with neighbours.
    """
    return _LEAST_KEPT + _DEVIATIONS * 0.5 / sqrt(max(n, 1))


class ComparedRows(NamedTuple):
    """Rows of a certified fit, as the search for near copies reads them.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n,)
        Values of each feature; texts and other objects are replaced by numbers, see `RowHasher`.
        For sparse rows the sequence has one CSR matrix.
    kinds : sequence of {"number", "text", "other"}
        What each feature held before that: numbers, texts or other objects.
    target : ndarray of shape (n,)
        Class of each row as a number, or a numeric target.
    train, calibration : ndarray of intp
        Indices of the training and the calibration rows. In fits without a split one of both is
        empty. `calibration` is empty in forests, where each row is calibrated by the trees that did
        not grow on it. `train` is empty if the tree does not depend on the rows.
    groups : ndarray of shape (n,), or None
        Group of each row; None: rows have no groups.
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
    """Search the calibration rows of a fit for near copies of training rows.

    Parameters
    ----------
    rows : ComparedRows
        The rows of the fit.
    names : sequence of str, or None
        Names of the features; None: they are called "feature 0" and so on.
    keys : ndarray of uint64, shape (n,)
        Hashes of the rows. If there are more than 2^13 rows, those with the smallest hashes are the
        sample from which quantiles are computed.
    repeats : int
        Number of calibration rows that equal another row in all features and the target. They are
        not counted again as near copies.
    with_target : bool
        Whether near copies must have the same target: True for classes.

    Returns
    -------
    NearCopies
        Fraction of the calibration rows that have neighbours (training rows in the same quantile bins),
        fraction of these that remain in halved bins, and number of rows that equal others in all
        features but identifiers. No threshold is applied and no warning issued.
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
    """Warn if near copies are likely; raise if too many rows equal others in all but an identifier.

    Parameters
    ----------
    found : NearCopies
        Result of the search.
    n : int
        Number of calibration rows.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        What equal rows are: independent draws ("genuine"), copies of one draw ("copies"), not
        allowed ("refuse"), or not known ("auto"). `get_allowed_repeats` gives the two limits for
        the number of rows: with "auto" max(1, sqrt(n) / 4) and max(1, sqrt(n) / 4, n / 50), with
        "genuine" infinity, with "refuse" 0; "copies" counts as "auto" here.

    Raises
    ------
    ValueError
        If n >= 40, `found.n_alike`, the number of rows that equal others in all features except
        `found.left_out`, exceeds the second limit, and `found.is_key` and `found.with_target` hold.

    Warns
    -----
    NearCopiesWarning
        If `found.n_alike` exceeds the first limit (5 % of n if not `found.with_target`) but nothing
        is raised, or if `found.are_likely`.
    """
    few, most = get_allowed_repeats(n, "auto" if duplicates == "copies" else duplicates)
    if found.n_alike > (few if found.with_target else _LEAST_FRACTION * n):
        target = ", target included," if found.with_target else ""
        message = (
            f"{found.n_alike:,} of {n:,} rows that certify repeat other rows{target} in all features "
            f"but {found.names}, whose values all differ. If rows were copied, by oversampling or a "
            f'join, leave {found.names} out of X and pass duplicates="copies", as no certificate '
            "holds for copies that are taken for draws"
        )
        if found.is_key and found.with_target and n >= FEW_ROWS and found.n_alike > most:
            raise ValueError(
                f"{found.n_alike:,} calibration rows may be copies, more than duplicates="
                f"{duplicates!r} allows: {message}. If each row was drawn by itself, pass "
                'duplicates="genuine"'
            )
        _warn(message)
    if found.are_likely:
        units = "groups" if found.grouped else "rows"
        _warn(
            f"{format_percent(found.share)} of the {found.n:,} {units} that certify, as far as they "
            f"were compared, nearly repeat training rows: they share the codes of {found.bins} "
            f"quantile bins of the features, and {format_percent(found.kept)} of such neighbours are "
            f"left with {2 * found.bins} bins, where about half are left of independent rows. If these "
            "are copies that were rounded or carry noise, or measurements that depend on each other, "
            "no certificate holds: keep one row of each, or pass groups= (the draw of each row), if "
            "fit accepts it"
        )


def _warn(message: str) -> None:
    warnings.warn(
        f"{message}. If all rows were drawn independently, nothing is wrong: ignore the category "
        "certree.NearCopiesWarning",
        NearCopiesWarning,
        stacklevel=3,
    )


# -- rows that are equal except for identifiers -----------------------------------------------------


def _count_repeats_without_identifiers(
    rows: ComparedRows, features: list[int], with_target: bool
) -> int:
    """Count the calibration rows that equal a training or earlier calibration row in some features.

    Without calibration rows, count the training rows that equal an earlier one. Equal calibration
    rows of one group count once.

    rows: the rows of the fit. features: indices of the compared features: all but identifiers, such
    as row numbers. with_target: whether the targets must be equal, too.
    """
    tables = [rows.columns[j] for j in features] + ([rows.target] if with_target else [])
    return count_repeats(
        find_first_equal_keys(hash_samples(*tables)), rows.train, rows.calibration, rows.groups
    )


def _find_identifiers(rows: ComparedRows) -> dict[int, bool]:
    """Find the features without fractions whose values all differ, and whether each may be a key.

    A feature with missing values is not among them. A key is text, or integers in a range below
    twice the number of rows, like row numbers. Integers in a wider range may be measurements.
    Features with fractions are never identifiers, because few digits suffice to make all
    measurements different.

    Return a dict: for each such feature, by its index, True if it may be a key.
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
    """Return whether all values of a column are present, are integers, and differ from each other.

    column: values, (n,). kind: "number", "text" or "other". Columns that do not hold numbers are
    integers plus 0.5 here, see `RowHasher.encode`; for these only the other two conditions count.
    """
    if kind == "number" and column.dtype.kind == "f" and not (column == np.rint(column)).all():
        return False
    ordered = np.sort(column)  # missing values are sorted to the end
    return bool((ordered[1:] != ordered[:-1]).all() and ordered[-1] == ordered[-1])


# -- rows with the same quantile codes -------------------------------------------------------------


def _compare_codes(
    rows: ComparedRows, features: list[int], keys: UInt64, with_target: bool
) -> tuple[int, int, float, float]:
    """Count the calibration rows with neighbours, and the neighbours that remain in halved bins.

    Neighbours of a row are training rows in the same bin of each numeric feature. Rows that equal a
    training row count as rows without neighbours. Bins are halved until at most 5 % of the rows
    have neighbours, or bins would have less than 3 rows on average (12 if rows are sampled). `kept`
    is averaged row by row, so that rows in dense regions, with many neighbours, do not hide others.

    Parameters
    ----------
    rows : ComparedRows
        The rows of the fit.
    features : list of int
        Indices of the compared features. Those that are not numeric must be equal in neighbours.
    keys : ndarray of uint64, shape (n,)
        Hashes of all rows. If there are more than 2^13 rows, they choose a sample to compute
        quantiles from. Without a calibration or a training set they divide the rows into halves.
    with_target : bool
        Whether neighbours must have the same target.

    Returns
    -------
    n, bins, share, kept : int, int, float, float
        Number of compared calibration rows (or groups); number of bins of each feature; fraction of
        the n rows with neighbours; fraction of their neighbours that remain with 2 * bins bins. Of
        all numbers of bins tried, the one for which `kept` most exceeds the threshold of
        `_compute_least_kept`. All 0 without numeric features.
    """
    numeric = [rows.columns[j] for j in features if rows.kinds[j] == "number"]
    if not numeric:
        return 0, 0, 0.0, 0.0
    codes = QuantileCodes.rank_rows(numeric, keys)
    words = [rows.columns[j] for j in features if rows.kinds[j] != "number"]
    same = codes.hash_fixed_columns([*words, rows.target] if with_target else words)
    is_calibration = _calibration_mask(rows, keys)[codes.rows]
    calibration, training = np.flatnonzero(is_calibration), np.flatnonzero(~is_calibration)
    group = None
    if rows.groups is not None:
        group = np.unique(rows.groups[codes.rows], return_inverse=True)[1]
    n, bins = _count_units(calibration, group), codes.fewest_bins
    calibration_keys, training_keys = codes.hash_bins(bins, same, calibration, training)
    n_found = _count_equal_keys(calibration_keys, training_keys)
    has_neighbour = n_found > 0
    training = training[np.isin(training_keys, calibration_keys[has_neighbour])]
    exact = np.isin(
        codes.hash_values(calibration[has_neighbour], same), codes.hash_values(training, same)
    )
    has_neighbour[has_neighbour] = ~exact
    calibration, n_found = calibration[has_neighbour], n_found[has_neighbour]
    most = (-np.inf, bins, _count_units(calibration, group) / max(n, 1), 0.0)
    while (
        m := _count_units(calibration, group)
    ) > _LEAST_FRACTION * n and 2 * bins <= codes.most_bins:
        finer = _count_equal_keys(*codes.hash_bins(2 * bins, same, calibration, training))
        kept = _average_units(finer / n_found, None if group is None else group[calibration])
        most = max(most, (kept - _compute_least_kept(m), bins, m / n, kept), key=lambda one: one[0])
        calibration, n_found, bins = calibration[finer > 0], finer[finer > 0], 2 * bins
    return n, *most[1:]


def _calibration_mask(rows: ComparedRows, keys: UInt64) -> NDArray[np.bool_]:
    """Mark the rows whose near copies are searched among all other rows, (n,) bool.

    These are the calibration rows. If the fit has no calibration set or no training set, they are a
    random half of all rows: those whose hash is odd.

    rows: the rows of the fit. keys: hashes of all rows, (n,).
    """
    if not len(rows.calibration) or not len(rows.train):
        return np.asarray(keys % np.uint64(2) == 1)
    mask = np.zeros(len(rows.target), dtype=np.bool_)
    mask[rows.calibration] = True
    return mask


def _count_units(rows: Indices, group: Indices | None) -> int:
    return len(rows) if group is None else len(np.unique(group[rows]))


def _average_units(values: Float64, group: Indices | None) -> float:
    """Average a value over rows; with groups, average the means of the groups.

    values: value of each row, (m,), m > 0. group: number of each row's group, 0, 1, ..., (m,);
    numbers without rows are ignored. None: no groups.
    """
    if group is None:
        return float(values.mean())
    n_rows = np.bincount(group)
    sums = np.bincount(group, values)
    return float((sums[n_rows > 0] / n_rows[n_rows > 0]).mean())


def _count_equal_keys(keys: UInt64, others: UInt64) -> NDArray[np.intp]:
    """Count for each entry of keys, (m,), how many entries of others equal it; return (m,)."""
    ordered = np.sort(others)
    counts: NDArray[np.intp] = np.searchsorted(ordered, keys, "right") - np.searchsorted(
        ordered, keys
    )
    return counts


class QuantileCodes(NamedTuple):
    """Ranks of the compared rows in each numeric feature, from which `hash_bins` computes bin numbers.

    Parameters
    ----------
    columns : list of q ndarrays of shape (n,)
        Values of all rows in the compared features: at most eight, those with the most distinct
        values.
    rows : ndarray of intp, shape (m,)
        Indices of the compared rows: all n, or a part of them if there are more than 2^13.
    ordered : ndarray of float64, shape (q, n_ranked)
        Ascending values of each feature, repeated ones included: of all rows, or of a random sample
        if there are more than 2^13.
    ranks : ndarray of int64, shape (q, m)
        For each feature and compared row the number of values in `ordered` that are smaller.
    """

    columns: list[NDArray[Any]]
    rows: Indices
    ordered: Float64
    ranks: NDArray[np.int64]

    @classmethod
    def rank_rows(cls, columns: list[NDArray[Any]], keys: UInt64) -> QuantileCodes:
        """Choose features and rows to compare, rank the rows in each feature, and return the ranks.

        At most eight features are compared, those with the most distinct values. Up to 2^13 rows
        are all compared. Of more rows about 2^12 are: all rows in at least three of the 64 bins of
        the feature with the most distinct values. So of two near copies both or none are compared.

        columns: values of all rows in each numeric feature, (n,) each. keys: hash of each row,
        (n,); the rows with the smallest hashes, about 2^13, are the sample from which quantiles are
        computed.
        """
        n = len(keys)
        sample = np.arange(n)
        if n > _ALL_ROWS:
            chosen_rows = np.flatnonzero(keys < np.uint64((_ALL_ROWS << 64) // n))
            # If nearly all rows are equal, none may be chosen.
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
        """Whether there are more than 2^13 rows, so that only a part of them is compared."""
        return len(self.columns[0]) > _ALL_ROWS

    @property
    def most_bins(self) -> int:
        """Largest number of bins per feature for the comparison.

        Bins then have 3 values of the field `ordered` on average; 12 if there are more than 2^13 rows,
        so that `ordered` has only a sample of the values.
        """
        fewest = _FEWEST_OF_SAMPLE if self.is_sampled else _FEWEST_IN_BIN
        return self.ordered.shape[1] // fewest

    @property
    def fewest_bins(self) -> int:
        """Number of bins per feature with which the comparison starts, a power of two.

        It is 64 if there are more than 2^13 rows; else at most 16, and about a quarter to a half of
        `most_bins` if that is less.
        """
        if self.is_sampled:
            return _FIRST_OF_SAMPLE
        return min(_FIRST_BINS, 1 << max(0, self.most_bins.bit_length() - 2))

    def hash_bins(self, bins: int, same: UInt64, *row_sets: Indices) -> list[UInt64]:
        """Hash the bin numbers of rows: rows with equal hashes are in the same bin of each feature.

        bins: number of bins of each feature, a power of two. same: for each of the m compared rows (the
        field `rows`) a hash of the values that must be equal, too, such as texts and the class, (m,),
        from `hash_fixed_columns`. row_sets: sets of rows, such as calibration and training rows, each
        an array of positions in the field `rows`. Return a list with an array of hashes for each set,
        uint64, in the order of its positions.
        """
        q, n = self.ordered.shape
        place = (n + 1) * np.arange(q)[:, None]
        starts = halve_at_gaps(self.ordered, bins) + place
        code = np.bincount(starts.ravel(), minlength=q * (n + 1)).reshape(q, n + 1).cumsum(axis=1)
        hashes = []
        for rows in row_sets:
            codes = code.take(self.ranks.take(rows, axis=1) + place)
            hashes.append(codes.view(np.uint64).T @ _make_factors(q) + same[rows])
        return hashes

    def hash_values(self, positions: Indices, same: UInt64) -> UInt64:
        """Hash the values of rows, (k,) uint64: equal hashes mean equal values in all features.

        positions: positions of k rows in the field `rows`, which lists the m compared rows, (k,). same:
        for each compared row a hash of the values that must be equal, too, such as texts and the class,
        (m,), from `hash_fixed_columns`.
        """
        rows = self.rows[positions]
        return hash_samples(
            *(one[rows] for one in self.columns), same[positions].astype(np.float64)
        )

    def hash_fixed_columns(self, columns: list[NDArray[Any]]) -> UInt64:
        """Hash the columns that are not binned, but must be equal in near copies of a row.

        columns: values of all rows, (n,) each: texts as numbers, classes. Return a hash for each of
        the m compared rows, (m,) uint64; zeros if columns is empty.
        """
        if not columns:
            return np.zeros(len(self.rows), dtype=np.uint64)
        return hash_samples(*(one[self.rows] for one in columns))


def halve_at_gaps(ordered: Float64, bins: int) -> NDArray[np.int64]:
    """Divide the sorted values of each feature into bins, and return where the bins start.

    All values start as one bin, and each bin is halved repeatedly, at the widest gap between values
    near its middle (at most 16 values and a quarter of the bin away). Such a gap hardly ever
    separates near copies. So each of k bins is the union of two of 2 k bins.

    Parameters
    ----------
    ordered : ndarray of float64, shape (q, n)
        Ascending values of each feature.
    bins : int
        Number of bins, a power of two.

    Returns
    -------
    ndarray of int64, shape (q, bins + 1)
        Bin k of feature j has the values ``ordered[j, starts[j, k]:starts[j, k + 1]]``, where
        starts is the result.
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
    """Copy some rows of q columns to an array (q, m) of float64.

    Missing values become infinite, so that they equal each other. columns: values of all rows, (n,)
    each. rows: indices, (m,), ascending.
    """
    table = np.empty((len(columns), len(rows)))
    for values, column in zip(table, columns, strict=True):
        values[:] = column if len(rows) == len(column) else column[rows]
    table[np.isnan(table)] = np.inf
    return table


def _make_factors(n: int) -> UInt64:
    """Return n odd pseudo-random numbers, (n,) uint64, the same in each call.

    They are the factors of a linear hash function of bin numbers.
    """
    return mix(np.arange(1, n + 1, dtype=np.uint64) * _STEP) | np.uint64(1)


def _rank_values(table: Float64) -> tuple[Float64, NDArray[np.int64]]:
    """Sort the values of each feature, and rank them.

    table: values of q features in n rows, (q, n). Return the values of each feature in ascending
    order, (q, n). Return for each entry of table the number of smaller values of the same feature,
    (q, n).
    """
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
    """Choose at most eight of the columns, those with the most distinct values in some rows.

    columns: values of all rows, (n,) each. rows: indices of the rows to read, (m,), ascending.
    Return the values of the q chosen columns in these rows, (q, m), infinite where missing, and the
    indices of these columns, ascending.
    """
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
    """Mark about 2^12 rows, (n,) bool: all rows in some of 64 quantile bins of a column.

    The bins are evenly spaced among the 64, at least three. column: value of each row, (n,),
    infinite where missing. ordered: values of a sample of the rows, ascending, by which the bins
    are computed.
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
