"""Scores of boosting after each round, early stopping, and callbacks."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    make_scorer,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
    mean_tweedie_deviance,
    roc_auc_score,
)

import reference
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    _core,
    certify,
    load,
    save,
)
from certree.ensembles import evaluation, scored_sample
from certree.ensembles.rounds import advance
from certree.rows.features import DenseFeatures
from certree.rows.split import TrainCalibrationSplit
from certree.rows.training import Training
from weight_units import expect_no_unit

STOPS = {"early_stopping": True, "max_iter": 60, "n_iter_no_change": 5, "random_state": 0}
LOSSES = ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]


def noisy(n=400, n_classes=2, seed=0):
    """Rows of noisy classes, with a missing value here and there and a feature of few values."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5))
    level = X[:, 0] * X[:, 1] + X[:, 2] + random.normal(size=n)
    X[random.random(X.shape) < 0.03] = np.nan
    X[:, 4] = random.integers(0, 4, n)
    return X, np.searchsorted(np.quantile(level, np.arange(1, n_classes) / n_classes), level)


def numbers(n=400, seed=0):
    X, y = make_friedman1(n, noise=2.0, random_state=seed)
    return X, np.abs(y) + 0.1


def parts_of(model, X, y, sample_weight=None):
    """Return the training rows of a fit, and those that it holds out."""
    training = model._prepare_training(X, y, sample_weight)
    seed = int(np.random.RandomState(model.random_state).randint(2**31 - 1))
    return training.hold_out_rows(model.validation_fraction, np.random.RandomState(seed))


# -- the loss --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["two", "three", *LOSSES])
def test_rounds_stop_as_a_loop_over_single_fits_does(loss):
    X, y = noisy(n_classes=3 if loss == "three" else 2) if loss in ("two", "three") else numbers()
    kind = BoostedTreesClassifier if loss in ("two", "three") else BoostedTreesRegressor
    options = {} if kind is BoostedTreesClassifier else {"loss": loss}
    model = kind(**STOPS, **options, learning_rate=0.3).fit(X, y)
    trains, judges = parts_of(clone(model), X, y)
    of = model._make_loss()

    def scores_after(n_rounds, rows):
        if n_rounds == 0:
            one = kind(random_state=0, max_iter=1, learning_rate=0.3, **options).fit(
                *of_rows(trains)
            )
            start = np.repeat(one.start_[:, None], len(rows.y), axis=1)
            return one.trees_.add(start, rows.X, 1, 0, one._n_first_trees)
        one = kind(random_state=0, max_iter=n_rounds, learning_rate=0.3, **options)
        return one.fit(*of_rows(trains))._compute_scores(rows.X)

    def score(n_rounds, rows=judges):
        return -np.mean(
            reference.compute_losses(of.name, of.parameter, rows.y, scores_after(n_rounds, rows))
        )

    expected, kept = reference.stop_early(score, 60, 5, 1e-7)
    np.testing.assert_allclose(model.validation_score_, expected, rtol=1e-9)
    assert model.n_iter_ == kept == len(model.trees_) - model._n_first_trees
    trained = [score(t, trains) for t in range(len(expected))]
    np.testing.assert_allclose(model.train_score_, trained, rtol=1e-9)
    whole = kind(random_state=0, max_iter=kept, learning_rate=0.3, **options).fit(*of_rows(trains))
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    np.testing.assert_array_equal(model.feature_importances_, whole.feature_importances_)


def of_rows(rows):
    return rows.X, rows.y, rows.weight


@given(
    st.lists(
        st.floats(-2, 2) | st.sampled_from([0.0, 0.5, np.inf, -np.inf]), min_size=2, max_size=30
    ),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.integers(1, 6),
)
def test_gains_are_those_of_the_reference(scores, tol, n):
    made, _ = reference.stop_early(scores.__getitem__, len(scores) - 1, n, tol)
    without = [
        _core.count_rounds_without_gain(np.array(scores[: t + 1]), tol) for t in range(len(scores))
    ]
    stops = [t for t, one in enumerate(without) if one >= n]
    assert len(made) == (stops[0] + 1 if stops else len(scores))


def test_longer_patience_stops_no_earlier_and_serves_no_worse():
    X, y = noisy()
    made, best = [], []
    for n in (1, 2, 4, 8, 16):
        model = BoostedTreesClassifier(
            early_stopping=True, n_iter_no_change=n, max_iter=80, random_state=0
        ).fit(X, y)
        made.append(len(model.validation_score_))
        best.append(model.validation_score_.max())
        assert model.n_iter_ == model.validation_score_[1:].argmax() + 1
        assert made[-1] - 1 <= 80
    assert made == sorted(made)
    assert best == sorted(best)
    assert made[0] < made[-1]
    eager = BoostedTreesClassifier(**{**STOPS, "tol": 10.0}).fit(X, y)
    assert len(eager.validation_score_) == 6  # no gain is large enough
    assert eager.n_iter_ == eager.validation_score_[1:].argmax() + 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_the_stages(n_classes, weighted):
    X, y = noisy(n_classes=n_classes)
    weight = np.random.default_rng(1).uniform(0, 2, (2, 400)) if weighted else (None, None)
    X_val, y_val = noisy(n_classes=n_classes, seed=1)
    model = BoostedTreesClassifier(max_iter=8, random_state=0)
    plain = clone(model).fit(X, y, weight[0])
    assert not hasattr(plain, "validation_score_")
    assert not hasattr(plain, "train_score_")
    model.fit(X, y, weight[0], X_val=X_val, y_val=y_val, sample_weight_val=weight[1])
    # A set that is only scored has no part in the fit.
    np.testing.assert_array_equal(plain.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(plain.sample_hashes_, model.sample_hashes_)
    for rows, target, weights, scores in (
        (X, y, weight[0], model.train_score_),
        (X_val, y_val, weight[1], model.validation_score_),
    ):
        found = [
            log_loss(target, p, sample_weight=weights) for p in model.staged_predict_proba(rows)
        ]
        np.testing.assert_allclose(scores[1:], np.negative(found))
        assert len(scores) == 9
    if not weighted:
        counts = np.bincount(y) + 0.5
        start = np.repeat([counts / counts.sum()], 400, axis=0)
        assert model.train_score_[0] == pytest.approx(-log_loss(y, start))
        assert model.validation_score_[0] == pytest.approx(-log_loss(y_val, start))


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
def test_scores_of_numbers_are_those_of_the_stages(loss):
    X, y = numbers(1200)
    model = BoostedTreesRegressor(loss, max_iter=6, random_state=0).fit(
        X[:1100], y[:1100], X_val=X[1100:], y_val=y[1100:]
    )
    metric = {
        "squared_error": mean_squared_error,
        "poisson": mean_poisson_deviance,
        "tweedie": partial(mean_tweedie_deviance, power=1.5),
        "gamma": mean_gamma_deviance,
    }[loss]
    said = [np.full(100, y[:1100].mean()), *model.staged_predict(X[1100:])]
    found = [metric(y[1100:], one) / 2 for one in said]
    np.testing.assert_allclose(-model.validation_score_, found)


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.6, 57])
def test_an_evaluation_set_is_what_held_out_rows_are(fraction):
    X, y = noisy(n_classes=3)
    model = BoostedTreesClassifier(**STOPS, validation_fraction=fraction).fit(X, y)
    trains, judges = parts_of(clone(model), X, y)
    n_held = fraction if fraction == 57 else int(np.ceil(400 * fraction))
    assert (len(trains.y), len(judges.y)) == (400 - n_held, n_held)
    # As many of each class as of all.
    counts = np.bincount(judges.y)
    assert np.abs(counts - np.bincount(y) * n_held / 400).max() < 1
    by_hand = clone(model).fit(trains.X, trains.y, X_val=judges.X, y_val=judges.y)
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))
    np.testing.assert_array_equal(model.validation_score_, by_hand.validation_score_)
    np.testing.assert_array_equal(model.train_score_, by_hand.train_score_)
    # Rows that have chosen the rounds are known, wherever they came from.
    np.testing.assert_array_equal(model.sample_hashes_, by_hand.sample_hashes_)
    with pytest.raises(ValueError, match="rows"):
        certify(by_hand, judges.X, judges.y)


def test_training_rows_may_be_the_validation_set():
    X, y = noisy()
    model = BoostedTreesClassifier(**STOPS, validation_fraction=None).fit(X, y)
    assert not hasattr(model, "validation_score_")
    whole = BoostedTreesClassifier(max_iter=60, random_state=0).fit(X, y)
    assert model.n_iter_ == 60  # the loss of the rows that train falls for long
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    eager = BoostedTreesClassifier(**{**STOPS, "tol": 0.1}, validation_fraction=None).fit(X, y)
    assert eager.n_iter_ == len(eager.train_score_) - 1 < 60


def test_auto_stops_from_many_rows_on(monkeypatch):
    X, y = noisy()
    monkeypatch.setattr(evaluation, "_MANY_ROWS", 399)
    model = BoostedTreesClassifier(**{**STOPS, "early_stopping": "auto"})
    stopped = BoostedTreesClassifier(**STOPS).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).validation_score_, stopped.validation_score_)
    # A row of weight 2 is one of them, and one of weight 0 none.
    assert not hasattr(model.fit(X[1:], y[1:]), "validation_score_")
    assert not hasattr(model.fit(X[1:], y[1:], np.append(np.ones(398), 2)), "validation_score_")
    assert hasattr(model.fit(X, y, np.full(400, 0.1)), "validation_score_")
    assert not hasattr(model.fit(X, y, np.append(np.ones(399), 0)), "validation_score_")


def test_early_stopping_takes_the_place_of_cross_validation():
    X, y = noisy()
    model = BoostedTreesClassifier(early_stopping=True, random_state=0).fit(X, y)
    assert model.n_iter_ + 10 == len(model.validation_score_) - 1 < 1600
    assert model.n_iter_ == model.validation_score_[1:].argmax() + 1
    longest = {"n_iter_no_change": 10**6, "learning_rate": 0.5, "max_leaf_nodes": 2}
    for quality, most in (("fast", 200), ("default", 1600)):
        model = BoostedTreesClassifier(
            quality=quality, early_stopping=True, random_state=0, **longest
        )
        assert len(model.fit(X[:80], y[:80]).validation_score_) == most + 1


# -- relations -------------------------------------------------------------------------------------


@pytest.mark.threads
@pytest.mark.parametrize("scoring", ["loss", "neg_log_loss"])
def test_neither_the_order_of_rows_nor_threads_matter(scoring):
    X, y = noisy()
    model = BoostedTreesClassifier(**STOPS, scoring=scoring, n_jobs=1).fit(X, y)
    order = np.random.default_rng(0).permutation(400)
    other = clone(model).set_params(n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    for name in ("train_score_", "validation_score_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))


@pytest.mark.parametrize("scoring", ["loss", "accuracy"])
def test_a_row_is_held_out_as_a_whole_and_its_weight_has_no_unit(scoring):
    X, y = noisy(200)
    weight = np.random.default_rng(0).integers(0, 4, 200).astype(float)
    there = weight > 0
    model = BoostedTreesClassifier(**STOPS, scoring=scoring)
    train, held = parts_of(model, X, y, weight)
    assert len(held.y) == round(0.1 * there.sum())
    rows, sides = np.column_stack([X, weight])[there], [train, held]
    given = np.concatenate([np.column_stack([one.X, one.weight]) for one in sides])
    np.testing.assert_array_equal(*(one[np.lexsort(one.T)] for one in (rows, given)))

    def told(weight):
        fitted = clone(model).fit(X, y, weight)
        return np.append(fitted.predict_proba(X), fitted.validation_score_)

    expect_no_unit(told, weight)
    alone = clone(model).fit(X[there], y[there], weight[there])
    expected = np.append(alone.predict_proba(X), alone.validation_score_)
    np.testing.assert_array_equal(told(weight), expected)


@pytest.mark.parametrize("scoring", ["loss", "accuracy"])
def test_weights_of_validation_rows_are_copies(scoring):
    X, y = noisy(200)
    weight = np.random.default_rng(0).integers(0, 4, 200).astype(float)
    copies = np.repeat(np.arange(200), weight.astype(int))
    model = BoostedTreesClassifier(**STOPS, scoring=scoring)
    other = clone(model)
    X_val, y_val = noisy(200, seed=1)
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": weight}
    model.fit(X, y, **given)
    other.fit(X, y, X_val=X_val[copies], y_val=y_val[copies])
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    np.testing.assert_allclose(model.validation_score_, other.validation_score_)
    y_val[weight == 0] = 1 - y_val[weight == 0]
    X_val[weight == 0] = 7.0
    other.fit(X, y, **given)
    np.testing.assert_array_equal(model.validation_score_, other.validation_score_)
    # Their unit means nothing.
    model.fit(X, y, **{**given, "sample_weight_val": 1e200 * weight})
    np.testing.assert_allclose(model.validation_score_, other.validation_score_)


def test_weights_of_classes_count_in_scores():
    X, y = noisy()
    X_val, y_val = noisy(seed=1)
    model = BoostedTreesClassifier(**STOPS, class_weight={0: 1.0, 1: 3.0})
    model.fit(X, y, X_val=X_val, y_val=y_val)
    weighted = BoostedTreesClassifier(**STOPS).fit(
        X, y, 1.0 + 2 * y, X_val=X_val, y_val=y_val, sample_weight_val=1.0 + 2 * y_val
    )
    np.testing.assert_array_equal(model.validation_score_, weighted.validation_score_)


def test_whole_groups_are_held_out():
    X, y = noisy(90)
    groups = np.repeat(np.arange(30), 3)
    sides = replace(TrainCalibrationSplit.train_on_all(90), groups=groups)
    rows = Training(DenseFeatures((X,)), y.astype(np.int32), None, sides)
    trains, judges = rows.hold_out_rows(0.2, np.random.RandomState(0))
    held = np.unique(judges.split.groups)
    assert len(held) == 6
    assert set(held) | set(trains.split.groups) == set(range(30))
    assert not set(held) & set(trains.split.groups)
    one = replace(rows, split=replace(rows.split, groups=np.zeros(90)))
    with pytest.raises(ValueError, match="n_samples=1 groups"):
        one.hold_out_rows(0.2, np.random.RandomState(0))


def test_a_warm_start_goes_on_as_one_longer_fit():
    X, y = noisy()
    X_val, y_val = noisy(seed=1)
    options = {**STOPS, "n_iter_no_change": 7, "learning_rate": 0.2}
    for judges in ({}, {"X_val": X_val, "y_val": y_val}):
        whole = BoostedTreesClassifier(**options).fit(X, y, **judges)
        assert 7 < whole.n_iter_ < 53
        for first in (1, 5, whole.n_iter_, whole.n_iter_ + 3):
            model = BoostedTreesClassifier(**{**options, "max_iter": first}, warm_start=True)
            model.fit(X, y, **judges)
            assert model.n_iter_ <= first
            model.set_params(max_iter=60).fit(X, y, **judges)
            assert model.n_iter_ == whole.n_iter_
            np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
            np.testing.assert_array_equal(model.validation_score_, whole.validation_score_)
            np.testing.assert_array_equal(model.train_score_, whole.train_score_)
    # What rounds before say of other rows is told anew.
    other = {"X_val": X[1::3], "y_val": y[1::3]}
    model.fit(X, y, **other)
    expected = [log_loss(y[1::3], p) for p in model.staged_predict_proba(X[1::3])]
    np.testing.assert_allclose(-model.validation_score_[1 : model.n_iter_ + 1], expected)


@pytest.mark.parametrize("kind", [BoostedTreesClassifier, BoostedTreesRegressor])
def test_the_best_quality_is_scored_as_a_whole(kind):
    X, y = noisy() if kind is BoostedTreesClassifier else numbers()
    model = kind(**{**STOPS, "max_iter": 30, "quality": "best"}).fit(X, y)
    trains, judges = parts_of(clone(model), X, y)
    assert len(model.trees_) - model._n_first_trees == kind._SCHEDULE.n_members * model.n_iter_
    expected = -model.staged_loss(judges.X, judges.y)
    np.testing.assert_allclose(model.validation_score_[1 : model.n_iter_ + 1], expected)
    assert model.n_iter_ == model.validation_score_[1:].argmax() + 1
    whole = kind(quality="best", max_iter=model.n_iter_, random_state=0).fit(trains.X, trains.y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


@pytest.mark.parametrize(
    ("options", "judged", "calls"),
    [
        ({}, False, 1),
        ({"quality": "best"}, False, 1),
        ({}, True, 1),
        ({"early_stopping": True, "n_iter_no_change": 100}, False, 1),
        ({"early_stopping": True, "n_iter_no_change": 100, "quality": "best"}, False, 9),
        ({"scoring": "accuracy"}, False, 1),
        ({"scoring": "accuracy"}, True, 9),
    ],
)
def test_the_loss_costs_no_further_calls_of_the_core(options, judged, calls, monkeypatch):
    X, y = noisy()
    made = []

    def counted(runs, first, last, watch):
        made.append((first, last))
        return advance(runs, first, last, watch)

    monkeypatch.setattr(evaluation, "advance", counted)
    judges = {"X_val": X[:50], "y_val": y[:50]} if judged else {}
    BoostedTreesClassifier(**{"max_iter": 9, "random_state": 0, **options}).fit(X, y, **judges)
    assert len(made) == calls
    assert made[-1][1] == 9


# -- scorers ---------------------------------------------------------------------------------------


def class_names(y):
    return np.array(["no", "yes"])[y]


@pytest.mark.parametrize(
    "scoring",
    ["roc_auc", "accuracy", None, make_scorer(accuracy_score), lambda m, X, y: m.score(X, y)],
)
def test_scorers_are_called_as_in_scikit_learn(scoring):
    X, y = noisy()
    y, X_val, y_val = class_names(y), *noisy(seed=1)
    model = BoostedTreesClassifier(scoring=scoring, max_iter=8, random_state=0)
    model.fit(X, y, X_val=X_val, y_val=class_names(y_val))
    plain = BoostedTreesClassifier(max_iter=8, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    for rows, target, scores in (
        (X, y, model.train_score_),
        (X_val, class_names(y_val), model.validation_score_),
    ):
        if scoring == "roc_auc":
            found = [roc_auc_score(target, p[:, 1]) for p in plain.staged_predict_proba(rows)]
            assert scores[0] == 0.5
        else:
            found = [np.mean(target == said) for said in plain.staged_predict(rows)]
        np.testing.assert_allclose(scores[1:], found)


def test_a_scorer_of_numbers_stops_the_fit():
    X, y = numbers()
    weight = np.random.default_rng(0).uniform(0.5, 2, 400)
    loss = BoostedTreesRegressor(**STOPS, scoring="loss").fit(X, y, weight)
    error = BoostedTreesRegressor(**STOPS, scoring="neg_mean_squared_error").fit(X, y, weight)
    assert loss.n_iter_ == error.n_iter_
    np.testing.assert_allclose(2 * loss.validation_score_, error.validation_score_)
    np.testing.assert_array_equal(loss.predict(X), error.predict(X))


def test_a_scorer_gets_some_training_rows(monkeypatch):
    X, y = noisy(n_classes=3)
    seen = []

    def scorer(model, X, y, sample_weight=None):
        seen.append((len(X), np.bincount(y).tolist()))
        assert model.predict(X).shape == y.shape
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
        return 0.0

    monkeypatch.setattr(scored_sample, "_SCORED_ROWS", 60)
    BoostedTreesClassifier(max_iter=2, scoring=scorer).fit(X, y, X_val=X[:90], y_val=y[:90])
    assert [n for n, _ in seen] == [60, 90] * 3
    assert np.abs(np.array(seen[0][1]) - np.bincount(y) * 60 / 400).max() < 1


@pytest.mark.parametrize(
    ("scoring", "error", "message"),
    [
        ("accurate", ValueError, "accurate"),
        (3, ValueError, "The 'scoring' parameter"),
        (lambda *_: "good", ValueError, "scoring must return a number"),
        (lambda *_: np.nan, ValueError, "scoring must return a finite number, got nan"),
        (lambda *_: np.float32(np.inf), ValueError, "a finite number, got inf"),
        (lambda *_: -np.inf, ValueError, "a finite number, got -inf"),
        (lambda m, X, y: m.score(X[::2], y[::2]), ValueError, "exactly the rows that it gets"),
        (lambda *_: 1 / 0, ZeroDivisionError, "zero"),
    ],
)
def test_an_invalid_scorer_is_refused(scoring, error, message):
    X, y = noisy(60)
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
    said, state = model.predict_proba(X), dict(model.__dict__)
    with pytest.raises(error, match=message):
        model.set_params(scoring=scoring).fit(X, y, X_val=X, y_val=y)
    assert {**model.__dict__, "scoring": "loss"} == state
    np.testing.assert_array_equal(model.predict_proba(X), said)


# -- callbacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [1, 0, "stop", np.float64(1), [True]])
def test_a_callback_says_yes_or_no_or_nothing(said):
    X, y = noisy(60)
    model = BoostedTreesClassifier(max_iter=3, random_state=0)
    with pytest.raises(
        TypeError, match="callbacks must return True to stop the fit, or False or None"
    ):
        model.fit(X, y, callbacks=[lambda _: said])
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize("scoring", ["loss", "accuracy"])
def test_callbacks_follow_the_rounds_and_change_nothing(scoring):
    X, y = noisy()
    seen = []
    model = BoostedTreesClassifier(**STOPS, scoring=scoring)
    quiet = clone(model).fit(X, y)
    model.fit(X, y, callbacks=[seen.append, lambda _: np.False_])
    np.testing.assert_array_equal(model.predict_proba(X), quiet.predict_proba(X))
    assert [one.n_iter for one in seen] == [*range(1, len(quiet.train_score_))]
    for one in seen:
        np.testing.assert_array_equal(one.train_score, quiet.train_score_[: one.n_iter + 1])
        np.testing.assert_array_equal(
            one.validation_score, quiet.validation_score_[: one.n_iter + 1]
        )


def test_a_callback_stops_a_fit():
    X, y = noisy()
    calls = []
    model = BoostedTreesClassifier(random_state=0, max_iter=30)
    model.fit(X, y, callbacks=[lambda now: now.n_iter == 7, calls.append])
    whole = BoostedTreesClassifier(max_iter=7, random_state=0).fit(X, y)
    assert model.n_iter_ == len(calls) == 7
    assert len(calls[-1].validation_score) == 0
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    assert len(model.train_score_) == 8
    # With early stopping the best of the rounds so far are kept.
    model = BoostedTreesClassifier(**STOPS).fit(X, y, callbacks=[lambda now: now.n_iter == 3])
    assert model.n_iter_ == model.validation_score_[1:].argmax() + 1 <= 3


def test_a_callback_that_raises_leaves_everything_as_it_was():
    X, y = noisy()
    model = BoostedTreesClassifier(max_iter=4, random_state=0).fit(X, y)
    state = dict(model.__dict__)

    def fails(now):
        if now.n_iter == 2:
            raise KeyboardInterrupt("enough")

    with pytest.raises(KeyboardInterrupt, match="enough"):
        model.fit(X[::2], y[::2], callbacks=[fails])
    assert model.__dict__ == state
    for wrong in (print, [1], "say"):
        with pytest.raises(TypeError, match="callbacks must be a list of callables"):
            model.fit(X, y, callbacks=wrong)


def test_a_bar_shows_the_loss(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    X, y = noisy(100)
    model = BoostedTreesClassifier(max_iter=5, random_state=0)
    shown = clone(model).set_params(verbose=1).fit(X, y)
    assert "loss 0." in capsys.readouterr().err
    assert not hasattr(shown, "train_score_")
    np.testing.assert_array_equal(shown.predict_proba(X), model.fit(X, y).predict_proba(X))
    stopped = BoostedTreesClassifier(**STOPS).fit(X, y)
    shown = clone(stopped).set_params(verbose=1).fit(X, y)
    np.testing.assert_array_equal(shown.validation_score_, stopped.validation_score_)
    np.testing.assert_array_equal(shown.predict_proba(X), stopped.predict_proba(X))


# -- what else there is ----------------------------------------------------------------------------


def test_categories_and_names_of_columns_are_those_of_the_fit():
    X, y = noisy()
    table = pd.DataFrame(X, columns=list("abcde"))
    table["e"] = pd.Categorical(np.array(["k", "l", "m", "n"])[X[:, 4].astype(int)])
    X_val, y_val = table[300:].copy(), y[300:]
    X_val["e"] = X_val["e"].cat.add_categories("z").where(np.arange(100) % 7 > 0, "z")
    model = BoostedTreesClassifier(max_iter=10, random_state=0)
    model.fit(table[:300], y[:300], X_val=X_val, y_val=y_val)
    found = [log_loss(y_val, p) for p in model.staged_predict_proba(X_val)]
    np.testing.assert_allclose(-model.validation_score_[1:], found)
    with pytest.raises(ValueError, match="feature names"):
        model.fit(table[:300], y[:300], X_val=X_val.rename(columns={"a": "f"}), y_val=y_val)


def test_parameters_of_early_stopping_are_in_the_file(tmp_path):
    X, y = noisy()
    model = BoostedTreesClassifier(**STOPS, scoring="accuracy").fit(X, y)
    save(model, tmp_path / "model.certree")
    loaded = load(tmp_path / "model.certree")
    assert loaded.get_params() == model.get_params()
    assert loaded.n_iter_ == model.n_iter_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.validation_score_, model.validation_score_)
    with pytest.raises(TypeError, match="parameter 'scoring' cannot be saved"):
        save(model.set_params(scoring=accuracy_of).fit(X, y), tmp_path / "other.certree")


def accuracy_of(model, X, y):
    return model.score(X, y)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (CertifiedBoostedTreesClassifier, {}),
        (CertifiedBoostedTreesClassifier, {"train_size": 0.6}),
        (CertifiedBoostedTreesRegressor, {}),
    ],
)
def test_certified_fits_stop_by_training_rows_only(kind, options):
    X, y = noisy() if kind is CertifiedBoostedTreesClassifier else numbers()
    model = kind(**STOPS, **options).fit(X, y)
    assert model.n_iter_ == model.validation_score_[1:].argmax() + 1
    n_trains = round(getattr(model, "train_size_", 0.5) * 400)
    changed = y.copy()
    places = model.calibration_.given if hasattr(model, "calibration_") else None
    if places is not None:
        assert len(places) == 400 - n_trains
        changed[places] = 1 - changed[places]
        if options:  # whatever calibration samples say, the trees are the same
            other = clone(model).fit(X, changed)
            np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
            np.testing.assert_array_equal(other.validation_score_, model.validation_score_)
    grouped = clone(model).fit(X, y, groups=np.arange(400) // 4)
    assert grouped.n_iter_ >= 1


def test_quick_fits_of_a_certified_one_have_rounds_enough_and_no_more(monkeypatch):
    X, y = noisy()
    lasts = []

    def counted(runs, first, last, watch):
        lasts.append(last)
        return advance(runs, first, last, watch)

    monkeypatch.setattr(evaluation, "advance", counted)
    for most, expected in (("auto", {200, 1600}), (300, {200, 300}), (20, {20})):
        lasts.clear()
        CertifiedBoostedTreesClassifier(
            early_stopping=True, max_iter=most, n_iter_no_change=2, random_state=0
        ).fit(X, y)
        assert set(lasts) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"early_stopping": "yes"}, "The 'early_stopping' parameter"),
        ({"early_stopping": 2}, "The 'early_stopping' parameter"),
        ({"n_iter_no_change": 0}, "The 'n_iter_no_change' parameter"),
        ({"tol": -1.0}, "The 'tol' parameter"),
        ({"validation_fraction": 0.0}, "The 'validation_fraction' parameter"),
        ({"validation_fraction": 1.0}, "The 'validation_fraction' parameter"),
        ({"validation_fraction": 0}, "The 'validation_fraction' parameter"),
        ({"validation_fraction": 40}, "the resulting train set will be empty"),
        ({"validation_fraction": 1}, "each set needs at least 2, one for each class"),
        ({"validation_fraction": 0.02}, "each set needs at least 2, one for each class"),
        ({"validation_fraction": 39}, "each set needs at least 2, one for each class"),
    ],
)
def test_invalid_parameters_are_refused(parameters, message):
    X, y = noisy(40)
    with pytest.raises(ValueError, match=message):
        BoostedTreesClassifier(**{**STOPS, **parameters}).fit(X, y)


def test_rows_that_cannot_be_held_out_are_refused():
    X, y = noisy(40)
    model = BoostedTreesClassifier(**STOPS)
    lonely = np.append(y[:-1], 2)
    with pytest.raises(ValueError, match="least populated class in y has only 1 member"):
        model.fit(X, lonely)
    # A row of weight 2 is one member, and an evaluation set needs none.
    with pytest.raises(ValueError, match="least populated class in y has only 1 member"):
        model.fit(X, lonely, np.append(np.ones(39), 2))
    assert model.fit(X, lonely, X_val=X, y_val=y).n_classes_ == 3
    with pytest.raises(ValueError, match=r"n_samples=1 rows and .* the resulting train"):
        BoostedTreesRegressor(**STOPS).fit([[0.0]], [1.0])
    rare = np.append(np.zeros(38, dtype=int), [1, 1])
    with pytest.raises(ValueError, match="holds out all rows of 1 of the classes"):
        BoostedTreesClassifier(**STOPS, validation_fraction=38).fit(X, rare)


def test_bad_evaluation_sets_are_refused():
    X, y = noisy(40)
    model = BoostedTreesClassifier(**STOPS)
    for judges, message in (
        ({"X_val": X}, "y_val is None"),
        ({"y_val": y}, "X_val is None"),
        ({"sample_weight_val": np.ones(40)}, "sample_weight_val requires X_val"),
        ({"X_val": X[:, 1:], "y_val": y}, "X has 4 features, but BoostedTreesClassifier"),
        ({"X_val": X, "y_val": y + 1}, "y_val must hold classes among"),
        ({"X_val": X[1:], "y_val": y}, "^y_val must have one value for each row of X_val: "),
        ({"X_val": X[:0], "y_val": y[:0]}, "0 sample"),
        ({"X_val": X, "y_val": y, "sample_weight_val": np.ones(3)}, "^sample_weight_val must"),
        ({"X_val": X, "y_val": y, "sample_weight_val": -np.ones(40)}, "[Nn]egative"),
        (
            {"X_val": X, "y_val": y, "sample_weight_val": np.zeros(40)},
            "at least one (non-zero|row)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, **judges)
    assert not hasattr(model, "trees_")
