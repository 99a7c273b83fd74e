"""The door: what an estimator is given becomes rows that it is fitted on."""

import dataclasses
import re
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from certree import (
    BoostedTreesRegressor,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    Dyadic,
    Grid,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.rows.categories import UNKNOWN_CODE
from certree.rows.split import (
    TrainCalibrationSplit,
    TrainCalibrationSplitter,
    train_calibration_split,
)
from certree.rows.training import (
    RowInputMixin,
    Training,
    compute_balanced_weights,
    to_table,
    training_rows,
)

CLASSIFIERS = [
    PACBayesTreeClassifier(random_state=0),
    PACBayesTreeClassifier("kd", random_state=0),
    PACBayesTreeClassifier(Grid([[-5] * 3, [5] * 3]), max_depth=6, random_state=0),
    PrunedTreeClassifier(random_state=0),
    PrunedTreeClassifier(Dyadic(), rule="spatially-adaptive", random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    DecoratedTreeClassifier(min_samples_model=30, random_state=0),
    DecoratedTreeClassifier(rule="polynomial", alpha=1e-3, min_samples_model=30, random_state=0),
    CertifiedTreeClassifier(random_state=0),
    CertifiedTreeClassifier(posteriors="cv", selection="vote", random_state=0),
    CertifiedTreeClassifier(preprocessor=StandardScaler(), random_state=0),
    NaiveBayesClassifier(),
    NaiveBayesClassifier(densities="histogram"),
]
REGRESSORS = [
    PACBayesTreeRegressor(random_state=0),
    PrunedTreeRegressor(random_state=0),
    DecoratedTreeRegressor(min_samples_model=30, random_state=0),
]
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
every_estimator = pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=str)


def two_classes(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    is_yes = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1
    return X, np.where(is_yes, "yes", "no").astype("<U5")


def target_of(model, X, y):
    return X[:, 0] + (y == "yes") if isinstance(model, RegressorMixin) else y


def interleaved(there, others, seed=0):
    """Places of some rows among others that are mixed in."""
    place = np.random.default_rng(seed).permutation(there + others)[:there]
    return np.sort(place)


def assert_same(a, b, where="model"):
    """Two values with all that they hold are equal, array by array, bit by bit."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray) and a.dtype != object:
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif isinstance(a, np.ndarray | list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for name in a:
            assert_same(a[name], b[name], f"{where}[{name!r}]")
    elif dataclasses.is_dataclass(a) and not isinstance(a, type):
        for field in dataclasses.fields(a):
            name = field.name
            assert_same(getattr(a, name), getattr(b, name), f"{where}.{name}")
    elif isinstance(a, bool | int | float | str | type(None) | np.generic | Fraction):
        np.testing.assert_equal(a, b, err_msg=where)
    elif hasattr(a, "__dict__") and not callable(a):
        assert_same(vars(a), vars(b), where)


def learned(model):
    """The fitted attributes; validation samples without their places among the rows that were given."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    if found.get("calibration_") is not None:
        rows = found["calibration_"]
        found["calibration_"] = [rows.leaf, rows.y, rows.splits, rows.weight]
    return found


def assert_same_fit(a, b):
    """All that two fits have learned is equal."""
    for name in ("predict", "predict_proba"):
        if hasattr(a, name):
            X = two_classes(50, 1)[0]
            np.testing.assert_array_equal(getattr(a, name)(X), getattr(b, name)(X))
    assert len(learned(a)) >= 5
    assert_same(learned(a), learned(b))


# -- names of columns -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["y", "sample_weight", "groups"])
@pytest.mark.parametrize("kind", [TreeForestRegressor, PrunedTreeClassifier])
def test_names_of_columns_are_refused_for_rows_in_memory(kind, name):
    X, y = two_classes()
    y = (y == y[0]).astype(float)
    with pytest.raises(
        TypeError, match=f"^{name} must have one value for each row of X, got .*'a':"
    ):
        kind().fit(X, **{"y": y, name: "a"})


# -- rows of weight zero ---------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 2.0, 0.7])
@every_estimator
def test_rows_of_weight_zero_leave_no_trace(model, weight):
    X, y = two_classes()
    y = target_of(model, X, y)
    place = interleaved(len(X), 40)
    # Infinities and other targets stand where nothing is to look at them.
    all_X, all_y = np.full((240, 3), np.inf), np.resize(y[::-1], 240)
    all_X[place], all_y[place] = X, y
    weights = np.zeros(240)
    weights[place] = weight * (1 + np.arange(200) % 3)
    a = clone(model).fit(all_X, all_y, sample_weight=weights)
    assert_same_fit(a, clone(model).fit(X, y, sample_weight=weights[place]))


@every_classifier
def test_classes_seen_at_weight_zero_alone_are_no_classes(model):
    X, y = two_classes()
    all_X, all_y = np.vstack([X, X[:30]]), np.concatenate([y, np.full(30, "never")])
    weight = np.repeat([1.0, 0], [200, 30])
    a = clone(model).fit(all_X, all_y, sample_weight=weight)
    assert a.classes_.tolist() == ["no", "yes"]
    assert_same_fit(a, clone(model).fit(X, y, sample_weight=np.ones(200)))


@every_classifier
def test_classes_of_weight_zero_are_no_classes_either(model):
    X, y = two_classes()
    y[:40] = "never"
    weights = {"never": 0, "yes": 2, "no": 1}
    a = clone(model).set_params(class_weight=weights).fit(X, y)
    assert a.classes_.tolist() == ["no", "yes"]
    there = {"yes": 2, "no": 1}
    assert_same_fit(a, clone(model).set_params(class_weight=there).fit(X[40:], y[40:]))


@pytest.mark.parametrize("dtype", ["category", object])
@every_estimator
def test_categories_seen_at_weight_zero_alone_are_unknown(model, dtype):
    if isinstance(model.get_params().get("preprocessor"), StandardScaler):
        pytest.skip("a scaler takes no categories")
    if model.get_params().get("densities") == "histogram":
        pytest.skip("categories have no histogram")
    X, y = two_classes()
    y = target_of(model, X, y)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "high", "low")})
    table.loc[:29, "c"] = "never"
    table["c"] = table["c"].astype(dtype)
    weight = np.repeat([0.0, 1], [30, 170])
    model = clone(model).set_params(categorical_features=["c"])
    a, b = clone(model).fit(table, y, sample_weight=weight), clone(model)
    b.fit(table[30:], y[30:], sample_weight=weight[30:])
    assert [known and {*known} for known in a.categories_.names] == [None, None, {"high", "low"}]
    assert_same(learned(a), learned(b))
    if get_tags(a).input_tags.allow_nan:  # else what is unknown cannot be predicted
        unknown = table[:30].assign(c="new")
        np.testing.assert_array_equal(a.predict(table[:30]), a.predict(unknown))


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from([None, 0.4]))
def test_the_rows_that_are_left_are_those_of_positive_weight(seed, n_groups, train_size):
    rng = np.random.default_rng(seed)
    n = 40
    X, y, weight = rng.normal(size=(n, 2)), rng.integers(0, 3, n), rng.integers(0, 3, n) * 1.5
    weight[0] = 1
    groups, here = rng.integers(0, 3 * n_groups, n), np.flatnonzero(weight)
    model = Classifier()
    rows = model._prepare_training(
        X, y, weight, groups=groups, row_splitter=dealt(train_size, RandomState(seed))
    )
    np.testing.assert_array_equal(rows.X, X[here])
    known = np.append(model.classes_, [-1] * 3)[rows.y]
    np.testing.assert_array_equal(known, np.where(np.isin(y[here], model.classes_), y[here], -1))
    growing = rows.split.train if len(rows.split.train) else slice(None)
    np.testing.assert_array_equal(model.classes_, np.unique(y[here][growing]))
    np.testing.assert_array_equal(rows.weight, weight[here])
    np.testing.assert_array_equal(rows.split.groups, groups[here])
    np.testing.assert_array_equal(
        np.arange(n) if rows.split.indices is None else rows.split.indices, here
    )
    assert rows.y.dtype == np.int32
    if train_size is None:
        expected = TrainCalibrationSplit.train_on_all(len(here))
    else:
        expected = train_calibration_split(len(here), train_size, RandomState(seed), groups[here])
    np.testing.assert_array_equal(rows.split.train, expected.train)
    np.testing.assert_array_equal(rows.split.calibration, expected.calibration)
    assert not set(groups[here][rows.split.train]) & set(groups[here][rows.split.calibration])
    both = np.concatenate([rows.split.train, rows.split.calibration])
    np.testing.assert_array_equal(np.sort(both), np.arange(len(here)))


# -- the order of the steps ------------------------------------------------------------------------

RandomState = np.random.RandomState


class Recorder(TransformerMixin, BaseEstimator):
    """Doubles the rows and remembers which it has seen."""

    seen: ClassVar[list[Any]] = []

    def fit(self, X, y):
        self.seen.append(("fit", np.asarray(X)[:, 0].tolist(), list(y)))
        return self

    def transform(self, X):
        self.seen.append(("transform", np.asarray(X)[:, 0].tolist()))
        return np.asarray(X) * 2


class Classifier(ClassifierMixin, RowInputMixin, BaseEstimator):
    """The parameters that the door reads."""

    def __init__(self, categorical_features=None, class_weight=None, preprocessor=None):
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.preprocessor = preprocessor

    def fit(self, X, y):
        self._prepare_training(X, y)
        return self


class Regressor(RegressorMixin, RowInputMixin, BaseEstimator):
    def __init__(self, categorical_features=None):
        self.categorical_features = categorical_features


def dealt(train_size, random_state):
    """What deals a share of the rows to growing; None: all grow."""
    if train_size is None:
        return None
    return TrainCalibrationSplitter(train_size, random_state)


def test_steps_come_in_their_order_and_each_sees_only_what_it_may():
    X = np.arange(20.0)[:, None]
    y = np.array(["a", "b"] * 10)
    weight = (np.arange(20) >= 4).astype(float)
    model, given = Classifier(preprocessor=Recorder()), []
    model._find_categories = lambda rows, _: given.append(rows)
    Recorder.seen.clear()
    rows = model._prepare_training(X, y, weight, row_splitter=dealt(0.5, RandomState(0)))
    growing = rows.split.indices[rows.split.train]
    assert len(growing) == 8
    fit, transform = Recorder.seen
    assert fit == ("fit", X[growing, 0].tolist(), y[growing].tolist())
    assert transform == ("transform", X[4:, 0].tolist())
    # Categories are learned after the preprocessing, from the training samples; None stands for no
    # names.
    np.testing.assert_array_equal(given[0], 2 * X[growing])
    np.testing.assert_array_equal(rows.X, 2 * X[4:])
    assert model.n_features_in_ == 1
    assert not hasattr(model.preprocessor, "seen_")
    assert model.preprocessor_ is not model.preprocessor


def test_categories_are_those_of_the_growing_rows():
    table = pd.DataFrame({"c": [f"c{i}" for i in range(20)]})
    model = Classifier(categorical_features=["c"])
    y, state = np.arange(20) % 2, RandomState(0)
    rows = model._prepare_training(table, y, row_splitter=dealt(0.25, state))
    names = sorted(f"c{i}" for i in rows.split.train)
    assert sorted(model.categories_.names[0]) == names
    assert (rows.X[rows.split.calibration] == UNKNOWN_CODE).all()
    everyone = Classifier(categorical_features=["c"])
    everyone._prepare_training(table, y, row_splitter=dealt(0, state))
    assert len(everyone.categories_.names[0]) == 20


# Of two mistakes the earlier step tells of its own.
MISTAKES = [
    ({"y": None}, "requires y to be passed, but the target y is None"),
    ({"y": np.full(20, np.nan)}, "Input y contains NaN"),
    (
        {"y": np.zeros(19)},
        "y must have one value for each row of X: Found input variables with inconsistent numbers of "
        "samples: [20, 19]",
    ),
    ({"sample_weight": np.ones(3)}, "sample_weight.shape == (3,), expected (20,)"),
    ({"groups": np.ones(3)}, "groups must have shape (20,), got (3,)"),
    ({"sample_weight": np.zeros(20)}, "at least one"),
    ({"train_size": 1e-9}, "leaves none to train"),
    ({"preprocessor": StandardScaler(copy=3)}, "'copy' parameter of StandardScaler"),
    ({"categorical_features": [7]}, "categorical_features must lie in 0 .. 1"),
    ({"X": np.full((20, 2), np.inf)}, "Input X contains infinity or a value too large"),
]


def entered(**changes):
    """The door with good arguments but those that are changed."""
    good = {
        "X": np.random.default_rng(0).normal(size=(20, 2)),
        "y": np.arange(20) % 2,
        "groups": np.arange(20),
        "train_size": 0.5,
        "random_state": RandomState(0),
    }
    given = {**good, **changes}
    given["row_splitter"] = dealt(given.pop("train_size"), given.pop("random_state"))
    names = ("categorical_features", "preprocessor", "class_weight")
    model = Classifier(**{name: given.pop(name) for name in names if name in given})
    return model._prepare_training(**given)


@pytest.mark.parametrize("first", range(len(MISTAKES)))
def test_mistakes_are_told_in_scikit_learn_s_words(first):
    changes, message = MISTAKES[first]
    with pytest.raises(ValueError, match=re.escape(message)):
        entered(**changes)


@pytest.mark.parametrize("second", [4, 6, 8])
@pytest.mark.parametrize("first", [0, 1, 2, 3, 4, 6])
def test_of_two_mistakes_that_of_the_earlier_step_is_told(first, second):
    if first >= second:
        return
    changes, message = MISTAKES[first]
    with pytest.raises(ValueError, match=re.escape(message)):
        entered(**MISTAKES[second][0], **changes)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros(4), [0, 1, 0, 1], "Expected 2D array, got 1D array instead"),
        (np.zeros((4, 0)), [0, 1, 0, 1], "0 feature"),
        (np.zeros((0, 2)), [], "0 sample"),
        (np.zeros((4, 2)), [0.5, 1.5, 2.5, 3.5], "Unknown label type: continuous"),
        (np.zeros((4, 2)), np.zeros((4, 2)), "y should be a 1d array"),
        ([["x", "y"]] * 4, [0, 1, 0, 1], "must hold numbers"),
        (np.zeros((4, 2)) * 1j, [0, 1, 0, 1], "Complex data not supported"),
    ],
)
def test_rows_of_no_use_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        Classifier()._prepare_training(X, y)


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        Classifier()._prepare_training(sparse.csr_matrix(np.eye(4)), [0, 1, 0, 1])


def test_classes_that_weigh_nothing_are_refused():
    with pytest.raises(ValueError, match="sample_weight must be positive for at least one row"):
        entered(class_weight={0: 0, 1: 0})


def test_a_preprocessor_takes_rows_that_grow():
    with pytest.raises(ValueError, match="preprocessor needs training rows"):
        entered(preprocessor=StandardScaler(), train_size=0)


def test_targets_are_codes_or_numbers_and_arrays_are_ready_for_the_core():
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32))
    model = Classifier()
    rows = model._prepare_training(X, ["b", "a", "b", "c", "a", "b"])
    assert rows.y.tolist() == [1, 0, 1, 2, 0, 1]
    assert (rows.y.dtype, rows.X.dtype) == (np.int32, np.float32)
    assert rows.X.flags.c_contiguous
    assert (rows.weight, rows.split.indices, rows.split.groups) == (None,) * 3
    assert (len(rows.split.train), len(rows.split.calibration)) == (6, 0)
    numbers = Regressor()._prepare_training(X, np.arange(6))
    assert numbers.y.dtype == np.float64
    table = pd.DataFrame(X, columns=["u", "v"])
    model._prepare_training(table, [0, 1] * 3)
    assert model.feature_names_in_.tolist() == ["u", "v"]


def test_the_door_tells_what_it_learned_and_changes_no_model():
    X = np.random.default_rng(0).normal(size=(6, 2))
    table = pd.DataFrame(X, columns=["u", "v"]).assign(w=list("ababab"))
    model = Classifier(categorical_features="from_dtype", preprocessor=None)
    before = dict(vars(model))
    _, learned = training_rows(model, table, [0, 1, 0, 2, 1, 0])
    assert vars(model) == before
    assert list(learned["feature_names_in_"]) == ["u", "v", "w"]
    assert learned["categories_"].names == (None, None, ("a", "b"))
    assert (learned["n_features_in_"], learned["n_classes_"]) == (3, 3)
    model._prepare_training(table, [0, 1, 0, 2, 1, 0])
    assert learned["dates_"] is learned["_table_format"] is None
    assert set(vars(model)) == (set(before) | set(learned)) - {"dates_", "_table_format"}
    # A fit to rows without names forgets those of the fit before; numbers have no classes.
    model._prepare_training(X, [0, 1] * 3)
    assert not hasattr(model, "feature_names_in_")
    _, of_numbers = training_rows(Regressor(), X, X[:, 0])
    assert set(of_numbers) == {
        "_table_format",
        "categories_",
        "dates_",
        "effective_sample_size_",
        "feature_names_in_",
        "n_features_in_",
    }


def test_rows_that_grow_stand_by_themselves_where_others_weigh():
    rows = entered(sample_weight=np.arange(20.0))
    np.testing.assert_array_equal(rows.train_subset.X, rows.X[rows.split.train])
    np.testing.assert_array_equal(rows.train_subset.weight, rows.weight[rows.split.train])
    assert entered(train_size=None).train_subset is None
    assert entered(train_size=0).train_subset is None


# -- rows that come later --------------------------------------------------------------------------


def test_later_rows_keep_to_what_the_model_knows():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.array(["a", "b"] * 10)
    model = Classifier().fit(X, y)
    again = model._prepare_training(X[:3], ["b", "b", "a"], reuse_encoding=True)
    assert again.y.tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match=r"y must hold classes among \['a' 'b'\], got \['c'\]"):
        model._prepare_training(X[:3], ["b", "c", "a"], reuse_encoding=True)
    with pytest.raises(ValueError, match="X has 1 features, but Classifier is expecting 2"):
        model._prepare_training(X[:3, :1], ["b", "b", "a"], reuse_encoding=True)
    with pytest.raises(ValueError, match="X has 1 features, but Classifier is expecting 2"):
        model._encode_new_rows(X[:3, :1])
    with pytest.raises(NotFittedError):
        Classifier()._encode_new_rows(X)


def test_later_rows_of_weight_zero_may_be_of_any_class():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.array(["a", "b"] * 10)
    model = Classifier().fit(X, y)
    rows = model._prepare_training(X[:3], ["b", "c", "a"], [1, 0, 1], reuse_encoding=True)
    assert rows.y.tolist() == [1, 0]


def test_one_row_may_stand_by_itself():
    assert np.shape(to_table([1.0, 2.0])) == (1, 2)
    assert to_table([1.0, "x"]).tolist() == [[1.0, "x"]]
    table = pd.DataFrame({"a": [1.0], "b": ["x"]})
    assert to_table(table) is table


# -- weights of classes ----------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [-1, -0.5, np.nan, np.inf, -np.inf, "2", None, 1j])
@every_classifier
def test_class_weights_that_are_no_weights_are_refused(model, factor):
    X, y = two_classes()
    weights = {0: 1.0, 1: factor}
    message = f"class_weight must be finite and non-negative, got {factor!r} for class 1"
    with pytest.raises(ValueError, match=re.escape(message)):
        clone(model).set_params(class_weight=weights).fit(X, y)


@pytest.mark.parametrize("factor", [-1, np.nan])
def test_batches_refuse_class_weights_that_are_no_weights(factor):
    X, y = two_classes()
    model = NaiveBayesClassifier(class_weight={1: factor})
    with pytest.raises(ValueError, match="class_weight must be finite and non-negative"):
        model.partial_fit(X, y, classes=[0, 1])


def test_balanced_classes_weigh_the_same_in_all_whatever_their_rows_weigh():
    rng = np.random.default_rng(0)
    y, weight = rng.integers(0, 3, 60), rng.integers(0, 4, 60).astype(float)
    balanced = weight * compute_balanced_weights(y, weight, TrainCalibrationSplit.train_on_all(60))
    totals = np.bincount(y, balanced)
    np.testing.assert_allclose(totals, totals.mean())
    assert totals.sum() == pytest.approx(weight.sum())
    copies = np.repeat(y, weight.astype(int))
    repeated = compute_balanced_weights(
        copies, None, TrainCalibrationSplit.train_on_all(len(copies))
    )
    factor = dict(zip(copies, repeated, strict=True))
    np.testing.assert_allclose(balanced, weight * [factor[k] for k in y])


# -- folds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_mask", [False, True])
def test_given_folds_number_all_rows_and_splitters_those_that_are_left(as_mask):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    weight = (np.arange(20) % 3 > 0) * 2.0
    rows = Classifier()._prepare_training(X, y, weight)
    grow, judge = np.arange(0, 20, 2), np.arange(1, 20, 2)
    masks = [np.isin(np.arange(20), side) for side in (grow, judge)]
    (fold,) = rows.split_folds([masks if as_mask else (grow, judge)], RandomState(0))
    for side, wanted in ((fold.train, grow), (fold.validation, judge)):
        np.testing.assert_array_equal(rows.split.indices[side], wanted[weight[wanted] > 0])
    folds = rows.split_folds(KFold(3), RandomState(0))
    expected = list(KFold(3).split(rows.X))
    for fold, (grow, judge) in zip(folds, expected, strict=True):
        np.testing.assert_array_equal(fold.train, grow)
        np.testing.assert_array_equal(fold.validation, judge)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "cv must have at least one fold with .*, got none"),
        (iter([]), "cv must have at least one fold with .*, got none"),
        ([([0, 1], [20])], "cv must hold row indices in 0 .. 19, got 20 .. 20"),
        ([([0, -1], [2])], "cv must hold row indices in 0 .. 19, got -1 .. 0"),
        ([([0, 1], [2**70])], "cv must hold row indices or masks of rows, got dtype object"),
        ([([0, 1], [2.0])], "cv must hold row indices or masks of rows, got dtype float64"),
        ([([0, 1], [[2, 3]])], r"cv must hold row indices in one dimension, got shape \(1, 2\)"),
        ([([True] * 19, [2])], "cv must have masks of 20 rows, got 19"),
        ([([0, 1], [])], "cv must have training and validation rows in each fold"),
        ([([], [0, 1])], "cv must have training and validation rows in each fold"),
        ([([0, 1],)], "cv must hold pairs"),
        ([3], "cv must hold pairs"),
        (10**9, "cv must be at most 1000 for 20 rows, got 1000000000"),
        (10**30, "cv must be at most 1000 for 20 rows, got 10"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_of_no_use_are_refused(cv, message, weighted):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    weight = np.ones(20)
    if weighted and not isinstance(cv, int):
        weight[[0, 5, 19]] = 0  # rows are numbered as they were given
    rows = Classifier()._prepare_training(X, y, weight if weighted else None)
    with pytest.raises(ValueError, match=message):
        rows.split_folds(cv, RandomState(0))


def test_folds_that_only_rows_of_weight_zero_judge_are_left_out():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    rows = Classifier()._prepare_training(X, y, np.arange(20) % 19 > 0)
    folds = rows.split_folds([([1, 2], [0, 19]), ([1, 2], [3, 19])], RandomState(0))
    assert [rows.split.indices[fold.validation].tolist() for fold in folds] == [[3]]
    with pytest.raises(ValueError, match="cv must have at least one fold"):
        rows.split_folds([([1, 2], [0, 19])], RandomState(0))


@every_estimator
def test_weights_whose_sum_is_too_large_are_refused(model):
    X, y = two_classes()
    y = y if is_classifier(model) else X[:, 0]
    with pytest.raises(ValueError, match=r"sample_weight must sum to at most 1e\+280"):
        clone(model).fit(X, y, np.full(200, 1e308))


def test_class_weights_that_make_infinite_weights_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight must sum to at most 1e\+280"):
        entered(class_weight={0: 1e308}, sample_weight=np.full(20, 1e10))
    with pytest.raises(ValueError, match=r"sample_weight must sum to at most 1e\+280"):
        entered(class_weight="balanced", sample_weight=np.full(20, 1e308))


@pytest.mark.parametrize(("cv", "n"), [(None, 5), (2, 2), (np.int64(4), 4)])
def test_a_number_of_folds_goes_by_content(cv, n):
    X, y = two_classes()
    rows = Classifier()._prepare_training(X, y)
    assert len(rows.split_folds(cv, RandomState(0))) == n


def test_some_of_the_rows_stand_by_themselves():
    X, y = two_classes(20)
    rows = entered(X=X, y=y, sample_weight=np.arange(20.0))
    part = rows.take(rows.split.train)
    np.testing.assert_array_equal(part.X, rows.X[rows.split.train])
    np.testing.assert_array_equal(part.weight, rows.weight[rows.split.train])
    assert isinstance(part, Training)
    assert part.split.indices is None
    np.testing.assert_array_equal(part.split.groups, rows.split.groups[rows.split.train])
    assert (len(part.split.train), len(part.split.calibration)) == (len(part.y), 0)


# -- groups ----------------------------------------------------------------------------------------


def test_groups_grow_or_weigh_as_a_whole():
    X, y = two_classes()
    groups = np.repeat([f"patient {i}" for i in range(40)], 5)
    rows = entered(X=X, y=y, groups=groups, train_size=0.35)
    growing = set(groups[rows.split.train])
    assert len(growing) == 14
    assert not growing & set(groups[rows.split.calibration])


def test_groups_of_rows_of_weight_zero_are_not_dealt():
    X, y = two_classes()
    groups = np.repeat(np.arange(40), 5)
    weight = (groups >= 20).astype(float)
    rows = entered(X=X, y=y, sample_weight=weight, groups=groups, train_size=0.5)
    assert (
        len(set(rows.split.groups[rows.split.train]))
        == len(set(rows.split.groups[rows.split.calibration]))
        == 10
    )
    with pytest.raises(ValueError, match="of 1 groups leaves none to"):
        entered(X=X, y=y, sample_weight=(groups == 3).astype(float), groups=groups)


# -- fits that fail --------------------------------------------------------------------------------


def failing(model, X, y):
    """Fits that fail early and late, with what they are given."""
    numeric = isinstance(model, RegressorMixin)
    yield {"X": X, "y": None}
    yield {"X": np.full_like(X, np.inf), "y": y}
    yield {"X": X[:, :1], "y": y, "sample_weight": -np.ones(len(y))}
    yield {"X": X, "y": np.full(len(y), np.nan) if numeric else np.linspace(0, 1, len(y))}


@every_estimator
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model):
    X, y = two_classes()
    y = target_of(model, X, y)
    fresh, fitted = clone(model), clone(model).fit(X, y)
    for one in (fresh, fitted):
        before = dict(vars(one))
        for arguments in failing(model, X, y):
            with pytest.raises(ValueError, match=r"\w"):
                one.fit(**arguments)
            assert list(vars(one)) == list(before)
            assert all(vars(one)[name] is value for name, value in before.items())


class Interrupted(BaseEstimator):
    """A grower that is interrupted, after all has been checked."""

    depends_on_rows = True
    supports_monotonic_cst = True

    def grow(self, rows):
        assert len(rows.X) > 0
        raise KeyboardInterrupt


@every_estimator
def test_a_fit_that_is_interrupted_late_leaves_the_estimator_as_it_was(model):
    if isinstance(model, NaiveBayesClassifier):
        pytest.skip("grows no tree")
    X, y = two_classes()
    y = target_of(model, X, y)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    one = clone(model).fit(X, y).set_params(grower=Interrupted())
    before = dict(vars(one))
    with pytest.raises(KeyboardInterrupt):
        one.fit(table, y[::-1])
    assert list(vars(one)) == list(before)
    assert all(vars(one)[name] is value for name, value in before.items())


def test_a_leaf_model_that_takes_no_weights_is_refused_before_anything_changes():
    class Unweighted(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    X, y = two_classes()
    model = DecoratedTreeClassifier(Unweighted(), min_samples_model=30)
    with pytest.raises(ValueError, match="does not support sample_weight"):
        model.fit(X, y, sample_weight=np.ones(200))
    assert not [name for name in vars(model) if name.endswith("_")]


def test_folds_by_groups_are_given_as_indices():
    X, y = two_classes()
    splits = list(GroupKFold(4).split(X, groups=np.repeat(np.arange(20), 10)))
    weight = (np.arange(200) % 5 > 0).astype(float)
    here = weight > 0
    model = PACBayesTreeClassifier(cv=splits, random_state=0).fit(X, y, sample_weight=weight)
    place = np.cumsum(here) - 1
    kept = [tuple(place[side[here[side]]] for side in split) for split in splits]
    other = PACBayesTreeClassifier(cv=kept, random_state=0).fit(X[here], y[here])
    assert model.best_params_ == other.best_params_
    assert model.mixture_weights_ == other.mixture_weights_


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 2**53 + 1]), "must hold .* exactly, got 9007199254740993"),
        (np.array([1, 2**53 + 1], dtype=object), "must hold .* got 9007199254740993"),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), "must hold numbers, got dates or times"),
        (np.array([1, 2], dtype="m8[s]"), "must hold numbers, got dates or times"),
        (
            np.array([np.timedelta64(1, "s"), 2], dtype=object),
            "must hold numbers, got dates or times",
        ),
        (
            pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])),
            "must hold numbers, got dates or times",
        ),
    ],
)
def test_targets_and_weights_are_numbers_that_float64_holds(values, message):
    X = [[0.0], [1.0]]
    with pytest.raises(ValueError, match=f"y {message}"):
        PrunedTreeRegressor().fit(X, values)
    with pytest.raises(ValueError, match=f"sample_weight {message}"):
        PrunedTreeClassifier().fit(X, ["a", "b"], sample_weight=values)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_few_plain_rows_are_taken_as_they_are(kind):
    X, y = load_iris(return_X_y=True)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    few = np.ascontiguousarray(X[:5], dtype=kind)
    assert model._encode_new_rows(few) is few
    lacking = few.copy()
    lacking[0, 0] = np.nan
    assert model._encode_new_rows(lacking) is lacking
    for other in (
        few[:, ::-1],
        few.T.copy().T,
        few.astype(kind(0).dtype.newbyteorder()),
        few.tolist(),
    ):
        read = model._encode_new_rows(other)
        assert read is not other
        np.testing.assert_array_equal(read, np.asarray(other, dtype=kind))
    # What is refused is refused in scikit-learn's words.
    infinite = few.copy()
    infinite[1, 2] = np.inf
    for wrong, message in (
        (infinite, "infinity"),
        (few[:0], "0 sample"),
        (few[:, :3].copy(), "3 features, but PACBayesTreeClassifier is expecting 4"),
        (few[0], "Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(wrong)


def test_a_few_rows_are_checked_where_the_fit_knows_more_than_numbers():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=[*"abcd"])
    few = X[:3].copy()
    named = PACBayesTreeClassifier(random_state=0).fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(few)
    coded = PACBayesTreeClassifier(categorical_features=[0], random_state=0)
    coded.fit(np.column_stack([y % 2, X]), y)
    assert coded._encode_new_rows(np.column_stack([y, X])[:3].copy())[2, 0] == 0
    scaled = CertifiedTreeClassifier(preprocessor=StandardScaler(), random_state=0).fit(X, y)
    np.testing.assert_allclose(scaled._encode_new_rows(few), scaled.preprocessor_.transform(few))
    with pytest.raises(NotFittedError):
        PACBayesTreeClassifier().predict(few)


@pytest.mark.parametrize("nothing", [(), []])
def test_rows_that_are_none_are_refused_where_codes_are_known(nothing):
    rows = np.arange(12).reshape(6, 2) % 3
    model = PrunedTreeClassifier(categorical_features=[0], cv=2).fit(rows, [0, 1] * 3)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict(nothing)
    with pytest.raises(TypeError, match="got dictionaries: pass them as a data frame"):
        model.predict({})


MISSING_TARGETS = {
    "objects": np.array(["a", None] * 20, dtype=object),
    "list": ["a", None] * 20,
    "booleans": [True, None] * 20,
    "numbers": np.array([1, None] * 20, dtype=object),
    "NaN": np.array(["a", np.nan] * 20, dtype=object),
    "pandas": pd.Series(["a", None] * 20, dtype="string"),
    "categories": pd.Series(["a", None] * 20, dtype="category"),
    "polars": pl.Series(["a", None] * 20),
    "columns": np.array([["a", "b"], ["a", None]] * 20, dtype=object),
}


@pytest.mark.parametrize("kind", MISSING_TARGETS)
@pytest.mark.parametrize("model", [TreeForestClassifier(2), TreeForestRegressor(2)])
def test_missing_targets_are_counted_and_placed(model, kind):
    n = 80 if kind == "columns" else 40
    match = rf"y contains NaN or other missing values: 20 of {n}, the first of them in row 1\b"
    with pytest.raises(ValueError, match=match):
        model.fit(np.arange(40.0)[:, None], MISSING_TARGETS[kind])


@pytest.mark.parametrize(
    "made",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: np.column_stack([np.array(one, object) for one in columns.values()]),
        lambda columns: [*zip(*columns.values(), strict=True)],
    ],
    ids=["pandas", "polars", "arrow", "objects", "list"],
)
def test_text_among_numbers_is_named_with_its_feature(made):
    numbers = np.arange(40.0)
    model = TreeForestClassifier(2).fit(made({"a": numbers, "b": numbers}), numbers > 7)
    mixed = {"a": [0.5, 1.5], "b": ["abc", "1.5"]}
    match = (
        r"feature (1|'b') must hold numbers, got 'abc': convert it to numbers, or list the feature"
    )
    with pytest.raises(ValueError, match=match):
        model.predict(made(mixed))
    with pytest.raises(ValueError, match=match):
        TreeForestClassifier(2, categorical_features=None).fit(made(mixed), [0, 1])


def test_targets_of_regressors_that_are_no_numbers_are_named():
    X = np.arange(40.0)[:, None]
    text = pd.Series(["Yes", "No"] * 20)
    with pytest.raises(ValueError, match=r"y must hold numbers, got 'Yes': .* fit a classifier"):
        BoostedTreesRegressor(max_iter=2).fit(X, text.astype(object))
    y = np.arange(40.0)
    y[[7, 9]] = np.nan
    for kind in (BoostedTreesRegressor, TreeForestRegressor):
        with pytest.raises(ValueError, match=r"2 of 40, the first of them in row 7\. .*drop these"):
            kind().fit(X, y)
