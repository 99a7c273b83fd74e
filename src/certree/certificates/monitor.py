"""A monitor: whether a promise still holds, while labelled rows come in."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from certree.arrays import LARGEST, Float64, array_of
from certree.notebook import html_table

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
        largest = min(_MOST / self.bound, LARGEST)
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
        promise = f"an error of at most {math.ceil(1000 * self.bound - 1e-9) / 10:.1f} %"
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
        return html_table(str(self), [], lines)


def _losses(losses: Any) -> Float64:
    given = np.atleast_1d(array_of("losses", losses))
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
