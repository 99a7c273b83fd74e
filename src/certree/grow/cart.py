"""Greedy cells (CART): a cell is cut where the response becomes purest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from certree import _core
from certree.arrays import Float64, Int32
from certree.grow.stopping import MaxDepth, growing_rows
from certree.rows.categories import categorical_mask
from certree.tree import Tree, threads

ClassCriterion = Literal["gini", "entropy", "misclassification"]
Criterion = ClassCriterion | Literal["squared"]
MaxFeatures = int | float | Literal["sqrt", "log2"] | None
Splitter = Literal["best", "random"]
MonotonicCst = ArrayLike | Mapping[str, int] | None


@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """Rows in the order of every feature, so that trees of several parts of them sort them once.

    Parameters
    ----------
    order : ndarray of uint32, shape (number of features of numbers, 2 n)
        Ranks and row numbers in turns, as the core writes them.
    place : ndarray of int32, shape (n,)
        Place of each row among those of the part, in their order; -1 outside.
    """

    order: NDArray[np.uint32]
    place: Int32

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        categorical: NDArray[np.bool_] | None = None,
        n_jobs: int | None = None,
    ) -> "RankedRows":
        """Sort the rows of X by all features but those of categories; the part is all of them."""
        category = None if categorical is None else categorical.view(np.uint8)
        place = np.arange(len(X), dtype=np.int32)
        return cls(_core.rank_rows(X, category, threads(n_jobs)), place)

    def part(self, rows: NDArray[np.intp]) -> "RankedRows":
        """The same rows, for a tree of those with these ascending numbers."""
        place = np.full(len(self.place), -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        return RankedRows(self.order, place)


def grow_cart(
    X: ArrayLike,
    y: ArrayLike,
    *,
    criterion: Criterion = "gini",
    splitter: Splitter = "best",
    min_rows: float = 1,
    max_depth: MaxDepth = None,
    max_leaves: int | None = None,
    min_gain: float = 0.0,
    max_features: MaxFeatures = None,
    categorical_features: ArrayLike | None = None,
    monotonic_cst: MonotonicCst = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | RandomState | None = None,
    ranked: RankedRows | None = None,
    n_jobs: int | None = None,
) -> Tree:
    """Grow the greedy tree of the rows.

    Every cut between two distinct values of every feature is looked at, in the middle of its gap, and
    the one that lowers the impurity most is made. Of equal ones it is that of the feature whose best
    cut of the root is better, then that of the first feature, then the lowest: small cells have many
    equal cuts, and a feature that says something of all rows is likelier to mean something there.
    (Where cuts or features are drawn, it is that of the first feature.) A cell of one class, or with
    one value of y, is a leaf.

    The categories of a feature are divided in two sets. For numbers and for two classes the best of
    all divisions is found; so it is for more classes where a cell holds at most 12 groups of
    categories that differ in their shares of the classes. Of more groups only the prefixes of their
    order along the first principal component of these shares are looked at, and `optimal_splits` of
    the tree is False.

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
    splitter : {"best", "random"}
        "random" draws one cut of each feature, a threshold uniformly between the smallest and the
        largest value of the cell or a side for each category, and makes the best of these.
    min_rows : float
        A cell of at most so many rows is a leaf.
    max_depth : int, "log" or None
        Cells at this depth are leaves; "log" is p times the whole part of log n, None no limit.
    max_leaves : int or None
        The leaf whose cut lowers the impurity most is divided first (of equal ones the first that
        was made), until there are so many leaves; None: no limit.
    min_gain : float
        A cut that lowers rows times impurity by less is not made: growth stops early where impurity
        plus `min_gain` times leaves would rise. At 0 cuts that lower nothing are
        made too: later ones may.
    max_features : int, float, "sqrt", "log2" or None
        In each cell features are drawn until so many, or such a share of all, that are not constant
        there have been looked at; None: all.
    categorical_features : array-like of bool, int or str, or None
        Features that hold categories 0, 1, 2, ..., as a mask, indices, or names if X has some. A
        missing value is one more category. Categories that a cut has not seen go where it sends
        missing values.
    monotonic_cst : array-like of int, shape (p,), dict of names, or None
        1 where the mean of y (for two classes, the share of class 1) must not fall with the
        feature, -1 where it must not rise, 0 elsewhere. No cell is cut against a slope or, by
        whatever feature, beyond the means that slopes around it leave: so the means of the cells of
        every pruning are monotone.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as. A row of weight 0 is as if absent; a smaller weight than 1
        counts as one row where `min_rows` counts rows.
    random_state : int, RandomState or None
        Decides what is drawn. Used by `max_features` and ``splitter="random"`` only.
    ranked : RankedRows or None
        The rows of X as a part of rows that were sorted before; saves time and changes nothing.
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
    and 8. Fisher, "On grouping for maximum homogeneity", 1958. Coppersmith, Hong and Hosking,
    "Partitioning nominal attributes in decision trees", 1999. Geurts, Ernst and Wehenkel, "Extremely
    randomized trees", 2006.
    """
    if criterion not in ("gini", "entropy", "misclassification", "squared"):
        raise ValueError(
            'criterion must be "gini", "entropy", "misclassification" or "squared", '
            f"got {criterion!r}"
        )
    if splitter not in ("best", "random"):
        raise ValueError(f'splitter must be "best" or "random", got {splitter!r}')
    if not (np.isfinite(min_gain) and min_gain >= 0):
        raise ValueError(f"min_gain must be a finite number >= 0, got {min_gain!r}")
    names = [*X.columns] if hasattr(X, "columns") else None
    classes, target = (None, y) if criterion == "squared" else (y, None)
    rows = growing_rows(X, classes, sample_weight, min_rows, max_depth, target)
    if rows.target is not None and not np.isfinite(rows.target).all():
        raise ValueError("y must be finite")
    if rows.y is not None and rows.y.min() < 0:
        raise ValueError(f"y must hold classes 0, 1, ..., got {rows.y.min()}")
    p = rows.X.shape[1]
    n_classes = 0 if rows.y is None else int(rows.y.max()) + 1
    categorical = categorical_mask(categorical_features, p, names)
    slopes = slopes_of(monotonic_cst, p, names)
    if slopes is not None:
        if n_classes > 2:
            raise ValueError(f"monotonic_cst takes numbers or two classes, got {n_classes} classes")
        if slopes[categorical].any():
            raise ValueError("monotonic_cst must be 0 for features of categories")
        n_classes = min(n_classes * 2, 2)  # one class is counted beside an empty one
    n_looked_at = _n_features(max_features, p)
    draws = splitter == "random" or n_looked_at < p
    if ranked and len(rows.X) != np.count_nonzero(ranked.place >= 0):
        ranked = None  # rows of weight 0 are gone
    columns = _core.grow_cart(
        rows.X,
        y=rows.y,
        target=None if rows.target is None else _centred(rows.target),
        n_classes=n_classes,
        criterion=criterion,
        min_gain=float(min_gain),
        max_leaves=_leaf_limit(max_leaves),
        max_features=n_looked_at,
        random_cuts=splitter == "random",
        key=_key(random_state) if draws else 0,
        category=categorical.view(np.uint8) if categorical.any() else None,
        monotonic=slopes,
        order=ranked.order if ranked else None,
        place=ranked.place if ranked else None,
        n_threads=threads(n_jobs),
        **rows.rules,
    )
    return Tree.of(columns, p)


def _leaf_limit(max_leaves: Any) -> int:
    """Number of leaves at which growth stops; 0 is no limit."""
    if max_leaves is None:
        return 0
    if not isinstance(max_leaves, Integral) or max_leaves < 1:
        raise ValueError(f"max_leaves must be None or a whole number >= 1, got {max_leaves!r}")
    return int(max_leaves)


def _n_features(max_features: Any, p: int) -> int:
    """Number of features that are looked at in a cell, in scikit-learn's convention."""
    if max_features is None:
        return p
    if max_features == "sqrt":
        return max(1, int(np.sqrt(p)))
    if max_features == "log2":
        return max(1, int(np.log2(p)))
    if isinstance(max_features, int | np.integer) and 1 <= max_features <= p:
        return int(max_features)
    if isinstance(max_features, float | np.floating) and 0 < max_features <= 1:
        return max(1, int(max_features * p))
    raise ValueError(
        f'max_features must be None, "sqrt", "log2", a whole number in 1 .. {p} or a share in (0, 1], '
        f"got {max_features!r}"
    )


def slopes_of(
    monotonic_cst: MonotonicCst, p: int, names: Sequence[str] | None
) -> NDArray[np.int8] | None:
    """Constraints as a column of -1, 0 and 1, (p,); None if there are none."""
    if monotonic_cst is None:
        return None
    if isinstance(monotonic_cst, Mapping):
        known = [] if names is None else list(names)
        unknown = [name for name in monotonic_cst if name not in known]
        if unknown:
            raise ValueError(f"monotonic_cst names {unknown}, but the features are {known}")
        monotonic_cst = [monotonic_cst.get(name, 0) for name in known]
    given = np.asarray(monotonic_cst)
    if given.shape != (p,):
        raise ValueError(f"monotonic_cst must have shape ({p},), got {given.shape}")
    if not np.isin(given, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst must hold -1, 0 or 1, got {given.tolist()}")
    return given.astype(np.int8) if given.any() else None


def _key(random_state: int | RandomState | None) -> int:
    generator = check_random_state(random_state)
    return int(generator.randint(0, 2**32, dtype=np.uint64)) << 32 | int(
        generator.randint(0, 2**32, dtype=np.uint64)
    )


def _centred(target: Float64) -> Float64:
    """Distances from the value next to the mean: squares of sums lose the digits of a far mean.

    From a value, and not from the mean itself, so that distances of whole numbers stay whole.
    """
    middle = target[np.lexsort((target, np.abs(target - target.mean())))[0]]
    distance: Float64 = target - middle
    return distance
