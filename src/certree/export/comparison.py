"""Row-by-row comparison of the predictions of exports with those of their model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.export.engines import RunSQL, run_in_duckdb, run_in_onnxruntime, run_in_sqlite
from certree.export.onnx_inputs import MISSING_DATE
from certree.export.plain_dict import predict_from_dict
from certree.interface.arrays import Float64, list_classes
from certree.interface.fitted_state import get_snapshot
from certree.interface.formatting import align_columns
from certree.rows.categories import Categories
from certree.rows.dates import convert_dates, count_microseconds

# Classes whose probabilities differ by less are tied, as an export may add trees in another order.
_TIE = 1e-12


class Predictions(NamedTuple):
    """The predictions that a model, or an export of it, makes for n rows.

    Attributes
    ----------
    values : ndarray of float64, shape (n, K) or (n, n_outputs)
        Probabilities of the K classes of a classifier, or predicted numbers of a regressor.
    classes : sequence of length n, or None
        Predicted classes, as numbers, booleans or strings; None if the target is numeric.
    """

    values: Float64
    classes: Sequence[Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class ExportCheck:
    """The differences between the predictions of one export and those of its model.

    `check_export` makes one for each export.

    Attributes
    ----------
    rows : ndarray of int, shape (n_different,)
        Indices of the rows whose predictions differ by more than the tolerance, or in the class,
        ascending.
    largest_difference : float
        Largest absolute difference of a probability or a predicted number over all rows; infinite
        if the export predicts NaN, and NaN if the export was not compared.
    skipped : str or None
        Why the export was not compared: a package is not installed, or the format does not support
        the model. None: it was compared.
    """

    rows: NDArray[np.intp]
    largest_difference: float
    skipped: str | None = None

    @property
    def n_different(self) -> int:
        """Number of rows whose predictions differ; 0 if the export was not compared."""
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class ExportReport:
    """Comparison of several exports with their model; ``print`` shows a table.

    `check_export` returns it. ``report["onnx"]`` is the result of the export "onnx".

    Attributes
    ----------
    n_rows : int
        Number of rows that were predicted.
    exports : dict of str to ExportCheck
        The result of each export by its name: "dict" (JSON), "onnx" and "onnx_float64" (ONNX graphs
        of float32 and float64), "sklearn" (an estimator), "sqlite" or "duckdb" (a SQL statement).
    """

    n_rows: int
    exports: dict[str, ExportCheck]

    def __getitem__(self, export: str) -> ExportCheck:
        return self.exports[export]

    @property
    def all_agree(self) -> bool:
        """Whether the predictions of all compared exports equal those of the model for every row.

        Exports that were skipped do not count: see `skipped`.
        """
        return not any(check.n_different for check in self.exports.values())

    @property
    def skipped(self) -> dict[str, str]:
        """The exports that were not compared: for the name of each, the reason as text."""
        checks = self.exports.items()
        return {name: check.skipped for name, check in checks if check.skipped is not None}

    def __str__(self) -> str:
        lines = [("export", f"different of {self.n_rows}", "largest difference", "first rows")]
        for name, check in self.exports.items():
            if check.skipped is None:
                first = ", ".join(map(str, check.rows[:5])) or "-"
                more = ", ..." if check.n_different > 5 else ""
                size = f"{check.largest_difference:.3g}"
                lines.append((name, str(check.n_different), size, first + more))
        reasons = (f"{name} skipped: {reason}" for name, reason in self.skipped.items())
        return "\n".join([*align_columns(lines), *reasons])

    __repr__ = __str__


def check_export(
    model: Any,
    X: ArrayLike,
    *,
    exports: Sequence[str] | None = None,
    tolerance: float | None = None,
) -> ExportReport:
    """Find the rows for which exports of a fitted model predict something else than the model.

    Each export is written, run by its own engine, and compared with `predict` and `predict_proba`.
    scikit-learn runs ``to_sklearn()``; onnxruntime ``to_onnx()``; SQLite, which is part of Python,
    and DuckDB ``to_sql()``; and a reader of JSON ``to_dict()``. An export gets rows as in
    production: ONNX graphs of float32 get rows rounded to float32, SQL statements the names of
    categories.

    Parameters
    ----------
    model : fitted estimator of certree
        A model with ``to_dict``.
    X : array-like of shape (n, p)
        Rows to predict, such as those that the export will predict.
    exports : sequence of str, or None
        Some of "dict", "onnx" (float32), "onnx_float64", "sklearn", "sqlite" and "duckdb"; None:
        all.
    tolerance : float or None
        Difference up to which values count as equal, as a fraction of the largest absolute
        prediction. None: 1e-6 for "onnx" and "sklearn", which round to float32, and 1e-12 for the
        others.

    Returns
    -------
    ExportReport
        A row differs if a probability or a number differs, or if the export predicts another class.
        Classes whose probabilities are equal up to 1e-12 count as the same.

    Raises
    ------
    TypeError
        If the model has no exports.
    ValueError
        If `exports` or `tolerance` has another value, or the model cannot be exported.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certree import PACBayesTreeClassifier
    >>> from certree.export import check_export
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    >>> check_export(model, X, exports=["dict", "sqlite"]).all_agree
    True
    """
    names = _check_names(exports)
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be a number of at least 0, or None, got {tolerance!r}")
    if not hasattr(model, "to_dict"):
        raise TypeError(
            "model must be an estimator of certree with to_dict(), such as a tree, a forest or "
            f"boosted trees, got {type(model).__name__}: of a Pipeline pass the last step, with the "
            "rows that the steps before it return"
        )
    subject = _ModelWithRows(get_snapshot(model), X)
    document = subject.document  # First, as it raises the errors that all exports have in common.
    truth = predict_with_model(subject.model, X)
    classes = [] if document["classes"] is None else document["classes"]
    checks = {}
    for name in names:
        run, default = _RUNNERS[name]
        try:
            predictions = run(subject)
        except (ImportError, _UnsupportedExportError) as error:
            checks[name] = ExportCheck(np.zeros(0, dtype=np.intp), np.nan, str(error))
        else:
            checks[name] = compare_predictions(
                truth, predictions, classes, default if tolerance is None else tolerance
            )
    return ExportReport(len(truth.values), checks)


def predict_with_model(model: Any, X: ArrayLike) -> Predictions:
    """Return a fitted model's predictions for rows (n, p).

    model: a classifier or regressor of certree or scikit-learn, which has `predict`, and
    `predict_proba` if it has classes. The values are the probabilities (n, K), or the predicted
    numbers (n, n_outputs). X: the rows.
    """
    predicted = np.asarray(model.predict(X))
    if not hasattr(model, "classes_"):
        return Predictions(predicted.reshape(len(predicted), -1), None)
    probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
    return Predictions(probabilities, list_classes(predicted))


def compare_predictions(
    truth: Predictions, exported: Predictions, labels: Sequence[Any], tolerance: float
) -> ExportCheck:
    """Compare the predictions of an export with those of its model.

    Parameters
    ----------
    truth, exported : Predictions
        Predictions of the model, and of the export, for the same n rows.
    labels : sequence of length K
        The classes in the order of the probabilities; empty if the target is numeric.
    tolerance : float
        Difference up to which values count as equal, as a fraction of the largest absolute value of
        `truth`.

    Returns
    -------
    ExportCheck
        The rows with a larger difference, or with another class, unless both classes have the same
        probability up to 1e-12.

    Raises
    ------
    ValueError
        If the two have values of different shapes.
    """
    values, others = truth.values, np.asarray(exported.values, dtype=np.float64)
    if values.shape != others.shape:
        raise ValueError(
            f"exported must have values of shape {values.shape}, got {others.shape}: "
            "pass predictions for the same rows and outputs"
        )
    scale = max(float(np.abs(values).max()), np.finfo(np.float64).smallest_subnormal)
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.abs(others / scale - values / scale)
    differences[others == values] = 0.0  # Both may be infinite.
    differences = np.where(np.isnan(differences), np.inf, differences).max(axis=1)
    is_different = differences > tolerance
    if truth.classes is not None:
        is_different |= _find_class_differences(truth, exported, labels)
    largest = float(differences.max())
    return ExportCheck(np.flatnonzero(is_different), largest * scale if largest else 0.0)


def _find_class_differences(
    truth: Predictions, exported: Predictions, labels: Sequence[Any]
) -> NDArray[np.bool_]:
    """Return for each row whether the export predicts another class than the model.

    A class does not differ if its probability in the model is the largest up to 1e-12. A class of
    the export is the one of `labels` that equals it, or whose text equals its text ("1" is 1).

    Parameters
    ----------
    truth, exported : Predictions
        Predictions of the model, and of the export, for the same n rows.
    labels : sequence of length K
        The classes in the order of the probabilities.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for the rows whose class differs.
    """
    codes = {str(label): k for k, label in enumerate(labels)}
    codes |= {label: k for k, label in enumerate(labels)}
    expected, predicted = (
        np.array([codes.get(label, codes.get(str(label), -1)) for label in classes or ()])
        for classes in (truth.classes, exported.classes)
    )
    probability = truth.values[np.arange(len(predicted)), predicted]
    is_tied = (predicted >= 0) & (probability > truth.values.max(axis=1) - _TIE)
    return (predicted != expected) & ~is_tied


# -- exports and their engines ---------------------------------------------------------------------


class _UnsupportedExportError(ValueError):
    """Error raised if the format of an export does not support the model.

    `check_export` reports its message as the reason why the export was skipped.
    """


class _ModelWithRows:
    """A fitted model and the rows to predict, in the forms that exports need.

    model: a fitted estimator of certree, which the caller must not fit again. X: rows, (n, p), as
    the caller passed them. Both are attributes, too. The forms are the attributes `document` (the
    model as a dictionary), `codes` (the rows as numbers) and `columns` (the rows as lists); each is
    computed when it is first read, and kept.
    """

    def __init__(self, model: Any, X: ArrayLike) -> None:
        self.model, self.X = model, X

    def write_export(self, write: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a method that writes an export, such as the model's `to_sql`, and return the export.

        write: the method; `arguments` and `named` are passed to it. A ValueError of the method
        becomes an _UnsupportedExportError with the same message, which means that the format does
        not support the model.
        """
        try:
            return write(*arguments, **named)
        except ValueError as error:
            raise _UnsupportedExportError(str(error)) from error

    @cached_property
    def document(self) -> dict[str, Any]:
        """The result of the model's `to_dict`, after writing it to JSON and reading it again."""
        document: dict[str, Any] = json.loads(json.dumps(self.model.to_dict(), allow_nan=False))
        return document

    @cached_property
    def codes(self) -> Float64:
        """The rows with codes in place of categories, (n, p) float64.

        Missing values are NaN. Categories that the model does not know are -1, or NaN if the model
        treats them as missing. Calendar parts of dates are the last columns.
        """
        rows: Float64 = np.asarray(self.model._encode_new_rows(self.X), dtype=np.float64)
        return rows

    @cached_property
    def columns(self) -> list[list[Any]]:
        """The values of each of the p features as lists of length n, with None for missing values.

        A value is a number or the name of a category, which the model need not know. Dates are
        numbers of days. Calendar parts of dates are the last features.
        """
        numbers, named = self.codes, {}
        if (categories := self.model.categories_) is not None:
            rows = convert_dates(self.X, self.model.dates_ or {})
            # The categories of these rows may be unknown to the model.
            own_categories = Categories.learn(rows, categories.mask)
            # Calendar parts of dates are the last columns.
            n_features = len(categories.names)
            numbers = np.column_stack([own_categories.encode(rows), self.codes[:, n_features:]])
            named = dict(enumerate(own_categories.names))
        columns = []
        for j, column in enumerate(numbers.T):
            names = named.get(j)
            values = (
                None if x != x else x if names is None else names[int(x)] for x in column.tolist()
            )
            columns.append([*values])
        return columns

    @property
    def named_inputs(self) -> dict[str, NDArray[Any]]:
        """Values for each named input of the model's ONNX graph of float64, by the input's name.

        Each is an array (n, 1) of floats, int64 (dates) or objects (texts). Such a graph has one
        input for each feature.
        """
        dates, inputs = self.model.dates_ or {}, {}
        for j, (feature, values) in enumerate(
            zip(self.document["features"], self.columns, strict=True)
        ):
            if "part" in feature:
                continue
            column: Any = np.array(values, dtype=object)
            if j in dates:
                counts = [MISSING_DATE if x is None else count_microseconds(x) for x in values]
                column = np.array(counts, dtype=np.int64)
            elif not feature["categories"] or not isinstance(feature["categories"][0], str):
                column = column.astype(np.float64)
            else:
                column = np.array(["" if x is None else x for x in values], dtype=object)
            inputs[feature["name"]] = column[:, None]
        return inputs


def _run_dict(subject: _ModelWithRows) -> Predictions:
    """Return the predictions made from the model's `to_dict`, after a round trip through JSON.

    `predict_from_dict` computes them from the dictionary alone. The result has the probabilities
    (n, K) and the most probable classes, or predicted numbers (n, n_outputs) without classes.
    subject: the model and its rows.
    """
    values = predict_from_dict(subject.document, subject.columns)
    if (labels := subject.document["classes"]) is None:
        return Predictions(values, None)
    return Predictions(values, [labels[k] for k in values.argmax(axis=1)])


def _run_onnx(dtype: str, subject: _ModelWithRows) -> Predictions:
    """Return the predictions of the model's ONNX graph, run by onnxruntime.

    dtype: "float32" or "float64", the type of the graph, to which the rows are converted. subject:
    the model and its rows. Raise _UnsupportedExportError if `to_onnx` does not support the model,
    and ImportError if onnx or onnxruntime is missing.
    """
    inputs = "named" if subject.model.dates_ else "matrix"
    graph = subject.write_export(subject.model.to_onnx, dtype, inputs=inputs)
    rows = subject.named_inputs if inputs == "named" else None
    with np.errstate(over="ignore"):
        outputs = run_in_onnxruntime(graph, subject.codes.astype(dtype) if rows is None else rows)
    classes = None if len(outputs) == 1 else np.ravel(outputs[0]).tolist()
    return Predictions(outputs[-1], classes)


def _run_sklearn(subject: _ModelWithRows) -> Predictions:
    """Return the predictions of the estimator of scikit-learn that `to_sklearn` makes.

    The estimator gets the rows with category codes in place of categories. subject: the model and
    its rows. Raise _UnsupportedExportError if `to_sklearn` does not support the model.
    """
    model = subject.write_export(subject.model.to_sklearn)
    vars(model).pop("feature_names_in_", None)  # scikit-learn warns of rows without names.
    return predict_with_model(model, subject.codes)


def _run_sql(run: RunSQL, subject: _ModelWithRows) -> Predictions:
    """Return the predictions of the SQL statement of the model, run in a database.

    The statement reads a table with a column for each feature that trees split on, and one with row
    numbers, by which the results are sorted. run: the function that runs a statement in a database,
    such as `run_in_sqlite`. It takes the name of a table, the values of its columns by name, and
    the statement, and returns the selected rows as tuples. subject: the model and its rows. Raise
    _UnsupportedExportError if `to_sql` does not support the model, and ImportError if the database
    is missing.
    """
    # A table of the used columns alone: databases may refuse the names of others.
    features, trees = subject.document["features"], subject.document["trees"]
    split = {node["feature"] for tree in trees for node in tree if "feature" in node}
    used = sorted({features[j]["part"]["of"] if "part" in features[j] else j for j in split})
    columns = {features[j]["name"]: subject.columns[j] for j in used}
    for j, dates in (subject.model.dates_ or {}).items():
        if j in used and dates.kind != "span":
            texts = (None if x is None else dates.format_utc(x) for x in subject.columns[j])
            columns[features[j]["name"]] = [*texts]
    row_column = "certree_row"
    while row_column in map(str.lower, columns):
        row_column += "_"
    statement = subject.write_export(subject.model.to_sql, "rows", keep=[row_column])
    columns[row_column] = [*range(len(subject.codes))]
    selected = sorted(run("rows", columns, statement), key=lambda row: row[0])
    if (labels := subject.document["classes"]) is None:
        n_outputs = len(subject.document["start"])
        values = np.array([row[1 : 1 + n_outputs] for row in selected], dtype=np.float64)
        return Predictions(values, None)
    values = np.array([row[2 : 2 + len(labels)] for row in selected], dtype=np.float64)
    return Predictions(values, [row[1] for row in selected])


# Function that predicts by each export, and its default tolerance.
_RUNNERS: Mapping[str, tuple[Callable[[_ModelWithRows], Predictions], float]] = {
    "dict": (_run_dict, 1e-12),
    "onnx": (partial(_run_onnx, "float32"), 1e-6),
    "onnx_float64": (partial(_run_onnx, "float64"), 1e-12),
    "sklearn": (_run_sklearn, 1e-6),
    "sqlite": (partial(_run_sql, run_in_sqlite), 1e-12),
    "duckdb": (partial(_run_sql, run_in_duckdb), 1e-12),
}


def _check_names(exports: Sequence[str] | None) -> list[str]:
    """Return the names of the exports to run as a list; all that there are if `exports` is None.

    Raise ValueError if `exports` is a string or empty, or holds another name than "dict", "onnx",
    "onnx_float64", "sklearn", "sqlite" and "duckdb".
    """
    if exports is None:
        return [*_RUNNERS]
    names = [exports] if isinstance(exports, str) else [*exports]
    if isinstance(exports, str) or not names or not set(names) <= set(_RUNNERS):
        raise ValueError(
            f"exports must be a list of some of {[*_RUNNERS]}, or None, got {exports!r}"
        )
    return names
