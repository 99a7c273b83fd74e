"""Ranks: machines that each hold some of the rows as one table, and compute a model together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64
from certree.out_of_core.exact_sums import round_sum
from certree.out_of_core.joined_rows import JoinedRows

# Exact sums travel in integers of so many bits, so many for each: 2^2190 exceeds the largest sum.
_WORD_BITS, _N_WORDS = 32, 70


class Links(Protocol):
    """The links of a rank to the others.

    All ranks make the same calls in the same order. Methods raise an exception if a link is lost.
    """

    @property
    def decides(self) -> bool:
        """Whether this is rank 0, which chooses splits and computes the values of nodes."""
        ...

    def reduce(self, words: Int64, n_sums: int) -> None:
        """Reduce words to rank 0: the first n_sums by their sum, the others by their maximum.

        The array is changed in place at rank 0, and is undefined afterwards at other ranks. It must
        not be kept.
        """
        ...

    def share(self, words: Int64) -> None:
        """Copy the words of rank 0 to all ranks, in place. The array must not be kept."""
        ...


@dataclass(slots=True, eq=False)
class Rank:
    """The rows of one machine, and what a fit keeps there.

    Parameters
    ----------
    rows : JoinedRows
        The rows.
    links : Links or None
        Links to the other ranks; None: there are none.
    n_threads : int or None
        Number of threads; None: as many as the model says.
    state : object
        What a function leaves for those that are called after it.
    scored : ndarray of intp, shape (m,)
        Indices of the rows that a scorer gets, of training rows and the validation set behind them.
    selection : list
        Runs that choose the number of rounds.
    third_scores : list of ndarray of float64, shape (n_outputs, n)
        Scores of the training rows by the fits to thirds, for standard errors.
    model_scores, deviations : ndarray of float64, shape (n_outputs, n)
        Scores of the training rows by the model, and sums of the deviations of their leaves, for
        standard errors.
    """

    rows: JoinedRows
    links: Links | None = None
    n_threads: int | None = None
    state: Any = None
    scored: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    selection: list[Any] = field(default_factory=list)
    third_scores: list[Float64] = field(default_factory=list)
    model_scores: Float64 = field(default_factory=lambda: np.zeros((0, 0)))
    deviations: Float64 = field(default_factory=lambda: np.zeros((0, 0)))


def sum_over_ranks(totals: Sequence[int], links: Links) -> list[float]:
    """Add exact sums of all ranks, and round the results.

    Parameters
    ----------
    totals : sequence of int
        Sums over the rows of this rank in units of 2^-1126, as `exact_sum` returns them.
    links : Links
        Links to the other ranks.

    Returns
    -------
    list of float
        The sums over all ranks, which rank 0 rounds.
    """
    mask, shifts = (1 << _WORD_BITS) - 1, [_WORD_BITS * k for k in range(_N_WORDS)]
    # The last word has the sign.
    words = np.array(
        [
            [*(total >> shift & mask for shift in shifts[:-1]), total >> shifts[-1]]
            for total in totals
        ],
        dtype=np.int64,
    )
    every = words.ravel()
    links.reduce(every, len(every))
    sums = np.zeros(len(totals))
    if links.decides:
        reduced: Any = every.reshape(words.shape).tolist()
        sums[:] = [
            round_sum(sum(word << shift for word, shift in zip(row, shifts, strict=True)))
            for row in reduced
        ]
    links.share(sums.view(np.int64))
    return [float(value) for value in sums]
