"""Options on rows that depend on each other: --dependent, --one-per-group and --independent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from certree.cli.app import print_note
from certree.cli.table_input import expect_not_dropped, read_extra_column
from certree.files.pipelines import split_pipeline
from certree.files.predictions import ROWS_PER_BATCH
from certree.interface.fitted_state import (
    find_drawn_groups_column,
    find_groups_column,
    find_time_column,
)
from certree.interface.formatting import format_quantity
from certree.rows.folds import Indices
from certree.rows.split import draw_row_per_group
from certree.tables.column_names import expect_other_column
from certree.tables.csv_text import STANDARD_STREAM, get_display_name
from certree.tables.fitted_types import get_fitted_columns, use_model_format
from certree.tables.formats import open_files
from certree.tables.pipeline_columns import InputColumn
from certree.tables.reader import read_batches
from certree.tables.table_source import TableSource

OnePerGroup = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of groups of rows that depend on each other, such as customers. Use one row of "
        "each group, drawn at random, as intervals and guarantees need independent rows.",
    ),
]
Independent = Annotated[
    bool,
    typer.Option(
        "--independent",
        help="Rows are independent draws: those of one period, if they have times; or each is of "
        "another group, although the model was fitted with groups.",
    ),
]


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """Columns of groups of dependent rows that a command uses, and how. `choose_groups` makes it.

    At most one of both is not None.

    Parameters
    ----------
    dependent : str or None
        Column of groups, each of which counts as one observation; None: rows are independent, or
        one row per group is drawn.
    one_per_group : str or None
        Column of groups, of each of which one row is drawn; None: all rows are used.
    """

    dependent: str | None = None
    one_per_group: str | None = None


def choose_groups(
    model: Any,
    source: TableSource,
    target: str,
    given: GroupColumns,
    *,
    is_independent: bool,
    needs_draw: bool,
) -> GroupColumns:
    """Return the columns of groups that a command uses: those of its options, or that of the fit.

    If the model was fitted with groups and no option is used, its column of groups is used, and a
    note is printed. If it was fitted to one row of each group, and the table has their column, a note
    says that its rows may depend on each other.

    Parameters
    ----------
    model : fitted estimator
        The model, which may store the name of the column of groups of its fit.
    source : TableSource
        Table or folder of new rows.
    target : str
        Column of the target.
    given : GroupColumns
        Values of --dependent and --one-per-group.
    is_independent : bool
        Whether --independent is used.
    needs_draw : bool
        True if the command cannot count groups, so that it needs one row of each group.

    Returns
    -------
    GroupColumns
        Column of groups that count as one observation each, or column of groups of each of which
        one row is drawn; at most one is not None.

    Raises
    ------
    ValueError
        If options exclude each other, the table lacks the column that one names, the model was
        fitted with groups of which the table has no column, or --independent is used for a model
        that was fitted without groups and times.
    """
    used = {
        "--dependent": given.dependent is not None,
        "--one-per-group": given.one_per_group is not None,
        "--independent": is_independent,
    }
    names = [name for name, is_used in used.items() if is_used]
    option = "--one-per-group" if needs_draw else "--dependent"
    if len(names) > 1:
        raise ValueError(f"{names[0]} and {names[1]} exclude each other: give one")
    estimator = split_pipeline(model)[0]
    column, drawn = find_groups_column(estimator), find_drawn_groups_column(estimator)
    if is_independent:
        if (column, drawn, find_time_column(estimator)) == (None, None, None):
            raise ValueError(
                "--independent declares rows to be independent draws although they have times (--time) "
                "or the model was fitted with groups or times, but none of this is so here: leave it "
                "out, or give --time COLUMN as well if the command has this option"
            )
        return given
    if column is None and drawn is None and not names:
        return given
    columns = _list_columns(model, source)
    if names:
        _check_chosen_column(given, column, source, target, columns)
        return given
    if column is None:
        _note_drawn_groups(drawn, columns, option)
        return given
    if columns is None or column not in columns or column == target:
        name = f" of {column!r}, which {get_display_name(source)} lacks" if column else ""
        if columns is None:
            name = ", and standard input cannot be read twice"
        raise ValueError(
            f"{option} must name the column of groups, as the model was fitted with groups{name}: give "
            f"{option} COLUMN, or --independent if all rows belong to different groups"
        )
    print_note(f"{option} {column}: the model was fitted with these groups")
    return GroupColumns(None, column) if needs_draw else GroupColumns(column)


def _check_chosen_column(
    given: GroupColumns,
    fitted: str | None,
    source: TableSource,
    target: str,
    columns: list[str] | None,
) -> None:
    """Raise ValueError if the table lacks the column of an option, and remark if the fit had another.

    given: values of --dependent and --one-per-group, one of which is used; fitted: column of the
    groups of the fit, None if it had none, "" if its name is not known; source: table or folder of
    new rows; target: column of the target; columns: names of its columns; None: they are not known.
    """
    option, chosen = "--dependent", given.dependent
    if chosen is None:
        option, chosen = "--one-per-group", given.one_per_group
    assert chosen is not None
    expect_not_dropped(source, {option: chosen})
    if columns is not None:
        expect_other_column(option, chosen, columns, target)
    if fitted and chosen != fitted:
        print_note(
            f"{option} {chosen}: the model was fitted with other groups, those of {fitted!r}; "
            f"the result holds if rows of different groups of {chosen!r} are independent"
        )


def _note_drawn_groups(drawn: str | None, columns: list[str] | None, option: str) -> None:
    """Print that rows of one group may depend on each other, if a table has the groups of the fit.

    drawn: column of the groups of which the model was fitted to one row each; None: it was fitted to
    all rows; columns: names of the columns of the table; None: they are not known; option: the option
    that takes the column.
    """
    if drawn in (columns or []):
        print_note(
            f"the model was fitted to one row of each group of {drawn!r}, a column of this table, "
            "too: rows are taken as independent, although those of one group may depend on each "
            f"other; give {option} {drawn}, or --independent if no group has two rows"
        )


def _list_columns(model: Any, source: TableSource) -> list[str] | None:
    """Return the names of the columns that are read; None for standard input, which is read once.

    model: the model, with whose format of CSV files the names are read; source: the table, or the
    folder, whose first file is read.
    """
    if str(source) == STANDARD_STREAM:
        return None
    return open_files(use_model_format(source, model))[0].names()


@dataclass(frozen=True, slots=True, eq=False)
class GroupDraw:
    """A random sample of a table's rows: one row of each group. `draw_rows` makes it.

    Parameters
    ----------
    column : str
        Column of the groups.
    rows : ndarray of intp, shape (n_groups,)
        Indices of the drawn rows, ascending.
    n_rows : int
        Number of all rows.
    """

    column: str
    rows: Indices
    n_rows: int

    @classmethod
    def from_labels(cls, column: str, labels: NDArray[Any]) -> GroupDraw:
        """Draw one row of each group at random; the draw is the same in each call.

        column: name of the column of the groups; labels: group of each row of the table, (n,). Raise
        ValueError if a group is missing.
        """
        return cls(column, draw_row_per_group(labels), len(labels))

    def __str__(self) -> str:
        """Return a sentence that says which rows are used, and what a new row is."""
        rows = f"{len(self.rows):,} of {format_quantity(self.n_rows, 'row')}"
        return (
            f"{rows}, one drawn at random from each group of {self.column!r}: here, a new row is one "
            "drawn at random from a new group"
        )

    @property
    def phrase(self) -> str:
        """Words for a title: "80 rows, one drawn at random from each group of 'shop'"."""
        rows = format_quantity(len(self.rows), "row")
        return f"{rows}, one drawn at random from each group of {self.column!r}"

    def take(self, table: pa.Table) -> pa.Table:
        """Return the drawn rows of a table.

        table: all rows among which the draw was made, in the same order.
        """
        return table.take(self.rows)

    def take_batch(self, table: pa.Table, first: int) -> pa.Table:
        """Return those rows of a batch that were drawn, which may be none.

        table: the batch, consecutive rows of the whole table; first: index of its first row in the
        whole table.
        """
        low, high = np.searchsorted(self.rows, [first, first + len(table)])
        return table.take(self.rows[low:high] - first)


def draw_rows(model: Any, source: TableSource, target: str, column: str | None) -> GroupDraw | None:
    """Read the groups of a table or folder, and draw one row of each group.

    Parameters
    ----------
    model : fitted estimator
        The model, with whose format of CSV files the groups are read.
    source : TableSource
        Table or folder, with options of reading.
    target : str
        Column of the target.
    column : str or None
        Column of the groups; None: no rows are drawn.

    Returns
    -------
    GroupDraw or None
        The drawn rows; None if `column` is None.

    Raises
    ------
    ValueError
        If there is no such column beside the target, groups are missing, or the rows come from
        standard input, which cannot be read twice.
    """
    if column is None:
        return None
    if str(source) == STANDARD_STREAM:
        raise ValueError("--one-per-group reads FILE twice: pass a file instead of standard input")

    def find_words(names: list[str]) -> dict[str, InputColumn]:
        """Return the type of the column of groups, if words such as "NA" are categories of it.

        Such words are then read as text instead of missing values. The key of the dict is the name
        of the column, the value its type in the fit. Return {} if the column is no feature, or has
        no such categories. names: columns of a file. Raise a ValueError unless they include the
        column.
        """
        expect_other_column("--one-per-group", column, names, target)
        fitted = get_fitted_columns(model, target, names, [column]).get(column)
        return {} if fitted is None or not fitted.words else {column: fitted}

    batches = read_batches(
        use_model_format(source, model), find_words, ROWS_PER_BATCH, [column], [column]
    )
    groups: list[NDArray[Any]] = [
        read_extra_column("--one-per-group", batch.table, column, target)
        for batch in batches
        if len(batch.table)
    ]
    labels = np.concatenate(groups) if groups else np.empty(0)
    return GroupDraw.from_labels(column, labels)
