"""The grower Cart: greedy growth, each node split where the impurity of the target falls most."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from certree._core import grow_cart as core_grow_cart
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import MISSING, Bins
from certree.grow.threshold_placement import place_thresholds
from certree.grow.training_samples import (
    GrowthSettings,
    MaxDepth,
    TrainingSamples,
    expect_poisson_targets,
    resolve_max_depth,
    resolve_max_features,
    resolve_row_count,
)
from certree.interface.arrays import MAX_SETTING, Float64, Int32, check_nonnegative
from certree.interface.parameter_aliases import translate_value
from certree.interface.signatures import validate_arguments, validate_settings
from certree.interface.threads import get_n_threads
from certree.rows.hashes import order_targets
from certree.rows.monotonic import MonotonicCst, expect_numeric_features
from certree.rows.relative_weights import compute_integer_weights
from certree.tree import Tree

ClassCriterion = Literal["gini", "entropy", "misclassification", "log_loss"]
NumberCriterion = Literal["squared", "squared_error", "absolute_error", "poisson"]
Criterion = ClassCriterion | NumberCriterion
MaxFeatures = int | float | Literal["sqrt", "log2"] | None
Splitter = Literal["best", "random"]

# Criteria of histogram-based growth.
_HISTOGRAM_CRITERIA = ("gini", "entropy", "squared", "poisson")
_CLASS_CRITERIA = ("gini", "entropy", "misclassification")
# Criteria of numeric targets: the C++ core's name, and the power of y's unit that impurities have.
_NUMBER_CRITERIA = {
    "squared": ("squared", 2),
    "absolute_error": ("absolute", 1),
    "poisson": ("poisson", 1),
}


class Cart(BaseEstimator):
    """Greedy grower (CART): each node is split where the impurity of the target falls most.

    All splits between two distinct values of each feature are compared; thresholds are the middles
    of gaps. Ties, which are common in small nodes, go to the feature with the better split of the
    root, then to the first feature in `TrainingSamples.feature_order`, then to the lowest
    threshold. If splits or features are drawn at random, ties go to the first feature. A node is a
    leaf if all its rows have one class, or one value of y.

    Missing values (NaN) go to the child in which they lower the impurity more (right on ties). If
    the node has no missing value, they go to the child with more rows.

    A split on a categorical feature divides its categories into two sets. For numbers and for two
    classes the best division is found. For more classes it is found if the node has at most 12
    groups of categories with distinct class frequencies. Otherwise categories are ordered by the
    first principal component of their class frequencies, only divisions along this order are
    compared, and `optimal_splits` of the tree is False. A missing value is one more category.
    Categories that do not occur in the node go to the child with the greater weight. With
    `min_samples_leaf`, `min_weight_fraction_leaf`, monotonic constraints or absolute errors,
    divisions along the order of means are compared, and the best of them need not be the best of
    all.

    With several targets a split lowers the mean of their impurities: of classes, or of numbers
    divided by their variance. Only "gini", "entropy" and "squared" support them. A node is a leaf
    if no target varies in it. Categories are divided as for more than two classes.

    A category order that was computed from the target finds structure in noise. So a feature with
    more than six categories in a node is skipped there unless they differ by three standard
    deviations more than if the targets were permuted at random.

    Single trees and forests do not order more than 30 categories of a feature in each node. If
    their mean targets differ by more than chance, the categories are ranked once by these means,
    and trees split the ranks. A training row has the rank by the rows of four fifths of the
    training set that do not include it, so that counts in leaves are not too confident. A new
    category has the rank of the mean of all rows. This holds for one target of numbers or of two to
    five classes (`grow_cart` ranks nothing).

    Parameters
    ----------
    criterion : str or None, default=None
        Impurity of a node. For classes "entropy" or its synonym "log_loss", the cross entropy
        (nats); "gini", the Gini index; "misclassification", the fraction of rows outside the
        largest class. For numbers "squared" or "squared_error", the squared distance from the mean;
        "absolute_error", the distance from the median; "poisson", half the Poisson deviance from
        the mean, for targets >= 0: each child needs a positive one. None: "entropy" for classes,
        "squared" for numbers. The criterion only determines splits; the estimator computes the leaf
        values.
    splitter : {"best", "random"}, default="best"
        "random" draws one split of each feature and uses the best of these: a threshold that is
        uniform between the node's smallest and largest value, or a random child for each category.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves. The leaf whose split lowers the impurity most is split first, of
        equal ones the oldest. None: no limit.
    min_impurity_decrease : float, default=0
        Least decrease in impurity, as in scikit-learn: rows of the node / n, times the node's
        impurity minus the weighted mean impurity of its children. At 0 splits that lower nothing
        are made too, as a later split may.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Number of features, not constant in the node, that are drawn in each node and compared; a
        float is a fraction of all features. None: all features are compared.
    min_samples_split : int or float, default=2
        A node of fewer rows is a leaf. A float up to 1 is a fraction of the rows, rounded up. Each
        row counts once, whatever its weight.
    min_samples_leaf : int or float, default=1
        Least number of rows in each child, where each row counts once; a float below 1 is a
        fraction of the rows, rounded up.
    min_weight_fraction_leaf : float, default=0
        Least weight of each child as a fraction of the weight of all rows, at most one half.
    max_bins : int or None, default=None
        Histogram-based growth: largest number of bins of a numeric feature, 2 .. 255, with about
        equally many rows in each; features with no more values are split between any two of them.
        None: all splits are compared. Bins take less time and memory for many rows. They do not
        support absolute errors, misclassification, `min_weight_fraction_leaf`, or several targets.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Chapters 2, 4
    and 8. Fisher, "On grouping for maximum homogeneity", 1958. Coppersmith, Hong and Hosking,
    "Partitioning nominal attributes in decision trees", 1999. Geurts, Ernst and Wehenkel,
    "Extremely randomized trees", 2006. Chou, "Optimal partitioning for classification and
    regression trees", 1991, for the order of categories by means.

    Examples
    --------
    >>> from certree import Cart, PACBayesTreeClassifier
    >>> PACBayesTreeClassifier(Cart(criterion="gini", max_leaf_nodes=64))
    PACBayesTreeClassifier(grower=Cart(criterion='gini', max_leaf_nodes=64))
    """

    depends_on_rows = True
    splits_categories = True
    supports_monotonic_cst = True

    def __init__(
        self,
        criterion: Criterion | None = None,
        *,
        splitter: Splitter = "best",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        max_features: MaxFeatures = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_bins: int | None = None,
    ) -> None:
        self.criterion: Criterion | None = criterion
        self.splitter: Splitter = splitter
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.max_features = max_features
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_bins = max_bins

    def grow(self, rows: TrainingSamples) -> Tree:
        """Grow a tree greedily and return it.

        With `max_bins` splits between bins are compared, otherwise all. The tree has no leaf
        values. rows: the training samples, with a target. Raise TypeError or ValueError if there is
        none, or a parameter of the grower is out of range or does not apply to the target.
        """
        self._expect_settings()
        if rows.y is None:
            raise ValueError("y must be classes or numbers, as Cart needs a target, got None")
        y = rows.y
        if y.dtype != np.float64 and self._resolve_criterion(y) in _NUMBER_CRITERIA:
            # Integers and equal floats have the same order of features.
            y = y.astype(np.float64)
            rows = replace(rows, y=y)
        if self.criterion == "poisson" and rows.n_targets == 1:
            expect_poisson_targets(y, are_all=rows.indices is None)
        if self.max_bins is not None:
            return self._grow_histogram(rows)
        tree = self._grow_exact(rows)
        return place_thresholds(
            tree,
            rows.X,
            at_middle=self.splitter == "best",
            dates=rows.dates,
            n_threads=get_n_threads(rows.n_jobs),
        )

    def _grow_exact(self, rows: TrainingSamples) -> Tree:
        """Return the tree that compares splits between any two values of a feature.

        rows: the training samples, with a target. Equal splits go to the feature with the better
        split of the root; NaN goes to the child in which it lowers the impurity more. The result
        does not depend on the number of threads.
        """
        p, y = rows.X.shape[1], np.asarray(rows.y)
        response = self._prepare_response(rows)
        if rows.monotonic_signs is not None:
            expect_monotonic_support(rows, 0 if response["y"] is None else int(y.max()) + 1)
            if response["y"] is not None:
                response["n_classes"] = 2  # the C++ core needs two classes, also if one is empty
        summed = rows.total_weight * rows.n_targets
        min_gain = _scale_min_gain(self.min_impurity_decrease, summed, response.pop("unit"))
        leaf = resolve_row_count("min_samples_leaf", self.min_samples_leaf, 1, len(rows))
        split = resolve_row_count("min_samples_split", self.min_samples_split, 2, len(rows))
        n_drawn_features = _resolve_max_features(self.max_features, p)
        draws = self.splitter == "random" or n_drawn_features < p
        order, place = rows.parent_ranks or (None, None)
        columns = core_grow_cart(
            rows.X,
            **response,
            weight=rows.relative_weight,
            **rows.stopping_options(min(max(split, 2 * leaf), MAX_SETTING)),
            min_gain=min_gain,
            min_leaf_rows=leaf if leaf > 1 else 0.0,
            min_leaf_weight=_check_weight_fraction(self.min_weight_fraction_leaf)
            * rows.total_weight
            / _ROUNDING,
            max_leaves=_resolve_max_leaves(self.max_leaf_nodes),
            max_features=n_drawn_features,
            random_splits=self.splitter == "random",
            key=_draw_key(rows.random_state) if draws else 0,
            category=rows.is_categorical,
            monotonic=rows.monotonic_signs,
            feature_order=rows.feature_order,
            order=order,
            place=place,
            n_threads=get_n_threads(rows.n_jobs),
        )
        return Tree.from_grower_columns(columns, p)

    def _expect_settings(self) -> None:
        """Raise TypeError or ValueError if a parameter has a wrong type or an unknown value.

        The method checks the types of all constructor parameters, and that `splitter` is "best" or
        "random".
        """
        validate_settings(self)
        if self.splitter not in ("best", "random"):
            raise ValueError(f'splitter must be "best" or "random", got {self.splitter!r}')

    def _grow_histogram(self, rows: TrainingSamples) -> Tree:
        """Return the tree that compares splits between bins only.

        rows: the training samples, with one target. Raise TypeError or ValueError if a parameter
        does not allow histogram-based growth. The bins are those of ``rows.get_bins(max_bins)``.
        """
        y: Any = rows.y
        if rows.n_targets > 1:
            raise ValueError(
                f"max_bins must be None for several targets, got {self.max_bins!r} and y with "
                f"{rows.n_targets} columns: set max_bins=None, or fit one model for each column"
            )
        self.expect_histogram_settings()
        criterion = self.resolve_histogram_criterion(y)
        numeric = criterion in _NUMBER_CRITERIA
        if not numeric:
            y, n_classes = _prepare_classes(y)
        if rows.monotonic_signs is not None:
            expect_monotonic_support(rows, 0 if numeric else n_classes)
        bins = rows.get_bins(self.checked_max_bins)
        weight = None if rows.weight is None else compute_integer_weights(rows.weight)
        if weight is not None and (weight == 1).all():
            weight = None
        grower = self.make_binned_grower(bins, bins.n_rows, rows)
        if not numeric:
            forest = grower.grow_classes(y, n_classes, 1, criterion=criterion, sample_weight=weight)
        else:
            # Sums of values far from 0 lose digits. Distances from a value of y keep integers integers.
            numbers = y.astype(np.float64)
            numbers = numbers if criterion == "poisson" else numbers - numbers.min()
            forest = grower.grow_numbers(numbers, 1, criterion=criterion, sample_weight=weight)
        return forest.trees.tree(0)

    @property
    def has_exact_sums(self) -> bool:
        """Whether the tree is equal bit for bit whatever the order of the rows.

        True if `max_bins` is set, as histogram sums are exact.
        """
        return self.max_bins is not None

    def expect_histogram_settings(self) -> None:
        """Raise TypeError or ValueError if a parameter does not allow histogram-based growth.

        `max_bins` must be an integer in 2 .. 255, and `min_weight_fraction_leaf` 0.
        """
        self._expect_settings()
        max_bins = self.checked_max_bins
        if self.min_weight_fraction_leaf != 0:
            raise ValueError(
                "min_weight_fraction_leaf must be 0 with max_bins, got "
                f"{self.min_weight_fraction_leaf!r} and max_bins={max_bins!r}: use min_samples_leaf, "
                "or set max_bins=None"
            )

    def resolve_histogram_criterion(self, y: NDArray[Any]) -> Any:
        """Return the impurity for histogram-based growth: "gini", "entropy", "squared" or "poisson".

        y: the targets, classes (int32) or numbers (float64), of which only the dtype is read. Raise
        ValueError or TypeError if the parameter `criterion` is another impurity, or does not apply
        to the dtype. None stands for "squared" if y is float64, else for "entropy".
        """
        criterion = self._resolve_criterion(y)
        if criterion not in _HISTOGRAM_CRITERIA:
            raise ValueError(
                f"criterion must be one of {', '.join(map(repr, _HISTOGRAM_CRITERIA))}, or a synonym "
                f"of these, with max_bins, got {self.criterion!r}: or set max_bins=None"
            )
        return criterion

    @property
    def n_ranks(self) -> int:
        """Largest number of ranks that replace the categories of a feature with very many categories.

        Such categories are sorted by their mean target, and trees split on the place (rank) in this
        order. If there are more categories than ranks, those with similar means share a rank. It is
        `max_bins`, or 255 if that is None.
        """
        return MISSING if self.max_bins is None else self.checked_max_bins

    @property
    def checked_max_bins(self) -> int:
        """`max_bins` as an int.

        Raise ValueError if it is None, or not an integer in 2 .. 255. `max_bins` is the largest
        number of bins of a numeric feature.
        """
        max_bins: Any = self.max_bins
        if not isinstance(max_bins, int | np.integer) or not 2 <= max_bins <= MISSING:
            raise ValueError(
                f"max_bins must be None or an integer in 2 .. {MISSING}, got {max_bins!r}"
            )
        return int(max_bins)

    def make_binned_grower(self, bins: Bins, n: int, settings: GrowthSettings) -> BinnedGrower:
        """Return the histogram-based grower with the settings of this object.

        Parameters
        ----------
        bins : Bins
            Binned rows of the training samples.
        n : int
            Number of training samples. `min_samples_split` and `min_samples_leaf` may be fractions
            of it.
        settings : GrowthSettings
            Largest depth, monotonic constraints, seed, threads and order of features.

        Returns
        -------
        BinnedGrower
            A grower on `bins` that draws no rows.
        """
        p = bins.n_features
        n_drawn_features, max_leaves = (
            _resolve_max_features(self.max_features, p),
            _resolve_max_leaves(self.max_leaf_nodes),
        )
        draws = self.splitter == "random" or n_drawn_features < p
        return BinnedGrower(
            bins,
            max_leaves=max_leaves or None,
            max_depth=resolve_max_depth(settings.max_depth, p, n),
            min_samples_split=ceil(
                resolve_row_count("min_samples_split", self.min_samples_split, 2, n)
            ),
            min_samples_leaf=ceil(
                resolve_row_count("min_samples_leaf", self.min_samples_leaf, 1, n)
            ),
            min_gain=self.min_impurity_decrease,
            order="best" if max_leaves else "depth",
            monotonic_cst=settings.monotonic_signs,
            max_features=n_drawn_features if n_drawn_features < p else None,
            random_cuts=self.splitter == "random",
            ties_by_root=not draws,
            seed=_draw_key(settings.random_state) if draws else 0,
            feature_order=settings.feature_order,
            n_jobs=settings.n_jobs,
        )

    def _resolve_criterion(self, y: NDArray[Any]) -> Any:
        """Return the main name of the impurity that the parameter `criterion` stands for.

        The name is "gini", "entropy", "misclassification", "squared", "absolute_error" or
        "poisson". None stands for "squared" if the dtype of the targets y is float64, else for
        "entropy". Raise ValueError if the criterion is unknown, and TypeError if it needs classes
        and y is float64.
        """
        numeric = y.dtype == np.float64
        names = (*_CLASS_CRITERIA, *_NUMBER_CRITERIA)
        criterion = translate_value(self.criterion or ("squared" if numeric else "entropy"), names)
        if criterion not in names:
            raise ValueError(
                'criterion must be None, "gini", "entropy", "log_loss", "misclassification", '
                f'"squared", "squared_error", "absolute_error" or "poisson", got {criterion!r}'
            )
        if numeric and criterion not in _NUMBER_CRITERIA:
            raise TypeError(
                f"y must convert to int32 without loss, as criterion={criterion!r} needs classes, "
                f'got dtype {y.dtype}: convert y to integers, or use criterion="squared" for numbers'
            )
        return criterion

    def _prepare_response(self, rows: TrainingSamples) -> dict[str, Any]:
        """Return the targets of training samples as arguments of the C++ core's CART grower.

        rows: n training samples with q targets. The result is a dict of keyword arguments. For
        classes it has "y", (q, n), and "n_classes", and "target" is None. For numbers it has
        "target", (q, n), scaled by `_prepare_numbers`, "y" is None and "n_classes" 0; several
        numeric targets are standardised before. "criterion" is the name of the impurity in the C++
        core. "unit" is an integer u: the impurity of the original targets is 2**u times the
        impurity that the C++ core computes for the scaled ones.
        """
        y: Any = rows.y
        criterion = self._resolve_criterion(y)
        if rows.n_targets > 1:
            y = _standardise_targets(rows, criterion)
        if criterion in _NUMBER_CRITERIA:
            return _prepare_numbers(y, rows.relative_weight, criterion)
        classes, n_classes = _prepare_classes(y)
        return {
            "y": np.ascontiguousarray(np.atleast_2d(classes.T)),
            "target": None,
            "n_classes": n_classes,
            "criterion": criterion,
            "unit": 0,
        }


@validate_arguments
def grow_cart(
    X: ArrayLike,
    y: ArrayLike,
    *,
    max_depth: MaxDepth = None,
    categorical_features: ArrayLike | None = None,
    monotonic_cst: MonotonicCst = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | RandomState | None = None,
    n_jobs: int | None = None,
    **parameters: Any,
) -> Tree:
    """Grow a tree greedily; see `Cart`.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32; NaN where a value is missing.
    y : array-like of shape (n,), or (n, q)
        Class of each row, 0, 1, ..., or a number; several targets have one column each.
    max_depth : int, "log" or None
        Nodes at this depth are leaves; "log" is p times the integer part of ln n, None no limit.
    categorical_features : array-like of bool, int or str, or None
        Features that hold category codes 0, 1, ..., as a mask, indices, or column names of X.
    monotonic_cst : array-like of int, shape (p,), dict from column names to int, or None
        1 if the mean of y (for two classes, the frequency of class 1) must not fall as the feature
        rises, -1 if it must not rise, 0 for no constraint. No split violates a constraint, nor
        crosses the means that the constraints of the splits above it allow. So the leaf means of
        each pruning are monotone.
    sample_weight : array-like of shape (n,), or None
        Weight of each row in impurities; None: 1. Rows of weight 0 are left out.
        `min_samples_split` and `min_samples_leaf` count all other rows once.
    random_state : int, RandomState or None
        Seed of `max_features` and ``splitter="random"``.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The tree does not depend on it.
    **parameters
        Constructor parameters of `Cart`.

    Returns
    -------
    Tree
        The tree, without leaf values: `count` or `measure` computes statistics of its nodes.

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range, or a parameter is unknown or out of range.

    Examples
    --------
    >>> from certree import grow_cart
    >>> float(grow_cart([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]).threshold[0])
    3.0
    """
    rows = TrainingSamples.from_arrays(
        X,
        y,
        sample_weight,
        max_depth=max_depth,
        categorical_features=categorical_features,
        monotonic_cst=monotonic_cst,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return Cart(**parameters).grow(rows)


def _prepare_classes(y: Int32) -> tuple[Int32, int]:
    """Return class codes that are not much larger than the number of rows, and the number of classes.

    y: int32 classes, (n,) or (n, q); the number is the largest code plus 1, for all columns
    together. If the largest class is n q or more, classes are renumbered 0, 1, ... without gaps, as
    counting empty ones could fill the memory. Raise ValueError if a class is negative.
    """
    if y.min() < 0:
        raise ValueError(f"y must hold classes 0, 1, ..., got {y.min()}")
    if y.max() >= y.size:  # counting so many empty classes could fill the memory
        codes = np.unique(y, return_inverse=True)[1]
        y = codes.reshape(y.shape).astype(np.int32)
    return y, int(y.max()) + 1


# Criteria that support several targets.
_ADDITIVE_CRITERIA = ("gini", "entropy", "squared")


def _standardise_targets(rows: TrainingSamples, criterion: str) -> NDArray[Any]:
    """Return several targets, (n, q), ready for growth: columns reordered, numbers standardised.

    Columns are put in an order that depends on their contents only, so that the tree does not
    depend on their order in y. Numeric targets become distances from their value nearest to the
    mean, in standard deviations, so that each has the same influence. rows: samples with q > 1
    targets; criterion: the impurity, such as "squared" (no synonym). Raise ValueError if it does
    not support several targets.
    """
    if criterion not in _ADDITIVE_CRITERIA:
        raise ValueError(
            f"criterion must be None or one of {', '.join(_ADDITIVE_CRITERIA)} for several "
            "targets, got "
            f"{criterion!r} and y with {rows.n_targets} columns"
        )
    y = np.asarray(rows.y)
    y = y[:, order_targets(y, rows.X, order=rows.feature_order)]
    if criterion != "squared":
        return y
    distances = [_standardise(column.astype(np.float64), rows.relative_weight) for column in y.T]
    return np.column_stack(distances)


def _standardise(target: Float64, weight: Float64 | None) -> Float64:
    """Return distances of a target from a value near its mean, in standard deviations, (n,).

    target: (n,); weight: row weights (n,), or None. The centre is the value of the target nearest
    to its mean. The standard deviation is rounded to float32, so that it does not depend on the
    order of rows. The result is 0 if the target is constant, and unscaled if it varies only in rows
    whose weight is negligible.
    """
    target = _centre(np.ldexp(target, -_find_exponent(target)), weight)
    if not target.any():
        return target
    target = np.ldexp(target, -_find_exponent(target))
    mean = np.average(target, weights=weight)
    variance = np.average((target - mean) ** 2, weights=weight)
    deviation = float(np.float32(np.sqrt(variance)))
    return target / deviation if deviation > 0 else target


def _find_exponent(target: Float64) -> int:
    """Return the smallest integer e such that all numbers in `target` are below 2^e in magnitude.

    target: an array of any shape with at least one number.
    """
    return int(np.frexp(np.abs(target).max())[1])


def _prepare_numbers(y: NDArray[Any], weight: Float64 | None, criterion: str) -> dict[str, Any]:
    """Return a numeric target as keyword arguments of the C++ core's CART grower.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, q)
        The targets.
    weight : ndarray of float64, shape (n,), or None
        Row weights; None: 1.
    criterion : {"squared", "absolute_error", "poisson"}
        Impurity.

    Returns
    -------
    dict
        "target": the targets, (q, n), divided by a power of two so that squares neither overflow
        nor vanish. A single target is then centred, except for "poisson"; all but a single target
        for "squared" are rounded, by less than 2^-32. "criterion": the name of the impurity in the
        C++ core; "unit": an integer e; the impurity of `y` is that of "target" times 2^e; "y":
        None; "n_classes": 0.
    """
    name, power = _NUMBER_CRITERIA[criterion]
    # Scaling by a power of two is exact; squares of tiny or huge numbers would vanish or overflow.
    target = y.astype(np.float64)
    scale = _find_exponent(target)
    target = np.ldexp(target, -scale)
    if criterion != "poisson" and target.ndim == 1:
        target = _centre(target, weight)
    if criterion != "squared" or target.ndim > 1:
        target = _round_for_exact_sums(target, weight)
    return {
        "y": None,
        "target": np.ascontiguousarray(np.atleast_2d(target.T)),
        "n_classes": 0,
        "criterion": name,
        "unit": power * scale,
    }


# Tolerance for sums of weights, which depend on the order of rows by less if weights are not integers.
_ROUNDING = 1 + 1e-9


def _check_weight_fraction(fraction: Any) -> float:
    """Return the parameter `min_weight_fraction_leaf` as a float.

    fraction: its value. Raise ValueError unless it lies in 0 .. 0.5. It is the least weight of a
    child as a fraction of the weight of all rows.
    """
    if not 0 <= fraction <= 0.5:
        raise ValueError(
            f"min_weight_fraction_leaf must be a number in the range [0.0, 0.5], got {fraction!r}"
        )
    return float(fraction)


def _scale_min_gain(min_decrease: Any, n: float, unit: int) -> float:
    """Return the least decrease of weight times impurity of a split, on the scale of the C++ core.

    min_decrease: `Cart.min_impurity_decrease`, a decrease in mean impurity per unit of weight; n:
    total weight, by which it is multiplied; unit: an integer; the C++ core computes impurities
    divided by 2^unit. Raise ValueError if `min_decrease` is negative or not finite. The result is
    ``min_decrease * n / 2^unit``.
    """
    min_decrease = check_nonnegative("min_impurity_decrease", min_decrease)
    if min_decrease == 0:
        return 0.0
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(min_decrease * n, -unit))


def expect_histogram_cart(grower: Any) -> Cart:
    """Return `grower`; raise ValueError unless it is a `Cart` with `max_bins`.

    Out-of-core and distributed data need such a grower. Raise TypeError or ValueError also if a
    parameter does not allow histogram-based growth, such as `min_weight_fraction_leaf` above 0.
    grower: value of an estimator's parameter `grower`, of any type.
    """
    if not isinstance(grower, Cart) or grower.max_bins is None:
        raise ValueError(
            "grower must be Cart(max_bins=255), or fewer bins, for out-of-core or distributed "
            "data, got "
            f"{grower!r}"
        )
    grower.expect_histogram_settings()
    return grower


def expect_monotonic_support(settings: GrowthSettings, n_classes: int) -> None:
    """Raise ValueError if the target or the features do not support the monotonic constraints.

    There must be one target, numeric or of two classes, and no constraint on a categorical feature.

    Parameters
    ----------
    settings : GrowthSettings
        Settings of a fit with constraints: `monotonic_signs` must not be None.
    n_classes : int
        Number of classes; 0 for a numeric target.
    """
    if settings.n_targets > 1:
        raise ValueError(
            f"monotonic_cst must be None for several targets, got y with {settings.n_targets} "
            "columns: leave out the constraints, or fit one model for each column"
        )
    if n_classes > 2:
        raise ValueError(
            f"monotonic_cst must be None for more than two classes, got {n_classes} classes: leave "
            "out the constraints"
        )
    expect_numeric_features(np.asarray(settings.monotonic_signs), settings.categorical, None)


# Nodes are numbered in int32.
_MAX_LEAVES = 2**31 - 1


def _resolve_max_leaves(max_leaf_nodes: Any) -> int:
    """Return the largest number of leaves, 0 for no limit.

    max_leaf_nodes: an integer >= 1, or None for no limit. Raise ValueError for any other value.
    """
    if max_leaf_nodes is None:
        return 0
    if not isinstance(max_leaf_nodes, Integral) or max_leaf_nodes < 1:
        raise ValueError(f"max_leaf_nodes must be None or an integer >= 1, got {max_leaf_nodes!r}")
    return min(int(max_leaf_nodes), _MAX_LEAVES)


def _resolve_max_features(max_features: Any, p: int) -> int:
    """Return how many of p features are compared in a node.

    max_features: the parameter of `Cart`. "sqrt" and "log2" stand for the integer part of sqrt(p)
    and log2(p), a float for that of its product with p, at least 1; None for p. Raise ValueError if
    it is not None, "sqrt", "log2", an integer in 1 .. p or a float in (0, 1].
    """
    is_share = isinstance(max_features, float | np.floating) and 0 < max_features <= 1
    is_number = isinstance(max_features, int | np.integer) and 1 <= max_features <= p
    if not (max_features is None or max_features in ("sqrt", "log2") or is_share or is_number):
        raise ValueError(
            f'max_features must be None, "sqrt", "log2", an integer in 1 .. {p} or a fraction in '
            f"(0, 1], got {max_features!r}"
        )
    return resolve_max_features(max_features, p) or p


def _draw_key(random_state: int | RandomState | None) -> int:
    """Draw a seed, 0 .. 2^64 - 1, for the random choices of the C++ core.

    random_state: a seed; a generator, whose state advances; or None for NumPy's global generator.
    """
    generator = check_random_state(random_state)
    return int(generator.randint(0, 2**32, dtype=np.uint64)) << 32 | int(
        generator.randint(0, 2**32, dtype=np.uint64)
    )


# Least number of binary digits after the point. Many distances from medians, and deviances, are equal
# by construction, and coarser rounding would make others equal.
_MIN_DIGITS = 32


def _round_for_exact_sums(target: Float64, weight: Float64 | None) -> Float64:
    """Return numbers rounded to multiples of a power of two, so that their weighted sums are exact.

    Exact sums do not depend on the order of rows. At least 32 binary digits after the point are
    kept; if weights are not small integer multiples of the smallest one, sums need not be exact.

    Parameters
    ----------
    target : ndarray of float64, shape (n,) or (n, q)
        Numbers below 2 in magnitude.
    weight : ndarray of float64, shape (n,), or None
        Positive row weights; None: 1.

    Returns
    -------
    ndarray of float64, shape of `target`
    """
    # The quotient of two weights may overflow float64.
    smallest, total = (1, len(target)) if weight is None else (weight.min(), weight.sum())
    # By fractions and exponents, so that doubling all weights changes no rounding.
    fractions, exponents = np.frexp([total, smallest])
    bits = exponents[0] - exponents[1] + (np.log2(fractions[0]) - np.log2(fractions[1]))
    digits = max(51 - int(np.ceil(bits)), _MIN_DIGITS)
    return np.ldexp(np.rint(np.ldexp(target, digits)), -digits)


def _centre(target: Float64, weight: Float64 | None) -> Float64:
    """Return distances from the value of `target` nearest to its mean, (n,).

    target: numbers, (n,); weight: row weights (n,), or None for equal weights. Squares of sums
    would lose the digits of a mean far from 0. The centre is a value of the target, not the mean,
    so that distances of integers are integers.
    """
    mean = np.average(target, weights=weight)
    middle = target[np.lexsort((target, np.abs(target - mean)))[0]]
    return target - middle
