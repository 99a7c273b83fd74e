"""CSV files that people export are read as intended, and say so, or are refused with an option."""

import codecs
import csv
import datetime as dt
import gzip
import io
import re
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import certree
from certree import BoostedTreesClassifier, TableSource, certify, predict_files, read_table
from certree.cli import app
from certree.out_of_core.sources import FileRows
from certree.tables import csv_text, formats
from certree.tables.column_evidence import ColumnEvidence, find_text_format
from certree.tables.column_types import extract_feature, list_text_types
from certree.tables.csv_dialects import find_dialect
from certree.tables.reader import no_types, read_batches
from certree.tables.text_formats import TextFormat, convert_texts

NAN = float("nan")
N = 40


def text_of(columns, separator=",", header=True, quote="minimal"):
    """Return the text of a CSV file; columns: lists of texts by name."""
    stream = io.StringIO()
    how = {"minimal": csv.QUOTE_MINIMAL, "all": csv.QUOTE_ALL}[quote]
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n", quoting=how)
    if header:
        writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return stream.getvalue()


def rows(**columns):
    """Return columns of N texts each, repeated from few, with a target y of two classes."""
    repeated = {name: [texts[i % len(texts)] for i in range(N)] for name, texts in columns.items()}
    return {**repeated, "y": [("no", "yes")[i % 2] for i in range(N)]}


def values_of(features):
    """Return the values of an array of features as texts, in which NaN equals NaN."""
    return [[repr(one) for one in column] for column in features.T.tolist()]


def read_in_all_ways(path, **options):
    """Return the features as read in memory and out of core, which must be equal."""
    table = read_table(path, "y", **options)
    source = TableSource(path, **options)
    for is_limited in (False, True):
        if is_limited and table.description.files and "utf-16" in table.description.files[0]:
            continue
        found = FileRows(source, "y", block_rows=7, is_limited=is_limited)
        chunks = pa.concat_tables(chunk.X for chunk in found.chunks())
        X = np.column_stack([extract_feature(chunks, name) for name in found.features])
        assert found.features == table.feature_names
        assert values_of(X) == values_of(table.X)
        assert found.inferred_schema.table_format == table.table_format
    return table


def describe(table, name):
    """Return the line on a column in the description of a table."""
    (line,) = [one for one in str(table.description).split("\n") if one.startswith(f"{name}: ")]
    return line


# Name of the file; content; line on column x; first values of x.
FILES = {
    "semicolons": (
        text_of(rows(x=["1,5", "2,25", "1.234,5"]), ";"),
        "x: number, decimal comma, thousands separators removed",
        [1.5, 2.25, 1234.5],
    ),
    "tabs": (text_of(rows(x=["1.5", "2"]), "\t"), "x: number", [1.5, 2.0]),
    "bars": (text_of(rows(x=["1.5", "2"]), "|"), "x: number", [1.5, 2.0]),
    "income": (
        text_of(rows(x=["4,312.50", "12", "?", "1,000,000"])),
        "x: number, thousands separators removed, 10 missing (?)",
        [4312.5, 12.0, NAN, 1e6],
    ),
    "spaces in thousands": (
        text_of(rows(x=["1 234,5", "12\u00a0345", "7"]), ";"),
        "x: number, decimal comma, thousands separators removed",
        [1234.5, 12345.0, 7.0],
    ),
    "apostrophes": (
        text_of(rows(x=["1'234.50", "987.5"]), ";"),
        "x: number, thousands separators removed",
        [1234.5, 987.5],
    ),
    "rupees": (
        text_of(rows(x=["₹12,34,567.5", "₹1,000.0"])),
        "x: number, thousands separators removed, ₹ removed",
        [1234567.5, 1000.0],
    ),
    "dollars": (
        text_of(rows(x=["$1,234.50", "-$5", "$ 7", "12"])),
        "x: number, thousands separators removed, $ removed",
        [1234.5, -5.0, 7.0, 12.0],
    ),
    "euros": (
        text_of(rows(x=["1.234,50 €", "-5 €", "0,5 €"]), ";"),
        "x: number, decimal comma, thousands separators removed, € removed",
        [1234.5, -5.0, 0.5],
    ),
    "codes of currencies": (
        text_of(rows(x=["CHF 1'000.50", "CHF 2"])),
        "x: number, thousands separators removed, CHF removed",
        [1000.5, 2.0],
    ),
    "percent": (
        text_of(rows(x=["12.5 %", "3%", "0"])),
        "x: number, percent signs removed",
        [12.5, 3.0, 0.0],
    ),
    "question marks": (text_of(rows(x=["1", "?"])), "x: number, 20 missing (?)", [1.0, NAN]),
    "dashes": (
        text_of(rows(x=["1.5", "-", "NA", " "])),
        "x: number, 30 missing (empty, -, NA)",
        [1.5, NAN, NAN, NAN],
    ),
    "minus signs": (text_of(rows(x=["\u22121.5", "2"])), "x: number", [-1.5, 2.0]),
    "Latin-1": (text_of(rows(x=["é", "ß"])).encode("latin-1"), "x: category", ["é", "ß"]),
    "Windows-1252": (text_of(rows(x=["“a”", "€"])).encode("cp1252"), "x: category", ["“a”", "€"]),
    "UTF-16": (text_of(rows(x=["é", "b"])).encode("utf-16"), "x: category", ["é", "b"]),
    "UTF-16 without mark": (
        text_of(rows(x=["é", "b"])).encode("utf-16-be"),
        "x: category",
        ["é", "b"],
    ),
    "UTF-8 with mark": (text_of(rows(x=["é", "b"])).encode("utf-8-sig"), "x: category", ["é", "b"]),
    "old line ends": (text_of(rows(x=["1", "2"])).replace("\n", "\r\n"), "x: number", [1.0, 2.0]),
    "postcodes": (
        text_of(rows(x=["01067", "80331", "99423"])),
        "x: category, leading zeros kept",
        ["01067", "80331", "99423"],
    ),
    "postcodes with gaps": (
        text_of(rows(x=["01067", "80331", "?"])),
        'x: category, leading zeros kept, 13 "?" kept as a category; missing=["?"] (--missing "?") '
        "makes them missing",
        ["01067", "80331", "?"],
    ),
    "comments": (
        "# made by a tool\n#, v2\n" + text_of(rows(x=["1", "2"])),
        "x: number",
        [1.0, 2.0],
    ),
    "header with #": (
        text_of(rows(x=["1", "2"])).replace("x,", "#x,", 1),
        "#x: number",
        [1.0, 2.0],
    ),
    "title": (
        "Sales of May\n\n" + text_of(rows(x=["1", "2"], z=["5"])),
        "x: number",
        [1.0, 2.0],
    ),
    "line for Excel": ("sep=;\n" + text_of(rows(x=["1,5", "2"]), ";"), None, [1.5, 2.0]),
    "quoted line for Excel": (
        '"sep=^"\n' + text_of(rows(x=["1.5", "2"]), "^"),
        "x: number",
        [1.5, 2.0],
    ),
    "all in quotes": (text_of(rows(x=["1,5", "2,5"]), ";", quote="all"), None, [1.5, 2.5]),
    "quoted lines": (text_of(rows(x=["a\nb", 'say "c"'])), "x: category", ["a\nb", 'say "c"']),
    "separator at the end": (
        re.sub("$", ",", text_of(rows(x=["1", "2"])).strip(), flags=re.M),
        "x: number",
        [1.0, 2.0],
    ),
    "long text": (
        text_of(rows(x=["word " * 2000 + str(i) for i in range(N)])),
        "x: category",
        ["word " * 2000 + "0"],
    ),
    "empty column": (text_of(rows(x=["1", "2"], z=[""])), "z: empty, 40 missing (empty)", [1.0]),
    "flags": (text_of(rows(x=["*", ""])), "x: category, 20 missing (empty)", ["*", None]),
    "decimal commas in quotes": (
        text_of(rows(x=["1,5", "2,25"])),
        "x: number, decimal comma",
        [1.5, 2.25],
    ),
    "several forms": (
        text_of(rows(x=["1.5", "2.5"], z=["1,5", "2,5"])),
        "z: number, decimal comma",
        [1.5, 2.5],
    ),
    "decided by another column": (
        text_of(rows(x=["1.234", "2.345"], z=["1,5", "2,5"]), ";"),
        "x: number, decimal comma, thousands separators removed",
        [1234.0, 2345.0],
    ),
    "thousands beside points": (
        text_of(rows(x=["1,234", "2,345"], z=["0.5", "1.5"])),
        "x: number, thousands separators removed",
        [1234.0, 2345.0],
    ),
    "decided by commas between values": (
        text_of(rows(x=["1.234", "2.345"])),
        "x: number",
        [1.234, 2.345],
    ),
    "units": (
        text_of(rows(x=["5 kg", "7 kg"])),
        "x: category",
        ["5 kg", "7 kg"],
    ),
}


@pytest.fixture(params=[300, 2**20], ids=["small", "large"])
def block(request, monkeypatch):
    monkeypatch.setattr(formats, "_BLOCK", request.param)
    monkeypatch.setattr(formats, "_SMALL_BLOCK", request.param)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_intended_and_says_so(name, tmp_path):
    content, line, values = FILES[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_in_all_ways(path)
    found = table.X[: len(values), 0].tolist()
    assert [repr(one) for one in found] == [repr(one) for one in values]
    assert set(table.y.tolist()) == {"yes", "no"}
    if line is not None:
        assert describe(table, line.partition(":")[0]) == line


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("name", ["income", "dashes", "Latin-1", "euros", "postcodes"])
def test_blocks_do_not_matter(name, tmp_path):
    content, line, values = FILES[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_in_all_ways(path)
    assert [repr(one) for one in table.X[: len(values), 0]] == [
        repr(np.float64(one)) if table.X.dtype == float else repr(one) for one in values
    ]
    assert describe(table, "x") == line


# Content; message; options that mend it; first values of x then.
REFUSED = {
    "1.234 or 1234": (
        text_of(rows(x=["1.234", "2.345"]), ";"),
        r"column 'x' .* such as 1\.234 allow both: .*--decimal \. or --decimal ,",
        [({"decimal": ","}, [1234.0, 2345.0]), ({"decimal": "."}, [1.234, 2.345])],
    ),
    "1,234 or 1234": (
        text_of(rows(x=["1,234", "2,345"])),
        r"column 'x' .* such as 1,234 allow both: .*--decimal \. or --decimal ,",
        [({"decimal": "."}, [1234.0, 2345.0]), ({"decimal": ","}, [1.234, 2.345])],
    ),
    "3 April or March 4": (
        text_of(rows(x=["3"], d=["03/04/2024", "05/06/2024"])),
        r"column 'd' .* such as 03/04/2024 allow both: .*--dates dd/mm",
        [({"dates": "dd/mm", "drop": ["d"]}, [3.0]), ({"keep_text": ["d"]}, [3.0])],
    ),
    "day, month or year first": (
        text_of(rows(x=["3"], d=["22/12/21", "03/04/21"])),
        r"column 'd' .* the order of day, month and year, .*22/12/21 allow several: .*--dates dd/mm",
        [
            ({"dates": "dd/mm", "drop": ["x"]}, [dt.date(2021, 12, 22), dt.date(2021, 4, 3)]),
            ({"keep_text": ["d"]}, [3.0]),
        ],
    ),
    "1954 or 2054": (
        text_of(rows(x=["3"], d=["22.12.54", "03.04.21"])),
        r"column 'd' .* must show the century of its dates, .*\(--keep-text\), or .*--drop 'd'",
        [({"drop": ["d"]}, [3.0]), ({"keep_text": ["d"]}, [3.0])],
    ),
    "times": (
        text_of(rows(x=["3"], d=["10:00", "11:30"])),
        r"feature 'd' must hold numbers, strings or dates, got time32\[s\]: .*by drop= \(--drop\)",
        [({"drop": ["d"]}, [3.0]), ({"keep_text": ["d"]}, [3.0])],
    ),
    "long identifiers": (
        text_of(rows(x=[str(2**53 + 1), "5"])),
        r"'x' must hold numbers that float64 .* convert identifiers to text",
        [({"keep_text": ["x"]}, [str(2**53 + 1), "5"])],
    ),
    "ragged": (
        text_of(rows(x=["1"])) + "1,2,3\n",
        r"rows\.csv has 2 columns, but line 42 has 3: '1,2,3'; .*, or name the separator, "
        r"separator= \(--separator\)",
        [],
    ),
    "DOS": (
        text_of(rows(x=["ü", "a"])).encode("cp850"),
        r"must be text in WINDOWS-1252, but column 'x' .*\(--encoding\)",
        [({"encoding": "cp850"}, ["ü", "a"])],
    ),
    "two encodings": (
        text_of(rows(x=["ü", "é"])).encode() + "ü,no\n".encode("latin-1"),
        r"must be text in one encoding, but column 'x' .*\(--encoding\)",
        [],
    ),
    "a column of UTF-16": (
        text_of(rows(x=["b"])).encode() + b"a\0b\0,no\n",
        r"column 'x' contains zero bytes|it contains zero bytes",
        [],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_decided_is_refused_with_the_option_that_mends_it(name, tmp_path):
    content, message, mended = REFUSED[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        read_table(path, "y")
    for options, values in mended:
        table = read_in_all_ways(path, **options)
        assert table.X[: len(values), 0].tolist() == values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "separator must be one character"),
        ({"separator": "é"}, "separator must be an ASCII character"),
        ({"encoding": "klingon"}, "encoding must be one that Python knows"),
        ({"decimal": "_"}, "decimal must be None or"),
        ({"dates": "yy"}, "dates must be None or"),
        ({"drop": ["w"]}, "drop must name columns of .*'w': name one of x, y"),
        ({"keep_text": ["w"]}, "keep_text must name columns of .*'w': name one of x, y"),
        ({"missing": "NA"}, "missing must be None or a sequence"),
    ],
)
def test_wrong_options_are_named(options, message, tmp_path):
    (tmp_path / "rows.csv").write_text(text_of(rows(x=["1"])))
    with pytest.raises((ValueError, TypeError), match=message):
        read_table(tmp_path / "rows.csv", "y", **options)


def test_a_single_text_in_place_of_a_list_is_named(tmp_path):
    (tmp_path / "rows.csv").write_text(text_of(rows(x=["1"])))
    with pytest.raises(
        TypeError, match=r"drop must be a sequence, each a str, got 'x': pass \['x'\]"
    ):
        read_table(tmp_path / "rows.csv", "y", drop="x")


@pytest.mark.parametrize("source", [pd.DataFrame({"x": [1]}), np.zeros((2, 2)), io.StringIO("x")])
def test_rows_in_memory_are_no_source(source):
    with pytest.raises(TypeError, match=r"source must be a path.* frames and arrays go to fit"):
        read_table(source, "x")


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (["a", "b", "?"], r'13 "\?" kept as a category; missing=\["\?"\] \(--missing "\?"\) makes'),
        (["a", "?", "-"], r'13 "\?", 13 "-" kept as categories; missing=\["\?", "-"\]'),
        (["a", "?", "NA", "b"], r'10 "\?" kept as a category; missing=\["\?", "NA"\]'),
        (
            [f"({i},50)" for i in range(20)],
            r'although values such as "\(\d+,50\)" are numbers with',
        ),
        ([f"{i},00-" for i in range(20)], r'although values such as "\d+,00-" are numbers with'),
        ([f"{i}.5 kg" for i in range(20)], r'although values such as "\d+\.5 kg" are numbers with'),
        ([f"{i}.5" if i % 4 else f"({i}.5)" for i in range(40)], r".*are numbers with parentheses"),
        ([f"{i} rooms" for i in range(5)], "$"),
        (["a", "b", " "], "$"),
    ],
)
def test_descriptions_note_texts_that_stay_categories(values, note, tmp_path):
    columns = rows(x=values)
    (tmp_path / "rows.csv").write_text(text_of(columns, ";"))
    table = read_table(tmp_path / "rows.csv", "y")
    (line,) = [one for one in str(table.description).splitlines() if one.startswith("x:")]
    assert re.match(f"x: category(?:, )?{note}", line), line
    if "missing=" in line:
        texts = re.findall(r'"([^"]+)"', line.partition("missing=[")[2].partition("]")[0])
        mended = read_table(tmp_path / "rows.csv", "y", missing=texts)
        assert not {*texts} & {*mended.X[:, 0]}
        assert "kept" not in str(mended.description)


def test_descriptions_for_a_model_have_the_types_of_other_columns(tmp_path):
    columns = {**rows(a=["1", "2", "3"]), "other": [f"1,{i:03}" for i in range(N)]}
    columns["other"][0] = "1,000.5"
    (tmp_path / "rows.csv").write_text(text_of(columns, ";"))
    table = read_table(tmp_path / "rows.csv", "y", drop=["other"])
    model = BoostedTreesClassifier(max_iter=2, random_state=0).fit(table.to_arrow(), table.y)
    columns["other"] = [f"1,{i:03}" for i in range(N)]
    columns["shown"] = ["0.5"] * N
    (tmp_path / "new.csv").write_text(text_of(columns, ";"))
    lines = str(read_table(tmp_path / "new.csv", "y", like=model).description).splitlines()
    assert "other: number, thousands separators removed" in lines
    assert lines[-1] == "neither features of the model nor the target, left out: other, shown"


# -- exceptions and numbers that stay text ----------------------------------------------------------


NUMBER_WITH_COMMA = TextFormat(decimal=",", thousands=".")
DAYS = TextFormat("date", order="dd/mm")


@pytest.mark.parametrize(
    ("usual", "n", "other", "n_other", "form"),
    [
        ("13/04/2024", 99, "soon", 1, DAYS),
        ("13/04/2024", 98, "soon", 2, None),
        ("13/04/2024", 99, "04/13/2024", 1, DAYS),
        ("13/04/2024", 98, "04/13/2024", 2, None),
        ("13.04.2024", 99, "14.04.21", 1, DAYS),
        ("13.04.2024", 98, "14.04.21", 2, TextFormat("date", order="dd/mm", has_short_years=True)),
        ("03.04.2024", 99, "03/04/2024", 1, TextFormat("date", order="")),
        ("1.234,5", 199, "07", 1, NUMBER_WITH_COMMA),
        ("2024/04/05", 50, "2024/13/04", 50, None),
        ("1.234,5", 197, "07", 3, None),
    ],
)
def test_a_format_is_that_of_99_percent_of_the_texts(usual, n, other, n_other, form):
    assert find_text_format([usual] * n + [other] * n_other) == form


def table_with_exceptions(n, n_wrong):
    x = [str(i) + ".5" for i in range(n - n_wrong)] + ["so-so", "unclear"][:n_wrong]
    return {"x": x, "y": [("no", "yes")[i % 2] for i in range(n)]}


@pytest.mark.filterwarnings("default:column .* count as missing")
@pytest.mark.parametrize(("n", "is_number"), [(200, True), (199, False)])
def test_99_percent_of_the_values_must_be_numbers(n, is_number, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(table_with_exceptions(n, 2)))
    table = read_in_all_ways(path)
    if is_number:
        assert np.isnan(table.X[-2:, 0].astype(float)).all()
        expected = "x: number, 2 missing (and 2 that are no numbers: so-so, unclear)"
    else:
        assert table.X[-1, 0] == "unclear"
        expected = (
            'x: category, although 99 % of the values are numbers, as 2 are not ("so-so": 1, '
            '"unclear": 1); if this text means missing, pass missing=["so-so"] (--missing "so-so")'
        )
    assert describe(table, "x") == expected


def salaries(exceptions):
    salaries = [f"{1 + i % 7}.{100 + i},{10 + i % 80} €" for i in range(300 - len(exceptions))]
    # The exceptions come late, after texts that are no numbers with a decimal point.
    return {"x": [*salaries, *exceptions], "y": [("no", "yes")[i % 2] for i in range(300)]}


@pytest.mark.parametrize("block_size", [1 << 8, 1 << 20])
@pytest.mark.parametrize(
    ("exceptions", "markers", "note"),
    [
        (
            [*["n/k"] * 12, "soon", *["n/k"] * 3],
            ["n/k"],
            'as 16 are not ("n/k": 15, "soon": 1); if this text means missing, pass '
            'missing=["n/k"] (--missing "n/k")',
        ),
        (
            [*["later", "n/k", "n/k"] * 4],
            ["n/k", "later"],
            'as 12 are not ("n/k": 8, "later": 4); if these texts mean missing, pass '
            'missing=["n/k", "later"] (--missing "n/k" --missing "later")',
        ),
        (
            [f"{i} kr" for i in range(1, 21)] + [f"no {i}" for i in range(10)],
            None,
            'as 30 are not ("no 0": 1, "no 1": 1, "no 2": 1)',
        ),
    ],
)
def test_a_column_of_text_names_the_values_that_are_no_numbers(
    exceptions, markers, note, block_size, monkeypatch, tmp_path
):
    monkeypatch.setattr(formats, "_BLOCK", block_size)
    path = tmp_path / "rows.csv"
    path.write_text(text_of(salaries(exceptions), ";"))
    line = describe(read_table(path, "y"), "x")
    assert line.startswith("x: category, although 9")
    assert line.endswith(note)
    if markers:
        table = read_table(path, "y", missing=markers)
        assert "x: number, decimal comma" in describe(table, "x")


def test_k_a_is_missing_among_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(salaries(["k.A."] * 15), ";"))
    line = describe(read_table(path, "y"), "x")
    assert line.startswith("x: number, decimal comma")
    assert line.endswith("15 missing (k.A.)")


def test_a_fit_to_files_warns_of_exceptions(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(table_with_exceptions(200, 2)))
    message = (
        "column 'x' of .*: 2 values cannot be read as numbers and count as missing: so-so, unclear"
    )
    with pytest.warns(UserWarning, match=message):
        BoostedTreesClassifier(max_iter=2, random_state=0).fit(path, "y")


def test_late_text_changes_what_early_blocks_are(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_BLOCK", 2000)
    monkeypatch.setattr(formats, "_SMALL_BLOCK", 2000)
    x = [*["1.234"] * 1000, "1.234,5", *["7"] * 200]
    path = tmp_path / "rows.csv"
    path.write_text(text_of({"x": x, "y": ["a", "b", *["a"] * (len(x) - 2)]}, ";"))
    table = read_in_all_ways(path)
    assert table.X[[0, 1000, 1001], 0].tolist() == [1234.0, 1234.5, 7.0]


def test_the_format_is_that_of_all_files(tmp_path):
    (tmp_path / "a.csv").write_text(text_of(rows(x=["1.234", "5"]), ";"))
    (tmp_path / "b.csv").write_text(text_of(rows(x=["1.234,5", "2,5"]), ";"))
    table = read_in_all_ways(tmp_path)
    assert table.X[[0, 1, N], 0].tolist() == [1234.0, 5.0, 1234.5]


def test_a_folder_may_have_two_dialects(tmp_path):
    (tmp_path / "a.csv").write_bytes(text_of(rows(x=["é", "b"]), ";").encode("latin-1"))
    (tmp_path / "b.csv").write_bytes(text_of(rows(x=["é", "c"])).encode())
    assert set(read_in_all_ways(tmp_path).X[:, 0]) == {"é", "b", "c"}


def test_a_hundred_thousand_rows(tmp_path):
    n = 100_000
    rng = np.random.default_rng(0)
    amounts = rng.lognormal(7, 2, n).round(2)
    texts = [f"{one:,.2f}".translate(str.maketrans(",.", ".,")) + " €" for one in amounts]
    texts[::1000] = ["unklar"] * 100
    path = tmp_path / "rows.csv.gz"
    content = text_of({"id": map(str, range(n)), "x": texts, "y": ["a", "b"] * (n // 2)}, ";")
    path.write_bytes(gzip.compress(content.encode("cp1252"), 1))
    table = read_table(path, "y")
    expected = amounts.copy()
    expected[::1000] = np.nan
    np.testing.assert_array_equal(table.X[:, 1], expected)
    assert describe(table, "x").endswith("100 missing (and 100 that are no numbers: unklar)")
    assert describe(table, "id") == "id: number, numbers the rows: leave it out by drop= (--drop)"


# -- columns that number the rows -------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("name", ["", "Unnamed: 0", "id"])
def test_an_unnamed_column_of_row_numbers_is_left_out(name, start, tmp_path):
    path = tmp_path / "rows.csv"
    numbers = [str(i) for i in range(start, start + N)]
    path.write_text(text_of({name: numbers, **rows(x=["1.5", "2"])}))
    table = read_in_all_ways(path)
    is_left_out = start < 2 and name != "id"
    shown = name or "column 1"
    assert table.feature_names == (["x"] if is_left_out else [shown, "x"])
    expected = {
        (True, True): f"{shown}: left out: no name, and numbers the rows",
        (False, True): f"{shown}: number, numbers the rows: leave it out by drop= (--drop)",
        (
            False,
            False,
        ): f"{shown}: number, may identify the rows: if so, leave it out by drop= (--drop)",
    }
    assert describe(table, shown) == expected[is_left_out, start < 2]


def collect(*blocks):
    """Return the evidence of a column of a file with several blocks of texts."""
    evidence = ColumnEvidence(list_text_types())
    for number, texts in enumerate(blocks):
        evidence.add(pa.array(texts), len(texts), number, has_comma=True)
    return evidence


def test_row_numbers_go_on_in_later_blocks():
    assert collect(["0", "1"], ["2", "3"]).is_index
    assert not collect(["0", "1"], ["5", "6"]).is_index
    assert collect(["10", "11"], ["12"]).length == 2
    assert collect(["10", "11"], ["7"]).length is None


@pytest.mark.parametrize(
    ("texts", "is_index"),
    [(["2", "3"], True), (["0", "1"], True), (["5", "6"], False), (["3", "4"], False)],
)
def test_row_numbers_go_on_or_begin_again_in_later_files(texts, is_index):
    assert (collect(["0", "1"]) + collect(texts)).is_index == is_index


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ([*map(str, range(10, 209)), "07"], "number, may identify the rows"),
        ([*map(str, range(10, 60)), "07"], "category, leading zeros kept"),
        ([*["12345"] * 150, "00001"], "category, leading zeros kept"),
        (["0", "1", "2", "3", "4"], "number, numbers the rows"),
        (["0", "1", "2", "3"], "number"),
    ],
)
def test_a_few_leading_zeros_are_kept_if_all_integers_are_of_one_length(texts, line, tmp_path):
    (tmp_path / "rows.csv").write_text(text_of({"x": texts, "y": ["a"] * len(texts)}))
    found = describe(read_table(tmp_path / "rows.csv", "y"), "x")
    assert found.partition(": ")[2].startswith(line)
    assert (line == "number") == (found == "x: number")


def test_labels_of_rows_of_r_are_left_out(tmp_path):
    path = tmp_path / "rows.csv"
    lines = text_of(rows(x=["1.5"])).splitlines()
    numbered = [f'"{i}",{line}' if i else line for i, line in enumerate(lines)]
    path.write_text("\n".join(numbered))
    assert read_in_all_ways(path).feature_names == ["x"]


# -- dates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "line", "first"),
    [
        (["13/04/2024", "5/6/2024"], "date, dd/mm/yyyy", "2024-04-13"),
        (["04/13/2024", "5/6/2024"], "date, mm/dd/yyyy", "2024-04-13"),
        (["03.04.2024", "05.06.2024"], "date, dd/mm/yyyy", "2024-04-03"),
        (["13-04-2024", "05-06-2024"], "date, dd/mm/yyyy", "2024-04-13"),
        (["2024/04/13", "2024/5/6"], "date, yyyy/mm", "2024-04-13"),
        (["13/04/2024 10:30", "5/6/2024"], "date, dd/mm/yyyy with time", "2024-04-13 10:30:00"),
        (["13/04/2024", "?"], "date, dd/mm/yyyy, 20 missing (?)", "2024-04-13"),
        (["13.04.99", "01.02.24"], "date, dd/mm/yy of 1970 to 2039", "1999-04-13"),
        (["13/04/99", "01/02/24"], "date, dd/mm/yy of 1970 to 2039", "1999-04-13"),
        (["04/13/00", "01/02/24"], "date, mm/dd/yy of 1970 to 2039", "2000-04-13"),
        (
            ["1.2.39 8:30", "1.2.70"],
            "date, dd/mm/yy of 1970 to 2039 with time",
            "2039-02-01 08:30:00",
        ),
        (["13.04.99", "01.02.2024"], "date, dd/mm/yy of 1970 to 2039", "1999-04-13"),
        (["13.14.99", "45.02.24"], "category", None),
        (["13/04/2024", "04/13/2024"], "category, dates, with the day first in some", None),
        (["2024-04-13", "2024-05-06"], "date", "2024-04-13"),
    ],
)
def test_dates_have_their_order(texts, line, first, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(rows(d=texts, x=["1"])))
    table, inferred = certree.tables.reader.read_with_schema(path)
    found = str(certree.tables.table.describe_columns(table, inferred)).split("\n")[1]
    assert found.startswith(f"d: {line}")
    if first is not None:
        assert str(table["d"][0].as_py()) == first
    # As a target or group they keep their text.
    named = read_table(path, "d") if "?" not in texts else None
    assert named is None or named.y[0] == texts[0]


def test_days_that_do_not_exist_become_missing():
    form = TextFormat("date", order="dd/mm")
    texts = pa.array(["31/01/2024", "31/02/2024", "0/1/2024", "1/13/2024", None, "29/02/2024"])
    values, exceptions = convert_texts(texts, form)
    assert [str(one) for one in values.to_pylist()] == [
        *("2024-01-31", "None", "None", "None", "None", "2024-02-29")
    ]
    assert exceptions.to_pylist() == ["31/02/2024", "0/1/2024", "1/13/2024"]
    values, exceptions = convert_texts(pa.array(["31/01/2024 00:00", "31/01/2024 10:30"]), form)
    assert [str(one) for one in values.to_pylist()] == ["2024-01-31", "None"]
    assert exceptions.to_pylist() == ["31/01/2024 10:30"]


@pytest.mark.parametrize(
    ("usual", "others"),
    [
        ("13/04/2024", ["04/13/2024", "31/02/2024", "2024/04/13"]),
        ("04/13/2024", ["13/04/2024", "02/30/2024", "04/13/24"]),
        ("13.04.24", ["14.04.54", "31.02.24", "2024-02-29"]),
        ("2024/04/13", ["13/04/2024", "2023/02/29", "soon"]),
    ],
)
def test_a_description_lists_dates_that_became_missing(usual, others, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of({"x": [usual] * 300 + others, "y": ["a", "b", "c"] * 101}))
    line = describe(read_table(path, "y"), "x")
    count, listed = line.removesuffix(")").partition(", 3 missing (and ")[2].split(": ")
    assert count == "3 that are no dates"
    assert {*listed.split(", ")} == {*others}
    with pytest.warns(UserWarning, match="3 values cannot be read as dates and count as missing"):
        FileRows(path, "y")


def test_years_of_two_digits_have_one_century_each():
    form = TextFormat("date", order="dd/mm", has_short_years=True)
    texts = pa.array([f"01/02/{year:02}" for year in range(100)] + ["01/02/2054"])
    values, exceptions = convert_texts(texts, form)
    years = [None if one is None else one.year for one in values.to_pylist()]
    assert years == [*range(2000, 2040), *[None] * 30, *range(1970, 2000), 2054]
    assert exceptions.to_pylist() == [f"01/02/{year}" for year in range(40, 70)]


# -- models use the formats of their fit again --------------------------------------------------------


def german(numbers, n_decimals=2):
    return [f"{one:,.{n_decimals}f}".translate(str.maketrans(",.", ".,")) for one in numbers]


@pytest.fixture
def fitted(tmp_path):
    """A model fitted to a file in German, the file, and new rows with their features."""
    rng = np.random.default_rng(0)
    x = rng.lognormal(7, 1, 400).round(2)
    place = np.where(rng.random(400) < 0.5, "Köln", "Ulm")
    y = np.where((x > 1100) ^ (place == "Ulm"), "ja", "nein")
    path = tmp_path / "fit.csv"
    columns = {"betrag": german(x), "ort": place, "y": y}
    path.write_bytes(text_of(columns, ";").encode("latin-1"))
    model = BoostedTreesClassifier(max_iter=15, random_state=0).fit(path, "y")
    new = tmp_path / "new.csv"
    x_new = np.array([1234.0, 2345.0, 900.0, 1999.0] * 25)
    # No value shows the decimal mark.
    columns = {"betrag": german(x_new, 0), "ort": ["Köln", "Ulm"] * 50, "y": ["ja", "nein"] * 50}
    new.write_bytes(text_of(columns, ";").encode("latin-1"))
    features = pa.table({"betrag": x_new, "ort": ["Köln", "Ulm"] * 50})
    return model, path, new, features


def test_formats_are_stored_and_used_again(fitted, tmp_path):
    model, path, new, features = fitted
    certree.save(model, tmp_path / "model.certree")
    loaded = certree.load(tmp_path / "model.certree")
    with pytest.raises(ValueError, match="allow both"):
        read_table(new, "y")
    expected = model.predict_proba(features)
    for one in (model, loaded):
        predict_files(one, new, tmp_path / "out.parquet")
        found = pa.parquet.read_table(tmp_path / "out.parquet")
        np.testing.assert_array_equal(found["probability_ja"], expected[:, 0])
        in_files = certify(one, new, "y", duplicates="genuine")
        in_memory = certify(one, features, np.array(["ja", "nein"] * 50), duplicates="genuine")
        assert in_files.bound == in_memory.bound
    # A table that was read in memory has the same format, and gives the same model.
    table = read_table(path, "y")
    other = BoostedTreesClassifier(max_iter=15, random_state=0).fit(table.to_arrow(), table.y)
    certree.save(other, tmp_path / "other.certree")
    predict_files(certree.load(tmp_path / "other.certree"), new, tmp_path / "other.parquet")
    assert pa.parquet.read_table(tmp_path / "other.parquet").num_rows == 100
    # A later fit to rows in memory forgets it.
    refitted = model.fit(features, np.array(["ja", "nein"] * 50))
    assert "_table_format" not in vars(refitted)


def test_files_of_models_of_plain_files_do_not_change(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(rows(x=["1.5", "2", ""], z=["a", "b"])))
    table = read_table(path, "y")
    assert table.table_format is None
    model = BoostedTreesClassifier(max_iter=3, random_state=0)
    certree.save(model.fit(path, "y"), tmp_path / "a.certree")
    frame = pa.table({name: table.X[:, j].tolist() for j, name in enumerate(table.feature_names)})
    certree.save(model.fit(frame, table.y), tmp_path / "b.certree")
    header = certree.load(tmp_path / "a.certree").__stored__()
    assert "table_format" not in header
    assert "table_format" not in model.__stored__()


@pytest.mark.parametrize(
    "damage",
    [
        {"columns": {"x": {"kind": "text"}}},
        {"decimal": "x"},
        {"encoding": "klingon"},
        {"strange": 1},
        {"columns": {"x": {"order": "dd/mm"}}},
        {"columns": 3},
        {"markers": {"x": [1]}},
        {"markers": 3},
    ],
)
def test_damaged_formats_are_refused(damage):
    with pytest.raises(ValueError, match="table_format cannot be read"):
        certree.tables.table_source.TableFormat.from_stored(damage)


@pytest.mark.parametrize("damage", [{}, []])
def test_formats_without_settings_are_refused(damage):
    with pytest.raises(ValueError, match="table_format must have at least one setting, got"):
        certree.tables.table_source.TableFormat.from_stored(damage)


def test_exceptions_and_new_values_are_named_in_predictions(fitted, tmp_path):
    model, _, new, _ = fitted
    content = new.read_bytes().decode("latin-1")
    changed = content.replace("1.234", "offen", 1).replace(";Köln;", ";Rom;", 2)
    new.write_bytes(changed.encode("latin-1"))
    with (
        pytest.warns(UserWarning, match="the fit has not seen") as unseen,
        pytest.warns(UserWarning, match="count as missing") as caught,
    ):
        predict_files(model, new, tmp_path / "out.parquet")
    texts = [str(one.message) for one in [*caught, *unseen]]
    assert not any("not seen" in text and "count as missing" in text for text in texts)
    for part in ("values cannot be read as numbers", "1 category that the fit has not seen, in 2"):
        assert any(part in text for text in texts)
    new.write_bytes(content.replace("1.234", "offen", 2).encode("latin-1"))
    message = (
        r"'betrag' must hold numbers as in the fit \(read as: number, .*\), got 'offen' in .*: "
        "2 of 100 values cannot be read as such numbers; write them as in the fit, state"
    )
    with pytest.raises(ValueError, match=message):
        predict_files(model, new, tmp_path / "out.parquet")
    new.write_bytes(re.sub(r"(?m)^[\d.]+;", ";", content).encode("latin-1"))
    with pytest.warns(UserWarning, match="feature 'betrag' is missing in all rows of"):
        predict_files(model, new, tmp_path / "out.parquet")


def test_markers_of_the_fit_are_missing_in_new_files(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(rows(x=["1.5", "-999", "3"], z=["a", "none given"])))
    table = read_in_all_ways(path, missing=["-999", "none given"])
    assert describe(table, "x") == "x: number, 13 missing (-999)"
    assert describe(table, "z") == "z: category, 20 missing (none given)"
    source = TableSource(path, missing=["-999", "none given"])
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(source, "y")
    predict_files(model, path, tmp_path / "out.parquet")
    found = pa.parquet.read_table(tmp_path / "out.parquet")["probability_no"]
    np.testing.assert_array_equal(found, model.predict_proba(table.to_arrow())[:, 0])


COUNTRIES = rows(country=["NA", "DE", "", "FR"], x=["NA", *["1.5"] * 9], flag=["NA", "true"])


@pytest.mark.parametrize(
    ("options", "line", "values"),
    [
        (
            {},
            "country: category, 20 missing (empty, NA); keep_text= (--keep-text 'country') keeps NA "
            "as text",
            {None, "DE", "FR"},
        ),
        (
            {"keep_text": ["country"]},
            "country: category, NA kept as text, 10 missing (empty)",
            {None, "NA", "DE", "FR"},
        ),
        (
            {"missing": ["FR"]},
            "country: category, NA kept as text, 20 missing (FR, empty)",
            {None, "NA", "DE"},
        ),
        (
            {"missing": []},
            "country: category, NA kept as text, 10 missing (empty)",
            {None, "NA", "DE", "FR"},
        ),
    ],
)
def test_words_of_missing_values_can_be_kept_as_text(options, line, values, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(COUNTRIES))
    table = read_in_all_ways(path, **options)
    found = describe(table, "country")
    assert sorted(re.split(r"[ ,()]+", found)) == sorted(re.split(r"[ ,()]+", line))
    assert {*table.X[:, 0].tolist()} == values
    # Among numbers and booleans they remain missing.
    assert describe(table, "x") == "x: number, 4 missing (NA)"
    assert describe(table, "flag") == "flag: boolean, 20 missing (NA)"
    # Folders are described without another pass.
    rows_of_files = FileRows(TableSource(path, **options), "y")
    described = certree.tables.table.describe_schema(rows_of_files.inferred_schema)
    assert str(described) == str(table.description)
    (tmp_path / "folder").mkdir()
    for number in range(3):
        (tmp_path / "folder" / f"{number}.csv").write_text(text_of(COUNTRIES))
    rows_of_files = FileRows(TableSource(tmp_path / "folder", **options), "y")
    described = certree.tables.table.describe_schema(rows_of_files.inferred_schema)
    folder = read_table(tmp_path / "folder", "y", **options)
    assert str(described) == str(folder.description)
    # Models read new files alike.
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(
        TableSource(path, **options), "y"
    )
    certree.save(model, tmp_path / "model.certree")
    loaded = certree.load(tmp_path / "model.certree")
    predict_files(loaded, path, tmp_path / "out.parquet")
    found = pa.parquet.read_table(tmp_path / "out.parquet")["probability_no"]
    np.testing.assert_array_equal(found, model.predict_proba(table.to_arrow())[:, 0])
    again = read_table(path, "y", like=loaded)
    assert str(again.X.tolist()) == str(table.X.tolist())  # NaN differs from itself.


def test_columns_to_keep_are_copied_as_they_are_written(tmp_path):
    path = tmp_path / "rows.csv"
    keys = [("007", "NA", "1.50", "")[i % 4] for i in range(N)]
    path.write_text(text_of({**rows(x=["1", "2"]), "key": keys}))
    model = BoostedTreesClassifier(max_iter=3).fit(TableSource(path, drop=["key"]), "y")
    predict_files(model, path, tmp_path / "out.parquet", keep=["key"])
    found = pa.parquet.read_table(tmp_path / "out.parquet")["key"].to_pylist()
    assert found == [key or None for key in keys]


@pytest.mark.parametrize("zone", [None, "Europe/Zurich", "America/New_York"])
def test_times_with_an_offset_are_read_in_a_zone(zone, tmp_path):
    path = tmp_path / "rows.csv"
    texts = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}T23:30:00+01:00" for i in range(400)]
    days = [dt.datetime.fromisoformat(text).astimezone(ZoneInfo(zone or "UTC")) for text in texts]
    labels = ["late" if day.weekday() >= 5 else "early" for day in days]
    path.write_text(text_of({"when": texts, "plain": [text[:-6] for text in texts], "y": labels}))
    options = {} if zone is None else {"timezone": zone}
    table = read_table(path, "y", **options)
    note = "in UTC: name another time zone by timezone= (--timezone)"
    assert (
        describe(table, "when")
        == f"when: date, {note if zone is None else f'local time of {zone}'}"
    )
    assert describe(table, "plain") == "plain: date"
    assert [one.hour for one in table.X[:, 0]] == [day.hour for day in days]
    source = TableSource(path, drop=["plain"], **options)
    model = BoostedTreesClassifier(max_iter=30, random_state=0).fit(source, "y")
    assert model.dates_[0].zone == (zone or "UTC")
    assert model.dates_[0].parts == ("weekday",)
    predict_files(model, path, tmp_path / "out.parquet")
    predicted = pa.parquet.read_table(tmp_path / "out.parquet")["prediction"].to_pylist()
    assert np.mean(np.array(predicted) == labels) > 0.99


def test_an_unknown_time_zone_is_refused():
    with pytest.raises(ValueError, match=r"timezone must be the name of a time zone.*got 'Mars'"):
        TableSource("rows.csv", timezone="Mars")


def test_a_table_is_read_with_the_formats_of_a_model(fitted):
    model, _, new, features = fitted
    table = read_table(new, "y", like=model)
    assert table.feature_names == ["betrag", "ort"]
    expected = model.predict_proba(features)
    np.testing.assert_array_equal(model.predict_proba(table.to_arrow()), expected)
    again = read_table(new, like=model)  # Without a target, other columns are left out.
    np.testing.assert_array_equal(model.predict_proba(again.to_arrow()), expected)
    new.write_text("betrag;y\n1,5;ja\n")
    with pytest.raises(TypeError, match="like must be a fitted estimator of certree"):
        read_table(new, "y", like=BoostedTreesClassifier())
    with pytest.raises(ValueError, match=r"like must be a model whose features .* no column 'ort'"):
        read_table(new, "y", like=model)


@pytest.mark.parametrize(
    ("name", "values", "is_named"),
    [
        ("user_id", [5 * (i * 7 % 40) for i in range(40)], True),
        ("userId", [5 * (i * 7 % 40) for i in range(40)], True),
        ("paid", [5 * (i * 7 % 40) for i in range(40)], False),
        ("Kundennummer", [5 * (i * 7 % 101) for i in range(101)], True),
        ("invoice number", [5 * (i * 7 % 99) for i in range(99)], False),
        ("invoice number", [5 * (i * 7 % 2001) for i in range(2001)], True),
        ("invoice number", [5 * (i * 7 % 2001) for i in range(2001)] + [35], False),
        ("amount", [i * 7 % 101 + 0.5 for i in range(101)], False),
        ("user_id", [i // 2 for i in range(40)], False),
        ("stamp", [100 + 3 * i for i in range(40)], True),
        ("stamp", [100 + 3 * i for i in range(10)], False),
        ("id", [i + 0.5 for i in range(40)], False),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_integers_that_may_identify_rows_are_named(name, values, is_named, suffix, tmp_path):
    columns = {name: values, "y": [str(i % 2) + "a" for i in range(len(values))]}
    path = tmp_path / f"rows{suffix}"
    if suffix == ".csv":
        path.write_text(text_of(columns))
    else:
        pa.parquet.write_table(pa.table(columns), path)
    line = "number, may identify the rows: if so, leave it out by drop= (--drop)"
    found = describe(read_table(path, "y"), name)
    assert found == f"{name}: {line if is_named else 'number'}"
    assert "may identify" not in str(read_table(path, name).description)


def test_a_source_in_a_source_keeps_its_options(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x;y\n3,5;a\n2,5;b\n")
    inner = TableSource(path, decimal=",")
    assert read_table(inner, "y", drop=[]).X.tolist() == [[3.5], [2.5]]
    assert TableSource(inner, missing=["?"]).decimal == ","


# -- the command line ---------------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["income", "euros", "Windows-1252", "postcodes", "percent"])
def test_the_command_line_reads_the_same(name, tmp_path):
    content, line, _ = FILES[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    model_path = tmp_path / "model.certree"
    found = call(
        "fit", path, "--target", "y", "-o", model_path, "--test-size", 0, "--model", "forest"
    )
    assert found.exit_code == 0, found.output
    if line != "x: category":
        assert line in found.output
    model, table = certree.load(model_path), read_table(path, "y")
    assert certree.tables.fitted_types.get_model_format(model) == table.table_format
    assert call("predict", model_path, path, "-o", tmp_path / "out.parquet").exit_code == 0
    predicted = pa.parquet.read_table(tmp_path / "out.parquet")["probability_no"]
    np.testing.assert_array_equal(predicted, model.predict_proba(table.to_arrow())[:, 0])
    for command in ("evaluate", "report"):
        more = ["-o", tmp_path / "report.html"] if command == "report" else []
        found = call(command, model_path, path, "--target", "y", *more)
        assert found.exit_code == 0, found.output


@pytest.mark.filterwarnings("default")
def test_options_of_commands_override(tmp_path):
    path = tmp_path / "rows.csv"
    content = rows(x=["1.234", "2.345"], code=["1", "2"], d=["03/04/2024"], z=["-1", "5"])
    path.write_text(text_of(content, ";"))
    where = ["--target", "y", "-o", tmp_path / "m.certree", "--test-size", 0]
    found = call("fit", path, *where)
    assert found.exit_code == 1
    assert "--decimal . or --decimal ," in found.output
    found = call("fit", path, *where, "--decimal", ",")
    assert found.exit_code == 1
    assert "--dates dd/mm" in found.output
    options = ["--decimal", ",", "--drop", "d", "--keep-text", "code", "--missing", "-1"]
    found = call("fit", path, *where, *options, "--separator", ";", "--encoding", "utf-8")
    assert found.exit_code == 0, found.output
    assert "x: number, decimal comma, thousands separators removed" in found.output
    assert "z: number, 20 missing (-1)" in found.output
    assert "code: category, text kept" in found.output
    model = certree.load(tmp_path / "m.certree")
    assert model.feature_names_in_.tolist() == ["x", "code", "z"]
    found = call("evaluate", tmp_path / "m.certree", path, "--target", "y")
    assert found.exit_code == 0, found.output


@pytest.mark.filterwarnings("default")
def test_a_warning_of_identifiers_names_the_feature_and_the_option(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        text_of({"key": [f"k{i}" for i in range(80)], "x": ["1", "2"] * 40, "y": ["a", "b"] * 40})
    )
    found = call("fit", path, "--target", "y", "-o", tmp_path / "m.certree", "--test-size", 0)
    assert "feature 'key' has 80 categories in 80 rows" in found.output
    assert "Leave it out (--drop on the command line)" in found.output


# -- all dialects ----------------------------------------------------------------------------------

NUMBERS = st.lists(
    st.integers(-(10**9), 10**9).map(lambda one: one / 100), min_size=8, max_size=30
).filter(lambda numbers: any(round(100 * one) % 10 for one in numbers))


def write_number(number, decimal, thousands, symbol):
    """Return a number with two decimals in some form, written digit by digit."""
    whole, _, fraction = f"{abs(number):.2f}".partition(".")
    groups = []
    while whole:
        groups, whole = [whole[-3:], *groups], whole[:-3]
    text = thousands.join(groups) + decimal + fraction
    return ("-" if number < 0 else "") + (f"{text} {symbol}" if symbol else text)


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    NUMBERS,
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from([".", ","]),
    st.sampled_from(["", "mark", "'", " ", "\u00a0"]),
    st.sampled_from(["", "€", "%", "USD"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    st.sampled_from(["minimal", "all"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_numbers_read_back_equal_in_all_dialects(
    tmp_path, numbers, separator, decimal, thousands, symbol, encoding, quote, line_end
):
    if thousands == "mark":
        thousands = "," if decimal == "." else "."
    texts = [write_number(one, decimal, thousands, symbol) for one in numbers]
    path = tmp_path / "rows.csv"
    content = text_of({"größe": texts, "y": ["a"] * len(texts)}, separator, quote=quote)
    path.write_bytes(content.replace("\n", line_end).encode(encoding))
    table = read_table(path, "y")
    assert table.feature_names == ["größe"]
    np.testing.assert_array_equal(table.X[:, 0], [abs(one) and one for one in numbers])


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "cp1251", "koi8-r", "shift-jis", "utf-32"]
)
def test_any_encoding_of_python_is_read_if_it_is_stated(encoding, tmp_path):
    words = {"cp1251": "мир", "koi8-r": "мир", "shift-jis": "日本"}
    word = words.get(encoding, "été")
    path = tmp_path / "rows.csv"
    path.write_bytes(text_of(rows(x=[word, "a,b"])).encode(encoding))
    assert read_table(path, "y", encoding=encoding).X[:2, 0].tolist() == [word, "a,b"]


def test_long_headers_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_HEAD", 50)
    names = [f"name {j}" for j in range(30)]
    path = tmp_path / "rows.csv"
    path.write_text(text_of({**{name: ["1.5", "2.5"] for name in names}, "y": ["a", "b"]}, ";"))
    assert read_table(path, "y").feature_names == names


@pytest.mark.parametrize("text", ["x;y", "x;y\n", "x;y\n\n"])
def test_a_header_alone_is_a_table_without_rows(text, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    assert read_table(tmp_path / "rows.csv", "y").X.shape == (0, 1)
    (batch,) = read_batches(tmp_path / "rows.csv", no_types, 5)
    assert batch.table.num_rows == 0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("text\nhello, you\nby me\nhello, him\n", ("text",)),
        ("text\nhello, you\nhello, him\n", ("text",)),
        ("Sales\nx,y\n" + "1,a\n" * 5, ("x", "y")),
        ("Sales\nx,y\n" + "1,a\n" * 4, ("Sales",)),
        ("Sales\n" + "1,2,3\n" * 9, ("Sales",)),
        ("Sales,,\nx,y,z\n1,2,3\n", ("x", "y", "z")),
        ("a,b\nlow;x,y;b\nlow;x,y;b\n", ("a", "b")),
        ("x,y\n1,5,a\n", ("x", "y")),
    ],
)
def test_titles_need_rows_that_agree_and_names(text, names):
    """Else sentences with commas would be several columns, and numbers a header."""
    assert find_dialect(text, "utf-8").names == names


def test_a_few_characters_of_utf_8_do_not_show_the_encoding(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_HEAD", 50)
    text = text_of(rows(x=["b"])) + text_of(rows(x=["é", "ü"]), header=False)
    (tmp_path / "rows.csv").write_bytes(f"{text}Ã©,no\n".encode("cp1252"))
    assert set(read_table(tmp_path / "rows.csv", "y").X[:, 0]) == {"b", "é", "ü", "Ã©"}


def test_standard_input_of_another_dialect(monkeypatch):
    content = codecs.BOM_UTF8 + text_of(rows(x=["1,5", "2,5"]), ";").encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_table("-", "y").X[:2, 0].tolist() == [1.5, 2.5]
