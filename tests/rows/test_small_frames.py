"""Small data frames: the quick encoding gives the same results and errors as the general one."""

import datetime
import pickle
import warnings
from copy import deepcopy
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import certree.rows.training as training_module
from certree import (
    BoostedTreesClassifier,
    CertifiedTreeClassifier,
    PrunedTreeClassifier,
    TreeForestClassifier,
)
from certree.rows.categories import Categories
from certree.rows.columns import TableColumns
from certree.rows.small_frames import encode_small_frame

NAMES = ["number", "count", "flag", "text", "category", "code"]


def make_table(n=80):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "count": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.5,
            "text": rng.choice(np.array(["a", "b", "c", None], dtype=object), n),
            "category": pd.Categorical(rng.choice(["x", "y", "z"], n), ["z", "x", "y", "w"]),
            "code": pd.Categorical(rng.choice([1, 2, 5], n)),
        }
    )


TABLE = make_table()
Y = (TABLE["count"] > 4).to_numpy().astype(int)


@pytest.fixture(scope="module")
def models():
    estimators = [
        BoostedTreesClassifier(max_iter=3, random_state=0),
        PrunedTreeClassifier(),
        CertifiedTreeClassifier(random_state=0),
        TreeForestClassifier(n_estimators=3, random_state=0),
    ]
    return [model.fit(TABLE, Y) for model in estimators]


USUAL = st.sampled_from([0.0, -0.0, 1.0, 2.5, 5.0, float("nan")])
NUMBERS = st.one_of(USUAL, USUAL, USUAL, st.sampled_from([float("inf"), -1e300, 2.0**53]))
TEXTS = st.sampled_from(["a", "b", "x", "z", "new", "", "3", None])
OBJECTS = st.one_of(
    *(
        NUMBERS,
        TEXTS,
        st.integers(-3, 3),
        st.sampled_from([2**53 + 1, 10**400, True, np.float64(2)]),
    ),
    st.sampled_from(
        [pd.NA, pd.NaT, Decimal("1.5"), b"a", np.str_("a"), (1,), datetime.date(2024, 1, 1), 1 + 2j]
    ),
)
DAYS = st.sampled_from(["2024-01-01", "2025-06-01", None])
PANDAS_DTYPES = {
    "float64": NUMBERS,
    "float32": st.sampled_from([0.0, 1.5, float("nan"), float("inf")]),
    "float16": st.sampled_from([0.0, 1.5]),
    ">f8": NUMBERS,
    "int64": st.sampled_from([*(0, 1, 2, 5, -7) * 4, 2**53, 2**60]),
    "uint8": st.integers(0, 255),
    "bool": st.booleans(),
    "complex128": st.sampled_from([1 + 2j, 1 + 0j]),
    "Int64": st.sampled_from([0, 1, 5, None, 2**60]),
    "Float64": st.sampled_from([0.0, 1.0, None]),
    "Float32": st.sampled_from([0.0, 1.0, None]),
    "boolean": st.sampled_from([True, False, None]),
    "object": OBJECTS,
    "str": TEXTS,
    "string": TEXTS,
    "category": st.one_of(st.lists(TEXTS, min_size=1), st.just([1, 2, 7])),
    "datetime64[ns]": DAYS,
    "datetime64[ns, UTC]": DAYS,
    "timedelta64[ns]": st.sampled_from(["1D", None]),
    "Sparse[float64]": st.sampled_from([0.0, 1.0]),
    "int64[pyarrow]": st.sampled_from([0, 1, 5, None]),
    "string[pyarrow]": TEXTS,
}
POLARS_DTYPES = {
    pl.Float64: NUMBERS | st.none(),
    pl.Float32: st.sampled_from([0.0, 1.5, None]),
    pl.Int64: st.sampled_from([0, 1, 5, None, 2**60]),
    pl.UInt8: st.integers(0, 255) | st.none(),
    pl.Boolean: st.sampled_from([True, False, None]),
    pl.String: TEXTS,
    pl.Categorical: TEXTS,
    pl.Enum(["a", "x", "z", "q"]): st.sampled_from(["a", "x", "q", None]),
    pl.Date: st.sampled_from([datetime.date(2024, 1, 1), None]),
    pl.Datetime("us"): st.sampled_from([datetime.datetime(2024, 1, 1), None]),
    pl.Decimal(10, 2): st.sampled_from([Decimal("1.50"), None]),
    pl.Null: st.none(),
    pl.List(pl.Int64): st.sampled_from([[1], None]),
}
FITTED_PANDAS = ["float64", "int64", "bool", "str", "str", "int64"]
FITTED_POLARS = [pl.Float64, pl.Int64, pl.Boolean, pl.String, pl.Categorical, pl.Int64]


@st.composite
def draw_frames(draw, dtypes, fitted, make_column, make_frame):
    """Draw a frame of one to three rows whose columns have mostly the types of the fit."""
    n, columns = draw(st.integers(1, 3)), []
    for usual in fitted:
        dtype = draw(st.sampled_from([*dtypes]) if draw(st.integers(0, 9)) == 0 else st.just(usual))
        values = dtypes[dtype]
        drawn = draw(st.lists(values, min_size=n, max_size=n)) if dtype != "category" else None
        if drawn is None:
            choices = draw(values)
            drawn = draw(st.lists(st.sampled_from(choices), min_size=n, max_size=n))
        columns.append(make_column(drawn, dtype))
    names = [*NAMES]
    if draw(st.integers(0, 9)) == 0:
        names = draw(st.permutations(names) | st.just([*names[:-1], "other"]))
    return make_frame(dict(zip(names, columns, strict=True)))


def _make_pandas_column(values, dtype):
    if dtype.startswith(("datetime", "timedelta")):
        return (
            pd.Series(pd.to_datetime(values, utc="UTC" in dtype))
            if dtype[0] == "d"
            else (pd.Series(pd.to_timedelta(values)))
        )
    return pd.Series(values, dtype=dtype)


PANDAS = draw_frames(PANDAS_DTYPES, FITTED_PANDAS, _make_pandas_column, pd.DataFrame)
POLARS = draw_frames(
    POLARS_DTYPES, FITTED_POLARS, lambda values, dtype: pl.Series(values, dtype=dtype), pl.DataFrame
)


def _run(function, X):
    """Return what a function returns for X or raises, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(X)
        except Exception as error:  # noqa: BLE001
            result = type(error), str(error)
    return result, [str(one.message) for one in caught]


@given(X=PANDAS | POLARS)
def test_quick_encoding_equals_the_general_one(models, X):
    for model in models:
        encoded = model._encode_few_rows(X)
        if encoded is not None:
            (expected, warned) = _run(
                lambda X, model=model: model._encode_new_features(X).matrix, X
            )
            assert isinstance(expected, np.ndarray), expected
            assert not warned
            assert encoded.dtype == expected.dtype
            assert_array_equal(encoded, expected, strict=True)


@given(X=PANDAS | POLARS)
def test_predictions_and_errors_are_those_of_the_general_encoding(models, X):
    for model in models[:2]:
        found = _run(model.predict_proba, X)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_module, "encode_small_frame", lambda *_: None)
            expected = _run(model.predict_proba, X)
        if isinstance(expected[0], tuple):
            assert found == expected
        else:
            assert_array_equal(found[0], expected[0], strict=True)
            assert found[1] == expected[1]


def make_similar_frames():
    """Return frames that have the columns of TABLE, of several types, by name."""
    row = TABLE.iloc[[3]]
    return {
        "pandas": row,
        "objects": row.astype({"text": object}),
        "nullable": row.astype({"count": "Int64", "flag": "boolean", "text": "string"}),
        "missing": pd.DataFrame(
            {"number": [None], "count": [pd.NA], "flag": [True], "text": [None]}
        )
        .astype({"number": "float64", "count": "Int64"})
        .assign(category=row.category[3], code=1),
        "polars": pl.from_pandas(row.astype({"category": "str", "code": "int64"})),
        "rows": TABLE.iloc[:50],
    }


@pytest.mark.parametrize("kind", make_similar_frames())
def test_rows_like_those_of_the_fit_need_no_general_encoding(models, kind, monkeypatch):
    X = make_similar_frames()[kind]
    expected = [model.predict(X) for model in models]

    def refuse(_):
        raise AssertionError("the general encoding was called")

    monkeypatch.setattr(TableColumns, "read", refuse)
    for model, prediction in zip(models, expected, strict=True):
        assert_array_equal(model.predict(X), prediction)
        model.predict_proba(X)


def test_all_float32_columns_stay_float32_unless_thresholds_need_float64():
    X = pd.DataFrame(np.eye(3, dtype=np.float32), columns=[*"abc"])
    for frame in (X, pl.from_pandas(X)):
        encoded = encode_small_frame(frame, [*"abc"], None, True)
        assert_array_equal(encoded, X.to_numpy(), strict=True)
        assert encode_small_frame(frame, [*"abc"], None, False) is None


def test_large_frames_and_other_tables_are_left_to_the_general_encoding():
    names = [f"f{j}" for j in range(32)]
    for n, is_small in ((32, True), (33, False), (0, False)):
        X = pd.DataFrame(np.zeros((n, 32)), columns=names)
        for frame in (X, pl.from_pandas(X)):
            assert (encode_small_frame(frame, names, None, True) is not None) == is_small
    one = X.iloc[:1]
    for other in (one.to_numpy(), [[0.0] * 32], one.to_dict(), None):
        assert encode_small_frame(other, names, None, True) is None


def test_copies_of_categories_hold_no_codes():
    categories = Categories((("a", "b"), None, (1.0,), ()))
    assert categories.codes == ({"a": 0.0, "b": 1.0}, None, {1.0: 0.0}, {})
    for copy in (pickle.loads(pickle.dumps(categories)), deepcopy(categories)):
        assert "codes" not in vars(copy)
        assert copy.codes == categories.codes


def test_a_column_may_have_the_name_of_a_method():
    names = ["rows", "size", "columns", "height"]
    X = pd.DataFrame(np.arange(12.0).reshape(3, 4), columns=names)
    np.testing.assert_array_equal(encode_small_frame(X, names, None, True), X.to_numpy())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_frames_of_numbers_are_predicted_row_by_row_or_together(dtype):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)).astype(dtype)).add_prefix("x")
    y = (X.x0 + X.x1 > 0).astype(int)
    for model in (PrunedTreeClassifier(), BoostedTreesClassifier(max_iter=3, random_state=0)):
        model.fit(X, y)
        encoded = encode_small_frame(X[:7], [*X.columns], None, True)
        assert encoded.flags.c_contiguous
        assert encoded.dtype == dtype
        assert_array_equal(encoded, X[:7].to_numpy())
        together = model.predict_proba(X[:7])
        assert_array_equal(together, model.predict_proba(X)[:7])
        assert_array_equal(model.predict_proba(X[3:4]), together[3:4])
