"""One table of dates, texts, decimals and missing values, along every way a model can take."""

import csv
import inspect
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.inspection import partial_dependence, permutation_importance
from typer.testing import CliRunner

import certree
from certree import (
    BoostedTreesClassifier,
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    TreeForestClassifier,
)
from certree.cli.app import app
from certree.export import check_export
from certree.show.page import model_card, report

TARGET, ZONE = "state", "Europe/Berlin"
pytestmark = pytest.mark.filterwarnings("ignore::certree.NearCopiesWarning")

# Estimators that fit files and Dask collections, too.
OUT_OF_CORE = {
    "tree": lambda: PACBayesTreeClassifier(grower=Cart(max_bins=255), random_state=0),
    "boosted trees": lambda: BoostedTreesClassifier(max_iter=10, random_state=0),
    "forest": lambda: TreeForestClassifier(n_estimators=5, random_state=0),
}
ESTIMATORS = {
    **OUT_OF_CORE,
    "pruned tree": lambda: PrunedTreeClassifier(random_state=0),
    "certified tree": lambda: CertifiedTreeClassifier(random_state=0),
    "certified boosted trees": lambda: CertifiedBoostedTreesClassifier(max_iter=5, random_state=0),
    "certified forest": lambda: CertifiedForestClassifier(n_estimators=5, random_state=0),
}


def draw_accounts(n, seed):
    """A frame of accounts, of Python's dates and decimals as a database driver returns them."""
    rng = np.random.default_rng(seed)
    day = np.datetime64("2022-01-01") + rng.integers(0, 700, n)
    seen = pd.to_datetime(day) + pd.to_timedelta(rng.integers(0, 86400, n), unit="s")
    income = rng.integers(100_000, 900_000, n)
    town = pd.Series(rng.choice(["Bonn", "Köln", "Aachen", None], n, p=[0.4, 0.3, 0.2, 0.1]))
    age = rng.integers(18, 90, n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    score = (day > np.datetime64("2022-10-01")) + 1.0 * (town == "Köln") + income / 900_000
    return pd.DataFrame(
        {
            "opened": [one.item() for one in day],
            "seen": seen.tz_localize("UTC").tz_convert(ZONE),
            "income": [Decimal(int(one)).scaleb(-2) for one in income],
            "town": town.astype(object),
            "age": age,
            TARGET: np.where(score + rng.normal(0, 0.5, n) > 1.8, "default", "paid"),
        }
    )


OLD, NEW = draw_accounts(1200, 0), draw_accounts(400, 1)
X, Y = OLD.drop(columns=TARGET), OLD[TARGET]
FEATURES = list(X)


def as_arrow(frame):
    """The frame with Arrow's dates and decimals, which Dask does not turn into texts."""
    types = {"opened": pa.date32(), "income": pa.decimal128(12, 2)}
    return frame.astype({name: pd.ArrowDtype(kind) for name, kind in types.items()})


@pytest.fixture(scope="module", params=ESTIMATORS)
def model(request):
    return ESTIMATORS[request.param]().fit(X, Y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with both tables as CSV and Parquet files."""
    folder = tmp_path_factory.mktemp("accounts")
    for name, frame in (("old", OLD), ("new", NEW)):
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_parquet(folder / f"{name}.parquet")
    return folder


def run(*arguments):
    """Run the command line, and return what it prints."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_columns_are_what_people_mean(model):
    assert {FEATURES[j]: dates.kind for j, dates in model.dates_.items()} == {
        "opened": "date",
        "seen": "datetime",
    }
    assert np.flatnonzero(model.is_categorical_).tolist() == [FEATURES.index("town")]
    assert model.score(NEW[FEATURES], NEW[TARGET]) > 0.7


@pytest.mark.parametrize(
    "convert",
    [pl.from_pandas, lambda frame: pa.Table.from_pandas(frame, preserve_index=False), as_arrow],
    ids=["polars", "pyarrow", "pandas with Arrow types"],
)
def test_rows_of_other_libraries_get_the_same_predictions(model, convert):
    expected = model.predict_proba(NEW[FEATURES])
    np.testing.assert_array_equal(model.predict_proba(convert(NEW[FEATURES])), expected)


def test_files_and_exports_predict_the_same(model, tmp_path):
    certree.save(model, tmp_path / "model.certree")
    restored = certree.load(tmp_path / "model.certree")
    expected = model.predict_proba(NEW[FEATURES])
    np.testing.assert_array_equal(restored.predict_proba(NEW[FEATURES]), expected)
    # scikit-learn rounds rows to float32, and with them the dates.
    checks = check_export(
        model, NEW[FEATURES], exports=["dict", "onnx_float64", "sqlite", "duckdb"]
    )
    assert checks.all_agree, checks
    assert not checks.skipped
    for language in ("c", "java", "javascript"):
        assert "town" in model.to_code(language)


@pytest.mark.slow
def test_models_are_explained_certified_and_monitored(model, tmp_path):
    explained = model.explain(NEW[FEATURES][:20])
    assert len(explained) == 20
    assert "town" in str(explained[0])
    certificate = certree.certify(model, NEW[FEATURES], NEW[TARGET])
    assert certificate.bound < 0.35
    wrong = model.predict(NEW[FEATURES]) != NEW[TARGET]
    monitor = certificate.monitor()
    assert not monitor.update(wrong.to_numpy().astype(float)).broken
    assert monitor.update(np.ones(100)).broken
    page = report(model, NEW[FEATURES], NEW[TARGET], tmp_path / "report.html")
    assert "income" in page.read_text(encoding="utf-8")
    assert "income" in model_card(model, NEW[FEATURES], NEW[TARGET])


@pytest.mark.parametrize("file_type", ["csv", "parquet"])
@pytest.mark.parametrize("name", OUT_OF_CORE)
def test_fits_to_files_are_fits_to_their_rows(name, file_type, folder):
    expected = OUT_OF_CORE[name]().fit(X, Y)
    found = OUT_OF_CORE[name]().fit(folder / f"old.{file_type}", TARGET)
    new = NEW[FEATURES]
    np.testing.assert_array_equal(found.predict_proba(new), expected.predict_proba(new))


@pytest.mark.parametrize("name", OUT_OF_CORE)
def test_fits_to_collections_of_dask_are_fits_to_their_rows(name):
    dd = pytest.importorskip("dask.dataframe")
    expected = OUT_OF_CORE[name]().fit(X, Y)
    rows = dd.from_pandas(as_arrow(OLD), npartitions=3)
    found = OUT_OF_CORE[name]().fit(rows[FEATURES], rows[TARGET])
    new = NEW[FEATURES]
    np.testing.assert_array_equal(found.predict_proba(new), expected.predict_proba(new))


@pytest.mark.slow
@pytest.mark.parametrize("file_type", ["csv", "parquet"])
def test_the_command_line_goes_the_whole_way(file_type, folder, tmp_path):
    model, old, new = (
        tmp_path / "m.certree",
        folder / f"old.{file_type}",
        folder / f"new.{file_type}",
    )
    told = run("fit", old, "--target", TARGET, "-o", model, "--seed", 0)
    for line in ("seen: date", "income: number", "town: category, "):
        assert line in told
    run("predict", model, new, "-o", tmp_path / "predictions.csv")
    expected = certree.load(model).predict_proba(NEW[FEATURES])
    with open(tmp_path / "predictions.csv", newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    found = [[float(row[f"probability_{one}"]) for one in ("default", "paid")] for row in rows]
    np.testing.assert_array_equal(found, expected)
    assert "Error " in run("evaluate", model, new, "--target", TARGET)
    assert "at most" in run("certify", model, new, "--target", TARGET)
    assert "prediction" in run("explain", model, new, "--row", 3)
    run("report", model, new, "--target", TARGET, "-o", tmp_path / "report.html")
    for name in ("m.sql", "m.onnx", "m.json", "m.c", "Model.java"):
        run("export", model, "-o", tmp_path / name)
        assert (tmp_path / name).stat().st_size


@pytest.mark.skipif(
    "custom_values" not in inspect.signature(partial_dependence).parameters,
    reason="custom_values need scikit-learn 1.7",
)
@pytest.mark.parametrize("name", ["tree", "boosted trees", "forest"])
def test_models_are_inspected_by_scikit_learn(name):
    model, later = ESTIMATORS[name]().fit(X, Y), NEW[:60].drop(columns=TARGET)
    importance = permutation_importance(model, later, NEW[TARGET][:60], n_repeats=3, random_state=0)
    assert importance.importances_mean.shape == (len(FEATURES),)
    assert importance.importances_mean[FEATURES.index("opened")] > 0.05
    values = {
        "town": ["Bonn", None],
        "age": [20.0, np.nan],
        "opened": [OLD["opened"].min(), OLD["opened"].max()],
    }
    for feature, chosen in values.items():
        custom = {feature: np.array(chosen, dtype=float if feature == "age" else object)}
        found = partial_dependence(
            model, later, [feature], custom_values=custom, response_method="predict_proba"
        )
        expected = [
            model.predict_proba(later.assign(**{feature: value}))[:, 1].mean() for value in chosen
        ]
        np.testing.assert_allclose(found["average"][0], expected, rtol=1e-12)
