"""What a model file holds of AdaBoost over certree's own trees."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.ensembles.adaboost import AdaBoostTreeClassifier
from certree.ensembles.weak import WeakTree
from certree.files.archive import Shapes
from certree.files.trees_form import arrays_of_trees, shapes_of_trees, trees_of_arrays

_Arrays = dict[str, NDArray[Any]]

# Columns of one number for each round, and those that speak of predictions: one at least.
_OF_ROUNDS = ("estimator_weights", "estimator_errors", "normalizers")
_OF_PREDICTIONS = ("error_bounds", "training_errors")


def shapes_of_adaboost(
    model: AdaBoostTreeClassifier,
    header: dict[str, Any],  # noqa: ARG001 -- naive Bayes has a part of its shapes there
) -> Shapes:
    """Types and shapes of the arrays; number of features and classes are set."""
    return {
        **shapes_of_trees(model._n_outputs),
        **dict.fromkeys(_OF_ROUNDS, ("<f8", ("T",))),
        **dict.fromkeys(_OF_PREDICTIONS, ("<f8", ("max(T, 1)",))),
        "importances": ("<f8", ("T", model.n_features_in_)),
        "start": ("<f8", (model._n_outputs,)),
    }


def parts_of_adaboost(model: AdaBoostTreeClassifier) -> tuple[dict[str, Any], _Arrays]:
    """Take a fitted model apart: what goes into the header, and arrays by their names."""
    if model.trees_ is None:
        raise TypeError(
            f"{type(model).__name__} of other learners than certree's trees holds fitted estimators, "
            "and reading them back means executing code, which no model file of certree asks for: "
            "write it with joblib or skops"
        )
    importances = [one.importances for one in model.estimators_]
    return {}, {
        **arrays_of_trees(model.trees_),
        **{name: getattr(model, f"{name}_") for name in (*_OF_ROUNDS, *_OF_PREDICTIONS)},
        "importances": np.reshape(importances, (-1, model.n_features_in_)),
        "start": model.start_,
    }


def restore_adaboost(
    model: AdaBoostTreeClassifier,
    header: dict[str, Any],  # noqa: ARG001 -- all is in the arrays
    arrays: _Arrays,
) -> None:
    """Check these parts and set the fitted attributes; number of features and classes are set."""
    if model.estimator is not None:
        raise ValueError("estimator must be null: files hold certree's own trees")
    _expect_rounds(arrays)
    for name in (*_OF_ROUNDS, *_OF_PREDICTIONS):
        setattr(model, f"{name}_", arrays[name])
    model.start_ = arrays["start"]
    trees = trees_of_arrays(model, arrays)
    model.estimators_ = [
        WeakTree(tree, _classes(tree.value), importances)
        for tree, importances in zip(trees, arrays["importances"], strict=True)
    ]
    model._set_votes(np.abs(trees.value[trees.root]).max(axis=1, initial=0.0))
    if model.trees_ is None or not np.array_equal(model.trees_.value, trees.value):
        raise ValueError("every node of a tree must vote by its tree's weight for one class")


def _classes(value: NDArray[np.float64]) -> NDArray[np.intp]:
    """The class that each node of a tree votes for."""
    says = value[:, 0] > 0 if value.shape[1] == 1 else value.argmax(axis=1)
    return says.astype(np.intp)


def _expect_rounds(arrays: _Arrays) -> None:
    weights = arrays["estimator_weights"]
    n_rounds = len(weights)
    for name in _OF_PREDICTIONS:
        if len(arrays[name]) != max(n_rounds, 1):
            raise ValueError(f"{name} must have length {max(n_rounds, 1)}, got {len(arrays[name])}")
    for name in ("estimator_errors", *_OF_PREDICTIONS):
        # Sums of shares are rounded.
        if not ((arrays[name] >= 0) & (arrays[name] <= 1 + 1e-9)).all():
            raise ValueError(f"{name} must lie in [0, 1]")
    # Infinite is the weight of a learner that decides alone, which is the last one.
    if not ((weights > 0).all() and np.isfinite(weights[:-1]).all()):
        raise ValueError("estimator_weights must be positive, and finite but for the last")
    for name in ("normalizers", "importances"):
        if not (np.isfinite(arrays[name]).all() and (arrays[name] >= 0).all()):
            raise ValueError(f"{name} must be finite and non-negative")
    if not np.isfinite(arrays["start"]).all():
        raise ValueError("start must be finite")
