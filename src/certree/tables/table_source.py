"""Files with the options of reading them, and the formats that a fitted model stores."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal
from zoneinfo import ZoneInfo

from certree.interface.parameter_aliases import suggests_arguments
from certree.interface.signatures import validate_settings
from certree.interface.stored_state import DamagedModelError
from certree.tables.text_formats import (
    DAY_FIRST,
    MONTH_FIRST,
    YEAR_FIRST,
    Decimal,
    TextFormat,
    list_thousands,
)

# Options that are lists of texts.
_LISTS = ("missing", "drop", "keep_text")


@dataclass(frozen=True, slots=True)
class TableFormat:
    """What a fit found in its CSV files, and a fitted model uses again for later files.

    Parameters
    ----------
    separator : str or None
        Separator of values, if it is not the one that the suffix of the file states.
    encoding : str or None
        Encoding, if it is not UTF-8 or the user stated it.
    decimal : str or None
        Decimal mark, if numbers show one that is not a point, or the user stated it.
    missing : tuple of str or None
        Markers of missing values that the user stated.
    columns : mapping of str to TextFormat
        Formats of columns of numbers and dates that are not plain, by name.
    keep_text : tuple of str
        Names of columns whose text the fit kept.
    markers : mapping of str to tuple of str
        Texts, other than blanks, that were read as missing values in a column, by its name.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: Decimal | None = None
    missing: tuple[str, ...] | None = None
    columns: Mapping[str, TextFormat] = field(default_factory=dict)
    keep_text: tuple[str, ...] = ()
    markers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_stored(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults, as a dictionary for a model file.

        The keys are the names of the fields. The formats in `columns` are dictionaries of their
        fields, and tuples are lists.
        """
        columns = {name: form.to_stored() for name, form in self.columns.items()}
        markers = {name: [*texts] for name, texts in self.markers.items()}
        stored = {**asdict(self), "columns": columns, "markers": markers}
        return {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in stored.items()
            if value or (name == "missing" and value is not None)
        }

    @classmethod
    def from_stored(cls, stored: Any) -> TableFormat:
        """Return the format from an entry of a model file, as `to_stored` returned it.

        stored: a dictionary of fields by name; missing fields have their defaults. Raise
        `DamagedModelError`, a ValueError, if the entry is not of this form.
        """
        if not stored:
            raise DamagedModelError(
                f"the model file's table_format must have at least one setting, got {stored!r}"
            )
        try:
            columns = {
                name: TextFormat(**values) for name, values in stored.get("columns", {}).items()
            }
            markers = {name: (*texts,) for name, texts in stored.get("markers", {}).items()}
            if not all(isinstance(text, str) for texts in markers.values() for text in texts):
                raise ValueError(f"markers must be texts, got {markers!r}")
            options = {k: value for k, value in stored.items() if k not in ("columns", "markers")}
            TableSource("", **options)  # It checks them.
            for form in columns.values():
                _expect_known(form)
            lists = {name: (*options[name],) for name in _LISTS if name in options}
            return cls(**{**options, **lists}, columns=columns, markers=markers)
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedModelError(
                f"the model file's table_format cannot be read: {error}"
            ) from None


def _expect_known(form: TextFormat) -> None:
    """Raise a ValueError if the format of a column, read from a model file, has an impossible value.

    form: the format. Its kind, order of dates, decimal mark and the types of its other fields are
    checked.
    """
    orders = {"date": (DAY_FIRST, MONTH_FIRST, YEAR_FIRST), "number": ("",)}
    is_known = form.kind in orders and form.order in orders[form.kind]
    is_known = is_known and form.decimal in (".", ",")
    is_known = is_known and {type(form.has_time), type(form.has_short_years)} == {bool}
    texts = form.thousands, form.symbol
    if not is_known or not all(isinstance(text, str) and len(text) < 32 for text in texts):
        raise ValueError(f"a column has the format {form!r}")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TableSource(os.PathLike[str]):
    """Files with options of reading. Functions that take a path take a `TableSource` in its place.

    Options override what is detected in CSV files. `drop`, `keep_text` and `timezone` also count for
    Parquet and Arrow files.

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
    missing : sequence of str or None
        Texts that are missing values in every column; None: NA, NULL, NaN and the like. Empty fields
        always are missing. Among numbers, booleans and dates these words always are missing, too, and
        among numbers and dates also "?", "-" and blanks.
    dates : {"dd/mm", "mm/dd"} or None
        Order of day and month in dates such as 03/04/2024; None: detected.
    drop : sequence of str
        Columns to leave out.
    keep_text : sequence of str
        Columns of codes that are categories although they look like numbers, dates or missing values
        such as NA. Their text is kept unchanged. Columns of integers with leading zeros, such as
        postal codes, need not be named.
    timezone : str or None
        Time zone of dates with times that have an offset from UTC, such as "Europe/Zurich", in which
        their weekday and hour are read; None: UTC for CSV files, else that of the file.

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

    source: Any = field(kw_only=False)
    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    missing: Sequence[str] | None = None
    dates: Literal["dd/mm", "mm/dd"] | None = None
    drop: Sequence[str] = ()
    keep_text: Sequence[str] = ()
    timezone: str | None = None
    # What a fitted model stores.
    stored: TableFormat = field(default_factory=TableFormat, init=False)

    def __post_init__(self) -> None:
        validate_settings(self)
        given = self.source
        if isinstance(given, TableSource):  # Its options are those that this one does not have.
            options = {name: vars(self)[name] or value for name, value in vars(given).items()}
            vars(self).update(options, source=given.source, stored=given.stored)
        elif hasattr(given, "shape") or hasattr(given, "read"):
            raise TypeError(
                "source must be a path, a list of paths or a pyarrow.dataset.Dataset, got "
                f"{type(given).__name__}: pass the path of a file; data frames and arrays go to fit "
                "directly"
            )
        lists = {name: vars(self)[name] for name in _LISTS if vars(self)[name] is not None}
        vars(self).update({name: (*value,) for name, value in lists.items()})
        separator = self.separator
        if separator is not None and (len(separator) != 1 or separator in '\r\n"\0'):
            raise ValueError(
                f"separator must be one character other than a quote or line break, got {separator!r}"
            )
        if separator is not None and not separator.isascii():
            raise ValueError(
                f"separator must be an ASCII character, got {separator!r}: save the file with "
                "another one"
            )
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding must be one that Python knows, such as 'utf-8', 'utf-16', 'latin-1' or "
                    f"'windows-1252', got {self.encoding!r}"
                ) from None
        if self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (LookupError, ValueError, OSError):
                raise ValueError(
                    "timezone must be the name of a time zone, such as 'Europe/Zurich' or 'UTC', got "
                    f"{self.timezone!r}"
                ) from None

    @property
    def decimal_mark(self) -> Decimal | None:
        """Decimal mark that the user stated, else that of the model's fit; None: it is not known."""
        return self.decimal or self.stored.decimal

    def choose_number_format(self, symbol: str = "") -> TextFormat:
        """Return the format of numbers in columns whose format a fitted model does not store.

        The decimal mark is that which the user has stated, else that of the fit, else a point. If
        the user has stated it, all separators of thousands are accepted, as they are unambiguous
        then. symbol: the sign or code of a currency, or "%", that most numbers have; "": they have
        none.
        """
        thousands = list_thousands(self.decimal) if self.decimal else ""
        return TextFormat(decimal=self.decimal_mark or ".", thousands=thousands, symbol=symbol)

    def __fspath__(self) -> str:
        return os.fspath(self.source)

    def __str__(self) -> str:
        return str(self.source)

    def __repr__(self) -> str:
        return f"TableSource({self.source!r})"


# A data class has no constructor to decorate before it exists.
TableSource.__init__ = suggests_arguments(TableSource.__init__)  # type: ignore[method-assign]


def with_format(source: Any, stored: TableFormat | None) -> Any:
    """Return a source whose files are read with the format that a fitted model stores.

    The user's options override this format: a decimal mark that of numbers, and an order of day and
    month that of dates, which is then detected anew. source: path, list of paths, `TableSource` or
    data set of Arrow. stored: the format of the fit; None: the source is returned unchanged.
    Otherwise return a `TableSource`.
    """
    if stored is None:
        return source
    options, columns = TableSource(source), dict(stored.columns)
    for name, form in stored.columns.items():
        if form.kind == "number" and options.decimal is not None:
            columns[name] = options.choose_number_format(form.symbol)
        elif form.kind == "date" and options.dates is not None:
            del columns[name]
    missing = stored.missing if options.missing is None else options.missing
    found = replace(options, missing=missing)
    vars(found)["stored"] = replace(stored, columns=columns)
    return found
