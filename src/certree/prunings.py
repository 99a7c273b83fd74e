"""Optimal prunings: the 0/1 case of a law over prunings."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from certree import _core
from certree.columns import Float64, column, nonnegative
from certree.stats import NodeStats, Stats
from certree.tree import Tree
from certree.weights import Family, NodeWeights, _decided, chain_stops, gains_of


def _family(tree: Tree, terms: list[Float64], fixed: list[float]) -> Family:
    """Prunings that maximise a sum of terms over leaves; see `Family`."""
    gains = np.stack([gains_of(tree, term) for term in terms], axis=1)
    root = np.array([term[0] for term in terms])
    return Family(tree, gains, root, np.array(fixed), chain_stops(tree), prune=True)


def prune(tree: Tree, cost: ArrayLike) -> NodeWeights:
    """Find the pruning with the smallest sum of costs over its leaves, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    cost : array-like of shape (m,)
        Cost of each node as a leaf, finite.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. On ties the smaller tree.

    Raises
    ------
    TypeError
        If the dtype does not convert without loss.
    ValueError
        If a cost is not finite.
    """
    costs: Float64 = column("cost", cost, "float64", (tree.n_nodes,))
    if not np.isfinite(costs).all():
        raise ValueError("cost must be finite")
    return _family(tree, [costs], [-1.0]).at()


def cost_complexity_family(tree: Tree, stats: Stats) -> Family:
    """The cost-complexity prunings of a tree, by their price; see `cost_complexity`."""
    occupied = (stats.of(tree).n > 0).astype(np.float64)
    return _family(tree, [occupied, stats.loss], [-1.0])


def cost_complexity(tree: Tree, stats: Stats, lambda_penalty: float) -> NodeWeights:
    """Find the pruning with the fewest errors plus `lambda_penalty` per leaf that holds rows.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes.
    lambda_penalty : float
        Price of a leaf (errors), >= 0.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. On ties the smaller tree.

    Raises
    ------
    ValueError
        If the price is negative or not finite.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Section 3.3.
    """
    return cost_complexity_family(tree, stats).at(nonnegative("lambda_penalty", lambda_penalty))


def depth_penalised_family(tree: Tree, stats: Stats) -> Family:
    """The depth-penalised prunings of a tree, by their price; see `depth_penalised`."""
    rows = stats.of(tree).n
    depth = tree.node_depth.astype(np.float64)
    # n sqrt(max(p, d / n) d / n) with p = rows / n: errors and penalty both in rows.
    return _family(tree, [np.sqrt(np.maximum(rows, depth) * depth), stats.loss], [-1.0])


def depth_penalised(tree: Tree, stats: Stats, lambda_penalty: float) -> NodeWeights:
    """Find the pruning with the smallest error plus Scott and Nowak's spatially adaptive penalty.

    Minimises ``err / n + lambda_penalty * sum over leaves of sqrt(max(p, d / n) d / n)`` for leaves
    with a share p of the n rows and depth d.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes.
    lambda_penalty : float
        Weight of the penalty, >= 0.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. On ties the smaller tree.

    Raises
    ------
    ValueError
        If the weight is negative or not finite.

    References
    ----------
    Scott and Nowak, "Minimax-optimal classification with dyadic decision trees", IEEE Trans.
    Information Theory 2006, as "SN-pruning" in Nguyen and Kpotufe, NeurIPS 2018, Section 5.
    """
    return depth_penalised_family(tree, stats).at(nonnegative("lambda_penalty", lambda_penalty))


@dataclass(frozen=True, slots=True, eq=False)
class CostComplexityPath:
    """All cost-complexity prunings of a tree, from the largest to the root alone.

    Parameters
    ----------
    tree : Tree
        The tree.
    prices : ndarray of float64, shape (s,)
        Ascending, from 0. Pruning i is the optimal one from prices[i] on, up to the next price.
    critical : ndarray of float64, shape (m,)
        Price from which on a node is not split; -1 at leaves.
    """

    tree: Tree
    prices: Float64
    critical: Float64

    def pruning(self, step: int) -> NodeWeights:
        """The pruning of one step of the path: weights 0 and 1."""
        return _decided(self.tree, self.critical > self.prices[step])


Cost = Literal["error", "gini", "entropy"]


def impurity_cost(stats: NodeStats, cost: Cost) -> Float64:
    """Rows of each node times its impurity, (m,): errors, Gini index, or entropy in nats."""
    if cost == "error":
        return stats.errors
    if cost not in ("gini", "entropy"):
        raise ValueError(f'cost must be "error", "gini" or "entropy", got {cost!r}')
    n = stats.n
    shares = stats.counts / np.maximum(n, np.finfo(np.float64).tiny)[:, None]
    impurity = entr(shares) if cost == "entropy" else shares * (1 - shares)
    total: Float64 = n * impurity.sum(axis=1)
    return total


def cost_complexity_path(tree: Tree, stats: NodeStats, cost: Cost = "error") -> CostComplexityPath:
    """Find every price of a leaf at which the cost-complexity pruning changes, O(m log m).

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes.
    cost : {"error", "gini", "entropy"}
        What leaves cost besides the price: errors, or rows times impurity (nats for entropy).
        scikit-learn's ``ccp_alpha`` is the price for the criterion's own impurity over all rows.

    Returns
    -------
    CostComplexityPath
        Its prunings are nested.

    Raises
    ------
    ValueError
        If `cost` is unknown.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Section 3.3.
    """
    rows = stats.of(tree).n
    costs = impurity_cost(stats, cost)
    critical = _core.critical_prices(tree.left, costs, (rows > 0).astype(np.float64))
    prices = np.unique(critical[(critical > 0) & np.isfinite(critical)])
    return CostComplexityPath(tree, np.concatenate([[0.0], prices]), critical)
