"""How far boosted scores may lie from the true ones: prunings tell the shape, thirds the size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum, sqrt
from typing import Any

import numpy as np

from certree.ensembles.evaluation import scores_together
from certree.ensembles.rounds import Rounds, advance
from certree.interface.arrays import Float64, divide_by_largest
from certree.interface.stored_state import StoredState
from certree.rows.folds import Fold
from certree.rows.training import Training


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """What the standard errors of scores are made of.

    Parameters
    ----------
    deviation : ndarray of shape (m, n_outputs)
        Standard deviation of what the prunings say from the step of each node. Those of the leaves that
        a row reaches add up to how uncertain the row is, beside others.
    scale : ndarray of shape (n_outputs,)
        What these sums are multiplied by.
    constant : ndarray of shape (n_outputs,)
        Standard error of all rows where all prunings say the same, so that sums are 0; else 0.
    """

    deviation: Float64
    scale: Float64
    constant: Float64

    def of(self, said: Float64) -> Float64:
        """Standard errors (n_outputs, n) of rows whose deviations add up to what is said."""
        return said * self.scale[:, None] + self.constant[:, None]

    def to_stored(self) -> dict[str, Any]:
        """What a file holds of them."""
        names = "deviation", "scale", "constant"
        return {f"errors.{name}": getattr(self, name) for name in names}

    @classmethod
    def from_stored(cls, stored: StoredState, shape: tuple[int, ...]) -> StandardErrors:
        """Check what a file holds, of values of this shape."""
        rest = [stored.get_numbers(name, shape[1:], 0) for name in ("scale", "constant")]
        return cls(stored.get_numbers("deviation", shape, 0), *rest)


@dataclass(frozen=True, slots=True)
class ThirdFits:
    """Fits to thirds of the rows, each with all fits that are averaged.

    Two of them and the model are compared by the rows that neither of the two has seen. That they have
    seen a third of the rows makes up for what no comparison tells: what all of them get wrong.
    """

    rows: Training
    folds: Sequence[Fold]
    runs: Sequence[Sequence[Rounds]]

    @classmethod
    def of(
        cls, rows: Training, folds: Sequence[Fold], fits: Callable[[Fold], Sequence[Rounds]]
    ) -> ThirdFits:
        """Those of some rows, before their first round, where one fold judges each third."""
        if len(folds) < 3:
            raise ValueError(
                "standard_errors=True takes at least three rows, or groups if there are some, got "
                f"n_samples={len(rows.y)}"
            )
        turned = [one.swap() for one in folds]
        return cls(rows, turned, [fits(one) for one in turned])

    def errors(
        self, deviation: Float64, said: Float64, scores: Float64, n_rounds: int
    ) -> StandardErrors:
        """Standard errors whose mean square over the rows is what the comparison tells.

        said has the sums of deviations of the rows, and scores what the model says of them,
        (n_outputs, n) each.
        """
        spread = self._spread(scores, n_rounds)
        size = np.array([_root_mean_square(one, self.rows.weight) for one in said])
        scale = np.divide(spread, size, out=np.zeros(len(size)), where=size > 0)
        return StandardErrors(deviation, scale, np.where(size > 0, 0.0, spread))

    def _spread(self, scores: Float64, n_rounds: int) -> Float64:
        """Root of three quarters of the mean square of the differences, (n_outputs,)."""
        advance([run for third in self.runs for run in third], 0, n_rounds)
        said = [self._said(k) for k in range(3)]
        off, weight = [], []
        for k, third in enumerate(self.folds):
            seen = [one[:, third.train] for one in (said[k - 2], said[k - 1], scores)]
            off += [one - other for one, other in combinations(seen, 2)]
            given = self.rows.weight
            weight += [np.ones(len(third.train)) if given is None else given[third.train]] * 3
        differences, weights = np.concatenate(off, axis=1), np.concatenate(weight)
        return sqrt(3) / 2 * np.array([_root_mean_square(one, weights) for one in differences])

    def _said(self, third: int) -> Float64:
        """What the fits to a third say of all rows, (n_outputs, n)."""
        scores, fold = scores_together(self.runs[third]), self.folds[third]
        said = np.empty((len(scores), len(self.rows.y)))
        said[:, np.concatenate([fold.train, fold.validation])] = scores
        return said


def _root_mean_square(values: Float64, weight: Float64 | None) -> float:
    """That of numbers (n,) by their weights, in whatever order they come."""
    largest = float(np.abs(values).max())
    if largest == 0:
        return 0.0
    weight = np.ones(len(values)) if weight is None else divide_by_largest(weight)
    return largest * sqrt(fsum(weight * divide_by_largest(values) ** 2) / fsum(weight))
