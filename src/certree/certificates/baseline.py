"""Losses of constant predictions on the rows by which a model is scored or certified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.interface.formatting import shorten_label
from certree.interface.signatures import validate_settings


@dataclass(frozen=True, slots=True)
class Baseline:
    """The loss of a prediction that is the same for all rows.

    Parameters
    ----------
    name : str
        What is predicted, such as "always No".
    value : float
        Its loss on the rows by which the model is scored or certified, in the units of the model's
        score or bound. It is at least 0.

    Raises
    ------
    ValueError
        If `value` is negative or not finite.
    """

    name: str
    value: float

    def __post_init__(self) -> None:
        validate_settings(self)
        if not 0 <= self.value < np.inf:
            raise ValueError(f"value must be finite and at least 0, got {self.value!r}")


def find_most_frequent(weights: Mapping[Any, float], total: float | None = None) -> Baseline:
    """Return the error of always predicting the most frequent class.

    Parameters
    ----------
    weights : mapping from class to float
        Number, or total weight, of the rows of each class that may be predicted; at least one
        class.
    total : float or None
        Number, or total weight, of all rows, also of those of other classes; None: the sum of
        `weights`.

    Returns
    -------
    Baseline
        The most frequent class, and the weight of the rows of all other classes as a fraction of
        `total`. If several classes are equally frequent, it is the first in the order of their
        texts.
    """
    total = fsum(weights.values()) if total is None else total
    label, weight = min(weights.items(), key=lambda entry: (-entry[1], str(entry[0])))
    return Baseline(f"always {shorten_label(str(label))}", max(total - weight, 0.0) / total)


def compute_class_baseline(
    codes: NDArray[np.integer[Any]], classes: NDArray[Any], weight: Float64 | None = None
) -> Baseline:
    """Return the error of always predicting the most frequent class of some rows.

    The result has the class, and as its error the weight of all other rows as a fraction of the
    total weight. codes: position of each row's class in `classes`, (n,), at least one row; a larger
    number stands for a class that no constant predicts; classes: classes that may be predicted,
    (K,); weight: weight of each row, (n,); None: 1. The result does not depend on the order of the
    rows.
    """
    sums: list[float] = np.bincount(codes, minlength=len(classes)).tolist()
    if weight is not None:
        by_code = weight[np.argsort(codes, kind="stable")]
        sums = [*map(fsum, np.split(by_code, np.cumsum(sums)[:-1].astype(np.intp)))]
    known = dict(zip(map(str, classes), sums[: len(classes)], strict=True))
    return find_most_frequent(known, fsum(sums))


def compute_median_baseline(y: Float64, limit: float, weight: Float64 | None = None) -> Baseline:
    """Return the mean absolute error of always predicting the median of the targets of some rows.

    y: targets, (n,), at least one row; limit: absolute error at which larger ones are clipped, in
    units of the target; weight: weight of each row, (n,); None: 1. If there are several medians,
    the smallest is predicted. The result is in units of the target, and does not depend on the
    order of the rows.
    """
    weight = np.ones(len(y)) if weight is None else weight
    order = np.lexsort((weight, y))
    total = fsum(weight)
    # The first target up to which rows of half of the total weight lie.
    place = int(np.searchsorted(np.cumsum(weight[order]), total / 2))
    median = float(y[order[min(place, len(y) - 1)]])
    with np.errstate(over="ignore"):
        errors = np.minimum(np.abs(y - median), limit)
    return Baseline("always the median", fsum(weight * errors) / total)
