"""The fraction of training rows: the learning curve of a pilot, and what the choice may depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification

import reference
from certree import CertifiedTreeClassifier, save
from certree.certificates.inequalities.bounds import binomial_upper
from certree.certificates.model_selection import (
    PILOT,
    SHARES,
    CurvePoint,
    choose_train_fraction,
    fit_power_law,
)
from certree.files import load
from certree.rows.folds import iterate_group_folds
from certree.rows.split import train_calibration_split

POINTS = st.lists(
    st.builds(CurvePoint, st.floats(0.02, 0.5), st.floats(0, 1), st.integers(1, 10_000)),
    min_size=1,
    max_size=4,
)


@given(POINTS)
def test_the_power_law_is_the_likeliest(curve):
    posterior, (level, exponent) = fit_power_law(curve), reference.fit_power_law(curve)
    assert posterior.exponent == pytest.approx(exponent, abs=1e-5)
    assert posterior.level == pytest.approx(level, rel=1e-4)
    assert 0 <= posterior.predict(1.0) <= posterior.predict(0.3) <= 1


@given(POINTS, st.integers(2, 100_000), st.floats(0.001, 0.5))
def test_the_share_has_the_lowest_bound_that_is_expected(curve, n, delta):
    posterior = fit_power_law(curve)
    expected = {}
    for share in SHARES:
        weighing = n - round(share * n)
        errors = min(posterior.level * share**-posterior.exponent, 1.0) * weighing
        if weighing:
            expected[share] = binomial_upper(errors, weighing, np.log(0.9 * delta))
    chosen = choose_train_fraction(curve, n, delta)
    assert expected[chosen] <= min(expected.values()) + 1e-9


def test_curves_that_fall_let_more_rows_grow():
    def chosen(small, large, judged=2000):
        curve = [CurvePoint(0.12, small, judged), CurvePoint(0.23, large, judged)]
        return choose_train_fraction(curve, 2000, 0.05)

    assert chosen(0.2, 0.2, judged=20_000) == PILOT
    assert PILOT < chosen(0.22, 0.19) < chosen(0.4, 0.25)
    assert choose_train_fraction([], 2000, 0.05) == PILOT
    # Groups have a bound of their own, and it is as careful.
    steep = [CurvePoint(0.12, 0.4, 500), CurvePoint(0.23, 0.25, 500)]
    assert choose_train_fraction(steep, 2000, 0.05, grouped=True) > PILOT


@given(st.integers(2, 200), st.integers(0, 5), st.sampled_from([None, 2, 7]))
def test_rows_that_grow_go_on_growing_if_more_do(n, seed, size):
    groups = None if size is None else np.arange(n) // size
    before = np.array([], dtype=int)
    for share in SHARES:
        try:
            sides = train_calibration_split(n, share, np.random.RandomState(seed), groups)
        except ValueError:
            continue
        assert set(before) <= set(sides.train)
        before = sides.train


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(2, 5), st.integers(0, 9))
def test_groups_are_dealt_into_folds_as_a_whole(groups, n_folds, seed):
    given_groups = np.array(groups)
    folds = list(iterate_group_folds(given_groups, n_folds, np.random.RandomState(seed)))
    n_groups = len(set(groups))
    assert len(folds) == (min(n_folds, n_groups) if n_groups > 1 else 0)
    for grow, judge in folds:
        assert not set(given_groups[grow]) & set(given_groups[judge])
        assert sorted([*grow, *judge]) == list(range(len(groups)))
    judged = [row for _, judge in folds for row in judge]
    assert sorted(judged) == (list(range(len(groups))) if folds else [])
    sizes = [len(set(given_groups[judge])) for _, judge in folds]
    assert not sizes or max(sizes) - min(sizes) <= 1
    with pytest.raises(ValueError, match="cv must be at least 2, got 1"):
        list(iterate_group_folds(given_groups, 1, np.random.RandomState(seed)))


def noisy(n=600, n_classes=2):
    return make_classification(n, 6, n_informative=4, n_classes=n_classes, random_state=0)


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_that_certify_have_no_part_in_the_tree_nor_in_when_it_stops(grouped):
    """Other labels of the rows after the pilot change neither the share nor what is proposed."""
    X, y = noisy(n_classes=4)
    groups = np.arange(600) // 3 if grouped else None
    model = CertifiedTreeClassifier(random_state=0).fit(X, y, groups=groups)
    assert model.train_size_ in SHARES
    sides = train_calibration_split(600, model.train_size_, np.random.RandomState(0), groups)
    np.testing.assert_array_equal(model.model_selection_.held.grow, sides.train)
    assert model.certificate_.n == (200 if grouped else 600) - round(
        model.train_size_ * (200 if grouped else 600)
    )
    other = y.copy()
    other[sides.calibration] = np.random.default_rng(1).integers(0, 4, len(sides.calibration))
    again = CertifiedTreeClassifier(random_state=0).fit(X, other, groups=groups)
    assert again.train_size_ == model.train_size_
    np.testing.assert_array_equal(again.tree_.threshold, model.tree_.threshold)
    np.testing.assert_array_equal(
        again.model_selection_.alone.score, model.model_selection_.alone.score
    )
    assert again.certificates_[0].risk > model.certificates_[0].risk
    # Rows that grow beyond the pilot have no part in when it stops, either.
    pilot = train_calibration_split(600, PILOT, np.random.RandomState(0), groups)
    other = y.copy()
    other[pilot.calibration] = np.random.default_rng(1).integers(0, 4, len(pilot.calibration))
    third = CertifiedTreeClassifier(random_state=0).fit(X, other, groups=groups)
    assert third.train_size_ == model.train_size_


def test_hard_tables_let_more_rows_grow_than_noise():
    X, y = noisy(2000, n_classes=4)
    X = X.round(6)  # Last digits differ between versions of NumPy, and the folds with them.
    fractions = []
    for seed in range(3):
        coins = np.random.default_rng(seed).integers(0, 2, 2000)
        model = CertifiedTreeClassifier(random_state=seed)
        fractions.append([model.fit(X, target).train_size_ for target in (y, coins)])
        assert fractions[-1][0] > fractions[-1][1]
    assert min(of_coins for _, of_coins in fractions) == PILOT


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_few_rows_are_enough(n):
    X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    assert model.certificate_.n >= 1
    assert model.certificate_.bound <= 1
    with pytest.raises(ValueError, match="leaves none to train"):
        CertifiedTreeClassifier().fit(X[:1], y[:1])


def test_the_share_is_kept_in_files(tmp_path):
    X, y = noisy()
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").train_size_ == model.train_size_
    fixed = CertifiedTreeClassifier(train_size=0.4, random_state=0).fit(X, y)
    assert fixed.train_size_ == 0.4
