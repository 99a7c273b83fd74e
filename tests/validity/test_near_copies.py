"""Simulations of what certified fits see of rows that depend on each other, and of false alarms.

`make validity` draws each of them more often.
"""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from certree import (
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    NearCopiesWarning,
)
from certree.rows.duplicates import RowHasher
from certree.rows.hashes import RowHashes
from certree.rows.near_copies import ComparedRows, find_near_copies
from run_length import LONG

DRAWS = 200 if LONG else 12
# Of every 100 tables of independent rows one may be warned of.
MOST_ALARMS = 0.01


def oversampled(rng, X, y):
    """Copy rows of the rarer class until classes are even; rows are numbered anew."""
    kept = np.flatnonzero((y == 0) | (np.arange(len(y)) % 4 == 0))
    X, y = X[kept], y[kept]
    few = np.flatnonzero(y == 1)
    again = rng.choice(few, len(y) - 2 * len(few))
    X, y = np.vstack([X, X[again]]), np.append(y, y[again])
    order = rng.permutation(len(y))
    return np.column_stack([X[order], np.arange(len(y))]), y[order]


def with_key(rng, X, y):
    """Return every row twice, with a key column that differs in all rows."""
    keys = rng.choice(10**9, 2 * len(y), replace=False)
    return np.column_stack([np.vstack([X, X]), keys]), np.append(y, y)


def twice(change):
    """Every row twice, once changed a little."""
    return lambda rng, X, y: (np.vstack([X, change(rng, X)]), np.append(y, y))


MISTAKES = {
    "oversampled, numbered anew": oversampled,
    "doubled, with a key": with_key,
    "float16": twice(lambda _, X: X.astype(np.float16)),
    "four decimals": twice(lambda _, X: X.round(4)),
    "noise of a thousandth": twice(lambda rng, X: X + 1e-3 * rng.normal(size=X.shape)),
}


def fitted(model, X, y):
    """Return the bound of a fit, and whether it warned; a refused fit has no bound."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            bound = model.fit(X, y).certificate_.bound
        except ValueError as error:
            return 1.0, "rows that certify repeat other rows" in str(error)
    return bound, any(one.category is NearCopiesWarning for one in said)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("p", [2, 4, 10])
def test_no_false_certificate_is_silent(mistake, p):
    """Coins err on half of the new rows, whatever predicts; the rarer class on a fifth of them."""
    unsaid = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng([seed, p])
        X, y = rng.normal(size=(600, p)), rng.integers(0, 2, 600)
        model = CertifiedTreeClassifier(random_state=seed)
        bound, is_said = fitted(model, *MISTAKES[mistake](rng, X, y))
        unsaid += bound < 0.5 and not is_said
    assert unsaid == 0


@pytest.mark.parametrize("mistake", MISTAKES)
def test_forests_and_regressors_see_the_same(mistake):
    for seed in range(DRAWS // 4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(600, 4)), rng.integers(0, 2, 600)
        X, y = MISTAKES[mistake](rng, X, y)
        assert fitted(CertifiedForestClassifier(4, random_state=seed), X, y)[1]
        if "oversampled" not in mistake:
            numbers = X[:, 0] + np.tile(rng.normal(size=600), 2)
            assert fitted(CertifiedTreeRegressor(random_state=seed), X, numbers)[1]


def independent_rows(rng, n, p):
    """Rows of several sources: independent and correlated features, and others that are hard."""
    z, common = rng.normal(size=(n, p)), rng.normal(size=(n, 1))
    yield z
    yield rng.random((n, p))
    yield 0.99 * common + 0.14 * z
    yield common + 0.01 * z
    yield np.exp(2 * z)
    yield rng.standard_cauchy((n, p))
    yield z.round(2)
    yield np.where(rng.random((n, p)) < 0.7, 0, np.exp(z))
    # One feature varies in a half of the rows, all of them in the other half.
    yield np.where((rng.random((n, 1)) < 0.5) & (np.arange(p) > 0), 0, z)
    # One feature varies, and the others are categories.
    yield np.column_stack([z[:, :1], rng.integers(0, 5, (n, p - 1))])


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
def test_independent_rows_are_hardly_ever_warned_of(p):
    n_tables = n_alarms = 0
    sizes = [200, 300, 500, 1000, 3000, 8000, 20_000, *([100_000] if LONG else [])]
    for seed in range(DRAWS // 4):
        for n in sizes:
            rng = np.random.default_rng([seed, n, p])
            train = rng.random(n) < (0.35, 0.5, 0.85)[seed % 3]
            y = rng.integers(0, (2, 10)[seed % 2], n)
            for X in independent_rows(rng, n, p):
                alike = RowHasher()
                target, columns = alike.encode(X, y)
                sides = np.flatnonzero(train), np.flatnonzero(~train)
                rows = ComparedRows(columns, alike.kinds, target, *sides, None)
                keys = RowHashes.hash_rows(columns, target, are_all=True).keys
                found = find_near_copies(rows, None, keys, 0, with_target=seed % 4 > 0)
                n_alarms += found.are_likely
                n_tables += 1
    assert n_alarms <= binom.ppf(0.999, n_tables, MOST_ALARMS)
    assert n_alarms <= max(1, MOST_ALARMS * n_tables)


def smote(rng, X, y):
    """Add rows of the rarer class between some row and one of its five neighbours of this class."""
    few = X[y == 1]
    n_made = len(y) - 2 * len(few)
    far = ((few[:, None] - few) ** 2).sum(axis=2)
    near = far.argsort(axis=1)[:, 1:6]
    start = rng.integers(0, len(few), n_made)
    end = near[start, rng.integers(0, 5, n_made)]
    made = few[start] + rng.random((n_made, 1)) * (few[end] - few[start])
    return np.vstack([X, made]), np.append(y, np.ones(n_made, dtype=int))


def test_certificates_say_what_synthetic_rows_void():
    """No comparison sees rows that lie between others: the assumptions name them."""
    for seed in range(DRAWS // 4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(600, 4)), (rng.random(600) < 0.15).astype(int)
        model = CertifiedTreeClassifier(random_state=seed)
        fitted(model, *smote(rng, X, y))
        assert any("as by SMOTE, void" in one for one in model.certificate_.assumptions)
