"""Certified classifiers that predict sets of classes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.certificate import Certificate
from certree.certificates.election import Election
from certree.certificates.hold_out import Certified
from certree.certificates.parts.coverage import Scores, class_scores, scores_of_truth
from certree.interface.arrays import Float64, Int32
from certree.interface.fitted import reads_state


class PredictsSets(Certified):
    """A classifier with an election, which predicts sets of classes by its growing rows."""

    n_classes_: int
    classes_: NDArray[Any]
    _of_growing_rows: Callable[[], Election]
    _leaves: Callable[[ArrayLike], Int32]

    @reads_state
    def predict_set(
        self,
        X: ArrayLike,
        coverage: float = 0.9,
        delta: float | None = None,
        *,
        per_class: bool = False,
    ) -> NDArray[np.bool_]:
        """Predict for each row a set of classes that holds the true one for a share of new rows.

        Given the fit, with probability ``1 - delta`` over the draw of the weighing rows and whatever
        their distribution is. Growing rows alone say in which order classes come into a set; the
        weighing rows say how far to go. So a set need not hold the class that `predict` gives, which
        both have chosen, and it may be empty where less than the usual would be surprising.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        coverage : float
            Share of new rows, between 0 and 1, whose class their set holds.
        delta : float or None
            Probability with which the sets hold fewer; None: `delta` of the fit.
        per_class : bool
            Whether they hold that share of the rows of every class, of all classes at once. A class of
            too few weighing rows is in every set.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Which classes are in the set of each row, in the order of `classes_`.

        Raises
        ------
        ValueError
            If a number is not between 0 and 1; if too few rows weigh for such a promise, or too many of
            them are of classes that no growing row has; if the model was fitted by groups, with a
            `Grid`, or was loaded from a file.
        """
        leaf = self._leaves(X)
        score, scores = self._set_scores(per_class)
        reach = _finite(scores, coverage, self._delta(delta))
        held: NDArray[np.bool_] = score[leaf, : self.n_classes_] <= reach
        return held

    @reads_state
    def certify_set(
        self, coverage: float = 0.9, delta: float | None = None, *, per_class: bool = False
    ) -> tuple[Certificate | None, ...]:
        """Say what `predict_set` promises.

        Parameters
        ----------
        coverage, delta, per_class
            As in `predict_set`.

        Returns
        -------
        tuple of Certificate or None
            Of the share of rows whose set lacks their class: one of all rows, or one of the rows of
            each class, which hold together; None for a class that is in every set.

        Raises
        ------
        ValueError
            As in `predict_set`.
        """
        scores = self._set_scores(per_class)[1]
        _finite(scores, coverage, self._delta(delta))
        if not per_class:
            return scores.certificates("prediction_set", coverage, self._delta(delta))
        classes = [*map(str, self.classes_)]
        return scores.certificates("class_set", coverage, self._delta(delta), classes)

    def _set_scores(self, per_class: bool) -> tuple[Float64, Scores]:
        """What the classes score in every cell, and those of the weighing rows."""
        held = self._of_growing_rows().held
        if held.grouped:
            raise ValueError(
                "sets are about single rows, and rows of one group depend on each other: expected a "
                "fit without groups"
            )
        score = class_scores(held)
        return score, scores_of_truth(held, score, self.n_classes_, per_class=per_class)


def _finite(scores: Scores, coverage: float, delta: float) -> Float64:
    """How far sets go, unless the classes of too many rows are in none."""
    reach = scores.reach(coverage, delta)
    if len(reach) == 1 and np.isinf(reach).any():
        unknown = int(np.isinf(scores.value).sum())
        raise ValueError(
            f"coverage={coverage!r} is out of reach: {unknown:,} of {len(scores.value):,} weighing "
            "rows are of classes that no growing row has, which no set holds"
        )
    return reach
