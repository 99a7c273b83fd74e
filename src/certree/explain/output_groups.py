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
    """The number of outputs (columns of leaf values) that belong to each of several targets.

    The outputs of a target are adjacent, and targets follow each other. With `sizes` (1, 3), column
    0 belongs to the first target, and columns 1, 2 and 3 to the second.

    Parameters
    ----------
    sizes : tuple of int
        Number of outputs of each target: 1 for a numeric target, 1 for a target of two classes
        (the output belongs to the second class), and K for a target of K > 2 classes. Trees whose
        prunings vote have max(2, K) outputs for a target of K classes instead.
    """

    sizes: tuple[int, ...]

    @classmethod
    def for_classes(cls, n_classes: Iterable[int]) -> Self:
        """Create the groups of classification targets.

        n_classes: number of classes of each target, in the order of the targets.
        A target has one output for at most two classes, else one for each class.
        """
        return cls(tuple(k if k > 2 else 1 for k in n_classes))

    @property
    def n_outputs(self) -> int:
        """Number of outputs of all targets together."""
        return sum(self.sizes)

    @property
    def size_array(self) -> Int64:
        """Number of outputs of each of the q targets, (q,) int64, for functions of the C++ module."""
        return np.array(self.sizes, dtype=np.int64)

    @property
    def first_outputs(self) -> tuple[int, ...]:
        """Index of the first output (column of values) of each target: (0, 1) for sizes (1, 3)."""
        return tuple(int(k) for k in np.cumsum(self.sizes) - self.sizes)

    def split(self, values: Float64, axis: int = 1) -> list[Float64]:
        """Split an array along the axis of its outputs into one array for each target.

        values: array of any number of axes, n_outputs long along `axis`, the number of the axis.
        Return views, in the order of the targets.
        """
        return np.split(values, self.first_outputs[1:], axis=axis)

    def reorder(self, order: Indices) -> OutputGroups:
        """Return a copy with the targets in another order: ``order[0]``, then ``order[1]``, ...

        order: a permutation of the q target numbers, (q,). This object does not change.
        """
        return OutputGroups(tuple(self.sizes[k] for k in order))

    def restore_order(self, values: Float64, order: Indices) -> Float64:
        """Undo a reordering of targets in an array of outputs.

        This object must have the targets in their original order, 0 to q - 1.

        Parameters
        ----------
        values : ndarray of float64, shape (n, n_outputs)
            Outputs of target ``order[0]`` first, then those of ``order[1]``, and so on.
        order : ndarray of int, shape (q,)
            A permutation of the target numbers.

        Returns
        -------
        ndarray of float64, shape (n, n_outputs)
            The same columns, with the outputs of target 0 first, then those of target 1, and so on.
        """
        if len(order) == 1:
            return values
        groups = self.reorder(order).split(values)
        return np.concatenate([groups[k] for k in np.argsort(order)], axis=1)
