"""Which candidate is selected, what certifies it, and what is computed on the way."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

import certree
from certree import (
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    Grid,
    NodeStats,
    NodeWeights,
    Vote,
    Voting,
)
from certree.certificates import LabelledSelection, ModelSelection, select_labelled, select_model
from certree.certificates.inequalities import bounds
from certree.certificates.model_selection import PATH
from certree.votes import NodePredictions
from certree.weights.family import PosteriorFamily
from weight_units import expect_no_unit

MAJORITY, MEAN = Voting("majority"), Voting("mean", smoothing=0.1)
N, GROWING = 600, 200


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((N, 2))
    return X, (X.sum(axis=1) > 1).astype(int) ^ (rng.random(N) < 0.15)


def model_selection(voting=MAJORITY, groups=None, weight=None, **switches):
    X, y = rows()
    grow, weigh = np.arange(GROWING), np.arange(GROWING, N)
    tree = certree.grow_kd(X[grow], y[grow])
    held = certree.certificates.held_out(tree, X, y, 2, grow=grow, weigh=weigh, groups=groups)
    pruning = certree.prunings.cost_complexity(tree, held.grown, 2.0)
    weighing = None
    if weight is not None:
        weighing = certree.count(tree, X[weigh], y[weigh], 2, held.grown.label, weight[weigh])
    return ModelSelection(held, pruning, 0.05, voting, weighing, **switches)


def labelled(groups=None, weight=None):
    X, y = rows()
    tree = certree.grow.dyadic_grid([0.0, 0.0], [1.0, 1.0], 7)
    everything = np.arange(N)
    held = certree.certificates.held_out(tree, X, y, 2, grow=[], weigh=everything, groups=groups)
    weighing = None if weight is None else certree.count(tree, X, y, 2, held.grown.label, weight)
    return LabelledSelection(held, 0.05, weighing)


def errors(model_selection, label):
    """Whole errors of a labelling of the leaves among the calibration samples."""
    X, y = rows()
    leaf = model_selection.held.tree.apply(X[model_selection.held.weigh])
    return int(np.sum(label[leaf] != y[model_selection.held.weigh]))


def counted(monkeypatch):
    """Count what is computed: ballots, votes, posteriors, their decisions, and labels of votes."""
    calls = Counter()

    def count(name, owner, attribute):
        plain = getattr(owner, attribute)

        def counting(*args):
            calls[name] += 1
            return plain(*args)

        monkeypatch.setattr(owner, attribute, counting)

    count("ballots", Voting, "ballots")
    count("votes", NodePredictions, "compute_vote")
    count("posteriors", PosteriorFamily, "solve")
    count("decisions", NodeWeights.log_decisions, "func")
    count("labels", Vote.label, "func")
    return calls


@pytest.mark.parametrize("voting", [MAJORITY, MEAN])
def test_an_election_computes_everything_once(monkeypatch, voting):
    standing = model_selection(voting)
    calls = counted(monkeypatch)
    select_model(standing)
    on_path = 3 * len(PATH)
    by_draws = voting is MEAN  # the majority of labels is another vote then
    assert calls == {
        "posteriors": on_path + 1,  # the branching prior's is one of them
        "ballots": 2 + by_draws,
        "votes": on_path + 1 + by_draws,
        "labels": on_path + 1,  # each vote's, and that of the pruning of the training samples
        "decisions": 9 + 2,  # the posteriors of the prior, the winner and its likeliest pruning
    }
    before = dict(calls)
    select_model(standing, standing.prior.distributions[:1])
    assert calls["decisions"] == before["decisions"] + 1  # the likeliest pruning of that posterior
    assert calls["labels"] == before["labels"] + 1


@pytest.mark.parametrize("make", [model_selection, labelled])
def test_a_pickle_holds_no_more_than_what_was_given(make):
    standing = make()
    before = pickle.dumps(standing)
    (select_model if make is model_selection else select_labelled)(standing)
    after = pickle.dumps(standing)
    assert len(after) < 1.01 * len(before)
    again = pickle.loads(after)
    label = np.zeros(standing.held.tree.n_nodes, dtype=int)
    certificates = [
        certree.certificates.occam_vote(each.held, label, each.prior) for each in (standing, again)
    ]
    assert certificates[0] == certificates[1]


@pytest.mark.parametrize("voting", [MAJORITY, MEAN])
def test_given_laws_are_the_candidates(voting):
    standing = model_selection(voting)
    posterior = certree.pac_bayes(standing.held.tree, standing.stats, 0.5, 0.1)
    selected = select_model(standing, [posterior], "vote")
    assert selected.weights is posterior
    assert selected.lambda_error is None
    ballot = certree.vote(standing.held.tree, standing.both, posterior, voting)
    np.testing.assert_array_equal(selected.ballot.score, ballot.score)
    wrong = errors(standing, ballot.label)
    assert round(selected.certificate.risk * selected.certificate.n) == wrong
    with pytest.raises(ValueError, match='selection must be "best" or "training"'):
        select_model(standing, selection="worst")


@pytest.mark.parametrize("voting", [MAJORITY, MEAN])
def test_the_vote_of_the_training_set_is_selected_whatever_its_bound(voting):
    standing = model_selection(voting)
    X, y = rows()
    sets = {"grow": standing.held.grow, "weigh": standing.held.weigh}
    flipped = np.where(np.arange(N) < GROWING, 1 - y, y)
    wrong = certree.certificates.held_out(standing.held.tree, X, flipped, 2, **sets)
    for held in (standing.held, wrong):
        chosen = replace(standing, held=held)
        selected = select_model(chosen, selection="training")
        assert selected.certificate is selected.alternatives[0]
        assert selected.weights is chosen.posterior
        assert selected.stats is held.grown
        np.testing.assert_array_equal(selected.ballot.score, chosen.alone.score)
    proposed, voted = selected.alternatives
    assert proposed.bound > voted.bound
    assert select_model(chosen).certificate == voted


@pytest.mark.parametrize("selection", ["best", "training", "vote"])
def test_groups_are_certified_by_their_means(selection):
    standing = model_selection(groups=np.arange(N) // 4)
    selected = select_model(standing, selection=selection)
    assert [other.method for other in selected.alternatives] == ["occam_mean", "occam_mean"]
    assert {certificate.n for certificate in (*selected.alternatives, *selected.others)} == {100}


@pytest.mark.parametrize("voting", [Voting("mean", slopes=np.array([-1, 0], dtype=np.int8)), MEAN])
def test_what_the_growing_rows_propose_keeps_to_the_slopes(voting):
    standing = model_selection(voting)
    tree, stats = standing.held.tree, standing.held.grown
    expected = certree.vote(tree, stats, standing.posterior, voting)
    np.testing.assert_array_equal(standing.alone.score, expected.score)
    plain = certree.vote(
        tree, stats, standing.posterior, Voting("mean", smoothing=voting.smoothing)
    )
    assert np.array_equal(plain.score, expected.score) == (voting.slopes is None)


def test_bounds_by_draws_are_on_the_vote_that_is_deployed():
    """Monotonic constraints change labels by pooled counts; PAC-Bayes bounds need training labels."""
    falling = np.array([-1, 0], dtype=np.int8)
    plain = select_model(model_selection(MAJORITY))
    moved = select_model(model_selection(Voting("majority", slopes=falling)))
    assert len(plain.others) == 8
    assert [other.method for other in moved.others] == ["occam_pruning", "gibbs_kl"]


def test_weights_shape_the_law_and_not_the_count():
    weight = np.random.default_rng(1).uniform(0.1, 5, N)
    plain, weighted = (
        select_model(model_selection(), selection="vote"),
        select_model(model_selection(weight=weight), selection="vote"),
    )
    assert not np.array_equal(plain.weights.weight, weighted.weights.weight)
    for selected in (plain, weighted):
        wrong = errors(model_selection(), selected.ballot.label)
        assert selected.certificate.n == N - GROWING
        assert selected.certificate.risk * selected.certificate.n == pytest.approx(wrong)


def test_labelled_prunings_are_certified_by_all_rows():
    standing = labelled()
    selected = select_labelled(standing)
    (voted,) = selected.alternatives
    assert selected.certificate is voted
    assert (voted.method, voted.n, voted.share) == ("occam_vote", N, 1.0)
    assert round(voted.risk * N) == errors(standing, selected.ballot.label)
    found = [
        certree.certificates.occam_vote(standing.held, each.ballot.label, standing.prior).bound
        for each in standing.candidates()
    ]
    assert voted.bound == min(found)
    assert selected.lambda_error == PATH[int(np.argmin(found))]
    (draws,) = selected.others
    assert draws.method == "gibbs_kl"


def test_labelled_prunings_take_rows_in_groups():
    standing = labelled(groups=np.arange(N) // 5)
    selected = select_labelled(standing)
    certificate = selected.certificate
    assert (certificate.method, certificate.n, certificate.grouped) == ("occam_mean", 120, True)
    # Groups are of one size here.
    assert certificate.risk == pytest.approx(errors(standing, selected.ballot.label) / N)
    bound = bounds.occam_mean(certificate.risk, 120, certificate.complexity, np.log(0.05))
    assert certificate.bound == bound
    assert selected.others[0].n == 120


@pytest.mark.parametrize("groups", [None, np.arange(N) // 5])
def test_labelled_prunings_take_weighted_rows(groups):
    weight = np.where(rows()[1] == 1, 3.0, 1.0)
    plain, standing = labelled(groups), labelled(groups, weight)
    selected = select_labelled(standing)
    posterior = certree.certificates.labelled_posterior(
        standing.held.tree, standing.weighing, standing.prior, selected.lambda_error
    )
    np.testing.assert_array_equal(selected.weights.weight, posterior.weights.weight)
    np.testing.assert_array_equal(selected.stats.counts, standing.weighing.counts)
    np.testing.assert_array_equal(selected.stats.label, selected.ballot.label)
    assert not np.array_equal(selected.ballot.score, select_labelled(plain).ballot.score)
    # The certificate is that of the rows as they are, each once.
    assert selected.certificate.n == (N if groups is None else 120)
    wrong = errors(standing, selected.ballot.label)
    assert selected.certificate.risk == pytest.approx(wrong / N)


@pytest.mark.parametrize("groups", [None, np.arange(N) // 4])
def test_rows_that_certify_have_a_mean_weight_of_their_own(groups):
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.1, 5, N)
    model = CertifiedTreeClassifier(random_state=0).fit(X, y, weight, groups=groups)
    standing = model.model_selection_
    grown, weighing = standing.held.grown, standing.weighing
    grow, weigh = standing.held.grow, standing.held.weigh
    assert grown.n[0] == pytest.approx(weight[grow].sum())
    assert grown.weight_unit == pytest.approx(weight[grow].mean())
    # A group counts once, whatever its size: its mean weight is that of a row.
    n_of_group = 1 if groups is None else np.bincount(groups)[groups[weigh]]
    assert weighing.n[0] == pytest.approx((weight[weigh] / n_of_group).sum())
    assert weighing.n[0] / weighing.weight_unit == pytest.approx(standing.held.n)
    assert standing.both.n[0] / standing.both.weight_unit == pytest.approx(
        len(grow) + standing.held.n
    )


def test_the_unit_of_the_rows_that_certify_does_not_shape_the_law():
    weight = np.random.default_rng(1).uniform(0.1, 5, N)
    unit = weight[GROWING:].mean()
    plain = model_selection(weight=weight)
    # Rows that have grown the tree are on another side, and keep their own unit.
    one, other = (
        replace(
            plain, weighing=NodeStats(c * plain.weighing.counts, plain.weighing.label, c * unit)
        )
        for c in (1.0, 2.0**9)
    )
    for selection in ("best", "vote"):
        found, expected = (select_model(each, selection=selection) for each in (other, one))
        assert found.certificate == expected.certificate
        np.testing.assert_array_equal(found.ballot.label, expected.ballot.label)
    assert one.both.weight_unit != other.both.weight_unit


MODELS = [
    CertifiedTreeClassifier(random_state=0),
    CertifiedTreeClassifier(random_state=0, selection="vote", train_size="auto"),
    CertifiedTreeClassifier(Grid([[0.0, 0.0], [1.0, 1.0]]), max_depth=6, random_state=0),
    CertifiedTreeClassifier(random_state=0, max_leaf_nodes=6, class_weight="balanced"),
    CertifiedTreeRegressor(random_state=0),
    CertifiedForestClassifier(6, random_state=0),
    CertifiedBoostedTreesClassifier(max_iter=4, random_state=0),
    CertifiedBoostedTreesRegressor(max_iter=4, random_state=0),
]


@pytest.mark.parametrize(
    ("model", "groups"),
    [
        *((model, None) for model in MODELS),
        *((model, np.arange(N) // 4) for model in MODELS if has_fit_parameter(model, "groups")),
    ],
)
def test_a_certificate_depends_on_ratios_of_weights_alone(model, groups):
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.1, 5, N)

    def told(weight):
        how = {} if groups is None else {"groups": groups}
        if isinstance(model.get_params().get("grower"), Grid):
            how["classes"] = [0, 1]  # no row grows the tree
        one = clone(model).fit(X, y, sample_weight=weight, **how)
        promised = one.certificate_
        says = one.predict_proba if hasattr(one, "predict_proba") else one.predict
        return np.append([promised.bound, promised.risk, promised.complexity], says(X))

    expect_no_unit(told, weight)
