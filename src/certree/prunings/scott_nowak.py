"""Prunings by the penalties of Scott and Nowak: roots of the size of the tree, or of subtrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from math import ceil, comb, e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from certree._core import find_fragment_pruning
from certree.grow.dyadic import dyadic_resolution, get_resolution
from certree.grow.grower import Grower
from certree.interface.arrays import ArrayRecord, Float64, check_nonnegative
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_arguments
from certree.prunings.leaf_losses import compute_leaf_losses
from certree.prunings.paths import (
    PruningPath,
    compute_leaf_gains,
    cost_complexity_path,
)
from certree.prunings.penalties import check_cost
from certree.prunings.rule import PruningRule
from certree.stats import Stats
from certree.tree import Tree
from certree.weights.family import Scoring, ValidationStatistics, compute_gains
from certree.weights.node_weights import NodeWeights, make_pruning

# Largest smoothness of a boundary for which the number of coefficients does not overflow float64.
_MAX_SMOOTHNESS = 50


def _count_rows(stats: Stats) -> float:
    """Return the number of rows of the tree, at least 1.

    The number is the weight of the root, divided by the mean weight of a row, `weight_unit`. stats:
    statistics of the nodes, of which node 0 is the root.
    """
    return max(float(stats.n[0]) / stats.weight_unit, 1.0)


def _count_leaves(stats: Stats, leaf_gains: Float64) -> float:
    """Return the number of leaves of the whole tree, at least 1.

    It is 1 for the root, if it has rows, plus the sum of `leaf_gains`. stats: statistics of the m
    nodes; leaf_gains: how many leaves splitting each node adds, (m,). Whether leaves without rows
    are counted depends on whether `leaf_gains` counts them.
    """
    return max(float(stats.n[0] > 0) + float(leaf_gains.sum()), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class SquareRootPrunings:
    """The prunings with a penalty on the root of the number of leaves: one for each factor alpha.

    A pruning is the tree with some nodes turned into leaves. All of these prunings are on one
    cost-complexity path: the nested prunings with the smallest errors plus a price per leaf. The
    pruning of an alpha has the smallest cost (its errors or loss, as a number of rows) plus alpha
    times penalty, which is ``sqrt(32 n log(e n))`` times the square root of its number of leaves,
    for n rows.

    Parameters
    ----------
    path : PruningPath
        The path, of s prunings.
    costs, penalties : ndarray of float64, shape (s,)
        Cost and penalty of each pruning of the path, from the largest to the smallest.
    """

    path: PruningPath
    costs: Float64
    penalties: Float64

    def find_step(self, alpha: float) -> int:
        """Return the number of the pruning of the path with the smallest ``cost + alpha * penalty``.

        alpha: factor of the penalty, >= 0. The prunings are numbered 0, 1, ... from the largest to
        the smallest, and have their costs and penalties in the fields `costs` and `penalties`. On
        ties the number is that of the smallest pruning.
        """
        total = self.costs + alpha * self.penalties
        return len(total) - 1 - int(np.argmin(total[::-1]))

    def solve(self, alpha: float) -> NodeWeights:
        """Return the pruning of the path with the smallest ``cost + alpha * penalty``.

        alpha: factor of the penalty, >= 0. The pruning has weight 1 at its leaves and 0 elsewhere.
        On ties it is the smallest tree.
        """
        return self.path.pruning(self.find_step(alpha))

    def compute_losses(
        self, temperatures: Float64, votes: ValidationStatistics, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Compute the validation loss of the prunings for several alphas, (g,).

        A pruning is the tree with some nodes turned into leaves; alpha is the factor of its
        penalty. Losses are summed over the validation set. temperatures: the alphas of g prunings,
        (g, 1); votes: the prediction of each node as a leaf, and statistics of the validation set;
        scoring: the loss, "error" (weight of misclassified rows), "log_loss" (nats) or "squared"
        (numeric targets); n_threads: not used.
        """
        alphas = self.path.alphas[[self.find_step(alpha) for alpha in temperatures[:, 0]]]
        return self.path.compute_losses(alphas[:, None], votes, scoring, n_threads)


@validate_arguments
def square_root_penalised(
    tree: Tree, stats: Stats, alpha: float = 1.0, *, count_empty: bool = False
) -> NodeWeights:
    """Find the pruning with the smallest error plus a penalty proportional to the root of its size.

    A pruning is the tree with some nodes turned into leaves. The one that is found minimises ``err
    / n + alpha * sqrt(32 log(e n) / n) * sqrt(leaves)``, where err is the number of errors (or the
    loss) among n rows. The penalty is concave in the size, so the optimum is a cost-complexity
    pruning and is found along that path, in O(m log m) time for m nodes.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats, TargetStats or SeveralStats
        Loss and number of rows of each node.
    alpha : float
        Factor of the penalty, >= 0; 1 in Scott and Nowak (2003).
    count_empty : bool
        Whether leaves without rows count, also those inside chains (nodes that stand for several
        nested regions with the same rows), as in Scott and Nowak (2003).

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties the smaller tree.

    Raises
    ------
    ValueError
        If alpha is negative or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (1).
    """
    return SquareRoot(count_empty).family(tree, stats).solve(check_nonnegative("alpha", alpha))


@dataclass(frozen=True, slots=True, eq=False)
class FragmentPrunings(ArrayRecord):
    """The prunings with the smallest cost + alpha * penalty, one for each factor alpha.

    A pruning is the tree with some nodes turned into leaves. A root fragment of a pruning is the
    part around the root that remains if more nodes become leaves. Each root fragment has a sum over
    its leaves, and the penalty of the pruning is the smallest of these sums, that of its cheapest
    root fragment. `fragment_prunings` makes the object; its method `solve` returns the pruning for
    an alpha, and `fragment` the cheapest root fragment of that pruning.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    cost_gains : ndarray of float64, shape (m,)
        Cost (errors or loss, as a number of rows) of the two children of each node as leaves, minus
        that of the node; 0 at leaves.
    leaf_gains : ndarray of float64, shape (m,)
        Number of leaves that splitting each node adds.
    chain_leaves : ndarray of float64, shape (m,)
        Number of these leaves that hold no rows, as they lie inside the chain of the node: the
        nested regions with the same rows for which the node stands.
    size_penalty, cell_penalty : ndarray of float64, shape (m,)
        A leaf v of a root fragment adds alpha (the factor of the penalty) times ``size_penalty[v]
        sqrt(leaves of the pruning below v) + cell_penalty[v]`` to the sum.
    """

    tree: Tree
    cost_gains: Float64
    leaf_gains: Float64
    chain_leaves: Float64
    size_penalty: Float64
    cell_penalty: Float64

    def __post_init__(self) -> None:
        names = (field.name for field in fields(self) if field.name != "tree")
        self._check("float64", (self.tree.n_nodes,), *names)

    def solve(self, alpha: float) -> NodeWeights:
        """Return the pruning with the smallest cost plus alpha times penalty, for an alpha >= 0.

        The cost is its errors (or loss), as a number of rows. The penalty is that of its cheapest
        root fragment: the part around the root that remains if some nodes of the pruning become
        leaves. The result has weight 1 at the leaves of the pruning and 0 elsewhere. On ties a node
        is not split.
        """
        return make_pruning(self.tree, self._classify_nodes(alpha) > 0)

    def fragment(self, alpha: float) -> NodeWeights:
        """Return the cheapest root fragment of the best pruning for the factor `alpha` of the penalty.

        alpha: a number >= 0. The best pruning is that of `solve`. A root fragment is the part of it
        around the root that remains if some of its nodes become leaves, so a pruning as well: the
        result has weight 1 at its leaves and 0 elsewhere. The cheapest one determines the penalty.
        """
        return make_pruning(self.tree, self._classify_nodes(alpha) > 1)

    def _classify_nodes(self, alpha: float) -> NDArray[np.uint8]:
        """Return for each node whether the best pruning and its cheapest fragment split it, (m,) uint8.

        An entry is 2 if both split the node, 1 if only the pruning does, and 0 if neither does. The
        pruning is the subtree with the smallest cost plus alpha times penalty; the fragment is the
        part of it around the root that determines the penalty. alpha: factor of the penalty, >= 0.
        """
        return find_fragment_pruning(
            self.tree.left,
            self.cost_gains,
            self.leaf_gains,
            self.chain_leaves,
            alpha * self.size_penalty,
            alpha * self.cell_penalty,
        )

    def compute_losses(
        self,
        temperatures: Float64,
        votes: ValidationStatistics,
        scoring: Scoring,
        n_threads: int,  # noqa: ARG002 -- part of the protocol `TuningCandidates`, but not needed here
    ) -> Float64:
        """Compute the validation loss of the prunings for several alphas, (g,).

        A pruning is the tree with some nodes turned into leaves; alpha is the factor of its
        penalty. Losses are summed over the validation set. temperatures: the alphas of g prunings,
        (g, 1); votes: the prediction of each node as a leaf, and statistics of the validation set;
        scoring: the loss, "error" (weight of misclassified rows), "log_loss" (nats) or "squared"
        (numeric targets); n_threads: not used.
        """
        return self.compute_totals(compute_leaf_losses(votes, scoring), temperatures)

    def compute_totals(self, loss: Float64, temperatures: Float64) -> Float64:
        """Sum a loss over the leaves of the prunings for several alphas, (g,).

        A pruning is the tree with some nodes turned into leaves; alpha is the factor of its
        penalty. loss: loss of each node as a leaf, (m,); temperatures: the alphas of g prunings,
        (g, 1).
        """
        return np.array([self.solve(alpha).weight @ loss for alpha in temperatures[:, 0]])


def fragment_prunings(
    tree: Tree,
    stats: Stats,
    *,
    smoothness: float | None = None,
    log_cells: float | None = None,
    count_empty: bool = False,
    cost: ArrayLike | None = None,
) -> FragmentPrunings:
    """Compute the prunings with the smallest cost plus the penalty of their cheapest root fragment.

    A pruning is the tree with some nodes turned into leaves; a root fragment of it is the part
    around the root that remains if more nodes become leaves. There is one pruning for each alpha,
    the factor of the penalty. A leaf v of the fragment, with n(v) of the n rows and T(v) leaves of
    the pruning in v, adds ``sqrt(48 n(v) V T(v) log(2 n)) + sqrt(48 n(v) (1 + smoothness / p)
    log_cells)`` to the penalty. V is the number of coefficients of a polynomial in p features of
    the largest degree below the smoothness. Without a smoothness V is 1, and so is the factor ``1 +
    smoothness / p``.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    stats : Stats
        Loss and number of rows of each node.
    smoothness : float or None
        Hoelder exponent of the boundary between classes, >= 1; None for `spatially_adaptive`.
    log_cells : float or None
        Log of the number of the smallest regions (nats), ``p log(k)`` for a grid with k intervals
        per feature. None: log of the number of leaves of the tree.
    count_empty : bool
        Whether leaves without rows count, also those inside chains (nodes that stand for several
        nested regions with the same rows).
    cost : array-like of shape (m,), or None
        Cost of each node as a leaf, such as its errors; None: its loss.

    Returns
    -------
    FragmentPrunings
        Its method `solve` returns the pruning for an alpha >= 0.
    """
    leaf_gains = compute_leaf_gains(tree, stats.check_tree(tree), count_empty)
    log_regions = (
        log(_count_leaves(stats, leaf_gains))
        if log_cells is None
        else check_nonnegative("log_cells", log_cells)
    )
    n_coefficients = 1.0
    if smoothness is not None:
        gamma, p = _check_smoothness(smoothness), tree.n_features
        degree = ceil(gamma) - 1
        n_coefficients = float(comb(p + degree, degree))
        log_regions *= 1 + gamma / p
    unit = stats.weight_unit
    root_rows = np.sqrt(stats.n / unit)
    return FragmentPrunings(
        tree,
        compute_gains(tree, stats.loss if cost is None else check_cost(tree, cost), unit),
        leaf_gains,
        np.where(tree.is_leaf | (not count_empty), 0.0, tree.chain - 1.0),
        root_rows * sqrt(48 * n_coefficients * log(2 * _count_rows(stats))),
        root_rows * sqrt(48 * log_regions),
    )


def _check_smoothness(smoothness: object) -> float:
    """Return `smoothness`, a number, as a float; raise ValueError unless it lies in 1 .. 50.

    smoothness: Hoelder exponent of the boundary between classes.
    """
    gamma = check_nonnegative("smoothness", smoothness)
    if not 1 <= gamma <= _MAX_SMOOTHNESS:
        raise ValueError(f"smoothness must lie in 1 .. {_MAX_SMOOTHNESS}, got {smoothness!r}")
    return gamma


@validate_arguments
@copy_descriptions_from(square_root_penalised, fragment_prunings)
def spatially_adaptive(
    tree: Tree,
    stats: Stats,
    alpha: float = 1.0,
    *,
    log_cells: float | None = None,
    count_empty: bool = False,
) -> NodeWeights:
    """Find the pruning with the smallest error plus the penalty of its cheapest root fragment.

    A pruning T is the tree with some nodes turned into leaves; a root fragment R of T is the part
    around the root that remains if more nodes become leaves. A leaf v of R holds n(v) of the n
    rows, and T has T(v) leaves in v. The penalty of T is the smallest over all R of ``alpha / n *
    sum over leaves v of R of (sqrt(48 n(v) T(v) log(2 n)) + sqrt(48 n(v) log_cells))``. alpha is
    the factor of the penalty, `log_cells` the log of the number of the smallest regions, and
    `count_empty` whether leaves without rows count. The best T and R are found exactly, in nearly
    linear time.

    Parameters
    ----------
    {tree} {stats} {alpha} {log_cells} {count_empty}

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties a node is not split.

    Raises
    ------
    ValueError
        If alpha or `log_cells` is negative or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (2).
    """
    prunings = fragment_prunings(tree, stats, log_cells=log_cells, count_empty=count_empty)
    return prunings.solve(check_nonnegative("alpha", alpha))


@validate_arguments
@copy_descriptions_from(square_root_penalised, fragment_prunings)
def polynomial_penalised(
    tree: Tree,
    stats: Stats,
    smoothness: float,
    alpha: float = 1.0,
    *,
    log_cells: float | None = None,
    count_empty: bool = False,
    cost: ArrayLike | None = None,
) -> NodeWeights:
    """Find the pruning with the smallest error plus the penalty for polynomials in its leaves.

    A pruning T is the tree with some nodes turned into leaves; a root fragment R of T is the part
    around the root that remains if more nodes become leaves. A leaf v of R holds n(v) of the n
    rows, and T has T(v) leaves in v. The penalty of T is the smallest over all R of ``alpha / n *
    sum over leaves v of R of (sqrt(48 n(v) V T(v) log(2 n)) + sqrt(48 n(v) (1 + smoothness / p)
    log_cells))``. alpha is the factor of the penalty, `log_cells` the log of the number of the
    smallest regions, and `count_empty` whether leaves without rows count. V is the number of
    coefficients of a polynomial in p features of the largest degree below the smoothness.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    {stats}
    smoothness : float
        Hoelder exponent of the boundary between classes, in 1 .. 50. A boundary with k derivatives,
        of which the last has the Hoelder exponent a, has the smoothness k + a.
    {alpha} {log_cells} {count_empty}
    cost : array-like of shape (m,), or None
        Errors of each node as a leaf, for instance those of a polynomial fitted to its rows. Any
        finite numbers are allowed; children may have more errors than their parent. None: the loss
        of the node, which predicts a constant.

    Returns
    -------
    NodeWeights
        The pruning, with weight 1 at its leaves and 0 elsewhere. On ties a node is not split.

    Raises
    ------
    TypeError
        If the dtype of `cost` does not convert without loss.
    ValueError
        If a number is out of range or not finite.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, equation (3).
    """
    prunings = fragment_prunings(
        tree, stats, smoothness=smoothness, log_cells=log_cells, count_empty=count_empty, cost=cost
    )
    return prunings.solve(check_nonnegative("alpha", alpha))


class ScottNowakRule(PruningRule):
    """Base class of the pruning rules of Scott and Nowak, which set how often a feature is halved.

    The rules are those of "Near-minimax optimal classification with dyadic classification trees",
    NIPS 2003. Their theorems are on dyadic trees, which halve each feature equally often: that
    number is the resolution of the grower (the object that grows the tree). `count_empty`, a
    parameter of each rule, is whether leaves without rows count in the penalty. The base class has
    no arguments. A subclass defines the methods `exponent`, which gives the resolution, and
    `family`, which returns the prunings for all factors of the penalty.
    """

    count_empty: bool

    def exponent(self, n_features: int) -> float:
        """Return the exponent of the resolution in the rule's theorem; subclasses implement it.

        The resolution, the number of intervals per feature of the theorem's tree, is ``(n / log
        n)^exponent`` for n rows. n_features: number of features.
        """
        raise NotImplementedError

    def family(
        self, tree: Tree, stats: Stats, exponent: float | None = None
    ) -> SquareRootPrunings | FragmentPrunings:
        """Return the prunings with the smallest errors + alpha * penalty, for all alphas >= 0.

        A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: statistics
        of its nodes, such as class counts (`NodeStats`); exponent: that of ``(n / log
        n)^exponent``, the number of intervals per feature, for n rows, in which the tree was grown
        (its resolution), or None for a tree that was grown without a resolution. The returned
        object's method `solve` returns the pruning for an alpha. Each rule, a subclass, implements
        this method and returns one of the two types.
        """
        raise NotImplementedError

    def match_grower(self, grower: Grower, n_features: int) -> tuple[Callable[..., Any], Grower]:
        """Return the method `family` and the tree grower, with the same number of halvings per feature.

        A grower is the object that grows the tree. If its parameter `resolution` is None, it and
        `family` are returned as they are. Otherwise it is cloned, and its parameter `exponent`, in
        ``(n / log n)^exponent`` intervals per feature for n rows, is set to that of the rule's
        theorem if it is None. `family` then uses the same exponent. For a `Grid`, which halves a
        fixed box, `family` also counts leaves without rows.

        Parameters
        ----------
        grower : Grower
            The grower of the estimator.
        n_features : int
            Number of features, p.

        Returns
        -------
        family : callable
            ``family(tree, stats)`` returns the prunings of a tree (subtrees with the same root) for
            all alphas, the factors of the penalty.
        grower : Grower
            The grower that shall grow the tree.
        """
        if get_resolution(grower) is None:
            return self.family, grower
        with_exponent = clone(grower)
        if with_exponent.exponent is None:
            with_exponent.exponent = self.exponent(n_features)
        if with_exponent.depends_on_rows:
            return partial(self.family, exponent=with_exponent.exponent), with_exponent
        # The tree of a fixed grid has all regions, also those without rows, so all its leaves count.
        rule = clone(self)
        rule.count_empty = True
        return rule.family, with_exponent


class SquareRoot(ScottNowakRule):
    """Pruning rule of Scott and Nowak (2003), equation (1): a penalty on the root of the size.

    A pruning is the tree with some nodes turned into leaves. The rule chooses the pruning that
    minimises ``err / n + alpha * sqrt(32 log(e n) / n) * sqrt(leaves)``; err is the number of
    errors (or the loss) among n rows, leaves the number of leaves. The estimator chooses alpha, the
    factor of the penalty.

    Parameters
    ----------
    count_empty : bool, default=False
        Whether leaves without rows count, also those inside chains (nodes that stand for several
        nested regions with the same rows), as in Scott and Nowak (2003). They always count if the
        tree is grown by ``Grid(box, resolution="paper")``.
    """

    def __init__(self, count_empty: bool = False) -> None:
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """Return the exponent of the resolution in the rule's theorem: 1 / (p + 1), p = `n_features`.

        The resolution, the number of intervals per feature of the theorem's tree, is ``(n / log
        n)^exponent`` for n rows.
        """
        return 1 / (n_features + 1)

    def family(
        self,
        tree: Tree,
        stats: Stats,
        exponent: float | None = None,  # noqa: ARG002 -- this penalty has no term with the resolution
    ) -> SquareRootPrunings:
        """Return the prunings with the smallest errors + alpha * penalty, for all alphas >= 0.

        A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: statistics
        of its nodes, such as class counts (`NodeStats`); exponent: not used.
        `SquareRootPrunings.solve` returns the pruning for an alpha. The penalty of a pruning is
        ``sqrt(32 n log(e n))`` times the root of its number of leaves.
        """
        path = cost_complexity_path(tree, stats, count_empty=self.count_empty)
        loss, unit = stats.loss, stats.weight_unit
        leaf_gains = compute_leaf_gains(tree, stats, self.count_empty)
        full_loss = loss[tree.is_leaf].sum() / unit
        costs = path.compute_totals(full_loss, compute_gains(tree, loss, unit), path.alphas)
        sizes = path.compute_totals(_count_leaves(stats, leaf_gains), leaf_gains, path.alphas)
        n = _count_rows(stats)
        return SquareRootPrunings(path, costs, np.sqrt(32 * n * log(e * n) * sizes))


@copy_descriptions_from(SquareRoot)
class SpatiallyAdaptive(ScottNowakRule):
    """Pruning rule of Scott and Nowak (2003), equation (2): the spatially adaptive penalty.

    A root fragment of a pruning is the part around the root that remains if some of its nodes
    become leaves. The penalty sums over the leaves v of the cheapest fragment a multiple of
    ``sqrt(rows in v * leaves of the pruning below v)`` and one of ``sqrt(rows in v)``; the factors
    are those of `spatially_adaptive`, ``sqrt(48 log(2 n))`` and ``sqrt(48 log_cells)``, with n rows
    and the log of the number of the smallest regions. The parameter `count_empty` is whether leaves
    without rows count. The estimator chooses alpha, the factor of the penalty.

    Parameters
    ----------
    {count_empty}
    """

    def __init__(self, count_empty: bool = False) -> None:
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """Return the exponent of the resolution in the rule's theorem: 1 / p, p = `n_features`.

        The resolution, the number of intervals per feature of the theorem's tree, is ``(n / log
        n)^exponent`` for n rows.
        """
        return 1 / n_features

    def family(self, tree: Tree, stats: Stats, exponent: float | None = None) -> FragmentPrunings:
        """Return the prunings with the smallest errors + alpha * penalty, for all alphas >= 0.

        A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: statistics
        of its nodes, such as class counts (`NodeStats`); exponent: that of ``(n / log
        n)^exponent``, the number of intervals per feature, for n rows, in which the tree was grown
        (its resolution), or None for a tree that was grown without a resolution.
        `FragmentPrunings.solve` returns the pruning for an alpha.
        """
        log_cells = _compute_log_cells(tree, _count_rows(stats), exponent)
        return fragment_prunings(tree, stats, log_cells=log_cells, count_empty=self.count_empty)


@copy_descriptions_from(SquareRoot)
class Polynomial(ScottNowakRule):
    """Pruning rule of Scott and Nowak (2003), equation (3): the penalty for polynomials in leaves.

    The rule does not fit polynomials: leaves predict constants, and only the penalty is the one of
    polynomials. A root fragment of a pruning is the part around the root that remains if some of
    its nodes become leaves. The penalty sums over the leaves v of the cheapest fragment a multiple
    of ``sqrt(rows in v * leaves of the pruning below v)`` and one of ``sqrt(rows in v)``. The first
    factor grows with the number of coefficients of a polynomial. `polynomial_penalised` states the
    formula. The parameter `count_empty` is whether leaves without rows count. The estimator chooses
    alpha, the factor of the penalty.

    Parameters
    ----------
    smoothness : float, default=2
        Hoelder exponent of the boundary between classes, >= 1. A boundary with k derivatives, of
        which the last has the Hoelder exponent a, has the smoothness k + a. The polynomials have
        the largest degree below it.
    {count_empty}
    """

    def __init__(self, smoothness: float = 2, count_empty: bool = False) -> None:
        self.smoothness = smoothness
        self.count_empty = count_empty

    def exponent(self, n_features: int) -> float:
        """Return the exponent of the resolution in the rule's theorem: 1 / (p + 2 smoothness - 2).

        p is `n_features`. The resolution, the number of intervals per feature of the theorem's
        tree, is ``(n / log n)^exponent`` for n rows. Raise ValueError if the parameter `smoothness`
        is not in 1 .. 50.
        """
        return 1 / (n_features + 2 * _check_smoothness(self.smoothness) - 2)

    def family(
        self,
        tree: Tree,
        stats: Stats,
        exponent: float | None = None,
        cost: ArrayLike | None = None,
        n_grown: float | None = None,
    ) -> FragmentPrunings:
        """Return the prunings with the smallest errors + alpha * penalty, for all alphas >= 0.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        tree : Tree
            The tree, of m nodes.
        stats : Stats
            Statistics of its nodes.
        exponent : float or None
            Exponent of ``(n / log n)^exponent``, the number of intervals per feature, for n rows,
            in which the tree was grown (its resolution); None for a tree that was grown without a
            resolution.
        cost : array-like of shape (m,), or None
            Errors of each node as a leaf; None: its loss.
        n_grown : float or None
            Number of rows that the tree was grown on, from which the number of intervals is
            computed; None: the number of rows in `stats`.

        Returns
        -------
        FragmentPrunings
            Its method `solve` returns the pruning for an alpha.
        """
        n = _count_rows(stats) if n_grown is None else n_grown
        return fragment_prunings(
            tree,
            stats,
            smoothness=self.smoothness,
            log_cells=_compute_log_cells(tree, n, exponent),
            count_empty=self.count_empty,
            cost=cost,
        )


def _compute_log_cells(tree: Tree, n: float, exponent: float | None) -> float | None:
    """Return the log of the number of smallest regions (nats), if each feature is halved equally often.

    tree: the tree, for its number p of features; n: number of rows; exponent: that of ``(n / log
    n)^exponent``, the number of intervals per feature, whose log2, rounded down, is the number of
    halvings. The result is p log 2 times the number of halvings. Return None if the exponent is
    None: the tree was grown without such a number.
    """
    if exponent is None:
        return None
    p = tree.n_features
    return p * log(2) * dyadic_resolution(n, p, exponent)
