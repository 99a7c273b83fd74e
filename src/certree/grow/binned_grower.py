"""Growth from sums over bins: the grower of ensembles, which grow many trees over the same rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import (
    draw_rows,
    grow_class_trees,
    grow_gradient_tree,
    grow_number_trees,
    grow_output_trees,
    grow_sampled_trees,
)
from certree.grow.bins import EDGE_ROWS, Bins, SparseCodes, UInt8, edges_first, no_rows
from certree.grow.training_samples import (
    MAX_DEPTH,
    MonotonicSigns,
    check_monotonic_cst,
    expect_poisson_targets,
)
from certree.interface.arrays import (
    Float64,
    Int32,
    Int64,
    UInt64,
    check_codes,
    check_n_classes,
    check_nonnegative,
    check_row_weights,
    to_array,
    to_contiguous,
)
from certree.interface.parameter_aliases import translate_value
from certree.interface.threads import get_n_threads
from certree.rows.draw_order import hash_targets, sum_encoded_table
from certree.rows.features import DenseFeatures, renumber_codes
from certree.tree import Tree, Trees

_LARGEST = 2**31 - 1
# Whole numbers up to here are added up exactly, with bits to spare for a numeric target.
_MOST_WEIGHT = 2**50


class RowSampling(NamedTuple):
    """How rows, or groups of rows, are drawn anew for each tree.

    Attributes
    ----------
    kind : {"all", "some", "repeated"}
        Each once, without replacement, or with replacement.
    n_draws : int
        How many rows, or groups, are drawn for a tree.
    seed : int
        Decides with the number of a tree what is drawn for it.
    group : ndarray of int32, shape (n,), or None
        Number of each row's group, in the order in which rows are drawn; None: each row by itself.
    """

    kind: str
    n_draws: int
    seed: int
    group: Int32 | None = None


class CountedTree(NamedTuple):
    """A tree grown from sums of gradients.

    Attributes
    ----------
    tree : Tree
        The tree.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row that grew the tree or was sent along; -1 for all others.
    sums : ndarray of float64, shape (m, 3)
        Of the training samples of each node: sum of gradients, sum of Hessians, and their number.
    """

    tree: Tree
    leaf: Int32
    sums: Float64


class GrownForest(NamedTuple):
    """Trees, and what the rows of their nodes sum up to.

    Attributes
    ----------
    trees : Trees
        The trees, of M nodes.
    begin : ndarray of int64, shape (M + 1,)
        Entries ``begin[v] .. begin[v + 1] - 1`` are those of node v.
    lane : ndarray of int32, shape (any,)
        Class of each entry, ascending in a node; for numbers 0 and 1 in turn, for several columns
        none, as nodes have all entries.
    total : ndarray of float64, shape (any,)
        Weight of the rows of that class that grew the tree and lie in that node, a row that was drawn
        twice counted twice; it is not 0. For numbers the weight of all, and the sum of their numbers.
        For several columns the weight of all, and for each column the sum of its numbers, the weight of
        the second of its two classes, or those of each of its classes.
    """

    trees: Trees
    begin: Int64
    lane: Int32
    total: Float64

    def class_weights(self, n_classes: int) -> Float64:
        """Weight of each class in each node, (M, n_classes), of trees on classes."""
        table = np.zeros((self.trees.n_nodes, n_classes))
        table[np.repeat(np.arange(len(table)), np.diff(self.begin)), self.lane] = self.total
        return table

    def means(self) -> Float64:
        """Mean of the numbers in each node, (M,), of trees on numbers; 0 where no row lies."""
        weight, total = self.total.reshape(-1, 2).T
        return total / np.where(weight > 0, weight, 1.0)


@dataclass(frozen=True, eq=False)
class BinnedGrower:
    """Grows trees from sums over bins: on gradients, classes, or numbers.

    A cell is cut where a loss falls most by what its training samples sum up to on either side. For
    gradients that is where ``G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2)`` is largest, with the sums G
    and H of the gradients and Hessians; with h the weight and g = h (mean - y) that is squared loss.
    For classes and numbers the impurity of the cell falls most, times its weight.

    Of equal cuts that of the feature that comes first in `feature_order` is made, of those by one
    feature one that sends missing values right, then the lowest. The threshold of a cut is the middle
    of the gap between the values of training samples on its sides; where a bin of other rows reaches
    across the middle, it is the middle of the gap behind that bin. Missing values are tried on both
    sides where training samples of the cell lack the value, else they go to the side with more training
    samples, each counted once however often it was drawn, to the left on ties.

    Categories stand in the order of their mean gradients (of the cell's own with a weight of `l2`), of
    their mean numbers, or of their shares of the last of two classes; of more classes, along the first
    principal component of the shares. A missing value stands among them, and they are cut like numbers.
    A feature that has more than six of them in a cell is passed over there unless they differ by three
    standard deviations more than if the targets were dealt to the rows at random. Categories that a cut
    has not seen go where it sends missing values.

    Sums are whole numbers: gradients, Hessians, numeric targets, and weights that are not whole are
    rounded to multiples of a power of two each, by less than 2^-40 of the largest one for up to 2^22
    rows. So a tree has the same bits in whatever order the rows come, given their `keys` where rows are
    drawn, and whatever the number of threads. What is drawn for a tree is told by the seed and the
    number of the tree alone.

    Parameters
    ----------
    bins : Bins
        The rows.
    max_leaves : int or None, default=None
        So many leaves at most; None: no limit.
    max_depth : int or None, default=None
        Cells at this depth are leaves; None: no limit.
    min_samples_split : int, default=2
        A cell of fewer training samples is a leaf; a row counts once however often it was drawn.
    min_samples_leaf : int, default=1
        Training samples on either side of a cut, counted likewise.
    min_gain : float, default=0
        A cut that gains less is not made, nor is one on gradients that gains nothing beside rounding.
        One on classes or numbers gains what the impurity of its cell falls by, times the share of the
        weight of the tree's rows; at 0 cells are cut until they are pure or equal in all features.
    order : {"best", "level", "depth"}, default="best"
        Which leaf is divided next: that whose cut gains most, of equal ones the first that was made;
        one level after the other, from the left; or all below a cell before the next one. Without
        `max_leaves` it decides alone in which order nodes stand; "depth" is fastest for full trees,
        and takes neither `max_leaves` nor gradients.
    monotonic_cst : array-like of int, shape (p,), or None, default=None
        1 where the step -G / (H + l2), the mean, or the share of the last of two classes must not
        fall along a feature, -1 where it must not rise, 0 elsewhere. It holds for the cells of every
        pruning.
    interaction_cst : sequence of collections of int, or None, default=None
        Features that may act together: a cell is cut by features only that share a group with all
        those compared above it. Those that are in no group are one more. None: all may.
    max_features : int or None, default=None
        So many features are drawn in a cell, without those that are constant there, and of equal cuts
        that of the feature that was drawn first is made; None: all are looked at.
    max_features_per_tree : int or None, default=None
        So many features are drawn for each tree, which may compare no others; None: all.
    random_cuts : bool, default=False
        Whether one cut of each feature is drawn, a threshold uniformly between the smallest and the
        largest value of the cell, as far as bins tell, or a side for each category; the best of these
        is made.
    ties_by_root : bool, default=False
        Whether of equal cuts that of the feature is made whose best cut of the root is better, of
        trees on classes or numbers whose cells look at all features.
    bootstrap : bool, default=False
        Whether rows are drawn for each tree one after the other among all of them; else each of them
        grows a tree at most once.
    n_draws : int or None, default=None
        So many rows, or groups, are drawn; None: as many as there are.
    seed : int, default=0
        Decides what is drawn; at least 0, below 2^64.
    keys : array-like of uint64, shape (n,), or None, default=None
        A number for each row that tells it apart from others; rows are drawn by their order. None:
        the order in which they come.
    groups : array-like of int, shape (n,), or None, default=None
        Number of each row's group, 0, 1, ..., all rows of which are drawn together; None: each row is
        drawn by itself.
    feature_order : array-like of int, shape (p,), or None, default=None
        The features in the order in which they are looked at and drawn; None: as they stand.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. They share the features of a tree on gradients, and the
        trees on classes or numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.grow import BinnedGrower, Bins
    >>> grower = BinnedGrower(Bins.from_table([[0.0], [1.0], [5.0], [6.0]]), max_leaves=2)
    >>> tree, leaf, sums = grower.grow_gradients([1.0, 1.0, -1.0, -1.0], np.ones(4))
    >>> float(tree.threshold[0]), leaf.tolist(), sums.tolist()
    (3.0, [1, 1, 2, 2], [[0.0, 4.0, 4.0], [2.0, 2.0, 2.0], [-2.0, 2.0, 2.0]])
    >>> forest = grower.grow_classes([0, 0, 1, 1], 2, n_trees=1)
    >>> forest.trees.threshold.tolist(), forest.class_weights(2).tolist()
    ([3.0, 0.0, 0.0], [[2.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    >>> BinnedGrower(grower.bins, bootstrap=True).count_draws(0).tolist()
    [0, 3, 1, 0]
    """

    bins: Bins
    max_leaves: int | None = None
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_gain: float = 0.0
    order: Literal["best", "level", "depth"] = "best"
    monotonic_cst: ArrayLike | None = None
    interaction_cst: Sequence[Collection[int]] | None = None
    max_features: int | None = None
    max_features_per_tree: int | None = None
    random_cuts: bool = False
    ties_by_root: bool = False
    bootstrap: bool = False
    n_draws: int | None = None
    seed: int = 0
    keys: ArrayLike | None = None
    groups: ArrayLike | None = None
    feature_order: ArrayLike | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        _ = self._limits, self._constraints, self._features_of_tree, self.row_sampling, self._order

    # -- one tree on gradients

    def grow_gradients(
        self,
        gradient: ArrayLike,
        hessian: ArrayLike,
        *,
        l2: float = 0.0,
        min_hessian: float = 0.0,
        rows: ArrayLike | None = None,
        others: ArrayLike | None = None,
        features: ArrayLike | None = None,
        bins: Bins | None = None,
    ) -> CountedTree:
        """Grow a tree on the gradients and Hessians of a loss, on given rows and by given features.

        Parameters
        ----------
        gradient, hessian : array-like of shape (n,)
            Of each row; finite, and no Hessian below 0, where rows grow the tree.
        l2 : float
            What is added to the sum of Hessians of a cell.
        min_hessian : float
            Sum of Hessians on either side of a cut.
        rows : array-like of int or None
            Numbers of the rows that grow the tree, fastest if they ascend; a row that stands there
            twice counts twice. None: all.
        others : array-like of int or None
            Rows that are sent along without influence. None: all that do not grow the tree.
        features : array-like of int or None
            Features that the tree may compare; None: all.
        bins : Bins or None
            The same rows in coarser bins; None: in those of the grower.

        Returns
        -------
        CountedTree

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, no row grows the tree, or the grower draws
            rows, features or cuts.
        """
        n, bins = self.bins.n_rows, self._same_rows(bins)
        columns, sums, leaf = grow_gradient_tree(
            bins.codes,
            bins.core_columns,
            self._features(features),
            *self._rows(rows, others),
            _numbers("gradient", gradient, n),
            _numbers("hessian", hessian, n),
            check_nonnegative("l2", l2),
            check_nonnegative("min_hessian", min_hessian),
            *self.gradient_options,
        )
        return CountedTree(Tree.from_grower_columns(columns, bins.n_features), leaf, sums)

    # -- trees on classes and numbers

    def grow_classes(
        self,
        y: ArrayLike,
        n_classes: int,
        n_trees: int,
        *,
        first: int = 0,
        criterion: Literal["gini", "entropy", "log_loss"] = "gini",
        sample_weight: ArrayLike | None = None,
        balanced: bool = False,
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
        criterion : {"gini", "entropy", "log_loss"}
            Impurity of a cell: Gini index or cross entropy (nats), which "log_loss" is, too.
        sample_weight : array-like of shape (n,), or None
            Weight of each row whenever it grows a tree. It does not change how often the row is drawn;
            one of weight 0 has no influence.
        balanced : bool
            Whether the classes weigh the same among the rows of each tree: weights, which are integers
            then, are divided by those of all rows of their class that were drawn, and become integers
            as those of a forest do.

        Returns
        -------
        GrownForest

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, or slopes are given for more than two
            classes.
        """
        given, *of_all = self._classes(y, self.bins.n_rows, n_classes, criterion)
        weight = self._weight(sample_weight, self.bootstrap or balanced)
        target = self._ordered(given), *of_all
        return self._grow_trees(grow_class_trees, target, weight, first, n_trees, balanced)

    def grow_numbers(
        self,
        y: ArrayLike,
        n_trees: int,
        *,
        first: int = 0,
        criterion: Literal["squared", "squared_error", "poisson"] = "squared",
        sample_weight: ArrayLike | None = None,
    ) -> GrownForest:
        """Grow trees on numbers.

        Parameters
        ----------
        y : array-like of float, shape (n,)
            Target of each row, finite.
        n_trees, first
            As in `grow_classes`.
        criterion : {"squared", "squared_error", "poisson"}
            Impurity of a cell: squared distance from the mean, which "squared_error" is, too; or half
            of the Poisson deviance, of numbers that are not negative: no side of a cut has zeros
            alone.
        sample_weight : array-like of shape (n,), or None
            Whole weight of each row whenever it grows a tree.

        Returns
        -------
        GrownForest

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range.
        """
        target = _numbers("y", y, self.bins.n_rows)
        if not np.isfinite(target).all():
            raise ValueError("y must be finite")
        criterion = translate_value(criterion, ("squared", "poisson"))
        if criterion not in ("squared", "poisson"):
            raise ValueError(f'criterion must be "squared" or "poisson", got {criterion!r}')
        if criterion == "poisson":
            expect_poisson_targets(target, are_all=False)
        weight = self._weight(sample_weight, True)
        of_all = self._ordered(target), criterion
        return self._grow_trees(grow_number_trees, of_all, weight, first, n_trees)

    def grow_columns(
        self,
        y: ArrayLike,
        n_trees: int,
        *,
        n_classes: Sequence[int] | None = None,
        shares: ArrayLike | None = None,
        first: int = 0,
        criterion: Literal["gini", "entropy", "log_loss"] = "gini",
        sample_weight: ArrayLike | None = None,
        balanced: bool = False,
    ) -> GrownForest:
        """Grow trees on several columns of numbers or of classes, each of which serves all of them.

        A cut gains what the impurities of the columns fall by, added up.

        Parameters
        ----------
        y : array-like of shape (n, q)
            Targets of each row: finite numbers, or classes 0, 1, ....
        n_trees, first
            As in `grow_classes`.
        n_classes : sequence of int, of length q, or None
            Number of classes of each column; None: they are numbers.
        shares : array-like of shape (q,), or None
            What the squared distances of each column of numbers count; None: 1 / q each, which classes
            count in any case.
        criterion : {"gini", "entropy", "log_loss"}
            Impurity of classes; that of numbers is the squared distance from the mean.
        sample_weight : array-like of shape (n,), or None
            Whole weight of each row whenever it grows a tree.
        balanced : bool
            As in `grow_classes`, for each column of classes in turn.

        Returns
        -------
        GrownForest

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, slopes are given, or columns of numbers
            shall be balanced.

        Examples
        --------
        >>> from certree.grow import BinnedGrower, Bins
        >>> grower = BinnedGrower(Bins.from_table([[0.0], [1.0], [5.0], [6.0]]), max_leaves=2)
        >>> forest = grower.grow_columns([[0, 2.0], [0, 2.0], [1, 8.0], [1, 8.0]], n_trees=1)
        >>> forest.trees.threshold.tolist(), forest.total.reshape(-1, 3).tolist()
        ([3.0, 0.0, 0.0], [[4.0, 2.0, 20.0], [2.0, 0.0, 4.0], [2.0, 2.0, 16.0]])
        """
        if self._constraints[0] is not None:
            raise ValueError("monotonic_cst takes one target, and columns are several")
        target = self._columns(y)
        q = target.shape[1]
        known: Int32 | None = None
        if n_classes is not None:
            if len(n_classes) != q:
                raise ValueError(f"n_classes must be those of {q} columns, got {len(n_classes)}")
            known = np.array([check_n_classes(one) for one in n_classes], dtype=np.int32)
            for k, most in enumerate(known):
                check_codes("y", target[:, k].astype(np.intp), len(target), int(most))
        if n_classes is not None or shares is None:
            counts = np.full(q, 1 / q)
        else:
            counts = _numbers("shares", shares, q)
        if balanced and known is None:
            raise ValueError("balanced=True takes columns of classes, got numbers")
        weight = self._weight(sample_weight, True)
        columns = self._ordered(target), known, counts, _impurity_of_classes(criterion)
        return self._grow_trees(grow_output_trees, columns, weight, first, n_trees, balanced)

    def draws(self, number: int) -> Int32:
        """How often each row was drawn for a tree, (n,); where it is 0 the row is out of its bag.

        Each of d draws with replacement takes a row with probability 1/n, so it is out of the bag with
        probability ``(1 - 1/n)^d``. With d = n that rises from 1/4 for two rows towards 1/e = .368: a
        bootstrap misses more than a third of the rows.
        """
        drawn = draw_rows(self.bins.n_rows, self.row_sampling, _whole("number", number, 0))
        if self._order is None:
            return drawn
        count = np.empty_like(drawn)
        count[self._order] = drawn
        return count

    def _grow_trees(
        self,
        grow: Any,
        target: tuple[Any, ...],
        weight: Float64 | None,
        first: int,
        n_trees: int,
        balanced: bool = False,
    ) -> GrownForest:
        numbers = _whole("first", first, 0), _whole("n_trees", n_trees, 0)
        trees = *numbers, self._features_of_tree, bool(balanced)
        return self._grown(
            grow, self._codes, self.bins.core_columns, weight, *target, (self.row_sampling, *trees)
        )

    def _grown(self, grow: Any, *rows: Any) -> GrownForest:
        columns, begin, lane, total = grow(*rows, self._limits, *self._constraints)
        return GrownForest(
            Trees.from_ensemble_columns(columns, self.bins.n_features), begin, lane, total
        )

    # -- options, checked once, as the core takes them

    @cached_property
    def _limits(self) -> tuple[Any, ...]:
        leaves, depth = self.max_leaves, self.max_depth
        if self.order not in ("best", "level", "depth"):
            raise ValueError(f'order must be "best", "level" or "depth", got {self.order!r}')
        if self.order == "depth" and leaves is not None:
            raise ValueError(f'order="depth" takes no max_leaves, got {leaves!r}')
        return (
            _LARGEST if leaves is None else _whole("max_leaves", leaves, 1),
            MAX_DEPTH if depth is None else min(MAX_DEPTH, _whole("max_depth", depth, 0)),
            _whole("min_samples_split", self.min_samples_split, 2),
            _whole("min_samples_leaf", self.min_samples_leaf, 1),
            check_nonnegative("min_gain", self.min_gain),
            self.order,
            0 if self.max_features is None else self._number_of_features("max_features"),
            bool(self.random_cuts),
            bool(self.ties_by_root),
            self.checked_feature_order,
        )

    @property
    def checked_feature_order(self) -> Int32 | None:
        """The order in which features are looked at, checked; None: as they stand."""
        if self.feature_order is None:
            return None
        p = self.bins.n_features
        order = _indices("feature_order", self.feature_order, p)
        if not np.array_equal(np.sort(order), np.arange(p)):
            raise ValueError(f"feature_order must hold each of {p} features once, got {order}")
        return order

    @cached_property
    def _limits_of_gradients(self) -> tuple[Any, ...]:
        given = {
            "max_features": self.max_features is not None,
            "max_features_per_tree": self.max_features_per_tree is not None,
            "random_cuts": self.random_cuts,
            "ties_by_root": self.ties_by_root,
            "bootstrap": self.bootstrap,
            "n_draws": self.n_draws is not None,
            'order="depth"': self.order == "depth",
        }
        unknown = [name for name, is_given in given.items() if is_given]
        if unknown:
            raise ValueError(f"trees on gradients take no {unknown[0]}")
        return self._limits

    @property
    def options(self) -> tuple[Any, ...]:
        """What trees on classes and numbers are grown with, as the core takes it.

        Limits, slopes, groups of features, and the number of threads.
        """
        return self._limits, *self._constraints

    @property
    def gradient_options(self) -> tuple[Any, ...]:
        """What trees on gradients are grown with, as the core takes it.

        Limits, slopes, groups of features, and the number of threads.
        """
        return self._limits_of_gradients, *self._constraints

    @cached_property
    def _constraints(self) -> tuple[MonotonicSigns, UInt8 | None, int]:
        p = self.bins.n_features
        slopes = check_monotonic_cst(self.monotonic_cst, p, None)
        if slopes is not None and slopes[self.bins.is_categorical != 0].any():
            raise ValueError("monotonic_cst must be 0 for features of categories")
        return slopes, _groups(self.interaction_cst, p), get_n_threads(self.n_jobs)

    @cached_property
    def _features_of_tree(self) -> int:
        return self._number_of_features("max_features_per_tree")

    @cached_property
    def drawing(self) -> RowSampling:
        """How rows are drawn, as the core takes it."""
        seed: Any = self.seed
        is_whole = isinstance(seed, Integral)
        if not is_whole or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be a whole number >= 0, below 2^64, got {self.seed!r}")
        n, group = self.bins.n_rows, None
        if self.groups is not None:
            group = self._ordered(check_codes("groups", self.groups, n, n))
            n = int(group.max()) + 1
        n_draws = n if self.n_draws is None else _whole("n_draws", self.n_draws, 1)
        if not self.bootstrap and n_draws > n:
            raise ValueError(f"n_draws must be at most {n} without a bootstrap, got {n_draws}")
        kind = "repeated" if self.bootstrap else "all" if n_draws == n else "some"
        return RowSampling(kind, n_draws, int(self.seed), group)

    @cached_property
    def _order(self) -> Int64 | None:
        """Numbers of the rows in the order of their keys; None: as they come."""
        if self.keys is None:
            return None
        given = to_array("keys", self.keys)
        if given.dtype != np.uint64:
            raise TypeError(f"keys must be uint64, got dtype {given.dtype}")
        if given.shape != (self.bins.n_rows,):
            raise ValueError(f"keys must have shape ({self.bins.n_rows},), got {given.shape}")
        return np.argsort(given, kind="stable")

    @cached_property
    def _codes(self) -> Any:
        """The codes row by row, in order, as the core takes them."""
        codes = self.bins.codes
        if isinstance(codes, SparseCodes):
            return codes.transpose_codes(self._order)
        table = codes if self._order is None else codes[:, self._order]
        return np.ascontiguousarray(table.T)

    # -- what methods are given

    def _classes(
        self, y: ArrayLike, n: int, n_classes: int, criterion: str
    ) -> tuple[Int32, int, str]:
        n_classes = check_n_classes(n_classes)
        criterion = _impurity_of_classes(criterion)
        if n_classes > 2 and self._constraints[0] is not None:
            raise ValueError(f"monotonic_cst takes at most two classes, got {n_classes}")
        return check_codes("y", y, n, n_classes), n_classes, criterion

    def _columns(self, y: ArrayLike) -> Float64:
        """Check several targets of each row."""
        given = to_array("y", y)
        if given.dtype.kind not in "fiu":
            raise TypeError(f"y must hold numbers, got dtype {given.dtype}")
        if given.ndim != 2 or len(given) != self.bins.n_rows or not given.shape[1]:
            raise ValueError(f"y must have shape ({self.bins.n_rows}, any), got {given.shape}")
        if not np.isfinite(given).all():
            raise ValueError("y must be finite")
        return to_contiguous(given, np.float64)

    def _ordered(self, column: NDArray[Any]) -> NDArray[Any]:
        return column if self._order is None else column[self._order]

    def _weight(self, sample_weight: ArrayLike | None, must_be_whole: bool) -> Float64 | None:
        weight = check_row_weights(sample_weight, self.bins.n_rows)
        if weight is None:
            return None
        if must_be_whole:
            if (weight != np.floor(weight)).any():
                raise ValueError("sample_weight must hold whole numbers")
            group = self.row_sampling.group
            rows_of_draw = 1 if group is None else int(np.bincount(group).max())
            if weight.max() * self.row_sampling.n_draws * rows_of_draw > _MOST_WEIGHT:
                raise ValueError(
                    f"sample_weight must be at most 2^50 / n_draws, got {weight.max():g}"
                )
        return self._ordered(weight)

    def _number_of_features(self, name: str) -> int:
        p, given = self.bins.n_features, getattr(self, name)
        most = p if given is None else _whole(name, given, 1)
        if most > p:
            raise ValueError(f"{name} must be at most {p}, the number of features, got {most}")
        return most

    def _same_rows(self, bins: Bins | None) -> Bins:
        if bins is None:
            return self.bins
        shapes = [(one.n_features, one.n_rows) for one in (self.bins, bins)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"bins must have shape {shapes[0]}, got {shapes[1]}")
        return bins

    def _rows(self, rows: ArrayLike | None, others: ArrayLike | None) -> tuple[Int32, Int32]:
        n = self.bins.n_rows
        growing = np.arange(n, dtype=np.int32) if rows is None else _indices("rows", rows, n)
        if not len(growing):
            raise ValueError("rows must hold at least one row that grows the tree, got none")
        if others is not None:
            return growing, _indices("others", others, n)
        if rows is None:
            return growing, np.zeros(0, dtype=np.int32)
        rest = np.ones(n, dtype=bool)
        rest[growing] = False
        return growing, np.flatnonzero(rest).astype(np.int32)

    def _features(self, features: ArrayLike | None) -> Int32:
        if features is None:
            return np.arange(self.bins.n_features, dtype=np.int32)
        return np.unique(_indices("features", features, self.bins.n_features))


def grow_on_samples(
    X: NDArray[Any],
    y: Int32,
    n_classes: int,
    samples: Int32,
    seeds: UInt64,
    *,
    criterion: Literal["gini", "entropy", "log_loss"] = "gini",
    sample_weight: Float64 | None = None,
    categorical: ArrayLike | None = None,
    **options: Any,
) -> GrownForest:
    """Grow trees on classes, each on a sample of the rows, of which no other decides anything.

    Each tree is that of a grower on the bins of its sample, whose ends are fine. It looks at features
    in the order that its sample tells, which numbers categories, too.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Checked rows.
    y : ndarray of int32, shape (n,)
        Class of each row.
    n_classes : int
        Number of classes.
    samples : ndarray of int32, shape (T, n_drawn)
        Rows that grow each tree.
    seeds : ndarray of uint64, shape (T,)
        What decides all else that is drawn for a tree.
    criterion : {"gini", "entropy", "log_loss"}
        As in `BinnedGrower.grow_classes`.
    sample_weight : ndarray of shape (n,), or None
        Positive weight of each row. In each sample weights are made whole numbers.
    categorical : array-like of bool, int or str, or None
        As in `Bins.from_table`.
    **options
        As in `BinnedGrower`, those left out that draw rows.

    Returns
    -------
    GrownForest
    """
    rows = np.asarray(X, dtype=np.float64, order="C")
    # Options speak of features, not of rows.
    grower = BinnedGrower(no_rows(rows.shape[1], categorical), **options)
    return grower._grown(
        grow_sampled_trees,
        rows,
        grower.bins.is_categorical,
        check_row_weights(sample_weight, len(rows)),
        *grower._classes(y, len(rows), n_classes, criterion),
        (
            _edges_first(rows, y, grower.bins.is_categorical, samples),
            EDGE_ROWS,
            seeds,
            grower._features_of_tree,
            hash_targets(y, len(rows)),
        ),
    )


def _edges_first(X: NDArray[Any], y: Int32, category: UInt8, samples: Int32) -> Int32:
    """Samples of rows, of each those first that edges are told from, as the sample itself tells."""
    if samples.shape[1] <= EDGE_ROWS:
        return samples
    every, made = np.arange(samples.shape[1], dtype=np.int32), np.empty_like(samples)
    for own, sample in zip(made, samples, strict=True):
        rows = X[sample]
        sums = sum_encoded_table(rows, y[sample], category.astype(np.bool_))
        numbers = {j: sums.number_categories(j) for j in np.flatnonzero(category).tolist()}
        features = renumber_codes(DenseFeatures((rows,)), numbers)
        own[:] = sample[edges_first(features, every, sums.order_columns())]
    return made


def _impurity_of_classes(criterion: str) -> str:
    criterion = translate_value(criterion, ("gini", "entropy"))
    if criterion not in ("gini", "entropy"):
        raise ValueError(f'criterion must be "gini" or "entropy", got {criterion!r}')
    return criterion


def resolve_interaction_groups(interaction_cst: Any, names: ArrayLike | None) -> Any:
    """Groups of features, some of which are named, by their numbers."""
    known = [] if names is None else [*np.asarray(names, dtype=object)]

    def number(one: Any) -> Any:
        if not isinstance(one, str):
            return one
        if one not in known:
            raise ValueError(f"interaction_cst names {one!r}, but the features are {known}")
        return known.index(one)

    return [
        [number(one) for one in group]
        if isinstance(group, Collection) and not isinstance(group, str)
        else group
        for group in interaction_cst
    ]


def _groups(interaction_cst: Any, p: int) -> UInt8 | None:
    """Which features each group holds, (k, p), those of no other in the last; None: no groups."""
    if interaction_cst is None:
        return None
    groups = interaction_cst if isinstance(interaction_cst, Sequence) else [None]
    if not all(isinstance(one, Collection) and not isinstance(one, str) for one in groups):
        raise ValueError(
            f"interaction_cst must be None or a sequence of tuples or lists, got: {interaction_cst!r}"
        )
    holds = np.zeros((len(groups) + 1, p), dtype=np.uint8)
    for group, members in zip(holds, groups, strict=False):
        # A mask would be taken for the features 0 and 1.
        numbers = all(isinstance(one, Integral) and not isinstance(one, bool) for one in members)
        if not numbers or not all(0 <= one < p for one in members):
            raise ValueError(
                "interaction_cst must consist of integer indices in [0, n_features - 1] = "
                f"[0, {p - 1}], got invalid indices: {members!r}"
            )
        group[list(members)] = 1
    holds[-1] = ~holds[:-1].any(axis=0)
    return holds


def _whole(name: str, value: Any, least: int) -> int:
    """Check a whole number that is not too small; what is too large for the core is as large."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return min(int(value), _LARGEST)


def _indices(name: str, values: ArrayLike, n: int) -> Int32:
    """Check numbers of things of which there are n, in one column."""
    given = to_array(name, values)
    if given.ndim != 1:
        raise ValueError(f"{name} must have shape (any,), got {given.shape}")
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers, got dtype {given.dtype}")
    if given.size and (given.min() < 0 or given.max() >= n):
        raise ValueError(f"{name} must lie in 0 .. {n - 1}, got {given.min()} .. {given.max()}")
    return to_contiguous(given, np.int32)


def _numbers(name: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    """Check a number for each row, of any numeric dtype."""
    given = to_array(name, values)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers, got dtype {given.dtype}")
    if given.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {given.shape}")
    return to_contiguous(given, np.float64)
