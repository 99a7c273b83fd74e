"""Rows most of whose values are 0: what comes in stays as it is, and hashes are those of dense rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import reference
from certree.interface.arrays import get_csr_arrays
from certree.rows.folds import content_folds
from certree.rows.hashes import compute_content_keys, compute_fit_hashes, hash_samples
from certree.rows.sparse_rows import SparseFeatures, stack_tables

VALUES = st.sampled_from([0.0, 0.0, 0.0, -0.0, 1.0, -2.5, np.nan, np.inf, 1e-320, 0.1])


def unordered():
    """A matrix with a repeated entry, features out of order, and zeros that are stored."""
    return sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0, 0.0, 5.0, -0.0]), np.array([2, 0, 2, 1, 1, 3]), [0, 3, 4, 6]),
        shape=(3, 4),
    )


def test_rows_are_brought_into_order_and_what_was_given_stays_as_it_was():
    given_rows = unordered()
    before = given_rows.data.copy(), given_rows.indices.copy(), given_rows.indptr.copy()
    own = SparseFeatures.from_csr(given_rows)
    assert (len(own), own.n_features, own.table) == (3, 4, None)
    assert own.matrix.indices.tolist() == [0, 2, 1]
    assert own.matrix.data.tolist() == [2.0, 4.0, 5.0]
    np.testing.assert_array_equal(own.matrix.toarray(), given_rows.toarray())
    for mine, theirs in zip(
        (given_rows.data, given_rows.indices, given_rows.indptr), before, strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_rows_are_taken_by_their_numbers():
    own = SparseFeatures.from_csr(unordered())
    expected = own.matrix.toarray()[[2, 0, 2]]
    np.testing.assert_array_equal(own.take(np.array([2, 0, 2])).matrix.toarray(), expected)
    np.testing.assert_array_equal(own.take_matrix([2, 0, 2]).toarray(), expected)
    np.testing.assert_array_equal(
        own.score_in_blocks(lambda rows: rows.toarray().T), own.matrix.toarray().T
    )


def test_the_core_is_given_starts_features_and_values():
    own = SparseFeatures.from_csr(unordered().astype(np.float32))
    start, feature, value, p = get_csr_arrays(own.matrix)
    assert (start.dtype, feature.dtype, value.dtype, p) == (np.int64, np.int32, np.float32, 4)
    assert start.tolist() == [0, 2, 2, 3]
    start, row, value, n = own.by_feature()
    assert (start.tolist(), row.tolist(), n) == ([0, 1, 2, 3, 3], [0, 2, 0], 3)


def test_tables_below_each_other_are_sparse_if_one_is():
    X = np.eye(3)
    assert isinstance(stack_tables([X, X]), np.ndarray)
    both = stack_tables([sparse.csr_array(X), X])
    assert sparse.issparse(both)
    np.testing.assert_array_equal(both.toarray(), np.concatenate([X, X]))


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=VALUES)
)
def test_hashes_are_those_of_the_dense_table(X):
    rows = SparseFeatures.from_csr(sparse.csr_array(X)).matrix
    np.testing.assert_array_equal(hash_samples(rows), hash_samples(X))
    np.testing.assert_array_equal(hash_samples(rows, rounded=True), hash_samples(X, rounded=True))
    y = np.arange(len(X)) % 2
    np.testing.assert_array_equal(compute_content_keys(rows, y), compute_content_keys(X, y))
    np.testing.assert_array_equal(compute_fit_hashes(rows), compute_fit_hashes(X))


@pytest.mark.parametrize("n_zeros", [254, 255, 256, 257, 600])
@pytest.mark.parametrize("place", ["before", "between", "behind"])
def test_long_runs_of_zeros_are_one_word(n_zeros, place):
    zeros, row = [0.0] * n_zeros, [1.5, -2.0]
    at = {"before": 0, "between": 1, "behind": 2}[place]
    X = np.array([row[:at] + zeros + row[at:], row[:at] + zeros[::-1] + row[at:][::-1]])
    for rounded in (False, True):
        expected = [reference.hash_row(one, rounded=rounded) for one in X]
        np.testing.assert_array_equal(hash_samples(X, rounded=rounded), expected)
        parts = (X[:, :3], X[:, 3], X[:, 4:])
        np.testing.assert_array_equal(hash_samples(*parts, rounded=rounded), expected)
        rows = sparse.csr_array(X)
        np.testing.assert_array_equal(hash_samples(rows, rounded=rounded), expected)
    # In a table with other rows the place of a run tells.
    moved = np.array([[1.0, *zeros, 0.0], [0.0, *zeros, 1.0], [*zeros, 1.0, 0.0]])
    assert len(set(hash_samples(moved))) == 3


def test_what_float32_rounds_to_zero_is_a_zero_of_rounded_rows():
    X = np.zeros((1, 700))
    X[0, 350] = 1e-60
    rows, expected = sparse.csr_array(X), reference.hash_row(X[0], rounded=True)
    assert hash_samples(rows, rounded=True)[0] == hash_samples(X, rounded=True)[0] == expected
    assert hash_samples(rows)[0] == hash_samples(X)[0] == reference.hash_row(X[0])


@pytest.mark.parametrize("numeric", [False, True])
def test_folds_are_those_of_the_dense_table(numeric):
    X = sparse.random(200, 30, 0.05, format="csr", random_state=np.random.default_rng(0))
    y = np.arange(200) / 7 if numeric else np.arange(200, dtype=np.int32) % 3
    weight = np.arange(200) % 4 + 1.0
    both = [
        list(content_folds(rows, y, 3, np.random.RandomState(0), weight))
        for rows in (SparseFeatures.from_csr(X).matrix, X.toarray())
    ]
    for mine, theirs in zip(*both, strict=True):
        np.testing.assert_array_equal(mine.train, theirs.train)
        np.testing.assert_array_equal(mine.validation, theirs.validation)
