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

from certree.certificates.subsets.families import CertificateFamily
from certree.ensembles import AdaBoostTreeClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.ensembles.forest import Forest
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain.path import Explainer, ShownNode
from certree.interface.arrays import Float64
from certree.interface.fitted_state import check_one_target, get_snapshot
from certree.interface.formatting import format_four_digits, format_percent
from certree.interface.threads import get_n_threads

if TYPE_CHECKING:
    from certree.tree import Tree

Scale = Literal["probability", "raw score", "target"]


@dataclass(frozen=True, slots=True, eq=False)
class TreeSummary:
    """A tree with the mean prediction of the rows in each of its m nodes.

    Parameters
    ----------
    explainer : Explainer
        The tree, the rows in each node, and the texts of its rules.
    predictions : ndarray of shape (m, K)
        Prediction of each node: the mean of its leaves, weighted by their rows.
    outputs : tuple of length K, or None
        The classes; None: the prediction is one number.
    scale : {"probability", "raw score", "target"}
        Meaning of the predictions: class probabilities, leaf values of a boosting round, or numbers in
        units of the target.
    certificates : CertificateFamily or None
        Certificates of all nodes, by node, which hold together; None: the model has none.
    """

    explainer: Explainer
    predictions: Float64
    outputs: tuple[Hashable, ...] | None
    scale: Scale
    certificates: CertificateFamily | None = None

    @property
    def tree(self) -> Tree:
        """The tree."""
        return self.explainer.tree

    def select_branches(self, max_leaves: int) -> ShownNode:
        """Return the root of the most important part of the tree, with at most `max_leaves` leaves."""
        return self.explainer.select_subtree(max_leaves)

    def get_main_output(self, node: int) -> int:
        """Return the index of the output shown for a node.

        It is the second of two classes, the most probable of more, or the only output.
        """
        n_outputs = self.predictions.shape[1]
        return n_outputs - 1 if n_outputs <= 2 else int(self.predictions[node].argmax())

    def format_prediction(self, node: int) -> str:
        """Return the prediction of a node as text, such as "yes: 70 %"."""
        k = self.get_main_output(node)
        value = float(self.predictions[node, k])
        if self.scale == "probability":
            assert self.outputs is not None  # Probabilities are those of classes.
            return f"{self.outputs[k]}: {format_percent(value)}"
        number = f"{value:+.3g}" if self.scale == "raw score" else format_four_digits(value)
        return number if self.outputs is None else f"{self.outputs[k]}: {number}"

    @property
    def n_leaves_below(self) -> NDArray[np.int64]:
        """Number of leaves below each node; 1 for a leaf: (m,)."""
        return sum_leaf_values(self.tree, self.tree.is_leaf.astype(np.int64))


def sum_leaf_values(tree: Tree, values: NDArray[Any]) -> NDArray[Any]:
    """Return for every node the sum of the values of the leaves below it.

    Parameters
    ----------
    tree : Tree
        Tree with m nodes.
    values : ndarray of shape (m, ...)
        Values of the nodes; those of inner nodes are ignored.

    Returns
    -------
    ndarray of shape (m, ...)
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
    """Summarize the tree of a model, or one tree of an ensemble.

    Parameters
    ----------
    model : fitted estimator of certree with a tree
        The model.
    number : int
        Index of the tree in an ensemble.
    X : array-like of shape (n, p), or None
        Rows to count in the nodes; None: the training rows, whose counts only single trees keep.

    Returns
    -------
    TreeSummary

    Raises
    ------
    TypeError
        If the model is not an estimator of certree with a tree.
    ValueError
        If `number` is out of range, or X is None for an ensemble.
    """
    if isinstance(model, TreeVoteEstimator | BoostedTrees | Forest | AdaBoostTreeClassifier):
        model = get_snapshot(model)
        check_is_fitted(model)
        if isinstance(model, TreeVoteEstimator):
            return _summarize_vote(model, X)
        if model.trees_ is not None:
            return _summarize_ensemble_tree(model, number, X)
    raise TypeError(f"model must be an estimator of certree with a tree, got {shortened(model)}")


def _summarize_vote(model: Any, X: ArrayLike | None) -> TreeSummary:
    """Summarize the tree of a vote over prunings; each leaf has the prediction of the vote."""
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
    return TreeSummary(explainer, predictions, outputs, scale, model._certify_nodes())


def _summarize_ensemble_tree(model: Any, number: int, X: ArrayLike | None) -> TreeSummary:
    """Summarize one tree of a forest, boosted trees or AdaBoost, with the rows of X in its nodes."""
    if not -len(model.trees_) <= number < len(model.trees_):
        raise ValueError(
            f"number must be the index of one of {len(model.trees_)} trees, got {number!r}"
        )
    if X is None:
        raise ValueError(
            "X must be given for an ensemble: its rows are counted in the nodes of the tree"
        )
    if is_classifier(model):
        check_one_target("a picture of a tree", model)
    tree = model.trees_.tree(number)
    outputs, scale = None, _get_leaf_scale(model)
    if is_classifier(model):
        # With two classes there may be one score, which is that of the second class.
        outputs = tuple(model.classes_.tolist()[-tree.value.shape[1] :])
    rows = _count_rows(model, tree, X)
    categories = None if model.categories_ is None else model.categories_.names
    predictions = _average_leaves(tree, rows, tree.value)
    explainer = Explainer.for_full_tree(
        tree, rows, model._feature_names(), predictions.__getitem__, categories
    )
    return TreeSummary(explainer, predictions, outputs, scale)


def _get_leaf_scale(model: Any) -> Scale:
    """Return the meaning of the leaf values of an ensemble's trees; see `TreeSummary`."""
    if not isinstance(model, Forest):
        return "raw score"
    return "probability" if is_classifier(model) else "target"


def _count_rows(model: Any, tree: Tree, X: ArrayLike) -> Float64:
    """Return the number of rows of X, encoded as the model does, in each node of a tree, (m,)."""
    leaf = tree.route(model._encode_new_rows(X), get_n_threads(model.n_jobs))
    return sum_leaf_values(tree, np.bincount(leaf, minlength=tree.n_nodes).astype(np.float64))


def _average_leaves(tree: Tree, rows: Float64, leaf_predictions: Float64) -> Float64:
    """Return the mean prediction of the leaves below each node, weighted by their rows, (m, K)."""
    # The small constant gives leaves equal weights below a node without rows.
    weight = rows + 1e-9 * max(float(rows[0]), 1.0)
    total: Float64 = sum_leaf_values(
        tree, np.column_stack([weight, weight[:, None] * leaf_predictions])
    )
    return total[:, 1:] / total[:, :1]
