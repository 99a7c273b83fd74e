"""A model as trees whose leaves say numbers that are added up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import (
    average_leaves,
    sum_leaves,
)
from certree.interface.arrays import Float64
from certree.interface.fitted_state import get_snapshot
from certree.tree import LEAF, Trees, lacking_rows


@dataclass(frozen=True, eq=False)
class SummedTrees:
    """Trees, and what is added up of what their leaves say.

    Parameters
    ----------
    trees : Trees
        The trees, of M nodes. What leaves say is added up; other nodes may say anything.
    start : ndarray of float64, shape (n_outputs,)
        What is added to it.
    rows : ndarray of float64, shape (M,), or None
        Rows of the fit in each node, by which rows that lack a value go both ways; None where a model
        does not keep them.
    parts : callable
        Makes the fields of an explanation that speak of the target of a base, (n_outputs,), and what
        is added to it, (n, n_outputs, p).
    """

    trees: Trees
    start: Float64
    rows: Float64 | None
    parts: Callable[[Float64, Float64], dict[str, Any]]

    @property
    def n_outputs(self) -> int:
        """How many numbers a leaf says."""
        return self.trees.value.shape[1]

    def with_rows(self, rows: Float64) -> SummedTrees:
        """The same with other rows of nodes, (M,)."""
        return replace(self, rows=rows)

    def branches(self, *tables: NDArray[Any]) -> tuple[Any, Any]:
        """Where rows of tables go both ways, and by which rows, as the core takes it."""
        both = self.trees.missing_both
        if not both.any() or not any(len(lacking_rows(X)) for X in tables):
            return None, None
        return both.view(np.uint8), self.rows

    def parted(self, X: NDArray[Any]) -> list[NDArray[np.intp]]:
        """Numbers of the rows that go one way, and of those that may go both ways, if there are any."""
        lacking = np.zeros(len(X), dtype=bool)
        if self.trees.missing_both.any():
            lacking[lacking_rows(X)] = True
        return [rows for rows in (np.flatnonzero(~lacking), np.flatnonzero(lacking)) if len(rows)]

    @cached_property
    def depth(self) -> int:
        """Cuts on the longest path; -1 without trees."""
        left, nodes, depth = self.trees.left, self.trees.root, -1
        while len(nodes):
            children = left[nodes[left[nodes] != LEAF]]
            nodes, depth = np.concatenate([children, children + 1]), depth + 1
        return depth

    def outputs(self, X: NDArray[Any], n_threads: int) -> Float64:
        """What is said of rows, (n, n_outputs)."""
        if self.branches(X)[0] is None:
            start = np.repeat(self.start[:, None], len(X), axis=1)
            return self.trees.add(start, X, n_threads).T
        # From nothing at inner nodes the changes along a path add up to what its leaf says.
        said = np.where(self.trees.is_leaf[:, None], self.trees.value, 0.0)
        trees = self.trees.saying(said)
        total: Float64 = trees.contributions(X, n_threads, self.rows).sum(axis=2)
        return total + trees.at_roots + self.start

    def expected(self, rows: Float64) -> Float64:
        """What is said on average if rows of nodes, (M,), decide where rows go, (n_outputs,)."""
        mean = average_leaves(self.trees.left, rows, self.trees.value)
        total: Float64 = mean[self.trees.root].sum(axis=0)
        return total + self.start

    def counted(self, X: NDArray[Any], n_threads: int) -> Float64:
        """How many of some rows come to each node, (M,)."""
        leaf, nothing = self.trees.leaves(X, n_threads), np.zeros((len(X), 0))
        left, root = self.trees.left, self.trees.root
        sums = sum_leaves(left, root, ~leaf, nothing, None, np.zeros(0, np.int64), n_threads)
        return np.ascontiguousarray(sums[:, 0])


def summable(model: Any) -> Any:
    """A model as it is now, if it has trees whose leaves say numbers that are added up."""
    if not hasattr(model, "_summed_trees"):
        raise TypeError(
            "model must be a tree, vote, forest, boosted trees or AdaBoost of certree whose leaves "
            f"predict shares or numbers, got {type(model).__name__}"
        )
    return get_snapshot(model)


def summed_trees(model: Any) -> SummedTrees:
    """The trees of such a model."""
    found: SummedTrees = model._summed_trees()
    return found


def cover_of(summed: SummedTrees, background: NDArray[Any] | None, n_threads: int) -> Float64:
    """Rows of the nodes, (M,): those of the fit if they are known, else those of a background."""
    if summed.rows is not None:
        return summed.rows
    if background is None:
        raise ValueError(
            "the trees of this model do not keep how many rows of the fit their nodes had: give a "
            "background, rows of the fit for instance"
        )
    return summed.counted(background, n_threads)
