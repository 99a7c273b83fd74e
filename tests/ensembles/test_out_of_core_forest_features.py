"""Trees that compare bin codes send rows to the same leaves as trees that compare values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certree._core import draw_rows
from certree.ensembles import out_of_core_forest_features
from certree.ensembles.out_of_core_forest_features import (
    BinnedFeatures,
    convert_codes_to_floats,
    convert_trees_to_bin_codes,
)
from certree.grow import code_trees
from certree.grow.binned_grower import BinnedGrower, RowSampling
from certree.grow.bins import Bins
from certree.rows.features import DenseFeatures


def grown(seed, n=700, n_trees=3, **how):
    """Rows of numbers, missing ones and categories, some of which share bins; bins; and trees."""
    rs = np.random.RandomState(seed)
    X = rs.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1])
    X[rs.rand(n) < 0.1, 0] = np.nan
    X[rs.rand(n) < 0.02, 2] = np.inf
    X[:, 3] = rs.randint(0, 7, n)
    X[rs.rand(n) < 0.1, 3] = np.nan
    X[:, 4] = rs.zipf(1.3, n) % 900
    y = np.nan_to_num(X[:, 0]) * X[:, 1] + np.isin(X[:, 3], [1, 4]) + (X[:, 4] % 3)
    bins = Bins.from_table(DenseFeatures((X,)), [3, 4], fine_ends=True)
    trees = BinnedGrower(bins, order="depth", seed=seed, **how).grow_numbers(y, n_trees).trees
    return X, bins, trees


@given(seed=st.integers(0, 2**31), random_cuts=st.booleans(), depth=st.integers(1, 12))
@settings(max_examples=max(10, settings().max_examples // 6), deadline=None)
def test_bin_codes_reach_the_leaves_of_their_rows(seed, random_cuts, depth):
    X, bins, trees = grown(
        seed, random_cuts=random_cuts, max_depth=depth, max_features=3 if random_cuts else None
    )
    coded = convert_trees_to_bin_codes(trees, bins)
    codes = convert_codes_to_floats(np.ascontiguousarray(bins.codes.T))
    np.testing.assert_array_equal(coded.find_leaves(codes, 1), trees.find_leaves(X, 1))
    # Literally, row by row and node by node.
    for tree, compared in zip(trees, coded, strict=True):
        for row, own in zip(X[:20], bins.codes.T[:20], strict=True):
            assert leaf_of(compared, own) == tree.find_leaves(row[None], 1)[0, 0]


def leaf_of(tree, codes):
    """The leaf of a row of codes, in a loop."""
    v = 0
    while tree.left[v] >= 0:
        code = codes[tree.feature[v]]
        held = tree.categories[tree.category_start[v] : tree.category_start[v + 1]]
        if code == 255:
            left = tree.missing_left[v]
        elif len(held):
            left = (code in held) != tree.unseen_left[v]
        else:
            left = code <= tree.threshold[v]
        v = tree.left[v] + (not left)
    return v


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_leaves_of_out_of_bag_rows_are_found(n_threads, grouped, monkeypatch):
    X, bins, trees = grown(1, n_trees=5, max_features=3, bootstrap=True)
    group = np.random.RandomState(0).randint(0, 90, len(X)).astype(np.int32) if grouped else None
    drawing = RowSampling("repeated", 90 if grouped else len(X), 1, group)
    known = trees.find_out_of_bag_leaves(X, drawing, 1)
    for number, own in enumerate(known):
        assert ((own < 0) == (draw_rows(len(X), drawing, number) == 0)).all()
    features = BinnedFeatures(np.ascontiguousarray(bins.codes.T), bins)
    monkeypatch.setattr(code_trees, "CODES_PER_BLOCK", 300)
    for name, size in (
        ("N_COMPARED_ROWS", 101),
        ("LEAVES_PER_BLOCK", 2 * len(X)),
    ):
        monkeypatch.setattr(out_of_core_forest_features, name, size)
    walk = features.find_out_of_bag_leaves(trees, drawing, n_threads)
    np.testing.assert_array_equal(walk.first_leaves, known[:, :101])
    for begin, end in ((0, 700), (101, 333), (8, 9), (699, 700)):
        np.testing.assert_array_equal(walk.find_leaves(begin, end), known[:, begin:end])
    first = 0
    for left, root, leaf in walk.iterate_blocks():
        number = slice(first, first + len(root))
        shift = trees.root[first]
        np.testing.assert_array_equal(root + shift, trees.root[number])
        own = trees.left[shift : shift + len(left)]
        np.testing.assert_array_equal(np.where(left < 0, left, left + shift), own)
        np.testing.assert_array_equal(np.where(leaf < 0, leaf - shift, 0), known[number])
        first += len(root)
    assert first == len(trees)
