"""Densities of one feature in each class: normal, histogram or table of categories.

All are given in logarithms. A missing value, NaN, has log density 0 in every class, so that it drops
out of a product over features. What a row's density would be without the row has a closed form.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import (
    MAX_TOTAL_WEIGHT,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_column,
)
from certree.interface.stored_state import StoredState

KINDS = ("normal", "histogram", "categorical")


# What a file holds, by name.
Columns = dict[str, NDArray[Any]]

# The smallest number above 0.
_NARROWEST = float(np.finfo(np.float64).smallest_subnormal)
# Beyond so many standard deviations a square overflows.
_FARTHEST = 1e150


def drop_missing(x: Float64, y: Int32, weight: Float64) -> tuple[Float64, Int32, Float64]:
    """Leave out the rows that miss a feature."""
    there = ~np.isnan(x)
    return x[there], y[there], weight[there]


# -- normal ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Moments(ArrayRecord):
    """Rows, mean and standard deviation of a feature in each class.

    Standard deviations are kept, not variances, so that nothing overflows. They divide by the number
    of rows.

    Parameters
    ----------
    rows, mean, deviation : ndarray of float64, shape (K,)
        Number (or weight) of the rows with a known value, their mean and standard deviation; 0 for
        a class without rows.
    """

    rows: Float64
    mean: Float64
    deviation: Float64

    def __post_init__(self) -> None:
        self._check("float64", (len(self.rows),), "rows", "mean", "deviation")

    @classmethod
    def of(cls, x: Float64, y: Int32, weight: Float64, n_classes: int) -> Self:
        """Summarise values (n,) of rows of classes y with positive weights."""
        x, y, weight = drop_missing(x, y, weight)
        rows = np.bincount(y, weight, n_classes).astype(np.float64)
        share = weight / rows[y]
        # Differences to a value of the class are exactly 0 where the class does not vary.
        origin = np.zeros(n_classes)
        origin[y[::-1]] = x[::-1]
        mean = origin + np.bincount(y, share * (x - origin[y]), n_classes)
        residual = x - mean[y]
        unit = np.zeros(n_classes)
        np.maximum.at(unit, y, np.abs(residual))
        unit[unit == 0] = 1.0
        square = np.bincount(y, share * (residual / unit[y]) ** 2, n_classes)
        return cls(rows, mean, unit * np.sqrt(square))

    def plus(self, other: Self) -> Self:
        """Moments of both rows together, by the rule of Chan, Golub and LeVeque (1979)."""
        rows = self.rows + other.rows
        share = np.divide(other.rows, rows, out=np.zeros_like(rows), where=rows > 0)
        apart = other.mean - self.mean
        within = np.hypot(np.sqrt(1 - share) * self.deviation, np.sqrt(share) * other.deviation)
        between = np.sqrt(share * (1 - share)) * apart
        return replace(
            self, rows=rows, mean=self.mean + share * apart, deviation=np.hypot(within, between)
        )

    def pool_classes(self) -> tuple[float, float]:
        """Mean and standard deviation over all classes; 0 and 0 without rows."""
        present = self.rows > 0
        if not present.any():
            return 0.0, 0.0
        share = self.rows[present] / self.rows.sum()
        means, origin = self.mean[present], self.mean[present][0]
        mean = origin + (share * (means - origin)).sum()
        parts = np.concatenate([self.deviation[present], means - mean])
        deviation = np.hypot.reduce(np.sqrt(np.tile(share, 2)) * parts)
        return float(mean), float(deviation)

    def make_normal(self, floor: float) -> "Normal":
        """The normal densities, their variances raised by floor ** 2.

        A class without rows has the density of all classes together.
        """
        if not self.rows.any():
            return Normal(self.mean, np.ones_like(self.mean))
        mean, deviation = self.pool_classes()
        present = self.rows > 0
        return Normal(
            np.where(present, self.mean, mean),
            np.hypot(np.where(present, self.deviation, deviation), floor),
        )

    def compute_left_out(self, x: Float64, y: Int32, weight: Float64, floor: float) -> Float64:
        """Log normal density of each of these rows in its class after it was left out, (n,).

        It is 0 where a value is missing. Where no row is left, it is that of a single row at the mean
        of all classes: so narrow is the density that the class has.
        """
        there = ~np.isnan(x)
        stay = self.rows[y] - weight
        residual, deviation = x - self.mean[y], self.deviation[y]
        mean, _ = self.pool_classes()
        with np.errstate(all="ignore"):
            moved = residual * (self.rows[y] / stay)
            # Share of the class's sum of squares that stays when the row goes.
            share = np.where(deviation > 0, 1 - weight / stay * (residual / deviation) ** 2, 0.0)
            rest = deviation * np.sqrt(np.maximum(share, 0) * (self.rows[y] / stay))
        moved, rest = np.where(stay > 0, moved, x - mean), np.where(stay > 0, rest, 0.0)
        # With no floor, what is left of two rows is a point.
        narrow = np.maximum(np.hypot(rest, floor), np.finfo(np.float64).tiny)
        return _fill_missing(there, _compute_log_normal(moved[there], narrow[there]))


@dataclass(frozen=True, slots=True, eq=False)
class Normal(ArrayRecord):
    """A normal density in each class.

    Parameters
    ----------
    mean, deviation : ndarray of float64, shape (K,)
        Means and standard deviations; these are positive.
    """

    mean: Float64
    deviation: Float64
    kind: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        self._check("float64", (len(self.mean),), "mean", "deviation")

    def log_density(self, x: Float64) -> Float64:
        """Log density of values (n,) in each class, (n, K); 0 where a value is missing."""
        there = ~np.isnan(x)[:, None]
        return np.where(there, _compute_log_normal(x[:, None] - self.mean, self.deviation), 0.0)


def _fill_missing(there: NDArray[np.bool_], values: Float64) -> Float64:
    """Log densities of the rows with a value, 0 for the others."""
    result = np.zeros(len(there))
    result[there] = values
    return result


def _compute_log_normal(residual: Float64, deviation: Float64) -> Float64:
    with np.errstate(over="ignore"):
        z = np.clip(residual / deviation, -_FARTHEST, _FARTHEST)
    return -0.5 * z**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)


# -- tables and histograms -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CategoricalTable(ArrayRecord):
    """A smoothed table of categories in each class.

    Parameters
    ----------
    counts : ndarray of float64, shape (K, B)
        Number (or weight) of the rows of each class and category.
    alpha : float
        Weight of each class that every category is given besides: that of so many rows of mean weight.
    """

    counts: Float64
    alpha: float
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        self._check("float64", (None, None), "counts")

    @classmethod
    def empty(cls, n_classes: int, n_categories: int, alpha: float) -> Self:
        """A table that has seen no rows."""
        return cls(np.zeros((n_classes, n_categories)), alpha)

    def with_alpha(self, alpha: float) -> Self:
        """Return the table with another weight that every category is given besides."""
        return replace(self, alpha=alpha)

    def pad(self, n_categories: int) -> Self:
        """The table with places for categories that no row has had yet behind the others."""
        more = max(0, n_categories - self.counts.shape[1])
        return replace(self, counts=np.pad(self.counts, ((0, 0), (0, more))))

    def plus(self, x: Float64, y: Int32, weight: Float64) -> Self:
        """The table with rows added; x holds codes, or NaN."""
        x, y, weight = drop_missing(x, y, weight)
        cell = y * self.counts.shape[1] + x.astype(np.intp)
        added = np.bincount(cell, weight, self.counts.size).reshape(self.counts.shape)
        return replace(self, counts=self.counts + added)

    @property
    def log_probability(self) -> Float64:
        """Log probability of each category in each class, (K, B)."""
        smoothed = self.counts + self.alpha
        # When all weights double, a quotient keeps its bits, and a difference of logarithms does not.
        return np.log(smoothed / smoothed.sum(axis=1, keepdims=True))

    def log_density(self, x: Float64) -> Float64:
        """Log probability of codes (n,) in each class, (n, K); 0 where a value is missing."""
        result = np.zeros((len(x), len(self.counts)))
        there = ~np.isnan(x)
        result[there] = self.log_probability.T[x[there].astype(np.intp)]
        return result

    def compute_left_out(self, x: Float64, y: Int32, weight: Float64) -> Float64:
        """Log probability of each of these rows in its class after it was left out, (n,)."""
        there = ~np.isnan(x)
        code, y, out = x[there].astype(np.intp), y[there], weight[there]
        rest = np.maximum(self.counts[y, code] - out, 0) + self.alpha
        total = np.maximum(self.counts.sum(axis=1)[y] - out, 0) + self.alpha * self.counts.shape[1]
        return _fill_missing(there, np.log(rest / total))


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(ArrayRecord):
    """A smoothed histogram in each class, all with the same bins.

    Parameters
    ----------
    edges : ndarray of float64, shape (B + 1,)
        Where bins begin and end, ascending. A value on an edge belongs to the bin above. The first
        and the last bin have their density for all values beyond as well.
    table : CategoricalTable
        The rows of each class and bin.
    """

    edges: Float64
    table: CategoricalTable
    kind: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        self._check("float64", (self.table.counts.shape[1] + 1,), "edges")

    @classmethod
    def empty(cls, edges: Float64, n_classes: int, alpha: float) -> Self:
        """A histogram that has seen no rows."""
        return cls(edges, CategoricalTable.empty(n_classes, len(edges) - 1, alpha))

    def with_alpha(self, alpha: float) -> Self:
        """Return the histogram with another weight that every bin is given besides."""
        return replace(self, table=self.table.with_alpha(alpha))

    def plus(self, x: Float64, y: Int32, weight: Float64) -> Self:
        """The histogram with rows added; its edges stay."""
        return replace(self, table=self.table.add_rows(self._bins(x), y, weight))

    def log_density(self, x: Float64) -> Float64:
        """Log density of values (n,) in each class, (n, K); 0 where a value is missing."""
        bins = self._bins(x)
        there = ~np.isnan(x)
        result = self.table.log_density(bins)
        result[there] -= self.log_width[bins[there].astype(np.intp)][:, None]
        return result

    def compute_left_out(self, x: Float64, y: Int32, weight: Float64) -> Float64:
        """Log density of each of these rows in its class after it was left out, (n,)."""
        bins = self._bins(x)
        there = ~np.isnan(x)
        log_width = _fill_missing(there, self.log_width[bins[there].astype(np.intp)])
        return self.table.compute_left_out(bins, y, weight) - log_width

    def _bins(self, x: Float64) -> Float64:
        bins = np.searchsorted(self.edges[1:-1], x, side="right").astype(np.float64)
        return np.where(np.isnan(x), np.nan, bins)

    @property
    def log_width(self) -> Float64:
        """Logarithm of the width of each bin, (B,)."""
        # Halves do not overflow. A single value has one bin, whose width means nothing.
        half = np.diff(self.edges / 2)
        return np.log(2 * np.where(half > 0, half, 0.5))


Density = Normal | Histogram | CategoricalTable


# -- files -----------------------------------------------------------------------------------------


def store_columns(name: str, columns: Sequence[Moments | Normal], n_classes: int) -> Columns:
    """What a file holds of the same of several features: a row for each."""
    kind = Moments if name == "moments" else Normal
    stored: list[dict[str, Float64]] = [one.to_stored() for one in columns]
    return {
        f"{name}.{field.name}": np.reshape([one[field.name] for one in stored], (-1, n_classes))
        for field in fields(kind)
    }


def store_densities(densities: Sequence[Density], n_classes: int) -> Columns:
    """What a file holds of densities: those of a kind, one after the other as their features are."""
    histograms = [one for one in densities if isinstance(one, Histogram)]
    tables = [
        one.table if isinstance(one, Histogram) else one
        for one in densities
        if not isinstance(one, Normal)
    ]
    normals = [one for one in densities if isinstance(one, Normal)]
    return {
        **store_columns("normal", normals, n_classes),
        "histogram.edges": np.concatenate([np.zeros(0), *(one.edges for one in histograms)]),
        "table.size": np.array([one.counts.shape[1] for one in tables], dtype=np.int64),
        "table.alpha": np.array([one.alpha for one in tables], dtype=np.float64),
        "table.counts": np.hstack([np.zeros((n_classes, 0)), *(one.counts for one in tables)]),
    }


def restore_moments(stored: StoredState, shape: tuple[int, int]) -> list[Moments]:
    """The moments that a file holds, of so many features and classes."""
    least = {"rows": 0.0, "mean": -np.inf, "deviation": 0.0}
    columns = [stored.get_numbers(f"moments.{name}", shape, low) for name, low in least.items()]
    return [Moments(*one) for one in zip(*columns, strict=True)]


def restore_densities(stored: StoredState, kinds: Sequence[str], n_classes: int) -> list[Density]:
    """The densities that a file holds, of these kinds."""
    shape = kinds.count("normal"), n_classes
    mean = stored.get_numbers("normal.mean", shape)
    deviation = stored.get_numbers("normal.deviation", shape, _NARROWEST)
    normals = (Normal(*one) for one in zip(mean, deviation, strict=True))
    tables = iter(_restore_tables(stored, (n_classes, len(kinds) - shape[0])))
    edges = stored.get_numbers("histogram.edges", (None,))
    densities: list[Density] = []
    for kind in kinds:
        if kind == "normal":
            densities.append(next(normals))
            continue
        table = next(tables)
        if kind == "categorical":
            densities.append(table)
            continue
        n_bins = table.counts.shape[1]
        own, edges = edges[: n_bins + 1], edges[n_bins + 1 :]
        _check_ascending(own, n_bins)
        densities.append(Histogram(own, table))
    return densities


def _check_ascending(edges: Float64, n_bins: int) -> None:
    if len(edges) != n_bins + 1:
        raise ValueError(f"histogram.edges lacks numbers for {n_bins} bins")
    # A single value has one bin of no width.
    if not (edges[1:] > edges[:-1]).all() and not (n_bins == 1 and edges[0] == edges[1]):
        raise ValueError("histogram.edges must ascend")


def _restore_tables(stored: StoredState, shape: tuple[int, int]) -> list[CategoricalTable]:
    n_classes, n_tables = shape
    sizes: Int64 = check_column("table.size", stored["table.size"], "int64", (n_tables,))
    counts = stored.get_numbers("table.counts", (n_classes, None), 0, MAX_TOTAL_WEIGHT)
    # Each size by itself, so that no sum of them can overflow.
    if (sizes < 1).any() or (sizes > counts.shape[1]).any() or sizes.sum() != counts.shape[1]:
        raise ValueError("table.size does not go with table.counts")
    alpha = stored.get_numbers("table.alpha", (n_tables,), _NARROWEST)
    with np.errstate(over="ignore"):
        if not np.isfinite(alpha * sizes).all():
            raise ValueError("table.alpha must be finite for all categories together")
    parts = np.split(counts, np.cumsum(sizes)[:-1], axis=1) if n_tables else []
    return [CategoricalTable(part, one) for part, one in zip(parts, alpha.tolist(), strict=True)]


# -- bins ------------------------------------------------------------------------------------------


def _sturges(n: float, spread: float) -> float:  # noqa: ARG001 - the rule looks at the rows alone
    return float(np.log2(n) + 1)


def _freedman_diaconis(n: float, spread: float) -> float:
    # Between numbers of Python: their product may be infinite, the smaller of the two is not.
    return min(0.5 * spread * float(np.cbrt(n)), 2 * math.sqrt(n))


def _auto(n: float, spread: float) -> float:
    return max(_freedman_diaconis(n, spread), _sturges(n, spread))


# Number of bins, by the number of rows and the range as a multiple of the interquartile range.
_RULES: dict[str, Callable[[float, float], float]] = {
    "auto": _auto,
    "fd": _freedman_diaconis,
    "sturges": _sturges,
}


RULES = frozenset(_RULES)


def compute_bin_edges(x: Float64, bins: int | str) -> Float64:
    """Choose the edges of a histogram with bins of equal width.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values, NaN where one is missing; each counts once, whatever its row weighs.
    bins : int or {"auto", "fd", "sturges"}
        Number of bins, or the rule that chooses it: Freedman and Diaconis' (at most twice the square
        root of the number of rows, and two for each value that occurs), Sturges', or the larger
        number of the two, as in NumPy.

    Returns
    -------
    ndarray of shape (B + 1,)
        One bin if all values are the same; from 0 to 0 if none is known.

    References
    ----------
    Freedman and Diaconis, "On the histogram as a density estimator", 1981. Sturges, "The choice of a
    class interval", 1926.
    """
    x = x[~np.isnan(x)]
    if not len(x):
        return np.zeros(2)
    low, high = x.min(), x.max()
    if low == high:
        return np.array([low, high])
    number = bins if isinstance(bins, (int, np.integer)) else _choose_n_bins(x, bins)
    part = np.linspace(0, 1, int(number) + 1)
    # Between neighbouring floats there is no room for more edges.
    return np.unique(low * (1 - part) + high * part)


def _choose_n_bins(x: Float64, rule: str) -> int:
    n = float(len(x))
    lower, upper = _compute_quartiles(x)
    within = upper / 2 - lower / 2
    with np.errstate(over="ignore"):  # rows may lie farther apart than a number can say
        spread = float((x.max() / 2 - x.min() / 2) / within) if within > 0 else np.inf
    # Rows that only repeat others tell no more values apart.
    most = max(2.0 * len(np.unique(x)), _sturges(n, spread))
    return max(1, int(np.ceil(min(_RULES[rule](n, spread), most))))


def _compute_quartiles(x: Float64) -> Float64:
    """The quartiles of rows, between neighbours along a line."""
    place = np.array([0.25, 0.75]) * (len(x) - 1)
    ordered, below = np.sort(x), np.floor(place)
    part = place - below
    ends = ordered[below.astype(np.intp)], ordered[np.ceil(place).astype(np.intp)]
    return ends[0] * (1 - part) + ends[1] * part


# -- the choice between normal and histogram -------------------------------------------------------


def prefers_histogram(
    x: Float64, y: Int32, weight: Float64, moments: Moments, floor: float, histogram: Histogram
) -> bool:
    """Whether a histogram predicts left-out rows better than a normal density.

    Compared are the sums over rows of the log density that a row has in its class after it was
    left out, which have closed forms. Only classes of more than one row take part. A histogram
    cannot tell the values in a bin apart, so the normal density is spread over a bin as well
    (Sheppard's correction); otherwise a value that comes up often would make it too good.

    Parameters
    ----------
    x, y, weight : ndarray of shape (n,)
        Values, classes and weights; a row is left out with its whole weight.
    moments : Moments
        The moments of these rows.
    floor : float
        Root of what is added to the variances of the normal densities.
    histogram : Histogram
        The histogram of these rows; its edges are kept when a row is left out.

    Returns
    -------
    bool
        True for a feature that does not vary: its histogram of one bin says nothing of the class.

    References
    ----------
    Stone, "Cross-validatory choice and assessment of statistical predictions", 1974.
    """
    if moments.pool_classes()[1] == 0:
        return True
    x, y, weight = drop_missing(x, y, weight)
    several = moments.rows[y] > weight
    x, y, weight = x[several], y[several], weight[several]
    bin_deviation = np.exp(histogram.log_width.max()) / np.sqrt(12)
    with np.errstate(all="ignore"):
        normal = moments.compute_left_out(x, y, weight, np.hypot(floor, bin_deviation))
        gain = normal - histogram.compute_left_out(x, y, weight)
        return not (weight * gain).sum() >= 0
