"""Classifiers of one target, or of several columns of classes, each by numbers of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from certree.explain.several_targets import score_classifier
from certree.explain.tree_model import TreeModel
from certree.export.formula import Formula
from certree.interface.arrays import Float64, stack_columns


class LabelColumns(TreeModel):
    """What ensembles of classifiers share that take one target or several columns of classes."""

    classes_: Any
    n_classes_: Any

    score = score_classifier

    def _of_each(self, told: Callable[..., Any], *numbers: Float64, axis: int = 0) -> Any:
        """What is told by classes and their numbers, (n_lanes, n); of several targets in a list."""
        if not self._has_several_targets():
            return told(self.classes_, *numbers)
        parts = [self._output_groups.split(one, axis) for one in numbers]
        return [told(*of_one) for of_one in zip(self.classes_, *parts, strict=True)]

    def _in_columns(self, of_each: Any) -> NDArray[Any]:
        """Classes of rows as y has them, by those of each target."""
        return stack_columns(of_each) if self._has_several_targets() else of_each

    def _given_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """The same by codes, (n,) or (n, q)."""
        if not self._has_several_targets():
            known: NDArray[Any] = self.classes_[y]
            return known
        columns = zip(self.classes_, y.T, strict=True)
        return self._in_columns([known[codes] for known, codes in columns])

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        self._expect_one_target("an export")
        return super()._build_formula()  # type: ignore[safe-super] # that of the model
