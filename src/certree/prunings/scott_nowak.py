"""Prunings by the penalties of Scott and Nowak: roots of the size of the tree, or of subtrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from math import ceil, comb, e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from certree._core import find_fragment_pruning
from certree.grow.dyadic import dyadic_resolution, get_resolution
from certree.grow.grower import Grower
from certree.interface.arrays import ArrayRecord, Float64, check_nonnegative
from certree.interface.signatures import validate_arguments
from certree.prunings.paths import (
    PruningPath,
    compute_leaf_gains,
    compute_leaf_losses,
    cost_complexity_path,
)
from certree.prunings.penalties import check_cost
from certree.prunings.rule import PruningRule
from certree.stats import Stats
from certree.tree import Tree
from certree.weights.family import Scoring, ValidationVotes, compute_gains
from certree.weights.node_weights import NodeWeights, make_pruning

# Largest smoothness of a boundary for which the number of coefficients does not overflow float64.
_MAX_SMOOTHNESS = 50


def _count_rows(stats: Stats) -> float:
    """Return the number of rows n, at least 1, as the penalties take its logarithm."""
    return max(float(stats.n[0]) / stats.weight_unit, 1.0)


def _count_leaves(stats: Stats, leaf_gains: Float64) -> float:
    """Return the number of leaves of T0, counted as `compute_leaf_gains` counts them; at least 1."""
    return max(float(stats.n[0] > 0) + float(leaf_gains.sum()), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class SquareRootPrunings:
    """The pruning of a path with the smallest cost plus alpha times penalty, for each alpha.

    Parameters
    ----------
    path : PruningPath
        The path.
    costs, penalties : ndarray of float64, shape (s,)
        Cost and penalty of each pruning of the path.
    """

    path: PruningPath
    costs: Float64
    penalties: Float64

    def find_step(self, alpha: float) -> int:
        """Return the step of the best pruning on the path; on ties that of the smallest tree."""
        total = self.costs + alpha * self.penalties
        return len(total) - 1 - int(np.argmin(total[::-1]))

    def solve(self, alpha: float) -> NodeWeights:
        """Return the best pruning: weights 0 and 1."""
        return self.path.pruning(self.find_step(alpha))

    def compute_losses(
        self, temperatures: Float64, votes: ValidationVotes, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Compute the validation loss (g,) of alphas (g, 1); see `Family.compute_losses`."""
        alphas = self.path.alphas[[self.find_step(alpha) for alpha in temperatures[:, 0]]]
        return self.path.compute_losses(alphas[:, None], votes, scoring, n_threads)


@validate_arguments
def square_root_penalised(
    tree: Tree, stats: Stats, alpha: float = 1.0, *, count_empty: bool = False
) -> NodeWeights:
    """Find the pruning with the smallest error plus a penalty proportional to the root of its size.

    It minimises ``err / n + alpha * sqrt(32 log(e n) / n) * sqrt(leaves)``. The penalty is concave in
    the size, so the optimum is a cost-complexity pruning and is found along that path, in O(m log m)
    time.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    alpha : float
        Factor of the penalty, >= 0; 1 in the paper.
    count_empty : bool
        Whether leaves without rows count, also those inside chains, as in the paper.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. On ties the smaller tree.

    Raises
    ------
    ValueError
        If alpha is negative or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (1).
    """
    return SquareRoot(count_empty).family(tree, stats).solve(check_nonnegative("alpha", alpha))


@dataclass(frozen=True, slots=True, eq=False)
class FragmentPrunings(ArrayRecord):
    """The best pruning by the penalty of its cheapest root fragment, for each alpha.

    A root fragment of a pruning is a pruning of it. See `spatially_adaptive`.

    Parameters
    ----------
    tree : Tree
        The tree.
    cost_gains : ndarray of float64, shape (m,)
        By how much splitting each node changes the cost.
    leaf_gains : ndarray of float64, shape (m,)
        How many leaves splitting each node adds.
    chain_leaves : ndarray of float64, shape (m,)
        How many of these are leaves without rows inside the chain of the node.
    size_penalty, cell_penalty : ndarray of float64, shape (m,)
        The penalty of a leaf v of the fragment is alpha times ``size_penalty[v] sqrt(leaves of the
        pruning below v) + cell_penalty[v]``.
    """

    tree: Tree
    cost_gains: Float64
    leaf_gains: Float64
    chain_leaves: Float64
    size_penalty: Float64
    cell_penalty: Float64

    def __post_init__(self) -> None:
        names = (field.name for field in fields(self) if field.name != "tree")
        self._check("float64", (self.tree.n_nodes,), *names)

    def solve(self, alpha: float) -> NodeWeights:
        """Return the best pruning: weights 0 and 1."""
        return make_pruning(self.tree, self._classify_nodes(alpha) > 0)

    def fragment(self, alpha: float) -> NodeWeights:
        """Return the cheapest root fragment of the best pruning: weights 0 and 1."""
        return make_pruning(self.tree, self._classify_nodes(alpha) > 1)

    def _classify_nodes(self, alpha: float) -> NDArray[np.uint8]:
        """Return 2 for nodes that the fragment splits, 1 if only the pruning does, else 0; (m,)."""
        return find_fragment_pruning(
            self.tree.left,
            self.cost_gains,
            self.leaf_gains,
            self.chain_leaves,
            alpha * self.size_penalty,
            alpha * self.cell_penalty,
        )

    def compute_losses(
        self,
        temperatures: Float64,
        votes: ValidationVotes,
        scoring: Scoring,
        n_threads: int,  # noqa: ARG002 -- part of the protocol `Tunable`, but not needed here
    ) -> Float64:
        """Compute the validation loss (g,) of alphas (g, 1); see `Family.compute_losses`."""
        return self.compute_totals(compute_leaf_losses(votes, scoring), temperatures)

    def compute_totals(self, loss: Float64, temperatures: Float64) -> Float64:
        """Sum the losses of nodes (m,) over the leaves of the pruning of each alpha, (g, 1) -> (g,)."""
        return np.array([self.solve(alpha).weight @ loss for alpha in temperatures[:, 0]])


def fragment_prunings(
    tree: Tree,
    stats: Stats,
    *,
    smoothness: float | None = None,
    log_cells: float | None = None,
    count_empty: bool = False,
    cost: ArrayLike | None = None,
) -> FragmentPrunings:
    """Return the prunings of `spatially_adaptive` or, with a smoothness, `polynomial_penalised`.

    The parameters are those of `polynomial_penalised`.
    """
    leaf_gains = compute_leaf_gains(tree, stats.check_tree(tree), count_empty)
    log_regions = (
        log(_count_leaves(stats, leaf_gains))
        if log_cells is None
        else check_nonnegative("log_cells", log_cells)
    )
    n_coefficients = 1.0
    if smoothness is not None:
        gamma, p = _check_smoothness(smoothness), tree.n_features
        degree = ceil(gamma) - 1
        n_coefficients = float(comb(p + degree, degree))
        log_regions *= 1 + gamma / p
    unit = stats.weight_unit
    root_rows = np.sqrt(stats.n / unit)
    return FragmentPrunings(
        tree,
        compute_gains(tree, stats.loss if cost is None else check_cost(tree, cost), unit),
        leaf_gains,
        np.where(tree.is_leaf | (not count_empty), 0.0, tree.chain - 1.0),
        root_rows * sqrt(48 * n_coefficients * log(2 * _count_rows(stats))),
        root_rows * sqrt(48 * log_regions),
    )


def _check_smoothness(smoothness: object) -> float:
    """Return the smoothness as a float, or raise ValueError if it is out of range."""
    gamma = check_nonnegative("smoothness", smoothness)
    if not 1 <= gamma <= _MAX_SMOOTHNESS:
        raise ValueError(f"smoothness must lie in 1 .. {_MAX_SMOOTHNESS}, got {smoothness!r}")
    return gamma


@validate_arguments
def spatially_adaptive(
    tree: Tree,
    stats: Stats,
    alpha: float = 1.0,
    *,
    log_cells: float | None = None,
    count_empty: bool = False,
) -> NodeWeights:
    """Find the pruning with the smallest error plus the penalty of its cheapest root fragment.

    A root fragment R of a pruning T is a pruning of T. A leaf v of R holds n(v) rows, and T has T(v)
    leaves in v. The penalty of T is the smallest over all R of ``alpha / n * sum over leaves v of R of
    (sqrt(48 n(v) T(v) log(2 n)) + sqrt(48 n(v) log_cells))``. The best T and R are found exactly, in
    nearly linear time.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    alpha : float
        Factor of the penalty, >= 0; 1 in the paper.
    log_cells : float or None
        Log of the number of the smallest regions (nats), ``p log(m)`` for a grid with m intervals per
        feature. None: log of the number of leaves of the tree.
    count_empty : bool
        Whether leaves without rows count, also those inside chains, as in the paper.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. On ties a node is not split.

    Raises
    ------
    ValueError
        If alpha or `log_cells` is negative or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (2).
    """
    prunings = fragment_prunings(tree, stats, log_cells=log_cells, count_empty=count_empty)
    return prunings.solve(check_nonnegative("alpha", alpha))


@validate_arguments
def polynomial_penalised(
    tree: Tree,
    stats: Stats,
    smoothness: float,
    alpha: float = 1.0,
    *,
    log_cells: float | None = None,
    count_empty: bool = False,
    cost: ArrayLike | None = None,
) -> NodeWeights:
    """Find the pruning with the smallest error plus the penalty for polynomials in its leaves.

    The penalty is that of `spatially_adaptive` with ``alpha / n * sum over leaves v of R of (sqrt(48
    n(v) V T(v) log(2 n)) + sqrt(48 n(v) (1 + smoothness / p) log_cells))``. V is the number of
    coefficients of a polynomial in p features of the largest degree below the smoothness.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    smoothness : float
        Hoelder exponent of the boundary between classes, >= 1: the number of its derivatives plus the
        exponent of the last one.
    alpha, log_cells, count_empty
        See `spatially_adaptive`.
    cost : array-like of shape (m,), or None
        Errors of each node as a leaf, for instance those of a polynomial fitted to its rows. Any finite
        numbers are allowed; children may have more errors than their parent. None: the loss of the
        node, which predicts a constant.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. On ties a node is not split.

    Raises
    ------
    TypeError
        If the dtype of `cost` does not convert without loss.
    ValueError
        If a number is out of range or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (3).
    """
    prunings = fragment_prunings(
        tree, stats, smoothness=smoothness, log_cells=log_cells, count_empty=count_empty, cost=cost
    )
    return prunings.solve(check_nonnegative("alpha", alpha))


class ScottNowakRule(PruningRule):
    """Base of the rules of Scott and Nowak, which can set the resolution of a dyadic grower."""

    count_empty: bool

    def exponent(self, n_features: int) -> float:
        """Return the exponent of the resolution in the rule's theorem; see `dyadic_resolution`."""
        raise NotImplementedError

    def family(
        self, tree: Tree, stats: Stats, exponent: float | None = None
    ) -> SquareRootPrunings | FragmentPrunings:
        """Return the pruning with the lowest errors + alpha * penalty, for every alpha >= 0.

        `exponent` is that of the resolution of the tree; None if the tree has no resolution.
        """
        raise NotImplementedError

    def match_grower(self, grower: Grower, n_features: int) -> tuple[Callable[..., Any], Grower]:
        """Return the family function and the grower, with the theorem's exponent if it has none.

        A grower without a resolution is returned as it is.
        """
        if get_resolution(grower) is None:
            return self.family, grower
        with_exponent = clone(grower)
        if with_exponent.exponent is None:
            with_exponent.exponent = self.exponent(n_features)
        if with_exponent.depends_on_rows:
            return partial(self.family, exponent=with_exponent.exponent), with_exponent
        # The tree of a fixed grid has all regions, also those without rows, so all its leaves count.
        rule = clone(self)
        rule.count_empty = True
        return rule.family, with_exponent


class SquareRoot(ScottNowakRule):
    """The rule with the square root of the size, equation (1); see `square_root_penalised`.

    Parameters
    ----------
    count_empty : bool, default=False
        Whether leaves without rows count, also those inside chains, as in the paper. They always count
        with ``Grid(box, resolution="paper")``.
    """

    def __init__(self, count_empty: bool = False) -> None:
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """Return 1 / (p + 1)."""
        return 1 / (n_features + 1)

    def family(
        self,
        tree: Tree,
        stats: Stats,
        exponent: float | None = None,  # noqa: ARG002 -- this penalty has no term with the resolution
    ) -> SquareRootPrunings:
        """Return the pruning with the lowest errors + alpha * penalty, for every alpha >= 0."""
        path = cost_complexity_path(tree, stats, count_empty=self.count_empty)
        loss, unit = stats.loss, stats.weight_unit
        leaf_gains = compute_leaf_gains(tree, stats, self.count_empty)
        full_loss = loss[tree.is_leaf].sum() / unit
        costs = path.compute_totals(full_loss, compute_gains(tree, loss, unit), path.alphas)
        sizes = path.compute_totals(_count_leaves(stats, leaf_gains), leaf_gains, path.alphas)
        n = _count_rows(stats)
        return SquareRootPrunings(path, costs, np.sqrt(32 * n * log(e * n) * sizes))


class SpatiallyAdaptive(ScottNowakRule):
    """The rule of Scott and Nowak (2006), equation (2): the spatially adaptive penalty.

    It finds the pruning whose errors and penalty are lowest; see `spatially_adaptive`.

    Parameters
    ----------
    count_empty : bool, default=False
        Whether leaves that no row reaches add to the penalty, also those inside chains. The paper
        counts them (True). They always count with ``Grid(box, resolution="paper")``.
    """

    def __init__(self, count_empty: bool = False) -> None:
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """Return 1 / p."""
        return 1 / n_features

    def family(self, tree: Tree, stats: Stats, exponent: float | None = None) -> FragmentPrunings:
        """Return the pruning with the lowest errors + alpha * penalty, for every alpha >= 0."""
        log_cells = _compute_log_cells(tree, _count_rows(stats), exponent)
        return fragment_prunings(tree, stats, log_cells=log_cells, count_empty=self.count_empty)


class Polynomial(ScottNowakRule):
    """The rule with the cheapest root fragment of polynomials, equation (3).

    See `polynomial_penalised`.

    Parameters
    ----------
    smoothness : float, default=2
        Hoelder exponent of the boundary between classes, >= 1: the number of its derivatives plus the
        exponent of the last one. The polynomials have the largest degree below it.
    count_empty : bool, default=False
        Whether leaves without rows count, also those inside chains, as in the paper. They always count
        with ``Grid(box, resolution="paper")``.
    """

    def __init__(self, smoothness: float = 2, count_empty: bool = False) -> None:
        self.smoothness = smoothness
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """Return 1 / (p + 2 smoothness - 2)."""
        return 1 / (n_features + 2 * _check_smoothness(self.smoothness) - 2)

    def family(
        self,
        tree: Tree,
        stats: Stats,
        exponent: float | None = None,
        cost: ArrayLike | None = None,
        n_grown: float | None = None,
    ) -> FragmentPrunings:
        """Return the pruning with the lowest errors + alpha * penalty, for every alpha >= 0.

        Parameters
        ----------
        tree, stats, exponent
            See `ScottNowakRule.family`.
        cost : array-like of shape (m,), or None
            Errors of each node as a leaf; None: its loss.
        n_grown : float or None
            Number of rows that the tree was grown on; None: that of the statistics.

        Returns
        -------
        FragmentPrunings
        """
        n = _count_rows(stats) if n_grown is None else n_grown
        return fragment_prunings(
            tree,
            stats,
            smoothness=self.smoothness,
            log_cells=_compute_log_cells(tree, n, exponent),
            count_empty=self.count_empty,
            cost=cost,
        )


def _compute_log_cells(tree: Tree, n: float, exponent: float | None) -> float | None:
    """Return the log of the number of smallest regions at a resolution (nats); None without one."""
    if exponent is None:
        return None
    p = tree.n_features
    return p * log(2) * dyadic_resolution(n, p, exponent)
