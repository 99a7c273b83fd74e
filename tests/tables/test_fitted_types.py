"""Tables for a fitted model are read with the types, categories and formats of its fit."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

import certree
from certree import (
    BoostedTreesClassifier,
    PrunedTreeClassifier,
    TableSource,
    certify,
    predict_files,
    read_table,
    save,
)
from certree.cli.app import app
from certree.tables.fitted_types import get_model_format, list_input_columns

N = 300
LONG = "a long category, of which a model file stores a hash"


def call(*arguments):
    found = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})
    return found.exit_code, found.output


def draw(word, n=N, seed=0):
    """Return rows in which one of three categories decides the class, and their classes."""
    random = np.random.default_rng(seed)
    kind = random.choice(np.array(["a", LONG, word], dtype=object), n)
    X = pd.DataFrame({"kind": kind, "x": random.normal(size=n)})
    return X, np.where((kind == word) ^ (random.random(n) < 0.05), "yes", "no")


def predict(model, source, target):
    predict_files(model, source, target, batch_size=7)
    return pd.read_csv(target).prediction.to_numpy()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("word", ["N/A", "NA", "null", "None", "-", "?", ""])
@pytest.mark.parametrize("has_names", [True, False])
def test_a_category_that_looks_like_a_missing_value_remains_one(word, has_names, tmp_path):
    X, y = draw(word)
    model = PrunedTreeClassifier(random_state=0).fit(X if has_names else X.to_numpy(), y)
    new, truth = draw(word, 80, seed=1)
    expected = model.predict(new if has_names else new.to_numpy())
    assert len({*expected}) == 2
    path = tmp_path / "new.csv"
    new.assign(y=truth).to_csv(path, index=False)
    table = read_table(path, "y", like=model)
    np.testing.assert_array_equal(model.predict(table.X), expected)
    only = tmp_path / "only.csv"
    new.to_csv(only, index=False)
    np.testing.assert_array_equal(predict(model, only, tmp_path / "out.csv"), expected)
    # The command reads whole tables as well as batches.
    n_wrong = int((expected != truth).sum())
    in_memory = certify(model, new if has_names else new.to_numpy(), truth)
    assert certify(model, path, "y").risk == in_memory.risk == n_wrong / 80
    save(model, tmp_path / "model.certree")
    code, output = call("certify", tmp_path / "model.certree", path, "--target", "y")
    assert code == 0
    assert str(in_memory) in output
    code, output = call("evaluate", tmp_path / "model.certree", path, "--target", "y")
    assert f"Error {100 * n_wrong / 80:.1f} %" in output


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:feature .kind. .* that the fit has not seen")
def test_markers_of_missing_values_are_those_that_the_model_does_not_know(tmp_path):
    X, y = draw("NA")
    model = PrunedTreeClassifier(random_state=0).fit(X, y)
    path = tmp_path / "new.csv"
    path.write_text("kind,x\nNA,NA\nN/A,2\n,3\na,\n")
    table = read_table(path, like=model)
    assert table.X[:, 0].tolist() == ["NA", None, None, "a"]
    np.testing.assert_array_equal(table.X[:, 1].astype(float), [np.nan, 2, 3, np.nan])
    lines = [str(column) for column in table.description.columns]
    assert lines[0].startswith("kind: category, NA kept as text, 2 missing (empty, N/A)")
    # A marker that the user states is missing in every column.
    stated = read_table(path, missing=["NA"], like=model)
    assert stated.X[:, 0].tolist() == [None, "N/A", None, "a"]
    source = TableSource(path, missing=["NA"])
    predicted = predict(model, source, tmp_path / "out.csv")
    np.testing.assert_array_equal(predicted, model.predict(stated.X))


def test_a_class_that_looks_like_a_missing_value_remains_one(tmp_path):
    X, y = draw("b")
    y = np.where(y == "yes", "NA", "n/a")
    model = PrunedTreeClassifier(random_state=0).fit(X, y)
    new, truth = draw("b", 60, seed=1)
    truth = np.where(truth == "yes", "NA", "n/a")
    path = tmp_path / "new.csv"
    new.assign(y=truth).to_csv(path, index=False)
    assert read_table(path, "y", like=model).y.tolist() == truth.tolist()
    assert certify(model, path, "y").risk == np.mean(model.predict(new) != truth)


def test_hashed_categories_are_known(tmp_path):
    X, y = draw("N/A")
    X["note"] = np.where(np.arange(N) % 3 == 0, "NULL", LONG + X["kind"].astype(str))
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
    unused = np.array([True, False, True])
    model.categories_ = model.categories_.digest_texts(unused)
    assert model.categories_.digested
    columns = list_input_columns(model)[1]
    assert [column.words for column in columns] == [{"N/A"}, set(), {"NULL"}]
    path = tmp_path / "new.csv"
    X[:20].to_csv(path, index=False)
    found = read_table(path, like=model).X[:, [0, 2]]
    assert found.tolist() == X[:20][["kind", "note"]].to_numpy().tolist()


def test_pipelines_know_the_categories_of_their_encoders(tmp_path):
    X, y = draw("N/A")
    encoder = ColumnTransformer([("kind", OneHotEncoder(), ["kind"])], remainder="passthrough")
    model = make_pipeline(encoder, PrunedTreeClassifier(random_state=0)).fit(X, y)
    new, _ = draw("N/A", 50, seed=1)
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    found = predict(model, path, tmp_path / "out.csv")
    np.testing.assert_array_equal(found, model.predict(new))


# -- options that override the formats of a fit


def draw_dated(n=200, seed=0):
    """Return rows of dates, dates with times and numbers, and classes that depend on all three."""
    random = np.random.default_rng(seed)
    days = pd.date_range("2020-01-01", periods=200).to_numpy()
    hours = pd.date_range("2019-01-01", periods=200, freq="7h").to_numpy()
    X = pd.DataFrame({"day": random.choice(days, n), "hour": random.choice(hours, n)})
    X["x"] = (random.normal(size=n) * 5000).round(2)
    is_late = (X.day.dt.month > 3).astype(int) + (X.hour.dt.hour > 11) + (X.x > 0)
    return X, np.where(is_late > 1, "yes", "no")


def write(
    X, y, path, day="%Y-%m-%d", hour="%Y-%m-%d %H:%M:%S", decimal=".", thousands="", symbol=""
):
    """Write rows as CSV with these formats of dates, and these marks of numbers."""
    marks = str.maketrans({",": thousands, ".": decimal})
    numbers = [f"{value:,.2f}".translate(marks) + symbol for value in X.x]
    texts = X.assign(day=X.day.dt.strftime(day), hour=X.hour.dt.strftime(hour), x=numbers)
    texts.assign(y=y).to_csv(path, sep=";", index=False)


PLAIN = {}
GERMAN = {
    "day": "%d.%m.%Y",
    "hour": "%Y/%m/%d %H:%M",
    "decimal": ",",
    "thousands": ".",
    "symbol": " €",
}
AMERICAN = {"day": "%m/%d/%Y", "hour": "%m/%d/%Y %H:%M", "thousands": ","}
BRITISH = {"day": "%d/%m/%Y", "hour": "%d/%m/%Y %H:%M", "decimal": ",", "thousands": "."}


@pytest.fixture(scope="module", params=["frame", "plain file", "German file"])
def dated(request, tmp_path_factory):
    """Return a model that was fitted to rows of dates and numbers, and the path of its file."""
    X, y = draw_dated()
    folder = tmp_path_factory.mktemp("fit")
    model = BoostedTreesClassifier(max_iter=8, random_state=0)
    if request.param == "frame":
        model.fit(X, y)
    else:
        write(X, y, folder / "fit.csv", **(PLAIN if request.param == "plain file" else GERMAN))
        model.fit(folder / "fit.csv", "y")
    save(model, folder / "model.certree")
    return model, folder / "model.certree"


@pytest.mark.parametrize(
    ("form", "options"),
    [
        (PLAIN, {"decimal": ".", "dates": "dd/mm"}),
        (AMERICAN, {"decimal": ".", "dates": "mm/dd"}),
        (BRITISH, {"decimal": ",", "dates": "dd/mm"}),
        ({**GERMAN, "symbol": ""}, {"decimal": ",", "dates": "dd/mm"}),
        (GERMAN, {"decimal": ",", "dates": "dd/mm"}),
    ],
    ids=["plain", "American", "British", "German without sign", "German"],
)
def test_options_override_the_formats_of_a_fit(dated, form, options, tmp_path):
    model, model_path = dated
    new, truth = draw_dated(50, seed=1)
    expected = model.predict_proba(new)
    path = tmp_path / "new.csv"
    write(new, truth, path, **form)
    table = read_table(path, "y", **options, like=model)
    np.testing.assert_array_equal(table.X[:, 2].astype(float), new.x)
    np.testing.assert_array_equal(model.predict_proba(table.to_arrow()), expected)
    source = TableSource(path, **options)
    predict_files(model, source, tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv").probability_yes
    np.testing.assert_allclose(found, expected[:, 1], rtol=1e-15)
    assert certify(model, source, "y").risk == np.mean(model.predict(new) != truth)
    arguments = [text for name, value in options.items() for text in (f"--{name}", value)]
    n_wrong = int((model.predict(new) != truth).sum())
    code, output = call("evaluate", model_path, path, "--target", "y", *arguments)
    assert f"Error {100 * n_wrong / 50:.1f} %" in output, output
    code, output = call("certify", model_path, path, "--target", "y", *arguments)
    assert code == 0, output


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        (BRITISH, {"decimal": ".", "dates": "dd/mm"}, r"'x' must hold numbers .*--decimal\)"),
        (BRITISH, {"decimal": ","}, r"must hold dates as in the fit.*--dates"),
        (AMERICAN, {"decimal": ",", "dates": "mm/dd"}, "'x' must hold numbers as in the fit"),
        (AMERICAN, {"decimal": ".", "dates": "dd/mm"}, r"must hold dates as in the fit.*--dates"),
    ],
)
def test_formats_that_options_do_not_have_are_refused(dated, form, options, message, tmp_path):
    model, _ = dated
    new, truth = draw_dated(200, seed=1)
    path = tmp_path / "new.csv"
    write(new, truth, path, **form)
    with pytest.raises(ValueError, match=message):
        predict_files(model, TableSource(path, **options), tmp_path / "out.csv")
    code, output = call(
        "certify",
        dated[1],
        path,
        "--target",
        "y",
        *(text for name, value in options.items() for text in (f"--{name}", value)),
    )
    assert code == 1
    assert "as in the fit" in output


def test_another_currency_is_refused_if_the_fit_stored_one(dated, tmp_path):
    model, _ = dated
    new, truth = draw_dated(200, seed=1)
    path = tmp_path / "new.csv"
    write(new, truth, path, **{**GERMAN, "symbol": " $"})
    source = TableSource(path, decimal=",", dates="dd/mm")
    stored = get_model_format(model)
    if stored is None or "x" not in stored.columns:
        assert predict_files(model, source, tmp_path / "out.csv") == 200
        return
    with pytest.raises(ValueError, match=r"'x' must hold numbers .*€ removed"):
        predict_files(model, source, tmp_path / "out.csv")


# -- exports


def test_sql_lists_the_columns_whose_text_the_fit_converted(dated, tmp_path):
    model, model_path = dated
    is_german = get_model_format(model) is not None and "day" in get_model_format(model).columns
    statement = model.to_sql("rows")
    code, output = call("export", model_path, "-o", tmp_path / "model.sql")
    assert code == 0
    assert (tmp_path / "model.sql").read_text() == statement + "\n"
    lines = [
        "Before you run this statement, convert empty text to NULL, and the text of these columns "
        "to numbers or dates:",
        "  day: date, dd/mm/yyyy",
        "  hour: date, yyyy/mm with time",
        "  x: number, decimal comma, thousands separators removed, € removed",
    ]
    assert ([f"-- {line}" for line in lines] == statement.split("\n")[:4]) == is_german
    assert all((line in output) == is_german for line in lines)
    assert ("--" in statement) == is_german
    # The table has the dates and numbers that the comments ask for.
    new, _ = draw_dated(50, seed=1)
    with sqlite3.connect(":memory:") as connection:
        texts = new.assign(day=new.day.dt.strftime("%Y-%m-%d"), hour=new.hour.astype(str))
        texts.to_sql("rows", connection, index=False)
        found = pd.read_sql(statement, connection)
    np.testing.assert_array_equal(found.prediction, model.predict(new))


def test_names_of_columns_do_not_end_a_comment_of_sql(tmp_path):
    X, _ = draw_dated()
    name = "x\n; DROP TABLE rows"
    path = tmp_path / "fit.csv"
    texts = [f"{value:.2f}".replace(".", ",") for value in X.x]
    pd.DataFrame({name: texts, "y": np.where(X.x > 0, "yes", "no")}).to_csv(
        path, sep=";", index=False
    )
    model = PrunedTreeClassifier(random_state=0).fit(read_table(path, "y").to_arrow(), X.x > 0)
    assert get_model_format(model).columns
    assert (
        model.to_sql("rows")
        .split("\n")[1]
        .startswith(r"--   x\n; DROP TABLE rows: number, decimal comma")
    )


@pytest.mark.parametrize("in_memory", [True, False])
def test_sql_lists_the_texts_that_were_missing_values(tmp_path, in_memory):
    """Also in columns of plain numbers and of text, whose other values need no conversion."""
    X, _ = draw_dated()
    path = tmp_path / "fit.csv"
    numbers = X.x.astype(str).where(np.arange(len(X)) % 9 > 0, "k.A.")
    town = pd.Series(["Ulm", "Bonn"] * (len(X) // 2)).where(np.arange(len(X)) % 7 > 0, "NA")
    y = np.where((X.x > 0) != (town == "Ulm"), "yes", "no")
    unused = ["k.A.", *["1.5"] * (len(X) - 1)]  # No tree reads it.
    columns = {"x": numbers, "z": X.x, "town": town, "unused": unused, "y": y}
    pd.DataFrame(columns).to_csv(path, index=False)
    model = BoostedTreesClassifier(max_iter=8, random_state=0)
    if in_memory:
        table = read_table(path, "y")
        model.fit(table.to_arrow(), table.y)
    else:
        model.fit(path, "y")
    certree.save(model, tmp_path / "model.certree")
    statement = certree.load(tmp_path / "model.certree").to_sql("rows")
    assert [line for line in statement.split("\n") if line.startswith("--")] == [
        "-- Before you run this statement, convert these texts, which are missing values, to NULL:",
        "--   x: k.A.",
        "--   town: NA",
    ]
    assert statement == model.to_sql("rows")


# -- texts that the fit did not have ---------------------------------------------------------------


def _format_european(number):
    return f"{number:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


@pytest.mark.parametrize(
    ("write", "decimal"),
    [
        (lambda number: f"{_format_european(number)} €", ","),
        (lambda number: f"${number:,.2f}", "."),
        (lambda number: f"USD {number:,.2f}", "."),
        (lambda number: f"${number:.2f}", None),
    ],
)
def test_currency_signs_are_removed_although_the_fit_stored_none(tmp_path, write, decimal):
    prices = np.random.default_rng(0).uniform(1, 3000, 300).round(2)
    y = np.where(prices > 1000, "dear", "cheap")
    model = PrunedTreeClassifier().fit(pd.DataFrame({"price": prices}), y)
    file, target = tmp_path / "new.csv", tmp_path / "predicted.csv"
    pd.DataFrame({"price": map(write, prices), "end": 1}).to_csv(file, index=False, sep=";")
    table = read_table(file, like=model, decimal=decimal)
    assert table.X[:, 0].tolist() == prices.tolist()
    predict_files(model, TableSource(file, decimal=decimal), target)
    assert pd.read_csv(target).prediction.tolist() == y.tolist()


def test_percent_signs_warn_if_the_fit_stored_none(tmp_path):
    numbers = np.linspace(0, 60, 200).round(1)
    model = PrunedTreeClassifier().fit(pd.DataFrame({"rate": numbers}), numbers > 20)
    file, target = tmp_path / "new.csv", tmp_path / "predicted.csv"
    pd.DataFrame({"rate": [f"{number} %" for number in numbers]}).to_csv(file, index=False)
    with pytest.warns(UserWarning, match="'rate' of .*: percent signs are removed"):
        assert read_table(file, like=model).X[:, 0].tolist() == numbers.tolist()
    with pytest.warns(UserWarning, match="'rate' of .*: percent signs are removed"):
        predict_files(model, file, target)
    assert pd.read_csv(target).prediction.tolist() == (numbers > 20).tolist()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("decimal", [None, "."])
def test_numbers_without_the_percent_signs_of_the_fit_are_read_with_a_warning(tmp_path, decimal):
    numbers = np.linspace(0, 60, 200).round(1)
    fitted, file, target = (tmp_path / name for name in ("fit.csv", "new.csv", "predicted.csv"))
    pd.DataFrame({"rate": [f"{number}%" for number in numbers], "y": numbers > 20}).to_csv(fitted)
    table = read_table(fitted, "y", drop=["column 1"])
    model = PrunedTreeClassifier().fit(table.to_arrow(), table.y)
    pd.DataFrame({"rate": numbers}).to_csv(file, index=False)
    with pytest.warns(UserWarning, match="'rate' of .*new.csv: its numbers lack the percent signs"):
        read = read_table(file, like=model, decimal=decimal)
    assert read.X[:, 0].tolist() == numbers.tolist()
    save(model, tmp_path / "m.certree")
    code, output = call("predict", tmp_path / "m.certree", file, "-o", target)
    assert code == 0, output
    assert "lack the percent signs of the fit" in output
    assert pd.read_csv(target).prediction.tolist() == (numbers > 20).astype(int).tolist()
    # Numbers with and without signs have two units, and are refused as before.
    mixed = [f"{number}{'%' * (i % 2)}" for i, number in enumerate(numbers)]
    pd.DataFrame({"rate": mixed}).to_csv(file)
    with pytest.raises(ValueError, match="'rate' must hold numbers as in the fit"):
        read_table(file, like=model)


def test_later_blocks_have_the_symbol_of_the_first_one(tmp_path, monkeypatch):
    monkeypatch.setattr("certree.tables.formats._BLOCK", 1000)
    numbers = np.linspace(1, 60, 400).round(1)
    model = PrunedTreeClassifier().fit(pd.DataFrame({"rate": numbers}), numbers > 20)
    for first, last, is_read in (
        ("{} €", "{} €", True),
        ("{}", "{} €", True),
        ("{}", "{} %", False),
    ):
        file = tmp_path / "new.csv"
        texts = [(first if i < 200 else last).format(one) for i, one in enumerate(numbers)]
        pd.DataFrame({"rate": texts}).to_csv(file, index=False)
        if is_read:
            predict_files(model, file, tmp_path / "predicted.csv")
            continue
        with pytest.raises(ValueError, match="'rate' must hold numbers as in the fit"):
            predict_files(model, file, tmp_path / "predicted.csv")


def test_messages_ask_for_another_decimal_mark_than_the_stated_one(tmp_path):
    model = PrunedTreeClassifier().fit(pd.DataFrame({"x": np.arange(60.0)}), [0, 1] * 30)
    file = tmp_path / "new.csv"
    file.write_text("x\n" + "about 3\n" * 50)
    with pytest.raises(ValueError, match="state another decimal mark than ','"):
        predict_files(model, TableSource(file, decimal=","), tmp_path / "o.csv")
