"""The exact spectrum of what trees compute."""

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

from certree._core import spectrum_of_trees
from certree.boolean.bits import VALUES, Bits, Coding
from certree.boolean.spectrum import Spectrum, means_of
from certree.ensembles.adaboost import AdaBoostTreeClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.explain.additive_trees import AdditiveTrees, check_additive, get_additive_trees
from certree.explain.tree_model import TreeModel
from certree.grow.sklearn_tree import from_sklearn, numbers_from_sklearn
from certree.interface.arrays import Float64, Int32, check_column
from certree.interface.fitted_state import get_snapshot
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.tree import LEAF, Tree, Trees

# More terms than this, half a gigabyte, are a slip of the hand.
_MOST_TERMS = 1 << 25

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
    """Expand what trees compute into characters, exactly.

    Parameters
    ----------
    model : fitted estimator, or (Tree, values)
        A tree of certree with its vote, a forest, boosted trees or AdaBoost over its own trees; a
        decision tree of scikit-learn, or a random forest or extra trees of it. Or a `Tree` with values
        (m, K) of its nodes, which are added up along the path of a row: those of leaves, and 0
        elsewhere, or the weights of a posterior over prunings times what the nodes vote for.
    degree : int or None
        Sets of at most so many bits; their coefficients are exact, and no others are enumerated. None:
        all.
    coding : {"auto", "0/1", "-1/+1", "thresholds"}
        What features are; see `Bits`. "auto": of two values if the trees compare nothing but 0.5, or
        nothing but 0; otherwise numbers, with a bit for each threshold. Those bits are not independent,
        and only values and coefficients mean what they say there: squares are means over combinations
        of bits that no row can have.
    mean : array-like of shape (n_bits,), or None
        Means of the features as -1 and 1, for the expansion over independent features of these means;
        None: 0.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The result does not depend on it.

    Returns
    -------
    Spectrum
        Of shares of the classes (K columns), or of a number; of boosted trees and AdaBoost, of the raw
        scores, K or, of one or two classes, one. Forests that raise averaged shares to a power have the
        spectrum of the average before: the same classes, in the same order.

    Raises
    ------
    TypeError
        If the model is none of these.
    ValueError
        If it is not fitted, compares categories, or has too many terms.

    References
    ----------
    O'Donnell, "Analysis of Boolean Functions", 2014, chapters 3 and 8.
    """
    trees, start = added_trees(model)
    if len(trees.categories):
        raise ValueError("categories have no bits of their own: encode them one-hot")
    bits, bit = _bits_of(trees, coding)
    means = None if mean is None else means_of(mean, len(bits))
    masks, coefficients = spectrum_of_trees(
        bit,
        trees.left,
        trees.root,
        trees.value,
        bits.left_is_one,
        np.zeros(len(bits)) if means is None else means,
        len(bits) if degree is None else min(max(int(degree), 0), len(bits)),
        _MOST_TERMS,
        get_n_threads(n_jobs),
    )
    found = Spectrum(masks, coefficients, bits, means)
    if not start.any():
        return found
    constant = np.zeros((1, masks.shape[1]), dtype=np.uint64)
    return found + Spectrum(constant, start[None], bits, means)


# -- what models add up ----------------------------------------------------------------------------


def added_trees(model: Any) -> tuple[Trees, Float64]:
    """Trees whose nodes say what they add for all that they contain, and a start (K,)."""
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], Tree):
        tree, given = model
        value: Float64 = check_column("values", given, "float64", (tree.n_nodes, None))
        return _without_start([tree.saying(value)])
    if isinstance(model, (BoostedTrees, AdaBoostTreeClassifier)) and hasattr(
        model, "_get_additive_trees"
    ):
        return _of_scores(get_additive_trees(check_additive(model)))
    if isinstance(model, TreeModel):
        return _of_formula(get_snapshot(model))
    if isinstance(model, BaseDecisionTree):
        check_is_fitted(model)
        return _of_sklearn([model])
    if isinstance(model, _SKLEARN_FORESTS):
        check_is_fitted(model)
        return _of_sklearn(model.estimators_)
    raise TypeError(
        "model must be a fitted tree, forest or ensemble of boosted trees of certree, a decision "
        f"tree or forest of scikit-learn, or (Tree, values), got {shortened(model)}"
    )


def _without_start(trees: Sequence[Tree]) -> tuple[Trees, Float64]:
    width = trees[0].value.shape[1]
    return Trees.joined(trees, trees[0].n_features, width), np.zeros(width)


def _of_formula(model: Any) -> tuple[Trees, Float64]:
    if hasattr(model, "leaf_estimator"):
        raise TypeError(f"leaves must predict values, not by models of their own, got {model!r}")
    formula = model._build_formula()
    share = 1 / len(formula.trees) if formula.kind == "forest" else 1.0
    trees = []
    for tree in formula.trees:
        value = tree.value
        if formula.link == "shares" and formula.has_second_class_only:
            value = np.hstack([1.0 - value, value])
        trees.append(tree.saying(np.where(tree.is_leaf[:, None], share * value, 0.0)))
    return _without_start(trees)


def _of_scores(summed: AdditiveTrees) -> tuple[Trees, Float64]:
    """Raw scores, which a formula of one class does not say."""
    trees = summed.trees
    return trees.saying(np.where(trees.is_leaf[:, None], trees.value, 0.0)), summed.start


def _of_sklearn(estimators: Sequence[Any]) -> tuple[Trees, Float64]:
    if estimators[0].n_outputs_ > 1:
        raise ValueError("trees must predict one target, got several")
    trees = []
    for one in estimators:
        source = one.tree_
        value = np.zeros((source.node_count, source.value.shape[2]))
        is_leaf = source.children_left == -1
        said = source.value[is_leaf, 0]
        if is_classifier(one):
            said = said / said.sum(axis=1, keepdims=True)
        value[numbers_from_sklearn(source)[is_leaf]] = said / len(estimators)
        trees.append(from_sklearn(one).saying(value))
    return _without_start(trees)


# -- bits ------------------------------------------------------------------------------------------


def _bits_of(trees: Trees, coding: str) -> tuple[Bits, Int32]:
    """What is compared, and which bit each node asks for."""
    inner = np.flatnonzero(trees.left != LEAF)
    feature, threshold = trees.feature[inner], trees.threshold[inner]
    bit = np.zeros(len(trees.left), dtype=np.int32)
    for two_valued, (low, high) in VALUES.items():
        between = (low + high) / 2
        if coding == two_valued or (coding == "auto" and (threshold == between).all()):
            _expect_between(threshold, low, two_valued)
            bit[inner] = feature
            return Bits.two_valued(trees.n_features, two_valued), bit
    pairs = np.column_stack([feature, threshold]) if len(inner) else np.zeros((1, 2))
    known, place = np.unique(pairs, axis=0, return_inverse=True)
    bit[inner] = place.ravel()[: len(inner)]
    names = known[:, 0].astype(np.int32), np.ascontiguousarray(known[:, 1])
    return Bits(*names, "thresholds", trees.n_features), bit


def _expect_between(threshold: Float64, low: float, coding: str) -> None:
    outside = threshold[(threshold < low) | (threshold >= 1.0)]
    if outside.size:
        raise ValueError(
            f"the trees compare {outside[0]:g}, which does not lie between the values of {coding} "
            'features: coding="thresholds" takes any numbers'
        )
