"""Statistics of the nodes of a tree for several targets."""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.stats.nodes import NodeStats
from certree.stats.targets import TargetStats
from certree.tree import Trees

__all__ = ["SeveralStats"]


@dataclass(frozen=True, slots=True, eq=False)
class SeveralStats:
    """Statistics of several targets for every node of a tree.

    One posterior, or one pruning, serves all targets. The loss of a leaf A is the mean over the q
    targets, ``(loss_1(A) + ... + loss_q(A)) / q``: of errors, of log losses, or of sums of squared
    distances from the node's mean divided by `TargetStats.unit` of each target. So a target
    repeated q times has the posterior of one target, and inverse temperatures (factors of the loss
    in a posterior) and `alpha` (factor of the penalty of a pruning) keep their meaning. Results do
    not depend on the order of the targets.

    Parameters
    ----------
    of_each : tuple of NodeStats, or of TargetStats
        The statistics of each target, of the same rows.

    Raises
    ------
    TypeError
        If `of_each` is not a tuple of `NodeStats` alone or of `TargetStats` alone.
    ValueError
        If the statistics have different numbers of nodes or rows.

    Examples
    --------
    >>> from certree import count, grow_cart, pac_bayes
    >>> from certree.stats import SeveralStats
    >>> X, y = [[0.0], [1.0], [2.0]], [[0, 1], [1, 1], [1, 0]]
    >>> tree = grow_cart(X, y)
    >>> stats = SeveralStats(tuple(count(tree, X, column, 2) for column in zip(*y)))
    >>> stats.loss.tolist()[:1], pac_bayes(tree, stats, 1.0, 0.0).weight.round(2).tolist()[:1]
    ([1.0], [0.51])
    """

    of_each: tuple[NodeStats | TargetStats, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.of_each, tuple):
            raise TypeError(
                "of_each must be a tuple of statistics, one for each target, got "
                f"{shortened(self.of_each)}"
            )
        types = {type(stats) for stats in self.of_each}
        if types not in ({NodeStats}, {TargetStats}):
            names = sorted(kind.__name__ for kind in types)
            raise TypeError(f"of_each must hold NodeStats alone, or TargetStats alone, got {names}")
        first, *others = (stats.n for stats in self.of_each)
        are_equal = (n.shape == first.shape and np.allclose(n, first) for n in others)
        if not all(are_equal):
            raise ValueError(
                "of_each must hold statistics of the same rows in the same nodes, got different "
                "weights of rows (n): compute all of them from one tree and the same rows"
            )

    @property
    def n(self) -> Float64:
        """Sum of the weights of the rows in each node, (m,).

        It is the mean over the targets, which differ only by rounding.
        """
        return _mean([stats.n for stats in self.of_each])

    @property
    def weight_unit(self) -> float:
        """Mean weight of a row, equal for all targets."""
        return self.of_each[0].weight_unit

    @property
    def loss(self) -> Float64:
        """Loss of each node as a leaf, (m,): the mean over the targets.

        The loss is the weight of misclassified rows; or the sum of squared distances of the target
        from the node's mean, divided by `TargetStats.unit` of the target.
        """
        return _mean([stats.loss for stats in self.of_each])

    @property
    def log_loss(self) -> Float64 | None:
        """Log loss of each node (nats), (m,): the mean over the targets; None for numeric ones."""
        nats = [stats.log_loss for stats in self.of_each if isinstance(stats, NodeStats)]
        return _mean(nats) if nats else None

    @property
    def impurity(self) -> Float64:
        """Impurity of each node times its weight, (m,): the mean over the targets.

        For classes the impurity is the Gini index; for numbers the mean squared distance from the
        node's mean, divided by the variance of the target over all rows.
        """
        return _mean([stats.impurity / _variance(stats) for stats in self.of_each])

    @property
    def deviations(self) -> list[float]:
        """Standard deviation of each target over all rows; 1 for classes and constant targets.

        A list of q numbers, in the order of `of_each`. Rows are weighted.
        """
        return [float(np.sqrt(_variance(stats))) for stats in self.of_each]

    @property
    def table(self) -> list[Float64]:
        """A list with one table for each target, in the order of `of_each`.

        The tables are class counts (m, K), or weight, mean and sum of squared distances from that
        mean (m, 3), of the m nodes; K is the target's number of classes.
        """
        return [stats.table for stats in self.of_each]

    def to_stored(self) -> dict[str, Any]:
        """Return the entries of a model file by name: "0.counts" is field `counts` of target 0.

        Fields are those of `NodeStats` or `TargetStats`; targets are in the order of `of_each`.
        """
        return {
            f"{k}.{name}": value
            for k, stats in enumerate(self.of_each)
            for name, value in stats.to_stored().items()
        }

    def check_tree(self, tree: Trees) -> SeveralStats:
        """Return these statistics, or raise ValueError if `tree` has another number of nodes."""
        self.of_each[0].check_tree(tree)
        return self

    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Compute the terms whose weighted sum over leaves is the log weight of a pruning.

        A pruning is a subtree of the grown tree with the same root. `PosteriorFamily`, the set of
        posteriors over prunings, holds the factors of the terms (such as minus the inverse
        temperatures), and computes the weights of all prunings from the result.

        Parameters
        ----------
        tree : Trees
            The tree of these m nodes.
        n_terms : int
            Number of terms. 1: the mean loss of the targets, divided by `weight_unit`; 2: also the
            square root of the number of rows (weight divided by `weight_unit`); 3: also the number
            of leaves (1 for a node).
        empty_leaves : bool
            Whether a node without rows counts as a leaf.

        Returns
        -------
        gains : ndarray of float64, shape (m, n_terms)
            Sum of each term over the two children of a node, minus the term of the node; 0 at
            leaves. So the sums over the leaves of a pruning are `root` plus the gains of the nodes
            that it splits.
        root : ndarray of float64, shape (n_terms,)
            Terms of the root.
        """
        terms = [stats.terms(tree, n_terms, empty_leaves) for stats in self.of_each]
        return _mean([gains for gains, _ in terms]), _mean([root for _, root in terms])

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """Compute the smoothed predictions of each node for all targets, side by side.

        The result has shape (m, number of columns), with the targets in the order of `of_each`: a
        target of K classes has K columns of frequencies, a numeric target one column of means.
        tree: the tree; smoothing: a pseudo-count, the number of rows of mean weight that are added
        to each node with the predictions of its parent. To the root they are added with equal
        frequencies of all classes, or with the mean of all rows.
        """
        return np.concatenate([stats.averages(tree, smoothing) for stats in self.of_each], axis=1)

    def take(self, nodes: NDArray[np.intp]) -> SeveralStats:
        """Return the statistics of k nodes, for all targets.

        nodes: node numbers, (k,). Node i of the result is ``nodes[i]``.
        """
        return SeveralStats(tuple(stats.take(nodes) for stats in self.of_each))


def _mean(columns: list[Float64]) -> Float64:
    """Return the elementwise mean of the arrays in `columns`, which has one for each target.

    Values are added in ascending order, so that the order of the targets does not matter.
    """
    mean: Float64 = np.sort(columns, axis=0).mean(axis=0)
    return mean


def _variance(stats: NodeStats | TargetStats) -> float:
    """Return the weighted variance of a target over all rows; 1 for classes or a constant target.

    stats: statistics of one target, whose node 0 is the root and holds all rows.
    """
    if isinstance(stats, NodeStats) or not stats.sse[0] > 0:
        return 1.0
    return float(stats.sse[0] / stats.rows[0])
