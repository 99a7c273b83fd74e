"""KD cells: a cell is cut at the median of one feature of its rows."""

from typing import Literal

from numpy.typing import ArrayLike

from certree import _core
from certree.grow.stopping import MaxDepth, growing_rows
from certree.tree import Tree, threads

Axis = Literal["cycle", "spread"]


def grow_kd(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    axis: Axis = "cycle",
    min_rows: float = 1,
    max_depth: MaxDepth = None,
    stop_when_pure: bool = True,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Tree:
    """Grow the median (KD) tree of the rows.

    A cell is cut between two distinct values of one feature, at the gap nearest to the median of its
    rows (of two equally near ones, the upper), in the middle of the gap. A feature that is constant
    in the cell is skipped; a cell in which all are constant is a leaf.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32. NaN counts as larger than every number.
    y : array-like of int, shape (n,), or None
        Class of each row; only `stop_when_pure` reads it.
    axis : {"cycle", "spread"}
        Which feature cuts a cell: the next one after the parent's, or the one with the largest range
        in the cell in units of its standard deviation over all rows.
    min_rows : float
        A cell of at most so many rows is a leaf.
    max_depth : int, "log" or None
        Cells at this depth are leaves; "log" is p times the whole part of log n, None no limit.
    stop_when_pure : bool
        Whether a cell whose rows are of one class is a leaf.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as: medians and standard deviations are weighted. A row of
        weight 0 is as if absent; a smaller weight than 1 counts as one row where rows are counted.
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
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5. Bentley, "Multidimensional binary
    search trees used for associative searching", Communications of the ACM 1975.
    """
    if axis not in ("cycle", "spread"):
        raise ValueError(f'axis must be "cycle" or "spread", got {axis!r}')
    rows = growing_rows(X, y, sample_weight, min_rows, max_depth)
    y = rows.y if stop_when_pure else None
    columns = _core.grow_kd(
        rows.X, y=y, **rows.rules, spread=axis == "spread", n_threads=threads(n_jobs)
    )
    return Tree.of(columns, rows.X.shape[1])
