"""Rows that occur more than once, by simulation: what is refused and what is certified."""

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.base import clone

from certree import (
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    PrunedTreeClassifier,
)
from certree.certificates import Guarantees, hold_out
from certree.certificates.inequalities.good_turing import bound_matches
from run_length import LONG

DRAWS = 2000 if LONG else 60

SOURCES = {
    "bits": lambda rng, n: rng.integers(0, 8, n),
    "values": lambda rng, n: rng.integers(0, 1000, n),
    "rare repeats": lambda rng, n: rng.integers(0, 10**6, n),
    "continuous": lambda rng, n: rng.integers(0, 2**62, n),
    "power law": lambda rng, n: rng.zipf(1.6, n),
    "geometric": lambda rng, n: rng.geometric(0.01, n),
    "mixed": lambda rng, n: np.where(rng.random(n) < 0.2, 0, rng.integers(1, 2**62, n)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("n", "n_new"), [(60, 60), (500, 100), (1000, 3000)])
def test_new_rows_of_the_source_of_a_fit_match_no_more_than_is_plausible(source, n, n_new):
    rng, draw = np.random.default_rng(n), SOURCES[source]
    refused = above = 0
    for _ in range(DRAWS):
        rows, often = np.unique(draw(rng, n), return_counts=True)
        counts = n, int((often == 1).sum()), int((often == 2).sum()), n_new
        matches = int(np.isin(draw(rng, n_new), rows).sum())
        refused += matches > bound_matches(*counts)
        above += matches > bound_matches(*counts, level=0.01)
    # A beta distribution is an approximation: of a hundredth it misses up to two.
    assert above <= binom.ppf(0.999, DRAWS, 0.02)
    assert refused <= binom.ppf(0.999, DRAWS, 1e-4)


# -- repeats that count as the worst case ----------------------------------------------------------

DELTA = 0.05
FEW_MISSES = binom.ppf(0.999, DRAWS, DELTA)


def coins(rng, n):
    """Rows of noise with labels of coins: half of the new rows are errors of any classifier."""
    return rng.normal(size=(n, 2)), rng.integers(0, 2, n)


def alike(rng, X, y, k):
    """Rows of which k are copies of others."""
    own, other = rng.permutation(len(y))[: 2 * k].reshape(2, -1)
    X[own], y[own] = X[other], y[other]
    return X, y


def overfitted(X, y):
    """A tree that knows nearly all of its rows by heart."""
    return PrunedTreeClassifier(cv=None, alpha=0.0, random_state=0).fit(X, y)


def share_held(guarantees, rng, coverage):
    """True share of new rows of coins whose set holds their class."""
    return guarantees.predict_set(rng.normal(size=(2000, 2)), coverage).mean()


def test_new_rows_among_which_some_are_of_the_fit_keep_all_promises():
    missed = np.zeros(3, dtype=int)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        X, y = coins(rng, 100)
        model = overfitted(X, y)
        new, labels = coins(rng, 600)
        new[:12], labels[:12] = X[:12], y[:12]
        guarantees = Guarantees.by_rows(model, new, labels, DELTA)
        assert guarantees.certificate.worst == 12
        recall = guarantees.conditional_guarantees("recall").recall
        # Of either class the error is the share of new rows that are taken for the other.
        taken = model.predict(rng.normal(size=(20_000, 2))).mean()
        missed[0] += guarantees.certificate.bound < 0.5
        missed[1] += recall[0].bound < taken or recall[1].bound < 1 - taken
        missed[2] += share_held(guarantees, rng, 0.6) < 0.6 - 0.01
    assert (missed <= FEW_MISSES).all()


def test_as_draws_the_same_rows_would_break_the_promise_more_often():
    broken = np.zeros(2, dtype=int)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        model = overfitted(*coins(rng, 100))
        wrong = model.predict(rng.normal(size=(600, 2))) != rng.integers(0, 2, 600)
        # Twelve rows that the model knows by heart are right for certain.
        for place, known in enumerate((0, 1)):
            wrong[:12] = not known
            broken[place] += hold_out(int(wrong.sum()), 600, DELTA).bound < 0.5
    assert broken[0] < broken[1]


@pytest.mark.parametrize(
    "model",
    [
        CertifiedTreeClassifier(train_size=0.5, cv=2, delta=DELTA),
        CertifiedBoostedTreesClassifier(train_size=0.5, max_iter=3, delta=DELTA),
        CertifiedForestClassifier(6, delta=DELTA),
    ],
    ids=lambda one: type(one).__name__,
)
def test_fits_to_rows_of_which_some_repeat_keep_their_promises(model):
    missed = 0
    for seed in range(DRAWS):
        X, y = alike(rng := np.random.default_rng(seed), *coins(rng, 1200), 12)
        one = clone(model).set_params(random_state=seed).fit(X, y)
        missed += one.certificate_.bound < 0.5
    assert missed <= FEW_MISSES


@pytest.mark.parametrize(
    "model",
    [
        CertifiedTreeRegressor(train_size=0.5, cv=2, delta=DELTA),
        CertifiedBoostedTreesRegressor(train_size=0.5, max_iter=3, delta=DELTA),
    ],
    ids=lambda one: type(one).__name__,
)
def test_numbers_of_which_some_repeat_keep_their_promises(model):
    missed = np.zeros(2, dtype=int)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1200, 2))
        X, y = alike(rng, X, rng.normal(size=1200), 12)
        one = clone(model).set_params(random_state=seed).fit(X, y)
        new = rng.normal(size=(4000, 2))
        said, band = one.predict(new), one.predict_interval(new)
        off = np.abs(rng.normal(size=(4000, 20)) - said[:, None])
        missed[0] += np.minimum(off, one.certificate_.unit).mean() > one.certificate_.bound
        missed[1] += np.diff(norm.cdf(band)).mean() < one.coverage - 0.002
    assert (missed <= FEW_MISSES).all()
