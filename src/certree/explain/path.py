"""The nodes on the path of a row: rules, numbers of rows, labels and weights in the vote."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, overload

import numpy as np

from certree.explain.value_formatting import format_categories, format_threshold
from certree.interface.arrays import Float64, Int32
from certree.interface.formatting import format_quantity
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_arguments
from certree.rows.calendar_parts import DateFormat
from certree.tree import ALL_LEFT, ALL_RIGHT, LEAF, Tree
from certree.weights.node_weights import NodeWeights, make_pruning, reached
from certree.weights.rule_numbers import RuleNumbers


@dataclass(frozen=True, slots=True)
class ExplainedCell:
    """A node on the path of a row through a tree, with its vote and the weight of that vote.

    Its region (cell) contains the regions of the nodes below it.

    Parameters
    ----------
    node : int
        Number of the node in the tree.
    depth : int
        Number of splits above it. A node that stands for a chain of splits counts as that many.
    rule : str
        The test that leads from its parent to it, such as "age <= 40"; "all rows" for the root.
    rows : float
        Number (or weight) of the training rows in it.
    label : object
        Class or number that the node predicts; a tuple if there are several targets.
    share : float
        Fraction of the vote: the total posterior weight of the prunings (subtrees that result if
        nodes become leaves) in which the node is a leaf.
    number : str or None
        Number of the rule of a leaf, such as "R3"; of the rules below another node, "R3-R5". None:
        rules have no numbers.
    """

    node: int
    depth: int
    rule: str
    rows: float
    label: Any
    share: float
    number: str | None = None

    @property
    def prediction(self) -> str:
        """The class or number that this node predicts, as text: numbers to six digits.

        Predictions for several targets are in parentheses.
        """
        if isinstance(self.label, tuple):
            return f"({', '.join(map(_format_label, self.label))})"
        return _format_label(self.label)

    def __str__(self) -> str:
        share = f"{100 * self.share:.1f} %"
        rule = self.rule if self.number is None else f"{self.number}: {self.rule}"
        return f"{rule}: {self.rows:g} rows, votes {self.prediction} with {share}"


def _format_label(label: Any) -> str:
    """Format the class or number `label` of one target as text; floats to six digits."""
    return f"{label:.6g}" if isinstance(label, float) else str(label)


# Nodes that `repr` shows, and a table in a notebook.
_MAX_CELLS_IN_REPR, _MAX_CELLS_IN_TABLE = 5, 12


@dataclass(frozen=True, slots=True, repr=False)
class NestedCells(Sequence[ExplainedCell]):
    """The nodes on the path of a row through a tree, from the root to the leaf.

    ``print`` shows a line for each node, a notebook shows the nodes with the largest fractions of
    the vote. The vote is the average of the predictions of all prunings (the tree with some nodes
    turned into leaves), by their posterior weights.

    Parameters
    ----------
    cells : tuple of ExplainedCell
        The nodes, root first.
    """

    cells: tuple[ExplainedCell, ...]

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, place: int) -> ExplainedCell: ...
    @overload
    def __getitem__(self, place: slice) -> NestedCells: ...
    def __getitem__(self, place: int | slice) -> ExplainedCell | NestedCells:
        selected = self.cells[place]
        return NestedCells(selected) if isinstance(selected, tuple) else selected

    def _select_heaviest(self, n_cells: int) -> list[ExplainedCell]:
        """Return the `n_cells` nodes with the largest fractions of the vote, from the root down.

        All nodes of the path if it has fewer; of equal fractions, the node nearer to the root. A
        node's fraction of the vote is the total posterior weight of the prunings (trees with some
        nodes turned into leaves) in which it is a leaf.
        """
        by_share = sorted(self.cells, key=lambda cell: -cell.share)[:n_cells]
        return sorted(by_share, key=lambda cell: cell.depth)

    def _make_title(self, shown: Sequence[ExplainedCell]) -> str:
        """Return a title for a printed table of the nodes `shown`, a subset of this path's nodes.

        It has the number of nodes on the path and, if not all are shown, the fraction of the vote
        of those shown. A node's fraction of the vote is the total posterior weight of the prunings
        (trees with some nodes turned into leaves) in which it is a leaf.
        """
        title = format_quantity(len(self), "nested cell")
        if len(shown) == len(self):
            return title
        share = 100 * sum([cell.share for cell in shown])
        return f"{title}, {len(shown)} of them with {share:.1f} % of the vote"

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        shown = self._select_heaviest(_MAX_CELLS_IN_REPR)
        return "\n  ".join([f"{self._make_title(shown)}:", *map(str, shown)])

    def _repr_html_(self) -> str:
        shown = self._select_heaviest(_MAX_CELLS_IN_TABLE)
        lines = [
            [cell.rule, f"{cell.rows:g}", cell.prediction, f"{100 * cell.share:.1f} %"]
            for cell in shown
        ]
        head = ["cell", "rows", "votes", "with"]
        if any(cell.number is not None for cell in shown):
            head = ["rule", *head]
            lines = [[cell.number or "", *line] for cell, line in zip(shown, lines, strict=True)]
        return make_html_table(self._make_title(shown), head, lines)


@dataclass(frozen=True, eq=False)
class Explainer:
    """Describes the nodes of a tree in words, by names, row counts, predictions and weights.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    rows_per_node : ndarray of shape (m,)
        Number, or total weight, of the training rows in each node.
    weights : NodeWeights
        Posterior weights of its prunings (subtrees that result if nodes become leaves): for each
        node, the probability that it is a leaf of a pruning drawn from the posterior.
    feature_names : sequence of str
        Names of the features.
    predict_node : callable
        Takes the number of a node, and returns the class or number that it predicts.
    categories : sequence of (sequence or None), or None
        Names of the categories of each feature, by code; None for a feature without names. None
        instead of the sequence: there are no names, and descriptions show the codes.
    shows_missing : bool
        Whether rules state where missing values go.
    dates : mapping of int to DateFormat, or None
        The features that hold dates, by index; None: there are none.
    numbers : RuleNumbers or None
        The numbers of the rules, if the tree is small and the only tree of its model; None: rules
        have no numbers.
    """

    tree: Tree
    rows_per_node: Float64
    weights: NodeWeights
    feature_names: Sequence[str]
    predict_node: Callable[[int], Any]
    categories: Sequence[Sequence[Any] | None] | None = None
    shows_missing: bool = False
    dates: Mapping[int, DateFormat] | None = None
    numbers: RuleNumbers | None = None

    @classmethod
    def for_full_tree(
        cls,
        tree: Tree,
        rows_per_node: Float64,
        feature_names: Sequence[str],
        predict_node: Callable[[int], Any],
        categories: Sequence[Sequence[Any] | None] | None,
        dates: Mapping[int, DateFormat] | None = None,
    ) -> Self:
        """Create the explainer of a tree without posterior: the full tree has all the weight.

        Parameters
        ----------
        tree : Tree
            The tree, of m nodes.
        rows_per_node : ndarray of shape (m,)
            Number, or total weight, of the training rows in each node.
        feature_names : sequence of str
            Names of the features.
        predict_node : callable
            Takes the number of a node, and returns the class or number that it predicts.
        categories : sequence of (sequence or None), or None
            Names of the categories of each feature, by code; None for a feature without names, or
            instead of the sequence if there are none at all.
        dates : mapping of int to DateFormat, or None
            The features that hold dates, by index; None: there are none.

        Returns
        -------
        Explainer
            Its `weights` give the full tree the weight 1, and all other prunings (the tree with
            some nodes turned into leaves) 0. Rules do not state where missing values go.
        """
        weights = make_pruning(tree, ~tree.is_leaf)
        given = feature_names, predict_node, categories
        return cls(tree, rows_per_node, weights, *given, dates=dates)

    def describe_split(self, node: int, parent: int) -> str:
        """Return the test that leads from node `parent` to its child `node`, such as "age <= 40".

        " (or missing)" follows if `shows_missing` is True and rows without the value reach this
        child alone. For categories it is "colour in {red, blue}", or "colour not in {red, blue}"
        for the child to which unseen categories go; "colour is missing" or "colour is not missing"
        if the split only separates missing values. "all rows" if `node` is the root; its parent is
        not used.
        """
        if node == 0:
            return "all rows"
        feature, is_left = int(self.tree.feature[parent]), node == self.tree.left[parent]
        name, codes = self.feature_names[feature], self.tree.category_set(parent).tolist()
        if codes:
            side = "not in" if is_left == self.tree.unseen_left[parent] else "in"
            text = f"{name} {side} {format_categories(self.get_category_names(feature, codes))}"
            return self._mention_missing(text, node)
        threshold = float(self.tree.threshold[parent])
        categories = None if self.categories is None else self.categories[feature]
        if categories is not None and threshold in (ALL_LEFT, ALL_RIGHT):
            is_present = is_left == (threshold == ALL_LEFT)
            return f"{name} is not missing" if is_present else f"{name} is missing"
        if categories is not None:  # The threshold is between the codes of two categories.
            names = [n for code, n in enumerate(categories) if (code <= threshold) == is_left]
            return self._mention_missing(f"{name} in {format_categories(names)}", node)
        limit = format_threshold(threshold, self.dates, feature)
        return self._mention_missing(f"{name} {'<=' if is_left else '>'} {limit}", node)

    def _mention_missing(self, text: str, node: int) -> str:
        """Append " (or missing)" to a test if rows that lack the value of its feature satisfy it.

        Return the test. Append only if `shows_missing` is True. text: the test that leads to node
        number `node` from its parent. Such rows must reach the parent, too: all earlier splits of
        the path on this feature send them on.
        """
        tree, path = self.tree, self.find_path(node)
        feature = tree.feature[path[-2]]
        takes_missing = self.shows_missing and all(
            bool(tree.missing_left[parent]) == (child == tree.left[parent])
            and not tree.missing_both[parent]
            for parent, child in pairwise(path)
            if tree.feature[parent] == feature
        )
        return f"{text} (or missing)" if takes_missing else text

    def get_category_names(self, feature: int, codes: Sequence[int]) -> list[Any]:
        """Return the names of the categories with these codes of one feature, in the order of `codes`.

        feature: number of the feature; codes: category codes, 0, 1, ... Names are strings or
        numbers. Return the codes themselves if it has no names.
        """
        names = self.categories[feature] if self.categories is not None else None
        return [*codes] if names is None else [names[code] for code in codes]

    def describe_node(self, node: int, parent: int, depth: int) -> ExplainedCell:
        """Describe a node by its test, training rows, prediction and fraction of the vote.

        A pruning is the tree with some nodes turned into leaves. node, parent: numbers of the node
        and of its parent, which is not used for the root; depth: number of splits above the node.
        The training rows come from `rows_per_node`, the prediction from `predict_node`, and the
        fraction of the vote is the node's posterior weight.
        """
        return ExplainedCell(
            node=node,
            depth=depth,
            rule=self.describe_split(node, parent),
            rows=float(self.rows_per_node[node]),
            label=self.predict_node(node),
            share=float(self.weights.weight[node]),
            number=None if self.numbers is None else self.numbers.get_name(node),
        )

    @cached_property
    def _parent(self) -> Int32:
        """Number of the parent of each node, (m,) int32; negative for the root."""
        return self.tree.parent

    def find_path(self, node: int) -> list[int]:
        """Return the indices of the nodes from the root to `node`, root first, both included."""
        nodes = [node]
        while nodes[-1] != 0:
            nodes.append(int(self._parent[nodes[-1]]))
        return nodes[::-1]

    def describe_path(self, leaf: int) -> NestedCells:
        """Describe the nodes on the path from the root to node number `leaf`, both included.

        Return their tests, training rows, predictions and fractions of the vote, root first. A
        node's fraction of the vote is the total posterior weight of the prunings (trees with some
        nodes turned into leaves) in which it is a leaf.
        """
        cells, depth, parent = [], 0, -1
        for node in self.find_path(leaf):
            cell = self.describe_node(node, parent, depth)
            cells.append(cell if node == leaf else replace(cell, number=None))
            depth, parent = depth + int(self.tree.chain[node]), node
        return NestedCells(tuple(cells))

    @validate_arguments
    def select_subtree(self, max_leaves: int) -> ShownNode:
        """Return the root of the most important subtree with at most `max_leaves` leaves.

        The subtree grows from the root. The next node to get its children is the one with the
        largest number of training rows times the probability that a pruning drawn from the
        posterior `weights` splits it. A pruning is a subtree that results if nodes become leaves.
        Growth also ends when this product is 0. The returned node refers to its children, and so
        on; `has_hidden_children` marks nodes whose children are left out. Raise ValueError if
        `max_leaves` is less than 1.
        """
        if max_leaves < 1:
            raise ValueError(f"max_leaves must be at least 1, got {max_leaves!r}")
        tree, importance = self.tree, self._compute_importance()
        root = ShownNode(self.describe_node(0, -1, 0))
        queue = [(-importance[0], 0, root)]
        for _ in range(int(max_leaves) - 1):
            if not queue or queue[0][0] == 0:
                break
            _, node, shown = heapq.heappop(queue)
            depth = shown.cell.depth + int(tree.chain[node])
            left = int(tree.left[node])
            shown.children = tuple(
                ShownNode(self.describe_node(c, node, depth)) for c in (left, left + 1)
            )
            for child in shown.children:
                number = child.cell.node
                if tree.left[number] != LEAF:
                    heapq.heappush(queue, (-importance[number], number, child))
        for _, node, shown in queue:
            shown.has_hidden_children = bool(tree.left[node] != LEAF)
        return root

    def _compute_importance(self) -> Float64:
        """Compute the importance of each node, (m,): training rows times probability of a split.

        The probability is that a pruning drawn from the posterior `weights` splits the node; it is
        0 for leaves of the tree. The posterior weighs prunings: subtrees that result if nodes
        become leaves. The training rows come from `rows_per_node`.
        """
        split = reached(self.tree, self.weights) - self.weights.weight
        importance: Float64 = np.maximum(split, 0.0) * self.rows_per_node
        return np.where(self.tree.is_leaf, 0.0, importance)


@dataclass(slots=True, eq=False)
class ShownNode:
    """A node of a subtree that is printed or drawn.

    Parameters
    ----------
    cell : ExplainedCell
        Description of the node.
    children : tuple of ShownNode
        The left and the right child; empty for a leaf of the subtree.
    has_hidden_children : bool
        Whether the node has children in the tree that the subtree leaves out.
    """

    cell: ExplainedCell
    children: tuple[ShownNode, ...] = ()
    has_hidden_children: bool = False
