"""Fitting a model to a table."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from warnings import catch_warnings

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from certree.cli.app import MODELS, Jobs, Quiet, command, file_to_write, say
from certree.cli.rows import DuplicateRows, RowsPlace, Target, column_beside
from certree.cli.settings import (
    held_out_rows,
    rows_say,
    set_all,
    set_slopes,
    settings_of,
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
from certree.files import models, tables
from certree.files.places import expect_writable
from certree.interface.extras import import_extra
from certree.interface.formatting import (
    format_duration,
    format_file_size,
    format_four_digits,
    format_quantity,
    shorten_label,
)
from certree.parts import resources
from certree.parts.resources import limit_now
from certree.parts.sources import FileRows
from certree.show.page.judged import Judged
from certree.show.page.scores import scores_of

# Features along which predictions never fall, and never rise.
Slopes = tuple[list[str], list[str]]

# A target of so many numbers is seldom a class, and scikit-learn's regressors are what others mean.
_MOST_NUMBERED_CLASSES = 20
# Of a mixture, those with the largest shares.
_POSTERIORS_SHOWN = 3
# Of so many classes it is said how frequent they are.
_CLASSES_SHOWN = 4
# Seconds that a scheduler has to answer.
_PATIENCE = 10
# Share of the rows of a table that judge a first fit.
_TEST_SIZE = 0.2
# Of fewer rows none are held out.
_FEW_ROWS = 20


class ModelName(StrEnum):
    """The estimators by their short names."""

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
    """The growers by their names."""

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
# Models that take files.
_OF_FOLDERS = {
    *(BoostedTreesClassifier, BoostedTreesRegressor, TreeForestClassifier, TreeForestRegressor),
    *(made for _, made in _MODELS if getattr(made, "_takes_parts", False)),
}
# Bins of a single tree that is grown on a folder.
_BINS = 255


@command(MODELS)
def fit(
    file: RowsPlace,
    target: Target,
    output: Annotated[
        Path | None,
        file_to_write(
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
            help=f"What to fit: {', '.join(ModelName)}.",
            show_default="tree; boosted to a folder",
        ),
    ] = None,
    regression: Annotated[
        bool, typer.Option("--regression", help="The target is a number to predict.")
    ] = False,
    classification: Annotated[
        bool, typer.Option("--classification", help="Each number of the target is a class.")
    ] = False,
    test_size: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the rows that judge a first fit; 0: none.",
            show_default="0.2; 0 of a folder",
        ),
    ] = None,
    grower: Annotated[
        GrowerName | None,
        typer.Option(
            metavar="NAME",
            help=f"How a single tree is grown: {', '.join(GrowerName)}.",
            show_default="cart",
        ),
    ] = None,
    train_size: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the rows that grow a certified tree.",
            show_default="chosen by a learning curve",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability with which a certificate may fail.",
            show_default="0.05",
        ),
    ] = None,
    duplicates: Annotated[
        DuplicateRows | None,
        typer.Option(
            metavar="WORD",
            help=f"What rows of a certified fit are that are alike: {', '.join(DuplicateRows)}.",
            show_default="auto",
        ),
    ] = None,
    no_sample_hashes: Annotated[
        bool,
        typer.Option(
            "--no-sample-hashes",
            help="Leave out of the file the hashes of rows by which certify refuses them.",
        ),
    ] = False,
    no_calibration_samples: Annotated[
        bool,
        typer.Option(
            "--no-calibration-samples",
            help="Leave out of the file leaf and class of each row that certifies the fit.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the model, such as learning_rate=.05; may be given again.",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With the weight of each row."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="With a group of each row, such as a patient, which a certified fit keeps whole.",
        ),
    ] = None,
    increasing: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Predictions never fall along it; again for more."),
    ] = None,
    decreasing: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Predictions never rise along it; again for more."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Random state.")] = 0,
    jobs: Jobs = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a cluster of Dask, whose workers read the files of a folder.",
            show_default="this machine",
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory that the fit to a folder may hold, such as 2GB.",
            show_default="any",
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say also which settings the fit has chosen.")
    ] = False,
) -> None:
    """Fit a model to a table, say how well it does, and write it to a file.

    The scores are those of a first fit to four fifths of the rows, on the rest; what is written is
    fitted to all of them. Trees and forests also fit a folder of tables, which is never held in memory:
    no rows of it are held out, but certree evaluate scores files that are kept apart. Single trees are
    grown there between 255 bins.
    """
    if regression and classification:
        raise ValueError("expected one of --regression and --classification, got both")
    if test_size is not None and not 0 <= test_size < 1:
        raise ValueError(f"--test-size must lie in [0, 1), got {test_size}")
    is_folder = file.is_dir()
    if model_name is None:
        model_name = ModelName.boosted if is_folder else ModelName.tree
    place = _place(file) if output is None else output
    expect_writable(place)
    options = {"grower": grower, "train_size": train_size, "delta": delta, "duplicates": duplicates}
    model = _unfitted(model_name, regression, options)
    known = model.get_params(deep=False)
    general = {"random_state": seed, "n_jobs": jobs, "verbose": int(not quiet)}
    model.set_params(**{name: general[name] for name in general if name in known})
    if is_folder and known.get("grower") == "cart":
        model.set_params(grower__max_bins=_BINS)
    set_all(
        model, settings_of(settings or []), [name for name in options if options[name] is not None]
    )
    asked = _Asked(file, target, weights, groups, regression, classification, test_size, seed)
    slopes = increasing or [], decreasing or []
    with _resources_of(scheduler, memory_limit, file):
        said, seconds = (_fit_folder if is_folder else _fit_table)(model, asked, slopes)
    models.save(
        model,
        place,
        sample_hashes=not no_sample_hashes,
        calibration_samples=not no_calibration_samples,
    )
    for line in said:
        say(line)
    if verbose:
        say(f"chosen: {_chosen(model)}")
    size = format_file_size(place.stat().st_size)
    say(f"fitted to all rows in {format_duration(seconds)}, written to {place} ({size})")
    if hasattr(model, "certificate_"):
        say(str(model.certificate_))
    say(f"next: certree predict {place} NEW.csv")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a fit is asked for; see `fit`."""

    file: Path
    target: str
    weights: str | None
    groups: str | None
    regression: bool
    classification: bool
    test_size: float | None
    seed: int

    @property
    def name(self) -> str:
        """What errors call the target."""
        return f"column {self.target!r} of {self.file}"


def _fit_table(model: Any, asked: _Asked, slopes: Slopes) -> tuple[list[str], float]:
    """Fit to a table; says what it is and how well the model does, and the seconds of the fit."""
    types = partial(_dates_as_text, None if asked.regression else asked.target)
    table, *beside = _read(asked.file, types, asked.target, asked.weights, asked.groups)
    if not asked.classification:
        _expect_target(table.y, asked.name, asked.regression)
    model.set_params(categorical_features=table.categorical)
    set_slopes(model, *slopes, table.feature_names)
    rows = rows_say(model, *beside)
    share = _TEST_SIZE if asked.test_size is None else asked.test_size
    held_out = [*_held_out(model, table, share, asked.seed, rows)]
    begun = time.perf_counter()
    model.fit(table.X, table.y, **rows)
    seconds = time.perf_counter() - begun
    model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    return [*_summary(model, table, held_out)], seconds


def _fit_folder(model: Any, asked: _Asked, slopes: Slopes) -> tuple[list[str], float]:
    """The same of a folder, whose rows are never held together."""
    if type(model) not in _OF_FOLDERS:
        named = ", ".join(sorted({name for name, one in _MODELS if one in _OF_FOLDERS}))
        raise ValueError(f"a folder takes --model {named}; got {type(model).__name__}")
    if asked.test_size:
        raise ValueError(f"--test-size takes a single table, got the folder {asked.file}")
    beside = rows_say(model, asked.weights, asked.groups)
    is_limited = limit_now() is not None
    rows = FileRows(asked.file, asked.target, asked.weights, asked.groups, is_limited=is_limited)
    if not asked.classification:
        _expect_target_of_folder(rows, asked.name, asked.regression)
    set_slopes(model, *slopes, rows.features)
    begun = time.perf_counter()
    folder: Any = asked.file
    model.fit(folder, asked.target, **beside)
    about = format_quantity(rows.n_rows, "row"), format_quantity(rows.n_files, "file")
    features = format_quantity(len(rows.features), "feature")
    return [f"{' in '.join(about)}, {features}; {_size(model)}"], time.perf_counter() - begun


@contextmanager
def _resources_of(scheduler: str | None, limit: str | None, file: Path) -> Iterator[None]:
    """Let a fit to a folder be made on the cluster of a scheduler, or keep to a limit of memory."""
    given = [("--scheduler", scheduler), ("--memory-limit", limit)]
    named = [flag for flag, value in given if value is not None]
    if named and not file.is_dir():
        raise ValueError(f"{named[0]} is for a folder of files, got {file}")
    if len(named) > 1:
        raise ValueError("--memory-limit is for this machine, got --scheduler, too")
    if scheduler is None:
        with resources(memory_limit=limit):
            yield
        return
    with _client_of(scheduler) as client, resources(client=client):
        yield


def _client_of(scheduler: str) -> Any:
    try:
        return import_extra("distributed", "dask").Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"no scheduler of Dask answers at {scheduler}: {error}") from None


def _read(
    file: Path, types: tables.Types, target: str, *beside: str | None
) -> tuple[tables.Table, *tuple[NDArray[Any] | None, ...]]:
    """Features and target of a table, and columns that are neither where they are named."""
    columns = tables.read(file, types)
    found = [None if name is None else column_beside(columns, name, target) for name in beside]
    columns = columns.drop_columns([*{*beside} - {None}])
    return tables.split_target(columns, target), *found


def _summary(model: Any, table: tables.Table, held_out: Iterable[str]) -> Iterator[str]:
    """The table, the model, and how good it is, in words."""
    features = format_quantity(table.X.shape[1], "feature")
    yield f"{len(table.X):,} rows, {features}{_classes(model, np.asarray(table.y))}; {_size(model)}"
    yield from held_out


def _place(file: Path) -> Path:
    if file.is_dir():
        return Path(f"{file.resolve().name}.certree")
    if str(file) == tables.STANDARD_STREAM:
        raise ValueError("expected --output for a table from standard input")
    return Path(f"{tables.stem_of(file)}.certree")


def _dates_as_text(target: str | None, seen: pa.Schema) -> dict[str, pa.DataType]:
    """Classes that are dates or times keep the words of a CSV file, which any rows can have."""
    if target is None or target not in seen.names:
        return {}
    if not pa.types.is_temporal(seen.field(target).type):
        return {}
    return {target: pa.string()}


def _held_out(
    model: Any, table: tables.Table, share: float, seed: int, rows: dict[str, NDArray[Any]]
) -> Iterator[str]:
    """How well a fit to a part of the rows does on the others, beside one that knows no features."""
    n = len(table.X)
    if share == 0 or n < _FEW_ROWS:
        return
    judging, growing = held_out_rows(n, share, seed, rows.get("groups"))
    if not len(judging) or not len(growing):  # a single group is on one side
        return
    y: NDArray[Any] = np.asarray(table.y)
    its = {name: values[growing] for name, values in rows.items()}
    with catch_warnings(action="ignore", category=UserWarning):  # the fit to all rows warns, too
        first = clone(model).fit(table.X[growing], y[growing], **its)
    judged = Judged.of(first, table.X[judging], y[judging])
    yield f"on {len(judging):,} rows held out from a first fit:"
    for score in scores_of(judged):
        yield f"  {score}"
    yield f"  {_baseline(y[growing], judged)}"


def _baseline(y: NDArray[Any], judged: Judged) -> str:
    """How well the most frequent class, or the mean, does."""
    if judged.shares is None:
        error = float(np.sqrt(np.mean((judged.y - y.mean()) ** 2)))
        return f"always the mean: Root mean squared error {format_four_digits(error)}"
    values, counts = np.unique(y, return_counts=True)
    most = values[counts.argmax()]
    return f"always {most}: Error {100 * np.mean(judged.y != most):.1f} %"


def _expect_target(y: Any, name: str, regression: bool) -> None:
    """Ask whether a number or a class is meant where the column does not tell."""
    if regression and y.dtype.kind not in "biuf":
        words = {"M": "dates", "m": "time spans"}.get(y.dtype.kind, "strings")
        example = f", such as {str(y[0])!r}" if len(y) else ""
        raise ValueError(
            f"--regression takes a target of numbers, but {name} holds {words}{example}"
        )
    if not regression and y.dtype.kind in "iuf":
        n_values = len(np.unique(y))
        if n_values > _MOST_NUMBERED_CLASSES:
            raise ValueError(
                f"{name} holds {n_values} different numbers: expected --regression if it is a "
                "number to predict, or --classification if each is a class"
            )


def _expect_target_of_folder(rows: FileRows, name: str, regression: bool) -> None:
    """The same by as many of the rows as tell."""
    found: NDArray[Any] | None = None
    for chunk in rows.chunks(targets_only=True):
        some = np.unique(chunk.y)
        found = some if found is None else np.unique(np.concatenate([found, some]))
        if regression or found.dtype.kind not in "iuf" or len(found) > _MOST_NUMBERED_CLASSES:
            break
    if found is not None:
        _expect_target(found, name, regression)


def _unfitted(name: ModelName, regression: bool, options: dict[str, Any]) -> Any:
    if regression and name not in _REGRESSORS:
        raise ValueError(f"{name} predicts classes, not numbers: --regression is not for it")
    estimator = (_REGRESSORS if regression else _CLASSIFIERS)[name]
    known = estimator().get_params(deep=False)
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in known:
            flag = option.replace("_", "-")
            raise ValueError(f"--{flag} is not for --model {name}")
    return estimator(**{key: getattr(value, "value", value) for key, value in given.items()})


def _classes(model: Any, y: NDArray[Any]) -> str:
    """How many classes there are, and how frequent the first ones are."""
    if not is_classifier(model):
        return ""
    values, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    said = [
        f"{shorten_label(str(values[k]))} {100 * counts[k] / len(y):.1f} %"
        for k in order[:_CLASSES_SHOWN]
    ]
    if len(values) == 1:
        return f", and a single class, {said[0]}: nothing else can be predicted"
    more = ["..."] if len(values) > len(said) else []
    return f", {len(values)} classes ({', '.join(said + more)})"


def _size(model: Any) -> str:
    """How large the fitted model is."""
    if isinstance(model, NaiveBayesClassifier):
        return format_quantity(len(model.densities_), "density", "densities")
    if isinstance(model, TreeVoteEstimator):
        return f"tree of {format_quantity(model.get_n_leaves(), 'leaf', 'leaves')}"
    trees = model.trees_
    return f"{format_quantity(len(trees), 'tree')} of {int(np.sum(trees.left < 0)):,} leaves"


def _chosen(model: Any) -> str:
    """The settings that the fit has chosen."""
    if isinstance(model, NaiveBayesClassifier):
        kinds = Counter(density.kind for density in model.densities_)
        densities = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        return f"densities: {densities}; power {model.power_:.3g}"
    if isinstance(model, TreeVoteEstimator):
        return "; ".join(_posteriors(model))
    names = ("n_iter_", "max_leaf_nodes_", "thresholds_", "train_size_")
    chosen = [f"{name[:-1]} {getattr(model, name)}" for name in names if hasattr(model, name)]
    return ", ".join(chosen) or "nothing, all settings were given"


def _posteriors(model: TreeVoteEstimator) -> Iterator[str]:
    """The temperatures of each posterior and, if there are several, its share."""
    columns = np.broadcast_arrays(model.mixture_weights_, *model.best_params_.values())
    posteriors = [*zip(model.posteriors_, *columns, strict=True)]
    for family, share, *values in sorted(posteriors, key=lambda posterior: -posterior[1])[
        :_POSTERIORS_SHOWN
    ]:
        named = zip(model.best_params_, values, strict=True)
        text = ", ".join(f"{name} {value:.4g}" for name, value in named)
        yield text if len(posteriors) == 1 else f"{share:.1%} with {text} ({family})"
    if len(posteriors) > _POSTERIORS_SHOWN:
        yield f"{len(posteriors) - _POSTERIORS_SHOWN} more with smaller shares"
