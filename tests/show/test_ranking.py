"""Rankings of two classes, against scikit-learn and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import ks_2samp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from certree import PrunedTreeClassifier
from certree.show import plot_ranking
from certree.show.ranking import Ranking


@st.composite
def ranked(draw):
    n = draw(st.integers(2, 30))
    score = draw(
        hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
    )
    came_true = draw(hnp.arrays(np.bool_, n))
    came_true[:2] = True, False
    return came_true, score


@given(ranked())
def test_rankings_are_those_of_others(drawn):
    came_true, score = drawn
    found = Ranking.from_scores(came_true, score)
    assert found.auc == pytest.approx(roc_auc_score(came_true, score))
    assert found.average_precision == pytest.approx(average_precision_score(came_true, score))
    low, high = found.auc_interval
    assert low <= found.auc <= high
    alarmed, recall, threshold = roc_curve(came_true, score, drop_intermediate=False)
    np.testing.assert_allclose(found.false_positive_rate, alarmed[1:])
    np.testing.assert_allclose(found.recall, recall[1:])
    np.testing.assert_array_equal(found.threshold, threshold[1:])
    precision, *_ = precision_recall_curve(came_true, score)
    np.testing.assert_allclose(found.precision[::-1], precision[:-1])
    distance, at = found.ks
    expected = ks_2samp(score[came_true], score[~came_true], alternative="less").statistic
    assert distance == pytest.approx(expected)
    assert at in score
    for cost, threshold in zip(found.cost(5, 2), found.threshold, strict=True):
        taken = score >= threshold
        total = 5 * (came_true & ~taken).sum() + 2 * (~came_true & taken).sum()
        assert cost == pytest.approx(total / len(score))


@given(ranked())
def test_the_interval_of_the_area_is_that_of_placements(drawn):
    came_true, score = drawn
    beats = (score[came_true][:, None] > score[~came_true]) + 0.5 * (
        score[came_true][:, None] == score[~came_true]
    )
    variance = sum(
        placed.var(ddof=1) / len(placed)
        for placed in (beats.mean(axis=1), beats.mean(axis=0))
        if len(placed) > 1
    )
    low, high = Ranking.from_scores(came_true, score).auc_interval
    area, off = beats.mean(), 1.96 * np.sqrt(variance)
    assert low == pytest.approx(max(area - off, 0.0))
    assert high == pytest.approx(min(area + off, 1.0))


def test_a_ranking_is_drawn_in_four_pictures():
    X, y = load_breast_cancer(return_X_y=True)
    model = PrunedTreeClassifier(random_state=0).fit(X[:300], y[:300])
    figure = plot_ranking(model, X[300:], y[300:], 1, 5)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    area = roc_auc_score(y[300:], model.predict_proba(X[300:])[:, 1])
    assert titles[0] == f"ROC curve: area {area:.3f}"
    assert titles[2].startswith("Kolmogorov-Smirnov: ")
    (point,) = figure.axes[3].lines[1].get_ydata()
    assert point == figure.axes[3].lines[0].get_ydata().min()


def test_what_has_no_order_of_two_classes_is_refused():
    X, y = load_iris(return_X_y=True)
    model = PrunedTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="model must have two classes to rank rows, got 3"):
        plot_ranking(model, X, y)
    model = PrunedTreeClassifier().fit(X[:100], y[:100])
    with pytest.raises(
        ValueError, match="y must have rows of both classes to rank them, got rows of one class"
    ):
        plot_ranking(model, X[:50], y[:50])
    with pytest.raises(ValueError, match=r"costs must be finite and >= 0, .* got \(0, 0\)"):
        plot_ranking(model, X[:100], y[:100], 0, 0)
    with pytest.raises(TypeError, match="must have predict_proba"):
        plot_ranking(LinearRegression().fit(X, y), X, y)
