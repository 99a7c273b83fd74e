import gzip
import io
import os
import subprocess
import sys
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from certree.files.tables import (
    BUNDLED,
    DATA_VARIABLE,
    OPENML_IDS,
    load,
    read,
    read_batches,
    split_target,
)

COLUMNS = pa.table({"a": [1.5, 2.0, -3.0], "b": [1, 2, 3], "class": ["x", "y", "x"]})


@pytest.fixture(autouse=True)
def no_directory(monkeypatch):
    """Hide the folder of data sets of this machine."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


@pytest.fixture
def no_network(monkeypatch):
    def fetch_openml(**_):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)


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


# -- named sets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_variable", [False, True], ids=["argument", "variable"])
def test_a_set_is_loaded_from_a_directory(tmp_path, monkeypatch, by_variable):
    write(COLUMNS, tmp_path / "mine.parquet")
    if by_variable:
        monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    table = load("mine") if by_variable else load("mine", tmp_path)
    np.testing.assert_array_equal(table.X, [[1.5, 1], [2, 2], [-3, 3]])
    np.testing.assert_array_equal(table.y, ["x", "y", "x"])
    assert table.feature_names == ["a", "b"]
    assert table.X.dtype == np.float64


def test_the_argument_takes_precedence_over_the_variable(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    write(COLUMNS, tmp_path / "mine.parquet")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "other"))
    assert load("mine", tmp_path).X.shape == (3, 2)


def test_the_last_column_is_the_target(tmp_path):
    write(COLUMNS.select(["a", "class", "b"]).drop_columns(["class"]), tmp_path / "mine.parquet")
    table = load("mine", tmp_path)
    assert table.feature_names == ["a"]
    np.testing.assert_array_equal(table.y, [1, 2, 3])


def test_a_file_takes_precedence_over_a_bundled_set(tmp_path):
    write(COLUMNS, tmp_path / "iris.parquet")
    assert load("iris", tmp_path).X.shape == (3, 2)


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("iris", (150, 4), 3),
        ("cultivars", (178, 13), 3),
        ("cancer", (569, 30), 2),
        ("digits", (1797, 64), 10),
    ],
)
def test_bundled_sets_need_neither_a_directory_nor_a_network(
    no_network, tmp_path, name, shape, n_classes
):
    for table in (load(name), load(name, tmp_path)):
        assert table.X.shape == shape
        assert table.X.dtype == np.float64
        assert len(np.unique(table.y)) == n_classes
        assert len(table.feature_names) == shape[1]
        assert all(isinstance(feature, str) for feature in table.feature_names)


def test_the_sets_above_are_all_bundled_ones():
    assert set(BUNDLED) == {"iris", "cultivars", "cancer", "digits"}


def test_an_unknown_set_names_the_file_wanted_and_the_known_sets(no_network, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        load("epileptic", tmp_path)
    assert "'epileptic'" in str(error.value)
    assert str(tmp_path / "epileptic.parquet") in str(error.value)
    for known in (*BUNDLED, *OPENML_IDS):
        assert known in str(error.value)


def test_without_a_directory_the_error_names_option_and_variable(no_network):
    for name in ("epileptic", "wine"):
        with pytest.raises(FileNotFoundError, match=f"--data or variable {DATA_VARIABLE}"):
            load(name)


@pytest.mark.parametrize("error", [urllib.error.URLError("down"), ValueError("gone")])
def test_a_failed_download_names_the_file_wanted_and_the_reason(tmp_path, monkeypatch, error):
    def fetch_openml(**_):
        raise error

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    with pytest.raises(FileNotFoundError) as raised:
        load("wine", tmp_path)
    message = str(raised.value)
    assert str(tmp_path / "wine.parquet") in message
    assert str(OPENML_IDS["wine"]) in message
    assert str(error.args[0]) in message


def test_a_downloaded_set_becomes_a_table(tmp_path, monkeypatch):
    requests = []

    def fetch_openml(**arguments):
        requests.append(arguments)
        return Bunch(
            data=np.array([[1, 2], [3, 4]], dtype=np.int64),
            target=np.array(["A", "B"], dtype=object),
            feature_names=["one", "two"],
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    for directory in (None, tmp_path):
        table = load("letter", directory)
        np.testing.assert_array_equal(table.X, [[1.0, 2.0], [3.0, 4.0]])
        assert table.X.dtype == np.float64
        np.testing.assert_array_equal(table.y, ["A", "B"])
        assert table.feature_names == ["one", "two"]
    assert [arguments["data_id"] for arguments in requests] == [OPENML_IDS["letter"]] * 2


def test_a_file_makes_the_download_unnecessary(no_network, tmp_path):
    write(COLUMNS, tmp_path / "wine.parquet")
    assert load("wine", tmp_path).X.shape == (3, 2)


# -- files -----------------------------------------------------------------------------------------


def test_feather_files_are_read_without_other_imports(tmp_path):
    # Other libraries, and the imports of this file, make up for one that is missing.
    write(COLUMNS, tmp_path / "table.feather")
    code = "import sys; from certree.files.tables import read; print(read(sys.argv[1]).num_rows)"
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


def test_a_directory_in_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "table.parquet").mkdir()
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(tmp_path / "table.parquet")


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


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_a_feature_without_any_value_becomes_nan(tmp_path, suffix):
    columns = pa.table({"a": [1.0, 2.0], "b": pa.nulls(2, pa.float64()), "class": [0, 1]})
    path = write(columns, tmp_path / f"table{suffix}")
    table = split_target(read(path), "class")
    np.testing.assert_array_equal(table.X, [[1.0, np.nan], [2.0, np.nan]])


def test_features_in_several_chunks_are_joined():
    part = pa.table({"a": pa.array([1.0, None]), "class": ["x", "y"]})
    table = split_target(pa.concat_tables([part, part, part]), "class")
    np.testing.assert_array_equal(table.X[:, 0], [1.0, np.nan] * 3)
    np.testing.assert_array_equal(table.y, ["x", "y"] * 3)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("labels", [[1, None, 2], ["x", None, "y"]], ids=["numbers", "strings"])
def test_a_missing_class_is_an_error(tmp_path, suffix, labels):
    path = write(pa.table({"a": [1.0, 2.0, 3.0], "class": labels}), tmp_path / f"table{suffix}")
    with pytest.raises(ValueError, match="'class' must have no missing values, got 1"):
        split_target(read(path), "class")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"1", b"2"]),
        pa.array([0, 1], pa.timestamp("s")),
        pa.array([[1.0], [2.0]]),
    ],
    ids=["binary", "timestamp", "list"],
)
def test_a_feature_of_another_type_is_named(values):
    with pytest.raises(ValueError, match="feature 'bad' must hold numbers or strings"):
        split_target(pa.table({"good": [1.0, 2.0], "bad": values}), None)


def test_the_error_for_a_missing_target_names_the_columns():
    with pytest.raises(ValueError, match="no column 'label': name one of a, b, class"):
        split_target(COLUMNS, "label")


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


def test_a_categorical_column_that_pandas_wrote_is_a_target(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "class": pd.Categorical(["x", "y", "x"])})
    frame.to_parquet(tmp_path / "table.parquet")
    table = split_target(read(tmp_path / "table.parquet"), "class")
    np.testing.assert_array_equal(table.y, ["x", "y", "x"])


@pytest.mark.parametrize("as_dictionary", [False, True])
def test_strings_are_categories(as_dictionary):
    names = pa.array(["b", None, "a"])
    names = names.dictionary_encode() if as_dictionary else names
    table = split_target(pa.table({"number": [1.5, None, 3], "name": names}), None)
    assert table.categorical == [1]
    assert table.X[:, 1].tolist() == ["b", None, "a"]
    np.testing.assert_array_equal(table.X[:, 0].astype(float), [1.5, np.nan, 3])
    assert split_target(pa.table({"number": [1.5, None]}), None).categorical == []


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
    sources = []

    def watched(function):
        def watching(source, **how):
            is_text = isinstance(source, pa.BufferReader)
            has_copied = pa.total_allocated_bytes() - before >= len(text)
            sources.append(has_copied if is_text else type(source))
            return function(source, **how)

        return watching

    for one in ("read_csv", "open_csv"):
        monkeypatch.setattr(pa.csv, one, watched(getattr(pa.csv, one)))
    for read_all in (read, lambda path: [*read_batches(path, lambda _: {}, 10)][-1].table):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        before = pa.total_allocated_bytes()
        assert read_all(place).to_pylist() == [{"a": 1, "b": 2}]
    assert len(sources) >= 3
    assert set(sources) <= {True, pa.OSFile, pa.CompressedInputStream}


@pytest.mark.parametrize("n_runs", [200 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 12])
def test_a_failing_command_exits_with_1_and_its_message(tmp_path, n_runs):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "1.5,2.5,0\n" * 100_000)
    # Four at a time are more than there may be cores.
    command = [sys.executable, "-m", "certree", "fit", str(path), "--target", "nothing"]
    run = partial(subprocess.run, command, capture_output=True, check=False)
    with ThreadPoolExecutor(4) as pool:
        ran = [*pool.map(lambda _: run(), range(n_runs))]
    assert {one.returncode for one in ran} == {1}
    assert {one.stderr.split(b":")[1] for one in ran} == {
        b" the target must be a column, but there is no column 'nothing'"
    }
