"""Laws over all prunings of a tree: the probability that a node is a leaf.

A law weighs every pruning by the product, over its leaves v, of ``exp(own(v))``. The sums of such
products over all prunings obey a recursion, so one pass up the tree and one down give every node's
probability of being a leaf. A node that stands for a chain of k cells with the same rows is k places
to stop, one of which a pruning picks.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, expit, log_softmax, logsumexp

from certree import _core
from certree.columns import Float64, Int32, column, nonnegative
from certree.stats import NodeStats, Stats
from certree.tree import LEAF, Tree

Prior = Literal["leaves", "branching"]
Scoring = Literal["error", "log_loss", "squared"]


@dataclass(frozen=True, slots=True, eq=False)
class NodeWeights:
    """A law over the prunings of a tree; one pruning is the law that always picks it.

    Parameters
    ----------
    weight : array-like of float, shape (m,)
        Probability that a node is a leaf of the pruning. Sums to 1 along every path from the root to
        a leaf of the tree.
    log_odds : array-like of float, shape (m,)
        Log odds that a node is split, once it is reached; -inf at leaves. Says the same as `weight`,
        also where `weight` underflows.
    log_evidence : float
        Log of the sum of all prunings' unnormalised weights (nats); 0 for one pruning and for a
        mixture of laws, which are normalised.
    chain_entropy : array-like of float, shape (m,)
        Entropy of the cell at which the pruning stops, given that it stops in the node's chain
        (nats).
    chain_mode : array-like of float, shape (m,)
        Log probability of the likeliest such cell (nats).

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If lengths differ, or `weight` holds no probabilities.
    """

    weight: Float64
    log_odds: Float64
    log_evidence: float
    chain_entropy: Float64
    chain_mode: Float64

    def __post_init__(self) -> None:
        m = len(np.asarray(self.weight))
        for name in ("weight", "log_odds", "chain_entropy", "chain_mode"):
            object.__setattr__(self, name, column(name, getattr(self, name), "float64", (m,)))
        if not ((self.weight >= 0) & (self.weight <= 1 + 1e-9)).all():
            raise ValueError("weight must hold probabilities")
        if np.isnan(self.log_odds).any():
            raise ValueError("log_odds must not be NaN")

    def of(self, tree: Tree) -> "NodeWeights":
        """Check that the weights belong to a tree of this size, and return them."""
        if len(self.weight) != tree.n_nodes:
            raise ValueError(
                f"weights has {len(self.weight)} nodes, but the tree has {tree.n_nodes} nodes"
            )
        return self

    @property
    def expected_leaves(self) -> float:
        """Expected number of leaves of the pruning."""
        return float(self.weight.sum())


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutVotes:
    """What nodes vote for, and held-out rows that judge it.

    Parameters
    ----------
    label : ndarray of int32, shape (m,), or None
        What nodes vote for, unless `values` are given.
    values : ndarray of float64, shape (m, K), or None
        How nodes spread their votes, or the means that they predict.
    holdout : ndarray of float64, shape (m, K) or (m, 3)
        The table of statistics of the judging rows in every node.
    """

    label: Int32 | None
    values: Float64 | None
    holdout: Float64


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """The laws, or the prunings, that a method can choose from: one for each tuple of temperatures.

    ``own(v) = sum_f theta[f] F_f(v)``, where the first entries of theta are the temperatures with a
    minus sign and the others are fixed. Only the gains of F are stored.

    Parameters
    ----------
    tree : Tree
        The tree.
    gains : ndarray of float64, shape (m, f)
        ``F(left) + F(right) - F(v)``; 0 at leaves.
    root : ndarray of float64, shape (f,)
        F of the root.
    fixed : ndarray of float64, shape (f - t,)
        The part of theta that no temperature sets.
    stops : ChainStops
        What chains and a prior on decisions add.
    prune : bool
        Whether to take the best pruning instead of averaging over all.
    """

    tree: Tree
    gains: Float64
    root: Float64
    fixed: Float64
    stops: "ChainStops"
    prune: bool = False

    @property
    def n_temperatures(self) -> int:
        """Number of temperatures, t."""
        return len(self.root) - len(self.fixed)

    def theta(self, temperatures: Float64) -> Float64:
        """Rows of theta for rows of temperatures, (g, t) -> (g, f)."""
        fixed = np.broadcast_to(self.fixed, (len(temperatures), len(self.fixed)))
        return np.ascontiguousarray(np.hstack([-temperatures, fixed]), dtype=np.float64)

    def at(self, *temperatures: float) -> NodeWeights:
        """Solve for one law: O(m) time."""
        theta = self.theta(np.array([temperatures], dtype=np.float64))[0]
        stops = self.stops
        weight, log_odds, evidence = _core.weigh(
            self.tree.left,
            self.gains,
            stops.log_total,
            stops.log_split,
            theta,
            np.ascontiguousarray(self.root, dtype=np.float64),
            self.prune,
        )
        if self.prune:
            return NodeWeights(weight, log_odds, 0.0, *2 * [np.zeros_like(weight)])
        if evidence == -np.inf:
            raise ValueError("log_own forbids every pruning of the tree")
        return NodeWeights(weight, log_odds, evidence, stops.entropy, stops.mode)

    def losses(
        self, temperatures: Float64, votes: HeldOutVotes, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Held-out loss of the vote of each law, for all rows of temperatures in one call.

        Parameters
        ----------
        temperatures : ndarray of float64, shape (g, t)
            One law a row.
        votes : HeldOutVotes
            What nodes vote for, and the rows that judge it.
        scoring : {"error", "log_loss", "squared"}
            The loss; squared for numeric targets.
        n_threads : int
            Number of threads; the losses do not depend on it.

        Returns
        -------
        ndarray of float64, shape (g,)
            Losses, summed over the judging rows.
        """
        return _core.score_grid(**self._judged(temperatures, votes, n_threads), loss=scoring)

    def held_out_shares(
        self, temperatures: Float64, votes: HeldOutVotes, n_threads: int
    ) -> tuple[Float64, Float64]:
        """What the vote of each law gives to the right class of the judging rows; see `losses`.

        Returns
        -------
        rows : ndarray of float64, shape (a,)
            Weight of the rows of one class in one leaf.
        shares : ndarray of float64, shape (a, g)
            Share of that class in each law's vote there.
        """
        return _core.held_out_shares(**self._judged(temperatures, votes, n_threads))

    def _judged(self, temperatures: Float64, votes: HeldOutVotes, n_threads: int) -> dict[str, Any]:
        """The laws and what they vote with, as the core takes them."""
        return {
            "left": self.tree.left,
            "gains": self.gains,
            "stop": self.stops.log_total,
            "split": self.stops.log_split,
            "theta": self.theta(temperatures),
            "prune": self.prune,
            "label": votes.label,
            "frequency": votes.values,
            "holdout": votes.holdout,
            "n_threads": n_threads,
        }

    def mixed(self, temperatures: Float64, shares: Float64) -> NodeWeights:
        """Average laws, one for each row of temperatures, by their shares.

        A node's probability of being a leaf is the average, so the vote and the Gibbs risk are those
        of the mixture. The law returned decides at every node for itself, with these odds.
        """
        laws = [self.at(*row) for row in temperatures]
        weight, passed = np.zeros(self.tree.n_nodes), np.zeros(self.tree.n_nodes)
        for law, share in zip(laws, shares / sum(shares), strict=True):
            weight += share * law.weight
            passed += share * _core.reach(self.tree.left, law.log_odds) * expit(law.log_odds)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_odds = np.log(passed) - np.log(weight)
        log_odds = np.where(weight + passed > 0, log_odds, laws[-1].log_odds)  # never reached
        return NodeWeights(weight, log_odds, 0.0, self.stops.entropy, self.stops.mode)


@dataclass(frozen=True, slots=True, eq=False)
class ChainStops:
    """How a law may stop inside the chain of each node, apart from what its rows say.

    The j-th cell of a chain has log weight ``log_stop + j log_split``, but the last cell of a leaf
    ``j log_split`` alone if stopping there is free.

    Parameters
    ----------
    log_total : ndarray of float64, shape (m,)
        Log of the sum of these weights.
    log_split : ndarray of float64, shape (m,)
        Log weight of passing the whole chain.
    entropy, mode : ndarray of float64, shape (m,)
        Entropy and largest log probability of the cell at which the law stops.
    """

    log_total: Float64
    log_split: Float64
    entropy: Float64
    mode: Float64


def chain_stops(
    tree: Tree, log_split: float | Float64 = 0.0, log_stop: float = 0.0, free_end: bool = False
) -> ChainStops:
    """Sum up the stops inside the chains of a tree."""
    m = tree.n_nodes
    ends = tree.is_leaf if free_end else np.zeros(m, dtype=bool)
    # np.zeros costs nothing until it is written to.
    total = np.where(ends, 0.0, log_stop) if log_stop else np.zeros(m)
    passed: Float64 = np.multiply(log_split, tree.chain) if np.any(log_split) else np.zeros(m)
    entropy = mode = np.zeros(m)
    long = np.flatnonzero(tree.chain > 1)
    if len(long):
        per_cell = np.broadcast_to(log_split, (m,))[long]
        kinds = np.stack([tree.chain[long].astype(np.float64), per_cell, ends[long]], axis=1)
        kinds, kind = np.unique(kinds, axis=0, return_inverse=True)
        sums = np.array([_stops_of(k, split, end, log_stop) for k, split, end in kinds.tolist()])
        entropy, mode = np.zeros(m), np.zeros(m)
        total[long], entropy[long], mode[long] = sums[kind.ravel()].T
    return ChainStops(total, passed, entropy, mode)


def _stops_of(
    length: float, log_split: float, free_end: float, log_stop: float
) -> tuple[float, float, float]:
    """Log sum, entropy and largest log share of the stops in one kind of chain."""
    steps = np.arange(int(length))
    # 0 times -inf is meant to be 0: nothing has been passed yet.
    cells = log_stop + np.where(steps > 0, steps * log_split if log_split else 0.0, 0.0)
    if free_end:
        cells[-1] -= log_stop
    shares = log_softmax(cells)
    return float(logsumexp(cells)), float(entr(np.exp(shares)).sum()), float(shares.max())


def gains_of(tree: Tree, values: Float64) -> Float64:
    """``values(left) + values(right) - values(v)`` for every node, 0 at leaves: (m,) -> (m,)."""
    gains = np.zeros(tree.n_nodes)
    inner = np.flatnonzero(tree.left != LEAF)
    child = tree.left[inner]
    gains[inner] = values[child] + values[child + 1] - values[inner]
    return gains


def loss_family(
    tree: Tree,
    stats: Stats,
    n_terms: int,
    fixed: list[float],
    stops: ChainStops,
    empty_leaves: bool = False,
) -> Family:
    """Laws with terms in the loss, the square root of the rows and, if there are three, leaves.

    Leaves without rows count if `empty_leaves` says so.
    """
    gains, root = stats.of(tree).terms(tree, n_terms, empty_leaves)
    return Family(tree, gains, root, np.array(fixed), stops)


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
        If a log weight is NaN or +inf, or every pruning is forbidden.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 4.
    """
    own: Float64 = column("log_own", log_own, "float64", (tree.n_nodes,))
    split: Float64 = (
        column("log_split", log_split, "float64", (tree.n_nodes,))
        if np.ndim(log_split)
        else np.full(tree.n_nodes, log_split, dtype=np.float64)
    )
    for name, values in (("log_own", own), ("log_split", split)):
        if (np.isnan(values) | (values == np.inf)).any():
            raise ValueError(f"{name} must be finite or -inf")
    stops = chain_stops(tree, split)
    allowed = own > -np.inf
    finite = np.where(allowed, own, 0.0)
    log_total = np.where(allowed, stops.log_total, -np.inf)
    stops = ChainStops(log_total, stops.log_split, stops.entropy, stops.mode)
    gains = gains_of(tree, finite)[:, None]
    return Family(tree, gains, finite[:1], np.array([1.0]), stops).at()


def pac_bayes_family(
    tree: Tree, stats: Stats, prior: Prior = "leaves", stop_probability: float = 0.5
) -> Family:
    """The PAC-Bayes laws of a tree, by (lambda_error, lambda_penalty); see `pac_bayes`."""
    if prior == "leaves":
        return loss_family(tree, stats, 3, [-1.0], chain_stops(tree))
    if prior == "branching":
        return loss_family(tree, stats, 2, [], branching(tree, stop_probability))
    raise ValueError(f'prior must be "leaves" or "branching", got {prior!r}')


def branching(tree: Tree, stop_probability: float) -> ChainStops:
    """The branching prior: every cell that T0 splits stops with the same probability."""
    if not 0 < stop_probability < 1:
        raise ValueError(f"stop_probability must lie between 0 and 1, got {stop_probability!r}")
    return chain_stops(
        tree, float(np.log1p(-stop_probability)), float(np.log(stop_probability)), free_end=True
    )


def pac_bayes(
    tree: Tree,
    stats: Stats,
    lambda_error: float,
    lambda_penalty: float,
    prior: Prior = "leaves",
    stop_probability: float = 0.5,
) -> NodeWeights:
    """Weigh all prunings by their loss, their size and a prior.

    A leaf with n(A) rows and err(A) errors has log weight ``-lambda_error err(A) - lambda_penalty
    sqrt(n(A))``, to which the prior adds. For a numeric target err(A) is the sum of squares over the
    unit of loss.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Loss and rows of its nodes.
    lambda_error : float
        Weight of an error, or a unit of loss (nats), >= 0.
    lambda_penalty : float
        Weight of the square root of a leaf's rows, >= 0. Pools small leaves.
    prior : {"leaves", "branching"}
        "leaves": one nat per leaf that holds rows (the paper's experiments). "branching": each cell
        stops with `stop_probability`; cells that T0 does not split stop for free.
    stop_probability : float
        Of the branching prior, between 0 and 1.

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        If a temperature is negative or not finite, or the prior is unknown.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5. The branching prior is that of
    Willems, Shtarkov and Tjalkens, "The context-tree weighting method", IEEE Trans. Information
    Theory 1995.
    """
    family = pac_bayes_family(tree, stats, prior, stop_probability)
    return family.at(
        nonnegative("lambda_error", lambda_error), nonnegative("lambda_penalty", lambda_penalty)
    )


def theorem_posterior(tree: Tree, stats: NodeStats, lam: float, delta: float) -> NodeWeights:
    """Weigh all prunings as the paper's Theorem 1 does.

    Every cell A, without rows too, has log weight ``-lam (err(A) + sqrt(2 n(A) log(|T0| / delta))) -
    3 D0``, where |T0| and D0 are the number of cells and the depth of the tree, chains counted.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes.
    lam : float
        Temperature, between 0 and 2.
    delta : float
        Probability with which the theorem may fail, between 0 and 1.

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        If `lam` or `delta` is out of range.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Theorem 1.
    """
    if not 0 < lam < 2:
        raise ValueError(f"lam must lie between 0 and 2, got {lam!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    deviation = lam * np.sqrt(2 * np.log(tree.n_cells / delta))
    fixed = [-lam, -deviation, -3.0 * tree.depth]
    return loss_family(tree, stats, 3, fixed, chain_stops(tree), empty_leaves=True).at()


def helmbold_schapire_family(tree: Tree, stats: NodeStats) -> Family:
    """The Helmbold-Schapire laws of a tree, by their temperature; see `helmbold_schapire`."""
    if stats.of(tree).n_classes != 2:
        raise ValueError(f"Helmbold-Schapire voting takes 2 classes, got {stats.n_classes}")
    counts = stats.counts
    loss = 2 * counts[:, 0] * counts[:, 1] / np.maximum(stats.n, np.finfo(np.float64).tiny)
    # A split lowers the loss by 2 n_l n_r / n times the squared difference of the frequencies: this
    # form does not cancel.
    gains = np.zeros(tree.n_nodes)
    inner = np.flatnonzero(tree.left != LEAF)
    a, b = counts[tree.left[inner]], counts[tree.left[inner] + 1]
    cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    scale = a.sum(axis=1) * b.sum(axis=1) * counts[inner].sum(axis=1)
    gains[inner] = -2 * cross**2 / np.where(scale > 0, scale, 1)
    return Family(tree, gains[:, None], loss[:1], np.array([]), branching(tree, 0.5))


def helmbold_schapire(tree: Tree, stats: NodeStats, temperature_: float) -> NodeWeights:
    """Weigh all prunings as Helmbold and Schapire do, for two classes.

    A node predicts the frequency of class 1 among its rows. A pruning's weight is
    ``2^-(number of its nodes that T0 splits, or could have) exp(-temperature_ loss)``, where loss
    sums ``|y - prediction|`` over the rows; vote with ``kind="mean"``.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of two classes.
    temperature_ : float
        Weight of a unit of loss (nats per row), >= 0: minus the log of their beta.

    Returns
    -------
    NodeWeights

    Raises
    ------
    ValueError
        If there are not two classes, or the temperature is negative or not finite.

    References
    ----------
    Helmbold and Schapire, "Predicting nearly as well as the best pruning of a decision tree", Machine
    Learning 1997.
    """
    return helmbold_schapire_family(tree, stats).at(nonnegative("temperature_", temperature_))


def reached(tree: Tree, weights: NodeWeights) -> Float64:
    """Probability that each node is in the pruning, as a leaf or above one: (m,)."""
    return _core.reach(tree.left, weights.of(tree).log_odds)


def entropy(tree: Tree, weights: NodeWeights) -> float:
    """Entropy of the law over prunings (nats), O(m).

    The sum over nodes of the probability of reaching it times the entropy of its decision, and of
    where in its chain the pruning stops.
    """
    x = weights.of(tree).log_odds
    decided = np.abs(x) < 700  # beyond, the entropy of the decision is below the smallest double
    z = np.where(decided, np.abs(x), 0.0)
    e = np.exp(-z)
    decision = np.where(decided, np.log1p(e) + z * e / (1 + e), 0.0)
    nats = float(reached(tree, weights) @ decision)
    return nats + float(weights.weight @ weights.chain_entropy)


def gibbs_risk(stats: NodeStats, weights: NodeWeights) -> float:
    """Expected share of the counted rows that one pruning, drawn from the law, gets wrong, O(m)."""
    if len(stats.label) != len(weights.weight):
        raise ValueError(
            f"stats has {len(stats.label)} nodes, but weights has {len(weights.weight)} nodes"
        )
    rows = float(stats.n[0])
    if rows == 0:
        raise ValueError("stats must count at least one row")
    return float(weights.weight @ stats.errors) / rows


def _decided(tree: Tree, splits: NDArray[np.bool_]) -> NodeWeights:
    """The one pruning that splits a reached node where `splits` says so."""
    log_odds = np.where(splits & ~tree.is_leaf, np.inf, -np.inf)
    weight = _core.reach(tree.left, log_odds) * (log_odds < 0)
    return NodeWeights(weight, log_odds, 0.0, *2 * [np.zeros(tree.n_nodes)])


def map_pruning(tree: Tree, weights: NodeWeights) -> NodeWeights:
    """The likeliest single pruning under a law, O(m); ties within rounding give the smaller tree.

    Prunings that stop in different cells of one chain count as different ones.
    """
    log_odds = _core.likeliest(tree.left, weights.of(tree).log_odds, weights.chain_mode)
    return _decided(tree, log_odds > 0)


def sample_pruning(
    tree: Tree, weights: NodeWeights, rng: np.random.Generator | int | None = None
) -> NodeWeights:
    """Draw one pruning from a law, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    weights : NodeWeights
        The law.
    rng : numpy Generator, int or None
        Source of the randomness, or its seed.

    Returns
    -------
    NodeWeights
        Weights 0 and 1.
    """
    u = np.random.default_rng(rng).random(tree.n_nodes)
    with np.errstate(over="ignore"):
        stop = 1 / (1 + np.exp(weights.of(tree).log_odds))
    return _decided(tree, u >= stop)
