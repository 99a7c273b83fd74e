"""Trees of fitted scikit-learn decision trees."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from certree.grow.threshold_placement import place_thresholds
from certree.grow.training_samples import TrainingSamples
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.tree import LEAF, Tree


class SklearnTree(BaseEstimator):
    """Grower that fits a decision tree of scikit-learn and takes over its splits.

    The decision tree stops by its own parameters: the depth limit of the fit is not used, and
    monotonic constraints and categorical features are not supported.

    Parameters
    ----------
    estimator : scikit-learn decision tree
        Unfitted tree; `grow` clones it. If its `random_state` is None, the clone gets that of the
        fit.
    """

    depends_on_rows = True
    supports_monotonic_cst = False

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def grow(self, rows: TrainingSamples) -> Tree:
        """Fit a clone of `estimator` to training samples and return its tree.

        rows: the samples, with a target and row weights, which are passed to ``fit``; their depth
        limit is not used. The tree has no leaf values. Thresholds are moved within gaps between
        values only as far as needed for rows rounded to float32 to reach the same leaves. Raise
        TypeError if `estimator` has no `fit` and `get_params`, or no ``tree_`` after the fit.
        """
        if not all(hasattr(self.estimator, name) for name in ("fit", "get_params")):
            raise TypeError(
                f"estimator must be a scikit-learn decision tree, got {self.estimator!r}"
            )
        estimator = clone(self.estimator)
        if getattr(estimator, "random_state", 0) is None:
            estimator.set_params(random_state=rows.random_state)
        weight = np.ones(len(rows.X)) if rows.weight is None else rows.weight
        tree = from_sklearn(estimator.fit(rows.X, rows.y, sample_weight=weight))
        return place_thresholds(
            tree,
            rows.X,
            at_middle=False,
            dates=rows.dates,
            n_threads=get_n_threads(rows.n_jobs),
        )


@validate_arguments
def from_sklearn(estimator: Any) -> Tree:
    """Convert a fitted scikit-learn decision tree to a `Tree`.

    Nodes are renumbered; `map_sklearn_nodes` maps the numbers. The `Tree` compares float64 values,
    while scikit-learn rounds values to float32 first, so a float64 value within rounding of a
    threshold may go to the other child. NaN goes to the same child as in scikit-learn.

    Parameters
    ----------
    estimator : fitted scikit-learn tree
        ``DecisionTreeClassifier`` or another estimator with a ``tree_``.

    Returns
    -------
    Tree
        The splits of the estimator's tree, without leaf values.

    Raises
    ------
    TypeError
        If the estimator has no ``tree_``.
    """
    source: Any = getattr(estimator, "tree_", None)
    if not all(hasattr(source, name) for name in ("children_left", "feature", "threshold")):
        raise TypeError(f"estimator must be a fitted scikit-learn decision tree, got {estimator!r}")
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
    """Return the node number in `from_sklearn` of each node of a scikit-learn ``tree_``.

    scikit-learn numbers nodes in preorder. Here siblings are adjacent: the children of the i-th
    inner node of `source` get the numbers ``1 + 2 * i`` and ``2 + 2 * i``.

    Parameters
    ----------
    source : sklearn.tree._tree.Tree
        The ``tree_`` of a fitted decision tree, with m nodes.

    Returns
    -------
    ndarray of int, shape (m,)
        Entry v is the number in the `Tree` of node v of `source`; the root stays 0.
    """
    inner = np.flatnonzero(source.children_left != -1)
    number = np.zeros(source.node_count, dtype=np.intp)
    pair = 1 + 2 * np.arange(len(inner))
    number[source.children_left[inner]] = pair
    number[source.children_right[inner]] = pair + 1
    return number
