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
    """A fitted model whose output is a constant plus the value of one leaf of each tree.

    Parameters
    ----------
    trees : Trees
        The trees, of M nodes together. The values of leaves, (n_outputs,) each, are added; those of
        inner nodes are not used.
    start : ndarray of float64, shape (n_outputs,)
        The constant.
    rows_per_node : ndarray of float64, shape (M,), or None
        Number, or total weight, of the training rows in each node. A row that lacks a value goes to
        both children in proportion to these numbers. None if the model does not keep them.
    build_explanation_fields : callable
        Takes a base (output before any feature counts), (n_outputs,), and contributions of p
        features to be added to it for n rows, (n, n_outputs, p). Returns the arguments of
        `Explanation` that depend on the target: "base", "contributions", "output_names", "scale".
    """

    trees: Trees
    start: Float64
    rows_per_node: Float64 | None
    build_explanation_fields: Callable[[Float64, Float64], dict[str, Any]]

    @property
    def n_outputs(self) -> int:
        """Number of values of each leaf, which is the number of outputs of the model for a row."""
        return self.trees.value.shape[1]

    def with_rows_per_node(self, rows_per_node: Float64) -> AdditiveTrees:
        """Return a copy of these trees with other numbers of training rows in their nodes.

        rows_per_node: number, or total weight, of rows in each of the M nodes, (M,).
        """
        return replace(self, rows_per_node=rows_per_node)

    def get_fractional_routing(
        self, *tables: NDArray[Any]
    ) -> tuple[NDArray[np.uint8] | None, Float64 | None]:
        """Return two arguments of the C++ routines that send rows down trees, for missing values.

        Parameters
        ----------
        *tables : ndarray of shape (n, p)
            Rows that will be routed.

        Returns
        -------
        both : ndarray of uint8, shape (M,), or None
            1 for nodes whose split sends a row without the feature's value to both children. None
            if there is no such node, or no row of the tables lacks a value.
        rows_per_node : ndarray of float64, shape (M,), or None
            Number, or total weight, of the training rows in each node, in proportion to which such
            a row is divided among both children; None if `both` is None or the model does not keep
            these numbers.
        """
        both = self.trees.missing_both
        if not both.any() or not any(len(find_rows_with_missing(X)) for X in tables):
            return None, None
        return both.view(np.uint8), self.rows_per_node

    def group_rows_by_routing(self, X: NDArray[Any]) -> list[NDArray[np.intp]]:
        """Group rows by whether they have one path in each tree, or may go to both children.

        X: numeric rows, (n, p), categories as codes. Return a list of arrays of row indices: first
        the rows with one path, then those that lack a value and may go to both children of a
        split. Groups without rows are left out.
        """
        lacks_value = np.zeros(len(X), dtype=bool)
        if self.trees.missing_both.any():
            lacks_value[find_rows_with_missing(X)] = True
        return [
            rows
            for rows in (np.flatnonzero(~lacks_value), np.flatnonzero(lacks_value))
            if len(rows)
        ]

    @cached_property
    def depth(self) -> int:
        """Number of splits on the longest path in these trees; -1 if there are no trees.

        0 if each tree is a single leaf.
        """
        left, nodes, depth = self.trees.left, self.trees.root, -1
        while len(nodes):
            children = left[nodes[left[nodes] != LEAF]]
            nodes, depth = np.concatenate([children, children + 1]), depth + 1
        return depth

    def compute_outputs(self, X: NDArray[Any], n_threads: int) -> Float64:
        """Compute the outputs of rows: the constant plus the leaf values of all trees.

        X: numeric rows, (n, p), categories as codes; n_threads: number of threads. Return an array
        (n, n_outputs). For a row that goes to both children, their values are averaged in
        proportion to `rows_per_node`.
        """
        if self.get_fractional_routing(X)[0] is None:
            start = np.repeat(self.start[:, None], len(X), axis=1)
            return self.trees.add(start, X, n_threads).T
        # With zeros at inner nodes the changes along a path add up to the value of its leaf.
        value = np.where(self.trees.is_leaf[:, None], self.trees.value, 0.0)
        trees = self.trees.with_value(value)
        total: Float64 = trees.compute_contributions(X, n_threads, self.rows_per_node).sum(axis=2)
        return total + trees.root_value + self.start

    def compute_mean_output(self, rows_per_node: Float64) -> Float64:
        """Compute the mean output, (n_outputs,), over rows: the constant plus the mean leaf values.

        The leaves of each tree are averaged in proportion to the rows in them. rows_per_node:
        number, or weight, of these rows in each of the M nodes, (M,).
        """
        mean = average_leaves(self.trees.left, rows_per_node, self.trees.value)
        total: Float64 = mean[self.trees.root].sum(axis=0)
        return total + self.start

    def count_rows_per_node(self, X: NDArray[Any], n_threads: int) -> Float64:
        """Count how many rows of X reach each of the M nodes; return float64, (M,).

        X: numeric rows, (n, p), categories as codes; n_threads: number of threads. Each row counts
        in all nodes from the root to one leaf of each tree.
        """
        leaf, no_target = self.trees.find_leaves(X, n_threads), np.zeros((len(X), 0))
        left, root = self.trees.left, self.trees.root
        sums = sum_out_of_bag_targets(
            left, root, ~leaf, no_target, None, np.zeros(0, np.int64), n_threads
        )
        return np.ascontiguousarray(sums[:, 0])


def check_additive(model: Any) -> Any:
    """Check that a model has trees with numeric leaves, and return a snapshot of it.

    A snapshot is a shallow copy that later fits do not change; pass it to `get_additive_trees`.
    model: any object. Raise TypeError unless the model is a tree, forest, boosted trees or AdaBoost
    of certree whose leaves hold probabilities or numbers, not fitted models. Whether it is fitted
    is not checked.
    """
    if not hasattr(model, "_get_additive_trees"):
        remedy = ""
        if type(model).__name__ == "Pipeline":
            remedy = ": pass model[-1], and rows that the other steps have transformed"
        raise TypeError(
            "model must be a tree, forest, boosted trees or AdaBoost of certree whose leaves hold "
            f"probabilities or numbers, not fitted models, got {type(model).__name__}{remedy}"
        )
    return get_snapshot(model)


def get_additive_trees(model: Any) -> AdditiveTrees:
    """Return a fitted model as a constant plus the value of one leaf of each tree.

    model: a tree, forest, boosted trees or AdaBoost of certree, which `check_additive` has
    returned. The result holds the trees, the constant and, if the model keeps them, the numbers of
    training rows in the nodes. Raise NotFittedError if the model is not fitted.
    """
    trees: AdditiveTrees = model._get_additive_trees()
    return trees


def get_rows_per_node(
    model: AdditiveTrees, background: NDArray[Any] | None, n_threads: int
) -> Float64:
    """Return the number, or weight, of rows in each node of the model's trees, (M,).

    These are the rows of the fit if the model keeps their numbers, else those of `background`:
    numeric rows, (m, p), categories as codes, which are routed to the leaves by `n_threads`
    threads. Raise ValueError if the model does not keep them and `background` is None.
    """
    if model.rows_per_node is not None:
        return model.rows_per_node
    if background is None:
        raise ValueError(
            "background must be an array of rows, got None: this model does not keep the number of "
            "training rows in its nodes, so pass training rows, such as background=X_train[:100]"
        )
    return model.count_rows_per_node(background, n_threads)
