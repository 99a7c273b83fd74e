"""Counts of training and calibration rows, and that no row is in both sets."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
import reference
from certree import NodeStats
from certree.certificates import HeldOut
from certree.certificates.calibration_set import CalibrationSet
from certree.rows.split import TrainCalibrationSplit
from strategies import rows, trees

RNG = np.random.default_rng(0)
X = RNG.random((40, 2))
Y = RNG.integers(0, 3, 40)
GROW, WEIGH = np.arange(15), np.arange(15, 40)
TREE = certree.grow_kd(X[GROW], Y[GROW])


def split(**changes):
    return certree.certificates.held_out(TREE, X, Y, 3, **{"grow": GROW, "weigh": WEIGH} | changes)


@given(st.data(), trees(), rows(max_features=3))
def test_each_side_is_counted_and_the_growing_rows_label(data, tree, table):
    x, y = table
    x = np.column_stack([x] * 3)[:, :3]
    side = data.draw(st.lists(st.sampled_from("gw-"), min_size=len(y), max_size=len(y)))
    grow, weigh = (np.flatnonzero(np.array(side) == name) for name in "gw")
    if not len(weigh):
        with pytest.raises(ValueError, match="stats must count n = 0 >= 1 observations"):
            certree.certificates.held_out(tree, x, y, 3, grow=grow, weigh=weigh)
        return
    held = certree.certificates.held_out(tree, x, y, 3, grow=grow, weigh=weigh)
    assert held.n == len(weigh)
    assert held.n_classes == 3
    for stats, side in ((held.grown, grow), (held.stats, weigh)):
        np.testing.assert_array_equal(
            stats.counts, reference.count_classes(tree, x[side], y[side], 3)
        )
        np.testing.assert_array_equal(stats.label, reference.label_nodes(tree, held.grown.counts))


def test_groups_weigh_the_same_whatever_their_size():
    groups = np.concatenate([np.full(15, -1), np.repeat([7, 8, 9], [1, 4, 20])])
    held = split(groups=groups)
    assert held.n == 3
    assert held.grouped
    weight = 1 / np.repeat([1, 4, 20], [1, 4, 20])
    expected = reference.count_classes(TREE, X[WEIGH], Y[WEIGH], 3, weight)
    np.testing.assert_allclose(held.stats.counts, expected)


def test_a_row_on_both_sides_is_refused():
    with pytest.raises(ValueError, match="cannot certify the tree, got 3 rows that are in both"):
        split(weigh=np.arange(12, 40))
    with pytest.raises(ValueError, match="grow must hold each row index at most once"):
        split(grow=[0, 0, 1])
    with pytest.raises(ValueError, match="weigh must hold each row index at most once"):
        split(weigh=[20, 21, 20])
    with pytest.raises(ValueError, match="calibration set, but 1 are"):
        split(
            groups=np.concatenate([np.arange(20), np.arange(20)]) // 3 + (np.arange(40) >= 20) * 4
        )
    held = split()
    with pytest.raises(ValueError, match="5 rows that are in both"):
        HeldOut(TREE, held.grown, held.stats, np.arange(20), held.weigh, held.n)


def test_row_numbers_are_checked():
    for bad in ([0.5], [[1, 2]], [True, False]):
        with pytest.raises(ValueError, match="grow must be a one-dimensional array of row indices"):
            split(grow=bad)
    for bad in ([-1], [40]):
        with pytest.raises(ValueError, match=r"weigh must lie in 0 .. 39"):
            split(weigh=bad)


def test_statistics_that_do_not_belong_together_are_refused():
    held = split()
    relabelled = NodeStats(held.stats.counts, (held.stats.label + 1) % 3)
    with pytest.raises(ValueError, match=r"stats.label must equal grown.label"):
        HeldOut(TREE, held.grown, relabelled, GROW, WEIGH, 25)
    with pytest.raises(ValueError, match="stats must count n = 24 >= 1 observations, got 25"):
        HeldOut(TREE, held.grown, held.stats, GROW, WEIGH[:24], 24)
    with pytest.raises(ValueError, match="number of calibration rows, 24, got 25"):
        HeldOut(TREE, held.grown, held.stats, GROW, WEIGH[:24], 25)
    weight = np.array([0.5, 1.5] + [1.0] * 23)
    weighted = certree.count(TREE, X[WEIGH], Y[WEIGH], 3, held.grown.label, weight)
    with pytest.raises(ValueError, match="stats must count each calibration row once"):
        HeldOut(TREE, held.grown, weighted, GROW, WEIGH, 25)
    with pytest.raises(ValueError, match="stats has 1 nodes"):
        HeldOut(TREE, NodeStats([[1, 1, 1]], [0]), held.stats, GROW, WEIGH, 25)


def test_a_tree_from_before_the_rows_needs_no_growing_rows():
    held = certree.certificates.held_out(TREE, X, Y, 3, grow=[], weigh=np.arange(40))
    assert held.n == 40
    assert (held.stats.label == 0).all()


def test_a_calibration_set_takes_its_rows_from_the_split_of_a_fit():
    groups = np.repeat(["a", "b", "c", "d"], [15, 1, 4, 20])
    is_worst = np.arange(25) % 5 == 0
    given = np.arange(40) * 2
    kept = TrainCalibrationSplit(GROW, WEIGH, groups, given, 90, 5, is_worst=is_worst)
    found = CalibrationSet.from_split(kept, Y[WEIGH])
    assert (found.n, found.n_given, found.repeats, found.worst) == (3, 90, 5, 5)
    assert found.grouped
    np.testing.assert_array_equal(found.given, given[WEIGH])
    np.testing.assert_array_equal(found.weight, 1 / np.repeat([1, 4, 20], [1, 4, 20]))
    alone = CalibrationSet.from_split(replace(kept, groups=None), Y[WEIGH])
    assert (alone.n, alone.grouped, alone.weight) == (25, False, None)
    with pytest.raises(ValueError, match="groups must be either in the training set or"):
        CalibrationSet.from_split(replace(kept, groups=np.zeros(40)), Y[WEIGH])
    again = pickle.loads(pickle.dumps(found))
    for field in fields(CalibrationSet):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(found, field.name))


def test_rows_of_the_worst_case_and_of_other_classes_are_counted_in_one_further_column():
    leaf, is_worst = TREE.apply(X[WEIGH]), np.arange(25) % 5 == 0
    kept = TrainCalibrationSplit(GROW, WEIGH, is_worst=is_worst)
    found = CalibrationSet.from_split(kept, Y[WEIGH] + (np.arange(25) == 1) * 7)
    grown = split().grown
    counted = np.where(is_worst | (np.arange(25) == 1), 3, Y[WEIGH])
    held = found.count_classes(TREE, grown, leaf, GROW, WEIGH)
    np.testing.assert_array_equal(
        held.stats.counts, reference.count_classes(TREE, X[WEIGH], counted, 4)
    )
    assert held.worst == is_worst.sum()
    np.testing.assert_array_equal(held.grow, GROW)
    np.testing.assert_array_equal(held.weigh, WEIGH)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"given": [0, 9]}, r"given must lie in 0 \.\. 3"),
        ({"y": [0, -1]}, "y must lie in"),
        ({"y": [0.5]}, "y must have shape"),
        ({"weight": [0.5, 1.5]}, "weights of the calibration rows must lie in"),
        ({"is_worst": [True]}, "is_worst must have shape"),
        ({"repeats": "2"}, "repeats must be an integer"),
    ],
)
def test_columns_of_a_calibration_set_that_do_not_go_together_are_refused(changed, message):
    known = {"given": [1, 3], "n_given": 4, "y": [0, 2]}
    assert CalibrationSet(**known).y.dtype == np.int32
    assert CalibrationSet(**{**known, "y": [0.5, 2.0]}).y.dtype == np.float64
    with pytest.raises((ValueError, TypeError), match=message):
        CalibrationSet(**{**known, **changed})
