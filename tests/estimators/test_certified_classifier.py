"""Fits that certify, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certree
from certree import (
    KD,
    Cart,
    CertifiedTreeClassifier,
    Dyadic,
    Grid,
    PACBayesPosteriors,
    PACBayesTreeClassifier,
    Voting,
)
from certree.certificates.inequalities import bounds
from certree.grow.grower import GROWERS
from certree.rows.split import train_calibration_split
from sklearn_checks import copies_differ, expect_checks


def noisy(n=600, n_classes=2, seed=0):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=seed
    )


def certified(**switches):
    return CertifiedTreeClassifier(**{"train_size": 0.3, "random_state": 0, **switches})


class Recorder(StandardScaler):
    """Remembers how many rows it has seen."""

    def fit(self, X, y=None):
        self.n_seen_ = len(X)
        return super().fit(X, y)


def sides(n=600, seed=0, groups=None):
    """Return a train/calibration split of n rows."""
    return train_calibration_split(n, 0.3, np.random.RandomState(seed), groups)


def known(grower):
    """Which classes a fit is given: a box needs them."""
    return [0, 1] if isinstance(grower, Grid) else None


def wrong_rows(model, X, y, rows):
    return int((model.predict(X[rows]) != y[rows]).sum())


def assert_same_fit(one, other, X):
    """The same tree, vote and certificates."""
    for name in ("feature", "threshold", "left"):
        np.testing.assert_array_equal(getattr(one.tree_, name), getattr(other.tree_, name))
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.weights_.weight, other.weights_.weight)
    assert one.best_params_ == other.best_params_
    assert one.certificates_ == other.certificates_
    assert one.certificate_ == other.certificate_
    assert one.report() == other.report()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:.* rows that certify repeat other rows:UserWarning")
def test_certified_fits_pass_the_checks_of_scikit_learn():
    # The deal of the rows is by their numbers: what rows hold must have no part in it.
    expect_checks(certified(train_size=0.5), copies_differ("rows are dealt by their numbers"))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("vote", ["mean", "majority"])
@pytest.mark.parametrize("posteriors", ["bound", "cv", PACBayesPosteriors(search="joint")], ids=str)
def test_the_certificate_is_that_of_what_predicts(n_classes, vote, posteriors):
    X, y = noisy(n_classes=n_classes)
    for selection in ("best", "training", "vote"):
        model = certified(vote=vote, posteriors=posteriors, selection=selection).fit(X, y)
        weigh = sides().calibration
        certificate = model.certificate_
        assert certificate.n == len(weigh)
        assert round(certificate.risk * certificate.n) == wrong_rows(model, X, y, weigh)
        proposed, voted = model.certificates_[:2]
        assert (proposed.method, voted.method) == ("occam_vote", "occam_vote")
        assert (proposed.share, voted.share) == (1.0, 1.0)
        best = min(proposed, voted, key=lambda c: c.bound)
        assert certificate == {"best": best, "training": proposed, "vote": voted}[selection]
        assert model.guarantees_.fixed == (certificate is proposed)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("vote", ["mean", "majority"])
def test_the_best_vote_of_the_path_stands_for_election(n_classes, vote):
    """However most of them are passed over without a look at their bound."""
    X, y = noisy(n_classes=n_classes)
    model = certified(vote=vote).fit(X, y)
    model_selection = model.model_selection_
    found = [
        certree.certificates.occam_vote(
            model_selection.held, candidate.ballot.label, model_selection.prior, 0.05
        ).bound
        for candidate in model_selection.candidates()
    ]
    assert len(set(found)) > 5
    assert model.certificates_[1].bound == min(found)


def hold_out_of_proposal(certificate, wrong):
    """Nine tenths of delta, and what the rest of the prior adds."""
    mass = np.exp(-certificate.complexity)
    assert 0.9 <= mass < 1
    bound = bounds.binomial_upper(wrong, certificate.n, np.log(0.05 * mass))
    assert bound <= bounds.binomial_upper(wrong, certificate.n, np.log(0.05 * 0.9))
    return pytest.approx(bound)


@pytest.mark.parametrize("grower", ["cart", "kd"])
def test_what_growing_rows_propose_is_their_own_tree(grower):
    """The vote of the training samples' tree, held out by the others at nearly all of delta."""
    X, y = noisy()
    model = certified(grower=grower).fit(X, y)
    grow, weigh = sides().train, sides().calibration
    alone = PACBayesTreeClassifier(grower, random_state=0).fit(X[grow], y[grow])
    np.testing.assert_array_equal(
        model.model_selection_.alone.label[model.model_selection_.held.tree.apply(X)],
        alone.predict(X),
    )
    proposed = model.certificates_[0]
    wrong = wrong_rows(alone, X, y, weigh)
    assert round(proposed.risk * proposed.n) == wrong
    assert proposed.bound == hold_out_of_proposal(proposed, wrong)


def test_a_mean_vote_has_only_bounds_on_itself():
    X, y = noisy()
    mean = {c.method for c in certified().fit(X, y).certificates_}
    majority = {c.method for c in certified(vote="majority").fit(X, y).certificates_}
    assert mean == {"occam_vote", "occam_pruning", "gibbs_kl"}
    assert majority > mean | {"vote_first_order", "vote_tandem", "vote_c_bound"}


@pytest.mark.parametrize(
    "name",
    [
        "certificate_",
        "certificates_",
        "model_selection_",
        "preprocessor_",
        "certify",
        "certify_pruning",
        "draw_pruning",
        "predict_selective",
        "report",
        "selective_certificates",
    ],
)
def test_only_a_certified_fit_speaks_of_certificates(name):
    X, y = noisy(100)
    assert hasattr(certified(preprocessor=Recorder()).fit(X, y), name)
    assert not hasattr(PACBayesTreeClassifier(random_state=0).fit(X, y), name)


def test_a_fitted_model_is_certified_by_new_rows_too():
    X, y = noisy()
    model = certified().fit(X[:300], y[:300])
    certificate = model.certify(X[300:], y[300:])
    wrong = wrong_rows(model, X, y, slice(300, None))
    assert certificate == certree.certificates.hold_out(wrong, 300)
    assert certificate == certree.certify(model, X[300:], y[300:])
    assert model.certify(X[300:], y[300:], 0.01).bound > certificate.bound
    for half in ((X, None), (None, y)):
        with pytest.raises(ValueError, match="X and y must be passed together, or neither"):
            model.certify(*half)
    with pytest.raises(NotFittedError):
        certified().certify(X, y)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("selection", ["best", "vote"])
def test_the_certificate_of_a_fit_is_computed_at_any_delta(selection, grouped):
    X, y = noisy()
    groups = np.arange(600) // 3 if grouped else None
    model = certified(selection=selection, delta=0.1).fit(X, y, groups=groups)
    own = model.certify()
    assert own is model.certificate_
    assert model.certify(delta=0.1) == own
    strict = model.certify(delta=0.01)
    assert (strict.delta, strict.risk, strict.method) == (0.01, own.risk, own.method)
    assert strict.bound > own.bound
    if selection == "vote":
        model_selection = model.model_selection_
        by_hand = certree.certificates.occam_mean if grouped else certree.certificates.occam_vote
        assert strict == by_hand(
            model_selection.held, model.vote_.label, model_selection.prior, 0.01
        )
    with pytest.raises(ValueError, match="delta must lie between 0 and 1, got 2"):
        model.certify(delta=2)


@pytest.mark.slow
def test_each_inspection_of_arriving_rows_has_a_part_of_delta():
    X, y = noisy()
    model = certified().fit(X[:300], y[:300])
    wrong = wrong_rows(model, X, y, slice(300, None))
    shares = [model.certify(X[300:], y[300:], look=j).share for j in range(1, 2000)]
    assert shares[:2] == [6 / np.pi**2, 6 / np.pi**2 / 4]
    assert 0.999 < sum(shares) < 1
    paid = certree.certify(model, X[300:], y[300:], 0.1, look=3)
    assert paid == certree.certificates.hold_out(wrong, 300, 0.1, 6 / (3 * np.pi) ** 2)
    for look in (0, -1, 1.5, "1", True):
        with pytest.raises(
            ValueError, match=r"look must be .*(a positive integer|an integer).*, got"
        ):
            certree.certify(model, X[300:], y[300:], look=look)
    with pytest.raises(ValueError, match="look, duplicates, time, groups and independent describe"):
        model.certify(look=1)


def test_a_tree_without_a_certificate_is_certified_by_new_rows():
    X, y = noisy()
    model = PACBayesTreeClassifier(random_state=0).fit(X[:300], y[:300])
    wrong = wrong_rows(model, X, y, slice(300, None))
    assert certree.certify(model, X[300:], y[300:]) == certree.certificates.hold_out(wrong, 300)


def test_the_report_holds_the_sentence():
    X, y = noisy()
    model = certified().fit(X, y)
    assert str(model.certificate_) in model.report()
    assert "With probability at least 95 %" in model.report()
    assert model.certify() is model.certificate_
    with pytest.raises(NotFittedError):
        certified().report()


def credit(n=3000, seed=0):
    """One default in seven, more often where the first feature is large."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    risky = 1 / (1 + np.exp(2.3 - X[:, 0] - 0.8 * (X[:, 1] > 0) * X[:, 2]))
    return X, np.where(rng.random(n) < risky, "yes", "no")


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"selection": "vote"},
        {"class_weight": "balanced"},
        {
            "vote": "majority",
            "posteriors": PACBayesPosteriors(lambda_error=1.0, lambda_penalty=0.1),
        },
        {"grower": "kd"},
        {"train_size": "auto", "posteriors": "cv"},
    ],
    ids=str,
)
def test_what_is_certified_shown_and_exported_is_one_small_tree(switches):
    X, y = credit()
    model = certified(max_leaf_nodes=8, **switches).fit(X, y)
    assert model.get_n_leaves() <= 8
    np.testing.assert_array_equal(model.weights_.weight, model.tree_.is_leaf)
    assert len(model.rules()) == model.get_n_leaves()
    dealt = train_calibration_split(len(y), model.train_size_, np.random.RandomState(0), None)
    wrong = wrong_rows(model, X, y, dealt.calibration)
    assert model.certificate_.risk == pytest.approx(wrong / len(dealt.calibration))
    assert model.certificate_.n == len(dealt.calibration)
    # One tree of scikit-learn says the same, with as many leaves.
    twin = model.to_sklearn()
    assert twin.get_n_leaves() == model.get_n_leaves()
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert len(model.to_sql("loans")) < 3000


@pytest.mark.parametrize("selection", ["best", "vote"])
def test_the_certificate_of_a_small_tree_names_a_tree(selection, tmp_path):
    X, y = credit()
    model = certified(max_leaf_nodes=6, selection=selection).fit(X, y)
    certree.save(model, tmp_path / "model")
    for one in (model, certree.load(tmp_path / "model")):
        certificate = one.certificate_
        assert certificate.about == "this tree's error"
        assert ", this tree's error on new rows" in str(certificate)
        for other in (*one.certificates_[:2], certificate.at(0.1), certificate.nearby(kl=0.01)):
            assert other.about == "this tree's error"
        assert one.full_certificate_.about == "this vote's error"
        families = one.conditional_guarantees()
        assert "at least 95 %, this tree's error is at most" in str(families)
        assert "vote's" not in str(families)
        (whole,) = families["error"].values()
        assert whole.about == "this tree's error"
        assert "this tree's error, where it does" in str(
            one.selective_certificates()[0].certificate
        )
    vote = certified().fit(X, y).certificate_
    assert not vote.is_single_tree


def test_a_small_tree_has_the_certificate_of_the_full_vote_too():
    X, y = credit()
    full, small = (certified(max_leaf_nodes=most).fit(X, y) for most in (None, 6))
    assert full.full_certificate_ is None
    assert small.full_certificate_ == full.certificate_
    assert small.certificate_.bound < full.certificate_.bound + 0.05
    assert small.posteriors_ == ["pruning"]
    report = small.report()
    assert report.startswith(f"One tree of {small.get_n_leaves()} leaves.")
    assert full.certificate_.about == "this vote's error"
    price = 100 * (small.certificate_.risk - full.certificate_.risk)
    assert f"one small tree costs {price:.1f} points of the observed error" in report
    assert "one small tree" not in full.report()
    for model in (full, small):
        assert "guarantees_.thresholds()" in model.report()
    assert "thresholds" not in certified().fit(*noisy(n_classes=3)).report()


def test_a_small_tree_keeps_nodes_where_a_rare_class_is_frequent():
    X, y = credit()
    shares = certified(max_leaf_nodes=6).fit(X, y).predict_proba(X)[:, 1]
    assert shares.max() > 3 * shares.min()


def test_leaves_that_say_nothing_are_not_kept():
    rng = np.random.default_rng(0)
    model = certified(max_leaf_nodes=8).fit(rng.normal(size=(2000, 5)), rng.random(2000) < 0.3)
    assert model.get_n_leaves() == 1


def test_groups_and_weights_go_with_small_trees():
    X, y = credit(900)
    groups = np.arange(900) // 3
    model = certified(max_leaf_nodes=4).fit(X, y, np.arange(900) % 3, groups=groups)
    assert model.certificate_.grouped
    assert model.get_n_leaves() <= 4
    assert "thresholds" not in model.report()


def test_a_small_tree_is_saved_with_its_full_certificate(tmp_path):
    X, y = credit(900)
    model = certified(max_leaf_nodes=4).fit(X, y)
    certree.save(model, tmp_path / "small.certree")
    loaded = certree.load(tmp_path / "small.certree")
    assert loaded.full_certificate_ == model.full_certificate_
    assert loaded.report() == model.report()
    assert (
        loaded.conditional_guarantees(["cells"]).cells
        == model.conditional_guarantees(["cells"]).cells
    )


def test_groups_stay_in_one_piece_and_are_what_is_counted():
    X, y = noisy()
    groups = np.repeat(np.arange(60), 10)
    model = certified().fit(X, y, groups=groups)
    assert model.certificate_.grouped
    assert model.certificate_.n == 42
    assert {c.method for c in model.certificates_} == {"occam_mean", "gibbs_kl"}
    dealt = sides(groups=groups)
    assert not set(groups[dealt.train]) & set(groups[dealt.calibration])


def test_groups_are_routed():
    X, y = noisy()
    groups = np.repeat(np.arange(60), 10)
    with certree_routing():
        model = certified().set_fit_request(groups=True)
        scores = cross_validate(
            model, X, y, params={"groups": groups}, cv=GroupKFold(3), return_estimator=True
        )
    assert all(fitted.certificate_.grouped for fitted in scores["estimator"])


def certree_routing():
    from sklearn import config_context

    return config_context(enable_metadata_routing=True)


# -- weights ---------------------------------------------------------------------------------------


def some_zeros(n=600, seed=0):
    """Whole weights, of which 294 of 600 are positive."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, n).astype(float)
    weight[rng.permutation(n)[: n - 294 * n // 600]] = 0
    return weight


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"selection": "vote", "vote": "majority"},
        {"posteriors": "cv", "cv": 2},
        {"grower": "kd", "class_weight": "balanced"},
        {"grower": Dyadic(), "preprocessor": StandardScaler()},
        {"grower": Grid([[-4.0] * 6, [4.0] * 6])},
        {"max_depth": "log", "monotonic_cst": [1, 0, 0, 0, 0, -1]},
    ],
    ids=str,
)
def test_rows_of_weight_zero_are_as_if_absent(switches, weighted):
    X, y = noisy()
    weight = some_zeros() if weighted else (some_zeros() > 0).astype(float)
    there = weight > 0
    assert there.sum() == 294
    # Whatever is in the others; what is not finite must not even be looked at.
    X_other = np.where(there[:, None], X, np.nan)
    y_other = np.where(there, y, 1 - y)
    for train_size in (0.3, 0.35):
        model = certified(train_size=train_size, **switches)
        classes = known(model.grower)
        alone = clone(model).fit(X[there], y[there], weight[there], classes=classes)
        assert_same_fit(clone(model).fit(X_other, y_other, weight, classes=classes), alone, X)
        depends_on_rows = not isinstance(model.grower, Grid)
        assert alone.certificate_.n == (round((1 - train_size) * 294) if depends_on_rows else 294)


def test_the_certificate_counts_the_rows_of_positive_weight():
    X, y = noisy()
    weight = (some_zeros() > 0).astype(float)
    model = CertifiedTreeClassifier(random_state=0).fit(X, y, weight)
    assert model.certificate_.n == 294 - round(model.train_size_ * 294)
    there = weight > 0
    assert_same_fit(model, CertifiedTreeClassifier(random_state=0).fit(X[there], y[there]), X)


@pytest.mark.parametrize("grower", ["cart", Grid([[-4.0] * 6, [4.0] * 6])], ids=str)
def test_groups_of_weight_zero_are_as_if_absent(grower):
    X, y = noisy()
    groups = np.repeat(np.arange(60), 10)
    weight = np.where(groups % 3 == 0, 0.0, 1.0)
    weight[::7] = 0  # single rows of the others as well
    there = weight > 0
    model = certified(grower=grower)
    classes = known(grower)
    alone = clone(model).fit(X[there], y[there], groups=groups[there], classes=classes)
    assert_same_fit(clone(model).fit(X, y, weight, groups, classes), alone, X)
    assert alone.certificate_.n == (28 if grower == "cart" else 40)


def test_classes_and_categories_of_weight_zero_are_unknown():
    X, y = noisy()
    names = np.array(["no", "yes"])[y].astype(object)
    names[:50] = "perhaps"
    frame = pd.DataFrame(X)
    frame.columns = [f"x{j}" for j in range(6)]
    frame["city"] = pd.Categorical(np.where(np.arange(600) < 50, "Zug", "Bern"))
    weight = (np.arange(600) >= 50).astype(float)
    model = certified().fit(frame, names, weight)
    assert list(model.classes_) == ["no", "yes"]
    assert model.predict_proba(frame).shape == (600, 2)
    assert model.stats_.counts.shape[1] == 2
    assert model.categories_.names[-1] == ("Bern",)
    assert_same_fit(model, certified().fit(frame[50:], names[50:]), frame)


def test_a_class_that_weighs_nothing_is_as_if_absent():
    X, y = noisy(n_classes=4)
    weight = {0: 1.0, 1: 2.0, 2: 0.0, 3: 1.0}
    model = certified(class_weight=weight).fit(X, y)
    assert list(model.classes_) == [0, 1, 3]
    there = y != 2
    assert_same_fit(model, certified(class_weight=weight).fit(X[there], y[there]), X)


@pytest.mark.parametrize("vote", ["mean", "majority"])
@pytest.mark.parametrize("selection", ["best", "vote"])
@pytest.mark.parametrize("seed", range(3))
def test_positive_weights_change_the_posterior_and_not_the_count(vote, selection, seed):
    X, y = noisy()
    weight = np.random.default_rng(seed).exponential(2, 600) + 1e-3
    plain = certified(vote=vote, selection=selection).fit(X, y)
    model = certified(vote=vote, selection=selection).fit(X, y, weight)
    certificate = model.certificate_
    assert certificate.n == plain.certificate_.n == 420
    assert certificate.risk * 420 == pytest.approx(wrong_rows(model, X, y, sides().calibration))
    assert not np.array_equal(plain.predict_proba(X), model.predict_proba(X))
    for one in model.certificates_:
        assert one.n == 420
    proposed, _ = model.certificates_[:2]
    wrong = round(proposed.risk * 420)
    assert proposed.risk == wrong / 420
    assert proposed.bound == hold_out_of_proposal(proposed, wrong)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_a_factor_of_all_weights_does_not_change_the_count(factor):
    X, y = noisy()
    model = certified(selection="vote").fit(X, y, np.full(600, factor))
    assert model.certificate_.n == 420
    wrong = wrong_rows(model, X, y, sides().calibration)
    assert model.certificate_.risk * 420 == pytest.approx(wrong)
    assert_same_fit(
        certified().fit(X, y, np.ones(600)), certified().fit(X, y, sample_weight=None), X
    )


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 5.0}], ids=str)
@pytest.mark.parametrize("grower", ["cart", Grid([[-4.0] * 6, [4.0] * 6])], ids=str)
def test_class_weights_change_the_posterior_and_not_the_count(class_weight, grower):
    X, y = noisy()
    y = y * (np.arange(600) % 3 > 0)  # a rarer class
    classes = known(grower)
    plain = certified(grower=grower, selection="vote").fit(X, y, classes=classes)
    model = clone(plain).set_params(class_weight=class_weight).fit(X, y, classes=classes)
    weigh = sides().calibration if grower == "cart" else np.arange(600)
    assert model.certificate_.n == plain.certificate_.n == len(weigh)
    wrong = wrong_rows(model, X, y, weigh)
    assert model.certificate_.risk * len(weigh) == pytest.approx(wrong)
    assert (model.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_groups_count_alike_whatever_their_rows_weigh():
    X, y = noisy()
    groups = np.random.default_rng(0).integers(0, 60, 600)
    weight = np.random.default_rng(1).exponential(2, 600) + 1e-3
    model = certified().fit(X, y, weight, groups)
    weigh = sides(groups=groups).calibration
    wrong = model.predict(X[weigh]) != y[weigh]
    errors = [wrong[groups[weigh] == one].mean() for one in np.unique(groups[weigh])]
    assert model.certificate_.n == len(errors)
    assert model.certificate_.risk == pytest.approx(np.mean(errors))


@pytest.mark.parametrize("grower", ["cart", Grid([[-4.0] * 6, [4.0] * 6])], ids=str)
@pytest.mark.parametrize("grouped", [False, True])
def test_weights_of_one_are_none(grower, grouped):
    X, y = noisy()
    groups = np.random.default_rng(0).integers(0, 60, 600) if grouped else None
    model = certified(grower=grower, selection="vote")
    classes = known(grower)
    alone = clone(model).fit(X, y, groups=groups, classes=classes)
    assert_same_fit(clone(model).fit(X, y, np.ones(600), groups, classes), alone, X)


# -- preprocessing and categories ------------------------------------------------------------------


def test_the_preprocessor_sees_growing_rows_only():
    X, y = noisy()
    model = certified(preprocessor=Recorder()).fit(X, y)
    assert model.preprocessor_.n_seen_ == 180
    np.testing.assert_allclose(model.preprocessor_.mean_, X[sides().train].mean(axis=0))
    assert model.score(X, y) > 0.7
    assert not hasattr(model.preprocessor, "n_seen_")


def test_categories_are_those_of_the_growing_rows():
    rng = np.random.default_rng(0)
    city = rng.choice(["Athens", "Bern", "Cairo"], 400)
    city[sides(400).calibration[0]] = "Zug"
    frame = pd.DataFrame({"city": pd.Categorical(city), "size": rng.normal(size=400)})
    model = certified().fit(frame, city == "Bern")
    assert {*model.categories_.names[0]} == {"Athens", "Bern", "Cairo"}
    step = ColumnTransformer([("size", StandardScaler(), ["size"])], remainder="passthrough")
    step.set_output(transform="pandas")
    assert certified(preprocessor=step).fit(frame, city == "Bern").certificate_.bound < 0.1


def test_a_certified_model_is_saved(tmp_path):
    X, y = noisy()
    for switches in ({}, {"selection": "vote", "vote": "majority"}):
        model = certified(**switches).fit(X, y)
        certree.save(model, tmp_path / "model.npz")
        loaded = certree.load(tmp_path / "model.npz")
        assert loaded.certificate_ == model.certificate_
        assert loaded.certificates_ == model.certificates_
        assert loaded.report() == model.report()
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(TypeError, match="'preprocessor' cannot be saved"):
        certree.save(certified(preprocessor=StandardScaler()).fit(X, y), tmp_path / "other")


@pytest.mark.parametrize(
    ("switches", "groups", "message"),
    [
        ({"train_size": 0.0}, None, "'train_size' parameter"),
        ({"train_size": 1.0}, None, "'train_size' parameter"),
        ({"train_size": None}, None, "'train_size' parameter"),
        ({"train_size": 0.001}, None, "leaves none to train"),
        ({"train_size": 0.999}, None, "leaves none to calibrate"),
        ({"delta": 0.0}, None, "'delta' parameter"),
        ({"selection": "worst"}, None, "'selection' parameter"),
        ({"max_leaf_nodes": 0}, None, "'max_leaf_nodes' parameter"),
        ({"max_leaf_nodes": 2.5}, None, "'max_leaf_nodes' parameter"),
        ({"posteriors": "best"}, None, "'posteriors' parameter"),
        ({"posteriors": None}, None, "'posteriors' parameter"),
        (
            {"posteriors": PACBayesPosteriors(prior="none")},
            None,
            "'prior' parameter of PACBayesPosteriors",
        ),
        ({"posteriors": PACBayesPosteriors(lambda_error=-1.0)}, None, "'lambda_error' parameter"),
        (
            {"posteriors": PACBayesPosteriors(search="mixture", scoring="error")},
            None,
            'scoring must be "log_loss" with search="mixture"',
        ),
        ({"vote": "weighted"}, None, "'vote' parameter"),
        ({"grower": "forest"}, None, "'grower' parameter"),
        ({"grower": Cart("best")}, None, "criterion must be"),
        ({"grower": Dyadic(resolution="fine")}, None, 'resolution must be None or "paper"'),
        (
            {"grower": "kd", "monotonic_cst": [1] * 6},
            None,
            "monotonic_cst needs grower to be a Cart",
        ),
        ({}, np.zeros(39), r"groups must have shape \(40,\)"),
        ({}, np.zeros(40), "of 1 groups leaves none"),
    ],
)
def test_bad_switches_are_refused_and_change_nothing(switches, groups, message):
    X, y = noisy(40)
    model = certified(**switches)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, groups=groups)
    with pytest.raises(NotFittedError):
        model.predict(X)
    fitted = certified().fit(X, y)
    before = fitted.predict_proba(X), fitted.certificates_
    with pytest.raises(ValueError, match=message):
        fitted.set_params(**switches).fit(X, y, groups=groups)
    np.testing.assert_array_equal(fitted.predict_proba(X), before[0])
    assert fitted.certificates_ == before[1]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(40), "at least one (non-zero number|row)"),
        (-np.ones(40), "Negative values"),
        (np.full(40, np.nan), "NaN"),
        (np.ones(39), "39"),
        (np.eye(40)[0], "of 1 rows leaves none to"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    X, y = noisy(40)
    with pytest.raises(ValueError, match=message):
        certified().fit(X, y, sample_weight=weight)


def test_weights_that_leave_no_row_are_refused():
    X, y = noisy(40)
    with pytest.raises(ValueError, match="sample_weight must be positive for at least one row"):
        certified(class_weight={0: 0.0, 1: 0.0}).fit(X, y)


def test_any_classifier_is_certified_by_new_rows():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(X[:300], y[:300])
    certificate = certree.certify(forest, X[300:], y[300:])
    errors = int((forest.predict(X[300:]) != y[300:]).sum())
    assert certificate == replace(certree.certificates.hold_out(errors, 269), repeats=None)
    assert "of the 269 rows given, which were not compared with those of the fit," in str(
        certificate
    )
    assert certificate.bound < 0.1
    names = np.array(["bad", "good"])[y]
    dummy = DummyClassifier().fit(X, names)
    assert certree.certify(dummy, X, names).risk == pytest.approx(212 / 569)
    with pytest.raises(ValueError, match=r"y must have shape \(269,\), .*got \(2,\)"):
        certree.certify(forest, X[300:], y[:2])


class Foreign:
    """A classifier of anybody, who may say which classes it knows."""

    def __init__(self, answers, classes=None):
        self.answers = np.asarray(answers)
        if classes is not None:
            self.classes_ = classes

    def predict(self, X):
        return self.answers[np.asarray(X)[:, 0].astype(int)]


LABELS = {
    "numbers for text": (["a", "b"], [0, 1], ["a", "b"]),
    "text for numbers": ([0, 1], ["0", "1"], [0, 1]),
    "none is known": ([0, 1], [2, 3], [0, 1]),
    "other words": (["a", "b"], ["A", "B"], ["a", "b"]),
    "some are text": ([0, 1], np.array([0, "1"], dtype=object), [0, 1]),
    "some are missing": (["a", "b"], np.array(["a", None], dtype=object), ["a", "b"]),
    "unknown classes, other kind": (["a", "b"], [0, 1], None),
    "lists": (["a", "b"], np.array([["a"], ["b", "c"]], dtype=object), None),
}


@pytest.mark.parametrize("case", LABELS)
@pytest.mark.parametrize("judge", [certree.certify, certree.certificates.conditional_guarantees])
def test_labels_that_no_fit_can_have_seen_certify_nothing(case, judge):
    answers, y, classes = LABELS[case]
    X = np.tile([[0.0], [1.0]], (20, 1))
    with pytest.raises(ValueError, match="y must hold classes"):
        judge(Foreign(answers, classes), X, np.tile(y, 20))


def test_labels_of_one_kind_are_compared_whatever_their_type():
    X = np.tile([[0.0], [1.0]], (20, 1))
    days = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")
    for answers, y in (
        ([0, 1], [0.0, 1.0]),
        ([False, True], [0, 1]),
        (["a", "b"], np.array(["a", "b"], dtype=object)),
        (days, days.astype("M8[ns]")),
    ):
        for classes in (None, np.array(answers)):
            judged = Foreign(answers, classes), X, np.tile(y, 20)
            assert certree.certify(*judged, duplicates="genuine").risk == 0
    # A misspelt label is no error of the classifier. Without classes_ it cannot be told.
    known = Foreign([0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"y must hold classes among \[0, 1\], got \[2\]: correct"):
        certree.certify(known, X, np.tile([0, 2], 20), duplicates="genuine")
    judged = Foreign([0, 1]), X, np.full(40, 2)
    assert certree.certify(*judged, duplicates="genuine").risk == 1
    scaled = make_pipeline(StandardScaler(), DummyClassifier()).fit(X, np.tile([0, 1], 20))
    with pytest.raises(ValueError, match=r"y must hold classes among \[0, 1\], got \[7\]"):
        certree.certify(scaled, X, np.full(40, 7))


@pytest.mark.threads
def test_the_same_seed_gives_the_same_certificate_for_any_number_of_threads():
    X, y = noisy()
    one, two = (clone(certified(n_jobs=jobs)).fit(X, y) for jobs in (None, 2))
    assert one.certificates_ == two.certificates_
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert certified(random_state=1).fit(X, y).certificates_ != one.certificates_


# -- grids: no row has a part in the tree ----------------------------------------------------------

BOX = [[-4.0] * 2, [4.0] * 2]


def on_grid(**switches):
    return CertifiedTreeClassifier(**{"grower": Grid(BOX), **switches})


def noisy_square(n=600):
    X, y = noisy(n)
    return X[:, :2], y


def test_with_a_grid_all_rows_are_calibration_rows():
    X, y = noisy_square()
    model = on_grid().fit(X, y, classes=[0, 1])
    assert model.get_n_leaves() == 2**9
    certificate = model.certificate_
    assert (certificate.n, certificate.share, certificate.method) == (600, 1.0, "occam_vote")
    assert round(certificate.risk * 600) == (model.predict(X) != y).sum()
    assert "halves the given box" in model.report()
    # The tree and its cells do not depend on the rows.
    other = on_grid().fit(X[::-1] / 2, 1 - y, classes=[0, 1])
    np.testing.assert_array_equal(model.tree_.threshold, other.tree_.threshold)
    assert on_grid(max_depth=3).fit(X, y, classes=[0, 1]).get_n_leaves() == 8
    # p times the whole part of log n, as for every grower.
    assert on_grid(max_depth="log").fit(X, y, classes=[0, 1]).get_n_leaves() == 2 ** (2 * 6)


@pytest.mark.parametrize("corners", [BOX, np.array(BOX), np.array(BOX, np.float32)], ids=type)
def test_a_box_may_be_any_array(corners):
    X, y = noisy_square()
    model = on_grid(grower=Grid(corners)).fit(X, y, classes=[0, 1])
    assert_same_fit(model, on_grid().fit(X, y, classes=[0, 1]), X)
    assert_same_fit(clone(model).fit(X, y, classes=[0, 1]), model, X)


def test_grids_take_groups():
    X, y = noisy_square()
    groups = np.random.default_rng(0).integers(0, 60, 600)
    model = on_grid().fit(X, y, groups=groups, classes=[0, 1])
    certificate = model.certificate_
    assert certificate.grouped
    assert (certificate.n, certificate.method, certificate.share) == (60, "occam_mean", 1.0)
    wrong = model.predict(X) != y
    errors = [wrong[groups == one].mean() for one in range(60)]
    assert certificate.risk == pytest.approx(np.mean(errors))
    assert certificate.bound > on_grid().fit(X, y, classes=[0, 1]).certificate_.bound
    # Groups of one row each are rows, whose mean is bounded more loosely than their number.
    single = on_grid().fit(X, y, groups=np.arange(600), classes=[0, 1]).certificate_
    assert single.n == 600
    assert single.bound >= on_grid().fit(X, y, classes=[0, 1]).certificate_.bound


def test_grids_take_weights():
    X, y = noisy_square()
    weight = np.where(X[:, 0] > 0, 5.0, 0.2)
    model, plain = on_grid().fit(X, y, weight, classes=[0, 1]), on_grid().fit(X, y, classes=[0, 1])
    certificate = model.certificate_
    assert (certificate.n, certificate.method) == (600, "occam_vote")
    assert certificate.risk * 600 == pytest.approx((model.predict(X) != y).sum())
    assert not np.array_equal(model.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_allclose(model.stats_.counts.sum(axis=1)[0], weight.sum())
    # What a fit of the plain rows says stays the same.
    assert_same_fit(on_grid().fit(X, y, np.ones(600), classes=[0, 1]), plain, X)


def test_grids_take_weights_and_groups_together():
    X, y = noisy_square()
    groups = np.arange(600) // 5
    weight = np.random.default_rng(0).exponential(1, 600) + 1e-3
    model = on_grid().fit(X, y, weight, groups, classes=[0, 1])
    wrong = (model.predict(X) != y).reshape(120, 5)
    assert model.certificate_.n == 120
    assert model.certificate_.risk == pytest.approx(wrong.mean())


def test_the_depth_of_a_grid_goes_by_the_rows_with_weight():
    X, y = noisy_square()
    weight = (np.arange(600) < 300).astype(float)
    assert on_grid().fit(X, y, weight, classes=[0, 1]).get_n_leaves() == 2**8


def test_a_grid_has_no_labels_to_certify_prunings_by():
    X, y = noisy_square()
    model = on_grid().fit(X, y, classes=[0, 1])
    for method in (lambda: model.certify_pruning(model.weights_), model.draw_pruning):
        with pytest.raises(ValueError, match="nodes of a Grid have no labels"):
            method()
    assert model.selective_certificates()


def test_a_grid_is_grown_in_other_estimators_too():
    X, y = noisy_square()
    model = PACBayesTreeClassifier(Grid(BOX), random_state=0).fit(X, y)
    boxed = on_grid().fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(model.tree_.threshold, boxed.tree_.threshold)
    assert model.score(X, y) > 0.6


def test_a_model_with_a_grid_is_saved(tmp_path):
    X, y = noisy_square()
    model = on_grid().fit(X, y, classes=[0, 1])
    certree.save(model, tmp_path / "model.npz")
    loaded = certree.load(tmp_path / "model.npz")
    assert loaded.report() == model.report()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"preprocessor": StandardScaler()}, "preprocessor needs training rows"),
        ({"max_leaf_nodes": 4}, "max_leaf_nodes must be None with grower="),
        ({"monotonic_cst": [1, 0]}, "monotonic_cst needs grower to be a Cart"),
        ({"grower": Grid([[0.0], [1.0]])}, r"box must have shape \(2, 2\), got \(2, 1\)"),
        ({"grower": Grid([0.0, 1.0])}, r"box must have shape \(2, 2\)"),
        ({"grower": Grid(BOX[::-1])}, "low < high"),
        ({"grower": Grid([[0.0, 0.0], [1.0, np.inf]])}, "must be finite"),
    ],
)
def test_what_does_not_go_with_a_grid_is_refused(switches, message):
    X, y = noisy_square(40)
    with pytest.raises(ValueError, match=message):
        on_grid(**switches).fit(X, y, classes=[0, 1])


# -- what calibration samples have no part in
# ------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_balanced_classes_are_weighed_by_growing_rows_alone(n_classes, weighted):
    X, y = noisy(n_classes=n_classes)
    weight = some_zeros() + 1 if weighted else None
    weigh = sides().calibration
    other = y.copy()
    other[weigh] = np.minimum(np.random.default_rng(1).integers(0, 2 * n_classes, len(weigh)), 1)
    one, two = (
        certified(class_weight="balanced", posteriors="cv").fit(X, labels, weight)
        for labels in (y, other)
    )
    np.testing.assert_array_equal(one.tree_.feature, two.tree_.feature)
    np.testing.assert_array_equal(one.tree_.threshold, two.tree_.threshold)
    first, second = one.model_selection_, two.model_selection_
    np.testing.assert_array_equal(first.held.grown.counts, second.held.grown.counts)
    np.testing.assert_array_equal(first.held.grown.label, second.held.grown.label)
    np.testing.assert_array_equal(first.posterior.weight, second.posterior.weight)
    np.testing.assert_array_equal(first.prior.log_label, second.prior.log_label)
    assert one.best_params_ == two.best_params_


@pytest.mark.parametrize("grower", ["cart", "kd"])
@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"vote": "majority", "selection": "vote"},
        {"class_weight": "balanced"},
        {"posteriors": "cv", "selection": "vote"},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_classes_of_weighing_rows_alone_are_errors(switches, grower, n_classes):
    X, y = noisy(n_classes=max(2, n_classes))
    y = np.minimum(y, n_classes - 1)
    weigh = sides().calibration
    names = np.array(["a", "b", "c"])[y].astype(object)
    names[weigh[:50]] = "0"  # first in the order of names, so that codes may not shift
    names[weigh[50:80]] = "z"
    model = certified(grower=grower, **switches).fit(X, names)
    assert list(model.classes_) == ["0", *["a", "b", "c"][:n_classes], "z"]
    shares = model.predict_proba(X)
    assert shares.shape == (600, n_classes + 2)
    assert (shares[:, [0, -1]] == 0).all()
    assert set(model.predict(X)) <= set("abc")
    assert model.stats_.counts.shape[1] == n_classes + 2
    assert model.model_selection_.held.n_classes == max(2, n_classes)
    weighing = len(weigh)
    assert round(model.certificate_.risk * weighing) == wrong_rows(model, X, names, weigh)
    assert all(80 / weighing <= one.risk <= 1 for one in model.certificates_)
    # Tree and labels are those of the same rows with known classes.
    same = certified(grower=grower, **switches).fit(X, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(model.tree_.threshold, same.tree_.threshold)
    np.testing.assert_array_equal(
        model.model_selection_.held.grown.counts, same.model_selection_.held.grown.counts
    )
    assert model.selective_certificates()[0].certificate.risk >= 80 / weighing


def test_other_classes_are_errors_in_groups_with_weights_too():
    X, y = noisy()
    groups = np.arange(600) // 5
    weigh = sides(groups=groups).calibration
    names = np.array(["no", "yes"])[y].astype(object)
    names[weigh[::4]] = "perhaps"
    model = certified(selection="vote").fit(X, names, some_zeros() + 1, groups)
    wrong = (model.predict(X) != names).reshape(120, 5).mean(axis=1)
    assert model.certificate_.risk == pytest.approx(wrong[np.unique(groups[weigh])].mean())


def test_the_bound_by_disagreement_refuses_a_third_class_that_only_weighs():
    X, y = noisy()
    y[sides().calibration[0]] = 2
    model_selection = certified(vote="majority").fit(X, y).model_selection_
    with pytest.raises(ValueError, match="must be 2 for the disagreement bound, got 3"):
        certree.certificates.certify_posterior(
            model_selection.held,
            next(model_selection.path())[1],
            model_selection.prior,
            method="vote_disagreement",
        )


def test_classes_may_be_given():
    X, y = noisy()
    model = certified().fit(X, y, classes=[2, 0, 1])
    assert list(model.classes_) == [0, 1, 2]
    assert (model.predict_proba(X)[:, 2] < 0.5).all()
    assert set(model.predict(X)) == {0, 1}
    for classes in ([0], [0, 2], ["a", "b"]):
        with pytest.raises(ValueError, match="y must hold classes among"):
            certified().fit(X, y, classes=classes)


def test_a_grid_takes_the_classes_that_are_known_without_the_rows():
    X, y = noisy_square()
    with pytest.raises(ValueError, match="classes must be passed to fit"):
        on_grid().fit(X, y)
    y[:50] = 7
    model = on_grid().fit(X, y, classes=[0, 1])
    assert list(model.classes_) == [0, 1]
    assert round(model.certificate_.risk * 600) == (model.predict(X) != y).sum() >= 50
    assert model.predict_proba(X).shape == (600, 2)
    # More classes are dearer, whether rows have them or not.
    more = on_grid().fit(X, y, classes=[0, 1, 7, 8, 9])
    assert more.certificate_.complexity > model.certificate_.complexity
    with pytest.raises(ValueError, match="y must hold classes among"):
        on_grid().fit(X, y, classes=[3, 4])


# -- the deal, growers and laws -----------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
def test_the_train_calibration_split_is_random(grouped):
    # Rows in the order of their classes are the usual case: the first ones must not all grow.
    groups = np.arange(1000) // 5 if grouped else None
    deals = [
        train_calibration_split(1000, 0.5, np.random.RandomState(seed), groups) for seed in range(3)
    ]
    for dealt in deals:
        assert sorted([*dealt.train, *dealt.calibration]) == list(range(1000))
        assert 190 < (dealt.train < 500).sum() < 310
        assert 190 < (dealt.calibration < 500).sum() < 310
    assert len({tuple(dealt.train) for dealt in deals}) == 3


def test_given_temperatures_are_kept():
    X, y = noisy()

    def fitted(**temperatures):
        return certified(posteriors=PACBayesPosteriors(**temperatures), selection="vote").fit(X, y)

    model = fitted(lambda_error=0.7, lambda_penalty=0.02)
    assert model.best_params_ == {"lambda_error": 0.7, "lambda_penalty": 0.02}
    other = fitted(lambda_error=70.0, lambda_penalty=0.0)
    assert model.weights_.expected_leaves < other.weights_.expected_leaves
    assert model.certificate_.bound < 0.5
    assert fitted(lambda_error=0.7).best_params_["lambda_error"] == 0.7


def test_cv_stands_for_default_posteriors():
    X, y = noisy()
    named, given = (
        certified(posteriors=posteriors, selection="vote").fit(X, y)
        for posteriors in ("cv", PACBayesPosteriors())
    )
    assert_same_fit(named, given, X)
    assert len(named.mixture_weights_) == 32  # a mixture, by log loss
    by_error = certified(posteriors=PACBayesPosteriors(scoring="error"), selection="vote").fit(X, y)
    assert by_error.mixture_weights_ == [1.0]


def test_settings_of_posteriors_are_parameters():
    model = certified().set_params(
        posteriors="cv", posteriors__prior="branching", posteriors__scoring="error"
    )
    assert repr(model.posteriors) == "PACBayesPosteriors(prior='branching', scoring='error')"
    model.set_params(posteriors__lambda_error=2.0)
    assert model.get_params()["posteriors__lambda_error"] == 2.0
    assert repr(clone(model)) == repr(model)
    with pytest.raises(ValueError, match="left out with posteriors='bound'"):
        certified().set_params(posteriors__prior="leaves")


@pytest.mark.parametrize("name", sorted(GROWERS))
def test_shorthands_are_growers_without_settings(name):
    X, y = noisy()
    assert_same_fit(
        certified(grower=name).fit(X, y), certified(grower=GROWERS[name]()).fit(X, y), X
    )


@pytest.mark.parametrize(
    ("grower", "switches"),
    [
        ("cart", {"max_leaf_nodes": 4, "criterion": "gini"}),
        ("kd", {"axis": "cycle", "min_samples_split": 9}),
        ("dyadic", {"stop_when_pure": False, "min_samples_split": 9}),
        (Cart(criterion="gini"), {"max_leaf_nodes": 4}),
    ],
    ids=str,
)
def test_switches_of_growth_are_nested_parameters(grower, switches):
    X, y = noisy()
    nested = {f"grower__{name}": value for name, value in switches.items()}
    model = certified(grower=grower).set_params(**nested).fit(X, y)
    for name, value in nested.items():
        assert model.get_params()[name] == value
    own = GROWERS[grower]() if isinstance(grower, str) else clone(grower)
    assert_same_fit(model, certified(grower=own.set_params(**switches)).fit(X, y), X)
    assert repr(clone(model)) == repr(model)


def test_switches_are_searched():
    X, y = noisy(200)
    search = GridSearchCV(certified(), {"grower__max_leaf_nodes": [2, 16]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"grower__max_leaf_nodes"}
    assert search.best_estimator_.certificate_.n == 140


def test_a_vote_may_be_an_object():
    X, y = noisy()
    for kind, same in (("mean", Voting("mean", smoothing=0.1)), ("majority", Voting("majority"))):
        switches = {"selection": "vote"}
        named = certified(vote=kind, **switches).fit(X, y)
        assert_same_fit(named, certified(vote=same, **switches).fit(X, y), X)
    smooth = certified(vote=Voting("mean", smoothing=50.0), selection="vote").fit(X, y)
    plain = certified(selection="vote").fit(X, y)
    assert smooth.predict_proba(X).std() < plain.predict_proba(X).std()


@pytest.mark.parametrize("selection", ["best", "vote"])
@pytest.mark.parametrize("vote", ["mean", "majority"])
def test_whatever_is_deployed_keeps_to_constraints(selection, vote):
    X, y = noisy()
    model = certified(monotonic_cst=[1, 0, 0, -1, 0, 0], selection=selection, vote=vote).fit(X, y)
    steps = np.linspace(-4, 4, 50)
    for feature, sign in ((0, 1), (3, -1)):
        for row in X[:40]:
            line = np.tile(row, (50, 1))
            line[:, feature] = steps
            assert (np.diff(sign * model.predict_proba(line)[:, 1]) >= -1e-12).all()


def test_representations_say_what_was_changed():
    model = CertifiedTreeClassifier(
        Grid(BOX), posteriors=PACBayesPosteriors(prior="leaves"), delta=0.01
    )
    assert repr(model) == (
        "CertifiedTreeClassifier(delta=0.01, grower=Grid(box=[[-4.0, -4.0], [4.0, 4.0]]),\n"
        "                        posteriors=PACBayesPosteriors(prior='leaves'))"
    )
    assert repr(clone(model)) == repr(model)
    assert repr(CertifiedTreeClassifier(KD())) == "CertifiedTreeClassifier(grower=KD())"


def test_the_preprocessor_of_a_fit_before_is_forgotten():
    X, y = load_breast_cancer(return_X_y=True)
    plain = CertifiedTreeClassifier(random_state=0).fit(X, y)
    model = CertifiedTreeClassifier(preprocessor=StandardScaler(), random_state=0).fit(X, y)
    model.set_params(preprocessor=None).fit(X, y)
    assert model.preprocessor_ is None
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
