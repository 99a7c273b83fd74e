"""Monitor of a certified bound: a sequential test on the losses of rows that are labelled later."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.batch_log import BatchLog, check_text
from certree.interface.arrays import MAX_SETTING, Float64, check_column, to_array
from certree.interface.formatting import format_bound, format_loss_bound, format_quantity
from certree.interface.notebook import make_html_table
from certree.interface.signatures import expect_error_probability, validate_settings
from certree.interface.stored_fields import StoredField, restore_fields, store_fields
from certree.interface.stored_state import DamagedModelError, StoredState

# Number of stakes, and the largest one as a fraction of 1 / bound, at which a single loss of 0 would
# make a product 0.
_N_STAKES, _MOST = 8, 0.8
# The fraction of the weights of start times that follow time t is 1 / (1 + _RATE log(1 + t / _SCALE)).
# With these two numbers the delay of an alarm after 100,000 good rows is at most three times the delay
# at the start, where a test without start times would be twice as fast.
_RATE, _SCALE = 0.25, 20.0
# Number of time steps that are processed together.
_CHUNK = 4096
# Most windows of equally many rows whose mean losses are kept for the figure.
_MOST_WINDOWS = 128


def compute_later_weight(time: ArrayLike) -> Any:
    """Return the sum of the weights of all start times after `time`: 1 for time 0, falling to 0.

    A start time is the number of the first loss that a test of the monitor reads; the monitor
    averages the tests of all start times 1, 2, ... with weights that sum to 1. time: integers >= 0
    of any shape, which the result has, too.
    """
    return 1 / (1 + _RATE * np.log1p(np.asarray(time, dtype=np.float64) / _SCALE))


def _compute_log_weights(start: ArrayLike) -> Any:
    """Return the log of the weight of each start time of the monitor's tests.

    With w = `compute_later_weight`, the weight of a start time s is ``w(s - 1) - w(s)``. Its log is
    computed without the cancellation of this difference. start: integers >= 1 of any shape, which
    the result has, too.
    """
    time = np.asarray(start, dtype=np.float64)
    later = np.log(compute_later_weight(time - 1)) + np.log(compute_later_weight(time))
    return math.log(_RATE) + np.log(np.log1p(1 / (_SCALE + time - 1))) + later


@dataclass(eq=False, repr=False)
class Monitor:
    """A sequential test of whether the mean loss of new rows exceeds a certified bound.

    The null hypothesis is: given all earlier losses, the expected value of each loss is at most
    `bound`. It holds for independent rows whose mean loss is at most the bound, even if this mean
    changes. For a stake lambda and a start time s, the product of ``1 + lambda (loss - bound)`` over
    the losses from s on then has a mean of at most 1, and so has `e_value`, a weighted mean over
    eight stakes and all start times. An alarm is raised when `e_value` reaches ``1 / alpha``. While
    the null hypothesis holds, the probability of any alarm is at most alpha, so that you may check
    after each row and for as long as you like. As the weights of later start times fall slowly, the
    delay of an alarm grows only with the logarithm of the number of rows before a change.

    `Certificate.monitor` and `Guarantees.monitor` make the object; `certree.save` and `certree.load`
    keep it between batches. `certree.show.plot_monitor` draws it.

    Parameters
    ----------
    bound : float
        The certified bound on the mean loss, between 0 and 1 (exclusive).
    alpha : float
        Probability with which an alarm may ever be raised while the bound holds.
    unit : float or None
        Number by which losses and `bound` were divided, such as the largest cost; sentences name
        losses in the original unit. None: losses are errors.
    block : int
        Number of consecutive losses whose mean counts as one loss; the null hypothesis is then about
        these means. It holds nearly for dependent rows if a block is about ten times as long as the
        dependence. 1: rows are independent.
    delta : float
        Probability with which the certified bound may be wrong.
    model_hash : str or None
        Hash of the file of the monitored model. `update` then accepts losses of this model only.
        None: losses of any model are accepted, and the monitor cannot be saved.
    grouped : bool
        Whether each loss is the mean loss of a group of rows, such as a customer, as the certificate
        counts groups. Sentences then speak of groups, and `rows` is their number.
    loss : str or None
        What the losses are, such as "cost at threshold 0.1", for sentences; None: errors, or in
        units of `unit` mean losses.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If `bound` or `alpha` is not between 0 and 1, `delta` is not in [0, 1), `block` is below 1,
        `unit` is not a finite number above 0, or `model_hash` is empty.

    References
    ----------
    Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change
    detection", New England Journal of Statistics in Data Science 2024.
    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024.
    Ville, "Etude critique de la notion de collectif", 1939.

    Examples
    --------
    >>> from certree.certificates import hold_out
    >>> monitor = hold_out(errors=30, n=1000).monitor()
    >>> monitor.update([0, 0, 1, 0, 0, 0], batch="May").broken
    False
    >>> monitor.update([0, 1] * 10, batch="June").broken
    True
    >>> monitor.first_alarm, monitor.likely_change
    (14, 3)
    """

    bound: float
    alpha: float = 0.05
    unit: float | None = None
    block: int = 1
    delta: float = 0.0
    model_hash: str | None = None
    grouped: bool = False
    loss: str | None = None

    def __post_init__(self) -> None:
        self._check_settings()
        self._rows, self._sum = 0, 0.0
        n_stakes = len(self._stakes)
        # Logarithms of the products from time 1 on; of the capital of all start times up to the next
        # time, and of the largest capital of one of them, divided by these products; and the start
        # time with this capital.
        self._log_products: Float64 = np.zeros(n_stakes)
        self._log_capital: Float64 = np.full(n_stakes, _compute_log_weights(1))
        self._log_largest: Float64 = self._log_capital
        self._starts: NDArray[np.int64] = np.ones(n_stakes, dtype=np.int64)
        self._pending: Float64 = np.empty(0)
        self._first_alarm: int | None = None
        self._likely_change: int | None = None
        self._window, self._window_sums = 1, np.empty(0)
        self._batches = BatchLog()

    def __stored__(self) -> dict[str, Any]:
        """Return what a file holds of the losses seen so far, as entries by name.

        They are arrays (such as "log_products", the logs of the test's eight products), numbers
        (such as "rows", "sum" and "first_alarm") and the log "batches". Settings are not among them.
        """
        return store_fields(self, _STORED_FIELDS)

    def __restore__(self, stored: StoredState) -> None:
        """Set the state of this monitor from the content of a file, `stored`, after checks.

        Raise a ValueError if an entry is damaged, or entries contradict each other.
        """
        restore_fields(self, _STORED_FIELDS, stored)
        time, starts = self._time, self._starts
        is_consistent = (
            (self._first_alarm is None) == (self._likely_change is None)
            and len(self._pending) < self.block
            and len(self._pending) <= self._rows
            and (self._rows - len(self._pending)) % self.block == 0
            and bool(((starts >= 1) & (starts <= time + 1)).all())
            and 1 <= (self._likely_change or 1) <= (self._first_alarm or 1) <= max(self._rows, 1)
            and len(self._window_sums) == -(-self._rows // self._window) <= _MOST_WINDOWS
            and self._batches.fits(self._rows)
        )
        if not is_consistent:
            raise DamagedModelError(
                "the model file's rows must fit the monitor's pending rows, alarm, windows and "
                f"batches, got {self._rows}"
            )

    def _check_settings(self) -> None:
        """Check the constructor's arguments, and convert numbers to float and int in place.

        Raise TypeError or ValueError if one is invalid.
        """
        for name, value in (("bound", self.bound), ("alpha", self.alpha)):
            if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
                raise TypeError(f"{name} must be a number, got {value!r}")
            if not 0 < value < 1:
                vacuous = ": no mean loss can exceed a bound of 1, so no rows can contradict it"
                reason = vacuous if name == "bound" and value == 1 else ""
                raise ValueError(f"{name} must lie between 0 and 1, got {value!r}{reason}")
        validate_settings(self)
        self.bound, self.alpha, self.delta = float(self.bound), float(self.alpha), float(self.delta)
        if self.unit is not None:
            if not 0 < self.unit < math.inf:
                raise ValueError(f"unit must be None or a finite number above 0, got {self.unit!r}")
            self.unit = float(self.unit)
        if self.block < 1:
            raise ValueError(f"block must be an integer >= 1, got {self.block!r}")
        self.block = int(self.block)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta!r}")
        expect_error_probability(self.delta)
        for name in ("model_hash", "loss"):
            if (text := getattr(self, name)) is not None:
                check_text(name, text)

    @property
    def _stakes(self) -> Float64:
        """The stakes lambda in the monitor's products of ``1 + lambda (loss - bound)``, array (8,).

        They depend on the bound alone, and are a geometric sequence in ascending order. For losses
        0 and 1 the smallest one is best if the mean loss is 1.25 * bound, or ``bound + 0.25 * (1 -
        bound)`` if that is less. The largest one is 0.8 / bound, at most 1e150.
        """
        largest = min(_MOST / self.bound, MAX_SETTING)
        return np.geomspace(0.25 / max(self.bound, 1 - self.bound), largest, _N_STAKES)

    @property
    def _time(self) -> int:
        """Number of time steps so far: complete blocks of `block` consecutive rows."""
        return (self._rows - len(self._pending)) // self.block

    @property
    def rows(self) -> int:
        """Number of rows, or of groups of rows, whose losses this monitor has seen."""
        return self._rows

    @property
    def mean_loss(self) -> float | None:
        """Mean loss of the rows that this monitor has seen; None before the first row."""
        return self._sum / self._rows if self._rows else None

    @property
    def batches(self) -> tuple[str, ...]:
        """Names of the batches that were added, in their order; batches without a name are left out."""
        return tuple(self._batches)

    @property
    def log_e_value(self) -> float:
        """Natural logarithm of `e_value`, which is finite even if `e_value` overflows."""
        log_capital = self._log_products + self._log_capital
        return float(_compute_log_e_value(log_capital, self._time))

    @property
    def e_value(self) -> float:
        """Evidence against the bound after the rows seen so far, a number >= 0.

        While the bound holds its mean is at most 1. It is the weighted mean of products of ``1 +
        stake (loss - bound)`` over the rows from a start time on; start times that have not come
        yet count with the product 1.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_e_value))

    @property
    def broken(self) -> bool:
        """Whether this monitor has raised an alarm: once True, it stays True.

        An alarm is raised when `e_value` is at least ``1 / alpha`` after a row.
        """
        return self._first_alarm is not None

    @property
    def first_alarm(self) -> int | None:
        """Number of the row, from 1, after which the alarm was raised; None: no alarm."""
        return self._first_alarm

    @property
    def likely_change(self) -> int | None:
        """Number of the row, from 1, at which the mean loss probably rose; None: no alarm.

        It is the start time with the largest weighted product at the time of the alarm, an estimate
        without a guarantee.
        """
        return self._likely_change

    @property
    def false_alarm_probability(self) -> float:
        """Upper bound on the probability of any alarm if the source of the rows has not changed.

        It is ``alpha + delta``: the certified bound fails with probability at most delta, and while
        it holds, an alarm has probability at most alpha.
        """
        return min(self.alpha + self.delta, 1.0)

    @property
    def window_means(self) -> tuple[int, Float64]:
        """Rows per window, and the mean loss in each of at most 128 windows of so many rows.

        Windows follow each other in the order of the rows; the last one may be shorter. Their
        length doubles as rows arrive.
        """
        n_rows = np.full(len(self._window_sums), self._window)
        if len(n_rows):
            n_rows[-1] = self._rows - self._window * (len(n_rows) - 1)
        return self._window, self._window_sums / n_rows

    def update(
        self, losses: ArrayLike, *, batch: str | None = None, model_hash: str | None = None
    ) -> Self:
        """Add the losses of new rows.

        Labels may arrive late and in any order that does not depend on them: the next loss must
        not be more likely to be large because its label is known early. Wait, for instance, until
        the outcomes of all rows of a month are known.

        Parameters
        ----------
        losses : array-like of shape (n,), or a number
            Losses between 0 and 1, such as ``y_new != model.predict(X_new)``; for rows in groups
            the mean loss of each group. How the rows are divided among calls does not matter.
        batch : str or None
            Name of the batch, such as "2026-07". A name that was used before is refused, so that no
            batch counts twice. None: the batch has no name, and is not checked.
        model_hash : str or None
            Hash of the file of the model that made the predictions. It must equal the attribute
            `model_hash`, unless that is None.

        Returns
        -------
        self : Monitor
            The monitor, updated in place.

        Raises
        ------
        ValueError
            If losses are not numbers between 0 and 1, the batch was added before, or it is of
            another model; the monitor is then unchanged.
        """
        values = _check_losses(losses)
        self._batches.check(batch, model_hash, self.model_hash)
        waiting = np.concatenate([self._pending, values])
        n_steps = len(waiting) // self.block
        steps = waiting[: n_steps * self.block].reshape(n_steps, self.block).mean(axis=1)
        for first in range(0, n_steps, _CHUNK):
            self._add_steps(steps[first : first + _CHUNK], self._time + first)
        self._pending = waiting[n_steps * self.block :]
        self._add_to_windows(values)
        self._batches.add(batch, self._rows, len(values))
        self._sum += float(values.sum())
        self._rows += len(values)
        return self

    def _add_steps(self, steps: Float64, time: int) -> None:
        """Update the state of the test by the losses of consecutive time steps.

        The state are the products of ``1 + stake (loss - bound)``, for eight stakes and all start
        times. Also store the first alarm, if there is one. steps: loss of each time step (mean of
        `block` rows), (n_steps,), at most `_CHUNK` = 4096; time: number of time steps before them.
        """
        factors = np.log1p(self._stakes * (steps[:, None] - self.bound))
        products = np.cumsum(np.vstack([self._log_products, factors]), axis=0)[1:]
        times = np.arange(time + 1, time + len(steps) + 1)
        entering = _compute_log_weights(times + 1)[:, None] - products
        capital = np.logaddexp.accumulate(np.vstack([self._log_capital, entering]), axis=0)
        largest = np.maximum.accumulate(np.vstack([self._log_largest, entering]), axis=0)
        is_larger = entering > largest[:-1]
        starts = np.where(is_larger, times[:, None] + 1, 0)
        starts = np.maximum.accumulate(np.vstack([self._starts, starts]), axis=0)
        if self._first_alarm is None:
            evidence = _compute_log_e_value(products + capital[1:], times)
            reached = np.flatnonzero(evidence >= -math.log(self.alpha))
            if len(reached):
                i = int(reached[0])
                self._first_alarm = (time + i + 1) * self.block
                start = int(starts[i, np.argmax(products[i] + largest[i])])
                self._likely_change = (start - 1) * self.block + 1
        self._log_products, self._log_capital = products[-1], capital[-1]
        self._log_largest, self._starts = largest[-1], starts[-1]

    def _add_to_windows(self, values: Float64) -> None:
        """Add the losses of new rows to the sums of the windows that the figure shows.

        A window is a number of consecutive rows whose mean loss is kept; windows are merged in
        pairs when there are more than 128. values: losses of the rows, (n,). Call it before `_rows`
        counts these rows.
        """
        sums, n_rows = self._window_sums, self._rows + len(values)
        while n_rows > _MOST_WINDOWS * self._window:
            sums = np.append(sums, np.zeros(len(sums) % 2)).reshape(-1, 2).sum(axis=1)
            self._window *= 2
        index = np.arange(self._rows, n_rows) // self._window
        n_windows = -(-n_rows // self._window)
        added = np.bincount(index, weights=values, minlength=n_windows).astype(np.float64)
        added[: len(sums)] += sums
        self._window_sums = added

    def __str__(self) -> str:
        """Return the state of this monitor as sentences.

        They say what was certified, the mean loss of the new rows, whether there was an alarm and
        how certain it is, and what to do.
        """
        claim, word = self._describe_claim(), self._noun
        if not self._rows:
            return f"{claim} No new {word}s have come in yet: pass their losses to update."
        mean = self._sum / self._rows
        seen = f"{100 * mean:.1f} %" if self.unit is None else f"{mean * self.unit:.4g}"
        found = f"{claim} On {format_quantity(self._rows, f'new {word}')} it is {seen}."
        chance = f"{100 * self.false_alarm_probability:.4g} %"
        if self._first_alarm is not None and self._likely_change is not None:
            places = self._first_alarm, self._likely_change
            alarm, change = (self._batches.locate(place, word) for place in places)
            return (
                f"{found} Alarm after {alarm}: the losses probably rose at {change}. If the {word}s "
                "still came from the certified source, the probability of any alarm would be at most "
                f"{chance}. Stop relying on "
                "the certificate: look for what has changed in the rows or labels, then fit and "
                "certify again on new rows."
            )
        evidence = f"e-value {self.e_value:.2g}, alarm from {1 / self.alpha:.4g}"
        judged = f"No alarm: the new {word}s do not contradict the certificate"
        if mean > self.bound:
            judged = "This is above the bound, but may be chance: no alarm"
        return f"{found} {judged} ({evidence}). Add further {word}s as they arrive."

    @property
    def _noun(self) -> str:
        """The noun for what one loss belongs to, in sentences: "row" or "group"."""
        return "group" if self.grouped else "row"

    def _describe_claim(self) -> str:
        """Return a sentence that names the certified bound and what it bounds, such as the error."""
        of = "" if self.loss is None else f" ({self.loss})"
        if self.unit is None:
            return f"An error{of} of at most {format_bound(self.bound)} was certified."
        # The product with the unit may exceed the certified bound by rounding.
        bound = format_loss_bound(self.bound * self.unit * (1 - 1e-12))
        return f"A mean loss{of} of at most {bound} was certified."

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        """Return the state of this monitor as HTML for notebooks.

        It holds the sentences of ``str()``, and a table of rows seen, mean loss, bound, e-value
        and alarm.
        """
        mean = "" if self.mean_loss is None else f"{self.mean_loss:.4f}"
        alarm, change = (
            "none" if row is None else self._batches.locate(row, self._noun)
            for row in (self._first_alarm, self._likely_change)
        )
        lines = [
            [f"{self._noun}s seen", f"{self._rows:,}"],
            ["mean loss", mean],
            ["guaranteed at most", f"{self.bound:.4f}"],
            ["evidence (e-value)", f"{self.e_value:.4g}"],
            ["alarm at", f"{1 / self.alpha:.4g}"],
            ["first alarm", alarm],
            ["likely change", change],
            ["probability of a false alarm", f"at most {100 * self.false_alarm_probability:.4g} %"],
        ]
        return make_html_table(str(self), [], lines)


def _compute_log_e_value(log_capital: Float64, time: Any) -> Any:
    """Return the log of `Monitor.e_value`, the evidence against the bound, after some numbers of steps.

    log_capital: for each of the eight stakes, the log of the weighted sum, over the start times up
    to time + 1, of the products of ``1 + stake (loss - bound)`` from the start time on, (..., 8);
    time: numbers of time steps, (...). The result has the shape of `time`.
    """
    mean = np.logaddexp.reduce(log_capital, axis=-1) - math.log(_N_STAKES)
    return np.logaddexp(mean, np.log(compute_later_weight(np.asarray(time) + 1)))


def _check_losses(losses: Any) -> Float64:
    """Return losses of rows as float64 array (n,), after a check that they are between 0 and 1.

    losses: array (n,), or a number, which gives n = 1. Raises ValueError if the check fails.
    """
    given = np.atleast_1d(to_array("losses", losses))
    if given.ndim != 1:
        raise ValueError(
            f"losses must be a number or one-dimensional, got shape {given.shape}: pass one loss for "
            "each row"
        )
    if given.size and given.dtype.kind not in "buif":
        raise ValueError(
            f"losses must hold numbers from 0 to 1, got dtype {given.dtype}: pass losses, such as "
            "y_new != model.predict(X_new), not labels"
        )
    numbers: Float64 = given.astype(np.float64)
    outside = numbers[~((numbers >= 0) & (numbers <= 1))]
    if len(outside):
        raise ValueError(
            f"losses must lie in 0 .. 1, got {float(outside[0])!r}: divide costs by the largest "
            "possible one, as for the bound"
        )
    return numbers


def _restore_starts(stored: StoredState, name: str, model: Any) -> NDArray[np.int64]:  # noqa: ARG001
    """Return the start times of a monitor in a file, (8,) int64: that of the largest product by stake.

    A start time is the number, from 1, of the first time step that a product reads. stored, name:
    the content of the file, and the name of the entry; model: not used. Raise ValueError if the
    entry is not such an array.
    """
    return check_column(name, stored[name], "int64", (_N_STAKES,))


_STORED_FIELDS = {
    "rows": StoredField.value("_rows", int),
    "sum": StoredField.value("_sum", float),
    "log_products": StoredField.numbers("_log_products", (_N_STAKES,)),
    "log_capital": StoredField.numbers("_log_capital", (_N_STAKES,)),
    "log_largest": StoredField.numbers("_log_largest", (_N_STAKES,)),
    "starts": StoredField("_starts", _restore_starts),
    "pending": StoredField.numbers("_pending", (None,), 0, 1),
    "first_alarm": StoredField.value("_first_alarm", int | None, 1),
    "likely_change": StoredField.value("_likely_change", int | None, 1),
    "window": StoredField.value("_window", int, 1),
    "window_sums": StoredField.numbers("_window_sums", (None,), 0),
    "batches": BatchLog.make_stored_field("_batches"),
}
