"""Fits and certificates of rows in time order, of every kind of estimator."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certree
import reference
from certree.certificates import hold_out
from certree.certificates.certificate import restore_certificate
from certree.certificates.methods import get_period_method
from certree.ensembles.forest_samples import ForestSamples
from certree.rows.training import training_rows
from certree.weights.node_weights import map_pruning

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
SCORE = X[:, 0] + 0.5 * RNG.normal(size=N)
Y = (SCORE > 0).astype(int)
DAYS = pd.date_range("2026-01-05 12:00", periods=N // 2, freq="D", tz="Europe/Zurich").repeat(2)
CLASSIFIERS = [certree.CertifiedTreeClassifier, certree.CertifiedBoostedTreesClassifier]
FOREST = certree.CertifiedForestClassifier
REGRESSORS = [certree.CertifiedTreeRegressor, certree.CertifiedBoostedTreesRegressor]
CERTIFIED = [*CLASSIFIERS, FOREST, *REGRESSORS]
OTHERS = [
    *(certree.PrunedTreeClassifier, certree.PrunedTreeRegressor),
    *(certree.PACBayesTreeClassifier, certree.HelmboldSchapireTreeClassifier),
    *(certree.BoostedTreesClassifier, certree.BoostedTreesRegressor),
    *(certree.TreeForestClassifier, certree.TreeForestRegressor),
]


def get_target(kind):
    return SCORE if kind.__name__.endswith("Regressor") else Y


def make(kind):
    quick = {"max_iter": 20} if kind is certree.CertifiedBoostedTreesRegressor else {}
    quick = {"n_estimators": 20} if "Forest" in kind.__name__ else quick
    return kind(random_state=0, **quick) if "random_state" in kind().get_params() else kind()


@pytest.mark.parametrize("kind", CERTIFIED)
def test_certificates_name_the_period_and_its_dependence(kind, tmp_path):
    model = make(kind).fit(X, get_target(kind), time=DAYS, gap=10)
    one = model.certificate_
    n = round(N * (0.5 if kind in REGRESSORS else 0.35))
    assert one.n == n
    assert one.method.endswith("_period")
    assert one.period.first == f"{DAYS[-n]:%-d %B %Y}"
    assert f"{n} calibration rows from {one.period.first} to 23 July 2026, which may depend" in str(
        one
    )
    assert "does not exceed that of this period (drift 0)" in str(one)
    assert any("does not exceed that of the period" in text for text in one.assumptions)
    certree.save(model, tmp_path / "model")
    assert certree.load(tmp_path / "model").certificate_ == one
    independent = make(kind).fit(X, get_target(kind), time=DAYS, gap=10, independent=True)
    two = independent.certificate_
    assert independent.predict(X).tobytes() == model.predict(X).tobytes()
    assert one.risk == two.risk
    assert one.risk < two.bound < one.bound
    assert not two.method.endswith("_period")
    assert "taken as independent" in str(two)
    certree.save(independent, tmp_path / "model")
    assert certree.load(tmp_path / "model").certificate_ == two


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_other_guarantees_need_independent_rows(kind):
    model = make(kind).fit(X, Y, time=DAYS)
    for call in (
        model.guarantees_.conditional_guarantees,
        model.guarantees_.thresholds,
        lambda: model.predict_set(X[:2]),
    ):
        with pytest.raises(ValueError, match="rows in time order may depend on each other"):
            call()
    family = (
        make(kind).fit(X, Y, time=DAYS, independent=True).conditional_guarantees("recall").recall
    )
    assert family.worst.period.is_independent
    assert "later rows of class" in str(family.worst)
    if kind is certree.CertifiedTreeClassifier:
        assert [one.method for one in model.certificates_] == ["occam_period"] * 2
        assert "thresholds()" not in model.report()


@pytest.mark.parametrize("kind", REGRESSORS)
def test_intervals_need_independent_rows(kind):
    model = make(kind).fit(X, SCORE, time=DAYS)
    assert len(model.certificates_) == 1
    with pytest.raises(ValueError, match="fit with independent=True if rows of one period do not"):
        model.predict_interval(X[:2])
    assert make(kind).fit(X, SCORE, time=DAYS, independent=True).predict_interval(X[:2]).shape == (
        2,
        2,
    )


@pytest.mark.parametrize("kind", [*CERTIFIED, *OTHERS])
def test_the_order_of_the_table_does_not_matter(kind):
    order = RNG.permutation(N)
    first = make(kind).fit(X, get_target(kind), time=DAYS)
    second = make(kind).fit(X[order], get_target(kind)[order], time=DAYS[order])
    assert first.predict(X).tobytes() == second.predict(X).tobytes()
    if kind in CERTIFIED:
        assert first.certificate_ == second.certificate_


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_split_depends_on_times_alone(kind):
    model = make(kind).fit(X, Y, time=DAYS)
    noise = make(kind).fit(X, RNG.permutation(Y), time=DAYS)
    assert model.calibration_.given.tolist() == [*range(260, 400)]
    assert noise.calibration_.given.tolist() == model.calibration_.given.tolist()
    assert model.train_size_ == noise.train_size_ == 0.65


def test_groups_are_counted_in_their_period():
    groups = np.arange(N) // 4
    one = (
        certree.CertifiedTreeClassifier(random_state=0)
        .fit(X, Y, groups=groups, time=DAYS)
        .certificate_
    )
    assert (one.n, one.grouped, one.method) == (35, True, "occam_period")
    assert "error on later groups, the mean over groups" in str(one)
    spanning = np.where(np.arange(N) < 3, groups[-1], groups)
    model = certree.CertifiedTreeClassifier(random_state=0).fit(X, Y, groups=spanning, time=DAYS)
    words = f"groups of calibration rows whose latest rows are from {one.period.first} to "
    assert words in str(model.certificate_)
    assert f"groups of rows {words[27:]}" in model.certificate_.assumptions[0]
    new = certree.certify(model, X + 0.01, Y, groups=spanning, time=DAYS)
    assert (
        new.period.first == "6 January 2026"
    )  # the first row of all, of 5 January, is not the latest
    two = certree.CertifiedTreeClassifier(random_state=0)
    two.fit(X, Y, groups=groups, time=DAYS, independent=True)
    assert two.certificate_.method == "occam_mean"


def test_rounds_and_prunings_are_chosen_by_the_latest_rows():
    # A rule that held at first and no longer does.
    time = np.arange(N)
    y = np.where(time < 250, X[:, 0] > 0, RNG.random(N) < 0.5).astype(int)
    chosen = certree.BoostedTreesClassifier(random_state=0).fit(X, y, time=time)
    assert chosen.n_iter_ < certree.BoostedTreesClassifier(random_state=0).fit(X, y).n_iter_
    stopped = certree.BoostedTreesClassifier(early_stopping=True, random_state=0, max_iter=30)
    assert len(stopped.fit(X, y, time=time).validation_score_) > 1


FOREST_TARGETS = [(certree.TreeForestClassifier, Y), (certree.TreeForestRegressor, SCORE)]


@pytest.mark.parametrize(("kind", "target"), FOREST_TARGETS)
@pytest.mark.parametrize("gap", [0, 5])
@pytest.mark.parametrize("has_groups", [False, True])
def test_out_of_bag_rows_are_predicted_by_earlier_bags(kind, target, gap, has_groups):
    n, n_trees = 60, 12
    few, y, days = X[:n], target[:n], DAYS[:n]
    groups = (np.arange(n) * 7 % 50) // 2 if has_groups else None
    model = kind(n_trees, oob_score=True, leaves="shrunk", random_state=0)
    how = {"groups": groups, "time": days, "gap": gap}
    model.fit(few, y, **how)
    rows = ForestSamples.from_training(clone(model)._prepare_training(few, y, **how))
    grower, of_row = model._create_grower(rows), rows.input_index
    draws = np.array([grower.count_draws(number) for number in range(n_trees)])
    known_groups = None if groups is None else groups[of_row]
    day = days.day_of_year.to_numpy()[of_row]
    blocks = reference.number_time_blocks(day, known_groups, 10, gap)
    assert rows.group.tolist() == blocks[0]
    predicts = np.array(reference.find_rows_after_bags(draws, *blocks, 2))
    total, n_votes = reference.sum_out_of_bag_predictions(
        *([*model.trees_], rows.features.X, rows.targets, rows.get_weights(), draws),
        *("in_bag", 1.0, [1], predicts),
    )
    has_votes, expected = n_votes > 0, np.full(n, np.nan)
    expected[of_row[has_votes]] = total[has_votes, 0] / n_votes[has_votes]
    is_class = kind is certree.TreeForestClassifier
    found = model.oob_decision_function_[:, 1] if is_class else model.oob_prediction_
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert 0.05 * n < np.isfinite(found).sum() <= 0.3 * n
    with pytest.raises(ValueError, match="time and gap must be those of the fit"):
        model.out_of_bag_importances(few, y, groups=groups, time=days[::-1], gap=gap)
    assert model.out_of_bag_importances(few, y, **how).argmax() == 0


def test_out_of_bag_errors_in_time_order_are_those_of_later_rows():
    # The rule changes with each of the 40 blocks of 50 rows, and x names the block to the forest.
    rng = np.random.default_rng(0)
    n = 2200
    number = np.arange(n) // 50
    X, rule = rng.normal(size=(n, 2)), rng.random(44) < 0.3
    X[:, 1] = number + 0.1 * rng.normal(size=n)
    y = ((X[:, 0] > 0) ^ rule[number]).astype(int)
    early = slice(0, 2000)
    errors = []
    for time in (None, np.arange(2000)):
        model = certree.TreeForestClassifier(oob_score=True, random_state=0)
        errors.append(1 - model.fit(X[early], y[early], time=time).oob_score_)
    later = np.mean(model.predict(X[2000:]) != y[2000:])
    assert errors[0] < 0.1
    assert errors[1] > 0.2
    assert later > 0.2
    assert model.leaves_.filled_by == "in_bag"


def test_forests_refuse_times_where_no_bag_is_earlier():
    kind = certree.TreeForestClassifier
    with pytest.raises(ValueError, match="time must be None with bootstrap=False"):
        kind(bootstrap=False).fit(X, Y, time=DAYS)
    for leaves in ("refilled", "honest"):
        with pytest.raises(
            ValueError, match='leaves must be "auto", "plain" or "shrunk" with time'
        ):
            kind(leaves=leaves).fit(X, Y, time=DAYS)
    with pytest.raises(ValueError, match="`max_samples` must be <= n_samples=10"):
        kind(max_samples=11).fit(X, Y, time=DAYS)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        assert np.isnan(kind(3, oob_score=True).fit(X, Y, time=DAYS, gap=N).oob_score_)


def test_warm_starts_of_forests_keep_their_times():
    kind = certree.TreeForestClassifier
    model = kind(5, warm_start=True, oob_score=True, random_state=0).fit(X, Y, time=DAYS)
    model.set_params(n_estimators=20).fit(X, Y, time=DAYS)
    whole = kind(20, oob_score=True, random_state=0).fit(X, Y, time=DAYS)
    assert model.oob_score_ == whole.oob_score_
    assert model.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()
    for time, gap in ((DAYS[::-1], 0), (DAYS, N // 5)):
        with pytest.raises(ValueError, match="time or gap are not those of that fit"):
            model.fit(X, Y, time=time, gap=gap)
    with pytest.raises(ValueError, match="time and gap must be those of the fit"):
        model.out_of_bag_importances(X, Y, time=DAYS, gap=N // 5)


def test_certified_forests_train_and_choose_by_earlier_rows():
    model = make(FOREST).fit(X, Y, time=DAYS)
    assert len(model.certificates_) == 1
    wrong = model.predict(X[260:]) != Y[260:]
    assert model.certificate_.risk == wrong.mean()
    # Labels of the calibration rows change the certificate alone.
    other = np.concatenate([Y[:260], 1 - Y[260:]])
    second = make(FOREST).fit(X, other, time=DAYS)
    assert second.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert second.certificate_.risk == 1 - model.certificate_.risk
    third = np.where(np.arange(N) >= 390, 2, Y)  # a class that no training row has
    assert make(FOREST).fit(X, third, time=DAYS).certificate_.risk >= 10 / 140


def test_any_classifier_is_certified_by_a_later_period():
    model = LogisticRegression().fit(X[:200], Y[:200])
    one = certree.certify(model, X[200:], Y[200:], time=DAYS[200:])
    assert (one.method, one.n) == ("hold_out_period", 200)
    assert one.bound == one.at(0.05).bound < one.at(0.01).bound
    two = certree.certify(model, X[200:], Y[200:], time=DAYS[200:], independent=True)
    assert two.bound == hold_out(round(200 * two.risk), 200).bound
    assert two.nearby(total_variation=0.1).bound == pytest.approx(two.bound + 0.1)
    frame = pd.DataFrame({"day": DAYS[200:]}, index=range(200)).assign(x=1.0)
    tree = certree.PrunedTreeClassifier().fit(frame.assign(x=X[:200, 0]), Y[:200])
    assert (
        certree.certify(tree, frame.assign(x=X[200:, 0]), Y[200:], time="day").period == one.period
    )
    with pytest.raises(ValueError, match="got equal times of 200 rows"):
        certree.certify(model, X[200:], Y[200:], time=np.ones(200))


def test_guarantees_of_a_later_period_name_it():
    model = LogisticRegression().fit(X[:200], Y[:200])
    rows = model, X[200:], Y[200:]
    found = certree.certificates.Guarantees.by_rows(*rows, time=DAYS[200:])
    assert found.certificate == certree.certify(*rows, time=DAYS[200:])
    with pytest.raises(ValueError, match="pass independent=True with time if rows of one period"):
        found.thresholds()
    found = certree.certificates.Guarantees.by_rows(*rows, time=DAYS[200:], independent=True)
    assert found.certificate.period.is_independent
    assert str(found.thresholds()).startswith("With probability at least 95 %")


def test_fitted_models_are_certified_by_a_later_period():
    later = X + 0.01
    for kind in CERTIFIED:
        model = make(kind).fit(X, get_target(kind))
        one = model.certify(later, get_target(kind), time=DAYS)
        assert one.method in ("hold_out_period", "absolute_error_period")
        with pytest.raises(ValueError, match="describe new rows: pass X and y"):
            model.certify(time=DAYS)


def test_a_drift_is_added_to_the_bound():
    one = certree.CertifiedTreeClassifier(random_state=0).fit(X, Y, time=DAYS).certificate_
    drifted = one.nearby(drift=0.02)
    assert drifted.bound == pytest.approx(one.bound + 0.02)
    assert "exceeds that of this period by at most 2.0 % (drift)" in str(drifted)
    assert drifted.at(0.01).bound == pytest.approx(one.at(0.01).bound + 0.02)
    with pytest.raises(ValueError, match="drift must be passed for rows in time order"):
        one.nearby(kl=0.1)
    with pytest.raises(ValueError, match="exactly one of"):
        one.nearby(drift=0.1, kl=0.1)
    with pytest.raises(ValueError, match=r"drift must lie in 0 \.\. 1"):
        one.nearby(drift=2)
    with pytest.raises(
        ValueError, match="drift must be None if the calibration rows have no times"
    ):
        hold_out(3, 100).nearby(drift=0.1)
    model = certree.CertifiedTreeRegressor(random_state=0).fit(X, SCORE, time=DAYS)
    of_numbers = model.certificate_
    assert of_numbers.nearby(drift=0.25).bound == pytest.approx(of_numbers.bound + 0.25)
    assert "by at most 0.25 (drift)" in str(of_numbers.nearby(drift=0.25))


def test_methods_for_independent_rows_are_refused():
    model = certree.CertifiedTreeClassifier(random_state=0).fit(X, Y, time=DAYS)
    with pytest.raises(ValueError, match="got 'occam_pruning', which needs independent rows"):
        model.certify_pruning(map_pruning(model.tree_, model.weights_))
    with pytest.raises(ValueError, match="got 'gibbs_kl', which needs independent rows"):
        get_period_method("gibbs_kl")
    entries = certree.certificates.certificate._store_certificate(model.certificate_)
    with pytest.raises(ValueError, match="'occam_vote' needs independent rows"):
        restore_certificate(entries | {"method": "occam_vote"})
    # Files of earlier versions hold no period.
    old = certree.certificates.certificate._store_certificate(hold_out(3, 100))
    assert "period" not in old
    assert restore_certificate(old).period is None


def test_grids_refuse_times():
    grid = certree.Grid([[-9] * 3, [9] * 3])
    with pytest.raises(ValueError, match="time must be None for grower=Grid"):
        certree.CertifiedTreeClassifier(grid).fit(X, Y, classes=[0, 1], time=DAYS)


def record_times(action):
    """Return targets and times of every fit of certree while `action` runs."""
    seen = []

    def read(model, X, y, *rest, **how):
        seen.append((np.asarray(y), how.get("time"), how.get("gap")))
        return training_rows(model, X, y, *rest, **how)

    with patch("certree.rows.training.training_rows", read):
        action()
    return seen


def test_times_pass_through_pipelines_and_searches():
    number = np.arange(N)
    with sklearn.config_context(enable_metadata_routing=True):
        tree = certree.PrunedTreeRegressor().set_fit_request(time=True, gap=True)
        pipeline = make_pipeline(StandardScaler(), tree)
        grid = {"prunedtreeregressor__max_depth": [2, 3]}
        actions = {
            1: lambda: pipeline.fit(X, SCORE, time=number, gap=5),
            7: lambda: GridSearchCV(pipeline, grid, cv=3).fit(X, SCORE, time=number, gap=5),
            3: lambda: cross_validate(pipeline, X, SCORE, cv=3, params={"time": number, "gap": 5}),
        }
        for n_fits, action in actions.items():
            seen = record_times(action)
            assert len(seen) == n_fits
            for y, time, gap in seen:
                assert gap == 5
                assert (SCORE[time] == y).all()
        certified = certree.CertifiedTreeClassifier(random_state=0)
        certified.set_fit_request(time=True, independent=True)
        search = GridSearchCV(certified, {"max_depth": [2, 3]}, cv=2)
        search.fit(X, Y, time=DAYS, independent=True)
        assert search.best_estimator_.certificate_.period.is_independent
