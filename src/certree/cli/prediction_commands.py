"""Commands that apply a model to rows: predict, evaluate and certify; and info."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree import show
from certree.certificates import Certificate, Guarantees
from certree.certificates import certify as certify_rows
from certree.certificates.batches import certify_batches
from certree.certificates.certificate import compute_log_delta
from certree.certificates.hold_out import compute_look_fraction
from certree.cli.app import (
    Delta,
    Quiet,
    command,
    output_file_option,
    print_note,
    print_text,
)
from certree.cli.figure_output import expect_figure_path, save_figure
from certree.cli.group_draw import (
    GroupColumns,
    GroupDraw,
    Independent,
    OnePerGroup,
    choose_groups,
    draw_rows,
)
from certree.cli.json_output import (
    AsJson,
    describe_certificate,
    describe_family,
    describe_scores,
    describe_thresholds,
    get_plain,
    print_json,
    print_predictions,
)
from certree.cli.read_options import takes_source
from certree.cli.table_input import (
    DuplicateRows,
    Groups,
    Keep,
    ModelFile,
    Positive,
    TableOrFolder,
    Target,
    Threshold,
    ThresholdCost,
    describe_positive,
    expect_labelled_rows,
    expect_not_dropped,
    expect_option_of_positive,
    find_default_positive,
    hash_model_file,
    load_model,
    parse_costs,
    parse_positive,
    read_extra_column,
    read_labelled_rows,
)
from certree.cli.threshold_choice import (
    THRESHOLD_OPTIONS,
    Precision,
    Recall,
    TableThresholds,
    parse_choice,
)
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.files import tables
from certree.files.model_rows import expect_valid_target, select_features
from certree.files.pipelines import name_model_features, split_pipeline
from certree.files.predictions import (
    ROWS_PER_BATCH,
    iterate_with_progress,
    predict_batches,
    read_model_batches,
    write_predictions,
)
from certree.interface.fitted_state import (
    find_drawn_groups_column,
    find_groups_column,
    find_time_column,
    get_snapshot,
)
from certree.interface.formatting import format_quantity
from certree.interface.positive_class import expect_threshold
from certree.rows.time_order import has_independent_period
from certree.show.model_description import (
    count_fitted_rows,
    describe_columns,
    describe_features,
    describe_size,
)
from certree.show.page.binary_scores import BinaryPredictions
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.scores import RowErrors, describe_verdict, format_scores
from certree.tables.column_names import expect_other_column
from certree.tables.csv_text import STANDARD_STREAM
from certree.tables.fitted_types import list_input_columns
from certree.tables.table import extract_target
from certree.tables.table_source import TableSource

# Kinds of guarantees that --groups asks for; see `Guarantees.conditional_guarantees`.
_GROUP_GUARANTEES = ("groups", "gaps")
# Most features that info names, and most leaves that it shows.
_N_FEATURES_SHOWN, _N_LEAVES_SHOWN = 12, 8

Output = Annotated[
    Path | None,
    output_file_option(
        "--output",
        "-o",
        help="Table to write: .csv, .csv.gz, .tsv or .parquet. Without it CSV is printed.",
    ),
]


@command
@takes_source(TableOrFolder)
def predict(
    model_file: ModelFile,
    source: TableSource,
    output: Output = None,
    threshold: Threshold = None,
    keep: Keep = None,
    positive: Positive = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict every row of a table, with class probabilities.

    The output is a table with the columns of --keep, a column "prediction", and a column of
    probabilities for each class. Rows are read and written batch by batch; files of a folder in the
    order of their names. With --output, the number of rows of each predicted class is printed.

    With --json each row is an object with these columns; with --output as well, the document has
    the numbers of rows and the path of the table.

    Regressors add columns: single trees the standard deviations "between" the predictions of the
    prunings and "within" their leaves, certified models an interval that contains 90 % of new
    targets. Boosted trees that were fitted with standard_errors add standard errors of numbers and
    probabilities.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    source : TableSource
        Table, or folder of tables; "-" is CSV from standard input.
    output : Path or None
        Table of predictions to write; None: CSV is printed.
    threshold : float or None
        Probability from which the positive class is predicted; None: the more probable class.
    keep : list of str or None
        Columns of the input to copy to the output.
    positive : str or None
        The positive one of two classes, which needs `threshold`; None: the second.
    as_json : bool
        Whether to print a JSON document.
    quiet : bool
        Whether to show no progress bar.
    """
    tables.expect_table_place(output)
    expect_option_of_positive("--threshold", threshold, positive)
    expect_threshold(threshold)
    destination = STANDARD_STREAM if output is None else str(output)
    model = load_model(model_file)
    estimator, _ = split_pipeline(model)
    rule = {"threshold": threshold, "pos_label": parse_positive(model, positive)}
    if threshold is not None and positive is None and not as_json:
        _note_positive(model)
    if as_json and destination == STANDARD_STREAM:
        rows = (model, source, keep or [], ROWS_PER_BATCH, int(not quiet))
        print_predictions(estimator, predict_batches(*rows, **rule))
        return
    counts = write_predictions(
        model, source, destination, keep or [], verbose=int(not quiet), **rule
    )
    if as_json:
        document = {"model": type(estimator).__name__, "output": destination, "rows": counts.n_rows}
        print_json(document | ({"classes": counts.classes} if counts.classes else {}))
    elif destination != STANDARD_STREAM:
        classes = ", ".join(f"{label} {n:,}" for label, n in counts.classes.items())
        size = format_quantity(counts.n_rows, "row")
        print_text(f"{size} written to {output}{classes and f': predicted {classes}'}")


@command
@takes_source(TableOrFolder)
def evaluate(
    model_file: ModelFile,
    source: TableSource,
    target: Target,
    threshold: Threshold = None,
    positive: Positive = None,
    one_per_group: OnePerGroup = None,
    independent: Independent = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score a model on the rows of a table or folder, and print each score with its 95 % interval.

    Error and log loss are compared with those of a constant prediction, such as the most frequent
    class. For two classes, recall, precision and the area under the ROC curve of the positive class
    are printed, too. With --threshold, error, recall and precision are those of the classes that
    the threshold predicts. Rows that also occur among the rows of the fit are counted in a last
    line. The intervals hold for independent rows: use --one-per-group if several rows belong to one
    customer, patient or shop. For a model that was fitted with --groups, this is done by the same
    column.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    source : TableSource
        Table, or folder of tables; "-" is CSV from standard input.
    target : str
        Column of the target.
    threshold : float or None
        Probability from which the positive class is predicted; None: the more probable class.
    positive : str or None
        The positive one of two classes; None: the second.
    one_per_group : str or None
        Column of groups, of each of which one row is used; None: rows are independent, or the model's
        column of groups is used.
    independent : bool
        Whether rows are independent, although the model was fitted with groups or times.
    as_json : bool
        Whether to print a JSON document.
    quiet : bool
        Whether to show no progress bar.
    """
    expect_threshold(threshold)
    model = load_model(model_file)
    pos_label = parse_positive(model, positive)
    chosen = choose_groups(
        *(model, source, target, GroupColumns(one_per_group=one_per_group)),
        is_independent=independent,
        needs_draw=True,
    )
    draw = draw_rows(model, source, target, chosen.one_per_group)
    errors, binary = _evaluate_rows(model, source, target, threshold, pos_label, quiet, draw)
    _note_time_order(split_pipeline(model)[0], independent)
    scores, n = [*errors.scores(), *(binary.scores() if binary else [])], len(errors.losses)
    name = type(split_pipeline(model)[0]).__name__
    if as_json:
        document = {
            "model": name,
            "rows": n,
            "known_rows": errors.n_known_rows,
            "positive": str(binary.positive) if binary else None,
            **_describe_draw(draw),
        }
        verdict = describe_verdict(scores)
        print_json({**document, "scores": describe_scores(scores), "verdict": verdict})
        return
    print_text(f"{name} on {format_quantity(n, 'row') if draw is None else draw}")
    for line in format_scores(scores):
        print_text(line)
    if errors.n_known_rows:
        known = format_quantity(errors.n_known_rows, "row also occurs", "rows also occur")
        print_text(f"{known} among the rows of the fit: the scores are too optimistic")


def _note_time_order(model: Any, is_independent: bool) -> None:
    """Print on standard error what intervals assume, if a model was fitted to rows in time order.

    model: the fitted model; is_independent: whether --independent is used. Independence may also have
    been stated in the fit.
    """
    if (column := find_time_column(model)) is None:
        return
    assumption = (
        "take rows as independent, although those of one period may depend on each other, and "
    )
    if is_independent or has_independent_period(model):
        assumption = ""
    print_note(
        f"the model was fitted to rows in time order{f' of {column!r}' if column else ''}: the "
        f"intervals {assumption}cover no later period"
    )


def _note_positive(model: Any) -> None:
    """Print on standard error which of the two classes is the positive one of thresholds.

    model: the fitted classifier or pipeline, for which --positive is not given.
    """
    for line in describe_positive(split_pipeline(model)[0], "choose by --positive"):
        print_note(line)


def _evaluate_rows(
    model: Any,
    source: TableSource,
    target: str,
    threshold: float | None,
    pos_label: Any,
    quiet: bool,
    draw: GroupDraw | None,
) -> tuple[RowErrors, BinaryPredictions | None]:
    """Predict a table or folder batch by batch, and return errors and losses of all rows.

    Parameters
    ----------
    model : fitted estimator
        The model.
    source : TableSource
        Table or folder, with options of reading.
    target : str
        Column of the target.
    threshold : float or None
        Probability from which the positive class is predicted; None: the most probable class.
    pos_label : object or None
        The positive one of two classes; None: the second.
    quiet : bool
        Whether to show no progress bar.
    draw : GroupDraw or None
        The rows that are used, one of each group; None: all rows.

    Returns
    -------
    errors : RowErrors
        For each row the log loss (nats) and whether the predicted class is wrong; for a regressor
        the squared error and the target. It also has the number of rows that were in the fit.
    binary : BinaryPredictions or None
        The predictions for the positive class; None unless the model has two classes.

    Raises
    ------
    ValueError
        If targets are no classes of the model, or not numeric for a regressor, or there are no
        rows.
    """
    errors: list[RowErrors] = []
    binary: list[BinaryPredictions] = []
    estimator, transform = split_pipeline(model)
    for X, y in _read_labelled_batches(model, source, target, "evaluating", quiet, draw):
        expect_valid_target(model, y, f"the target {target!r}")
        rule = {"pos_label": pos_label, "threshold": threshold}
        evaluated = EvaluatedModel.from_rows(estimator, transform(X), y, **rule)
        errors.append(RowErrors.from_evaluation(evaluated))
        if (found := BinaryPredictions.from_evaluation(evaluated)) is not None:
            binary.append(found)
    return RowErrors.concatenate(errors), BinaryPredictions.concatenate(binary) if binary else None


def _read_labelled_batches(
    model: Any,
    source: TableSource,
    target: str,
    description: str,
    quiet: bool,
    draw: GroupDraw | None,
    groups: str | None = None,
    group_labels: list[NDArray[Any]] | None = None,
    time: str | None = None,
    times: list[Any] | None = None,
    groups_option: str = "--groups",
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Yield features and targets of a table or folder in batches, without empty batches.

    Parameters
    ----------
    model : fitted estimator
        The model, whose features are read.
    source : TableSource
        Table or folder, with options of reading.
    target : str
        Column of the target.
    description : str
        Text in front of the progress bar, such as "evaluating".
    quiet : bool
        Whether to show no progress bar.
    draw : GroupDraw or None
        The rows that are used, one of each group; None: all rows.
    groups : str or None
        Column of each row's group; None if there are no groups.
    group_labels : list or None
        For each batch the groups of its rows, (b,), are appended to this list, unless it or
        `groups` is None.
    time : str or None
        Column of each row's time; None if rows have no times.
    times : list or None
        For each batch the column of its times, a pyarrow.ChunkedArray, is appended to this list,
        unless it or `time` is None.
    groups_option : str
        The option that names `groups`, for messages.

    Yields
    ------
    X : ndarray of shape (b, p), or pandas.DataFrame
        Features of the b rows of a batch, in the order of the fit; a data frame for a pipeline that
        was fitted with names.
    y : ndarray of shape (b,)
        Targets of these rows.

    Raises
    ------
    ValueError
        If there are no rows at all.
    """
    n_rows, columns = 0, (groups, None if draw is None else draw.column)
    # A column of times that are also groups is not read as text.
    extra_columns = [*dict.fromkeys(name for name in columns if name not in (None, time))]
    how: dict[str, Any] = {"extra_columns": extra_columns, "n_rows": ROWS_PER_BATCH}
    how["inferred_columns"] = [] if time is None else [time]
    reader = read_model_batches(model, source, target, **how)
    with closing(iterate_with_progress(description, reader, not quiet)) as batches:
        for batch in batches:
            n_first, table = n_rows, batch.table
            n_rows += len(table)
            if batch.is_last:
                expect_labelled_rows(n_rows, source)
            if draw is not None:
                table = draw.take_batch(table, n_first)
            if not len(table):
                continue
            y = extract_target(table, target, batch.where)
            if groups is not None and group_labels is not None:
                group_labels.append(read_extra_column(groups_option, table, groups, target))
            if time is not None and times is not None:
                expect_other_column("--time", time, table.column_names, target)
                times.append(table[time])
            if list_input_columns(model)[0] is None:
                table = table.drop_columns([target, *extra_columns, *how["inferred_columns"]])
            yield select_features(model, table, batch.where), y


def _certify_error(
    model: Any,
    source: TableSource,
    target: str,
    draw: GroupDraw | None,
    delta: float,
    look: int | None,
    duplicates: Any,
    groups: str | None,
    time: str | None,
    independent: bool,
) -> Certificate:
    """Return a certificate of a classifier's error, from the rows of a table or folder.

    Parameters
    ----------
    model : fitted classifier
        The classifier.
    source : TableSource
        The table; or a folder of tables, which are read batch by batch.
    target : str
        Column of the target.
    draw : GroupDraw or None
        The rows that are used, one of each group; None: all rows.
    delta : float
        Probability with which the certificate may fail.
    look : int or None
        Number of this inspection, from 1, if rows are added and certified again; None: this is the
        only one.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        Treatment of rows that equal each other or rows of the fit, as `DuplicateRows` describes it.
    groups : str or None
        Column of groups of rows that depend on each other; None: rows are independent.
    time : str or None
        Column of the rows' times; None: rows have no times.
    independent : bool
        Whether the user declares rows that have times to be independent draws from one period. It
        is only used with `time`.
    """
    expect_not_dropped(source, {"--time": time})
    how: dict[str, Any] = {"look": look, "duplicates": duplicates}
    if time is not None:
        how["independent"] = independent
    if not Path(source).is_dir():
        read_rows = partial(read_labelled_rows, groups_option="--dependent")
        X, y, labels, times = read_rows(model, source, target, groups, draw, time)
        if time is None and labels is None:
            labels = np.arange(len(y))
        return certify_rows(model, X, y, delta, groups=labels, time=times, **how)
    labels_by_batch, times_by_batch = list[NDArray[Any]](), list[Any]()
    read = (model, source, target, "certifying", True, draw, groups, labels_by_batch)
    batches = _read_labelled_batches(*read, time, times_by_batch, groups_option="--dependent")
    if time is not None:
        how["times"] = times_by_batch
    elif groups is None:
        batches = _number_rows(batches, labels_by_batch)
    has_groups = time is None or groups is not None
    return certify_batches(
        model, batches, delta, groups=labels_by_batch if has_groups else None, **how
    )


def _number_rows(
    batches: Iterator[tuple[Any, NDArray[Any]]], numbers: list[NDArray[Any]]
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Yield batches of rows unchanged, and append the numbers of each batch's rows to a list.

    As groups of one row each, these numbers state that rows are independent. batches: pairs of
    features and targets. numbers: the list; rows are numbered 0, 1, ... through all batches.
    """
    n = 0
    for X, y in batches:
        numbers.append(np.arange(n, n + len(y)))
        n += len(y)
        yield X, y


def _compute_guarantees(
    model: Any,
    source: TableSource,
    target: str,
    draw: GroupDraw | None,
    groups: str | None,
    delta: float,
    duplicates: Any,
    time: str | None,
    independent: bool,
) -> tuple[Guarantees, NDArray[Any] | None]:
    """Compute the guarantees of a classifier from the rows of a table or folder.

    Parameters
    ----------
    model : fitted classifier
        The classifier.
    source : TableSource
        The table; or a folder of tables, which are read batch by batch.
    target : str
        Column of the target.
    draw : GroupDraw or None
        The rows that are used, one of each group; None: all rows.
    groups : str or None
        Column of each row's group; None if there are no groups.
    delta : float
        Probability with which any of the guarantees may fail.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        Treatment of rows that equal each other or rows of the fit, as `DuplicateRows` describes it.
    time : str or None
        Column of the rows' times; None: rows have no times.
    independent : bool
        Whether the user declares rows that have times to be independent draws from one period. It
        is only used with `time`.

    Returns
    -------
    guarantees : Guarantees
        The certificate of the error, and methods that compute further guarantees.
    group_labels : ndarray of shape (n,), or None
        Group of each row; None if `groups` is None.
    """
    if not Path(source).is_dir():
        X, y, labels, times = read_labelled_rows(model, source, target, groups, draw, time)
        how: dict[str, Any] = {"duplicates": duplicates, "groups": np.arange(len(y))}
        if times is not None:
            how |= {"time": times, "independent": independent}
        return Guarantees.by_rows(model, X, y, delta, **how), labels
    expect_not_dropped(source, {"--groups": groups, "--time": time})
    group_labels, times_by_batch = list[NDArray[Any]](), list[Any]()
    read = (model, source, target, "certifying", True, draw, groups, group_labels)
    batches = _read_labelled_batches(*read, time, times_by_batch)
    numbers = list[NDArray[Any]]()
    numbered = _number_rows(batches, numbers)
    how = {"duplicates": duplicates, "groups": numbers}
    if time is not None:
        how |= {"times": times_by_batch, "independent": independent}
    guarantees = Guarantees.by_batches(model, numbered, delta, **how)
    return guarantees, None if groups is None else np.concatenate(group_labels)


def _expect_classifier(model: Any, model_file: Path) -> None:
    """Raise ValueError for a regressor, whose error on new rows this command cannot certify.

    model: the fitted model; model_file: path of the model, for the message.
    """
    if not is_classifier(model):
        raise ValueError(
            f"MODEL must be a classifier, but {model_file} predicts numbers: fit a certified "
            "regressor (--model certified), which is certified in its fit"
        )


@command
@takes_source(TableOrFolder)
def certify(
    model_file: ModelFile,
    source: TableSource,
    target: Target,
    delta: Delta = 0.05,
    look: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of this inspection, from 1, if rows are added and certified again. Each "
            "inspection uses a part of delta.",
        ),
    ] = None,
    duplicates: Annotated[
        DuplicateRows,
        typer.Option(
            metavar="WORD",
            help="Treatment of rows that equal each other or rows of the fit: "
            f"{', '.join(DuplicateRows)}.",
        ),
    ] = DuplicateRows.auto,
    threshold_cost: ThresholdCost = None,
    recall: Recall = None,
    precision: Precision = None,
    thresholds: TableThresholds = None,
    groups: Groups = None,
    dependent: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups of rows that depend on each other, such as customers (--groups of "
            "fit). The certificate then counts groups. For thresholds and --groups, use "
            "--one-per-group instead.",
        ),
    ] = None,
    one_per_group: OnePerGroup = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of times, dates or numbers, if rows are in time order and later than those of "
            "the fit. The certificate is then about later rows.",
        ),
    ] = None,
    independent: Independent = False,
    positive: Positive = None,
    plot: Annotated[
        Path | None,
        output_file_option(
            help="Draw the guarantees of all thresholds to this file (.png, .svg, .pdf); needs "
            "--threshold-cost."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Certify the error of a classifier on rows that were never used for it.

    The printed certificate is an upper bound on the error on new rows; it may fail with probability
    delta.
    With --groups, guarantees for each group and for differences between groups are printed instead.
    With --threshold-cost, --recall, --precision or --threshold, guarantees for every threshold of
    the positive class's probability are printed, and the chosen threshold, also for each group.
    Give these options together: all guarantees of one run hold jointly with probability 1 - delta,
    those of two runs need not. For a model that was fitted with --groups, the same column is used by
    --dependent, or for other guarantees by --one-per-group.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    source : TableSource
        Table, or folder of tables; "-" is CSV from standard input.
    target : str
        Column of the target.
    delta : float
        Probability with which the certificate, or any of the guarantees, may fail.
    look : int or None
        Number of this inspection, from 1, if the table is certified again whenever rows are added;
        each inspection uses a part of delta, and all certificates hold together. None: the table is
        certified only once.
    duplicates : DuplicateRows
        Treatment of equal rows: auto, genuine (independent draws), copies (of one draw, which count
        once) or refuse (an error).
    threshold_cost : str or None
        "A:B", the cost of a missed row of the positive class and of a false alarm; None: no costs.
    recall, precision : float or None
        Smallest certified recall, or precision, of the reported threshold; None: not used.
    thresholds : list of float or None
        Thresholds of the printed table; None: up to ten that are chosen by the rows.
    groups : str or None
        Column of each row's group; None if there are no groups.
    dependent : str or None
        Column of groups of rows that depend on each other, of which the certificate counts each
        once; None: rows are independent. It cannot be used with `groups` or `threshold_cost`.
    one_per_group : str or None
        Column of such groups, of each of which one row is used; None: all rows are.
    time : str or None
        Column of times of rows that are later than those of the fit; None: rows have no times.
    independent : bool
        With `time`, whether rows are independent draws from one period despite their times; else
        whether rows are independent although the model was fitted with groups.
    positive : str or None
        The positive one of two classes, which needs an option of thresholds; None: the second.
    plot : Path or None
        Figure of all thresholds to write, which needs `threshold_cost`; None: none is drawn.
    as_json : bool
        Whether to print a JSON document.
    """
    expect_figure_path(plot)
    compute_log_delta(delta)  # checks its range
    costs = parse_costs(threshold_cost)
    choice = parse_choice(costs, recall, precision, thresholds)
    _expect_plot_of_costs(plot, costs)
    _expect_options_together(positive, dependent, groups, choice is not None)
    model = load_model(model_file)
    _expect_classifier(model, model_file)
    is_error = choice is None and groups is None
    chosen = choose_groups(
        *(model, source, target, GroupColumns(dependent, one_per_group)),
        is_independent=independent and time is None,
        needs_draw=not is_error,
    )
    draw = draw_rows(model, source, target, chosen.one_per_group)
    read, rule, order = (model, source, target, draw), duplicates.value, (time, independent)
    show_guarantees = partial(_print_guarantees, model, draw, chosen, as_json)
    if is_error:
        certificate = _certify_error(*read, delta, look, rule, chosen.dependent, *order)
        show_guarantees(lambda: {"certificate": describe_certificate(certificate)}, certificate)
        return
    guarantees, group_labels = _compute_guarantees(*read, groups, delta, rule, *order)
    if choice is None:
        group_delta = guarantees.certificate.delta * compute_look_fraction(look)
        families = guarantees.conditional_guarantees(
            _GROUP_GUARANTEES, groups=group_labels, delta=group_delta
        )
        show_guarantees(lambda: _describe_families(families), families)
        return
    found = guarantees.thresholds(
        costs=costs,
        groups=group_labels,
        share=compute_look_fraction(look),
        pos_label=parse_positive(model, positive),
    )
    show_guarantees(
        lambda: {"thresholds": describe_thresholds(found, choice)}, choice.format(found)
    )
    if positive is None and not as_json:
        _note_positive(model)
    if plot is not None and costs is not None:
        save_figure(plot, lambda: show.plot_thresholds(found, *costs))


def _describe_families(families: Any) -> dict[str, Any]:
    """Return families of guarantees as an entry of a JSON document: {"families": {name: list}}.

    A family has guarantees of one kind, such as one for each group, that hold together with
    probability 1 - delta. families: mapping from a name, such as "groups", to a family of
    certificates. Each becomes a list of JSON objects, one for each certificate.
    """
    return {"families": {name: describe_family(one) for name, one in families.items()}}


def _expect_plot_of_costs(plot: Path | None, costs: tuple[float, float] | None) -> None:
    """Raise a ValueError if --plot is used without --threshold-cost, whose costs the figure shows.

    plot, costs: values of both options, None if they are not used.
    """
    if plot is not None and costs is None:
        raise ValueError("--plot draws the guarantees of thresholds: give --threshold-cost as well")


def _expect_options_together(
    positive: str | None,
    dependent: str | None,
    groups: str | None,
    has_thresholds: bool,
) -> None:
    """Raise a ValueError if options of `certify` exclude each other, or one needs another.

    --positive needs an option of thresholds; --dependent excludes these and --groups. positive,
    dependent, groups: values of these options, None if they are not used. has_thresholds: whether
    an option of thresholds is used.
    """
    if positive is not None and not has_thresholds:
        raise ValueError(
            f"--positive {positive} changes thresholds only: give {THRESHOLD_OPTIONS} as well"
        )
    if dependent is not None and (has_thresholds or groups is not None):
        raise ValueError(
            f"--groups, and {THRESHOLD_OPTIONS}, need independent rows, which --dependent says they "
            f"are not: use --one-per-group {dependent} instead, which draws one row of each group"
        )


def _describe_draw(draw: GroupDraw | None) -> dict[str, str]:
    """Return an entry of a JSON document about the random draw of one row of each group.

    It is {"one_per_group": sentence}, or {} without a draw. draw: the draw; None if all rows are
    used.
    """
    return {} if draw is None else {"one_per_group": f"{draw}. {_state_new_groups(draw.column)}"}


def _state_new_groups(column: str) -> str:
    """Return a sentence: no command checks that the groups of this column are new to the model."""
    return (
        f"Not checked: the groups of {column!r} must be new, as a model does not store those of its "
        "fit."
    )


def _print_guarantees(
    model: Any,
    draw: GroupDraw | None,
    columns: GroupColumns,
    as_json: bool,
    describe: Callable[[], dict[str, Any]],
    guarantees: Any,
) -> None:
    """Print guarantees, the rows that were drawn for them, and what they assume of groups.

    Parameters
    ----------
    model : fitted classifier
        The classifier.
    draw : GroupDraw or None
        The rows that are used, one of each group; None: all rows.
    columns : GroupColumns
        Columns of groups of rows that depend on each other.
    as_json : bool
        Whether to print a JSON document.
    describe : callable
        Function without arguments that returns the guarantees as a JSON object. It is called only
        with `as_json`, as it may list more guarantees than a printed table shows.
    guarantees : object
        The guarantees, whose `str` has sentences and tables.
    """
    if as_json:
        name = type(split_pipeline(model)[0]).__name__
        print_json({"model": name, **_describe_draw(draw), **describe()})
        return
    if draw is not None:
        print_text(str(draw))
    print_text(str(guarantees))
    if column := columns.dependent or columns.one_per_group:
        print_note(_state_new_groups(column))


@command
def info(model_file: ModelFile, as_json: AsJson = False) -> None:
    """Print what a model file holds: parameters, features and their types, classes, size.

    Of a pipeline, the columns that its first step reads are printed before the features of its model.
    The type of a date has its time zone and the calendar parts that the model reads. The number of
    rows of the fit is printed if the file stores hashes of rows. The last line is the SHA-256 hash
    of the file, which identifies the model. At most 12 features are named, and at most 8 leaves
    of a single tree are printed.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    as_json : bool
        Whether to print a JSON document.
    """
    loaded = load_model(model_file)
    model = name_model_features(loaded)
    digest = hash_model_file(model_file)
    if as_json:
        print_json(_describe_model(loaded, model, digest))
        return
    print_text(repr(loaded))
    if model is not loaded:
        names, columns = list_input_columns(loaded)
        names = [f"column {j}" for j in range(len(columns))] if names is None else names
        _print_columns("input column", names, describe_columns(columns))
    _print_columns("feature", model._feature_names(), describe_features(model))
    if is_classifier(model):
        print_text(f"classes: {', '.join(map(str, model.classes_))}")
        for line in describe_positive(model):
            print_text(line)
    n_rows = count_fitted_rows(model)
    fitted = "" if n_rows is None else f", fitted to {format_quantity(n_rows, 'row')}"
    if (column := find_groups_column(model)) is not None:
        fitted += f", with groups{f' of {column!r}' if column else ''}"
    if (column := find_drawn_groups_column(model)) is not None:
        fitted += f", one of each group of {column!r}"
    if (column := find_time_column(model)) is not None:
        fitted += f", in time order{f' of {column!r}' if column else ''}"
    print_text(f"size: {describe_size(model)}{fitted}")
    if hasattr(model, "certificate_"):
        print_text(str(model.certificate_))
    if isinstance(model, TreeVoteEstimator):
        print_text(model.export_text(max_leaves=_N_LEAVES_SHOWN))
    print_text(f"SHA-256 of the file: {digest}")


def _describe_model(loaded: Any, model: Any, digest: str) -> dict[str, Any]:
    """Return the contents of a model file as a JSON object.

    The keys are "model" (name of its class), "parameters", "features" (names and types), "classes",
    "positive", "size" (a text), "rows" (number of rows of the fit), "groups", "one_per_group" and
    "time" (names of columns), "certificate" and "sha256"; for a pipeline also "input_columns". What
    the model does not have is None.

    loaded: the fitted estimator or pipeline in the file. model: the estimator itself, the last step
    of a pipeline, with names of its features. digest: hash of the file.
    """
    classes = [str(label) for label in model.classes_] if is_classifier(model) else None
    certificate = getattr(model, "certificate_", None)
    parameters = get_snapshot(model).get_params(deep=False)
    described: dict[str, Any] = {
        "model": type(model).__name__,
        "parameters": {name: get_plain(value) for name, value in parameters.items()},
        "features": _list_columns(model._feature_names(), describe_features(model)),
        "classes": classes,
        "positive": find_default_positive(model),
        "size": describe_size(model),
        "rows": count_fitted_rows(model),
        "groups": find_groups_column(model),
        "one_per_group": find_drawn_groups_column(model),
        "time": find_time_column(model),
        "certificate": None if certificate is None else describe_certificate(certificate),
        "sha256": digest,
    }
    if model is not loaded:
        names, columns = list_input_columns(loaded)
        names = [f"column {j}" for j in range(len(columns))] if names is None else names
        described["input_columns"] = _list_columns(names, describe_columns(columns))
    return described


def _list_columns(names: Sequence[str], texts: Sequence[str]) -> list[dict[str, str]]:
    """Return a JSON object with "name" and "type" for each column.

    names: names of the columns; texts: words for their types, in the same order.
    """
    return [{"name": str(name), "type": text} for name, text in zip(names, texts, strict=True)]


def _print_columns(what: str, names: Sequence[str], texts: Sequence[str]) -> None:
    """Print the number of columns, and names and types of the first 12.

    what: word for a column, such as "feature". names, texts: name and type of each column.
    """
    print_text(f"{format_quantity(len(names), what)}:")
    for name, text in [*zip(names, texts, strict=True)][:_N_FEATURES_SHOWN]:
        print_text(f"  {name}: {text}")
    if len(names) > _N_FEATURES_SHOWN:
        print_text(f"  and {len(names) - _N_FEATURES_SHOWN:,} more")
