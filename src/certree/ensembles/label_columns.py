"""Mixin for classifiers with one target or several columns of classes."""

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
    """Mixin for ensemble classifiers with one target, or with several columns of classes.

    It handles each column by itself: `score`, class codes, and outputs. The constructor is that of
    the ensemble, whose `fit` sets the attributes.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of ndarray
        The classes; for several columns a list with those of each column.
    n_classes_ : int, or list of int
        Number of classes, of each column if there are several.
    """

    classes_: Any
    n_classes_: Any

    score = score_classifier

    def _map_targets(self, function: Callable[..., Any], *arrays: Float64, axis: int = 0) -> Any:
        """Apply a function to the classes and the outputs of each target.

        Parameters
        ----------
        function : callable
            ``function(classes, *outputs)`` with the classes of one target, (K,), and the slice of
            each array that holds its outputs.
        *arrays : ndarray
            Arrays with the outputs of all targets along `axis`, target after target: one output for
            a target of at most two classes, else one for each class.
        axis : int
            Axis of the outputs.

        Returns
        -------
        object
            The result of the function for one target; for several targets the list of their
            results.
        """
        if not self._has_several_targets():
            return function(self.classes_, *arrays)
        parts = [self._output_groups.split(array, axis) for array in arrays]
        return [function(*arguments) for arguments in zip(self.classes_, *parts, strict=True)]

    def _stack_targets(self, labels: Any) -> NDArray[Any]:
        """Stack the classes of several targets into columns.

        labels: list of q arrays (n,), which become (n, q); the array (n,) of one target is returned
        as it is.
        """
        return stack_columns(labels) if self._has_several_targets() else labels

    def _decode_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """Convert class codes to classes.

        y: class codes, (n,), or (n, q) for several columns. Return classes of `classes_` in the
        same shape.
        """
        if not self._has_several_targets():
            labels: NDArray[Any] = self.classes_[y]
            return labels
        columns = zip(self.classes_, y.T, strict=True)
        return self._stack_targets([classes[codes] for classes, codes in columns])

    def _build_formula(self) -> Formula:
        """Return a description of the fitted model for exports, a `Formula`.

        It holds the trees, how their leaf values are combined, the link (the function from the
        combined values to probabilities), and the classes. Raise ValueError for several columns of
        classes, which exports do not support.
        """
        check_is_fitted(self)
        self._expect_one_target("an export")
        return super()._build_formula()  # type: ignore[safe-super] # of the next class
