"""Certificates: their numbers against enumeration, their words, and what they refuse."""

import doctest
import html
import math
import re
from dataclasses import astuple
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
import reference
from certree import NodeStats
from certree.certificates import METHODS, Certificate, HeldOut, certify_posterior
from certree.certificates.inequalities import bounds
from certree.certificates.majority import TUPLES
from certree.certificates.methods import get_inequality
from strategies import sum_leaves, temperatures, trees_and_stats

LOG_DELTA = math.log(0.05)
DOCS = Path(__file__).parents[2] / "docs"
OF_LABEL = ("occam_vote", "occam_mean")
OF_LAW = [name for name in METHODS if name.startswith(("gibbs_", "vote_"))]
OF_ENSEMBLE = [name for name in METHODS if name.startswith("ensemble_")]
# Certificates that bands, sets, silence and thresholds bring with them.
OF_COVERAGE = ["band", "leaf_band", "prediction_set", "class_set", "hold_out_answers", "named_cost"]
# Certificates of rows in time order, for which compute_certificate chooses the method.
OF_PERIODS = [name for name in METHODS if name.endswith("_period")]
OF_PARTS = [name for name in METHODS if name.startswith("every_")]
CERTIFY = {name: partial(certify_posterior, method=name) for name in OF_LAW} | {
    name: getattr(certree.certificates, name)
    for name in METHODS
    if name not in (*OF_LAW, *OF_ENSEMBLE, *OF_PARTS, *OF_COVERAGE, *OF_PERIODS)
}


@st.composite
def held_rows(draw, n_classes=None):
    """A small tree, the training samples that labelled it and some calibration samples."""
    tree, grown = draw(
        trees_and_stats(
            n_classes=n_classes, largest=5, labels=("majority",), max_inner=3, max_chain=2
        )
    )
    table = draw(
        st.lists(
            st.lists(st.integers(0, 4), min_size=grown.n_classes, max_size=grown.n_classes),
            min_size=tree.n_nodes,
            max_size=tree.n_nodes,
        ).filter(
            lambda rows: any(sum(row) for row, leaf in zip(rows, tree.is_leaf, strict=True) if leaf)
        )
    )
    stats = NodeStats(sum_leaves(tree, table), grown.label)
    n, n_grown = int(stats.n[0]), int(grown.n[0])
    sides = np.arange(n_grown), np.arange(n_grown, n_grown + n)
    return HeldOut(tree, grown, stats, *sides, n)


def weighed(held, lam, prior):
    """A posterior and its masses, and those of the prior, by pruning."""
    posterior = certree.certificates.gibbs_posterior(
        held.tree, held.stats, prior.distributions[0], lam
    )
    masses = [
        reference.compute_masses_from_log_odds(held.tree, np.clip(side.log_odds, -1e4, 1e4))
        for side in (posterior, prior.distributions[0])
    ]
    return posterior, *masses


@given(held_rows(), temperatures(10))
def test_certificates_of_a_law_take_what_enumeration_finds(held, lam):
    tree, stats = held.tree, held.stats
    prior = certree.certificates.branching_prior(tree, held.n_classes)
    posterior, masses, prior_masses = weighed(held, lam, prior)
    divergence = reference.compute_kl_divergence(masses, prior_masses)

    def risk(n_draws, n_wrong):
        return reference.compute_tuple_risk(
            tree, masses, stats.counts, stats.label, n_draws, n_wrong
        )

    gibbs, both, either = risk(1, 1), risk(2, 2), risk(2, 1)
    differing = reference.compute_disagreement(tree, masses, stats.counts, stats.label)
    expected = {
        "gibbs_kl": (gibbs,),
        "gibbs_lambda": (gibbs,),
        "vote_first_order": (gibbs,),
        "vote_tandem": (both,),
        "vote_either_wrong": (either,),
        "vote_c_bound": (gibbs, either - both),
        "vote_disagreement": (gibbs, differing, 2),
    }
    for name, observed in expected.items():
        if name == "vote_disagreement" and held.n_classes != 2:
            continue
        certificate = CERTIFY[name](held, posterior, prior)
        assert certificate.method == name
        assert certificate.observed == pytest.approx(observed, abs=1e-9)
        assert certificate.complexity == pytest.approx(divergence, rel=1e-7, abs=1e-8)
        bound = get_inequality(name).bound(*observed, held.n, divergence, LOG_DELTA)
        assert certificate.bound == pytest.approx(bound, abs=1e-6)
    ranged = CERTIFY["vote_first_order_range"](held, posterior, prior)
    assert ranged.bound <= CERTIFY["vote_first_order"](held, posterior, prior).bound + 1e-9


@given(held_rows(), st.data())
def test_occam_takes_the_mass_of_the_labelling(held, data):
    tree = held.tree
    prior = certree.certificates.trust_labels(
        certree.certificates.branching_prior(tree, held.n_classes), held.grown
    )
    label = np.array(
        data.draw(
            st.lists(
                st.integers(0, held.n_classes - 1), min_size=tree.n_nodes, max_size=tree.n_nodes
            )
        )
    )
    masses = reference.compute_masses_from_log_odds(
        tree, np.clip(prior.distributions[0].log_odds, -1e4, 1e4)
    )
    mass = reference.compute_mass_of_labelling(tree, masses, np.exp(prior.log_label[0]), label)
    leaves = np.flatnonzero(tree.is_leaf)
    errors = sum(held.stats.n[v] - held.stats.counts[v, label[v]] for v in leaves)
    vote, mean = (CERTIFY[name](held, label, prior) for name in OF_LABEL)
    assert vote.risk == mean.risk == pytest.approx(errors / held.n, abs=1e-12)
    assert vote.complexity == mean.complexity == pytest.approx(-math.log(mass), abs=1e-9)
    log_delta = LOG_DELTA + math.log(mass)
    assert vote.bound == pytest.approx(bounds.binomial_upper(errors, held.n, log_delta), abs=1e-9)
    assert vote.bound <= mean.bound + 1e-9


@given(held_rows(), temperatures(10))
def test_occam_of_a_pruning_takes_its_mass(held, alpha):
    pruning = certree.prunings.cost_complexity(held.tree, held.stats, alpha)
    prior = certree.certificates.branching_prior(held.tree, held.n_classes)
    certificate = certree.certificates.occam_pruning(held, pruning, prior)
    nodes = np.flatnonzero(pruning.weight)
    masses = reference.compute_masses_from_log_odds(
        held.tree, np.clip(prior.distributions[0].log_odds, -1e4, 1e4)
    )
    mass = float(masses[tuple(nodes)])
    assert certificate.complexity == pytest.approx(-math.log(mass), abs=1e-9)
    assert certificate.risk == pytest.approx(held.stats.errors[nodes].sum() / held.n)


@given(held_rows(), temperatures(3), st.integers(0, 1000))
def test_a_single_draw_pays_its_log_ratio(held, lam, seed):
    prior = certree.certificates.branching_prior(held.tree, held.n_classes)
    posterior, masses, prior_masses = weighed(held, lam, prior)
    drawn = certree.certificates.single_draw(held, posterior, prior, rng=seed)
    nodes = tuple(np.flatnonzero(drawn.pruning.weight))
    ratio = math.log(masses[nodes] / prior_masses[nodes])
    assert drawn.certificate.complexity == pytest.approx(ratio, abs=1e-8)
    again = certree.certificates.single_draw(held, posterior, prior, rng=seed)
    assert again.certificate == drawn.certificate
    np.testing.assert_array_equal(again.pruning.weight, drawn.pruning.weight)


@given(held_rows(), temperatures(3))
def test_tuples_are_the_best_of_their_list(held, lam):
    prior = certree.certificates.branching_prior(held.tree, held.n_classes)
    posterior = certree.certificates.gibbs_posterior(
        held.tree, held.stats, prior.distributions[0], lam
    )
    of_tuples = CERTIFY["vote_tuples"]
    best = of_tuples(held, posterior, prior)
    singles = [of_tuples(held, posterior, prior, share=1 / 15, tuples=[t]) for t in TUPLES]
    assert best.bound == pytest.approx(min(single.bound for single in singles), abs=1e-12)
    assert len(TUPLES) == 15
    # All of the share is used up, not that of the best kind alone.
    assert best.share == 1
    alone = of_tuples(held, posterior, prior, tuples=[(2, 2)])
    assert alone.bound == CERTIFY["vote_tandem"](held, posterior, prior).bound


def typical(name="occam_vote"):
    """Certificates of every method from one and the same observed numbers."""
    observed = {
        "fixed_box": (0.1, 0.3, 0.3, 1),
        "vote_first_order_range": (0.1, 0.01, 0.6),
        "vote_tandem": (0.02,),
        "vote_either_wrong": (0.18,),
        "vote_tuples": (0.2, 3, 1, 15),
        "vote_c_bound": (0.1, 0.15),
        "vote_disagreement": (0.1, 0.15, 2),
        "every_leaf": (0.1, 0.3),
        "every_rule": (0.1, 0.3),
        "every_gap": (0.1, 0.02, 0.4),
        "every_mix": (0.7, 0.1, 0.4, 0.3, 0.02, 0.6),
        "every_threshold": (0.04, 0.3, 0.3, 1.0, 0.2),
        "named_cost": (0.02, 0.1, 1.0, 0.2),
    }.get(name, (0.1,))
    bound = get_inequality(name).bound(*observed, 1000, 5.0, LOG_DELTA)
    return Certificate(name, bound, 0.05, 1.0, 1000, 0.1, observed, 5.0)


@pytest.mark.parametrize("name", METHODS)
def test_parts_sum_to_the_bound(name):
    certificate = typical(name)
    parts = certificate.parts
    total = parts.observed + parts.complexity + parts.confidence
    assert total == pytest.approx(certificate.bound, abs=1e-12)
    assert min(parts.observed, parts.complexity, parts.confidence) > 0
    assert certificate.about == METHODS[name].subject
    assert len(certificate.assumptions) == 2


@pytest.mark.parametrize("name", METHODS)
def test_rows_needed_are_the_fewest_that_are_enough(name):
    certificate = typical(name)
    assert certificate.n_samples_needed(certificate.bound) <= 1000
    target = (certificate.bound + certificate.parts.observed) / 2
    needed = certificate.n_samples_needed(target)
    assert needed > 1000

    def at(n):
        return get_inequality(name).bound(*certificate.observed, n, 5.0, LOG_DELTA)

    assert at(needed) <= target < at(needed - 1)
    assert certificate.bound_by(needed) == at(needed)
    assert certificate.bound_by(certificate.n) == certificate.bound
    assert certificate.n_samples_needed(certificate.parts.observed) is None
    assert certificate.n_samples_needed(np.nextafter(certificate.parts.observed, 1)) is None


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(name):
    method = METHODS[name]
    assert {type(fact) for fact in astuple(method)} == {str}
    assert all(getattr(method, fact) for fact in ("subject", "needs", "reference", "rows"))
    assert getattr(bounds, method.inequality) is get_inequality(name).bound
    counts = ("occam", "occam_leaf", "occam_gap", "occam_mix", "root_fragment")
    counts += ("threshold_cost", "named_cost")
    assert (method.inequality in counts) == get_inequality(name).whole_errors
    assert bool(method.where) == (name in (*OF_PARTS, "leaf_band", "class_set", "named_cost"))


def test_every_inequality_certifies_something():
    assert {method.inequality for method in METHODS.values()} == set(bounds.INEQUALITIES)


def test_an_unknown_method_is_refused_with_those_that_are_known():
    held = split()
    prior = certree.certificates.branching_prior(held.tree, 2)
    with pytest.raises(ValueError, match=r"one of gibbs_kl, .*, vote_tuples, got 'occam_vote'"):
        certify_posterior(held, prior.distributions[0], prior, method="occam_vote")
    for name in OF_LAW:
        assert f'"{name}"' in certify_posterior.__doc__


def test_every_public_name_is_shown():
    pages = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))
    for name in certree.certificates.__all__:
        shown = ">>>" in (getattr(certree.certificates, name).__doc__ or "")
        assert shown or re.search(rf"\b{name}\b", pages), name
    assert certree.certificates.__all__ == sorted(certree.certificates.__all__, key=isort_key)


def isort_key(name):
    """Constants, then types, then functions, as the linter sorts them."""
    return (not name.isupper(), name[0].islower(), name)


@pytest.mark.parametrize(
    "module",
    [
        *("certificate", "model_selection", "fixed_box", "guarantees", "hold_out", "majority"),
        *("occam", "subsets.coverage", "monitor", "calibration_set"),
    ],
)
def test_examples_print_what_they_say(module):
    outcome = doctest.testmod(import_module(f"certree.certificates.{module}"))
    assert outcome.attempted
    assert not outcome.failed


def test_the_sentence():
    certificate = Certificate("occam_pruning", 0.11301, 0.05, 0.5, 6500, 0.1009, (0.1009,), 3.2)
    assert str(certificate) == (
        "With probability at least 95 % over the draw of the 6,500 calibration rows, this tree's "
        "error on new rows from the same source is at most 11.4 % (observed on them: 10.1 %; "
        "method: occam_pruning)."
    )
    grouped = Certificate("gibbs_kl", 0.25, 0.001, 1.0, 120, 0.1, (0.1,), 3.2, grouped=True)
    assert str(grouped) == (
        "With probability at least 99.9 % over the draw of the 120 groups of calibration rows, the "
        "error of a tree drawn anew for each row on new groups from the same source, the mean over "
        "groups of each group's fraction of errors, is at "
        "most 25.0 % (observed on them: 10.0 %; method: gibbs_kl)."
    )
    assert grouped.assumptions[0].startswith("groups of rows are drawn independently")
    held_out = str(certree.certificates.hold_out(30, 1000))
    assert held_out.startswith(
        "With probability at least 95 % over the draw of the 1,000 calibration"
    )


def test_hold_out_is_clopper_pearsons():
    certificate = certree.certificates.hold_out(30, 1000, 0.1, 0.5)
    assert certificate.bound == bounds.binomial_upper(30, 1000, LOG_DELTA)
    assert certificate.complexity == 0
    mean = certree.certificates.hold_out_mean(0.03, 1000, 0.1, 0.5)
    assert certificate.bound < mean.bound == bounds.occam_mean(0.03, 1000, 0, LOG_DELTA)
    assert certree.certificates.hold_out_mean(0.03, 50, grouped=True).grouped
    for risk, n in ((-0.1, 10), (1.1, 10), (0.5, 0)):
        with pytest.raises(ValueError, match=r"risk must lie in 0 .. 1, and n be at least 1"):
            certree.certificates.hold_out_mean(risk, n)
    best = certree.certificates.hold_out_best([45, 30, 60], 1000)
    expected = bounds.binomial_upper(30, 1000, LOG_DELTA - math.log(3))
    assert best.bound == pytest.approx(expected, abs=1e-15)
    assert best.risk == 0.03
    for errors, n in ((-1, 10), (11, 10), (0.5, 10), (0, 0)):
        with pytest.raises(ValueError, match=r"errors must be .*(whole number|integer)"):
            certree.certificates.hold_out(errors, n)
    for delta in (0, 1, math.nan):
        with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
            certree.certificates.hold_out(1, 10, delta)
    for share in (0, 1.1):
        with pytest.raises(ValueError, match=r"share must lie in \(0, 1\]"):
            certree.certificates.hold_out(1, 10, 0.05, share)
    with pytest.raises(ValueError, match=r"bound must lie in 0 .. 1"):
        Certificate("hold_out", 1.5, 0.05, 1, 10, 0.1, (0.1,), 0)


def test_the_tightest_of_several_pays_for_all():
    one, other = (
        certree.certificates.hold_out(30, 1000, share=0.5),
        certree.certificates.hold_out(20, 1000, share=0.5),
    )
    assert certree.certificates.tightest(one, other) is other
    with pytest.raises(ValueError, match=r"shares of delta must sum to at most 1, got 1.5"):
        certree.certificates.tightest(one, certree.certificates.hold_out(20, 1000))
    with pytest.raises(ValueError, match="certificates must all have the same delta"):
        certree.certificates.tightest(one, certree.certificates.hold_out(20, 1000, 0.1, 0.5))


def rows(n, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = (X[:, 0] > 0.5).astype(int)
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, n_classes, n), y)


def split(n=200, n_classes=2, **options):
    X, y = rows(n, n_classes=n_classes)
    grow, weigh = np.arange(n // 4), np.arange(n // 4, n)
    tree = certree.grow_kd(X[grow], y[grow])
    return certree.certificates.held_out(tree, X, y, n_classes, grow=grow, weigh=weigh, **options)


def arguments(held, prior=None):
    """What each method takes, by its name."""
    prior = certree.certificates.count_prior(held.tree, held.grown) if prior is None else prior
    posterior = certree.certificates.gibbs_posterior(
        held.tree, held.stats, prior.distributions[0], 0.5
    )
    label = certree.vote(held.tree, held.stats, posterior).label
    taken = dict.fromkeys(OF_LAW, (held, posterior, prior))
    taken |= dict.fromkeys(OF_LABEL, (held, label, prior))
    taken["occam_answers"] = (held, label, certree.certificates.allow_abstention(prior))
    pruning = certree.prunings.cost_complexity(held.tree, held.stats, 2.0)
    return taken | {
        "occam_pruning": (held, pruning, prior),
        "single_draw": (held, posterior, prior),
    }


def made(certificate):
    return getattr(certificate, "certificate", certificate)


def test_a_prior_that_saw_the_weighing_rows_is_refused():
    held = split()
    seen = certree.certificates.count_prior(held.tree, held.stats)
    elsewhere = certree.certificates.count_prior(split().tree, held.grown)
    for prior, message in (
        (seen, "made from other statistics"),
        (elsewhere, "prior must be over the prunings"),
    ):
        for name, taken in arguments(held, prior).items():
            with pytest.raises(ValueError, match=message):
                CERTIFY[name](*taken)


def test_groups_take_mean_losses_only():
    held = split(groups=np.arange(200) // 5)
    for name, taken in arguments(held).items():
        if get_inequality(name).whole_errors:
            with pytest.raises(
                ValueError, match=f"got '{name}', which counts errors of independent rows"
            ):
                CERTIFY[name](*taken)
        else:
            certificate = made(CERTIFY[name](*taken))
            assert certificate.grouped
            assert certificate.n == 30
            assert 0 < certificate.risk < certificate.bound


def test_more_than_two_classes_have_no_disagreement_bound():
    held = split(n_classes=3)
    taken = arguments(held)
    with pytest.raises(ValueError, match="n_classes must be 2 for the disagreement bound, got 3"):
        CERTIFY["vote_disagreement"](*taken["vote_disagreement"])
    assert CERTIFY["vote_c_bound"](*taken["vote_c_bound"]).bound < 1


def test_answers_are_certified_where_there_are_any():
    held = split(400)
    prior = certree.certificates.allow_abstention(
        certree.certificates.count_prior(held.tree, held.grown), 0.3
    )
    posterior = certree.certificates.gibbs_posterior(
        held.tree, held.stats, prior.distributions[0], 1.0
    )
    ballot = certree.vote(held.tree, held.stats, posterior)
    label = np.where(ballot.score.max(axis=1) < 0.8, 2, ballot.label)
    certificate = certree.certificates.occam_answers(held, label, prior)
    leaves = np.flatnonzero(held.tree.is_leaf & (label < 2))
    assert certificate.n == held.stats.n[leaves].sum() < held.n
    wrong = held.stats.n[leaves] - held.stats.counts[leaves, label[leaves]]
    assert certificate.risk == pytest.approx(wrong.sum() / certificate.n)
    assert (
        "calibration rows that it does not abstain from, this vote's error, where it does not "
        "abstain, on" in str(certificate)
    )
    with pytest.raises(ValueError, match="label must not be abstention for all"):
        certree.certificates.occam_answers(held, np.full(len(label), 2), prior)
    with pytest.raises(ValueError, match="prior must have 3 labels, got 2"):
        certree.certificates.occam_answers(
            held, label, certree.certificates.branching_prior(held.tree, 2)
        )
    # A vote that always answers may take the prior, too.
    assert certree.certificates.occam_vote(held, ballot.label, prior).bound < 1
    with pytest.raises(ValueError, match=r"label must lie in 0 .. 1"):
        certree.certificates.occam_vote(held, label, prior)


def test_labelled_laws_certify_a_tree_from_before_the_rows():
    X, y = rows(400)
    grid = np.random.default_rng(1).random((400, 2))
    tree = certree.grow_kd(grid, max_depth=4)
    held = certree.certificates.held_out(tree, X, y, 2, grow=[], weigh=np.arange(400))
    prior = certree.certificates.branching_prior(tree, 2)
    posterior = certree.certificates.labelled_posterior(tree, held.stats, prior, 0.5)
    for name in ("gibbs_kl", "vote_either_wrong"):
        certificate = CERTIFY[name](held, posterior, prior)
        assert certificate.risk < 0.15
        assert certificate.bound < 0.6
    evidence = posterior.weights.log_evidence
    gibbs = certify_posterior(held, posterior, prior)
    assert gibbs.complexity == pytest.approx(-0.5 * 400 * gibbs.risk - evidence, rel=1e-9)


def test_a_pruning_has_weights_0_and_1():
    held = split()
    prior = certree.certificates.branching_prior(held.tree, 2)
    with pytest.raises(ValueError, match="pruning must have weights 0 and 1"):
        certree.certificates.occam_pruning(held, prior.distributions[0], prior)


def test_what_the_prior_excludes_has_no_certificate():
    held = split()
    sure = certree.certificates.trust_labels(
        certree.certificates.branching_prior(held.tree, 2), held.grown, 1.0
    )
    label = 1 - held.stats.label
    certificate = certree.certificates.occam_vote(held, label, sure)
    assert certificate.complexity == np.inf
    assert certificate.bound == 1
    assert certificate.n_samples_needed(0.99) is None
    assert "is at most 100.0 %" in str(certificate)


def test_a_certificate_in_a_notebook_has_the_sentence_and_its_numbers():
    certificate = certree.certificates.hold_out(3, 1000, 0.05)
    page = certificate._repr_html_()
    assert html.escape(str(certificate)) in page
    bound = re.search(r"bound on the error</td><td[^>]*>([\d.]+)<", page)
    assert certificate.bound <= float(bound.group(1)) < certificate.bound + 1e-4
