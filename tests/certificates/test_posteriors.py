"""Laws over labelled prunings against the enumeration of all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
import reference
from certree.certificates.posteriors import LabelledWeights, compute_posterior_vote, divergence
from strategies import temperatures, trees_and_stats

SMALL = {"largest": 30, "max_inner": 3, "max_chain": 2}


def enumerated(tree, stats, prior, lam):
    """Masses of all labelled prunings under prior and posterior, in many digits."""
    with reference.localcontext() as context:
        context.prec = reference.DIGITS
        prior_masses, masses = [], []
        by_nodes = reference.compute_masses_from_log_odds(
            tree, np.clip(prior.distributions[0].log_odds, -1e3, 1e3)
        )
        label_prior = np.exp(prior.log_label[0])
        for named, mass in reference.enumerate_labelled_prunings(by_nodes, label_prior):
            errors = sum(int(stats.n[v] - stats.counts[v, k]) for v, k in named.items())
            prior_masses.append((named, mass))
            masses.append(mass * (-reference.Decimal(lam) * errors).exp())
        total = sum(masses)
        return prior_masses, [mass / total for mass in masses], float(total.ln())


@given(trees_and_stats(**SMALL), temperatures(10), st.booleans())
def test_labelled_posterior_is_the_sum_over_labelled_prunings(tree_and_stats, lam, trusting):
    tree, stats = tree_and_stats
    prior = certree.certificates.branching_prior(tree, stats.n_classes)
    if trusting:
        prior = certree.certificates.trust_labels(prior, stats)
    posterior = certree.certificates.labelled_posterior(tree, stats, prior, lam)
    every, masses, log_total = enumerated(tree, stats, prior, lam)
    assert posterior.weights.log_evidence == pytest.approx(log_total, rel=1e-9, abs=1e-9)
    joint = posterior.weights.weight[:, None] * posterior.share
    expected = np.zeros_like(joint)
    for (named, _), mass in zip(every, masses, strict=True):
        for v, k in named.items():
            expected[v, k] += float(mass)
    np.testing.assert_allclose(joint, expected, atol=1e-9)

    score = compute_posterior_vote(tree, stats, posterior).score
    for leaf in np.flatnonzero(tree.is_leaf):
        outcome = np.zeros(stats.n_classes)
        for (named, _), mass in zip(every, masses, strict=True):
            outcome[named[reference.find_pruning_leaf(tree, named, leaf)]] += float(mass)
        np.testing.assert_allclose(score[leaf], outcome, atol=1e-9)

    by_key = [dict(enumerate(side)) for side in (masses, [mass for _, mass in every])]
    expected_divergence = reference.compute_kl_divergence(*by_key)
    assert divergence(posterior, prior) == pytest.approx(expected_divergence, rel=1e-7, abs=1e-8)


def test_a_law_without_labels_takes_those_of_the_growing_rows():
    tree = certree.Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
    stats = certree.NodeStats([[6, 4], [6, 0], [0, 4]], [0, 0, 1])
    prior = certree.certificates.branching_prior(tree, 2)
    posterior = certree.certificates.gibbs_posterior(tree, stats, prior.distributions[0], 1.0)
    np.testing.assert_array_equal(
        compute_posterior_vote(tree, stats, posterior).score,
        certree.vote(tree, stats, posterior).score,
    )
    assert divergence(posterior, prior) == prior.divergence(posterior)
    labelled = LabelledWeights(posterior, np.eye(2)[stats.label])
    np.testing.assert_allclose(
        compute_posterior_vote(tree, stats, labelled).score,
        certree.vote(tree, stats, posterior).score,
    )
    # Sure labels cost log 2 nats a leaf.
    expected = prior.divergence(posterior) + posterior.expected_leaves * np.log(2)
    assert divergence(labelled, prior) == pytest.approx(expected)


def test_a_label_that_the_prior_excludes_does_not_matter_where_it_is_never_drawn():
    tree = certree.Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
    stats = certree.NodeStats([[6, 4], [6, 0], [0, 4]], [0, 0, 1])
    sure = certree.certificates.trust_labels(
        certree.certificates.branching_prior(tree, 2), stats, 1.0
    )
    root = certree.prune(tree, [0, 1, 1])
    wrong_below = LabelledWeights(root, np.array([[1, 0], [0, 1], [1, 0]]))
    assert divergence(wrong_below, sure) == pytest.approx(np.log(2))


def test_what_does_not_fit_is_refused():
    tree = certree.Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
    stats = certree.NodeStats([[6, 4], [6, 0], [0, 4]], [0, 0, 1])
    prior = certree.certificates.branching_prior(tree, 2)
    with pytest.raises(ValueError, match="at most 2 labels, got 2 components and 2 labels"):
        certree.certificates.labelled_posterior(
            tree, stats, certree.certificates.mix_priors(prior, prior), 1
        )
    with pytest.raises(ValueError, match="at most 2 labels, got 1 components and 3 labels"):
        certree.certificates.labelled_posterior(
            tree, stats, certree.certificates.allow_abstention(prior), 1
        )
    with pytest.raises(ValueError, match="share must hold probabilities"):
        LabelledWeights(prior.distributions[0], np.full((3, 2), 0.6))


def test_a_posterior_is_no_prior_and_the_message_names_one():
    tree = certree.Tree([0, 0, 0], [0.5, 0, 0], [1, -1, -1], n_features=1)
    X, y = np.arange(40.0)[:, None] % 2, np.arange(40) % 2
    rows = {"grow": np.arange(20), "weigh": np.arange(20, 40)}
    held = certree.certificates.held_out(tree, X, y, 2, **rows)
    posterior = certree.pac_bayes(tree, held.stats, 1.0, 0.1)
    with pytest.raises(
        TypeError, match=r"must be a Prior, such as branching_prior\(tree, n_classes\)"
    ):
        certree.certificates.certify_posterior(held, posterior, posterior)
