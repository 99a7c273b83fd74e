"""The learners that AdaBoost fits to weighted rows: small trees, or any classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from certree.ensembles.adaboost_rounds import Codes
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, Int32, find_positions
from certree.rows.dates import DateColumns
from certree.tree import Tree

# Smallest gain of a split of more than two classes, as a fraction of the weight. Lower gains are
# rounding errors.
_MIN_GAIN = 2.0**-46
# Smallest divisor of gains, for trees whose splits gain nothing.
_SMALLEST = float(np.finfo(np.float64).tiny)
_MAX_SEED = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, slots=True, eq=False)
class WeakTree:
    """A small classification tree, as `WeakTreeFitter` grows it.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    labels : ndarray of intp, shape (m,)
        Code of the class of largest weight in each node; the first of equal ones.
    importances : ndarray of shape (p,)
        Fraction of the tree's decrease of the Gini index times node weight that splits on each
        feature make; zeros if no split lowers it.
    """

    tree: Tree
    labels: Codes
    importances: Float64

    def predict(self, X: NDArray[Any]) -> Codes:
        """Predict the class code of each row, (n,).

        X: encoded rows, (n, p): numbers and category codes, as in the fit of the ensemble.
        """
        return self.labels[self.tree.apply(X)]


@dataclass(frozen=True, slots=True, eq=False)
class WeakTreeFitter:
    """Callable that grows a small tree on rows of given weights.

    ``fitter(weight)`` with row weights, (n,), returns a `WeakTree` and the class code that it
    predicts for each row, (n,).

    Parameters
    ----------
    grower : BinnedGrower
        Grows trees from the bins of the rows `X`; its settings limit their size.
    X : ndarray of shape (n, p)
        The rows, not binned: numbers and category codes.
    y : ndarray of int32, shape (n,)
        Class code of each row.
    n_classes : int
        Number of classes, K.
    """

    grower: BinnedGrower
    X: NDArray[np.floating]
    y: NDArray[np.int32]
    n_classes: int

    @classmethod
    def from_rows(
        cls,
        X: NDArray[np.floating],
        y: NDArray[np.int32],
        n_classes: int,
        max_depth: int | None,
        max_leaves: int | None = None,
        categorical: NDArray[np.bool_] | None = None,
        n_jobs: int | None = None,
        feature_order: Int32 | None = None,
        dates: DateColumns | None = None,
    ) -> WeakTreeFitter:
        """Bin the rows, and return the callable that grows trees on them; no tree is grown yet.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Rows: numbers and category codes; NaN for missing values.
        y : ndarray of int32, shape (n,)
            Class code of each row.
        n_classes : int
            Number of classes, K.
        max_depth, max_leaves : int or None
            Largest depth and number of leaves of a tree; None: no limit.
        categorical : ndarray of bool, shape (p,), or None
            Which features are categorical; None: none are.
        n_jobs : int or None
            Number of threads; None is one, -1 all.
        feature_order : ndarray of int32, shape (p,), or None
            The order in which features are compared, so that of equal splits the first feature
            wins; None: by column.
        dates : mapping of int to DateColumn, or None
            Features that hold dates, whose thresholds are round dates; None: none do.
        """
        X = np.ascontiguousarray(X)
        bins = Bins.from_table(X, categorical, n_jobs=n_jobs, feature_order=feature_order)
        bins = bins.with_dates(dates)
        grower = BinnedGrower(
            bins,
            max_leaves=max_leaves,
            max_depth=max_depth,
            min_gain=_MIN_GAIN if n_classes > 2 else 0.0,
            feature_order=feature_order,
            n_jobs=n_jobs,
        )
        return cls(grower, X, y, n_classes)

    def __call__(self, weight: Float64) -> tuple[WeakTree, Codes]:
        """Grow a tree on the rows with the given weights.

        weight: weight of each row, (n,). Features and class codes are `X`, the bins of `grower`,
        and `y`. Return the tree, and the class code that it predicts for each row, (n,).
        """
        tree, leaf, sums = self._grow(weight)
        k = sums.shape[1]
        # Sums of the grower are rounded. The classes of leaves are those of the exact weights.
        table, is_leaf = sums.copy(), tree.is_leaf
        exact = np.bincount(leaf.astype(np.intp) * k + self.y, weight, tree.n_nodes * k)
        table[is_leaf] = exact.reshape(-1, k)[is_leaf]
        labels = table.argmax(axis=1)
        return WeakTree(tree, labels, _compute_importances(tree, sums)), labels[leaf]

    def _grow(self, weight: Float64) -> tuple[Tree, Int32, Float64]:
        """Grow a tree by the Gini index on the rows with these weights, (n,).

        Return the tree of m nodes, the node number of the leaf of each row, (n,), and the weight of
        each class in each node, (m, K), up to rounding. Class codes are those of `y`.
        """
        if self.n_classes > 2:
            forest = self.grower.grow_classes(self.y, self.n_classes, 1, sample_weight=weight)
            tree = forest.trees.tree(0)
            return tree, tree.route(self.X, 1), forest.class_weights(self.n_classes)
        # For two classes the Gini index is the squared loss of targets -1 and 1. That is faster.
        tree, leaf, sums = self.grower.grow_gradients(np.where(self.y, weight, -weight), weight)
        difference, total = sums[:, 0], sums[:, 1]
        return tree, leaf, np.column_stack([total - difference, total + difference]) / 2


def _compute_importances(tree: Tree, table: Float64) -> Float64:
    """Compute the importance of each feature in a tree, (p,).

    It is the fraction of the tree's decrease of the Gini index times node weight that splits on the
    feature make. tree: a tree with m nodes; table: weight of each class in each node, (m, K).
    Return zeros if no split decreases the index.
    """
    total = table.sum(axis=1)
    square = (table**2).sum(axis=1)
    purity = np.divide(square, total, out=np.zeros_like(total), where=total > 0)
    inner = np.flatnonzero(~tree.is_leaf)
    left = tree.left[inner]
    gain = np.maximum(purity[left] + purity[left + 1] - purity[inner], 0)
    gains: Float64 = np.bincount(tree.feature[inner], gain, tree.n_features).astype(np.float64)
    return np.divide(gains, max(float(gains.sum()), _SMALLEST))


@dataclass(frozen=True, slots=True, eq=False)
class WeakClassifierFitter:
    """Callable that fits a clone of a scikit-learn classifier to rows of given weights.

    ``fitter(weight)`` with row weights, (n,), returns the fitted clone and the class code that it
    predicts for each row, (n,): an index in `classes`.

    Parameters
    ----------
    estimator : classifier
        The classifier that is cloned. Its `fit` must take `sample_weight`.
    X : ndarray of shape (n, p)
        Rows: numbers and category codes.
    labels : ndarray of shape (n,)
        Class of each row.
    classes : ndarray of shape (K,)
        The classes, ascending.
    random_state : numpy.random.RandomState
        Draws the seeds that replace every parameter `random_state` of a clone and its nested
        estimators.
    categorical : ndarray of bool, shape (p,), or None
        Mask of the categorical features, which is passed on to estimators with a parameter
        `categorical_features`; None: no feature is categorical.

    Raises
    ------
    ValueError
        If the estimator is no classifier, or its `fit` takes no `sample_weight`.
    """

    estimator: Any
    X: NDArray[Any]
    labels: NDArray[Any]
    classes: NDArray[Any]
    random_state: np.random.RandomState
    categorical: NDArray[np.bool_] | None

    def __post_init__(self) -> None:
        takes_weights = has_fit_parameter(self.estimator, "sample_weight")
        if not (is_classifier(self.estimator) and takes_weights):
            raise ValueError(
                "estimator must be a classifier whose fit takes sample_weight, got "
                f"{type(self.estimator).__name__}: pass such a classifier, or None for small trees"
            )

    def __call__(self, weight: Float64) -> tuple[Any, Codes]:
        """Fit a clone of the estimator to the rows with the given weights.

        weight: weight of each row, (n,). Features and classes of the rows are `X` and `labels`.
        Return the fitted clone, and the class code that it predicts for each row, (n,). Each call
        draws new seeds from `random_state`.
        """
        learner = clone(self.estimator)
        names = sorted(learner.get_params(deep=True))
        seeded = [name for name in names if name.split("__")[-1] == "random_state"]
        learner.set_params(**{name: self.random_state.randint(_MAX_SEED) for name in seeded})
        if self.categorical is not None and "categorical_features" in names:
            learner.set_params(categorical_features=self.categorical)
        learner.fit(self.X, self.labels, sample_weight=weight)
        return learner, predict_class_codes(learner, self.X, self.classes)


def predict_class_codes(learner: Any, X: NDArray[Any], classes: NDArray[Any]) -> Codes:
    """Predict the class of each row as its index in `classes`, (n,).

    learner: a `WeakTree`, or a fitted classifier of scikit-learn; X: encoded rows, (n, p); classes:
    the classes, ascending, (K,).
    """
    if isinstance(learner, WeakTree):
        return learner.predict(X)
    return find_positions(classes, learner.predict(X))[0]
