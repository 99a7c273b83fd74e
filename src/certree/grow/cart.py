"""Greedy cells (CART): a cell is cut where the response becomes purest."""

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
    MonotonicCst,
    TrainingSamples,
    expect_poisson_targets,
    resolve_max_features,
    resolve_row_count,
)
from certree.interface.arrays import MAX_SETTING, Float64, Int32, check_nonnegative
from certree.interface.parameter_aliases import translate_value
from certree.interface.signatures import validate_arguments, validate_settings
from certree.interface.threads import get_n_threads
from certree.rows.hashes import order_targets
from certree.rows.relative_weights import compute_integer_weights
from certree.tree import Tree

ClassCriterion = Literal["gini", "entropy", "misclassification", "log_loss"]
NumberCriterion = Literal["squared", "squared_error", "absolute_error", "poisson"]
Criterion = ClassCriterion | NumberCriterion
MaxFeatures = int | float | Literal["sqrt", "log2"] | None
Splitter = Literal["best", "random"]

# Those that sums over bins tell.
_OF_BINS = ("gini", "entropy", "squared", "poisson")
_OF_CLASSES = ("gini", "entropy", "misclassification")
# Those of numbers: as the core calls them, and the power of the unit of y that impurities have.
_OF_NUMBERS = {
    "squared": ("squared", 2),
    "absolute_error": ("absolute", 1),
    "poisson": ("poisson", 1),
}


class Cart(BaseEstimator):
    """Greedy cells: every cell is cut where the target becomes purest.

    Every cut between two distinct values of every feature is looked at, in the middle of its gap, and
    the one that lowers the impurity most is made. Of equal ones it is that of the feature whose best
    cut of the root is better, then that of the first feature in the order that the rows tell, then the
    lowest: small cells have many equal cuts, and a feature that says something of all rows is likelier
    to mean something there. (Where cuts or features are drawn, it is that of the first feature.) A
    cell of one class, or with one value of y, is a leaf.

    A missing value (NaN) goes to the side where it lowers the impurity more (to the right on ties),
    or to the side with more rows if none is missing.

    The categories of a feature are divided in two sets. For numbers and for two classes the best of
    all divisions is found; so it is for more classes where a cell holds at most 12 groups of
    categories that differ in their shares of the classes. Of more groups only the prefixes of their
    order along the first principal component of these shares are looked at, and `optimal_splits` of
    the tree is False. A missing value is one more category. Categories that a cut has not seen go
    where it sends missing values.

    Where sides must hold enough rows or keep to slopes, and by absolute errors, prefixes of their order
    by means are looked at, too, and need not hold the best division.

    Rows may have several targets, which one tree serves. A cut then lowers the mean of their
    impurities, those of numbers in units of their variance, of classes or by squared distances; the
    targets may stand in any order. A cell where no target varies is a leaf, and categories are divided
    like those of more classes.

    An order that is told from the response finds something in any noise. So a feature that has more
    than six categories in a cell is passed over there unless they differ by more than chance explains:
    by three standard deviations more than if the responses were dealt to the rows at random.

    Parameters
    ----------
    criterion : str or None, default=None
        Impurity of a cell, times its rows. Of classes "entropy" or "log_loss", cross entropy (nats);
        "gini", the Gini index; "misclassification", rows outside the largest class. Of numbers
        "squared" or "squared_error", squared distances from the mean; "absolute_error", distances from
        the median; "poisson", half of the Poisson deviance from the mean, of numbers that are not
        negative: no side of a cut has zeros alone. None: "entropy" for classes, "squared" for numbers.
        It decides about cuts: what leaves say is up to the estimator.
    splitter : {"best", "random"}, default="best"
        "random" draws one cut of each feature, a threshold uniformly between the smallest and the
        largest value of the cell or a side for each category, and makes the best of these.
    max_leaf_nodes : int or None, default=None
        The leaf whose cut lowers the impurity most is divided first (of equal ones the first that
        was made), until there are so many leaves; None: no limit.
    min_impurity_decrease : float, default=0
        A cut that lowers the impurity by less is not made, counted as in scikit-learn: over all
        rows, ``rows of the cell / n`` times what the cut lowers in it. At 0 cuts that lower nothing
        are made too: later ones may.
    max_features : int, float, "sqrt", "log2" or None, default=None
        In each cell features are drawn until so many, or such a share of all, that are not constant
        there have been looked at; None: all.
    min_samples_split : int or float, default=2
        A cell of fewer rows is a leaf; a number up to 1 is a share of the rows, rounded up. Each row
        counts once, whatever it weighs.
    min_samples_leaf : int or float, default=1
        Rows on either side of a cut, counted likewise; a number below 1 is a share of the rows, rounded
        up.
    min_weight_fraction_leaf : float, default=0
        Share of the weight of all rows on either side of a cut, at most one half.
    max_bins : int or None, default=None
        A feature of numbers is cut between so many bins at most, 2 .. 255, which hold about as many
        rows each; features with no more values are cut between any two of them. None: every cut is
        looked at. Growth from bins takes less time and memory where rows are many. It takes no
        absolute errors, no misclassification, no `min_weight_fraction_leaf` and one target.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Chapters 2, 4
    and 8. Fisher, "On grouping for maximum homogeneity", 1958. Coppersmith, Hong and Hosking,
    "Partitioning nominal attributes in decision trees", 1999. Geurts, Ernst and Wehenkel, "Extremely
    randomized trees", 2006. Chou, "Optimal partitioning for classification and regression trees", 1991,
    for the order of categories by means.

    Examples
    --------
    >>> from certree import Cart, PACBayesTreeClassifier
    >>> PACBayesTreeClassifier(Cart(criterion="gini", max_leaf_nodes=64))
    PACBayesTreeClassifier(grower=Cart(criterion='gini', max_leaf_nodes=64))
    """

    depends_on_rows = True
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
        """Grow the tree of these rows."""
        self._expect_settings()
        if rows.y is None:
            raise ValueError("y must hold classes or numbers, got None")
        y = rows.y
        if y.dtype != np.float64 and self._known_criterion(y) in _OF_NUMBERS:
            # Integers and equal floats have the same order of features.
            y = y.astype(np.float64)
            rows = replace(rows, y=y)
        if self.criterion == "poisson" and rows.n_targets == 1:
            expect_poisson_targets(y, are_all=rows.indices is None)
        if self.max_bins is not None:
            return self._grow_on_bins(rows)
        tree = self._grow_on_values(rows)
        return place_thresholds(tree, rows.X, at_middle=self.splitter == "best")

    def _grow_on_values(self, rows: TrainingSamples) -> Tree:
        """Grow the tree by splits between any two values."""
        p, y = rows.X.shape[1], np.asarray(rows.y)
        response = self._response(rows)
        if rows.slopes is not None:
            expect_monotonic_support(rows, 0 if response["y"] is None else int(y.max()) + 1)
            if response["y"] is not None:
                response["n_classes"] = 2  # one class is counted beside an empty one
        summed = rows.total_weight * rows.n_targets
        least = _least_gain(self.min_impurity_decrease, summed, response.pop("unit"))
        leaf = resolve_row_count("min_samples_leaf", self.min_samples_leaf, 1, len(rows))
        split = resolve_row_count("min_samples_split", self.min_samples_split, 2, len(rows))
        n_looked_at = _n_features(self.max_features, p)
        draws = self.splitter == "random" or n_looked_at < p
        order, place = rows.ranked or (None, None)
        columns = core_grow_cart(
            rows.X,
            **response,
            weight=rows.relative_weight,
            **rows.stopping(min(max(split, 2 * leaf), MAX_SETTING)),
            min_gain=least,
            min_leaf_rows=leaf if leaf > 1 else 0.0,
            min_leaf_weight=_least_share(self.min_weight_fraction_leaf)
            * rows.total_weight
            / _ROUNDING,
            max_leaves=_leaf_limit(self.max_leaf_nodes),
            max_features=n_looked_at,
            random_cuts=self.splitter == "random",
            key=_key(rows.random_state) if draws else 0,
            category=rows.category_codes,
            monotonic=rows.slopes,
            look=rows.feature_order,
            order=order,
            place=place,
            n_threads=get_n_threads(rows.n_jobs),
        )
        return Tree.from_grower_columns(columns, p)

    def _expect_settings(self) -> None:
        validate_settings(self)
        if self.splitter not in ("best", "random"):
            raise ValueError(f'splitter must be "best" or "random", got {self.splitter!r}')

    def _grow_on_bins(self, rows: TrainingSamples) -> Tree:
        """The same by cuts between bins alone."""
        y: Any = rows.y
        if rows.n_targets > 1:
            raise ValueError(
                f"max_bins={self.max_bins!r} takes one target, got y of {rows.n_targets} columns"
            )
        self.expect_histogram_settings()
        criterion = self.resolve_histogram_criterion(y)
        numeric = criterion in _OF_NUMBERS
        if not numeric:
            y, n_classes = _classes(y)
        if rows.slopes is not None:
            expect_monotonic_support(rows, 0 if numeric else n_classes)
        bins = rows.on_bins(self.checked_max_bins)
        weight = None if rows.weight is None else compute_integer_weights(rows.weight)
        if weight is not None and (weight == 1).all():
            weight = None
        grower = self.make_binned_grower(bins, bins.n_rows, rows)
        if not numeric:
            grown = grower.grow_classes(y, n_classes, 1, criterion=criterion, sample_weight=weight)
        else:
            # Far from 0 digits of sums get lost; a distance from a value leaves whole numbers whole.
            numbers = y.astype(np.float64)
            numbers = numbers if criterion == "poisson" else numbers - numbers.min()
            grown = grower.grow_numbers(numbers, 1, criterion=criterion, sample_weight=weight)
        return grown.trees.tree(0)

    @property
    def has_exact_sums(self) -> bool:
        """Whether no order of the rows changes a bit of a tree."""
        return self.max_bins is not None

    def expect_histogram_settings(self) -> None:
        """Refuse what cuts between bins do not take."""
        self._expect_settings()
        max_bins = self.checked_max_bins
        if self.min_weight_fraction_leaf != 0:
            raise ValueError(
                "min_weight_fraction_leaf takes max_bins=None, which looks at every cut, got "
                f"max_bins={max_bins!r}"
            )

    def resolve_histogram_criterion(self, y: NDArray[Any]) -> Any:
        """What impurity is called that cuts between bins lower, for targets like these."""
        criterion = self._known_criterion(y)
        if criterion not in _OF_BINS:
            raise ValueError(
                f"max_bins takes criterion {', '.join(map(repr, _OF_BINS))} or another word of "
                f"these, got {self.criterion!r}"
            )
        return criterion

    @property
    def number_of_bins(self) -> int:
        """Most bins of a feature of numbers."""
        max_bins: Any = self.max_bins
        if not isinstance(max_bins, int | np.integer) or not 2 <= max_bins <= MISSING:
            raise ValueError(
                f"max_bins must be None or a whole number in 2 .. {MISSING}, got {max_bins!r}"
            )
        return int(max_bins)

    def binned_grower(self, bins: Bins, n: int, rows: GrowthSettings) -> BinnedGrower:
        """What grows a tree of n rows in bins."""
        p = bins.n_features
        n_looked_at, most = _n_features(self.max_features, p), _leaf_limit(self.max_leaf_nodes)
        draws = self.splitter == "random" or n_looked_at < p
        return BinnedGrower(
            bins,
            max_leaves=most or None,
            max_depth=rows.depth_limit,
            min_samples_split=ceil(
                resolve_row_count("min_samples_split", self.min_samples_split, 2, n)
            ),
            min_samples_leaf=ceil(
                resolve_row_count("min_samples_leaf", self.min_samples_leaf, 1, n)
            ),
            min_gain=self.min_impurity_decrease,
            order="best" if most else "depth",
            monotonic_cst=rows.slopes,
            max_features=n_looked_at if n_looked_at < p else None,
            random_cuts=self.splitter == "random",
            ties_by_root=not draws,
            seed=_key(rows.random_state) if draws else 0,
            feature_order=rows.feature_order,
            n_jobs=rows.n_jobs,
        )

    def _known_criterion(self, y: NDArray[Any]) -> Any:
        """What impurity is called here, by what the target is if it has not been said."""
        numeric = y.dtype == np.float64
        known = (*_OF_CLASSES, *_OF_NUMBERS)
        criterion = translate_value(self.criterion or ("squared" if numeric else "entropy"), known)
        if criterion not in known:
            raise ValueError(
                'criterion must be None, "gini", "entropy", "log_loss", "misclassification", '
                f'"squared", "squared_error", "absolute_error" or "poisson", got {criterion!r}'
            )
        if numeric and criterion not in _OF_NUMBERS:
            raise TypeError(
                f"criterion={criterion!r} takes classes: y must convert to int32 without loss, "
                f"got dtype {y.dtype}"
            )
        return criterion

    def _response(self, rows: TrainingSamples) -> dict[str, Any]:
        """Classes or targets, as the core takes them: a row for each."""
        y: Any = rows.y
        criterion = self._known_criterion(y)
        if rows.n_targets > 1:
            y = _comparable(rows, criterion)
        if criterion in _OF_NUMBERS:
            return _numbers(y, rows.relative_weight, criterion)
        classes, n_classes = _classes(y)
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
    **switches: Any,
) -> Tree:
    """Grow the greedy tree of the rows.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32. NaN is missing.
    y : array-like of shape (n,), or (n, q)
        Class of each row, 0, 1, ..., or a number; of several targets a column each.
    max_depth : int, "log" or None
        Cells at this depth are leaves; "log" is p times the whole part of log n, None no limit.
    categorical_features : array-like of bool, int or str, or None
        Features that hold categories 0, 1, 2, ..., as a mask, indices, or names if X has some.
    monotonic_cst : array-like of int, shape (p,), dict of names, or None
        1 where the mean of y (for two classes, the share of class 1) must not fall with the
        feature, -1 where it must not rise, 0 elsewhere. No cell is cut against a slope or, by
        whatever feature, beyond the means that slopes around it leave: so the means of the cells of
        every pruning are monotone.
    sample_weight : array-like of shape (n,), or None
        Weight of each row in impurities. A row of weight 0 is as if absent; `min_samples_split` and
        `min_samples_leaf` count each other row once.
    random_state : int, RandomState or None
        Decides what is drawn. Used by `max_features` and ``splitter="random"`` only.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The tree does not depend on it.
    **switches
        Parameters of `Cart`.

    Returns
    -------
    Tree

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range, or a switch is unknown or out of range.

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
    return Cart(**switches).grow(rows)


def _classes(y: Int32) -> tuple[Int32, int]:
    """Classes, and how many there are."""
    if y.min() < 0:
        raise ValueError(f"y must hold classes 0, 1, ..., got {y.min()}")
    if y.max() >= y.size:  # some have no row: counting those could fill the memory
        codes = np.unique(y, return_inverse=True)[1]
        y = codes.reshape(y.shape).astype(np.int32)
    return y, int(y.max()) + 1


# Criteria that add up over several targets.
_SUMMED = ("gini", "entropy", "squared")


def _comparable(rows: TrainingSamples, criterion: str) -> NDArray[Any]:
    """Several targets, in an order that they tell themselves; numbers as distances from the mean.

    Distances are in units of the standard deviation, and rounded so that their sums are exact. The
    unit itself is rounded, so that rows in another order have the same.
    """
    if criterion not in _SUMMED:
        raise ValueError(
            f"criterion={criterion!r} takes one target, got y of {rows.n_targets} columns"
        )
    y = np.asarray(rows.y)
    y = y[:, order_targets(y, rows.X, order=rows.feature_order)]
    if criterion != "squared":
        return y
    distances = [_in_deviations(one.astype(np.float64), rows.relative_weight) for one in y.T]
    return np.column_stack(distances)


def _in_deviations(target: Float64, weight: Float64 | None) -> Float64:
    """Distances of a target from the value next to its mean, in standard deviations.

    A target that differs only in rows of hardly any weight has none.
    """
    target = _centred(np.ldexp(target, -_exponent(target)), weight)
    if not target.any():
        return target
    target = np.ldexp(target, -_exponent(target))
    mean = np.average(target, weights=weight)
    variance = np.average((target - mean) ** 2, weights=weight)
    deviation = float(np.float32(np.sqrt(variance)))
    return target / deviation if deviation > 0 else target


def _exponent(target: Float64) -> int:
    """The power of two above all magnitudes."""
    return int(np.frexp(np.abs(target).max())[1])


def _numbers(y: NDArray[Any], weight: Float64 | None, criterion: str) -> dict[str, Any]:
    """Targets, as the core takes them, in a unit of their own."""
    name, power = _OF_NUMBERS[criterion]
    # A power of two: squares of small or large numbers get lost.
    target = y.astype(np.float64)
    scale = _exponent(target)
    target = np.ldexp(target, -scale)
    if criterion != "poisson" and target.ndim == 1:
        target = _centred(target, weight)
    if criterion != "squared" or target.ndim > 1:
        target = _added_exactly(target, weight)
    return {
        "y": None,
        "target": np.ascontiguousarray(np.atleast_2d(target.T)),
        "n_classes": 0,
        "criterion": name,
        "unit": power * scale,
    }


# Sums of weights that are no whole numbers depend on their order by less.
_ROUNDING = 1 + 1e-9


def _least_share(fraction: Any) -> float:
    """Share of the weight on either side of a cut."""
    if not 0 <= fraction <= 0.5:
        raise ValueError(
            f"min_weight_fraction_leaf must be a number in the range [0.0, 0.5], got {fraction!r}"
        )
    return float(fraction)


def _least_gain(least: Any, n: float, unit: int) -> float:
    """Smallest decrease in impurity, over all rows, of a cut that is made; in units 2^unit."""
    least = check_nonnegative("min_impurity_decrease", least)
    if least == 0:
        return 0.0
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(least * n, -unit))


def expect_histogram_cart(grower: Any) -> Cart:
    """A grower that sums over bins suffice for; others are refused, as of rows that lie elsewhere."""
    if not isinstance(grower, Cart) or grower.max_bins is None:
        raise ValueError(
            "rows that lie elsewhere take grower=Cart(max_bins=255), or fewer bins, got "
            f"grower={grower!r}"
        )
    grower.expect_histogram_settings()
    return grower


def expect_monotonic_support(rows: Any, n_classes: int) -> None:
    """Refuse slopes that no tree of these rows can keep to; 0 classes are numbers."""
    if rows.n_targets > 1:
        raise ValueError(f"monotonic_cst takes one target, got y of {rows.n_targets} columns")
    if n_classes > 2:
        raise ValueError(f"monotonic_cst takes numbers or two classes, got {n_classes} classes")
    if rows.categorical is not None and np.asarray(rows.slopes)[rows.categorical].any():
        raise ValueError("monotonic_cst must be 0 for features of categories")


# A tree is numbered in int32: no fit has more leaves.
_MOST_LEAVES = 2**31 - 1


def _leaf_limit(max_leaf_nodes: Any) -> int:
    """Number of leaves at which growth stops; 0 is no limit."""
    if max_leaf_nodes is None:
        return 0
    if not isinstance(max_leaf_nodes, Integral) or max_leaf_nodes < 1:
        raise ValueError(
            f"max_leaf_nodes must be None or a whole number >= 1, got {max_leaf_nodes!r}"
        )
    return min(int(max_leaf_nodes), _MOST_LEAVES)


def _n_features(given: Any, p: int) -> int:
    """Number of features that are looked at in a cell."""
    is_share = isinstance(given, float | np.floating) and 0 < given <= 1
    is_number = isinstance(given, int | np.integer) and 1 <= given <= p
    if not (given is None or given in ("sqrt", "log2") or is_share or is_number):
        raise ValueError(
            f'max_features must be None, "sqrt", "log2", a whole number in 1 .. {p} or a share in '
            f"(0, 1], got {given!r}"
        )
    return resolve_max_features(given, p) or p


def _key(random_state: int | RandomState | None) -> int:
    generator = check_random_state(random_state)
    return int(generator.randint(0, 2**32, dtype=np.uint64)) << 32 | int(
        generator.randint(0, 2**32, dtype=np.uint64)
    )


# Of distances from medians and of deviances many are equal, and numbers must not differ by less.
_FINEST = 32


def _added_exactly(target: Float64, weight: Float64 | None) -> Float64:
    """Numbers below 2 in magnitude, rounded so that sums of them are exact in whatever order.

    So they are where weights are small multiples of one: others are added as they come.
    """
    # A quotient of weights may be beyond float64.
    one, all_rows = (1, len(target)) if weight is None else (weight.min(), weight.sum())
    # By fractions and exponents, so that nothing is rounded otherwise where all weights double.
    fractions, exponents = np.frexp([all_rows, one])
    bits = exponents[0] - exponents[1] + (np.log2(fractions[0]) - np.log2(fractions[1]))
    digits = max(51 - int(np.ceil(bits)), _FINEST)
    return np.ldexp(np.rint(np.ldexp(target, digits)), -digits)


def _centred(target: Float64, weight: Float64 | None) -> Float64:
    """Distances from the value next to the mean: squares of sums lose the digits of a far mean.

    From a value, and not from the mean itself, so that distances of integers stay integers.
    """
    mean = np.average(target, weights=weight)
    middle = target[np.lexsort((target, np.abs(target - mean)))[0]]
    return target - middle
