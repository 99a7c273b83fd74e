"""Weak learners: what AdaBoost fits to weighted rows in each round."""

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
from certree.tree import Tree

# A fall of the impurity below this share of the weight is what rounding leaves of nothing.
_NOTHING = 2.0**-46
# Where no cut gains anything, shares of 0 are divided by this.
_SMALLEST = float(np.finfo(np.float64).tiny)
_MOST_SEED = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, slots=True, eq=False)
class WeakTree:
    """A small tree with a class at each node.

    Parameters
    ----------
    tree : Tree
        The tree.
    says : ndarray of intp, shape (m,)
        Code of the class of largest weight at each node, of equal ones the first.
    importances : ndarray of shape (p,)
        Share of each feature in how far the cuts lower the Gini index; zeros if there are none.
    """

    tree: Tree
    says: Codes
    importances: Float64

    def predict(self, X: NDArray[Any]) -> Codes:
        """Code of the class of each row, whose categories are codes."""
        return self.says[self.tree.apply(X)]


@dataclass(frozen=True, slots=True, eq=False)
class WeakTreeFitter:
    """Grows small trees on weighted rows.

    Parameters
    ----------
    grower : BinnedGrower
        Knows the rows.
    X : ndarray of shape (n, p)
        The rows.
    y : ndarray of int32, shape (n,)
        Class of each row.
    n_classes : int
        Number of classes.
    """

    grower: BinnedGrower
    X: NDArray[np.floating]
    y: NDArray[np.int32]
    n_classes: int

    @classmethod
    def of(
        cls,
        X: NDArray[np.floating],
        y: NDArray[np.int32],
        n_classes: int,
        max_depth: int | None,
        max_leaves: int | None = None,
        categorical: NDArray[np.bool_] | None = None,
        n_jobs: int | None = None,
        feature_order: Int32 | None = None,
    ) -> WeakTreeFitter:
        """Grow trees of so many levels, and leaves, on these rows."""
        X = np.ascontiguousarray(X)
        bins = Bins.from_table(X, categorical, n_jobs=n_jobs, feature_order=feature_order)
        grower = BinnedGrower(
            bins,
            max_leaves=max_leaves,
            max_depth=max_depth,
            min_gain=_NOTHING if n_classes > 2 else 0.0,
            feature_order=feature_order,
            n_jobs=n_jobs,
        )
        return cls(grower, X, y, n_classes)

    def __call__(self, weight: Float64) -> tuple[WeakTree, Codes]:
        """Grow a tree; returns it and what it says of each row."""
        tree, leaf, sums = self._grown(weight)
        k = sums.shape[1]
        # Sums of the grower are rounded: its leaves say what the weights themselves say.
        table, own = sums.copy(), tree.is_leaf
        exact = np.bincount(leaf.astype(np.intp) * k + self.y, weight, tree.n_nodes * k)
        table[own] = exact.reshape(-1, k)[own]
        says = table.argmax(axis=1)
        return WeakTree(tree, says, _importances(tree, sums)), says[leaf]

    def _grown(self, weight: Float64) -> tuple[Tree, Int32, Float64]:
        """The tree, the leaf of each row, and the weight of each class in each node."""
        if self.n_classes > 2:
            forest = self.grower.grow_classes(self.y, self.n_classes, 1, sample_weight=weight)
            tree = forest.trees.tree(0)
            return tree, tree.route(self.X, 1), forest.class_weights(self.n_classes)
        # The Gini index of two classes is squared loss of -1 and 1, whose gradients are quicker.
        tree, leaf, sums = self.grower.grow_gradients(np.where(self.y, weight, -weight), weight)
        beyond, both = sums[:, 0], sums[:, 1]
        return tree, leaf, np.column_stack([both - beyond, both + beyond]) / 2


def _importances(tree: Tree, table: Float64) -> Float64:
    """Share of each feature in the sum over cuts of the fall of the Gini index times the weight."""
    total = table.sum(axis=1)
    square = (table**2).sum(axis=1)
    pure = np.divide(square, total, out=np.zeros_like(total), where=total > 0)
    inner = np.flatnonzero(~tree.is_leaf)
    left = tree.left[inner]
    gain = np.maximum(pure[left] + pure[left + 1] - pure[inner], 0)
    parts: Float64 = np.bincount(tree.feature[inner], gain, tree.n_features).astype(np.float64)
    return np.divide(parts, max(float(parts.sum()), _SMALLEST))


@dataclass(frozen=True, slots=True, eq=False)
class WeakClassifierFitter:
    """Fits copies of a classifier of scikit-learn to weighted rows.

    Parameters
    ----------
    estimator : classifier
        Is cloned.
    X : ndarray of shape (n, p)
        Rows.
    labels : ndarray of shape (n,)
        Label of each row.
    classes : ndarray of shape (K,)
        The labels in order.
    random_state : numpy RandomState
        Gives each copy a seed of its own, as those of scikit-learn's ensembles do.
    categorical : ndarray of bool, shape (p,), or None
        Which columns hold codes of categories; estimators that ask for it are told.
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
                f"{type(self.estimator).__name__}"
            )

    def __call__(self, weight: Float64) -> tuple[Any, Codes]:
        """Fit a copy; returns it and what it says of each row."""
        one = clone(self.estimator)
        names = sorted(one.get_params(deep=True))
        seeded = [name for name in names if name.split("__")[-1] == "random_state"]
        one.set_params(**{name: self.random_state.randint(_MOST_SEED) for name in seeded})
        if self.categorical is not None and "categorical_features" in names:
            one.set_params(categorical_features=self.categorical)
        one.fit(self.X, self.labels, sample_weight=weight)
        return one, predict_class_codes(one, self.X, self.classes)


def predict_class_codes(learner: Any, X: NDArray[Any], classes: NDArray[Any]) -> Codes:
    """Codes of the classes that a learner gives rows."""
    if isinstance(learner, WeakTree):
        return learner.predict(X)
    return find_positions(classes, learner.predict(X))[0]
