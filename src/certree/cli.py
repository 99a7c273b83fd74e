"""The command line: parses, calls, prints."""

import json
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from sklearn.base import is_classifier

from certree.certificates.hold_out import certify as certify_rows
from certree.estimators.helmbold_schapire import HelmboldSchapireTreeClassifier
from certree.estimators.pac_bayes import PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.estimators.pruned import PrunedTreeClassifier, PrunedTreeRegressor
from certree.estimators.tree_vote import TreeVoteEstimator, TreeVoteRegressor
from certree.experiments import figure2 as figure2_experiment
from certree.experiments import rates as rates_experiment
from certree.experiments import table2 as table2_experiment
from certree.experiments.protocol import EXPANDED, PAPER_SETS, PARTITIONS, PRUNING, run
from certree.experiments.table2 import METHODS, Line
from certree.files import models as storage
from certree.files import tables
from certree.files.whole import write_whole
from certree.naive_bayes.classifier import NaiveBayesClassifier

app = typer.Typer(
    help="Trees in which all prunings vote.", no_args_is_help=True, pretty_exceptions_enable=False
)


class Method(StrEnum):
    """The estimators by their short names."""

    pac_bayes = "pac-bayes"
    pruned = "pruned"
    helmbold_schapire = "helmbold-schapire"
    naive_bayes = "naive-bayes"


class Partition(StrEnum):
    """The partitions by their names."""

    cart = "cart"
    kd = "kd"
    dyadic = "dyadic"


Model = TreeVoteEstimator | NaiveBayesClassifier

_TREE_CLASSIFIERS: dict[Method, type[TreeVoteEstimator]] = {
    Method.pac_bayes: PACBayesTreeClassifier,
    Method.pruned: PrunedTreeClassifier,
    Method.helmbold_schapire: HelmboldSchapireTreeClassifier,
}
_TREE_REGRESSORS: dict[Method, type[TreeVoteEstimator]] = {
    Method.pac_bayes: PACBayesTreeRegressor,
    Method.pruned: PrunedTreeRegressor,
}

Data = Annotated[
    str | None,
    typer.Option(help="Directory of NAME.parquet files.", envvar=tables.DATA_VARIABLE),
]
Datasets = Annotated[list[str] | None, typer.Option(help="Data sets; repeat or use commas.")]
Partitions = Annotated[
    list[str] | None, typer.Option(help=f"Some of {', '.join(PARTITIONS)}; repeat or use commas.")
]
Repeats = Annotated[int, typer.Option(min=1, help="Repetitions, each with rows of its own.")]
Delta = Annotated[float, typer.Option(help="Probability with which the certificate may fail.")]
Jobs = Annotated[int, typer.Option(help="Threads; -1 for all cores.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")]
Plot = Annotated[Path | None, typer.Option(help="Draw to this file (.png, .svg, .pdf).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def _fail(error: Exception) -> NoReturn:
    text = f"[bold red]error:[/] {escape(str(error))}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)
    raise typer.Exit(1)


def _split(values: list[str] | None, default: tuple[str, ...]) -> list[str]:
    if not values:
        return list(default)
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _whole_numbers(name: str, values: list[str] | None, default: tuple[int, ...]) -> list[int]:
    words = _split(values, tuple(map(str, default)))
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"{name} must be whole numbers, got {', '.join(words)}")
    return list(map(int, words))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(_strict(content), indent=1, allow_nan=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def _strict(value: Any) -> Any:
    """JSON has no NaN: what could not be computed is null."""
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _write_figure(path: Path, figure: Figure) -> None:
    kind = path.suffix[1:].lower() or "png"
    write_whole(path, lambda file: figure.savefig(file, format=kind, dpi=150))


@app.command()
def table2(
    data: Data = None,
    datasets: Datasets = None,
    partitions: Partitions = None,
    repeats: Repeats = 5,
    jobs: Jobs = -1,
    json_file: Json = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiment and print its Table 2, with ours beside it."""
    try:
        outcomes = run(
            _split(datasets, PAPER_SETS),
            _split(partitions, tuple(PARTITIONS)),
            repeats,
            data,
            n_jobs=jobs,
            verbose=not quiet,
        )
        table = table2_experiment.lines(outcomes)
        _print_table2(table, repeats)
        if json_file:
            _write_json(json_file, table2_experiment.as_json(outcomes, table))
        if plot:
            from certree.show.curves import plot_table2

            _write_figure(plot, plot_table2(table))
    except (OSError, ValueError) as error:
        _fail(error)


@app.command()
def figure2(
    data: Data = None,
    datasets: Datasets = None,
    partitions: Partitions = None,
    repeats: Repeats = 5,
    jobs: Jobs = -1,
    json_file: Json = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiment for five training sizes and print the errors."""
    try:
        outcomes = run(
            _split(datasets, figure2_experiment.MULTICLASS_SETS),
            _split(partitions, ("dyadic", "kd")),
            repeats,
            data,
            figure2_experiment.SHARES,
            n_jobs=jobs,
            verbose=not quiet,
        )
        curves = figure2_experiment.curves(outcomes)
        _print_figure2(curves)
        if json_file:
            _write_json(json_file, figure2_experiment.as_json(outcomes, curves))
        if plot:
            from certree.show.curves import plot_figure2

            _write_figure(plot, plot_figure2(curves))
    except (OSError, ValueError) as error:
        _fail(error)


@app.command()
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
    try:
        trials = rates_experiment.simulate(
            _whole_numbers("dimensions", dimensions, rates_experiment.DIMENSIONS),
            _whole_numbers("sizes", sizes, rates_experiment.SIZES),
            repeats,
            noise,
            n_jobs=jobs,
            verbose=not quiet,
        )
        found = rates_experiment.rates(trials)
        _print_rates(found)
        if json_file:
            _write_json(json_file, rates_experiment.as_json(trials, found))
        if plot:
            from certree.show.curves import plot_rates

            _write_figure(plot, plot_rates(found))
    except (OSError, ValueError) as error:
        _fail(error)


@app.command()
def fit(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow file of training rows.")
    ],
    target: Annotated[str, typer.Option(help="Column with the class, or the number.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    method: Annotated[Method, typer.Option(help="What to fit.")] = Method.pac_bayes,
    partition: Annotated[
        Partition | None, typer.Option(help="How a tree is grown.", show_default="cart")
    ] = None,
    regression: Annotated[
        bool, typer.Option("--regression", help="The target is a number, not a class.")
    ] = False,
    split: Annotated[
        float | None,
        typer.Option(
            help="Share of the rows that grow the tree; the others certify its error. "
            f"For {Method.pac_bayes} and classes."
        ),
    ] = None,
    delta: Delta = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Random state.")] = 0,
    jobs: Jobs = -1,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table and write it to a file."""
    try:
        if regression and method not in _TREE_REGRESSORS:
            raise ValueError(f"{method} predicts classes, not numbers: --regression is not for it")
        if method == Method.naive_bayes:
            _expect_no_tree({"--partition": partition, "--split": split})
            model: Model = NaiveBayesClassifier()
        else:
            model = _unfitted_tree(method, partition or Partition.cart, regression, split, delta)
            model.set_params(random_state=seed, n_jobs=jobs, verbose=int(not quiet))
        table = tables.split_target(tables.read(file), target)
        model.set_params(categorical_features=table.categorical)
        model.fit(table.X, table.y)
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
        storage.save(model, output)
    except (OSError, ValueError) as error:
        _fail(error)
    Console().print(
        f"{len(table.X)} rows, {table.X.shape[1]} features{_classes(model)}; {_learned(model)}; "
        f"written to {output}{_promise(model)}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _expect_no_tree(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{option} is for trees: --method {Method.naive_bayes} grows none")


def _unfitted_tree(
    method: Method, partition: Partition, regression: bool, split: float | None, delta: float
) -> TreeVoteEstimator:
    estimators = _TREE_REGRESSORS if regression else _TREE_CLASSIFIERS
    certified: dict[str, Any] = {}
    if split is not None:
        if regression or method != Method.pac_bayes:
            raise ValueError(f"--split takes --method {Method.pac_bayes} and classes")
        certified = {"split": split, "delta": delta}
    return estimators[method](partition.value, **certified)


def _learned(model: Model) -> str:
    if isinstance(model, NaiveBayesClassifier):
        kinds = Counter(density.kind for density in model.densities_)
        densities = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        return f"densities: {densities}; power {model.power_:.3g}"
    return f"tree of {model.get_n_leaves()} leaves; {'; '.join(_laws(model))}"


def _promise(model: Model) -> str:
    certificate = getattr(model, "certificate_", None)
    return "" if certificate is None else f"\n{certificate}"


def _classes(model: Model) -> str:
    return f", {len(model.classes_)} classes" if is_classifier(model) else ""


@app.command()
def certify(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow file of rows.")
    ],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    delta: Delta = 0.05,
) -> None:
    """Certify the error of a model by rows that were never used."""
    try:
        model = storage.load(model_file)
        if not is_classifier(model):
            raise ValueError(f"{model_file} predicts numbers; only errors of classes are certified")
        columns = tables.read(file)
        truth = np.asarray(tables.split_target(columns, target).y)
        X = _rows_for(model, columns, file)
        certificate = certify_rows(model, X, truth, delta)
    except (OSError, ValueError) as error:
        _fail(error)
    typer.echo(str(certificate))


def _laws(model: TreeVoteEstimator) -> Iterator[str]:
    """The temperatures of each law and, if there are several, its share."""
    if getattr(model, "certificate_", None) and np.isin(model.weights_.weight, (0, 1)).all():
        yield f"one pruning of {model.weights_.expected_leaves:.0f} leaves predicts"
        return
    columns = np.broadcast_arrays(model.shares_, *model.temperatures_.values())
    for share, *values in zip(*columns, strict=True):
        named = zip(model.temperatures_, values, strict=True)
        text = ", ".join(f"{name} {value:.4g}" for name, value in named)
        yield text if len(model.shares_) == 1 else f"{share:.1%} with {text}"


@app.command()
def predict(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow file of rows.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV or Parquet file to write; else CSV is printed."),
    ] = None,
) -> None:
    """Predict the class of every row of a table, with the classes' shares of the vote.

    The shares of naive Bayes are probabilities. A number is predicted with its standard deviation
    between the prunings and within their leaves.
    """
    try:
        model = storage.load(model_file)
        columns = tables.read(file)
        X = _rows_for(model, columns, file)
        if isinstance(model, TreeVoteRegressor):
            beside = dict(zip(("between", "within"), model.predict_spread(X).T, strict=True))
        else:
            shares = model.predict_proba(X)
            beside = {f"share_{c}": shares[:, k] for k, c in enumerate(model.classes_)}
        _write_table(pa.table({"prediction": pa.array(model.predict(X)), **beside}), output)
    except (OSError, ValueError) as error:
        _fail(error)


def _rows_for(model: Model, columns: pa.Table, file: Path) -> Any:
    """The rows that a model reads, in its order; it then needs their names no more."""
    table = tables.split_target(_features(columns, model, file), None)
    _expect_numbers(table, model)
    model.__dict__.pop("feature_names_in_", None)
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


def _write_table(result: pa.Table, output: Path | None) -> None:
    if output is None:
        _print_csv(result)
        return
    suffix = output.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ValueError(f"expected a .csv or .parquet file, got {output}")

    def write(file: BinaryIO) -> None:
        if suffix == ".csv":
            pa.csv.write_csv(result, file)
        else:
            pa.parquet.write_table(result, file)

    write_whole(output, write)


def _print_csv(result: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(result, sink)
    typer.echo(sink.getvalue().to_pybytes().decode(), nl=False)


def _print_table2(table: list[Line], repeats: int) -> None:
    console = Console()
    means = table2_experiment.mean_ratios(table)
    for partition in dict.fromkeys(line.partition for line in table):
        rows = [line for line in table if line.partition == partition]
        methods = [name for name in METHODS if any(name in line.ratios for line in rows)]
        methods.remove(PRUNING)
        title = f"{partition} tree, {repeats} repetitions: error / error of pruning (paper's)"
        grid = _grid(title, "data set")
        for name in ("error of pruning", *methods):
            # In 80 columns there is room for nine letters a line.
            heading = name.replace(" ", "\n").replace("-p", "-\np").replace("-f", "-\nf")
            grid.add_column(heading, justify="right", no_wrap=True)
        for line in rows:
            cells = [_ratio(line, name) for name in methods]
            grid.add_row(line.dataset, _stacked(line.errors[PRUNING]), *cells)
        average = [f"{means[partition][name]:.3f}" for name in methods]
        grid.add_section()
        grid.add_row("mean", "", *average)
        console.print(grid)
    if any(line.partition == EXPANDED for line in table):
        console.print(f"{EXPANDED}: the dyadic tree with every cell, empty ones too, stored.")
    for note in table2_experiment.notes(table):
        console.print(note, highlight=False)


def _grid(title: str, first: str) -> RichTable:
    grid = RichTable(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    grid.add_column(first, no_wrap=True)
    return grid


def _ratio(line: Line, method: str) -> str:
    if method not in line.ratios:
        return "-"
    paper = line.paper(method)
    return _stacked(line.ratios[method]) + (f"\n({paper:.3f})" if paper is not None else "")


def _stacked(mean: table2_experiment.Mean) -> str:
    return str(mean).replace(" ", "\n")


def _print_figure2(curves: list[figure2_experiment.Curve]) -> None:
    console = Console()
    for partition, dataset in dict.fromkeys((c.partition, c.dataset) for c in curves):
        rows = [c for c in curves if (c.partition, c.dataset) == (partition, dataset)]
        grid = _grid(f"{dataset}, {partition} tree: test error", "training rows")
        for n in rows[0].rows:
            grid.add_column(str(n), justify="right")
        for curve in rows:
            grid.add_row(curve.method, *map(str, curve.errors))
        console.print(grid)


def _print_rates(found: list[rates_experiment.Rate]) -> None:
    console = Console()
    for dimension, boundary in dict.fromkeys((rate.dimension, rate.boundary) for rate in found):
        group = [r for r in found if (r.dimension, r.boundary) == (dimension, boundary)]
        title = f"{boundary} boundary, {dimension} features: excess error"
        grid = _grid(title, "training rows")
        for rate in group:
            # In 80 columns there is room for some twelve letters a rule.
            grid.add_column(rate.rule.replace(" ", "\n"), justify="right", no_wrap=True)
        for n in sorted({n for rate in group for n in rate.rows}):
            grid.add_row(str(n), *(_excess(rate, n) for rate in group))
        grid.add_section()
        grid.add_row("exponent", *(_exponent(rate.fitted) for rate in group))
        grid.add_row("in theory", *(_exponent(rate.theory) for rate in group))
        console.print(grid, highlight=False)
    console.print("Excess: beyond the Bayes error. Exponents of (log n) / n, by the larger sizes.")


def _excess(rate: rates_experiment.Rate, rows: int) -> str:
    return f"{rate.excess[rate.rows.index(rows)].value:.2g}" if rows in rate.rows else "-"


def _exponent(exponent: table2_experiment.Mean | float) -> str:
    if isinstance(exponent, float):
        return "-" if np.isnan(exponent) else f"{exponent:.2f}"
    return "-" if np.isnan(exponent.value) else exponent.rounded(2)
