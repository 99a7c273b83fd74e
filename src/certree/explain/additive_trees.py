"""A model as a sum of trees with numeric leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import (
    average_leaves,
    sum_out_of_bag_targets,
)
from certree.interface.arrays import Float64
from certree.interface.fitted_state import get_snapshot
from certree.tree import LEAF, Trees, find_rows_with_missing


@dataclass(frozen=True, eq=False)
class AdditiveTrees:
    """A model whose output is a constant plus the value of one leaf of each tree.

    Parameters
    ----------
    trees : Trees
        The trees, of M nodes together. The values of leaves are added; those of inner nodes are not
        used.
    start : ndarray of float64, shape (n_outputs,)
        The constant.
    rows_per_node : ndarray of float64, shape (M,), or None
        Rows of the fit in each node. A row that lacks a value goes to both children in proportion to
        their rows. None if the model does not keep them.
    build_explanation_fields : callable
        Takes a base, (n_outputs,), and contributions to it, (n, n_outputs, p). Returns the arguments
        of `Explanation` that depend on the target: "base", "contributions", "output_names", "scale".
    """

    trees: Trees
    start: Float64
    rows_per_node: Float64 | None
    build_explanation_fields: Callable[[Float64, Float64], dict[str, Any]]

    @property
    def n_outputs(self) -> int:
        """Number of values of a leaf."""
        return self.trees.value.shape[1]

    def with_rows_per_node(self, rows_per_node: Float64) -> AdditiveTrees:
        """Return the same trees with these numbers of rows in their nodes, (M,)."""
        return replace(self, rows_per_node=rows_per_node)

    def get_fractional_routing(self, *tables: NDArray[Any]) -> tuple[Any, Any]:
        """Return two arguments of the core that send rows of these tables to both children.

        The first is a byte for each node, 1 if a row that lacks its value goes to both children; the
        second is `rows_per_node`. Both are None if no row of the tables goes to both children.
        """
        both = self.trees.missing_both
        if not both.any() or not any(len(find_rows_with_missing(X)) for X in tables):
            return None, None
        return both.view(np.uint8), self.rows_per_node

    def group_rows_by_routing(self, X: NDArray[Any]) -> list[NDArray[np.intp]]:
        """Return the indices of rows with one path, and of rows that may go to both children.

        An empty group is left out.
        """
        lacking = np.zeros(len(X), dtype=bool)
        if self.trees.missing_both.any():
            lacking[find_rows_with_missing(X)] = True
        return [rows for rows in (np.flatnonzero(~lacking), np.flatnonzero(lacking)) if len(rows)]

    @cached_property
    def depth(self) -> int:
        """Number of splits on the longest path; -1 without trees."""
        left, nodes, depth = self.trees.left, self.trees.root, -1
        while len(nodes):
            children = left[nodes[left[nodes] != LEAF]]
            nodes, depth = np.concatenate([children, children + 1]), depth + 1
        return depth

    def compute_outputs(self, X: NDArray[Any], n_threads: int) -> Float64:
        """Return the outputs of checked rows, (n, n_outputs)."""
        if self.get_fractional_routing(X)[0] is None:
            start = np.repeat(self.start[:, None], len(X), axis=1)
            return self.trees.add(start, X, n_threads).T
        # With zeros at inner nodes the changes along a path add up to the value of its leaf.
        value = np.where(self.trees.is_leaf[:, None], self.trees.value, 0.0)
        trees = self.trees.with_value(value)
        total: Float64 = trees.compute_contributions(X, n_threads, self.rows_per_node).sum(axis=2)
        return total + trees.root_value + self.start

    def compute_mean_output(self, rows_per_node: Float64) -> Float64:
        """Return the mean output, (n_outputs,), of rows that reach nodes in these numbers, (M,)."""
        mean = average_leaves(self.trees.left, rows_per_node, self.trees.value)
        total: Float64 = mean[self.trees.root].sum(axis=0)
        return total + self.start

    def count_rows_per_node(self, X: NDArray[Any], n_threads: int) -> Float64:
        """Count the rows of X that reach each node, (M,)."""
        leaf, no_target = self.trees.find_leaves(X, n_threads), np.zeros((len(X), 0))
        left, root = self.trees.left, self.trees.root
        sums = sum_out_of_bag_targets(
            left, root, ~leaf, no_target, None, np.zeros(0, np.int64), n_threads
        )
        return np.ascontiguousarray(sums[:, 0])


def check_additive(model: Any) -> Any:
    """Return the current state of a model of trees with numeric leaves, else raise TypeError."""
    if not hasattr(model, "_get_additive_trees"):
        raise TypeError(
            "model must be a tree, vote, forest, boosted trees or AdaBoost of certree whose leaves "
            f"predict probabilities or numbers, got {type(model).__name__}"
        )
    return get_snapshot(model)


def get_additive_trees(model: Any) -> AdditiveTrees:
    """Return the trees of a model that `check_additive` has returned."""
    trees: AdditiveTrees = model._get_additive_trees()
    return trees


def get_rows_per_node(
    model: AdditiveTrees, background: NDArray[Any] | None, n_threads: int
) -> Float64:
    """Return the rows in each node, (M,): those of the fit if kept, else those of the background."""
    if model.rows_per_node is not None:
        return model.rows_per_node
    if background is None:
        raise ValueError(
            "background must be an array of rows, got None: this model does not keep the number of "
            "training rows in its nodes; pass some rows of the fit"
        )
    return model.count_rows_per_node(background, n_threads)
