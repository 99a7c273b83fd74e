"""Helmbold and Schapire's posteriors."""

import numpy as np

from certree.interface.arrays import MAX_SETTING, check_nonnegative
from certree.interface.signatures import validate_arguments
from certree.stats import NodeStats
from certree.tree import LEAF, Tree
from certree.weights.family import Family, loss_family
from certree.weights.node_weights import NodeWeights
from certree.weights.pac_bayes_posteriors import branching


def helmbold_schapire_family(tree: Tree, stats: NodeStats) -> Family:
    """The Helmbold-Schapire posteriors of a tree, by their temperature; see `helmbold_schapire`."""
    if stats.of(tree).n_classes != 2:
        raise ValueError(f"Helmbold-Schapire voting takes 2 classes, got {stats.n_classes}")
    counts = stats.counts
    heaviest = stats.n.max()
    if heaviest > MAX_SETTING:
        raise ValueError(f"rows must weigh at most {MAX_SETTING:g} together, got {heaviest:g}")
    loss = 2 * counts[:, 0] * counts[:, 1] / np.maximum(stats.n, np.finfo(np.float64).tiny)
    # A split lowers the loss by 2 n_l n_r / n times the squared difference of the frequencies: this
    # form does not cancel.
    gains = np.zeros(tree.n_nodes)
    inner = np.flatnonzero(tree.left != LEAF)
    # Powers of two change no digit, and the products of four counts would overflow.
    family = np.stack([counts[inner], counts[tree.left[inner]], counts[tree.left[inner] + 1]])
    exponent = np.frexp(family.max(axis=(0, 2)))[1]
    parent, a, b = np.ldexp(family, -exponent[:, None])
    cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    scale = a.sum(axis=1) * b.sum(axis=1) * parent.sum(axis=1)
    gains[inner] = np.ldexp(-2 * cross**2 / np.where(scale > 0, scale, 1), exponent)
    unit = stats.weight_unit
    return Family(tree, gains[:, None] / unit, loss[:1] / unit, np.array([]), branching(tree, 0.5))


def label_family(tree: Tree, stats: NodeStats) -> Family:
    """The posteriors of a tree whose nodes predict their labels instead: the loss is that of errors."""
    return loss_family(tree, stats, 2, [0.0], branching(tree, 0.5))


@validate_arguments
def helmbold_schapire(tree: Tree, stats: NodeStats, inverse_temperature: float) -> NodeWeights:
    """Weigh all prunings as Helmbold and Schapire do, for two classes.

    A node predicts the frequency of class 1 among its rows. A pruning's weight is
    ``2^-(number of its nodes that T0 splits, or could have) exp(-temperature loss)``, where loss
    sums ``|y - prediction|`` over the rows; vote with ``kind="mean"``.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of two classes.
    inverse_temperature : float
        Weight of a unit of loss (nats per row), >= 0: minus the log of their beta.

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        If there are not two classes, or the temperature is negative or not finite.

    References
    ----------
    Helmbold and Schapire, "Predicting nearly as well as the best pruning of a decision tree", Machine
    Learning 1997.
    """
    return helmbold_schapire_family(tree, stats).at(
        check_nonnegative("inverse_temperature", inverse_temperature)
    )
