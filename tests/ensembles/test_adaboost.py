"""AdaBoost: its identities, its bound in every round, edge cases, and scikit-learn for comparison."""

import pickle
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from certree import AdaBoostTreeClassifier, load, save
from certree.ensembles.adaboost_rounds import compute_vote_scores, run_adaboost
from certree.ensembles.weak_learners import WeakTreeFitter
from model_files import rewrite

STUMP = DecisionTreeClassifier(max_depth=1)


def noisy(seed, n=120, p=4, k=2):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    score = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, k) / k))


def rounds_of(X, y, k=2, n_estimators=25, learning_rate=1.0, weight=None, max_depth=1):
    weight = np.ones(len(y)) if weight is None else weight
    teach = WeakTreeFitter.from_rows(X, y.astype(np.int32), k, max_depth)
    return run_adaboost(teach, y, weight / weight.sum(), k, n_estimators, learning_rate)


# -- the theorem -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_identities_and_the_bound_hold_in_every_round(weighted):
    for seed in range(60):
        X, y = noisy(seed)
        weight = (
            np.random.default_rng(seed).gamma(1.0, size=len(y)) if weighted else np.ones(len(y))
        )
        made, first = rounds_of(X, y, weight=weight), weight / weight.sum()
        eps, z, alpha, signs = made.errors, made.normalizers, made.weights, 2 * y - 1
        assert len(made.learners) == 25
        np.testing.assert_allclose(z, 2 * np.sqrt(eps * (1 - eps)), rtol=1e-12)
        np.testing.assert_allclose(z, eps * np.exp(alpha) + (1 - eps) * np.exp(-alpha), rtol=1e-12)
        np.testing.assert_allclose(z, np.sqrt(1 - 4 * (0.5 - eps) ** 2), rtol=1e-12)
        said = np.array([2 * one.predict(X) - 1 for one in made.learners])
        scores = np.cumsum(alpha[:, None] * said, axis=0)
        identity = first * np.exp(-signs * scores[-1]) / z.prod()
        np.testing.assert_allclose(made.distribution, identity, rtol=1e-9)
        bounds = np.cumprod(z)
        lost = ((signs * scores <= 0) * first).sum(axis=1)
        loss = (np.exp(-signs * scores) * first).sum(axis=1)
        np.testing.assert_allclose(loss, bounds, rtol=1e-9)
        assert (made.training_errors <= lost + 1e-12).all()
        assert (lost <= bounds).all()
        assert (bounds <= np.exp(-2 * np.cumsum((0.5 - eps) ** 2)) * (1 + 1e-12)).all()


@pytest.mark.parametrize("learning_rate", [0.1, 0.5])
def test_a_smaller_step_keeps_the_bound(learning_rate):
    for seed in range(20):
        X, y = noisy(seed)
        made, whole = (rounds_of(X, y, learning_rate=rate) for rate in (learning_rate, 1.0))
        eps = made.errors
        assert (made.training_errors <= np.cumprod(made.normalizers)).all()
        assert (made.normalizers >= 2 * np.sqrt(eps * (1 - eps))).all()
        assert (made.normalizers < 1).all()
        assert made.normalizers[0] > whole.normalizers[0]


@pytest.mark.parametrize("k", [3, 4, 7])
@pytest.mark.parametrize("max_depth", [1, 4])
def test_the_bound_holds_for_more_classes(k, max_depth):
    for seed in range(20):
        X, y = noisy(seed, n=200, k=k)
        made = rounds_of(X, y, k, max_depth=max_depth)
        eps, alpha, z = made.errors, made.weights, made.normalizers
        np.testing.assert_allclose(z, k * np.sqrt(eps * (1 - eps) / (k - 1)), rtol=1e-9)
        np.testing.assert_array_equal(z < 1, (eps < 1 / k) | (eps > 1 - 1 / k))
        said = np.array([one.predict(X) for one in made.learners])
        balance = (np.where(said == y, 1, -1) * alpha[:, None]).sum(axis=0)
        identity = np.exp(-balance) / len(y) / z.prod()
        np.testing.assert_allclose(made.distribution, identity, rtol=1e-8)
        assert (made.training_errors <= np.cumprod(z)).all()


def test_the_bound_is_near_where_it_can_be():
    # Every row is missed by one of three learners: the first vote of all three is right everywhere.
    X = np.eye(3)[np.repeat(np.arange(3), 20)]
    y = np.random.default_rng(0).integers(0, 2, 60)
    seen = iter([np.where(X[:, j] == 1, 1 - y, y) for j in range(3)])
    made = run_adaboost(lambda _: (None, next(seen)), y, np.full(60, 1 / 60), 2, 3, 1.0)
    np.testing.assert_allclose(made.errors, [1 / 3, 1 / 4, 1 / 6])
    assert made.training_errors.tolist() == pytest.approx([1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(made.normalizers.prod(), np.sqrt(8 / 9 * 3 / 4 * 5 / 9))


@given(st.integers(0, 2**32 - 1), st.integers(3, 5), st.integers(3, 12), st.booleans())
def test_rounds_of_more_classes_are_those_of_the_twin(seed, k, n, weighted):
    random = np.random.default_rng(seed)
    y = random.integers(0, k, n)
    says = np.where(random.random((6, n)) < 0.4, random.integers(0, k, (6, n)), y)
    start = random.integers(1, 9, n) + random.random(n) if weighted else np.ones(n)
    twin = reference.run_adaboost_of_classes(says.tolist(), y.tolist(), start.tolist(), k)
    learners = iter(says)
    made = run_adaboost(lambda _: (None, next(learners)), y, start / start.sum(), k, 6, 1.0)
    bound = Decimal(1)
    for number, (alpha, eps, z, _, wrong, gap) in enumerate(twin):
        if eps > 1 - 1 / Decimal(k) - Decimal("1e-11"):
            break  # the rounding decides whether the learner is dropped
        assert made.weights[number] == pytest.approx(float(alpha), rel=1e-7)
        assert made.errors[number] == pytest.approx(float(eps), rel=1e-9)
        assert made.normalizers[number] == pytest.approx(float(z), rel=1e-9)
        bound *= z
        assert wrong <= bound
        if gap > Decimal("1e-9"):
            assert made.training_errors[number] == pytest.approx(float(wrong), abs=1e-12)
            assert made.training_errors[number] <= float(bound) + 1e-12


@given(st.integers(0, 2**32 - 1), st.integers(2, 10), st.integers(2, 7), st.booleans())
def test_rounds_are_those_of_the_twin(seed, n, n_learners, weighted):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    says = np.where(random.random((n_learners, n)) < 0.3, 1 - y, y)
    start = random.integers(1, 9, n) + random.random(n) if weighted else np.ones(n)
    twin = reference.run_adaboost((2 * says - 1).tolist(), (2 * y - 1).tolist(), start.tolist(), 6)
    # The twin also says which learner is best: errors that differ by rounding only are ties.
    order = iter([one[0] for one in twin])

    def teach(distribution):
        errors = (distribution * (says != y)).sum(axis=1)
        best = next(order, int(errors.argmin()))
        assert errors[best] <= errors.min() + 1e-12
        return best, says[best]

    made = run_adaboost(teach, y, start / start.sum(), 2, 6, 1.0)
    for number, (learner, alpha, eps, z, _, wrong) in enumerate(twin):
        if eps > 0.5 - 1e-11:
            break  # no better than chance but for rounding
        assert made.learners[number] == learner
        assert made.weights[number] == pytest.approx(float(alpha), rel=1e-6, abs=1e-9)
        assert made.errors[number] == pytest.approx(float(eps))
        assert made.normalizers[number] == pytest.approx(float(z))
        if float(alpha) > 1e-6:
            assert made.training_errors[number] == pytest.approx(float(wrong), abs=1e-9) or ties(
                says, twin[: number + 1]
            )
    if twin and len(twin) == len(made.learners):
        np.testing.assert_allclose(made.distribution, [float(w) for w in twin[-1][4]], atol=1e-9)


def ties(says, rounds):
    """Whether the vote about some row is a tie but for rounding."""
    votes = sum(float(one[1]) * (2 * says[one[0]] - 1) for one in rounds)
    return bool((np.abs(votes) < 1e-9).any())


# -- scikit-learn's --------------------------------------------------------------------------------


class BinnedStump(ClassifierMixin, BaseEstimator):
    """The trees that AdaBoostTreeClassifier grows by itself, as scikit-learn's wants them."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = np.full(len(y), 1 / len(y)) if sample_weight is None else sample_weight
        teach = WeakTreeFitter.from_rows(X, codes.astype(np.int32), len(self.classes_), 1)
        self.tree_, _ = teach(weight)
        return self

    def predict(self, X):
        return self.classes_[self.tree_.predict(np.asarray(X, dtype=np.float64))]


@pytest.mark.parametrize("table", [load_breast_cancer, load_iris, load_wine, load_digits])
@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
@pytest.mark.parametrize("own", [True, False])
def test_it_is_scikit_learns_where_that_is_defined(table, learning_rate, own):
    X, y = table(return_X_y=True)
    settings = {"n_estimators": 12, "learning_rate": learning_rate, "random_state": 3}
    learner = BinnedStump() if own else STUMP
    theirs = AdaBoostClassifier(learner, **settings).fit(X, y)
    for ours in (learner, None) if own else (learner,):
        model = AdaBoostTreeClassifier(ours, **settings).fit(X, y)
        assert len(model.estimators_) == 12
        np.testing.assert_allclose(2 * model.estimator_weights_, theirs.estimator_weights_)
        np.testing.assert_allclose(model.estimator_errors_, theirs.estimator_errors_)
        np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
        for one, other in zip(model.staged_predict(X), theirs.staged_predict(X), strict=True):
            np.testing.assert_array_equal(one, other)
        scores, weights = model.decision_function(X), model.estimator_weights_
        k = len(model.classes_)  # theirs subtracts the votes for the others
        scores = 2 * scores if k == 2 else (k * scores - weights.sum()) / (k - 1)
        np.testing.assert_allclose(scores / weights.sum(), theirs.decision_function(X), atol=1e-9)
    if not own:
        np.testing.assert_allclose(model.feature_importances_, theirs.feature_importances_)


@parametrize_with_checks([AdaBoostTreeClassifier(n_estimators=5)])
def test_scikit_learns_contract(estimator, check):
    check(estimator)


# -- edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [None, STUMP])
@pytest.mark.parametrize("k", [2, 3])
def test_a_learner_without_an_error_decides_alone(learner, k):
    X = np.arange(30.0)[:, None]
    y = (X[:, 0] > 9).astype(int) + (k == 3) * (X[:, 0] > 19)
    model = AdaBoostTreeClassifier(learner, max_depth=2, random_state=0)
    if k == 3 and learner is not None:
        model.set_params(estimator=DecisionTreeClassifier(max_depth=2))
    model.fit(X, y)
    assert model.estimator_weights_.tolist() == [np.inf]
    assert model.error_bounds_.tolist() == model.training_errors_.tolist() == [0.0]
    assert (model.predict(X) == y).all()
    np.testing.assert_allclose(model.predict_proba(X).max(axis=1), 31 / (30 + k))
    assert (model.margins(X, y) == 1).all()
    assert (model.margins(X, (y + 1) % k) == -1).all()
    assert model.feature_importances_.tolist() == [1.0]


def test_a_later_learner_without_an_error_takes_over():
    y = np.array([0, 0, 1, 1, 1])
    seen = iter([np.array([1, 0, 1, 1, 1]), y])
    made = run_adaboost(lambda _: (None, next(seen)), y, np.full(5, 0.2), 2, 9, 1.0)
    assert made.weights[1] == np.inf
    assert made.normalizers[1] == made.training_errors[1] == 0
    X, y = noisy(0)

    class Learner(DecisionTreeClassifier):
        """A stump in the first round, then a full tree."""

        def fit(self, X, y, sample_weight=None):
            self.max_depth = 1 if np.ptp(sample_weight) == 0 else None
            return super().fit(X, y, sample_weight)

    model = AdaBoostTreeClassifier(Learner()).fit(X, y)
    assert np.isinf(model.estimator_weights_).tolist() == [False, True]
    assert model.error_bounds_[1] == 0 < model.training_errors_[0] <= model.error_bounds_[0]
    assert (model.predict(X) == y).all()
    stages = [*model.staged_predict(X)]
    np.testing.assert_array_equal(stages[0], model.estimators_[0].predict(X))
    np.testing.assert_array_equal(stages[1], y)
    np.testing.assert_array_equal(model.margins(X, y), np.ones(len(y)))
    last = model.estimators_[1].feature_importances_
    np.testing.assert_allclose(model.feature_importances_, last)


@pytest.mark.parametrize("k", [2, 3])
def test_without_a_learner_better_than_chance_the_prior_is_predicted(k):
    class Wrong(ClassifierMixin, BaseEstimator):
        def fit(self, X, y, sample_weight=None):  # noqa: ARG002
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.roll(self.classes_, 1)[X[:, 0].astype(int)]

    y = np.repeat(np.arange(k), [5, 2, 3][:k])
    X = y[:, None].astype(float)
    with pytest.raises(ValueError, match="worse than random"):
        AdaBoostClassifier(Wrong()).fit(X, y)
    model = AdaBoostTreeClassifier(Wrong()).fit(X, y)
    assert model.estimators_ == []
    assert model.error_bounds_.tolist() == [1.0]
    assert model.training_errors_ == pytest.approx(1 - 5 / len(y))
    assert (model.predict(X) == 0).all()
    assert [said.tolist() for said in model.staged_predict(X)] == [[0] * len(y)]
    np.testing.assert_allclose(model.predict_proba(X)[0], np.bincount(y) / len(y))
    assert (model.margins(X, y) == 0).all()
    assert model.feature_importances_.tolist() == [0.0]


def test_a_later_learner_no_better_than_chance_ends_the_rounds():
    y = np.array([0, 0, 1, 1, 1, 1])
    first = np.array([1, 0, 1, 1, 1, 1])
    # Its weights have grown until it is wrong about half of them.
    made = run_adaboost(lambda _: (None, first), y, np.full(6, 1 / 6), 2, 9, 1.0)
    assert len(made.learners) == 1
    assert made.training_errors.tolist() == pytest.approx([1 / 6])


def test_indistinguishable_rows_get_the_most_frequent_class():
    X, y = np.zeros((10, 2)), np.array([0] * 5 + [1] * 5)
    model = AdaBoostTreeClassifier().fit(X, y)
    assert model.estimators_ == []
    np.testing.assert_allclose(model.predict_proba(X), 0.5)
    uneven = AdaBoostTreeClassifier().fit(X[:8], y[:8])
    assert len(uneven.estimators_) == 1
    np.testing.assert_allclose(uneven.predict_proba(X)[0], [5 / 8, 3 / 8])


def test_one_class_is_certain():
    model = AdaBoostTreeClassifier().fit(noisy(0)[0], np.full(120, "a"))
    assert (model.predict(noisy(1)[0]) == "a").all()
    assert model.predict_proba([[0.0] * 4]).tolist() == [[1.0]]
    assert model.error_bounds_.tolist() == [0.0]


def test_weights_that_underflow_do_no_harm():
    y = np.array([0, 1] * 50)
    missed = np.where(np.arange(100) == 7, 1 - y, y)
    again = np.where(np.arange(100) == 8, 1 - y, y)
    start = np.where(np.arange(100) < 8, 1e-320, 1.0)
    made = run_adaboost(
        lambda d: (None, missed if d[7] < d[8] else again), y, start / start.sum(), 2, 9, 1
    )
    assert np.isfinite(made.weights).all()
    assert np.isfinite(made.distribution).all()


@pytest.mark.parametrize("k", [2, 4])
def test_trees_of_some_leaves_are_those_of_scikit_learn_round_by_round(k):
    X, y = noisy(3, n=200, k=k)  # each value has a bin
    X = X.astype(np.float32)
    ours = AdaBoostTreeClassifier(max_leaf_nodes=6, n_estimators=6).fit(X, y)
    tree = DecisionTreeClassifier(max_leaf_nodes=6)
    theirs = AdaBoostTreeClassifier(tree, n_estimators=6, random_state=0).fit(X, y)
    assert [one.tree.n_leaves for one in ours.estimators_] == [6] * 6
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, atol=1e-9)
    assert max(one.tree.depth for one in ours.estimators_) > 2


def test_a_depth_is_one_unless_leaves_are_given():
    X, y = noisy(0)
    stumps = AdaBoostTreeClassifier(n_estimators=5).fit(X, y)
    assert [one.tree.n_leaves for one in stumps.estimators_] == [2] * 5
    named = AdaBoostTreeClassifier(n_estimators=5, max_depth=1).fit(X, y)
    assert np.array_equal(stumps.decision_function(X), named.decision_function(X))
    both = AdaBoostTreeClassifier(n_estimators=5, max_depth=2, max_leaf_nodes=3).fit(X, y)
    assert [one.tree.n_leaves for one in both.estimators_] == [3] * 5


def test_predictions_are_votes_of_the_learners():
    X, y = noisy(3, k=3)
    X[::5, 1] = np.nan
    model = AdaBoostTreeClassifier(n_estimators=20, max_depth=2, n_jobs=2).fit(X, y)
    rows = noisy(4, k=3)[0]
    scores = sum(
        compute_vote_scores(one.predict(rows), weight, 3)
        for one, weight in zip(model.estimators_, model.estimator_weights_, strict=True)
    )
    np.testing.assert_array_equal(model.decision_function(rows), scores.T)
    assert model.training_errors_[-1] == pytest.approx(1 - model.score(X, y))
    share = np.exp(2 * scores) / np.exp(2 * scores).sum(axis=0)
    np.testing.assert_allclose(model.predict_proba(rows), share.T)


@pytest.mark.parametrize("k", [2, 3])
def test_margins_lie_in_their_range_and_their_sign_is_that_of_a_right_prediction(k):
    X, y = noisy(5, k=k)
    model = AdaBoostTreeClassifier(n_estimators=30).fit(X, y)
    margin, weights = model.margins(X, y), model.estimator_weights_
    right = model.predict(X) == y
    assert (np.abs(margin) <= 1).all()
    assert (margin[right] >= 0).all()
    assert (margin[~right] <= 0).all()
    if k == 2:
        scores = (2 * y - 1) * model.decision_function(X)
        np.testing.assert_allclose(margin, scores / weights.sum())
    with pytest.raises(ValueError, match="y must hold classes among"):
        model.margins(X, y + 1)


def test_rows_of_weight_zero_are_as_if_absent_and_copies_are_weights():
    X, y = noisy(6)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighed = AdaBoostTreeClassifier(n_estimators=8).fit(X, y, weight)
    copies = np.repeat(np.arange(len(y)), weight)
    copied = AdaBoostTreeClassifier(n_estimators=8).fit(X[copies], y[copies])
    np.testing.assert_allclose(weighed.decision_function(X), copied.decision_function(X))
    np.testing.assert_allclose(weighed.error_bounds_, copied.error_bounds_)


def test_categories_are_divided_in_sets():
    pd = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    names = random.choice([*"abcdef"], 400)
    y = np.isin(names, ["a", "c", "f"]).astype(int)
    table = pd.DataFrame({"x": random.normal(size=400), "name": pd.Categorical(names)})
    model = AdaBoostTreeClassifier().fit(table, y)
    assert len(model.estimators_) == 1
    assert model.score(table, y) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": LinearRegression()}, "must be a classifier whose fit takes sample_weight"),
        ({"estimator": KNeighborsClassifier()}, "must be a classifier whose fit takes"),
        ({"estimator": 3}, "estimator"),
        ({"estimator": False}, "estimator"),
        ({"learning_rate": 1.5}, "learning_rate"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_depth": 0}, "max_depth"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    model = AdaBoostTreeClassifier(**parameters)
    assert is_classifier(model)
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], [0, 1])


def test_a_model_is_cloned_and_pickled():
    X, y = noisy(8)
    for learner in (None, STUMP):
        model = AdaBoostTreeClassifier(learner, n_estimators=5, random_state=0).fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        other = clone(model).fit(X, y)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


# -- model files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["two", "three", "alone", "none", "one"])
def test_a_model_file_answers_what_was_saved(kind, tmp_path):
    X, y = noisy(9, k=3 if kind == "three" else 2)
    if kind == "alone":
        y = (X[:, 0] > 0).astype(int)
    elif kind == "none":
        X, y = np.zeros((10, 2)), np.array([0, 1] * 5)
    elif kind == "one":
        y = np.full(len(y), 4)
    model = AdaBoostTreeClassifier(n_estimators=9, max_depth=2 if kind == "three" else 1).fit(X, y)
    save(model, tmp_path / "model.certree")
    again = load(tmp_path / "model.certree")
    arrays = [name for name, value in vars(model).items() if isinstance(value, np.ndarray)]
    for name in arrays:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for name in ("decision_function", "predict", "predict_proba"):
        np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))
    np.testing.assert_array_equal(again.margins(X, y), model.margins(X, y))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


def test_files_hold_trees_of_certree_only(tmp_path):
    X, y = noisy(10)
    model = AdaBoostTreeClassifier(STUMP, n_estimators=3).fit(X, y)
    with pytest.raises(TypeError, match="save it with joblib or skops"):
        save(model, tmp_path / "model.certree")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("estimator_weights", lambda one: -one),
        ("estimator_weights", lambda one: np.where(np.arange(len(one)) == 0, np.inf, one)),
        ("estimator_errors", lambda one: one + 2),
        ("error_bounds", lambda one: one * np.nan),
        ("error_bounds", lambda one: one[:-1]),
        ("normalizers", lambda one: one * np.inf),
        ("start", lambda one: one * np.nan),
        ("importances", lambda one: one - 1),
        ("trees.value", lambda one: one * np.arange(len(one))[:, None]),
    ],
)
def test_damaged_files_are_refused(name, change, tmp_path):
    X, y = noisy(11)
    path = tmp_path / "model.certree"
    save(AdaBoostTreeClassifier(n_estimators=3).fit(X, y), path)
    with np.load(path) as archive:
        changed = {name: change(archive[name])}
    rewrite(path, changed)
    with pytest.raises(ValueError, match=r"or is damaged|cannot be loaded: the model file"):
        load(path)


def test_probabilities_after_each_round_end_with_those_of_all_rounds():
    X = np.random.default_rng(0).normal(size=(120, 3))
    for y in ((X[:, 0] > 0).astype(int), np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])):
        model = AdaBoostTreeClassifier(n_estimators=6, max_depth=2).fit(X, y)
        stages = [*model.staged_predict_proba(X)]
        assert len(stages) == len(model.estimators_)
        np.testing.assert_array_equal(stages[-1], model.predict_proba(X))
        for shares, labels in zip(stages, model.staged_predict(X), strict=True):
            np.testing.assert_allclose(shares.sum(axis=1), 1)
            np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], labels)
