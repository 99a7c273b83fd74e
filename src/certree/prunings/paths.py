"""Paths of nested prunings of a tree, and the values of alpha at which the pruning changes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from certree._core import find_critical_prices, find_merge_order
from certree.interface.arrays import ArrayRecord, Float64, Int32
from certree.interface.parameter_aliases import translate_value
from certree.interface.signatures import validate_arguments, validate_settings
from certree.prunings.leaf_losses import compute_leaf_losses
from certree.prunings.rule import PruningRule
from certree.stats import NodeStats, Stats
from certree.tree import Tree
from certree.weights.family import Scoring, ValidationStatistics, compute_gains
from certree.weights.node_weights import NodeWeights, make_pruning


@dataclass(frozen=True, slots=True, eq=False)
class PruningPath(ArrayRecord):
    """Nested prunings of a tree of m nodes, from the largest pruning (alpha 0) to the smallest.

    alpha is the price of a leaf: a pruning minimises the sum of the costs of its leaves, such as
    their errors, plus alpha times its number of leaves. `cost_complexity_path` makes the object.

    Parameters
    ----------
    tree : Tree
        The tree.
    alphas : ndarray of float64, shape (s,)
        Alphas at which the pruning changes, ascending from 0, in the unit of the costs divided by
        the mean weight of a row. Pruning i is the one of all alphas in ``alphas[i] <= alpha <
        alphas[i + 1]``.
    critical : ndarray of float64, shape (m,)
        Smallest alpha at which each node is not split, at most that of its parent; -1 at leaves.
    """

    tree: Tree
    alphas: Float64
    critical: Float64

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("float64", (None,), "alphas")
        self._check("float64", (self.tree.n_nodes,), "critical")

    def pruning(self, step: int) -> NodeWeights:
        """Return one of the s prunings of this path as `NodeWeights`: 1 at its leaves, else 0.

        A pruning is the tree with some nodes turned into leaves. step: number of the pruning, 0 ..
        s - 1; 0 is the largest pruning, s - 1 the smallest.
        """
        return self.solve(self.alphas[step])

    def solve(self, alpha: float) -> NodeWeights:
        """Return the pruning for a value of alpha, as `NodeWeights`.

        A pruning is the tree with some nodes turned into leaves. The weight is 1 at the leaves of
        the pruning and 0 at other nodes. alpha: a number >= 0. It is the price of a leaf in the
        cost that the pruning minimises; for `MergePath`, the amount by which merging two leaves may
        raise the cost.
        """
        return make_pruning(self.tree, self.critical > alpha)

    def limit_leaves(self, n_leaves: int, alpha: float = 0.0) -> NodeWeights:
        """Return the largest pruning of the path with at most `n_leaves` leaves.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        n_leaves : int
            Largest number of leaves, at least 1.
        alpha : float
            Price of a leaf, >= 0. Only prunings that are optimal for this price or a higher one are
            considered.

        Returns
        -------
        NodeWeights
            The pruning, with weight 1 at its leaves and 0 elsewhere.
        """
        ones = np.ones(self.tree.n_nodes)
        alphas = np.append(np.maximum(self.alphas, alpha), np.inf)
        sizes = self.compute_totals(
            float(self.tree.n_leaves), compute_gains(self.tree, ones), alphas
        )
        return self.solve(alphas[np.argmax(sizes <= min(n_leaves, self.tree.n_leaves))])

    def compute_losses(
        self,
        temperatures: Float64,
        votes: ValidationStatistics,
        scoring: Scoring,
        n_threads: int,  # noqa: ARG002 -- part of the protocol `TuningCandidates`, but not needed here
    ) -> Float64:
        """Compute the validation loss of the prunings for several alphas.

        A pruning is the tree with some nodes turned into leaves; alpha is the price of a leaf.

        Parameters
        ----------
        temperatures : ndarray of float64, shape (g, 1)
            The alphas of g prunings.
        votes : ValidationStatistics
            The prediction of each node of `tree` as a leaf, and statistics of the validation set.
        scoring : {"error", "log_loss", "squared"}
            The loss: weight of misclassified rows, minus the log probability of the class (nats),
            or squared error; "squared" for numeric targets.
        n_threads : int
            Not used here; part of the protocol `TuningCandidates`.

        Returns
        -------
        ndarray of float64, shape (g,)
            Loss of each pruning, summed over the validation set.
        """
        loss = compute_leaf_losses(votes, scoring)
        full_total = loss[self.tree.is_leaf].sum()
        return self.compute_totals(full_total, compute_gains(self.tree, loss), temperatures[:, 0])

    def compute_totals(self, full_total: float, gains: Float64, alphas: Float64) -> Float64:
        """Sum a quantity over the leaves of the prunings for several alphas, in O(m log m) time.

        A pruning is the tree, of m nodes, with some nodes turned into leaves; alpha is the price of
        a leaf.

        Parameters
        ----------
        full_total : float
            The sum over the leaves of the whole tree.
        gains : ndarray of float64, shape (m,)
            Sum of the quantity over the two children of each node, minus that of the node; 0 at
            leaves.
        alphas : ndarray of float64, shape (g,)
            One alpha >= 0 for each pruning.

        Returns
        -------
        ndarray of float64, shape (g,)
            The sum over the leaves of each pruning.
        """
        inner = np.flatnonzero(~self.tree.is_leaf)
        inner = inner[np.argsort(self.critical[inner], kind="stable")]
        # Each node whose critical alpha is reached replaces its children, which undoes its gain.
        totals = np.cumsum(np.concatenate([[full_total], -gains[inner]]))
        n_merged = np.searchsorted(self.critical[inner], alphas, side="right")
        return totals[n_merged]


def _find_alphas(critical: Float64) -> Float64:
    """Return the alphas (prices of a leaf) at which the pruning of a path changes, ascending from 0.

    A pruning is the tree with some nodes turned into leaves. The alphas are 0 and the distinct
    positive values of `critical`. critical: smallest alpha at which the pruning does not split a
    node, (m,), -1 at leaves of the tree; infinite entries are left out.
    """
    changes = np.unique(critical[(critical > 0) & np.isfinite(critical)])
    return np.concatenate([[0.0], changes])


@dataclass(frozen=True, slots=True, eq=False)
class MergePath(PruningPath):
    """The sequence of prunings in which sibling leaves merge one pair at a time, up to the root.

    A pruning is the tree with some nodes turned into leaves; a merge turns the parent of two leaves
    into a leaf. The pruning of a number alpha has all merges before the first one that raises the
    cost by more than alpha. `sibling_merge_path` makes the object, with the fields of `PruningPath`
    and two more.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    alphas : ndarray of float64, shape (s,)
        Alphas at which the pruning changes, ascending from 0, in the unit of the costs divided by
        the mean weight of a row.
    critical : ndarray of float64, shape (m,)
        Smallest alpha at which each node is not split; -1 at leaves.
    order : ndarray of int32, shape (m,)
        Number (0, 1, ...) of the merge that makes a node a leaf; -1 at leaves.
    rises : ndarray of float64, shape (m // 2,)
        By how much each merge raises the cost, in the order of the merges and in units of `alphas`.
        They need not ascend, as a merge may make a cheaper one possible.
    """

    order: Int32
    rises: Float64

    def __post_init__(self) -> None:
        PruningPath.__post_init__(self)  # super() fails in a dataclass with slots
        self._check("int32", (self.tree.n_nodes,), "order")
        self._check("float64", (self.tree.n_nodes // 2,), "rises")

    def pruning_after(self, n_merges: int) -> NodeWeights:
        """Return the pruning after the first `n_merges` merges.

        A pruning is the tree with some nodes turned into leaves. The result has weight 1 at the
        leaves of the pruning and 0 at other nodes. n_merges: a number in 0 .. m // 2 for a tree of
        m nodes; each merge makes the parent of two leaves a leaf. 0 is the whole tree, m // 2 the
        root alone.
        """
        return make_pruning(self.tree, self.order >= n_merges)


Cost = Literal["error", "gini", "entropy", "squared", "log_loss", "squared_error"] | None


def compute_costs(stats: Stats, cost: Cost = None) -> Float64:
    """Compute the cost of each node if it is a leaf, (m,): its loss, or its weight times its impurity.

    Parameters
    ----------
    stats : Stats
        Statistics of the m nodes, such as class counts (`NodeStats`).
    cost : {"error", "gini", "entropy", "squared"} or None
        "error": the weight of misclassified rows; "gini", "entropy": weight times impurity (nats
        for entropy); "squared": the sum of squares of a numeric target; None: the loss
        `Stats.loss`, which is errors, or the sum of squares divided by `TargetStats.unit` (the
        squared distance that counts as one error); for several targets the mean of their losses.
        "log_loss" and "squared_error" are synonyms of "entropy" and "squared".

    Raises
    ------
    ValueError
        If `cost` is unknown, or does not apply to the target.
    """
    if cost is None:
        return stats.loss
    names = ("error", "gini", "entropy") if isinstance(stats, NodeStats) else ("squared",)
    cost = translate_value(cost, names)
    if cost not in names:
        raise ValueError(f"cost must be None or one of {', '.join(names)}, got {cost!r}")
    if cost == "error":
        return stats.loss
    if not isinstance(stats, NodeStats) or cost == "gini":
        return stats.impurity
    return stats.log_loss


def compute_leaf_gains(tree: Tree, stats: Stats, count_empty: bool = False) -> Float64:
    """Compute by how much splitting each node raises the number of leaves, (m,) float64; 0 at leaves.

    tree: the tree; stats: statistics of its nodes, of which `n`, the weight of the rows, is read;
    count_empty: whether leaves without rows count; if not, a split whose rows all go to one child
    adds 0 instead of 1. If they do, a split inside a chain (a node that stands for several nested
    regions with the same rows) adds one leaf without rows. Raise ValueError if `count_empty` is not
    a bool.
    """
    if not isinstance(count_empty, bool | np.bool_):
        raise ValueError(f"count_empty must be True or False, got {count_empty!r}")
    if count_empty:
        return np.where(tree.is_leaf, 0.0, tree.chain)
    return compute_gains(tree, (stats.n > 0).astype(np.float64))


@validate_arguments
def cost_complexity_path(
    tree: Tree, stats: Stats, cost: Cost = None, *, count_empty: bool = False
) -> PruningPath:
    """Find every alpha at which the cost-complexity pruning changes, in O(m log m) time for m nodes.

    A pruning is the tree with some nodes turned into leaves. That of an alpha has the smallest sum
    of costs over its leaves plus alpha per leaf.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats, TargetStats or SeveralStats
        Loss and number of rows of each node.
    cost : {"error", "gini", "entropy", "squared"} or None
        Cost of a leaf besides the penalty: errors, rows times impurity (nats for entropy), or sums
        of squares. None: the loss, which is errors, or sums of squares divided by
        `TargetStats.unit` (the squared distance that counts as one error). "log_loss" is "entropy",
        and "squared_error" is "squared". scikit-learn's ``ccp_alpha`` is alpha for the impurity of
        the criterion, divided by the number of rows.
    count_empty : bool
        Whether leaves without rows pay the penalty too, also those inside chains (nodes that stand
        for several nested regions with the same rows).

    Returns
    -------
    PruningPath
        The prunings and their alphas.

    Raises
    ------
    ValueError
        If `cost` is unknown.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Section 3.3.
    """
    costs = compute_gains(tree, compute_costs(stats.check_tree(tree), cost), stats.weight_unit)
    critical = find_critical_prices(tree.left, costs, compute_leaf_gains(tree, stats, count_empty))
    return PruningPath(tree, _find_alphas(critical), critical)


def _compute_rises(tree: Tree, cost: Float64, unit: float) -> Float64:
    """Compute the cost of each node minus the costs of its two children, (m,); 0 at leaves.

    tree: the tree; cost: cost of each node as a leaf, (m,); unit: divisor of the results, such as
    the mean weight of a row. Rises are rounded to multiples of 2^-40 times the scale of the costs,
    so that those that differ by rounding errors alone are equal.
    """
    # Unary minus would give negative zeros.
    return 0.0 - round_to_scale(compute_gains(tree, cost, unit), np.abs(cost).max() / unit)


def round_to_scale(values: Float64, largest: float) -> Float64:
    """Round values to multiples of 2^-40 times the power of two above `largest`.

    Return an array of the same shape. values: array of any shape; largest: largest magnitude of the
    numbers they are computed from. Values that differ by rounding errors alone become equal.
    Integers stay if `largest` is below 2^40.
    """
    exponent = int(np.frexp(largest)[1]) - 40
    return np.ldexp(np.rint(np.ldexp(values, -exponent)), exponent)


@validate_arguments
def sibling_merge_path(tree: Tree, stats: Stats, cost: Cost = None) -> MergePath:
    """Merge sibling leaves pair by pair, each time the pair that raises the cost least, O(m log m).

    A pruning is the tree with some nodes turned into leaves. Every merge removes one leaf.
    `cost_complexity_path` may instead collapse a large subtree at once, by its mean rise per leaf.
    The pruning for a number alpha is that of critical value pruning: a node stays split if merging
    its children, or those of a node below it, raises the cost by more than alpha.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    stats : NodeStats, TargetStats or SeveralStats
        Loss and number of rows of each node.
    cost : {"error", "gini", "entropy", "squared"} or None
        Cost of a leaf. "error": errors; "gini", "entropy": rows times impurity (nats for entropy);
        "squared": sum of squares of a numeric target; None: errors, or sums of squares divided by
        `TargetStats.unit` (the squared distance that counts as one error).

    Returns
    -------
    MergePath
        Merges with equal rises, up to rounding, are ordered by node number.

    Raises
    ------
    ValueError
        If `cost` is unknown.

    References
    ----------
    Mingers, "An empirical comparison of pruning methods for decision tree induction", Machine
    Learning 1989, as critical value pruning.
    """
    node_rises = _compute_rises(
        tree, compute_costs(stats.check_tree(tree), cost), stats.weight_unit
    )
    order = find_merge_order(tree.left, node_rises)
    merged_nodes = np.argsort(order, kind="stable")[tree.n_leaves :]
    rises = node_rises[merged_nodes]
    critical = np.full(tree.n_nodes, -1.0)
    # A merge happens only after all merges before it, so its critical alpha is the largest rise so far.
    critical[merged_nodes] = np.maximum(np.maximum.accumulate(rises), 0.0)
    return MergePath(tree, _find_alphas(critical), critical, order, rises)


class SiblingMerge(PruningRule):
    """Pruning rule that merges sibling leaves as long as a merge raises the cost by at most alpha.

    The pair that raises the cost least merges first; merging stops before the first merge that
    raises the cost by more than alpha, a number that the estimator chooses, for instance by
    cross-validation. A merge turns the parent of two leaves into a leaf; the cost of a pruning is
    the sum of the costs of its leaves.

    Parameters
    ----------
    cost : {"error", "gini", "entropy", "squared"} or None, default=None
        Cost of a leaf. "error": errors; "gini", "entropy": rows times impurity (nats for entropy);
        "squared": sum of squares of a numeric target; None: errors, or sums of squares divided by
        `TargetStats.unit` (the squared distance that counts as one error).
    """

    def __init__(self, cost: Cost = None) -> None:
        self.cost: Cost = cost

    def family(self, tree: Tree, stats: Stats) -> MergePath:
        """Return the prunings of a tree for all alphas: the sequence of merges of sibling leaves.

        A pruning is the tree with some nodes turned into leaves; alpha is the largest rise in cost
        of a merge. The cost of a leaf is that of the parameter `cost`. tree: the tree; stats:
        statistics of its nodes, such as class counts (`NodeStats`). `MergePath.solve` returns the
        pruning for an alpha.
        """
        return sibling_merge_path(tree, stats, self.cost)
