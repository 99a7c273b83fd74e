"""Dyadic cells: depth d halves feature d mod p of the box that the rows span."""

from math import floor, log
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from certree import _core
from certree.arrays import column, nonnegative
from certree.grow.stopping import GrowingRows, MaxDepth, growing_rows
from certree.tree import LEAF, Tree, threads

# A million leaves; what is kept of a node takes some hundred bytes.
DEEPEST_GRID = 20

Resolution = Literal["paper"] | None


def dyadic_resolution(n_rows: float, n_features: int, exponent: float | None = None) -> int:
    """How often the dyadic tree of Scott and Nowak's theorems halves every side.

    Parameters
    ----------
    n_rows : float
        Rows, n.
    n_features : int
        Features, p.
    exponent : float or None
        Of ``n / log n``, the number of cells a side; None: 1 / p.

    Returns
    -------
    int
        The whole part of ``log2((n / log n)^exponent)``, at least 1.

    Raises
    ------
    ValueError
        If there are so few rows that no side is halved.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003: the exponent is 1 / (p + 1) for the square-root rule, 1 / p for the spatially adaptive one
    and 1 / (p + 2 smoothness - 2) for that of polynomials.
    """
    power = nonnegative("exponent", 1 / n_features if exponent is None else exponent)
    # The logarithm of one row is 0.
    halvings = floor(power * log(n_rows / log(n_rows)) / log(2)) if n_rows >= 2 else 0
    if halvings < 1:
        raise ValueError(
            f'resolution="paper" halves no side of {n_features} features for {n_rows:g} rows: '
            "expected more rows, in each fold of a cross-validation, or fewer features"
        )
    return halvings


def grow_dyadic(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    min_rows: float = 1,
    max_depth: MaxDepth = None,
    stop_when_pure: bool = True,
    expand: bool = False,
    resolution: Resolution = None,
    exponent: float | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Tree:
    """Grow the cyclic dyadic tree of the rows.

    A cell at depth d is halved at the midpoint of its side along feature ``d mod p``. The root is
    the smallest box around the rows, and values beyond it fall into the cells at its boundary. Runs
    of cells with one child that holds rows are stored as one node (``chain``), so the tree has at
    most 2 n - 1 nodes. A cell that no halving separates (its rows agree to 2^-48 of the range in
    every feature) is a leaf.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32. NaN counts as the largest value of its feature.
    y : array-like of int, shape (n,), or None
        Class of each row; only `stop_when_pure` reads it.
    min_rows : float
        A cell of at most so many rows is a leaf.
    max_depth : int, "log" or None
        Cells at this depth are leaves; "log" is p times the whole part of log n, None no limit.
    stop_when_pure : bool
        Whether a cell whose rows are of one class is a leaf.
    expand : bool
        Whether to store every cell, those without rows too (as leaves), in a node of its own. The
        tree may then be as large as n times its depth.
    resolution : "paper" or None
        "paper": all sides are halved equally often, as Scott and Nowak's theorems have it, whether
        cells are pure or not; takes the place of `max_depth` and `stop_when_pure`. See
        `dyadic_resolution`.
    exponent : float or None
        Of that resolution.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as. A row of weight 0 is as if absent; a smaller weight than 1
        counts as one row where rows are counted.
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
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5. Scott and Nowak, "Minimax-optimal
    classification with dyadic decision trees", IEEE Trans. Information Theory 2006.
    """
    rows = growing_rows(X, y, sample_weight, min_rows, max_depth)
    rules = rows.rules | {"y": rows.y if stop_when_pure else None}
    if resolution is not None:
        rules |= {"y": None, "max_depth": _even_depth(rows, resolution, max_depth, exponent)}
    columns = _core.grow_dyadic(rows.X, **rules, expand=expand, n_threads=threads(n_jobs))
    return Tree.of(columns, rows.X.shape[1])


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
        column(name, side, "float64", (None,)) for name, side in (("low", low), ("high", high))
    ]
    if corners[0].shape != corners[1].shape or not len(corners[0]):
        raise ValueError(
            f"low and high must have the same length, got {len(corners[0])} and {len(corners[1])}"
        )
    if not np.isfinite(corners).all() or not (corners[0] < corners[1]).all():
        raise ValueError("low and high must be finite, and low below high in every feature")
    if not 0 <= depth <= DEEPEST_GRID:
        raise ValueError(f"depth must lie in 0 .. {DEEPEST_GRID}, got {depth!r}")
    p = len(corners[0])
    bottoms, tops = (corner[None].copy() for corner in corners)  # of the cells of one level
    feature, threshold = [], []
    for level in range(depth):
        j = level % p
        middle = bottoms[:, j] / 2 + tops[:, j] / 2
        feature.append(np.full(len(middle), j))
        threshold.append(middle)
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


def _even_depth(
    rows: GrowingRows, resolution: object, max_depth: MaxDepth, exponent: float | None
) -> int:
    """Depth at which all sides have been halved as often as the resolution says."""
    if resolution != "paper":
        raise ValueError(f'resolution must be None or "paper", got {resolution!r}')
    if max_depth is not None:
        raise ValueError(f'resolution="paper" takes max_depth=None, got {max_depth!r}')
    n, p = rows.X.shape
    weight = rows.rules["weight"]
    return int(p) * dyadic_resolution(n if weight is None else float(weight.sum()), p, exponent)
