"""The rounds of AdaBoost: each learner is fitted to weights that rise on rows missed before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64

# Class codes of rows or nodes.
Codes = NDArray[np.intp]
# Fits a learner to rows of given weights (n,); returns it, and the class codes (n,) that it
# predicts.
FitLearner = Callable[[Float64], tuple[Any, Codes]]

# Tolerance when the error of a learner is compared with chance, as sums of weights are rounded.
_ROUNDING = 1e-12
# Smallest error of a learner that misses a row. Weights of rows can underflow to 0.
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class AdaBoostRounds:
    """The learners of T rounds of AdaBoost, and one number of each kind for each round.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    learners : list of length T
        The fitted learners.
    weights : ndarray of shape (T,)
        Weight alpha of each learner in the vote; infinite for one that misses no row.
    errors : ndarray of shape (T,)
        Error eps of each learner: the sum of its round's row weights, which sum up to 1, over the
        rows that it misses.
    normalizers : ndarray of shape (T,)
        Z of each round: the sum of the row weights after those of missed rows were multiplied by
        ``exp(alpha)`` and the others by ``exp(-alpha)``.
    training_errors : ndarray of shape (T,)
        Weighted error on the training rows of the vote of all learners so far, by the row weights
        of the first round.
    distribution : ndarray of shape (n,)
        Row weights after the last round, of sum 1.
    """

    learners: list[Any]
    weights: Float64
    errors: Float64
    normalizers: Float64
    training_errors: Float64
    distribution: Float64


def compute_vote_scores(codes: Codes, weight: float, n_classes: int) -> Float64:
    """Compute what one learner adds to the scores of n rows (or n nodes of its tree).

    codes: class codes that the learner predicts, (n,); weight: the learner's weight alpha;
    n_classes: number of classes. Return (1, n) for at most two classes: +weight where the code is
    1, else -weight; and (n_classes, n) for more: weight at the predicted class, else 0.
    """
    if n_classes <= 2:
        return np.where(codes == 1, weight, -weight)[None]
    return weight * (codes == np.arange(n_classes)[:, None])


def select_best_classes(scores: Float64) -> Codes:
    """Return the code of the class with the highest score for each of n rows, (n,).

    scores: one for each of K classes, (K, n), where ties go to the first; or a single one, (1, n),
    which is above 0 for the second of two classes (code 1), else the code is 0.
    """
    return (scores[0] > 0).astype(np.intp) if len(scores) == 1 else scores.argmax(axis=0)


def compute_learner_weight(error: float, n_classes: int, learning_rate: float) -> float:
    """Compute a learner's weight alpha from its error, in (0, 1).

    It is ``learning_rate / 2 * (ln((1 - error) / error) + ln(n_classes - 1))``: half of the weight
    in SAMME (Zhu et al., 2009), and that of AdaBoost for two classes. It is positive if the error
    is below 1 - 1/n_classes.
    """
    odds = np.log((1 - error) / error) + np.log(n_classes - 1)
    return float(learning_rate * odds / 2)


def run_adaboost(
    fit_learner: FitLearner,
    y: NDArray[Any],
    distribution: Float64,
    n_classes: int,
    n_estimators: int,
    learning_rate: float,
) -> AdaBoostRounds:
    """Fit learners one by one; after each, raise the weights of the rows that it misses.

    The rounds end early after a learner that misses no row, and before a learner whose error is at
    least 1 - 1/K, which is dropped.

    Parameters
    ----------
    fit_learner : callable
        Fits a learner to the rows with weights (n,), of sum 1; returns it, and the class codes (n,)
        that it predicts for the rows.
    y : ndarray of int, shape (n,)
        Class code of each row.
    distribution : ndarray of shape (n,)
        Row weights in the first round, of sum 1.
    n_classes : int
        Number of classes, K.
    n_estimators : int
        Largest number of learners.
    learning_rate : float
        Factor of the learners' weights, at most 1.

    Returns
    -------
    AdaBoostRounds
        Of T <= n_estimators rounds; T is 0 if the first learner is dropped.
    """
    start = distribution
    learners: list[Any] = []
    rounds: list[tuple[float, float, float, float]] = []
    scores = np.zeros((1 if n_classes <= 2 else n_classes, len(y)))
    while len(learners) < n_estimators:
        learner, codes = fit_learner(distribution)
        is_missed = codes != y
        if not is_missed.any():
            learners.append(learner)
            rounds.append((np.inf, 0.0, 0.0, 0.0))
            break
        error = max(float(distribution[is_missed].sum()), _SMALLEST)
        if error >= 1 - 1 / n_classes - _ROUNDING:
            break
        weight = compute_learner_weight(error, n_classes, learning_rate)
        distribution = distribution * np.exp(np.where(is_missed, weight, -weight))
        normalizer = float(distribution.sum())
        distribution = distribution / normalizer
        scores += compute_vote_scores(codes, weight, n_classes)
        learners.append(learner)
        training_error = float(start[select_best_classes(scores) != y].sum())
        rounds.append((weight, error, normalizer, training_error))
    weights, errors, normalizers, training_errors = np.array(rounds).reshape(-1, 4).T.copy()
    return AdaBoostRounds(learners, weights, errors, normalizers, training_errors, distribution)
