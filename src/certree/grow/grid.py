"""The cells of a fixed box: a tree in which no row has a part."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from certree._core import choose_thresholds
from certree.grow.dyadic import Resolution, even_depth
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import check_column
from certree.interface.signatures import validate_arguments, validate_settings
from certree.tree import LEAF, Tree

# A million leaves; what is kept of a node takes some hundred bytes.
MAX_GRID_DEPTH = 20


class Grid(BaseEstimator):
    """Cells of a box that is known without the rows, all halved equally often.

    No row has a part in the tree, so that all rows may weigh and certify its prunings. For few
    features: the tree has two to the power of its depth leaves. Its depth is that of the fit, log2 n
    if there is no limit, at most 20.

    Parameters
    ----------
    box : array-like of shape (2, p)
        Lower and upper corner. Values beyond it fall into the cells at its boundary.
    resolution : "paper" or None, default=None
        "paper": all sides are halved equally often, as Scott and Nowak's theorems have it, which takes
        the place of a depth limit; see `dyadic_resolution`. Rows count once, whatever their weights.
    exponent : float or None, default=None
        Of that resolution; None: that of the theorem of the pruning rule, if there is one.

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
        """Divide the box; nothing of the rows is read but their number and that of the features."""
        validate_settings(self)
        low, high = check_column("box", self.box, "float64", (2, rows.X.shape[1]))
        depth = even_depth(rows, self.resolution, self.exponent)
        if depth is None:
            limit = int(np.log2(len(rows))) if rows.max_depth is None else rows.depth_limit
            depth = min(limit, MAX_GRID_DEPTH)
        return dyadic_grid(low, high, depth)


@validate_arguments
def dyadic_grid(low: ArrayLike, high: ArrayLike, depth: int) -> Tree:
    """Halve a box again and again, whatever rows there are: the complete dyadic tree.

    Cells at depth d are halved at the midpoint of their side along feature d mod p. No row has a part
    in the tree, so that all rows may weigh and certify its prunings.

    Parameters
    ----------
    low, high : array-like of shape (p,)
        Corners of the box. Rows outside it belong to the nearest cells.
    depth : int
        Depth of all leaves, 0 .. 20.

    Returns
    -------
    Tree
        ``2^(depth + 1) - 1`` nodes.

    Raises
    ------
    ValueError
        If the corners are not finite or do not span a box, or the depth is out of range.

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
            f"low and high must have the same length, got {len(corners[0])} and {len(corners[1])}"
        )
    if not np.isfinite(corners).all() or not (corners[0] < corners[1]).all():
        raise ValueError("low and high must be finite, and low below high in every feature")
    if not 0 <= depth <= MAX_GRID_DEPTH:
        raise ValueError(f"depth must lie in 0 .. {MAX_GRID_DEPTH}, got {depth!r}")
    p = len(corners[0])
    bottoms, tops = (corner[None].copy() for corner in corners)  # of the cells of one level
    feature, threshold = [], []
    for level in range(depth):
        j = level % p
        middle = bottoms[:, j] / 2 + tops[:, j] / 2
        feature.append(np.full(len(middle), j))
        threshold.append(
            choose_thresholds(middle, bottoms[:, j].copy(), tops[:, j].copy(), at_middle=False)
        )
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
