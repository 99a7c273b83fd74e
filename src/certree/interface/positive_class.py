"""The positive one of two classes: the class whose probability, recall and costs are reported."""

from collections.abc import Hashable
from reprlib import repr as shortened
from typing import Any

import numpy as np

from certree.interface.arrays import list_classes


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
            f"pos_label={shortened(pos_label)} and {found}"
        )
    # Arrays and lists are not hashable, and comparisons with arrays are not a single bool.
    if not isinstance(pos_label, Hashable) or pos_label not in names:
        raise ValueError(
            f"pos_label must be one of the classes {names[0]!r} and {names[1]!r}, got "
            f"{shortened(pos_label)}"
        )
    return names.index(pos_label)
