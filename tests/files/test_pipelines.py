"""Files of pipelines that end in an estimator of certree."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from pyarrow.dataset import dataset
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import certree
from certree.show import model_card, report


def draw(n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.normal(size=n),
            "debt": rng.random(n),
            "town": rng.choice(["north", "süd"], n),
            "size": rng.choice(["S", "M", "L"], n),
        }
    )
    X.loc[rng.random(n) < 0.2, "debt"] = np.nan
    y = np.where(X["income"] + (X["town"] == "süd") + rng.normal(size=n) > 0.5, "yes", "no")
    return X, y


def make_columns():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [
            ("numbers", numbers, ["income", "debt"]),
            ("town", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]),
            ("size", OrdinalEncoder(categories=[["S", "M", "L"]]), make_column_selector("size")),
        ],
        remainder="passthrough",
    )


MODELS = [
    certree.BoostedTreesClassifier(max_iter=10, random_state=0),
    certree.CertifiedTreeClassifier(random_state=0),
    certree.TreeForestClassifier(n_estimators=5, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_loaded_pipeline_predicts_as_the_saved_one(model, tmp_path):
    X, y = draw()
    pipeline = make_pipeline(make_columns(), model).fit(X[:300], y[:300])
    certree.save(pipeline, tmp_path / "pipeline")
    loaded = certree.load(tmp_path / "pipeline")
    np.testing.assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
    assert type(loaded[-1]) is type(model)
    if hasattr(pipeline[-1], "certificate_"):
        assert loaded[-1].certificate_ == pipeline[-1].certificate_
    certree.save(loaded, tmp_path / "again")
    again = certree.load(tmp_path / "again")
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    one = loaded.predict_proba(X.iloc[[7]])
    np.testing.assert_array_equal(one, pipeline.predict_proba(X)[[7]])


def test_files_are_not_predicted_by_models_without_column_types(tmp_path):
    X, y = draw()
    X.to_parquet(tmp_path / "rows.parquet")
    pipeline = make_pipeline(make_columns(), MODELS[0]).fit(X, y)
    certree.save(pipeline, tmp_path / "pipeline")
    calibrated = CalibratedClassifierCV(MODELS[0], cv=2).fit(X, y)
    for model in (pipeline, certree.load(tmp_path / "pipeline"), calibrated):
        with pytest.raises(TypeError, match=r"model must be .*batch\.to_pandas\(\).*to_batches"):
            certree.predict_files(model, tmp_path / "rows.parquet", tmp_path / "predicted.csv")
    assert not (tmp_path / "predicted.csv").exists()
    batches = dataset(tmp_path / "rows.parquet").to_batches(batch_size=150)
    found = [pipeline.predict_proba(batch.to_pandas()) for batch in batches]
    np.testing.assert_array_equal(np.concatenate(found), pipeline.predict_proba(X))


def test_reports_of_a_pipeline_are_those_of_its_last_step(tmp_path):
    X, y = draw()
    p = make_pipeline(make_columns(), MODELS[0]).fit(X[:300], y[:300])
    remedy = r"model must be .* report\(p\[-1\], p\[:-1\]\.transform\(X\), y, path\)"
    with pytest.raises(TypeError, match=remedy):
        report(p, X[300:], y[300:], tmp_path / "report.html")
    with pytest.raises(TypeError, match=remedy):
        model_card(p, X[300:], y[300:])
    report(p[-1], p[:-1].transform(X[300:]), y[300:], tmp_path / "report.html")
    assert "100 rows" in (tmp_path / "report.html").read_text()
    assert "100 rows" in model_card(p[-1], p[:-1].transform(X[300:]), y[300:])


def test_a_pipeline_of_one_step_or_with_passthrough_is_saved(tmp_path):
    X, y = draw()
    numbers = X[["income"]]
    for steps in ([], [("nothing", "passthrough")]):
        model = certree.PACBayesTreeClassifier(random_state=0)
        pipeline = Pipeline([*steps, ("tree", model)]).fit(numbers, y)
        certree.save(pipeline, tmp_path / "pipeline")
        loaded = certree.load(tmp_path / "pipeline")
        np.testing.assert_array_equal(loaded.predict(numbers), pipeline.predict(numbers))


def test_options_of_save_apply_to_the_last_step(tmp_path):
    X, y = draw()
    pipeline = make_pipeline(make_columns(), certree.CertifiedTreeClassifier(random_state=0))
    certree.save(pipeline.fit(X, y), tmp_path / "file", calibration_samples=False)
    assert certree.load(tmp_path / "file")[-1].guarantees_ is None


def test_steps_with_functions_and_other_models_are_refused_by_name(tmp_path):
    X, y = draw()
    numbers = X[["income"]]
    own = make_pipeline(
        FunctionTransformer(lambda rows: rows), certree.BoostedTreesClassifier(max_iter=2)
    )
    with pytest.raises(TypeError, match=r"steps of a pipeline before the last must be .*lambda"):
        certree.save(own.fit(numbers, y), tmp_path / "file")
    assert not (tmp_path / "file").exists()
    with pytest.raises(TypeError, match="must be a fitted estimator of certree, got Logistic"):
        certree.save(
            make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y), tmp_path
        )
    with pytest.raises(NotFittedError):
        certree.save(make_pipeline(certree.BoostedTreesClassifier()), tmp_path / "file")


def test_damaged_files_are_refused(tmp_path):
    X, y = draw()
    pipeline = make_pipeline(make_columns(), certree.BoostedTreesClassifier(max_iter=2)).fit(X, y)
    path = tmp_path / "pipeline"
    certree.save(pipeline, path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 20)):
            changed[place] = rng.integers(256)
        path.write_bytes(bytes(changed[: rng.integers(len(content) // 2, len(content) + 1)]))
        try:
            loaded = certree.load(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert isinstance(loaded, Pipeline)


def test_types_that_skops_does_not_trust_are_refused(tmp_path):
    import skops.io

    X, y = draw()
    pipeline = make_pipeline(StandardScaler(), certree.BoostedTreesClassifier(max_iter=2))
    pipeline.fit(X[["income"]], y)
    certree.save(pipeline, tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as archive:
        model = archive.read("model.certree")
    hostile = skops.io.dumps(Pipeline([("x", FunctionTransformer(draw)), ("y", "passthrough")]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("pipeline.skops", hostile)
        archive.writestr("model.certree", model)
    (tmp_path / "file").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="types that are not trusted"):
        certree.load(tmp_path / "file")


def test_the_command_line_refuses_a_pipeline_in_one_line(tmp_path):
    X, y = draw()
    pipeline = make_pipeline(StandardScaler(), certree.BoostedTreesClassifier(max_iter=2))
    certree.save(pipeline.fit(X[["income"]], y), tmp_path / "file")
    for command in (["predict", "file", "rows.csv"], ["info", "file"]):
        done = subprocess.run(
            [sys.executable, "-m", "certree", *command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith(
            "error: MODEL must be an estimator of certree, but file holds"
        )
