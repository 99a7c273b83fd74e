"""Guarantees on subsets of rows: against counting row by row, their levels, and refused arguments."""

import json
import math
import pickle
import re
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

import certree
import reference
from certree import CertifiedForestClassifier, CertifiedTreeClassifier, Grid
from certree.certificates import Shift, conditional_guarantees, hold_out, hold_out_mean
from certree.certificates.certificate import restore_certificate
from certree.certificates.inequalities import bounds
from certree.certificates.subsets.row_subsets import make_leaf_subsets, make_node_subsets
from strategies import trees_and_stats

DELTA = 0.05
FAMILIES = ["error", "recall", "precision", "leaves", "cells", "groups", "gaps"]


def rows(n_classes=2, n=400, seed=0):
    """Rows with overlapping classes, and a group of each."""
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.15, random_state=seed
    )
    groups = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-1.0, 1.0])]
    return X, y, groups


def fitted(n_classes=2, n=400, seed=0, **switches):
    X, y, groups = rows(n_classes, n, seed)
    model = CertifiedTreeClassifier(**{"random_state": seed, **switches}).fit(X, y)
    return model, X, y, groups


def mass_of(model):
    """Prior mass of what predicts."""
    return math.exp(model.model_selection_.prior.log_mass(model.vote_.label))


def judged(model, X, y):
    """Numbers of the calibration samples, and which of them are wrong, row by row."""
    weigh = model.model_selection_.held.weigh.tolist()
    return weigh, {i: model.predict(X[i : i + 1])[0] != y[i] for i in weigh}


def expect_limit(certificate, inside, wrong, level):
    """The upper limit of the errors of some rows, at a level."""
    errors = sum(bool(wrong[i]) for i in inside)
    assert certificate.n == len(inside)
    assert round(certificate.risk * certificate.n) == errors
    expected = reference.find_largest_risk(errors, len(inside), level) if inside else 1.0
    assert certificate.bound == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("selection", ["best", "vote"])
def test_families_are_counted_row_by_row(n_classes, selection):
    model, X, y, groups = fitted(n_classes, selection=selection)
    promised = model.conditional_guarantees(groups=groups)
    assert [*promised] == FAMILIES
    weigh, wrong = judged(model, X, y)
    predicted = dict(zip(weigh, model.predict(X[weigh]), strict=True))
    level = DELTA * mass_of(model)
    for name, kind, keys in (
        ("recall", y, range(n_classes)),
        ("precision", predicted, range(n_classes)),
        ("groups", groups, "abc"),
    ):
        assert [*promised[name]] == [*keys]
        for key, certificate in promised[name].items():
            inside = [i for i in weigh if kind[i] == key]
            expect_limit(certificate, inside, wrong, level / len(keys))
    (everywhere,) = promised.error.values()
    expect_limit(everywhere, weigh, wrong, level)


def test_gaps_are_an_upper_limit_less_a_lower_one():
    model, X, y, groups = fitted()
    gaps = model.conditional_guarantees("gaps", groups=groups).gaps
    weigh, wrong = judged(model, X, y)
    level = DELTA * mass_of(model) / 6  # three groups, two limits
    assert len(gaps) == 6
    for (one, other), certificate in gaps.items():
        first, second = ([wrong[i] for i in weigh if groups[i] == key] for key in (one, other))
        highest = reference.find_largest_risk(sum(first), len(first), level)
        lowest = 1 - reference.find_largest_risk(len(second) - sum(second), len(second), level)
        assert certificate.bound == pytest.approx(max(highest - lowest, 0), abs=1e-9)
        assert certificate.risk == pytest.approx(np.mean(first) - np.mean(second))
        assert gaps[other, one].risk == pytest.approx(-certificate.risk)
        assert certificate.n == len(first) + len(second)
        assert certificate.part == f"{one} and {other}"
    head, lines = gaps.table()
    assert head == [
        "gap of groups",
        "calibration rows",
        "observed difference",
        "difference at most",
    ]
    assert [line[2] for line in lines] == [f"{one.risk:.3f}" for one in gaps.values()]
    lowest = min(gaps.values(), key=lambda one: one.risk)
    assert f"(observed on them: -{100 * abs(lowest.risk):.1f} %" in str(lowest)


@pytest.mark.parametrize("selection", ["best", "vote"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_leaves_and_cells_are_counted_by_walking(n_classes, selection):
    model, X, y, _ = fitted(n_classes, selection=selection)
    tree, grow = model.tree_, model.model_selection_.held.grow
    weigh, wrong = judged(model, X, y)
    paths = {
        i: reference.find_path(tree, int(reference.apply(tree, X[i : i + 1])[0]))
        for i in range(len(y))
    }
    grown = [1 + sum(v in paths[i] for i in grow) for v in range(tree.n_nodes)]
    promised, level = model.conditional_guarantees(["leaves", "cells"]), DELTA * mass_of(model)

    leaves = reference.find_largest_nodes_of_one_label(tree, model.vote_.label)
    assert [*promised.leaves] == sorted(leaves)
    for v, certificate in promised.leaves.items():
        own = 1 - (1 - level) ** (grown[v] / sum(grown[u] for u in leaves))
        expect_limit(certificate, [i for i in weigh if v in paths[i]], wrong, own)

    assert [*promised.cells] == [*range(tree.n_nodes)]
    splits = [len(reference.find_path(tree, v)) - 1 for v in range(tree.n_nodes)]
    for v, certificate in promised.cells.items():
        beside = sum(grown[u] for u in range(tree.n_nodes) if splits[u] == splits[v])
        own = level * 2.0 ** -(splits[v] + 1) * grown[v] / beside
        expect_limit(certificate, [i for i in weigh if v in paths[i]], wrong, own)


def test_rules_find_their_bounds():
    model, *_ = fitted()
    cells = model.conditional_guarantees("cells").cells
    for rule in model.rules(4):
        assert cells[rule.node].part == str(rule.node)


@given(trees_and_stats(largest=1000), st.floats(1e-6, 0.5), st.floats(0, 60))
def test_levels_of_regions_use_at_most_delta(tree_and_stats, delta, nats):
    tree, stats = tree_and_stats
    no_rows = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=bool), nats
    leaves = make_leaf_subsets(tree, stats.n, stats.label, *no_rows)
    shares = [part.observed[1] for part in leaves.values()]
    assert math.prod((1 - delta) ** share for share in shares) >= (1 - delta) * (1 - 1e-12)
    cells = make_node_subsets(tree, stats.n, *no_rows)
    levels = [math.exp(nats - part.complexity) for part in cells.values()]
    assert sum(levels) <= 1 + 1e-12


@given(trees_and_stats(largest=5))
def test_every_leaf_of_the_tree_is_in_one_region(tree_and_stats):
    tree, stats = tree_and_stats
    ends = np.flatnonzero(tree.is_leaf).astype(np.int32)
    parts = make_leaf_subsets(tree, stats.n, stats.label, ends, np.zeros(len(ends), bool), 0.0)
    assert sum(part.n for part in parts.values()) == len(ends)
    assert [*parts] == sorted(reference.find_largest_nodes_of_one_label(tree, stats.label))


@given(
    st.integers(0, 60),
    st.integers(0, 60),
    st.floats(1e-3, 1),
    st.floats(0, 50),
    st.floats(-50, -0.1),
)
def test_leaf_bounds_are_binomial_limits_that_rise_with_errors(
    errors, right, share, nats, log_delta
):
    n = errors + right
    risk = errors / max(n, 1)
    bound = bounds.occam_leaf(risk, share, n, nats, log_delta)
    level = -math.expm1(share * math.log1p(-math.exp(log_delta - nats)))
    if level > 1e-12:
        assert bound == pytest.approx(
            reference.find_largest_risk(errors, n, level) if n else 1.0, abs=1e-6
        )
    assert bound <= bounds.occam_leaf((errors + 1) / (n + 1), share, n + 1, nats, log_delta)
    assert bound >= bounds.occam_leaf(risk, 1.0, n, nats, log_delta)
    assert bounds.occam_leaf(risk, share, n, 2000.0, log_delta) <= 1


@pytest.mark.parametrize(
    ("name", "observed"),
    [("occam_leaf", (0.1, 0.0)), ("occam_leaf", (0.1, 1.5)), ("occam_gap", (0.1, 0.2, 1.5))],
)
def test_bounds_refuse_shares_that_are_none(name, observed):
    with pytest.raises(ValueError, match="must lie in"):
        getattr(bounds, name)(*observed, 10, 0.0, -3.0)


# -- all together, mixes, other sources ------------------------------------------------------------


def test_promises_that_hold_together_are_never_lower():
    model, _, _, groups = fitted()
    alone = model.conditional_guarantees(groups=groups)
    together = model.conditional_guarantees(groups=groups, jointly=True)
    for name in FAMILIES:
        for key, certificate in together[name].items():
            assert certificate.share == 1 / len(FAMILIES)
            assert certificate.bound >= alone[name][key].bound
    two = model.conditional_guarantees(["recall", "leaves"], jointly=True)
    assert two.recall.worst.share == 0.5
    assert [*two] == ["recall", "leaves"]
    assert model.conditional_guarantees("recall", jointly=True).recall == alone.recall
    assert model.conditional_guarantees(delta=0.2).recall.worst == alone.recall.worst.at(0.2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_mix_is_the_mean_of_the_bounds_on_classes(n_classes):
    model, *_ = fitted(n_classes)
    promised = model.conditional_guarantees()
    bound_of = [certificate.bound for certificate in promised.recall.values()]
    rng = np.random.default_rng(0)
    for shares in (*rng.dirichlet(np.ones(n_classes), 5), *np.eye(n_classes)):
        mix = promised.mix(shares)
        assert mix.bound == pytest.approx(float(np.dot(shares, bound_of)), abs=1e-12)
        assert mix == promised.mix(dict(enumerate(shares.tolist())))
        assert mix.bound <= promised.recall.worst.bound + 1e-12
        parts = mix.parts
        assert parts.observed == pytest.approx(mix.risk)
        assert parts.observed + parts.complexity + parts.confidence == pytest.approx(mix.bound)
    assert promised.mix({1: 1.0}).bound == pytest.approx(bound_of[1])
    for shares, message in (
        ({"x": 1.0}, r"among the classes \[0, 1"),
        (np.full(n_classes, 0.6), "sum to 1"),
        ([-1.0, 2.0, 0.0][:n_classes], "non-negative"),
        ([1.0], r"must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            promised.mix(shares)
    with pytest.raises(ValueError, match='needs the family "recall"'):
        model.conditional_guarantees("leaves").mix({0: 1.0})


def test_the_largest_error_of_a_source_nearby():
    certificate = hold_out(7, 121)
    near = certificate.nearby(kl=0.01)
    assert Shift("kl", 0.01).worst(0.1) == pytest.approx(0.1477, abs=5e-5)
    assert near.bound == pytest.approx(
        reference.invert_binary_kl(certificate.bound, 0.01, 1), abs=1e-12
    )
    varied = certificate.nearby(total_variation=0.03)
    assert varied.bound == certificate.bound + 0.03
    assert certificate.nearby(total_variation=1).bound == 1
    assert certificate.nearby(kl=0.0).bound == certificate.bound
    for moved in (near, varied):
        assert moved.at(0.01).bound > moved.bound == moved.at(0.05).bound
        parts = moved.parts
        assert parts.observed + parts.complexity + parts.confidence == pytest.approx(moved.bound)
        assert parts.observed > certificate.risk
        target = (moved.bound + parts.observed) / 2
        needed = moved.n_samples_needed(target)
        assert needed > 121
        again = hold_out(round(certificate.risk * needed), needed)
        assert again.nearby(kl=0.01).bound <= target + 2e-3 or moved is varied
        with pytest.raises(ValueError, match=r"already allows? for a distribution shift"):
            moved.nearby(kl=0.01)
    assert "from any source from which that of these diverges by at most 0.01 nats" in str(near)
    assert "within 0.03 of this one in total variation" in str(varied)
    assert "new ones come from any source" in near.assumptions[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "one of kl and total_variation"),
        ({"kl": 0.1, "total_variation": 0.1}, "one of kl and total_variation"),
        ({"kl": -0.1}, "kl must be a finite number >= 0"),
        ({"kl": math.nan}, "kl must be a finite number"),
        ({"total_variation": 1.1}, r"total_variation must lie in 0 .. 1"),
    ],
)
def test_distances_that_are_none_are_refused(given, message):
    model, *_ = fitted()
    with pytest.raises(ValueError, match=message):
        hold_out(1, 10).nearby(**given)
    with pytest.raises(ValueError, match=message):
        model.conditional_guarantees("recall").nearby(**given)


def test_families_of_sources_nearby():
    model, _, _, groups = fitted()
    promised = model.conditional_guarantees(groups=groups)
    near = promised.nearby(kl=0.02)
    assert [*near] == FAMILIES[:-1]
    for name, family in near.items():
        for key, certificate in family.items():
            assert certificate == promised[name][key].nearby(kl=0.02)
    assert near.mix([0.5, 0.5]) == promised.mix([0.5, 0.5]).nearby(kl=0.02)
    with pytest.raises(ValueError, match=r"already allows? for a distribution shift"):
        near.nearby(kl=0.02)
    for ask in ("nearby", "monitor"):
        with pytest.raises(ValueError, match="the difference of two"):
            getattr(promised.gaps.worst, ask)(**({"kl": 0.1} if ask == "nearby" else {}))


def test_weights_keep_rows():
    model, X, y, groups = fitted()
    weights = np.where(groups == "a", 2.0, 0.5)
    new = model.conditional_guarantees(groups=groups, weights=weights, max_weight=2, random_state=3)
    weigh, wrong = judged(model, X, y)
    coins = np.random.default_rng(3).random(len(weigh))
    kept = [i for i, coin in zip(weigh, coins, strict=True) if coin < weights[i] / 2]
    (everywhere,) = new.error.values()
    expect_limit(everywhere, kept, wrong, DELTA * mass_of(model))
    in_group = [i for i in kept if groups[i] == "b"]
    expect_limit(new.groups["b"], in_group, wrong, DELTA * mass_of(model) / 3)
    assert sum(leaf.n for leaf in new.leaves.values()) == len(kept)
    assert "calibration rows that the weights keep" in str(everywhere)
    assert "from the source that the weights describe" in str(everywhere)
    assert "density of the new source" in everywhere.assumptions[0]
    again = model.conditional_guarantees(
        groups=groups, weights=weights * 3, max_weight=6, random_state=3
    )
    assert again.error.worst.bound == everywhere.bound
    with pytest.raises(ValueError, match=r"already allows? for a distribution shift"):
        everywhere.nearby(kl=0.1)
    whole = model.conditional_guarantees("error", weights=np.ones(len(y)), max_weight=1)
    assert whole.error.worst.bound == model.conditional_guarantees("error").error.worst.bound


@pytest.mark.parametrize(
    ("weights", "most", "message"),
    [
        (np.full(400, 1.5), 1.0, r"at most max_weight=1, got 1.5"),
        (np.full(400, -1.0), 1.0, "finite and non-negative"),
        (np.full(400, np.nan), 1.0, "finite and non-negative"),
        (np.ones(399), 1.0, r"must have shape \(400\)"),
        (np.ones(400), None, "weights and max_weight must be passed together"),
        (None, 1.0, "weights and max_weight must be passed together"),
        (np.ones(400), 0.0, "must be above 0"),
        (["a"] * 400, 1.0, "weights must convert to float64"),
        (
            np.ones(400),
            1e9,
            "at least 10 calibration rows that the weights keep, got 0",
        ),
    ],
)
def test_weights_that_keep_nothing_right_are_refused(weights, most, message):
    model, *_ = fitted()
    with pytest.raises((TypeError, ValueError), match=message):
        model.conditional_guarantees(weights=weights, max_weight=most)
    with pytest.raises(ValueError, match="random_state must be an integer >= 0, got -1"):
        model.conditional_guarantees(weights=np.ones(400), max_weight=1.0, random_state=-1)


# -- which rows ------------------------------------------------------------------------------------


def test_groups_are_those_of_the_rows_given_also_of_those_that_weigh_nothing():
    X, y, groups = rows()
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    there = weight > 0
    model = CertifiedTreeClassifier(random_state=0)
    whole = model.fit(X, y, sample_weight=weight).conditional_guarantees(groups=groups)
    part = model.fit(X[there], y[there]).conditional_guarantees(groups=groups[there])
    assert whole.groups == part.groups
    with pytest.raises(ValueError, match=r"groups must have shape \(267,\)|\(266,\)"):
        model.conditional_guarantees(groups=groups)


def test_a_class_or_group_without_weighing_rows_has_the_bound_1():
    X, y, _ = rows()
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    lonely = np.full(len(y), "weighs")
    lonely[model.model_selection_.held.grow[:5]] = "grows"
    none = model.conditional_guarantees(groups=lonely).groups["grows"]
    assert (none.bound, none.n) == (1, 0)
    assert "0 calibration rows of group grows" in str(none)
    assert "(there are none; method: every_group)" in str(none)
    assert restore_certificate(asdict(none)) == none
    assert none.parts.confidence == 1
    assert none.n_samples_needed(0.1) > 0


def test_a_class_that_growing_rows_lack_is_wrong_whatever_is_predicted():
    X, y, _ = rows()
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    rare = y.copy()
    rare[model.model_selection_.held.weigh[:7]] = 2
    model.fit(X, rare)
    assert model.classes_.tolist() == [0, 1, 2]
    promised = model.conditional_guarantees()
    assert [*promised.recall] == [0, 1, 2]
    assert (promised.recall[2].n, promised.recall[2].bound) == (7, 1)
    assert sum(one.n for one in promised.recall.values()) == promised.error.worst.n
    (everywhere,) = promised.error.values()
    weigh, wrong = judged(model, X, rare)
    assert all(wrong[i] for i in model.model_selection_.held.weigh[:7])
    expect_limit(everywhere, weigh, wrong, DELTA * mass_of(model))


def test_a_fit_in_a_box_promises_the_same():
    X, y, groups = rows()
    box = Grid([X.min(axis=0) - 1, X.max(axis=0) + 1])
    model = CertifiedTreeClassifier(box, max_depth=6).fit(X, y, classes=[0, 1])
    promised = model.conditional_guarantees(groups=groups)
    assert sum(leaf.n for leaf in promised.leaves.values()) == len(y)
    assert promised.error.worst.bound == pytest.approx(model.certificate_.bound)


def test_promises_of_a_fit_outlive_a_pickle_and_a_file(tmp_path):
    model, _, _, groups = fitted()
    promised = model.conditional_guarantees(groups=groups)
    again = pickle.loads(pickle.dumps(model)).conditional_guarantees(groups=groups)
    assert all(again[name] == promised[name] for name in FAMILIES)
    restored = pickle.loads(pickle.dumps(promised))
    assert all(restored[name] == promised[name] for name in FAMILIES)
    certree.save(model, tmp_path / "model.certree")
    loaded = certree.load(tmp_path / "model.certree").conditional_guarantees(groups=groups)
    assert all(loaded[name] == promised[name] for name in FAMILIES)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"delta": 0.0}, "delta must lie between 0 and 1"),
        ({"delta": 1.0}, "delta must lie between 0 and 1"),
        ({"groups": ["one"] * 400}, "groups must have at least two different values, got 1"),
        ({"groups": ["one"] * 3}, r"groups must have shape \(400,\)"),
        (
            {"groups": np.array([1, "one"] * 200, dtype=object)},
            "groups must hold values of one type",
        ),
        (
            {"groups": [math.nan, 1.0] * 200},
            "groups must name a group of every row, got none for 200 of 400",
        ),
        ({"families": "recal"}, "families must be some of error, recall"),
        ({"families": ["recall", "recall"]}, "each once"),
        ({"families": []}, "families must be some of"),
        ({"families": ["groups"]}, "must not include 'groups' without the argument groups"),
    ],
)
def test_what_cannot_be_promised_is_refused(asked, message):
    model, *_ = fitted()
    with pytest.raises(ValueError, match=message):
        model.conditional_guarantees(**asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"families": 5},
        {"delta": "5 %"},
        {"jointly": "yes"},
        {"random_state": None},
        {"max_weight": "1"},
    ],
    ids=str,
)
def test_settings_of_other_types_are_refused(asked):
    model, X, y, _ = fitted()
    (name,) = asked
    for ask in (
        model.conditional_guarantees,
        lambda **asked: conditional_guarantees(DummyClassifier().fit(X, y), X, y, **asked),
    ):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            ask(**asked)


def test_few_rows_and_rows_in_groups_are_refused():
    X, y, groups = rows()
    few = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X[:18], y[:18])
    with pytest.raises(ValueError, match="at least 10 calibration rows, got 9"):
        few.conditional_guarantees()
    with pytest.raises(ValueError, match="at least 10 calibration rows, got 9"):
        conditional_guarantees(few, X[20:29], y[20:29])
    patients = np.arange(len(y)) // 4
    grouped = CertifiedTreeClassifier(random_state=0).fit(X, y, groups=patients)
    for name in FAMILIES:
        with pytest.raises(ValueError, match="pass one row of each new group"):
            grouped.conditional_guarantees(name, groups=groups)


# -- any classifier --------------------------------------------------------------------------------


def test_any_classifier_by_new_rows():
    X, y, groups = rows(3, 900)
    names = np.array(["x", "y", "z"])[y]
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[:400], names[:400])
    promised = conditional_guarantees(tree, X[400:], names[400:], groups=groups[400:])
    assert [*promised] == ["error", "recall", "precision", "groups", "gaps"]
    predicted, truth = tree.predict(X[400:]), names[400:]
    wrong = dict(enumerate(predicted != truth))
    for name, kinds in (("recall", truth), ("precision", predicted), ("groups", groups[400:])):
        for key, certificate in promised[name].items():
            inside = np.flatnonzero(kinds == key).tolist()
            expect_limit(certificate, inside, wrong, DELTA / 3)
    expected = certree.certify(tree, X[400:], names[400:])
    assert promised.error.worst == promised.error["all rows"]
    assert promised.error.worst.bound == expected.bound
    assert promised.error.worst.method == expected.method == "hold_out"
    with pytest.raises(ValueError, match="must not include 'leaves' without a certified tree"):
        conditional_guarantees(tree, X, names, "leaves")


def test_rows_of_the_fit_promise_nothing():
    X, y, _ = rows()
    X_new, y_new, _ = rows(seed=1)
    for model in (
        CertifiedTreeClassifier(random_state=0).fit(X, y),
        CertifiedForestClassifier(4, random_state=0).fit(X, y),
    ):
        with pytest.raises(ValueError, match="400 of 400 rows also occur among those of the fit"):
            conditional_guarantees(model, X, y)
        assert conditional_guarantees(model, X_new, y_new).error.worst.repeats == 0
        with pytest.raises(ValueError, match="the rows are the table of the fit"):
            conditional_guarantees(model, X, y, duplicates="genuine")
        mixed = np.vstack([X[:30], X_new[30:]]), np.append(y[:30], y_new[30:])
        found = conditional_guarantees(model, *mixed, duplicates="genuine").recall[0]
        assert found.repeats == found.matches.found == 30
        said = (
            "of class 0, out of rows of which 30 repeat other rows and count as independent draws"
        )
        assert said in str(found)
    foreign = DummyClassifier().fit(X, y)
    said = "of class 0, out of rows which were not compared with those of the fit, for all"
    assert said in str(conditional_guarantees(foreign, X, y).recall[0])
    assert conditional_guarantees(foreign, X, y).recall[0].repeats is None
    assert conditional_guarantees(foreign, X, y).mix([0.5, 0.5]).repeats is None
    with pytest.raises(TypeError, match="classifier must be a fitted classifier"):
        conditional_guarantees("tree", X, y)
    with pytest.raises(ValueError, match="y must have shape"):
        conditional_guarantees(foreign, X, y[:5])


# -- words -----------------------------------------------------------------------------------------


def test_families_are_tables():
    model, _, _, groups = fitted()
    promised = model.conditional_guarantees(groups=groups)
    page, text = promised._repr_html_(), str(promised)
    for family in promised.values():
        assert str(family) in text
        assert family._repr_html_() in page
        assert len(str(family).splitlines()) == 2 + min(len(family), 24)
    for key, certificate in promised.recall.items():
        line = next(one for one in str(promised.recall).splitlines() if one.startswith(str(key)))
        numbers = [float(number) for number in line.split()[1:]]
        assert numbers[0] == certificate.n
        assert certificate.bound <= numbers[2] < certificate.bound + 1e-3
        assert numbers[3] == pytest.approx(1 - numbers[2])
    assert "recall at least" in str(promised.recall)
    assert "precision at least" in str(promised.precision)
    assert "error, for any source" in str(promised.nearby(kl=0.1).recall)
    assert str(promised.recall).startswith(
        "With probability at least 95 %, for all classes at once, "
    )
    assert str(model.conditional_guarantees(["recall", "error"], jointly=True)).startswith(
        "With probability at least 97.5 %"
    )
    deep = fitted(3, 1500, selection="vote")[0].conditional_guarantees("cells").cells
    assert len(deep) > 24
    assert "is at most (the 24 with the most rows):" in str(deep)


def test_families_are_reached_by_name():
    model, *_ = fitted()
    promised = model.conditional_guarantees()
    assert promised.recall is promised["recall"]
    with pytest.raises(AttributeError, match=r"have only error, recall"):
        promised.groups  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'recal'"):
        promised.recal  # noqa: B018
    with pytest.raises(KeyError):
        promised["groups"]
    with pytest.raises(KeyError):
        promised.recall["x"]
    assert len(promised) == 5


def test_certificates_of_parts_go_through_files():
    model, _, _, groups = fitted(3)
    promised = model.conditional_guarantees(groups=groups)
    every = [
        one
        for families in (promised, promised.nearby(total_variation=0.1))
        for one in families.values()
    ]
    found = [family.worst for family in every]
    found += [promised.mix([0.2, 0.3, 0.5]), promised.nearby(kl=0.1).mix([0.2, 0.3, 0.5])]
    for certificate in found:
        saved = json.loads(json.dumps(asdict(certificate)))
        assert restore_certificate(saved) == certificate
        assert certificate.at(0.01).bound >= certificate.bound
        assert certificate.at(0.05) == certificate
        assert re.search(r"at once, this classifier's error|this vote's error", str(certificate))
        with pytest.raises(ValueError, match="must have the bound of its observed numbers"):
            restore_certificate({**saved, "bound": certificate.bound / 2})
    for shift in ("kl", {"kind": "kl"}, {"kind": "far", "most": 1.0}, {"kind": "kl", "most": -1.0}):
        with pytest.raises(ValueError, match=r"shift must|kind must be|kl must be"):
            restore_certificate({**saved, "shift": shift})


def test_a_mix_in_a_file_must_be_whole():
    saved = asdict(fitted()[0].conditional_guarantees().mix([0.5, 0.5]))
    with pytest.raises(ValueError, match=r"three numbers for each subset of the rows .*, got 5"):
        restore_certificate({**saved, "observed": saved["observed"][:-1]})


def test_groups_of_rows_have_sources_nearby_too():
    grouped = hold_out_mean(0.1, 200, grouped=True).nearby(kl=0.01)
    assert "on new groups from any source" in str(grouped)
    assert grouped.bound > hold_out_mean(0.1, 200, grouped=True).bound
