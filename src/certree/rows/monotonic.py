"""Monotonic constraints: the parameter `monotonic_cst` as an array of signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import to_array

MonotonicCst = ArrayLike | Mapping[str, int] | None
MonotonicSigns = NDArray[np.int8] | None


def check_monotonic_cst(
    monotonic_cst: MonotonicCst,
    p: int,
    names: Sequence[str] | None,
    n_encoded: int | None = None,
    categorical: NDArray[np.bool_] | None = None,
) -> MonotonicSigns:
    """Return monotonic constraints as an array of -1, 0 and 1, (p,) int8; None if all are 0.

    Parameters
    ----------
    monotonic_cst : array-like of int, shape (p,), dict of str to int, or None
        Constraint of each feature: 1 increasing, -1 decreasing, 0 none. A dict has entries for the
        constrained features by name; None: no constraints.
    p : int
        Number of features.
    names : sequence of str, or None
        Names of the features, which a dict needs.
    n_encoded : int or None
        Number of encoded columns, if the result shall have an entry for each: the calendar parts of
        dates, which follow the features, get 0. None: p.
    categorical : ndarray of bool, or None
        Which encoded columns are categorical; None: none is, or the caller checks it.

    Returns
    -------
    ndarray of int8, shape (p,) or (n_encoded,), or None
        Constraint of each feature, or of each encoded column: 1 increasing, -1 decreasing, 0 none.
        None: no feature has a constraint.

    Raises
    ------
    ValueError
        If the length differs, a value is not -1, 0 or 1, a name is unknown, or a categorical
        feature has a constraint.
    """
    if monotonic_cst is None:
        return None
    if isinstance(monotonic_cst, Mapping):
        features = [] if names is None else list(names)
        unknown = [name for name in monotonic_cst if name not in features]
        if unknown:
            raise ValueError(
                f"monotonic_cst must have names of features, {features}, as keys, got {unknown}: "
                "correct these names, or pass a list"
            )
        monotonic_cst = [monotonic_cst.get(name, 0) for name in features]
    signs = to_array("monotonic_cst", monotonic_cst)
    if signs.shape != (p,):
        raise ValueError(
            f"monotonic_cst must have shape ({p},), got {signs.shape}: pass -1, 0 or 1 for each "
            "feature"
        )
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            f"monotonic_cst must hold -1, 0 or 1, got {signs.tolist()}: 1 is increasing, -1 decreasing"
        )
    if not signs.any():
        return None
    n_parts = 0 if n_encoded is None else n_encoded - p
    encoded = np.pad(signs.astype(np.int8), (0, n_parts))
    expect_numeric_features(encoded, categorical, names)
    return encoded


def expect_numeric_features(
    signs: NDArray[Any], categorical: NDArray[np.bool_] | None, names: Sequence[str] | None
) -> None:
    """Raise a ValueError if a categorical feature has a monotonic constraint.

    signs: constraint of each encoded column, (k,): -1, 1, or 0 for none. categorical: mask (k,),
    True for categorical columns; None: none is. names: names of the features; None: the message has
    the index of the feature.
    """
    if categorical is None or not signs[categorical].any():
        return
    j = int(np.flatnonzero(categorical & (signs != 0))[0])
    feature = f"feature {j}" if names is None else f"feature {str(names[j])!r}"
    raise ValueError(
        f"monotonic_cst must be 0 for categorical features, got {int(signs[j])} for {feature}: use "
        "0, or turn its categories into numbers"
    )
