"""What theory promises of a vote where the truth is known: rates to learn and to test by.

None of this is a certificate: the promises speak of true risks, which are known on simulated problems
only.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from certree.arrays import LARGEST
from certree.certificates import bounds
from certree.certificates.divergence import kl_divergence
from certree.certificates.priors import gibbs_family
from certree.signatures import checked
from certree.stats import NodeStats
from certree.tree import Tree
from certree.weights.node_weights import NodeWeights, map_pruning

# Temperatures of which an oracle bound takes the best: 2 to minus so much.
_TEMPERATURES = 2.0 ** -np.arange(0.25, 14, 0.25)


@checked
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
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Proposition 2.
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
    gibbs_risk : float
        The risk of a drawn pruning is at most this.
    lambda_error : float
        Temperature of the law (nats per error).
    pruning : NodeWeights
        The pruning that pays least for its risk and its size together.
    risk : float
        Its true risk.
    complexity : float
        Minus the log of its prior probability (nats).
    """

    excess: float
    gibbs_risk: float
    lambda_error: float
    pruning: NodeWeights
    risk: float
    complexity: float


@checked
def oracle_bound(
    tree: Tree,
    population: NodeStats,
    prior: NodeWeights,
    n: int,
    bayes_risk: float,
    delta: float = 0.05,
    lambda_error: float | None = None,
) -> OracleBound:
    """Bound the excess risk of the vote by the best pruning's risk and size.

    The vote is the majority vote of ``gibbs_posterior(tree, stats, prior, lambda_error)``, where stats
    counts n independent rows that neither the tree, nor its labels, nor the prior have seen. With
    probability at least ``1 - delta`` over them the risk of a drawn pruning is at most ::

        min over prunings T of a R(T) - 2 log P(T) / (lambda n), plus
        (2 log(2 / delta) + log xi(n)) / (lambda n), all over 1 - lambda / 2

    where ``a = (exp(lambda) - 1) / lambda`` and log xi(n) is half of log n but for a constant. The
    excess risk of the vote is at most K times what that is above the Bayes risk.

    Parameters
    ----------
    tree : Tree
        The tree.
    population : NodeStats
        Probability of each class in each node, as `count` gives it for all points with their
        probabilities as weights, and the labels that the nodes vote for.
    prior : NodeWeights
        The prior over prunings; ``size_prior(tree, K, 3 * tree.depth).laws[0]`` is the paper's,
        ``branching_prior(tree, K).laws[0]`` is free of the depth.
    n : int
        Weighing rows.
    bayes_risk : float
        Risk of the best classifier there is.
    delta : float
        Probability with which the promise may fail.
    lambda_error : float or None
        Temperature of the law, between 0 and 2; None: the one with the lowest bound, which the rows
        have no part in.

    Returns
    -------
    OracleBound

    Raises
    ------
    ValueError
        If a number is out of range, or the probabilities do not sum to 1.

    References
    ----------
    The form is that of Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Theorem 1; the page on
    certificates derives these constants. Their law also pays for labels that the weighing rows have
    chosen, see `theorem_posterior`; here others have.
    """
    total = float(population.of(tree).n[0])
    if abs(total - 1) > 1e-9:
        raise ValueError(f"population must hold probabilities that sum to 1, got {total:g}")
    if not 1 <= n <= LARGEST or not 0 <= bayes_risk <= 1 or not 0 < delta < 1:
        raise ValueError(
            f"expected n in 1 .. {LARGEST:g}, a risk in 0 .. 1 and delta between 0 and 1, got {n!r}, "
            f"{bayes_risk!r}, {delta!r}"
        )
    if lambda_error is not None and not 0 < lambda_error < 2:
        raise ValueError(f"lambda_error must lie between 0 and 2, got {lambda_error!r}")
    rows = float(n)  # whole numbers of NumPy overflow
    family = gibbs_family(tree, population, prior)
    chance = 2 * math.log(2 / delta) + bounds.log_xi(rows)

    def at(lam: float) -> OracleBound:
        slope = math.expm1(lam) / lam
        # The likeliest pruning of exp(-slope lam n / 2 risk) times the prior is the one sought; those
        # that stop in different cells of a chain are one here.
        law = family.at(slope * lam * rows / 2, 0.0)
        pruning = map_pruning(tree, replace(law, chain_mode=np.zeros(tree.n_nodes)))
        risk = float(pruning.weight @ population.errors)
        complexity = kl_divergence(tree, pruning, prior)
        gibbs = (slope * risk + (2 * complexity + chance) / (lam * rows)) / (1 - lam / 2)
        gibbs = min(gibbs, 1.0)
        excess = oracle_excess(max(gibbs - bayes_risk, 0.0), population.n_classes)
        return OracleBound(min(excess, 1.0), gibbs, lam, pruning, risk, complexity)

    tried = _TEMPERATURES.tolist() if lambda_error is None else [lambda_error]
    return min(map(at, tried), key=lambda bound: bound.gibbs_risk)


@checked
def hoelder_rate(n: float, smoothness: float, dimension: float) -> float:
    """Excess risk, but for constants and logarithms, where class probabilities are Hoelder smooth.

    The oracle bound of a tree of small cells falls like this: cells of side h cost ``h^smoothness``
    and, as there are ``h^-dimension`` of them, ``sqrt(h^-dimension / n)``.

    Parameters
    ----------
    n : float
        Rows, > 0.
    smoothness : float
        Hoelder exponent of the probabilities of the classes, in (0, 1].
    dimension : float
        Number of features that they depend on, or of dimensions that the rows fill, > 0.

    Returns
    -------
    float
        ``n^(-smoothness / (2 smoothness + dimension))``.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Corollary 1. Audibert and Tsybakov, "Fast
    learning rates for plug-in classifiers", Annals of Statistics 2007, for the rate as such.
    """
    if not n > 0 or not 0 < smoothness <= 1 or not dimension > 0:
        raise ValueError(
            "expected n > 0, a smoothness in (0, 1] and a dimension > 0, got "
            f"{n!r}, {smoothness!r}, {dimension!r}"
        )
    return float(n) ** (-float(smoothness) / (2 * float(smoothness) + float(dimension)))
