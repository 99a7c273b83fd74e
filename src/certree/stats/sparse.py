"""Class counts of nodes for many classes, as sparse entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import entr

from certree._core import compute_error_gains, count_class_entries, find_majority_classes
from certree.interface.arrays import (
    ADDED_LATER,
    MAX_TOTAL_WEIGHT,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_codes,
    check_n_classes,
)
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_settings
from certree.stats.nodes import NodeStats, count_by_leaf, expect_nodes, expect_unit
from certree.tree import Tree, Trees

__all__ = ["SparseNodeStats"]

# Number of classes from which on estimators use sparse counts where they can.
MANY_CLASSES = 100

# A sparse table for the C++ core: begin, classes, weight and the number of classes.
Entries = tuple[Int64, Int32, Float64, int]


@dataclass(frozen=True, slots=True, eq=False)
class SparseNodeStats(ArrayRecord):
    """Class counts and a label for every node of a tree, without zero counts.

    An entry is the count of one class in one node; only positive counts have entries. Trees for
    many classes use it in place of `NodeStats`; `SparseNodeStats.count` makes it.

    Parameters
    ----------
    begin : array-like of int, shape (m + 1,)
        Entries ``begin[v] .. begin[v + 1] - 1`` belong to node v.
    classes : array-like of int, shape (e,)
        Class of each of the e entries, ascending in a node.
    weight : array-like of float, shape (e,)
        Number (or total weight) of the rows of that class in that node, positive.
    label : array-like of int, shape (m,)
        Class that each node predicts.
    n_classes : int
        Number of classes, K.
    weight_unit : float
        Mean weight of a row of the fit. Sums of weights divided by it count as numbers of rows.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If shapes do not match, a class or a label is outside 0 .. K - 1, classes do not ascend, or
        weights are not positive or sum to more than 1e280 in a node.
    """

    begin: Int64
    classes: Int32
    weight: Float64
    label: Int32
    n_classes: int
    weight_unit: float = field(default=1.0, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", check_n_classes(self.n_classes))
        validate_settings(self)
        self._check("int64", (None,), "begin")
        self._check("float64", (None,), "weight")
        m, n = len(self.begin) - 1, len(self.weight)
        ascends = m >= 0 and self.begin[0] == 0 and (np.diff(self.begin) >= 0).all()
        if not ascends or self.begin[-1] != n:
            raise ValueError(
                f"begin must ascend from 0 to {n}, the number of entries, got {self.begin}"
            )
        object.__setattr__(self, "classes", check_codes("classes", self.classes, n, self.n_classes))
        object.__setattr__(self, "label", check_codes("label", self.label, m, self.n_classes))
        if (np.diff(self._node * np.int64(self.n_classes) + self.classes) <= 0).any():
            raise ValueError(
                "classes must ascend in every node: sort the entries of a node by class"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            if not ((self.weight > 0).all() and (self.n <= MAX_TOTAL_WEIGHT).all()):
                raise ValueError(
                    f"weight must be positive, and sum to at most {MAX_TOTAL_WEIGHT:g} in a node, "
                    f"got weights from {self.weight.min():g} and sums up to {self.n.max():g}"
                )
        expect_unit(self)

    @classmethod
    @copy_descriptions_from(count_by_leaf)
    def count(
        cls,
        tree: Tree,
        leaf: Int32,
        y: Int32,
        weight: Float64 | None,
        n_classes: int,
        weight_unit: float = 1.0,
    ) -> SparseNodeStats:
        """Count the classes of rows in every node from the leaves that the rows reach.

        Parameters
        ----------
        tree : Tree
            The tree.
        {leaf, y} {weight} {n_classes} {weight_unit}

        Returns
        -------
        SparseNodeStats
            Labels are majorities, the lowest class on ties; nodes without rows have the label of
            their parent.
        """
        entries = count_class_entries(tree.left, leaf, y, weight)
        label = find_majority_classes(tree.left, (*entries, n_classes))
        return cls(*entries, label, n_classes, weight_unit)

    @property
    def _node(self) -> NDArray[np.intp]:
        """Number of the node of each entry, (e,).

        It ascends, as entries are stored node by node.
        """
        return np.repeat(np.arange(len(self.label)), np.diff(self.begin))

    def _to_csr(self, values: Float64) -> csr_array:
        """Return a sparse matrix of nodes and classes, (m, K).

        values: the value of each of the e entries, (e,); pairs of node and class without an entry
        are 0.
        """
        return csr_array(
            (values, self.classes, self.begin), shape=(len(self.label), self.n_classes)
        )

    def _sum_entries(self, values: Float64) -> Float64:
        """Return the sum over the entries of each node, (m,).

        values: the value of each of the e entries, (e,).
        """
        return np.asarray(self._to_csr(values).sum(axis=1), dtype=np.float64)

    @property
    def counts(self) -> Float64:
        """Number (or weight) of the rows of each class in each node, as a dense table, (m, K)."""
        return self._to_csr(self.weight).toarray()

    def to_dense(self) -> NodeStats:
        """Return the same statistics as `NodeStats`, with a dense table of counts (m, K)."""
        return NodeStats(self.counts, self.label, self.weight_unit)

    @property
    def n(self) -> Float64:
        """Sum of the weights of the rows in each node, (m,)."""
        return self._sum_entries(self.weight)

    @property
    def errors(self) -> Float64:
        """Weight of the rows in each node whose class is not the label of the node, (m,)."""
        is_correct = self.classes == self.label[self._node]
        return self._sum_entries(np.where(is_correct, 0.0, self.weight))

    @property
    def loss(self) -> Float64:
        """The errors: weight of the rows of each node whose class is not its label, (m,)."""
        return self.errors

    @property
    def log_loss(self) -> Float64:
        """Log loss of the rows of each node under its class frequencies (nats), (m,).

        It is the weight of the rows times the entropy of the class frequencies.
        """
        n = self.n
        return n * self._sum_entries(entr(self.weight / n[self._node]))

    @property
    def impurity(self) -> Float64:
        """Weight of each node times its Gini index, (m,)."""
        frequency = self.weight / self.n[self._node]
        return self._sum_entries(self.weight * (1.0 - frequency))

    @property
    def table(self) -> Entries:
        """The sparse counts as a tuple for the C++ core: begin, classes, weight, n_classes.

        These are the fields of this object with the same names.
        """
        return self.begin, self.classes, self.weight, self.n_classes

    def check_tree(self, tree: Trees) -> Self:
        """Return these statistics, or raise ValueError if `tree` has another number of nodes."""
        expect_nodes(len(self.label), tree)
        return self

    @copy_descriptions_from(NodeStats.terms)
    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Compute the terms whose weighted sum over leaves is the log weight of a pruning.

        A pruning is a subtree of the grown tree with the same root. `PosteriorFamily`, the set of
        posteriors over prunings, holds the factors of the terms (such as minus the inverse
        temperatures), and computes the weights of all prunings from the result.

        Parameters
        ----------
        tree : Trees
            The tree of these m nodes.
        {n_terms} {empty_leaves}

        Returns
        -------
        {gains}
        root : ndarray of float64, shape (n_terms,)
            Terms of the root.
        """
        unit = self.weight_unit
        gains = compute_error_gains(tree.left, self.table, self.label, unit, n_terms, empty_leaves)
        n = self.weight[: self.begin[1]].sum()
        wrong = self.weight[: self.begin[1]][self.classes[: self.begin[1]] != self.label[0]].sum()
        terms = [wrong / unit, np.sqrt(n / unit), float(empty_leaves or n > 0)]
        return gains, np.array(terms[:n_terms])

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """Compute the smoothed class frequencies of each node as a dense table, (m, K).

        tree: the tree of these m nodes. smoothing: a pseudo-count, the number of rows of mean
        weight that are added to each node. The added rows have the class frequencies of the parent;
        at the root all classes are equally frequent among them.
        """
        return self.to_dense().averages(tree, smoothing)

    def take(self, nodes: NDArray[np.intp]) -> SparseNodeStats:
        """Return the sparse statistics of k nodes.

        nodes: node numbers, (k,). Node i of the result is ``nodes[i]``.
        """
        counts = self._to_csr(self.weight)[nodes]
        begin = counts.indptr.astype(np.int64)
        label = self.label[nodes]
        return SparseNodeStats(
            begin, counts.indices, counts.data, label, self.n_classes, self.weight_unit
        )
