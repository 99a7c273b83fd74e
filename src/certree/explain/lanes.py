"""Where among the numbers that leaves say each target of rows stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from certree.interface.arrays import Float64, Int64
from certree.rows.folds import Indices


@dataclass(frozen=True, slots=True)
class Lanes:
    """How many numbers leaves say of each target, one target behind the other.

    Parameters
    ----------
    n_of : tuple of int
        1 for a number; of classes the share or score of the second of two, or one for each of more.
    """

    n_of: tuple[int, ...]

    @classmethod
    def of_classes(cls, n_classes: Iterable[int]) -> Self:
        """Those of targets of so many classes."""
        return cls(tuple(k if k > 2 else 1 for k in n_classes))

    @property
    def width(self) -> int:
        """How many numbers leaves say."""
        return sum(self.n_of)

    @property
    def counts(self) -> Int64:
        """How many they are of each target, (q,), as the core takes them."""
        return np.array(self.n_of, dtype=np.int64)

    @property
    def first(self) -> tuple[int, ...]:
        """The first number of each target."""
        return tuple(int(k) for k in np.cumsum(self.n_of) - self.n_of)

    def of_each(self, values: Float64, axis: int = 1) -> list[Float64]:
        """What leaves say, (n, width) or along another axis, of each target by itself."""
        return np.split(values, self.first[1:], axis=axis)

    def ordered(self, order: Indices) -> Lanes:
        """Those of the same targets in another order, (q,)."""
        return Lanes(tuple(self.n_of[k] for k in order))

    def restored(self, values: Float64, order: Indices) -> Float64:
        """What leaves say of targets in that order, (n, width), in their own order."""
        if len(order) == 1:
            return values
        parts = self.ordered(order).of_each(values)
        return np.concatenate([parts[k] for k in np.argsort(order)], axis=1)
