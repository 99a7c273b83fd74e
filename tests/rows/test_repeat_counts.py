"""How often the feature rows of a fit repeat: counts, tables in any order, and what keeps them."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import Table, parquet
from sklearn.base import clone

import certree
from certree import (
    BoostedTreesClassifier,
    Cart,
    CertifiedTreeClassifier,
    Grid,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    TreeForestClassifier,
)
from certree.rows.hashes import hash_samples, merge_hashes
from certree.rows.repeat_counts import RepeatCounts, hash_table

HASHES = st.lists(st.integers(0, 12), max_size=30).map(lambda x: np.array(x, dtype=np.uint64))


def as_numbers(counts):
    return (
        counts.n,
        counts.n_distinct,
        counts.twice.tolist(),
        counts.often.tolist(),
        counts.tables,
    )


def counted(hashes, tables=()):
    """The same literally."""
    often = Counter(hashes.tolist())
    twice = sorted(key for key, n in often.items() if n == 2)
    return len(hashes), len(often), twice, sorted(key for key, n in often.items() if n > 2), tables


def coins(n=400, n_values=None, seed=0):
    """Rows of noise, continuous or of few values, with labels of fair coins."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) if n_values is None else rng.integers(0, n_values, (n, 3)) + 0.0
    return X, rng.integers(0, 2, n)


@given(HASHES, HASHES)
def test_counts_are_those_of_a_dictionary(one, other):
    counts = RepeatCounts.count(np.sort(one), (1,))
    assert as_numbers(counts) == counted(one, (1,))
    assert counts.n_once == sum(n == 1 for n in Counter(one.tolist()).values())
    # Hashes of rounded numbers stand beside those of rows.
    known = merge_hashes(one, np.array([100], dtype=np.uint64))
    both = counts.add(known, np.sort(other), (2,))
    assert as_numbers(both) == counted(np.concatenate([one, other]), (1, 2))


def test_a_table_is_known_in_any_order_and_by_its_targets():
    X, y = coins(50)
    hashes, order = hash_samples(X), np.random.default_rng(1).permutation(50)
    table = hash_table(hashes, y)
    assert hash_table(hashes[order], y[order]) == table
    assert hash_table(hashes, 1 - y) != table
    other = (table + 5) % 2**64
    counts = RepeatCounts.count(np.sort(hashes), (table, other))
    assert counts.is_fit_table(table)
    assert counts.is_fit_table(other)
    assert counts.is_fit_table((table + other) % 2**64)
    assert not counts.is_fit_table(hash_table(hashes[1:], y[1:]))


def test_fits_count_the_rows_that_they_know():
    X, y = coins(300, 7)
    hashes = hash_samples(X)
    expected = counted(hashes, (hash_table(hashes, y),))
    for model in (
        BoostedTreesClassifier(max_iter=3, random_state=0),
        TreeForestClassifier(3, random_state=0),
        PACBayesTreeClassifier(random_state=0),
        CertifiedTreeClassifier(duplicates="genuine", random_state=0),
    ):
        assert as_numbers(model.fit(X, y)._sample_counts) == expected


def test_rows_that_decide_the_rounds_are_counted_with_those_of_the_fit():
    X, y = coins(300, 9)
    model = BoostedTreesClassifier(max_iter=20, random_state=0, early_stopping=True)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    hashes = hash_samples(X)
    tables = hash_table(hashes[:200], y[:200]), hash_table(hashes[200:], y[200:])
    assert as_numbers(model._sample_counts) == counted(hashes, tables)
    for rows in (slice(0, 200), slice(200, 300), slice(0, 300)):
        with pytest.raises(ValueError, match=r"table of the fit.*Pass new rows"):
            certree.certify(model, X[rows], y[rows], duplicates="genuine")


def test_batches_are_counted_together():
    X, y = coins(300, 7)
    model = NaiveBayesClassifier(densities="normal")
    model.partial_fit(X[:100], y[:100], classes=[0, 1]).partial_fit(X[100:], y[100:])
    assert as_numbers(model._sample_counts)[:4] == counted(hash_samples(X))[:4]
    box = [[-1.0] * 3, [8.0] * 3]
    model = PACBayesTreeClassifier(
        Grid(box), max_depth=4, lambda_error=1.0, lambda_penalty=0.1
    ).fit(X, y)
    joined = clone(model).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert as_numbers(joined._sample_counts) == as_numbers(model._sample_counts)
    joined.forget(X[:50], y[:50])
    expected = clone(model).fit(X[50:], y[50:])
    assert as_numbers(joined._sample_counts) == as_numbers(expected._sample_counts)


@pytest.mark.parametrize("n_values", [None, 4])
@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesClassifier(max_iter=3, random_state=0),
        BoostedTreesClassifier(max_iter=3, early_stopping=True, random_state=0),
        TreeForestClassifier(3, random_state=0),
        PACBayesTreeClassifier(Cart(max_bins=255), random_state=0),
        CertifiedTreeClassifier(Cart(max_bins=255), duplicates="genuine", random_state=0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::certree.RepeatedRowsWarning")
def test_rows_in_files_are_counted_as_in_memory(model, n_values, tmp_path):
    X, y = coins(400, n_values)
    y = np.where(y == 1, "yes", "no")
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    for k in range(3):
        rows = Table.from_pandas(frame.iloc[k * 150 : (k + 1) * 150], preserve_index=False)
        parquet.write_table(rows, str(tmp_path / f"{k}.parquet"))
    here = clone(model).fit(frame[list("abc")], y)
    there = clone(model).fit(tmp_path, "y")
    np.testing.assert_array_equal(here.sample_hashes_, there.sample_hashes_)
    assert as_numbers(here._sample_counts) == as_numbers(there._sample_counts)
    for one in (here, there):
        with pytest.raises(ValueError, match="table of the fit"):
            certree.certify(one, frame[list("abc")], y, duplicates="genuine")
        with pytest.raises(ValueError, match="table of the fit"):
            certree.certify(one, tmp_path, "y", duplicates="genuine")


def test_files_keep_the_counts(tmp_path):
    X, y = coins(300, 7)
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
    certree.save(model, tmp_path / "model")
    loaded = certree.load(tmp_path / "model")
    assert as_numbers(loaded._sample_counts) == as_numbers(model._sample_counts)
    with pytest.raises(ValueError, match="table of the fit"):
        certree.certify(loaded, X, y, duplicates="genuine")
    certree.save(model, tmp_path / "bare", sample_hashes=False)
    assert certree.load(tmp_path / "bare")._sample_counts is None
