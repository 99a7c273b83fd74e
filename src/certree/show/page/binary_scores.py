"""Recall, precision and area under the ROC curve of a classifier of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.interface.formatting import shorten_label
from certree.show.calibration import compute_clopper_pearson_interval
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.scores import Score
from certree.show.ranking import Ranking


@dataclass(frozen=True, slots=True, eq=False)
class BinaryPredictions:
    """Which rows are of the positive class, and which rows a model predicts to be of it.

    The rows themselves are not needed, so predictions of batches of rows can be concatenated.

    Parameters
    ----------
    positive : object
        The positive class.
    probability : ndarray of float64, shape (n,)
        Predicted probability of the positive class.
    is_positive : ndarray of bool, shape (n,)
        Whether each row is of the positive class.
    is_predicted : ndarray of bool, shape (n,)
        Whether each row is predicted to be of the positive class.
    """

    positive: Any
    probability: Float64
    is_positive: NDArray[np.bool_]
    is_predicted: NDArray[np.bool_]

    @classmethod
    def from_evaluation(cls, evaluated: EvaluatedModel) -> Self | None:
        """Return the predictions for the positive class; None unless the model has two classes.

        evaluated: the fitted model, the rows and their predictions. Its `pos_label` names the
        positive class.
        """
        if evaluated.probabilities is None or len(evaluated.classes) != 2:
            return None
        k = evaluated.positive_index
        return cls(
            evaluated.positive_class,
            evaluated.probabilities[:, k],
            evaluated.is_positive,
            np.asarray(evaluated.predicted == np.asarray(evaluated.model.classes_)[k]),
        )

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the predictions for several batches of rows as one object, in their order.

        batches: predictions of one model for different rows, at least one batch.
        """
        names = ("probability", "is_positive", "is_predicted")
        fields = (np.concatenate([getattr(batch, name) for batch in batches]) for name in names)
        return cls(batches[0].positive, *fields)

    def scores(self) -> list[Score]:
        """Compute recall, precision and the area under the ROC curve.

        Returns
        -------
        list of Score
            The scores in this order, each with a 95 % interval and without the score of a constant
            prediction (`baseline` is None). Recall is left out if no row is of the positive class,
            precision if no row is predicted to be, and the area unless there are rows of both
            classes.
        """
        positive, scores = shorten_label(str(self.positive)), []
        n_hits = float(np.sum(self.is_positive & self.is_predicted))
        for key, rows in (("recall", self.is_positive), ("precision", self.is_predicted)):
            if rows.any():
                n = float(rows.sum())
                interval = compute_clopper_pearson_interval(n_hits, n)
                name, method = f"{key.capitalize()} of {positive}", "exact, Clopper and Pearson"
                scores.append(Score(key, name, n_hits / n, *interval, True, method))
        if self.is_positive.any() and not self.is_positive.all():
            ranking = Ranking.from_scores(self.is_positive, self.probability)
            interval = ranking.auc_interval
            name = "Area under the ROC curve"
            scores.append(Score("roc_auc", name, ranking.auc, *interval, False, "DeLong"))
        return scores
