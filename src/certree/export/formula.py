"""The description of a fitted model from which all exports are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.rows.categories import Categories
from certree.tree import LEAF, Tree

Kind = Literal["tree", "forest", "boosted"]
Link = Literal["identity", "exp", "sorted", "logistic", "softmax", "shares"]


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A model as trees, whose leaf values are combined to outputs, and a link to predictions.

    Parameters
    ----------
    trees : sequence of Tree
        At least one tree. Only the values of leaves are used.
    rows : sequence of ndarray of shape (m,), or None
        Training rows in the nodes of each tree; None if the model does not keep them.
    kind : {"tree", "forest", "boosted"}
        How outputs are made of leaf values: the value of the only tree, the mean over the trees, or
        `start` plus the sum over the trees.
    link : {"identity", "exp", "sorted", "logistic", "softmax", "shares"}
        The function from outputs to predictions. "sorted" sorts them in ascending order. "shares"
        raises them to `power` and divides them by their sum. If two classes have one output,
        "logistic" and "shares" use it for the second class.
    start : ndarray of shape (n_outputs,)
        The constant to which boosted trees are added.
    power : float
        See `link`.
    classes : ndarray of shape (K,), or None
        The classes; None if the target is numeric.
    feature_names : list of str, or None
        Names of the features, if the model has them.
    categories : Categories or None
        Categories of the features; None if all are numbers.
    """

    trees: Sequence[Tree]
    rows: Sequence[Float64] | None
    kind: Kind
    link: Link
    start: Float64
    classes: NDArray[Any] | None
    feature_names: list[str] | None
    categories: Categories | None
    power: float = 1.0

    @property
    def float64_names(self) -> list[str]:
        """Names of the features that must be float64; see `Trees.float64_features`."""
        features = {int(j) for tree in self.trees for j in tree.float64_features}
        return [self.names[j] for j in sorted(features)]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.trees[0].n_features

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.start)

    @property
    def names(self) -> list[str]:
        """Names of the features; x0, x1, ... if the model has none."""
        if self.feature_names is not None:
            return self.feature_names
        return [f"x{j}" for j in range(self.n_features)]

    @property
    def labels(self) -> list[Any]:
        """The classes as booleans, numbers or strings; empty if the target is numeric."""
        classes = np.zeros(0) if self.classes is None else np.asarray(self.classes)
        # tolist() makes numbers of dates in nanoseconds.
        labels = [*classes] if classes.dtype.kind in "mM" else classes.tolist()
        return [k if isinstance(k, bool | int | float) else str(k) for k in labels]

    @property
    def has_second_class_only(self) -> bool:
        """Whether there are two classes, and only the second has an output."""
        return self.classes is not None and len(self.classes) == 2 and self.n_outputs == 1

    @property
    def has_fractional_routing(self) -> bool:
        """Whether some node sends rows that lack a value to both children."""
        return any(tree.missing_both.any() for tree in self.trees)

    def compute_missing_left_fractions(self, number: int) -> Float64:
        """Return, for each node of a tree, the fraction of a row without value that goes left, (m,)."""
        tree = self.trees[number]
        fraction = tree.missing_left.astype(np.float64)
        both = np.flatnonzero(tree.missing_both)
        if len(both) and self.rows is not None:
            rows = self.rows[number] / 2  # The sum of two children may overflow.
            first, total = rows[tree.left[both]], rows[tree.left[both]] + rows[tree.left[both] + 1]
            fraction[both] = np.divide(first, total, out=np.full(len(both), 0.5), where=total > 0)
        return fraction

    def get_categories(self, feature: int) -> Sequence[Any] | None:
        """Return the categories of a feature by code; None if the feature is numeric.

        They are empty if the model file has left them out, as no tree splits on the feature.
        """
        if self.categories is None or self.categories.names[feature] is None:
            return None
        return () if feature in self.categories.digested else self.categories.names[feature]

    def get_left_mask(self, number: int, node: int) -> NDArray[np.bool_] | None:
        """Return whether each category goes left at a node; None if the feature is numeric."""
        tree = self.trees[number]
        names = self.get_categories(int(tree.feature[node]))
        if names is None:
            return None
        codes, category_set = np.arange(len(names)), tree.category_set(node)
        if not len(category_set):
            return codes <= tree.threshold[node]
        return np.isin(codes, category_set) != tree.missing_left[node]


def check_int64(number: int) -> None:
    """Raise ValueError if an integer class has more than 64 bits, as databases and ONNX have."""
    if not -(2**63) <= number < 2**63:
        raise ValueError(
            f"classes must be integers of at most 64 bits, got {number}: fit to strings instead"
        )


def check_utf8(text: str) -> None:
    """Raise ValueError if a text has no encoding in UTF-8, as unpaired surrogates have none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"names and classes must be valid Unicode for UTF-8, got {text!r}: rename it and fit again"
        ) from None


def make_constant_tree(n_features: int, value: Float64) -> Tree:
    """Make a tree of a single leaf with this value, (1, n_outputs)."""
    leaf, threshold = np.full(1, LEAF, dtype=np.int32), np.zeros(1)
    return Tree(leaf + 1, threshold, leaf, leaf + 2, n_features, value=value)


def normalize_with_labels(score: Float64, label: NDArray[np.integer]) -> Float64:
    """Divide scores (m, K) by their sums, and let `break_ties_by_label` choose among equal ones."""
    return break_ties_by_label(score / score.sum(axis=1, keepdims=True), label)


def break_ties_by_label(probabilities: NDArray[Any], label: NDArray[np.integer]) -> NDArray[Any]:
    """Return probabilities (m, K) whose argmax is the label, (m,).

    Rounding may have made the label's probability equal to that of a class before it. It then becomes
    the next larger floating-point number.
    """
    tied = np.flatnonzero(probabilities.argmax(axis=1) != label)
    untied = probabilities.copy()
    larger = np.nextafter(probabilities[tied].max(axis=1), probabilities.dtype.type(np.inf))
    untied[tied, label[tied]] = larger
    return untied


def extend_largest_threshold(threshold: Any) -> Float64:
    """Replace a threshold at the largest float64 by infinity, so that infinite values go left."""
    return np.where(threshold >= np.finfo(np.float64).max, np.inf, threshold)


def round_down_to_float32(threshold: Float64) -> NDArray[np.float32]:
    """Round thresholds down to float32; a float32 value is on the same side of both."""
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
        return np.where(nearest > threshold, np.nextafter(nearest, np.float32(-np.inf)), nearest)
