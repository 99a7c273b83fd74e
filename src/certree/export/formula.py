"""The description of a fitted model from which all exports are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import Float64, list_classes
from certree.rows.calendar_parts import DatePart
from certree.rows.categories import UNKNOWN_CODE, Categories
from certree.rows.dates import DateColumn
from certree.tree import LEAF, Tree
from certree.weights.rule_numbers import RuleNumbers

Kind = Literal["tree", "forest", "boosted"]
Link = Literal["identity", "exp", "sorted", "logistic", "softmax", "shares"]


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A fitted model as trees, and the steps from their leaf values to a prediction.

    `_build_formula` of each estimator makes it, and all exports (ONNX, SQL, JSON, scikit-learn) are
    written from it. Each tree gives a row the values (n_outputs,) of the leaf that the row reaches.
    `kind` says how those of all trees are combined to the outputs of the row, and `link` how
    outputs become class probabilities or predicted numbers.

    Parameters
    ----------
    trees : sequence of Tree
        At least one tree, with values of shape (m, n_outputs) for its m nodes, which differ between
        trees. Only the values of leaves are used.
    rows : sequence of ndarray of shape (m,), or None
        For each tree, the number or total weight of the training rows in each node; None if the
        model does not keep them.
    kind : {"tree", "forest", "boosted"}
        Outputs are the leaf values of the only tree, the mean over the trees, or `start` plus the
        sum over the trees.
    link : {"identity", "exp", "sorted", "logistic", "softmax", "shares"}
        The function from the outputs of a row to its prediction. "identity": the outputs are the
        probabilities or numbers. "exp": e to the power of the outputs. "sorted": the outputs in
        ascending order. "logistic": the only output is the log odds of the second of two classes.
        "softmax": the softmax of the outputs. "shares": the outputs to the power of `power`,
        divided by their sum. A single output s of two classes then stands for the outputs 1 - s and
        s.
    start : ndarray of shape (n_outputs,)
        The constant to which boosted trees are added; 0 for the other kinds.
    classes : ndarray of shape (K,), or None
        The classes in the order of the probabilities; None if the target is numeric.
    feature_names : list of str, or None
        Names of the features; None if the table of the fit had none.
    categories : Categories or None
        Categories of the features by their codes; None if all features are numbers.
    power : float, default=1
        The exponent of the link "shares".
    dates : mapping of int to DateColumn, or None
        The features that hold dates, by index, which trees read as days; None: there are none.
    numbers : RuleNumbers or None
        The numbers of the rules, which are the leaves of the only tree; None: they have none.
    parts : sequence of DatePart
        Calendar parts of dates; they are the last features of the trees, and no columns of a table.
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
    dates: Mapping[int, DateColumn] | None = None
    numbers: RuleNumbers | None = None
    parts: Sequence[DatePart] = ()

    @property
    def float64_names(self) -> list[str]:
        """Names of the features whose values must not be rounded to float32, ordered by feature.

        If they were rounded, some rows could reach another leaf, as a threshold of the feature lies
        between a value and its float32 number. Empty if rows can be float32.
        """
        features = {int(j) for tree in self.trees for j in tree.float64_features}
        return [self.names[j] for j in sorted(features)]

    @property
    def n_features(self) -> int:
        """Number of features of a row, p, calendar parts of dates included."""
        return self.trees[0].n_features

    def get_part(self, feature: int) -> DatePart | None:
        """Return the calendar part that a feature holds, such as the month of a date.

        Parameters
        ----------
        feature : int
            Index of the feature.

        Returns
        -------
        DatePart or None
            Name of the part, and index, kind and time zone of the date feature; None if the feature
            is a column of the table.
        """
        k = feature - (self.n_features - len(self.parts))
        return self.parts[k] if k >= 0 else None

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a row, which is also the number of values of each leaf."""
        return len(self.start)

    @property
    def names(self) -> list[str]:
        """Names of the features, p strings: `feature_names`, or x0, x1, ... if these are None."""
        if self.feature_names is not None:
            return self.feature_names
        return [f"x{j}" for j in range(self.n_features)]

    @property
    def labels(self) -> list[Any]:
        """The classes as a list of K booleans, numbers or strings; empty if the target is numeric.

        Classes of another type, such as dates, become strings.
        """
        labels = [] if self.classes is None else list_classes(np.asarray(self.classes))
        return [k if isinstance(k, bool | int | float) else str(k) for k in labels]

    @property
    def has_second_class_only(self) -> bool:
        """Whether there are two classes but only one output: the score of the second class.

        With the link "logistic" it is the log odds of that class; with "shares" it is a fraction s,
        which stands for the outputs 1 - s and s of the two classes.
        """
        return self.classes is not None and len(self.classes) == 2 and self.n_outputs == 1

    @property
    def has_fractional_routing(self) -> bool:
        """Whether any node sends rows that lack its feature's value to both children.

        A fraction of each such row goes left, the rest goes right.
        """
        return any(tree.missing_both.any() for tree in self.trees)

    def compute_missing_left_fractions(self, number: int) -> Float64:
        """Return for each node of a tree which fraction of a row without value goes left.

        Parameters
        ----------
        number : int
            Index of the tree in `trees`.

        Returns
        -------
        ndarray of float64, shape (m,)
            For each node 1 if NaN goes to the left child, and 0 if it goes to the right one. Nodes
            that send it to both children have the fraction of their training rows that went left;
            0.5 if there are none. Not used at leaves.
        """
        tree = self.trees[number]
        fraction = tree.missing_left.astype(np.float64)
        both = np.flatnonzero(tree.missing_both)
        if len(both) and self.rows is not None:
            rows = self.rows[number] / 2  # The sum of two children may overflow.
            first, total = rows[tree.left[both]], rows[tree.left[both]] + rows[tree.left[both] + 1]
            fraction[both] = np.divide(first, total, out=np.full(len(both), 0.5), where=total > 0)
        return fraction

    def compute_unseen_left_fractions(self, number: int) -> Float64:
        """Return for each node of a tree which fraction of a row of an unknown category goes left.

        Parameters
        ----------
        number : int
            Index of the tree in `trees`.

        Returns
        -------
        ndarray of float64, shape (m,)
            For each node 1 (left) or 0 (right), if the model has a code for unknown categories;
            else the fraction of a row without value, as unknown categories count as missing. Only
            used at splits on categorical features.
        """
        if not self.has_code_of_unknown:
            return self.compute_missing_left_fractions(number)
        tree = self.trees[number]
        goes_left = np.where(
            tree.compares_numbers, tree.threshold >= UNKNOWN_CODE, tree.unseen_left
        )
        return goes_left.astype(np.float64)

    @property
    def has_code_of_unknown(self) -> bool:
        """Whether a category that does not occur in the fit is encoded as -1 (else as NaN)."""
        return self.categories is not None and not self.categories.unknown_are_missing

    def get_categories(self, feature: int) -> Sequence[Any] | None:
        """Return the categories of a feature in the order of their codes 0, 1, ...

        Parameters
        ----------
        feature : int
            Index of the feature.

        Returns
        -------
        sequence of str or float, or None
            None if the feature is numeric. Empty if no tree splits on the feature and the model
            comes from a file, which leaves out such categories.
        """
        if self.categories is None or self.categories.names[feature] is None:
            return None
        return () if feature in self.categories.digested else self.categories.names[feature]

    def get_left_mask(self, number: int, node: int) -> NDArray[np.bool_] | None:
        """Return which categories of a split's feature go to the left child.

        Parameters
        ----------
        number : int
            Index of the tree in `trees`.
        node : int
            Index of a node that is not a leaf.

        Returns
        -------
        ndarray of bool, shape (number of categories,), or None
            Whether the category of each code goes left; None if the feature of the split is
            numeric.
        """
        tree = self.trees[number]
        names = self.get_categories(int(tree.feature[node]))
        if names is None:
            return None
        codes, category_set = np.arange(len(names)), tree.category_set(node)
        if not len(category_set):
            return codes <= tree.threshold[node]
        return np.isin(codes, category_set) != tree.unseen_left[node]


def expect_no_parts(formula: Formula, what: str) -> None:
    """Raise ValueError if a model reads calendar parts of dates, which an export cannot compute.

    formula: the model. what: name of the export for the message, such as "to_sklearn()".
    """
    if formula.parts:
        columns = sorted({formula.names[one.feature] for one in formula.parts})
        raise ValueError(
            f"X must have numbers in place of dates for {what}, which cannot compute calendar parts, "
            f"got a model that reads parts of {', '.join(map(repr, columns))}: fit to numbers, such as "
            "days since a date and the month as columns of their own, or use to_onnx() or to_sql()"
        )


def check_int64(number: int) -> None:
    """Raise ValueError if a class, `number`, needs more than the 64 bits of ONNX and SQL."""
    if not -(2**63) <= number < 2**63:
        raise ValueError(
            f"classes must be integers of at most 64 bits for an export to ONNX or SQL, got {number}: "
            "turn the classes into strings, and fit again"
        )


def check_utf8(text: str) -> None:
    """Raise ValueError if `text`, a name or a class, has a surrogate that UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"names and classes must be encodable in UTF-8, got {text!r}: rename it and fit again"
        ) from None


def make_constant_tree(n_features: int, value: Float64) -> Tree:
    """Return a tree of a single leaf, for rows of `n_features` features.

    All rows reach the leaf. value: the values of the leaf, (1, n_outputs).
    """
    leaf, threshold = np.full(1, LEAF, dtype=np.int32), np.zeros(1)
    return Tree(leaf + 1, threshold, leaf, leaf + 2, n_features, value=value)


def normalize_with_labels(score: Float64, label: NDArray[np.integer]) -> Float64:
    """Return class scores divided by their sum, so that the label of each row is most probable.

    If rounding makes the label tie with an earlier class, its probability becomes the next larger
    floating-point number.

    Parameters
    ----------
    score : ndarray of float64, shape (m, K)
        Positive scores of the classes; the label has the largest.
    label : ndarray of int, shape (m,)
        Code of the predicted class of each row.

    Returns
    -------
    ndarray of float64, shape (m, K)
        Class probabilities, whose argmax is the label.
    """
    return break_ties_by_label(score / score.sum(axis=1, keepdims=True), label)


def break_ties_by_label(probabilities: NDArray[Any], label: NDArray[np.integer]) -> NDArray[Any]:
    """Return a copy of class probabilities in which the argmax of each row is its label.

    Rounding may have made the probability of the label equal to that of an earlier class, which
    argmax would return. The probability of the label then becomes the next larger floating-point
    number.

    Parameters
    ----------
    probabilities : ndarray of floats, shape (m, K)
        Class probabilities, of which that of the label is the largest, or tied with the largest.
    label : ndarray of int, shape (m,)
        Code of the predicted class of each row.

    Returns
    -------
    ndarray of shape (m, K)
        In the dtype of `probabilities`. Changed rows no longer have exactly the sum 1.
    """
    tied = np.flatnonzero(probabilities.argmax(axis=1) != label)
    untied = probabilities.copy()
    larger = np.nextafter(probabilities[tied].max(axis=1), probabilities.dtype.type(np.inf))
    untied[tied, label[tied]] = larger
    return untied


def extend_largest_threshold(threshold: ArrayLike) -> Float64:
    """Return thresholds as an array in which the largest float64 is replaced by infinity.

    A split at the largest float64 only separates missing values from all others. With an infinite
    threshold infinite values go left, too, in formats that do not clip them. threshold: a number,
    or an array of any shape, which is also the shape of the result.
    """
    return np.where(np.asarray(threshold) >= np.finfo(np.float64).max, np.inf, threshold)


def round_down_to_float32(threshold: Float64) -> NDArray[np.float32]:
    """Return thresholds rounded down to float32, which split float32 values as before.

    A float32 value is at most a float64 threshold if and only if it is at most the rounded one.
    Thresholds below the smallest float32 become -infinity. threshold: an array of any shape, which
    is also the shape of the result.
    """
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
        return np.where(nearest > threshold, np.nextafter(nearest, np.float32(-np.inf)), nearest)
