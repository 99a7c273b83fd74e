"""Greedy cells (CART): a cell is cut where the response becomes purest."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from certree import _core
from certree.columns import Float64
from certree.grow.stopping import MaxDepth, growing_rows
from certree.tree import Tree, threads

ClassCriterion = Literal["gini", "entropy", "misclassification"]
Criterion = ClassCriterion | Literal["squared"]


def grow_cart(
    X: ArrayLike,
    y: ArrayLike,
    *,
    criterion: Criterion = "gini",
    min_rows: float = 1,
    max_depth: MaxDepth = None,
    min_gain: float = 0.0,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Tree:
    """Grow the greedy tree of the rows.

    Every cut between two distinct values of every feature is looked at, in the middle of its gap, and
    the one that lowers the impurity most is made; of equal ones that of the first feature, then the
    lowest. A cell of one class, or with one value of y, is a leaf.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32. NaN is missing: each cut sends it to the side where it lowers the
        impurity more (to the right on ties), or to the side with more rows if none is missing.
    y : array-like of shape (n,)
        Class of each row, 0, 1, ..., or a number for ``criterion="squared"``.
    criterion : {"gini", "entropy", "misclassification", "squared"}
        Impurity of a cell, times its rows: Gini index, cross entropy (nats), rows outside the
        largest class, or the sum of squared distances from the mean.
    min_rows : float
        A cell of at most so many rows is a leaf.
    max_depth : int, "log" or None
        Cells at this depth are leaves; "log" is p times the whole part of log n, None no limit.
    min_gain : float
        A cut that lowers rows times impurity by less is not made. At 0 cuts that lower nothing are
        made too: later ones may.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as. A row of weight 0 is as if absent; a smaller weight than 1
        counts as one row where `min_rows` counts rows.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The tree does not depend on it.

    Returns
    -------
    Tree

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range, or a switch is out of range.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Chapters 2, 4
    and 8.
    """
    if criterion not in ("gini", "entropy", "misclassification", "squared"):
        raise ValueError(
            'criterion must be "gini", "entropy", "misclassification" or "squared", '
            f"got {criterion!r}"
        )
    if not (np.isfinite(min_gain) and min_gain >= 0):
        raise ValueError(f"min_gain must be a finite number >= 0, got {min_gain!r}")
    classes, target = (None, y) if criterion == "squared" else (y, None)
    rows = growing_rows(X, classes, sample_weight, min_rows, max_depth, target)
    if rows.target is not None and not np.isfinite(rows.target).all():
        raise ValueError("y must be finite")
    if rows.y is not None and rows.y.min() < 0:
        raise ValueError(f"y must hold classes 0, 1, ..., got {rows.y.min()}")
    columns = _core.grow_cart(
        rows.X,
        y=rows.y,
        target=None if rows.target is None else _centred(rows.target),
        n_classes=0 if rows.y is None else int(rows.y.max()) + 1,
        criterion=criterion,
        min_gain=float(min_gain),
        n_threads=threads(n_jobs),
        **rows.rules,
    )
    return Tree.of(columns, rows.X.shape[1])


def _centred(target: Float64) -> Float64:
    """Distances from the value next to the mean: squares of sums lose the digits of a far mean.

    From a value, and not from the mean itself, so that distances of whole numbers stay whole.
    """
    middle = target[np.lexsort((target, np.abs(target - target.mean())))[0]]
    distance: Float64 = target - middle
    return distance
