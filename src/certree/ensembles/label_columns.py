"""Classifiers of one target, or of several columns of classes, each by numbers of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from certree.ensembles.lanes import Lanes
from certree.explain.explanation import parts_of
from certree.explain.tree_model import TreeModel
from certree.export.formula import Formula
from certree.interface.arrays import Float64, array_of, beside_each_other
from certree.interface.fitted import reads_state


def takes_one_target(what: str, model: Any) -> str:
    """What is said where there are several targets."""
    kind = "Classifier" if is_classifier(model) else "Regressor"
    return (
        f"{what} takes one target, got y of {model.n_outputs_} columns: "
        f"sklearn.multioutput.MultiOutput{kind} fits one model for each column"
    )


def share_of_equal_rows(truth: NDArray[Any], answer: NDArray[Any], weight: Float64 | None) -> float:
    """Share of the rows (n, q) in which all is equal."""
    return float(np.average((truth == answer).all(axis=1), weights=weight))


class LabelColumns(ClassifierMixin, TreeModel):
    """What classifiers share that take one target or several columns of classes."""

    classes_: Any
    n_classes_: Any

    @property
    def _are_several(self) -> bool:
        return isinstance(self.classes_, list)

    @property
    def _lanes(self) -> Lanes:
        """Which numbers that leaves say are of which target."""
        return Lanes.of_classes(np.atleast_1d(self.n_classes_).tolist())

    def _of_each(self, told: Callable[..., Any], *numbers: Float64, axis: int = 0) -> Any:
        """What is told by classes and their numbers, (n_lanes, n); of several targets in a list."""
        if not self._are_several:
            return told(self.classes_, *numbers)
        parts = [self._lanes.of_each(one, axis) for one in numbers]
        return [told(*of_one) for of_one in zip(self.classes_, *parts, strict=True)]

    def _in_columns(self, of_each: Any) -> NDArray[Any]:
        """Classes of rows as y has them, by those of each target."""
        return beside_each_other(of_each) if self._are_several else of_each

    def _given_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """The same by codes, (n,) or (n, q)."""
        if not self._are_several:
            named: NDArray[Any] = self.classes_[y]
            return named
        columns = zip(self.classes_, y.T, strict=True)
        return beside_each_other([known[codes] for known, codes in columns])

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
        if not self._are_several:
            return float(super().score(X, y, sample_weight))
        answer, truth = self.predict(X), array_of("y", y)
        if truth.shape != answer.shape:
            raise ValueError(f"y must have shape {answer.shape}, got {truth.shape}")
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, truth, dtype=np.float64)
        return share_of_equal_rows(truth, answer, weight)

    def _formula(self) -> Formula:
        check_is_fitted(self)
        if self._are_several:
            raise ValueError(takes_one_target("an export", self))
        return super()._formula()  # type: ignore[safe-super] # that of the model

    def _parts(self, base: Float64, added: Float64) -> dict[str, Any]:
        if not self._are_several:
            return super()._parts(base, added)
        of_each = zip(
            self._lanes.of_each(base, 0), self._lanes.of_each(added), self.classes_, strict=True
        )
        parts = [parts_of(*one, self._link()) for one in of_each]
        names = [f"y[{k}]={name}" for k, one in enumerate(parts) for name in one["output_names"]]
        return {
            "base": np.concatenate([one["base"] for one in parts]),
            "contributions": np.concatenate([one["contributions"] for one in parts], axis=1),
            "output_names": names,
            "scale": parts[0]["scale"],
        }
