"""Rankings of two classes, against scikit-learn and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)
from sklearn.tree import DecisionTreeClassifier

from certree import PrunedTreeClassifier
from certree.show import plot_ranking
from certree.show.ranking import Ranking


@st.composite
def ranked_rows(draw):
    n = draw(st.integers(2, 30))
    score = draw(
        hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
    )
    is_positive = draw(hnp.arrays(np.bool_, n))
    is_positive[:2] = True, False
    return is_positive, score


@given(ranked_rows())
def test_rankings_equal_those_of_scikit_learn_and_scipy(rows):
    is_positive, score = rows
    ranking = Ranking.from_scores(is_positive, score)
    assert ranking.auc == pytest.approx(roc_auc_score(is_positive, score))
    assert ranking.average_precision == pytest.approx(average_precision_score(is_positive, score))
    low, high = ranking.auc_interval
    assert low <= ranking.auc <= high
    false_positive_rate, recall, threshold = roc_curve(is_positive, score, drop_intermediate=False)
    np.testing.assert_allclose(ranking.false_positive_rate, false_positive_rate[1:])
    np.testing.assert_allclose(ranking.recall, recall[1:])
    np.testing.assert_array_equal(ranking.threshold, threshold[1:])
    precision, *_ = precision_recall_curve(is_positive, score)
    np.testing.assert_allclose(ranking.precision[::-1], precision[:-1])
    distance, threshold_of_distance = ranking.ks
    expected = ks_2samp(score[is_positive], score[~is_positive], alternative="less").statistic
    assert distance == pytest.approx(expected)
    assert threshold_of_distance in score
    for cost, threshold in zip(ranking.cost(5, 2), ranking.threshold, strict=True):
        is_predicted = score >= threshold
        total = 5 * (is_positive & ~is_predicted).sum() + 2 * (~is_positive & is_predicted).sum()
        assert cost == pytest.approx(total / len(score))


@given(ranked_rows())
def test_the_interval_of_the_area_uses_placement_values(rows):
    is_positive, score = rows
    beats = (score[is_positive][:, None] > score[~is_positive]) + 0.5 * (
        score[is_positive][:, None] == score[~is_positive]
    )
    variance = sum(
        placements.var(ddof=1) / len(placements)
        for placements in (beats.mean(axis=1), beats.mean(axis=0))
        if len(placements) > 1
    )
    low, high = Ranking.from_scores(is_positive, score).auc_interval
    area, half_width = beats.mean(), 1.96 * np.sqrt(variance)
    assert low == pytest.approx(max(area - half_width, 0.0))
    assert high == pytest.approx(min(area + half_width, 1.0))


def test_a_ranking_has_four_panels():
    X, y = load_breast_cancer(return_X_y=True)
    model = PrunedTreeClassifier(random_state=0).fit(X[:300], y[:300])
    figure = plot_ranking(model, X[300:], y[300:], 1, 5)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    area = roc_auc_score(y[300:], model.predict_proba(X[300:])[:, 1])
    assert titles[0] == f"ROC curve: area {area:.3f}"
    assert titles[2].startswith("Kolmogorov-Smirnov: ")
    (point,) = figure.axes[3].lines[1].get_ydata()
    assert point == figure.axes[3].lines[0].get_ydata().min()


def test_the_first_class_can_be_positive():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    model, exchanged = (clone(tree).fit(X[:300], labels[:300]) for labels in (y, 1 - y))
    both = [
        plot_ranking(model, X[300:], y[300:], 5, 2, pos_label=0),
        plot_ranking(exchanged, X[300:], 1 - y[300:], 5, 2),
    ]
    for first, second in zip(both[0].axes, both[1].axes, strict=True):
        assert first.get_title(loc="left") == second.get_title(loc="left")
        for line, twin in zip(first.lines, second.lines, strict=True):
            np.testing.assert_allclose(line.get_xydata(), twin.get_xydata(), rtol=1e-9)
    labels = [text.get_text() for text in both[0].axes[2].get_legend().get_texts()]
    assert labels == ["other class", "0"]
    with pytest.raises(ValueError, match="pos_label must be one of the classes 0 and 1, got 'no'"):
        plot_ranking(model, X[300:], y[300:], pos_label="no")


def test_rankings_refuse_other_than_two_classes():
    X, y = load_iris(return_X_y=True)
    model = PrunedTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="model must have two classes to rank rows, got 3"):
        plot_ranking(model, X, y)
    model = PrunedTreeClassifier().fit(X[:100], y[:100])
    with pytest.raises(
        ValueError,
        match=r"y must have rows of both classes to rank them, got rows of class .* alone",
    ):
        plot_ranking(model, X[:50], y[:50])
    with pytest.raises(ValueError, match=r"costs of .* must be finite and >= 0, .* got \(0, 0\)"):
        plot_ranking(model, X[:100], y[:100], 0, 0)
    with pytest.raises(TypeError, match="must have predict_proba"):
        plot_ranking(LinearRegression().fit(X, y), X, y)
