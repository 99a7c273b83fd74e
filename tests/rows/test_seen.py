"""What is kept of the rows of a fit: a multiset, in an order that it decides itself."""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import strategies
from certree.rows.hashes import extend_hashes, hash_samples
from certree.rows.seen import SeenRows


def seen(X, y, weight=None, leaf=None, knows=True):
    leaf = np.zeros(len(X), dtype=np.int32) if leaf is None else leaf
    return SeenRows.from_rows(X, y, weight, leaf, knows)


def fields(rows):
    return {
        name: None if value is None else (value.dtype, value.tobytes())
        for name, value in rows.to_stored().items()
    }


def counted(X, y, weight):
    """How often each row is there; NaN as a word, which is equal to itself."""
    said = (tuple("NaN" if np.isnan(value) else value + 0.0 for value in x) for x in X)
    return Counter(zip(said, y.tolist(), weight.tolist(), strict=True))


@given(rows=strategies.rows(), data=st.data())
def test_rows_are_added_and_taken_out_as_often_as_they_are_given(rows, data):
    X, y = rows
    n = len(X)
    choices = st.sampled_from([1.0, 0.5])
    weight = np.array(data.draw(st.lists(choices, min_size=n, max_size=n)))
    part = st.lists(st.integers(0, n - 1), max_size=2 * n)
    one, two = (np.array(data.draw(part), dtype=int) for _ in range(2))
    known = seen(X, y, weight).add(seen(X[one], y[one], weight[one]))
    every = np.append(np.arange(n), one)
    assert fields(known) == fields(seen(X[every], y[every], weight[every]))
    asked = X[two], y[two], weight[two]
    n_unknown = reference.count_unknown_rows((X[every], y[every], weight[every]), asked)
    if n_unknown:
        with pytest.raises(ValueError, match=f"{n_unknown} of {len(two)} rows are not among"):
            known.remove(seen(*asked))
        return
    left = counted(X[every], y[every], weight[every]) - counted(*asked)
    if not left:
        with pytest.raises(ValueError, match="leaves no model"):
            known.remove(seen(*asked))
        return
    kept = known.remove(seen(*asked))
    assert kept.keys.tolist() == sorted(kept.keys.tolist())
    assert len(kept.y) == left.total()
    assert fields(kept.add(seen(*asked))) == fields(known)


@given(rows=strategies.rows(), seed=st.integers(0, 99))
def test_the_order_of_rows_is_their_own(rows, seed):
    X, y = rows
    order = np.random.default_rng(seed).permutation(len(X))
    leaf = np.arange(len(X), dtype=np.int32)[np.unique(hash_samples(X), return_inverse=True)[1]]
    assert fields(seen(X, y, None, leaf)) == fields(seen(X[order], y[order], None, leaf[order]))
    ones = np.ones(len(X))
    assert fields(seen(X, y, ones, leaf)) == fields(seen(X, y, None, leaf))


def test_hashes_with_numbers_are_those_of_longer_rows():
    X = np.random.default_rng(0).normal(size=(50, 4))
    found = extend_hashes(hash_samples(X[:, :2]), X[:, 2].copy(), X[:, 3].copy())
    np.testing.assert_array_equal(found, [reference.hash_row(row) for row in X])


def test_what_is_kept_of_rows():
    X = np.array([[0.1, np.nan], [-0.0, 2.0], [np.nan, np.nan]])
    kept = seen(X, np.array([-0.0, 1.5, 2.0]), np.array([1.0, 2.0, 3.0]))
    by_target = np.argsort(kept.y)
    assert kept.lacks[by_target].tolist() == [2, 0, 3]
    assert kept.hashes[by_target].tolist() == [reference.hash_row(row) for row in X]
    # Only the first row has a number that changes by rounding.
    expected = [reference.hash_row(row, i == 0) for i, row in enumerate(X)]
    assert kept.rounded[by_target].tolist() == expected
    assert not np.signbit(kept.y).any()
    assert kept.known.tolist() == sorted({*kept.hashes.tolist(), *kept.rounded.tolist()})
    plain = seen(np.ones((2, 1)), np.array([0, 1], dtype=np.int32), np.ones(2), knows=False)
    assert (plain.weight, plain.lacks, plain.rounded) == (None, None, None)
    for rows in (kept, plain):
        assert fields(pickle.loads(pickle.dumps(rows))) == fields(rows)
        with pytest.raises(ValueError, match="read-only"):
            rows.leaf[0] = 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"y": np.array([0.0, np.inf])}, "y must be finite"),
        ({"y": np.array([-0.0, 1.0])}, "0.0 instead of -0.0"),
        ({"leaf": np.zeros(3, dtype=np.int32)}, "leaf must have shape"),
        ({"weight": np.array([0.0, 1.0])}, "weight must be positive"),
        ({"weight": np.ones(2)}, "None if all are 1"),
        ({"weight": np.array([1.0, np.nan])}, "weight must be positive"),
        ({"lacks": np.zeros(2, dtype=np.int32)}, "None if all are 0"),
        ({"lacks": np.array([-1, 0], dtype=np.int32)}, "lacks must hold non-negative bit masks"),
        ({"hashes": np.array([1, 0], dtype=np.uint64), "y": np.zeros(2)}, "sorted by their keys"),
    ],
)
def test_columns_that_no_rows_have_are_refused(changed, said):
    if "keys" in said:
        keys = extend_hashes(changed["hashes"], np.zeros(2))
        changed["hashes"] = changed["hashes"][np.argsort(keys)[::-1]]
    whole = seen(np.ones((2, 1)), np.array([0.5, 0.5]), knows=False).to_stored()
    with pytest.raises(ValueError, match=said):
        SeenRows(**{**whole, **changed})
