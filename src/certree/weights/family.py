"""Families of posteriors over all prunings of a tree, one posterior for each inverse temperature.

The weight of a pruning is the product, over its leaves v, of ``exp(own(v))``, where own(v) is the
log weight of v as a leaf. Sums of such products over all prunings obey a recursion, so one pass up
the tree and one down give the probability of every node to be a leaf. A node may stand for a chain
of k nested regions with the same rows; a pruning can stop in any one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from certree._core import compute_posterior, compute_validation_votes, score_grid
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

# Loss of a leaf. For a numeric target "error" is the sum of squares.
LossName = Literal["error", "log_loss"]


@dataclass(frozen=True, slots=True, eq=False)
class ValidationStatistics:
    """What a tree's m nodes predict, and statistics of the validation rows that reach each node.

    From these two the loss of any pruning (the tree with some nodes turned into leaves), or of the
    weighted vote of all prunings, is computed without the rows. Each of several targets has an
    object of its own.

    Parameters
    ----------
    label : ndarray of int32, shape (m,), or None
        Class that each node predicts, for majority votes (each pruning votes for one class); None
        if `values` are set.
    values : ndarray of float64, shape (m, K), or tuple, or None
        Class probabilities or mean (K = 1) that each node predicts, for mean votes (probabilities
        are averaged); None if `label` is set. For many classes a tuple from which the C++ core
        computes probabilities: sparse class counts (`SparseNodeStats.table`), the smoothing and the
        mean row weight.
    validation : ndarray of float64, shape (m, K) or (m, 3), or tuple
        Class counts of the validation set in the nodes, dense or as `SparseNodeStats.table`. For a
        numeric target the weight of its rows, their mean, and their sum of squared distances from
        it.
    """

    label: Int32 | None
    values: Any
    validation: Any

    def rescale(self, unit: float) -> ValidationStatistics:
        """Return the statistics that the numeric target would have if it were divided by `unit`.

        The means that the nodes predict, and those of the validation rows, are divided by `unit`;
        the sums of squares by ``unit**2``. unit: a positive number, such as the standard deviation
        of the target.
        """
        return ValidationStatistics(
            None, self.values / unit, self.validation / [1.0, unit, unit**2]
        )

    def to_bytes(self) -> tuple[bytes, ...]:
        """Return a tuple of bytes by which objects can be compared and used as keys of a dictionary.

        Two objects have equal tuples if their arrays are equal. The tuple has the bytes of `values`
        (of `label` if these are None), then those of `validation`, which must be dense arrays.
        """
        predicted: Any = self.label if self.values is None else self.values
        return predicted.tobytes(), self.validation.tobytes()


class TuningCandidates(Protocol):
    """The posteriors, or prunings, of one tree among which cross-validation chooses.

    A pruning is the tree with some nodes turned into leaves; a posterior is a distribution over all
    prunings. There is one posterior for each inverse temperature (or tuple of them), or one pruning
    for each alpha, the factor of a pruning's penalty. Implementations define two members: `solve`
    returns the posterior or pruning of given parameters, and `compute_losses` scores many of them
    on a validation set. `PosteriorFamily` (posteriors) and `PruningPath` (prunings) are two.
    """

    @property
    def solve(self) -> Callable[..., NodeWeights]:
        """The function that returns one posterior over prunings, or one pruning, as `NodeWeights`.

        A pruning is the tree with some nodes turned into leaves. The function takes the inverse
        temperatures (the factors of loss and penalty in the posterior), or alpha (the factor of a
        pruning's penalty), as positional arguments: ``solve(alpha)``.
        """

    def compute_losses(
        self, temperatures: Float64, votes: ValidationStatistics, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Compute the validation loss of several posteriors over prunings, or of several prunings.

        A pruning is the tree with some nodes turned into leaves. A posterior predicts by the vote
        of all prunings: each votes, with its posterior weight, for the label or the class
        probabilities (or mean) of its leaf.

        Parameters
        ----------
        temperatures : ndarray of float64, shape (g, t)
            A row for each of g posteriors or prunings; its columns are the t arguments of `solve`:
            inverse temperatures, or alpha (t = 1).
        votes : ValidationStatistics
            The prediction of each node as a leaf, and statistics of the validation set.
        scoring : {"error", "log_loss", "squared"}
            The loss of the vote: misclassified rows, minus the log probability of the class (nats),
            or squared error; "squared" for numeric targets.
        n_threads : int
            Number of threads; the losses do not depend on it.

        Returns
        -------
        ndarray of float64, shape (g,)
            Loss of each posterior or pruning: the weighted sum over the rows of the validation set.
        """


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorFamily(ArrayRecord):
    """Posteriors over the prunings of a tree, one for each setting of t inverse temperatures.

    A posterior is a distribution over all prunings (a pruning is the tree with some nodes turned
    into leaves); ``family.solve(*temperatures)`` computes that of given inverse temperatures.
    Functions such as `pac_bayes_family` return a family; estimators choose the inverse temperatures
    by the losses that `compute_losses` returns.

    The log weight of a pruning is the sum of ``sum_i theta[i] F_i(v)`` over its leaves v, plus the
    prior log weights `stops`. The f terms F_i(v) are statistics of node v, such as its errors. The
    first t factors theta are minus the inverse temperatures, the others are the constants `fixed`.
    Posteriors depend on the terms only by `gains` and `root`, so only these are stored.

    Parameters
    ----------
    tree : Tree or Trees
        The tree, of m nodes, or several trees for a posterior over prunings of all of them.
    gains : ndarray of float64, shape (m, f)
        ``F(left) + F(right) - F(v)`` of each node v; 0 at leaves.
    root : ndarray of float64, shape (f,)
        Terms F of the root, or their sums over all roots.
    fixed : ndarray of float64, shape (f - t,)
        The constant factors.
    stops : ChainStops
        Prior log weights of each node: of being a leaf, and of being split.
    prune : bool
        If True, `solve` returns the pruning of largest weight instead of the posterior.
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
        """Number of arguments of `solve`, t: the inverse temperatures that determine a posterior.

        An inverse temperature is the factor of a term, such as the loss, in the log weight of a
        pruning. t is the number of terms minus the number of those with a constant factor, in
        `fixed`.
        """
        return len(self.root) - len(self.fixed)

    def compute_theta(self, temperatures: Float64) -> Float64:
        """Return the factors theta of the f terms of log weights, for each of g posteriors, (g, f).

        temperatures: inverse temperatures, a row for each posterior, and columns in the order of
        the arguments of `solve`, (g, t). A row of the result has them with a minus sign, then the
        constants `fixed`. A term is a statistic of a leaf, such as its errors.
        """
        fixed = np.broadcast_to(self.fixed, (len(temperatures), len(self.fixed)))
        return np.ascontiguousarray(np.hstack([-temperatures, fixed]), dtype=np.float64)

    def solve(self, *temperatures: float) -> NodeWeights:
        """Compute the posterior over prunings for t inverse temperatures, in O(m) time.

        A posterior is a distribution over all prunings: trees with some nodes turned into leaves.
        If the field `prune` is True, return the pruning of largest weight instead, the smaller one
        on ties.

        Parameters
        ----------
        *temperatures : float
            The inverse temperatures, `n_temperatures` numbers, in the order of the terms (for
            PAC-Bayes lambda_error, then lambda_penalty).

        Returns
        -------
        NodeWeights
            The posterior, or the pruning with weights 0 and 1.

        Raises
        ------
        ValueError
            If every pruning has weight 0.
        """
        theta = self.compute_theta(np.array([temperatures], dtype=np.float64))[0]
        stops = self.stops
        weight, log_odds, evidence = compute_posterior(
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
            raise ValueError(
                "log_own must be finite at all leaves of at least one pruning, and log_split at "
                "all its splits, got -inf in each pruning"
            )
        return NodeWeights.from_checked(weight, log_odds, evidence, stops.entropy, stops.mode)

    def compute_losses(
        self, temperatures: Float64, votes: ValidationStatistics, scoring: Scoring, n_threads: int
    ) -> Float64:
        """Compute the validation loss of several posteriors over prunings.

        A pruning is the tree with some nodes turned into leaves. A posterior predicts by the vote
        of all prunings: each votes, with its posterior weight, for the label or the class
        probabilities (or mean) of its leaf.

        Parameters
        ----------
        temperatures : ndarray of float64, shape (g, t)
            Inverse temperatures: a row for each of g posteriors, t columns in the order of the
            arguments of `solve`.
        votes : ValidationStatistics
            The prediction of each node as a leaf, and statistics of the validation set.
        scoring : {"error", "log_loss", "squared"}
            The loss of the vote: misclassified rows, minus the log probability of the class (nats),
            or squared error; "squared" for numeric targets.
        n_threads : int
            Number of threads; the losses do not depend on it.

        Returns
        -------
        ndarray of float64, shape (g,)
            Loss of each posterior, summed over the rows of the validation set by their weights.
        """
        return score_grid(**self._core_arguments(temperatures, votes, n_threads), loss=scoring)

    def predict_validation(
        self, temperatures: Float64, votes: ValidationStatistics, scoring: Scoring, n_threads: int
    ) -> tuple[Float64, Float64, Float64]:
        """Compute the predictions of several posteriors over prunings for the validation set.

        A pruning is the tree with some nodes turned into leaves. A posterior predicts by the vote
        of all prunings, each with its posterior weight. Rows with equal predictions form groups:
        validation rows of one class in one leaf, or for numeric targets all rows in one leaf. The
        number of groups is a.

        Parameters
        ----------
        temperatures : ndarray of float64, shape (g, t)
            Inverse temperatures (factors of loss and penalty): a row for each of g posteriors, t
            columns in the order of the arguments of `solve`.
        votes : ValidationStatistics
            The prediction of each node as a leaf, and statistics of the validation set.
        scoring : {"error", "log_loss", "squared"}
            "squared" for numeric targets, any of the others for classes.
        n_threads : int
            Number of threads; the predictions do not depend on it.

        Returns
        -------
        weight : ndarray of float64, shape (a,)
            Weight of the rows of each group.
        truth : ndarray of float64, shape (a,)
            1; for numeric targets the mean of the rows of each group.
        predicted : ndarray of float64, shape (a, g)
            Each posterior's probability of the class of the group, or the number that it predicts.
        """
        return compute_validation_votes(
            **self._core_arguments(temperatures, votes, n_threads), loss=scoring
        )

    def _core_arguments(
        self, temperatures: Float64, votes: ValidationStatistics, n_threads: int
    ) -> dict[str, Any]:
        """Return keyword arguments for `score_grid` and `compute_validation_votes` of the C++ core.

        temperatures: a row for each of g posteriors, and a column for each of t inverse
        temperatures, in the order of the arguments of `solve` (for PAC-Bayes lambda_error and
        lambda_penalty), (g, t); votes: the class, probabilities or mean that each node predicts as a
        leaf, and statistics of the validation set; n_threads: number of threads.

        Keys: "left" (left child of each of m nodes); "gains" (the field `gains`, (m, f): change of
        each of f terms of the log weight if the node is split); "stop" and "split" (prior log weights
        of a node as a leaf and of its split, (m,) each); "theta" (factors of the terms, (g, f), from
        `compute_theta`); "prune" (whether to use the pruning of largest weight instead of the
        posterior); "label", "frequency" and "validation" (the fields label, values and validation of
        `votes`); "n_threads". The caller adds "loss".
        """
        return {
            "left": self.tree.left,
            "gains": self.gains,
            "stop": self.stops.log_total,
            "split": self.stops.log_split,
            "theta": self.compute_theta(temperatures),
            "prune": self.prune,
            "label": votes.label,
            "frequency": votes.values,
            "validation": votes.validation,
            "n_threads": n_threads,
        }


@dataclass(frozen=True, slots=True, eq=False)
class ChainStops(ArrayRecord):
    """Prior log weights of stopping in a node, and of splitting it, for each node of a tree.

    A pruning is the tree with some nodes turned into leaves; it stops in its leaves. A node may
    stand for a chain of nested regions with the same rows (`Tree.chain`). A pruning that stops in
    region j (j = 0, 1, ... from the outside) of the chain has that region as a leaf, and has split
    the j regions around it. This adds ``log_stop + j log_split`` to its log weight. Here log_stop
    and log_split are arguments of `chain_stops`, which makes the object: the log weights of a leaf
    and of splitting one region.

    Parameters
    ----------
    log_total : ndarray of float64, shape (m,)
        Log of the sum of ``exp(log_stop + j log_split)`` over the regions j of each node: the log
        weight of stopping in any of them.
    log_split : ndarray of float64, shape (m,)
        Log weight of splitting all regions of each node.
    entropy : ndarray of float64, shape (m,)
        Entropy (nats) of the region in which a pruning stops, if it stops in the node.
    mode : ndarray of float64, shape (m,)
        Log probability (nats) of the likeliest such region.
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
    """Compute the prior log weights of stopping in each node of a tree, and of splitting it.

    A pruning is the tree with some nodes turned into leaves; it stops in its leaves. A node stands
    for one or several nested regions with the same rows. A pruning that stops in region j (j = 0,
    1, ... from the outside) of a node has ``log_stop + j log_split`` added to its log weight: it
    has that region as a leaf, and has split the j regions around it.

    Parameters
    ----------
    tree : Trees
        The tree, of m nodes; node v stands for ``chain[v]`` regions.
    log_split : float or ndarray of float64, shape (m,)
        Log weight of splitting one region of the node.
    log_stop : float
        Log weight of a region that is a leaf of the pruning.
    free_end : bool
        Whether `log_stop` is replaced by 0 for the last region of each leaf of the tree, because it
        cannot be split.

    Returns
    -------
    ChainStops
        Log weights of each node, and entropy and mode (log probability of the likeliest) of the
        region in which a pruning stops.
    """
    m = len(tree.left)
    ends = tree.left == LEAF if free_end else np.zeros(m, dtype=bool)
    total = np.where(ends, 0.0, log_stop) if log_stop else np.zeros(m)
    with np.errstate(over="ignore"):
        passed: Float64 = np.multiply(log_split, tree.chain) if np.any(log_split) else np.zeros(m)
    entropy = mode = make_zeros(m)
    long = np.flatnonzero(tree.chain > 1)
    if len(long):
        # Equal chains are computed once. They are sorted as complex numbers, which is faster than
        # sorting rows of a table.
        keys = np.empty(len(long), dtype=np.complex128)
        keys.real = 2 * tree.chain[long] + ends[long]
        keys.imag = np.broadcast_to(log_split, (m,))[long]
        keys, place = np.unique(keys, return_inverse=True)
        entropy, mode = np.zeros(m), np.zeros(m)
        length, odd = np.divmod(keys.real.astype(np.int64), 2)
        sums = _summarise_stops(length, keys.imag, odd > 0, log_stop)
        for node_column, key_column in zip((total, entropy, mode), sums, strict=True):
            node_column[long] = key_column[place]
        entropy, mode = freeze(entropy), freeze(mode)
    return ChainStops.from_checked(total, passed, entropy, mode)


def _summarise_stops(
    length: Int64, log_split: Float64, free_end: NDArray[np.bool_], log_stop: float
) -> tuple[Float64, Float64, Float64]:
    """Summarise the log weights of stopping in each region of c chains of nested regions.

    A chain is a node that stands for several nested regions with the same rows; a pruning of the
    tree stops in the region that is its leaf. Stopping in region j (0, 1, ... from the outside) of
    a chain has log weight ``log_stop + j log_split``.

    Parameters
    ----------
    length : ndarray of int64, shape (c,)
        Number of regions of each chain.
    log_split : ndarray of float64, shape (c,)
        Log weight of splitting one region of the chain.
    free_end : ndarray of bool, shape (c,)
        Whether stopping in the last region has log weight 0 instead of `log_stop`.
    log_stop : float
        Log weight of stopping in a region.

    Returns
    -------
    log_sum : ndarray of float64, shape (c,)
        Log of the summed weights of all regions of each chain.
    entropy : ndarray of float64, shape (c,)
        Entropy (nats) of the region in which a pruning stops.
    mode : ndarray of float64, shape (c,)
        Log probability of the likeliest region.
    """
    first = np.cumsum(length) - length  # number of the first region of each chain
    steps = np.arange(length.sum()) - np.repeat(first, length)
    # In the first region nothing has been split: 0 times -inf has to be 0. Beyond float64 a weight is
    # 0, or the only one that counts.
    with np.errstate(over="ignore", invalid="ignore"):
        log_weight = log_stop + np.where(steps > 0, steps * np.repeat(log_split, length), 0.0)
    log_weight[(first + length - 1)[free_end]] -= log_stop
    largest = np.maximum.reduceat(log_weight, first)
    log_weight -= np.repeat(largest, length)
    log_sum = np.log(np.add.reduceat(np.exp(log_weight), first))
    log_probability = log_weight - np.repeat(log_sum, length)
    entropy = np.add.reduceat(entr(np.exp(log_probability)), first)
    return largest + log_sum, entropy, np.maximum.reduceat(log_probability, first)


def compute_gains(tree: Trees, values: Float64, unit: float = 1.0) -> Float64:
    """Compute ``(values(left) + values(right) - values(v)) / unit`` of every node v, (m,); 0 at leaves.

    left and right are the children of v. tree: the tree; values: a number for each node, (m,), such
    as its loss as a leaf, of which a useful split has a negative result; unit: the number by which
    the differences are divided. Differences of integers are exact, so that a split without a gain
    gets exactly 0.
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
) -> PosteriorFamily:
    """Build posteriors over prunings from loss, square root of the rows, and number of leaves.

    A pruning is the tree with some nodes turned into leaves. The log weight of a pruning is a
    weighted sum of these three terms over its leaves, plus prior log weights. The factors of the
    first terms are minus the inverse temperatures, those of the last ones are the constants
    `fixed`.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : Stats
        Statistics of its nodes, such as class counts (`NodeStats`).
    n_terms : int
        2: the terms loss and square root of the rows; 3: the number of leaves, too.
    fixed : list of float
        Constant factors of the last ``len(fixed)`` terms.
    stops : ChainStops
        Prior log weights of each node: of being a leaf of a pruning, and of being split.
    empty_leaves : bool
        Whether leaves without rows count in the number of leaves.
    loss : {"error", "log_loss"}
        Loss of a leaf. "error": the weight of its misclassified rows; for a numeric target its sum
        of squares, divided by `TargetStats.unit`. "log_loss": the log loss of its class frequencies
        (nats).

    Returns
    -------
    PosteriorFamily
        The set of these posteriors over prunings. Its `solve` takes ``n_terms - len(fixed)``
        inverse temperatures, in the order of the terms.

    Raises
    ------
    ValueError
        If the loss is unknown, or is the log loss of a numeric target.
    """
    gains, root = stats.check_tree(tree).terms(tree, n_terms, empty_leaves)
    if loss == "log_loss":
        nats = getattr(stats, "log_loss", None)
        if nats is None:
            raise ValueError('loss must be "error" for a numeric target, got "log_loss"')
        unit = stats.weight_unit
        gains = np.column_stack([compute_gains(tree, nats, unit), gains[:, 1:]])
        root = np.append(nats[:1] / unit, root[1:])
    elif loss != "error":
        raise ValueError(f'loss must be "error" or "log_loss", got {loss!r}')
    return PosteriorFamily.from_checked(
        tree, gains, root, np.array(fixed, dtype=np.float64), stops, False
    )


@validate_arguments
def average(tree: Tree, log_own: ArrayLike, log_split: float | ArrayLike = 0.0) -> NodeWeights:
    """Compute the posterior over all prunings for any weights of leaves and splits.

    A pruning is the tree with some nodes turned into leaves. The weight of a pruning is ``exp(sum
    of log_own over its leaves + sum of log_split over the regions that it splits)``. A node with
    ``chain > 1`` stands for several nested regions, each of which can be a leaf and counts when it
    is split.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    log_own : array-like of shape (m,)
        Log weight of each node as a leaf (nats); -inf if the node must not be a leaf.
    log_split : float or array-like of shape (m,)
        Log weight of splitting each region of the node (nats).

    Returns
    -------
    NodeWeights
        The posterior. The numerical error of a weight is below 1e-10 + 16 eps max|log_own|.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If a log weight is NaN, +inf or larger than 1e150 in magnitude, or every pruning has weight
        0.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 4.
    """
    leaf_weight: Float64 = check_column("log_own", log_own, "float64", (tree.n_nodes,))
    array = to_array("log_split", log_split)
    split: Float64 = check_column("log_split", array, "float64", array.shape and (tree.n_nodes,))
    split = np.broadcast_to(split, (tree.n_nodes,))
    for name, values in (("log_own", leaf_weight), ("log_split", split)):
        if (np.isnan(values) | ((np.abs(values) > MAX_SETTING) & (values != -np.inf))).any():
            raise ValueError(
                f"{name} must be finite or -inf, and at most {MAX_SETTING:g} in magnitude, got "
                f"{values.min():g} .. {values.max():g}"
            )
    stops = chain_stops(tree, split)
    is_allowed = leaf_weight > -np.inf
    finite = np.where(is_allowed, leaf_weight, 0.0)
    log_total = np.where(is_allowed, stops.log_total, -np.inf)
    stops = ChainStops(log_total, stops.log_split, stops.entropy, stops.mode)
    gains = compute_gains(tree, finite)[:, None]
    return PosteriorFamily(tree, gains, finite[:1], np.array([1.0]), stops).solve()
