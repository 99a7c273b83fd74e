"""ONNX graphs with an input for each column of a table."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest

from certree import BoostedTreesClassifier, PACBayesTreeClassifier, TreeForestRegressor
from certree.export import check_export
from certree.export.converters import register_converters
from certree.export.engines import run_in_onnxruntime

NAT = np.datetime64("NaT").astype(np.int64)


def make_rows(n=200):
    """Rows with dates, texts, numbers, numbers that are categories, and missing values."""
    rng = np.random.default_rng(0)
    opened = np.datetime64("2020-01-01", "us") + rng.integers(0, 10**13, n).astype("m8[us]")
    frame = pd.DataFrame(
        {
            "opened": pd.to_datetime(opened).tz_localize("UTC").tz_convert("Europe/Zurich"),
            "day": [one.astype("M8[D]").item() for one in opened],
            "left": pd.to_timedelta(rng.integers(0, 10**6, n), unit="s"),
            "debt": rng.normal(size=n),
            "town": rng.choice(["Bern", "Genf", "Zug"], n),
            "code": pd.Categorical(rng.choice([7.0, 3.0, 5.5], n)),
        }
    )
    y = (opened > np.datetime64("2020-02-20")) ^ (frame["town"] == "Zug") ^ (frame["code"] == 7)
    frame.loc[::7, ["opened", "town"]] = None
    frame.loc[::11, ["day", "debt", "code"]] = None
    frame.loc[::13, "left"] = None
    return frame, y.to_numpy().astype(int)


def make_inputs(frame, missing=""):
    """The inputs of a graph, as a service would make them from a frame; `missing` is a missing text."""

    def count(column):
        return column.to_numpy("M8[us]").astype(np.int64)[:, None]

    left = frame["left"].to_numpy("m8[us]").astype(np.int64)[:, None]
    return {
        "opened": count(frame["opened"].dt.tz_convert(None)),
        "day": count(pd.to_datetime(frame["day"])),
        "left": left,
        "debt": frame["debt"].to_numpy()[:, None],
        "town": frame["town"].fillna(missing).to_numpy(dtype=object)[:, None],
        "code": frame["code"].astype(float).to_numpy()[:, None],
    }


@pytest.mark.parametrize("kind", [PACBayesTreeClassifier, BoostedTreesClassifier])
def test_named_inputs_give_the_predictions_of_the_model(kind):
    X, y = make_rows()
    model = kind(random_state=0).fit(X, y)
    graph = model.to_onnx("auto", inputs="named")
    labels, probabilities = run_in_onnxruntime(graph, make_inputs(X))
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-12)
    types = {one.name: one.type.tensor_type.elem_type for one in graph.graph.input}
    assert types == {"opened": 7, "day": 7, "left": 7, "debt": 11, "town": 8, "code": 11}
    metadata = {one.key: json.loads(one.value) for one in graph.metadata_props}
    assert metadata["dates"]["opened"] == {
        "kind": "datetime",
        "zone": "Europe/Zurich",
        "unit": "microseconds since 1970-01-01T00:00:00Z",
        "missing": NAT,
    }
    assert metadata["dates"]["left"]["unit"] == "microseconds"


def test_checks_of_exports_pass_missing_texts_to_named_inputs():
    X = make_rows()[0].drop(columns="opened")
    y = (X["town"].isna() ^ (X["debt"] > 1)).to_numpy().astype(int)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    report = check_export(model, X, exports=["onnx_float64"])
    assert report["onnx_float64"].skipped is None
    assert report.all_agree


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables_without_dates_may_have_named_inputs(dtype):
    X, y = make_rows()
    X = X[["debt", "town", "code"]].assign(debt=X["debt"].round(1))
    model = TreeForestRegressor(n_estimators=5, random_state=0).fit(X, y.astype(float))
    graph = model.to_onnx(dtype, inputs="named")
    inputs = {name: values for name, values in make_inputs(make_rows()[0]).items() if name in X}
    inputs["debt"] = X["debt"].to_numpy()[:, None]
    inputs = {n: v if v.dtype == object else v.astype(dtype) for n, v in inputs.items()}
    (found,) = run_in_onnxruntime(graph, inputs)
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=1e-5)


def test_microseconds_are_distinguished():
    first = dt.datetime(2024, 5, 3, 12, 0, 0, 1)
    moments = [first + dt.timedelta(microseconds=k) for k in range(40)]
    X, y = np.array(moments, dtype="M8[us]")[:, None], np.arange(40) > 20
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    assert (model.predict(X) == y).all()
    graph = model.to_onnx("float64", inputs="named")
    assert (run_in_onnxruntime(graph, {"x0": X.astype(np.int64)})[0] == y).all()


def test_dates_are_refused_where_they_would_be_rounded():
    X, y = make_rows()
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    for dtype in ("float32", "float64", "auto"):
        with pytest.raises(ValueError, match='inputs must be "named" for a model of dates'):
            model.to_onnx(dtype)
    with pytest.raises(ValueError, match='dtype must be "float64" or "auto" for a model of dates'):
        model.to_onnx(inputs="named")
    with pytest.raises(ValueError, match=r'inputs must be "matrix" or "named", got .columns'):
        model.to_onnx(inputs="columns")


def test_names_of_outputs_are_no_names_of_inputs():
    X, y = make_rows()
    named = X[["debt"]].rename(columns={"debt": "label"})
    model = PACBayesTreeClassifier(random_state=0).fit(named, y)
    with pytest.raises(ValueError, match=r"feature names must not be .*, got 'label'"):
        model.to_onnx(inputs="named")
    named = X[["debt"]].rename(columns={"debt": "trees_0"})
    model = PACBayesTreeClassifier(random_state=0).fit(named, y)
    graph = model.to_onnx("float64", inputs="named")
    found = run_in_onnxruntime(graph, {"trees_0": named.to_numpy()})
    np.testing.assert_allclose(found[1], model.predict_proba(named), atol=1e-12)


def test_pipelines_of_skl2onnx_refuse_dates():
    skl2onnx = pytest.importorskip("skl2onnx")
    X, y = make_rows()
    dates = X[["opened"]].assign(opened=X["opened"].dt.tz_convert(None)).to_numpy()
    model = PACBayesTreeClassifier(random_state=0).fit(dates, y)
    register_converters()
    kinds = [("X", skl2onnx.common.data_types.DoubleTensorType([None, 1]))]
    with pytest.raises(ValueError, match='inputs must be "named" for a model of dates'):
        skl2onnx.to_onnx(model, initial_types=kinds)
