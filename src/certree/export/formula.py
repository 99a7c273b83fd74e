"""What a fitted model computes, in the form that all exports start from."""

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
    """Trees whose leaves are added up, and a link from the sums to the prediction.

    Parameters
    ----------
    trees : sequence of Tree
        Trees, one at least; of the values of their nodes only those of leaves count.
    rows : sequence of ndarray of shape (m,), or None
        Training rows in the nodes of each tree; None where a model does not know them.
    kind : {"tree", "forest", "boosted"}
        What the sum over the trees is: the value of the only one, their mean, or what is added to
        `start`.
    link : {"identity", "exp", "sorted", "logistic", "softmax", "shares"}
        From the outputs to the prediction. "sorted" lets them ascend. "shares" raises them to `power`
        and divides them by their sum. Where two classes have one output, "logistic" and "shares" take
        it for the second.
    start : ndarray of shape (n_outputs,)
        What boosted trees are added to.
    power : float
        See `link`.
    classes : ndarray of shape (K,), or None
        The classes; None for numbers.
    feature_names : list of str, or None
        Names of the features, if the model knows them.
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
        """Find the names of the features that must be float64; see `Trees.float64_features`."""
        found = {int(j) for tree in self.trees for j in tree.float64_features}
        return [self.names[j] for j in sorted(found)]

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
        """Names of the features, x0, x1, ... where the model knows none."""
        if self.feature_names is not None:
            return self.feature_names
        return [f"x{j}" for j in range(self.n_features)]

    @property
    def labels(self) -> list[Any]:
        """The classes as booleans, numbers or strings; none where numbers are predicted."""
        classes = np.zeros(0) if self.classes is None else np.asarray(self.classes)
        # Dates of nanoseconds would be numbers otherwise.
        given = [*classes] if classes.dtype.kind in "mM" else classes.tolist()
        return [one if isinstance(one, bool | int | float) else str(one) for one in given]

    @property
    def says_second(self) -> bool:
        """Whether the only output is that of the second of two classes."""
        return self.classes is not None and len(self.classes) == 2 and self.n_outputs == 1

    @property
    def sends_both_ways(self) -> bool:
        """Whether rows that lack a value may go both ways."""
        return any(tree.missing_both.any() for tree in self.trees)

    def missing_shares(self, number: int) -> Float64:
        """Share of a row that lacks the value which goes to the left of each node of a tree, (m,)."""
        tree = self.trees[number]
        share = tree.missing_left.astype(np.float64)
        both = np.flatnonzero(tree.missing_both)
        if len(both) and self.rows is not None:
            rows = self.rows[number] / 2  # the sum of both may be beyond float64
            first, whole = rows[tree.left[both]], rows[tree.left[both]] + rows[tree.left[both] + 1]
            share[both] = np.divide(first, whole, out=np.full(len(both), 0.5), where=whole > 0)
        return share

    def categories_of(self, feature: int) -> Sequence[Any] | None:
        """Categories of a feature by code; None for a feature of numbers.

        Of a feature that no tree compares a model file may have left out the texts: it has none.
        """
        if self.categories is None or self.categories.names[feature] is None:
            return None
        return () if feature in self.categories.digested else self.categories.names[feature]

    def goes_left(self, number: int, node: int) -> NDArray[np.bool_] | None:
        """Whether each category goes to the left of a node; None where the feature has numbers."""
        tree = self.trees[number]
        names = self.categories_of(int(tree.feature[node]))
        if names is None:
            return None
        codes, of_set = np.arange(len(names)), tree.category_set(node)
        if not len(of_set):
            return codes <= tree.threshold[node]
        return np.isin(codes, of_set) != tree.missing_left[node]


def expect_int64(number: int) -> None:
    """Refuse whole numbers that databases and graphs have no place for."""
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"classes must be whole numbers of 64 bits, got {number}: fit to strings")


def expect_utf8(text: str) -> None:
    """Refuse halves of characters, which files and databases have no bytes for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"names and classes must be text of UTF-8, got {text!r}") from None


def constant_tree(n_features: int, value: Float64) -> Tree:
    """A tree of a single leaf, which says (1, n_outputs)."""
    leaf, nothing = np.full(1, LEAF, dtype=np.int32), np.zeros(1)
    return Tree(leaf + 1, nothing, leaf, leaf + 2, n_features, value=value)


def shares_with_labels(score: Float64, label: NDArray[np.integer]) -> Float64:
    """Scores (m, K) divided by their sums, of which the first largest is that of the label."""
    return with_labels(score / score.sum(axis=1, keepdims=True), label)


def with_labels(shares: NDArray[Any], label: NDArray[np.integer]) -> NDArray[Any]:
    """Shares of which the first largest is that of the label.

    What rounding has made a tie of is told apart again: the label's share is the next larger number.
    """
    tied = np.flatnonzero(shares.argmax(axis=1) != label)
    moved = shares.copy()
    moved[tied, label[tied]] = np.nextafter(shares[tied].max(axis=1), shares.dtype.type(np.inf))
    return moved


def compared(threshold: Any) -> Float64:
    """What values are compared with: infinite ones count as the largest number, and are no larger."""
    return np.where(threshold >= np.finfo(np.float64).max, np.inf, threshold)


def rounded_down(threshold: Float64) -> NDArray[np.float32]:
    """The largest float32 numbers that are no larger: a float32 x is at most these or neither."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
        return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)
