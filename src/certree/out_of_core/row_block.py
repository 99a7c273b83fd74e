"""A part of the rows of a fit, and what becomes of it.

Parts are immutable: a function that changes a part returns another one. A part that a worker has lost
is made again from its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from certree.grow.bins import UInt8
from certree.interface.arrays import Float64, Int32, UInt64


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
    places : ndarray of int32, shape (q, n)
        Places of levels of q features among all, until it is known what rows see of them.
    fold : ndarray of uint8, shape (n,), or (0,)
        Number of the fold whose validation set has the row; empty: there are no folds.
    values : ndarray of float64, shape (n_held, p)
        Rows that are held out. A threshold may lie anywhere between values of bins, so bins would not
        tell all of them apart.
    y_held, weight_held : ndarray of float64
        What these have in place of `y` and `weight`.
    offset, offset_held : ndarray of float64, shape (n_outputs, n) and (n_outputs, n_held), or None
        Offsets of the rows that train, and of those that are held out; None: there are none.
    group : ndarray of intp, shape (n,), or None
        Number of the group of each row that trains, until `keys` are those of groups; None: there are
        no groups.
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
    places: Int32 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    fold: UInt8 = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    values: Float64 = field(default_factory=lambda: np.zeros((0, 1)))
    y_held: Float64 = field(default_factory=lambda: np.zeros(0))
    weight_held: Float64 | None = None
    offset: Float64 | None = None
    offset_held: Float64 | None = None
    group: NDArray[np.intp] | None = None

    @property
    def n(self) -> int:
        """How many rows train."""
        return int(self.y.shape[-1])

    @property
    def n_held(self) -> int:
        """How many rows are held out."""
        return int(self.y_held.shape[-1])

    def select_training_rows(self, rows: NDArray[Any]) -> PartOfRows:
        """Return a block of some training rows, without held-out rows and without `known`.

        rows: mask or indices of the rows.
        """
        selected: dict[str, Any] = {
            name: np.asarray(value)[..., rows]
            for name in ("codes", "y", "weight", "keys", "places", "fold", "offset", "group")
            if (value := getattr(self, name)) is not None and value.shape[-1] == self.n
        }
        empty = PartOfRows(self.number, self.codes, self.y, None, self.keys)
        return replace(empty, digest=self.digest, tables=self.tables, **selected)

    @property
    def ties(self) -> Float64 | None:
        """Numbers, (n,) or (k, n), by which equal rows are ordered; None: there are none.

        These are the weights, or offsets followed by weights. The last row of several decides first.
        """
        if self.offset is None:
            return self.weight
        return np.vstack([self.offset, *([] if self.weight is None else [self.weight])])


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
