"""Bounds on the excess risk of a vote: its risk minus the Bayes risk.

They need the true distribution, which is known in simulations only, so they are not certificates.
`theory` has the bounds for the paper's prior and penalties.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from certree.certificates.certificate import compute_log_delta
from certree.certificates.inequalities import bounds
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.interface.arrays import MAX_SETTING, Float64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_arguments
from certree.prunings.penalties import check_cost
from certree.stats import NodeStats
from certree.tree import Tree
from certree.weights.family import ChainStops, PosteriorFamily, compute_gains
from certree.weights.node_weights import NodeWeights, map_pruning

# Inverse temperatures among which an oracle bound takes the best.
_TEMPERATURES = 2.0 ** -np.arange(-0.75, 13, 0.25)
_ROUNDING = 1e-9


@validate_arguments
def oracle_excess(gibbs_excess: float, n_classes: int) -> float:
    """Bound the excess risk of a majority vote by that of a hypothesis drawn at random from it.

    Excess risk is the probability of an error minus that of the Bayes classifier.

    Parameters
    ----------
    gibbs_excess : float
        Risk of a drawn hypothesis (the Gibbs classifier) minus the Bayes risk, >= 0.
    n_classes : int
        Number of classes, K.

    Returns
    -------
    float
        ``K * gibbs_excess``.

    Raises
    ------
    ValueError
        If gibbs_excess is negative, or there are fewer than two classes.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Lemma 1 of the appendix.
    """
    if not gibbs_excess >= 0 or n_classes < 2:
        raise ValueError(
            "gibbs_excess must be at least 0 and n_classes at least 2, got "
            f"gibbs_excess={gibbs_excess!r} and n_classes={n_classes!r}"
        )
    return int(n_classes) * float(gibbs_excess)


@dataclass(frozen=True, slots=True, eq=False)
class OracleBound:
    """A bound on the excess risk of a vote over prunings, and the pruning at which it is attained.

    A pruning is a tree with some nodes turned into leaves; prunings vote with posterior weights.
    The bound needs the true distribution. Risk is the probability of an error; excess risk is the
    risk minus that of the Bayes classifier.

    Parameters
    ----------
    excess : float
        Bound on the excess risk of the majority vote.
    gibbs_excess : float
        Bound on the expected excess risk of a pruning drawn by its posterior weight.
    lambda_error : float
        Inverse temperature of the posterior (nats per error).
    pruning : NodeWeights
        The pruning with the smallest sum of risk, penalty and complexity in the bound, as weights 1
        of its leaves.
    risk : float
        True risk of this pruning.
    penalty : float
        Sum of the penalties of its leaves; 0 if the posterior has no penalty.
    complexity : float
        Minus the log of its prior probability (nats), or an upper bound of that.
    """

    excess: float
    gibbs_excess: float
    lambda_error: float
    pruning: NodeWeights
    risk: float
    penalty: float
    complexity: float


def find_cheapest_pruning(
    tree: Tree, cost: Float64, prior: NodeWeights, weight: float
) -> NodeWeights:
    """Find the pruning with the smallest ``weight`` times cost minus the log of its prior probability.

    A pruning is the tree with some nodes turned into leaves. The result is the most probable
    pruning of the posterior proportional to the prior times ``exp(-weight * cost)``. If a node of
    the tree stands for a chain of nested regions with the same rows, prunings that stop in
    different regions of a chain count as one.

    Parameters
    ----------
    tree : Tree
        The tree of m nodes.
    cost : ndarray of float64, shape (m,)
        Cost of each node as a leaf; the cost of a pruning is the sum over its leaves.
    prior : NodeWeights
        Prior distribution over the prunings of the tree (for each node, the probability that it is
        a leaf of a pruning).
    weight : float
        Factor of the cost.

    Returns
    -------
    NodeWeights
        The pruning: weight 1 of its leaves, 0 of other nodes.
    """
    posterior = _build_family(tree, cost, prior).solve(weight)
    return map_pruning(tree, replace(posterior, chain_mode=np.zeros(tree.n_nodes)))


def _build_family(tree: Tree, cost: Float64, prior: NodeWeights) -> PosteriorFamily:
    """Build the family of posteriors ``prior * exp(-lambda * cost of the pruning)``, normalised.

    A pruning is the tree with some nodes turned into leaves; a posterior is a weight for each.

    Parameters
    ----------
    tree : Tree
        The tree of m nodes.
    cost : ndarray of float64, shape (m,)
        Cost of each node as a leaf.
    prior : NodeWeights
        Prior distribution over the prunings of the tree (for each node, the probability that it is
        a leaf of a pruning).

    Returns
    -------
    PosteriorFamily
        A posterior for each lambda: its method `solve` takes lambda as the only inverse
        temperature, and returns the posterior as `NodeWeights` (for each node, the probability that
        it is a leaf of a drawn pruning).
    """
    stops = ChainStops(*prior.check_tree(tree).log_decisions, prior.chain_entropy, prior.chain_mode)
    return PosteriorFamily(tree, compute_gains(tree, cost)[:, None], cost[:1], np.zeros(0), stops)


@validate_arguments
def excess_posterior(
    tree: Tree, stats: NodeStats, prior: NodeWeights, penalty: ArrayLike, lambda_error: float
) -> NodeWeights:
    """Compute the posterior over prunings from errors, penalties of leaves, and any prior.

    A pruning is the tree with some nodes turned into leaves. Its posterior weight is proportional
    to its prior probability times ``exp(-lambda_error n (error rate + sum of the penalty over its
    leaves))``, for n rows. No other posterior has a lower `gibbs_excess_bound`.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Class counts of n rows in each node, and the label of each node, which does not depend on
        these rows.
    prior : NodeWeights
        A prior distribution over prunings (for each node, the probability that it is a leaf of a
        pruning) that does not depend on these rows.
    penalty : array-like of shape (m,)
        Penalty of each node as a leaf, for instance `deviation_penalty`.
    lambda_error : float
        Inverse temperature, strictly between 0 and 2.

    Returns
    -------
    NodeWeights
        The posterior, as the probability of each node to be a leaf of a drawn pruning.

    Raises
    ------
    ValueError
        If the inverse temperature is out of range, or a penalty is not finite.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (2).
    """
    rows = float(stats.check_tree(tree).n[0])
    cost = stats.errors + rows * check_cost(tree, penalty)
    return _build_family(tree, cost, prior).solve(bounds.check_lambda_error(lambda_error))


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
    """Bound the excess risk of a pruning drawn from a posterior by its errors on independent rows.

    A pruning is the tree with some nodes turned into leaves; any distribution over prunings may be
    the posterior. Excess risk is the probability of an error minus that of the Bayes classifier.
    The bound holds with probability at least ``1 - 2 delta``, for all posteriors and inverse
    temperatures at once, under one condition on the penalties. With probability at least ``1 -
    delta``, for all prunings, the true excess risk given the features of the rows exceeds the
    observed excess by at most the sum of the penalties of the pruning's leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Class counts of n >= 8 independent rows in each node, and the label of each node. Neither
        the tree, nor the labels, nor the prior may depend on these rows.
    posterior, prior : NodeWeights
        The posterior and the prior distribution over the prunings of the tree (for each node, the
        probability that it is a leaf of a pruning).
    penalty : array-like of shape (m,)
        Penalty of each node as a leaf, computed from these rows, for instance `deviation_penalty`.
    bayes_errors : float
        Number of errors of the Bayes classifier on these rows.
    lambda_error : float
        Inverse temperature, strictly between 0 and 2.
    delta : float
        Probability of failure, strictly between 0 and 1; see above.

    Returns
    -------
    float
        The bound, at most 1.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, equation (9) of the appendix, a step to
    Proposition 2.
    """
    rows = float(stats.check_tree(tree).n[0])
    if not 0 <= bayes_errors <= rows:
        raise ValueError(
            f"bayes_errors must lie in 0 .. {rows:g}, the number of rows in stats, got "
            f"{bayes_errors!r}"
        )
    weight = posterior.check_tree(tree).weight
    mean_penalty = float(weight @ check_cost(tree, penalty))
    excess = (float(weight @ stats.errors) - float(bayes_errors)) / rows if rows else 0.0
    complexity = kl_divergence(tree, posterior, prior)
    bound = bounds.pac_bayes_fixed_lambda(
        excess + mean_penalty, rows, complexity, compute_log_delta(delta), lambda_error
    )
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
    """Bound the excess risk of a penalised vote by the best pruning's excess risk, penalty and size.

    A pruning is the tree with some nodes turned into leaves; prunings vote with posterior weights.
    Excess risk is the probability of an error minus that of the Bayes classifier. The vote is the
    majority vote of `excess_posterior` with penalties computed from the rows. With probability at
    least ``1 - delta`` these must be at most the penalties passed here. They must also satisfy the
    condition on penalties that `gibbs_excess_bound` states. With probability at least ``1 - 4
    delta`` over the n rows, for all inverse temperatures at once, the excess risk is at most ``K /
    (1 - lambda / 2)`` times ::

        min over prunings T of  R(T) - Bayes risk + sum of the penalty over the leaves of T
            - log P(T) / (lambda n) + log(2 sqrt(n) / delta) / (lambda n) + sqrt(2 log(1 / delta) / n)

    with R(T) the risk of T, P(T) its prior probability and K the number of classes.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    population : NodeStats
        Probability of each class in each node, and the labels of the nodes. `count` computes it
        from all points with their probabilities as weights.
    prior : NodeWeights
        The prior distribution over prunings (for each node, the probability that it is a leaf of a
        pruning).
    penalty : array-like of shape (m,)
        Penalty of each node as a leaf, >= 0, for instance `deviation_limit`.
    n : int
        Number of rows in the calibration set, >= 8.
    bayes_risk : float
        Risk of the Bayes classifier.
    delta : float or None
        Probability of failure of each of the four events behind the bound, so that it fails with
        probability 4 delta at most. None: the bound is on the mean excess over the draw of the
        rows, with a delta of 1 / n.
    lambda_error : float or None
        Inverse temperature of the posterior, strictly between 0 and 2; None: of a grid from
        2^-12.75 to 2^0.75, the one with the lowest bound, which does not depend on the rows.

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
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Proposition 2; for the mean as in equation
    (14).
    """
    penalties = check_cost(tree, penalty)
    if penalties.min() < 0:
        raise ValueError(f"penalty must be at least 0 for every node, got {penalties.min():g}")

    def compute_complexity(pruning: NodeWeights) -> float:
        """Return minus the log of a pruning's prior probability (nats).

        A pruning is the tree with some nodes turned into leaves. pruning: weight 1 of its leaves, 0
        of other nodes. The enclosing call has the tree, `tree`, and the prior distribution over its
        prunings, `prior`.
        """
        return kl_divergence(tree, pruning, prior)

    return compute_excess_bound(
        tree, population, prior, penalties, compute_complexity, n, bayes_risk, delta, lambda_error
    )


@copy_descriptions_from(excess_bound)
def compute_excess_bound(
    tree: Tree,
    population: NodeStats,
    prior: NodeWeights,
    penalty: Float64,
    compute_complexity: Callable[[NodeWeights], float],
    n: int,
    bayes_risk: float,
    delta: float | None,
    lambda_error: float | None,
) -> OracleBound:
    """Bound the excess risk of a penalised vote, for any measure of a pruning's complexity.

    A pruning is the tree with some nodes turned into leaves. Its risk is the probability of an
    error; excess risk is the risk minus that of the Bayes classifier. `population` holds the true
    probability of each class in each node, and `bayes_risk` is the error of the best possible
    classifier. delta is the probability of failure, and lambda_error the inverse temperature of the
    posterior. The bound is on the majority vote of the prunings, weighted by a posterior that
    `excess_posterior` computes from n rows. It has the formula of `excess_bound`, with the returned
    complexity in place of -log P(T): ``K / (1 - lambda / 2)`` times the smallest sum over prunings
    of excess risk, penalties of the leaves, ``complexity / (lambda n)``, and terms that only depend
    on n, delta and lambda.

    Parameters
    ----------
    {tree} {population}
    prior : NodeWeights
        The prior over prunings, by which the best pruning is found: for each node, the probability
        that it is a leaf of a pruning.
    penalty : ndarray of float64, shape (m,)
        Penalty of each node as a leaf, >= 0.
    compute_complexity : callable
        Takes a pruning and returns its complexity in nats. It must differ from minus the log of the
        prior probability by at most a constant.
    {n} {bayes_risk} {delta} {lambda_error}

    Returns
    -------
    OracleBound
        The bound, and the pruning at which it is attained.
    """
    rows = check_bound_arguments(tree, population, n, bayes_risk, 8)
    log_delta = -math.log(rows) if delta is None else compute_log_delta(delta)
    # The first term bounds by how much the best pruning's error rate exceeds its mean. The second one
    # bounds the contribution of failures to the mean excess.
    deviation = math.sqrt(-2 * log_delta / rows) + (4 / rows if delta is None else 0.0)

    def compute_bound(lam: float) -> OracleBound:
        """Bound the excess risk of the vote at the inverse temperature `lam`, in (0, 2).

        The vote is the majority vote of prunings (the tree with some nodes turned into leaves),
        weighted by the posterior with this inverse temperature, the factor of their errors; its
        excess risk is its error minus `bayes_risk`. All other quantities are variables of the
        enclosing call: its arguments (`tree`, `population`, `prior`, `penalty`,
        `compute_complexity`, `bayes_risk`), the number of rows `rows`, and two terms that depend on
        delta, `log_delta` and `deviation`. Return the bound, at most 1, with the pruning at which
        it is attained.
        """
        pruning = find_cheapest_pruning(tree, population.errors + penalty, prior, lam * rows)
        risk = float(pruning.weight @ population.errors)
        leaf_penalty = float(pruning.weight @ penalty)
        nats = compute_complexity(pruning)
        excess = compute_excess(risk, bayes_risk) + leaf_penalty + deviation
        gibbs = bounds.pac_bayes_fixed_lambda(excess, rows, nats, log_delta, lam)
        vote = oracle_excess(gibbs, population.n_classes)
        return OracleBound(min(vote, 1.0), min(gibbs, 1.0), lam, pruning, risk, leaf_penalty, nats)

    return minimise_over_temperatures(compute_bound, lambda_error)


def check_bound_arguments(
    tree: Tree, population: NodeStats, n: int, bayes_risk: float, smallest_n: int
) -> float:
    """Check the arguments of a bound on the excess risk, and return n as a float.

    Raise ValueError if an argument is out of range.

    Parameters
    ----------
    tree : Tree
        The tree that `population` must belong to.
    population : NodeStats
        Probability of each class in each node; the classes of the root must sum to 1.
    n : int
        Number of rows, from `smallest_n` to 1e150.
    bayes_risk : float
        Risk of the Bayes classifier, in 0 .. 1.
    smallest_n : int
        Smallest n for which the caller's bound holds.

    Returns
    -------
    float
        n.
    """
    total = float(population.check_tree(tree).n[0])
    if abs(total - 1) > _ROUNDING:
        raise ValueError(
            f"population must have class probabilities of the root that sum to 1, got {total:g}: "
            "divide the counts of all nodes by those of the root"
        )
    if not smallest_n <= n <= MAX_SETTING:
        raise ValueError(f"n must lie in {smallest_n} .. {MAX_SETTING:g}, got {n!r}")
    if not 0 <= bayes_risk <= 1:
        raise ValueError(f"bayes_risk must lie in 0 .. 1, got {bayes_risk!r}")
    return float(n)


def compute_excess(risk: float, bayes_risk: float) -> float:
    """Return the excess risk, at least 0: `risk` minus `bayes_risk`.

    Both are probabilities of an error. A difference below 0 by no more than rounding becomes 0.
    Raise ValueError if `risk` is smaller by more: no classifier has less than the Bayes risk.
    """
    if risk < bayes_risk - _ROUNDING:
        raise ValueError(
            f"bayes_risk must be at most the risk of every pruning, got {bayes_risk:g} and a "
            f"pruning of risk {risk:g}: pass the risk of the best possible classifier"
        )
    return max(risk - bayes_risk, 0.0)


def minimise_over_temperatures(
    compute_bound: Callable[[float], OracleBound], lambda_error: float | None
) -> OracleBound:
    """Return the bound at one inverse temperature, or the lowest over a grid of them.

    A pruning is a tree with some nodes turned into leaves; the inverse temperature is the factor of
    its errors. compute_bound: takes an inverse temperature of a posterior over prunings, and
    returns the bound on the excess risk of their vote. lambda_error: the inverse temperature,
    strictly between 0 and 2; None: evaluate a grid from 2^-12.75 to 2^0.75 in steps of a factor
    2^0.25, and return the bound with the smallest `gibbs_excess`, which bounds the excess risk of a
    randomly drawn pruning.
    """
    if lambda_error is not None:
        return compute_bound(bounds.check_lambda_error(lambda_error))
    candidates = map(compute_bound, _TEMPERATURES.tolist())
    return min(candidates, key=lambda bound: bound.gibbs_excess)
