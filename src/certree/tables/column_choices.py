"""Formats of the columns of CSV files: chosen from the evidence of all rows of all files.

A column is one of numbers, or of dates, if at least 99 % of its values are. The others are exceptions,
which become missing. A decimal mark or an order of day and month that no value shows is an error
that names the option.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Protocol

from certree.tables.arrow import pa
from certree.tables.column_evidence import (
    MANY,
    Choice,
    ColumnEvidence,
    TextCounts,
    choose_format,
    use_decimal,
)
from certree.tables.column_types import InferredColumn, InferredColumns, join_columns
from certree.tables.csv_text import CsvReading
from certree.tables.table_source import TableFormat
from certree.tables.text_formats import ENOUGH, PLAIN, TextFormat

# The separator between values that shows that the decimal mark of unquoted numbers is a point.
_COMMA = ","
# Rows of a table that is too short for a note on a column that numbers them.
_SHORT = 5
# Exceptions that a note lists.
_LISTED = 3


class CsvFile(Protocol):
    """A CSV file, as formats of its columns are chosen."""

    reading: CsvReading

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        ...

    def count_texts(self, columns: Sequence[str]) -> dict[str, TextCounts]:
        """Return counts of the texts of columns in all rows, by name."""
        ...


@dataclass(slots=True)
class ColumnChoices:
    """What the columns of CSV files are read as.

    Parameters
    ----------
    columns : dict of str to InferredColumn
        The columns of all files together, with types, formats and notes.
    left_out : dict of str to str
        Columns that are not read, by name, and why.
    decimal : str or None
        Decimal mark that the files show; None: they show none, or both.
    """

    columns: InferredColumns = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    decimal: str | None = None


def choose_columns(
    files: Sequence[tuple[CsvFile, InferredColumns]],
    wanted: Mapping[str, Any],
    text_dates: Collection[str],
    needed: Collection[str] | None = None,
) -> ColumnChoices:
    """Choose what the columns of CSV files are read as.

    Parameters
    ----------
    files : sequence of tuple of file and dict
        The CSV files, each with its inferred columns by name.
    wanted : mapping
        Types of columns in a fitted model, string or float64, by name.
    text_dates : collection of str
        Columns of which dates and times stay text.
    needed : collection of str or None
        Columns that are an error if they are not decided; others stay text. None: all.

    Raises
    ------
    ValueError
        If no value of a column shows its decimal mark, or its order of day and month.
    """
    reading = files[0][0].reading
    as_text = {name for name, kind in wanted.items() if pa.types.is_string(kind)}
    as_text |= {*reading.options.keep_text}
    _complete_counts(files, as_text)
    joined = reduce(_join_inferred_columns, (seen for _, seen in files))
    choices = {
        name: choose_format(column.evidence.counts, reading.decimal, reading.options.dates)
        for name, column in joined.items()
        if column.evidence.counts is not None and name not in as_text
    }
    choices |= _list_open_points(joined, files[0][0], choices)
    known = _use_model(joined, as_text, reading)
    marks = _list_marks(joined, choices, reading)
    found = ColumnChoices(decimal=next(iter(marks)) if len(marks) == 1 else None)
    for name, column in joined.items():
        form = known.get(name)
        if form is None and name in choices and name not in wanted:
            is_text = name in text_dates and _is_date(choices[name])
            is_text |= choices[name].is_undecided and needed is not None and name not in needed
            form = None if is_text else _resolve(name, column, choices[name], marks, files)
        elif form is None and name in choices and column.evidence.counts is not None:
            form = PLAIN if reading.decimal != "," else TextFormat(decimal=",")
        kept = name in as_text or name in wanted
        found.columns[name] = (
            _with_format(column, form) if form else _with_notes(column, kept, reading.decimal)
        )
    _leave_out_unnamed(found, files, wanted)
    return found


def _join_inferred_columns(one: InferredColumns, other: InferredColumns) -> InferredColumns:
    """Join the inferred columns of two CSV files; columns that only one file has are left out."""
    pairs = {name: join_columns(one[name], other[name]) for name in one if name in other}
    return {name: column for name, column in pairs.items() if column is not None}


def _complete_counts(files: Sequence[tuple[CsvFile, InferredColumns]], as_text: set[str]) -> None:
    """Count texts of blocks and files that were numbers, if the column has text elsewhere."""
    texts = {
        name
        for _, seen in files
        for name, column in seen.items()
        if column.evidence.counts is not None and name not in as_text
    }
    for file, seen in files:
        lacking = [
            name
            for name in seen
            if name in texts
            and (seen[name].evidence.counts is None or seen[name].evidence.n_uncounted)
        ]
        for name, counts in file.count_texts(lacking).items() if lacking else ():
            seen[name].evidence.counts, seen[name].evidence.n_uncounted = counts, 0


def _list_open_points(
    joined: InferredColumns, file: CsvFile, choices: Mapping[str, Choice]
) -> dict[str, Choice]:
    """Return choices for columns of plain numbers such as 1.234, which may be 1234.

    In files whose values are separated by commas, and if the decimal mark is known, there are none.
    """
    dialect = file.reading.dialect
    if file.reading.decimal is not None or dialect is None or dialect.separator == _COMMA:
        return {}
    return {
        name: Choice(PLAIN, True)
        for name, column in joined.items()
        if name not in choices
        and pa.types.is_floating(column.kind)
        and not column.evidence.has_point
    }


def _use_model(
    joined: InferredColumns, as_text: set[str], reading: CsvReading
) -> dict[str, TextFormat]:
    """Return the formats that a fitted model stores for columns, by name."""
    stored = reading.stored_columns
    return {name: stored[name] for name in joined if name in stored and name not in as_text}


def _list_marks(
    joined: InferredColumns, choices: Mapping[str, Choice], reading: CsvReading
) -> set[str]:
    """Return the decimal marks that values of the columns show, or the one that is stated."""
    if reading.decimal is not None:
        return {reading.decimal}
    marks = set()
    for name, column in joined.items():
        choice = choices.get(name)
        if choice is None and pa.types.is_floating(column.kind):
            marks.add(".")
        if choice is None or choice.form is None or choice.is_undecided:
            continue
        counts = column.evidence.counts
        if choice.form.kind == "number" and counts is not None:
            numbers = {mark: counts.count_numbers(mark) for mark in (".", ",")}
            if numbers["."] != numbers[","]:
                marks.add(choice.form.decimal)
    return marks


def _is_date(choice: Choice) -> bool:
    """Return whether a column, of which `choice` is what its values show, is one of dates."""
    return choice.form is not None and choice.form.kind == "date"


def _resolve(
    name: str,
    column: InferredColumn,
    choice: Choice,
    marks: set[str],
    files: Sequence[tuple[CsvFile, InferredColumns]],
) -> TextFormat | None:
    """Return the format of a column, whose decimal mark may be that of other columns.

    Parameters
    ----------
    name, column : str, InferredColumn
        The column.
    choice : Choice
        What its own values show.
    marks : set of str
        Decimal marks that values of all columns show.
    files : sequence of tuple of file and dict
        The files, for the counts and the message.

    Raises
    ------
    ValueError
        If it is not decided.
    """
    form, counts, file = choice.form, column.evidence.counts, files[0][0]
    if form is None or not choice.is_undecided:
        return form
    if form.kind == "date":
        example = counts.examples[0]
        raise ValueError(
            f"column {name!r} of {file.name} must show whether day or month comes first, but dates "
            f"such as {example} allow both: state dates='dd/mm' or dates='mm/dd' (--dates dd/mm), "
            f"or leave the column out by drop= (--drop {name!r})"
        )
    if counts is None and marks == {","}:
        counts = file.count_texts([name])[name]
    if len(marks) == 1:
        (mark,) = marks
        return None if counts is None else use_decimal(counts, mark, form)
    dialect = file.reading.dialect
    has_commas = counts is not None and "," in counts.thousands["."]
    if dialect is not None and dialect.separator == _COMMA and not has_commas:
        return use_decimal(counts, ".", form)
    if counts is None:
        counts = file.count_texts([name])[name]
    example = next((one for one in counts.examples if "." in one or "," in one), "1.234")
    raise ValueError(
        f"column {name!r} of {file.name} must show its decimal mark, but numbers such as {example} "
        "allow both: state decimal='.' or decimal=',' (--decimal . or --decimal ,)"
    )


# -- what a description says of columns


def _with_format(column: InferredColumn, form: TextFormat) -> InferredColumn:
    """Return a column of numbers or dates, with notes on its format and exceptions."""
    counts: TextCounts | None = column.evidence.counts
    markers = column.markers if counts is None else column.markers | counts.markers
    details = str(form).partition(", ")[2]
    return replace(
        column,
        kinds=(pa.float64() if form.kind == "number" else form.type,),
        markers=markers,
        form=form,
        notes=(details,) if details else (),
    )


def describe_exceptions(column: InferredColumn) -> tuple[int, str]:
    """Return how many texts of a column are exceptions to its format, and examples of them."""
    counts: TextCounts | None = None if column.evidence is None else column.evidence.counts
    if column.form is None or counts is None:
        return 0, ""
    form = column.form
    is_date = form.kind == "date"
    known = max(counts.dates["any"], counts.dates["year"]) if is_date else 0
    n = counts.n - (known if is_date else counts.count_numbers(form.decimal))
    return max(n, 0), ", ".join(counts.list_exceptions(form)) if n > 0 else ""


def _with_notes(column: InferredColumn, is_kept: bool, decimal: str | None) -> InferredColumn:
    """Return a column without format, with notes on numbers that stay text, and on numbers of rows.

    is_kept: whether the user or a model has stated the type of the column; decimal: the decimal mark,
    if it is known.
    """
    evidence: ColumnEvidence = column.evidence
    counts = evidence.counts
    if is_kept:
        return column
    if pa.types.is_integer(column.kind):
        if evidence.n_zeros and (evidence.length or evidence.n_zeros > evidence.n_rows // 100):
            notes = ("leading zeros kept",)
            return replace(column, kinds=(pa.string(),), notes=notes)
        if evidence.is_index and evidence.n_rows >= _SHORT:
            return replace(column, notes=("numbers the rows: leave it out by drop= (--drop)",))
    if counts is None or not counts.n:
        return column
    if counts.n_zeros:
        return replace(column, notes=("leading zeros kept",))
    if min(counts.dates["day"], counts.dates["month"]) > (1 - ENOUGH) * counts.n:
        return replace(column, notes=("dates, with the day first in some and the month in others",))
    n_numbers = {mark: counts.count_numbers(mark) for mark in counts.thousands}
    mark = decimal or max(n_numbers, key=lambda one: n_numbers[one])
    n_dates = max(counts.dates["any"], counts.dates["year"])
    for n, form in ((n_numbers[mark], TextFormat(decimal=mark)), (n_dates, TextFormat("date"))):
        if n >= MANY * counts.n:
            return replace(column, notes=(_describe_others(n, form, counts),))
    return column


def _describe_others(n: int, form: TextFormat, counts: TextCounts) -> str:
    """Return a note on a column of text of which many values are numbers or dates.

    n: how many are; form: the format that they have; counts: counts of the texts. The note lists the
    most frequent other texts. It names an option if the column would have the format without them.
    """
    what = f"although {_format_percent(n / counts.n)} of the values are {form.kind}s"
    n_others = counts.n - n
    listed = counts.count_exceptions(form)[:_LISTED]
    if not n_others or not listed:
        return what
    examples = ", ".join(f"{_quote(text)}: {times:,}" for text, times in listed)
    note = f"{what}, as {n_others:,} {'is' if n_others == 1 else 'are'} not ({examples})"
    for i in range(1, len(listed) + 1):
        if n >= ENOUGH * (counts.n - sum(times for _, times in listed[:i])):
            quoted = [_quote(text) for text, _ in listed[:i]]
            options = " ".join(f"--missing {text}" for text in quoted)
            subject = "this text means" if i == 1 else "these texts mean"
            return f"{note}; if {subject} missing, pass missing=[{', '.join(quoted)}] ({options})"
    return note


def _quote(text: str) -> str:
    """Return a text in double quotes, as in Python and on the command line."""
    return json.dumps(text, ensure_ascii=False)


def _format_percent(fraction: float) -> str:
    """Return a fraction in percent, which is not rounded to 100 %."""
    return f"{min(100 * fraction, 99.9):.3g} %"


def _leave_out_unnamed(
    found: ColumnChoices,
    files: Sequence[tuple[CsvFile, InferredColumns]],
    wanted: Mapping[str, Any],
) -> None:
    """Leave out columns without name that number the rows, or that have no values."""
    for name, column in [*found.columns.items()]:
        dialects = [file.reading.dialect for file, _ in files]
        is_unnamed = all(one is not None and name in one.unnamed for one in dialects)
        if not is_unnamed or name in wanted:
            continue
        is_index = column.evidence.is_index and pa.types.is_integer(column.kind)
        if is_index or pa.types.is_null(column.kind):
            why = "numbers the rows" if is_index else "no values"
            found.left_out[name] = f"left out: no name, and {why}"
            del found.columns[name]


# -- what a model stores


def create_table_format(
    choices: ColumnChoices, reading: CsvReading, default_separator: str
) -> TableFormat | None:
    """Return what a model stores of the CSV files of its fit; None: there is nothing unusual.

    choices: what the columns are read as; reading: how the first file is read; default_separator:
    the separator that the suffix of its name states.
    """
    dialect, options = reading.dialect, reading.options
    forms = {name: column.form for name, column in choices.columns.items()}
    columns = {name: form for name, form in forms.items() if form is not None and form != PLAIN}
    encoding = None if dialect is None else dialect.encoding
    if options.encoding is None and (encoding or "").startswith("utf-"):
        encoding = None
    separator = None if dialect is None else dialect.separator
    decimal = options.decimal or (choices.decimal if choices.decimal == "," else None)
    found = TableFormat(
        None if separator == default_separator else separator,
        encoding,
        decimal,
        (*options.missing,),
        columns,
    )
    return found if found.to_stored() else None
