"""Tables of the command line: the columns that a model reads, in its order."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from certree.files import models, tables
from certree.files.rows_of_models import expect_known, rows_for, types_of
from certree.parts.arrow_types import known_values

Model = Any

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
RowsFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Table of rows: .csv, .csv.gz, .tsv, .parquet, .arrow; - reads CSV."
    ),
]
RowsPlace = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table of rows: .csv, .csv.gz, .tsv, .parquet, .arrow; a folder of these, whatever its "
        "size; - reads CSV.",
    ),
]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="With the class, or the number.")]


Groups = Annotated[
    str | None, typer.Option("--groups", metavar="COLUMN", help="With a group of each row.")
]
ThresholdCost = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        help="Costs of a missed row of the second class and of a false alarm, fixed before the "
        "rows are seen: certify every threshold of its probability, and choose one.",
    ),
]


class DuplicateRows(StrEnum):
    """What rows are that are alike."""

    auto = "auto"
    genuine = "genuine"
    copies = "copies"
    refuse = "refuse"


def read_rows(model_file: Path, file: Path) -> tuple[Model, NDArray[Any]]:
    """A model, and the rows of a table that may have no target."""
    model = models.load(model_file)
    return model, rows_for(model, tables.read(file, partial(types_of, model, None)), str(file))


def read_judged_rows(
    model_file: Path, file: Path, target: str, groups: str | None = None
) -> tuple[Model, NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """A model, rows, their classes or numbers, and their groups if a column is named."""
    model = models.load(model_file)
    columns = tables.read(file, partial(types_of, model, target))
    truth = np.asarray(tables.split_target(columns, target).y)
    expect_known(model, truth, f"the target {target!r}")
    kinds = None if groups is None else column_beside(columns, groups, target)
    if getattr(model, "feature_names_in_", None) is None:
        columns = columns.drop_columns([target, *([] if groups is None else [groups])])
    return model, rows_for(model, columns, str(file)), truth, kinds


def column_beside(columns: pa.Table, name: str, target: str) -> NDArray[Any]:
    """A column that is no feature and not the target, such as groups or weights."""
    if name not in columns.column_names or name == target:
        others = [one for one in columns.column_names if one != target]
        raise ValueError(f"no column {name!r} beside the target; there are {tables.listed(others)}")
    found = known_values("the column", columns, name, "the table")
    return found.astype(str) if found.dtype == object else found


def costs_of(text: str | None) -> tuple[float, float] | None:
    """Two costs with a colon between them."""
    if text is None:
        return None
    try:
        of_miss, of_alarm = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"expected --threshold-cost such as 5:1, got {text}") from None
    return of_miss, of_alarm
