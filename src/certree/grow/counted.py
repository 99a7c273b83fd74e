"""Growth from sums over bins: the grower of ensembles, which grow many trees over the same rows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import grow_classes, grow_gradients
from certree.grow.bins import Bins, UInt8
from certree.grow.growing import DEEPEST, Slopes, slopes_of
from certree.interface.arrays import (
    Float64,
    Int32,
    array_of,
    class_number,
    codes,
    nonnegative,
    plain,
    row_weights,
)
from certree.tree import Tree, threads

_MOST_LEAVES = 2**31 - 1


class CountedTree(NamedTuple):
    """A tree grown from sums.

    Attributes
    ----------
    tree : Tree
        The tree.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row that grew the tree or was sent along; -1 for all others.
    sums : ndarray of float64, shape (m, 3) or (m, n_classes + 1)
        Of the growing rows of each node: sum of gradients and sum of Hessians, or weight of each
        class; in the last column their number.
    """

    tree: Tree
    leaf: Int32
    sums: Float64


@dataclass(frozen=True, eq=False)
class CountedGrower:
    """Grows trees from sums over bins, one after the other over the same rows.

    A cell is cut where ``G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2)`` is largest, with the sums G and H
    of the gradients and Hessians of the growing rows on either side; with h the weight and
    g = h (mean - y) that is squared loss. Of equal cuts that of the first feature is made, of those
    by one feature one that sends missing values right, then the lowest. No cut is made that gains
    nothing beside rounding. The threshold of a cut is the middle of the gap between the values of
    growing rows on its sides; where a bin of other rows reaches across the middle, it is the middle
    of the gap behind that bin. Missing values are tried on both sides where growing rows of the cell
    lack the value, else they go to the side with more growing rows, to the left on ties.

    Categories stand in the order of their mean gradients (of the cell's own with a weight of `l2`), a
    missing value among them, and are cut like numbers. A feature that has more than six of them in a
    cell is passed over there unless their means differ by three standard deviations more than if the
    gradients were dealt to the rows at random. Categories that a cut has not seen go where it sends
    missing values.

    Sums are whole numbers: gradients and Hessians are rounded to multiples of a power of two each,
    by less than 2^-40 of the largest one for up to 2^22 rows. So a tree has the same bits in
    whatever order the rows come, and whatever the number of threads.

    Parameters
    ----------
    bins : Bins
        The rows.
    max_leaves : int or None, default=31
        So many leaves at most; None: no limit.
    max_depth : int or None, default=None
        Cells at this depth are leaves; None: no limit.
    min_samples_leaf : int, default=1
        Growing rows on either side of a cut.
    min_hessian : float, default=0
        Sum of Hessians on either side of a cut.
    l2 : float, default=0
        What is added to the sum of Hessians of a cell.
    min_gain : float, default=0
        A cut that gains less is not made.
    best_first : bool, default=True
        Whether the leaf whose cut gains most is divided next, of equal ones the first that was
        made; else one level after the other, from the left.
    monotonic_cst : array-like of int, shape (p,), or None, default=None
        1 where the step -G / (H + l2) must not fall along a feature, -1 where it must not rise, 0
        elsewhere. It holds for the steps of the cells of every pruning.
    interaction_cst : sequence of collections of int, or None, default=None
        Features that may act together: a cell is cut by features only that share a group with all
        those compared above it. Those that are in no group are one more. None: all may.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.grow import Bins, CountedGrower
    >>> grower = CountedGrower(Bins.of([[0.0], [1.0], [5.0], [6.0]]), max_leaves=2)
    >>> tree, leaf, sums = grower.grow_gradients([1.0, 1.0, -1.0, -1.0], np.ones(4))
    >>> float(tree.threshold[0]), leaf.tolist(), sums.tolist()
    (3.0, [1, 1, 2, 2], [[0.0, 4.0, 4.0], [2.0, 2.0, 2.0], [-2.0, 2.0, 2.0]])
    """

    bins: Bins
    max_leaves: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 1
    min_hessian: float = 0.0
    l2: float = 0.0
    min_gain: float = 0.0
    best_first: bool = True
    monotonic_cst: ArrayLike | None = None
    interaction_cst: Sequence[Collection[int]] | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        _ = self._options

    def grow_gradients(
        self,
        gradient: ArrayLike,
        hessian: ArrayLike,
        *,
        rows: ArrayLike | None = None,
        others: ArrayLike | None = None,
        features: ArrayLike | None = None,
        bins: Bins | None = None,
    ) -> CountedTree:
        """Grow a tree on the gradients and Hessians of a loss.

        Parameters
        ----------
        gradient, hessian : array-like of shape (n,)
            Of each row; finite, and no Hessian below 0, where rows grow the tree.
        rows : array-like of int or None
            Numbers of the rows that grow the tree, fastest if they ascend; a row that stands there
            twice counts twice. None: all.
        others : array-like of int or None
            Rows that are sent along without influence. None: all that do not grow the tree.
        features : array-like of int or None
            Features that the tree may compare; None: all.
        bins : Bins or None
            The same rows in coarser bins; None: in those of the grower.

        Returns
        -------
        CountedTree

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, or no row grows the tree.
        """
        n = self.bins.n_rows
        target = _numbers("gradient", gradient, n), _numbers("hessian", hessian, n)
        sides = self._rows(rows, others)
        return self.descend(*target, *sides, self._features(features), self._same_rows(bins))

    def descend(
        self,
        gradient: Float64,
        hessian: Float64,
        rows: Int32,
        others: Int32,
        features: Int32 | None,
        bins: Bins,
    ) -> CountedTree:
        """Do what `grow_gradients` does, for columns as the core takes them, which checks them itself.

        Features must ascend; None: all.
        """
        features = self._every_feature if features is None else features
        return self._grow(grow_gradients, (gradient, hessian), rows, others, features, bins)

    def grow_classes(
        self,
        y: ArrayLike,
        n_classes: int,
        *,
        criterion: Literal["entropy", "gini"] = "entropy",
        sample_weight: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        others: ArrayLike | None = None,
        features: ArrayLike | None = None,
        bins: Bins | None = None,
    ) -> CountedTree:
        """Grow a tree on classes: cells are cut where their impurity, times their weight, falls most.

        The categories of a feature stand in the order of their shares of the last of two classes; of
        more classes, along the first principal component of the shares. `min_hessian` bounds weights
        here, and slopes are those of the share of class 1 of two.

        Parameters
        ----------
        y : array-like of int, shape (n,)
            Class of each row, 0, 1, ....
        n_classes : int
            Number of classes.
        criterion : {"entropy", "gini"}
            Impurity of a cell: cross entropy (nats) or Gini index.
        sample_weight : array-like of shape (n,), or None
            How many rows each row counts as; whole weights below 2^40 are added up exactly.
        rows, others, features, bins
            As in `grow_gradients`.

        Returns
        -------
        CountedTree

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, no row grows the tree, `l2` is not 0, or
            slopes are given for more than two classes.
        """
        n_classes = class_number(n_classes)
        if self.l2 != 0:
            raise ValueError(f"l2 must be 0 for classes, got {self.l2!r}")
        if n_classes > 2 and self._options[1] is not None:
            raise ValueError(f"monotonic_cst takes at most two classes, got {n_classes}")
        if criterion not in ("entropy", "gini"):
            raise ValueError(f'criterion must be "entropy" or "gini", got {criterion!r}')
        n = self.bins.n_rows
        classes = codes("y", y, n, n_classes)
        target = classes, n_classes, row_weights(sample_weight, n), criterion
        sides = self._rows(rows, others)
        features = self._features(features)
        return self._grow(grow_classes, target, *sides, features, self._same_rows(bins))

    def _grow(
        self,
        grow: Any,
        target: tuple[Any, ...],
        rows: Int32,
        others: Int32,
        features: Int32,
        bins: Bins,
    ) -> CountedTree:
        columns, sums, leaf = grow(
            bins.codes,
            self._kept if bins is self.bins else bins.kept,
            features,
            rows,
            others,
            *target,
            *self._options,
        )
        return CountedTree(Tree.of(columns, bins.n_features), leaf, sums)

    def _same_rows(self, bins: Bins | None) -> Bins:
        if bins is None:
            return self.bins
        if bins.codes.shape != self.bins.codes.shape:
            raise ValueError(
                f"bins must have shape {self.bins.codes.shape}, got {bins.codes.shape}"
            )
        return bins

    @cached_property
    def _kept(self) -> tuple[Any, ...]:
        return self.bins.kept

    @cached_property
    def _every_feature(self) -> Int32:
        return np.arange(self.bins.n_features, dtype=np.int32)

    @cached_property
    def _options(self) -> tuple[Any, ...]:
        """Checked options, as the core takes them."""
        leaves, depth, p = self.max_leaves, self.max_depth, self.bins.n_features
        limits = (
            _MOST_LEAVES if leaves is None else _whole("max_leaves", leaves, 1),
            DEEPEST if depth is None else min(DEEPEST, _whole("max_depth", depth, 0)),
            _whole("min_samples_leaf", self.min_samples_leaf, 1),
            nonnegative("min_hessian", self.min_hessian),
            nonnegative("l2", self.l2),
            nonnegative("min_gain", self.min_gain),
            bool(self.best_first),
        )
        slopes: Slopes = slopes_of(self.monotonic_cst, p, None)
        if slopes is not None and slopes[self.bins.category != 0].any():
            raise ValueError("monotonic_cst must be 0 for features of categories")
        groups = _groups(self.interaction_cst, p)
        return limits, slopes, groups, threads(self.n_jobs)

    def _rows(self, rows: ArrayLike | None, others: ArrayLike | None) -> tuple[Int32, Int32]:
        n = self.bins.n_rows
        growing = np.arange(n, dtype=np.int32) if rows is None else _indices("rows", rows, n)
        if not len(growing):
            raise ValueError("rows must hold at least one row that grows the tree, got none")
        if others is not None:
            return growing, _indices("others", others, n)
        if rows is None:
            return growing, np.zeros(0, dtype=np.int32)
        rest = np.ones(n, dtype=bool)
        rest[growing] = False
        return growing, np.flatnonzero(rest).astype(np.int32)

    def _features(self, features: ArrayLike | None) -> Int32:
        if features is None:
            return self._every_feature
        return np.unique(_indices("features", features, self.bins.n_features))


def _groups(interaction_cst: Any, p: int) -> UInt8 | None:
    """Which features each group holds, (k, p), those of no other in the last; None: no groups."""
    if interaction_cst is None:
        return None
    groups = interaction_cst if isinstance(interaction_cst, Sequence) else [None]
    if not all(isinstance(one, Collection) and not isinstance(one, str) for one in groups):
        raise ValueError(
            f"interaction_cst must be None or a sequence of tuples or lists, got: {interaction_cst!r}"
        )
    holds = np.zeros((len(groups) + 1, p), dtype=np.uint8)
    for group, members in zip(holds, groups, strict=False):
        # A mask would be taken for the features 0 and 1.
        numbers = all(isinstance(one, Integral) and not isinstance(one, bool) for one in members)
        if not numbers or not all(0 <= one < p for one in members):
            raise ValueError(
                "interaction_cst must consist of integer indices in [0, n_features - 1] = "
                f"[0, {p - 1}], got invalid indices: {members!r}"
            )
        group[list(members)] = 1
    holds[-1] = ~holds[:-1].any(axis=0)
    return holds


def _whole(name: str, value: Any, least: int) -> int:
    """Check a whole number that is not too small; what is too large for the core is as large."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return min(int(value), _MOST_LEAVES)


def _indices(name: str, values: ArrayLike, n: int) -> Int32:
    """Check numbers of things of which there are n, in one column."""
    given = array_of(name, values)
    if given.ndim != 1:
        raise ValueError(f"{name} must have shape (any,), got {given.shape}")
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers, got dtype {given.dtype}")
    if given.size and (given.min() < 0 or given.max() >= n):
        raise ValueError(f"{name} must lie in 0 .. {n - 1}, got {given.min()} .. {given.max()}")
    return plain(given, np.int32)


def _numbers(name: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    """Check a number for each row, of any numeric dtype."""
    given = array_of(name, values)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers, got dtype {given.dtype}")
    if given.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {given.shape}")
    return plain(given, np.float64)
