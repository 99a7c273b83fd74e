"""T0 as columns: which cell a row lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from certree._core import (
    add_trees,
    apply,
    attribute,
    blend,
    depths,
    draw_rows,
    find_leaves,
    find_out_of_bag,
    mark_lacking,
    pack_trees,
)
from certree.interface.arrays import (
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_column,
    check_matrix,
    freeze,
    get_csr_arrays,
)
from certree.interface.signatures import validate_settings
from certree.interface.threads import get_n_threads

LEAF = -1
# Posteriors look at every cell of a chain; those that are grown have at most 48 for each feature.
_LONGEST_CHAIN = 2**24

# What a grower of the core returns: the columns of a Tree in the order of its fields, without
# n_features. `category_start` is empty where no node compares categories.
Columns = tuple[Int32, Float64, Int32, Int32, NDArray[np.uint8], Int64, Int32, bool | None]

# Columns that need not be given, of m nodes.
_DEFAULTS: dict[str, Callable[[int], NDArray[Any]]] = {
    "chain": lambda m: freeze(np.ones(m, dtype=np.int32)),
    "missing_left": lambda m: np.frombuffer(bytes(m), dtype=np.bool_),
    "category_start": lambda m: np.frombuffer(bytes(8 * (m + 1)), dtype=np.int64),
    "categories": lambda _: np.frombuffer(b"", dtype=np.int32),
    "missing_both": lambda m: np.frombuffer(bytes(m), dtype=np.bool_),
    "root": lambda _: np.frombuffer(bytes(8), dtype=np.int64),
    "value": lambda m: np.frombuffer(b"").reshape(m, 0),
}


@dataclass(frozen=True, eq=False)
class Trees(ArrayRecord):
    """Binary trees of nested cells, stored as one column per property of a node.

    The trees stand one after the other. The root of each is its first node, children come after their
    parents, siblings are adjacent. A row goes to the left child if ``x[feature] <= threshold`` and to
    the right one otherwise; NaN goes where `missing_left` says. A node with a set of categories
    compares no threshold: the categories of its set go to the side opposite to `missing_left`, all
    other values go where NaN goes.

    Parameters
    ----------
    feature : array-like of int, shape (m,)
        Feature that a node compares; 0 at leaves.
    threshold : array-like of float, shape (m,)
        Threshold that a node compares with; 0 at leaves.
    left : array-like of int, shape (m,)
        Left child, numbered among the nodes of all trees, or -1 at leaves. The right child is
        ``left + 1``.
    chain : array-like of int, shape (m,), or None
        Number of nested cells with the same rows that a node stands for; None: one each.
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
    root : array-like of int, shape (T,), or None
        First node of each tree; None: there is one tree.
    value : array-like of float, shape (m, n_outputs), or None
        What a tree adds to scores at each leaf. At other nodes the part of it that is known there:
        what a child has more is due to the feature that its parent compares. None: nothing.

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
    chain: Int32
    n_features: int
    missing_left: NDArray[np.bool_] = None  # type: ignore[assignment] # set in __post_init__
    category_start: Int64 = None  # type: ignore[assignment] # the same
    categories: Int32 = None  # type: ignore[assignment] # the same
    optimal_splits: bool | None = None
    missing_both: NDArray[np.bool_] = None  # type: ignore[assignment] # set in __post_init__
    root: Int64 = None  # type: ignore[assignment] # the same
    value: Float64 = None  # type: ignore[assignment] # the same

    def __post_init__(self) -> None:
        left: Int32 = check_column("left", self.left, "int32", (None,))
        m = len(left)
        for name, dtype, shape in (
            ("left", "int32", (m,)),
            ("feature", "int32", (m,)),
            ("threshold", "float64", (m,)),
            ("chain", "int32", (m,)),
            ("missing_left", "bool", (m,)),
            ("missing_both", "bool", (m,)),
            ("category_start", "int64", (m + 1,)),
            ("categories", "int32", (None,)),
            ("root", "int64", (None,)),
            ("value", "float64", (m, None)),
        ):
            given = getattr(self, name)
            given = _DEFAULTS[name](m) if given is None and name in _DEFAULTS else given
            object.__setattr__(self, name, check_column(name, given, dtype, shape))
        validate_settings(self)
        object.__setattr__(self, "n_features", int(self.n_features))
        most = np.iinfo(np.int32).max
        if not 1 <= self.n_features <= most:
            raise ValueError(f"n_features must lie in 1 .. {most}, got {self.n_features}")
        _expect_trees(self)
        if m and (self.chain.min() < 1 or self.chain.max() > _LONGEST_CHAIN):
            raise ValueError(f"chain must be at least 1 and at most {_LONGEST_CHAIN}")
        if self.optimal_splits not in (True, False, None):
            raise ValueError(
                f"optimal_splits must be True, False or None, got {self.optimal_splits!r}"
            )
        if not np.isfinite(self.value).all():
            raise ValueError("value must be finite")

    @classmethod
    def known(cls, left: Int32, n_features: int, **columns: Any) -> Self:
        """Make trees of columns that are known to be right, and are not checked again.

        They come from the growers of the core, or are parts of other trees, and nobody can write to
        them. What is not given is as for the constructor.
        """
        given = {"optimal_splits": None, **columns, "left": left, "n_features": n_features}
        for name in _DEFAULTS.keys() - given.keys():
            given[name] = _DEFAULTS[name](len(left))
        return cls.from_checked(*[given[field.name] for field in fields(cls)])

    @classmethod
    def grown(cls, columns: tuple[Any, ...], n_features: int, value: Float64 | None = None) -> Self:
        """Make trees of the columns that growers of many trees hand over, and what nodes say."""
        feature, threshold, left, missing_left, starts, categories, root = columns
        return cls.known(
            left,
            n_features,
            feature=feature,
            threshold=threshold,
            missing_left=missing_left.view(np.bool_),
            category_start=starts,
            categories=categories,
            root=root,
            **({} if value is None else {"value": value}),
        )

    @staticmethod
    def joined(parts: Sequence[Trees], n_features: int, n_outputs: int) -> Trees:
        """Put trees one after the other; those of each part add `n_outputs` numbers."""

        def of_all(name: str, dtype: str, shape: tuple[int, ...] = (0,)) -> NDArray[Any]:
            columns = [np.zeros(shape, dtype), *(getattr(one, name) for one in parts)]
            return freeze(np.concatenate(columns))

        sizes = np.array([one.n_nodes for one in parts], dtype=np.int64)
        begin = np.cumsum(sizes) - sizes
        sets = np.append(0, np.cumsum([len(one.categories) for one in parts])).astype(np.int64)
        starts = [one.category_start[:-1] + n for one, n in zip(parts, sets, strict=False)]
        roots = [one.root + n for one, n in zip(parts, begin, strict=True)]
        left = of_all("left", "int32")
        return Trees.known(
            freeze(np.where(left == LEAF, LEAF, left + np.repeat(begin, sizes)).astype(np.int32)),
            n_features,
            feature=of_all("feature", "int32"),
            threshold=of_all("threshold", "float64"),
            chain=of_all("chain", "int32"),
            missing_left=of_all("missing_left", "bool"),
            category_start=freeze(np.concatenate([*starts, sets[-1:]])),
            categories=of_all("categories", "int32"),
            missing_both=of_all("missing_both", "bool"),
            root=freeze(np.concatenate([sets[:0], *roots])),
            value=of_all("value", "float64", (0, n_outputs)),
        )

    def to_stored(self) -> dict[str, Any]:
        """The columns as files hold them: of nodes that compare alone, as there are many.

        Chains, what blends and what nodes say are left out.
        """
        compares = ~self.is_leaf
        inner = np.flatnonzero(compares)
        return {
            "compares": compares,
            "feature": self.feature[inner],
            "threshold": self.threshold[inner],
            "missing_left": self.missing_left[inner],
            "n_categories": np.diff(self.category_start)[inner].astype(np.int32),
            # How far behind its parent a left child stands.
            "beyond": (self.left[inner] - inner).astype(np.int32),
            "categories": self.categories,
            "root": self.root,
        }

    @classmethod
    def from_stored(cls, stored: Any, **known: Any) -> Self:
        """Make trees of what is stored; known are `n_features` and `value`."""
        compares = check_column("compares", stored["compares"], "bool", (len(known["value"]),))
        inner = np.flatnonzero(compares)

        def spread(name: str, dtype: str) -> NDArray[Any]:
            every = np.zeros(len(compares), dtype)
            every[inner] = check_column(name, stored[name], dtype, (len(inner),))
            return every

        left = np.arange(len(compares)) + spread("beyond", "int64")
        return cls(
            spread("feature", "int32"),
            spread("threshold", "float64"),
            np.where(compares, left, LEAF),
            np.ones(len(compares), dtype=np.int32),
            missing_left=spread("missing_left", "bool"),
            category_start=np.append(0, np.cumsum(spread("n_categories", "int64"))),
            categories=stored["categories"],
            root=stored["root"],
            **known,
        )

    def among(self, names: Sequence[Sequence[Any] | None] | None) -> Self:
        """Check that sets hold categories that the features have by name, and return the trees."""
        if not len(self.categories):
            return self
        known = ((),) * self.n_features if names is None else names
        n_known = np.array([len(one or ()) for one in known])
        node = np.repeat(np.arange(self.n_nodes), np.diff(self.category_start))
        if (self.categories >= n_known[self.feature[node]]).any():
            raise ValueError(
                "the tree compares categories that are not among those of the features"
            )
        return self

    def __len__(self) -> int:
        return len(self.root)

    def __iter__(self) -> Iterator[Tree]:
        return map(self.tree, range(len(self)))

    def tree(self, number: int) -> Tree:
        """One of the trees, counted from 0, or from the last one by negative numbers."""
        number = range(len(self))[number]
        first = int(self.root[number])
        last = self.n_nodes if number == len(self) - 1 else int(self.root[number + 1])
        start, left = self.category_start[first : last + 1], self.left[first:last]
        names = ("feature", "threshold", "chain", "missing_left", "missing_both", "value")
        return Tree.known(
            freeze(np.where(left == LEAF, LEAF, left - first).astype(np.int32)),
            self.n_features,
            category_start=freeze(start - start[0]),
            categories=self.categories[start[0] : start[-1]],
            optimal_splits=self.optimal_splits,
            **{name: getattr(self, name)[first:last] for name in names},
        )

    def first(self, n: int) -> Self:
        """The first n of the trees."""
        if n == len(self):
            return self
        m = int(self.root[n])
        end = self.category_start[m]
        ends = {"root": n, "category_start": m + 1, "categories": end}
        names = [name for name in _DEFAULTS if name not in ends] + ["feature", "threshold", "left"]
        return self._with(
            **{name: getattr(self, name)[:m] for name in names},
            **{name: getattr(self, name)[:length] for name, length in ends.items()},
        )

    def _with(self, **columns: Any) -> Self:
        """The same trees with some columns that are known to be right."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return self.known(**{**own, **{name: freeze(one) for name, one in columns.items()}})

    def comparing(self, threshold: Float64, category_start: Int64, categories: Int32) -> Self:
        """The same trees, whose nodes compare the same features with something else."""
        return self._with(threshold=threshold, category_start=category_start, categories=categories)

    def saying(self, value: Float64) -> Self:
        """The same trees, with other values of their nodes, (m, n_outputs)."""
        return self._with(value=value)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, m."""
        return len(self.left)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf, (m,)."""
        return self.left == LEAF

    @property
    def compares_numbers(self) -> NDArray[np.bool_]:
        """Whether each node compares a number with its threshold, (m,)."""
        return ~self.is_leaf & (np.diff(self.category_start) == 0)

    @cached_property
    def float64_features(self) -> Int32:
        """Find the features that must be float64, ascending, (any,).

        If their values are rounded to float32, rows may go to other sides of some thresholds. All
        other features have thresholds that are numbers of float32, or that no number passes when it
        is rounded to float32. The largest number of float64 is a threshold of missing values alone.
        """
        largest = np.finfo(np.float64).max
        nodes = np.flatnonzero(self.compares_numbers & (self.threshold < largest))
        threshold = self.threshold[nodes]
        with np.errstate(over="ignore"):  # numbers beyond float32 become infinite
            around = np.nextafter(threshold, -np.inf), np.nextafter(threshold, np.inf)
            rounded, below, above = (one.astype(np.float32) for one in (threshold, *around))
        return np.unique(self.feature[nodes[(rounded != threshold) & (below == above)]])

    @property
    def at_roots(self) -> Float64:
        """What all trees say before any feature is known, (n_outputs,)."""
        total: Float64 = self.value[self.root].sum(axis=0)
        return total

    @property
    def splits(self) -> tuple[Int32, Float64, Int32, NDArray[np.uint8], Int64, Int32]:
        """The columns by which rows are sent on, as the core takes them."""
        sides = self.missing_left.view(np.uint8)
        return self.feature, self.threshold, self.left, sides, self.category_start, self.categories

    @cached_property
    def packed(self) -> tuple[NDArray[np.uint64], Int64, Int32, Int64]:
        """The same in one piece of memory a node, the sets, and the roots, for many walks."""
        return pack_trees(*self.splits), self.category_start, self.categories, self.root

    def leaves(self, X: Any, n_threads: int) -> Int32:
        """Leaf of each checked row in each tree, numbered among all nodes, (T, n)."""
        return find_leaves(*self.packed, self._walked(X), n_threads)

    def out_of_bag(self, X: Any, drawing: tuple[Any, ...], n_threads: int) -> Int32:
        """Complements of leaves (T, n) of rows that were not drawn for a tree; 0 for others.

        Rows come in the order in which they were drawn; see `grow.binned.Drawing`.
        """
        if issparse(X):
            leaf = np.array(self.leaves(X, n_threads))
            for number, own in enumerate(leaf):
                drawn = draw_rows(len(own), drawing, number)
                own[:] = np.where(drawn == 0, ~own, 0)
            return leaf
        return find_out_of_bag(*self.packed, self._walked(X), drawing, n_threads)

    def add(
        self,
        scores: Float64,
        X: Any,
        n_threads: int,
        first: int = 0,
        last: int | None = None,
    ) -> Float64:
        """Scores (n_outputs, n) of rows, with what trees first .. last - 1 say added in turn."""
        last = len(self) if last is None else last
        return self._added(scores, X, n_threads, range(first, last, max(last - first, 1)))

    def stages(self, scores: Float64, X: Any, n_threads: int, among: range) -> Iterator[Float64]:
        """The scores with what the trees of each step of a range say added, stage by stage."""
        at_once = max(_BYTES_OF_STAGES // max(scores.nbytes, 1), 1)
        for first in range(0, len(among), at_once):
            part = among[first : first + at_once]
            added = self._added(scores, X, n_threads, part).reshape(len(part), *scores.shape)
            for scores in added:
                yield scores.copy()  # may be written to

    def _added(self, scores: Float64, X: Any, n_threads: int, among: range) -> Float64:
        """Scores after each step of a range of trees, (steps * n_outputs, n)."""
        ends = among.start, among.start + len(among) * among.step, among.step
        packed, starts, categories, root = self.packed
        nodes = packed, starts, categories, root, self.value
        return add_trees(*nodes, *ends, self._walked(X), scores, n_threads)

    def _walked(self, X: Any) -> Any:
        """Checked rows as the loops of the core take them, dense or sparse: they look at no width."""
        if X.shape[1] != self.n_features or not self.n_features:
            raise ValueError(f"trees of {self.n_features} features walk no rows of {X.shape[1]}")
        return X if isinstance(X, np.ndarray) else get_csr_arrays(X)

    def looking_at(self, features: Int32) -> Self:
        """The same trees on a table of some of the features alone, ascending: all that they compare."""
        places = np.searchsorted(features, self.feature)
        feature = np.where(self.is_leaf, 0, places).astype(np.int32)
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return self.known(**{**own, "feature": freeze(feature), "n_features": len(features)})

    def contributions(
        self, X: NDArray[np.floating], n_threads: int, rows: Float64 | None = None
    ) -> Float64:
        """What each feature changes of the values along the paths from the roots, (n, K, p).

        Rows that lack values go as `blend` says, by the rows (m,) of the nodes, if they are given.
        """
        both = None if rows is None else self.missing_both.view(np.uint8)
        attributed: Any = attribute  # whose overloads mypy does not tell apart behind a star
        part: Float64 = attributed(*self.splits, self.root, self.value, X, both, rows, n_threads)
        return part.reshape(len(X), self.value.shape[1], self.n_features)

    def restricted(self, kept: NDArray[np.intp], is_leaf: NDArray[np.bool_]) -> Self:
        """Cut trees down to some of their nodes.

        Parameters
        ----------
        kept : ndarray of int
            The nodes that stay, ascending: the roots and, of every node that stays, both children or
            none.
        is_leaf : ndarray of bool, shape (len(kept),)
            Which of them are leaves then. What is left of their chains is one cell.

        Returns
        -------
        Tree or Trees
        """
        number = np.zeros(self.n_nodes, dtype=np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        inner = ~is_leaf
        sizes = np.where(inner, np.diff(self.category_start)[kept], 0)
        stays = np.zeros(self.n_nodes, dtype=bool)
        stays[kept[inner]] = True
        return self._with(
            feature=np.where(inner, self.feature[kept], np.int32(0)),
            threshold=np.where(inner, self.threshold[kept], 0.0),
            left=np.where(inner, number[self.left[kept]], np.int32(LEAF)),
            chain=np.where(inner, self.chain[kept], np.int32(1)),
            missing_left=inner & self.missing_left[kept],
            category_start=np.concatenate([[0], np.cumsum(sizes)]),
            categories=self.categories[np.repeat(stays, np.diff(self.category_start))],
            missing_both=inner & self.missing_both[kept],
            root=number[self.root].astype(np.int64),
            value=self.value[kept],
        )


class Tree(Trees):
    """One binary tree of nested cells, stored as one column per property of a node; see `Trees`.

    The root is node 0.

    Parameters
    ----------
    feature, threshold, left, chain, n_features, missing_left, category_start, categories, \
optimal_splits, missing_both, root, value
        As for `Trees`.

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If the columns are not those of a tree.
    """

    def __post_init__(self) -> None:
        if len(check_column("left", self.left, "int32", (None,))) == 0:
            raise ValueError("a tree has at least one node, got none")
        super().__post_init__()
        if len(self.root) != 1:
            raise ValueError(f"a tree has one root, got {len(self.root)}")

    def to_stored(self) -> dict[str, Any]:
        """All columns but its root and what nodes say."""
        without = ("n_features", "root", "value")
        columns = super(Trees, self).to_stored()
        return {name: one for name, one in columns.items() if name not in without}

    @classmethod
    def from_stored(cls, stored: Any, **known: Any) -> Self:
        """Make a tree of what is stored; `n_features` is known."""
        return super(Trees, cls).from_stored(stored, root=None, value=None, **known)

    @classmethod
    def of(cls, columns: Columns, p: int) -> Tree:
        """Make a tree of the columns that a grower of the core returns, which are not checked again."""
        feature, threshold, left, chain, missing_left, category_start, categories, optimal = columns
        sets = {"category_start": category_start} if len(category_start) else {}
        return cls.known(
            left,
            p,
            feature=feature,
            threshold=threshold,
            chain=chain,
            missing_left=missing_left.view(np.bool_),
            categories=categories,
            optimal_splits=optimal,
            **sets,
        )

    def category_set(self, node: int) -> Int32:
        """Categories that a node compares, ascending; empty if it compares its threshold."""
        return self.categories[self.category_start[node] : self.category_start[node + 1]]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @property
    def n_cells(self) -> int:
        """Number of cells, those inside chains included."""
        return int(self.chain.sum(dtype=np.int64))

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
    def splits_above(self) -> NDArray[np.int64]:
        """Number of splits above each node, (m,)."""
        return depths(self.left, np.ones_like(self.chain))

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
        rows = check_matrix(X)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"X has {rows.shape[1]} features, but the tree has {self.n_features} features"
            )
        return self.route(rows, get_n_threads(n_jobs))

    def route(self, X: NDArray[np.floating], n_threads: int) -> Int32:
        """Do what `apply` does, for rows that have been checked."""
        return apply(*self.splits, X, n_threads)

    def knowing_missing(self, X: NDArray[np.floating]) -> Tree:
        """Send rows both ways where they lack a value that none of these rows lacks there."""
        return self.lacking_at(mark_lacking(*self.splits, X[lacking_rows(X)]).view(np.bool_))

    def lacking_at(self, nodes: NDArray[np.bool_]) -> Tree:
        """The same, where it is known which nodes, (m,), compare a value that some row there lacks."""
        return self._with(missing_both=~nodes & ~self.is_leaf)

    def blend(
        self, X: NDArray[np.floating], rows: Float64, score: Float64, n_threads: int
    ) -> Float64:
        """Average the scores of the leaves that each row may belong to, (n, K).

        Where `missing_both` says so, a row that lacks the value goes both ways, with the shares that
        the children have of these rows, (m,). Otherwise it goes where `missing_left` says.
        """
        return blend(*self.splits, X, self.missing_both.view(np.uint8), rows, score, n_threads)


def group_by_feature(
    feature: Int32, places: NDArray[np.intp]
) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Group places in a column of features by the feature that stands there.

    Parameters
    ----------
    feature : ndarray of int32, shape (m,)
        Features.
    places : ndarray of int, shape (any,)
        Places in that column.

    Yields
    ------
    int, ndarray of int
        A feature, ascending, and those of the places where it stands, in their order.
    """
    order = places[np.argsort(feature[places], kind="stable")]
    own = feature[order]
    starts = np.flatnonzero(np.append(True, own[1:] != own[:-1])[: len(own)])
    for begin, end in pairwise([*starts.tolist(), len(own)]):
        yield int(own[begin]), order[begin:end]


def _expect_trees(nodes: Trees) -> None:
    """Check that columns are those of trees that stand one after the other."""
    left, root, m = nodes.left, nodes.root, nodes.n_nodes
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
    if nodes.missing_both[nodes.is_leaf].any():
        raise ValueError("only inner nodes send rows both ways, but a leaf does")
    _expect_sets(nodes)


def _expect_sets(nodes: Trees) -> None:
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


# Scores of so many stages are made together.
_BYTES_OF_STAGES = 2**25
