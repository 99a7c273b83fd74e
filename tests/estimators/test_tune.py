import itertools
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GroupKFold

import reference
from certree import (
    DecoratedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    _core,
)
from certree.estimators.tune import (
    LOG_GRID,
    MIXED_GRID,
    STEPS,
    Candidate,
    GrownFold,
    Mixture,
    Objective,
    _fit_mixture_weights,
    choose_posteriors,
    linear_grid,
    mix_candidates,
    tune,
)
from certree.grow import KD, Cart, Dyadic, TrainingSamples
from certree.grow.grower import grow_trees
from certree.prunings import (
    CostComplexity,
    DepthPenalised,
    DescriptionLength,
    Pessimistic,
    SiblingMerge,
    SpatiallyAdaptive,
    SquareRoot,
    cost_complexity_path,
)
from certree.rows.folds import Fold, content_folds
from certree.stats import SeveralStats
from certree.stats.nodes import count_by_leaf
from certree.stats.targets import measure_by_leaf
from certree.votes import Voting, vote
from certree.weights.helmbold_schapire_posteriors import helmbold_schapire_family
from certree.weights.pac_bayes_posteriors import likeliest_prunings, pac_bayes_family

PAC_BAYES = Candidate(pac_bayes_family, Voting("majority"))
CANDIDATES = {
    "PAC-Bayes": PAC_BAYES,
    "PAC-Bayes, mean": Candidate(pac_bayes_family, Voting("mean")),
    "PAC-Bayes, smoothed mean": Candidate(pac_bayes_family, Voting("mean", 1.5)),
    "PAC-Bayes, branching": Candidate(
        partial(pac_bayes_family, prior="branching"), Voting("majority")
    ),
    "cost-complexity": Candidate(CostComplexity().family, Voting("majority")),
    "cost-complexity, mean": Candidate(CostComplexity().family, Voting("mean")),
    "depth": Candidate(DepthPenalised().family, Voting("mean")),
    "weakest links": Candidate(cost_complexity_path, Voting("mean")),
    "sibling-merge": Candidate(SiblingMerge().family, Voting("majority")),
    "sibling-merge, mean": Candidate(SiblingMerge().family, Voting("mean")),
    "square root": Candidate(SquareRoot().family, Voting("mean")),
    "adaptive": Candidate(SpatiallyAdaptive().family, Voting("majority")),
    "adaptive, mean": Candidate(SpatiallyAdaptive(count_empty=True).family, Voting("mean")),
    "pessimistic": Candidate(Pessimistic().family, Voting("majority")),
    "description length": Candidate(DescriptionLength().family, Voting("mean")),
    "Helmbold-Schapire": Candidate(helmbold_schapire_family, Voting("mean")),
}
# What is no law, so that it cannot be mixed.
RULES = [
    "weakest links",
    "sibling-merge",
    "sibling-merge, mean",
    "square root",
    "adaptive",
    "adaptive, mean",
]
N_TEMPERATURES = {name: 2 if name.startswith("PAC") else 1 for name in CANDIDATES}


GROWERS = [KD(), Dyadic()]


def noisy(n, seed, n_classes=2):
    """Rows of two features; the class follows the first one, but not always."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    clean = np.digitize(X[:, 0], np.linspace(-0.8, 0.8, n_classes - 1) if n_classes > 2 else [0.0])
    y = np.where(rng.random(n) < 0.7, clean, rng.integers(0, n_classes, n))
    return X, y.astype(np.int32)


def grow_fold(fold, grower, rows, summarise):
    ((tree, _),) = grow_trees(grower, rows, [fold])
    unit = 1.0 if rows.weight is None else rows.weight.mean()
    training = SimpleNamespace(y=rows.y, weight=rows.weight, weight_unit=unit)
    return GrownFold.from_rows(fold, tree, summarise, tree.route(rows.X, 1), training)


def counting(n_classes):
    """What summarises rows of so many classes."""
    return lambda tree, leaf, y, weight, unit: count_by_leaf(tree, leaf, y, weight, n_classes, unit)


def grown(X, y, weight=None, n_classes=2, grower=GROWERS[0], n_folds=2, seed=0):
    rng = np.random.RandomState(seed)
    folds = content_folds(X, y, n_folds, rng, weight)
    rows = TrainingSamples(X, y, weight)
    return [grow_fold(fold, grower, rows, counting(n_classes)) for fold in folds]


def literal_loss(folds, candidate, scoring, temperatures):
    """Held-out loss, leaf by leaf and class by class."""
    total = 0.0
    for fold in folds:
        weights = candidate.family(fold.tree, fold.stats).solve(*temperatures)
        score = vote(fold.tree, fold.stats, weights, candidate.voting).score
        for leaf in np.flatnonzero(fold.tree.is_leaf):
            winner = int(np.argmax(score[leaf]))
            for k, rows in enumerate(fold.validation[leaf]):
                if scoring == "error":
                    total += rows if k != winner else 0.0
                elif rows > 0:
                    share = max(score[leaf, k] / sum(score[leaf]), np.finfo(float).eps)
                    total -= rows * math.log(share)
    return total


def of_several(kind):
    """What summarises rows of several targets."""

    of_one = measure_by_leaf if kind == "squared" else counting(3)

    def summarise(tree, leaf, y, weight, unit):
        columns = np.ascontiguousarray(y.T)
        return SeveralStats(tuple(of_one(tree, leaf, one, weight, unit) for one in columns))

    return summarise


@pytest.mark.parametrize("scoring", ["error", "log_loss", "squared"])
@pytest.mark.parametrize("name", ["PAC-Bayes, mean", "PAC-Bayes", "weakest links", "sibling-merge"])
def test_losses_of_several_targets_are_the_sum_of_those_of_each(name, scoring):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.integers(0, 3, (60, 3)).astype(np.int32)
    voting = CANDIDATES[name].voting
    if scoring == "squared":
        y, voting = X @ rng.normal(size=(2, 3)) * [1.0, 300.0, 0.1] + 5.0, Voting("mean")
    folds = list(content_folds(X, y, 2, np.random.RandomState(0)))
    rows, summarise = TrainingSamples(X, y), of_several(scoring)
    grown = [grow_fold(fold, KD(), rows, summarise) for fold in folds]
    candidate = Candidate(CANDIDATES[name].family, voting)
    temperatures = 2.0 ** rng.uniform(-4, 4, size=(3, N_TEMPERATURES[name]))
    losses = Objective.for_candidate(grown, candidate, scoring).compute_losses(temperatures)
    for row, loss in zip(temperatures, losses, strict=True):
        literal = 0.0
        for fold, part in zip(folds, grown, strict=True):
            weights = candidate.family(part.tree, part.stats).solve(*row)
            leaf = part.tree.apply(X[fold.validation])
            for k, one in enumerate(part.stats.of_each):
                said, truth = (
                    vote(part.tree, one, weights, voting).score[leaf],
                    y[fold.validation, k],
                )
                if scoring == "squared":
                    literal += ((truth - said[:, 0]) ** 2).sum() / y[fold.train, k].var()
                elif scoring == "error":
                    literal += (said.argmax(axis=1) != truth).sum()
                else:
                    own = said[np.arange(len(truth)), truth] / said.sum(axis=1)
                    literal -= np.log(np.maximum(own, np.finfo(float).eps)).sum()
        assert loss == pytest.approx(literal, rel=1e-9)


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from(GROWERS))
def test_squared_losses_are_those_of_every_held_out_row(seed, weighted, grower):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2)).round(1)
    y = 100 + X[:, 0] + rng.normal(size=40)
    weight = rng.integers(1, 4, 40).astype(float) if weighted else None
    folds = list(content_folds(X, y, 2, np.random.RandomState(0), weight))
    rows = TrainingSamples(X, y, weight)
    grown = [grow_fold(fold, grower, rows, measure_by_leaf) for fold in folds]
    candidate = Candidate(partial(pac_bayes_family, prior="branching"), Voting("mean", 1.5))
    temperatures = 2.0 ** rng.uniform(-8, 6, size=(5, 2))
    losses = Objective.for_candidate(grown, candidate, "squared").compute_losses(temperatures)
    for row, loss in zip(temperatures, losses, strict=True):
        literal = 0.0
        for fold, part in zip(folds, grown, strict=True):
            weights = candidate.family(part.tree, part.stats).solve(*row)
            score = vote(part.tree, part.stats, weights, Voting("mean", 1.5)).score[:, 0]
            distance = y[fold.validation] - score[part.tree.apply(X[fold.validation])]
            once = np.ones(len(fold.validation)) if weight is None else weight[fold.validation]
            literal += (once * distance**2).sum()
        assert loss == pytest.approx(literal, rel=1e-10)


def literal_search(folds, candidate, scoring, given_temperatures, search):
    """Loop over the grids; the first of the best in ascending order wins."""
    best = [1.0 if value is None else value for value in given_temperatures]
    free = [i for i, value in enumerate(given_temperatures) if value is None]
    for chosen in [free] if search == "joint" else [[i] for i in free]:
        for grid in (
            lambda _: [2.0 ** (-8 + 14 * k / 9) for k in range(10)],
            lambda middle: [middle / 2 + k * (1.5 * middle / 9) for k in range(10)],
        ):
            smallest, winner = math.inf, None
            for values in itertools.product(*[grid(best[i]) for i in chosen]):
                trial = list(best)
                for i, value in zip(chosen, values, strict=True):
                    trial[i] = value
                loss = literal_loss(folds, candidate, scoring, trial)
                if loss < smallest:
                    smallest, winner = loss, trial
            best = winner
    return tuple(best)


def test_the_grids_are_the_paper_s():
    np.testing.assert_allclose(np.log2(LOG_GRID), -8 + 14 * np.arange(10) / 9, rtol=1e-14)
    grid = linear_grid(3.0)
    np.testing.assert_allclose(np.diff(grid), 0.5)
    assert (grid[0], grid[-1], len(grid)) == (1.5, 6.0, 10)
    np.testing.assert_allclose(grid[3], 3.0)


@given(
    st.integers(0, 2**32),
    st.sampled_from(sorted(CANDIDATES)),
    st.sampled_from(["error", "log_loss"]),
    st.sampled_from(GROWERS),
    st.sampled_from(["none", "whole", "real"]),
)
def test_losses_of_a_grid_equal_the_literal_ones(seed, name, scoring, grower, weighted):
    n_classes = 2 if name == "Helmbold-Schapire" else 3
    X, y = noisy(50, seed, n_classes)
    rng = np.random.default_rng(seed)
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, 50).astype(float),
        "real": rng.uniform(0.2, 3.0, 50),
    }[weighted]
    folds = grown(X, y, weight, n_classes, grower)
    temperatures = 2.0 ** rng.uniform(-8, 6, size=(12, N_TEMPERATURES[name]))
    temperatures[0] = 0.0
    objective = Objective.for_candidate(folds, CANDIDATES[name], scoring)
    literal = [literal_loss(folds, CANDIDATES[name], scoring, row) for row in temperatures]
    if scoring == "error" and weighted != "real":
        np.testing.assert_array_equal(objective.compute_losses(temperatures), literal)
    else:
        np.testing.assert_allclose(
            objective.compute_losses(temperatures), literal, rtol=1e-11, atol=1e-9
        )


def test_losses_at_small_temperatures_differ_from_those_at_large_ones():
    # Else the tests that compare with the literal search would compare constants.
    for name, candidate in CANDIDATES.items():
        n_classes = 2 if name == "Helmbold-Schapire" else 3
        X, y = noisy(120, 1, n_classes)
        folds = grown(X, y, None, n_classes)
        grid = np.repeat(LOG_GRID[:, None], N_TEMPERATURES[name], axis=1)
        grid[:, -1] = grid[:, -1] if N_TEMPERATURES[name] == 1 else 2.0**-8
        for scoring in ("error", "log_loss"):
            assert (
                len(set(Objective.for_candidate(folds, candidate, scoring).compute_losses(grid)))
                >= 2
            ), (
                name,
                scoring,
            )


@pytest.mark.parametrize("name", sorted(CANDIDATES))
@pytest.mark.parametrize("search", ["joint", "error-first"])
def test_tune_finds_what_a_literal_search_finds(name, search):
    n_classes = 2 if name == "Helmbold-Schapire" else 3
    given_temperatures = [None] * N_TEMPERATURES[name]
    for seed in range(3):
        X, y = noisy(40, seed, n_classes)
        folds = grown(X, y, None, n_classes)
        objective = Objective.for_candidate(folds, CANDIDATES[name], "error")
        expected = literal_search(folds, CANDIDATES[name], "error", given_temperatures, search)
        # Grids are written in another way here, so that the last bits may differ.
        np.testing.assert_allclose(
            tune(objective, given_temperatures, search), expected, rtol=1e-14
        )


@pytest.mark.parametrize("search", ["joint", "error-first"])
def test_tune_by_log_loss_finds_the_smallest_literal_log_loss(search):
    X, y = noisy(60, 5)
    folds = grown(X, y)
    for candidate in (CANDIDATES["PAC-Bayes, mean"], PAC_BAYES):
        found = tune(Objective.for_candidate(folds, candidate, "log_loss"), [None, None], search)
        expected = literal_search(folds, candidate, "log_loss", [None, None], search)
        loss = literal_loss(folds, candidate, "log_loss", found)
        assert loss == pytest.approx(
            literal_loss(folds, candidate, "log_loss", expected), rel=1e-11
        )
        assert loss < literal_loss(folds, candidate, "log_loss", [LOG_GRID[0]] * 2)


def test_the_two_searches_can_differ():
    found = set()
    for seed in range(10):
        X, y = noisy(60, seed)
        objective = Objective.for_candidate(grown(X, y), PAC_BAYES, "error")
        found.add(
            tune(objective, [None, None], "joint") == tune(objective, [None, None], "error-first")
        )
    assert False in found


@pytest.mark.parametrize("search", ["joint", "error-first"])
@pytest.mark.parametrize("given_temperatures", [(0.7, None), (None, 0.3), (0.7, 0.3)])
def test_given_temperatures_stay_and_the_other_one_suits_them(search, given_temperatures):
    X, y = noisy(60, 3)
    folds = grown(X, y)
    found = tune(Objective.for_candidate(folds, PAC_BAYES, "error"), given_temperatures, search)
    expected = literal_search(folds, PAC_BAYES, "error", given_temperatures, search)
    for value, wanted in zip(found, given_temperatures, strict=True):
        assert wanted is None or value == wanted
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("search", ["joint", "error-first"])
def test_on_ties_the_smallest_temperatures_win(search):
    # One class: no pruning ever errs, so that all grid points tie.
    X, y = noisy(30, 0)[0], np.zeros(30, dtype=np.int32)
    objective = Objective.for_candidate(grown(X, y), PAC_BAYES, "error")
    assert tune(objective, [None, None], search) == (2.0**-9, 2.0**-9)


def test_without_folds_temperatures_are_one_unless_given():
    objective = Objective.for_candidate([], PAC_BAYES, "error")
    assert tune(objective, [None, None]) == (1.0, 1.0)
    assert tune(objective, [None, 0.25]) == (1.0, 0.25)


def test_advance_is_called_after_each_grid():
    X, y = noisy(30, 0)
    objective = Objective.for_candidate(grown(X, y), PAC_BAYES, "error")
    for search, given_temperatures, calls in [
        ("joint", [None, None], 2),
        ("error-first", [None, None], 4),
        ("error-first", [None, 1.0], 2),
        ("joint", [1.0, 1.0], 0),
    ]:
        seen = []
        tune(objective, given_temperatures, search, partial(seen.append, 1))
        assert len(seen) == calls


@pytest.mark.parametrize("scoring", ["error", "log_loss"])
@pytest.mark.parametrize("name", sorted(CANDIDATES))
def test_losses_have_the_same_bits_for_any_number_of_threads(name, scoring):
    X, y = noisy(200, 8)
    weight = np.random.default_rng(8).uniform(0.2, 3.0, 200)
    folds = grown(X, y, weight)
    t = N_TEMPERATURES[name]
    grid = np.stack(np.meshgrid(*[LOG_GRID] * t, indexing="ij"), axis=-1).reshape(-1, t)
    alone = Objective.for_candidate(folds, CANDIDATES[name], scoring, 1).compute_losses(grid)
    for n_threads in (2, 3, 8, 1000):
        together = Objective.for_candidate(
            folds, CANDIDATES[name], scoring, n_threads
        ).compute_losses(grid)
        np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("scoring", ["", "accuracy", None])
def test_an_unknown_scoring_is_refused(scoring):
    with pytest.raises(ValueError, match="scoring must be"):
        Objective.for_candidate([], PAC_BAYES, scoring)


@pytest.mark.parametrize("search", ["", "random", None])
def test_an_unknown_search_is_refused(search):
    objective = Objective.for_candidate(grown(*noisy(20, 0)), PAC_BAYES, "error")
    with pytest.raises(ValueError, match="search must be"):
        tune(objective, [None, None], search)


def test_a_grown_fold_counts_its_training_and_validation_rows():
    X, y = noisy(50, 4, 3)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, 50)
    judge = np.arange(0, 50, 3)
    grow = np.setdiff1d(np.arange(50), judge)
    fold = grow_fold(Fold(grow, judge), KD(), TrainingSamples(X, y, weight), counting(3))
    assert fold.stats.weight_unit == weight.mean()  # of all rows
    for rows, counts in ((grow, fold.stats.counts), (judge, fold.validation)):
        leaf = fold.tree.apply(X[rows])
        for node in np.flatnonzero(fold.tree.is_leaf):
            inside = rows[leaf == node]
            expected = np.bincount(y[inside], weight[inside], minlength=3)
            np.testing.assert_allclose(counts[node], expected)
    # Labels are those of the training samples; a cell that lost them all would have its parent's.
    held = fold.stats.counts.sum(axis=1) > 0
    np.testing.assert_array_equal(fold.stats.label[held], fold.stats.counts[held].argmax(axis=1))


@pytest.mark.parametrize("grower", [Cart(), Cart("gini", max_leaf_nodes=9), KD(), Dyadic()])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_tree_of_a_fold_is_that_of_its_training_rows_alone(grower, weighted):
    X, y = noisy(60, 4, 3)
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float) if weighted else None
    for fold in content_folds(X, y, 3, np.random.RandomState(0), weight):
        whole = grow_fold(fold, grower, TrainingSamples(X, y, weight), counting(3)).tree
        own = None if weight is None else weight[fold.train]
        alone = grower.grow(TrainingSamples(X[fold.train], y[fold.train], own))
        for name in ("feature", "threshold", "left", "chain"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(alone, name))


@pytest.mark.parametrize("search", ["joint", "error-first"])
def test_the_candidate_with_the_smallest_loss_is_chosen(search):
    folds = grown(*noisy(120, 3))
    names = ["PAC-Bayes, smoothed mean", "PAC-Bayes", "PAC-Bayes, branching"]
    objectives = {name: Objective.for_candidate(folds, CANDIDATES[name], "error") for name in names}
    found = {name: tune(one, [None, None], search) for name, one in objectives.items()}
    losses = {
        name: one.compute_losses(np.array([found[name]]))[0] for name, one in objectives.items()
    }
    chosen = choose_posteriors(objectives, [None, None], search)
    (best,) = chosen.candidate_names
    assert losses[best] == min(losses.values())
    np.testing.assert_array_equal(chosen.temperatures, [found[best]])
    same = dict.fromkeys("abc", objectives[best])
    assert choose_posteriors(same, [None, None], search).candidate_names == ["a"]


@pytest.mark.parametrize("scoring", ["error", "log_loss"])
@pytest.mark.parametrize("factor", [0.25, 3.7, 1e-5])
def test_the_unit_of_weights_tunes_nothing(scoring, factor):
    X, y = noisy(40, 6)
    weight = np.random.default_rng(6).integers(1, 4, 40).astype(float)
    grid = np.stack(np.meshgrid(LOG_GRID, LOG_GRID, indexing="ij"), -1).reshape(-1, 2)
    for name, candidate in CANDIDATES.items():
        one, other = (
            Objective.for_candidate(grown(X, y, w), candidate, scoring)
            for w in (weight, factor * weight)
        )
        n = N_TEMPERATURES[name]
        losses = [factor * one.compute_losses(grid[:, :n]), other.compute_losses(grid[:, :n])]
        np.testing.assert_allclose(*losses, rtol=1e-9)
        if factor == 0.25:
            np.testing.assert_array_equal(*losses)
        assert tune(one, [None] * n) == tune(other, [None] * n)


def test_weights_change_the_losses():
    X, y = noisy(80, 7)
    weight = np.random.default_rng(7).integers(1, 6, 80).astype(float)
    weighted, plain = (
        Objective.for_candidate(grown(X, y, w), PAC_BAYES, "error").compute_losses(np.ones((1, 2)))[
            0
        ]
        for w in (weight, None)
    )
    assert weighted > plain


# -- mixtures --------------------------------------------------------------------------------------

MEAN = CANDIDATES["PAC-Bayes, smoothed mean"]
SMALLEST = np.finfo(float).eps


def literal_predictions(folds, candidate, temperatures):
    """Probability of the true class of validation rows by each posterior, leaf by leaf."""
    rows, shares = [], []
    for fold in folds:
        family = candidate.family(fold.tree, fold.stats)
        votes = [
            vote(fold.tree, fold.stats, family.solve(*posterior), candidate.voting).score
            for posterior in temperatures
        ]
        for leaf, k in np.argwhere((fold.validation > 0) & fold.tree.is_leaf[:, None]):
            rows.append(fold.validation[leaf, k])
            shares.append([max(score[leaf, k], SMALLEST) for score in votes])
    return np.array(rows), np.array(shares)


@given(
    st.integers(0, 2**32),
    st.sampled_from(sorted(set(CANDIDATES) - set(RULES))),
    st.sampled_from(GROWERS),
    st.integers(1, 20),
)
def test_predictions_of_validation_rows_equal_the_literal_ones(seed, name, grower, n_posteriors):
    n_classes = 2 if name == "Helmbold-Schapire" else 3
    X, y = noisy(50, seed, n_classes)
    folds = grown(X, y, None, n_classes, grower)
    rng = np.random.default_rng(seed)
    temperatures = 2.0 ** rng.uniform(-8, 6, size=(n_posteriors, N_TEMPERATURES[name]))
    rows, truth, shares = Objective.for_candidate(
        folds, CANDIDATES[name], "log_loss"
    ).predict_validation(temperatures)
    expected_rows, expected = literal_predictions(folds, CANDIDATES[name], temperatures)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(truth, 1)
    np.testing.assert_allclose(shares, expected, rtol=1e-11, atol=1e-15)


def grown_numbers(n, seed, grower=GROWERS[0]):
    """Folds of rows with a number that follows the first feature."""
    X, _ = noisy(n, seed)
    y = np.sin(3 * X[:, 0]) + np.random.default_rng(seed).normal(size=n) / 2
    folds = content_folds(X, y, 3, np.random.RandomState(seed))
    return [grow_fold(fold, grower, TrainingSamples(X, y), measure_by_leaf) for fold in folds]


@given(st.integers(0, 2**32 - 1), st.sampled_from(GROWERS), st.integers(1, 20))
def test_predictions_for_held_out_rows_equal_the_literal_ones(seed, grower, n_posteriors):
    folds = grown_numbers(50, seed, grower)
    temperatures = 2.0 ** np.random.default_rng(seed).uniform(-8, 6, size=(n_posteriors, 2))
    for family in (pac_bayes_family, likeliest_prunings):
        candidate = Candidate(family, Voting("mean", 2.0))
        rows, truth, given = Objective.for_candidate(
            folds, candidate, "squared"
        ).predict_validation(temperatures)
        expected = []
        for fold in folds:
            posteriors = family(fold.tree, fold.stats)
            node_predictions = [
                vote(fold.tree, fold.stats, posteriors.solve(*posterior), candidate.voting).score[
                    :, 0
                ]
                for posterior in temperatures
            ]
            seen = fold.tree.is_leaf & (fold.validation[:, 0] > 0)
            expected.append(
                np.column_stack([fold.validation[seen, :2], *[b[seen] for b in node_predictions]])
            )
        expected = np.concatenate(expected)
        np.testing.assert_array_equal(np.column_stack([rows, truth]), expected[:, :2])
        np.testing.assert_allclose(given, expected[:, 2:], rtol=1e-11, atol=1e-11)


def test_posteriors_of_numbers_are_mixed_by_least_squares():
    folds = grown_numbers(300, 4)
    voting = Voting("mean", 2.0)
    objectives = {
        name: Objective.for_candidate(folds, Candidate(family, voting), "squared")
        for name, family in [("posteriors", pac_bayes_family), ("prunings", likeliest_prunings)]
    }
    posteriors = mix_candidates(objectives, [None, None])
    grid = np.stack([MIXED_GRID, np.zeros(len(MIXED_GRID))], axis=1)
    rows, truth, _ = objectives["posteriors"].predict_validation(grid)
    given = np.hstack([one.predict_validation(grid)[2] for one in objectives.values()])

    def squares(shares):
        return rows @ (given @ shares - truth) ** 2

    shares = np.zeros(16)
    for name, row, share in zip(
        posteriors.candidate_names, posteriors.temperatures, posteriors.mixture_weights, strict=True
    ):
        shares[8 * (name == "prunings") + MIXED_GRID.tolist().index(row[0])] = share
    alone = min(map(squares, np.eye(16)))
    best = optimize.minimize(
        squares,
        np.full(16, 1 / 16),
        method="SLSQP",
        bounds=[(0, 1)] * 16,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    )
    assert squares(shares) < alone
    assert squares(shares) < best.fun * 1.001


def test_without_errors_mixture_weights_are_equal():
    X, _ = noisy(40, 0)
    folds = [
        grow_fold(fold, GROWERS[0], TrainingSamples(X, np.ones(40)), measure_by_leaf)
        for fold in content_folds(X, np.ones(40), 2, np.random.RandomState(0))
    ]
    objective = Objective.for_candidate(
        folds, Candidate(pac_bayes_family, Voting("mean")), "squared"
    )
    shares = mix_candidates({"posteriors": objective}, [None, None]).mixture_weights
    np.testing.assert_array_equal(shares, np.full(8, 1 / 8))


def test_a_mixture_of_many_groups_is_fitted_to_a_sample(monkeypatch):
    X, y = noisy(2000, 5)
    objective = Objective.for_candidate(grown(X, y, None, 2, Cart()), MEAN, "log_loss")
    grid = np.stack([MIXED_GRID, np.zeros(len(MIXED_GRID))], axis=1)
    every = objective.predict_validation(grid)
    whole = mix_candidates({"posteriors": objective}, [None, None])
    monkeypatch.setattr("certree.estimators.tune._MAX_GROUPS", len(every[0]) // 2)
    rows, _, votes = objective.predict_validation(grid)
    assert len(every[0]) // 2 - 2 <= len(rows) <= len(every[0]) // 2
    assert set(map(tuple, votes)) <= set(map(tuple, every[2]))
    some = mix_candidates({"posteriors": objective}, [None, None])
    loss, best = (-every[0] @ np.log(every[2] @ one.mixture_weights) for one in (some, whole))
    assert loss == pytest.approx(best, rel=0.01)
    # All candidates are judged by the same cells.
    other = Candidate(partial(pac_bayes_family, prior="branching"), MEAN.voting)
    folds = grown(X, y, None, 2, Cart())
    np.testing.assert_array_equal(
        Objective.for_candidate(folds, other, "log_loss").predict_validation(grid)[0], rows
    )


def test_paths_are_not_mixed():
    objective = Objective.for_candidate(
        grown(*noisy(50, 0)), CANDIDATES["weakest links"], "log_loss"
    )
    with pytest.raises(TypeError, match="family of posteriors over prunings, got PruningPath"):
        objective.predict_validation(np.ones((2, 1)))


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 9), st.integers(0, 30))
def test_mixing_equals_the_literal_algorithm(seed, n, n_posteriors, n_steps):
    rng = np.random.default_rng(seed)
    rows, shares = rng.uniform(0.1, 3, n), rng.uniform(SMALLEST, 1, (n, n_posteriors))
    proportion, loss = _core.fit_mixture(rows, shares, n_steps)
    expected, expected_loss = reference.fit_mixture(rows, shares, n_steps)
    np.testing.assert_allclose(proportion, expected, rtol=1e-11)
    assert loss == pytest.approx(expected_loss, rel=1e-11, abs=1e-11)


def test_mixing_predictions_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="probability has length 2, expected 3"):
        _core.fit_mixture(np.ones(3), np.ones((2, 2)), 1)
    with pytest.raises(ValueError, match="probability is empty"):
        _core.fit_mixture(np.ones(0), np.ones((0, 2)), 1)


def test_a_mixture_is_better_than_each_posterior_and_nearly_the_best():
    X, y = noisy(300, 2, 3)
    objective = Objective.for_candidate(grown(X, y, None, 3), MEAN, "log_loss")
    posteriors = mix_candidates({"posteriors": objective}, [None, None])
    np.testing.assert_array_equal(
        posteriors.temperatures, np.stack([MIXED_GRID, np.zeros(len(MIXED_GRID))], axis=1)
    )
    loss = mixed_loss(posteriors, {"posteriors": objective})
    assert loss < objective.compute_losses(posteriors.temperatures).min()
    rows, _, shares = objective.predict_validation(posteriors.temperatures)
    assert loss < _core.fit_mixture(rows, shares, 10 * STEPS)[1] * 1.01


def test_posteriors_of_several_candidates_are_mixed():
    X, y = noisy(200, 3, 3)
    folds = grown(X, y, None, 3)
    names = ["PAC-Bayes, smoothed mean", "PAC-Bayes", "PAC-Bayes, branching"]
    objectives = {
        name: Objective.for_candidate(folds, CANDIDATES[name], "log_loss") for name in names
    }
    together = mix_candidates(objectives, [None, None])
    assert set(together.candidate_names) == set(names)
    alone = [
        mixed_loss(mix_candidates({name: one}, [None, None]), objectives)
        for name, one in objectives.items()
    ]
    # A hundred steps are nearly enough.
    assert mixed_loss(together, objectives) < min(alone) * 1.01


def mixed_loss(posteriors, objectives):
    """Held-out log loss of a mixture, summed posterior by posterior."""
    shares = 0.0
    for name, row, share in zip(
        posteriors.candidate_names, posteriors.temperatures, posteriors.mixture_weights, strict=True
    ):
        rows, _, given = objectives[name].predict_validation(row[None])
        shares = shares + share * given[:, 0]
    return -rows @ np.log(shares)


def test_a_mixture_votes_with_the_average_of_its_posteriors():
    tree = grown(*noisy(80, 1))[0]
    posteriors = Mixture(np.array([[1.0, 0.0], [0.5, 0.0]]), np.array([0.3, 0.7]), ["a", "b"])
    candidates = {"a": PAC_BAYES, "b": CANDIDATES["PAC-Bayes, branching"]}
    expected = 0.3 * PAC_BAYES.family(tree.tree, tree.stats).solve(1.0, 0.0).weight
    expected += 0.7 * candidates["b"].family(tree.tree, tree.stats).solve(0.5, 0.0).weight
    weight = posteriors.compute_posterior(candidates, tree.tree, tree.stats).weight
    np.testing.assert_allclose(weight, expected, atol=1e-15)


@pytest.mark.parametrize(
    ("given_temperatures", "mixed"), [((0.7, None), 1), ((None, 0.3), 0), ((0.7, 0.3), None)]
)
def test_given_temperatures_stay_in_a_mixture(given_temperatures, mixed):
    X, y = noisy(60, 3)
    posteriors = mix_candidates(
        {"posteriors": Objective.for_candidate(grown(X, y), MEAN, "log_loss")}, given_temperatures
    )
    for i, value in enumerate(given_temperatures):
        expected = MIXED_GRID if i == mixed else np.full(len(posteriors.mixture_weights), value)
        np.testing.assert_array_equal(posteriors.temperatures[:, i], expected)
    assert len(posteriors.mixture_weights) == (1 if mixed is None else len(MIXED_GRID))


def test_without_folds_mixture_weights_are_equal():
    posteriors = mix_candidates(
        {"posteriors": Objective.for_candidate([], MEAN, "log_loss")}, [None, None]
    )
    np.testing.assert_array_equal(posteriors.mixture_weights, np.full(8, 1 / 8))


def test_a_mixture_of_numbers_does_not_depend_on_their_unit():
    random = np.random.default_rng(0)
    rows, truth = random.integers(1, 5, 30).astype(float), random.uniform(-1.9, 1.9, 30)
    votes = random.uniform(-1.9, 1.9, (30, 4))
    one = _fit_mixture_weights("squared", rows, truth, votes)
    assert one.sum() == pytest.approx(1)
    # Errors of the largest would overflow.
    for exponent in (1022, 300, -300):
        other = _fit_mixture_weights(
            "squared", rows, np.ldexp(truth, exponent), np.ldexp(votes, exponent)
        )
        np.testing.assert_array_equal(one, other)


def test_mixtures_have_the_same_bits_for_any_number_of_threads():
    X, y = noisy(200, 8, 3)
    folds = grown(X, y, None, 3)
    grid = np.stack([np.repeat(LOG_GRID, 2), np.tile([0.0, 1.0], 10)], axis=1)
    alone = Objective.for_candidate(folds, MEAN, "log_loss", 1).predict_validation(grid)
    for n_threads in (2, 3, 1000):
        together = Objective.for_candidate(folds, MEAN, "log_loss", n_threads).predict_validation(
            grid
        )
        np.testing.assert_array_equal(together[2], alone[2])


@pytest.mark.parametrize("shares", [[0.5, 0.4], [1.5, -0.5], [0.5, np.nan], [1.0]])
def test_mixture_weights_must_sum_to_one_and_match_the_posteriors(shares):
    with pytest.raises(ValueError, match=r"mixture_weights must be|temperatures"):
        Mixture(np.ones((2, 1)), np.array(shares), ["posterior", "posterior"])


# -- rows in groups ----------------------------------------------------------------------------------


def in_groups(n_groups=60, size=5, seed=0):
    """Rows that differ little in a group, whose classes are noise."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    centre = rng.normal(size=(n_groups, 3))[groups]
    y = rng.integers(0, 2, n_groups)[groups]
    return centre + 1e-3 * rng.normal(size=centre.shape), y, groups


TREES = [
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    DecoratedTreeRegressor,
]


@pytest.mark.parametrize("model", TREES)
def test_folds_assign_whole_groups(model):
    X, y, groups = in_groups()
    y = y * 1.0 if is_regressor(model()) else y
    seed = {"random_state": 0}
    loose, whole = model(**seed).fit(X, y), model(**seed).fit(X, y, groups=groups)
    # Noise that rows of a group share looks like a rule where they judge each other.
    new = np.random.default_rng(1).normal(size=(500, 3))
    spread = [
        np.ptp(one.predict_proba(new)[:, 1]) if is_classifier(one) else np.std(one.predict(new))
        for one in (loose, whole)
    ]
    assert spread[1] < spread[0]
    folds = [*GroupKFold(4).split(X, y, groups)]
    by_splitter = model(cv=GroupKFold(4), **seed).fit(X, y, groups=groups)
    assert np.array_equal(by_splitter.predict(new), model(cv=folds, **seed).fit(X, y).predict(new))
    renamed = np.array([*"abcdefghijklmnopqrstuvwxyz"])[groups % 26].astype(object) + groups.astype(
        str
    )
    assert model(**seed).fit(X, y, groups=renamed).predict(new).shape == (500,)


def test_groups_go_with_rows_that_have_a_weight():
    X, y, groups = in_groups()
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    here = weight > 0
    a = PACBayesTreeClassifier(random_state=0).fit(X, y, weight, groups)
    b = PACBayesTreeClassifier(random_state=0).fit(X[here], y[here], groups=groups[here])
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize("groups", [[0, 1], [[0], [1], [2]]])
def test_groups_of_another_shape_are_refused(groups):
    with pytest.raises(ValueError, match=r"groups must have shape \(3,\)"):
        PACBayesTreeClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 0], groups=groups)
