"""T0 as columns: which cell a row lies in."""

from contextlib import nullcontext
from dataclasses import dataclass, fields
from multiprocessing import current_process
from typing import Any, Protocol

import numpy as np
from joblib import effective_n_jobs, parallel_config
from numpy.typing import ArrayLike, NDArray

from certree._core import apply, attribute, blend, depths, mark_lacking
from certree.arrays import Float64, Int32, Int64, OfColumns, column, frozen, matrix
from certree.signatures import checked, expect_settings

LEAF = -1
# Laws look at every cell of a chain; those that are grown have at most 48 for each feature.
_LONGEST_CHAIN = 2**24

# What a grower of the core returns: the columns of a Tree in the order of its fields, without
# n_features. `category_start` is empty where no node compares categories.
Columns = tuple[Int32, Float64, Int32, Int32, NDArray[np.uint8], Int64, Int32, bool | None]


@dataclass(frozen=True, slots=True, eq=False)
class Tree(OfColumns):
    """A binary tree of nested cells, stored as one column per property of a node.

    The root is node 0, children come after their parents, siblings are adjacent. A row goes to the
    left child if ``x[feature] <= threshold`` and to the right one otherwise; NaN goes where
    `missing_left` says. A node with a set of categories compares no threshold: the categories of
    its set go to the side opposite to `missing_left`, all other values go where NaN goes.

    Parameters
    ----------
    feature : array-like of int, shape (m,)
        Feature that a node compares; 0 at leaves.
    threshold : array-like of float, shape (m,)
        Threshold that a node compares with; 0 at leaves.
    left : array-like of int, shape (m,)
        Left child, or -1 at leaves. The right child is ``left + 1``.
    chain : array-like of int, shape (m,)
        Number of nested cells with the same rows that a node stands for.
    n_features : int
        Number of features of the rows.
    missing_left : array-like of bool, shape (m,), or None
        Whether NaN goes to the left child; None: it goes right everywhere.
    category_start : array-like of int, shape (m + 1,), or None
        Where the set of each node starts in `categories`; it ends where the next one starts. None:
        no node compares categories.
    categories : array-like of int, shape (any,), or None
        The sets of all nodes, one after the other, each ascending. A category is a whole number
        >= 0.
    optimal_splits : bool or None
        Whether every split is known to be the best of its cell; False where a heuristic was used,
        None for trees that were not grown by maximising something, or where it is not known.
    missing_both : array-like of bool, shape (m,), or None
        Whether `blend` sends a row with NaN both ways; None: nowhere.

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If the columns are not those of a tree.
    """

    feature: Int32
    threshold: Float64
    left: Int32
    chain: Int32
    n_features: int
    missing_left: NDArray[np.bool_] = None  # type: ignore[assignment] # set in __post_init__
    category_start: Int64 = None  # type: ignore[assignment] # the same
    categories: Int32 = None  # type: ignore[assignment] # the same
    optimal_splits: bool | None = None
    missing_both: NDArray[np.bool_] = None  # type: ignore[assignment] # set in __post_init__

    def __post_init__(self) -> None:
        left: Int32 = column("left", self.left, "int32", (None,))
        m = len(left)
        if m == 0:
            raise ValueError("a tree has at least one node, got none")
        # What is not given is the same for all nodes: NaN goes right, and no node compares categories.
        for name, dtype, length, default in (
            ("left", "int32", m, None),
            ("feature", "int32", m, None),
            ("threshold", "float64", m, None),
            ("chain", "int32", m, None),
            ("missing_left", "bool", m, np.zeros(m, dtype=bool)),
            ("missing_both", "bool", m, np.zeros(m, dtype=bool)),
            ("category_start", "int64", m + 1, np.zeros(m + 1, dtype=np.int64)),
            ("categories", "int32", None, np.zeros(0, dtype=np.int32)),
        ):
            given: Any = default if getattr(self, name) is None else getattr(self, name)
            object.__setattr__(self, name, column(name, given, dtype, (length,)))
        expect_settings(self)
        object.__setattr__(self, "n_features", int(self.n_features))
        most = np.iinfo(np.int32).max
        if not 1 <= self.n_features <= most:
            raise ValueError(f"n_features must lie in 1 .. {most}, got {self.n_features}")
        expect_trees(self, np.zeros(1, dtype=np.int64))
        if self.chain.min() < 1 or self.chain.max() > _LONGEST_CHAIN:
            raise ValueError(f"chain must be at least 1 and at most {_LONGEST_CHAIN}")
        if self.optimal_splits not in (True, False, None):
            raise ValueError(
                f"optimal_splits must be True, False or None, got {self.optimal_splits!r}"
            )

    @classmethod
    def of(cls, columns: Columns, p: int) -> "Tree":
        """Make a tree of the columns that a grower of the core returns, which are not checked again."""
        feature, threshold, left, chain, missing_left, category_start, categories, optimal = columns
        m = len(left)
        if not len(category_start):
            category_start = np.frombuffer(bytes(8 * (m + 1)), dtype=np.int64)
        neither = np.frombuffer(bytes(m), dtype=np.bool_)
        goes_left = missing_left.view(np.bool_)
        nodes = feature, threshold, left, chain
        return cls.made(*nodes, p, goes_left, category_start, categories, optimal, neither)

    def category_set(self, node: int) -> Int32:
        """Categories that a node compares, ascending; empty if it compares its threshold."""
        return self.categories[self.category_start[node] : self.category_start[node + 1]]

    def restricted(self, kept: NDArray[np.intp], is_leaf: NDArray[np.bool_]) -> "Tree":
        """Cut the tree down to some of its nodes.

        Parameters
        ----------
        kept : ndarray of int
            The nodes that stay, ascending: the root and, of every node that stays, both children or
            none.
        is_leaf : ndarray of bool, shape (len(kept),)
            Which of them are leaves then. What is left of their chains is one cell.

        Returns
        -------
        Tree
        """
        number = np.zeros(self.n_nodes, dtype=np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        inner = ~is_leaf
        sizes = np.where(inner, np.diff(self.category_start)[kept], 0)
        stays = np.zeros(self.n_nodes, dtype=bool)
        stays[kept[inner]] = True
        return Tree(
            np.where(inner, self.feature[kept], 0),
            np.where(inner, self.threshold[kept], 0.0),
            np.where(inner, number[self.left[kept]], np.int32(LEAF)),
            np.where(inner, self.chain[kept], 1),
            self.n_features,
            inner & self.missing_left[kept],
            np.concatenate([[0], np.cumsum(sizes)]),
            self.categories[np.repeat(stays, np.diff(self.category_start))],
            self.optimal_splits,
            inner & self.missing_both[kept],
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes, m."""
        return len(self.left)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @property
    def n_cells(self) -> int:
        """Number of cells, those inside chains included."""
        return int(self.chain.sum(dtype=np.int64))

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf, (m,)."""
        return self.left == LEAF

    @property
    def parent(self) -> Int32:
        """Parent of each node, (m,); -1 for the root."""
        parent = np.full(self.n_nodes, -1, dtype=np.int32)
        inner = np.flatnonzero(self.left != LEAF)
        parent[self.left[inner]] = parent[self.left[inner] + 1] = inner
        return parent

    @property
    def node_depth(self) -> NDArray[np.int64]:
        """Number of cells above the first cell of each node, (m,)."""
        return depths(self.left, self.chain)

    @property
    def depth(self) -> int:
        """Number of cells above the deepest cell."""
        return int((self.node_depth + self.chain - 1).max())

    def apply(self, X: ArrayLike, *, n_jobs: int | None = None) -> Int32:
        """Find the leaf of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows, float64 or float32, compared as they are.
        n_jobs : int or None
            Number of threads; None is one, -1 all.

        Returns
        -------
        ndarray of int32, shape (n,)
            Leaf of each row.

        Raises
        ------
        TypeError
            If X is not numeric, or float16.
        ValueError
            If X has another number of features, or holds an infinity.
        """
        rows = matrix(X)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"X has {rows.shape[1]} features, but the tree has {self.n_features} features"
            )
        return self.route(rows, threads(n_jobs))

    def route(self, X: NDArray[np.floating], n_threads: int) -> Int32:
        """Do what `apply` does, for rows that have been checked."""
        return apply(*self._splits, X, n_threads)

    @property
    def _splits(self) -> tuple[Int32, Float64, Int32, NDArray[np.uint8], Int64, Int32]:
        """The columns by which rows are sent on, as the core takes them."""
        sides = self.missing_left.view(np.uint8)
        return self.feature, self.threshold, self.left, sides, self.category_start, self.categories

    def knowing_missing(self, X: NDArray[np.floating]) -> "Tree":
        """Send rows both ways where they lack a value that none of these rows lacks there."""
        lacks = mark_lacking(*self._splits, X[lacking_rows(X)]).view(np.bool_)
        *columns, _ = (getattr(self, field.name) for field in fields(self))
        return Tree.made(*columns, frozen(~lacks & (self.left != LEAF)))

    def blend(
        self, X: NDArray[np.floating], rows: Float64, score: Float64, n_threads: int
    ) -> Float64:
        """Average the scores of the leaves that each row may belong to, (n, K).

        Where `missing_both` says so, a row that lacks the value goes both ways, with the shares that
        the children have of these rows, (m,). Otherwise it goes where `missing_left` says.
        """
        return blend(*self._splits, X, self.missing_both.view(np.uint8), rows, score, n_threads)

    def contributions(
        self, X: NDArray[np.floating], rows: Float64, value: Float64, n_threads: int
    ) -> Float64:
        """What each feature changes of the values (m, K) along the paths from the root, (n, K, p).

        Rows that lack values go as `blend` says, by the rows (m,) of the nodes.
        """
        root, both = np.zeros(1, dtype=np.int64), self.missing_both.view(np.uint8)
        part = attribute(*self._splits, root, value, X, both, rows, n_threads)
        return part.reshape(len(X), value.shape[1], self.n_features)


class _Nodes(Protocol):
    """Columns of the nodes of trees, of the types and lengths that `Tree` says."""

    @property
    def feature(self) -> Int32: ...
    @property
    def threshold(self) -> Float64: ...
    @property
    def left(self) -> Int32: ...
    @property
    def category_start(self) -> Int64: ...
    @property
    def categories(self) -> Int32: ...
    @property
    def n_features(self) -> int: ...


def expect_trees(nodes: _Nodes, root: Int64) -> None:
    """Check that columns are those of trees that stand one after the other.

    Parameters
    ----------
    nodes : Tree or Trees
        Has the columns, whose children are numbered among all nodes.
    root : ndarray of int64, shape (T,)
        First node of each tree.

    Raises
    ------
    ValueError
        If they are not.
    """
    left, m = nodes.left, len(nodes.left)
    sizes = np.diff(np.append(root, m))
    if (len(root) and root[0] != 0) or (sizes < 1).any() or (m and not len(root)):
        raise ValueError("root must ascend from 0, and every tree have a node")
    inner = np.flatnonzero(left != LEAF)
    children, end = left[inner], np.repeat(root + sizes, sizes)[inner]
    if (children <= inner).any() or (children >= end - 1).any():
        raise ValueError("left must be -1 or a node after its parent that has a sibling")
    is_child = np.zeros(m, dtype=bool)
    is_child[children] = is_child[children + 1] = True
    # As many are children as there are places for them: nobody has two parents.
    if not 2 * len(inner) == is_child.sum() == m - len(root):
        raise ValueError("every node but the root must have exactly one parent")
    compared = nodes.feature[inner]
    if compared.size and (compared.min() < 0 or compared.max() >= nodes.n_features):
        raise ValueError(f"feature must lie in 0 .. {nodes.n_features - 1}")
    if not np.isfinite(nodes.threshold[inner]).all():
        raise ValueError("threshold must be finite")
    _expect_sets(nodes)


def _expect_sets(nodes: _Nodes) -> None:
    """Check the sets of categories."""
    start, categories = nodes.category_start, nodes.categories
    sizes = np.diff(start)
    if start[0] != 0 or start[-1] != len(categories) or (sizes < 0).any():
        raise ValueError("category_start must ascend from 0 to the number of categories")
    if not len(categories):
        return
    if sizes[nodes.left == LEAF].any():
        raise ValueError("only inner nodes compare categories, but a leaf has some")
    ascending = np.ones(len(categories), dtype=bool)
    ascending[1:] = np.diff(categories) > 0
    ascending[start[:-1][sizes > 0]] = True
    if not ascending.all() or categories.min() < 0:
        raise ValueError("the categories of a node must be >= 0, distinct and ascending")


def lacking_rows(X: NDArray[np.floating]) -> NDArray[np.intp]:
    """Numbers of the rows that lack a value."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(X.sum()):  # much faster than to look at each number
            return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.isnan(X).any(axis=1))


# More threads than this only wait for each other, on any machine.
_MOST_THREADS = 1024


@checked
def threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` means in scikit-learn's convention, 1024 at most."""
    if n_jobs is None:
        return 1
    # Processes are what joblib would start; a worker of a pool may start none, but threads.
    with parallel_config("threading") if current_process().daemon else nullcontext():
        return min(int(effective_n_jobs(n_jobs)), _MOST_THREADS)
