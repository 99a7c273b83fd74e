"""What a model file holds of boosted trees."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.ensembles.boosting import BoostedTrees
from certree.files.archive import Shapes
from certree.files.trees_form import arrays_of_trees, shapes_of_trees, trees_of_arrays

_Arrays = dict[str, NDArray[Any]]

# What the header has of boosted trees.
ENTRIES_OF_BOOSTING = frozenset({"n_rounds", "seed", "thresholds"})


def _n_outputs(model: BoostedTrees) -> int:
    return int(model.n_classes_) if is_classifier(model) and model.n_classes_ > 2 else 1


def shapes_of_boosting(
    model: BoostedTrees,
    header: dict[str, Any],  # noqa: ARG001 -- naive Bayes has a part of its shapes there
) -> Shapes:
    """Types and shapes of the arrays; number of features and classes are set."""
    return {
        **shapes_of_trees(_n_outputs(model)),
        "start": ("<f8", (_n_outputs(model),)),
        "importances": ("<f8", (model.n_features_in_,)),
    }


def parts_of_boosting(model: BoostedTrees) -> tuple[dict[str, Any], _Arrays]:
    """Take a fitted model apart: what goes into the header, and arrays by their names."""
    header = {
        "n_rounds": model.n_iter_,
        "seed": model._seed,
        "thresholds": list(model.thresholds_),
    }
    columns = arrays_of_trees(model.trees_)
    return header, {**columns, "start": model.start_, "importances": model._importances}


def _is_threshold(number: Any) -> bool:
    """Whether it may be a number of thresholds."""
    return number is None or (type(number) is int and number >= 1)


def restore_boosting(model: BoostedTrees, header: dict[str, Any], arrays: _Arrays) -> None:
    """Check these parts and set the fitted attributes; number of features and classes are set."""
    model.trees_ = trees_of_arrays(model, arrays)
    for name in ("n_rounds", "seed"):
        if type(header[name]) is not int or header[name] < 0:
            raise ValueError(f"{name} must be a whole number >= 0, got {header[name]!r}")
    thresholds = header["thresholds"]
    if not (isinstance(thresholds, list) and thresholds and all(map(_is_threshold, thresholds))):
        raise ValueError(f"thresholds must hold whole numbers >= 1 or null, got {thresholds!r}")
    model.n_iter_, model._seed = header["n_rounds"], header["seed"]
    model.thresholds_ = tuple(thresholds)
    if len(model.trees_) != model.n_iter_:
        raise ValueError(f"expected {model.n_iter_} trees, got {len(model.trees_)}")
    model.start_, model._importances = arrays["start"], arrays["importances"]
    if not np.isfinite(model.start_).all():
        raise ValueError("start must be finite")
    if not (np.isfinite(model._importances).all() and (model._importances >= 0).all()):
        raise ValueError("importances must be finite and non-negative")
    model._settings(model.thresholds_), model._loss()
