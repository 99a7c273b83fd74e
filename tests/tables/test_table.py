"""Tables in memory: arrays of features and target, made from Arrow tables, and their description."""

import numpy as np
import pyarrow as pa
import pytest

import certree
from certree.tables.column_names import expect_other_column, suggest_names
from certree.tables.column_types import InferredColumn
from certree.tables.table import InferredSchema, Table, describe_columns, split_target

COLUMNS = pa.table({"a": [1.5, 2.0, -3.0], "b": [1, 2, 3], "class": ["x", "y", "x"]})


# -- features and target ---------------------------------------------------------------------------


def test_features_keep_their_order_without_the_target():
    table = split_target(COLUMNS.select(["b", "class", "a"]), "class")
    assert table.feature_names == ["b", "a"]
    np.testing.assert_array_equal(table.X, [[1, 1.5], [2, 2], [3, -3]])
    np.testing.assert_array_equal(table.y, ["x", "y", "x"])


def test_without_a_target_all_columns_are_features():
    table = split_target(COLUMNS.drop_columns(["class"]), None)
    assert table.y is None
    assert table.X.shape == (3, 2)


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
    ],
    ids=str,
)
def test_numeric_features_become_float64(kind):
    columns = pa.table({"a": pa.array(np.array([0, 1, 3], kind.to_pandas_dtype()), kind)})
    table = split_target(columns, None)
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.X, [[0.0], [1.0], [3.0]])


def test_boolean_features_become_zero_and_one():
    table = split_target(pa.table({"a": [True, False, None]}), None)
    np.testing.assert_array_equal(table.X, [[1.0], [0.0], [np.nan]])


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64(), pa.uint8()], ids=str)
def test_nulls_in_features_become_nan(kind):
    columns = pa.table({"a": pa.array([1, None, 3], kind), "b": [1.0, 2.0, None]})
    table = split_target(columns, None)
    np.testing.assert_array_equal(table.X, [[1.0, 1.0], [np.nan, 2.0], [3.0, np.nan]])


def test_features_in_several_chunks_are_joined():
    part = pa.table({"a": pa.array([1.0, None]), "class": ["x", "y"]})
    table = split_target(pa.concat_tables([part, part, part]), "class")
    np.testing.assert_array_equal(table.X[:, 0], [1.0, np.nan] * 3)
    np.testing.assert_array_equal(table.y, ["x", "y"] * 3)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"1", b"2"]),
        pa.array([0, 1], pa.time32("s")),
        pa.array([[1.0], [2.0]]),
    ],
    ids=["binary", "time", "list"],
)
def test_a_feature_of_another_type_is_named(values):
    with pytest.raises(ValueError, match="feature 'bad' must hold numbers, strings or dates"):
        split_target(pa.table({"good": [1.0, 2.0], "bad": values}), None)


def test_the_error_for_a_missing_target_names_the_columns():
    with pytest.raises(ValueError, match="no column 'label': name one of a, b, class"):
        split_target(COLUMNS, "label")


@pytest.mark.parametrize(
    ("unknown", "names", "text"),
    [
        ("days", ["x", "day"], "did you mean 'day'? Or name one of x, day"),
        (
            " Customer ",
            ["CUSTOMER", "customer"],
            "did you mean 'CUSTOMER'? Or name one of CUSTOMER, ",
        ),
        (" id ", ["id", "x"], "did you mean 'id'? Or name one of id, x"),
        ("day", ["date", "x"], "name one of date, x"),
        ("q", [f"x{j}" for j in range(14)], "name one of x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, "),
    ],
)
def test_an_unknown_name_is_compared_with_the_known_ones(unknown, names, text):
    found = suggest_names(unknown, names)
    assert found.startswith(text)
    assert found.endswith("x10, x11 and 2 more" if len(names) > 12 else names[-1])


def test_the_target_is_not_suggested_as_another_column():
    with pytest.raises(ValueError, match=r"no column 'late' beside .*: name one of day, x$"):
        expect_other_column("--groups", "late", ["day", "late", "x"], "late")


@pytest.mark.parametrize("target", ["class", None])
def test_a_table_without_features_is_refused(target):
    columns = COLUMNS.select(["class"] if target else [])
    with pytest.raises(ValueError, match="must have a feature column"):
        split_target(columns, target)


@pytest.mark.parametrize("target", ["class", None])
def test_duplicate_column_names_are_refused(target):
    columns = pa.table([[1.0, 2.0], [3.0, 4.0], [0, 1]], names=["a", "a", "class"])
    with pytest.raises(ValueError, match=r"\ba\b"):
        split_target(columns, target)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["x", "y"], ["x", "y"]),
        (pa.array(["x", "y"], pa.large_string()), ["x", "y"]),
        (pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
        (pa.array([3, -1], pa.int16()), [3, -1]),
        ([True, False], [True, False]),
    ],
    ids=["string", "large string", "dictionary", "int", "bool"],
)
def test_targets_of_every_kind_become_an_array(values, expected):
    y = split_target(pa.table({"a": [1.0, 2.0], "class": values}), "class").y
    np.testing.assert_array_equal(y, expected)
    assert y.dtype != object
    assert np.unique(y).tolist() == sorted(expected)


@pytest.mark.parametrize("as_dictionary", [False, True])
def test_strings_are_categories(as_dictionary):
    names = pa.array(["b", None, "a"])
    names = names.dictionary_encode() if as_dictionary else names
    table = split_target(pa.table({"number": [1.5, None, 3], "name": names}), None)
    assert table.categorical == [1]
    assert table.X[:, 1].tolist() == ["b", None, "a"]
    np.testing.assert_array_equal(table.X[:, 0].astype(float), [1.5, np.nan, 3])
    assert split_target(pa.table({"number": [1.5, None]}), None).categorical == []


# -- descriptions, and Arrow tables for fits ---------------------------------------------------------


def test_a_description_lists_types_and_missing_values():
    columns = pa.table(
        {
            "number": [1, None],
            "share": [np.nan, 1.0],
            "flag": [True, False],
            "town": pa.array(["a", None]).dictionary_encode(),
            "nothing": pa.nulls(2),
            "day": pa.array([0, 1], pa.date32()),
            "hour": pa.array([0, 1], pa.time32("s")),
            "list": [[1], [2]],
        }
    )
    seen = {"town": InferredColumn((pa.string(),), True, frozenset(["", "NA"]))}
    assert str(
        describe_columns(columns, InferredSchema(seen, columns.schema, [2], "t.csv"))
    ).splitlines() == [
        "2 rows, 8 columns",
        "number: number, 1 missing",
        "share: number, 1 missing",
        "flag: boolean",
        "town: category, 1 missing (empty, NA); keep_text= (--keep-text 'town') keeps NA as text",
        "nothing: empty, 2 missing",
        "day: date",
        "hour: time",
        "list: list<item: int64>"
        if "item" in str(columns.schema.types[-1])
        else "list: list<element: int64>",
    ]


def test_a_long_description_is_cut():
    columns = pa.table({f"x{j}": [1.0] for j in range(40)})
    lines = str(
        describe_columns(columns, InferredSchema({}, columns.schema, [1], "t.csv"))
    ).splitlines()
    assert len(lines) == 32
    assert lines[-1] == "and 10 more"


def test_fits_to_arrow_tables_learn_names_and_categories():
    X = np.array([[1.5, "a"], [np.nan, None], [2.0, "b"], [3.0, "a"]], dtype=object)
    table = Table(X, np.array([0, 1, 0, 1]), ["size", "kind"])
    arrow = table.to_arrow()
    assert arrow.schema == pa.schema([("size", pa.float64()), ("kind", pa.string())])
    model = certree.PACBayesTreeClassifier(random_state=0).fit(arrow, table.y)
    assert model.feature_names_in_.tolist() == ["size", "kind"]
    assert model.is_categorical_.tolist() == [False, True]
    numbers = Table(np.ones((2, 1)), None, ["size"])
    assert numbers.to_arrow().equals(pa.table({"size": [1.0, 1.0]}))


def test_number_categories_stay_categories():
    codes = pa.array([10, None, 9]).dictionary_encode()
    table = split_target(pa.table({"size": [1.5, None, 3], "code": codes}), None)
    assert table.categorical == [1]
    np.testing.assert_array_equal(table.X, [[1.5, 10], [np.nan, np.nan], [3, 9]])
    arrow = table.to_arrow()
    assert arrow.schema.types == [pa.float64(), pa.dictionary(pa.int32(), pa.float64())]
    assert arrow["code"].to_pylist() == [10.0, None, 9.0]


def test_a_column_of_strings_without_values_is_categorical():
    table = split_target(pa.table({"town": pa.nulls(2, pa.string())}), None)
    assert table.categorical == [0]
    assert table.to_arrow().schema.types == [pa.string()]
