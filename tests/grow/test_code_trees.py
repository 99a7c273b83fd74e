"""Rows whose bin codes alone are known reach the leaves of their values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certree.grow import code_trees
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.grow.code_trees import (
    convert_codes_to_floats,
    convert_trees_to_bin_codes,
    find_divided_feature,
    learn_missing_from_codes,
    route_codes,
)
from certree.rows.features import DenseFeatures


@pytest.mark.parametrize("block", [2**20, 7])
@pytest.mark.parametrize("seed", range(3))
def test_leaves_and_missing_values_are_those_of_the_values(seed, block, monkeypatch):
    monkeypatch.setattr(code_trees, "CODES_PER_BLOCK", block)
    rs = np.random.RandomState(seed)
    X = rs.normal(size=(400, 3))
    X[rs.rand(400) < 0.05, 0] = np.nan
    X[:, 2] = rs.randint(0, 9, 400)
    y = np.nan_to_num(X[:, 0]) * X[:, 1] + np.isin(X[:, 2], [1, 4, 6])
    bins = Bins.from_table(DenseFeatures((X,)), [2], max_bins=20)
    tree = BinnedGrower(bins, order="depth").grow_numbers(y, 1).trees.tree(0)
    codes, leaf = np.ascontiguousarray(bins.codes.T), np.empty(400, np.int32)
    route_codes(tree, bins, codes, leaf, 2)
    np.testing.assert_array_equal(leaf, tree.route(X, 1))
    found = learn_missing_from_codes(tree, bins, codes)
    np.testing.assert_array_equal(found.missing_both, tree.learn_missing(X).missing_both)
    assert found.missing_both.any()
    assert not found.missing_both[~tree.is_leaf].all()


def is_divided(trees, X, codes, j):
    """Whether a split on feature j separates rows of one bin, or has a category of no row."""
    for node in np.flatnonzero(~trees.is_leaf & (trees.feature == j)):
        categories = trees.categories[slice(*trees.category_start[node : node + 2])]
        if not set(categories) <= set(X[:, j]):
            return True
        goes_left = np.isin(X[:, j], categories)
        if trees.compares_numbers[node]:
            goes_left = X[:, j] <= trees.threshold[node]
        for code in set(codes[j]):
            if len({*goes_left[codes[j] == code]}) > 1:
                return True
    return False


@given(
    seed=st.integers(0, 2**32 - 1),
    distinct=st.sampled_from([5, 12, 40, 1000]),
    n=st.sampled_from([20, 300]),
    is_same=st.booleans(),
)
@settings(deadline=None)
def test_a_divided_feature_is_one_with_a_bin_on_both_sides_of_a_split(seed, distinct, n, is_same):
    rs = np.random.RandomState(seed)
    X, others = rs.randint(0, distinct, (2, 300, 2)).astype(float)
    others = X if is_same else others[:n]
    y = X[:, 0] * np.isin(X[:, 1] % 7, [1, 4, 6])
    bins = Bins.from_table(DenseFeatures((X,)), [1], max_bins=20)
    trees = BinnedGrower(bins, max_leaves=30).grow_numbers(y, 3).trees
    other_bins = Bins.from_table(DenseFeatures((others,)), [1], max_bins=20)
    divided = [j for j in range(2) if is_divided(trees, others, other_bins.codes, j)]
    found = find_divided_feature(trees, other_bins)
    assert (found is None) if not divided else (found in divided)
    if found is None:
        codes = convert_codes_to_floats(np.ascontiguousarray(other_bins.codes.T))
        told = convert_trees_to_bin_codes(trees, other_bins).find_leaves(codes, 1)
        np.testing.assert_array_equal(told, trees.find_leaves(others, 1))
    assert found is None or not is_same
