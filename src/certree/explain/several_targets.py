"""Classification with several targets: predicted classes, explanations and the score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from certree.explain.explanation import build_explanation_fields
from certree.explain.output_groups import OutputGroups
from certree.interface.arrays import Float64, stack_columns, to_array
from certree.interface.fitted_state import snapshot_method


def select_classes(classes: Any, probabilities: Any) -> NDArray[Any]:
    """Return the class of the largest probability in each row; ties go to the first class.

    Parameters
    ----------
    classes : ndarray of shape (K,), or list of q such arrays
        Classes of the target, or of each of several targets.
    probabilities : ndarray of shape (n, K), or list of q such arrays
        Probabilities of the classes of the target, or of each target, in n rows.

    Returns
    -------
    ndarray of shape (n,), or (n, q) if lists were passed
        Classes, one column for each target.
    """
    if not isinstance(probabilities, list):
        return classes.take(probabilities.argmax(axis=1))
    targets = zip(classes, probabilities, strict=True)
    return stack_columns([labels.take(p.argmax(axis=1)) for labels, p in targets])


def build_multioutput_explanation_fields(
    base: Float64,
    contributions: Float64,
    classes: list[NDArray[Any]],
    groups: OutputGroups,
    link: str,
) -> dict[str, Any]:
    """Return the arguments of `Explanation` that depend on the target, for classes of several targets.

    Parameters
    ----------
    base : ndarray of float64, shape (n_outputs,)
        Output before any feature is taken into account, for instance the mean output.
    contributions : ndarray of float64, shape (n, n_outputs, p)
        Contributions of features to the outputs.
    classes : list of ndarray
        Classes of each target.
    groups : OutputGroups
        Number of outputs of each target; outputs of a target are adjacent, in the order of
        `classes`.
    link : str
        The function that turns the sum into a prediction: "logistic" or "softmax" (the outputs are
        raw scores of classes), "shares" (of forests) or "identity" (the outputs are probabilities).

    Returns
    -------
    dict
        "base", "contributions", "output_names", which are "y[0]=class" and so on, and "scale";
        outputs of all targets follow each other.
    """
    targets = zip(groups.split(base, axis=0), groups.split(contributions), classes, strict=True)
    fields = [build_explanation_fields(*target, link) for target in targets]
    names = [f"y[{k}]={name}" for k, target in enumerate(fields) for name in target["output_names"]]
    return {
        "base": np.concatenate([target["base"] for target in fields]),
        "contributions": np.concatenate([target["contributions"] for target in fields], axis=1),
        "output_names": names,
        "scale": fields[0]["scale"],
    }


@snapshot_method
def score_classifier(
    self: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the accuracy of a fitted classifier; with several targets, a row is right if all are.

    Classifiers use this function as their method `score`. X: rows, (n, p); y: their classes, (n,),
    or (n, q) for q targets, in the order of the fit; self: the classifier; sample_weight: weight of
    each row, (n,), or None for equal weights. Return the weighted fraction of rows whose predicted
    classes are all right.
    """
    check_is_fitted(self)
    if not self._has_several_targets():
        return float(ClassifierMixin.score(self, X, y, sample_weight))
    predicted, truth = self.predict(X), to_array("y", y)
    if truth.shape != predicted.shape:
        raise ValueError(f"y must have shape {predicted.shape}, got {truth.shape}")
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, truth, dtype=np.float64)
    return compute_subset_accuracy(truth, predicted, weight)


def compute_subset_accuracy(
    truth: NDArray[Any], predicted: NDArray[Any], weight: Float64 | None
) -> float:
    """Return the fraction of rows in which the predictions of all targets are equal to the truth.

    truth, predicted: true and predicted classes, (n, q) for q targets; weight: row weights, (n,),
    or None for equal weights. With weights it is the weighted fraction.
    """
    return float(np.average((truth == predicted).all(axis=1), weights=weight))
