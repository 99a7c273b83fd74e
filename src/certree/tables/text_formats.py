"""Formats of numbers and dates in text, and the conversion of text by these formats.

A number may have a decimal comma, separators of thousands, and a currency or percent sign. A date
has day, month and year in one of three orders, and possibly a time. Everything is computed by
`pyarrow.compute` on whole columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, reduce
from typing import Any, Literal

from certree.tables.arrow import pa, pc

Decimal = Literal[".", ","]
# Orders of day, month and year.
DAY_FIRST, MONTH_FIRST, YEAR_FIRST = "dd/mm", "mm/dd", "yyyy/mm"

# Fraction of the values of a column that must have its format.
ENOUGH = 0.99
# Texts that are missing values among numbers and dates, beside the markers of every column. Texts of
# spaces are missing there as well.
MISSING_AMONG_NUMBERS = (
    *("", "?", "-", "--", "---", "\u2013", "\u2014", ".", "..", "*", "na", "n.a.", "N.A.", "None"),
    *("none", "NONE", "Null", "NAN", "<NA>", "NaT", "\\N", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!"),
    *("#NAME?", "#NULL!", "k.A.", "k. A.", "k.a.", "K.A."),
)
# Texts that are converted before all texts of a block.
_TRIED = 64
# Separators of thousands beside comma and point: apostrophes and spaces.
_APOSTROPHES, _SPACES = "'\u2019", " \u00a0\u2009\u202f"
_SIGN = "[+\\-\u2212]?"
_CODES = (
    "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|RUB|UAH|ILS|ZAR|"
    "BRL|MXN|ARS|CLP|COP|KRW|SGD|HKD|TWD|THB|IDR|MYR|PHP|VND|AED|SAR|EGP|NGN|KES|Rs\\.?|kr\\.?|Kč|zł|"
    "Ft|Fr\\.?"
)
# A currency sign, with letters before it as in "US$"; a percent sign; or the code of a currency.
_SYMBOL = f"[A-Z]{{0,3}}\\p{{Sc}}|%|(?:{_CODES})"
_DATE = (
    r"^(?P<a>\d{1,4})[/.\-](?P<b>\d{1,2})[/.\-](?P<c>\d{1,4})"
    r"(?:[ T](?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:\.0*)?)?)?$"
)
_DAY_OR_MONTH_FIRST = r"^\d{1,2}[/.\-]\d{1,2}[/.\-]\d{4}(?:[ T].*)?$"
# A day and a month in either order, and the last two digits of the year.
_DAY, _MONTH = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_SHORT_YEAR = (
    rf"^(?:{_DAY}[/.\-]{_MONTH}|{_MONTH}[/.\-]{_DAY})[/.\-]\d{{2}}(?: \d{{1,2}}:\d{{2}}.*)?$"
)
# Years of two digits from 70 on are in the 1900s, and those up to 39 in the 2000s. The others are
# refused: 54 is the year of a birth in one table, and the end of a contract in another.
_FIRST_SHORT, _LAST_SHORT = "70", "39"
_YEAR_FIRST = r"^\d{4}[/.\-]\d{1,2}[/.\-]\d{1,2}(?:[ T].*)?$"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Format by which the text of a column is read as numbers or dates.

    Parameters
    ----------
    kind : {"number", "date"}
        What the text becomes: float64, or a date or a date with time.
    decimal : {".", ",", ""}
        Decimal mark of numbers; "": the texts do not show it.
    thousands : str
        Characters that separate thousands, which are removed; "" if there are none.
    symbol : str
        Sign or code of a currency, or "%", which is removed; "" if there is none.
    order : str
        Order of dates: "dd/mm", "mm/dd" or "yyyy/mm"; "" for numbers, and if the texts do not show
        it.
    has_time : bool
        Whether dates have a time of the day.
    has_short_years : bool
        Whether years may have two digits, for 1970 to 2039.
    """

    kind: Literal["number", "date"] = "number"
    decimal: str = "."
    thousands: str = ""
    symbol: str = ""
    order: str = ""
    has_time: bool = False
    has_short_years: bool = False

    def __str__(self) -> str:
        if self.kind == "date":
            year = "" if self.order == YEAR_FIRST else "/yy" if self.has_short_years else "/yyyy"
            years = f" of 19{_FIRST_SHORT} to 20{_LAST_SHORT}" if self.has_short_years else ""
            return f"date, {self.order}{year}{years}{' with time' if self.has_time else ''}"
        words = ["number"]
        words += ["decimal comma"] if self.decimal == "," else []
        words += ["thousands separators removed"] if self.thousands else []
        if self.symbol:
            words.append(
                "percent signs removed" if self.symbol == "%" else f"{self.symbol} removed"
            )
        return ", ".join(words)

    @property
    def is_decided(self) -> bool:
        """Whether the decimal mark of numbers, or the order of day and month of dates, is known."""
        return bool(self.order if self.kind == "date" else self.decimal)

    @property
    def type(self) -> Any:
        """Arrow type of columns that are converted by the format: float64, date32 or timestamp("s")."""
        if self.kind == "number":
            return pa.float64()
        return pa.timestamp("s") if self.has_time else pa.date32()

    def to_stored(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, by name, for model files."""
        plain = asdict(PLAIN)
        return {name: value for name, value in asdict(self).items() if value != plain[name]}


PLAIN = TextFormat()


# -- numbers


@cache
def number_pattern(decimal: str, thousands: str | None = None) -> str:
    """Return the regular expression of numbers without currency or percent signs.

    The pattern is for RE2, the engine of Arrow, and matches a whole text. decimal: the decimal
    mark, "." or ",". thousands: the separators of thousands as one text, "" for none; None: all
    that are possible beside the decimal mark.
    """
    if thousands is None:
        thousands = list_thousands(decimal)
    groups = [f"[1-9]\\d{{0,2}}(?:\\x{{{ord(sign):x}}}\\d{{3}})+" for sign in thousands]
    if "," in thousands:  # as in India
        groups.append("[1-9]\\d?(?:,\\d{2})+,\\d{3}")
    whole = "|".join(["\\d+", *groups])
    mark = "\\" + decimal if decimal == "." else decimal
    plain = f"(?:(?:{whole})(?:{mark}\\d*)?|{mark}\\d+)(?:[eE][+-]?\\d+)?"
    return f"^{_SIGN}(?:{plain}|(?i:inf(?:inity)?))$"


def list_thousands(decimal: str) -> str:
    """Return all separators of thousands that may occur beside a decimal mark, as one text.

    decimal: the decimal mark, "." or ",". The separators are the other one of both, apostrophes and
    several kinds of spaces.
    """
    return ("," if decimal == "." else ".") + _APOSTROPHES + _SPACES


def trim(texts: Any) -> Any:
    """Return an Arrow array of texts without white space around each text."""
    return pc.utf8_trim_whitespace(texts)


def split_symbols(texts: Any) -> tuple[Any, Any]:
    """Split trimmed texts into numbers and symbols, such as "-$5" into "-5" and "$".

    Return both as Arrow arrays. The symbol of a text without one is "", and its number is the text.
    """
    number = f"[\\d.,{_APOSTROPHES}{_SPACES}]*\\d[\\d.,]*"
    pattern = (
        f"^(?P<sign>{_SIGN})\\s*(?P<before>{_SYMBOL})?\\s*(?P<inner>{_SIGN})(?P<number>{number})\\s*"
        f"(?P<behind>{_SYMBOL})?$"
    )
    found = pc.extract_regex(texts, pattern)
    sign, before, inner, rest, behind = (
        pc.struct_field(found, name) for name in ("sign", "before", "inner", "number", "behind")
    )
    symbol = pc.binary_join_element_wise(before, behind, "")
    has_symbol = pc.fill_null(pc.greater(pc.binary_length(symbol), 0), False)
    joined = pc.binary_join_element_wise(sign, inner, trim(rest), "")
    return pc.if_else(has_symbol, joined, texts), pc.if_else(has_symbol, symbol, "")


def remove_symbol(texts: Any, symbol: str) -> Any:
    """Remove a currency or percent sign from trimmed texts; return the texts, an Arrow array.

    symbol: the sign or code of a currency, or "%". Texts with another symbol stay unchanged, so
    that they do not convert to numbers. If the symbol is "%", texts without it are replaced by a
    text that is no number, except zeros. If the symbol is "", texts are returned unchanged.
    """
    if not symbol:
        return texts
    numbers, symbols = split_symbols(texts)
    is_marked = pc.equal(symbols, symbol)
    if symbol != "%":
        return pc.if_else(is_marked, numbers, texts)
    # 0.12 and 12 % in one column differ in their unit, but 0 does not.
    is_same = pc.or_(is_marked, pc.match_substring_regex(texts, r"^0+(?:[.,]0*)?$"))
    return pc.if_else(is_same, numbers, "without %")


def _convert_numbers(texts: Any, form: TextFormat) -> Any:
    """Convert an Arrow array of texts to one of float64, by the number format of their column.

    Texts that do not have the format become null. form: decimal mark, separators of thousands, and
    currency or percent sign, which are removed (5 % becomes 5).
    """
    bare = remove_symbol(trim(texts), form.symbol)
    is_number = pc.match_substring_regex(bare, number_pattern(form.decimal, form.thousands))
    bare = pc.replace_substring(pc.if_else(is_number, bare, None), "\u2212", "-")
    bare = reduce(lambda found, sign: pc.replace_substring(found, sign, ""), form.thousands, bare)
    if form.decimal != ".":
        bare = pc.replace_substring(bare, form.decimal, ".")
    return bare.cast(pa.float64())


# -- dates


def _convert_dates(texts: Any, form: TextFormat) -> Any:
    """Convert an Arrow array of texts to dates, by the date format of their column.

    Texts that do not have the format become null. form: order of day, month and year, which must be
    known, and whether there may be times and years of two digits. Return an array of date32, or of
    timestamps in seconds if there are times.
    """
    texts = trim(texts)
    pattern = _YEAR_FIRST if form.order == YEAR_FIRST else _DAY_OR_MONTH_FIRST
    is_date = pc.match_substring_regex(texts, pattern)
    if form.has_short_years:
        is_date = pc.or_(is_date, pc.match_substring_regex(texts, _SHORT_YEAR))
    parts = pc.extract_regex(pc.if_else(is_date, texts, None), _DATE)
    a, b, c, hour, minute, second = (pc.struct_field(parts, name) for name in "abchms")
    day, month, year = {DAY_FIRST: (a, b, c), MONTH_FIRST: (b, a, c), YEAR_FIRST: (c, b, a)}[
        form.order
    ]
    year = _complete_years(year)
    hour, minute, second = (
        pc.if_else(pc.equal(part, ""), "0", part) for part in (hour, minute, second)
    )
    date = pc.binary_join_element_wise(year, month, day, "-")
    time = pc.binary_join_element_wise(hour, minute, second, ":")
    stamps = pc.strptime(
        pc.binary_join_element_wise(date, time, " "),
        format="%Y-%m-%d %H:%M:%S",
        unit="s",
        error_is_null=True,
    )
    # Arrow turns the 31st of a short month into a day of the next one.
    is_day = pc.equal(pc.day(stamps), day.cast(pa.int64()))
    if not form.has_time:
        is_day = pc.and_(is_day, pc.equal(stamps, stamps.cast(pa.date32()).cast(stamps.type)))
    return pc.if_else(is_day, stamps, None).cast(form.type)


def _complete_years(years: Any) -> Any:
    """Complete years of two digits: "70" to "99" by 19, "00" to "39" by 20; others become null.

    years: Arrow array of texts. Years of four digits are returned unchanged.
    """
    is_short = pc.equal(pc.binary_length(years), 2)
    century = pc.if_else(pc.greater_equal(years, _FIRST_SHORT), "19", "20")
    is_known = pc.or_(pc.greater_equal(years, _FIRST_SHORT), pc.less_equal(years, _LAST_SHORT))
    completed = pc.binary_join_element_wise(century, pc.if_else(is_known, years, None), "")
    return pc.if_else(is_short, completed, years)


def describe_dates(texts: Any) -> dict[str, Any]:
    """Return masks, Arrow arrays of bool by name, of texts that are dates of certain forms.

    They show together in which order a column writes its dates. texts: an Arrow array of trimmed
    texts. "any": day or month first. "year": year first. "day": the first part exceeds 12. "month":
    the second part does. "dots": the parts are separated by points. "time": there is a time.
    "short": the last part, the year, has two digits. "last": these digits are no day. "century":
    they are 40 to 69.
    """
    parts = pc.extract_regex(texts, _DATE)
    is_date = pc.is_valid(parts)
    short = pc.and_(is_date, pc.match_substring_regex(texts, _SHORT_YEAR))
    form = pc.and_(is_date, pc.match_substring_regex(texts, _DAY_OR_MONTH_FIRST))
    form, year = pc.or_(form, short), pc.and_(is_date, pc.match_substring_regex(texts, _YEAR_FIRST))
    first, second, last = (
        pc.fill_null(pc.struct_field(parts, name).cast(pa.int64()), 0) for name in "abc"
    )
    is_no_day = pc.or_(pc.equal(last, 0), pc.greater(last, 31))
    is_between = pc.and_(pc.greater(last, int(_LAST_SHORT)), pc.less(last, int(_FIRST_SHORT)))
    return {
        "any": form,
        "short": short,
        "last": pc.and_(short, is_no_day),
        "century": pc.and_(short, is_between),
        "year": year,
        "day": pc.and_(form, pc.greater(first, 12)),
        "month": pc.and_(form, pc.greater(second, 12)),
        "dots": pc.and_(form, pc.match_substring_regex(texts, r"^\d+\.")),
        "time": pc.and_(
            is_date, pc.fill_null(pc.not_equal(pc.struct_field(parts, "h"), ""), False)
        ),
    }


# -- columns


def _convert_plain(texts: Any, form: TextFormat) -> Any:
    """Convert texts to float64 by Arrow's fast cast; return None if not all are numbers in plain form.

    Also return None for formats of dates and of percentages. texts: an Arrow array. form: the
    format.
    """
    if form.kind != "number" or form.symbol == "%":
        return None
    kind = pa.float64() if form.decimal == "." else pa.int64()
    return convert_or_none(texts, lambda some: some.cast(kind).cast(pa.float64()))


def convert_or_none(texts: Any, convert: Callable[[Any], Any]) -> Any:
    """Return the result of a conversion of texts, or None if a text does not convert.

    texts: an Arrow array. convert: function of such an array, which raises `pyarrow.ArrowInvalid`
    if a text does not convert.
    """
    try:
        # Arrow writes a message for every text that it cannot convert, so 64 are tried first.
        convert(texts.slice(0, _TRIED))
        return convert(texts)
    except pa.ArrowInvalid:
        return None


def find_markers(texts: Any) -> Any:
    """Return which texts mean a missing value in columns of numbers, an Arrow array of bool.

    These are empty texts, "?", "-", and words such as "n.a." and "None". texts: an Arrow array.
    """
    return pc.is_in(trim(texts), pa.array(MISSING_AMONG_NUMBERS))


def convert_texts(texts: Any, form: TextFormat) -> tuple[Any, Any]:
    """Convert an Arrow array of texts by a format.

    Parameters
    ----------
    texts : pyarrow.Array of strings
        Null where a value is missing.
    form : TextFormat
        The format.

    Returns
    -------
    values : pyarrow.Array
        Numbers or dates; null where a value is missing or does not have the format.
    exceptions : pyarrow.Array of strings
        The texts that do not have the format.
    """
    values = _convert_plain(texts, form)
    if values is not None:
        return values, texts.slice(0, 0)
    convert = _convert_numbers if form.kind == "number" else _convert_dates
    values = convert(texts, form)
    wrong = pc.and_(pc.is_null(values), pc.is_valid(texts))
    if values.null_count > texts.null_count:
        wrong = pc.and_(wrong, pc.invert(pc.fill_null(find_markers(texts), True)))
    return values, texts.filter(wrong)


def count_values(texts: Any) -> Counter[str]:
    """Return how often each text of an Arrow array without nulls occurs, by text.

    texts: the array. Return a Counter.
    """
    found = texts.value_counts().to_pylist() if len(texts) else []
    return Counter({one["values"]: one["counts"] for one in found})
