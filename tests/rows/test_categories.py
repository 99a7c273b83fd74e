"""Tables of names become matrices of codes, whatever they were made with."""

import datetime as dt
import enum
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
from certree import BoostedTreesClassifier, PrunedTreeClassifier, grow_cart
from certree.rows import Categories
from certree.rows.categories import make_categorical_mask

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
    categories = Categories.learn(X, [0, 1])
    assert categories.names == (("blue", "green", "red"), (3.0, 7.0, 100.0), None)
    assert categories.mask.tolist() == [True, True, False]
    encoded = categories.encode(X)
    assert encoded.dtype == np.float64
    np.testing.assert_array_equal(encoded, EXPECTED)


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in frames()][:10])
def test_dtypes_say_what_holds_categories(X):
    assert Categories.learn(X).mask.tolist() == [True, False, False]
    assert Categories.learn(X, ["size"]).mask.tolist() == [False, True, False]
    assert Categories.learn(X, None).names == (None, None, None)


def test_arrays_hold_no_categories_unless_they_are_declared():
    assert not Categories.learn(np.zeros((2, 3))).mask.any()
    assert Categories.learn(np.zeros((2, 3)), ["b"], ["a", "b", "c"]).mask.tolist() == [0, 1, 0]


@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=20), st.lists(st.integers(-7, 7))
)
def test_codes_are_positions_among_the_sorted_categories(training, rows):
    def table(values):
        numbers = [np.nan if value is None else float(value) for value in values]
        return np.array(numbers, dtype=float).reshape(-1, 1)

    names = sorted({value for value in training if value is not None})
    categories = Categories.learn(table(training), [True])
    assert categories.names == (tuple(names),)
    expected = [
        np.nan if value is None else names.index(value) if value in names else -1 for value in rows
    ]
    np.testing.assert_array_equal(categories.encode(table(rows))[:, 0], expected)


def test_unseen_categories_have_a_code_of_their_own():
    categories = Categories.learn(pd.DataFrame({"a": ["x", "y"]}))
    rows = pl.DataFrame({"a": ["z", None, "y"]})
    np.testing.assert_array_equal(categories.encode(rows)[:, 0], [-1, np.nan, 1])
    missing = replace(categories, unknown_are_missing=True)
    np.testing.assert_array_equal(missing.encode(rows)[:, 0], [np.nan, np.nan, 1])
    assert missing.add_categories(rows).unknown_are_missing
    numbers = Categories.learn(np.array([[1.5], [2.0]]), [0])
    given = np.array([[2.0], [np.nan], [7.0]])
    np.testing.assert_array_equal(numbers.encode(given)[:, 0], [1, np.nan, -1])
    nothing = Categories.learn(pd.DataFrame({"a": [None, None]}, dtype=object))
    np.testing.assert_array_equal(nothing.encode(rows)[:, 0], [-1, np.nan, -1])


def test_unseen_integers_that_float64_does_not_hold_have_a_code_of_their_own():
    large = 2**60 + 1
    small = Categories.learn(np.array([[3], [5]]), [0])
    rows = np.array([[large], [5], [None]], dtype=object)
    np.testing.assert_array_equal(small.encode(rows)[:, 0], [-1, 1, np.nan])
    digits = Categories.learn(np.array([[large], [5]], dtype=object), [0])
    assert digits.names == (("1152921504606846977", "5"),)
    floats = np.array([[5.0], [2.5], [np.nan]])
    np.testing.assert_array_equal(digits.encode(floats)[:, 0], [1, -1, np.nan])


def test_booleans_integers_and_negative_zero_are_numbers():
    assert Categories.learn(pd.DataFrame({"a": [True, False]}), ["a"]).names == ((0.0, 1.0),)
    categories = Categories.learn(np.array([[-0.0], [0.0], [np.inf]]), [0])
    assert categories.names == ((0.0, np.inf),)
    assert categories.encode(np.array([[0], [1]])).tolist()[0] == [0]


def test_dates_are_named_by_their_text():
    X = pd.DataFrame({"day": pd.to_datetime(["2020-01-02", "2019-05-01"])})
    categories = Categories.learn(X, ["day"])
    assert categories.encode(X)[:, 0].tolist() == [1, 0]


def test_one_level_and_nothing_but_missing_values_are_never_split_on():
    X = pd.DataFrame({"one": ["a"] * 4, "none": pd.Series([None] * 4, dtype=object)})
    categories = Categories.learn(X)
    assert categories.names == (("a",), ())
    encoded = categories.encode(X)
    assert np.isnan(encoded[:, 1]).all()
    assert grow_cart(encoded, [0, 1, 0, 1], categorical_features=categories.mask).n_nodes == 1
    assert (categories.encode(pd.DataFrame({"one": ["b"], "none": ["c"]})) == -1).all()


def test_ten_thousand_categories():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10_000, 100_000)
    X = pd.DataFrame({"word": [f"w{value:05d}" for value in values]})
    categories = Categories.learn(X)
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
    np.testing.assert_array_equal(Categories.learn(X, None).encode(X), expected)
    X = pl.DataFrame({"a": [1, None, 3], "b": [True, False, None]})
    np.testing.assert_array_equal(Categories.learn(X).encode(X), [[1, 1], [np.nan, 0], [3, np.nan]])


def test_complex_numbers_are_no_numbers():
    array = np.array([1j, 2])
    for X in (array[:, None], pd.DataFrame({"a": array})):
        with pytest.raises(ValueError, match=r"feature .* must hold numbers, got"):
            Categories.learn(X, None).encode(X)


def test_no_rows():
    categories = Categories.learn(pd.DataFrame({"a": ["x"], "b": [1.0]}))
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
        ([0, 0], r"must name each feature once, got \[0, 0\]"),
        (["a", "a"], r"must name each feature once, got \[0, 0\]"),
        ([True], r"must have shape \(2,\) if it is a mask, got \(1,\)"),
        (["a", "z"], r"among the feature names \['a', 'b'\], got \['z'\]"),
        ([0.5], "must be a mask, indices or names"),
        ([["a"]], "must be a mask, indices or names"),
        (["a", 1, None], r"among the feature names|must be a mask, indices or names"),
    ],
)
def test_features_that_do_not_fit_are_refused(chosen, message):
    X = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match=message):
        Categories.learn(X, chosen)


def test_names_without_feature_names_are_refused():
    with pytest.raises(ValueError, match="as X has no feature names"):
        make_categorical_mask(["a"], 3)


def test_tables_that_do_not_fit_are_refused():
    X = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    categories = Categories.learn(X)
    with pytest.raises(ValueError, match="X must have 2 features, as the rows of the fit, got 1"):
        categories.encode(X[["a"]])
    with pytest.raises(
        ValueError, match=r"feature 'a' must have categories that are text, .* got numbers"
    ):
        categories.encode(pd.DataFrame({"a": [1.0], "b": [1.0]}))
    for flat in (np.zeros(3), X.iloc[0], X.to_dict("records")):
        with pytest.raises(ValueError, match=r"^Expected 2D array.* dictionaries as a data frame$"):
            Categories.learn(flat)
    for both in (
        np.array([["a", 1], [2, 1]], dtype=object),
        pd.DataFrame({0: pd.Categorical(["a", 2])}),
    ):
        with pytest.raises(ValueError, match=r"feature 0 must have .* all strings or all numbers"):
            Categories.learn(both, [0])


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
    categories = Categories.learn(X, None)
    with pytest.raises(ValueError, match=r"feature (0|'a') must hold numbers, got 'x'"):
        categories.encode(X)


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in frames()][:9])
def test_frames_are_read_alike_without_pyarrow(X, monkeypatch):
    # Slow twin: what Arrow codes in one step, a dictionary does in Python.
    def to_arrow(_):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    expected = Categories.learn(X, [0, 1])
    monkeypatch.setattr("narwhals.Series.to_arrow", to_arrow)
    categories = Categories.learn(X, [0, 1])
    assert categories.names == expected.names
    np.testing.assert_array_equal(categories.encode(X), EXPECTED)


def test_categories_that_no_row_holds_are_not_learned():
    levels = ["b", "a", "z"]
    for column in (
        pd.Categorical(["a", "b"], levels),
        pl.Series(["a", "b"], dtype=pl.Enum(levels)),
    ):
        X = (pd if isinstance(column, pd.Categorical) else pl).DataFrame({"a": column})
        assert Categories.learn(X).names == (("a", "b"),)


def test_categories_of_numbers_stay_numbers():
    X = pd.DataFrame({"a": pd.Categorical([3, 1, None])})
    assert Categories.learn(X).names == ((1.0, 3.0),)
    np.testing.assert_array_equal(Categories.learn(X).encode(X), [[1], [0], [np.nan]])


def test_dates_have_the_same_names_in_every_library():
    days = np.array(["2020-01-02", "NaT", "2019-05-01"], dtype="datetime64[ns]")
    names = (("2019-05-01 00:00:00", "2020-01-02 00:00:00"),)
    frame = pd.DataFrame({"day": days})
    for X in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert Categories.learn(X, ["day"]).names == names
        np.testing.assert_array_equal(Categories.learn(X, ["day"]).encode(X)[:, 0], [1, np.nan, 0])
    assert Categories.learn(days[:, None], [0]).names == names


def test_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="X must have distinct column names"):
        Categories.learn(pd.DataFrame([["x", "y"]], columns=["a", "a"]))


@pytest.mark.parametrize("value", [["a list"], {"a": 1}, {"a"}, ("a", 1), (), frozenset("a")])
def test_values_with_entries_are_refused(value):
    column = np.empty((2, 1), dtype=object)
    column[0, 0], column[1, 0] = "x", value
    kind = type(value).__name__
    message = f"must hold numbers, .*object of type {kind}: make a column of each of its entries"
    with pytest.raises(TypeError, match=f"feature 0 {message}"):
        Categories.learn(column, [0])
    for X in (pd.DataFrame(column[1:], columns=["a"]), pd.DataFrame(column, columns=["a"])):
        with pytest.raises(TypeError, match=f"feature 'a' {message}"):
            Categories.learn(X)
    known = Categories.learn(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.raises(TypeError, match=f"feature 'a' {message}"):
        known.encode(pd.DataFrame(column, columns=["a"]))


class Town:
    """A class whose objects have no text of their own."""


NO_TEXTS = {
    "bytes": (b"x", "bytes: decode the bytes to text, or convert them to numbers"),
    "NumPy's bytes": (np.bytes_(b"x"), "bytes_: decode the bytes to text"),
    "object": (object(), "object: convert them to text or numbers, as their own text is .<object"),
    "class": (Town(), "Town: convert them to text or numbers, as their own text is .<"),
    "function": (lambda: None, "function: convert them to text or numbers"),
}


@pytest.mark.parametrize("name", NO_TEXTS)
def test_objects_without_a_text_of_their_own_are_refused(name):
    value, remedy = NO_TEXTS[name]
    message = f"must hold numbers, text, booleans or dates, got objects of type {remedy}"
    column = np.array([["x"], [value], [None]], dtype=object)
    with pytest.raises(TypeError, match=f"feature 0 {message}"):
        PrunedTreeClassifier().fit(column, [0, 1, 1])
    frame = pd.DataFrame(column, columns=["town"])
    for X in (frame, frame.iloc[[1]]):
        with pytest.raises(TypeError, match=f"feature 'town' {message}"):
            Categories.learn(X)
        with pytest.raises(TypeError, match=f"feature 'town' {message}"):
            Categories.learn(pd.DataFrame({"town": ["x", "y"]})).encode(X)


def test_objects_with_a_text_of_their_own_are_categories():
    values = [dt.date, Decimal, dt.UTC, None]  # classes, and an object that defines its text
    names = tuple(sorted(map(str, values[:3])))
    assert Categories.learn(pd.DataFrame({"a": pd.Series(values, dtype=object)})).names == (names,)


def test_tuples_are_no_numbers():
    column = np.empty((2, 1), dtype=object)
    column[0, 0], column[1, 0] = 1.0, (1, 2)
    with pytest.raises(ValueError, match=r"feature 0 must hold numbers, got \(1, 2\)"):
        certree.PrunedTreeClassifier().fit(column, [0, 1])


@pytest.mark.parametrize("values", [["x", None, np.nan], ["x", pd.NA, 5], ["x", "new", 5]])
def test_objects_are_encoded_like_a_frame_of_objects(values):
    categories = Categories.learn(np.array([["x"], ["y"]]), [0])
    column = np.array(values, dtype=object)[:, None]
    if 5 in values[2:]:
        with pytest.raises(
            ValueError, match="must have categories that are all strings or all numbers, got both"
        ):
            categories.encode(column)
    else:
        np.testing.assert_array_equal(categories.encode(column), [[0], [np.nan], [np.nan]])


# -- one row alone ---------------------------------------------------------------------------------


class Colour(str, enum.Enum):  # noqa: UP042 # its text is another than its value
    RED = "red"


EAST = dt.timezone(dt.timedelta(hours=1))
NOON = [
    dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC),
    dt.datetime(2020, 1, 1, 13, tzinfo=EAST),  # equal, in other words
]
# Values of one feature, among which there are some that others could be taken for.
TEXTS = ["", "a", None, "nan", "0", "None", " ", "False", "a\0"]
VALUES = {
    "empty": ["", "", None],
    "texts": TEXTS,
    "nothing but missing values": [None, None],
    "numbers": [0, -0.0, 1, np.nan, None, False, np.float32(0.5), Decimal("0.50")],
    "scalars of NumPy": [np.str_("0"), np.str_(""), "", None],
    "missing values": ["", None, np.nan, pd.NA, pd.NaT],
    "an enumeration": [Colour.RED, "red", "", None],
    "equal values of several texts": [*NOON, None],
}


def tables(values):
    """Tables of one feature with these values, of each library that takes them."""
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    yield "array", column
    yield "pandas", pd.DataFrame({"a": pd.Series(values, dtype=object)})
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str}:
        yield "polars", pl.DataFrame({"a": values})
        yield "Arrow", pa.table({"a": values})
    if kinds == {str}:
        yield "string", pd.DataFrame({"a": pd.Series(values, dtype="string")})
        levels = pd.Index(["unused", *dict.fromkeys(filter(lambda one: one is not None, values))])
        yield "category", pd.DataFrame({"a": pd.Categorical(values, levels)})
        enumerated = pl.Series(values, dtype=pl.Enum(list(levels)))
        yield "enum", pl.DataFrame({"a": enumerated})
        yield "dictionary", pa.table({"a": pa.array(values).dictionary_encode()})
        yield "text", np.array([[value or ""] for value in values])


def row_of(table, i):
    return table.iloc[[i]] if isinstance(table, pd.DataFrame) else table[i : i + 1]


@pytest.mark.parametrize(
    "table",
    [pytest.param(X, id=f"{what}-{how}") for what in VALUES for how, X in tables(VALUES[what])],
)
def test_one_row_alone_is_encoded_as_in_its_table(table):
    categories = Categories.learn(table, [True])
    together = categories.encode(table)
    known = [value for value in np.unique(together) if not np.isnan(value)]
    assert known == list(range(len(categories.names[0])))  # none is lost
    for i in range(len(together)):
        np.testing.assert_array_equal(categories.encode(row_of(table, i))[0], together[i])


@pytest.mark.parametrize("table", [pytest.param(X, id=how) for how, X in tables(TEXTS)])
def test_the_empty_string_is_a_category(table):
    categories = Categories.learn(table, [True])
    assert categories.names[0][0] == ""
    assert categories.encode(row_of(table, 0)).tolist() == [[0]]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pd.cut([1, 5, 9], 2), ("(0.992, 5.0]", "(5.0, 9.0]")),
        (pd.Categorical(pd.period_range("2020-01", periods=2, freq="M")), ("2020-01", "2020-02")),
        (pd.Categorical(pd.to_datetime(["2020-01-02"])), ("2020-01-02 00:00:00",)),
        (pd.Categorical([Decimal("0.5"), Decimal("0.50"), 2]), (0.5, 2.0)),
    ],
    ids=["intervals", "periods", "dates", "decimals"],
)
def test_categories_of_any_type_are_named_as_objects_are(column, names):
    frame = pd.DataFrame({"a": column})
    assert Categories.learn(frame).names == (names,)
    assert Categories.learn(frame.astype(object), ["a"]).names == (names,)


# -- numbers that float64 does not hold ------------------------------------------------------------

FAR = 2**53 + 1
HELD = [2**53, -(2**53), 2**60]


def whole_numbers(values, kinds=("int64", "uint64")):
    """Tables whose second feature has these whole numbers."""
    column = np.empty((len(values), 2), dtype=object)
    column[:, 0], column[:, 1] = 0, values
    yield "objects", column
    yield "a list", column.tolist()
    yield "a list with floats", [[0.5, value] for value in values]
    for kind in kinds:
        if min(values) >= 0 or kind == "int64":
            yield kind, column.astype(kind)
            yield f"pandas {kind}", pd.DataFrame(column, columns=["a", "id"]).astype(kind)
            nullable = {"id": kind.replace("i", "I", 1).replace("u", "U")}
            yield f"pandas {nullable}", pd.DataFrame(column, columns=["a", "id"]).astype(nullable)
    yield "polars", pl.DataFrame({"a": [0.5] * len(values), "id": values})
    yield "Arrow", pa.table({"a": [0.5] * len(values), "id": [*values]})
    decimals = [Decimal(value) for value in values]
    yield "decimals", pa.table({"a": [0] * len(values), "id": pa.array(decimals)})
    yield "pandas decimals", pd.DataFrame({"a": 0, "id": pd.Series(decimals, dtype=object)})


REFUSED = r"feature (1|'id') must hold .* exactly, got 9007199254740993: subtract"


@pytest.mark.parametrize("X", [pytest.param(X, id=how) for how, X in whole_numbers([1, FAR])])
def test_whole_numbers_that_would_become_others_are_refused(X):
    near = [[0.0, 1.0], [0.0, 2.0]]
    with pytest.raises(ValueError, match=REFUSED):
        PrunedTreeClassifier(categorical_features=None).fit(X, ["a", "b"])
    if isinstance(X, pd.DataFrame | pl.DataFrame | pa.Table):
        near = pd.DataFrame(near, columns=["a", "id"])
    model = PrunedTreeClassifier(categorical_features=None).fit(near, ["a", "b"])
    with pytest.raises(ValueError, match=REFUSED):
        model.predict(X)


@pytest.mark.parametrize("X", [pytest.param(X, id=how) for how, X in whole_numbers([1, FAR])])
def test_whole_numbers_that_would_become_others_are_names_if_declared(X, request):
    model = PrunedTreeClassifier(categorical_features=[1])
    if "decimals" in request.node.name:  # which are no integers
        with pytest.raises(ValueError, match=REFUSED):
            model.fit(X, ["a", "b"])
        return
    model.fit(X, ["a", "b"])
    assert [known and {*known} for known in model.categories_.names] == [None, {"1", str(FAR)}]


@pytest.mark.parametrize(
    "X", [pytest.param(X, id=how) for how, X in whole_numbers(HELD, ["int64"])]
)
@pytest.mark.parametrize("chosen", [None, [1]], ids=["numbers", "categories"])
def test_whole_numbers_that_float64_holds_are_taken(X, chosen):
    model = PrunedTreeClassifier(categorical_features=chosen, random_state=0)
    assert model.fit(X, ["a", "b", "c"]).predict(X).shape == (3,)


# -- dates and times -------------------------------------------------------------------------------

TIMES = {
    "dates": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)],
    "moments": [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)],
    "moments with a zone": NOON,
    "durations": [dt.timedelta(1), dt.timedelta(2)],
    "times": [dt.time(1), dt.time(2)],
}


def tables_of_times():
    for what, values in TIMES.items():
        numbers = [0.5, 1.5]
        objects = pd.DataFrame({"x": numbers, "day": pd.Series(values, dtype=object)})
        yield f"{what}, objects of pandas", objects
        yield f"{what}, objects", objects.to_numpy()
        yield f"{what}, polars", pl.DataFrame({"x": numbers, "day": values})
        yield f"{what}, Arrow", pa.table({"x": numbers, "day": values})
        if what in ("moments", "moments with a zone", "durations"):
            inferred = objects.assign(day=objects.day.infer_objects())
            yield f"{what}, pandas", inferred
            yield f"{what}, with words", inferred.assign(x=["a", "b"])
    for kind in ("M8[ns]", "M8[D]", "m8[s]"):
        yield kind, np.array([[0, 1], [1, "NaT"]], dtype=kind)
        scalars = np.array([[0.5, np.array(1, kind)[()]], [0.5, None]], dtype=object)
        yield f"scalars, {kind}", scalars
    frame = pd.DataFrame({"x": [0.5, 1.5], "day": pd.to_datetime(["NaT", "NaT"])})
    yield "NaT", frame
    yield "periods", frame.assign(day=pd.period_range("2020-01", periods=2, freq="M"))
    yield "all dates", frame[["day"]]


@pytest.mark.parametrize(("how", "X"), [pytest.param(*one, id=one[0]) for one in tables_of_times()])
def test_dates_are_numbers_and_times_of_day_are_refused_by_name(how, X):
    said = r"feature ([01]|'day') must hold numbers, as in the fit, got dates or times"
    with pytest.raises(ValueError, match=said):
        Categories.learn(X).encode(X)
    if how.startswith(("times", "periods")):
        said = r"feature ([01]|'day') must hold numbers, dates, .*, got (time|Period): convert"
        with pytest.raises(ValueError, match=said):
            PrunedTreeClassifier().fit(X, ["a", "b"])
    else:
        assert PrunedTreeClassifier().fit(X, ["a", "b"]).dates_


def test_numbers_too_large_for_float64_are_refused():
    X = np.array([[0, 10**400], [0, 1]], dtype=object)
    with pytest.raises(ValueError, match=r"feature 1 must hold numbers, got 1000.*000"):
        PrunedTreeClassifier(categorical_features=None).fit(X, ["a", "b"])
    categories = Categories.learn(X, [1])
    assert categories.names == (None, ("1", "1" + "0" * 400))
    assert categories.encode(X)[:, 1].tolist() == [1, 0]
    assert Categories.learn(X[1:], [1]).encode(X)[0, 1] == -1


def test_nat_among_numbers_is_a_missing_value():
    X = np.array([[1.0], [pd.NaT], [pd.NA], [None]], dtype=object)
    np.testing.assert_array_equal(Categories.learn(X, None).encode(X)[:, 0], [1] + [np.nan] * 3)


BEYOND = 2**60
IDENTIFIERS = np.array([5, 7, BEYOND + 1, BEYOND + 3, -BEYOND - 1])


def far_frames():
    x, z = IDENTIFIERS[np.arange(50) % 5], np.arange(50) / 7
    frame = pd.DataFrame({"x": x, "z": z})
    nullable = frame.astype({"x": "Int64"})
    nullable.loc[49, "x"] = pd.NA
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "nullable": nullable,
        "objects": np.column_stack([x.astype(object), z.astype(object)]),
        "list": [*zip(x.tolist(), z.tolist(), strict=True)],
        "text": frame.astype({"x": str}),
    }


@pytest.mark.parametrize("kind", [*far_frames()])
def test_integers_that_float64_does_not_hold_are_names_if_declared(kind):
    X = far_frames()[kind]
    categories = Categories.learn(X, [0])
    assert categories.names == (tuple(sorted(map(str, IDENTIFIERS.tolist()))), None)
    expected = np.searchsorted(categories.names[0], IDENTIFIERS.astype(str))[np.arange(50) % 5]
    # Whatever library has the rows, also those that hold none of these integers.
    for name, rows in far_frames().items():
        n = 49 if name == "nullable" else 50
        np.testing.assert_array_equal(categories.encode(rows)[:n, 0], expected[:n])
    near = np.array([[5, 0], [7, 0], [6, 0]])
    assert categories.encode(near)[:2, 0].tolist() == [3, 4]
    assert categories.encode(near)[2, 0] == -1
    assert categories.encode(near.astype(float))[:2, 0].tolist() == [3, 4]
    assert (categories.encode(np.array([[np.inf, 0], [5.5, 0]]))[:, 0] == -1).all()


def test_integers_beyond_float64_are_new_to_names_that_are_not():
    near = Categories.learn(np.array([[5], [7]]), [0])
    codes = near.encode(np.array([[7], [BEYOND + 1], [5]]))
    assert codes[[0, 2], 0].tolist() == [1, 0]
    assert codes[1, 0] == -1
    more = near.add_categories(np.array([[BEYOND + 1], [7]]))
    assert more.names == (("5", "7", str(BEYOND + 1)),)
    assert more.encode(np.array([[7], [BEYOND + 1], [5]]))[:, 0].tolist() == [1, 2, 0]


def test_integers_beyond_float64_are_the_same_names_in_files_and_memory(tmp_path):
    frame = pd.DataFrame({"x": IDENTIFIERS[np.arange(500) % 5], "z": np.arange(500.0) % 97})
    frame["y"] = (np.arange(500) % 5 == 3) ^ (frame["z"] > 80)
    folder = tmp_path / "rows"
    folder.mkdir()
    is_near = frame["x"].between(0, 9)
    for name, rows in (("near", frame[is_near]), ("far", frame[~is_near])):
        pq.write_table(pa.Table.from_pandas(rows), folder / f"{name}.parquet")
    model = BoostedTreesClassifier(max_iter=3, categorical_features=["x"], random_state=0)
    X = frame[["x", "z"]]
    here = model.fit(X, frame["y"]).predict_proba(X)
    np.testing.assert_array_equal(model.fit(folder, "y").predict_proba(X), here)
    certree.save(model, tmp_path / "model.certree")
    read = certree.load(tmp_path / "model.certree")
    np.testing.assert_array_equal(read.predict_proba(X), here)
    certree.predict_files(read, folder / "far.parquet", tmp_path / "said.parquet")
    said = pq.read_table(tmp_path / "said.parquet")
    np.testing.assert_array_equal(said["prediction"].to_numpy(), read.predict(X[~is_near]))


@pytest.mark.parametrize("missing", [False, True])
def test_decimals_are_numbers_in_all_tables(missing):
    decimals = [Decimal(i) / 8 for i in range(6)]
    values = [*decimals[:-1], None] if missing else decimals
    numbers = [np.nan if one is None else float(one) for one in values]
    arrow = pa.table({"a": pa.array(values, pa.decimal128(10, 3))})
    tables = (
        np.array(values, dtype=object)[:, None],
        pd.DataFrame({"a": values}),
        pd.DataFrame({"a": pd.Series(values, dtype=pd.ArrowDtype(pa.decimal128(10, 3)))}),
        arrow,
        pl.from_arrow(arrow),
    )
    y = [0, 1] * 3
    expected = BoostedTreesClassifier(max_iter=3, random_state=0).fit(np.c_[numbers], y)
    for X in tables:
        model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
        assert model.categories_ is None
        np.testing.assert_array_equal(
            model.predict_proba(X), expected.predict_proba(np.c_[numbers])
        )
    chosen = Categories.learn(pd.DataFrame({"a": values}), [0])
    assert chosen.names == (tuple(map(float, values[: 6 - missing])),)
