"""A tree of any model, as pictures and pages show it: what is in its cells, and what is said there."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from certree.certificates.parts.families import CertificateFamily
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
class Cells:
    """The cells of one tree.

    Parameters
    ----------
    explainer : Explainer
        The tree and the words for its rules.
    said : ndarray of shape (m, K)
        What the model predicts in each node: the mean over the rows in it.
    outputs : tuple of length K, or None
        The classes; None: what is predicted is a number.
    scale : {"probability", "raw score", "target"}
        What is predicted: shares of classes, a step of scores, or numbers in units of the target.
    certified : CertificateFamily or None
        Certificates of all nodes, which hold at once; None: no rows certify them.
    """

    explainer: Explainer
    said: Float64
    outputs: tuple[Hashable, ...] | None
    scale: Scale
    certified: CertificateFamily | None = None

    @property
    def tree(self) -> Tree:
        """The tree."""
        return self.explainer.tree

    def shown(self, max_leaves: int) -> ShownNode:
        """The part of the tree that matters most, cut to at most so many leaves."""
        return self.explainer.select_subtree(max_leaves)

    def leader(self, node: int) -> int:
        """The output that a node is named by: of two classes the second, else the likeliest."""
        n_outputs = self.said.shape[1]
        return n_outputs - 1 if n_outputs <= 2 else int(self.said[node].argmax())

    def words(self, node: int) -> str:
        """What a node predicts."""
        k = self.leader(node)
        value = float(self.said[node, k])
        if self.scale == "probability":
            assert self.outputs is not None  # shares are those of classes
            return f"{self.outputs[k]}: {format_percent(value)}"
        number = f"{value:+.3g}" if self.scale == "raw score" else format_four_digits(value)
        return number if self.outputs is None else f"{self.outputs[k]}: {number}"

    @property
    def leaves_below(self) -> NDArray[np.int64]:
        """Number of leaves in each node, itself if it is one: (m,)."""
        return summed(self.tree, self.tree.is_leaf.astype(np.int64))


def summed(tree: Tree, values: NDArray[Any]) -> NDArray[Any]:
    """What leaves have, summed up in every node: (m, ...)."""
    inner, left = np.flatnonzero(~tree.is_leaf), tree.left
    total = values.copy()
    total[inner] = 0
    depth = tree.node_depth[inner]
    # All nodes of a depth at once, the deepest first.
    by_depth = inner[np.argsort(-depth, kind="stable")]
    ends = np.flatnonzero(np.diff(np.sort(-depth))) + 1
    for nodes in np.split(by_depth, ends):
        total[nodes] = total[left[nodes]] + total[left[nodes] + 1]
    return total


def cells_of(model: Any, number: int = 0, X: ArrayLike | None = None) -> Cells:
    """The cells of a model's tree, or of one of its trees.

    Parameters
    ----------
    model : fitted estimator of certree with a tree
        The model.
    number : int
        Which tree of an ensemble.
    X : array-like of shape (n, p), or None
        The rows that are counted in the cells; None: those of the fit, which ensembles do not keep.

    Returns
    -------
    Cells

    Raises
    ------
    TypeError
        If the model has no tree of certree.
    ValueError
        If there is no such tree, or an ensemble comes without rows.
    """
    if isinstance(model, TreeVoteEstimator | BoostedTrees | Forest | AdaBoostTreeClassifier):
        model = get_snapshot(model)
        check_is_fitted(model)
        if isinstance(model, TreeVoteEstimator):
            return _of_vote(model, X)
        if model.trees_ is not None:
            return _of_ensemble(model, number, X)
    raise TypeError(f"model must be an estimator of certree with a tree, got {shortened(model)}")


def _of_vote(model: Any, X: ArrayLike | None) -> Cells:
    check_one_target("a picture of a tree", model)
    explainer: Explainer = model._explainer()
    tree = explainer.tree
    outputs = tuple(model.classes_.tolist()) if is_classifier(model) else None
    width = 1 if outputs is None else len(outputs)
    leaves = np.flatnonzero(tree.is_leaf)
    said = np.zeros((tree.n_nodes, width))
    said[leaves] = model.vote_.outcomes(leaves)[:, :width]
    if X is not None:
        explainer = replace(explainer, rows_per_node=_counted(model, tree, X))
    scale: Scale = "target" if outputs is None else "probability"
    mean = _means(tree, explainer.rows_per_node, said)
    return Cells(explainer, mean, outputs, scale, model._certified_cells())


def _of_ensemble(model: Any, number: int, X: ArrayLike | None) -> Cells:
    if not -len(model.trees_) <= number < len(model.trees_):
        raise ValueError(f"number must be one of {len(model.trees_)} trees, got {number!r}")
    if X is None:
        raise ValueError("an ensemble keeps no rows: give X, whose rows are counted in the cells")
    if is_classifier(model):
        check_one_target("a picture of a tree", model)
    tree = model.trees_.tree(number)
    outputs, scale = None, _scale(model)
    if is_classifier(model):
        # One score of two classes is for the second.
        outputs = tuple(model.classes_.tolist()[-tree.value.shape[1] :])
    rows = _counted(model, tree, X)
    sets = None if model.categories_ is None else model.categories_.names
    mean = _means(tree, rows, tree.value)
    explainer = Explainer.for_full_tree(tree, rows, model._feature_names(), mean.__getitem__, sets)
    return Cells(explainer, mean, outputs, scale)


def _scale(model: Any) -> Scale:
    """What the trees of an ensemble say."""
    if not isinstance(model, Forest):
        return "raw score"
    return "probability" if is_classifier(model) else "target"


def _counted(model: Any, tree: Tree, X: ArrayLike) -> Float64:
    """Rows in each node, (m,)."""
    leaf = tree.route(model._new_rows(X), get_n_threads(model.n_jobs))
    return summed(tree, np.bincount(leaf, minlength=tree.n_nodes).astype(np.float64))


def _means(tree: Tree, rows: Float64, said: Float64) -> Float64:
    """What leaves say, as the mean over the rows of every node, (m, K)."""
    # Leaves without rows count alike where there is nothing else.
    weight = rows + 1e-9 * max(float(rows[0]), 1.0)
    total: Float64 = summed(tree, np.column_stack([weight, weight[:, None] * said]))
    return total[:, 1:] / total[:, :1]
