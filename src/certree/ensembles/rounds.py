"""Boosting round by round: some rows grow a tree, the others weigh its prunings, all set its steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import add_steps, part_rows, round_steps
from certree.ensembles.losses import Loss
from certree.grow.binned import BinnedGrower
from certree.grow.bins import Bins
from certree.grow.growing import Slopes
from certree.interface.arrays import Float64, UInt64
from certree.rows.hashes import content_keys
from certree.tree import LEAF, Tree, Trees

# Stop probabilities of the branching priors that a round mixes.
STOPS = (0.02, 0.1, 0.5)
# Rows that weigh have shaped the scores that they weigh, so their Hessians count half.
CURVATURE = 0.5
# Quantiles of the exponential distribution, of which weights of rows are drawn.
_EXPONENTIAL = -np.log((np.arange(256) + 0.5) / 256)

_STOPS, _NO_STOPS = np.array(STOPS), np.zeros(0)


@dataclass(frozen=True, slots=True)
class Settings:
    """What rounds are made with; see `BoostedTreesClassifier`."""

    learning_rate: float
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: int
    l2_regularization: float
    feature_shares: Sequence[float]  # one after the other, and again
    thresholds: Sequence[int | None]  # of each feature, likewise; None: all
    grow_size: float
    votes: bool
    slopes: Slopes
    interaction_cst: Any
    seed: int
    n_jobs: int | None


@dataclass(slots=True)
class Rounds:
    """A run of boosting on the rows of one table.

    Parameters
    ----------
    loss : Loss
        What is lowered.
    settings : Settings
        How.
    grower : BinnedGrower
        Grows trees on the rows.
    y : ndarray of shape (n,)
        Targets, or codes of classes.
    weight : ndarray of shape (n,), or None
        Weights of the rows.
    keys : ndarray of uint64, shape (n,)
        Numbers by which rows are drawn, wherever they stand.
    scores : ndarray of shape (n_outputs, n)
        What the trees so far say.
    """

    loss: Loss
    settings: Settings
    grower: BinnedGrower
    y: NDArray[Any]
    weight: Float64 | None
    keys: UInt64
    scores: Float64
    trees: list[Tree] = field(default_factory=list)
    rows: list[Float64] = field(default_factory=list)  # growing ones in each node

    def advance(self, number: int) -> None:
        """Make round `number`."""
        random = np.random.default_rng((self.settings.seed, number))
        rows, others, counts_as = self._drawn(random)
        gradient, hessian = self.loss.slopes(self.y, self.scores)
        if self.weight is not None:
            gradient, hessian = gradient * self.weight, hessian * self.weight
        mixed_gradient, mixed_hessian = _mixed(random, gradient, hessian)
        tree, leaf, sums = self.grower.descend(
            mixed_gradient * counts_as,
            mixed_hessian * counts_as,
            rows,
            others,
            self._features(random, number),
            self._bins(random, number),
        )
        steps, _, _ = round_steps(
            tree.left,
            leaf,
            rows,
            others,
            gradient,
            hessian,
            self.settings.l2_regularization,
            1.0 / self.loss.dispersion(self.y, self.scores, self.weight),
            CURVATURE,
            _STOPS if self.settings.votes else _NO_STOPS,
            tree.feature,
            self.settings.slopes,
        )
        value = self.settings.learning_rate * steps
        self.scores = add_steps(leaf, value, self.scores)
        self.trees.append(tree.saying(value))
        self.rows.append(sums[:, 2])

    def since(self, first: int) -> Trees:
        """The trees from one on."""
        return Trees.joined(self.trees[first:], self.grower.bins.n_features, len(self.scores))

    def importances(self, trees: Trees, before: Float64 | None = None) -> Float64:
        """How far cuts of its trees by each feature move rows, squared, (p,), and those before."""
        inner = np.flatnonzero(trees.left != LEAF)
        # One node after the other, so that it does not matter which fit has made which round.
        child = trees.left[inner, None] + [0, 1]
        moved = np.square(trees.value[child] - trees.value[inner, None]).sum(axis=2)
        total = np.zeros(trees.n_features) if before is None else before.copy()
        rows = np.concatenate([np.zeros(0), *self.rows])[child]
        np.add.at(total, np.repeat(trees.feature[inner], 2), (rows * moved).ravel())
        return total

    def _drawn(
        self, random: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], Float64]:
        """Rows that grow the tree of a round, those that weigh it, and what each counts as to grow.

        The weights of Rubin, "The Bayesian bootstrap", 1981, tell trees apart further.
        """
        share, n = self.settings.grow_size, len(self.keys)
        if share == 1:
            return *part_rows(np.ones(n, dtype=bool)), np.ones(n)
        # Keys are mixed already: a product with an odd number deals them anew.
        odd, other_odd = random.integers(2**64, size=2, dtype=np.uint64) | np.uint64(1)
        mixed = self.keys * odd
        grows = mixed < np.uint64(share * 2.0**64)
        if not grows.any():
            grows[mixed.argmin()] = True
        return *part_rows(grows), _EXPONENTIAL[(self.keys * other_odd) >> np.uint64(56)]

    def _bins(self, random: np.random.Generator, number: int) -> Bins:
        """Bins whose edges alone the tree of a round may cut."""
        thresholds = self.settings.thresholds
        # The next ones once all shares of the features have had their turn.
        n_edges = thresholds[number // len(self.settings.feature_shares) % len(thresholds)]
        key = int(random.integers(2**64, dtype=np.uint64))
        return self.grower.bins if n_edges is None else self.grower.bins.coarser(n_edges, key)

    def _features(self, random: np.random.Generator, number: int) -> NDArray[np.int32] | None:
        """The features that the trees of a round may compare; None: all."""
        shares = self.settings.feature_shares
        p = self.grower.bins.n_features
        n_drawn = max(1, round(shares[number % len(shares)] * p))
        if n_drawn == p:
            return None
        return np.sort(random.choice(p, n_drawn, replace=False)).astype(np.int32)


def _mixed(
    random: np.random.Generator, gradient: Float64, hessian: Float64
) -> tuple[Float64, Float64]:
    """Gradients and Hessians (n,) of a random direction among the outputs, which one tree serves.

    A random projection of the gradients is enough to find cuts that serve all of them (Iosipoi and
    Vakhrushev, "SketchBoost", NeurIPS 2022). Added output by output, so that the order of rows does
    not change a bit.
    """
    if len(gradient) == 1:
        return gradient[0], hessian[0]
    mixture = random.normal(size=len(gradient))
    mixed = np.zeros_like(gradient[0]), np.zeros_like(hessian[0])
    for factor, g, h in zip(mixture, gradient, hessian, strict=True):
        mixed[0][:] += factor * g
        mixed[1][:] += factor**2 * h
    return mixed


def started(
    loss: Loss,
    settings: Settings,
    X: NDArray[np.floating],
    y: NDArray[Any],
    weight: Float64 | None,
    categorical: NDArray[np.bool_] | None,
) -> tuple[Rounds, Float64]:
    """A run before its first round, and the scores (n_outputs,) that it starts from."""
    bins = Bins.of(X, categorical, n_jobs=settings.n_jobs)
    grower = BinnedGrower(
        bins,
        max_leaves=settings.max_leaf_nodes,
        max_depth=settings.max_depth,
        min_samples_leaf=settings.min_samples_leaf,
        monotonic_cst=settings.slopes,
        interaction_cst=settings.interaction_cst,
        n_jobs=settings.n_jobs,
    )
    if weight is not None:
        # Their unit means nothing, and large ones would overflow; summed in whatever order they come.
        weight = weight / weight.max()
        weight = weight * (len(y) / fsum(weight))
    start = loss.start(y, weight)
    scores = np.repeat(start[:, None], len(y), axis=1)
    columns = [X, y[:, None]] if weight is None else [X, y[:, None], weight[:, None]]
    keys = content_keys(np.column_stack(columns))
    return Rounds(loss, settings, grower, y, weight, keys, scores), start
