"""One tree of a model with the prediction of each node, as figures and the report show it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from certree.certificates.subsets.node_bounds import NodeBounds
from certree.ensembles import AdaBoostTreeClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.ensembles.forest import Forest
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain.path import Explainer, ShownNode
from certree.interface.arrays import Float64
from certree.interface.fitted_state import check_one_target, get_snapshot
from certree.interface.formatting import format_four_digits, format_percent, shorten_label
from certree.interface.threads import get_n_threads

if TYPE_CHECKING:
    from certree.tree import Tree

Scale = Literal["probability", "raw score", "target"]


@dataclass(frozen=True, slots=True, eq=False)
class TreeSummary:
    """A tree of a model with the prediction of each of its m nodes, for figures and the report.

    `summarize_tree` makes it.

    Parameters
    ----------
    explainer : Explainer
        The tree (`tree`), the number of rows in each node (`rows_per_node`), the names of the
        features, and the weights of the prunings (trees with some nodes turned into leaves), from
        which rules and subtrees are made.
    predictions : ndarray of float64, shape (m, K)
        Prediction of each node: the mean over the leaves below it, weighted by their rows. The
        columns are class probabilities or scores, or the only number.
    outputs : tuple of length K, or None
        The classes of the columns; only the second class if two classes have a single score. None:
        the prediction is one number.
    scale : {"probability", "raw score", "target"}
        Unit of the predictions: class probabilities, leaf values of a boosting round, or numbers in
        units of the target.
    bounds : NodeBounds or None
        For each node, an upper bound on the model's error for new rows that reach the node, or why
        there is none. All hold together with probability 1 - delta. None: the model is not
        certified.
    """

    explainer: Explainer
    predictions: Float64
    outputs: tuple[Hashable, ...] | None
    scale: Scale
    bounds: NodeBounds | None = None

    @property
    def tree(self) -> Tree:
        """The summarized tree, `explainer.tree`.

        Its attributes, such as `feature`, `threshold` and `left`, have an entry for each of m
        nodes.
        """
        return self.explainer.tree

    def select_branches(self, max_leaves: int) -> ShownNode:
        """Return the root of the most important subtree that has at most `max_leaves` leaves.

        The subtree contains the root of the tree; `children` of each ShownNode holds the left and
        the right child, or is empty at a leaf of the subtree. Nodes get their children in the order
        of their rows times the posterior probability that a pruning (the tree with some nodes made
        leaves) splits them, which is 1 in an ensemble. Raise ValueError if `max_leaves` is below 1.
        """
        return self.explainer.select_subtree(max_leaves)

    def get_main_output(self, node: int) -> int:
        """Return the column of `predictions`, (m nodes, K outputs), that sets the colour of a node.

        With two classes it is the column of the second class; with more, that of the most probable
        class at the node; else it is the only column. node: index of the node.
        """
        n_outputs = self.predictions.shape[1]
        return n_outputs - 1 if n_outputs <= 2 else int(self.predictions[node].argmax())

    def format_prediction(self, node: int) -> str:
        """Return the main prediction of a node as text, such as "yes: 70 %" or "12.5".

        node: index of the node. The text begins with the class, if the model has classes: the
        second of two, else the most probable one at the node. If the leaves have names of rules, such
        as R3 (the model is one tree of at most 64 leaves, not a vote), it is always the most probable
        one, which the rule predicts.
        """
        k = self.get_main_output(node)
        if self.explainer.numbers is not None:
            k = int(self.predictions[node].argmax())
        value = float(self.predictions[node, k])
        if self.scale == "probability":
            assert self.outputs is not None  # Probabilities are those of classes.
            return f"{shorten_label(str(self.outputs[k]))}: {format_percent(value)}"
        number = f"{value:+.3g}" if self.scale == "raw score" else format_four_digits(value)
        return (
            number if self.outputs is None else f"{shorten_label(str(self.outputs[k]))}: {number}"
        )

    @property
    def n_leaves_below(self) -> NDArray[np.int64]:
        """Number of leaves in the subtree of each node, (m,) int64; 1 for a leaf."""
        return sum_leaf_values(self.tree, self.tree.is_leaf.astype(np.int64))


def sum_leaf_values(tree: Tree, values: NDArray[Any]) -> NDArray[Any]:
    """Return for every node the sum of the values of the leaves in its subtree.

    Parameters
    ----------
    tree : Tree
        Tree with m nodes.
    values : ndarray of shape (m, ...)
        Values of the nodes, with any further axes; those of nodes with children are ignored.

    Returns
    -------
    ndarray of shape (m, ...)
        The sum of each node; a leaf has its own value. `values` are not changed.
    """
    inner, left = np.flatnonzero(~tree.is_leaf), tree.left
    total = values.copy()
    total[inner] = 0
    depth = tree.node_depth[inner]
    # Nodes of one depth are summed together, the deepest first.
    by_depth = inner[np.argsort(-depth, kind="stable")]
    ends = np.flatnonzero(np.diff(np.sort(-depth))) + 1
    for nodes in np.split(by_depth, ends):
        total[nodes] = total[left[nodes]] + total[left[nodes] + 1]
    return total


def summarize_tree(model: Any, number: int = 0, X: ArrayLike | None = None) -> TreeSummary:
    """Return a tree of a model with the prediction and the number of rows of each node.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    model : fitted estimator of certree with a tree
        A model that votes over the prunings of one tree, a forest, boosted trees, or AdaBoost with
        trees of certree.
    number : int, default=0
        Index of the tree in an ensemble; negative numbers count from the last tree.
    X : array-like of shape (n, p), or None
        Rows to count in the nodes; None: the training rows, whose counts only single trees keep.

    Returns
    -------
    TreeSummary
        The tree, with the number of rows in each node and its prediction: the mean over the leaves
        below, weighted by their rows. For a certified tree it also has bounds on the error of each
        node.

    Raises
    ------
    TypeError
        If the model is not such an estimator.
    ValueError
        If `number` is out of range, X is None for an ensemble, or a classifier has several targets.
    NotFittedError
        If the model is not fitted.
    """
    if isinstance(model, TreeVoteEstimator | BoostedTrees | Forest | AdaBoostTreeClassifier):
        model = get_snapshot(model)
        check_is_fitted(model)
        if isinstance(model, TreeVoteEstimator):
            return _summarize_vote(model, X)
        if model.trees_ is not None:
            return _summarize_ensemble_tree(model, number, X)
    raise TypeError(
        "model must be an estimator of certree that consists of trees, such as PACBayesTreeClassifier, "
        f"a forest or boosted trees, got {shortened(model)}"
    )


def _summarize_vote(model: Any, X: ArrayLike | None) -> TreeSummary:
    """Return the summary of the only tree of a model that votes over the tree's prunings.

    A pruning is the tree with some nodes made leaves. The prediction of a leaf is that of the vote
    of all prunings, weighted by their posterior, not that of the full tree. model: a fitted
    TreeVoteEstimator, the base class of models whose prunings vote. X: rows (n, p) to count in the
    nodes; None: the training rows. A certified tree also has bounds on the error of each node.
    Raise ValueError if the model has several targets.
    """
    check_one_target("a picture of a tree", model)
    explainer: Explainer = model._make_explainer()
    tree = explainer.tree
    outputs = tuple(model.classes_.tolist()) if is_classifier(model) else None
    n_outputs = 1 if outputs is None else len(outputs)
    leaves = np.flatnonzero(tree.is_leaf)
    leaf_predictions = np.zeros((tree.n_nodes, n_outputs))
    leaf_predictions[leaves] = model.vote_.outcomes(leaves)[:, :n_outputs]
    if X is not None:
        explainer = replace(explainer, rows_per_node=_count_rows(model, tree, X))
    scale: Scale = "target" if outputs is None else "probability"
    predictions = _average_leaves(tree, explainer.rows_per_node, leaf_predictions)
    return TreeSummary(explainer, predictions, outputs, scale, model._bound_nodes())


def _summarize_ensemble_tree(model: Any, number: int, X: ArrayLike | None) -> TreeSummary:
    """Return the summary of one tree of a forest, boosted trees or AdaBoost.

    Parameters
    ----------
    model : fitted ensemble of certree
        The model.
    number : int
        Index of the tree; negative numbers count from the last tree.
    X : array-like of shape (n, p), or None
        Rows to count in the nodes. They are needed, as ensembles do not keep the counts of the fit.

    Returns
    -------
    TreeSummary
        The tree, with the number of rows of X in each node, and its prediction: the mean of the
        leaf values below, weighted by their rows.

    Raises
    ------
    ValueError
        If X is None, there is no such tree, or a classifier has several targets.
    """
    if not -len(model.trees_) <= number < len(model.trees_):
        raise ValueError(
            f"number must lie in {-len(model.trees_)} .. {len(model.trees_) - 1}, as the model has "
            f"{len(model.trees_)} trees, got {number!r}"
        )
    if X is None:
        raise ValueError(
            "X must be given for an ensemble, which does not keep the numbers of training rows in its "
            "nodes: pass rows to count there, such as X=X_train"
        )
    if is_classifier(model):
        check_one_target("a picture of a tree", model)
    tree = model.trees_.tree(number)
    outputs, scale = None, _get_leaf_scale(model)
    if is_classifier(model):
        # With two classes there may be one score, which is that of the second class.
        outputs = tuple(model.classes_.tolist()[-tree.value.shape[1] :])
    rows = _count_rows(model, tree, X)
    encoded = model._get_encoded_categories()
    categories = None if encoded is None else encoded.names
    predictions = _average_leaves(tree, rows, tree.value)
    explainer = Explainer.for_full_tree(
        *(tree, rows, model._encoded_names(), predictions.__getitem__, categories),
        model._date_formats,
    )
    return TreeSummary(explainer, predictions, outputs, scale)


def _get_leaf_scale(model: Any) -> Scale:
    """Return the unit of the leaf values of an ensemble's trees: the `scale` of `TreeSummary`.

    It is "raw score" for boosted trees and AdaBoost, whose trees are summed to scores; for a forest
    it is "probability" (classifier) or "target" (regressor, in units of the target). model: a
    fitted ensemble of certree.
    """
    if not isinstance(model, Forest):
        return "raw score"
    return "probability" if is_classifier(model) else "target"


def _count_rows(model: Any, tree: Tree, X: ArrayLike) -> Float64:
    """Return the number of rows that pass through each node of a tree.

    Parameters
    ----------
    model : fitted estimator of certree
        The model of the tree, which encodes X and sets the number of threads.
    tree : Tree
        One of the trees of the model, with m nodes.
    X : array-like of shape (n, p)
        The rows to count.

    Returns
    -------
    ndarray of float64, shape (m,)
        Each row counts as 1, at its leaf and at all nodes above; the root has n.
    """
    leaf = tree.route(model._encode_new_rows(X), get_n_threads(model.n_jobs))
    return sum_leaf_values(tree, np.bincount(leaf, minlength=tree.n_nodes).astype(np.float64))


def _average_leaves(tree: Tree, rows: Float64, leaf_predictions: Float64) -> Float64:
    """Return the mean prediction of the leaves in each node's subtree, (m, K).

    Parameters
    ----------
    tree : Tree
        Tree with m nodes.
    rows : ndarray of float64, shape (m,)
        Rows in each node, the weights of the leaves; a leaf without rows has almost no weight. The
        leaves below a node without rows count equally.
    leaf_predictions : ndarray of float64, shape (m, K)
        Predictions of leaves; those of other nodes are ignored.
    """
    # The small constant gives leaves equal weights below a node without rows.
    weight = rows + 1e-9 * max(float(rows[0]), 1.0)
    total: Float64 = sum_leaf_values(
        tree, np.column_stack([weight, weight[:, None] * leaf_predictions])
    )
    return total[:, 1:] / total[:, :1]
