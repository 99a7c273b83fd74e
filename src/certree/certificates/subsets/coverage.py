"""Conformity scores of calibration rows, sorted, and the order statistics that cover new rows.

A conformity score says how far a row's target is from a prediction that was fixed before the
calibration rows. With probability ``1 - delta`` a fraction `coverage` of new rows from the same
source has a score of at most the k-th smallest of N calibration scores, if k is one more than the
``1 - delta`` quantile of Bin(N, coverage). This is exact without ties, and conservative with ties.

Prediction intervals use the absolute error divided by the scale of the leaf; prediction sets use 1
minus the probability of the class.
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
    """Return the rank k of the calibration score that covers a fraction of new scores.

    Parameters
    ----------
    n : int
        Number of calibration scores.
    coverage : float
        Fraction of new scores that shall be at most the k-th smallest calibration score, between 0
        and 1.
    delta : float or None
        Probability, over the draw of the calibration scores, with which fewer are; None: the
        coverage holds on average over calibration scores and new scores (marginal coverage).

    Returns
    -------
    int
        The smallest such k, counted from 1 in ascending order; n + 1 if even the largest score is
        not enough.

    Raises
    ------
    ValueError
        If an argument is out of range.

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
        raise ValueError(f"n must be a number of rows in 0 .. 2**53, got {n!r}")
    check_coverage(coverage)
    if delta is None:
        return math.ceil((int(n) + 1) * coverage * (1 - 1e-12))
    return find_order_statistic(int(n), float(coverage), compute_log_delta(delta))


def check_coverage(coverage: Any) -> None:
    """Raise ValueError if `coverage`, a fraction of new rows, is not between 0 and 1 (exclusive)."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Scores(ArrayRecord):
    """Sorted conformity scores of calibration rows, by region; each region is covered separately.

    A region is a set of leaves, or a class; without regions there is one for all rows.

    Parameters
    ----------
    value : array-like of shape (N,)
        Scores, region after region, in ascending order within each; infinity for a row that nothing
        covers.
    start : array-like of int, shape (R + 1,)
        Region r has the scores ``value[start[r]:start[r + 1]]``.
    mass : array-like of shape (R,)
        Fraction of delta, the probability with which the guarantee may fail, that each region uses;
        fixed without the scores; positive, with a sum of at most 1.

    Raises
    ------
    ValueError
        If scores are not ascending within a region, `start` does not rise from 0 to N, or `mass` is
        not positive or sums to more than 1.
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
            raise ValueError(
                f"start must rise from 0 to {len(value)}, the number of scores, got {start}: make "
                "the object by Scores.from_rows"
            )
        if not ((mass > 0).all() and mass.sum() <= 1 + 1e-9):
            raise ValueError(
                "mass, the fraction of delta that each region uses, must hold positive numbers that "
                f"sum to at most 1, got {mass.tolist()}: divide them by their sum"
            )
        region = np.repeat(np.arange(len(mass)), steps)
        rises = value[1:] >= value[:-1]
        if np.isnan(value).any() or not (rises | (region[1:] > region[:-1])).all():
            raise ValueError(
                "value must be in ascending order within each region, got NaN or another order: "
                "call Scores.from_rows, which sorts them"
            )

    @classmethod
    def from_rows(cls, value: Float64, region: NDArray[np.integer[Any]], mass: Float64) -> Scores:
        """Sort the conformity scores of rows by region and value.

        A region is a set of leaves, or a class; without regions there is one for all rows. value:
        score of each row, (N,); region: region of each row, 0 .. R - 1, (N,); mass: the fraction
        that each region gets of delta, the probability with which the coverage of any region may
        fail, (R,). A region may be without rows.
        """
        order = np.lexsort((value, region))
        start = np.searchsorted(region[order], np.arange(len(mass) + 1))
        return cls(value[order], start.astype(np.int64), mass)

    def find_limits(self, coverage: float, delta: float) -> Float64:
        """Return the largest conformity score in each region that is covered, (R,).

        With probability ``1 - delta``, in all regions at once, a fraction `coverage` of the new
        rows of a region has a score of at most the limit. The limit is a calibration score, or
        infinity in a region with too few rows. A region is a set of leaves, or a class; without
        regions there is one for all rows.

        Raises
        ------
        ValueError
            If an argument is not between 0 and 1, or all regions have too few rows.
        """
        places, sizes = self._find_ranks(coverage, delta), np.diff(self.start).tolist()
        if all(place > n for place, n in zip(places, sizes, strict=True)):
            levels = (compute_log_delta(delta) + np.log(self.mass)).tolist()
            needed = min(count_rows_to_cover(coverage, level) for level in levels)
            raise ValueError(
                f"coverage={coverage!r} with delta={delta!r} needs at least {needed:,} calibration rows"
                f"{' in a region' if len(sizes) > 1 else ''}, got {max(sizes):,}: lower the coverage, "
                "raise delta, or use more rows"
            )
        return np.array([self._get_score(region, place) for region, place in enumerate(places)])

    def certificates(
        self,
        method: str,
        coverage: float,
        delta: float,
        parts: Sequence[str] = ("",),
        **drawn: Any,
    ) -> tuple[Certificate | None, ...]:
        """Certify in each region the fraction of new rows with a score above the limit.

        The limit of a region is the entry that `find_limits` returns for it. A region is a set of
        leaves, or a class; without regions there is one for all rows.

        Parameters
        ----------
        method : str
            Key of `METHODS`, such as "prediction_set".
        coverage : float
            Fraction of new rows of each region whose score is at most the limit, between 0 and 1.
        delta : float
            Probability with which this fails in any region.
        parts : sequence of str
            Name of each region in its certificate, R names.
        **drawn
            How the calibration rows were drawn and repeated: the fields `grouped`, `repeats`,
            `distinct`, `matches`, `worst` and `near_copies` of `Certificate`, by name.

        Returns
        -------
        tuple of (Certificate or None)
            R certificates that hold together; None for a region whose limit is infinite.
        """
        made: list[Certificate | None] = []
        for region, place in enumerate(self._find_ranks(coverage, delta)):
            first, end = self.start[region : region + 2].tolist()
            reach, n = self._get_score(region, place), end - first
            if reach == np.inf:
                made.append(None)
                continue
            outside = float(np.sum(self.value[first:end] > reach)) / n
            nats = max(-math.log(self.mass[region]), 0.0)
            # Counted by rank, as ties may leave fewer scores above the limit.
            observed = ((n - place) / n,)
            entries = method, observed, n, nats, delta, 1.0
            made.append(compute_certificate(*entries, risk=outside, part=parts[region], **drawn))
        return tuple(made)

    def _find_ranks(self, coverage: float, delta: float) -> list[int]:
        """Return the rank of the covering score in each region, from 1, as a list of R ints.

        A region is a set of leaves, or a class; without regions there is one for all rows.
        The covering score is at least that of a fraction `coverage` of the new rows of the region;
        coverage is between 0 and 1. delta: probability with which this fails in any region, of
        which each region has its fraction, the field `mass`. The rank is one more than the number
        of scores if the region has too few rows.
        """
        check_coverage(coverage)
        levels = (compute_log_delta(delta) + np.log(self.mass)).tolist()
        sizes = np.diff(self.start).tolist()
        return [
            find_order_statistic(n, coverage, level) for n, level in zip(sizes, levels, strict=True)
        ]

    def _get_score(self, region: int, place: int) -> float:
        """Return the conformity score of a rank in one region, or infinity if it has fewer scores.

        A region is a set of leaves, or a class; without regions there is one for all rows. region:
        index of the region; place: rank in ascending order, from 1.
        """
        first, end = self.start[region : region + 2].tolist()
        return float(self.value[first + place - 1]) if place <= end - first else math.inf


# A region is expected to get this multiple of the calibration rows that its level needs. Then chance
# rarely leaves it with too few, and its limit is usually below the largest score.
_SPARE = 3


@dataclass(frozen=True, slots=True, eq=False)
class PredictionIntervals(ArrayRecord):
    """Scale and region of each node of a tree, which set the widths of its prediction intervals.

    Certified regressors make it in ``fit``, and keep it as their attribute ``intervals_``.

    The interval of a row in leaf v is its prediction plus and minus ``scale[v]`` times the limit of
    region ``region[v]``. The limit is a quantile of the conformity scores (absolute error divided
    by scale) of the calibration rows in the region, which `Scores.find_limits` computes.

    Parameters
    ----------
    scale : array-like of shape (m,)
        Unit of the half width at each of m nodes, in units of the target, > 0.
    region : array-like of int, shape (m,)
        Region of each node, from 0; the coverage holds in each region separately.

    Raises
    ------
    ValueError
        If `scale` is not positive and finite, or `region` is out of range.
    """

    scale: Float64
    region: Int32

    def __post_init__(self) -> None:
        scale: Float64 = check_column("scale", self.scale, "float64", (None,))
        if not ((scale > 0) & (scale < np.inf)).all():
            raise ValueError(
                f"scale must hold finite numbers > 0, got {scale.min():g} .. {scale.max():g}"
            )
        region = check_codes("region", self.region, len(scale), max(len(scale), 1))
        for name, values in (("scale", scale), ("region", region)):
            object.__setattr__(self, name, values)

    def check_tree(self, tree: Tree) -> Self:
        """Return self if `scale` has an entry for each node of `tree`; raise ValueError if not."""
        expect_nodes(len(self.scale), tree)
        return self

    def scores(self, leaf: Int32, error: Float64, mass: Float64) -> Scores:
        """Compute the sorted conformity scores of rows, absolute error divided by the leaf's scale.

        leaf: node number of the leaf of each row, (N,); error: absolute error of each row, (N,), in
        units of the target; mass: the fraction that each of the R regions gets of delta, the
        probability with which the coverage of any region may fail, (R,).
        """
        with np.errstate(over="ignore"):  # a score of infinity is never covered
            value = error / self.scale[leaf]
        return Scores.from_rows(value, self.region[leaf], mass)

    def half_width(self, leaf: Int32, reach: Float64) -> Float64:
        """Return half the width of the prediction intervals of rows, (N,), in units of the target.

        leaf: node number of the leaf that each row reaches, (N,); reach: limit of the conformity
        score in each region, (R,).
        """
        with np.errstate(over="ignore"):
            half: Float64 = reach[self.region[leaf]] * self.scale[leaf]
        return half


def merge_leaves_into_regions(
    tree: Tree,
    pruning: NodeWeights,
    rows: Float64,
    n_calibration: int,
    coverage: float,
    delta: float,
) -> tuple[Int32, Float64]:
    """Merge the leaves of a pruning into regions that are expected to have enough calibration rows.

    A split of the pruning is kept if both children are expected to receive three times the
    calibration rows that finite intervals need at their fraction of delta.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    pruning : NodeWeights
        Weights 0 and 1 over its nodes; the leaves of the pruning have weight 1.
    rows : ndarray of shape (m,)
        Number of training rows in each node, from which the calibration rows in it are estimated.
    n_calibration : int
        Number of calibration rows.
    coverage, delta : float
        Fraction of the new rows of each region that intervals must contain, and the probability
        with which that of any region may be less.

    Returns
    -------
    region : ndarray of int32, shape (m,)
        Number of the region of each node, 0 .. R - 1; nodes above all regions have 0.
    mass : ndarray of shape (R,)
        Fraction of delta of each region, in proportion to 1 plus its number of training rows.
    """
    total = float(rows[0])
    inner = np.flatnonzero((reached(tree, pruning) == 1) & (pruning.weight == 0))
    splits = np.zeros(tree.n_nodes, dtype=bool)
    log_delta = compute_log_delta(delta)
    for node in inner.tolist():
        children = rows[tree.left[node] : tree.left[node] + 2]
        # Half of the level is enough, although each region counts one training row more.
        levels = log_delta + np.log(np.maximum(children, 0.5) / (2 * total))
        needed = np.array([count_rows_to_cover(coverage, level) for level in levels.tolist()])
        splits[node] = (children * n_calibration >= _SPARE * needed * total).all()
    kept = make_pruning(tree, splits & (tree.left != LEAF))
    leaves = np.flatnonzero(kept.weight == 1)
    number = np.zeros((tree.n_nodes, 1))
    number[leaves, 0] = np.arange(len(leaves))
    region = score_nodes(tree.left, kept.weight, None, number, 1)[:, 0]
    parts = rows[leaves] + 1
    return np.round(region).astype(np.int32), parts / parts.sum()


# Number of rows with the class frequencies of its parent that are added to each node, so that classes
# which a leaf lacks are still ordered by their frequency around it.
_SMOOTHING = 1.0


def compute_class_scores(held: HeldOut) -> Float64:
    """Compute the conformity score of each class in each node, (m, K), from the training set alone.

    The score is 1 minus a class probability: that of the weighted vote of all prunings (the tree
    with some nodes turned into leaves), by a prior in which a node of n training rows becomes a
    leaf with probability 10 / (10 + n). Class frequencies of nodes are smoothed by one row with
    those of the parent. A single pruning with pure leaves would give most classes equal scores.

    held: the tree with the class counts of its training set; its calibration set is not read.
    """
    posterior = count_prior(held.tree, held.grown).distributions[0]
    node_predictions = Voting("mean", _SMOOTHING).ballots(held.tree, held.grown)
    score: Float64 = 1 - node_predictions.compute_vote(held.tree, posterior).score
    return score


def sort_truth_scores(
    score: Float64,
    code: NDArray[np.intp],
    is_worst: NDArray[np.bool_] | None = None,
    *,
    per_class: bool = False,
) -> Scores:
    """Sort the conformity scores of the true classes of calibration rows.

    Parameters
    ----------
    score : ndarray of shape (n, K)
        Score of each class for each row: 1 minus its probability, fixed before the calibration
        rows.
    code : ndarray of int, shape (n,)
        True class of each row, 0 .. K - 1; K: a class that has no score.
    is_worst : ndarray of bool, shape (n,), or None
        True for rows that count as not covered whatever their score, as they equal a row of the fit
        or another calibration row; None: no such rows.
    per_class : bool
        True: each class is a region of its own, which is covered separately and gets 1 / K of
        delta, the probability of failure; rows of code K are left out. False: all rows are one
        region, in which rows of code K have the score infinity.

    Returns
    -------
    Scores
        The scores of the true classes in ascending order, in each region.
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
