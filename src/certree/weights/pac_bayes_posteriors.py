"""The PAC-Bayes posteriors over prunings, by prior and loss."""

from dataclasses import replace
from typing import Literal

import numpy as np

from certree.interface.arrays import check_nonnegative
from certree.interface.signatures import validate_arguments
from certree.stats import NodeStats, Stats
from certree.tree import Tree
from certree.weights.family import ChainStops, LossName, PosteriorFamily, chain_stops, loss_family
from certree.weights.node_weights import NodeWeights

PriorName = Literal["leaves", "branching"]


def pac_bayes_family(
    tree: Tree,
    stats: Stats,
    prior: PriorName = "leaves",
    stop_probability: float = 0.5,
    loss: LossName = "error",
) -> PosteriorFamily:
    """Return the PAC-Bayes posteriors over prunings, one for each (lambda_error, lambda_penalty).

    A pruning is the tree with some nodes turned into leaves. The log weight of a pruning is the sum
    over its leaves of minus lambda_error times the loss, minus lambda_penalty times the square root
    of the rows, plus the log weight of the prior.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : Stats
        Loss and number of rows of each node.
    prior : {"leaves", "branching"}
        "leaves": log weight -1 for each leaf that holds rows; "branching": each region that the
        tree splits is a leaf with probability `stop_probability`.
    stop_probability : float
        Probability of the branching prior, between 0 and 1.
    loss : {"error", "log_loss"}
        Loss of a leaf: its errors (for a numeric target its sum of squares divided by
        `TargetStats.unit`, the squared distance that counts as one error), or the log loss of its
        class frequencies (nats).

    Returns
    -------
    PosteriorFamily
        The set of these posteriors. Its `solve` takes lambda_error, the factor of the loss, and
        lambda_penalty, the factor of the square root of a leaf's rows.

    Raises
    ------
    ValueError
        If the prior or the loss is unknown, or the loss of a numeric target is "log_loss".
    """
    if prior == "leaves":
        return loss_family(tree, stats, 3, [-1.0], chain_stops(tree), loss=loss)
    if prior == "branching":
        return loss_family(tree, stats, 2, [], branching_stops(tree, stop_probability), loss=loss)
    raise ValueError(f'prior must be "leaves" or "branching", got {prior!r}')


def likeliest_prunings(tree: Tree, stats: Stats) -> PosteriorFamily:
    """Return an object that finds the most likely pruning for given PAC-Bayes inverse temperatures.

    A pruning is the tree with some nodes turned into leaves. The method `solve` of the result takes
    lambda_error, the factor of the loss, and lambda_penalty, the factor of the square root of a
    leaf's rows, and returns the pruning of largest posterior weight. The prior has log weight -1 for
    each leaf that holds rows. The loss is the errors, or the sum of squares divided by
    `TargetStats.unit` (the squared distance that counts as one error). With lambda_penalty 0 the
    pruning is the cost-complexity pruning with ``alpha = 1 / lambda_error``. tree: the tree; stats:
    statistics of its nodes, such as class counts (`NodeStats`).
    """
    return replace(pac_bayes_family(tree, stats), prune=True)


def branching_stops(tree: Tree, stop_probability: float) -> ChainStops:
    """Compute the log weights of the branching prior over prunings, by which each region may be a leaf.

    A pruning is the tree with some nodes turned into leaves. A region that the tree splits is a
    leaf of the pruning with probability `stop_probability`; a leaf of the tree, which cannot be
    split, is a leaf of the pruning with probability 1. tree: the tree. The result holds, for each
    node, the log weight of being a leaf, that of being split, and, if the node stands for several
    nested regions, entropy and mode of the region that is the leaf.

    Raises
    ------
    ValueError
        If the probability is not strictly between 0 and 1.
    """
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
    """Compute the PAC-Bayes posterior over prunings from their loss, their size and a prior.

    A pruning is the tree with some nodes turned into leaves. A leaf A with n(A) rows and err(A)
    errors has log weight ``-lambda_error err(A) - lambda_penalty sqrt(n(A))``, plus that of the
    prior. For a numeric target err(A) is the sum of squares divided by `TargetStats.unit` (the
    squared distance that counts as one error). With the log loss, err(A) is n(A) times the entropy
    of the classes in A.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats, SparseNodeStats, TargetStats or SeveralStats
        Loss and number of rows of each node.
    lambda_error : float
        Inverse temperature: factor of the loss err(A), in nats, >= 0.
    lambda_penalty : float
        Inverse temperature of the penalty: factor of the square root of a leaf's rows, >= 0. It
        favours prunings without small leaves.
    prior : {"leaves", "branching"}
        "leaves": log weight -1 for each leaf that holds rows, as in the experiments of Nguyen and
        Kpotufe (2018). "branching": each region that the tree splits is a leaf with probability
        `stop_probability`; the other regions are leaves with probability 1.
    stop_probability : float
        Probability of the branching prior, between 0 and 1.
    loss : {"error", "log_loss"}
        Loss of a leaf: its errors, or the log loss of its class frequencies (nats).

    Returns
    -------
    NodeWeights
        The posterior.

    Raises
    ------
    ValueError
        If an inverse temperature is negative or not finite, the prior is unknown, or the loss of a
        numeric target is "log_loss".

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5. The branching prior is that of
    Willems, Shtarkov and Tjalkens, "The context-tree weighting method", IEEE Trans. Information
    Theory 1995.
    """
    family = pac_bayes_family(tree, stats, prior, stop_probability, loss)
    return family.solve(
        check_nonnegative("lambda_error", lambda_error),
        check_nonnegative("lambda_penalty", lambda_penalty),
    )


@validate_arguments
def theorem_posterior(
    tree: Tree, stats: NodeStats, lambda_error: float, delta: float
) -> NodeWeights:
    """Compute the posterior over prunings of Theorem 1 of Nguyen and Kpotufe.

    A pruning is the tree with some nodes turned into leaves. A node stands for one or several
    nested regions with the same rows. Each region A of a node has log weight ``-lambda_error
    (err(A) + sqrt(2 n(A) log(N0 / delta))) - 3 D0`` as a leaf, with err(A) errors among n(A) rows.
    ``N0`` is the number of regions of the tree, the sum of `chain`, and D0 its depth. Regions
    without rows count only if they are nodes: ``Dyadic(expand=True)`` and `Grid` store them,
    whereas ``Dyadic()`` leaves them out.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and number of rows of each node.
    lambda_error : float
        Inverse temperature, between 0 and 2.
    delta : float
        Delta of the theorem, between 0 and 1; the theorem holds with probability ``1 - 4 delta``.

    Returns
    -------
    NodeWeights
        The posterior.

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
    return loss_family(tree, stats, 3, fixed, chain_stops(tree), empty_leaves=True).solve()
