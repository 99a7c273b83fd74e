"""The parameter max_time of boosted trees, with a clock that the tests set."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import certree.ensembles.rounds as rounds_module
import certree.ensembles.time_limit as time_limit_module
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRanker,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    load,
    save,
)
from certree.ensembles.round_selection import choose_rounds
from certree.ensembles.time_limit import RoundTimer, TimeLimit
from certree.show.model_description import describe_size

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(int)


@pytest.fixture
def clock(monkeypatch):
    """A clock that shows `clock.now`, which each round of boosting moves on by one second per run."""

    class Clock:
        now = 100.0
        rounds = 0

    clock = Clock()
    monkeypatch.setattr(time_limit_module, "perf_counter", lambda: clock.now)
    run_rounds = rounds_module.run_rounds

    def run_with_clock(runs, settings, watch, limits, slopes, groups, first, last, *rest):
        clock.now += len(runs) * (last - first)
        clock.rounds += len(runs) * (last - first)
        return run_rounds(runs, settings, watch, limits, slopes, groups, first, last, *rest)

    monkeypatch.setattr(rounds_module, "run_rounds", run_with_clock)
    return clock


def test_the_rounds_of_a_limited_fit_are_the_first_of_a_longer_one(clock):
    short = BoostedTreesClassifier(max_iter=100, max_time=12, random_state=0).fit(X, Y)
    long = BoostedTreesClassifier(max_iter=100, random_state=0).fit(X, Y)
    assert (short.n_iter_, short.stopped_by_) == (12, "max_time")
    assert (long.n_iter_, long.stopped_by_) == (100, "max_iter")
    assert len(short.trees_) == 12
    assert_array_equal(short.predict_proba(X), long.predict_proba(X, n_iter=12))
    assert_array_equal(
        short.predict_proba(X),
        BoostedTreesClassifier(max_iter=12, random_state=0).fit(X, Y).predict_proba(X),
    )


def test_time_ends_certified_classifiers_and_their_pilot(clock):
    model = CertifiedBoostedTreesClassifier(max_iter=100, max_time=50, random_state=0)
    model.fit(X, Y)
    assert model.stopped_by_ == "max_time"
    assert clock.now <= 150
    assert clock.rounds - model.n_iter_ <= 10
    assert "max_time ended the fit, trained on" in model.report()
    fixed = CertifiedBoostedTreesClassifier(max_iter=40, train_size=0.5, random_state=0).fit(X, Y)
    assert fixed.set_params(max_time=1000).fit(X, Y).n_iter_ == 40
    assert "max_time" not in fixed.report()
    assert "in 40 rounds of at most 31 leaves, with learning rate 0.1, and" in fixed.report()


def test_time_ends_certified_regressors_and_their_widths(clock):
    y = X[:, 0] + RNG.normal(size=200)
    model = CertifiedBoostedTreesRegressor(max_iter=1000, max_time=100, random_state=0).fit(X, y)
    assert model.stopped_by_ == "max_time"
    assert clock.now <= 200
    assert 40 <= model.n_iter_ <= 60
    assert len(model.scale_trees_) > 5
    limited = CertifiedBoostedTreesRegressor(max_iter=5, max_time=1e6, random_state=0).fit(X, y)
    free = clone(limited).set_params(max_time=None).fit(X, y)
    assert_array_equal(limited.predict_interval(X), free.predict_interval(X))


def test_enough_time_changes_nothing(clock):
    limited = BoostedTreesClassifier(max_iter=20, max_time=1000.0, random_state=0).fit(X, Y)
    assert (limited.n_iter_, limited.stopped_by_) == (20, "max_iter")
    expected = clone(limited).set_params(max_time=None).fit(X, Y).predict_proba(X)
    assert_array_equal(limited.predict_proba(X), expected)


def test_one_round_is_made_if_the_time_is_over_before(clock):
    model = BoostedTreesRegressor(max_iter=9, max_time=1e-9, random_state=0).fit(X, X[:, 0])
    assert (model.n_iter_, model.stopped_by_) == (1, "max_time")
    assert np.isfinite(model.predict(X)).all()


def test_cross_validation_takes_at_most_half_of_the_time(clock):
    y = X[:, 0] + X[:, 1] ** 2  # more rounds help
    model = BoostedTreesRegressor(loss="huber", max_time=200, random_state=0).fit(X, y)
    assert model.stopped_by_ == "max_time"
    # Four folds are checked after 3, 4, 6, 8, 11, 16 and 23 rounds; 33 rounds would take 132 s.
    assert clock.rounds - model.n_iter_ == 4 * 23
    assert clock.now <= 300
    assert model.n_iter_ == 108


def test_a_number_that_cross_validation_chooses_is_kept(clock):
    noise = np.random.default_rng(1).integers(0, 2, len(X))
    limited = BoostedTreesClassifier(max_time=1e6, random_state=0).fit(X, noise)
    assert limited.stopped_by_ == "max_iter"
    assert limited.n_iter_ == BoostedTreesClassifier(random_state=0).fit(X, noise).n_iter_


def test_standard_errors_get_half_of_the_time(clock):
    model = BoostedTreesRegressor(
        loss="huber", max_iter=99, max_time=40, standard_errors=True, random_state=0
    ).fit(X, X[:, 0])
    assert (model.n_iter_, model.stopped_by_) == (20, "max_time")
    assert (model.predict_std(X) > 0).all()


def test_early_stopping_and_callbacks_are_named(clock):
    noise = np.random.default_rng(1).integers(0, 2, len(X))
    stopped = BoostedTreesClassifier(
        max_iter=500, early_stopping=True, n_iter_no_change=3, random_state=0
    ).fit(X, noise)
    assert stopped.stopped_by_ == "early_stopping"
    called = BoostedTreesClassifier(max_iter=50, random_state=0)
    called.fit(X, Y, callbacks=[lambda progress: progress.n_iter >= 4])
    assert (called.n_iter_, called.stopped_by_) == (4, "callbacks")
    late = BoostedTreesClassifier(
        max_iter=500, max_time=20, early_stopping=True, n_iter_no_change=400, random_state=0
    ).fit(X, Y)
    assert late.stopped_by_ == "max_time"
    assert len(late.validation_score_) == 21
    assert late.n_iter_ == 1 + late.validation_score_[1:].argmax()


def test_a_warm_start_adds_rounds_until_the_time_is_over(clock):
    model = BoostedTreesClassifier(max_iter=50, max_time=10, warm_start=True, random_state=0)
    assert model.fit(X, Y).n_iter_ == 10
    assert model.set_params(max_time=15).fit(X, Y).n_iter_ == 25
    expected = BoostedTreesClassifier(max_iter=25, random_state=0).fit(X, Y)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_rankings_have_a_limit(clock):
    model = BoostedTreesRanker(max_time=7, random_state=0).fit(X, Y, group=[10] * 20)
    assert (model.n_iter_, model.stopped_by_) == (7, "max_time")


def test_rows_in_files_have_a_limit(clock, tmp_path):
    pd.DataFrame(X, columns=[*"abc"]).assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    model = BoostedTreesClassifier(max_iter=50, max_time=9, random_state=0)
    model.fit(tmp_path / "rows.parquet", "y")
    assert (model.n_iter_, model.stopped_by_) == (9, "max_time")


def test_files_and_descriptions_keep_what_ended_the_rounds(clock, tmp_path):
    model = BoostedTreesClassifier(max_iter=50, max_time=5, random_state=0).fit(X, Y)
    assert describe_size(model).endswith("; max_time ended the fit")
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").stopped_by_ == "max_time"
    save(model.set_params(max_time=None).fit(X, Y), tmp_path / "model")
    assert load(tmp_path / "model").stopped_by_ == "max_iter"
    assert "max_time" not in describe_size(model)


@pytest.mark.parametrize("value", [0, -1.0, np.inf, "1"])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="'max_time' parameter"):
        BoostedTreesClassifier(max_time=value).fit(X, Y)


def test_timers_predict_by_the_last_block(clock):
    timer = RoundTimer(TimeLimit.start(10))
    assert timer.has_time_for(10**6)
    timer.start_block()
    clock.now += 4
    timer.end_block(2)
    assert timer.has_time_for(3)
    assert not timer.has_time_for(4)
    assert RoundTimer(TimeLimit.start(None)).has_time_for(10**9)
    assert TimeLimit.start(10).take_fraction(0.5).end == clock.now + 5
    assert not TimeLimit().take_fraction(0.5).is_set


@pytest.mark.parametrize(
    ("compute_loss", "n_rounds"), [(lambda n: 1 / n, 1600), (lambda n: abs(n - 10), 11)]
)
def test_a_search_without_time_keeps_the_best_rounds_or_all_if_the_loss_still_falls(
    compute_loss, n_rounds, clock
):
    run = SimpleNamespace(losses=[])

    def advance(runs, first, last):
        clock.now += last - first
        runs[0].losses.append([compute_loss(last)])

    assert choose_rounds([run], 1600, TimeLimit.start(25), advance) == n_rounds
    assert len(run.losses) == 7  # after 3, 4, 6, 8, 11, 16 and 23 rounds
