"""What the calibration samples say about every node: class counts and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from certree._core import count as core_count
from certree._core import error_gains, frequencies, majority
from certree.interface.arrays import (
    MOST_ROWS,
    Float64,
    Int32,
    OfColumns,
    array_of,
    class_number,
    codes,
    column,
    matrix,
    row_weights,
)
from certree.interface.signatures import checked
from certree.tree import Tree, Trees

__all__ = ["NodeStats", "Stats", "count"]


class Stats(Protocol):
    """What the later stages ask of the statistics of a tree, whatever the target is."""

    @property
    def n(self) -> Float64:
        """Rows in each node, (m,)."""

    @property
    def loss(self) -> Float64:
        """What each node's rows cost if it is a leaf, (m,)."""

    @property
    def impurity(self) -> Float64:
        """What greedy splits lower, (m,)."""

    @property
    def table(self) -> Any:
        """What judges a vote, as the core takes it: a table of one row per node, or its entries."""

    def of(self, tree: Trees) -> Self:
        """Check that the statistics belong to a tree of this size, and return them."""

    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Loss, square root of the rows and, as a third term, leaves: gains (m, f) and root (f,)."""

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """What each node predicts: shares of the classes (m, K), or a mean (m, 1)."""

    def at(self, nodes: NDArray[np.intp]) -> Self:
        """The statistics of some nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeStats(OfColumns):
    """Class counts and a label for every node of a tree.

    Parameters
    ----------
    counts : array-like of float, shape (m, K)
        Number (or weight) of the rows of each class in each node. A node's row is the sum of its
        children's rows.
    label : array-like of int, shape (m,)
        Class that each node predicts. Stored, because it need not be the majority of `counts`: it
        may come from other rows.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If shapes differ, a count is negative, those of a node sum to more than 1e280, or a label is
        no class.
    """

    counts: Float64
    label: Int32

    def __post_init__(self) -> None:
        counts: Float64 = column("counts", self.counts, "float64", (None, None))
        if counts.shape[1] == 0:
            raise ValueError("counts must have at least one class")
        with np.errstate(over="ignore", invalid="ignore"):
            totals = counts.sum(axis=1)
        if not (totals <= MOST_ROWS).all() or (counts.size and counts.min() < 0):
            raise ValueError(
                f"counts must be finite and non-negative, and sum to at most {MOST_ROWS:g} in a node"
            )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "label", codes("label", self.label, *counts.shape))

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.counts.shape[1])

    @property
    def n(self) -> Float64:
        """Rows in each node, (m,)."""
        return self.counts.sum(axis=1)

    @property
    def errors(self) -> Float64:
        """Rows in each node that its label gets wrong, (m,)."""
        right = np.take_along_axis(self.counts, self.label[:, None].astype(np.intp), axis=1)[:, 0]
        return self.n - right

    @property
    def loss(self) -> Float64:
        """The errors, (m,)."""
        return self.errors

    @property
    def log_loss(self) -> Float64:
        """Log loss of the rows of each node under its own frequencies (nats), (m,): n times entropy."""
        n = self.n
        shares = self.counts / np.maximum(n, np.finfo(np.float64).tiny)[:, None]
        return n * entr(shares).sum(axis=1)

    @property
    def impurity(self) -> Float64:
        """Rows of each node times its Gini index, (m,)."""
        n = self.n
        # Powers of two change no digit, and squares of large weights would overflow.
        scale = 2.0 ** -np.frexp(max(n.max(initial=0.0), 1.0))[1]
        least = np.finfo(np.float64).tiny
        squares = ((self.counts * scale) ** 2).sum(axis=1) / np.maximum(n * scale, least) / scale
        return np.maximum(n - squares, 0.0)

    @property
    def table(self) -> Float64:
        """The counts, (m, K)."""
        return self.counts

    def of(self, tree: Trees) -> Self:
        """Check that the statistics belong to a tree of this size, and return them."""
        expect_nodes(len(self.label), tree)
        return self

    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Errors, square root of the rows and, as a third term, leaves: gains (m, f) and root (f,)."""
        gains = error_gains(tree.left, self.counts, self.label, n_terms, empty_leaves)
        n = self.counts[tree.root].sum(axis=1)
        wrong = n - self.counts[tree.root, self.label[tree.root]]
        terms = [wrong, np.sqrt(n), (n > 0) | empty_leaves]
        return gains, np.array([term.sum() for term in terms[:n_terms]], dtype=np.float64)

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """Shares of the classes in each node, (m, K), smoothed as `vote` says."""
        return frequencies(tree.left, self.counts, smoothing)

    def at(self, nodes: NDArray[np.intp]) -> NodeStats:
        """The statistics of some nodes."""
        return NodeStats(self.counts[nodes], self.label[nodes])


def expect_nodes(n_nodes: int, tree: Trees) -> None:
    """Check that statistics of so many nodes belong to a tree of this size."""
    if n_nodes != len(tree.left):
        raise ValueError(f"stats has {n_nodes} nodes, but the tree has {tree.n_nodes} nodes")


@checked
def count(
    tree: Tree,
    X: ArrayLike,
    y: ArrayLike,
    n_classes: int,
    label: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    empty: Literal["parent", "first"] = "parent",
    n_jobs: int | None = None,
) -> NodeStats:
    """Count the classes of the rows in every node.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of int, shape (n,)
        Class of each row, 0 .. n_classes - 1.
    n_classes : int
        Number of classes, K.
    label : array-like of int, shape (m,), or None
        Class that each node predicts. None: the majority of these rows, ties to the lowest class.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as; None: one.
    empty : {"parent", "first"}
        What a node without rows predicts, if no labels are given: what its parent does, or the first
        class, as Corollary 1 of Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, has it.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    NodeStats

    Raises
    ------
    TypeError, ValueError
        If `empty` is unknown, or an array has a wrong dtype, shape or range.
    """
    rows = matrix(X)
    n_classes = class_number(n_classes)
    classes = codes("y", y, len(rows), n_classes)
    weight = row_weights(sample_weight, len(rows))
    stats = counted(tree, tree.apply(rows, n_jobs=n_jobs), classes, weight, n_classes)
    if label is not None:
        return NodeStats(stats.counts, array_of("label", label)).of(tree)
    if empty == "first":
        return NodeStats(stats.counts, np.where(stats.n > 0, stats.label, 0))
    return stats


def counted(
    tree: Trees, leaf: Int32, y: Int32, weight: Float64 | None, n_classes: int
) -> NodeStats:
    """Do what `count` does, for rows that have been checked and routed to their leaves."""
    counts = core_count(tree.left, leaf, y, weight, n_classes)
    return NodeStats.made(counts, majority(tree.left, counts))
