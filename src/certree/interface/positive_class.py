"""The positive one of two classes: the class whose probability, recall and costs are reported."""

from collections.abc import Hashable
from numbers import Real
from reprlib import repr as shortened
from typing import Any

import numpy as np

from certree.interface.arrays import list_classes, to_float


def find_positive_class(classes: Any, pos_label: Any) -> int:
    """Return the index of the positive one of two classes.

    Parameters
    ----------
    classes : ndarray of shape (K,), or None
        Classes of the target; None: it is numeric.
    pos_label : object or None
        The positive class; None: the second class.

    Returns
    -------
    int
        0 or 1. If `pos_label` is None it is 1, also if there are not two classes.

    Raises
    ------
    ValueError
        If `pos_label` is not None, and either there are not two classes or it is not one of them.
    """
    if pos_label is None:
        return 1
    names = [] if classes is None else list_classes(np.asarray(classes))
    if len(names) != 2:
        found = f"{len(names)} classes: {shortened(names)}" if names else "a target without classes"
        raise ValueError(
            "pos_label must be None unless the target has two classes, got "
            f"pos_label={shortened(pos_label)} and {found}: leave pos_label out"
        )
    # Arrays and lists are not hashable, and comparisons with arrays are not a single bool.
    if not isinstance(pos_label, Hashable) or pos_label not in names:
        raise ValueError(
            f"pos_label must be one of the classes {names[0]!r} and {names[1]!r}, got "
            f"{shortened(pos_label)}"
        )
    return names.index(pos_label)


def check_threshold(classes: Any, threshold: float | None, pos_label: Any = None) -> int | None:
    """Check a threshold of the positive class's probability, and return the index of this class.

    Parameters
    ----------
    classes : ndarray of shape (K,), or None
        Classes of the model; None: it predicts numbers.
    threshold : float or None
        Number in [0, 1]; None: there is no threshold.
    pos_label : object or None
        The positive class; None: the second class.

    Returns
    -------
    int or None
        0 or 1; None without a threshold.

    Raises
    ------
    ValueError
        If `pos_label` has no threshold, or the threshold is no number in [0, 1], or there are not
        two classes, or `pos_label` is not one of them.
    """
    if threshold is None:
        if pos_label is not None:
            raise ValueError(
                f"pos_label needs a threshold of its probability, got pos_label={pos_label!r} and "
                "threshold=None: pass both, or neither"
            )
        return None
    if classes is None or len(classes) != 2:
        raise ValueError(
            "threshold must be None unless the model is a classifier of two classes, got "
            f"threshold={threshold!r}: leave threshold out"
        )
    expect_threshold(threshold)
    return find_positive_class(classes, pos_label)


def expect_threshold(threshold: Any) -> None:
    """Raise a ValueError unless a threshold is a number in [0, 1].

    threshold: any object that a user passed; None: there is no threshold, and nothing is raised.
    """
    if threshold is None:
        return
    number: Any = to_float(threshold)
    is_number = isinstance(number, Real)
    if not is_number or not 0 <= number <= 1:
        raise ValueError(f"threshold must lie in [0, 1], got {shortened(threshold)}")
