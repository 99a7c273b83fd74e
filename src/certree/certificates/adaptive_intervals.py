"""Adaptive prediction intervals: their width follows the errors, so that coverage holds over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from certree.certificates.batch_log import BatchLog, check_text
from certree.interface.arrays import Float64, check_column
from certree.interface.formatting import format_quantity
from certree.interface.signatures import validate_settings
from certree.interface.stored_fields import StoredField, restore_fields, store_fields
from certree.interface.stored_state import DamagedModelError, StoredState

# Most rows of a batch that count: a batch is predicted with one width, and would move it too far.
_MOST_ROWS = 10
# The factor of the widths lies between exp(-_MOST_LOG) and exp(_MOST_LOG), so that it stays finite.
_MOST_LOG = 100.0


@dataclass(eq=False, repr=False)
class AdaptiveIntervals:
    """Prediction intervals over time, whose widths grow after misses and shrink after hits.

    `adjust` multiplies the widths of the intervals of a model by `factor`. When the targets are
    known, `update` raises or lowers the factor: a batch of n rows with the fraction m outside of
    their intervals multiplies it by ``exp(step * min(n, 10) * (m - (1 - coverage)))``.

    Let a batch of n rows have the weight min(n, 10), let W be the total weight of all batches, D the
    largest weight of batches whose intervals were computed and whose targets were still missing,
    and S the factor that would have been enough for all rows. Then the weighted mean of the
    fractions of targets outside of their intervals is at most::

        1 - coverage + (max(log(S), 0) / step + coverage * D) / W

    This holds for every sequence of rows, also if they depend on each other or drift: it is no
    statement about probabilities. Row by row, D is 1, and the mean is that over rows. It is about
    the long run: in each single period coverage may be lower.

    Parameters
    ----------
    coverage : float
        Fraction of new rows whose interval contains the target, between 0 and 1 (exclusive).
    step : float
        How fast the widths follow the errors, between 0 and 1 (exclusive): the logarithm of the
        factor rises by ``step * coverage`` after a row outside of its interval. Small steps vary
        less, and take longer after a change.
    model_hash : str or None
        Hash of the file of the model. `update` then accepts intervals of this model only. None:
        those of any model are accepted, and the object cannot be saved.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If `coverage` or `step` is not between 0 and 1, or `model_hash` is empty.

    References
    ----------
    Gibbs and Candes, "Adaptive conformal inference under distribution shift", NeurIPS 2021.
    Angelopoulos, Candes and Tibshirani, "Conformal PID control for time series prediction", NeurIPS
    2023, whose quantile tracker this is, for the logarithms of scores.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.certificates import AdaptiveIntervals
    >>> adaptive = AdaptiveIntervals(coverage=0.8)
    >>> for day in range(1000):
    ...     interval = adaptive.adjust([[-1.0, 1.0]])
    ...     adaptive = adaptive.update(interval, [3 * np.sin(day)])
    >>> round(adaptive.covered, 2), round(adaptive.factor, 1)
    (0.78, 2.7)
    """

    coverage: float = 0.9
    step: float = 0.05
    model_hash: str | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        for name in ("coverage", "step"):
            value = float(getattr(self, name))
            if not 0 < value < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
            setattr(self, name, value)
        if self.model_hash is not None:
            check_text("model_hash", self.model_hash)
        self._log_factor, self._rows, self._n_covered = 0.0, 0, 0
        self._batches = BatchLog()

    def __stored__(self) -> dict[str, Any]:
        """Return what a file holds of the batches seen so far, by name.

        The entries are "log_factor" (logarithm of `factor`), "rows" and "n_covered" (numbers of rows
        with known targets, and of those in their intervals), and "batches" (names, and numbers of
        their rows).
        """
        return store_fields(self, _STORED_FIELDS)

    def __restore__(self, stored: StoredState) -> None:
        """Set the state of this object from the content of a file, `stored`, after checks.

        Raise a ValueError if an entry is damaged, or entries contradict each other.
        """
        restore_fields(self, _STORED_FIELDS, stored)
        if self._n_covered > self._rows or not self._batches.fits(self._rows):
            raise DamagedModelError(
                "the model file's rows must be at least n_covered, and the last row of batches, got "
                f"{self._rows}"
            )

    @property
    def factor(self) -> float:
        """Number by which `adjust` multiplies the widths of intervals; 1 before the first update."""
        return math.exp(self._log_factor)

    @property
    def rows(self) -> int:
        """Number of rows with known targets: those passed to `update` so far."""
        return self._rows

    @property
    def covered(self) -> float | None:
        """Fraction of the rows with known targets whose interval contained the target.

        The rows are those passed to `update`. None before the first row.
        """
        return self._n_covered / self._rows if self._rows else None

    @property
    def batches(self) -> tuple[str, ...]:
        """Names of the batches that were added, in their order; batches without a name are left out."""
        return tuple(self._batches)

    def adjust(self, intervals: ArrayLike) -> Float64:
        """Multiply the widths of intervals by `factor`; their centres stay.

        Parameters
        ----------
        intervals : array-like of shape (n, 2)
            Lower and upper ends, such as ``model.predict_interval(X)``. Widths must be above 0.

        Returns
        -------
        ndarray of float64, shape (n, 2)
            The intervals to use, and to pass to `update` when the targets are known. Intervals from
            -inf to inf stay as they are.

        Raises
        ------
        ValueError
            If the shape is not (n, 2), an end is NaN, a lower end is not below the upper one, or
            only one end is infinite.
        """
        ends = _check_intervals(intervals)
        if (ends[:, 0] == ends[:, 1]).any():
            raise ValueError(
                "intervals must have widths above 0, as a factor cannot widen a point, got equal ends: "
                "widen these intervals first, for instance by the smallest error that matters"
            )
        if np.isinf(ends).any(axis=1).sum() > np.isinf(ends).all(axis=1).sum():
            raise ValueError(
                "intervals must have two finite or two infinite ends, got one infinite end, with which "
                "the width is infinite: replace it by the smallest or largest possible target"
            )
        low, high = ends.T
        with np.errstate(over="ignore", invalid="ignore"):
            half = self.factor * (high / 2 - low / 2)
            middle = low / 2 + high / 2
            adjusted = np.column_stack([middle - half, middle + half])
        return np.where(np.isinf(ends), ends, adjusted)

    def update(
        self,
        intervals: ArrayLike,
        y: ArrayLike,
        *,
        batch: str | None = None,
        model_hash: str | None = None,
    ) -> Self:
        """Add the targets of a batch, and change the factor by the fraction outside of the intervals.

        Targets may arrive late, and batches in any order.

        Parameters
        ----------
        intervals : array-like of shape (n, 2)
            The intervals that `adjust` returned for these rows.
        y : array-like of shape (n,)
            Their targets.
        batch : str or None
            Name of the batch, such as "2026-07". A name that was used before is refused, so that no
            batch counts twice. None: the batch has no name, and is not checked.
        model_hash : str or None
            Hash of the file of the model that made the intervals. It must equal the attribute
            `model_hash`, unless that is None.

        Returns
        -------
        self : AdaptiveIntervals
            The object, updated in place.

        Raises
        ------
        ValueError
            If shapes differ, numbers are not finite, the batch was added before, or it is of
            another model; the object is then unchanged.
        """
        ends = _check_intervals(intervals)
        truth: Float64 = check_column("y", y, "float64", (len(ends),))
        if not np.isfinite(truth).all():
            raise ValueError(
                "y must hold finite numbers, got NaN or an infinite number: leave out these rows, or "
                "update later, when their targets are known"
            )
        self._batches.check(batch, model_hash, self.model_hash)
        n = len(truth)
        n_covered = int(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum())
        if n:
            excess = (n - n_covered) / n - (1 - self.coverage)
            moved = self._log_factor + self.step * min(n, _MOST_ROWS) * excess
            self._log_factor = min(max(moved, -_MOST_LOG), _MOST_LOG)
        self._batches.add(batch, self._rows, n)
        self._rows, self._n_covered = self._rows + n, self._n_covered + n_covered
        return self

    def __str__(self) -> str:
        """Return a sentence on the targets that were in their intervals, the coverage and the factor.

        The factor is the number by which `adjust` multiplies widths now.
        """
        asked = f"{100 * self.coverage:.4g} %"
        if not self._rows:
            return (
                f"Intervals shall contain {asked} of the targets. No targets have come in yet: pass "
                "them to update."
            )
        return (
            f"{100 * self._n_covered / self._rows:.1f} % of {format_quantity(self._rows, 'target')} "
            f"were in their intervals ({asked} are asked for). Intervals are now {self.factor:.3g} "
            "times as wide as those of the model."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


def _check_intervals(intervals: Any) -> Float64:
    """Return prediction intervals as a float64 array (n, 2), after checks.

    intervals: lower and upper end of each, (n, 2). Ends may be infinite. Raise ValueError if the
    shape is not (n, 2), an end is NaN, or a lower end is above the upper one.
    """
    ends: Float64 = check_column("intervals", intervals, "float64", (None, 2))
    is_wrong = ~(ends[:, 0] <= ends[:, 1])
    if is_wrong.any():
        first = ends[np.argmax(is_wrong)].tolist()
        raise ValueError(
            f"intervals must hold lower ends that are at most the upper ends, got {first}: pass what "
            "adjust returned"
        )
    return ends


_STORED_FIELDS = {
    "log_factor": StoredField.value("_log_factor", float, -_MOST_LOG, _MOST_LOG),
    "rows": StoredField.value("_rows", int),
    "n_covered": StoredField.value("_n_covered", int),
    "batches": BatchLog.make_stored_field("_batches"),
}
