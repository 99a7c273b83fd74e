import subprocess
import sys
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
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
)
from run_length import LONG

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


# -- the command line


@pytest.mark.slow
@pytest.mark.parametrize("n_runs", [40 if LONG else 4])
def test_a_failing_command_exits_with_1_and_its_message(tmp_path, n_runs):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "1.5,2.5,0\n" * 100_000)
    # Four at a time are more than there may be cores.
    command = [sys.executable, "-m", "certree", "fit", str(path), "--target", "nothing"]
    run = partial(subprocess.run, command, capture_output=True, check=False)
    with ThreadPoolExecutor(4) as pool:
        ran = [*pool.map(lambda _: run(), range(n_runs))]
    assert {one.returncode for one in ran} == {1}
    # Lines on how columns are read come first.
    assert {one.stderr.splitlines()[-1] for one in ran} == {
        f"error: the target must be a column of {path}, but there is no column 'nothing': "
        "name one of a, b, y".encode()
    }
