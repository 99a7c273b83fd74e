"""What calibration samples say about every node if rows have several targets: that of each."""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as shortened

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.stats.nodes import NodeStats
from certree.stats.targets import TargetStats
from certree.tree import Trees

__all__ = ["SeveralStats"]


@dataclass(frozen=True, slots=True, eq=False)
class SeveralStats:
    """Statistics of several targets for every node of a tree, which one posterior or pruning serves.

    A leaf A pays the mean of what it pays for each of q targets, ``(loss_1(A) + ... + loss_q(A)) / q``:
    errors, log losses, or sums of squares over the unit of loss of the target. So posteriors still
    multiply over leaves, a target beside its copies says what it says alone, and inverse temperatures
    and `alpha` mean what they mean for one target. No order of the targets changes a bit.

    Parameters
    ----------
    of_each : tuple of NodeStats, or of TargetStats
        The statistics of each target, of the same rows.

    Raises
    ------
    TypeError
        If these are no tuple, or neither all of classes nor all of numbers.
    ValueError
        If they are of different numbers of nodes or rows.

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
            raise TypeError(f"of_each must be a tuple, got {shortened(self.of_each)}")
        kinds = {type(one) for one in self.of_each}
        if kinds not in ({NodeStats}, {TargetStats}):
            names = sorted(kind.__name__ for kind in kinds)
            raise TypeError(f"of_each must hold NodeStats alone, or TargetStats, got {names}")
        first, *others = (one.n for one in self.of_each)
        same = (one.shape == first.shape and np.allclose(one, first) for one in others)
        if not all(same):
            raise ValueError("of_each must hold statistics of the same rows in the same nodes")

    @property
    def n(self) -> Float64:
        """Number (or weight) of the rows in each node, (m,); alike for all targets but for rounding."""
        return _mean([one.n for one in self.of_each])

    @property
    def weight_unit(self) -> float:
        """Mean weight of a row, which all targets share."""
        return self.of_each[0].weight_unit

    @property
    def loss(self) -> Float64:
        """Mean of the losses, (m,)."""
        return _mean([one.loss for one in self.of_each])

    @property
    def log_loss(self) -> Float64 | None:
        """Mean log loss of the rows of each node under its own frequencies (nats), (m,); of classes."""
        nats = [one.log_loss for one in self.of_each if isinstance(one, NodeStats)]
        return _mean(nats) if nats else None

    @property
    def impurity(self) -> Float64:
        """Mean of what greedy splits lower, (m,); sums of squares in variances of their target."""
        return _mean([one.impurity / _variance(one) for one in self.of_each])

    @property
    def deviations(self) -> list[float]:
        """Units in which targets err: standard deviations of numbers, 1 where none varies, or is."""
        return [float(np.sqrt(_variance(one))) for one in self.of_each]

    @property
    def table(self) -> list[Float64]:
        """What judges the votes on each target."""
        return [one.table for one in self.of_each]

    def of(self, tree: Trees) -> SeveralStats:
        """Check that the statistics belong to a tree of this size, and return them."""
        self.of_each[0].of(tree)
        return self

    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Loss, square root of the rows and, as a third term, leaves: gains (m, f) and root (f,)."""
        terms = [one.terms(tree, n_terms, empty_leaves) for one in self.of_each]
        return _mean([gains for gains, _ in terms]), _mean([root for _, root in terms])

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """What each node predicts, of one target behind the other: shares or means, (m, any)."""
        return np.concatenate([one.averages(tree, smoothing) for one in self.of_each], axis=1)

    def at(self, nodes: NDArray[np.intp]) -> SeveralStats:
        """The statistics of some nodes."""
        return SeveralStats(tuple(one.at(nodes) for one in self.of_each))


def _mean(of_each: list[Float64]) -> Float64:
    """Mean over targets, added up in an order that numbers tell themselves."""
    mean: Float64 = np.sort(of_each, axis=0).mean(axis=0)
    return mean


def _variance(stats: NodeStats | TargetStats) -> float:
    """Variance of a number; 1 where it does not vary, and of classes."""
    if isinstance(stats, NodeStats) or not stats.sse[0] > 0:
        return 1.0
    return float(stats.sse[0] / stats.rows[0])
