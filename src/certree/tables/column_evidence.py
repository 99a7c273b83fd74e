"""Count, in one pass over all rows, what the values of a CSV column show about their format.

Counts of blocks and files add up, so that the format of a column is that of all rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certree.tables.arrow import pa, pc
from certree.tables.column_types import narrow_text_types
from certree.tables.text_formats import (
    DAY_FIRST,
    ENOUGH,
    MISSING_AMONG_NUMBERS,
    MONTH_FIRST,
    YEAR_FIRST,
    TextFormat,
    convert_texts,
    describe_dates,
    list_thousands,
    number_pattern,
    split_symbols,
    trim,
)

# Words of people who have no value to write, in lower case, which are categories unless they are stated
# as missing values.
NO_ANSWERS = (
    *("unknown", "missing", "not available", "not specified", "not stated", "no answer", "n.d."),
    *("unbekannt", "keine angabe", "ohne angabe", "nicht angegeben", "fehlt", "n.v.", "inconnu"),
    *("non renseigné", "desconocido", "sconosciuto", "leer", "blank", "#n/v", "tbd"),
)
# Fraction of numbers in a column of text that a description mentions.
MANY = 0.5
# Examples that are kept; and most distinct exceptions that are counted, those of the largest counts.
LISTED, _COUNTED = 5, 100
# Stands for the symbol of zeros, which are the same with any symbol.
_ANY_SYMBOL = "any"
# A number that is 1234 or 1.234, by its decimal mark; and numbers that show no decimal mark.
_AMBIGUOUS = r"^[+\-]?[1-9]\d{0,2}[.,]\d{3}$"
# Numbers that the formats of text do not have: in parentheses, before a sign, and before a unit.
_NUMBER = r"\d[\d.,]*"
_DECORATED = (
    rf"^(?:\(\s*{_NUMBER}\s*\)|{_NUMBER}\s*[\-\x{{2212}}]|{_NUMBER}\s+[\p{{L}}°/²³]{{1,6}}|"
    r"\d+[.,]\d+\p{L}{1,4})$"
)
# All formats of dates of which the order is known. They convert dates with and without a time.
_DATE_FORMATS = tuple(
    TextFormat("date", order=order, has_time=True, has_short_years=has_short_years)
    for order in (DAY_FIRST, MONTH_FIRST, YEAR_FIRST)
    for has_short_years in (False, True)
    if order != YEAR_FIRST or not has_short_years
)
_NO_MARK = r"^\s*[+\-]?(?:\d+|[1-9]\d{0,2}\.\d{3})\s*$"


@dataclass(slots=True)
class TextCounts:
    """Counts of the texts of a column that have the form of numbers or dates.

    Parameters
    ----------
    n : int
        Number of texts that are not markers of missing values.
    numbers : Counter of (str, str)
        Number of texts that are numbers, by decimal mark ("." or ",") and symbol (currency or
        percent sign, or ""). Numbers without a mark, which most are, count for both marks.
    n_ambiguous : int
        Number of texts such as 1.234 or 1,234, which may mean 1234.
    n_zeros : int
        Number of integers with a leading zero.
    thousands : dict of str to set of str
        Separators of thousands that occur, by decimal mark.
    dates : Counter of str
        Number of texts for which a mask of `describe_dates` is true, by name of the mask: "any" and
        "year" count dates with day or month, and with the year first; "day" and "month" those whose
        first or second part exceeds 12; others, such as "time", dates of special forms. Also the
        number of texts that a format converts, by `_get_date_key`.
    examples : list of str
        The first texts, at most five.
    others : dict of Counter of str
        How often texts occur, in five kinds of entries: texts that are no numbers, by decimal mark;
        that are no dates, by "date"; that are dates, but not of a format, by `_get_date_key`; that
        are numbers, by decimal mark and symbol; and those of `n_decorated`, by "decorated". Each
        entry has at most the 100 most frequent texts.
    markers : Counter of str
        How often each marker of missing values occurs.
    n_decorated : int
        Number of texts with a number in parentheses, before a sign or before a unit.
    """

    n: int = 0
    numbers: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_ambiguous: int = 0
    n_zeros: int = 0
    thousands: dict[str, set[str]] = field(default_factory=lambda: {".": set(), ",": set()})
    dates: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    others: defaultdict[str | tuple[str, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    markers: Counter[str] = field(default_factory=Counter)
    n_decorated: int = 0

    def add_texts(self, texts: Any) -> None:
        """Add the counts of more texts to this object. texts: Arrow array of strings without nulls."""
        if not len(texts):
            return
        distinct = pc.value_counts(texts)
        values, counts = distinct.field("values"), distinct.field("counts").to_numpy()
        bare = trim(values)
        is_marker = pc.is_in(bare, pa.array(MISSING_AMONG_NUMBERS))
        chosen = is_marker.to_numpy(zero_copy_only=False)
        texts = values.filter(is_marker).to_pylist()
        self.markers += Counter(dict(zip(texts, counts[chosen].tolist(), strict=True)))
        is_value = pc.invert(is_marker)
        values, bare = values.filter(is_value), bare.filter(is_value)
        counts = counts[is_value.to_numpy(zero_copy_only=False)]
        self.n += int(counts.sum())
        self.examples += values.slice(0, LISTED - len(self.examples)).to_pylist()
        self._add_numbers(values, bare, counts)
        is_decorated = pc.match_substring_regex(bare, _DECORATED)
        self.n_decorated += _count(is_decorated, counts)
        self._count_others("decorated", values, counts, is_decorated)
        masks = describe_dates(bare)
        for name, mask in masks.items():
            self.dates[name] += _count(mask, counts)
        is_date = pc.or_(masks["any"], masks["year"])
        self._count_others("date", values, counts, pc.invert(is_date))
        self._add_dates(values.filter(is_date), counts[is_date.to_numpy(zero_copy_only=False)])

    def _add_numbers(self, values: Any, bare: Any, counts: Any) -> None:
        """Add the counts of the numbers among distinct texts to this object.

        The fields `numbers`, `thousands`, `n_ambiguous`, `n_zeros` and `others` change. values: the
        distinct texts, an Arrow array. bare: the texts without white space around them, an Arrow
        array. counts: number of occurrences of each text, an array of integers.
        """
        numbers, symbols = split_symbols(bare)
        is_zero = pc.match_substring_regex(numbers, r"^0+(?:[.,]0*)?$")
        symbols = pc.if_else(is_zero, _ANY_SYMBOL, symbols)
        distinct = pc.unique(symbols).to_pylist()
        for decimal in self.thousands:
            is_number = pc.match_substring_regex(numbers, number_pattern(decimal))
            for symbol in distinct:
                chosen = pc.and_(is_number, pc.equal(symbols, symbol))
                self.numbers[decimal, symbol] += _count(chosen, counts)
                self._count_others((decimal, symbol), values, counts, chosen)
            found = numbers.filter(is_number)
            self.thousands[decimal] |= {
                sign
                for sign in list_thousands(decimal)
                if pc.any(pc.match_substring(found, sign)).as_py()
            }
            self._count_others(decimal, values, counts, pc.invert(is_number))
        self.n_ambiguous += _count(pc.match_substring_regex(numbers, _AMBIGUOUS), counts)
        self.n_zeros += _count(pc.match_substring_regex(numbers, r"^0\d+$"), counts)

    def _add_dates(self, values: Any, counts: Any) -> None:
        """Count the distinct texts that each format of dates converts, and those that it does not.

        Days that do not exist, such as 31/02/2024, do not convert; neither does 04/13/2024 if the
        day is first. values: texts in the form of dates. counts: number of occurrences of each text,
        an array.
        """
        for form in _DATE_FORMATS if len(values) else ():
            key, (found, _) = _get_date_key(form), convert_texts(values, form)
            self.dates[key] += _count(found.is_valid(), counts)
            self._count_others(key, values, counts, found.is_null())

    def _count_others(
        self, key: str | tuple[str, str], values: Any, counts: Any, mask: Any
    ) -> None:
        """Add the counts of the texts that a mask selects to one entry of the field `others`.

        The entry keeps the 100 most frequent texts. key: key of the entry: a decimal mark, "date",
        "decorated", or a pair of decimal mark and symbol. values: distinct texts, an Arrow array.
        counts: number of occurrences of each text, an array of integers. mask: True for texts that
        belong to the key, an Arrow array of bool.
        """
        chosen = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        if len(chosen) > _COUNTED:
            chosen = chosen[np.argsort(-counts[chosen], kind="stable")[:_COUNTED]]
        texts = values.take(pa.array(chosen)).to_pylist()
        found = Counter(dict(zip(texts, counts[chosen].tolist(), strict=True)))
        self.others[key] = _keep_most_common(self.others[key] + found)

    def __add__(self, other: TextCounts) -> TextCounts:
        """Return the counts of the texts of self and other together; neither is changed.

        other: the counts of other texts of the same column.
        """
        keys = {**self.others, **other.others}
        others = {key: _keep_most_common(self.others[key] + other.others[key]) for key in keys}
        return TextCounts(
            self.n + other.n,
            self.numbers + other.numbers,
            self.n_ambiguous + other.n_ambiguous,
            self.n_zeros + other.n_zeros,
            {mark: signs | other.thousands[mark] for mark, signs in self.thousands.items()},
            self.dates + other.dates,
            [*self.examples, *other.examples][:LISTED],
            defaultdict(Counter, others),
            self.markers + other.markers,
            self.n_decorated + other.n_decorated,
        )

    def list_missing_words(self) -> list[tuple[str, int]]:
        """Return texts that may mean a missing value, such as "unknown", as (text, count) pairs.

        The column is one of text, in which these are categories unless the user states them as
        missing.
        """
        words = Counter(self.markers)
        for text, n in self.others["date"].items():
            if text.strip().lower() in NO_ANSWERS:
                words[text] = n
        return [(text, n) for text, n in words.most_common() if text.strip()]

    def choose_symbol(self) -> str:
        """Return the currency or percent sign of most numbers; "" if none has one.

        Also return "" if the sign is "%", but more numbers lack it.
        """
        n_by_symbol = Counter[str]()
        for (_, symbol), n in self.numbers.items():
            n_by_symbol[symbol] += n
        marked = {one: n for one, n in n_by_symbol.items() if one and one != _ANY_SYMBOL and n}
        if not marked:
            return ""
        symbol = max(marked, key=lambda one: marked[one])
        return "" if symbol == "%" and marked[symbol] < n_by_symbol[""] else symbol

    def count_known(self, form: TextFormat) -> int:
        """Return how many texts have the format `form`: dates, or numbers with its decimal mark.

        Of numbers those count that have the currency or percent sign of most numbers, or no sign,
        unless that sign is "%".
        """
        if form.kind == "date":
            every = max(self.dates["any"], self.dates["year"])
            return self.dates[_get_date_key(form)] if form.order else every
        return self.count_numbers(form.decimal)

    def count_numbers(self, decimal: str) -> int:
        """Return how many texts are numbers with a decimal mark and the column's symbol.

        The symbol is the currency or percent sign of most numbers, if they have one. Numbers without
        a symbol count too, unless it is "%". decimal: "." or ","; numbers without a mark count for
        both.
        """
        return sum(self.numbers[decimal, one] for one in self._list_symbols())

    def _list_symbols(self) -> set[str]:
        """Return the currency or percent signs that numbers of the column may have, as a set.

        The set has the sign of most numbers, and "any", which stands for zeros, as these are the
        same with every sign. It has "", no sign, unless the sign of most numbers is "%".
        """
        symbol = self.choose_symbol()
        return {symbol, _ANY_SYMBOL} if symbol == "%" else {symbol, _ANY_SYMBOL, ""}

    def list_exceptions(self, form: TextFormat) -> list[tuple[str, int]]:
        """Return the at most five most frequent texts without the format `form`, with their counts.

        Numbers have the format if they have its decimal mark, and the currency or percent sign of
        most numbers, or no sign, unless that sign is "%".
        """
        if form.kind == "date":
            wrong = self.others[_get_date_key(form)] if form.order else Counter[str]()
            return (self.others["date"] + wrong).most_common(LISTED)
        symbols = {one for _, one in self.numbers} - self._list_symbols()
        found = Counter(self.others[form.decimal])
        for symbol in sorted(symbols):
            found += self.others[form.decimal, symbol]
        return found.most_common(LISTED)


def _get_date_key(form: TextFormat) -> str:
    """Return the key of a format of dates in the fields `dates` and `others` of `TextCounts`."""
    return f"{form.order}/yy" if form.has_short_years else form.order


def _keep_most_common(counts: Counter[str]) -> Counter[str]:
    """Return the 100 largest counts of texts, or `counts` itself if it has no more entries."""
    return counts if len(counts) <= _COUNTED else Counter(dict(counts.most_common(_COUNTED)))


def _count(mask: Any, counts: Any) -> int:
    """Return the sum of the counts for which a mask is true.

    mask: an Arrow array of bool; counts: an array of integers of the same length.
    """
    return int(counts[pc.fill_null(mask, False).to_numpy(zero_copy_only=False)].sum())


@dataclass(slots=True)
class ColumnEvidence:
    """What the rows of a CSV file that have been read so far show about the type of a column.

    Parameters
    ----------
    kinds : tuple of pyarrow.DataType
        Types to which all values so far convert.
    markers : Counter of str
        How often each marker of missing values has occurred.
    counts : TextCounts or None
        Counts of the texts; None as long as all values are numbers in plain form.
    n_uncounted : int
        Number of blocks at the start of the file that are not in `counts`.
    has_point : bool
        Whether a number shows that the decimal mark is a point.
    n_zeros : int
        Number of integers with a leading zero, while the column is one of integers.
    length : int or None
        Number of characters of each integer; None if they differ, 0 if there are none.
    first : int or None
        First value if the values so far are consecutive integers; None if they are not.
    n_rows : int
        Number of rows so far.
    """

    kinds: tuple[Any, ...] = ()
    markers: Counter[str] = field(default_factory=Counter)
    counts: TextCounts | None = None
    n_uncounted: int = 0
    has_point: bool = False
    n_zeros: int = 0
    length: int | None = 0
    first: int | None = 0
    n_rows: int = 0

    def add(self, values: Any, n_rows: int, number: int, has_comma: bool) -> None:
        """Add the evidence of one block of rows to this object.

        Parameters
        ----------
        values : pyarrow.Array of strings
            The values of the block that are not missing.
        n_rows : int
            Number of rows of the block.
        number : int
            Index of the block in the file, from 0.
        has_comma : bool
            Whether values are separated by commas, so that the decimal mark of numbers is a point.
        """
        was_text = len(self.kinds) == 1
        self.kinds = narrow_text_types(self.kinds, values)
        if any(map(pa.types.is_integer, self.kinds)):
            self._add_integers(values, n_rows)
        elif any(map(pa.types.is_floating, self.kinds)):
            if not has_comma:
                self._add_floats(values)
        elif len(self.kinds) == 1:
            counts = self.counts
            if counts is None and not was_text:
                counts = self.counts = TextCounts()
                self.n_uncounted = number
            if counts is not None:  # The text of a column that must be kept is not counted.
                counts.add_texts(values)

    def _add_integers(self, texts: Any, n_rows: int) -> None:
        """Update this object by a block of rows of a column of integers.

        These fields change: `n_zeros`, the number of values with leading zeros; `length`, the
        common number of characters of all values; `first`, the first value while values are
        consecutive; and `n_rows`.

        texts: the values of the block that are not missing, an Arrow array. n_rows: number of rows
        of the block.
        """
        _, ends, words = texts.buffers()
        if len(texts):
            bounds = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
            starts, lengths = bounds[:-1], np.diff(bounds)
            n = int(lengths[0]) if (lengths == lengths[0]).all() else None
            self.length = n if self.length in (0, n) else None
            zeros = np.frombuffer(words, np.uint8)[starts] == ord("0")
            self.n_zeros += int((zeros & (lengths > 1)).sum())
        self._add_consecutive(texts, n_rows)
        self.n_rows += n_rows

    def _add_consecutive(self, texts: Any, n_rows: int) -> None:
        """Set `first` (the first value) to None if values are not consecutive, also between blocks.

        texts: values of the block, an Arrow array without nulls. n_rows: number of rows of the
        block.
        """
        if self.first is None or not n_rows:
            return
        if len(texts) < n_rows:
            self.first = None
            return
        try:
            values = texts.cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:  # There are spaces around them.
            self.first = None
            return
        if not self.n_rows:
            self.first = int(values[0])
        if values[0] != self.first + self.n_rows or not (np.diff(values) == 1).all():
            self.first = None

    def _add_floats(self, texts: Any) -> None:
        """Set `has_point` if a text shows that the decimal mark is a point. texts: plain numbers."""
        if not self.has_point:
            self.has_point = not pc.all(pc.match_substring_regex(texts, _NO_MARK)).as_py()

    @property
    def is_index(self) -> bool:
        """Whether the values of the column number the rows, from 0 or 1 on; False for one row."""
        return self.first in (0, 1) and self.n_rows > 1

    def __add__(self, other: ColumnEvidence) -> ColumnEvidence:
        """Return the evidence of the rows of two files together; neither object is changed.

        other: the evidence of the same column in another file.
        """
        counts = [one.counts for one in (self, other) if one.counts is not None]
        lengths = {self.length, other.length} - {0}
        is_index = self.is_index and (
            other.is_index or other.first == (self.first or 0) + self.n_rows
        )
        return ColumnEvidence(
            tuple(kind for kind in self.kinds if kind in other.kinds),
            self.markers + other.markers,
            None if not counts else counts[0] if len(counts) == 1 else counts[0] + counts[1],
            self.n_uncounted + other.n_uncounted,
            self.has_point or other.has_point,
            self.n_zeros + other.n_zeros,
            next(iter(lengths), 0) if len(lengths) < 2 else None,
            self.first if is_index else None,
            self.n_rows + other.n_rows,
        )


# -- decisions


def choose_format(counts: TextCounts, decimal: str | None, dates: str | None) -> TextFormat | None:
    """Choose the format that at least 99 % of the texts of a column have; None: the column is text.

    Parameters
    ----------
    counts : TextCounts
        Counts of all texts of the column.
    decimal : str or None
        The decimal mark, if it is known.
    dates : str or None
        The order of day and month, "dd/mm" or "mm/dd", if it is known.

    Returns
    -------
    TextFormat or None
        The format; its decimal mark, or its order of day and month, is "" if the texts do not show
        it.
    """
    enough = ENOUGH * counts.n
    if not counts.n:
        return None
    if max(counts.dates["any"], counts.dates["year"]) >= enough:
        has_short_years = counts.dates["short"] > counts.n - enough
        order: str | None = YEAR_FIRST
        if counts.dates["year"] < enough:
            order = _choose_order(counts, dates, has_short_years)
        if order is None:
            return None
        has_time = counts.dates["time"] > 0
        form = TextFormat("date", order=order, has_time=has_time, has_short_years=has_short_years)
        # Short years may lack a century, which is asked for later.
        is_open = has_short_years or not order
        return form if is_open or counts.count_known(form) >= enough else None
    numbers = {mark: counts.count_numbers(mark) for mark in counts.thousands}
    marks = [one for one, n in numbers.items() if n >= enough and decimal in (None, one)]
    if not marks or counts.n_zeros > (1 - ENOUGH) * counts.n:
        return None
    if len(marks) > 1 and numbers["."] == numbers[","] and counts.n_ambiguous:
        return TextFormat(decimal="", symbol=counts.choose_symbol())
    return use_decimal(counts, max(marks, key=lambda one: numbers[one]), counts.choose_symbol())


def find_text_format(texts: Sequence[str]) -> TextFormat | None:
    """Return the format with which CSV files that hold some texts would be read; None: as text.

    texts: values of a column. None is returned as well if PyArrow is not installed, or if a text has
    no encoding in UTF-8.
    """
    counts = TextCounts()
    try:
        counts.add_texts(pa.array(texts, pa.string()))
    except (ImportError, UnicodeEncodeError):
        return None
    return choose_format(counts, None, None)


def _choose_order(counts: TextCounts, dates: str | None, has_short_years: bool) -> str | None:
    """Choose the order of day and month of dates that end with the year.

    Return "dd/mm" or "mm/dd"; "" if the texts do not show it; None if less than 99 % of the texts
    are dates of one order. counts: counts of the texts. dates: the order that the user stated, or
    None. has_short_years: whether more than 1 % of the years have two digits.
    """
    n_day, n_month = counts.dates["day"], counts.dates["month"]
    is_day = n_day >= n_month if dates is None else dates == DAY_FIRST
    if counts.dates["any"] - (n_month if is_day else n_day) < ENOUGH * counts.n:
        return None
    has_dots = counts.dates["dots"] == counts.dates["any"]
    # A short year may also be the first part, unless the last part cannot be a day.
    is_open = n_day == n_month or (has_short_years and not counts.dates["last"])
    if dates is None and is_open and not has_dots:
        return ""
    return DAY_FIRST if is_day else MONTH_FIRST


def use_decimal(counts: TextCounts, decimal: str, symbol: str = "") -> TextFormat:
    """Return the format of numbers with a given decimal mark, and their separators of thousands.

    counts: counts of the texts of the column, from which the separators are taken. decimal: "." or
    ",". symbol: currency or percent sign at the numbers, or "".
    """
    return TextFormat(
        decimal=decimal, thousands="".join(sorted(counts.thousands[decimal])), symbol=symbol
    )
