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
    """Protocol of the connections of one process to the other processes of a fit.

    A rank is the number of a process (Dask worker) that holds some of the rows. All ranks must make
    the same calls in the same order. Methods raise an exception if a connection is lost.
    """

    @property
    def is_rank_0(self) -> bool:
        """Whether this process has rank 0: the one that chooses splits and computes values of nodes."""
        ...

    def reduce(self, words: Int64, n_sums: int) -> None:
        """Reduce an array over all processes of the fit to process 0, element by element.

        words: this process' integers, (n,); the first n_sums elements are summed over all processes,
        of the others the maximum is taken. In process 0 the array is changed in place to the result;
        its values are undefined afterwards in others. Implementations must not keep a reference to it.
        """
        ...

    def share(self, words: Int64) -> None:
        """Copy an array of integers from process 0 to all processes of the fit.

        words: (n,) in each process: read in process 0, and overwritten in the others. Implementations
        must not keep a reference to it.
        """
        ...


@dataclass(slots=True, eq=False)
class Rank:
    """The rows that one process (a Dask worker, or this one) holds, and the state of the fit there.

    `Executor.run_on_ranks` calls functions with it, one after the other.

    Parameters
    ----------
    rows : JoinedRows
        All training and validation rows of the process, as one table.
    links : Links or None
        Connections to the other processes of the fit; None: there are none.
    n_threads : int or None
        Number of threads; None: as the `n_jobs` of the model says.
    state : object
        Object that a call has stored for later calls.
    scored : ndarray of intp, shape (m,)
        Indices of the rows on which a scorer evaluates rounds, among the training rows followed by the
        validation rows.
    selection : BoostingRun or None
        Boosting run that is fitted to the earlier rows of this process, from whose loss on the latest
        rows the number of rounds is chosen; None outside of this choice.
    third_scores : list of ndarray of float64, shape (n_outputs, n)
        Scores of the training rows by each of the models that are fitted to thirds of the rows, from
        which standard errors are estimated.
    model_scores, deviations : ndarray of float64, shape (n_outputs, n)
        For standard errors: scores of the training rows by the model; and for each row the sum, over
        the leaves that it reaches, of the standard deviation of the leaf's value over the prunings of
        its tree (the subtrees that remain after cutting branches).
    """

    rows: JoinedRows
    links: Links | None = None
    n_threads: int | None = None
    state: Any = None
    scored: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    selection: Any = None
    third_scores: list[Float64] = field(default_factory=list)
    model_scores: Float64 = field(default_factory=lambda: np.zeros((0, 0)))
    deviations: Float64 = field(default_factory=lambda: np.zeros((0, 0)))


def sum_over_ranks(totals: Sequence[int], links: Links | None) -> list[float]:
    """Add exact sums over all processes of a fit, and round the totals to float64.

    Parameters
    ----------
    totals : sequence of int
        Sums over the rows of this process, as integer multiples of 2^-1126, from `exact_sum`.
    links : Links or None
        Connections to the other processes; None: there are none. All must call this function with
        as many totals.

    Returns
    -------
    list of float
        The sums over all processes, in the order of `totals`.
    """
    if links is None:
        return [round_sum(total) for total in totals]
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
    if links.is_rank_0:
        reduced: Any = every.reshape(words.shape).tolist()
        sums[:] = [
            round_sum(sum(word << shift for word, shift in zip(row, shifts, strict=True)))
            for row in reduced
        ]
    links.share(sums.view(np.int64))
    return [float(value) for value in sums]
