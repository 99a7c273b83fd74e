"""Ranks: machines that each hold some of the rows as one table, and compute a model together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Int64
from certree.out_of_core.joined_rows import JoinedRows


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
    """

    rows: JoinedRows
    links: Links | None = None
    n_threads: int | None = None
    state: Any = None
    scored: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
