"""Optimal prunings by penalties that are sums over leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln

from certree.interface.arrays import MAX_SETTING, Float64, check_column, check_nonnegative
from certree.interface.signatures import validate_arguments, validate_settings
from certree.prunings.paths import compute_costs
from certree.prunings.rule import PruningRule
from certree.stats import NodeStats, Stats
from certree.tree import Tree
from certree.weights.family import PosteriorFamily, chain_stops, compute_gains
from certree.weights.node_weights import NodeWeights


def _build_family(
    tree: Tree,
    terms: list[Float64],
    fixed: list[float],
    split: Float64 | float = 0.0,
    unit: float = 1.0,
) -> PosteriorFamily:
    """Build the set of prunings with the smallest cost plus alpha times penalty, one for each alpha.

    A pruning is the tree with some nodes turned into leaves. Its cost and penalty are sums over its
    leaves. There may be several penalties, each with its own alpha. The pruning of given alphas has
    the largest weighted sum of the `terms`, with the factor minus alpha for a penalty and -1 for
    the cost.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    terms : list of ndarray of float64, shape (m,)
        The penalties of each node as a leaf, then terms with constant factors, of which the last is
        the cost.
    fixed : list of float
        Factors of the last ``len(fixed)`` terms, such as -1 for the cost. The factors of the terms
        before them are minus the alphas.
    split : float or ndarray of float64, shape (m,)
        Amount by which splitting a node raises the first penalty.
    unit : float
        Number by which the last term, the cost, is divided, such as the mean weight of a row.

    Returns
    -------
    PosteriorFamily
        The set of these prunings, one for each choice of alphas. Its `solve` takes the alphas, in
        the order of the penalties, and returns the pruning.
    """
    units = [*[1.0] * (len(terms) - 1), unit]
    pairs = [*zip(terms, units, strict=True)]
    gains = np.stack([compute_gains(tree, *pair) for pair in pairs], axis=1)
    gains[:, 0] += np.where(tree.is_leaf, 0.0, split)
    root = np.array([term[0] / term_unit for term, term_unit in pairs])
    return PosteriorFamily.from_checked(
        tree, gains, root, np.array(fixed, dtype=float), chain_stops(tree), True
    )


@validate_arguments
def prune(tree: Tree, cost: ArrayLike) -> NodeWeights:
    """Find the pruning with the smallest sum of costs over its leaves, in O(m) time.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    cost : array-like of shape (m,)
        Cost of each node as a leaf, finite.

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties the smaller tree.

    Raises
    ------
    TypeError
        If the dtype does not convert without loss.
    ValueError
        If a cost is not finite, or their number is not m.
    """
    return _build_family(tree, [check_cost(tree, cost)], [-1.0]).solve()


def check_cost(tree: Tree, cost: ArrayLike) -> Float64:
    """Return the cost of each node as a leaf, as a float64 array, (m,).

    Raise TypeError or ValueError unless `cost`, (m,), has one number of at most 1e150 in magnitude
    for each node of `tree`.
    """
    costs: Float64 = check_column("cost", cost, "float64", (tree.n_nodes,))
    if not (np.abs(costs) <= MAX_SETTING).all():
        raise ValueError(
            f"cost must be finite, and at most {MAX_SETTING:g} in magnitude, got {costs.min():g} .. "
            f"{costs.max():g}"
        )
    return costs


class CostComplexity(PruningRule):
    """Pruning rule that minimises errors + alpha * leaves, of which only leaves with rows count.

    The constructor has no arguments. The estimator chooses alpha. For a numeric target the errors
    are the sum of squares divided by `TargetStats.unit` (the squared distance that counts as one
    error).
    """

    def family(self, tree: Tree, stats: Stats) -> PosteriorFamily:
        """Return the prunings with the fewest errors + alpha * leaves, for all alphas.

        A pruning is the tree with some nodes turned into leaves. alpha is the price of a leaf.
        tree: the tree; stats: statistics of its nodes, with their errors and numbers of rows.
        `PosteriorFamily.solve` returns the pruning for an alpha >= 0. Only leaves with rows count.
        """
        has_rows = (stats.check_tree(tree).n > 0).astype(np.float64)
        return _build_family(tree, [has_rows, stats.loss], [-1.0], unit=stats.weight_unit)


@validate_arguments
def cost_complexity(tree: Tree, stats: Stats, alpha: float) -> NodeWeights:
    """Find the pruning with the fewest errors plus `alpha` per leaf that holds rows.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats, TargetStats or SeveralStats
        Loss and number of rows of each node.
    alpha : float
        Price of a leaf (errors), >= 0.

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties the smaller tree.

    Raises
    ------
    ValueError
        If alpha is negative or not finite.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Section 3.3.
    """
    return CostComplexity().family(tree, stats).solve(check_nonnegative("alpha", alpha))


class DepthPenalised(PruningRule):
    """Pruning rule (choice of a subtree with the same root) whose penalty grows with the leaves' depth.

    The rule chooses the subtree that minimises ``err / n + alpha * sum over leaves of sqrt(max(p, d
    / n) d / n)``, where p is the fraction of the n rows in a leaf, d its depth, and err the errors
    among the n rows. It is the penalty C2 ("SN-pruning") of Nguyen and Kpotufe (2018), after Scott
    and Nowak (2006). The estimator chooses alpha, for instance by cross-validation. The constructor
    has no arguments.
    """

    def family(self, tree: Tree, stats: Stats) -> PosteriorFamily:
        """Return the prunings with the smallest errors + alpha * penalty, for all alphas.

        A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: statistics
        of its nodes, such as class counts (`NodeStats`). The penalty is the sum over the leaves of
        ``sqrt(max(rows, depth) * depth)``, with a leaf's number of rows and its depth.
        `PosteriorFamily.solve` returns the pruning for an alpha >= 0.
        """
        unit = stats.check_tree(tree).weight_unit
        rows = stats.n / unit
        depth = tree.node_depth.astype(np.float64)
        # This is n sqrt(max(p, d / n) d / n) with p = rows / n, in rows like the errors.
        penalty = np.sqrt(np.maximum(rows, depth) * depth)
        return _build_family(tree, [penalty, stats.loss], [-1.0], unit=unit)


@validate_arguments
def depth_penalised(tree: Tree, stats: Stats, alpha: float) -> NodeWeights:
    """Find the pruning with the smallest error plus a penalty that grows with the depth of leaves.

    A pruning is the tree with some nodes turned into leaves. It minimises ``err / n + alpha * sum
    over leaves of sqrt(max(p, d / n) d / n)``, where err is the number of errors (or the loss)
    among n rows, p the fraction of the rows in a leaf, and d its depth.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats, TargetStats or SeveralStats
        Loss and number of rows of each node.
    alpha : float
        Weight of the penalty, >= 0.

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties the smaller tree.

    Raises
    ------
    ValueError
        If alpha is negative or not finite.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5, penalty C2 ("SN-pruning"), after
    Scott and Nowak, "Minimax-optimal classification with dyadic decision trees", IEEE Trans.
    Information Theory 2006.
    """
    return DepthPenalised().family(tree, stats).solve(check_nonnegative("alpha", alpha))


@validate_arguments
def reduced_error(tree: Tree, stats: NodeStats, validation: NodeStats) -> NodeWeights:
    """Find the smallest of the prunings with the fewest errors on a validation set, in O(m) time.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    stats : NodeStats
        Labels of its nodes, from the training set.
    validation : NodeStats
        Class counts of the validation set in the nodes; its labels are not used.

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere.

    Raises
    ------
    ValueError
        If `stats` and `validation` have different numbers of nodes or classes.

    References
    ----------
    Quinlan, "Simplifying decision trees", International Journal of Man-Machine Studies 1987.
    """
    counts = validation.check_tree(tree).counts
    if validation.n_classes != stats.check_tree(tree).n_classes:
        raise ValueError(
            f"validation has {validation.n_classes} classes, but stats has {stats.n_classes}: count "
            "both with the same n_classes"
        )
    return prune(tree, NodeStats(counts, stats.label).errors)


def compute_upper_errors(stats: NodeStats, confidence: float) -> Float64:
    """Compute an upper confidence limit of the number of errors of each node, (m,).

    The limit is the number of rows times U, the exact binomial upper limit of the error rate: a
    node with error rate U has at most the observed errors with probability `confidence`, so a small
    `confidence` gives a high limit. Nodes without rows have the limit 0, and nodes in which all
    rows are errors their number of rows. stats: class counts of the nodes, and the label (predicted
    class) of each; confidence: in (0, 1). The number of rows is the node's weight divided by
    `weight_unit`; U is computed from the effective sample size of the node.
    """
    weight, correct_weight = stats.n, stats.n - stats.errors
    has_correct, rows = correct_weight > 0, weight / stats.weight_unit
    # Each node's weights are scaled by a power of 2, as the quotient of a tiny weight overflows.
    mantissa, exponent = np.frexp(weight)
    size = np.divide(stats.effective_size, mantissa, out=np.ones(len(weight)), where=has_correct)
    # The limit p solves P(at most the observed errors | p) = confidence, a beta integral in p.
    wrong = size * np.ldexp(stats.errors, -exponent)
    correct = np.where(has_correct, size * np.ldexp(correct_weight, -exponent), 1.0)
    limit = betaincinv(wrong + 1, correct, 1 - float(confidence))
    return np.where(has_correct, rows * limit, rows)


class Pessimistic(PruningRule):
    """Pruning rule that counts errors at the upper confidence limit of a binomial.

    A leaf with e errors among n rows counts ``e + alpha (n U - e)`` errors, where U is the error
    rate at which at most e errors have probability `confidence`; `pessimistic` computes the pruning
    of a given alpha. The estimator chooses alpha, the factor of the added errors. The rule applies
    to classes only.

    Parameters
    ----------
    confidence : float, default=0.25
        Probability between 0 and 1, of which U is computed. A smaller value gives a larger U and a
        smaller tree.
    """

    reads_classes = True

    def __init__(self, confidence: float = 0.25) -> None:
        self.confidence = confidence

    def family(self, tree: Tree, stats: NodeStats) -> PosteriorFamily:
        """Return the prunings with the smallest errors + alpha * added errors, for all alphas.

        A pruning is the tree with some nodes turned into leaves. Added errors of a leaf are the
        binomial upper limit of its errors minus its errors. tree: the tree; stats: counts and
        labels of its nodes. `PosteriorFamily.solve` returns the pruning for an alpha >= 0, the
        factor of the added errors. Raise ValueError if `confidence` is not between 0 and 1.
        """
        validate_settings(self)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {self.confidence!r}")
        unit = stats.check_tree(tree).weight_unit
        added_errors = compute_upper_errors(stats, self.confidence) - stats.errors / unit
        return _build_family(tree, [added_errors, stats.errors], [-1.0], unit=unit)


@validate_arguments
def pessimistic(
    tree: Tree, stats: NodeStats, alpha: float = 1.0, *, confidence: float = 0.25
) -> NodeWeights:
    """Find the pruning with the fewest errors at an upper confidence limit, in O(m) time.

    A leaf with e errors among n rows counts ``e + alpha (n U - e)`` errors. U is the binomial error
    rate at which at most e errors have probability `confidence`. For weighted rows U is computed
    from the effective sample size.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and number of rows of each node.
    alpha : float
        Factor of the added errors, >= 0; 1 as in C4.5.
    confidence : float
        Probability between 0 and 1, of which U is computed. A smaller value gives a larger U and a
        smaller tree.

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties the smaller tree.

    Raises
    ------
    ValueError
        If a number is out of range or not finite.

    Notes
    -----
    The limit is exact; C4.5 approximates it. Nodes become leaves, but no subtree replaces its
    parent.

    References
    ----------
    Quinlan, "C4.5: Programs for Machine Learning", 1993, Section 4.2, error-based pruning.
    """
    return Pessimistic(confidence).family(tree, stats).solve(check_nonnegative("alpha", alpha))


class DescriptionLength(PruningRule):
    """Pruning rule that minimises the length of a description of tree and classes.

    The length is that of the classes plus alpha times that of the tree, in nats: whether each node
    is a leaf, feature and threshold of each split, and the stochastic complexity of the classes in
    each leaf. `minimum_description_length` states the formula. The estimator chooses alpha. The
    rule applies to classes only.

    Parameters
    ----------
    free_splits : bool, default=False
        Whether splits have length 0, as is right if they do not depend on the classes.
    """

    reads_classes = True

    def __init__(self, free_splits: bool = False) -> None:
        self.free_splits = free_splits

    def family(self, tree: Tree, stats: NodeStats) -> PosteriorFamily:
        """Return the prunings with the smallest description length, for all alphas.

        A pruning is the tree with some nodes turned into leaves. Its description length is the
        length of the classes plus alpha times the length of the tree, in nats. tree: the tree;
        stats: class counts of its nodes. `PosteriorFamily.solve` returns the pruning for an alpha
        >= 0. Raise ValueError if `free_splits` is not a bool.
        """
        if not isinstance(self.free_splits, bool | np.bool_):
            raise ValueError(f"free_splits must be True or False, got {self.free_splits!r}")
        unit, k = stats.check_tree(tree).weight_unit, stats.n_classes
        n = stats.n / unit
        parameters = (k - 1) / 2 * np.log(np.maximum(n, 1) / 2)
        volume = k / 2 * np.log(np.pi) - gammaln(k / 2)
        nats = compute_costs(stats, "entropy") / unit
        class_length = np.where(n > 0, nats + parameters + volume, 0.0)
        leaf_bit = np.full(tree.n_nodes, np.log(2))  # whether the node is a leaf
        split = 0.0
        if not self.free_splits:
            split = np.log(tree.n_features) + np.log(np.maximum(n - 1, 1))
        # A split node needs its bit as well.
        return _build_family(tree, [leaf_bit, class_length], [-1.0], split + np.log(2))


@validate_arguments
def minimum_description_length(
    tree: Tree, stats: NodeStats, alpha: float = 1.0, *, free_splits: bool = False
) -> NodeWeights:
    """Find the pruning that describes tree and classes in the fewest nats, in O(m) time.

    A pruning is the tree with some nodes turned into leaves. Each node has one bit for whether it
    is a leaf. A split has ``log p`` nats for its feature and ``log(n(v) - 1)`` for its threshold,
    with p features and n(v) rows in the node v. A leaf has the stochastic complexity of its
    classes, ``sum over k of n_k log(n / n_k) + (K - 1) / 2 log(n / 2) + log(pi^(K / 2) / Gamma(K /
    2))``, with n_k of its n rows in class k of K.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Class counts of its nodes.
    alpha : float
        Factor of the length of the tree, >= 0; 1 for the description length.
    free_splits : bool
        Whether splits have length 0, as is right if they do not depend on the classes.

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties the smaller tree.

    Raises
    ------
    ValueError
        If alpha is negative or not finite.

    References
    ----------
    Mehta, Rissanen and Agrawal, "MDL-based decision tree pruning", KDD 1995; the cost of a split is
    that of Rastogi and Shim, "PUBLIC", VLDB 1998.
    """
    return (
        DescriptionLength(free_splits).family(tree, stats).solve(check_nonnegative("alpha", alpha))
    )
