"""Tables of the command line: the columns that a model reads, in its order."""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.certificates.hold_out import expect_known_labels
from certree.files import models, tables
from certree.rows.columns import is_missing

Model = Any

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
RowsFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Table of rows: .csv, .csv.gz, .tsv, .parquet, .arrow; - reads CSV."
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
    return model, _rows_for(model, tables.read(file, partial(_types, model, None)), file)


def read_judged_rows(
    model_file: Path, file: Path, target: str, groups: str | None = None
) -> tuple[Model, NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """A model, rows, their classes or numbers, and their groups if a column is named."""
    model = models.load(model_file)
    columns = tables.read(file, partial(_types, model, target))
    truth = np.asarray(tables.split_target(columns, target).y)
    _expect_known(model, truth, f"the target {target!r}")
    kinds = None if groups is None else column_beside(columns, groups, target)
    if getattr(model, "feature_names_in_", None) is None:
        columns = columns.drop_columns([target, *([] if groups is None else [groups])])
    return model, _rows_for(model, columns, file), truth, kinds


def column_beside(columns: pa.Table, name: str, target: str) -> NDArray[Any]:
    """A column that is no feature and not the target, such as groups or weights."""
    if name not in columns.column_names or name == target:
        others = [one for one in columns.column_names if one != target]
        raise ValueError(f"no column {name!r} beside the target; there are {tables.listed(others)}")
    values = columns.column(name).combine_chunks()
    if values.null_count:
        raise ValueError(f"the column {name!r} has {values.null_count} missing values")
    found = np.asarray(values.to_numpy(zero_copy_only=False))
    return found.astype(str) if found.dtype == object else found


def _types(model: Model, target: str | None, seen: pa.Schema) -> dict[str, pa.DataType]:
    """Types of columns as the fit had them: codes may look like numbers where they come alone."""
    known = getattr(model, "feature_names_in_", None)
    features = [name for name in seen.names if name != target] if known is None else known
    types = dict(zip(features, _kinds(model), strict=False))
    if target is not None and is_classifier(model) and model.classes_.dtype.kind in "OU":
        types[target] = pa.string()
    return {name: kind for name, kind in types.items() if name in seen.names}


def _kinds(model: Model) -> list[pa.DataType]:
    """What the features held in the fit: strings, numbers, or nothing that is known."""
    if model.categories_ is None:
        return [pa.float64()] * model.n_features_in_
    return list(map(_kind, model.categories_.names))


def _kind(names: Sequence[Any] | None) -> pa.DataType:
    if names is None:
        return pa.float64()
    if not names:
        return pa.null()
    return pa.string() if isinstance(names[0], str) else pa.float64()


def _expect_known(model: Model, truth: NDArray[Any], name: str) -> None:
    """Refuse a target that nobody could have fitted the model to."""
    if is_classifier(model):
        expect_known_labels(name, truth, model.classes_)
    elif truth.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers as in the fit, got {truth[:1].tolist()[0]!r}")


def _rows_for(model: Model, columns: pa.Table, file: Path) -> NDArray[Any]:
    table = tables.split_target(_features(columns, model, file), None)
    _expect_kinds(table, model)
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
        raise ValueError(f"{file} has no column {tables.listed(map(repr, missing))}")
    return columns.select(list(names))


def _expect_kinds(table: tables.Table, model: Model) -> None:
    """Name a column that holds words where the model was fitted on numbers, or the other way round."""
    for j, kind in enumerate(_kinds(model)):
        present = [value for value in table.X[:, j].tolist() if not is_missing(value)]
        came = {isinstance(value, str) for value in present}
        if kind == pa.float64() and True in came:
            wanted, strange = "numbers", next(filter(_is_no_number, present), present[0])
        elif kind == pa.string() and False in came:
            wanted, strange = "strings", present[0]
        else:
            continue
        raise ValueError(
            f"feature {table.feature_names[j]!r} must hold {wanted} as in the fit, got {strange!r}"
        )


def _is_no_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return True
    return False


def costs_of(text: str | None) -> tuple[float, float] | None:
    """Two costs with a colon between them."""
    if text is None:
        return None
    try:
        of_miss, of_alarm = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"expected --threshold-cost such as 5:1, got {text}") from None
    return of_miss, of_alarm
