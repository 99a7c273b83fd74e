"""Another source of new rows: one near that of the rows at hand, or one that weights describe."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.arrays import Float64, column, nonnegative
from certree.certificates.bounds import kl_upper
from certree.signatures import expect_settings


@dataclass(frozen=True, slots=True)
class Shift:
    """How the source of new rows may differ from that of the rows that certify.

    Parameters
    ----------
    kind : {"kl", "total_variation", "weights"}
        "kl": the source of the rows diverges from the new one by at most so many nats, KL(rows || new);
        "total_variation": no event's probability differs by more; "weights": the weight of a row is the
        density of the new source over the old one, up to a factor, and rows were kept by it.
    most : float
        How much at most: nats, a probability, or the largest weight.

    Raises
    ------
    ValueError
        If `most` is negative or not finite, a probability above 1, or a weight of 0.
    """

    kind: Literal["kl", "total_variation", "weights"]
    most: float

    def __post_init__(self) -> None:
        expect_settings(self)
        nonnegative(self.kind, self.most)
        if self.kind == "total_variation" and self.most > 1:
            raise ValueError(f"total_variation must lie in 0 .. 1, got {self.most!r}")
        if self.kind == "weights" and self.most == 0:
            raise ValueError("the largest weight must be above 0")

    def worst(self, risk: float) -> float:
        """The largest risk that there may be, where it is at most so much on the source of the rows."""
        if self.kind == "kl":
            return min(kl_upper(risk, self.most), 1.0) if self.most else risk
        return min(risk + self.most, 1.0) if self.kind == "total_variation" else risk

    @property
    def source(self) -> str:
        """Where the new rows come from."""
        return {
            "kl": f"any source from which that of these diverges by at most {self.most:.4g} nats",
            "total_variation": f"any source within {self.most:.4g} of this one in total variation",
            "weights": "the source that the weights describe",
        }[self.kind]

    @property
    def kept(self) -> str:
        """Which rows certify for it."""
        return " that the weights keep" if self.kind == "weights" else ""

    @property
    def assumption(self) -> str:
        """What is assumed of the new source."""
        if self.kind == "weights":
            return "the weights are the density of the new source over theirs, up to a factor"
        return f"new ones come from {self.source}"


def shift_nearby(kl: float | None, total_variation: float | None) -> Shift:
    """A source near this one, by one of the two distances."""
    if (kl is None) == (total_variation is None):
        raise ValueError("nearby takes one of kl and total_variation")
    if kl is not None:
        return Shift("kl", kl)
    assert total_variation is not None  # for the type checker
    return Shift("total_variation", total_variation)


def kept_by_weights(weights: ArrayLike, max_weight: float, n: int, seed: int) -> NDArray[np.bool_]:
    """Keep each of n rows with probability weight / max_weight.

    Those that are kept are independent draws of the source whose density over that of the rows is the
    weight, up to a factor: von Neumann, "Various techniques used in connection with random digits",
    1951.

    Raises
    ------
    ValueError
        If a weight is negative, not finite or above `max_weight`, or the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"random_state must be a whole number >= 0, got {seed!r}")
    given: Float64 = column("weights", weights, "float64", (n,))
    most = Shift("weights", max_weight).most
    if not (given >= 0).all():
        raise ValueError("weights must be finite and non-negative")
    if not (given <= most).all():
        raise ValueError(f"weights must be at most max_weight={most:g}, got {given.max():g}")
    return np.random.default_rng(seed).random(n) * most < given
