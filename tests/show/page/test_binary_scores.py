"""Scores of the positive one of two classes."""

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score, roc_auc_score

import certree
from certree.show.calibration import compute_clopper_pearson_interval
from certree.show.page.binary_scores import BinaryPredictions
from certree.show.page.evaluated_model import EvaluatedModel


@pytest.fixture(scope="module", name="drawn")
def draw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = np.where(X[:, 0] + rng.normal(size=500) > 0.5, "yes", "no")
    model = certree.BoostedTreesClassifier(max_iter=10, random_state=0).fit(X[:300], y[:300])
    return model, X[300:], y[300:]


@pytest.mark.parametrize("pos_label", [None, "no", "yes"])
def test_scores_are_those_of_the_positive_class(drawn, pos_label):
    model, X, y = drawn
    positive = pos_label or "yes"
    predictions = BinaryPredictions.from_evaluation(
        EvaluatedModel.from_rows(model, X, y, pos_label=pos_label)
    )
    recall, precision, area = predictions.scores()
    predicted, probability = model.predict(X), model.predict_proba(X)[:, int(positive == "yes")]
    assert (recall.key, precision.key, area.key) == ("recall", "precision", "roc_auc")
    assert recall.name == f"Recall of {positive}"
    assert recall.value == pytest.approx(recall_score(y, predicted, pos_label=positive))
    assert precision.value == pytest.approx(precision_score(y, predicted, pos_label=positive))
    assert area.value == pytest.approx(roc_auc_score(y == positive, probability))
    for score in (recall, precision, area):
        assert score.low < score.value < score.high
    n_hits = np.sum((predicted == positive) & (y == positive))
    expected = compute_clopper_pearson_interval(n_hits, np.sum(predicted == positive))
    assert (precision.low, precision.high) == expected


def test_batches_have_the_scores_of_all_rows(drawn):
    model, X, y = drawn
    whole, first, second = (
        BinaryPredictions.from_evaluation(EvaluatedModel.from_rows(model, X[rows], y[rows]))
        for rows in (slice(None), slice(0, 7), slice(7, None))
    )
    assert BinaryPredictions.concatenate([first, second]).scores() == whole.scores()


def test_scores_that_no_row_defines_are_left_out():
    none, some = np.zeros(4, dtype=bool), np.array([True, False, False, True])

    def list_keys(is_positive, is_predicted):
        predictions = BinaryPredictions("yes", np.linspace(0, 1, 4), is_positive, is_predicted)
        return [score.key for score in predictions.scores()]

    assert list_keys(some, none) == ["recall", "roc_auc"]
    assert list_keys(none, some) == ["precision"]
    assert list_keys(~none, some) == ["recall", "precision"]
    assert list_keys(none, none) == []


def test_other_targets_than_two_classes_have_no_such_scores():
    X = np.random.default_rng(0).normal(size=(60, 2))
    for model, y in (
        (certree.PrunedTreeClassifier(), np.arange(60) % 3),
        (certree.PrunedTreeRegressor(), X[:, 0]),
    ):
        evaluated = EvaluatedModel.from_rows(model.fit(X, y), X, y)
        assert BinaryPredictions.from_evaluation(evaluated) is None
