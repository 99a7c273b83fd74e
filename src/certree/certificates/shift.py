"""New rows from another source: how far a promise reaches, and a monitor of whether it still holds.

The other source is one near that of the rows at hand, or one that weights describe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.inequalities.bounds import kl_upper
from certree.interface.arrays import MAX_SETTING, Float64, check_column, check_nonnegative, to_array
from certree.interface.formatting import format_bound
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_settings


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
        validate_settings(self)
        check_nonnegative(self.kind, self.most)
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


def make_shift(kl: float | None, total_variation: float | None) -> Shift:
    """A source near this one, by one of the two distances."""
    if (kl is None) == (total_variation is None):
        raise ValueError("nearby takes one of kl and total_variation")
    if kl is not None:
        return Shift("kl", kl)
    assert total_variation is not None  # for the type checker
    return Shift("total_variation", total_variation)


def sample_by_weights(
    weights: ArrayLike, max_weight: float, n: int, seed: int
) -> NDArray[np.bool_]:
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
    given: Float64 = check_column("weights", weights, "float64", (n,))
    most = Shift("weights", max_weight).most
    if not (given >= 0).all():
        raise ValueError("weights must be finite and non-negative")
    if not (given <= most).all():
        raise ValueError(f"weights must be at most max_weight={most:g}, got {given.max():g}")
    return np.random.default_rng(seed).random(n) * most < given


# The errors that bets are best against, as multiples of the bound, and one for errors far above it.
_MULTIPLES = (1.25, 1.5, 2.0, 3.0, 5.0)
# Share of the largest stake that any bet may have: at the whole one a row without a loss ends it.
_MOST = 0.8
# Rows that are worked on at once.
_BLOCK = 4096


class Monitor:
    """Tests at any time whether the mean loss of new rows is above what was promised.

    For a stake lambda the product over rows of ``1 + lambda (loss - bound)`` has a mean of at most 1
    while the promise is kept, and so has the mean of several such products, `e_value`. It ever reaches
    ``1 / alpha`` with probability alpha at most (Ville's inequality), so that one may look after every
    row, and stop whenever one likes. It is the more, the more the losses are above the bound.

    Parameters
    ----------
    bound : float
        What was promised of the mean loss, above 0 and below 1; `Certificate.monitor` fills it in.
    alpha : float
        Probability with which a promise that is kept may be called broken.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024.
    Ville, "Etude critique de la notion de collectif", 1939.

    Examples
    --------
    >>> from certree.certificates import hold_out
    >>> monitor = hold_out(errors=30, n=1000).monitor()
    >>> monitor.update([0, 0, 1, 0, 0, 0]).broken
    False
    >>> monitor.update([0, 1] * 10).broken
    True
    >>> monitor.first_alarm
    12
    """

    __slots__ = ("_first_alarm", "_log_products", "_losses", "_rows", "alpha", "bound")

    def __init__(self, bound: float, alpha: float = 0.05) -> None:
        for name, value in (("bound", bound), ("alpha", alpha)):
            if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
                raise TypeError(f"{name} must be a number, got {value!r}")
            if not 0 < value < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
        self.bound, self.alpha = float(bound), float(alpha)
        self._rows, self._losses = 0, 0.0
        self._log_products = (0.0,) * len(self._stakes)
        self._first_alarm: int | None = None

    @property
    def _stakes(self) -> Float64:
        largest = min(_MOST / self.bound, MAX_SETTING)
        stakes = [(multiple - 1) / (1 - self.bound) for multiple in _MULTIPLES]
        return np.minimum([*stakes, largest / 2], largest)

    @property
    def rows(self) -> int:
        """Rows seen so far."""
        return self._rows

    @property
    def mean_loss(self) -> float | None:
        """Mean of their losses; None before the first."""
        return self._losses / self._rows if self._rows else None

    @property
    def log_e_value(self) -> float:
        """Log of `e_value`, which is finite however many rows there are."""
        logs = np.array(self._log_products)
        return float(np.logaddexp.reduce(logs) - math.log(len(logs)))

    @property
    def e_value(self) -> float:
        """Evidence against the promise now: its mean is at most 1 while the promise is kept."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_e_value))

    @property
    def broken(self) -> bool:
        """Whether the evidence has reached ``1 / alpha`` at some time so far."""
        return self._first_alarm is not None

    @property
    def first_alarm(self) -> int | None:
        """Number of the row at which it did; None: it has not."""
        return self._first_alarm

    def update(self, losses: ArrayLike) -> Self:
        """Take in the losses of new rows, in the order in which they came.

        Parameters
        ----------
        losses : array-like of shape (n,), or a number
            Losses from 0 to 1, such as ``y_new != model.predict(X_new)``; of rows in groups the mean
            loss of each group. Any number of them at a time gives the same.

        Returns
        -------
        self : Monitor

        Raises
        ------
        ValueError
            If losses are no numbers from 0 to 1; nothing has changed then.
        """
        given = _losses(losses)
        logs, alarm, stakes = np.array(self._log_products), self._first_alarm, self._stakes
        limit = math.log(len(logs)) - math.log(self.alpha)
        for first in range(0, len(given), _BLOCK):
            steps = np.log1p(stakes * (given[first : first + _BLOCK, None] - self.bound))
            paths = np.cumsum(np.vstack([logs, steps]), axis=0)[1:]
            if alarm is None:
                reached = np.flatnonzero(np.logaddexp.reduce(paths, axis=1) >= limit)
                alarm = self._rows + first + int(reached[0]) + 1 if len(reached) else None
            logs = paths[-1]
        self._first_alarm = alarm
        self._log_products = tuple(logs.tolist())
        self._losses += float(given.sum())
        self._rows += len(given)
        return self

    def __str__(self) -> str:
        """What it has seen, and what that says."""
        promise = f"an error of at most {format_bound(self.bound)}"
        if not self._rows:
            return f"{promise} was promised, and no rows have come in yet.".capitalize()
        seen = f"{100 * self._losses / self._rows:.1f} % on {self._rows:,} new rows so far"
        said = "which does not speak against it"
        if self.broken:
            said = (
                f"and since row {self._first_alarm:,} the promise counts as broken; while it is kept "
                f"this happens with probability {100 * self.alpha:.4g} % at most"
            )
        return f"{promise} was promised; it is {seen}, {said}.".capitalize()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        """The sentence, and the numbers below it."""
        mean = "" if self.mean_loss is None else f"{self.mean_loss:.4f}"
        lines = [
            ["rows seen", f"{self._rows:,}"],
            ["mean loss", mean],
            ["promised at most", f"{self.bound:.4f}"],
            ["evidence (e-value)", f"{self.e_value:.4g}"],
            ["alarm at", f"{1 / self.alpha:.4g}"],
            ["first alarm", "none" if self._first_alarm is None else f"row {self._first_alarm:,}"],
        ]
        return make_html_table(str(self), [], lines)


def _losses(losses: Any) -> Float64:
    given = np.atleast_1d(to_array("losses", losses))
    if given.ndim != 1:
        raise ValueError(f"losses must have shape (any), got {given.shape}")
    if given.size and given.dtype.kind not in "buif":
        raise ValueError(f"losses must hold numbers from 0 to 1, got dtype {given.dtype}")
    numbers: Float64 = given.astype(np.float64)
    if not ((numbers >= 0) & (numbers <= 1)).all():
        raise ValueError(
            f"losses must lie in 0 .. 1, got {numbers[~((numbers >= 0) & (numbers <= 1))][0]!r}"
        )
    return numbers
