"""Certificates of classifiers that were fixed before the rows were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.certificate import Certificate, compute_certificate
from certree.interface.arrays import to_array
from certree.interface.fitted_state import check_one_target
from certree.interface.signatures import validate_arguments


@validate_arguments
def hold_out(errors: int, n: int, delta: float = 0.05, share: float = 1.0) -> Certificate:
    """Certify a classifier by rows that were used for nothing else.

    Parameters
    ----------
    errors : int
        Rows that it gets wrong.
    n : int
        Rows.
    delta : float
        Probability with which the promise may fail.
    share : float
        Share of delta that is used up here.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from certree.certificates import hold_out
    >>> round(hold_out(errors=30, n=1000).bound, 4)
    0.0405
    """
    return hold_out_best([errors], n, delta, share, method="hold_out")


@validate_arguments
def hold_out_best(
    errors: Sequence[int],
    n: int,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    method: Literal["hold_out", "hold_out_best"] = "hold_out_best",
) -> Certificate:
    """Certify the best of several classifiers that were all fixed before the rows were seen.

    Parameters
    ----------
    errors : sequence of int
        Rows that each classifier gets wrong.
    n : int
        Rows.
    delta, share : float
        As in `hold_out`.
    method : {"hold_out_best", "hold_out"}
        Row of `METHODS`; the latter for a single classifier.

    Returns
    -------
    Certificate
        That of the first with the fewest errors.
    """
    counted = list(errors)
    if n < 1 or not counted or min(counted) < 0 or max(counted) > n:
        raise ValueError(
            f"errors must be whole numbers in 0 .. n with n >= 1, got {errors!r}, {n!r}"
        )
    risk = float(min(counted)) / n
    return compute_certificate(method, (risk,), n, math.log(len(counted)), delta, share)


@validate_arguments
def hold_out_mean(
    risk: float, n: int, delta: float = 0.05, share: float = 1.0, *, grouped: bool = False
) -> Certificate:
    """Certify a classifier like `hold_out` by its mean loss over rows, or over groups of rows.

    Parameters
    ----------
    risk : float
        Mean loss over the rows, or of the mean losses of the groups, between 0 and 1.
    n : int
        Rows, or groups.
    delta, share : float
        As in `hold_out`.
    grouped : bool
        Whether they are groups.

    Returns
    -------
    Certificate
    """
    if n < 1 or not 0 <= risk <= 1:
        raise ValueError(f"expected a risk in 0 .. 1 of n >= 1 rows, got {risk!r}, {n!r}")
    return compute_certificate("hold_out_mean", (risk,), n, 0.0, delta, share, grouped=grouped)


def compute_look_fraction(look: Any) -> float:
    """Share of delta that one of any number of looks at training samples uses up; they sum to 1."""
    if look is None:
        return 1.0
    if isinstance(look, bool) or not isinstance(look, Integral) or look < 1:
        raise ValueError(f"look must be a whole number from 1 on, got {look!r}")
    return 6 / (math.pi * int(look)) ** 2


def predict_rows(classifier: Any, X: Any, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """What any classifier predicts of some rows, and their classes."""
    if not hasattr(classifier, "predict"):
        raise TypeError(f"classifier must be a fitted classifier, got {shortened(classifier)}")
    check_one_target("a certificate", classifier)
    predicted, truth = np.asarray(classifier.predict(X)), to_array("y", y)
    if truth.ndim != 1 or truth.shape != predicted.shape:
        raise ValueError(f"y must have shape {predicted.shape}, got {truth.shape}")
    classes = getattr(classifier, "classes_", None)
    if classes is None:
        _check_label_types("y", truth, predicted)
    else:
        expect_known_labels("y", truth, np.asarray(classes))
    return predicted, truth


def expect_known_labels(name: str, labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels of another kind than the classes of a model, or of which it knows none.

    All of them would count as errors, and nothing would say that they are those of another table. Some
    that are unknown may well come with new rows.
    """
    _check_label_types(name, labels, classes)
    came, known = _to_python_objects(labels), _to_python_objects(classes)
    if came and set(came).isdisjoint(known):
        raise ValueError(
            f"{name} must hold classes among {shortened(known)}, got {shortened(came)}"
        )


def _check_label_types(name: str, labels: NDArray[Any], known: NDArray[Any]) -> None:
    """Refuse labels that are text where the known ones are numbers, and the like."""
    kinds = set(map(_get_label_type, _to_python_objects(known)))
    strange = [label for label in _to_python_objects(labels) if _get_label_type(label) not in kinds]
    if strange:
        raise ValueError(
            f"{name} must hold classes of one kind with {shortened(_to_python_objects(known))}, "
            f"got {shortened(strange)}"
        )


def _to_python_objects(labels: NDArray[Any]) -> list[Any]:
    """Labels as objects of Python, dates in one unit."""
    values: list[Any] = (labels.astype("M8[us]") if labels.dtype.kind == "M" else labels).tolist()
    return values


def _get_label_type(label: Any) -> type:
    return next((kind for kind in (str, Real) if isinstance(label, kind)), type(label))
