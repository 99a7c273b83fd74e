"""Ctrl-C stops the loops of the core, and leaves everything as it was."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from certree import (
    Cart,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    _core,
    grow_cart,
    grow_dyadic,
    grow_kd,
)
from certree.ensembles.losses import LogLoss
from certree.ensembles.rounds import Settings, advance, start_run
from certree.explain import interaction_fractions, shapley_values
from certree.grow import BinnedGrower, Bins
from certree.grow.binned_grower import grow_on_samples
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import get_csr_arrays
from certree.rows.features import DenseFeatures
from certree.tree import Trees
from run_length import LONG as LONG_RUN

SIZES = (20_000, 200_000)
ONE_LANE = np.ones(1, dtype=np.int64)


class StopError(Exception):
    """What a handler raises."""


def rows(n, p=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(np.int32)


def small_trees(n):
    """Trees of few leaves, every other of which compare sets."""
    X, y = rows(200)
    codes = np.abs(X * 9).astype(int)
    two = (
        grow_cart(X, y, max_leaf_nodes=8),
        grow_cart(codes, y, max_leaf_nodes=8, categorical_features=range(4)),
    )
    return Trees.joined(
        [tree.with_value(np.ones((tree.n_nodes, 1))) for tree in two * (n // 2)], 4, 1
    )


class Posteriors:
    """A deep tree with what its passes take."""

    def __init__(self, n, n_jobs=1):
        self.X, self.y = rows(n)
        self.n_jobs = n_jobs
        self.tree = grow_kd(self.X)
        self.left = self.tree.left
        self.leaf = self.tree.route(self.X, n_jobs)
        self.zeros = np.zeros(len(self.left))
        self.ones = np.ones(len(self.left))
        self.counts = _core.count_classes(self.left, self.leaf, self.y, None, 2)
        self.label = _core.find_majority_classes(self.left, self.counts)
        self.gains = _core.compute_error_gains(self.left, self.counts, self.label, 1.0, 2, False)
        self.frequency = _core.compute_class_frequencies(self.left, self.counts, 1.0, 1.0)
        self.theta = np.array([[-1.0, -0.1]])
        self.many = self.theta * np.linspace(0.1, 2.0, 20)[:, None]
        self.posterior = (self.left, self.gains, self.zeros, self.zeros)
        self.cost = np.ascontiguousarray(self.gains[:, 0])
        self.splits = (self.left >= 0).astype(float)
        self.target = self.y.astype(float)
        self.binned = BinnedGrower(Bins.from_table(self.X), max_leaves=8, n_jobs=n_jobs)
        self.forest = BinnedGrower(
            self.binned.bins, order="depth", max_features=2, bootstrap=True, n_jobs=n_jobs
        )
        settings = Settings(LogLoss(), 0.1, 1.0, (1.0,), 0.7, votes=True)
        self.run, _ = start_run(
            settings, self.binned, DenseFeatures((self.X,)), self.y, None, (4,), 0
        )
        self.steps = np.ones(n)
        self.sparse = csr_array(np.where(self.X > 0.2, self.X, 0.0))
        bins = Bins.from_table(self.sparse)
        self.sparse_binned = BinnedGrower(bins, max_leaves=8, n_jobs=n_jobs)
        self.sparse_forest = BinnedGrower(bins, order="depth", max_features=2, n_jobs=n_jobs)
        self.trees = self.tree.with_value(self.ones[:, None])
        self.small_trees = small_trees(40)
        priors = (np.zeros((1, len(self.left))), np.zeros((1, len(self.left))))
        self.priors = (*priors, np.zeros((1, len(self.left), 2)))
        model = PACBayesTreeRegressor(
            Cart(max_leaf_nodes=n // 200), lambda_error=1.0, n_jobs=n_jobs
        )
        self.model = model.fit(self.X[: n // 10], self.target[: n // 10])

    def judged(self):
        return (self.many, False, None, self.frequency, self.counts)


def queries_of(s):
    """Rows as documents of a query of each hundred."""
    return np.arange(len(s.target), dtype=np.int32) // 100, 30, 10


def between(n):
    """Boundaries around n uniform draws in order."""
    middle = np.arange(1, n + 1) / (n + 1)
    return np.maximum(middle - 0.1, 0), np.minimum(middle + 0.1, 1)


# How many steps the core takes before it looks.
STEPS = 2**17

LOOPS = {
    "cart": lambda s: grow_cart(s.X, s.y, max_depth=4, n_jobs=s.n_jobs),
    "best first": lambda s: grow_cart(s.X, s.y, max_leaf_nodes=8, n_jobs=s.n_jobs),
    "categories": lambda s: grow_cart(
        np.abs(s.X * 1e3).astype(int),
        s.y,
        max_depth=2,
        categorical_features=range(4),
        n_jobs=s.n_jobs,
    ),
    "bins": lambda s: Bins.from_table(s.X, n_jobs=s.n_jobs),
    "bins of categories": lambda s: Bins.from_table(
        np.abs(s.X * 1e3).astype(int), range(4), n_jobs=s.n_jobs
    ),
    "binned": lambda s: s.binned.grow_gradients(0.5 - s.target, s.steps),
    "sparse bins": lambda s: Bins.from_table(s.sparse, n_jobs=s.n_jobs),
    "sparse binned": lambda s: s.sparse_binned.grow_gradients(0.5 - s.target, s.steps),
    "sparse forest": lambda s: s.sparse_forest.grow_classes(s.y, 2, 1),
    "sparse hashes": lambda s: _core.hash_rows(get_csr_arrays(s.sparse), False, s.n_jobs),
    "hashes": lambda s: _core.hash_rows([*s.X.T], True, s.n_jobs),
    "binned classes": lambda s: s.binned.grow_classes(s.y, 2, 1),
    "forest": lambda s: s.forest.grow_classes(s.y, 2, 1),
    "forest of numbers": lambda s: s.forest.grow_numbers(s.target, 1),
    "forest on samples": lambda s: grow_on_samples(
        *(s.X, s.y, 2),
        np.arange(len(s.X), dtype=np.int32).reshape(2, -1),
        np.arange(2, dtype=np.uint64),
        sample_weight=s.steps + 0.5 * s.y,
        order="depth",
        max_features=2,
        n_jobs=s.n_jobs,
    ),
    "whole weights": lambda s: _core.scale_weights_to_integers(s.steps, s.steps.max(), 1.0),
    "unit of weights": lambda s: _core.find_weight_unit(s.steps),
    "draws": lambda s: s.forest.count_draws(0),
    "kd": lambda s: grow_kd(s.X, max_depth=4, n_jobs=s.n_jobs),
    "kd, spread": lambda s: grow_kd(s.X, axis="spread", max_depth=4, n_jobs=s.n_jobs),
    "dyadic": lambda s: grow_dyadic(s.X, max_depth=4, n_jobs=s.n_jobs),
    "route": lambda s: s.tree.route(s.X, s.n_jobs),
    "blend": lambda s: s.tree.learn_missing(s.X).blend(
        s.X * [np.nan, 1, 1, 1], s.ones, s.frequency, s.n_jobs
    ),
    "lacking": lambda s: s.tree.learn_missing(s.X * [np.nan, 1, 1, 1]),
    "depths": lambda s: _core.compute_depths(s.left, s.tree.chain),
    "count": lambda s: _core.count_classes(s.left, s.leaf, s.y, None, 2),
    "count entries": lambda s: _core.count_class_entries(s.left, s.leaf, s.y, None),
    "moments": lambda s: _core.compute_moments(s.left, s.leaf, s.target, None),
    "majority": lambda s: _core.find_majority_classes(s.left, s.counts),
    "frequencies": lambda s: _core.compute_class_frequencies(s.left, s.counts, 1.0, 1.0),
    "smoothed means": lambda s: _core.smooth_means(s.left, s.ones, s.zeros, 1.0, 1.0),
    "error gains": lambda s: _core.compute_error_gains(s.left, s.counts, s.label, 1.0, 2, False),
    "squared gains": lambda s: _core.compute_squared_gains(
        s.left, s.ones, s.zeros, 1.0, 1.0, 2, False
    ),
    "weigh": lambda s: _core.compute_posterior(*s.posterior, s.theta[0], np.zeros(2), False),
    "reach": lambda s: _core.compute_reach_probabilities(s.left, s.zeros),
    "sums below": lambda s: _core.sum_below_nodes(s.left, s.zeros, s.ones),
    "likeliest": lambda s: _core.find_likeliest_pruning(s.left, s.zeros, s.zeros),
    "critical prices": lambda s: _core.find_critical_prices(s.left, s.cost, s.splits),
    "fragment": lambda s: _core.find_fragment_pruning(
        s.left, s.cost, s.splits, s.zeros, s.ones, s.ones
    ),
    "merge order": lambda s: _core.find_merge_order(s.left, s.zeros),
    "votes": lambda s: _core.score_nodes(s.left, s.ones, None, s.frequency, 2),
    "votes of nodes": lambda s: _core.score_some_nodes(
        s.left, s.ones, s.ones, None, s.frequency, 2, np.arange(len(s.left), dtype=np.int32)
    ),
    "monotone": lambda s: _core.make_monotone(
        s.left, s.tree.feature, np.zeros(4, dtype=np.int8), s.zeros
    ),
    "score grid": lambda s: _core.score_grid(*s.posterior, *s.judged(), "log_loss", s.n_jobs),
    "judged votes": lambda s: _core.compute_validation_votes(
        *s.posterior, *s.judged(), "log_loss", s.n_jobs
    ),
    "boosting round": lambda s: _core.compute_round_steps(
        s.left,
        s.leaf,
        *(np.flatnonzero(s.leaf % 2 == k).astype(np.int32) for k in (0, 1)),
        s.target[None],
        np.ones((1, len(s.leaf))),
        *(1.0, [(0, 1, 1.0)], 0.0, 0.5, np.array([0.5]), s.tree.feature, None),
    ),
    "slopes": lambda s: _core.compute_gradients("classes", 0.5, s.target, s.target[None]),
    "losses": lambda s: _core.compute_losses("huber", 0.5, s.target, s.target[None]),
    "dispersion": lambda s: _core.estimate_dispersion(
        "quantile", 0.5, s.target, s.target[None], None
    ),
    "ranking": lambda s: _core.compute_ranking_gradients(
        queries_of(s), s.target, s.target, None, s.n_jobs
    ),
    "NDCG": lambda s: _core.compute_mean_ranking_loss(queries_of(s), s.target, s.target, None),
    "boosting": lambda s: advance([s.run.copy_without_trees()] * 2, 0, 3),
    "many trees": lambda s: s.trees.add(np.zeros((1, len(s.X))), s.X, s.n_jobs),
    "many trees of sparse rows": lambda s: s.trees.add(np.zeros((1, len(s.X))), s.sparse, s.n_jobs),
    "leaves of sparse rows": lambda s: s.trees.find_leaves(s.sparse, s.n_jobs),
    "small trees": lambda s: s.small_trees.add(np.zeros((1, len(s.X))), s.X, s.n_jobs),
    "stages": lambda s: [
        *s.small_trees.iterate_stages(np.zeros((1, len(s.X))), s.X, s.n_jobs, range(0, 40, 4))
    ],
    "leaves": lambda s: s.trees.find_leaves(s.X, s.n_jobs),
    "rows out of bags": lambda s: s.trees.find_out_of_bag_leaves(
        s.X, s.forest.row_sampling, s.n_jobs
    ),
    "sums of leaves": lambda s: _core.sum_out_of_bag_targets(
        s.left, s.trees.root, ~s.leaf[None], s.target[:, None], None, ONE_LANE, s.n_jobs
    ),
    "values of leaves": lambda s: _core.shrink_leaves(
        s.left, s.trees.root, np.column_stack([s.ones, s.zeros]), 1.0, s.n_jobs
    ),
    "judged leaves": lambda s: _core.sum_out_of_bag_predictions(
        *(s.left, s.trees.root, ~s.leaf[None], s.target[:, None], None, ONE_LANE),
        *(np.column_stack([s.ones, s.zeros]), True, 1.0, len(s.X), s.n_jobs),
    ),
    "contributions": lambda s: s.trees.compute_contributions(s.X, s.n_jobs),
    "means of leaves": lambda s: _core.average_leaves(s.left, s.ones, s.zeros[:, None]),
    "mix": lambda s: _core.fit_mixture(s.ones, np.full((len(s.ones), 2), 0.5), 3),
    "spectrum": lambda s: _core.compute_tree_spectrum(
        *(s.tree.feature, s.left, s.trees.root, s.ones[:, None], True, np.zeros(4), 1, 10, s.n_jobs)
    ),
    "transform": lambda s: _core.walsh_hadamard(np.ones(2 ** len(s.X).bit_length()), 1.0, s.n_jobs),
    "coarser bins": lambda s: s.binned.bins.coarsen(8, 1),
    "ranks": lambda s: TrainingSamples.from_arrays(s.X, None, None, n_jobs=s.n_jobs).ranks,
    "Shapley values": lambda s: shapley_values(s.model, s.X[: len(s.X) // 20]),
    "Shapley values of a background": lambda s: shapley_values(
        s.model, s.X[: len(s.X) // 20], s.X[:50]
    ),
    "interactions": lambda s: interaction_fractions(s.model, s.X),
    "score grid of errors": lambda s: _core.score_grid(
        *s.posterior, *s.judged(), "error", s.n_jobs
    ),
    "products": lambda s: _core.multiply_features(
        np.ascontiguousarray(s.X.T), np.arange(3), np.arange(2, dtype=np.int32), s.n_jobs
    ),
    "masses": lambda s: _core.compute_log_masses(s.left, s.label, *s.priors),
    "draws in order": lambda s: _core.compute_order_probability(*between(len(s.X) // 50)),
}


@pytest.fixture(scope="module")
def sizes():
    return [Posteriors(n) for n in SIZES]


@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_looks_more_often_the_larger_it_is(name, sizes):
    looks = [looks_of(partial(LOOPS[name], size), STEPS) for size in sizes]
    assert looks[1] >= max(5 * looks[0], 1)


def test_looks_do_not_depend_on_what_was_called_before(sizes):
    looks = set()
    for _ in range(3):
        LOOPS["kd"](sizes[0])
        looks.add(_core.count_interrupt_checks())
        LOOPS["count"](sizes[0])
    assert len(looks) == 1


# -- an interrupt at any look


def looks_of(call, steps):
    """How often all that a call asks of the core looks."""
    _core.interrupt_at(2**50, steps)
    call()
    return 2**50 - _core.interrupt_at(0)


def interrupt_everywhere(names, n_jobs, n_rows, n_moments):
    """Interrupt loops at looks spread over all of theirs, and say how often that was."""
    size, steps = Posteriors(n_rows, n_jobs), 1
    n_interrupts = 0
    for name in names:
        before = pickle.dumps(LOOPS[name](size))
        n_looks = looks_of(partial(LOOPS[name], size), steps)
        for look in np.unique(np.linspace(1, n_looks, n_moments).astype(int)).tolist():
            _core.interrupt_at(look, steps)
            try:
                LOOPS[name](size)
            except KeyboardInterrupt:
                n_interrupts += 1
            else:
                # Threads share their looks in another way each time.
                assert n_jobs > 1, (name, look)
                assert _core.interrupt_at(0) > 0, (name, look)
        _core.interrupt_at(0)
        assert pickle.dumps(LOOPS[name](size)) == before, name
    return n_interrupts


def signal_everywhere(names, n_jobs, n_signals, seed):
    """The same with signals at moments of a clock."""
    size = Posteriors(SIZES[1], n_jobs)
    random = np.random.default_rng(seed)
    n_interrupts = 0
    for name in random.choice(names, n_signals).tolist():
        start = time.perf_counter()
        LOOPS[name](size)
        whole = time.perf_counter() - start
        try:
            with alarm(stop, first=random.uniform(0.001, 0.05)):
                # Questions are asked every 50 ms only, so a loop goes on until it is answered.
                for _ in range(2 + int(1 / whole)):
                    LOOPS[name](size)
        except StopError:
            n_interrupts += 1
    return n_interrupts


def in_a_process(call):
    """What a call of this file gives in a process of its own, which may die of it."""
    code = f"import test_interrupt as own; print(own.{call})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_at_any_look_stops_every_loop_and_changes_nothing(n_jobs):
    n_rows, n_moments, least = (50_000, 250, 5000) if LONG_RUN else (3000, 5, 150)
    call = f"interrupt_everywhere(own.LOOPS, {n_jobs}, {n_rows}, {n_moments})"
    assert in_a_process(call) >= least


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_signal_at_any_moment_stops_the_laws(n_jobs):
    names = list(LOOPS) if LONG_RUN else ["weigh", "score grid", "judged votes"]
    n_signals = 150 if LONG_RUN else 5
    assert in_a_process(f"signal_everywhere({names}, {n_jobs}, {n_signals}, 0)") > 0.9 * n_signals


def test_functions_for_wider_registers_do_not_throw_or_are_called_through_pointers():
    core = Path(__file__).parents[1] / "src" / "core"
    n_functions = 0
    for path in sorted(core.rglob("*.?pp")):
        text = path.read_text()
        for head in re.findall(r"^CERTREE_SIMD_CLONES ([^{;]*)[{;]", text, re.MULTILINE):
            n_functions += 1
            name = re.search(r"(\w+)\(", head)[1]
            is_called = re.search(rf"(?<!void )(?<!double )(?<![.\w]){name}\(", text)
            assert head.rstrip().endswith("noexcept") or not is_called, name
    assert n_functions > 10


@contextmanager
def alarm(handler, every=0.0, first=0.02):
    """Run a handler while the block runs, where the platform has timers."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers")
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, first, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def stop(*_):
    raise StopError


def grow_binned(X, y, n_jobs):
    grower = BinnedGrower(Bins.from_table(X), n_jobs=n_jobs)
    for _ in range(99):
        grower.grow_gradients(y - 0.5, np.ones(len(y)))


def grow_forest(X, y, n_jobs):
    grower = BinnedGrower(
        Bins.from_table(X), order="depth", max_features=4, bootstrap=True, n_jobs=n_jobs
    )
    grower.grow_classes(y, 2, 50)


def grow_certified_forest(X, y, n_jobs):
    samples = np.random.default_rng(0).integers(0, len(y), size=(50, len(y)), dtype=np.int32)
    grow_on_samples(X, y, 2, samples, np.zeros(50, dtype=np.uint64), order="depth", n_jobs=n_jobs)


LONG = {
    "cart": grow_cart,
    "certified forest": grow_certified_forest,
    "forest": grow_forest,
    "binned": grow_binned,
    "kd": lambda X, _, n_jobs: [grow_kd(X, axis="spread", n_jobs=n_jobs) for _ in range(99)],
    "dyadic": lambda X, _, n_jobs: [grow_dyadic(X, n_jobs=n_jobs) for _ in range(99)],
}


@pytest.mark.threads
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", LONG)
def test_a_handler_that_raises_stops_growth(name, n_jobs):
    X, y = rows(200_000, 20)
    with pytest.raises(StopError), alarm(stop):
        LONG[name](X, y, n_jobs=n_jobs)


def test_a_single_call_is_stopped_by_its_own_looks():
    share = np.full((1000, 2), 0.5)
    with pytest.raises(StopError), alarm(stop):
        _core.fit_mixture(
            np.ones(1000), share, 2**60
        )  # without a look it would take a million years


@pytest.mark.threads
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_handler_that_returns_changes_nothing(n_jobs):
    X, y = rows(100_000, 20)
    calls, running = [], threading.Lock()

    def count_up(*_):
        # A slow handler is interrupted by its own timer; handlers inside handlers would end in a
        # RecursionError.
        if running.acquire(blocking=False):
            calls.append(grow_kd(X[:100]).n_nodes)  # the core may be called in the middle of a call
            running.release()

    with alarm(count_up, every=0.02):
        interrupted = grow_cart(X, y, n_jobs=n_jobs)
    assert len(calls) > 0
    whole = grow_cart(X, y, n_jobs=n_jobs)
    np.testing.assert_array_equal(interrupted.threshold, whole.threshold)
    np.testing.assert_array_equal(interrupted.left, whole.left)


@pytest.mark.threads
def test_other_threads_go_on(sizes):
    answers = []

    def work():
        answers.extend(grow_kd(sizes[1].X, axis="spread").threshold for _ in range(8))

    other = threading.Thread(target=work)
    other.start()
    with pytest.raises(StopError), alarm(stop):
        _core.fit_mixture(np.ones(1000), np.full((1000, 2), 0.5), 2**60)
    other.join()
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
    assert len(answers) == 8


@pytest.mark.threads
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_stopped_fit_leaves_the_model_as_it_was(n_jobs):
    X, y = rows(300)
    model = PACBayesTreeClassifier(random_state=0, n_jobs=n_jobs).fit(X, y)
    before, shares = dict(vars(model)), model.predict_proba(X)
    with pytest.raises(StopError), alarm(stop):
        model.fit(*rows(200_000, 20))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict_proba(X), shares)


def test_a_stopped_prediction_leaves_the_model_as_it_was():
    X, y = rows(20_000)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    before, shares = dict(vars(model)), model.predict_proba(X)
    many = np.tile(X, (20, 1))
    with pytest.raises(StopError), alarm(stop):
        deque(map(model.predict, repeat(many)), maxlen=0)
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict_proba(X), shares)


# -- the command line


def interrupted(directory, *arguments):
    """Exit code and words of a command that gets Ctrl-C once it computes."""
    code = (
        "import signal, threading, time\n"
        "from certree import _core, __main__\n"
        "from certree.tables import reader\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def reads(*_, read=reader.read_with_schema, **how):\n"
        "    table = read(*_, **how)\n"
        "    print('ready', flush=True)\n"
        "    return table\n"
        "reader.read_with_schema = reads\n"
        "__main__.main()\n"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)  # it computes for seconds
    process.send_signal(signal.SIGINT)
    out, words = process.communicate()
    return process.returncode, out, words


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    directory = tmp_path_factory.mktemp("table")
    X, y = rows(60_000, 20)
    header = ",".join([*(f"x{j}" for j in range(20)), "y"])
    np.savetxt(
        directory / "rows.csv", np.column_stack([X, y]), "%.6g", ",", header=header, comments=""
    )
    return directory


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupted_fit_leaves_no_file(table):
    code, out, words = interrupted(
        table, "fit", "rows.csv", "--target", "y", "-o", "model.ctm", "--jobs", 2, "--quiet"
    )
    assert (code, out, words) == (130, "", "interrupted\n")
    assert sorted(path.name for path in table.iterdir()) == ["rows.csv"]
