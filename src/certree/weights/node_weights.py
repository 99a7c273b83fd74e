"""Distributions over the prunings of a tree: entropy, risk, likeliest pruning and samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from certree._core import compute_reach_probabilities, find_likeliest_pruning
from certree.interface.arrays import MAX_SETTING, ArrayRecord, Float64, check_column
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats import NodeStats
from certree.tree import Tree, Trees


@dataclass(frozen=True, eq=False)
class NodeWeights(ArrayRecord):
    """A distribution over the prunings of a tree, or a single pruning.

    Pruning functions such as `cost_complexity`, and posteriors such as `pac_bayes`, return it. A
    pruning is the tree with some nodes turned into leaves. A single pruning is the distribution
    that gives it probability 1. Split decisions of different nodes are independent, so one number
    for each of the m nodes determines the distribution.

    Parameters
    ----------
    weight : array-like of float, shape (m,)
        Probability that each node is a leaf of the pruning. It sums to 1 along every path from the
        root to a leaf of the tree.
    log_odds : array-like of float, shape (m,)
        Log odds that each node is split if it is in the pruning; -inf at leaves. They determine
        `weight`, also where `weight` underflows.
    log_evidence : float
        Log of the sum of all prunings' unnormalised weights (nats); 0 for a single pruning and for
        a mixture of distributions, which are normalised.
    chain_entropy : array-like of float, shape (m,)
        For a node that stands for several nested regions (`Tree.chain`): entropy (nats) of the
        region that is the leaf, if one of them is. 0 for one region.
    chain_mode : array-like of float, shape (m,)
        Log probability of the likeliest such region (nats).

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If lengths differ, `weight` is outside 0 .. 1, `log_odds` is NaN, or another number is not
        finite.
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
            raise ValueError(
                f"weight must hold probabilities in 0 .. 1, got {self.weight.min():g} .. "
                f"{self.weight.max():g}"
            )
        if np.isnan(self.log_odds).any():
            raise ValueError("log_odds must be numbers, -inf or inf, got NaN")
        for name in ("chain_entropy", "chain_mode"):
            if not (np.abs(getattr(self, name)) <= MAX_SETTING).all():
                raise ValueError(
                    f"{name} must be finite, and at most {MAX_SETTING:g} in magnitude, got "
                    f"{getattr(self, name).min():g} .. {getattr(self, name).max():g}"
                )

    def check_tree(self, tree: Trees) -> NodeWeights:
        """Return these weights, or raise ValueError if `tree` has another number of nodes.

        tree: the tree over whose prunings (the tree with some nodes turned into leaves) this is a
        distribution.
        """
        if len(self.weight) != len(tree.left):
            raise ValueError(
                f"weights has {len(self.weight)} nodes, but the tree has {tree.n_nodes} nodes: use "
                "weights of this tree"
            )
        return self

    @cached_property
    def log_decisions(self) -> tuple[Float64, Float64]:
        """Log probabilities that each node is a leaf, or is split, given that the pruning contains it.

        A pruning is the tree with some nodes turned into leaves. The value is a tuple of two
        arrays, (m,) each, computed from `log_odds`, in nats. At leaves of the tree they are 0 and
        -inf.
        """
        return -np.logaddexp(0, self.log_odds), -np.logaddexp(0, -self.log_odds)

    @property
    def expected_leaves(self) -> float:
        """Expected number of leaves of a pruning drawn from the distribution.

        A pruning is the tree with some nodes turned into leaves. The number is the sum of `weight`
        over all nodes.
        """
        return float(self.weight.sum())


@validate_arguments
def reached(tree: Trees, weights: NodeWeights) -> Float64:
    """Return the probability that each node is in a randomly drawn pruning, as a leaf or inner node.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Trees
        The tree, of m nodes.
    weights : NodeWeights
        The distribution over its prunings.

    Returns
    -------
    ndarray of float64, shape (m,)
        Probability that no node above the node is a leaf; 1 at the root.

    Raises
    ------
    ValueError
        If sizes differ.
    """
    return compute_reach_probabilities(tree.left, weights.check_tree(tree).log_odds)


@validate_arguments
def entropy(tree: Tree, weights: NodeWeights) -> float:
    """Compute the entropy of a distribution over prunings (nats), in O(m) time.

    A pruning is the tree with some nodes turned into leaves. The entropy is the sum over nodes of
    the probability that the node is in the pruning, times the entropy of its split decision, plus
    the entropy of the region at which a pruning stops in a chain of nested regions (`Tree.chain`).

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    weights : NodeWeights
        A distribution over its prunings.

    Returns
    -------
    float
        0 for a single pruning.
    """
    log_odds = np.abs(weights.check_tree(tree).log_odds)
    is_uncertain = log_odds < 700  # beyond, the entropy is below the smallest float64
    z = np.where(is_uncertain, log_odds, 0.0)
    e = np.exp(-z)
    split_entropy = np.where(is_uncertain, np.log1p(e) + z * e / (1 + e), 0.0)
    nats = float(reached(tree, weights) @ split_entropy)
    return nats + float(weights.weight @ weights.chain_entropy)


@validate_arguments
def gibbs_risk(stats: NodeStats, weights: NodeWeights) -> float:
    """Compute the Gibbs risk: the expected error of a pruning drawn from a distribution, in O(m) time.

    A pruning is the tree with some nodes turned into leaves. This risk is not the error of the vote
    of all prunings.

    Parameters
    ----------
    stats : NodeStats
        Counts of the rows on which the error is measured, with the labels that the nodes predict.
    weights : NodeWeights
        The distribution, of as many nodes.

    Returns
    -------
    float
        Expected fraction of the rows (of their weight) that are misclassified.

    Raises
    ------
    ValueError
        If sizes differ, or there are no rows.
    """
    if len(stats.label) != len(weights.weight):
        raise ValueError(
            f"stats has {len(stats.label)} nodes, but weights has {len(weights.weight)} nodes: use "
            "both of the same tree"
        )
    total_weight = float(stats.n[0])
    if total_weight == 0:
        raise ValueError("stats must count at least one row, got none")
    return float(weights.weight @ stats.errors) / total_weight


def expect_pruning(tree: Tree, pruning: NodeWeights) -> NodeWeights:
    """Return `pruning`, or raise ValueError unless it is a single pruning, with weights 0 and 1.

    A pruning is the tree with some nodes turned into leaves. `NodeWeights` may also be a
    distribution over prunings. pruning: its `weight` must be 0 or 1 for each node of `tree`: 1 at
    the leaves of the pruning.
    """
    if not np.isin(pruning.check_tree(tree).weight, (0, 1)).all():
        raise ValueError(
            "pruning must have weights 0 and 1, got a distribution over prunings: use map_pruning or "
            "sample_pruning"
        )
    return pruning


def make_pruning(tree: Trees, splits: NDArray[np.bool_]) -> NodeWeights:
    """Return a single pruning of a tree, as `NodeWeights`: 1 at its leaves, 0 at other nodes.

    tree: the tree; splits: whether each node is split, (m,). Entries below a node that is not
    split, and at leaves, have no effect.
    """
    log_odds = np.where(splits & ~tree.is_leaf, np.inf, -np.inf)
    weight = compute_reach_probabilities(tree.left, log_odds) * (log_odds < 0)
    return NodeWeights(weight, log_odds, 0.0, *2 * [np.zeros(tree.n_nodes)])


def mix_posteriors(
    tree: Tree, posteriors: Iterable[NodeWeights], mixture_weights: Float64
) -> NodeWeights:
    """Compute a mixture of distributions over the prunings of a tree.

    A pruning is the tree with some nodes turned into leaves. The probability of each node to be a
    leaf is exactly that of the mixture, so votes and Gibbs risks are those of the mixture, too.
    Split decisions of different nodes are independent in the result, unlike in the mixture. Inside
    chains of nested regions (nodes that stand for several regions with the same rows) its entropy
    is at most that of the mixture, and the probability of the likeliest region at least that.

    Parameters
    ----------
    tree : Tree
        The tree.
    posteriors : iterable of NodeWeights
        At least one distribution. Each is read once, so a generator may compute them one by one.
    mixture_weights : ndarray of float64, shape (number of posteriors,)
        Weight of each distribution; they sum to 1.

    Returns
    -------
    NodeWeights
        The mixture, with `log_evidence` 0.
    """
    weight, split_weight, entropies, modes = np.zeros((4, tree.n_nodes))
    has_chains = bool((tree.chain > 1).any())
    for posterior, mixture_weight in zip(posteriors, mixture_weights, strict=True):
        leaf_weight = mixture_weight * posterior.weight
        weight += leaf_weight
        reach_weight = mixture_weight * compute_reach_probabilities(tree.left, posterior.log_odds)
        split_weight += reach_weight * expit(posterior.log_odds)
        if has_chains:
            entropies += leaf_weight * posterior.chain_entropy
            modes += leaf_weight * np.exp(posterior.chain_mode)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.log(split_weight) - np.log(weight)
        if has_chains:
            entropies = np.where(weight > 0, entropies / weight, posterior.chain_entropy)
            modes = np.where(weight > 0, np.log(modes / weight), posterior.chain_mode)
    # Nodes that are never reached keep the odds of the last distribution.
    log_odds = np.where(weight + split_weight > 0, log_odds, posterior.log_odds)
    return NodeWeights(weight, log_odds, 0.0, entropies, modes)


@validate_arguments
def map_pruning(tree: Tree, weights: NodeWeights) -> NodeWeights:
    """Find the likeliest single pruning of a distribution, in O(m) time.

    A pruning is the tree with some nodes turned into leaves. Ties within rounding give the smaller
    tree. Prunings that stop in different regions of one chain of nested regions (`Tree.chain`:
    regions with the same rows that one node stands for) count as different prunings.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    weights : NodeWeights
        A distribution over its prunings.

    Returns
    -------
    NodeWeights
        The pruning, with weights 0 and 1.
    """
    log_odds = find_likeliest_pruning(
        tree.left, weights.check_tree(tree).log_odds, weights.chain_mode
    )
    return make_pruning(tree, log_odds > 0)


@validate_arguments
def sample_pruning(
    tree: Tree, weights: NodeWeights, rng: np.random.Generator | int | None = None
) -> NodeWeights:
    """Draw one pruning from a distribution, in O(m) time.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    weights : NodeWeights
        The distribution.
    rng : numpy Generator, int or None
        Source of the randomness, or its seed; None: unpredictable.

    Returns
    -------
    NodeWeights
        The pruning, with weights 0 and 1.
    """
    u = np.random.default_rng(rng).random(tree.n_nodes)
    with np.errstate(over="ignore"):
        leaf_probability = 1 / (1 + np.exp(weights.check_tree(tree).log_odds))
    return make_pruning(tree, u >= leaf_probability)
