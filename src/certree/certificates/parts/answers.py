"""Right and wrong answers by class, by prediction, by group, and by leaves and cells of a tree."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import Float64, Int32, array_of
from certree.stats.nodes import counted
from certree.tree import Tree
from certree.weights.node_weights import pruning_of


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the rows: its name, what enters the bound, its rows, and the price of it (nats)."""

    name: str
    observed: tuple[float, ...]
    n: int
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """The kind of each row, such as its class.

    Parameters
    ----------
    names : list
        The kinds there are.
    place : ndarray of int, shape (n,)
        Place of each row's kind among them; rows with the place after the last are of none.
    """

    names: Sequence[Any]
    place: NDArray[np.integer]

    def at(self, kept: NDArray[np.bool_]) -> "Kinds":
        """Those of some of the rows."""
        return replace(self, place=self.place[kept])


def kinds_of(name: str, values: ArrayLike) -> Kinds:
    """The kinds that occur.

    Raises
    ------
    ValueError
        If values cannot be told apart or put in order, or one is missing.
    """
    given = array_of(name, values)
    try:
        names, place = np.unique(given, return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{name} must hold values of one kind, all numbers or all text, got dtype {given.dtype}"
        ) from None
    if (names != names).any():  # NaN is not what it is
        raise ValueError(f"{name} must not be missing for any row")
    return Kinds(names.tolist(), place)


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """Rows in the leaves of a tree that they had no part in.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : ndarray of float64, shape (m,)
        Growing rows of each node, or their weight.
    label : ndarray of int32, shape (m,)
        What is predicted in each of its leaves.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row.
    """

    tree: Tree
    grown: Float64
    label: Int32
    leaf: Int32

    def at(self, kept: NDArray[np.bool_]) -> "Routed":
        """Some of the rows."""
        return replace(self, leaf=self.leaf[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a classifier says of rows that it is judged by.

    Parameters
    ----------
    truth, predicted : Kinds
        Their classes and what is predicted.
    wrong : ndarray of bool, shape (n,)
        Which predictions are wrong.
    groups : Kinds or None
        Their groups.
    routed : Routed or None
        Where they are in the tree that predicts.
    nats : float
        Price of having been chosen by these rows: minus the log of a prior mass; 0: fixed before.
    """

    truth: Kinds
    predicted: Kinds
    wrong: NDArray[np.bool_]
    groups: Kinds | None = None
    routed: Routed | None = None
    nats: float = 0.0

    def at(self, kept: NDArray[np.bool_]) -> "Answers":
        """Those to some of the rows."""
        return Answers(
            self.truth.at(kept),
            self.predicted.at(kept),
            self.wrong[kept],
            None if self.groups is None else self.groups.at(kept),
            None if self.routed is None else self.routed.at(kept),
            self.nats,
        )

    def counts(self, kinds: Kinds) -> list[tuple[float, int]]:
        """Share of errors and rows of each kind."""
        size = len(kinds.names) + 1
        rows = np.bincount(kinds.place, minlength=size)[:-1]
        return _counts(rows, np.bincount(kinds.place, self.wrong, minlength=size)[:-1])


def _counts(rows: NDArray[Any], errors: NDArray[Any]) -> list[tuple[float, int]]:
    risk = errors / np.maximum(rows, 1)
    return list(zip(risk.tolist(), rows.astype(np.int64).tolist(), strict=True))


def parts_of_kinds(answers: Answers, kinds: Kinds) -> dict[Any, Part]:
    """One part for each kind, with the same share of delta."""
    price = answers.nats + math.log(len(kinds.names))
    return {
        key: Part(str(key), (risk,), n, price)
        for key, (risk, n) in zip(kinds.names, answers.counts(kinds), strict=True)
    }


def parts_of_pairs(answers: Answers, kinds: Kinds) -> dict[tuple[Any, Any], Part]:
    """All pairs of kinds; upper and lower limits of each kind have the same share of delta.

    The inequality halves it between the two limits, and all pairs are of the same limits.
    """
    parts = {}
    for (key, one), (other, its) in permutations(parts_of_kinds(answers, kinds).items(), 2):
        both = one.n + its.n
        observed = (*one.observed, *its.observed, one.n / max(both, 1))
        parts[key, other] = Part(f"{key} and {other}", observed, both, one.complexity)
    return parts


def leaf_parts(routed: Routed, wrong: NDArray[np.bool_], nats: float) -> dict[int, Part]:
    """The largest cells with one label each: the leaves of the smallest pruning that predicts the same.

    They depend on the tree and the labelling alone, and a leaf's share of the level of the labelling
    on its growing rows. Given how many rows each leaf has, the numbers of errors are independent, so
    that all hold with probability 1 - product of (1 - delta)^share = delta at least.
    """
    tree, shares = routed.tree, routed.grown + 1
    ends = tree.is_leaf
    places = np.flatnonzero(ends).astype(np.int32)
    labels = counted(tree, places, routed.label[places], None, int(routed.label.max()) + 1).counts
    alike = (labels > 0).sum(axis=1) == 1
    leaves = np.flatnonzero(pruning_of(tree, ~alike).weight)
    shares = (shares[leaves] / shares[leaves].sum()).tolist()
    return {
        node: Part(str(node), (risk, share), n, nats)
        for (node, risk, n), share in zip(_in_nodes(routed, wrong, leaves), shares, strict=True)
    }


def cell_parts(routed: Routed, wrong: NDArray[np.bool_], nats: float) -> dict[int, Part]:
    """Every node of the tree, so that one may look before one chooses some.

    A node below d splits has the level 2^-(d + 1) times its share of the growing rows at its depth.
    The shares of one depth sum to 1 and the powers over all depths to less than 1, so all levels sum
    to less than delta.
    """
    tree, rows = routed.tree, routed.grown + 1
    depth = tree.splits_above
    price = (depth + 1) * math.log(2) - np.log(rows / np.bincount(depth, rows)[depth])
    every = _in_nodes(routed, wrong, np.arange(tree.n_nodes))
    return {
        node: Part(str(node), (risk,), n, nats + own)
        for (node, risk, n), own in zip(every, price.tolist(), strict=True)
    }


def _in_nodes(
    routed: Routed, wrong: NDArray[np.bool_], nodes: NDArray[np.intp]
) -> Iterable[tuple[int, float, int]]:
    """Number, share of errors and rows of some nodes."""
    outcomes = counted(routed.tree, routed.leaf, wrong.astype(np.int32), None, 2).counts[nodes]
    of_each = _counts(outcomes.sum(axis=1), outcomes[:, 1])
    return ((node, *of) for node, of in zip(nodes.tolist(), of_each, strict=True))
