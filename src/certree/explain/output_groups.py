"""The columns of leaf values that belong to each target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from certree.interface.arrays import Float64, Int64
from certree.rows.folds import Indices


@dataclass(frozen=True, slots=True)
class OutputGroups:
    """The number of outputs (columns of leaf values) of each target; targets follow each other.

    Parameters
    ----------
    sizes : tuple of int
        Outputs of each target: 1 for a number, 1 for two classes (that of the second class), and one
        for each of more classes.
    """

    sizes: tuple[int, ...]

    @classmethod
    def for_classes(cls, n_classes: Iterable[int]) -> Self:
        """Make the groups of targets with these numbers of classes."""
        return cls(tuple(k if k > 2 else 1 for k in n_classes))

    @property
    def n_outputs(self) -> int:
        """Number of outputs of all targets together."""
        return sum(self.sizes)

    @property
    def size_array(self) -> Int64:
        """The sizes as an array, (q,), which the core takes."""
        return np.array(self.sizes, dtype=np.int64)

    @property
    def first_outputs(self) -> tuple[int, ...]:
        """Index of the first output of each target."""
        return tuple(int(k) for k in np.cumsum(self.sizes) - self.sizes)

    def split(self, values: Float64, axis: int = 1) -> list[Float64]:
        """Split an array along the axis of its outputs into one array for each target."""
        return np.split(values, self.first_outputs[1:], axis=axis)

    def reorder(self, order: Indices) -> OutputGroups:
        """Return the groups of targets ``order[0]``, ``order[1]``, ..., where order is (q,)."""
        return OutputGroups(tuple(self.sizes[k] for k in order))

    def restore_order(self, values: Float64, order: Indices) -> Float64:
        """Move outputs of reordered targets, (n, n_outputs), back into the targets' own order.

        This undoes `reorder`: `values` has the outputs of target ``order[0]`` first.
        """
        if len(order) == 1:
            return values
        groups = self.reorder(order).split(values)
        return np.concatenate([groups[k] for k in np.argsort(order)], axis=1)
