"""Automatic parameters of boosted trees, by task, number of rows and quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

# Numbers of training rows at which the tables below have entries. Between them, numbers of rounds and
# leaves are interpolated on logarithmic scales, so that the time of a fit has no jumps.
_ROWS = (1000, 3000, 10_000, 30_000)
# Learning rate for which the numbers of rounds hold. Smaller rates get more rounds in inverse
# proportion, by at most the factor.
_REFERENCE_RATE, _MAX_RATE_FACTOR = 0.1, 20
# Largest number of rounds with early stopping, which ends nearly all fits before.
_MAX_STOPPED_ROUNDS = 1600
# With quality "best" there may be this many times as many rounds before early stopping ends a fit.
_BEST_STOPPED_FACTOR = 3
# With quality "fast" and more outputs than this, the number of rounds grows in proportion to the
# outputs, by at most the factor.
_FAST_OUTPUTS, _MAX_FAST_FACTOR = 3, 4
# A tree draws one threshold of a feature for so many rows, and at least so many thresholds.
_ROWS_PER_THRESHOLD, _MIN_THRESHOLDS = 500, 6


# Thresholds at which the trees of all rounds may split: a number that each tree draws, or this number
# and all of them in turn.
Thresholds = Literal["drawn", "in turn"]


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """Automatic parameters of a boosted fit to a given number of rows.

    Numbers of rounds hold for the learning rate 0.1.

    Parameters
    ----------
    n_folds : int
        How many of the four folds choose the number of rounds by their validation loss; 0: there are
        `max_rounds` rounds.
    min_rounds, max_rounds : int
        Smallest and largest number of rounds that folds may choose.
    step_factor : int
        Largest factor of the learning rate in fits that only choose the number of rounds.
    max_leaf_nodes : int
        Largest number of leaves of a tree.
    thresholds : tuple of (int or None)
        Number of random thresholds of a feature at which the tree of a round may split; None: all
        thresholds. Rounds use the entries in turn.
    """

    n_folds: int
    min_rounds: int
    max_rounds: int
    step_factor: int
    max_leaf_nodes: int
    thresholds: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """Automatic parameters of boosted trees for one task: classes, numbers or rankings.

    Tuples have one entry each for 1000, 3000, 10,000 and 30,000 training rows. Between two of these,
    folds, factors and thresholds are those of the smaller one; other numbers are interpolated. Below
    1000 and above 30,000 rows they are constant. Numbers of rounds hold for the learning rate 0.1.

    The values were chosen by the curve of loss against CPU time on the tables that
    `benchmarks.tables.has_chosen_defaults` names. `benchmarks/boosting.py` compares loss and CPU time
    with other libraries.

    Parameters
    ----------
    n_members, best_factor : int
        Number of fits that are averaged with quality "best", and the factor by which their
        `max_rounds` is multiplied.
    fast_rounds : int
        Number of rounds with quality "fast": as many as LightGBM's default makes in the same CPU
        time.
    learning_rate : float
        Automatic learning rate of fits whose number of rounds is `max_rounds`, or chosen by folds. In
        all other fits it is 0.1.
    n_folds : tuple of int
        How many of the four folds choose the number of rounds by their validation loss; 0: it is
        `max_rounds`.
    min_rounds, max_rounds : tuple of int
        Smallest and largest number of rounds that folds may choose. The smallest one guards against
        folds whose loss rises early by chance.
    step_factor : tuple of int
        Largest factor of the learning rate in fits that only choose the number of rounds. With
        longer steps they need fewer rounds.
    max_leaf_nodes : tuple of int
        Largest number of leaves of a tree.
    thresholds : tuple of {"drawn", "in turn"}
        At which thresholds trees may split. "drawn": at random ones, one for each 500 rows and at
        least 6 of each feature; "in turn": rounds alternate between these and all thresholds.
    """

    n_members: int
    best_factor: int
    fast_rounds: int
    learning_rate: float
    n_folds: tuple[int, int, int, int]
    min_rounds: tuple[int, int, int, int]
    max_rounds: tuple[int, int, int, int]
    step_factor: tuple[int, int, int, int]
    max_leaf_nodes: tuple[int, int, int, int]
    thresholds: tuple[Thresholds, Thresholds, Thresholds, Thresholds]

    def plan(self, n: int, quality: str) -> RoundPlan:
        """Return the automatic parameters of a fit to n rows.

        quality: parameter of the model, "fast", "default" or "best".
        """
        entry = max(sum(n >= rows for rows in _ROWS) - 1, 0)
        factor = self.best_factor if quality == "best" else 1
        drawn = (max(_MIN_THRESHOLDS, n // _ROWS_PER_THRESHOLD),)
        is_drawn = self.thresholds[entry] == "drawn" or quality == "fast"
        return RoundPlan(
            n_folds=self.n_folds[entry],
            min_rounds=_interpolate(n, self.min_rounds),
            max_rounds=_interpolate(n, self.max_rounds) * factor,
            step_factor=self.step_factor[entry],
            max_leaf_nodes=_interpolate(n, self.max_leaf_nodes),
            thresholds=drawn if is_drawn else (*drawn, None),
        )

    def count_fast_rounds(self, n_outputs: int) -> int:
        """Return the number of rounds with quality "fast", at the learning rate 0.1.

        It is the field `fast_rounds` for at most 3 outputs; with more it grows in proportion, to at
        most four times as many. n_outputs: number of scores of a row, such as classes.
        """
        factor = min(max(n_outputs / _FAST_OUTPUTS, 1), _MAX_FAST_FACTOR)
        return round(self.fast_rounds * factor)

    def get_learning_rate(self, *, follows_table: bool) -> float:
        """Return the automatic learning rate: the field `learning_rate` if `follows_table`, else 0.1.

        follows_table: whether the number of rounds is `max_rounds`, or chosen by cross-validation,
        and not by `max_iter`, quality "fast" or early stopping.
        """
        return self.learning_rate if follows_table else _REFERENCE_RATE


def count_stopped_rounds(quality: str) -> int:
    """Return the largest number of rounds with early stopping, at the learning rate 0.1.

    It is 1600 for quality "fast" and "default", and three times as many for "best".
    """
    return _MAX_STOPPED_ROUNDS * (_BEST_STOPPED_FACTOR if quality == "best" else 1)


def get_rate_factor(learning_rate: float) -> int:
    """Return the factor of the number of rounds for a learning rate below 0.1: 0.1 / rate.

    It is rounded, and at most 20; rates of at least 0.1 have the factor 1.
    """
    return round(min(max(_REFERENCE_RATE / learning_rate, 1), _MAX_RATE_FACTOR))


def _interpolate(n: int, values: tuple[int, int, int, int]) -> int:
    """Interpolate a value for n rows between four table entries, and round it.

    values: entries for 1000, 3000, 10,000 and 30,000 rows. Both scales are logarithmic.
    """
    return round(float(np.exp(np.interp(np.log(max(n, 1)), np.log(_ROWS), np.log(values)))))


# Entries are for 1000, 3000, 10,000 and 30,000 rows.
CLASS_SCHEDULE = RoundSchedule(
    n_members=2,
    best_factor=3,
    fast_rounds=200,
    learning_rate=0.1,
    n_folds=(4, 2, 1, 0),
    min_rounds=(1, 200, 250, 600),
    max_rounds=(1600, 1600, 1600, 600),
    step_factor=(2, 4, 4, 4),
    max_leaf_nodes=(31, 63, 63, 63),
    thresholds=("drawn", "drawn", "drawn", "drawn"),
)
# For numbers, more and smaller steps have a smaller loss.
NUMBER_SCHEDULE = RoundSchedule(
    n_members=4,
    best_factor=2,
    fast_rounds=300,
    learning_rate=0.05,
    n_folds=(4, 2, 1, 0),
    min_rounds=(1, 100, 250, 500),
    max_rounds=(1200, 600, 600, 500),
    step_factor=(8, 8, 8, 8),
    max_leaf_nodes=(16, 31, 31, 31),
    thresholds=("drawn", "in turn", "in turn", "in turn"),
)
# NDCG of few queries is noisy and too many rounds do little harm, so that no folds choose.
RANKING_SCHEDULE = RoundSchedule(
    n_members=4,
    best_factor=3,
    fast_rounds=200,
    learning_rate=0.1,
    n_folds=(0, 0, 0, 0),
    min_rounds=(400, 400, 400, 400),
    max_rounds=(400, 400, 400, 400),
    step_factor=(1, 1, 1, 1),
    max_leaf_nodes=(16, 31, 31, 31),
    thresholds=("in turn", "in turn", "in turn", "in turn"),
)
