"""Target statistics of categories, on which trees split while they grow."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, r2_score

import reference
from certree import BoostedTreesClassifier, BoostedTreesRegressor, load, save
from certree.ensembles.losses import LogLoss, SquaredLoss
from certree.ensembles.rounds import Settings, advance, start_run
from certree.grow import BinnedGrower, Bins
from certree.rows.features import DenseFeatures
from certree.rows.folds import Fold
from certree.stats import category_statistics
from certree.tree import Trees
from weight_units import expect_no_unit

SHORT = {"categorical_features": [0], "max_iter": 12, "random_state": 0}
TARGETS = ["two", "three", "numbers"]


def effects(n=500, n_levels=60, *, target="two", missing=0.0, seed=0):
    """Make rows with categories that have effects, some of them rare, and numbers."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_levels + 1)
    level = random.choice(n_levels, n, p=share / share.sum())
    X = np.column_stack([level, random.normal(size=(n, 3))])
    y = random.normal(size=n_levels)[level] * 2 + X[:, 1] + random.normal(size=n)
    X[random.random(n) < missing, 0] = np.nan
    if target == "numbers":
        return X, y
    return X, np.digitize(y, [0.0] if target == "two" else [-1.0, 1.0])


def estimator(target, **options):
    kind = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    return kind(**{**SHORT, **options})


def said(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def a_run(X, y, target="two", weight=None, **options):
    """A run before its first round; the first feature holds categories."""
    loss = {"two": LogLoss(), "three": LogLoss(3), "numbers": SquaredLoss()}[target]
    category = np.arange(X.shape[1]) == 0
    grower = BinnedGrower(Bins.from_table(X, category), max_leaves=8, **options)
    settings = Settings(loss, 0.1, 1.0, (1.0,), 0.7, votes=True)
    return start_run(settings, grower, DenseFeatures((X,)), y, weight, (6,), 0)[0]


def seen_in(run):
    """Return what the rows of a run see, (n_columns, n), if each bin has one value."""
    bins, columns = run.bins, []
    for j in range(bins.n_features - run.statistics.n_columns, bins.n_features):
        low, high = bins.bin_ranges(j)
        np.testing.assert_array_equal(low, high)
        columns.append(np.append(low, [np.nan] * (256 - len(low)))[bins.codes[j]])
    return np.array(columns)


def without(monkeypatch):
    """Grow trees without category statistics."""
    monkeypatch.setattr(category_statistics, "MAX_SET_CATEGORIES", 10**9)


# -- what rows see ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@given(st.integers(60, 120), st.sampled_from([0, 20]), st.booleans(), st.integers(0, 2**32 - 1))
def test_statistics_are_those_of_the_reference(target, n, n_judging, weighted, seed):
    X, y = effects(n, 80, target=target, missing=0.1, seed=seed)
    weight = np.random.default_rng(seed).uniform(0.1, 3.0, n) if weighted else None
    run = a_run(X, y, target, weight)
    if run.high_cardinality is None:
        return
    rows = np.arange(n)
    of = run.make_fold_run(Fold(rows[n_judging:], rows[:n_judging])) if n_judging else run
    of, n_training = of.with_statistics(), n - n_judging
    weight = np.ones(n) if of.weight is None else of.weight
    targets = [of.y] if target != "three" else [1.0 * (of.y == k) for k in range(3)]
    place, n_levels = of.high_cardinality.indices[0], len(of.high_cardinality.categories[0])
    (rows, *of_targets), (n_seen, *means_seen) = of.statistics.category_values, seen_in(of)
    known = [weight[:n_training][place[:n_training] == k].sum() for k in range(n_levels)]
    np.testing.assert_allclose(rows, known, rtol=1e-11)
    trained = np.append(known, np.nan)[place[:n_training]]
    np.testing.assert_allclose(n_seen[:n_training], trained, rtol=1e-11)
    expect_nearest(n_seen, rows, place, n_training)
    for one, means, seen in zip(targets, of_targets, means_seen, strict=True):
        known = reference.compute_category_means(
            place.tolist(), n_levels, one[:n_training], weight[:n_training], of.keys
        )
        np.testing.assert_allclose(means, known[0], rtol=0, atol=1e-11)
        np.testing.assert_allclose(seen[:n_training], known[1], rtol=0, atol=1e-11)
        expect_nearest(seen, means, place, n_training)


def expect_nearest(seen, of_level, place, n_training):
    """Check that validation rows are in the bin of the nearest number that training rows see."""
    trained = np.unique(seen[:n_training][~np.isnan(seen[:n_training])])
    known = np.append(of_level, np.nan)[place[n_training:]]
    nearest = trained[np.searchsorted((trained[:-1] + trained[1:]) / 2, known)]
    np.testing.assert_array_equal(seen[n_training:], np.where(np.isnan(known), np.nan, nearest))


def test_validation_rows_have_no_part_in_statistics():
    X, y = effects(300)
    fold = Fold(np.arange(200), np.arange(200, 300))
    run = a_run(X, y)
    turned = run.copy_without_trees(y=np.where(np.arange(300) < 200, run.y, 1 - run.y))
    one, other = (each.make_fold_run(fold).with_statistics() for each in (run, turned))
    np.testing.assert_array_equal(one.bins.codes, other.bins.codes)
    np.testing.assert_array_equal(seen_in(one), seen_in(other))
    np.testing.assert_array_equal(one.statistics.category_values, other.statistics.category_values)


def in_bins(seen, n_rows):
    """The bin of each row that sees these numbers, so many rows each."""
    rows = np.repeat(seen.ravel(), n_rows.ravel())
    return np.searchsorted(category_statistics._choose_edges(seen, n_rows), rows), rows


@pytest.mark.parametrize("n_levels", [40, 400])
def test_bins_of_statistics_are_those_of_a_column(n_levels):
    random = np.random.default_rng(n_levels)
    seen, n_rows = random.normal(size=(n_levels, 5)), random.integers(0, 9, (n_levels, 5))
    seen[-1] = np.nan
    found, rows = in_bins(seen, n_rows)
    known = Bins.from_table(rows[:, None]).column(0)
    lacking = np.isnan(rows)
    np.testing.assert_array_equal(known == 255, lacking)
    np.testing.assert_array_equal(found[~lacking], known[~lacking])


def test_bins_of_many_rows_hold_about_as_many_each(monkeypatch):
    monkeypatch.setattr(category_statistics, "EDGE_ROWS", 5000)
    random = np.random.default_rng(0)
    n_rows = random.integers(1, 40, (300, 5))
    found, rows = in_bins(random.normal(size=(300, 5)), n_rows)
    sizes = np.bincount(found)
    assert len(rows) > 25_000
    assert len(sizes) > 200
    assert sizes.max() < 3 * len(rows) / len(sizes)


def test_a_row_does_not_see_its_own_target():
    X, y = effects(300)
    run = a_run(X, y).with_statistics()
    for i in range(10):
        changed = run.y.copy()
        changed[i] = 1 - changed[i]
        again = a_run(X, y).copy_without_trees(y=changed).with_statistics()
        before, after = (seen_in(one)[1] for one in (run, again))
        # The mean of all rows moves by as much for all.
        alone = X[:, 0] == X[i, 0]
        moved = np.abs(after - before)
        assert moved[i] <= 1.0 / 300
        assert moved[alone].max() > 2.0 / 300 or alone.sum() == 1


def test_categories_have_a_signal_as_in_the_reference():
    random, told = np.random.default_rng(0), []
    for _ in range(1000):
        place = random.integers(0, 4, 12).astype(np.int32)
        weight, y = random.uniform(0.5, 2.0, 12), random.normal(size=12) + place
        rows = category_statistics.CategoryRows(
            category_statistics.CategoryTarget(y, 1, weight),
            place[None],
            np.arange(12, dtype=np.uint64),
        )
        known = category_statistics.CategoryTotals.compute(
            lambda f, *given, r=rows: f(r, *given), (4,)
        )
        told.append(known.has_signal(0))
        assert told[-1] == reference.do_categories_differ(place.tolist(), y, weight)
    assert 0.1 < np.mean(told) < 0.9


def test_few_categories_many_classes_and_chance_have_no_statistics():
    X, y = effects(400)
    assert a_run(X, y).high_cardinality is not None
    few = X.copy()
    few[:, 0] %= 30
    assert a_run(few, y).high_cardinality is None
    noise = np.random.default_rng(0).integers(0, 2, 400)
    assert a_run(X, noise).high_cardinality is None
    assert a_run(X, np.zeros(400)).high_cardinality is None
    assert len(category_statistics.CategoryTarget(np.arange(6.0), 6, None).make_columns()) == 0


# -- sets instead of statistics --------------------------------------------------------------------


def leaf_of(tree, row, many, means, p):
    """Return the leaf of a row in a tree of p features that also splits on statistics."""
    levels = many.categories[0].tolist()
    level = levels.index(row[0]) if row[0] in levels else None
    lacking = (many.indices == len(levels)).any()
    v = 0
    while tree.left[v] != -1:
        mean, threshold = tree.feature[v] - p, tree.threshold[v]
        if mean < 0:
            left = reference.goes_left(tree, v, row)
        elif math.isnan(row[0]) and lacking:
            left = tree.missing_left[v]
        else:
            left = reference.does_category_go_left(level, means[mean].tolist(), threshold)
        v = tree.left[v] + (not left)
    return v


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("target", TARGETS)
def test_sets_send_rows_where_statistics_do(target, missing):
    X, y = effects(target=target, missing=missing)
    run = a_run(X, y, target).with_statistics()
    advance([run], 0, 12)
    grown, p = run.trees(), X.shape[1]
    trees = Trees.joined(run.tree_batches, run.bins.n_features, len(run.scores))
    assert (trees.feature >= p).sum() > 10
    assert grown.n_features == p
    assert grown.feature.max() < p
    rows = np.vstack([X[:40], [[np.nan, 0, 0, 0], [1000, 0, 0, 0]]])
    leaves = grown.find_leaves(rows, 1)
    for found, tree, root in zip(leaves, trees, trees.root, strict=True):
        known = [
            root + leaf_of(tree, row, run.high_cardinality, run.statistics.category_values, p)
            for row in rows
        ]
        assert found.tolist() == known


def test_sets_do_not_depend_on_how_many_nodes_are_handled_together(monkeypatch):
    X, y = effects(missing=0.2)
    run = a_run(X, y).with_statistics()
    advance([run], 0, 12)
    at_once = run.trees()
    monkeypatch.setattr(category_statistics, "_MAX_TABLE_SIZE", 100)
    assert len(run.high_cardinality.categories[0]) < 100 < len(at_once.categories)
    again = run.trees()
    np.testing.assert_array_equal(again.category_start, at_once.category_start)
    np.testing.assert_array_equal(again.categories, at_once.categories)


def test_every_split_on_statistics_divides_the_categories():
    X, y = effects()
    run = a_run(X, y).with_statistics()
    p = X.shape[1]
    for feature, threshold in product((p, p + 1), (-1e4, 1e4)):
        columns = [feature, 0, 0], [threshold, 0, 0], [1, -1, -1], [1, 1, 1], p + 2
        stump = Trees(*columns, value=np.zeros((3, 1)))
        leaves = run.statistics.replace_by_category_sets(stump).find_leaves(X, 1)[0]
        assert sorted(set(leaves.tolist())) == [1, 2]


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_the_order_of_rows_and_threads_do_not_matter(target):
    X, y = effects(target=target, missing=0.1)
    order = np.random.default_rng(1).permutation(len(y))
    for weight in (None, np.random.default_rng(2).random(len(y)) ** 8 + 1e-6):
        for options in ({}, {"max_iter": "auto"}):
            model = estimator(target, **options).fit(X, y, weight)
            turned = None if weight is None else weight[order]
            shuffled = estimator(target, n_jobs=2, **options).fit(X[order], y[order], turned)
            np.testing.assert_array_equal(said(model, X), said(shuffled, X))


@pytest.mark.parametrize("target", TARGETS)
def test_weights_have_no_unit(target):
    X, y = effects(300, target=target)
    weight = np.random.default_rng(0).integers(0, 4, 300).astype(float)
    for weights in (weight, 0.3 + weight):
        expect_no_unit(lambda one: said(estimator(target).fit(X, y, one), X), weights)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_unseen_categories_have_the_overall_mean(missing):
    X, y = effects(missing=missing)
    run = a_run(X, y).with_statistics()
    unknown, lacking = X[:5].copy(), X[:5].copy()
    unknown[:, 0], lacking[:, 0] = -1, np.nan
    assert not run.statistics.encode_new_rows(unknown).any()  # the weight is 0, and so is the mean
    assert np.isnan(run.statistics.encode_new_rows(lacking)).all()
    advance([run], 0, 12)
    trees = run.trees()
    assert len(trees.categories)
    same = np.array_equal(trees.find_leaves(unknown, 1), trees.find_leaves(lacking, 1))
    assert same == (missing == 0)  # without missing values in the fit both are new


@pytest.mark.parametrize("target", TARGETS)
def test_a_warm_start_makes_the_rounds_of_one_fit(target, tmp_path):
    X, y = effects(target=target)
    whole = estimator(target).fit(X, y)
    model = estimator(target, max_iter=5).fit(X, y)
    save(model, tmp_path / "model.certree")
    for one in (model, load(tmp_path / "model.certree")):
        one.set_params(warm_start=True, max_iter=12).fit(X, y)
        np.testing.assert_array_equal(said(one, X), said(whole, X))
        np.testing.assert_array_equal(one.feature_importances_, whole.feature_importances_)
        with pytest.raises(ValueError, match="max_iter must be at least n_iter_=12"):
            one.set_params(max_iter=3).fit(X, y)


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_knows_its_own_features_alone(target):
    X, y = effects(target=target)
    model = estimator(target, quality="best").fit(X, y)
    assert model.trees_.n_features == X.shape[1]
    assert model.feature_importances_.argmax() == 0
    assert X.shape[1] in model.explain(X[:5]).contributions.shape


def test_interaction_and_monotonic_constraints_hold():
    X, y = effects(1500, target="numbers")
    groups, slopes = [[0, 2], [1], [3]], [0, 1, 0, 0]
    run = a_run(X, y, "numbers", interaction_cst=groups).with_statistics()
    assert run.grower.interaction_cst == [[0, 2, 4, 5], [1], [3]]
    model = estimator("numbers", interaction_cst=groups, monotonic_cst=slopes).fit(X, y)
    for number in range(12):
        tree = model.trees_.tree(number)
        for leaf in np.flatnonzero(tree.is_leaf):
            above = {int(tree.feature[v]) for v in reference.find_path(tree, leaf)[:-1]}
            assert any(above <= set(group) for group in groups)
    row = np.repeat(X[:1], 50, axis=0)
    row[:, 1] = np.linspace(-3, 3, 50)
    assert (np.diff(model.predict(row)) >= -1e-12).all()


def fresh_loss(X, y, columns, seed=0):
    """Log loss of rows that had no part in the fit."""
    options = {"random_state": seed, "categorical_features": [0] if 0 in columns else None}
    model = BoostedTreesClassifier(**options).fit(X[:600, columns], y[:600])
    return log_loss(y[600:], model.predict_proba(X[600:, columns]))


def test_statistics_serve_new_rows(monkeypatch):
    X, y = effects(4000, 300)
    ours = fresh_loss(X, y, [0, 1, 2, 3])
    without(monkeypatch)
    assert ours < 0.95 * fresh_loss(X, y, [0, 1, 2, 3])


def test_uninformative_categories_cost_nothing(monkeypatch):
    """Even where their means are taken, as if they differed."""
    losses = []
    monkeypatch.setattr(category_statistics, "_DEVIATIONS", -1e9)
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, _ = effects(4000, 300, seed=seed)
        y = (X[:, 1] + random.logistic(size=4000) > 0).astype(int)
        X[:, 0] = random.integers(0, 300, 4000)
        losses.append([fresh_loss(X, y, columns) for columns in ([0, 1, 2, 3], [1, 2, 3])])
    ours, alone = np.mean(losses, axis=0)
    assert ours < 1.02 * alone


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_new_rows_see_the_statistics_of_their_category(missing):
    X, y = effects(missing=missing)
    run = a_run(X, y).with_statistics()
    statistics = run.statistics
    (levels,), frequency, mean = statistics.categories, *statistics.category_values
    new = np.array(
        [[levels[0], 0, 0, 0], [levels[-1], 0, 0, 0], [1000, 0, 0, 0], [np.nan, 0, 0, 0]]
    )
    expected = np.array([frequency[[0, -1]], mean[[0, -1]]]).T
    np.testing.assert_array_equal(
        statistics.encode_new_rows(new), [*expected, [0.0, 0.0], [np.nan, np.nan]]
    )


@pytest.mark.parametrize("target", ["two", "numbers"])
@pytest.mark.parametrize("scoring", ["loss", None])
def test_validation_rows_are_scored_as_the_model_predicts_them(target, scoring):
    X, y = effects(1200, target=target)
    fit, judge = slice(900), slice(900, None)
    model = estimator(target, early_stopping=True, n_iter_no_change=20, scoring=scoring)
    model.fit(X[fit], y[fit], X_val=X[judge], y_val=y[judge])
    if target == "two":
        stages = model.staged_predict_proba(X[judge])
        scores = [
            -log_loss(y[judge], one) if scoring else np.mean(one.argmax(axis=1) == y[judge])
            for one in stages
        ]
    else:
        scores = [
            -np.mean((one - y[judge]) ** 2) / 2 if scoring else r2_score(y[judge], one)
            for one in model.staged_predict(X[judge])
        ]
    # Sets of levels part two of them where a threshold would part none: seldom, and of few rows.
    np.testing.assert_allclose(
        model.validation_score_[1 : len(scores) + 1], scores, rtol=0.02, atol=0.01
    )
