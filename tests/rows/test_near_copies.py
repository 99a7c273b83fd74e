"""Near copies: what certified fits see beyond equal rows, and what they say of it."""

import json
import math
import os
import warnings
from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone

import certree
import reference
from certree import (
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    Grid,
    NearCopiesWarning,
)
from certree.certificates.certificate import restore_certificate
from certree.rows import NearCopies, near_copies
from certree.rows.duplicates import RowHasher, count_repeats
from certree.rows.hashes import RowHashes
from certree.rows.near_copies import ComparedRows, find_near_copies, halve_at_gaps

DATA = os.environ.get("CERTREE_DATA")


def searched(X, y, train, groups=None, with_target=True, repeats=0):
    """What the search finds in a table of which some rows train and the others certify."""
    alike = RowHasher()
    target, columns = alike.encode(X, y)
    sides = np.flatnonzero(train), np.flatnonzero(~np.asarray(train))
    rows = ComparedRows(columns, alike.kinds, target, *sides, groups)
    keys = RowHashes.hash_rows(columns, target, are_all=True).keys
    return find_near_copies(rows, None, keys, repeats, with_target=with_target)


def coins(n=600, p=4, seed=0):
    """Rows of noise with labels of fair coins."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.integers(0, 2, n)


def doubled(X, y, other):
    """A table of rows and of near copies of them."""
    return np.vstack([X, other]), np.append(y, y)


NEAR = {
    "float16": lambda X: X.astype(np.float16),
    "decimals": lambda X: X.round(4),
    "noise": lambda X: X + 1e-3 * np.random.default_rng(1).normal(size=X.shape),
}
every_near = pytest.mark.parametrize("near", NEAR)


# -- the literal twins -----------------------------------------------------------------------------

VALUES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, 1e300]),
    st.integers(-3, 3).map(float),
    st.floats(-1, 1).map(lambda one: round(one, 2)),
)


@given(
    st.lists(st.lists(VALUES, min_size=1, max_size=40), min_size=1, max_size=3),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_bins_are_halved_as_in_the_reference(columns, bins):
    n = min(map(len, columns))
    ordered = np.sort([np.where(np.isnan(one[:n]), np.inf, one[:n]) for one in columns], axis=1)
    starts = halve_at_gaps(ordered, bins)
    assert starts.tolist() == [reference.halve_at_gaps(one.tolist(), bins) for one in ordered]


def drawn_table(data, rng):
    """Numbers of some digits, some of them missing, and near copies of some rows."""
    n, p = data.draw(st.integers(2, 60)), data.draw(st.sampled_from([1, 2, 3, 9]))
    X = np.round(rng.normal(size=(n, p)), data.draw(st.integers(0, 6)))
    X[rng.random((n, p)) < data.draw(st.sampled_from([0, 0.1]))] = np.nan
    again = X[rng.integers(0, n, n // 2)]
    noise = data.draw(st.sampled_from([0, 1e-6, 1e-2]))
    return np.vstack([X, again + noise * rng.normal(size=again.shape)])


@given(st.data(), st.integers(0, 2**32 - 1))
def test_near_copies_are_those_of_the_reference(data, seed):
    rng = np.random.default_rng(seed)
    X = drawn_table(data, rng)
    n, p = X.shape
    word, y = rng.integers(0, 2, n) + 0.5, rng.integers(0, 2, n).astype(float)
    train = rng.random(n) < data.draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    groups = rng.integers(0, 9, n) if data.draw(st.booleans()) else None
    keys = rng.integers(0, 2**64, n, dtype=np.uint64)
    with_target = data.draw(st.booleans())
    sides = np.flatnonzero(train), np.flatnonzero(~train)
    rows = ComparedRows([*X.T, word], ["number"] * p + ["text"], y, *sides, groups)
    # Tables beyond so many rows are sampled.
    most = data.draw(st.sampled_from([2**13, 64]))
    with patch.multiple(near_copies, _ALL_ROWS=most, _SOME_ROWS=32):
        found = find_near_copies(rows, None, keys, 0, with_target=with_target)
    columns = [one for j, one in enumerate(X.T.tolist()) if f"feature {j}" not in found.left_out]
    assume(columns)
    beside = [*zip(word, y if with_target else word, strict=True)]
    held = None if groups is None else groups.tolist()
    about = (*(one.tolist() for one in sides), held, keys.tolist(), most, 32)
    expected = reference.find_near_copies(columns, beside, *about)
    assert (found.n, found.bins) == expected[:2]
    assert (found.share, found.kept) == pytest.approx(expected[2:], abs=1e-12)


NUMBERS = st.one_of(st.integers(-2, 60), st.sampled_from([0.5, math.nan, 10**6]))


@given(
    st.lists(
        st.lists(NUMBERS, min_size=9, max_size=9)
        | st.permutations([*range(9)])
        | st.permutations([*"abcdefghi"])
        | st.lists(st.sampled_from("ab"), min_size=9, max_size=9),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.booleans(),
)
def test_identifiers_are_those_of_the_reference(columns, train, with_target):
    X = np.empty((9, len(columns)), dtype=object)
    X.T[:] = columns
    y = [0, 1, 0, 1, 0, 1, 0, 1, 1]
    found = searched(X, y, np.array(train), with_target=with_target)
    expected = reference.find_identifiers(columns)
    others = [j for j in range(len(columns)) if j not in expected]
    if not others:
        assert found == NearCopies(0, is_balanced=False, with_target=with_target)
        return
    assert found.left_out == tuple(f"feature {j}" for j in expected)
    assert found.is_key == any(expected.values())
    if expected:
        kept = [[*map(str, map(plus_zero, columns[j]))] for j in others]
        rows = [*zip(*kept, y if with_target else [0] * 9, strict=True)]
        first = np.array([rows.index(row) for row in rows])
        sides = np.flatnonzero(train), np.flatnonzero(~np.array(train))
        assert found.n_alike == count_repeats(first, *sides)


def plus_zero(value):
    """Numbers as floats, texts as they are."""
    return value if isinstance(value, str) else float(value)


# -- what fits say ---------------------------------------------------------------------------------


@every_near
@pytest.mark.parametrize(
    "model",
    [
        CertifiedTreeClassifier(random_state=0),
        CertifiedTreeClassifier(random_state=0, train_size=0.75, duplicates="copies"),
        CertifiedForestClassifier(6, random_state=0),
        CertifiedBoostedTreesClassifier(max_iter=3, random_state=0),
        CertifiedTreeRegressor(random_state=0),
        CertifiedBoostedTreesRegressor(max_iter=3, random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_near_copies_are_warned_of(near, model):
    X, y = coins()
    with pytest.warns(NearCopiesWarning, match=r"nearly repeat training rows.*groups=") as said:
        model.fit(*doubled(X, y, NEAR[near](X)))
    assert len([one for one in said if one.category is NearCopiesWarning]) == 1
    found = model.certificate_.near_copies
    assert found.are_likely
    assert 0.3 < found.share < 0.9
    assert found.kept > 0.75
    assert f"{found.bins} quantile bins" in str(model.certificate_.assumptions)
    model.fit(X, y)  # no warning
    found = model.certificate_.near_copies
    assert not found.are_likely
    assert "rows are no near copies of others (of " in str(model.certificate_.assumptions)


def test_certree_exports_the_warning():
    assert issubclass(NearCopiesWarning, UserWarning)
    assert certree.rows.NearCopiesWarning is NearCopiesWarning


@pytest.mark.filterwarnings("ignore:feature .* nearly is an identifier")
@pytest.mark.parametrize(
    "model", [CertifiedTreeClassifier(random_state=0), CertifiedForestClassifier(6)]
)
def test_row_numbers_and_keys_do_not_hide_copies(model):
    X, y = coins()
    X, y = doubled(X, y, X)
    numbered = np.column_stack([X, np.arange(1200)])
    message = (
        "of [0-9,]+ rows that certify repeat other rows, target included, in all features but "
        'feature 4, whose values all differ.*leave feature 4 out of X.*duplicates="genuine"'
    )
    with pytest.raises(ValueError, match=message):
        model.fit(numbered, y)
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(key=[f"customer {i}" for i in range(1200)])
    with pytest.raises(ValueError, match="in all features but key, whose values all differ"):
        model.fit(frame, y)
    with pytest.raises(ValueError, match="leave feature 4 out of X"):
        clone(model).set_params(duplicates="copies").fit(numbered, y)
    wide = np.random.default_rng(0).choice(10**9, 1200, replace=False)
    with pytest.warns(NearCopiesWarning, match="feature 4, whose values all differ"):
        model.fit(np.column_stack([X, wide]), y)
    # Somebody has said what such rows are.
    one = clone(model).set_params(duplicates="genuine").fit(numbered, y).certificate_
    assert one.near_copies.is_key
    assert f"{one.near_copies.n_alike:,} calibration rows that repeat" in one.assumptions[2]


def test_regressors_warn_of_features_that_repeat():
    X = coins()[0]
    numbered = np.column_stack([np.vstack([X, X]), np.arange(1200)])
    with pytest.warns(NearCopiesWarning, match="rows in all features but feature 4"):
        CertifiedTreeRegressor(random_state=0).fit(numbered, np.append(X[:, 0], X[:, 0] + 0.1))


@pytest.mark.parametrize("duplicates", ["auto", "copies"])
def test_a_few_rows_may_repeat_beside_a_key(duplicates):
    X, y = coins()
    X[:4], y[:4] = X[300:304], y[300:304]
    model = CertifiedTreeClassifier(random_state=0, duplicates=duplicates)
    numbered = np.column_stack([X, np.arange(600)])
    assert 0 < model.fit(numbered, y).certificate_.near_copies.n_alike <= 4
    with pytest.raises(ValueError, match="in all features but feature 4"):
        model.set_params(duplicates="refuse").fit(numbered, y)


def test_fractions_are_no_identifiers():
    X, y = coins()
    few = np.column_stack([X[:, 0], np.arange(600) % 3])
    assert searched(few, y, np.arange(600) % 2 == 0).left_out == ()
    # Integers that all differ, among others that do: rows repeat in nothing.
    found = searched(np.column_stack([X, np.arange(600)]), y, np.arange(600) % 2 == 0)
    assert (found.left_out, found.n_alike) == (("feature 4",), 0)


def test_rows_that_are_alike_within_a_group_are_no_repeats():
    X, y = coins()
    other = X + 1e-4
    groups = np.tile(np.arange(600), 2)
    model = CertifiedTreeClassifier(random_state=0)
    found = model.fit(*doubled(X, y, other), groups=groups).certificate_.near_copies
    assert found.grouped
    assert found.share < 0.05
    numbered = np.column_stack([np.vstack([X, X]), np.arange(1200)])
    one = model.fit(numbered, np.append(y, y), groups=groups).certificate_
    assert one.near_copies.n_alike == 0
    with pytest.warns(NearCopiesWarning, match="of the [0-9]+ groups that certify"):
        model.fit(*doubled(X, y, other), groups=np.arange(1200))


def test_balanced_classes_are_named():
    X, y = coins()
    y = np.arange(600) % 3
    said = CertifiedTreeClassifier(random_state=0).fit(X, y).certificate_.assumptions
    assert any("equally frequent" in one and "SMOTE" in one for one in said)
    said = CertifiedTreeClassifier(random_state=0).fit(X[1:], y[1:]).certificate_.assumptions
    assert not any("SMOTE" in one for one in said)


def test_rows_that_all_certify_are_compared_by_halves():
    X, y = coins()
    model = CertifiedTreeClassifier(Grid([[-9] * 4, [9] * 4]), max_depth=4)
    with pytest.warns(NearCopiesWarning):
        model.fit(*doubled(X, y, NEAR["decimals"](X)), classes=[0, 1])
    model.fit(X, y, classes=[0, 1])
    assert 200 < model.certificate_.near_copies.n < 400


def test_order_and_containers_of_rows_change_nothing():
    X, y = coins(2000)
    X, y = doubled(X, y, NEAR["noise"](X))
    train = np.arange(4000) % 3 > 0
    order = np.random.default_rng(0).permutation(4000)
    found = searched(X, y, train)
    assert searched(X[order], y[order], train[order]) == found
    assert searched(pd.DataFrame(X), y, train) == found
    assert searched(X[:, ::-1], y, train).share == found.share


def test_what_cannot_be_compared_is_said(tmp_path):
    X, y = coins(300)
    sparse = scipy.sparse.csr_array(np.where(X > 1, X, 0))
    model = CertifiedBoostedTreesClassifier(max_iter=2, random_state=0, duplicates="genuine")
    assert "which was not checked" in str(model.fit(sparse, y).certificate_.assumptions)
    words = pd.DataFrame({"a": np.where(X[:, 0] > 0, "x", "y")})
    model = CertifiedTreeClassifier(random_state=0, duplicates="genuine")
    assert "which was not checked" in str(model.fit(words, y).certificate_.assumptions)
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(label=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    model = CertifiedTreeClassifier(Cart(max_bins=255), random_state=0)
    model.fit([tmp_path / "rows.parquet"], "label")
    assert "rows are no near copies" in str(model.certificate_.assumptions)


def test_files_hold_what_was_found(tmp_path):
    X, y = coins()
    numbered = np.column_stack([X, np.arange(600)])
    for model in (
        CertifiedTreeClassifier(random_state=0),
        CertifiedForestClassifier(6, random_state=0),
        CertifiedBoostedTreesClassifier(max_iter=3, random_state=0),
        CertifiedTreeRegressor(random_state=0),
    ):
        one = model.fit(numbered, y).certificate_
        certree.save(model, tmp_path / "model")
        again = certree.load(tmp_path / "model").certificate_
        assert again == one
        assert again.near_copies == one.near_copies
        assert again.near_copies.left_out == ("feature 4",)
        assert again.assumptions == one.assumptions
        # Files of before hold none; others hold what no fit writes.
        entries = json.loads(json.dumps(asdict(one)))
        assert restore_certificate(entries).near_copies == one.near_copies
        entries["near_copies"]["left_out"] = "id"
        with pytest.raises(ValueError, match="left_out must be of type"):
            restore_certificate(entries)
        entries["near_copies"] = {"n": 3}
        with pytest.raises(ValueError, match="near_copies must have the fields"):
            restore_certificate(entries)
        del entries["near_copies"]
        assert restore_certificate(entries).near_copies is None


def test_guarantees_of_a_fit_assume_the_same():
    X, y = coins()
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    found = model.certificate_.near_copies
    families = model.conditional_guarantees()
    assert families.recall[0].near_copies == found
    pruning = certree.weights.node_weights.map_pruning(model.tree_, model.weights_)
    assert model.certify_pruning(pruning).near_copies == found
    assert model.certificate_.at(0.2).near_copies == found
    # New rows are compared with the rows of the fit by equality alone.
    new, labels = coins(seed=1)
    assert certree.certify(model, new, labels).near_copies is None


def test_settings_are_checked():
    with pytest.raises(ValueError, match="must not be negative"):
        NearCopies(-1)
    with pytest.raises(ValueError, match="share and kept must lie"):
        NearCopies(10, 64, 1.5)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="CERTREE_DATA names no directory")
def test_no_public_table_looks_like_near_copies():
    for path in sorted(Path(DATA).rglob("*.parquet")):
        table = pd.read_parquet(path)
        train = np.random.default_rng(0).random(len(table)) < 0.5
        y = table.iloc[:, -1].to_numpy()
        found = searched(table.iloc[:, :-1], y, train, with_target=len(np.unique(y)) < 50)
        assert not found.are_likely, path.name
        assert found.left_out == (), path.name


def test_a_fit_without_a_certificate_does_not_search():
    X, y = coins()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certree.PACBayesTreeClassifier(random_state=0).fit(*doubled(X, y, NEAR["decimals"](X)))
