"""Trees in the format that shap's `TreeExplainer` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.explain.additive_trees import (
    check_additive,
    get_additive_trees,
    get_rows_per_node,
)
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.rows.calendar_parts import list_parts
from certree.tree import LEAF


@validate_arguments
def shap_trees(model: Any, background: ArrayLike | None = None) -> dict[str, Any]:
    """Convert a model's trees to the format of shap, for its plots and further methods.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, boosted trees or AdaBoost of certree without categorical
        splits.
    background : array-like of shape (m, p), or None
        Rows that are counted in the nodes if the model does not keep the number of training rows in
        each node; boosted trees, AdaBoost and certified forests do not. Other models ignore them.

    Returns
    -------
    dict
        Its only key "trees" has a list with a dictionary for each tree. Its values are arrays with
        an entry for each node, its keys "children_left", "children_right", "children_default",
        "features", "thresholds", "values" and "node_sample_weight". To be passed to
        ``shap.TreeExplainer``, which then computes the values of `shapley_values`; for two classes,
        those of the second class. They are exact for rows of float64 without missing values: a
        single tree may send a row that lacks a value to both children, shap sends it to one.

    Raises
    ------
    TypeError
        If the model has no trees with numeric leaves.
    ValueError
        If trees have categorical splits, which shap does not support; if there are no trees; or if
        a background is missing.

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
    model = check_additive(model)
    additive = get_additive_trees(model)
    if list_parts(model.dates_):
        raise ValueError(
            "model must read no calendar parts of dates, which the rows of shap do not have: use "
            "shapley_values"
        )
    if len(additive.trees.categories):
        raise ValueError(
            "model must have no categorical splits, which shap does not support: use shapley_values"
        )
    if not len(additive.trees):
        raise ValueError("model must have at least one tree, got 0: shap cannot explain a constant")
    counted_rows = None if background is None else model._encode_new_rows(background)
    rows_per_node = get_rows_per_node(additive, counted_rows, get_n_threads(model.n_jobs))
    rows_per_tree = np.split(rows_per_node, additive.trees.root[1:])
    trees: list[dict[str, Any]] = []
    for tree, rows in zip(additive.trees, rows_per_tree, strict=True):
        left, is_leaf = tree.left.copy(), tree.is_leaf
        right = np.where(is_leaf, LEAF, left + 1)
        trees.append(
            {
                "children_left": left,
                "children_right": right,
                "children_default": np.where(tree.missing_left, left, right),
                "features": np.where(is_leaf, -1, tree.feature),
                "thresholds": tree.threshold.copy(),
                # The first tree carries the constant of the whole sum.
                "values": tree.value.copy() if trees else tree.value + additive.start,
                "node_sample_weight": rows.copy(),
            }
        )
    return {"trees": trees}
