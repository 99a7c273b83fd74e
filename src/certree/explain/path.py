"""The nested cells around a row: rules, rows, labels and shares of the vote."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, overload

import numpy as np

from certree.explain.values import set_in_words
from certree.interface.arrays import Float64, Int32
from certree.interface.formatting import format_quantity
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_arguments
from certree.tree import LEAF, Tree
from certree.weights.node_weights import NodeWeights, pruning_of, reached


@dataclass(frozen=True, slots=True)
class ExplainedCell:
    """One of the nested cells that contain a row.

    Parameters
    ----------
    node : int
        Number of the node in the tree.
    depth : int
        Number of cells above it.
    rule : str
        What sets the cell apart from the one around it; "all rows" for the root.
    rows : float
        Number (or weight) of the training rows in it.
    label : object
        Class or number that the cell predicts; of several targets a tuple of those of each.
    share : float
        Share of the vote that the prunings have in which this cell is a leaf.
    """

    node: int
    depth: int
    rule: str
    rows: float
    label: Any
    share: float

    @property
    def prediction(self) -> str:
        """The label, or the number to six digits; those of several targets in parentheses."""
        if isinstance(self.label, tuple):
            return f"({', '.join(map(_in_words, self.label))})"
        return _in_words(self.label)

    def __str__(self) -> str:
        share = f"{100 * self.share:.1f} %"
        return f"{self.rule}: {self.rows:g} rows, votes {self.prediction} with {share}"


def _in_words(label: Any) -> str:
    return f"{label:.6g}" if isinstance(label, float) else str(label)


# Lines of a short answer, and of a table in a notebook.
_LINES, _IN_TABLE = 5, 12


@dataclass(frozen=True, slots=True, repr=False)
class NestedCells(Sequence[ExplainedCell]):
    """The nested cells that contain a row, from the root inwards.

    Printed it has a line for each; where it ends a cell of a notebook, those with most of the vote.

    Parameters
    ----------
    cells : tuple of ExplainedCell
        The cells.
    """

    cells: tuple[ExplainedCell, ...]

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, place: int) -> ExplainedCell: ...
    @overload
    def __getitem__(self, place: slice) -> NestedCells: ...
    def __getitem__(self, place: int | slice) -> ExplainedCell | NestedCells:
        found = self.cells[place]
        return NestedCells(found) if isinstance(found, tuple) else found

    def _heaviest(self, most: int) -> list[ExplainedCell]:
        """Those with the largest shares of the vote, from the root inwards."""
        by_share = sorted(self.cells, key=lambda cell: -cell.share)[:most]
        return sorted(by_share, key=lambda cell: cell.depth)

    def _title(self, shown: Sequence[ExplainedCell]) -> str:
        title = format_quantity(len(self), "nested cell")
        if len(shown) == len(self):
            return title
        share = 100 * sum([cell.share for cell in shown])
        return f"{title}, {len(shown)} of them with {share:.1f} % of the vote"

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        shown = self._heaviest(_LINES)
        return "\n  ".join([f"{self._title(shown)}:", *map(str, shown)])

    def _repr_html_(self) -> str:
        shown = self._heaviest(_IN_TABLE)
        lines = [
            [cell.rule, f"{cell.rows:g}", cell.prediction, f"{100 * cell.share:.1f} %"]
            for cell in shown
        ]
        return make_html_table(self._title(shown), ["cell", "rows", "votes", "with"], lines)


@dataclass(frozen=True, eq=False)
class Explainer:
    """A tree with all that is said about its nodes.

    Parameters
    ----------
    tree : Tree
        The tree.
    rows : ndarray of shape (m,)
        Training rows in each node.
    weights : NodeWeights
        The distribution over its prunings.
    feature_names : sequence of str
        Names of the features.
    prediction : callable
        What a node, given by its number, predicts.
    categories : sequence of (sequence or None), or None
        Names of the categories of each feature, by code; None: the codes themselves.
    says_missing : bool
        Whether rules say where missing values go.
    """

    tree: Tree
    rows: Float64
    weights: NodeWeights
    feature_names: Sequence[str]
    prediction: Callable[[int], Any]
    categories: Sequence[Sequence[Any] | None] | None = None
    says_missing: bool = False

    @classmethod
    def of_whole(cls, tree: Tree, rows: Float64, *told: Any) -> Self:
        """A tree whose leaves alone predict: the pruning that cuts nothing off."""
        return cls(tree, rows, pruning_of(tree, ~tree.is_leaf), *told)

    def rule(self, node: int, parent: int) -> str:
        """What sends a row from a node to its child."""
        if node == 0:
            return "all rows"
        feature, is_left = int(self.tree.feature[parent]), node == self.tree.left[parent]
        name, codes = self.feature_names[feature], self.tree.category_set(parent).tolist()
        if codes:
            side = "not in" if is_left == self.tree.missing_left[parent] else "in"
            return f"{name} {side} {set_in_words(self.names(feature, codes))}"
        return f"{name} {'<=' if is_left else '>'} {self.tree.threshold[parent]:.6g}"

    def names(self, feature: int, codes: Sequence[int]) -> list[Any]:
        """Names of some categories of a feature; the codes where it has none."""
        known = self.categories[feature] if self.categories is not None else None
        return [*codes] if known is None else [known[code] for code in codes]

    def cell(self, node: int, parent: int, depth: int) -> ExplainedCell:
        """Describe a node."""
        return ExplainedCell(
            node=node,
            depth=depth,
            rule=self.rule(node, parent),
            rows=float(self.rows[node]),
            label=self.prediction(node),
            share=float(self.weights.weight[node]),
        )

    @cached_property
    def _parent(self) -> Int32:
        return self.tree.parent

    def nodes_to(self, node: int) -> list[int]:
        """The nodes from the root to a node."""
        nodes = [node]
        while nodes[-1] != 0:
            nodes.append(int(self._parent[nodes[-1]]))
        return nodes[::-1]

    def path(self, leaf: int) -> NestedCells:
        """The nested cells around a leaf, from the root inwards."""
        cells, depth, parent = [], 0, -1
        for node in self.nodes_to(leaf):
            cells.append(self.cell(node, parent, depth))
            depth, parent = depth + int(self.tree.chain[node]), node
        return NestedCells(tuple(cells))

    @validate_arguments
    def shown(self, max_leaves: int) -> Branch:
        """The part of the tree that matters most to the vote, cut to at most `max_leaves` leaves.

        Nodes are opened in the order of their rows times the probability that a pruning splits them.
        """
        if max_leaves < 1:
            raise ValueError(f"max_leaves must be at least 1, got {max_leaves!r}")
        tree, importance = self.tree, self._importance()
        root = Branch(self.cell(0, -1, 0))
        waiting = [(-importance[0], 0, root)]
        for _ in range(int(max_leaves) - 1):
            if not waiting or waiting[0][0] == 0:
                break
            _, node, branch = heapq.heappop(waiting)
            depth = branch.cell.depth + int(tree.chain[node])
            left = int(tree.left[node])
            branch.children = tuple(Branch(self.cell(c, node, depth)) for c in (left, left + 1))
            for child in branch.children:
                number = child.cell.node
                if tree.left[number] != LEAF:
                    heapq.heappush(waiting, (-importance[number], number, child))
        for _, node, branch in waiting:
            branch.hidden = bool(tree.left[node] != LEAF)
        return root

    def _importance(self) -> Float64:
        split = reached(self.tree, self.weights) - self.weights.weight
        importance: Float64 = np.maximum(split, 0.0) * self.rows
        return np.where(self.tree.is_leaf, 0.0, importance)


@dataclass(slots=True, eq=False)
class Branch:
    """A node of the part of a tree that is shown.

    Parameters
    ----------
    cell : ExplainedCell
        The node.
    children : tuple of Branch
        Its children that are shown: two or none.
    hidden : bool
        Whether the tree goes on below, though nothing of it is shown.
    """

    cell: ExplainedCell
    children: tuple[Branch, ...] = ()
    hidden: bool = False
