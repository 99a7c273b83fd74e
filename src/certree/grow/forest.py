"""Growth of forests: many trees from bins, each on rows of its own that are drawn."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import draw_rows, grow_class_forest, grow_number_forest
from certree.grow.bins import Bins, UInt8
from certree.grow.growing import DEEPEST
from certree.interface.arrays import (
    Float64,
    Int32,
    Int64,
    array_of,
    class_number,
    codes,
    frozen,
    nonnegative,
    plain,
    row_weights,
)
from certree.tree import Trees, threads

_LARGEST = 2**31 - 1
# Whole numbers up to here are added up exactly, with bits to spare for a numeric target.
_MOST_WEIGHT = 2**50


class GrownForest(NamedTuple):
    """Trees whose nodes stand one after the other, and what their rows sum up to.

    The first seven are columns of `certree.tree.Trees`.

    Attributes
    ----------
    feature, threshold, left, missing_left, category_start, categories
        As those of `Tree`, of all nodes, M; children are numbered among all of them.
    root : ndarray of int64, shape (T,)
        First node of each tree.
    begin : ndarray of int64, shape (M + 1,)
        Entries ``begin[v] .. begin[v + 1] - 1`` are those of node v.
    lane : ndarray of int32, shape (any,)
        Class of each entry, ascending in a node; for numbers 0 and 1 in turn.
    total : ndarray of float64, shape (any,)
        Weight of the rows of that class that grew the tree and lie in that node, a row that was drawn
        twice counted twice; it is not 0. For numbers the weight of all, and the sum of their numbers.
    n_features : int
        Number of features, p.
    """

    feature: Int32
    threshold: Float64
    left: Int32
    missing_left: NDArray[np.bool_]
    category_start: Int64
    categories: Int32
    root: Int64
    begin: Int64
    lane: Int32
    total: Float64
    n_features: int

    def trees(self, n_outputs: int = 0) -> Trees:
        """The trees, whose nodes say so many numbers, all 0."""
        return Trees.known(
            self.left,
            self.n_features,
            feature=self.feature,
            threshold=self.threshold,
            missing_left=self.missing_left,
            category_start=self.category_start,
            categories=self.categories,
            root=self.root,
            value=frozen(np.zeros((len(self.left), n_outputs))),
        )

    def class_weights(self, n_classes: int) -> Float64:
        """Weight of each class in each node, (M, n_classes), of trees on classes."""
        table = np.zeros((len(self.feature), n_classes))
        table[np.repeat(np.arange(len(table)), np.diff(self.begin)), self.lane] = self.total
        return table

    def means(self) -> Float64:
        """Mean of the numbers in each node, (M,), of trees on numbers; 0 where no row lies."""
        weight, total = self.total.reshape(-1, 2).T
        return total / np.where(weight > 0, weight, 1.0)


@dataclass(frozen=True, eq=False)
class ForestGrower:
    """Grows the trees of a forest, each on rows and by features that are drawn.

    In every cell features are drawn until `max_features` have been found that vary there. Of their
    cuts that is made which lowers the impurity most, even by nothing: a tree is grown until cells are
    pure or equal in all their features. Of equal cuts it is that of the feature that was drawn first,
    of those by one feature one that sends missing values right, then the lowest. Thresholds, missing
    values and categories are as those of `CountedGrower`, but that missing values, where the cell has
    none, go to the side with more distinct rows.

    What is drawn for a tree is told by the seed, the number of the tree and the keys of the rows.
    So a tree does not depend on the number of threads, on how many trees are grown along, nor, given
    keys, on the order of the rows. Sums are whole numbers: a numeric target is rounded to multiples of
    a power of two, by less than 2^-40 of the largest number for up to 2^22 rows.

    Parameters
    ----------
    bins : Bins
        The rows.
    bootstrap : bool, default=True
        Whether rows are drawn for each tree one after the other among all of them; else each of them
        grows a tree at most once.
    n_draws : int or None, default=None
        So many rows are drawn; None: as many as there are.
    max_features : int or None, default=None
        Features that are looked at in a cell, without those that are constant there; None: all.
    max_features_per_tree : int or None, default=None
        So many features are drawn for each tree, which may compare no others; None: all.
    splitter : {"best", "random"}, default="best"
        "random" draws one cut of each feature, a threshold uniformly between the smallest and the
        largest value of the cell, as far as bins tell, or a side for each category; the best of these
        is made.
    max_depth : int or None, default=None
        Cells at this depth are leaves; None: no limit.
    min_samples_split : int, default=2
        A cell of fewer rows is a leaf; a row counts once however often it was drawn.
    min_samples_leaf : int, default=1
        Rows on either side of a cut, counted likewise.
    min_impurity_decrease : float, default=0
        A cut is made if it lowers the impurity of its cell, times its share of the weight of the
        tree's rows, by so much at least.
    seed : int, default=0
        Decides what is drawn; at least 0, below 2^64.
    keys : array-like of uint64, shape (n,), or None, default=None
        A number for each row that tells it apart from others; rows are drawn by their order. None:
        the order in which they come.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Examples
    --------
    >>> from certree.grow import Bins, ForestGrower
    >>> X, y = [[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> forest = ForestGrower(Bins.of(X), bootstrap=False).grow_classes(y, 2, n_trees=1)
    >>> forest.threshold.tolist(), forest.class_weights(2).tolist()
    ([3.0, 0.0, 0.0], [[2.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    >>> ForestGrower(Bins.of(X)).draws(0).tolist()
    [0, 3, 1, 0]
    """

    bins: Bins
    bootstrap: bool = True
    n_draws: int | None = None
    max_features: int | None = None
    max_features_per_tree: int | None = None
    splitter: Literal["best", "random"] = "best"
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0
    seed: int = 0
    keys: ArrayLike | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        _ = self._limits, self.drawing, self._order

    def grow_classes(
        self,
        y: ArrayLike,
        n_classes: int,
        n_trees: int,
        *,
        first: int = 0,
        criterion: Literal["gini", "entropy"] = "gini",
        sample_weight: ArrayLike | None = None,
    ) -> GrownForest:
        """Grow trees on classes.

        Parameters
        ----------
        y : array-like of int, shape (n,)
            Class of each row, 0, 1, ....
        n_classes : int
            Number of classes.
        n_trees : int
            Number of trees.
        first : int
            Number of the first of them; those before it are not grown.
        criterion : {"gini", "entropy"}
            Impurity of a cell: Gini index or cross entropy (nats).
        sample_weight : array-like of shape (n,), or None
            Whole numbers: how many rows each row counts as whenever it is drawn. One of weight 0 has
            no influence.

        Returns
        -------
        GrownForest

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range.
        """
        n_classes = class_number(n_classes)
        if criterion not in ("gini", "entropy"):
            raise ValueError(f'criterion must be "gini" or "entropy", got {criterion!r}')
        target = self._ordered(codes("y", y, self.bins.n_rows, n_classes)), n_classes, criterion
        return self._grow(grow_class_forest, target, sample_weight, first, n_trees)

    def grow_numbers(
        self,
        y: ArrayLike,
        n_trees: int,
        *,
        first: int = 0,
        sample_weight: ArrayLike | None = None,
    ) -> GrownForest:
        """Grow trees on numbers, by squared loss.

        Parameters
        ----------
        y : array-like of float, shape (n,)
            Target of each row, finite.
        n_trees, first, sample_weight
            As in `grow_classes`.

        Returns
        -------
        GrownForest

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range.
        """
        n = self.bins.n_rows
        given = array_of("y", y)
        if given.dtype.kind not in "fiu":
            raise TypeError(f"y must hold numbers, got dtype {given.dtype}")
        if given.shape != (n,):
            raise ValueError(f"y must have shape ({n},), got {given.shape}")
        target = plain(given, np.float64)
        if not np.isfinite(target).all():
            raise ValueError("y must be finite")
        return self._grow(
            grow_number_forest, (self._ordered(target),), sample_weight, first, n_trees
        )

    def draws(self, number: int) -> Int32:
        """How often each row was drawn for a tree, (n,); where it is 0 the row is out of its bag.

        Each of d draws with replacement takes a row with probability 1/n, so it is out of the bag with
        probability ``(1 - 1/n)^d``. With d = n that rises from 1/4 for two rows towards 1/e = .368: a
        bootstrap misses more than a third of the rows.
        """
        drawn = draw_rows(self.bins.n_rows, self.drawing, _whole("number", number, 0))
        if self._order is None:
            return drawn
        count = np.empty_like(drawn)
        count[self._order] = drawn
        return count

    def _grow(
        self,
        grow: Any,
        target: tuple[Any, ...],
        sample_weight: ArrayLike | None,
        first: int,
        n_trees: int,
    ) -> GrownForest:
        weight = self._weight(sample_weight)
        trees = _whole("first", first, 0), _whole("n_trees", n_trees, 0)
        columns, begin, lane, total = grow(
            self._codes,
            self.bins.kept,
            weight,
            *target,
            self.drawing,
            (*trees, *self._limits),
            threads(self.n_jobs),
        )
        feature, threshold, left, missing_left, starts, categories, root = columns
        return GrownForest(
            feature,
            threshold,
            left,
            missing_left.view(np.bool_),
            starts,
            categories,
            root,
            begin,
            lane,
            total,
            self.bins.n_features,
        )

    @cached_property
    def _limits(self) -> tuple[Any, ...]:
        """Checked options of trees, as the core takes them."""
        if self.splitter not in ("best", "random"):
            raise ValueError(f'splitter must be "best" or "random", got {self.splitter!r}')
        depth = self.max_depth
        return (
            self._number_of_features("max_features"),
            self._number_of_features("max_features_per_tree"),
            self.splitter == "random",
            DEEPEST if depth is None else min(DEEPEST, _whole("max_depth", depth, 0)),
            _whole("min_samples_leaf", self.min_samples_leaf, 1),
            _whole("min_samples_split", self.min_samples_split, 2),
            nonnegative("min_impurity_decrease", self.min_impurity_decrease),
        )

    @cached_property
    def drawing(self) -> tuple[str, int, int]:
        """What says how rows are drawn, as the core takes it: kind, number of draws, and seed."""
        seed: Any = self.seed
        is_whole = isinstance(seed, Integral)
        if not is_whole or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be a whole number >= 0, below 2^64, got {self.seed!r}")
        n = self.bins.n_rows
        n_draws = n if self.n_draws is None else _whole("n_draws", self.n_draws, 1)
        if not self.bootstrap and n_draws > n:
            raise ValueError(f"n_draws must be at most {n} without a bootstrap, got {n_draws}")
        kind = "repeated" if self.bootstrap else "all" if n_draws == n else "some"
        return kind, n_draws, int(self.seed)

    @cached_property
    def _order(self) -> Int64 | None:
        """Numbers of the rows in the order of their keys; None: as they come."""
        if self.keys is None:
            return None
        given = array_of("keys", self.keys)
        if given.dtype != np.uint64:
            raise TypeError(f"keys must be uint64, got dtype {given.dtype}")
        if given.shape != (self.bins.n_rows,):
            raise ValueError(f"keys must have shape ({self.bins.n_rows},), got {given.shape}")
        return np.argsort(given, kind="stable")

    @cached_property
    def _codes(self) -> UInt8:
        """The codes row by row, in order."""
        table = self.bins.codes if self._order is None else self.bins.codes[:, self._order]
        return np.ascontiguousarray(table.T)

    def _ordered(self, column: NDArray[Any]) -> NDArray[Any]:
        return column if self._order is None else column[self._order]

    def _weight(self, sample_weight: ArrayLike | None) -> Float64 | None:
        weight = row_weights(sample_weight, self.bins.n_rows)
        if weight is None:
            return None
        if (weight != np.floor(weight)).any():
            raise ValueError("sample_weight must hold whole numbers")
        if weight.max() * self.drawing[1] > _MOST_WEIGHT:
            raise ValueError(f"sample_weight must be at most 2^50 / n_draws, got {weight.max():g}")
        return self._ordered(weight)

    def _number_of_features(self, name: str) -> int:
        p, given = self.bins.n_features, getattr(self, name)
        most = p if given is None else _whole(name, given, 1)
        if most > p:
            raise ValueError(f"{name} must be at most {p}, the number of features, got {most}")
        return most


def _whole(name: str, value: Any, least: int) -> int:
    """Check a whole number that is not too small; what is too large for the core is as large."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return min(int(value), _LARGEST)
