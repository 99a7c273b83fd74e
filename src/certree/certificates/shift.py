"""Distribution shift: bounds for new rows from another source, and a monitor of bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.inequalities.bounds import kl_upper
from certree.interface.arrays import MAX_SETTING, Float64, check_column, check_nonnegative, to_array
from certree.interface.formatting import format_bound, format_loss_bound, format_quantity
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_settings


@dataclass(frozen=True, slots=True)
class Shift:
    """How the distribution of new rows may differ from that of the calibration rows.

    The value of the field `shift` of a `Certificate`.

    Parameters
    ----------
    kind : {"kl", "total_variation", "weights"}
        "kl": KL(calibration || new) is at most `most` nats; "total_variation": the total variation
        distance is at most `most`; "weights": the density of new rows is known up to a factor, and
        calibration rows were selected by rejection sampling with these weights.
    most : float
        The largest divergence (nats), distance, or weight.

    Raises
    ------
    ValueError
        If `most` is negative or not finite, above 1 for "total_variation", or 0 for "weights".
    """

    kind: Literal["kl", "total_variation", "weights"]
    most: float

    def __post_init__(self) -> None:
        validate_settings(self)
        check_nonnegative(self.kind, self.most)
        if self.kind == "total_variation" and self.most > 1:
            raise ValueError(f"total_variation must lie in 0 .. 1, got {self.most!r}")
        if self.kind == "weights" and self.most == 0:
            raise ValueError("max_weight must be above 0, got 0")

    def worst(self, risk: float) -> float:
        """Return the largest risk on new rows if the risk on the calibration rows' source is `risk`.

        risk: probability of an error, or mean loss, between 0 and 1. For the kind "weights" the
        result is `risk` itself, as the rows kept already are of the new source.
        """
        if self.kind == "kl":
            return min(kl_upper(risk, self.most), 1.0) if self.most else risk
        return min(risk + self.most, 1.0) if self.kind == "total_variation" else risk

    @property
    def source(self) -> str:
        """The possible sources of new rows under this shift, as a phrase for sentences.

        Such as "any source within 0.1 of this one in total variation".
        """
        return {
            "kl": f"any source from which that of these diverges by at most {self.most:.4g} nats",
            "total_variation": f"any source within {self.most:.4g} of this one in total variation",
            "weights": "the source that the weights describe",
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

        Such as "new ones come from any source within 0.1 of this one in total variation".
        """
        if self.kind == "weights":
            return "the weights are the density of the new source over theirs, up to a factor"
        return f"new ones come from {self.source}"


def make_shift(kl: float | None, total_variation: float | None) -> Shift:
    """Return the `Shift` of a distance; exactly one of the two must not be None.

    It is the distance between the distributions of calibration rows and new rows. kl: largest
    divergence KL(calibration || new) (nats); total_variation: largest distance. Raises ValueError
    if both or none are passed, or one is out of range.
    """
    if (kl is None) == (total_variation is None):
        raise ValueError(
            "exactly one of kl and total_variation must be passed to nearby, got "
            f"kl={kl} and total_variation={total_variation}"
        )
    if kl is not None:
        return Shift("kl", kl)
    assert total_variation is not None  # for the type checker
    return Shift("total_variation", total_variation)


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
            f"weights must be finite and non-negative, got {given[~(given >= 0)][0]:g}"
        )
    if not (given <= most).all():
        raise ValueError(
            f"weights must be at most max_weight={most:g}, got {given.max():g}: pass a max_weight that "
            "bounds all possible weights"
        )
    return np.random.default_rng(seed).random(n) * most < given


# Mean losses for which a stake is optimal, as multiples of the bound; one more stake is for mean losses
# far above it.
_MULTIPLES = (1.25, 1.5, 2.0, 3.0, 5.0)
# Largest stake as a fraction of 1 / bound, at which a single row without loss would make a product 0.
_MOST = 0.8
# Number of rows that are processed together.
_BLOCK = 4096


class Monitor:
    """A sequential test of whether the mean loss of new rows exceeds a certified bound.

    For a stake lambda, the product over rows of ``1 + lambda (loss - bound)`` has a mean of at most
    1 while the bound holds, and so has `e_value`, the mean of six such products. An alarm is raised
    when `e_value` reaches ``1 / alpha``, which it ever does with probability at most alpha (Ville's
    inequality), so that one may look after each row and stop at any time. The more the losses
    exceed the bound, the faster `e_value` grows. `Certificate.monitor` makes the object.

    Parameters
    ----------
    bound : float
        The certified bound on the mean loss, between 0 and 1 (exclusive).
    alpha : float
        Probability with which an alarm may ever be raised while the bound holds.
    unit : float or None
        Number by which losses and `bound` were divided, such as the largest cost; sentences name
        losses in the original unit. None: losses are errors.

    Raises
    ------
    TypeError
        If an argument is not a number.
    ValueError
        If `bound` or `alpha` is not between 0 and 1, or `unit` is not a finite number above 0.

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

    __slots__ = ("_first_alarm", "_log_products", "_losses", "_rows", "alpha", "bound", "unit")

    def __init__(self, bound: float, alpha: float = 0.05, unit: float | None = None) -> None:
        self.unit = None if unit is None else float(unit)
        if self.unit is not None and not 0 < self.unit < math.inf:
            raise ValueError(f"unit must be None or a finite number above 0, got {unit!r}")
        for name, value in (("bound", bound), ("alpha", alpha)):
            if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
                raise TypeError(f"{name} must be a number, got {value!r}")
            if not 0 < value < 1:
                vacuous = ": no mean loss can exceed a bound of 1, so no rows can contradict it"
                reason = vacuous if name == "bound" and value == 1 else ""
                raise ValueError(f"{name} must lie between 0 and 1, got {value!r}{reason}")
        self.bound, self.alpha = float(bound), float(alpha)
        self._rows, self._losses = 0, 0.0
        self._log_products = (0.0,) * len(self._stakes)
        self._first_alarm: int | None = None

    @property
    def _stakes(self) -> Float64:
        """The stakes lambda of the monitor's six products, array (6,), fixed by the bound alone."""
        largest = min(_MOST / self.bound, MAX_SETTING)
        stakes = [(multiple - 1) / (1 - self.bound) for multiple in _MULTIPLES]
        return np.minimum([*stakes, largest / 2], largest)

    @property
    def rows(self) -> int:
        """Number of rows whose losses this monitor has seen."""
        return self._rows

    @property
    def mean_loss(self) -> float | None:
        """Mean loss of the rows that this monitor has seen; None before the first row."""
        return self._losses / self._rows if self._rows else None

    @property
    def log_e_value(self) -> float:
        """Natural logarithm of `e_value`, which is finite even if `e_value` overflows."""
        logs = np.array(self._log_products)
        return float(np.logaddexp.reduce(logs) - math.log(len(logs)))

    @property
    def e_value(self) -> float:
        """Evidence against the bound after the rows seen so far, a number >= 0.

        While the bound holds its mean is at most 1. It is the mean of six products of ``1 + stake
        (loss - bound)`` over the rows.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_e_value))

    @property
    def broken(self) -> bool:
        """Whether this monitor has raised an alarm.

        After some row `e_value` was at least ``1 / alpha``.
        """
        return self._first_alarm is not None

    @property
    def first_alarm(self) -> int | None:
        """Number of the row, from 1, after which the alarm was raised; None: no alarm."""
        return self._first_alarm

    def update(self, losses: ArrayLike) -> Self:
        """Add the losses of new rows, in the order in which the rows arrived.

        Parameters
        ----------
        losses : array-like of shape (n,), or a number
            Losses between 0 and 1, such as ``y_new != model.predict(X_new)``; for rows in groups
            the mean loss of each group. How the rows are divided among calls does not matter.

        Returns
        -------
        self : Monitor
            The monitor, updated in place.

        Raises
        ------
        ValueError
            If losses are not numbers between 0 and 1; the monitor is then unchanged.
        """
        given = _check_losses(losses)
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
        """Return what was certified, what the new rows show, how certain this is, and what to do."""
        is_error, unit = self.unit is None, self.unit or 1.0
        claim = f"An error of at most {format_bound(self.bound)} was certified."
        if not is_error:
            # The product with the unit may exceed the certified bound by rounding.
            bound = format_loss_bound(self.bound * unit * (1 - 1e-12))
            claim = f"A mean loss of at most {bound} was certified."
        if not self._rows:
            return f"{claim} No new rows have come in yet: pass their losses to update."
        mean = self._losses / self._rows
        seen = f"{100 * mean:.1f} %" if is_error else f"{mean * unit:.4g}"
        found = f"{claim} On {format_quantity(self._rows, 'new row')} it is {seen}."
        if self.broken:
            return (
                f"{found} Alarm after row {self._first_alarm:,}: the new rows contradict the "
                f"certificate, under which the probability of any alarm is at most "
                f"{100 * self.alpha:.4g} %. Stop relying on it: look for what has changed in the rows "
                "or labels, then fit and certify again on new rows."
            )
        evidence = f"e-value {self.e_value:.2g}, alarm from {1 / self.alpha:.4g}"
        judged = "No alarm: the new rows do not contradict the certificate"
        if mean > self.bound:
            judged = "This is above the bound, but may be chance: no alarm"
        return f"{found} {judged} ({evidence}). Add further rows as they arrive."

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        """Return the state of this monitor as HTML for notebooks.

        The sentence of ``str()``, and a table.
        """
        mean = "" if self.mean_loss is None else f"{self.mean_loss:.4f}"
        lines = [
            ["rows seen", f"{self._rows:,}"],
            ["mean loss", mean],
            ["guaranteed at most", f"{self.bound:.4f}"],
            ["evidence (e-value)", f"{self.e_value:.4g}"],
            ["alarm at", f"{1 / self.alpha:.4g}"],
            ["first alarm", "none" if self._first_alarm is None else f"row {self._first_alarm:,}"],
        ]
        return make_html_table(str(self), [], lines)


def _check_losses(losses: Any) -> Float64:
    """Return losses of rows as float64 array (n,), after a check that they are between 0 and 1.

    losses: array (n,), or a number, which gives n = 1. Raises ValueError if the check fails.
    """
    given = np.atleast_1d(to_array("losses", losses))
    if given.ndim != 1:
        raise ValueError(f"losses must be a number or one-dimensional, got shape {given.shape}")
    if given.size and given.dtype.kind not in "buif":
        raise ValueError(f"losses must hold numbers from 0 to 1, got dtype {given.dtype}")
    numbers: Float64 = given.astype(np.float64)
    outside = numbers[~((numbers >= 0) & (numbers <= 1))]
    if len(outside):
        raise ValueError(
            f"losses must lie in 0 .. 1, got {float(outside[0])!r}: divide costs by the largest "
            "possible one, as for the bound"
        )
    return numbers
