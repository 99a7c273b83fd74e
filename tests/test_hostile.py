"""Whatever a parameter is given: an answer, or a sentence that says what was expected."""

import inspect
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import RandomState
from scipy import sparse

import certree
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesPosteriors,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
    Voting,
    certificates,
    count,
    grow,
    grow_cart,
    measure,
    pac_bayes,
    paper,
    prunings,
    rows,
    show,
    stats,
    votes,
    weights,
)
from certree.certificates import inequalities
from certree.certificates.fixed_box import FixedBox
from certree.certificates.posteriors import LabelledWeights
from certree.estimators.naive_bayes import densities
from certree.interface import arrays

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(np.int32)
TARGET = X[:, 0] + RNG.normal(size=40)
TREE = grow_cart(X, Y ^ (X[:, 1] > 1), max_depth=3)
STATS = count(TREE, X, Y, 2)
SHARES = stats.NodeStats(STATS.counts / 40, STATS.label)
MOMENTS = measure(TREE, X, TARGET)
LAW = pac_bayes(TREE, STATS, 1.0, 1.0)
BALLOT = votes.vote(TREE, STATS, LAW)
GROWN, WEIGHED = np.arange(15), np.arange(15, 40)
HELD = certificates.held_out(TREE, X, Y, 2, weigh=WEIGHED, grow=GROWN)
PRIOR = certificates.branching_prior(TREE, 2)
LEAVES = np.zeros(TREE.n_nodes)
BOX = [[-4.0, -4.0], [4.0, 4.0]]
SQUARE = grow.dyadic_grid(*BOX, 4)
FIXED = certificates.fixed_box(SQUARE, X, Y, BOX)
ON_A_GRID = PrunedTreeClassifier(grow.Grid(BOX, resolution="paper"), rule="square-root", alpha=0.01)
ON_A_GRID.fit(X, Y)
ELECTION = certificates.ModelSelection(
    HELD, prunings.cost_complexity(TREE, HELD.grown, 1.0), 0.05, Voting()
)
FITTED = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=1.0).fit(X, Y)

# What a message may not hold: it speaks of what happened inside, not of what was given.
INSIDE = re.compile(
    r"incompatible function arguments|Invoked with|nanobind|_core|too large to convert|cannot convert|"
    r"Maximum allowed|unhashable|ufunc|index out of range|out of bounds|object has no attribute|"
    r"not supported between|unsupported operand|encountered in|inhomogeneous|could not convert|"
    r"object is not|has no len|object of type|only length-1|only 0-dim|must be real number|"
    r"invalid literal|truth value|cannot be interpreted|unexpected keyword|bad operand|"
    r"math domain|math range|setting an array element|could not be broadcast|shape mismatch|"
    r"not subscriptable|NoneType|Cannot cast|negative dimensions|unpack"
)

HOSTILE = [
    10**10, 2**70, -(2**70), 10**400, -1, 0, 1, 1e308, 5e-324, -0.5, float("nan"), float("inf"),
    -float("inf"), "", "word", "log", None, [], [[]], [1, [2]], {}, {"a": 1}, object(), True, False,
    np.float32(0.5), np.int8(-1), np.uint64(2**63), np.bool_(True), np.array(0.5), np.array(2),
    np.array("word"), np.array(["a", "b"]), np.zeros((0, 2)), np.zeros(40), np.full(40, np.nan),
    np.full((40, 2), 1e308), np.array([None]), 1j, b"bytes", int, lambda *_: 1, range(3), (1, 2),
    np.datetime64("2020-01-01"), sparse.eye_array(40, 2, format="csr"), Voting, TREE,
]  # fmt: skip

T, S, M, W = {"tree": TREE}, {"stats": STATS}, {"stats": MOMENTS}, {"weights": LAW}
PRICED = {**T, **S, "alpha": 1.0}
CHANCE = {"delta": 0.05, "share": 1.0}
JUDGED = {**T, **S, "ballot": BALLOT}
PROBLEM = {
    **T, "population": SHARES, "n": 40, "bayes_risk": 0.0, "delta": 0.05, "lambda_error": 1.0,
}  # fmt: skip
GROWS = {
    "X": X, "y": Y, "max_depth": 2, "sample_weight": np.ones(40), "n_jobs": 1,
    "min_samples_split": 2,
}  # fmt: skip
SETTINGS = {
    "criterion": None, "splitter": "best", "max_leaf_nodes": 4, "min_impurity_decrease": 0.0,
    "max_features": None,
}  # fmt: skip

CALLS = [
    (
        grow.grow_cart,
        {
            **GROWS,
            **SETTINGS,
            "categorical_features": None,
            "monotonic_cst": None,
            "random_state": 0,
        },
    ),
    (
        grow.grow_dyadic,
        {**GROWS, "stop_when_pure": True, "expand": False, "resolution": None, "exponent": None},
    ),
    (grow.grow_kd, {**GROWS, "axis": "spread", "stop_when_pure": True}),
    (grow.dyadic_grid, {"low": [0.0, 0.0], "high": [1.0, 1.0], "depth": 2}),
    (grow.dyadic_resolution, {"n": 1000.0, "n_features": 2, "exponent": 0.5}),
    (grow.from_sklearn, {"estimator": None}),
    (
        rows.train_calibration_split,
        {"n": 40, "train_size": 0.35, "random_state": RandomState(0), "groups": np.arange(40)},
    ),
    (
        stats.count,
        {
            **T,
            "X": X,
            "y": Y,
            "n_classes": 2,
            "label": STATS.label,
            "sample_weight": np.ones(40),
            "empty": "first",
            "n_jobs": 1,
        },
    ),
    (
        stats.measure,
        {**T, "X": X, "y": TARGET, "sample_weight": np.ones(40), "unit": 1.0, "n_jobs": 1},
    ),
    (stats.NodeStats, {"counts": STATS.counts, "label": STATS.label}),
    (
        stats.TargetStats,
        {"rows": MOMENTS.rows, "mean": MOMENTS.mean, "sse": MOMENTS.sse, "unit": 1.0},
    ),
    (stats.SeveralStats, {"of_each": (STATS, STATS)}),
    (TREE.apply, {"X": X, "n_jobs": 1}),
    (
        certree.Tree,
        {
            name: getattr(TREE, name)
            for name in (
                "feature",
                "threshold",
                "left",
                "chain",
                "n_features",
                "missing_left",
                "category_start",
                "categories",
                "optimal_splits",
            )
        },
    ),
    (
        certree.NodeWeights,
        {
            name: getattr(LAW, name)
            for name in ("weight", "log_odds", "log_evidence", "chain_entropy", "chain_mode")
        },
    ),
    (certree.Vote, {"score": BALLOT.score}),
    (certree.Voting, {"kind": "mean", "smoothing": 0.0, "slopes": None}),
    (
        weights.pac_bayes,
        {
            **T,
            **S,
            "lambda_error": 1.0,
            "lambda_penalty": 1.0,
            "prior": "leaves",
            "stop_probability": 0.5,
        },
    ),
    (weights.theorem_posterior, {**T, **S, "lambda_error": 1.0, "delta": 0.05}),
    (weights.helmbold_schapire, {**T, **S, "inverse_temperature": 1.0}),
    (weights.average, {**T, "log_own": LEAVES, "log_split": 0.0}),
    (weights.entropy, {**T, **W}),
    (weights.gibbs_risk, {**S, **W}),
    (weights.map_pruning, {**T, **W}),
    (weights.reached, {**T, **W}),
    (weights.sample_pruning, {**T, **W, "rng": 0}),
    (votes.vote, {**T, **S, **W, "voting": "mean"}),
    (votes.prediction_variance, {**T, **M, **W, "voting": Voting("mean")}),
    (prunings.prune, {**T, "cost": LEAVES}),
    (prunings.cost_complexity, PRICED),
    (prunings.depth_penalised, PRICED),
    (prunings.cost_complexity_path, {**T, **S, "cost": "error", "count_empty": False}),
    (prunings.sibling_merge_path, {**T, **S, "cost": "error"}),
    (prunings.minimum_description_length, {**PRICED, "free_splits": False}),
    (prunings.pessimistic, {**PRICED, "confidence": 0.25}),
    (prunings.reduced_error, {**T, **S, "validation": STATS}),
    (prunings.square_root_penalised, {**PRICED, "count_empty": False}),
    (prunings.spatially_adaptive, {**PRICED, "log_cells": 1.0, "count_empty": False}),
    (
        prunings.polynomial_penalised,
        {**PRICED, "smoothness": 2, "log_cells": 1.0, "count_empty": False, "cost": LEAVES},
    ),
    (certificates.held_out, {**T, "X": X, "y": Y, "n_classes": 2, "weigh": WEIGHED, "grow": GROWN}),
    (certificates.branching_prior, {**T, "n_classes": 2, "stop_probability": 0.5}),
    (certificates.size_prior, {**T, "n_classes": 2, "leaf_cost": 1.0}),
    (certificates.count_prior, {**T, "grown": HELD.grown, "rows": 10.0, "trust": 0.9}),
    (
        certificates.centred_prior,
        {**T, "grown": HELD.grown, "pruning": ELECTION.posterior, "doubt": 0.01, "stop_below": 0.6},
    ),
    (
        certificates.doubted_prior,
        {
            **T,
            "grown": HELD.grown,
            "pruning": ELECTION.posterior,
            "doubts": (0.1, 0.01),
            "stop_below": 0.6,
        },
    ),
    (certificates.trust_labels, {"prior": PRIOR, "grown": HELD.grown, "trust": 0.9}),
    (certificates.allow_abstention, {"prior": PRIOR, "share": 0.1}),
    (
        certificates.gibbs_posterior,
        {**T, **S, "prior": LAW, "lambda_error": 1.0, "lambda_penalty": 0.0},
    ),
    (certificates.labelled_posterior, {**T, **S, "prior": PRIOR, "lambda_error": 1.0}),
    (inequalities.kl_divergence, {**T, "posterior": LAW, "prior": LAW}),
    (inequalities.renyi_divergence, {**T, "posterior": LAW, "prior": LAW, "order": 2.0}),
    (
        inequalities.log_prior_mass,
        {**T, "prior": LAW, "log_label": np.zeros(TREE.n_nodes), "label": STATS.label},
    ),
    (certificates.hold_out, {"errors": 3, "n": 40, **CHANCE}),
    (certificates.hold_out_best, {"errors": [3, 4], "n": 40, **CHANCE, "method": "hold_out_best"}),
    (certificates.hold_out_mean, {"risk": 0.1, "n": 40, **CHANCE, "grouped": False}),
    (
        certificates.certify,
        {
            "classifier": FITTED,
            "X": X + 1,
            "y": Y,
            "delta": 0.05,
            "look": None,
            "duplicates": "auto",
        },
    ),
    (
        certificates.certify_posterior,
        {"held": HELD, "posterior": LAW, "prior": PRIOR, **CHANCE, "method": "gibbs_kl"},
    ),
    (certificates.occam_vote, {"held": HELD, "label": STATS.label, "prior": PRIOR, **CHANCE}),
    (certificates.occam_mean, {"held": HELD, "label": STATS.label, "prior": PRIOR, **CHANCE}),
    (
        certificates.occam_pruning,
        {"held": HELD, "pruning": ELECTION.posterior, "prior": PRIOR, **CHANCE},
    ),
    (
        certificates.single_draw,
        {"held": HELD, "posterior": LAW, "prior": PRIOR, **CHANCE, "rng": 0},
    ),
    (
        certificates.selective_certificates,
        {"held": HELD, "ballot": BALLOT, "prior": PRIOR, **CHANCE},
    ),
    (
        certificates.select_model,
        {"model_selection": ELECTION, "posteriors": (), "selection": "best"},
    ),
    (
        certificates.ModelSelection,
        {
            "held": HELD,
            "posterior": ELECTION.posterior,
            "delta": 0.05,
            "voting": Voting(),
            "weighing": None,
        },
    ),
    (inequalities.tuple_risk, {**JUDGED, "n_draws": 2, "n_wrong": 1}),
    (inequalities.one_wrong, JUDGED),
    (inequalities.disagreement, JUDGED),
    (inequalities.margin_moments, JUDGED),
    (inequalities.wrong_mass, {"ballot": BALLOT}),
    (inequalities.wrong_range, {**T, "ballot": BALLOT}),
    (inequalities.leaf_mean, {**T, **W, "value": LEAVES}),
    (inequalities.leaf_variance, {**T, **W, "value": LEAVES}),
    (paper.oracle_excess, {"gibbs_excess": 0.1, "n_classes": 2}),
    (paper.hoelder_rate, {"n": 100.0, "smoothness": 1.0, "dimension": 2.0}),
    (paper.chernoff_oracle_bound, {**PROBLEM, "prior": LAW}),
    (paper.excess_bound, {**PROBLEM, "prior": LAW, "penalty": LEAVES}),
    (paper.theorem_bound, PROBLEM),
    (
        paper.excess_posterior,
        {**T, **S, "prior": LAW, "penalty": LEAVES, "lambda_error": 1.0},
    ),
    (
        paper.gibbs_excess_bound,
        {
            **T,
            **S,
            "posterior": LAW,
            "prior": LAW,
            "penalty": LEAVES,
            "bayes_errors": 2.0,
            "lambda_error": 1.0,
            "delta": 0.05,
        },
    ),
    (
        certificates.fixed_box,
        {"tree": SQUARE, "X": X, "y": Y, "box": BOX, "n_jobs": 1},
    ),
    (FixedBox, {"tree": SQUARE, "stats": FIXED.stats, "box": BOX}),
    (certificates.lowest_fixed_box, {"fixed": FIXED, **CHANCE}),
    (
        certificates.certify_fixed_box,
        {"fixed": FIXED, "pruning": certificates.lowest_fixed_box(FIXED), **CHANCE},
    ),
    (ON_A_GRID.certify_fit, {"X": X, "y": Y, "delta": 0.05}),
    (paper.deviation_penalty, {**T, **S, "delta": 0.05}),
    (paper.deviation_limit, {**T, "population": SHARES, "n": 40, "delta": 0.05}),
    (certree.load, {"path": "nowhere.certree"}),
    (FITTED.export_text, {"max_leaves": 4}),
    (FITTED.path, {"x": X[0]}),
    (FITTED.explain, {"X": X}),
    (FITTED.rules, {"max_leaves": 4}),
    (FITTED.predict, {"X": X}),
    (show.plot_tree, {"model": FITTED, "max_leaves": 4}),
]

ESTIMATORS = [
    (PACBayesTreeClassifier, {"lambda_error": 1.0, "lambda_penalty": 1.0}),
    (PACBayesTreeClassifier, {}),
    (CertifiedTreeClassifier, {}),
    (CertifiedTreeRegressor, {}),
    (PrunedTreeClassifier, {}),
    (HelmboldSchapireTreeClassifier, {}),
    (PACBayesTreeRegressor, {}),
    (PrunedTreeRegressor, {}),
    (DecoratedTreeClassifier, {"min_samples_model": 10}),
    (DecoratedTreeRegressor, {"min_samples_model": 10}),
    (NaiveBayesClassifier, {}),
    (AdaBoostTreeClassifier, {"n_estimators": 4}),
    (BoostedTreesClassifier, {"max_iter": 4}),
    (BoostedTreesRegressor, {"max_iter": 4}),
    (CertifiedBoostedTreesClassifier, {"max_iter": 4}),
    (CertifiedBoostedTreesRegressor, {"max_iter": 4}),
    (CertifiedForestClassifier, {"n_estimators": 4}),
    (TreeForestClassifier, {"n_estimators": 4}),
    (TreeForestRegressor, {"n_estimators": 4}),
]


def said(action):
    """Run it; returns what is wrong with its error, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", module="sklearn")
            warnings.filterwarnings("ignore", category=UserWarning)
            action()
    except (ValueError, TypeError, FileNotFoundError, MemoryError) as error:
        message = str(error)
        if not message.strip() or INSIDE.search(message):
            return f"{type(error).__name__}: {message[:200]}"
    except Exception as error:  # noqa: BLE001 # whatever else comes is what this looks for
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def shown(value):
    return f"{type(value).__name__} {str(value)[:40]}"


def found(act, names):
    """What is wrong with the errors of `act(name, value)`, for every name and hostile value."""
    problems = []
    for name in names:
        for value in HOSTILE:
            problem = said(lambda name=name, value=value: act(name, value))
            if problem:
                problems.append(f"{name}={shown(value)}: {problem}")
    return problems


@pytest.mark.parametrize(
    ("function", "good"), CALLS, ids=lambda one: getattr(one, "__name__", "given")
)
def test_functions_answer_or_say_what_was_expected(function, good):
    def act(name, value):
        function(**{**good, name: value})

    assert not found(act, good)


@pytest.mark.parametrize(
    ("estimator", "good"), ESTIMATORS, ids=lambda one: getattr(one, "__name__", "given")
)
def test_estimators_answer_or_say_what_was_expected(estimator, good):
    y = TARGET if estimator.__name__.endswith("Regressor") else Y

    def act(name, value):
        estimator(**{**good, name: value}).fit(X, y)

    assert not found(act, inspect.signature(estimator).parameters)


@pytest.mark.parametrize(
    ("estimator", "good"), ESTIMATORS, ids=lambda one: getattr(one, "__name__", "given")
)
def test_fits_answer_or_say_what_was_expected(estimator, good):
    y = TARGET if estimator.__name__.endswith("Regressor") else Y
    given = {"X": X, "y": y, "sample_weight": np.ones(40)}
    if estimator is CertifiedTreeClassifier:
        given = {"X": X, "y": y, "groups": np.arange(40)}

    def act(name, value):
        estimator(**good).fit(**{**given, name: value}).predict(X)

    assert not found(act, given)


@pytest.mark.parametrize(
    "part",
    [
        (grow.Cart, PACBayesTreeClassifier, "grower"),
        (grow.KD, PACBayesTreeClassifier, "grower"),
        (grow.Dyadic, PACBayesTreeClassifier, "grower"),
        (grow.Grid, PACBayesTreeClassifier, "grower"),
        (grow.SklearnTree, PACBayesTreeClassifier, "grower"),
        (PACBayesPosteriors, CertifiedTreeClassifier, "posteriors"),
        (Voting, PACBayesTreeClassifier, "vote"),
        *(
            (getattr(prunings, name), PrunedTreeClassifier, "rule")
            for name in ("CostComplexity", "DepthPenalised", "SiblingMerge", "SquareRoot")
        ),
        *(
            (getattr(prunings, name), PrunedTreeClassifier, "rule")
            for name in ("SpatiallyAdaptive", "Polynomial", "Pessimistic", "DescriptionLength")
        ),
    ],
    ids=lambda part: part[0].__name__,
)
def test_settings_answer_or_say_what_was_expected(part):
    setting, estimator, place = part

    def act(name, value):
        estimator(**{place: setting(**{name: value})}).fit(X, Y)

    assert not found(act, inspect.signature(setting).parameters)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: replace(TREE, n_features=-1), r"n_features must lie in 1 \.\. 2147483647, got -1"),
        (lambda: replace(TREE, n_features=2**63), "n_features must lie in 1"),
        (
            lambda: stats.noise_variance(TREE, MOMENTS.rows, -MOMENTS.sse - 1),
            r"rows must lie in 0 \.\. 1e\+280, and sse be non-negative",
        ),
        (
            lambda: replace(PRIOR, log_label=np.zeros((1, TREE.n_nodes, 0))),
            "log_label must have at least one label",
        ),
        (
            lambda: certificates.certify_posterior(
                HELD,
                certificates.labelled_posterior(TREE, HELD.stats, PRIOR, 1.0),
                replace(PRIOR, log_label=PRIOR.log_label[:, :, :1]),
            ),
            "same number of labels, got 2 and 1",
        ),
        (
            lambda: certificates.labelled_posterior(
                TREE, STATS, replace(PRIOR, log_label=np.full((1, TREE.n_nodes, 2), -np.inf)), 1.0
            ),
            "prior must give every node a label that has a probability above 0",
        ),
        (
            lambda: LabelledWeights(LAW, np.full((TREE.n_nodes, 2), 1.7e308)),
            "share must hold probabilities that sum to 1",
        ),
        (
            lambda: paper.chernoff_oracle_bound(TREE, SHARES, LAW, 10**308, 0.0, 0.05),
            r"n must lie in 1 \.\. 1e\+150",
        ),
        (
            lambda: paper.theorem_bound(TREE, SHARES, 10**308, 0.0),
            r"n must lie in 8 \.\. 1e\+150",
        ),
        (
            lambda: replace(LAW, chain_entropy=np.full(TREE.n_nodes, np.inf)),
            "chain_entropy must be finite",
        ),
        (
            lambda: certificates.certify_posterior(
                HELD, LAW, PRIOR, method="vote_tuples", tuples=[2]
            ),
            r"tuples must be a sequence, each \(an integer, an integer\), got \[2\]",
        ),
        (
            lambda: PACBayesTreeClassifier(cv=b"0.5").fit(X, Y),
            "cv must hold pairs of training and validation rows",
        ),
    ],
)
def test_parts_of_what_is_given_are_looked_at(act, words):
    with pytest.raises((ValueError, TypeError), match=words):
        act()


def test_extremes_are_answered_without_a_warning():
    chains = replace(TREE, chain=np.full(TREE.n_nodes, 3))
    weight = weights.average(chains, LEAVES, -np.inf).weight
    assert weight.tolist() == [1.0] + [0.0] * (TREE.n_nodes - 1)
    near = votes.prediction_variance(TREE, MOMENTS, LAW)
    rows, nothing = np.ones(TREE.n_nodes), np.zeros(TREE.n_nodes)
    far = stats.TargetStats(rows, np.linspace(0, 1e200, TREE.n_nodes), nothing)
    assert not np.isnan(votes.prediction_variance(TREE, far, LAW).between).any()
    ends = np.where(np.arange(TREE.n_nodes) % 2, 1.7e308, -1.7e308)
    wide = votes.prediction_variance(TREE, stats.TargetStats(rows, ends, nothing), LAW)
    assert not np.isnan(wide.between).any()
    tiny = votes.prediction_variance(TREE, measure(TREE, X, TARGET * 2.0**-300), LAW)
    np.testing.assert_array_equal(tiny.between, near.between * 2.0**-600)
    heavy = stats.TargetStats(MOMENTS.rows * 2.0**600, MOMENTS.mean * 2.0**500, nothing)
    expected = MOMENTS.averages(TREE, 0.5) * 2.0**500
    np.testing.assert_array_equal(heavy.averages(TREE, 2.0**599), expected)
    ends, unit = np.full(TREE.n_nodes, 1.7e308), 2.0**-600
    light = stats.TargetStats(MOMENTS.rows * unit, ends, nothing, weight_unit=unit)
    np.testing.assert_allclose(light.averages(TREE, 0.5), 1.7e308)
    assert stats.noise_variance(TREE, rows, np.full(TREE.n_nodes, 1.7e308)) == 1.7e308


def test_laws_of_heavy_rows_are_answered_without_a_warning():
    heavy = replace(STATS, counts=STATS.counts * 2.0**400)
    posterior = weights.helmbold_schapire(TREE, STATS, 1.0)
    same = weights.helmbold_schapire(TREE, heavy, 2.0**-400)
    np.testing.assert_array_equal(same.weight, posterior.weight)
    never = replace(LAW, log_odds=np.where(TREE.is_leaf, -np.inf, -1.7e308))
    split = weights.average(TREE, np.where(TREE.is_leaf, 0.0, -np.inf))
    assert inequalities.kl_divergence(TREE, split, never) == np.inf
    posterior = certificates.labelled_posterior(TREE, heavy, PRIOR, 1e150)
    np.testing.assert_array_equal(posterior.share.argmax(axis=1), STATS.counts.argmax(axis=1))
    # The label that most rows have is one that the prior forbids.
    only = np.where(np.arange(2) == STATS.label[:, None], -np.inf, 0.0)[None]
    forced = certificates.labelled_posterior(TREE, heavy, replace(PRIOR, log_label=only), 1e150)
    np.testing.assert_array_equal(forced.share, np.exp(only[0]))
    assert prunings.depth_penalised(TREE, heavy, 1e150).weight[0] == 1
    assert prunings.square_root_penalised(TREE, heavy, 1e150).weight[0] == 1
    PACBayesTreeClassifier().fit(X, TARGET > 0, np.full(40, 2e278))


def test_a_histogram_has_edges_where_rows_are_far_apart():
    x = np.array([1.0, 2.0, 3.0, 4.0, 1e300])
    edges = densities.compute_bin_edges(x, "fd")
    assert (edges[0], edges[-1]) == (1.0, 1e300)
    assert 3 <= len(edges) <= 11


def shifted(values):
    """The same numbers in memory that begins at an odd place."""
    memory = np.zeros(values.nbytes + 1, dtype=np.uint8)
    found = memory[1:].view(values.dtype).reshape(values.shape)
    found[...] = values
    assert not found.flags.aligned
    return found


def test_numbers_at_odd_places_of_memory_reach_the_core_as_copies():
    assert arrays.check_matrix(shifted(X)).flags.aligned
    assert arrays.check_column("x", shifted(TARGET), "float64", (40,)).flags.aligned
    for model, y in ((PACBayesTreeClassifier, Y), (PACBayesTreeRegressor, shifted(TARGET))):
        fitted = model(random_state=0).fit(shifted(X), y, shifted(np.ones(40)))
        np.testing.assert_array_equal(fitted.predict(shifted(X)), fitted.predict(X))
