"""Which rows grow and which certify: where it goes by what rows hold, where they stand is nothing."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import (
    Cart,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    PACBayesTreeClassifier,
)
from certree.rows import train_calibration_split
from certree.rows.folds import shuffle_by_content
from certree.rows.hashes import hash_samples
from certree.rows.split import (
    TrainCalibrationSplitter,
    _draw_row_per_unit,
    check_groups,
    draw_copies,
    draw_row_per_group,
    rank_units,
)
from run_length import choose_seeds

# -- one row of each group


def test_one_row_of_each_group_is_drawn():
    rng = np.random.default_rng(0)
    for groups in (rng.integers(0, 40, 100), rng.choice([*"abcde"], 30), np.arange(7)):
        found = draw_row_per_group(groups)
        assert found.tolist() == reference.draw_row_per_group(groups.tolist())
        assert found.tolist() == sorted(found)
        assert sorted(groups[found].tolist()) == sorted(set(groups.tolist()))
    with pytest.raises(ValueError, match="groups"):
        draw_row_per_group(np.array([1.0, np.nan]))


def test_each_row_of_a_group_is_drawn_equally_often():
    drawn = draw_row_per_group(np.arange(30_000) // 3) % 3
    assert np.bincount(drawn) == pytest.approx([10_000 / 3] * 3, abs=250)


GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WORD = 2**64


def mixed(word):
    word = (word ^ (word >> 30)) * FIRST % WORD
    word = (word ^ (word >> 27)) * SECOND % WORD
    return word ^ (word >> 31)


def literal_order(content, weight, seed):
    """Numbers of rows, each copy of a row having its own, and the order of these."""
    word = mixed((sum(content) + seed) % WORD)
    numbers = []
    for i, one in enumerate(content):
        alike = [j for j, other in enumerate(content) if other == one]
        copy = sorted(alike, key=lambda j: (weight[j], j)).index(i)
        numbers.append(mixed(mixed((one + copy * GOLDEN) % WORD) ^ word))
    return sorted(range(len(content)), key=numbers.__getitem__)


@pytest.mark.parametrize("seed", choose_seeds(20))
def test_the_order_is_the_literal_one(seed):
    rs = np.random.RandomState(seed)
    content = hash_samples(rs.randint(0, 6, 30).astype(float))
    weight = None if seed % 2 else rs.randint(1, 4, 30).astype(float)
    found = shuffle_by_content(content, weight, np.random.RandomState(seed))
    drawn = int(np.random.RandomState(seed).randint(2**31 - 1))
    expected = literal_order(content.tolist(), [0] * 30 if weight is None else weight, drawn)
    assert found.tolist() == expected


@pytest.mark.parametrize("weighed", [False, True])
def test_where_rows_stand_decides_nothing(weighed):
    rs = np.random.RandomState(0)
    x, order = rs.randint(0, 9, 200).astype(float), rs.permutation(200)
    weight = rs.randint(1, 4, 200).astype(float) if weighed else np.ones(200)
    deal = [
        TrainCalibrationSplitter(0.4, np.random.RandomState(3), by_content=True) for _ in range(2)
    ]
    given = weight if weighed else None
    here = deal[0](200, None, given, lambda: hash_samples(x))
    there = deal[1](
        200, None, None if given is None else given[order], lambda: hash_samples(x[order])
    )
    assert len(here.train) == 80
    rows = np.column_stack([x, weight])
    for one, other in ((here.train, there.train), (here.calibration, there.calibration)):
        assert sorted(rows[one].tolist()) == sorted(rows[order][other].tolist())


def test_more_rows_that_grow_are_those_of_fewer():
    content = hash_samples(np.arange(100.0))
    few, more = (
        TrainCalibrationSplitter(share, np.random.RandomState(0), by_content=True)(
            100, None, None, lambda: content
        )
        for share in (0.3, 0.6)
    )
    assert set(few.train) < set(more.train)


MIXED = np.array([1, "a"] * 3, dtype=object)
LISTS = pd.Series([[1], [2, 3]] * 3).map(np.array).to_numpy()


@pytest.mark.parametrize(("groups", "kinds"), [(MIXED, "int, str"), (LISTS, "ndarray")])
def test_groups_without_an_order_are_refused(groups, kinds):
    said = f"groups must hold values that can be ordered.*got {kinds}"
    with pytest.raises(TypeError, match=said):
        train_calibration_split(6, 0.5, np.random.RandomState(0), groups)
    X, y = np.arange(6.0)[:, None], np.arange(6) % 2
    with pytest.raises(TypeError, match=said):
        PACBayesTreeClassifier(cv=2).fit(X, y, groups=groups)


def test_times_that_are_missing_name_no_group():
    groups = np.datetime64("2026-01-01") + np.arange(6)
    groups[2] = np.datetime64("NaT")
    with pytest.raises(ValueError, match="got none for 1 of 6"):
        check_groups(groups, 6)


def test_groups_are_dealt_as_ever():
    groups = np.arange(60) // 3
    by_content = TrainCalibrationSplitter(0.5, np.random.RandomState(1), by_content=True)(
        60, groups, None, lambda: 1 / 0
    )
    expected = train_calibration_split(60, 0.5, np.random.RandomState(1), groups)
    np.testing.assert_array_equal(by_content.train, expected.train)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_seed_deals_classes_of_few_different_rows_as_chance_does(seed):
    # Ten different rows: how many copies of each grow must not hang on the seed alone.
    rs, scores = np.random.RandomState(100 + seed), []
    for _ in range(400):
        x, y = rs.randint(0, 5, 60).astype(float), rs.randint(0, 2, 60).astype(float)
        content = hash_samples(x, y)
        order = shuffle_by_content(content, None, np.random.RandomState(seed))
        for grow in (y[order[:30]], (x == 2)[order[:30]]):
            of_all = (y if grow.dtype == float else x == 2).sum() / 60
            spread = np.sqrt(30 * of_all * (1 - of_all) * 30 / 59)
            scores.append((grow.sum() - 30 * of_all) / spread)
    for told in (scores[::2], scores[1::2]):
        assert abs(np.mean(told)) < 4 / 20
        assert 0.7 < np.var(told) < 1.35


@pytest.mark.parametrize("made", [CertifiedTreeClassifier, CertifiedTreeRegressor])
@pytest.mark.parametrize("max_bins", [None, 255])
def test_fits_on_bins_deal_by_content(made, max_bins):
    rs = np.random.RandomState(0)
    X, order = rs.normal(size=(400, 3)), rs.permutation(400)
    y = (X[:, 0] + rs.normal(size=400) > 0).astype(int)
    grower = Cart(max_bins=max_bins)
    here = made(grower, random_state=0).fit(X, y)
    there = made(grower, random_state=0).fit(X[order], y[order])
    assert (here.certificates_ == there.certificates_) == (max_bins == 255)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.booleans())
def test_units_have_the_place_of_one_of_their_rows(keys, are_given):
    keys = np.array(keys)
    places = np.random.default_rng(0).permutation(len(keys)) if are_given else None
    drawn = _draw_row_per_unit(np.unique(keys, return_inverse=True)[1])
    expected = reference.rank_units(keys, range(len(keys)) if places is None else places, drawn)
    assert rank_units(keys, places).tolist() == expected
    np.testing.assert_array_equal(rank_units(keys.astype(str), places), expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_one_row_is_drawn_of_each_set_of_copies(keys):
    first = np.array([keys.index(key) for key in keys])
    kept = np.unique(first)
    drawn = draw_copies(first, kept)
    np.testing.assert_array_equal(first[drawn], kept)


def test_large_units_of_a_shuffled_table_do_not_come_first():
    """By their first rows the unit of 50 rows would come first in nearly all tables."""
    places = []
    for seed in range(200):
        keys = np.random.default_rng(seed).permutation(
            np.repeat([0, *range(1, 11)], [50, *[1] * 10])
        )
        places.append(rank_units(keys)[np.argmin(keys)])
    assert np.mean(places) == pytest.approx(5, abs=4 * 3.2 / 200**0.5)
