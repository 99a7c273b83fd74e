"""Compare what exports of a model predict with what the model predicts, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.export.engines import RunSQL, run_in_duckdb, run_in_onnxruntime, run_in_sqlite
from certree.export.plain_dict import predict_from_dict
from certree.interface.arrays import Float64
from certree.interface.fitted_state import get_snapshot
from certree.interface.formatting import align_columns
from certree.rows.categories import Categories

# Classes whose probabilities differ by less are tied: an export may add trees up in another order.
_TIE = 1e-12


class Predictions(NamedTuple):
    """What a model or an export predicts for some rows.

    Parameters
    ----------
    values : ndarray of shape (n, K) or (n, n_outputs)
        Probabilities of the classes, or numbers.
    classes : sequence of length n, or None
        Predicted classes as numbers or text; None where numbers are predicted.
    """

    values: Float64
    classes: Sequence[Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class ExportCheck:
    """How one export of a model predicts, beside the model.

    Attributes
    ----------
    rows : ndarray of int, shape (n_different,)
        Numbers of the rows that the export predicts otherwise than the model.
    largest_difference : float
        Largest absolute difference of a probability or a predicted number over all rows; infinite
        where the export gives no number, NaN where nothing was compared.
    skipped : str or None
        Why the export was not compared: a package is not installed, or the model has no such form.
        None: it was compared.
    """

    rows: NDArray[np.intp]
    largest_difference: float
    skipped: str | None = None

    @property
    def n_different(self) -> int:
        """Number of rows that the export predicts otherwise than the model."""
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class ExportReport:
    """Comparison of exports with their model; printed, it is a table.

    Attributes
    ----------
    n_rows : int
        Number of rows that were predicted.
    exports : dict of str to ExportCheck
        One for each export, by its name.
    """

    n_rows: int
    exports: dict[str, ExportCheck]

    def __getitem__(self, export: str) -> ExportCheck:
        return self.exports[export]

    @property
    def all_agree(self) -> bool:
        """Whether every export that was compared predicts every row as the model does."""
        return not any(check.n_different for check in self.exports.values())

    @property
    def skipped(self) -> dict[str, str]:
        """Exports that were not compared, and why."""
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
    """Find the rows that exports of a fitted model predict otherwise than the model.

    Each export is written, run by its own engine and compared with `predict` and `predict_proba`:
    scikit-learn runs ``to_sklearn()``, onnxruntime ``to_onnx()``, SQLite (part of Python) and DuckDB
    ``to_sql()``, and a reader of JSON ``to_dict()``. An export receives rows as it would elsewhere:
    graphs of float32 numbers that are rounded to float32, statements of SQL the names of categories.

    Parameters
    ----------
    model : fitted estimator of certree
        A model with ``to_dict``.
    X : array-like of shape (n, p)
        Rows to predict, such as those that will be predicted elsewhere.
    exports : sequence of str, or None
        Some of "dict", "onnx" (float32), "onnx_float64", "sklearn", "sqlite" and "duckdb"; None: all.
    tolerance : float or None
        Difference up to which values are equal, as a share of the largest absolute prediction; None:
        1e-6 for "onnx" and "sklearn", which round to float32, and 1e-12 for the others.

    Returns
    -------
    ExportReport
        A row differs if a probability or a number does, or if the export predicts another class than
        the model. Classes whose probabilities are equal up to 1e-12 count as the same.

    Raises
    ------
    TypeError
        If the model has no exports.
    ValueError
        If `exports` or `tolerance` is none of these, or the model refuses to be exported.
    NotFittedError
        If there is no fit.

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
    chosen = _chosen(exports)
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be a number of at least 0, or None, got {tolerance!r}")
    if not hasattr(model, "to_dict"):
        raise TypeError(
            f"model must be a fitted estimator of certree with to_dict(), got {model!r}"
        )
    subject = _Subject(get_snapshot(model), X)
    document = subject.document  # which raises what is wrong with the model itself
    truth = predictions_of(subject.model, X)
    known = [] if document["classes"] is None else document["classes"]
    checks = {}
    for name in chosen:
        run, usual = _EXPORTS[name]
        try:
            found = run(subject)
        except (ImportError, _UnsupportedExportError) as error:
            checks[name] = ExportCheck(np.zeros(0, dtype=np.intp), np.nan, str(error))
        else:
            checks[name] = compare(truth, found, known, usual if tolerance is None else tolerance)
    return ExportReport(len(truth.values), checks)


def predictions_of(model: Any, X: Any) -> Predictions:
    """Predict rows by a classifier or a regressor, certree's or scikit-learn's."""
    predicted = np.asarray(model.predict(X))
    if not hasattr(model, "classes_"):
        return Predictions(predicted.reshape(len(predicted), -1), None)
    shares = np.asarray(model.predict_proba(X), dtype=np.float64)
    # Dates of nanoseconds would be numbers otherwise.
    classes: list[Any] = [*predicted] if predicted.dtype.kind in "mM" else predicted.tolist()
    return Predictions(shares, classes)


def compare(
    truth: Predictions, found: Predictions, known: Sequence[Any], tolerance: float
) -> ExportCheck:
    """Compare what an export predicts with what its model does.

    Parameters
    ----------
    truth, found : Predictions
        Of the model, and of the export.
    known : sequence of length K
        The classes in the order of the probabilities; none where numbers are predicted.
    tolerance : float
        Difference up to which values are equal, as a share of the largest absolute one of `truth`.

    Returns
    -------
    ExportCheck
    """
    values, others = truth.values, np.asarray(found.values, dtype=np.float64)
    if values.shape != others.shape:
        raise ValueError(f"expected predictions of shape {values.shape}, got {others.shape}")
    scale = max(float(np.abs(values).max()), np.finfo(np.float64).smallest_subnormal)
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.abs(others / scale - values / scale)
    differences[others == values] = 0.0  # both may be infinite
    differences = np.where(np.isnan(differences), np.inf, differences).max(axis=1)
    is_different = differences > tolerance
    if truth.classes is not None:
        is_different |= _differ_in_class(truth, found, known)
    largest = float(differences.max())
    return ExportCheck(np.flatnonzero(is_different), largest * scale if largest else 0.0)


def _differ_in_class(
    truth: Predictions, found: Predictions, known: Sequence[Any]
) -> NDArray[np.bool_]:
    """Whether an export predicts a class other than the model's, and less probable by the model."""
    place = {str(one): k for k, one in enumerate(known)} | {one: k for k, one in enumerate(known)}
    expected, said = (
        np.array([place.get(one, place.get(str(one), -1)) for one in classes or ()])
        for classes in (truth.classes, found.classes)
    )
    probability = truth.values[np.arange(len(said)), said]
    is_tied = (said >= 0) & (probability > truth.values.max(axis=1) - _TIE)
    return (said != expected) & ~is_tied


# -- exports and their engines ---------------------------------------------------------------------


class _UnsupportedExportError(ValueError):
    """Signal that a model cannot be written as one of the exports."""


class _Subject:
    """A fitted model and rows to predict, in the forms that engines read."""

    def __init__(self, model: Any, X: Any) -> None:
        self.model, self.X = model, X

    def write_export(self, write: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call the method that writes an export; if it refuses, raise _UnsupportedExportError."""
        try:
            return write(*arguments, **named)
        except ValueError as error:
            raise _UnsupportedExportError(str(error)) from error

    @cached_property
    def document(self) -> dict[str, Any]:
        """The model as what JSON makes of its dictionary."""
        document: dict[str, Any] = json.loads(json.dumps(self.model.to_dict(), allow_nan=False))
        return document

    @cached_property
    def codes(self) -> Float64:
        """Rows as numbers, and as codes of categories, (n, p)."""
        rows: Float64 = np.asarray(self.model._new_rows(self.X), dtype=np.float64)
        return rows

    @cached_property
    def columns(self) -> list[list[Any]]:
        """Columns of numbers and of names of categories; None for a missing value."""
        numbers, named = self.codes, {}
        if (categories := self.model.categories_) is not None:
            # Those of these rows, some of which the fit may not have had.
            here = Categories.of(self.X, categories.mask)
            numbers, named = here.encode(self.X), dict(enumerate(here.names))
        columns = []
        for j, column in enumerate(numbers.T):
            names = named.get(j)
            given = (
                None if x != x else x if names is None else names[int(x)] for x in column.tolist()
            )
            columns.append([*given])
        return columns


def _run_dict(subject: _Subject) -> Predictions:
    values = predict_from_dict(subject.document, subject.columns)
    if (known := subject.document["classes"]) is None:
        return Predictions(values, None)
    return Predictions(values, [known[k] for k in values.argmax(axis=1)])


def _run_onnx(dtype: str, subject: _Subject) -> Predictions:
    graph = subject.write_export(subject.model.to_onnx, dtype)
    with np.errstate(over="ignore"):
        outputs = run_in_onnxruntime(graph, subject.codes.astype(dtype))
    classes = None if len(outputs) == 1 else np.ravel(outputs[0]).tolist()
    return Predictions(outputs[-1], classes)


def _run_sklearn(subject: _Subject) -> Predictions:
    model = subject.write_export(subject.model.to_sklearn)
    vars(model).pop("feature_names_in_", None)  # scikit-learn warns of rows without names
    return predictions_of(model, subject.codes)


def _run_sql(run: RunSQL, subject: _Subject) -> Predictions:
    # A table of the columns that the trees compare: databases may refuse the names of others.
    features, trees = subject.document["features"], subject.document["trees"]
    read = sorted({node["feature"] for tree in trees for node in tree if "feature" in node})
    columns = {features[j]["name"]: subject.columns[j] for j in read}
    number = "certree_row"
    while number in map(str.lower, columns):
        number += "_"
    statement = subject.write_export(subject.model.to_sql, "rows", keep=[number])
    columns[number] = [*range(len(subject.codes))]
    selected = sorted(run("rows", columns, statement), key=lambda row: row[0])
    if (known := subject.document["classes"]) is None:
        return Predictions(np.array([row[1:] for row in selected], dtype=np.float64), None)
    values = np.array([row[-len(known) :] for row in selected], dtype=np.float64)
    return Predictions(values, [row[1] for row in selected])


# How to predict by each export, and the tolerance where none is given.
_EXPORTS: Mapping[str, tuple[Callable[[_Subject], Predictions], float]] = {
    "dict": (_run_dict, 1e-12),
    "onnx": (partial(_run_onnx, "float32"), 1e-6),
    "onnx_float64": (partial(_run_onnx, "float64"), 1e-12),
    "sklearn": (_run_sklearn, 1e-6),
    "sqlite": (partial(_run_sql, run_in_sqlite), 1e-12),
    "duckdb": (partial(_run_sql, run_in_duckdb), 1e-12),
}


def _chosen(exports: Sequence[str] | None) -> list[str]:
    if exports is None:
        return [*_EXPORTS]
    given = [exports] if isinstance(exports, str) else [*exports]
    if isinstance(exports, str) or not given or not set(given) <= set(_EXPORTS):
        raise ValueError(
            f"exports must be a list of some of {[*_EXPORTS]}, or None, got {exports!r}"
        )
    return given
