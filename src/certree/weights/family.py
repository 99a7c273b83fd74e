"""Posteriors over all prunings of a tree: the probability that a node is a leaf.

A posterior weighs every pruning by the product, over its leaves v, of ``exp(own(v))``. The sums of such
products over all prunings obey a recursion, so one pass up the tree and one down give every node's
probability of being a leaf. A node that stands for a chain of k cells with the same rows is k places
to stop, one of which a pruning picks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from certree._core import judged_votes, score_grid, weigh
from certree.interface.arrays import (
    MAX_SETTING,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_column,
    freeze,
    make_zeros,
    to_array,
)
from certree.interface.signatures import validate_arguments
from certree.stats import Stats
from certree.tree import LEAF, Tree, Trees
from certree.weights.node_weights import NodeWeights

Scoring = Literal["error", "log_loss", "squared"]

# What a leaf pays. For a numeric target "error" stands for the sum of squares.
LossName = Literal["error", "log_loss"]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedVotes:
    """What nodes vote for, and rows that judge it.

    Parameters
    ----------
    label : ndarray of int32, shape (m,), or None
        What nodes vote for, unless `values` are given.
    values : ndarray of float64, shape (m, K), entries and smoothing, or None
        How nodes spread their votes, or the means that they predict.
    judging : ndarray of float64, shape (m, K) or (m, 3), or entries
        What `Stats.table` says of the validation samples.
    """

    label: Int32 | None
    values: Any
    judging: Any

    def in_unit(self, unit: float) -> JudgedVotes:
        """The same of numbers in another unit."""
        return JudgedVotes(None, self.values / unit, self.judging / [1.0, unit, unit**2])

    def in_bytes(self) -> tuple[bytes, ...]:
        """What tells votes and rows of one target from those of another."""
        said: Any = self.label if self.values is None else self.values
        return said.tobytes(), self.judging.tobytes()


class Tunable(Protocol):
    """What temperatures choose from: a posterior or a pruning for each tuple of them."""

    @property
    def at(self) -> Callable[..., NodeWeights]:
        """The posterior of one tuple of temperatures."""

    def losses(
        self, temperatures: Float64, votes: JudgedVotes, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Loss of the vote of each posterior on validation samples; see `Family`."""


@dataclass(frozen=True, slots=True, eq=False)
class Family(ArrayRecord):
    """The posteriors, or prunings, that a method can choose from: one for each tuple of temperatures.

    ``own(v) = sum_f theta[f] F_f(v)``, where the first entries of theta are the temperatures with a
    minus sign and the others are fixed. Only the gains of F are stored.

    Parameters
    ----------
    tree : Tree or Trees
        The tree, or several: a posterior over prunings of all of them.
    gains : ndarray of float64, shape (m, f)
        ``F(left) + F(right) - F(v)``; 0 at leaves.
    root : ndarray of float64, shape (f,)
        F of the root, or the sum over all roots.
    fixed : ndarray of float64, shape (f - t,)
        The part of theta that no temperature sets.
    stops : ChainStops
        What chains and a prior on decisions add.
    prune : bool
        Whether to take the best pruning instead of averaging over all.
    """

    tree: Trees
    gains: Float64
    root: Float64
    fixed: Float64
    stops: ChainStops
    prune: bool = False

    def __post_init__(self) -> None:
        self._check("float64", (None,), "root", "fixed")
        self._check("float64", (self.tree.n_nodes, len(self.root)), "gains")

    @property
    def n_temperatures(self) -> int:
        """Number of temperatures, t."""
        return len(self.root) - len(self.fixed)

    def theta(self, temperatures: Float64) -> Float64:
        """Rows of theta for rows of temperatures, (g, t) -> (g, f)."""
        fixed = np.broadcast_to(self.fixed, (len(temperatures), len(self.fixed)))
        return np.ascontiguousarray(np.hstack([-temperatures, fixed]), dtype=np.float64)

    def at(self, *temperatures: float) -> NodeWeights:
        """Solve for one posterior: O(m) time."""
        theta = self.theta(np.array([temperatures], dtype=np.float64))[0]
        stops = self.stops
        weight, log_odds, evidence = weigh(
            self.tree.left,
            self.gains,
            stops.log_total,
            stops.log_split,
            theta,
            self.root,
            self.prune,
        )
        if self.prune:
            return NodeWeights.from_checked(weight, log_odds, 0.0, *2 * [make_zeros(len(weight))])
        if evidence == -np.inf:
            raise ValueError("log_own forbids every pruning of the tree")
        return NodeWeights.from_checked(weight, log_odds, evidence, stops.entropy, stops.mode)

    def losses(
        self, temperatures: Float64, votes: JudgedVotes, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Loss of the vote of each posterior on validation samples, for all temperatures in one call.

        Parameters
        ----------
        temperatures : ndarray of float64, shape (g, t)
            One posterior a row.
        votes : JudgedVotes
            What nodes vote for, and the rows that judge it.
        scoring : {"error", "log_loss", "squared"}
            The loss; squared for numeric targets.
        n_threads : int
            Number of threads; the losses do not depend on it.

        Returns
        -------
        ndarray of float64, shape (g,)
            Losses, summed over the validation samples.
        """
        return score_grid(**self._judged(temperatures, votes, n_threads), loss=scoring)

    def judged_votes(
        self, temperatures: Float64, votes: JudgedVotes, scoring: Scoring, n_threads: int
    ) -> tuple[Float64, Float64, Float64]:
        """What the vote of each posterior gives to the validation samples; see `losses`.

        Returns
        -------
        rows : ndarray of float64, shape (a,)
            Weight of the rows of one class in one leaf; for numbers, of the rows in one leaf.
        truth : ndarray of float64, shape (a,)
            1; for numbers, the mean of these rows.
        given : ndarray of float64, shape (a, g)
            Share of that class in each posterior's vote there, or the number that it predicts.
        """
        return judged_votes(**self._judged(temperatures, votes, n_threads), loss=scoring)

    def _judged(self, temperatures: Float64, votes: JudgedVotes, n_threads: int) -> dict[str, Any]:
        """The posteriors and what they vote with, as the core takes them."""
        return {
            "left": self.tree.left,
            "gains": self.gains,
            "stop": self.stops.log_total,
            "split": self.stops.log_split,
            "theta": self.theta(temperatures),
            "prune": self.prune,
            "label": votes.label,
            "frequency": votes.values,
            "judging": votes.judging,
            "n_threads": n_threads,
        }


@dataclass(frozen=True, slots=True, eq=False)
class ChainStops(ArrayRecord):
    """How a posterior may stop inside the chain of each node, apart from what its rows say.

    The j-th cell of a chain has log weight ``log_stop + j log_split``, but the last cell of a leaf
    ``j log_split`` alone if stopping there is free.

    Parameters
    ----------
    log_total : ndarray of float64, shape (m,)
        Log of the sum of these weights.
    log_split : ndarray of float64, shape (m,)
        Log weight of passing the whole chain.
    entropy, mode : ndarray of float64, shape (m,)
        Entropy and largest log probability of the cell at which the posterior stops.
    """

    log_total: Float64
    log_split: Float64
    entropy: Float64
    mode: Float64

    def __post_init__(self) -> None:
        m = len(self.log_total)
        self._check("float64", (m,), "log_total", "log_split", "entropy", "mode")


def chain_stops(
    tree: Trees, log_split: float | Float64 = 0.0, log_stop: float = 0.0, free_end: bool = False
) -> ChainStops:
    """Sum up the stops inside the chains of a tree."""
    m = len(tree.left)
    ends = tree.left == LEAF if free_end else np.zeros(m, dtype=bool)
    total = np.where(ends, 0.0, log_stop) if log_stop else np.zeros(m)
    with np.errstate(over="ignore"):
        passed: Float64 = np.multiply(log_split, tree.chain) if np.any(log_split) else np.zeros(m)
    entropy = mode = make_zeros(m)
    long = np.flatnonzero(tree.chain > 1)
    if len(long):
        kinds = np.empty(len(long), dtype=np.complex128)  # sorted faster than rows of a table
        kinds.real = 2 * tree.chain[long] + ends[long]
        kinds.imag = np.broadcast_to(log_split, (m,))[long]
        kinds, kind = np.unique(kinds, return_inverse=True)
        entropy, mode = np.zeros(m), np.zeros(m)
        length, odd = np.divmod(kinds.real.astype(np.int64), 2)
        sums = _stops_of(length, kinds.imag, odd > 0, log_stop)
        for of_nodes, of_kinds in zip((total, entropy, mode), sums, strict=True):
            of_nodes[long] = of_kinds[kind]
        entropy, mode = freeze(entropy), freeze(mode)
    return ChainStops.from_checked(total, passed, entropy, mode)


def _stops_of(
    length: Int64, log_split: Float64, free_end: NDArray[np.bool_], log_stop: float
) -> tuple[Float64, Float64, Float64]:
    """Log sum, entropy and largest log share of the stops in each of some kinds of chains."""
    first = np.cumsum(length) - length  # where the cells of a chain begin
    steps = np.arange(length.sum()) - np.repeat(first, length)
    # 0 times -inf is meant to be 0: nothing has been passed yet.
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float64 a weight is 0, or alone
        cells = log_stop + np.where(steps > 0, steps * np.repeat(log_split, length), 0.0)
    cells[(first + length - 1)[free_end]] -= log_stop
    largest = np.maximum.reduceat(cells, first)
    cells -= np.repeat(largest, length)
    log_sum = np.log(np.add.reduceat(np.exp(cells), first))
    shares = cells - np.repeat(log_sum, length)
    entropy = np.add.reduceat(entr(np.exp(shares)), first)
    return largest + log_sum, entropy, np.maximum.reduceat(shares, first)


def gains_of(tree: Trees, values: Float64, unit: float = 1.0) -> Float64:
    """``(values(left) + values(right) - values(v)) / unit`` for every node, 0 at leaves: (m,) -> (m,).

    Differences of integers are exact, so that a split that gains nothing gains exactly 0.
    """
    gains = np.zeros(len(tree.left))
    inner = np.flatnonzero(tree.left != LEAF)
    child = tree.left[inner]
    gains[inner] = (values[child] + values[child + 1] - values[inner]) / unit
    return gains


def loss_family(
    tree: Tree,
    stats: Stats,
    n_terms: int,
    fixed: list[float],
    stops: ChainStops,
    empty_leaves: bool = False,
    loss: LossName = "error",
) -> Family:
    """Posteriors with terms in the loss, the square root of the rows and, if there are three, leaves.

    Leaves without rows count if `empty_leaves` says so.
    """
    gains, root = stats.of(tree).terms(tree, n_terms, empty_leaves)
    if loss == "log_loss":
        nats = getattr(stats, "log_loss", None)
        if nats is None:
            raise ValueError('a numeric target takes loss="error", got "log_loss"')
        unit = stats.weight_unit
        gains = np.column_stack([gains_of(tree, nats, unit), gains[:, 1:]])
        root = np.append(nats[:1] / unit, root[1:])
    elif loss != "error":
        raise ValueError(f'loss must be "error" or "log_loss", got {loss!r}')
    return Family.from_checked(tree, gains, root, np.array(fixed, dtype=np.float64), stops, False)


@validate_arguments
def average(tree: Tree, log_own: ArrayLike, log_split: float | ArrayLike = 0.0) -> NodeWeights:
    """Average over all prunings, with any weights that multiply over cells.

    A pruning's weight is ``exp(sum of log_own over its leaves + sum of log_split over its internal
    cells)``. Every cell of a chain counts.

    Parameters
    ----------
    tree : Tree
        The tree.
    log_own : array-like of shape (m,)
        Log weight of a node as a leaf (nats); -inf forbids it.
    log_split : float or array-like of shape (m,)
        Log weight of a cell of the node as an internal one (nats).

    Returns
    -------
    NodeWeights
        The error of a weight is below 1e-10 + 16 eps max|log_own|.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If a log weight is NaN, +inf or larger than 1e150 in size, or every pruning is forbidden.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 4.
    """
    own: Float64 = check_column("log_own", log_own, "float64", (tree.n_nodes,))
    given = to_array("log_split", log_split)
    split: Float64 = check_column("log_split", given, "float64", given.shape and (tree.n_nodes,))
    split = np.broadcast_to(split, (tree.n_nodes,))
    for name, values in (("log_own", own), ("log_split", split)):
        if (np.isnan(values) | ((np.abs(values) > MAX_SETTING) & (values != -np.inf))).any():
            raise ValueError(f"{name} must be finite or -inf, and at most {MAX_SETTING:g} in size")
    stops = chain_stops(tree, split)
    allowed = own > -np.inf
    finite = np.where(allowed, own, 0.0)
    log_total = np.where(allowed, stops.log_total, -np.inf)
    stops = ChainStops(log_total, stops.log_split, stops.entropy, stops.mode)
    gains = gains_of(tree, finite)[:, None]
    return Family(tree, gains, finite[:1], np.array([1.0]), stops).at()
