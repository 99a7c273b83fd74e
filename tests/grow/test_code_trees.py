"""Rows whose bin codes alone are known reach the leaves of their values."""

import numpy as np
import pytest

from certree.grow import code_trees
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.grow.code_trees import learn_missing_from_codes, route_codes
from certree.rows.features import DenseFeatures


@pytest.mark.parametrize("block", [2**20, 7])
@pytest.mark.parametrize("seed", range(3))
def test_leaves_and_missing_values_are_those_of_the_values(seed, block, monkeypatch):
    monkeypatch.setattr(code_trees, "_CODES_PER_BLOCK", block)
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
