"""Right and wrong answers by class, by prediction, by group, and by leaves and cells of a tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import Float64, Int32, to_array
from certree.stats.nodes import count_by_leaf
from certree.tree import Tree
from certree.weights.node_weights import make_pruning


@dataclass(frozen=True, slots=True)
class RowSubset:
    """A part of the rows: its name, what enters the bound, its rows, and the price of it (nats)."""

    name: str
    observed: tuple[float, ...]
    n: int
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class CodedLabels:
    """The kind of each row, such as its class.

    Parameters
    ----------
    names : list
        The kinds there are.
    place : ndarray of int, shape (n,)
        Place of each row's kind among them; rows with the place after the last are of none.
    """

    names: Sequence[Any]
    codes: NDArray[np.integer]

    def take(self, kept: NDArray[np.integer]) -> CodedLabels:
        """Those of some of the rows."""
        return replace(self, codes=self.codes[kept])


def encode_labels(name: str, values: ArrayLike) -> CodedLabels:
    """The kinds that occur.

    Raises
    ------
    ValueError
        If values cannot be told apart or put in order, or one is missing.
    """
    given = to_array(name, values)
    try:
        names, place = np.unique(given, return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{name} must hold values of one kind, all numbers or all text, got dtype {given.dtype}"
        ) from None
    if (names != names).any():  # NaN is not what it is
        raise ValueError(f"{name} must not be missing for any row")
    return CodedLabels(names.tolist(), place)


def _compute_risks(rows: NDArray[Any], errors: NDArray[Any]) -> list[tuple[float, int]]:
    risk = errors / np.maximum(rows, 1)
    return list(zip(risk.tolist(), rows.astype(np.int64).tolist(), strict=True))


def make_label_subsets(
    kinds: CodedLabels, wrong: NDArray[np.bool_], nats: float
) -> dict[Any, RowSubset]:
    """One part for each kind of rows that are right or wrong, with the same share of delta."""
    size, alpha = len(kinds.names) + 1, nats + math.log(len(kinds.names))
    rows = np.bincount(kinds.codes, minlength=size)[:-1]
    counts = _compute_risks(rows, np.bincount(kinds.codes, wrong, minlength=size)[:-1])
    return {
        key: RowSubset(str(key), (risk,), n, alpha)
        for key, (risk, n) in zip(kinds.names, counts, strict=True)
    }


def make_pair_subsets(
    kinds: CodedLabels, wrong: NDArray[np.bool_], surely_wrong: NDArray[np.bool_], nats: float
) -> dict[tuple[Any, Any], RowSubset]:
    """All pairs of kinds; upper and lower limits of each kind have the same share of delta.

    The inequality halves it between the two limits, and all pairs are of the same limits. The error of
    the second kind is that of rows which are surely wrong.
    """
    parts, most = {}, make_label_subsets(kinds, wrong, nats)
    least = make_label_subsets(kinds, surely_wrong, nats)
    for key, other in permutations(most, 2):
        one, its = most[key], least[other]
        both = one.n + its.n
        observed = (*one.observed, *its.observed, one.n / max(both, 1))
        parts[key, other] = RowSubset(f"{key} and {other}", observed, both, one.complexity)
    return parts


def make_leaf_subsets(
    tree: Tree, grown: Float64, label: Int32, leaf: Int32, wrong: NDArray[np.bool_], nats: float
) -> dict[int, RowSubset]:
    """The largest cells with one label each: the leaves of the smallest pruning that predicts the same.

    They depend on the tree and the labelling, (m,), alone, and a leaf's share of the level of the
    labelling on its training samples, (m,). Given how many rows reach each leaf, the numbers of errors
    are independent, so that all hold with probability 1 - product of (1 - delta)^share = delta at
    least.
    """
    shares, ends = grown + 1, tree.is_leaf
    places = np.flatnonzero(ends).astype(np.int32)
    labels = count_by_leaf(tree, places, label[places], None, int(label.max()) + 1).counts
    alike = (labels > 0).sum(axis=1) == 1
    leaves = np.flatnonzero(make_pruning(tree, ~alike).weight)
    shares = (shares[leaves] / shares[leaves].sum()).tolist()
    return {
        node: RowSubset(str(node), (risk, share), n, nats)
        for (node, risk, n), share in zip(
            _count_in_nodes(tree, leaf, wrong, leaves), shares, strict=True
        )
    }


def make_node_subsets(
    tree: Tree, grown: Float64, leaf: Int32, wrong: NDArray[np.bool_], nats: float
) -> dict[int, RowSubset]:
    """Every node of the tree, so that one may look before one chooses some.

    A node below d splits has the level 2^-(d + 1) times its share of the training samples at its depth.
    The shares of one depth sum to 1 and the powers over all depths to less than 1, so all levels sum
    to less than delta.
    """
    rows, depth = grown + 1, tree.splits_above
    alpha = (depth + 1) * math.log(2) - np.log(rows / np.bincount(depth, rows)[depth])
    every = _count_in_nodes(tree, leaf, wrong, np.arange(tree.n_nodes))
    return {
        node: RowSubset(str(node), (risk,), n, nats + own)
        for (node, risk, n), own in zip(every, alpha.tolist(), strict=True)
    }


def _count_in_nodes(
    tree: Tree, leaf: Int32, wrong: NDArray[np.bool_], nodes: NDArray[np.intp]
) -> Iterable[tuple[int, float, int]]:
    """Number, share of errors and rows of some nodes."""
    outcomes = count_by_leaf(tree, leaf, wrong.astype(np.int32), None, 2).counts[nodes]
    of_each = _compute_risks(outcomes.sum(axis=1), outcomes[:, 1])
    return ((node, *of) for node, of in zip(nodes.tolist(), of_each, strict=True))
