"""Which rounds, and how many of them, serve rows that have no part in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.ensembles.losses import sum_in_any_order
from certree.ensembles.rounds import Rounds
from certree.interface.arrays import Float64

# The loss is taken after so many rounds, then after a factor more each time.
_FIRST, _FACTOR = 12, 2**0.5
# After so many rounds it is known which kind of them will be best.
_RACE = 192
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
        return sum_in_any_order(losses if self.weight is None else losses * self.weight)


def best_rounds(
    kinds: Sequence[Sequence[JudgedRounds]],
    most: int,
    n_threads: int,
) -> tuple[int, int]:
    """The kind of rounds, and their number, after which the loss of its runs is smallest.

    Runs go on side by side until their loss has stopped falling; those of kinds that are behind
    stop earlier.

    Parameters
    ----------
    kinds : sequence of sequences of JudgedRounds
        Runs of each kind, one for each fold.
    most : int
        So many rounds at most.
    n_threads : int
        Number of threads.

    Returns
    -------
    kind : int
        Which of them.
    n_rounds : int
        Number of rounds, at least 1.
    """
    best, least, done, look, since = (0, 1), np.inf, 0, _FIRST, 0
    racing = [kind for kind, runs in enumerate(kinds) if runs]
    while racing and done < most and since < _PATIENCE:
        look = min(look, most)
        since += 1
        for kind in racing:
            loss = sum(run.loss_after(done, look, n_threads) for run in kinds[kind])
            if loss < least:
                best, least, since = (kind, look), loss, 0
        if look >= _RACE:
            racing = [best[0]]
        done, look = look, round(look * _FACTOR)
    return best
