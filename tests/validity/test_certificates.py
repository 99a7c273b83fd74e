"""Every row of METHODS by simulation: rows whose distribution is known, so that the true risk is too.

Rows are points of a grid, and their classes follow a small tree apart from noise, so that the risk of
whatever is certified is a finite sum.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, norm

import certree
import reference
from certree import Tree, paper
from certree.certificates import METHODS, Guarantees, HeldOut, conditional_guarantees, inequalities
from certree.certificates.certificate import compute_certificate
from certree.certificates.methods import get_inequality
from certree.certificates.subsets import CertificateFamily
from certree.certificates.subsets.families import CertificateTerms
from certree.certificates.subsets.row_subsets import make_leaf_subsets, make_node_subsets
from certree.rows.split import draw_row_per_group
from certree.rows.time_order import Period
from run_length import LONG

REPEATS = 400 if LONG else 12
SIDE = 16
GRID = np.stack(np.meshgrid(*2 * [np.arange(SIDE)], indexing="ij"), axis=-1).reshape(-1, 2) + 0.0
DELTA = 0.05
N_GROW, N_WEIGH = 120, 1500
PARTS = ["recall", "precision", "leaves", "cells", "groups", "gaps"]
PERIOD = Period("1", "2")
LAMBDAS = (0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class World:
    """Classes of the points of the grid: a tree's, or any other with the probability `noise`."""

    n_classes: int
    noise: float = 0.06

    @property
    def planted(self):
        x, y = GRID.T
        quarter = (x >= SIDE // 2).astype(int) * 2 + (y >= SIDE // 4)
        return np.where((x < 3) & (y < 3), self.n_classes - 1, quarter) % self.n_classes

    @property
    def classes(self):
        """Probability of each class at each point, (points, K)."""
        other = self.noise / (self.n_classes - 1)
        return np.where(np.eye(self.n_classes)[self.planted] == 1, 1 - self.noise, other)

    def draw(self, rng, n, group_size=1):
        """Points and classes of n rows; rows of one group share their noise, but not their point."""
        point = rng.integers(0, len(GRID), n)
        n_groups = -(-n // group_size)
        shared = [
            np.repeat(values, group_size)[:n]
            for values in (
                rng.random(n_groups) < self.noise,
                rng.integers(1, self.n_classes, n_groups),
            )
        ]
        y = self.planted[point]
        return GRID[point], np.where(shared[0], (y + shared[1]) % self.n_classes, y)

    def risk_of_labels(self, tree, label):
        """True risk of a labelling of the leaves."""
        named = label[tree.apply(GRID)]
        return 1 - self.classes[np.arange(len(GRID)), named].mean()

    def risk_of_answers(self, tree, label):
        """True risk where the label is a class."""
        named = label[tree.apply(GRID)]
        answered = named < self.n_classes
        right = self.classes[answered, named[answered]]
        return 1 - right.mean()

    def gibbs_risk(self, tree, ballot):
        wrong = inequalities.wrong_mass(ballot)[tree.apply(GRID)]
        return (wrong * self.classes).sum(axis=1).mean()


@dataclass(frozen=True)
class Draw:
    """One draw of all rows, and what may be certified of it."""

    world: World
    seed: int
    group_size: int = 1

    def rows(self):
        rng = np.random.default_rng([self.seed, self.world.n_classes, self.group_size])
        X, y = self.world.draw(rng, N_GROW + N_WEIGH, self.group_size)
        return X, y, np.arange(N_GROW), np.arange(N_GROW, N_GROW + N_WEIGH)

    def held(self) -> HeldOut:
        X, y, grow, weigh = self.rows()
        tree = certree.grow_kd(X[grow], y[grow], min_samples_split=5)
        groups = None if self.group_size == 1 else np.arange(len(y)) // self.group_size
        return certree.certificates.held_out(
            tree, X, y, self.world.n_classes, grow=grow, weigh=weigh, groups=groups
        )


def priors(held):
    pruning = certree.prunings.cost_complexity(held.tree, held.grown, 2.0)
    return certree.certificates.doubted_prior(held.tree, held.grown, pruning, (0.1, 0.01))


def posteriors(held, prior):
    """Posteriors of several temperatures: a bound may be taken for the best of them."""
    for part in prior.components:
        for lam in LAMBDAS:
            yield certree.certificates.gibbs_posterior(
                held.tree, held.stats, part.distributions[0], lam
            )


def by_law(name):
    """Bound and true risk of the law with the lowest bound."""

    def certify(draw):
        held = draw.held()
        prior = priors(held)
        certified = [
            (
                certree.certificates.certify_posterior(held, posterior, prior, DELTA, method=name),
                posterior,
            )
            for posterior in posteriors(held, prior)
        ]
        certificate, posterior = min(certified, key=lambda pair: pair[0].bound)
        ballot = certree.vote(held.tree, held.stats, posterior)
        if name.startswith("gibbs"):
            return certificate.bound, draw.world.gibbs_risk(held.tree, ballot)
        return certificate.bound, draw.world.risk_of_labels(held.tree, ballot.label)

    return certify


def by_label(certify):
    """Bound and true risk of the vote with the lowest bound, of both kinds."""

    def outcome(draw):
        held = draw.held()
        prior = priors(held)
        labels = [
            certree.vote(held.tree, held.stats, posterior, kind).label
            for posterior in posteriors(held, prior)
            for kind in ("majority", "mean")
        ]
        found = [(certify(held, label, prior, DELTA), label) for label in labels]
        certificate, label = min(found, key=lambda pair: pair[0].bound)
        return certificate.bound, draw.world.risk_of_labels(held.tree, label)

    return outcome


def of_one_pruning(certify):
    """Bound and true risk of the pruning that the training samples choose."""

    def outcome(draw):
        held = draw.held()
        pruning = certree.prunings.cost_complexity(held.tree, held.grown, 2.0)
        label = certree.vote(held.tree, held.stats, pruning).label
        risk = pruning.weight @ held.stats.errors / held.n
        return certify(held, risk).bound, draw.world.risk_of_labels(held.tree, label)

    return outcome


def hold_out_best(draw):
    """The best of the prunings that the training samples choose at several prices."""
    held = draw.held()
    prunings = [
        certree.prunings.cost_complexity(held.tree, held.grown, alpha) for alpha in (0, 1, 2, 5, 20)
    ]
    errors = [round(pruning.weight @ held.stats.errors) for pruning in prunings]
    best = prunings[int(np.argmin(errors))]
    label = certree.vote(held.tree, held.stats, best).label
    bound = certree.certificates.hold_out_best(errors, held.n, DELTA).bound
    return bound, draw.world.risk_of_labels(held.tree, label)


def occam_answers(draw):
    """Votes that abstain where they are not sure, at the threshold with the lowest bound."""
    held = draw.held()
    prior = certree.certificates.allow_abstention(priors(held))
    posterior = next(posteriors(held, prior))
    ballot = certree.vote(held.tree, held.stats, posterior)
    sure = ballot.score.max(axis=1)
    certified = []
    for threshold in (0.0, 0.7, 0.9):
        label = np.where(sure < threshold, draw.world.n_classes, ballot.label)
        certified.append((certree.certificates.occam_answers(held, label, prior, DELTA), label))
    certificate, label = min(certified, key=lambda pair: pair[0].bound)
    return certificate.bound, draw.world.risk_of_answers(held.tree, label)


def occam_pruning(draw):
    """The pruning with the lowest bound of those that calibration samples choose at several alphas."""
    held = draw.held()
    prior = priors(held)
    prunings = [
        certree.prunings.cost_complexity(held.tree, held.stats, alpha) for alpha in (0.5, 2, 8)
    ]
    certified = [
        (certree.certificates.occam_pruning(held, p, prior, DELTA).bound, i)
        for i, p in enumerate(prunings)
    ]
    bound, i = min(certified)
    label = certree.vote(held.tree, held.stats, prunings[i]).label
    return bound, draw.world.risk_of_labels(held.tree, label)


def single_draw(draw):
    held = draw.held()
    prior = priors(held)
    posterior = list(posteriors(held, prior))[1]
    drawn = certree.certificates.single_draw(held, posterior, prior, DELTA, rng=draw.seed)
    label = certree.vote(held.tree, held.stats, drawn.pruning).label
    return drawn.certificate.bound, draw.world.risk_of_labels(held.tree, label)


def by_samples(name):
    """A vote of trees on samples of the rows, with more weight for those that err less on others."""

    def outcome(draw):
        X, y, _, _ = draw.rows()
        rng = np.random.default_rng(draw.seed)
        judged = rng.random((15, len(y))) > 0.3
        wrong, named = np.zeros(judged.shape, dtype=bool), []
        for number, out in enumerate(judged):
            tree = certree.grow_kd(X[~out], y[~out], max_depth=rng.integers(2, 6))
            label = certree.count(tree, X[~out], y[~out], draw.world.n_classes).label
            wrong[number] = label[tree.apply(X)] != y
            named.append(label[tree.apply(GRID)])
        weight = np.exp(
            -100 * np.array([row[out].mean() for row, out in zip(wrong, judged, strict=True)])
        )
        weight /= weight.sum()
        votes = np.tensordot(weight, np.eye(draw.world.n_classes)[np.array(named)], axes=1)
        certificate = certree.certificates.certify_ensemble(
            wrong, judged, weight, DELTA, method=name
        )
        right = draw.world.classes[np.arange(len(GRID)), votes.argmax(axis=1)]
        return certificate.bound, 1 - right.mean()

    return outcome


def fixed_box(draw):
    """The pruning with the lowest bound, of so many rows that it says something."""
    n = 2**18
    X, y = draw.world.draw(np.random.default_rng(draw.seed), n)
    box = [[-0.5, -0.5], [SIDE - 0.5, SIDE - 0.5]]
    fixed = certree.certificates.fixed_box(certree.grow.dyadic_grid(*box, 8), X, y, box)
    pruning = certree.certificates.lowest_fixed_box(fixed, DELTA)
    label = certree.vote(fixed.tree, fixed.stats, pruning).label
    certificate = certree.certificates.certify_fixed_box(fixed, pruning, DELTA)
    return certificate.bound, draw.world.risk_of_labels(fixed.tree, label)


# -- numbers: the point of the grid says their mean and their spread -------------------------------

CENTRE = np.hypot(*GRID.T)
SPREAD = np.where(GRID[:, 0] < SIDE // 2, 0.3, 2.0)


def numbers(draw, n=600):
    """Points of the grid and their numbers, which are normal given the point."""
    rng = np.random.default_rng([draw.seed, 7])
    point = rng.integers(0, len(GRID), n)
    return GRID[point], rng.normal(CENTRE[point], SPREAD[point])


def regressor(draw, has_times=False, **switches):
    model = certree.CertifiedTreeRegressor(
        cv=2, delta=DELTA, duplicates="genuine", random_state=draw.seed, **switches
    )
    X, y = numbers(draw)
    return model.fit(X, y, time=np.arange(len(y)) if has_times else None)


def test_small_trees_of_numbers_keep_their_promise():
    outcomes = []
    for seed in range(REPEATS):
        model = regressor(Draw(World(2), seed), max_leaf_nodes=5)
        one = model.certificate_
        outcomes.append(
            (one.bound / one.unit, truncated_mean(model.predict(GRID), one.unit) / one.unit)
        )
    expect_valid(*np.array(outcomes).T, worth=0.35)


def truncated_mean(predicted, limit):
    """The mean of min(|y - f|, limit): how often it is beyond each distance, added up."""

    def below(distance):
        """Integral of the normal distribution function up to there."""
        u = distance / SPREAD
        return SPREAD * (u * norm.cdf(u) + norm.pdf(u))

    off = CENTRE - predicted
    beyond = below(off) - below(off - limit) + below(-off) - below(-off - limit)
    return beyond.mean()


def outside(model, coverage=0.9):
    """Probability at each point that a target lies outside its prediction interval."""
    low, high = model.predict_interval(GRID, coverage).T
    return norm.cdf(low, CENTRE, SPREAD) + norm.sf(high, CENTRE, SPREAD)


def band(draw):
    model = regressor(draw, widths="scaled" if draw.seed % 2 else "one")
    return model.certify_interval()[0].bound, outside(model).mean()


def leaf_band(draw):
    """The region that fails by most, as all of them hold at once."""
    model = regressor(draw, widths="leaf", coverage=0.8)
    region = model.intervals_.region[model.apply(GRID)]
    wrong, made = outside(model, 0.8), model.certify_interval(0.8)
    pairs = [
        (certificate.bound, wrong[region == r].mean())
        for r, certificate in enumerate(made)
        if certificate is not None
    ]
    return nearest_to_false(pairs)


def absolute_error(draw, has_times=False):
    model = regressor(draw, has_times)
    limit = model.certificate_.unit
    return model.certificate_.bound / limit, truncated_mean(model.predict(GRID), limit) / limit


def absolute_error_pruning(draw):
    """The pruning with the lowest bound of those that calibration samples choose at several alphas."""
    model = regressor(draw)
    held = model.held_out_
    X, y = numbers(draw)
    weigh = np.setdiff1d(
        np.arange(len(y)), certree.rows.train_calibration_split(len(y), 0.5, seeded(draw)).train
    )
    seen = certree.measure(model.tree_, X[weigh], y[weigh])
    found = []
    for alpha in (0.5, 2, 8):
        pruning = certree.prunings.cost_complexity(model.tree_, seen, alpha)
        certificate = model.certify_pruning(pruning)
        value = certree.Voting("mean", 2.0).ballots(model.tree_, model.stats_)
        said = value.compute_vote(model.tree_, pruning).score[model.apply(GRID), 0]
        found.append(
            (certificate.bound / held.limit, truncated_mean(said, held.limit) / held.limit)
        )
    return min(found)


def seeded(draw):
    return np.random.RandomState(draw.seed)


# -- sets of classes ------------------------------------------------------------------------------


def lacking_truth(draw, per_class):
    """Certificates, and the probability at each point and class that its set lacks it."""
    X, y, _, _ = draw.rows()
    model = certree.CertifiedTreeClassifier(
        train_size=0.3, cv=2, duplicates="genuine", random_state=draw.seed
    ).fit(X, y)
    made = model.certify_set(0.9, DELTA, per_class=per_class)
    held = np.zeros((len(GRID), draw.world.n_classes), dtype=bool)
    held[:, model.classes_] = model.predict_set(GRID, 0.9, DELTA, per_class=per_class)
    return made, draw.world.classes * ~held


def judged_before(draw):
    """What the calibration samples say of a vote that the training samples have fitted alone."""
    X, y, grow, weigh = draw.rows()
    model = certree.PACBayesTreeClassifier("kd", lambda_error=1.0, lambda_penalty=0.1)
    model.fit(X[grow], y[grow])
    return Guarantees.by_rows(model, X[weigh], y[weigh], DELTA, duplicates="genuine")


def hold_out_answers(draw):
    """The margin whose bound is nearest to being false, as all of them hold at once."""
    guarantees, pairs = judged_before(draw), []
    for each in guarantees.selective_certificates():
        label, answered = guarantees.predict_selective(GRID, each.margin)
        right = draw.world.classes[answered, label[answered]]
        pairs.append((each.certificate.bound, 1 - right.mean() if len(right) else 0.0))
    return nearest_to_false(pairs)


def cost_of_threshold(named):
    """The threshold and the costs whose bound is nearest to being false, as all hold at once."""

    def outcome(draw):
        guarantees, (n_points, world) = judged_before(draw), (len(GRID), draw.world)
        costs = (4, 1)
        found = guarantees.thresholds(costs=costs if named else None)
        pairs = []
        for each in [costs] if named else [costs, (1, 1), (1, 4)]:
            point = found.lowest_cost(*each)
            taken = guarantees.predict_threshold(GRID, point.threshold)
            true = np.where(
                taken == 1, each[1] * world.classes[:, 0], each[0] * world.classes[:, 1]
            )
            pairs.append((point.cost_at_most / max(each), true.sum() / n_points / max(each)))
            # Of costs that were named the lower of both bounds, which hold together.
            assert named or point.certificate.method == "every_threshold"
        return nearest_to_false(pairs)

    return outcome


@pytest.mark.parametrize("per_class", [False, True])
def test_sets_hold_for_classifiers_of_before(per_class):
    outcomes = []
    for seed in range(REPEATS):
        draw = Draw(World(2), seed)
        guarantees = judged_before(draw)
        made = guarantees.certify_set(0.9, DELTA, per_class=per_class)
        lacking = draw.world.classes * ~guarantees.predict_set(GRID, 0.9, per_class=per_class)
        share = lacking.sum(axis=0) / (draw.world.classes.sum(axis=0) if per_class else len(GRID))
        shares = share if per_class else [share.sum()]
        outcomes.append(
            nearest_to_false(
                [(one.bound, s) for one, s in zip(made, shares, strict=True) if one is not None]
            )
        )
    expect_valid(*np.array(outcomes).T, worth=0.15)


def prediction_set(draw):
    (certificate,), lacking = lacking_truth(draw, per_class=False)
    return certificate.bound, lacking.sum(axis=1).mean()


def class_set(draw):
    """The class that fails by most, as all of them hold at once."""
    made, lacking = lacking_truth(draw, per_class=True)
    share = lacking.mean(axis=0) / draw.world.classes.mean(axis=0)
    pairs = [(one.bound, s) for one, s in zip(made, share, strict=True) if one is not None]
    return nearest_to_false(pairs)


# -- parts of the rows -----------------------------------------------------------------------------


def of_parts(family):
    """Bound and true risk of the subset whose bound is nearest to being too low."""

    def outcome(draw):
        X, y, _, _ = draw.rows()
        model = certified(draw, selection="vote").fit(X, y)
        promised = model.conditional_guarantees(groups=sides_of(X))
        points = Points(draw.world, model)
        if family == "mixes":
            mixes = np.random.default_rng(draw.seed).dirichlet(np.ones(draw.world.n_classes), 9)
            mixes = [*mixes, *np.eye(draw.world.n_classes)]
            pairs = [(promised.mix(mix).bound, points.risk_of("mixes", mix)) for mix in mixes]
        else:
            pairs = [
                (certificate.bound, points.risk_of(family, key))
                for key, certificate in promised[family].items()
            ]
        return nearest_to_false(pairs)

    return outcome


def of_rules(draw):
    """The same for the rules of a small tree."""
    X, y, _, _ = draw.rows()
    model = certified(draw, selection="vote", max_leaf_nodes=6).fit(X, y)
    leaves, rules = model.conditional_guarantees("leaves").leaves, model.find_rules(GRID)
    points = Points(draw.world, model)
    return nearest_to_false(
        [(leaves[key].bound, points.risk_of("rules", rules == key)) for key in leaves]
    )


def nearest_to_false(pairs):
    """Bound and true risk of a bound that is too low, if there is one."""
    return max(pairs, key=lambda pair: pair[1] - pair[0])


def sides_of(X):
    """A group of each row, by what it holds."""
    return np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [2, 10])]


@dataclass(frozen=True)
class Points:
    """What a model gets wrong at each point of the grid."""

    world: World
    model: Any

    def risk_of(self, family, key, density=None):
        """True risk on a part of the rows; 0 where there are no such rows."""
        density = np.ones(len(GRID)) if density is None else density
        named = self.model.predict(GRID)
        mass = self.world.classes * density[:, None]
        if family == "gaps":
            return self.risk_of("groups", key[0]) - self.risk_of("groups", key[1])
        if family == "mixes":
            return sum(share * self.risk_of("recall", c) for c, share in enumerate(key))
        if family == "recall":
            mass = mass * (np.arange(self.world.n_classes) == key)
        elif family == "precision":
            mass = mass[named == key]
            named = named[named == key]
        elif family == "rules":
            mass, named = mass[key], named[key]
        elif family in ("leaves", "cells"):
            inside = self.model.decision_path(GRID).toarray()[:, key] > 0
            mass, named = mass[inside], named[inside]
        elif family == "groups":
            inside = sides_of(GRID) == key
            mass, named = mass[inside], named[inside]
        whole = mass.sum()
        right = mass[np.arange(len(named)), named].sum()
        return 1 - right / whole if whole else 0.0


CERTIFY = {
    "fixed_box": fixed_box,
    "absolute_error": absolute_error,
    "absolute_error_pruning": absolute_error_pruning,
    "band": band,
    "leaf_band": leaf_band,
    "prediction_set": prediction_set,
    "class_set": class_set,
    "hold_out_answers": hold_out_answers,
    "every_threshold": cost_of_threshold(named=False),
    "named_cost": cost_of_threshold(named=True),
    "hold_out": of_one_pruning(
        lambda held, risk: certree.certificates.hold_out(round(risk * held.n), held.n, DELTA)
    ),
    "hold_out_mean": of_one_pruning(
        lambda held, risk: certree.certificates.hold_out_mean(
            risk, held.n, DELTA, grouped=held.grouped
        )
    ),
    "hold_out_best": hold_out_best,
    "occam_vote": by_label(certree.certificates.occam_vote),
    "occam_mean": by_label(certree.certificates.occam_mean),
    # Independent rows are the special case of rows in time order; test_periods has others.
    "hold_out_period": of_one_pruning(
        lambda held, risk: compute_certificate(
            "hold_out", (risk,), held.n, 0.0, DELTA, 1.0, grouped=held.grouped, period=PERIOD
        )
    ),
    "occam_period": by_label(
        lambda held, *given: certree.certificates.occam_vote(replace(held, period=PERIOD), *given)
    ),
    "absolute_error_period": partial(absolute_error, has_times=True),
    "occam_answers": occam_answers,
    "occam_pruning": occam_pruning,
    "single_draw": single_draw,
    "every_leaf": of_parts("leaves"),
    "every_rule": of_rules,
    "every_cell": of_parts("cells"),
    "every_class": of_parts("recall"),
    "every_prediction": of_parts("precision"),
    "every_group": of_parts("groups"),
    "every_gap": of_parts("gaps"),
    "every_mix": of_parts("mixes"),
}
CERTIFY |= {name: by_law(name) for name in METHODS if name.startswith(("gibbs_", "vote_"))}
CERTIFY |= {name: by_samples(name) for name in METHODS if name.startswith("ensemble_")}
# Bounds on a vote by those who vote are two to four times their risk.
WORTH = dict.fromkeys(CERTIFY, 0.35) | {
    name: 0.95 for name in CERTIFY if name.startswith(("vote_", "ensemble_"))
}
OF_TWO_CLASSES = ("vote_disagreement", "fixed_box", "every_threshold", "named_cost")
OF_NUMBERS = (
    *("absolute_error", "absolute_error_period", "absolute_error_pruning"),
    *("band", "leaf_band"),
)
WORTH |= {"absolute_error_pruning": 0.5}
# Those that groups of rows can certify by.
GROUP_FAMILIES = [
    name
    for name in METHODS
    if not get_inequality(name).whole_errors
    and not name.startswith(("ensemble_", "absolute_error"))
]


def simulate(name, world, group_size=1, repeats=REPEATS):
    outcomes = [CERTIFY[name](Draw(world, seed, group_size)) for seed in range(repeats)]
    return np.array(outcomes).T


def expect_valid(bound, risk, worth):
    violations = int((risk > bound).sum())
    # A rate of delta would pass this with a probability of 0.999.
    assert violations <= binom.ppf(0.999, REPEATS, DELTA), violations
    assert bound.mean() < worth


def test_every_method_is_simulated():
    assert set(CERTIFY) == set(METHODS)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", METHODS)
def test_bounds_hold(name, n_classes):
    if name in OF_TWO_CLASSES and n_classes > 2:
        pytest.skip("for two classes only, which tests/certificates check")
    if name in OF_NUMBERS and n_classes > 2:
        pytest.skip("numbers have no classes")
    bound, risk = simulate(name, World(n_classes))
    expect_valid(bound, risk, WORTH[name])


@pytest.mark.parametrize("name", GROUP_FAMILIES)
def test_bounds_hold_for_groups_whose_rows_share_their_noise(name):
    bound, risk = simulate(name, World(2), group_size=5)
    expect_valid(bound, risk, 0.999)


def certified(draw, **switches):
    return certree.CertifiedTreeClassifier(
        **{
            "train_size": 0.1,
            "cv": 2,
            "duplicates": "genuine",
            "random_state": draw.seed,
            **switches,
        }
    )


def fitted(draw, **switches):
    """Bound and true risk of what a fit deploys."""
    X, y, _, _ = draw.rows()
    model = certified(draw, **switches)
    groups = None if draw.group_size == 1 else np.arange(len(y)) // draw.group_size
    model.fit(X, y, groups=groups)
    right = draw.world.classes[np.arange(len(GRID)), model.predict(GRID)]
    return model.certificate_.bound, 1 - right.mean()


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"selection": "vote"},
        {"vote": "majority"},
        {"posteriors": "cv", "selection": "vote"},
        {"class_weight": "balanced"},
        {"train_size": "auto"},
        {"train_size": "auto", "selection": "vote"},
        {"max_leaf_nodes": 6},
        {"max_leaf_nodes": 6, "selection": "vote", "class_weight": "balanced"},
    ],
    ids=str,
)
def test_fits_keep_their_promise(n_classes, switches):
    outcomes = [fitted(Draw(World(n_classes), seed), **switches) for seed in range(REPEATS)]
    expect_valid(*np.array(outcomes).T, worth=0.3)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_seed_for_all_draws_keeps_the_promise_where_rows_hold_few_values(seed):
    # Rows are dealt by what they hold, and the same seed must not deal the same values each time.
    how = {"grower": certree.Cart(max_bins=255), "train_size": 0.5, "random_state": seed}
    bounds = []
    for draw in range(4 * REPEATS):
        rs = np.random.RandomState(draw)
        X, y = rs.randint(0, 4, (300, 1)).astype(float), rs.randint(0, 2, 300)
        model = certree.CertifiedTreeClassifier(cv=2, duplicates="genuine", **how).fit(X, y)
        bounds.append(model.certificate_.bound)
    assert (np.array(bounds) < 0.5).sum() <= binom.ppf(0.999, len(bounds), DELTA)


@pytest.mark.parametrize("selection", ["best", "vote"])
def test_small_trees_keep_their_promise_where_there_is_nothing_to_learn(selection):
    switches = {"max_leaf_nodes": 8, "train_size": 0.5}
    draws = [Draw(World(2, noise=0.5), seed) for seed in range(4 * REPEATS)]
    bounds = np.array([fitted(draw, selection=selection, **switches)[0] for draw in draws])
    assert (bounds < 0.5).sum() <= binom.ppf(0.999, len(draws), DELTA)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("switches", [{}, {"max_samples": 0.2, "max_depth": 3}], ids=str)
def test_fits_of_forests_keep_their_promise(n_classes, switches):
    outcomes = []
    for seed in range(REPEATS):
        draw = Draw(World(n_classes), seed)
        X, y, _, _ = draw.rows()
        model = certree.CertifiedForestClassifier(
            12, random_state=seed, duplicates="genuine", **switches
        ).fit(X, y)
        right = draw.world.classes[np.arange(len(GRID)), model.predict(GRID)]
        outcomes.append((model.certificate_.bound, 1 - right.mean()))
    expect_valid(*np.array(outcomes).T, worth=0.6)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_fits_in_a_box_keep_their_promise(n_classes):
    box = [[-0.5, -0.5], [SIDE - 0.5, SIDE - 0.5]]
    outcomes = []
    for seed in range(REPEATS):
        world = World(n_classes)
        X, y, _, _ = Draw(world, seed).rows()
        model = certree.CertifiedTreeClassifier(
            certree.Grid(box), max_depth=8, duplicates="genuine"
        )
        model.fit(X, y, classes=np.arange(n_classes))
        right = world.classes[np.arange(len(GRID)), model.predict(GRID)]
        outcomes.append((model.certificate_.bound, 1 - right.mean()))
    expect_valid(*np.array(outcomes).T, worth=0.3)


@pytest.mark.parametrize(
    "switches", [{}, {"selection": "vote", "class_weight": "balanced"}], ids=str
)
def test_fits_keep_their_promise_where_weighing_rows_have_other_classes(switches):
    """Sixty classes, most of them so rare that few training samples have them."""
    outcomes, unknown = [], 0
    for seed in range(REPEATS):
        draw = Draw(World(60, noise=0.2), seed)
        X, y, _, _ = draw.rows()
        model = certified(draw, **switches).fit(X, y)
        held = model.model_selection_.held
        unknown += held.stats.counts[0, held.n_classes :].sum()
        assert np.isin(y, model.classes_).all()
        right = draw.world.classes[np.arange(len(GRID)), model.predict(GRID)]
        outcomes.append((model.certificate_.bound, 1 - right.mean()))
    assert unknown > 50 * REPEATS
    expect_valid(*np.array(outcomes).T, worth=0.7)


class Constant:
    """A classifier of anybody: class 0 for all rows."""

    def predict(self, X):
        return np.zeros(len(X))


def test_looks_that_are_paid_for_hold_together():
    """Rows come in, and one stops as soon as the bound on all so far is low enough to be false."""
    repeats, n_looks, risk = 400 if LONG else 60, 20 if LONG else 10, 0.2
    rng = np.random.default_rng(0)
    wrong = rng.random((repeats, 100 * n_looks)) < risk

    @cache
    def bound(n, n_wrong, look):
        y = np.arange(n) < n_wrong  # in which order they come makes no difference
        return certree.certify(Constant(), y, y, DELTA, look=look, duplicates="genuine").bound

    def false_at_some_look(y, paid):
        looks = enumerate(range(100, len(y) + 1, 100), start=1)
        return any(bound(n, y[:n].sum(), j if paid else None) < risk for j, n in looks)

    paid, free = (sum(false_at_some_look(y, flag) for y in wrong) for flag in (True, False))
    assert paid <= binom.ppf(0.999, repeats, DELTA)
    assert free > 2 * DELTA * repeats


def test_fits_keep_their_promise_for_new_groups():
    outcomes = [fitted(Draw(World(2), seed, group_size=5)) for seed in range(REPEATS)]
    expect_valid(*np.array(outcomes).T, worth=0.35)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_selective_votes_keep_their_promise_at_all_margins(n_classes):
    outcomes = []
    for seed in range(REPEATS):
        draw = Draw(World(n_classes), seed)
        X, y, _, _ = draw.rows()
        model = certified(draw, selection="vote")
        worst = []
        for each in model.fit(X, y).selective_certificates():
            label, answered = model.predict_selective(GRID, each.margin)
            right = draw.world.classes[np.arange(len(GRID)), label][answered]
            worst.append((each.certificate.bound, 1 - right.mean()))
        outcomes.append(nearest_to_false(worst))
    expect_valid(*np.array(outcomes).T, worth=0.5)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_excess_of_a_vote_is_at_most_k_times_that_of_its_draws(n_classes):
    """It holds for every law and every sample: the Bayes risk is the noise here."""
    world = World(n_classes, noise=0.3)
    closest = np.inf
    for seed in range(REPEATS):
        held = Draw(world, seed).held()
        for posterior in posteriors(held, priors(held)):
            ballot = certree.vote(held.tree, held.stats, posterior)
            gibbs = world.gibbs_risk(held.tree, ballot) - world.noise
            excess = world.risk_of_labels(held.tree, ballot.label) - world.noise
            bound = paper.oracle_excess(max(gibbs, 0.0), n_classes)
            assert excess <= bound + 1e-12
            closest = min(closest, (bound + 1e-12) / (excess + 1e-12))
    assert closest < n_classes  # the vote is no better than its draws somewhere


@pytest.mark.parametrize("n_classes", [2, 5])
def test_oracle_bounds_hold(n_classes):
    world = World(n_classes, noise=0.1)
    outcomes = []
    for seed in range(REPEATS):
        held = Draw(world, seed).held()
        points, y = np.repeat(GRID, n_classes, axis=0), np.tile(np.arange(n_classes), len(GRID))
        population = certree.NodeStats(
            certree.count(
                held.tree, points, y, n_classes, sample_weight=world.classes.ravel() / len(GRID)
            ).counts,
            held.grown.label,
        )
        prior = certree.certificates.branching_prior(held.tree, n_classes).distributions[0]
        promise = paper.chernoff_oracle_bound(
            held.tree, population, prior, held.n, world.noise, DELTA
        )
        posterior = certree.certificates.gibbs_posterior(
            held.tree, held.stats, prior, promise.lambda_error
        )
        ballot = certree.vote(held.tree, held.stats, posterior)
        excess = world.risk_of_labels(held.tree, ballot.label) - world.noise
        gibbs = world.gibbs_risk(held.tree, ballot)
        assert promise.risk == pytest.approx(promise.pruning.weight @ population.errors, rel=1e-12)
        outcomes.append((promise.excess, excess, promise.gibbs_excess, gibbs - world.noise))
    excess_bound, excess, gibbs_bound, gibbs = np.array(outcomes).T
    expect_valid(gibbs_bound, gibbs, worth=0.4)
    expect_valid(excess_bound, excess, worth=np.inf)


@dataclass(frozen=True)
class OfLabels:
    """A classifier that was fixed before: a label for each leaf of a tree."""

    tree: Tree
    label: np.ndarray

    def predict(self, X):
        return self.label[self.tree.apply(X)]

    def decision_path(self, X):
        inside = np.zeros((len(X), self.tree.n_nodes), dtype=bool)
        for place, leaf in enumerate(self.tree.apply(X)):
            inside[place, reference.find_path(self.tree, int(leaf))] = True
        return csr_array(inside)


def of_fixed(family):
    """The same for a classifier that has no choice to pay for."""

    def outcome(draw):
        X, y, grow, weigh = draw.rows()
        tree = certree.grow_kd(X[grow], y[grow], min_samples_split=5, max_depth=4)
        grown = certree.count(tree, X[grow], y[grow], draw.world.n_classes)
        model = OfLabels(tree, grown.label)
        points, wrong = Points(draw.world, model), model.predict(X[weigh]) != y[weigh]
        if family in ("leaves", "cells"):
            rows, method = (tree.apply(X[weigh]), wrong, 0.0), "every_cell"
            parts = make_node_subsets(tree, grown.n, *rows)
            if family == "leaves":
                parts, method = make_leaf_subsets(tree, grown.n, grown.label, *rows), "every_leaf"
            found = CertificateFamily(method, parts, CertificateTerms(DELTA, 1.0))
        else:
            groups = sides_of(X[weigh])
            found = conditional_guarantees(
                model, X[weigh], y[weigh], family, groups=groups, duplicates="genuine"
            )[family]
        return nearest_to_false(
            [(one.bound, points.risk_of(family, key)) for key, one in found.items()]
        )

    return outcome


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("family", PARTS)
def test_promises_on_parts_hold_for_classifiers_of_before(family, n_classes):
    certify = of_fixed(family)
    outcomes = [certify(Draw(World(n_classes, 0.2), seed)) for seed in range(REPEATS)]
    expect_valid(*np.array(outcomes).T, worth=0.7)


@pytest.mark.parametrize("selection", ["best", "vote"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_promises_asked_for_jointly_hold_together(n_classes, selection):
    outcomes = []
    for seed in range(REPEATS):
        draw = Draw(World(n_classes), seed)
        X, y, _, _ = draw.rows()
        model = certified(draw, selection=selection).fit(X, y)
        points = Points(draw.world, model)
        promised = model.conditional_guarantees(groups=sides_of(X), jointly=True)
        pairs = [
            (certificate.bound, points.risk_of(name, key))
            for name, family in promised.items()
            for key, certificate in family.items()
        ]
        outcomes.append(nearest_to_false(pairs))
    expect_valid(*np.array(outcomes).T, worth=0.4)


@pytest.mark.parametrize("family", ["error", "recall", "leaves"])
def test_promises_hold_where_features_come_from_a_source_that_weights_describe(family):
    """Rows to the right are the more frequent there: twice as many as here at most."""
    density = 2 * (GRID[:, 0] + 1) / SIDE
    outcomes = []
    for seed in range(REPEATS):
        draw = Draw(World(3, noise=0.2), seed)
        X, y, _, _ = draw.rows()
        model = certified(draw).fit(X, y)
        points = Points(draw.world, model)
        promised = model.conditional_guarantees(
            family, weights=2 * (X[:, 0] + 1) / SIDE, max_weight=2, random_state=seed
        )
        pairs = [
            (certificate.bound, points.risk_of(family, key, density))
            for key, certificate in promised[family].items()
        ]
        outcomes.append(nearest_to_false(pairs))
    expect_valid(*np.array(outcomes).T, worth=0.6)


@pytest.mark.parametrize("near", [{"kl": 0.02}, {"total_variation": 0.05}], ids=str)
def test_promises_hold_for_the_worst_source_nearby(near):
    """It has more rows of those that are wrong, and is otherwise the same."""
    outcomes = []
    for seed in range(REPEATS):
        draw = Draw(World(2), seed)
        X, y, _, _ = draw.rows()
        model = certified(draw).fit(X, y)
        here = Points(draw.world, model).risk_of("error", None)
        worst = reference.invert_binary_kl(here, near["kl"], 1) if "kl" in near else here + 0.05
        outcomes.append((model.certificate_.nearby(**near).bound, worst))
    expect_valid(*np.array(outcomes).T, worth=0.4)


def count_alarms(draw_losses, bound, alpha=0.05, block=1):
    """Draws of 10,000 losses in which a monitor ever alarms, and the number of draws."""
    repeats, n = (2000, 10_000) if LONG else (60, 3000)
    rng = np.random.default_rng(0)
    alarms = sum(
        certree.certificates.Monitor(bound, alpha, block=block).update(draw_losses(rng, n)).broken
        for _ in range(repeats)
    )
    return alarms, repeats


@pytest.mark.parametrize("risk", [0.02, 0.1, 0.5])
def test_monitors_are_seldom_wrong_whenever_one_looks(risk):
    """The error equals the bound, and the monitor is read after each row."""
    alarms, repeats = count_alarms(lambda rng, n: rng.random(n) < risk, risk)
    assert alarms <= binom.ppf(0.999, repeats, 0.05)


def test_monitors_of_means_that_change_below_the_bound_are_seldom_wrong():
    """The conditional mean depends on the losses before, and never exceeds the bound."""

    def draw(rng, n):
        uniform, losses = rng.random(n), np.zeros(n)
        for i in range(n):
            losses[i] = uniform[i] < (0.1 if losses[max(i - 5, 0) : i].sum() else 0.06)
        return losses

    alarms, repeats = count_alarms(draw, 0.1)
    assert alarms <= binom.ppf(0.999, repeats, 0.05)


def test_monitors_of_blocks_are_seldom_wrong_on_dependent_rows():
    """Losses of mean 0.1 stay as they are for 20 rows on average; a block has 200 rows."""

    def draw(rng, n):
        is_new = rng.random(n) < 1 / 20
        return (rng.random(n + 1) < 0.1)[np.cumsum(is_new)]

    alarms, repeats = count_alarms(draw, 0.1, block=200)
    assert alarms <= binom.ppf(0.999, repeats, 0.05)
    alone, _ = count_alarms(draw, 0.1)
    assert alone > 0.3 * repeats


def test_certificates_and_their_monitors_together_are_seldom_wrong():
    """New rows come from the source of the calibration rows: alpha and delta may be used up."""

    repeats, n = (2000, 10_000) if LONG else (60, 3000)
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(repeats):
        certificate = certree.certificates.hold_out(rng.binomial(500, 0.1), 500)
        monitor = certificate.monitor()
        alarms += monitor.update(rng.random(n) < 0.1).broken
    assert monitor.false_alarm_probability == pytest.approx(0.1)
    assert alarms <= binom.ppf(0.999, repeats, 0.1)


def test_the_simulation_sees_violations():
    """Hold-out is exact but for the steps of the binomial law: it fails nearly as often as it may."""
    bound, risk = simulate("hold_out", World(2), repeats=400 if LONG else 200)
    assert 0.02 < (risk > bound).mean() < 0.09


def test_rows_of_groups_are_not_independent():
    """Were the groups ignored, hold-out would fail far more often than it may."""
    violations = 0
    for seed in range(100):
        draw = Draw(World(2), seed, group_size=60)
        X, y, grow, weigh = draw.rows()
        tree = certree.grow_kd(X[grow], y[grow], min_samples_split=5)
        held = certree.certificates.held_out(tree, X, y, 2, grow=grow, weigh=weigh)
        pruning = certree.prunings.cost_complexity(tree, held.grown, 2.0)
        label = certree.vote(tree, held.stats, pruning).label
        errors = round(pruning.weight @ held.stats.errors)
        bound = certree.certificates.hold_out(errors, held.n, DELTA).bound
        violations += draw.world.risk_of_labels(tree, label) > bound
    assert violations > 100 * 4 * DELTA


@pytest.mark.parametrize("group_size", [5, 60])
def test_certify_keeps_its_promise_for_new_groups(group_size):
    """Groups share their noise, and have equal sizes, so that their mean error is that of rows."""
    outcomes, ignored = [], []
    for seed in range(REPEATS):
        draw = Draw(World(2), seed, group_size)
        X, y, grow, _ = draw.rows()
        n_new = 4 * group_size * 20
        X_new, y_new = draw.world.draw(np.random.default_rng([seed, 1]), n_new, group_size)
        model = certree.PrunedTreeClassifier("kd", alpha=2, random_state=seed).fit(X[grow], y[grow])
        risk = 1 - draw.world.classes[np.arange(len(GRID)), model.predict(GRID)].mean()
        rows = model, X_new, y_new, DELTA
        groups = np.arange(n_new) // group_size
        found = certree.certify(*rows, duplicates="genuine", groups=groups)
        outcomes.append((found.bound, risk))
        ignored.append(certree.certify(*rows, duplicates="genuine").bound < risk)
    expect_valid(*np.array(outcomes).T, worth=0.5)
    if group_size == 60:  # were the groups ignored, it would fail far more often than it may
        assert np.mean(ignored) > 2 * DELTA


def test_one_row_of_each_group_keeps_the_promise_for_such_rows_of_new_groups():
    """Large groups have more errors, and their rows err together: then rows are not independent."""
    sizes, risks = np.array([1, 3, 60]), np.array([0.1, 0.2, 0.6])
    repeats, violations, ignored = 200 if LONG else 50, 0, []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, 3, 80)
        groups = np.repeat(np.arange(80), sizes[kind])
        wrong = (rng.random(80) < risks[kind])[groups]
        rows = draw_row_per_group(groups)
        found = certree.certificates.hold_out(int(wrong[rows].sum()), len(rows), DELTA)
        violations += found.bound < risks.mean()
        of_rows = certree.certificates.hold_out(int(wrong.sum()), len(wrong), DELTA)
        ignored.append(of_rows.bound < risks @ sizes / sizes.sum())
    assert violations <= binom.ppf(0.999, repeats, DELTA)
    assert np.mean(ignored) > 2 * DELTA  # of rows by themselves it fails far more often


def test_labelled_prunings_need_no_growing_rows():
    grid = Tree(*_quartered(), 2)
    world = World(5)
    violations = 0
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        X, y = world.draw(rng, 1000)
        held = certree.certificates.held_out(grid, X, y, 5, grow=[], weigh=np.arange(1000))
        prior = certree.certificates.branching_prior(grid, 5)
        for lam in LAMBDAS:
            posterior = certree.certificates.labelled_posterior(grid, held.stats, prior, lam)
            ballot = certree.certificates.posteriors.compute_posterior_vote(
                grid, held.stats, posterior
            )
            gibbs = certree.certificates.certify_posterior(held, posterior, prior, DELTA, 0.5)
            vote = certree.certificates.occam_vote(held, ballot.label, prior, DELTA, 0.5)
            violations += gibbs.bound < world.gibbs_risk(grid, ballot)
            violations += vote.bound < world.risk_of_labels(grid, ballot.label)
            assert max(gibbs.bound, vote.bound) < 0.8
    assert violations <= len(LAMBDAS) * binom.ppf(0.999, REPEATS, DELTA)


@pytest.mark.parametrize("group_size", [1, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_elections_of_labelled_prunings_keep_their_promise(group_size, weighted):
    """Weights may depend on the classes: they shape the law, and all laws are covered at once."""
    grid = Tree(*_quartered(), 2)
    outcomes = []
    for seed in range(REPEATS):
        world = World(3)
        X, y, _, _ = Draw(world, seed, group_size).rows()
        groups = None if group_size == 1 else np.arange(len(y)) // group_size
        held = certree.certificates.held_out(
            grid, X, y, 3, grow=[], weigh=np.arange(len(y)), groups=groups
        )
        weight = np.where(y == 1, 4.0, 1.0)
        weighing = certree.count(grid, X, y, 3, held.grown.label, weight) if weighted else None
        model_selection = certree.certificates.LabelledSelection(held, DELTA, weighing)
        deployed = certree.certificates.select_labelled(model_selection)
        risk = world.risk_of_labels(grid, deployed.ballot.label)
        outcomes.append((deployed.certificate.bound, risk))
    expect_valid(*np.array(outcomes).T, worth=0.4)


def _quartered(depth=6):
    """Columns of the tree that halves the sides of the grid in turn."""
    feature, threshold, left, boxes = [], [], [], [((0.0, SIDE), (0.0, SIDE))]
    for v, box in enumerate(boxes):
        j = int(np.log2(v + 1)) % 2
        low, high = box[j]
        middle = (low + high) / 2
        inner = v < 2**depth - 1
        feature.append(j * inner)
        threshold.append((middle - 0.5) * inner)
        left.append(2 * v + 1 if inner else -1)
        halves = ((low, middle), (middle, high)) if inner else ()
        boxes += [(half, box[1]) if j == 0 else (box[0], half) for half in halves]
    return feature, threshold, left, [1] * len(left)


def test_rows_that_grew_the_tree_would_certify_what_is_false():
    """Classes are coin flips, so that every classifier is wrong half of the time."""
    rng = np.random.default_rng(0)
    failures = 0
    for _ in range(20):
        X, y = rng.random((200, 3)), rng.integers(0, 2, 200)
        everything = np.arange(200)
        tree = certree.grow_cart(X, y)
        with pytest.raises(ValueError, match="training rows cannot certify the tree"):
            certree.certificates.held_out(tree, X, y, 2, grow=everything, weigh=everything)
        # What the guard keeps from happening: twice the same rows under two numbers.
        twice = np.concatenate([X, X]), np.concatenate([y, y])
        held = certree.certificates.held_out(
            tree, *twice, 2, grow=everything, weigh=everything + 200
        )
        prior = certree.certificates.branching_prior(tree, 2)
        bounds = []
        for lam in LAMBDAS:
            posterior = certree.certificates.gibbs_posterior(
                tree, held.stats, prior.distributions[0], lam
            )
            label = certree.vote(tree, held.stats, posterior).label
            bounds += [
                certree.certificates.certify_posterior(held, posterior, prior, DELTA).bound,
                certree.certificates.occam_vote(held, label, prior, DELTA).bound,
            ]
        failures += min(bounds) < 0.5
    assert failures > 20 * 4 * DELTA
