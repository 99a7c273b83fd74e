"""Categories, constraints and the switches of greedy growth, through the estimators."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import certree
import reference
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRanker,
    BoostedTreesRegressor,
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    Dyadic,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
)

CLASSIFIERS = [PACBayesTreeClassifier, PrunedTreeClassifier, HelmboldSchapireTreeClassifier]
ESTIMATORS = [*CLASSIFIERS, PACBayesTreeRegressor, PrunedTreeRegressor]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
CITIES = np.array(["Athens", "Bern", "Cairo", "Delhi", "Essen", "Fez"])


def mixed(n=400, seed=0):
    """A data frame with categories that matter, in no order, and two classes or a number."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 6, n)
    size = rng.normal(size=n)
    signal = np.isin(city, [0, 2, 5]) + 0.3 * size + rng.normal(scale=0.3, size=n)
    names = np.where(rng.random(n) < 0.05, None, CITIES[city])
    frame = pd.DataFrame({"city": pd.Categorical(names), "size": size})
    return frame, signal


def target(estimator, signal):
    return signal if estimator in ESTIMATORS[3:] else np.where(signal > 0.5, "yes", "no")


@every_estimator
def test_categories_of_a_frame_are_found_and_used(estimator):
    frame, signal = mixed()
    y = target(estimator, signal)
    model = estimator(random_state=0).fit(frame, y)
    assert [known and {*known} for known in model.categories_.names] == [{*CITIES}, None]
    assert list(model.feature_names_in_) == ["city", "size"]
    assert "city in {" in model.export_text() or "city not in {" in model.export_text()
    score = cross_val_score(estimator(random_state=0), frame, y, cv=3).mean()
    assert score > (0.6 if estimator in ESTIMATORS[3:] else 0.8)


@every_estimator
def test_the_library_of_the_table_does_not_matter(estimator):
    frame, signal = mixed(200)
    y = target(estimator, signal)
    model = estimator(random_state=0)
    expected = clone(model).fit(frame, y).predict(frame)
    as_polars = pl.from_pandas(frame.astype({"city": str}).where(frame.notna(), None))
    np.testing.assert_array_equal(clone(model).fit(as_polars, y).predict(as_polars), expected)
    as_arrow = as_polars.to_arrow()
    np.testing.assert_array_equal(clone(model).fit(as_arrow, y).predict(as_arrow), expected)
    as_objects = frame.astype(object).to_numpy()
    for chosen in ([0], [True, False]):
        other = clone(model).set_params(categorical_features=chosen).fit(as_objects, y)
        np.testing.assert_array_equal(other.predict(as_objects), expected)
    named = clone(model).set_params(categorical_features=["city"])
    np.testing.assert_array_equal(named.fit(frame, y).predict(frame), expected)


@every_estimator
def test_unseen_categories_go_to_the_larger_child(estimator):
    frame, signal = mixed()
    model = estimator(random_state=0).fit(frame, target(estimator, signal))
    other = frame.assign(city=pd.Categorical(["Graz"] * len(frame)))
    rows = model.categories_.encode(other)
    assert (rows[:, frame.columns.get_loc("city")] == -1).all()
    np.testing.assert_array_equal(model.tree_.apply(rows), reference.apply(model.tree_, rows))
    np.testing.assert_array_equal(model.apply(other), model.tree_.apply(rows))


@every_estimator
@pytest.mark.parametrize("grower", ["kd", "dyadic"])
def test_growers_that_take_categories_as_numbers_take_unseen_ones_as_missing(estimator, grower):
    frame, signal = mixed()
    model = estimator(grower, random_state=0).fit(frame, target(estimator, signal))
    other = frame.assign(city=pd.Categorical(["Graz"] * len(frame)))
    missing = frame.assign(city=pd.Categorical([None] * len(frame), categories=CITIES))
    np.testing.assert_array_equal(model.predict(other), model.predict(missing))


@every_estimator
def test_rows_with_categories_are_refused_as_those_of_numbers_are(estimator):
    frame, signal = mixed(60)
    for other, words in (
        (frame.assign(size=np.inf), "Input X contains infinity"),
        (frame[:0], "Found array with 0 sample"),
    ):
        for X in (other, other[["size"]]):
            model = estimator(random_state=0).fit(frame[X.columns], target(estimator, signal))
            with pytest.raises(ValueError, match=re.escape(words)):
                model.predict(X)


@every_estimator
@pytest.mark.parametrize("grower", ["kd", "dyadic"])
def test_other_growers_take_categories_as_numbers(estimator, grower):
    frame, signal = mixed()
    model = estimator(grower, random_state=0).fit(frame, target(estimator, signal))
    assert len(model.tree_.categories) == 0
    assert set(model.tree_.feature[~model.tree_.is_leaf]) == {0, 1}


@every_estimator
def test_a_model_with_categories_is_saved(estimator, tmp_path):
    frame, signal = mixed()
    model = estimator(random_state=0, monotonic_cst={"size": 1})
    model.set_params(categorical_features=["city"]).fit(frame, target(estimator, signal))
    certree.save(model, tmp_path / "model.npz")
    loaded = certree.load(tmp_path / "model.npz")
    assert loaded.categories_.names == model.categories_.names
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.export_text() == model.export_text()


@every_estimator
def test_columns_without_information_are_no_trouble(estimator):
    frame, signal = mixed(120)
    frame["one"] = pd.Categorical(["same"] * 120)
    frame["none"] = pd.Categorical([None] * 120)
    frame["nan"] = np.nan
    model = estimator(random_state=0).fit(frame, target(estimator, signal))
    assert set(model.tree_.feature[~model.tree_.is_leaf]) <= {0, 1}
    assert model.predict(frame).shape == (120,)


def test_objects_with_a_string_are_categories():
    frame, signal = mixed(50)
    objects = frame.astype(object).to_numpy()
    model, same = (
        PACBayesTreeClassifier(random_state=0).fit(X, signal > 0) for X in (frame, objects)
    )
    assert model.categories_.names == same.categories_.names
    np.testing.assert_array_equal(model.predict_proba(frame), same.predict_proba(objects))
    lacking = objects.copy()
    lacking[:, 0] = None
    model = PACBayesTreeClassifier().fit(lacking, signal > 0)
    np.testing.assert_array_equal(model.predict(objects), model.predict(lacking))


def test_other_strings_must_be_declared():
    frame, signal = mixed(50)
    with pytest.raises(ValueError, match="must hold numbers"):
        PACBayesTreeClassifier().fit(frame.astype(object).to_numpy().astype(str), signal > 0)
    with pytest.raises(ValueError, match=r"must lie in 0 \.\. 1, got 2"):
        PACBayesTreeClassifier(categorical_features=[2]).fit(frame, signal > 0)
    with pytest.raises(ValueError, match="must be among the feature names"):
        PACBayesTreeClassifier(categorical_features=["town"]).fit(frame, signal > 0)


@every_estimator
def test_constraints_hold_for_predictions(estimator):
    frame, signal = mixed()
    y = target(estimator, signal)
    line = pd.DataFrame({"city": pd.Categorical(["Bern"] * 200), "size": np.linspace(-2, 2, 200)})
    for slope in (1, -1):
        model = estimator(random_state=0, monotonic_cst=[0, slope]).fit(frame, y)
        by_name = estimator(random_state=0, monotonic_cst={"size": slope}).fit(frame, y)
        outcome = model.predict_proba(line)[:, 1] if y.dtype.kind == "U" else model.predict(line)
        assert (slope * np.diff(outcome) >= -1e-12).all()
        np.testing.assert_array_equal(by_name.predict(line), model.predict(line))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"monotonic_cst": [0, 2]}, "monotonic_cst must hold -1, 0 or 1"),
        ({"monotonic_cst": [1]}, r"monotonic_cst must have shape \(2,\)"),
        (
            {"monotonic_cst": {"length": 1}},
            r"monotonic_cst must have names .* got \['length'\]",
        ),
        ({"monotonic_cst": [1, 0]}, "monotonic_cst must be 0 for categorical features"),
        ({"monotonic_cst": [0, 1], "grower": "kd"}, "needs grower to be a Cart, got 'kd'"),
        (
            {"monotonic_cst": [0, 1], "grower": Dyadic()},
            r"needs grower to be a Cart, got Dyadic\(\)",
        ),
        ({"grower": Cart(max_leaf_nodes=0)}, "max_leaf_nodes must be None or an integer"),
        ({"grower": Cart(max_features=0.0)}, "max_features must be None, "),
        ({"grower": Cart(splitter="worst")}, 'splitter must be "best" or "random", got'),
        ({"grower": Cart(min_impurity_decrease=-1.0)}, "min_impurity_decrease must be a finite"),
        (
            {"grower": Cart(min_samples_split=1)},
            "min_samples_split must be a number >= 2, or",
        ),
        ({"grower": Cart(criterion="chaos")}, "criterion must be None or "),
    ],
)
def test_contradicting_switches_are_refused(changes, message):
    frame, signal = mixed(50)
    with pytest.raises(ValueError, match=message):
        PACBayesTreeClassifier(**changes).fit(frame, signal > 0)


def test_constraints_take_two_classes():
    frame, signal = mixed(60)
    with pytest.raises(ValueError, match="two classes, got 3"):
        PACBayesTreeClassifier(monotonic_cst=[0, 1]).fit(frame, np.digitize(signal, [0, 1]))


@every_estimator
def test_the_switches_of_growth_reach_the_tree(estimator):
    frame, signal = mixed()
    y = target(estimator, signal)
    fixed = {"inverse_temperature": 1.0} if estimator is HelmboldSchapireTreeClassifier else {}
    if estimator in (PACBayesTreeClassifier, PACBayesTreeRegressor):
        fixed = {"lambda_error": 1.0, "lambda_penalty": 0.0}
    if estimator in (PrunedTreeClassifier, PrunedTreeRegressor):
        fixed = {"alpha": 0.0}
    model = estimator(random_state=3, **fixed)
    full = clone(model).fit(frame, y).get_n_leaves()
    for name, value in (
        ("max_leaf_nodes", 5),
        ("min_impurity_decrease", 5.0 / len(frame)),
        ("min_samples_split", 100),
    ):
        small = clone(model).set_params(**{f"grower__{name}": value}).fit(frame, y)
        assert small.get_n_leaves() < full
        if name == "max_leaf_nodes":
            assert small.get_n_leaves() <= 5
    for changes in ({"grower__splitter": "random"}, {"grower__max_features": 1}):
        drawn = clone(model).set_params(**changes)
        first = clone(drawn).fit(frame, y)
        again = clone(drawn).fit(frame, y)
        other = clone(drawn).set_params(random_state=4).fit(frame, y)
        np.testing.assert_array_equal(first.tree_.threshold, again.tree_.threshold)
        assert not np.array_equal(first.tree_.threshold, other.tree_.threshold)


def test_a_random_column_of_many_categories_costs_nothing():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(4000) < 0.5, rng.integers(0, 1000, 4000)]).astype(float)
    y = rng.random(4000) < np.where(X[:, 0] == 1, 0.68, 0.32)
    model = PACBayesTreeClassifier(categorical_features=[1], random_state=0).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.66
    shares = model.predict_proba(X[2000:])
    assert log_loss(y[2000:], shares) < 0.65


@every_estimator
@pytest.mark.parametrize("n_names", [260, 140])
def test_a_column_that_nearly_is_an_identifier_warns(estimator, n_names):
    frame, signal = mixed(400)
    names = np.arange(400) % n_names
    frame["customer"] = np.where(np.arange(400) < 300, [f"c{i}" for i in names], None)
    y = target(estimator, signal)
    if n_names == 140:  # less than half of the 300 rows that have a name
        estimator(random_state=0).fit(frame, y)
        return
    words = (
        "feature 'customer' has 260 categories in 300 rows: it nearly is an identifier.* or dates"
    )
    with pytest.warns(UserWarning, match=words):
        estimator(random_state=0).fit(frame, y)


@pytest.mark.parametrize(("n_blank", "is_number"), [(0, True), (11, True), (60, False)])
def test_the_warning_of_an_identifier_says_how_to_convert_numbers_that_are_text(n_blank, is_number):
    frame, signal = mixed(400)
    frame["total"] = [f"{i}.5" for i in range(400)]
    frame.loc[:n_blank, "total"] = [f" {i}" * 2 for i in range(n_blank + 1)]
    with pytest.warns(UserWarning, match="feature 'total' has 400 categories in 400 rows") as found:
        PACBayesTreeClassifier(random_state=0).fit(frame, signal > 0.5)
    (message,) = [str(one.message) for one in found if "'total'" in str(one.message)]
    hint = r"Most of its texts are numbers, such as '\d+\.5': pandas\.to_numeric\(column, "
    assert (re.search(hint, message) is not None) == is_number


@pytest.mark.parametrize(("n_days", "warns"), [(49, False), (50, True), (150, True)])
def test_dates_that_are_text_warn(n_days, warns):
    frame, signal = mixed(400)
    frame["day"] = pd.date_range("2024-01-01", periods=400).astype(str)[np.arange(400) % n_days]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        PACBayesTreeClassifier(random_state=0).fit(frame, signal > 0.5)
        texts = [*frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]]
        chosen = PACBayesTreeClassifier(random_state=0, categorical_features=texts)
        chosen.fit(frame, signal > 0.5)
        PACBayesTreeClassifier(random_state=0).fit(
            frame.assign(day=pd.to_datetime(frame["day"])), signal > 0.5
        )
    messages = [str(one.message) for one in found]
    start = (
        f"feature 'day' holds dates written as text, such as '2024-01-01', and is read as {n_days} "
    )
    assert [one.startswith(start) for one in messages] == [True] * warns
    frame["day"] = pd.date_range("2024-01-01", periods=400).astype(str)
    with pytest.warns(UserWarning, match=r"Most of its texts are dates, .*: pandas\.to_datetime"):
        PACBayesTreeClassifier(random_state=0).fit(frame, signal > 0.5)


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda i: f"${i},000.50", "numbers .* such as .*: read the file by certree.read_table"),
        (lambda i: f"{i},50 €", "numbers .* such as .*: read the file by certree.read_table"),
        (lambda i: f"{i}.5" if i else " ", r"numbers .*: convert it by pandas\.to_numeric\(column"),
        (
            lambda i: f"{i % 12 + 1:02}/{i // 12 + 10}/2024",
            r"dates .*\.to_datetime\(column, errors",
        ),
        (lambda i: f"{i // 12 + 10}/{i % 12 + 1:02}/2024", r"dates .*\(column, dayfirst=True, "),
        (lambda i: f"{i % 12 + 1:02}/{i % 11 + 1:02}/2024", r"dates .*\(column, dayfirst=\.\.\., "),
        (lambda i: f"{i:05}", None),
        (lambda i: f"{i + 1000}", None),
        (lambda i: f"shop {i}", None),
        (lambda i: f"{i}.5" if i % 9 else f"about {i}", None),
    ],
)
def test_numbers_and_dates_that_are_text_warn_by_the_rules_of_files(write, expected):
    frame, signal = mixed(400)
    frame["text"] = [write(i % 120) for i in range(400)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        PACBayesTreeClassifier(random_state=0).fit(frame, signal > 0.5)
    messages = [str(one.message) for one in found if "written as text" in str(one.message)]
    if expected is None:
        assert not messages
    else:
        (message,) = messages
        assert re.match(f"feature 'text' holds {expected}", message), message


def test_few_rows_or_numbers_warn_of_no_identifier():
    frame, signal = mixed(49)
    frame["city"] = [f"c{i}" for i in range(49)]
    PACBayesTreeClassifier(random_state=0).fit(frame, signal > 0.5)
    PACBayesTreeClassifier(random_state=0).fit(np.arange(400.0)[:, None], np.arange(400) % 2)


# -- one row alone ---------------------------------------------------------------------------------

EVERY = [
    AdaBoostTreeClassifier(n_estimators=3),
    BoostedTreesClassifier(max_iter=3),
    BoostedTreesRanker(max_iter=3),
    BoostedTreesRegressor(max_iter=3),
    CertifiedBoostedTreesClassifier(max_iter=3, duplicates="genuine", random_state=0),
    CertifiedBoostedTreesRegressor(max_iter=3, duplicates="genuine", random_state=0),
    CertifiedForestClassifier(3, duplicates="genuine", random_state=0),
    CertifiedTreeClassifier(duplicates="genuine", random_state=0),
    CertifiedTreeRegressor(duplicates="genuine", random_state=0),
    DecoratedTreeClassifier(),
    DecoratedTreeRegressor(),
    HelmboldSchapireTreeClassifier(),
    NaiveBayesClassifier(),
    PACBayesTreeClassifier(),
    PACBayesTreeRegressor(),
    PrunedTreeClassifier(),
    PrunedTreeRegressor(),
    TreeForestClassifier(3, random_state=0),
    TreeForestRegressor(3, random_state=0),
]
NAMES = ["", "a", "nan", "0", None]
HOLDERS = {
    "pandas": lambda names, x: pd.DataFrame({"a": names, "x": x}),
    "categories": lambda names, x: pd.DataFrame(
        {"a": pd.Categorical(names, ["unused", "nan", "", "0", "a"]), "x": x}
    ),
    "polars": lambda names, x: pl.DataFrame({"a": names, "x": x}),
    "Arrow": lambda names, x: pa.table({"a": names, "x": x}),
    "objects": lambda names, x: np.array([names, x.tolist()], dtype=object).T,
    "text": lambda names, _: np.array([[name or ""] for name in names]),
    "flags": lambda names, x: pd.DataFrame({"a": [name in ("", "a") for name in names], "x": x}),
    "numbers": lambda names, x: (
        np.array([[[-0.0, 1, 2, 2**53, np.nan][NAMES.index(name)] for name in names], x]).T
    ),
}


def test_every_estimator_is_asked_row_by_row():
    public = [getattr(certree, name) for name in certree.__all__]
    has_rows = [one for one in public if hasattr(one, "predict") and issubclass(one, BaseEstimator)]
    assert {type(one) for one in EVERY} == set(has_rows)


@pytest.mark.parametrize("model", EVERY, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("holder", HOLDERS)
def test_one_row_alone_is_predicted_as_in_its_table(model, holder):
    # Models of leaves take no missing values, and products of matrices round by their shapes.
    has_models = type(model) in (DecoratedTreeClassifier, DecoratedTreeRegressor)
    known = NAMES[:-1] if has_models else NAMES
    names = known * 15
    X = HOLDERS[holder](names, np.arange(float(len(names))) % 7)
    y = np.array([name in ("", "0") for name in names]).astype(float)
    chosen = {"text": [0], "numbers": [0]}.get(holder, "from_dtype")
    queries = {"group": [len(y)]} if isinstance(model, BoostedTreesRanker) else {}
    model = clone(model).set_params(categorical_features=chosen).fit(X, y, **queries)
    methods = [
        one for one in ("predict", "predict_proba", "decision_function") if hasattr(model, one)
    ]
    for method in methods:
        together = getattr(model, method)(X)
        for i in range(len(known)):
            alone = getattr(model, method)(X.iloc[[i]] if hasattr(X, "iloc") else X[i : i + 1])
            np.testing.assert_allclose(alone[0], together[i], rtol=1e-12 if has_models else 0)
