"""How far one has to go to hold a share of new rows: scores of calibration samples in order.

A score says how far a row's target lies off what was said of it before the calibration samples were
seen. Of new rows from the same source a share `coverage` has no larger score than the k-th of the
calibration samples, with probability ``1 - delta``, if k is one more than the ``1 - delta`` quantile of
Bin(N, coverage). That is exact where no scores are tied, and holds all the more where some are.

Bands around a number score a row by how far its target lies off the prediction, in units of the
scale of its leaf; sets of classes by one less the share of its class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import score_nodes
from certree.certificates.calibration_set import HeldOut
from certree.certificates.certificate import Certificate, compute_certificate, compute_log_delta
from certree.certificates.inequalities.bounds import count_rows_to_cover, find_order_statistic
from certree.certificates.priors import count_prior
from certree.interface.arrays import (
    MAX_EXACT_INTEGER,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_codes,
    check_column,
)
from certree.interface.signatures import validate_arguments
from certree.stats.nodes import expect_nodes
from certree.tree import LEAF, Tree
from certree.votes import Voting
from certree.weights.node_weights import NodeWeights, make_pruning, reached


@validate_arguments
def place_to_cover(n: int, coverage: float, delta: float | None) -> int:
    """Which of n scores in ascending order a share of new ones is not above; n + 1: none of them.

    Parameters
    ----------
    n : int
        How many scores there are.
    coverage : float
        Share of new rows, between 0 and 1.
    delta : float or None
        Probability over the n scores with which fewer are covered; None: as many are on average over
        the n scores and the new ones.

    Returns
    -------
    int
        From 1 on.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
    Statistics 1941; Vovk, "Conditional validity of inductive conformal predictors", ACML 2012,
    Proposition 2a.

    Examples
    --------
    >>> from certree.certificates.subsets import place_to_cover
    >>> place_to_cover(100, 0.9, 0.05), place_to_cover(100, 0.9, None), place_to_cover(28, 0.9, 0.05)
    (96, 91, 29)
    """
    if not 0 <= n <= MAX_EXACT_INTEGER:
        raise ValueError(f"n must be a number of rows, at most 2**53, got {n!r}")
    check_coverage(coverage)
    if delta is None:
        return math.ceil((int(n) + 1) * coverage * (1 - 1e-12))
    return find_order_statistic(int(n), float(coverage), compute_log_delta(delta))


def check_coverage(coverage: Any) -> None:
    """Check a share of new rows."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Scores(ArrayRecord):
    """Scores of calibration samples in ascending order, by regions that are covered each for itself.

    Parameters
    ----------
    value : array-like of shape (N,)
        Scores, those of one region after those of another, ascending in each; infinite where nothing
        covers the row.
    start : array-like of int, shape (R + 1,)
        Where those of each region begin, and their number.
    mass : array-like of shape (R,)
        Share of delta of each region, fixed without the scores; they sum to at most 1.

    Raises
    ------
    ValueError
        If the scores are not in order, or shares are not positive or sum to more than 1.
    """

    value: Float64
    start: Int64
    mass: Float64

    def __post_init__(self) -> None:
        value: Float64 = check_column("value", self.value, "float64", (None,))
        start: Int64 = check_column("start", self.start, "int64", (None,))
        mass: Float64 = check_column("mass", self.mass, "float64", (len(start) - 1,))
        for name, values in (("value", value), ("start", start), ("mass", mass)):
            object.__setattr__(self, name, values)
        steps = np.diff(start)
        if not len(mass) or start[0] != 0 or start[-1] != len(value) or steps.min() < 0:
            raise ValueError(f"start must rise from 0 to the {len(value)} scores, got {start}")
        if not ((mass > 0).all() and mass.sum() <= 1 + 1e-9):
            raise ValueError("mass must hold positive shares that sum to at most 1")
        region = np.repeat(np.arange(len(mass)), steps)
        rises = value[1:] >= value[:-1]
        if np.isnan(value).any() or not (rises | (region[1:] > region[:-1])).all():
            raise ValueError("value must ascend in every region")

    @classmethod
    def from_rows(cls, value: Float64, region: NDArray[np.integer[Any]], mass: Float64) -> Scores:
        """Put scores of rows of several regions in order."""
        order = np.lexsort((value, region))
        start = np.searchsorted(region[order], np.arange(len(mass) + 1))
        return cls(value[order], start.astype(np.int64), mass)

    def find_limits(self, coverage: float, delta: float) -> Float64:
        """How far to go in each region, (R,); infinitely far in one of too few rows.

        Raises
        ------
        ValueError
            If a number is out of range, or all regions have too few rows.
        """
        places, sizes = self._places(coverage, delta), np.diff(self.start).tolist()
        if all(place > n for place, n in zip(places, sizes, strict=True)):
            levels = (compute_log_delta(delta) + np.log(self.mass)).tolist()
            needed = min(count_rows_to_cover(coverage, level) for level in levels)
            raise ValueError(
                f"coverage={coverage!r} with delta={delta!r} takes at least {needed:,} rows that "
                f"certify{' a region' if len(sizes) > 1 else ''}, got {max(sizes):,}"
            )
        return np.array([self._at(region, place) for region, place in enumerate(places)])

    def certificates(
        self,
        method: str,
        coverage: float,
        delta: float,
        parts: Sequence[str] = ("",),
        **drawn: Any,
    ) -> tuple[Certificate | None, ...]:
        """What holds at once of all regions, by their names; None where one goes infinitely far.

        How the rows were drawn, `get_sampling_facts` says.
        """
        made: list[Certificate | None] = []
        for region, place in enumerate(self._places(coverage, delta)):
            first, end = self.start[region : region + 2].tolist()
            reach, n = self._at(region, place), end - first
            if reach == np.inf:
                made.append(None)
                continue
            outside = float(np.sum(self.value[first:end] > reach)) / n
            nats = max(-math.log(self.mass[region]), 0.0)
            # Counted by places, not by scores: where some are tied, fewer may lie outside by chance.
            observed = ((n - place) / n,)
            entries = method, observed, n, nats, delta, 1.0
            made.append(compute_certificate(*entries, risk=outside, part=parts[region], **drawn))
        return tuple(made)

    def _places(self, coverage: float, delta: float) -> list[int]:
        """The place in each region, from 1 on; one more than it has scores: none of them serves."""
        check_coverage(coverage)
        levels = (compute_log_delta(delta) + np.log(self.mass)).tolist()
        sizes = np.diff(self.start).tolist()
        return [
            find_order_statistic(n, coverage, level) for n, level in zip(sizes, levels, strict=True)
        ]

    def _at(self, region: int, place: int) -> float:
        first, end = self.start[region : region + 2].tolist()
        return float(self.value[first + place - 1]) if place <= end - first else math.inf


# A region is expected to have so many times the calibration samples that its level takes: far fewer
# come by chance only, and with more of them the band is less wide than the largest score.
_SPARE = 3


@dataclass(frozen=True, slots=True, eq=False)
class PredictionIntervals(ArrayRecord):
    """How wide the bands of a tree's leaves are.

    Parameters
    ----------
    scale : array-like of shape (m,)
        What widths are multiples of at each node, in units of the target.
    region : array-like of int, shape (m,)
        Region of each node; each is covered for itself.
    """

    scale: Float64
    region: Int32

    def __post_init__(self) -> None:
        scale: Float64 = check_column("scale", self.scale, "float64", (None,))
        if not ((scale > 0) & (scale < np.inf)).all():
            raise ValueError("scale must hold finite numbers > 0")
        region = check_codes("region", self.region, len(scale), max(len(scale), 1))
        for name, values in (("scale", scale), ("region", region)):
            object.__setattr__(self, name, values)

    def check_tree(self, tree: Tree) -> Self:
        """Check that the bands belong to a tree of this size, and return them."""
        expect_nodes(len(self.scale), tree)
        return self

    def scores(self, leaf: Int32, off: Float64, mass: Float64) -> Scores:
        """Scores of rows whose targets lie so far off, by the leaves that they reach."""
        with np.errstate(over="ignore"):  # a row that lies infinitely far off is in no band
            value = off / self.scale[leaf]
        return Scores.from_rows(value, self.region[leaf], mass)

    def half_width(self, leaf: Int32, reach: Float64) -> Float64:
        """Half the width of the band in each of some leaves, in units of the target."""
        with np.errstate(over="ignore"):
            half: Float64 = reach[self.region[leaf]] * self.scale[leaf]
        return half


def merge_leaves_into_regions(
    tree: Tree,
    pruning: NodeWeights,
    rows: Float64,
    n_weighing: int,
    coverage: float,
    delta: float,
) -> tuple[Int32, Float64]:
    """Make the leaves of a pruning regions, as far down as enough rows are to be expected.

    Parameters
    ----------
    tree : Tree
        The tree.
    pruning : NodeWeights
        Weights 0 and 1.
    rows : ndarray of shape (m,)
        Training samples in each node, by which those that will weigh there are expected.
    n_weighing : int
        Number of calibration samples.
    coverage, delta : float
        What every region is to keep, all together.

    Returns
    -------
    region : ndarray of int32, shape (m,)
        Region of each node; 0 above all of them.
    mass : ndarray of shape (R,)
        Share of delta of each region, in proportion to one more than its training samples.
    """
    total = float(rows[0])
    inner = np.flatnonzero((reached(tree, pruning) == 1) & (pruning.weight == 0))
    splits = np.zeros(tree.n_nodes, dtype=bool)
    log_delta = compute_log_delta(delta)
    for node in inner.tolist():
        children = rows[tree.left[node] : tree.left[node] + 2]
        # A level below half of its share leaves room for the one row more that each region counts.
        levels = log_delta + np.log(np.maximum(children, 0.5) / (2 * total))
        needed = np.array([count_rows_to_cover(coverage, level) for level in levels.tolist()])
        splits[node] = (children * n_weighing >= _SPARE * needed * total).all()
    kept = make_pruning(tree, splits & (tree.left != LEAF))
    leaves = np.flatnonzero(kept.weight == 1)
    number = np.zeros((tree.n_nodes, 1))
    number[leaves, 0] = np.arange(len(leaves))
    region = score_nodes(tree.left, kept.weight, None, number, 1)[:, 0]
    parts = rows[leaves] + 1
    return np.round(region).astype(np.int32), parts / parts.sum()


# Rows with the classes of its parent that every cell is given: no class has no share at all, so that
# classes which a leaf lacks are still told apart by what is around it.
_SMOOTHING = 1.0


def compute_class_scores(held: HeldOut) -> Float64:
    """1 less the share of every class in every cell, (m, K), by the training samples alone.

    All prunings vote by the posterior that stops where training samples are few: a single one, or
    leaves that are pure, would leave most classes tied.
    """
    posterior = count_prior(held.tree, held.grown).distributions[0]
    ballots = Voting("mean", _SMOOTHING).ballots(held.tree, held.grown)
    score: Float64 = 1 - ballots.cast(held.tree, posterior).score
    return score


def sort_truth_scores(
    score: Float64,
    code: NDArray[np.intp],
    is_worst: NDArray[np.bool_] | None = None,
    *,
    per_class: bool = False,
) -> Scores:
    """Scores of the classes that rows have.

    Parameters
    ----------
    score : ndarray of shape (n, K)
        1 less the share of each class at each row, by what was known before the rows.
    code : ndarray of int, shape (n,)
        Class of each row; K: another one.
    is_worst : ndarray of bool, shape (n,), or None
        Rows that no set holds, whatever they score; they stay in their classes. None: none.
    per_class : bool
        Whether every class is a region of its own, with as much of delta as the others. Else all rows
        are one region, in which no set holds a class that is none of the K.
    """
    n_classes = score.shape[1]
    known = np.flatnonzero(code < n_classes)
    value = np.full(len(code), np.inf)
    value[known] = score[known, code[known]]
    if is_worst is not None:
        value[is_worst] = np.inf
    if not per_class:
        return Scores.from_rows(value, np.zeros_like(code), np.ones(1))
    return Scores.from_rows(value[known], code[known], np.full(n_classes, 1 / n_classes))
