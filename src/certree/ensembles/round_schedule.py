"""Defaults of boosted trees that depend on the number of rows: rounds, folds, leaves and thresholds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """The defaults for one kind of target; they hold where a parameter is "auto".

    `benchmarks/boosting_steps.py` measures the loss of fits that differ from them in one value, and
    `benchmarks/boosting.py` loss and CPU time against other libraries.

    Parameters
    ----------
    n_members : int
        Fits that are averaged with ``quality="best"``.
    max_leaf_nodes : (int, int)
        Leaves of a tree: below `few_rows`, and from it on.
    n_folds : int
        Folds of four that choose the number of rounds of a table of fewer than `few_rows`. One fold
        chooses it up to `many_rows`.
    fast_rounds : int
        Rounds with ``quality="fast"``: as many as LightGBM's default makes in the same CPU time.
    step_factor : int
        The steps of fits that only choose the number of rounds are this many times as long below
        `few_rows`, so that fewer rounds show it. `max_step_factor` is the factor from there on.
    max_rounds_divisor : int
        What `max_rounds` is divided by from `few_rows` on, with ``quality="default"``.
    chooses_rounds : bool
        Whether folds choose the number of rounds; False: it is always `fixed_rounds`.
    few_rows, many_rows : int
        Numbers of rows: see above. From `many_rows` on a fit makes `fixed_rounds`, as rounds beyond the
        best number do little harm there.
    max_rounds, fixed_rounds : int
        Most rounds that folds or early stopping may choose, and rounds where nothing chooses.
    best_factor : int
        Factor of both with ``quality="best"``.
    fast_outputs, max_fast_factor : int
        Fits with ``quality="fast"`` that learn more scores of a row than `fast_outputs` have
        proportionally more rounds, by at most this factor.
    reference_rate : float
        Learning rate that these numbers of rounds are for. Smaller rates get proportionally more
        rounds, by at most `max_rate_factor`.
    min_thresholds, rows_per_threshold : int
        Thresholds of a feature that a tree may draw: one for so many rows, and no fewer than this.
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
# Numbers hardly overfit, so that two of the folds are enough.
NUMBER_SCHEDULE = RoundSchedule(
    n_members=4,
    max_leaf_nodes=(16, 31),
    n_folds=2,
    fast_rounds=300,
    step_factor=4,
    max_rounds_divisor=2,
)
RANKING_SCHEDULE = RoundSchedule(n_members=4, max_leaf_nodes=(16, 31), chooses_rounds=False)
