"""Exports are compared with their model row by row, and every row that differs is named."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certree import (
    BoostedTreesRegressor,
    DecoratedTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    TreeForestClassifier,
)
from certree.export import check_export
from certree.export.comparison import Predictions, compare_predictions

ALL = ["dict", "onnx", "onnx_float64", "sklearn", "sqlite", "duckdb"]
# Full of float64 numbers that are equal in float32, so that a threshold lies between two of them.
NEAR = 1e9 + np.arange(40.0)


def fit_to_near_numbers():
    """Return a classifier of times in seconds since 1970; the later half is the second class."""
    y = (np.arange(40) >= 20).astype(int)
    return PrunedTreeClassifier(random_state=0).fit(NEAR[:, None], y)


def make_towns():
    """Return a table with a categorical and a numeric column, missing values in both, and classes."""
    rng = np.random.default_rng(0)
    town = rng.choice(["Athens", "Bern", "it's", None], 200)
    X = pd.DataFrame({"town": town, "size": rng.normal(size=200).astype(np.float32)})
    X.loc[::9, "size"] = np.nan
    y = np.where(X["town"] == "Bern", "yes", "no")
    return X, np.where(rng.random(200) < 0.1, "maybe", y)


def test_all_exports_agree_with_models_of_categories_and_missing_values():
    X, y = make_towns()
    for model in (PACBayesTreeClassifier(random_state=0), TreeForestClassifier(4, random_state=0)):
        report = check_export(model.fit(X, y), X)
        assert report.all_agree, report
        assert [*report.exports] == ALL
        of_power = getattr(getattr(model, "leaves_", None), "power", 1) != 1
        assert [*report.skipped] == (["sklearn"] if of_power else [])


def test_rows_whose_float32_number_is_another_are_named():
    model = fit_to_near_numbers()
    truth = model.predict(NEAR[:, None])
    sent = model.predict(NEAR.astype(np.float32).astype(np.float64)[:, None])
    differ = np.flatnonzero(truth != sent)
    assert 0 < len(differ) < 40
    with pytest.warns(UserWarning, match="feature 'x0' that float32 does not distinguish"):
        report = check_export(model, NEAR[:, None])
    for name in ("onnx", "sklearn"):
        assert set(differ) <= set(report[name].rows.tolist())
        assert report[name].largest_difference > 0.5
    assert not report.all_agree
    for name in ("dict", "onnx_float64", "sqlite", "duckdb"):
        assert report[name].n_different == 0
    text = str(report)
    assert f"onnx                       {report['onnx'].n_different}" in text
    assert ", ".join(map(str, report["onnx"].rows[:5])) + ", ..." in text


def test_a_wrong_export_is_reported(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = PrunedTreeClassifier(random_state=0).fit(X, y)
    right = type(model).to_sql
    monkeypatch.setattr(
        type(model), "to_sql", lambda *given, **how: right(*given, **how).replace("<=", "<")
    )
    X[[3, 100], model.tree_.feature[0]] = model.tree_.threshold[0]
    report = check_export(model, X, exports=["sqlite", "duckdb"])
    truth = model.predict_proba(X)
    X[[3, 100], model.tree_.feature[0]] += 1e-9
    moved = np.abs(model.predict_proba(X) - truth).max(axis=1)
    for check in report.exports.values():
        assert check.rows.tolist() == np.flatnonzero(moved).tolist() == [3, 100]
        assert check.largest_difference == pytest.approx(moved.max())


def test_values_classes_and_ties_are_compared():
    truth = Predictions(np.array([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8]]), ["a", "a", "b"])
    same = compare_predictions(truth, truth, ["a", "b"], 0.0)
    assert (same.n_different, same.largest_difference, same.skipped) == (0, 0.0, None)
    tied = compare_predictions(truth, truth._replace(classes=["a", "b", "b"]), ["a", "b"], 0.0)
    assert tied.n_different == 0
    other = compare_predictions(truth, truth._replace(classes=["b", "a", "c"]), ["a", "b"], 0.0)
    assert other.rows.tolist() == [0, 2]
    lost = truth.values.copy()
    lost[1, 0], lost[2, 0] = np.nan, 0.25
    check = compare_predictions(truth, truth._replace(values=lost), ["a", "b"], 0.1)
    assert check.rows.tolist() == [1]
    assert check.largest_difference == np.inf
    with pytest.raises(ValueError, match=r"shape \(3, 2\), got \(3, 1\)"):
        compare_predictions(truth, truth._replace(values=lost[:, :1]), ["a", "b"], 0.1)


@pytest.mark.parametrize("scale", [1e-310, 1.0, 1e308])
def test_tolerance_is_a_share_of_the_largest_prediction(scale):
    truth = Predictions(np.array([[scale], [-scale / 4]]), None)
    found = truth._replace(values=truth.values * np.array([[1.0], [1.5]]))
    check = compare_predictions(truth, found, [], 0.1)
    assert check.rows.tolist() == [1]
    assert check.largest_difference == pytest.approx(scale / 8)
    assert compare_predictions(truth, found, [], 0.13).n_different == 0
    infinite = Predictions(np.array([[np.inf], [scale]]), None)
    assert compare_predictions(infinite, infinite, [], 0.0).n_different == 0


@pytest.mark.parametrize(
    ("module", "skipped"),
    [
        ("duckdb", ["duckdb"]),
        ("onnxruntime", ["onnx", "onnx_float64"]),
        ("onnx", ["onnx", "onnx_float64"]),
        ("pyarrow", ["duckdb"]),
    ],
)
def test_engines_that_are_not_installed_are_named(module, skipped, monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = PrunedTreeClassifier(random_state=0).fit(X, y)
    for name in [*sys.modules]:
        if name.partition(".")[0] == module:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [MissingPackageFinder(module), *sys.meta_path])
    report = check_export(model, X)
    assert [*report.skipped] == skipped
    for name in skipped:
        assert report[name].skipped.startswith(f"{module} is not installed: pip install")
        assert f"{name} skipped: {module} is not installed" in str(report)
        assert np.isnan(report[name].largest_difference)


class MissingPackageFinder:
    """A finder of modules that does as if a package were not installed."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, *_):
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_forms_that_a_model_does_not_have_are_named():
    X, y = load_iris(return_X_y=True)
    model = TreeForestClassifier(3, leaves="auto", max_depth=3, random_state=0).fit(X, y)
    assert model.leaves_.power != 1
    assert "power" in check_export(model, X, exports=["sklearn"]).skipped["sklearn"]
    quantiles = BoostedTreesRegressor("quantile", quantile=[0.1, 0.9], max_iter=3, random_state=0)
    X = X.astype(np.float32)
    report = check_export(quantiles.fit(X, X[:, 0]), X)
    assert [*report.skipped] == ["sklearn", "sqlite", "duckdb"]
    assert report.all_agree


def test_columns_that_no_tree_compares_may_have_any_name():
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame({"x": X[:, 2], "": 0.0, "nul\0": 0.0, "X": 0.0, "certree_row": X[:, 3]})
    model = PrunedTreeClassifier(random_state=0).fit(table, y)
    report = check_export(model, table, exports=["sqlite", "duckdb"])
    assert not report.skipped
    assert report.all_agree


def test_a_model_of_one_leaf_has_no_columns_to_read():
    model = PACBayesTreeRegressor(max_depth=0).fit([[1.0], [2.0]], [0.0, 1.0])
    report = check_export(model, [[3.0], [4.0], [5.0]])
    assert report.n_rows == 3
    assert report.all_agree
    assert not report.skipped


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exports": ["pmml"]}, r"exports must be a list of some of \['dict', .*got \['pmml'\]"),
        ({"exports": "onnx"}, "exports must be a list"),
        ({"exports": []}, "exports must be a list"),
        ({"tolerance": -1.0}, "tolerance must be a number of at least 0, or None, got -1.0"),
        ({"tolerance": np.nan}, "tolerance must be a number"),
    ],
)
def test_other_arguments_are_refused(given, message):
    X, y = load_iris(return_X_y=True)
    model = PrunedTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=message):
        check_export(model, X, **given)


def test_what_has_no_exports_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=r"model must be an estimator of certree with to_dict"):
        check_export(NaiveBayesClassifier().fit(X, y), X)
    pipeline = make_pipeline(StandardScaler(), PrunedTreeClassifier()).fit(X, y)
    with pytest.raises(TypeError, match="got Pipeline: of a Pipeline pass the last step"):
        check_export(pipeline, X)
    assert check_export(pipeline[-1], pipeline[:-1].transform(X), exports=["dict"]).all_agree
    with pytest.raises(TypeError, match="its leaves hold models"):
        check_export(DecoratedTreeClassifier().fit(X, y), X)
    with pytest.raises(NotFittedError):
        check_export(PrunedTreeClassifier(), X)
