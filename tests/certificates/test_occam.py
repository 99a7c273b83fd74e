"""Votes that abstain where their margin is small: which rows get a prediction, and its certificate."""

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import make_classification

import certree
from certree import CertifiedTreeClassifier, Grid
from certree.certificates.inequalities import bounds
from certree.certificates.occam import compute_node_margins, selective_certificates
from certree.rows.split import train_calibration_split
from strategies import trees_and_stats


def fitted(n_classes=2, n=1500, **switches):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    y = np.array(["a", "b", "c", "d"])[y]
    switches = {"train_size": 0.3, "selection": "vote", "random_state": 0, **switches}
    return CertifiedTreeClassifier(**switches).fit(X, y), X, y


@pytest.mark.parametrize("vote", ["mean", "majority"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_each_certificate_counts_the_answers_to_the_weighing_rows(n_classes, vote):
    model, X, y = fitted(n_classes, vote=vote)
    weigh = train_calibration_split(len(y), 0.3, np.random.RandomState(0)).calibration
    found = model.selective_certificates()
    assert [each.margin for each in found] == sorted({each.margin for each in found})
    assert found[0].margin == 0
    assert found[0].coverage == 1
    assert 1 < len(found) <= 20
    for each in found:
        label, answered = model.predict_selective(X[weigh], each.margin)
        np.testing.assert_array_equal(label, model.predict(X[weigh]))
        wrong = int((label != y[weigh])[answered].sum())
        certificate = each.certificate
        assert certificate.n == answered.sum()
        assert each.coverage == pytest.approx(answered.mean())
        assert round(certificate.risk * certificate.n) == wrong
        label = np.where(
            compute_node_margins(model.vote_) >= each.margin, model.vote_.label, n_classes
        )
        silent = certree.certificates.allow_abstention(model.model_selection_.structure)
        assert certificate == certree.certificates.occam_answers(
            model.model_selection_.held, label, silent
        )
        assert certificate.bound >= bounds.binomial_upper(wrong, certificate.n, np.log(0.05))
        assert f"margin is at least {each.margin:.4g}" in str(each)
        assert str(certificate) in str(each)
    # Less is answered with a larger margin, and less of it is wrong.
    coverage = [each.coverage for each in found]
    assert coverage == sorted(coverage, reverse=True)
    if vote == "mean":  # a majority is as sure of noisy cells as of others
        assert found[-1].certificate.risk < found[0].certificate.risk / 2
        assert min(each.certificate.bound for each in found) < found[0].certificate.bound


@pytest.mark.parametrize("n_classes", [2, 4])
def test_margins_of_what_growing_rows_propose_are_theirs_to_choose(n_classes):
    """Twenty labellings at most, which have nine tenths of the prior together."""
    model, X, y = fitted(n_classes, selection="best")
    assert model.certificate_ is model.certificates_[0]
    found = model.selective_certificates()
    assert 1 < len(found) <= 20
    other = y.copy()
    weigh = train_calibration_split(len(y), 0.3, np.random.RandomState(0)).calibration
    other[weigh[::3]] = y[weigh[::3]][::-1]
    changed = CertifiedTreeClassifier(train_size=0.3, random_state=0).fit(X, other)
    if changed.certificate_ is changed.certificates_[0]:
        margins_again = [each.margin for each in changed.selective_certificates()]
        assert margins_again == [each.margin for each in found]
    weighed = selective_certificates(
        model.model_selection_.held, model.vote_, model.model_selection_.structure, delta=0.05
    )
    assert found[0].certificate.complexity < np.log(20 / 0.9) + 1e-9
    lowest = [min(each.certificate.bound for each in some) for some in (found, weighed)]
    assert lowest[0] < lowest[1]
    for each in found:
        label, answered = model.predict_selective(X[weigh], each.margin)
        wrong = int((label != y[weigh])[answered].sum())
        assert round(each.certificate.risk * each.certificate.n) == wrong


def test_delta_is_that_of_the_fit_or_another():
    model, _, _ = fitted(delta=0.1)
    own, strict = model.selective_certificates(), model.selective_certificates(0.01)
    for a, b in zip(own, strict, strict=True):
        assert (a.certificate.delta, b.certificate.delta) == (0.1, 0.01)
        assert a.certificate.bound < b.certificate.bound


def test_a_vote_in_a_box_may_stay_silent_too():
    X, y = np.random.default_rng(0).random((2000, 2)), None
    y = (X.sum(axis=1) > 1).astype(int)
    box = [[0, 0], [1, 1]]
    model = CertifiedTreeClassifier(Grid(box), max_depth=8).fit(X, y, classes=[0, 1])
    found = model.selective_certificates()
    assert found[-1].certificate.risk < found[0].certificate.risk / 2
    for refused in (lambda: model.certify_pruning(model.weights_), model.draw_pruning):
        with pytest.raises(ValueError, match="nodes of a Grid have no labels"):
            refused()


@given(trees_and_stats(max_inner=4, labels=("majority",)))
def test_margins_are_those_of_the_first_two(tree_and_stats):
    tree, stats = tree_and_stats
    ballot = certree.vote(tree, stats, certree.pac_bayes(tree, stats, 0.1, 0.0), "mean")
    expected = []
    for row in ballot.score:
        first, *others = sorted(row, reverse=True)
        expected.append(first - others[0] if others else 1.0)
    np.testing.assert_allclose(compute_node_margins(ballot), expected, atol=1e-15)


def test_a_margin_of_zero_answers_everywhere():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]] * 50), np.array([0, 1, 1, 1] * 50)
    rows = {"grow": np.arange(100), "weigh": np.arange(100, 200)}
    held = certree.certificates.held_out(certree.grow_cart(X[:100], y[:100]), X, y, 2, **rows)
    ballot = certree.vote(held.tree, held.grown, certree.prune(held.tree, [1.0, 0.0, 0.0]), "mean")
    assert compute_node_margins(ballot)[held.tree.is_leaf].tolist() == [0.0, 1.0]
    found = selective_certificates(
        held, ballot, certree.certificates.count_prior(held.tree, held.grown)
    )
    assert [each.coverage for each in found] == [1.0, 0.5]


def test_sure_leaves_without_weighing_rows_are_no_margin_of_their_own():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]] * 50), np.array([0, 1, 1, 1] * 50)
    grow, weigh = np.arange(100), np.flatnonzero(X[:, 0] == 0)[50:]
    held = certree.certificates.held_out(
        certree.grow_cart(X[grow], y[grow]), X, y, 2, grow=grow, weigh=weigh
    )
    ballot = certree.vote(held.tree, held.grown, certree.prune(held.tree, [1.0, 0.0, 0.0]), "mean")
    prior = certree.certificates.count_prior(held.tree, held.grown)
    (everywhere,) = selective_certificates(held, ballot, prior)
    assert (everywhere.margin, everywhere.coverage) == (0.0, 1.0)


def test_rows_in_groups_and_foreign_priors_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    tree = certree.grow_kd(X[:50], y[:50])
    sides = {"grow": np.arange(50), "weigh": np.arange(50, 200)}
    held = certree.certificates.held_out(tree, X, y, 2, **sides, groups=np.arange(200) // 5)
    ballot = certree.vote(tree, held.grown, certree.prunings.cost_complexity(tree, held.grown, 1.0))
    prior = certree.certificates.count_prior(tree, held.grown)
    with pytest.raises(ValueError, match=r"occam_answers., which counts errors"):
        selective_certificates(held, ballot, prior)
    plain = certree.certificates.held_out(tree, X, y, 2, **sides)
    with pytest.raises(ValueError, match="made from other statistics"):
        selective_certificates(plain, ballot, prior)


def test_any_pruning_of_a_fit_is_certified():
    model, _, _ = fitted()
    held = model.model_selection_.held
    likeliest = certree.weights.map_pruning(model.tree_, model.weights_)
    certificate = model.certify_pruning(likeliest)
    assert certificate == certree.certificates.occam_pruning(
        held, likeliest, model.model_selection_.structure
    )
    assert certificate.method == "occam_pruning"
    risk = float(likeliest.weight @ held.stats.errors) / held.n
    assert certificate.risk == pytest.approx(risk)
    assert certificate.bound > model.certify_pruning(likeliest, delta=0.4).bound
    with pytest.raises(ValueError, match="weights 0 and 1"):
        model.certify_pruning(model.weights_)
    with pytest.raises(TypeError, match="pruning must be a NodeWeights, got 'root'"):
        model.certify_pruning("root")


def test_a_drawn_pruning_is_certified():
    model, _, _ = fitted()
    first, again = model.draw_pruning(0), model.draw_pruning(0)
    np.testing.assert_array_equal(first.pruning.weight, again.pruning.weight)
    assert first.certificate == again.certificate
    assert first.certificate.method == "single_draw"
    sizes = {model.draw_pruning(seed).pruning.expected_leaves for seed in range(20)}
    assert len(sizes) > 1


def test_without_the_rows_of_the_fit_nothing_is_certified(tmp_path):
    model, X, _ = fitted()
    certree.save(model, tmp_path / "model", calibration_samples=False)
    loaded = certree.load(tmp_path / "model")
    margin = model.selective_certificates()[1].margin
    for got, expected in zip(
        loaded.predict_selective(X, margin), model.predict_selective(X, margin), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(ValueError, match="file without its calibration rows"):
        loaded.selective_certificates()
    for wrong in (-0.1, np.nan):
        with pytest.raises(ValueError, match="margin must be"):
            loaded.predict_selective(X, wrong)
