"""Densities of one feature in each class: normal, histogram or table of categories.

All densities are returned as logarithms. A missing value, NaN, has log density 0 in every class, so
that it drops out of a product over features. The density of a training row after the row itself was
left out has a closed form.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from reprlib import repr as shortened
from typing import Any, ClassVar, Self, TypeVar

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
from certree.interface.stored_state import DamagedModelError, StoredState

KINDS = ("normal", "histogram", "categorical")


# Arrays of a model file, by stored name.
Columns = dict[str, NDArray[Any]]
_Column = TypeVar("_Column", "Moments", "Normal")

# The smallest number above 0.
_NARROWEST = float(np.finfo(np.float64).smallest_subnormal)
# Squares of larger numbers of standard deviations overflow.
_FARTHEST = 1e150


def drop_missing(x: Float64, y: Int32, weight: Float64) -> tuple[Float64, Int32, Float64]:
    """Return x, y and weight of the rows whose x is not NaN, in their order.

    x: values, (n,); y: class codes, (n,); weight: weights, (n,).
    """
    is_present = ~np.isnan(x)
    return x[is_present], y[is_present], weight[is_present]


# -- normal ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Moments(ArrayRecord):
    """Number of rows, mean and standard deviation of one numeric feature in each of K classes.

    Standard deviations are kept instead of variances, so that nothing overflows. Their divisor is
    the number of rows, not that number minus 1.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    rows : ndarray of float64, shape (K,)
        Total weight of the rows of each class whose value is not missing.
    mean, deviation : ndarray of float64, shape (K,)
        Their weighted mean and standard deviation; 0 for a class without rows.
    """

    rows: Float64 = field(metadata={"least": 0})
    mean: Float64
    deviation: Float64 = field(metadata={"least": 0})

    def __post_init__(self) -> None:
        self._check("float64", (len(self.rows),), "rows", "mean", "deviation")

    @classmethod
    def from_rows(cls, x: Float64, y: Int32, weight: Float64, n_classes: int) -> Self:
        """Compute the total weight, mean and standard deviation of rows in each class.

        x: value of each row, NaN where it is missing, (n,); y: class code of each row, 0 ..
        n_classes - 1, (n,); weight: positive weight of each row, (n,). Rows whose value is missing
        are left out.
        """
        x, y, weight = drop_missing(x, y, weight)
        rows = np.bincount(y, weight, n_classes).astype(np.float64)
        fraction = weight / rows[y]
        # Differences to a value of the class are exactly 0 where the class does not vary.
        origin = np.zeros(n_classes)
        origin[y[::-1]] = x[::-1]
        mean = origin + np.bincount(y, fraction * (x - origin[y]), n_classes)
        residual = x - mean[y]
        unit = np.zeros(n_classes)
        np.maximum.at(unit, y, np.abs(residual))
        unit[unit == 0] = 1.0
        square = np.bincount(y, fraction * (residual / unit[y]) ** 2, n_classes)
        return cls(rows, mean, unit * np.sqrt(square))

    def merge(self, other: Self) -> Self:
        """Return the moments of the rows of this object and of `other` together.

        Both must have the same classes. The formula is that of Chan, Golub and LeVeque, "Updating
        formulae and a pairwise algorithm for computing sample variances", 1979.
        """
        rows = self.rows + other.rows
        fraction = np.divide(other.rows, rows, out=np.zeros_like(rows), where=rows > 0)
        difference = other.mean - self.mean
        within = np.hypot(
            np.sqrt(1 - fraction) * self.deviation, np.sqrt(fraction) * other.deviation
        )
        between = np.sqrt(fraction * (1 - fraction)) * difference
        return replace(
            self,
            rows=rows,
            mean=self.mean + fraction * difference,
            deviation=np.hypot(within, between),
        )

    def pool_classes(self) -> tuple[float, float]:
        """Compute the mean and the standard deviation of the rows of all classes together.

        Rows count by their weight. Return two floats: mean and standard deviation; both are 0 if
        there are no rows.
        """
        present = self.rows > 0
        if not present.any():
            return 0.0, 0.0
        fraction = self.rows[present] / self.rows.sum()
        means, origin = self.mean[present], self.mean[present][0]
        mean = origin + (fraction * (means - origin)).sum()
        terms = np.concatenate([self.deviation[present], means - mean])
        deviation = np.hypot.reduce(np.sqrt(np.tile(fraction, 2)) * terms)
        return float(mean), float(deviation)

    def make_normal(self, floor: float) -> "Normal":
        """Return the normal densities of all classes, with ``floor ** 2`` added to their variances.

        A class without rows gets the mean and variance of all classes together. If no class has
        rows, all densities have mean 0 and standard deviation 1.
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
        """Compute the log of the normal density of each row in its class, without the row itself.

        The row is removed from the moments of its class first (leave-one-out).

        If a row is the only one of its class, its density is centred at the mean of all classes and
        has the standard deviation `floor`.

        Parameters
        ----------
        x, y, weight : ndarray of shape (n,)
            Value (NaN if it is missing), class code and weight of each row. The moments must
            include these rows.
        floor : float
            Square root of what is added to the variances.

        Returns
        -------
        ndarray of float64, shape (n,)
            Log densities (nats); 0 where the value is missing.
        """
        is_present = ~np.isnan(x)
        stay = self.rows[y] - weight
        residual, deviation = x - self.mean[y], self.deviation[y]
        mean, _ = self.pool_classes()
        with np.errstate(all="ignore"):
            moved = residual * (self.rows[y] / stay)
            # Share of the class's sum of squares that stays when the row goes.
            fraction = np.where(deviation > 0, 1 - weight / stay * (residual / deviation) ** 2, 0.0)
            rest = deviation * np.sqrt(np.maximum(fraction, 0) * (self.rows[y] / stay))
        moved, rest = np.where(stay > 0, moved, x - mean), np.where(stay > 0, rest, 0.0)
        # With no floor, what is left of two rows is a point.
        narrow = np.maximum(np.hypot(rest, floor), np.finfo(np.float64).tiny)
        return _fill_missing(is_present, _compute_log_normal(moved[is_present], narrow[is_present]))


@dataclass(frozen=True, slots=True, eq=False)
class Normal(ArrayRecord):
    """A normal density of one feature in each of K classes.

    The constructor takes `mean` and `deviation`.

    Attributes
    ----------
    mean, deviation : ndarray of float64, shape (K,)
        Means, and standard deviations > 0.
    kind : str
        "normal".
    """

    mean: Float64
    deviation: Float64 = field(metadata={"least": _NARROWEST})
    kind: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        self._check("float64", (len(self.mean),), "mean", "deviation")

    def log_density(self, x: Float64) -> Float64:
        """Compute the log density (nats) of values in each class.

        x: the values, (n,), NaN where one is missing. The result has shape (n, K), and is 0 where x
        is NaN.
        """
        is_present = ~np.isnan(x)[:, None]
        return np.where(
            is_present, _compute_log_normal(x[:, None] - self.mean, self.deviation), 0.0
        )


def _fill_missing(is_present: NDArray[np.bool_], values: Float64) -> Float64:
    """Return an array (n,) with the given values at the True entries of a mask, and 0 elsewhere.

    is_present: mask of the rows whose value is not missing, (n,), with k True entries; values: log
    densities of these k rows, (k,).
    """
    result = np.zeros(len(is_present))
    result[is_present] = values
    return result


def _compute_log_normal(residual: Float64, deviation: Float64) -> Float64:
    """Compute the log (nats) of the density of a normal distribution with mean 0.

    residual: where to evaluate it, values minus the mean; deviation: positive standard deviations.
    The two shapes broadcast.
    """
    with np.errstate(over="ignore"):
        z = np.clip(residual / deviation, -_FARTHEST, _FARTHEST)
    return -0.5 * z**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)


# -- tables and histograms -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CategoricalTable(ArrayRecord):
    """A smoothed table of the B categories of one feature in each of K classes.

    The constructor takes `counts` and `alpha`.

    Attributes
    ----------
    counts : ndarray of float64, shape (K, B)
        Number (or total weight) of the rows of each class and category.
    alpha : float
        Weight that is added to every entry of `counts` before they become probabilities (Lidstone
        smoothing).
    kind : str
        "categorical".
    """

    counts: Float64
    alpha: float
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        self._check("float64", (None, None), "counts")

    @classmethod
    def empty(cls, n_classes: int, n_categories: int, alpha: float) -> Self:
        """Return a table of n_categories categories in n_classes classes with counts of 0.

        alpha: weight that is added to every count before the counts become probabilities.
        """
        return cls(np.zeros((n_classes, n_categories)), alpha)

    def with_alpha(self, alpha: float) -> Self:
        """Return a copy with another `alpha`, the weight that is added to every count."""
        return replace(self, alpha=alpha)

    def pad(self, n_categories: int) -> Self:
        """Return the table with zero columns appended, so that it has `n_categories` columns.

        The new categories get the codes after those that the table has, and no class has rows of
        them. A table that has as many columns or more keeps them.
        """
        more = max(0, n_categories - self.counts.shape[1])
        return replace(self, counts=np.pad(self.counts, ((0, 0), (0, more))))

    def add_rows(self, x: Float64, y: Int32, weight: Float64) -> Self:
        """Return a table with these rows added; this one does not change.

        x: category code of each row as float, NaN where it is missing, (n,); y: class codes, (n,);
        weight: positive weights, (n,).
        """
        x, y, weight = drop_missing(x, y, weight)
        entry = y * self.counts.shape[1] + x.astype(np.intp)
        added = np.bincount(entry, weight, self.counts.size).reshape(self.counts.shape)
        return replace(self, counts=self.counts + added)

    @property
    def log_probability(self) -> Float64:
        """Log probability (nats) of each category in each class, after smoothing, (K, B).

        The weight `alpha` is added to every entry of `counts`; then each class is divided by its
        sum.
        """
        smoothed = self.counts + self.alpha
        return _log_quotient(smoothed, smoothed.sum(axis=1, keepdims=True))

    def log_density(self, x: Float64) -> Float64:
        """Return the log probability (nats) of category codes in each class.

        x: codes as floats, (n,), NaN where the category is missing. The result has shape (n, K),
        and is 0 where x is NaN.
        """
        result = np.zeros((len(x), len(self.counts)))
        is_present = ~np.isnan(x)
        result[is_present] = self.log_probability.T[x[is_present].astype(np.intp)]
        return result

    def compute_left_out(self, x: Float64, y: Int32, weight: Float64) -> Float64:
        """Compute the log probability (nats) of each row in its class, without the row itself.

        The row is removed from the counts first (leave-one-out).

        x: category code of each row, NaN where it is missing, (n,); y: class codes, (n,); weight:
        weights, (n,). The table must include these rows. The weight `alpha` is added to every count
        as usual. The result has shape (n,), and is 0 where x is NaN.
        """
        is_present = ~np.isnan(x)
        code, y, out = x[is_present].astype(np.intp), y[is_present], weight[is_present]
        rest = np.maximum(self.counts[y, code] - out, 0) + self.alpha
        total = np.maximum(self.counts.sum(axis=1)[y] - out, 0) + self.alpha * self.counts.shape[1]
        return _fill_missing(is_present, _log_quotient(rest, total))


def _log_quotient(part: Float64, total: Float64) -> Float64:
    """Return log(part / total) for positive numbers, also if the quotient is too small for float64.

    part, total: arrays whose shapes broadcast. If all weights double, the quotient keeps its bits,
    and a difference of logarithms does not; the difference is therefore used only if the quotient
    is 0.
    """
    quotient = part / total
    is_zero = quotient == 0
    logs: Float64 = np.log(np.where(is_zero, part, quotient))
    return logs - np.where(is_zero, np.log(total), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(ArrayRecord):
    """A smoothed histogram of one feature in each of K classes, with B bins that all classes share.

    The constructor takes `edges` and `table`.

    Attributes
    ----------
    edges : ndarray of float64, shape (B + 1,)
        Ends of the bins, ascending. A value on an edge belongs to the bin above. Values outside all
        bins get the density of the first or the last bin.
    table : CategoricalTable
        Number (or weight) of the rows of each class and bin.
    kind : str
        "histogram".
    """

    edges: Float64
    table: CategoricalTable
    kind: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        self._check("float64", (self.table.counts.shape[1] + 1,), "edges")

    @classmethod
    def empty(cls, edges: Float64, n_classes: int, alpha: float) -> Self:
        """Return a histogram without rows.

        edges: ends of the bins, (B + 1,); n_classes: number of classes; alpha: weight that is added
        to the count of every class and bin.
        """
        return cls(edges, CategoricalTable.empty(n_classes, len(edges) - 1, alpha))

    def with_alpha(self, alpha: float) -> Self:
        """Return a copy with another `alpha`, the weight that is added to every count."""
        return replace(self, table=self.table.with_alpha(alpha))

    def add_rows(self, x: Float64, y: Int32, weight: Float64) -> Self:
        """Return a histogram with these rows added and the same edges; this one does not change.

        x: value of each row, NaN where it is missing, (n,); y: class codes, (n,); weight: positive
        weights, (n,).
        """
        return replace(self, table=self.table.add_rows(self._bins(x), y, weight))

    def log_density(self, x: Float64) -> Float64:
        """Compute the log density (nats) of values in each class.

        x: the values, (n,), NaN where one is missing. The result has shape (n, K), and is 0 where x
        is NaN. The density is the smoothed probability of the value's bin divided by its width.
        Values below all bins get the density of the first bin, and values above that of the last.
        """
        bins = self._bins(x)
        is_present = ~np.isnan(x)
        result = self.table.log_density(bins)
        result[is_present] -= self.log_width[bins[is_present].astype(np.intp)][:, None]
        return result

    def compute_left_out(self, x: Float64, y: Int32, weight: Float64) -> Float64:
        """Compute the log density (nats) of each row in its class, without the row itself.

        The row is removed from the counts first (leave-one-out).

        x: value of each row, NaN where it is missing, (n,); y: class codes, (n,); weight: weights,
        (n,). The histogram must include these rows. The result has shape (n,), and is 0 where x is
        NaN.
        """
        bins = self._bins(x)
        is_present = ~np.isnan(x)
        log_width = _fill_missing(is_present, self.log_width[bins[is_present].astype(np.intp)])
        return self.table.compute_left_out(bins, y, weight) - log_width

    def _bins(self, x: Float64) -> Float64:
        """Return the bin number of each value in x, (n,), as float64; NaN where x is NaN.

        Bins are numbered from 0. Values below all edges are in the first bin, values above in the
        last.
        """
        bins = np.searchsorted(self.edges[1:-1], x, side="right").astype(np.float64)
        return np.where(np.isnan(x), np.nan, bins)

    @property
    def log_width(self) -> Float64:
        """Natural logarithm of the width of each bin, (B,); 0 for a bin of width 0.

        A feature whose values are all equal has such a bin, whose density then is its probability.
        """
        # Halves do not overflow. A single value has one bin, whose width means nothing.
        half = np.diff(self.edges / 2)
        return np.log(2 * np.where(half > 0, half, 0.5))


Density = Normal | Histogram | CategoricalTable


# -- files -----------------------------------------------------------------------------------------


def store_columns(
    kind: type[Moments | Normal], columns: Sequence[Moments | Normal], n_classes: int
) -> Columns:
    """Stack moments or normal densities of several features to arrays for a model file.

    Parameters
    ----------
    kind : type
        `Moments` or `Normal`.
    columns : sequence of objects of this class
        One object for each numeric feature.
    n_classes : int
        Number of classes, K.

    Returns
    -------
    dict from str to ndarray
        For each field an array of shape (len(columns), K), under "moments.<field>" or
        "normal.<field>".
    """
    return {
        f"{kind.__name__.lower()}.{one.name}": np.reshape(
            [getattr(record, one.name) for record in columns], (-1, n_classes)
        )
        for one in fields(kind)
    }


def restore_columns(
    kind: type[_Column], stored: StoredState, shape: tuple[int, int]
) -> list[_Column]:
    """Read the moments or normal densities of numeric features that `store_columns` has stacked.

    kind: `Moments` or `Normal`; stored: the content of a model file; shape: number of these
    features, and number of classes. Return an object for each feature, in order. Raise ValueError if
    an array has another shape, or numbers are not finite, or below those that the class allows.
    """
    columns = [
        stored.get_numbers(
            f"{kind.__name__.lower()}.{one.name}", shape, one.metadata.get("least", -np.inf)
        )
        for one in fields(kind)
    ]
    return [kind(*record) for record in zip(*columns, strict=True)]


def store_densities(densities: Sequence[Density], n_classes: int) -> Columns:
    """Return the arrays of a model file for the densities of all features; see `restore_densities`.

    A table is a `CategoricalTable`: counts of each class in the categories of a feature, or in the
    bins of its histogram. The arrays hold the parameters of all normal densities, then the edges of
    all histograms one after the other, then three entries of all tables: size (number of categories
    or bins), alpha (pseudo-count) and counts, (K, sum of sizes). Within each array, features keep
    their order. densities: one for each feature; n_classes: number of classes, K. Return a
    dictionary from the name in the file to the array.
    """
    histograms = [density for density in densities if isinstance(density, Histogram)]
    tables = [
        density.table if isinstance(density, Histogram) else density
        for density in densities
        if not isinstance(density, Normal)
    ]
    normals = [density for density in densities if isinstance(density, Normal)]
    return {
        **store_columns(Normal, normals, n_classes),
        "histogram.edges": np.concatenate(
            [np.zeros(0), *(density.edges for density in histograms)]
        ),
        "table.size": np.array([density.counts.shape[1] for density in tables], dtype=np.int64),
        "table.alpha": np.array([density.alpha for density in tables], dtype=np.float64),
        "table.counts": np.hstack(
            [np.zeros((n_classes, 0)), *(density.counts for density in tables)]
        ),
    }


def restore_densities(stored: StoredState, kinds: Sequence[str], n_classes: int) -> list[Density]:
    """Read the densities of all features from a model file; see `store_densities`.

    Parameters
    ----------
    stored : StoredState
        Content of the file.
    kinds : sequence of {"normal", "histogram", "categorical"}
        Kind of the density of each feature.
    n_classes : int
        Number of classes, K.

    Returns
    -------
    list of Normal, Histogram or CategoricalTable
        The density of each feature.

    Raises
    ------
    ValueError
        If arrays do not match in size, edges do not ascend, or numbers are out of range.
    """
    n_normal = kinds.count("normal")
    normals = iter(restore_columns(Normal, stored, (n_normal, n_classes)))
    tables = iter(_restore_tables(stored, (n_classes, len(kinds) - n_normal)))
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
        table_edges, edges = edges[: n_bins + 1], edges[n_bins + 1 :]
        _check_ascending(table_edges, n_bins)
        densities.append(Histogram(table_edges, table))
    return densities


def _check_ascending(edges: Float64, n_bins: int) -> None:
    """Raise ValueError unless `edges` holds n_bins + 1 ascending numbers.

    A single bin may have width 0.
    """
    if len(edges) != n_bins + 1:
        raise DamagedModelError(
            f"the model file's histogram.edges must be {n_bins + 1} for {n_bins} bins, got {len(edges)}"
        )
    # A single value has one bin of no width.
    if not (edges[1:] > edges[:-1]).all() and not (n_bins == 1 and edges[0] == edges[1]):
        raise DamagedModelError(
            "the model file's histogram.edges must be ascending for each feature"
        )


def _restore_tables(stored: StoredState, shape: tuple[int, int]) -> list[CategoricalTable]:
    """Read all category tables of a model file, `stored`, also those of histograms.

    shape: number of classes, and number of tables. The tables are in the order of their features.
    Raise ValueError if sizes do not match, or numbers are out of range.
    """
    n_classes, n_tables = shape
    sizes: Int64 = check_column("table.size", stored["table.size"], "int64", (n_tables,))
    counts = stored.get_numbers("table.counts", (n_classes, None), 0, MAX_TOTAL_WEIGHT)
    # Each size by itself, so that no sum of them can overflow.
    if (sizes < 1).any() or (sizes > counts.shape[1]).any() or sizes.sum() != counts.shape[1]:
        raise DamagedModelError(
            "the model file's table.size must hold positive integers whose sum is the number of "
            f"columns of table.counts, {counts.shape[1]}, got {shortened(sizes.tolist())}"
        )
    alpha = stored.get_numbers("table.alpha", (n_tables,), _NARROWEST)
    with np.errstate(over="ignore"):
        if not np.isfinite(alpha * sizes).all():
            raise DamagedModelError(
                "the model file's table.alpha must be finite after multiplication by the number of "
                "categories"
            )
    blocks = np.split(counts, np.cumsum(sizes)[:-1], axis=1) if n_tables else []
    return [
        CategoricalTable(block, record)
        for block, record in zip(blocks, alpha.tolist(), strict=True)
    ]


# -- bins ------------------------------------------------------------------------------------------


def _sturges(n: float, spread: float) -> float:  # noqa: ARG001 - the rule looks at the rows alone
    """Return Sturges' number of bins, log2(n) + 1, for n rows; `spread` is not used.

    The result is not rounded.
    """
    return float(np.log2(n) + 1)


def _freedman_diaconis(n: float, spread: float) -> float:
    # Python's floats: their product may be infinite without a warning, the minimum is finite.
    """Return Freedman and Diaconis' number of bins for n rows, at most twice the square root of n.

    spread: the range of the values divided by their interquartile range, possibly infinite. The
    number is ``spread * n ** (1/3) / 2``, not rounded.
    """
    return min(0.5 * spread * float(np.cbrt(n)), 2 * math.sqrt(n))


def _auto(n: float, spread: float) -> float:
    """Return the larger of the numbers of bins of Freedman and Diaconis and of Sturges.

    The result is not rounded. n: number of rows; spread: the range of the values divided by their
    interquartile range.
    """
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
        Value of each row, NaN where it is missing. Row weights play no part.
    bins : int or {"auto", "fd", "sturges"}
        Number of bins, or the rule that chooses it: "fd" of Freedman and Diaconis, "sturges", or
        "auto", the larger number of the two, as in NumPy. The number of a rule is at most that of
        "sturges" or twice the number of distinct values, whichever is larger; that of "fd" is also
        at most twice the square root of the number of rows.

    Returns
    -------
    ndarray of shape (B + 1,)
        The edges, ascending. If all values are equal, two edges at this value; if all are missing,
        two edges at 0.

    References
    ----------
    Freedman and Diaconis, "On the histogram as a density estimator", 1981. Sturges, "The choice of
    a class interval", 1926.
    """
    x = x[~np.isnan(x)]
    if not len(x):
        return np.zeros(2)
    low, high = x.min(), x.max()
    if low == high:
        return np.array([low, high])
    number = bins if isinstance(bins, (int, np.integer)) else _choose_n_bins(x, bins)
    fraction = np.linspace(0, 1, int(number) + 1)
    # Between neighbouring floats there is no other float for an edge.
    return np.unique(low * (1 - fraction) + high * fraction)


def _choose_n_bins(x: Float64, rule: str) -> int:
    """Choose the number of bins of a histogram by a rule.

    x: values, (n,), without NaN and not all equal; rule: "fd" (Freedman and Diaconis), "sturges",
    or "auto", the larger number of the two.
    """
    n = float(len(x))
    lower, upper = _compute_quartiles(x)
    within = upper / 2 - lower / 2
    with np.errstate(over="ignore"):  # the range may be more than float64 holds
        spread = float((x.max() / 2 - x.min() / 2) / within) if within > 0 else np.inf
    # Repeated values give no reason for more bins.
    limit = max(2.0 * len(np.unique(x)), _sturges(n, spread))
    return max(1, int(np.ceil(min(_RULES[rule](n, spread), limit))))


def _compute_quartiles(x: Float64) -> Float64:
    """Return the lower and the upper quartile of values x, (n,), as an array (2,).

    Between two values they are interpolated linearly.
    """
    place = np.array([0.25, 0.75]) * (len(x) - 1)
    ordered, below = np.sort(x), np.floor(place)
    fraction = place - below
    ends = ordered[below.astype(np.intp)], ordered[np.ceil(place).astype(np.intp)]
    return ends[0] * (1 - fraction) + ends[1] * fraction


# -- the choice between normal and histogram -------------------------------------------------------


def prefers_histogram(
    x: Float64, y: Int32, weight: Float64, moments: Moments, floor: float, histogram: Histogram
) -> bool:
    """Return whether a histogram predicts left-out rows better than a normal density.

    Compared are the sums over rows of the log density that each row has in its own class by all
    other rows. Only rows of classes with more than one row take part. A histogram does not
    distinguish the values in a bin, so the normal density is spread over the width of a bin as well
    (Sheppard's correction). Otherwise a value that occurs often would give the histogram an unfair
    advantage.

    Parameters
    ----------
    x, y, weight : ndarray of shape (n,)
        Value (NaN if it is missing), class code and weight of each row; a row is left out with its
        whole weight.
    moments : Moments
        The moments of these rows.
    floor : float
        Square root of what is added to the variances of the normal densities.
    histogram : Histogram
        The histogram of these rows; leaving a row out does not change its edges.

    Returns
    -------
    bool
        True also for a feature with a single value.

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
