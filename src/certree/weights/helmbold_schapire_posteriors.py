"""The posteriors of Helmbold and Schapire, for two classes."""

import numpy as np

from certree.interface.arrays import MAX_SETTING, check_nonnegative
from certree.interface.signatures import validate_arguments
from certree.stats import NodeStats
from certree.tree import LEAF, Tree
from certree.weights.family import PosteriorFamily, loss_family
from certree.weights.node_weights import NodeWeights
from certree.weights.pac_bayes_posteriors import branching_stops


def helmbold_schapire_family(tree: Tree, stats: NodeStats) -> PosteriorFamily:
    """Return the Helmbold-Schapire posteriors over prunings, one for each inverse temperature.

    A pruning is the tree with some nodes turned into leaves. The log weight of a pruning is minus
    the inverse temperature times its loss, the sum of ``|y - prediction|`` over the rows (a leaf
    predicts the frequency of class 1 among its rows), plus its prior log weight. That is minus log
    2 for each of its regions, inner nodes and leaves, that the whole tree splits.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of two classes in its nodes.

    Returns
    -------
    PosteriorFamily
        The set of posteriors; its `solve` takes one inverse temperature (nats per row), the factor
        of the loss, and returns a posterior.

    Raises
    ------
    ValueError
        If there are not two classes, or weights sum to more than 1e150.
    """
    if stats.check_tree(tree).n_classes != 2:
        raise ValueError(
            f"y must have 2 classes for Helmbold-Schapire voting, got {stats.n_classes}: use "
            "PAC-Bayes voting, as pac_bayes and PACBayesTreeClassifier do"
        )
    counts = stats.counts
    total_weight = stats.n.max()
    if total_weight > MAX_SETTING:
        raise ValueError(
            f"sample_weight must sum to at most {MAX_SETTING:g}, got {total_weight:g}: divide all "
            "weights by a constant"
        )
    loss = 2 * counts[:, 0] * counts[:, 1] / np.maximum(stats.n, np.finfo(np.float64).tiny)
    # A split lowers the loss by 2 n_l n_r / n times the squared difference of the frequencies. This
    # form has no cancellation.
    gains = np.zeros(tree.n_nodes)
    inner = np.flatnonzero(tree.left != LEAF)
    # Products of four counts would overflow; scaling by powers of two changes no digit.
    nodes = np.stack([counts[inner], counts[tree.left[inner]], counts[tree.left[inner] + 1]])
    exponent = np.frexp(nodes.max(axis=(0, 2)))[1]
    parent, left, right = np.ldexp(nodes, -exponent[:, None])
    cross = left[:, 0] * right[:, 1] - left[:, 1] * right[:, 0]
    scale = left.sum(axis=1) * right.sum(axis=1) * parent.sum(axis=1)
    gains[inner] = np.ldexp(-2 * cross**2 / np.where(scale > 0, scale, 1), exponent)
    unit = stats.weight_unit
    return PosteriorFamily(
        tree, gains[:, None] / unit, loss[:1] / unit, np.array([]), branching_stops(tree, 0.5)
    )


def label_family(tree: Tree, stats: NodeStats) -> PosteriorFamily:
    """Return the posteriors of a variant of Helmbold-Schapire voting whose nodes predict labels.

    A pruning is the tree with some nodes turned into leaves. All prunings vote by their posterior
    weights. The loss of a pruning is its number of errors, and its prior log weight is minus log 2
    for each of its regions, inner nodes and leaves, that the whole tree splits. tree: the tree;
    stats: class counts of its nodes, and the label (predicted class) of each. The result is the set
    of posteriors: its method `solve` takes one inverse temperature (nats per error), the factor of
    the loss, and returns a posterior.
    """
    return loss_family(tree, stats, 2, [0.0], branching_stops(tree, 0.5))


@validate_arguments
def helmbold_schapire(tree: Tree, stats: NodeStats, inverse_temperature: float) -> NodeWeights:
    """Compute the posterior over prunings of Helmbold and Schapire, for two classes.

    A pruning is the tree with some nodes turned into leaves. A node predicts the frequency of class
    1 among its rows. The weight of a pruning is ``2^-(number of its regions, leaves included, that
    T0 splits) exp(-inverse_temperature loss)``, where T0 is the whole tree and the loss is the sum
    of ``|y - prediction|`` over the rows. Use ``kind="mean"`` in `vote`.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of two classes in its nodes.
    inverse_temperature : float
        Factor of the loss (nats per row), >= 0: minus the log of beta in Helmbold and Schapire
        (1997).

    Returns
    -------
    NodeWeights
        The posterior.

    Raises
    ------
    ValueError
        If there are not two classes, or `inverse_temperature` is negative or not finite.

    References
    ----------
    Helmbold and Schapire, "Predicting nearly as well as the best pruning of a decision tree",
    Machine Learning 1997.
    """
    return helmbold_schapire_family(tree, stats).solve(
        check_nonnegative("inverse_temperature", inverse_temperature)
    )
