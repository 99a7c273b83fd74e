"""Several ranks, each with some of the rows, make the rounds of one process, bit by bit."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from certree.ensembles import BoostedTreesClassifier, BoostedTreesRanker, BoostedTreesRegressor
from certree.ensembles import rounds as module
from rank_threads import Exchange, Link
from same_models import COLUMNS, make_table, split_table

N = 1500
run_core = module._run_core


def select_rows(run, training, validation):
    """A run on some training rows and some rows of the validation set."""
    n = len(run.keys)
    n_binned = run.bins.codes.shape[1]
    rows = np.concatenate([training, n + validation])
    binned = rows[rows < n_binned]
    values = run.values
    if values is not None:
        values = values[rows[rows >= n_binned] - n_binned]
    return replace(
        run,
        grower=replace(run.grower, bins=run.bins.select_rows(binned)),
        y=np.ascontiguousarray(run.y[..., rows]),
        weight=None if run.weight is None else run.weight[rows],
        keys=run.keys[training],
        scores=np.ascontiguousarray(run.scores[:, rows]),
        values=values,
        **no_trees(),
    )


def no_trees():
    return {name: [] for name in ("tree_batches", "deviations", "in_bag_counts", "losses")}


def run_on_ranks(runs, first, last, watch, of_training, of_validation, n_ranks):
    """Make rounds on ranks; returns the runs of each rank, their scores, and the exchange."""
    exchange = Exchange(n_ranks)

    def rows_of(rank):
        return np.flatnonzero(of_training == rank), np.flatnonzero(of_validation == rank)

    def work(rank):
        own = [select_rows(run, *rows_of(rank)) for run in runs]
        try:
            return own, run_core(own, first, last, watch, exchange.link(rank))
        except BaseException:
            exchange.barrier.abort()
            raise

    with ThreadPoolExecutor(n_ranks) as pool:
        made = [pool.submit(work, rank) for rank in range(n_ranks)]
        errors = [one.exception() for one in made]
        first_errors = [e for e in errors if e and not isinstance(e, threading.BrokenBarrierError)]
        for error in first_errors or filter(None, errors):
            raise error
        return [one.result() for one in made], exchange


@pytest.fixture
def ranks(monkeypatch):
    """Makes all rounds on two ranks and on four, of which one has no rows, and compares all."""
    calls = []
    random = np.random.RandomState(0)

    def compare(runs, first, last, watch, links=None):
        assert links is None
        n, n_all = len(runs[0].keys), runs[0].y.shape[-1]
        expected = None
        for n_ranks, n_dealt in ((2, 2), (4, 3)):  # one of four has no rows
            order = random.permutation(n_ranks)[:n_dealt]
            rows = [order[random.randint(n_dealt, size=k)] for k in (n, n_all - n)]
            before = [run.scores.copy() for run in runs]
            made, exchange = run_on_ranks(runs, first, last, watch, *rows, n_ranks)
            for run, scores in zip(runs, before, strict=True):
                assert np.array_equal(run.scores, scores)
            if expected is None:
                mine = [replace(run, scores=run.scores.copy(), **no_trees()) for run in runs]
                expected = run_core(mine, first, last, watch)
            for rank, (own, scores) in enumerate(made):
                assert np.array_equal(scores, expected)
                here = np.concatenate(rows) == rank
                for one, run in zip(own, mine, strict=True):
                    expect_same_rounds(one, run)
                    assert np.array_equal(one.scores, run.scores[:, here])
            calls.append((n_ranks, exchange.n_messages))
        return run_core(runs, first, last, watch)

    monkeypatch.setattr(module, "_run_core", compare)
    yield calls
    assert calls


def expect_same_rounds(one, other):
    """The last batch of rounds has the same bits."""
    a, b = one.tree_batches[-1], other.tree_batches[-1]
    for name in COLUMNS:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("deviations", "in_bag_counts", "losses"):
        assert np.array_equal(getattr(one, name)[-1], getattr(other, name)[-1]), name


def model_of(target, **how):
    made = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    return made(**{"max_iter": 4, "random_state": 0, "n_jobs": 1, **how})


SETTINGS = [
    {},
    {"max_thresholds": 8, "subsample": 0.5},
    {"max_leaf_nodes": None, "max_depth": 3, "min_samples_leaf": 40},
    {"max_leaf_nodes": 2, "prunings": "none"},
    {"subsample": 1.0, "max_features": 2, "l2_regularization": 0.0, "max_iter": 3},
    {"interaction_cst": [[0, 1], [1, 2, 4]], "learning_rate": 0.5},
    {"subsample": 1e-9},
    {"n_jobs": 2, "max_leaf_nodes": 60},
]


@pytest.mark.parametrize("how", SETTINGS)
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_rounds_are_those_of_one_process(target, how, ranks):
    """Features have categories and missing values, and there are more numbers than one bin holds."""
    X, y, _ = split_table(make_table(N, target), weighed=False)
    model_of(target, **how).fit(X, y)


@pytest.mark.parametrize("weights", ["real", "whole"])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_weights(target, weights, ranks):
    X, y, weight = split_table(make_table(N, target, weights=weights))
    signs = None if target == "three" else {"x0": 1, "x1": -1}
    model_of(target, monotonic_cst=signs).fit(X, y, sample_weight=weight)


LOSSES = [
    {"loss": "absolute_error"},
    {"loss": "quantile", "quantile": 0.83},
    {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
    {"loss": "huber", "subsample": 1.0},
    {"loss": "poisson"},
    {"loss": "gamma"},
    {"loss": "tweedie"},
]


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("how", LOSSES)
def test_losses(how, weighed, ranks):
    X, y, weight = split_table(make_table(N, "numbers"), weighed)
    if how["loss"] in ("poisson", "gamma", "tweedie"):
        y = np.exp(y / 2)
    model_of("numbers", **how).fit(X, y, sample_weight=weight)


STOPPING = {
    "early_stopping": True,
    "n_iter_no_change": 2,
    "max_iter": 12,
    "learning_rate": 0.5,
    "max_leaf_nodes": 8,
}


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(
    ("target", "how"),
    [
        ("two", {}),
        ("three", {"validation_fraction": 0.5}),
        ("numbers", {}),
        ("numbers", {"validation_fraction": None, "loss": "huber"}),
        ("numbers", {"loss": "huber"}),
        ("numbers", {"loss": "quantile", "quantile": 0.2}),
    ],
)
def test_early_stopping(target, how, weighed, ranks):
    X, y, weight = split_table(make_table(N, target), weighed)
    model = model_of(target, **{**STOPPING, **how}).fit(X, y, sample_weight=weight)
    assert model.n_iter_ <= 12


@pytest.mark.parametrize("targets", ["numbers", "classes"])
def test_several_targets(targets, ranks):
    X, y, _ = split_table(make_table(N, "numbers"), weighed=False)
    second = np.sin(y) * 100
    if targets == "numbers":
        model_of("numbers").fit(X, np.stack([y, second], axis=1))
        model_of("numbers", loss="huber").fit(X, np.stack([y, second], axis=1))
    else:
        several = np.stack([(y > 0).astype(int), np.digitize(second, [-50, 50])], axis=1)
        model_of("two").fit(X, several)


def test_many_rows_of_which_nodes_have_few_or_many(ranks):
    """Nodes of more than 256 rows, and of fewer, and both children of a node are added up."""
    random = np.random.RandomState(1)
    X = random.normal(size=(20_000, 10))
    X[random.rand(*X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) > 0).astype(int)
    model_of("two", max_leaf_nodes=200, max_iter=2, early_stopping=False).fit(X, y)


def test_several_nodes_are_searched_in_a_message(ranks):
    """Trees of 60 leaves, which have 59 splits, take fewer messages than splits."""
    X = np.random.RandomState(0).uniform(size=(4000, 5)).astype(np.float32)
    model = BoostedTreesRegressor(max_iter=3, max_leaf_nodes=60, random_state=0)
    model.fit(X, X @ [1.0, 2.0, 3.0, 4.0, 5.0])
    assert model.trees_.is_leaf.sum() == 3 * 60
    assert all(n_messages < 3 * 40 for _, n_messages in ranks)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_thresholds_of_dates_lie_between_the_rows_of_all_ranks(early_stopping, ranks):
    random = np.random.RandomState(2)
    minutes = random.randint(0, 60 * 24 * 900, size=N)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(minutes, "min")
    X = pd.DataFrame({"day": days, "x": random.normal(size=N)})
    y = (minutes > 60 * 24 * 400) ^ (random.rand(N) < 0.2)
    how = {"early_stopping": early_stopping, "validation_fraction": 0.5, "max_leaf_nodes": 60}
    model = model_of("two", max_iter=8, **how).fit(X, y)
    assert model.trees_.compares_numbers.any()


def test_runs_of_several_members(ranks):
    X, y, _ = split_table(make_table(400, "two"), weighed=False)
    model_of("two", quality="best", max_iter=6).fit(X, y)


def start_runs(monkeypatch, model, *data, **more):
    """The runs that a fit begins with."""
    started = []

    def stop(runs, *_):
        started.extend(runs)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_run_core", stop)
    with suppress(KeyboardInterrupt):
        model.fit(*data, **more)
    return started


def test_a_gradient_that_is_not_finite_stops_all_ranks(monkeypatch):
    X, y, _ = split_table(make_table(N, "numbers"), weighed=False)
    (run,) = start_runs(monkeypatch, model_of("numbers"), X, y)
    run.scores[0, 5] = np.nan
    of_training = np.arange(N) % 2
    with pytest.raises(ValueError, match="must be finite"):
        run_on_ranks([run], 0, 2, module.UNWATCHED, of_training, np.zeros(0, int), 2)


def test_an_exception_of_a_link_ends_the_rounds(monkeypatch):
    X, y, _ = split_table(make_table(N, "two"), weighed=False)
    (run,) = start_runs(monkeypatch, model_of("two"), X, y)

    class Broken(Link):
        def share(self, words):
            assert len(words)
            self.exchange.n_messages += 1
            if self.exchange.n_messages > 20:
                raise ConnectionError("rank 1 is gone")

        def reduce(self, words, n_sums):
            assert n_sums <= len(words)

    with pytest.raises(ConnectionError, match="rank 1 is gone"):
        run_core([run], 0, 100, module.UNWATCHED, Broken(Exchange(1), 0))


def test_rankings_and_sparse_tables_are_refused(monkeypatch):
    random = np.random.RandomState(0)
    X, y, groups = random.rand(60, 3), random.randint(3, size=60), np.repeat(np.arange(6), 10)
    ranker = start_runs(monkeypatch, BoostedTreesRanker(max_iter=2), X, y, qid=groups)
    sparse = start_runs(monkeypatch, model_of("two"), csr_array(X), y > 0)
    for runs in (ranker, sparse):
        with pytest.raises(ValueError, match="several ranks must have dense tables"):
            run_core(runs, 0, 1, module.UNWATCHED, Exchange(1).link(0))
