"""How far one has to go to hold a share of new rows: scores of weighing rows in order.

A score says how far a row's target lies off what was said of it before the weighing rows were seen. Of
new rows from the same source a share `coverage` has no larger score than the k-th of the weighing rows,
with probability ``1 - delta``, if k is one more than the ``1 - delta`` quantile of Bin(N, coverage).
That is exact where no scores are tied, and holds all the more where some are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.arrays import FARTHEST, Float64, Int64, OfColumns, column
from certree.certificates.bounds import order_place, rows_to_cover
from certree.certificates.certificate import Certificate, certificate_of
from certree.signatures import checked


@checked
def place_to_cover(n: int, coverage: float, delta: float | None) -> int:
    """Which of n scores in ascending order a share of new ones is not above; n + 1: none of them.

    Parameters
    ----------
    n : int
        How many scores there are.
    coverage : float
        Share of new rows, between 0 and 1.
    delta : float or None
        Probability over the n scores with which fewer are covered; None: as many are on average over
        the n scores and the new ones.

    Returns
    -------
    int
        From 1 on.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
    Statistics 1941; Vovk, "Conditional validity of inductive conformal predictors", ACML 2012,
    Proposition 2a.

    Examples
    --------
    >>> from certree.certificates import place_to_cover
    >>> place_to_cover(100, 0.9, 0.05), place_to_cover(100, 0.9, None), place_to_cover(28, 0.9, 0.05)
    (96, 91, 29)
    """
    if not 0 <= n <= FARTHEST:
        raise ValueError(f"n must be a number of rows, at most 2**53, got {n!r}")
    expect_coverage(coverage)
    if delta is None:
        return math.ceil((int(n) + 1) * coverage * (1 - 1e-12))
    return order_place(int(n), float(coverage), log_of_delta(delta))


def expect_coverage(coverage: Any) -> None:
    """Check a share of new rows."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")


def log_of_delta(delta: Any) -> float:
    """Check a probability, and give its logarithm."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    return math.log(delta)


@dataclass(frozen=True, slots=True, eq=False)
class Scores(OfColumns):
    """Scores of weighing rows in ascending order, by regions that are covered each for itself.

    Parameters
    ----------
    value : array-like of shape (N,)
        Scores, those of one region after those of another, ascending in each; infinite where nothing
        covers the row.
    start : array-like of int, shape (R + 1,)
        Where those of each region begin, and their number.
    mass : array-like of shape (R,)
        Share of delta of each region, fixed without the scores; they sum to at most 1.

    Raises
    ------
    ValueError
        If the scores are not in order, or shares are not positive or sum to more than 1.
    """

    value: Float64
    start: Int64
    mass: Float64

    def __post_init__(self) -> None:
        value: Float64 = column("value", self.value, "float64", (None,))
        start: Int64 = column("start", self.start, "int64", (None,))
        mass: Float64 = column("mass", self.mass, "float64", (len(start) - 1,))
        for name, values in (("value", value), ("start", start), ("mass", mass)):
            object.__setattr__(self, name, values)
        steps = np.diff(start)
        if not len(mass) or start[0] != 0 or start[-1] != len(value) or steps.min() < 0:
            raise ValueError(f"start must rise from 0 to the {len(value)} scores, got {start}")
        if not ((mass > 0).all() and mass.sum() <= 1 + 1e-9):
            raise ValueError("mass must hold positive shares that sum to at most 1")
        region = np.repeat(np.arange(len(mass)), steps)
        rises = value[1:] >= value[:-1]
        if np.isnan(value).any() or not (rises | (region[1:] > region[:-1])).all():
            raise ValueError("value must ascend in every region")

    @classmethod
    def of(cls, value: Float64, region: NDArray[np.integer[Any]], mass: Float64) -> "Scores":
        """Put scores of rows of several regions in order."""
        order = np.lexsort((value, region))
        start = np.searchsorted(region[order], np.arange(len(mass) + 1))
        return cls(value[order], start.astype(np.int64), mass)

    def reach(self, coverage: float, delta: float) -> Float64:
        """How far to go in each region, (R,); infinitely far in one of too few rows.

        Raises
        ------
        ValueError
            If a number is out of range, or all regions have too few rows.
        """
        places, sizes = self._places(coverage, delta), np.diff(self.start).tolist()
        if all(place > n for place, n in zip(places, sizes, strict=True)):
            levels = (log_of_delta(delta) + np.log(self.mass)).tolist()
            needed = min(rows_to_cover(coverage, level) for level in levels)
            raise ValueError(
                f"coverage={coverage!r} with delta={delta!r} takes at least {needed:,} rows that "
                f"certify{' a region' if len(sizes) > 1 else ''}, got {max(sizes):,}"
            )
        return np.array([self._at(region, place) for region, place in enumerate(places)])

    def certificates(
        self, method: str, coverage: float, delta: float, parts: Sequence[str] = ("",)
    ) -> tuple[Certificate | None, ...]:
        """What holds at once of all regions, by their names; None where one goes infinitely far."""
        made: list[Certificate | None] = []
        for region, place in enumerate(self._places(coverage, delta)):
            first, end = self.start[region : region + 2].tolist()
            reach, n = self._at(region, place), end - first
            if reach == np.inf:
                made.append(None)
                continue
            outside = float(np.sum(self.value[first:end] > reach)) / n
            nats = max(-math.log(self.mass[region]), 0.0)
            # Counted by places, not by scores: where some are tied, fewer may lie outside by chance.
            observed = ((n - place) / n,)
            made.append(
                certificate_of(method, observed, outside, n, nats, delta, 1.0, part=parts[region])
            )
        return tuple(made)

    def _places(self, coverage: float, delta: float) -> list[int]:
        """The place in each region, from 1 on; one more than it has scores: none of them serves."""
        expect_coverage(coverage)
        levels = (log_of_delta(delta) + np.log(self.mass)).tolist()
        sizes = np.diff(self.start).tolist()
        return [order_place(n, coverage, level) for n, level in zip(sizes, levels, strict=True)]

    def _at(self, region: int, place: int) -> float:
        first, end = self.start[region : region + 2].tolist()
        return float(self.value[first + place - 1]) if place <= end - first else math.inf
