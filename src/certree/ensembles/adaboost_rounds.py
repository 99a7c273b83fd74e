"""AdaBoost's loop: what a learner misses weighs more for the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64

Codes = NDArray[np.intp]
# Fits a learner to weights of the rows, and says which class it gives each of them.
FitLearner = Callable[[Float64], tuple[Any, Codes]]

# A learner that is better than chance by less than sums of weights are rounded is not.
_ROUNDING = 1e-12
# Weights of rows that no learner misses underflow in the end; an error that is not 0 stays positive.
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class AdaBoostRounds:
    """What the rounds of AdaBoost have made.

    Attributes
    ----------
    learners : list of length T
        The learners that are kept.
    weights : ndarray of shape (T,)
        Their weights alpha; infinite for one that misses no row.
    errors : ndarray of shape (T,)
        The share of the weights of their round that they miss, eps.
    normalizers : ndarray of shape (T,)
        Sums Z of the weights of a round after those of missed rows have grown by ``exp(alpha)`` and
        those of others have fallen by it.
    training_errors : ndarray of shape (T,)
        Share of the rows' weights that the learners so far, together, predict wrongly.
    distribution : ndarray of shape (n,)
        Weights of the rows after the last round, of sum 1.
    """

    learners: list[Any]
    weights: Float64
    errors: Float64
    normalizers: Float64
    training_errors: Float64
    distribution: Float64


def compute_vote_scores(said: Codes, weight: float, n_classes: int) -> Float64:
    """What a learner adds to the scores of rows, (1, n) for two classes and (K, n) for more."""
    if n_classes <= 2:
        return np.where(said == 1, weight, -weight)[None]
    return weight * (said == np.arange(n_classes)[:, None])


def select_best_classes(scores: Float64) -> Codes:
    """The class that scores are for, ties to the first."""
    return (scores[0] > 0).astype(np.intp) if len(scores) == 1 else scores.argmax(axis=0)


def compute_learner_weight(error: float, n_classes: int, learning_rate: float) -> float:
    """Half of the log odds against an error, and half of log(K - 1)."""
    odds = np.log((1 - error) / error) + np.log(n_classes - 1)
    return float(learning_rate * odds / 2)


def run_adaboost(
    teach: FitLearner,
    y: NDArray[Any],
    distribution: Float64,
    n_classes: int,
    n_estimators: int,
    learning_rate: float,
) -> AdaBoostRounds:
    """Fit learners one after the other, each to the weights that those before it leave.

    Parameters
    ----------
    teach : callable
        Fits a learner.
    y : ndarray of int, shape (n,)
        Class of each row.
    distribution : ndarray of shape (n,)
        Weights of the rows in the first round, of sum 1.
    n_classes : int
        Number of classes, K.
    n_estimators : int
        So many learners at most. A learner that misses no row is the last one; one that misses a
        share of 1 - 1/K or more of the weights is dropped, and ends the rounds.
    learning_rate : float
        Factor of the learners' weights, at most 1.

    Returns
    -------
    AdaBoostRounds
    """
    start = distribution
    learners: list[Any] = []
    rounds: list[tuple[float, float, float, float]] = []
    scores = np.zeros((1 if n_classes <= 2 else n_classes, len(y)))
    while len(learners) < n_estimators:
        learner, said = teach(distribution)
        missed = said != y
        if not missed.any():
            learners.append(learner)
            rounds.append((np.inf, 0.0, 0.0, 0.0))
            break
        error = max(float(distribution[missed].sum()), _SMALLEST)
        if error >= 1 - 1 / n_classes - _ROUNDING:
            break
        weight = compute_learner_weight(error, n_classes, learning_rate)
        distribution = distribution * np.exp(np.where(missed, weight, -weight))
        normalizer = float(distribution.sum())
        distribution = distribution / normalizer
        scores += compute_vote_scores(said, weight, n_classes)
        learners.append(learner)
        wrong = float(start[select_best_classes(scores) != y].sum())
        rounds.append((weight, error, normalizer, wrong))
    weights, errors, normalizers, wrongs = np.array(rounds).reshape(-1, 4).T.copy()
    return AdaBoostRounds(learners, weights, errors, normalizers, wrongs, distribution)
