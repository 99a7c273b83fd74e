"""Cases of single stages: growers, statistics, posteriors, prunings, votes, folds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import certree
from benchmarks.answers.hashes import Case, Parts, case, stats_columns, tree_parts, weights_parts
from benchmarks.answers.single_trees import CORNERS, RISING
from benchmarks.answers.tables import row_weights, table
from certree import grow, prunings, rows, votes, weights


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A tree with the statistics of its rows, and a posterior over its prunings."""

    tree: certree.Tree
    stats: Any
    posterior: certree.NodeWeights


@cache
def grow_stage(name: str, grower: str = "cart") -> Grown:
    """Grow a tree, compute statistics of its rows and a posterior over its prunings."""
    data = table(name)
    tree = TREES[f"{grower}, {name}"]()
    if data.y.dtype.kind == "f":
        stats = certree.measure(tree, data.X, data.y)
    else:
        stats = certree.count(tree, data.X, data.y, int(data.y.max()) + 1)
    return Grown(tree, stats, certree.pac_bayes(tree, stats, 0.5, 0.1))


@case
def grow_tree(name: str, grower: Any, weight: str = "", **switches: Any) -> certree.Tree:
    """Return the parts of a tree grown from a table."""
    data = table(name)
    if weight:
        switches["sample_weight"] = row_weights(weight, len(data.y))
    return grower(data.X, data.y, **switches)


@case
def convert(name: str) -> certree.Tree:
    """Return the tree that is converted from scikit-learn's tree."""
    model = DecisionTreeClassifier(random_state=0).fit(table(name).X, table(name).y)
    return grow.from_sklearn(model)


GREEDY = {
    "gini": {},
    "entropy": {"criterion": "entropy"},
    "misclassification": {"criterion": "misclassification"},
    "random cuts": {"splitter": "random", "random_state": 3},
    "2 features": {"max_features": 2, "random_state": 4},
    "15 leaves": {"max_leaf_nodes": 15},
    "least decrease": {"min_impurity_decrease": 1 / 128},
    "least decrease, weights": {"min_impurity_decrease": 1 / 128, "weight": "eighths"},
    "12 rows": {"min_samples_split": 12},
    "depth 4": {"max_depth": 4},
    "log depth": {"max_depth": "log"},
    "monotonic": {"monotonic_cst": RISING},
    "weights": {"weight": "any"},
    "two threads": {"n_jobs": 2},
}
MEDIANS = {
    "in turn": {"axis": "cycle"},
    "by spread": {"axis": "spread"},
    "impure": {"axis": "spread", "stop_when_pure": False},
    "12 rows": {"axis": "cycle", "min_samples_split": 12, "max_depth": 6},
    "weights": {"axis": "spread", "weight": "any"},
}
MIDPOINTS = {
    "plain": {},
    "impure": {"stop_when_pure": False, "min_samples_split": 3},
    "log depth": {"max_depth": "log"},
    "paper": {"resolution": "paper"},
    "paper, exponent 1/2": {"resolution": "paper", "exponent": 0.5},
    "weights": {"weight": "any", "min_samples_split": 2},
}
GROW_NUMBERS = partial(certree.grow_cart, criterion="squared")
GROW_CODES = partial(certree.grow_cart, criterion="gini", categorical_features=[0, 1])
TREES: Mapping[str, Callable[[], certree.Tree]] = {
    **{
        f"cart, {name}": grow_tree("normal", certree.grow_cart, **{"criterion": "gini", **s})
        for name, s in GREEDY.items()
    },
    **{
        f"cart, {name}": grow_tree(name, certree.grow_cart, criterion="entropy")
        for name in ("normal", "three", "single", "missing", "plane")
    },
    "cart, wave": grow_tree("wave", GROW_NUMBERS),
    "cart, rough wave": grow_tree("rough wave", GROW_NUMBERS, categorical_features=[3]),
    "cart, coded": grow_tree("coded", GROW_CODES),
    "cart, coded at random": grow_tree("coded", GROW_CODES, splitter="random", random_state=5),
    **{f"kd, {name}": grow_tree("normal", certree.grow_kd, **s) for name, s in MEDIANS.items()},
    "kd, missing": grow_tree("missing", certree.grow_kd, axis="spread"),
    "kd, three": grow_tree("three", certree.grow_kd, axis="spread"),
    **{
        f"dyadic, {name}": grow_tree("plane", certree.grow_dyadic, **s)
        for name, s in MIDPOINTS.items()
    },
    "dyadic, missing": grow_tree("missing", certree.grow_dyadic),
    "dyadic, plane": grow_tree("plane", certree.grow_dyadic),
    "dyadic, single": grow_tree("single", certree.grow_dyadic),
    "grid": lambda: grow.dyadic_grid(*CORNERS, 7),
    "scikit-learn": convert("three"),
    "scikit-learn, missing": convert("missing"),
}


def grown_parts(make: Callable[[], certree.Tree]) -> Case:
    """Return the parts of a tree."""
    return lambda: tree_parts(make())


def resolutions() -> Parts:
    """Return resolutions of dyadic trees."""
    found = [
        grow.dyadic_resolution(n, p, exponent)
        for n in (1000, 10**6)
        for p in (1, 2, 3)
        for exponent in (None, 0.5, 1 / 4)
    ]
    return {"resolutions": found}


def count_classes() -> Parts:
    """Return class counts, with weights and with fixed labels."""
    data, tree = table("three"), grow_stage("three").tree
    weighted = certree.count(tree, data.X, data.y, 3, sample_weight=row_weights("any", len(data.y)))
    labelled = certree.count(tree, data.new, data.truth, 4, label=np.arange(tree.n_nodes) % 3)
    return {
        "plain": (*stats_columns(grow_stage("three").stats), grow_stage("three").stats.errors),
        "weighted": (*stats_columns(weighted), weighted.impurity, weighted.errors),
        "labelled": (*stats_columns(labelled), labelled.errors),
    }


def measure_numbers() -> Parts:
    """Return moments of numbers, with weights and a fixed unit."""
    data, tree = table("wave"), grow_stage("wave").tree
    weighted = certree.measure(tree, data.X, data.y, sample_weight=row_weights("any", len(data.y)))
    own_unit = certree.measure(tree, data.new, data.truth, unit=0.25)
    return {
        "plain": stats_columns(grow_stage("wave").stats),
        "weighted": (*stats_columns(weighted), weighted.loss),
        "own unit": (*stats_columns(own_unit), own_unit.loss),
    }


Law = Callable[[certree.Tree, Any], certree.NodeWeights]


def bind(law: Callable[..., certree.NodeWeights], *args: Any, **options: Any) -> Law:
    """Return a posterior, or a pruning, as a function of tree and statistics alone."""
    return lambda tree, stats: law(tree, stats, *args, **options)


LAWS: Mapping[str, Law] = {
    "leaves": bind(certree.pac_bayes, 0.7, 0.2, "leaves"),
    "branching": bind(certree.pac_bayes, 0.7, 0.2, "branching"),
    "branching, 0.9": bind(certree.pac_bayes, 2.0, 0.0, "branching", 0.9),
    "own costs": lambda tree, stats: weights.average(tree, -0.1 * stats.loss, -0.3),
    "no cost of errors": bind(certree.pac_bayes, 0.0, 0.0),
}
CLASS_POSTERIORS: Mapping[str, Law] = {
    "theorem": bind(weights.theorem_posterior, 0.5, 0.05),
    "Helmbold and Schapire": bind(weights.helmbold_schapire, 0.7),
}
PRUNINGS: Mapping[str, Law] = {
    "own costs": lambda tree, stats: prunings.prune(tree, stats.loss + 1.5),
    "cost-complexity": bind(prunings.cost_complexity, 0.8),
    "depth": bind(prunings.depth_penalised, 0.05),
    "square root": bind(prunings.square_root_penalised, 0.02),
    "square root, empty leaves": bind(prunings.square_root_penalised, 0.01, count_empty=True),
    "spatially adaptive": bind(prunings.spatially_adaptive, 0.02),
    "spatially adaptive, cells": bind(
        prunings.spatially_adaptive, 0.01, log_cells=9.0, count_empty=True
    ),
    "polynomial": bind(prunings.polynomial_penalised, 2, 0.02),
    "polynomial, own costs": lambda tree, stats: prunings.polynomial_penalised(
        tree, stats, 3, 0.005, log_cells=7.0, count_empty=True, cost=0.9 * stats.loss
    ),
}
CLASS_PRUNINGS: Mapping[str, Law] = {
    "pessimistic": prunings.pessimistic,
    "pessimistic, 0.1": bind(prunings.pessimistic, 0.5, confidence=0.1),
    "description": prunings.minimum_description_length,
    "description, free splits": bind(prunings.minimum_description_length, 1.5, free_splits=True),
    "reduced error": lambda tree, stats: prunings.reduced_error(
        tree, stats, certree.NodeStats(np.roll(stats.counts, 1, axis=1), stats.label)
    ),
}


@case
def law_parts(name: str, grower: str, make: Law) -> Parts:
    """Return the parts of a posterior or a pruning, and of its properties."""
    tree, stats = grow_stage(name, grower).tree, grow_stage(name, grower).stats
    posterior = make(tree, stats)
    likeliest = weights.map_pruning(tree, posterior)
    parts = weights_parts(posterior)
    parts["likeliest"] = (likeliest.weight, likeliest.log_odds)
    parts["drawn"] = weights.sample_pruning(tree, posterior, 11).weight
    parts["reached"] = weights.reached(tree, posterior)
    parts["entropy"] = (weights.entropy(tree, posterior), posterior.expected_leaves)
    if isinstance(stats, certree.NodeStats):
        parts["Gibbs risk"] = weights.gibbs_risk(stats, posterior)
    return parts


@case
def path_parts(name: str, grower: str, cost: str | None) -> Parts:
    """Return the paths of cost-complexity pruning and of merges."""
    stage = grow_stage(name, grower)
    parts: Parts = {}
    for empty in (False, True):
        path = prunings.cost_complexity_path(stage.tree, stage.stats, cost, count_empty=empty)
        middle = path.pruning(len(path.alphas) // 2)
        parts[f"path, {empty}"] = (path.alphas, path.critical, middle.weight)
    merges = prunings.sibling_merge_path(stage.tree, stage.stats, cost)
    after = merges.pruning_after(len(merges.rises) // 2).weight
    parts["merges"] = (merges.alphas, merges.critical, merges.order, merges.rises, after)
    return parts


@case
def vote_parts(name: str, slopes: list[int] | None = None) -> Parts:
    """Return votes of a posterior by labels and by frequencies, or means and their variance."""
    stage = grow_stage(name)
    args = (stage.tree, stage.stats, stage.posterior)
    along = None if slopes is None else np.array(slopes, dtype=np.int8)
    means = {s: certree.vote(*args, certree.Voting("mean", s, along)) for s in (0.0, 0.1, 2.0)}
    parts: Parts = {f"mean, {s}": ballot.score for s, ballot in means.items()}
    if isinstance(stage.stats, certree.NodeStats):
        majority = certree.vote(*args, certree.Voting("majority", slopes=along))
        parts["majority"] = (majority.score, majority.label)
    else:
        spread = votes.prediction_variance(*args, certree.Voting("mean", 2.0, along))
        parts["spread"] = (spread.between, spread.within)
    return parts


def assign_folds() -> Parts:
    """Return folds that are assigned by the content of rows."""
    parts: Parts = {}
    for name, weight in (("three", ""), ("whole", ""), ("whole", "whole"), ("wave", "any")):
        data, rng = table(name), np.random.RandomState(5)
        y = data.y if data.y.dtype.kind == "f" else data.y.astype(np.int32)
        w = row_weights(weight, len(y)) if weight else None
        dealt = rows.content_folds(data.X, y, 3, rng, w)
        parts[f"{name} {weight}"] = [
            side for fold in dealt for side in (fold.train, fold.validation)
        ]
    return parts


ON_PLANE = ("plane", "dyadic")
STAGES: Mapping[str, Case] = {
    **{f"grow: {name}": grown_parts(make) for name, make in TREES.items()},
    "grow: resolutions": resolutions,
    "stats: count": count_classes,
    "stats: measure": measure_numbers,
    **{
        f"{kind}: {case}, {name}, {grower}": law_parts(name, grower, make)
        for kind, made in (("posterior", LAWS), ("pruning", PRUNINGS))
        for case, make in made.items()
        for name, grower in (("three", "cart"), ON_PLANE, ("wave", "cart"))
    },
    **{
        f"{kind}: {case}, {name}, {grower}": law_parts(name, grower, make)
        for kind, made in (("posterior", CLASS_POSTERIORS), ("pruning", CLASS_PRUNINGS))
        for case, make in made.items()
        for name, grower in (("normal", "cart"), ON_PLANE)
    },
    **{
        f"path: {cost}, {name}, {grower}": path_parts(name, grower, cost)
        for cost, name, grower in (
            (None, "three", "cart"),
            ("error", *ON_PLANE),
            ("gini", "three", "cart"),
            ("entropy", *ON_PLANE),
            (None, "wave", "cart"),
            ("squared", "wave", "cart"),
        )
    },
    **{f"vote: {name}": vote_parts(name) for name in ("normal", "three", "wave", "coded")},
    "vote: normal, monotonic": vote_parts("normal", RISING),
    "vote: wave, monotonic": vote_parts("wave", [0, 1, 0]),
    "rows: folds": assign_folds,
}
