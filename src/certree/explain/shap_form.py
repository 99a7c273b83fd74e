"""Trees in the form that shap's `TreeExplainer` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.explain.summed import cover_of, summable, summed_trees
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.tree import LEAF


@validate_arguments
def shap_trees(model: Any, background: ArrayLike | None = None) -> dict[str, Any]:
    """Give a model's trees to shap, for its pictures and its other values.

    Parameters
    ----------
    model : estimator
        A fitted tree, vote, forest, boosted trees or AdaBoost of certree whose features are numbers.
    background : array-like of shape (m, p), or None
        Rows by which nodes are counted where a model does not keep those of its fit; see
        `shapley_values`.

    Returns
    -------
    dict
        For ``shap.TreeExplainer``, which then explains what `shapley_values` does; of two classes the
        second. Exact for rows of float64 that lack no value: those that do, a single tree may send
        both ways, and shap sends them one way.

    Raises
    ------
    TypeError
        If the model has no trees whose leaves say numbers.
    ValueError
        If trees compare sets of categories, of which shap's know nothing; if there are no trees; or
        if a background is missing.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certree.ensembles import TreeForestRegressor
    >>> from certree.explain import shap_trees
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TreeForestRegressor(10, random_state=0).fit(X, y)
    >>> len(shap_trees(model)["trees"])
    10
    """
    model = summable(model)
    summed = summed_trees(model)
    if len(summed.trees.categories):
        raise ValueError(
            "trees compare sets of categories, but those of shap compare numbers alone"
        )
    if not len(summed.trees):
        raise ValueError("the model has no trees, but shap takes one at least")
    others = None if background is None else model._new_rows(background)
    rows = cover_of(summed, others, get_n_threads(model.n_jobs))
    trees: list[dict[str, Any]] = []
    for tree, own in zip(summed.trees, np.split(rows, summed.trees.root[1:]), strict=True):
        left, is_leaf = tree.left.copy(), tree.is_leaf
        right = np.where(is_leaf, LEAF, left + 1)
        trees.append(
            {
                "children_left": left,
                "children_right": right,
                "children_default": np.where(tree.missing_left, left, right),
                "features": np.where(is_leaf, -1, tree.feature),
                "thresholds": tree.threshold.copy(),
                # What is added to all trees is said by the first.
                "values": tree.value.copy() if trees else tree.value + summed.start,
                "node_sample_weight": own.copy(),
            }
        )
    return {"trees": trees}
