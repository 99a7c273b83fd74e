"""Certificates without a split: against all prunings with all root fragments, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import certree
import reference
from certree import Dyadic, Grid, NodeStats, PrunedTreeClassifier
from certree.certificates import certify_fixed_box, fixed_box, lowest_fixed_box
from certree.certificates.fixed_box import FixedBox
from certree.certificates.inequalities import bounds
from certree.grow import dyadic_grid, dyadic_resolution
from certree.prunings import spatially_adaptive
from certree.weights.node_weights import make_pruning

UNIT = [[0, 0], [1, 1]]


def diagonal(n, seed=0):
    X = np.random.default_rng(seed).random((n, 2))
    return X, (X.sum(axis=1) > 1).astype(int)


def uncapped(certificate):
    """The bound before it is cut at 1, term by term."""
    risk, sizes, roots, leaves = certificate.observed
    n, nats = certificate.n, certificate.complexity + math.log(3 / certificate.delta)
    return (
        risk
        + math.sqrt(48 * math.log(2 * n) / n) * sizes
        + math.sqrt(24 * nats / n) * roots
        + 2 * leaves * nats / n
    )


@pytest.mark.parametrize(
    ("power", "expected"), [(10, 1.55), (14, 0.625), (18, 0.281)], ids=["2^10", "2^14", "2^18"]
)
def test_the_values_on_a_diagonal(power, expected):
    """The square, no noise, the resolution of Theorem 2, and rule (2)'s pruning."""
    X, y = diagonal(2**power)
    halvings = dyadic_resolution(2**power, 2)
    fixed = fixed_box(dyadic_grid([0, 0], [1, 1], 2 * halvings), X, y, UNIT)
    assert fixed.log_cells == pytest.approx(2 * math.log(2**halvings))
    pruning = spatially_adaptive(
        fixed.tree, fixed.stats, log_cells=fixed.log_cells, count_empty=True
    )
    certificate = certify_fixed_box(fixed, pruning)
    assert uncapped(certificate) == pytest.approx(expected, abs=5e-3 if power == 10 else 5e-4)
    assert certificate.bound == pytest.approx(min(uncapped(certificate), 1))
    lowest = certify_fixed_box(fixed, lowest_fixed_box(fixed))
    assert lowest.bound <= certificate.bound


def drawn(seed, p, halvings, n):
    rng = np.random.default_rng(seed)
    tree = dyadic_grid([0] * p, [1] * p, p * halvings)
    X = rng.random((n, p)) ** rng.choice([1, 3])
    y = ((X[:, 0] > 0.4) ^ (rng.random(n) < rng.choice([0, 0.2]))).astype(int)
    return fixed_box(tree, X, y, [[0] * p, [1] * p])


@given(
    st.integers(0, 10**6),
    st.sampled_from([(1, 1), *2 * [(1, 2)], *2 * [(2, 1)], (1, 3)]),
    # Of few rows and of so many that other prunings than the root are worth it.
    st.sampled_from([1, 20, 3000, 40_000]),
    st.sampled_from([0.5, 0.05, 1e-6]),
)
def test_the_bound_is_the_least_over_all_fragments_and_the_pruning_over_all_prunings(
    seed, shape, n, delta
):
    p, halvings = shape
    fixed = drawn(seed, p, halvings, n)
    tree, stats = fixed.tree, fixed.stats
    lowest = lowest_fixed_box(fixed, delta)
    least, of_lowest = np.inf, None
    for pruning in reference.enumerate_prunings(tree):
        nodes = {v for v, _ in pruning}
        inner = {u for v in nodes for u in reference.find_path(tree, v)[:-1]}
        weights = make_pruning(tree, np.isin(np.arange(tree.n_nodes), [*inner]))
        assert {*np.flatnonzero(weights.weight)} == nodes
        literal = reference.compute_resolvability(
            tree, pruning, stats.n, stats.errors, 2**halvings, delta
        )
        certificate = certify_fixed_box(fixed, weights, delta)
        assert uncapped(certificate) == pytest.approx(literal, rel=1e-9)
        least = min(least, literal)
        if (weights.weight == lowest.weight).all():
            of_lowest = literal
    assert of_lowest == pytest.approx(least, rel=1e-9)


def test_many_rows_are_worth_fragments_of_several_leaves():
    """Rows in a small corner alone: a fragment pays less where it is fine only there."""
    tree = dyadic_grid([0], [1], 8)
    rng = np.random.default_rng(0)
    X = np.concatenate([0.5 + rng.random(10**6) / 2, rng.random(2000) / 2])[:, None]
    y = ((X[:, 0] < 0.5) & (X[:, 0] * 64 % 2 < 1)).astype(int)
    fixed = fixed_box(tree, X, y, [[0], [1]])
    finest = certree.prunings.prune(tree, fixed.stats.errors)
    assert finest.expected_leaves > 30
    certificate = certify_fixed_box(fixed, finest)
    assert certificate.observed[3] == 2
    at_the_root = (0.0, math.sqrt(finest.expected_leaves), 1.0, 1.0)
    assert certificate.bound < bounds.root_fragment(
        *at_the_root, fixed.n, fixed.log_cells, math.log(0.05)
    )


def test_a_certificate_can_be_read_at_other_probabilities():
    X, y = diagonal(2**16)
    fixed = fixed_box(dyadic_grid([0, 0], [1, 1], 6), X, y, UNIT)
    certificate = certify_fixed_box(fixed, lowest_fixed_box(fixed))
    assert certificate.at(0.05).bound == certificate.bound
    assert certificate.at(0.01).bound > certificate.bound
    # Another fragment may be better there, as it is chosen for one probability.
    assert (
        certificate.at(0.01).bound >= certify_fixed_box(fixed, lowest_fixed_box(fixed), 0.01).bound
    )
    half = certify_fixed_box(fixed, lowest_fixed_box(fixed, 0.1, 0.5), 0.1, 0.5)
    assert half.bound == pytest.approx(certificate.bound)
    assert certificate.complexity == fixed.log_cells
    assert sum(
        (certificate.parts.observed, certificate.parts.complexity, certificate.parts.confidence)
    ) == pytest.approx(certificate.bound)
    target = certificate.risk + 0.05
    needed = certificate.n_samples_needed(target)
    at = (certificate.complexity, certificate.log_delta)
    assert bounds.root_fragment(*certificate.observed, needed, *at) <= target
    assert bounds.root_fragment(*certificate.observed, needed - 1, *at) > target
    assert "the 65,536 rows that label, prune and certify, this tree's error" in str(certificate)


def test_trees_that_rows_have_grown_are_refused():
    X, y = diagonal(300)
    for tree in (
        certree.grow_cart(X, y),
        certree.grow_kd(X, max_depth=4),
        certree.grow_dyadic(X, max_depth=4, expand=True),
        dyadic_grid([0, 0], [1, 1.5], 4),
    ):
        with pytest.raises(ValueError, match="tree must be the grid that dyadic_grid makes"):
            fixed_box(tree, X, y, UNIT)
    with pytest.raises(ValueError, match="its depth must be a multiple of 2, got 5"):
        fixed_box(dyadic_grid([0, 0], [1, 1], 5), X, y, UNIT)


def test_bad_input():
    X, y = diagonal(300)
    tree = dyadic_grid([0, 0], [1, 1], 4)
    fixed = fixed_box(tree, X, y, UNIT)
    with pytest.raises(ValueError, match=r"y must lie in 0 \.\. 1, got 0 \.\. 2"):
        fixed_box(tree, X, 2 * y, UNIT)
    with pytest.raises(ValueError, match=r"box must have shape \(2, 2\)"):
        fixed_box(tree, X, y, [0, 1])
    counts, label, box = fixed.stats.counts, fixed.stats.label, np.array(UNIT, dtype=float)
    for stats, words in (
        (NodeStats(counts / 2, label), "stats must count each row once"),
        (NodeStats(0 * counts, 0 * label), "and at least one row"),
        (NodeStats(counts, 1 - label), "the majority class of each node"),
        (NodeStats(np.column_stack([counts, 0 * counts]), label), "2 classes, got 4"),
        (NodeStats(counts[:1], label[:1]), "stats has 1 nodes"),
    ):
        with pytest.raises(ValueError, match=words):
            FixedBox(tree, stats, box)
    posterior = certree.pac_bayes(tree, fixed.stats, 0.1, 0.0)
    with pytest.raises(ValueError, match="pruning must have weights 0 and 1"):
        certify_fixed_box(fixed, posterior)
    for certify in (
        lambda **given: certify_fixed_box(fixed, lowest_fixed_box(fixed), **given),
        lambda **given: lowest_fixed_box(fixed, **given),
    ):
        for delta in (0.0, 1.0, -1.0, float("nan")):
            with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
                certify(delta=delta)
        for share in (0.0, 1.5):
            with pytest.raises(ValueError, match="share must lie in"):
                certify(share=share)


# -- of a fit --------------------------------------------------------------------------------------


def test_a_fit_on_a_grid_is_certified_by_its_own_rows():
    X, y = diagonal(2**15)
    names = np.array(["below", "above"])[y]
    for settings, halvings, prune in (
        (
            {"grower": Grid(UNIT, resolution="paper"), "rule": "spatially-adaptive"},
            dyadic_resolution(2**15, 2),
            lambda fixed: spatially_adaptive(
                fixed.tree, fixed.stats, 0.1, log_cells=fixed.log_cells, count_empty=True
            ),
        ),
        (
            {"grower": Grid(UNIT, resolution="paper"), "rule": "square-root"},
            dyadic_resolution(2**15, 2, 1 / 3),
            lambda fixed: certree.prunings.square_root_penalised(
                fixed.tree, fixed.stats, 0.1, count_empty=True
            ),
        ),
        (
            {"grower": Grid(UNIT), "max_depth": 6},
            3,
            lambda fixed: certree.prunings.cost_complexity(fixed.tree, fixed.stats, 0.1),
        ),
    ):
        model = PrunedTreeClassifier(alpha=0.1, **settings).fit(X, names)
        certificate = model.certify_fit(X, names, 0.1)
        assert certificate.risk == np.mean(model.predict(X) != names)
        # Its classes are in the order of their names.
        tree = dyadic_grid([0, 0], [1, 1], 2 * halvings)
        fixed = fixed_box(tree, X, 1 - y, UNIT)
        assert certificate == certify_fixed_box(fixed, prune(fixed), 0.1)
        assert model.get_n_leaves() > 4


def test_a_price_that_was_tuned_is_certified_too_and_so_is_a_single_cell():
    X, y = diagonal(600)
    tuned = PrunedTreeClassifier(Grid(UNIT, resolution="paper"), rule="square-root", random_state=0)
    assert tuned.fit(X, y).certify_fit(X, y).risk == np.mean(tuned.predict(X) != y)
    dear = tuned.set_params(alpha=1.0).fit(X, y)
    assert dear.get_n_leaves() == 1
    assert dear.certify_fit(X, y).bound == 1


def test_fits_that_their_rows_cannot_certify_are_refused():
    X, y = diagonal(600)

    def fitted(grower=None, X=X, y=y, weight=None, **settings):
        grower = Grid(UNIT, resolution="paper") if grower is None else grower
        model = PrunedTreeClassifier(grower, rule="square-root", alpha=0.01, **settings)
        return model.fit(X, y, sample_weight=weight)

    for grower in ("cart", "kd", Dyadic(resolution="paper")):
        with pytest.raises(ValueError, match="rows do not determine the tree"):
            fitted(grower).certify_fit(X, y)
    coded = np.round(3 * X)
    with pytest.raises(ValueError, match="rows do not determine the tree"):
        fitted(Grid([[0, 0], [3, 3]]), coded, categorical_features=[0]).certify_fit(coded, y)
    model = fitted()
    for rows, classes in ((X[1:], y[1:]), (X, 1 - y)):
        with pytest.raises(ValueError, match="must be the 600 training rows of the fit"):
            model.certify_fit(rows, classes)
    weight = np.where(y == 1, 1.6, 0.4)
    with pytest.raises(ValueError, match="training rows of the fit, all of weight 1"):
        fitted(weight=weight).certify_fit(X, y)
    with pytest.raises(ValueError, match="training rows of the fit, all of weight 1"):
        fitted(class_weight={0: 1, 1: 3}).certify_fit(X, y)
    with pytest.raises(ValueError, match="its depth must be a multiple of 2, got 5"):
        fitted(Grid(UNIT), max_depth=5).certify_fit(X, y)
    with pytest.raises(ValueError, match="y must hold classes among"):
        model.certify_fit(X, y + 1)
    with pytest.raises(ValueError, match=r"y must have shape \(600,\) and 2 classes"):
        model.certify_fit(X, y[1:])
    three = y + (X[:, 0] > 0.9)
    with pytest.raises(ValueError, match=r"and 2 classes, got \(600,\) and 3"):
        fitted(y=three).certify_fit(X, three)
    for delta in (0.0, 1.0):
        with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
            model.certify_fit(X, y, delta)
    with pytest.raises(NotFittedError):
        PrunedTreeClassifier(Grid(UNIT)).certify_fit(X, y)
