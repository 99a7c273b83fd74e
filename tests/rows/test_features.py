"""The features of rows in the memory in which they came: the same answers, and no copy."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedForestClassifier,
    NaiveBayesClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.grow import Bins
from certree.rows import features
from certree.rows.features import DenseFeatures
from certree.rows.hashes import compute_content_keys, compute_fit_hashes, hash_samples


def table(n=500, p=5, dtype=np.float64):
    """Numbers of both kinds, few and many, negative zeros among them; some are missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)).astype(np.float32)
    X[:, 1] = np.rint(3 * X[:, 1])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X.astype(dtype)


def strided(X):
    """The same numbers far from each other, and backwards in memory."""
    far = np.zeros((2 * len(X), 3 * X.shape[1]), dtype=X.dtype)
    far[::-2, ::3] = X
    return far[::-2, ::3]


PARTS = {
    "rows": lambda X: (X,),
    "columns": lambda X: (np.asfortranarray(X),),
    "strided": lambda X: (strided(X),),
    "each": lambda X: tuple(X.T.copy()),
    "each, strided": lambda X: tuple(X.T),
    "both": lambda X: (X[:, :2], np.asfortranarray(X[:, 2:4]), X[:, 4].astype(np.float32)),
    "float32": lambda X: (X.astype(np.float32),),
    "float32, columns": lambda X: (np.asfortranarray(X, dtype=np.float32),),
}
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas of columns": lambda X: pd.DataFrame(dict(enumerate(X.T.copy()))),
    "pandas of two kinds": lambda X: pd.DataFrame(X).astype({0: "float32", 1: "Float64"}),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcde")),
    "polars, nulls": lambda X: pl.DataFrame(X, schema=list("abcde")).fill_nan(None),
    "Arrow": lambda X: pa.table({f"x{j}": x for j, x in enumerate(X.T.copy())}),
    "Arrow, in pieces": lambda X: pa.concat_tables(
        [pa.table({f"x{j}": x for j, x in enumerate(some.T.copy())}) for some in (X[:7], X[7:])]
    ),
    "Arrow, nulls": lambda X: pa.table(
        {f"x{j}": pa.array(x, from_pandas=True) for j, x in enumerate(X.T.copy())}
    ),
}
every_layout = pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
every_input = pytest.mark.parametrize(
    "given", [lambda X, made=made: made(X) for made in FRAMES.values()], ids=FRAMES
)


@every_layout
def test_rows_are_the_same_wherever_they_lie(parts, monkeypatch):
    monkeypatch.setattr(features, "_CACHED", 64)
    monkeypatch.setattr(features, "_BLOCK", 301)
    X = table()
    one = DenseFeatures(parts(X))
    assert (len(one), one.n_features) == X.shape
    some = np.random.default_rng(1).integers(0, len(X), 77)
    for made, expected in (
        (one.matrix, X),
        (one.take_matrix(some), X[some]),
        (one.take(some).matrix, X[some]),
    ):
        assert made.flags.c_contiguous
        np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(np.column_stack(one.columns), X)
    said = one.score_in_blocks(
        lambda rows: np.stack([rows.sum(axis=1), rows[:, 0]]).astype(np.float64)
    )
    np.testing.assert_array_equal(said[1], X[:, 0])
    assert said.shape == (2, len(X))
    assert one.matrix.dtype == (np.float32 if one.tables[0].dtype == np.float32 else np.float64)


@every_layout
@pytest.mark.parametrize("n", [1, 40, 5000])
def test_bins_and_hashes_are_those_of_the_rows(parts, n):
    X = table(n)
    X[:, 4] = np.abs(np.rint(X[:, 4]))
    one, expected = DenseFeatures(parts(X)), Bins.from_table(X, [4])
    bins = Bins.from_table(one, [4], n_jobs=2)
    np.testing.assert_array_equal(bins.codes, expected.codes)
    for mine, theirs in zip(bins.core_columns, expected.core_columns, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(hash_samples(*one.tables), hash_samples(X))
    np.testing.assert_array_equal(compute_content_keys(*one.tables), compute_content_keys(X))
    np.testing.assert_array_equal(compute_fit_hashes(*one.tables), compute_fit_hashes(X))


def models():
    """Models that take columns."""
    yield BoostedTreesClassifier(max_iter=5, random_state=0)
    yield BoostedTreesRegressor(max_iter=5, random_state=0)
    yield TreeForestClassifier(5, random_state=0)


def assert_same_model(given, X):
    """A fit on other memory is the fit on rows of float64, and so are its answers."""
    y = (np.nan_to_num(X[:, 0]) > 0).astype(int)
    for model in models():
        expected = model.fit(X, y)
        trees, said = expected.trees_, expected.predict(X)
        model.fit(given, y)
        for field in ("feature", "threshold", "left", "value"):
            np.testing.assert_array_equal(getattr(model.trees_, field), getattr(trees, field))
        np.testing.assert_array_equal(model.predict(given), said)


@pytest.mark.parametrize("name", ["columns", "strided", "float32", "float32, columns"])
def test_fits_are_the_same_whatever_the_memory_of_an_array(name, monkeypatch):
    monkeypatch.setattr(features, "_BLOCK", 301)
    assert_same_model(PARTS[name](table())[0], table())


@every_input
def test_fits_are_the_same_whatever_the_frame(given, monkeypatch):
    monkeypatch.setattr(features, "_BLOCK", 301)
    assert_same_model(given(table()), table())


def test_more_rounds_start_from_those_before_in_blocks(monkeypatch):
    monkeypatch.setattr(features, "_BLOCK", 301)
    X = table()
    y = np.nan_to_num(X[:, 0])
    once = BoostedTreesRegressor(max_iter=6, random_state=0).fit(X, y)
    more = BoostedTreesRegressor(max_iter=3, random_state=0, warm_start=True)
    more.fit(pd.DataFrame(X).to_numpy(), y).set_params(max_iter=6).fit(np.asfortranarray(X), y)
    np.testing.assert_allclose(more.predict(X), once.predict(X), rtol=1e-12)


@pytest.mark.parametrize("given", [np.asfortranarray, strided, *FRAMES.values()])
@pytest.mark.parametrize("wrong", [np.inf, -np.inf])
def test_infinite_numbers_are_refused_in_scikit_learn_s_words(given, wrong):
    X = table()
    X[3, 2] = wrong
    with pytest.raises(ValueError, match=r"Input X contains infinity or a value too large for"):
        NaiveBayesClassifier().fit(given(X), np.arange(len(X)) % 2)
    model = NaiveBayesClassifier().fit(given(table()), np.arange(len(X)) % 2)
    with pytest.raises(ValueError, match=r"Input X contains infinity or a value too large for"):
        model.predict(given(X))


FAR_MODELS = [
    BoostedTreesClassifier(max_iter=9, random_state=0),
    BoostedTreesRegressor(max_iter=9, random_state=0),
    CertifiedBoostedTreesClassifier(max_iter=9, random_state=0, duplicates="genuine"),
    TreeForestClassifier(9, random_state=0),
    TreeForestRegressor(9, random_state=0),
    CertifiedForestClassifier(9, random_state=0, duplicates="genuine"),
]


def far_out(dtype=np.float64, n=300):
    """Numbers of which some are infinite on either side, and others missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(dtype)
    for value in (np.inf, -np.inf, np.nan):
        X[rng.random(X.shape) < 0.1] = value
    score = np.nan_to_num(X[:, 0], nan=1, posinf=4, neginf=-4) + rng.normal(size=n)
    return X, (score > 0).astype(int)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", FAR_MODELS, ids=lambda one: type(one).__name__)
def test_infinite_numbers_are_the_outermost_ones(model, dtype):
    X, y = far_out(dtype)
    with np.errstate(over="raise", invalid="raise"):
        fitted = clone(model).fit(X, y)
        said = fitted.predict(X)
    assert np.isfinite(fitted.trees_.threshold).all()
    most = np.finfo(np.float64).max
    largest = np.where(np.isinf(X), np.sign(X) * most, X.astype(np.float64))
    assert np.array_equal(fitted.predict(largest), said)
    assert np.array_equal(clone(model).fit(largest, y).predict(X), said)
    assert np.array_equal(fitted.predict(X[:1]), said[:1])
    for container in (np.asfortranarray, strided):
        assert np.array_equal(fitted.predict(container(X)), said)
        assert np.array_equal(clone(model).fit(container(X), y).predict(X), said)


@pytest.mark.parametrize("model", FAR_MODELS, ids=lambda one: type(one).__name__)
def test_infinite_numbers_lie_beyond_all_others(model):
    x = np.repeat([-np.inf, -1.0, 1.0, np.inf], 60)[:, None]
    fitted = clone(model).fit(x, np.repeat([1, 0, 0, 1], 60))
    inner = fitted.trees_.left >= 0
    assert set(np.sign(fitted.trees_.threshold[inner])) == {-1, 1}
    assert (np.abs(fitted.trees_.threshold[inner]) > 1).all()
    said = fitted.predict([[-np.inf], [0.0], [np.inf]])
    assert (said > 0.5).tolist() == [True, False, True]


@pytest.mark.slow
def test_infinite_numbers_of_frames_and_of_rows_that_judge_are_the_outermost_ones():
    X, y = far_out()
    model = BoostedTreesClassifier(max_iter=9, early_stopping=True, random_state=0)
    said = clone(model).fit(X, y, X_val=X, y_val=y)
    frame = pd.DataFrame(X, columns=[*"abcd"])
    named = clone(model).fit(frame, y, X_val=frame, y_val=y)
    assert np.array_equal(named.predict_proba(frame), said.predict_proba(X))
    assert np.array_equal(named.validation_score_, said.validation_score_)
    assert HistGradientBoostingClassifier(max_iter=9).fit(X, y).score(X, y) - 0.05 < said.score(
        X, y
    )


def test_a_frame_without_rows_is_refused_in_scikit_learn_s_words():
    model = BoostedTreesClassifier(max_iter=1).fit(pd.DataFrame(table()), np.arange(500) % 2)
    message = (
        r"Found array with 0 sample\(s\) \(shape=\(0, 5\)\) while a minimum of 1 is required by"
    )
    with pytest.raises(ValueError, match=message):
        model.predict(pd.DataFrame(table())[:0])


@pytest.mark.parametrize(
    "name", ["rows", "columns", "float32", "pandas", "pandas of columns", "polars", "Arrow"]
)
def test_a_fit_makes_no_copy_of_the_rows(name):
    X = np.random.default_rng(0).normal(size=(100_000, 40))
    if name in PARTS:
        given = PARTS[name](X)[0]
    elif name == "polars":
        given = pl.DataFrame({f"x{j}": x for j, x in enumerate(X.T)})
    else:
        given = FRAMES[name](X)
    model = BoostedTreesClassifier(max_iter=1, random_state=0, n_jobs=1)
    y = np.arange(len(X)) % 2
    model.fit(given[:500], y[:500])  # what is imported only once
    tracemalloc.start()
    try:
        model.fit(given, y)
        model.predict(given)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.45 * X.nbytes


def test_sparse_columns_of_pandas_are_read_like_dense_ones():
    X = pd.DataFrame({"a": np.arange(60) % 3.0, "b": np.arange(60.0)})
    sparse, y = X.astype(pd.SparseDtype(float, 0)), np.arange(60) % 2
    model = BoostedTreesClassifier(max_iter=2, random_state=0, n_jobs=1).fit(X, y)
    same = clone(model).fit(sparse, y)
    np.testing.assert_array_equal(same.predict_proba(sparse), model.predict_proba(X))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), ValueError, "distinct column names"),
        (pd.Series([1.0, 2.0]), ValueError, "got a series of 2 values"),
        (pl.Series([1.0, 2.0]), ValueError, "got a series of 2 values"),
        ({"a": 1.0}, TypeError, "got dictionaries: pass them as a data frame"),
        ([{"a": 1.0}], TypeError, "got dictionaries: pass them as a data frame"),
        (pd.DataFrame(index=range(2)), ValueError, r"0 feature\(s\) .* at least one column"),
    ],
)
def test_tables_that_are_none_are_refused_at_fit_and_predict(X, error, message):
    known = pd.DataFrame({"a": np.arange(20.0), "b": np.ones(20)})
    model = BoostedTreesClassifier(max_iter=1, n_jobs=1).fit(known, np.arange(20) % 2)
    with pytest.raises(error, match=message):
        model.predict(X)
    with pytest.raises(error, match=message):
        clone(model).fit(X, [0, 1])


def test_classes_of_text_and_numbers_are_refused():
    y = pd.Series(["a", 1] * 10, dtype=object)
    with pytest.raises(ValueError, match="y must hold classes of one type, got int and str"):
        BoostedTreesClassifier(max_iter=1, n_jobs=1).fit(np.zeros((20, 1)), y)
