"""Seeing a model: rows explained, pictures, the page, and files for other programs."""

import io
import json
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import joblib
import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from certree import show
from certree.cli.app import ANSWERS, command, draw_to, expect_to_draw, file_to_write, say
from certree.cli.rows import (
    Groups,
    ModelFile,
    RowsFile,
    Target,
    ThresholdCost,
    costs_of,
    read_judged_rows,
    read_rows,
)
from certree.explain import interaction_fractions, shapley_values
from certree.files import models, tables
from certree.files.places import expect_writable
from certree.interface.atomic_write import write_atomically

_BACKGROUND = 100

OptionalRows = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="Table of rows, where the picture is of some."),
]
OptionalTarget = Annotated[
    str | None, typer.Option(help="Column with the class, or the number, where rows are judged.")
]


@command(ANSWERS)
def explain(
    model_file: ModelFile,
    file: RowsFile,
    row: Annotated[int, typer.Option(min=0, help="Which row is explained, counted from 0.")] = 0,
    output: Annotated[
        Path | None,
        file_to_write(
            "--output",
            "-o",
            help="Table of the contributions to all rows to write.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, file_to_write(help="Draw to this file (.png, .svg, .pdf).")
    ] = None,
    shapley: Annotated[
        bool, typer.Option("--shapley", help="Shapley values, against 100 rows of the table.")
    ] = False,
    interactions: Annotated[
        bool, typer.Option("--interactions", help="Features and pairs by their share of variance.")
    ] = False,
) -> None:
    """Say how much each feature adds to the prediction of a row.

    With --interactions, instead: how much of the variance of all predictions is due to which features
    and pairs of them.
    """
    tables.expect_table_place(output)
    expect_to_draw(plot)
    model, X = read_rows(model_file, file)
    if not hasattr(model, "explain"):
        raise ValueError(f"{type(model).__name__} has no explanations")
    if interactions:
        _interactions(model, X, plot)
        return
    if not len(X):
        raise ValueError(f"{file} has no rows")
    if row >= len(X):
        raise ValueError(f"--row must be below {len(X)}, the number of rows, got {row}")
    explained = partial(shapley_values, model, background=_some(X)) if shapley else model.explain
    one = explained(X[row : row + 1])
    if output is not None:
        tables.write(_columns(explained(X)), output)
    say(str(one))
    if plot is not None:
        draw_to(plot, lambda: show.plot_explanation(one))


def _interactions(model: Any, X: NDArray[Any], plot: Path | None) -> None:
    """Say, and draw, which features act together."""
    shares = interaction_fractions(model, X)
    say(str(shares))
    if plot is not None:
        draw_to(plot, lambda: show.plot_interactions(shares))


def _some(X: NDArray[Any]) -> NDArray[Any]:
    """Rows from which features come that are not known, drawn at random."""
    if len(X) <= _BACKGROUND:
        return X
    return X[np.random.default_rng(0).choice(len(X), _BACKGROUND, replace=False)]


def _columns(explanation: Any) -> pa.Table:
    """Contributions to each output: a column for the base, and one for each feature."""
    base = "base"
    while base in explanation.feature_names:
        base += "_"
    names: list[str] = []
    columns: list[NDArray[Any]] = []
    one = len(explanation.output_names) == 1
    for k, output in enumerate(explanation.output_names):
        of = "" if one else f"{output}: "
        names += (f"{of}{name}" for name in (base, *explanation.feature_names))
        columns += (
            np.full(len(explanation), explanation.base[k]),
            *explanation.contributions[:, k].T,
        )
    tables.expect_distinct(names)
    return pa.table(columns, names=names)


@command(ANSWERS)
def report(
    model_file: ModelFile,
    file: RowsFile,
    target: Target,
    output: Annotated[
        Path, file_to_write("--output", "-o", help="Page to write, one HTML file.")
    ] = Path("report.html"),
    groups: Groups = None,
    threshold_cost: ThresholdCost = None,
) -> None:
    """Write a page about a model and how it does on the rows of a table."""
    expect_writable(output)
    costs = costs_of(threshold_cost)
    model, X, truth, kinds = read_judged_rows(model_file, file, target, groups)
    show.report(model, X, truth, output, groups=kinds, costs=costs)
    say(f"written to {output}")


class PictureName(StrEnum):
    """What may be drawn of a model."""

    tree = "tree"
    importance = "importance"
    calibration = "calibration"
    certificate = "certificate"
    ranking = "ranking"
    selective = "selective"
    loss = "loss"


# What is drawn of a model, of rows and of their target.
_OF_MODEL: dict[PictureName, Callable[[Any], Any]] = {
    PictureName.tree: show.plot_tree,
    PictureName.importance: show.plot_importance,
    PictureName.selective: show.plot_selective,
}
_OF_ROWS: dict[PictureName, Callable[[Any, Any, Any], Any]] = {
    PictureName.calibration: show.plot_calibration,
    PictureName.certificate: show.plot_certificate,
    PictureName.loss: show.plot_loss,
    PictureName.ranking: show.plot_ranking,
}


@command(ANSWERS)
def plot(
    picture: Annotated[PictureName, typer.Argument(metavar="WHAT", help=", ".join(PictureName))],
    model_file: ModelFile,
    file: OptionalRows = None,
    target: OptionalTarget = None,
    output: Annotated[
        Path | None,
        file_to_write("--output", "-o", help="Picture to write.", show_default="WHAT.png"),
    ] = None,
) -> None:
    """Draw a model: its tree, importances, calibration, certificate, ranking or loss."""
    place = Path(f"{picture}.png") if output is None else output
    expect_to_draw(place)
    if picture in _OF_MODEL:
        model = models.load(model_file)
        draw_to(place, lambda: _OF_MODEL[picture](model))
    elif file is None or target is None:
        raise ValueError(f"expected FILE and --target: the picture of {picture} is of rows")
    else:
        parts = read_judged_rows(model_file, file, target)[:3]
        draw_to(place, lambda: _OF_ROWS[picture](*parts))
    say(f"written to {place}")


def _onnx(model: Any, _: str) -> bytes:
    return bytes(model.to_onnx().SerializeToString())


def _json(model: Any, _: str) -> bytes:
    return json.dumps(model.to_dict(), allow_nan=False).encode()


def _sql(model: Any, table: str) -> bytes:
    return model.to_sql(table).encode() + b"\n"


def _joblib(model: Any, _: str) -> bytes:
    file = io.BytesIO()
    joblib.dump(model.to_sklearn(), file)
    return file.getvalue()


_FORMATS: dict[str, Callable[[Any, str], bytes]] = {
    ".onnx": _onnx,
    ".sql": _sql,
    ".json": _json,
    ".joblib": _joblib,
}


@command(ANSWERS)
def export(
    model_file: ModelFile,
    output: Annotated[
        Path,
        file_to_write(
            *("--output", "-o"),
            metavar="FILE",
            help=f"{', '.join(_FORMATS)}: the last holds an estimator of scikit-learn.",
        ),
    ],
    table: Annotated[
        str, typer.Option(metavar="NAME", help="Table that a statement of SQL reads.")
    ] = "rows",
) -> None:
    """Write a model for ONNX, SQL, JSON or scikit-learn."""
    expect_writable(output)
    write = _FORMATS.get(output.suffix.lower())
    if write is None:
        raise ValueError(f"expected a file {', '.join(_FORMATS)}, got {output}")
    model = models.load(model_file)
    if not hasattr(model, "to_dict"):
        raise ValueError(f"{type(model).__name__} has no exports: its predictions are no tree's")
    content = write(model, table)
    write_atomically(output, lambda file: file.write(content))
    say(f"written to {output} ({len(content) / 1e6:.2g} MB)")
