"""Sums over leaves that do not depend on the order of rows, compared with exact fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certree import Cart, PACBayesTreeClassifier, PACBayesTreeRegressor
from certree._core import convert_exact_sums, find_group_ranges, sum_groups_exactly
from certree.stats.exact_leaf_sums import (
    LeafGroups,
    count_exactly,
    find_groups,
    measure_exactly,
    reduce_in_memory,
)
from certree.stats.targets import measure_by_leaf
from certree.tree import Tree

# A root whose right child is split again.
TREE = Tree(feature=[0, 0, 0, 0, 0], threshold=[0.0] * 5, left=[1, -1, 3, -1, -1], chain=[1] * 5,
            n_features=1)  # fmt: skip


@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1.0, 1e-300, 1e280, 2.0**-1060]),
    places=st.lists(st.integers(0, 200), min_size=1, max_size=3),
)
def test_sums_of_blocks_are_those_of_all_rows_and_exact_beyond_float64(seed, scale, places):
    rs = np.random.RandomState(seed)
    cell = rs.randint(0, 4, 200).astype(np.int32)
    values = rs.standard_cauchy(200) * scale * np.where(cell == 2, 1e-9, 1.0)
    largest = np.abs(find_group_ranges(cell, values, 4)).max(axis=1)
    largest[~np.isin(np.arange(4), cell)] = 0.0
    order = rs.permutation(200)
    ends = sorted([0, 200, *places])
    blocks = [order[a:b] for a, b in itertools.pairwise(ends)]
    sums = sum(sum_groups_exactly(cell[block], values[block], largest, 200) for block in blocks)
    assert (sums == sum_groups_exactly(cell, values, largest, 200)).all()
    found = convert_exact_sums(sums, largest, 200)
    for c in range(4):
        exact = sum(map(Fraction, values[cell == c].tolist()), Fraction(0))
        error = abs(Fraction(found[c]) - exact)
        # One or two roundings, and digits 90 bits below the largest number.
        assert error <= abs(exact) * Fraction(2) ** -52 + Fraction(largest[c]) * Fraction(2) ** -90


def test_integers_are_added_exactly():
    cell = np.zeros(1000, dtype=np.int32)
    values = np.random.RandomState(0).randint(0, 2**40, 1000).astype(float)
    sums = sum_groups_exactly(cell, values, np.array([values.max()]), 1000)
    assert convert_exact_sums(sums, np.array([values.max()]), 1000)[0] == values.sum()


def test_values_beyond_the_largest_are_refused():
    cell, values = np.zeros(2, dtype=np.int32), np.array([1.0, np.nan])
    for largest in (0.5, 2.0):
        with pytest.raises(ValueError, match="at most the largest"):
            sum_groups_exactly(cell, values, np.array([largest]), 2)


@pytest.mark.parametrize("weighed", [False, True])
def test_exact_moments_equal_other_moments_up_to_rounding(weighed):
    rs = np.random.RandomState(0)
    leaf = rs.choice([1, 3, 4], 500).astype(np.int32)
    y, weight = rs.normal(size=500), rs.rand(500) + 0.1 if weighed else None
    y[leaf == 4] = 2.5
    expected = measure_by_leaf(TREE, leaf, y, weight)
    stats = measure_exactly(TREE, reduce_in_memory(leaf, y, weight), 1.0)
    for name in ("rows", "mean", "sse", "effective_size"):
        np.testing.assert_allclose(getattr(stats, name), getattr(expected, name), rtol=1e-12)
    assert stats.mean[4] == 2.5
    assert stats.sse[4] == 0.0


@given(seed=st.integers(0, 2**32 - 1), place=st.integers(0, 60), n_classes=st.integers(0, 3))
def test_groups_of_blocks_add_up_to_those_of_all_rows(seed, place, n_classes):
    rs = np.random.RandomState(seed)
    leaf, y = rs.randint(0, 9, 60).astype(np.int32), rs.randint(0, max(1, n_classes), 60)
    whole: LeafGroups = reduce_in_memory(leaf, y, None)(find_groups, n_classes)
    blocks = (slice(place), slice(place, None))
    first, second = (
        reduce_in_memory(leaf[block], y[block], None)(find_groups, n_classes) for block in blocks
    )
    for found in (first + second, second + first):
        assert found.number.tolist() == whole.number.tolist()
        assert found.n_rows.tolist() == whole.n_rows.tolist()
        assert found.ends.tolist() == whole.ends.tolist()
    assert whole.n_rows.sum() == 60


def test_class_weights_are_sums_over_their_rows():
    rs = np.random.RandomState(0)
    leaf, y = rs.choice([1, 3], 300).astype(np.int32), rs.randint(0, 3, 300).astype(np.int32)
    weight = rs.rand(300)
    leaves, classes, *sums = count_exactly(reduce_in_memory(leaf, y, weight), 3)
    for v, k, *found in zip(leaves, classes, *sums, strict=True):
        inside = weight[(leaf == v) & (y == k)]
        for terms, number in zip((inside, inside * inside), found, strict=True):
            exact = sum(map(Fraction, terms.tolist()))
            assert abs(Fraction(number) - exact) <= exact * Fraction(2) ** -52
    *_, squared = count_exactly(reduce_in_memory(leaf, y, None), 3)
    assert squared is None


@pytest.mark.parametrize("kind", [PACBayesTreeClassifier, PACBayesTreeRegressor])
@pytest.mark.parametrize("weights", ["real", "integer", None])
def test_the_order_of_rows_does_not_change_a_fit_on_bins(kind, weights):
    rs = np.random.RandomState(0)
    X, y = rs.normal(size=(400, 3)), rs.normal(size=400)
    y = y if kind is PACBayesTreeRegressor else (y > 0.3).astype(int)
    weight = {"real": rs.rand(400), "integer": rs.randint(1, 4, 400), None: None}[weights]
    order = rs.permutation(400)
    moved = X[order], y[order], None if weight is None else weight[order]
    models = [
        kind(Cart(max_bins=20), random_state=0).fit(*rows) for rows in ((X, y, weight), moved)
    ]
    assert models[0].vote_.score.tobytes() == models[1].vote_.score.tobytes()
    assert models[0].best_params_ == models[1].best_params_


def test_numbers_whose_squares_overflow_are_refused():
    X, y = np.arange(20.0)[:, None], np.linspace(-1e200, 1e200, 20)
    with pytest.raises(ValueError, match="must have squared distances from its mean"):
        PACBayesTreeRegressor(Cart(max_bins=9), cv=2).fit(X, y)
