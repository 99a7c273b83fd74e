"""The grower Dyadic: a node at depth d is halved at the midpoint of feature d mod p."""

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
    """Compute how often the dyadic tree of Scott and Nowak's theorems halves each feature.

    Parameters
    ----------
    n : float
        Number of rows.
    n_features : int
        Number of features, p.
    exponent : float or None
        Exponent in the number of intervals per feature, ``(n / log n)^exponent``, with the natural
        logarithm; None: 1 / p.

    Returns
    -------
    int
        Number of halvings per feature: the integer part of ``log2((n / log n)^exponent)``, at least
        1.

    Raises
    ------
    ValueError
        If the number of halvings is 0, which means that n is too small, or if an argument is out of
        range.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003. The exponent of the theorem is 1 / (p + 1) for the pruning rule `SquareRoot`, 1 / p for
    `SpatiallyAdaptive`, and 1 / (p + 2 smoothness - 2) for `Polynomial`.
    """
    n = check_nonnegative("n", n)
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features!r}")
    power = check_nonnegative("exponent", 1 / n_features if exponent is None else exponent)
    # The logarithm of one row is 0.
    halvings = floor(power * log(n / log(n)) / log(2)) if n >= 2 else 0
    if halvings < 1:
        raise ValueError(
            f'resolution="paper" needs more rows, or fewer features: {n:g} rows (of the fit, or of '
            f"a fold of cross-validation) are too few to halve each of {n_features} features once"
        )
    return halvings


def get_resolution(grower: object) -> Any:
    """Return the parameter `resolution` of an object that grows trees: "paper" or None.

    With "paper" each feature is halved equally often, as in the theorems of Scott and Nowak (2003,
    "Near-minimax optimal classification with dyadic classification trees"). The result is None if
    the grower has no such parameter.
    """
    return getattr(grower, "resolution", None)


def compute_even_depth(
    rows: TrainingSamples, resolution: object, exponent: float | None
) -> int | None:
    """Compute the depth of a dyadic tree that halves each feature as often as a theorem requires.

    Parameters
    ----------
    rows : TrainingSamples
        n rows of p features; its `max_depth` must be None if `resolution` is "paper".
    resolution : "paper" or None
        Parameter of the object that grows the tree. "paper": each feature is halved equally often;
        None: it is not.
    exponent : float or None
        Exponent in the number of intervals per feature, ``(n / log n)^exponent``; None: 1 / p.

    Returns
    -------
    int or None
        p times the number of halvings per feature, which is the integer part of ``log2((n / log
        n)^exponent)``; None if `resolution` is None.

    Raises
    ------
    ValueError
        If `resolution` has another value, `exponent` is given although `resolution` is None,
        `max_depth` is given although it is "paper", or n is too small for one halving.
    """
    if resolution is None:
        if exponent is not None:
            raise ValueError(f'exponent must be None without resolution="paper", got {exponent!r}')
        return None
    if resolution != "paper":
        raise ValueError(f'resolution must be None or "paper", got {resolution!r}')
    if rows.max_depth is not None:
        raise ValueError(f'max_depth must be None with resolution="paper", got {rows.max_depth!r}')
    p = int(rows.X.shape[1])
    return p * dyadic_resolution(len(rows), p, exponent)


class Dyadic(BaseEstimator):
    """Grower that halves each node at the midpoint of one feature, whatever the target is.

    A node at depth d is halved at the midpoint of its side along feature ``d mod p``. The root is
    the smallest box around the rows, and values outside it belong to the regions at its boundary.
    NaN counts as the largest value of its feature. Nested regions with the same rows are stored as
    one node (`Tree.chain`), so the tree has at most 2 n - 1 nodes. A node that no halving separates
    is a leaf: its rows agree to 2^-48 of the range in every feature. Monotonic constraints and
    categorical features are not supported.

    Parameters
    ----------
    min_samples_split : float, default=2
        A node of fewer rows is a leaf. A number of rows, at least 2, not a fraction of them; each row
        counts once, whatever its weight.
    stop_when_pure : bool, default=True
        Whether a node is a leaf if all its rows have the same class or the same target value.
    expand : bool, default=False
        Whether to store each region as a node of its own, also regions without rows (as leaves).
        The tree may then be as large as n times its depth.
    resolution : "paper" or None, default=None
        "paper": each feature is halved equally often, as in the theorems of Scott and Nowak (NIPS
        2003), except in nodes of fewer than `min_samples_split` rows. `stop_when_pure` is then not
        read, and the fit must not have a depth limit. The number of halvings per feature is the
        integer part of ``log2((n / log n)^exponent)``. None: the depth limit and `stop_when_pure`
        hold.
    exponent : float or None, default=None
        Exponent in the number of intervals per feature, ``(n / log n)^exponent``; only with a
        resolution. None: that of the pruning rule's theorem, or 1 / p if the rule has none.

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
        """Grow a dyadic tree and return it.

        Each node is halved at the midpoint of one feature. The tree has no leaf values. rows: the
        training samples. Their target is read only if `stop_when_pure` and without a resolution,
        and None is allowed; row weights are not used. Raise ValueError if a parameter of the grower
        is out of range.
        """
        validate_settings(self)
        rules = rows.stopping_options(self.min_samples_split)
        even = compute_even_depth(rows, self.resolution, self.exponent)
        if even is not None:
            rules["max_depth"] = min(MAX_DEPTH, even)
        pure = self.stop_when_pure and self.resolution is None
        columns = core_grow_dyadic(
            rows.X,
            y=rows.target_codes if pure else None,
            **rules,
            expand=bool(self.expand),
            n_threads=get_n_threads(rows.n_jobs),
        )
        return place_thresholds(
            Tree.from_grower_columns(columns, rows.X.shape[1]),
            rows.X,
            at_middle=False,
            dates=rows.dates,
            n_threads=get_n_threads(rows.n_jobs),
        )


@validate_arguments
def grow_dyadic(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    max_depth: MaxDepth = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    **parameters: Any,
) -> Tree:
    """Grow a tree that halves nodes at midpoints, feature by feature; see `Dyadic`.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32; NaN where a value is missing.
    y : array-like of shape (n,), or None
        Class of each row, or a number; read only if `stop_when_pure`.
    max_depth : int, "log" or None
        Nodes at this depth are leaves; "log" is p times the integer part of ln n, None no limit.
    sample_weight : array-like of shape (n,), or None
        Weight of each row. Rows of weight 0 are left out; all other rows count once.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The tree does not depend on it.
    **parameters
        Constructor parameters of `Dyadic`.

    Returns
    -------
    Tree
        The tree, without leaf values: `count` or `measure` computes statistics of its nodes.

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range, or a parameter is unknown or out of range.

    Examples
    --------
    >>> from certree import grow_dyadic
    >>> float(grow_dyadic([[0.0], [1.0], [5.0], [8.0]], max_depth=1).threshold[0])
    4.0
    """
    rows = TrainingSamples.from_arrays(X, y, sample_weight, max_depth=max_depth, n_jobs=n_jobs)
    return Dyadic(**parameters).grow(rows)
