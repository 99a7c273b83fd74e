"""Bins of parts are those of all rows."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certree.grow import Bins
from certree.out_of_core import binning
from certree.out_of_core.binning import Sketch, bin_rows, make_bins
from certree.rows.features import DenseFeatures

CATEGORY = np.array([0, 0, 1, 0, 0], dtype=np.uint8)


def rows(n, seed):
    rs = np.random.RandomState(seed)
    X = rs.normal(size=(n, 5))
    X[:, 1] = rs.randint(-1, 3, n) * 0.0 + rs.randint(0, 4, n)
    X[:, 2] = rs.randint(0, 400, n) // rs.randint(1, 40, n)
    X[:, 3] = np.round(X[:, 3], 2)
    X[rs.rand(n) < 0.2, 3] = np.nan
    X[:, 4] = np.nan
    return X


def binned(X, ends):
    parts = [DenseFeatures((one,)) for one in np.split(X, ends) if len(one)]
    sketch = reduce(lambda a, b: a + b, [Sketch.from_rows(one, CATEGORY) for one in parts])
    edges = sketch.choose_edges()
    made = [bin_rows(one, edges) for one in parts]
    ends_of_all = reduce(lambda a, b: a + b, [one[1] for one in made])
    return np.concatenate([one[0] for one in made], axis=1), make_bins(edges, ends_of_all, CATEGORY)


def expect_same(X, ends):
    known = Bins.from_table(X, CATEGORY.astype(bool))
    codes, bins = binned(X, ends)
    assert (codes == known.codes).all()
    for one, other in zip(known.core_columns, bins.core_columns, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@given(st.integers(1, 900), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 900), max_size=4))
def test_however_rows_are_divided(n, seed, ends):
    expect_same(rows(n, seed), sorted(min(one, n) for one in ends))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_edges_of_a_sample(monkeypatch, dtype):
    import certree.grow.bins

    for module in (certree.grow.bins, binning):
        monkeypatch.setattr(module, "EDGE_ROWS", 500)
    expect_same(rows(3000, 0).astype(dtype), [100, 1500, 2000])
