"""Guarantees for all thresholds at once, on scores with known distributions.

Misses are counted at every threshold that occurs, and just above it: between two of them counts stay
as they are while the true rates move. Bands use up all of their delta where scores have no ties, so
that a band a tenth too narrow is found out here.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import certree
from certree import (
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    predict_files,
)
from certree.certificates import Guarantees
from certree.certificates.inequalities.bounds import named_cost
from certree.certificates.subsets.families import CertificateTerms
from certree.certificates.thresholds import Limits, ThresholdGuarantees
from certree.cli import app
from certree.export.engines import run_in_onnxruntime
from certree.interface.fitted_state import atomic_fit
from certree.out_of_core.executors import LocalExecutor
from certree.show.page.evaluated_model import EvaluatedModel
from run_length import LONG
from same_models import ChunkedRows

REPEATS = 2000 if LONG else 150
SIZES = (200, 1000, 5000) if LONG else (200,)
DELTA = 0.05


@dataclass(frozen=True)
class Source:
    """Scores u^(1 / power) of uniform u, in steps or in all numbers, of either class."""

    prevalence: float = 0.3
    powers: tuple = (0.6, 2.5)
    steps: int | None = None

    def draw(self, rng, n):
        is_positive = rng.random(n) < self.prevalence
        score = rng.random(n) ** (1 / np.where(is_positive, *self.powers[::-1]))
        return (score if self.steps is None else np.floor(score * self.steps)), is_positive

    def above(self, threshold, which, strictly=False):
        """Probability of a score of at least a threshold, or of one above it."""
        if self.steps is not None:
            threshold = (
                np.ceil(threshold) + strictly * (threshold == np.ceil(threshold))
            ) / self.steps
        return 1 - np.clip(threshold, 0.0, 1.0) ** self.powers[which]


def is_missed(source, found, width=1.0):
    """Whether any limit at any threshold is wrong."""
    share = source.prevalence
    if not holds(found.prevalence, share, width):
        return True
    lower = np.append(found.threshold[1:], -np.inf)
    for threshold, strictly in ((found.threshold, False), (lower, True)):
        alarmed, recall = (source.above(threshold, which, strictly) for which in (0, 1))
        taken = share * recall + (1 - share) * alarmed
        limits = {
            "false_positive_rate": alarmed,
            "recall": recall,
            "predicted_positive_rate": taken,
            "precision": np.where(taken > 0, share * recall / np.where(taken > 0, taken, 1), 1.0),
        }
        if not all(holds(getattr(found, name), true, width) for name, true in limits.items()):
            return True
        cost = 5 * share * (1 - recall) + (1 - share) * alarmed
        if not holds(found.cost(5, 1), cost, width):
            return True
    return False


def holds(limits: Limits, true, width):
    low = limits.observed + width * (limits.lowest - limits.observed)
    high = limits.observed + width * (limits.highest - limits.observed)
    return bool(np.all((low <= true + 1e-12) & (true <= high + 1e-12)))


def judged(source, rng, n, costs=()):
    score, is_positive = source.draw(rng, n)
    return ThresholdGuarantees(1, score, is_positive, CertificateTerms(DELTA, 1.0), costs)


def expect_few(misses, repeats=REPEATS):
    # A rate of delta would pass this with a probability of 0.999.
    assert misses <= binom.ppf(0.999, repeats, DELTA), misses


@pytest.mark.parametrize("n", SIZES)
def test_limits_hold_at_all_thresholds_and_are_no_wider_than_needed(n):
    source = Source()
    rng, misses, of_narrow = np.random.default_rng(n), 0, 0
    for _ in range(REPEATS):
        found = judged(source, rng, n)
        misses += is_missed(source, found)
        of_narrow += is_missed(source, found, width=0.9)
    expect_few(misses)
    assert misses >= 0.3 * DELTA * REPEATS
    assert of_narrow > 3 * binom.ppf(0.999, REPEATS, DELTA)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("prevalence", [0.3, 0.02])
def test_limits_hold_where_scores_are_tied(n, prevalence):
    source = Source(prevalence, steps=12)
    rng = np.random.default_rng(n)
    expect_few(sum(is_missed(source, judged(source, rng, n)) for _ in range(REPEATS)))


@pytest.mark.parametrize("n", SIZES)
def test_limits_hold_for_all_rows_and_all_groups_together(n):
    """All rows are a mixture of the groups, whose rates are known, too."""
    sources = [Source(0.2), Source(0.5, (0.4, 1.5)), Source(0.3, (1.0, 1.0), 5)]
    rng, misses = np.random.default_rng(n), 0
    for _ in range(REPEATS):
        group = rng.integers(0, 3, n)
        score, is_positive = np.empty(n), np.empty(n, dtype=bool)
        for place, source in enumerate(sources):
            own = group == place
            score[own], is_positive[own] = source.draw(rng, own.sum())
        whole = ThresholdGuarantees(1, score, is_positive, CertificateTerms(DELTA, 1.0))
        found = ThresholdGuarantees.divide_delta(whole, ["a", "b", "c"], group).groups
        assert found["a"].terms.share == 0.25
        misses += any(map(is_missed, sources, found.values()))
    expect_few(misses)


@pytest.mark.parametrize("n", (200, 1000) if LONG else (200,))
@pytest.mark.parametrize("costs", [(5, 1), (1, 20)])
def test_named_costs_hold_wherever_the_bound_is_lowest(n, costs):
    source, repeats = Source(0.25, (0.3, 4.0)), 500 if LONG else 60
    rng, misses = np.random.default_rng(n), 0
    for _ in range(repeats):
        point = judged(source, rng, n, (costs,)).lowest_cost(*costs)
        alarmed, recall = (source.above(np.array(point.threshold), which) for which in (0, 1))
        true = costs[0] * 0.25 * (1 - recall) + costs[1] * 0.75 * alarmed
        misses += true > point.cost_at_most
    expect_few(misses, repeats)


def count_low_bounds(errors, n, costs, rates, width=1.0):
    """Count draws of two numbers of errors, (m, 2), whose bound on the cost is too low.

    width: factor of the distance of the bound from the observed cost. Equal draws share one bound,
    and draws that cost more than the rates have no lower bound.
    """
    true, found = np.dot(costs, rates), 0
    for (i, j), times in zip(*np.unique(errors, axis=0, return_counts=True), strict=True):
        observed = (costs[0] * i + costs[1] * j) / n
        if observed < true:
            bound = named_cost(i / n, j / n, *costs, n, 0.0, np.log(DELTA))
            assert bound >= observed
            found += times * (observed + width * (bound - observed) < true)
    return found


# Expected errors and draws: few errors, so that few of the outcomes differ; with LONG also many, which
# are taken together in blocks.
EXPECTED = {(12, 30): 100_000 if LONG else 5000, (3, 25): 100_000 if LONG else 5000}
if LONG:
    EXPECTED |= {(60, 12): 20_000, (400, 1500): 2000}


@pytest.mark.parametrize("n", [3000, 20_000])
@pytest.mark.parametrize("expected", EXPECTED)
@pytest.mark.parametrize("costs", [(1.0, 0.2), (0.05, 1.0)])
def test_bounds_on_named_costs_hold_and_are_no_higher_than_needed(n, expected, costs):
    """At one threshold, whose misses and false alarms are multinomial."""
    rates, repeats = np.array(expected) / n, EXPECTED[expected]
    rng = np.random.default_rng([n, *expected])
    errors = rng.multinomial(n, [*rates, 1 - rates.sum()], size=repeats)[:, :2]
    expect_few(count_low_bounds(errors, n, costs, rates), repeats)
    narrow = count_low_bounds(errors, n, costs, rates, width=0.7)
    assert narrow > binom.ppf(0.999, repeats, DELTA)


# -- where thresholds are applied --------------------------------------------------------------------

# Points of a grid, whose classes have known probabilities.
POINTS = np.stack(np.meshgrid(*2 * [np.arange(64.0)], indexing="ij"), axis=-1).reshape(-1, 2)
NAMES = ["x0", "x1"]
OF_YES = np.where(POINTS.sum(axis=1) > 63, 0.7, 0.3)
FITS = 100 if LONG else 5
HOW = {"duplicates": "genuine", "random_state": 0}


def draw_points(rng, n):
    point = rng.integers(0, len(POINTS), n)
    return POINTS[point], np.where(rng.random(n) < OF_YES[point], "yes", "no")


def fit_tree(X, y, **settings):
    model = CertifiedTreeClassifier(selection="training", **HOW, **settings).fit(X, y)
    return model, model.guarantees_


def fit_best(X, y):
    """The default vote; that of the training rows if calibration rows have chosen another one."""
    model = CertifiedTreeClassifier(**HOW).fit(X, y)
    if not model.guarantees_.fixed:
        model.set_params(selection="training").fit(X, y)
    return model, model.guarantees_


@atomic_fit
def fit_in_blocks(model, X, y):
    model._fit_blocks(LocalExecutor(ChunkedRows(X, y, None, (0, 700, len(y))), None, 1))
    return model


def fit_out_of_core(X, y):
    grower = Cart(max_bins=255)
    model = fit_in_blocks(CertifiedTreeClassifier(grower, selection="training", **HOW), X, y)
    return model, model.guarantees_


def fit_boosted(X, y):
    model = CertifiedBoostedTreesClassifier(max_iter=6, max_leaf_nodes=6, **HOW).fit(X, y)
    return model, model.guarantees_


def fit_forest(X, y):
    half = len(y) // 2
    model = CertifiedForestClassifier(10, max_depth=4, **HOW).fit(X[:half], y[:half])
    return model, Guarantees.by_rows(model, X[half:], y[half:], duplicates="genuine")


FITTED = {
    "tree": fit_tree,
    "tree of the lowest bound": fit_best,
    "small tree": partial(fit_tree, max_leaf_nodes=6),
    "out of core": fit_out_of_core,
    "boosted": fit_boosted,
    "forest": fit_forest,
}


def predict_by_probability(model, guarantees, point, folder):
    positive = [*model.classes_].index(point.positive)
    return model.predict_proba(POINTS)[:, positive] >= point.threshold


def predict_by_guarantees(model, guarantees, point, folder):
    return guarantees.predict_threshold(POINTS, point) == point.positive


def predict_by_sql(model, guarantees, point, folder):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE points (x0, x1)")
        connection.executemany("INSERT INTO points VALUES (?, ?)", POINTS.tolist())
        found = connection.execute(model.to_sql("points", threshold=point)).fetchall()
    return np.array([row[0] for row in found]) == point.positive


def predict_by_onnx(model, guarantees, point, folder):
    """By probabilities of float32, which a program may compare as float64."""
    positive = [*model.classes_].index(point.positive)
    found = run_in_onnxruntime(model.to_onnx(), POINTS.astype(np.float32))[1]
    return found[:, positive].astype(np.float64) >= point.threshold


def predict_by_file(model, guarantees, point, folder):
    predict_files(model, folder / "points.csv", folder / "out.csv", threshold=point)
    return pd.read_csv(folder / "out.csv").prediction.to_numpy() == point.positive


def predict_by_loaded_model(model, guarantees, point, folder):
    loaded = certree.load(folder / "model")
    return predict_by_probability(loaded, None, point, folder)


def predict_by_command(model, guarantees, point, folder):
    threshold = ["--threshold", repr(point.threshold), "--positive", point.positive]
    files = [str(folder / name) for name in ("model", "points.csv", "out.csv")]
    done = CliRunner().invoke(app, ["predict", *files[:2], "-o", files[2], *threshold])
    assert done.exit_code == 0, done.output
    return pd.read_csv(files[2]).prediction.to_numpy() == point.positive


def predict_by_report(model, guarantees, point, folder):
    y = np.resize(model.classes_, len(POINTS))
    how = {"pos_label": point.positive, "threshold": point.threshold}
    return EvaluatedModel.from_rows(model, POINTS, y, **how).predicted == point.positive


APPLIED = [
    *(predict_by_probability, predict_by_guarantees, predict_by_sql, predict_by_onnx),
    *(predict_by_file, predict_by_loaded_model, predict_by_command, predict_by_report),
]


def keeps_limits(point, is_taken):
    """Whether the true rates of a rule are within all limits of an operating point."""
    of_positive = OF_YES if point.positive == "yes" else 1 - OF_YES
    true = {
        "recall": of_positive[is_taken].sum() / of_positive.sum(),
        "false_positive_rate": (1 - of_positive)[is_taken].sum() / (1 - of_positive).sum(),
        "precision": of_positive[is_taken].mean(),
        "predicted_positive_rate": is_taken.mean(),
    }
    return all(holds(getattr(point, name), rate, 1.0) for name, rate in true.items())


@pytest.mark.parametrize("fit", FITTED.values(), ids=FITTED)
def test_limits_hold_wherever_a_threshold_is_applied(fit, tmp_path):
    pd.DataFrame(POINTS, columns=NAMES).to_csv(tmp_path / "points.csv", index=False)
    misses = dict.fromkeys(APPLIED, 0)
    for seed in range(FITS):
        X, y = draw_points(np.random.default_rng(seed), 2000)
        model, guarantees = fit(X, y)
        certree.save(model, tmp_path / "model")
        found = guarantees.thresholds(pos_label=("yes", "no")[seed % 2])
        points = [found.highest_threshold(recall) for recall in (0.3, 0.6, 0.8)]
        for apply in APPLIED:
            kept = [keeps_limits(one, apply(model, guarantees, one, tmp_path)) for one in points]
            misses[apply] += not all(kept)
    for count in misses.values():
        expect_few(count, FITS)
