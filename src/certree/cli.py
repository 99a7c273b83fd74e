"""The command line: parses, calls, prints."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from sklearn.base import is_classifier

from certree import show
from certree.certificates.hold_out import certify as certify_rows
from certree.estimators.certified import CertifiedTreeClassifier
from certree.estimators.helmbold_schapire import HelmboldSchapireTreeClassifier
from certree.estimators.pac_bayes import PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.estimators.pruned import PrunedTreeClassifier, PrunedTreeRegressor
from certree.estimators.tree_vote import TreeVoteEstimator, TreeVoteRegressor
from certree.experiments import figure2 as figure2_experiment
from certree.experiments import printed
from certree.experiments import rates as rates_experiment
from certree.experiments import table2 as table2_experiment
from certree.experiments.protocol import PAPER_SETS, PARTITIONS, run
from certree.extras import needed
from certree.files import models as storage
from certree.files import tables
from certree.files.places import expect_writable
from certree.files.whole import write_whole
from certree.naive_bayes.classifier import NaiveBayesClassifier

app = typer.Typer(
    help="Trees in which all prunings vote.", no_args_is_help=True, pretty_exceptions_enable=False
)


class ModelName(StrEnum):
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


class RepeatedRows(StrEnum):
    """What may be said of rows that also occur among those of a fit."""

    genuine = "genuine"


Model = TreeVoteEstimator | NaiveBayesClassifier

_TREE_CLASSIFIERS: dict[ModelName, type[TreeVoteEstimator]] = {
    ModelName.pac_bayes: PACBayesTreeClassifier,
    ModelName.pruned: PrunedTreeClassifier,
    ModelName.helmbold_schapire: HelmboldSchapireTreeClassifier,
}
_TREE_REGRESSORS: dict[ModelName, type[TreeVoteEstimator]] = {
    ModelName.pac_bayes: PACBayesTreeRegressor,
    ModelName.pruned: PrunedTreeRegressor,
}

Data = Annotated[
    str | None, typer.Option(help="Directory of NAME.parquet files.", envvar=tables.DATA_VARIABLE)
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
TrainingFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow file of training rows.")
]
RowsFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow file of rows.")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
GrowSize = Annotated[
    float | None,
    typer.Option(
        "--certify",
        help="Share of the rows that grow the tree, such as 0.35; the others certify its error. "
        f"For {ModelName.pac_bayes} and classes.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Say what went wrong in one line, and exit with 1; after Ctrl-C as shells do, with 130."""
    try:
        yield
    except BrokenPipeError:
        raise  # who reads the output has seen enough: nobody needs to be told
    except (ImportError, MemoryError, OSError, ValueError) as error:
        text = f"[bold red]error:[/] {escape(str(error) or 'not enough memory')}"
        Console(stderr=True).print(text, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        raise typer.Exit(130) from None


def _split(values: list[str] | None, default: tuple[str, ...]) -> list[str]:
    if not values:
        return list(default)
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _whole_numbers(name: str, values: list[str] | None, default: tuple[int, ...]) -> list[int]:
    words = _split(values, tuple(map(str, default)))
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"{name} must be whole numbers, got {', '.join(words)}")
    return list(map(int, words))


def _expect_to_write(json_file: Path | None, plot: Path | None) -> None:
    """Say what writing and drawing need before anything is computed."""
    expect_writable(json_file)
    expect_writable(plot)
    if plot:
        known = needed("matplotlib.backend_bases", "plot").FigureCanvasBase.filetypes
        if _kind_of_picture(plot) not in known:
            raise ValueError(f"expected a file .{', .'.join(sorted(known))} to draw to, got {plot}")


def _kind_of_picture(plot: Path) -> str:
    return plot.suffix[1:].lower() or "png"


def _report(
    parts: Iterable[RenderableType],
    content: dict[str, Any],
    json_file: Path | None,
    draw: Callable[[], Any],
    plot: Path | None,
) -> None:
    """Print what came out of an experiment, and write it and draw it if asked to."""
    for part in parts:
        Console().print(part, highlight=False)
    if json_file:
        text = json.dumps(_strict(content), indent=1, allow_nan=False) + "\n"
        write_whole(json_file, lambda file: file.write(text.encode()))
    if plot:
        kind = _kind_of_picture(plot)
        write_whole(plot, lambda file: draw().savefig(file, format=kind, dpi=150))


def _strict(value: Any) -> Any:
    """JSON has no NaN: what could not be computed is null."""
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


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
    with _one_line_errors():
        _expect_to_write(json_file, plot)
        outcomes = run(
            _split(datasets, PAPER_SETS),
            _split(partitions, tuple(PARTITIONS)),
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
            lambda: show.plot_table2(table),
            plot,
        )


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
    with _one_line_errors():
        _expect_to_write(json_file, plot)
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
        content = figure2_experiment.as_json(outcomes, curves)
        _report(
            printed.figure2(curves), content, json_file, lambda: show.plot_figure2(curves), plot
        )


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
    with _one_line_errors():
        _expect_to_write(json_file, plot)
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
        _report(printed.rates(found), content, json_file, lambda: show.plot_rates(found), plot)


@app.command()
def fit(
    file: TrainingFile,
    target: Annotated[str, typer.Option(help="Column with the class, or the number.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    method: Annotated[ModelName, typer.Option(help="What to fit.")] = ModelName.pac_bayes,
    partition: Annotated[
        Partition | None, typer.Option(help="How a tree is grown.", show_default="cart")
    ] = None,
    regression: Annotated[
        bool | None,
        typer.Option(
            "--regression/--classification",
            help="Whether the target is a number or a class; asked for if it may be either.",
            show_default="classification",
        ),
    ] = None,
    grow_size: GrowSize = None,
    delta: Delta = 0.05,
    row_hashes: Annotated[
        bool,
        typer.Option(
            help="Whether the file holds hashes of the rows, by which certify refuses them."
        ),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Random state.")] = 0,
    jobs: Jobs = -1,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table and write it to a file."""
    with _one_line_errors():
        expect_writable(output)
        model = _unfitted(method, partition, bool(regression), grow_size, delta)
        if isinstance(model, TreeVoteEstimator):
            model.set_params(random_state=seed, n_jobs=jobs, verbose=int(not quiet))
        table = tables.split_target(tables.read(file), target)
        _expect_target(table.y, f"column {target!r} of {file}", regression)
        model.set_params(categorical_features=table.categorical)
        model.fit(table.X, table.y)
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
        storage.save(model, output, row_hashes=row_hashes)
    Console().print(
        f"{len(table.X)} rows, {table.X.shape[1]} features{_classes(model)}; {_learned(model)}; "
        f"written to {output}{_promise(model)}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


# A target of so many numbers is seldom a class, and scikit-learn's regressors are what others mean.
_MOST_NUMBERED_CLASSES = 20
# Of a mixture, those with the largest shares.
_LAWS_SHOWN = 3


def _expect_target(y: Any, name: str, regression: bool | None) -> None:
    """Ask whether a number or a class is meant where the column does not tell."""
    if regression and y.dtype.kind not in "biuf":
        words = {"M": "dates", "m": "time spans"}.get(y.dtype.kind, "strings")
        example = f", such as {str(y[0])!r}" if len(y) else ""
        raise ValueError(
            f"--regression takes a target of numbers, but {name} holds {words}{example}"
        )
    if regression is None and y.dtype.kind in "iuf":
        n_values = len(np.unique(y))
        if n_values > _MOST_NUMBERED_CLASSES:
            raise ValueError(
                f"{name} holds {n_values} different numbers: expected --regression if it is a "
                "number to predict, or --classification if each is a class"
            )


def _unfitted(
    method: ModelName,
    partition: Partition | None,
    regression: bool,
    grow_size: float | None,
    delta: float,
) -> Model:
    if regression and method not in _TREE_REGRESSORS:
        raise ValueError(f"{method} predicts classes, not numbers: --regression is not for it")
    if method == ModelName.naive_bayes:
        _expect_no_tree({"--partition": partition, "--certify": grow_size})
        return NaiveBayesClassifier()
    return _unfitted_tree(method, partition or Partition.cart, regression, grow_size, delta)


def _expect_no_tree(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{option} is for trees: --method {ModelName.naive_bayes} grows none")


def _unfitted_tree(
    method: ModelName, partition: Partition, regression: bool, grow_size: float | None, delta: float
) -> TreeVoteEstimator:
    if grow_size is None:
        estimators = _TREE_REGRESSORS if regression else _TREE_CLASSIFIERS
        return estimators[method](partition.value)
    if regression or method != ModelName.pac_bayes:
        raise ValueError(f"--certify takes --method {ModelName.pac_bayes} and classes")
    return CertifiedTreeClassifier(partition.value, grow_size=grow_size, delta=delta)


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
    model_file: ModelFile,
    file: RowsFile,
    target: Annotated[str, typer.Option(help="Column with the class.")],
    delta: Delta = 0.05,
    look: Annotated[
        int | None,
        typer.Option(min=1, help="Which look at rows that come in this is; each is paid for."),
    ] = None,
    repeats: Annotated[
        RepeatedRows | None,
        typer.Option(help="Say that rows which occur in the fit as well were drawn anew."),
    ] = None,
) -> None:
    """Certify the error of a model by rows that were never used."""
    with _one_line_errors():
        model = storage.load(model_file)
        if not is_classifier(model):
            raise ValueError(f"{model_file} predicts numbers; only errors of classes are certified")
        columns = tables.read(file)
        truth = np.asarray(tables.split_target(columns, target).y)
        X = _rows_for(model, columns, file)
        certificate = certify_rows(
            model, X, truth, delta, look=look, repeats="genuine" if repeats else None
        )
    typer.echo(str(certificate))


def _laws(model: TreeVoteEstimator) -> Iterator[str]:
    """The temperatures of each law and, if there are several, its share."""
    if getattr(model, "certificate_", None) and np.isin(model.weights_.weight, (0, 1)).all():
        yield f"one pruning of {model.weights_.expected_leaves:.0f} leaves predicts"
        return
    columns = np.broadcast_arrays(model.shares_, *model.temperatures_.values())
    laws = [*zip(model.laws_, *columns, strict=True)]
    for family, share, *values in sorted(laws, key=lambda law: -law[1])[:_LAWS_SHOWN]:
        named = zip(model.temperatures_, values, strict=True)
        text = ", ".join(f"{name} {value:.4g}" for name, value in named)
        yield text if len(laws) == 1 else f"{share:.1%} with {text} ({family})"
    if len(laws) > _LAWS_SHOWN:
        yield f"{len(laws) - _LAWS_SHOWN} more with smaller shares"


@app.command()
def predict(
    model_file: ModelFile,
    file: RowsFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV or Parquet file to write; else CSV is printed."),
    ] = None,
) -> None:
    """Predict the class of every row of a table, with the classes' shares of the vote.

    The shares of naive Bayes are probabilities. A number is predicted with its standard deviation
    between the prunings and within their leaves.
    """
    with _one_line_errors():
        _expect_table_place(output)
        model = storage.load(model_file)
        columns = tables.read(file)
        X = _rows_for(model, columns, file)
        if isinstance(model, TreeVoteRegressor):
            beside = dict(zip(("between", "within"), model.predict_spread(X).T, strict=True))
        else:
            shares = model.predict_proba(X)
            beside = {f"share_{c}": shares[:, k] for k, c in enumerate(model.classes_)}
        _write_table(pa.table({"prediction": pa.array(model.predict(X)), **beside}), output)


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


def _expect_table_place(output: Path | None) -> None:
    expect_writable(output)
    if output is not None and output.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"expected a .csv or .parquet file, got {output}")


def _write_table(result: pa.Table, output: Path | None) -> None:
    if output is None:
        _print_csv(result)
        return

    def write(file: BinaryIO) -> None:
        if output.suffix.lower() == ".csv":
            pa.csv.write_csv(result, file)
        else:
            pa.parquet.write_table(result, file)

    write_whole(output, write)


def _print_csv(result: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(result, sink)
    typer.echo(sink.getvalue().to_pybytes().decode(), nl=False)
