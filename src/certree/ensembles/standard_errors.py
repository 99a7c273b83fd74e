"""Standard errors of boosted scores: the relative size by prunings, the scale by fits to thirds.

The standard deviation over prunings says which rows are more uncertain than others. Its scale is
set so that the mean square over rows matches the differences between fits to disjoint thirds of the
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import sqrt

import numpy as np

from certree.ensembles.evaluation import average_scores
from certree.ensembles.rounds import BoostingRun, advance
from certree.interface.arrays import ArrayRecord, Float64, divide_by_largest
from certree.out_of_core.exact_sums import compute_exact_sum
from certree.rows.folds import Fold
from certree.rows.training import Training


@dataclass(frozen=True, slots=True, eq=False)
class StandardErrors(ArrayRecord):
    """Deviations of nodes, and their scale, from which standard errors of new rows are computed.

    m is the number of nodes of all trees of the model, n_outputs the number of scores of a row.

    Parameters
    ----------
    deviation : ndarray of shape (m, n_outputs)
        Standard deviation of the value that a row gets if it reaches the node, over the prunings of its
        tree (subtrees with the same root), weighted as they vote.
    scale : ndarray of shape (n_outputs,)
        Standard error of a row divided by the sum of the deviations of its leaves, over all trees.
    constant : ndarray of shape (n_outputs,)
        Standard error of every row for outputs whose deviations are 0 in all rows of the fit; 0 for
        other outputs.
    """

    deviation: Float64 = field(metadata={"least": 0})
    scale: Float64 = field(metadata={"least": 0})
    constant: Float64 = field(metadata={"least": 0})

    def __post_init__(self) -> None:
        self._check("float64", (None, None), "deviation")
        self._check("float64", self.deviation.shape[1:], "scale", "constant")

    def compute(self, total: Float64) -> Float64:
        """Compute the standard errors of the scores of n rows, (n_outputs, n).

        They are ``scale * total + constant``. total: for each row the sum of `deviation` over the
        leaves that it reaches, (n_outputs, n).
        """
        return total * self.scale[:, None] + self.constant[:, None]


@dataclass(frozen=True, slots=True)
class ThirdFits:
    """Boosted models that are each fitted to one third of the training rows; thirds are disjoint.

    They set the scale of the standard errors of the model that is fitted to all rows. The model is
    not part of this object: pass its scores to `compute_standard_errors`. On each third, the scores
    of the two fits to the other thirds and of the model are compared pair by pair. The scale is in
    proportion to the root mean square of these differences (`scale_standard_errors`). Errors that
    all three have in common do not show in the differences. The larger errors of the fits to thirds
    compensate for that.

    Parameters
    ----------
    rows : Training
        The n training rows of the model.
    folds : sequence of three Fold
        For each third the indices of its rows (`train`) and of all other rows (`validation`).
    runs : sequence of three sequences of BoostingRun
        Boosting runs on the rows of each third; the scores of all runs of a third are averaged.
    """

    rows: Training
    folds: Sequence[Fold]
    runs: Sequence[Sequence[BoostingRun]]

    @classmethod
    def start(
        cls, rows: Training, folds: Sequence[Fold], fits: Callable[[Fold], Sequence[BoostingRun]]
    ) -> ThirdFits:
        """Prepare the boosting runs on each third; no tree is grown yet.

        Parameters
        ----------
        rows : Training
            The n training rows of the model.
        folds : sequence of Fold
            Three folds of a cross-validation. The validation set of a fold is the third on which
            runs are fitted; its training set is the other rows, which only get scores.
        fits : callable
            Takes a fold whose training set is a third and whose validation set is all other rows.
            Returns boosting runs that grow trees on the third, and compute scores of all rows.

        Raises
        ------
        ValueError
            If there are fewer than three folds, as there are fewer than three rows or groups.
        """
        expect_three_thirds(len(folds), len(rows.y))
        turned = [fold.swap() for fold in folds]
        return cls(rows, turned, [fits(fold) for fold in turned])

    def compute_standard_errors(
        self, deviation: Float64, total: Float64, scores: Float64, n_rounds: int
    ) -> StandardErrors:
        """Boost all thirds by n_rounds, and return the scaled standard errors of the model.

        The scale is chosen so that the mean square of the standard errors over the training rows is
        three quarters of the mean squared difference between the fits to thirds, and between these
        and the model.

        Parameters
        ----------
        deviation : ndarray of shape (m, n_outputs)
            Standard deviation of each node's value over the prunings of its tree (subtrees with the
            same root), weighted as they vote.
        total : ndarray of shape (n_outputs, n)
            Sum of the deviations of the leaves that each training row reaches.
        scores : ndarray of shape (n_outputs, n)
            The model's scores of the training rows.
        n_rounds : int
            Number of rounds of the model.

        Returns
        -------
        StandardErrors
            Deviations of nodes, and their scale, from which standard errors of new rows are computed.
        """
        difference = self._compare_scores(scores, n_rounds)
        size = np.array([_root_mean_square(values, self.rows.weight) for values in total])
        return scale_standard_errors(deviation, size, difference)

    def _compare_scores(self, scores: Float64, n_rounds: int) -> Float64:
        """Compute the root mean square of the models' differences, (n_outputs,).

        On each row the scores of three models are compared: those of the two fits to thirds without
        the row, and those of the model. This boosts the fits to thirds by n_rounds rounds. scores:
        the model's scores of the training rows, (n_outputs, n). Rows count by the weights of
        `rows`.
        """
        advance([run for third in self.runs for run in third], 0, n_rounds)
        third_scores = [self._gather_scores(k) for k in range(3)]
        differences, weights = [], []
        for k, third in enumerate(self.folds):
            on_third = [
                values[:, third.train]
                for values in (third_scores[k - 2], third_scores[k - 1], scores)
            ]
            differences += [first - second for first, second in combinations(on_third, 2)]
            row_weight = self.rows.weight
            weights += [
                np.ones(len(third.train)) if row_weight is None else row_weight[third.train]
            ] * 3
        difference, weight = np.concatenate(differences, axis=1), np.concatenate(weights)
        return np.array([_root_mean_square(row, weight) for row in difference])

    def _gather_scores(self, third: int) -> Float64:
        """Return the scores of all n training rows by the model that is fitted to one third of them.

        third: number of the third, 0, 1 or 2. Return (n_outputs, n), rows in the order of `rows`.
        """
        scores, fold = average_scores(self.runs[third]), self.folds[third]
        gathered = np.empty((len(scores), len(self.rows.y)))
        gathered[:, np.concatenate([fold.train, fold.validation])] = scores
        return gathered


def expect_three_thirds(n_thirds: int, n: int) -> None:
    """Raise ValueError unless each of three thirds has rows.

    n_thirds: number of thirds with rows; n: number of all rows, for the message.
    """
    if n_thirds < 3:
        raise ValueError(
            "standard_errors=True needs at least three rows, or three groups if the rows have "
            f"groups, got n_samples={n}: set standard_errors=False or add rows"
        )


def scale_standard_errors(deviation: Float64, size: Float64, difference: Float64) -> StandardErrors:
    """Return standard errors whose scale follows from the differences between models.

    Parameters
    ----------
    deviation : ndarray of shape (m, n_outputs)
        Standard deviation of each node's value over the prunings of its tree (subtrees with the
        same root).
    size : ndarray of shape (n_outputs,)
        Root mean square, over the training rows, of the sum of the deviations of a row's leaves.
    difference : ndarray of shape (n_outputs,)
        Root mean square of the differences between the models that are compared.

    Returns
    -------
    StandardErrors
        The deviations, with the scale ``sqrt(3) / 2 * difference / size``. If `size` is 0, the
        scale is 0, and all rows have the standard error ``sqrt(3) / 2 * difference``.
    """
    spread = sqrt(3) / 2 * difference
    scale = np.divide(spread, size, out=np.zeros(len(size)), where=size > 0)
    return StandardErrors(deviation, scale, np.where(size > 0, 0.0, spread))


def _root_mean_square(values: Float64, weight: Float64 | None) -> float:
    """Compute the weighted root mean square of values (n,); weight (n,), or None for equal weights.

    The sums are exact, so the order of the values does not matter.
    """
    largest = float(np.abs(values).max())
    if largest == 0:
        return 0.0
    weight = np.ones(len(values)) if weight is None else divide_by_largest(weight)
    squares = compute_exact_sum(weight * divide_by_largest(values) ** 2)
    return compute_root_mean_square(largest, squares, compute_exact_sum(weight))


def compute_root_mean_square(largest: float, squares: float, weight: float) -> float:
    """Compute a weighted root mean square, ``largest * sqrt(squares / weight)``; 0 if largest is 0.

    largest: the largest absolute value; squares: sum of weight times squared value, where values are
    divided by the largest, so that the sum does not overflow; weight: sum of the weights.
    """
    return largest * sqrt(squares / weight) if largest > 0 else 0.0
