"""Groups of rows in ensembles: all rows of a group are drawn together."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import reference
from certree import _core
from certree.ensembles import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.ensembles.forest_samples import ForestSamples
from certree.ensembles.rounds import advance
from weight_units import expect_no_unit

N_GROUPS = 80
SHORT = {"max_iter": 10, "random_state": 0}
OF_FOREST = {"n_estimators": 30, "oob_score": True, "random_state": 0}
BOOSTED = [
    BoostedTreesClassifier(**SHORT),
    BoostedTreesRegressor(**SHORT),
    BoostedTreesClassifier(random_state=0),
    BoostedTreesClassifier(early_stopping=True, random_state=0),
]
FORESTS = [
    *(
        TreeForestClassifier(leaves=leaves, **OF_FOREST)
        for leaves in ("plain", "refilled", "honest")
    ),
    TreeForestClassifier(max_samples=0.4, **OF_FOREST),
    TreeForestRegressor(max_samples=20, **OF_FOREST),
]


def grouped(classes, seed=0):
    """Rows that are close to others of their group, in any order, targets, weights, and groups."""
    random = np.random.default_rng(seed)
    groups = random.permutation(np.repeat(np.arange(N_GROUPS), random.integers(1, 7, N_GROUPS)))
    n = len(groups)
    X = random.normal(size=(N_GROUPS, 3))[groups] + 1e-2 * random.normal(size=(n, 3))
    y = X[:, 0] + random.normal(size=N_GROUPS)[groups]
    return X, (y > 0).astype(int) if classes else y, random.uniform(0.5, 3.0, n), groups


def rows_for(model):
    return grouped(hasattr(model, "predict_proba"))


def told(model, X):
    """Return the predictions of a fit."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def told_out_of_bag(model):
    """Return the out-of-bag predictions of a fit."""
    classes = hasattr(model, "predict_proba")
    return model.oob_decision_function_ if classes else model.oob_prediction_


# -- what both share -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", [*BOOSTED, *FORESTS], ids=str)
def test_neither_names_of_groups_nor_the_order_of_rows_matter(model, weighted):
    X, y, weight, groups = rows_for(model)
    one = clone(model).fit(X, y, weight if weighted else None, groups=groups)
    if model not in BOOSTED[2:]:
        # Folds deal groups in the order of their names.
        random = np.random.default_rng(1)
        names = np.array([f"patient {k}" for k in random.permutation(N_GROUPS)], dtype=object)
        groups = names[groups]
    order = np.random.default_rng(2).permutation(len(y))
    weights = weight[order] if weighted else None
    other = clone(model).fit(X[order], y[order], weights, groups=groups[order])
    np.testing.assert_array_equal(told(one, X), told(other, X))
    if model in FORESTS:
        np.testing.assert_array_equal(told_out_of_bag(one)[order], told_out_of_bag(other))


@pytest.mark.parametrize("model", [BOOSTED[0], FORESTS[0]], ids=str)
def test_equal_groups_may_change_places_and_names(model):
    random = np.random.default_rng(0)
    n = 240
    X, groups = random.integers(0, 2, (n, 2)).astype(float), np.arange(n) // 3
    y, weight = X[:, 0].astype(int), random.choice([1.0, 1.1, 1.7], n)
    y[random.random(n) < 0.2] = 1
    one = clone(model).fit(X, y, weight, groups=groups)
    for seed in range(5):
        random = np.random.default_rng(seed)
        order, names = random.permutation(n), random.permutation(n // 3)
        other = clone(model).fit(X[order], y[order], weight[order], groups=names[groups][order])
        np.testing.assert_array_equal(told(one, X), told(other, X))
        if model in FORESTS:
            about = X[order], y[order], weight[order]
            one.out_of_bag_importances(*about, groups=names[groups][order])


@pytest.mark.parametrize("model", [*BOOSTED, *FORESTS], ids=str)
def test_weights_of_rows_in_groups_have_no_unit(model):
    X, y, weight, groups = rows_for(model)
    expect_no_unit(lambda one: told(clone(model).fit(X, y, one, groups=groups), X), weight)


@pytest.mark.parametrize("model", [*BOOSTED, *FORESTS], ids=str)
def test_rows_of_weight_zero_leave_their_groups(model):
    X, y, weight, groups = rows_for(model)
    there = (np.arange(len(y)) % 4 > 0) & (groups != 7)
    one = clone(model).fit(X, y, np.where(there, weight, 0), groups=groups)
    other = clone(model).fit(X[there], y[there], weight[there], groups=groups[there])
    np.testing.assert_array_equal(told(one, X), told(other, X))


@pytest.mark.parametrize("model", [BOOSTED[0], FORESTS[0]], ids=str)
def test_each_row_has_a_group(model):
    X, y, _, groups = rows_for(model)
    with pytest.raises(ValueError, match=rf"groups must have shape \({len(y)},\)"):
        clone(model).fit(X, y, groups=groups[:5])


# -- rounds of boosting --------------------------------------------------------------------------------


@pytest.fixture
def runs(monkeypatch):
    """The runs of fits that are started."""
    found = []
    for model in (BoostedTreesClassifier, BoostedTreesRegressor):

        def started(self, *given, start=model._start_run):
            run, first = start(self, *given)
            found.append(run)
            return run, first

        monkeypatch.setattr(model, "_start_run", started)
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", BOOSTED[:2], ids=str)
def test_rounds_of_boosting_draw_whole_groups(model, weighted, runs):
    X, y, weight, groups = rows_for(model)
    clone(model).fit(X, y, weight if weighted else None, groups=groups)
    (run,) = runs
    shares = []
    for number in range(20):
        bits = reference.iterate_random_bits(number)
        grows, counts_as = reference.draw_round_rows(bits, run.keys, run.settings.subsample)
        for group in range(N_GROUPS):
            own = groups == group
            assert len(set(grows[own])) == 1
            assert len(set(counts_as[own])) == 1
        shares.append(grows.mean())
    assert np.mean(shares) == pytest.approx(run.settings.subsample, abs=0.1)
    # Groups are drawn by themselves.
    assert len(set(run.keys)) == N_GROUPS


@pytest.mark.parametrize("subsample", [0.5, 0.9])
def test_the_core_draws_the_groups_that_the_reference_draws(subsample, runs):
    X, y, _, groups = grouped(classes=False)
    BoostedTreesRegressor(subsample=subsample, **SHORT).fit(X, y, groups=groups)
    run = runs[0].copy_without_trees(grower=replace(runs[0].grower, n_jobs=1))
    run.scores = np.zeros_like(run.scores)
    scores, *_ = reference.run_boosting_rounds(run, 0, 4, _core.compute_round_steps)
    advance([run], 0, 4)
    np.testing.assert_allclose(run.scores, scores, rtol=1e-9, atol=1e-9)


# -- bags of forests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", FORESTS, ids=str)
def test_out_of_bag_rows_share_no_group_with_the_bag(model):
    X, y, weight, groups = rows_for(model)
    training = clone(model)._prepare_training(X, y, weight, groups=groups)
    rows = ForestSamples.from_training(training)
    fitted = clone(model).fit(X, y, weight, groups=groups)
    grower, of_row = fitted._create_grower(rows), groups[rows.input_index]
    for number in range(5):
        drawn = grower.count_draws(number)
        for group in range(N_GROUPS):
            assert len(set(drawn[of_row == group])) == 1
        n_drawn = sum(drawn[of_row == group][0] for group in range(N_GROUPS))
        share = {None: 1.0, 0.4: 0.4, 20: 20 / N_GROUPS}[model.max_samples]
        assert n_drawn == round(share * N_GROUPS)
        found = (
            fitted.trees_.find_out_of_bag_leaves(rows.features.X, grower.row_sampling, 1)[number]
            < 0
        )
        np.testing.assert_array_equal(found, drawn == 0)


def test_out_of_bag_scores_are_those_of_new_groups():
    X, y, _, groups = grouped(classes=True)
    X_new, y_new, _, _ = grouped(classes=True, seed=1)
    model = TreeForestClassifier(100, oob_score=True, leaves="plain", random_state=0)
    loose, whole = clone(model).fit(X, y), clone(model).fit(X, y, groups=groups)
    assert loose.oob_score_ > whole.oob_score_ + 0.1  # rows of a group know each other
    assert whole.oob_score_ == pytest.approx(whole.score(X_new, y_new), abs=0.1)


def test_out_of_bag_importances_take_the_groups_of_the_fit():
    X, y, weight, groups = grouped(classes=True)
    model = TreeForestClassifier(**OF_FOREST).fit(X, y, weight, groups=groups)
    found = model.out_of_bag_importances(X, y, weight, groups=groups)
    order = np.random.default_rng(0).permutation(len(y))
    turned = model.out_of_bag_importances(X[order], y[order], weight[order], groups=-groups[order])
    np.testing.assert_array_equal(found, turned)
    for others in (None, np.arange(len(y))):
        with pytest.raises(ValueError, match="time and gap must be those of the fit"):
            model.out_of_bag_importances(X, y, weight, groups=others)


def test_a_warm_start_goes_on_with_the_same_groups():
    X, y, _, groups = grouped(classes=True)
    model = TreeForestClassifier(5, random_state=0, warm_start=True).fit(X, y, groups=groups)
    model.set_params(n_estimators=12).fit(X, y, groups=groups)
    whole = TreeForestClassifier(12, random_state=0).fit(X, y, groups=groups)
    np.testing.assert_array_equal(told(model, X), told(whole, X))


def test_out_of_core_forests_name_the_column_of_groups(tmp_path):
    model = FORESTS[0]
    X, y, _, groups = rows_for(model)
    file = tmp_path / "rows.csv"
    rows = np.column_stack([X, y])
    np.savetxt(file, rows, delimiter=",", header="a,b,c,y", comments="")
    with pytest.raises(TypeError, match="groups must be the name of a column if X is a file"):
        clone(model).fit(file, "y", groups=groups)
