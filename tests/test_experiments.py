"""The paper's experiment: rows as the protocol says, outcomes as the public API gives them."""

import os
from pathlib import Path

import numpy as np
import pytest

import certree
from certree.experiments import figure2, table2
from certree.experiments.protocol import (
    EXPANDED,
    PARTITIONS,
    PRUNING,
    UNPRUNED,
    Outcome,
    draw,
    judge,
    run,
)
from certree.tables import Table, load


def synthetic(n, p=3, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = (X[:, 0] * classes).astype(int)
    noisy = rng.random(n) < 0.2
    return Table(X, np.where(noisy, rng.integers(0, classes, n), y), [f"x{j}" for j in range(p)])


@pytest.mark.parametrize(("rows", "test"), [(4600, 2000), (900, 300)])
def test_rows_are_drawn_once_each(rows, test):
    table = synthetic(rows)
    sample = draw("any", table, repeat=1)
    assert (len(sample.y), len(sample.y_test)) == (rows - test, test)
    drawn = np.vstack([sample.X, sample.X_test])
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(table.X, axis=0))
    other = draw("any", table, repeat=2)
    assert not np.array_equal(other.X_test, sample.X_test)
    np.testing.assert_array_equal(draw("any", table, 1).X, sample.X)


def test_crowd_is_its_training_file_only():
    table = synthetic(10845)
    table.X[10545:, 0] = 7.0
    sample = draw("crowd", table, repeat=0)
    assert (len(sample.y), len(sample.y_test)) == (8545, 2000)
    assert sample.X[:, 0].max() < 1
    assert sample.X_test[:, 0].max() < 1


def test_a_share_of_the_training_rows_leaves_the_test_rows_alone():
    table = synthetic(900)
    half, whole = draw("any", table, 0, 0.5), draw("any", table, 0)
    np.testing.assert_array_equal(half.X_test, whole.X_test)
    np.testing.assert_array_equal(half.X, whole.X[: len(half.X)])
    assert len(half.y) == 300


@pytest.mark.parametrize("partition", [*PARTITIONS, EXPANDED])
def test_outcomes_are_those_of_the_public_functions(partition):
    sample = draw("any", synthetic(600), repeat=0)
    outcome = judge("any", sample, partition, 0)
    grow = {
        "dyadic": lambda: certree.grow_dyadic(sample.X, sample.y, max_depth="log"),
        EXPANDED: lambda: certree.grow_dyadic(sample.X, sample.y, max_depth="log", expand=True),
        "kd": lambda: certree.grow_kd(sample.X, sample.y, max_depth="log"),
        "kd-spread": lambda: certree.grow_kd(sample.X, sample.y, axis="spread", max_depth="log"),
    }
    tree = grow[partition]()
    stats = certree.count(tree, sample.X, sample.y, 3)

    def error(weights):
        label = certree.vote(tree, stats, weights).label[tree.apply(sample.X_test)]
        return np.mean(label != sample.y_test)

    chosen = outcome.temperatures
    pruning = certree.cost_complexity(tree, stats, *chosen[PRUNING])
    assert outcome.errors[PRUNING] == error(pruning)
    adaptive = certree.depth_penalised(tree, stats, *chosen["SN-pruning"])
    assert outcome.errors["SN-pruning"] == error(adaptive)
    law = certree.pac_bayes(tree, stats, *chosen["PAC-Bayes joint"])
    assert outcome.errors["PAC-Bayes joint"] == error(law)
    assert outcome.errors[UNPRUNED] == error(certree.cost_complexity(tree, stats, 0))
    assert "HS-vote" not in outcome.errors
    score = certree.vote(tree, stats, law).score[tree.apply(sample.X_test)]
    gibbs = 1 - np.take_along_axis(score, sample.y_test[:, None], axis=1).mean()
    assert outcome.errors["Gibbs"] == pytest.approx(gibbs)


def test_helmbold_and_schapire_vote_on_two_classes():
    outcome = judge("any", draw("any", synthetic(400, classes=2), 0), "kd", 0)
    assert 0 < outcome.errors["HS-vote"] < 0.5


def test_threads_do_not_change_the_outcomes():
    arguments = (["iris", "cultivars"], ["kd", "dyadic"], 2)
    assert run(*arguments) == run(*arguments, n_jobs=2)


def test_what_cannot_be_run_is_refused():
    with pytest.raises(ValueError, match="partitions must be some of dyadic, kd, kd-spread"):
        run(["iris"], ["forest"], 1)
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        run(["iris"], ["kd"], 0)
    with pytest.raises(FileNotFoundError, match="data set 'nothing'"):
        run(["nothing"], ["kd"], 1)


def outcome(repeat, pruning, vote, n_train=10, dataset="spam"):
    errors = {PRUNING: pruning, "PAC-Bayes joint": vote}
    return Outcome(dataset, "kd", repeat, n_train, 5, errors, {}, 7, None)


def test_lines_are_means_and_standard_errors():
    outcomes = [outcome(0, 0.2, 0.1), outcome(1, 0.4, 0.4), outcome(2, 0.3, 0.2)]
    (line,) = table2.lines(outcomes)
    baseline, vote = np.array([0.2, 0.4, 0.3]), np.array([0.1, 0.4, 0.2])
    assert line.errors[PRUNING].value == pytest.approx(0.3)
    assert line.errors[PRUNING].standard_error == pytest.approx(baseline.std(ddof=1) / 3**0.5)
    ratio = line.ratios["PAC-Bayes joint"]
    assert ratio.value == pytest.approx(vote.mean() / 0.3)
    spread = (vote - baseline).std(ddof=1) / 3**0.5 / 0.3
    assert ratio.standard_error == pytest.approx(spread)
    assert line.paper("PAC-Bayes joint") == 1.020
    assert line.paper(PRUNING) is None
    assert table2.mean_ratios([line])["kd"]["PAC-Bayes joint"] == ratio.value


def test_curves_are_means_by_training_size():
    outcomes = [outcome(r, 0.1 * (r + 1), 0.1, n) for r in range(2) for n in (20, 10)]
    curves = {curve.method: curve for curve in figure2.curves(outcomes)}
    assert curves[PRUNING].rows == (10, 20)
    assert curves[PRUNING].errors[0].value == pytest.approx(0.15)


@pytest.mark.data
def test_wine_has_the_error_that_is_known():
    directory = os.environ.get("CERTREE_DATA")
    if not directory or not (Path(directory) / "wine.parquet").is_file():
        pytest.skip("the tables of the paper are not at hand")
    sample = draw("wine", load("wine", directory), 0)
    assert (len(sample.y), len(sample.y_test)) == (4497, 2000)
    errors = judge("wine", sample, "dyadic", 0).errors
    assert 0.35 < errors[PRUNING] < 0.48
    assert 0.93 < errors["PAC-Bayes joint"] / errors[PRUNING] < 1.07
