"""Files are read alike as a whole, batch by batch for predictions, and block by block for fits."""

import datetime as dt
import gzip
import io
import subprocess
import sys
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from certree import read_table
from certree.files.model_rows import select_features
from certree.out_of_core.sources import FileRows
from certree.rows.categories import Categories
from certree.rows.dates import learn_dates
from certree.tables import formats
from certree.tables.column_types import extract_feature
from certree.tables.fitted_types import get_fitted_columns
from certree.tables.reader import no_types, read, read_batches
from certree.tables.table import split_target
from certree.tables.table_source import with_format

COLUMNS = pa.table({"a": [1.5, 2.0, -3.0], "b": [1, 2, 3], "class": ["x", "y", "x"]})


def write(columns, path):
    writers = {
        ".csv": pa.csv.write_csv,
        ".parquet": pa.parquet.write_table,
        ".pq": pa.parquet.write_table,
        ".feather": pa.feather.write_feather,
        ".arrow": pa.feather.write_feather,
    }
    writers[path.suffix.lower()](columns, str(path))
    return path


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_feather_files_are_read_without_other_imports(tmp_path):
    # Other libraries, and the imports of this file, make up for one that is missing.
    write(COLUMNS, tmp_path / "table.feather")
    code = "import sys; from certree.tables.reader import read; print(read(sys.argv[1]).num_rows)"
    command = [sys.executable, "-c", code, str(tmp_path / "table.feather")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "3\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".pq", ".feather", ".arrow", ".CSV"])
def test_files_of_every_kind_are_read(tmp_path, suffix):
    path = write(COLUMNS, tmp_path / f"table{suffix}")
    for place in (path, str(path)):
        assert read(place).equals(COLUMNS)


@pytest.mark.parametrize("name", ["table.xlsx", "table", "table.zip.gz", "csv"])
def test_an_unknown_suffix_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(
        ValueError, match=r"must end in \.csv, \.csv\.gz, \.tsv, \.parquet, \.arrow or"
    ):
        read(path)


@pytest.mark.parametrize("name", ["table.csv", "table.xlsx"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=name):
        read(tmp_path / name)


def test_a_directory_is_read_as_a_folder_of_files(tmp_path):
    folder = tmp_path / "table.parquet"
    folder.mkdir()
    with pytest.raises(ValueError, match="holds no"):
        read(folder)
    write(COLUMNS, folder / "1.parquet")
    write(COLUMNS.slice(1), folder / "2.arrow")
    assert read(folder).equals(pa.concat_tables([COLUMNS, COLUMNS.slice(1)]))


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"no table at all, but some text",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content[:8] + bytes(len(content) - 16) + content[-8:],
    ],
    ids=["empty", "text", "half", "last byte", "zeros"],
)
def test_a_damaged_file_is_a_value_error_that_names_it(tmp_path, suffix, damage):
    path = write(COLUMNS, tmp_path / f"table{suffix}")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="table"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n3\n", b"a,b\n1,2,3\n"])
def test_a_damaged_csv_file_is_a_value_error_that_names_it(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="table"):
        read(path)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("index", [None, "key"])
def test_the_index_of_a_data_frame_is_not_a_column(tmp_path, suffix, index):
    # Row numbers of a sorted table would tell the target.
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 0, 1, 1]}).iloc[[0, 2, 3]]
    frame.index.name = index
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path, index=True)
    else:
        pa.feather.write_feather(pa.Table.from_pandas(frame, preserve_index=True), path)
    assert read(path).column_names == ["a", "y"]


# -- threads of Arrow, which may outlive the interpreter ---------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "utf16.csv", "-"])
def test_arrow_does_not_read_memory_of_python(tmp_path, monkeypatch, name):
    text = "a,b\n1,2\n" if name != "t.tsv" else "a\tb\n1\t2\n"
    content = text.encode("utf-16" if name == "utf16.csv" else "utf-8")
    place = name if name == "-" else tmp_path / name
    if name != "-":
        place.write_bytes(gzip.compress(content) if name == "t.csv.gz" else content)
    sources, addresses = [], set()

    def allocate(size, give=pa.allocate_buffer):
        buffer = give(size)
        addresses.add(buffer.address)
        return buffer

    def parse(source, open_csv=pa.csv.open_csv, **how):
        if isinstance(source, pa.BufferReader):
            sources.append(source.read_buffer(1).address in addresses)
            source.seek(0)
        else:
            sources.append(type(source))
        return open_csv(source, **how)

    monkeypatch.setattr(pa, "allocate_buffer", allocate)
    monkeypatch.setattr(pa.csv, "open_csv", parse)
    for read_all in (read, lambda path: [*read_batches(path, no_types, 10)][-1].table):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read_all(place).to_pylist() == [{"a": 1, "b": 2}]
    assert len(sources) >= 3
    assert set(sources) <= {True, pa.OSFile, pa.CompressedInputStream}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_a_feature_without_any_value_becomes_nan(tmp_path, suffix):
    columns = pa.table({"a": [1.0, 2.0], "b": pa.nulls(2, pa.float64()), "class": [0, 1]})
    path = write(columns, tmp_path / f"table{suffix}")
    table = split_target(read(path), "class")
    np.testing.assert_array_equal(table.X, [[1.0, np.nan], [2.0, np.nan]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("labels", [[1, None, 2], ["x", None, "y"]], ids=["numbers", "strings"])
def test_a_missing_class_is_an_error(tmp_path, suffix, labels):
    path = write(pa.table({"a": [1.0, 2.0, 3.0], "class": labels}), tmp_path / f"table{suffix}")
    with pytest.raises(ValueError, match="'class' must have no missing values, got 1"):
        split_target(read(path), "class")


def test_a_categorical_column_that_pandas_wrote_is_a_target(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "class": pd.Categorical(["x", "y", "x"])})
    frame.to_parquet(tmp_path / "table.parquet")
    table = split_target(read(tmp_path / "table.parquet"), "class")
    np.testing.assert_array_equal(table.y, ["x", "y", "x"])


# -- the same types, values and messages in all ways of reading --------------------------------------


def csv_of(values, delimiter=","):
    """A CSV file of a column x, a column z of numbers, and a target y of classes 0 and 1."""
    lines = [delimiter.join([x, str(i % 3), str(i % 2)]) for i, x in enumerate(values)]
    return "\n".join([delimiter.join("xzy"), *lines, ""])


def table_of(x):
    n = len(x)
    return pa.table({"x": x, "z": np.arange(n) % 3, "y": np.arange(n) % 2})


NAN = float("nan")
DAY, TEN = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 10)
MANY = 40  # rows, which fill several blocks
# Name of the file; content; description of x, its values and types of Arrow.
READ = [
    ("ints.csv", csv_of(["1", "-2"] * MANY), "number", [1, -2] * MANY),
    ("floats.csv", csv_of([*["1"] * MANY, "1.5"]), "number", [*[1] * MANY, 1.5]),
    ("text.csv", csv_of(["a", "b c"] * MANY), "category", ["a", "b c"] * MANY),
    ("booleans.csv", csv_of(["true", "False"] * MANY), "boolean", [1, 0] * MANY),
    ("late boolean.csv", csv_of([*["0", "1"] * MANY, "true"]), "boolean", [*[0, 1] * MANY, 1]),
    (
        "late text.csv",
        csv_of([*["1"] * MANY, "one"]),
        "category, although 97.6 % of the values are numbers, as 1 is not ("
        '"one": 1); if this text means missing, pass missing=["one"] (--missing "one")',
        [*["1"] * MANY, "one"],
    ),
    (
        "true after 2.csv",
        csv_of([*["2"] * MANY, "true"]),
        "category, although 97.6 % of the values are numbers, as 1 is not ("
        '"true": 1); if this text means missing, pass missing=["true"] (--missing "true")',
        [*["2"] * MANY, "true"],
    ),
    ("empty.csv", csv_of(["", "3"]), "number, 1 missing (empty)", [NAN, 3]),
    ("nothing.csv", csv_of(["", "NA"]), "empty, 2 missing (empty, NA)", [NAN, NAN]),
    ("marked.csv", csv_of(["NA", "3", "null"]), "number, 2 missing (NA, null)", [NAN, 3, NAN]),
    (
        "marked text.csv",
        csv_of(["nan", "a", ""]),
        "category, 2 missing (empty, nan); keep_text= (--keep-text 'x') keeps nan as text",
        [None, "a", None],
    ),
    ("quotes.csv", csv_of(['"a,b"', '"say ""hi"""', "c"]), "category", ["a,b", 'say "hi"', "c"]),
    ("quoted numbers.csv", csv_of(['"1"', '"2"']), "number", [1, 2]),
    ("spaces.csv", csv_of([" 1", "2 ", "\t3"]), "number", [1, 2, 3]),
    ("spaced text.csv", csv_of([" a", "b"]), "category", [" a", "b"]),
    ("utf16.csv", csv_of(["é", "b"] * MANY).encode("utf-16"), "category", ["é", "b"] * MANY),
    ("mark.csv", csv_of(["1", "2"]).encode("utf-8-sig"), "number", [1, 2]),
    ("utf16le.csv", csv_of(["a", "b"]).encode("utf-16-le"), "category", ["a", "b"]),
    ("packed.csv.gz", gzip.compress(csv_of(["c", "a"]).encode()), "category", ["c", "a"]),
    ("tabs.tsv", csv_of(["1,5", "2,5"], "\t"), "number, decimal comma", [1.5, 2.5]),
    ("semicolons.csv", csv_of(["1", "2"], ";"), "number", [1, 2]),
    ("semicolons.tsv", csv_of(["1", "2"], ";"), "number", [1, 2]),
    (
        "latin.csv",
        csv_of([*["a"] * MANY, "é"]).encode("latin-1"),
        "category",
        [*["a"] * MANY, "é"],
    ),
    ("names.csv", csv_of(["a"]).replace("z", "é").encode("latin-1"), "category", ["a"]),
    ("header.csv", "x,z,y\n", "empty", []),
    ("large.csv", csv_of([str(2**53 - 1), str(2**60)]), "number", [2**53 - 1, 2**60]),
    ("strings.parquet", table_of(["a", None]), "category, 1 missing", ["a", None]),
    (
        "dictionary.parquet",
        table_of(pa.array(["a", "b"]).dictionary_encode()),
        "category",
        ["a", "b"],
    ),
    ("decimals.parquet", table_of([Decimal("1.10"), None]), "number, 1 missing", [1.1, NAN]),
    ("nulls.parquet", table_of(pa.array([7, None], pa.int8())), "number, 1 missing", [7, NAN]),
    ("NaN.parquet", table_of([NAN, None, 1.0]), "number, 2 missing", [NAN, NAN, 1]),
    ("booleans.arrow", table_of([True, None]), "boolean, 1 missing", [1, NAN]),
    ("dates.csv", csv_of(["2020-01-01", ""]), "date, 1 missing (empty)", [DAY, None]),
    ("stamps.csv", csv_of(["2020-01-01 10:00:00"]), "date", [TEN]),
    (
        "zones.csv",
        csv_of(["2020-01-01T10:00:00Z"]),
        "date, in UTC: name another time zone by timezone= (--timezone)",
        [TEN.replace(tzinfo=dt.UTC)],
    ),
    ("days.parquet", table_of(pa.array([DAY], pa.date64())), "date", [DAY]),
    ("stamps.arrow", table_of(pa.array([TEN], pa.timestamp("ns"))), "date", [TEN]),
    ("spans.parquet", table_of(pa.array([dt.timedelta(1)])), "time span", [dt.timedelta(1)]),
    ("batches.arrow", table_of(["a", "b"] * 200), "category", ["a", "b"] * 200),
    ("large text.arrow", table_of(pa.array(["a", "b"], pa.large_string())), "category", ["a", "b"]),
]
# Name of the file; content; message.
REFUSED = [
    (
        "large.csv",
        csv_of([str(2**53 + 1)]),
        "'x' must hold numbers that float64 represents exactly",
    ),
    (
        "times.csv",
        csv_of(["10:00:00", "11:30"]),
        "'x' must hold numbers, strings or dates, got time32",
    ),
    ("twice.csv", "x,x,y\n1,2,0\n", "names must be distinct, but x occurs more than once"),
    (
        "mixed.csv",
        csv_of(["é"] * MANY).encode() + "é,1,1\n".encode("latin-1"),
        r"mixed.csv must be text in one encoding, but column 'x' .*\(--encoding\)",
    ),
    (
        "dos.csv",
        csv_of(["a", "ü"]).encode("cp850"),
        r"dos.csv must be text in WINDOWS-1252, but column 'x' has bytes .*as cp850",
    ),
    (
        "zero.csv",
        csv_of([*["a"] * MANY, "a\0"]),
        "zero.csv must be text, but (it|column 'x') contains zero bytes",
    ),
    ("half.csv", csv_of(["a"]).encode("utf-16")[:-1], "was taken for text in UTF-16, but"),
    ("ragged.csv", "x,z,y\n1,2,0\n3\n", "ragged.csv has 3 columns, but line 3 has 1: '3'"),
    ("nothing.csv", "", "nothing.csv could not be read: it is empty: pass a file"),
    (
        "bytes.parquet",
        table_of([b"a", b"b"]),
        "'x' must hold numbers, strings or dates, got binary",
    ),
    (
        "large.parquet",
        table_of([2**53, 2**53 + 1]),
        "float64 represents exactly, got 9007199254740993",
    ),
    ("torn.arrow", b"ARROW1\0\0", "torn.arrow could not be read"),
]
every_block = pytest.mark.parametrize("block", [100, 2**20], ids=["small", "large"])


@pytest.fixture
def in_blocks(monkeypatch, block):
    monkeypatch.setattr(formats, "_BLOCK", block)
    monkeypatch.setattr(formats, "_SMALL_BLOCK", block)


def put(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_bytes(content.encode())
    elif path.suffix == ".parquet":
        pa.parquet.write_table(content, path, row_group_size=7)
    else:
        with pa.ipc.new_file(path, content.schema) as file:
            file.write_table(content, 11)
    return path


def model_of(table):
    """What predictions know of a model that was fitted to a table."""
    names = [
        sorted({value for value in column if value is not None}) if j in table.categorical else None
        for j, column in enumerate(table.X.T)
    ]
    return SimpleNamespace(
        feature_names_in_=table.feature_names,
        n_features_in_=len(names),
        categories_=Categories(tuple(names)),
        dates_=learn_dates(table.X),
    )


def predicted_features(path, model, table_format=None):
    """The features as `predict_files` and `certree evaluate` read them."""
    types = partial(get_fitted_columns, model, None)
    batches = read_batches(
        with_format(path, table_format), types, 3, [*model.feature_names_in_, "y"]
    )
    return np.concatenate([select_features(model, one.table, one.where) for one in batches])


def fitted_features(path, *, is_limited):
    """The features as fits to files read them, and the types of their columns."""
    rows = FileRows(path, "y", block_rows=5, is_limited=is_limited)
    tables = [one.X for one in rows.chunks()]
    schema = rows._schema.remove(rows._schema.get_field_index("y"))
    table = pa.concat_tables([schema.empty_table(), *tables])
    return np.column_stack([extract_feature(table, name) for name in rows.features]), table.schema


def shown(value):
    """What a value looks like; PyArrow writes the same time zone in several ways."""
    return value.isoformat() if isinstance(value, dt.datetime) else repr(value)


def expect_equal(found, expected):
    assert found.shape == expected.shape
    for one, other in zip(found.T.tolist(), expected.T.tolist(), strict=True):
        assert [*map(shown, one)] == [*map(shown, other)]


@every_block
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(("name", "content", "described", "values"), READ, ids=[r[0] for r in READ])
def test_a_file_has_the_same_values_in_all_ways_of_reading(
    name, content, described, values, tmp_path
):
    path = put(tmp_path / name, content)
    table = read_table(path, "y")
    assert str(table.description.columns[0]) == f"x: {described}"
    assert [shown(value) for value in table.X[:, 0].tolist()] == [
        shown(value if isinstance(value, str | None | dt.date | dt.timedelta) else float(value))
        for value in values
    ]
    command = read(path)
    expect_equal(split_target(command, "y").X, table.X)
    expect_equal(predicted_features(path, model_of(table), table.table_format), table.X)
    for is_limited in (False, True) if "utf16" not in name else (False,):
        features, schema = fitted_features(path, is_limited=is_limited)
        expect_equal(features, table.X)
        assert schema.types == command.drop_columns(["y"]).schema.types


@every_block
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_file_is_refused_in_the_same_words_in_all_ways_of_reading(
    name, content, message, tmp_path
):
    path, messages = put(tmp_path / name, content), set()
    for way in (
        lambda: read_table(path, "y"),
        lambda: split_target(read(path), "y"),
        lambda: fitted_features(path, is_limited=False),
        lambda: fitted_features(path, is_limited=True) if "half" not in name else read(path),
        lambda: split_target([*read_batches(path, no_types, 100)][-1].table, "y"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            way()
        messages.add(str(error.value))
    assert len(messages) == 1


def test_text_in_utf16_is_refused_if_memory_is_limited(tmp_path):
    path = put(tmp_path / "rows.csv", csv_of(["1"]).encode("utf-16"))
    with pytest.raises(ValueError, match=r"memory_limit takes CSV files in UTF-8, .*rows\.csv has"):
        FileRows(path, "y", is_limited=True)


def test_standard_input_is_read_by_all_ways(monkeypatch):
    content = csv_of(["1", "NA", "2"]).encode()

    def give():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return "-"

    table = read_table(give(), "y")
    assert str(table.description.columns[0]) == "x: number, 1 missing (NA)"
    expect_equal(predicted_features(give(), model_of(table)), table.X)
    expect_equal(fitted_features(give(), is_limited=False)[0], table.X)
    with pytest.raises(ValueError, match="got standard input: it is held in memory"):
        fitted_features(give(), is_limited=True)


# -- types that are told, and files with different types ---------------------------------------------


@every_block
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("late", ["one", "true"])
def test_a_value_that_is_no_number_is_named_in_predictions(late, tmp_path):
    model = model_of(read_table(put(tmp_path / "old.csv", csv_of(["2", "3"])), "y"))
    path = put(tmp_path / "new.csv", csv_of([*["2"] * MANY, late]))
    with pytest.raises(
        ValueError, match=rf"'x' must hold numbers as in the fit, got '{late}' in .*new"
    ):
        predicted_features(path, model)


def test_columns_keep_their_text(tmp_path):
    path = put(tmp_path / "rows.csv", csv_of(["01", "NA", ""]))
    table = read_table(path, "y", keep_text=["x"])
    assert table.X[:, 0].tolist() == ["01", "NA", None]
    assert table.X[:, 1].tolist() == [0.0, 1.0, 2.0]
    expected = "x: category, NA kept as text, 1 missing (empty)"
    assert str(table.description.columns[0]) == expected
    plain = read_table(put(tmp_path / "plain.csv", csv_of(["01", "2"])), "y", keep_text=["x"])
    assert str(plain.description.columns[0]) == "x: category, text kept"
    with pytest.raises(ValueError, match=r"keep_text must name columns of .*rows\.csv, but .*'w'"):
        read_table(path, "y", keep_text=["w"])
    with pytest.raises(TypeError, match="keep_text must be a sequence"):
        read_table(path, "y", keep_text="x")


def test_dates_of_a_target_stay_text(tmp_path):
    path = put(tmp_path / "rows.csv", "x,y\n1,2020-01-01\n2,2021-05-06 10:00\n")
    assert read_table(path, "y").y.tolist() == ["2020-01-01", "2021-05-06 10:00"]
    assert next(FileRows(path, "y").chunks()).y.tolist() == ["2020-01-01", "2021-05-06 10:00"]
    assert pa.types.is_timestamp(read(path)["y"].type)


JOINED = [
    ({"a.csv": csv_of(["1"]), "b.csv": csv_of(["1.5"])}, [1, 1.5]),
    ({"a.csv": csv_of(["1"]), "b.csv": csv_of(["one"])}, ["1", "one"]),
    ({"a.csv": csv_of(["1.0"]), "b.csv": csv_of(["2"]), "c.csv": csv_of(["x"])}, ["1.0", "2", "x"]),
    ({"a.csv": csv_of([""]), "b.csv": csv_of(["2"])}, [NAN, 2]),
    ({"a.csv": "x,z,y\n", "b.csv": csv_of(["a"])}, ["a"]),
    ({"a.csv": csv_of(["1"]), "b.parquet": table_of([1.5])}, [1, 1.5]),
    ({"a.parquet": table_of(["b"]), "b.csv": csv_of(["01"])}, ["b", "01"]),
]


@pytest.mark.parametrize(("files", "values"), JOINED)
def test_the_type_of_a_column_is_that_of_all_files(files, values, tmp_path):
    for name, content in files.items():
        put(tmp_path / name, content)
    expected = [repr(value if isinstance(value, str) else float(value)) for value in values]
    table = read_table(tmp_path, "y")
    assert [repr(value) for value in table.X[:, 0].tolist()] == expected
    features, _ = fitted_features(tmp_path, is_limited=False)
    expect_equal(features, table.X)


def test_files_without_a_common_type_are_named(tmp_path):
    put(tmp_path / "a.parquet", table_of([1.5]))
    put(tmp_path / "b.csv", csv_of(["one"]))
    with pytest.raises(ValueError, match=r"'x' of .*b\.csv holds string, which .* with double"):
        read_table(tmp_path, "y")
    (tmp_path / "b.csv").write_text("z,y\n1,0\n")
    with pytest.raises(ValueError, match=r"b\.csv has no column 'x', which .*a\.parquet has"):
        read_table(tmp_path, "y")
