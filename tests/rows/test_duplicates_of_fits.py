"""Fits to tables of many equal rows: who warns, of how many, and how often."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import certree
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRanker,
    BoostedTreesRegressor,
    Cart,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    Grid,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    RepeatedRowsWarning,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.boolean import FourierClassifier
from certree.ensembles import ConformalBandRegressor
from certree.out_of_core import sources
from certree.rows.hashes import count_equal_rows, mix

N = 400
CLASSIFIERS = [
    PACBayesTreeClassifier(random_state=0),
    PrunedTreeClassifier(random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    DecoratedTreeClassifier(random_state=0),
    BoostedTreesClassifier(max_iter=3, random_state=0),
    BoostedTreesClassifier(max_iter=3, early_stopping=True, random_state=0),
    TreeForestClassifier(5, random_state=0),
    NaiveBayesClassifier(),
    AdaBoostTreeClassifier(n_estimators=3, random_state=0),
    # Members are fitted to the same rows, and must not repeat the warning.
    AdaBoostTreeClassifier(PrunedTreeClassifier(max_depth=2), n_estimators=3, random_state=0),
]
REGRESSORS = [
    PACBayesTreeRegressor(random_state=0),
    PrunedTreeRegressor(random_state=0),
    BoostedTreesRegressor(max_iter=3, random_state=0),
    TreeForestRegressor(5, random_state=0),
    ConformalBandRegressor(BoostedTreesRegressor("quantile", max_iter=3), random_state=0),
]


def draws(target="two", n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = X[:, 0] + rng.random(n)
    return X, np.round(y, 1) if target == "rounded" else y if target == "numbers" else y > 1


def twice(n_copied, n=N):
    """Which draw each row of a table is, the first ones of which stand there twice."""
    return np.append(np.arange(n), np.arange(n_copied))


def number_said(fit):
    """How many rows a fit says to repeat others; None: it says nothing. It must not say so twice."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit()
    found = [str(one.message) for one in said if one.category is RepeatedRowsWarning]
    assert len(found) <= 1
    return int(found[0].split(" hold ")[1].split(" of ")[0].replace(",", "")) if found else None


def kind(model):
    return type(model).__name__


@pytest.mark.parametrize("model", CLASSIFIERS, ids=kind)
def test_classifiers_warn_once_of_more_than_a_quarter(model):
    X, y = draws()
    many, few = twice(60), twice(50)  # 120 of 460 and 100 of 450 rows repeat others
    assert number_said(lambda: model.fit(X[many], y[many])) == 120
    assert number_said(lambda: model.fit(X[few], y[few])) is None


@pytest.mark.parametrize("target", ["numbers", "rounded"])
@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
def test_regressors_warn_once_of_more_than_a_quarter(model, target):
    X, y = draws(target)
    many, few = twice(200), twice(30)
    said = number_said(lambda: model.fit(X[many], y[many]))
    # A band fits its quantiles to some of the rows.
    assert said is not None if isinstance(model, ConformalBandRegressor) else said == 400
    assert number_said(lambda: model.fit(X[few], y[few])) is None


def test_the_message_says_what_to_do():
    X, y = draws()
    row = twice(N)
    with pytest.warns(RepeatedRowsWarning, match=r"hold 800 of 800 rows that repeat") as said:
        PrunedTreeClassifier().fit(X[row], y[row])
    text = str(said[0].message)
    for words in ("oversampling", "join", "groups=", "sample_weight", "frequency table", "nothing"):
        assert words in text
    assert issubclass(RepeatedRowsWarning, UserWarning)
    assert certree.rows.RepeatedRowsWarning is certree.RepeatedRowsWarning


@pytest.mark.parametrize(
    "model", [PrunedTreeClassifier(), BoostedTreesClassifier(max_iter=2), TreeForestClassifier(3)]
)
def test_groups_say_which_rows_are_copies(model):
    X, y = draws()
    row = twice(N)
    assert number_said(lambda: model.fit(X[row], y[row], groups=row)) is None


def test_queries_are_the_draws_of_a_ranker():
    X, y = draws()
    row = twice(N)
    ranker = BoostedTreesRanker(max_iter=2, random_state=0)
    assert number_said(lambda: ranker.fit(X[row], y[row].astype(int), group=[100] * 8)) is None


def test_a_certified_fit_says_by_duplicates_what_copies_are():
    X, y = draws()
    row = twice(N)
    for word in ("genuine", "copies"):
        model = CertifiedTreeClassifier(duplicates=word, random_state=0)
        assert number_said(lambda model=model: model.fit(X[row], y[row])) is None
    few = twice(12, 12)
    model = CertifiedTreeClassifier(random_state=0)
    with pytest.warns(RepeatedRowsWarning, match="that certify repeat other rows"):
        model.fit(X[few], np.arange(24) % 12 % 2)


def test_rows_that_differ_in_the_target_are_not_equal():
    X, y = draws("numbers")
    both = np.vstack([X, X])
    assert number_said(lambda: TreeForestRegressor(2).fit(both, np.append(y, y + 1))) is None
    labels = np.repeat([0, 1], N)
    assert number_said(lambda: PrunedTreeClassifier().fit(both, labels)) is None
    several = np.column_stack([np.append(y, y), labels])
    assert number_said(lambda: TreeForestRegressor(2).fit(both, several)) is None
    several[:, 1] = 0
    assert number_said(lambda: TreeForestRegressor(2).fit(both, several)) == 2 * N


def test_rows_are_compared_as_the_fit_takes_them():
    X, y = draws()
    X[:, 1], X[::3, 2] = 0.0, np.nan
    again = np.vstack([X, np.where(X == 0, -0.0, X)])
    labels = np.append(y, y)
    assert number_said(lambda: PrunedTreeClassifier().fit(again, labels)) == 2 * N
    sparse = csr_array(np.nan_to_num(again))
    assert number_said(lambda: TreeForestClassifier(2).fit(sparse, labels)) is not None
    frame = pd.DataFrame({"a": again[:, 0], "b": ["x", "y"] * N})
    assert number_said(lambda: PrunedTreeClassifier().fit(frame, labels)) == 2 * N


def test_rows_without_weight_are_absent_and_weights_tell_no_rows_apart():
    X, y = draws()
    row = twice(N)
    weight = np.append(np.ones(N), np.zeros(N))
    model = PrunedTreeClassifier()
    assert number_said(lambda: model.fit(X[row], y[row], weight)) is None
    assert number_said(lambda: model.fit(X[row], y[row], 1 + weight)) == 2 * N


def test_numbers_that_float32_rounds_to_the_same_are_different():
    X, y = draws()
    near = np.vstack([X, X * (1 + 1e-12)])
    assert number_said(lambda: PrunedTreeClassifier().fit(near, np.append(y, y))) is None


def test_later_rows_of_a_fit_do_not_warn():
    X, y = draws()
    model = PACBayesTreeClassifier(
        Grid([[0, 0, 0], [1, 1, 1]]), max_depth=3, lambda_error=1, lambda_penalty=1
    )
    row = twice(N)
    assert number_said(lambda: model.partial_fit(X[row], y[row])) == 2 * N
    assert number_said(lambda: model.partial_fit(X[row], y[row])) is None
    assert number_said(lambda: model.forget(X[row], y[row])) is None


def test_boolean_functions_warn_too():
    X = np.random.default_rng(0).integers(0, 2, (N, 3))
    assert number_said(lambda: FourierClassifier(random_state=0).fit(X, X[:, 0])) == N


@given(st.lists(st.integers(0, 30), max_size=60))
def test_rows_with_copies_are_counted(values):
    hashes = mix(np.array(values, dtype=np.uint64))
    expected = sum(values.count(one) > 1 for one in values)
    assert count_equal_rows(hashes) == expected
    distinct, counts = np.unique(hashes, return_counts=True)
    assert (
        count_equal_rows(np.append(distinct, distinct), np.append(counts, 0 * counts)) == expected
    )


OF_PARTS = [
    PrunedTreeClassifier(Cart(max_bins=255), random_state=0),
    PACBayesTreeClassifier(
        Cart(max_bins=255), lambda_error=1.0, lambda_penalty=1.0, random_state=0
    ),
    PACBayesTreeRegressor(Cart(max_bins=255), random_state=0),
    BoostedTreesClassifier(max_iter=3, random_state=0),
    BoostedTreesClassifier(max_iter=3, early_stopping=True, random_state=0),
    BoostedTreesRegressor(max_iter=3, early_stopping=True, random_state=0),
    TreeForestClassifier(3, random_state=0),
    TreeForestRegressor(3, random_state=0),
]


@pytest.mark.parametrize("n_copied", [600, 100])
@pytest.mark.parametrize("ends", [(0, 1800), (0, 700, 700, 701, 1800)], ids=["one", "several"])
@pytest.mark.parametrize("model", OF_PARTS, ids=kind)
def test_rows_in_files_are_counted_as_in_memory(model, ends, n_copied, tmp_path, monkeypatch):
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", 500)
    X, y = draws("rounded" if "Regressor" in kind(model) else "two", 1200)
    row = np.random.default_rng(1).permutation(twice(n_copied, 1200))
    rows = pa.table({**{f"x{j}": X[row, j] for j in range(3)}, "y": y[row]})
    for k, (begin, end) in enumerate(pairwise(min(one, len(row)) for one in ends)):
        pq.write_table(rows.slice(begin, end - begin), tmp_path / f"{k}.parquet")
    here = number_said(lambda: model.fit(X[row], y[row]))
    assert number_said(lambda: model.fit(tmp_path, "y")) == here
    assert here == (1200 if n_copied == 600 else None)
