"""Boosted trees after some of their rounds, leaves of rows, and importances."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss

import reference
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
)

SHORT = {"max_iter": 12, "random_state": 0}
X, Y = load_iris(return_X_y=True)
MODELS = {
    "two": (BoostedTreesClassifier(**SHORT), (Y == 2)),
    "three": (BoostedTreesClassifier(**SHORT), Y),
    "one": (BoostedTreesClassifier(**SHORT), np.zeros(150)),
    "best": (BoostedTreesClassifier(quality="best", **SHORT), Y),
    "numbers": (BoostedTreesRegressor(**SHORT), X[:, 0]),
    "counts": (BoostedTreesRegressor("poisson", **SHORT), Y),
    "certified": (CertifiedBoostedTreesClassifier(duplicates="genuine", **SHORT), Y),
}


@pytest.fixture(params=MODELS)
def model(request):
    made, y = MODELS[request.param]
    return made.fit(X, y)


def test_the_first_rounds_are_a_stage(model):
    names = ["predict"]
    if hasattr(model, "predict_proba"):
        names += ["predict_proba", "decision_function"]
    for name in names:
        asked = getattr(model, name)
        stages = [*getattr(model, f"staged_{name}")(X)]
        assert len(stages) == model.n_iter_
        for n_iter, said in enumerate(stages, 1):
            np.testing.assert_array_equal(asked(X, n_iter=n_iter), said)
        np.testing.assert_array_equal(asked(X, n_iter=model.n_iter_), asked(X))
        np.testing.assert_array_equal(asked(X[:1], n_iter=np.int64(3)), asked(X, n_iter=3)[:1])
        for wrong in (-1, model.n_iter_ + 1):
            with pytest.raises(
                ValueError, match=rf"n_iter must be in 0 \.\. n_iter_={model.n_iter_}"
            ):
                asked(X, n_iter=wrong)
        for wrong in (1.0, True, "all"):
            with pytest.raises(TypeError, match="n_iter must be an integer or None"):
                asked(X, n_iter=wrong)


def test_the_first_rounds_are_those_of_a_shorter_fit():
    whole = BoostedTreesClassifier(**SHORT).fit(X, Y)
    shorter = BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(whole.predict_proba(X, n_iter=5), shorter.predict_proba(X))
    start = np.repeat(whole.start_[None], len(X), axis=0)
    np.testing.assert_array_equal(whole.decision_function(X, n_iter=0), start)


def test_stages_of_scores_have_the_shapes_of_sklearn():
    for y in (Y, Y == 2):
        ours = BoostedTreesClassifier(**SHORT).fit(X, y)
        theirs = GradientBoostingClassifier(n_estimators=3).fit(X, y)
        shapes = [
            next(model.staged_decision_function(X)).reshape(150, -1).shape
            for model in (ours, theirs)
        ]
        assert shapes[0] == shapes[1]
        assert next(ours.staged_decision_function(X)).shape == ours.decision_function(X).shape


def test_leaves_are_those_that_rows_reach(model):
    leaf = model.apply(X)
    assert leaf.shape == (150, len(model.trees_))
    for number, tree in enumerate(model.trees_):
        np.testing.assert_array_equal(leaf[:, number], reference.apply(tree, X))
    scores = np.repeat(model.start_[None], 150, axis=0)
    for number, tree in enumerate(model.trees_):
        scores += tree.value[leaf[:, number]]
    np.testing.assert_allclose(scores, model._compute_scores(X).T, atol=1e-12)


# -- importance ------------------------------------------------------------------------------------


def test_importance_counts_splits_and_sums_gains(model):
    cuts = np.zeros(4)
    for tree in model.trees_:
        for feature in tree.feature[tree.left >= 0]:
            cuts[feature] += 1
    np.testing.assert_array_equal(model.importance("split"), cuts)
    gain = model.importance()
    np.testing.assert_allclose(gain / (gain.sum() or 1), model.feature_importances_)
    gain[:] = 0  # a copy
    assert model.importance("gain").sum() > 0 or not len(cuts.nonzero()[0])


@pytest.mark.slow
def test_importance_by_permutation_is_that_of_sklearn():
    model = BoostedTreesClassifier(**SHORT).fit(X[::2], Y[::2])
    found = model.importance("permutation", X[1::2], Y[1::2], n_repeats=200, random_state=0)

    def score(fitted, rows, y):
        return -log_loss(y, fitted.predict_proba(rows))

    expected = permutation_importance(model, X[1::2], Y[1::2], scoring=score, n_repeats=200)
    np.testing.assert_allclose(found, expected.importances_mean, atol=0.03)
    assert found.max() > 0.2
    again = model.importance("permutation", X[1::2], Y[1::2], n_repeats=200, random_state=0)
    np.testing.assert_array_equal(found, again)
    unused = BoostedTreesClassifier(**SHORT).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert unused.importance("permutation", np.ones((2, 2)), [0, 1]).tolist() == [0, 0]


def test_importance_by_permutation_takes_offsets():
    random = np.random.default_rng(0)
    rows, e = random.normal(size=(500, 2)), random.choice([0.1, 4.0], 500)
    y = random.poisson(e * np.exp(rows[:, 0]))
    model = BoostedTreesRegressor("poisson", **SHORT).fit(rows, y, offset=np.log(e))
    found = model.importance("permutation", rows, y, offset=np.log(e), random_state=0)
    assert found[0] > 10 * abs(found[1])


def test_importance_refuses_arguments_of_other_kinds():
    model = BoostedTreesClassifier(**SHORT)
    with pytest.raises(NotFittedError):
        model.importance()
    model.fit(X, Y)
    for given, message in (
        (("weight",), "kind must be"),
        (("permutation",), "X and y must be given"),
        (("split", X), 'must be None unless kind="permutation", got kind='),
    ):
        with pytest.raises(ValueError, match=message):
            model.importance(*given)
    with pytest.raises(ValueError, match="n_repeats must be at least 1, got 0"):
        model.importance("permutation", X, Y, n_repeats=0)
