"""What the command line and the estimators say of tables, places and rows that they cannot use."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from certree import (
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeRegressor,
    Voting,
    __main__,
    grow_cart,
)
from certree.interface.threads import get_n_threads
from cli.test_app import fails, succeeds

RNG = np.random.default_rng(0)


@pytest.fixture
def people(tmp_path):
    """Rows with a target of 74 whole numbers, words and a date."""
    frame = pd.DataFrame(
        {
            "size": RNG.normal(size=148),
            "age": np.arange(148) % 74,
            "town": ["Bonn", "Rome"] * 74,
        }
    )
    file = tmp_path / "people.csv"
    frame.to_csv(file, index=False)
    return file


def fit(file, *arguments, target="age"):
    return ("fit", file, "--target", target, "-o", file.parent / "model", "--quiet", *arguments)


def test_many_whole_numbers_may_be_a_number_or_a_class(people):
    error = fails(*fit(people))
    assert "'age'" in error
    assert "people.csv holds 74 different numbers" in error
    assert "--regression" in error
    assert "--classification" in error
    assert not (people.parent / "model").exists()
    assert "classes" not in succeeds(*fit(people, "--regression"))
    assert "74 classes" in succeeds(*fit(people, "--classification"))


def test_few_numbers_and_words_are_classes(people):
    assert "2 classes" in succeeds(*fit(people, target="town"))


def test_regression_takes_numbers(people):
    error = fails(*fit(people, "--regression", target="town"))
    assert "'town'" in error
    assert "people.csv holds strings" in error


@pytest.mark.parametrize("header", ["name,y\n", "na\xefve,y\n"])
def test_a_table_in_another_encoding_is_read_and_announced(tmp_path, header):
    file = tmp_path / "cafes.csv"
    file.write_bytes((header + "caf\xe9,1\nbar,0\n" * 20).encode("latin-1"))
    error = fails(*fit(file, "--increasing", "none", "--model", "boosted", target="y"))
    assert "there is no feature 'none'" in error
    file.write_bytes((header + "\x81,1\nbar,0\n" * 20).encode("latin-1"))
    error = fails(*fit(file, target="y"))
    assert "cafes.csv must be text in WINDOWS-1252, but column" in error
    assert "--encoding" in error


def test_times_of_day_are_no_features(tmp_path):
    file = tmp_path / "hours.csv"
    file.write_text("hour,y\n" + "10:00:00,0\n11:00:00,1\n" * 10)
    error = fails(*fit(file, target="y"))
    assert "'hour' must hold numbers, strings or dates" in error
    assert "time32" in error


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2020-01-01", "dates, such as '2020-01-01'"),
        ("2020-01-01 10:00:00", "dates, such as '2020-01-01T10:00:00'"),
        ("10:00:00", "strings, such as '10:00:00'"),
    ],
)
def test_regression_takes_neither_dates_nor_times(tmp_path, value, words):
    file = tmp_path / "times.csv"
    file.write_text("x,when\n" + f"0,{value}\n1,{value}\n" * 10)
    error = fails(*fit(file, "--regression", target="when"))
    assert f"times.csv holds {words}" in error


def test_a_class_of_a_date_that_is_none_is_refused_in_words():
    y = np.array(["2020-01-01", "2021-01-01"] * 9 + ["NaT", "2020-01-01"], "datetime64[D]")
    X = RNG.normal(size=(20, 2))
    for estimator in (PACBayesTreeClassifier(), NaiveBayesClassifier()):
        with pytest.raises(ValueError, match="Input y contains NaT"):
            estimator.fit(X, y)


def test_an_interrupt_of_the_imports_of_the_command_line_is_no_traceback(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(__main__, "import_extra", interrupted)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_places_are_looked_at_before_the_work(people, tmp_path):
    nowhere, directory = tmp_path / "no" / "where", tmp_path
    for command in ("table2", "figure2", "rates"):
        assert "no directory" in fails(command, "--json", nowhere)
        assert "is a directory" in fails(command, "--plot", directory)
        assert ".png" in fails(command, "--plot", tmp_path / "picture.word")
    # The table does not exist either: the place is looked at first.
    assert "no directory" in fails("fit", "none.csv", "--target", "y", "-o", nowhere)
    assert "is a directory" in fails("predict", "none", "none.csv", "-o", directory)
    assert "no directory" in fails("predict", "none", "none.csv", "-o", nowhere)
    assert ".parquet" in fails("predict", "none", "none.csv", "-o", tmp_path / "table.word")


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is allowed to root")
def test_a_directory_that_must_not_be_written_to_is_an_error(people, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "no permission" in fails("fit", people, "--target", "age", "-o", closed / "model")


def run(arguments, **streams):
    command = [sys.executable, "-m", "certree", *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **streams)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("command", ["fit", "predict", "help"])
def test_output_that_cannot_be_written_is_an_error(people, command):
    model = people.parent / "model"
    succeeds(*fit(people, target="town"))
    arguments = {
        "fit": fit(people, target="town"),
        "predict": ("predict", model, people),
        "help": ("--help",),
    }
    with open("/dev/full", "w") as full:
        done = run(arguments[command], stdout=full)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(people):
    model = people.parent / "model"
    succeeds(*fit(people, target="town"))
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as broken:
        done = run(("predict", model, people), stdout=broken)
    assert done.stderr == ""


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_rows_are_refused_with_what_helps(kind):
    X, y = RNG.normal(size=(40, 2)), np.arange(40) % 2
    wanted = r"Sparse data .* \.toarray\(\).*sparse_output=False"
    for estimator in (PACBayesTreeClassifier(), PrunedTreeRegressor(), NaiveBayesClassifier()):
        with pytest.raises(TypeError, match=wanted):
            estimator.fit(kind(X), y)
        with pytest.raises(TypeError, match=wanted):
            estimator.fit(X, y).predict(kind(X))
    with pytest.raises(TypeError, match=wanted):
        grow_cart(kind(X), y)


def test_more_threads_than_any_machine_has_are_capped():
    assert get_n_threads(10**10) == 1024
    assert get_n_threads(None) == 1
    with pytest.raises(TypeError, match=r"n_jobs must be None or an integer, got 1\.5"):
        get_n_threads(1.5)


def test_regressors_name_words_in_the_target():
    X, y = RNG.normal(size=(4, 2)), np.array(["a", "b", "c", "d"])
    for words in (y, y.astype(object), list(y)):
        with pytest.raises(ValueError, match="y must hold numbers, got"):
            PrunedTreeRegressor().fit(X, words)


@pytest.mark.parametrize("words", [np.full((3, 2), "a"), [["a", "b"]], [[1, 2], [3]], 10**400])
def test_models_of_numbers_name_what_they_cannot_read(words):
    X, y = RNG.normal(size=(40, 2)), np.arange(40) % 2
    for estimator in (PACBayesTreeClassifier(), PrunedTreeRegressor(), NaiveBayesClassifier()):
        with pytest.raises(ValueError, match=r"(X|feature 0) must (hold numbers|be an array)"):
            estimator.fit(X, y).predict(words)


def test_constraints_of_a_voting_are_a_copy():
    slopes = np.array([1, 0, -1, 0])
    voting = Voting("mean", slopes=slopes[::2])
    slopes[:] = 100
    assert voting.slopes.tolist() == [1, -1]
    assert voting.slopes.dtype == np.int8
    with pytest.raises(ValueError, match="slopes must hold -1, 0 or 1"):
        Voting("mean", slopes=slopes)
