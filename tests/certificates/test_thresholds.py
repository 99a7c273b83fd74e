"""Rates and costs at every threshold: against the definition, and what is refused."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import certree
import reference
from certree import (
    CertifiedBoostedTreesClassifier,
    CertifiedTreeClassifier,
    Grid,
    PACBayesPosteriors,
    predict_files,
)
from certree.certificates import Guarantees, hold_out
from certree.certificates.inequalities.bounds import binomial_upper, named_cost
from certree.certificates.inequalities.order_statistics import compute_cdf_bounds
from certree.certificates.subsets.families import CertificateTerms
from certree.certificates.thresholds import ThresholdGuarantees
from certree.show import report

RATES = ("false_positive_rate", "recall", "precision", "predicted_positive_rate")


def rows(n=400, seed=0):
    return make_classification(n, 5, weights=[0.7], flip_y=0.15, random_state=seed)


def guaranteed(n=400, **asked):
    X, y = rows(n + 100)
    model = LogisticRegression().fit(X[:100], y[:100])
    guarantees = Guarantees.by_rows(model, X[100:], y[100:])
    return guarantees, guarantees.thresholds(**asked), X[100:], y[100:]


def made(score, is_positive, **rest):
    return ThresholdGuarantees(
        "yes", np.asarray(score, dtype=float), np.asarray(is_positive, dtype=bool),
        CertificateTerms(0.05, 1.0), **rest,
    )  # fmt: skip


def test_rates_are_those_of_the_definition():
    guarantees, found, X, y = guaranteed(60)
    score = guarantees.classifier.predict_proba(X)[:, 1]
    assert found.threshold[0] == np.inf
    np.testing.assert_array_equal(found.threshold[1:], np.unique(score)[::-1])
    level, sizes = math.log(0.05) + math.log(0.45), np.bincount(y)
    for place, threshold in enumerate(found.threshold.tolist()):
        seen = reference.compute_rates_at_threshold(score.tolist(), (y == 1).tolist(), threshold)
        for limits, rate, n in zip(
            (found.false_positive_rate, found.recall), seen, sizes.tolist(), strict=True
        ):
            band, taken = compute_cdf_bounds(n, level), round(rate * n)
            assert limits.observed[place] == pytest.approx(rate)
            assert limits.lowest[place] == band[taken]
            assert limits.highest[place] == 1 - band[n - taken]
    assert found.prevalence.highest == binomial_upper(int(sizes[1]), 60, math.log(0.05 * 0.05))
    np.testing.assert_array_equal(found.specificity.lowest, 1 - found.false_positive_rate.highest)
    np.testing.assert_array_equal(found.false_negative_rate.highest, 1 - found.recall.lowest)


def test_what_follows_from_the_rates_is_the_worst_of_all_that_they_allow():
    found = guaranteed(200)[1]
    rng = np.random.default_rng(0)
    share, alarmed, recall = (
        rng.uniform(limits.lowest, limits.highest, (300, *np.shape(limits.observed)))
        for limits in (found.prevalence, found.false_positive_rate, found.recall)
    )
    share = share[:, None]
    taken = share * recall + (1 - share) * alarmed
    values = {
        "predicted_positive_rate": taken,
        "precision": np.divide(share * recall, taken, out=np.ones_like(taken), where=taken > 0),
    }
    values = {name: (getattr(found, name), each) for name, each in values.items()}
    for costs in ((5.0, 1.0), (0.0, 2.0), (1.0, 7.0)):
        cost = costs[0] * share * (1 - recall) + costs[1] * (1 - share) * alarmed
        values[costs] = found.cost(*costs), cost
    for limits, each in values.values():
        assert (limits.lowest <= each.min(axis=0) + 1e-12).all()
        assert (each.max(axis=0) <= limits.highest + 1e-12).all()
        assert (limits.lowest <= limits.observed).all()
        assert (limits.observed <= limits.highest).all()


def test_thresholds_between_scores_have_the_limits_of_the_next_one_above():
    found = made([0.2, 0.4, 0.4, 0.9] * 5, [0, 0, 1, 1] * 5)
    for threshold, place in ((0.9, 1), (0.95, 0), (np.inf, 0), (0.41, 1), (0.4, 2), (0, 3)):
        point = found.at(threshold)
        for name in RATES:
            limits = getattr(found, name)
            assert getattr(point, name) == tuple(of[place] for of in limits)
    for threshold in (math.nan, -0.1, -math.inf):
        with pytest.raises(ValueError, match=rf"threshold must lie in \[0, 1\], got {threshold}"):
            found.at(threshold)
    with pytest.raises(ValueError, match=r"got 30: pass 0\.3 for 30 %"):
        found.at(30)


def test_the_lowest_cost_is_certified_as_the_bands_say():
    _, found, _, y = guaranteed(300)
    point = found.lowest_cost(6, 2)
    assert point.cost_at_most == pytest.approx(found.cost(6, 2).highest.min(), rel=1e-12)
    certificate = point.certificate
    assert (certificate.method, certificate.unit, certificate.n) == ("every_threshold", 6.0, 300)
    predicted = np.asarray(
        guaranteed(300)[0].predict_threshold(guaranteed(300)[2], point.threshold)
    )
    observed = np.mean(6 * (y > predicted) + 2 * (y < predicted))
    assert certificate.risk == pytest.approx(observed)
    assert certificate.at(0.05) == certificate
    text = str(point)
    assert f"at threshold {point.threshold:.4g} (6 for a missed 1, 2 for a false alarm)" in text
    assert "counts as that" not in text
    assert found.lowest_cost(3, 1).threshold == point.threshold
    # Equal costs are the error.
    assert found.lowest_cost(1, 1).certificate.unit is None


def test_costs_that_are_named_before_have_bounds_of_their_own():
    guarantees, found, X, y = guaranteed(300, costs=(5, 1))
    alone = guarantees.thresholds()
    point = found.lowest_cost(10, 2)
    assert point.certificate.method == "named_cost"
    assert point.cost_at_most < alone.lowest_cost(10, 2).cost_at_most
    assert f"at most {point.certificate.promised} was certified" in str(point.certificate.monitor())
    bounds = []
    for odds in np.exp([-1.0, -0.5, 0.0, 0.5, 1.0]) / 5:
        taken = guarantees.predict_threshold(X, odds / (1 + odds))
        shares = np.mean(y > taken), np.mean(y < taken)
        bounds.append(named_cost(*shares, 1.0, 0.2, 300, math.log(10), math.log(0.05)))
    assert point.cost_at_most == pytest.approx(10 * min(bounds))
    # Other costs are those of the bands, at half of delta.
    other = found.lowest_cost(1, 1).certificate
    assert (other.method, other.complexity) == ("every_threshold", math.log(2))
    assert other.bound > alone.lowest_cost(1, 1).certificate.bound
    several = guarantees.thresholds(costs=[(5, 1), (1, 1), (1, 0)])
    assert several.lowest_cost(5, 1).certificate.complexity == math.log(2) + math.log(15)
    assert several.lowest_cost(2, 0).cost_at_most < 2


def test_the_highest_recall_has_the_precision_that_was_asked_for():
    found = guaranteed(400)[1]
    point = found.highest_recall(0.5)
    sure = found.precision.lowest >= 0.5
    assert point.precision.lowest >= 0.5
    assert point.recall.lowest == found.recall.lowest[sure].max()
    assert point.certificate is None
    assert point.cost_at_most == math.inf
    with pytest.raises(ValueError, match=r"precision=0\.999 is not .* precision is 0\.\d"):
        found.highest_recall(0.999)
    with pytest.raises(ValueError, match=r"precision must lie between 0 and 1, got 1\.0"):
        found.highest_recall(1.0)


@pytest.mark.parametrize("recall", [0.05, 0.5, 0.8])
def test_the_highest_threshold_has_the_recall_that_was_asked_for(recall):
    found = guaranteed(400)[1]
    point = found.highest_threshold(recall=recall)
    assert point.recall.lowest >= recall
    score = found.score[found.score >= point.threshold].min()
    for threshold, lowest in zip(found.threshold, found.recall.lowest, strict=True):
        assert threshold <= score or lowest < recall
    assert point == found.at(point.threshold)


def test_chosen_thresholds_lie_between_scores_and_have_few_digits():
    X, y = rows(500)
    score = np.round(LogisticRegression().fit(X, y).predict_proba(X)[:, 1], 2)
    # Scores that differ by rounding only are no place for a threshold.
    score = np.where(np.arange(500) % 2, score, score * (1 + 1e-9))
    found = made(score, y == 1)
    points = [found.lowest_cost(5, 1), found.lowest_cost(1, 5), found.highest_recall(0.5)]
    points += [found.highest_threshold(recall) for recall in np.linspace(0.05, 0.9, 12)]
    chosen = [point.threshold for point in points]
    chosen += [float(line[0]) for line in found.table()[1]]
    assert len({*chosen}) > 10
    for threshold in chosen:
        assert np.abs(score - threshold).min() > 1e-3
        assert threshold == round(threshold, 4)
    for point in points:
        assert point == replace(found.at(point.threshold), certificate=point.certificate)
        next_score = score[score >= point.threshold].min()
        limits = replace(found.at(next_score), threshold=point.threshold)
        assert limits == replace(point, certificate=None)
        assert (score.astype(np.float32) >= np.float32(point.threshold)).sum() == round(
            500 * point.predicted_positive_rate.observed
        )


@pytest.mark.parametrize("score", [0.0, 0.3, 5e-324, 1.0])
def test_a_threshold_of_equal_scores_takes_all_rows(score):
    found = made([score] * 40, [0, 1] * 20)
    point = found.highest_threshold(0.5)
    assert 0 <= point.threshold <= score
    assert point.predicted_positive_rate.observed == 1


def test_a_recall_that_is_not_certified_is_refused():
    found = guaranteed(100)[1]
    with pytest.raises(ValueError, match=r"recall=0\.999 is not .* certified recall is 0\.\d"):
        found.highest_threshold(0.999)
    with pytest.raises(ValueError, match=r"recall must lie between 0 and 1, got 0\.0"):
        found.highest_threshold(0.0)
    with pytest.raises(TypeError, match="recall must be a number, got 'high'"):
        found.highest_threshold("high")


def test_a_table_has_the_thresholds_that_were_asked_for():
    found = guaranteed(100)[1]
    head, lines = found.table([0.3, 0.75])
    assert head == found.table()[0]
    assert [line[0] for line in lines] == ["0.3", "0.75"]
    for threshold, line in zip((0.3, 0.75), lines, strict=True):
        point = found.at(threshold)
        rounded = math.floor(1000 * point.recall.lowest) / 1000
        assert line[1] == f"{point.predicted_positive_rate.observed:.3f}"
        assert line[3] == f">= {rounded:.3f}"
    with pytest.raises(ValueError, match=r"threshold must lie in \[0, 1\], got nan"):
        found.table([math.nan])
    with pytest.raises(TypeError, match="thresholds must be"):
        found.table(0.3)


def test_groups_and_the_whole_share_delta():
    guarantees, alone, X, y = guaranteed(400)
    groups = np.where(X[:, 0] > 0, "high", "low")
    found = guarantees.thresholds(groups=groups)
    assert list(found.groups) == ["high", "low"]
    own = groups == "low"
    low = Guarantees.by_rows(guarantees.classifier, X[own], y[own]).thresholds(share=1 / 3)
    for name in RATES:
        expected, given = getattr(low, name), getattr(found.groups["low"], name)
        np.testing.assert_array_equal(given, expected)
        assert (getattr(found, name).highest >= getattr(alone, name).highest - 1e-12).all()
    assert "for all thresholds and all 2 groups at once" in str(found)
    assert found.groups["low"].lowest_cost(5, 1).certificate.share == pytest.approx(1 / 3)


@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 6}, {"vote": "majority"}])
def test_thresholds_of_certified_trees_are_about_predict_proba(tmp_path, settings):
    X, y = rows(1000)
    model = CertifiedTreeClassifier(random_state=0, selection="training", **settings).fit(X, y)
    certree.save(model, tmp_path / "model")
    loaded = certree.load(tmp_path / "model")
    weigh, score = model.calibration_.given, model.predict_proba(X)
    for pos_label in (0, 1):
        found = model.guarantees_.thresholds(costs=(5, 1), pos_label=pos_label)
        np.testing.assert_array_equal(found.score, score[weigh, pos_label])
        np.testing.assert_array_equal(found.is_positive, y[weigh] == pos_label)
        # The calibration rows have chosen nothing.
        assert found.complexity == 0
        point = found.lowest_cost(5, 1)
        predicted = model.guarantees_.predict_threshold(X, point)
        np.testing.assert_array_equal(
            predicted == pos_label, score[:, pos_label] >= point.threshold
        )
        again = loaded.guarantees_.thresholds(costs=(5, 1), pos_label=pos_label)
        assert again.lowest_cost(5, 1) == point


def test_thresholds_of_probabilities_that_calibration_rows_chose_are_refused(tmp_path):
    X, y = rows(400)
    model = CertifiedTreeClassifier(random_state=0, selection="vote").fit(X, y)
    certree.save(model, tmp_path / "model")
    for one in (model, certree.load(tmp_path / "model")):
        refused = pytest.raises(
            ValueError, match=r"chosen the vote .* selection='training', or pass new rows to"
        )
        with refused:
            one.guarantees_.thresholds()
        with refused:
            one.guarantees_.predict_threshold(X, 0.5)
        assert "thresholds()" not in one.report()
    new, y_new = rows(200, seed=1)
    found = Guarantees.by_rows(model, new, y_new).thresholds()
    np.testing.assert_array_equal(found.score, model.predict_proba(new)[:, 1])


def test_a_classifier_that_judging_rows_chose_pays_its_price():
    guarantees, found, _, _ = guaranteed(100)
    chosen = replace(guarantees, certificate=replace(hold_out(10, 100), complexity=math.log(4)))
    paid = chosen.thresholds()
    expected = guarantees.thresholds(share=0.25)
    np.testing.assert_allclose(paid.recall.lowest, expected.recall.lowest)
    assert (paid.recall.lowest <= found.recall.lowest).all()


@pytest.mark.parametrize("is_certified", [True, False])
def test_the_first_class_is_positive_as_the_second_of_exchanged_classes_is(is_certified):
    X, y = rows(600)
    names, exchanged = np.array(["default", "paid"])[y], np.array(["w default", "v paid"])[y]
    groups, costs = np.arange(600) % 2, [(5, 1), (1, 3)]
    both = []
    for labels, pos_label in ((names, "default"), (exchanged, None)):
        if is_certified:
            # Folds would depend on the order of the classes.
            posteriors = PACBayesPosteriors(lambda_error=1.0, lambda_penalty=0.1)
            model = CertifiedTreeClassifier(
                posteriors=posteriors, train_size=0.5, selection="training", random_state=0
            )
            guarantees = model.fit(X, labels).guarantees_
        else:
            model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:100], labels[:100])
            guarantees = Guarantees.by_rows(model, X[100:], labels[100:])
        own_groups = groups if is_certified else groups[100:]
        found = guarantees.thresholds(costs, groups=own_groups, pos_label=pos_label)
        both.append((guarantees, found, pos_label))
    (one, first, _), (other, second, _) = both
    assert (first.positive, second.positive) == ("default", "w default")
    for found, twin in [
        (first, second),
        *zip(first.groups.values(), second.groups.values(), strict=True),
    ]:
        np.testing.assert_array_equal(found.is_positive, twin.is_positive)
        np.testing.assert_allclose(found.threshold, twin.threshold, rtol=1e-12)
        for rate in RATES:
            np.testing.assert_allclose(getattr(found, rate), getattr(twin, rate), rtol=1e-12)
        for pair in ((5, 1), (1, 3), (2, 7)):
            point, its = found.lowest_cost(*pair), twin.lowest_cost(*pair)
            assert point.cost_at_most == pytest.approx(its.cost_at_most, rel=1e-12)
            assert str(point).replace("default", "w default") == str(its)
    threshold = float(first.threshold[2:4].mean())
    predicted = one.predict_threshold(X, threshold, pos_label="default")
    assert set(predicted) == {"default", "paid"}
    expected = other.predict_threshold(X, threshold)
    np.testing.assert_array_equal(predicted == "default", expected == "w default")
    default = one.thresholds(costs)
    assert str(default) == str(one.thresholds(costs, pos_label="paid"))
    assert "class paid" in str(default)
    with pytest.raises(ValueError, match="pos_label must be one of the classes 'default' and"):
        one.predict_threshold(X, 0.5, pos_label="w default")


def test_words_say_what_holds():
    _, found, _, _ = guaranteed(100)
    head = (
        r"With probability at least 95 % over the draw of 100 calibration rows, which were not "
        r"compared with those of the fit, \d+ of them of class 1, for all thresholds at once:"
    )
    lines = str(found).splitlines()
    assert lines[1].endswith("taken  false positive rate    recall  precision")
    assert len(lines) == 12
    assert re.fullmatch(head, lines[0])
    assert "<table" in found._repr_html_()


def test_bad_questions_say_what_was_expected():
    guarantees, found, X, y = guaranteed(60)
    three = load_iris(return_X_y=True)
    many = Guarantees.by_rows(LogisticRegression(max_iter=500).fit(*three), *three)
    with pytest.raises(ValueError, match="thresholds need a classifier with 2 classes, got 3"):
        many.thresholds()
    with pytest.raises(ValueError, match="2 classes, got 3 classes"):
        many.predict_threshold(three[0], 0.5)
    odd = replace(guarantees, y=np.where(np.arange(60) < 2, 7, guarantees.y))
    with pytest.raises(ValueError, match="0 and 1 only, but 2 of 60 rows"):
        odd.thresholds()
    few = Guarantees.by_rows(guarantees.classifier, X[:9], y[:9])
    with pytest.raises(ValueError, match="need at least 10 calibration rows, got 9"):
        few.thresholds()
    with pytest.raises(ValueError, match="at least 10 calibration rows in each group, got 3"):
        guarantees.thresholds(groups=np.arange(60) < 3)
    with pytest.raises(TypeError, match="thresholds need probabilities"):
        Guarantees.by_rows(LinearSVC().fit(X, y), X, y).thresholds()
    for costs in ((1, 2, 3), "5:1", [], [(1, 2), (1,)], 4):
        with pytest.raises(ValueError, match="costs must be a pair"):
            guarantees.thresholds(costs=costs)
    with pytest.raises(ValueError, match="at least one cost must be positive"):
        found.cost(0, 0)
    with pytest.raises(ValueError, match="false_positive must be a finite number >= 0"):
        found.lowest_cost(1, -1)
    with pytest.raises(ValueError, match=r"threshold must lie in \[0, 1\], got nan"):
        guarantees.predict_threshold(X, math.nan)
    for threshold in (30, -1, 1.5):
        with pytest.raises(ValueError, match=rf"threshold must lie in \[0, 1\], got {threshold}"):
            guarantees.predict_threshold(X, threshold)
    with pytest.raises(TypeError, match="precision must be a number, got 'high'"):
        found.highest_recall("high")
    with pytest.raises(ValueError, match="delta must lie between 0 and 1, got 2"):
        guarantees.thresholds(delta=2.0)
    grouped = CertifiedTreeClassifier(random_state=0).fit(X, y, groups=np.arange(60) // 2)
    with pytest.raises(ValueError, match=r"one row of each new group to Guarantees\.by_rows"):
        grouped.guarantees_.thresholds()
    boxed = CertifiedTreeClassifier(Grid((X.min(axis=0), X.max(axis=0))), max_depth=4)
    with pytest.raises(ValueError, match="with another grower"):
        boxed.fit(X, y, classes=[0, 1]).guarantees_.thresholds()


@pytest.mark.slow
def test_an_operating_point_names_the_positive_class_wherever_a_threshold_is_taken(tmp_path):
    X, y = make_classification(600, 4, random_state=0)
    labels = np.where(y == 1, "yes", "no")
    model = CertifiedBoostedTreesClassifier(max_iter=8, random_state=0).fit(X, labels)
    guarantees = model.guarantees_
    point = guarantees.thresholds(pos_label="no").highest_threshold(recall=0.6)
    number, rule = point.threshold, {"pos_label": "no"}
    expected = guarantees.predict_threshold(X, number, **rule)
    assert guarantees.predict_threshold(X, point).tolist() == expected.tolist()
    assert guarantees.predict_threshold(X, point, **rule).tolist() == expected.tolist()
    assert guarantees.predict_threshold(X, number).tolist() != expected.tolist()
    assert model.to_sql("t", threshold=point) == model.to_sql("t", threshold=number, **rule)
    rows = pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    predict_files(model, tmp_path / "rows.csv", tmp_path / "out.csv", threshold=point)
    assert pd.read_csv(tmp_path / "out.csv").prediction.tolist() == expected.tolist()
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    report(model, X[:40], labels[:40], pages[0], threshold=point)
    report(model, X[:40], labels[:40], pages[1], threshold=number, **rule)
    assert pages[0].read_text() == pages[1].read_text()
    for call in (
        lambda: guarantees.predict_threshold(X, point, pos_label="yes"),
        lambda: model.to_sql("t", threshold=point, pos_label="yes"),
    ):
        with pytest.raises(ValueError, match="pos_label must be 'no', the positive class of the"):
            call()


@pytest.mark.parametrize("costs", [(9.0, 1.0), (1.0, 9.0)])
def test_costs_are_compared_with_those_of_a_constant_decision(costs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = np.where(rng.random(800) < 0.2, "yes", "no")  # Nothing can be learned.
    model = certree.PACBayesTreeClassifier(random_state=0).fit(X[:400], y[:400])
    curves = Guarantees.by_rows(model, X[400:], y[400:]).thresholds(costs=costs)
    point = curves.lowest_cost(*costs)
    rate = np.mean(y[400:] == "yes")
    never, always = costs[0] * rate, costs[1] * (1 - rate)
    name, value = ("never yes", never) if never < always else ("always yes", always)
    baseline = point.certificate.baseline
    assert (baseline.name, baseline.value) == (name, pytest.approx(value))
    assert "does not show that the model is better than this constant" in str(point)
    everything = "All calibration rows are predicted as yes: this decides nothing."
    assert str(curves.at(0.0)).endswith(everything)
    nothing = "No calibration row is predicted as yes: this decides nothing."
    assert str(curves.at(np.inf)).endswith(nothing)
