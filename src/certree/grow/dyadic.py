"""Dyadic cells: depth d halves feature d mod p of the box that the rows span."""

from __future__ import annotations

from math import floor, log
from typing import Any, Literal

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from certree._core import grow_dyadic as core_grow_dyadic
from certree.grow.threshold_placement import place_thresholds
from certree.grow.training_samples import MAX_DEPTH, MaxDepth, TrainingSamples
from certree.interface.arrays import check_nonnegative
from certree.interface.signatures import validate_arguments, validate_settings
from certree.interface.threads import get_n_threads
from certree.tree import Tree

Resolution = Literal["paper"] | None


@validate_arguments
def dyadic_resolution(n: float, n_features: int, exponent: float | None = None) -> int:
    """How often the dyadic tree of Scott and Nowak's theorems halves every side.

    Parameters
    ----------
    n : float
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
    n = check_nonnegative("n", n)
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features!r}")
    power = check_nonnegative("exponent", 1 / n_features if exponent is None else exponent)
    # The logarithm of one row is 0.
    halvings = floor(power * log(n / log(n)) / log(2)) if n >= 2 else 0
    if halvings < 1:
        raise ValueError(
            f'resolution="paper" halves no side of {n_features} features for {n:g} rows: '
            "expected more rows, in each fold of a cross-validation, or fewer features"
        )
    return halvings


def get_resolution(grower: object) -> Any:
    """The resolution that a grower is asked for; None where it has none."""
    return getattr(grower, "resolution", None)


def even_depth(rows: TrainingSamples, resolution: object, exponent: float | None) -> int | None:
    """Depth at which all sides have been halved as often as a resolution says; None without one."""
    if resolution is None:
        if exponent is not None:
            raise ValueError(f"exponent takes a resolution, got exponent={exponent!r}")
        return None
    if resolution != "paper":
        raise ValueError(f'resolution must be None or "paper", got {resolution!r}')
    if rows.max_depth is not None:
        raise ValueError(f'resolution="paper" takes max_depth=None, got {rows.max_depth!r}')
    p = int(rows.X.shape[1])
    return p * dyadic_resolution(len(rows), p, exponent)


class Dyadic(BaseEstimator):
    """Cells that are halved at midpoints, one feature after the other, whatever the target is.

    A cell at depth d is halved at the midpoint of its side along feature ``d mod p``. The root is
    the smallest box around the rows, and values beyond it fall into the cells at its boundary; NaN
    counts as the largest value of its feature. Runs of cells with one child that holds rows are
    stored as one node (``chain``), so the tree has at most 2 n - 1 nodes. A cell that no halving
    separates (its rows agree to 2^-48 of the range in every feature) is a leaf.

    Parameters
    ----------
    min_samples_split : float, default=2
        A cell of fewer rows is a leaf.
    stop_when_pure : bool, default=True
        Whether a cell whose rows are of one class, or have one value of the target, is a leaf.
    expand : bool, default=False
        Whether to store every cell, those without rows too (as leaves), in a node of its own. The
        tree may then be as large as n times its depth.
    resolution : "paper" or None, default=None
        "paper": all sides are halved equally often, as Scott and Nowak's theorems have it, whether
        cells are pure or not; takes the place of a depth limit and of `stop_when_pure`. See
        `dyadic_resolution`.
    exponent : float or None, default=None
        Of that resolution; None: that of the theorem of the pruning rule, if there is one.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5. Scott and Nowak, "Minimax-optimal
    classification with dyadic decision trees", IEEE Trans. Information Theory 2006.

    Examples
    --------
    >>> from certree import Dyadic, PrunedTreeClassifier
    >>> PrunedTreeClassifier(Dyadic(resolution="paper"), rule="square-root")
    PrunedTreeClassifier(grower=Dyadic(resolution='paper'), rule='square-root')
    """

    depends_on_rows = True
    supports_monotonic_cst = False

    def __init__(
        self,
        *,
        min_samples_split: float = 2,
        stop_when_pure: bool = True,
        expand: bool = False,
        resolution: Resolution = None,
        exponent: float | None = None,
    ) -> None:
        self.min_samples_split = min_samples_split
        self.stop_when_pure = stop_when_pure
        self.expand = expand
        self.resolution: Resolution = resolution
        self.exponent = exponent

    def grow(self, rows: TrainingSamples) -> Tree:
        """Grow the tree of these rows."""
        validate_settings(self)
        rules = rows.stopping(self.min_samples_split)
        even = even_depth(rows, self.resolution, self.exponent)
        if even is not None:
            rules["max_depth"] = min(MAX_DEPTH, even)
        pure = self.stop_when_pure and self.resolution is None
        columns = core_grow_dyadic(
            rows.X,
            y=rows.levels if pure else None,
            **rules,
            expand=bool(self.expand),
            n_threads=get_n_threads(rows.n_jobs),
        )
        return place_thresholds(
            Tree.from_grower_columns(columns, rows.X.shape[1]), rows.X, at_middle=False
        )


@validate_arguments
def grow_dyadic(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    max_depth: MaxDepth = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    **switches: Any,
) -> Tree:
    """Grow the cyclic dyadic tree of the rows.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32.
    y : array-like of shape (n,), or None
        Class of each row, or a number; only `stop_when_pure` reads it.
    max_depth : int, "log" or None
        Cells at this depth are leaves; "log" is p times the whole part of log n, None no limit.
    sample_weight : array-like of shape (n,), or None
        Weight of each row. A row of weight 0 is as if absent; any other is one row, whatever it weighs.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The tree does not depend on it.
    **switches
        Parameters of `Dyadic`.

    Returns
    -------
    Tree

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range, or a switch is unknown or out of range.

    Examples
    --------
    >>> from certree import grow_dyadic
    >>> float(grow_dyadic([[0.0], [1.0], [5.0], [8.0]], max_depth=1).threshold[0])
    4.0
    """
    rows = TrainingSamples.from_arrays(X, y, sample_weight, max_depth=max_depth, n_jobs=n_jobs)
    return Dyadic(**switches).grow(rows)
