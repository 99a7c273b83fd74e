"""Counts and labels of nodes against literal ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import NodeStats, Tree, count, grow_kd
from strategies import rows


@given(rows(), rows(max_rows=6), st.booleans())
def test_count_is_the_literal_count(growing, counted, weighted):
    (G, _), (X, y) = growing, counted
    tree = grow_kd(G)
    X = np.resize(X, (len(X), G.shape[1]))
    weight = np.random.default_rng(0).integers(0, 5, len(X)).astype(float) if weighted else None
    stats = count(tree, X, y, 3, sample_weight=weight)
    expected = reference.counts(tree, X, y, 3, weight)
    np.testing.assert_array_equal(stats.counts, expected)
    np.testing.assert_array_equal(stats.label, reference.majority(tree, expected))
    np.testing.assert_array_equal(stats.n, expected.sum(axis=1))
    errors = [row.sum() - row[k] for row, k in zip(expected, stats.label, strict=True)]
    np.testing.assert_array_equal(stats.errors, errors)


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


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"y": [0, 2]}, ValueError, "y must lie in 0 .. 1, got 0 .. 2"),
        ({"y": [-1, 0]}, ValueError, "y must lie in 0 .. 1"),
        ({"y": [0]}, ValueError, r"y must have shape \(2\)"),
        ({"y": [0.0, 1.0]}, TypeError, "y must convert to int32"),
        ({"n_classes": 0}, ValueError, "y must lie in"),
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
        (np.zeros((2, 0)), [0, 0], "at least one class"),
        ([1.0, 2.0], [0, 0], "counts must have shape"),
        ([[1.0, 2.0]], [0, 1], "label must have shape"),
    ],
)
def test_bad_statistics_are_refused(counts, label, message):
    with pytest.raises(ValueError, match=message):
        NodeStats(counts, label)
