"""How far one law over prunings is from another, and how much mass a law gives to a labelling.

Prunings that stop in different cells of one chain label every row alike and count as one here: nodes,
not cells, are where a pruning stops.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from certree._core import log_masses, weigh
from certree.arrays import LARGEST, Float64, codes, column
from certree.signatures import checked
from certree.tree import Tree
from certree.weights.node_weights import NodeWeights, reached


def log_sum(tree: Tree, log_stop: Float64, log_split: Float64) -> float:
    """Log of the sum over all prunings of a product over nodes, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    log_stop : ndarray of float64, shape (m,)
        Log of the factor of a leaf of the pruning; -inf forbids it.
    log_split : ndarray of float64, shape (m,)
        Log of the factor of a node that the pruning splits.

    Returns
    -------
    float
        -inf if all prunings are forbidden.
    """
    nothing = np.zeros((tree.n_nodes, 0))
    stops = np.ascontiguousarray(log_stop), np.ascontiguousarray(log_split)
    return weigh(tree.left, nothing, *stops, np.zeros(0), np.zeros(0), False)[2]


@checked
def kl_divergence(tree: Tree, law: NodeWeights, prior: NodeWeights) -> float:
    """Divergence of a law over prunings from another one (nats), O(m).

    By the chain rule: the sum over nodes of the probability of reaching it times the divergence of
    its decision. For a single pruning it is minus the log of the other law's probability of it.

    Parameters
    ----------
    tree : Tree
        The tree.
    law, prior : NodeWeights
        The law, and the one that it is compared with.

    Returns
    -------
    float
        +inf if the prior forbids what the law allows.

    References
    ----------
    Cover and Thomas, "Elements of information theory", 2006, Theorem 2.5.3.
    """
    own = law.of(tree).log_odds
    nats = np.zeros(len(own))
    decisions = zip(law.log_decisions, prior.of(tree).log_decisions, strict=True)
    for probability, (log_law, log_prior) in zip((expit(-own), expit(own)), decisions, strict=True):
        possible = probability > 0  # 0 times infinity is meant to be 0
        nats[possible] += probability[possible] * (log_law[possible] - log_prior[possible])
    reach = reached(tree, law)
    seen = reach > 0
    with np.errstate(over="ignore"):  # beyond float64 the divergence is infinite
        return float(reach[seen] @ np.maximum(nats[seen], 0.0))


@checked
def renyi_divergence(tree: Tree, law: NodeWeights, prior: NodeWeights, order: float) -> float:
    """Renyi divergence of a law over prunings from another one (nats), O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    law, prior : NodeWeights
        The law, and the one that it is compared with.
    order : float
        Positive and not 1; at 1 the limit is `kl_divergence`.

    Returns
    -------
    float

    References
    ----------
    Van Erven and Harremoes, "Renyi divergence and Kullback-Leibler divergence", IEEE Trans.
    Information Theory 2014.
    """
    order = float(order)
    if not (0 < order <= LARGEST and order != 1):
        raise ValueError(f"order must be positive, at most {LARGEST:g} and not 1, got {order!r}")
    if order > 1 and kl_divergence(tree, law, prior) == np.inf:
        return float("inf")
    factors = []
    decisions = zip(law.of(tree).log_decisions, prior.of(tree).log_decisions, strict=True)
    for log_law, log_prior in decisions:
        with np.errstate(invalid="ignore", over="ignore"):
            tilted = order * log_law + (1 - order) * log_prior
        # What the law never does counts for nothing, and below it the prior may forbid anything.
        factors.append(np.where(log_law == -np.inf, -np.inf, np.where(tilted < np.inf, tilted, 0)))
    return max(log_sum(tree, *factors) / (order - 1), 0.0)


@checked
def log_prior_mass(tree: Tree, prior: NodeWeights, log_label: ArrayLike, label: ArrayLike) -> float:
    """Log of the prior mass of all labelled prunings that predict the same (nats), O(m L).

    A labelled pruning is a pruning and a label for each of its leaves, drawn from the prior label by
    label. Every labelling of the leaves of the tree is the prediction of some of them, the vote over
    prunings is one, and the masses of all labellings sum to at most 1.

    Parameters
    ----------
    tree : Tree
        The tree.
    prior : NodeWeights
        The prior over prunings.
    log_label : array-like of shape (m, L)
        Log of the prior probability of each label at each node as a leaf. Abstention may be one of
        the labels.
    label : array-like of int, shape (m,)
        The labelling, 0 .. L - 1; only those of the tree's leaves are read.

    Returns
    -------
    float
        -inf if no labelled pruning predicts so.

    References
    ----------
    The pass is that of Willems, Shtarkov and Tjalkens, "The context-tree weighting method", IEEE
    Trans. Information Theory 1995, over the prunings that are constant where the labelling is.
    """
    log_prior: Float64 = column("log_label", log_label, "float64", (tree.n_nodes, None))
    cells = codes("label", label, *log_prior.shape)
    stop, split = prior.of(tree).log_decisions
    mass = log_masses(tree.left, cells, stop[None], split[None], log_prior[None])
    return float(mass[0])
