"""Models as fitted estimators of scikit-learn.

An estimator of the right kind is fitted to next to nothing, and its trees are replaced: so it has
whatever attributes its version of scikit-learn wants.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE
from sklearn.tree._tree import Tree as TreeOfSklearn

from certree.export.chains import chained
from certree.export.formula import Formula, compared, rounded_down
from certree.interface.arrays import Float64
from certree.rows.precision import warn_of_float32
from certree.tree import LEAF, Tree

# Of leaves without rows, as those who divide by the rows of a cell expect some; and what scikit-learn's
# counts hold of weights.
_FEW_ROWS, _MOST_ROWS = 1e-6, 2.0**62


def sklearn_model(formula: Formula) -> Any:
    """Fitted estimator of scikit-learn that computes a formula."""
    if formula.kind != "boosted":
        warn_of_float32(
            formula.float64_names,
            "Trees and forests of scikit-learn round rows to float32",
            "Use the model itself, or to_onnx(dtype='float64').",
        )
    if formula.kind == "tree":
        classes = formula.classes
        return _with_names(_decision_tree(_Nodes.of(formula, 0), classes), formula)
    if formula.kind == "forest":
        return _with_names(_random_forest(formula), formula)
    return _with_names(_boosting(formula), formula)


@dataclass(frozen=True, slots=True)
class _Nodes:
    """A tree without sets, and its nodes.

    Attributes
    ----------
    tree : Tree
        The tree.
    value, square : ndarray of shape (m, n_outputs)
        What leaves say, and its square; at other nodes the means over the rows below them.
    rows : ndarray of shape (m,)
        Training rows; 1 for each leaf where they are not known.
    depth : ndarray of shape (m,)
        Number of nodes above.
    """

    tree: Tree
    value: Float64
    square: Float64
    rows: Float64
    depth: NDArray[np.int64]

    @classmethod
    def of(cls, formula: Formula, number: int) -> "_Nodes":
        """One of the trees of a formula."""
        given = formula.trees[number]
        sizes = [len(formula.categories_of(j) or ()) for j in range(formula.n_features)]
        tree, origin, part = chained(given, sizes)
        value = given.value[origin]
        if formula.says_second and formula.link == "shares":
            value = np.column_stack([1 - value, value])
        rows = np.ones(tree.n_nodes)
        if formula.rows is not None:
            rows = np.maximum(formula.rows[number][origin] * part, _FEW_ROWS)
        depth = tree.splits_above
        with np.errstate(over="ignore", invalid="ignore"):  # squares beyond float64
            rows, mean = _averaged(tree, depth, rows, np.column_stack([value, np.square(value)]))
        n_outputs = value.shape[1]
        return cls(tree, mean[:, :n_outputs], mean[:, n_outputs:], rows, depth)

    def impurity(self, of_classes: bool) -> Float64:
        """Gini's of classes, else the variance of what is said below, (m,); infinite beyond float64."""
        if of_classes:
            return 1 - np.square(self.value).sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.maximum(self.square - np.square(self.value), 0.0).sum(axis=1)
        return np.where(np.isnan(spread), np.inf, spread)


def _averaged(
    tree: Tree, depth: NDArray[np.int64], rows: Float64, value: Float64
) -> tuple[Float64, Float64]:
    """Sums of the rows of leaves, and means of their values, at all nodes."""
    inner = np.flatnonzero(~tree.is_leaf)
    for level in np.unique(depth[inner])[::-1]:  # from the deepest nodes up
        nodes = inner[depth[inner] == level]
        left, right = tree.left[nodes], tree.left[nodes] + 1
        rows[nodes] = rows[left] + rows[right]
        share = (rows[left] / rows[nodes])[:, None]
        value[nodes] = share * value[left] + (1 - share) * value[right]
    return rows, value


def _decision_tree(nodes: _Nodes, classes: NDArray[Any] | None) -> Any:
    tree, m, p = nodes.tree, nodes.tree.n_nodes, nodes.tree.n_features
    inner = ~tree.is_leaf
    table = np.zeros(m, dtype=NODE_DTYPE)
    table["left_child"] = tree.left
    table["right_child"] = np.where(inner, tree.left + 1, LEAF)
    table["feature"] = np.where(inner, tree.feature, -2)
    table["threshold"] = np.where(inner, rounded_down(tree.threshold), -2.0)
    table["impurity"] = nodes.impurity(classes is not None)
    table["n_node_samples"] = np.minimum(np.rint(nodes.rows), _MOST_ROWS)
    table["weighted_n_node_samples"] = nodes.rows
    table["missing_go_to_left"] = tree.missing_left
    if classes is None:
        model = _fitted(DecisionTreeRegressor(), p, None, nodes.value.shape[1])
    else:
        model = _fitted(DecisionTreeClassifier(), p, classes)
    # Of classes one output has all shares; numbers are an output each.
    n_outputs = nodes.value.shape[1]
    inside = TreeOfSklearn(p, np.array([n_outputs], dtype=np.intp), 1)
    values = np.ascontiguousarray(nodes.value[:, None, :])
    if classes is None and n_outputs > 1:
        inside = TreeOfSklearn(p, np.ones(n_outputs, dtype=np.intp), n_outputs)
        values = np.ascontiguousarray(nodes.value[:, :, None])
    depth = int(nodes.depth.max())
    inside.__setstate__({"max_depth": depth, "node_count": m, "nodes": table, "values": values})
    model.tree_ = inside
    return model


def _random_forest(formula: Formula) -> Any:
    if formula.power != 1:
        raise ValueError(
            f"forests of scikit-learn average probabilities, and this one raises their average to the "
            f'power {formula.power:g} (leaves_.power): fit it with leaves="plain", "refilled", '
            '"shrunk" or "honest"'
        )
    p, classes, n_trees = formula.n_features, formula.classes, len(formula.trees)
    if classes is None:
        model = _fitted(RandomForestRegressor(1), p, None, formula.n_outputs)
    else:
        model = _fitted(RandomForestClassifier(1), p, classes)
    codes = None if classes is None else np.arange(len(classes), dtype=np.float64)
    model.estimators_ = [_decision_tree(_Nodes.of(formula, i), codes) for i in range(n_trees)]
    return model.set_params(n_estimators=n_trees)


def _boosting(formula: Formula) -> Any:
    p, classes, n_trees = formula.n_features, formula.classes, len(formula.trees)
    predictors = [_predictors(_Nodes.of(formula, i)) for i in range(n_trees)]
    if classes is not None:
        model = _fitted(HistGradientBoostingClassifier(max_iter=1), p, classes)
        return _with_trees(model, formula.start, predictors)
    if formula.link == "sorted":
        raise ValueError(
            "scikit-learn sorts no predictions, as quantiles of one fit are: use to_onnx() or "
            "to_dict(), or fit a model for each quantile"
        )
    loss = "poisson" if formula.link == "exp" else "squared_error"
    one = HistGradientBoostingRegressor(loss=loss, max_iter=1)
    if formula.n_outputs == 1:
        return _with_trees(_fitted(one, p, None), formula.start, predictors)
    several = _fitted(MultiOutputRegressor(one), p, None, formula.n_outputs)
    for k, model in enumerate(several.estimators_):
        _with_trees(model, formula.start[k : k + 1], [[trees[k]] for trees in predictors])
    return several


def _with_trees(model: Any, start: Float64, predictors: list[list[TreePredictor]]) -> Any:
    model._baseline_prediction = start[None, :].copy()
    model._predictors = predictors
    return model.set_params(max_iter=len(predictors))


def _predictors(nodes: _Nodes) -> list[TreePredictor]:
    """The tree once for each output."""
    tree = nodes.tree
    inner = ~tree.is_leaf
    table = np.zeros(tree.n_nodes, dtype=PREDICTOR_RECORD_DTYPE)
    table["left"] = np.where(inner, tree.left, 0)
    table["right"] = np.where(inner, tree.left + 1, 0)
    table["feature_idx"] = tree.feature
    table["num_threshold"] = compared(tree.threshold)
    table["missing_go_to_left"] = tree.missing_left
    table["is_leaf"] = ~inner
    table["depth"] = nodes.depth
    table["count"] = np.maximum(np.rint(nodes.rows), 1)
    no_sets = np.zeros((0, 8), dtype=np.uint32)
    predictors = []
    for column in nodes.value.T:
        one = table.copy()
        one["value"] = column
        predictors.append(TreePredictor(one, no_sets, no_sets))
    return predictors


def _fitted(model: Any, p: int, classes: NDArray[Any] | None, n_outputs: int = 1) -> Any:
    """Fit to a row or two of each class, or to so many numbers."""
    y = np.ones((2, n_outputs) if n_outputs > 1 else 2)
    y = y if classes is None else np.repeat(classes, 2)
    return model.fit(np.zeros((len(y), p)), y)


def _with_names(model: Any, formula: Formula) -> Any:
    if formula.feature_names is not None:
        model.feature_names_in_ = np.array(formula.feature_names, dtype=object)
    return model
