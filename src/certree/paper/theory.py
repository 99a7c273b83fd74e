"""What theory promises of a vote over the prunings of a tree where the truth is known.

Rates to learn and to test by, and no certificates: they speak of true risks.
"""

import math
from typing import NamedTuple

import numpy as np

from certree.certificates.certificate import log_chance
from certree.certificates.inequalities import bounds
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.certificates.priors import size_prior
from certree.interface.arrays import Float64
from certree.interface.signatures import validate_arguments
from certree.paper.excess import (
    OracleBound,
    best_excess,
    best_temperature,
    excess_of,
    expect_problem,
    least_costly,
    oracle_excess,
)
from certree.prunings.scott_nowak import fragment_prunings
from certree.stats import NodeStats
from certree.stats.nodes import counted
from certree.tree import Tree
from certree.weights.node_weights import NodeWeights


@validate_arguments
def deviation_penalty(tree: Tree, stats: NodeStats, delta: float = 0.05) -> Float64:
    """By how much errors in a leaf may be too few, if those of a cell deviate as they do by chance.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of n rows.
    delta : float
        Probability with which some cell of the tree may deviate more, between 0 and 1.

    Returns
    -------
    ndarray of float64, shape (m,)
        ``sqrt(2 (share of the rows) log(|T0| / delta) / n)``, where ``|T0|`` is the number of cells.

    Raises
    ------
    ValueError
        If delta is out of range, or there are no rows.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (3) and Lemma 5.
    """
    inside = stats.of(tree).n
    if not inside[0] > 0:
        raise ValueError("stats must count at least one row")
    penalty: Float64 = np.sqrt(2 * inside * _log_cells(tree, delta)) / inside[0]
    return penalty


@validate_arguments
def deviation_limit(tree: Tree, population: NodeStats, n: int, delta: float = 0.05) -> Float64:
    """Bound what `deviation_penalty` will be, by the probabilities of the cells.

    Parameters
    ----------
    tree : Tree
        The tree, of depth D0.
    population : NodeStats
        Probability of each class in each node; see `excess_bound`.
    n : int
        Rows to come.
    delta : float
        Probability with which the penalty of some cell may be higher, between 0 and 1.

    Returns
    -------
    ndarray of float64, shape (m,)
        ``sqrt(8 max(probability, ((2 + log p) D0 + log(1 / delta)) / n) log(|T0| / delta) / n)``.

    Raises
    ------
    ValueError
        If a number is out of range, or the probabilities do not sum to 1.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (4) and Lemma 6.
    """
    rows = expect_problem(tree, population, n, 0.0, 1)
    nats = _log_cells(tree, delta)
    least = ((2 + math.log(tree.n_features)) * tree.depth - math.log(delta)) / rows
    limit: Float64 = np.sqrt(8 * np.maximum(population.n, least) * nats / rows)
    return limit


def _log_cells(tree: Tree, delta: float) -> float:
    """Log of the number of cells over delta."""
    return math.log(tree.n_cells) - log_chance(delta)


@validate_arguments
def theorem_bound(
    tree: Tree,
    population: NodeStats,
    n: int,
    bayes_risk: float,
    delta: float | None = 0.05,
    lambda_error: float | None = None,
) -> OracleBound:
    """Bound the excess risk of the paper's vote by the best pruning's excess and leaves: Theorem 1.

    The vote is the majority vote of ``theorem_posterior(tree, stats, lambda_error, delta)``, where
    stats counts n independent rows that neither the tree nor its labels have seen. With probability
    at least ``1 - 4 delta`` over them, for all temperatures at once, its excess is at most
    ``K / (1 - lambda / 2)`` times ::

        min over prunings T of  R(T) - Bayes risk + sum of `deviation_limit` over the leaves of T
            + 3 D0 |T| / (lambda n) + log(2 sqrt(n) / delta) / (lambda n) + sqrt(2 log(1 / delta) / n)

    It is `excess_bound` with the paper's prior and penalties. The excess stands inside the minimum,
    so that at any temperature the bound falls to 0 where prunings come close to the Bayes risk.

    Parameters
    ----------
    tree, population, n, bayes_risk, delta, lambda_error
        See `excess_bound`.

    Returns
    -------
    OracleBound
        Its complexity is 3 D0 times the leaves, where D0 is the depth of the tree.

    Raises
    ------
    ValueError
        As in `excess_bound`.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Theorem 1; for the mean equation (14).
    """
    rows = expect_problem(tree, population, n, bayes_risk, 8)
    leaf_cost = 3.0 * tree.depth
    prior = size_prior(tree, population.n_classes, leaf_cost).distributions[0]
    penalty = deviation_limit(tree, population, n, 1 / rows if delta is None else delta)

    def complexity(pruning: NodeWeights) -> float:
        # Not all of the prior's mass is spent: it is a little more than this says.
        return leaf_cost * pruning.expected_leaves

    return best_excess(
        tree, population, prior, penalty, complexity, n, bayes_risk, delta, lambda_error
    )


@validate_arguments
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

    This is certree's own derivation, by Chernoff's inequality, and not the paper's theorem: the
    distribution pays no penalty, any prior will do, and the best pruning's *risk* stands inside,
    times a little more than 1. So the temperature must fall as rows come in for the bound to fall to 0.

    The vote is the majority vote of ``gibbs_posterior(tree, stats, prior, lambda_error)``, where stats
    counts n independent rows that neither the tree, nor its labels, nor the prior have seen. With
    probability at least ``1 - delta`` over them the risk of a drawn pruning is at most ::

        min over prunings T of a R(T) - 2 log P(T) / (lambda n), plus
        (2 log(2 / delta) + log xi(n)) / (lambda n), all over 1 - lambda / 2

    where ``a = (exp(lambda) - 1) / lambda`` and log xi(n) is half of log n but for a constant. The
    excess risk of the vote is at most K times what that is above the Bayes risk.

    Parameters
    ----------
    tree, population, n, bayes_risk, lambda_error
        See `excess_bound`; n may be any number from 1 on.
    prior : NodeWeights
        The prior over prunings; ``size_prior(tree, K, 3 * tree.depth).distributions[0]`` is the
        paper's, ``branching_prior(tree, K).distributions[0]`` is free of the depth.
    delta : float
        Probability with which the promise may fail.

    Returns
    -------
    OracleBound

    Raises
    ------
    ValueError
        As in `excess_bound`.

    References
    ----------
    The page on certificates has the derivation. Its parts: Thiemann, Igel, Wintenberger and Seldin,
    "A strongly quasiconvex PAC-Bayesian bound", ALT 2017; Chernoff's inequality for every pruning;
    `oracle_excess`.
    """
    rows = expect_problem(tree, population, n, bayes_risk, 1)
    chance = 2 * (math.log(2) - log_chance(delta)) + bounds.log_xi(rows)

    def at(lam: float) -> OracleBound:
        slope = math.expm1(lam) / lam
        pruning = least_costly(tree, population.errors, prior, slope * lam * rows / 2)
        risk = float(pruning.weight @ population.errors)
        excess_of(risk, bayes_risk)
        nats = kl_divergence(tree, pruning, prior)
        gibbs = min((slope * risk + (2 * nats + chance) / (lam * rows)) / (1 - lam / 2), 1.0)
        vote = oracle_excess(gibbs - bayes_risk, population.n_classes)
        return OracleBound(min(vote, 1.0), gibbs - bayes_risk, lam, pruning, risk, 0.0, nats)

    return best_temperature(at, lambda_error)


@validate_arguments
def hoelder_rate(n: float, smoothness: float, dimension: float) -> float:
    """Excess risk, but for constants, where class probabilities are Hoelder smooth.

    The mean excess of the vote of a cyclic dyadic tree falls like this, if its cells are labelled by
    rows of their own, those without rows by the first class: cells of side h cost ``h^smoothness``
    and, as there are ``h^-dimension`` of them, ``sqrt(h^-dimension log(n) / n)``.

    Parameters
    ----------
    n : float
        Rows, >= 2.
    smoothness : float
        Hoelder exponent of the probabilities of the classes, in (0, 1].
    dimension : float
        Number of features that they depend on, or of dimensions that the rows fill, > 0.

    Returns
    -------
    float
        ``(log(n) / n)^(smoothness / (2 smoothness + dimension))``.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Corollary 1. Without the logarithm it is that of
    the best pruning; Audibert and Tsybakov, "Fast learning rates for plug-in classifiers", Annals of
    Statistics 2007, for the rate as such.
    """
    if not n >= 2 or not 0 < smoothness <= 1 or not dimension > 0:
        raise ValueError(
            "expected n >= 2, a smoothness in (0, 1] and a dimension > 0, got "
            f"{n!r}, {smoothness!r}, {dimension!r}"
        )
    power = float(smoothness) / (2 * float(smoothness) + float(dimension))
    return (math.log(n) / float(n)) ** power


class Resolvability(NamedTuple):
    """What the best pruning's excess and its penalty are, where the truth is known.

    Parameters
    ----------
    value : float
        Their sum.
    excess : float
        Risk of that pruning beyond the Bayes risk.
    penalty : float
        What the leaves of its cheapest root fragment pay.
    pruning : NodeWeights
        The pruning: weights 0 and 1.
    """

    value: float
    excess: float
    penalty: float
    pruning: NodeWeights


@validate_arguments
def resolvability(tree: Tree, population: NodeStats, n: int, bayes_risk: float) -> Resolvability:
    """Index of resolvability: what the spatially adaptive rule pays for the best pruning on average.

    The expected excess of the risk of ``spatially_adaptive(tree, stats)`` on n rows is at most this,
    up to a remainder of the order of sqrt(log n / n)::

        min over prunings T of  R(T) - Bayes risk + min over root fragments R of T of
            1 / n * sum over leaves v of R of  sqrt(48 n(v) T(v) log(2 n)) + sqrt(48 n(v) log |T0|)

    Here n(v) is the number of rows that v has on average, as the root of a number of rows is at most
    the root of its mean on average.

    Parameters
    ----------
    tree : Tree
        The complete tree, which no row has a part in; see `dyadic_grid`.
    population : NodeStats
        Probability of each class in each node, and the best labels; see `excess_bound`.
    n : int
        Rows to come, 1 at least.
    bayes_risk : float
        The least risk that a classifier has.

    Returns
    -------
    Resolvability

    Raises
    ------
    ValueError
        If a number is out of range, the probabilities do not sum to 1, a pruning has less than the
        Bayes risk, or the tree has halvings that are not stored.

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
    rows = expect_problem(tree, population, n, bayes_risk, 1)
    if (tree.chain > 1).any():
        raise ValueError(
            "tree must be complete, as dyadic_grid makes it, but has chains of halvings"
        )
    expected = NodeStats(population.counts * rows, population.label)
    rule = fragment_prunings(tree, expected, count_empty=True)
    pruning, fragment = rule.at(1.0), rule.fragment(1.0)
    ends = np.flatnonzero(pruning.weight).astype(np.int32)
    inside = np.maximum(counted(tree, ends, np.zeros_like(ends), None, 1).counts[:, 0], 1)
    penalty = float(fragment.weight @ (rule.size_penalty * np.sqrt(inside) + rule.cell_penalty))
    excess = excess_of(float(pruning.weight @ population.errors), bayes_risk)
    return Resolvability(excess + penalty / rows, excess, penalty / rows, pruning)
