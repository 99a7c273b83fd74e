"""The exact spectrum of a fitted tree, forest or boosted ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import check_is_fitted

from certree._core import compute_tree_spectrum
from certree.boolean.bits import VALUES, Bits, Coding
from certree.boolean.spectrum import Spectrum, check_means
from certree.ensembles.adaboost import AdaBoostTreeClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.explain.additive_trees import AdditiveTrees, check_additive, get_additive_trees
from certree.explain.tree_model import TreeModel
from certree.grow.sklearn_tree import from_sklearn, map_sklearn_nodes
from certree.interface.arrays import Float64, Int32, check_column
from certree.interface.fitted_state import get_snapshot
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.tree import LEAF, Tree, Trees

# Largest number of terms: half a gigabyte.
_MAX_TERMS = 1 << 25

_SKLEARN_FORESTS = (
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)


@validate_arguments
def spectrum(
    model: Any,
    degree: int | None = None,
    *,
    coding: Coding | Literal["auto"] = "auto",
    mean: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Spectrum:
    """Compute the exact spectrum of a tree model: its output as a sum of products of signs of bits.

    A bit is a two-valued feature, or the comparison of a feature with a threshold of the trees.
    Each term of the sum is a coefficient times the product (character) of the signs of a set of
    bits. The sign is 1 if the bit is 0, and -1 if it is 1.

    Parameters
    ----------
    model : fitted estimator, or (Tree, values)
        A tree, forest, boosted ensemble or AdaBoost of certree; or a decision tree, random forest
        or extra trees of scikit-learn. Or a pair of a `Tree` and an array of values of its m nodes,
        (m, K): the output at a row is the sum of the values of all nodes on its path. For a plain
        tree only leaves have values other than 0. For a vote of prunings the value of a node is the
        probability that it is a leaf of a pruning, times its prediction.
    degree : int or None
        Largest number of bits of a set. The coefficients of these sets are exact, and larger sets
        are not enumerated. None: no limit.
    coding : {"auto", "0/1", "-1/+1", "thresholds"}
        Values of the features: the two named values, or any numbers for "thresholds". "auto": two
        values if all thresholds are 0.5, or all are 0; otherwise numbers, with one bit for each
        threshold. With two values, bit j is feature j; its sign is 1 for the value 0 and -1 for the
        value 1 of "0/1", and the value itself of "-1/+1". With "thresholds", bits are the distinct
        pairs of feature and threshold, in the order of features, then of thresholds; the sign is -1
        for values at most the threshold, 1 for others. Bits of thresholds depend on each other:
        values and coefficients are still exact, but squares are means over combinations of bits
        that no row can have.
    mean : array-like of shape (n_bits,), or None
        Means of the signs, strictly between -1 and 1, in the order of the bits, for the expansion
        over independent bits with these means; None: 0. The field `bits` of a result without `mean`
        lists the bits.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The result does not depend on it.

    Returns
    -------
    Spectrum
        The spectrum of the class probabilities (K outputs) or of the predicted number (one output).
        For boosted trees and AdaBoost, of the raw scores: one output for at most two classes, else
        K. A forest that raises averaged probabilities to a power has the spectrum of the averages,
        which order classes in the same way.

    Raises
    ------
    TypeError
        If the model is of another type.
    ValueError
        If the model is not fitted, has categorical splits, has a threshold that does not lie
        between the two values of `coding`, or has more than 2^25 terms.

    References
    ----------
    O'Donnell, "Analysis of Boolean Functions", 2014, chapters 3 and 8.
    """
    trees, start = extract_trees(model)
    if len(trees.categories):
        raise ValueError(
            "model must not have categorical splits: encode categorical features one-hot and fit "
            "again"
        )
    bits, bit = _infer_bits(trees, coding)
    means = None if mean is None else check_means(mean, len(bits))
    masks, coefficients = compute_tree_spectrum(
        bit,
        trees.left,
        trees.root,
        trees.value,
        bits.left_is_one,
        np.zeros(len(bits)) if means is None else means,
        len(bits) if degree is None else min(max(int(degree), 0), len(bits)),
        _MAX_TERMS,
        get_n_threads(n_jobs),
    )
    tree_spectrum = Spectrum(masks, coefficients, bits, means)
    if not start.any():
        return tree_spectrum
    constant = np.zeros((1, masks.shape[1]), dtype=np.uint64)
    return tree_spectrum + Spectrum(constant, start[None], bits, means)


# -- trees of models -------------------------------------------------------------------------------


def extract_trees(model: Any) -> tuple[Trees, Float64]:
    """Return a model as trees and a constant whose sum is its output.

    The K outputs are the class probabilities (K classes, also if K is 2) or the predicted number (K
    is 1). For boosted trees and AdaBoost they are the raw scores: one for at most two classes or a
    numeric target, else one for each class.

    Parameters
    ----------
    model : fitted estimator, or (Tree, values)
        Any model that `spectrum` takes; the output of a pair is the sum of the values of the nodes
        on a row's path.

    Returns
    -------
    trees : Trees
        Trees whose nodes have values, (n_nodes, K). The output of a row is `start` plus the values
        of all nodes on its paths. Inner nodes have values other than 0 only if `model` is a pair.
    start : ndarray of float64, shape (K,)
        The constant.

    Raises
    ------
    TypeError
        If the model is of another type, or has models in its leaves.
    ValueError
        If the model is not fitted, or a tree or forest of scikit-learn predicts several targets.
    """
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], Tree):
        tree, values = model
        value: Float64 = check_column("values", values, "float64", (tree.n_nodes, None))
        return _join_trees([tree.with_value(value)])
    if isinstance(model, (BoostedTrees, AdaBoostTreeClassifier)) and hasattr(
        model, "_get_additive_trees"
    ):
        return _extract_score_trees(get_additive_trees(check_additive(model)))
    if isinstance(model, TreeModel):
        return _extract_certree_tree(get_snapshot(model))
    if isinstance(model, BaseDecisionTree):
        check_is_fitted(model)
        return _extract_sklearn_trees([model])
    if isinstance(model, _SKLEARN_FORESTS):
        check_is_fitted(model)
        return _extract_sklearn_trees(model.estimators_)
    raise TypeError(
        "model must be a fitted tree, forest or ensemble of boosted trees of certree, a decision "
        "tree or forest of scikit-learn, or a pair (Tree, values of its nodes), got "
        f"{shortened(model)}"
    )


def _join_trees(trees: Sequence[Tree]) -> tuple[Trees, Float64]:
    """Join trees with values of K outputs into one `Trees`, and return it with zeros, (K,).

    The zeros are the constant of the model. trees: at least one, all with the same features.
    `Trees` holds the nodes of all trees one after the other. The output of a row is the constant
    plus the values of all nodes on its paths.
    """
    n_outputs = trees[0].value.shape[1]
    return Trees.joined(trees, trees[0].n_features, n_outputs), np.zeros(n_outputs)


def _extract_certree_tree(model: Any) -> tuple[Trees, Float64]:
    """Return a fitted tree model or forest of certree as trees and a constant of zeros, (K,).

    The output of a row is the sum of the values of its leaves: class probabilities, or numbers,
    divided by the number of trees. Inner nodes have the value 0. For two classes, K is 2. Raise
    TypeError if the leaves of the model hold fitted models.
    """
    if hasattr(model, "leaf_estimator"):
        raise TypeError(
            "model must have numbers or probabilities in its leaves, not fitted models, got "
            f"{model!r}: fit a tree without leaf_estimator"
        )
    formula = model._build_formula()
    tree_weight = 1 / len(formula.trees) if formula.kind == "forest" else 1.0
    trees = []
    for tree in formula.trees:
        value = tree.value
        if formula.link == "shares" and formula.has_second_class_only:
            value = np.hstack([1.0 - value, value])
        trees.append(tree.with_value(np.where(tree.is_leaf[:, None], tree_weight * value, 0.0)))
    return _join_trees(trees)


def _extract_score_trees(summed: AdditiveTrees) -> tuple[Trees, Float64]:
    """Return the trees of boosting or AdaBoost, 0 at inner nodes, and its constant, (K,).

    summed: the raw score of the model (before the link function to probabilities or numbers), as a
    constant plus the leaf values of its trees. A row's score is the returned constant plus the
    values of all nodes on its paths; there is one score for at most two classes, else K.
    """
    trees = summed.trees
    return trees.with_value(np.where(trees.is_leaf[:, None], trees.value, 0.0)), summed.start


def _extract_sklearn_trees(estimators: Sequence[Any]) -> tuple[Trees, Float64]:
    """Return fitted decision trees of scikit-learn as certree's trees and a constant of zeros, (K,).

    estimators: the decision trees of a forest, or a single one. The value of a leaf is its class
    probabilities or its number, divided by the number of trees; inner nodes have the value 0. Raise
    ValueError if the trees predict several targets.
    """
    if estimators[0].n_outputs_ > 1:
        raise ValueError(
            f"model must predict one target, got {estimators[0].n_outputs_}: fit one model per "
            "target"
        )
    trees = []
    for estimator in estimators:
        source = estimator.tree_
        value = np.zeros((source.node_count, source.value.shape[2]))
        is_leaf = source.children_left == -1
        leaf_value = source.value[is_leaf, 0]
        if is_classifier(estimator):
            leaf_value = leaf_value / leaf_value.sum(axis=1, keepdims=True)
        value[map_sklearn_nodes(source)[is_leaf]] = leaf_value / len(estimators)
        trees.append(from_sklearn(estimator).with_value(value))
    return _join_trees(trees)


# -- bits ------------------------------------------------------------------------------------------


def _infer_bits(trees: Trees, coding: str) -> tuple[Bits, Int32]:
    """Find the bits on which trees split, and the bit that each node tests.

    Parameters
    ----------
    trees : Trees
        The trees, of m nodes together.
    coding : {"auto", "0/1", "-1/+1", "thresholds"}
        Values of the features: two values, or any numbers for "thresholds". "auto": two values if
        all thresholds are their middle (0.5 or 0), or there is no split; else "thresholds".

    Returns
    -------
    bits : Bits
        One bit for each feature of two values, or for each distinct pair of feature and threshold.
    node_bit : ndarray of int32, shape (m,)
        Number of the bit that each inner node tests; 0 for leaves.

    Raises
    ------
    ValueError
        If the coding has two values, and a threshold does not separate them.
    """
    inner = np.flatnonzero(trees.left != LEAF)
    feature, threshold = trees.feature[inner], trees.threshold[inner]
    node_bit = np.zeros(len(trees.left), dtype=np.int32)
    for two_valued, (low, high) in VALUES.items():
        middle = (low + high) / 2
        if coding == two_valued or (coding == "auto" and (threshold == middle).all()):
            _expect_thresholds_between(threshold, low, two_valued)
            node_bit[inner] = feature
            return Bits.two_valued(trees.n_features, two_valued), node_bit
    pairs = np.column_stack([feature, threshold]) if len(inner) else np.zeros((1, 2))
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    node_bit[inner] = place.ravel()[: len(inner)]
    bit_feature, bit_threshold = distinct[:, 0].astype(np.int32), distinct[:, 1]
    bits = Bits(bit_feature, np.ascontiguousarray(bit_threshold), "thresholds", trees.n_features)
    return bits, node_bit


def _expect_thresholds_between(threshold: Float64, low: float, coding: str) -> None:
    """Raise ValueError if a threshold, (n_splits,), does not separate the two values of a coding.

    A threshold separates them if low <= threshold < 1, as values up to the threshold go left. low:
    the smaller value, 0 or -1 (the larger is 1); coding: "0/1" or "-1/+1", for the message.
    """
    outside = threshold[(threshold < low) | (threshold >= 1.0)]
    if outside.size:
        raise ValueError(
            f"coding={coding!r} needs thresholds between its two values, got a model with the "
            "threshold "
            f"{outside[0]:g}: use "
            'coding="thresholds"'
        )
