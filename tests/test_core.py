"""The boundary: the core refuses what it would have to convert, and what would read out of bounds."""

import threading

import numpy as np
import pytest

from certree import _core

LEFT = np.array([1, -1, -1], dtype=np.int32)
ONES = np.ones(3)
GAINS = np.zeros((3, 1))
THETA = np.zeros(1)


def posterior(**changes):
    good = {
        "left": LEFT,
        "gains": GAINS,
        "stop": np.zeros(3),
        "split": np.zeros(3),
        "theta": THETA,
        "root": THETA,
        "prune": False,
    }
    return _core.compute_posterior(**{**good, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"left": LEFT.astype(np.int64)},
        {"left": LEFT.tolist()},
        {"gains": GAINS.astype(np.float32)},
        {"gains": np.zeros((3, 4))[:, ::2]},
        {"gains": np.asfortranarray(np.zeros((3, 2)))},
        {"gains": np.zeros(3)},
        {"stop": np.zeros(6)[::2]},
        {"theta": np.zeros(1, dtype=np.float16)},
        {"theta": None},
    ],
)
def test_other_dtypes_ranks_and_orders_are_type_errors(changes):
    with pytest.raises(TypeError):
        posterior(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gains": np.zeros((2, 1))}, "gains has length 2, expected 3"),
        ({"stop": np.zeros(4)}, "stop has length 4, expected 3"),
        ({"split": np.zeros(4)}, "split has length 4, expected 3"),
        ({"theta": np.zeros(2)}, "theta has length 2, expected 1"),
        ({"left": np.array([0, -1, -1], dtype=np.int32)}, r"left\[0\] = 0 is neither"),
        ({"left": np.array([2, -1, -1], dtype=np.int32)}, r"left\[0\] = 2 is neither"),
        ({"left": np.array([-7, -1, -1], dtype=np.int32)}, r"left\[0\] = -7 is neither"),
        ({"left": np.zeros(0, dtype=np.int32)}, "between 1 and 2147483647 nodes"),
    ],
)
def test_lengths_and_ranges_are_value_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        posterior(**changes)


def test_codes_out_of_range_are_value_errors():
    leaf, y = np.array([1, 2], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    assert _core.count_classes(LEFT, leaf, y, None, 2).tolist() == [[1, 1], [1, 0], [0, 1]]
    with pytest.raises(ValueError, match="y must lie in"):
        _core.count_classes(LEFT, leaf, y, None, 1)
    with pytest.raises(ValueError, match="leaf must lie in"):
        _core.count_classes(LEFT, leaf + np.int32(1), y, None, 2)
    with pytest.raises(ValueError, match="weight has length 3"):
        _core.count_classes(LEFT, leaf, y, ONES, 2)
    with pytest.raises(ValueError, match="label must lie in"):
        _core.score_nodes(LEFT, ONES, np.full(3, 5, dtype=np.int32), None, 2)
    with pytest.raises(ValueError, match="either label or frequency"):
        _core.score_nodes(LEFT, ONES, None, None, 2)
    with pytest.raises(ValueError, match="n_classes must be at least 1"):
        _core.count_classes(LEFT, leaf, y, None, 0)


@pytest.mark.parametrize("n_classes", [2**45, 2**60, 2**61, 2**62, 2**63 - 1])
def test_more_classes_than_memory_holds_are_memory_errors(n_classes):
    leaf, y = np.array([1, 2], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    with pytest.raises(MemoryError, match="not enough memory"):
        _core.count_classes(LEFT, leaf, y, None, n_classes)
    with pytest.raises(MemoryError, match="not enough memory"):
        _core.score_nodes(LEFT, ONES, np.zeros(3, dtype=np.int32), None, n_classes)


def test_merge_order_takes_one_rise_per_node():
    assert _core.find_merge_order(LEFT, ONES).tolist() == [0, -1, -1]
    with pytest.raises(ValueError, match="rise has length 2, expected 3"):
        _core.find_merge_order(LEFT, np.ones(2))
    with pytest.raises(TypeError):
        _core.find_merge_order(LEFT, ONES.astype(np.float32))


def test_sums_below_take_one_value_per_node():
    log_odds = np.array([0.0, -np.inf, -np.inf])
    assert _core.sum_below_nodes(LEFT, log_odds, ONES).tolist() == [1.5, 1, 1]
    with pytest.raises(ValueError, match="value has length 2, expected 3"):
        _core.sum_below_nodes(LEFT, log_odds, np.ones(2))
    with pytest.raises(ValueError, match="log_odds has length 2, expected 3"):
        _core.sum_below_nodes(LEFT, np.ones(2), ONES)


def test_results_own_their_memory():
    weight, _, _ = posterior()
    copies = [posterior()[0] for _ in range(100)]
    assert weight.base is not None
    assert all(np.array_equal(weight, other) for other in copies)
    with pytest.raises(ValueError, match="read-only"):
        weight[0] = 5


@pytest.mark.threads
def test_the_core_runs_in_threads_without_the_lock():
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    expected = _core.grow_kd(X, None, None, 1.0, 100, False, 1)[1]
    results = []

    def work():
        results.append(_core.grow_kd(X, None, None, 1.0, 100, False, 2)[1])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(np.array_equal(result, expected) for result in results)
