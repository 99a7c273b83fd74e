"""Many trees as one set of columns, and what they say together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import add_trees, attribute, find_leaves, find_out_of_bag, pack_trees
from certree.interface.arrays import Float64, Int32, Int64, OfColumns
from certree.tree import LEAF, Tree, expect_trees

# Columns of nodes, in the order of the fields of `Trees`.
_Nodes = tuple[Int32, Float64, Int32, NDArray[np.bool_], Int64, Int32]


@dataclass(frozen=True, eq=False)
class Trees(OfColumns):
    """Trees whose nodes stand one after the other.

    Parameters
    ----------
    feature, threshold, left, missing_left, category_start, categories
        As those of `Tree`, of all nodes, M; children are numbered among all of them.
    root : ndarray of int64, shape (T,)
        First node of each tree.
    value : ndarray of float64, shape (M, n_outputs)
        What a tree adds to the scores at each leaf. At other nodes the part of it that is known there:
        what a child has more is due to the feature that its parent compares.
    n_features : int
        Number of features, p.

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If the columns are not those of trees.
    """

    feature: Int32
    threshold: Float64
    left: Int32
    missing_left: NDArray[np.bool_]
    category_start: Int64
    categories: Int32
    root: Int64
    value: Float64
    n_features: int

    def __post_init__(self) -> None:
        m, t = len(self.feature), len(self.root)
        self._check("int32", (m,), "feature", "left")
        self._check("float64", (m,), "threshold")
        self._check("float64", (m, None), "value")
        self._check("bool", (m,), "missing_left")
        self._check("int64", (m + 1,), "category_start")
        self._check("int32", (None,), "categories")
        self._check("int64", (t,), "root")
        expect_trees(self, self.root)
        if not np.isfinite(self.value).all():
            raise ValueError("value must be finite")

    @classmethod
    def of(
        cls, trees: Sequence[Tree], values: Sequence[Float64], p: int, n_outputs: int
    ) -> "Trees":
        """Put trees of p features together, with their values, (m, n_outputs) each."""
        columns, root = _joined(trees)
        return cls(*columns, root, np.concatenate([np.zeros((0, n_outputs)), *values]), p)

    def __len__(self) -> int:
        return len(self.root)

    def tree(self, number: int) -> tuple[Tree, Float64]:
        """One of the trees, and the values of its nodes (m, n_outputs)."""
        number = range(len(self))[number]
        first, last = [*self.root, len(self.feature)][number : number + 2]
        start = self.category_start[first : last + 1]
        left = self.left[first:last]
        tree = Tree(
            self.feature[first:last],
            self.threshold[first:last],
            np.where(left == LEAF, LEAF, left - first),
            np.ones(last - first, dtype=np.int32),
            self.n_features,
            self.missing_left[first:last],
            start - start[0],
            self.categories[start[0] : start[-1]],
        )
        return tree, self.value[first:last]

    def parts(self, first: int = 0) -> list[tuple[Tree, Float64]]:
        """Trees from one on, each with its values."""
        return [self.tree(number) for number in range(first, len(self))]

    def plus(self, others: "Trees") -> "Trees":
        """These trees, and behind them others."""
        columns, begin = _joined([self, others])
        root = np.append(self.root, others.root + begin[1])
        value = np.concatenate([self.value, others.value])
        return Trees(*columns, root, value, self.n_features)

    def add(
        self,
        scores: Float64,
        X: NDArray[Any],
        n_threads: int,
        first: int = 0,
        last: int | None = None,
    ) -> Float64:
        """Scores (n_outputs, n) of rows, with what trees first .. last - 1 say added in turn."""
        last = len(self) if last is None else last
        sets = self.category_start, self.categories
        return add_trees(
            self._packed, *sets, self.root, self.value, first, last, X, scores, n_threads
        )

    def leaves(self, X: NDArray[Any], n_threads: int) -> Int32:
        """Leaf of each row in each tree, numbered among all nodes, (T, n)."""
        sets = self.category_start, self.categories
        return find_leaves(self._packed, *sets, self.root, X, n_threads)

    def out_of_bag(self, X: NDArray[Any], drawing: tuple[str, int, int], n_threads: int) -> Int32:
        """Complements of leaves (T, n) of rows that were not drawn for a tree; 0 for others.

        Rows come in the order in which they were drawn; see `ForestGrower.drawing`.
        """
        sets = self.category_start, self.categories
        return find_out_of_bag(self._packed, *sets, self.root, X, drawing, n_threads)

    def contributions(self, X: NDArray[Any], n_threads: int) -> tuple[Float64, Float64]:
        """What all roots say (n_outputs,), and what each feature changes of it, (n, n_outputs, p)."""
        attributed: Any = attribute  # whose overloads mypy does not tell apart behind a star
        part: Float64 = attributed(*self._nodes, self.root, self.value, X, None, None, n_threads)
        part = part.reshape(len(X), self.value.shape[1], self.n_features)
        return self.value[self.root].sum(axis=0), part

    @property
    def _nodes(self) -> tuple[Any, ...]:
        """The columns of nodes as the core takes them."""
        missing_left = self.missing_left.view(np.uint8)
        nodes = self.feature, self.threshold, self.left, missing_left
        return (*nodes, self.category_start, self.categories)

    @cached_property
    def _packed(self) -> NDArray[np.uint64]:
        return pack_trees(*self._nodes)


def by_row(scores: Float64) -> Float64:
    """Scores (n_outputs, n) row by row, (n, n_outputs): sums over a row are then its own affair.

    NumPy adds along the axis whose numbers lie next to each other in another order than across it, and
    in a single row all do.
    """
    return np.ascontiguousarray(scores.T)


def _joined(parts: Sequence[Tree | Trees]) -> tuple[_Nodes, Int64]:
    """The columns of nodes one behind the other, and where the nodes of each part begin."""

    def joined(columns: Sequence[NDArray[Any]], dtype: str) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, dtype), *columns])

    sizes = np.array([len(one.feature) for one in parts], dtype=np.int64)
    begin = np.cumsum(sizes) - sizes
    sets = np.append(0, np.cumsum([len(one.categories) for one in parts])).astype(np.int64)
    left = joined([one.left for one in parts], "int32")
    starts = [one.category_start[:-1] + n for one, n in zip(parts, sets, strict=False)]
    columns = (
        joined([one.feature for one in parts], "int32"),
        joined([one.threshold for one in parts], "float64"),
        np.where(left == LEAF, LEAF, left + np.repeat(begin, sizes)).astype(np.int32),
        joined([one.missing_left for one in parts], "bool"),
        joined([*starts, sets[-1:]], "int64"),
        joined([one.categories for one in parts], "int32"),
    )
    return columns, begin
