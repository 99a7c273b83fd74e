"""Rules: if a row satisfies these conditions, this is what the vote predicts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from certree.explain.path import Branch, Explainer
from certree.explain.values import prediction_in_words, set_in_words
from certree.interface.arrays import Float64
from certree.interface.extras import import_extra
from certree.interface.formatting import format_bound, format_confidence, format_count
from certree.interface.notebook import make_html_table
from certree.tree import LEAF, Tree
from certree.votes import DeferredVote, Vote

# Leaves whose outcomes are made at a time, as there may be many classes.
_BLOCK = 1 << 12

# What an outcome (K,) predicts: a class and its probability, or a number and None.
Told = Callable[[Float64], tuple[Any, float | None]]


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule asks of a feature.

    Parameters
    ----------
    feature : str
        Name of the feature.
    low, high : float
        A number must be larger than `low` and at most `high`.
    categories : tuple, or None
        Names of categories; None where the feature holds numbers.
    excluded : bool
        Whether the feature must be none of the categories, so that it may be unknown or missing; else
        it must be one of them.
    missing : bool
        Whether the value may be missing, too.
    """

    feature: str
    low: float = -np.inf
    high: float = np.inf
    categories: tuple[Any, ...] | None = None
    excluded: bool = False
    missing: bool = False

    def __str__(self) -> str:
        if self.categories is not None:
            side = "not in" if self.excluded else "in"
            words = f"{self.feature} {side} {set_in_words(self.categories)}"
        elif not self.low < self.high and self.missing:
            return f"{self.feature} is missing"
        elif self.low == -np.inf:
            words = f"{self.feature} <= {self.high:.6g}"
        elif self.high == np.inf:
            words = f"{self.feature} > {self.low:.6g}"
        else:
            words = f"{self.low:.6g} < {self.feature} <= {self.high:.6g}"
        return f"{words} (or missing)" if self.missing and not self.excluded else words


@dataclass(frozen=True, slots=True)
class Rule:
    """A cell of the tree, and what is predicted there.

    Parameters
    ----------
    conditions : tuple of Condition
        What a row must satisfy, one condition for each feature that is asked for.
    prediction : object
        Class or number. Of a cell whose inside is not shown the mean over its training rows of what
        the vote says of them.
    probability : float or None
        Probability of the class; None for numbers.
    rows : float
        Number (or weight) of the training rows in the cell.
    node : int
        Number of the cell's node in the tree.
    error_at_most : float or None
        Certified error of the fitted classifier in the cell, where the rows that certify its fit are at
        hand: the bound of ``conditional_guarantees("cells")``, which holds for all cells at once.
    """

    conditions: tuple[Condition, ...]
    prediction: Any
    probability: float | None
    rows: float
    node: int
    error_at_most: float | None = None

    @property
    def condition(self) -> str:
        """All conditions in words."""
        return " and ".join(map(str, self.conditions)) or "all rows"

    def __str__(self) -> str:
        said = prediction_in_words(self.prediction, self.probability, self.rows)
        if self.error_at_most is not None:
            said += f", error at most {format_bound(self.error_at_most)}"
        return f"if {self.condition} then {said}" if self.conditions else f"all rows: {said}"


@dataclass(frozen=True, slots=True, eq=False)
class Rules(Sequence[Rule]):
    """The rules of a tree, or of the part of it that is shown; every row satisfies one of them.

    A row that lacks a value which no training row lacked there belongs to rules of both sides, in
    part, and satisfies none of them.

    Parameters
    ----------
    rules : tuple of Rule
        The rules from left to right.
    delta : float or None
        Probability with which some of their errors may be higher than `error_at_most`; None: there are
        no bounds.
    """

    rules: tuple[Rule, ...]
    delta: float | None = None

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
        """Give the rules as a data frame.

        Returns
        -------
        pandas.DataFrame
            Columns "condition", "prediction", "probability" (of classes), "rows" and "error_at_most"
            (where it is certified).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        names = ["condition", "prediction", "probability", "rows"]
        if self.delta is not None:
            names.append("error_at_most")
        frame = {name: [getattr(rule, name) for rule in self] for name in names}
        if any(rule.probability is None for rule in self):
            del frame["probability"]
        return import_extra("pandas", "frames").DataFrame(frame)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        lines = []
        for rule in self:
            if rule.probability is None:
                said = [f"{rule.prediction:.6g}"]
            else:
                said = [str(rule.prediction), f"{rule.probability:.2f}"]
            lines.append([rule.condition, *said, format_count(rule.rows)])
            if rule.error_at_most is not None:
                lines[-1].append(format_bound(rule.error_at_most))
        head = ["if", "then", "probability", "rows"]
        if any(rule.probability is None for rule in self):
            head.remove("probability")
        if self.delta is not None:
            head.append(f"error at most, {format_confidence(self.delta)}, all rules at once")
        return make_html_table("", head, lines)


def rules_of(
    explainer: Explainer,
    ballot: Vote | DeferredVote,
    told: Told,
    max_leaves: int,
    certified: Mapping[int, Any] | None = None,
) -> Rules:
    """The rules of the part of a tree that matters most to the vote, with certificates of its nodes."""
    branches = _in_order(explainer.shown(max_leaves))
    said = _outcomes(explainer, ballot, branches)
    return Rules(
        tuple(
            Rule(
                _conditions(explainer, branch.cell.node),
                *told(own),
                branch.cell.rows,
                branch.cell.node,
                None if certified is None else certified[branch.cell.node].bound,
            )
            for branch, own in zip(branches, said, strict=True)
            if not branch.children
        ),
        None if certified is None else certified[branches[0].cell.node].delta,
    )


def text_of(
    explainer: Explainer,
    ballot: Vote | DeferredVote,
    told: Told,
    max_leaves: int,
    notes: dict[int, str],
) -> str:
    """The same part as indented lines; "..." marks cells that are split further."""
    branches = _in_order(explainer.shown(max_leaves))
    said = _outcomes(explainer, ballot, branches)
    indent = {branches[0].cell.node: 0}
    lines = []
    for branch, own in zip(branches, said, strict=True):
        cell, level = branch.cell, indent[branch.cell.node]
        indent |= {child.cell.node: level + 1 for child in branch.children}
        words = f"{cell.rule}: {prediction_in_words(*told(own), cell.rows)}"
        more = notes.get(cell.node, "") + (" ..." if branch.hidden else "")
        lines.append("|   " * max(level - 1, 0) + "|-- " * (level > 0) + words + more)
    return "\n".join(lines)


def _in_order(root: Branch) -> list[Branch]:
    """All branches, parents before their children, from left to right."""
    branches, stack = [], [root]
    while stack:
        branches.append(stack.pop())
        stack.extend(reversed(branches[-1].children))
    return branches


def _outcomes(
    explainer: Explainer, ballot: Vote | DeferredVote, branches: Sequence[Branch]
) -> Float64:
    """What the vote says of the training rows of each branch on average, (k, K)."""
    ends = np.array([branch.cell.node for branch in branches if not branch.children])
    said = dict(zip(ends, mean_outcomes(explainer.tree, ballot, explainer.rows, ends), strict=True))
    for branch in reversed(branches):
        if branch.children:
            left, right = (child.cell for child in branch.children)
            whole = left.rows + right.rows
            share = right.rows / whole if whole > 0 else 0.5
            said[branch.cell.node] = said[left.node] * (1 - share) + said[right.node] * share
    return np.array([said[branch.cell.node] for branch in branches])


def mean_outcomes(
    tree: Tree, ballot: Vote | DeferredVote, rows: Float64, cells: NDArray[np.integer]
) -> Float64:
    """Mean outcome in some disjoint cells, (k, K): that of the leaves inside, each by its rows."""
    nodes, own = cells, np.arange(len(cells))
    leaves, owners = [], []
    while len(nodes):
        ends = tree.left[nodes] == LEAF
        leaves.append(nodes[ends])
        owners.append(own[ends])
        left = tree.left[nodes[~ends]]
        nodes, own = np.concatenate([left, left + 1]), np.tile(own[~ends], 2)
    leaf, owner = np.concatenate(leaves), np.concatenate(owners)
    total, number = np.bincount(owner, rows[leaf]), np.bincount(owner)
    # Cells without rows have leaves all the same.
    weight = np.where(total[owner] > 0, rows[leaf], 1.0)
    weight /= np.where(total > 0, total, number)[owner]
    means: Any = 0.0
    for first in range(0, len(leaf), _BLOCK):
        part = slice(first, first + _BLOCK)
        places = owner[part], np.arange(len(leaf[part]))
        share = csr_array((weight[part], places), shape=(len(cells), len(leaf[part])))
        means = means + share @ ballot.outcomes(leaf[part])
    return np.asarray(means)


@dataclass(slots=True, eq=False)
class _Side:
    """What is left of a feature's values by the cuts of a path."""

    low: float = -np.inf
    high: float = np.inf
    included: set[int] | None = None
    excluded: frozenset[int] = frozenset()
    missing: bool = True

    def cut(self, tree: Tree, parent: int, is_left: bool) -> None:
        """Go on from a node to one of its children."""
        goes_here = bool(tree.missing_left[parent]) == is_left
        codes = tree.category_set(parent).tolist()
        if codes and goes_here:
            self.excluded |= set(codes)
        elif codes:
            self.included = set(codes) if self.included is None else self.included & set(codes)
        elif is_left:
            self.high = min(self.high, float(tree.threshold[parent]))
        else:
            self.low = max(self.low, float(tree.threshold[parent]))
        self.missing &= goes_here and not tree.missing_both[parent]

    def conditions(self, explainer: Explainer, feature: int) -> Iterator[Condition]:
        """The same in words: one condition, unless sets are of codes without names."""
        name, included = explainer.feature_names[feature], self.included
        known = explainer.categories[feature] if explainer.categories is not None else None
        missing = self.missing and explainer.says_missing
        if (self.low, self.high) != (-np.inf, np.inf):
            if known is None:
                yield Condition(name, self.low, self.high, missing=missing)
            else:
                between = {code for code in range(len(known)) if self.low < code <= self.high}
                included = between if included is None else included & between
        if included is not None:
            names = explainer.names(feature, sorted(included - self.excluded))
            yield Condition(name, categories=tuple(names), missing=missing)
        elif self.excluded:
            names = explainer.names(feature, sorted(self.excluded))
            yield Condition(name, categories=tuple(names), excluded=True, missing=missing)


def _conditions(explainer: Explainer, node: int) -> tuple[Condition, ...]:
    """What a row of a node satisfies, features as they are first asked for."""
    tree, sides = explainer.tree, dict[int, _Side]()
    path = explainer.nodes_to(node)
    for parent, child in pairwise(path):
        side = sides.setdefault(int(tree.feature[parent]), _Side())
        side.cut(tree, parent, child == tree.left[parent])
    return tuple(one for j, side in sides.items() for one in side.conditions(explainer, j))
