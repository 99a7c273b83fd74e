"""Count calibration rows and their errors in subsets.

Classes, groups, pairs of groups, leaves and nodes.
"""

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
from certree.weights.rule_numbers import RuleNumbers


@dataclass(frozen=True, slots=True)
class RowSubset:
    """A subset of the calibration rows, with the numbers that enter the bound on its error.

    Made by the functions `make_..._subsets` of this module.

    Parameters
    ----------
    name : str
        Name of the subset in certificates, such as a class or a node number; empty: all rows.
    observed : tuple of float
        Observed numbers that the inequality takes, first of all the fraction of errors in the
        subset.
    n : int
        Number of calibration rows in the subset.
    complexity : float
        Amount (nats) by which the log probability of failure is lowered, so that the bounds of all
        subsets of the family hold at once although the calibration rows made choices.
    """

    name: str
    observed: tuple[float, ...]
    n: int
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class CodedLabels:
    """Labels of rows as codes, such as the class or the group of each row.

    `encode_labels` makes it.

    Parameters
    ----------
    names : list
        The K different labels.
    codes : ndarray of int, shape (n,)
        Code of each row: index of its label in `names`. Rows with code K have none of these labels.
    """

    names: Sequence[Any]
    codes: NDArray[np.integer]

    def take(self, kept: NDArray[np.integer]) -> CodedLabels:
        """Return the labels of some of the rows; `names` stay the same.

        kept: indices of the rows, (k,). The codes of the result are those of these rows, (k,).
        """
        return replace(self, codes=self.codes[kept])


def encode_labels(name: str, values: ArrayLike) -> CodedLabels:
    """Replace labels of rows by integer codes.

    name: name of the argument in messages; values: label of each row, (n,). The names of the result
    are the different labels in ascending order.

    Raises
    ------
    ValueError
        If labels are of types that cannot be compared, such as text and numbers, or one is missing.
    """
    given = to_array(name, values)
    try:
        names, place = np.unique(given, return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{name} must hold values of one type, all numbers or all text, got dtype {given.dtype} "
            "with several types: convert the values to text"
        ) from None
    if (names != names).any():  # NaN
        raise ValueError(
            f"{name} must have a value for each row, got missing values: fill them in, such as by "
            "a value of their own"
        )
    return CodedLabels(names.tolist(), place)


def _compute_risks(rows: NDArray[Any], errors: NDArray[Any]) -> list[tuple[float, int]]:
    """Return the pairs (fraction of errors, number of rows) of subsets as a list.

    rows, errors: number of rows and of errors in each subset, both (n_subsets,). The fraction is 0
    for a subset without rows.
    """
    risk = errors / np.maximum(rows, 1)
    return list(zip(risk.tolist(), rows.astype(np.int64).tolist(), strict=True))


def make_label_subsets(
    kinds: CodedLabels, wrong: NDArray[np.bool_], nats: float
) -> dict[Any, RowSubset]:
    """Count rows and errors by label; labels share the failure probability equally (Bonferroni).

    kinds: label of each of n rows; wrong: whether each row is an error, (n,) bool; nats: complexity
    of the certificate, above 0 if the calibration rows chose the classifier. A `RowSubset` holds
    the fraction of errors, the number of rows, and its complexity: `nats` plus the log of the
    number of labels. A label without rows has the fraction 0. Return a dictionary from label to
    `RowSubset`, in the order of ``kinds.names``.
    """
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
    """Count rows and errors of all ordered pairs of labels, for bounds on the difference of two errors.

    The keys of the result are pairs (first, second) of labels. The field `observed` of a value has
    three fractions: of errors among the rows of the first label; of certain errors (`surely_wrong`)
    among those of the second; and of the pair's rows that have the first label. With J labels there
    are 2 J limits, an upper and a lower one for each label, which share delta (the probability of
    failure) equally. The complexity of each pair is `nats` plus log J, for its label's share of
    delta. The bound on the difference (`occam_gap`) halves this share between its two limits.

    Parameters
    ----------
    kinds : CodedLabels
        Label of each row.
    wrong : ndarray of bool, shape (n,)
        Whether each row counts as an error in upper limits.
    surely_wrong : ndarray of bool, shape (n,)
        Whether each row counts as an error in lower limits: `wrong`, except for rows that equal a
        row of the fit or another calibration row and only count as errors for that reason.
    nats : float
        Complexity of the certificate, above 0 if the calibration rows chose the classifier.
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
    tree: Tree,
    n_training: Float64,
    label: Int32,
    leaf: Int32,
    wrong: NDArray[np.bool_],
    nats: float,
) -> dict[int, RowSubset]:
    """Count rows and errors in each leaf of the smallest pruning that predicts the same as a labelling.

    The leaves of this pruning are the largest nodes below which all leaves have one label. Each has
    a fraction proportional to 1 + its number of training rows, with sum 1. Given the number of
    calibration rows in each leaf, errors are independent, so that bounds that each fail with
    probability ``1 - (1 - delta)^fraction`` hold together with probability 1 - delta (Sidak). A
    pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    n_training : ndarray of shape (m,)
        Number of training rows in each node.
    label : ndarray of int32, shape (m,)
        Label of each node; those of leaves are read.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each calibration row reaches.
    wrong : ndarray of bool, shape (n,)
        Whether each calibration row is an error.
    nats : float
        Complexity of the certificate, above 0 if the calibration rows chose the labelling.

    Returns
    -------
    dict of int to RowSubset
        By node number. `observed` are the fraction of errors and the leaf's fraction, the exponent
        in the formula.
    """
    places = np.flatnonzero(tree.is_leaf).astype(np.int32)
    labels = count_by_leaf(tree, places, label[places], None, int(label.max()) + 1).counts
    alike = (labels > 0).sum(axis=1) == 1
    leaves = np.flatnonzero(make_pruning(tree, ~alike).weight)
    return _share_by_rows(tree, n_training, leaves, leaf, wrong, nats)


def make_rule_subsets(
    numbers: RuleNumbers,
    tree: Tree,
    n_training: Float64,
    leaf: Int32,
    wrong: NDArray[np.bool_],
    nats: float,
) -> dict[str, RowSubset]:
    """Count rows and errors in each leaf of a tree whose rules have numbers.

    Each leaf has a fraction proportional to 1 + its number of training rows, with sum 1. Its bound
    may fail with probability ``1 - (1 - delta)^fraction``, so that all bounds hold together with
    probability 1 - delta. Leaves with the same label are not merged.

    Parameters
    ----------
    numbers : RuleNumbers
        The numbers of the rules, which are the leaves of the tree.
    tree : Tree
        The tree, with m nodes.
    n_training : ndarray of shape (m,)
        Number of training rows in each node.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each calibration row reaches.
    wrong : ndarray of bool, shape (n,)
        Whether each calibration row is an error.
    nats : float
        Complexity of the certificate, above 0 if the calibration rows chose the labelling.

    Returns
    -------
    dict of str to RowSubset
        By the number of the rule, such as "R1", in ascending order. `observed` are the fraction of
        errors and the leaf's fraction.
    """
    subsets = _share_by_rows(tree, n_training, np.array(numbers.leaves), leaf, wrong, nats)
    return {
        numbers.get_name(node): replace(subset, name=numbers.get_name(node))
        for node, subset in subsets.items()
    }


def _share_by_rows(
    tree: Tree,
    n_training: Float64,
    leaves: NDArray[np.integer],
    leaf: Int32,
    wrong: NDArray[np.bool_],
    nats: float,
) -> dict[int, RowSubset]:
    """Count rows and errors in disjoint nodes that divide delta in proportion to 1 + training rows.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    n_training : ndarray of shape (m,)
        Number of training rows in each node.
    leaves : ndarray of int, shape (k,)
        Numbers of the nodes; each row is in exactly one.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each calibration row reaches.
    wrong : ndarray of bool, shape (n,)
        Whether each calibration row is an error.
    nats : float
        Complexity of the certificate, above 0 if the calibration rows chose the labelling.

    Returns
    -------
    dict of int to RowSubset
        By node number. `observed` are the fraction of errors and the node's fraction of delta.
    """
    shares = n_training[leaves] + 1
    shares = (shares / shares.sum()).tolist()
    return {
        node: RowSubset(str(node), (risk, share), n, nats)
        for (node, risk, n), share in zip(
            _count_in_nodes(tree, leaf, wrong, leaves), shares, strict=True
        )
    }


def make_node_subsets(
    tree: Tree, n_training: Float64, leaf: Int32, wrong: NDArray[np.bool_], nats: float
) -> dict[int, RowSubset]:
    """Count rows and errors in every node of a tree, so that bounds on all nodes hold together.

    A node at depth d (d splits above it) gets the fraction 2^-(d + 1) of delta times its fraction
    of the training rows at that depth, where each node counts one row more. These fractions sum to
    less than 1.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    n_training : ndarray of shape (m,)
        Number of training rows in each node.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each calibration row reaches.
    wrong : ndarray of bool, shape (n,)
        Whether each calibration row is an error.
    nats : float
        Complexity of the certificate, above 0 if the calibration rows chose the classifier.

    Returns
    -------
    dict of int to RowSubset
        By node number, all m nodes.
    """
    rows, depth = n_training + 1, tree.splits_above
    alpha = (depth + 1) * math.log(2) - np.log(rows / np.bincount(depth, rows)[depth])
    every = _count_in_nodes(tree, leaf, wrong, np.arange(tree.n_nodes))
    return {
        node: RowSubset(str(node), (risk,), n, nats + own)
        for (node, risk, n), own in zip(every, alpha.tolist(), strict=True)
    }


def count_rows_in_nodes(tree: Tree, leaf: Int32) -> NDArray[np.int64]:
    """Count rows in each node of a tree, (m,); a row counts in its leaf and in all nodes above it.

    tree: the tree, with m nodes; leaf: node number of the leaf that each row reaches, (n,).
    """
    only_class = np.zeros(len(leaf), dtype=np.int32)
    return count_by_leaf(tree, leaf, only_class, None, 1).n.astype(np.int64)


def _count_in_nodes(
    tree: Tree, leaf: Int32, wrong: NDArray[np.bool_], nodes: NDArray[np.integer]
) -> Iterable[tuple[int, float, int]]:
    """Yield (node, fraction of errors, number of rows) for each node of `nodes`.

    A row counts in its leaf and in all nodes above it. tree: the tree; leaf: node number of
    the leaf that each row reaches, (n,); wrong: whether each row is an error, (n,); nodes: node
    numbers. The fraction is 0 for a node without rows.
    """
    outcomes = count_by_leaf(tree, leaf, wrong.astype(np.int32), None, 2).counts[nodes]
    of_each = _compute_risks(outcomes.sum(axis=1), outcomes[:, 1])
    return ((node, *of) for node, of in zip(nodes.tolist(), of_each, strict=True))
