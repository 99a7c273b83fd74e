"""Classes of several targets: what is told of one target, told of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from certree.explain.explanation import parts_of
from certree.explain.lanes import Lanes
from certree.interface.arrays import Float64, stack_columns, to_array
from certree.interface.fitted_state import snapshot_method


def likeliest(classes: Any, shares: Any) -> NDArray[Any]:
    """The classes of these shares, ties to the first; of several targets lists of both."""
    if not isinstance(shares, list):
        return classes.take(shares.argmax(axis=1))
    of_each = zip(classes, shares, strict=True)
    return stack_columns([known.take(one.argmax(axis=1)) for known, one in of_each])


def parts_of_columns(
    base: Float64, added: Float64, classes: list[NDArray[Any]], lanes: Lanes, link: str
) -> dict[str, Any]:
    """The fields of an explanation that speak of the targets, of what is added up of each."""
    of_each = zip(lanes.of_each(base, axis=0), lanes.of_each(added), classes, strict=True)
    parts = [parts_of(*one, link) for one in of_each]
    names = [f"y[{k}]={name}" for k, one in enumerate(parts) for name in one["output_names"]]
    return {
        "base": np.concatenate([one["base"] for one in parts]),
        "contributions": np.concatenate([one["contributions"] for one in parts], axis=1),
        "output_names": names,
        "scale": parts[0]["scale"],
    }


@snapshot_method
def score_of_classes(
    self: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Give the accuracy; of several targets the share of rows in which all of them are right.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,), or (n, n_outputs)
        Their classes.
    sample_weight : array-like of shape (n,), or None
        Weight of each row; None: all weigh the same.

    Returns
    -------
    float
        Share, 0 .. 1.

    Raises
    ------
    ValueError
        If y has not as many columns as that of the fit.
    """
    check_is_fitted(self)
    if not self._has_several_targets():
        return float(ClassifierMixin.score(self, X, y, sample_weight))
    answer, truth = self.predict(X), to_array("y", y)
    if truth.shape != answer.shape:
        raise ValueError(f"y must have shape {answer.shape}, got {truth.shape}")
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, truth, dtype=np.float64)
    return share_of_equal_rows(truth, answer, weight)


def share_of_equal_rows(truth: NDArray[Any], answer: NDArray[Any], weight: Float64 | None) -> float:
    """Share of the rows (n, q) in which all is equal."""
    return float(np.average((truth == answer).all(axis=1), weights=weight))
