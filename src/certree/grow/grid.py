"""The grower Grid: the complete dyadic tree of a fixed box, which does not depend on the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from certree._core import choose_thresholds
from certree.grow.dyadic import Resolution, compute_even_depth
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import check_column
from certree.interface.signatures import validate_arguments, validate_settings
from certree.tree import LEAF, Tree

# A million leaves; each node needs about a hundred bytes.
MAX_GRID_DEPTH = 20


class Grid(BaseEstimator):
    """Grower that halves a fixed box, one feature after the other, to the same depth everywhere.

    The tree does not depend on the rows, so all rows can be in the calibration set, which weighs
    and certifies its prunings. It suits few features: the tree has ``2^depth`` leaves. The depth is
    `max_depth` of the fit, or the integer part of log2 n if that is None, and at most 20.

    Parameters
    ----------
    box : array-like of shape (2, p)
        Lower and upper corner. Values outside it belong to the regions at its boundary; NaN goes to
        the upper half of each split.
    resolution : "paper" or None, default=None
        "paper": each feature is halved equally often, as in the theorems of Scott and Nowak (NIPS
        2003): the integer part of ``log2((n / log n)^exponent)`` times. The fit must then not have a
        depth limit. Rows count once, whatever their weights. None: the depth limit holds.
    exponent : float or None, default=None
        Exponent in the number of intervals per feature, ``(n / log n)^exponent``; only with a
        resolution. None: that of the pruning rule's theorem, or 1 / p if the rule has none.

    Examples
    --------
    >>> from certree import CertifiedTreeClassifier, Grid
    >>> CertifiedTreeClassifier(Grid([[0, 0], [1, 1]]))
    CertifiedTreeClassifier(grower=Grid(box=[[0, 0], [1, 1]]))
    """

    depends_on_rows = False
    supports_monotonic_cst = False

    def __init__(
        self, box: ArrayLike, *, resolution: Resolution = None, exponent: float | None = None
    ) -> None:
        self.box = box
        self.resolution: Resolution = resolution
        self.exponent = exponent

    def grow(self, rows: TrainingSamples) -> Tree:
        """Return the complete dyadic tree of `box`, the parameter of this grower.

        Each node is halved at the midpoint of one feature, in turn, and all leaves have the same
        depth. rows: the training samples, of which only n, p and `max_depth` are read. Raise
        ValueError if `box` does not have shape (2, p), or a parameter of the grower is out of
        range.
        """
        validate_settings(self)
        low, high = check_column("box", self.box, "float64", (2, rows.X.shape[1]))
        depth = compute_even_depth(rows, self.resolution, self.exponent)
        if depth is None:
            limit = int(np.log2(len(rows))) if rows.max_depth is None else rows.depth_limit
            depth = min(limit, MAX_GRID_DEPTH)
        return dyadic_grid(low, high, depth)


@validate_arguments
def dyadic_grid(low: ArrayLike, high: ArrayLike, depth: int) -> Tree:
    """Build the complete dyadic tree of a box.

    A node at depth d is halved at the midpoint of its side along feature d mod p. The tree does not
    depend on the rows, so all rows can be in the calibration set, which weighs and certifies its
    prunings.

    Parameters
    ----------
    low, high : array-like of shape (p,)
        Lower and upper corner of the box. Rows outside it belong to the nearest regions; NaN goes
        to the upper half of each split.
    depth : int
        Depth of all leaves, 0 .. 20.

    Returns
    -------
    Tree
        ``2^(depth + 1) - 1`` nodes, numbered level by level.

    Raises
    ------
    ValueError
        If a corner is not finite, `low` is not below `high` in each feature, or the depth is out of
        range.

    References
    ----------
    Scott and Nowak, "Minimax-optimal classification with dyadic decision trees", IEEE Trans.
    Information Theory 2006.
    """
    corners = [
        check_column(name, side, "float64", (None,))
        for name, side in (("low", low), ("high", high))
    ]
    if corners[0].shape != corners[1].shape or not len(corners[0]):
        raise ValueError(
            "low and high must have the same length, at least 1, got "
            f"{len(corners[0])} and {len(corners[1])}"
        )
    if not np.isfinite(corners).all() or not (corners[0] < corners[1]).all():
        raise ValueError(
            "low and high, the corners of the box, must be finite, with low < high in every feature, "
            f"got {corners[0].tolist()} and {corners[1].tolist()}"
        )
    if not 0 <= depth <= MAX_GRID_DEPTH:
        raise ValueError(f"depth must lie in 0 .. {MAX_GRID_DEPTH}, got {depth!r}")
    p = len(corners[0])
    bottoms, tops = (corner[None].copy() for corner in corners)  # corners of the nodes of one level
    feature, threshold = [], []
    for level in range(depth):
        j = level % p
        middle = bottoms[:, j] / 2 + tops[:, j] / 2
        feature.append(np.full(len(middle), j))
        threshold.append(choose_thresholds(middle, bottoms[:, j].copy(), tops[:, j].copy()))
        bottoms, tops = np.repeat(bottoms, 2, axis=0), np.repeat(tops, 2, axis=0)
        tops[::2, j] = bottoms[1::2, j] = middle
    n_inner, n_leaves = 2**depth - 1, 2**depth
    none = np.zeros(n_leaves)
    left = np.concatenate([2 * np.arange(n_inner) + 1, np.full(n_leaves, LEAF)])
    return Tree(
        np.concatenate([*feature, none]).astype(np.int32),
        np.concatenate([*threshold, none]),
        left,
        np.ones(n_inner + n_leaves, dtype=np.int32),
        p,
    )
