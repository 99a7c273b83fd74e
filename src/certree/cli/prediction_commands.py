"""Commands that apply a model to rows: predict, evaluate and certify; and info."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import file_digest
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
from certree.certificates.hold_out import compute_look_fraction
from certree.cli.app import Delta, Quiet, command, output_file_option, print_text
from certree.cli.figure_output import expect_figure_path, save_figure
from certree.cli.json_output import (
    AsJson,
    describe_certificate,
    describe_family,
    describe_scores,
    describe_thresholds,
    print_json,
    print_predictions,
)
from certree.cli.read_options import takes_source
from certree.cli.table_input import (
    DuplicateRows,
    Groups,
    ModelFile,
    Positive,
    TableOrFolder,
    Target,
    Threshold,
    ThresholdCost,
    expect_given,
    expect_labelled_rows,
    expect_not_dropped,
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
    apply_threshold,
    iterate_with_progress,
    predict_batches,
    predict_files,
    read_model_batches,
)
from certree.interface.formatting import format_quantity
from certree.show.model_description import (
    count_fitted_rows,
    describe_columns,
    describe_features,
    describe_size,
)
from certree.show.page.binary_scores import BinaryPredictions
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.scores import RowErrors, describe_verdict, format_scores
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
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the input, such as a key, to copy to the output; repeat for more.",
        ),
    ] = None,
    positive: Positive = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict every row of a table, with class probabilities.

    The output is a table with the columns of --keep, a column "prediction", and a column of
    probabilities for each class. Rows are read and written batch by batch; files of a folder in the
    order of their names.

    With --json each row is an object with these columns; with --output as well, the document has
    the number of rows and the path of the table.

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
    expect_given("--threshold", threshold, positive)
    destination = STANDARD_STREAM if output is None else str(output)
    model = load_model(model_file)
    estimator, _ = split_pipeline(model)
    rule = {"threshold": threshold, "pos_label": parse_positive(model, positive)}
    if as_json and destination == STANDARD_STREAM:
        rows = (model, source, keep or [], ROWS_PER_BATCH, int(not quiet))
        print_predictions(estimator, predict_batches(*rows, **rule))
        return
    n_rows = predict_files(
        model, source, destination, keep=keep or [], verbose=int(not quiet), **rule
    )
    if as_json:
        print_json({"model": type(estimator).__name__, "output": destination, "rows": n_rows})


@command
@takes_source(TableOrFolder)
def evaluate(
    model_file: ModelFile,
    source: TableSource,
    target: Target,
    threshold: Threshold = None,
    positive: Positive = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score a model on the rows of a table or folder, and print each score with its 95 % interval.

    Error and log loss are compared with those of a constant prediction, such as the most frequent
    class. For two classes, recall, precision and the area under the ROC curve of the positive class
    are printed, too. With --threshold, error, recall and precision are those of the classes that
    the threshold predicts. Rows that also occur among the rows of the fit are counted in a last
    line.\f

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
    as_json : bool
        Whether to print a JSON document.
    quiet : bool
        Whether to show no progress bar.
    """
    model = load_model(model_file)
    pos_label = parse_positive(model, positive)
    errors, binary = _evaluate_rows(model, source, target, threshold, pos_label, quiet)
    scores, n = [*errors.scores(), *(binary.scores() if binary else [])], len(errors.losses)
    name = type(split_pipeline(model)[0]).__name__
    if as_json:
        document = {
            "model": name,
            "rows": n,
            "known_rows": errors.n_known_rows,
            "positive": str(binary.positive) if binary else None,
        }
        verdict = describe_verdict(scores)
        print_json({**document, "scores": describe_scores(scores), "verdict": verdict})
        return
    print_text(f"{name} on {format_quantity(n, 'row')}")
    for line in format_scores(scores):
        print_text(line)
    if errors.n_known_rows:
        known = format_quantity(errors.n_known_rows, "row")
        print_text(f"{known} also occur among the rows of the fit: the scores are too optimistic")


def _evaluate_rows(
    model: Any,
    source: TableSource,
    target: str,
    threshold: float | None,
    pos_label: Any,
    quiet: bool,
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
    for X, y in _read_labelled_batches(model, source, target, "evaluating", quiet):
        expect_valid_target(model, y, f"the target {target!r}")
        evaluated = EvaluatedModel.from_rows(estimator, transform(X), y, pos_label=pos_label)
        if threshold is not None:
            probabilities = evaluated.probabilities
            columns = {} if probabilities is None else dict(enumerate(probabilities.T))
            predicted = apply_threshold(model, columns, threshold, pos_label)
            evaluated = replace(evaluated, predicted=predicted)
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
    groups: str | None = None,
    group_labels: list[NDArray[Any]] | None = None,
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Yield features and targets of a table or folder batch by batch; none of them is empty.

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
    groups : str or None
        Column of each row's group; None if there are no groups.
    group_labels : list or None
        For each batch the groups of its rows, (b,), are appended to this list, unless it or
        `groups` is None.

    Yields
    ------
    X : ndarray of shape (b, p), or pandas.DataFrame
        Features of the b rows of a batch, in the order of the fit; a data frame for a pipeline that
        was fitted with names.
    y : ndarray of shape (b,)
        Their targets.

    Raises
    ------
    ValueError
        If there are no rows at all.
    """
    n_rows, extra_columns = 0, [] if groups is None else [groups]
    reader = read_model_batches(
        model, source, target, extra_columns=extra_columns, n_rows=ROWS_PER_BATCH
    )
    with closing(iterate_with_progress(description, reader, not quiet)) as batches:
        for batch in batches:
            y = extract_target(batch.table, target, batch.where)
            n_rows += len(y)
            if batch.is_last:
                expect_labelled_rows(n_rows, source)
            if not len(y):
                continue
            table = batch.table
            if list_input_columns(model)[0] is None:
                table = table.drop_columns([target, *extra_columns])
            if groups is not None and group_labels is not None:
                group_labels.append(read_extra_column(batch.table, groups, target))
            yield select_features(model, table, batch.where), y


def _certify_error(
    model_file: Path,
    source: TableSource,
    target: str,
    delta: float,
    look: int | None,
    duplicates: Any,
    groups: str | None,
) -> tuple[Any, Certificate]:
    """Load a classifier, and bound its error by the rows of a table or folder.

    Parameters
    ----------
    model_file : Path
        File of the model.
    source : TableSource
        The table; or a folder of tables, which are read batch by batch.
    target : str
        Column of the target.
    delta : float
        Probability with which the certificate may fail.
    look : int or None
        Number of this inspection, from 1; None: the only one.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        Treatment of equal rows; see `certree.certify`.
    groups : str or None
        Column of groups of rows that depend on each other; None: rows are independent.

    Returns
    -------
    model : fitted classifier
    certificate : Certificate
    """
    expect_not_dropped(source, {"--dependent": groups})
    how = {"look": look, "duplicates": duplicates}
    if not Path(source).is_dir():
        model, X, y, labels = read_labelled_rows(model_file, source, target, groups)
        _expect_classifier(model, model_file)
        return model, certify_rows(model, X, y, delta, groups=labels, **how)
    model, group_labels = load_model(model_file), list[NDArray[Any]]()
    _expect_classifier(model, model_file)
    batches = _read_labelled_batches(
        model, source, target, "certifying", True, groups, group_labels
    )
    of_rows = None if groups is None else group_labels
    return model, certify_batches(model, batches, delta, groups=of_rows, **how)


def _compute_guarantees(
    model_file: Path,
    source: TableSource,
    target: str,
    groups: str | None,
    delta: float,
    duplicates: Any,
) -> tuple[Any, Guarantees, NDArray[Any] | None]:
    """Load a classifier, and compute its guarantees on the rows of a table or folder.

    Parameters
    ----------
    model_file, source, target, delta, duplicates
        As of `_certify_error`.
    groups : str or None
        Column of each row's group; None if there are no groups.

    Returns
    -------
    model : fitted classifier
    guarantees : Guarantees
        The certificate of the error, and methods that compute further guarantees.
    group_labels : ndarray of shape (n,), or None
        Group of each row; None if `groups` is None.
    """
    if not Path(source).is_dir():
        model, X, y, labels = read_labelled_rows(model_file, source, target, groups)
        _expect_classifier(model, model_file)
        return model, Guarantees.by_rows(model, X, y, delta, duplicates=duplicates), labels
    expect_not_dropped(source, {"--groups": groups})
    model, group_labels = load_model(model_file), list[NDArray[Any]]()
    _expect_classifier(model, model_file)
    batches = _read_labelled_batches(
        model, source, target, "certifying", True, groups, group_labels
    )
    guarantees = Guarantees.by_batches(model, batches, delta, duplicates=duplicates)
    return model, guarantees, None if groups is None else np.concatenate(group_labels)


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
            "fit). The certificate then counts groups.",
        ),
    ] = None,
    positive: Positive = None,
    plot: Annotated[
        Path | None,
        output_file_option(
            help="Draw the guarantees of all thresholds to this file (.png, .svg, .pdf)."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Certify the error of a classifier on rows that were never used for it.

    The printed certificate is an upper bound on the error on new rows; it may fail with probability
    delta.
    With --groups, guarantees for each group and for differences between groups are printed instead.
    With --threshold-cost, --recall, --precision or --threshold, guarantees for every threshold of
    the positive class's probability are printed, and the chosen threshold, also for each group.\f

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
    positive : str or None
        The positive one of two classes, which needs an option of thresholds; None: the second.
    plot : Path or None
        Figure of all thresholds to write, which needs `threshold_cost`; None: none is drawn.
    as_json : bool
        Whether to print a JSON document.
    """
    expect_figure_path(plot)
    costs = parse_costs(threshold_cost)
    choice = parse_choice(costs, recall, precision, thresholds)
    if plot is not None and costs is None:
        raise ValueError("--plot draws the guarantees of thresholds: give --threshold-cost as well")
    _expect_options_together(positive, dependent, groups, choice is not None)
    rule: Any = duplicates.value
    read = (model_file, source, target)
    if choice is None and groups is None:
        model, certificate = _certify_error(*read, delta, look, rule, dependent)
        _print_certificate(model, certificate, as_json)
        return
    model, guarantees, group_labels = _compute_guarantees(*read, groups, delta, rule)
    name = type(split_pipeline(model)[0]).__name__
    if choice is None:
        group_delta = guarantees.certificate.delta * compute_look_fraction(look)
        families = guarantees.conditional_guarantees(
            _GROUP_GUARANTEES, groups=group_labels, delta=group_delta
        )
        if as_json:
            described = {name: describe_family(family) for name, family in families.items()}
            print_json({"model": name, "families": described})
        else:
            print_text(str(families))
        return
    found = guarantees.thresholds(
        costs=costs,
        groups=group_labels,
        share=compute_look_fraction(look),
        pos_label=parse_positive(model, positive),
    )
    if as_json:
        print_json({"model": name, "thresholds": describe_thresholds(found, choice)})
    else:
        print_text(choice.format(found))
    if plot is not None and costs is not None:
        save_figure(plot, lambda: show.plot_thresholds(found, *costs))


def _expect_options_together(
    positive: str | None, dependent: str | None, groups: str | None, has_thresholds: bool
) -> None:
    """Raise ValueError if options of `certify` exclude each other, or miss one.

    positive, dependent, groups: values of these options, None if they are not used; has_thresholds:
    whether an option of thresholds is used.
    """
    if positive is not None and not has_thresholds:
        raise ValueError(
            f"--positive {positive} changes thresholds only: give {THRESHOLD_OPTIONS} as well"
        )
    if dependent is not None and (has_thresholds or groups is not None):
        raise ValueError(
            f"--groups, and {THRESHOLD_OPTIONS}, need independent rows, which --dependent says they "
            "are not: pass a table with one row of each group, and leave out --dependent"
        )


def _print_certificate(model: Any, certificate: Certificate, as_json: bool) -> None:
    """Print the certificate of a model as a sentence, or as a JSON document if `as_json` is True."""
    if as_json:
        name = type(split_pipeline(model)[0]).__name__
        document = {"model": name, "certificate": describe_certificate(certificate)}
        print_json(document)
    else:
        print_text(str(certificate))


@command
def info(model_file: ModelFile) -> None:
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
    """
    loaded = load_model(model_file)
    model = name_model_features(loaded)
    print_text(repr(loaded))
    if model is not loaded:
        names, columns = list_input_columns(loaded)
        names = [f"column {j}" for j in range(len(columns))] if names is None else names
        _print_columns("input column", names, describe_columns(columns))
    _print_columns("feature", model._feature_names(), describe_features(model))
    if is_classifier(model):
        print_text(f"classes: {', '.join(map(str, model.classes_))}")
    n_rows = count_fitted_rows(model)
    fitted = "" if n_rows is None else f", fitted to {format_quantity(n_rows, 'row')}"
    print_text(f"size: {describe_size(model)}{fitted}")
    if hasattr(model, "certificate_"):
        print_text(str(model.certificate_))
    if isinstance(model, TreeVoteEstimator):
        print_text(model.export_text(max_leaves=_N_LEAVES_SHOWN))
    with model_file.open("rb") as file:
        print_text(f"SHA-256 of the file: {file_digest(file, 'sha256').hexdigest()}")


def _print_columns(what: str, names: Sequence[str], texts: Sequence[str]) -> None:
    """Print the number of columns, and names and types of the first ones.

    what: what a column is, such as "feature"; names, texts: name and type of each.
    """
    print_text(f"{format_quantity(len(names), what)}:")
    for name, text in [*zip(names, texts, strict=True)][:_N_FEATURES_SHOWN]:
        print_text(f"  {name}: {text}")
    if len(names) > _N_FEATURES_SHOWN:
        print_text(f"  and {len(names) - _N_FEATURES_SHOWN:,} more")
