"""Spectra of trees, compared with sums over all rows, and their norms and influences."""

import copy
import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import reference
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    Tree,
    TreeForestClassifier,
    TreeForestRegressor,
    pac_bayes,
)
from certree.boolean import (
    Bits,
    Sparsified,
    Spectrum,
    held_out_error,
    sparsify,
    sparsify_as_proven,
    spectrum,
    spectrum_of_values,
    walsh_hadamard,
)
from certree.boolean.sets import enumerate_sets, pack_indicators, unpack_indicators
from certree.certificates.inequalities.bounds import empirical_bernstein
from strategies import bit_trees, make_complete_tree, trees, trees_and_stats

N = 5
CUBE = np.array(reference.enumerate_bits(N), dtype=float)
MEANS = st.lists(st.floats(-0.875, 0.875, width=16), min_size=N, max_size=N)


def dense(found, output=0):
    """Return the coefficients of all sets of up to 63 bits, indexed by the number of the set."""
    table = np.zeros(2 ** len(found.bits))
    table[found.masks[:, 0].astype(np.int64)] = found.coefficients[:, output]
    return table


# -- trees -----------------------------------------------------------------------------------------


@given(bit_trees(N), MEANS)
def test_a_tree_has_the_coefficients_of_its_values_on_the_cube(tree, mean):
    values = reference.sum_paths(*tree, CUBE)
    found = spectrum(tree, mean=mean)
    for k in range(2):
        expected = reference.compute_coefficients(values[:, k], mean)
        np.testing.assert_allclose(dense(found, k), expected, atol=2e-14)
    np.testing.assert_allclose(found.evaluate(CUBE), values, atol=1e-13)


@given(bit_trees(N), MEANS)
def test_squares_add_up(tree, mean):
    found = spectrum(tree, mean=mean)
    weight = [reference.compute_probability(bits, mean) for bits in CUBE.astype(int)]
    square = (reference.sum_paths(*tree, CUBE) ** 2).sum(axis=1)
    assert found.squared_norm == pytest.approx(np.dot(weight, square), rel=1e-9, abs=1e-13)
    assert found.variance <= found.squared_norm
    assert np.abs(found.evaluate(CUBE)).max() <= found.sup_norm_bound + 1e-12


@given(bit_trees(N), bit_trees(N), st.floats(-3, 3))
def test_spectra_add_up_as_functions_do(one, other, factor):
    f, g = spectrum(one), spectrum(other)
    both = f + factor * g - g
    expected = f.evaluate(CUBE) + (factor - 1) * g.evaluate(CUBE)
    np.testing.assert_allclose(both.evaluate(CUBE), expected, atol=1e-12)
    assert (f - f).sparsity == 0
    # By Parseval, the mean product of two functions is the product of their coefficients.
    inner = ((f + g).squared_norm - f.squared_norm - g.squared_norm) / 2
    product = (f.evaluate(CUBE) * g.evaluate(CUBE)).sum(axis=1).mean()
    assert inner == pytest.approx(product, abs=1e-11)


@given(bit_trees(N), MEANS, st.integers(0, N))
def test_a_limited_degree_equals_the_truncated_spectrum(tree, mean, degree):
    limited, whole = spectrum(tree, degree, mean=mean), spectrum(tree, mean=mean)
    np.testing.assert_array_equal(limited.masks, whole.truncate(degree).masks)
    np.testing.assert_array_equal(limited.coefficients, whole.truncate(degree).coefficients)


@given(bit_trees(N))
def test_both_codings_have_the_same_spectrum_up_to_signs(tree):
    signed = replace(tree[0], threshold=np.zeros(tree[0].n_nodes)), tree[1]
    found, plain = spectrum(signed, coding="-1/+1"), spectrum(tree, coding="0/1")
    np.testing.assert_allclose(found.evaluate(2 * CUBE - 1), plain.evaluate(CUBE), atol=1e-13)
    # x is -1 where the feature is -1, but where the feature is 1 in the other coding.
    flipped = (-1.0) ** plain.sizes[:, None] * plain.coefficients
    np.testing.assert_allclose(found.coefficients, flipped, atol=1e-13)


@given(trees(max_inner=6, n_features=2, max_chain=1), st.integers(0, 2**32 - 1))
def test_numbers_have_a_bit_for_each_threshold(tree, seed):
    rng = np.random.default_rng(seed)
    values, X = rng.normal(size=(tree.n_nodes, 1)), rng.integers(-4, 5, (40, 2)).astype(float)
    found = spectrum((tree, values), coding="thresholds")
    np.testing.assert_allclose(found.evaluate(X), reference.sum_paths(tree, values, X), atol=1e-12)
    inner = np.flatnonzero(~tree.is_leaf)
    compared = {(int(tree.feature[v]), float(tree.threshold[v])) for v in inner}
    bits = zip(found.bits.feature.tolist(), found.bits.threshold.tolist(), strict=True)
    assert {*bits} == (compared or {(0, 0.0)})


@given(trees_and_stats(n_classes=3, n_features=4, max_inner=6))
def test_node_weights_vote_as_all_prunings_do(tree_and_stats):
    tree, stats = tree_and_stats
    tree = replace(tree, threshold=np.where(tree.is_leaf, 0.0, 0.5))
    posterior = pac_bayes(tree, stats, 0.3, 0.2)
    votes = posterior.weight[:, None] * np.eye(3)[stats.label]
    X = CUBE[:16, :4]
    found = spectrum((tree, votes)).evaluate(X)
    np.testing.assert_allclose(found, reference.sum_paths(tree, votes, X), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def planted(n=400, p=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, p))
    return X, (X[:, 0] ^ X[:, 1]) + (X[:, 2] & X[:, 3]) + (rng.random(n) < 0.1)


CLASSIFIERS = [
    (PACBayesTreeClassifier(), "predict_proba"),
    (CertifiedTreeClassifier(duplicates="genuine", random_state=0), "predict_proba"),
    (TreeForestClassifier(10, leaves="plain", random_state=0), "predict_proba"),
    (BoostedTreesClassifier(max_iter=8), "decision_function"),
    (AdaBoostTreeClassifier(n_estimators=5, max_depth=2), "decision_function"),
    (AdaBoostTreeClassifier(n_estimators=5, max_depth=20), "decision_function"),
    (DecisionTreeClassifier(random_state=0), "predict_proba"),
    (RandomForestClassifier(5, random_state=0), "predict_proba"),
]
REGRESSORS = [
    PACBayesTreeRegressor(),
    TreeForestRegressor(10, random_state=0),
    BoostedTreesRegressor(max_iter=8),
    DecisionTreeRegressor(max_depth=4, random_state=0),
]


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: str(model)[:40])
@pytest.mark.parametrize("coding", ["0/1", "-1/+1"])
def test_spectra_equal_the_outputs_of_classifiers(model, n_classes, coding):
    estimator, method = copy.deepcopy(model)
    X, y = planted()
    X, y = (X if coding == "0/1" else 2 * X - 1), np.minimum(y, n_classes - 1)
    estimator.fit(X, y)
    found = spectrum(estimator, coding=coding)
    outputs = getattr(estimator, method)(X)
    # Forests round the values of leaves.
    np.testing.assert_allclose(found.evaluate(X), outputs.reshape(len(X), -1), atol=1e-8)
    if len(found) > 1:
        np.testing.assert_array_equal(spectrum(estimator).masks, found.masks)
        assert spectrum(estimator).bits.coding == coding


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda model: type(model).__name__)
def test_spectra_equal_the_predictions_of_regressors(estimator):
    X, y = planted()
    estimator.fit(X, y.astype(float))
    np.testing.assert_allclose(
        spectrum(estimator).evaluate(X)[:, 0], estimator.predict(X), atol=1e-12
    )


def test_extra_trees_draw_thresholds_between_the_values():
    X, y = planted()
    model = ExtraTreesRegressor(5, max_depth=4, random_state=0).fit(X, y)
    by_name = spectrum(model, coding="0/1")
    np.testing.assert_allclose(by_name.evaluate(X)[:, 0], model.predict(X), atol=1e-12)
    assert len(by_name.bits) == 7 < len(spectrum(model).bits)


def test_a_forest_with_a_power_has_the_average_before_it():
    X, y = planted()
    model = TreeForestClassifier(20, random_state=0).fit(X, y)
    model.leaves_ = model.leaves_._replace(power=2.0)
    outputs = spectrum(model).evaluate(X)
    np.testing.assert_array_equal(model.classes_[outputs.argmax(axis=1)], model.predict(X))
    squared = outputs**2 / (outputs**2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(squared, model.predict_proba(X), atol=1e-8)


def test_scores_without_a_learner_are_the_start():
    X, y = np.zeros((8, 2)), [0, 1] * 4
    for labels in (y, [*y[:-1], 2]):
        model = AdaBoostTreeClassifier().fit(X, labels)
        outputs = model.decision_function(X).reshape(8, -1)
        np.testing.assert_allclose(spectrum(model).evaluate(X), outputs, atol=1e-12)


def test_numeric_tables_have_exact_values():
    X, y = load_iris(return_X_y=True)
    model = PACBayesTreeClassifier().fit(X, y)
    found = spectrum(model)
    np.testing.assert_allclose(found.evaluate(X), model.predict_proba(X), atol=1e-12)
    X, y = load_diabetes(return_X_y=True)
    boosted = BoostedTreesRegressor(max_iter=10, max_depth=3).fit(X, y)
    np.testing.assert_allclose(spectrum(boosted).evaluate(X)[:, 0], boosted.predict(X), atol=1e-9)


@pytest.mark.threads
def test_threads_change_no_bit():
    X, y = planted(p=20)
    model = TreeForestRegressor(30, max_depth=6, random_state=0).fit(X, y)
    serial, parallel = spectrum(model), spectrum(model, n_jobs=2)
    np.testing.assert_array_equal(serial.masks, parallel.masks)
    np.testing.assert_array_equal(serial.coefficients, parallel.coefficients)
    np.testing.assert_array_equal(serial.evaluate(X), serial.evaluate(X, n_jobs=2))
    values = np.random.default_rng(0).normal(size=2**15)
    np.testing.assert_array_equal(walsh_hadamard(values), walsh_hadamard(values, n_jobs=2))


def build_chain(n_bits):
    """Build a tree that tests one bit after the other as long as they are 1."""
    m = 2 * n_bits + 1
    left = np.where(np.arange(m) % 2 == 0, np.arange(m) + 1, -1)
    left[-1] = -1
    inner = left >= 0
    feature = np.where(inner, np.arange(m) // 2, 0)
    value = np.zeros((m, 1))
    value[-1] = 1.0
    tree = Tree(feature, np.where(inner, 0.5, 0), left, np.ones(m, int), n_bits)
    return tree, value


def test_sets_may_have_more_than_64_bits_and_trees_be_too_large(monkeypatch):
    # All bits must be 1: each of the 2^n sets has the coefficient (-1)^|S| / 2^n.
    tree = build_chain(150)
    found = spectrum(tree, degree=2)
    assert found.masks.shape == (1 + 150 + 150 * 149 // 2, 3)
    np.testing.assert_allclose(found.coefficients[:, 0], (-1.0) ** found.sizes * 2.0**-150)
    assert {*found.sets()} == {s for k in range(3) for s in combinations(range(150), k)}
    monkeypatch.setattr("certree.boolean.model_spectrum._MAX_TERMS", 10_000)
    with pytest.raises(ValueError, match="more than 10000 terms: limit its degree"):
        spectrum(tree)


def test_other_models_are_refused():
    X, y = planted()
    with pytest.raises(TypeError, match="model must be a fitted tree"):
        spectrum(SVC())
    with pytest.raises(NotFittedError):
        spectrum(PACBayesTreeClassifier())
    with pytest.raises(NotFittedError):
        spectrum(RandomForestClassifier())
    with pytest.raises(TypeError, match="not fitted models"):
        spectrum(DecoratedTreeClassifier().fit(X, y))
    stumps = DecisionTreeClassifier(max_depth=1)
    with pytest.raises(ValueError, match="trees of certree"):
        spectrum(AdaBoostTreeClassifier(stumps).fit(X, y))
    with pytest.raises(ValueError, match="encode categorical features one-hot"):
        spectrum(PACBayesTreeClassifier(categorical_features=[0, 1]).fit(X, y))
    with pytest.raises(ValueError, match="one target, got 2"):
        spectrum(DecisionTreeRegressor(max_depth=2).fit(X, np.column_stack([y, y])))
    iris = DecisionTreeClassifier(max_depth=2).fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match="needs thresholds between its two values"):
        spectrum(iris, coding="0/1")
    with pytest.raises(ValueError, match="mean must"):
        spectrum(iris, mean=[1.0] * len(spectrum(iris).bits))


# -- rows ------------------------------------------------------------------------------------------


def test_rows_must_have_the_two_values():
    bits = Bits.two_valued(3)
    f = Spectrum(np.array([[0b101]], dtype=np.uint64), np.ones((1, 1)), bits)
    np.testing.assert_array_equal(f.evaluate([[0, 1, 0], [1, 1, 0], [1, 0, 1]])[:, 0], [1, -1, 1])
    np.testing.assert_array_equal(f.evaluate(np.ones((2, 3), dtype=bool))[:, 0], [1, 1])
    assert f.evaluate(np.zeros((0, 3))).shape == (0, 1)
    for wrong, message in [
        ([[0, 1, 2]], "values 0 and 1 only, got 2"),
        ([[-1, 1, 1]], "values 0 and 1 only, got -1"),
        ([[0, 1, np.nan]], "NaN"),
        ([[0, 1]], "must have 3 features, as these bits have, got 2"),
        ([0, 1, 1], "shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            f.evaluate(wrong)
    with pytest.raises(TypeError):
        f.evaluate([["a", "b", "c"]])
    number = Bits([0], [0.3], "thresholds", 1)
    with pytest.raises(ValueError, match="not every combination of such bits"):
        number.to_rows(np.ones((1, 1)))


def test_spectra_are_checked():
    bits = Bits.two_valued(3)
    masks, ones = np.array([[1], [2]], dtype=np.uint64), np.ones((2, 1))
    for wrong, message in [
        ((masks[::-1], ones, bits), "ascend"),
        ((masks[[0, 0]], ones, bits), "distinct"),
        ((masks * np.uint64(8), ones, bits), "bits 0 .. 2 only"),
        ((masks, ones * np.inf, bits), "finite"),
        ((masks, ones[:1], bits), "shape"),
        ((masks, ones, bits, [0, 0, 1.0]), "between -1 and 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            Spectrum(*wrong)
    with pytest.raises(TypeError):
        Spectrum(masks.astype(float), ones, bits)
    f = Spectrum.from_terms(masks[[1, 0, 1]], np.array([[1.0], [2.0], [3.0]]), bits)
    assert f.coefficients[:, 0].tolist() == [2.0, 4.0]
    assert (f.coefficient([1]), f.coefficient([0, 1])) == (4.0, 0.0)
    with pytest.raises(ValueError, match=r"equal bits .* and equal mean"):
        f + Spectrum(masks, ones, Bits.two_valued(3, "-1/+1"))
    with pytest.raises(ValueError, match="equal numbers of outputs to be added, got 1 and 2"):
        f + Spectrum(masks, np.ones((2, 2)), bits)
    with pytest.raises(TypeError):
        f + 1
    with pytest.raises(TypeError):
        f * "2"
    with pytest.raises(ValueError, match=r"n_features must lie in 1 \.\. 1048576, got 0"):
        Bits.two_valued(0)
    with pytest.raises(ValueError, match="at least one entry"):
        Bits([], [], "thresholds", 2)
    with pytest.raises(TypeError, match="bits must be a Bits, got 3"):
        Spectrum(masks, ones, 3)
    with pytest.raises(ValueError, match=r"must be 0, 1, ..., n_features - 1"):
        Bits([1, 0], [0.5, 0.5], "0/1", 2)
    again = pickle.loads(pickle.dumps(f))
    assert again.bits.equals(bits)
    np.testing.assert_array_equal(again.coefficients, f.coefficients)


@given(hnp.arrays(np.bool_, st.tuples(st.integers(0, 5), st.integers(1, 130))))
def test_sets_are_packed_and_unpacked(inside):
    masks = pack_indicators(inside)
    np.testing.assert_array_equal(unpack_indicators(masks, inside.shape[1]), inside)
    for row, words in zip(inside, masks, strict=True):
        assert sum(int(word) << (64 * w) for w, word in enumerate(words)) == sum(
            1 << j for j in np.flatnonzero(row).tolist()
        )


def test_all_small_sets_are_enumerated():
    found = unpack_indicators(enumerate_sets(70, 2), 70)
    sets = [tuple(np.flatnonzero(row).tolist()) for row in found]
    assert sets == [s for k in range(3) for s in combinations(range(70), k)]
    assert len(enumerate_sets(3, 9)) == 8


# -- norms and influences --------------------------------------------------------------------------


@given(bit_trees(N, n_outputs=1), MEANS)
def test_influences_are_what_single_bits_change(tree, mean):
    found = spectrum(tree, mean=mean)
    values = reference.sum_paths(*tree, CUBE)[:, 0]
    weight = np.array([reference.compute_probability(bits, mean) for bits in CUBE.astype(int)])
    for j in range(N):
        other = values[np.arange(2**N) ^ (1 << j)]
        change = weight @ ((values - other) / 2) ** 2 * (1 - mean[j] ** 2)
        assert found.influences()[j] == pytest.approx(change, abs=1e-12)
    pairs = found.pair_influences()
    np.testing.assert_allclose(np.diag(pairs), found.influences(), atol=1e-14)
    both = unpack_indicators(found.masks, N)[:, [0, 1]].all(axis=1)
    assert pairs[0, 1] == pytest.approx(found.squares[both].sum())
    assert found.total_influence() == pytest.approx(found.influences().sum())
    assert found.influences(1).sum() == pytest.approx(found.truncate(1).variance)
    assert found.noise_stability(1.0) == pytest.approx(found.squared_norm)
    assert found.noise_stability(0.0) == pytest.approx(weight @ values * (weight @ values))


@given(bit_trees(3, n_outputs=1), st.floats(0, 1))
def test_noise_stability_is_a_mean_over_bits_drawn_anew(tree, rho):
    X = np.array(reference.enumerate_bits(3), dtype=float)
    values = reference.sum_paths(*tree, X)[:, 0]
    differ = (X[:, None] != X[None]).sum(axis=2)
    probability = ((1 + rho) / 2) ** (3 - differ) * ((1 - rho) / 2) ** differ
    expected = values @ probability @ values / 8
    assert spectrum(tree).noise_stability(rho) == pytest.approx(expected, abs=1e-12)


def test_a_parity_has_one_term_and_its_text_shows_it():
    values = [1 - 2 * (bin(u).count("1") % 2) for u in range(8)]
    f = spectrum_of_values(values)
    assert [*f.sets()] == [(0, 1, 2)]
    assert (f.sparsity, f.degree, f.l1_norm, f.total_influence()) == (1, 3, 1.0, 3.0)
    assert str(f).splitlines() == [
        "1 terms of degree 3 over 3 bits, squared norm 1",
        "  +1  x[0] x[1] x[2]",
    ]
    frame = f.to_frame(["a", "b", "c"])
    assert frame.to_dict("list") == {
        "term": ["a b c"],
        "size": [3],
        "share": [1.0],
        "coefficient": [1.0],
    }
    iris = spectrum(DecisionTreeClassifier(max_depth=1).fit(*load_iris(return_X_y=True)))
    assert "[x[" in str(iris)
    assert "coefficient_2" in iris.to_frame()
    long = spectrum_of_values(np.arange(16.0) ** 3)
    assert str(long).endswith(f"... and {len(long) - 10} more")
    with pytest.raises(ValueError, match="rho"):
        f.noise_stability(2.0)
    with pytest.raises(TypeError, match="degree must be"):
        f.truncate("2")


# -- the transform ---------------------------------------------------------------------------------


@given(st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_the_transform_equals_two_loops(n, seed):
    values = np.random.default_rng(seed).normal(size=2**n)
    found = walsh_hadamard(values)
    np.testing.assert_allclose(found, reference.compute_coefficients(values, [0.0] * n), atol=1e-14)
    np.testing.assert_allclose(walsh_hadamard(found, inverse=True), values, atol=1e-14)


@pytest.mark.parametrize("n", [11, 12, 13, 14, 17])
def test_the_transform_of_many_values_follows_from_its_halves(n):
    values = np.random.default_rng(n).normal(size=2**n)
    found, half = walsh_hadamard(values), 2 ** (n - 1)
    low, high = walsh_hadamard(values[:half]), walsh_hadamard(values[half:])
    np.testing.assert_allclose(found[:half], (low + high) / 2, atol=1e-15)
    np.testing.assert_allclose(found[half:], (low - high) / 2, atol=1e-15)


@pytest.mark.parametrize("values", [[], [1.0, 2.0, 3.0], [[1.0, 2.0]], np.broadcast_to(1.0, 2**27)])
def test_the_transform_takes_powers_of_two(values):
    with pytest.raises(ValueError, match="values must have"):
        walsh_hadamard(values)


def test_a_table_of_values_has_a_bit_at_least():
    with pytest.raises(ValueError, match="two rows of one bit"):
        spectrum_of_values([1.0])


# -- fewer terms -----------------------------------------------------------------------------------


@given(bit_trees(N, n_outputs=1), st.integers(0, 20))
def test_the_error_of_fewer_terms_is_computed(tree, budget):
    f = spectrum(tree)
    kept = sparsify(f, budget=budget)
    difference = f.evaluate(CUBE) - kept.spectrum.evaluate(CUBE)
    assert len(kept.spectrum) == min(budget, len(f))
    assert kept.squared_error == pytest.approx((difference**2).mean(), abs=1e-12)
    assert np.abs(difference).max() <= kept.sup_error + 1e-12
    # Sums of squares in another order are the same to rounding.
    again = sparsify(f, error=kept.squared_error * (1 + 1e-9))
    assert len(again.spectrum) <= len(kept.spectrum)
    assert again.squared_error <= kept.squared_error * (1 + 2e-9)
    assert len(kept.spectrum) <= kept.guaranteed_terms or kept.squared_error == 0


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.4])
def test_the_theorem_holds(epsilon):
    for seed in range(10):
        tree = make_complete_tree(np.random.default_rng(seed), 12, 6)
        f = spectrum(tree)
        proven = sparsify_as_proven(f, epsilon, 64)
        assert f.l1_norm <= 64
        assert proven.squared_error <= 2 * epsilon
        assert len(proven.spectrum) <= f.l1_norm**2 / epsilon
        assert proven.spectrum.degree <= np.ceil(np.log2(64 / epsilon))
        # The guarantee is returned as it is, even if the error is far smaller.
        assert proven.guaranteed_error == 2 * epsilon
        assert proven.guaranteed_terms == pytest.approx(f.l1_norm**2 / epsilon)
        assert proven.guaranteed_degree == np.ceil(np.log2(64 / epsilon))
        # The largest terms reach the same error with no more terms.
        fewer = sparsify(f, error=2 * epsilon, n_leaves=64)
        assert len(fewer.spectrum) <= len(proven.spectrum)
        assert "squared error" in str(fewer)
    with pytest.raises(ValueError, match="has means"):
        sparsify_as_proven(spectrum(tree, mean=[0.1] * 12), epsilon, 64)


def test_a_tree_is_no_deeper_than_its_spectrum_is_large():
    f = spectrum(make_complete_tree(np.random.default_rng(0), 10, 4))
    assert f.degree <= 4
    assert f.sparsity <= 4**4
    multiples = f.coefficients * 2**3
    np.testing.assert_allclose(multiples, multiples.round(), atol=1e-12)


def test_rows_bound_the_error():
    rng = np.random.default_rng(0)
    tree = make_complete_tree(rng, 12, 4)
    kept = sparsify(spectrum(tree), budget=12)
    X = rng.integers(0, 2, (3000, 12))
    truth = spectrum(tree).evaluate(X)
    mean, bound = held_out_error(kept.spectrum, X, truth[:, 0], delta=0.05)
    clipped = np.clip(kept.spectrum.evaluate(X), -1, 1)
    assert mean == pytest.approx(((clipped - truth) ** 2).mean())
    assert mean < bound < mean + 0.2
    assert bound >= kept.squared_error * 0.5
    empty = spectrum(tree).select_terms(np.zeros(0, dtype=int))
    assert held_out_error(empty, X, truth)[0] == 1.0
    for wrong, message in [
        ({"delta": 0.0}, "delta"),
        ({"high": 0.5}, "values must lie in low .. high = -1 .. 0.5"),
        ({"low": -1e308, "high": 1e308}, "low and high must be at most"),
    ]:
        with pytest.raises(ValueError, match=message):
            held_out_error(kept.spectrum, X, truth, **wrong)
    large = replace(kept.spectrum, coefficients=np.full_like(kept.spectrum.coefficients, 1e308))
    with pytest.raises(ValueError, match="coefficients must sum up to finite float64 numbers"):
        held_out_error(large, X, truth)
    with pytest.raises(ValueError, match="equal numbers of rows, got 3000 and 2"):
        held_out_error(kept.spectrum, X, truth[:2])
    with pytest.raises(ValueError, match="at least 2 rows"):
        held_out_error(kept.spectrum, X[:1], truth[:1])


def test_sparsify_takes_either_budget_or_error():
    f = spectrum_of_values([1.0, 2.0, 3.0, 5.0])
    for wrong in ({}, {"budget": 1, "error": 0.1}, {"budget": -1}, {"error": -0.1}):
        with pytest.raises(ValueError, match=r"budget|error"):
            sparsify(f, **wrong)
    with pytest.raises(ValueError, match="positive"):
        sparsify_as_proven(f, 0.0, 4)
    assert isinstance(sparsify(f, error=0), Sparsified)
    assert sparsify(f, error=0).guaranteed_terms == np.inf
    huge = spectrum_of_values([1e300, -1e300, 1e300, 1e300])
    assert sparsify_as_proven(huge, 64.0, 4).squared_error == np.inf  # squares beyond float64


def test_empirical_bernstein_is_the_formula():
    # mean + sqrt(2 V ln(2 / delta) / n) + 7 R ln(2 / delta) / (3 (n - 1)), at zero variance.
    assert empirical_bernstein(0.0, 0.0, 4000, 4.0, np.log(0.05)) == pytest.approx(0.0086, abs=1e-4)
    with pytest.raises(ValueError, match="n must be at least 2"):
        empirical_bernstein(0.0, 0.0, 1, 1.0, -1.0)
