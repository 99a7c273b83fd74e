"""Tables of names become matrices of codes, whatever they were made with."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certree import grow_cart
from certree.rows import Categories
from certree.rows.categories import categorical_mask

COLOURS = ["red", "blue", None, "green", "blue"]
SIZES = [3.0, 100.0, 7.0, None, 3.0]
WEIGHTS = [0.5, 1.5, np.nan, -1.0, 2.0]
EXPECTED = np.array(
    [[2, 0, 0.5], [0, 2, 1.5], [np.nan, 1, np.nan], [1, np.nan, -1], [0, 0, 2]], dtype=float
)


def frames():
    objects = pd.DataFrame({"colour": COLOURS, "size": SIZES, "weight": WEIGHTS})
    yield "object", objects.astype({"colour": object})
    yield "string", objects.astype({"colour": "string"})
    strings = objects.astype({"colour": "string[pyarrow]"})
    yield "string in pieces", pd.concat([strings[:2], strings[2:]])
    yield "category", objects.astype({"colour": "category"})
    yield "Int64", objects.astype({"colour": "category", "size": "Int64"})
    strings = pl.DataFrame({"colour": COLOURS, "size": SIZES, "weight": WEIGHTS}, strict=False)
    yield "polars", strings
    yield "polars categorical", strings.with_columns(pl.col("colour").cast(pl.Categorical))
    levels = pl.Enum(["green", "red", "blue"])
    yield "polars enum", strings.with_columns(pl.col("colour").cast(levels))
    yield "arrow", strings.to_arrow()
    yield "arrow dictionary", strings.with_columns(pl.col("colour").cast(pl.Categorical)).to_arrow()
    yield "array", np.array([COLOURS, SIZES, WEIGHTS], dtype=object).T
    yield "list", [list(row) for row in zip(COLOURS, SIZES, WEIGHTS, strict=True)]


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in frames()])
def test_every_kind_of_table_is_encoded_alike(X):
    categories = Categories.of(X, [0, 1])
    assert categories.names == (("blue", "green", "red"), (3.0, 7.0, 100.0), None)
    assert categories.mask.tolist() == [True, True, False]
    encoded = categories.encode(X)
    assert encoded.dtype == np.float64
    np.testing.assert_array_equal(encoded, EXPECTED)


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in frames()][:10])
def test_dtypes_say_what_holds_categories(X):
    assert Categories.of(X).mask.tolist() == [True, False, False]
    assert Categories.of(X, ["size"]).mask.tolist() == [False, True, False]
    assert Categories.of(X, None).names == (None, None, None)


def test_arrays_hold_no_categories_unless_they_are_declared():
    assert not Categories.of(np.zeros((2, 3))).mask.any()
    assert Categories.of(np.zeros((2, 3)), ["b"], ["a", "b", "c"]).mask.tolist() == [0, 1, 0]


@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=20), st.lists(st.integers(-7, 7))
)
def test_codes_are_positions_among_the_sorted_categories(training, rows):
    def table(values):
        numbers = [np.nan if value is None else float(value) for value in values]
        return np.array(numbers, dtype=float).reshape(-1, 1)

    names = sorted({value for value in training if value is not None})
    categories = Categories.of(table(training), [True])
    assert categories.names == (tuple(names),)
    expected = [names.index(value) if value in names else np.nan for value in rows]
    np.testing.assert_array_equal(categories.encode(table(rows))[:, 0], expected)


def test_unseen_categories_are_missing():
    categories = Categories.of(pd.DataFrame({"a": ["x", "y"]}))
    assert np.isnan(categories.encode(pl.DataFrame({"a": ["z", None]}))).all()
    assert categories.encode(pl.DataFrame({"a": ["y"]})).tolist() == [[1]]


def test_booleans_integers_and_negative_zero_are_numbers():
    assert Categories.of(pd.DataFrame({"a": [True, False]}), ["a"]).names == ((0.0, 1.0),)
    categories = Categories.of(np.array([[-0.0], [0.0], [np.inf]]), [0])
    assert categories.names == ((0.0, np.inf),)
    assert categories.encode(np.array([[0], [1]])).tolist()[0] == [0]


def test_dates_are_named_by_their_text():
    X = pd.DataFrame({"day": pd.to_datetime(["2020-01-02", "2019-05-01"])})
    categories = Categories.of(X, ["day"])
    assert categories.encode(X)[:, 0].tolist() == [1, 0]


def test_one_level_and_nothing_but_missing_values_are_never_split_on():
    X = pd.DataFrame({"one": ["a"] * 4, "none": pd.Series([None] * 4, dtype=object)})
    categories = Categories.of(X)
    assert categories.names == (("a",), ())
    encoded = categories.encode(X)
    assert np.isnan(encoded[:, 1]).all()
    assert grow_cart(encoded, [0, 1, 0, 1], categorical_features=categories.mask).n_nodes == 1
    assert np.isnan(categories.encode(pd.DataFrame({"one": ["b"], "none": ["c"]}))).all()


def test_ten_thousand_categories():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10_000, 100_000)
    X = pd.DataFrame({"word": [f"w{value:05d}" for value in values]})
    categories = Categories.of(X)
    assert len(categories.names[0]) == len(set(values))
    names = np.array(categories.names[0])
    assert (names[categories.encode(X)[:, 0].astype(int)] == X["word"]).all()


def test_numbers_of_all_kinds_become_float64():
    X = pd.DataFrame(
        {
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "level": pd.Categorical([2, None, 1]),
            "object": pd.Series([1, None, 2.5], dtype=object),
        }
    )
    expected = [[1, 1, 2, 1], [np.nan] * 4, [3, 0, 1, 2.5]]
    np.testing.assert_array_equal(Categories.of(X, None).encode(X), expected)
    X = pl.DataFrame({"a": [1, None, 3], "b": [True, False, None]})
    np.testing.assert_array_equal(Categories.of(X).encode(X), [[1, 1], [np.nan, 0], [3, np.nan]])


@pytest.mark.parametrize("values", [["2020-01-01", "2020-01-02"], [1j, 2]])
def test_dates_and_complex_numbers_are_no_numbers(values):
    array = np.array(values, dtype="datetime64[s]" if isinstance(values[0], str) else complex)
    for X in (array[:, None], pd.DataFrame({"a": array})):
        with pytest.raises(ValueError, match="could not convert"):
            Categories.of(X, None).encode(X)


def test_no_rows():
    categories = Categories.of(pd.DataFrame({"a": ["x"], "b": [1.0]}))
    assert categories.encode(pd.DataFrame({"a": [], "b": []})).shape == (0, 2)


def test_names_that_are_declared_reach_the_grower():
    X = pd.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 1, 1, 1]})
    tree = grow_cart(X, [0, 1, 0, 1], categorical_features=["a"])
    assert tree.n_leaves == 2
    assert tree.category_set(0).tolist() in ([0, 2], [1, 3])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("all", 'categorical_features must be "from_dtype", None, or a mask'),
        ([2], r"must lie in 0 \.\. 1, got 2 \.\. 2"),
        ([-1], r"must lie in 0 \.\. 1, got -1 \.\. -1"),
        ([0, 0], r"must be distinct, got \[0, 0\]"),
        (["a", "a"], r"must be distinct, got \[0, 0\]"),
        ([True], r"as a mask must have shape \(2,\), got \(1,\)"),
        (["a", "z"], r"among the feature names \['a', 'b'\], got \['z'\]"),
        ([0.5], "must be a mask, indices or names"),
        ([["a"]], "must be a mask, indices or names"),
        (["a", 1, None], r"among the feature names|must be a mask, indices or names"),
    ],
)
def test_features_that_do_not_fit_are_refused(chosen, message):
    X = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match=message):
        Categories.of(X, chosen)


def test_names_without_feature_names_are_refused():
    with pytest.raises(ValueError, match="but X has no feature names"):
        categorical_mask(["a"], 3)


def test_tables_that_do_not_fit_are_refused():
    X = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    categories = Categories.of(X)
    with pytest.raises(ValueError, match="X has 1 features, but the categories are those of 2"):
        categories.encode(X[["a"]])
    with pytest.raises(ValueError, match="feature 0 has categories of type double"):
        categories.encode(pd.DataFrame({"a": [1.0], "b": [1.0]}))
    with pytest.raises(ValueError, match="Expected 2D array"):
        Categories.of(np.zeros(3))
    with pytest.raises(ValueError, match="feature 0 must be strings or numbers, not both"):
        Categories.of(np.array([["a", 1], [2, 1]], dtype=object), [0])


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": ["x", "y"]}),
        pl.DataFrame({"a": ["x", "y"]}),
        np.array([["x"], ["y"]]),
        np.array([["x"], ["y"]], dtype=object),
        [["x"], ["y"]],
    ],
    ids=["pandas", "polars", "strings", "objects", "list"],
)
def test_undeclared_names_are_no_numbers(X):
    categories = Categories.of(X, None)
    with pytest.raises(ValueError, match="could not convert string to float: 'x'"):
        categories.encode(X)


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in frames()][:9])
def test_frames_are_read_alike_without_pyarrow(X, monkeypatch):
    # Slow twin: what Arrow codes in one step, a dictionary does in Python.
    def to_arrow(_):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    expected = Categories.of(X, [0, 1])
    monkeypatch.setattr("narwhals.Series.to_arrow", to_arrow)
    categories = Categories.of(X, [0, 1])
    assert categories.names == expected.names
    np.testing.assert_array_equal(categories.encode(X), EXPECTED)


def test_categories_that_no_row_holds_are_not_learned():
    levels = ["b", "a", "z"]
    for column in (
        pd.Categorical(["a", "b"], levels),
        pl.Series(["a", "b"], dtype=pl.Enum(levels)),
    ):
        X = (pd if isinstance(column, pd.Categorical) else pl).DataFrame({"a": column})
        assert Categories.of(X).names == (("a", "b"),)


def test_categories_of_numbers_stay_numbers():
    X = pd.DataFrame({"a": pd.Categorical([3, 1, None])})
    assert Categories.of(X).names == ((1.0, 3.0),)
    np.testing.assert_array_equal(Categories.of(X).encode(X), [[1], [0], [np.nan]])


def test_dates_have_the_same_names_in_every_library():
    days = np.array(["2020-01-02", "NaT", "2019-05-01"], dtype="datetime64[ns]")
    names = (("2019-05-01 00:00:00", "2020-01-02 00:00:00"),)
    frame = pd.DataFrame({"day": days})
    for X in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert Categories.of(X, ["day"]).names == names
        np.testing.assert_array_equal(Categories.of(X, ["day"]).encode(X)[:, 0], [1, np.nan, 0])
    assert Categories.of(days[:, None], [0]).names == names


def test_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="the names of features must differ"):
        Categories.of(pd.DataFrame([["x", "y"]], columns=["a", "a"]))


@pytest.mark.parametrize("value", [["a list"], {"a": 1}])
def test_values_without_a_hash_are_refused(value):
    column = np.empty((2, 1), dtype=object)
    column[:, 0] = ["x", value]
    with pytest.raises(ValueError, match="the categories of feature 0 must be hashable"):
        Categories.of(column, [0])


@pytest.mark.parametrize("values", [["x", None, np.nan], ["x", pd.NA, 5], ["x", "new", 5]])
def test_objects_are_encoded_like_a_frame_of_objects(values):
    categories = Categories.of(np.array([["x"], ["y"]]), [0])
    column = np.array(values, dtype=object)[:, None]
    if 5 in values[2:]:
        with pytest.raises(ValueError, match="must be strings or numbers, not both"):
            categories.encode(column)
    else:
        np.testing.assert_array_equal(categories.encode(column), [[0], [np.nan], [np.nan]])
