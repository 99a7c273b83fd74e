"""Counts, labels and moments of nodes, compared with literal ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import NodeStats, TargetStats, Tree, count, grow_cart, grow_kd, measure
from certree.certificates import branching_prior, held_out
from certree.grow import dyadic_grid
from strategies import rows


@given(rows(), rows(max_rows=6), st.booleans())
def test_count_is_the_literal_count(grow_rows, count_rows, weighted):
    (G, _), (X, y) = grow_rows, count_rows
    tree = grow_kd(G)
    X = np.resize(X, (len(X), G.shape[1]))
    weight = np.random.default_rng(0).integers(0, 5, len(X)).astype(float) if weighted else None
    stats = count(tree, X, y, 3, sample_weight=weight)
    expected = reference.count_classes(tree, X, y, 3, weight)
    np.testing.assert_array_equal(stats.counts, expected)
    np.testing.assert_array_equal(stats.label, reference.label_nodes(tree, expected))
    np.testing.assert_array_equal(stats.n, expected.sum(axis=1))
    errors = [row.sum() - row[k] for row, k in zip(expected, stats.label, strict=True)]
    np.testing.assert_array_equal(stats.errors, errors)


def test_counts_that_differ_by_rounding_alone_are_ties():
    tree, X, y = grow_kd([[0.0], [1.0]]), np.zeros((4, 1)), [0, 0, 1, 1]
    sums = []
    for unit in (1.0, 0.1, 3.7):
        weight = unit * np.array([4.0, 10.0, 11.0, 3.0])
        stats = count(tree, X, y, 2, sample_weight=weight)
        sums += [stats.counts[0]]
        assert stats.label[0] == 0
        np.testing.assert_array_equal(stats.label, reference.label_nodes(tree, stats.counts))
    assert any(first < second for first, second in sums)
    assert count(tree, X, y, 2, sample_weight=[4.0, 10.0, 11.0, 3.0 + 1e-9]).label[0] == 1


def test_given_labels_are_kept():
    tree = grow_kd([[0.0], [1.0]])
    stats = count(tree, [[0.0], [1.0]], [1, 1], 2, label=[0, 1, 0])
    np.testing.assert_array_equal(stats.label, [0, 1, 0])
    np.testing.assert_array_equal(stats.errors, [2, 0, 1])


def test_no_rows_give_class_zero_everywhere():
    tree = grow_kd([[0.0], [1.0]])
    stats = count(tree, np.zeros((0, 1)), np.zeros(0, int), 3)
    assert stats.n.sum() == 0
    assert (stats.label == 0).all()


def test_nodes_without_rows_have_the_label_of_their_parent_or_the_first_class():
    tree = dyadic_grid([0.0], [1.0], 2)
    X, y = [[0.1], [0.2], [0.6]], [1, 1, 2]
    assert count(tree, X, y, 3).label.tolist() == [1, 1, 2, 1, 1, 2, 2]
    first = count(tree, X, y, 3, empty="first")
    assert first.label.tolist() == [1, 1, 2, 1, 0, 2, 0]
    np.testing.assert_array_equal(first.counts, count(tree, X, y, 3).counts)
    # Explicit labels are kept.
    assert count(tree, X, y, 3, [2] * 7, empty="first").label.tolist() == [2] * 7


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"empty": "last"}, ValueError, 'empty must be "parent" or "first", got .last.'),
        ({"y": [0, 2]}, ValueError, "y must lie in 0 .. 1, got 0 .. 2"),
        ({"y": [-1, 0]}, ValueError, "y must lie in 0 .. 1"),
        ({"y": [0]}, ValueError, r"y must have shape \(2\)"),
        ({"y": [0.0, 1.0]}, TypeError, "y must convert to int32"),
        ({"n_classes": 0}, ValueError, "n_classes must be an integer in 1"),
        ({"label": [0]}, ValueError, r"label must have shape \(3\)|stats has 1 nodes"),
        ({"label": [0, 0, 2]}, ValueError, "label must lie in 0 .. 1"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight must have shape"),
        ({"sample_weight": [1.0, np.inf]}, ValueError, "finite and non-negative"),
        ({"X": [[0.0, 1.0], [1.0, 2.0]]}, ValueError, "X has 2 features, but the tree has 1"),
    ],
)
def test_bad_input_is_refused(changes, error, message):
    tree = Tree([0, 0, 0], [0.5, 0, 0], [1, -1, -1], [1, 1, 1], 1)
    good = {"X": [[0.0], [1.0]], "y": [0, 1], "n_classes": 2}
    with pytest.raises(error, match=message):
        count(tree, **{**good, **changes})


@pytest.mark.parametrize(
    ("counts", "label", "message"),
    [
        ([[1.0, -1]], [0], "finite and non-negative"),
        ([[1.0, np.nan]], [0], "finite and non-negative"),
        ([[1e300, 1e300]], [0], r"sum to at most 1e\+280 in a node"),
        (np.zeros((2, 0)), [0, 0], "at least one class"),
        ([1.0, 2.0], [0, 0], "counts must have shape"),
        ([[1.0, 2.0]], [0, 1], "label must have shape"),
    ],
)
def test_bad_statistics_are_refused(counts, label, message):
    with pytest.raises(ValueError, match=message):
        NodeStats(counts, label)


@given(rows(), rows(max_rows=6), st.booleans(), st.sampled_from([0.0, 1e8]))
def test_moments_are_the_literal_ones(grow_rows, measure_rows, weighted, offset):
    (G, _), (X, y) = grow_rows, measure_rows
    tree = grow_kd(G)
    X = np.resize(X, (len(X), G.shape[1]))
    weight = np.random.default_rng(0).integers(0, 5, len(X)).astype(float) if weighted else None
    y = offset + y * 1.25
    stats = measure(tree, X, y, weight)
    n, mean, sse = reference.compute_moments(tree, X, y, weight)
    np.testing.assert_array_equal(stats.n, n)
    np.testing.assert_allclose(stats.mean, mean, rtol=1e-14)
    np.testing.assert_allclose(stats.sse, sse, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(stats.loss, sse / stats.unit, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_targets_have_no_noise(weighted):
    # Ten times 0.1 sum to less than 1.
    X = np.repeat([[0.0], [1.0], [2.0]], 10, axis=0)
    y = np.repeat([0.1, 0.7, -0.3], 10)
    weight = np.tile([0.0, 0.2, 1.4, 2.2, 2.6], 6) if weighted else None
    stats = measure(grow_cart(X, y), X, y, weight)
    leaf = stats.rows < stats.rows[0] / 2
    np.testing.assert_array_equal(np.sort(stats.mean[leaf]), [-0.3, 0.1, 0.7])
    np.testing.assert_array_equal(stats.sse[leaf], 0.0)
    assert stats.unit == stats.sse[0] / stats.rows[0]
    for value in (0.1, -0.0):
        alone = measure(dyadic_grid([0.0], [1.0], 0), X, np.full(30, value), weight)
        assert (alone.mean[0], alone.sse[0], alone.unit) == (value, 0.0, 1.0)
        assert not np.signbit(alone.mean[0]) or value < 0


def test_rows_of_weight_zero_change_no_moments():
    X = np.zeros((11, 1))
    y, weight = np.append(np.full(10, 0.1), 5.0), np.append(np.ones(10), 0.0)
    for order in (slice(None), slice(None, None, -1)):
        stats = measure(dyadic_grid([0.0], [1.0], 0), X, y[order], weight[order])
        assert (stats.mean[0], stats.sse[0]) == (0.1, 0.0)


def test_the_noise_variance_is_that_within_small_nodes():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4000, 1))
    y = 10 * (X[:, 0] > 0.5) + rng.normal(scale=0.3, size=4000)
    stats = measure(grow_kd(X), X, y)
    # One node in 250 holds the step, with a variance of at most 25.
    assert 0.08 < stats.unit < 0.09 + 25 / 250
    assert measure(grow_kd(X), X, np.full(4000, 7.0)).unit == 1.0
    steps = np.floor(8 * X[:, 0])
    assert measure(grow_kd(X), X, steps, unit=3.0).unit == 3.0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"y": [0.0, np.nan]}, ValueError, "y must be finite"),
        ({"y": [0.0]}, ValueError, r"y must have shape \(2\)"),
        ({"y": ["a", "b"]}, TypeError, "y must convert to float64"),
        ({"unit": 0.0}, ValueError, "unit must be a finite number > 0"),
        ({"unit": np.inf}, ValueError, "unit must be a finite number > 0"),
        ({"sample_weight": [1.0, -1.0]}, ValueError, "finite and non-negative"),
    ],
)
def test_bad_targets_are_refused(changes, error, message):
    tree = Tree([0, 0, 0], [0.5, 0, 0], [1, -1, -1], [1, 1, 1], 1)
    with pytest.raises(error, match=message):
        measure(tree, **{"X": [[0.0], [1.0]], "y": [0.0, 1.0], **changes})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([1.0], [0.0, 1.0], [0.0]), "mean must have shape"),
        (([-1.0], [0.0], [0.0]), "rows must be finite and non-negative"),
        (([1e301], [0.0], [0.0]), r"rows must be at most 1e\+280, got 1e\+301"),
        (([1.0], [np.nan], [0.0]), "mean must be finite"),
        (([1.0], [0.0], [-1.0]), "sse must be finite and non-negative"),
    ],
)
def test_bad_moments_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        TargetStats(*columns)


@pytest.mark.parametrize("n_classes", [0, -1, 2.0, "2", None, 2**31, 2**61, 2**70])
def test_bad_numbers_of_classes_are_refused(n_classes):
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    tree = grow_cart(X, y)
    rows = {"grow": [0], "weigh": [1]}
    with pytest.raises(ValueError, match="n_classes must be an integer"):
        count(tree, X, y, n_classes)
    with pytest.raises(ValueError, match="n_classes must be an integer"):
        held_out(tree, X, y, n_classes, **rows)
    with pytest.raises(ValueError, match="n_classes must be an integer"):
        branching_prior(tree, n_classes)


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200, 1e300])
def test_a_target_whose_squares_overflow_or_underflow_is_refused(unit):
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 3, 2, 2, 5.0])
    tree = grow_cart(X, y)
    for weight in (None, np.array([1, 0, 1, 2, 1, 1.0])):
        with pytest.raises(ValueError, match="y must have squared distances from its mean"):
            measure(tree, X, y * unit, weight)


def test_weights_whose_sum_is_too_large_are_refused():
    tree = Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
    weight = np.full(4, 1e308)
    with pytest.raises(ValueError, match=r"sample_weight must sum to at most 1e\+280"):
        count(tree, np.zeros((4, 1)), [0, 1, 0, 1], 2, sample_weight=weight)


def test_squared_weights_that_overflow_give_the_number_of_rows():
    tree = grow_kd([[0.0], [1.0]])
    for unit in (1e-200, 1e200):
        stats = count(tree, [[0.0], [1.0]], [0, 1], 2, sample_weight=[unit, unit])
        found = replace(stats, weight_unit=unit).effective_size
        np.testing.assert_allclose(found, [2, 1, 1])
