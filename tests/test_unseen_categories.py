"""A category that no training row of a node has goes to the child with the greater training weight."""

import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import certree
import reference
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    Cart,
    DecoratedTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    Tree,
    TreeForestClassifier,
    TreeForestRegressor,
    grow_cart,
)
from certree.explain import shapley_values
from certree.export import check_export
from certree.export.plain_dict import predict_from_dict
from certree.tree import ALL_LEFT, ALL_RIGHT
from model_files import read_arrays, read_header, rewrite, save_and_load
from strategies import categorical_rows

MODELS = {
    "pruned": PrunedTreeClassifier(random_state=0),
    "pac": PACBayesTreeClassifier(random_state=0),
    "binned": PACBayesTreeClassifier(Cart(max_bins=255), random_state=0),
    "forest": TreeForestClassifier(5, random_state=0),
    "boosted": BoostedTreesClassifier(max_iter=8, random_state=0),
    "adaboost": AdaBoostTreeClassifier(n_estimators=4, random_state=0),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def make_towns(n=600, seed=0, new=0.0):
    """Return a table in which a missing town is rare and tells the class, and the classes.

    new: fraction of the rows whose town no other table has. Some towns occur in the south only.
    """
    rng = np.random.default_rng(seed)
    north = rng.random(n) < 0.5
    town = np.where(north, rng.choice(["a", "b", "c"], n), rng.choice(["c", "d", "e", "f"], n))
    town = town.astype(object)
    size = rng.normal(size=n)
    is_missing = rng.random(n) < 0.04
    town[is_missing] = None
    y = np.isin(town, ["a", "d"]) & (size > -1)
    y = np.where(is_missing, True, y & (rng.random(n) < 0.9)).astype(int)
    town[~is_missing & (rng.random(n) < new)] = "unseen"
    return pd.DataFrame({"town": town, "north": north * 1.0, "size": size}), y


X, Y = make_towns()
NEW, NEW_Y = make_towns(400, 1, new=0.3)


def expect_heavier(tree, rows, weight, categorical, n_categories):
    """Check the child of every category that no row of a node has; return how many there are."""
    n_checked, inside = 0, {0: np.arange(len(rows))}
    for v in np.flatnonzero(~tree.is_leaf):
        here, feature = inside.pop(v), tree.feature[v]
        left = np.array([reference.goes_left(tree, v, x) for x in rows[here]], dtype=bool)
        inside[tree.left[v]], inside[tree.left[v] + 1] = here[left], here[~left]
        if feature not in categorical:
            continue
        goes_left = weight[here[left]].sum() >= weight[here[~left]].sum()
        for code in {-1.0, *map(float, range(n_categories))} - set(rows[here, feature]):
            row = np.zeros(rows.shape[1])
            row[feature] = code
            assert reference.goes_left(tree, v, row) == goes_left
            n_checked += 1
    return n_checked


@pytest.mark.parametrize("options", [{}, {"max_bins": 255}, {"splitter": "random"}], ids=str)
@given(st.data(), st.booleans())
def test_unseen_categories_go_to_the_child_of_greater_weight(options, data, is_weighted):
    rows, y = data.draw(categorical_rows())
    weight = np.random.default_rng(len(rows)).integers(0, 4, len(rows)).astype(float)
    weight = weight if is_weighted and weight.any() else np.ones(len(rows))
    tree = grow_cart(
        rows, y, sample_weight=weight, categorical_features=[0, 2], random_state=0, **options
    )
    expect_heavier(tree, rows[weight > 0], weight[weight > 0], {0, 2}, 6)


def test_the_twin_checks_something():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (80, 2)).astype(float)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    y = rng.integers(0, 2, 80)
    tree = grow_cart(rows, y, categorical_features=[0, 1])
    assert expect_heavier(tree, rows, np.ones(80), {0, 1}, 5) > 50


@pytest.mark.parametrize("splitter", ["best", "random"])
def test_trees_of_forests_send_unseen_categories_to_the_larger_child(splitter):
    model = TreeForestClassifier(4, splitter=splitter, bootstrap=False, random_state=0).fit(X, Y)
    rows = model.categories_.encode(X)
    checked = [expect_heavier(tree, rows, np.ones(len(X)), {0}, 6) for tree in model.trees_]
    assert min(checked) > 10


@pytest.mark.parametrize("missing_left", [False, True])
def test_a_split_that_only_separates_missing_values_has_a_threshold(missing_left):
    x = np.array([0.0, 1.0, 2.0] * 10 + [np.nan] * 3)
    y = np.isnan(x).astype(int) if missing_left else (~np.isnan(x)).astype(int)
    for max_bins in (None, 255):
        tree = grow_cart(x[:, None], y, categorical_features=[0], max_bins=max_bins)
        assert tree.n_nodes == 3
        assert len(tree.categories) == 0
        assert tree.threshold[0] == (ALL_RIGHT if tree.missing_left[0] else ALL_LEFT)
        leaf = tree.apply([[-1.0], [0.0], [9.0], [2.0**24], [np.nan]])
        assert len(set(leaf[:4].tolist())) == 1
        assert leaf[4] != leaf[0]


@every_model
def test_a_rare_missing_value_does_not_speak_for_unseen_categories(model):
    fitted = model.fit(X, Y)
    missing, unseen = (NEW.assign(town=town)[NEW["size"] > -0.5] for town in (None, "unseen"))
    assert (fitted.predict_proba(missing)[:, 1] > 0.5).mean() > 0.9
    assert (fitted.predict_proba(unseen)[:, 1] < 0.5).mean() > 0.9


@every_model
def test_unseen_categories_cost_less_than_missing_values_would(model):
    fitted = model.fit(X, Y)
    as_missing = NEW.assign(town=NEW["town"].where(NEW["town"] != "unseen", None))
    losses = [
        ((fitted.predict_proba(rows)[:, 1] - NEW_Y) ** 2).mean() for rows in (NEW, as_missing)
    ]
    assert losses[0] < losses[1] - 0.005


@every_model
def test_all_routines_send_unseen_categories_the_same_way(model):
    fitted = model.fit(X, Y)
    expected = fitted.predict_proba(NEW)
    document = fitted.to_dict()
    columns = [[None if v is None else v for v in NEW[name]] for name in NEW]
    np.testing.assert_allclose(predict_from_dict(document, columns), expected, atol=1e-12)
    with sqlite3.connect(":memory:") as connection:
        NEW.to_sql("towns", connection, index=False)
        found = pd.read_sql(fitted.to_sql("towns"), connection)
    np.testing.assert_allclose(found["probability_1"], expected[:, 1], atol=1e-9)
    report = check_export(fitted, NEW)
    assert report.all_agree, report


@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesRegressor(max_iter=6, random_state=0),
        TreeForestRegressor(4, random_state=0),
        PACBayesTreeRegressor(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_shapley_values_of_unseen_categories_add_up(model):
    rows = NEW.head(30)
    assert (rows["town"] == "unseen").sum() > 3
    for background in (X, X.head(50)):
        explained = shapley_values(model.fit(X, Y * 1.0), rows, background)
        total = explained.base + explained.contributions.sum(axis=-1)
        np.testing.assert_allclose(total.ravel(), model.predict(rows), atol=1e-9)
    contributions = model.explain(rows)
    total = contributions.base + contributions.contributions.sum(axis=-1)
    np.testing.assert_allclose(total.ravel(), model.predict(rows), atol=1e-9)


def test_the_names_of_new_categories_do_not_matter():
    model = PACBayesTreeClassifier(random_state=0).fit(X, Y)
    other = NEW.assign(town=NEW["town"].replace("unseen", "elsewhere"))
    np.testing.assert_array_equal(model.predict_proba(NEW), model.predict_proba(other))


def test_naive_bayes_takes_unseen_categories_as_missing():
    as_missing = NEW.assign(town=NEW["town"].where(NEW["town"] != "unseen", None))
    bayes = NaiveBayesClassifier().fit(X, Y)
    np.testing.assert_array_equal(bayes.predict_proba(NEW), bayes.predict_proba(as_missing))


def test_models_in_leaves_get_unseen_categories_as_missing_values():
    leaf = DecisionTreeClassifier(max_depth=1)
    model = (
        DecoratedTreeClassifier(leaf_estimator=leaf, random_state=0)
        .set_params(grower="cart")
        .fit(X, Y)
    )
    rows, nodes, _ = model._group_by_leaf(NEW)
    is_unseen = (NEW["town"] == "unseen").to_numpy()
    assert np.isnan(rows[is_unseen, 0]).all()
    encoded = model.categories_.encode(NEW)
    assert (encoded[is_unseen, 0] == -1).all()
    np.testing.assert_array_equal(nodes, model.tree_.apply(encoded))


# -- model files -----------------------------------------------------------------------------------


@every_model
def test_files_keep_where_unseen_categories_go(model, tmp_path):
    fitted = model.fit(X, Y)
    loaded = save_and_load(fitted, tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(NEW), fitted.predict_proba(NEW))
    assert read_header(tmp_path / "model")["unknown_categories"] == "code"


def make_earlier(model):
    """Return a fitted model as an earlier version made it: unseen categories are missing values."""
    name = "trees_" if hasattr(model, "trees_") else "tree_"
    trees = getattr(model, name)
    setattr(model, name, replace(trees, unseen_left=None))
    model.categories_ = replace(model.categories_, unknown_are_missing=True)
    return model


@pytest.mark.parametrize("name", ["pruned", "pac", "forest", "boosted"])
def test_files_of_earlier_versions_keep_their_predictions(name, tmp_path):
    earlier = make_earlier(MODELS[name].fit(X, Y))
    certree.save(earlier, tmp_path / "model")
    assert "unknown_categories" not in read_header(tmp_path / "model")
    assert not [array for array in read_arrays(tmp_path / "model") if "unseen_left" in array]
    loaded = certree.load(tmp_path / "model")
    as_missing = NEW.assign(town=NEW["town"].where(NEW["town"] != "unseen", None))
    np.testing.assert_array_equal(loaded.predict_proba(NEW), earlier.predict_proba(as_missing))


def test_files_without_category_sets_hold_nothing_new(tmp_path):
    numbers = X[["north", "size"]]
    certree.save(PACBayesTreeClassifier(random_state=0).fit(numbers, Y), tmp_path / "model")
    assert "unknown_categories" not in read_header(tmp_path / "model")
    assert not [name for name in read_arrays(tmp_path / "model") if "unseen" in name]


def test_damaged_directions_are_refused(tmp_path):
    certree.save(PrunedTreeClassifier(random_state=0).fit(X, Y), tmp_path / "model")
    unseen_left = read_arrays(tmp_path / "model")["tree.unseen_left"]
    rewrite(tmp_path / "model", {"tree.unseen_left": np.append(unseen_left, True)})
    with pytest.raises(ValueError, match="unseen_left"):
        certree.load(tmp_path / "model")


def test_nodes_without_a_set_have_no_direction_of_unseen_categories():
    columns = {"missing_left": [True, False, False], "category_start": [0, 1, 1, 1]}
    columns |= {"categories": [2]}
    arguments = [0, 0, 0], [0.0] * 3, [1, -1, -1], [1] * 3, 1
    assert Tree(*arguments, **columns).unseen_left.tolist() == [True, False, False]
    with pytest.raises(ValueError, match="unseen_left must be False at nodes without categories"):
        Tree(*arguments, **columns, unseen_left=[True, False, True])
