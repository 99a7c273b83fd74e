"""A distribution over the prunings of a tree, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from certree._core import likeliest, reach
from certree.interface.arrays import MAX_SETTING, ArrayRecord, Float64, check_column
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats import NodeStats
from certree.tree import Tree, Trees


@dataclass(frozen=True, eq=False)
class NodeWeights(ArrayRecord):
    """A distribution over the prunings of a tree; one pruning is the distribution that always picks it.

    Parameters
    ----------
    weight : array-like of float, shape (m,)
        Probability that a node is a leaf of the pruning. Sums to 1 along every path from the root to
        a leaf of the tree.
    log_odds : array-like of float, shape (m,)
        Log odds that a node is split, once it is reached; -inf at leaves. Says the same as `weight`,
        also where `weight` underflows.
    log_evidence : float
        Log of the sum of all prunings' unnormalised weights (nats); 0 for one pruning and for a
        mixture of distributions, which are normalised.
    chain_entropy : array-like of float, shape (m,)
        Entropy of the cell at which the pruning stops, given that it stops in the node's chain
        (nats).
    chain_mode : array-like of float, shape (m,)
        Log probability of the likeliest such cell (nats).

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If lengths differ, or `weight` holds no probabilities.
    """

    weight: Float64
    log_odds: Float64
    log_evidence: float
    chain_entropy: Float64
    chain_mode: Float64

    def __post_init__(self) -> None:
        validate_settings(self)
        m = len(check_column("weight", self.weight, "float64", (None,)))
        for name in ("weight", "log_odds", "chain_entropy", "chain_mode"):
            object.__setattr__(self, name, check_column(name, getattr(self, name), "float64", (m,)))
        if not ((self.weight >= 0) & (self.weight <= 1 + 1e-9)).all():
            raise ValueError("weight must hold probabilities")
        if np.isnan(self.log_odds).any():
            raise ValueError("log_odds must not be NaN")
        for name in ("chain_entropy", "chain_mode"):
            if not (np.abs(getattr(self, name)) <= MAX_SETTING).all():
                raise ValueError(f"{name} must be finite, and at most {MAX_SETTING:g} in size")

    def of(self, tree: Trees) -> NodeWeights:
        """Check that the weights belong to a tree of this size, and return them."""
        if len(self.weight) != len(tree.left):
            raise ValueError(
                f"weights has {len(self.weight)} nodes, but the tree has {tree.n_nodes} nodes"
            )
        return self

    @cached_property
    def log_decisions(self) -> tuple[Float64, Float64]:
        """Log probabilities that a reached node is a leaf and that it is split, (m,) each."""
        return -np.logaddexp(0, self.log_odds), -np.logaddexp(0, -self.log_odds)

    @property
    def expected_leaves(self) -> float:
        """Expected number of leaves of the pruning."""
        return float(self.weight.sum())


@validate_arguments
def reached(tree: Trees, weights: NodeWeights) -> Float64:
    """Probability that each node is in the pruning, as a leaf or above one: (m,)."""
    return reach(tree.left, weights.of(tree).log_odds)


@validate_arguments
def entropy(tree: Tree, weights: NodeWeights) -> float:
    """Entropy of the posterior over prunings (nats), O(m).

    The sum over nodes of the probability of reaching it times the entropy of its decision, and of
    where in its chain the pruning stops.
    """
    x = weights.of(tree).log_odds
    decided = np.abs(x) < 700  # beyond, the entropy of the decision is below the smallest double
    z = np.where(decided, np.abs(x), 0.0)
    e = np.exp(-z)
    decision = np.where(decided, np.log1p(e) + z * e / (1 + e), 0.0)
    nats = float(reached(tree, weights) @ decision)
    return nats + float(weights.weight @ weights.chain_entropy)


@validate_arguments
def gibbs_risk(stats: NodeStats, weights: NodeWeights) -> float:
    """Expected share of the counted rows that a pruning drawn from it gets wrong, O(m)."""
    if len(stats.label) != len(weights.weight):
        raise ValueError(
            f"stats has {len(stats.label)} nodes, but weights has {len(weights.weight)} nodes"
        )
    rows = float(stats.n[0])
    if rows == 0:
        raise ValueError("stats must count at least one row")
    return float(weights.weight @ stats.errors) / rows


def one_pruning(tree: Tree, pruning: NodeWeights) -> NodeWeights:
    """Check that a distribution always picks the same pruning of a tree, and return it."""
    if not np.isin(pruning.of(tree).weight, (0, 1)).all():
        raise ValueError("pruning must have weights 0 and 1")
    return pruning


def pruning_of(tree: Trees, splits: NDArray[np.bool_]) -> NodeWeights:
    """The one pruning that splits a reached node where `splits` says so."""
    log_odds = np.where(splits & ~tree.is_leaf, np.inf, -np.inf)
    weight = reach(tree.left, log_odds) * (log_odds < 0)
    return NodeWeights(weight, log_odds, 0.0, *2 * [np.zeros(tree.n_nodes)])


def mixed(tree: Tree, posteriors: Iterable[NodeWeights], shares: Float64) -> NodeWeights:
    """Average distributions by their shares; each is looked at once, and may be made when needed.

    A node's probability of being a leaf is the average, so the vote and the Gibbs risk are those of
    the mixture. The distribution returned decides at every node for itself, with these odds. Inside
    a chain its entropy is the average of those of the distributions, which is never above the
    mixture's; its mode likewise never below.
    """
    weight, passed, entropies, modes = np.zeros((4, tree.n_nodes))
    has_chains = bool((tree.chain > 1).any())
    for posterior, share in zip(posteriors, shares, strict=True):
        part = share * posterior.weight
        weight += part
        passed += share * reach(tree.left, posterior.log_odds) * expit(posterior.log_odds)
        if has_chains:
            entropies += part * posterior.chain_entropy
            modes += part * np.exp(posterior.chain_mode)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.log(passed) - np.log(weight)
        if has_chains:
            entropies = np.where(weight > 0, entropies / weight, posterior.chain_entropy)
            modes = np.where(weight > 0, np.log(modes / weight), posterior.chain_mode)
    log_odds = np.where(weight + passed > 0, log_odds, posterior.log_odds)  # never reached
    return NodeWeights(weight, log_odds, 0.0, entropies, modes)


@validate_arguments
def map_pruning(tree: Tree, weights: NodeWeights) -> NodeWeights:
    """The likeliest single pruning, O(m); ties within rounding give the smaller tree.

    Prunings that stop in different cells of one chain count as different ones.
    """
    log_odds = likeliest(tree.left, weights.of(tree).log_odds, weights.chain_mode)
    return pruning_of(tree, log_odds > 0)


@validate_arguments
def sample_pruning(
    tree: Tree, weights: NodeWeights, rng: np.random.Generator | int | None = None
) -> NodeWeights:
    """Draw one pruning from a distribution, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    weights : NodeWeights
        The distribution.
    rng : numpy Generator, int or None
        Source of the randomness, or its seed.

    Returns
    -------
    NodeWeights
        Weights 0 and 1.
    """
    u = np.random.default_rng(rng).random(tree.n_nodes)
    with np.errstate(over="ignore"):
        stop = 1 / (1 + np.exp(weights.of(tree).log_odds))
    return pruning_of(tree, u >= stop)
