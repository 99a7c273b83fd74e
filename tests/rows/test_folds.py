from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree.rows.folds import content_folds
from run_length import choose_seeds


def deal(X, y, n_folds=2, seed=0, weight=None):
    y = np.asarray(y, dtype=np.int32)
    rng = np.random.RandomState(seed)
    return list(content_folds(np.asarray(X), y, n_folds, rng, weight))


def contents(X, y, rows, weight):
    """How often each content, class and weight occurs among some rows."""
    weight = np.ones(len(y)) if weight is None else weight
    return Counter((*map(float, X[i]), int(y[i]), float(weight[i])) for i in rows)


def sides(X, y, folds, weight=None):
    return [
        (contents(X, y, fold.train, weight), contents(X, y, fold.validation, weight))
        for fold in folds
    ]


@st.composite
def few_contents(draw):
    """Rows of which many are equal, with their classes."""
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, draw(st.integers(1, 6)), size=(n, 2)).astype(float)
    return X, rng.integers(0, draw(st.integers(1, 4)), size=n).astype(np.int32)


@given(few_contents(), st.integers(2, 7), st.integers(0, 1000))
def test_every_row_judges_once_and_grows_in_all_other_folds(rows, n_folds, seed):
    X, y = rows
    folds = deal(X, y, n_folds, seed)
    judged = np.concatenate([fold.validation for fold in folds])
    np.testing.assert_array_equal(np.sort(judged), np.arange(len(y)))
    for fold in folds:
        together = np.concatenate([fold.train, fold.validation])
        np.testing.assert_array_equal(np.sort(together), np.arange(len(y)))


@given(few_contents(), st.integers(2, 7), st.sampled_from([1.0, 0.25, 1e12]), st.integers(0, 1000))
def test_a_row_is_in_one_fold_as_a_whole_whatever_it_weighs(rows, n_folds, unit, seed):
    X, y = rows
    weight = np.random.default_rng(seed).integers(1, 50, len(y)) * unit
    folds = deal(X, y, n_folds, seed, weight)
    judged = np.concatenate([fold.validation for fold in folds])
    np.testing.assert_array_equal(np.sort(judged), np.arange(len(y)))
    for fold in folds:
        assert not set(fold.train) & set(fold.validation)


@given(few_contents(), st.integers(2, 7), st.sampled_from([0.5, 3.0, 1e9]), st.integers(0, 1000))
def test_weights_decide_only_which_of_equal_rows_is_the_first(rows, n_folds, unit, seed):
    X, y = rows
    weight = np.random.default_rng(seed).integers(1, 5, len(y)).astype(float)
    plain, weighted = deal(X, y, n_folds, seed), deal(X, y, n_folds, seed, weight)
    assert sides(X, y, plain) == sides(X, y, weighted)
    for fold, other in zip(weighted, deal(X, y, n_folds, seed, unit * weight), strict=True):
        np.testing.assert_array_equal(fold.validation, other.validation)


@given(few_contents(), st.integers(2, 7), st.integers(0, 1000))
def test_equal_rows_are_told_apart_by_their_weights_wherever_they_stand(rows, n_folds, seed):
    X, y = rows
    rng = np.random.default_rng(seed)
    weight, order = rng.integers(1, 4, len(y)).astype(float), rng.permutation(len(y))
    before = sides(X, y, deal(X, y, n_folds, seed, weight), weight)
    shuffled = X[order], y[order]
    folds = deal(*shuffled, n_folds, seed, weight[order])
    assert before == sides(*shuffled, folds, weight[order])


@given(few_contents(), st.integers(2, 5), st.integers(0, 1000))
def test_folds_hold_the_same_contents_after_shuffling(rows, n_folds, seed):
    X, y = rows
    order = np.random.default_rng(seed).permutation(len(y))
    before = sides(X, y, deal(X, y, n_folds, seed))
    after = sides(X[order], y[order], deal(X[order], y[order], n_folds, seed))
    assert before == after


def test_weights_of_one_deal_like_no_weights():
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 4, size=(50, 2)).astype(float), rng.integers(0, 2, 50)
    for plain, weighted in zip(deal(X, y, 3), deal(X, y, 3, weight=np.ones(50)), strict=True):
        np.testing.assert_array_equal(plain.train, weighted.train)
        np.testing.assert_array_equal(plain.validation, weighted.validation)


@given(few_contents(), st.integers(2, 6), st.booleans(), st.integers(0, 1000))
def test_classes_and_rows_are_spread_evenly_over_folds(rows, n_folds, weighted, seed):
    X, y = rows
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float) if weighted else None
    counts = np.zeros((n_folds, 4))
    for k, fold in enumerate(deal(X, y, n_folds, seed, weight)):
        counts[k] = np.bincount(y[fold.validation], minlength=4)
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_fewer_rows_than_folds_give_a_fold_per_row():
    X, y = np.arange(3.0)[:, None], [0, 1, 1]
    folds = deal(X, y, 10)
    assert sorted(tuple(fold.validation) for fold in folds) == [(0,), (1,), (2,)]
    assert all(len(fold.train) == 2 for fold in folds)


@pytest.mark.parametrize("weight", [None, 0.5, 3.0])
def test_one_row_gives_no_fold(weight):
    assert deal([[1.0]], [0], weight=None if weight is None else np.array([weight])) == []


@st.composite
def label_columns(draw):
    """Rows that are all different, and columns of classes of which some are rare."""
    n, q = draw(st.integers(8, 60)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shares = rng.choice([0.5, 0.2, 0.05], q)
    y = (rng.random((n, q)) < shares).astype(np.int32) * rng.integers(1, 3, (n, q))
    return rng.normal(size=(n, 2)), y.astype(np.int32)


@given(label_columns(), st.integers(2, 5), st.integers(0, 1000), st.booleans())
def test_columns_of_classes_are_dealt_by_their_rarest_ones(rows, n_folds, seed, is_weighed):
    X, y = rows
    weight = (
        np.random.default_rng(seed).integers(1, 4, len(y)).astype(float) if is_weighed else None
    )
    folds = deal(X, y, n_folds, seed, weight)
    times = np.ones(len(y))
    strata = reference.find_label_strata(y, times)
    for fold in folds:
        judging = np.zeros(len(y))
        judging[fold.validation] = 1
        least = min(strata)[0]
        if all(one == least for stratum in strata for one in stratum if one[0] == least[0]):
            # Rows of the rarest class stand one behind the other, and are dealt in turn.
            own = list(least[1])
            assert abs(judging[own].sum() - times[own].sum() / n_folds) < 1
        for stratum in set(strata):
            own = [i for i, one in enumerate(strata) if one == stratum]
            assert abs(judging[own].sum() - times[own].sum() / n_folds) < 1


@given(label_columns(), st.integers(2, 5), st.integers(0, 1000))
def test_folds_depend_neither_on_the_order_of_columns_nor_of_rows(rows, n_folds, seed):
    X, y = rows
    rng = np.random.default_rng(seed)
    columns, order = rng.permutation(y.shape[1]), rng.permutation(len(y))
    for fold, other in zip(
        deal(X, y, n_folds, seed), deal(X[order], y[order][:, columns], n_folds, seed), strict=True
    ):
        np.testing.assert_array_equal(fold.validation, np.sort(order[other.validation]))


@pytest.mark.parametrize("n_folds", [1, 0, -3])
def test_less_than_two_folds_are_refused(n_folds):
    with pytest.raises(ValueError, match="cv must be at least 2"):
        deal([[0.0], [1.0]], [0, 1], n_folds)


def test_seeds_differ_in_their_folds_and_a_seed_repeats_its_own():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    judged = [tuple(deal(X, y, 2, seed)[0].validation) for seed in range(20)]
    assert len(set(judged)) == 20
    assert tuple(deal(X, y, 2, 7)[0].validation) == judged[7]


def test_the_first_fold_is_no_fixed_part_of_the_value_range():
    # A hash that kept the order of the values would put neighbours together, or always apart.
    X, y = np.arange(200.0)[:, None], np.zeros(200, dtype=np.int32)
    together = [
        np.isin(np.arange(0, 200, 2), fold.validation)
        == np.isin(np.arange(1, 200, 2), fold.validation)
        for fold in (deal(X, y, 2, seed)[0] for seed in range(20))
    ]
    assert 0.4 < np.mean(together) < 0.6


def test_float32_rows_deal_like_the_same_numbers_in_float64():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 8, size=(60, 3)).astype(np.float32) / 8
    y = rng.integers(0, 2, 60)
    for single, double in zip(deal(X, y, 3), deal(X.astype(float), y, 3), strict=True):
        np.testing.assert_array_equal(single.validation, double.validation)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_negative_zero_deals_like_zero(dtype):
    rng = np.random.default_rng(5)
    X = rng.integers(-1, 2, size=(60, 2)).astype(dtype)
    y = rng.integers(0, 2, 60)
    signed = np.where((X == 0) & rng.choice([True, False], X.shape), dtype(-0.0), X)
    assert np.signbit(signed[signed == 0]).any()
    for plain, other in zip(deal(X, y, 3), deal(signed, y, 3), strict=True):
        np.testing.assert_array_equal(plain.validation, other.validation)


def test_missing_values_are_dealt():
    X = np.array([[np.nan], [1.0], [np.nan], [2.0]])
    folds = deal(X, [0, 0, 0, 0])
    assert sorted(np.concatenate([fold.validation for fold in folds])) == [0, 1, 2, 3]
    # Two equal rows count as copies: which of them stands first does not matter.
    swapped = deal(X[[2, 1, 0, 3]], [0, 0, 0, 0])
    assert [set(fold.validation) & {1, 3} for fold in folds] == [
        set(fold.validation) & {1, 3} for fold in swapped
    ]


def test_the_caller_s_rows_are_left_alone():
    X, y = np.array([[-0.0], [1.0]]), np.array([0, 1], dtype=np.int32)
    X.flags.writeable = y.flags.writeable = False
    assert len(deal(X, y)) == 2
    assert np.signbit(X[0, 0])


def test_numbers_are_dealt_by_what_rows_hold():
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 3, (60, 1)).astype(float), rng.normal(size=60)
    order = rng.permutation(60)
    sides = []
    for rows in (np.arange(60), order):
        folds = content_folds(X[rows], y[rows], 3, np.random.RandomState(0))
        sides.append([sorted(y[rows][fold.validation]) for fold in folds])
    assert sides[0] == sides[1]
    assert [len(side) for side in sides[0]] == [20, 20, 20]


def test_rows_of_several_columns_of_classes_are_dealt_by_all_of_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), rng.integers(0, [2, 3], (600, 2)).astype(np.int32)
    weight = rng.integers(1, 3, 600).astype(float)
    for columns in ([0, 1], [1, 0]):
        folds = deal(X, y[:, columns], 3, weight=weight)
        for fold, first in zip(folds, deal(X, y, 3), strict=True):
            np.testing.assert_array_equal(fold.validation, first.validation)
    for fold in folds:
        sets = np.unique(y[fold.validation], axis=0, return_inverse=True)[1].ravel()
        expected = np.unique(y, axis=0, return_inverse=True)[1].ravel()
        assert (abs(np.bincount(sets, minlength=6) - np.bincount(expected) / 3) <= 1).all()


@pytest.mark.parametrize("seed", choose_seeds(10))
def test_rows_of_the_rarest_of_several_classes_are_in_all_folds_alike(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, (60, 4)).astype(np.int32)
    rare = rng.permutation(60)[:6]
    y[:, 2] = 0
    y[rare, 2] = 1
    for fold in deal(X, y, 3, seed):
        assert np.isin(fold.validation, rare).sum() == 2
