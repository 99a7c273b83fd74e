"""Rules of the form "if these conditions hold for a row, the vote predicts this class or number"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from certree.certificates.subsets.node_bounds import NodeBounds
from certree.explain.path import Explainer, ShownNode
from certree.explain.value_formatting import format_categories, format_prediction
from certree.interface.arrays import Float64
from certree.interface.extras import import_extra
from certree.interface.formatting import (
    format_bound,
    format_count,
    format_quantity,
    format_row_total,
)
from certree.interface.notebook import make_html_table
from certree.rows.calendar_parts import DateFormat
from certree.tree import ALL_LEFT, ALL_RIGHT, LEAF, Tree
from certree.votes import DeferredVote, Vote

# Ranges of category codes after splits that only separate missing values.
_SOME_CATEGORY = ((-np.inf, ALL_LEFT), (ALL_RIGHT, np.inf), (ALL_RIGHT, ALL_LEFT))
# Leaves whose outcomes are in memory at a time, as there may be many classes.
_LEAVES_PER_BLOCK = 1 << 12

# Takes an outcome of a vote, (K,). Returns a class and its probability, or a number and None.
PredictOutcome = Callable[[Float64], tuple[Any, float | None]]


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a rule on the value of one feature; `str` formats it as text.

    Parameters
    ----------
    feature : str
        Name of the feature.
    low, high : float
        The value must be larger than `low` and at most `high`. -inf and inf: there is no such
        limit. Not used if there are categories. Dates are numbers of days since 1 January 1970,
        UTC; time spans are numbers of days.
    categories : tuple, or None
        Names of categories; None if the condition is a range of numbers. Empty: the condition is
        only on whether the value is missing.
    excluded : bool
        True: the value must be none of the categories; it may be a category that the fit did not
        have. False: it must be one of them. If `categories` is empty, True: the value must not be
        missing; False, with `missing` True: it must be missing.
    missing : bool
        Whether the value may also be missing.
    dates : DateFormat or None
        How to write limits as dates; None: the feature holds no dates.
    """

    feature: str
    low: float = -np.inf
    high: float = np.inf
    categories: tuple[Any, ...] | None = None
    excluded: bool = False
    missing: bool = False
    dates: DateFormat | None = None

    def __str__(self) -> str:
        if self.categories == () and (self.excluded or self.missing):
            return f"{self.feature} is {'not ' if self.excluded else ''}missing"
        low, high = map(self._format_limit, (self.low, self.high))
        if self.categories is not None:
            relation = "not in" if self.excluded else "in"
            text = f"{self.feature} {relation} {format_categories(self.categories)}"
        elif not self.low < self.high and self.missing:
            return f"{self.feature} is missing"
        elif self.low == -np.inf:
            text = f"{self.feature} <= {high}"
        elif self.high == np.inf:
            text = f"{self.feature} > {low}"
        else:
            text = f"{low} < {self.feature} <= {high}"
        return f"{text} (or missing)" if self.missing else text

    def _format_limit(self, limit: float) -> str:
        return f"{limit:.6g}" if self.dates is None else self.dates.format(limit)


@dataclass(frozen=True, slots=True)
class Rule:
    """A node of the tree as a rule: conditions on features, and the prediction for such rows.

    Parameters
    ----------
    conditions : tuple of Condition
        Conditions that a row must satisfy, usually one for each feature on the path to the node.
    prediction : object
        Class or number that the model predicts for rows in the node. If the node has children that
        are not shown, it comes from the mean of the model's predictions over its training rows.
    probability : float or None
        Probability of the predicted class, or of `pos_label`; None for numbers.
    training_rows : float
        Number (or weight) of the training rows in the node.
    node : int
        Number of the node in the tree.
    error_at_most : float or None
        Upper bound on the error of the fitted classifier on rows in the node, computed from its
        calibration set by ``conditional_guarantees``: that of the family "leaves" (a bound for each
        leaf) if rules have numbers, else of "cells" (for each node). With probability 1 - `delta`
        (see `Rules`) it holds for all rules at once. None: there is no bound.
    pos_label : object or None
        The positive class, whose probability the rule has; None: it is that of the predicted class.
    number : str or None
        Number of the rule among all leaves of the tree, from left to right, such as "R3"; "R3-R5"
        if the node stands for the rules R3, R4 and R5, and `error_at_most` is the largest of their
        bounds. None: rules have no numbers, as the tree has more than 64 leaves or its prunings
        vote.
    calibration_rows : int or None
        Number of calibration rows in the node; None: all rows train, or it is not known.
    is_certified : bool
        Whether the model has a certificate, so that not all of its rows train.
    """

    conditions: tuple[Condition, ...]
    prediction: Any
    probability: float | None
    training_rows: float
    node: int
    error_at_most: float | None = None
    pos_label: Any = None
    number: str | None = None
    calibration_rows: int | None = None
    is_certified: bool = False

    @property
    def condition(self) -> str:
        """All conditions of this rule as text, joined by " and "; "all rows" if there are none."""
        return join_conditions(self.conditions)

    def __str__(self) -> str:
        rows = _format_rows(self.training_rows, self.calibration_rows, self.is_certified)
        outcome = format_prediction(self.prediction, self.probability, rows, self.pos_label)
        outcome += _format_bound(self.error_at_most)
        number = "" if self.number is None else f"{self.number}: "
        if self.conditions:
            return f"{number}if {self.condition} then {outcome}"
        return f"{number}all rows: {outcome}"


def _format_rows(training_rows: float, calibration_rows: int | None, is_certified: bool) -> str:
    """Format the rows behind a prediction: "12 rows", or "12 training rows, 9 calibration rows".

    training_rows: number, or weight, of the training rows; calibration_rows: number of the
    calibration rows, None: not known; is_certified: False if all rows train.
    """
    if not is_certified:
        return format_row_total(training_rows)
    trained = format_row_total(training_rows, "training row")
    if calibration_rows is None:
        return trained
    return f"{trained}, {format_quantity(calibration_rows, 'calibration row')}"


def _format_bound(bound: float | None) -> str:
    """Format a bound on the error at the end of a line: ", error at most 12.4 %"; "" for None."""
    return "" if bound is None else f", error at most {format_bound(bound)}"


@dataclass(frozen=True, slots=True, eq=False)
class Rules(Sequence[Rule]):
    """The rules of a tree, or of a subtree of it; every row satisfies exactly one rule.

    The exception is a row that lacks a value at a split where no training row lacked it. Its
    prediction is a mean over both children, and it satisfies no rule.

    Parameters
    ----------
    rules : tuple of Rule
        The rules of the leaves, from left to right.
    delta : float or None
        Probability with which some rule's error may exceed `error_at_most`; None: there are no
        bounds.
    title : str
        The line above printed rules of a certified tree: the probability with which all bounds hold
        together, or why there are none. "": the tree has no certificate.
    """

    rules: tuple[Rule, ...]
    delta: float | None = None
    title: str = ""

    def __len__(self) -> int:
        return len(self.rules)

    @overload
    def __getitem__(self, place: int) -> Rule: ...
    @overload
    def __getitem__(self, place: slice) -> Rules: ...
    def __getitem__(self, place: int | slice) -> Rule | Rules:
        if isinstance(place, slice):
            return replace(self, rules=self.rules[place])
        return self.rules[place]

    def to_frame(self) -> Any:
        """Convert the rules to a data frame with a line for each rule.

        Returns
        -------
        pandas.DataFrame
            Columns "number" (if rules have numbers), "condition", "prediction", "probability" (only
            for classes), "training_rows", "calibration_rows" (only if known) and "error_at_most"
            (only if there are bounds).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        names = ["condition", "prediction", "probability", "training_rows"]
        if self._counts_calibration_rows:
            names.append("calibration_rows")
        if self.delta is not None:
            names.append("error_at_most")
        if self._has_numbers:
            names.insert(0, "number")
        frame = {name: [getattr(rule, name) for rule in self] for name in names}
        if any(rule.probability is None for rule in self):
            del frame["probability"]
        return import_extra("pandas", "frames").DataFrame(frame)

    @property
    def _has_numbers(self) -> bool:
        """Whether the rules have numbers, such as "R3"; either all rules have one or none."""
        return any(rule.number is not None for rule in self)

    @property
    def _counts_calibration_rows(self) -> bool:
        """Whether the number of calibration rows in the rules is known, for all rules or for none."""
        return any(rule.calibration_rows is not None for rule in self)

    def __str__(self) -> str:
        return "\n".join([*([self.title] if self.title else []), *map(str, self)])

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the head and the rows of a table of the rules, as lists of str.

        The columns are the number of the rule (if rules have numbers), its conditions, prediction
        and probability (only for classes), its number of training rows and, if known, its number of
        calibration rows and the bound on its error.
        """
        # All rules have the same positive class.
        named = [rule.pos_label for rule in self[:1] if rule.pos_label is not None]
        is_numeric = any(rule.probability is None for rule in self)
        head = ["rule"] if self._has_numbers else []
        head += ["if", "then"]
        if not is_numeric:
            head.append(" of ".join(["probability", *map(str, named)]))
        head.append("training rows" if self.title else "rows")
        if self._counts_calibration_rows:
            head.append("calibration rows")
        if self.delta is not None:
            head.append("error at most")
        return head, [self._make_line(rule, is_numeric) for rule in self]

    def _make_line(self, rule: Rule, is_numeric: bool) -> list[str]:
        """Return the cells of one rule in the printed table, a list of str.

        rule: the rule; is_numeric: whether it predicts a number instead of a class.
        """
        line = [] if rule.number is None else [rule.number]
        line.append(rule.condition)
        line.append(f"{rule.prediction:.6g}" if is_numeric else str(rule.prediction))
        if rule.probability is not None:
            line.append(f"{rule.probability:.2f}")
        line.append(format_count(rule.training_rows))
        if rule.calibration_rows is not None:
            line.append(format_count(rule.calibration_rows))
        if rule.error_at_most is not None:
            line.append(format_bound(rule.error_at_most))
        return line

    def _repr_html_(self) -> str:
        return make_html_table(self.title, *self.table())


def extract_rules(
    explainer: Explainer,
    vote: Vote | DeferredVote,
    predict_outcome: PredictOutcome,
    max_leaves: int,
    bounds: NodeBounds | None = None,
    pos_label: Any = None,
) -> Rules:
    """Return the rules of the leaves of the most important subtree, from left to right.

    Parameters
    ----------
    explainer : Explainer
        The tree, with the data that describe its nodes.
    vote : Vote or DeferredVote
        The prediction of the model (the mean over the tree's prunings, which are the tree with some
        nodes turned into leaves) in each leaf of the tree, K numbers: class probabilities, or a
        mean. Its values at splits are not used.
    predict_outcome : callable
        Takes K such numbers, averaged over leaves. Returns a class and its probability, or a number
        and None.
    max_leaves : int
        Largest number of rules. `Explainer.select_subtree` chooses the subtree by training rows and
        posterior probabilities of splits.
    bounds : NodeBounds or None
        The upper bounds on the error of a certified model in the nodes of the tree, or why there
        are none. None: the model is not certified.
    pos_label : object or None
        The class whose probability `predict_outcome` returns; None: it is the predicted class.

    Returns
    -------
    Rules
        With the delta of the bounds, if any.
    """
    found = bounds or NodeBounds(None)
    shown = _list_nodes(explainer.select_subtree(max_leaves))
    outcomes = _compute_shown_outcomes(explainer, vote, shown)
    return Rules(
        tuple(
            Rule(
                _collect_conditions(explainer, node.cell.node),
                *predict_outcome(outcome),
                node.cell.rows,
                node.cell.node,
                found.get_bound(node.cell.node),
                pos_label,
                node.cell.number,
                found.count_rows(node.cell.node),
                bounds is not None,
            )
            for node, outcome in zip(shown, outcomes, strict=True)
            if not node.children
        ),
        found.delta,
        "" if bounds is None else bounds.title,
    )


def format_tree(
    explainer: Explainer,
    vote: Vote | DeferredVote,
    predict_outcome: PredictOutcome,
    max_leaves: int,
    notes: dict[int, str],
    bounds: NodeBounds | None = None,
) -> str:
    """Format the most important subtree as indented lines, one for each node.

    Parameters
    ----------
    explainer : Explainer
        The tree, with the data that describe its nodes.
    vote : Vote or DeferredVote
        The prediction of the model (the mean over the tree's prunings, which are the tree with some
        nodes turned into leaves) in each leaf of the tree, K numbers: class probabilities, or a
        mean. Its values at splits are not used.
    predict_outcome : callable
        Takes K such numbers, averaged over leaves. Returns a class and its probability, or a number
        and None.
    max_leaves : int
        Largest number of leaves of the subtree, which `Explainer.select_subtree` chooses.
    notes : dict
        Text that is appended to the lines of nodes, by node number.
    bounds : NodeBounds or None
        The upper bounds on the error of a certified model in the nodes of the tree, or why there
        are none. None: the model is not certified.

    Returns
    -------
    str
        A line has the test that leads to the node, the prediction and the training rows; " ..."
        marks nodes whose children are not shown. Lines of leaves begin with the number of the rule,
        and end with the bound on its error. The title of the bounds is a line above the tree.
    """
    found = bounds or NodeBounds(None)
    shown = _list_nodes(explainer.select_subtree(max_leaves))
    outcomes = _compute_shown_outcomes(explainer, vote, shown)
    depths = {shown[0].cell.node: 0}
    lines = [] if bounds is None else [bounds.title]
    for node, outcome in zip(shown, outcomes, strict=True):
        cell, depth = node.cell, depths[node.cell.node]
        depths |= {child.cell.node: depth + 1 for child in node.children}
        rows = _format_rows(cell.rows, found.count_rows(cell.node), bounds is not None)
        text = f"{cell.rule}: {format_prediction(*predict_outcome(outcome), rows)}"
        if not node.children:
            number = "" if cell.number is None else f"{cell.number}: "
            text = f"{number}{text}{_format_bound(found.get_bound(cell.node))}"
        note = notes.get(cell.node, "") + (" ..." if node.has_hidden_children else "")
        lines.append("|   " * max(depth - 1, 0) + "|-- " * (depth > 0) + text + note)
    return "\n".join(lines)


def describe_rules(
    explainer: Explainer, leaves: NDArray[np.integer], is_split: NDArray[np.bool_]
) -> list[str | None]:
    """Describe the rule that each row satisfies, such as "R3: age > 40 and job in {clerk}".

    Parameters
    ----------
    explainer : Explainer
        The tree, with the numbers of its rules.
    leaves : ndarray of int, shape (n,)
        Node number of the leaf that each row reaches.
    is_split : ndarray of bool, shape (n,)
        Whether the row goes to both children of a node, so that it satisfies no rule.

    Returns
    -------
    list of (str or None)
        An entry for each row; None for a row that satisfies no rule.
    """
    numbers = explainer.numbers
    assert numbers is not None  # The caller describes rules that have numbers.
    texts = {
        leaf: f"{numbers.get_name(leaf)}: {join_conditions(_collect_conditions(explainer, leaf))}"
        for leaf in np.unique(leaves).tolist()
    }
    pairs = zip(leaves.tolist(), is_split.tolist(), strict=True)
    return [None if both else texts[leaf] for leaf, both in pairs]


def join_conditions(conditions: Sequence[Condition]) -> str:
    """Return conditions as text, joined by " and "; "all rows" if there are none."""
    return " and ".join(map(str, conditions)) or "all rows"


def _list_nodes(root: ShownNode) -> list[ShownNode]:
    """Return all nodes of the subtree below and including `root`.

    Each node is followed by those below its left child, then by those below its right child.
    """
    nodes, stack = [], [root]
    while stack:
        nodes.append(stack.pop())
        stack.extend(reversed(nodes[-1].children))
    return nodes


def _compute_shown_outcomes(
    explainer: Explainer, vote: Vote | DeferredVote, shown: Sequence[ShownNode]
) -> Float64:
    """Compute the model's mean prediction over the training rows of each node of a printed subtree.

    Parameters
    ----------
    explainer : Explainer
        The tree.
    vote : Vote or DeferredVote
        The prediction of the model (the mean over the tree's prunings, which are the tree with some
        nodes turned into leaves) in each leaf of the tree, K numbers: class probabilities, or a
        mean. Its values at splits are not used.
    shown : sequence of ShownNode
        All k nodes of the subtree, parents before their children.

    Returns
    -------
    ndarray of float64, shape (k, K)
        Mean prediction of each node, in the order of `shown`. If neither child of a node has
        training rows, both children have the weight 1/2.
    """
    ends = np.array([node.cell.node for node in shown if not node.children])
    means = compute_mean_outcomes(explainer.tree, vote, explainer.rows_per_node, ends)
    outcomes = dict(zip(ends, means, strict=True))
    for node in reversed(shown):
        if node.children:
            left, right = (child.cell for child in node.children)
            total = left.rows + right.rows
            fraction = right.rows / total if total > 0 else 0.5
            mean = outcomes[left.node] * (1 - fraction) + outcomes[right.node] * fraction
            outcomes[node.cell.node] = mean
    return np.array([outcomes[node.cell.node] for node in shown])


def compute_mean_outcomes(
    tree: Tree,
    vote: Vote | DeferredVote,
    rows_per_node: Float64,
    subtree_roots: NDArray[np.integer],
) -> Float64:
    """Average predictions over the leaves below each of k nodes, by their training rows.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    vote : Vote or DeferredVote
        The prediction of the model (the mean over the tree's prunings, which are the tree with some
        nodes turned into leaves) in each leaf of the tree, K numbers: class probabilities, or a
        mean. Its values at splits are not used.
    rows_per_node : ndarray of float64, shape (m,)
        Number, or total weight, of the training rows in each node.
    subtree_roots : ndarray of int, shape (k,)
        Numbers of the nodes, of which none may be below another.

    Returns
    -------
    ndarray of float64, shape (k, K)
        Mean prediction of each node. The leaves below a node without rows have equal weights.
    """
    nodes, root = subtree_roots, np.arange(len(subtree_roots))
    leaves, roots = [], []
    while len(nodes):
        is_leaf = tree.left[nodes] == LEAF
        leaves.append(nodes[is_leaf])
        roots.append(root[is_leaf])
        left = tree.left[nodes[~is_leaf]]
        nodes, root = np.concatenate([left, left + 1]), np.tile(root[~is_leaf], 2)
    leaf, root = np.concatenate(leaves), np.concatenate(roots)
    n_rows, n_leaves = np.bincount(root, rows_per_node[leaf]), np.bincount(root)
    weight = np.where(n_rows[root] > 0, rows_per_node[leaf], 1.0)
    weight /= np.where(n_rows > 0, n_rows, n_leaves)[root]
    means: Any = 0.0
    for first in range(0, len(leaf), _LEAVES_PER_BLOCK):
        block = slice(first, first + _LEAVES_PER_BLOCK)
        places = root[block], np.arange(len(leaf[block]))
        weights = csr_array((weight[block], places), shape=(len(subtree_roots), len(leaf[block])))
        means = means + weights @ vote.outcomes(leaf[block])
    return np.asarray(means)


@dataclass(slots=True, eq=False)
class _FeatureRange:
    """The values of one feature that pass all splits on the first part of a path from the root.

    Attributes
    ----------
    low, high : float
        A number must be larger than `low` and at most `high`; by default -inf and inf. A new object
        without arguments lets all values pass; `narrow` changes it.
    included : set of int, or None
        Category codes of which the value must be one; None: there is no such demand.
    excluded : frozenset of int
        Category codes of which the value must be none.
    missing : bool
        Whether a missing value passes all splits, and always goes to one child only.
    """

    low: float = -np.inf
    high: float = np.inf
    included: set[int] | None = None
    excluded: frozenset[int] = frozenset()
    missing: bool = True

    def narrow(self, tree: Tree, parent: int, is_left: bool) -> None:
        """Keep only the values that a split on this feature sends to one of its children.

        Change this object. tree: the tree with the split; parent: number of the node that splits;
        is_left: whether the child is the left one. A threshold narrows `low` or `high`. The
        categories of a split are added to `excluded` if unseen categories go to this child, else
        only they stay in `included`. Missing values stay only if all of them go to this child.
        """
        takes_missing = bool(tree.missing_left[parent]) == is_left
        codes = tree.category_set(parent).tolist()
        if codes and bool(tree.unseen_left[parent]) == is_left:
            self.excluded |= set(codes)
        elif codes:
            self.included = set(codes) if self.included is None else self.included & set(codes)
        elif is_left:
            self.high = min(self.high, float(tree.threshold[parent]))
        else:
            self.low = max(self.low, float(tree.threshold[parent]))
        self.missing &= takes_missing and not tree.missing_both[parent]

    def to_conditions(self, explainer: Explainer, feature: int) -> Iterator[Condition]:
        """Yield the conditions that describe these values, for rule texts.

        Yield nothing if all values pass, one condition for a range or a set of categories, and both
        for a feature with a range and a set of codes without names. A range of codes becomes the
        set of the categories in it, if they have names. explainer: gives the names of features and
        categories, and whether conditions state that a value may be missing (`shows_missing`);
        feature: number of the feature.
        """
        name, included = explainer.feature_names[feature], self.included
        categories = explainer.categories[feature] if explainer.categories is not None else None
        missing = self.missing and explainer.shows_missing
        is_present = False
        if (self.low, self.high) != (-np.inf, np.inf):
            if categories is None:
                dates = None if explainer.dates is None else explainer.dates.get(feature)
                yield Condition(name, self.low, self.high, missing=missing, dates=dates)
            elif self.low == ALL_LEFT or self.high == ALL_RIGHT:
                yield Condition(name, categories=(), missing=self.missing)
                return
            elif (self.low, self.high) in _SOME_CATEGORY:
                is_present = not self.missing
            else:
                between = {code for code in range(len(categories)) if self.low < code <= self.high}
                included = between if included is None else included & between
        if included is not None:
            names = explainer.get_category_names(feature, sorted(included - self.excluded))
            yield Condition(name, categories=tuple(names), missing=missing)
        elif self.excluded:
            names = explainer.get_category_names(feature, sorted(self.excluded))
            yield Condition(name, categories=tuple(names), excluded=True, missing=missing)
        elif is_present:
            yield Condition(name, categories=(), excluded=True)


def _collect_conditions(explainer: Explainer, node: int) -> tuple[Condition, ...]:
    """Return the conditions that a row satisfies if it reaches a node, usually one for each feature.

    node: number of the node in the explainer's tree. Features are in the order of their first
    splits on the path from the root.
    """
    tree, ranges = explainer.tree, dict[int, _FeatureRange]()
    for parent, child in pairwise(explainer.find_path(node)):
        feature_range = ranges.setdefault(int(tree.feature[parent]), _FeatureRange())
        feature_range.narrow(tree, parent, child == tree.left[parent])
    return tuple(
        condition
        for feature, feature_range in ranges.items()
        for condition in feature_range.to_conditions(explainer, feature)
    )
