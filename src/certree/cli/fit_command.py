"""The fit command: fit a model to a table or folder of tables, score it, and save it."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from warnings import catch_warnings, filterwarnings

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from certree.cli.app import Jobs, Quiet, command, output_file_option, print_text
from certree.cli.fit_settings import (
    apply_settings,
    collect_fit_arguments,
    parse_settings,
    set_monotonic_constraints,
    split_rows,
)
from certree.cli.group_draw import GroupDraw, Independent, OnePerGroup
from certree.cli.read_options import announce, takes_source
from certree.cli.table_input import (
    DuplicateRows,
    TableOrFolder,
    Target,
    describe_positive,
    expect_not_dropped,
    read_extra_column,
)
from certree.ensembles import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.estimators import (
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)
from certree.estimators.naive_bayes import NaiveBayesClassifier
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.files import models
from certree.files.output_paths import expect_writable
from certree.interface.extras import import_extra
from certree.interface.fitted_state import name_drawn_groups_column, name_groups_column
from certree.interface.formatting import (
    format_duration,
    format_file_size,
    format_quantity,
    shorten_label,
)
from certree.interface.signatures import expect_error_probability
from certree.out_of_core import resources
from certree.out_of_core.plan import plan_fit
from certree.out_of_core.resources import get_memory_limit
from certree.out_of_core.sources import FileRows
from certree.rows.time_order import RowTimes
from certree.show.model_description import describe_features, describe_size
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.scores import compute_scores, format_scores
from certree.tables import reader
from certree.tables.column_names import suggest_names
from certree.tables.csv_text import STANDARD_STREAM
from certree.tables.table import Table, describe_columns, describe_schema, split_target
from certree.tables.table_files import get_stem
from certree.tables.table_source import TableSource

# Features along which predictions must not fall, and features along which they must not rise.
MonotonicFeatures = tuple[list[str], list[str]]

# Parameters of estimators that have options of their own.
_PARAMETERS = (
    "grower",
    "max_leaf_nodes",
    "max_depth",
    "train_size",
    "delta",
    "duplicates",
    "max_time",
)
# Most distinct numbers of a target for which classification is assumed without asking.
_MAX_NUMERIC_CLASSES = 20
# Posteriors of a mixture that --verbose prints, by largest weight.
_N_POSTERIORS_SHOWN = 3
# Classes whose frequencies are printed, by largest frequency.
_N_CLASSES_SHOWN = 4
# Start of warnings whose content the description of a table has as well.
_ANNOUNCED = "column .* count as missing"
# Seconds to wait for a Dask scheduler.
_SCHEDULER_TIMEOUT = 10
# Default fraction of a table's rows in the test set.
_TEST_SIZE = 0.2
# A table of fewer rows gets no test set.
_MIN_ROWS_FOR_TEST = 20


class ModelName(StrEnum):
    """Values of the option --model: short names of the estimators.

    Attributes
    ----------
    tree : PACBayesTreeClassifier or PACBayesTreeRegressor
    pruned : PrunedTreeClassifier or PrunedTreeRegressor
    certified : CertifiedTreeClassifier or CertifiedTreeRegressor
    boosted : BoostedTreesClassifier or BoostedTreesRegressor
    forest : TreeForestClassifier or TreeForestRegressor
    certified_boosted : CertifiedBoostedTreesClassifier or CertifiedBoostedTreesRegressor
    certified_forest : CertifiedForestClassifier
    helmbold_schapire : HelmboldSchapireTreeClassifier
    naive_bayes : NaiveBayesClassifier
    """

    tree = "tree"
    pruned = "pruned"
    certified = "certified"
    boosted = "boosted"
    forest = "forest"
    certified_boosted = "certified-boosted"
    certified_forest = "certified-forest"
    helmbold_schapire = "helmbold-schapire"
    naive_bayes = "naive-bayes"


class GrowerName(StrEnum):
    """Values of the option --grower: names of the ways to grow a single tree.

    Attributes
    ----------
    cart : greedy growth by impurity
    kd : splits at medians, without the target
    dyadic : splits at midpoints of boxes, feature after feature, without the target
    """

    cart = "cart"
    kd = "kd"
    dyadic = "dyadic"


_CLASSIFIERS: dict[ModelName, Callable[..., Any]] = {
    ModelName.tree: PACBayesTreeClassifier,
    ModelName.pruned: PrunedTreeClassifier,
    ModelName.certified: CertifiedTreeClassifier,
    ModelName.boosted: BoostedTreesClassifier,
    ModelName.forest: TreeForestClassifier,
    ModelName.certified_boosted: CertifiedBoostedTreesClassifier,
    ModelName.certified_forest: CertifiedForestClassifier,
    ModelName.helmbold_schapire: HelmboldSchapireTreeClassifier,
    ModelName.naive_bayes: NaiveBayesClassifier,
}
_REGRESSORS: dict[ModelName, Callable[..., Any]] = {
    ModelName.tree: PACBayesTreeRegressor,
    ModelName.pruned: PrunedTreeRegressor,
    ModelName.certified: CertifiedTreeRegressor,
    ModelName.certified_boosted: CertifiedBoostedTreesRegressor,
    ModelName.boosted: BoostedTreesRegressor,
    ModelName.forest: TreeForestRegressor,
}


_MODELS = [*_CLASSIFIERS.items(), *_REGRESSORS.items()]
# Estimators that can be fitted to a folder of files.
_FOLDER_ESTIMATORS = {
    *(BoostedTreesClassifier, BoostedTreesRegressor, TreeForestClassifier, TreeForestRegressor),
    *(estimator for _, estimator in _MODELS if getattr(estimator, "_takes_blocks", False)),
}
# Bins per feature of a single tree that is fitted to a folder.
_MAX_BINS = 255


@command
@takes_source(TableOrFolder)
def fit(
    source: TableSource,
    target: Target,
    output: Annotated[
        Path | None,
        output_file_option(
            *("--output", "-o"),
            metavar="MODEL",
            help="Model file to write.",
            show_default="FILE.certree",
        ),
    ] = None,
    model_name: Annotated[
        ModelName | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help=f"Estimator to fit: {', '.join(ModelName)}.",
            show_default="tree; boosted for a folder",
        ),
    ] = None,
    regression: Annotated[
        bool, typer.Option("--regression", help="Predict the target as a number.")
    ] = False,
    classification: Annotated[
        bool, typer.Option("--classification", help="Treat each number of the target as a class.")
    ] = False,
    test_size: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="Fraction of the rows in the test set, on which a first fit is scored; 0: no "
            "scores.",
            show_default="0.2; 0 for a folder",
        ),
    ] = None,
    grower: Annotated[
        GrowerName | None,
        typer.Option(
            metavar="NAME",
            help=f"Grower of a single tree: {', '.join(GrowerName)}.",
            show_default="cart",
        ),
    ] = None,
    max_leaf_nodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Most leaves of a tree. A certified tree grows larger, and is pruned to at most N "
            "leaves.",
            show_default="chosen by the fit",
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Most splits on the path from the root of a tree to a leaf.",
            show_default="no limit",
        ),
    ] = None,
    train_size: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="Fraction of the rows in the training set of a certified model; the others are its "
            "calibration set.",
            show_default="chosen by a learning curve",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability with which the certificate may fail.",
            show_default="0.05",
        ),
    ] = None,
    duplicates: Annotated[
        DuplicateRows | None,
        typer.Option(
            metavar="WORD",
            help=f"Treatment of equal rows in a certified fit: {', '.join(DuplicateRows)}.",
            show_default="auto",
        ),
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Most seconds of a fit of boosted trees, which keeps the rounds made so far.",
            show_default="no limit",
        ),
    ] = None,
    no_sample_hashes: Annotated[
        bool,
        typer.Option(
            "--no-sample-hashes",
            help="Do not store hashes of the rows. Without them certify cannot detect rows of the "
            "fit.",
        ),
    ] = False,
    no_calibration_samples: Annotated[
        bool,
        typer.Option(
            "--no-calibration-samples",
            help="Do not store leaf and class of each calibration row of a certified fit.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set a parameter of the model, such as learning_rate=.05; repeat for more.",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of each row's weight."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups of rows that depend on each other, such as those of a patient. A "
            "certified fit never splits a group between training and calibration set. In certify and "
            "report, --groups instead names groups to compare.",
        ),
    ] = None,
    one_per_group: OnePerGroup = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of times, dates or numbers, of rows in time order. The latest rows are then "
            "the test set, choose settings and certify. The column stays a feature.",
        ),
    ] = None,
    gap: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Rows to leave out before later ones, if labels become known late; needs --time.",
        ),
    ] = 0,
    independent: Independent = False,
    increasing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Feature along which predictions must not fall; repeat for more."
        ),
    ] = None,
    decreasing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Feature along which predictions must not rise; repeat for more."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random state.")] = 0,
    jobs: Jobs = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of a Dask scheduler whose workers read the files of a folder.",
            show_default="this machine",
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most memory that a fit to a folder may use, such as 2GB.",
            show_default="no limit",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print how much memory and disk space a fit to a folder needs, and end.",
        ),
    ] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the settings that the fit has chosen.")
    ] = False,
) -> None:
    """Fit a model to a table, score it on a test set, and write it to a model file.

    A first fit to 80 % of the rows is scored on the other 20 %. The model in the file is fitted to
    all rows. A folder of tables is read block by block and may be larger than memory. Nothing is
    held out of a folder: keep files apart and score the model on them with certree evaluate. Single
    trees that are fitted to a folder use 255 bins per feature.\f

    Parameters
    ----------
    source : TableSource
        Table, or folder of tables; "-" is CSV from standard input.
    target : str
        Column of the target.
    output : Path or None
        Model file to write; None: the name of the table with suffix .certree.
    model_name : ModelName or None
        Estimator to fit; None: tree for a table, boosted for a folder.
    regression, classification : bool
        Whether to predict the target as a number, or to treat each number as a class.
    test_size : float or None
        Fraction of the rows in the test set; None: 0.2 for a table, 0 for a folder.
    grower, max_leaf_nodes, max_depth, train_size, delta, duplicates, max_time
        Parameters of the estimator; None: its default. The grower has `max_leaf_nodes` if the
        estimator has no such parameter.
    no_sample_hashes, no_calibration_samples : bool
        What `certree.save` leaves out of the file.
    settings : list of str or None
        Further parameters as NAME=VALUE.
    weights, groups : str or None
        Columns of the rows' weights and groups.
    one_per_group : str or None
        Column of groups, of each of which one row is used; None: all rows are.
    time : str or None
        Column of the rows' times; None: rows are in no order.
    gap : int
        Number of rows to leave out between earlier and later rows.
    independent : bool
        Whether the user declares rows with times to be independent draws from one period.
    increasing, decreasing : list of str or None
        Features along which predictions must not fall, and must not rise.
    seed : int
        Seed of the test set and the estimator.
    jobs : int
        Number of threads; -1: all cores.
    scheduler : str or None
        Address of a Dask scheduler for a fit to a folder; None: this machine.
    memory_limit : str or None
        Most memory of a fit to a folder, such as "2GB"; None: no limit.
    dry_run : bool
        Whether to print a plan of the fit to a folder instead; no file is written.
    quiet : bool
        Whether to show no progress bar.
    verbose : bool
        Whether to print the settings that the fit has chosen.
    """
    if regression and classification:
        raise ValueError("--regression and --classification exclude each other: give one")
    if test_size is not None and not 0 <= test_size < 1:
        raise ValueError(f"--test-size must lie in [0, 1), got {test_size}")
    is_folder = Path(source).is_dir()
    if model_name is None:
        model_name = ModelName.boosted if is_folder else ModelName.tree
    model_path = _default_model_path(Path(source)) if output is None else output
    expect_writable(model_path)
    values = (grower, max_leaf_nodes, max_depth, train_size, delta, duplicates, max_time)
    choices = dict(zip(_PARAMETERS, values, strict=True))
    model, used_options = _create_estimator(model_name, regression, choices)
    parameters = model.get_params(deep=False)
    general = {"random_state": seed, "n_jobs": jobs, "verbose": int(not quiet)}
    model.set_params(**{name: general[name] for name in general if name in parameters})
    if is_folder and "grower" in parameters and grower in (None, GrowerName.cart):
        model.set_params(grower__max_bins=_MAX_BINS)
    apply_settings(model, parse_settings(settings or []), used_options)
    _expect_valid_parameters(model)
    columns = {"--target": target, "--weights": weights, "--time": time}
    _expect_role_columns(source, columns, groups, one_per_group)
    request = _FitRequest(
        *(source, target, weights, groups, regression, classification, test_size, seed, quiet),
        *(dry_run, one_per_group, time, gap, independent),
    )
    # Before a table is read, arguments that the model does not take are refused.
    collect_fit_arguments(model, (weights, groups), request.order)
    monotonic = increasing or [], decreasing or []
    with _limit_resources(scheduler, memory_limit, Path(source)):
        summary, seconds = (_fit_folder if is_folder else _fit_table)(model, request, monotonic)
    name_groups_column(model, groups)
    name_drawn_groups_column(model, one_per_group)
    models.save(
        model,
        model_path,
        sample_hashes=not no_sample_hashes,
        calibration_samples=not no_calibration_samples,
    )
    if verbose:
        summary = [*summary, f"chosen settings: {_describe_chosen_settings(model)}"]
    _print_fit(model, model_path, summary, seconds)


def _expect_valid_parameters(model: Any) -> None:
    """Raise a ValueError if a parameter of a model, which is not fitted yet, is out of range."""
    model._validate_params()
    if (delta := model.get_params(deep=False).get("delta")) is not None:
        expect_error_probability(delta)


def _print_fit(model: Any, model_path: Path, summary: list[str], seconds: float) -> None:
    """Print the outcome of a fit: lines of the summary, time and file, certificate, next command.

    model: the fitted model. model_path: file of the model. summary: lines to print first. seconds:
    time of the fit to all rows.
    """
    for line in summary:
        print_text(line)
    took, size = format_duration(seconds), format_file_size(model_path.stat().st_size)
    print_text(f"fitted to all rows in {took}, written to {model_path} ({size})")
    if hasattr(model, "certificate_"):
        print_text(str(model.certificate_))
    print_text(f"next: certree predict {model_path} NEW.csv")


def _expect_role_columns(
    source: TableSource,
    columns: dict[str, str | None],
    groups: str | None,
    one_per_group: str | None,
) -> None:
    """Raise a ValueError if --drop leaves out a column of an option, or options exclude each other.

    --groups and --one-per-group exclude each other, and --one-per-group excludes a folder. source:
    the table or folder. columns: values of other options that name a column, by option. groups,
    one_per_group: values of --groups and --one-per-group; None: the option is not used.
    """
    others = {"--groups": groups, "--one-per-group": one_per_group}
    expect_not_dropped(source, columns | others)
    if None not in others.values():
        raise ValueError("--groups and --one-per-group exclude each other: give one")
    if one_per_group is not None and Path(source).is_dir():
        raise ValueError("--one-per-group is for a single table in fit: use --groups for a folder")


@dataclass(frozen=True, slots=True)
class _FitRequest:
    """Options of `fit` about the data: the table, the roles of its columns, and the kind of target.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    source : TableSource
        Table, or folder of tables, with options of reading.
    target : str
        Column of the target.
    weights, groups : str or None
        Columns of the rows' weights and groups; None if the option is not used.
    regression : bool
        Whether the target must be numeric and is predicted as a number.
    classification : bool
        Whether every distinct number of the target is a class.
    test_size : float or None
        Fraction of the rows in the test set; None: the default.
    seed : int
        Seed of the test set.
    quiet : bool
        True: how the columns were read is not printed.
    dry_run : bool
        Whether the fit to a folder is only planned.
    one_per_group : str or None
        Column of groups, of each of which one row is used; None: all rows are.
    time : str or None
        Column of the rows' times; None if the option is not used.
    gap : int
        Number of rows to leave out between earlier and later rows.
    independent : bool
        Whether the user declares rows with times to be independent draws from one period.
    """

    source: TableSource
    target: str
    weights: str | None
    groups: str | None
    regression: bool
    classification: bool
    test_size: float | None
    seed: int
    quiet: bool
    dry_run: bool
    one_per_group: str | None = None
    time: str | None = None
    gap: int = 0
    independent: bool = False

    @property
    def order(self) -> tuple[str | None, int, bool]:
        """Tuple of three: column of times or None, number of rows of the gap, independence.

        These are the attributes `time`, `gap` (rows to leave out between earlier and later rows) and
        `independent`, in the form that `collect_fit_arguments` takes.
        """
        return self.time, self.gap, self.independent

    @property
    def target_name(self) -> str:
        """Text for messages that names the target: "column 'y' of FILE"."""
        return f"column {self.target!r} of {self.source}"


def _expect_times(table: Table, name: str | None) -> None:
    """Raise ValueError unless the column of --time is a feature.

    table: the table of the fit. name: name of the column; None: the option is not used.
    """
    if name is not None and name not in table.feature_names:
        raise ValueError(
            f"--time must name a feature, but there is no feature {name!r}: "
            f"{suggest_names(name, table.feature_names)}"
        )


def _fit_table(
    model: Any, request: _FitRequest, monotonic: MonotonicFeatures
) -> tuple[list[str], float]:
    """Score a first fit on a test set, then fit the model to all rows of a table.

    Parameters
    ----------
    model : estimator
        Unfitted; it is fitted in place, and its `categorical_features` and `monotonic_cst` are set.
    request : _FitRequest
        The table, the roles of its columns, and the test set.
    monotonic : tuple of two lists of str
        Features along which predictions must not fall, and must not rise.

    Returns
    -------
    summary : list of str
        Lines about the table, the model and its scores, for printing.
    seconds : float
        Time of the fit to all rows.
    """
    if request.dry_run:
        raise ValueError(f"--dry-run is for a folder, got the file {request.source}: leave it out")
    table, *extra_columns = _read_table(request)
    if not len(table.X):
        raise ValueError(
            f"FILE must have rows to fit a model to, but {request.source} has a header and no rows: "
            "pass another table"
        )
    _expect_times(table, request.time)
    if not request.classification:
        _expect_target(table.y, request.target_name, request.regression)
    model.set_params(categorical_features=table.categorical)
    set_monotonic_constraints(model, *monotonic, table.feature_names)
    fit_arguments = collect_fit_arguments(model, extra_columns, request.order)
    test_size = _TEST_SIZE if request.test_size is None else request.test_size
    scores = [*_score_first_fit(model, table, test_size, request.seed, fit_arguments)]
    start = time.perf_counter()
    # An Arrow table has the names of the features and the format of the file, which models store.
    model.fit(table.to_arrow(), table.y, **fit_arguments)
    seconds = time.perf_counter() - start
    summary = [_summarize_fit(model, table), *describe_positive(model)]
    return [*summary, *_describe_calendar_parts(model), *scores], seconds


def _fit_folder(
    model: Any, request: _FitRequest, monotonic: MonotonicFeatures
) -> tuple[list[str], float]:
    """Fit the model to all rows of a folder of tables, block by block, without test scores.

    model: unfitted estimator, which is fitted in place. request: the folder, and its columns of
    target, weights and groups. monotonic: features along which predictions must not fall, and
    features along which they must not rise. Return lines about the folder and the model, for
    printing, and the seconds of the fit. Raise a ValueError if the estimator cannot be fitted to a
    folder, or `request.test_size` is neither None nor 0. With `request.dry_run`, print a plan of
    the fit and raise typer.Exit.
    """
    if type(model) not in _FOLDER_ESTIMATORS:
        names = sorted({name for name, estimator in _MODELS if estimator in _FOLDER_ESTIMATORS})
        raise ValueError(
            f"--model must be one of {', '.join(names)} for a folder, got {type(model).__name__}: "
            "choose one of these, or pass a single table"
        )
    if request.test_size:
        raise ValueError(
            f"--test-size is for a single table, got the folder {request.source}: leave it out, keep "
            "test files in another folder, and score the model on them with certree evaluate"
        )
    columns = request.weights, request.groups
    fit_arguments = collect_fit_arguments(model, columns, request.order)
    rows = _inspect_folder(request)
    if not request.classification:
        _expect_target_of_folder(rows, request.target_name, request.regression)
    set_monotonic_constraints(model, *monotonic, rows.features)
    start = time.perf_counter()
    source: Any = request.source
    with catch_warnings():
        filterwarnings("ignore", _ANNOUNCED)
        if request.dry_run:
            print_text(str(plan_fit(model, source, request.target, **fit_arguments)))
            raise typer.Exit
        model.fit(source, request.target, **fit_arguments)
    seconds = time.perf_counter() - start
    size = f"{format_quantity(rows.n_rows, 'row')} in {format_quantity(rows.n_files, 'file')}"
    features = format_quantity(len(rows.features), "feature")
    return [
        f"{size}, {features}; {describe_size(model)}",
        *describe_positive(model),
        *_describe_calendar_parts(model),
    ], seconds


def _inspect_folder(request: _FitRequest) -> FileRows:
    """Infer how the files of a folder are read, print it unless --quiet is used, and return the rows.

    request: the folder, and its columns of target, weights and groups. The result, a `FileRows`,
    reads the rows block by block.
    """
    with catch_warnings():
        filterwarnings("ignore", _ANNOUNCED)
        rows = FileRows(
            request.source,
            *(request.target, request.weights, request.groups),
            is_limited=get_memory_limit() is not None,
        )
    if not request.quiet:
        announce(describe_schema(rows.inferred_schema))
    return rows


@contextmanager
def _limit_resources(scheduler: str | None, limit: str | None, file: Path) -> Iterator[None]:
    """Let fits in the body of a with statement run on a Dask cluster, or within a memory limit.

    Parameters
    ----------
    scheduler : str or None
        Address of a Dask scheduler; None: fits run on this machine.
    limit : str or None
        Most memory that the process may use, such as "2GB"; None: no limit.
    file : Path
        Table or folder of the fit. It must be a folder if one of the other arguments is not None.

    Raises
    ------
    ValueError
        If both are set, or one is set and `file` is no folder, or the scheduler does not answer.
    """
    options = [("--scheduler", scheduler), ("--memory-limit", limit)]
    used_options = [option for option, value in options if value is not None]
    if used_options and not file.is_dir():
        raise ValueError(f"{used_options[0]} is for a folder of files, got {file}: leave it out")
    if len(used_options) > 1:
        raise ValueError(
            "--memory-limit and --scheduler exclude each other: leave out --memory-limit, which is "
            "for a fit on this machine"
        )
    if scheduler is None:
        with resources(memory_limit=limit):
            yield
        return
    with _connect_to_dask(scheduler) as client, resources(client=client):
        yield


def _connect_to_dask(scheduler: str) -> Any:
    """Return a `distributed.Client` of the Dask scheduler at an address, such as "tcp://host:8786".

    Raise ValueError if the scheduler does not answer within 10 seconds.
    """
    try:
        return import_extra("distributed", "dask").Client(scheduler, timeout=_SCHEDULER_TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"--scheduler must be the address of a running Dask scheduler, got {scheduler} "
            f"({error}): start one by dask scheduler, or leave it out"
        ) from None


def _read_table(request: _FitRequest) -> tuple[Table, NDArray[Any] | None, NDArray[Any] | None]:
    """Read a table, and separate features, target, weights and groups.

    Dates stay text if they are classes or groups, so that later tables can repeat them.

    Parameters
    ----------
    request : _FitRequest
        The table, and the roles of its columns.

    Returns
    -------
    table : Table
        Features and target.
    weights, groups : ndarray of shape (n,), or None
        Weight and group of each row; None if there is no such column.
    """
    target, one_per_group = request.target, request.one_per_group
    extra_columns = {"--weights": request.weights, "--groups": request.groups}
    others = [target, *extra_columns.values(), one_per_group]
    text_columns = [request.groups, one_per_group, None if request.regression else target]
    table, inferred = reader.read_with_schema(
        request.source, text_dates=[name for name in text_columns if name]
    )
    description = describe_columns(table, inferred, others)
    if not request.quiet:
        announce(description)
    if one_per_group is not None:
        labels = read_extra_column("--one-per-group", table, one_per_group, target)
        draw = GroupDraw.from_labels(one_per_group, labels)
        print_text(str(draw))
        table = draw.take(table)
    weights, groups = (
        None if name is None else read_extra_column(option, table, name, target)
        for option, name in extra_columns.items()
    )
    table = table.drop_columns([*{*extra_columns.values(), one_per_group} - {None}])
    read = split_target(table, target, description, inferred.table_format, where=inferred.where)
    return read, weights, groups


def _summarize_fit(model: Any, table: Table) -> str:
    """Return a line with the numbers of rows and features, the classes, and the size of the model.

    model: the fitted model; table: the rows that it was fitted to.
    """
    features = format_quantity(table.X.shape[1], "feature")
    classes = _describe_classes(model, np.asarray(table.y))
    rows = format_quantity(len(table.X), "row")
    return f"{rows}, {features}{classes}; {describe_size(model)}"


def _describe_calendar_parts(model: Any) -> list[str]:
    """Return a line for each date of which a fitted model reads calendar parts.

    An example is "ordered: date with time; the model reads its weekday". model: the fitted model.
    """
    names, types = model._feature_names(), describe_features(model)
    dates = getattr(model, "dates_", None) or {}
    return [f"{names[j]}: {types[j]}" for j in sorted(dates) if dates[j].parts]


def _default_model_path(file: Path) -> Path:
    """Return the path of the model file without --output: NAME.certree in the current directory.

    NAME is the name of the table, without its suffix, or of the folder. file: the table or folder.
    Raise a ValueError if the table comes from standard input.
    """
    if file.is_dir():
        return Path(f"{file.resolve().name}.certree")
    if str(file) == STANDARD_STREAM:
        raise ValueError(
            "--output must name the model file when the table comes from standard input: give -o FILE"
        )
    return Path(f"{get_stem(file)}.certree")


def _score_first_fit(
    model: Any,
    table: Table,
    test_size: float,
    seed: int,
    fit_arguments: dict[str, Any],
) -> Iterator[str]:
    """Fit a copy of the model to a training set, and yield lines with its test scores.

    The training set is drawn at random; with times the latest rows are the test set.
    Each line compares the score with that of a constant prediction. Nothing is yielded if
    `test_size` is 0, there are fewer than 20 rows, or one of the two sets would be empty.

    Parameters
    ----------
    model : estimator
        The estimator; a clone of it is fitted.
    table : Table
        All rows.
    test_size : float
        Fraction of the rows, or groups, in the test set.
    seed : int
        Seed of the split.
    fit_arguments : dict of str to object
        Further arguments of `fit`, as far as they are used: "sample_weight" and "groups", arrays
        (n,), and "time", "gap" and "independent". Groups are not split between the two sets.
    """
    n = len(table.X)
    if test_size == 0 or n < _MIN_ROWS_FOR_TEST:
        return
    X, y = table.to_arrow(), np.asarray(table.y)
    times = RowTimes.read(fit_arguments.get("time"), X, n, fit_arguments.get("gap", 0))
    train, test = split_rows(n, test_size, seed, fit_arguments.get("groups"), times)
    if not len(train) or not len(test):  # A single group cannot be split.
        return
    arguments = {
        name: value[train] if isinstance(value, np.ndarray) else value
        for name, value in fit_arguments.items()
    }
    # The fit to all rows will give the same warnings.
    with catch_warnings(action="ignore", category=UserWarning):
        first_fit = clone(model).fit(X.take(train), y[train], **arguments)
    evaluated = EvaluatedModel.from_rows(first_fit, X.take(test), y[test])
    groups = fit_arguments.get("groups")
    rows = f"{len(test):,} test rows"
    if groups is not None:
        groups = groups[test]
        rows += f" of {format_quantity(len(np.unique(groups)), 'group')}"
    if times is not None:
        period = times.take(test).name_period(groups)
        rows += f" {period.describe(has_groups=groups is not None)}, the latest"
    yield f"on {rows}, held out from a first fit:"
    for line in format_scores(compute_scores(evaluated)):
        yield f"  {line}"
    if times is not None and not fit_arguments.get("independent", False):
        yield "  (the intervals take rows as independent; those of one period may depend on each other)"
    if groups is not None:
        yield "  (the intervals take rows of one group as independent: see evaluate --one-per-group)"


def _expect_target(y: Any, target_name: str, regression: bool) -> None:
    """Raise a ValueError if the target does not fit the option --regression, or its absence.

    With the option the target must be numeric. Without it the model is a classifier, and the target
    must not have more than 20 distinct numbers, as these may be classes or not. With
    --classification it is not called.

    y: targets, (n,). target_name: name of the target in the message. regression: whether
    --regression was given.
    """
    if regression and y.dtype.kind not in "biuf":
        kind = {"M": "dates", "m": "time spans"}.get(y.dtype.kind, "strings")
        example = f", such as {str(y[0])!r}" if len(y) else ""
        raise ValueError(
            f"--regression takes a target of numbers, but {target_name} holds {kind}{example}: "
            "leave out --regression to predict classes"
        )
    if not regression and y.dtype.kind in "iuf":
        n_values = len(np.unique(y))
        if n_values > _MAX_NUMERIC_CLASSES:
            raise ValueError(
                f"{target_name} holds {n_values} different numbers: give --regression to predict a "
                "number, or --classification if each number is a class"
            )


def _expect_target_of_folder(rows: FileRows, target_name: str, regression: bool) -> None:
    """Raise a ValueError if the target of a folder of files does not fit --regression, or its absence.

    With the option the target must be numeric; without it, it must not have more than 20 distinct
    numbers. A folder without rows is accepted. rows: the files with the roles of their columns;
    only the target is read, and only until the outcome is certain. target_name: name of the target
    in the message. regression: whether --regression was given.
    """
    values: NDArray[Any] | None = None
    for chunk in rows.chunks(targets_only=True):
        distinct = np.unique(chunk.y)
        values = distinct if values is None else np.unique(np.concatenate([values, distinct]))
        if regression or values.dtype.kind not in "iuf" or len(values) > _MAX_NUMERIC_CLASSES:
            break
    if values is not None:
        _expect_target(values, target_name, regression)


def _create_estimator(
    name: ModelName, regression: bool, options: dict[str, Any]
) -> tuple[Any, list[str]]:
    """Return an unfitted estimator with the parameters that were set by options of the command.

    Parameters
    ----------
    name : ModelName
        Value of --model, such as "boosted".
    regression : bool
        Whether to return the regressor of this name instead of the classifier.
    options : dict
        Values of options by the name of the parameter, such as "train_size"; None if not used.

    Returns
    -------
    model : estimator
        The estimator.
    parameters : list of str
        Names of the parameters that were set, such as "grower__max_leaf_nodes".

    Raises
    ------
    ValueError
        If there is no such regressor, or the estimator or its grower lacks a parameter whose option
        was used.
    """
    if regression and name not in _REGRESSORS:
        raise ValueError(
            f"--regression is not for --model {name}, which predicts classes: choose one of "
            f"{', '.join(_REGRESSORS)}"
        )
    estimator = (_REGRESSORS if regression else _CLASSIFIERS)[name]
    parameters = estimator().get_params(deep=False)
    used_options = {
        option: getattr(value, "value", value)
        for option, value in options.items()
        if value is not None
    }
    has_own_limit = "max_leaf_nodes" in parameters or "grower" not in parameters
    if "max_leaf_nodes" in used_options and not has_own_limit:
        grower = used_options.get("grower", GrowerName.cart)
        if grower != GrowerName.cart:
            raise ValueError(
                f"--max-leaf-nodes is not for --grower {grower}, whose trees have no such limit: use "
                "--grower cart, or --max-depth"
            )
        used_options["grower__max_leaf_nodes"] = used_options.pop("max_leaf_nodes")
    for option in used_options:
        if option.partition("__")[0] not in parameters:
            raise ValueError(
                f"--{option.replace('_', '-')} is not for --model {name}, which has no such "
                "parameter: leave it out"
            )
    return estimator().set_params(**used_options), [*used_options]


def _describe_classes(model: Any, y: NDArray[Any]) -> str:
    """Return the end of a line about the classes, such as ", 2 classes (yes 60.0 %, no 40.0 %)".

    Two classes are in their order, of which the second is positive. If there are more, at most four
    are named, those with most rows. Return "" for a regressor. model: the fitted model. y: targets,
    (n,).
    """
    if not is_classifier(model):
        return ""
    classes, counts = np.unique(y, return_counts=True)
    order = np.arange(2) if len(classes) == 2 else np.argsort(-counts, kind="stable")
    frequencies = [
        f"{shorten_label(str(classes[k]))} {100 * counts[k] / len(y):.1f} %"
        for k in order[:_N_CLASSES_SHOWN]
    ]
    if len(classes) == 1:
        return f", and a single class, {frequencies[0]}: nothing else can be predicted"
    more = ["..."] if len(classes) > len(frequencies) else []
    return f", {len(classes)} classes ({', '.join(frequencies + more)})"


def _describe_chosen_settings(model: Any) -> str:
    """Return text on the settings that the fit of a model has chosen, such as "n_iter 120".

    For a single tree these are inverse temperatures and weights of its posteriors; for naive Bayes
    kinds of densities and the power; for other models numbers of rounds or leaves, thresholds and
    the training fraction, if the model has them.
    """
    if isinstance(model, NaiveBayesClassifier):
        kinds = Counter(density.kind for density in model.densities_)
        densities = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        return f"densities: {densities}; power {model.power_:.3g}"
    if isinstance(model, TreeVoteEstimator):
        return "; ".join(_describe_posteriors(model))
    names = ("n_iter_", "max_leaf_nodes_", "thresholds_", "train_size_")
    settings = [f"{name[:-1]} {getattr(model, name)}" for name in names if hasattr(model, name)]
    return ", ".join(settings) or "none, as all settings were given"


def _describe_posteriors(model: TreeVoteEstimator) -> Iterator[str]:
    """Yield text on each posterior of a fitted tree model: its inverse temperatures and weight.

    A posterior is a distribution over the prunings of the tree (subtrees with the same root). An
    inverse temperature is the factor of loss or size in the log weight of a pruning. At most three
    posteriors are described, those of largest weight; a last text counts the others. A single
    posterior has no weight.
    """
    columns = np.broadcast_arrays(model.mixture_weights_, *model.best_params_.values())
    posteriors = [*zip(model.posteriors_, *columns, strict=True)]
    for family, weight, *values in sorted(posteriors, key=lambda posterior: -posterior[1])[
        :_N_POSTERIORS_SHOWN
    ]:
        pairs = zip(model.best_params_, values, strict=True)
        text = ", ".join(f"{name} {value:.4g}" for name, value in pairs)
        yield text if len(posteriors) == 1 else f"{weight:.1%} with {text} ({family})"
    if len(posteriors) > _N_POSTERIORS_SHOWN:
        yield f"{len(posteriors) - _N_POSTERIORS_SHOWN} more with smaller weights"
