"""Choose the number of boosting rounds by cross-validation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from certree.ensembles.rounds import BoostingRun, advance
from certree.ensembles.time_limit import RoundTimer, TimeLimit

# Largest learning rate of runs that only choose the number of rounds: with longer steps the best number
# does not predict that of shorter steps.
_MAX_RATE = 0.5
# The loss is computed after the first number of rounds, and then whenever it has grown by the factor.
_FIRST_CHECK, _CHECK_FACTOR = 3, 2**0.5
# The search ends when so many checks after the given round have brought no smaller loss. Earlier checks
# do not count, as interactions of features take some rounds to be found.
_PATIENCE, _MIN_ROUNDS = 1, 40
# For rows in time order, the largest number of rounds is chosen whose loss is at most this fraction
# above the smallest one. Fractions from 0.5 % to 2 % gave about the same losses on later rows.
_TIME_MARGIN = 0.01


def choose_step_factor(learning_rate: float, largest: int) -> int:
    """Return the factor of the learning rate in fits that only choose the number of rounds: 1 .. 8.

    It is the largest power of 2 up to `largest` with which `learning_rate` becomes at most 0.5.
    """
    return next(
        (
            factor
            for factor in (8, 4, 2)
            if factor <= largest and learning_rate <= _MAX_RATE / factor
        ),
        1,
    )


def choose_rounds(
    runs: list[BoostingRun],
    max_rounds: int,
    limit: TimeLimit = TimeLimit(),  # noqa: B008 -- immutable
    advance: Callable[[list[BoostingRun], int, int], Any] = advance,
    *,
    prefers_more: bool = False,
) -> int:
    """Find the number of rounds with the smallest validation loss, among those that are checked.

    All runs advance together and are changed. The loss is computed after 3 rounds and then whenever
    their number has grown by the factor sqrt(2). The search ends at the first of these checks, from
    40 rounds on, at which the loss is not below the smallest one before.

    Parameters
    ----------
    runs : list of BoostingRun
        Boosting runs before the first round, one for each fold. The loss is the sum over the runs
        of the loss on the validation set.
    max_rounds : int
        Largest number of rounds.
    limit : TimeLimit
        The search ends before the first check that would come too late. The result is `max_rounds`
        if the loss has fallen up to the last check.
    advance : callable
        ``advance(runs, first, last)`` makes rounds of the runs, in place, and appends their
        validation losses; see `certree.ensembles.rounds.advance`.
    prefers_more : bool
        Whether the largest number of rounds is chosen whose loss is at most 1 % above the smallest
        one. Set it for rows in time order: the next period differs from the one that
        validates, and too few rounds cost more on it than too many.
    """
    best, least, done, target, since = 1, np.inf, 0, _FIRST_CHECK, 0
    checks: list[tuple[int, float]] = []
    timer = RoundTimer(limit)
    while runs and done < max_rounds and since < _PATIENCE:
        target = min(target, max_rounds)
        if not timer.has_time_for(target - done):
            if best >= done:
                return max_rounds
            break
        timer.start_block()
        since += target >= _MIN_ROUNDS
        advance(runs, done, target)
        loss = sum(float(run.losses[-1][-1]) for run in runs)
        checks.append((target, loss))
        if loss < least:
            best, least, since = target, loss, 0
        timer.end_block(target - done)
        done, target = target, round(target * _CHECK_FACTOR)
    if not prefers_more:
        return best
    margin = _TIME_MARGIN * abs(least)
    return max((n for n, loss in checks if loss - least <= margin), default=best)
