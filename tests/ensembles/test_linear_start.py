"""The ridge regression from which boosting of few rows starts, as trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import BoostedTreesClassifier, BoostedTreesRegressor, load, save
from certree.ensembles.boosting import BoostedTrees
from certree.ensembles.linear_start import compute_ridge_terms, fit_ridge, grow_linear_start
from certree.ensembles.losses import SquaredLoss
from certree.ensembles.rounds import Settings, start_run
from certree.grow import BinnedGrower, Bins
from certree.rows.features import DenseFeatures
from model_files import rewrite

FEW = {"max_iter": 3, "random_state": 0}


def mixed(n, seed, *, p=4, missing=0.1):
    """Numbers that lack values, and a feature of categories."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p)) * 10.0 ** random.integers(-3, 4, p) + random.integers(-2, 3, p)
    X[:, 0] = random.integers(0, 4, n)
    X[random.random((n, p)) < missing] = np.nan
    filled = np.nan_to_num(X)
    return X, filled[:, 1] + (X[:, 0] == 2) - np.isnan(X[:, 2]) + 0.3 * random.normal(size=n)


def a_run(X, y, weight=None, **options):
    """A run before its first round; the first feature holds categories."""
    category = np.arange(X.shape[1]) == 0
    grower = BinnedGrower(Bins.from_table(X, category), max_leaves=4, **options)
    settings = Settings(SquaredLoss(), 0.1, 1.0, (1.0,), 0.7, votes=True)
    return start_run(settings, grower, DenseFeatures((X,)), y, weight, (None,), 0)[0]


@given(
    st.integers(1, 25),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_ridge_terms_are_those_of_the_reference(n, p, missing, weighted, seed):
    X, y = mixed(n, seed, p=max(p, 3), missing=missing)
    weight = np.random.default_rng(seed).uniform(0.1, 3.0, n) if weighted else None
    run = a_run(X[:, :p], y, weight)
    np.testing.assert_allclose(
        compute_ridge_terms(run)[0], reference.compute_ridge_terms(run), rtol=1e-6, atol=1e-6
    )


def test_ridge_terms_do_not_depend_on_the_order_of_rows():
    X, y = mixed(200, 0)
    order = np.random.default_rng(1).permutation(200)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, 200)
    terms = compute_ridge_terms(a_run(X, y, weight))[0]
    np.testing.assert_array_equal(
        compute_ridge_terms(a_run(X[order], y[order], weight[order]))[0], terms[:, order]
    )


def test_the_penalty_grows_with_noise():
    random = np.random.default_rng(0)
    design = random.normal(size=(100, 5))
    design = (design - design.mean(axis=0)) / design.std(axis=0)
    slopes, weight = np.array([1.0, -1.0, 2.0, 0.5, 0.0]), np.ones(100)
    exact = fit_ridge(design, design @ slopes + 7.0, weight)
    np.testing.assert_allclose(exact, slopes, atol=1e-4)
    noise = fit_ridge(design, 100 * random.normal(size=100), weight)
    least, *_ = np.linalg.lstsq(design, 100 * random.normal(size=100), rcond=None)
    assert np.abs(noise).sum() < 0.2 * np.abs(least).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_follow_half_of_the_regression_with_enough_leaves(weighted):
    X, y = mixed(200, 0)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, 200) if weighted else None
    run = a_run(X, y, weight)
    terms = compute_ridge_terms(run)[0]
    trees, rows = grow_linear_start(run, None)
    assert len(trees) == X.shape[1]
    assert [{*tree.feature[~tree.is_leaf].tolist()} for tree in trees] == [{0}, {1}, {2}, {3}]
    np.testing.assert_allclose(trees.add(np.zeros((1, 200)), X, 1)[0], terms.sum(axis=0) / 2)
    assert rows[trees.root].tolist() == [200] * 4
    few, rows = grow_linear_start(run, 8)
    share = np.ones(200) if weight is None else weight
    begin = 0
    for tree, term in zip(few, terms, strict=True):
        assert tree.n_leaves <= 8
        leaf = tree.apply(X)
        for v in range(tree.n_nodes):
            inside = np.array([v in reference.find_path(tree, one) for one in leaf])
            expected = np.average(term[inside], weights=share[inside]) / 2
            assert tree.value[v, 0] == pytest.approx(expected, abs=1e-9)
            assert rows[begin + v] == inside.sum()
        begin += tree.n_nodes


def test_trees_keep_the_limits_of_the_grower():
    X, y = mixed(200, 0)
    slopes = [0, 1, 1, -1]
    y = y + np.nan_to_num(X[:, 2]) / np.nanstd(X[:, 2]) + np.nan_to_num(X[:, 3])
    trees, _ = grow_linear_start(a_run(X, y, monotonic_cst=slopes, min_samples_leaf=30), 64)
    grid = np.nanquantile(X, np.linspace(0, 1, 50), axis=0)
    for tree in trees:
        j = int(tree.feature[0])
        said = tree.value[tree.apply(grid), 0]
        assert (slopes[j] * np.diff(said) >= 0).all()
        assert np.bincount(tree.apply(X))[tree.is_leaf].min() >= 30
    # A line that rises where it must not is left out, and with it all but what is missing.
    assert {int(tree.feature[0]) for tree in trees} >= {0, 1, 2}


def test_a_constant_target_has_no_initial_trees():
    X, _ = mixed(50, 0)
    trees, rows = grow_linear_start(a_run(X, np.full(50, 0.1)), 64)
    assert len(trees) == len(rows) == 0


def test_rows_of_next_to_no_weight_and_far_numbers_do_no_harm():
    X, y = mixed(60, 0)
    X[:, 1] = np.sign(X[:, 1]) * 1e308
    X[:, 2] *= 5e-324 / np.nanmax(np.abs(X[:, 2]))
    weight = np.where(np.arange(60) % 3 == 0, 1e-300, 1.0)
    X[::3, 3] = 1e6
    for column in (X[:, 3], X[:, 0]):
        column[:1] = 77.0
    for scale in (1e99, 1e-99):
        trees, _ = grow_linear_start(a_run(X, y * scale, weight), 64)
        said = trees.add(np.zeros((1, 60)), X, 1)[0]
        assert np.isfinite(said).all()
        assert np.abs(said).max() < 10 * scale


# -- estimators ------------------------------------------------------------------------------------


def linear(n=120, p=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    return X, X @ np.arange(1.0, p + 1) + random.normal(size=n)


def test_few_rows_of_numbers_start_from_a_regression():
    X, y = linear()
    model = BoostedTreesRegressor(**FEW).fit(X, y)
    assert len(model.trees_) == 3 + 3
    leaves = [tree.n_leaves for tree in model.trees_]
    assert max(leaves[3:]) <= 16 < max(leaves[:3]) <= 64
    small = BoostedTreesRegressor(max_leaf_nodes=5, **FEW).fit(X, y)
    assert max(tree.n_leaves for tree in small.trees_) <= 5
    assert len(BoostedTreesRegressor(**FEW).fit(*linear(1000)).trees_) == 3 + 3
    without = [
        BoostedTreesRegressor("huber", **FEW).fit(X, y),
        BoostedTreesRegressor(**FEW).fit(*linear(1001)),
        BoostedTreesClassifier(**FEW).fit(X, y > 0),
    ]
    assert [len(one.trees_) for one in without] == [3] * 3


@pytest.mark.parametrize("quality", ["fast", "default", "best"])
def test_the_linear_start_helps_with_linear_targets(quality, monkeypatch):
    X_new, y_new = linear(2000, seed=1)

    def error():
        model = BoostedTreesRegressor(quality=quality, max_iter=100, random_state=0)
        return np.std(model.fit(*linear()).predict(X_new) - y_new)

    found = error()
    monkeypatch.setattr(
        BoostedTreesRegressor, "_make_initial_trees", BoostedTrees._make_initial_trees
    )
    assert found < 0.9 * error()


def test_stages_and_importances_count_the_linear_start():
    X, y = linear()
    model = BoostedTreesRegressor(**FEW).fit(X, y, X_val=X, y_val=y)
    stages = [*model.staged_predict(X)]
    assert len(stages) == model.n_iter_ == len(model.validation_score_) - 1 == 3
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    first = model.start_[0] + model.trees_.add(np.zeros((1, len(X))), X, 1, 0, 4)[0]
    np.testing.assert_allclose(stages[0], first)
    moved = [0.0] * 3
    for number, tree in enumerate(model.trees_):
        rows = np.bincount(np.concatenate([reference.find_path(tree, v) for v in tree.apply(X)]))
        for v in np.flatnonzero(~tree.is_leaf):
            for child in (tree.left[v], tree.left[v] + 1):
                if number < 3:
                    step = tree.value[child, 0] - tree.value[v, 0]
                    moved[tree.feature[v]] += rows[child] * step**2
    late = BoostedTreesRegressor(learning_rate=1e-9, **FEW).fit(X, y)
    np.testing.assert_allclose(late.feature_importances_, np.array(moved) / sum(moved), rtol=1e-6)
    why = model.explain(X)
    np.testing.assert_allclose(why.prediction[:, 0], model.predict(X))


def test_a_warm_start_continues_after_the_linear_start(tmp_path):
    X, y = linear()
    whole = BoostedTreesRegressor(max_iter=9, random_state=0).fit(X, y)
    model = BoostedTreesRegressor(warm_start=True, **FEW).fit(X, y)
    save(model, tmp_path / "model.certree")
    for one in (model, load(tmp_path / "model.certree")):
        one.set_params(max_iter=9).fit(X, y)
        np.testing.assert_array_equal(one.predict(X), whole.predict(X))
        np.testing.assert_array_equal(
            [*one.staged_predict(X)], [*whole.staged_predict(X)], strict=True
        )
        np.testing.assert_allclose(one.feature_importances_, whole.feature_importances_)


def test_a_file_says_which_trees_are_no_rounds(tmp_path):
    X, y = linear()
    path = tmp_path / "model.certree"
    save(BoostedTreesRegressor(**FEW).fit(X, y), path)
    for first, message in (
        (2, "3 rounds must have 5 trees, got 6"),
        (-1, "n_first_trees must be of type int in 0"),
    ):
        rewrite(path, n_first_trees=first)
        with pytest.raises(ValueError, match=message):
            load(path)
