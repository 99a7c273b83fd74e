"""Boosted trees whose prunings vote: rounds, losses, and what users rely on."""

import pickle
import re
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    Tree,
    _core,
    load,
    save,
)
from certree.ensembles.linear_start import grow_linear_start
from certree.ensembles.losses import (
    GammaLoss,
    HuberLoss,
    LogLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
)
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.round_schedule import (
    CLASS_SCHEDULE,
    NUMBER_SCHEDULE,
    RANKING_SCHEDULE,
)
from certree.ensembles.round_selection import choose_rounds, choose_step_factor
from certree.ensembles.rounds import UNWATCHED, Settings, advance, start_run
from certree.grow import BinnedGrower, Bins
from certree.rows.features import DenseFeatures
from certree.rows.folds import Fold
from certree.tree import Trees
from run_length import choose_seeds
from strategies import trees

SHORT = {"max_iter": 12, "random_state": 0}
LOSSES = ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]


def noisy(n=600, p=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + random.normal(size=n) > 0).astype(int)
    return X, y


def parted(flags):
    """Return the indices of rows with a flag, and of rows without."""
    return tuple(np.flatnonzero(side).astype(np.int32) for side in (flags, ~flags))


# -- one round -------------------------------------------------------------------------------------


@given(
    trees(max_inner=4, max_chain=1),
    st.sampled_from([[1], [2], [1, 1], [2, 1], [1, 1, 1]]),
    st.integers(0, 12),
    st.sampled_from([0.0, 0.5, 5.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([(0.5,), (0.02, 0.1, 0.5)]),
    st.integers(0, 2**32 - 1),
)
def test_a_round_averages_over_all_prunings(tree, sizes, n, shrinkage, curvature, stops, seed):
    random, n_outputs = np.random.default_rng(seed), sum(sizes)
    ends = np.cumsum(sizes)
    order = random.permutation(len(sizes))
    voters = [(int(ends[j] - sizes[j]), sizes[j], 0.7 / (j + 1)) for j in order]
    leaf = random.choice(np.flatnonzero(tree.is_leaf), n).astype(np.int32)
    grew = random.random(n) < 0.6
    gradient, hessian = random.normal(size=(n_outputs, n)), 0.1 + random.random((n_outputs, n))
    settings = (shrinkage, voters, 0.3, curvature)
    sides, slopes = parted(grew), (gradient, hessian)
    rest = (*settings, np.array(stops), tree.feature, None)
    steps, deviation, weight, evidence = _core.compute_round_steps(
        tree.left, leaf, *sides, *slopes, *rest
    )
    expected, deviations, log_evidence = reference.average_boosting_steps(
        tree, leaf, grew, gradient, hessian, *settings, stops
    )
    for u, value in expected.items():
        np.testing.assert_allclose(steps[u], value, rtol=1e-8, atol=1e-8)
        # The root of a variance of 0 but for rounding.
        np.testing.assert_allclose(deviation[u], deviations[u], rtol=1e-8, atol=1e-6)
        for of_voters in weight:
            assert of_voters[reference.find_path(tree, u)].sum() == pytest.approx(1)
    assert evidence == pytest.approx(log_evidence, abs=1e-8)


@given(trees(max_inner=4, max_chain=1), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_a_round_does_not_depend_on_the_order_of_rows(tree, n, seed):
    random = np.random.default_rng(seed)
    leaf = random.choice(np.flatnonzero(tree.is_leaf), n).astype(np.int32)
    grew = random.random(n) < 0.6
    gradient, hessian = random.normal(size=(1, n)) * 1e3, random.random((1, n))
    order = random.permutation(n)
    rest = (1.0, [(0, 1, 1.0)], 0.0, 0.5, np.array([0.1]), tree.feature, None)
    first = _core.compute_round_steps(tree.left, leaf, *parted(grew), gradient, hessian, *rest)
    turned = np.ascontiguousarray(gradient[:, order]), np.ascontiguousarray(hessian[:, order])
    sides = parted(grew[order])
    second = _core.compute_round_steps(tree.left, leaf[order], *sides, *turned, *rest)
    for one, other in zip(first[:3], second[:3], strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_a_vote_the_whole_tree_steps():
    left, feature = np.array([1, -1, -1], dtype=np.int32), np.zeros(3, dtype=np.int32)
    leaf, sides = np.array([1, 2, 2, -1], dtype=np.int32), parted(np.ones(4, dtype=bool))
    slopes = np.array([[1.0, -2.0, -4.0, 100.0]]), np.ones((1, 4))
    steps, deviation, weight, _ = _core.compute_round_steps(
        left, leaf, *sides, *slopes, 0.0, [(0, 1, 1.0)], 0.0, 0.5, np.zeros(0), feature, None
    )
    np.testing.assert_allclose(steps[1:, 0], [-1.0, 3.0])
    assert weight.tolist() == [[0.0, 1.0, 1.0]]
    assert not deviation.any()


def test_invalid_arguments_of_a_round_are_refused():
    left = np.array([1, -1, -1], dtype=np.int32)
    leaf, none = np.array([1, 2], dtype=np.int32), np.zeros(0, dtype=np.int32)
    both, ones = np.arange(2, dtype=np.int32), np.ones((1, 2))
    for leaves, rows, stops, message in (
        (leaf + np.int32(1), both, [0.5], r"leaf must lie in -1 \.\. 2"),
        (leaf, both + np.int32(1), [0.5], r"others must lie in 0 \.\. 1"),
        (leaf, both, [0.0], "stop must lie between 0 and 1"),
        (leaf[:1], both, [0.5], "length 2, expected 1"),
    ):
        rest = (1.0, [(0, 1, 1.0)], 0.0, 1.0, np.array(stops), left, None)
        with pytest.raises(ValueError, match=message):
            _core.compute_round_steps(left, leaves, none, rows, ones, ones, *rest)
    for voters in ([], [(0, 2, 1.0)], [(1, 1, 1.0)], [(0, 1, 1.0), (0, 1, 1.0)], [(0, 0, 1.0)]):
        rest = (1.0, voters, 0.0, 1.0, np.array([0.5]), left, None)
        with pytest.raises(ValueError, match="each output must belong to one goal"):
            _core.compute_round_steps(left, leaf, none, both, ones, ones, *rest)


# -- many trees ------------------------------------------------------------------------------------


@given(st.lists(trees(max_chain=1, sets=True), max_size=4), st.integers(0, 2**32 - 1), st.data())
def test_scores_of_all_trees_are_the_sum_over_single_trees(several, seed, data):
    random = np.random.default_rng(seed)
    values = [random.normal(size=(tree.n_nodes, 2)) for tree in several]
    saying = [tree.with_value(value) for tree, value in zip(several, values, strict=True)]
    together = Trees.joined(saying, 3, 2)
    n = data.draw(st.sampled_from([1, 7, 100]))
    X = random.integers(-3, 5, (n, 3)).astype(data.draw(st.sampled_from([np.float32, np.float64])))
    X[random.random(X.shape) < 0.2] = np.nan
    start = random.normal(size=(2, n))
    expected = start.copy()
    for tree, value in zip(several, values, strict=True):
        expected += value[tree.apply(X)].T
    np.testing.assert_array_equal(together.add(start, X, 2), expected)
    half = together.add(start, X, 1, 0, len(several) // 2)
    np.testing.assert_array_equal(together.add(half, X, 1, len(several) // 2), expected)
    base = together.value[together.root].sum(axis=0)
    sums = start + base[:, None] + together.compute_contributions(X, 1).sum(axis=2).T
    np.testing.assert_allclose(sums, expected, atol=1e-12)
    parts = [Trees.joined(part, 3, 2) for part in (saying[:1], saying[1:])]
    joined = Trees.joined(parts, 3, 2)
    for number, (tree, value) in enumerate(zip(several, values, strict=True)):
        for found in (together, joined):
            one = found.tree(number)
            np.testing.assert_array_equal(one.apply(X), tree.apply(X))
            np.testing.assert_array_equal(one.value, value)
            np.testing.assert_array_equal(one.chain, tree.chain)
    again = pickle.loads(pickle.dumps(joined))
    np.testing.assert_array_equal(again.add(start, X, 1), expected)


@pytest.mark.parametrize("missing_left", [False, True])
@pytest.mark.parametrize("unseen_left", [False, True])
@pytest.mark.parametrize("n", [3, 200])
def test_routing_many_rows_compares_category_sets_as_routing_one_does(n, unseen_left, missing_left):
    sets = [[0, 5, 63], [], [3, 64, 2**31 - 1]]
    tree = Tree(
        *([0, 0, 1, 0, 0, 0, 0], [0, 7.5, 0, 0, 0, 0, 0], [1, 3, 5, -1, -1, -1, -1], [1] * 7, 2),
        missing_left=[missing_left] * 3 + [False] * 4,
        unseen_left=[unseen_left, False, unseen_left] + [False] * 4,
        category_start=np.cumsum([0, *map(len, sets), 0, 0, 0, 0]),
        categories=np.concatenate(sets).astype(np.int32),
    )
    told = [
        -0.0,
        0,
        1,
        3,
        5,
        62,
        63,
        64,
        65,
        4.5,
        -1,
        -5,
        2**31 - 1,
        2.0**31,
        1e300,
        2.0**52,
        np.nan,
    ]
    X = np.random.default_rng(0).choice(told, (n, 2))
    leaf = [reference.apply(tree, row[None])[0] for row in X]
    np.testing.assert_array_equal(tree.apply(X), leaf)
    value = np.arange(7.0)[:, None]
    found = tree.with_value(value).add(np.zeros((1, n)), X, 1)
    np.testing.assert_array_equal(found[0], value[leaf, 0])


def slopes_of(loss, y, scores):
    return _core.compute_gradients(loss.name, loss.parameter, y.astype(float), scores)


def dispersion_of(loss, y, scores, weight=None):
    return _core.estimate_dispersion(loss.name, loss.parameter, y, scores, weight)


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (LogLoss(), "classes"),
        (LogLoss(4), "classes"),
        (SquaredLoss(), "numbers"),
        (PoissonLoss(), "positive"),
        (GammaLoss(), "positive"),
        (TweedieLoss(), "positive"),
        (TweedieLoss(power=1.1), "positive"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_gradients_are_derivatives(loss, kind):
    random = np.random.default_rng(0)
    n, k = 40, loss.n_outputs
    y = {
        "classes": random.integers(0, max(k, 2), n),
        "numbers": random.normal(size=n),
        "positive": random.gamma(2.0, size=n),
    }[kind]
    scores = random.normal(size=(k, n))
    gradient, hessian = slopes_of(loss, y, scores)
    if loss.name == "tweedie":  # in units of the mean information
        unit = np.exp((2 - loss.power) * scores).mean()
        gradient, hessian = gradient * unit, hessian * unit
    step = 1e-4
    for output in range(k):
        moved = [scores.copy(), scores.copy()]
        moved[0][output] += step
        moved[1][output] -= step
        up, down = (loss.compute_row_losses(y, one) for one in moved)
        np.testing.assert_allclose(gradient[output], (up - down) / (2 * step), atol=1e-6)
        second = (up - 2 * loss.compute_row_losses(y, scores) + down) / step**2
        factor = 4 / 3 if loss.n_outputs > 1 else 1.0
        np.testing.assert_allclose(hessian[output], factor * second, rtol=1e-3, atol=1e-5)


NAMES = ["classes", "squared_error", "quantile", "huber", "poisson", "gamma", "tweedie"]


@given(
    st.sampled_from(NAMES),
    st.integers(1, 40),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_losses_are_those_of_the_reference(name, n, n_outputs, quantile, weighted, seed):
    if name == "tweedie":
        quantile = 1.01 + 0.98 * quantile
    random = np.random.default_rng(seed)
    n_outputs = n_outputs if name == "classes" else 1
    scales = [0.0, 1.0, 30.0, 1e3] if name == "classes" else [0.0, 1.0, 3.0]
    y = random.integers(0, max(n_outputs, 2), n).astype(float)
    if name != "classes":
        y = random.gamma(1.0, size=n) + (0.1 if name == "gamma" else 0.0)
    scores = random.normal(size=(n_outputs, n)) * random.choice(scales, n)
    given = name, quantile, y, scores
    for one, other in zip(
        _core.compute_gradients(*given), reference.compute_gradients(*given), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(
        _core.compute_losses(*given), reference.compute_losses(*given), rtol=1e-12, atol=1e-12
    )
    weight = random.integers(1, 4, n).astype(float) if weighted else None
    expected = reference.compute_dispersion(*given, weight)
    assert _core.estimate_dispersion(*given, weight) == pytest.approx(
        expected, rel=1e-9, abs=1e-300
    )
    order = random.permutation(n)
    turned = np.ascontiguousarray(scores[:, order])
    for one, other in zip(
        _core.compute_gradients(*given),
        _core.compute_gradients(name, quantile, y[order], turned),
        strict=True,
    ):
        np.testing.assert_array_equal(one[:, order], other)
    turned_weight = None if weight is None else weight[order]
    assert _core.estimate_dispersion(*given, weight) == _core.estimate_dispersion(
        name, quantile, y[order], turned, turned_weight
    )


def test_invalid_arguments_of_losses_are_refused():
    y, scores = np.zeros(2), np.zeros((2, 2))
    for door in (
        _core.compute_gradients,
        _core.compute_losses,
        lambda *given: _core.estimate_dispersion(*given, None),
    ):
        for name, quantile, given_scores, message in (
            ("log", 0.5, scores, "no loss is log"),
            ("huber", 1.5, scores[:1], "no loss is huber of 1.5"),
            ("huber", np.nan, scores[:1], "no loss is huber of nan"),
            ("huber", 0.5, scores, "takes scores of one output"),
            ("classes", 0.5, scores[:0], "takes scores of one output"),
            ("classes", 0.5, np.zeros((2, 3)), "scores"),
            ("tweedie", 1.0, scores[:1], "no loss is tweedie of 1.0"),
            ("tweedie", 2.0, scores[:1], "no loss is tweedie of 2.0"),
            ("custom", 0.5, scores[:1], "no loss is custom"),
        ):
            with pytest.raises(ValueError, match=message):
                door(name, quantile, y, given_scores)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_parabolas_of_the_pinball_loss_lie_above_it(quantile):
    random = np.random.default_rng(0)
    y, scores = random.standard_cauchy(200), random.normal(size=(1, 200))
    loss = QuantileLoss(quantile=quantile)
    gradient, hessian = slopes_of(loss, y, scores)
    unit = 2 * np.abs(y - scores).mean()
    far = np.abs(y - scores[0]) > 0.1 * unit / 2
    for step in (-3.0, -0.1, 0.2, 2.0):
        parabola = (
            loss.compute_row_losses(y, scores) + (gradient[0] + hessian[0] * step / 2) * step / unit
        )
        assert (loss.compute_row_losses(y, scores + step)[far] <= parabola[far] + 1e-9).all()


def test_parabolas_of_the_huber_loss_lie_above_it():
    random = np.random.default_rng(0)
    y, scores = random.standard_cauchy(200), random.normal(size=(1, 200))
    loss = HuberLoss()
    gradient, hessian = slopes_of(loss, y, scores)
    bend = np.quantile(np.abs(y - scores), 0.9)

    def of(distance):
        near = np.minimum(np.abs(distance), bend)
        return near * (np.abs(distance) - near / 2)

    np.testing.assert_allclose(loss.compute_row_losses(y, scores), of(y - scores[0]))
    for step in (-3.0, -0.1, 0.2, 2.0):
        parabola = of(y - scores[0]) + (gradient[0] + hessian[0] * step / 2) * step
        assert (of(y - scores[0] - step) <= parabola + 1e-9).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (LogLoss(), "classes"),
        (LogLoss(3), "classes"),
        (SquaredLoss(), "numbers"),
        (QuantileLoss(quantile=0.3), "numbers"),
        (PoissonLoss(), "positive"),
        (GammaLoss(), "positive"),
        (TweedieLoss(), "positive"),
        (TweedieLoss(power=1.1), "positive"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_boosting_starts_from_the_best_constant(loss, kind, weighted):
    random = np.random.default_rng(0)
    n = 2001
    y = {
        "classes": random.integers(0, max(loss.n_outputs, 2), n),
        "numbers": random.normal(size=n),
        "positive": random.gamma(2.0, size=n),
    }[kind]
    weight = random.integers(1, 4, n).astype(float) if weighted else None

    def mean_loss(start):
        scores = np.repeat(start[:, None], n, axis=1)
        return np.average(loss.compute_row_losses(y, scores), weights=weight)

    start = loss.compute_start(y, weight)
    best = mean_loss(start)
    for shift in (-0.05, 0.05):
        moved = start.copy()
        moved[0] += shift
        assert best < mean_loss(moved)


def test_losses_are_divided_by_the_most_likely_scale():
    random = np.random.default_rng(0)
    y, scores = random.normal(size=300), random.normal(size=(1, 300))
    weight = random.integers(1, 4, 300).astype(float)
    distance = np.abs(y - scores[0])
    squared = dispersion_of(SquaredLoss(), y, scores, weight)
    assert squared == pytest.approx(np.average(distance**2, weights=weight))
    # Slopes of the pinball loss are in units of the mean distance.
    assert dispersion_of(QuantileLoss(), y, scores) == pytest.approx(distance.mean() ** 2)
    huber = HuberLoss()
    assert dispersion_of(huber, y, scores) == pytest.approx(
        2 * huber.compute_row_losses(y, scores).mean()
    )
    for loss in (LogLoss(), LogLoss(3), PoissonLoss(), GammaLoss()):
        assert dispersion_of(loss, np.ones(300), scores) == 1


def compute_weighted_quantile(y, share, weight):
    """The start score of the pinball loss, a number."""
    return QuantileLoss(quantile=share).compute_start(y, weight).item()


def test_a_weighted_quantile_is_that_of_copies():
    random = np.random.default_rng(0)
    y, weight = random.normal(size=50), random.integers(1, 4, 50)
    for share in (0.01, 0.3, 0.5, 0.99):
        expected = np.quantile(np.repeat(y, weight), share, method="inverted_cdf")
        assert compute_weighted_quantile(y, share, weight.astype(float)) == expected


@pytest.mark.parametrize("seed", choose_seeds(20))
def test_a_weighted_quantile_is_that_of_exact_sums(seed):
    random = np.random.default_rng(seed)
    y, weight = random.normal(size=200).round(1), random.random(200) ** 4 + 1e-9
    share = random.random()
    total, so_far = sum(map(Fraction, weight)), Fraction(0)
    for i in np.argsort(y):
        so_far += Fraction(weight[i])
        if so_far >= Fraction(share) * total:
            break
    assert compute_weighted_quantile(y, share, weight) == y[i]
    alike = np.full(200, 0.3)
    assert compute_weighted_quantile(y, share, alike) == compute_weighted_quantile(y, share, None)


# -- estimators ------------------------------------------------------------------------------------


def expected_failures(model):
    one_draw = "a row is one draw whatever it weighs: copies go to folds one by one"
    expected = {
        f"check_sample_weight_equivalence_on_{kind}_data": one_draw for kind in ("dense", "sparse")
    }
    if isinstance(model, BoostedTreesClassifier):
        no_scores = "it knows no scores beside a list of probabilities"
        expected["check_classifier_multioutput"] = no_scores
    return expected


@parametrize_with_checks(
    [BoostedTreesClassifier(max_iter=20), BoostedTreesRegressor(max_iter=20)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def weights_of(n):
    """Yield None, and fractional weights of very different size."""
    return None, np.random.default_rng(2).random(n) ** 8 + 1e-6


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_order_of_rows_and_threads_do_not_matter(n_classes):
    X, y = noisy()
    X[::7, 1] = np.nan
    y = y + (n_classes > 2) * np.digitize(X[:, 0], [-1, 0, 1])
    order = np.random.default_rng(1).permutation(len(y))
    for weight in weights_of(len(y)):
        model = BoostedTreesClassifier(**SHORT).fit(X, y, weight)
        turned = None if weight is None else weight[order]
        shuffled = BoostedTreesClassifier(**SHORT, n_jobs=2).fit(X[order], y[order], turned)
        np.testing.assert_array_equal(model.predict_proba(X), shuffled.predict_proba(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_rows_of_numbers_does_not_matter(loss):
    X, _ = noisy(200)
    y = np.exp(X[:, 0]).round(3)
    order = np.random.default_rng(1).permutation(len(y))
    for weight in weights_of(len(y)):
        model = BoostedTreesRegressor(loss, **SHORT).fit(X, y, weight)
        turned = None if weight is None else weight[order]
        shuffled = BoostedTreesRegressor(loss, **SHORT).fit(X[order], y[order], turned)
        np.testing.assert_array_equal(model.predict(X), shuffled.predict(X))


def test_quantiles_of_equal_values_do_not_depend_on_the_order_of_their_weights():
    y, weight = np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.2, 0.1, 0.7, 1.0])
    orders = [*map(list, permutations(range(4)))]
    assert len({compute_weighted_quantile(y[order], 0.5, weight[order]) for order in orders}) == 1


def test_a_warm_start_goes_on_where_a_fit_ended():
    X, y = noisy()
    whole = BoostedTreesClassifier(**SHORT).fit(X, y)
    model = BoostedTreesClassifier(max_iter=5, random_state=0, warm_start=True).fit(X, y)
    model.set_params(max_iter=12).fit(X, y)
    assert model.n_iter_ == 12
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    np.testing.assert_allclose(model.feature_importances_, whole.feature_importances_)
    with pytest.raises(ValueError, match="max_iter must be at least n_iter_=12"):
        model.set_params(max_iter=3).fit(X, y)


OTHERS = {
    "learning_rate": 0.2,
    "max_leaf_nodes": 7,
    "max_depth": 2,
    "min_samples_leaf": 9,
    "l2_regularization": 0.0,
    "max_features": 0.5,
    "max_thresholds": 7,
    "subsample": 0.5,
    "prunings": "none",
    "categorical_features": [0],
    "monotonic_cst": None,  # of as many features as there are
    "interaction_cst": [[0, 1], [2]],
    "random_state": 1,
    "class_weight": "balanced",
    "early_stopping": True,
    "validation_fraction": 0.2,
    "loss": "poisson",
    "quantile": 0.5,
    "power": 1.5,
}


@pytest.mark.parametrize("kind", [BoostedTreesClassifier, BoostedTreesRegressor])
def test_a_warm_start_refuses_parameters_that_the_fit_was_not_made_with(kind):
    X, y = noisy()
    slopes = np.zeros(X.shape[1], dtype=int)
    model = kind(max_iter=5, random_state=0, monotonic_cst=slopes, warm_start=True).fit(X, y)
    state, said = dict(model.__dict__), model.predict(X)
    for name in sorted(set(model.get_params()) & set(OTHERS)):
        before = state[name]
        value = np.eye(1, X.shape[1], dtype=int)[0] if name == "monotonic_cst" else OTHERS[name]
        expected = re.escape(f"{name} must be {before!r}, as in the fit to which ")
        with pytest.raises(ValueError, match=expected):
            model.set_params(**{name: value}, max_iter=9).fit(X, y)
        model.set_params(**{name: before}, max_iter=5)
        assert all(model.__dict__[key] is one for key, one in state.items())
        np.testing.assert_array_equal(model.predict(X), said)
    # What means the same, and what has no part in the model.
    model.set_params(n_iter_no_change=3, tol=0.0, scoring=None)
    model.set_params(max_iter=9, n_jobs=2, monotonic_cst=slopes.tolist()).fit(X, y)
    whole = kind(max_iter=9, random_state=0, monotonic_cst=slopes).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    model.set_params(warm_start=False, learning_rate=0.3).fit(X, y)


def test_a_warm_start_knows_groups_of_features_that_are_arrays():
    X = np.random.default_rng(0).normal(size=(60, 3))
    groups = [np.array([0, 1]), np.array([2])]
    model = BoostedTreesRegressor(max_iter=2, interaction_cst=groups, warm_start=True)
    model.fit(X, X[:, 0])
    same = [np.array([0, 1]), np.array([2])]
    assert model.set_params(max_iter=4, interaction_cst=same).fit(X, X[:, 0]).n_iter_ == 4
    with pytest.raises(ValueError, match=r"interaction_cst must be .*as in the fit"):
        model.set_params(interaction_cst=[np.array([0, 2]), np.array([1])]).fit(X, X[:, 0])


def test_a_warm_start_takes_rows_like_those_before():
    X, y = noisy()
    model = BoostedTreesClassifier(max_iter=5, random_state=0, warm_start=True).fit(X, y)
    said = model.predict_proba(X)
    model.set_params(max_iter=9)
    with pytest.raises(ValueError, match=f"X has {X.shape[1] - 1} features"):
        model.fit(X[:, 1:], y)
    for other in (y + 1, np.where(y == 1, "yes", "no"), y + (X[:, 0] > 1)):
        with pytest.raises(ValueError, match="class"):
            model.fit(X, other)
    np.testing.assert_array_equal(model.predict_proba(X), said)
    model.fit(X.astype(np.float32), y)
    assert model.n_iter_ == 9


def test_the_vote_keeps_noise_out():
    X, y = noisy(800)
    X_new, y_new = noisy(4000, seed=1)
    losses = {}
    for prunings in ("vote", "none"):
        model = BoostedTreesClassifier(max_iter=400, prunings=prunings, random_state=0).fit(X, y)
        losses[prunings] = log_loss(y_new, model.predict_proba(X_new))
    assert losses["vote"] < 0.95 * losses["none"]
    assert losses["vote"] < 0.55


@pytest.mark.parametrize(
    ("options", "drawn"), [({}, 8), ({"max_iter": 3}, 8), ({"early_stopping": True}, 7)]
)
def test_numbers_of_many_rows_may_be_split_at_all_thresholds_every_second_round(options, drawn):
    for n, thresholds in ((60, (6,)), (4000, (drawn, None))):
        X, y = noisy(n)
        settings = {"random_state": 0, "max_leaf_nodes": 4, **options}
        assert BoostedTreesClassifier(**settings).fit(X, y).thresholds_ == thresholds[:1]
        assert BoostedTreesRegressor(**settings).fit(X, y).thresholds_ == thresholds
        fast = BoostedTreesRegressor(quality="fast", **settings).fit(X, y)
        assert fast.thresholds_ == thresholds[:1]


def test_in_bag_rows_and_their_weights_are_random():
    random = np.random.default_rng(0)
    keys = random.integers(2**64, size=4000, dtype=np.uint64)
    drawn = [
        reference.draw_round_rows(reference.iterate_random_bits(key), keys, 0.7) for key in (1, 2)
    ]
    for grows, weight in drawn:
        # Exponential: mean and deviation 1, six deviations of what 2800 rows leave open.
        assert abs(weight[grows].mean() - 1) < 6 / np.sqrt(2800)
        assert abs(weight[grows].std() - 1) < 0.2
        assert grows.sum() == pytest.approx(2800, abs=6 * np.sqrt(4000 * 0.21))
        # Rows that weigh would weigh no less: what is drawn twice is drawn independently.
        assert abs(weight[~grows].mean() - 1) < 6 / np.sqrt(1200)
    assert abs(np.corrcoef(drawn[0][1], drawn[1][1])[0, 1]) < 6 / np.sqrt(4000)
    grows, weight = reference.draw_round_rows(reference.iterate_random_bits(1), keys, 1.0)
    assert grows.all()
    assert (weight == 1).all()


def a_run(
    loss,
    *,
    n=60,
    p=3,
    n_judging=0,
    weighted=False,
    beside=False,
    seed=0,
    thresholds=(2, None),
    **options,
):
    """Make a run before its first round on random rows with a categorical feature."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    X[random.random((n, p)) < 0.05] = np.nan
    X[:, -1] = random.integers(0, 4, n)
    y = random.integers(0, max(2, loss.n_outputs), n).astype(np.int32)
    if loss.core_name != "classes":
        y = random.gamma(1.0, size=n) + np.abs(np.nan_to_num(X[:, 0]))
    if loss.core_name == "classes" and isinstance(loss, MultiOutputLoss):
        n_classes = [max(2, one.n_outputs) for one in loss.components]
        y = np.column_stack([random.integers(0, k, n) for k in n_classes]).astype(np.int32)
    elif isinstance(loss, MultiOutputLoss) and loss.core_name != "quantile":
        y = np.column_stack([y**k + k for k in range(1, loss.n_outputs + 1)])
    weight = random.integers(1, 4, n).astype(float) if weighted else None
    given = {"feature_fractions": (0.5, 1.0), "subsample": 0.7, "votes": True, **options}
    settings = Settings(loss, learning_rate=0.3, l2_regularization=1.0, **given)
    category = np.arange(p) == p - 1
    slopes = np.append(1, np.zeros(p - 1)).astype(np.int8) if loss.n_outputs == 1 else None
    grower = BinnedGrower(
        Bins.from_table(X, category), max_leaves=6, min_samples_leaf=2, monotonic_cst=slopes
    )
    offset = random.normal(size=(loss.n_outputs, n)) if beside else None
    run, _ = start_run(settings, grower, DenseFeatures((X,)), y, weight, thresholds, seed, offset)
    if n_judging == 0:
        return run
    rows = random.permutation(n)
    return run.make_fold_run(Fold(rows[n_judging:], rows[:n_judging])).with_statistics()


RUNS = [
    (LogLoss(), {}),
    (LogLoss(), {"n_judging": 15, "weighted": True, "subsample": 1.0}),
    (LogLoss(3), {"n_judging": 15}),
    (LogLoss(4), {"weighted": True, "votes": False}),
    (SquaredLoss(), {"n_judging": 10, "thresholds": (None,)}),
    (SquaredLoss(), {"n": 3, "subsample": 0.01}),
    (QuantileLoss(quantile=0.3), {"n_judging": 10, "weighted": True}),
    (HuberLoss(), {"n_judging": 10, "weighted": True}),
    (PoissonLoss(), {"n_judging": 10}),
    (GammaLoss(), {"feature_fractions": (1.0,), "n_judging": 1}),
    (TweedieLoss(), {"n_judging": 10, "weighted": True}),
    (TweedieLoss(power=1.2), {"n_judging": 10, "beside": True}),
    (LogLoss(), {"n_judging": 15, "weighted": True, "beside": True}),
    (LogLoss(3), {"n_judging": 15, "beside": True}),
    (SquaredLoss(), {"n_judging": 10, "beside": True}),
    (PoissonLoss(), {"n_judging": 10, "weighted": True, "beside": True}),
    (MultiOutputLoss.combine([SquaredLoss()] * 3), {"n_judging": 10}),
    (MultiOutputLoss.combine([SquaredLoss()] * 2), {"weighted": True, "beside": True}),
    (
        MultiOutputLoss.combine([GammaLoss()] * 3),
        {"n_judging": 10, "weighted": True, "subsample": 1.0},
    ),
    (MultiOutputLoss.combine([TweedieLoss()] * 2), {"n_judging": 10, "votes": False}),
    (
        MultiOutputLoss.combine([QuantileLoss(quantile=q) for q in (0.9, 0.1, 0.5)]),
        {"n_judging": 10, "weighted": True},
    ),
    (MultiOutputLoss.combine([LogLoss()] * 2), {"n_judging": 10, "weighted": True}),
    (MultiOutputLoss.combine([LogLoss(3), LogLoss(), LogLoss(4)]), {"n_judging": 15}),
    (MultiOutputLoss.combine([LogLoss(), LogLoss(3)]), {"subsample": 1.0, "votes": False}),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("loss", "options"), RUNS)
def test_rounds_are_those_of_the_reference(loss, options, seed):
    # Columns of more than 32 values have coarser bins where few thresholds are asked for.
    run = a_run(loss, seed=seed, **{"n": 80, **options})
    scores, made, losses = reference.run_boosting_rounds(run, 3, 9, _core.compute_round_steps)
    advance([run], 3, 9)
    np.testing.assert_allclose(run.scores, scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.losses[0], losses, rtol=1e-9, atol=1e-9)
    grown = run.trees()
    assert len(grown) == len(made)
    for one, (tree, value, rows), begin in zip(grown, made, grown.root, strict=True):
        assert one.feature.tolist() == tree.feature.tolist()
        assert one.threshold.tolist() == tree.threshold.tolist()
        assert one.left.tolist() == tree.left.tolist()
        assert one.category_start.tolist() == tree.category_start.tolist()
        assert one.categories.tolist() == tree.categories.tolist()
        np.testing.assert_allclose(one.value, value, rtol=1e-9, atol=1e-9)
        assert run.in_bag_counts[0][begin : begin + one.n_nodes].tolist() == rows.tolist()


@pytest.mark.threads
@pytest.mark.parametrize(("loss", "options"), RUNS)
def test_many_rounds_and_many_runs_in_one_call_are_those_one_by_one(loss, options):
    kinds = [(2, None), (None,)]
    alone = [a_run(loss, seed=4, **options).copy_without_trees(thresholds=kind) for kind in kinds]
    for run in alone:
        for number in range(8):
            advance([run], number, number + 1)
    together = [
        a_run(loss, seed=4, **options).copy_without_trees(thresholds=kind) for kind in kinds
    ]
    threads = replace(together[0].grower, n_jobs=2)
    together = [replace(run, grower=threads) for run in together]
    advance(together, 0, 5)
    advance(together, 5, 8)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(np.concatenate(one.losses), np.concatenate(other.losses))
        first, second = one.trees(), other.trees()
        for name in ("feature", "threshold", "left", "missing_left", "categories", "value", "root"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("loss", [LogLoss(), LogLoss(3), SquaredLoss()])
def test_a_fold_depends_neither_on_the_order_of_rows_nor_on_the_unit_of_weights(loss):
    random = np.random.default_rng(0)
    n = 90
    X, judges, order = random.normal(size=(n, 3)), random.random(n) < 0.3, random.permutation(n)
    y = random.integers(0, max(2, loss.n_outputs), n).astype(np.int32)
    y = y if loss.name == "classes" else y + X[:, 0]
    weight = random.uniform(0.5, 3.0, n)
    settings = Settings(loss, 0.3, 1.0, (0.7, 1.0), 0.7, votes=True)

    def losses(rows, unit):
        grower = BinnedGrower(Bins.from_table(X[rows]), max_leaves=6)
        given = DenseFeatures((X[rows],)), y[rows], unit * weight[rows]
        run, _ = start_run(settings, grower, *given, (2, None), 0)
        sides = [np.flatnonzero(side) for side in (~judges[rows], judges[rows])]
        fold = run.make_fold_run(Fold(*sides)).with_statistics()
        advance([fold], 0, 6)
        return fold.losses[0]

    found = losses(np.arange(n), 1.0)
    np.testing.assert_array_equal(losses(order, 1.0), found)
    np.testing.assert_array_equal(losses(order, 1024.0), found)
    np.testing.assert_allclose(losses(np.arange(n), 3.7), found, rtol=1e-9)


def test_invalid_arguments_of_many_rounds_are_refused():
    run = a_run(LogLoss(), n_judging=5)
    runs = [run._get_core_arguments()]
    goal, ends = (0.5, 1.0, 0, 1, 0), (np.array([0.5]), np.array([1], np.int32))
    settings = ["classes", [goal], 0.1, 0.1, 1.0, 0.5, 0.7, *ends]
    rest = run.grower.gradient_options

    def call(one=None, other=None, first=0, last=1):
        given, setting = [list(runs[0])], list(settings)
        if one is not None:
            given[0][one[0]] = one[1]
        if other is not None:
            setting[other[0]] = other[1]
        rounds = *rest[:3], first, last, rest[3]
        return _core.run_rounds([tuple(given[0])], tuple(setting), UNWATCHED, *rounds)

    assert len(call()) == 1
    none, keys = np.zeros(0, np.int32), runs[0][4]
    for wrong, message in (
        ({"one": (2, runs[0][2][:, 1:])}, "y"),
        ({"one": (2, runs[0][2][:0])}, "y"),
        ({"one": (3, run.y[1:])}, "weight"),
        ({"one": (4, keys[:0])}, "keys must be those of rows"),
        ({"one": (4, np.tile(keys, 3))}, "keys must be those of rows"),
        ({"one": (5, none)}, "no number of thresholds"),
        ({"one": (7, run.scores[:, 1:])}, "scores"),
        ({"one": (7, run.scores[:0])}, "each output must belong to one goal"),
        ({"other": (1, [])}, "rounds have a goal"),
        ({"other": (1, [(0.5, 1.0, 1, 1, 0)])}, "each output must belong to one goal"),
        ({"other": (1, [(0.5, 1.0, 0, 0, 0)])}, "scores of one output"),
        ({"other": (1, [(0.5, 1.0, 0, 1, 1)])}, "targets are as many as goals"),
        ({"one": (8, np.zeros((2, 3)))}, "y"),
        ({"one": (8, np.zeros((0, 2)))}, "values"),
        ({"other": (0, "none")}, "no loss is none"),
        ({"other": (6, 0.0)}, "subsample must be above 0"),
        ({"other": (6, np.nan)}, "subsample must be above 0"),
        ({"other": (7, np.array([1.5]))}, "stop must lie between 0 and 1"),
        ({"other": (8, none)}, "numbers of features"),
        ({"other": (8, np.array([0], np.int32))}, "numbers of features"),
        ({"first": 2}, "rounds are numbered"),
        ({"first": -1}, "rounds are numbered"),
    ):
        with pytest.raises(ValueError, match=message):
            call(**wrong)


class Scripted:
    """A run of rounds whose losses are given in advance."""

    def __init__(self, of_round):
        self.of_round, self.looks, self.losses = of_round, [], []


def script(runs, first, last):
    for run in runs:
        assert first == (run.looks[-1] if run.looks else 0)
        run.looks.append(last)
        run.losses.append([run.of_round(last)])


def test_interactions_without_main_effects_are_found():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (2000, 8))
    y = bits[:, :4].sum(axis=1) % 2
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(2000)
        train, test = rows[:300], rows[300:]
        model = BoostedTreesClassifier(random_state=seed).fit(bits[train], y[train])
        assert model.score(bits[test], y[test]) > 0.9


def test_the_step_factor_keeps_the_learning_rate_small():
    largest = (2, 4, 8)
    for rate, factors in (
        (0.05, (2, 4, 8)),
        (0.1, (2, 4, 4)),
        (0.2, (2, 2, 2)),
        (0.26, (1, 1, 1)),
        (np.float64(1.7e308), (1, 1, 1)),
    ):
        assert tuple(choose_step_factor(rate, most) for most in largest) == factors


def test_the_rounds_with_the_smallest_loss_are_chosen():
    choose = partial(choose_rounds, advance=script)
    assert choose([Scripted(lambda n: 1 + 1 / n)], 1600) == 1600
    falling = Scripted(lambda n: abs(n - 400) / 1000 + 0.5)
    assert choose([falling], 1600) == 373
    several = [Scripted(falling.of_round), Scripted(lambda n: abs(n - 100) / 1000)]
    assert choose(several, 1600) in (93, 132, 187, 264, 373)
    assert several[0].looks == several[1].looks
    # A look without a smaller loss ends it, but for the first ones.
    rising = Scripted(lambda n: n)
    assert choose([rising], 1600) == 3
    assert rising.looks == [3, 4, 6, 8, 11, 16, 23, 33, 47]
    bump = Scripted(lambda n: 1 + (8 <= n < 30) / 10 - n / 10**4)
    assert choose([bump], 1600) == 1600
    assert choose([Scripted(lambda _: np.inf)], 5) == 1
    assert choose([], 5) == 1


def test_more_rounds_are_preferred_if_they_cost_little():
    def choose(of_round, **how):
        return choose_rounds([Scripted(of_round)], 1600, advance=script, **how)

    def rise(slope, level):
        return lambda n: level + slope * max(n - 8, 0) + (n < 8)

    for slope, n_rounds in ((0.0003, 33), (0.0006, 23), (0.003, 11), (0.02, 8)):
        for level in (1, -1):
            assert choose(rise(slope, level)) == 8
            assert choose(rise(slope, level), prefers_more=True) == n_rounds
    assert choose(lambda n: 1 + 1 / n, prefers_more=True) == 1600
    assert choose(lambda _: np.inf, prefers_more=True) == 1


@pytest.fixture
def searches(monkeypatch):
    """Arguments of searches for the number of rounds, each of which chooses 7."""
    found = []

    def choose(runs, most, limit, *_, **__):
        assert not limit.is_set
        found.append((runs, most))
        return 7

    monkeypatch.setattr("certree.ensembles.boosting.choose_rounds", choose)
    return found


@pytest.mark.parametrize(
    ("kind", "rate", "longest", "folds", "most"),
    [(BoostedTreesClassifier, 0.1, 2, 4, 1600), (BoostedTreesRegressor, 0.05, 8, 4, 2400)],
)
def test_cross_validation_of_rounds_takes_longer_steps(kind, rate, longest, folds, most, searches):
    X, y = noisy(300)
    for asked, longer in (("auto", longest), (rate, longest), (0.25, 2), (0.3, 1)):
        model = kind(learning_rate=asked, random_state=0).fit(X, y)
        rate_of_fit = rate if asked == "auto" else asked
        assert model.learning_rate_ == rate_of_fit
        assert (model.thresholds_, model.n_iter_) == ((6,), 7 * longer)
        runs, rounds = searches.pop()
        assert [run.settings.learning_rate for run in runs] == folds * [rate_of_fit * longer]
        if rate_of_fit == rate:
            assert rounds == most // longer


@pytest.mark.parametrize(
    ("kind", "thresholds", "most"),
    [(BoostedTreesClassifier, (6,), 1600), (BoostedTreesRegressor, (6, None), 1200)],
)
def test_few_rounds_of_folds_of_many_rows_become_the_least(kind, thresholds, most, searches):
    X, y = noisy(3000)
    settings = {"random_state": 0, "max_leaf_nodes": 4}
    model = kind(**settings).fit(X, y)
    assert (model.n_iter_, model.thresholds_) == (200, thresholds)
    runs, rounds = searches.pop()
    assert [run.thresholds for run in runs] == 2 * [thresholds]
    assert {run.settings.learning_rate for run in runs} == {0.4}
    assert rounds == most * model.learning_rate_ / 0.4
    kind(quality="best", **settings).fit(X[:, :2], y)
    assert searches.pop()[1] == kind._SCHEDULE.best_factor * rounds


def test_the_learning_rate_is_smaller_only_if_the_schedule_knows_the_rounds():
    X, y = noisy(60)
    for options in ({"max_iter": 3}, {"quality": "fast"}, {"early_stopping": True}):
        assert BoostedTreesRegressor(random_state=0, **options).fit(X, y).learning_rate_ == 0.1
    model = BoostedTreesRegressor(random_state=0).fit(X, y)
    assert model.learning_rate_ == 0.05
    same = BoostedTreesRegressor(learning_rate=0.05, max_iter=model.n_iter_, random_state=0)
    same.set_params(max_thresholds=6).fit(X, y)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


@pytest.mark.parametrize("schedule", [CLASS_SCHEDULE, NUMBER_SCHEDULE, RANKING_SCHEDULE])
def test_plans_have_no_jumps(schedule):
    for quality, factor in (("default", 1), ("best", schedule.best_factor)):
        plans = [schedule.plan(n, quality) for n in range(1, 40_000, 50)]
        for name in ("min_rounds", "max_rounds", "max_leaf_nodes"):
            values = np.array([getattr(plan, name) for plan in plans], dtype=float)
            assert (np.abs(np.diff(values)) <= 1 + 0.35 * values[:-1]).all()
        assert all(0 < plan.min_rounds <= plan.max_rounds for plan in plans)
        assert schedule.plan(0, quality).max_rounds == schedule.max_rounds[0] * factor
        assert schedule.plan(10**9, quality).max_rounds == schedule.max_rounds[-1] * factor
    for entry, n in enumerate((1000, 3000, 10_000, 30_000)):
        plan = schedule.plan(n, "default")
        assert plan.n_folds == schedule.n_folds[entry]
        assert plan.max_rounds == schedule.max_rounds[entry]
        assert plan.max_leaf_nodes == schedule.max_leaf_nodes[entry]
        assert schedule.plan(n - 1, "default").n_folds == schedule.n_folds[max(entry - 1, 0)]


@pytest.mark.parametrize(
    ("kind", "rounds"), [(BoostedTreesClassifier, 200), (BoostedTreesRegressor, 300)]
)
def test_quality_decides_what_is_not_given(kind, rounds):
    X, y = noisy(300)
    given = {"random_state": 0, "max_leaf_nodes": 8}
    fast, default, best = (kind(quality=q, **given).fit(X, y) for q in ("fast", "default", "best"))
    assert fast.n_iter_ == rounds
    assert fast.thresholds_ == default.thresholds_ == (6,)
    assert fast.max_leaf_nodes_ == best.max_leaf_nodes_ == 8
    members, first = (2, 0) if kind is BoostedTreesClassifier else (4, X.shape[1])
    for model, several in ((fast, 1), (default, 1), (best, members)):
        assert len(model.trees_) == first + several * model.n_iter_
    assert kind(quality="fast", learning_rate=0.05, **given).fit(X, y).n_iter_ == 2 * rounds
    assert kind(quality="fast", learning_rate=5e-324, **given).fit(X, y).n_iter_ == 20 * rounds
    assert kind(quality="fast", max_iter=7, **given).fit(X, y).n_iter_ == 7
    for n_outputs, most in ((3, rounds), (4, round(4 * rounds / 3)), (13, 4 * rounds)):
        several = np.arange(300) % n_outputs
        if kind is BoostedTreesRegressor:
            several = np.random.default_rng(0).normal(size=(300, n_outputs))
        assert kind(quality="fast", max_leaf_nodes=2).fit(X, several).n_iter_ == most
    unlimited = kind(max_leaf_nodes="auto", max_iter=1).fit(X, y)
    assert unlimited.max_leaf_nodes_ == (31 if kind is BoostedTreesClassifier else 16)
    assert clone(unlimited).get_params()["max_leaf_nodes"] == "auto"
    for quality in ("good", None):
        with pytest.raises(ValueError, match="The 'quality' parameter"):
            kind(quality=quality).fit(X, y)
    with pytest.raises(ValueError, match='quality must be "fast" or "default" with warm_start'):
        kind(quality="best", warm_start=True).fit(X, y)


@pytest.mark.parametrize("kind", [BoostedTreesClassifier, BoostedTreesRegressor])
def test_the_best_fit_is_the_average_of_fits_of_other_seeds(kind, tmp_path):
    X, y = noisy(200)
    best = kind(quality="best", max_iter=5, max_leaf_nodes=4, random_state=0).fit(X, y)
    members = best._count_members()

    def line(run, n_steps, member):
        # The first fit starts from the mean, the second one from the whole line, and so on.
        trees, rows = grow_linear_start(run, n_steps)
        return trees.with_value(2 * (member % 2) * trees.value), rows

    several = []
    for member in range(members):
        one = kind(max_iter=5, max_leaf_nodes=4, random_state=0)
        with pytest.MonkeyPatch.context() as patched:
            seed = best._seed + member
            patched.setattr(
                "certree.ensembles.boosting.grow_linear_start", partial(line, member=member)
            )
            patched.setattr(
                "certree.ensembles.boosting.check_random_state",
                lambda _, seed=seed: SimpleNamespace(randint=lambda _: seed),
            )
            several.append(one.fit(X, y))
    scores = np.mean([one._compute_scores(X) for one in several], axis=0)
    np.testing.assert_allclose(best._compute_scores(X), scores, atol=1e-12)
    stages = [*zip(*(one._iterate_scores(X) for one in several), strict=True)]
    for found, expected in zip(best._iterate_scores(X), stages, strict=True):
        np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-12)
    worth = np.sum([one._importances for one in several], axis=0)
    np.testing.assert_allclose(best.feature_importances_, worth / worth.sum())
    save(best, tmp_path / "best.certree")
    loaded = load(tmp_path / "best.certree")
    np.testing.assert_array_equal(loaded.predict(X), best.predict(X))
    assert loaded.max_leaf_nodes_ == 4
    assert len([*loaded.staged_predict(X)]) == 5


def test_thresholds_are_chosen_once():
    X, y = noisy(300)
    model = BoostedTreesClassifier(max_iter=4, warm_start=True, random_state=0)
    first = model.fit(X, y).thresholds_
    assert first == (6,)
    assert model.set_params(max_iter="auto").fit(X, y).thresholds_ == first
    given = BoostedTreesClassifier(max_thresholds=3, max_iter=4, random_state=0)
    assert given.fit(X, y).thresholds_ == (3,)
    for thresholds in (0, "few", 1.5):
        with pytest.raises(ValueError, match="The 'max_thresholds' parameter"):
            BoostedTreesClassifier(max_thresholds=thresholds).fit(X, y)


def test_stages_end_in_the_prediction():
    X, y = load_iris(return_X_y=True)
    model = BoostedTreesClassifier(**SHORT).fit(X, y, X_val=X[::3], y_val=y[::3])
    stages = [*model.staged_predict_proba(X)]
    assert len(stages) == model.n_iter_ == 12
    np.testing.assert_array_equal(stages[-1], model.predict_proba(X))
    np.testing.assert_array_equal([*model.staged_predict(X)][-1], model.predict(X))
    losses = [-log_loss(y[::3], shares[::3]) for shares in stages]
    np.testing.assert_allclose(model.validation_score_[1:], losses)
    np.testing.assert_allclose(stages[-1].sum(axis=1), 1)


@pytest.mark.parametrize("k", [2, 3])
def test_contributions_sum_to_the_scores(k):
    X, y = make_classification(300, 6, n_informative=4, n_classes=k, random_state=0)
    model = BoostedTreesClassifier(**SHORT).fit(X, y)
    explanation = model.explain(X)
    scores = model.decision_function(X)
    assert explanation.contributions.shape == (300, 1 if k == 2 else 3, 6)
    assert explanation.scale == "raw score"
    np.testing.assert_allclose(explanation.prediction, scores.reshape(300, -1), atol=1e-12)
    if k == 2:
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(scores))


def test_importances_name_the_columns_that_matter():
    X, y = noisy(1000)
    importances = BoostedTreesClassifier(max_iter=50, random_state=0).fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[3:].sum() < 0.1


def test_monotonic_constraints_hold():
    random = np.random.default_rng(0)
    X = random.uniform(size=(400, 2))
    y = X[:, 0] + 0.3 * random.normal(size=400)
    model = BoostedTreesRegressor(max_iter=60, monotonic_cst=[1, 0], random_state=0).fit(X, y)
    grid = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.5)])
    assert (np.diff(model.predict(grid)) >= -1e-12).all()
    free = BoostedTreesRegressor(max_iter=60, random_state=0).fit(X, y)
    assert (np.diff(free.predict(grid)) < -1e-12).any()


def test_interaction_constraints_hold():
    X, y = noisy(600)
    model = BoostedTreesClassifier(
        max_iter=30, interaction_cst=[[0], [1], [2, 3, 4]], random_state=0
    ).fit(X, y)
    for number in range(30):
        tree = model.trees_.tree(number)
        for leaf in np.flatnonzero(tree.is_leaf):
            above = {int(tree.feature[v]) for v in reference.find_path(tree, leaf)[:-1]}
            assert above <= {0} or above <= {1} or above <= {2, 3, 4}


def features_together(model):
    """Return the sets of features that are used on the path to each leaf."""
    for number in range(len(model.trees_)):
        tree = model.trees_.tree(number)
        for leaf in np.flatnonzero(tree.is_leaf):
            yield {int(tree.feature[v]) for v in reference.find_path(tree, leaf)[:-1]}


@pytest.mark.parametrize(("given_as", "most"), [("pairwise", 2), ("no_interactions", 1)])
def test_interaction_constraints_may_be_words(given_as, most):
    X, y = noisy(600)
    model = BoostedTreesClassifier(max_iter=30, interaction_cst=given_as, random_state=0).fit(X, y)
    together = [len(some) for some in features_together(model)]
    assert max(together) == most
    groups = [*combinations(range(5), most)]
    listed = clone(model).set_params(interaction_cst=groups).fit(X, y)
    assert np.array_equal(model.predict_proba(X), listed.predict_proba(X))
    one = clone(model).fit(X[:, :1], y)
    assert {len(some) for some in features_together(one)} <= {0, 1}


def test_interaction_constraints_may_name_features():
    X, y = noisy(400)
    named = pd.DataFrame(X, columns=[*"abcde"])
    by_name = BoostedTreesClassifier(interaction_cst=[["a", "b"], ["c", 3]], **SHORT).fit(named, y)
    by_number = BoostedTreesClassifier(interaction_cst=[[0, 1], [2, 3]], **SHORT).fit(X, y)
    assert np.array_equal(by_name.predict_proba(named), by_number.predict_proba(X))
    with pytest.raises(ValueError, match=r"interaction_cst must hold names .* got 'f'"):
        clone(by_name).set_params(interaction_cst=[["f"]]).fit(named, y)
    with pytest.raises(ValueError, match=r"interaction_cst must hold names .* got 'a'"):
        clone(by_name).fit(X, y)
    with pytest.raises(ValueError, match="interaction_cst"):
        clone(by_name).set_params(interaction_cst="alone").fit(X, y)


@pytest.mark.parametrize(
    ("given_as", "share"),
    [(2, 0.4), (np.int64(1), 0.01), (99, 1.0), ("sqrt", 0.4), ("log2", 0.4), (None, 1.0)],
)
def test_features_of_a_round_are_counted_as_in_scikit_learn(given_as, share):
    X, y = noisy(300)
    said = [
        BoostedTreesClassifier(max_features=one, **SHORT).fit(X, y).predict_proba(X)
        for one in (given_as, share)
    ]
    assert np.array_equal(*said)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_rounds_are_chosen_by_whole_groups(early_stopping):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(120), 5)
    X = rng.normal(size=(120, 4))[groups] + 1e-3 * rng.normal(size=(600, 4))
    y = (X[:, 0] + 2 * rng.normal(size=120)[groups] > 0).astype(int)
    model = BoostedTreesClassifier(early_stopping=early_stopping, random_state=0)
    loose, whole = clone(model).fit(X, y), clone(model).fit(X, y, groups=groups)
    assert whole.n_iter_ < loose.n_iter_ / 2  # rows of a group know each other
    new = rng.normal(size=(2000, 4))
    truth = (new[:, 0] + 2 * rng.normal(size=2000) > 0).astype(int)
    losses = [log_loss(truth, one.predict_proba(new)) for one in (loose, whole)]
    assert losses[1] < losses[0]
    with pytest.raises(ValueError, match=r"groups must have shape \(600,\)"):
        clone(model).fit(X, y, groups=groups[:5])


def test_few_rows_choose_their_rounds():
    X, _ = noisy(150)
    noise = [np.random.default_rng(seed).integers(0, 2, 150) for seed in range(5)]
    rounds = [BoostedTreesClassifier(random_state=0).fit(X, y).n_iter_ for y in noise]
    assert np.median(rounds) <= 24
    assert BoostedTreesClassifier(random_state=0).fit(X, X[:, 0] > 0).n_iter_ >= 24


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows_are_enough(rows):
    X, y = load_diabetes(return_X_y=True)
    model = BoostedTreesRegressor(random_state=0).fit(X[:rows], y[:rows])
    assert np.isfinite(model.predict(X)).all()


def test_one_class_is_certain():
    X, _ = noisy(30)
    model = BoostedTreesClassifier(**SHORT).fit(X, np.full(30, "a"))
    assert (model.predict(X) == "a").all()
    assert model.predict_proba(X).tolist() == [[1.0]] * 30


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_target_is_predicted(loss):
    X, _ = noisy(60)
    model = BoostedTreesRegressor(loss, **SHORT).fit(X, np.full(60, 2.5))
    np.testing.assert_allclose(model.predict(X), 2.5)


def test_all_rows_may_grow_the_trees():
    X, y = noisy(200)
    model = BoostedTreesClassifier(subsample=1.0, **SHORT).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < 0.69


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"loss": "poisson"}, [1.0, -1.0], "y must be >= 0 and have a positive"),
        ({"loss": "poisson"}, [0.0, 0.0], "have a positive value"),
        ({"loss": "gamma"}, [1.0, 0.0], "y must be > 0 with"),
        ({"loss": "tweedie"}, [1.0, -1.0], 'positive value with loss="tweedie"'),
        ({"loss": "tweedie", "power": 2.0}, [1.0, 1.0], "power"),
        ({"power": 1.5}, [1.0, 1.0], 'power must be None unless loss="tweedie"'),
        ({}, [1e200, 0.0], "y must have a largest absolute value between 1e-100"),
        ({}, [1e-200, 0.0], "y must have a largest absolute value between 1e-100"),
        ({"quantile": 0.3}, [1.0, 2.0], "quantile.*loss"),
        ({"learning_rate": 0}, [1.0, 2.0], "learning_rate"),
        ({"max_iter": 0}, [1.0, 2.0], "max_iter"),
        ({"loss": "square"}, [1.0, 2.0], "loss"),
        ({"interaction_cst": [[5]]}, [1.0, 2.0], "interaction_cst must consist of integer indices"),
        ({"interaction_cst": [0, 1]}, [1.0, 2.0], "interaction_cst must be .* tuples or lists"),
    ],
)
def test_invalid_parameters_are_refused(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        BoostedTreesRegressor(**parameters).fit([[0.0], [1.0]], y)


def test_an_evaluation_set_has_rows_and_targets():
    X, y = noisy(50)
    model = BoostedTreesClassifier(**SHORT)
    with pytest.raises(ValueError, match="X_val and y_val"):
        model.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="y_val"):
        model.fit(X, y, X_val=X, y_val=y + 5)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_validation_rows_of_a_pipeline_are_refused_with_how_to_pass_them():
    X = pd.DataFrame({"town": ["u", "v", "w"] * 20, "wage": np.arange(60.0)})
    y = np.arange(60) % 2
    steps = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    name = "boostedtreesclassifier__"
    pipeline = make_pipeline(steps, BoostedTreesClassifier(**SHORT))
    message = (
        rf"X_val must hold rows .*'town' must hold numbers.* transformed as {name}X_val, or use"
    )
    with pytest.raises(ValueError, match=message):
        pipeline.fit(X, y, **{f"{name}X_val": X, f"{name}y_val": y})
    scaled = make_pipeline(StandardScaler(), BoostedTreesClassifier(**SHORT))
    values = {f"{name}X_val": X[["wage"]], f"{name}y_val": y}
    with pytest.warns(UserWarning, match=f"X_val has names .* {name}X_val") as found:
        scaled.fit(X[["wage"]], y, **values)
    assert len(found) == 1
    values[f"{name}X_val"] = StandardScaler().fit_transform(X[["wage"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled.fit(X[["wage"]], y, **values)


@pytest.mark.parametrize(
    "estimator", [BoostedTreesClassifier, CertifiedBoostedTreesClassifier], ids=lambda c: c.__name__
)
def test_too_few_rows_to_hold_out_name_a_parameter_that_every_model_has(estimator):
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    model = estimator(early_stopping=True, validation_fraction=1, **SHORT)
    with pytest.raises(ValueError, match=r"change validation_fraction, or use .*=None") as found:
        model.fit(X, y)
    assert "X_val" not in str(found.value)
    model.set_params(validation_fraction=None).fit(X, y)


def test_a_model_is_cloned_and_pickled():
    X, y = load_breast_cancer(return_X_y=True)
    model = BoostedTreesClassifier(**SHORT).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("target", ["two", "three", "text", "numbers", "log"])
def test_a_model_file_predicts_what_was_saved(target, tmp_path):
    X, y = noisy(300)
    X[::9, 2] = np.nan
    model = BoostedTreesClassifier(**SHORT)
    if target == "three":
        y = y + (X[:, 0] > 1)
    elif target == "text":
        y = np.where(y == 1, "yes", "no")
    elif target == "numbers":
        model, y = BoostedTreesRegressor("huber", monotonic_cst=[1, 0, 0, 0, 0], **SHORT), X[:, 0]
    elif target == "log":
        model, y = BoostedTreesRegressor("gamma", **SHORT), np.exp(X[:, 0])
    model.fit(X, y)
    save(model, tmp_path / "model.certree")
    again = load(tmp_path / "model.certree")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.explain(X).contributions, model.explain(X).contributions)
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    more = clone(model).set_params(max_iter=20).fit(X, y)
    again.set_params(warm_start=True, max_iter=20).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), more.predict(X))


WITH_SET = {"category_start": [0, 2, 2, 2], "categories": [1, 2]}
SHARING = {
    "feature": [0] * 5,
    "threshold": [0.0] * 5,
    "left": [1, 3, -1, -1, -1],
    "missing_left": np.zeros(5, dtype=bool),
    "category_start": [0] * 6,
    "value": np.zeros((5, 1)),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": [1, -1, 1]}, "left must be -1 or a node after its parent"),
        ({"left": [2, -1, -1]}, "left must be -1 or a node after its parent"),
        ({"feature": [3, 0, 0]}, r"feature must lie in 0 \.\. 2"),
        ({"root": [1]}, "root must ascend from 0"),
        ({"root": [0, 0]}, "with at least one node in every tree"),
        ({"root": []}, "with at least one node in every tree"),
        ({"threshold": [np.nan, 0.0, 0.0]}, "threshold must be finite"),
        ({"threshold": [np.inf, 0.0, 0.0]}, "threshold must be finite"),
        ({"value": [[np.inf], [0.0], [0.0]]}, "value must be finite"),
        ({"value": [[0.0], [0.0]]}, "value must have shape"),
        ({"category_start": [0, 1, 0, 0]}, "category_start must ascend"),
        ({"left": [-1, -1, -1]}, "exactly one parent"),
        ({"missing_both": [True, True, False]}, "missing_both must be False at leaves"),
        ({**WITH_SET, "categories": [3, 2]}, "distinct and ascending"),
        ({**WITH_SET, "categories": [2, 2]}, "distinct and ascending"),
        ({**WITH_SET, "categories": [-1, 2]}, "distinct and ascending"),
        (
            {**WITH_SET, "category_start": [0, 1, 2, 2]},
            "category_start must give leaves no categories",
        ),
        ({**SHARING, "left": [1, 3, 3, -1, -1]}, "exactly one parent"),
        ({**SHARING, "left": [1, 2, -1, -1, -1]}, "exactly one parent"),
    ],
)
def test_columns_that_are_no_trees_are_refused(changes, message):
    plain = {
        "feature": [2, 0, 0],
        "threshold": [0.5, 0.0, 0.0],
        "left": [1, -1, -1],
        "chain": None,
        "missing_left": np.zeros(3, dtype=bool),
        "category_start": [0, 0, 0, 0],
        "categories": np.zeros(0, dtype=np.int32),
        "root": [0],
        "value": [[0.0], [-1.0], [1.0]],
        "n_features": 3,
    }
    assert Trees(**plain).add(np.zeros((1, 1)), np.ones((1, 3)), 1).tolist() == [[1.0]]
    assert len(Trees(**(plain | WITH_SET))) == len(Trees(**(plain | SHARING))) == 1
    with pytest.raises(ValueError, match=message):
        Trees(**(plain | changes))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", [BoostedTreesClassifier, BoostedTreesRegressor])
def test_codes_in_row_order_give_the_same_trees(kind, n_jobs, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 70))
    y = (X[:, 0] * X[:, 40] + X[:, 69] > 0).astype(int)
    fitted = []
    for most in (10**9, 0):
        monkeypatch.setattr("certree.grow.bins.CACHE", most)
        model = kind(
            max_iter=6, max_leaf_nodes=31, max_thresholds=None, n_jobs=n_jobs, random_state=0
        )
        fitted.append(model.fit(X, y).trees_)
    assert fitted[0].value.tobytes() == fitted[1].value.tobytes()
    assert fitted[0].feature.tobytes() == fitted[1].feature.tobytes()
