"""The command monitor: test, batch by batch, whether a certified bound still holds."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree import show
from certree.certificates import Monitor
from certree.cli.app import command, output_file_option, print_text
from certree.cli.figure_output import expect_figure_path, save_figure
from certree.cli.json_output import AsJson, describe_monitor, print_json
from certree.cli.read_options import takes_source
from certree.cli.table_input import (
    ModelFile,
    TableFile,
    Target,
    expect_not_dropped,
    hash_model_file,
    load_model,
    load_monitor,
    read_labelled_rows,
)
from certree.files import models
from certree.files.output_paths import expect_writable
from certree.files.pipelines import split_pipeline
from certree.interface.arrays import Float64
from certree.tables.csv_text import STANDARD_STREAM
from certree.tables.table_source import TableSource

_ALPHA, _DELTA = 0.05, 0.05
# Exit code after an alarm, which differs from those of errors.
_ALARM = 3


@command
@takes_source(TableFile)
def monitor(
    model_file: ModelFile,
    source: TableSource,
    target: Target,
    state: Annotated[
        Path,
        output_file_option(
            metavar="FILE",
            help="State of the monitor. The first batch creates it, and each batch updates it.",
        ),
    ],
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the batch. A name that was used before is refused.",
            show_default="the name of the table's file",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability with which an alarm may ever be raised while the bound holds.",
            show_default=f"{_ALPHA}",
        ),
    ] = None,
    block: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of losses whose mean counts as one loss, if rows depend on the rows before.",
            show_default="1",
        ),
    ] = None,
    bound: Annotated[
        float | None,
        typer.Option(
            metavar="B",
            help="Certified bound on the error of a classifier, as certify prints it, such as 0.12.",
            show_default="that of the model's fit",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability with which --bound may fail.",
            show_default=f"{_DELTA}",
        ),
    ] = None,
    dependent: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups of rows that depend on each other. A group counts as one row, with "
            "its mean loss.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        output_file_option(help="Draw the losses of all batches to this file (.png, .svg, .pdf)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test on a batch of labelled new rows whether the certified bound of a model still holds.

    Run it once for each batch, with the same state file. The losses of the batch are added to the
    state, and an alarm is raised if all losses so far contradict the bound. Labels may arrive late and
    in any order that does not depend on them. After an alarm the exit code is 3.

    --alpha, --block, --bound and --delta are stored in the state, and need to be given for the first
    batch only.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    source : TableSource
        Table of labelled new rows; "-" is CSV from standard input.
    target : str
        Column of the target.
    state : Path
        File of the monitor; it is created if it does not exist.
    batch : str or None
        Name of the batch; None: the name of the file of the table.
    alpha : float or None
        Probability of an alarm while the bound holds; None: that of the state, or 0.05.
    block : int or None
        Number of losses whose mean counts as one loss; None: that of the state, or 1.
    bound : float or None
        Certified bound on the error of a classifier; None: that of the state, or of the model's fit.
    delta : float or None
        Probability with which `bound` may fail; None: that of the state, or 0.05.
    dependent : str or None
        Column of groups of rows that depend on each other; None: there are no groups.
    plot : Path or None
        Figure to write; None: none is drawn.
    as_json : bool
        Whether to print a JSON document.
    """
    expect_figure_path(plot)
    expect_writable(state)
    expect_not_dropped(source, {"--dependent": dependent})
    name = _choose_batch(source, batch)
    digest = hash_model_file(model_file)
    model = load_model(model_file)
    X, y, groups, _ = read_labelled_rows(model, source, target, dependent)
    settings = {"alpha": alpha, "block": block, "bound": bound, "delta": delta}
    watched = _open_monitor(model, model_file, digest, state, settings)
    _expect_groups(model, watched, dependent)
    losses = _compute_losses(model, X, y, watched.unit, groups)
    watched.update(losses, batch=name, model_hash=digest)
    models.save(watched, state)
    if as_json:
        print_json({"model": type(split_pipeline(model)[0]).__name__, **describe_monitor(watched)})
    else:
        print_text(str(watched))
    if plot is not None:
        save_figure(plot, lambda: show.plot_monitor(watched))
    if watched.broken:
        raise typer.Exit(_ALARM)


def _choose_batch(source: TableSource, batch: str | None) -> str:
    """Return the name of a batch: that of the option --batch, or else that of the table's file.

    Raise ValueError if the table comes from standard input and `batch` is None.
    """
    if batch is not None:
        return batch
    if str(source) == STANDARD_STREAM:
        raise ValueError("--batch must name the batch if FILE is standard input: give --batch NAME")
    return Path(source).name


def _open_monitor(
    model: Any, model_file: Path, digest: str, state: Path, settings: dict[str, float | None]
) -> Monitor:
    """Load the monitor of a model, or make a new one if there is no state yet.

    Parameters
    ----------
    model : fitted estimator
        The model.
    model_file : Path
        File of the model, for messages.
    digest : str
        Hash of this file.
    state : Path
        File of the monitor.
    settings : dict from str to number or None
        Options "alpha", "block", "bound" and "delta"; None: not given.

    Returns
    -------
    Monitor

    Raises
    ------
    ValueError
        If the state is of another model or has other settings, or the model has no certificate.
    """
    if not state.exists():
        return _create_monitor(model, model_file, digest, settings)
    watched = load_monitor(state)
    if watched.model_hash != digest:
        raise ValueError(
            f"--state must belong to this model, but {state} monitors a file with the SHA-256 hash "
            f"{watched.model_hash}, and that of {model_file} is {digest}: give each model a state file "
            "of its own"
        )
    for name, value in settings.items():
        if value is not None and value != getattr(watched, name):
            raise ValueError(
                f"--{name} must be the {name} of the state, {getattr(watched, name)}, got {value}: "
                f"leave out --{name}, or begin another state file"
            )
    return watched


def _create_monitor(
    model: Any, model_file: Path, digest: str, settings: dict[str, float | None]
) -> Monitor:
    """Return a monitor without rows; the parameters are those of `_open_monitor`."""
    alpha = _ALPHA if settings["alpha"] is None else settings["alpha"]
    block = 1 if settings["block"] is None else int(settings["block"])
    bound, delta = settings["bound"], settings["delta"]
    estimator, _ = split_pipeline(model)
    if bound is not None:
        if not is_classifier(model):
            raise ValueError(
                f"--bound is for errors of classifiers, but {model_file} predicts numbers: leave it out"
            )
        delta = _DELTA if delta is None else delta
        return Monitor(bound, alpha, block=block, delta=delta, model_hash=digest)
    if delta is not None:
        raise ValueError(
            f"--delta {delta} is the probability that --bound fails: give --bound, too"
        )
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        raise ValueError(
            f"MODEL must have a certificate, but {model_file} has none: fit with --model certified, or "
            "certify the model by other rows, and give --bound"
        )
    watched: Monitor = certificate.monitor(alpha, block=block, model_hash=digest)
    return watched


def _expect_groups(model: Any, watched: Monitor, dependent: str | None) -> None:
    """Raise ValueError if a monitored certificate counts groups of rows, but --dependent is missing.

    model: the fitted model; watched: its monitor; dependent: value of the option.
    """
    certificate = getattr(split_pipeline(model)[0], "certificate_", None)
    if certificate is None or not certificate.grouped or dependent is not None:
        return
    if watched.bound == certificate.bound / (certificate.unit or 1.0):
        raise ValueError(
            "--dependent must name the column of groups, as the model's certificate counts groups of "
            "rows: give --dependent COLUMN"
        )


def _compute_losses(
    model: Any, X: Any, y: NDArray[Any], unit: float | None, groups: NDArray[Any] | None
) -> Float64:
    """Return the losses of rows, between 0 and 1, or the mean losses of groups of rows.

    Parameters
    ----------
    model : fitted estimator
        The model.
    X : ndarray of shape (n, p), or pandas.DataFrame
        Features, in the order of the fit.
    y : ndarray of shape (n,)
        Targets.
    unit : float or None
        Largest absolute error that counts, by which errors are divided; None: errors of classes.
    groups : ndarray of shape (n,), or None
        Group of each row; None: no groups.

    Returns
    -------
    ndarray of float64, shape (n,) or (number of groups,)
        In the order of the rows, or of the first row of each group.
    """
    predicted = model.predict(X)
    if unit is None:
        losses = np.asarray(predicted != y, dtype=np.float64)
    else:
        losses = np.minimum(np.abs(y - predicted), unit) / unit
    if groups is None:
        return losses
    _, first, index = np.unique(groups, return_index=True, return_inverse=True)
    means = np.bincount(index, weights=losses) / np.bincount(index)
    return means[np.argsort(first)]
