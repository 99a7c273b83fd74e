"""Choose the number of boosting rounds, and a schedule of thresholds, by cross-validation."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from certree.ensembles.rounds import Rounds, advance
from certree.ensembles.time_limit import RoundTimer, TimeLimit

# Largest learning rate of runs that only choose the number of rounds: with longer steps the best number
# does not predict that of shorter steps.
_MAX_RATE = 0.5
# The loss is computed after the first number of rounds, and then whenever it has grown by the factor.
_FIRST_CHECK, _CHECK_FACTOR = 3, 2**0.5
# After this many rounds only the best schedule continues.
_RACE_ROUNDS = 33
# The search ends when so many checks after the given round have brought no smaller loss. Earlier checks
# do not count, as interactions of features take some rounds to be found.
_PATIENCE, _MIN_ROUNDS = 1, 40
# A schedule replaces the first one only if its loss is smaller by this fraction: less may be noise.
_MARGIN = 0.03
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
    candidates: Sequence[Sequence[Rounds]],
    max_rounds: int,
    limit: TimeLimit = TimeLimit(),  # noqa: B008 -- immutable
    advance: Callable[[list[Rounds], int, int], Any] = advance,
    *,
    prefers_more: bool = False,
) -> tuple[int, int]:
    """Find the candidate, and the number of rounds, with the smallest validation loss.

    A candidate is a set of boosting runs, one for each fold. Candidates differ in the numbers of
    thresholds that rounds draw (`Rounds.thresholds`). All runs advance together and are changed.
    The loss is computed after 3 rounds and then whenever their number has grown by the factor
    sqrt(2). The search ends at the first of these checks, from 40 rounds on, at which the loss is
    not smaller than before. From 33 rounds on only the best candidate continues.

    Parameters
    ----------
    candidates : sequence of sequences of Rounds
        For each candidate its runs before the first round, one for each fold; a candidate without
        runs is ignored. The loss of a candidate is the sum over its runs of the loss on the
        validation set. The first candidate is the default: the loss of another must be at least 3 %
        smaller for it to be chosen.
    max_rounds : int
        Largest number of rounds.
    limit : TimeLimit
        The search ends before the first check that would come too late. The result is `max_rounds`
        if the loss has fallen up to the last check.
    advance : callable
        ``advance(runs, first, last)`` makes rounds of some of the runs, in place, and appends their
        validation losses; see `certree.ensembles.rounds.advance`.
    prefers_more : bool
        Whether more rounds are chosen than those with the smallest loss, if their loss is at most
        1 % larger. Set it for rows in time order: the next period differs from the one that
        validates, and too few rounds cost more on it than too many.

    Returns
    -------
    candidate : int
        Index of the best candidate.
    n_rounds : int
        Best number of rounds, at least 1.
    """
    best, least, done, target, since = (0, 1), np.inf, 0, _FIRST_CHECK, 0
    checks: list[tuple[int, int, float]] = []
    racing, timer = [index for index, runs in enumerate(candidates) if runs], RoundTimer(limit)
    while racing and done < max_rounds and since < _PATIENCE:
        target = min(target, max_rounds)
        if not timer.has_time_for(target - done):
            if best[1] >= done:
                return best[0], max_rounds
            break
        timer.start_block()
        since += target >= _MIN_ROUNDS
        advance([*chain.from_iterable(candidates[index] for index in racing)], done, target)
        for index in racing:
            loss = sum(float(run.losses[-1][-1]) for run in candidates[index])
            loss *= 1 + _MARGIN if index > 0 else 1
            checks.append((index, target, loss))
            if loss < least:
                best, least, since = (index, target), loss, 0
        timer.end_block(target - done)
        if target >= _RACE_ROUNDS:
            racing = [best[0]]
        done, target = target, round(target * _CHECK_FACTOR)
    if not prefers_more:
        return best
    margin = _TIME_MARGIN * abs(least)
    good = [n for index, n, loss in checks if index == best[0] and loss - least <= margin]
    return best[0], max(good, default=best[1])
