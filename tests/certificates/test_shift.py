"""Monitors of bounds: against the product of the formula, and refused arguments."""

import copy
import html
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certree.certificates import Monitor, hold_out
from certree.certificates.shift import _MOST, _MULTIPLES


def product(losses, bound):
    """The mean of the products, one factor after the other."""
    stakes = [(multiple - 1) / (1 - bound) for multiple in _MULTIPLES] + [_MOST / bound / 2]
    products = [
        math.prod(1 + stake * (float(loss) - bound) for loss in losses)
        for stake in np.minimum(stakes, _MOST / bound).tolist()
    ]
    return sum(products) / len(products)


@given(st.lists(st.floats(0, 1), max_size=60), st.floats(0.001, 0.999), st.floats(1e-6, 0.5))
def test_evidence_is_the_mean_of_products(losses, bound, alpha):
    monitor = Monitor(bound, alpha).update(losses)
    paths = [product(losses[:n], bound) for n in range(1, len(losses) + 1)]
    assert monitor.e_value == pytest.approx(paths[-1] if paths else 1.0, rel=1e-9)
    near = any(abs(path * alpha - 1) < 1e-9 for path in paths)
    first = next((n for n, path in enumerate(paths, start=1) if path >= 1 / alpha), None)
    assert near or monitor.first_alarm == first
    assert monitor.broken == (monitor.first_alarm is not None)
    assert monitor.rows == len(losses)


@given(st.lists(st.booleans(), max_size=50), st.data())
def test_rows_may_come_in_any_portions(wrong, data):
    whole = Monitor(0.2).update(wrong)
    parts, left = Monitor(0.2), list(wrong)
    while left:
        n = data.draw(st.integers(1, len(left)))
        parts.update(left[:n] if n > 1 else left[0])
        left = left[n:]
    for name in ("log_e_value", "first_alarm", "rows", "mean_loss"):
        assert getattr(parts, name) == getattr(whole, name)
    assert str(parts) == str(whole)


@pytest.mark.parametrize("bound", [0.01, 0.1, 0.5, 0.9])
def test_every_stake_keeps_the_mean_at_one_while_the_promise_is_just_kept(bound):
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
    assert np.median(alarms) <= 100


def test_a_kept_promise_is_seldom_called_broken():
    """At an error of exactly the bound, tested after each row."""
    alarms = sum(
        Monitor(0.1).update(np.random.default_rng(seed).random(3000) < 0.1).broken
        for seed in range(400)
    )
    assert 0 < alarms <= 0.05 * 400


def test_millions_of_rows_leave_finite_numbers():
    losses = np.zeros(2_000_000)
    kept = Monitor(0.3).update(losses)
    assert kept.e_value == 0
    assert -np.inf < kept.log_e_value < 0
    broken = Monitor(0.3).update(losses + 1)
    assert broken.e_value == np.inf
    assert 0 < broken.log_e_value < np.inf
    assert "inf" in broken._repr_html_()
    assert broken.first_alarm == Monitor(0.3).update(np.ones(100)).first_alarm
    assert len(pickle.dumps(broken)) < 1000


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


def test_a_monitor_says_what_it_has_seen():
    certificate = hold_out(30, 1000)
    monitor = certificate.monitor(alpha=0.01)
    assert monitor.bound == certificate.bound
    assert "No new rows have come in yet" in str(monitor)
    assert monitor.mean_loss is None
    monitor.update([0] * 9 + [1])
    assert str(monitor) == (
        "An error of at most 4.1 % was certified. On 10 new rows it is 10.0 %. This is above the "
        "bound, but may be chance: no alarm (e-value 1, alarm from 100). Add further rows as they "
        "arrive."
    )
    monitor.update(np.ones(10, dtype=bool))
    assert f"Alarm after row {monitor.first_alarm}: the new rows contradict the" in str(monitor)
    assert "the probability of any alarm is at most 1 %. Stop relying on it" in str(monitor)
    assert html.escape(str(monitor)) in monitor._repr_html_()
    again = pickle.loads(pickle.dumps(monitor))
    assert repr(again) == repr(monitor)
    assert again.update([0, 1]).log_e_value == monitor.update([0, 1]).log_e_value
