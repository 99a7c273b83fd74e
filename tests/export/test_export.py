"""Exports predict what models predict, on tables and on random trees."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import export_text, plot_tree

import certree.export.categorical_chains
from certree import (
    KD,
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    Dyadic,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
    load,
    save,
)
from certree.export import check_export, register_converters
from certree.export.categorical_chains import expand_categorical_splits
from certree.export.comparison import Predictions, compare_predictions, predict_with_model
from certree.export.engines import quote_name, run_in_onnxruntime
from certree.export.formula import Formula, break_ties_by_label, round_down_to_float32
from certree.export.onnx_graph import make_onnx_model
from certree.files.predictions import predict_columns
from reference import find_fractional_leaves
from strategies import trees

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/model.schema.json").read_text("utf-8"))

CLASSIFIERS = {
    "tree": PACBayesTreeClassifier(random_state=0),
    "certified": CertifiedTreeClassifier(duplicates="genuine", random_state=0),
    "forest": TreeForestClassifier(4, max_depth=6, random_state=0),
    "certified forest": CertifiedForestClassifier(
        4, max_depth=6, duplicates="genuine", random_state=0
    ),
    "certified boosted": CertifiedBoostedTreesClassifier(
        max_iter=6, max_leaf_nodes=8, duplicates="genuine", random_state=0
    ),
    "boosted": BoostedTreesClassifier(max_iter=6, max_leaf_nodes=8, random_state=0),
    "adaboost": AdaBoostTreeClassifier(n_estimators=6, max_depth=2),
}
REGRESSORS = {
    "tree": PACBayesTreeRegressor(random_state=0),
    "certified": CertifiedTreeRegressor(duplicates="genuine", random_state=0),
    "pruned": PrunedTreeRegressor(random_state=0),
    "forest": TreeForestRegressor(4, max_depth=6, random_state=0),
    "certified boosted": CertifiedBoostedTreesRegressor(
        max_iter=6, max_leaf_nodes=8, duplicates="genuine", random_state=0
    ),
    "boosted": BoostedTreesRegressor(max_iter=6, max_leaf_nodes=8, random_state=0),
    "gamma": BoostedTreesRegressor("gamma", max_iter=6, max_leaf_nodes=8, random_state=0),
}
NUMBERS = {
    *("airfoil_self_noise", "auto_mpg", "bike_sharing", "california_housing", "concrete"),
    *("diamonds", "energy_efficiency", "parkinsons_updrs"),
}


def predicted(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def encode_rows(model, X):
    """Return the rows as exports read them: numbers, and codes of categories."""
    return X.to_numpy(float) if model.categories_ is None else model.categories_.encode(X)


def predict_with_onnx(model, rows):
    """Return labels (None for a regressor) and values that onnxruntime computes."""
    found = run_in_onnxruntime(model, rows)
    return (None, found[0][:, 0]) if len(found) == 1 else found


def query_duckdb(query, X, name):
    """Return the rows that DuckDB selects; categories are columns of type ENUM."""
    with duckdb.connect() as connection:
        connection.register(name, X)
        return connection.execute(query).df()


def query_sqlite(query, X, name):
    """Return the rows that SQLite selects, which has 1 and 0 in place of booleans."""
    with closing(sqlite3.connect(":memory:")) as connection:
        names = [quote_name(column) for column in X]
        connection.execute(f"CREATE TABLE {quote_name(name)} ({', '.join(names)})")
        rows = X.astype(object).where(X.notna(), None).to_numpy().tolist()
        places = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO {quote_name(name)} VALUES ({places})", rows)
        found = connection.execute(query)
        return pd.DataFrame(found.fetchall(), columns=[column for column, *_ in found.description])


ENGINES = [query_duckdb, query_sqlite]


def expect_sql(model, X, name="here", keep=()):
    """Check the kept columns, predictions and values of the statement in both databases."""
    rows = X[[*getattr(model, "feature_names_in_", X)]]
    truth, query = predict_with_model(model, rows), model.to_sql(name, keep=keep)
    n_values = truth.values.shape[1]
    for engine in ENGINES:
        found = engine(query, X, name)
        columns = list(found)
        assert columns[: len(keep) + 1] == [*keep, "prediction"]
        assert len({column.encode().lower() for column in columns}) == len(columns)
        for column in keep:
            assert found[column].equals(X[column].astype(found[column].dtype))
        first = len(keep) + (truth.classes is not None)
        value = found.iloc[:, first : first + n_values].to_numpy(float)
        label = None if truth.classes is None else found["prediction"].tolist()
        known = [*getattr(model, "classes_", ())]
        assert not compare_predictions(truth, Predictions(value, label), known, 1e-14).n_different


def expect_exports(model, X, sql=True):
    """Compare all exports with the model; rows are float32 numbers, and some lack values."""
    jsonschema.validate(json.loads(json.dumps(model.to_dict(), allow_nan=False)), SCHEMA)
    expect_equal(model, X, ["onnx"], 1e-6)
    expect_equal(model, X, ["dict", "onnx_float64", *(["sqlite", "duckdb"] if sql else [])], 1e-14)
    if sql:
        expect_sql(model, X)
    expect_sklearn(model, X, encode_rows(model, X), predicted(model, X))


def expect_equal(model, X, exports, tolerance):
    """Check that no export is skipped, and that none differs from the model in any row."""
    report = check_export(model, X, exports=exports, tolerance=tolerance)
    assert report.all_agree, report
    assert not report.skipped


def expect_sklearn(model, X, rows, truth):
    powered = hasattr(model, "leaves_") and model.leaves_.power != 1
    if powered and len(model.classes_) > 1:
        with pytest.raises(ValueError, match="power"):
            model.to_sklearn()
        return
    other = model.to_sklearn()
    table = pd.DataFrame(rows, columns=X.columns) if hasattr(other, "feature_names_in_") else rows
    if hasattr(model, "tree_"):  # rows do not go both ways there
        leaf = model.apply(X)
        truth = model._compute_leaf_values()[leaf]
        truth = truth if hasattr(model, "classes_") else truth[:, 0]
        assert np.array_equal(predicted(other, table), truth)
        known = model.tree_.missing_both.sum() == 0 or ~np.isnan(rows).any(axis=1)
        assert np.array_equal(other.predict(table)[known], model.predict(X)[known])
    # Probabilities that forests keep as float32 do not quite add up to 1.
    most = 1e-7 if isinstance(model, TreeForestClassifier) else 1e-14
    assert np.abs(predicted(other, table) - truth).max() <= most * np.abs(truth).max()


# -- tables ----------------------------------------------------------------------------------------


def load_table(name, n=300):
    directory = os.environ.get("CERTREE_DATA")
    for path in (f"{name}.parquet", f"more/{name}.parquet"):
        if directory and (Path(directory) / path).is_file():
            X = pd.read_parquet(Path(directory) / path).sample(n, random_state=0, ignore_index=True)
            return drop_values(X.drop(columns="label").replace("?", None)), X["label"]
    pytest.skip("the tables are not at hand")


def drop_values(X, fraction=0.05):
    """Round numbers to float32, and make a fraction of all values missing."""
    numbers = {name: np.float32 for name in X if X[name].dtype.kind in "fiu"}
    return X.astype(numbers).mask(np.random.default_rng(0).random(X.shape) < fraction)


ALL_TABLES = [
    *("crowd", "digit", "eeg", "epileptic", "letter", "spam", "wine"),
    *("abalone", "adult", "bank_marketing", "bike_sharing", "california_housing"),
    *("credit_default", "diamonds", "electricity", "magic04", "pendigits", "satimage"),
    *("airfoil_self_noise", "auto_mpg", "chess_krk", "concrete", "energy_efficiency"),
    *("monk2", "nursery", "parkinsons_updrs"),
]


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ALL_TABLES)
def test_exports_predict_the_same_on_tables(name):
    X, y = load_table(name)
    for kind, model in (REGRESSORS if name in NUMBERS else CLASSIFIERS).items():
        if kind == "gamma" and y.min() <= 0:
            continue
        model.fit(X[:220], y[:220])
        # Many classes have many long expressions.
        expect_exports(model, X, sql=kind in ("tree", "boosted") and y.nunique() != 26)


# -- random trees ----------------------------------------------------------------------------------


@st.composite
def formulas(draw):
    """Draw a tree with category sets, directions of missing values and leaf values, as a formula."""
    tree = draw(trees(sets=True))
    m = tree.n_nodes
    both = draw(hnp.arrays(np.bool_, m)) & ~tree.is_leaf
    rows = draw(hnp.arrays(np.float64, m, elements=st.integers(0, 3)))
    value = draw(hnp.arrays(np.float64, (m, 2), elements=st.integers(1, 4)))
    value = value / value.sum(axis=1, keepdims=True)
    tree = replace(tree, missing_both=both)
    classes = np.array(["no", "yes"])
    return Formula(
        [tree.with_value(value)], [rows], "tree", "identity", np.zeros(2), classes, None, None
    )


CELLS = st.one_of(st.integers(-3, 6).map(float), st.just(float("nan")))


@given(formulas(), hnp.arrays(np.float64, (6, 3), elements=CELLS), st.sampled_from(["32", "64"]))
def test_graphs_of_onnx_send_rows_as_the_twin_does(formula, X, bits):
    tree, rows = formula.trees[0], formula.rows[0]
    leaves = [find_fractional_leaves(tree, rows, x) for x in X]
    expected = [
        sum(fraction * tree.value[leaf] for leaf, fraction in reached) for reached in leaves
    ]
    label, found = predict_with_onnx(
        make_onnx_model(formula, f"float{bits}"), X.astype(f"float{bits}")
    )
    np.testing.assert_allclose(found, expected, 0, 1e-6 if bits == "32" else 1e-15)
    clear = np.abs(np.diff(expected)[:, 0]) > 1e-6
    assert np.array_equal(label[clear], np.array(["no", "yes"])[np.argmax(expected, 1)][clear])


@given(trees(sets=True, max_inner=8), hnp.arrays(np.float64, (8, 3), elements=CELLS))
def test_rows_reach_copies_of_the_same_leaf_in_a_tree_without_sets(tree, X):
    X = np.where(X < -1, np.nan, X)  # -1 is an unknown category
    plain, origin, part = expand_categorical_splits(tree, [7, 7, 7])
    assert not len(plain.categories)
    assert np.array_equal(origin[plain.apply(X)], tree.apply(X))
    # Copies of a leaf share its rows, some of which may be at no copy that codes can reach.
    total = np.bincount(origin[plain.is_leaf], part[plain.is_leaf], tree.n_nodes)
    assert (total <= 1 + 1e-12).all()


def test_a_tree_that_would_need_too_many_copies_is_refused(monkeypatch):
    monkeypatch.setattr(certree.export.categorical_chains, "_MAX_NODES", 2)
    X = np.arange(120)[:, None] % 6
    model = PACBayesTreeClassifier(categorical_features=[0], random_state=0).fit(X, X[:, 0] % 2)
    with pytest.raises(ValueError, match=r"at most 2 nodes.*to_onnx\(\).*compact"):
        model.to_sklearn()


def test_trees_with_hundreds_of_categories_are_refused_soon(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (2000, 3))
    effect = rng.normal(size=(3, 100))
    y = sum(effect[j][X[:, j]] for j in range(3)) > rng.logistic(size=2000)
    model = PACBayesTreeClassifier(categorical_features=[0, 1, 2], random_state=0).fit(X, y)
    module, seen = certree.export.categorical_chains, []
    find_runs = module._find_runs

    def find_and_count(tree, n_categories, node, codes):
        seen.append((node, codes))
        return find_runs(tree, n_categories, node, codes)

    monkeypatch.setattr(module, "_find_runs", find_and_count)
    report = check_export(model, X[:50], exports=["sklearn", "dict"])
    assert "at most 131072 nodes" in report["sklearn"].skipped
    assert report["dict"].n_different == 0
    assert len(seen) == len(set(seen))  # copies of a node use the runs of the first


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(width=32, allow_nan=False))
def test_float32_rows_go_the_same_way_at_a_rounded_threshold(threshold, x):
    found = round_down_to_float32(np.array([threshold]))[0]
    assert (np.float32(x) <= found) == (x <= threshold)


def test_rounding_makes_no_tie_where_there_was_none():
    below = np.nextafter(0.5, 0)
    shares = np.array([[below, 0.5, 0.1], [0.5, 0.5, 0.1], [0.2, 0.3, 0.5]])
    label = shares.argmax(axis=1)
    narrow = break_ties_by_label(shares.astype(np.float32), label)
    assert np.array_equal(narrow.argmax(axis=1), label)
    assert np.abs(narrow - shares).max() <= 1e-7
    assert np.array_equal(break_ties_by_label(shares, label), shares)


# -- kinds of features, classes and models ---------------------------------------------------------


def make_mixed_table(n=240):
    """Return a table with categories (quoted words, numbers, booleans) and numbers, and a target."""
    rng = np.random.default_rng(0)
    words = np.array(["it's", 'a "b"', "c, d", "é", ""])
    code, size = rng.integers(0, 5, n), rng.integers(0, 90, n)
    X = pd.DataFrame(
        {
            'the "word"': pd.Categorical(words[code]),
            "size of it": pd.Categorical(size.astype(float)),
            "order": rng.normal(size=n).astype(np.float32),
        }
    )
    signal = np.isin(code, [0, 2, 4]) + (size % 3 == 0) + 0.3 * rng.normal(size=n)
    return X.mask(rng.random(X.shape) < 0.05), signal


@pytest.mark.parametrize(
    "classes",
    [["it's", "b"], [True, False], [-1, 2], [1.0, 2.0], ["a", "b", 'c"']],
    ids=["str", "bool", "int", "float", "three"],
)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_names_and_classes_of_all_types_are_exported(kind, classes):
    X, signal = make_mixed_table()
    y = np.array(classes)[np.digitize(signal, [1, 1.5][: len(classes) - 1])]
    expect_exports(CLASSIFIERS[kind].fit(X, y), X)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_numbers_are_exported(kind):
    X, signal = make_mixed_table()
    expect_exports(REGRESSORS[kind].fit(X, 10 + signal), X)


@pytest.mark.parametrize(
    "model",
    [
        PrunedTreeClassifier(random_state=0),
        HelmboldSchapireTreeClassifier(random_state=0),
        PACBayesTreeClassifier(Dyadic(), random_state=0),
        PACBayesTreeClassifier(KD(), random_state=0),
        PACBayesTreeClassifier(vote="mean", random_state=0),
        TreeForestClassifier(3, leaves="auto", max_depth=3, random_state=0),
    ],
    ids=["pruned", "helmbold", "dyadic", "kd", "mean", "auto"],
)
def test_other_growers_and_votes_are_exported(model):
    X, signal = make_mixed_table()
    expect_exports(model.fit(X, signal > 1), X)


def test_new_rows_that_lack_what_no_row_of_the_fit_lacked_are_averaged():
    X, signal = make_mixed_table()
    whole = X.dropna()
    model = PACBayesTreeClassifier(random_state=0).fit(whole, signal[whole.index] > 1)
    assert model.tree_.missing_both.any()
    unknown = X.assign(**{"size of it": 1e6})
    for rows in (X, unknown):
        blended = predicted(model, rows)
        assert np.abs(blended - model._compute_leaf_values()[model.apply(rows)]).max() > 0.01
        expect_exports(model, rows)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_single_class_is_exported(kind):
    X = pd.DataFrame({"x": np.arange(20, dtype=np.float32)})
    expect_exports(CLASSIFIERS[kind].fit(X, ["same"] * 20), X)


def test_boosting_without_a_learner_is_exported():
    X = pd.DataFrame({"x": np.zeros(8, dtype=np.float32)})
    model = AdaBoostTreeClassifier().fit(X, [0, 1] * 4)
    assert not len(model.trees_)
    expect_exports(model, X)


def test_boosting_of_a_tiny_target_keeps_its_start():
    X = np.arange(30.0)[:, None]
    model = BoostedTreesRegressor(max_iter=3).fit(X, (5 + X[:, 0]) * 1e-100)
    _, value = predict_with_onnx(model.to_onnx("float64"), X)
    np.testing.assert_allclose(value, model.predict(X), 1e-12)


def test_an_array_without_names_has_columns_x0_x1():
    X, y = load_iris(return_X_y=True)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)])
    with pytest.warns(UserWarning, match="feature names"):
        expect_sql(model, frame)


def test_columns_that_are_to_be_kept_stand_first():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = PrunedTreeRegressor(random_state=0).fit(X[["bmi", "s5"]], y)
    here = X.assign(**{'row"': np.arange(len(X))})
    found = duckdb.query_df(here, "here", model.to_sql("here", keep=['row"', "bmi"])).df()
    assert list(found) == ['row"', "bmi", "prediction", "rule"]
    assert np.array_equal(found["prediction"], model.predict(X[["bmi", "s5"]])[found['row"']])


def test_what_is_no_sum_of_leaves_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="its leaves hold models"):
        DecoratedTreeClassifier().fit(X, y).to_dict()
    given = AdaBoostTreeClassifier(LogisticRegression(), n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="trees of certree"):
        given.to_onnx()
    behind = CertifiedTreeClassifier(preprocessor=SimpleImputer(), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="preprocessor must be None for an export"):
        behind.to_sql("rows")
    assert not hasattr(NaiveBayesClassifier(), "to_dict")


@pytest.mark.parametrize("method", ["to_sklearn", "to_onnx", "to_dict"])
@pytest.mark.parametrize("model", [*CLASSIFIERS.values(), *REGRESSORS.values()])
def test_exports_need_a_fit(model, method):
    with pytest.raises(ValueError, match="not fitted"):
        getattr(type(model)(), method)()


def test_other_dtypes_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="dtype must be"):
        PrunedTreeClassifier(random_state=0).fit(X, y).to_onnx("float16")


# -- hostile names and values of SQL ---------------------------------------------------------------

# Names of statements' own, words of SQL, and what some languages take for one letter.
HOSTILE = [
    *("m_x0", "M_SCORE0", "m__part1", "Prediction", "Probability_A", 'a"; DROP TABLE b', "select"),
    *("ß", "SS", "\N{KELVIN SIGN}", "k", "İ", "i̇", "\N{LATIN SMALL LETTER DOTLESS I}", "I"),
    *("🌳", " ", "it's", "w" * 300),
]
KEPT = ["score_0", "M_MOST0", "m_kept1", "m_table", "m_scores", "layer_1", "part_0", "é", "É"]
LETTERS = ["A", "a", "a_2", "ß", "SS", "ss", "\N{KELVIN SIGN}", "k", "", "'", "İ", "i̇"]
ALL_CLASSIFIERS = {
    **CLASSIFIERS,
    "pruned": PrunedTreeClassifier(random_state=0),
    "helmbold": HelmboldSchapireTreeClassifier(random_state=0),
    "power": TreeForestClassifier(3, leaves="auto", max_depth=3, random_state=0),
}


def make_hostile_table(n=160):
    """Return a table whose columns and categories have hostile names, and a target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, len(HOSTILE))).astype(np.float32), columns=HOSTILE)
    X = X.mask(rng.random(X.shape) < 0.05)
    truth, words, codes = (HOSTILE[first::5] for first in range(3))
    X[truth] = rng.random((n, len(truth))) < 0.5
    for name in words:
        X[name] = pd.Categorical(rng.choice(LETTERS, n))
    for name in codes:
        X[name] = pd.Categorical(rng.choice([0.0, -1.5, 7.0], n))
    known = X[truth].sum(axis=1) + X[words].isin(LETTERS[::2]).sum(axis=1)
    return X, known + (X[codes] == 7.0).sum(axis=1) + rng.normal(size=n) / 9


@pytest.mark.parametrize("kind", ALL_CLASSIFIERS)
@pytest.mark.parametrize(
    "classes", [["A", "a"], [False, True], LETTERS], ids=["case", "bool", "letters"]
)
def test_hostile_names_of_columns_and_classes(kind, classes):
    X, signal = make_hostile_table()
    classes = classes[:2] if kind == "helmbold" else classes
    y = np.array(classes)[np.argsort(np.argsort(signal)) * len(classes) // len(signal)]
    model = ALL_CLASSIFIERS[kind].fit(X, y)
    expect_exports(model, X, sql=False)
    kept = {name: np.arange(len(X)) + place for place, name in enumerate(KEPT)}
    expect_sql(model, X.assign(**kept), "M_select0", KEPT)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_hostile_names_of_columns(kind):
    X, signal = make_hostile_table()
    X = X.drop(columns="Prediction")
    model = REGRESSORS[kind].fit(X, 10 + signal)
    expect_exports(model, X, sql=False)
    expect_sql(model, X, "m_table", ["Probability_A", "m_x0", "select"])


def fit_to_letters(names=("x", "y"), classes=("a", "b")):
    """Return a model that splits on both of its columns, and its rows."""
    X = pd.DataFrame(np.indices((2, 2)).reshape(2, -1).T.repeat(20, axis=0), columns=names)
    y = np.array(classes, dtype=object)[X.to_numpy().sum(axis=1) % 2]
    return PACBayesTreeClassifier(lambda_error=40.0, lambda_penalty=0.0).fit(X, y), X


def test_columns_of_classes_have_names_of_their_own():
    X, _ = make_hostile_table()
    model = PACBayesTreeClassifier(random_state=0).fit(X, np.resize(["A", "a", "a_2", "B"], len(X)))
    for engine in ENGINES:
        found = [*engine(model.to_sql("t"), X, "t")]
        names = ["probability_A", "probability_B", "probability_a_3", "probability_a_2"]
        assert found == ["prediction", *names]
        assert list(model.classes_) == ["A", "B", "a", "a_2"]


@pytest.mark.parametrize(
    "keep", [["prediction"], ["PREDICTION"], ["probability_a"], ["Probability_B"], ["i", "I"]]
)
def test_a_column_is_not_kept_under_the_name_of_another(keep):
    model, _ = fit_to_letters()
    with pytest.raises(ValueError, match="keep must hold names that differ"):
        model.to_sql("t", keep=keep)


@pytest.mark.parametrize("keep", ["id", [5], [None]])
def test_what_is_kept_has_names(keep):
    model, _ = fit_to_letters()
    with pytest.raises(TypeError, match="keep must be a sequence of column names"):
        model.to_sql("t", keep=keep)


def test_features_that_differ_by_case_are_refused_by_sql():
    with pytest.raises(ValueError, match=r"more than case.*'x' and 'X'"):
        fit_to_letters(["x", "X"])[0].to_sql("t")
    expect_sql(*fit_to_letters(["é", "É"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ["x", ""]}, "must not be empty"),
        ({"names": ["x", "a\0b"]}, "must not contain a NUL"),
        ({"classes": ["a", "a\0"]}, "must not contain a NUL"),
        ({"classes": ["a", "\ud800"]}, "UTF-8"),
    ],
)
def test_what_a_statement_cannot_hold_is_refused(arguments, message):
    model, X = fit_to_letters(**arguments)
    with pytest.raises(ValueError, match=message):
        model.to_sql("t")
    if message == "UTF-8":
        with pytest.raises(ValueError, match=message):
            model.to_onnx()
    else:
        expect_exports(model, X, sql=False)


@pytest.mark.parametrize("category", ["a\0b", "a\0"])
def test_categories_that_a_statement_cannot_hold_are_refused(category):
    X = pd.DataFrame({"x": np.array(["a", category], dtype=object).repeat(20)})
    model = PACBayesTreeClassifier(random_state=0).fit(X, X["x"] == "a")
    with pytest.raises(ValueError, match="must not contain a NUL"):
        model.to_sql("t")


@pytest.mark.parametrize("table", ["", "a\0b", "a..b", "a.b.c.d", (), ("a", "")])
def test_tables_have_names(table):
    with pytest.raises(ValueError, match=r"table must be one to three names|NUL"):
        fit_to_letters()[0].to_sql(table)


@pytest.mark.parametrize("table", [3, ["a", 3]])
def test_names_of_tables_are_text(table):
    with pytest.raises(TypeError, match="table must be"):
        fit_to_letters()[0].to_sql(table)


@pytest.mark.parametrize(
    ("table", "name", "quoted"),
    [
        ("main.letters", "letters", '"main"."letters"'),
        (("main", "letters.2024"), "letters.2024", '"main"."letters.2024"'),
        (["letters.2024"], "letters.2024", '"letters.2024"'),
    ],
)
def test_tables_are_found_in_their_schema(table, name, quoted):
    model, X = fit_to_letters()[:2]
    statement = model.to_sql(table)
    assert f"FROM {quoted} AS" in statement
    with sqlite3.connect(":memory:") as connection:
        X.to_sql(name, connection, index=False)
        found = [row[0] for row in connection.execute(statement)]
    assert found == model.predict(X).tolist()


def test_a_table_without_a_column_is_refused_by_databases():
    model, X = fit_to_letters()
    for engine in ENGINES:
        with pytest.raises(Exception, match=r"no such column|does not have a column"):
            engine(model.to_sql("t"), X[["x"]], "t")


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[D]", "timedelta64[s]"])
def test_dates_are_classes_by_their_text(dtype):
    X = np.arange(40.0, dtype=np.float32)[:, None]
    model = PACBayesTreeClassifier(random_state=0).fit(X, np.array([1, 2], dtype).repeat(20))
    texts = [str(one) for one in model.classes_]
    assert model.to_dict()["classes"] == texts
    label, _ = predict_with_onnx(model.to_onnx(), X)
    assert list(label) == np.repeat(texts, 20).tolist()
    for engine in ENGINES:
        found = engine(model.to_sql("t"), pd.DataFrame({"x0": X[:, 0]}), "t")
        assert list(found["prediction"]) == np.repeat(texts, 20).tolist()


def test_graphs_name_the_positive_class_on_request():
    X = np.arange(40.0, dtype=np.float32)[:, None]
    for classes in (["default", "paid"], [0, 1], [False, True]):
        model = PACBayesTreeClassifier(random_state=0).fit(X, np.repeat(classes, 20))
        graph = model.to_onnx(pos_label=classes[0])
        entries = {entry.key: json.loads(entry.value) for entry in graph.metadata_props}
        assert entries["pos_label"] == classes[0]
        plain = model.to_onnx()
        assert "pos_label" not in {entry.key for entry in plain.metadata_props}
        assert graph.graph == plain.graph
        with pytest.raises(ValueError, match="pos_label must be one of the classes"):
            model.to_onnx(pos_label="late")


@pytest.mark.parametrize("kind", ALL_CLASSIFIERS)
@pytest.mark.parametrize("pos_label", [None, "it's", "paid"])
def test_statements_predict_by_a_threshold(kind, pos_label):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6].astype(np.float32)
    model = ALL_CLASSIFIERS[kind].fit(X, np.where(y == 0, "it's", "paid"))
    positive = 0 if pos_label == "it's" else 1
    rows = X.mask(np.random.default_rng(0).random(X.shape) < 0.05)
    ends = np.quantile(model.predict_proba(rows)[:, positive], [0, 1])
    for threshold in (ends.mean(), np.float32(ends @ [0.25, 0.75])):
        asked = {"threshold": threshold, "pos_label": pos_label}
        truth = pd.DataFrame(predict_columns(model, rows, **asked))
        assert truth["prediction"].nunique() == 2
        # The probabilities of databases are rounded elsewhere.
        is_clear = abs(truth.iloc[:, 1 + positive] - float(threshold)) > 1e-12
        assert is_clear.mean() > 0.9
        statement = model.to_sql("t", keep=["mean radius"], **asked)
        for engine in ENGINES:
            found = engine(statement, rows, "t")
            assert [*found][:4] == ["mean radius", *truth.columns]
            assert found["prediction"][is_clear].equals(truth["prediction"][is_clear])
            values = found.iloc[:, 2:4].to_numpy(float)
            np.testing.assert_allclose(values, truth.iloc[:, 1:], atol=1e-14)


def test_a_probability_that_equals_the_threshold_is_positive():
    X = pd.DataFrame({"x": np.arange(40.0, dtype=np.float32)})
    y = np.where(X["x"] % 4 == 0, True, X["x"] > 19)
    model = PrunedTreeClassifier(Cart(max_leaf_nodes=2), random_state=0).fit(X, y)
    low, _ = np.unique(model.predict_proba(X)[:, 1])
    for threshold, expected in ((0, 40), (low, 40), (np.nextafter(low, 1), 20), (1, 20)):
        for engine in ENGINES:
            found = engine(model.to_sql("t", threshold=threshold), X, "t")
            assert found["prediction"].sum() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pos_label": "a"}, "pos_label needs a threshold of its probability"),
        ({"threshold": 0.5, "pos_label": "c"}, "pos_label must be one of the classes 'a' and 'b'"),
        ({"threshold": 1.5}, r"threshold must lie in \[0, 1\], got 1.5"),
        ({"threshold": float("nan")}, r"threshold must lie in \[0, 1\], got nan"),
        ({"threshold": "0.5"}, r"threshold must lie in \[0, 1\], got '0.5'"),
    ],
)
def test_thresholds_of_statements_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_to_letters()[0].to_sql("t", **arguments)


def test_thresholds_of_statements_need_two_classes():
    X, y = load_iris(return_X_y=True)
    for model in (PrunedTreeClassifier(), PrunedTreeRegressor()):
        with pytest.raises(ValueError, match="unless the model is a classifier of two classes"):
            model.fit(X, y).to_sql("t", threshold=0.5)


def test_whole_numbers_that_others_would_change_are_refused():
    X = np.arange(40.0)[:, None]
    y = np.array([1, 2**63 + 5], dtype=np.uint64).repeat(20)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    assert model.to_dict()["classes"] == [1, 2**63 + 5]
    for write in (lambda: model.to_sql("t"), model.to_onnx):
        with pytest.raises(ValueError, match="64 bits"):
            write()


@pytest.mark.slow
def test_large_ensembles_and_deep_trees_stay_within_what_databases_bound():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 2)).astype(np.float32), columns=["x", "y"])
    deep = PACBayesTreeRegressor(lambda_error=1.0, lambda_penalty=0.0).fit(X, X["x"] * X["y"])
    assert deep.tree_.depth > 20
    lacking = X[:50].mask(rng.random((50, 2)) < 0.2)
    expect_sql(deep, lacking)
    many = BoostedTreesClassifier(max_iter=300, max_leaf_nodes=4, random_state=0)
    expect_sql(many.fit(X, X["x"] > 0), lacking)


# -- libraries that take exports -------------------------------------------------------------------


def test_scikit_learn_shows_the_vote():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = PACBayesTreeClassifier(max_depth=3, random_state=0).fit(X, y).to_sklearn()
    assert "petal" in export_text(model, feature_names=list(X))
    assert len(plot_tree(model)) >= model.tree_.node_count
    inner = model.tree_.children_left >= 0
    rows = model.tree_.weighted_n_node_samples
    left, right = model.tree_.children_left[inner], model.tree_.children_right[inner]
    assert np.allclose(rows[inner], rows[left] + rows[right])
    assert rows[0] == pytest.approx(150)
    assert (model.tree_.impurity >= 0).all()


@pytest.mark.parametrize("kind", ["tree", "forest", "boosted"])
def test_shap_explains_exported_models(kind):
    shap = pytest.importorskip("shap")
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    model = REGRESSORS[kind].fit(X, y)
    explained = shap.TreeExplainer(model.to_sklearn())(X[:5])
    total = explained.values.sum(axis=1) + explained.base_values
    np.testing.assert_allclose(total, model.predict(X[:5]), 1e-5)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_skl2onnx_converts_pipelines(kind):
    skl2onnx = pytest.importorskip("skl2onnx")
    register_converters()
    X, signal = make_mixed_table()
    _, codes = np.unique(X["size of it"].astype(float).fillna(7.0), return_inverse=True)
    X = np.column_stack([X["order"].fillna(0), codes]).astype(np.float32)
    model = clone_with(CLASSIFIERS[kind], categorical_features=[1])
    for names in (["a", "b"], ["a", "b", "c"]):
        y = np.array(names)[np.digitize(signal, [1, 1.5][: len(names) - 1])]
        # onnxruntime fills in float32 only.
        for dtype, before in ((np.float32, [SimpleImputer(), OrdinalEncoder()]), (np.float64, [])):
            rows = X.astype(dtype)
            pipe = make_pipeline(*before, model).fit(rows, y)
            graph = skl2onnx.to_onnx(pipe, rows[:1], options={"zipmap": False})
            label, value = predict_with_onnx(graph, rows)
            assert np.abs(value - pipe.predict_proba(rows)).max() <= 1e-6
            assert np.array_equal(label, pipe.predict(rows))


@pytest.mark.slow
def test_converters_of_a_new_process_include_all_estimators():
    """Packages are imported when a name of theirs is used, and nothing here uses one."""
    pytest.importorskip("skl2onnx")
    code = (
        "from certree.export import register_converters; register_converters()\n"
        "from skl2onnx._supported_operators import sklearn_operator_name_map as known\n"
        "print(*{kind.__name__ for kind in known})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {
        "BoostedTreesClassifier",
        "BoostedTreesRegressor",
        "CertifiedTreeClassifier",
        "TreeForestClassifier",
    } <= {*done.stdout.split()}


def clone_with(model, **parameters):
    return type(model)(**model.get_params(deep=False)).set_params(**parameters)


def test_skl2onnx_converts_pipelines_of_numbers():
    skl2onnx = pytest.importorskip("skl2onnx")
    register_converters()
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    for model in REGRESSORS.values():
        pipe = make_pipeline(SimpleImputer(), model).fit(X, y)
        _, value = predict_with_onnx(skl2onnx.to_onnx(pipe, X[:1]), X)
        np.testing.assert_allclose(value, pipe.predict(X), 1e-6)


@pytest.mark.parametrize(
    "model", [*CLASSIFIERS.values(), REGRESSORS["tree"], NaiveBayesClassifier()]
)
def test_skops_keeps_models(model):
    skops = pytest.importorskip("skops.io")
    X, signal = make_mixed_table()
    model.fit(X, signal > 1)
    data = skops.dumps(model)
    types = skops.get_untrusted_types(data=data)
    assert all(name.startswith("certree.") for name in types)
    again = skops.loads(data, trusted=types)
    assert np.array_equal(predicted(again, X), predicted(model, X))


@pytest.mark.parametrize(("scale", "weight"), [(1e155, 1.0), (1.0, 1e100)])
def test_huge_numbers_and_weights_are_copied_to_scikit_learn(scale, weight):
    X = np.arange(40.0)[:, None]
    y = np.full(40, scale)
    model = PACBayesTreeRegressor(lambda_error=1.0).fit(X, y, np.full(40, weight))
    copy = model.to_sklearn()
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.tree_.n_node_samples.min() > 0


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesClassifier(max_iter=9, random_state=0),
        BoostedTreesRegressor(max_iter=9, random_state=0),
        TreeForestClassifier(5, random_state=0),
        TreeForestRegressor(5, random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_infinite_numbers_go_where_the_model_sends_them(model, missing, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.2] = np.inf
    X[rng.random(X.shape) < 0.1] = -np.inf
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    y = (np.where(np.isnan(X[:, 0]), -2, X[:, 0]) > rng.normal(size=300)).astype(int)
    table = pd.DataFrame(X, columns=[*"abc"])
    model = clone(model).fit(table, y)
    # With missing values some splits only separate these from all others, infinity included.
    assert missing == (model.trees_.threshold == np.finfo(np.float64).max).any()
    expect_sql(model, table)
    save(model, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(table), model.predict(table))
    expect_equal(model, table, ["onnx"], 1e-6)
    takes_infinities = isinstance(model, BoostedTreesClassifier | BoostedTreesRegressor)
    exports = ["dict", "onnx_float64", *(["sklearn"] if takes_infinities else [])]
    expect_equal(model, table, exports, 1e-12)


LARGE = [
    BoostedTreesRegressor(max_iter=3, random_state=0),
    BoostedTreesRegressor("poisson", max_iter=3, random_state=0),
    TreeForestRegressor(3, random_state=0),
    PACBayesTreeRegressor(random_state=0),
]


@pytest.mark.parametrize("model", LARGE, ids=["boosted", "logarithm", "forest", "tree"])
def test_predictions_that_float32_does_not_hold_are_refused(model):
    X = np.random.default_rng(0).random((300, 2))
    y = 1 + X[:, 0]
    for unit in (1e60, -1e60):
        if unit < 0 and getattr(model, "loss", None) == "poisson":
            continue
        fitted = clone(model).fit(X, y * unit)
        with pytest.raises(ValueError, match=r"predictions may be larger than 3\.4e\+38"):
            fitted.to_onnx()
        values = predict_with_onnx(fitted.to_onnx(dtype="float64"), X)[1]
        np.testing.assert_allclose(values, fitted.predict(X), rtol=1e-12)
    within = clone(model).fit(X, y * 1e37)
    assert np.isfinite(predict_with_onnx(within.to_onnx(), X.astype(np.float32))[1]).all()
