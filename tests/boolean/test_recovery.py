"""Sparse recovery, compared with a literal matching pursuit."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certree.boolean import SparseRecovery, sparse_recovery


def literal_pursuit(A, y, noise):
    """Run matching pursuit by definition: add the column nearest to the residual, then refit."""
    unit = A / np.sqrt((A**2).sum(axis=0))
    chosen, x, residual = [], np.zeros(A.shape[1]), y
    while np.linalg.norm(residual) > max(noise, 1e-10 * np.linalg.norm(y)):
        cosines = np.abs(unit.T @ residual)
        cosines[chosen] = -1
        chosen.append(int(cosines.argmax()))
        x[:] = 0
        x[chosen] = np.linalg.lstsq(A[:, chosen], y, rcond=None)[0]
        residual = y - A @ x
    return x


def problem(seed, m=60, p=90, n_terms=3, noise=0.0):
    rng = np.random.default_rng(seed)
    A = rng.choice([-1.0, 1.0], size=(m, p)) * rng.uniform(0.5, 2, p)
    x = np.zeros(p)
    x[rng.choice(p, n_terms, replace=False)] = rng.choice([-1, 1], n_terms) * rng.uniform(
        2, 4, n_terms
    )
    e = rng.normal(size=m)
    e *= noise / np.linalg.norm(e)
    return A, x, A @ x + e


@given(st.integers(0, 10**6), st.integers(0, 4), st.sampled_from([0.0, 0.5, 2.0]))
def test_recovery_is_the_pursuit_by_definition(seed, n_terms, noise):
    A, _, y = problem(seed, n_terms=n_terms, noise=noise)
    found = sparse_recovery(A, y, noise * 1.01)
    np.testing.assert_allclose(found.coefficients, literal_pursuit(A, y, noise * 1.01), atol=1e-8)
    assert found.residual == pytest.approx(np.linalg.norm(y - A @ found.coefficients))
    assert found.residual <= max(noise * 1.01, 1e-9 * np.linalg.norm(y)) * (1 + 1e-9)


@given(st.integers(0, 10**6))
def test_few_terms_without_noise_are_found_exactly(seed):
    A, x, y = problem(seed, m=200, p=80, n_terms=2)
    found = sparse_recovery(A, y)
    np.testing.assert_allclose(found.coefficients, x, atol=1e-8)
    assert found.n_terms == 2


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 10.0]), st.integers(1, 3))
def test_the_error_is_below_its_bound(seed, noise, n_terms):
    A, x, y = problem(seed, m=400, p=40, n_terms=n_terms, noise=noise)
    found = sparse_recovery(A, y, noise)
    bound = found.error_bound(n_terms)
    assert np.linalg.norm(found.coefficients - x) <= bound + 1e-7
    assert found.error_bound(n_terms + 1) >= bound
    assert found.error_bound(10**6) == np.inf


def test_the_bound_is_reached():
    """An error along a single column moves the estimate by exactly the bound."""
    A = np.array([[2.0], [0.0]])
    found = sparse_recovery(A, A @ [3.0] + [1.0, 0.0], noise=1.0)
    assert found.coefficients.tolist() == [3.5]
    assert found.error_bound(1) == pytest.approx(0.5)


def test_the_coherence_is_the_largest_cosine():
    A, _, y = problem(0, p=12)
    found = sparse_recovery(A, y)
    cosines = [
        abs(A[:, i] @ A[:, j]) / np.linalg.norm(A[:, i]) / np.linalg.norm(A[:, j])
        for i, j in combinations(range(12), 2)
    ]
    assert found.coherence == pytest.approx(max(cosines))
    assert found.smallest_norm == pytest.approx(np.linalg.norm(A, axis=0).min())


def test_columns_of_tiny_numbers_are_columns():
    A, x, y = problem(0, m=200, p=30, n_terms=2)
    found = sparse_recovery(A * 1e-200, y)
    np.testing.assert_allclose(found.coefficients * 1e-200, x, atol=1e-8)


def test_zero_measurements_and_zero_columns():
    A = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert sparse_recovery(A, [0.0, 0.0]).coefficients.tolist() == [0, 0]
    found = sparse_recovery(A, [2.0, 2.0])
    assert found.coefficients.tolist() == pytest.approx([2, 0])
    assert found.error_bound(1) == np.inf  # the coefficient of the zero column cannot be estimated
    twice = sparse_recovery(np.array([[1.0, 1.0], [2.0, 2.0]]), [1.0, 3.0])
    assert twice.residual > 0
    assert twice.error_bound(1) == np.inf


@pytest.mark.parametrize(
    ("A", "y", "noise", "message"),
    [
        ([[1.0, 2.0]], [1.0, 2.0], 0, "y"),
        ([1.0, 2.0], [1.0], 0, "measurement"),
        ([[np.nan]], [1.0], 0, "finite"),
        ([[1.0]], [1.0], -1, "noise"),
        ([[1e200]], [1.0], 0, "at most 1e"),
        ([[1.0]], [-1e200], 0, "at most 1e"),
    ],
)
def test_shapes_that_do_not_match_are_refused(A, y, noise, message):
    with pytest.raises(ValueError, match=message):
        sparse_recovery(A, y, noise)
    with pytest.raises(ValueError, match="n_terms"):
        SparseRecovery(np.zeros(2), 0.0, 0.0, 0.0, 1.0).error_bound(-1)


def test_the_residual_counts_like_noise_in_the_bound():
    # Residual and noise may point in the same direction.
    A, noise = np.eye(4), 1.0
    x, e = np.array([1.5, 0, 0, 0]), np.array([-noise, 0, 0, 0])
    found = sparse_recovery(A, A @ x + e, noise)
    assert found.n_terms == 0
    assert found.error_bound(1) == pytest.approx(np.linalg.norm(x - found.coefficients))
