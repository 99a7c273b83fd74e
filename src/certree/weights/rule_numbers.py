"""Numbers of the rules of a small tree: R1, R2, ... for its leaves from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certree.tree import LEAF, Tree

# Most leaves of a tree whose rules are numbered.
_MAX_RULES = 64


@dataclass(frozen=True, slots=True)
class RuleNumbers:
    """The numbers R1, R2, ... of the rules of a tree: its leaves, numbered from left to right.

    A rule is the conditions on the path to a leaf, with the leaf's prediction. Exports and plots of
    a tree all use these numbers. `number_rules` makes it.

    Parameters
    ----------
    leaves : sequence of int, length k
        Node number of the leaf of each rule: ``leaves[0]`` is the leaf of R1.
    first, last : sequence of int, length m
        For each node of the tree, the indices in `leaves` of the first and the last leaf below it;
        both are the same at a leaf.
    """

    leaves: Sequence[int]
    first: Sequence[int]
    last: Sequence[int]

    def get_name(self, node: int) -> str:
        """Return the name of a leaf's rule, such as "R3", or of the rules below a node, as "R3-R5".

        node: index of a node of the tree. Each leaf has one rule; rules are numbered from left to
        right.
        """
        first, last = self.first[node] + 1, self.last[node] + 1
        return f"R{first}" if first == last else f"R{first}-R{last}"

    def get_leaves(self, node: int) -> Sequence[int]:
        """Return the node numbers of the leaves below a node, from left to right.

        node: number of the node; of a leaf, the result is this number alone.
        """
        return self.leaves[self.first[node] : self.last[node] + 1]


def number_rules(tree: Tree) -> RuleNumbers | None:
    """Give the rules of a tree numbers: its leaves from left to right, as the printed tree shows them.

    A rule is the path to a leaf with its prediction. Return None if the tree has more than 64 leaves,
    whose rules have no numbers. tree: a tree of m nodes, which predicts by its leaves.
    """
    if tree.n_leaves > _MAX_RULES:
        return None
    leaves, stack = list[int](), [0]
    while stack:
        node = stack.pop()
        left = int(tree.left[node])
        if left == LEAF:
            leaves.append(node)
        else:
            stack += [left + 1, left]
    first, last = (np.zeros(tree.n_nodes, dtype=np.int64) for _ in range(2))
    first[leaves] = last[leaves] = np.arange(len(leaves))
    for node in range(tree.n_nodes - 1, -1, -1):  # Children come after their parents.
        if tree.left[node] != LEAF:
            first[node], last[node] = first[tree.left[node]], last[tree.left[node] + 1]
    return RuleNumbers(tuple(leaves), tuple(first.tolist()), tuple(last.tolist()))
