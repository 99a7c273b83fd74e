"""Rows that join and leave a fit in a given box: the bits of a fit to the rows that are left."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import certree
import reference
from certree import (
    BoostedTreesClassifier,
    Cart,
    CertifiedTreeClassifier,
    Dyadic,
    Grid,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
)
from model_files import expect_refusal, read_arrays, read_header, rewrite

BOX = Grid([[-3.0, -3.0], [3.0, 3.0]])
LAW = {"lambda_error": 1.0, "lambda_penalty": 0.1}
MODELS = [
    PACBayesTreeClassifier(BOX, max_depth=5, **LAW),
    PACBayesTreeClassifier(BOX, max_depth=4, vote="majority", prior="branching", **LAW),
    PACBayesTreeClassifier(BOX, max_depth=3, class_weight={0: 0.3, 1: 1.7}, **LAW),
    PACBayesTreeRegressor(BOX, max_depth=5, **LAW),
    PACBayesTreeRegressor(BOX, max_depth=0, smoothing=0.0, **LAW),
    HelmboldSchapireTreeClassifier(BOX, max_depth=5, inverse_temperature=1.0),
    PrunedTreeClassifier(BOX, max_depth=5, alpha=1.0),
    PrunedTreeClassifier(BOX, max_depth=4, rule="sibling-merge", alpha=0.5),
    PrunedTreeClassifier(BOX, max_depth=4, rule="square-root", alpha=0.01),
    PrunedTreeRegressor(BOX, max_depth=5, alpha=0.5),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
BITS = ("tree_", "stats_", "weights_", "vote_", "seen_rows_")


def bits(model):
    """All that a fit sets, by name, arrays as bytes."""
    found = {}
    for name in BITS:
        for field, value in getattr(model, name).to_stored().items():
            found[f"{name}.{field}"] = as_bytes(value)
    for name in ("classes_", "sample_hashes_", "best_params_", "mixture_weights_", "posteriors_"):
        found[name] = as_bytes(getattr(model, name, None))
    return found


def as_bytes(value):
    is_array = isinstance(value, np.ndarray)
    return (value.dtype, value.shape, value.tobytes()) if is_array else repr(value)


def expect_same(found, expected, X):
    said, same = bits(found), bits(expected)
    assert [name for name in same if same[name] != said[name]] == []
    assert found.predict(X).tobytes() == expected.predict(X).tobytes()
    for asked in ("predict_proba", "predict_std"):
        if hasattr(expected, asked):
            said = (getattr(one, asked)(X).tobytes() for one in (found, expected))
            assert next(said) == next(said)


def target_of(model, y):
    """Two classes, or numbers whose sums are rounded."""
    return y / 3 + 0.1 if hasattr(model, "predict_std") or "Regressor" in repr(model) else y


def table(n=120, seed=0, p=2):
    """Rows with copies, ties and missing values, their classes, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[n // 2 : n // 2 + n // 8] = X[: n // 8]
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return X, y, rng.choice([0.1, 0.7, 1.0, 3.0], n)


@st.composite
def histories(draw):
    """Rows in batches, some of which leave again: what joins and leaves in turn, and what is left."""
    n = draw(st.integers(6, 30))
    values = st.sampled_from([-9.0, -1.5, -0.0, 0.0, 0.1, 1.5, 2.9, 7.0, np.nan])
    X = np.array(draw(st.lists(st.tuples(values, values), min_size=n, max_size=n)))
    y = np.array([0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    weight = np.array(
        draw(st.lists(st.sampled_from([0.0, 0.1, 1 / 3, 1.0, 2.5]), min_size=n, max_size=n))
    )
    weight[:2] = 1.0
    order = np.array([0, 1, *draw(st.permutations(range(2, n)))])
    ends = sorted(draw(st.lists(st.integers(3, n - 1), max_size=3)))
    gone = draw(st.lists(st.integers(2, n - 1), unique=True, max_size=n - 3))
    return X, y, weight, np.split(order, ends), gone


@every_model
@given(history=histories(), weighed=st.booleans())
def test_rows_that_come_and_go_leave_the_bits_of_a_fit_to_what_is_left(model, history, weighed):
    X, y, weight, batches, gone = history
    y = target_of(model, y)
    weight = weight if weighed else np.ones(len(y))
    found = clone(model)
    for batch in batches:
        if weight[batch].any():
            found.partial_fit(X[batch], y[batch], sample_weight=weight[batch] if weighed else None)
    leave = [i for i in gone if weight[i] > 0]
    if leave:
        found.forget(X[leave], y[leave], sample_weight=weight[leave] if weighed else None)
    left = np.setdiff1d(np.arange(len(y)), leave)
    expected = clone(model).fit(X[left], y[left], weight[left] if weighed else None)
    expect_same(found, expected, X)
    once_more = clone(model).fit(X[left[::-1]], y[left[::-1]], weight[left[::-1]])
    expect_same(once_more, expected, X)


@every_model
def test_merged_fits_are_one_fit_to_all_rows(model):
    X, y, weight = table()
    y = target_of(model, y)
    parts = [slice(0, 30), slice(30, 90), slice(90, 120)]
    fits = [clone(model).fit(X[part], y[part], weight[part]) for part in parts]
    others = [bits(one) for one in fits[1:]]
    merged = fits[0].merge(fits[2]).merge(fits[1])
    expect_same(merged, clone(model).fit(X, y, weight), X)
    assert [bits(one) for one in fits[1:]] == others
    twice = clone(model).fit(X, y, weight)
    before = bits(twice)
    with pytest.raises(ValueError, match="must be fitted to other rows, got the model itself"):
        twice.merge(twice)
    assert bits(twice) == before
    expect_same(
        twice.merge(clone(model).fit(X, y, weight)),
        clone(model).fit(np.tile(X, (2, 1)), np.tile(y, 2), np.tile(weight, 2)),
        X,
    )


@every_model
def test_fits_in_a_given_box_count_as_others_do(model, monkeypatch):
    """The way of all other fits, which looks at what the rows lack in the tree, is the slow twin."""
    X, y, weight = table()
    y = target_of(model, y)
    expected = clone(model)
    with monkeypatch.context() as patched:
        patched.setattr(
            "certree.estimators.updatable._explain_no_updates", lambda _: "the way of all others"
        )
        expected.fit(X, y, np.ceil(weight))
    assert expected.seen_rows_ is None
    found = clone(model).fit(X, y, np.ceil(weight))
    for name in ("left", "threshold", "feature", "missing_both"):
        np.testing.assert_array_equal(getattr(found.tree_, name), getattr(expected.tree_, name))
    np.testing.assert_allclose(found.stats_.n, expected.stats_.n, 1e-14)
    np.testing.assert_allclose(found.vote_.score, expected.vote_.score, 1e-12, 1e-12)
    assert found.best_params_ == expected.best_params_
    if hasattr(found, "classes_"):
        np.testing.assert_array_equal(found.sample_hashes_, expected.sample_hashes_)


@every_model
def test_files_and_pickles_go_on_where_the_fit_was(model, tmp_path):
    X, y, weight = table()
    y = target_of(model, y)
    fitted = clone(model).fit(X[:80], y[:80], weight[:80])
    certree.save(fitted, tmp_path / "model")
    for again in (certree.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        expect_same(again, fitted, X)
        again.partial_fit(X[80:], y[80:], sample_weight=weight[80:])
        again.forget(X[:40], y[:40], sample_weight=weight[:40])
        expect_same(again, clone(model).fit(X[40:], y[40:], weight[40:]), X)
    without = "seen_rows", "sample_hashes"
    for name in without if hasattr(fitted, "classes_") else without[:1]:
        certree.save(fitted, tmp_path / "model", **{name: False})
        again = certree.load(tmp_path / "model")
        assert again.seen_rows_ is None
        assert again.predict(X).tobytes() == fitted.predict(X).tobytes()
        for change in (lambda one=again: one.forget(X, y), lambda one=again: one.merge(fitted)):
            with pytest.raises(ValueError, match="needs seen_rows_"):
                change()


def test_a_file_says_what_an_update_needs_and_no_features(tmp_path):
    X, y, _ = table()
    fitted = clone(MODELS[0]).fit(X, y)
    certree.save(fitted, tmp_path / "model")
    with np.load(tmp_path / "model") as archive:
        kept = {name for name in archive.files if name.startswith("seen_rows")}
    fields = ("hashes", "rounded", "leaf", "y", "lacks")
    assert kept == {f"seen_rows.{name}" for name in fields}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: {"seen_rows.leaf": one["seen_rows.leaf"] - 40}, "leaf must lie in 0"),
        (lambda one: {"seen_rows.leaf": one["seen_rows.leaf"] * 0}, "must hold indices of leaves"),
        (
            lambda one: {"sample_hashes": np.unique(one["seen_rows.hashes"])},
            "must equal those of the rows stored for updates",
        ),
        (lambda one: _rows_at(one, np.arange(119)), "total weight 120 of stats, got 119"),
        (lambda one: {"seen_rows.y": one["seen_rows.y"] + 0.0}, "seen_rows.y of int32"),
    ],
)
def test_files_whose_rows_are_not_those_of_the_fit_are_refused(change, said, tmp_path):
    X, y, _ = table()
    X = X + np.arange(120)[:, None] / 1000  # no copies
    path = tmp_path / "model"
    certree.save(clone(MODELS[0]).fit(X, y), path)
    changed = change(read_arrays(path))
    known = changed.get("sample_hashes", read_arrays(path)["sample_hashes"])
    rewrite(path, changed, n_sample_hashes=len(known))
    expect_refusal(path, said)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[3]], ids=["classes", "numbers"])
def test_rows_of_a_file_may_stand_in_any_order(model, tmp_path):
    # Earlier versions ordered them by hashes that contained the weight.
    X, y, weight = table()
    fitted = clone(model).fit(X, target_of(model, y), weight)
    path = tmp_path / "model"
    certree.save(fitted, path)
    order = np.random.default_rng(0).permutation((weight > 0).sum())
    arrays = read_arrays(path)
    names = [name for name in arrays if name.startswith("seen_rows.")]
    rewrite(path, {name: arrays[name][order] for name in names})
    expect_same(certree.load(path), fitted, X)


def test_rows_of_a_file_need_a_box(tmp_path):
    X, y, _ = table()
    path = tmp_path / "model"
    certree.save(clone(MODELS[3]).fit(X, y / 3), path)
    parameters = read_header(path)["parameters"]
    rewrite(path, parameters={**parameters, "max_depth": None})
    expect_refusal(
        path, "must not have seen_rows, .* with its parameters: max_depth must be an integer"
    )


def _rows_at(arrays, places):
    """Some rows alone, with the hashes that then are known."""
    kept = {name: arrays[name][places] for name in arrays if name.startswith("seen_rows.")}
    known = np.append(kept["seen_rows.hashes"], kept["seen_rows.rounded"])
    return {**kept, "sample_hashes": np.unique(known)}


def test_rows_are_found_as_often_as_they_are_there():
    X, y, weight = table()
    y = target_of(MODELS[3], y)
    model = clone(MODELS[3]).fit(X, y, weight)
    before = bits(model)
    for rows, n_unknown in [
        ((X[:5] + 0.01, y[:5], weight[:5]), 5 - int(np.isnan(X[:5]).all(axis=1).sum())),
        ((X[:5], y[:5] + 1, weight[:5]), 5),
        ((X[:5], y[:5], weight[:5] + 1), 5),
        ((np.tile(X, (2, 1)), np.tile(y, 2), np.tile(weight, 2)), len(y)),
    ]:
        known = reference.count_unknown_rows((X, y, weight), rows)
        assert known == n_unknown
        with pytest.raises(ValueError, match=rf"{n_unknown} of {len(rows[1])} rows are not among"):
            model.forget(rows[0], rows[1], sample_weight=rows[2])
        assert bits(model) == before
    with pytest.raises(ValueError, match="all 120 rows of the fit would go, which leaves no model"):
        model.forget(X, y, sample_weight=weight)
    assert bits(model) == before


def test_forgotten_rows_are_new_rows_again():
    X, y, _ = table(400)
    model = PACBayesTreeClassifier(BOX, max_depth=4, **LAW).fit(X, y)
    rng = np.random.default_rng(3)
    gone = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    model.partial_fit(*gone)
    with pytest.raises(ValueError, match="50 of 50 rows also occur among those of the fit"):
        certree.certify(model, *gone)
    model.forget(*gone)
    assert certree.certify(model, *gone).repeats == 0
    np.testing.assert_array_equal(model.sample_hashes_, clone(model).fit(X, y).sample_hashes_)


def test_classes_are_those_of_the_first_call():
    X, y, _ = table()
    X, y = np.vstack([X, [[0.2, 0.3]]]), np.append(y, 2)
    model = PACBayesTreeClassifier(BOX, max_depth=3, **LAW)
    by_name = clone(model).partial_fit(X[:100], y[:100], classes=[2, 1, 0])
    expect_same(by_name.partial_fit(X[100:], y[100:]), clone(model).fit(X, y), X)
    assert by_name.forget(X[-1:], y[-1:]).classes_.tolist() == [0, 1, 2]
    expect_same(by_name, clone(model).partial_fit(X[:-1], y[:-1], classes=[0, 1, 2]), X)
    assert by_name.predict_proba(X)[:, 2].max() < 1e-6
    of_two = clone(model).partial_fit(X[:100], y[:100])
    before = bits(of_two)
    for rows, classes, said in [
        ((X[100:], y[100:]), None, r"y must hold classes among \[0 1\], got \[2\]"),
        ((X[:9], y[:9]), [0, 1, 2], "classes must be those of the first call"),
    ]:
        with pytest.raises(ValueError, match=said):
            of_two.partial_fit(*rows, classes=classes)
        assert bits(of_two) == before
    with pytest.raises(ValueError, match="classes must be None for a regressor"):
        clone(MODELS[3]).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        HelmboldSchapireTreeClassifier(BOX, max_depth=3, inverse_temperature=1.0).partial_fit(X, y)


def test_many_classes_come_and_go():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), np.arange(600) % 150
    weight, gone = rng.random(600), np.arange(600) % 150 < 40
    model = PACBayesTreeClassifier(BOX, max_depth=4, **LAW)
    found = clone(model).partial_fit(X[:300], y[:300], sample_weight=weight[:300])
    found.partial_fit(X[300:], y[300:], sample_weight=weight[300:])
    found.forget(X[gone], y[gone], sample_weight=weight[gone])
    left = np.flatnonzero(~gone)[::-1]
    expected = clone(model)
    expected.partial_fit(X[left], y[left], sample_weight=weight[left], classes=np.arange(150))
    assert type(found.stats_).__name__ == "SparseNodeStats"
    expect_same(found, expected, X)


def test_categories_are_those_of_the_first_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["a", "b", "c"], 90), "age": rng.normal(size=90)})
    X.loc[::7, "town"] = None
    y = np.array(["no", "yes"])[rng.integers(0, 2, 90)]
    model = PACBayesTreeClassifier(BOX, max_depth=4, **LAW)
    found = clone(model).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]).forget(X[20:60], y[20:60])
    left = np.r_[0:20, 60:90]
    expect_same(found, clone(model).fit(X.iloc[left], y[left]), X)
    before = bits(found)
    more = X[:3].assign(town=["d", "a", "e"])
    for change in (found.partial_fit, found.forget):
        with pytest.raises(
            ValueError, match=r"'town' must have categories among \['a', 'b', 'c'\].*\['d', 'e'\]"
        ):
            change(more, y[:3])
    assert bits(found) == before
    other = clone(model).fit(X.assign(town=X["town"].replace("c", "b")), y)
    with pytest.raises(ValueError, match="other must be a fit with the same categories"):
        found.merge(other)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"grower": "cart"}, r"grower must be Grid\(box\).*got 'cart'"),
        ({"grower": Cart()}, r"grower must be Grid\(box\).*got Cart\(\)"),
        ({"grower": Dyadic()}, r"grower must be Grid\(box\)"),
        (
            {"grower": Grid([[-3, -3], [3, 3]], resolution="paper"), "max_depth": None},
            "without a resolution",
        ),
        ({"max_depth": None}, "max_depth must be an integer.*got None"),
        ({"max_depth": "log"}, "max_depth must be an integer.*got 'log'"),
        ({"lambda_error": None}, "lambda_error must be set to a number"),
        ({"lambda_error": None, "lambda_penalty": None}, "lambda_error and lambda_penalty"),
        (
            {"class_weight": "balanced"},
            "class_weight must be None or a dict.*got 'balanced'",
        ),
    ],
)
def test_other_fits_say_which_setting_they_lack(settings, said):
    X, y, _ = table(300)
    model = clone(MODELS[0]).set_params(**settings)
    for name in ("partial_fit", "forget", "merge"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}' here: .*{said}"):
            getattr(model, name)
    assert model.fit(X, y).seen_rows_ is None
    assert not hasattr(model, "partial_fit")


def test_ensembles_and_certified_trees_have_no_such_method():
    for model in (BoostedTreesClassifier(), TreeForestClassifier(), CertifiedTreeClassifier(BOX)):
        assert not any(hasattr(model, name) for name in ("partial_fit", "forget", "merge"))


def test_a_later_fit_without_a_box_keeps_no_rows():
    X, y, _ = table()
    model = clone(MODELS[0]).fit(X, y)
    assert model.seen_rows_ is not None
    assert model.compact(0.1).seen_rows_ is None
    model.set_params(grower="cart").fit(X, y)
    model.set_params(grower=BOX)
    with pytest.raises(ValueError, match="partial_fit needs seen_rows_"):
        model.partial_fit(X, y)


def test_parameters_are_those_of_the_fit():
    X, y, _ = table()
    model = clone(MODELS[0]).fit(X, y).set_params(max_depth=3)
    for change, name in (
        (lambda: model.partial_fit(X, y), "partial_fit"),
        (lambda: model.forget(X, y), "forget"),
        (lambda: model.merge(clone(model).fit(X, y)), "merge"),
    ):
        with pytest.raises(
            ValueError, match=f"{name} adds rows or trees, got 3|other must have been fitted with"
        ) as raised:
            change()
        assert re.search("max_depth(=| must be )5", str(raised.value))
    model.set_params(max_depth=5, random_state=3, n_jobs=2)
    expect_same(model.partial_fit(X, y), clone(MODELS[0]).fit(np.vstack([X, X]), np.tile(y, 2)), X)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            lambda X, y: clone(MODELS[0]).set_params(max_depth=4).fit(X, y),
            "fitted with max_depth=5.*got max_depth=4",
        ),
        (
            lambda X, y: clone(MODELS[0]).set_params(grower=Grid([[-3, -3], [3, 4]])).fit(X, y),
            "other must have been fitted with grower=",
        ),
        (
            lambda X, y: clone(MODELS[0]).fit(X, y + 1),
            r"same classes, got \[1 2\] instead of \[0 1\]",
        ),
        (lambda X, y: clone(MODELS[0]).fit(X, y.astype(str)), "same classes"),
        (
            lambda X, y: clone(MODELS[0]).fit(pd.DataFrame(X, columns=["a", "b"]), y),
            "same names of features, got .* instead of None",
        ),
    ],
)
def test_fits_of_other_boxes_settings_features_and_classes_do_not_merge(other, said):
    X, y, _ = table()
    model = clone(MODELS[0]).fit(X, y)
    before = bits(model)
    with pytest.raises(ValueError, match=said):
        model.merge(other(X, y))
    assert bits(model) == before


def test_what_is_no_fit_is_refused():
    X, y, _ = table()
    model = clone(MODELS[0])
    for change in (lambda: model.forget(X, y), lambda: model.merge(model)):
        with pytest.raises(NotFittedError):
            change()
    model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.merge(clone(model))
    with pytest.raises(
        TypeError, match="other must be a fitted PACBayesTreeClassifier, got PrunedTree"
    ):
        model.merge(clone(MODELS[6]).fit(X, y))
    before = bits(model)
    for change in (model.partial_fit, model.forget):
        for rows, said in [
            ((X[:, :1], y), "X has 1 features"),
            ((X, y[:-1]), "inconsistent numbers of samples"),
            ((X[:0], y[:0]), "0 sample"),
            ((np.full_like(X, np.inf), y), "infinity"),
        ]:
            with pytest.raises(ValueError, match=said):
                change(*rows)
            assert bits(model) == before
    with pytest.raises(ValueError, match="must sum to at most"):
        model.partial_fit(X, y, sample_weight=np.full(len(y), 1e300))


def test_weights_too_large_together_are_refused():
    X, y, _ = table()
    model = clone(MODELS[0]).fit(X, y, np.full(len(y), 7e277))
    before = bits(model)
    with pytest.raises(ValueError, match="must sum to at most"):
        model.partial_fit(X, y, sample_weight=np.full(len(y), 7e277))
    assert bits(model) == before


def test_float32_and_float64_rows_are_the_same_rows():
    X, y, _ = table()
    X = X.astype(np.float32)
    model = clone(MODELS[0]).fit(X, y)
    model.forget(X[:50].astype(np.float64), y[:50])
    expect_same(model, clone(MODELS[0]).fit(np.asfortranarray(X[50:]), y[50:]), X)


def test_threads_change_no_bit():
    X, y, weight = table(5000)
    one, four = (clone(MODELS[0]).set_params(n_jobs=n).fit(X, y, weight) for n in (1, 4))
    expect_same(four, one, X)
