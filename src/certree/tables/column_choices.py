"""Choose the formats of the columns of CSV files from the evidence of all rows of all files.

A column is one of numbers, or of dates, if at least 99 % of its values are. The other values,
called exceptions, become missing. It is an error if no value shows the decimal mark, or the order
of day and month; the message names the option that states it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from certree.tables.arrow import pa
from certree.tables.column_evidence import (
    MANY,
    ColumnEvidence,
    TextCounts,
    choose_format,
    use_decimal,
)
from certree.tables.column_names import join_names
from certree.tables.column_types import (
    InferredColumn,
    InferredColumns,
    is_date_type,
    join_columns,
)
from certree.tables.table_source import TableFormat
from certree.tables.text_formats import ENOUGH, PLAIN, TextFormat

if TYPE_CHECKING:
    from certree.tables.formats import CsvFile

# The separator between values that shows that the decimal mark of unquoted numbers is a point.
_COMMA = ","
# Rows of a table that is too short for a note on a column that numbers them.
_SHORT = 5
# Exceptions that a note lists.
_LISTED = 3
# Fewer distinct numbers with a unit, such as "3 rooms", are more likely names than numbers.
_FEW_NUMBERS = 10
# The format of plain numbers whose decimal mark is not known.
_UNDECIDED = TextFormat(decimal="")


def choose_columns(
    files: Sequence[CsvFile],
    found: Sequence[InferredColumns],
    wanted: Mapping[str, Any],
    text_dates: Collection[str],
    needed: Collection[str] | None = None,
) -> tuple[InferredColumns, dict[str, str], str | None]:
    """Choose what the columns of CSV files are read as: text, numbers or dates, and in which format.

    Parameters
    ----------
    files : sequence of CsvFile
        The files.
    found : sequence of dict of str to InferredColumn
        The inferred columns of each file, by name.
    wanted : mapping of str to pyarrow.DataType
        Types of columns in a fitted model (string, float64 or a type of dates), by name.
    text_dates : collection of str
        Names of columns of which dates and times stay text.
    needed : collection of str or None
        Names of columns whose format must be clear; unclear columns among them raise an error,
        others stay text. None: all columns.

    Returns
    -------
    columns : dict of str to InferredColumn
        The columns that all files share, with types, formats and notes.
    left_out : dict of str to str
        Columns that are not read: the reason by name.
    decimal : str or None
        Decimal mark that the files show, "." or ","; None: they show none, or both.

    Raises
    ------
    ValueError
        If no value of a needed column shows its decimal mark, the order of day and month or the
        century of its dates, or if its values contradict the mark or the order that the user states.
    """
    if not files:
        return {}, {}, None
    options = files[0].source
    text_names = {name for name, kind in wanted.items() if pa.types.is_string(kind)}
    _complete_counts(files, found, text_names)
    joined = reduce(_join_inferred_columns, found)
    choices = {
        name: choose_format(column.evidence.counts, options.decimal_mark, options.dates)
        for name, column in joined.items()
        if column.evidence.counts is not None and name not in text_names
    }
    choices |= dict.fromkeys(_list_open_points(joined, files[0], choices), _UNDECIDED)
    marks = _list_marks(joined, choices, options.decimal_mark)
    columns, left_out = {}, {}
    for name, column in joined.items():
        is_needed = name not in text_names and (needed is None or name in needed)
        is_open = name not in wanted and name not in text_dates
        if is_open and is_needed and name in choices and choices[name] is None:
            _expect_agreement(name, column.evidence.counts, files[0])
        form = None if name in text_names else options.stored.columns.get(name)
        if form is None and name in wanted:
            if is_date_type(wanted[name]):
                choice = choices.get(name) if options.dates is not None else None
                form = choice if choice is not None and choice.kind == "date" else None
            elif column.evidence.counts is not None and name in choices:
                form = files[0].choose_number_format(name, column.evidence.counts)
        elif form is None and (form := choices.get(name)) is not None:
            is_text = name in text_dates and form.kind == "date"
            form = (
                None
                if is_text
                else _choose_text_format(name, column, form, marks, files, is_needed)
            )
        if why := "" if name in wanted else _find_reason_to_leave_out(name, column, files):
            left_out[name] = f"left out: no name, and {why}"
        elif form is not None:
            columns[name] = _add_format(column, form)
        else:
            columns[name] = column if name in wanted else _add_notes(column, options.decimal_mark)
    return columns, left_out, next(iter(marks)) if len(marks) == 1 else None


def _join_inferred_columns(one: InferredColumns, other: InferredColumns) -> InferredColumns:
    """Return the columns that two CSV files have in common, with types that fit the values of both.

    one, other: inferred columns of the two files, by name. Columns without a common type are left
    out.
    """
    pairs = {name: join_columns(one[name], other[name]) for name in one if name in other}
    return {name: column for name, column in pairs.items() if column is not None}


def _complete_counts(
    files: Sequence[CsvFile], found: Sequence[InferredColumns], text_names: set[str]
) -> None:
    """Complete the text counts of columns that hold text in some files and numbers in others.

    Inference counts texts only where values are not numbers. A column with text in one file needs
    counts of all its values. So files without counts are read again, and the evidence of `found` is
    changed in place. files: the CSV files. found: inferred columns of each file, by name.
    text_names: names of columns that stay text; their counts are not completed.
    """
    texts = {
        name
        for seen in found
        for name, column in seen.items()
        if column.evidence.counts is not None and name not in text_names
    }
    for file, seen in zip(files, found, strict=True):
        lacking = [
            name
            for name in seen
            if name in texts
            and (seen[name].evidence.counts is None or seen[name].evidence.n_uncounted)
        ]
        for name, counts in file.count_texts(lacking).items() if lacking else ():
            seen[name].evidence.counts, seen[name].evidence.n_uncounted = counts, 0


def _list_open_points(
    joined: InferredColumns, file: CsvFile, choices: Collection[str]
) -> list[str]:
    """Return the names of columns of numbers such as 1.234, which may mean 1234.

    The list is empty if values are separated by commas, or the user has stated the decimal mark.
    joined: inferred columns by name. file: one of the files. choices: names of columns whose format
    has been chosen, which are left out, as are columns with a number that shows the mark.
    """
    if file.source.decimal_mark is not None or file.dialect.separator == _COMMA:
        return []
    return [
        name
        for name, column in joined.items()
        if name not in choices
        and pa.types.is_floating(column.kind)
        and not column.evidence.has_point
    ]


def _list_marks(
    joined: InferredColumns, choices: Mapping[str, TextFormat | None], decimal: str | None
) -> set[str]:
    """Return the decimal marks ("." and ",") that the values of the columns use.

    joined: inferred columns by name; choices: format chosen for columns of numbers in text, or None
    for text; decimal: mark that the user states, which is returned alone; None: none is stated.
    """
    if decimal is not None:
        return {decimal}
    marks = set()
    for name, column in joined.items():
        form, counts = choices.get(name), column.evidence.counts
        if name not in choices and pa.types.is_floating(column.kind):
            marks.add(".")
        if form is None or not form.is_decided or form.kind == "date":
            continue
        if counts.count_numbers(".") != counts.count_numbers(","):
            marks.add(form.decimal)
    return marks


def _choose_text_format(
    name: str,
    column: InferredColumn,
    form: TextFormat,
    marks: set[str],
    files: Sequence[CsvFile],
    is_needed: bool,
) -> TextFormat | None:
    """Choose the format of a text column from its own values and from those of other columns.

    Parameters
    ----------
    name : str
        Name of the column.
    column : InferredColumn
        Types and evidence of the column.
    form : TextFormat
        The format that values of this column show; its decimal mark or order of dates may be open.
    marks : set of str
        Decimal marks that values of all columns show: ".", "," or both.
    files : sequence of CsvFile
        The files, for the counts and the message.
    is_needed : bool
        True: an open format raises an error. False: the column then stays text.

    Returns
    -------
    TextFormat or None
        The format; None: the column stays text.

    Raises
    ------
    ValueError
        If the format is open, but needed.
    """
    counts, file = column.evidence.counts, files[0]
    if form.kind == "date":
        problem = _find_date_problem(form, counts)
        if problem and is_needed:
            raise ValueError(
                f"column {name!r} of {file.name} must show {problem}, or leave the column out by "
                f"drop= (--drop {name!r})"
            )
        return None if problem else form
    if form.is_decided:
        return form
    if counts is None and marks != {"."}:
        counts = file.count_texts([name])[name]
    is_comma = file.dialect.separator == _COMMA and "," not in counts.thousands["."]
    if len(marks) == 1 or is_comma:
        (mark,) = marks if len(marks) == 1 else {"."}
        return None if counts is None else use_decimal(counts, mark, form.symbol)
    if not is_needed:
        return None
    example = next((one for one in counts.examples if "." in one or "," in one), "1.234")
    raise ValueError(
        f"column {name!r} of {file.name} must show its decimal mark, but numbers such as {example} "
        "allow both: state decimal='.' or decimal=',' (--decimal . or --decimal ,)"
    )


def _expect_agreement(name: str, counts: TextCounts, file: CsvFile) -> None:
    """Raise a ValueError if the values of a column contradict the stated decimal mark or date order.

    Without the options `decimal` and `dates`, the column would be numbers or dates; with them it is
    text. name: name of the column. counts: counts of its texts. file: the file, whose source has
    the options.
    """
    options, form = file.source, choose_format(counts, None, None)
    if form is None or not form.is_decided:
        return
    keep = f"keep the text of the column by keep_text= (--keep-text {name!r})"
    where, example = f"column {name!r} of {file.name}", counts.examples[0]
    if form.kind == "date" and options.dates not in (None, form.order):
        raise ValueError(
            f"dates must be the order of all dates, got {options.dates!r}, but {where} has "
            f"{form.order!r}, as in {example}: state dates={form.order!r} (--dates {form.order}), or "
            f"{keep}"
        )
    if form.kind == "number" and options.decimal not in (None, form.decimal):
        raise ValueError(
            f"decimal must be the mark of all numbers, got {options.decimal!r}, but {where} has "
            f"{form.decimal!r}, as in {example}: state decimal={form.decimal!r} (--decimal "
            f"{form.decimal}), or {keep}"
        )


def _find_date_problem(form: TextFormat, counts: TextCounts) -> str:
    """Return what the dates of a column leave open, with a remedy, as the end of a message.

    The text is "" if the dates are clear. form: format of the dates. counts: counts of the texts.
    """
    keep = "keep them as text by keep_text= (--keep-text)"
    if form.has_short_years and counts.dates["century"] > (1 - ENOUGH) * counts.n:
        return (
            "the century of its dates, but years of two digits from 40 to 69 may be in the 1900s or in "
            f"the 2000s: write years with four digits, {keep}"
        )
    if form.is_decided:
        return ""
    example = counts.examples[0]
    state = "state dates='dd/mm' or dates='mm/dd' (--dates dd/mm or --dates mm/dd)"
    if form.has_short_years:
        return (
            f"the order of day, month and year, but dates such as {example} allow several: {state}, "
            f"{keep}"
        )
    return f"whether day or month comes first, but dates such as {example} allow both: {state}"


def _find_reason_to_leave_out(name: str, column: InferredColumn, files: Sequence[CsvFile]) -> str:
    """Return why a column is left out: "numbers the rows", "no values", or "" if it is read.

    A column is left out only if no file has a name for it in its header. name: the name that the
    reader gives such a column, "column 1" for the first; column: its inferred type and evidence;
    files: the CSV files.
    """
    if not all(name in file.dialect.unnamed for file in files):
        return ""
    if column.evidence.is_index and pa.types.is_integer(column.kind):
        return "numbers the rows"
    return "no values" if pa.types.is_null(column.kind) else ""


# -- what a description says of columns


def _add_format(column: InferredColumn, form: TextFormat) -> InferredColumn:
    """Return a copy of a column of CSV text with the format by which it becomes numbers or dates.

    form: the format. The copy also has the type of the format, notes on it such as the currency,
    and the markers of missing values among its texts. column: inferred types and evidence.
    """
    counts: TextCounts | None = column.evidence.counts
    details = str(form).partition(", ")[2]
    return replace(
        column,
        kinds=(form.type,),
        markers=column.markers if counts is None else column.markers | {*counts.markers},
        form=form,
        notes=(details,) if details else (),
    )


def describe_exceptions(column: InferredColumn) -> tuple[int, str]:
    """Count the texts of a column that do not have its format; return the number, and examples.

    The examples are a text, separated by commas. The result is (0, "") for columns without a
    format.
    """
    counts: TextCounts | None = None if column.evidence is None else column.evidence.counts
    if column.form is None or counts is None:
        return 0, ""
    n = counts.n - counts.count_known(column.form)
    examples = ", ".join(text for text, _ in counts.list_exceptions(column.form))
    return (n, examples) if n > 0 else (0, "")


def _add_notes(column: InferredColumn, decimal: str | None) -> InferredColumn:
    """Return a copy of a column without format, with notes for descriptions of the table.

    Notes are about leading zeros, numbers or dates that stay text, words that may mean a missing
    value, and integers that number the rows. decimal: the decimal mark, if it is known.
    """
    evidence: ColumnEvidence = column.evidence
    counts = evidence.counts
    if pa.types.is_integer(column.kind):
        if evidence.n_zeros and (evidence.length or evidence.n_zeros > evidence.n_rows // 100):
            return replace(column, kinds=(pa.string(),), notes=("leading zeros kept",))
        if evidence.is_index and evidence.n_rows >= _SHORT:
            return replace(column, notes=("numbers the rows: leave it out by drop= (--drop)",))
    if counts is None or not counts.n:
        return column
    notes = [note for note in (_describe_text(counts, decimal), _describe_markers(column)) if note]
    return replace(column, notes=(*notes,)) if notes else column


def _describe_text(counts: TextCounts, decimal: str | None) -> str:
    """Return a note on the numbers or dates in a column that is read as text; "" if it has none.

    counts: counts of the texts. decimal: the decimal mark; None: it is not known.
    """
    if counts.n_zeros:
        return "leading zeros kept"
    if min(counts.dates["day"], counts.dates["month"]) > (1 - ENOUGH) * counts.n:
        return "dates, with the day first in some and the month in others"
    mark = decimal or max(counts.thousands, key=counts.count_numbers)
    decorated = counts.others["decorated"]
    n_numbers = counts.count_numbers(mark) + counts.n_decorated
    if len(decorated) >= _FEW_NUMBERS and n_numbers >= ENOUGH * counts.n:
        ((example, _),) = decorated.most_common(1)
        return (
            f"although values such as {json.dumps(example, ensure_ascii=False)} are numbers with "
            "parentheses, a sign behind them or a unit: remove these to read numbers"
        )
    for form in (TextFormat(decimal=mark), TextFormat("date")):
        if counts.count_known(form) >= MANY * counts.n:
            return _describe_others(form, counts)
    return ""


def _describe_markers(column: InferredColumn) -> str:
    """Return a note on texts such as "?" that are read as categories, but may mean a missing value.

    The note names the option that makes them missing. As that option replaces the usual markers, it
    lists these as well. column: a column of text. Return "" if there are no such texts.
    """
    kept = column.evidence.counts.list_missing_words()
    if not kept:
        return ""
    quoted = [json.dumps(text, ensure_ascii=False) for text, _ in kept]
    quoted += [json.dumps(text) for text in sorted(column.markers) if text]
    found = join_names([f"{n:,} {text}" for text, (_, n) in zip(quoted, kept, strict=False)])
    options = " ".join(f"--missing {text}" for text in quoted)
    return (
        f"{found} kept as {'a category' if len(kept) == 1 else 'categories'}; "
        f"missing=[{', '.join(quoted)}] ({options}) makes them missing"
    )


def _describe_others(form: TextFormat, counts: TextCounts) -> str:
    """Return a note on a column of text of which many values are numbers or dates.

    form: the format that many values have. counts: counts of the texts. The note lists the most
    frequent texts that do not have this format. It names the option `missing` if the column would
    have the format without them.
    """
    n, listed = counts.count_known(form), counts.list_exceptions(form)[:_LISTED]
    # The fraction is not rounded to 100 %.
    what = f"although {min(100 * n / counts.n, 99.9):.3g} % of the values are {form.kind}s"
    n_others = counts.n - n
    if not n_others or not listed:
        return what
    quoted = [json.dumps(text, ensure_ascii=False) for text, _ in listed]
    examples = ", ".join(f"{text}: {n:,}" for text, (_, n) in zip(quoted, listed, strict=True))
    note = f"{what}, as {n_others:,} {'is' if n_others == 1 else 'are'} not ({examples})"
    for i in range(1, len(listed) + 1):
        if n >= ENOUGH * (counts.n - sum(times for _, times in listed[:i])):
            options = " ".join(f"--missing {text}" for text in quoted[:i])
            subject = "this text means" if i == 1 else "these texts mean"
            return (
                f"{note}; if {subject} missing, pass missing=[{', '.join(quoted[:i])}] ({options})"
            )
    return note


# -- what a model stores


def create_table_format(
    forms: Mapping[str, TextFormat], columns: InferredColumns, file: CsvFile, decimal: str | None
) -> TableFormat | None:
    """Return what a model stores of the format of its CSV files; None if nothing is unusual.

    It is what differs from plain UTF-8 CSV, or was stated by the user: separator, encoding, decimal
    mark, markers of missing values, and formats of columns of numbers and dates. forms: formats of
    columns, by name. columns: the inferred columns that are read, by name. file: the first file.
    decimal: the decimal mark that the files show, or None.
    """
    dialect, options = file.dialect, file.source
    # "nan" is what all readers take for a missing number.
    markers = {
        name: (*sorted(text for text in column.markers if text.strip().lower() not in ("", "nan")),)
        for name, column in columns.items()
    }
    is_usual = options.encoding is None and dialect.encoding.startswith("utf-")
    found = TableFormat(
        None if dialect.separator == file.separator else dialect.separator,
        None if is_usual else dialect.encoding,
        options.decimal_mark or ("," if decimal == "," else None),
        None if options.missing is None else (*options.missing,),
        {name: form for name, form in forms.items() if form != PLAIN},
        (*options.keep_text,),
        {name: texts for name, texts in markers.items() if texts},
    )
    return found if found.to_stored() else None
