"""Distribution shift: bounds for new rows from another source than that of the calibration rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.inequalities.bounds import kl_upper
from certree.interface.arrays import Float64, check_column, check_nonnegative
from certree.interface.signatures import validate_settings


@dataclass(frozen=True, slots=True)
class Shift:
    """How the distribution of new rows may differ from that of the calibration rows.

    The value of the field `shift` of a `Certificate`.

    Parameters
    ----------
    kind : {"kl", "total_variation", "weights", "drift"}
        "kl": KL(calibration || new) is at most `most` nats; "total_variation": the total variation
        distance is at most `most`; "weights": the density of new rows over that of the calibration
        rows is known up to a factor, and calibration rows were selected by rejection sampling with
        these weights; "drift": the mean risk (probability of an error, or mean loss) of later rows
        exceeds that of the calibration rows' period by at most `most`.
    most : float
        The largest divergence (nats), distance, weight of a row, or increase of the risk.

    Raises
    ------
    ValueError
        If `most` is negative or not finite, above 1 for "total_variation" or "drift", or 0 for
        "weights".
    """

    kind: Literal["kl", "total_variation", "weights", "drift"]
    most: float

    def __post_init__(self) -> None:
        validate_settings(self)
        check_nonnegative(self.kind, self.most)
        if self.kind in ("total_variation", "drift") and self.most > 1:
            raise ValueError(f"{self.kind} must lie in 0 .. 1, got {self.most!r}")
        if self.kind == "weights" and self.most == 0:
            raise ValueError("max_weight must be above 0, got 0")

    def worst(self, risk: float) -> float:
        """Return the largest risk on new rows if the risk on the calibration rows' source is `risk`.

        risk: probability of an error, or mean loss, between 0 and 1. For the kind "weights" the
        result is `risk` itself, as the rows kept already are of the new source.
        """
        if self.kind == "kl":
            return min(kl_upper(risk, self.most), 1.0) if self.most else risk
        return risk if self.kind == "weights" else min(risk + self.most, 1.0)

    @property
    def source(self) -> str:
        """The possible sources of new rows under this shift, as a phrase for sentences.

        An example is "any source within 0.1 of this one in total variation".
        """
        return {
            "kl": f"any source from which that of these diverges by at most {self.most:.4g} nats",
            "total_variation": f"any source within {self.most:.4g} of this one in total variation",
            "weights": "the source that the weights describe",
            "drift": f"any source whose mean risk is higher by at most {self.most:.4g}",
        }[self.kind]

    @property
    def kept(self) -> str:
        """Which calibration rows are used under this shift, as words that follow "rows".

        " that the weights keep" for the kind "weights", else "".
        """
        return " that the weights keep" if self.kind == "weights" else ""

    @property
    def assumption(self) -> str:
        """What this shift assumes of new rows, as a clause for sentences.

        An example is "new ones come from any source within 0.1 of this one in total variation".
        """
        if self.kind == "weights":
            return "the weights are the density of the new source over theirs, up to a factor"
        return f"new ones come from {self.source}"


def make_shift(
    kl: float | None, total_variation: float | None, drift: float | None = None
) -> Shift:
    """Return the `Shift` of a distance; exactly one of the three must not be None.

    It is the distance between the distributions of calibration rows and new rows. kl: largest
    divergence KL(calibration || new) (nats); total_variation: largest total variation distance;
    drift: largest increase of the mean risk (probability of an error, or mean loss) after the
    period of the calibration rows. Raises ValueError if several or none are passed, or
    one is out of range.
    """
    if (kl is not None) + (total_variation is not None) + (drift is not None) != 1:
        raise ValueError(
            "exactly one of kl and total_variation (or drift, for rows in time order) must be passed "
            f"to nearby, got kl={kl}, total_variation={total_variation} and drift={drift}"
        )
    if kl is not None:
        return Shift("kl", kl)
    if total_variation is not None:
        return Shift("total_variation", total_variation)
    assert drift is not None  # for the type checker
    return Shift("drift", drift)


def sample_by_weights(
    weights: ArrayLike, max_weight: float, n: int, seed: int
) -> NDArray[np.bool_]:
    """Select rows by rejection sampling: each of n rows is kept with probability weight / max_weight.

    The rows kept are independent draws from the source whose density over that of the rows is the
    weight, up to a factor: von Neumann, "Various techniques used in connection with random digits",
    1951.

    Parameters
    ----------
    weights : array-like of shape (n,)
        Weight of each row.
    max_weight : float
        Upper bound on all weights.
    n : int
        Number of rows.
    seed : int
        Seed of the random numbers, >= 0.

    Returns
    -------
    ndarray of bool, shape (n,)
        Whether each row is kept.

    Raises
    ------
    ValueError
        If a weight is negative, not finite or above `max_weight`, or the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"random_state must be an integer >= 0, got {seed!r}")
    given: Float64 = check_column("weights", weights, "float64", (n,))
    most = Shift("weights", max_weight).most
    if not (given >= 0).all():
        raise ValueError(
            f"weights must be finite and non-negative, got {given[~(given >= 0)][0]:g}: drop such rows"
        )
    if not (given <= most).all():
        raise ValueError(
            f"weights must be at most max_weight={most:g}, got {given.max():g}: pass a max_weight that "
            "bounds all possible weights"
        )
    return np.random.default_rng(seed).random(n) * most < given
