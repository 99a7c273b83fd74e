"""Forests: how leaves are filled, out-of-bag scores, and what users rely on."""

import pickle
import re
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, log_loss, mean_poisson_deviance, r2_score
from sklearn.model_selection import train_test_split
from sklearn.utils import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from certree import (
    CertifiedForestClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
    _core,
    load,
    save,
)
from certree.ensembles import Leaves
from certree.ensembles.forest_leaves import LeafStatistics
from certree.ensembles.forest_samples import ForestSamples, InMemoryOutOfBagLeaves
from certree.explain.output_groups import OutputGroups
from certree.grow import BinnedGrower, Bins
from certree.rows.hashes import compute_fit_hashes
from certree.rows.relative_weights import balance_bag_weights, compute_integer_weights
from weight_units import expect_no_unit

SHORT = {"n_estimators": 8, "random_state": 0}
LEAVES = ["auto", "plain", "refilled", "shrunk", "honest"]
FILLED = ["in_bag", "all", "out_of_bag"]


def noisy(n=400, p=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + random.normal(size=n) > 0).astype(int)
    return X, y


def grown(seed, n=24, n_trees=3, n_classes=None, weighted=False):
    """Rows of few values, a grower and a forest on them, and weights."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 5, size=(n, 3)).astype(float)
    X[random.random(X.shape) < 0.1] = np.nan
    weight = random.integers(1, 4, n).astype(float) if weighted else None
    grower = BinnedGrower(
        Bins.from_table(X, fine_ends=True),
        max_depth=4,
        order="depth",
        max_features=2,
        bootstrap=True,
        seed=seed,
    )
    if n_classes is None:
        y = np.nan_to_num(X[:, 0]) + random.integers(0, 3, n)
        forest = grower.grow_numbers(y, n_trees, sample_weight=weight)
        sums = forest.total.reshape(-1, 2)
    else:
        y = random.integers(0, n_classes, n).astype(np.int32)
        forest = grower.grow_classes(y, n_classes, n_trees, sample_weight=weight)
        table = forest.class_weights(n_classes)
        sums = np.column_stack([table.sum(axis=1), table[:, 1:] if n_classes == 2 else table])
    width = sums.shape[1] - 1
    trees = forest.trees
    walk = InMemoryOutOfBagLeaves(trees, trees.find_out_of_bag_leaves(X, grower.row_sampling, 1))
    sums, target = np.ascontiguousarray(sums), y.astype(float)[:, None]
    rows = LeafStatistics(walk, sums, target, weight, OutputGroups((width,)), np.ones(1), 1)
    draws = np.array([grower.count_draws(number) for number in range(n_trees)])
    return X, target, np.ones(n) if weight is None else weight, forest, rows, draws


# -- leaves, against the twin ------------------------------------------------------------------------


@given(
    st.integers(0, 10_000),
    st.sampled_from([None, 2, 3]),
    st.sampled_from(FILLED),
    st.sampled_from([0.0, 1.0, 3.0]),
    st.booleans(),
)
def test_out_of_bag_predictions_leave_the_own_label_out(seed, k, filled_by, shrinkage, weighted):
    X, y, weight, forest, rows, draws = grown(seed, n_classes=k, weighted=weighted)
    trees = [*forest.trees]
    found, n_trees = rows.sum_predictions(Leaves(filled_by, shrinkage), len(y))
    expected, count = reference.sum_out_of_bag_predictions(
        trees, X, y, weight, draws, filled_by, shrinkage * weight.mean(), rows.output_groups.sizes
    )
    np.testing.assert_array_equal(n_trees, count)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    few, _ = rows.sum_predictions(Leaves(filled_by, shrinkage), 5)
    np.testing.assert_array_equal(few, found[:5])


@given(
    st.integers(0, 10_000),
    st.sampled_from([None, 2, 3]),
    st.sampled_from(FILLED),
    st.sampled_from([0.0, 1.0]),
)
def test_leaves_say_the_means_of_those_that_fill_them(seed, k, filled_by, shrinkage):
    X, y, weight, forest, rows, draws = grown(seed, n_classes=k, weighted=True)
    value = rows.compute_values(Leaves(filled_by, shrinkage))
    assert (value[rows.trees.left >= 0] == 0).all()
    for number, count in enumerate(draws):
        tree, first = forest.trees.tree(number), forest.trees.root[number]
        leaf_of = tree.apply(X)
        inside = count * weight * (filled_by != "out_of_bag")
        outside = (count == 0) * weight * (filled_by != "in_bag")
        for i in range(len(y)):
            said = reference.compute_refilled_leaf(
                tree,
                leaf_of,
                i,
                y,
                inside,
                outside,
                shrinkage * weight.mean(),
                rows.output_groups.sizes,
            )
            np.testing.assert_allclose(value[first + leaf_of[i]], said, atol=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=10)
def test_threads_do_not_change_out_of_bag_predictions(seed):
    _, y, _, _, rows, _ = grown(seed, n=600, n_classes=3)
    found = rows.sum_predictions(Leaves("all", 1.0), len(y))
    rows.n_threads = 3
    for one, other in zip(found, rows.sum_predictions(Leaves("all", 1.0), len(y)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_out_of_bag_rows_are_found():
    X, _, _, forest, rows, draws = grown(5)
    leaf = rows.trees.find_leaves(X, 1)
    for number, count in enumerate(draws):
        alone = forest.trees.root[number] + forest.trees.tree(number).apply(X)
        np.testing.assert_array_equal(leaf[number], alone)
        np.testing.assert_array_equal(
            rows.out_of_bag_leaves.first_leaves[number], np.where(count == 0, ~alone, 0)
        )


def test_the_door_of_leaves_checks():
    left, root = np.array([1, -1, -1], dtype=np.int32), np.zeros(1, dtype=np.int64)
    leaf, y, sums = np.array([[1, ~2]], dtype=np.int32), np.ones((2, 1)), np.ones((3, 2))
    one_lane = np.ones(1, dtype=np.int64)
    _core.sum_out_of_bag_predictions(left, root, leaf, y, None, one_lane, sums, True, 0.0, 2, 1)
    for changed, message in (
        ({"leaf": leaf + np.int32(5)}, "leaf must hold nodes"),
        ({"root": root + 1}, "root must ascend from 0"),
        ({"root": np.zeros(0, dtype=np.int64)}, "root must ascend from 0"),
        ({"root": np.array([0, 2, 1]), "leaf": leaf.repeat(3, axis=0)}, "root must ascend from 0"),
        ({"root": np.array([0, 3]), "leaf": leaf.repeat(2, axis=0)}, "of which there are 3"),
        ({"y": np.ones((3, 1))}, "length 3, expected 2"),
        ({"sums": np.ones((2, 2))}, "length 2, expected 3"),
        ({"sums": np.ones((3, 1))}, "two columns"),
        ({"sums": np.ones((3, 4))}, "a column for each lane"),
        ({"sums": np.ones((3, 4)), "n_lanes": 3 * one_lane, "y": 3 * y}, "y must hold classes"),
        ({"n_lanes": np.ones(2, dtype=np.int64)}, "length 2, expected 1"),
        ({"n_scored": 3}, "n_scored"),
    ):
        one = {"left": left, "root": root, "leaf": leaf, "y": y, "weight": None, "sums": sums}
        one |= {
            "n_lanes": one_lane,
            "knows": True,
            "rows": 0.0,
            "n_scored": 2,
            "n_threads": 1,
            **changed,
        }
        with pytest.raises(ValueError, match=message):
            _core.sum_out_of_bag_predictions(**one)
    with pytest.raises(ValueError, match="n_lanes must be at least 1"):
        _core.sum_out_of_bag_targets(left, root, leaf, y, None, 0 * one_lane, 1)
    with pytest.raises(ValueError, match="two columns"):
        _core.shrink_leaves(left, root, np.ones((3, 1)), 1.0, 1)


# -- what is chosen ----------------------------------------------------------------------------------


def test_chosen_leaves_predict_better_probabilities():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    losses = {}
    for leaves in LEAVES:
        model = TreeForestClassifier(leaves=leaves, random_state=0).fit(X, y)
        losses[leaves] = log_loss(y_test, model.predict_proba(X_test))
    assert losses["auto"] < 0.5 * losses["plain"]
    assert model.leaves_ == Leaves("out_of_bag")


def test_chosen_leaves_of_noise_shrink_to_the_frequencies_of_all_rows():
    X, _ = noisy(1000)
    y = np.random.default_rng(0).integers(0, 2, 1000)
    model = TreeForestClassifier(random_state=0).fit(X, y)
    plain = TreeForestClassifier(random_state=0, leaves="plain").fit(X, y)
    assert model.leaves_.power < 1
    X_new, y_new = noisy(2000, seed=1)[0], np.random.default_rng(1).integers(0, 2, 2000)
    found, before = (log_loss(y_new, one.predict_proba(X_new)) for one in (model, plain))
    assert np.log(2) < found < before


def test_plain_leaves_stay_where_nothing_is_better():
    X = np.arange(40.0)[:, None]
    model = TreeForestRegressor(random_state=0, min_samples_leaf=20).fit(X, np.ones(40))
    assert model.leaves_ == Leaves() == ("in_bag", 0.0, 1.0)
    assert TreeForestClassifier(**SHORT, bootstrap=False).fit(*noisy()).leaves_ == Leaves()


def test_plain_forests_are_as_good_as_those_of_scikit_learn():
    X, y = noisy(2000)
    X_new, y_new = noisy(4000, seed=1)
    peer = RandomForestClassifier(random_state=0).fit(X, y).predict_proba(X_new)
    ours = TreeForestClassifier(leaves="plain", random_state=0).fit(X, y).predict_proba(X_new)
    assert log_loss(y_new, ours) == pytest.approx(log_loss(y_new, peer), rel=0.03)
    X, y = load_diabetes(return_X_y=True)
    peer = RandomForestRegressor(oob_score=True, random_state=0).fit(X, y).oob_score_
    ours = TreeForestRegressor(oob_score=True, leaves="plain", random_state=0).fit(X, y).oob_score_
    assert ours == pytest.approx(peer, abs=0.04)


# -- rows out of bags --------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_bag_predictions_are_those_of_the_twin(leaves, weighted):
    X, y = noisy(40)
    weight = np.random.default_rng(1).random(40) + 0.5 if weighted else None
    model = TreeForestClassifier(6, leaves=leaves, oob_score=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, weight)
    rows = ForestSamples.from_training(clone(model)._prepare_training(X, y, weight))
    grower = model._create_grower(rows)
    draws = np.array([grower.count_draws(number) for number in range(6)])
    trees = [*model.trees_]
    filled_by, shrinkage, power = model.leaves_
    units = rows.get_weights()
    total, n_trees = reference.sum_out_of_bag_predictions(
        trees, rows.features.X, rows.targets, units, draws, filled_by, shrinkage * units.mean(), [1]
    )
    assert (n_trees == 0).any()
    with np.errstate(invalid="ignore"):
        second = total[:, 0] / n_trees
    raised = np.column_stack([1 - second, second]) ** power
    expected = np.empty((40, 2))
    expected[rows.input_index] = raised / raised.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.oob_decision_function_, expected, atol=1e-12)
    known = ~np.isnan(expected[:, 0])
    answer = expected[known].argmax(axis=1)
    own = None if weight is None else weight[known]
    assert model.oob_score_ == pytest.approx(accuracy_score(y[known], answer, sample_weight=own))


def test_out_of_bag_scores_are_close_to_those_of_new_rows():
    X, y = noisy(2000)
    X_new, y_new = noisy(4000, seed=1)
    model = TreeForestClassifier(oob_score=True, random_state=0).fit(X, y)
    assert model.oob_score_ == pytest.approx(model.score(X_new, y_new), abs=0.03)
    assert log_loss(y, model.oob_decision_function_) == pytest.approx(
        log_loss(y_new, model.predict_proba(X_new)), abs=0.03
    )
    target = X[:, 0] + X[:, 1] ** 2
    model = TreeForestRegressor(oob_score=True, random_state=0).fit(X, target)
    assert model.oob_score_ == pytest.approx(r2_score(target, model.oob_prediction_))
    assert model.score(X_new, X_new[:, 0] + X_new[:, 1] ** 2) == pytest.approx(
        model.oob_score_, abs=0.03
    )
    worst = TreeForestRegressor(8, oob_score=lambda y, said: -np.abs(y - said).max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert worst.fit(X, target).oob_score_ < -0.5


@pytest.mark.parametrize("leaves", LEAVES)
def test_rows_that_are_in_all_bags_have_no_score(leaves):
    X, y = noisy(30)
    model = TreeForestClassifier(1, oob_score=True, leaves=leaves, random_state=0)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        model.fit(X, y)
    assert np.isnan(model.oob_decision_function_).any(axis=1).sum() >= 10
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        alone = TreeForestRegressor(3, oob_score=True, leaves=leaves).fit(X[:1], y[:1])
    assert np.isnan(alone.oob_score_)
    assert np.isnan(alone.oob_prediction_).all()
    assert alone.predict(X).tolist() == [y[0]] * 30


def test_a_fit_without_scores_forgets_them():
    X, y = noisy()
    model = TreeForestClassifier(50, random_state=0, oob_score=True).fit(X, y)
    assert hasattr(model, "oob_score_")
    model.set_params(oob_score=False).fit(X, y)
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_decision_function_")


def test_shuffled_features_that_matter_raise_the_loss():
    X, y = noisy(800)
    model = TreeForestClassifier(50, random_state=0).fit(X, y)
    found = model.out_of_bag_importances(X, y)
    assert found[:3].min() > 0.02 > np.abs(found[3:]).max()
    order = np.random.default_rng(0).permutation(800)
    np.testing.assert_array_equal(model.out_of_bag_importances(X[order], y[order]), found)
    numbers = TreeForestRegressor(20, random_state=0).fit(X, X[:, 0])
    found = numbers.out_of_bag_importances(X, X[:, 0])
    assert found[0] > 10 * np.abs(found[1:]).max()
    with pytest.raises(ValueError, match="must be those of the fit"):
        model.out_of_bag_importances(X[1:] + 1, y[1:])
    np.testing.assert_array_equal(model.sample_hashes_, compute_fit_hashes(X))
    with pytest.raises(ValueError, match="fit with bootstrap=True"):
        TreeForestClassifier(3, bootstrap=False).fit(X, y).out_of_bag_importances(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced_subsample"])
def test_in_bag_sums_are_those_of_growth(class_weight):
    from certree.ensembles.forest_importances import sum_in_bag_targets

    X, y = load_iris(return_X_y=True)
    model = TreeForestClassifier(**SHORT, class_weight=class_weight, warm_start=True).fit(X, y)
    rows = ForestSamples.from_training(clone(model)._prepare_training(X, y))
    drawing = model._create_grower(rows).row_sampling
    about = drawing, OutputGroups((3,)), class_weight is not None
    found = sum_in_bag_targets(model.trees_, rows, rows.features.X, *about)
    np.testing.assert_array_equal(found, model._node_sums)


# -- estimators ------------------------------------------------------------------------------------


def expected_failures(_):
    one_draw = "a row is one draw whatever it weighs: copies go to bags one by one"
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": one_draw for kind in ("dense", "sparse")
    }


@parametrize_with_checks(
    [TreeForestClassifier(5), TreeForestRegressor(5)], expected_failed_checks=expected_failures
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("leaves", LEAVES)
def test_the_order_of_rows_and_threads_do_not_matter(leaves):
    X, y = noisy()
    X[::7, 1] = np.nan
    order = np.random.default_rng(1).permutation(len(y))
    for model, target in (
        (TreeForestClassifier(60, leaves=leaves, oob_score=True, random_state=0), y),
        (TreeForestRegressor(60, leaves=leaves, oob_score=True, random_state=0), X[:, 0] + y),
    ):
        first = clone(model).fit(X, target)
        second = clone(model).set_params(n_jobs=2).fit(X[order], target[order])
        asked = "predict" if isinstance(model, TreeForestRegressor) else "predict_proba"
        for ask in (asked, "apply"):
            np.testing.assert_array_equal(getattr(first, ask)(X), getattr(second, ask)(X))
        np.testing.assert_array_equal(first.feature_importances_, second.feature_importances_)
        told = first._oob_attribute
        np.testing.assert_array_equal(getattr(first, told)[order], getattr(second, told))
        assert first.oob_score_ == pytest.approx(second.oob_score_)


@pytest.mark.parametrize("leaves", ["auto", "plain"])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_warm_start_goes_on_where_a_fit_ended(numbers, leaves, tmp_path):
    X, y = noisy()
    kind, ask = (TreeForestRegressor, "predict") if numbers else (TreeForestClassifier, "apply")
    y = X[:, 0] + y / 3 if numbers else y
    whole = kind(12, leaves=leaves, random_state=0).fit(X, y)
    model = kind(5, leaves=leaves, random_state=0, warm_start=True).fit(X, y)
    save(model, tmp_path / "model.certree")
    read = load(tmp_path / "model.certree")
    for one in (model, read):
        one.set_params(n_estimators=12).fit(X, y)
        assert len(one.trees_) == 12
        assert one.leaves_ == whole.leaves_
        np.testing.assert_array_equal(getattr(one, ask)(X), getattr(whole, ask)(X))
        np.testing.assert_array_equal(one.trees_.value, whole.trees_.value)
        np.testing.assert_array_equal(one.feature_importances_, whole.feature_importances_)
    model.fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=3 must be larger or equal to"):
        model.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="adds trees to the previous fit"):
        model.set_params(n_estimators=15).fit(X[1:], y[1:])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("criterion", "entropy"),
        ("max_depth", 3),
        ("min_samples_leaf", 7),
        ("max_features", None),
        ("splitter", "random"),
        ("bootstrap", False),
        ("max_samples", 0.5),
        ("random_state", 1),
        ("class_weight", "balanced"),
    ],
)
def test_a_warm_start_refuses_parameters_that_the_fit_was_not_made_with(name, value):
    X, y = noisy()
    model = TreeForestClassifier(5, random_state=0, warm_start=True).fit(X, y)
    state, said = dict(model.__dict__), model.predict_proba(X)
    before = state[name]
    expected = re.escape(f"{name} must be {before!r}, as in the fit to which ")
    with pytest.raises(ValueError, match=expected):
        model.set_params(**{name: value}, n_estimators=9).fit(X, y)
    assert all(model.__dict__[key] is state[key] for key in set(state) - {name, "n_estimators"})
    np.testing.assert_array_equal(model.predict_proba(X), said)


def test_a_warm_start_may_fill_leaves_of_all_trees_anew():
    X, y = noisy()
    model = TreeForestClassifier(5, random_state=0, warm_start=True).fit(X, y)
    model.set_params(n_estimators=30, leaves="refilled", oob_score=True, n_jobs=2).fit(X, y)
    whole = TreeForestClassifier(30, leaves="refilled", oob_score=True, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    assert model.oob_score_ == whole.oob_score_


def test_rows_of_weight_zero_are_as_if_absent():
    X, y = noisy(300)
    weight = np.ones(300)
    weight[::5] = 0
    model = TreeForestClassifier(60, oob_score=True, random_state=0).fit(X, y, weight)
    alone = TreeForestClassifier(60, oob_score=True, random_state=0)
    alone.fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    told = model.oob_decision_function_
    assert np.isnan(told[::5]).all()
    np.testing.assert_array_equal(told[weight > 0], alone.oob_decision_function_)
    assert model.oob_score_ == alone.oob_score_


@pytest.mark.parametrize("unit", [1.0, 0.1, 2.0**900])
def test_weights_become_whole_numbers_without_a_unit(unit):
    weight, other = np.array([2.0, 1.0, 1e-300]), np.array([3.0, 40_000.0])
    assert compute_integer_weights(unit * weight).tolist() == [2.0**16, 2.0**15, 1]
    assert compute_integer_weights(unit * other).tolist() == [3, 40_000]


def test_bags_and_leaves_count_a_row_once_whatever_its_weight():
    X, y = noisy(200)
    weight = np.random.default_rng(0).integers(1, 9, 200).astype(float)
    plain, weighed = (
        ForestSamples.from_training(TreeForestClassifier()._prepare_training(X, y, one))
        for one in (None, weight)
    )
    np.testing.assert_array_equal(plain.input_index, weighed.input_index)
    how = {"min_samples_leaf": 20, "leaves": "plain", "bootstrap": False, **SHORT}
    model = TreeForestClassifier(**how).fit(X, y, weight)
    for leaf in model.trees_.find_leaves(X, 1):
        assert np.unique(leaf, return_counts=True)[1].min() >= 20
    grower = TreeForestClassifier(**SHORT).fit(X, y, weight)._create_grower(weighed)
    assert [grower.count_draws(number).sum() for number in range(3)] == [200] * 3


def test_weights_of_classes_move_probabilities():
    X, y = noisy(600)
    for weight in ({0: 1, 1: 5}, {0: 0.3, 1: 1.7}):
        heavy = TreeForestClassifier(30, class_weight=weight, random_state=0).fit(X, y)
        light = TreeForestClassifier(30, random_state=0).fit(X, y)
        assert heavy.predict_proba(X)[:, 1].mean() > light.predict_proba(X)[:, 1].mean() + 0.02
    balanced = TreeForestClassifier(**SHORT, class_weight="balanced").fit(X, y)
    assert len(balanced.trees_) == 8
    with pytest.raises(ValueError, match="class_weight"):
        TreeForestClassifier(class_weight="even").fit(X, y)


def test_leaves_of_rows_are_numbered_in_their_trees():
    X, y = load_iris(return_X_y=True)
    model = TreeForestClassifier(**SHORT).fit(X, y)
    leaf = model.apply(X)
    assert leaf.shape == (150, 8)
    for number in range(8):
        tree = model.trees_.tree(number)
        np.testing.assert_array_equal(leaf[:, number], tree.apply(X))


@pytest.mark.parametrize(
    "kind", [TreeForestClassifier, TreeForestRegressor, CertifiedForestClassifier]
)
def test_decision_paths_hold_the_nodes_on_the_way_to_every_leaf(kind):
    X, y = noisy()
    X[::5, 0] = np.nan
    # A tree may be a single leaf.
    for limits in ({"max_depth": 4}, {"min_samples_leaf": 350}, {}):
        model = kind(4, random_state=0, **limits).fit(X, y)
        found, ends = model.decision_path(X[:30])
        assert isinstance(found, sparse.csr_matrix)
        assert found.has_sorted_indices
        expected = [np.zeros((30, tree.n_nodes)) for tree in model.trees_]
        for marks, tree in zip(expected, model.trees_, strict=True):
            for i, leaf in enumerate(reference.apply(tree, X[:30])):
                marks[i, reference.find_path(tree, int(leaf))] = 1
        np.testing.assert_array_equal(found.toarray(), np.hstack(expected))
        assert ends.tolist() == [0, *np.cumsum([tree.n_nodes for tree in model.trees_])]


def test_decision_paths_have_the_form_that_scikit_learn_gives_them():
    X, y = noisy()
    mine, other = TreeForestClassifier(3).fit(X, y), RandomForestClassifier(3).fit(X, y)
    for model in (mine, other):
        found, ends = model.decision_path(X)
        assert found.format == "csr"
        assert found.dtype == np.int64
        assert found.shape == (len(X), ends[-1])
        leaves = model.apply(X) + ends[:-1]
        marks = found.toarray()
        assert (np.take_along_axis(marks, leaves, axis=1) == 1).all()
        assert (marks[:, ends[:-1]] == 1).all()


def test_decision_paths_take_memory_in_proportion_to_what_they_hold():
    X, y = noisy(2000)
    model = TreeForestClassifier(20, n_jobs=1, random_state=0).fit(X, y)
    model.decision_path(X)
    tracemalloc.start()
    found, _ = model.decision_path(X)
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held >= 12 * found.nnz
    assert most < 1.5 * 12 * found.nnz + 2**20


def test_proximity_is_the_fraction_of_common_leaves():
    X, y = noisy(50)
    model = TreeForestClassifier(**SHORT).fit(X, y)
    pairs = np.array([[0, 0], [1, 2], [3, 40]])
    leaf = model.apply(X)
    expected = (leaf[pairs[:, 0]] == leaf[pairs[:, 1]]).mean(axis=1)
    np.testing.assert_allclose(model.proximity(X, pairs), expected)
    assert model.proximity(X, np.zeros((0, 2), dtype=int)).shape == (0,)
    for wrong in ([[0, 50]], [[-1, 0]], [0, 1], [[0.0, 1.0]], [[0, 1, 2]]):
        with pytest.raises(ValueError, match=r"pairs must (be|hold)"):
            model.proximity(X, wrong)


def test_importances_name_the_columns_that_matter():
    X, y = noisy(1000)
    found = TreeForestClassifier(30, random_state=0).fit(X, y).feature_importances_
    peer = RandomForestClassifier(30, random_state=0).fit(X, y).feature_importances_
    np.testing.assert_allclose(found, peer, atol=0.05)
    assert found.sum() == pytest.approx(1)
    numbers = TreeForestRegressor(10, random_state=0).fit(X, X[:, 3])
    assert numbers.feature_importances_[3] > 0.99
    assert TreeForestClassifier(**SHORT).fit(X, y * 0).feature_importances_.tolist() == [0] * 5


def test_extra_trees_draw_their_cuts():
    X, y = noisy(1000)
    model = TreeForestClassifier(50, splitter="random", bootstrap=False, random_state=0).fit(X, y)
    assert (model.predict(X) == y).all()
    X_new, y_new = noisy(2000, seed=1)
    assert model.score(X_new, y_new) > 0.7


@pytest.mark.parametrize(
    ("given", "expected"),
    [("sqrt", 3), ("log2", 3), (None, 10), (1.0, 10), (0.25, 2), (0.01, 1), (4, 4), (99, 10)],
)
def test_numbers_of_features_are_those_of_scikit_learn(given, expected):
    X, y = noisy(60, p=10)
    model = TreeForestClassifier(**SHORT, max_features_per_tree=given).fit(X, y)
    used = [np.unique(tree.feature[tree.left >= 0]) for tree in model.trees_]
    assert max(map(len, used)) <= expected
    assert len(TreeForestRegressor(**SHORT, max_features=given).fit(X, y).trees_) == 8


def test_fractions_of_rows_limit_the_size_of_nodes():
    X, y = noisy(200)
    model = TreeForestClassifier(
        **SHORT, min_samples_leaf=0.1, min_samples_split=0.5, bootstrap=False
    ).fit(X, y)
    for column in model.apply(X).T:
        assert np.unique(column, return_counts=True)[1].min() >= 20
    stumps = TreeForestClassifier(**SHORT, max_depth=1).fit(X, y)
    assert (np.diff(np.append(stumps.trees_.root, len(stumps.trees_.left))) == 3).all()


@pytest.mark.parametrize(("given", "expected"), [(None, 60), (7, 7), (0.5, 30), (1e-9, 1), (1, 1)])
def test_so_many_rows_are_drawn(given, expected):
    X, y = noisy(60)
    model = TreeForestClassifier(1, max_samples=given, random_state=0, warm_start=True).fit(X, y)
    assert model._node_sums[0, 0] == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_samples": 0}, "The 'max_samples' parameter"),
        ({"max_samples": 0.0}, "The 'max_samples' parameter"),
        ({"max_samples": 1.5}, "The 'max_samples' parameter"),
        ({"max_samples": 61}, "`max_samples` must be <= n_samples=60 but got value 61"),
        ({"max_samples": 5, "bootstrap": False}, "cannot be set if `bootstrap=False`"),
        ({"oob_score": True, "bootstrap": False}, "oob_score must be False with bootstrap=False"),
        ({"leaves": "honest", "bootstrap": False}, "needs out-of-bag rows"),
        ({"leaves": "refilled", "bootstrap": False}, "needs out-of-bag rows"),
        ({"leaves": "none"}, "The 'leaves' parameter"),
        ({"n_estimators": 0}, "The 'n_estimators' parameter"),
        ({"max_features": 0}, "The 'max_features' parameter"),
        ({"criterion": "error"}, "The 'criterion' parameter"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    X, y = noisy(60)
    for kind in (TreeForestClassifier, TreeForestRegressor):
        with pytest.raises(ValueError, match=message):
            kind(**parameters).fit(X, y)


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows_are_enough(rows, leaves):
    X, y = load_diabetes(return_X_y=True)
    model = TreeForestRegressor(**SHORT, leaves=leaves).fit(X[:rows], y[:rows])
    assert np.isfinite(model.predict(X)).all()
    model = TreeForestClassifier(**SHORT, leaves=leaves).fit(X[:rows], y[:rows] > 100)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("leaves", LEAVES)
def test_one_class_is_certain(leaves):
    X, _ = noisy(30)
    model = TreeForestClassifier(30, leaves=leaves, random_state=0, oob_score=True)
    model.fit(X, np.full(30, "a"))
    assert (model.predict(X) == "a").all()
    assert model.predict_proba(X).tolist() == [[1.0]] * 30
    assert (model.oob_decision_function_ == 1).all()
    assert model.oob_score_ == 1


def test_a_constant_target_is_predicted():
    X, _ = noisy(60)
    for value in (2.5, 1e99, 0.0):
        model = TreeForestRegressor(**SHORT).fit(X, np.full(60, value))
        np.testing.assert_allclose(model.predict(X), value)


def test_large_numbers_are_predicted():
    X, _ = noisy(200)
    y = X[:, 0].round(2)
    large = TreeForestRegressor(30, random_state=0, oob_score=True).fit(X, y * 2.0**300)
    assert large.oob_score_ > 0.98
    assert r2_score(y, large.predict(X) / 2.0**300) > 0.99
    with pytest.raises(ValueError, match="y must have a largest absolute value between 1e-100"):
        TreeForestRegressor().fit(X, y * 1e200)


def test_missing_values_and_categories_are_cut():
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 12, 800), random.normal(size=800)]).astype(float)
    y = np.isin(X[:, 0], [0, 3, 5, 8, 11])
    X[random.random(800) < 0.1, 1] = np.nan
    model = TreeForestClassifier(20, categorical_features=[0], random_state=0).fit(X, y)
    assert len(model.trees_.categories)
    assert model.score(X, y) == 1
    assert np.isfinite(model.predict_proba([[99.0, np.nan], [np.nan, np.nan]])).all()


# -- classes that weigh the same in every bag --------------------------------------------------------


@given(
    seed=st.integers(0, 2**16),
    n_classes=st.sampled_from([1, 2, 3, 6]),
    criterion=st.sampled_from(["gini", "entropy"]),
    kinds=st.sets(st.sampled_from(["weighted", "grouped", "columns", "once"])),
)
def test_balanced_trees_are_those_of_the_weights_of_the_twin(seed, n_classes, criterion, kinds):
    random, n = np.random.default_rng(seed), 40
    X = random.integers(0, 6, size=(n, 3)).astype(float)
    y = random.choice(n_classes, n, p=random.dirichlet(np.ones(n_classes)))
    columns = np.column_stack([y, random.integers(0, 2, n)])
    weight = random.integers(1, 5, n).astype(float) if "weighted" in kinds else None
    grower = BinnedGrower(
        Bins.from_table(X),
        order="depth",
        max_features=2,
        bootstrap="once" not in kinds,
        n_draws=15 if "grouped" in kinds else 30,
        groups=np.arange(n) // 2 if "grouped" in kinds else None,
        seed=seed,
    )
    how = {"criterion": criterion}
    if "columns" in kinds:
        grow, target = partial(grower.grow_columns, n_classes=[n_classes, 2], **how), columns
    else:
        grow, target = partial(grower.grow_classes, n_classes=n_classes, **how), y
    own = np.ones(n) if weight is None else weight
    found = grow(target, n_trees=3, sample_weight=weight, balanced=True)
    for number, tree in enumerate(found.trees):
        count = grower.count_draws(number)
        codes = target.reshape(n, -1).astype(float)
        balanced = np.array(reference.balance_in_bag_weights(count, own, codes), dtype=float)
        np.testing.assert_array_equal(balance_bag_weights(count, own, codes), balanced)
        alone = grow(target, n_trees=1, first=number, sample_weight=balanced)
        for name in ("feature", "threshold", "left"):
            np.testing.assert_array_equal(
                getattr(tree, name), getattr(alone.trees.tree(0), name), err_msg=name
            )
        first = found.trees.root[number]
        begin, end = found.begin[[first, first + tree.n_nodes]]
        np.testing.assert_array_equal(found.total[begin:end], alone.total)


@pytest.mark.parametrize("weighted", [False, True])
def test_classes_have_equal_weight_in_every_bag_as_in_scikit_learn(weighted):
    X, y = noisy(300)
    y = np.where(np.arange(300) < 25, 2, y)
    weight = np.random.default_rng(0).integers(1, 4, 300) if weighted else None
    model = TreeForestClassifier(
        5, class_weight="balanced_subsample", oob_score=True, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, weight)
    assert model.leaves_ == Leaves()
    rows = ForestSamples.from_training(clone(model)._prepare_training(X, y, weight))
    for number, tree in enumerate(model.trees_):
        count = model._create_grower(rows).count_draws(number)
        np.testing.assert_allclose(tree.value[0], 1 / 3, atol=1e-3)
        if weighted:
            continue
        drawn = np.repeat(np.arange(300), count)
        theirs = compute_sample_weight("balanced", rows.y, indices=drawn)
        mine = balance_bag_weights(count, rows.get_weights(), rows.targets)
        ratio = (mine / theirs)[count > 0]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)
    known = ~np.isnan(model.oob_decision_function_[:, 0])
    answer = model.oob_decision_function_[known].argmax(axis=1)
    score = accuracy_score(
        y[known], answer, sample_weight=None if weight is None else weight[known]
    )
    assert model.oob_score_ == pytest.approx(score)
    order = np.random.default_rng(1).permutation(300)
    given = (X, y) if weight is None else (X, y, weight)
    again = clone(model).set_params(n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again.fit(*(one[order] for one in given))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    found = model.out_of_bag_importances(*given)
    np.testing.assert_array_equal(again.out_of_bag_importances(*given), found)
    assert found[2] > 0


def test_without_bags_balanced_classes_are_those_of_all_rows():
    X, y = noisy(200)
    y = np.where(np.arange(200) < 20, 2, y)
    how = {"leaves": "plain", "bootstrap": False, "max_depth": 4, "random_state": 0}
    one, other = (
        TreeForestClassifier(3, class_weight=word, **how).fit(X, y)
        for word in ("balanced_subsample", "balanced")
    )
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-3)


def test_balanced_bags_allow_warm_starts_and_files(tmp_path):
    X, y = noisy(200)
    model = TreeForestClassifier(
        3, class_weight="balanced_subsample", warm_start=True, random_state=0
    ).fit(X, y)
    model.set_params(n_estimators=6).fit(X, y)
    anew = clone(model).set_params(warm_start=False).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), anew.predict_proba(X))
    save(anew, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), anew.predict_proba(X))
    np.testing.assert_array_equal(
        again.out_of_bag_importances(X, y), anew.out_of_bag_importances(X, y)
    )
    for leaves in ("refilled", "shrunk", "honest"):
        wrong = clone(anew).set_params(leaves=leaves)
        with pytest.raises(ValueError, match=f'leaves must be "auto" or "plain".*{leaves}'):
            wrong.fit(X, y)
    with pytest.raises(ValueError, match="balanced must be False for columns of numbers"):
        BinnedGrower(Bins.from_table(X)).grow_columns(X, 1, balanced=True)


def test_who_is_not_fitted_says_so():
    X, y = noisy(20)
    for model in (TreeForestClassifier(), TreeForestRegressor()):
        for ask in ("predict", "apply"):
            with pytest.raises(NotFittedError):
                getattr(model, ask)(X)
        with pytest.raises(NotFittedError):
            model.proximity(X, [[0, 1]])
        with pytest.raises(NotFittedError):
            model.out_of_bag_importances(X, y)


def test_a_model_is_cloned_and_pickled():
    X, y = load_breast_cancer(return_X_y=True)
    model = TreeForestClassifier(**SHORT).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("target", ["two", "three", "text", "numbers", "categories", "one"])
def test_a_model_file_predicts_what_was_saved(target, leaves, tmp_path):
    X, y = noisy(300)
    X[::9, 2] = np.nan
    model = TreeForestClassifier(**SHORT, leaves=leaves)
    if target == "three":
        y = y + (X[:, 0] > 1)
    elif target == "text":
        y = np.where(y == 1, "yes", "no")
    elif target == "numbers":
        model, y = TreeForestRegressor(**SHORT, leaves=leaves), X[:, 0]
    elif target == "categories":
        X[:, 0] = np.round(X[:, 0] * 3)
        model.set_params(categorical_features=[0])
    elif target == "one":
        y = y * 0
    model.fit(X, y)
    save(model, tmp_path / "model.certree")
    again = load(tmp_path / "model.certree")
    for ask in ("predict", "apply") if target == "numbers" else ("predict_proba", "apply"):
        np.testing.assert_array_equal(getattr(again, ask)(X), getattr(model, ask)(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(again.trees_.value, model.trees_.value)
    np.testing.assert_array_equal(
        again.out_of_bag_importances(X, y), model.out_of_bag_importances(X, y)
    )
    assert again.leaves_ == model.leaves_


# -- knobs of growth ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [TreeForestClassifier, TreeForestRegressor])
def test_trees_have_no_more_leaves_than_are_asked_for(model):
    X, y = noisy()
    forest = model(max_leaf_nodes=7, **SHORT).fit(X, y)
    leaves = np.add.reduceat(forest.trees_.is_leaf.astype(int), forest.trees_.root)
    assert (leaves == 7).all()
    full = model(**SHORT).fit(X, y)
    roots = forest.trees_.root, full.trees_.root
    for name in ("feature", "threshold"):
        own, theirs = (getattr(one.trees_, name) for one in (forest, full))
        assert np.array_equal(own[roots[0]], theirs[roots[1]])
    assert np.array_equal(
        full.predict(X), model(max_leaf_nodes=10**6, **SHORT).fit(X, y).predict(X)
    )


def test_best_first_forests_err_no_more_than_scikit_learns():
    X, y = load_digits(return_X_y=True)
    train, test = np.arange(1200), np.arange(1200, len(y))
    switches = {"n_estimators": 60, "max_leaf_nodes": 12, "random_state": 0}
    theirs = RandomForestClassifier(**switches).fit(X[train], y[train]).score(X[test], y[test])
    ours = TreeForestClassifier(**switches).fit(X[train], y[train]).score(X[test], y[test])
    assert ours > theirs - 0.02


def counts_by_rate(n=1500, seed=0):
    """Counts whose logarithmic rate depends on two features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, rng.poisson(np.exp(X[:, 0] * X[:, 1] - 0.5 * (X[:, 2] > 1))).astype(float)


def test_poisson_deviance_splits_counts_as_well_as_in_scikit_learn():
    X, y = counts_by_rate(4000)
    switches = {"n_estimators": 60, "min_samples_leaf": 10, "criterion": "poisson"}
    switches["random_state"] = 0
    ours = TreeForestRegressor(**switches).fit(X[:2000], y[:2000])
    theirs = RandomForestRegressor(**switches).fit(X[:2000], y[:2000])
    deviance = [mean_poisson_deviance(y[2000:], one.predict(X[2000:])) for one in (ours, theirs)]
    assert deviance[0] < 1.03 * deviance[1]
    squared = clone(ours).set_params(criterion="squared_error").fit(X[:2000], y[:2000])
    assert not np.array_equal(squared.trees_.feature, ours.trees_.feature)


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_weights_have_no_unit_by_every_criterion(criterion):
    X, y = counts_by_rate(200)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    weighed = TreeForestRegressor(criterion=criterion, max_leaf_nodes=9, **SHORT)
    expect_no_unit(lambda one: clone(weighed).fit(X, y, one).predict(X), weight)
    weighed.fit(X, y, sample_weight=weight)
    order = np.random.default_rng(1).permutation(len(y))
    other = clone(weighed).fit(X[order], y[order], sample_weight=weight[order])
    assert np.array_equal(weighed.predict(X), other.predict(X))


def test_what_a_criterion_cannot_take_is_refused_with_a_way_out():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"BoostedTreesRegressor\(loss=\"absolute_error\"\)"):
        TreeForestRegressor(criterion="absolute_error").fit(X, y)
    with pytest.raises(ValueError, match="negative which is not allowed for Poisson regression"):
        TreeForestRegressor(criterion="poisson").fit(X, y - 1.0)


def test_forests_have_a_length_once_they_are_fitted():
    X, y = noisy()
    forest = TreeForestClassifier(**SHORT)
    assert forest
    with pytest.raises(NotFittedError):
        len(forest)
    assert len(forest.fit(X, y)) == len(forest.trees_) == 8


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("model", [TreeForestClassifier, TreeForestRegressor])
def test_predictions_rise_or_fall_along_features(model, sign):
    X, y = noisy(600)
    y = y if model is TreeForestClassifier else y + X[:, 0]
    forest = model(monotonic_cst=[0, 0, sign, 0, 0], max_features=None, **SHORT).fit(X, y)
    assert forest.leaves_ == TreeForestClassifier(leaves="plain", **SHORT).fit(X, y > 0).leaves_
    lines = np.repeat(X[:50, None], 40, axis=1)
    lines[:, :, 2] = np.linspace(-3, 3, 40)
    rows = lines.reshape(-1, 5)
    said = (
        forest.predict(rows) if model is TreeForestRegressor else forest.predict_proba(rows)[:, 1]
    )
    steps = sign * np.diff(said.reshape(50, 40))
    assert steps.min() >= -1e-12
    assert sign < 0 or steps.max() > 0.01
    free = clone(forest).set_params(monotonic_cst=None, leaves="plain").fit(X, y)
    free = free.predict(rows) if model is TreeForestRegressor else free.predict_proba(rows)[:, 1]
    assert (sign * np.diff(free.reshape(50, 40))).min() < -0.01


def test_monotonic_constraints_are_refused_for_other_leaves_and_more_classes():
    X, y = noisy()
    slopes = [0, 0, 1, 0, 0]
    for leaves in ("refilled", "honest", "shrunk"):
        with pytest.raises(ValueError, match='leaves must be "auto" or "plain" with monotonic_cst'):
            TreeForestClassifier(monotonic_cst=slopes, leaves=leaves).fit(X, y)
    with pytest.raises(ValueError, match=r"more than two classes.*got 3 classes"):
        TreeForestClassifier(monotonic_cst=slopes).fit(X, np.arange(len(X)) % 3)
    by_name = TreeForestClassifier(monotonic_cst={"c": 1}, **SHORT)
    named = pd.DataFrame(X, columns=[*"abcde"])
    by_number = TreeForestClassifier(monotonic_cst=slopes, **SHORT).fit(X, y)
    assert np.array_equal(by_name.fit(named, y).predict_proba(named), by_number.predict_proba(X))


def test_poissons_deviance_takes_a_positive_target():
    X = np.arange(40.0)[:, None]
    for y in (np.zeros(40), -np.ones(40)):
        with pytest.raises(ValueError, match="Poisson regression"):
            TreeForestRegressor(2, criterion="poisson").fit(X, y)
    assert TreeForestRegressor(2, criterion="poisson").fit(X, np.append(np.zeros(39), 1)).trees_
