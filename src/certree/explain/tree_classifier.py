"""Classifiers that add up trees: rows may have classes of several targets, which leaves say in turn."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from certree.explain.explanation import parts_of
from certree.explain.lanes import Lanes
from certree.explain.tree_model import TreeModel
from certree.interface.arrays import Float64, array_of, beside_each_other
from certree.interface.fitted import reads_state


class TreeClassifier(ClassifierMixin, TreeModel):
    """What all can be asked about classes, of one target or several."""

    classes_: Any
    n_classes_: Any

    @property
    @abstractmethod
    def _lanes(self) -> Lanes:
        """What leaves say of each target."""

    def _likeliest(self, shares: Any) -> NDArray[Any]:
        """The classes of these shares, ties to the first; of several targets a list of them."""
        if not self._has_several_targets():
            return self.classes_.take(shares.argmax(axis=1))
        of_each = zip(self.classes_, shares, strict=True)
        return beside_each_other([known.take(one.argmax(axis=1)) for known, one in of_each])

    @reads_state
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Give the accuracy; of several targets the share of rows in which all of them are right.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,), or (n, n_outputs)
            Their classes.
        sample_weight : array-like of shape (n,), or None
            How many rows each row counts as.

        Returns
        -------
        float
            Share, 0 .. 1.

        Raises
        ------
        ValueError
            If y has not as many columns as that of the fit.
        """
        check_is_fitted(self)
        if not self._has_several_targets():
            return float(super().score(X, y, sample_weight))
        answer, truth = self.predict(X), array_of("y", y)
        if truth.shape != answer.shape:
            raise ValueError(f"y must have shape {answer.shape}, got {truth.shape}")
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, truth, dtype=np.float64)
        return share_of_equal_rows(truth, answer, weight)

    def _parts(self, base: Float64, added: Float64) -> dict[str, Any]:
        if not self._has_several_targets():
            return super()._parts(base, added)
        columns = np.cumsum(self._lanes.n_of)[:-1]
        of_each = zip(
            np.split(base, columns), np.split(added, columns, axis=1), self.classes_, strict=True
        )
        parts = [parts_of(*one, self._link()) for one in of_each]
        names = [f"y[{k}]={name}" for k, one in enumerate(parts) for name in one["output_names"]]
        return {
            "base": np.concatenate([one["base"] for one in parts]),
            "contributions": np.concatenate([one["contributions"] for one in parts], axis=1),
            "output_names": names,
            "scale": parts[0]["scale"],
        }


def share_of_equal_rows(truth: NDArray[Any], answer: NDArray[Any], weight: Float64 | None) -> float:
    """Share of the rows (n, q) in which all is equal."""
    return float(np.average((truth == answer).all(axis=1), weights=weight))
