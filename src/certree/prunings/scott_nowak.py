"""Prunings after Scott and Nowak: penalties in the square root of the size, whole or piece by piece."""

from dataclasses import dataclass
from math import comb, log
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree import _core
from certree.arrays import Float64, nonnegative
from certree.grow.dyadic import Resolution, dyadic_resolution
from certree.prunings.paths import PruningPath, cost_complexity_path, leaf_gains, losses_as_leaf
from certree.prunings.penalties import finite_cost
from certree.stats import Stats
from certree.tree import Tree
from certree.weights.family import HeldOutVotes, Scoring, gains_of
from certree.weights.node_weights import NodeWeights, _decided


def _rows(stats: Stats) -> float:
    """Rows in all, n; at least 1, below which the logarithms of the penalties are negative."""
    return max(float(stats.n[0]), 1.0)


def _size(stats: Stats, gains: Float64) -> float:
    """Leaves of T0, counted like those that splits add."""
    return max(float(stats.n[0] > 0) + float(gains.sum()), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class SquareRootRule:
    """The best prunings of a path by a penalty of each, by the constant that multiplies it.

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

    def step(self, constant: float) -> int:
        """Number of the best pruning of the path; on ties the smallest tree."""
        total = self.costs + constant * self.penalties
        return len(total) - 1 - int(np.argmin(total[::-1]))

    def at(self, constant: float) -> NodeWeights:
        """The best pruning: weights 0 and 1."""
        return self.path.pruning(self.step(constant))

    def losses(
        self, temperatures: Float64, votes: HeldOutVotes, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Held-out loss of the prunings of all constants, (g, 1) -> (g,); see `Family`."""
        prices = self.path.prices[[self.step(constant) for constant in temperatures[:, 0]]]
        return self.path.losses(prices[:, None], votes, scoring, n_threads)


def square_root_rule(tree: Tree, stats: Stats, *, count_empty: bool = False) -> SquareRootRule:
    """The square-root prunings of a tree, by their constant; see `square_root_penalised`."""
    path = cost_complexity_path(tree, stats, count_empty=count_empty)
    loss, gains = stats.loss, leaf_gains(tree, stats, count_empty)
    costs = path.totals(loss[tree.is_leaf].sum(), gains_of(tree, loss), path.prices)
    sizes = path.totals(_size(stats, gains), gains, path.prices)
    n = _rows(stats)
    return SquareRootRule(path, costs, np.sqrt(32 * n * log(np.e * n) * sizes))


def square_root_penalised(
    tree: Tree, stats: Stats, constant: float = 1.0, *, count_empty: bool = False
) -> NodeWeights:
    """Find the pruning with the smallest error plus a penalty in the square root of its size.

    Minimises ``err / n + constant * sqrt(32 log(e n) / n) * sqrt(leaves)``. The penalty is concave in
    the size, so the optimum is a cost-complexity pruning: it is searched along their path,
    O(m log m).

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    constant : float
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
        If the constant is negative or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (1).
    """
    return square_root_rule(tree, stats, count_empty=count_empty).at(
        nonnegative("constant", constant)
    )


@dataclass(frozen=True, slots=True, eq=False)
class FragmentRule:
    """Prunings that pay for the leaves of their cheapest root fragment, by a constant.

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

    def at(self, constant: float) -> NodeWeights:
        """The best pruning: weights 0 and 1."""
        return _decided(self.tree, self._division(constant) > 0)

    def fragment(self, constant: float) -> NodeWeights:
        """The cheapest root fragment of the best pruning, as a pruning."""
        return _decided(self.tree, self._division(constant) > 1)

    def _division(self, constant: float) -> NDArray[np.uint8]:
        division: NDArray[np.uint8] = _core.fragment_pruning(
            self.tree.left,
            self.cost_gains,
            self.leaf_gains,
            self.chain_leaves,
            constant * self.size_penalty,
            constant * self.cell_penalty,
        )
        return division

    def losses(
        self,
        temperatures: Float64,
        votes: HeldOutVotes,
        scoring: Scoring,
        n_threads: int,  # noqa: ARG002 -- tuned like the laws, but each constant is one pass
    ) -> Float64:
        """Held-out loss of the prunings of all constants, (g, 1) -> (g,); see `Family`."""
        return self.totals(losses_as_leaf(votes, scoring), temperatures)

    def totals(self, loss: Float64, temperatures: Float64) -> Float64:
        """What the leaves of the prunings of all constants lose, (g, 1) -> (g,), if nodes do (m,)."""
        return np.array([self.at(constant).weight @ loss for constant in temperatures[:, 0]])


def fragment_rule(
    tree: Tree,
    stats: Stats,
    *,
    smoothness: int | None = None,
    log_cells: float | None = None,
    count_empty: bool = False,
    cost: ArrayLike | None = None,
) -> FragmentRule:
    """The prunings of `spatially_adaptive` or, of some smoothness, `polynomial_penalised`."""
    gains = leaf_gains(tree, stats.of(tree), count_empty)
    cells = log(_size(stats, gains)) if log_cells is None else nonnegative("log_cells", log_cells)
    coefficients = 1
    if smoothness is not None:
        degree, p = _degree(smoothness), tree.n_features
        coefficients = comb(p + degree, degree)
        cells *= 1 + (degree + 1) / p
    rows = stats.n
    return FragmentRule(
        tree,
        gains_of(tree, stats.loss if cost is None else finite_cost(tree, cost)),
        gains,
        np.where(tree.is_leaf | (not count_empty), 0.0, tree.chain - 1.0),
        np.sqrt(48 * rows * coefficients * log(2 * _rows(stats))),
        np.sqrt(48 * rows * cells),
    )


def _degree(smoothness: object) -> int:
    """Degree of the polynomials for a boundary of some smoothness."""
    if not isinstance(smoothness, Integral) or smoothness < 1:
        raise ValueError(f"smoothness must be a whole number >= 1, got {smoothness!r}")
    return int(smoothness) - 1


def spatially_adaptive(
    tree: Tree,
    stats: Stats,
    constant: float = 1.0,
    *,
    log_cells: float | None = None,
    count_empty: bool = False,
) -> NodeWeights:
    """Find the pruning with the smallest error plus the penalty of its cheapest root fragment.

    A root fragment R of a pruning T is a pruning of T. Its leaves v hold n(v) rows and T(v) of T's
    leaves. The penalty is the smallest over all R of ``constant / n * sum over leaves v of R of
    (sqrt(48 n(v) T(v) log(2 n)) + sqrt(48 n(v) log_cells))``. T and R are found together, exactly, in
    one pass that takes nearly linear time.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    constant : float
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
        If the constant or `log_cells` is negative or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (2).
    """
    rule = fragment_rule(tree, stats, log_cells=log_cells, count_empty=count_empty)
    return rule.at(nonnegative("constant", constant))


def polynomial_penalised(
    tree: Tree,
    stats: Stats,
    smoothness: int,
    constant: float = 1.0,
    *,
    log_cells: float | None = None,
    count_empty: bool = False,
    cost: ArrayLike | None = None,
) -> NodeWeights:
    """Find the pruning with the smallest error plus the penalty for polynomials in its leaves.

    Like `spatially_adaptive`, with ``constant / n * sum over leaves v of R of (sqrt(48 n(v) V T(v)
    log(2 n)) + sqrt(48 n(v) (1 + smoothness / p) log_cells))``, where V is the number of
    coefficients of a polynomial of degree ``smoothness - 1`` in p features.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    smoothness : int
        How often the boundary between classes can be differentiated, >= 1.
    constant, log_cells, count_empty
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
    rule = fragment_rule(
        tree,
        stats,
        smoothness=smoothness,
        log_cells=log_cells,
        count_empty=count_empty,
        cost=cost,
    )
    return rule.at(nonnegative("constant", constant))


@dataclass(frozen=True, slots=True)
class PublishedRule:
    """One of the three rules with its settings, for any tree: ``rule(tree, stats)``.

    Parameters
    ----------
    equation : {1, 2, 3}
        Its number in the paper: `square_root_penalised`, `spatially_adaptive` or
        `polynomial_penalised`.
    count_empty : bool
        Whether leaves without rows count, those inside chains too.
    resolution : "paper" or None
        Whether the trees are those of the rule's theorem; see `grow_dyadic`.
    smoothness : int
        Of rule (3).
    """

    equation: Literal[1, 2, 3]
    count_empty: bool = False
    resolution: Resolution = None
    smoothness: int = 2

    @property
    def settings(self) -> tuple[str, ...]:
        """What the rule reads."""
        every = ("count_empty", "resolution")
        return (*every, "smoothness") if self.equation == 3 else every

    def exponent(self, n_features: int) -> float:
        """Exponent of the resolution of the theorem's tree; see `dyadic_resolution`."""
        return 1 / (n_features + {1: 1, 2: 0, 3: 2 * self.smoothness - 2}[self.equation])

    def __call__(self, tree: Tree, stats: Stats) -> SquareRootRule | FragmentRule:
        """The prunings of a tree, by their constant."""
        if self.equation == 1:
            return square_root_rule(tree, stats, count_empty=self.count_empty)
        p = tree.n_features
        log_cells = None
        if self.resolution is not None:
            log_cells = p * log(2) * dyadic_resolution(_rows(stats), p, self.exponent(p))
        return fragment_rule(
            tree,
            stats,
            smoothness=self.smoothness if self.equation == 3 else None,
            log_cells=log_cells,
            count_empty=self.count_empty,
        )
