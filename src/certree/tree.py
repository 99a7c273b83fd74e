"""Trees as columns with one entry per node, and the leaves that rows reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from reprlib import repr as shortened
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import issparse

from certree._core import (
    add_trees,
    apply,
    attribute_to_features,
    average_leaf_scores,
    compute_depths,
    draw_rows,
    find_leaves,
    find_out_of_bag,
    mark_missing,
    pack_trees,
)
from certree.interface.arrays import (
    STORED_ELSEWHERE,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_column,
    check_matrix,
    freeze,
    get_csr_arrays,
)
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_settings
from certree.interface.stored_state import DamagedModelError
from certree.interface.threads import get_n_threads

LEAF = -1
# Thresholds of splits on categorical features that only separate missing values from categories: the
# categories go left, or right. They lie above and below all codes, also that of unknown categories.
ALL_LEFT, ALL_RIGHT = float(np.finfo(np.float64).max), -2.0
# Longest chain. Posteriors visit every region of a chain; grown chains have at most 48 per feature.
_MAX_CHAIN = 2**24

# Bits of the column "default_left" of the C++ core, which has the fields missing_left and unseen_left.
_MISSING_LEFT, _UNSEEN_LEFT = 1, 2

# What a grower of the C++ core returns: the columns of a Tree in the order of its fields, without
# n_features, and default_left instead of missing_left. `category_start` is empty if no node splits on
# categories.
Columns = tuple[Int32, Float64, Int32, Int32, NDArray[np.uint8], Int64, Int32, bool | None]

# Default columns for m nodes.
_DEFAULTS: dict[str, Callable[[int], NDArray[Any]]] = {
    "chain": lambda m: freeze(np.ones(m, dtype=np.int32)),
    "missing_left": lambda m: np.frombuffer(bytes(m), dtype=np.bool_),
    "unseen_left": lambda m: np.frombuffer(bytes(m), dtype=np.bool_),
    "category_start": lambda m: np.frombuffer(bytes(8 * (m + 1)), dtype=np.int64),
    "categories": lambda _: np.frombuffer(b"", dtype=np.int32),
    "missing_both": lambda m: np.frombuffer(bytes(m), dtype=np.bool_),
    "root": lambda _: np.frombuffer(bytes(8), dtype=np.int64),
    "value": lambda m: np.frombuffer(b"").reshape(m, 0),
}


@dataclass(frozen=True, eq=False)
class Trees(ArrayRecord):
    """Binary trees, stored as columns with one entry per node.

    The nodes of each tree follow those of the tree before. The root is the first node of its tree,
    children come after their parents, and siblings are adjacent. A row goes to the left child if
    ``x[feature] <= threshold``, else to the right child; NaN goes left if `missing_left`. A node
    that splits on categories has no threshold. An unseen category is one that no training row of
    the node has. It goes left if `unseen_left`; categories of the node's set go to the other child.
    A split that only separates missing values from categories has no set but a threshold.

    Parameters
    ----------
    feature : array-like of int, shape (m,)
        Feature that a node splits on; 0 at leaves. m is the number of nodes of all trees.
    threshold : array-like of float, shape (m,)
        Threshold of the split; 0 at leaves.
    left : array-like of int, shape (m,)
        Left child, numbered among the nodes of all trees, or -1 at leaves. The right child is
        ``left + 1``.
    chain : array-like of int, shape (m,), or None
        Number of nested regions with the same rows that a node stands for (a grower may halve a
        region several times until both halves hold rows); None: 1 everywhere.
    n_features : int
        Number of features of the rows.
    missing_left : array-like of bool, shape (m,), or None
        Whether NaN goes to the left child; None: it goes right everywhere.
    category_start : array-like of int, shape (m + 1,), or None
        The category set of node v is ``categories[category_start[v] : category_start[v + 1]]``.
        None: no node splits on categories.
    categories : array-like of int, shape (number of categories in all sets,), or None
        Category codes >= 0 of the sets of all nodes, node by node, each set ascending.
    optimal_splits : bool or None
        Whether every split is known to be the best one by the grower's criterion; False if a
        heuristic was used; None if it is unknown, or if growth maximised no criterion.
    missing_both : array-like of bool, shape (m,), or None
        Whether `Tree.blend` and `compute_contributions` send a row with NaN to both children; None:
        nowhere.
    root : array-like of int, shape (T,), or None
        First node of each of T trees; None: there is one tree.
    value : array-like of float, shape (m, n_outputs), or None
        Leaf values, which a tree adds to the scores of its rows. At inner nodes the expected value,
        so that the difference between child and parent is the contribution of the split's feature.
        None: no outputs.
    unseen_left : array-like of bool, shape (m,), or None
        Whether categories outside of the set of a node go to the left child, such as those that no
        training row of the node has. False at nodes without a set. None: they go where NaN goes.

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If the columns do not describe trees in this way.
    """

    feature: Int32
    threshold: Float64
    left: Int32
    chain: Int32 = None  # type: ignore[assignment] # set in __post_init__
    # Required, but a field after one with a default needs a default; None is refused.
    n_features: int = field(default=None, metadata=STORED_ELSEWHERE)  # type: ignore[assignment]
    missing_left: NDArray[np.bool_] = None  # type: ignore[assignment] # the same
    category_start: Int64 = None  # type: ignore[assignment] # the same
    categories: Int32 = None  # type: ignore[assignment] # the same
    optimal_splits: bool | None = None
    missing_both: NDArray[np.bool_] = None  # type: ignore[assignment] # set in __post_init__
    root: Int64 = field(default=None, metadata=STORED_ELSEWHERE)  # type: ignore[arg-type] # the same
    value: Float64 = field(default=None, metadata=STORED_ELSEWHERE)  # type: ignore[arg-type] # the same
    unseen_left: NDArray[np.bool_] = None  # type: ignore[assignment] # the same

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
            values = getattr(self, name)
            values = _DEFAULTS[name](m) if values is None and name in _DEFAULTS else values
            object.__setattr__(self, name, check_column(name, values, dtype, shape))
        unseen_left = self._like_missing_left if self.unseen_left is None else self.unseen_left
        unseen_left = check_column("unseen_left", unseen_left, "bool", (m,))
        object.__setattr__(self, "unseen_left", unseen_left)
        validate_settings(self)
        object.__setattr__(self, "n_features", int(self.n_features))
        largest = np.iinfo(np.int32).max
        if not 1 <= self.n_features <= largest:
            raise ValueError(f"n_features must lie in 1 .. {largest}, got {self.n_features}")
        _expect_trees(self)
        if m and (self.chain.min() < 1 or self.chain.max() > _MAX_CHAIN):
            raise ValueError(
                f"chain must be at least 1 and at most {_MAX_CHAIN}, got {self.chain.min()} .. "
                f"{self.chain.max()}"
            )
        if self.optimal_splits not in (True, False, None):
            raise ValueError(
                f"optimal_splits must be True, False or None, got {self.optimal_splits!r}"
            )
        if not np.isfinite(self.value).all():
            raise ValueError("value must be finite, got NaN or infinity")

    @classmethod
    def from_valid_columns(cls, left: Int32, n_features: int, **columns: Any) -> Self:
        """Create trees from read-only columns without checking them.

        The columns must satisfy the conditions of the class, because they come from growers of the
        C++ core or from other trees.

        Parameters
        ----------
        left : ndarray of int32, shape (m,)
            Left children.
        n_features : int
            Number of features.
        **columns
            Other fields of the class, by name, such as `feature` and `threshold`; missing ones get
            the defaults of the constructor.

        Returns
        -------
        Trees, or Tree for the class Tree
            The trees; a `Tree` if the method is called on that class.
        """
        complete = {"optimal_splits": None, **columns, "left": left, "n_features": n_features}
        for name in _DEFAULTS.keys() - complete.keys():
            complete[name] = _DEFAULTS[name](len(left))
        return cls.from_checked(*[complete[field.name] for field in fields(cls)])

    @property
    def _has_set(self) -> NDArray[np.bool_]:
        """Whether each node has a category set, (m,).

        A node has a category set if it splits on categories; rows are sent by whether their
        category is in the set.
        """
        return np.diff(self.category_start) > 0

    @property
    def _like_missing_left(self) -> NDArray[np.bool_]:
        """The column `unseen_left` of trees that send unseen categories where NaN goes, (m,) bool.

        The column equals `missing_left` at nodes that split on categories, and is False at others.
        """
        return freeze(self.missing_left & self._has_set)

    @classmethod
    def from_ensemble_columns(
        cls, columns: tuple[Any, ...], n_features: int, value: Float64 | None = None
    ) -> Self:
        """Create trees from the columns that the C++ core returns for ensembles, unchecked.

        Parameters
        ----------
        columns : tuple
            Seven arrays: feature, threshold, left, default_left (uint8; bit 0: missing_left, bit 1:
            unseen_left), category_start, categories and root, in this order.
        n_features : int
            Number of features.
        value : ndarray of float64, shape (m, n_outputs), or None
            Values of all nodes; None: no outputs.

        Returns
        -------
        Trees
            The trees; each node stands for one region (`chain` is 1).
        """
        feature, threshold, left, default_left, starts, categories, root = columns
        return cls.from_valid_columns(
            left,
            n_features,
            feature=feature,
            threshold=threshold,
            category_start=starts,
            categories=categories,
            root=root,
            **_split_default_left(default_left, categories),
            **({} if value is None else {"value": value}),
        )

    @staticmethod
    def joined(trees: Sequence[Trees], n_features: int, n_outputs: int) -> Trees:
        """Concatenate several `Trees` (or single trees) to one `Trees` object, in their order.

        trees: the objects to concatenate; n_features: number of features, the same for all objects;
        n_outputs: number of columns of `value`, the same for all objects. `optimal_splits` of the
        result is None.
        """

        def concatenate(name: str, dtype: str, shape: tuple[int, ...] = (0,)) -> NDArray[Any]:
            """Return the columns `name` of all `trees` of the enclosing call as one read-only array.

            name: name of a field of `Trees`; dtype: its dtype; shape: shape of the result if there
            are no trees.
            """
            columns = [np.zeros(shape, dtype), *(getattr(each, name) for each in trees)]
            return freeze(np.concatenate(columns))

        sizes = np.array([each.n_nodes for each in trees], dtype=np.int64)
        begin = np.cumsum(sizes) - sizes
        sets = np.append(0, np.cumsum([len(each.categories) for each in trees])).astype(np.int64)
        starts = [each.category_start[:-1] + n for each, n in zip(trees, sets, strict=False)]
        roots = [each.root + n for each, n in zip(trees, begin, strict=True)]
        left = concatenate("left", "int32")
        return Trees.from_valid_columns(
            freeze(np.where(left == LEAF, LEAF, left + np.repeat(begin, sizes)).astype(np.int32)),
            n_features,
            feature=concatenate("feature", "int32"),
            threshold=concatenate("threshold", "float64"),
            chain=concatenate("chain", "int32"),
            missing_left=concatenate("missing_left", "bool"),
            unseen_left=concatenate("unseen_left", "bool"),
            category_start=freeze(np.concatenate([*starts, sets[-1:]])),
            categories=concatenate("categories", "int32"),
            missing_both=concatenate("missing_both", "bool"),
            root=freeze(np.concatenate([sets[:0], *roots])),
            value=concatenate("value", "float64", (0, n_outputs)),
        )

    def to_stored(self) -> dict[str, Any]:
        """Return the arrays that a model file stores for these trees, by their names in the file.

        The file format fixes the names; m is the number of nodes of all trees.

        * With an entry for each inner node (a node that is split), in the order of the nodes:
          "feature", "threshold", "missing_left", "n_categories" (number of categories in the node's
          set), and "beyond" (number of the left child minus the number of the node).
        * With an entry for each node: "compares", (m,) bool, which is True for inner nodes, and
          "value", (m, n_outputs).
        * "categories" and "root", as in the class.
        * "unseen_left", with an entry for each node that has a category set. It is left out if
          unseen categories go where NaN goes, as in files of earlier versions.

        The fields `chain` (number of nested regions that a node stands for), `missing_both` and
        `n_features` are not stored.
        """
        is_split = ~self.is_leaf
        inner = np.flatnonzero(is_split)
        is_as_missing = np.array_equal(self.unseen_left, self._like_missing_left)
        unseen_left = {} if is_as_missing else {"unseen_left": self.unseen_left[self._has_set]}
        return {
            **unseen_left,
            "compares": is_split,
            "feature": self.feature[inner],
            "threshold": self.threshold[inner],
            "missing_left": self.missing_left[inner],
            "n_categories": np.diff(self.category_start)[inner].astype(np.int32),
            "beyond": (self.left[inner] - inner).astype(np.int32),
            "categories": self.categories,
            "root": self.root,
            "value": self.value,
        }

    @classmethod
    def from_stored(cls, stored: Any, **other_fields: Any) -> Self:
        """Create trees from a section of a model file, and check them.

        stored: a mapping with the names that `to_stored` returns; other_fields: the fields
        `n_features` and `value`, by keyword, which the section lacks. Raise TypeError or ValueError
        if the arrays do not describe trees.
        """
        is_split = check_column(
            "compares", stored["compares"], "bool", (len(other_fields["value"]),)
        )
        inner = np.flatnonzero(is_split)

        def expand(name: str, dtype: str) -> NDArray[Any]:
            """Return a stored column of inner nodes as a column of all nodes, (m,), with 0 at leaves.

            name: name of the column in `stored`, the section of the file that the enclosing method
            takes; dtype: dtype of the column. The enclosing method's `is_split`, (m,), marks the
            inner nodes, and `inner` has their numbers. Raise TypeError or ValueError if the dtype
            or the number of entries differs.
            """
            expanded = np.zeros(len(is_split), dtype)
            expanded[inner] = check_column(name, stored[name], dtype, (len(inner),))
            return expanded

        left = np.arange(len(is_split)) + expand("beyond", "int64")
        n_categories = expand("n_categories", "int64")
        unseen_left: Any = None
        if "unseen_left" in stored:
            unseen_left, has_set = np.zeros(len(is_split), np.bool_), n_categories > 0
            shape = (int(has_set.sum()),)
            unseen_left[has_set] = check_column("unseen_left", stored["unseen_left"], "bool", shape)
        return cls(
            expand("feature", "int32"),
            expand("threshold", "float64"),
            np.where(is_split, left, LEAF),
            np.ones(len(is_split), dtype=np.int32),
            missing_left=expand("missing_left", "bool"),
            unseen_left=unseen_left,
            category_start=np.append(0, np.cumsum(n_categories)),
            categories=stored["categories"],
            root=stored["root"],
            **other_fields,
        )

    def check_categories(self, names: Sequence[Sequence[Any] | None] | None) -> Self:
        """Return these trees, or raise ValueError if a split has an unknown category code.

        names: for each feature the sequence of its categories, whose codes are 0, 1, ..., or None
        for a numeric feature; None if no feature is categorical. Trees of model files are checked.
        """
        if not len(self.categories):
            return self
        feature_names = ((),) * self.n_features if names is None else names
        n_categories = np.array([len(categories or ()) for categories in feature_names])
        node = np.repeat(np.arange(self.n_nodes), np.diff(self.category_start))
        if (self.categories >= n_categories[self.feature[node]]).any():
            raise DamagedModelError(
                "the model file's tree splits on categories that its features do not have"
            )
        return self

    def __len__(self) -> int:
        return len(self.root)

    def __iter__(self) -> Iterator[Tree]:
        return map(self.tree, range(len(self)))

    def tree(self, number: int) -> Tree:
        """Return one tree as a `Tree`, whose nodes are numbered from 0.

        number: its number, from 0; negative numbers count from the last tree. Raise IndexError if
        there is no such tree.
        """
        number = range(len(self))[number]
        first = int(self.root[number])
        last = self.n_nodes if number == len(self) - 1 else int(self.root[number + 1])
        start, left = self.category_start[first : last + 1], self.left[first:last]
        names = ["feature", "threshold", "chain", "missing_left", "missing_both", "value"]
        names.append("unseen_left")
        return Tree.from_valid_columns(
            freeze(np.where(left == LEAF, LEAF, left - first).astype(np.int32)),
            self.n_features,
            category_start=freeze(start - start[0]),
            categories=self.categories[start[0] : start[-1]],
            optimal_splits=self.optimal_splits,
            **{name: getattr(self, name)[first:last] for name in names},
        )

    def keep_first(self, n: int) -> Self:
        """Return a copy with only the first n trees; this object itself if it has just n trees.

        n: a number from 0 to the number of trees.
        """
        if n == len(self):
            return self
        m = int(self.root[n])
        end = self.category_start[m]
        ends = {"root": n, "category_start": m + 1, "categories": end}
        names = [name for name in _DEFAULTS if name not in ends] + ["feature", "threshold", "left"]
        return self._replace(
            **{name: getattr(self, name)[:m] for name in names},
            **{name: getattr(self, name)[:length] for name, length in ends.items()},
        )

    def _replace(self, **columns: Any) -> Self:
        """Return a copy with some fields replaced; they are not checked.

        columns: the new values by the names of the fields. They must satisfy the conditions of the
        class.
        """
        current = {field.name: getattr(self, field.name) for field in fields(self)}
        replaced = {
            name: freeze(values) if isinstance(values, np.ndarray) else values
            for name, values in columns.items()
        }
        return self.from_valid_columns(**{**current, **replaced})

    def with_splits(
        self, threshold: Float64, category_start: Int64, categories: Int32, **columns: Any
    ) -> Self:
        """Return a copy with other thresholds and category sets on the same features.

        The arguments are not checked. threshold: the threshold of each of m nodes, (m,);
        category_start: (m + 1,), start of each node's set in `categories`; categories: the codes of
        all sets in one array, node by node, ascending in each set; columns: other fields to
        replace, such as `missing_left`, by name.
        """
        return self._replace(
            threshold=threshold, category_start=category_start, categories=categories, **columns
        )

    def with_value(self, value: Float64) -> Self:
        """Return a copy with other values of the nodes, (m, n_outputs), which are not checked.

        value: at leaves the number that is added to each output of their rows; at inner nodes the
        expected value.
        """
        return self._replace(value=value)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, m."""
        return len(self.left)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf, (m,).

        Leaves are the nodes whose `left` is -1.
        """
        return self.left == LEAF

    @property
    def parent(self) -> Int32:
        """Parent of each node, (m,), numbered among the nodes of all trees; -1 for roots."""
        parent = np.full(self.n_nodes, -1, dtype=np.int32)
        inner = np.flatnonzero(self.left != LEAF)
        parent[self.left[inner]] = parent[self.left[inner] + 1] = inner
        return parent

    @property
    def splits_above(self) -> NDArray[np.int64]:
        """Number of splits on the path from the root to each node, (m,); 0 for roots."""
        return compute_depths(self.left, np.ones(self.n_nodes, dtype=np.int32))

    @property
    def compares_numbers(self) -> NDArray[np.bool_]:
        """Whether each node splits on a threshold, (m,); False at leaves and category splits.

        An entry is True where rows go to the left child if ``x[feature] <= threshold``.
        """
        return ~self.is_leaf & ~self._has_set

    @cached_property
    def float64_features(self) -> Int32:
        """Indices of the features whose values must stay float64, ascending, int32.

        If their values were rounded to float32, some rows might go to the other child. All other
        features have thresholds that are float32 numbers, or that no value passes when it is
        rounded. The largest float64 is the threshold of splits that only separate missing values.
        """
        largest = np.finfo(np.float64).max
        nodes = np.flatnonzero(self.compares_numbers & (self.threshold < largest))
        threshold = self.threshold[nodes]
        with np.errstate(over="ignore"):  # numbers beyond float32 become infinite
            neighbours = np.nextafter(threshold, -np.inf), np.nextafter(threshold, np.inf)
            rounded, below, above = (
                numbers.astype(np.float32) for numbers in (threshold, *neighbours)
            )
        return np.unique(self.feature[nodes[(rounded != threshold) & (below == above)]])

    @property
    def root_value(self) -> Float64:
        """Sum of the values of all roots, (n_outputs,): the expected score.

        The score of a row is this sum plus its contributions by `compute_contributions`.
        """
        total: Float64 = self.value[self.root].sum(axis=0)
        return total

    @property
    def split_columns(self) -> tuple[Int32, Float64, Int32, NDArray[np.uint8], Int64, Int32]:
        """The columns that determine the leaf of a row, as a tuple of arguments for the C++ core.

        The tuple has feature, threshold, left, default_left (uint8; bit 0: missing_left, bit 1:
        unseen_left), category_start and categories.
        """
        return (
            self.feature,
            self.threshold,
            self.left,
            self._default_left,
            self.category_start,
            self.categories,
        )

    @cached_property
    def _default_left(self) -> NDArray[np.uint8]:
        """The columns missing_left (bit 0) and unseen_left (bit 1) in one array, (m,) uint8.

        The C++ core calls it default_left.
        """
        missing_left = self.missing_left.view(np.uint8)
        if not len(self.categories):
            return missing_left
        return missing_left + _UNSEEN_LEFT * self.unseen_left.view(np.uint8)

    @cached_property
    def packed(self) -> tuple[NDArray[np.uint64], Int64, Int32, Int64]:
        """Nodes in a compact form for fast traversal by the C++ core.

        A tuple: one array of uint64, in a format of the C++ core, that encodes feature, threshold,
        left, missing_left and unseen_left of all nodes; category_start; categories; root.
        """
        return pack_trees(*self.split_columns), self.category_start, self.categories, self.root

    def find_leaves(self, X: Any, n_threads: int) -> Int32:
        """Find the leaf of each row in each tree, (T, n), numbered among the nodes of all trees.

        T: number of trees. X: encoded rows (numbers and category codes), dense (n, p) or a sparse
        matrix, with NaN for missing values; n_threads: number of threads.
        """
        return find_leaves(*self.packed, self._prepare_rows(X), n_threads)

    def paths_to(self, leaf: Int32) -> sparse.csr_matrix:
        """Return a sparse matrix that marks the nodes on each row's path to its leaf, in all trees.

        Parameters
        ----------
        leaf : ndarray of int32, shape (T, n)
            Leaf of each row in each tree, numbered among the nodes of all trees, as in the result
            of `find_leaves`.

        Returns
        -------
        sparse matrix of int64, shape (n, n_nodes)
            1 if the row passes through the node, roots and leaves included; n_nodes counts the
            nodes of all trees. Each 1 takes 12 or 16 bytes.
        """
        parent, above = self.parent, self.splits_above
        lengths = np.full(leaf.shape[1], len(leaf), dtype=np.int64)
        for leaves in leaf:
            lengths += above[leaves]
        start = np.concatenate([[0], np.cumsum(lengths)])
        n_marks = int(start[-1])
        index: type = np.int32 if n_marks < 2**31 else np.int64
        nodes: NDArray[np.integer] = np.empty(n_marks, dtype=index)
        begin = start[:-1].copy()
        for leaves in leaf:  # children come after parents, so that columns ascend
            places, node = begin + above[leaves], leaves
            begin = places + 1
            while len(node):
                nodes[places] = node
                node = parent[node]
                inside = node >= 0
                places, node = places[inside] - 1, node[inside]
        marks = np.ones(n_marks, dtype=np.int64)
        shape = (len(lengths), self.n_nodes)
        return sparse.csr_matrix((marks, nodes, start.astype(index)), shape=shape)

    def find_out_of_bag_leaves(self, X: Any, drawing: tuple[Any, ...], n_threads: int) -> Int32:
        """Find the leaves of the out-of-bag rows of each tree.

        Parameters
        ----------
        X : array or sparse array of shape (n, p)
            Encoded rows of the fit (numbers and category codes; NaN for missing values), sorted by
            their keys: the distinct numbers by whose order the grower has drawn rows.
        drawing : tuple
            How rows were drawn for each tree: a `certree.grow.binned_grower.RowSampling`, that is
            (kind, number of draws, seed, group of each row or None). Kind is "all", "some" (without
            replacement) or "repeated" (with replacement).
        n_threads : int
            Number of threads.

        Returns
        -------
        ndarray of int32, shape (T, n)
            Rows in the order of X. ``~leaf`` (bitwise complement, negative) for out-of-bag rows,
            with leaves numbered among the nodes of all trees; 0 for in-bag rows.
        """
        if issparse(X):
            leaf = np.array(self.find_leaves(X, n_threads))
            for number, tree_leaf in enumerate(leaf):
                n_draws = draw_rows(len(tree_leaf), drawing, number)
                tree_leaf[:] = np.where(n_draws == 0, ~tree_leaf, 0)
            return leaf
        return find_out_of_bag(*self.packed, self._prepare_rows(X), drawing, n_threads)

    def add(
        self,
        scores: Float64,
        X: Any,
        n_threads: int,
        first: int = 0,
        last: int | None = None,
    ) -> Float64:
        """Add leaf values to scores, tree after tree.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_outputs, n)
            Scores before; they are not changed.
        X : ndarray or sparse matrix of shape (n, p)
            Encoded rows: numbers and category codes; NaN for missing values.
        n_threads : int
            Number of threads.
        first, last : int
            Trees first, ..., last - 1 are added; None for `last`: up to the last tree.

        Returns
        -------
        ndarray of float64, shape (n_outputs, n)
            Scores plus the values of the leaves that each row reaches.
        """
        last = len(self) if last is None else last
        return self._add_steps(scores, X, n_threads, range(first, last, max(last - first, 1)))

    def iterate_stages(
        self, scores: Float64, X: Any, n_threads: int, steps: range
    ) -> Iterator[Float64]:
        """Yield the scores after each of several groups of trees.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_outputs, n)
            Scores before the first group; they are not changed.
        X : ndarray or sparse matrix of shape (n, p)
            Encoded rows: numbers and category codes; NaN for missing values.
        n_threads : int
            Number of threads.
        steps : range
            First tree of each group, such as ``range(0, T, 1)`` for single trees; the group of tree
            i has the trees i .. i + steps.step - 1.

        Yields
        ------
        ndarray of float64, shape (n_outputs, n)
            Scores after each group, as a new array.
        """
        n_at_once = max(_STAGE_BYTES // max(scores.nbytes, 1), 1)
        for first in range(0, len(steps), n_at_once):
            block = steps[first : first + n_at_once]
            stages = self._add_steps(scores, X, n_threads, block)
            stages = stages.reshape(len(block), *scores.shape)
            for stage in stages:
                yield stage.copy()  # the caller may write to it
            scores = stages[-1]

    def _add_steps(self, scores: Float64, X: Any, n_threads: int, steps: range) -> Float64:
        """Return the scores of rows after each group of trees, (n_groups * n_outputs, n).

        A group is ``steps.step`` consecutive trees, such as those of a round. scores: scores before
        the first group, (n_outputs, n), which are not changed; X: encoded rows (numbers and
        category codes; NaN for missing values), (n, p); n_threads: number of threads; steps: number
        of the first tree of each group. The rows of the result are all outputs after the first
        group, then all outputs after the second, and so on.
        """
        ends = steps.start, steps.start + len(steps) * steps.step, steps.step
        packed, starts, categories, root = self.packed
        nodes = packed, starts, categories, root, self.value
        return add_trees(*nodes, *ends, self._prepare_rows(X), scores, n_threads)

    def _prepare_rows(self, X: Any) -> Any:
        """Return encoded rows as the C++ core takes them: a dense array, or arrays of a CSR matrix.

        X: rows of numbers and category codes: ndarray, which is returned as it is, or sparse matrix
        of shape (n, p). For a sparse matrix the result is a tuple of row starts, column indices,
        values and p. Raise ValueError if p is not the number of features.
        """
        if X.shape[1] != self.n_features or not self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but the trees have {self.n_features} features: pass "
                "the columns of the fit"
            )
        return X if isinstance(X, np.ndarray) else get_csr_arrays(X)

    def select_features(self, features: Int32) -> Self:
        """Return a copy for tables that have only some of the features.

        features: numbers, (k,), of the columns of the new table among the old ones, ascending; they
        must include every feature that a split uses. In the copy only the numbers in `feature`, and
        `n_features`, differ.
        """
        places = np.searchsorted(features, self.feature)
        feature = np.where(self.is_leaf, 0, places).astype(np.int32)
        current = {field.name: getattr(self, field.name) for field in fields(self)}
        return self.from_valid_columns(
            **{**current, "feature": freeze(feature), "n_features": len(features)}
        )

    def compute_contributions(
        self, X: NDArray[np.floating], n_threads: int, rows: Float64 | None = None
    ) -> Float64:
        """Compute how much each feature changes the value along the paths of rows (Saabas' method).

        A step from a node to its child contributes ``value[child] - value[node]`` to the feature of
        the split.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Encoded rows: numbers and category codes; NaN for missing values.
        n_threads : int
            Number of threads.
        rows : ndarray of float64, shape (m,), or None
            Weight of the training rows in each node. If given, a row with a missing value goes to
            both children of nodes with `missing_both`, in proportion to these weights; None: it
            goes where `missing_left` says.

        Returns
        -------
        ndarray of float64, shape (n, n_outputs, p)
            Contributions, summed over the trees.
        """
        both = None if rows is None else self.missing_both.view(np.uint8)
        add_up: Any = (
            attribute_to_features  # mypy cannot resolve its overloads for starred arguments
        )
        nodes = *self.split_columns, self.root, self.value
        contributions: Float64 = add_up(*nodes, X, both, rows, n_threads)
        return contributions.reshape(len(X), self.value.shape[1], self.n_features)

    def keep_nodes(self, kept: NDArray[np.intp], is_leaf: NDArray[np.bool_]) -> Self:
        """Return trees with some of the nodes, renumbered.

        Parameters
        ----------
        kept : ndarray of int, shape (k,)
            The nodes to keep, ascending: all roots and, for every kept node, both children or none.
        is_leaf : ndarray of bool, shape (k,)
            Whether each of the kept nodes becomes a leaf. A leaf then stands for one region: its
            `chain`, the number of nested regions with the same rows, becomes 1.

        Returns
        -------
        Tree or Trees
            Node i of the result is node ``kept[i]``.
        """
        number = np.zeros(self.n_nodes, dtype=np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        inner = ~is_leaf
        sizes = np.where(inner, np.diff(self.category_start)[kept], 0)
        stays = np.zeros(self.n_nodes, dtype=bool)
        stays[kept[inner]] = True
        return self._replace(
            feature=np.where(inner, self.feature[kept], np.int32(0)),
            threshold=np.where(inner, self.threshold[kept], 0.0),
            left=np.where(inner, number[self.left[kept]], np.int32(LEAF)),
            chain=np.where(inner, self.chain[kept], np.int32(1)),
            missing_left=inner & self.missing_left[kept],
            unseen_left=inner & self.unseen_left[kept],
            category_start=np.concatenate([[0], np.cumsum(sizes)]),
            categories=self.categories[np.repeat(stays, np.diff(self.category_start))],
            missing_both=inner & self.missing_both[kept],
            root=number[self.root].astype(np.int64),
            value=self.value[kept],
        )


@copy_descriptions_from(Trees)
class Tree(Trees):
    """One binary tree, stored as columns with one entry per node. The root is node 0.

    Children come after their parents, and siblings are adjacent. A row goes to the left child if
    ``x[feature] <= threshold``, else to the right child; NaN goes left if `missing_left`. At a node
    that splits on categories, those that no training row of the node has go left if `unseen_left`,
    and categories of its set go to the other child.

    Parameters
    ----------
    feature : array-like of int, shape (m,)
        Feature that a node splits on; 0 at leaves. m is the number of nodes.
    {threshold}
    left : array-like of int, shape (m,)
        Left child, or -1 at leaves. The right child is ``left + 1``.
    chain : array-like of int, shape (m,), or None
        Number of nested regions with the same rows that a node stands for; None: 1 everywhere.
    {n_features} {missing_left} {category_start} {categories}
    optimal_splits : bool or None
        Whether every split is known to be the best one by the grower's criterion; None if it is
        unknown, or if growth maximised no criterion.
    missing_both : array-like of bool, shape (m,), or None
        Whether `blend` sends a row with NaN to both children; None: nowhere.
    root : array-like of int, shape (1,), or None
        The root, node 0.
    value : array-like of float, shape (m, n_outputs), or None
        Values of the nodes, which ensembles add up; None: no outputs.
    {unseen_left}

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If the columns do not describe a tree in this way.
    """

    def __post_init__(self) -> None:
        if len(check_column("left", self.left, "int32", (None,))) == 0:
            raise ValueError("left must have at least one node, got none")
        super().__post_init__()
        if len(self.root) != 1:
            raise ValueError(f"root must have one entry in a Tree, got {len(self.root)}: use Trees")

    def to_stored(self) -> dict[str, Any]:
        """Return the fields for a model file, by name, except `n_features`, `root` and `value`.

        Unlike `Trees.to_stored`, columns have entries for all m nodes, and `left` is stored. The
        names are those of the constructor's parameters, the values arrays, except `optimal_splits`.
        `unseen_left` is left out if unseen categories go where NaN goes.
        """
        columns = super(Trees, self).to_stored()
        if np.array_equal(self.unseen_left, self._like_missing_left):
            del columns["unseen_left"]
        return columns

    @classmethod
    def from_stored(cls, stored: Any, **other_fields: Any) -> Self:
        """Create a tree from a section of a model file, and check it.

        stored: a mapping with the names that `to_stored` returns; other_fields: `n_features`, by
        keyword, which the section lacks. Raise TypeError or ValueError if the columns do not
        describe a tree.
        """
        # Files have had `chain` from the first on: without it a file is damaged.
        return super(Trees, cls).from_stored(stored, chain=stored["chain"], **other_fields)

    @classmethod
    def from_grower_columns(cls, columns: Columns, n_features: int) -> Tree:
        """Create a tree from the columns that a grower of the C++ core returns, unchecked.

        columns: a tuple of, in this order, feature, threshold, left, chain (number of nested
        regions with the same rows that a node stands for), default_left (uint8; bit 0:
        missing_left, bit 1: unseen_left), category_start (empty if no node splits on categories),
        categories and optimal_splits; n_features: number of features.
        """
        feature, threshold, left, chain, default_left, category_start, categories, optimal = columns
        sets = {"category_start": category_start} if len(category_start) else {}
        return cls.from_valid_columns(
            left,
            n_features,
            feature=feature,
            threshold=threshold,
            chain=chain,
            categories=categories,
            optimal_splits=optimal,
            **_split_default_left(default_left, categories),
            **sets,
        )

    def category_set(self, node: int) -> Int32:
        """Return the category codes of the set of a node, ascending, (k,).

        Rows with these codes go to the child that unseen categories do not go to: the right child
        if `unseen_left` of the node is True, else the left child. The array is empty for leaves and
        for nodes that split on a threshold.
        """
        return self.categories[self.category_start[node] : self.category_start[node + 1]]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @property
    def n_cells(self) -> int:
        """Number of regions of all nodes: a node stands for `chain` nested regions with the same rows.

        The number is the sum of `chain`.
        """
        return int(self.chain.sum(dtype=np.int64))

    @property
    def node_depth(self) -> NDArray[np.int64]:
        """Depth of the outermost region of each node, (m,): the number of regions around it.

        The depth of the root is 0. Each node above a node adds its `chain`, the number of nested
        regions with the same rows that it stands for.
        """
        return compute_depths(self.left, self.chain)

    @property
    def depth(self) -> int:
        """Largest depth of a region; 0 for a single root with one region.

        A node stands for `chain` nested regions, each of which is one deeper than the region around
        it.
        """
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
            Number of the node that is the leaf of each row.

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
                f"X has {rows.shape[1]} features, but the tree has {self.n_features} features: "
                "pass the columns of the fit"
            )
        return self.route(rows, get_n_threads(n_jobs))

    def route(self, X: NDArray[np.floating], n_threads: int) -> Int32:
        """Find the leaf of each row, (n,), by node number; rows are not checked.

        X: float64 or float32 rows with `n_features` columns and no infinity; n_threads: number of
        threads. `apply` does the same with checks.
        """
        return apply(*self.split_columns, X, n_threads)

    def learn_missing(self, X: NDArray[np.floating]) -> Tree:
        """Return a copy with `missing_both` set at splits where no row of the fit lacks a value.

        X: encoded rows of the fit (numbers and category codes), (n, p). NaN is a missing value. If
        no row that reaches a node lacks the value of its split, the fit does not determine the
        child for NaN, and `blend` sends NaN to both children.
        """
        rows = X[find_rows_with_missing(X)]
        return self.with_missing_nodes(mark_missing(*self.split_columns, rows).view(np.bool_))

    def with_missing_nodes(self, nodes: NDArray[np.bool_]) -> Tree:
        """Return a copy with `missing_both` set at all inner nodes that are not in `nodes`.

        nodes: True for nodes where a row of the fit lacks the value that the node splits on, (m,)
        bool. Growth has chosen the child for NaN there.
        """
        return self._replace(missing_both=~nodes & ~self.is_leaf)

    def blend(
        self, X: NDArray[np.floating], rows: Float64, score: Float64, n_threads: int
    ) -> Float64:
        """Average the leaf scores of rows, of which some lack values and reach several leaves.

        A row that lacks the value of a split goes to both children if `missing_both` is set at the
        node, in proportion to `rows`; otherwise it goes where `missing_left` says.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Encoded rows: numbers and category codes; NaN for missing values.
        rows : ndarray of float64, shape (m,)
            Weight of the training rows in each node.
        score : ndarray of float64, shape (m, K)
            Scores of the nodes, of which those of the leaves are averaged.
        n_threads : int
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Weighted mean of the leaf scores of each row.
        """
        both = self.missing_both.view(np.uint8)
        return average_leaf_scores(*self.split_columns, X, both, rows, score, n_threads)


def _split_default_left(default_left: NDArray[np.uint8], categories: Int32) -> dict[str, Any]:
    """Split one array of two bits for each node into the columns missing_left and unseen_left.

    Return a dictionary of both columns by name, (m,) bool each. default_left: both columns as bits
    0 and 1 of one array, as the C++ core returns them, (m,) uint8; categories: the codes of all
    category sets. If there are no sets, the dictionary has no entry unseen_left.
    """
    if not len(categories):
        return {"missing_left": default_left.view(np.bool_)}
    bits = {"missing_left": _MISSING_LEFT, "unseen_left": _UNSEEN_LEFT}
    return {name: freeze((default_left & bit) != 0) for name, bit in bits.items()}


def group_by_feature(
    feature: Int32, places: NDArray[np.intp]
) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Group nodes by the feature that they split on.

    Parameters
    ----------
    feature : ndarray of int32, shape (m,)
        Feature that each node splits on.
    places : ndarray of int, shape (k,)
        Numbers of the nodes to group.

    Yields
    ------
    feature : int
        A feature that occurs, ascending.
    nodes : ndarray of int
        The nodes of `places` that split on it, in the order of `places`.
    """
    order = places[np.argsort(feature[places], kind="stable")]
    sorted_feature = feature[order]
    is_first = np.append(True, sorted_feature[1:] != sorted_feature[:-1])[: len(order)]
    starts = np.flatnonzero(is_first)
    for begin, end in pairwise([*starts.tolist(), len(order)]):
        yield int(sorted_feature[begin]), order[begin:end]


def _expect_trees(nodes: Trees) -> None:
    """Raise ValueError unless columns describe trees, one after the other.

    nodes: the columns as a `Trees` object, whose dtypes and shapes have been checked. Roots must
    ascend from 0, children come after their parents in pairs, every node but a root have one
    parent, features lie in 0 .. n_features - 1, and thresholds be finite.
    """
    left, root, m = nodes.left, nodes.root, nodes.n_nodes
    sizes = np.diff(np.append(root, m))
    if (len(root) and root[0] != 0) or (sizes < 1).any() or (m and not len(root)):
        raise ValueError(
            "root must ascend from 0, with at least one node in every tree, got "
            f"{shortened(root.tolist())} for {m} nodes"
        )
    inner = np.flatnonzero(left != LEAF)
    children, end = left[inner], np.repeat(root + sizes, sizes)[inner]
    is_wrong = (children <= inner) | (children >= end - 1)
    if is_wrong.any():
        v = inner[is_wrong][0]
        raise ValueError(
            "left must be -1 or a node after its parent, followed by its sibling in the same tree, got "
            f"left[{v}]={left[v]}"
        )
    is_child = np.zeros(m, dtype=bool)
    is_child[children] = is_child[children + 1] = True
    # If the numbers of children and of child references are equal, no node has two parents.
    if not 2 * len(inner) == is_child.sum() == m - len(root):
        raise ValueError(
            "left must give every node but the root exactly one parent: node v has the children "
            "left[v] and left[v] + 1, and no two nodes share a child"
        )
    used = nodes.feature[inner]
    if used.size and (used.min() < 0 or used.max() >= nodes.n_features):
        raise ValueError(
            f"feature must lie in 0 .. {nodes.n_features - 1}, got {used.min()} .. {used.max()}"
        )
    if not np.isfinite(nodes.threshold[inner]).all():
        raise ValueError("threshold must be finite at splits, got NaN or infinity")
    is_wrong = nodes.missing_both & nodes.is_leaf
    if is_wrong.any():
        raise ValueError(
            f"missing_both must be False at leaves, got True at node {is_wrong.argmax()}"
        )
    _expect_sets(nodes)


def _expect_sets(nodes: Trees) -> None:
    """Raise ValueError unless the category sets of all nodes are valid.

    nodes: trees, of which the fields `category_start`, `categories` and `unseen_left` are read.
    The set of node v is ``categories[category_start[v] : category_start[v + 1]]``; these slices
    must cover `categories` without gap or overlap. A set must be empty at a leaf, and hold distinct
    ascending codes >= 0. `unseen_left`, whether categories outside of the set go to the left child,
    must be False at nodes without a set.
    """
    start, categories = nodes.category_start, nodes.categories
    sizes = np.diff(start)
    if start[0] != 0 or start[-1] != len(categories) or (sizes < 0).any():
        raise ValueError(
            f"category_start must ascend from 0 to the number of categories, {len(categories)}, got "
            f"{shortened(start.tolist())}: set category_start[v] and category_start[v + 1] to where "
            "the categories of node v start and end"
        )
    is_wrong = nodes.unseen_left & (sizes == 0)
    if is_wrong.any():
        raise ValueError(
            "unseen_left must be False at nodes without categories, got True at node "
            f"{is_wrong.argmax()}"
        )
    if not len(categories):
        return
    has_set = (sizes > 0) & nodes.is_leaf
    if has_set.any():
        raise ValueError(
            "category_start must give leaves no categories, got some for node "
            f"{has_set.argmax()}: set category_start[v + 1] = category_start[v] for each leaf v"
        )
    ascends = np.ones(len(categories), dtype=bool)
    ascends[1:] = np.diff(categories) > 0
    ascends[start[:-1][sizes > 0]] = True
    is_wrong = ~ascends | (categories < 0)
    if is_wrong.any():
        v = np.searchsorted(start, is_wrong.argmax(), side="right") - 1
        raise ValueError(
            "categories of a node must be >= 0, distinct and ascending, got "
            f"{shortened(nodes.categories[start[v] : start[v + 1]].tolist())} for node {v}"
        )


def find_rows_with_missing(X: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the numbers of the rows of X (n, p) that have a NaN, ascending."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(X.sum()):  # much faster than testing each number
            return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.isnan(X).any(axis=1))


# Largest size of the stages that are computed at once.
_STAGE_BYTES = 2**25
