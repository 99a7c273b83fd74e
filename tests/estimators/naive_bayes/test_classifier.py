"""Naive Bayes agrees with its slow twin and, on their ground, with scikit-learn's."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from certree import NaiveBayesClassifier, load, save
from certree.estimators.naive_bayes.densities import (
    CategoricalTable,
    Histogram,
    Moments,
    compute_bin_edges,
)
from certree.estimators.naive_bayes.powers import POWERS, PowerLosses, compute_power_losses
from certree.rows.hashes import hash_samples
from run_length import LONG
from sklearn_checks import copies_differ
from strategies import rows

X, Y = load_iris(return_X_y=True)
CITIES = np.array(["Athens", "Bern", "Cairo", "Delhi"])
K = 3


def mixed(n=300, seed=0):
    """Numbers that are normal or not, and names; some are missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    city = CITIES[(rng.integers(0, 3, n) + y) % 4].astype(object)
    city[rng.random(n) < 0.1] = None
    size = rng.normal(y, 1.0)
    size[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"size": size, "city": city, "gain": rng.exponential(1 + y) ** 3}), y


def expected_failures(estimator):
    if estimator.densities != "categorical":
        return copies_differ()
    said = "the error is raised in other words"
    return {**copies_differ(), "check_dtype_object": said, "check_fit2d_predict1d": said}


@parametrize_with_checks(
    [
        NaiveBayesClassifier(),
        NaiveBayesClassifier("categorical", power=1.0),
        *(NaiveBayesClassifier(kind) for kind in ("normal", "histogram", "categorical") if LONG),
    ],
    expected_failed_checks=expected_failures,
)
def test_all_densities_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# -- the slow twin ---------------------------------------------------------------------------------


def columns(codes=False):
    """A feature with ties and missing values, its classes, and whole weights."""
    values = st.integers(0, 4).map(float) if codes else st.floats(-5, 5).map(lambda v: round(v, 1))
    values = st.one_of(values, st.just(float("nan")))
    return st.integers(1, 20).flatmap(
        lambda n: st.tuples(
            hnp.arrays(np.float64, n, elements=values),
            hnp.arrays(np.int32, n, elements=st.integers(0, K - 1)),
            hnp.arrays(np.int64, n, elements=st.integers(1, 3)),
        )
    )


def repeated(column):
    x, y, weight = column
    return np.repeat(x, weight), np.repeat(y, weight)


@given(columns(), st.sampled_from([0.1, 1.0]))
def test_normal_densities_are_those_of_the_twin(column, floor):
    x, y = repeated(column)
    normal = Moments.from_rows(column[0], column[1], column[2].astype(float), K).make_normal(floor)
    values = np.append(column[0], [7.5, np.nan])
    expected = [
        [reference.compute_normal_log_density(value, x, y, k, floor**2) for k in range(K)]
        for value in values
    ]
    np.testing.assert_allclose(normal.log_density(values), expected, rtol=1e-9, atol=1e-9)


def test_tables_with_a_tiny_alpha_have_finite_logs():
    x, y, weight = np.array([0.0, 0, 0, 1]), np.array([0, 0, 0, 1], np.int32), np.ones(4)
    table = CategoricalTable.empty(2, 3, 5e-324).add_rows(x, y, weight)
    expected = np.log([[3, 5e-324, 5e-324], [5e-324, 1, 5e-324]]) - np.log([[3], [1]])
    np.testing.assert_allclose(table.log_density(np.arange(3.0)), expected.T, rtol=1e-15)
    left_out = table.compute_left_out(x, y, weight)
    np.testing.assert_allclose(left_out, [0, 0, 0, np.log(1 / 3)], rtol=1e-15)


@given(columns(codes=True), st.sampled_from([0.1, 1.0, 3.0]))
def test_tables_are_those_of_the_twin(column, alpha):
    x, y = repeated(column)
    table = CategoricalTable.empty(K, 5, alpha).add_rows(column[0], column[1], column[2])
    values = np.append(column[0], np.nan)
    expected = [
        [reference.compute_table_log_probability(value, x, y, k, 5, alpha) for k in range(K)]
        for value in values
    ]
    np.testing.assert_allclose(table.log_density(values), expected, rtol=1e-12, atol=1e-12)


@given(columns(), st.sampled_from([0.1, 1.0]), st.sampled_from([1, 4, "auto", "fd", "sturges"]))
def test_histograms_are_those_of_the_twin(column, alpha, bins):
    x, y = repeated(column)
    weight = column[2].astype(float)
    edges = compute_bin_edges(column[0], bins)
    histogram = Histogram.empty(edges, K, alpha).add_rows(column[0], column[1], weight)
    values = np.append(column[0], [-9.0, 9.0, np.nan])
    expected = [
        [reference.compute_histogram_log_density(value, x, y, k, edges, alpha) for k in range(K)]
        for value in values
    ]
    np.testing.assert_allclose(histogram.log_density(values), expected, rtol=1e-9, atol=1e-9)


def assert_left_out(values, column, log_density):
    """Compare the rows that are not alone in their class with those of the twin."""
    expected = reference.compute_leave_one_out(*column, log_density)
    for value, one in zip(values, expected, strict=True):
        if one is not None:
            assert value == pytest.approx(one, rel=1e-6, abs=1e-6)


@given(columns(), columns(codes=True))
def test_rows_are_left_out_one_by_one_with_all_that_they_weigh(column, coded):
    x, y, weight = column[0], column[1], column[2].astype(float)
    floor, alpha = 0.3, 0.7
    normal = Moments.from_rows(x, y, weight, K).compute_left_out(x, y, weight, floor)
    assert_left_out(
        normal, column, lambda *row: reference.compute_normal_log_density(*row, added=floor**2)
    )
    edges = compute_bin_edges(x, 4)
    histogram = Histogram.empty(edges, K, alpha).add_rows(x, y, weight)
    assert_left_out(
        histogram.compute_left_out(x, y, weight),
        column,
        lambda *row: reference.compute_histogram_log_density(*row, edges=edges, alpha=alpha),
    )
    x, y, weight = coded[0], coded[1], coded[2].astype(float)
    table = CategoricalTable.empty(K, 5, alpha).add_rows(x, y, weight)
    assert_left_out(
        table.compute_left_out(x, y, weight),
        coded,
        lambda *row: reference.compute_table_log_probability(*row, n_categories=5, alpha=alpha),
    )


def test_the_only_value_of_a_class_is_left_out_of_a_density_of_equal_width():
    x, y, weight = np.array([1.0, np.nan, 3.0, 4.0]), np.array([0, 0, 1, 1]), np.ones(4)
    values = Moments.from_rows(x, y, weight, 2).compute_left_out(x, y, weight, 0.1)
    narrow = Moments.from_rows(
        np.array([8 / 3]), np.zeros(1, dtype=int), np.ones(1), 1
    ).make_normal(0.1)
    assert values[0] == pytest.approx(narrow.log_density(x)[0, 0])
    assert values[1] == 0


@given(columns(), columns())
def test_moments_of_batches_are_those_of_all_rows(first, second):
    parts = [Moments.from_rows(x, y, w.astype(float), K) for x, y, w in (first, second)]
    x, y, w = (np.concatenate(both) for both in zip(first, second, strict=True))
    whole, sum_of_both = Moments.from_rows(x, y, w.astype(float), K), parts[0].merge(parts[1])
    for name in ("rows", "mean", "deviation"):
        np.testing.assert_allclose(
            getattr(sum_of_both, name), getattr(whole, name), rtol=1e-9, atol=1e-9
        )
    everything = Moments.from_rows(x, np.zeros_like(y), w.astype(float), 1)
    np.testing.assert_allclose(
        whole.pool_classes(), [everything.mean[0], everything.deviation[0]], rtol=1e-9, atol=1e-9
    )


@given(rows())
def test_any_rows_give_posteriors(drawn):
    table, y = drawn
    for densities in ("auto", "normal", "histogram", "categorical"):
        for power in (1.0, "auto"):
            model = NaiveBayesClassifier(densities, power=power).fit(table, y)
            posterior = model.predict_proba(np.vstack([table, -table]))
            np.testing.assert_allclose(posterior.sum(axis=1), 1)


def test_quartiles_next_to_each_other_leave_room_for_far_rows():
    x = np.array([-1e300, *[0.0] * 8, 5e-131, 1.0, 1.0])
    edges = compute_bin_edges(x, "auto")
    assert (edges[0], edges[-1]) == (-1e300, 1.0)


@pytest.mark.parametrize("rule", ["auto", "fd", "sturges"])
def test_bins_are_those_of_numpy(rule):
    x = np.random.default_rng(0).normal(size=500)
    np.testing.assert_allclose(
        compute_bin_edges(x, rule), np.histogram_bin_edges(x, rule), atol=1e-12
    )


@pytest.mark.parametrize("rule", ["auto", "fd", "sturges"])
def test_repeated_rows_make_no_more_bins_than_values_can_tell_apart(rule):
    x = np.random.default_rng(0).normal(size=50)
    assert len(compute_bin_edges(np.repeat(x, 10_000), rule)) <= 2 * len(x) + 1


@pytest.mark.parametrize("rule", ["auto", "fd", "sturges", 7])
def test_bins_are_those_of_rows_whatever_they_weigh(rule):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 1)), rng.integers(0, 2, 500)
    model = NaiveBayesClassifier("histogram", bins=rule).fit(x, y, 10 ** rng.uniform(0, 2, 500))
    np.testing.assert_array_equal(model.densities_[0].edges, compute_bin_edges(x[:, 0], rule))


# -- scikit-learn's --------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("var_smoothing", [1e-9, 1e-3])
@pytest.mark.parametrize("priors", [False, True])
def test_numbers_have_the_posteriors_of_gaussian_nb(load, var_smoothing, priors):
    table, y = load(return_X_y=True)
    given = np.arange(1.0, y.max() + 2) / np.arange(1.0, y.max() + 2).sum() if priors else None
    theirs = GaussianNB(var_smoothing=var_smoothing, priors=given).fit(table, y)
    ours = NaiveBayesClassifier("normal", var_smoothing=var_smoothing, priors=given, power=1.0).fit(
        table, y
    )
    np.testing.assert_allclose(ours.predict_proba(table), theirs.predict_proba(table), atol=1e-9)
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(table), theirs.predict_joint_log_proba(table), rtol=1e-6
    )
    np.testing.assert_array_equal(ours.predict(table), theirs.predict(table))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_categories_have_the_posteriors_of_categorical_nb(alpha, weighted):
    rng = np.random.default_rng(1)
    table, y = rng.integers(0, 4, (200, 3)), rng.integers(0, 3, 200)
    weight = rng.random(200) if weighted else None
    added = alpha * weight.mean() if weighted else alpha
    theirs = CategoricalNB(alpha=added).fit(table, y, sample_weight=weight)
    expected = theirs.predict_log_proba(table)
    ours = NaiveBayesClassifier("categorical", alpha=alpha, power=1.0)
    ours.fit(table, y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict_log_proba(table), expected, atol=1e-12)
    frame = pd.DataFrame({f"x{j}": CITIES[table[:, j]] for j in range(3)})
    ours = NaiveBayesClassifier(alpha=alpha, power=1.0).fit(frame, y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict_log_proba(frame), expected, atol=1e-12)


def test_a_mixed_table_has_the_product_of_both():
    frame, y = mixed()
    frame = frame.dropna()
    y, codes = y[frame.index], np.searchsorted(CITIES, frame[["city"]].astype(str))
    numbers = GaussianNB().fit(frame[["size", "gain"]], y)
    names = CategoricalNB().fit(codes, y)
    joint = numbers.predict_joint_log_proba(frame[["size", "gain"]])
    joint = joint + names.predict_joint_log_proba(codes) - np.log(numbers.class_prior_)
    ours = NaiveBayesClassifier({"size": "normal", "gain": "normal"}, power=1.0).fit(frame, y)
    np.testing.assert_allclose(ours.predict_joint_log_proba(frame), joint, rtol=1e-9)


@given(
    hnp.arrays(np.float64, (8, 2), elements=st.integers(-50, 50).map(lambda tenths: tenths / 10)),
    hnp.arrays(np.int32, 8, elements=st.integers(0, K - 1)),
    st.sampled_from(["normal", "histogram"]),
)
def test_power_one_is_the_product_of_prior_and_densities(table, y, density):
    assume(np.ptp(table, axis=0).any())
    model = NaiveBayesClassifier(density, bins=3, var_smoothing=0.1, power=1).fit(table, y)
    codes = np.searchsorted(model.classes_, y)
    added = 0.1 * table.var(axis=0).max()

    def log_density(value, column, labels, k):
        if density == "normal":
            return reference.compute_normal_log_density(value, column, labels, k, added)
        edges = compute_bin_edges(np.array(column), 3)
        return reference.compute_histogram_log_density(value, column, labels, k, edges, alpha=1.0)

    n_classes = len(model.classes_)
    expected = [
        reference.compute_product_posterior(row, table, codes, n_classes, log_density)
        for row in table
    ]
    np.testing.assert_allclose(model.predict_proba(table), expected, rtol=1e-6, atol=1e-9)


# -- densities -------------------------------------------------------------------------------------


def kinds(model):
    return [density.kind for density in model.densities_]


def test_the_density_that_predicts_better_is_chosen():
    frame, y = mixed(2000)
    model = NaiveBayesClassifier().fit(frame, y)
    assert kinds(model) == ["normal", "categorical", "histogram"]


@pytest.mark.parametrize(
    "densities",
    [["histogram", "auto", "normal"], {"size": "histogram", "gain": "normal"}],
)
def test_densities_are_given_by_place_or_by_name(densities):
    frame, y = mixed()
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        model = NaiveBayesClassifier(densities, bins=7).fit(table, y)
        assert kinds(model) == ["histogram", "categorical", "normal"]
        assert len(model.densities_[0].edges) == 8
        with pytest.raises(ValueError, match="for the categorical feature 'city', got"):
            NaiveBayesClassifier(["normal"] * 3).fit(table, y)


def test_the_library_of_the_table_does_not_matter():
    frame, y = mixed()
    expected = NaiveBayesClassifier().fit(frame, y).predict_proba(frame)
    for table, chosen in (
        (pl.from_pandas(frame), "from_dtype"),
        (frame.to_numpy(dtype=object), [1]),
        (frame.to_numpy(dtype=object), [False, True, False]),
        (frame, ["city"]),
    ):
        model = NaiveBayesClassifier(categorical_features=chosen).fit(table, y)
        np.testing.assert_array_equal(model.predict_proba(table), expected)


def test_what_is_missing_or_unknown_is_left_out():
    frame, y = mixed()
    model = NaiveBayesClassifier().fit(frame, y)
    without = NaiveBayesClassifier().fit(frame[["size", "gain"]], y)
    expected = without.predict_joint_log_proba(frame[["size", "gain"]])
    for city in (None, "Essen"):
        other = frame.assign(city=pd.Series([city] * len(frame), dtype=object))
        np.testing.assert_allclose(model.predict_joint_log_proba(other), expected, rtol=1e-12)
    nothing = pd.DataFrame({"size": [np.nan], "city": [None], "gain": [np.nan]})
    np.testing.assert_allclose(model.predict_proba(nothing), [model.class_prior_])


@pytest.mark.parametrize("densities", ["normal", "histogram", "categorical", "auto"])
def test_columns_without_information_are_no_trouble(densities):
    table = np.column_stack([np.full(6, np.nan), np.full(6, 0.1), np.arange(6.0)])
    y = np.array([0, 1, 1, 0, 1, 1])
    model = NaiveBayesClassifier(densities).fit(table, y)
    alone = NaiveBayesClassifier(densities).fit(table[:, 2:], y)
    np.testing.assert_allclose(model.predict_proba(table), alone.predict_proba(table[:, 2:]))
    constant = NaiveBayesClassifier(densities).fit(table[:, :2], y)
    np.testing.assert_allclose(constant.predict_proba(table[:1, :2]), [[1 / 3, 2 / 3]])


@pytest.mark.parametrize("densities", ["normal", "histogram", "categorical", "auto"])
def test_one_class_and_one_row_are_learned(densities):
    model = NaiveBayesClassifier(densities, power="auto").fit(X, np.full(len(X), "only"))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))
    model = NaiveBayesClassifier(densities).fit([[1.0, 2.0]], ["a"])
    assert model.predict([[3.0, 4.0]]) == ["a"]


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1.0, "auto"])
@pytest.mark.parametrize("densities", ["normal", "histogram", "categorical", "auto"])
def test_the_unit_of_weights_says_nothing(densities, power):
    weight = np.random.default_rng(0).uniform(0.1, 4.0, len(Y))
    model = NaiveBayesClassifier(densities, power=power)
    plain = clone(model).fit(X, Y, weight)
    for factor in (2.0**-30, 8.0):
        other = clone(model).fit(X, Y, factor * weight)
        np.testing.assert_array_equal(other.predict_proba(X), plain.predict_proba(X))
    other = clone(model).fit(X, Y, 3.7 * weight)
    assert other.power_ == plain.power_
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    heavy = clone(model).fit(X, Y, np.full(len(Y), 10_000))
    np.testing.assert_allclose(
        heavy.predict_proba(X), clone(model).fit(X, Y).predict_proba(X), rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize("densities", ["normal", "histogram", "categorical", "auto"])
def test_rows_of_weight_zero_are_as_if_absent(densities):
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(Y))
    a = NaiveBayesClassifier(densities).fit(X, Y, weight)
    some = weight > 0
    b = NaiveBayesClassifier(densities).fit(X[some], Y[some], weight[some])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize("densities", ["histogram", "categorical"])
@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_alpha_counts_rows_of_mean_weight(densities, alpha):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (120, 1)).astype(float), rng.integers(0, 2, 120)
    x[:4, 0], y[:2], y[2:4] = np.arange(4), 0, 1
    weight = 10 * rng.choice([0.0, 0.3, 2.0], 120)
    weight[:4] = 3.0
    model = NaiveBayesClassifier(densities, alpha=alpha, bins=4, power=1.0)
    # Also of batches: then it is the mean of the rows that have been so far.
    batched = in_pieces(clone(model), x, y, 30, 70, weight=weight)
    whole = clone(model).fit(x, y, weight)
    m = weight[weight > 0].mean()
    for k in (0, 1):
        own = y == k
        expected = [
            np.log(weight[own & (x[:, 0] == v)].sum() + alpha * m)
            - np.log(weight[own].sum() + 4 * alpha * m)
            for v in range(4)
        ]
        for fitted in (whole, batched):
            density = fitted.densities_[0]
            found = density.log_density(np.arange(4.0))[:, k]
            if densities == "histogram":
                found = found + np.log(np.diff(density.edges))
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_number_of_rows_that_have_a_weight_is_known():
    weight = np.random.default_rng(0).choice([0.0, 100.0, 3000.0], len(Y))
    model = NaiveBayesClassifier().fit(X, Y, weight)
    assert model.__stored__()["n_rows"] == (weight > 0).sum()
    assert model._power_losses.rows == (weight > 0).sum()
    model.partial_fit(X, Y).partial_fit(X[:7], Y[:7], sample_weight=np.full(7, 1e9))
    assert model.__stored__()["n_rows"] == (weight > 0).sum() + 157
    assert model._power_losses.rows == (weight > 0).sum() + 157


def test_old_losses_are_forgotten_by_the_number_of_rows():
    # 100 rows, then 20 more: below 128, what the first ones lose counts as well.
    for weight in (1.0, 1000.0):
        model = NaiveBayesClassifier("normal").fit(X[::2], Y[::2], np.full(75, weight))
        before = model._power_losses.recent.copy()
        model.partial_fit(X[1:80:2], Y[1:80:2], sample_weight=np.full(40, weight))
        assert (model._power_losses.recent > before).all()
        assert (model._power_losses.older == 0).all()
        model.partial_fit(X[80::2], Y[80::2], sample_weight=np.full(35, weight))
        assert (model._power_losses.older > before).all()


@pytest.mark.parametrize("densities", ["normal", "histogram", "categorical", "auto"])
def test_integer_weights_give_nearly_the_model_of_close_weights(densities):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    x = (rng.normal(size=(600, 4)) + 0.7 * y[:, None]).round(1)
    few, new = slice(100), slice(100, None)
    weight = rng.choice([1.0, 10.0], 100)
    a, b = (
        NaiveBayesClassifier(densities).fit(x[few], y[few], w)
        for w in (weight, np.where(weight > 1, 10.001, 1.0))
    )
    assert a.power_ == b.power_
    one, other = (log_loss(y[new], model.predict_proba(x[new])) for model in (a, b))
    assert one == pytest.approx(other, rel=1e-3)


def test_class_weights_are_sample_weights():
    a = NaiveBayesClassifier(class_weight={0: 3, 1: 1, 2: 1}).fit(X, Y)
    b = NaiveBayesClassifier().fit(X, Y, sample_weight=np.where(Y == 0, 3, 1))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    few = np.arange(len(Y)) > 30
    balanced = NaiveBayesClassifier(class_weight="balanced").fit(X[few], Y[few])
    np.testing.assert_allclose(balanced.class_prior_, [1 / 3] * 3)


# -- power -----------------------------------------------------------------------------------------


def test_the_power_makes_copies_of_a_feature_count_once():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    x = rng.normal(y, 1.0)[:, None]
    once = NaiveBayesClassifier("normal").fit(x, y)
    fourfold = NaiveBayesClassifier("normal", power="auto").fit(np.tile(x, 4), y)
    assert fourfold.power_ == pytest.approx(0.25, rel=0.05)
    np.testing.assert_allclose(
        fourfold.predict_proba(np.tile(x, 4)), once.predict_proba(x), atol=0.02
    )


def judged(log_prior, log_density, y, weight):
    return PowerLosses.empty().add_batch(
        compute_power_losses(log_prior, log_density, y, weight), weight.sum()
    )


def loss_at(power, log_prior, log_density, y, weight):
    joint = log_prior + power * log_density
    own = joint[np.arange(len(y)), y]
    return weight @ (np.log(np.exp(joint).sum(axis=1)) - own)


@given(hnp.arrays(np.float64, (8, 3), elements=st.floats(-5, 5)), st.integers(0, 3**8 - 1))
def test_the_power_with_the_smallest_log_loss_is_chosen(log_density, number):
    y = np.array([number // 3**i % 3 for i in range(8)], dtype=np.int32)
    rows = np.log([0.3, 0.5, 0.2]), log_density, y, np.arange(1.0, 9.0)
    found = judged(*rows)
    expected = [loss_at(power, *rows) for power in POWERS]
    np.testing.assert_allclose(found.recent, expected, rtol=1e-9)
    best = loss_at(found.best_power, *rows)
    assert all(best <= loss_at(power, *rows) * 1.05 for power in np.linspace(0, 1, 21))


def test_the_loss_of_one_row_is_limited():
    log_density, y = np.tile([0.0, -5.0], (200, 1)), np.zeros(200, dtype=np.int32)
    log_density[0] = [-1e9, 0.0]
    rows = np.log([0.5, 0.5]), log_density, y, np.ones(200)
    assert judged(*rows).best_power > 0.5


def test_the_power_is_that_of_left_out_rows():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    x = rng.normal(0.5 * y[:, None], 1.0, (40, 8))
    model = NaiveBayesClassifier("normal", var_smoothing=1e-3).fit(x, y)
    log_density, index = np.zeros((40, 2)), np.arange(40)
    floor = model._compute_floor()
    for feature, density in zip(x.T, model.densities_, strict=True):
        log_density += density.log_density(feature)
        own = reference.compute_leave_one_out(
            *(feature, y, np.ones(40, int)),
            lambda *row: reference.compute_normal_log_density(*row, added=floor**2),
        )
        log_density[index, y] += own - density.log_density(feature)[index, y]
    rows = np.log([0.5, 0.5]), log_density, y, np.ones(40)
    powers = np.linspace(0, 1, 1001)
    best = powers[np.argmin([loss_at(power, *rows) for power in powers])]
    assert 0.05 < best < 0.95
    assert model.power_ == pytest.approx(best, rel=0.1)


@pytest.mark.parametrize("densities", ["auto", "normal", "categorical"])
def test_few_rows_of_many_features_are_not_trusted(densities):
    losses = {1.0: [], "auto": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = np.arange(1060) % 2
        x = rng.normal(0.3 * y[:, None], 1.0, (1060, 40)).round(densities != "categorical")
        for power, found in losses.items():
            model = NaiveBayesClassifier(densities, power=power).fit(x[:60], y[:60])
            found.append(log_loss(y[60:], model.predict_proba(x[60:])))
    assert np.mean(losses["auto"]) < 0.8 * np.mean(losses[1.0])


def test_independent_features_of_many_rows_are_trusted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    model = NaiveBayesClassifier().fit(rng.normal(0.5 * y[:, None], 1.0, (len(y), 5)), y)
    assert model.power_ > 0.95


def test_where_no_power_is_better_it_is_one():
    assert NaiveBayesClassifier().fit(X[:1], Y[:1]).power_ == 1.0
    assert NaiveBayesClassifier().fit(X, np.zeros(len(X))).power_ == 1.0
    assert NaiveBayesClassifier().fit(np.ones((6, 2)), [0, 1, 0, 1, 1, 1]).power_ == 1.0


@pytest.mark.parametrize("densities", ["auto", "normal", "histogram", "categorical"])
def test_one_row_of_each_class_can_be_learned(densities):
    rows = [0, 50, 100]
    model = NaiveBayesClassifier(densities).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(model.predict(X[rows]), Y[rows])


def test_a_class_of_one_row_is_not_believed():
    losses = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = np.arange(1030) % 30 == 0
        x = rng.normal(0.5 * y[:, None], 1.0, (1030, 5))
        model = NaiveBayesClassifier("normal").fit(x[:30], y[:30])
        losses.append(log_loss(y[30:], model.predict_proba(x[30:])))
    assert np.mean(losses) < 0.2


def test_two_rows_of_a_class_can_be_left_out_without_smoothing():
    x = np.random.default_rng(0).normal(size=(6, 3))
    for densities in ("normal", "auto"):
        model = NaiveBayesClassifier(densities, var_smoothing=0.0).fit(x, [0, 0, 1, 1, 2, 2])
        assert np.isfinite(model.predict_proba(x)).all()


# -- batches ---------------------------------------------------------------------------------------


def in_batches(model, number):
    for part in np.array_split(np.random.default_rng(0).permutation(len(Y)), number):
        model.partial_fit(X[part], Y[part], classes=[0, 1, 2])
    return model


def test_batches_of_normal_densities_give_the_model_of_all_rows():
    model = in_batches(NaiveBayesClassifier("normal", power=1.0), 7)
    whole = NaiveBayesClassifier("normal", power=1.0).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(model.class_count_, [50, 50, 50])


@pytest.mark.parametrize("number", [1, 7, 30, 150])
def test_the_power_of_batches_is_a_good_one(number):
    model = in_batches(NaiveBayesClassifier("normal"), number)
    best = NaiveBayesClassifier("normal").fit(X, Y)
    assert model.power_ > 0.3
    assert log_loss(Y, model.predict_proba(X)) < log_loss(Y, best.predict_proba(X)) + 0.02


def test_batches_go_on_where_a_fit_ended():
    first = np.arange(len(Y)) % 3 > 0
    fitted = NaiveBayesClassifier().fit(X[first], Y[first])
    batched = NaiveBayesClassifier().partial_fit(X[first], Y[first], classes=[0, 1, 2])
    for model in (fitted, batched):
        model.partial_fit(X[~first], Y[~first])
    np.testing.assert_array_equal(fitted.predict_proba(X), batched.predict_proba(X))
    assert fitted.power_ == batched.power_


def test_a_power_that_is_given_between_batches_holds_from_then_on():
    model = NaiveBayesClassifier(power=1.0).fit(X[::2], Y[::2])
    model.set_params(power=0.5).partial_fit(X[1::2], Y[1::2])
    assert model.power_ == 0.5
    model.set_params(power="auto").partial_fit(X, Y)
    assert model.power_ in POWERS


def test_losses_are_forgotten_when_rows_have_become_many():
    step = np.ones(len(POWERS))
    judged = PowerLosses.empty().add_batch(step, 100.0).add_batch(step, 120.0)
    assert (judged.older[0], judged.recent[0]) == (0, 2)
    judged = judged.add_batch(step, 200.0)
    assert (judged.older[0], judged.recent[0]) == (2, 1)
    judged = judged.add_batch(step, 300.0)
    assert (judged.older[0], judged.recent[0]) == (1, 1)
    judged = judged.add_batch(step, 2000.0)
    assert (judged.older[0], judged.recent[0]) == (0, 1)


def in_pieces(model, X, y, *bounds, weight=None):
    for first, last in zip((0, *bounds), (*bounds, len(y)), strict=True):
        part = slice(first, last)
        own = None if weight is None else weight[part]
        model.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=own)
    return model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["pandas", "polars", "objects", "numbers"])
def test_batches_learn_the_categories_that_come_up_later(kind, weighted):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    code = np.sort((rng.integers(0, 4, 200) + 3 * y) % 7)[::-1]  # other ones in each batch
    names = np.array(["", "b", "a", "c", "nan", "0", None], dtype=object)[code]
    names[:20] = None
    x = rng.normal(size=200)
    X = {
        "pandas": pd.DataFrame({"x": x, "a": names}),
        "polars": pl.DataFrame({"x": x, "a": names.tolist()}),
        "objects": np.array([x, names], dtype=object).T,
        "numbers": np.column_stack([x, np.where(names == None, np.nan, code)]),  # noqa: E711
    }[kind]
    weight = rng.integers(0, 3, 200).astype(float) if weighted else None
    chosen = [1] if kind == "numbers" else "from_dtype"
    model = NaiveBayesClassifier(["normal", "auto"], power=1.0, categorical_features=chosen)
    whole = clone(model).fit(X, y, weight)
    batched = in_pieces(clone(model), X, y, 20, 60, 110, weight=weight)
    assert sorted(batched.categories_.names[1]) == list(whole.categories_.names[1])
    np.testing.assert_allclose(batched.predict_proba(X), whole.predict_proba(X), rtol=1e-12)
    for i in range(0, 200, 20):
        alone = batched.predict_proba(X.iloc[[i]] if kind == "pandas" else X[i : i + 1])
        np.testing.assert_array_equal(alone[0], batched.predict_proba(X)[i])
    # Rows of all batches are known by the codes that their categories have kept.
    known = np.isin(hash_samples(batched._encode_new_rows(X)), batched.sample_hashes_)
    assert known[weight > 0 if weighted else slice(None)].all()


def test_categories_of_later_batches_are_saved(tmp_path):
    X = pd.DataFrame({"a": ["b", "b", "c", "a"]})
    model = NaiveBayesClassifier(power=1.0).partial_fit(X[:2], [0, 1], classes=[0, 1])
    assert model.categories_.names == (("b",),)
    before = model.predict_proba(X)
    with pytest.raises(
        ValueError, match="must have categories that are text, as in the fit, got numbers"
    ):
        model.partial_fit(pd.DataFrame({"a": pd.Categorical([1, 2])}), [0, 1])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(X.assign(c="c"), [0, 1, 0, 1])
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.partial_fit(X[2:], [0, 1])
    assert model.categories_.names == (("b", "a", "c"),)
    save(model, tmp_path / "naive.model")
    again = load(tmp_path / "naive.model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.partial_fit(pd.DataFrame({"a": ["0"]}), [0])
    assert again.categories_.names == (("b", "a", "c", "0"),)


def test_the_first_batch_fixes_edges_and_densities():
    frame, y = mixed()
    model = NaiveBayesClassifier(power=1.0).partial_fit(frame[:100], y[:100], classes=[0, 1])
    edges, chosen = model.densities_[2].edges, kinds(model)
    later = frame[100:].assign(city="Essen")
    model.partial_fit(later, y[100:])
    np.testing.assert_array_equal(model.densities_[2].edges, edges)
    assert model.categories_.names[1][-1] == "Essen"
    assert kinds(model) == chosen
    assert model.densities_[1].counts[:, -1].sum() == 200
    assert model.densities_[2].table.counts.sum() == 300
    fresh = NaiveBayesClassifier(chosen, power=1.0)
    fresh.partial_fit(frame[:100], y[:100], classes=[0, 1])
    fresh.partial_fit(later[:50], y[100:150]).partial_fit(later[50:], y[150:])
    np.testing.assert_allclose(fresh.predict_proba(frame), model.predict_proba(frame), rtol=1e-9)


def test_a_class_without_rows_yet_has_no_posterior():
    model = NaiveBayesClassifier("normal").partial_fit(X[:100], Y[:100], classes=[0, 1, 2])
    np.testing.assert_array_equal(model.predict_proba(X)[:, 2], 0)
    model.partial_fit(X[100:], Y[100:])
    assert model.score(X, Y) > 0.9


def test_batches_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        NaiveBayesClassifier().partial_fit(X, Y)
    with pytest.raises(ValueError, match="needs all rows at once"):
        NaiveBayesClassifier(class_weight="balanced").partial_fit(X, Y, classes=[0, 1, 2])
    model = NaiveBayesClassifier().partial_fit(X, Y, classes=[0, 1, 2])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="y must hold classes among"):
        model.partial_fit(X, Y + 1)
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_array_equal(model.predict_proba(X), before)


# -- explanations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_contributions_sum_to_the_posterior(power):
    frame, y = mixed()
    model = NaiveBayesClassifier(power=power).fit(frame, np.where(y == 1, "yes", "no"))
    explanation = model.explain(frame)
    assert explanation.feature_names == ("size", "city", "gain")
    assert (explanation.output_names, explanation.scale) == (("yes",), "raw score")
    odds = np.diff(model.predict_log_proba(frame))
    np.testing.assert_allclose(explanation.prediction, odds, rtol=1e-12, atol=1e-12)
    three = NaiveBayesClassifier(power=power).fit(X, Y)
    scores = three.explain(X).prediction
    np.testing.assert_allclose(softmax(scores, axis=1), three.predict_proba(X), atol=1e-12)


def test_missing_and_unknown_values_contribute_nothing():
    frame, y = mixed()
    model = NaiveBayesClassifier().fit(frame, y)
    row = pd.DataFrame({"size": [0.5], "city": ["Essen"], "gain": [np.nan]})
    explanation = model.explain(row)
    assert explanation.contributions[0, 0, 0] != 0
    np.testing.assert_array_equal(explanation.contributions[0, 0, 1:], 0)
    assert explanation.values[0, 1] == "Essen"


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"densities": "gamma"}, "'densities' parameter"),
        ({"densities": ["normal"] * 3 + ["gamma"]}, "densities must be among .* got 'gamma'"),
        ({"densities": ["normal"]}, "one entry for each of 4 features, got 1"),
        ({"densities": {"size": "normal"}}, "X has no feature names"),
        ({"bins": 0}, "'bins' parameter"),
        ({"bins": "many"}, "'bins' parameter"),
        ({"alpha": 0.0}, "'alpha' parameter"),
        ({"var_smoothing": -1.0}, "'var_smoothing' parameter"),
        ({"power": 2.0}, "'power' parameter"),
        ({"priors": [0.5, 0.5]}, r"priors must have shape \(3,\), .*got \(2,\)"),
        ({"priors": [0.5, 0.5, 0.5]}, "must sum to 1, got the sum 1.5"),
        ({"priors": [1.5, -0.5, 0.0]}, "must be non-negative"),
        ({"priors": [np.nan, 0.5, 0.5]}, "must be non-negative"),
        ({"priors": [0.5, 0.5, 0.0]}, r"positive for classes with training rows, got 0 for \[2\]"),
        (
            {"priors": [1 / 3] * 3, "class_weight": "balanced"},
            "priors must be None if class_weight",
        ),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        NaiveBayesClassifier(**parameters).fit(X, Y)


def test_bad_densities_of_a_frame_are_refused():
    frame, y = mixed()
    with pytest.raises(ValueError, match=r"feature names among .* got \['length'\]"):
        NaiveBayesClassifier({"length": "normal"}).fit(frame, y)
    with pytest.raises(ValueError, match="categorical feature 'city'"):
        NaiveBayesClassifier("normal").fit(frame, y)


def test_bad_weights_and_rows_are_refused():
    with pytest.raises(ValueError, match="Negative values"):
        NaiveBayesClassifier().fit(X, Y, sample_weight=-np.ones(len(Y)))
    with pytest.raises(ValueError, match=r"at least one (non-zero|row)"):
        NaiveBayesClassifier().fit(X, Y, sample_weight=np.zeros(len(Y)))
    with pytest.raises(ValueError, match="positive for at least one row"):
        NaiveBayesClassifier(class_weight={0: 0, 1: 0, 2: 0}).fit(X, Y)
    with pytest.raises(ValueError, match="infinity"):
        NaiveBayesClassifier().fit(np.full_like(X, np.inf), Y)
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().explain(X)


def test_a_feature_that_does_not_vary_needs_smoothing():
    table = np.column_stack([X[:, 0], np.where(Y == 1, 1.0, X[:, 1])])
    with pytest.raises(ValueError, match=r"feature 'x\[1\]' is constant in class"):
        NaiveBayesClassifier("normal", var_smoothing=0.0).fit(table, Y)
    assert NaiveBayesClassifier("normal").fit(table, Y).score(table, Y) > 0.6


def test_copies_and_searches():
    model = NaiveBayesClassifier().fit(X, Y)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    grid = {"densities": ["auto", "normal"], "power": [1.0, "auto"]}
    assert GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, Y).best_score_ > 0.9


def test_the_best_power_has_the_smallest_loss_on_older_and_recent_rows():
    older, recent = np.ones(len(POWERS)), np.ones(len(POWERS))
    older[3], recent[5] = 0.0, 0.5
    assert PowerLosses(10.0, older, recent).best_power == POWERS[3]
    assert PowerLosses(10.0, np.ones_like(older), np.ones_like(older)).best_power == 1.0
