"""The paper's bounds on the risk of a vote over prunings, for a known true distribution.

They are no certificates, as they need true risks.
"""

import math
from typing import NamedTuple

import numpy as np

from certree.certificates.certificate import compute_log_delta
from certree.certificates.inequalities import bounds
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.certificates.priors import size_prior
from certree.interface.arrays import Float64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_arguments
from certree.paper.excess import (
    OracleBound,
    check_bound_arguments,
    compute_excess,
    compute_excess_bound,
    find_cheapest_pruning,
    minimise_over_temperatures,
    oracle_excess,
)
from certree.prunings.scott_nowak import fragment_prunings
from certree.stats import NodeStats
from certree.stats.nodes import count_by_leaf
from certree.tree import Tree
from certree.weights.node_weights import NodeWeights


@validate_arguments
def deviation_penalty(tree: Tree, stats: NodeStats, delta: float = 0.05) -> Float64:
    """Compute a penalty for each node: how far its observed error rate may be too low by chance.

    With probability 1 - delta, the observed error rate of every region of the tree is at least its
    expected error rate minus the penalty. The error rate of a region is the number of errors in it,
    divided by all n rows. A node stands for one region, or for a chain of nested regions with the
    same rows, which all count.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    stats : NodeStats
        Number of rows of each class in each node, of n rows.
    delta : float
        Probability that the errors in some region deviate by more, strictly between 0 and 1.

    Returns
    -------
    ndarray of float64, shape (m,)
        For each node, as a fraction of all n rows,
        ``sqrt(2 (fraction of the rows in the node) log(N0 / delta) / n)``, where ``N0`` is the
        number of regions of the tree.

    Raises
    ------
    ValueError
        If delta is out of range, or there are no rows.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (3) and Lemma 5.
    """
    inside = stats.check_tree(tree).n
    if not inside[0] > 0:
        raise ValueError(
            "stats must count at least one row in the root of the tree, got none: count the training "
            "rows in the nodes"
        )
    penalty: Float64 = np.sqrt(2 * inside * _log_regions(tree, delta)) / inside[0]
    return penalty


@validate_arguments
def deviation_limit(tree: Tree, population: NodeStats, n: int, delta: float = 0.05) -> Float64:
    """Bound the `deviation_penalty` of each node for n rows that are not yet drawn.

    The bound is computed from the true probabilities of the nodes. A node stands for one region, or
    for a chain of nested regions with the same rows, which all count.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes and depth D0, with p features.
    population : NodeStats
        Probability of each class in each node.
    n : int
        Number of rows that will be drawn.
    delta : float
        Probability that the penalty of some region is higher, strictly between 0 and 1.

    Returns
    -------
    ndarray of float64, shape (m,)
        For each node ``sqrt(8 max(probability of the node, ((2 + log p) D0 + log(1 / delta)) / n)
        log(N0 / delta) / n)``, where ``N0`` is the number of regions of the tree.

    Raises
    ------
    ValueError
        If a number is out of range, or the probabilities do not sum to 1.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (4) and Lemma 6.
    """
    rows = check_bound_arguments(tree, population, n, 0.0, 1)
    nats = _log_regions(tree, delta)
    smallest = ((2 + math.log(tree.n_features)) * tree.depth - math.log(delta)) / rows
    limit: Float64 = np.sqrt(8 * np.maximum(population.n, smallest) * nats / rows)
    return limit


def _log_regions(tree: Tree, delta: float) -> float:
    """Compute log(number of regions of the tree / delta), in nats.

    A node may stand for a chain of nested regions with the same rows; all of them count. delta: the
    probability that a bound fails, strictly between 0 and 1; otherwise raise ValueError.
    """
    return math.log(tree.n_cells) - compute_log_delta(delta)


@validate_arguments
@copy_descriptions_from(compute_excess_bound)
def theorem_bound(
    tree: Tree,
    population: NodeStats,
    n: int,
    bayes_risk: float,
    delta: float | None = 0.05,
    lambda_error: float | None = None,
) -> OracleBound:
    """Bound the excess risk of the paper's vote by the best pruning's excess risk and size: Theorem 1.

    A pruning is the tree with some nodes turned into leaves; prunings vote with posterior weights.
    Excess risk is the probability of an error minus that of the Bayes classifier. `population`
    holds the true probability of each class in each node. The vote is the majority vote of
    ``theorem_posterior(tree, stats, lambda_error, delta)``, where stats counts n independent rows
    on which neither the tree nor its labels depend: the posterior of Nguyen and Kpotufe (2018),
    whose log prior is -3 D0 for each leaf. With probability at least ``1 - 4 delta`` over these
    rows, for all inverse temperatures 0 < lambda < 2 at once, its excess risk is
    at most ``K / (1 - lambda / 2)`` times the sum ::

        min over prunings T of [ R(T) - Bayes risk + sum of `deviation_limit` over the leaves of T
                                 + 3 D0 |T| / (lambda n) ]
            + log(2 sqrt(n) / delta) / (lambda n) + sqrt(2 log(1 / delta) / n)

    with R(T) the risk of T, ``|T|`` its number of leaves, D0 the depth of the tree and K the number
    of classes. This is `excess_bound` with that prior, and `deviation_limit` as penalties. The
    excess is inside the minimum, so the bound falls to 0 at every inverse temperature if prunings
    approach the Bayes risk.

    Parameters
    ----------
    {tree} {population}
    n : int
        Number of independent rows, >= 8.
    {bayes_risk} {delta} {lambda_error}

    Returns
    -------
    OracleBound
        Its complexity is 3 D0 times the number of leaves, where D0 is the depth of the tree.

    Raises
    ------
    ValueError
        If a number is out of range, the probabilities do not sum to 1, or the Bayes risk is above
        that of a pruning.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Theorem 1; for the mean equation (14).
    """
    rows = check_bound_arguments(tree, population, n, bayes_risk, 8)
    leaf_cost = 3.0 * tree.depth
    prior = size_prior(tree, population.n_classes, leaf_cost).distributions[0]
    penalty = deviation_limit(tree, population, n, 1 / rows if delta is None else delta)

    def compute_complexity(pruning: NodeWeights) -> float:
        # The paper's prior sums to less than 1, so this is slightly more than that of `prior`.
        """Return the complexity of a pruning, in nats: 3 times the tree's depth times its leaves.

        pruning: the tree with some nodes turned into leaves, as weight 1 of its leaves and 0 of
        other nodes. The tree is `tree` of the enclosing call, whose variable `leaf_cost` is 3 times
        its depth.
        """
        return leaf_cost * pruning.expected_leaves

    return compute_excess_bound(
        tree, population, prior, penalty, compute_complexity, n, bayes_risk, delta, lambda_error
    )


@validate_arguments
@copy_descriptions_from(compute_excess_bound)
def chernoff_oracle_bound(
    tree: Tree,
    population: NodeStats,
    prior: NodeWeights,
    n: int,
    bayes_risk: float,
    delta: float = 0.05,
    lambda_error: float | None = None,
) -> OracleBound:
    """Bound the excess risk of a Gibbs posterior's vote by the best pruning's risk and size.

    A pruning is the tree with some nodes turned into leaves; prunings vote with posterior weights.
    Excess risk is the probability of an error minus that of the Bayes classifier. `population`
    holds the true probability of each class in each node. This is certree's own derivation by
    Chernoff's inequality, not the theorem of Nguyen and Kpotufe (2018). The posterior has no
    penalty, and any prior is allowed. The *risk* of the best pruning is inside the minimum, times a
    factor slightly above 1. So the bound only falls to 0 with n if the inverse temperature falls,
    too.

    The vote is the majority vote of ``gibbs_posterior(tree, stats, prior, lambda_error)``, where
    stats counts n independent rows on which neither the tree, nor its labels, nor the prior depend.
    With probability at least ``1 - delta`` over these rows the risk of a drawn pruning is at most
    ::

        min over prunings T of a R(T) - 2 log P(T) / (lambda n), plus (2 log(2 / delta) + log xi(n))
        / (lambda n), all over 1 - lambda / 2

    where R(T) is the risk of T, P(T) its prior probability, ``a = (exp(lambda) - 1) / lambda`` and
    log xi(n) is half of log n up to a constant. The excess risk of the vote is at most K, the
    number of classes, times the difference between this bound and the Bayes risk.

    Parameters
    ----------
    {tree} {population}
    prior : NodeWeights
        The prior distribution over prunings (for each node, the probability that it is a leaf of a
        pruning). ``size_prior(tree, K, 3 * tree.depth).distributions[0]`` is that of Nguyen and
        Kpotufe; ``branching_prior(tree, K).distributions[0]`` does not depend on the depth.
    n : int
        Number of independent rows, >= 1.
    {bayes_risk}
    delta : float
        Probability that the bound fails.
    {lambda_error}

    Returns
    -------
    OracleBound
        The bound, and the pruning at which it is attained.

    Raises
    ------
    ValueError
        If a number is out of range, the probabilities do not sum to 1, or the Bayes risk is above
        that of a pruning.

    References
    ----------
    The documentation's page on oracle bounds has the derivation. It combines Thiemann, Igel,
    Wintenberger and Seldin, "A strongly quasiconvex PAC-Bayesian bound", ALT 2017; Chernoff's
    inequality for every pruning; and `oracle_excess`.
    """
    rows = check_bound_arguments(tree, population, n, bayes_risk, 1)
    confidence_nats = 2 * (math.log(2) - compute_log_delta(delta)) + bounds.log_xi(rows)

    def compute_bound(lam: float) -> OracleBound:
        """Bound the excess risk of the vote at the inverse temperature `lam`, in (0, 2).

        The vote is the majority vote of prunings (the tree with some nodes turned into leaves),
        weighted by the posterior proportional to the prior times ``exp(-lam * errors)``, where
        errors is a pruning's number of errors on the rows. The excess risk of the vote is its
        probability of an error minus `bayes_risk`. All other quantities are variables of the
        enclosing call: the tree, `tree`; the true class probabilities of its nodes, `population`;
        the prior over prunings, `prior`; the number of rows, `rows`; and `confidence_nats`, the
        part of the bound that depends on delta and the number of rows. Return the bound, at most 1,
        with the pruning at which it is attained.
        """
        factor = math.expm1(lam) / lam
        pruning = find_cheapest_pruning(tree, population.errors, prior, factor * lam * rows / 2)
        risk = float(pruning.weight @ population.errors)
        compute_excess(risk, bayes_risk)  # raises if the Bayes risk is too large
        nats = kl_divergence(tree, pruning, prior)
        complexity = (2 * nats + confidence_nats) / (lam * rows)
        gibbs = min((factor * risk + complexity) / (1 - lam / 2), 1.0)
        vote = oracle_excess(gibbs - bayes_risk, population.n_classes)
        return OracleBound(min(vote, 1.0), gibbs - bayes_risk, lam, pruning, risk, 0.0, nats)

    return minimise_over_temperatures(compute_bound, lambda_error)


@validate_arguments
def hoelder_rate(n: float, smoothness: float, dimension: float) -> float:
    """Compute the rate at which the excess risk falls if class probabilities are Hoelder smooth.

    The mean excess risk of the vote of the prunings of a cyclic dyadic tree (which halves the
    features in turn) falls at this rate, up to a constant, if its leaves are labelled by further
    rows, and leaves without rows by the first class. Regions of side h have a bias of
    ``h^smoothness``. As there are ``h^-dimension`` of them, the estimation error is
    ``sqrt(h^-dimension log(n) / n)``.

    Parameters
    ----------
    n : float
        Number of rows, >= 2.
    smoothness : float
        Hoelder exponent of the class probabilities, in (0, 1].
    dimension : float
        Number of features on which they depend, or dimension of the set of rows, > 0.

    Returns
    -------
    float
        ``(log(n) / n)^(smoothness / (2 smoothness + dimension))``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Corollary 1. The best pruning has this rate
    without the logarithm; see Audibert and Tsybakov, "Fast learning rates for plug-in classifiers",
    Annals of Statistics 2007.
    """
    if not n >= 2 or not 0 < smoothness <= 1 or not dimension > 0:
        raise ValueError(
            "n must be at least 2, smoothness in (0, 1] and dimension larger than 0, got "
            f"n={n!r}, smoothness={smoothness!r} and dimension={dimension!r}"
        )
    power = float(smoothness) / (2 * float(smoothness) + float(dimension))
    return (math.log(n) / float(n)) ** power


class Resolvability(NamedTuple):
    """The index of resolvability of a tree, and the pruning at which it is attained.

    A pruning is the tree with some nodes turned into leaves; its risk is the probability of an
    error. A root fragment of a pruning is the pruning with further nodes turned into leaves. Each
    fragment has a sum over its leaves that grows with their rows and with the leaves of the pruning
    below them; the penalty of the pruning is the smallest of these sums. The index is the smallest
    sum of excess risk and penalty of a pruning. The function `resolvability` computes it and has
    the formula.

    Parameters
    ----------
    value : float
        The index: sum of `excess` and `penalty`.
    excess : float
        Risk of `pruning` minus the Bayes risk.
    penalty : float
        Penalty of `pruning`: the smallest sum of a root fragment.
    pruning : NodeWeights
        The pruning with the smallest sum: weight 1 of its leaves, 0 of other nodes.
    """

    value: float
    excess: float
    penalty: float
    pruning: NodeWeights


@validate_arguments
def resolvability(tree: Tree, population: NodeStats, n: int, bayes_risk: float) -> Resolvability:
    """Compute the index of resolvability, which bounds the excess risk of the spatially adaptive rule.

    The rule chooses a pruning of the tree (Scott and Nowak). Its excess risk is its risk minus that
    of the Bayes classifier. The expected excess risk of ``spatially_adaptive(tree, stats)`` on n
    rows is at most this index, up to a remainder of the order of sqrt(log n / n)::

        min over prunings T of  R(T) - Bayes risk + min over root fragments F of T of
            1 / n * sum over leaves v of F of  sqrt(48 n(v) T(v) log(2 n)) + sqrt(48 n(v) log L0)

    A pruning is the tree with some nodes turned into leaves. R(T) is the risk of T, the probability
    of an error. A root fragment F of T is a pruning of T; T(v) is the number of leaves of T below
    v, and ``L0`` the number of leaves of the tree. n(v) is the expected number of rows in v: the mean
    of a square root is at most the square root of the mean.

    Parameters
    ----------
    tree : Tree
        The complete tree, which does not depend on rows; see `dyadic_grid`.
    population : NodeStats
        Probability of each class in each node, and the most probable class as the label.
    n : int
        Number of rows that will be drawn, at least 1.
    bayes_risk : float
        Risk of the Bayes classifier.

    Returns
    -------
    Resolvability
        The index, and the pruning at which it is attained.

    Raises
    ------
    ValueError
        If a number is out of range, the probabilities do not sum to 1, a pruning has less than the
        Bayes risk, or a node of the tree stands for several splits in a row.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, Theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.grow import dyadic_grid
    >>> from certree.paper import resolvability
    >>> from certree.stats import NodeStats
    >>> tree = dyadic_grid([0.0], [1.0], 1)
    >>> halves = NodeStats(np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]]), np.array([0, 0, 1]))
    >>> round(resolvability(tree, halves, 10**6, 0.0).value, 4)
    0.0431
    """
    rows = check_bound_arguments(tree, population, n, bayes_risk, 1)
    if (tree.chain > 1).any():
        raise ValueError(
            "tree must have a node for every split, but some of its nodes stand for several "
            "consecutive splits: grow the tree with dyadic_grid"
        )
    expected_stats = NodeStats(population.counts * rows, population.label)
    rule = fragment_prunings(tree, expected_stats, count_empty=True)
    pruning, fragment = rule.solve(1.0), rule.fragment(1.0)
    leaves = np.flatnonzero(pruning.weight).astype(np.int32)
    counts = count_by_leaf(tree, leaves, np.zeros_like(leaves), None, 1).counts[:, 0]
    leaves_below = np.maximum(counts, 1)
    fragment_penalty = rule.size_penalty * np.sqrt(leaves_below) + rule.cell_penalty
    penalty = float(fragment.weight @ fragment_penalty)
    excess = compute_excess(float(pruning.weight @ population.errors), bayes_risk)
    return Resolvability(excess + penalty / rows, excess, penalty / rows, pruning)
