"""The PAC-Bayes posteriors."""

from dataclasses import replace
from typing import Literal

import numpy as np

from certree.interface.arrays import check_nonnegative
from certree.interface.signatures import validate_arguments
from certree.stats import NodeStats, Stats
from certree.tree import Tree
from certree.weights.family import ChainStops, Family, LossName, chain_stops, loss_family
from certree.weights.node_weights import NodeWeights

PriorName = Literal["leaves", "branching"]


def pac_bayes_family(
    tree: Tree,
    stats: Stats,
    prior: PriorName = "leaves",
    stop_probability: float = 0.5,
    loss: LossName = "error",
) -> Family:
    """The PAC-Bayes posteriors of a tree, by (lambda_error, lambda_penalty); see `pac_bayes`."""
    if prior == "leaves":
        return loss_family(tree, stats, 3, [-1.0], chain_stops(tree), loss=loss)
    if prior == "branching":
        return loss_family(tree, stats, 2, [], branching(tree, stop_probability), loss=loss)
    raise ValueError(f'prior must be "leaves" or "branching", got {prior!r}')


def likeliest_prunings(tree: Tree, stats: Stats) -> Family:
    """The likeliest pruning of each of these posteriors instead, by the prior "leaves".

    Leaves cost 1 / lambda_error: the prunings of least cost-complexity.
    """
    return replace(pac_bayes_family(tree, stats), prune=True)


def branching(tree: Tree, stop_probability: float) -> ChainStops:
    """The branching prior: every cell that T0 splits stops with the same probability."""
    if not 0 < stop_probability < 1:
        raise ValueError(f"stop_probability must lie between 0 and 1, got {stop_probability!r}")
    stop = float(stop_probability)
    return chain_stops(tree, float(np.log1p(-stop)), float(np.log(stop)), free_end=True)


@validate_arguments
def pac_bayes(
    tree: Tree,
    stats: Stats,
    lambda_error: float,
    lambda_penalty: float,
    prior: PriorName = "leaves",
    stop_probability: float = 0.5,
    loss: LossName = "error",
) -> NodeWeights:
    """Weigh all prunings by their loss, their size and a prior.

    A leaf with n(A) rows and err(A) errors has log weight ``-lambda_error err(A) - lambda_penalty
    sqrt(n(A))``, to which the prior adds. For a numeric target err(A) is the sum of squares over the
    unit of loss. By log loss, err(A) is n(A) times the entropy of the classes in A.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    lambda_error : float
        Weight of an error, or a unit of loss (nats), >= 0.
    lambda_penalty : float
        Weight of the square root of a leaf's rows, >= 0. Pools small leaves.
    prior : {"leaves", "branching"}
        "leaves": one nat per leaf that holds rows (the paper's experiments). "branching": each cell
        stops with `stop_probability`; cells that T0 does not split stop for free.
    stop_probability : float
        Of the branching prior, between 0 and 1.
    loss : {"error", "log_loss"}
        What a leaf pays: its errors, or the log loss of its class frequencies (nats).

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        If a temperature is negative or not finite, the prior is unknown, or the loss of a numeric
        target is to be the log loss.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5. The branching prior is that of
    Willems, Shtarkov and Tjalkens, "The context-tree weighting method", IEEE Trans. Information
    Theory 1995.
    """
    family = pac_bayes_family(tree, stats, prior, stop_probability, loss)
    return family.at(
        check_nonnegative("lambda_error", lambda_error),
        check_nonnegative("lambda_penalty", lambda_penalty),
    )


@validate_arguments
def theorem_posterior(
    tree: Tree, stats: NodeStats, lambda_error: float, delta: float
) -> NodeWeights:
    """Weigh all prunings as the paper's Theorem 1 does.

    Every cell A, without rows too, has log weight ``-lambda_error (err(A) + sqrt(2 n(A) log(|T0| /
    delta))) - 3 D0``, where ``|T0|`` and D0 are the number of cells and the depth of the tree, chains
    counted.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes.
    lambda_error : float
        Temperature, between 0 and 2.
    delta : float
        That of the theorem, between 0 and 1: it holds with probability ``1 - 4 delta``.

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        If `lambda_error` or `delta` is out of range.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Theorem 1.
    """
    if not 0 < lambda_error < 2:
        raise ValueError(f"lambda_error must lie between 0 and 2, got {lambda_error!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    deviation = lambda_error * np.sqrt(2 * np.log(tree.n_cells / float(delta)))
    fixed = [-lambda_error, -deviation, -3.0 * tree.depth]
    return loss_family(tree, stats, 3, fixed, chain_stops(tree), empty_leaves=True).at()
