import copy
import io
import json
import os
import pickle
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import certree
from certree import (
    KD,
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    Dyadic,
    Grid,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesPosteriors,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    Voting,
)
from certree.files.archive import open_archive, write_archive
from certree.grow import SklearnTree
from certree.interface.atomic_write import write_atomically
from certree.prunings import (
    CostComplexity,
    DepthPenalised,
    DescriptionLength,
    Pessimistic,
    Polynomial,
    PruningRule,
    SiblingMerge,
    SpatiallyAdaptive,
    SquareRoot,
)
from certree.prunings.rule_names import RULES
from model_files import (
    SHAPES_AND_TYPES,
    Touch,
    encode_header,
    encode_npy,
    encode_npy_header,
    expect_refusal,
    expect_same_bits,
    iterate_damages,
    list_wrong_shapes,
    make_comparable,
    make_earlier,
    read_arrays,
    read_header,
    read_parameter,
    replace_string,
    replace_value,
    rewrite,
    save_and_load,
    write_members,
)

ESTIMATORS = [PACBayesTreeClassifier, PrunedTreeClassifier, HelmboldSchapireTreeClassifier]
X, Y = load_iris(return_X_y=True)
TWO = np.where(Y == 1, 1, 0)
TEST = np.vstack([X, X + 0.13, [[np.nan] * 4, [1e9] * 4]])
BOX = [[0.0] * 4, [8.0] * 4]


def assert_same_model(loaded, model, rows=TEST):
    assert type(loaded) is type(model)
    expect_same_bits(loaded.predict_proba(rows), model.predict_proba(rows))
    expect_same_bits(loaded.apply(rows), model.apply(rows))
    expect_same_bits(loaded.feature_importances_, model.feature_importances_)
    assert loaded.predict(rows).dtype == model.predict(rows).dtype
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert [type(label) for label in loaded.classes_] == [type(label) for label in model.classes_]
    assert loaded.best_params_ == model.best_params_
    assert loaded.mixture_weights_ == model.mixture_weights_
    assert loaded.weights_.log_evidence == model.weights_.log_evidence
    assert make_comparable(loaded) == make_comparable(model)
    assert loaded.export_text() == model.export_text()
    assert loaded.get_depth() == model.get_depth()


@pytest.fixture(scope="module")
def small():
    """A fitted model with a small tree."""
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1, max_depth=2)
    return model.fit(X, Y)


@pytest.fixture
def saved(small, tmp_path):
    path = tmp_path / "model.npz"
    certree.save(small, path)
    return path


# -- round trips -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grower",
    [
        "kd",
        "dyadic",
        "cart",
        DecisionTreeClassifier(max_depth=3),
        ExtraTreeClassifier(random_state=1),
        Cart("gini", splitter="random", max_leaf_nodes=20, max_features="sqrt"),
        Cart(min_impurity_decrease=0.01, max_features=0.5, min_samples_split=3.5),
        KD("cycle", min_samples_split=5, stop_when_pure=False),
        Dyadic(min_samples_split=5, stop_when_pure=False),
        Grid(BOX),
        Grid(np.array(BOX, dtype=np.float32)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_predictions_of_loaded_models_equal_those_of_saved_ones_bit_by_bit(
    estimator, grower, tmp_path
):
    model = estimator(grower, random_state=0).fit(X, TWO)
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model)


@pytest.mark.parametrize("grower", ["cart", DecisionTreeClassifier()], ids=["cart", "sklearn"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_missing_values_go_the_same_way_after_loading(estimator, grower, tmp_path):
    # The flowers with the shortest petals lack their length half of the time.
    rows = X[:, [2]].copy()
    rows[np.flatnonzero(Y == 0)[::2]] = np.nan
    model = estimator(grower, random_state=0).fit(rows, Y == 0)
    assert model.tree_.missing_left.any()
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model, rows)


def test_loaded_float32_predictions_are_the_same_too(tmp_path):
    model = PACBayesTreeClassifier(random_state=0).fit(X.astype(np.float32), Y)
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model, TEST.astype(np.float32))


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["virginica", "setosa", "ä b,c"]),
        np.array(["setosa", "virginica", "versicolor"], dtype=object),
        np.array([10, -3, 2**40]),
        np.array([0.0, 2.0, -1.0], dtype=np.float32),
        np.array([0, 1, 2], dtype=np.int8),
    ],
    ids=["str", "object", "int", "float", "int8"],
)
@pytest.mark.parametrize("estimator", [PACBayesTreeClassifier, PrunedTreeClassifier])
def test_classes_of_every_type_are_loaded(estimator, classes, tmp_path):
    model = estimator(random_state=0).fit(X, classes[Y])
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model)


OF_RULES = [
    CostComplexity(),
    DepthPenalised(),
    DescriptionLength(free_splits=True),
    Pessimistic(confidence=0.1),
    Polynomial(smoothness=1, count_empty=True),
    SiblingMerge("gini"),
    SpatiallyAdaptive(count_empty=True),
    SquareRoot(count_empty=True),
]


@pytest.mark.parametrize("rule", [*sorted(RULES), *OF_RULES], ids=repr)
def test_every_rule_is_loaded_with_its_settings(rule, tmp_path):
    model = PrunedTreeClassifier(rule=rule, random_state=0).fit(X, Y)
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model)


def test_there_is_a_test_of_every_rule():
    assert {type(rule) for rule in OF_RULES} == set(RULES.values())


def test_rule_and_grower_of_a_theorem_are_loaded_together(tmp_path):
    model = PrunedTreeClassifier(
        Dyadic(resolution="paper"), rule=Polynomial(smoothness=1, count_empty=True)
    ).fit(X[:, 2:], Y)
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model, X[:, 2:])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_boolean_classes_are_loaded(estimator, tmp_path):
    model = estimator(random_state=0).fit(X, Y == 1)
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model)


@pytest.mark.parametrize("label", ["only", 7, True], ids=["str", "int", "bool"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_models_of_one_class_are_loaded(estimator, label, tmp_path):
    model = estimator(random_state=0).fit(X, [label] * len(X))
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert_same_model(loaded, model)
    assert loaded.predict_proba(X).shape == (len(X), 1)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_feature_names_are_loaded(estimator, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b b", "ü", "x[0]"])
    model = estimator(random_state=0).fit(frame, TWO)
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert_same_model(loaded, model, frame)
    np.testing.assert_array_equal(loaded.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b b", "a", "ü", "x[0]"]])


def test_a_model_without_feature_names_is_loaded_without_them(saved):
    loaded = certree.load(saved)
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.n_features_in_ == 4


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": {0: 1.0, 1: 2.5, 2: 0.5}},
        {"class_weight": {np.int64(0): np.float64(3), 1: 1, 2: 1}},
        {"class_weight": "balanced"},
        {"lambda_error": 0.3, "cv": None, "grower": Cart(), "max_depth": "log"},
        {"lambda_error": np.float32(0.5), "cv": np.int64(3), "random_state": np.int32(5)},
        {"prior": "branching", "vote": "mean", "search": "error-first", "scoring": "log_loss"},
        {"grower": DecisionTreeClassifier(max_depth=3, class_weight={0: 2.0, 1: 1, 2: 1})},
        {"grower": Cart(max_leaf_nodes=np.int64(9), min_samples_split=np.float32(2.5))},
        {"grower": Dyadic(resolution="paper", exponent=0.3)},
        {"vote": Voting("majority")},
        {"vote": Voting("mean", smoothing=0.5)},
        {"vote": Voting("mean", smoothing=np.float64(2))},
    ],
    ids=str,
)
def test_parameters_are_loaded(parameters, tmp_path):
    model = PACBayesTreeClassifier(**{"random_state": 0, **parameters}).fit(X, Y)
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert_same_model(loaded, model)
    # A loaded model can be fitted again, with the same outcome.
    expect_same_bits(loaded.fit(X, Y).predict_proba(TEST), model.fit(X, Y).predict_proba(TEST))


def test_monotonic_constraints_of_a_vote_are_loaded(tmp_path):
    rising = Voting("mean", 0.5, slopes=np.array([0, 0, 1, 0], dtype=np.int8))
    model = PACBayesTreeClassifier(vote=rising, random_state=0).fit(X, TWO)
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert_same_model(loaded, model)
    expect_same_bits(loaded.fit(X, TWO).predict_proba(TEST), model.predict_proba(TEST))


def test_settings_of_a_shorthand_are_loaded(tmp_path):
    model = PrunedTreeClassifier(random_state=0)
    model.set_params(grower__max_leaf_nodes=5, rule__confidence=0.1, rule="pessimistic")
    loaded = save_and_load(model.fit(X, Y), tmp_path / "model.npz")
    assert_same_model(loaded, model)
    assert loaded.grower.max_leaf_nodes == 5
    assert loaded.rule.confidence == 0.1
    assert repr(clone(loaded)) == repr(clone(model)) == repr(model)


def test_a_loaded_model_shares_no_objects_with_the_saved_one(tmp_path):
    model = PrunedTreeClassifier(Cart(), rule=Polynomial(), random_state=0).fit(X, Y)
    loaded = save_and_load(model, tmp_path / "model.npz")
    loaded.set_params(grower__criterion="gini", rule__smoothness=1)
    assert (model.grower.criterion, model.rule.smoothness) == (None, 2)


def test_constraints_and_chosen_features_are_loaded(tmp_path):
    for slopes in ([0, 0, 1, 0], (0, 0, 1, 0), np.array([0, 0, 1, 0])):
        model = PACBayesTreeClassifier(monotonic_cst=slopes, categorical_features=[1]).fit(X, TWO)
        loaded = save_and_load(model, tmp_path / "model.npz")
        assert make_comparable(loaded) == make_comparable(model)
        expect_same_bits(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.categories_.names == model.categories_.names


def test_a_model_of_weighted_rows_is_loaded(tmp_path):
    weight = np.random.default_rng(0).uniform(0, 3, len(X))
    model = PACBayesTreeClassifier(random_state=0).fit(X, Y, weight)
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), model)


def test_a_loaded_model_can_be_saved_again(saved, tmp_path):
    first = certree.load(saved)
    second = save_and_load(first, tmp_path / "again.npz")
    assert_same_model(second, first)


def test_paths_may_be_strings_and_need_no_suffix(small, tmp_path):
    path = tmp_path / "model"
    certree.save(small, str(path))
    assert_same_model(certree.load(str(path)), small)
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_saving_replaces_an_older_file(small, tmp_path):
    path = tmp_path / "model.npz"
    path.write_text("old")
    assert_same_model(save_and_load(small, path), small)


# -- what cannot be saved --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_unfitted_model_is_not_saved(estimator, tmp_path):
    with pytest.raises(NotFittedError):
        certree.save(estimator(), tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "foreign",
    [None, "model", {"a": 1}, DummyClassifier(), DecisionTreeClassifier(), PACBayesTreeClassifier],
    ids=["None", "str", "dict", "dummy", "tree", "class"],
)
def test_foreign_objects_are_not_saved(foreign, tmp_path):
    with pytest.raises(TypeError, match="model must be a fitted estimator of certree"):
        certree.save(foreign, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cv", KFold(2)),
        ("random_state", np.random.RandomState(0)),
        ("grower", DecisionTreeClassifier(random_state=np.random.RandomState(0))),
    ],
    ids=["splitter", "generator", "generator inside"],
)
def test_parameters_that_contain_code_are_not_saved(name, value, tmp_path):
    model = PACBayesTreeClassifier(**{name: value}).fit(X, Y)
    with pytest.raises(TypeError, match="cannot be saved"):
        certree.save(model, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("estimator", "target"), [(DecoratedTreeClassifier, Y), (DecoratedTreeRegressor, X[:, 0])]
)
def test_decorated_trees_are_not_saved_and_the_error_names_an_alternative(
    estimator, target, tmp_path
):
    model = estimator().fit(X, target)
    with pytest.raises(TypeError, match="use joblib or skops"):
        certree.save(model, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_another_with_a_known_name_is_not_saved(tmp_path):
    impostor = type("PACBayesTreeClassifier", (PACBayesTreeClassifier,), {})
    with pytest.raises(TypeError, match="model must be a fitted estimator of certree"):
        certree.save(impostor().fit(X, Y), tmp_path / "model.npz")


class Other(DecisionTreeRegressor):
    """A tree that certree does not know by name."""


class OtherCells(Cart):
    """A grower that certree does not know by name."""


@pytest.mark.parametrize(
    "grower",
    [
        Other(max_depth=3),
        OtherCells(),
        type("Cart", (Cart,), {})(),
        type("DecisionTreeRegressor", (DecisionTreeRegressor,), {})(),
    ],
    ids=["tree", "grower", "Cart by name", "tree by name"],
)
def test_another_estimator_as_grower_is_not_saved(grower, tmp_path):
    model = PACBayesTreeClassifier(grower).fit(X, Y)
    with pytest.raises(TypeError, match="'grower' cannot be saved"):
        certree.save(model, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_subclasses_of_rules_votes_and_posteriors_are_not_saved(tmp_path):
    rule = type("Polynomial", (Polynomial,), {})()
    posteriors = type("PACBayesPosteriors", (PACBayesPosteriors,), {})()
    voting = type("Voting", (Voting,), {})()
    for name, model in {
        "rule": PrunedTreeClassifier(rule=rule),
        "posteriors": CertifiedTreeClassifier(posteriors=posteriors, duplicates="genuine"),
        "vote": PACBayesTreeClassifier(vote=voting),
    }.items():
        with pytest.raises(TypeError, match=f"'{name}' cannot be saved"):
            certree.save(model.fit(X, Y), tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


class LeafPrice(PruningRule):
    """Charge alpha for each leaf, as a rule of the user's own."""

    def family(self, tree, stats):
        return CostComplexity().family(tree, stats)


def test_a_rule_of_the_users_own_is_kept_by_pickle_as_the_message_says(tmp_path):
    model = PrunedTreeClassifier(rule=LeafPrice()).fit(X, Y)
    with pytest.raises(TypeError, match=r"'rule' cannot be saved: .* with pickle"):
        certree.save(model, tmp_path / "model.npz")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_generator_inside_a_grower_is_not_saved(tmp_path):
    tree = DecisionTreeClassifier(random_state=np.random.RandomState(0))
    model = PACBayesTreeClassifier(SklearnTree(tree)).fit(X, Y)
    with pytest.raises(TypeError, match="cannot be saved"):
        certree.save(model, tmp_path / "model.npz")


def test_a_missing_directory_is_an_error(small, tmp_path):
    with pytest.raises(FileNotFoundError):
        certree.save(small, tmp_path / "missing" / "model.npz")


# -- damaged files ---------------------------------------------------------------------------------


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        certree.load(tmp_path / "model.npz")


def test_a_file_cut_off_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for length in {*range(0, len(whole), 7), *range(len(whole) - 60, len(whole))}:
        saved.write_bytes(whole[:length])
        expect_refusal(saved)


@pytest.mark.slow
def test_flipped_bits_are_refused_or_harmless(saved, small):
    whole = saved.read_bytes()
    expected = small.predict_proba(TEST).tobytes()
    rng = np.random.default_rng(0)
    # The directory at the end says how the parts are stored, so each of its bytes is tried.
    places = [*range(0, len(whole), 7), *range(whole.index(b"PK\x01\x02"), len(whole))]
    refused = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.choice([1, 2, 4, 6, 8, 16, 32, 64, 128, 255]))
        saved.write_bytes(damaged)
        try:
            loaded = certree.load(saved)
        except ValueError:
            refused += 1
        else:
            assert loaded.predict_proba(TEST).tobytes() == expected
    assert refused > len(places) / 2


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 100, b"just text\n", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18, encode_npy(X)],
    ids=["empty", "zeros", "text", "zip magic", "empty zip", "npy"],
)
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    expect_refusal(path)


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a model file"):
        certree.load(tmp_path)


def test_archives_of_other_things_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    np.savez(path, X=X, y=Y)
    expect_refusal(path, "header")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
        archive.writestr("header", "{}")
    expect_refusal(path)


def test_an_array_before_the_archive_is_refused(saved):
    saved.write_bytes(encode_npy(X) + saved.read_bytes())
    expect_refusal(saved)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"not JSON",
        b"\xff\xfe\xfd",
        b"[]",
        b"5",
        b"null",
        b'"certree model"',
        b"{}",
        b'{"format": "certree model"}',
        b'{"format": "certree model", "version": 4}',
        b"[" * 100_000,
    ],
    ids=lambda header: header[:20].decode(errors="replace"),
)
def test_invalid_headers_are_refused(saved, header):
    rewrite(saved, {"header": encode_header(header)})
    expect_refusal(saved)


@pytest.mark.parametrize(
    "changed",
    [
        {"format": "another model"},
        {"version": 5},
        {"version": 3},
        {"version": 2},
        {"version": 1},
        {"version": 0},
        {"version": "4"},
        {"version": 4.0},
        {"version": [4]},
        {"version": None},
        {"model": "DummyClassifier"},
        {"model": "__class__"},
        {"model": None},
        {"model": ["PACBayesTreeClassifier"]},
        {"model": "PrunedTreeClassifier"},  # with the parameters of another one
        {"parameters": None},
        {"parameters": []},
        {"parameters": {"no_such": 1}},
        {"parameters": {"cv": 1}},
        {"parameters": {"lambda_error": -1.0}},
        {"parameters": {"grower": "no such"}},
        {"parameters": {"grower": None}},
        {"parameters": {"grower": 5}},
        {"parameters": {"grower": ["cart"]}},
        {"parameters": {"grower": {}}},
        {"parameters": {"grower": {"class": "Popen", "parameters": {"args": "ls"}}}},
        {"parameters": {"grower": {"class": "RandomForestClassifier", "parameters": {}}}},
        {"parameters": {"grower": {"class": ["x"], "parameters": {}}}},
        {"parameters": {"grower": {"class": "DecisionTreeClassifier"}}},
        {"parameters": {"grower": {"class": "DecisionTreeClassifier", "parameters": {"no": 1}}}},
        {"parameters": {"vote": {"class": "Voting", "parameters": {"smoothing": -1.0}}}},
        {"parameters": {"class_weight": {"array": ["x"], "dtype": "<f8"}}},
        {"parameters": {"class_weight": {"array": [1], "dtype": "O"}}},
        {"parameters": {"class_weight": {"array": [1], "dtype": 5}}},
        {"parameters": {"class_weight": {"array": [1]}}},
        {"parameters": {"vote": "weighted"}},
        {"parameters": {"class_weight": {"items": 5}}},
        {"parameters": {"class_weight": {"items": [[1]]}}},
        {"parameters": {"class_weight": {"items": [[{"items": []}, 1]]}}},
        {"temperatures": None},
        {"temperatures": {}},
        {"temperatures": ["lambda_error", "lambda_penalty"]},
        {"temperatures": {"lambda_error": 1.0}},
        {"temperatures": {"lambda_error": "x", "lambda_penalty": 1.0}},
        {"temperatures": {"lambda_error": 10**400, "lambda_penalty": 1.0}},
        {"shares": None},
        {"shares": [0.5]},
        {"shares": ["x"]},
        {"shares": [[1.0]]},
        {"n_features": 0},
        {"n_features": -4},
        {"n_features": 1},
        {"n_features": 4.0},
        {"n_features": None},
        {"n_features": "4"},
        {"feature_names": 5},
        {"feature_names": "abcd"},
        {"feature_names": {"a": 1, "b": 2, "c": 3, "d": 4}},
        {"feature_names": ["a", "b", "c"]},
        {"feature_names": ["a", "b", "c", 4]},
        {"weights.log_evidence": None},
        {"weights.log_evidence": "much"},
        {"weights.log_evidence": 10**400},
    ],
    ids=lambda changed: json.dumps(changed)[:60],
)
def test_headers_with_wrong_entries_are_refused(saved, changed):
    rewrite(saved, **changed)
    expect_refusal(saved)


@pytest.fixture
def nested(tmp_path):
    """A model file with objects as three parameters, one of them of scikit-learn."""
    model = CertifiedTreeClassifier(
        Cart(max_leaf_nodes=8),
        vote=Voting("majority"),
        posteriors=PACBayesPosteriors(prior="branching"),
    )
    path = tmp_path / "nested.npz"
    certree.save(model.fit(X, Y), path)
    return path


@pytest.fixture
def saved_with_sklearn_grower(tmp_path):
    """A model file with a decision tree of scikit-learn as the grower."""
    path = tmp_path / "sklearn.npz"
    certree.save(PACBayesTreeClassifier(DecisionTreeClassifier()).fit(X, Y), path)
    return path


PLACES = [("grower", "Cart"), ("vote", "Voting"), ("posteriors", "PACBayesPosteriors")]
FOREIGN = [
    "Popen",
    "SVC",
    "RandomForestClassifier",
    "BaseEstimator",
    "PACBayesTreeClassifier",
    "SklearnTree",
    "Tree",
    "__class__",
    "certree.Cart",
    "cart",
    "",
]


def with_parameter(path, name, form):
    """Rewrite a model file with another encoded value of one parameter."""
    rewrite(path, parameters={**read_header(path)["parameters"], name: form})


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize(("name", "known"), PLACES)
def test_objects_of_other_classes_are_refused(nested, name, known, foreign):
    with_parameter(nested, name, replace_string(read_parameter(nested, name), known, foreign))
    expect_refusal(nested, foreign or None)


@pytest.mark.parametrize("foreign", [*FOREIGN, "Cart"])
def test_trees_of_other_classes_are_refused(saved_with_sklearn_grower, foreign):
    form = replace_string(
        read_parameter(saved_with_sklearn_grower, "grower"), "DecisionTreeClassifier", foreign
    )
    with_parameter(saved_with_sklearn_grower, "grower", form)
    expect_refusal(saved_with_sklearn_grower)


def test_parameters_of_objects_are_in_the_file_by_name(nested):
    form = read_parameter(nested, "grower")
    assert form["class"] == "Cart"
    assert form["parameters"]["max_leaf_nodes"] == 8
    assert set(form["parameters"]) == set(Cart().get_params())
    # A class that is known may have its defaults.
    with_parameter(nested, "grower", {"class": "KD", "parameters": {}})
    assert repr(certree.load(nested).grower) == "KD()"


@pytest.mark.parametrize(("name", "known"), PLACES)
def test_objects_in_the_place_of_others_are_refused(nested, name, known):
    right = read_parameter(nested, name)
    for other, _ in PLACES:
        if other != name:
            with_parameter(nested, name, read_parameter(nested, other))
            expect_refusal(nested)
            with_parameter(nested, name, right)
    certree.load(nested)


@pytest.mark.parametrize(("name", "known"), PLACES)
def test_damaged_objects_are_refused(nested, name, known):
    right = read_parameter(nested, name)
    assert known in json.dumps(right)
    for wrong in iterate_damages(right):
        with_parameter(nested, name, wrong)
        expect_refusal(nested)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("grower", "max_leaf_nodes"), ("vote", "smoothing"), ("posteriors", "search")],
)
def test_objects_take_only_their_own_parameters(nested, name, parameter):
    with_parameter(nested, name, replace_string(read_parameter(nested, name), parameter, "no_such"))
    expect_refusal(nested)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("vote", "majority", "weighted"), ("posteriors", "branching", "none")],
)
def test_objects_with_wrong_parameters_are_refused(nested, name, old, new):
    with_parameter(nested, name, replace_string(read_parameter(nested, name), old, new))
    expect_refusal(nested)


def test_objects_of_classes_with_code_are_refused(nested):
    inner = replace_string(read_parameter(nested, "vote"), "Voting", "Popen")
    text = json.dumps(read_parameter(nested, "grower"))
    with_parameter(nested, "grower", json.loads(text.replace("8", json.dumps(inner))))
    expect_refusal(nested, "Popen")


@pytest.mark.parametrize(
    "certificates",
    [
        None,
        5,
        {},
        ["hold_out"],
        [{}],
        [{"method": "no such"}],
        [{"method": "hold_out"}],
    ],
    ids=json.dumps,
)
def test_damaged_certificates_are_refused(nested, certificates):
    rewrite(nested, certificates=certificates)
    expect_refusal(nested)


def test_certificates_without_an_entry_or_with_another_are_refused(nested):
    saved = read_header(nested)["certificates"]
    assert len(saved) > 2
    # Files of earlier versions lack the error of a constant and the test of row order.
    for entry in saved[0].keys() - {"baseline", "row_order"}:
        first = {name: value for name, value in saved[0].items() if name != entry}
        rewrite(nested, certificates=[first, *saved[1:]])
        expect_refusal(nested)
    rewrite(nested, certificates=[{**saved[0], "method": "no such"}, *saved[1:]])
    expect_refusal(nested, "no such")
    rewrite(nested, certificates=[{**saved[0], "bound": "low"}, *saved[1:]])
    expect_refusal(nested)
    rewrite(nested, certificates=saved)
    certree.load(nested)


@pytest.mark.parametrize("deployed", [-1, 99, 0.5, "hold_out", None, [0]])
def test_the_deployed_certificate_must_be_one_of_the_certificates(nested, deployed):
    rewrite(nested, deployed=deployed)
    expect_refusal(nested)


@pytest.mark.parametrize(
    "entry",
    [
        "format",
        "version",
        "model",
        "parameters",
        "best_params",
        "mixture_weights",
        "n_features",
        "feature_names",
        "classes.dtype",
        "n_sample_hashes",
        "weights.log_evidence",
    ],
)
def test_headers_without_an_entry_are_refused(saved, entry):
    header = read_header(saved)
    del header[entry]
    rewrite(saved, {"header": encode_header(header)})
    expect_refusal(saved)


@pytest.fixture
def with_sets():
    """A model whose tree splits on categories."""
    posteriors = {"lambda_error": 1.0, "lambda_penalty": 0.1}
    model = PACBayesTreeClassifier(**posteriors, max_depth=3, categorical_features=[1, 2, 3])
    return model.fit(X.round(), Y)


def test_sets_of_categories_are_loaded(with_sets, tmp_path):
    loaded = save_and_load(with_sets, tmp_path / "model.npz")
    assert_same_model(loaded, with_sets, TEST.round())
    for name in ("category_start", "categories"):
        expect_same_bits(getattr(loaded.tree_, name), getattr(with_sets.tree_, name))
    assert len(loaded.tree_.categories)
    assert loaded.tree_.optimal_splits is with_sets.tree_.optimal_splits is True


@pytest.mark.parametrize("column", ["category_start", "categories"])
def test_damaged_sets_are_refused(with_sets, tmp_path, column):
    path = tmp_path / "model.npz"
    certree.save(with_sets, path)
    rewrite(path, {f"tree.{column}": read_arrays(path)[f"tree.{column}"][::-1]})
    expect_refusal(path)
    rewrite(path, without=[f"tree.{column}"])
    expect_refusal(path)


ENSEMBLES = {
    "boosted": certree.BoostedTreesRegressor(max_iter=2, max_leaf_nodes=4, random_state=0),
    "adaboost": certree.AdaBoostTreeClassifier(n_estimators=2, max_depth=2),
    "forest": certree.TreeForestClassifier(2, max_depth=3, bootstrap=False, random_state=0),
    "certified forest": certree.CertifiedForestClassifier(
        2, max_depth=3, duplicates="genuine", random_state=0
    ),
    "certified boosted": certree.CertifiedBoostedTreesClassifier(
        max_iter=2, duplicates="genuine", random_state=0
    ),
    "certified numbers": certree.CertifiedBoostedTreesRegressor(
        max_iter=2, coverage=0.5, duplicates="genuine", random_state=0
    ),
}


def test_classes_with_invalid_code_points_are_refused(tmp_path):
    path, y = tmp_path / "model.certree", np.array(["no", "yes"] * 20)
    certree.save(PrunedTreeClassifier(cv=2).fit(np.arange(40.0)[:, None], y), path)
    classes = read_arrays(path)["classes"].copy()
    classes.view(np.uint32)[-1] |= 1 << 30
    rewrite(path, {"classes": classes})
    expect_refusal(path, "an array of text with invalid code points")


def test_booleans_other_than_0_and_1_are_refused(tmp_path):
    path = tmp_path / "model.certree"
    certree.save(PrunedTreeClassifier(cv=2).fit(np.arange(40.0)[:, None], [0, 1] * 20), path)
    ways = read_arrays(path)["tree.missing_left"].copy()
    ways.view(np.uint8)[0] = 2
    rewrite(path, {"tree.missing_left": ways})
    expect_refusal(path, "an array of booleans with bytes other than 0 and 1")


@pytest.fixture(params=ENSEMBLES)
def saved_ensemble(request, tmp_path):
    """A model file of an ensemble whose trees split on categories."""
    model = ENSEMBLES[request.param].set_params(categorical_features=[0, 1])
    table = np.random.default_rng(0).integers(0, 6, (120, 2)).astype(float)
    model.fit(table, (table[:, 0] % 3 + table[:, 1] % 2 > 1).astype(int))
    certree.save(model, tmp_path / "model.certree")
    return tmp_path / "model.certree"


def test_nodes_that_share_children_are_refused(saved_ensemble):
    arrays = read_arrays(saved_ensemble)
    if "trees.beyond" in arrays:  # from each node that compares
        inner = np.flatnonzero(arrays["trees.compares"])
        name, place, offset = "beyond", np.arange(len(inner)), inner
    else:
        inner = np.flatnonzero(arrays["trees.left"] >= 0)
        name, place, offset = "left", inner, np.zeros_like(inner)
    column = arrays[f"trees.{name}"]
    of_second = column[place[1]] + offset[1]
    rewrite(
        saved_ensemble, {f"trees.{name}": replace_value(column, place[0], of_second - offset[0])}
    )
    expect_refusal(saved_ensemble, "exactly one parent|that has a sibling")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sets: sets[::-1], "distinct and ascending"),
        (np.zeros_like, "distinct and ascending"),
        (lambda sets: sets - 9, "distinct and ascending"),
        (lambda sets: sets + 9, "splits on categories that its features do not have"),
    ],
    ids=["unsorted", "equal", "negative", "unknown"],
)
def test_damaged_sets_of_many_trees_are_refused(saved_ensemble, change, message):
    sets = read_arrays(saved_ensemble)["trees.categories"]
    rewrite(saved_ensemble, {"trees.categories": change(sets)})
    expect_refusal(saved_ensemble, message)


@pytest.mark.parametrize("names", [None, [None, None]])
def test_sets_of_many_trees_need_categories(saved_ensemble, names):
    rewrite(saved_ensemble, categories=names)
    expect_refusal(saved_ensemble, "splits on categories that its features do not have")


@pytest.mark.parametrize("change", [lambda one: one[:-1], lambda one: np.append(one, one)])
def test_trees_must_have_a_value_for_every_leaf(saved_ensemble, change):
    rewrite(
        saved_ensemble, {"trees.compares": change(read_arrays(saved_ensemble)["trees.compares"])}
    )
    expect_refusal(saved_ensemble, "must have shape")


@pytest.mark.parametrize("column", ["feature", "threshold", "beyond", "n_categories"])
def test_trees_must_have_columns_for_their_splits(saved_ensemble, column):
    rewrite(
        saved_ensemble, {f"trees.{column}": read_arrays(saved_ensemble)[f"trees.{column}"][:-1]}
    )
    expect_refusal(saved_ensemble, f"{column} must have shape")


def test_a_later_version_is_named(saved):
    rewrite(saved, version=5)
    expect_refusal(saved, "the model file has version 5, but this certree reads version 4")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("model", ["PACBayesTreeClassifier", "HelmboldSchapireClassifier"])
def test_files_of_unreleased_versions_are_refused(saved, model, version):
    # Names and parameters were others, so the version is looked at first.
    rewrite(saved, version=version, model=model, parameters={"grower": "cart", "min_rows": 1.0})
    expect_refusal(saved, f"the model file has version {version} of an unreleased certree")


def test_files_are_of_the_fourth_version(saved):
    assert read_header(saved)["version"] == 4


EARLIER = [
    NaiveBayesClassifier(),
    NaiveBayesClassifier("histogram", power=1.0),
    PACBayesTreeClassifier(random_state=0),
    PACBayesTreeRegressor(random_state=0),
    PrunedTreeClassifier(random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    CertifiedTreeClassifier(duplicates="genuine", random_state=0),
    CertifiedTreeRegressor(duplicates="genuine", random_state=0),
    AdaBoostTreeClassifier(n_estimators=3, random_state=0),
    BoostedTreesClassifier(max_iter=3, random_state=0),
    CertifiedBoostedTreesClassifier(max_iter=3, duplicates="genuine", random_state=0),
    TreeForestClassifier(3, random_state=0),
    CertifiedForestClassifier(3, duplicates="genuine", random_state=0),
]


def collect_results(model):
    """Return predictions for X and the certificate, by name."""
    names = ("predict", "predict_proba", "predict_log_proba", "predict_std", "predict_set")
    results = {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
    results["certificate"] = str(getattr(model, "certificate_", None))
    return results


@pytest.mark.parametrize("model", EARLIER, ids=lambda model: type(model).__name__)
def test_files_from_before_relative_weights_predict_as_before(model, tmp_path):
    path = tmp_path / "model"
    model = clone(model).fit(X, TWO)
    certree.save(model, path)
    make_earlier(path)
    loaded = certree.load(path)
    expected = collect_results(model)
    for name, values in collect_results(loaded).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    # Earlier files have no effective sample size.
    assert not hasattr(loaded, "effective_sample_size_")
    again = save_and_load(loaded, tmp_path / "again")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("densities", ["normal", "histogram"])
def test_naive_bayes_without_the_number_of_rows_predicts_but_takes_no_partial_fit(
    densities, tmp_path
):
    path = tmp_path / "model"
    weight = np.arange(len(X)) % 3 + 1.0
    model = NaiveBayesClassifier(densities).fit(X, Y, weight)
    certree.save(model, path)
    assert read_header(path)["n_rows"] == len(X)
    make_earlier(path)
    loaded = certree.load(path)
    for one in (loaded, save_and_load(loaded, tmp_path / "again")):
        expect_same_bits(one.predict_proba(TEST), model.predict_proba(TEST))
        with pytest.raises(ValueError, match="partial_fit needs the number of training rows"):
            one.partial_fit(X, Y)
        expect_same_bits(one.predict_proba(TEST), model.predict_proba(TEST))
    # A new fit knows it.
    expect_same_bits(
        loaded.fit(X, Y, weight).partial_fit(X, Y).class_count_,
        model.partial_fit(X, Y).class_count_,
    )


@pytest.mark.parametrize("weighed", [False, True])
def test_rows_of_earlier_files_in_another_order_can_be_added_and_forgotten(weighed, tmp_path):
    path, order = tmp_path / "model", np.random.default_rng(0).permutation(len(X))
    weight = np.arange(len(X)) % 3 + 1.0 if weighed else None
    model = PACBayesTreeClassifier(Grid(BOX), max_depth=4, lambda_error=1.0, lambda_penalty=0.1)
    model.partial_fit(X, TWO, sample_weight=weight)
    certree.save(model, path)
    rows = {k: held for k, held in read_arrays(path).items() if k.startswith("seen_rows.")}
    assert {f"seen_rows.{name}" for name in ("hashes", "leaf", "y")} <= rows.keys()
    rewrite(path, {k: held[order] if held.shape == (len(X),) else held for k, held in rows.items()})
    loaded = certree.load(path)
    expect_same_bits(loaded.predict_proba(TEST), model.predict_proba(TEST))
    gone = None if weight is None else weight[:50]
    for one in (loaded, model):
        one.forget(X[:50], TWO[:50], sample_weight=gone)
    expect_same_bits(loaded.predict_proba(TEST), model.predict_proba(TEST))


@pytest.mark.parametrize(
    "hashes",
    [
        np.arange(3),
        np.arange(3.0),
        np.zeros((1, 1), dtype=np.uint64),
        np.zeros(0, dtype=np.uint64),
        np.array([1, 1], dtype=np.uint64),
        np.array([2, 1], dtype=np.uint64),
    ],
    ids=str,
)
def test_hashes_of_rows_are_checked(saved, hashes):
    rewrite(saved, {"sample_hashes": hashes}, n_sample_hashes=hashes.size)
    expect_refusal(saved, "sample_hashes")


@pytest.mark.parametrize("n_rows", [0, -1, 1, 2.5, "all", True, [], None])
def test_headers_without_hashes_have_no_number_of_rows(saved, n_rows):
    rewrite(saved, n_sample_hashes=n_rows)
    expect_refusal(saved, "sample_hashes")


def test_a_rewritten_file_still_loads(saved, small):
    # Else the tests that change one thing would pass for another reason.
    rewrite(saved, parameters={"grower": "kd", "cv": 2})
    loaded = certree.load(saved)
    assert (loaded.grower, loaded.cv) == ("kd", 2)
    expect_same_bits(loaded.predict_proba(TEST), small.predict_proba(TEST))
    rewrite(saved, parameters=small.get_params())
    assert_same_model(certree.load(saved), small)


ARRAYS = [
    "header",
    "classes",
    "sample_hashes",
    "sample_counts.twice",
    "tree.feature",
    "tree.threshold",
    "tree.left",
    "tree.chain",
    "tree.missing_both",
    "tree.missing_left",
    "tree.category_start",
    "tree.categories",
    "stats.counts",
    "stats.label",
    "weights.weight",
    "weights.log_odds",
    "weights.chain_entropy",
    "weights.chain_mode",
    "vote.score",
]


def test_these_are_all_arrays_of_a_model_file(saved):
    assert sorted(read_arrays(saved)) == sorted(ARRAYS)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_named(saved, name):
    rewrite(saved, without=[name])
    expect_refusal(saved, name)


def test_messages_name_the_file_what_is_wrong_and_what_to_do(saved):
    rewrite(saved, n_features=0)
    expect_refusal(
        saved,
        "cannot be loaded: the model file's n_features must be an integer in 1 .. "
        "16777216, got 0; save the model again by certree.save, or restore the file from a copy$",
    )
    rewrite(saved, version=5)
    expect_refusal(saved, "cannot be loaded: the model file has version 5, .* that saved it$")
    saved.write_bytes(b"just text")
    expect_refusal(saved, "is not a model file, or is damaged: .*; save the model again")


@pytest.mark.parametrize(
    ("name", "change"),
    list_wrong_shapes(ARRAYS, but=[("tree.categories", "empty"), ("tree.categories", "short")]),
)
def test_arrays_of_wrong_shape_or_type_are_refused(saved, name, change):
    rewrite(saved, {name: SHAPES_AND_TYPES[change](read_arrays(saved)[name])})
    expect_refusal(saved)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tree.left", lambda left: replace_value(left, 0, 0)),
        ("tree.left", lambda left: replace_value(left, 1, 1)),
        ("tree.left", lambda left: replace_value(left, 2, 1)),
        ("tree.left", lambda left: replace_value(left, 0, len(left) - 1)),
        ("tree.left", lambda left: replace_value(left, 0, len(left))),
        ("tree.left", lambda left: replace_value(left, 0, 2**31 - 1)),
        ("tree.left", lambda left: replace_value(left, 0, -2)),
        ("tree.left", lambda left: replace_value(left, 0, -(2**31))),
        ("tree.left", lambda left: np.full_like(left, -1)),
        ("tree.left", lambda left: replace_value(left, 1, left[2])),
        ("tree.feature", lambda feature: replace_value(feature, 0, 4)),
        ("tree.feature", lambda feature: replace_value(feature, 0, -1)),
        ("tree.feature", lambda feature: replace_value(feature, 0, 2**31 - 1)),
        ("tree.feature", lambda feature: replace_value(feature, -1, 4)),
        ("tree.threshold", lambda threshold: replace_value(threshold, 0, np.nan)),
        ("tree.threshold", lambda threshold: replace_value(threshold, 0, np.inf)),
        ("tree.chain", lambda chain: replace_value(chain, 0, 0)),
        ("stats.counts", lambda counts: replace_value(counts, (0, 0), -1.0)),
        ("stats.counts", lambda counts: replace_value(counts, (0, 0), np.nan)),
        ("stats.counts", lambda counts: counts[:, :2]),
        ("stats.label", lambda label: replace_value(label, 0, 3)),
        ("stats.label", lambda label: replace_value(label, 0, -1)),
        ("weights.weight", lambda weight: replace_value(weight, 0, 1.5)),
        ("weights.weight", lambda weight: replace_value(weight, 0, -0.5)),
        ("weights.weight", lambda weight: replace_value(weight, 0, np.nan)),
        ("weights.log_odds", lambda log_odds: replace_value(log_odds, 0, np.nan)),
        ("vote.score", lambda score: replace_value(score, (0, 0), -1.0)),
        ("vote.score", lambda score: replace_value(score, (0, 0), np.nan)),
        ("vote.score", lambda score: score[:, :2]),
        ("vote.score", np.zeros_like),
        ("classes", lambda classes: classes[::-1]),
        ("classes", lambda classes: replace_value(classes, 1, classes[0])),
        ("classes", np.ones_like),
        ("classes", lambda classes: replace_value(classes.astype(float), 2, np.nan)),
        ("classes", lambda classes: classes.astype(complex)),
    ],
)
def test_arrays_with_wrong_content_are_refused(saved, name, change):
    rewrite(saved, {name: change(read_arrays(saved)[name])})
    expect_refusal(saved)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{",
        "no literal",
        "[1, 2]",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1,",
        "{'descr': '''<i4, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<i4', 'fortran_order': False}",
        "{'descr': '<i4', 'fortran_order': False, 1: (7,)}",
        "{'descr': '<i4', 'fortran_order': 0, 'shape': (7,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (7,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000000000,)}",
        f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({10**40},)}}",
        f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({2**40}, {2**40})}}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (7,)}",
        "{'descr': 'no dtype', 'fortran_order': False, 'shape': (7,)}",
        "{'descr': (), 'fortran_order': False, 'shape': (7,)}",
        "{'descr': [], 'fortran_order': False, 'shape': (7,)}",
        "{'descr': [5], 'fortran_order': False, 'shape': (7,)}",
        "{'descr': [('a',)], 'fortran_order': False, 'shape': (7,)}",
        "(" * 5000,
        "-" * 9000 + "1",
    ],
    ids=lambda header: header[:40],
)
def test_arrays_with_a_damaged_npy_header_are_refused(saved, header):
    rewrite(saved, {"tree.left": encode_npy_header(header + "\n")})
    expect_refusal(saved)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i4', 'fortran_order': False, 'shape': (0L,)}",
        "{'descr': 'a5', 'fortran_order': False, 'shape': (0,)}",
    ],
)
def test_arrays_with_an_npy_header_that_numpy_warns_of_are_refused(saved, header):
    rewrite(saved, {"tree.left": encode_npy_header(header + "\n")})
    expect_refusal(saved)


@pytest.mark.parametrize("method", [12, 14, 93, 99])
def test_arrays_of_other_compression_methods_are_refused(saved, method):
    write_members(saved, {"header": b"\x09\x04\x05\x00" + b"\xff" * 40})
    content = bytearray(saved.read_bytes())
    for magic, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(magic) + offset] = method
    saved.write_bytes(content)
    expect_refusal(saved)


@pytest.mark.parametrize("name", ["classes", "tree.left", "header", "something.else"])
def test_pickles_in_a_file_are_never_executed(saved, tmp_path, name):
    witness = tmp_path / "executed"
    harmful = np.empty(3, dtype=object)
    harmful[:] = [Touch(witness)] * 3
    file = io.BytesIO()
    np.lib.format.write_array(file, harmful, allow_pickle=True)
    file.seek(0)
    np.lib.format.read_array(file, allow_pickle=True)
    assert witness.exists()  # the pickle would do harm
    witness.unlink()
    rewrite(saved, {name: file.getvalue()})
    expect_refusal(saved)
    assert not witness.exists()


def test_a_plain_pickle_is_never_executed(tmp_path):
    import pickle

    witness, path = tmp_path / "executed", tmp_path / "model.npz"
    path.write_bytes(pickle.dumps(Touch(witness)))
    expect_refusal(path)
    assert not witness.exists()


def test_loading_closes_the_file(saved):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        certree.load(saved)
        saved.unlink()


# -- models with a target of numbers, or with a certificate ----------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        PACBayesTreeRegressor(),
        PACBayesTreeRegressor(Cart(max_leaf_nodes=9), smoothing=1.0),
        PACBayesTreeRegressor(Grid(BOX), prior=None),
        PACBayesTreeRegressor(DecisionTreeRegressor(max_depth=3)),
        CertifiedTreeRegressor(duplicates="genuine"),
        CertifiedTreeRegressor("kd", widths="leaf", coverage=0.6, duplicates="genuine"),
        PrunedTreeRegressor(),
        PrunedTreeRegressor(KD("cycle"), rule=SiblingMerge("squared")),
        PrunedTreeRegressor(Dyadic(), rule=SquareRoot(count_empty=True), alpha=0.5),
    ],
    ids=repr,
)
def test_a_regressor_is_loaded_bit_by_bit(model, tmp_path):
    target = X[:, 0] + 3.5 * Y
    model = clone(model).set_params(random_state=0).fit(X, target)
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert type(loaded) is type(model)
    assert loaded.stats_.unit == model.stats_.unit
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_std(X), model.predict_std(X))
    assert make_comparable(loaded) == make_comparable(model)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"posteriors": "cv", "selection": "vote"},
        {"posteriors": PACBayesPosteriors(), "selection": "vote"},
        {
            "posteriors": PACBayesPosteriors(
                prior="branching",
                lambda_error=np.float64(0.5),
                search="error-first",
                scoring="error",
            )
        },
        {"vote": Voting("majority"), "grower": KD("cycle")},
        {"vote": Voting("mean", smoothing=0.5), "grower": DecisionTreeClassifier()},
        {"grower": Grid(BOX)},
        {"grower": Grid(BOX), "max_depth": 3, "class_weight": "balanced"},
    ],
    ids=str,
)
def test_a_certified_model_is_loaded_with_its_certificates(parameters, tmp_path):
    model = CertifiedTreeClassifier(random_state=0, duplicates="genuine", **parameters)
    model.fit(X, Y, classes=np.unique(Y))
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert_same_model(loaded, model)
    assert loaded.certificates_ == model.certificates_
    assert loaded.certificate_ == model.certificate_
    assert loaded.certify() == model.certify()
    assert loaded.report() == model.report()
    # The rows of the fit are not in the file, but leaves and classes of those that certify are.
    assert loaded.model_selection_ is None
    assert loaded.selective_certificates() == model.selective_certificates()
    refitted = loaded.fit(X, Y, classes=np.unique(Y))
    assert refitted.certificates_ == model.certificates_


@pytest.mark.parametrize(
    "model",
    [
        CertifiedTreeClassifier(
            delta=np.float32(0.1), train_size=np.float32(0.5), duplicates="genuine"
        ),
        CertifiedTreeRegressor(
            delta=np.float32(0.1), train_size=np.float32(0.5), duplicates="genuine"
        ),
        certree.BoostedTreesClassifier(max_iter=np.int8(3), max_thresholds=np.int64(5)),
        certree.CertifiedForestClassifier(
            np.int64(3), max_samples=np.float32(0.5), duplicates="genuine"
        ),
        certree.TreeForestClassifier(np.int64(3), max_depth=np.int64(2)),
    ],
    ids=repr,
)
def test_models_with_numpy_scalars_as_parameters_are_loaded(model, tmp_path):
    model.set_params(random_state=np.int64(0)).fit(X, Y)
    loaded = save_and_load(model, tmp_path / "model.npz")
    expect_same_bits(loaded.predict(X), model.predict(X))
    certree.save(loaded, tmp_path / "again.npz")
    assert read_header(tmp_path / "again.npz") == read_header(tmp_path / "model.npz")


@pytest.mark.parametrize("field", ["weights.log_evidence", "tree.optimal_splits"])
@pytest.mark.parametrize("value", [0, 5, [], {}, "0"], ids=str)
def test_files_that_save_would_write_differently_are_refused(saved, field, value):
    rewrite(saved, **{field: value})
    expect_refusal(saved, field.split(".")[1])


@pytest.mark.parametrize("dtype", ["<i8", ">i4", "<u4", "|i1"])
def test_arrays_of_another_dtype_or_byte_order_are_refused(saved, dtype):
    rewrite(saved, {"tree.left": read_arrays(saved)["tree.left"].astype(dtype)})
    expect_refusal(saved, "left must (have dtype int32|fit into int32)")


def test_a_preprocessor_is_not_saved(tmp_path):
    model = CertifiedTreeClassifier(preprocessor=StandardScaler(), duplicates="genuine").fit(X, Y)
    with pytest.raises(TypeError, match="'preprocessor' cannot be saved"):
        certree.save(model, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


# -- what is saved is read back --------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["<M8[D]", "<M8[ns]", "<M8[7D]", ">M8[s]", "<m8[s]", "<m8[Y]", "<m8"], ids=str
)
def test_classes_of_dates_and_time_spans_are_loaded(dtype, tmp_path):
    classes = np.array([5, 700, 800_000]).astype(dtype)
    model = PrunedTreeClassifier(random_state=0).fit(X, classes[Y])
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert loaded.classes_.dtype.str == model.classes_.dtype.str == dtype
    assert_same_model(loaded, model)


def test_classes_that_end_in_nul_are_not_saved(tmp_path):
    model = PrunedTreeClassifier().fit(X, np.array(["a", "a\0"], dtype=object)[TWO])
    with pytest.raises(ValueError, match="must not end in a NUL"):
        certree.save(model, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_models_that_load_would_refuse_are_not_saved(small, tmp_path):
    odd = copy.deepcopy(small)
    odd.feature_names_in_ = np.array(["same"] * odd.n_features_in_, dtype=object)
    with pytest.raises(
        ValueError,
        match=f"cannot be saved, .*: feature_names must be {odd.n_features_in_} different strings",
    ):
        certree.save(odd, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_arrays_that_compress_very_well_are_stored_uncompressed(tmp_path):
    # Zeros are a thousand times smaller compressed, and no more than a hundred times is trusted.
    zeros = {"zeros": np.zeros(10**7)}
    path = tmp_path / "zeros.npz"
    write_atomically(path, lambda file: write_archive(file, b"{}", zeros))
    assert path.stat().st_size > 8 * 10**7
    with open_archive(path) as archive:
        assert archive.header() == b"{}"
        expect_same_bits(archive["zeros"], zeros["zeros"])


# -- limits, before anything is read ----------------------------------------------------------------


def forbid_reading(monkeypatch):
    def read(*_):
        pytest.fail("something was read")

    monkeypatch.setattr(zipfile.ZipExtFile, "read", read)


def write_deflated(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_a_file_that_declares_too_much_memory_is_refused_unread(saved, monkeypatch):
    zeros = encode_npy(np.zeros(2**24))
    write_deflated(saved, {"header.npy": encode_npy(encode_header({})), "tree.left.npy": zeros})
    assert saved.stat().st_size < 2**18
    forbid_reading(monkeypatch)
    expect_refusal(saved, r"may hold at most 67,108,864")


def test_a_header_that_declares_too_much_memory_is_refused_unread(saved, monkeypatch):
    write_deflated(saved, {"header.npy": encode_npy(encode_header(b"[" + b"{}," * 2**21 + b"{}]"))})
    forbid_reading(monkeypatch)
    expect_refusal(saved, "JSON header has more than")


def test_a_stream_is_not_read_beyond_what_it_declares(saved):
    arrays = {**read_arrays(saved), "tree.chain": np.zeros(2**21, dtype=np.int32)}
    write_deflated(saved, {f"{name}.npy": encode_npy(values) for name, values in arrays.items()})
    content = bytearray(saved.read_bytes())
    # The directory then says that the part is as short as the others.
    at = content.rindex(b"tree.chain.npy") - 46
    content[at + 24 : at + 28] = struct.pack("<L", len(encode_npy(arrays["tree.left"])))
    saved.write_bytes(content)
    expect_refusal(saved)


@pytest.mark.parametrize("name", ["something", "tree.leaves", "../../etc/passwd", ""])
def test_unknown_arrays_are_refused_unread(saved, name):
    rewrite(saved, {name: b"no array at all"})
    expect_refusal(saved, f"must not have arrays that save does not write, got '{name}'")


def test_members_other_than_distinct_arrays_are_refused(saved):
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("readme.txt", "hello")
    expect_refusal(saved, "must hold .npy arrays only, got 'readme.txt'")
    rewrite(saved, without=["tree.left"])
    with zipfile.ZipFile(saved, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("tree.chain.npy", encode_npy(np.ones(3, dtype=np.int32)))
    expect_refusal(saved, "got two called 'tree.chain'")


def test_encrypted_arrays_are_refused(saved):
    content = bytearray(saved.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    saved.write_bytes(content)
    expect_refusal(saved, "is encrypted")


def test_a_directory_of_many_members_is_refused(saved):
    write_members(saved, {f"part{number}": b"" for number in range(100)})
    expect_refusal(saved, "nothing else, got 100 entries")


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices are POSIX's")
def test_pipes_and_devices_are_refused_without_waiting(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path(os.devnull)):
        expect_refusal(path, "must be a regular file")


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"n_features": 10**9}, "n_features must be an integer in 1 .. 16777216"),
        ({"n_features": True}, "n_features"),
        ({"weights.log_evidence": float("nan")}, "contains a NaN"),
        ({"weights.log_evidence": True}, "log_evidence must be 1.0, got True"),
        ({"temperatures": {"lambda_error": None, "lambda_penalty": 1.0}}, "temperatures"),
        ({"something": 1}, "must not have, the entries 'something'"),
        ({"classes.dtype": "|O"}, "classes must be strings if"),
        ({"classes.dtype": "<f4"}, "classes must have dtype float32"),
        ({"classes.dtype": "<f8"}, "classes must have dtype float64"),
        ({"classes.dtype": "|V8"}, "classes must be"),
        ({"classes.dtype": 0}, "classes must be"),
        ({"categories": [None] * 3}, "categories must have 4 entries"),
        ({"categories": [["a"], None, None, "b"]}, "categories must be a list"),
        ({"categories": [[float("nan")], None, None, None]}, "contains a NaN"),
        ({"tree.optimal_splits": 5}, "optimal_splits"),
    ],
    ids=str,
)
def test_headers_that_contradict_the_arrays_are_refused(saved, entries, reason):
    rewrite(saved, **entries)
    expect_refusal(saved, reason)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("monotonic_cst", [1, 0]),
        ("monotonic_cst", {"x": 1}),
        ("vote", {"class": "Voting", "parameters": {"smoothing": "1.0"}}),
        (
            "vote",
            {"class": "Voting", "parameters": {"slopes": {"array": [1], "dtype": "|i1"}}},
        ),
        ("n_jobs", 0),
    ],
)
def test_invalid_parameters_are_refused(saved, name, value):
    with_parameter(saved, name, value)
    expect_refusal(saved)


def test_weights_of_prunings_that_do_not_sum_to_1_are_refused(saved):
    weight = read_arrays(saved)["weights.weight"]
    rewrite(saved, {"weights.weight": weight / 2})
    expect_refusal(saved, "weights that sum to 1")


def test_a_vote_for_a_missing_class_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    certree.save(PrunedTreeClassifier().fit(X, ["only"] * len(X)), path)
    rewrite(path, {"vote.score": read_arrays(path)["vote.score"][:, ::-1]})
    expect_refusal(path, "must predict one of")


def test_sets_of_categories_without_names_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    model = PrunedTreeClassifier(categorical_features=[2], max_depth=1).fit(X.round(), Y)
    certree.save(model, path)
    certree.load(path).export_text()
    rewrite(path, categories=[None, None, [1.0], None])
    expect_refusal(path, "splits on categories that its features do not have")


# -- certificates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.999])
def test_a_bound_that_its_numbers_do_not_give_is_refused(nested, factor):
    saved = read_header(nested)["certificates"]
    for place, one in enumerate(saved):
        if one["bound"]:
            lower = [*saved[:place], {**one, "bound": factor * one["bound"]}, *saved[place + 1 :]]
            rewrite(nested, certificates=lower)
            expect_refusal(
                nested, f"certificate '{one['method']}' must have the bound of its observed numbers"
            )


@pytest.mark.parametrize(
    "change",
    [
        {"n": 10**6},
        {"n": 0},
        {"n": 2**60},
        {"n": 1.5},
        {"delta": 0.5},
        {"delta": 2.0},
        {"share": 0.0},
        {"observed": []},
        {"observed": [2.0]},
        {"observed": ["x"]},
        {"observed": [float("inf")]},
        {"complexity": -1.0},
        {"complexity": None},
        {"risk": 1.5},
        {"grouped": 1},
        {"unit": 0.0},
        {"unit": "m"},
        {"bound": 2.0},
    ],
    ids=str,
)
def test_certificates_with_contradicting_numbers_are_refused(nested, change):
    saved = read_header(nested)["certificates"]
    first = {**saved[0], **change}
    if change.get("n") == 10**6 or change.get("delta") == 0.5:
        first["bound"] = 0.001
    rewrite(nested, certificates=[first, *saved[1:]])
    expect_refusal(nested)
    rewrite(nested, certificates=saved * 30)
    expect_refusal(nested, "certificates must be a list of at most 64")
