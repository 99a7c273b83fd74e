"""How the leaves of a forest are filled: by which rows, drawn to their parents, with what power.

Trees of a forest are judged by rows out of their bags. Where a leaf counts such rows, too, each is
taken out of all the cells that hold it before it judges: what is averaged is the loss of leaving one
row out, exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from certree._core import shrink_leaves, sum_out_of_bag_predictions, sum_out_of_bag_targets
from certree.ensembles.forest_samples import OutOfBagLeaves
from certree.explain.output_groups import OutputGroups
from certree.interface.arrays import Float64, Int32, Int64
from certree.tree import Trees

FilledBy = Literal["in_bag", "all", "out_of_bag"]
FILLED_BY: tuple[FilledBy, ...] = get_args(FilledBy)

# What "auto" chooses among.
_FILLED: tuple[FilledBy, ...] = ("in_bag", "all")
_SHRINKAGES = (0.0, 1.0, 3.0)
POWERS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
# So many rows tell candidates apart; more cost time.
N_COMPARED_ROWS = 2**13
# So many leaves at a time, of rows that are sent down trees again.
_LEAVES_OF_BLOCK = 2**25
# Logarithms of probabilities that are 0.
_LEAST = 1e-15


class Leaves(NamedTuple):
    """How leaves are filled.

    Attributes
    ----------
    filled_by : {"in_bag", "all", "out_of_bag"}
        Whose means they say: those of the rows that grew the tree, of these and those that did not, or
        of the latter alone.
    shrinkage : float
        So many rows of the mean of its parent's count in every cell, from the root down.
    power : float
        Of the averaged probabilities, which are then divided by their sum.
    """

    filled_by: FilledBy = "in_bag"
    shrinkage: float = 0.0
    power: float = 1.0


PLAIN_LEAVES = Leaves()
NAMED_LEAVES = {
    "plain": PLAIN_LEAVES,
    "shrunk": Leaves(shrinkage=1.0),
    "refilled": Leaves("all"),
    "honest": Leaves("out_of_bag"),
}


def restore_leaves(given: Any) -> Leaves:
    """Leaves as a file holds them."""
    if not isinstance(given, list) or len(given) != 3 or given[0] not in FILLED_BY:
        raise ValueError(f"leaves must be a way to fill them and two numbers, got {given!r}")
    if not all(type(one) is float and 0 <= one < 2**16 for one in given[1:]):
        raise ValueError(f"leaves must have finite numbers >= 0, got {given!r}")
    return Leaves(*given)


@dataclass(slots=True, eq=False)
class LeafStatistics:
    """Rows that have walked down the trees of a forest.

    Parameters
    ----------
    walk : OutOfBagLeaves
        Where rows arrive that are out of bags; what nodes say has no part in it.
    inside : ndarray of shape (M, 1 + n_lanes)
        What the rows in the bags sum up to in each node, weight first.
    y : ndarray of float64, shape (n, q)
        Numbers, or codes of classes, of each target.
    weight : ndarray of shape (n,), or None
        Whole weights.
    lanes : OutputGroups
        What leaves say of each target.
    scale : ndarray of shape (q,)
        In units of which errors of numbers count; 1 for classes.
    n_threads : int
        Number of threads.
    """

    walk: OutOfBagLeaves
    inside: Float64
    y: Float64
    weight: Float64 | None
    lanes: OutputGroups
    scale: Float64
    n_threads: int
    _outside: Float64 = field(init=False)

    def __post_init__(self) -> None:
        # Leaves of all rows are not held once they are added up.
        sums = [*map(self._added_up, self.walk.parts())]
        self._outside = sums[0] if len(sums) == 1 else np.concatenate(sums)

    def _added_up(self, part: tuple[Int32, Int64, Int32]) -> Float64:
        """What rows sum up to that arrive in some trees."""
        return sum_out_of_bag_targets(
            *part, self.y, self.weight, self.lanes.size_array, self.n_threads
        )

    @property
    def trees(self) -> Trees:
        """The trees."""
        return self.walk.trees

    @property
    def _unit(self) -> float:
        """Weight of a row."""
        return compute_mean_weight(self.weight)

    def sums(self, filled_by: FilledBy) -> Float64:
        """What nodes sum up to, (M, 1 + n_lanes)."""
        inside, outside = self.inside, self._outside
        if filled_by == "in_bag":
            return inside
        if filled_by == "all":
            return inside + outside
        # A tree that has no rows out of its bag says what it would without honesty.
        empty = self.trees.root[outside[self.trees.root, 0] == 0]
        filled = outside.copy()
        filled[empty] = inside[empty]
        return filled

    def values(self, leaves: Leaves) -> Float64:
        """What nodes say, (M, n_lanes)."""
        sums = self.sums(leaves.filled_by)
        return compute_leaf_values(self.trees, sums, leaves.shrinkage * self._unit, self.n_threads)

    def said(
        self, leaves: Leaves, n: int, leaf: Int32 | None = None, begin: int = 0
    ) -> tuple[Float64, Int32]:
        """What trees say of n rows out of their bags, added up, and how many they are.

        leaf: where rows arrive, from `begin` on; None: the first ones at their own leaves. At other
        leaves than their own rows may be judged by those that are filled by rows in bags.
        """
        leaf = self.walk.first if leaf is None else leaf
        rows = slice(begin, begin + leaf.shape[1])
        return sum_out_of_bag_predictions(
            self.trees.left,
            self.trees.root,
            leaf,
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            self.lanes.size_array,
            self.sums(leaves.filled_by),
            leaves.filled_by != "in_bag",
            leaves.shrinkage * self._unit,
            n,
            self.n_threads,
        )

    def sum_all_predictions(self, leaves: Leaves) -> tuple[Float64, Int32]:
        """The same of all rows."""
        n, n_first = len(self.y), self.walk.first.shape[1]
        told = [self.said(leaves, n_first)]
        step = max(1, _LEAVES_OF_BLOCK // len(self.trees))
        for begin in range(n_first, n, step):
            leaf = self.walk.leaf(begin, min(begin + step, n))
            told.append(self.said(leaves, leaf.shape[1], leaf, begin))
        if len(told) == 1:
            return told[0]
        totals, counts = zip(*told, strict=True)
        return np.concatenate(totals), np.concatenate(counts)

    def best(self, classes: bool) -> Leaves:
        """Choose leaves by the loss of rows that are left out; plain ones unless others are better.

        Better is what lowers the mean loss by more than its standard error, pair by pair.
        """
        n = min(len(self.y), N_COMPARED_ROWS)
        judges: Any = None
        losses: dict[Leaves, Float64] = {}
        for leaves in _candidates():
            total, n_trees = self.said(leaves, n)
            judges = np.flatnonzero(n_trees > 0)
            if not len(judges):
                return PLAIN_LEAVES
            mean = total[judges] / n_trees[judges, None]
            powers = POWERS if classes else (1.0,)
            found = self.losses(mean, judges, classes, powers)
            raised = (leaves._replace(power=power) for power in powers)
            losses |= dict(zip(raised, found, strict=True))
        weight = np.ones(len(judges)) if self.weight is None else self.weight[judges]
        best = min(losses, key=lambda one: float(np.average(losses[one], weights=weight)))
        return best if _is_better(losses[best] - losses[PLAIN_LEAVES], weight) else PLAIN_LEAVES

    def losses(
        self, mean: Float64, judges: Any, classes: bool, powers: tuple[float, ...]
    ) -> list[Float64]:
        """Loss of some rows by what trees say on average, for each power; of all targets in sum."""
        of_each = [
            compute_losses_by_power(said, y, classes, powers, scale)
            for said, y, scale in zip(
                self.lanes.split(mean), self.y[judges].T, self.scale, strict=True
            )
        ]
        return [sum(of_targets) for of_targets in zip(*of_each, strict=True)]


def _candidates() -> Iterator[Leaves]:
    for filled_by in _FILLED:
        for shrinkage in _SHRINKAGES:
            yield Leaves(filled_by, shrinkage)


def compute_losses_by_power(
    mean: Float64,
    y: Float64,
    classes: bool,
    powers: tuple[float, ...] = (1.0,),
    scale: float = 1.0,
) -> list[Float64]:
    """Loss of each row by what trees say on average: squared error, or log loss for each power."""
    if not classes:
        return [np.square((mean[:, 0] - y) / scale)]
    log_shares = np.log(np.maximum(expand_to_all_classes(mean), _LEAST))
    own = log_shares[np.arange(len(y)), y.astype(np.intp)]
    # Shares of the likeliest class are no less than 1 / K, so the sums do not underflow.
    totals = [np.log(np.exp(power * log_shares).sum(axis=1)) for power in powers]
    return [total - power * own for power, total in zip(powers, totals, strict=True)]


def _is_better(difference: Float64, weight: Float64) -> bool:
    """Whether the mean of differences is below 0 by more than its standard error."""
    share = weight / weight.sum()
    # Losses of large numbers have no squares.
    difference = difference / max(np.abs(difference).max(), np.finfo(float).tiny)
    mean = float(share @ difference)
    error = np.sqrt(float(np.square(share) @ np.square(difference - mean)))
    return mean < -error


def expand_to_all_classes(mean: Float64) -> Float64:
    """Shares of all classes (n, K) from outputs; of two classes only the second has one."""
    if mean.shape[1] > 1:
        return mean
    second = np.clip(mean[:, 0], 0.0, 1.0)
    return np.column_stack([1.0 - second, second])


def compute_mean_weight(weight: Float64 | None) -> float:
    """Weight of a row on average."""
    return 1.0 if weight is None else float(weight.mean())


def compute_leaf_values(trees: Trees, sums: Float64, shrinkage: float, n_threads: int) -> Float64:
    """What leaves say, (M, n_lanes), drawn to their parents by so much weight; others say 0."""
    value = shrink_leaves(trees.left, trees.root, sums, shrinkage, n_threads)
    return np.where((trees.left < 0)[:, None], value, 0.0)
