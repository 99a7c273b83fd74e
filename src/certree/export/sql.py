"""Models as SQL statements that DuckDB and SQLite run.

A statement is a chain of selects, each of which reads the one before. Only the first and the last
select use names of the caller; the others have a prefix that no name of the caller has. Databases limit
the depth of expressions, and SQLite the depth of nested parentheses, so long sums are written flat.
"""

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import isqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from certree.export.calendar_steps import ZoneSteps, compute_part, count_days
from certree.export.formula import Formula, check_int64, check_utf8, extend_largest_threshold
from certree.interface.formatting import escape_controls
from certree.interface.positive_class import check_threshold
from certree.rows.calendar_parts import SECONDS_PER_DAY, SECONDS_PER_HOUR
from certree.rows.categories import UNKNOWN_CODE
from certree.rows.dates import DateColumn
from certree.tables.table_source import TableFormat
from certree.tree import LEAF
from certree.weights.rule_numbers import RuleNumbers

_PREDICTION, _RULE = "prediction", "rule"
# Begins a line of comments.
COMMENT = "-- "
_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def make_sql_statement(
    formula: Formula,
    table: str | Sequence[str],
    keep: Sequence[str],
    threshold: float | None = None,
    pos_label: Any = None,
    table_format: TableFormat | None = None,
) -> str:
    """Return a SELECT statement that predicts the rows of a table with a model.

    Parameters
    ----------
    formula : Formula
        The fitted model: its trees, and how their leaf values become predictions.
    table : str or sequence of str
        Name of the table, also with those of its database or schema: a text in which points separate
        them, or a sequence. It has a column with the name of each feature that a tree splits on,
        which holds numbers, the names of categories, dates, or time spans in days; NULL is a
        missing value.
    keep : sequence of str
        Columns of the table to select besides the predictions.
    threshold : float or None
        Predict the positive one of two classes if its probability is at least this; None: predict
        the most probable class.
    pos_label : object or None
        The positive class, which needs `threshold`; None: the second.
    table_format : TableFormat or None
        How the fit read the text of CSV files. Comments at the start of the statement list the columns
        that it converted to numbers and dates, and the texts that it read as missing values, as the
        statement does not convert text.

    Returns
    -------
    str
        Its columns are `keep`, "prediction" (class or number) and, for a classifier, "probability_"
        followed by each class. A regressor of several numbers has "prediction_0", "prediction_1",
        ... in place of "prediction". The last column is "rule" if rules have numbers.

    Raises
    ------
    TypeError
        If `keep` is not a sequence of strings.
    ValueError
        If the model predicts several quantiles and sorts them, names are empty, cannot be written
        in SQL or differ by case only, a class is an integer of more than 64 bits, or `threshold` or
        `pos_label` does not suit the model.
    """
    positive = check_threshold(formula.classes, threshold, pos_label)
    classes = [] if formula.classes is None else formula.labels
    if formula.link == "sorted":
        raise ValueError(
            "quantile must be a single number for an export to SQL, which cannot sort several "
            "quantiles: use to_onnx() or to_dict(), or fit a model for each quantile"
        )
    probability_names = _make_distinct([f"probability_{label}" for label in classes])
    n_numbers = 1 if classes else formula.n_outputs
    numbers = [_PREDICTION] if n_numbers == 1 else [f"{_PREDICTION}_{k}" for k in range(n_numbers)]
    results = [*numbers, *probability_names, *([] if formula.numbers is None else [_RULE])]
    _check_distinct_names(formula, keep, results)
    path = _split_table_name(table)
    prefix = _find_free_prefix([*path, *keep, *formula.names, *results])
    selects = _SelectChain.from_table(path, keep, prefix)
    selects.comments = _describe_conversions(formula, table_format or TableFormat())
    values = _add_features(formula, selects)
    outputs = [_format_output(formula, values, k) for k in range(formula.n_outputs)]
    rule = [] if formula.numbers is None else [_format_rule(formula, formula.numbers, values)]
    if not classes:
        predicted = [f"EXP({value})" if formula.link == "exp" else value for value in outputs]
        named = zip([*predicted, *rule], results, strict=True)
        return selects.build_statement(keep, [*named])
    # Trees whose rules have numbers have the link "identity": no select follows that of the scores.
    scores = selects.add("score", [*outputs, *rule])
    rule = scores[len(outputs) :]
    ranked, probabilities = _add_probabilities(formula, selects, scores[: len(outputs)])
    labels = [_format_literal(label) for label in classes]
    if threshold is None or positive is None:
        predicted_class = _select_largest(ranked, labels)
    else:
        is_positive = f"{probabilities[positive]} >= {_format_literal(float(threshold))}"
        predicted_class = f"CASE WHEN {is_positive} THEN {labels[positive]} "
        predicted_class += f"ELSE {labels[1 - positive]} END"
    named = zip([predicted_class, *probabilities, *rule], results, strict=True)
    return selects.build_statement(keep, [*named])


def _describe_conversions(formula: Formula, table_format: TableFormat) -> list[str]:
    """Return SQL comments that list the text columns which the fit converted, and its missing values.

    formula: the fitted model; table_format: how its fit read the text of CSV files. Only columns
    that a tree reads are listed; the result, a list of lines, is empty if there are none.
    """
    used = [formula.names[j] for j in _find_used_columns(formula)]
    formats, markers = table_format.columns, table_format.markers
    converted = [f"  {name}: {formats[name]}" for name in used if name in formats]
    missing = [f"  {name}: {', '.join(markers[name])}" for name in used if name in markers]
    lines = []
    if converted:
        lines += [
            "Before you run this statement, convert empty text to NULL, and the text of these columns "
            "to numbers or dates:",
            *converted,
        ]
    if missing:
        lines += [
            "Before you run this statement, convert these texts, which are missing values, to NULL:",
            *missing,
        ]
    # A line break in a name would end the comment.
    return [COMMENT + escape_controls(line) for line in lines]


# -- names -----------------------------------------------------------------------------------------


def _fold_case(name: str) -> str:
    """Return a name with its ASCII letters in lower case, the only letters whose case SQL ignores.

    Names with equal results are one name for DuckDB and SQLite.
    """
    return name.translate(_TO_LOWER)


def _make_distinct(names: Sequence[str]) -> list[str]:
    """Return the names in order, changed so that a database distinguishes all of them.

    A name that equals an earlier one, but for the case of ASCII letters, gets "_2", "_3", ... at
    the end: the first of these that differs from all names of the input and the result.
    """
    originals, taken = {_fold_case(name) for name in names}, set[str]()
    distinct = []
    for name in names:
        unique = name
        if _fold_case(name) in taken:
            numbered = (f"{name}_{number}" for number in count(2))
            unique = next(new for new in numbered if _fold_case(new) not in originals | taken)
        taken.add(_fold_case(unique))
        distinct.append(unique)
    return distinct


def _split_table_name(table: str | Sequence[str]) -> list[str]:
    """Split the name of a table into a list: database and schema, if given, and table.

    table: a string such as "schema.rows", in which points separate the names, or the names as a
    sequence. Raise ValueError if there is no name or more than three, and TypeError if a name is
    not a string.
    """
    names = table.split(".") if isinstance(table, str) else table
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"table must be a name, or a sequence of names, got {table!r}")
    if not 1 <= len(names) <= 3 or not all(names):
        raise ValueError(
            "table must be one to three names, such as 'table', 'schema.table' or, if a name contains "
            f"a point, ('schema', 'table'), got {table!r}"
        )
    return [*names]


def _find_free_prefix(taken: Iterable[str]) -> str:
    """Return the first of "m_", "m__", "m___", ... with which none of the taken names begins.

    taken: names of the table and of all its columns and results. Case does not count.
    """
    folded = [_fold_case(name) for name in taken]
    prefix = "m_"
    while any(name.startswith(prefix) for name in folded):
        prefix += "_"
    return prefix


def _check_distinct_names(formula: Formula, keep: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise an error if a database would mix up column names, as it ignores the case of letters.

    Parameters
    ----------
    formula : Formula
        The fitted model, whose feature names are columns of the table.
    keep : sequence of str
        Columns to select besides the predictions.
    outputs : sequence of str
        Names of the columns of predictions.

    Raises
    ------
    TypeError
        If `keep` is a string, or holds something else than strings.
    ValueError
        If two names in `keep` and `outputs` differ by case only, or not at all, or two names of
        features that trees split on differ by case only.
    """
    if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
        raise TypeError(f"keep must be a sequence of column names, such as ['id'], got {keep!r}")
    selected = dict[str, str]()
    for name in (*outputs, *keep):
        if _fold_case(name) in selected:
            raise ValueError(
                "keep must hold names that differ by more than case from each other and from the "
                f"columns of predictions, got {name!r} and {selected[_fold_case(name)]!r}: rename "
                "the column"
            )
        selected[_fold_case(name)] = name
    used = dict[str, str]()
    for feature in _find_used_columns(formula):
        name = formula.names[feature]
        first = used.setdefault(_fold_case(name), name)
        if first != name:
            raise ValueError(
                "feature names must differ by more than case for an export to SQL, got "
                f"{first!r} and {name!r}: rename one and fit again"
            )


def _check_text(text: str) -> str:
    """Return a text unchanged if a SQL statement can contain it.

    Raise ValueError if it contains a NUL character or has no encoding in UTF-8.
    """
    check_utf8(text)
    if "\0" in text:
        raise ValueError(
            f"names and classes must not contain a NUL, which ends a SQL statement, got {text!r}: "
            "rename it and fit again"
        )
    return text


def _quote_name(name: Any) -> str:
    """Return the name of a column or a table in double quotes, as SQL needs it.

    Raise ValueError if it is empty, contains a NUL character or has no encoding in UTF-8.
    """
    if not str(name):
        raise ValueError(
            "names of features, of the table and of its columns must not be empty for an export to "
            "SQL, got '': rename the feature and fit again, or pass another name of the table or column"
        )
    return '"' + _check_text(str(name)).replace('"', '""') + '"'


def _format_literal(value: Any) -> str:
    """Return `value`, a boolean, number or string, as a SQL constant.

    Floats have all their digits and an exponent, which makes them floats in every database. Raise
    ValueError if an integer has more than 64 bits, or SQL cannot contain the string.
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        check_int64(value)
        return str(value)
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return "'" + _check_text(str(value)).replace("'", "''") + "'"


# -- the chain of selects --------------------------------------------------------------------------


@dataclass(slots=True)
class _SelectChain:
    """A SQL statement that is being written, as a chain of SELECTs.

    The first select reads a table, each other one the select before. Each select passes on the
    columns that the caller keeps. Its result is MATERIALIZED: otherwise SQLite substitutes
    expressions into each other, which doubles the work for a column that is used twice.

    With the prefix "m_" the table is m_table, and a select of kind "x" is m_xs. Its columns are
    m_kept0, m_kept1, ... (the kept ones) and m_x0, m_x1, ... (one for each of its expressions).

    `from_table` makes a chain. The constructor takes the attributes in this order; `selects` may be
    left out, and is then an empty list.

    Attributes
    ----------
    prefix : str
        First letters of the names of selects and of their columns; no name of the caller begins
        with it.
    source : str
        The table or select that the next select reads, as it is written after FROM:
        "rows" AS m_table at first, then the name of the last select, such as m_xs.
    kept : list of str
        SQL expressions of the kept columns in the source: m_table."id", ... at first, then
        m_kept0, m_kept1, ...
    selects : list of str
        The text of the selects so far, each as "m_xs AS MATERIALIZED (SELECT ...)".
    comments : list of str
        Lines above the statement, each of which begins with `COMMENT`.
    """

    prefix: str
    source: str
    kept: list[str]
    selects: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    @classmethod
    def from_table(cls, path: Sequence[str], keep: Sequence[str], prefix: str) -> "_SelectChain":
        """Return a chain without selects, whose first select will read a table.

        Parameters
        ----------
        path : sequence of str
            Names of the table's database and schema, if there are any, and of the table, without
            quotes.
        keep : sequence of str
            Names of the columns of the table that each select passes on, without quotes.
        prefix : str
            First letters of all names that the chain makes, such as "m_".

        Returns
        -------
        _SelectChain
            The chain, whose source is the table under the name m_table, for the prefix "m_".
        """
        selects = cls(prefix, f"{'.'.join(map(_quote_name, path))} AS {prefix}table", [])
        selects.kept = [selects.format_column(name) for name in keep]
        return selects

    def format_column(self, name: str) -> str:
        """Return the expression for the table's column of this name, such as m_table."age".

        Only the first select, which reads the table, can use it. It contains the table's name, as
        SQLite otherwise reads the name of a column that does not exist as text. name: the name of
        the column, without quotes.
        """
        return f"{self.prefix}table.{_quote_name(name)}"

    def add(self, kind: str, expressions: Sequence[str], pass_on: Sequence[str] = ()) -> list[str]:
        """Append a select of some expressions, and return the names of its columns.

        Parameters
        ----------
        kind : str
            What the columns are, such as "x" or "score"; each select of a chain has another kind.
            The columns are named by the prefix of the chain, `kind` and a number: m_x0, m_x1, ...
            The select is named m_xs.
        expressions : sequence of str
            SQL expressions of columns of the current source. If there are none, no select is added.
        pass_on : sequence of str
            Columns of the current source that later selects need as well; they keep their names.

        Returns
        -------
        list of str
            The name of the column of each expression, in order. The new select is now the source,
            and the columns of the caller are called m_kept0, m_kept1, ... in it.
        """
        names = [f"{self.prefix}{kind}{number}" for number in range(len(expressions))]
        if names:
            kept = [f"{self.prefix}kept{number}" for number in range(len(self.kept))]
            columns = [*self.kept, *pass_on, *expressions]
            text = self._format_select(zip(columns, [*kept, *pass_on, *names], strict=True))
            self.source, self.kept = f"{self.prefix}{kind}s", kept
            self.selects.append(f"{self.source} AS MATERIALIZED (\n{text}\n)")
        return names

    def build_statement(self, keep: Sequence[str], columns: Sequence[tuple[str, str]]) -> str:
        """Return the whole statement, which ends with a select of the kept columns and `columns`.

        keep: names that the kept columns get in the result, in the order of `kept`. columns:
        further columns as pairs (SQL expression of the source, name in the result). Names are
        without quotes.
        """
        named = [*zip(self.kept, keep, strict=True), *columns]
        text = self._format_select((expression, _quote_name(name)) for expression, name in named)
        statement = f"WITH {', '.join(self.selects)}\n{text}" if self.selects else text
        return "\n".join([*self.comments, statement])

    def _format_select(self, columns: Iterable[tuple[str, str]]) -> str:
        """Return the text of a SELECT from the source, which is not added to the chain.

        columns: pairs (SQL expression, name of the column), the name in quotes if it needs them.
        """
        named = (
            name if name == expression else f"{expression} AS {name}"
            for expression, name in columns
        )
        return "SELECT\n" + ",\n".join(named) + f"\nFROM {self.source}"


# -- from columns to probabilities -----------------------------------------------------------------


def _find_used_features(formula: Formula) -> list[int]:
    """Return the indices of the features that any tree splits on, ascending, each of them once.

    The list is empty if all trees are single leaves. formula: the fitted model with its trees.
    """
    split_features = [tree.feature[~tree.is_leaf] for tree in formula.trees]
    features: list[int] = np.unique(np.concatenate(split_features)).tolist()
    return features


def _find_used_columns(formula: Formula) -> list[int]:
    """Return the indices of the table's columns that the trees read, ascending.

    The columns are the features that trees split on, and the dates of calendar parts. formula: the
    model.
    """
    parts = {j: formula.get_part(j) for j in _find_used_features(formula)}
    return sorted({j if part is None else part.feature for j, part in parts.items()})


def _add_features(formula: Formula, selects: "_SelectChain") -> dict[int, str]:
    """Add the selects that read the table's columns, and compute calendar parts of dates.

    Parameters
    ----------
    formula : Formula
        The fitted model with its trees.
    selects : _SelectChain
        The chain, which has no select yet.

    Returns
    -------
    dict of int to str
        SQL column with the value of each feature that a tree splits on, by the feature's index.
    """
    used = _find_used_features(formula)
    parts = {j: part for j in used if (part := formula.get_part(j)) is not None}
    plain, dated = [j for j in used if j not in parts], sorted({one[0] for one in parts.values()})
    given = [*plain, *dated]
    named = {j: selects.format_column(formula.names[j]) for j in given}
    columns = [_format_feature(formula, j, named[j]) for j in plain]
    texts = [f"CAST({named[j]} AS VARCHAR)" for j in dated]
    names = selects.add("x", [*columns, *texts])
    values = dict(zip(plain, names, strict=False))
    kept = _KeptColumns(selects, names)
    for date, text in zip(dated, names[len(plain) :], strict=True):
        zone = formula.dates[date].zone if formula.dates else None
        own = {j: one.part for j, one in parts.items() if one.feature == date}
        # Without a time zone the text has all parts but the weekday.
        direct = {j: _DIGITS[part] for j, part in own.items() if zone is None and part in _DIGITS}
        for j, digits in direct.items():
            values[j] = kept.keep(_format_digits(text, digits)).sql
        if len(direct) < len(own):
            second = _format_seconds(text, zone, kept)
            for j in own.keys() - direct.keys():
                values[j] = kept.keep(compute_part(own[j], second, kept.keep)).sql
    return values


# Place and number of the digits of parts in ISO dates.
_DIGITS: dict[str, tuple[int, int]] = {"month": (6, 2), "day": (9, 2), "hour": (12, 2)}


def _format_digits(text: str, digits: tuple[int, int]) -> "_Integer":
    """Return a SQL expression of the integer that some characters of a text form.

    text: SQL expression of the text. digits: position of the first character, from 1, and number of
    characters. The integer is 0 if the text ends before the first one.
    """
    first, length = digits
    return _Integer(f"CAST('0' || SUBSTR({text}, {first}, {length}) AS INTEGER)")


def _format_feature(formula: Formula, feature: int, column: str) -> str:
    """Return a SQL expression for a feature's value as the trees read it; NULL if it is missing.

    Parameters
    ----------
    formula : Formula
        The fitted model, which has the categories of the feature.
    feature : int
        Index of the feature.
    column : str
        SQL expression of the table's column, such as m_table."age".

    Returns
    -------
    str
        The value is a number, or a date, which is not converted. Categories become their codes in
        the model. Those that the model does not know become -1, or NULL if they count as missing
        values. NaN becomes NULL.
    """
    if _get_dates(formula, feature) is not None:
        return column
    names = formula.get_categories(feature)
    if names is not None and not names:
        return "NULL"
    has_texts = names is not None and isinstance(names[0], str)
    value = f"CAST({column} AS {'VARCHAR' if has_texts else 'DOUBLE PRECISION'})"
    if not has_texts:
        value = f"NULLIF({value}, 'NaN')"
    if names is None:
        return value
    cases = (f"WHEN {_format_literal(name)} THEN {code}" for code, name in enumerate(names))
    if not formula.has_code_of_unknown:
        return f"CASE {value} {' '.join(cases)} END"
    codes = f"CASE {value} {' '.join(cases)} ELSE {int(UNKNOWN_CODE)} END"
    return f"CASE WHEN {value} IS NOT NULL THEN {codes} END"


class _Integer(NamedTuple):
    """A SQL expression of a non-negative integer, with which one computes as with a number.

    The operators +, -, *, % and // take an integer or another `_Integer`. They return the
    `_Integer` of the combined expression.

    Attributes
    ----------
    sql : str
        The text of the expression.
    """

    sql: str

    def __add__(self, other: Any) -> "_Integer":
        return _Integer(f"({self.sql} + {_get_sql(other)})")

    def __sub__(self, other: Any) -> "_Integer":
        return _Integer(f"({self.sql} - {_get_sql(other)})")

    def __mul__(self, other: Any) -> "_Integer":
        return _Integer(f"({self.sql} * {_get_sql(other)})")

    def __mod__(self, other: Any) -> "_Integer":
        return _Integer(f"({self.sql} % {_get_sql(other)})")

    def __floordiv__(self, other: Any) -> "_Integer":
        return _Integer(f"(({self.sql} - {self.sql} % {_get_sql(other)}) / {_get_sql(other)})")


def _get_sql(number: Any) -> str:
    return number.sql if isinstance(number, _Integer) else str(int(number))


@dataclass(slots=True)
class _KeptColumns:
    """Columns for intermediate results in a chain of SELECTs: each gets a SELECT of its own.

    Attributes
    ----------
    selects : _SelectChain
        The chain, to which selects are added.
    names : list of str
        Columns of the chain's last select that later selects may need.
    n_steps : int
        Number of selects that were added.
    """

    selects: _SelectChain
    names: list[str]
    n_steps: int = 0

    def keep(self, number: _Integer) -> _Integer:
        """Add a SELECT that computes an expression as a new column, and return the column's name.

        number: the expression. The result is an `_Integer`, too; expressions that contain it stay
        short, as they contain a name instead of the text of `number`.
        """
        (name,) = self.selects.add(f"step{self.n_steps}_", [number.sql], self.names)
        self.n_steps += 1
        self.names.append(name)
        return _Integer(name)


def _format_seconds(text: str, zone: str | None, kept: _KeptColumns) -> _Integer:
    """Return a SQL expression of the seconds since 1970, in local time, of a date in ISO format.

    `SHIFT_SECONDS`, the seconds of 2000 years, are added so that it is not negative. Fractions of
    seconds are dropped. A date without a time is midnight, and one without an offset is in UTC; the
    offset is that of the text, such as "+00:00" or "+02".

    text: SQL column with the text. zone: time zone of the result; None: that of the text without
    its offset. kept: the chain of SELECTs, to which columns for intermediate results are added.
    """
    year, month, day, hour, minute, second = (
        _format_digits(text, digits)
        for digits in ((1, 4), (6, 2), (9, 2), (12, 2), (15, 2), (18, 2))
    )
    days = kept.keep(count_days(kept.keep(year), kept.keep(month), day, kept.keep))
    seconds = kept.keep(days * SECONDS_PER_DAY + hour * SECONDS_PER_HOUR + minute * 60 + second)
    if zone is None:
        return seconds
    rest = f"SUBSTR({text}, 20)"
    sign = kept.keep(_Integer(f"(INSTR({rest}, '+') + INSTR({rest}, '-'))"))
    hours, minutes = (
        f"CAST('0' || SUBSTR({rest}, {sign.sql} + {first}, 2) AS INTEGER)" for first in (1, 4)
    )
    size = f"({hours} * 3600 + {minutes} * 60)"
    ahead = (
        f"CASE WHEN {sign.sql} = 0 THEN 0 WHEN INSTR({rest}, '-') > 0 THEN -{size} ELSE {size} END"
    )
    utc = kept.keep(seconds - _Integer(ahead))
    return kept.keep(utc + _Integer(_format_offset(utc.sql, ZoneSteps.find(zone))))


def _format_offset(second: str, steps: ZoneSteps) -> str:
    """Return a SQL expression of the offset of a time zone from UTC at a moment, in seconds.

    second: SQL expression of the moment: seconds since 1970 UTC plus `SHIFT_SECONDS`, those of 2000
    years. steps: the zone's offsets and the moments at which they change.
    """
    *earlier, last = steps.offsets.tolist()
    if not earlier:
        return str(last)
    cases = "".join(
        f"WHEN {second} < {start} THEN {offset}\n"
        for start, offset in zip(steps.starts.tolist(), earlier, strict=True)
    )
    return f"CASE {cases}ELSE {last} END"


def _get_dates(formula: Formula, feature: int) -> DateColumn | None:
    """Return the description (kind, time zone, unit) of a date feature; None for other features.

    formula: the model to export; feature: index of the feature. For a feature of time spans the
    result is None, as they are exported as numbers.
    """
    dates = None if formula.dates is None else formula.dates.get(feature)
    return None if dates is None or dates.kind == "span" else dates


def _add_probabilities(
    formula: Formula, selects: _SelectChain, scores: list[str]
) -> tuple[list[str], list[str]]:
    """Add selects that turn the outputs of a classifier into probabilities by its link.

    The link is "identity" (outputs are probabilities; no select is added), "logistic" (the output
    is the log odds of the second class), "softmax", or "shares" (powers divided by their sum).

    Parameters
    ----------
    formula : Formula
        The fitted classifier of K classes: its trees, and how their leaf values become predictions.
    selects : _SelectChain
        The chain; selects are added to it.
    scores : list of str
        Names of the columns that hold the n_outputs outputs in the chain's source, which is its
        last select so far.

    Returns
    -------
    ranked : list of K str
        A SQL expression for each class; the predicted class has the largest value.
    probabilities : list of K str
        A SQL expression for the probability of each class. Both read the chain's last select.
    """
    if formula.link == "identity":
        return scores, scores
    ranked = scores
    if formula.link == "shares":
        if formula.has_second_class_only:
            lower_cases = f"CASE WHEN {scores[0]} < 0e0 THEN 0e0 WHEN {scores[0]} > 1e0 THEN 1e0"
            scores = selects.add("second", [f"{lower_cases} ELSE {scores[0]} END"])
            ranked = [f"1e0 - {scores[0]}", scores[0]]
        power = _format_literal(float(formula.power))
        terms = ranked if formula.power == 1 else [f"POWER({score}, {power})" for score in ranked]
    else:
        ranked = ["0e0", scores[0]] if formula.link == "logistic" else scores
        (largest,) = selects.add("most", [_select_largest(ranked, ranked)], scores)
        terms = [f"EXP({score} - {largest})" for score in ranked]
    terms = selects.add("part", terms, scores)
    (total,) = selects.add("total", [_join_flat(terms, " + ")], [*scores, *terms])
    return ranked, [f"{term} / {total}" for term in terms]


def _select_largest(numbers: Sequence[str], results: Sequence[str]) -> str:
    """Return a CASE expression for the result that belongs to the largest number.

    numbers: SQL expressions that are compared; of equal numbers the first counts. results: SQL
    expressions, one for each number: `numbers` again for their maximum, or the classes for the
    predicted class. A CASE is used because databases have different functions for it.
    """
    cases = "".join(
        f"WHEN {_join_flat([f'{number} >= {other}' for other in numbers[k + 1 :]], ' AND ')} "
        f"THEN {results[k]}\n"
        for k, number in enumerate(numbers[:-1])
    )
    return f"CASE {cases}ELSE {results[-1]} END" if cases else results[-1]


def _join_flat(terms: Sequence[str], operator: str) -> str:
    """Return terms joined by an operator, in groups: "((a + b) + (c + d))" for four terms, " + ".

    operator: its text, with spaces around it. There are about sqrt(n) groups of n terms, so that
    the depth of the parsed expression is about 2 sqrt(n), not n: databases limit it. A single term
    is returned unchanged.
    """
    if len(terms) == 1:
        return terms[0]
    size = isqrt(len(terms) - 1) + 1
    groups = [operator.join(terms[k : k + size]) for k in range(0, len(terms), size)]
    return f"(({f'){operator}('.join(groups)}))"


def _format_output(formula: Formula, values: dict[int, str], k: int) -> str:
    """Return a SQL expression for output k of a model, before its link.

    The output is the value of the only tree, the mean of a forest, or the start plus the sum of
    boosted trees. The link, which is not part of it, turns outputs into probabilities or numbers,
    such as by softmax.

    Parameters
    ----------
    formula : Formula
        The fitted model: its trees, and how their leaf values become predictions.
    values : dict of int to str
        SQL column with the value of each feature that a tree splits on, by the feature's index.
    k : int
        Index of the output.

    Returns
    -------
    str
    """
    terms = [_format_tree(formula, number, values, k) for number in range(len(formula.trees))]
    if formula.kind == "tree":
        return terms[0]
    if formula.kind == "forest":
        return f"{_join_flat(terms, ' + ')} / {_format_literal(float(len(terms)))}"
    return f"{_format_literal(float(formula.start[k]))} + {_join_flat(terms, ' + ')}"


# -- trees -----------------------------------------------------------------------------------------


class _TreeExpression(NamedTuple):
    """The SQL expression of the value that a node and its subtree give to a row.

    The value is that of the row's leaf, or the weighted mean of several leaves if the row goes to
    both children of a node. The constructor takes the attributes in this order.

    Attributes
    ----------
    cases : str
        "WHEN ... THEN ..." clauses, of which the first that holds gives the value; "" if there are
        none, as at a leaf.
    otherwise : str
        SQL expression of the value if no clause holds.
    nesting : int
        Number of CASE expressions inside each other, which databases limit; 0 at a leaf.
    """

    cases: str
    otherwise: str
    nesting: int

    @property
    def sql(self) -> str:
        """The whole SQL expression: a CASE with all clauses, or `otherwise` if there are none."""
        return f"CASE {self.cases}ELSE {self.otherwise} END" if self.cases else self.otherwise


def _format_tree(formula: Formula, number: int, values: dict[int, str], k: int) -> str:
    """Return a SQL expression for the value that a tree gives to a row, for output k.

    A node may send rows that lack the value of its feature to both children. Such a row gets the
    mean of the leaves that it reaches, weighted by the fractions of the row in these leaves.

    Parameters
    ----------
    formula : Formula
        The fitted model: its trees, and how their leaf values become predictions.
    number : int
        Index of the tree in `formula.trees`.
    values : dict of int to str
        For the index of each feature that a tree splits on, the SQL column with the feature's
        number or category code, such as m_x0.
    k : int
        Index of the output.

    Returns
    -------
    str
    """
    tree = formula.trees[number]
    leaf_values = [_format_literal(float(value)) for value in tree.value[:, k]]
    plain = _build_expression(formula, number, values, leaf_values, "ignore")
    features = np.unique(tree.feature[tree.missing_both])
    if not len(features):
        return plain.sql
    lacking = _join_flat([f"{values[feature]} IS NULL" for feature in features], " OR ")
    blended = _build_expression(formula, number, values, leaf_values, "average")
    return f"CASE WHEN {lacking} THEN {blended.sql}\n{plain.cases}ELSE {plain.otherwise} END"


def _format_rule(formula: Formula, numbers: RuleNumbers, values: dict[int, str]) -> str:
    """Return a SQL expression for the number of the rule that a row satisfies, such as 'R3'.

    The expression is NULL for a row that goes to both children of a node and satisfies no rule.
    formula: the fitted model, which has one tree; numbers: the numbers of its leaves; values: SQL
    column with the value of each feature that the tree splits on, by the feature's index.
    """
    names = [_format_literal(numbers.get_name(node)) for node in range(formula.trees[0].n_nodes)]
    return _build_expression(formula, 0, values, names, "null").sql


def _build_expression(
    formula: Formula,
    number: int,
    values: dict[int, str],
    leaf_values: Sequence[str],
    on_both: Literal["ignore", "average", "null"],
) -> _TreeExpression:
    """Return the SQL expression of the value that a tree gives to a row, built from the leaves up.

    Parameters
    ----------
    formula : Formula
        The fitted model with its trees.
    number : int
        Index of the tree in `formula.trees`.
    values : dict of int to str
        SQL column with the value of each feature that a tree splits on, by the feature's index.
    leaf_values : sequence of str, length m
        SQL constant that each leaf gives to its rows; those of other nodes are not used.
    on_both : {"ignore", "average", "null"}
        What a row gets that lacks the value of a node's feature at the nodes of the tree with
        `missing_both`, which send it to both children. "average": the weighted mean of both;
        "null": NULL; "ignore": the expression is only right for rows that have these values.

    Returns
    -------
    _TreeExpression
        The expression of the root, for the whole tree. At each node the child with the larger
        `nesting` comes last, in the ELSE, which needs no CASE of its own.
    """
    tree = formula.trees[number]
    left_fraction = formula.compute_missing_left_fractions(number)
    expressions: dict[int, _TreeExpression] = {}
    for node in range(tree.n_nodes - 1, -1, -1):
        left = int(tree.left[node])
        if left == LEAF:
            expressions[node] = _TreeExpression("", leaf_values[node], 0)
            continue
        x = values[int(tree.feature[node])]
        conditions = _format_conditions(formula, number, node, values)
        first, last = sorted((left, left + 1), key=lambda child: expressions[child].nesting)
        goes_first, goes_last = conditions[first - left], conditions[last - left]
        inner, outer = expressions.pop(first), expressions.pop(last)
        nesting = max(outer.nesting, inner.nesting + 1)
        if on_both == "average" and tree.missing_both[node]:
            fraction = float(left_fraction[node])
            fraction = fraction if first == left else 1 - fraction
            last_fraction = _format_fraction(goes_last, goes_first, 1 - fraction)
            first_fraction = _format_fraction(goes_first, goes_last, fraction)
            text = f"({outer.sql} * {last_fraction}\n+ {inner.sql} * {first_fraction})"
            expressions[node] = _TreeExpression("", text, nesting)
        else:
            lacking = ""
            if on_both == "null" and tree.missing_both[node]:
                lacking = f"WHEN {x} IS NULL THEN NULL\n"
            elif tree.missing_left[node] == (first == left):
                goes_first = f"({goes_first} OR {x} IS NULL)"
            cases = f"{lacking}WHEN {goes_first} THEN {inner.sql}\n{outer.cases}"
            expressions[node] = _TreeExpression(cases, outer.otherwise, nesting)
    return expressions[0]


def _format_fraction(goes: str, goes_not: str, if_missing: float) -> str:
    """Return a SQL expression for the fraction of a row that goes to a child of a node.

    Parameters
    ----------
    goes, goes_not : str
        SQL conditions under which a row that has the value of the node's feature goes to this
        child, or to the other one.
    if_missing : float
        The fraction for a row that lacks the value, between 0 and 1.

    Returns
    -------
    str
        A CASE expression with the result 1, 0 or `if_missing`.
    """
    return (
        f"CASE WHEN {goes} THEN 1e0 WHEN {goes_not} THEN 0e0 ELSE {_format_literal(if_missing)} END"
    )


def _format_conditions(
    formula: Formula, number: int, node: int, values: dict[int, str]
) -> tuple[str, str]:
    """Return the SQL conditions under which rows go left, and go right, at a node.

    The conditions are for rows that have the value of the node's feature.

    Parameters
    ----------
    formula : Formula
        The fitted model with its trees.
    number : int
        Index of the tree in `formula.trees`.
    node : int
        Index of a node of the tree that is not a leaf.
    values : dict of int to str
        SQL column with the value of each feature that a tree splits on, by the feature's index.

    Returns
    -------
    left, right : str
        The two conditions, such as "m_x0 <= 1.5e0" and "m_x0 > 1.5e0". Their results for rows that
        lack the value are not used.
    """
    tree = formula.trees[number]
    value, members = values[int(tree.feature[node])], tree.category_set(node).tolist()
    if not members:
        threshold = float(tree.threshold[node])
        dates = _get_dates(formula, int(tree.feature[node]))
        limit = threshold if dates is None else dates.format_utc(threshold)
        if limit is None or np.isinf(extend_largest_threshold(tree.threshold[node])):
            every, no = f"{value} IS NOT NULL", f"{value} <> {value}"
            return (every, no) if threshold > 0 else (no, every)
        return f"{value} <= {_format_literal(limit)}", f"{value} > {_format_literal(limit)}"
    inside = _join_flat([f"{value} = {code}" for code in members], " OR ")
    outside = f"NOT {inside}"
    return (outside, inside) if tree.unseen_left[node] else (inside, outside)
