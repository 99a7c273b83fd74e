"""The command monitor: test, batch by batch, whether a certified bound still holds."""

from dataclasses import dataclass, replace
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
from certree.cli.group_draw import GroupColumns, Independent, choose_groups
from certree.cli.json_output import AsJson, describe_monitor, print_json
from certree.cli.read_options import takes_source
from certree.cli.table_input import (
    ModelFile,
    Positive,
    TableFile,
    Target,
    Threshold,
    expect_option_of_positive,
    hash_model_file,
    load_model,
    load_monitor,
    parse_costs,
    parse_positive,
    read_labelled_rows,
)
from certree.files import models
from certree.files.output_paths import expect_writable
from certree.files.pipelines import split_pipeline
from certree.files.predictions import apply_threshold
from certree.interface.arrays import Float64
from certree.interface.formatting import shorten_label
from certree.interface.positive_class import check_threshold, expect_threshold
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
            help="Certified bound on the error of a classifier, as certify prints it, such as 0.12; "
            "with --threshold-cost on the mean cost.",
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
            help="Column of groups of rows that depend on each other. A group counts once, with its "
            "mean loss.",
        ),
    ] = None,
    independent: Independent = False,
    threshold: Threshold = None,
    positive: Positive = None,
    threshold_cost: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            help="Monitor costs at --threshold instead of errors: those of a missed row of the "
            "positive class, and of a false alarm.",
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

    With --threshold, the losses are the errors of the classes that the threshold predicts, or with
    --threshold-cost their costs; --bound is then what certify has printed for this threshold. For a
    model that was fitted with --groups, the same column is used by --dependent.

    --alpha, --block, --bound and --delta are stored in the state, and need to be given for the first
    batch only. The losses must be the same for all batches.\f

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
        Column of groups of rows that depend on each other; None: there are no groups, or the model's
        column of groups is used.
    independent : bool
        Whether rows are independent, although the model was fitted with groups.
    threshold : float or None
        Probability from which the positive class is predicted; None: the more probable class.
    positive : str or None
        The positive one of two classes, which needs `threshold`; None: the second.
    threshold_cost : str or None
        "A:B", the cost of a missed row of the positive class and of a false alarm, which needs
        `threshold`; None: losses are errors.
    plot : Path or None
        Figure to write; None: none is drawn.
    as_json : bool
        Whether to print a JSON document.
    """
    expect_figure_path(plot)
    expect_writable(state)
    name = _choose_batch(source, batch)
    costs = _parse_costs_at_threshold(threshold_cost, threshold, positive)
    settings = {"alpha": alpha, "block": block, "bound": bound, "delta": delta}
    _expect_valid_settings(settings, costs)
    digest = hash_model_file(model_file)
    model = load_model(model_file)
    decision = _Decision.choose(model, threshold, positive, costs)
    chosen = choose_groups(
        *(model, source, target, GroupColumns(dependent)),
        is_independent=independent,
        needs_draw=False,
    )
    watched = _open_monitor(model, model_file, digest, state, settings, decision, chosen.dependent)
    rows = read_labelled_rows(model, source, target, chosen.dependent, groups_option="--dependent")
    X, y, groups, _ = rows
    losses = decision.compute_losses(model, X, y, watched.unit)
    if groups is not None:
        losses = _average_groups(losses, groups)
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


@dataclass(frozen=True, slots=True)
class _Decision:
    """The predictions whose losses are monitored, from options of the command. `choose` makes it.

    Parameters
    ----------
    threshold : float or None
        Probability from which the positive class is predicted; None: the model's own prediction.
    positive : str
        Text of the positive class; "" without a threshold.
    costs : pair of float, or None
        Cost of a missed row of the positive class, and of a false alarm; None: losses are errors.
    """

    threshold: float | None = None
    positive: str = ""
    costs: tuple[float, float] | None = None

    @classmethod
    def choose(
        cls,
        model: Any,
        threshold: float | None,
        positive: str | None,
        costs: tuple[float, float] | None,
    ) -> "_Decision":
        """Return the `_Decision` of the options --threshold, --positive and --threshold-cost.

        Raise a ValueError if there is a threshold, but the model does not have two classes. model: the
        fitted model; threshold, positive, costs: values of the options (a probability, a class as
        text, and costs of a missed row and of a false alarm), None if not used.
        """
        if threshold is None:
            return cls()
        classes = np.asarray(model.classes_ if is_classifier(model) else [])
        index = check_threshold(classes, threshold, parse_positive(model, positive))
        assert index is not None  # There is a threshold.
        return cls(threshold, str(classes[index]), costs)

    def __str__(self) -> str:
        """Return what the losses are, such as "costs 10:1 of predicting yes from 0.25 on".

        "": errors of the model's own predictions.
        """
        if self.threshold is None:
            return ""
        what = "" if self.costs is None else "costs {:g}:{:g} of ".format(*self.costs)
        return f"{what}predicting {shorten_label(self.positive)} from {self.threshold!r} on"

    @property
    def unit(self) -> float | None:
        """The larger of the two costs, by which costs are divided; None: losses are errors."""
        return None if self.costs is None else max(self.costs)

    def compute_losses(self, model: Any, X: Any, y: NDArray[Any], unit: float | None) -> Float64:
        """Return the losses of rows, between 0 and 1, as an array (n,).

        Parameters
        ----------
        model : fitted estimator
            The model.
        X : ndarray of shape (n, p), or pandas.DataFrame
            Features, in the order of the fit; a data frame for a pipeline that was fitted with names.
        y : ndarray of shape (n,)
            Targets.
        unit : float or None
            Number by which losses are divided: the largest cost, or the largest absolute error that
            counts; None: errors of classes.
        """
        if self.threshold is None and unit is not None:
            return np.minimum(np.abs(y - model.predict(X)), unit) / unit
        if self.threshold is None:
            return np.asarray(model.predict(X) != y, dtype=np.float64)
        positive = parse_positive(model, self.positive)
        probabilities = dict(enumerate(model.predict_proba(X).T))
        predicted = apply_threshold(model, probabilities, self.threshold, positive)
        missed, false_alarm = (1.0, 1.0) if self.costs is None else self.costs
        losses = np.where(y == positive, missed, false_alarm) * (predicted != y)
        return losses / max(missed, false_alarm)


def _parse_costs_at_threshold(
    text: str | None, threshold: float | None, positive: str | None
) -> tuple[float, float] | None:
    """Return the costs of --threshold-cost, or None, after a check of the options beside it.

    text, threshold, positive: values of --threshold-cost, --threshold and --positive, None if they
    are not used. Raise a ValueError if one of the others lacks --threshold, or a value is out of range.
    """
    expect_option_of_positive("--threshold", threshold, positive)
    expect_threshold(threshold)
    costs = parse_costs(text)
    if costs is not None and threshold is None:
        raise ValueError(
            "--threshold-cost is about the decisions at a threshold: give --threshold as well"
        )
    return costs


def _expect_valid_settings(
    settings: dict[str, float | None], costs: tuple[float, float] | None
) -> None:
    """Raise a ValueError if one of the options --alpha, --block, --bound and --delta is out of range.

    --alpha must lie between 0 and 1, --delta in [0, 1), --block must be at least 1, and --bound must
    lie between 0 and 1 or, with costs, between 0 and the larger cost. settings: values of these
    options, with the keys "alpha", "block", "bound" and "delta"; None if an option is not used.
    costs: the two costs of --threshold-cost, in whose units the bound is; None: it is a bound on
    errors.
    """
    used: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    unit = 1.0 if costs is None else max(costs)
    # A monitor checks its settings; this one is not used.
    Monitor(**{**used, "bound": used.get("bound", 0.5 * unit) / unit})


def _average_groups(losses: Float64, groups: NDArray[Any]) -> Float64:
    """Return the mean loss of each group, (n_groups,), in the order of the groups' first rows.

    losses, groups: loss and group of each row, both (n,).
    """
    _, first, index = np.unique(groups, return_index=True, return_inverse=True)
    means = np.bincount(index, weights=losses) / np.bincount(index)
    return means[np.argsort(first)]


def _choose_batch(source: TableSource, batch: str | None) -> str:
    """Return the name of a batch: that of the option --batch, or else that of the table's file.

    Raise ValueError if the table comes from standard input and `batch` is None. source: the table.
    """
    if batch is not None:
        return batch
    if str(source) == STANDARD_STREAM:
        raise ValueError("--batch must name the batch if FILE is standard input: give --batch NAME")
    return Path(source).name


def _open_monitor(
    model: Any,
    model_file: Path,
    digest: str,
    state: Path,
    settings: dict[str, float | None],
    decision: _Decision,
    dependent: str | None,
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
    decision : _Decision
        The predictions whose losses are monitored.
    dependent : str or None
        Column of groups, each of which counts as one observation; None: rows are independent.

    Returns
    -------
    Monitor
        The monitor of the state, with the losses of earlier batches; or a new one without losses.

    Raises
    ------
    ValueError
        If the state is of another model or has other settings, or the model has no certificate.
    """
    if not state.exists():
        return _create_monitor(model, model_file, digest, settings, decision, dependent)
    watched = load_monitor(state)
    if watched.model_hash != digest:
        raise ValueError(
            f"--state must belong to this model, but {state} monitors a file with the SHA-256 hash "
            f"{watched.model_hash}, and that of {model_file} is {digest}: give each model a state file "
            "of its own"
        )
    if (watched.loss or "") != str(decision):
        raise ValueError(
            f"--threshold, --positive and --threshold-cost must be those of the state, which monitors "
            f"{watched.loss or 'the errors of the most probable class'}, got "
            f"{str(decision) or 'none of them'}: give the same, or begin another state file"
        )
    if watched.grouped != (dependent is not None):
        counted = "groups: give --dependent COLUMN" if watched.grouped else "rows: leave it out"
        raise ValueError(
            f"--dependent must be used for all batches or for none, but the state counts {counted}, or "
            "begin another state file"
        )
    for name, value in settings.items():
        factor = watched.unit or 1.0 if name == "bound" else 1.0
        known = getattr(watched, name)
        if value is not None and value / factor != known:
            raise ValueError(
                f"--{name} must be the {name} of the state, {known * factor:.12g}, got {value}: leave "
                f"out --{name}, or begin another state file"
            )
    return watched


def _create_monitor(
    model: Any,
    model_file: Path,
    digest: str,
    settings: dict[str, float | None],
    decision: _Decision,
    dependent: str | None,
) -> Monitor:
    """Create a monitor without losses so far, for the model's certified bound or that of --bound.

    model: the fitted model. model_file: file of the model, for messages. digest: hash of this file.
    settings: options "alpha", "block", "bound" and "delta"; None: not given. decision: the
    predictions whose losses are monitored. dependent: column of groups, each of which counts as one
    observation, or None. Raise a ValueError if the model has no bound and --bound is not given, or
    if options do not suit the model.
    """
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
        unit = decision.unit
        return Monitor(
            *(bound / (unit or 1.0), alpha, unit, block, delta, digest, dependent is not None),
            str(decision) or None,
        )
    if delta is not None:
        raise ValueError(
            f"--delta {delta} is the probability that --bound fails: give --bound, too, or leave "
            "it out"
        )
    if decision.threshold is not None:
        raise ValueError(
            f"--bound must be given with --threshold: the bound for {decision} is what certree certify "
            "--threshold-cost prints"
        )
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        raise ValueError(
            f"MODEL must have a certificate, but {model_file} has none: fit with --model certified, or "
            "certify the model by other rows, and give --bound"
        )
    watched: Monitor = certificate.monitor(alpha, block=block, model_hash=digest)
    return replace(watched, grouped=dependent is not None)
