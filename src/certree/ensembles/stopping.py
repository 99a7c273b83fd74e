"""How many rounds serve rows that have no part in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.arrays import Float64
from certree.ensembles.rounds import Rounds

# The loss is taken after so many rounds, then after a factor more each time.
_FIRST, _FACTOR = 12, 2**0.5
# It has stopped falling once it has not fallen for so many looks.
_PATIENCE = 3


@dataclass(slots=True)
class JudgedRounds:
    """A run of boosting, and the rows that judge it.

    Parameters
    ----------
    run : Rounds
        The run.
    scores : ndarray of shape (n_outputs, n)
        What its trees say of the judging rows.
    X, y : ndarray of shape (n, p) and (n,)
        The judging rows.
    weight : ndarray of shape (n,), or None
        Their weights.
    """

    run: Rounds
    scores: Float64
    X: NDArray[np.floating]
    y: NDArray[Any]
    weight: Float64 | None

    def loss_after(self, first: int, last: int, n_threads: int) -> float:
        """Loss of the judging rows, summed, once rounds first .. last - 1 are made."""
        for number in range(first, last):
            self.run.advance(number)
        added = self.run.since(first)
        self.scores = added.add(self.scores, self.X, n_threads)
        losses = self.run.loss.of_rows(self.y, self.scores)
        return float(losses.sum() if self.weight is None else losses @ self.weight)


def best_rounds(
    runs: Sequence[JudgedRounds],
    most: int,
    n_threads: int,
) -> int:
    """The number of rounds after which the loss of all runs is smallest, at most so many.

    Runs go on side by side until their loss has stopped falling.
    """
    best, least, done, look, since = 1, np.inf, 0, _FIRST, 0
    while runs and done < most and since < _PATIENCE:
        look = min(look, most)
        loss = sum(run.loss_after(done, look, n_threads) for run in runs)
        since += 1
        if loss < least:
            best, least, since = look, loss, 0
        done, look = look, round(look * _FACTOR)
    return best
