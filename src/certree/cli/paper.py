"""The paper's experiment and the rates of its theory."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, RenderableType

from certree import paper
from certree.cli.app import PAPER, Jobs, Quiet, command, draw_to, expect_to_draw, file_to_write
from certree.files import tables
from certree.files.places import expect_writable
from certree.interface.atomic_write import write_atomically
from certree.paper import figure2 as figure2_experiment
from certree.paper import printed
from certree.paper import rates as rates_experiment
from certree.paper import table1 as table1_experiment
from certree.paper import table2 as table2_experiment
from certree.paper.protocol import GROWERS, PAPER_SETS, run

Data = Annotated[
    str | None, typer.Option(help="Directory of NAME.parquet files.", envvar=tables.DATA_VARIABLE)
]
Datasets = Annotated[list[str] | None, typer.Option(help="Data sets; repeat or use commas.")]
Growers = Annotated[
    list[str] | None, typer.Option(help=f"Some of {', '.join(GROWERS)}; repeat or use commas.")
]
Repeats = Annotated[int, typer.Option(min=1, help="Repetitions, each with rows of its own.")]
Json = Annotated[Path | None, file_to_write("--json", help="Write everything to this file.")]
Plot = Annotated[Path | None, file_to_write(help="Draw to this file (.png, .svg, .pdf).")]


def _split(values: list[str] | None, default: tuple[str, ...]) -> list[str]:
    if not values:
        return list(default)
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _whole_numbers(name: str, values: list[str] | None, default: tuple[int, ...]) -> list[int]:
    words = _split(values, tuple(map(str, default)))
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"{name} must be whole numbers, got {', '.join(words)}")
    return list(map(int, words))


def _report(
    parts: Iterable[RenderableType],
    content: dict[str, Any],
    json_file: Path | None,
    draw: Callable[[], Any] | None = None,
    plot: Path | None = None,
) -> None:
    """Print what came out of an experiment, and write it and draw it if asked to."""
    for part in parts:
        Console().print(part, highlight=False)
    if json_file:
        text = json.dumps(_strict(content), indent=1, allow_nan=False) + "\n"
        write_atomically(json_file, lambda file: file.write(text.encode()))
    if draw and plot:
        draw_to(plot, draw)


def _strict(value: Any) -> Any:
    """JSON has no NaN: what could not be computed is null."""
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


@command(PAPER)
def table1(data: Data = None, datasets: Datasets = None, json_file: Json = None) -> None:
    """Print the paper's Table 1, the sizes of its data sets, with ours beside it."""
    expect_writable(json_file)
    names = _split(datasets, PAPER_SETS)
    found = table1_experiment.extents({name: tables.load(name, data) for name in names})
    _report(printed.table1(found), table1_experiment.as_json(found), json_file)


@command(PAPER)
def table2(
    data: Data = None,
    datasets: Datasets = None,
    growers: Growers = None,
    repeats: Repeats = 5,
    jobs: Jobs = -1,
    json_file: Json = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiment and print its Table 2, with ours beside it."""
    expect_writable(json_file)
    expect_to_draw(plot)
    outcomes = run(
        _split(datasets, PAPER_SETS),
        _split(growers, tuple(GROWERS)),
        repeats,
        data,
        n_jobs=jobs,
        verbose=not quiet,
    )
    table = table2_experiment.lines(outcomes)
    content = table2_experiment.as_json(outcomes, table)
    _report(
        printed.table2(table, repeats),
        content,
        json_file,
        lambda: paper.plot_table2(table),
        plot,
    )


@command(PAPER)
def figure2(
    data: Data = None,
    datasets: Datasets = None,
    growers: Growers = None,
    repeats: Repeats = 5,
    jobs: Jobs = -1,
    json_file: Json = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiment for five training sizes and print the errors."""
    expect_writable(json_file)
    expect_to_draw(plot)
    outcomes = run(
        _split(datasets, figure2_experiment.MULTICLASS_SETS),
        _split(growers, ("dyadic", "kd")),
        repeats,
        data,
        figure2_experiment.SHARES,
        n_jobs=jobs,
        verbose=not quiet,
    )
    curves = figure2_experiment.curves(outcomes)
    content = figure2_experiment.as_json(outcomes, curves)
    _report(printed.figure2(curves), content, json_file, lambda: paper.plot_figure2(curves), plot)


@command(PAPER)
def rates(
    dimensions: Annotated[
        list[str] | None, typer.Option(help="Numbers of features, from 2; repeat or use commas.")
    ] = None,
    sizes: Annotated[
        list[str] | None, typer.Option(help="Numbers of training rows; repeat or use commas.")
    ] = None,
    repeats: Repeats = 2,
    noise: Annotated[
        float, typer.Option(help="Share of wrong labels, which is the Bayes error.")
    ] = rates_experiment.NOISE,
    jobs: Jobs = -1,
    json_file: Json = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Simulate how fast prunings come close to the Bayes error, and print the rates."""
    expect_writable(json_file)
    expect_to_draw(plot)
    trials = rates_experiment.simulate(
        _whole_numbers("dimensions", dimensions, rates_experiment.DIMENSIONS),
        _whole_numbers("sizes", sizes, rates_experiment.SIZES),
        repeats,
        noise,
        n_jobs=jobs,
        verbose=not quiet,
    )
    found = rates_experiment.rates(trials)
    content = rates_experiment.as_json(trials, found)
    _report(printed.rates(found), content, json_file, lambda: paper.plot_rates(found), plot)
