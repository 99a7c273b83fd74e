"""Row weights in units that do not depend on the unit in which the caller passed them."""

from __future__ import annotations

from dataclasses import dataclass
from warnings import warn

import numpy as np

from certree._core import find_weight_unit, scale_weights_to_integers
from certree.interface.arrays import Float64, Int32, divide_by_largest

# Significant bits that are kept of a relative weight; a change of the unit alters lower bits.
_BITS = 32


@dataclass(frozen=True, slots=True)
class WeightUnit:
    """The largest row weight, and the number of which all weights are multiples, to scale weights.

    ``to_integers`` scales weights with it. The units of two blocks of rows can be added.

    Parameters
    ----------
    largest : float
        The largest weight; 0 if there are no rows.
    common : float
        The largest number of which all weights are integer multiples, up to rounding errors. It is
        0 if there is none, or if the largest weight is more than 2^16 times as large.
    """

    largest: float
    common: float

    @classmethod
    def find(cls, weight: Float64) -> WeightUnit:
        """Return the largest of positive weights, (n,), and the number of which all are multiples.

        These are the fields `largest` and `common`; both are 0 if n is 0.
        """
        return cls(*find_weight_unit(weight)) if len(weight) else NO_WEIGHTS

    def __add__(self, other: WeightUnit) -> WeightUnit:
        """Return the `WeightUnit` (largest weight, common divisor) of both blocks of rows together.

        `common` is the largest number of which both blocks' `common` are integer multiples; 0 if
        there is none above `largest` / 2^16, or if that of a block with rows is 0. A block without
        rows changes nothing.
        """
        known = [one for one in (self, other) if one.largest > 0]
        if len(known) < 2:
            return known[0] if known else NO_WEIGHTS
        largest = max(one.largest for one in known)
        if not all(one.common > 0 for one in known):
            return WeightUnit(largest, 0.0)
        units = np.array([largest, *(one.common for one in known)])
        return WeightUnit(*find_weight_unit(units))

    def to_integers(self, weight: Float64) -> Float64:
        """Convert weights, (n,), to integers in 1, ..., 2^16, as float64.

        Weights are divided by `common`. If that is 0, they are scaled so that `largest` becomes
        2^16, and rounded; weights that would become 0 become 1.

        weight: weights of rows for which this unit was computed, or of a block of them.
        """
        return scale_weights_to_integers(weight, self.largest or 1.0, self.common)


NO_WEIGHTS = WeightUnit(0.0, 0.0)


# Relative weights are at least this large, so that products of weights and targets, and sums of these
# over rows of positive weight, do not underflow.
_LEAST = 2.0**-300


def scale_weights(weight: Float64, factor: float, largest: float | None = None) -> Float64:
    """Divide positive weights by the largest one, and multiply them by a factor; return (n,).

    weight: weights of the rows, (n,). factor: positive number. largest: the largest weight of all
    rows, if `weight` has only those of a block; None: the largest one of `weight`. Results are at
    least 2^-300.
    """
    return np.maximum(divide_by_largest(weight, largest) * factor, _LEAST)


@dataclass(frozen=True, slots=True)
class WeightSpread:
    """Sums that measure how unequal row weights are. Those of two blocks of rows can be added.

    Parameters
    ----------
    total : float
        Sum of the weights.
    norm : float
        Square root of the sum of squared weights.
    n : int
        Number of rows.
    """

    total: float = 0.0
    norm: float = 0.0
    n: int = 0

    @classmethod
    def measure(cls, weight: Float64) -> WeightSpread:
        """Return sum, root of the sum of squares, and number of positive weights, (n,); n may be 0."""
        if not len(weight):
            return cls()
        largest = float(weight.max())  # squares of large weights overflow
        scaled = divide_by_largest(weight, largest)
        norm = largest * float(np.sqrt(np.square(scaled).sum()))
        return cls(float(weight.sum()), norm, len(weight))

    def __add__(self, other: WeightSpread) -> WeightSpread:
        """Return the `WeightSpread` of the weights of both blocks of rows together."""
        norm = float(np.hypot(self.norm, other.norm))
        return WeightSpread(self.total + other.total, norm, self.n + other.n)

    @property
    def effective_size(self) -> float:
        """Kish's effective number of rows: (sum of weights)^2 / sum of squared weights.

        It is rounded to six significant digits, which no order of the rows changes; 0 without rows.
        """
        return float(f"{min((self.total / self.norm) ** 2, self.n):.6g}") if self.n else 0.0


# Smallest fraction of effective rows without a warning.
_UNEVEN = 0.1


def warn_of_uneven_weights(spread: WeightSpread) -> None:
    """Issue a UserWarning if the effective sample size is less than a tenth of the number of rows.

    spread: sums of the weights of all rows.
    """
    if spread.effective_size < _UNEVEN * spread.n:
        warn(
            f"sample_weight differs so much that {spread.n:,} rows carry as much evidence as "
            f"{spread.effective_size:,.4g} of equal weight (Kish's effective sample size). Weights are "
            "relative: do not pass identifiers, and pass roots or logarithms of amounts",
            UserWarning,
            stacklevel=2,
        )


def compute_integer_weights(weight: Float64) -> Float64:
    """Convert positive weights, (n,), to integers in 1, ..., 2^16, as float64, (n,).

    Weights times a constant give the same integers. If all weights are integer multiples of a
    number, and the largest weight is at most 2^16 times this number, the results are these
    multiples. Else the largest weight becomes 2^16, and the others are scaled alike and rounded, to
    at least 1.
    """
    return WeightUnit.find(weight).to_integers(weight)


def balance_bag_weights(count: Int32, weight: Float64, y: Float64) -> Float64:
    """Compute row weights of a bootstrap sample with which all classes have the same total weight.

    The core computes the same weights when it draws a bootstrap sample.

    Parameters
    ----------
    count : ndarray of int32, shape (n,)
        How often each row was drawn.
    weight : ndarray of shape (n,)
        Weight of each row before balancing, an integer.
    y : ndarray of shape (n, q)
        Class codes of q targets. With several targets, a row's weight is divided by the total
        weights of all its classes.

    Returns
    -------
    ndarray of float64, shape (n,)
        Integer weight of a single draw of each row: a row that was drawn twice counts twice with
        it. 0 for rows that were not drawn.
    """
    drawn = np.flatnonzero(count > 0)
    relative = weight[drawn]
    for column in y[drawn].T:
        codes = column.astype(np.intp)
        relative = relative / np.bincount(codes, count[drawn] * weight[drawn])[codes]
    balanced = np.zeros(len(count))
    balanced[drawn] = compute_integer_weights(relative)
    return balanced


def compute_relative_weights(weight: Float64) -> Float64:
    """Divide positive weights by a unit, so that weights times a constant give the same numbers.

    If the weights are integer multiples of a common number, at most 2^16 times it, return these
    integers. Else return fractions of the largest weight, each rounded to 32 significant bits, so
    that rounding errors of the constant do not matter. The result is float64, (n,), and positive.
    """
    unit = WeightUnit.find(weight)
    if unit.common > 0:
        return unit.to_integers(weight)
    fraction, exponent = np.frexp(divide_by_largest(weight, unit.largest))
    relative = np.ldexp(np.rint(np.ldexp(fraction, _BITS)), exponent - _BITS)
    return np.maximum(relative, np.finfo(np.float64).tiny)  # no weight becomes 0
