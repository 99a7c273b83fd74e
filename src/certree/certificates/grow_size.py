"""How many rows shall grow a tree, and how many certify it: a pilot's learning curve says so.

Rows are revealed one after the other in a random order. A pilot of them is cross-validated at two
sizes, and the error that a power law expects of more growing rows is weighed against the bound that
fewer certifying rows allow. The choice reads nothing but the pilot, so it stops the growing rows at a
time that only they decide: those after it are independent draws given it, and no delta is spent.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from certree.certificates.certificate import inequality_of
from certree.certificates.priors import PROPOSED

# Share of the rows that grow in any case, and the shares to choose from.
PILOT = 0.35
SHARES = (PILOT, 0.5, 0.65, 0.75, 0.85)

# What exponents of learning curves are like, by those of eight public tables; and the steepest.
_EXPONENT, _SPREAD, _STEEPEST = 0.15, 0.15, 0.7


class CurvePoint(NamedTuple):
    """What trees of some size get wrong: a point of a learning curve.

    Parameters
    ----------
    share : float
        Share of all rows that grew each tree.
    error : float
        Share of the judged rows that the trees get wrong.
    judged : int
        Number of rows that judge them.
    """

    share: float
    error: float
    judged: int


class PowerLaw(NamedTuple):
    """An error that falls with the share s of growing rows like ``level * s^-exponent``."""

    level: float
    exponent: float

    def at(self, share: float) -> float:
        """The error that is expected if this share grows, at most 1."""
        return min(self.level * share**-self.exponent, 1.0)


def power_law(curve: Sequence[CurvePoint]) -> PowerLaw:
    """The likeliest power law, where points are as certain as their errors are many.

    The regression of the logarithm of the error on that of the share, with a normal prior on the
    exponent, which is then kept between 0 and .7.
    """
    judged = np.array([point.judged for point in curve], dtype=np.float64)
    error = (np.array([point.error for point in curve]) * judged + 0.5) / (judged + 1)
    size, falls = np.log([point.share for point in curve]), np.log(error)
    certainty = judged * error / (1 - error)
    centre = np.average(size, weights=certainty)
    spread = certainty @ (size - centre) ** 2 + _SPREAD**-2
    slope = certainty @ ((centre - size) * falls) + _EXPONENT * _SPREAD**-2
    exponent = min(max(float(slope / spread), 0.0), _STEEPEST)
    level = np.average(falls, weights=certainty) + exponent * centre
    return PowerLaw(math.exp(level), exponent)


def share_to_grow(
    curve: Sequence[CurvePoint], n: int, delta: float, grouped: bool = False
) -> float:
    """Choose the share of rows that grow by the bound that it lets expect.

    Parameters
    ----------
    curve : sequence of CurvePoint
        What the pilot has found; without a point nothing is known, and the pilot's share is taken.
    n : int
        Rows, or groups, that grow or certify.
    delta : float
        Probability with which the certificate may fail.
    grouped : bool
        Whether they are groups.

    Returns
    -------
    float
        One of `SHARES`, on ties the smallest.
    """
    if not curve:
        return PILOT
    law, inequality = power_law(curve), inequality_of("occam_mean" if grouped else "occam_vote")

    def expected(share: float) -> float:
        weighing = n - round(share * n)
        if weighing < 1:
            return math.inf
        return inequality.bound(law.at(share), weighing, -math.log(PROPOSED), math.log(delta))

    return min(SHARES, key=expected)
