"""Hold-out certificates: of classifiers that were fixed before the calibration rows were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from certree.certificates.certificate import Certificate, compute_certificate
from certree.interface.arrays import Float64, to_array
from certree.interface.fitted_state import check_one_target, expect_rows
from certree.interface.signatures import validate_arguments
from certree.rows.time_order import Period


@validate_arguments
def hold_out(errors: int, n: int, delta: float = 0.05, share: float = 1.0) -> Certificate:
    """Compute the Clopper-Pearson bound on a classifier's error from the number of its errors.

    Parameters
    ----------
    errors : int
        Number of calibration rows that the classifier predicts wrongly.
    n : int
        Number of calibration rows, which were not used for anything else.
    delta : float
        Probability with which the bound may be below the true error.
    share : float
        Fraction of delta that this certificate uses, in (0, 1].

    Returns
    -------
    Certificate
        Upper bound on the probability that the classifier predicts a new row wrongly.

    Raises
    ------
    ValueError
        If errors or n is out of range.

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

    Bonferroni's inequality: the complexity is the log of the number of classifiers.

    Parameters
    ----------
    errors : sequence of int
        Number of calibration rows that each classifier predicts wrongly.
    n : int
        Number of calibration rows, the same for all classifiers.
    delta : float
        Probability with which the bound may be below the true error.
    share : float
        Fraction of delta that this certificate uses, in (0, 1].
    method : {"hold_out_best", "hold_out"}
        Method that the certificate names; "hold_out" for a single classifier. The bound is the
        same.

    Returns
    -------
    Certificate
        Upper bound on the error on new rows of the classifier with the fewest errors.

    Raises
    ------
    ValueError
        If errors or n is out of range.
    """
    counted = list(errors)
    if n < 1 or not counted or min(counted) < 0 or max(counted) > n:
        raise ValueError(
            f"errors must be integers in 0 .. n with n >= 1, got {errors!r} and n = {n!r}"
        )
    risk = float(min(counted)) / n
    return compute_certificate(method, (risk,), n, math.log(len(counted)), delta, share)


@validate_arguments
def hold_out_mean(
    risk: float, n: int, delta: float = 0.05, share: float = 1.0, *, grouped: bool = False
) -> Certificate:
    """Certify a fixed classifier by its mean loss over rows, or over groups of rows.

    Parameters
    ----------
    risk : float
        Mean of the rows' losses, each between 0 and 1 (such as 1 for an error and else 0); or the
        mean over the groups of each group's mean loss.
    n : int
        Number of rows, or of groups.
    delta : float
        Probability with which the bound may be below the true mean loss.
    share : float
        Fraction of delta that this certificate uses, in (0, 1].
    grouped : bool
        Whether `n` counts groups; the certificate then states it.

    Returns
    -------
    Certificate
        Upper bound on the expected loss of a new row, or expected mean loss of a new group, by
        Hoeffding's inequality.

    Raises
    ------
    ValueError
        If risk or n is out of range.
    """
    if n < 1 or not 0 <= risk <= 1:
        raise ValueError(f"risk must lie in 0 .. 1, and n be at least 1, got {risk!r} and {n!r}")
    return compute_certificate("hold_out_mean", (risk,), n, 0.0, delta, share, grouped=grouped)


def certify_row_errors(
    wrong: NDArray[np.bool_],
    weight: Float64 | None,
    delta: float,
    share: float = 1.0,
    period: Period | None = None,
) -> Certificate:
    """Certify a fixed classifier by its errors on single rows, or on rows in groups.

    Parameters
    ----------
    wrong : ndarray of bool, shape (n,)
        Whether each calibration row counts as an error.
    weight : ndarray of float64, shape (n,), or None
        For rows in groups 1 / (number of calibration rows of the row's group); None: rows are
        independent.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.
    period : Period or None
        Period of the rows; None: they have no times.

    Returns
    -------
    Certificate
        Upper bound on the error on new rows, by the number of errors (Clopper and Pearson, method
        "hold_out"); with groups on the mean over groups of each group's fraction of errors
        (Hoeffding, "hold_out_mean"). If rows of a period may depend on each other, the method is
        "hold_out_period", a martingale bound.
    """
    if weight is None and period is None:
        return hold_out(int(wrong.sum()), len(wrong), delta, share)
    if weight is None:
        risk = float(wrong.sum()) / len(wrong)
        return compute_certificate(
            "hold_out", (risk,), len(wrong), 0.0, delta, share, period=period
        )
    n_groups = round(weight.sum())
    # Rounding may raise the sum above the number of groups.
    risk = min(float(weight @ wrong) / n_groups, 1.0)
    entries = "hold_out_mean", (risk,), n_groups, 0.0, delta, share
    return compute_certificate(*entries, grouped=True, period=period)


def compute_look_fraction(look: Any) -> float:
    """Return the fraction of delta that one of several inspections of the rows uses.

    look: number j = 1, 2, ... of the inspection; None: a single one. Return 6 / (pi^2 j^2), of
    which the sum over all j is 1, so that the bounds of all inspections hold together; None gives
    1. Raises ValueError if `look` is not a positive integer.
    """
    if look is None:
        return 1.0
    if isinstance(look, bool) or not isinstance(look, Integral) or look < 1:
        raise ValueError(f"look must be a positive integer or None, got {look!r}")
    return 6 / (math.pi * int(look)) ** 2


def predict_rows(classifier: Any, X: Any, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Predict rows with a fitted classifier, and check their true classes.

    classifier: with ``predict``; X: rows, (n, p); y: true classes, (n,). Return predicted and true
    classes, both (n,). Raises TypeError if the classifier has no ``predict`` or is a regressor,
    ValueError if it has several targets, there are no rows, y has another shape, or a class that
    the classifier does not have.
    """
    if not hasattr(classifier, "predict"):
        raise TypeError(
            f"classifier must be a fitted classifier with predict, got {shortened(classifier)}: pass "
            "the model itself"
        )
    expect_classifier(classifier)
    truth = to_array("y", y)
    expect_rows(truth.size, "certify a model")
    predicted = np.asarray(classifier.predict(X))
    if truth.ndim != 1 or truth.shape != predicted.shape:
        raise ValueError(
            f"y must have shape {predicted.shape}, a class for each row of X, got {truth.shape}"
        )
    classes = getattr(classifier, "classes_", None)
    if classes is None:
        _check_label_types("y", truth, predicted)
    else:
        expect_known_labels("y", truth, np.asarray(classes))
    return predicted, truth


def expect_classifier(classifier: Any) -> None:
    """Raise an error if a fitted model is a regressor (TypeError) or has several targets (ValueError).

    classifier: any object. Objects that do not state that they are regressors are accepted.
    """
    kind = getattr(classifier, "_estimator_type", None)
    if isinstance(classifier, BaseEstimator):
        kind = get_tags(classifier).estimator_type
    if kind == "regressor":
        raise TypeError(
            f"classifier must predict classes, got the regressor {shortened(classifier)}: fit a "
            "CertifiedBoostedTreesRegressor or CertifiedTreeRegressor, which certify prediction "
            "intervals and mean losses"
        )
    check_one_target("a certificate", classifier)


def expect_known_labels(name: str, labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise ValueError if a label is no class of a model.

    Misspelt labels, and those of another table, would count as errors without a hint.

    name: name of the labels in messages; labels: true classes to check, (n,), possibly none;
    classes: classes of the model, (K,).
    """
    _check_label_types(name, labels, classes)
    came, known = _to_python_objects(labels), _to_python_objects(classes)
    if unknown := [label for label in dict.fromkeys(came) if label not in known]:
        raise ValueError(
            f"{name} must hold classes among {shortened(known)}, got {shortened(unknown)}: correct "
            "these labels, or drop the rows of classes that the fit did not have"
        )


def _check_label_types(name: str, labels: NDArray[Any], known: NDArray[Any]) -> None:
    """Raise ValueError if a label is of a type (text, number, ...) that no known label has.

    name: name of the labels in the message; labels: labels to check, (n,); known: labels of the
    allowed types, such as the classes of a model, (K,).
    """
    kinds = set(map(_get_label_type, _to_python_objects(known)))
    strange = [label for label in _to_python_objects(labels) if _get_label_type(label) not in kinds]
    if strange:
        raise ValueError(
            f"{name} must hold classes of the same type as {shortened(_to_python_objects(known))}, "
            f"got {shortened(strange)}: convert them to that type"
        )


def _to_python_objects(labels: NDArray[Any]) -> list[Any]:
    """Return labels as a list of Python objects; dates are converted to microseconds.

    labels: array of any dtype, (n,). NumPy would return dates in nanoseconds as int.
    """
    values: list[Any] = (labels.astype("M8[us]") if labels.dtype.kind == "M" else labels).tolist()
    return values


def _get_label_type(label: Any) -> type:
    """Return the type that a label counts as: str, numbers.Real, or the label's own type."""
    return next((kind for kind in (str, Real) if isinstance(label, kind)), type(label))
