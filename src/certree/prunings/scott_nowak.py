"""Prunings after Scott and Nowak: penalties in the square root of the size, whole or piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from math import ceil, comb, e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from certree._core import fragment_pruning
from certree.grow.dyadic import dyadic_resolution, resolution_of
from certree.grow.grower import Grower
from certree.interface.arrays import ArrayRecord, Float64, check_nonnegative
from certree.interface.signatures import validate_arguments
from certree.prunings.paths import PruningPath, cost_complexity_path, leaf_gains, losses_as_leaf
from certree.prunings.penalties import finite_cost
from certree.prunings.rule import PruningRule
from certree.stats import Stats
from certree.tree import Tree
from certree.weights.family import JudgedVotes, Scoring, gains_of
from certree.weights.node_weights import NodeWeights, pruning_of

# Of a boundary; the number of coefficients of polynomials must be one of float64.
_MOST_SMOOTH = 50


def _rows(stats: Stats) -> float:
    """Rows in all, n; at least 1, below which the logarithms of the penalties are negative."""
    return max(float(stats.n[0]) / stats.weight_unit, 1.0)


def _size(stats: Stats, gains: Float64) -> float:
    """Leaves of T0, counted like those that splits add."""
    return max(float(stats.n[0] > 0) + float(gains.sum()), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class SquareRootPrunings:
    """The best prunings of a path by a penalty of each, by the alpha that multiplies it.

    Parameters
    ----------
    path : PruningPath
        The path.
    costs, penalties : ndarray of float64, shape (s,)
        Of its prunings.
    """

    path: PruningPath
    costs: Float64
    penalties: Float64

    def step(self, alpha: float) -> int:
        """Number of the best pruning of the path; on ties the smallest tree."""
        total = self.costs + alpha * self.penalties
        return len(total) - 1 - int(np.argmin(total[::-1]))

    def at(self, alpha: float) -> NodeWeights:
        """The best pruning: weights 0 and 1."""
        return self.path.pruning(self.step(alpha))

    def losses(
        self, temperatures: Float64, votes: JudgedVotes, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Held-out loss of the prunings of all alphas, (g, 1) -> (g,); see `Family`."""
        alphas = self.path.alphas[[self.step(alpha) for alpha in temperatures[:, 0]]]
        return self.path.losses(alphas[:, None], votes, scoring, n_threads)


@validate_arguments
def square_root_penalised(
    tree: Tree, stats: Stats, alpha: float = 1.0, *, count_empty: bool = False
) -> NodeWeights:
    """Find the pruning with the smallest error plus a penalty in the square root of its size.

    Minimises ``err / n + alpha * sqrt(32 log(e n) / n) * sqrt(leaves)``. The penalty is concave in
    the size, so the optimum is a cost-complexity pruning: it is searched along their path,
    O(m log m).

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    alpha : float
        Factor of the penalty, >= 0; 1 as the paper has it.
    count_empty : bool
        Whether leaves without rows count, those inside chains too, as in the paper.

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
    return SquareRoot(count_empty).family(tree, stats).at(check_nonnegative("alpha", alpha))


@dataclass(frozen=True, slots=True, eq=False)
class FragmentPrunings(ArrayRecord):
    """Prunings that pay for the leaves of their cheapest root fragment, by an alpha.

    Parameters
    ----------
    tree : Tree
        The tree.
    cost_gains, leaf_gains, chain_leaves : ndarray of float64, shape (m,)
        What splitting a node adds to the cost and the leaves, and how many of those lie beside its
        chain.
    size_penalty, cell_penalty : ndarray of float64, shape (m,)
        A leaf v of the fragment pays ``size_penalty[v] sqrt(leaves of the pruning in v) +
        cell_penalty[v]``.
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

    def at(self, alpha: float) -> NodeWeights:
        """The best pruning: weights 0 and 1."""
        return pruning_of(self.tree, self._division(alpha) > 0)

    def fragment(self, alpha: float) -> NodeWeights:
        """The cheapest root fragment of the best pruning, as a pruning."""
        return pruning_of(self.tree, self._division(alpha) > 1)

    def _division(self, alpha: float) -> NDArray[np.uint8]:
        return fragment_pruning(
            self.tree.left,
            self.cost_gains,
            self.leaf_gains,
            self.chain_leaves,
            alpha * self.size_penalty,
            alpha * self.cell_penalty,
        )

    def losses(
        self,
        temperatures: Float64,
        votes: JudgedVotes,
        scoring: Scoring,
        n_threads: int,  # noqa: ARG002 -- tuned like the posteriors, but each alpha is one pass
    ) -> Float64:
        """Held-out loss of the prunings of all alphas, (g, 1) -> (g,); see `Family`."""
        return self.totals(losses_as_leaf(votes, scoring), temperatures)

    def totals(self, loss: Float64, temperatures: Float64) -> Float64:
        """What the leaves of the prunings of all alphas lose, (g, 1) -> (g,), if nodes do (m,)."""
        return np.array([self.at(alpha).weight @ loss for alpha in temperatures[:, 0]])


def fragment_prunings(
    tree: Tree,
    stats: Stats,
    *,
    smoothness: float | None = None,
    log_cells: float | None = None,
    count_empty: bool = False,
    cost: ArrayLike | None = None,
) -> FragmentPrunings:
    """The prunings of `spatially_adaptive` or, of some smoothness, `polynomial_penalised`."""
    gains = leaf_gains(tree, stats.of(tree), count_empty)
    cells = (
        log(_size(stats, gains)) if log_cells is None else check_nonnegative("log_cells", log_cells)
    )
    coefficients = 1.0
    if smoothness is not None:
        gamma, p = _smooth(smoothness), tree.n_features
        degree = ceil(gamma) - 1
        coefficients = float(comb(p + degree, degree))
        cells *= 1 + gamma / p
    unit = stats.weight_unit
    root_rows = np.sqrt(stats.n / unit)
    return FragmentPrunings(
        tree,
        gains_of(tree, stats.loss if cost is None else finite_cost(tree, cost), unit),
        gains,
        np.where(tree.is_leaf | (not count_empty), 0.0, tree.chain - 1.0),
        root_rows * sqrt(48 * coefficients * log(2 * _rows(stats))),
        root_rows * sqrt(48 * cells),
    )


def _smooth(smoothness: object) -> float:
    """Check the smoothness of a boundary, gamma."""
    gamma = check_nonnegative("smoothness", smoothness)
    if not 1 <= gamma <= _MOST_SMOOTH:
        raise ValueError(f"smoothness must lie in 1 .. {_MOST_SMOOTH}, got {smoothness!r}")
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

    A root fragment R of a pruning T is a pruning of T. Its leaves v hold n(v) rows and T(v) of T's
    leaves. The penalty is the smallest over all R of ``alpha / n * sum over leaves v of R of
    (sqrt(48 n(v) T(v) log(2 n)) + sqrt(48 n(v) log_cells))``. T and R are found together, exactly, in
    one pass that takes nearly linear time.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    alpha : float
        Factor of the penalty, >= 0; 1 as the paper has it.
    log_cells : float or None
        Log of the number of the smallest cells (nats), ``p log(m)`` for a grid of m cells a side;
        None: of the number of leaves of the tree.
    count_empty : bool
        Whether leaves without rows count, those inside chains too, as in the paper.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. A node is split only if that is better than to stop.

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
    return prunings.at(check_nonnegative("alpha", alpha))


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

    Like `spatially_adaptive`, with ``alpha / n * sum over leaves v of R of (sqrt(48 n(v) V T(v)
    log(2 n)) + sqrt(48 n(v) (1 + smoothness / p) log_cells))``, where V is the number of
    coefficients of a polynomial in p features of the largest degree below the smoothness.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    smoothness : float
        Hoelder exponent of the boundary between classes, >= 1: how often it can be differentiated,
        and the exponent of the last derivative.
    alpha, log_cells, count_empty
        See `spatially_adaptive`.
    cost : array-like of shape (m,), or None
        Errors of each node as a leaf, such as those of a polynomial in it on its rows; None: its
        loss, that of a constant. They may be any finite numbers, also more in the children than in
        their parent.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. A node is split only if that is better than to stop.

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
    return prunings.at(check_nonnegative("alpha", alpha))


class ScottNowakRule(PruningRule):
    """A rule of theirs, also on the dyadic tree of its theorem."""

    count_empty: bool

    def exponent(self, n_features: int) -> float:
        """Exponent of the resolution of the theorem's tree; see `dyadic_resolution`."""
        raise NotImplementedError

    def family(
        self, tree: Tree, stats: Stats, exponent: float | None = None
    ) -> SquareRootPrunings | FragmentPrunings:
        """The prunings of a tree, by their alpha; the exponent is that of the theorem's tree."""
        raise NotImplementedError

    def matched(self, grower: Grower, n_features: int) -> tuple[Callable[..., Any], Grower]:
        """The family and the grower, both of the resolution of the theorem if one is asked for."""
        if resolution_of(grower) is None:
            return self.family, grower
        theirs = clone(grower)
        if theirs.exponent is None:
            theirs.exponent = self.exponent(n_features)
        if theirs.sees_rows:
            return partial(self.family, exponent=theirs.exponent), theirs
        # All cells are there, those without rows too, so that they say themselves how many they are.
        every = clone(self)
        every.count_empty = True
        return every.family, theirs


class SquareRoot(ScottNowakRule):
    """The square root of the size, equation (1); see `square_root_penalised`.

    Parameters
    ----------
    count_empty : bool, default=False
        Whether leaves without rows count, those inside chains too, as in the paper. Those of
        ``Grid(box, resolution="paper")`` always do.
    """

    def __init__(self, count_empty: bool = False) -> None:
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """1 / (p + 1)."""
        return 1 / (n_features + 1)

    def family(
        self,
        tree: Tree,
        stats: Stats,
        exponent: float | None = None,  # noqa: ARG002 -- see above
    ) -> SquareRootPrunings:
        """The prunings of a tree, by their alpha."""
        path = cost_complexity_path(tree, stats, count_empty=self.count_empty)
        loss, unit = stats.loss, stats.weight_unit
        gains, whole = leaf_gains(tree, stats, self.count_empty), loss[tree.is_leaf].sum() / unit
        costs = path.totals(whole, gains_of(tree, loss, unit), path.alphas)
        sizes = path.totals(_size(stats, gains), gains, path.alphas)
        n = _rows(stats)
        return SquareRootPrunings(path, costs, np.sqrt(32 * n * log(e * n) * sizes))


class SpatiallyAdaptive(ScottNowakRule):
    """The cheapest root fragment, equation (2); see `spatially_adaptive`.

    Parameters
    ----------
    count_empty : bool, default=False
        Whether leaves without rows count, those inside chains too, as in the paper. Those of
        ``Grid(box, resolution="paper")`` always do.
    """

    def __init__(self, count_empty: bool = False) -> None:
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """1 / p."""
        return 1 / n_features

    def family(self, tree: Tree, stats: Stats, exponent: float | None = None) -> FragmentPrunings:
        """The prunings of a tree, by their alpha."""
        log_cells = _log_cells(tree, _rows(stats), exponent)
        return fragment_prunings(tree, stats, log_cells=log_cells, count_empty=self.count_empty)


class Polynomial(ScottNowakRule):
    """The cheapest root fragment of polynomials, equation (3); see `polynomial_penalised`.

    Parameters
    ----------
    smoothness : float, default=2
        Hoelder exponent of the boundary between classes, >= 1: how often it can be differentiated,
        and the exponent of the last derivative. The polynomials have the largest degree below it.
    count_empty : bool, default=False
        Whether leaves without rows count, those inside chains too, as in the paper. Those of
        ``Grid(box, resolution="paper")`` always do.
    """

    def __init__(self, smoothness: float = 2, count_empty: bool = False) -> None:
        self.smoothness = smoothness
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """1 / (p + 2 smoothness - 2)."""
        return 1 / (n_features + 2 * _smooth(self.smoothness) - 2)

    def family(
        self,
        tree: Tree,
        stats: Stats,
        exponent: float | None = None,
        cost: ArrayLike | None = None,
        grown_by: float | None = None,
    ) -> FragmentPrunings:
        """The prunings of a tree, by their alpha; nodes may cost other things than their loss.

        The rows that the theorem's tree was grown by are those of the statistics, if not given.
        """
        return fragment_prunings(
            tree,
            stats,
            smoothness=self.smoothness,
            log_cells=_log_cells(tree, _rows(stats) if grown_by is None else grown_by, exponent),
            count_empty=self.count_empty,
            cost=cost,
        )


def _log_cells(tree: Tree, n: float, exponent: float | None) -> float | None:
    """Log of the number of the smallest cells of the theorem's tree (nats); None without one."""
    if exponent is None:
        return None
    p = tree.n_features
    return p * log(2) * dyadic_resolution(n, p, exponent)
