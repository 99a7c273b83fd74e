"""Histogram-based growth: the grower of ensembles, which grow many trees over the same binned rows."""

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
from certree.grow.bins import (
    EDGE_ROWS,
    Bins,
    SparseCodes,
    UInt8,
    make_empty_bins,
    put_edge_rows_first,
)
from certree.grow.training_samples import MAX_DEPTH, expect_poisson_targets
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
from certree.rows.monotonic import MonotonicSigns, check_monotonic_cst, expect_numeric_features
from certree.tree import Tree, Trees

_LARGEST = 2**31 - 1
# Sums of integer weights up to here are exact, with bits to spare for a numeric target.
_MOST_WEIGHT = 2**50


class RowSampling(NamedTuple):
    """How rows, or groups of rows, are sampled for each tree.

    Attributes
    ----------
    kind : {"all", "some", "repeated"}
        "all": each row, or group, once; "some": `n_draws` of them without replacement; "repeated":
        `n_draws` with replacement.
    n_draws : int
        Number of rows, or groups, drawn for a tree.
    seed : int
        Seed, 0 .. 2^64 - 1; the sample of a tree is a function of the seed and the tree's number.
    group : ndarray of int32, shape (n,), or None
        Group number of each row, with rows sorted by `BinnedGrower.keys`; None: each row is drawn
        by itself.
    """

    kind: str
    n_draws: int
    seed: int
    group: Int32 | None = None


class CountedTree(NamedTuple):
    """A tree grown on gradients, with sums over its nodes.

    Attributes
    ----------
    tree : Tree
        The tree, of m nodes, without leaf values.
    leaf : ndarray of int32, shape (n,)
        Leaf (index of its node in `tree`) of each row that grew the tree or was routed through it;
        -1 for all other rows (those neither in `rows` nor in `others` of `grow_gradients`).
    sums : ndarray of float64, shape (m, 3)
        Over the rows of each node that grew the tree: sum of gradients, sum of Hessians, number of
        rows.
    """

    tree: Tree
    leaf: Int32
    sums: Float64


class GrownForest(NamedTuple):
    """Trees of a forest, with sums over the rows of each node.

    The sums of a node are stored as consecutive entries of `channel` and `total`. What they are
    depends on the target:

    * Classes (`grow_classes`): the weight of each class that occurs in the node.
    * Numbers (`grow_numbers`): the weight, and the weighted sum of the targets.
    * Several columns (`grow_columns`): the weight, then the sums of each column in turn. A numeric
      column has the weighted sum. A column of two classes has the weight of the second class. A
      column of more classes has the weight of each class.

    A row that was drawn twice counts twice.

    Attributes
    ----------
    trees : Trees
        The trees, of M nodes in all. Leaf values (`Trees.value`) are not set.
    begin : ndarray of int64, shape (M + 1,)
        Offsets of the nodes in the other two arrays: ``total[begin[v] : begin[v + 1]]`` are the
        entries of node v.
    channel : ndarray of int32, shape (number of entries,)
        What each entry of `total` is the sum of. For classes it is the class, ascending in a node.
        For numbers it is 0 (row weight) and 1 (target) in turn. Empty for several columns, as all
        nodes have the same entries.
    total : ndarray of float64, shape (number of entries,)
        Value of each entry; positive for classes.
    """

    trees: Trees
    begin: Int64
    channel: Int32
    total: Float64

    def class_weights(self, n_classes: int) -> Float64:
        """Return the weight of each class in each node, (M, n_classes), of trees on classes.

        n_classes: number of classes that the trees were grown with. M is the number of nodes of all
        trees, in the order of `trees`. Read from `begin`, `channel` and `total`. A row that was
        drawn twice counts twice; classes that do not occur in a node have weight 0.
        """
        table = np.zeros((self.trees.n_nodes, n_classes))
        table[np.repeat(np.arange(len(table)), np.diff(self.begin)), self.channel] = self.total
        return table

    def means(self) -> Float64:
        """Return the mean target in each node, (M,), of trees on numbers.

        The mean is the weighted sum of targets divided by the weight, both from `total`; 0 in nodes
        without rows. M is the number of nodes of all trees.
        """
        weight, total = self.total.reshape(-1, 2).T
        return total / np.where(weight > 0, weight, 1.0)


@dataclass(frozen=True, eq=False)
class BinnedGrower:
    """Grows trees from histograms over bins: on gradients, classes, or numbers.

    A node is split where the sum of the children's losses is smallest. For gradients that is where
    ``G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2)`` is largest, with sums G of gradients and H of
    Hessians over the rows of the left and the right child. With weight h and gradient ``h (mean -
    y)`` this is squared loss. For classes and numbers the split lowers the impurity of the node,
    times its weight, most.

    Among equal splits the feature that comes first in `feature_order` wins; among equal splits by
    one feature one that sends missing values right, then the lowest threshold. A threshold is the
    middle of the gap between the values of the node's rows in the two children. If a bin of other
    rows reaches across the middle, it is the middle of the gap behind that bin. Missing values are
    tried in both children if rows of the node lack the value. Otherwise they go to the child with
    more rows, each counted once, and left on ties.

    Categories are ordered by their mean gradient (with a weight `l2` on the mean of the node), by
    their mean target, by their frequency of the second of two classes, or, for more classes, by the
    first principal component of the class frequencies. A missing value is one more category. The
    order is then split like numbers. A feature with more than six categories in a node is skipped
    there unless they differ by three standard deviations more than if the targets were permuted at
    random. Categories that do not occur in the node go to the child with the greater weight.

    Sums are integers: gradients, Hessians, numeric targets and non-integer weights are rounded to
    multiples of a power of two, by less than 2^-40 of the largest value for up to 2^22 rows. So a
    tree does not depend on the order of rows (if `keys` are given when rows are drawn) nor on the
    number of threads. What is drawn for a tree is a function of the seed and the number of the
    tree.

    Parameters
    ----------
    bins : Bins
        The binned rows, n of them with p features.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None: no limit.
    max_depth : int or None, default=None
        Nodes at this depth are leaves; None: no limit.
    min_samples_split : int, default=2
        A node of fewer rows is a leaf; a row counts once however often it was drawn.
    min_samples_leaf : int, default=1
        Least number of rows in each child; a row counts once however often it was drawn.
    min_gain : float, default=0
        Least gain of a split. On gradients the gain is the sum above minus ``G^2 / (H + l2)`` of
        the node, and must exceed rounding errors as well. On classes and numbers it is the decrease
        of the node's impurity, times its fraction of the weight of the tree's rows; at 0 nodes are
        then split until they are pure or equal in all features.
    order : {"best", "level", "depth"}, default="best"
        Which leaf is split next. "best": the leaf with the largest gain, of equal ones the oldest.
        "level": all leaves of a level, from the left, before the next level. "depth": all nodes
        below a node before the next node. Without `max_leaves` the order only changes the numbers
        of nodes. "depth" is fastest for fully grown trees; it supports neither `max_leaves` nor
        gradients.
    monotonic_cst : array-like of int, shape (p,), or None, default=None
        1 if the step ``-G / (H + l2)``, the mean target, or the frequency of the second of two
        classes must not fall as the feature rises; -1 if it must not rise; 0 for no constraint.
        Constraints hold for the leaves of each pruning.
    interaction_cst : sequence of collections of int, or None, default=None
        Groups of features that may interact: a node is split only on features that share a group
        with all features of the splits above it. Features without a group form one more. None: no
        limit.
    max_features : int or None, default=None
        Number of features, not constant in the node, that are drawn in each node and compared.
        Among equal splits the feature drawn first wins. None: all features are compared.
    max_features_per_tree : int or None, default=None
        Number of features that are drawn for each tree and may be split on; None: all.
    random_cuts : bool, default=False
        Whether one random split of each feature is compared instead of all: a threshold that is
        uniform between the node's smallest and largest value (as far as bins resolve it), or a
        random child for each category.
    ties_by_root : bool, default=False
        Whether among equal splits the feature with the better split of the root wins, in trees on
        classes or numbers whose nodes compare all features.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement for each tree; else without.
    n_draws : int or None, default=None
        Number of rows, or groups, drawn for each tree; None: as many as there are.
    seed : int, default=0
        Seed of all random choices, 0 .. 2^64 - 1.
    keys : array-like of uint64, shape (n,), or None, default=None
        A distinct number for each row. Rows are drawn by the order of their keys, so that the order
        of the table does not matter. None: the order of the table.
    groups : array-like of int, shape (n,), or None, default=None
        Group number of each row, 0, 1, .... All rows of a group are drawn together. None: each row
        is drawn by itself.
    feature_order : array-like of int, shape (p,), or None, default=None
        Permutation of the features: the order in which they are compared and drawn; None: 0, 1,
        ..., p - 1.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. They share the features of a tree on gradients, or
        the trees on classes or numbers.

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
        _ = (
            self._limits,
            self._constraints,
            self._n_tree_features,
            self.row_sampling,
            self._key_order,
        )

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
        """Grow a tree on the gradients and Hessians of a loss.

        The grower must not draw rows, features or splits.

        Parameters
        ----------
        gradient, hessian : array-like of shape (n,)
            First and second derivative of the loss of each row by its score. For rows that grow the
            tree they must be finite, and Hessians >= 0.
        l2 : float
            Number that is added to the sum of Hessians of each node (ridge penalty on leaf values).
        min_hessian : float
            Least sum of Hessians in each child of a split.
        rows : array-like of int or None
            Indices of the rows that grow the tree, fastest if they ascend. An index that occurs
            twice counts twice. None: all rows.
        others : array-like of int or None
            Indices of rows that are routed to their leaves without influence on the tree. None: all
            rows that do not grow it.
        features : array-like of int or None
            Indices of the features that the tree may split on; None: all.
        bins : Bins or None
            The same rows in other bins, such as those of `Bins.coarsen`; None: `bins` of the
            grower.

        Returns
        -------
        CountedTree
            The tree, the leaf of each row, and sums of gradients over the nodes.

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, no row grows the tree, or the grower
            draws rows, features or splits, or has ``order="depth"``.
        """
        n, bins = self.bins.n_rows, self._check_bins(bins)
        columns, sums, leaf = grow_gradient_tree(
            bins.codes,
            bins.core_columns,
            self._check_features(features),
            *self._check_rows(rows, others),
            _check_numbers("gradient", gradient, n),
            _check_numbers("hessian", hessian, n),
            check_nonnegative("l2", l2),
            check_nonnegative("min_hessian", min_hessian),
            *self.gradient_options,
        )
        tree = bins.place_on_dates(Tree.from_grower_columns(columns, bins.n_features))
        return CountedTree(tree, leaf, sums)

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
            Class of each row, 0 .. n_classes - 1.
        n_classes : int
            Number of classes.
        n_trees : int
            Number of trees.
        first : int
            Number of the first tree; rows and features are drawn for trees first .. first + n_trees
            - 1.
        criterion : {"gini", "entropy", "log_loss"}
            Impurity of a node: the Gini index, or the cross entropy (nats), for which "log_loss" is
            another name.
        sample_weight : array-like of shape (n,), or None
            Weight of a row each time it is drawn; None: 1. It does not change how often the row is
            drawn. Rows of weight 0 have no influence. With `bootstrap` or `balanced` weights must
            be integers.
        balanced : bool
            Whether each class gets the same total weight in each tree: weights are divided by the
            weight of all drawn rows of their class, and rounded to integers; see
            `compute_integer_weights`.

        Returns
        -------
        GrownForest
            The trees, and for each node the weight of each class that occurs in it.

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, or monotonic constraints are given for
            more than two classes.
        """
        classes, *settings = self._check_classes(y, self.bins.n_rows, n_classes, criterion)
        weight = self._check_weight(sample_weight, self.bootstrap or balanced)
        target = self._reorder(classes), *settings
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
        """Grow trees on a numeric target.

        Parameters
        ----------
        y : array-like of float, shape (n,)
            Target of each row, finite.
        n_trees : int
            Number of trees.
        first : int
            Number of the first tree; rows and features are drawn for trees first .. first + n_trees
            - 1.
        criterion : {"squared", "squared_error", "poisson"}
            Impurity of a node: the mean squared distance from its mean ("squared" and
            "squared_error" are the same), or half the mean Poisson deviance from its mean. The
            latter needs targets >= 0, and each child needs a positive one.
        sample_weight : array-like of shape (n,), or None
            Integer weight of a row each time it is drawn; None: 1.

        Returns
        -------
        GrownForest
            The trees, and for each node the weight of its rows and the weighted sum of their
            targets.

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range.
        """
        target = _check_numbers("y", y, self.bins.n_rows)
        if not np.isfinite(target).all():
            raise ValueError(
                "y must be finite, got NaN or infinity: leave out rows without a target"
            )
        criterion = translate_value(criterion, ("squared", "poisson"))
        if criterion not in ("squared", "poisson"):
            raise ValueError(
                f'criterion must be "squared", "squared_error" or "poisson", got {criterion!r}'
            )
        if criterion == "poisson":
            expect_poisson_targets(target, are_all=False)
        weight = self._check_weight(sample_weight, True)
        arguments = self._reorder(target), criterion
        return self._grow_trees(grow_number_trees, arguments, weight, first, n_trees)

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
        """Grow trees on several targets: all columns are numbers, or all are classes.

        Each tree serves all columns. A split is as good as the sum of the decreases of the columns'
        impurities.

        Parameters
        ----------
        y : array-like of shape (n, q)
            Targets of each row: finite numbers, or classes 0, 1, ....
        n_trees : int
            Number of trees.
        n_classes : sequence of int, of length q, or None
            Number of classes of each column; None: the columns are numbers.
        shares : array-like of shape (q,), or None
            Factor of each numeric column's squared distances in the impurity of a node; None: 1 /
            q. Columns of classes always have the factor 1 / q.
        first : int
            Number of the first tree; rows and features are drawn for trees first .. first + n_trees
            - 1.
        criterion : {"gini", "entropy", "log_loss"}
            Impurity of classes; that of numbers is the squared distance from the mean.
        sample_weight : array-like of shape (n,), or None
            Integer weight of a row each time it is drawn; None: 1.
        balanced : bool
            Whether each class of a column gets the same total weight in each tree, in each column
            separately.

        Returns
        -------
        GrownForest
            The trees, and in `total` the same entries for each node: the weight of its rows, then
            the sum of each numeric column, or the weights of each column's classes.

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, the grower has monotonic constraints, or
            `balanced` is set for numeric columns.

        Examples
        --------
        >>> from certree.grow import BinnedGrower, Bins
        >>> grower = BinnedGrower(Bins.from_table([[0.0], [1.0], [5.0], [6.0]]), max_leaves=2)
        >>> forest = grower.grow_columns([[0, 2.0], [0, 2.0], [1, 8.0], [1, 8.0]], n_trees=1)
        >>> forest.trees.threshold.tolist(), forest.total.reshape(-1, 3).tolist()
        ([3.0, 0.0, 0.0], [[4.0, 2.0, 20.0], [2.0, 0.0, 4.0], [2.0, 2.0, 16.0]])
        """
        if self._constraints[0] is not None:
            raise ValueError(
                f"monotonic_cst must be None for several targets, got {self.monotonic_cst}: grow "
                "trees for each target by grow_classes or grow_numbers"
            )
        target = self._check_columns(y)
        q = target.shape[1]
        class_counts: Int32 | None = None
        if n_classes is not None:
            if len(n_classes) != q:
                raise ValueError(
                    f"n_classes must have one number for each of {q} columns of y, got "
                    f"{len(n_classes)}"
                )
            class_counts = np.array(
                [check_n_classes(number) for number in n_classes], dtype=np.int32
            )
            for k, count in enumerate(class_counts):
                check_codes("y", target[:, k].astype(np.intp), len(target), int(count))
        if n_classes is not None or shares is None:
            factors = np.full(q, 1 / q)
        else:
            factors = _check_numbers("shares", shares, q)
        if balanced and class_counts is None:
            raise ValueError(
                "balanced must be False for columns of numbers, got True: pass n_classes for classes"
            )
        weight = self._check_weight(sample_weight, True)
        columns = self._reorder(target), class_counts, factors, _resolve_class_criterion(criterion)
        return self._grow_trees(grow_output_trees, columns, weight, first, n_trees, balanced)

    def count_draws(self, number: int) -> Int32:
        """Return how often each row is drawn for tree `number` (0, 1, ...), (n,); 0: out of bag.

        Rows are in the order of the table. If groups are drawn, a row is drawn with its group.

        Each of d draws with replacement takes a row with probability 1/n, so it is out of bag with
        probability ``(1 - 1/n)^d``. For d = n that rises from 1/4 for two rows towards 1/e = .368.
        """
        ordered_count = draw_rows(
            self.bins.n_rows, self.row_sampling, _check_integer("number", number, 0)
        )
        if self._key_order is None:
            return ordered_count
        count = np.empty_like(ordered_count)
        count[self._key_order] = ordered_count
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
        """Call a function of the C++ core that grows trees on all rows, and return its forest.

        Parameters
        ----------
        grow : callable
            `grow_class_trees`, `grow_number_trees` or `grow_output_trees` of `certree._core`.
        target : tuple
            The arguments of `grow` that describe the target: its values, numbers of classes or
            factors of columns, and the criterion. Values are in the order of `keys`.
        weight : ndarray of float64, shape (n,), or None
            Row weights in the order of `keys`; None: 1.
        first, n_trees : int
            Trees first .. first + n_trees - 1 are grown; rows and features are drawn by these
            numbers.
        balanced : bool
            Whether each class gets the same total weight in each tree.

        Returns
        -------
        GrownForest
            The trees, with sums over the rows of each node.
        """
        numbers = _check_integer("first", first, 0), _check_integer("n_trees", n_trees, 0)
        trees = *numbers, self._n_tree_features, bool(balanced)
        return self._call_core(
            grow, self._codes, self.bins.core_columns, weight, *target, (self.row_sampling, *trees)
        )

    def _call_core(self, grow: Any, *rows: Any) -> GrownForest:
        """Call a function of the C++ core that grows trees, and return its result as `GrownForest`.

        grow: the function. It returns the columns of `Trees`, and three arrays with sums over the
        rows of each node: `begin`, index of each node's first entry; `channel`, the class or
        quantity of each entry; and `total`, its value (see `GrownForest`). rows: the first
        arguments of the function: bin numbers of the rows, the other fields of `bins`, row weights
        or None, the arguments that describe the target, and a tuple (`RowSampling`, first tree,
        number of trees, features per tree, whether classes are balanced). The tuple `_limits` and
        the entries of `_constraints` follow them.
        """
        columns, begin, channel, total = grow(*rows, self._limits, *self._constraints)
        return GrownForest(
            self.bins.place_on_dates(Trees.from_ensemble_columns(columns, self.bins.n_features)),
            begin,
            channel,
            total,
        )

    # -- settings for the C++ core, checked once

    @cached_property
    def _limits(self) -> tuple[Any, ...]:
        """Limits of growth, checked, as a tuple for the C++ core.

        The tuple has, in this order: largest number of leaves (2^31 - 1 for no limit), largest
        depth, `min_samples_split`, `min_samples_leaf`, `min_gain`, `order`, `max_features` (0 for
        all), `random_cuts`, `ties_by_root`, `feature_order` (an int32 array, (p,), or None). Raise
        ValueError if one of them is out of range.
        """
        leaves, depth = self.max_leaves, self.max_depth
        if self.order not in ("best", "level", "depth"):
            raise ValueError(f'order must be "best", "level" or "depth", got {self.order!r}')
        if self.order == "depth" and leaves is not None:
            raise ValueError(
                f'max_leaves must be None with order="depth", got {leaves!r}: use order="best"'
            )
        return (
            _LARGEST if leaves is None else _check_integer("max_leaves", leaves, 1),
            MAX_DEPTH if depth is None else min(MAX_DEPTH, _check_integer("max_depth", depth, 0)),
            _check_integer("min_samples_split", self.min_samples_split, 2),
            _check_integer("min_samples_leaf", self.min_samples_leaf, 1),
            check_nonnegative("min_gain", self.min_gain),
            self.order,
            0 if self.max_features is None else self._check_n_features("max_features"),
            bool(self.random_cuts),
            bool(self.ties_by_root),
            self.checked_feature_order,
        )

    @property
    def checked_feature_order(self) -> Int32 | None:
        """`feature_order` as an int32 array, (p,), or None.

        Raise ValueError if it is not a permutation of 0 .. p - 1. None stands for the order 0, 1,
        ..., p - 1.
        """
        if self.feature_order is None:
            return None
        p = self.bins.n_features
        order = _check_indices("feature_order", self.feature_order, p)
        if not np.array_equal(np.sort(order), np.arange(p)):
            raise ValueError(f"feature_order must hold each of 0 .. {p - 1} once, got {order}")
        return order

    @cached_property
    def _gradient_limits(self) -> tuple[Any, ...]:
        """Limits of growth for trees on gradients: the same tuple as `_limits`.

        Raise ValueError if a parameter is set that trees on gradients do not support, such as
        `bootstrap`. The tuple has, in this order: largest number of leaves, largest depth,
        `min_samples_split`, `min_samples_leaf`, `min_gain`, `order`, `max_features` (0 for all),
        `random_cuts`, `ties_by_root`, `feature_order`.
        """
        settings = {
            "max_features": self.max_features is not None,
            "max_features_per_tree": self.max_features_per_tree is not None,
            "random_cuts": self.random_cuts,
            "ties_by_root": self.ties_by_root,
            "bootstrap": self.bootstrap,
            "n_draws": self.n_draws is not None,
            'order="depth"': self.order == "depth",
        }
        unsupported = [name for name, is_set in settings.items() if is_set]
        if unsupported:
            raise ValueError(
                f"{unsupported[0]} is set, but grow_gradients does not support it: make a grower with "
                "its default"
            )
        return self._limits

    @property
    def options(self) -> tuple[Any, ...]:
        """Settings of trees on classes or numbers, as a tuple for the C++ core.

        The tuple has four entries: the limits of growth (the tuple `_limits` of numbers such as the
        largest depth); monotonic signs (p,), which are 1, -1 or 0, or None; which features may
        interact, (groups, p) uint8 with 1 for the members of each group of `interaction_cst`, or
        None without groups; and the number of threads.
        """
        return self._limits, *self._constraints

    @property
    def gradient_options(self) -> tuple[Any, ...]:
        """Settings of trees on gradients, as a tuple for the C++ core.

        The tuple has four entries: the limits of growth (the tuple `_limits` of numbers such as the
        largest depth); monotonic signs (p,), which are 1, -1 or 0, or None; which features may
        interact, (groups, p) uint8 with 1 for the members of each group of `interaction_cst`, or
        None without groups; and the number of threads. Raise ValueError if a parameter is set that
        trees on gradients do not support, such as `bootstrap` or `max_features`.
        """
        return self._gradient_limits, *self._constraints

    @cached_property
    def _constraints(self) -> tuple[MonotonicSigns, UInt8 | None, int]:
        """Constraints of growth and number of threads, checked, as a tuple for the C++ core.

        The tuple has: monotonic signs (p,), which are 1, -1 or 0, or None; which features each
        interaction group holds, (groups, p) uint8 (1 or 0), or None; and the number of threads.
        Raise ValueError if a constraint is not valid for the p features.
        """
        p = self.bins.n_features
        monotonic_signs = check_monotonic_cst(self.monotonic_cst, p, None)
        if monotonic_signs is not None:
            expect_numeric_features(monotonic_signs, self.bins.is_categorical != 0, None)
        return (
            monotonic_signs,
            _build_interaction_masks(self.interaction_cst, p),
            get_n_threads(self.n_jobs),
        )

    @cached_property
    def _n_tree_features(self) -> int:
        """`max_features_per_tree` as an integer in 1 .. p; p for None.

        `max_features_per_tree` is the number of features that are drawn for each tree and may be
        split on. Raise ValueError if it is out of range.
        """
        return self._check_n_features("max_features_per_tree")

    @cached_property
    def row_sampling(self) -> RowSampling:
        """How rows are drawn for each tree, from `bootstrap`, `n_draws`, `seed` and `groups`.

        Raise ValueError if `seed` or `n_draws` is out of range. The result holds whether rows are
        drawn with replacement (`kind`), the number of draws per tree, the seed, and the group
        number of each row, with rows sorted by `keys`, or None.
        """
        seed: Any = self.seed
        is_whole = isinstance(seed, Integral)
        if not is_whole or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be an integer in 0 .. 2^64 - 1, got {self.seed!r}")
        n, group = self.bins.n_rows, None
        if self.groups is not None:
            group = self._reorder(check_codes("groups", self.groups, n, n))
            n = int(group.max()) + 1
        n_draws = n if self.n_draws is None else _check_integer("n_draws", self.n_draws, 1)
        if not self.bootstrap and n_draws > n:
            raise ValueError(
                f"n_draws must be at most {n} without bootstrap, got {n_draws}: set bootstrap=True"
            )
        kind = "repeated" if self.bootstrap else "all" if n_draws == n else "some"
        return RowSampling(kind, n_draws, int(self.seed), group)

    @cached_property
    def _key_order(self) -> Int64 | None:
        """Row indices in ascending order of `keys`, (n,); None without keys.

        The C++ core gets rows in this order. Raise TypeError or ValueError if keys are not uint64,
        or their number is not n. `keys` is a parameter of the grower: a distinct number for each
        row.
        """
        if self.keys is None:
            return None
        keys = to_array("keys", self.keys)
        if keys.dtype != np.uint64:
            raise TypeError(
                f"keys must be uint64, got dtype {keys.dtype}: use keys.astype(np.uint64)"
            )
        if keys.shape != (self.bins.n_rows,):
            raise ValueError(f"keys must have shape ({self.bins.n_rows},), got {keys.shape}")
        return np.argsort(keys, kind="stable")

    @cached_property
    def _codes(self) -> Any:
        """Bin numbers by row, (n, p) uint8, with rows in the order of `keys`, for the C++ core.

        For a sparse table the tuple of `SparseCodes.to_csr_arrays`: start of each row's entries,
        feature and bin of each entry, and for each feature the bin of the value 0. The bin numbers
        are those of `bins`; 255 is a missing value. `keys`, a parameter, is a distinct number for
        each row.
        """
        codes = self.bins.codes
        if isinstance(codes, SparseCodes):
            return codes.to_csr_arrays(self._key_order)
        table = codes if self._key_order is None else codes[:, self._key_order]
        return np.ascontiguousarray(table.T)

    # -- checks of arguments

    def _check_classes(
        self, y: ArrayLike, n: int, n_classes: int, criterion: str
    ) -> tuple[Int32, int, str]:
        """Return y as int32 classes (n,), `n_classes`, and "gini" or "entropy".

        y: class of each row; n: number of rows; n_classes: number of classes; criterion: "gini",
        "entropy" or "log_loss" (another name of "entropy"). Raise TypeError or ValueError if an
        argument is out of range, or there are monotonic constraints and more than two classes.
        """
        n_classes = check_n_classes(n_classes)
        criterion = _resolve_class_criterion(criterion)
        if n_classes > 2 and self._constraints[0] is not None:
            raise ValueError(
                f"monotonic_cst must be None for more than two classes, got {n_classes} classes: "
                "leave out the constraints"
            )
        return check_codes("y", y, n, n_classes), n_classes, criterion

    def _check_columns(self, y: ArrayLike) -> Float64:
        """Return several targets as float64, (n, q), rows in the order of the table.

        y: the targets, one column each, (n, q). Raise TypeError or ValueError if y is not a finite
        numeric table with n rows and at least one column; n is the number of rows of the grower's
        bins.
        """
        columns = to_array("y", y)
        if columns.dtype.kind not in "fiu":
            raise TypeError(f"y must be numeric, got dtype {columns.dtype}")
        if columns.ndim != 2 or len(columns) != self.bins.n_rows or not columns.shape[1]:
            raise ValueError(
                f"y must have shape ({self.bins.n_rows}, number of targets), got {columns.shape}"
            )
        if not np.isfinite(columns).all():
            raise ValueError(
                "y must be finite, got NaN or infinity: leave out rows without a target"
            )
        return to_contiguous(columns, np.float64)

    def _reorder(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return the entries of `column`, one per row, (n,) or (n, q), by ascending `keys`.

        `keys` (distinct numbers of the rows) are those of the grower. Without keys the order does
        not change.
        """
        return column if self._key_order is None else column[self._key_order]

    def _check_weight(
        self, sample_weight: ArrayLike | None, must_be_integer: bool
    ) -> Float64 | None:
        """Return row weights as float64, (n,), with rows sorted by `keys`; None for None.

        sample_weight: weight of each row, >= 0; must_be_integer: whether weights must be integers,
        so small that sums are at most 2^50. Raise TypeError or ValueError otherwise.
        """
        weight = check_row_weights(sample_weight, self.bins.n_rows)
        if weight is None:
            return None
        if must_be_integer:
            if (weight != np.floor(weight)).any():
                raise ValueError(
                    "sample_weight must hold integers, got fractions: multiply all weights by a "
                    "constant, and round them"
                )
            group = self.row_sampling.group
            rows_of_draw = 1 if group is None else int(np.bincount(group).max())
            if weight.max() * self.row_sampling.n_draws * rows_of_draw > _MOST_WEIGHT:
                raise ValueError(
                    "sample_weight must be at most 2^50 / n_draws, so that sums are exact, got "
                    f"{weight.max():g}: use smaller integers in the same proportions"
                )
        return self._reorder(weight)

    def _check_n_features(self, name: str) -> int:
        """Return a parameter, a number of features, as an integer in 1 .. p; p for None.

        name: "max_features" or "max_features_per_tree". Raise ValueError if it is out of range.
        """
        p, value = self.bins.n_features, getattr(self, name)
        number = p if value is None else _check_integer(name, value, 1)
        if number > p:
            raise ValueError(f"{name} must be at most {p}, the number of features, got {number}")
        return number

    def _check_bins(self, bins: Bins | None) -> Bins:
        """Return `bins`, or the grower's bins for None.

        Raise ValueError if `bins` have another number of features or rows than the grower's.
        """
        if bins is None:
            return self.bins
        shapes = [(binned.n_features, binned.n_rows) for binned in (self.bins, bins)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                "bins must have as many features and rows as those of the grower, "
                f"{shapes[0]}, got {shapes[1]}"
            )
        return bins

    def _check_rows(self, rows: ArrayLike | None, others: ArrayLike | None) -> tuple[Int32, Int32]:
        """Return indices of the rows that grow a tree, and of those that are routed, int32.

        The result is a tuple of two arrays. rows: indices of the rows that grow the tree, or None
        for all; others: indices of rows that are routed through it without influence, or None for
        all that do not grow it. Raise TypeError or ValueError if an index is out of range, or no
        row grows the tree.
        """
        n = self.bins.n_rows
        training = np.arange(n, dtype=np.int32) if rows is None else _check_indices("rows", rows, n)
        if not len(training):
            raise ValueError("rows must have at least one row number, got none")
        if others is not None:
            return training, _check_indices("others", others, n)
        if rows is None:
            return training, np.zeros(0, dtype=np.int32)
        is_routed = np.ones(n, dtype=bool)
        is_routed[training] = False
        return training, np.flatnonzero(is_routed).astype(np.int32)

    def _check_features(self, features: ArrayLike | None) -> Int32:
        """Return the indices of the features that a tree may split on, ascending, int32.

        features: their indices, of which repeated ones count once, or None for all. Raise TypeError
        or ValueError if one is not an integer in 0 .. p - 1.
        """
        if features is None:
            return np.arange(self.bins.n_features, dtype=np.int32)
        return np.unique(_check_indices("features", features, self.bins.n_features))


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
    """Grow trees on classes, each on its own sample of rows and independent of all other rows.

    Each tree equals that of a `BinnedGrower` on ``Bins.from_table(X[sample], fine_ends=True)``:
    bins, the order of features and the order of categories are computed from its sample alone. With
    ``fine_ends`` bins hold fewer rows near the smallest and the largest value.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Numeric rows, which are not checked.
    y : ndarray of int32, shape (n,)
        Class of each row.
    n_classes : int
        Number of classes.
    samples : ndarray of int32, shape (T, k)
        Indices of the k rows that grow each of T trees.
    seeds : ndarray of uint64, shape (T,)
        Seed of all other random choices of each tree.
    criterion : {"gini", "entropy", "log_loss"}
        Impurity of a node: the Gini index, or the cross entropy, for which "log_loss" is another
        name.
    sample_weight : ndarray of shape (n,), or None
        Positive weight of each row, None: 1. In each sample weights are rounded to integers; see
        `compute_integer_weights`.
    categorical : array-like of bool, int or str, or None
        Features that hold category codes 0, 1, ..., as a mask or indices.
    **options
        Parameters of `BinnedGrower`, except `bins` and those that draw rows or hold one entry per
        row (`bootstrap`, `n_draws`, `seed`, `keys`, `groups`).

    Returns
    -------
    GrownForest
        The T trees, with the weights of classes in their nodes.
    """
    rows = np.asarray(X, dtype=np.float64, order="C")
    # A grower without rows, as its settings concern features only.
    grower = BinnedGrower(make_empty_bins(rows.shape[1], categorical), **options)
    return grower._call_core(
        grow_sampled_trees,
        rows,
        grower.bins.is_categorical,
        check_row_weights(sample_weight, len(rows)),
        *grower._check_classes(y, len(rows), n_classes, criterion),
        (
            _put_edge_rows_first(rows, y, grower.bins.is_categorical, samples),
            EDGE_ROWS,
            seeds,
            grower._n_tree_features,
            hash_targets(y, len(rows)),
        ),
    )


def _put_edge_rows_first(X: NDArray[Any], y: Int32, category: UInt8, samples: Int32) -> Int32:
    """Reorder each sample so that the rows that determine its bin edges come first.

    These rows are the `EDGE_ROWS` (2^17) rows of the sample with the smallest hashes. The hashes
    depend on the contents of the sample, not on the order of its rows, its features or its category
    codes.

    Parameters
    ----------
    X : ndarray of float64, shape (n, p)
        Rows.
    y : ndarray of int32, shape (n,)
        Class of each row.
    category : ndarray of uint8, shape (p,)
        1 for categorical features, else 0.
    samples : ndarray of int32, shape (T, k)
        Row indices of each sample.

    Returns
    -------
    ndarray of int32, shape (T, k)
        The reordered samples; `samples` itself if k is at most `EDGE_ROWS`.
    """
    if samples.shape[1] <= EDGE_ROWS:
        return samples
    all_rows, ordered = np.arange(samples.shape[1], dtype=np.int32), np.empty_like(samples)
    for target, sample in zip(ordered, samples, strict=True):
        rows = X[sample]
        sums = sum_encoded_table(rows, y[sample], category.astype(np.bool_))
        numbers = {j: sums.number_categories(j) for j in np.flatnonzero(category).tolist()}
        features = renumber_codes(DenseFeatures((rows,)), numbers)
        target[:] = sample[put_edge_rows_first(features, all_rows, sums.order_columns())]
    return ordered


def _resolve_class_criterion(criterion: str) -> str:
    """Return "gini" or "entropy" for a criterion, "entropy" for "log_loss".

    Raise ValueError if the criterion is unknown.
    """
    criterion = translate_value(criterion, ("gini", "entropy"))
    if criterion not in ("gini", "entropy"):
        raise ValueError(f'criterion must be "gini", "entropy" or "log_loss", got {criterion!r}')
    return criterion


def resolve_interaction_groups(
    interaction_cst: Any, p: int, names: ArrayLike | None
) -> list[list[int]]:
    """Return groups of features with feature names replaced by feature numbers.

    interaction_cst: sequence of groups, each a collection of names or numbers; p: number of
    features; names: the names of the features, or None. Raise ValueError if a name is unknown, a
    group is no collection, or a number is not an index in 0 .. p - 1.
    """
    features = [] if names is None else [*np.asarray(names, dtype=object)]

    def number(member: Any) -> Any:
        if not isinstance(member, str):
            return member
        if member not in features:
            raise ValueError(
                f"interaction_cst must hold names of features, {features}, got {member!r}"
            )
        return features.index(member)

    groups = [
        [number(member) for member in group]
        if isinstance(group, Collection) and not isinstance(group, str)
        else group
        for group in interaction_cst
    ]
    _check_interaction_groups(groups, p)
    return groups


def _check_interaction_groups(groups: Sequence[Any], p: int) -> None:
    """Raise ValueError unless each group is a collection of numbers in 0 .. p - 1.

    groups: groups of feature numbers; p: number of features.
    """
    if not all(isinstance(group, Collection) and not isinstance(group, str) for group in groups):
        raise ValueError(
            f"interaction_cst must be None or a sequence of tuples or lists, got: {groups!r}"
        )
    for members in groups:
        # A boolean mask would be read as the features 0 and 1.
        numbers = all(
            isinstance(member, Integral) and not isinstance(member, bool) for member in members
        )
        if not numbers or not all(0 <= member < p for member in members):
            raise ValueError(
                "interaction_cst must consist of integer indices in [0, n_features - 1] = "
                f"[0, {p - 1}], got invalid indices: {members!r}"
            )


def _build_interaction_masks(interaction_cst: Any, p: int) -> UInt8 | None:
    """Return which features each group holds (1, else 0), (k + 1, p) uint8; None without groups.

    interaction_cst: k groups of feature numbers; p: number of features. The last row of the result
    marks the features of no group. Raise ValueError unless each group is a collection of numbers in
    0 .. p - 1.
    """
    if interaction_cst is None:
        return None
    groups = interaction_cst if isinstance(interaction_cst, Sequence) else [interaction_cst]
    _check_interaction_groups(groups, p)
    holds = np.zeros((len(groups) + 1, p), dtype=np.uint8)
    for group, members in zip(holds, groups, strict=False):
        group[list(members)] = 1
    holds[-1] = ~holds[:-1].any(axis=0)
    return holds


def _check_integer(name: str, value: Any, minimum: int) -> int:
    """Return an integer parameter, capped at 2^31 - 1, as the C++ core stores int32.

    name: the parameter, for the message; value: its value; minimum: smallest value. Raise
    ValueError if the value is not an integer, or below the minimum.
    """
    if not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return min(int(value), _LARGEST)


def _check_indices(name: str, values: ArrayLike, n: int) -> Int32:
    """Return indices into n rows or features as an int32 array, (k,).

    name: the parameter, for messages; values: the indices; n: number of rows or features. Raise
    TypeError or ValueError if `values` is not one column of integers in 0 .. n - 1. Indices may
    repeat and need not ascend.
    """
    indices = to_array(name, values)
    if indices.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {indices.shape}")
    if indices.size and indices.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {indices.dtype}")
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        raise ValueError(f"{name} must lie in 0 .. {n - 1}, got {indices.min()} .. {indices.max()}")
    return to_contiguous(indices, np.int32)


def _check_numbers(name: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return one number for each row as float64, (n,).

    name: the parameter, for messages; values: the numbers; n: number of rows. Raise TypeError or
    ValueError if `values` is not numeric or has another shape.
    """
    numbers = to_array(name, values)
    if numbers.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numeric, got dtype {numbers.dtype}")
    if numbers.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {numbers.shape}")
    return to_contiguous(numbers, np.float64)
