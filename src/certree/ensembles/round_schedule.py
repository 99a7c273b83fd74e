"""Automatic parameters of boosted trees by the number of rows: rounds, folds, leaves and thresholds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """Numbers of rounds, leaves and thresholds of boosted trees if their parameters are "auto".

    There is one schedule for classes, one for numbers and one for rankings.
    `benchmarks/boosting_steps.py` measures the loss of fits that differ in one of these values, and
    `benchmarks/boosting.py` compares loss and CPU time with other libraries. The first two
    arguments are required.

    Parameters
    ----------
    n_members : int
        Number of fits that are averaged with ``quality="best"``.
    max_leaf_nodes : (int, int)
        Largest number of leaves of a tree: below `few_rows` rows, and from there on.
    n_folds : int, default=4
        Number of folds, of four, whose validation loss chooses the number of rounds below
        `few_rows` rows. From there on, up to `many_rows`, it is one fold.
    fast_rounds : int, default=200
        Number of rounds with ``quality="fast"``: as many as LightGBM's default makes in the same
        CPU time.
    step_factor, max_step_factor : int, defaults 2 and 4
        Largest factor of the learning rate in fits that only choose the number of rounds, below
        `few_rows` rows and from there on. With longer steps fewer rounds are needed.
    max_rounds_divisor : int, default=1
        `max_rounds` is divided by it from `few_rows` rows on, with ``quality="default"``.
    chooses_rounds : bool, default=True
        Whether folds choose the number of rounds; False: it is always `fixed_rounds`.
    few_rows, many_rows : int, defaults 3000 and 30,000
        Numbers of training rows that the other values refer to. From `many_rows` on a fit makes
        `fixed_rounds` rounds, as too many rounds do little harm there.
    max_rounds : int, default=1600
        Largest number of rounds that folds or early stopping may choose.
    fixed_rounds : int, default=400
        Number of rounds if neither folds nor early stopping choose it.
    best_factor : int, default=3
        Factor of `max_rounds` and `fixed_rounds` with ``quality="best"``.
    fast_outputs, max_fast_factor : int, defaults 3 and 4
        With ``quality="fast"`` and more outputs than `fast_outputs` the number of rounds grows in
        proportion to the outputs, by at most `max_fast_factor`.
    reference_rate, max_rate_factor : float and int, defaults 0.1 and 20
        Learning rate for which the numbers of rounds hold. Smaller rates have more rounds in inverse
        proportion, by at most `max_rate_factor`.
    min_thresholds, rows_per_threshold : int, defaults 6 and 500
        A tree draws one threshold of a feature for each `rows_per_threshold` rows, but at least
        `min_thresholds`.
    """

    n_members: int
    max_leaf_nodes: tuple[int, int]
    n_folds: int = 4
    fast_rounds: int = 200
    step_factor: int = 2
    max_step_factor: int = 4
    max_rounds_divisor: int = 1
    chooses_rounds: bool = True
    few_rows: int = 3000
    many_rows: int = 30_000
    max_rounds: int = 1600
    fixed_rounds: int = 400
    best_factor: int = 3
    fast_outputs: int = 3
    max_fast_factor: int = 4
    reference_rate: float = 0.1
    max_rate_factor: int = 20
    min_thresholds: int = 6
    rows_per_threshold: int = 500


CLASS_SCHEDULE = RoundSchedule(n_members=2, max_leaf_nodes=(31, 63))
# Regressions hardly overfit by too many rounds, so two of the folds are enough.
NUMBER_SCHEDULE = RoundSchedule(
    n_members=4,
    max_leaf_nodes=(16, 31),
    n_folds=2,
    fast_rounds=300,
    step_factor=4,
    max_rounds_divisor=2,
)
RANKING_SCHEDULE = RoundSchedule(n_members=4, max_leaf_nodes=(16, 31), chooses_rounds=False)
