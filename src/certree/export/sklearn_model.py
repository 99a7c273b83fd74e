"""Models as fitted estimators of scikit-learn.

An estimator of the right kind is fitted to a few placeholder rows, so that it has all attributes of the
installed version of scikit-learn. Then its trees are replaced.
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
from sklearn.tree._tree import Tree as SklearnTree

from certree.export.categorical_chains import expand_categorical_splits
from certree.export.formula import (
    Formula,
    expect_no_parts,
    extend_largest_threshold,
    round_down_to_float32,
)
from certree.interface.arrays import Float64
from certree.rows.precision import warn_of_float32
from certree.tree import LEAF, Tree

# Rows of a leaf without rows, as readers divide by them; and the largest weight that fits into the
# integer counts of scikit-learn.
_MIN_ROWS, _MAX_ROWS = 1e-6, 2.0**62


def make_sklearn_model(formula: Formula) -> Any:
    """Return a fitted estimator of scikit-learn that makes the predictions of a model of certree.

    formula: the trees of the fitted model, and how their leaf values become predictions. The
    estimator is a decision tree, a random forest, or histogram gradient boosting (one for each
    number, if several are predicted). Its categorical features take the model's codes of categories
    (0, 1, ... in the order of `formula.categories`), not their names.

    Warns
    -----
    UserWarning
        If a tree or forest would have to compare values that are equal in float32, the type to
        which these estimators of scikit-learn round rows.

    Raises
    ------
    ValueError
        If scikit-learn has no such model: a forest that raises mean probabilities to a power, or a
        model that predicts several quantiles and sorts them; or if categorical splits need more
        than 2**17 nodes.
    """
    expect_no_parts(formula, "to_sklearn()")
    if formula.kind != "boosted":
        arguments = '"float64", inputs="named"' if formula.dates else '"float64"'
        warn_of_float32(
            formula.float64_names,
            "Trees and forests of scikit-learn round rows to float32",
            f"Use the model itself, or to_onnx({arguments}).",
        )
    if formula.kind == "tree":
        classes = formula.classes
        return _set_feature_names(
            _make_decision_tree(_NodeStatistics.from_formula(formula, 0), classes), formula
        )
    if formula.kind == "forest":
        return _set_feature_names(_make_random_forest(formula), formula)
    return _set_feature_names(_make_boosting(formula), formula)


@dataclass(frozen=True, slots=True)
class _NodeStatistics:
    """A tree with only threshold splits, and the statistics that scikit-learn keeps of its nodes.

    `from_formula` makes it; the constructor takes the attributes in this order. m is the number of
    nodes.

    Attributes
    ----------
    tree : Tree
        The tree, in which several threshold splits on category codes replace a categorical split.
    value : ndarray of float64, shape (m, n_outputs)
        Values of leaves; at other nodes the mean of the leaves below, weighted by their rows. They
        are class probabilities for a tree or forest classifier, with a column for each class.
    square : ndarray of float64, shape (m, n_outputs)
        Squared values of leaves, and their weighted mean at other nodes.
    rows : ndarray of float64, shape (m,)
        Number or weight of the training rows in each node, at least 1e-6 at leaves; 1 for each leaf
        if the model does not keep them. Rows of a copied leaf are divided among the copies.
    depth : ndarray of int64, shape (m,)
        Number of splits above each node.
    """

    tree: Tree
    value: Float64
    square: Float64
    rows: Float64
    depth: NDArray[np.int64]

    @classmethod
    def from_formula(cls, formula: Formula, number: int) -> "_NodeStatistics":
        """Return a tree of a model without categorical splits, with the statistics of its nodes.

        Several threshold splits on category codes replace each categorical split. number: index of
        the tree in `formula.trees`. Raise ValueError if the tree would have more than 2**17 nodes.
        formula: the trees of the fitted model, and how their leaf values become predictions.
        """
        original = formula.trees[number]
        sizes = [len(formula.get_categories(j) or ()) for j in range(formula.n_features)]
        tree, origin, fraction = expand_categorical_splits(original, sizes)
        value = original.value[origin]
        if formula.has_second_class_only and formula.link == "shares":
            value = np.column_stack([1 - value, value])
        rows = np.ones(tree.n_nodes)
        if formula.rows is not None:
            rows = np.maximum(formula.rows[number][origin] * fraction, _MIN_ROWS)
        depth = tree.splits_above
        with np.errstate(over="ignore", invalid="ignore"):  # Squares may overflow.
            rows, mean = _average_leaves(
                tree, depth, rows, np.column_stack([value, np.square(value)])
            )
        n_outputs = value.shape[1]
        return cls(tree, mean[:, :n_outputs], mean[:, n_outputs:], rows, depth)

    def compute_impurity(self, is_classifier: bool) -> Float64:
        """Return the impurity of each node, (m,): what scikit-learn's trees store as `impurity`.

        For a classifier it is the Gini impurity of the node's class probabilities. For a regressor
        it is the variance of the leaf values below the node, summed over outputs: not that of the
        target. It is infinite if it overflows. is_classifier: whether the values of the nodes are
        class probabilities.
        """
        if is_classifier:
            return 1 - np.square(self.value).sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = np.maximum(self.square - np.square(self.value), 0.0).sum(axis=1)
        return np.where(np.isnan(variance), np.inf, variance)


def _average_leaves(
    tree: Tree, depth: NDArray[np.int64], rows: Float64, value: Float64
) -> tuple[Float64, Float64]:
    """Sum up rows, and average values, from the leaves to the root; return both arrays.

    Parameters
    ----------
    tree : Tree
        Tree with m nodes.
    depth : ndarray of int64, shape (m,)
        Number of splits above each node.
    rows : ndarray of float64, shape (m,)
        Rows of leaves. Other entries are overwritten by the sum over the leaves below.
    value : ndarray of float64, shape (m, any)
        Values of leaves, in any number of columns. Other entries are overwritten by the mean over
        the leaves below, weighted by their rows.

    Returns
    -------
    rows, value : ndarray
        The two arrays that were passed, changed in place.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    for node_depth in np.unique(depth[inner])[::-1]:  # The deepest nodes come first.
        nodes = inner[depth[inner] == node_depth]
        left, right = tree.left[nodes], tree.left[nodes] + 1
        rows[nodes] = rows[left] + rows[right]
        fraction = (rows[left] / rows[nodes])[:, None]
        value[nodes] = fraction * value[left] + (1 - fraction) * value[right]
    return rows, value


def _make_decision_tree(nodes: _NodeStatistics, classes: NDArray[Any] | None) -> Any:
    """Return a fitted DecisionTreeClassifier or DecisionTreeRegressor with the nodes of a tree.

    nodes: the tree and the statistics of its m nodes. Their values are the probabilities of classes
    (m, K), or the predicted numbers (m, n_outputs). classes: the classes (K,) in the order of the
    probabilities; None for a regressor.
    """
    tree, m, p = nodes.tree, nodes.tree.n_nodes, nodes.tree.n_features
    inner = ~tree.is_leaf
    table = np.zeros(m, dtype=NODE_DTYPE)
    table["left_child"] = tree.left
    table["right_child"] = np.where(inner, tree.left + 1, LEAF)
    table["feature"] = np.where(inner, tree.feature, -2)
    table["threshold"] = np.where(inner, round_down_to_float32(tree.threshold), -2.0)
    table["impurity"] = nodes.compute_impurity(classes is not None)
    table["n_node_samples"] = np.minimum(np.rint(nodes.rows), _MAX_ROWS)
    table["weighted_n_node_samples"] = nodes.rows
    table["missing_go_to_left"] = tree.missing_left
    if classes is None:
        model = _fit_placeholder(DecisionTreeRegressor(), p, None, nodes.value.shape[1])
    else:
        model = _fit_placeholder(DecisionTreeClassifier(), p, classes)
    # A classifier has one output with all probabilities; a regressor an output for each number.
    n_outputs = nodes.value.shape[1]
    inner_tree = SklearnTree(p, np.array([n_outputs], dtype=np.intp), 1)
    values = np.ascontiguousarray(nodes.value[:, None, :])
    if classes is None and n_outputs > 1:
        inner_tree = SklearnTree(p, np.ones(n_outputs, dtype=np.intp), n_outputs)
        values = np.ascontiguousarray(nodes.value[:, :, None])
    depth = int(nodes.depth.max())
    inner_tree.__setstate__({"max_depth": depth, "node_count": m, "nodes": table, "values": values})
    model.tree_ = inner_tree
    return model


def _make_random_forest(formula: Formula) -> Any:
    """Return a fitted RandomForestClassifier or RandomForestRegressor with the trees of a formula.

    Raise ValueError if the forest raises mean probabilities to a power, which scikit-learn's
    forests do not. formula: the trees of the fitted forest, and how their leaf values become
    predictions.
    """
    if formula.power != 1:
        raise ValueError(
            'leaves must be "plain", "refilled", "shrunk" or "honest" for an export to scikit-learn, '
            "which cannot raise mean probabilities to a power, got a forest with the power "
            f"{formula.power:g} (leaves_.power): fit again with one of these"
        )
    p, classes, n_trees = formula.n_features, formula.classes, len(formula.trees)
    if classes is None:
        model = _fit_placeholder(RandomForestRegressor(1), p, None, formula.n_outputs)
    else:
        model = _fit_placeholder(RandomForestClassifier(1), p, classes)
    codes = None if classes is None else np.arange(len(classes), dtype=np.float64)
    model.estimators_ = [
        _make_decision_tree(_NodeStatistics.from_formula(formula, i), codes) for i in range(n_trees)
    ]
    return model.set_params(n_estimators=n_trees)


def _make_boosting(formula: Formula) -> Any:
    """Return a fitted HistGradientBoostingClassifier or -Regressor with the trees of a formula.

    Several predicted numbers give a MultiOutputRegressor with a HistGradientBoostingRegressor for
    each. Raise ValueError if the model predicts several quantiles and sorts them, which
    scikit-learn's estimators do not. formula: the trees of the fitted model, and how their leaf
    values become predictions.
    """
    p, classes, n_trees = formula.n_features, formula.classes, len(formula.trees)
    predictors = [
        _make_predictors(_NodeStatistics.from_formula(formula, i)) for i in range(n_trees)
    ]
    if classes is not None:
        model = _fit_placeholder(HistGradientBoostingClassifier(max_iter=1), p, classes)
        return _set_trees(model, formula.start, predictors)
    if formula.link == "sorted":
        raise ValueError(
            "quantile must be a single number for an export to scikit-learn, which cannot sort several "
            "quantiles: use to_onnx() or to_dict(), or fit a model for each quantile"
        )
    loss = "poisson" if formula.link == "exp" else "squared_error"
    regressor = HistGradientBoostingRegressor(loss=loss, max_iter=1)
    if formula.n_outputs == 1:
        return _set_trees(_fit_placeholder(regressor, p, None), formula.start, predictors)
    several = _fit_placeholder(MultiOutputRegressor(regressor), p, None, formula.n_outputs)
    for k, model in enumerate(several.estimators_):
        _set_trees(model, formula.start[k : k + 1], [[trees[k]] for trees in predictors])
    return several


def _set_trees(model: Any, start: Float64, predictors: list[list[TreePredictor]]) -> Any:
    """Replace the start value and the trees of a histogram boosting estimator, and return it.

    Parameters
    ----------
    model : HistGradientBoostingClassifier or HistGradientBoostingRegressor
        A fitted estimator; it is changed in place.
    start : ndarray of float64, shape (n_outputs,)
        The constant to which the trees are added.
    predictors : list of lists of TreePredictor
        For each boosting round, a list with a tree for each output.
    """
    model._baseline_prediction = start[None, :].copy()
    model._predictors = predictors
    return model.set_params(max_iter=len(predictors))


def _make_predictors(nodes: _NodeStatistics) -> list[TreePredictor]:
    """Return the tree as a list of TreePredictor, scikit-learn's type of boosted trees.

    The list has a copy of the tree for each of the n_outputs outputs: all have the same splits, and
    copy k the leaf values of output k. nodes: the tree and the statistics of its m nodes, whose
    values are (m, n_outputs).
    """
    tree = nodes.tree
    inner = ~tree.is_leaf
    table = np.zeros(tree.n_nodes, dtype=PREDICTOR_RECORD_DTYPE)
    table["left"] = np.where(inner, tree.left, 0)
    table["right"] = np.where(inner, tree.left + 1, 0)
    table["feature_idx"] = tree.feature
    table["num_threshold"] = extend_largest_threshold(tree.threshold)
    table["missing_go_to_left"] = tree.missing_left
    table["is_leaf"] = ~inner
    table["depth"] = nodes.depth
    table["count"] = np.maximum(np.rint(nodes.rows), 1)
    no_sets = np.zeros((0, 8), dtype=np.uint32)
    predictors = []
    for column in nodes.value.T:
        nodes_of_output = table.copy()
        nodes_of_output["value"] = column
        predictors.append(TreePredictor(nodes_of_output, no_sets, no_sets))
    return predictors


def _fit_placeholder(model: Any, p: int, classes: NDArray[Any] | None, n_outputs: int = 1) -> Any:
    """Fit an estimator to artificial rows, so that it has all fitted attributes, and return it.

    The caller replaces its trees afterwards.

    Parameters
    ----------
    model : estimator of scikit-learn
        It is fitted in place.
    p : int
        Number of features.
    classes : ndarray of shape (K,), or None
        The classes, each of which gets two rows; None for a regressor, which gets two rows.
    n_outputs : int, default=1
        Number of target columns of a regressor.

    Returns
    -------
    estimator
        `model`.
    """
    y = np.ones((2, n_outputs) if n_outputs > 1 else 2)
    y = y if classes is None else np.repeat(classes, 2)
    return model.fit(np.zeros((len(y), p)), y)


def _set_feature_names(model: Any, formula: Formula) -> Any:
    """Set `feature_names_in_` of an estimator to the names of a formula, and return the estimator.

    model: the estimator of scikit-learn, which is changed in place. It stays unchanged if the
    formula has no feature names. formula: the fitted model; its `feature_names` may be None.
    """
    if formula.feature_names is not None:
        model.feature_names_in_ = np.array(formula.feature_names, dtype=object)
    return model
