"""Options of commands that read tables, and functions that read tables as rows of a model."""

import re
from collections.abc import Sequence
from enum import StrEnum
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from certree.certificates import Monitor
from certree.files import models
from certree.files.model_rows import expect_valid_target, select_features
from certree.interface.fitted_state import check_one_target
from certree.show.ranking import check_costs
from certree.tables import reader
from certree.tables.column_names import expect_known_columns, expect_other_column, join_names
from certree.tables.column_types import extract_values
from certree.tables.csv_text import MISSING_MARKERS, get_display_name
from certree.tables.fitted_types import get_fitted_columns, list_input_columns, use_model_format
from certree.tables.new_values import warn_of_new_values
from certree.tables.pipeline_columns import InputColumn
from certree.tables.reader import Batch
from certree.tables.table import extract_target
from certree.tables.table_source import TableSource

if TYPE_CHECKING:
    from certree.cli.group_draw import GroupDraw

Model = Any

# How another positive class is chosen, in commands without --positive.
_OF_OTHER_COMMANDS = "evaluate, certify and other commands choose another by --positive"

# Suffixes of tables whose columns have types.
_TYPED_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather")

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table: .csv, .csv.gz, .tsv, .parquet or .arrow; - reads CSV from standard input.",
    ),
]
TableOrFolder = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table: .csv, .csv.gz, .tsv, .parquet or .arrow; or a folder of such files, which may "
        "be larger than memory; - reads CSV from standard input.",
    ),
]
Target = Annotated[
    str, typer.Option(metavar="COLUMN", help="Column of the target: classes or numbers.")
]


Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the input, such as a key, to copy to the output; repeat for more.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column of groups to compare, such as the region. In fit, --groups instead names rows "
        "that depend on each other.",
    ),
]
ThresholdCost = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        help="Cost of a missed row of the positive class, and of a false alarm. Certify all thresholds "
        "of its probability and report the cheapest. Choose the costs before you see the rows.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        help="Predict the positive class if its probability is at least T.",
        show_default="the more probable class",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS",
        help="The positive one of two classes: thresholds, costs and probabilities are about it.",
        show_default="the second class that info lists",
    ),
]
PositiveOfExplanations = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="CLASS",
        help="The one of two classes whose probability or score is explained, for all rows.",
        show_default="the second class that info lists",
    ),
]
PositiveOfRules = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="CLASS",
        help="The one of two classes whose probability each rule has.",
        show_default="the predicted class of each rule",
    ),
]


class DuplicateRows(StrEnum):
    """Values of the option --duplicates: how equal rows are understood in a certificate.

    They are values of the parameter `duplicates` of `certree.certify`.

    Attributes
    ----------
    auto : up to max(1, sqrt(n) / 4) of n rows count as independent draws, more, up to 2 % of n, as
        errors, and still more raise a ValueError
    genuine : equal rows are independent draws
    copies : equal rows are copies of one draw, and count once
    refuse : equal rows raise a ValueError
    """

    auto = "auto"
    genuine = "genuine"
    copies = "copies"
    refuse = "refuse"


def load_model(model_file: Path) -> Model:
    """Load a fitted estimator of certree, or a pipeline that ends in one, from a file.

    model_file: path of the file. Raise a ValueError if it holds a monitor, or is no model file.
    """
    model = models.load(model_file)
    if isinstance(model, Monitor):
        raise ValueError(
            f"MODEL must be a model file, but {model_file} holds a monitor: pass the file of its model"
        )
    return model


def load_monitor(state: Path) -> Monitor:
    """Load a monitor from the file of the option --state.

    state: path of the file. Raise ValueError if it is no file of certree, or holds a model.
    """
    monitor = _load_state_file(state)
    if not isinstance(monitor, Monitor):
        raise ValueError(
            f"--state must be a file that certree monitor has written, but {state} holds a model: give "
            "another path"
        )
    return monitor


def _load_state_file(state: Path) -> Any:
    """Load the object in the file of the option --state, normally a monitor.

    state: path of the file. Raise a ValueError if it is no file of certree. A model file raises
    nothing, as the caller raises an error for it.
    """
    try:
        return models.load(state)
    except ValueError as error:
        raise ValueError(
            f"--state must be a new path, or a file that certree monitor has written, but {error}"
        ) from None


def hash_model_file(model_file: Path) -> str:
    """Return the SHA-256 hash of a model file, which identifies the model, in hexadecimal digits.

    model_file: path of the file.
    """
    with model_file.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def load_estimator(model_file: Path, purpose: str) -> Model:
    """Load a fitted estimator of certree from a file; raise a ValueError if the file holds a pipeline.

    model_file: path of the file, which must not hold a monitor either. purpose: what the command
    does with the model, for the message, such as "exported".
    """
    model = load_model(model_file)
    if isinstance(model, Pipeline):
        raise ValueError(
            f"MODEL must be an estimator of certree to be {purpose}, but {model_file} holds a pipeline "
            "of scikit-learn, whose other steps certree cannot translate: convert it in Python with "
            "skl2onnx, after certree.export.register_converters()"
        )
    return model


def read_features(
    model: Model, source: TableSource, options: dict[str, list[str]]
) -> tuple[Any, dict[str, pa.ChunkedArray]]:
    """Read from a table the features that a model needs, and columns to copy to the output.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
        The model.
    source : TableSource
        The table. If the model was fitted with feature names, other columns of the table, such as a
        target, are ignored; else all columns but those of `options` must be features.
    options : dict of str to list of str
        Names of the columns to copy, by the option that names them, such as "--keep". Those of CSV
        files that are no features are text, as it is written.

    Returns
    -------
    X : ndarray of shape (n, p), or pandas.DataFrame
        Features, in the order of the fit; a data frame for a pipeline that was fitted with names.
    columns : dict of str to pyarrow.ChunkedArray
        The columns of `options`, by their names.

    Raises
    ------
    ValueError
        If a file cannot be read, a feature is missing or has another type than in the fit, or there
        is no such column to copy.
    """
    is_text = Path(source).suffix.lower() not in _TYPED_SUFFIXES
    keep = [*dict.fromkeys(name for names in options.values() for name in names)]
    table = _read_for_model(model, source, None, keep, keep if is_text else [])
    for option, names in options.items():
        expect_known_columns(option, names, table.column_names, get_display_name(source))
    columns = {name: table[name] for name in keep}
    if list_input_columns(model)[0] is None:
        table = table.drop_columns([*columns])
    return select_features(model, table, get_display_name(source)), columns


def _read_for_model(
    model: Model,
    source: TableSource,
    target: str | None,
    others: list[str],
    texts: Sequence[str] = (),
) -> pa.Table:
    """Read a table with the types and formats of a model's fit, and warn of values new to the model.

    Parameters
    ----------
    model : fitted estimator
        The model.
    source : TableSource
        The table.
    target : str or None
        Column of the target; None: there is none.
    others : list of str
        Names of the columns that are no features, the target included.
    texts : sequence of str
        Names of columns that are read as text, also words such as NA, unless they are features.

    Returns
    -------
    pyarrow.Table
        All columns of the table.
    """

    def types(names: Sequence[str]) -> dict[str, InputColumn]:
        """Return the types with which a file's columns are read, for those that have a fixed type.

        names: names of the file's columns. Columns of the fit have their type of the fit; columns
        in `texts`, an argument of the enclosing function, are read as text; all others are inferred,
        and are left out here. An `InputColumn` has the type of a column.
        """
        text = InputColumn(pa.string(), words=MISSING_MARKERS - {""})
        is_text = {name: text for name in texts if name in names}
        return is_text | get_fitted_columns(model, target, names, others)

    table = reader.read(use_model_format(source, model), types)
    rows = Batch(table, get_display_name(source), 1.0, is_last=True)
    (read,) = warn_of_new_values(model, [rows], others)
    return read.table


class LabelledRows(NamedTuple):
    """Rows of a table with their targets, for a fitted model.

    Attributes
    ----------
    X : ndarray of shape (n, p), or pandas.DataFrame
        Features, in the order of the fit; a data frame for a pipeline that was fitted with names.
    y : ndarray of shape (n,)
        Targets: classes of the model, or numbers.
    groups : ndarray of shape (n,), or None
        Group of each row; None: rows have no groups.
    times : pyarrow.ChunkedArray of length n, or None
        Time of each row; None: rows have no times.
    """

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    times: Any


def read_labelled_rows(
    model: Model,
    source: TableSource,
    target: str,
    groups: str | None = None,
    draw: "GroupDraw | None" = None,
    time: str | None = None,
    groups_option: str = "--groups",
) -> LabelledRows:
    """Read features, targets, groups and times from a table.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
        The model.
    source : TableSource
        The table.
    target : str
        Column of the classes or numbers.
    groups : str or None
        Column of each row's group; None if there are no groups.
    draw : GroupDraw or None
        The rows that are used, one of each group; None: all rows.
    time : str or None
        Column of each row's time; None if rows have no times.
    groups_option : str
        The option that names `groups`, for messages.

    Returns
    -------
    LabelledRows
        Features in the order of the fit, targets, and groups and times or None for these.

    Raises
    ------
    ValueError
        If a column is missing or has another type than in the fit, a target is no class of the
        model, or there are no rows.
    """
    expect_not_dropped(source, {"--target": target, groups_option: groups, "--time": time})
    extra_columns = [groups, None if draw is None else draw.column, time]
    others = [*dict.fromkeys(name for name in (target, *extra_columns) if name is not None)]
    table = _read_for_model(model, source, target, others)
    if draw is not None:
        table = draw.take(table)
    y = extract_target(table, target, get_display_name(source))
    expect_labelled_rows(len(y), source)
    expect_valid_target(model, y, f"the target {target!r}")
    group_labels = times = None
    if groups is not None:
        group_labels = read_extra_column(groups_option, table, groups, target)
    if time is not None:
        expect_other_column("--time", time, table.column_names, target)
        times = table[time]
    if list_input_columns(model)[0] is None:
        table = table.drop_columns(others)
    return LabelledRows(
        select_features(model, table, get_display_name(source)), y, group_labels, times
    )


def expect_labelled_rows(n: int, source: TableSource) -> None:
    """Raise a ValueError if a table with targets, or a folder of such tables, has no rows.

    n: number of rows. source: the table or folder, for the message.
    """
    if not n:
        raise ValueError(
            f"FILE must have at least one row, but {get_display_name(source)} has no rows: pass a "
            "table with known targets, and leave out empty batches"
        )


def read_extra_column(option: str, table: pa.Table, name: str, target: str) -> NDArray[Any]:
    """Return a column of a table other than the target, such as weights, as an array, (n,).

    option: the option that names it, for messages; name: the column; target: column of the target.

    Strings have a NumPy str dtype, and other values NumPy's type. Raise ValueError if there is no
    such column, it is the target, or it has missing values.
    """
    expect_other_column(option, name, table.column_names, target)
    values = extract_values("the column", table, name, "the table")
    return values.astype(str) if values.dtype == object else values


def expect_not_dropped(source: TableSource, columns: dict[str, str | None]) -> None:
    """Raise a ValueError if --drop leaves out a column that another option names.

    source: a table with options of reading. columns: for each option, such as "--groups", the name
    of the column that it names, or None.
    """
    for option, name in columns.items():
        if name is not None and name in source.drop:
            raise ValueError(
                f"{option} must name a column that is read, but --drop leaves out {name!r}: remove "
                f"--drop {name}"
            )


def parse_costs(text: str | None) -> tuple[float, float] | None:
    """Parse the value of --threshold-cost, "A:B", into two costs.

    Return the cost of a missed row of the positive class and that of a false alarm; None if the
    option was not used (text is None). Raise ValueError if the text is not two numbers, or one is
    negative or infinite, or both are 0.
    """
    if text is None:
        return None
    try:
        false_negative, false_positive = map(float, text.split(":"))
        check_costs(false_negative, false_positive)
    except ValueError:
        raise ValueError(
            "--threshold-cost must be two costs >= 0, not both 0, MISSED:FALSE_ALARM, such as 5:1, got "
            f"{text!r}"
        ) from None
    return false_negative, false_positive


def parse_rows(text: str) -> list[range] | None:
    """Parse the value of --rows, such as "0-9", "3,7,20-29" or "all", into ranges of rows.

    Return the ranges in the order of the text; None for "all". text: numbers of rows from 0, and
    ranges with both ends, separated by commas; or "all". Raise a ValueError if it has another form.
    """
    if text.strip() == "all":
        return None
    ranges: list[range] = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", item.strip(), re.ASCII)
        first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if last < first:
            raise ValueError(
                f"--rows must be numbers of rows such as 3, 0-9, 3,7,20-29 or all, got {text!r}"
            )
        ranges.append(range(first, last + 1))
    return ranges


def expect_option_of_positive(option: str, value: Any, positive: str | None) -> None:
    """Raise a ValueError if --positive is used without the option that it belongs to.

    option: name of this option, such as "--threshold". value, positive: values of both options,
    None if they are not used.
    """
    if positive is not None and value is None:
        raise ValueError(f"--positive {positive} changes {option} only: give {option} as well")


def describe_positive(model: Any, chooser: str = _OF_OTHER_COMMANDS) -> list[str]:
    """Return a list with a line that names the positive one of two classes; [] for other models.

    model: the fitted estimator. chooser: end of the line, such as "certify chooses another by
    --positive".
    """
    positive = find_default_positive(model)
    return [] if positive is None else [f"positive class: {positive} ({chooser})"]


def find_default_positive(model: Any) -> str | None:
    """Return the second of two classes as text; None for other models.

    model: fitted estimator. None stands for a regressor, several targets, or another number of
    classes.
    """
    classes = model.classes_ if is_classifier(model) else []
    if isinstance(classes, list) or len(classes) != 2:
        return None
    return str(classes[1])


def parse_positive(model: Model, text: str | None) -> Any:
    """Return the class of a fitted model that --positive names; None if text is None.

    A class is named by its text: 1 names the class "1" and the number 1. text: value of the option.
    Raise a ValueError if the model does not have two classes, or none of them has this text.
    """
    if text is None:
        return None
    check_one_target("--positive", model)
    labels = {str(label): label for label in np.asarray(getattr(model, "classes_", [])).tolist()}
    if len(labels) != 2 or text not in labels:
        found = f"classes are {join_names(labels)}" if labels else "target has no classes"
        raise ValueError(
            f"--positive must be one of two classes, but the model's {found}; got {text!r}"
        )
    return labels[text]
