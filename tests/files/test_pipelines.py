"""Files of pipelines that end in an estimator of certree."""

import hashlib
import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from typer.testing import CliRunner

import certree
from certree.cli.app import app
from certree.show import model_card, report
from certree.tables.fitted_types import list_input_columns


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
    calibrated = CalibratedClassifierCV(MODELS[0], cv=2).fit(X, y)
    linear = make_pipeline(make_columns(), SimpleImputer(), LogisticRegression()).fit(X, y)
    for model in (calibrated, linear):
        with pytest.raises(TypeError, match=r"model must be .*batch\.to_pandas\(\).*to_batches"):
            certree.predict_files(model, tmp_path / "rows.parquet", tmp_path / "predicted.csv")
    words = make_pipeline(CountVectorizer(), MODELS[0]).fit(X["town"], y)
    with pytest.raises(
        TypeError, match="CountVectorizer does not: put it into a ColumnTransformer"
    ):
        certree.predict_files(words, tmp_path / "rows.parquet", tmp_path / "predicted.csv")
    assert not (tmp_path / "predicted.csv").exists()


def draw_hard(n=300):
    """Rows whose CSV file does not show the types: codes as text, texts that are missing, dates."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "code": rng.choice(["01", "02", "10"], n),
            "plan": rng.integers(1, 4, n),
            "town": pd.Series(rng.choice(["Lima", "Oslo", None], n), dtype=object).fillna(np.nan),
            "wage": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "day": pd.date_range("2024-01-01", periods=n, freq="7h"),
            "note": rng.choice(["good lamp", "late, broken", "no lamp"], n),
            "unused": rng.choice(["7", "x"], n),
        }
    )
    signal = (X["code"] == "02") + (X["plan"] == 2) + X["wage"].fillna(0) + X["note"].str.len() / 9
    return X, np.where(signal + rng.normal(size=n) / 4 > 2, "yes", "no")


def make_hard_columns(output="default"):
    filled = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    columns = ColumnTransformer(
        [
            ("code", OrdinalEncoder(), ["code"]),
            ("plan", OneHotEncoder(sparse_output=False), ["plan"]),
            ("wage", make_pipeline(SimpleImputer(), StandardScaler()), ["wage"]),
            ("unused", "drop", ["unused"]),
        ],
        remainder="passthrough",
    )
    if output == "pandas":
        return columns.set_output(transform="pandas")
    sparse = [("town", filled, ["town"]), ("note", TfidfVectorizer(), "note")]
    return columns.set_params(
        transformers=[*columns.transformers, *sparse, ("day", "drop", ["day"])],
        remainder="drop",
        sparse_threshold=1.0,
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_predictions_of_files_equal_those_of_data_frames(output, suffix, tmp_path):
    X, y = draw_hard()
    pipeline = make_pipeline(make_hard_columns(output), MODELS[0]).fit(X[:200], y[:200])
    new = X[200:]
    path = tmp_path / f"new.{suffix}"
    rows = new.drop(columns="unused").assign(key=np.arange(len(new)))
    if suffix == "csv":
        rows.to_csv(path, index=False)
    else:
        rows.to_parquet(path)
    n = certree.predict_files(
        pipeline, path, tmp_path / "out.parquet", keep=["key"], batch_size=33, threshold=0.4
    )
    out = pd.read_parquet(tmp_path / "out.parquet")
    probabilities = pipeline.predict_proba(new)
    np.testing.assert_array_equal(out[["probability_no", "probability_yes"]], probabilities)
    np.testing.assert_array_equal(out["prediction"] == "yes", probabilities[:, 1] >= 0.4)
    assert n == len(new) == int(out["key"].iloc[-1]) + 1
    labelled = rows.drop(columns="key").assign(label=y[200:])
    labelled.to_csv(tmp_path / "labelled.csv", index=False)
    known = {"duplicates": "genuine"}  # rows without a wage have equal features after the steps
    certificate = certree.certify(pipeline, tmp_path / "labelled.csv", "label", **known)
    assert certificate == certree.certify(pipeline, new, y[200:], **known)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_texts_of_files_are_those_of_the_fit(missing, tmp_path):
    X, y = draw()
    X["town"] = X["town"].astype(object).where(X["size"] != "S", missing)
    imputer = SimpleImputer(strategy="constant", fill_value="none", missing_values=missing)
    for step in (OrdinalEncoder(), make_pipeline(imputer, OrdinalEncoder())):
        pipeline = make_pipeline(step, MODELS[0]).fit(X[["town", "size"]], y)
        X.to_csv(tmp_path / "rows.csv", index=False)
        certree.predict_files(pipeline, tmp_path / "rows.csv", tmp_path / "out.csv")
        out = pd.read_csv(tmp_path / "out.csv")
        expected = pipeline.predict_proba(X[["town", "size"]])[:, 1]
        np.testing.assert_allclose(out["probability_yes"], expected, rtol=1e-15)


def test_pipelines_without_names_read_columns_by_position(tmp_path):
    X, _ = draw()
    numbers, target = X[["income", "debt"]].to_numpy(), X["income"].to_numpy() ** 2
    model = certree.BoostedTreesRegressor(max_iter=5, standard_errors=True, random_state=0)
    pipeline = make_pipeline(SimpleImputer(), "passthrough", model).fit(numbers, target)
    X[["income", "debt"]].to_parquet(tmp_path / "rows.parquet")
    certree.predict_files(pipeline, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    out = pd.read_parquet(tmp_path / "out.parquet")
    np.testing.assert_array_equal(out["prediction"], pipeline.predict(numbers))
    np.testing.assert_array_equal(out["std"], model.predict_std(pipeline[:-1].transform(numbers)))
    X.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(
        ValueError, match=r"must have the 2 features .*, as the model has no names .* got 4"
    ):
        certree.predict_files(pipeline, tmp_path / "rows.parquet", tmp_path / "out.parquet")


def test_files_that_do_not_suit_a_pipeline_are_refused_or_warned_of(tmp_path):
    X, y = draw()
    pipeline = make_pipeline(make_columns(), MODELS[0]).fit(X, y)
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    X.drop(columns="town").to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"rows\.csv must have all features .* lacks 'town'"):
        certree.predict_files(pipeline, path, out)
    X.assign(town=1.5).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(
        ValueError, match=r"feature 'town' must hold strings as in the fit, got 1\.5"
    ):
        certree.predict_files(pipeline, tmp_path / "rows.parquet", out)
    X.assign(town=X["town"].replace("süd", "west")).to_csv(path, index=False)
    with pytest.warns(UserWarning, match="'town' of .* has 1 category .* not seen.*'west'"):
        certree.predict_files(pipeline, path, out)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_reports_of_a_pipeline_are_those_of_its_last_step(model, tmp_path):
    X, y = draw()
    p = make_pipeline(make_columns(), model).fit(X[:300], y[:300])
    card = model_card(p, X[300:], y[300:], groups=X["town"][300:])
    last = model_card(p[-1], p[:-1].transform(X[300:]), y[300:], groups=X["town"][300:])
    names = [f"{name} (number)" for name in p[:-1].get_feature_names_out()]
    numbered = [rf"x\[{j}\] (number)" for j in range(len(names))]
    for name, number in zip(names, numbered, strict=True):
        last = last.replace(number, name)
    certree.save(p, tmp_path / "pipeline")
    certree.save(p[-1], tmp_path / "model")
    digests = [
        hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("pipeline", "model")
    ]
    steps = "It is the last step of a pipeline. The steps before it: columntransformer "
    lines = card.replace(f"\n\n{steps}(ColumnTransformer).", "")
    assert len(lines) < len(card)
    assert lines == last.replace(digests[1], digests[0])
    report(p, X[300:], y[300:], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert f"{type(model).__name__} on 100 rows" in page
    assert "town__town_süd" in page
    with pytest.raises(TypeError, match="or a Pipeline that ends in one, got Pipeline"):
        model_card(make_pipeline(make_columns(), LogisticRegression()), X, y)
    with pytest.raises(NotFittedError):
        model_card(make_pipeline(make_columns(), model), X, y)


@pytest.mark.slow
def test_the_file_of_a_pipeline_depends_on_its_content_only(tmp_path):
    X, y = draw()
    steps = [make_columns(), OneHotEncoder(handle_unknown="ignore")]
    p = make_pipeline(*steps, MODELS[0]).fit(X, y)
    certree.save(p, tmp_path / "first")
    content = (tmp_path / "first").read_bytes()
    code = "import sys, certree; certree.save(certree.load(sys.argv[1]), sys.argv[2])"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "first"), str(tmp_path / "second")], check=True
    )
    assert (tmp_path / "second").read_bytes() == content
    certree.save(make_pipeline(*steps, MODELS[0]).fit(X, y), tmp_path / "third")
    assert (tmp_path / "third").read_bytes() == content
    certree.save(make_pipeline(*steps, MODELS[0]).fit(X[1:], y[1:]), tmp_path / "fourth")
    assert (tmp_path / "fourth").read_bytes() != content


def test_a_pipeline_of_one_step_or_with_passthrough_is_saved(tmp_path):
    X, y = draw()
    numbers = X[["income"]]
    nested = Pipeline([("nothing", "passthrough")])
    for steps in ([], [("nothing", "passthrough")], [("nested", nested)]):
        model = certree.PACBayesTreeClassifier(random_state=0)
        pipeline = Pipeline([*steps, ("tree", model)]).fit(numbers, y)
        certree.save(pipeline, tmp_path / "pipeline")
        loaded = certree.load(tmp_path / "pipeline")
        np.testing.assert_array_equal(loaded.predict(numbers), pipeline.predict(numbers))
        assert list_input_columns(loaded)[0] == ["income"]


def test_a_loaded_pipeline_has_the_options_of_the_saved_one(tmp_path):
    X, y = draw()
    pipeline = Pipeline([("scale", StandardScaler()), ("trees", MODELS[0])], verbose=True)
    certree.save(pipeline.fit(X[["income"]], y), tmp_path / "pipeline")
    loaded = certree.load(tmp_path / "pipeline")
    assert loaded.verbose
    assert loaded.memory is None


def test_options_of_save_apply_to_the_last_step(tmp_path):
    X, y = draw()
    pipeline = make_pipeline(make_columns(), certree.CertifiedTreeClassifier(random_state=0))
    certree.save(pipeline.fit(X, y), tmp_path / "file", calibration_samples=False)
    assert certree.load(tmp_path / "file")[-1].guarantees_ is None


def test_steps_with_functions_and_other_models_are_refused_by_name(tmp_path):
    X, y = draw()
    numbers = X[["income"]]
    own = make_pipeline(
        StandardScaler(),
        FunctionTransformer(lambda rows: rows),
        certree.BoostedTreesClassifier(max_iter=2),
    )
    message = r"steps of a pipeline before the last .*lambda.* in the steps 'functiontransformer'$"
    with pytest.raises(TypeError, match=message):
        certree.save(own.fit(numbers, y), tmp_path / "file")
    assert not (tmp_path / "file").exists()
    search = GridSearchCV(MODELS[0], {"max_iter": [2]}, cv=2).fit(X[["income"]], y)
    with pytest.raises(TypeError, match=r"(?s)got GridSearchCV\(.*: pass its best_estimator_$"):
        certree.save(search, tmp_path / "pipeline")
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
    with pytest.raises(ValueError, match="types that skops does not trust"):
        certree.load(tmp_path / "file")


def call(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.output


@pytest.mark.slow
def test_commands_on_a_pipeline_equal_what_python_computes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    X, y = draw()
    model = MODELS[0]
    pipeline = make_pipeline(make_columns(), model).fit(X[:300], y[:300])
    certree.save(pipeline, "model")
    new, truth = X[300:], y[300:]
    (tmp_path / "folder").mkdir()
    for path in ("new.csv", "folder/new.csv"):
        new.assign(late=truth).to_csv(path, index=False)
    probabilities = pipeline.predict_proba(new)

    def run(*arguments):
        code, printed, output = call(*arguments)
        assert code == 0, output
        return printed

    printed = json.loads(run("predict", "model", "new.csv", "--json"))
    assert printed["model"] == "BoostedTreesClassifier"
    found = [[row["probability_no"], row["probability_yes"]] for row in printed["predictions"]]
    np.testing.assert_array_equal(found, probabilities)
    certificate = str(certree.certify(pipeline, new, truth))
    for source in ("new.csv", "folder"):
        scores = json.loads(run("evaluate", "model", source, "--target", "late", "--json"))
        wrong = float(np.mean(pipeline.predict(new) != truth))
        assert scores["scores"]["error"]["value"] == pytest.approx(wrong)
        assert (scores["rows"], scores["known_rows"]) == (100, 0)
        assert run("certify", "model", source, "--target", "late").strip() == certificate
        groups = run("certify", "model", source, "--target", "late", "--groups", "size")
        assert "at most" in groups
    described = run("info", "model")
    assert "4 input columns:\n  income: number\n  debt: number\n  town: text\n" in described
    assert "town__town_süd: number" in described
    explained = run("explain", "model", "new.csv", "--row", 1)
    names = pipeline[:-1].get_feature_names_out()
    contributions = model.explain(pipeline[:-1].transform(new[1:2])).contributions[0, 0]
    for name, value in zip(names, contributions, strict=True):
        line = next(line for line in explained.splitlines() if line.startswith(f"{name} ="))
        assert float(line.split()[-1]) == pytest.approx(value, abs=6e-4)
    run("explain", "model", "new.csv", "--shapley", "-o", "shapley.csv")
    assert "numbers__income" in pd.read_csv("shapley.csv").columns
    run("report", "model", "new.csv", "--target", "late")
    assert "town__town_süd" in (tmp_path / "report.html").read_text(encoding="utf-8")
    run("plot", "importance", "model")
    code, _, output = call("export", "model", "-o", "model.sql")
    assert code == 1
    assert "MODEL must be an estimator of certree to be exported, but model holds a p" in output


def test_pipelines_with_sparse_rows_are_evaluated_and_explained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = draw_hard()
    pipeline = make_pipeline(make_hard_columns(), MODELS[0]).fit(X[:200], y[:200])
    assert issparse(pipeline[:-1].transform(X))
    certree.save(pipeline, "model")
    X[200:].assign(late=y[200:]).to_csv("new.csv", index=False)
    code, printed, output = call("evaluate", "model", "new.csv", "--target", "late", "--json")
    assert code == 0, output
    wrong = np.mean(pipeline.predict(X[200:]) != y[200:])
    assert json.loads(printed)["scores"]["error"]["value"] == pytest.approx(wrong)
    code, printed, output = call("explain", "model", "new.csv")
    assert code == 0, output
    assert "wage__wage = " in printed
