"""Tables for a fitted model are read with the types, categories and formats of its fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

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
from certree.tables.fitted_types import list_input_columns

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
    assert (
        read_table(path, like=model).X[:, [0, 2]].tolist()
        == X[:20][["kind", "note"]].values.tolist()
    )


def test_pipelines_know_the_categories_of_their_encoders(tmp_path):
    X, y = draw("N/A")
    encoder = ColumnTransformer([("kind", OneHotEncoder(), ["kind"])], remainder="passthrough")
    model = make_pipeline(encoder, PrunedTreeClassifier(random_state=0)).fit(X, y)
    new, _ = draw("N/A", 50, seed=1)
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    found = predict(model, path, tmp_path / "out.csv")
    np.testing.assert_array_equal(found, model.predict(new))
