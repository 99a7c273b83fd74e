"""A part of the rows of a fit, and what becomes of it.

A part is never changed: what becomes of it is another one, so that whoever has lost the second can make
it of the first again. Only where nobody ever does, the second is written over the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from certree.grow.bins import UInt8
from certree.interface.arrays import Float64, Int32, Int64, UInt64


@dataclass(frozen=True, slots=True, eq=False)
class PartOfRows:
    """Rows of a fit that lie together, n of them.

    Parameters
    ----------
    number : int
        Which of the parts it is.
    codes : ndarray of uint8, shape (p, n)
        Bins of the values.
    y : ndarray of float64, shape (n,) or (n_targets, n)
        Targets, or codes of classes; of several targets those of each.
    weight : ndarray of float64, shape (n,), or None
        Weights.
    keys : ndarray of uint64, shape (n,)
        Numbers by which rows are drawn, and their hashes before there are any.
    digest : int
        What its source says of all its rows.
    known, known_rounded : ndarray of uint64, shape (any,)
        Hashes by which a model is to know the rows again, ascending: one for each row, and the
        distinct ones of numbers that are rounded to float32.
    tables : tuple of two int
        Sums of the hashes of rows with their targets, of rows of the fit and of an evaluation set.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row in the tree before; of no use before there is one.
    order : ndarray of int32, shape (n,)
        Numbers of the rows: those that grow the tree, then the others, those of a cell together.
    items : ndarray of int64, shape (n, 2)
        Rows as they are added up.
    n_growing : int
        How many rows grow the tree.
    ranges : ndarray of int64, shape (c, 2, 2)
        Where the rows of the cells of a single tree begin and end in the order, by number: those that
        grow it, and those that judge it.
    places : ndarray of int32, shape (q, n)
        Places of levels of q features among all, until it is known what rows see of them.
    fold : ndarray of uint8, shape (n,)
        The fold that each row judges; of no use where there are no folds.
    leaf_in_fold : ndarray of int32, shape (n,)
        Leaf of each row in the tree of the fold that it judges, once that has been grown.
    values : ndarray of float64, shape (n_held, p)
        Rows that are held out. A threshold may lie anywhere between values of bins, so bins would not
        tell all of them apart.
    y_held, weight_held : ndarray of float64
        What these have in place of `y` and `weight`.
    is_own : bool
        Whether nobody makes the part of another one again: what becomes of it is written over it.
    """

    number: int
    codes: UInt8
    y: Float64
    weight: Float64 | None
    keys: UInt64
    digest: int = 0
    known: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    known_rounded: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    tables: tuple[int, int] = (0, 0)
    leaf: Int32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    order: Int32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    items: Int64 = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    n_growing: int = 0
    ranges: Int64 = field(default_factory=lambda: np.zeros((0, 2, 2), dtype=np.int64))
    places: Int32 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    fold: UInt8 = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    leaf_in_fold: Int32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    values: Float64 = field(default_factory=lambda: np.zeros((0, 1)))
    y_held: Float64 = field(default_factory=lambda: np.zeros(0))
    weight_held: Float64 | None = None
    is_own: bool = False

    @property
    def n(self) -> int:
        """How many rows train."""
        return int(self.y.shape[-1])

    @property
    def n_held(self) -> int:
        """How many rows are held out."""
        return int(self.y_held.shape[-1])

    def changed(self, name: str) -> NDArray[Any]:
        """An array of the part that may be changed, and what becomes of the part has it."""
        before: NDArray[Any] = getattr(self, name)
        return before if self.is_own else before.copy()


def expect_same_rows(part: PartOfRows, digests: Mapping[int, int]) -> None:
    """Refuse a part that has been made again of other rows."""
    if digests[part.number] != part.digest:
        refuse_other_rows(part.number)


def refuse_other_rows(number: int) -> NoReturn:
    """Raise an error that names the part by its number."""
    raise ValueError(
        f"partition {number} has been made anew and has other rows than before: its source must "
        "give the same rows whenever it is read"
    )


def digests(part: PartOfRows) -> list[tuple[int, int]]:
    """What the source of a part says of its rows, by its number."""
    return [(part.number, part.digest)]
