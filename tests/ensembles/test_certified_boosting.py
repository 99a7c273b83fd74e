"""Boosted trees whose fit certifies."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import certree
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    certify,
)
from certree.certificates import Guarantees, hold_out
from certree.certificates.certified_regression import LEAST_SCALE
from certree.certificates.inequalities import bounds
from certree.certificates.model_selection import SHARES
from certree.ensembles.certified_boosting import EnsembleCalibrationSet
from certree.rows.split import train_calibration_split
from run_length import LONG

DRAWS = 300 if LONG else 30
SHORT = {"max_iter": 8, "max_leaf_nodes": 6, "random_state": 0}


def noisy(n=300, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] > 0).astype(int) + (n_classes > 2) * (X[:, 1] > 0.5)
    return X, np.where(rng.random(n) < 0.15, rng.integers(0, n_classes, n), y)


def uneven(n=600, seed=0):
    """Make numbers with little noise for small values and much for large ones."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, size=(n, 2))
    return X, X[:, 1] + rng.normal(size=n) * np.where(X[:, 0] > 1, 1.0, 0.1)


def sides(n, train_size=0.5):
    dealt = train_calibration_split(n, train_size, np.random.RandomState(0))
    return dealt.train, dealt.calibration


# -- classes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_the_model_of_its_training_samples_and_a_hold_out_of_the_others(n_classes):
    X, y = noisy(n_classes=n_classes)
    y = np.array(["a", "b", "c"])[y]
    model = CertifiedBoostedTreesClassifier(train_size=0.6, **SHORT).fit(X, y)
    train, judge = sides(300, 0.6)
    plain = BoostedTreesClassifier(**SHORT).fit(X[train], y[train])
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    errors = int(np.sum(plain.predict(X[judge]) != y[judge]))
    assert model.certificate_ == hold_out(errors, len(judge))
    assert model.certificate_.bound == certify(plain, X[judge], y[judge]).bound
    assert model.certificates_ == (model.certificate_,)
    assert model.train_size_ == 0.6
    assert str(model.certificate_) in model.report()


def test_the_learning_curve_chooses_the_training_size():
    X, y = load_breast_cancer(return_X_y=True)
    model = CertifiedBoostedTreesClassifier(**SHORT).fit(X, y)
    assert model.train_size_ in SHARES
    assert model.certificate_.n == len(y) - round(model.train_size_ * len(y))
    # Where nothing is to be learned, few rows train, and many judge.
    rng = np.random.default_rng(0)
    coins = CertifiedBoostedTreesClassifier(**SHORT).fit(
        rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    )
    assert coins.train_size_ <= SHARES[2]


def test_a_chosen_training_size_splits_rows_as_a_given_one_does():
    X, y = noisy(1000)
    chosen = CertifiedBoostedTreesClassifier(**SHORT).fit(X, y)
    given = CertifiedBoostedTreesClassifier(train_size=chosen.train_size_, **SHORT).fit(X, y)
    assert chosen.certificate_ == given.certificate_
    np.testing.assert_array_equal(chosen.calibration_.given, given.calibration_.given)


def test_guarantees_are_those_of_the_calibration_samples():
    X, y = noisy(400, 3)
    model = CertifiedBoostedTreesClassifier(train_size=0.5, **SHORT).fit(X, y)
    train, judge = sides(400)
    plain = BoostedTreesClassifier(**SHORT).fit(X[train], y[train])
    other = Guarantees.by_rows(plain, X[judge], y[judge])
    groups, families = np.arange(400) % 3, ["error", "recall", "groups", "gaps"]
    found = model.conditional_guarantees(families, groups=groups)
    assert str(found) == str(other.conditional_guarantees(families, groups=groups[judge]))
    X_new, _ = noisy(50, 3, seed=1)
    for per_class in (False, True):
        np.testing.assert_array_equal(
            model.predict_set(X_new, 0.8, per_class=per_class),
            other.predict_set(X_new, 0.8, per_class=per_class),
        )
        assert [one.bound for one in model.certify_set(0.8, per_class=per_class)] == [
            one.bound for one in other.certify_set(0.8, per_class=per_class)
        ]
    assert [one.certificate.bound for one in model.selective_certificates()] == [
        one.certificate.bound for one in other.selective_certificates()
    ]
    label, answered = model.predict_selective(X_new, 0.3)
    expected_label, expected_answered = other.predict_selective(X_new, 0.3)
    np.testing.assert_array_equal(label, expected_label)
    np.testing.assert_array_equal(answered, expected_answered)
    assert model.guarantees_.mix({0: 0.2, 1: 0.3, 2: 0.5}).bound == other.mix([0.2, 0.3, 0.5]).bound


def test_classes_that_no_training_sample_has_are_errors():
    X, y = noisy(300)
    _, judge = sides(300)
    y = y.astype(object)
    y[judge[:20]] = "rare"
    y = y.astype(str)
    model = CertifiedBoostedTreesClassifier(train_size=0.5, **SHORT).fit(X, y)
    assert model.classes_.tolist() == ["0", "1", "rare"]
    assert "rare" not in model.predict(X)
    assert model.certificate_.risk == np.mean(model.predict(X[judge]) != y[judge])
    held = model.predict_set(X[judge], 0.8)
    assert held.shape == (150, 3)
    assert not held[:, 2].any()
    with pytest.raises(ValueError, match="classes that no training row has"):
        model.predict_set(X, 0.9)
    # A class that is known without the rows may be predicted, but no row has taught it.
    with pytest.raises(ValueError, match="y must hold classes among"):
        CertifiedBoostedTreesClassifier(**SHORT).fit(X, y, classes=["0"])


def test_groups_are_assigned_whole_and_count_once():
    X, y = noisy(300)
    groups = np.arange(300) // 5
    model = CertifiedBoostedTreesClassifier(train_size=0.5, **SHORT).fit(X, y, groups=groups)
    dealt = train_calibration_split(300, 0.5, np.random.RandomState(0), groups)
    wrong = model.predict(X[dealt.calibration]) != y[dealt.calibration]
    assert model.certificate_.grouped
    assert model.certificate_.n == 30
    assert model.certificate_.risk == pytest.approx(wrong.mean())
    for asked in (model.predict_set, model.predict_selective):
        with pytest.raises(ValueError, match="calibration rows came in groups"):
            asked(X, 0.8)
    with pytest.raises(ValueError, match="calibration rows came in groups"):
        model.conditional_guarantees()


def test_weights_train_and_certify_nothing():
    X, y = noisy(300)
    weight = np.random.default_rng(0).integers(0, 4, 300).astype(float)
    model = CertifiedBoostedTreesClassifier(train_size=0.5, **SHORT).fit(X, y, weight)
    there = weight > 0
    same = CertifiedBoostedTreesClassifier(train_size=0.5, **SHORT).fit(
        X[there], y[there], weight[there]
    )
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    assert model.certificate_ == same.certificate_
    assert model.certificate_.n == there.sum() - round(there.sum() / 2)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("grouped", [False, True])
def test_files_keep_scores_and_classes_and_no_features(kept, grouped, tmp_path):
    X, y = noisy(300, 3)
    groups = np.arange(300) // 2 if grouped else None
    model = CertifiedBoostedTreesClassifier(**SHORT).fit(X, y, groups=groups)
    certree.save(model, tmp_path / "model", calibration_samples=kept)
    loaded = certree.load(tmp_path / "model")
    assert loaded.certificates_ == model.certificates_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    if not kept:
        assert loaded.guarantees_ is None
        with pytest.raises(ValueError, match="file without its calibration rows"):
            loaded.predict_set(X)
    elif not grouped:
        assert str(loaded.conditional_guarantees()) == str(model.conditional_guarantees())
        np.testing.assert_array_equal(loaded.predict_set(X, 0.8), model.predict_set(X, 0.8))


def test_inconsistent_calibration_sets_are_refused():
    good = {"given": [0, 2], "n_given": 3, "score": [[0.1, 0.2]], "y": [0, 1]}
    assert EnsembleCalibrationSet(**good).n_given == 3
    for name, value, message in (
        ("given", [0, 3], "given must lie in 0 .. 2"),
        ("score", [[0.1]], "score"),
        ("score", [[0.1, np.nan]], "score must hold finite numbers"),
        ("y", [0, -1], "y"),
        ("weight", [0.5, 0.0], "weights of the calibration rows must lie in"),
    ):
        with pytest.raises(ValueError, match=message):
            EnsembleCalibrationSet(**{**good, name: value})


def test_one_class_and_few_rows():
    X = np.arange(6.0)[:, None]
    model = CertifiedBoostedTreesClassifier(**SHORT).fit(X, np.full(6, "only"))
    assert model.certificate_.risk == 0
    assert model.predict(X).tolist() == ["only"] * 6
    with pytest.raises(ValueError, match="leaves none to train"):
        CertifiedBoostedTreesClassifier(**SHORT).fit(X[:1], ["only"])


def test_certificates_hold_for_coins():
    """Labels of fair coins: every classifier errs on half of the new rows."""
    missed = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
        model = CertifiedBoostedTreesClassifier(delta=0.2, max_iter=5, random_state=seed).fit(X, y)
        missed += model.certificate_.bound < 0.5
    assert missed <= binom.ppf(0.999, DRAWS, 0.2)


# -- numbers ---------------------------------------------------------------------------------------


def test_the_certificate_of_numbers_is_on_the_truncated_error():
    X, y = uneven()
    model = CertifiedBoostedTreesRegressor(**SHORT).fit(X, y)
    train, judge = sides(600)
    plain = BoostedTreesRegressor(**SHORT).fit(X[train], y[train])
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    one = model.certificate_
    off = np.minimum(np.abs(y[judge] - plain.predict(X[judge])), one.unit)
    assert one.risk == pytest.approx(off.mean())
    expected = bounds.occam_mean(off.mean() / one.unit, 300, 0.0, np.log(0.05))
    assert one.bound == pytest.approx(one.unit * expected)
    assert model.certify() == one
    assert model.certify(delta=0.2).bound < one.bound
    X_new, y_new = uneven(seed=1)
    of_new = model.certify(X_new, y_new)
    off = np.minimum(np.abs(y_new - model.predict(X_new)), one.unit)
    assert of_new.risk == pytest.approx(off.mean())
    assert (of_new.n, of_new.unit, of_new.repeats) == (600, one.unit, None)
    with pytest.raises(ValueError, match="X and y must be passed together"):
        model.certify(X_new)
    with pytest.raises(ValueError, match="600 of 1,200 rows that certify repeat other rows"):
        model.certify(np.vstack([X_new, X_new]), np.append(y_new, y_new))


def test_a_single_tree_is_certified_by_new_rows_alike():
    X, y = uneven()
    model = certree.CertifiedTreeRegressor(random_state=0).fit(X, y)
    X_new, y_new = uneven(seed=1)
    off = np.minimum(np.abs(y_new - model.predict(X_new)), model.certificate_.unit)
    assert model.certify(X_new, y_new).risk == pytest.approx(off.mean())
    assert model.certify(delta=0.01) == model.certificate_.at(0.01)


def test_bands_hold_and_follow_the_noise():
    X, y = uneven(2000)
    X_new, y_new = uneven(20_000, seed=1)
    widths = {}
    for name in ("one", "scaled"):
        model = CertifiedBoostedTreesRegressor(widths=name, quality="fast", random_state=0).fit(
            X, y
        )
        low, high = model.predict_interval(X_new).T
        held = np.mean((low <= y_new) & (y_new <= high))
        assert 0.88 < held < 0.94
        quiet = X_new[:, 0] < 0.9
        widths[name] = (high - low)[quiet].mean()
        (band,) = model.certify_interval()
        assert band == model.certificates_[1]
        assert band.bound <= 0.1 * (1 + 1e-9)
    assert widths["scaled"] < 0.5 * widths["one"]


def test_the_least_width_is_a_part_of_the_mean_error():
    X, y = uneven()
    y[X[:, 0] <= 1] = 0.0
    model = CertifiedBoostedTreesRegressor(**{**SHORT, "max_iter": 100}).fit(X, y)
    limit, mean = model.certificate_.unit, np.abs(y - model.predict(X)).mean()
    assert 0.5 < model.least_scale_ / (LEAST_SCALE * mean) < 2
    assert model.least_scale_ < limit
    assert (model._compute_scale(X) == model.least_scale_).any()


def test_intervals_keep_their_guarantee():
    missed = 0
    for seed in range(DRAWS):
        X, y = uneven(160, seed)
        model = CertifiedBoostedTreesRegressor(
            coverage=0.8, delta=0.2, quality="fast", max_iter=5, random_state=seed
        ).fit(X, y)
        X_new, y_new = uneven(4000, 10**6 + seed)
        low, high = model.predict_interval(X_new).T
        missed += np.mean((low <= y_new) & (y_new <= high)) < 0.8 - 0.01
    assert missed <= binom.ppf(0.999, DRAWS, 0.2)


def test_numbers_of_groups_have_no_bands():
    X, y = uneven()
    model = CertifiedBoostedTreesRegressor(**SHORT).fit(X, y, groups=np.arange(600) // 3)
    assert model.certificate_.grouped
    assert model.certificates_ == (model.certificate_,)
    with pytest.raises(ValueError, match="rows of this fit came in groups"):
        model.predict_interval(X)


@pytest.mark.parametrize(
    "loss", ["absolute_error", "gamma", "quantile", "huber", "poisson", "tweedie"]
)
def test_other_losses_are_certified_by_their_absolute_error(loss):
    X, y = uneven()
    y = np.exp(y)
    model = CertifiedBoostedTreesRegressor(loss, **SHORT).fit(X, y)
    _, judge = sides(600)
    off = np.minimum(np.abs(y[judge] - model.predict(X[judge])), model.certificate_.unit)
    assert model.certificate_.risk == pytest.approx(off.mean())
    assert (np.diff(model.predict_interval(X)) > 0).all()


def test_a_constant_target_has_bands_and_a_bound():
    X = np.arange(100.0)[:, None]
    model = CertifiedBoostedTreesRegressor(**SHORT).fit(X, np.full(100, 3.0))
    np.testing.assert_allclose(model.predict_interval(X), 3.0, rtol=1e-9)
    assert model.certificate_.risk == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("widths", ["one", "scaled"])
def test_files_of_numbers_answer_alike(widths, tmp_path):
    X, y = uneven()
    model = CertifiedBoostedTreesRegressor(widths=widths, **SHORT).fit(X, y)
    certree.save(model, tmp_path / "model")
    loaded = certree.load(tmp_path / "model")
    assert loaded.certificates_ == model.certificates_
    np.testing.assert_array_equal(loaded.predict_interval(X, 0.7), model.predict_interval(X, 0.7))
    assert loaded.certify(*uneven(seed=1)) == model.certify(*uneven(seed=1))


# -- what users rely on ----------------------------------------------------------------------------


def expected_failures(_):
    return {
        "check_sample_weight_equivalence_on_dense_data": "rows are dealt by their numbers",
        "check_sample_weight_equivalence_on_sparse_data": "rows are dealt by their numbers",
    }


@pytest.mark.filterwarnings("ignore:.* rows that certify repeat other rows:UserWarning")
@parametrize_with_checks(
    # Of rows that are dealt anew a class of few may be on one side alone.
    [
        CertifiedBoostedTreesClassifier(max_iter=5, random_state=0),
        CertifiedBoostedTreesRegressor(max_iter=60, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [CertifiedBoostedTreesClassifier, CertifiedBoostedTreesRegressor])
@pytest.mark.parametrize(
    ("parameter", "value"),
    [("train_size", 0.0), ("train_size", 1), ("delta", 0), ("duplicates", "drop")],
)
def test_bad_parameters_are_refused(kind, parameter, value):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=parameter):
        kind(**{parameter: value}).fit(X, y)


def test_threads_change_nothing():
    X, y = noisy(400)
    one, two = (CertifiedBoostedTreesClassifier(**SHORT, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.certificate_ == two.certificate_
