"""Predict the rows of files and write the predictions to a file, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from certree.certificates.certified_regression import CertifiedRegressorMixin
from certree.certificates.thresholds import OperatingPoint, read_threshold
from certree.ensembles.boosting import BoostedTrees
from certree.estimators.tree_vote import TreeVoteRegressor
from certree.files import tables
from certree.files.model_rows import select_feature_table
from certree.files.output_paths import expect_not_input
from certree.files.pipelines import split_pipeline
from certree.interface.extras import import_extra
from certree.interface.fitted_state import check_one_target
from certree.interface.positive_class import check_threshold
from certree.interface.progress import RowRate, show_progress
from certree.interface.signatures import validate_arguments
from certree.tables.column_names import (
    expect_fitted_columns,
    expect_known_columns,
    expect_target,
)
from certree.tables.csv_text import STANDARD_STREAM, get_display_name
from certree.tables.fitted_types import get_fitted_columns, list_input_columns, use_model_format
from certree.tables.formats import CsvFile, open_files
from certree.tables.integer_text import holds_integers
from certree.tables.new_values import warn_of_new_values
from certree.tables.pipeline_columns import InputColumn
from certree.tables.reader import Batch, no_types, read_batches
from certree.tables.table_source import TableSource

if TYPE_CHECKING:
    import pyarrow as pa

# Default number of rows that are read, predicted and written at a time.
ROWS_PER_BATCH = 2**17


def predict_columns(
    model: Any, X: Any, threshold: float | None = None, pos_label: Any = None
) -> dict[str, Any]:
    """Predict rows and return the columns of the output table by name.

    Parameters
    ----------
    model : fitted estimator of certree
        The model.
    X : array-like of shape (n, p)
        Rows.
    threshold : float or None
        Predict the positive one of two classes if its probability is at least this; None: predict
        the most probable class.
    pos_label : object or None
        The positive class; None: the second.

    Returns
    -------
    dict of ndarray of shape (n,)
        "prediction", or ``prediction_0`` and so on for several targets; then, as the model has
        them, ``probability_<class>`` for each class, "between" and "within" (standard deviations of
        `predict_std`), "std" or ``std_<class>`` (standard errors), "lower" and "upper" (ends of
        the prediction interval).

    Raises
    ------
    ValueError
        If `threshold` or `pos_label` does not suit the model, or a classifier has several targets.
    """
    columns: dict[str, Any] = {}
    predicted = model.predict(X) if threshold is None else None
    if is_classifier(model):
        check_one_target("a file of predictions", model)
    if is_classifier(model) and hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        columns = {f"probability_{c}": probabilities[:, k] for k, c in enumerate(model.classes_)}
    elif isinstance(model, TreeVoteRegressor):
        columns = dict(zip(("between", "within"), model.predict_std(X).T, strict=True))
    if threshold is not None:
        predicted = apply_threshold(model, columns, threshold, pos_label)
    if isinstance(model, BoostedTrees) and hasattr(model, "predict_std"):
        names = [name.replace("probability", "std", 1) for name in columns] or ["std"]
        columns |= dict(zip(names, np.atleast_2d(model.predict_std(X).T), strict=True))
    if isinstance(model, CertifiedRegressorMixin) and len(model.certificates_) > 1:
        columns |= dict(zip(("lower", "upper"), model.predict_interval(X).T, strict=True))
    predictions: NDArray[Any] = np.asarray(predicted)
    if predictions.ndim > 1:
        outputs = {f"prediction_{k}": output for k, output in enumerate(predictions.T)}
        return {**outputs, **columns}
    return {"prediction": predictions, **columns}


def apply_threshold(
    model: Any, probabilities: dict[Any, Any], threshold: float, pos_label: Any = None
) -> NDArray[Any]:
    """Predict the positive one of two classes if its probability is at least a threshold.

    Parameters
    ----------
    model : fitted estimator
        A classifier of two classes.
    probabilities : dict of ndarray of shape (n,)
        Probabilities of the first and of the second class, in this order; the keys do not matter.
    threshold : float
        Number in [0, 1].
    pos_label : object or None
        The positive class; None: the second.

    Returns
    -------
    ndarray of shape (n,)
        The predicted classes, which are elements of `model.classes_`: the other class if the
        probability of the positive one is below the threshold.

    Raises
    ------
    ValueError
        If the model is not a classifier of two classes, `pos_label` is not one of them, or the
        threshold is out of range.
    """
    classes = np.asarray(model.classes_ if is_classifier(model) else [])
    positive = check_threshold(classes, threshold, pos_label)
    assert positive is not None  # There is a threshold.
    is_positive = [*probabilities.values()][positive] >= threshold
    labels: NDArray[Any] = classes[np.where(is_positive, positive, 1 - positive)]
    return labels


@validate_arguments
def predict_files(
    model: Any,
    source: Any,
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] = (),
    threshold: float | OperatingPoint | None = None,
    pos_label: Any = None,
    batch_size: int = ROWS_PER_BATCH,
    verbose: int = 0,
) -> int:
    """Predict the rows of files and write the predictions to a file.

    Rows are read, predicted and written batch by batch, so memory does not grow with the table.
    Predictions equal those of `predict` and `predict_proba` in memory. Of Parquet and Arrow files
    only the columns of features and of `keep` are read.

    Parameters
    ----------
    model : fitted estimator of certree, or Pipeline that ends in one
        The model. If it was fitted with names of features, columns are found by name. A pipeline
        receives data frames of pandas, or arrays if it was fitted without names.
    source : path, list of paths, or pyarrow.dataset.Dataset
        Parquet, Arrow or CSV files, or folders of them; files of a folder are read in the order of
        their names. "-" is CSV from standard input.
    target : path
        File to write, ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet``, atomically; "-" prints CSV.
        Rows are in the order of the source. The columns are those of `keep`, then "prediction",
        then ``probability_<class>`` for each class. Regression trees add "between" and "within",
        certified regressors "lower" and "upper", and boosted trees with standard errors "std". With
        several outputs the predictions are ``prediction_0`` and so on.
    keep : sequence of str
        Columns of the source, such as a key, to copy to the output as first columns. Those of CSV
        files that are no features are text, as it is written; in a Parquet file they are integers
        if all their values are integers without leading zeros.
    threshold : float, OperatingPoint or None
        Predict the positive one of two classes if its probability is at least this; None: predict
        the more probable class.
    pos_label : object or None
        The positive class, which needs `threshold`; None: that of the operating point, or else the
        second of ``classes_``.
    batch_size : int
        Number of rows that are processed at a time.
    verbose : int
        If above 0, show progress on standard error: a bar in terminals and notebooks, else lines of
        text. Bars need the package rich; without it there are lines everywhere.

    Returns
    -------
    int
        Number of rows that were predicted.

    Raises
    ------
    OSError
        If a file does not exist, or the target cannot be written.
    TypeError
        If the model is neither an estimator of certree nor a pipeline that ends in one, or the first
        step of the pipeline does not store its columns.
    ValueError
        If a file lacks a column, has a column of another type than in the fit, cannot be read, or
        changes while it is read; if there are no rows; if the target is a file of the source, or
        lies in one of its folders; if `pos_label` is not one of two classes, or has no threshold.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> from certree import BoostedTreesClassifier, predict_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = pa.table({"key": np.arange(99), "x": np.arange(99) / 7})
    >>> model = BoostedTreesClassifier(max_iter=5).fit(rows.select(["x"]), np.arange(99) > 50)
    >>> parquet.write_table(rows, folder / "new.parquet")
    >>> predict_files(model, folder / "new.parquet", folder / "predicted.csv", keep=["key"])
    99
    >>> (folder / "predicted.csv").read_text().splitlines()[0]
    '"key","prediction","probability_False","probability_True"'
    """
    rule = dict(zip(("threshold", "pos_label"), read_threshold(threshold, pos_label), strict=True))
    rows = {"batch_size": batch_size, "verbose": verbose}
    return write_predictions(model, source, target, keep, **rule, **rows).n_rows


@dataclass(slots=True)
class PredictionCounts:
    """Numbers of rows that have been predicted: in all, and of each predicted class.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    classes : dict of object to int
        Number of rows of each predicted class, in the order of the model's classes; empty for a
        regressor.
    """

    n_rows: int
    classes: dict[Any, int]

    def add(self, table: pa.Table) -> None:
        """Count the rows of an output table: add them to `n_rows`, and for a classifier to `classes`.

        table: the rows; its column "prediction" holds the predicted classes or numbers.
        """
        self.n_rows += len(table)
        if self.classes:
            for entry in table["prediction"].value_counts().to_pylist():
                label = entry["values"]
                self.classes[label] = self.classes.get(label, 0) + entry["counts"]


def write_predictions(
    model: Any,
    source: Any,
    target: str | os.PathLike[str],
    keep: Sequence[str] = (),
    *,
    threshold: float | None,
    pos_label: Any,
    batch_size: int = ROWS_PER_BATCH,
    verbose: int = 0,
) -> PredictionCounts:
    """Predict the rows of files and write the predictions to a file; return the numbers of rows.

    The result has the number of all rows and that of each predicted class. The parameters have the
    same names and meaning as in `predict_files`. model: the fitted model. source, target: files to
    read, and file to write. keep: names of columns to copy. threshold: predict the positive one
    of two classes, `pos_label` (None: the second), if its probability is at least this; None: predict
    the most probable class. batch_size: rows that are processed at a time. verbose: above 0: show
    progress.
    """
    check_is_fitted(model)
    if not hasattr(split_pipeline(model)[0], "categories_"):
        raise TypeError(
            "model must be an estimator of certree, or a Pipeline that ends in one, as the fit stores "
            f"the types of the columns, got {shortened(model)}: for other models, call "
            "model.predict_proba or model.predict on batch.to_pandas(), for each batch of "
            "pyarrow.dataset.dataset(source).to_batches()"
        )
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if isinstance(keep, str):
        raise TypeError(f"keep must be a sequence of column names, got {keep!r}: use [{keep!r}]")
    if threshold is None:
        check_threshold(None, threshold, pos_label)
    tables.expect_table_place(target)
    expect_not_input(target, source, "target", is_table=True)
    is_typed = str(target).lower().endswith(".parquet")
    integers = _find_integer_columns(model, source, keep) if is_typed else []
    predictions = predict_batches(
        *(model, source, [*keep], batch_size, verbose),
        threshold=threshold,
        pos_label=pos_label,
        integers=integers,
    )
    estimator, _ = split_pipeline(model)
    classes = estimator.classes_ if is_classifier(estimator) else []
    counts = PredictionCounts(0, dict.fromkeys(np.asarray(classes).tolist(), 0))

    def count_rows() -> Iterator[pa.Table]:
        """Yield the tables of `predictions`, one for each batch, and add their rows to `counts`."""
        for table in predictions:
            counts.add(table)
            yield table

    tables.write_all(count_rows(), target)
    return counts


def _find_integer_columns(model: Any, source: Any, keep: Sequence[str]) -> list[str]:
    """Return the names of columns to copy that hold integers only, such as keys, in CSV files.

    The text of such a column does not change if it becomes a number and is printed again. The files
    are read once for it. Features are left out, and so is standard input, which cannot be read
    twice. model: the fitted model, with whose format of CSV files columns are read. source: files,
    or folders of files. keep: names of the columns to copy.
    """
    features, _ = list_input_columns(model)
    names = [name for name in keep if name not in (features or [])]
    if not names or str(source) == STANDARD_STREAM:
        return []
    source = use_model_format(source, model)
    if not all(isinstance(file, CsvFile) for file in open_files(source)):
        return []
    left = dict.fromkeys(names, False)
    for batch in read_batches(source, no_types, ROWS_PER_BATCH, names, names, keep_words=True):
        for name in [name for name in left if name in batch.table.column_names]:
            column = batch.table[name]
            if not holds_integers(column):
                del left[name]
            else:
                left[name] |= column.null_count < len(column)
    return [name for name, has_value in left.items() if has_value]


def predict_batches(
    model: Any,
    source: Any,
    keep: list[str],
    batch_size: int,
    verbose: int,
    *,
    threshold: float | None,
    pos_label: Any,
    integers: Sequence[str] = (),
) -> Iterator[pa.Table]:
    """Yield an output table for each batch of rows; all have the schema of the first one.

    An output table has the columns of `keep`, then the predictions ("prediction", probabilities of
    classes, and others that the model has). Raise a ValueError if the source has no rows.

    Parameters
    ----------
    model : fitted estimator of certree, or Pipeline that ends in one
        The model, whose columns are read.
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files; "-" is CSV from standard input.
    keep : list of str
        Names of columns of the source to copy to the output.
    batch_size : int
        Largest number of rows of a batch.
    verbose : int
        If above 0, show progress.
    threshold : float or None
        Predict the positive one of two classes if its probability is at least this; None: predict
        the most probable class.
    pos_label : object or None
        The positive class; None: the second.
    integers : sequence of str
        Names of columns among `keep` whose texts become integers.
    """
    estimator, transform = split_pipeline(model)

    def predict(rows: Any) -> dict[str, Any]:
        """Return the columns of the predictions by name, for rows that the model reads."""
        return predict_columns(estimator, transform(rows), threshold, pos_label)

    schema: Any = None
    reader = read_model_batches(
        model, source, extra_columns=keep, are_copied=True, n_rows=batch_size
    )
    with closing(iterate_with_progress("predicting", reader, verbose > 0)) as batches:
        for batch in batches:
            if not len(batch.table) and batch.is_last and schema is None:
                raise ValueError(
                    f"source must hold rows to predict, but {TableSource(source)} holds no rows: pass "
                    "other files"
                )
            if len(batch.table):
                table = _predict_batch(model, batch, keep, predict)
                for name in integers:
                    column = table[name].cast(import_extra("pyarrow", "files").int64())
                    table = table.set_column(table.column_names.index(name), name, column)
                schema = table.schema if schema is None else schema
                yield _cast_to_schema(table, schema, batch.where)


def iterate_with_progress(
    description: str, batches: Iterator[Batch], is_shown: bool
) -> Generator[Batch, None, None]:
    """Yield the batches unchanged, and show a progress bar if there is more than one batch.

    The bar shows the fraction of the input that has been read, rows per second and the time left.

    Parameters
    ----------
    description : str
        Text in front of the bar, such as "predicting".
    batches : iterator of Batch
        At least one batch.
    is_shown : bool
        Whether to show the bar at all.
    """
    first = next(batches)
    with show_progress(is_shown and not first.is_last, 100, f"{description}, %") as advance:
        pace, percent_shown = RowRate(), 0
        for batch in chain([first], batches):
            yield batch
            percent = int(100 * batch.fraction_read)
            advance(percent - percent_shown, pace.update(len(batch.table)))
            percent_shown = percent


def read_model_batches(
    model: Any,
    source: Any,
    target: str | None = None,
    *,
    extra_columns: Sequence[str] = (),
    inferred_columns: Sequence[str] = (),
    are_copied: bool = False,
    n_rows: int,
) -> Iterator[Batch]:
    """Read batches of the columns that a model needs, with the types that they had in the fit.

    Parameters
    ----------
    model : fitted estimator
        The model, or a pipeline that ends in one. If it was fitted without feature names, all
        columns are read.
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files; "-" is CSV from standard input.
    target : str or None
        Name of the target column, which is read as well; None: no target is read.
    extra_columns : sequence of str
        Names of further columns to read, neither features nor target. CSV columns are read as text,
        columns of other files as they are.
    inferred_columns : sequence of str
        Further columns to read, which may be features. If they are not, their types are those that
        the values of a CSV file have.
    are_copied : bool
        Whether `extra_columns` are copied to an output, as the argument `keep` of `predict_files`:
        words such as NA are text in those of CSV files, where only empty fields are missing.
    n_rows : int
        Largest number of rows of a batch.

    Returns
    -------
    iterator of Batch
        In the order of the source. The tables of the batches of a file do not have the columns that
        the file lacks.

    Raises
    ------
    ValueError
        While batches are read: if a file lacks the target or all features, or a single file lacks a
        column to copy.
    """
    names, _ = list_input_columns(model)
    targets = [] if target is None else [target]
    others = [*extra_columns, *inferred_columns]
    columns = None if names is None else [*names, *targets, *others]
    features = [] if names is None else names
    table_name = get_display_name(TableSource(source))
    place = TableSource(source).source
    is_single_file = isinstance(place, str | os.PathLike) and not os.path.isdir(place)

    def choose_types(names: Sequence[str]) -> dict[str, InputColumn]:
        """Return for the columns of a file, by name, the types and categories that they had in the fit.

        `read_batches` calls it. names: names of all columns. Columns that the model did not read in
        the fit are left out. Raise a ValueError if the target is not among `names`, or no feature
        is, or, if the source is a single file, a column to copy is not.
        """
        if target is not None:
            expect_target(names, target, table_name)
        if are_copied and is_single_file:  # Of several, a batch names the file that lacks a column.
            expect_known_columns("keep", extra_columns, names, table_name)
        if features and not {*features} & {*names}:  # Without columns no rows can be read.
            expect_fitted_columns(names, features, table_name)
        return get_fitted_columns(model, target, names, others)

    source = use_model_format(source, model)
    text_columns = [name for name in extra_columns if name != target]
    batches = read_batches(source, choose_types, n_rows, columns, text_columns, are_copied)
    return warn_of_new_values(model, batches, [*targets, *others])


def _predict_batch(
    model: Any, batch: Batch, keep: list[str], predict: Callable[[Any], dict[str, Any]]
) -> pa.Table:
    """Return the output table of one batch of rows: the columns to keep, then the predictions.

    model: fitted estimator. batch: the rows as a table, and the name of their file for messages.
    keep: names of columns of the batch to copy to the output. predict: function that takes rows,
    (n, p), and returns the columns of their predictions by name. Raise a ValueError if the batch
    lacks a column of `keep`, or its name is also that of a prediction column.
    """
    pa = import_extra("pyarrow", "files")
    expect_known_columns("keep", keep, batch.table.column_names, batch.where)
    table = batch.table
    if list_input_columns(model)[0] is None:
        table = table.drop_columns(keep)
    predictions = predict(select_feature_table(model, table, batch.where))
    clashing = [name for name in keep if name in predictions]
    if clashing:
        raise ValueError(
            f"keep must not name a column of the predictions, got {clashing[0]!r}: rename this "
            "column of the source"
        )
    kept = {name: batch.table[name] for name in keep}
    return pa.table({**kept, **{name: pa.array(column) for name, column in predictions.items()}})


def _cast_to_schema(table: pa.Table, schema: pa.Schema, table_name: str) -> pa.Table:
    """Convert the output table of a batch to the column types of the first batch's output table.

    table: the output table. schema: schema of the first batch's output table. table_name: file of
    the rows, for the message. Return the converted table. Raise a ValueError if a column that is
    copied from the source cannot be converted.
    """
    if table.schema == schema:
        return table
    try:
        return table.cast(schema)
    except import_extra("pyarrow", "files").ArrowInvalid as error:
        raise ValueError(
            f"keep must name columns of one type, but {table_name} has another type than earlier "
            f"files, {error}: convert the column in the files, or leave it out"
        ) from None
