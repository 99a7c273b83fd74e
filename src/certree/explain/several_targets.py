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
    """Return the most probable class of each row, (n,) or (n, q); ties go to the first class.

    Parameters
    ----------
    classes : ndarray of shape (K,), or list of q such arrays
        Classes of the target, or of each of several targets.
    probabilities : ndarray of shape (n, K), or list of q such arrays
        Probabilities of the classes.
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
    """Do `build_explanation_fields` for classes of several targets; outputs are named "y[0]=class"."""
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
    """Compute the accuracy; with several targets, all of them must be right in a row.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,), or (n, n_outputs)
        Their classes.
    sample_weight : array-like of shape (n,), or None
        Weight of each row; None: all rows have the same weight.

    Returns
    -------
    float
        Fraction of right rows, 0 .. 1.

    Raises
    ------
    ValueError
        If y has not as many columns as that of the fit.
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
    """Return the (weighted) fraction of rows, (n, q), in which all targets are equal."""
    return float(np.average((truth == predicted).all(axis=1), weights=weight))
