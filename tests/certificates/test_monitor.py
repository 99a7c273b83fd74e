"""Monitors of bounds: against all start times written out, and refused arguments."""

import copy
import html
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
import reference
from certree.certificates import Monitor, hold_out
from certree.certificates.monitor import _compute_log_weights, compute_later_weight
from model_files import (
    SHAPES_AND_TYPES,
    expect_refusal,
    list_wrong_shapes,
    read_arrays,
    replace_value,
    rewrite,
    save_and_load,
)


@given(
    st.lists(st.floats(0, 1) | st.integers(0, 1), max_size=40),
    st.floats(0.001, 0.999),
    st.floats(1e-3, 0.5),
    st.integers(1, 3),
)
def test_evidence_is_the_mixture_of_products_over_start_times(losses, bound, alpha, block):
    monitor = Monitor(bound, alpha, block=block).update(losses)
    evidence, alarm, change = reference.watch_losses(losses, bound, alpha, block)
    assert monitor.e_value == pytest.approx(evidence[-1], rel=1e-9)
    assert monitor.rows == len(losses)
    assert monitor.broken == (monitor.first_alarm is not None)
    if all(abs(value * alpha - 1) > 1e-9 for value in evidence):
        assert monitor.first_alarm == alarm
        assert (monitor.likely_change is None) == (change is None)


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_likely_change_is_the_start_with_the_largest_capital(block, seed):
    rng = np.random.default_rng(seed)
    losses = np.r_[rng.random(60) < 0.1, rng.random(100) < 0.7].astype(float)
    monitor = Monitor(0.2, block=block).update(losses)
    _, alarm, change = reference.watch_losses(losses.tolist(), 0.2, 0.05, block)
    assert (monitor.first_alarm, monitor.likely_change) == (alarm, change)
    assert 40 < change < alarm < 120


def test_weights_of_start_times_sum_to_one():
    starts = np.arange(1, 100_001)
    weights = np.exp(_compute_log_weights(starts))
    assert weights.sum() + compute_later_weight(100_000) == pytest.approx(1)
    np.testing.assert_allclose(
        weights, compute_later_weight(starts - 1) - compute_later_weight(starts), rtol=1e-8
    )
    assert compute_later_weight(0) == 1
    assert compute_later_weight(1e300) < 0.01


@given(st.lists(st.booleans(), max_size=50), st.data())
def test_rows_may_come_in_any_portions(wrong, data):
    block = data.draw(st.integers(1, 4))
    whole = Monitor(0.2, block=block).update(wrong)
    parts, left = Monitor(0.2, block=block), list(wrong)
    while left:
        n = data.draw(st.integers(1, len(left)))
        parts.update(left[:n] if n > 1 else left[0])
        left = left[n:]
    for name in ("log_e_value", "first_alarm", "likely_change", "rows", "mean_loss"):
        assert getattr(parts, name) == getattr(whole, name)
    assert str(parts) == str(whole)
    np.testing.assert_array_equal(parts.window_means[1], whole.window_means[1])


@pytest.mark.parametrize("bound", [0.01, 0.1, 0.5, 0.9])
def test_the_mean_stays_at_one_while_the_bound_is_just_kept(bound):
    before = Monitor(bound)
    wrong, right = (copy.deepcopy(before).update(loss).e_value for loss in (1, 0))
    assert bound * wrong + (1 - bound) * right == pytest.approx(1)
    assert right > 0
    assert before.rows == 0


@pytest.mark.parametrize(("bound", "risk"), [(0.1, 0.2), (0.05, 0.15), (0.3, 0.5)])
def test_a_broken_promise_is_seen_soon(bound, risk):
    alarms = []
    for seed in range(200):
        losses = np.random.default_rng(seed).random(2000) < risk
        alarms.append(Monitor(bound).update(losses).first_alarm)
    assert np.median(alarms) <= 110


def measure_delays(n_good, n_draws):
    """Delays of alarms if errors of 7 % rise to 30 % after good rows, and the bound is 10 %."""
    rng = np.random.default_rng(0)
    delays = []
    for _ in range(n_draws):
        monitor = Monitor(0.1).update(rng.random(n_good) < 0.07)
        assert not monitor.broken
        monitor.update(rng.random(1000) < 0.3)
        delays.append(monitor.first_alarm - n_good)
    return delays


@pytest.mark.slow
def test_a_change_is_seen_soon_also_after_many_good_rows():
    """The test without start times needed 22,404 rows after 100,000 good ones, and 21 after none."""
    assert np.median(measure_delays(0, 400)) <= 40
    assert np.median(measure_delays(100_000, 20)) <= 130


def test_the_likely_change_is_near_the_change():
    rng = np.random.default_rng(1)
    changes = []
    for _ in range(100):
        monitor = Monitor(0.1).update(rng.random(2000) < 0.07).update(rng.random(500) < 0.3)
        changes.append(monitor.likely_change)
    assert np.mean(np.abs(np.array(changes) - 2001) <= 30) > 0.8


@pytest.mark.slow
def test_millions_of_rows_leave_finite_numbers():
    losses = np.zeros(2_000_000)
    kept = Monitor(0.3).update(losses)
    # What is left is the weight of start times that have not come yet.
    assert 0 < kept.e_value < 0.3
    broken = Monitor(0.3).update(losses + 1)
    assert broken.e_value == np.inf
    assert 0 < broken.log_e_value < np.inf
    assert "inf" in broken._repr_html_()
    assert broken.first_alarm == Monitor(0.3).update(np.ones(100)).first_alarm
    assert len(pickle.dumps(broken)) < 5000
    window, means = broken.window_means
    assert (window, len(means)) == (16_384, 123)
    assert (means == 1).all()


def test_the_smallest_bounds_leave_finite_numbers_too():
    monitor = Monitor(5e-324, 5e-324).update([0, 0.5, 1, 0])
    assert np.isfinite(monitor.log_e_value)
    assert Monitor(1 - 1e-16).update([0, 1] * 100).log_e_value < np.inf


def test_an_alarm_stays():
    monitor = Monitor(0.1).update(np.ones(20))
    first = monitor.first_alarm
    monitor.update(np.zeros(1000))
    assert monitor.broken
    assert monitor.first_alarm == first
    assert monitor.e_value < 1


def test_a_cost_is_no_loss():
    with pytest.raises(ValueError, match=r"got 10\.0: divide costs by the largest possible one"):
        Monitor(0.1).update([0, 10])


@pytest.mark.parametrize(
    "losses",
    [[0, 2], [-0.1], [0, math.nan], math.inf, ["a"], [[0, 1]], None, [None, 1], [1j]],
)
def test_losses_that_are_none_change_nothing(losses):
    monitor = Monitor(0.1).update([0, 1, 0.5])
    before = copy.deepcopy(monitor)
    with pytest.raises(ValueError, match="losses must"):
        monitor.update(losses)
    assert str(monitor) == str(before)
    assert monitor.log_e_value == before.log_e_value
    assert monitor.update([]).rows == 3


@pytest.mark.parametrize("number", [0, 1, 1.5, -0.1, math.nan])
def test_numbers_out_of_range_are_refused(number):
    with pytest.raises(ValueError, match="bound must lie between 0 and 1"):
        Monitor(number)
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
        hold_out(1, 10).monitor(number)
    with pytest.raises(TypeError, match="alpha must be a number"):
        Monitor(0.1, "5 %")
    with pytest.raises(ValueError, match="unit must be None or a finite number above 0, got 0"):
        Monitor(0.1, unit=0)
    with pytest.raises(ValueError, match="block must be an integer >= 1, got 0"):
        Monitor(0.1, block=0)
    with pytest.raises(ValueError, match="delta must be at least 0 and below 1, got 1"):
        Monitor(0.1, delta=1)
    with pytest.raises(TypeError, match="block must be"):
        Monitor(0.1, block=2.5)


def test_a_monitor_of_costs_names_them_in_their_unit():
    monitor = Monitor(0.05, unit=10.0)
    assert str(monitor) == (
        "A mean loss of at most 0.5 was certified. No new rows have come in yet: pass their losses to "
        "update."
    )
    text = str(monitor.update([0, 0.1, 0, 0.1]))
    assert text.startswith(
        "A mean loss of at most 0.5 was certified. On 4 new rows it is 0.5. No a"
    )
    assert str(Monitor(0.1).update([0, 1])).startswith(
        "An error of at most 10.0 % was certified. On"
    )


def test_a_bound_of_one_cannot_be_broken():
    with pytest.raises(
        ValueError, match=r"bound must lie between 0 and 1, got 1\.0: no mean loss can"
    ):
        hold_out(10, 10).monitor()


def test_a_batch_counts_once():
    monitor = Monitor(0.1).update([0, 1, 0], batch="May").update([0, 0])
    before = copy.deepcopy(monitor)
    message = (
        "batch must be new, but 'May' was added before, as rows 1 to 3: pass each batch once, and give "
        "another batch another name"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        monitor.update([1, 1], batch="May")
    assert vars(monitor).keys() == vars(before).keys()
    assert (str(monitor), monitor.rows, monitor.batches) == (str(before), 5, ("May",))
    assert monitor.update(np.ones(20), batch="June").batches == ("May", "June")
    assert f"Alarm after row {monitor.first_alarm} (batch 'June')" in str(monitor)
    assert "probably rose at row 6 (batch 'June')" in str(monitor)
    for wrong in ("", "a\n", "x" * 101):
        with pytest.raises(ValueError, match="batch must be printable text of 1 to 100 characters"):
            monitor.update(0, batch=wrong)
    with pytest.raises(TypeError, match="batch must be text, got 5"):
        monitor.update(0, batch=5)
    with pytest.raises(ValueError, match="'empty' was added before, without rows"):
        monitor.update([], batch="empty").update([], batch="empty")


def test_losses_of_another_model_are_refused():
    monitor = hold_out(30, 1000).monitor(model_hash="a1").update([0, 1], model_hash="a1")
    for other in ("b2", None):
        with pytest.raises(ValueError, match=f"that of the monitored model, a1, got {other}: pass"):
            monitor.update([0], model_hash=other)
    assert monitor.rows == 2
    assert Monitor(0.1).update([0], model_hash="b2").rows == 1


def test_losses_that_persist_need_blocks():
    """Runs of 20 equal losses with mean 0.1: hardly a row is independent of the one before."""
    rng = np.random.default_rng(0)
    alarms = {
        block: sum(
            Monitor(0.1, block=block).update(np.repeat(rng.random(200) < 0.1, 20)).broken
            for _ in range(100)
        )
        for block in (1, 100)
    }
    assert alarms[1] > 50
    assert alarms[100] <= 5


def test_windows_have_the_mean_losses():
    losses = np.random.default_rng(0).random(1000)
    monitor = Monitor(0.6)
    for n in (0, 1, 130, 300, 569):
        monitor.update(losses[monitor.rows : monitor.rows + n])
    window, means = monitor.window_means
    assert window == 8
    expected = [losses[i : i + 8].mean() for i in range(0, 1000, 8)]
    np.testing.assert_allclose(means, expected, rtol=1e-12)
    assert len(Monitor(0.5).window_means[1]) == 0


def test_a_monitor_says_what_it_has_seen():
    certificate = hold_out(30, 1000)
    monitor = certificate.monitor(alpha=0.01)
    assert monitor.bound == certificate.bound
    assert "No new rows have come in yet" in str(monitor)
    assert monitor.mean_loss is None
    monitor.update([0] * 9 + [1])
    assert str(monitor) == (
        "An error of at most 4.1 % was certified. On 10 new rows it is 10.0 %. This is above the "
        "bound, but may be chance: no alarm (e-value 1.1, alarm from 100). Add further rows as they "
        "arrive."
    )
    monitor.update(np.ones(10, dtype=bool))
    assert f"Alarm after row {monitor.first_alarm}: the losses probably rose at row" in str(monitor)
    assert "the probability of any alarm would be at most 6 %. Stop relying on" in str(monitor)
    assert monitor.false_alarm_probability == pytest.approx(0.06)
    assert html.escape(str(monitor)) in monitor._repr_html_()
    again = pickle.loads(pickle.dumps(monitor))
    assert repr(again) == repr(monitor)
    assert again.update([0, 1]).log_e_value == monitor.update([0, 1]).log_e_value


# -- files -----------------------------------------------------------------------------------------


def watch_half(block=3):
    """A monitor with state of every kind: an alarm, batches, and a block that is not complete."""
    losses = np.r_[np.zeros(100), np.ones(100)]
    monitor = hold_out(30, 1000).monitor(block=block, model_hash="a1")
    monitor.update(losses[:150], batch="May", model_hash="a1")
    return monitor.update(losses[150:], batch="June, again", model_hash="a1")


def test_a_loaded_monitor_goes_on_where_the_saved_one_stopped(tmp_path):
    monitor = watch_half()
    assert monitor.broken
    loaded = save_and_load(monitor, tmp_path / "state")
    assert repr(loaded) == repr(monitor)
    for each in (loaded, monitor):
        each.update([0, 0.5, 1, 1, 0], batch="July", model_hash="a1")
        with pytest.raises(ValueError, match="'May' was added before, as rows 1 to 150"):
            each.update([0], batch="May", model_hash="a1")
        with pytest.raises(ValueError, match="that of the monitored model, a1, got b2"):
            each.update([0], batch="August", model_hash="b2")
    assert loaded.log_e_value == monitor.log_e_value
    assert loaded._repr_html_() == monitor._repr_html_()
    assert loaded.batches == ("May", "June, again", "July")
    costs = Monitor(0.1, unit=5.0, delta=0.01, alpha=0.02, model_hash="a1")
    loaded = save_and_load(costs, tmp_path / "state")
    assert [getattr(loaded, name) for name in ("unit", "delta", "alpha", "block")] == [
        5,
        0.01,
        0.02,
        1,
    ]


def test_files_of_equal_monitors_are_equal(tmp_path):
    for name in "ab":
        certree.save(watch_half(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_monitor_without_a_model_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="model must be a monitor with a model_hash, so that it"):
        certree.save(hold_out(30, 1000).monitor(), tmp_path / "state")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changed",
    [
        {"rows": 199},
        {"rows": -1},
        {"rows": 2.5},
        {"sum": "many"},
        {"first_alarm": None},
        {"first_alarm": 201},
        {"likely_change": 150},
        {"window": 0},
        {"window": 1},
        {"batches": [["May", 1, 150], ["May", 151, 200]]},
        {"batches": [["May", 1, 201]]},
        {"batches": [["May", 3, 1]]},
        {"batches": [["May", 1]]},
        {"batches": [[5, 1, 2]]},
        {"batches": 5},
        {"batches": [["", 1, 2]]},
        {"parameters": {"bound": 2, "model_hash": "a1"}},
    ],
    ids=str,
)
def test_files_with_wrong_numbers_are_refused(tmp_path, changed):
    certree.save(watch_half(), tmp_path / "state")
    rewrite(tmp_path / "state", **changed)
    expect_refusal(tmp_path / "state")


@pytest.mark.parametrize(
    ("name", "change"),
    list_wrong_shapes(
        ["log_products", "log_capital", "log_largest", "starts", "pending", "window_sums"]
    ),
)
def test_files_with_wrong_arrays_are_refused(tmp_path, name, change):
    path = tmp_path / "state"
    certree.save(watch_half(), path)
    rewrite(path, {name: SHAPES_AND_TYPES[change](read_arrays(path)[name])})
    expect_refusal(path)


@pytest.mark.parametrize("name", ["log_capital", "pending", "starts", "window_sums"])
def test_files_with_numbers_out_of_range_are_refused(tmp_path, name):
    path = tmp_path / "state"
    certree.save(watch_half(), path)
    values = read_arrays(path)[name]
    wrong = -1 if values.dtype.kind == "i" else np.nan
    rewrite(path, {name: replace_value(values, 0, wrong)})
    expect_refusal(path)
