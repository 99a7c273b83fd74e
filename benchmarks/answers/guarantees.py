"""Cases of certificates by every method, and of the numbers from which they are computed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

import certree
from benchmarks.answers import hashes
from benchmarks.answers.hashes import Case, Parts, case
from benchmarks.answers.single_trees import CORNERS
from benchmarks.answers.stages import TREES
from benchmarks.answers.tables import table
from certree import certificates, paper, prunings
from certree.certificates import inequalities
from certree.grow import dyadic_grid


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A tree, a prior and a posterior over its prunings, and the calibration set."""

    held: Any
    pruning: certree.NodeWeights
    prior: Any
    posterior: certree.NodeWeights


@cache
def held(name: str, groups: bool = False) -> Held:
    """Grow a tree on a third of the rows; the others are its calibration set."""
    data = table(name)
    place, K = np.arange(len(data.y)), int(data.y.max()) + 1
    grow_rows, weigh = place[: len(place) // 3], place[len(place) // 3 :]
    tree = certree.grow_cart(data.X[grow_rows], data.y[grow_rows], criterion="entropy")
    parts = place // 4 if groups else None
    found = certificates.held_out(
        tree, data.X, data.y, K, grow=grow_rows, weigh=weigh, groups=parts
    )
    pruning = prunings.cost_complexity(tree, found.grown, 1.0)
    prior = certificates.mix_priors(
        certificates.trust_labels(certificates.branching_prior(tree, K), found.grown),
        certificates.count_prior(tree, found.grown),
        certificates.doubted_prior(tree, found.grown, pruning),
    )
    posterior = certificates.gibbs_posterior(tree, found.stats, prior.distributions[0], 0.5, 0.01)
    return Held(found, pruning, prior, posterior)


def certify_by(method: str) -> Callable[[Held], Any]:
    """Return a function that certifies a posterior, or its majority vote, by a method."""
    return lambda one: certificates.certify_posterior(
        one.held, one.posterior, one.prior, 0.05, 0.5, method=method
    )


def get_labels(one: Held) -> NDArray[Any]:
    """Return the label that the vote gives to every node."""
    label: NDArray[Any] = certree.vote(
        one.held.tree, one.held.stats, one.posterior, "majority"
    ).label
    return label


def certify_draw(one: Held) -> Any:
    """Certify a pruning that is drawn from the posterior."""
    return certificates.single_draw(one.held, one.posterior, one.prior, rng=9).certificate


def certify_abstention(one: Held) -> Any:
    """Certify a vote that abstains in some leaves."""
    label = np.where(np.arange(one.held.tree.n_nodes) % 5 == 0, one.held.n_classes, get_labels(one))
    prior = certificates.allow_abstention(one.prior, 0.2)
    return certificates.occam_answers(one.held, label, prior)


LAWS = (
    *("gibbs_kl", "gibbs_lambda", "vote_first_order", "vote_first_order_range", "vote_tandem"),
    *("vote_either_wrong", "vote_tuples", "vote_c_bound", "vote_disagreement"),
)
METHODS: Mapping[str, Callable[[Held], Any]] = {
    "hold_out": lambda _: certificates.hold_out(17, 240, 0.05, 0.5),
    "hold_out_best": lambda _: certificates.hold_out_best([30, 17, 22], 240),
    "hold_out_mean": lambda one: certificates.hold_out_mean(0.07, 240, grouped=one.held.grouped),
    "occam_vote": lambda one: certificates.occam_vote(one.held, get_labels(one), one.prior, 0.01),
    "occam_mean": lambda one: certificates.occam_mean(one.held, get_labels(one), one.prior),
    "occam_answers": certify_abstention,
    "occam_pruning": lambda one: certificates.occam_pruning(one.held, one.pruning, one.prior),
    "single_draw": certify_draw,
    **{method: certify_by(method) for method in LAWS},
}
WHOLE_ERRORS = ("hold_out", "hold_out_best", "occam_vote", "occam_answers", "occam_pruning")


@case
def method_case(method: str, name: str, groups: bool = False) -> Parts:
    """Return the parts of the certificate by one method of the table of methods."""
    return hashes.certificate_parts(METHODS[method](held(name, groups)))


def tightest_parts() -> Parts:
    """Return the parts of the best of several certificates."""
    one = held("normal")
    several = [METHODS[name](one) for name in ("gibbs_kl", "hold_out")]
    return hashes.certificate_parts(certificates.tightest(*several))


@case
def prior_parts(name: str) -> Parts:
    """Return priors, with the masses and divergences that follow from them."""
    one = held(name)
    tree, K, grown_stats = one.held.tree, one.held.n_classes, one.held.grown
    made = {
        "branching": certificates.branching_prior(tree, K, 0.3),
        "size": certificates.size_prior(tree, K),
        "count": certificates.count_prior(tree, grown_stats, 5.0, 0.8),
        "centred": certificates.centred_prior(tree, grown_stats, one.pruning, 0.05),
        "doubted": certificates.doubted_prior(tree, grown_stats, one.pruning),
        "mixed": one.prior,
    }
    return {
        prior_name: (
            *(posterior.weight for posterior in prior.distributions),
            prior.log_label,
            prior.log_share,
            prior.log_mass(get_labels(one)),
            prior.log_mass_of_pruning(one.pruning),
            prior.divergence(one.posterior),
        )
        for prior_name, prior in made.items()
    }


@case
def divergence_parts(name: str) -> Parts:
    """Return divergences between distributions over prunings, and the mass of a labelling."""
    one = held(name)
    tree, prior = one.held.tree, one.prior.distributions[1]
    return {
        "kl": inequalities.kl_divergence(tree, one.posterior, prior),
        "kl of a pruning": inequalities.kl_divergence(tree, one.pruning, prior),
        "renyi": [inequalities.renyi_divergence(tree, one.posterior, prior, a) for a in (0.5, 2.0)],
        "mass": inequalities.log_prior_mass(tree, prior, one.prior.log_label[0], get_labels(one)),
    }


@case
def moment_parts(name: str) -> Parts:
    """Return moments of the vote and of sums over leaves."""
    one = held(name)
    tree, stats = one.held.tree, one.held.stats
    ballot = certree.vote(tree, stats, one.posterior, "majority")
    least = inequalities.wrong_range(tree, ballot)
    tuples = [(1, 1), (2, 1), (2, 2), (5, 3)]
    value = stats.errors + 1.0
    return {
        "wrong mass": inequalities.wrong_mass(ballot),
        "tuples": [inequalities.tuple_risk(tree, stats, ballot, *kind) for kind in tuples],
        "one wrong": inequalities.one_wrong(tree, stats, ballot),
        "disagreement": inequalities.disagreement(tree, stats, ballot),
        "margins": inequalities.margin_moments(tree, stats, ballot),
        "range": (least.right, least.wrong),
        "leaf mean": inequalities.leaf_mean(tree, one.posterior, value),
        "leaf variance": inequalities.leaf_variance(tree, one.posterior, value),
    }


@case
def selective_case(name: str) -> Parts:
    """Return the parts of certificates of votes that abstain."""
    one = held(name)
    ballot = certree.vote(one.held.tree, one.held.stats, one.posterior, certree.Voting("mean", 0.1))
    return hashes.selective_parts(certificates.selective_certificates(one.held, ballot, one.prior))


def labelled_parts() -> Parts:
    """Return a posterior over labelled prunings of a grid that does not depend on rows."""
    data, tree = table("plane"), TREES["grid"]()
    every = np.arange(len(data.y))
    found = certificates.held_out(tree, data.X, data.y, 2, grow=[], weigh=every)
    prior = certificates.branching_prior(tree, 2)
    posterior = certificates.labelled_posterior(tree, found.stats, prior, 0.8)
    certificate = certificates.certify_posterior(
        found, posterior, prior, 0.05, 1.0, method="gibbs_kl"
    )
    return {
        **hashes.weights_parts(posterior.weights),
        "share": posterior.share,
        **hashes.certificate_parts(certificate),
    }


def oracle_parts() -> Parts:
    """Return bounds that hold before any row is seen."""
    one = held("three")
    counts = one.held.stats.counts / one.held.stats.n[0]
    population = certree.NodeStats(counts, one.held.grown.label)
    prior = certificates.branching_prior(one.held.tree, 3).distributions[0]
    parts: Parts = {}
    for lam in (None, 0.5):
        bound = paper.chernoff_oracle_bound(
            one.held.tree, population, prior, 5000, 0.1, 0.05, lambda_error=lam
        )
        parts[f"oracle, {lam}"] = (
            *(bound.excess, bound.gibbs_excess, bound.lambda_error, bound.risk, bound.complexity),
            bound.pruning.weight,
        )
        theorem = paper.theorem_bound(one.held.tree, population, 10**6, 0.1, 0.05, lambda_error=lam)
        parts[f"theorem, {lam}"] = (
            *(theorem.excess, theorem.gibbs_excess, theorem.risk, theorem.penalty),
            theorem.pruning.weight,
        )
    parts["excess"] = [paper.oracle_excess(excess, 3) for excess in (0.0, 0.01, 0.2)]
    parts["rate"] = [paper.hoelder_rate(n, 0.7, 3) for n in (10, 1000)]
    return parts


def excess_parts() -> Parts:
    """Return bounds on the excess over the Bayes risk, by nodes whose deviations are bounded."""
    one = held("normal")
    tree, stats = one.held.tree, one.held.stats
    penalty = paper.deviation_penalty(tree, stats, 0.1)
    prior = certificates.size_prior(tree, 2).distributions[0]
    posterior = paper.excess_posterior(tree, stats, prior, penalty, 0.5)
    bound = paper.gibbs_excess_bound(tree, stats, posterior, prior, penalty, 3.0, 0.5)
    population = certree.NodeStats(stats.counts / stats.n[0], stats.label)
    limit = paper.deviation_limit(tree, population, 1000)
    return {**hashes.weights_parts(posterior), "penalty": penalty, "limit": limit, "bound": bound}


def box_parts() -> Parts:
    """Return certificates of prunings of a box that was fixed before any row was seen."""
    data = table("plane")
    fixed = certificates.fixed_box(dyadic_grid(*CORNERS, 6), data.X, data.y, CORNERS)
    lowest = certificates.lowest_fixed_box(fixed)
    certificate = certificates.certify_fixed_box(fixed, lowest, 0.1)
    return {"lowest": lowest.weight, **hashes.certificate_parts(certificate)}


def sampled_trees() -> Parts:
    """Return certificates of foreign trees, each with the rows that it was not fitted to."""
    data, rng = table("cancer"), np.random.default_rng(11)
    wrong = np.zeros((6, len(data.y)))
    judged = rng.random(wrong.shape) < 0.5
    for row, out in zip(wrong, judged, strict=True):
        model = DecisionTreeClassifier(random_state=0).fit(data.X[~out], data.y[~out])
        row[out] = model.predict(data.X[out]) != data.y[out]
    weight = np.arange(1.0, 7.0) / 21
    return {
        method: hashes.numbers(
            certificates.certify_ensemble(wrong, judged, weight, method=method, complexity=0.5)
        )
        for method in ("ensemble_first_order", "ensemble_tandem", "ensemble_either_wrong")
    }


def monitor_losses() -> Parts:
    """Return results of monitoring a bound by losses that arrive one after the other."""
    monitor = certificates.Monitor(0.1)
    for losses in np.array_split(np.random.default_rng(12).random(400) < 0.2, 4):
        monitor.update(losses)
    return {"evidence": (monitor.log_e_value, monitor.mean_loss, monitor.first_alarm or -1)}


def guarantee_foreign() -> Parts:
    """Return the guarantees of a foreign classifier, by family."""
    data = table("three")
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(data.X, data.y)
    groups = np.arange(len(data.truth)) % 2
    found = certificates.conditional_guarantees(model, data.new, data.truth, groups=groups)
    return {
        **{
            family: [[str(key), *map(str, hashes.numbers(one))] for key, one in several.items()]
            for family, several in found.items()
        },
        "mixed": hashes.numbers(found.mix([0.5, 0.3, 0.2])),
    }


def certify_foreign() -> Parts:
    """Return the certificate of a foreign classifier on new rows."""
    data = table("cancer")
    model = DecisionTreeClassifier(random_state=0).fit(data.X, data.y)
    return hashes.certificate_parts(certree.certify(model, data.new, data.truth, 0.1))


BY_TABLE = {"priors": prior_parts, "divergences": divergence_parts, "moments": moment_parts}
BY_TABLE["selective"] = selective_case
CERTIFICATES: Mapping[str, Case] = {
    **{f"certificate: {method}": method_case(method, "normal") for method in METHODS},
    **{
        f"certificate: {method}, three": method_case(method, "three")
        for method in METHODS
        if method != "vote_disagreement"
    },
    **{
        f"certificate: {method}, groups": method_case(method, "normal", groups=True)
        for method in METHODS
        if method not in WHOLE_ERRORS
    },
    "certificate: tightest": tightest_parts,
    "certificate: of anybody": certify_foreign,
    "certificate: box": box_parts,
    "certificate: trees of anybody": sampled_trees,
    "certificate: excess": excess_parts,
    "guarantees: of anybody": guarantee_foreign,
    "guarantees: watched": monitor_losses,
    "certificate: labelled": labelled_parts,
    "certificate: oracle": oracle_parts,
    **{
        f"{kind}: {name}": make(name)
        for kind, make in BY_TABLE.items()
        for name in ("normal", "three")
    },
}
