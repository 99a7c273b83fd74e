"""The cells of a fitted scikit-learn tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from certree.grow.threshold_placement import place_thresholds
from certree.grow.training_samples import TrainingSamples
from certree.interface.signatures import validate_arguments
from certree.tree import LEAF, Tree


class SklearnTree(BaseEstimator):
    """Cells of a decision tree of scikit-learn, which stops by its own parameters.

    Parameters
    ----------
    estimator : scikit-learn decision tree
        It is cloned and fitted. Without a random state of its own it has that of the fit.
    """

    depends_on_rows = True
    supports_monotonic_cst = False

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def grow(self, rows: TrainingSamples) -> Tree:
        """Grow the tree of these rows."""
        if not all(hasattr(self.estimator, name) for name in ("fit", "get_params")):
            raise TypeError(f"expected a scikit-learn decision tree, got {self.estimator!r}")
        estimator = clone(self.estimator)
        if getattr(estimator, "random_state", 0) is None:
            estimator.set_params(random_state=rows.random_state)
        weight = np.ones(len(rows.X)) if rows.weight is None else rows.weight
        tree = from_sklearn(estimator.fit(rows.X, rows.y, sample_weight=weight))
        return place_thresholds(tree, rows.X, at_middle=False)


@validate_arguments
def from_sklearn(estimator: Any) -> Tree:
    """Read the tree of a fitted scikit-learn decision tree.

    Rows are compared as they are, while scikit-learn rounds them to float32 first: a float64 value
    within rounding of a threshold may fall on the other side of it. NaN goes where it goes there.

    Parameters
    ----------
    estimator : fitted scikit-learn tree
        ``DecisionTreeClassifier`` or another estimator with a ``tree_``.

    Returns
    -------
    Tree

    Raises
    ------
    TypeError
        If the estimator has no ``tree_``.
    """
    source: Any = getattr(estimator, "tree_", None)
    if not all(hasattr(source, name) for name in ("children_left", "feature", "threshold")):
        raise TypeError(f"expected a fitted scikit-learn decision tree, got {estimator!r}")
    inner, number = np.flatnonzero(source.children_left != -1), map_sklearn_nodes(source)
    feature = np.zeros(source.node_count, dtype=np.int32)
    threshold = np.zeros(source.node_count)
    left = np.full(source.node_count, LEAF, dtype=np.int32)
    missing_left = np.zeros(source.node_count, dtype=bool)
    feature[number[inner]] = source.feature[inner]
    # A split of missing from present values has an infinite threshold there.
    largest = np.finfo(np.float64).max
    threshold[number[inner]] = np.clip(source.threshold[inner], -largest, largest)
    left[number[inner]] = number[source.children_left[inner]]
    missing_left[number[inner]] = source.missing_go_to_left[inner].astype(bool)
    chain = np.ones(source.node_count, dtype=np.int32)
    return Tree(feature, threshold, left, chain, int(source.n_features), missing_left)


def map_sklearn_nodes(source: Any) -> NDArray[np.intp]:
    """Say which node of `from_sklearn` is which of a ``tree_``.

    scikit-learn numbers nodes in preorder. Pairs of siblings, in the order of their parents, keep
    children after parents and put siblings side by side.
    """
    inner = np.flatnonzero(source.children_left != -1)
    number = np.zeros(source.node_count, dtype=np.intp)
    pair = 1 + 2 * np.arange(len(inner))
    number[source.children_left[inner]] = pair
    number[source.children_right[inner]] = pair + 1
    return number
