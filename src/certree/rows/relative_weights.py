"""Weights that do not depend on the unit in which they were given."""

from __future__ import annotations

from dataclasses import dataclass
from warnings import warn

import numpy as np

from certree._core import find_weight_unit, scale_weights_to_integers
from certree.interface.arrays import Float64, Int32, divide_by_largest

# Of a weight relative to the largest; the others hold what rounding makes of another unit.
_BITS = 32


@dataclass(frozen=True, slots=True)
class WeightUnit:
    """The unit in which weights are integers; units of more rows add up.

    Parameters
    ----------
    largest : float
        The largest weight; 0: there are no rows yet.
    common : float
        The largest number of which all weights are integral multiples, but for rounding, if none is
        more than 2^16 times it; 0: there is none.
    """

    largest: float
    common: float

    @classmethod
    def find(cls, weight: Float64) -> WeightUnit:
        """Find the unit of positive weights."""
        return cls(*find_weight_unit(weight)) if len(weight) else NO_WEIGHTS

    def __add__(self, other: WeightUnit) -> WeightUnit:
        """Find the unit of the weights of both."""
        known = [one for one in (self, other) if one.largest > 0]
        if len(known) < 2:
            return known[0] if known else NO_WEIGHTS
        largest = max(one.largest for one in known)
        if not all(one.common > 0 for one in known):
            return WeightUnit(largest, 0.0)
        units = np.array([largest, *(one.common for one in known)])
        return WeightUnit(*find_weight_unit(units))

    def to_integers(self, weight: Float64) -> Float64:
        """Turn weights into integers, at most 2^16.

        They are multiples of the common unit. If there is none, they are rounded, to 1 at least, so
        that the largest is 2^16.
        """
        return scale_weights_to_integers(weight, self.largest or 1.0, self.common)


NO_WEIGHTS = WeightUnit(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class WeightSpread:
    """How much the weights of rows differ; those of more rows add up.

    Parameters
    ----------
    total : float
        Sum of the weights.
    norm : float
        Root of the sum of their squares.
    n : int
        How many there are.
    """

    total: float = 0.0
    norm: float = 0.0
    n: int = 0

    @classmethod
    def measure(cls, weight: Float64) -> WeightSpread:
        """Measure positive weights."""
        if not len(weight):
            return cls()
        largest = float(weight.max())  # squares of large weights overflow
        scaled = divide_by_largest(weight, largest)
        norm = largest * float(np.sqrt(np.square(scaled).sum()))
        return cls(float(weight.sum()), norm, len(weight))

    def __add__(self, other: WeightSpread) -> WeightSpread:
        """Measure the weights of both."""
        norm = float(np.hypot(self.norm, other.norm))
        return WeightSpread(self.total + other.total, norm, self.n + other.n)

    @property
    def effective_size(self) -> float:
        """Kish's effective number of rows: (sum of weights)^2 / sum of squared weights.

        It is rounded to six digits, a figure for people that no order of the rows changes.
        """
        return float(f"{min((self.total / self.norm) ** 2, self.n):.6g}") if self.n else 0.0


# Below this share of the rows their effective number is worth a warning.
_UNEVEN = 0.1


def warn_of_uneven_weights(spread: WeightSpread) -> None:
    """Warn if weights leave an effective sample of less than a tenth of the rows."""
    if spread.effective_size < _UNEVEN * spread.n:
        warn(
            f"sample_weight differs so much that {spread.n:,} rows tell as much as "
            f"{spread.effective_size:,.4g} of equal weight (Kish's effective sample size). Weights are "
            "relative: leave out identifiers, and take roots or logarithms of amounts",
            UserWarning,
            stacklevel=2,
        )


def compute_integer_weights(weight: Float64) -> Float64:
    """Turn positive weights into integers; weights times a constant become the same ones.

    See `WeightUnit.integers`.
    """
    return WeightUnit.find(weight).to_integers(weight)


def balance_bag_weights(count: Int32, weight: Float64, y: Float64) -> Float64:
    """Weigh drawn rows so that all classes of each column weigh the same, as the core does.

    Parameters
    ----------
    count : ndarray of int32, shape (n,)
        How often each row was drawn.
    weight : ndarray of shape (n,)
        Integer weights.
    y : ndarray of shape (n, q)
        Codes of classes.

    Returns
    -------
    ndarray of shape (n,)
        Integer weights; 0 for rows that were not drawn.
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
    """Express weights in a unit of their own, so that weights times a constant become the same numbers.

    They are integers if they have a common unit; else fractions of the largest, each rounded to 32
    significant bits.
    """
    unit = WeightUnit.find(weight)
    if unit.common > 0:
        return unit.to_integers(weight)
    fraction, exponent = np.frexp(divide_by_largest(weight, unit.largest))
    relative = np.ldexp(np.rint(np.ldexp(fraction, _BITS)), exponent - _BITS)
    return np.maximum(relative, np.finfo(np.float64).tiny)  # no weight becomes 0
