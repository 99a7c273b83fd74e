"""A model as trees whose leaves say numbers that are added up."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import (
    add_trees,
    attribute,
    average_leaves,
    find_leaves,
    pack_trees,
    sum_leaves,
)
from certree.interface.arrays import Float64, Int64
from certree.interface.fitted import state_of
from certree.tree import LEAF, lacking_rows


@dataclass(frozen=True, eq=False)
class SummedTrees:
    """Trees, and what is added up of what their leaves say.

    Parameters
    ----------
    columns : Tree or Trees
        The nodes of all trees, M; children are numbered among all of them.
    root : ndarray of int64, shape (T,)
        First node of each tree.
    value : ndarray of float64, shape (M, n_outputs)
        What leaves say; of other nodes anything.
    start : ndarray of float64, shape (n_outputs,)
        What is added to it.
    rows : ndarray of float64, shape (M,), or None
        Rows of the fit in each node; None where a model does not keep them.
    both : ndarray of bool, shape (M,), or None
        Where rows that lack a value go both ways, by `rows`; None: nowhere.
    parts : callable
        Makes the fields of an explanation that speak of the target of a base, (n_outputs,), and what
        is added to it, (n, n_outputs, p).
    """

    columns: Any
    root: Int64
    value: Float64
    start: Float64
    rows: Float64 | None
    both: NDArray[np.bool_] | None
    parts: Callable[[Float64, Float64], dict[str, Any]]

    @property
    def n_outputs(self) -> int:
        """How many numbers a leaf says."""
        return self.value.shape[1]

    def with_rows(self, rows: Float64) -> "SummedTrees":
        """The same with other rows of nodes, (M,)."""
        return replace(self, rows=rows)

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """The columns as the core takes them."""
        own = self.columns
        sides = own.missing_left.view(np.uint8)
        return own.feature, own.threshold, own.left, sides, own.category_start, own.categories

    @cached_property
    def _packed(self) -> tuple[Any, ...]:
        """The trees as walks take them."""
        sets = self.columns.category_start, self.columns.categories
        return pack_trees(*self.nodes), *sets, self.root

    def branches(self, *tables: NDArray[Any]) -> tuple[Any, Any]:
        """Where rows of tables go both ways, and by which rows, as the core takes it."""
        if self.both is None or not self.both.any():
            return None, None
        if not any(len(lacking_rows(X)) for X in tables):
            return None, None
        return self.both.view(np.uint8), self.rows

    def parted(self, X: NDArray[Any]) -> list[NDArray[np.intp]]:
        """Numbers of the rows that go one way, and of those that may go both ways, if there are any."""
        lacking = np.zeros(len(X), dtype=bool)
        if self.both is not None and self.both.any():
            lacking[lacking_rows(X)] = True
        return [rows for rows in (np.flatnonzero(~lacking), np.flatnonzero(lacking)) if len(rows)]

    @cached_property
    def depth(self) -> int:
        """Cuts on the longest path; -1 without trees."""
        left, nodes, depth = self.columns.left, self.root, -1
        while len(nodes):
            children = left[nodes[left[nodes] != LEAF]]
            nodes, depth = np.concatenate([children, children + 1]), depth + 1
        return depth

    def outputs(self, X: NDArray[Any], n_threads: int) -> Float64:
        """What is said of rows, (n, n_outputs)."""
        n, own = len(X), np.ascontiguousarray(self.value)
        branches = self.branches(X)
        if branches[0] is None:
            start, last = np.repeat(self.start[:, None], n, axis=1), len(self.root)
            adding: Any = add_trees  # whose overloads mypy does not tell apart behind a star
            scores: Float64 = adding(*self._packed, own, 0, last, X, start, n_threads)
            return scores.T
        # From nothing at inner nodes the changes along a path add up to what its leaf says.
        said = np.where(self.columns.left[:, None] == LEAF, own, 0.0)
        attributed: Any = attribute
        changes = attributed(*self.nodes, self.root, said, X, *branches, n_threads)
        total: Float64 = changes.reshape(n, self.n_outputs, -1).sum(axis=2)
        return total + said[self.root].sum(axis=0) + self.start

    def expected(self, rows: Float64) -> Float64:
        """What is said on average if rows of nodes, (M,), decide where rows go, (n_outputs,)."""
        mean = average_leaves(self.columns.left, rows, np.ascontiguousarray(self.value))
        total: Float64 = mean[self.root].sum(axis=0)
        return total + self.start

    def counted(self, X: NDArray[Any], n_threads: int) -> Float64:
        """How many of some rows come to each node, (M,)."""
        finding: Any = find_leaves
        leaf = finding(*self._packed, X, n_threads)
        nothing = np.zeros(len(X))
        sums = sum_leaves(self.columns.left, self.root, ~leaf, nothing, None, 1, n_threads)
        return np.ascontiguousarray(sums[:, 0])


def summable(model: Any) -> Any:
    """A model as it is now, if it has trees whose leaves say numbers that are added up."""
    if not hasattr(model, "_summed_trees"):
        raise TypeError(
            "model must be a tree, vote, forest, boosted trees or AdaBoost of certree whose leaves "
            f"predict shares or numbers, got {type(model).__name__}"
        )
    return state_of(model)


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
