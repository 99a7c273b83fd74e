"""Columns of data frames that are no features, or need a conversion first."""

import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from certree import BoostedTreesRegressor, PACBayesTreeClassifier

N = 60
X, Y = np.arange(N), np.arange(N) % 2
STRUCTS, LISTS = [{"a": i, "b": "x"} for i in range(N)], [[i, i + 1] for i in range(N)]


def frames():
    yield "Struct", pl.DataFrame({"x": X, "s": STRUCTS})
    yield "List", pl.DataFrame({"x": X, "s": LISTS})
    yield "Array", pl.DataFrame({"x": X, "s": LISTS}, schema_overrides={"s": pl.Array(pl.Int64, 2)})
    yield "Binary", pl.DataFrame({"x": X, "s": [b"a", b"b"] * (N // 2)})
    yield "Struct", pa.table({"x": X, "s": STRUCTS})
    yield "List", pa.table({"x": X, "s": LISTS})
    if hasattr(nw, "Map"):  # Older versions of narwhals do not name the type.
        maps = pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64()))
        yield "Map", pa.table({"x": X, "s": maps})
    arrow = pa.table({"x": X, "s": STRUCTS})
    yield "Struct", arrow.to_pandas(types_mapper=pd.ArrowDtype)
    yield "dict", pd.DataFrame({"x": X, "s": STRUCTS})
    yield "list", pd.DataFrame({"x": X, "s": [None] * 9 + LISTS[9:]})
    yield "set", pd.DataFrame({"x": X, "s": [set(one) for one in LISTS]})


@pytest.mark.parametrize(("kind", "frame"), [*frames()])
def test_columns_of_nested_values_are_refused_with_a_remedy(kind, frame):
    message = f"feature 's' must hold numbers, text, .*{kind}.*: (make a column|decode the bytes)"
    for model in (PACBayesTreeClassifier(), BoostedTreesRegressor(max_iter=2)):
        with pytest.raises(TypeError, match=message):
            model.fit(frame, Y)


def test_new_rows_with_nested_values_are_refused():
    model = PACBayesTreeClassifier(random_state=0).fit(pl.DataFrame({"x": X, "s": X}), Y)
    with pytest.raises(TypeError, match=r"feature 's' must hold .*Struct"):
        model.predict(pl.DataFrame({"x": X, "s": STRUCTS})[:3])


@pytest.mark.parametrize(
    "dtype", [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]
)
def test_integers_of_128_bits_are_numbers(dtype):
    plain = pl.DataFrame({"x": X % 7, "s": X, "day": [datetime.date(2024, 1, 1)] * N})
    wide = plain.with_columns(pl.col("s").cast(dtype))
    model = PACBayesTreeClassifier(random_state=0).fit(plain, Y)
    other = PACBayesTreeClassifier(random_state=0).fit(wide, Y)
    assert other.categories_ is None
    for rows in (plain, wide, wide[:2]):
        np.testing.assert_array_equal(
            other.predict_proba(rows), model.predict_proba(plain[: len(rows)])
        )
    huge = wide.with_columns(pl.lit(2**100).cast(dtype).alias("s"))
    for call in (lambda: PACBayesTreeClassifier().fit(huge, Y), lambda: other.predict(huge)):
        with pytest.raises(ValueError, match=r"feature 's' must hold numbers.*beyond 64 bits"):
            call()
