"""What the weighing rows say about every node: class counts and labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from certree import _core
from certree.columns import Float64, Int32, codes, column, matrix, row_weights
from certree.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class NodeStats:
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
        If shapes differ, a count is negative or not finite, or a label is no class.
    """

    counts: Float64
    label: Int32

    def __post_init__(self) -> None:
        counts: Float64 = column("counts", self.counts, "float64", (None, None))
        if counts.shape[1] == 0:
            raise ValueError("counts must have at least one class")
        if not np.isfinite(counts).all() or (counts.size and counts.min() < 0):
            raise ValueError("counts must be finite and non-negative")
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "label", codes("label", self.label, *counts.shape))

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.counts.shape[1])

    @property
    def n(self) -> Float64:
        """Rows in each node, (m,)."""
        rows: Float64 = self.counts.sum(axis=1)
        return rows

    @property
    def errors(self) -> Float64:
        """Rows in each node that its label gets wrong, (m,)."""
        right = np.take_along_axis(self.counts, self.label[:, None].astype(np.intp), axis=1)[:, 0]
        return self.n - right

    def of(self, tree: Tree) -> "NodeStats":
        """Check that the statistics belong to a tree of this size, and return them."""
        if len(self.label) != tree.n_nodes:
            raise ValueError(
                f"stats has {len(self.label)} nodes, but the tree has {tree.n_nodes} nodes"
            )
        return self


def count(
    tree: Tree,
    X: ArrayLike,
    y: ArrayLike,
    n_classes: int,
    label: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
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
        Class that each node predicts. None: the majority of these rows, ties to the lowest class; a
        node without rows predicts what its parent predicts.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as; None: one.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    NodeStats

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range.
    """
    rows = matrix(X)
    classes = codes("y", y, len(rows), n_classes)
    weight = row_weights(sample_weight, len(rows))
    leaf = tree.apply(rows, n_jobs=n_jobs)
    counts = _core.count(tree.left, leaf, classes, weight, n_classes)
    if label is None:
        label = _core.majority(tree.left, counts)
    return NodeStats(counts, np.asarray(label)).of(tree)
