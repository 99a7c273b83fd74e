"""Weights of rows: only their ratios matter, and a row counts once whatever its weight."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import log_loss

import certree
from certree import (
    KD,
    Cart,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    Dyadic,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)
from certree.prunings.rule_names import RULES

OF_NUMBERS = [rule for rule in sorted(RULES) if not RULES[rule].reads_classes]
MODELS = [
    PACBayesTreeClassifier(),
    PACBayesTreeClassifier(KD(), vote="majority", scoring="error", prior="branching"),
    PACBayesTreeClassifier(Dyadic(), class_weight="balanced"),
    PACBayesTreeClassifier(Cart(max_bins=32), lambda_error=1.0, lambda_penalty=0.1),
    PACBayesTreeRegressor(),
    PACBayesTreeRegressor(Cart(max_bins=32), prior="leaves", search="joint"),
    HelmboldSchapireTreeClassifier(),
    *(PrunedTreeClassifier(rule=rule) for rule in sorted(RULES)),
    *(PrunedTreeRegressor(rule=rule) for rule in OF_NUMBERS),
    DecoratedTreeClassifier(max_depth=3),
    DecoratedTreeClassifier(max_depth=3, rule="polynomial"),
    DecoratedTreeRegressor(max_depth=3),
    CertifiedTreeClassifier(),
    CertifiedTreeClassifier(posteriors="cv", vote="majority"),
    CertifiedTreeRegressor(),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda one: " ".join(repr(one).split()))


def problem(model, n=300, seed=0):
    """Rows of which two features tell classes, or a number."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(2)
    value = X[:, 0] + np.abs(X[:, 1]) + rng.normal(size=n) / 2
    return X, (value > 0.7).astype(int) if is_classifier(model) else value


def uneven(n=300, seed=1):
    return np.random.default_rng(seed).uniform(0.2, 3.0, n)


def fitted(model, *rows):
    return clone(model).set_params(random_state=0).fit(*rows)


def predict_any(model, X):
    if is_classifier(model):
        return model.predict_proba(X)
    extra = [model.predict_std(X)] if hasattr(model, "predict_std") else []
    return np.column_stack([model.predict(X), *extra])


@every_model
def test_weights_times_a_power_of_two_change_no_bit(model):
    X, y = problem(model)
    one = fitted(model, X, y, uneven())
    for factor in (2.0**-40, 8.0):
        other = fitted(model, X, y, factor * uneven())
        np.testing.assert_array_equal(predict_any(one, X), predict_any(other, X))
        assert one.best_params_ == other.best_params_
        assert getattr(one, "certificates_", None) == getattr(other, "certificates_", None)
        assert one.effective_sample_size_ == other.effective_sample_size_


@every_model
def test_weights_times_any_number_change_what_rounding_does(model):
    X, y = problem(model)
    one, other = (fitted(model, X, y, factor * uneven()) for factor in (1.0, 3.7))
    np.testing.assert_array_equal(one.tree_.left, other.tree_.left)
    np.testing.assert_allclose(predict_any(one, X), predict_any(other, X), rtol=1e-9, atol=1e-9)


@every_model
def test_rows_of_weight_ten_thousand_are_as_many_of_weight_one(model):
    X, y = problem(model, 1000)
    plain, heavy = (fitted(model, X, y, weight) for weight in (None, np.full(1000, 10_000)))
    np.testing.assert_allclose(predict_any(plain, X), predict_any(heavy, X), rtol=1e-9, atol=1e-9)


@every_model
def test_integer_weights_give_nearly_the_model_of_close_weights(model):
    X, y = problem(model, 1000)
    rng = np.random.default_rng(2)
    weight = rng.choice([1.0, 10.0], 400)
    few, new = slice(400), slice(400, None)
    losses = []
    for w in (weight, np.where(weight > 1, 10.001, 1.0)):
        one = fitted(model, X[few], y[few], w)
        if is_classifier(model):
            losses.append(log_loss(y[new], 0.98 * one.predict_proba(X[new]) + 0.01))
        else:
            losses.append(np.mean((one.predict(X[new]) - y[new]) ** 2))
    assert losses[0] == pytest.approx(losses[1], rel=0.03)


@pytest.mark.parametrize(
    "grower",
    [
        Cart(min_samples_leaf=20),
        Cart(min_samples_split=40),
        Cart(min_samples_leaf=20, max_bins=16),
        Cart(min_samples_split=40, max_bins=16),
        KD(min_samples_split=40),
        Dyadic(min_samples_split=40),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [PrunedTreeClassifier, PrunedTreeRegressor])
def test_limits_on_numbers_of_rows_count_rows(kind, grower):
    model = kind(grower, alpha=0.0)
    X, y = problem(model)
    # A row of the first half weighs more than the others together.
    weight = np.where(np.arange(300) < 150, 1e4, 0.01)
    X[:150, 0] -= 10
    path = fitted(model, X, y, weight).decision_path(X).toarray()
    tree = fitted(model, X, y, weight).tree_
    n = path.sum(axis=0)
    if getattr(grower, "min_samples_leaf", 1) == 20:
        assert n[tree.is_leaf].min() >= 20
        # Rows of little weight are split as well.
        assert tree.is_leaf[path[150:].any(axis=0)].sum() > 2
    else:
        assert n[~tree.is_leaf].min() >= 40
        assert (n[tree.is_leaf] < 40).any()


def kish(weight):
    return weight.sum() ** 2 / np.square(weight).sum()


def of_classes(model, y, weight):
    """What the weights of classes multiply rows by."""
    given = getattr(model, "class_weight", None)
    if given == "balanced":
        return (weight.sum() / 2 / np.bincount(y, weight))[y]
    return np.ones(len(y)) if given is None else np.array([given[one] for one in y])


@pytest.mark.parametrize(
    "model",
    [*MODELS, NaiveBayesClassifier(), NaiveBayesClassifier(class_weight={0: 3.0, 1: 0.5})],
    ids=lambda one: " ".join(repr(one).split()),
)
def test_the_effective_sample_size_is_kish_s(model, tmp_path):
    X, y = problem(model)
    weight = uneven()
    weight[:10] = 0

    for given, own in ((weight, weight), (None, np.ones(300))):
        one = clone(model).fit(X, y, given)
        expected = kish(own * of_classes(model, y, own))
        assert one.effective_sample_size_ == pytest.approx(expected, rel=1e-5)
        if not hasattr(model, "leaf_estimator"):  # no model file takes those
            certree.save(one, tmp_path / "model")
            again = certree.load(tmp_path / "model")
            assert again.effective_sample_size_ == one.effective_sample_size_


@pytest.mark.parametrize(
    "model", [*MODELS, NaiveBayesClassifier()], ids=lambda one: type(one).__name__
)
def test_weights_of_which_a_few_decide_are_worth_a_warning(model):
    X, y = problem(model)
    amounts = np.where(np.arange(300) % 30 == 0, 1000.0, 1.0)
    message = r"300 rows carry as much evidence as 10\.\d+ of equal weight"
    with pytest.warns(UserWarning, match=message):
        clone(model).fit(X, y, amounts)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        clone(model).fit(X, y, np.sqrt(amounts))


def test_weights_of_classes_alone_are_worth_no_warning():
    X, y = problem(PACBayesTreeClassifier())
    weight = {0: 1e-6, 1: 1.0}
    y = (X[:, 0] > 1.5).astype(int)
    model = PACBayesTreeClassifier(class_weight=weight, random_state=0).fit(X, y)
    assert model.effective_sample_size_ < 30
