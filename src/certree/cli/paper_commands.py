"""Commands that rerun the experiments of the paper on tree pruning and print its tables."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, RenderableType

from certree import paper
from certree.cli.app import Jobs, Quiet, command, output_file_option
from certree.cli.figure_output import expect_figure_path, save_figure
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
    """Split the values of a command's option at commas; return the names without spaces around them.

    values: one text for each use of the option; None or empty if it was not used. default: names
    that are returned in this case.
    """
    if not values:
        return list(default)
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _parse_integers(option: str, values: list[str] | None, default: tuple[int, ...]) -> list[int]:
    """Parse the values of an option, split at commas, into a list of non-negative integers.

    Parameters
    ----------
    option : str
        Name of the option, for the message.
    values : list of str or None
        One text for each use of the option, such as "10,20"; None if it was not used.
    default : tuple of int
        Returned if there are no values.

    Raises
    ------
    ValueError
        If a text is not a non-negative integer.
    """
    texts = _split_at_commas(values, tuple(map(str, default)))
    if not all(text.isdecimal() for text in texts):
        raise ValueError(
            f"{option} must be non-negative integers, got {', '.join(texts)}: separate them by "
            "commas"
        )
    return list(map(int, texts))


def _show_results(
    printouts: Iterable[RenderableType],
    content: dict[str, Any],
    json_file: Path | None,
    draw: Callable[[], Any] | None = None,
    plot: Path | None = None,
) -> None:
    """Print results, and write them to a JSON file and a figure if paths are given.

    Parameters
    ----------
    printouts : iterable of rich renderables
        Printed on standard output, one below the other.
    content : dict
        Written to `json_file`; NaN and infinities as null.
    json_file : Path or None
        JSON file to write; None: none.
    draw : callable or None
        Takes nothing and returns a matplotlib figure.
    plot : Path or None
        File to which the figure is saved; None: nothing is drawn.
    """
    for printout in printouts:
        Console().print(printout, highlight=False)
    if json_file:
        text = json.dumps(_without_nan(content), indent=1, allow_nan=False) + "\n"
        write_atomically(json_file, lambda file: file.write(text.encode()))
    if draw and plot:
        save_figure(plot, draw)


def _without_nan(value: Any) -> Any:
    """Return a value with NaN and infinities replaced by None, also in nested dicts and lists.

    Tuples become lists. JSON, which has no NaN, stores None as null.
    """
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


@command
def table1(data: Data = None, datasets: Datasets = None, json_file: Json = None) -> None:
    """Print the sizes of the data sets beside those in Table 1 of Nguyen and Kpotufe's paper.

    By default all data sets of the paper are measured.\f

    Parameters
    ----------
    data : str or None
        Folder of NAME.parquet files; None: data sets of scikit-learn and OpenML alone.
    datasets : list of str or None
        Names of data sets; None: those of the paper.
    json_file : Path or None
        JSON file to write; None: none.
    """
    expect_writable(json_file)
    names = _split_at_commas(datasets, PAPER_SETS)
    sizes = table1_experiment.measure_datasets({name: tables.load(name, data) for name in names})
    _show_results(result_tables.format_table1(sizes), table1_experiment.to_json(sizes), json_file)


@command
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
    """Rerun the comparison of methods for pruning trees in Table 2 of Nguyen and Kpotufe's paper.

    By default on all data sets and with all growers of the paper.\f

    Parameters
    ----------
    data : str or None
        Folder of NAME.parquet files; None: data sets of scikit-learn and OpenML alone.
    datasets : list of str or None
        Names of data sets; None: those of the paper.
    growers : list of str or None
        Names of growers: "dyadic" (splits at midpoints), "dyadic-expanded" (with regions without
        rows), "kd" (medians, feature after feature), "kd-spread" (medians of the widest feature);
        None: all four.
    repeats : int
        Number of repetitions, each with another random draw.
    jobs : int
        Number of threads; -1: all cores.
    json_file, plot : Path or None
        JSON file and figure to write; None: none.
    quiet : bool
        Whether to show no progress bar.
    """
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


@command
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
    """Rerun the comparison of Nguyen and Kpotufe's Figure 2 for five training sizes.

    The test errors of all methods are printed.

    By default on the data sets of more than two classes, with dyadic and k-d trees.\f

    Parameters
    ----------
    data : str or None
        Folder of NAME.parquet files; None: data sets of scikit-learn and OpenML alone.
    datasets : list of str or None
        Names of data sets; None: crowd, wine, digit and letter, those of more than two classes.
    growers : list of str or None
        Names of growers: "dyadic" (splits at midpoints), "dyadic-expanded" (with regions without
        rows), "kd" (medians, feature after feature), "kd-spread" (medians of the widest feature);
        None: "dyadic" and "kd".
    repeats : int
        Number of repetitions, each with another random draw.
    jobs : int
        Number of threads; -1: all cores.
    json_file, plot : Path or None
        JSON file and figure to write; None: none.
    quiet : bool
        Whether to show no progress bar.
    """
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


@command
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
    """Simulate how fast the error of a pruned tree falls to the Bayes error as rows are added.

    Labels are wrong with the probability --noise, so that the Bayes error is known.\f

    Parameters
    ----------
    dimensions, sizes : list of str or None
        Numbers of features and of training rows, as texts; None: 2 and 3 features; 2**8, 2**10,
        ..., 2**16 rows.
    repeats : int
        Number of repetitions, each with another random draw.
    noise : float
        Fraction of wrong labels.
    jobs : int
        Number of threads; -1: all cores.
    json_file, plot : Path or None
        JSON file and figure to write; None: none.
    quiet : bool
        Whether to show no progress bar.
    """
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
