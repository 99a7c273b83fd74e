"""Dialects of CSV files: encoding, separator, lines above the header, and names of columns.

`csv.reader` parses the start of a file with each separator. The separator is the one with which
most rows have as many values as the header.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

# Separators that are tried, in the order of preference, and rows that are compared.
SEPARATORS = (",", ";", "\t", "|")
_ROWS = 300
# Rows that must agree before title lines without "#" are taken for lines above a header of two names.
_AGREEING_ROWS = 5
# Byte order marks and their encodings. UTF-32 comes first, as its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# The encoding of text that is not UTF-8. Latin-1 is the same in all characters that can be printed.
EIGHT_BITS = "windows-1252"
# Fraction of zero bytes in text in UTF-16 without a byte order mark, at even or odd places.
_ZEROS = 0.5
# Names that pandas gives to columns without a name.
_UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How the text of a CSV file is divided into lines, values and a header.

    Parameters
    ----------
    encoding : str
        Python's name of the encoding.
    separator : str
        Character between two values.
    names : tuple of str
        Names of the columns. Columns without a name are called "column 1" and so on, by position.
    unnamed : frozenset of str
        Those of `names` that the reader gave to columns without a name in the file.
    n_lines : int
        Number of lines above the first row: the header and all lines above it.
    n_skipped : int
        Number of lines above the header, such as comments.
    has_quotes : bool
        Whether values may be in quotes, and then have line breaks.
    has_rows : bool
        Whether there is a row below the header.
    """

    encoding: str
    separator: str
    names: tuple[str, ...]
    unnamed: frozenset[str] = frozenset()
    n_lines: int = 1
    n_skipped: int = 0
    has_quotes: bool = False
    has_rows: bool = True


# -- encodings


def find_encoding(head: bytes) -> str | None:
    """Return the encoding that the first bytes of a text show; None if they show none.

    The result is "utf-8", "utf-16" or the like, or "windows-1252". A byte order mark decides. Text
    with zero bytes at every other position is UTF-16. Return None if the bytes are ASCII, or are
    ambiguous. head: first bytes of the file.
    """
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if marked is not None:
        return marked
    if b"\0" in head:
        even, odd = head[::2].count(0), head[1::2].count(0)
        enough = _ZEROS * (len(head) // 2)
        if odd >= enough and not even:
            return "utf-16-le"
        return "utf-16-be" if even >= enough and not odd else None
    if head.isascii():
        return None
    n_valid, n_invalid = count_characters(head)
    return "utf-8" if n_valid and not n_invalid else None if n_valid > n_invalid else EIGHT_BITS


def count_characters(content: bytes) -> tuple[int, int]:
    """Count the non-ASCII characters of UTF-8 text; return this number, and that of invalid sequences.

    content: bytes of text. A character that is cut off at the end is not counted.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoded = decoder.decode(content)
    n_invalid = decoded.count("\ufffd")
    n_ascii = len(decoded.encode("ascii", "ignore"))
    return len(decoded) - n_ascii - n_invalid, n_invalid


def is_eight_bits(encoding: str) -> bool:
    """Return whether an encoding has one byte for each character, the first 128 of which are ASCII's.

    encoding: Python's name of the encoding.
    """
    ascii_bytes = bytes(range(128))
    try:
        every = bytes(range(256)).decode(encoding, "replace")
        return len(every) == 256 and ascii_bytes.decode(encoding) == ascii_bytes.decode("ascii")
    except UnicodeError:
        return False


# -- separator and header


def find_dialect(
    text: str, encoding: str, preferred: str = ",", separator: str | None = None
) -> CsvDialect:
    """Return the dialect of a CSV file (separator, header, skipped lines), found in its first lines.

    Parameters
    ----------
    text : str
        The first lines, without a line that is cut off.
    encoding : str
        Encoding of the file, for the result.
    preferred : str
        Separator that is assumed if the text does not show one, such as text of one column.
    separator : str or None
        The separator, if it is known.

    Returns
    -------
    CsvDialect
        Encoding, separator, names of the columns, and numbers of lines above the header and the
        rows. If no line has a value, there are no names, and `has_rows` is False.
    """
    text = text.removeprefix("\ufeff")
    stated = re.match(r'"?sep=(.)"?\r?\n', text)  # a line for Excel
    if separator is None and stated:
        separator = stated.group(1)
    tried = dict.fromkeys([preferred, *SEPARATORS] if separator is None else [separator])
    found = [header for one in tried if (header := _read_header(text, encoding, one)) is not None]
    if not found:
        return CsvDialect(encoding, separator or preferred, (), n_lines=0, has_rows=False)
    return max(found, key=lambda header: header[0])[1]


def _read_header(
    text: str, encoding: str, separator: str
) -> tuple[tuple[float, int, int], CsvDialect] | None:
    """Return a rank and the dialect that a text has with one separator; None if the text is blank.

    The rank is larger for a more plausible separator. It is a tuple of three: the fraction of data
    lines with as many values as the header, the number of title lines times -1, and the number of
    columns; or (-1, 0, 0) if there is a single column. text: first lines of the file. encoding,
    separator: fields of the dialect.
    """
    rows = [*islice(_read_rows(text, separator), _ROWS)]
    first = start = _count_comments(rows)
    lengths = Counter(len(values) for values, _ in rows[start:] if values)
    if not lengths:
        return None
    # In a tie the header is right.
    usual = max(lengths, key=lambda n: (lengths[n], n == len(rows[start][0])))
    titles = start
    while titles < len(rows) and _is_title(rows[titles][0], usual):
        titles += 1
    if titles < len(rows) and _may_follow_titles(rows[start:], titles - start, usual):
        start = titles
    header, n_lines = rows[start]
    data = [values for values, _ in rows[start + 1 :] if values]
    names, unnamed = _name_columns(_add_name(tuple(header), data))
    agreeing = sum(len(values) == len(names) for values in data) / max(len(data), 1)
    n_skipped = rows[start - 1][1] if start else 0
    rank = (agreeing, first - start, len(names)) if len(names) > 1 else (-1.0, 0, 0)
    has_quotes, has_rows = '"' in text, bool(data)
    return rank, CsvDialect(
        encoding, separator, names, unnamed, n_lines, n_skipped, has_quotes, has_rows
    )


def _read_rows(text: str, separator: str) -> Iterator[tuple[list[str], int]]:
    """Yield for each row of CSV text a list of its values, and the number of lines up to its end.

    text: the start of a file. separator: character between values. The list is [] for a blank row.
    An error of the CSV syntax ends the iteration.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    while True:
        try:
            values = next(reader)
        except (StopIteration, csv.Error):
            return
        is_blank = not values or (len(values) == 1 and not values[0].strip())
        yield [] if is_blank else values, reader.line_num


def _count_comments(rows: list[tuple[list[str], int]]) -> int:
    """Return how many rows at the start are blank, comments that begin with "#", or "sep=;".

    rows: for each row a list of its values, and the number of lines up to its end. If the
    last comment has names for the columns of numbers below it, it is the header and does not count.
    """
    n = 0
    for values, _ in rows:
        first = values[0].lstrip() if values else ""
        if values and not first.startswith("#") and not re.fullmatch("sep=.?", first):
            break
        n += 1
    if not 0 < n < len(rows):
        return max(min(n, len(rows) - 1), 0)
    # The last line with "#" is the header if it has names for all values of a row of numbers.
    last, after = rows[n - 1][0], rows[n][0]
    is_header = len(last) == len(after) > 1 and any(map(_is_number, after))
    return n - 1 if is_header and last[0].startswith("#") else n


def _is_title(values: list[str], usual: int) -> bool:
    """Return whether a row above the header is blank, or a title.

    A title has one value although most rows have more; or, if most rows have at least three values,
    it has as many, of which only the first is not empty. values: values of the row. usual: number of
    values of most rows.
    """
    if not values or (len(values) == 1 and usual > 1):
        return True
    return usual > 2 and len(values) == usual and bool(values[0]) and not any(values[1:])


def _may_follow_titles(rows: list[tuple[list[str], int]], n: int, usual: int) -> bool:
    """Return whether the first n rows may be titles: all rows below them have the same length.

    A header of two names also needs more than five rows below it, or a blank line above it. rows:
    for each row a list of its values, and the number of lines up to its end. usual: number of values
    of most rows.
    """
    below = [values for values, _ in rows[n:] if values]
    has_blank = n > 0 and not rows[n - 1][0]
    is_shown = usual > 2 or has_blank or len(below) > _AGREEING_ROWS
    has_names = not any(map(_is_number, below[0]))
    return len(below) > 1 and is_shown and has_names and all(len(one) == usual for one in below)


def _is_number(text: str) -> bool:
    """Return whether a text is a number, with a decimal point or comma."""
    return re.fullmatch(r"\s*[+-]?[\d.,]*\d[\d.,]*\s*", text) is not None


def _add_name(names: tuple[str, ...], rows: list[list[str]]) -> tuple[str, ...]:
    """Add an empty name to those of the header if each row has one value more than the header.

    It is added at the end if lines end with a separator, and in front if the first values number
    the rows, as in files of R's write.table. names: names in the header. rows: values of the first
    rows. Return all names.
    """
    if not rows or any(len(values) != len(names) + 1 for values in rows):
        return names
    if not any(values[-1] for values in rows):
        return *names, ""
    is_numbered = all(values[0] == str(number) for number, values in enumerate(rows, 1))
    return ("", *names) if is_numbered and len(rows) > 1 else names


def _name_columns(names: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Name the columns without a name by their position: "column 1" and so on.

    names: names in the header; "", or only spaces, for none. Return the names of all columns, and
    the set of the names of those without one. Names that pandas gives, such as "Unnamed: 0", are
    kept but count as no name.
    """
    named, unnamed = [], []
    for place, name in enumerate(names, 1):
        blank = not name.strip()
        named.append(f"column {place}" if blank else name)
        if blank or _UNNAMED.fullmatch(name):
            unnamed.append(named[-1])
    return tuple(named), frozenset(unnamed)
