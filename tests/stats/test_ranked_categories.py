"""Ranks of very many categories, on which single trees and forests grow."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

import reference
from certree import (
    Cart,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
    grow_cart,
    load,
    save,
)
from certree.grow import TrainingSamples
from certree.grow.bins import MISSING
from certree.grow.grower import grow_trees
from certree.rows.features import DenseFeatures
from certree.rows.folds import Fold
from certree.stats import ranked_categories
from certree.stats.category_statistics import HighCardinalityFeatures
from certree.stats.ranked_categories import RankableRows, make_target

DEFAULTS = {"categorical_features": [0], "random_state": 0}


def draw_many_categories(n=60_000, n_categories=10_000, seed=0):
    """Draw rows with one feature of many categories, each of which has log odds of its own.

    The deviation of the log odds is such that boosted trees have a log loss of about .606 after
    30,000 rows of 10,000 categories; that of the class frequencies is .69.
    """
    random = np.random.default_rng(seed)
    odds = random.normal(0, 1.65, n_categories)
    category = random.integers(0, n_categories, n)
    y = random.random(n) < 1 / (1 + np.exp(-odds[category]))
    return category[:, None].astype(float), y.astype(int)


def draw_table(n=2500, seed=0):
    """Draw a data frame with features of 400 and 40 categories, classes, numbers and weights."""
    random = np.random.default_rng(seed)
    first, second = random.integers(0, 400, n), random.integers(0, 40, n)
    effect = random.normal(size=400)[first] + 0.5 * random.normal(size=40)[second]
    X = pd.DataFrame(
        {
            "first": [f"level {value}" for value in first],
            "second": [f"group {value}" for value in second],
            "x": random.normal(size=n),
        }
    )
    X.loc[::17, "first"] = None
    number = effect + 0.3 * X.x + random.normal(size=n)
    y = pd.Series(np.where(number > 0, "yes", "no"), name="class")
    return X, y, pd.Series(number, name="number"), random.integers(1, 4, n).astype(float)


def draw_rankable(seed, n, n_categories, n_missing, weighted=False):
    random = np.random.default_rng(seed)
    column = random.integers(0, n_categories, n).astype(float)
    column[:n_missing] = np.nan
    y = (random.normal(size=n_categories)[np.nan_to_num(column).astype(int)] > 0) * 1.0
    y[random.random(n) < 0.1] = 0.0
    weight = random.uniform(0.5, 2.0, n) if weighted else None
    features = DenseFeatures((column[:, None],))
    codes = np.unique(column[~np.isnan(column)]).astype(np.int32)
    rows = HighCardinalityFeatures.from_categories(features, {0: codes})
    keys = random.integers(0, 2**63, n).astype(np.uint64)
    return column, y, RankableRows(rows, make_target(y, 2, weight), keys)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 7]), st.booleans(), st.booleans())
def test_rows_are_ranked_by_the_means_of_other_folds(seed, n_missing, weighted, is_fold):
    _, y, rows = draw_rankable(seed, 150, 35, n_missing, weighted)
    some = np.arange(0, 150, 2) if is_fold else None
    found = rows.rank(some, MISSING)
    if found is None:
        return
    train = np.arange(150) if some is None else some
    place, n_categories = rows.rows.indices[0], len(rows.rows.categories[0])
    weight = rows.target.get_weights()[train]
    _, means = reference.compute_category_means(
        place[train].tolist(), n_categories, y[train], weight, rows.keys[train]
    )
    means, ranks = np.array(means), found.ranks[0, train].astype(int)
    known = ~np.isnan(means)
    np.testing.assert_array_equal(known, ranks != MISSING)
    means, ranks = means[known], ranks[known]
    above = np.subtract.outer(means, means)
    assert (np.subtract.outer(ranks, ranks)[above > 1e-11] > 0).all()
    assert (np.abs(above)[np.equal.outer(ranks, ranks)] < 1e-11).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 9]), st.sampled_from([4, 255]))
def test_sets_send_new_rows_where_their_ranks_go(seed, n_missing, max_bins):
    _, y, rows = draw_rankable(seed, 200, 40, n_missing)
    found = rows.rank(None, max_bins)
    if found is None:
        return
    table = np.zeros((200, 1))
    grown = TrainingSamples(table).replace_columns([0], found.ranks, found.replace_in_bins)
    tree = grow_cart(grown.X, y.astype(int))
    sets = found.categories.replace_by_category_sets(tree)
    assert not np.isin(tree.feature[tree.left >= 0], [1]).any()
    categories, ranks = found.categories.categories[0], found.categories.ranks[0][:, -1]
    values = np.append(ranks[:-1].astype(float), found.categories.unseen[0])
    codes = np.append(categories, 10_000)
    if n_missing:
        values, codes = np.append(values, np.nan), np.append(codes.astype(float), np.nan)
    for value, code in zip(values, codes, strict=True):
        v, reached = 0, []
        while tree.left[v] >= 0:
            reached.append(v)
            goes_left = reference.goes_left(tree, v, [value])
            members = sets.category_set(v)
            assert len(members)
            is_alone = v == 0 and len(members) == 1
            if not is_alone:  # A set that would be empty has the category of the nearest rank.
                assert reference.goes_left(sets, v, [code]) == goes_left
            v = tree.left[v] + (not goes_left)


def test_sets_hold_only_categories_that_reach_the_node():
    X, y = draw_many_categories(4000, 800)
    tree = PACBayesTreeClassifier(**DEFAULTS).fit(X, y).tree_
    parts = np.diff(tree.category_start)
    assert parts.sum() < 800 * tree.depth
    assert tree.optimal_splits is False
    reach = {0: set(range(800))}
    for v in np.flatnonzero(tree.left >= 0):
        members = set(tree.category_set(v).tolist())
        inside = members & reach[v]
        assert members == inside or len(members) == 1
        other = reach[v] - members
        left, right = (other, inside) if tree.unseen_left[v] else (inside, other)
        reach[tree.left[v]], reach[tree.left[v] + 1] = left, right


@pytest.mark.parametrize(
    "kind", [PACBayesTreeClassifier, CertifiedTreeClassifier, TreeForestClassifier]
)
def test_very_many_categories_do_not_make_trees_too_confident(monkeypatch, kind):
    X, y = draw_many_categories()
    options = {"duplicates": "genuine"} if kind is CertifiedTreeClassifier else {}

    def compute_loss():
        model = kind(**DEFAULTS, **options).fit(X[:30_000], y[:30_000])
        return log_loss(y[30_000:], model.predict_proba(X[30_000:]))

    assert compute_loss() <= 0.63
    monkeypatch.setattr(ranked_categories, "MAX_SET_CATEGORIES", 10**9)
    assert compute_loss() > 0.66


def make_models():
    bins = Cart(max_bins=100)
    return {
        "tree": PACBayesTreeClassifier(bins, random_state=0),
        "certified tree": CertifiedTreeClassifier(bins, random_state=0, duplicates="genuine"),
        "certified regressor": CertifiedTreeRegressor(bins, random_state=0, duplicates="genuine"),
        "forest": TreeForestClassifier(40, oob_score=True, random_state=0),
        "regression forest": TreeForestRegressor(10, random_state=0),
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", make_models())
def test_files_and_other_orders_give_the_same_model(tmp_path, name, weighted):
    X, classes, numbers, weight = draw_table()
    y = numbers if "regress" in name else classes
    order = np.random.default_rng(1).permutation(len(y))
    table = X.assign(**{y.name: y}, **({"weight": weight} if weighted else {}))
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    first = make_models()[name].fit(X, y, weight if weighted else None)
    other = make_models()[name].fit(
        X.iloc[order], y.iloc[order], weight[order] if weighted else None
    )
    files = make_models()[name].fit(
        tmp_path / "rows.parquet", y.name, "weight" if weighted else None
    )
    predicted = [getattr(m, "predict_proba", m.predict)(X) for m in (first, other, files)]
    np.testing.assert_array_equal(predicted[0], predicted[1])
    np.testing.assert_array_equal(predicted[0], predicted[2])
    trees = [m.trees_ if hasattr(m, "trees_") else m.tree_ for m in (first, files)]
    assert len(trees[0].categories)
    np.testing.assert_array_equal(trees[0].categories, trees[1].categories)
    np.testing.assert_array_equal(trees[0].missing_both, trees[1].missing_both)
    save(first, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(getattr(loaded, "predict_proba", loaded.predict)(X), predicted[0])


@pytest.mark.parametrize("kind", [PACBayesTreeClassifier, TreeForestClassifier])
def test_thirty_categories_get_no_ranks(monkeypatch, kind):
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 30, 600), random.normal(size=600)])
    y = (random.normal(size=30)[X[:, 0].astype(int)] + random.normal(size=600) > 0).astype(int)
    proba = kind(**DEFAULTS).fit(X, y).predict_proba(X)
    monkeypatch.setattr(ranked_categories, "MAX_SET_CATEGORIES", 10**9)
    np.testing.assert_array_equal(kind(**DEFAULTS).fit(X, y).predict_proba(X), proba)
    monkeypatch.setattr(ranked_categories, "MAX_SET_CATEGORIES", 29)
    assert (kind(**DEFAULTS).fit(X, y).predict_proba(X) != proba).any()


def test_validation_rows_do_not_rank_the_categories_of_a_fold():
    _, y, rows = draw_rankable(3, 300, 40, 0)
    table = np.zeros((300, 1))
    fold = Fold(np.arange(200), np.arange(200, 300))

    def grow(y, rows):
        samples = TrainingSamples(table, y.astype(np.int32), categorical=np.array([True]))

        def rank(indices):
            return rows.rank_samples(samples, MISSING, indices)

        samples_with_ranks = TrainingSamples(
            table, samples.y, categorical=samples.categorical, rank_categories=rank
        )
        return grow_trees(Cart(), samples_with_ranks, [fold])[0]

    grown, other = grow(y, rows), y.copy()
    other[200:] = 1 - other[200:]
    changed = RankableRows(rows.rows, make_target(other, 2, None), rows.keys)
    leaf = grown.find_leaves()
    np.testing.assert_array_equal(grow(other, changed).find_leaves(), leaf)
    assert len(np.unique(leaf)) > 2


@pytest.mark.parametrize("kind", [CertifiedTreeClassifier, CertifiedTreeRegressor])
def test_calibration_rows_do_not_shape_the_tree(kind):
    X, y = draw_many_categories(4000, 300)
    noise = np.random.default_rng(0).normal(size=(4000, 2))
    X = np.column_stack([X, noise[:, 0]])
    y = y if kind is CertifiedTreeClassifier else y + noise[:, 1] / 100
    options = DEFAULTS | {"train_size": 0.5}
    first = kind(**options).fit(X, y)
    if kind is CertifiedTreeClassifier:
        given = first.calibration_.given
    else:
        given = np.flatnonzero(np.isin(y, first.held_out_.y))
    assert len(given) == 2000
    changed = y.copy()
    changed[given] = y[given][::-1]
    other = kind(**options).fit(X, changed)
    assert len(first.tree_.categories)
    for name in ("feature", "threshold", "left", "categories"):
        np.testing.assert_array_equal(getattr(first.tree_, name), getattr(other.tree_, name))


def test_warm_starts_grow_the_trees_of_one_fit():
    X, y, *_ = draw_table()
    grown = TreeForestClassifier(4, random_state=0, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=9).fit(X, y)
    whole = TreeForestClassifier(9, random_state=0).fit(X, y)
    np.testing.assert_array_equal(grown.predict_proba(X), whole.predict_proba(X))


def test_three_classes_are_ranked_by_the_class_that_differs_most():
    X, _, number, _ = draw_table()
    three = np.digitize(number, [-2.5, 0.0])
    model = PrunedTreeClassifier(random_state=0).fit(X, three)
    assert model.tree_.n_leaves > 2
    assert len(model.tree_.categories)
    frequencies = np.bincount(three) / len(three)
    base = log_loss(three, np.tile(frequencies, (len(three), 1)))
    assert log_loss(three, model.predict_proba(X)) < base
