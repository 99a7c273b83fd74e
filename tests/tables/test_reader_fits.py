"""A file is fitted alike on the command line, in memory and out of core, or refused in one message."""

import gzip
import inspect
import re
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import certree
from certree import read_table
from certree.cli import app
from certree.ensembles import BoostedTreesClassifier
from certree.out_of_core.sources import FileRows
from same_models import COLUMNS, assert_same

N = 60
NUMBERS = np.arange(N) * 7 % 11
WORDS = [["a", "b", "c d"][i % 3] for i in range(N)]
LABELS = [["yes", "no", "no"][i * 5 % 7 % 3] for i in range(N)]


def csv_of(x, name="x", delimiter=",", labels=LABELS):
    """A CSV file of a column x, whose values are repeated, a column z of numbers, and a target y."""
    rows = [[name, "z", "y"]]
    rows += [[str(x[i % len(x)]), str(NUMBERS[i]), labels[i]] for i in range(N)]
    return "".join(delimiter.join(row) + "\n" for row in rows)


def table_of(x, kind=None, names="xzy", labels=LABELS, encoded=False):
    """The same columns as a table of Arrow; kind: the type of x, None if its values tell it.

    encoded: whether x is a dictionary of such values.
    """
    x = pa.array([x[i % len(x)] for i in range(N)], kind)
    x = x.dictionary_encode() if encoded else x
    return pa.Table.from_arrays([x, pa.array(NUMBERS), pa.array(labels)], [*names])


# Name of the file; content; description of x; categories of x in the model, None if it is numeric.
FITTED = [
    ("integers.csv", csv_of([1, -2, 30]), "number", None),
    ("floats.csv", csv_of(["1", ".5", "-2e3", "7."]), "number", None),
    ("booleans.csv", csv_of(["true", "False"]), "boolean", None),
    ("text.csv", csv_of(WORDS), "category", {"a", "b", "c d"}),
    ("quoted.csv", csv_of(['"a,b"', '"say ""hi"""']), "category", {"a,b", 'say "hi"'}),
    ("quoted numbers.csv", csv_of(['"1"', '" 2"', "3 "]), "number", None),
    (
        "markers.csv",
        csv_of(["NA", "3", "", "n/a", "5"]),
        "number, 36 missing (empty, NA, n/a)",
        None,
    ),
    (
        "marked text.csv",
        csv_of(["nan", "a", "null"]),
        "category, 40 missing (nan, null); keep_text= (--keep-text 'x') keeps nan, null as text",
        {"a"},
    ),
    ("nothing.csv", csv_of(["", "NA"]), "empty, 60 missing (empty, NA)", None),
    ("mixed.csv", csv_of(["1", "02", "x"]), "category, leading zeros kept", {"1", "02", "x"}),
    (
        "late text.csv",
        csv_of([*["1"] * (N - 1), "one"]),
        "category, although 98.3 % of the values are numbers, as 1 is not ("
        '"one": 1); if this text means missing, pass missing=["one"] (--missing "one")',
        {"1", "one"},
    ),
    ("large.csv", csv_of([2**60, 2**53 - 1]), "number", None),
    ("beyond int64.csv", csv_of([2**63, 2**70]), "number", None),
    ("no name.csv", csv_of([1, 2], name=""), "number", None),
    ("tabs.tsv", csv_of(["1,5", "2"], delimiter="\t"), "number, decimal comma", None),
    ("packed.csv.gz", gzip.compress(csv_of(WORDS).encode()), "category", {"a", "b", "c d"}),
    ("utf16.csv", csv_of(["é", "b"]).encode("utf-16"), "category", {"é", "b"}),
    ("bytes.parquet", table_of([7, None], pa.int8()), "number, 30 missing", None),
    ("NaN.parquet", table_of([np.nan, None, 1.5]), "number, 40 missing", None),
    ("booleans.parquet", table_of([True, None]), "boolean, 30 missing", None),
    ("text.parquet", table_of(["a", None]), "category, 30 missing", {"a"}),
    ("words.parquet", table_of(WORDS, pa.string(), encoded=True), "category", {"a", "b", "c d"}),
    ("decimals.parquet", table_of([Decimal("1.10"), None]), "number, 30 missing", None),
    ("nulls.parquet", table_of([None]), "empty, 60 missing", None),
    ("no text.parquet", table_of([None], pa.string()), "category, 60 missing", set()),
    ("large text.arrow", table_of(["a", "b"], pa.large_string()), "category", {"a", "b"}),
    ("unsigned.arrow", table_of([2**63, 1], pa.uint64()), "number", None),
    ("half.feather", table_of([np.float16(0.5), np.float16(3)], pa.float16()), "number", None),
    (
        "codes.arrow",
        table_of([10, 9, None], pa.int64(), encoded=True),
        "category, 20 missing",
        {9, 10},
    ),
    ("shares.arrow", table_of([0.5, 0.25], pa.float64(), encoded=True), "category", {0.25, 0.5}),
    ("flags.arrow", table_of([True, False], pa.bool_(), encoded=True), "category", {0, 1}),
    (
        "long codes.arrow",
        table_of([2**53 + 1, 5], pa.int64(), encoded=True),
        "category",
        {"9007199254740993", "5"},
    ),
    ("dates.csv", csv_of(["2020-01-01", ""]), "date, 30 missing (empty)", None),
    ("european.csv", csv_of(["13/04/2024", "05/06/2024"]), "date, dd/mm/yyyy", None),
    ("instants.csv", csv_of(["2020-01-01 10:00", "2021-01-01 11:30:05"]), "date", None),
    ("days.parquet", table_of([date(2020, 1, 1), date(2021, 5, 6)]), "date", None),
    ("spans.arrow", table_of([5, 7], pa.duration("s")), "time span", None),
    ("no codes.arrow", table_of([None], pa.int64(), encoded=True), "category, 60 missing", set()),
]
# Name of the file; content; message.
REFUSED = [
    (
        "times.csv",
        csv_of(["10:00", "11:30:05"]),
        r"'x' must hold numbers, strings or dates, got time32",
    ),
    ("twice.csv", csv_of([1], name="z"), "names must be distinct, but z occurs more than once"),
    ("exact.csv", csv_of([2**53 + 1]), "'x' must hold numbers that float64 represents exactly"),
    ("zeros.csv", csv_of(["a\0"]), "must be text, but it contains zero bytes"),
    ("ragged.csv", csv_of([1]) + "1,2\n", "has 3 columns, but line 62 has 2: '1,2'"),
    ("empty.csv", "", "could not be read: it is empty: pass a file"),
    ("no target.csv", csv_of([1]).replace("y\n", "w\n", 1), "no column 'y'"),
    (
        "missing.csv",
        csv_of([1], labels=[*LABELS[1:], "NA"]),
        "'y' must have no missing values, got 1",
    ),
    ("target alone.csv", "y\n" + "yes\nno\n" * N, "must have a feature column"),
    ("lists.parquet", table_of([[1, 2]]), "'x' must hold numbers, strings or dates, got list"),
    (
        "structs.parquet",
        table_of([{"a": 1}]),
        "'x' must hold numbers, strings or dates, got struct",
    ),
    ("bytes.parquet", table_of([b"a"]), "'x' must hold numbers, strings or dates, got binary"),
    ("exact.parquet", table_of([2**53 + 1]), "float64 represents exactly, got 9007199254740993"),
    ("decimals.parquet", table_of([Decimal(2**53 + 1)]), "float64 represents exactly"),
    (
        "twice.arrow",
        table_of([1], names="zzy"),
        "names must be distinct, but z occurs more than once",
    ),
    ("days.arrow", table_of([5], pa.date32(), encoded=True), "must hold numbers, strings or dates"),
    ("missing.arrow", table_of([1], labels=[*LABELS[1:], None]), "'y' must have no missing values"),
    ("torn.arrow", b"ARROW1\0\0", "could not be read"),
]


def put(path, content):
    if isinstance(content, str | bytes):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(content, path, row_group_size=7)
    else:
        with pa.ipc.new_file(path, content.schema) as file:
            file.write_table(content.unify_dictionaries(), 11)
    return path


def model():
    return BoostedTreesClassifier(max_iter=2, min_samples_leaf=2, random_state=0, n_jobs=1)


def fit_by_command(path, monkeypatch):
    """The model that `certree fit` writes; a refusal is a ValueError with the printed message."""
    for name, value in {"COLUMNS": "500", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    apart = "mix_stderr" in inspect.signature(CliRunner).parameters
    runner, output = CliRunner(**({"mix_stderr": False} if apart else {})), f"{path}.certree"
    options = ["--model", "boosted", "--seed", "0", "--jobs", "1", "--quiet", "--test-size", "0"]
    options += ["--set", "max_iter=2", "--set", "min_samples_leaf=2", "-o", output]
    done = runner.invoke(app, ["fit", str(path), "--target", "y", *options])
    if done.exit_code:
        assert done.stderr.startswith("error: "), done.exception
        raise ValueError(done.stderr.removeprefix("error: ").removesuffix("\n"))
    return certree.load(output)


def fit_in_memory(path):
    table = read_table(path, "y")
    return model().fit(table.to_arrow(), table.y)


def fit_in_ways(path, monkeypatch):
    """Functions without arguments that fit the file."""
    return (
        lambda: fit_in_memory(path),
        lambda: model().fit(path, "y"),
        lambda: fit_by_command(path, monkeypatch),
    )


@pytest.mark.parametrize(
    ("name", "content", "described", "categories"), FITTED, ids=[one[0] for one in FITTED]
)
def test_a_file_gives_one_model_in_all_ways(
    name, content, described, categories, tmp_path, monkeypatch
):
    path = put(tmp_path / name, content)
    first, *others = (fit() for fit in fit_in_ways(path, monkeypatch))
    named = None if first.categories_ is None else first.categories_.names[0]
    assert (None if named is None else {*named}) == categories
    for other in others:
        assert other.feature_names_in_.tolist() == first.feature_names_in_.tolist()
        assert (other.categories_ is None) == (first.categories_ is None)
        if named is not None:
            assert list(map(repr, other.categories_.names[0])) == list(map(repr, named))
        # Classes are NumPy strings in arrays, and objects in files.
        assert other.classes_.tolist() == first.classes_.tolist()
        for part in COLUMNS:
            assert_same(getattr(first.trees_, part), getattr(other.trees_, part), part)
    column = read_table(path, "y").description.columns[0]
    assert str(column) == f"{first.feature_names_in_[0]}: {described}"
    blocks = [chunk.X.column(0) for chunk in FileRows(path, "y", block_rows=9).chunks()]
    # Old versions of PyArrow find no NaN in float16, and these columns have none.
    marks = [pc.is_null(x, nan_is_null=x.type != pa.float16()) for x in blocks]
    assert sum(pc.sum(mark).as_py() for mark in marks) == column.n_missing


def test_a_file_without_rows_is_refused(tmp_path, monkeypatch):
    path = put(tmp_path / "no rows.csv", "x,z,y\n")
    *fits, command = fit_in_ways(path, monkeypatch)
    for fit in fits:
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            fit()
    with pytest.raises(ValueError, match=r"FILE must have rows .* has a header and no rows"):
        command()


@pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=[one[0] for one in REFUSED])
def test_a_file_is_refused_in_one_message_in_all_ways(
    name, content, message, tmp_path, monkeypatch
):
    path, messages = put(tmp_path / name, content), []
    for fit in fit_in_ways(path, monkeypatch):
        with pytest.raises(ValueError, match=message) as error:
            fit()
        # The number of features is known in memory only.
        text = str(error.value).replace(" (shape=(0, 2))", "")
        # The command names its options only.
        messages.append(re.sub(r"\w+= \((--[^()]*)\)", r"\1", text))
    assert messages == messages[:1] * 3
