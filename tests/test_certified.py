"""Fits that certify, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import certree
from certree import PACBayesTreeClassifier
from certree.certificates import bounds
from certree.rows.deal import deal


def noisy(n=600, n_classes=2, seed=0):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=seed
    )


def certified(**switches):
    return PACBayesTreeClassifier(**{"split": 0.3, "random_state": 0, **switches})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_certified_fits_pass_the_checks_of_scikit_learn():
    # The deal of the rows is by their numbers: what rows hold must have no part in it.
    by_number = "rows are dealt by their numbers"
    expected = {
        "check_sample_weight_equivalence_on_dense_data": by_number,
        "check_fit2d_1sample": "one row cannot be split",
    }
    check_estimator(certified(split=0.5), expected_failed_checks=expected, on_skip=None)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("vote", ["mean", "majority"])
@pytest.mark.parametrize("tune", [None, "bound", "cv"])
def test_the_certificate_is_that_of_what_predicts(n_classes, vote, tune):
    X, y = noisy(n_classes=n_classes)
    for deploy in ("best", "vote"):
        model = certified(vote=vote, tune=tune, deploy=deploy).fit(X, y)
        _, weigh = deal(len(y), 0.3, np.random.RandomState(0))
        wrong = int((model.predict(X[weigh]) != y[weigh]).sum())
        certificate = model.certificate_
        assert certificate.n == len(weigh)
        assert round(certificate.risk * certificate.n) == wrong
        pruning, voted = model.certificates_[:2]
        assert (pruning.method, voted.method) == ("hold_out", "occam_vote")
        assert (pruning.share, voted.share) == (0.5, 0.5)
        expected = voted if deploy == "vote" else min(pruning, voted, key=lambda c: c.bound)
        assert certificate == expected
        assert certificate.bound <= pruning.bound or deploy == "vote"


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("vote", ["mean", "majority"])
def test_the_best_vote_of_the_path_stands_for_election(n_classes, vote):
    """However most of them are passed over without a look at their bound."""
    X, y = noisy(n_classes=n_classes)
    model = certified(vote=vote).fit(X, y)
    election = model.election_
    found = [
        certree.certificates.occam_vote(
            election.held, candidate.ballot.label, election.prior, 0.05, 0.5
        ).bound
        for candidate in election.candidates()
    ]
    assert len(set(found)) > 5
    assert model.certificates_[1].bound == min(found)


def test_the_hold_out_of_the_rule_is_the_binomial_bound():
    X, y = noisy()
    model = certified().fit(X, y)
    pruning = model.certificates_[0]
    bound = bounds.binomial_upper(round(pruning.risk * pruning.n), pruning.n, np.log(0.025))
    assert pruning.bound == pytest.approx(bound)


def test_only_bounds_on_this_very_predictor_stand_beside_a_mean_vote():
    X, y = noisy()
    mean = {c.method for c in certified().fit(X, y).certificates_}
    majority = {c.method for c in certified(vote="majority").fit(X, y).certificates_}
    assert mean == {"hold_out", "occam_vote", "occam_pruning", "gibbs_kl"}
    assert majority > mean | {"vote_first_order", "vote_tandem", "vote_c_bound"}


def test_without_a_split_there_is_no_certificate_but_advice():
    X, y = noisy()
    model = PACBayesTreeClassifier(random_state=0).fit(X[:300], y[:300])
    assert model.certificate_ is None
    assert model.certificates_ == ()
    assert "split=0.35" in model.report()
    with pytest.raises(ValueError, match=r"split=0.35, .* box .*; or call certify\(X, y\)"):
        model.certify()
    certificate = model.certify(X[300:], y[300:])
    wrong = int((model.predict(X[300:]) != y[300:]).sum())
    assert certificate == certree.certificates.hold_out(wrong, 300)
    assert model.certify(X[300:], y[300:], 0.01).bound > certificate.bound
    with pytest.raises(ValueError, match="both X and y, or neither"):
        model.certify(X)


def test_the_report_holds_the_sentence():
    X, y = noisy()
    model = certified().fit(X, y)
    assert str(model.certificate_) in model.report()
    assert "With probability at least 95 %" in model.report()
    assert model.certify() is model.certificate_
    with pytest.raises(NotFittedError):
        certified().report()


def test_groups_stay_in_one_piece_and_are_what_is_counted():
    X, y = noisy()
    groups = np.repeat(np.arange(60), 10)
    model = certified().fit(X, y, groups=groups)
    assert model.certificate_.grouped
    assert model.certificate_.n == 42
    assert {c.method for c in model.certificates_} == {"hold_out_mean", "occam_mean", "gibbs_kl"}
    grow, weigh = deal(600, 0.3, np.random.RandomState(0), groups)
    assert not set(groups[grow]) & set(groups[weigh])


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


def test_weights_shape_the_law_and_not_the_count():
    X, y = noisy()
    weight = np.random.default_rng(0).uniform(0, 3, 600)
    weight[::7] = 0
    plain = certified(deploy="vote").fit(X, y)
    weighted = certified(deploy="vote").fit(X, y, sample_weight=weight)
    assert plain.certificate_.n == weighted.certificate_.n == 420
    assert weighted.certificate_.risk * 420 == pytest.approx(
        round(weighted.certificate_.risk * 420)
    )
    assert not np.array_equal(plain.predict_proba(X), weighted.predict_proba(X))
    assert certified(class_weight="balanced").fit(X, y).certificate_.n == 420


class Recorder(StandardScaler):
    """Remembers how many rows it has seen."""

    def fit(self, X, y=None):
        self.n_seen_ = len(X)
        return super().fit(X, y)


def test_the_preprocessor_sees_growing_rows_only():
    X, y = noisy()
    model = certified(preprocessor=Recorder()).fit(X, y)
    assert model.preprocessor_.n_seen_ == 180
    grow, _ = deal(600, 0.3, np.random.RandomState(0))
    np.testing.assert_allclose(model.preprocessor_.mean_, X[grow].mean(axis=0))
    assert model.score(X, y) > 0.7
    every = PACBayesTreeClassifier(preprocessor=Recorder(), random_state=0).fit(X, y)
    assert every.preprocessor_.n_seen_ == 600


def test_categories_are_those_of_the_growing_rows():
    rng = np.random.default_rng(0)
    city = rng.choice(["Athens", "Bern", "Cairo"], 400)
    _, weigh = deal(400, 0.3, np.random.RandomState(0))
    city[weigh[0]] = "Zug"
    frame = pd.DataFrame({"city": pd.Categorical(city), "size": rng.normal(size=400)})
    model = certified().fit(frame, city == "Bern")
    assert model.categories_.names[0] == ("Athens", "Bern", "Cairo")
    step = ColumnTransformer([("size", StandardScaler(), ["size"])], remainder="passthrough")
    step.set_output(transform="pandas")
    assert certified(preprocessor=step).fit(frame, city == "Bern").certificate_.bound < 0.1


def test_a_certified_model_is_saved(tmp_path):
    X, y = noisy()
    for switches in ({}, {"deploy": "vote", "vote": "majority"}):
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
        ({"split": 0.0}, None, "'split' parameter"),
        ({"split": 1.0}, None, "'split' parameter"),
        ({"split": 0.001}, None, "leaves none to grow"),
        ({"split": 0.999}, None, "leaves none to weigh"),
        ({"delta": 0.0}, None, "'delta' parameter"),
        ({"deploy": "worst"}, None, "'deploy' parameter"),
        ({"split": None, "tune": "bound"}, None, 'tune="bound" takes a split'),
        ({"split": None}, np.zeros(40), "groups takes a split"),
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


def test_any_classifier_is_certified_by_new_rows():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(X[:300], y[:300])
    certificate = certree.certify(forest, X[300:], y[300:])
    assert certificate == certree.certificates.hold_out(
        int((forest.predict(X[300:]) != y[300:]).sum()), 269
    )
    assert certificate.bound < 0.1
    names = np.array(["bad", "good"])[y]
    dummy = DummyClassifier().fit(X, names)
    assert certree.certify(dummy, X, names).risk == pytest.approx(212 / 569)
    with pytest.raises(ValueError, match=r"y must have shape \(269,\), got \(2,\)"):
        certree.certify(forest, X[300:], y[:2])


def test_the_same_seed_gives_the_same_certificate_for_any_number_of_threads():
    X, y = noisy()
    one, two = (clone(certified(n_jobs=jobs)).fit(X, y) for jobs in (None, 2))
    assert one.certificates_ == two.certificates_
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert certified(random_state=1).fit(X, y).certificates_ != one.certificates_


BOX = [[-4.0] * 2, [4.0] * 2]


def test_with_a_box_all_rows_weigh_and_certify():
    X, y = noisy()
    X = X[:, :2]
    model = PACBayesTreeClassifier("dyadic", box=BOX).fit(X, y)
    assert model.get_n_leaves() == 2**9
    certificate = model.certificate_
    assert (certificate.n, certificate.share, certificate.method) == (600, 1.0, "occam_vote")
    assert round(certificate.risk * 600) == (model.predict(X) != y).sum()
    assert "halves the given box" in model.report()
    # The tree and its cells do not depend on the rows.
    other = PACBayesTreeClassifier("dyadic", box=BOX).fit(X[::-1] / 2, 1 - y)
    np.testing.assert_array_equal(model.tree_.threshold, other.tree_.threshold)
    shallow = PACBayesTreeClassifier("dyadic", box=BOX, max_depth=3).fit(X, y)
    assert shallow.get_n_leaves() == 8


def test_a_model_with_a_box_is_saved(tmp_path):
    X, y = noisy()
    model = PACBayesTreeClassifier("dyadic", box=BOX).fit(X[:, :2], y)
    certree.save(model, tmp_path / "model.npz")
    loaded = certree.load(tmp_path / "model.npz")
    assert loaded.report() == model.report()
    np.testing.assert_array_equal(loaded.predict(X[:, :2]), model.predict(X[:, :2]))


@pytest.mark.parametrize(
    ("switches", "fit", "message"),
    [
        ({"partition": "cart"}, {}, 'partition must be "dyadic"'),
        ({"split": 0.3}, {}, "split must be None"),
        ({"preprocessor": StandardScaler()}, {}, "it would see the rows"),
        ({"class_weight": "balanced"}, {}, "class_weight must be None"),
        ({}, {"sample_weight": np.ones(40)}, "sample_weight must be None"),
        ({}, {"groups": np.arange(40)}, "groups must be None"),
        ({"max_depth": "log"}, {}, "max_depth must be a whole number"),
        ({"box": [[0.0], [1.0]]}, {}, "has 2 features, but the tree has 1"),
    ],
)
def test_a_box_takes_nothing_that_sees_rows(switches, fit, message):
    X, y = noisy(40)
    model = PACBayesTreeClassifier(**{"partition": "dyadic", "box": BOX, **switches})
    with pytest.raises(ValueError, match=message):
        model.fit(X[:, :2], y, **fit)


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_are_dealt_at_random(grouped):
    # Rows in the order of their classes are the usual case: the first ones must not all grow.
    groups = np.arange(1000) // 5 if grouped else None
    sides = [deal(1000, 0.5, np.random.RandomState(seed), groups) for seed in range(3)]
    for grow, weigh in sides:
        assert sorted([*grow, *weigh]) == list(range(1000))
        assert 190 < (grow < 500).sum() < 310
        assert 190 < (weigh < 500).sum() < 310
    assert len({tuple(grow) for grow, _ in sides}) == 3


def test_given_temperatures_are_kept():
    X, y = noisy()
    model = certified(lambda_error=0.7, lambda_penalty=0.02, deploy="vote").fit(X, y)
    assert model.temperatures_ == {"lambda_error": 0.7, "lambda_penalty": 0.02}
    other = certified(lambda_error=70.0, lambda_penalty=0.0, deploy="vote").fit(X, y)
    assert model.weights_.expected_leaves < other.weights_.expected_leaves
    assert model.certificate_.bound < 0.5
    half = certified(lambda_error=0.7, deploy="vote").fit(X, y)
    assert half.temperatures_["lambda_error"] == 0.7
