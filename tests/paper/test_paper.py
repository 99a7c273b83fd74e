"""The paper's experiment: its draws of rows, and its outcomes compared with the public API."""

import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_info, threadpool_limits

import certree
from certree.cli import method_comparison
from certree.files.tables import load
from certree.paper import figure2, rates, table1, table2
from certree.paper.protocol import (
    EXPANDED,
    GIBBS,
    GROWERS,
    HS_LABEL,
    HS_MEAN,
    PAPER_SETS,
    PRUNING,
    UNPRUNED,
    Outcome,
    draw,
    evaluate_methods,
    run,
)
from certree.rows.folds import content_folds
from certree.tables.table import Table


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


def test_no_row_is_drawn_twice():
    # Each row has its own number, so rows can be distinguished.
    numbers = np.arange(4100.0)
    sample = draw("any", Table(numbers[:, None], numbers.astype(int) % 2, ["number"]), repeat=3)
    drawn = np.concatenate([sample.X[:, 0], sample.X_test[:, 0]])
    np.testing.assert_array_equal(np.sort(drawn), numbers)
    np.testing.assert_array_equal(sample.y, sample.X[:, 0] % 2)
    np.testing.assert_array_equal(sample.y_test, sample.X_test[:, 0] % 2)
    # Test rows are drawn at random, not as a block of the table.
    assert np.ptp(sample.X_test) > 4000
    assert 0.3 < np.mean(sample.X_test < 2050) < 0.7


@pytest.mark.parametrize(("rows", "test"), [(4000, 2000), (3999, 1333), (10, 3)])
def test_test_rows_are_two_thousand_or_a_third(rows, test):
    sample = draw("any", synthetic(rows), repeat=0)
    assert (len(sample.y_test), len(sample.y)) == (test, rows - test)


def test_classes_are_numbered_in_their_order():
    table = synthetic(300)
    named = Table(table.X, np.array(["b", "c", "a"])[table.y], table.feature_names)
    sample, renamed = draw("any", table, 0), draw("any", named, 0)
    assert (renamed.n_classes, renamed.y.dtype) == (3, np.int32)
    np.testing.assert_array_equal(renamed.y, np.array([1, 2, 0])[sample.y])
    np.testing.assert_array_equal(renamed.y_test, np.array([1, 2, 0])[sample.y_test])


def test_a_table_without_a_target_is_refused():
    with pytest.raises(ValueError, match="table must have a target"):
        draw("any", Table(np.zeros((9, 1)), None, ["a"]), 0)


def test_a_small_table_may_be_called_crowd():
    sample = draw("crowd", synthetic(300), repeat=0)
    assert (len(sample.y), len(sample.y_test)) == (200, 100)


def test_crowd_is_its_training_file_only():
    table = synthetic(10845)
    table.X[10545:, 0] = 7.0
    sample = draw("crowd", table, repeat=0)
    assert (len(sample.y), len(sample.y_test)) == (8545, 2000)
    assert sample.X[:, 0].max() < 1
    assert sample.X_test[:, 0].max() < 1


def test_a_fraction_of_the_training_rows_leaves_the_test_rows_unchanged():
    table = synthetic(900)
    half, whole = draw("any", table, 0, 0.5), draw("any", table, 0)
    np.testing.assert_array_equal(half.X_test, whole.X_test)
    np.testing.assert_array_equal(half.X, whole.X[: len(half.X)])
    assert len(half.y) == 300


@pytest.mark.parametrize("grower", GROWERS)
def test_outcomes_are_those_of_the_public_functions(grower):
    sample = draw("any", synthetic(600), repeat=0)
    outcome = evaluate_methods("any", sample, grower, 0)
    grow = {
        "dyadic": lambda: certree.grow_dyadic(sample.X, sample.y, max_depth="log"),
        EXPANDED: lambda: certree.grow_dyadic(sample.X, sample.y, max_depth="log", expand=True),
        "kd": lambda: certree.grow_kd(sample.X, sample.y, axis="cycle", max_depth="log"),
        "kd-spread": lambda: certree.grow_kd(sample.X, sample.y, axis="spread", max_depth="log"),
    }
    tree = grow[grower]()
    stats = certree.count(tree, sample.X, sample.y, 3)

    def error(weights):
        label = certree.vote(tree, stats, weights).label[tree.apply(sample.X_test)]
        return np.mean(label != sample.y_test)

    chosen = outcome.temperatures
    pruning = certree.prunings.cost_complexity(tree, stats, *chosen[PRUNING])
    assert outcome.errors[PRUNING] == error(pruning)
    adaptive = certree.prunings.depth_penalised(tree, stats, *chosen["SN-pruning"])
    assert outcome.errors["SN-pruning"] == error(adaptive)
    posterior = certree.pac_bayes(tree, stats, *chosen["PAC-Bayes joint"])
    assert outcome.errors["PAC-Bayes joint"] == error(posterior)
    assert outcome.errors[UNPRUNED] == error(certree.prunings.cost_complexity(tree, stats, 0))
    assert "HS-vote" not in outcome.errors
    score = certree.vote(tree, stats, posterior).score[tree.apply(sample.X_test)]
    gibbs = 1 - np.take_along_axis(score, sample.y_test[:, None], axis=1).mean()
    assert outcome.errors["Gibbs"] == pytest.approx(gibbs)


def test_a_run_does_not_change_the_growers():
    # Repetitions in several threads share them.
    before = {name: repr(grower) for name, grower in GROWERS.items()}
    run(["iris"], list(GROWERS), 2, n_jobs=2)
    assert {name: repr(grower) for name, grower in GROWERS.items()} == before
    assert before == {
        "dyadic": "Dyadic()",
        EXPANDED: "Dyadic(expand=True)",
        "kd": "KD(axis='cycle')",
        "kd-spread": "KD()",
    }


def test_helmbold_and_schapire_vote_on_two_classes():
    outcome = evaluate_methods("any", draw("any", synthetic(400, classes=2), 0), "kd", 0)
    assert 0 < outcome.errors[HS_MEAN] < 0.5
    assert 0 < outcome.errors[HS_LABEL] < 0.5


GRID = [2.0 ** (-8 + 14 * k / 9) for k in range(10)]


def literal_run(sample, grow, posterior, kind, n_temperatures, repeat):
    """Tune inverse temperatures by cross-validation errors, and count the errors on the test rows."""

    def errors(tree, stats, temperatures, X, y):
        score = certree.vote(tree, stats, posterior(tree, stats, *temperatures), kind).score
        leaf = tree.apply(X)
        return sum(
            int(np.argmax(score[node])) != label for node, label in zip(leaf, y, strict=True)
        )

    folds = []
    rng = np.random.RandomState(repeat)
    for fold in content_folds(sample.X, sample.y, 2, rng):
        tree = grow(sample.X[fold.train], sample.y[fold.train])
        stats = certree.count(tree, sample.X[fold.train], sample.y[fold.train], sample.n_classes)
        folds.append((tree, stats, sample.X[fold.validation], sample.y[fold.validation]))
    best = [1.0] * n_temperatures
    for grid in (lambda _: GRID, lambda b: [b / 2 + k * (1.5 * b / 9) for k in range(10)]):
        candidates = list(itertools.product(*[grid(value) for value in best]))
        losses = [
            sum(errors(tree, stats, candidate, X, y) for tree, stats, X, y in folds)
            for candidate in candidates
        ]
        best = candidates[int(np.argmin(losses))]
    tree = grow(sample.X, sample.y)
    stats = certree.count(tree, sample.X, sample.y, sample.n_classes)
    wrong = errors(tree, stats, best, sample.X_test, sample.y_test)
    return best, wrong / len(sample.y_test)


def helmbold_schapire_by_label(tree, stats, inverse_temperature):
    """Return the Helmbold-Schapire posterior whose nodes predict labels, so the loss counts errors."""
    return certree.pac_bayes(tree, stats, inverse_temperature, 0, prior="branching")


@pytest.mark.parametrize(
    ("name", "posterior", "kind", "n_temperatures"),
    [
        (PRUNING, certree.prunings.cost_complexity, "majority", 1),
        ("SN-pruning", certree.prunings.depth_penalised, "majority", 1),
        ("PAC-Bayes joint", certree.pac_bayes, "majority", 2),
        (HS_MEAN, certree.weights.helmbold_schapire, "mean", 1),
        (HS_LABEL, helmbold_schapire_by_label, "majority", 1),
    ],
)
def test_outcomes_are_those_of_a_literal_run(name, posterior, kind, n_temperatures):
    sample = draw("any", synthetic(150, classes=2, seed=4), repeat=5)
    outcome = evaluate_methods("any", sample, "kd", repeat=5)

    def grow(X, y):
        return certree.grow_kd(X, y, axis="cycle", max_depth="log")

    temperatures, error = literal_run(sample, grow, posterior, kind, n_temperatures, 5)
    np.testing.assert_allclose(outcome.temperatures[name], temperatures, rtol=1e-14)
    assert outcome.errors[name] == error
    assert (outcome.dataset, outcome.grower, outcome.repeat) == ("any", "kd", 5)
    assert (outcome.n_train, outcome.n_test) == (100, 50)
    assert outcome.n_nodes == grow(sample.X, sample.y).n_nodes


def test_test_rows_in_leaves_without_training_rows_are_counted():
    # A cross of two lines leaves most of the square empty.
    rng = np.random.default_rng(0)
    line = rng.random(400)
    X = np.where(np.arange(400)[:, None] % 2, np.c_[line, 1 - line], np.c_[line, line])
    sample = draw("any", Table(X, rng.integers(0, 2, 400), ["a", "b"]), 0)
    sample.X_test[:] = rng.random(sample.X_test.shape)
    outcome = evaluate_methods("any", sample, EXPANDED, 0)
    tree = certree.grow_dyadic(sample.X, sample.y, max_depth="log", expand=True)
    leaves_with_rows = set(tree.apply(sample.X))
    outside = np.mean([leaf not in leaves_with_rows for leaf in tree.apply(sample.X_test)])
    assert outcome.outside == outside > 0.2
    assert outcome.n_nodes == tree.n_nodes
    assert evaluate_methods("any", sample, "dyadic", 0).outside is None


def test_outcomes_are_ordered_by_data_set_repetition_fraction_and_grower():
    outcomes = run(["iris", "cultivars"], ["kd", EXPANDED], 2, fractions=(0.5, 1.0))
    assert [(o.dataset, o.repeat, o.n_train, o.grower) for o in outcomes] == [
        (name, repeat, n, grower)
        for name, sizes in (("iris", (50, 100)), ("cultivars", (60, 119)))
        for repeat in (0, 1)
        for n in sizes
        for grower in ("kd", EXPANDED)
    ]


def test_repetitions_differ_and_are_reproducible():
    first = run(["iris"], ["kd"], 3)
    assert run(["iris"], ["kd"], 3) == first
    assert len({str(o.errors) for o in first}) > 1


def test_data_sets_are_read_from_the_directory(tmp_path):
    table = synthetic(90, p=2)
    columns = {"a": table.X[:, 0], "b": table.X[:, 1], "label": table.y}
    pa.parquet.write_table(pa.table(columns), tmp_path / "mine.parquet")
    (outcome,) = run(["mine"], ["kd"], 1, str(tmp_path))
    assert outcome.errors == evaluate_methods("mine", draw("mine", table, 0), "kd", 0).errors


def test_threads_do_not_change_the_outcomes():
    arguments = (["iris", "cultivars"], ["kd", "dyadic"], 2)
    assert run(*arguments) == run(*arguments, n_jobs=2)


def test_bad_arguments_of_a_run_are_refused():
    with pytest.raises(ValueError, match="growers must be some of dyadic, dyadic-expanded, kd"):
        run(["iris"], ["forest"], 1)
    with pytest.raises(ValueError, match="growers must be some of"):
        run(["iris"], [], 1)
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        run(["iris"], ["kd"], 0)
    with pytest.raises(FileNotFoundError, match="data set 'nothing'"):
        run(["nothing"], ["kd"], 1)


def outcome(repeat, pruning, vote, n_train=10, dataset="spam"):
    errors = {PRUNING: pruning, "PAC-Bayes joint": vote}
    return Outcome(dataset, "kd", repeat, n_train, 5, errors, {}, 7, None)


def test_lines_are_means_and_standard_errors():
    outcomes = [outcome(0, 0.2, 0.1), outcome(1, 0.4, 0.4), outcome(2, 0.3, 0.2)]
    (line,) = table2.summarise_outcomes(outcomes)
    baseline, vote = np.array([0.2, 0.4, 0.3]), np.array([0.1, 0.4, 0.2])
    assert line.errors[PRUNING].value == pytest.approx(0.3)
    assert line.errors[PRUNING].standard_error == pytest.approx(baseline.std(ddof=1) / 3**0.5)
    ratio = line.ratios["PAC-Bayes joint"]
    assert ratio.value == pytest.approx(vote.mean() / 0.3)
    error = (vote - baseline).std(ddof=1) / 3**0.5 / 0.3
    assert ratio.standard_error == pytest.approx(error)
    assert line.paper("PAC-Bayes joint") == 1.020
    assert line.paper(PRUNING) is None
    assert table2.compute_mean_ratios([line])["kd"]["PAC-Bayes joint"] == ratio.value


def outcomes_of_two_sets():
    rng = np.random.default_rng(0)
    return [
        Outcome(
            dataset=dataset,
            grower=grower,
            repeat=repeat,
            n_train=10,
            n_test=5,
            errors={
                name: float(rng.uniform(0.1, 0.5))
                for name in table2.METHODS
                if name not in (HS_MEAN, HS_LABEL) or dataset == "spam"
            },
            temperatures={PRUNING: (1.0,)},
            n_nodes=int(rng.integers(1, 9)),
            outside=float(rng.random()) if grower == EXPANDED else None,
        )
        for dataset in ("wine", "spam")
        for repeat in range(4)
        for grower in (EXPANDED, "kd", "dyadic")
    ]


def test_lines_and_mean_ratios_are_those_of_numpy():
    outcomes = outcomes_of_two_sets()
    table = table2.summarise_outcomes(outcomes)
    assert [(line.grower, line.dataset) for line in table] == [
        (grower, dataset) for grower in ("dyadic", EXPANDED, "kd") for dataset in ("wine", "spam")
    ]
    ratios = {}
    for line in table:
        group = [o for o in outcomes if (o.dataset, o.grower) == (line.dataset, line.grower)]
        baseline = np.array([o.errors[PRUNING] for o in group])
        for name in (HS_MEAN, HS_LABEL):
            assert (name in line.ratios) == (line.dataset == "spam")
        assert set(line.errors) == set(line.ratios) == set(group[0].errors)
        for name, ratio in line.ratios.items():
            errors = np.array([o.errors[name] for o in group])
            assert line.errors[name].value == pytest.approx(errors.mean())
            assert line.errors[name].standard_error == pytest.approx(errors.std(ddof=1) / 2)
            assert ratio.value == pytest.approx(errors.mean() / baseline.mean())
            difference = (errors - baseline).std(ddof=1) / 2
            assert ratio.standard_error == pytest.approx(difference / baseline.mean())
            ratios.setdefault((line.grower, name), []).append(ratio.value)
        assert line.n_nodes == np.mean([o.n_nodes for o in group])
        if line.grower == EXPANDED:
            assert line.outside == pytest.approx(np.mean([o.outside for o in group]))
        else:
            assert line.outside is None
    means = table2.compute_mean_ratios(table)
    assert {(p, name) for p, row in means.items() for name in row} == set(ratios)
    for (grower, name), values in ratios.items():
        assert len(values) == (1 if name in (HS_MEAN, HS_LABEL) else 2)
        assert means[grower][name] == pytest.approx(np.mean(values))


def test_one_repetition_has_no_standard_error():
    (line,) = table2.summarise_outcomes([outcome(0, 0.2, 0.1)])
    assert math.isnan(line.errors[PRUNING].standard_error)
    assert math.isnan(line.ratios["PAC-Bayes joint"].standard_error)
    assert line.ratios["PAC-Bayes joint"].value == 0.5
    assert str(line.ratios["PAC-Bayes joint"]) == "0.500"
    assert str(table2.Mean(0.12345, 0.0067)) == "0.123 ±0.007"


def test_a_set_without_errors_has_no_ratios():
    (line,) = table2.summarise_outcomes([outcome(0, 0.0, 0.0), outcome(1, 0.0, 0.1)])
    assert math.isnan(line.ratios["PAC-Bayes joint"].value)
    assert line.errors["PAC-Bayes joint"].value == 0.05


@pytest.mark.parametrize(
    ("grower", "dataset", "method", "ratio"),
    [
        ("dyadic", "spam", "SN-pruning", 1.118),
        ("dyadic", "spam", "PAC-Bayes joint", 0.975),
        ("dyadic", "spam", "HS-vote", 1.224),
        ("dyadic", "digit", "PAC-Bayes error-first", 0.936),
        ("kd", "epileptic", "HS-vote", 0.907),
        ("kd", "letter", "PAC-Bayes joint", 1.001),
        ("kd", "crowd", "HS-vote", None),
        ("kd", "wine", PRUNING, None),
        ("kd", "wine", UNPRUNED, None),
        ("kd", "wine", GIBBS, None),
        ("kd", "iris", "SN-pruning", None),
        ("kd-spread", "wine", "SN-pruning", None),
        (EXPANDED, "wine", "SN-pruning", 1.035),
        (EXPANDED, "spam", HS_LABEL, 1.224),
    ],
)
def test_the_paper_s_numbers(grower, dataset, method, ratio):
    line = table2.Line(dataset, grower, {}, {}, None, 1.0)
    assert line.paper(method) == ratio


def test_the_paper_has_seven_sets_on_two_growers():
    for rows in table2.PAPER.values():
        assert list(rows) == ["spam", "eeg", "epileptic", "crowd", "wine", "digit", "letter"]
        # Helmbold and Schapire's vote is for two classes.
        assert [name for name, row in rows.items() if row[2] is not None] == list(rows)[:3]
    assert set(table2.PAPER) == {"dyadic", "kd"}


def test_notes_explain_table_2():
    table = table2.summarise_outcomes(outcomes_of_two_sets())
    text = "\n".join(table2.write_notes(table))
    for line in table:
        if line.outside is not None:
            assert f"{line.dataset} {100 * line.outside:.1f} %" in text
    assert "spam, wine: some test rows equal training rows" in text
    assert "epileptic" not in text
    assert "threshold" not in text
    borders = [make_line(grower, "digit", 1.0) for grower in ("dyadic", EXPANDED)]
    assert "rows on a threshold" in "\n".join(table2.write_notes(borders))
    errors = {(line.dataset, line.grower): line.errors[PRUNING].value for line in table}
    for name in ("wine", "spam"):
        assert f"{name} {errors[name, 'dyadic']:.3f} and {errors[name, EXPANDED]:.3f}" in text
    kd = [line for line in table if line.grower == "kd"]
    text = "\n".join(table2.write_notes(kd))
    assert "outside" not in text
    assert "every cell" not in text
    spam = kd[1].ratios
    distances = [abs(spam[name].value - 1.075) for name in (HS_MEAN, HS_LABEL)]
    assert f"ratios {distances[0]:.3f} and {distances[1]:.3f}" in text
    assert "HS-vote" not in "\n".join(table2.write_notes(kd[:1]))


def make_line(grower, dataset, ratio, standard_error=0.01, method="PAC-Bayes joint"):
    ratios = {PRUNING: table2.Mean(1.0, 0.0), method: table2.Mean(ratio, standard_error)}
    return table2.Line(dataset, grower, ratios, ratios, None, 1.0)


@pytest.mark.parametrize(
    ("ratio", "standard_error", "far"),
    [
        (0.936, 0.0, False),
        (0.9364, 0.0, False),
        (0.9366, 0.0, True),
        (0.956, 0.01, False),
        (0.957, 0.01, True),
        (0.915, 0.01, True),
        (2.0, math.nan, False),
    ],
)
def test_a_ratio_is_far_beyond_two_standard_errors_and_the_rounding(ratio, standard_error, far):
    line = make_line("dyadic", "digit", ratio, standard_error)
    assert line.is_far("PAC-Bayes joint") == far
    assert not line.is_far(PRUNING)
    assert [ratio.method for ratio in table2.find_distant_ratios([line])] == [
        "PAC-Bayes joint"
    ] * far


def test_reasons_come_from_the_expanded_tree_or_from_examined_figures(monkeypatch):
    routed, near = make_line("dyadic", "digit", 1.0), make_line(EXPANDED, "digit", 0.94)
    far = make_line(EXPANDED, "digit", 1.0)

    def reasons(*table):
        return [ratio.reason for ratio in table2.find_distant_ratios(table)]

    assert reasons(routed, near) == ["empty cells: 0.940 with them"]
    monkeypatch.setattr(table2, "EXAMINED", {})
    assert reasons(routed, far) == ["not examined"] * 2
    for figures, expected in (
        ((0.93, 1.01, 0.9, 1.0), "draw: 0.930 to 1.010"),
        ((0.98, 1.01, 0.95, 1.0), "unknown: 0.950 at best"),
        ((0.98, 1.01, 0.95, 0.967), "silent cells: 0.967"),
        ((0.98, 1.01, 0.95, 0.969), "unknown: 0.950 at best"),
        ((0.98, 1.01, 0.93, 1.0), "temperatures: 0.980 to 1.010"),
    ):
        monkeypatch.setattr(table2, "EXAMINED", {(EXPANDED, "digit", "PAC-Bayes joint"): figures})
        assert reasons(far) == [expected]


def test_examined_ratios_are_those_of_the_paper_s_table():
    for (grower, dataset, method), (smallest, largest, best, silent) in table2.EXAMINED.items():
        assert make_line(grower, dataset, 1.0, method=method).paper(method) is not None
        assert 0.5 < best <= largest
        assert smallest <= largest < 2
        assert best <= silent + 0.03


def test_results_are_written_as_json():
    outcomes = outcomes_of_two_sets()
    table, curves = table2.summarise_outcomes(outcomes), figure2.summarise_curves(outcomes)
    content = json.loads(json.dumps(table2.to_json(outcomes, table)))
    assert content["experiment"] == "table2"
    assert content["outcomes"][3]["errors"] == outcomes[3].errors
    assert content["mean_ratios"] == table2.compute_mean_ratios(table)
    assert content["table"][0]["ratios"]["Gibbs"]["value"] == table[0].ratios["Gibbs"].value
    content = json.loads(json.dumps(figure2.to_json(outcomes, curves)))
    assert content["experiment"] == "figure2"
    assert len(content["outcomes"]) == len(outcomes)
    assert content["curves"][0]["errors"][0]["value"] == curves[0].errors[0].value


def test_curves_are_grouped_by_grower_set_and_method():
    outcomes = outcomes_of_two_sets()
    curves = figure2.summarise_curves(outcomes)
    assert {(c.grower, c.dataset, c.method) for c in curves} == {
        (o.grower, o.dataset, name) for o in outcomes for name in o.errors
    }
    assert len({(c.grower, c.dataset, c.method) for c in curves}) == len(curves)
    for curve in curves:
        errors = [
            o.errors[curve.method]
            for o in outcomes
            if (o.grower, o.dataset) == (curve.grower, curve.dataset)
        ]
        assert curve.rows == (10,)
        assert curve.errors[0].value == pytest.approx(np.mean(errors))
        assert curve.errors[0].standard_error == pytest.approx(np.std(errors, ddof=1) / 2)


def test_figure2_has_five_fractions_from_half_to_all():
    assert figure2.FRACTIONS == (0.5, 0.625, 0.75, 0.875, 1.0)


def test_curves_are_means_by_training_size():
    outcomes = [outcome(r, 0.1 * (r + 1), 0.1, n) for r in range(2) for n in (20, 10)]
    curves = {curve.method: curve for curve in figure2.summarise_curves(outcomes)}
    assert curves[PRUNING].rows == (10, 20)
    assert curves[PRUNING].errors[0].value == pytest.approx(0.15)


# -- rates -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trials():
    return rates.simulate([2, 3], [512, 128], repeats=2, noise=0.1)


def test_every_rule_is_tried_on_every_sample(trials):
    cases = [(t.dimension, t.boundary, t.rows, t.repeat, t.rule) for t in trials]
    assert cases == [
        (dimension, boundary.name, n, repeat, rule.name)
        for dimension in (2, 3)
        for boundary in rates.BOUNDARIES
        for n in (128, 512)
        for repeat in range(2)
        for rule in rates.RULES
    ]
    assert all(0 <= trial.excess <= 0.8 and trial.leaves >= 1 for trial in trials)


def test_trials_do_not_depend_on_threads(trials):
    assert rates.simulate([3, 2], [128], 1, 0.1, n_jobs=2) == [
        trial
        for dimension in (3, 2)
        for trial in trials
        if (trial.dimension, trial.rows, trial.repeat) == (dimension, 128, 0)
    ]


def test_the_excess_is_the_error_minus_the_bayes_error(trials):
    boundary = rates.BOUNDARIES[1]
    _, y = rates.draw_rows(boundary, 2, 512, 1, 0.1)
    # With the printed constant only the root is left, which misclassifies the rarer class.
    (trial,) = (
        t
        for t in trials
        if (t.dimension, t.boundary, t.rows, t.repeat, t.rule)
        == (2, "smooth", 512, 1, "(2) as printed")
    )
    assert trial.leaves == 1
    X_new, y_new = rates.draw_rows(boundary, 2, 200_000, 5, 0.1)
    error = np.mean(y_new != np.bincount(y).argmax())
    bayes = np.mean(y_new != boundary.is_above(X_new))
    assert bayes == pytest.approx(0.1, abs=0.003)
    assert trial.excess == pytest.approx(error - bayes, abs=0.005)


def test_boundaries_have_their_smoothness():
    u = np.linspace(0, 1, 10_001)[:, None]
    for boundary in rates.BOUNDARIES:
        heights = boundary.wave(u)[:, 0]
        assert (heights.min(), heights.max()) == pytest.approx((-1, 1), abs=1e-6)
        slopes = np.diff(heights) / 1e-4
        # The slope of a Lipschitz boundary jumps at its bends.
        jump = np.abs(np.diff(slopes)).max()
        assert (jump > 1) == (boundary.smoothness == 1)
        X = np.column_stack([u[:, 0], np.full(len(u), 0.48)])
        assert 0.3 < boundary.is_above(X).mean() < 0.7
        assert not boundary.is_above(np.zeros((1, 3))).any()
        assert boundary.is_above(np.ones((1, 3))).all()


def test_even_points_fill_every_cell():
    for dimension in (2, 3):
        points = rates.generate_even_points(dimension, 4096)
        cells, counts = np.unique(np.floor(points * 8), axis=0, return_counts=True)
        assert len(cells) == 8**dimension
        assert counts.max() <= 2 * 4096 / 8**dimension


def test_fitted_exponents_are_those_of_exact_powers():
    sizes = [256, 1024, 4096, 16384]
    errors = 3 * rates.compute_log_n_over_n(sizes) ** 0.4
    fitted = rates.fit_exponent(sizes, errors)
    assert fitted.value == pytest.approx(0.4)
    assert fitted.standard_error == pytest.approx(0, abs=1e-9)
    assert math.isnan(rates.fit_exponent(sizes[:2], errors[:2]).standard_error)
    for case in ((sizes[:1], errors[:1]), (sizes, errors * [1, 1, 1, 0])):
        assert math.isnan(rates.fit_exponent(*case).value)
    noisy = errors * [1.0, 1.2, 0.9, 1.1]
    x, y = np.log(rates.compute_log_n_over_n(sizes)), np.log(noisy)
    slope, covariance = np.polyfit(x, y, 1, cov=True)
    fitted = rates.fit_exponent(sizes, noisy)
    assert fitted.value == pytest.approx(slope[0])
    assert fitted.standard_error == pytest.approx(covariance[0, 0] ** 0.5)


@pytest.mark.slow
def test_rates_are_means_and_exponents_of_the_larger_sizes(trials):
    found = rates.summarise_trials(trials)
    assert len(found) == 2 * 2 * len(rates.RULES)
    theory = {}
    for rate in found:
        group = [
            trial
            for trial in trials
            if (trial.dimension, trial.boundary, trial.rule)
            == (rate.dimension, rate.boundary, rate.rule)
        ]
        assert rate.rows == (128, 512)
        assert rate.fitted_rows == (512,)
        assert math.isnan(rate.fitted.value)
        for n, excess, leaves in zip(rate.rows, rate.excess, rate.leaves, strict=True):
            values = [trial.excess for trial in group if trial.rows == n]
            assert excess.value == pytest.approx(np.mean(values))
            assert leaves == np.mean([trial.leaves for trial in group if trial.rows == n])
        theory[rate.dimension, rate.boundary, rate.rule] = rate.theory
    assert theory[2, "smooth", "(1) square root"] == pytest.approx(1 / 3)
    assert theory[3, "smooth", "(2) spatially adaptive"] == pytest.approx(1 / 3)
    assert theory[3, "Lipschitz", "decorated"] == pytest.approx(1 / 3)
    assert theory[3, "smooth", "decorated"] == pytest.approx(3 / 7)
    content = json.loads(json.dumps(rates.to_json(trials, found)))
    assert content["experiment"] == "rates"
    assert content["trials"][0]["excess"] == trials[0].excess
    assert content["rates"][0]["rows"] == [128, 512]


def test_rules_have_the_tree_of_their_theorem():
    paper = [rule.model for rule in rates.RULES if rule.name.startswith("(")]
    assert len(paper) == 3
    for model in paper:
        assert repr(model.grower) == "Dyadic(resolution='paper')"
        assert model.rule.count_empty
    alphas = [model.alpha for model in paper]
    assert alphas == [rates.SCALE, rates.SCALE, 1.0]
    # Rules are cloned for each sample.
    assert not any(hasattr(rule.model, "tree_") for rule in rates.RULES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [256], 1), "dimensions must be at least one integer, each at least 2"),
        (([], [256], 1), "dimensions must be at least one integer, each at least 2"),
        (([2], [], 1), "sizes must have"),
        (([2], [256], 0), "repeats must be at least 1"),
        (([2], [256], 1, 0.5), "noise must be at least 0 and less than 0.5"),
        (([2], [256], 1, float("nan")), "noise must be at least 0 and less than 0.5"),
        (([3], [16, 256], 1), "16 rows .*are too few to halve each of 3 features"),
    ],
)
def test_bad_arguments_of_simulations_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        rates.simulate(*arguments)


# -- Table 1 ---------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_drawn_rows():
    table = synthetic(900, p=4)
    table.X[10], table.y[10] = table.X[3], table.y[3]
    table.X[11], table.y[11] = table.X[3], (table.y[3] + 1) % 3
    found = table1.measure_dataset("mine", table)
    assert found.sizes == (4, 3, 600)
    assert (found.n_test, found.rows, found.repeated) == (300, 900, 1)
    assert found.rarest == min(np.sum(table.y == k) for k in range(3))
    assert found.paper is None


def test_the_paper_s_table1_has_the_sets_of_the_experiment():
    assert tuple(table1.PAPER) == PAPER_SETS
    assert table1.PAPER["crowd"] == (28, 6, 8546)
    assert table1.PAPER["wine"] == (12, 11, 4497)


def test_notes_of_table1_explain_differences():
    crowd = synthetic(10845, p=2)
    tables = {"wine": synthetic(60), "crowd": crowd, "epileptic": synthetic(60)}
    tables["wine"].X[1], tables["wine"].y[1] = tables["wine"].X[0], tables["wine"].y[0]
    found = table1.measure_datasets(tables)
    text = "\n".join(table1.write_notes(found))
    assert f"3 occur, the rarest in {found[0].rarest} rows" in text
    assert "the 10545 rows of UCI's training file; 300 of another class mix" in text
    assert "epileptic: 23 rows of each of 500 recordings" in text
    assert "earlier one: wine 1." in text
    assert len(table1.write_notes([table1.measure_dataset("mine", synthetic(60))])) == 1
    content = json.loads(json.dumps(table1.to_json(found)))
    assert content["experiment"] == "table1"
    assert content["table"][0]["paper"] == [12, 11, 4497]
    assert content["table"][0]["features"] == 3


@pytest.mark.data
def test_the_tables_of_the_paper_have_its_sizes_with_two_exceptions():
    directory = os.environ.get("CERTREE_DATA")
    if not directory or not (Path(directory) / "wine.parquet").is_file():
        pytest.skip("the tables of the paper are not at hand")
    found = table1.measure_datasets({name: load(name, directory) for name in PAPER_SETS})
    different = {line.dataset: line.sizes for line in found if line.sizes != line.paper}
    assert different == {"crowd": (28, 6, 8545), "wine": (12, 7, 4497)}
    repeated = {line.dataset: line.repeated for line in found if line.repeated}
    assert repeated == {"spam": 391, "crowd": 1, "wine": 1177, "letter": 1332}


@pytest.mark.data
def test_wine_has_the_expected_error():
    directory = os.environ.get("CERTREE_DATA")
    if not directory or not (Path(directory) / "wine.parquet").is_file():
        pytest.skip("the tables of the paper are not at hand")
    sample = draw("wine", load("wine", directory), 0)
    assert (len(sample.y), len(sample.y_test)) == (4497, 2000)
    errors = evaluate_methods("wine", sample, "dyadic", 0).errors
    assert 0.35 < errors[PRUNING] < 0.48
    assert 0.93 < errors["PAC-Bayes joint"] / errors[PRUNING] < 1.07


class FeatureProbability:
    """A classifier whose probability of the first class is the first feature."""

    def fit(self, _, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([X[:, 0], 1 - X[:, 0]])


def test_comparison_uses_one_thread_of_openmp(monkeypatch):
    """Threads of scikit-learn's boosting that spin make the demo slow on a busy machine."""
    threads = []

    class Watched(FeatureProbability):
        def fit(self, X, y):
            threads.extend(
                pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"
            )
            return super().fit(X, y)

    monkeypatch.setattr(method_comparison, "METHODS", {"watched": Watched})
    X, y = np.linspace(0.1, 0.9, 40)[:, None], np.arange(40) % 2
    with threadpool_limits(2, user_api="openmp"):
        method_comparison.compare_methods(X, y, 1)
    assert threads
    assert {*threads} == {1}


def test_comparison_measures_error_log_loss_and_calibration(monkeypatch):
    monkeypatch.setattr(method_comparison, "METHODS", {"feature": FeatureProbability})
    rng = np.random.default_rng(0)
    X = rng.uniform(0.05, 0.95, size=(400, 1))
    y = np.where(rng.random(400) < X[:, 0], "a", "b")
    calls = []
    (found,) = method_comparison.compare_methods(X, y, 2, lambda: calls.append(1))
    confidences, is_right, losses = [], [], []
    for seed in range(2):
        _, rows, _, truth = train_test_split(
            X, y, test_size=method_comparison.TEST_SIZE, random_state=seed, stratify=y
        )
        for (first,), label in zip(rows, truth, strict=True):
            confidences.append(max(first, 1 - first))
            is_right.append((first >= 0.5) == (label == "a"))
            losses.append(-np.log(first if label == "a" else 1 - first))
    order = sorted(range(len(confidences)), key=lambda i: confidences[i])
    groups = [order[24 * k : 24 * k + 24] for k in range(10)]
    gaps = [abs(np.mean([confidences[i] - is_right[i] for i in group])) for group in groups]
    assert found.name == "feature"
    assert found.error == pytest.approx(1 - np.mean(is_right))
    assert found.log_loss == pytest.approx(np.mean(losses))
    assert found.calibration == pytest.approx(np.mean(gaps))
    assert found.seconds > 0
    assert calls == [1, 1]
