"""Nested prunings of a tree, by the alphas at which they change."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from certree._core import critical_prices, merge_order
from certree.interface.arrays import ArrayRecord, Float64, Int32
from certree.interface.parameter_aliases import translate_value
from certree.interface.signatures import validate_arguments, validate_settings
from certree.prunings.rule import PruningRule
from certree.stats import NodeStats, Stats
from certree.tree import Tree
from certree.weights.family import JudgedVotes, Scoring, gains_of
from certree.weights.node_weights import NodeWeights, pruning_of


@dataclass(frozen=True, slots=True, eq=False)
class PruningPath(ArrayRecord):
    """Nested prunings of a tree by their alpha, from the largest to the smallest.

    Parameters
    ----------
    tree : Tree
        The tree.
    alphas : ndarray of float64, shape (s,)
        Ascending, from 0. Pruning i is that of all alphas from alphas[i] on, up to the next one.
    critical : ndarray of float64, shape (m,)
        Price from which on a node is not split, at most that of its parent; -1 at leaves.
    """

    tree: Tree
    alphas: Float64
    critical: Float64

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("float64", (None,), "alphas")
        self._check("float64", (self.tree.n_nodes,), "critical")

    def pruning(self, step: int) -> NodeWeights:
        """The pruning of one step of the path: weights 0 and 1."""
        return self.at(self.alphas[step])

    def at(self, alpha: float) -> NodeWeights:
        """The pruning of any alpha >= 0: weights 0 and 1."""
        return pruning_of(self.tree, self.critical > alpha)

    def of_at_most(self, n_leaves: int, alpha: float = 0.0) -> NodeWeights:
        """The pruning of the lowest alpha from `alpha` on that has at most so many leaves.

        Parameters
        ----------
        n_leaves : int
            At least 1: the root alone is a pruning.
        alpha : float
            At least 0.

        Returns
        -------
        NodeWeights
            Weights 0 and 1.
        """
        ones = np.ones(self.tree.n_nodes)
        alphas = np.append(np.maximum(self.alphas, alpha), np.inf)
        sizes = self.totals(float(self.tree.n_leaves), gains_of(self.tree, ones), alphas)
        return self.at(alphas[np.argmax(sizes <= min(n_leaves, self.tree.n_leaves))])

    def losses(
        self,
        temperatures: Float64,
        votes: JudgedVotes,
        scoring: Scoring,
        n_threads: int,  # noqa: ARG002 -- the paths are tuned like the posteriors, but need no threads
    ) -> Float64:
        """Held-out loss of the prunings of all alphas, (g, 1) -> (g,), O(m log m); see `Family`."""
        loss = losses_as_leaf(votes, scoring)
        whole = loss[self.tree.is_leaf].sum()
        return self.totals(whole, gains_of(self.tree, loss), temperatures[:, 0])

    def totals(self, whole: float, gains: Float64, alphas: Float64) -> Float64:
        """What the prunings of some alphas add up to, if T0 does to `whole`: (s,) -> (s,).

        Each node adds its gain, (m,), where it is split.
        """
        inner = np.flatnonzero(~self.tree.is_leaf)
        inner = inner[np.argsort(self.critical[inner], kind="stable")]
        # At its critical alpha a node takes the place of its children, whose sum it makes up for.
        total = np.cumsum(np.concatenate([[whole], -gains[inner]]))
        n_merged = np.searchsorted(self.critical[inner], alphas, side="right")
        return total[n_merged]


def losses_as_leaf(votes: JudgedVotes, scoring: Scoring) -> Float64:
    """Held-out loss of every node as the leaf of a pruning, (m,), as the core judges a vote."""
    holdout, values = votes.judging, votes.values
    shares: Float64 = np.eye(holdout.shape[1])[votes.label] if values is None else values
    losses: Float64
    if scoring == "squared":
        rows, mean, sse = holdout.T
        with np.errstate(over="ignore"):  # beyond float64 a loss is infinite
            losses = rows * (shares[:, 0] - mean) ** 2 + sse
    elif scoring == "error":
        losses = NodeStats(holdout, shares.argmax(axis=1)).errors
    else:
        shares = shares / shares.sum(axis=1, keepdims=True)
        logs = np.log(np.maximum(shares, np.finfo(np.float64).eps))
        losses = -(holdout * logs).sum(axis=1)
    return losses


def _steps(critical: Float64) -> Float64:
    """The alphas at which a path changes, after 0."""
    changes = np.unique(critical[(critical > 0) & np.isfinite(critical)])
    return np.concatenate([[0.0], changes])


@dataclass(frozen=True, slots=True, eq=False)
class MergePath(PruningPath):
    """The path on which sibling leaves merge one pair at a time, down to the root.

    An alpha admits the merges up to the first one whose rise it does not pay.

    Parameters
    ----------
    order : ndarray of int32, shape (m,)
        Number (0, 1, ...) of the merge that makes a node a leaf; -1 at leaves.
    rises : ndarray of float64, shape (m // 2,)
        By how much each merge raises the cost. Not monotone: a merge may bring a cheaper one
        within reach.
    """

    order: Int32
    rises: Float64

    def __post_init__(self) -> None:
        PruningPath.__post_init__(self)  # super() knows no class that was made anew, with slots
        self._check("int32", (self.tree.n_nodes,), "order")
        self._check("float64", (self.tree.n_nodes // 2,), "rises")

    def after(self, n_merges: int) -> NodeWeights:
        """The pruning after 0 .. m // 2 merges: weights 0 and 1."""
        return pruning_of(self.tree, self.order >= n_merges)


Cost = Literal["error", "gini", "entropy", "squared", "log_loss", "squared_error"] | None


def impurity_cost(stats: Stats, cost: Cost = None) -> Float64:
    """What each node costs as a leaf, (m,): its loss, or its rows times its impurity."""
    if cost is None:
        return stats.loss
    known = ("error", "gini", "entropy") if isinstance(stats, NodeStats) else ("squared",)
    cost = translate_value(cost, known)
    if cost not in known:
        raise ValueError(f"cost must be None or one of {', '.join(known)}, got {cost!r}")
    if cost == "error":
        return stats.loss
    if not isinstance(stats, NodeStats) or cost == "gini":
        return stats.impurity
    return stats.log_loss


def leaf_gains(tree: Tree, stats: Stats, count_empty: bool = False) -> Float64:
    """How many leaves splitting a node adds, (m,): those that hold rows, or all.

    Each halving inside a chain leaves one cell without rows beside it.
    """
    if not isinstance(count_empty, bool | np.bool_):
        raise ValueError(f"count_empty must be True or False, got {count_empty!r}")
    if count_empty:
        return np.where(tree.is_leaf, 0.0, tree.chain)
    return gains_of(tree, (stats.n > 0).astype(np.float64))


@validate_arguments
def cost_complexity_path(
    tree: Tree, stats: Stats, cost: Cost = None, *, count_empty: bool = False
) -> PruningPath:
    """Find every alpha at which the cost-complexity pruning changes, O(m log m).

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    cost : {"error", "gini", "entropy", "squared"} or None
        What leaves cost besides the penalty: errors, rows times impurity (nats for entropy), or sums
        of squares; None: the loss, which is errors, or sums of squares over the unit of loss.
        "log_loss" is "entropy", and "squared_error" is "squared".
        scikit-learn's ``ccp_alpha`` is alpha for the criterion's own impurity over all rows.
    count_empty : bool
        Whether leaves without rows pay the penalty too, also those inside chains.

    Returns
    -------
    PruningPath

    Raises
    ------
    ValueError
        If `cost` is unknown.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Section 3.3.
    """
    costs = gains_of(tree, impurity_cost(stats.of(tree), cost), stats.weight_unit)
    critical = critical_prices(tree.left, costs, leaf_gains(tree, stats, count_empty))
    return PruningPath(tree, _steps(critical), critical)


def _rises(tree: Tree, cost: Float64, unit: float) -> Float64:
    """By how much the cost rises when the children of each node merge, (m,).

    Ties within rounding are ties; see `rounded_off`.
    """
    # A minus would sign zeros.
    return 0.0 - rounded_off(gains_of(tree, cost, unit), np.abs(cost).max() / unit)


def rounded_off(values: Float64, largest: float) -> Float64:
    """Round values to multiples of 2^-40 of the power of two above `largest`.

    Values that differ by rounding alone become equal; where `largest` is below 2^40, integers stay.
    """
    exponent = int(np.frexp(largest)[1]) - 40
    return np.ldexp(np.rint(np.ldexp(values, -exponent)), exponent)


@validate_arguments
def sibling_merge_path(tree: Tree, stats: Stats, cost: Cost = None) -> MergePath:
    """Merge the two sibling leaves whose merge raises the cost least, again and again, O(m log m).

    Every pruning of the sequence has one leaf less than the one before. `cost_complexity_path` may
    collapse a large subtree at once, by its mean rise per leaf; here a node merges after all nodes
    below it, each at its own rise. By their alpha these are the prunings of critical values: a node
    is split if its own rise, or that of a node below it, is higher than alpha.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    cost : {"error", "gini", "entropy", "squared"} or None
        What leaves cost; see `cost_complexity_path`.

    Returns
    -------
    MergePath
        Of merges that raise the cost alike, but for rounding, that of the lowest node comes first.

    Raises
    ------
    ValueError
        If `cost` is unknown.

    References
    ----------
    Mingers, "An empirical comparison of pruning methods for decision tree induction", Machine
    Learning 1989, as critical value pruning.
    """
    rise = _rises(tree, impurity_cost(stats.of(tree), cost), stats.weight_unit)
    order = merge_order(tree.left, rise)
    merged = np.argsort(order, kind="stable")[tree.n_leaves :]
    rises = rise[merged]
    critical = np.full(tree.n_nodes, -1.0)
    # An alpha stops at the first rise above it, so that a merge takes the largest rise so far.
    critical[merged] = np.maximum(np.maximum.accumulate(rises), 0.0)
    return MergePath(tree, _steps(critical), critical, order, rises)


class SiblingMerge(PruningRule):
    """Sibling leaves merge as long as what a merge adds is within alpha.

    See `sibling_merge_path`.

    Parameters
    ----------
    cost : {"error", "gini", "entropy", "squared"} or None, default=None
        What leaves cost; see `cost_complexity_path`.
    """

    def __init__(self, cost: Cost = None) -> None:
        self.cost: Cost = cost

    def family(self, tree: Tree, stats: Stats) -> MergePath:
        """The prunings of a tree, by their alpha."""
        return sibling_merge_path(tree, stats, self.cost)
