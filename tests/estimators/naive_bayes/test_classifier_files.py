"""Files of naive Bayes: everything comes back, nothing else is let in."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import certree
from certree import Cart, NaiveBayesClassifier, PACBayesTreeClassifier
from certree.estimators.naive_bayes.powers import POWERS
from estimators.naive_bayes.test_classifier import X as IRIS
from estimators.naive_bayes.test_classifier import Y as KINDS_OF_IRIS
from estimators.naive_bayes.test_classifier import mixed
from model_files import (
    SHAPES_AND_TYPES,
    Touch,
    encode_header,
    expect_refusal,
    expect_same_bits,
    list_wrong_shapes,
    make_comparable,
    make_earlier,
    read_arrays,
    read_header,
    read_parameter,
    replace_value,
    rewrite,
    save_and_load,
)

FRAME, Y = mixed(200)
KINDS = ["normal", "categorical", "histogram"]
LABELS = np.where(Y == 1, "yes", "no")
# What is missing, unknown or far away too.
TEST = pd.concat(
    [FRAME, FRAME.assign(city="Essen"), FRAME.assign(city=None, size=1e12, gain=np.nan)]
)


def assert_same_model(loaded, model, rows=TEST):
    assert type(loaded) is NaiveBayesClassifier
    expect_same_bits(loaded.predict_proba(rows), model.predict_proba(rows))
    expect_same_bits(loaded.predict_joint_log_proba(rows), model.predict_joint_log_proba(rows))
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    assert loaded.classes_.dtype == model.classes_.dtype
    expect_same_bits(loaded.explain(rows).contributions, model.explain(rows).contributions)
    assert make_comparable(loaded) == make_comparable(model)
    assert loaded.power_ == model.power_
    for name in ("class_count_", "class_prior_"):
        expect_same_bits(getattr(loaded, name), getattr(model, name))


@pytest.fixture(scope="module")
def small():
    """A model with every kind of density."""
    return NaiveBayesClassifier(KINDS, bins=3).fit(FRAME, LABELS)


@pytest.fixture
def saved(small, tmp_path):
    path = tmp_path / "model.npz"
    certree.save(small, path)
    return path


# -- round trips -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"power": 1.0},
        {"power": np.float32(0.5), "bins": np.int64(5), "alpha": 0.1},
        {"densities": KINDS, "bins": "fd"},
        {"densities": {"size": "histogram", "gain": "categorical"}},
        {"densities": "categorical"},
        {"priors": np.array([0.3, 0.7])},
        {"class_weight": {"yes": 3.0, "no": 0.5}},
        {"class_weight": "balanced", "var_smoothing": 1e-3},
    ],
    ids=str,
)
def test_a_loaded_model_is_the_saved_one(parameters, tmp_path):
    model = NaiveBayesClassifier(**parameters).fit(FRAME, LABELS)
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert_same_model(loaded, model)
    np.testing.assert_array_equal(loaded.feature_names_in_, FRAME.columns)
    assert_same_model(save_and_load(loaded, tmp_path / "again.npz"), model)


@pytest.mark.parametrize("densities", ["auto", "normal", "histogram", "categorical"])
@pytest.mark.parametrize(
    "classes",
    [np.array(["b", "a", "c"]), np.array(["b", "a", "c"], dtype=object), np.array([3, -1, 2**40])],
    ids=["str", "object", "int"],
)
def test_numbers_without_names_come_back(densities, classes, tmp_path):
    model = NaiveBayesClassifier(densities).fit(IRIS, classes[KINDS_OF_IRIS])
    loaded = save_and_load(model, tmp_path / "model.npz")
    assert_same_model(loaded, model, np.vstack([IRIS, -IRIS, np.full((1, 4), np.nan)]))
    assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.parametrize("densities", ["auto", "normal", "histogram", "categorical"])
def test_columns_without_information_come_back(densities, tmp_path):
    table = np.column_stack([np.full(6, np.nan), np.full(6, 0.1), np.arange(6.0)])
    for y in ([0, 1, 1, 0, 1, 1], [0] * 6):
        model = NaiveBayesClassifier(densities).fit(table, y)
        assert_same_model(save_and_load(model, tmp_path / "model.npz"), model, table)


@pytest.mark.parametrize("power", [1.0, "auto"])
@pytest.mark.parametrize("densities", ["auto", KINDS])
def test_batches_go_on_after_loading(densities, power, tmp_path):
    model = NaiveBayesClassifier(densities, power=power)
    model.partial_fit(FRAME[:90], LABELS[:90], classes=["no", "perhaps", "yes"])
    loaded = save_and_load(model, tmp_path / "model.npz")
    for part in (slice(90, 120), slice(120, 200)):
        model.partial_fit(FRAME[part], LABELS[part])
        loaded.partial_fit(FRAME[part], LABELS[part])
        assert_same_model(loaded, model)


def test_parameters_that_were_changed_after_the_fit_change_no_prediction(tmp_path):
    fitted, model = (NaiveBayesClassifier(KINDS).fit(FRAME, LABELS) for _ in range(2))
    model.set_params(alpha=7.0, var_smoothing=1.0, power=0.0, priors=[0.5, 0.5])
    assert_same_model(save_and_load(model, tmp_path / "model.npz"), fitted)


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        certree.save(NaiveBayesClassifier(), tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("densities", ["normal", "histogram", "auto"])
def test_moments_that_no_float_holds_are_refused_at_fit(densities):
    table = np.where(IRIS.mean(axis=0) < IRIS, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match=r"feature 'x\[0\]' overflow"):
        NaiveBayesClassifier(densities).fit(table, KINDS_OF_IRIS)
    model = NaiveBayesClassifier("normal").fit(IRIS, KINDS_OF_IRIS)
    before = model.predict_proba(IRIS)
    with pytest.raises(ValueError, match="standard deviation within float64"):
        model.partial_fit(table, KINDS_OF_IRIS)
    expect_same_bits(model.predict_proba(IRIS), before)


# -- damaged files ---------------------------------------------------------------------------------


def test_a_file_cut_off_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 11):
        saved.write_bytes(whole[:length])
        expect_refusal(saved)


@pytest.mark.slow
def test_flipped_bits_are_refused_or_harmless(saved, small):
    whole = saved.read_bytes()
    expected = small.predict_proba(TEST).tobytes()
    rng = np.random.default_rng(0)
    refused, places = 0, range(0, len(whole), 3)
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 255]))
        saved.write_bytes(damaged)
        try:
            loaded = certree.load(saved)
        except ValueError:
            refused += 1
        else:
            assert loaded.predict_proba(TEST).tobytes() == expected
    assert refused > len(places) / 2


ARRAYS = [
    "header",
    "classes",
    "sample_hashes",
    "class_count",
    "class_prior",
    "normal.mean",
    "normal.deviation",
    "moments.rows",
    "moments.mean",
    "moments.deviation",
    "histogram.edges",
    "table.size",
    "table.alpha",
    "table.counts",
    "judged.older",
    "judged.recent",
]


def test_these_are_all_arrays_of_a_model_file(saved):
    assert sorted(read_arrays(saved)) == sorted(ARRAYS)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_named(saved, name):
    rewrite(saved, without=[name])
    expect_refusal(saved, name)


@pytest.mark.parametrize(("name", "change"), list_wrong_shapes(ARRAYS))
def test_arrays_of_wrong_shape_or_type_are_refused(saved, name, change):
    rewrite(saved, {name: SHAPES_AND_TYPES[change](read_arrays(saved)[name])})
    expect_refusal(saved)


def at(place, value):
    return lambda values: replace_value(values, place, value)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("classes", lambda classes: classes[::-1]),
        ("class_count", at(0, -1.0)),
        ("class_count", at(0, np.nan)),
        ("class_count", np.zeros_like),
        ("class_count", lambda count: np.full_like(count, 1e308)),
        ("class_count", at(0, 5.0)),  # fewer than a feature is known of
        ("class_prior", at(0, -0.5)),
        ("class_prior", at(0, np.nan)),
        ("class_prior", at(0, 2.0)),
        ("class_prior", lambda prior: np.eye(len(prior))[0]),
        ("normal.mean", at((0, 0), np.inf)),
        ("normal.deviation", at((0, 0), 0.0)),
        ("normal.deviation", at((0, 0), np.nan)),
        ("normal.deviation", at((0, 0), -1.0)),
        ("moments.rows", at((0, 0), -1.0)),
        ("moments.rows", at((0, 0), 1e9)),
        ("moments.mean", at((0, 0), np.nan)),
        ("moments.deviation", at((0, 0), -1.0)),
        ("histogram.edges", at(0, np.nan)),
        ("histogram.edges", at(0, np.inf)),
        ("histogram.edges", lambda edges: edges[::-1]),
        ("histogram.edges", np.ones_like),
        ("histogram.edges", lambda edges: np.append(edges, 1e300)),
        ("table.size", at(0, 0)),
        ("table.size", at(0, -1)),
        ("table.size", at(0, 2**63 - 1)),
        ("table.size", lambda size: size[::-1]),
        ("table.alpha", at(0, 0.0)),
        ("table.alpha", at(0, np.nan)),
        ("table.alpha", at(0, 1e308)),
        ("table.counts", at((0, 0), -1.0)),
        ("table.counts", at((0, 0), np.inf)),
        ("table.counts", at((0, 0), 1e9)),
        ("judged.older", at(0, np.nan)),
        ("judged.recent", at(0, np.inf)),
    ],
)
def test_arrays_with_wrong_content_are_refused(saved, name, change):
    rewrite(saved, {name: change(read_arrays(saved)[name])})
    expect_refusal(saved)


@pytest.mark.parametrize(
    "entries",
    [
        {"model": "PACBayesTreeClassifier"},
        {"model": "GaussianNB"},
        {"parameters": {"power": 2.0}},
        {"parameters": {"grower": "cart"}},
        {"parameters": {"densities": {"class": "GaussianNB", "parameters": {}}}},
        {"parameters": {"densities": {"class": "ExtraTreeClassifier", "parameters": {}}}},
        {"n_features": 2},
        {"n_features": 10**30},
        {"feature_names": ["a"]},
        {"categories": None},
        {"categories": [None, ["Athens"], None]},
        {"categories": [["x"], ["Athens", "Bern", "Cairo", "Delhi"], None]},
        {"densities": None},
        {"densities": "normal"},
        {"densities": ["normal", "categorical"]},
        {"densities": ["normal", "normal", "histogram"]},
        {"densities": ["categorical", "categorical", "histogram"]},
        {"densities": ["histogram", "categorical", "normal"]},
        {"densities": ["normal", "categorical", "normal"]},
        {"densities": ["normal", "categorical", ["histogram"]]},
        {"power": None},
        {"power": "auto"},
        {"power": 1.5},
        {"power": -0.5},
        {"power": float("nan")},
        {"n_rows": 0},
        {"n_rows": 2.5},
        {"n_rows": None},
        {"judged.rows": None},
        {"judged.rows": -1.0},
        {"judged.rows": float("inf")},
        {"judged.rows": float("nan")},
    ],
    ids=lambda entries: json.dumps(entries)[:60],
)
def test_headers_with_wrong_entries_are_refused(saved, entries):
    rewrite(saved, **entries)
    expect_refusal(saved)


def test_objects_of_trees_have_no_place_here(saved, tmp_path):
    # They may be known, but naive Bayes has no use for them.
    other = tmp_path / "tree.npz"
    certree.save(PACBayesTreeClassifier(Cart(max_leaf_nodes=4)).fit(IRIS, KINDS_OF_IRIS), other)
    for name in ("densities", "power", "bins"):
        rewrite(saved, parameters={name: read_parameter(other, "grower")})
        expect_refusal(saved)


def test_the_message_for_files_of_the_first_version_names_the_version(saved):
    rewrite(saved, version=1)
    expect_refusal(saved, "version . of an unreleased certree")


@pytest.mark.parametrize("entry", ["densities", "power", "judged.rows", "categories", "n_features"])
def test_headers_without_an_entry_are_refused(saved, entry):
    header = read_header(saved)
    del header[entry]
    rewrite(saved, {"header": encode_header(header)})
    expect_refusal(saved)


def test_a_file_that_tells_no_number_of_rows_predicts_and_learns_no_more(saved, small):
    """As those of earlier versions do."""
    make_earlier(saved)
    loaded = certree.load(saved)
    expect_same_bits(loaded.predict_proba(TEST), small.predict_proba(TEST))
    with pytest.raises(ValueError, match="partial_fit needs the number of training rows"):
        loaded.partial_fit(FRAME, LABELS)
    certree.save(loaded, saved)
    assert "n_rows" not in read_header(saved)
    assert_same_model(certree.load(saved), loaded)
    loaded.fit(FRAME, LABELS).partial_fit(FRAME, LABELS)


def test_a_file_written_anew_without_changes_still_loads(saved, small):
    # Else the tests that change one thing would pass for another reason.
    rewrite(saved, {"judged.older": np.zeros(len(POWERS))}, power=small.power_)
    assert_same_model(certree.load(saved), small)


@pytest.mark.parametrize("name", ["histogram.edges", "table.counts", "something.else"])
def test_pickles_in_a_file_are_never_executed(saved, tmp_path, name):
    witness = tmp_path / "executed"
    harmful = np.empty(3, dtype=object)
    harmful[:] = [Touch(witness)] * 3
    np.save(tmp_path / "harmful.npy", harmful, allow_pickle=True)
    rewrite(saved, {name: (tmp_path / "harmful.npy").read_bytes()})
    expect_refusal(saved)
    assert not witness.exists()
