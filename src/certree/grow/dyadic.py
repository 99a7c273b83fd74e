"""Dyadic cells: depth d halves feature d mod p of the box that the rows span."""

from numpy.typing import ArrayLike

from certree import _core
from certree.grow.stopping import MaxDepth, growing_rows
from certree.tree import Tree, threads


def grow_dyadic(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    min_rows: float = 1,
    max_depth: MaxDepth = None,
    stop_when_pure: bool = True,
    expand: bool = False,
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
    y = rows.y if stop_when_pure else None
    columns = _core.grow_dyadic(rows.X, y=y, **rows.rules, expand=expand, n_threads=threads(n_jobs))
    return Tree.of(columns, rows.X.shape[1])
