"""Files with options of reading, and the formats that a fitted model stores."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from certree.interface.signatures import validate_arguments
from certree.interface.stored_state import DamagedModelError
from certree.tables.text_formats import DAY_FIRST, MONTH_FIRST, YEAR_FIRST, TextFormat

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options that override what is detected in CSV files; see `TableSource`.

    Parameters
    ----------
    separator, decimal, encoding, dates : str or None
        Separator, decimal mark, encoding, and order of day and month; None: detected.
    missing, drop, keep_text : tuple of str
        Further markers of missing values, columns to leave out, and columns whose text is kept.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    dates: str | None = None
    drop: tuple[str, ...] = ()
    keep_text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None and (len(separator) != 1 or separator in '\r\n"\0'):
            raise ValueError(
                f"separator must be one character other than a quote or line break, got {separator!r}"
            )
        if separator is not None and not separator.isascii():
            raise ValueError(f"separator must be an ASCII character, got {separator!r}")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding must be one that Python knows, such as 'utf-8', 'utf-16', 'latin-1' or "
                    f"'windows-1252', got {self.encoding!r}"
                ) from None


@dataclass(frozen=True, slots=True)
class TableFormat:
    """What was found in the CSV files of a fit, and is used again for later files.

    Parameters
    ----------
    separator, encoding : str or None
        Separator and encoding, if they are not the usual ones.
    decimal : str or None
        Decimal mark, if numbers show one that is not a point, or it was an option.
    missing : tuple of str
        Markers of missing values that the fit was given.
    columns : mapping of str to TextFormat
        Formats of columns of numbers and dates that are not plain.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    columns: Mapping[str, TextFormat] = field(default_factory=dict)

    def to_stored(self) -> dict[str, Any]:
        """Return the format as an entry of a model file, without what is None or empty."""
        stored: dict[str, Any] = {
            "separator": self.separator,
            "encoding": self.encoding,
            "decimal": self.decimal,
            "missing": [*self.missing],
            "columns": {name: form.to_stored() for name, form in self.columns.items()},
        }
        return {name: value for name, value in stored.items() if value}

    @classmethod
    def from_stored(cls, stored: Any) -> TableFormat:
        """Return the format of which `to_stored` gave an entry, or raise `DamagedModelError`."""
        try:
            known = {one.name for one in fields(cls)}
            if {*stored} - known or not stored:
                raise ValueError("it has unknown entries")
            columns = {
                name: TextFormat(**values) for name, values in stored.get("columns", {}).items()
            }
            ReadOptions(stored.get("separator"), encoding=stored.get("encoding"))
            found = cls(
                stored.get("separator"),
                stored.get("encoding"),
                stored.get("decimal"),
                tuple(stored.get("missing", ())),
                columns,
            )
            _expect_known(found)
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedModelError(f"table_format cannot be read: {error}") from None
        return found


def _expect_known(found: TableFormat) -> None:
    """Raise ValueError if a stored format has values that no file gives."""
    texts = [found.separator, found.encoding, *found.missing]
    if not all(isinstance(text, str) for text in texts if text is not None):
        raise ValueError("its texts must be strings")
    for form in found.columns.values():
        orders = {"date": (DAY_FIRST, MONTH_FIRST, YEAR_FIRST), "number": ("",)}
        is_known = form.kind in orders and form.order in orders[form.kind]
        strings = form.thousands, form.symbol
        if not is_known or form.decimal not in (".", ",") or type(form.has_time) is not bool:
            raise ValueError(f"a column has the format {form!r}")
        if not all(isinstance(text, str) and len(text) < 32 for text in strings):
            raise ValueError(f"a column has the format {form!r}")
    if found.decimal not in (None, ".", ","):
        raise ValueError(f"its decimal is {found.decimal!r}")


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TableSource(os.PathLike[str]):
    """Files with options of reading. Functions that take a path take a `TableSource` in its place.

    Options override what is detected in CSV files. `drop` and `keep_text` also count for Parquet and
    Arrow files.

    Parameters
    ----------
    source : path or list of paths
        Files, or folders of files, with the same columns. The suffix determines the format:
        ``.csv``, ``.tsv``, ``.csv.gz``, ``.tsv.gz``, ``.parquet``, ``.pq``, ``.arrow`` or
        ``.feather``. "-" is CSV from standard input.
    separator : str or None
        Character between values of CSV files, such as ";"; None: detected.
    decimal : {".", ","} or None
        Decimal mark; None: detected.
    encoding : str or None
        Encoding of CSV files, such as "latin-1"; None: UTF-8, UTF-16 or Windows-1252, which is
        detected.
    missing : sequence of str
        Texts that are missing values in every column, beside empty fields, NA, NULL, NaN and the
        like. Among numbers and dates also "?", "-" and blanks are.
    dates : {"dd/mm", "mm/dd"} or None
        Order of day and month in dates such as 03/04/2024; None: detected.
    drop : sequence of str
        Columns to leave out.
    keep_text : sequence of str
        Columns of codes that are categories although they look like numbers or dates. Their text is
        kept unchanged. Columns of integers with leading zeros, such as postal codes, need not be
        named.

    Raises
    ------
    ValueError, TypeError
        If an option has another type or value.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from certree import BoostedTreesRegressor, TableSource
    >>> file = Path(tempfile.mkdtemp()) / "flats.csv"
    >>> lines = "id;area;rent", *(f"{i};{30 + i},5;{500 + 10 * i}" for i in range(40))
    >>> with file.open("w") as stream:
    ...     print(*lines, sep=chr(10), file=stream)
    >>> model = BoostedTreesRegressor(max_iter=5).fit(TableSource(file, drop=["id"]), "rent")
    >>> model.feature_names_in_.tolist()
    ['area']
    """

    source: Any
    options: ReadOptions
    stored: TableFormat | None  # what a fitted model stores

    @validate_arguments
    def __init__(
        self,
        source: Any,
        *,
        separator: str | None = None,
        decimal: Literal[".", ","] | None = None,
        encoding: str | None = None,
        missing: Sequence[str] = (),
        dates: Literal["dd/mm", "mm/dd"] | None = None,
        drop: Sequence[str] = (),
        keep_text: Sequence[str] = (),
    ) -> None:
        options = ReadOptions(
            separator, decimal, encoding, tuple(missing), dates, tuple(drop), tuple(keep_text)
        )
        vars(self).update(source=source, options=options, stored=None)

    def __fspath__(self) -> str:
        return os.fspath(self.source)

    def __str__(self) -> str:
        return str(self.source)

    def __repr__(self) -> str:
        return f"TableSource({self.source!r})"


def unwrap(source: Any) -> tuple[Any, ReadOptions, TableFormat | None]:
    """Return the files of a source, its options, and the formats of a fitted model for it.

    source: a `TableSource`, or what its parameter `source` takes, or a data set of Arrow.
    """
    if isinstance(source, TableSource):
        return source.source, source.options, source.stored
    return source, ReadOptions(), None


def with_format(source: Any, stored: TableFormat | None) -> Any:
    """Return a source whose files are read with the formats of a fitted model, if it has any."""
    if stored is None:
        return source
    files, options, _ = unwrap(source)
    found = with_options(files, options)
    vars(found)["stored"] = stored
    return found


def with_options(source: Any, options: ReadOptions) -> TableSource:
    """Return files with options of reading.

    source: path or list of paths; options: they have been checked.
    """
    return TableSource(source, **asdict(options))
