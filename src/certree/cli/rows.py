"""Tables of the command line: the columns that a model reads, in its order."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from certree.files import models, tables

Model = Any

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
RowsFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Table of rows: .csv, .csv.gz, .tsv, .parquet, .arrow; - reads CSV."
    ),
]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="With the class, or the number.")]


def read_rows(model_file: Path, file: Path) -> tuple[Model, NDArray[Any]]:
    """A model, and the rows of a table that may have no target."""
    model = models.load(model_file)
    return model, _rows_for(model, tables.read(file), file)


def read_judged_rows(
    model_file: Path, file: Path, target: str
) -> tuple[Model, NDArray[Any], NDArray[Any]]:
    """A model, rows, and their classes or numbers."""
    model = models.load(model_file)
    columns = tables.read(file)
    truth = tables.split_target(columns, target).y
    return model, _rows_for(model, columns, file), np.asarray(truth)


def _rows_for(model: Model, columns: pa.Table, file: Path) -> NDArray[Any]:
    table = tables.split_target(_features(columns, model, file), None)
    _expect_numbers(table, model)
    return table.X


def _features(columns: pa.Table, model: Model, file: Path) -> pa.Table:
    """The columns that a model reads, in its order."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        if columns.num_columns != model.n_features_in_:
            raise ValueError(
                f"the model knows no names of features, and {file} has {columns.num_columns} columns "
                f"where it expects {model.n_features_in_}"
            )
        return columns
    missing = [name for name in names if name not in columns.column_names]
    if missing:
        raise ValueError(f"{file} has no column {', '.join(map(repr, missing))}")
    return columns.select(list(names))


def _expect_numbers(table: tables.Table, model: Model) -> None:
    """Name a column that holds words where the model was fitted on numbers."""
    known = model.categories_.names if model.categories_ else [None] * model.n_features_in_
    for j in table.categorical:
        if known[j] is None:
            raise ValueError(f"feature {table.feature_names[j]!r} must hold numbers, got strings")
