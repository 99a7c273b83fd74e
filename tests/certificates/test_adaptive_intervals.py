"""Adaptive intervals: the guarantee for every sequence of rows, files, and refused arguments."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
import reference
from certree.certificates import AdaptiveIntervals
from model_files import expect_refusal, rewrite, save_and_load

scores = st.floats(0.001, 1000)


@given(
    st.lists(st.lists(scores, min_size=1, max_size=15), min_size=1, max_size=40),
    st.floats(0.05, 0.95),
    st.floats(0.01, 0.5),
    st.integers(0, 3),
)
def test_the_guarantee_holds_for_every_sequence(batches, coverage, step, delay):
    """Targets are at these distances from 0, in units of the model's half widths of 1."""
    adaptive, waiting, missed, issued = AdaptiveIntervals(coverage, step), [], [], []
    for targets in batches:
        intervals = adaptive.adjust([[-1.0, 1.0]] * len(targets))
        issued.append(adaptive.factor)
        waiting.append((intervals, targets))
        if len(waiting) > delay:
            adaptive.update(*waiting.pop(0))
    for intervals, targets in waiting:
        adaptive.update(intervals, targets)
    weights = [min(len(targets), 10) for targets in batches]
    for targets, factor in zip(batches, issued, strict=True):
        missed.append(np.mean([target > factor for target in targets]))
    assert adaptive.covered == pytest.approx(
        1 - np.average(missed, weights=[*map(len, batches)]), abs=1e-9
    )
    largest = max(map(max, batches))
    pending = max(sum(weights[max(i - delay, 0) : i + 1]) for i in range(len(weights)))
    limit = 1 - coverage + (max(math.log(largest), 0) / step + coverage * pending) / sum(weights)
    assert np.average(missed, weights=weights) <= limit + 1e-9
    if not delay:
        expected = reference.adapt_width(batches, coverage, step)
        assert adaptive.factor == pytest.approx(expected, rel=1e-9)


def test_widths_follow_errors_that_grow_and_shrink():
    rng = np.random.default_rng(0)
    adaptive, factors = AdaptiveIntervals(), []
    for size in (1.0, 10.0, 0.5):
        n_before, rows = adaptive.covered, 3000
        inside = 0
        for target in size * rng.normal(size=rows):
            interval = adaptive.adjust([[-1.645, 1.645]])
            inside += interval[0, 0] <= target <= interval[0, 1]
            adaptive.update(interval, [target])
        assert inside / rows == pytest.approx(0.9, abs=0.03)
        factors.append(adaptive.factor)
    assert n_before is not None
    assert factors == pytest.approx([1, 10, 0.5], rel=0.35)


def test_ends_may_be_infinite_and_widths_above_zero():
    adaptive = AdaptiveIntervals().update([[0, 1]], [2.0])
    assert adaptive.factor == pytest.approx(math.exp(0.05 * 0.9))
    np.testing.assert_allclose(
        adaptive.adjust([[-np.inf, np.inf], [1, 3]]),
        [[-np.inf, np.inf], [2 - adaptive.factor, 2 + adaptive.factor]],
    )
    with pytest.raises(ValueError, match="intervals must have two finite or two infinite ends"):
        adaptive.adjust([[-np.inf, 1]])
    assert adaptive.adjust(np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match="intervals must have widths above 0"):
        adaptive.adjust([[1, 1]])
    for _ in range(3):
        adaptive.update([[0, 1]] * 5, np.full(5, 9.0))
    for _ in range(5000):
        adaptive.update([[0, 1]], [9.0])
    assert np.isfinite(adaptive.factor)


@pytest.mark.parametrize(
    ("intervals", "y", "message"),
    [
        ([[0, 1, 2]], [1], "intervals must have shape"),
        ([[2, 1]], [1], r"intervals must hold lower ends .* got \[2.0, 1.0\]"),
        ([[np.nan, 1]], [1], "intervals must hold lower ends"),
        ([[0, 1]], [1, 2], "y must have shape"),
        ([[0, 1]], [np.nan], "y must hold finite numbers"),
    ],
)
def test_wrong_rows_change_nothing(intervals, y, message):
    adaptive = AdaptiveIntervals().update([[0, 1]], [2.0])
    before = copy.deepcopy(adaptive)
    with pytest.raises(ValueError, match=message):
        adaptive.update(intervals, y)
    assert (adaptive.factor, adaptive.rows) == (before.factor, 1)


def test_settings_are_checked():
    for name in ("coverage", "step"):
        for value in (0, 1, math.nan):
            with pytest.raises(ValueError, match=name):
                AdaptiveIntervals(**{name: value})
        with pytest.raises(TypeError, match=name):
            AdaptiveIntervals(**{name: "much"})
    with pytest.raises(ValueError, match="model_hash must be printable text"):
        AdaptiveIntervals(model_hash="")


def test_batches_count_once_and_files_keep_the_state(tmp_path):
    adaptive = AdaptiveIntervals(0.8, model_hash="a1")
    assert str(adaptive).startswith("Intervals shall contain 80 % of the targets. No targets")
    adaptive.update([[0, 1]] * 4, [0.5, 0.5, 2, 2], batch="May", model_hash="a1")
    assert str(adaptive) == (
        "50.0 % of 4 targets were in their intervals (80 % are asked for). Intervals are now 1.06 "
        "times as wide as those of the model."
    )
    loaded = save_and_load(adaptive, tmp_path / "state")
    for each in (adaptive, loaded):
        with pytest.raises(ValueError, match="'May' was added before, as rows 1 to 4"):
            each.update([[0, 1]], [1], batch="May", model_hash="a1")
        with pytest.raises(ValueError, match="must be that of the monitored model, a1, got b2"):
            each.update([[0, 1]], [1], batch="June", model_hash="b2")
        each.update([[0, 1]], [1], batch="June", model_hash="a1")
    assert repr(loaded) == repr(adaptive)
    assert loaded.batches == ("May", "June")
    assert (loaded.coverage, loaded.factor) == (0.8, adaptive.factor)
    with pytest.raises(ValueError, match="model must be adaptive intervals with a model_hash"):
        certree.save(AdaptiveIntervals(), tmp_path / "other")
    for changed in ({"rows": 1}, {"log_factor": 1e9}, {"n_covered": 6}, {"batches": [["", 1, 2]]}):
        certree.save(adaptive, tmp_path / "state")
        rewrite(tmp_path / "state", **changed)
        expect_refusal(tmp_path / "state")


def test_intervals_of_certified_regressors_keep_their_coverage():
    """The noise triples after the fit: fixed intervals then contain far too few targets."""
    rng = np.random.default_rng(0)
    X = rng.random((4000, 2))
    y = X[:, 0] + rng.normal(size=4000) * np.where(np.arange(4000) < 1500, 0.1, 0.3)
    model = certree.CertifiedTreeRegressor(random_state=0).fit(X[:1000], y[:1000])
    fixed, adaptive = model.predict_interval(X[1000:]), AdaptiveIntervals(0.9)
    truth = y[1000:]
    for first in range(0, 3000, 20):
        rows = slice(first, first + 20)
        adaptive.update(adaptive.adjust(fixed[rows]), truth[rows])
    assert np.mean((fixed[:, 0] <= truth) & (truth <= fixed[:, 1])) < 0.65
    assert adaptive.covered == pytest.approx(0.9, abs=0.03)
