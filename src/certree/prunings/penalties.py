"""Optimal prunings by penalties that add over leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln

from certree.interface.arrays import MAX_SETTING, Float64, check_column, check_nonnegative
from certree.interface.signatures import validate_arguments, validate_settings
from certree.prunings.paths import impurity_cost
from certree.prunings.rule import PruningRule
from certree.stats import NodeStats, Stats
from certree.tree import Tree
from certree.weights.family import Family, chain_stops, gains_of
from certree.weights.node_weights import NodeWeights


def _family(
    tree: Tree,
    terms: list[Float64],
    fixed: list[float],
    split: Float64 | float = 0.0,
    unit: float = 1.0,
) -> Family:
    """Prunings that maximise a sum of terms over leaves; see `Family`.

    What splitting a node costs goes to the first term. The last term is divided by a unit.
    """
    units = [*[1.0] * (len(terms) - 1), unit]
    pairs = [*zip(terms, units, strict=True)]
    gains = np.stack([gains_of(tree, *pair) for pair in pairs], axis=1)
    gains[:, 0] += np.where(tree.is_leaf, 0.0, split)
    root = np.array([term[0] / one for term, one in pairs])
    return Family.from_checked(
        tree, gains, root, np.array(fixed, dtype=float), chain_stops(tree), True
    )


@validate_arguments
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
    return _family(tree, [finite_cost(tree, cost)], [-1.0]).at()


def finite_cost(tree: Tree, cost: ArrayLike) -> Float64:
    """Check what each node costs as a leaf, (m,)."""
    costs: Float64 = check_column("cost", cost, "float64", (tree.n_nodes,))
    if not (np.abs(costs) <= MAX_SETTING).all():
        raise ValueError(f"cost must be finite, and at most {MAX_SETTING:g} in size")
    return costs


class CostComplexity(PruningRule):
    """A penalty per leaf that holds rows; see `cost_complexity`."""

    def family(self, tree: Tree, stats: Stats) -> Family:
        """The prunings of a tree, by their alpha."""
        occupied = (stats.of(tree).n > 0).astype(np.float64)
        return _family(tree, [occupied, stats.loss], [-1.0], unit=stats.weight_unit)


@validate_arguments
def cost_complexity(tree: Tree, stats: Stats, alpha: float) -> NodeWeights:
    """Find the pruning with the fewest errors plus `alpha` per leaf that holds rows.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    alpha : float
        Price of a leaf (errors), >= 0.

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
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Section 3.3.
    """
    return CostComplexity().family(tree, stats).at(check_nonnegative("alpha", alpha))


class DepthPenalised(PruningRule):
    """More for deep leaves; see `depth_penalised`."""

    def family(self, tree: Tree, stats: Stats) -> Family:
        """The prunings of a tree, by their alpha."""
        unit = stats.of(tree).weight_unit
        rows = stats.n / unit
        depth = tree.node_depth.astype(np.float64)
        # n sqrt(max(p, d / n) d / n) with p = rows / n: errors and penalty both in rows.
        penalty = np.sqrt(np.maximum(rows, depth) * depth)
        return _family(tree, [penalty, stats.loss], [-1.0], unit=unit)


@validate_arguments
def depth_penalised(tree: Tree, stats: Stats, alpha: float) -> NodeWeights:
    """Find the pruning with the smallest error plus Scott and Nowak's spatially adaptive penalty.

    Minimises ``err / n + alpha * sum over leaves of sqrt(max(p, d / n) d / n)`` for leaves
    with a share p of the n rows and depth d.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    alpha : float
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
    return DepthPenalised().family(tree, stats).at(check_nonnegative("alpha", alpha))


@validate_arguments
def reduced_error(tree: Tree, stats: NodeStats, validation: NodeStats) -> NodeWeights:
    """Find the smallest of the prunings that get the fewest validation rows wrong, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Labels of its nodes, from the rows that grew it.
    validation : NodeStats
        Counts of rows that did not grow it; their labels are not read.

    Returns
    -------
    NodeWeights
        Weights 0 and 1.

    Raises
    ------
    ValueError
        If the two differ in their nodes or classes.

    References
    ----------
    Quinlan, "Simplifying decision trees", International Journal of Man-Machine Studies 1987.
    """
    counts = validation.of(tree).counts
    if validation.n_classes != stats.of(tree).n_classes:
        raise ValueError(
            f"validation has {validation.n_classes} classes, but stats has {stats.n_classes}"
        )
    return prune(tree, NodeStats(counts, stats.label).errors)


def upper_errors(stats: NodeStats, confidence: float) -> Float64:
    """Compute an upper limit of each node's error rate times its number of rows, (m,).

    The number of rows is the node's weight over `weight_unit`. The limit is that of as many rows of
    equal weight as Kish's effective number of the node.
    """
    weight, right = stats.n, stats.n - stats.errors
    some, rows = right > 0, weight / stats.weight_unit
    size = np.divide(stats.effective_size, weight, out=np.ones(len(weight)), where=some)
    # The limit p has P(at most so many errors | p) = confidence, a beta integral in p.
    wrong, correct = size * stats.errors, np.where(some, size * right, 1.0)
    limit = betaincinv(wrong + 1, correct, 1 - float(confidence))
    return np.where(some, rows * limit, rows)


class Pessimistic(PruningRule):
    """The errors that a leaf has at the upper limit of a binomial; see `pessimistic`.

    Parameters
    ----------
    confidence : float, default=0.25
        Between 0 and 1; the smaller, the smaller the tree.
    """

    reads_classes = True

    def __init__(self, confidence: float = 0.25) -> None:
        self.confidence = confidence

    def family(self, tree: Tree, stats: NodeStats) -> Family:
        """The prunings of a tree, by their alpha."""
        validate_settings(self)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {self.confidence!r}")
        unit = stats.of(tree).weight_unit
        added = upper_errors(stats, self.confidence) - stats.errors / unit
        return _family(tree, [added, stats.errors], [-1.0], unit=unit)


@validate_arguments
def pessimistic(
    tree: Tree, stats: NodeStats, alpha: float = 1.0, *, confidence: float = 0.25
) -> NodeWeights:
    """Find the pruning with the fewest errors where each leaf has more than it shows, O(m).

    A leaf with e errors among n rows counts ``e + alpha (n U - e)``, where a binomial share U of
    errors would give at most e with probability `confidence`. Of weighted rows U is that of as many
    rows of equal weight as their effective size says.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes.
    alpha : float
        Factor of the errors that are added, >= 0; 1 as in C4.5.
    confidence : float
        Between 0 and 1; the smaller, the smaller the tree.

    Returns
    -------
    NodeWeights
        Weights 0 and 1. On ties the smaller tree.

    Raises
    ------
    ValueError
        If a number is out of range or not finite.

    Notes
    -----
    The limit is exact, where C4.5 takes an approximation; nodes become leaves, but no subtree takes
    the place of its parent.

    References
    ----------
    Quinlan, "C4.5: Programs for Machine Learning", 1993, Section 4.2, error-based pruning.
    """
    return Pessimistic(confidence).family(tree, stats).at(check_nonnegative("alpha", alpha))


class DescriptionLength(PruningRule):
    """The length of the tree's description; see `minimum_description_length`.

    Parameters
    ----------
    free_splits : bool, default=False
        Whether splits take nothing, as where they do not depend on the classes.
    """

    reads_classes = True

    def __init__(self, free_splits: bool = False) -> None:
        self.free_splits = free_splits

    def family(self, tree: Tree, stats: NodeStats) -> Family:
        """The prunings of a tree, by their alpha."""
        if not isinstance(self.free_splits, bool | np.bool_):
            raise ValueError(f"free_splits must be True or False, got {self.free_splits!r}")
        unit, k = stats.of(tree).weight_unit, stats.n_classes
        n = stats.n / unit
        parameters = (k - 1) / 2 * np.log(np.maximum(n, 1) / 2)
        volume = k / 2 * np.log(np.pi) - gammaln(k / 2)
        nats = impurity_cost(stats, "entropy") / unit
        rows = np.where(n > 0, nats + parameters + volume, 0.0)
        kind = np.full(tree.n_nodes, np.log(2))  # one bit: a leaf or not
        split = 0.0
        if not self.free_splits:
            split = np.log(tree.n_features) + np.log(np.maximum(n - 1, 1))
        # The node that is split keeps its bit.
        return _family(tree, [kind, rows], [-1.0], split + np.log(2))


@validate_arguments
def minimum_description_length(
    tree: Tree, stats: NodeStats, alpha: float = 1.0, *, free_splits: bool = False
) -> NodeWeights:
    """Find the pruning with which tree and classes together are described in the fewest nats, O(m).

    A node takes a bit for whether it is a leaf, a split ``log p`` for its feature and ``log(n(v) -
    1)`` for its cut, a leaf the stochastic complexity of its classes, ``sum over k of n_k log(n /
    n_k) + (K - 1) / 2 log(n / 2) + log(pi^(K / 2) / Gamma(K / 2))``.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Class counts of its nodes.
    alpha : float
        Weight of the nodes and the splits, >= 0; 1 for the description length.
    free_splits : bool
        Whether splits take nothing, as where they do not depend on the classes.

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
    Mehta, Rissanen and Agrawal, "MDL-based decision tree pruning", KDD 1995; the cost of a split is
    that of Rastogi and Shim, "PUBLIC", VLDB 1998.
    """
    return DescriptionLength(free_splits).family(tree, stats).at(check_nonnegative("alpha", alpha))
