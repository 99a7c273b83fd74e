"""Commands that rerun the experiments of the paper on tree pruning and print its tables."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, RenderableType

from certree import paper
from certree.cli.app import (
    PAPER,
    Jobs,
    Quiet,
    command,
    expect_figure_path,
    output_file_option,
    save_figure,
)
from certree.files import tables
from certree.files.output_paths import expect_writable
from certree.interface.atomic_write import write_atomically
from certree.paper import figure2 as figure2_experiment
from certree.paper import rates as rates_experiment
from certree.paper import result_tables
from certree.paper import table1 as table1_experiment
from certree.paper import table2 as table2_experiment
from certree.paper.protocol import GROWERS, PAPER_SETS, run

Data = Annotated[
    str | None,
    typer.Option(
        help="Folder of NAME.parquet files with the data sets.", envvar=tables.DATA_VARIABLE
    ),
]
Datasets = Annotated[
    list[str] | None, typer.Option(help="Data sets; separate them by commas or repeat the option.")
]
Growers = Annotated[
    list[str] | None,
    typer.Option(help=f"Among {', '.join(GROWERS)}; separate by commas or repeat the option."),
]
Repeats = Annotated[
    int, typer.Option(min=1, help="Repetitions, each with another random draw of the rows.")
]
Json = Annotated[
    Path | None, output_file_option("--json", help="Write all results to this JSON file.")
]
Plot = Annotated[
    Path | None, output_file_option(help="Draw a figure to this file (.png, .svg, .pdf).")
]


def _split_at_commas(values: list[str] | None, default: tuple[str, ...]) -> list[str]:
    """Return the names in comma-separated values, or the default if there are no values."""
    if not values:
        return list(default)
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _parse_integers(option: str, values: list[str] | None, default: tuple[int, ...]) -> list[int]:
    """Parse the values of an option into integers; see `_split_at_commas`."""
    texts = _split_at_commas(values, tuple(map(str, default)))
    if not all(text.isdecimal() for text in texts):
        raise ValueError(f"{option} must be integers, got {', '.join(texts)}")
    return list(map(int, texts))


def _show_results(
    printouts: Iterable[RenderableType],
    content: dict[str, Any],
    json_file: Path | None,
    draw: Callable[[], Any] | None = None,
    plot: Path | None = None,
) -> None:
    """Print results, and write `content` and the figure to the files that are not None."""
    for printout in printouts:
        Console().print(printout, highlight=False)
    if json_file:
        text = json.dumps(_without_nan(content), indent=1, allow_nan=False) + "\n"
        write_atomically(json_file, lambda file: file.write(text.encode()))
    if draw and plot:
        save_figure(plot, draw)


def _without_nan(value: Any) -> Any:
    """Replace NaN and infinities by None, which JSON writes as null."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


@command(PAPER)
def table1(data: Data = None, datasets: Datasets = None, json_file: Json = None) -> None:
    """Print the sizes of the data sets, and those in the paper's Table 1."""
    expect_writable(json_file)
    names = _split_at_commas(datasets, PAPER_SETS)
    sizes = table1_experiment.measure_datasets({name: tables.load(name, data) for name in names})
    _show_results(result_tables.format_table1(sizes), table1_experiment.to_json(sizes), json_file)


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
    """Rerun the paper's comparison of methods and print it as in the paper's Table 2."""
    expect_writable(json_file)
    expect_figure_path(plot)
    outcomes = run(
        _split_at_commas(datasets, PAPER_SETS),
        _split_at_commas(growers, tuple(GROWERS)),
        repeats,
        data,
        n_jobs=jobs,
        verbose=not quiet,
    )
    table = table2_experiment.summarise_outcomes(outcomes)
    content = table2_experiment.to_json(outcomes, table)
    _show_results(
        result_tables.format_table2(table, repeats),
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
    """Rerun the paper's comparison for five training sizes and print the test errors (Figure 2)."""
    expect_writable(json_file)
    expect_figure_path(plot)
    outcomes = run(
        _split_at_commas(datasets, figure2_experiment.MULTICLASS_SETS),
        _split_at_commas(growers, ("dyadic", "kd")),
        repeats,
        data,
        figure2_experiment.FRACTIONS,
        n_jobs=jobs,
        verbose=not quiet,
    )
    curves = figure2_experiment.summarise_curves(outcomes)
    content = figure2_experiment.to_json(outcomes, curves)
    _show_results(
        result_tables.format_figure2(curves),
        content,
        json_file,
        lambda: paper.plot_figure2(curves),
        plot,
    )


@command(PAPER)
def rates(
    dimensions: Annotated[
        list[str] | None,
        typer.Option(
            help="Numbers of features, at least 2; separate by commas or repeat the option."
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(help="Numbers of training rows; separate by commas or repeat the option."),
    ] = None,
    repeats: Repeats = 2,
    noise: Annotated[
        float, typer.Option(help="Fraction of wrong labels, which is the Bayes error.")
    ] = rates_experiment.NOISE,
    jobs: Jobs = -1,
    json_file: Json = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Simulate how fast the error of a pruned tree falls to the Bayes error as rows are added."""
    expect_writable(json_file)
    expect_figure_path(plot)
    trials = rates_experiment.simulate(
        _parse_integers("--dimensions", dimensions, rates_experiment.DIMENSIONS),
        _parse_integers("--sizes", sizes, rates_experiment.SIZES),
        repeats,
        noise,
        n_jobs=jobs,
        verbose=not quiet,
    )
    estimates = rates_experiment.summarise_trials(trials)
    content = rates_experiment.to_json(trials, estimates)
    _show_results(
        result_tables.format_rates(estimates),
        content,
        json_file,
        lambda: paper.plot_rates(estimates),
        plot,
    )
