"""The regressors keep scikit-learn's contract, and what certree adds to it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_val_score
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import certree
from certree import (
    KD,
    Cart,
    Dyadic,
    Grid,
    PACBayesTreeRegressor,
    PrunedTreeRegressor,
    Voting,
    grow_cart,
    grow_dyadic,
    grow_kd,
    measure,
)
from certree.prunings import DescriptionLength, Pessimistic
from sklearn_checks import copies_differ, expect_checks, mark_copies

ESTIMATORS = [PACBayesTreeRegressor, PrunedTreeRegressor]
GROWERS = ["cart", "dyadic", "kd", DecisionTreeRegressor(max_depth=6)]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
every_grower = pytest.mark.parametrize("grower", GROWERS, ids=str)


def noisy(n=300, seed=0):
    return make_friedman1(n, 6, noise=1.0, random_state=seed)


@parametrize_with_checks([estimator() for estimator in ESTIMATORS])
def test_default_estimators_pass_the_checks_of_scikit_learn(request, estimator, check):
    if isinstance(estimator, PACBayesTreeRegressor):
        mark_copies(request, check)
    check(estimator)


@every_estimator
@every_grower
def test_equal_weights_are_none_where_cells_hold_one_target(estimator, grower):
    # No sum of theirs is exact: what is rounded must not pass for the noise that laws are measured by.
    X, y = np.arange(6.0)[:, None], np.array([0.1, 0.3, 0.7, 0.9, 1.1, 1.3])
    model = estimator(grower, random_state=0)
    plain = clone(model).fit(X, y)
    for weight in (10, 14, 0.3):
        weighted = clone(model).fit(X, y, np.full(6, weight))
        assert weighted.stats_.unit == pytest.approx(plain.stats_.unit, rel=1e-12)
        np.testing.assert_allclose(weighted.predict(X), plain.predict(X), rtol=1e-9)


@every_estimator
@pytest.mark.parametrize("grower", ["kd", "dyadic", DecisionTreeRegressor()], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_other_growers_pass_the_checks_of_scikit_learn(estimator, grower):
    expected = copies_differ() if estimator is PACBayesTreeRegressor else {}
    if (estimator, grower) == (PACBayesTreeRegressor, "kd"):
        expected["check_regressors_train"] = "medians of ten features miss the one that matters"
    expect_checks(estimator(grower), expected)


@every_grower
def test_predictions_follow_shifts_and_scales_of_the_target(grower):
    X, y = noisy()
    y = np.round(4 * y) / 4  # sums are exact, so that ties stay ties
    for estimator in ESTIMATORS:
        model = estimator(grower, cv=KFold(3), random_state=0)
        plain = clone(model).fit(X, y)
        moved = clone(model).fit(X, 1024 * y - 4096)
        np.testing.assert_allclose(moved.predict(X), 1024 * plain.predict(X) - 4096, rtol=1e-8)


def test_all_prunings_are_better_than_the_full_tree_and_one_pruning():
    X, y = noisy(1500)
    score = {
        name: cross_val_score(model, X, y, cv=3).mean()
        for name, model in {
            "full": DecisionTreeRegressor(random_state=0),
            "pruned": PrunedTreeRegressor(random_state=0),
            "PAC-Bayes": PACBayesTreeRegressor(random_state=0),
        }.items()
    }
    assert score["full"] < score["pruned"] < score["PAC-Bayes"]


@pytest.mark.parametrize("rule", ["square-root", "spatially-adaptive", "polynomial"])
def test_rules_that_read_losses_and_rows_prune_numbers(rule):
    X, y = noisy(400)
    sizes = [
        PrunedTreeRegressor(rule=rule, alpha=alpha, random_state=0).fit(X, y).get_n_leaves()
        for alpha in (0.0, None, 1e6)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2] == 1


def test_rules_that_read_classes_are_refused_for_numbers():
    X, y = noisy(20)
    for rule in ("pessimistic", "description-length", Pessimistic(), DescriptionLength()):
        with pytest.raises(ValueError, match="rule must not need classes"):
            PrunedTreeRegressor(rule=rule).fit(X, y)


@every_estimator
def test_the_spread_is_that_of_the_law(estimator):
    X, y = noisy(800)
    model = estimator(random_state=0).fit(X[:600], y[:600])
    between, within = model.predict_std(X).T
    smoothing = 2.0 if estimator is PACBayesTreeRegressor else 0.0
    parts = certree.votes.prediction_variance(
        model.tree_, model.stats_, model.weights_, Voting("mean", smoothing)
    )
    np.testing.assert_array_equal(between**2 > 0, parts.between[model.apply(X)] > 0)
    np.testing.assert_allclose(within, np.sqrt(parts.within[model.apply(X)]))
    assert (between > 0).any() == (estimator is PACBayesTreeRegressor)


def test_a_given_law_is_the_one_of_the_stages():
    X, y = noisy()
    model = PACBayesTreeRegressor(lambda_error=0.02, lambda_penalty=0.1).fit(X, y)
    tree = certree.grow_cart(X, y)
    stats = certree.measure(tree, X, y)
    weights = certree.pac_bayes(tree, stats, 0.02, 0.1)
    ballot = certree.vote(tree, stats, weights, Voting("mean", 2.0))
    np.testing.assert_array_equal(model.predict(X), ballot.score[tree.apply(X), 0])


@pytest.mark.threads
@every_estimator
def test_threads_and_row_order_do_not_matter(estimator):
    X, y = noisy()
    order = np.random.default_rng(0).permutation(len(y))
    alone = estimator(random_state=0).fit(X, y)
    together = estimator(random_state=0, n_jobs=2).fit(X, y)
    shuffled = estimator(random_state=0).fit(X[order], y[order])
    np.testing.assert_array_equal(alone.predict(X), together.predict(X))
    np.testing.assert_allclose(alone.predict(X), shuffled.predict(X), rtol=1e-9)


@every_estimator
def test_explanations_name_numbers(estimator):
    X, y = noisy()
    model = estimator(random_state=0).fit(X, y)
    cells = model.path(X[0])
    assert sum(cell.share for cell in cells) == pytest.approx(1)
    assert cells[0].label == pytest.approx(y.mean())
    assert f"all rows: {model.predict(X).mean():.6g} ({len(y)} rows)" in model.export_text(4)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[3] > importances[5]  # the target does not depend on the last feature


@every_estimator
@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1.0, np.nan, 2.0], ValueError, "Input y contains NaN"),
        ([1.0, np.inf, 2.0], ValueError, "Input y contains infinity"),
        (["a", "b", "c"], ValueError, "must hold numbers"),
        ([1.0, 2.0], ValueError, "inconsistent numbers of samples"),
    ],
)
def test_bad_targets_are_refused_and_change_nothing(estimator, y, error, message):
    X = [[0.0], [1.0], [2.0]]
    model = estimator()
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@every_estimator
def test_one_row_and_one_value_are_no_trouble(estimator):
    assert estimator().fit([[1.0]], [3.0]).predict([[5.0]]) == 3.0
    model = estimator().fit([[1.0], [2.0], [3.0]], [4.0, 4.0, 4.0])
    np.testing.assert_allclose(model.predict([[0.0], [np.nan]]), 4.0, rtol=1e-14)


@every_estimator
@pytest.mark.parametrize(
    ("grower", "grow"),
    [("cart", grow_cart), ("kd", grow_kd), ("dyadic", grow_dyadic)],
    ids=["cart", "kd", "dyadic"],
)
def test_estimators_and_functions_grow_numbers_by_the_same_defaults(estimator, grower, grow):
    X, y = noisy()
    y = np.round(y)  # some cells hold one value
    posterior = {"alpha": 0.0} if estimator is PrunedTreeRegressor else {"lambda_error": 1.0}
    model = estimator(grower, **posterior).fit(X, y)
    tree = grow(X, y)
    if estimator is PrunedTreeRegressor:
        weights = certree.prunings.cost_complexity(tree, measure(tree, X, y), 0.0)
        assert model.get_n_leaves() == weights.expected_leaves
    else:
        np.testing.assert_array_equal(model.tree_.threshold, tree.threshold)
        np.testing.assert_array_equal(model.tree_.left, tree.left)


@every_estimator
def test_switches_of_growers_reach_the_tree_of_numbers(estimator):
    X, y = noisy()
    for small, large in (
        (Cart(max_leaf_nodes=4), Cart()),
        (KD(min_samples_split=100), KD()),
        (Dyadic(min_samples_split=100), Dyadic()),
    ):
        sizes = [estimator(one, random_state=0).fit(X, y).get_n_leaves() for one in (small, large)]
        assert 1 < sizes[0] < sizes[1]


@every_estimator
def test_a_fixed_box_is_a_grower_of_numbers(estimator):
    X, y = noisy()
    grid = Grid([[0.0] * 6, [1.0] * 6])
    model = estimator(grid, random_state=0).fit(X, y)
    assert model.get_depth() <= 8  # log2 of 300
    assert model.score(X, y) > 0.2
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))
    if estimator is PACBayesTreeRegressor:
        np.testing.assert_array_equal(model.tree_.threshold[:3], 0.5)
        assert model.get_n_leaves() == 2**8


@every_estimator
def test_classes_have_no_place_among_the_criteria_of_numbers(estimator):
    X, y = noisy()
    with pytest.raises(TypeError, match="y must convert to int32"):
        estimator(Cart(criterion="gini")).fit(X, y)


@every_estimator
def test_rows_of_weight_zero_are_as_if_absent(estimator):
    X, y = noisy()
    y = np.round(4 * y) / 4
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 0.75)
    kept = weight > 0
    a = estimator(random_state=0).fit(X, y, sample_weight=weight)
    b = estimator(random_state=0).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert a.best_params_ == b.best_params_
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    with pytest.raises(ValueError, match=r"positive for at least one row|at least one non-zero"):
        estimator().fit(X, y, sample_weight=np.zeros(300))


def test_a_single_pruning_wins_where_it_should():
    rng = np.random.default_rng(0)
    X = rng.random((3000, 6))
    y = 3.0 * ((X[:, 0] > 0.3) & (X[:, 1] > 0.6)) + 2 * (X[:, 2] > 0.5)
    y += rng.normal(size=3000)
    train, test = slice(0, 1000), slice(1000, None)

    def error(**settings):
        model = PACBayesTreeRegressor(random_state=0, **settings).fit(X[train], y[train])
        return np.mean((model.predict(X[test]) - y[test]) ** 2), model

    mixed, model = error()
    assert mixed < error(prior="leaves", lambda_penalty=0.0, search="joint")[0] * 0.98
    pruned = [posterior == "likeliest pruning" for posterior in model.posteriors_]
    assert np.array(model.mixture_weights_)[pruned].sum() > 0.5
