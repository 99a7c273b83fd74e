"""Learning spectra from queries and from examples, compared with recursions and loops."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.utils.estimator_checks import check_estimator

import reference
from certree.boolean import (
    Bits,
    FourierClassifier,
    FourierRegressor,
    Spectrum,
    held_out_error,
    kushilevitz_mansour,
    low_degree,
    sparse_transform,
    spectrum,
    spectrum_of_values,
)
from certree.boolean.kushilevitz_mansour import _PrefixSearch
from certree.boolean.query_counter import QueryCounter
from certree.boolean.sets import pack_indicators
from strategies import draw_examples, make_complete_tree, make_function


def parity(X):
    return 1.0 - 2.0 * (np.asarray(X).sum(axis=1) % 2)


# -- queries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [0.2, 0.45])
def test_the_search_finds_what_the_recursion_finds(theta):
    for seed in range(3):
        tree = make_complete_tree(np.random.default_rng(seed), 6, 3)
        values = make_function(tree)(np.array(reference.enumerate_bits(6), dtype=float))
        large = reference.find_large_sets(values, 6, theta)
        found = kushilevitz_mansour(make_function(tree), 6, theta, delta=0.01, random_state=seed)
        assert {*large} <= {*found.spectrum.sets()}
        coefficients = reference.compute_coefficients(values, [0.0] * 6)
        for members, value in zip(found.spectrum.sets(), found.spectrum.coefficients, strict=True):
            exact = coefficients[sum(1 << j for j in members)]
            assert abs(exact) >= theta / np.sqrt(2) - 1e-12
            assert abs(value[0] - exact) <= theta / 4
        assert found.is_complete
        assert "with probability 0.99" in str(found)


def test_estimates_of_prefixes_have_no_bias():
    values = np.random.default_rng(1).uniform(-1, 1, 16)
    queries = QueryCounter(
        lambda X: values[(X @ (1 << np.arange(4))).astype(int)], Bits.two_valued(4), None
    )
    search = _PrefixSearch(queries, 0.5, 1.0, 0.1, np.random.RandomState(0))
    for alpha in ([1], [0, 1], [1, 1, 0], [1, 0, 0, 1]):
        estimates = search._estimate_weights(np.array([alpha], dtype=bool), 4000)[0]
        error = 4 * estimates.std() / np.sqrt(4000)
        assert estimates.mean() == pytest.approx(
            reference.compute_prefix_weight(values, 4, alpha), abs=error
        )


def test_the_search_takes_noise_and_other_ranges():
    rng = np.random.default_rng(0)
    flips = lambda X: 3 * parity(X[:, :3]) * np.where(rng.random(len(X)) < 0.1, -1, 1)  # noqa: E731
    found = kushilevitz_mansour(flips, 20, 1.5, largest=3.0, random_state=0)
    assert [*found.spectrum.sets()] == [(0, 1, 2)]
    assert found.spectrum.coefficients[0, 0] == pytest.approx(2.4, abs=1.5 / 4)
    signed = kushilevitz_mansour(
        lambda X: -X[:, 1], 5, 0.5, coding="-1/+1", random_state=0
    ).spectrum
    assert [*signed.sets()] == [(1,)]
    assert signed.coefficients[0, 0] < 0


@pytest.mark.parametrize("n_bits", [20, 70])
@pytest.mark.parametrize("coding", ["0/1", "-1/+1"])
def test_a_sparse_function_is_found_exactly(n_bits, coding):
    rng = np.random.default_rng(n_bits)
    masks = np.unique(rng.integers(0, 2, (30, n_bits)) & rng.integers(0, 2, (30, n_bits)), axis=0)
    bits = Bits.two_valued(n_bits, coding)
    members = [tuple(np.flatnonzero(row).tolist()) for row in masks]
    truth = Spectrum.from_terms(pack_indicators(masks == 1), rng.normal(size=(len(masks), 1)), bits)
    found = sparse_transform(
        lambda X: truth.evaluate(X)[:, 0], n_bits, coding=coding, random_state=0
    )
    assert {*found.spectrum.sets()} == {*members}
    np.testing.assert_allclose(found.spectrum.coefficients, truth.coefficients, atol=1e-12)
    assert found.is_complete
    assert found.n_queries <= 5 * (n_bits + 1) * len(masks) + 300
    assert found.n_queries in [3 * (n_bits + 1) * 2**b + 272 for b in range(4, 9)]


def test_a_function_of_few_bits_is_evaluated_at_all_rows():
    values = np.random.default_rng(0).normal(size=64)
    found = sparse_transform(lambda X: values[(X @ (1 << np.arange(6))).astype(int)], 6)
    assert found.n_queries == 64 + 32  # some rows again, to see whether the function is noisy
    budget = {"budget": 64}  # which leaves no row to look again
    assert sparse_transform(lambda X: X[:, 0] * 1.0, 6, **budget).n_queries == 64
    noise = np.random.default_rng(1)
    with pytest.raises(ValueError, match="the same value whenever it gets the same row"):
        sparse_transform(lambda X: X[:, 0] + 0.1 * noise.normal(size=len(X)), 6)
    np.testing.assert_array_equal(
        found.spectrum.coefficients, spectrum_of_values(values).coefficients
    )
    start = "64 terms from 96 queries at rows of 0 and 1. The function was evaluated at all rows"
    assert str(found).startswith(start)


def test_the_text_of_a_result_states_the_values_of_the_rows():
    product = lambda X: np.prod(X[:, :2], axis=1)  # noqa: E731
    signs = sparse_transform(product, 4, coding="-1/+1")
    assert len(signs.spectrum) == 1
    assert "queries at rows of -1 and +1." in str(signs)
    assert "queries at rows of 0 and 1." in str(sparse_transform(product, 4))
    found = kushilevitz_mansour(product, 4, 0.5, coding="-1/+1", random_state=0)
    assert "queries at rows of -1 and +1." in str(found)


def test_a_budget_that_ends_first_is_reported():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(40, 40))
    dense = lambda X: np.tanh(((X @ weights) ** 2).sum(axis=1) / 400)  # noqa: E731
    found = sparse_transform(dense, 40, budget=5000, random_state=0)
    assert not found.is_complete
    assert found.n_queries <= 5000
    assert "Spectrum and function differ on at most 100.00% of all rows" in found.guarantee
    assert "the budget ended before the search did" in found.guarantee
    with pytest.raises(
        ValueError, match="budget must be at least 2256 rows for 40 features, got 500"
    ):
        sparse_transform(dense, 40, budget=500)
    with pytest.raises(
        ValueError, match=r"budget must be at least [0-9]+ to go on, got 2000: .* 1024 rows"
    ):
        kushilevitz_mansour(dense, 40, 0.5, budget=2000, random_state=0)


LEARNERS = [
    lambda f, **options: kushilevitz_mansour(f, 12, 0.3, random_state=0, **options),
    lambda f, **options: sparse_transform(f, 12, random_state=0, **options),
]


@pytest.mark.parametrize("learn", LEARNERS)
@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda _: 1.0, ValueError, "one number for each"),
        (lambda X: X, ValueError, "one number for each"),
        (lambda _: [[1.0], [2.0, 3.0]], ValueError, "rows have the same length"),
        (lambda X: np.full(len(X), "a"), TypeError, "numbers"),
        (lambda X: np.full(len(X), np.nan), ValueError, "finite"),
        ("f", TypeError, "callable"),
    ],
)
def test_functions_must_return_one_number_per_row(learn, function, error, message):
    with pytest.raises(error, match=message):
        learn(function)


@pytest.mark.parametrize("learn", LEARNERS)
def test_budget_and_delta_are_checked(learn):
    for wrong, message in [({"budget": 0}, "budget"), ({"delta": 1.0}, "delta")]:
        with pytest.raises(ValueError, match=message):
            learn(parity, **wrong)


def test_noise_and_large_values_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="the same value whenever it gets the same row"):
        sparse_transform(lambda X: parity(X) + rng.normal(size=len(X)), 30)
    with pytest.raises(ValueError, match=r"at most largest=1, got 2"):
        kushilevitz_mansour(lambda X: np.full(len(X), 2), 5, 0.5)
    with pytest.raises(ValueError, match="theta must be larger than 0"):
        kushilevitz_mansour(parity, 5, 1.5)
    with pytest.raises(ValueError, match=r"theta must be at least 0\.001 \* largest"):
        kushilevitz_mansour(parity, 5, 1e-9)
    with pytest.raises(ValueError, match=r"theta must be at least 0\.001 \* largest"):
        kushilevitz_mansour(parity, 5, np.float32(0.5), largest=1e300)


# -- examples --------------------------------------------------------------------------------------


def test_estimates_are_means():
    X, y = draw_examples(make_complete_tree(np.random.default_rng(0), 6, 3), 50, 1)
    found = low_degree(X, y, 2, keep="all").spectrum
    assert len(found) == 22
    for members, value in zip(found.sets(), found.coefficients[:, 0], strict=True):
        assert value == pytest.approx(reference.compute_mean_of_products(X, y, members), abs=1e-14)


def test_the_radius_is_hoeffding_s_for_all_sets_at_once():
    X, y = draw_examples(make_complete_tree(np.random.default_rng(0), 6, 3), 50, 1)
    found = low_degree(X, y, 2, keep="all", delta=0.1)
    largest = max(np.abs(y).max(), 1.0)
    expected = largest * np.sqrt(2 * np.log(2 * 22 / 0.1) / 50)
    assert found.radius == pytest.approx(expected, rel=1e-12)


def test_thresholds_drop_terms_that_are_noise():
    tree = make_complete_tree(np.random.default_rng(0), 20, 2)
    X, y = draw_examples(tree, 4000, 0, noise=0.1)
    few = low_degree(X, y, 3, keep="practical")
    assert {*few.spectrum.sets()} == {*spectrum(tree).sets()}
    with pytest.raises(ValueError, match="no proven bound"):
        few.error_bound(0.0)
    everything = low_degree(X, y, 3, keep="all")
    assert (everything.spectrum - 0.8 * spectrum(tree)).squared_norm > 10 * (
        few.spectrum - 0.8 * spectrum(tree)
    ).squared_norm


def test_examples_are_checked():
    X, y = np.eye(4), np.ones(4)
    for wrong, message in [
        ((X + 1, y, 1), "values 0 and 1, or -1 and 1, got 2"),
        ((X.astype(int).astype(object) + 10**400, y, 1), r"or -1 and 1, got 10+\.\.\.0+"),
        ((np.where(X, X, None), y, 1), "values 0 and 1, or -1 and 1, got None"),
        ((X - np.eye(4)[::-1], y, 1), "got -1, 0 and 1"),
        ((X, y[:3], 1), "equal numbers of rows, at least 1, got 4 and 3"),
        ((X, 2 * y, 1), "largest"),
        ((X, y, -1), "degree must be at least 0"),
        ((np.zeros((2, 3000)), y[:2], 4), "at most 16777216 sets"),
    ]:
        with pytest.raises(ValueError, match=message):
            low_degree(*wrong)
    with pytest.raises(ValueError, match=r"largest must be a finite number >= 0, at most 1e\+150"):
        low_degree(X, 1e200 * y, 1, largest=1e200)


# -- estimators ------------------------------------------------------------------------------------

METHODS = ["trees", "lasso", "omp", "low_degree", "low_degree_threshold"]
SPARSE = METHODS[:3]


@pytest.mark.parametrize("method", METHODS)
def test_numbers_whose_squares_are_infinite_are_refused(method):
    X = np.random.default_rng(0).integers(0, 2, (64, 3))
    with pytest.raises(ValueError, match=r"y must have absolute values of at most 1e\+150"):
        FourierRegressor(method).fit(X, 1e200 * X[:, 0])
    fitted = FourierRegressor(method, random_state=0).fit(X, 1e150 * X[:, 0])
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("method", SPARSE)
@pytest.mark.parametrize("coding", ["0/1", "-1/+1"])
def test_few_characters_are_found_exactly(method, coding):
    X = np.random.default_rng(0).integers(0, 2, (400, 15))
    y = 2 + parity(X[:, :2]) - 0.5 * parity(X[:, 2:5]) + 0.25 * X[:, 7]
    rows = X if coding == "0/1" else 1 - 2 * X
    model = FourierRegressor(method, random_state=0).fit(rows, y)
    assert {*model.spectrum_.sets()} == {(), (0, 1), (2, 3, 4), (7,)}
    np.testing.assert_allclose(model.predict(rows), y, atol=1e-10)
    assert model.validation_score_ == pytest.approx(1)
    assert model.spectrum_.bits.coding == coding


@pytest.mark.parametrize("method", SPARSE)
def test_the_validation_set_may_have_a_single_target_value(method):
    X = np.random.default_rng(0).integers(0, 2, (12, 3))
    found = [
        FourierRegressor(method, degree=1, random_state=seed).fit(X, X[:, 0]).validation_score_
        for seed in range(10)
    ]
    assert found == pytest.approx([1.0] * 10)


@pytest.mark.parametrize("method", SPARSE)
def test_the_unit_of_the_target_does_not_matter(method):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    plain = FourierRegressor(method, random_state=0).fit(X, y)
    for unit in (2.0**400, 2.0**-400):
        model = FourierRegressor(method, random_state=0).fit(X, y * unit)
        np.testing.assert_array_equal(model.predict(X), plain.predict(X) * unit)
        assert model.validation_score_ == plain.validation_score_


@pytest.mark.slow
def test_trees_propose_sets_above_the_degree():
    tree = make_complete_tree(np.random.default_rng(1), 30, 5)
    model = FourierRegressor(random_state=0).fit(*draw_examples(tree, 3000, 1))
    assert (model.spectrum_ - spectrum(tree)).squared_norm < 1e-20


@pytest.mark.slow
def test_parities_are_found_by_correlations_or_warned_of():
    X = np.random.default_rng(0).integers(0, 2, (1000, 25))
    model = FourierRegressor(random_state=0)
    assert [*model.fit(X, parity(X[:, :3])).spectrum_.sets()] == [(0, 1, 2)]
    with pytest.warns(UserWarning, match="more than degree=3 features together") as warned:
        model.fit(X, parity(X[:, :9]))
    assert warned[0].filename == __file__
    assert model.validation_score_ == 0
    assert [*model.spectrum_.sets()] == [()]
    noise = np.random.default_rng(1).normal(size=1000)
    with pytest.warns(UserWarning, match="y is noise"):
        FourierRegressor("omp", degree=1, random_state=0).fit(X, noise)


def test_noise_gets_few_terms():
    tree = make_complete_tree(np.random.default_rng(0), 12, 3)
    X, y = draw_examples(tree, 1000, 0, noise=0.1)
    truth = 0.8 * spectrum(tree)
    for method in SPARSE:
        model = FourierRegressor(method, random_state=0).fit(X, y)
        assert (model.spectrum_ - truth).squared_norm < 0.05
        assert len(model.spectrum_) < 60


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_classes_have_probabilities(method, n_classes):
    X = np.random.default_rng(0).integers(0, 2, (600, 10))
    y = np.array(["no", "on", "yes"])[np.minimum(X[:, 0] + (X[:, 1] & X[:, 2]), n_classes - 1)]
    model = FourierClassifier(method, random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (600, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert probabilities.min() >= 0
    assert model.score(X, y) > (0.99 if method in SPARSE else 0.9)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    scores = model.decision_function(X)
    assert scores.shape == ((600,) if n_classes < 3 else (600, 3))
    if n_classes == 2:
        np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "on", "no"))


@pytest.mark.parametrize("estimator", [FourierClassifier, FourierRegressor])
def test_predictions_of_single_rows_equal_those_of_the_table(estimator):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 8))
    y = (X[:, 0] ^ X[:, 1]) + (rng.random(200) < 0.1) * 1
    model = estimator(method="lasso", random_state=0).fit(X, y)
    predict = getattr(model, "decision_function", model.predict)
    by_row = np.concatenate([predict(X[[i]]) for i in range(200)])
    np.testing.assert_array_equal(by_row, predict(X))


def test_terms_are_limited_and_named():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (300, 4)), columns=[*"abcd"])
    y = X.to_numpy() @ [4.0, 3.0, 2.0, 1.0]
    for method in METHODS:
        model = FourierRegressor(method, max_terms=2, random_state=0).fit(X, y)
        has_features = model.spectrum_.masks.any(axis=1)
        assert len(has_features) - has_features.sum() == 1  # the constant does not count
        assert has_features.sum() == 2
    assert [*model.feature_names_in_] == [*"abcd"]
    assert "a" in model.spectrum_.to_frame(model.feature_names_in_)["term"].to_list()


def test_the_error_of_a_fit_is_bounded_by_other_rows():
    tree = make_complete_tree(np.random.default_rng(0), 20, 4)
    model = FourierRegressor(random_state=0).fit(*draw_examples(tree, 1500, 0))
    mean, bound = held_out_error(model.spectrum_, *draw_examples(tree, 4000, 1))
    assert mean < 1e-20
    assert bound == pytest.approx(0.0086, abs=1e-4)


@given(st.integers(0, 2**32 - 1))
def test_equal_seeds_give_equal_spectra(seed):
    X = np.random.default_rng(0).integers(0, 2, (100, 4))
    y = X @ [4.0, 2.0, 0.0, 0.5] + X[:, 0] * X[:, 1]
    first, second = (
        FourierRegressor("omp", random_state=seed).fit(X, y).spectrum_ for _ in range(2)
    )
    np.testing.assert_array_equal(first.coefficients, second.coefficients)


def test_features_must_have_two_values():
    X = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(float)
    for wrong, message in [
        (X + 0.5, "values 0 and 1, or -1 and 1, got"),
        (np.where(X == 0, np.nan, X), "contains NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            FourierRegressor().fit(wrong, X[:, 0])
    model = FourierRegressor("omp").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="values 0 and 1 only"):
        model.predict(2 * X - 1)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])
    with pytest.raises(NotFittedError):
        FourierClassifier().predict(X)
    before = copy.copy(model.__dict__)
    with pytest.raises(ValueError, match="at most degree=3 of 600 features, times 48 rows"):
        model.fit(np.tile(X, (1, 150)), X[:, 0])
    assert model.__dict__ == before


# The tables of scikit-learn's checks have more than two values. An estimator passes the checks that end
# before it sees the values, and refuses the others with one message.
LEARNERS_OF_BITS = [
    FourierClassifier("omp", random_state=0),
    FourierRegressor("omp", random_state=0),
]
# Checks that wrap the refusal in another error, and checks that pipelines fail as well.
HIDDEN = {"check_positive_only_tag_during_fit", "check_classifiers_one_label"}
OF_PIPELINES = {"check_estimators_overwrite_params", "check_dont_overwrite_parameters"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", LEARNERS_OF_BITS)
def test_checks_of_scikit_learn_are_passed_or_refused(estimator):
    records = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [record for record in records if record["status"] == "failed"]
    assert len(failed) < 0.7 * len(records)
    for record in failed:
        error, name = record["exception"], record["check_name"]
        refusal = str(error.__cause__ if name in HIDDEN else error)
        assert "values 0 and 1, or -1 and 1" in refusal, name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", LEARNERS_OF_BITS)
def test_checks_of_scikit_learn_are_passed_on_bits(estimator):
    records = check_estimator(make_pipeline(Binarizer(), estimator), on_fail=None, on_skip=None)
    failed = {record["check_name"] for record in records if record["status"] == "failed"}
    # In one check the target hardly depends on the bits of the numbers that it draws.
    assert failed <= OF_PIPELINES | {"check_regressors_train"}
    assert len(records) > 40


@pytest.mark.parametrize("coding", ["0/1", "-1/+1"])
def test_functions_get_rows_of_integers(coding):
    seen = []

    def parity(B):
        seen.append(B.dtype)
        bits = B if coding == "0/1" else (1 - B) // 2
        return 1 - 2 * (bits[:, 0] ^ bits[:, 2])

    for found in (
        kushilevitz_mansour(parity, 4, 0.8, coding=coding, random_state=0),
        sparse_transform(parity, 4, coding=coding, random_state=0),
    ):
        assert [*found.spectrum.sets()] == [(0, 2)]
        np.testing.assert_allclose(found.spectrum.coefficients, [[1.0]], atol=0.2)
    assert {dtype.kind for dtype in seen} == {"i"}
