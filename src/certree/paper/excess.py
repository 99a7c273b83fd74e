"""How near a vote comes to the best classifier there is, where the truth is known.

Excess risks are those beyond the Bayes risk. None of this is a certificate: the promises speak of
true risks, which are known on simulated problems only. What they say of the paper's prior and
penalties is in `theory`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from certree.certificates.certificate import log_chance
from certree.certificates.inequalities import bounds
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.interface.arrays import MAX_SETTING, Float64
from certree.interface.signatures import validate_arguments
from certree.prunings.penalties import finite_cost
from certree.stats import NodeStats
from certree.tree import Tree
from certree.weights.family import ChainStops, Family, gains_of
from certree.weights.node_weights import NodeWeights, map_pruning

# Temperatures of which an oracle bound takes the best: 2 to minus so much.
_TEMPERATURES = 2.0 ** -np.arange(-0.75, 13, 0.25)
_ROUNDING = 1e-9


@validate_arguments
def oracle_excess(gibbs_excess: float, n_classes: int) -> float:
    """Bound on the excess risk of a majority vote over the Bayes risk, by that of its draws.

    Parameters
    ----------
    gibbs_excess : float
        Risk of a drawn hypothesis less the Bayes risk, >= 0.
    n_classes : int
        Number of classes, K.

    Returns
    -------
    float
        K times as much.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Lemma 1 of the appendix.
    """
    if not gibbs_excess >= 0 or n_classes < 2:
        raise ValueError(
            f"expected an excess >= 0 of 2 or more classes, got {gibbs_excess!r}, {n_classes!r}"
        )
    return int(n_classes) * float(gibbs_excess)


@dataclass(frozen=True, slots=True, eq=False)
class OracleBound:
    """How near a vote comes to the Bayes risk, and the pruning that says so.

    Parameters
    ----------
    excess : float
        The risk of the majority vote is at most so far above the Bayes risk.
    gibbs_excess : float
        The risk of a drawn pruning is at most so far above it.
    lambda_error : float
        Temperature of the posterior (nats per error).
    pruning : NodeWeights
        The pruning that pays least for its risk, its leaves and its size together.
    risk : float
        Its true risk.
    penalty : float
        What its leaves pay; 0 where the posterior has no penalty.
    complexity : float
        Minus the log of its prior probability (nats), or more.
    """

    excess: float
    gibbs_excess: float
    lambda_error: float
    pruning: NodeWeights
    risk: float
    penalty: float
    complexity: float


def least_costly(tree: Tree, cost: Float64, prior: NodeWeights, weight: float) -> NodeWeights:
    """The pruning with the least ``weight`` times its cost, less the log of its prior mass.

    It is the likeliest of the posterior that this makes. Prunings that stop in different cells of a
    chain are one here.
    """
    posterior = _family(tree, cost, prior).at(weight)
    return map_pruning(tree, replace(posterior, chain_mode=np.zeros(tree.n_nodes)))


def _family(tree: Tree, cost: Float64, prior: NodeWeights) -> Family:
    """The posteriors that weigh what leaves cost by one temperature, and a prior."""
    stops = ChainStops(*prior.of(tree).log_decisions, prior.chain_entropy, prior.chain_mode)
    return Family(tree, gains_of(tree, cost)[:, None], cost[:1], np.zeros(0), stops)


@validate_arguments
def excess_posterior(
    tree: Tree, stats: NodeStats, prior: NodeWeights, penalty: ArrayLike, lambda_error: float
) -> NodeWeights:
    """Weigh prunings by their errors, what their leaves pay for them, and any prior.

    A pruning's weight is its prior mass times ``exp(-lambda_error n (share of errors + sum of the
    penalty over its leaves))``. Of all distributions this has the lowest `gibbs_excess_bound`.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes, with labels that other rows have chosen.
    prior : NodeWeights
        A prior that these rows have no part in.
    penalty : array-like of shape (m,)
        What each node pays as a leaf, such as `deviation_penalty`.
    lambda_error : float
        Temperature, between 0 and 2.

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        If the temperature is out of range, or a penalty is not finite.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (2).
    """
    rows = float(stats.of(tree).n[0])
    cost = stats.errors + rows * finite_cost(tree, penalty)
    return _family(tree, cost, prior).at(bounds.expect_temperature(lambda_error))


@validate_arguments
def gibbs_excess_bound(
    tree: Tree,
    stats: NodeStats,
    posterior: NodeWeights,
    prior: NodeWeights,
    penalty: ArrayLike,
    bayes_errors: float,
    lambda_error: float,
    delta: float = 0.05,
) -> float:
    """Bound the excess risk of a drawn pruning by what the rows say of it.

    For all posteriors and temperatures at once it holds with probability at least ``1 - 2 delta``,
    if that of all prunings whose mean conditional excess on the rows is above the observed one by no
    more than the penalties of their leaves is at least ``1 - delta``.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of n >= 8 independent rows that neither the tree, nor its labels, nor the prior have
        seen.
    posterior, prior : NodeWeights
        The posterior, and the prior.
    penalty : array-like of shape (m,)
        What each node pays as a leaf, by these rows, such as `deviation_penalty`.
    bayes_errors : float
        Errors of the best classifier there is on these rows.
    lambda_error : float
        Between 0 and 2.
    delta : float
        Between 0 and 1.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (9) of the appendix, a step to
    Proposition 2.
    """
    rows = float(stats.of(tree).n[0])
    if not 0 <= bayes_errors <= rows:
        raise ValueError(f"bayes_errors must lie in 0 .. {rows:g}, got {bayes_errors!r}")
    leaves = posterior.of(tree).weight
    paid = float(leaves @ finite_cost(tree, penalty))
    excess = (float(leaves @ stats.errors) - float(bayes_errors)) / rows if rows else 0.0
    complexity = kl_divergence(tree, posterior, prior)
    bound = bounds.pac_bayes_at(excess + paid, rows, complexity, log_chance(delta), lambda_error)
    return min(bound, 1.0)


@validate_arguments
def excess_bound(
    tree: Tree,
    population: NodeStats,
    prior: NodeWeights,
    penalty: ArrayLike,
    n: int,
    bayes_risk: float,
    delta: float | None = 0.05,
    lambda_error: float | None = None,
) -> OracleBound:
    """Bound the excess risk of a penalised vote by the best pruning's excess, penalty and size.

    The vote is the majority vote of `excess_posterior` with penalties of the rows, each of which is
    below the one given here with probability at least ``1 - delta``; see `gibbs_excess_bound` for
    what else they must be. With probability at least ``1 - 4 delta`` over the n rows, for all
    temperatures at once, its excess is at most ``K / (1 - lambda / 2)`` times ::

        min over prunings T of  R(T) - Bayes risk + sum of the penalty over the leaves of T
            - log P(T) / (lambda n) + log(2 sqrt(n) / delta) / (lambda n) + sqrt(2 log(1 / delta) / n)

    Parameters
    ----------
    tree : Tree
        The tree.
    population : NodeStats
        Probability of each class in each node, as `count` gives it for all points with their
        probabilities as weights, and the labels that the nodes vote for.
    prior : NodeWeights
        The prior over prunings.
    penalty : array-like of shape (m,)
        What each node pays as a leaf, >= 0, such as `deviation_limit`.
    n : int
        Calibration samples, >= 8.
    bayes_risk : float
        Risk of the best classifier there is.
    delta : float or None
        Each of four events may fail with this probability. None: the bound is one on the mean excess
        over the draws of the rows, by a delta of 1 / n.
    lambda_error : float or None
        Temperature of the posterior, between 0 and 2; None: the one with the lowest bound, which the
        rows have no part in.

    Returns
    -------
    OracleBound

    Raises
    ------
    ValueError
        If a number is out of range, the probabilities do not sum to 1, or the Bayes risk is above
        that of a pruning.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Proposition 2; for the mean as in equation
    (14).
    """
    paid = finite_cost(tree, penalty)
    if paid.min() < 0:
        raise ValueError(f"penalty must not be negative, got {paid.min():g}")

    def complexity(pruning: NodeWeights) -> float:
        return kl_divergence(tree, pruning, prior)

    return best_excess(
        tree, population, prior, paid, complexity, n, bayes_risk, delta, lambda_error
    )


def best_excess(
    tree: Tree,
    population: NodeStats,
    prior: NodeWeights,
    penalty: Float64,
    complexity: Callable[[NodeWeights], float],
    n: int,
    bayes_risk: float,
    delta: float | None,
    lambda_error: float | None,
) -> OracleBound:
    """`excess_bound`, by a complexity that differs from that of the prior by a constant at most."""
    rows = expect_problem(tree, population, n, bayes_risk, 8)
    log_delta = -math.log(rows) if delta is None else log_chance(delta)
    # The best pruning's errors are above their mean by as much, and so is the mean where all fails.
    chance = math.sqrt(-2 * log_delta / rows) + (4 / rows if delta is None else 0.0)

    def at(lam: float) -> OracleBound:
        pruning = least_costly(tree, population.errors + penalty, prior, lam * rows)
        risk, paid = float(pruning.weight @ population.errors), float(pruning.weight @ penalty)
        nats = complexity(pruning)
        excess = excess_of(risk, bayes_risk) + paid + chance
        gibbs = bounds.pac_bayes_at(excess, rows, nats, log_delta, lam)
        vote = oracle_excess(gibbs, population.n_classes)
        return OracleBound(min(vote, 1.0), min(gibbs, 1.0), lam, pruning, risk, paid, nats)

    return best_temperature(at, lambda_error)


def expect_problem(
    tree: Tree, population: NodeStats, n: int, bayes_risk: float, fewest: int
) -> float:
    """Check what is known of a simulated problem; returns n as a number that does not overflow."""
    total = float(population.of(tree).n[0])
    if abs(total - 1) > _ROUNDING:
        raise ValueError(f"population must hold probabilities that sum to 1, got {total:g}")
    if not fewest <= n <= MAX_SETTING:
        raise ValueError(f"expected n in {fewest} .. {MAX_SETTING:g}, got {n!r}")
    if not 0 <= bayes_risk <= 1:
        raise ValueError(f"bayes_risk must lie in 0 .. 1, got {bayes_risk!r}")
    return float(n)


def excess_of(risk: float, bayes_risk: float) -> float:
    """Risk beyond the Bayes risk, which no pruning may fall below."""
    if risk < bayes_risk - _ROUNDING:
        raise ValueError(
            f"bayes_risk must be at most the risk of every pruning, got {bayes_risk:g}, but one has "
            f"{risk:g}"
        )
    return max(risk - bayes_risk, 0.0)


def best_temperature(at: Callable[[float], OracleBound], lambda_error: float | None) -> OracleBound:
    """The bound at a temperature, or at the best of those tried."""
    if lambda_error is not None:
        return at(bounds.expect_temperature(lambda_error))
    return min(map(at, _TEMPERATURES.tolist()), key=lambda bound: bound.gibbs_excess)
