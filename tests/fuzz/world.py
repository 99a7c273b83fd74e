"""Arguments that fit together: one table, one tree, its statistics, posteriors, priors and
votes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from certree import (
    Cart,
    NodeStats,
    PACBayesTreeClassifier,
    TargetStats,
    Tree,
    Voting,
    count,
    grow_cart,
    grow_dyadic,
    grow_kd,
    measure,
    pac_bayes,
    vote,
)
from certree.boolean import Spectrum, spectrum_of_values
from certree.certificates import (
    METHODS,
    HeldOutNumbers,
    LabelledSelection,
    ModelSelection,
    branching_prior,
    centred_prior,
    count_prior,
    fixed_box,
    held_out,
    hold_out,
    labelled_posterior,
    lowest_fixed_box,
    size_prior,
)
from certree.grow import dyadic_grid
from certree.weights import map_pruning
from fuzz.hostile import spoilt


class World:
    """The random source of a case, with objects that fit together; each is made when it is first
    read.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.generator = np.random.default_rng(random.getrandbits(63))
        self.n = random.choice([1, 2, 3, 5, 8, 13, 30])
        self.p = random.choice([1, 2, 3, 4])
        self.n_classes = random.choice([1, 2, 2, 3, 4])

    @cached_property
    def spectrum(self) -> Spectrum:
        return spectrum_of_values(self.generator.normal(size=2**self.p))

    @cached_property
    def X(self) -> np.ndarray:
        shape, way = (self.n, self.p), self.random.randrange(7)
        if way == 0:
            rows = self.generator.integers(0, 3, shape).astype(float)
        elif way == 1:
            rows = np.ones(shape)
        elif way == 2:
            rows = self.generator.normal(size=shape) * 10.0 ** self.random.randrange(-320, 308)
        elif way == 3:  # neighbouring numbers
            rows = 1 + self.generator.integers(0, 9, shape) * 2.0**-52
        else:
            rows = self.generator.normal(size=shape)
        if self.random.random() < 0.2:
            rows[self.generator.random(shape) < 0.2] = np.nan
        is_moderate = not rows.size or np.nanmax(np.abs(rows), initial=0.0) < 1e38
        return rows.astype(np.float32) if is_moderate and self.random.random() < 0.2 else rows

    @cached_property
    def y(self) -> np.ndarray:
        return self.generator.integers(0, self.n_classes, self.n)

    @cached_property
    def target(self) -> np.ndarray:
        scale = 10.0 ** self.random.choice([0, 0, 0, -100, 100, -160, 150])
        return self.generator.normal(size=self.n) * scale

    @cached_property
    def sample_weight(self) -> np.ndarray | None:
        way = self.random.randrange(5)
        if way < 2:
            return None
        if way == 2:
            return self.generator.integers(0, 3, self.n).astype(float)
        return self.generator.random(self.n) * 10.0 ** self.random.choice([0, 0, -200, 200])

    @cached_property
    def tree(self) -> Tree:
        X = np.nan_to_num(self.X.astype(float))
        way = self.random.randrange(5)
        if way == 0:
            return grow_kd(X, self.y)
        if way == 1:
            return grow_dyadic(X, self.y, max_depth=6, expand=self.random.random() < 0.2)
        if way == 2:
            return self.by_hand()
        return grow_cart(self.X, self.y)

    def by_hand(self) -> Tree:
        """Make a tree with random splits, with chains and sets of categories."""
        left, leaves = [-1], [0]
        for _ in range(self.random.randrange(8)):
            v = leaves.pop(self.random.randrange(len(leaves)))
            left[v] = len(left)
            leaves += [len(left), len(left) + 1]
            left += [-1, -1]
        m, is_inner = len(left), np.array(left) >= 0
        sets = [
            sorted(self.random.sample(range(5), self.random.randrange(4))) if inner else []
            for inner in is_inner
        ]
        compares = self.random.random() < 0.3
        return Tree(
            np.where(is_inner, self.generator.integers(0, self.p, m), 0).astype(np.int32),
            np.where(is_inner, self.generator.normal(size=m), 0.0),
            np.array(left, dtype=np.int32),
            self.generator.integers(1, 4, m).astype(np.int32),
            self.p,
            (self.generator.random(m) < 0.5) & is_inner,
            np.cumsum([0, *map(len, sets)]) if compares else None,
            np.array([c for s in sets for c in s], dtype=np.int32) if compares else None,
            unseen_left=[compares and len(s) > 0 and self.random.random() < 0.5 for s in sets],
        )

    @cached_property
    def stats(self) -> NodeStats:
        stats = count(self.tree, self.X, self.y, self.n_classes, self.sample_weight)
        return replace(stats, weight_unit=self.weight_unit())

    @cached_property
    def target_stats(self) -> TargetStats:
        stats = measure(self.tree, self.X, self.target, self.sample_weight)
        return replace(stats, weight_unit=self.weight_unit())

    @cached_property
    def posterior(self) -> Any:
        return pac_bayes(
            self.tree, self.stats, self.inverse_temperature(), self.inverse_temperature()
        )

    @cached_property
    def pruning(self) -> Any:
        return map_pruning(self.tree, self.posterior)

    @cached_property
    def ballot(self) -> Any:
        return vote(self.tree, self.stats, self.posterior, self.random.choice(["majority", "mean"]))

    @cached_property
    def prior(self) -> Any:
        way = self.random.randrange(4)
        if way == 0:
            return branching_prior(self.tree, self.held.n_classes)
        if way == 1:
            return size_prior(self.tree, self.held.n_classes)
        if way == 2:
            return count_prior(self.tree, self.held.grown)
        return centred_prior(self.tree, self.held.grown, self.pruning)

    @cached_property
    def held(self) -> Any:
        order = self.generator.permutation(self.n)
        half = self.n // 2
        sides = {"grow": order[:half], "weigh": order[half:]}
        return held_out(self.tree, self.X, self.y, self.n_classes, **sides)

    @cached_property
    def fixed(self) -> Any:
        box = [[-1.0] * self.p, [1.0] * self.p]
        tree = dyadic_grid(*box, self.p * self.random.choice([0, 1, 2]))
        return fixed_box(tree, self.X, self.generator.integers(0, 2, self.n), box)

    def held_numbers(self) -> Any:
        leaf = self.tree.apply(self.X)
        weight, limit = np.ones(self.n), float(np.abs(self.target).max()) or 1.0
        return HeldOutNumbers(
            self.tree, self.target_stats, leaf, self.target, weight, limit, self.n
        )

    def weight_unit(self) -> float:
        """Return the mean weight of the rows, as estimators set it, or 1."""
        weight = self.sample_weight
        if weight is None or self.random.random() < 0.5 or not weight.any():
            return 1.0
        return float(weight[weight > 0].mean())

    def inverse_temperature(self) -> float:
        return self.random.choice([0.0, 1e-300, 0.1, 1.0, 7.5, 1e3, 1e300])

    def probability(self) -> float:
        return self.random.choice([0.5, 0.05, 1e-3, 1e-300, 0.999999, 5e-324, 1.0])


# Functions of two-valued rows whose answers do not change.
STEADY = (lambda X: X[:, 0] * X[:, -1], lambda X: (X[:, 0] != X[:, -1]) * 0.5)

# What a parameter of this name takes; with the function's name before it where that matters.
PLAUSIBLE: dict[str, Callable[[World], Any]] = {
    "X": lambda w: w.X,
    "y": lambda w: w.y,
    "measure.y": lambda w: w.target,
    "grow_cart.y": lambda w: w.random.choice([w.y, w.target]),
    "sample_weight": lambda w: w.sample_weight,
    "time": lambda w: w.random.choice([None, w.generator.integers(0, 50, w.n)]),
    "independent": lambda w: w.random.random() < 0.5,
    "tree": lambda w: w.tree,
    "stats": lambda w: w.stats if w.random.random() < 0.8 else w.target_stats,
    "validation": lambda w: w.stats,
    "population": lambda w: NodeStats(
        w.stats.counts / max(float(w.stats.n[0]), 1e-300), w.stats.label
    ),
    "bayes_risk": lambda w: w.random.choice([0.0, 0.0, w.probability()]),
    "grown": lambda w: w.held.grown,
    "weights": lambda w: w.posterior,
    "posterior": lambda w: w.posterior,
    "certify_posterior.posterior": lambda w: (
        w.posterior
        if w.random.random() < 0.7
        else labelled_posterior(w.tree, w.held.stats, w.prior, w.inverse_temperature())
    ),
    "posteriors": lambda w: [w.posterior],
    "wrong": lambda w: w.generator.random((3, 8)),
    "judged": lambda w: w.generator.random((3, 8)) < 0.8,
    "certify_ensemble.weight": lambda w: w.generator.dirichlet(np.ones(3)),
    "certify_ensemble.method": lambda w: w.random.choice(
        ["ensemble_first_order", "ensemble_tandem", "ensemble_either_wrong"]
    ),
    "complexity": lambda w: w.inverse_temperature(),
    "certify_ensemble.risk": lambda w: w.random.choice([None, 0.5]),
    "pruning": lambda w: w.pruning,
    "ballot": lambda w: w.ballot,
    "held": lambda w: w.held,
    "fixed": lambda w: w.fixed,
    "certify_fixed_box.pruning": lambda w: lowest_fixed_box(w.fixed),
    "fixed_box.tree": lambda w: w.fixed.tree,
    "fixed_box.box": lambda w: w.fixed.box,
    "fixed_box.y": lambda w: w.generator.integers(0, 2, w.n),
    "absolute_error.held": lambda w: w.held_numbers,
    "absolute_error_pruning.held": lambda w: w.held_numbers,
    "absolute_error_pruning.voting": lambda w: w.random.choice([None, Voting("mean", 2.0)]),
    "prior": lambda w: w.prior,
    "pac_bayes.loss": lambda w: w.random.choice(["error", "log_loss"]),
    "pac_bayes.prior": lambda w: w.random.choice(["leaves", "branching"]),
    "gibbs_posterior.prior": lambda w: w.posterior,
    "kl_divergence.prior": lambda w: w.posterior,
    "renyi_divergence.prior": lambda w: w.posterior,
    "log_prior_mass.prior": lambda w: w.posterior,
    "chernoff_oracle_bound.prior": lambda w: w.posterior,
    "excess_bound.prior": lambda w: w.posterior,
    "excess_posterior.prior": lambda w: w.posterior,
    "gibbs_excess_bound.prior": lambda w: w.posterior,
    "penalty": lambda w: w.generator.random(w.tree.n_nodes) / 100,
    "bayes_errors": lambda w: float(w.random.randrange(w.n + 1)),
    "empty": lambda w: w.random.choice(["parent", "first"]),
    "model_selection": lambda w: ModelSelection(w.held, w.pruning, 0.05, Voting("mean", 0.1)),
    "select_labelled.model_selection": lambda w: LabelledSelection(w.held, 0.05),
    "label": lambda w: w.generator.integers(0, w.n_classes, w.tree.n_nodes),
    "count.label": lambda w: None,
    "log_label": lambda w: np.log(w.generator.dirichlet(np.ones(w.held.n_classes), w.tree.n_nodes)),
    "value": lambda w: w.generator.normal(size=w.tree.n_nodes),
    "log_own": lambda w: w.generator.normal(size=w.tree.n_nodes) * w.inverse_temperature(),
    "log_split": lambda w: w.random.choice([0.0, -1.0, w.generator.normal(size=w.tree.n_nodes)]),
    "cost": lambda w: w.random.choice([None, "error", "gini", "entropy", "squared"]),
    "prune.cost": lambda w: w.generator.random(w.tree.n_nodes),
    "polynomial_penalised.cost": lambda w: w.random.choice(
        [None, w.generator.random(w.tree.n_nodes)]
    ),
    "rows": lambda w: w.target_stats.rows,
    "count_prior.rows": lambda w: w.inverse_temperature(),
    "sse": lambda w: w.target_stats.sse,
    "n_classes": lambda w: w.n_classes,
    "unit": lambda w: w.random.choice([None, 1.0, 1e-300]),
    "weight_unit": World.weight_unit,
    "grow": lambda w: w.held.grow,
    "weigh": lambda w: w.held.weigh,
    "groups": lambda w: w.random.choice([None, w.generator.integers(0, 3, w.n)]),
    "n": lambda w: w.n,
    "errors": lambda w: w.random.randrange(w.n + 1),
    "selective_certificates.fixed": lambda w: w.random.random() < 0.5,
    "add_candidate_labels.labels": lambda w: [
        w.held.grown.label for _ in range(w.random.choice([1, 2]))
    ],
    "hold_out_best.errors": lambda w: [w.random.randrange(w.n + 1) for _ in range(3)],
    "risk": lambda w: w.generator.random(),
    "certificates": lambda w: hold_out(0, w.n),
    "priors": lambda w: w.prior,
    "method": lambda w: w.random.choice([*METHODS]),
    "vote.voting": lambda w: w.random.choice(["majority", "mean", Voting("mean", 0.5)]),
    "prediction_variance.voting": lambda w: Voting("mean", w.random.choice([0.0, 0.5, 1e300])),
    "tuples": lambda w: ((1, 1), (2, 1)),
    "doubts": lambda w: (0.1, 0.01),
    "rng": lambda w: w.random.randrange(9),
    "content_folds.rng": lambda w: np.random.RandomState(0),
    "n_folds": lambda w: w.random.choice([2, 3, 5]),
    "random_state": lambda w: np.random.RandomState(0),
    "low": lambda w: -np.ones(w.p),
    "high": lambda w: np.ones(w.p),
    "estimator": lambda w: DecisionTreeClassifier(max_depth=3).fit(np.nan_to_num(w.X), w.y),
    "classifier": lambda w: PACBayesTreeClassifier(
        Cart(), lambda_error=1.0, lambda_penalty=0.0, prior="leaves"
    ).fit(w.X, w.y),
    "look": lambda w: w.random.choice([1, 2]),
    "families": lambda w: w.random.choice([None, "recall", ["error", "precision"], ["gaps"]]),
    "conditional_guarantees.weights": lambda w: w.random.choice([None, w.generator.random(w.n)]),
    "max_weight": lambda w: w.random.choice([None, 1.0]),
    "conditional_guarantees.random_state": lambda w: w.random.randrange(9),
    "jointly": lambda w: w.random.random() < 0.5,
    "duplicates": lambda w: w.random.choice(["genuine", "copies", "refuse"]),
    "conditional_guarantees.duplicates": lambda w: "genuine",
    "order": lambda w: w.random.choice([0.5, 2.0, 7.0]),
    "dimension": lambda w: float(w.p),
    "n_features": lambda w: w.p,
    "measurement": lambda w: w.generator.normal(size=(w.n, 3)),
    "sparse_recovery.y": lambda w: w.generator.normal(size=w.n),
    "sparse_recovery.noise": lambda w: w.random.choice([0.0, 0.5, 10.0]),
    "depth": lambda w: w.random.randrange(6),
    "smoothness": lambda w: w.random.choice([1, 1.5, 2, 3]),
    "max_depth": lambda w: w.random.choice([None, 0, 1, 5]),
    "n_jobs": lambda w: w.random.choice([None, 1, 2]),
    "exponent": lambda w: w.random.choice([None, 0.5, 2.0]),
    "categorical_features": lambda w: w.random.choice([None, [0], [True] * w.p]),
    "monotonic_cst": lambda w: w.random.choice([None, [1] * w.p, [0] * w.p]),
    "selection": lambda w: w.random.choice(["best", "training", "vote"]),
    "n_draws": lambda w: w.random.choice([1, 2, 5]),
    "n_wrong": lambda w: w.random.choice([1, 2]),
    **dict.fromkeys(
        (
            "lambda_error",
            "lambda_penalty",
            "inverse_temperature",
            "alpha",
            "leaf_cost",
            "gibbs_excess",
        ),
        World.inverse_temperature,
    ),
    **dict.fromkeys(
        (
            *("delta", "share", "stop_probability", "stop_below", "trust", "doubt", "confidence"),
            *("coverage", "train_size"),
        ),
        World.probability,
    ),
    **dict.fromkeys(
        ("count_empty", "free_splits", "grouped"),
        lambda w: w.random.random() < 0.5,
    ),
    "model": lambda w: w.random.choice(
        [
            DecisionTreeClassifier(max_depth=3).fit(np.nan_to_num(w.X), w.y),
            (w.tree, w.generator.normal(size=(w.tree.n_nodes, 2))),
        ]
    ),
    "degree": lambda w: w.random.choice([0, 1, 3]),
    "coding": lambda w: w.random.choice(["0/1", "-1/+1"]),
    "spectrum.coding": lambda w: w.random.choice(["auto", "thresholds", "0/1"]),
    "mean": lambda w: None,
    "function": lambda w: w.random.choice(
        [
            *STEADY,
            lambda X: w.generator.uniform(-1, 1, len(X)),  # noise
            lambda X: spoilt(w.random, np.ones(len(X))),
        ]
    ),
    "budget": lambda w: w.random.choice([None, 5, 300]),
    "sparsify.budget": lambda w: None,
    "error": lambda w: w.inverse_temperature(),
    "kushilevitz_mansour.theta": lambda w: w.random.choice([0.4, 0.6]),
    "largest": lambda w: w.random.choice([1.0, 2.0]),
    "tolerance": lambda w: w.random.choice([1e-9, 1e-6]),
    "spectrum": lambda w: w.spectrum,
    "n_leaves": lambda w: w.random.choice([1, 4]),
    "epsilon": World.probability,
    "values": lambda w: w.generator.normal(size=2**w.p),
    "held_out_error.X": lambda w: w.generator.integers(0, 2, (w.n, w.p)),
    "held_out_error.values": lambda w: w.generator.choice([-1.0, 1.0], w.n),
    "held_out_error.low": lambda w: -1.0,
    "held_out_error.high": lambda w: 1.0,
    "low_degree.X": lambda w: w.generator.integers(0, 2, (w.n, w.p)),
    "low_degree.y": lambda w: w.generator.choice([-1.0, 1.0], w.n),
    "keep": lambda w: w.random.choice(["all", "proven", "practical"]),
    "inverse": lambda w: w.random.random() < 0.5,
    "bound": lambda w: w.random.choice([0.1, 0.5, w.probability()]),
    "alpha": World.probability,
    "losses": lambda w: w.random.choice([w.y > 0, w.generator.random(w.n), 1.0, []]),
    "log_cells": lambda w: w.random.choice([None, 1.0, 30.0]),
}


def plausible(world: World, function: str, parameter: str) -> Any:
    """Draw a value for a parameter of a function from the world."""
    draw = PLAUSIBLE.get(f"{function}.{parameter}") or PLAUSIBLE[parameter]
    return draw(world)
