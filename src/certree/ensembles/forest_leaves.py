"""How the leaves of a forest are filled: from which rows, with how much shrinkage, and which power.

A way to fill leaves is evaluated on out-of-bag rows. If leaves are filled with out-of-bag rows,
too, each row is left out of all nodes that hold it before its loss is computed. The mean of these
losses is the exact leave-one-out loss.
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

# The candidates of leaves="auto".
AUTO_FILLS: tuple[FilledBy, ...] = ("in_bag", "all")
_SHRINKAGES = (0.0, 1.0, 3.0)
POWERS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
# Most rows whose losses decide between the candidates; more rows would cost time.
N_COMPARED_ROWS = 2**13
# Entries (trees times rows) of a block of leaves, when rows are sent down the trees again.
_LEAVES_OF_BLOCK = 2**25
# Smallest probability whose logarithm is taken; smaller ones are replaced by it.
_LEAST = 1e-15


class Leaves(NamedTuple):
    """A way to fill the leaves of a forest: from which rows' targets, and how much values are shrunk.

    Attributes
    ----------
    filled_by : {"in_bag", "all", "out_of_bag"}
        Rows whose mean target is the value of a node: the rows that the tree was grown on, all
        rows, or the rows out of the bag of the tree. "in_bag" by default.
    shrinkage : float
        Number of rows of average weight that the parent's value counts for in the value of each
        child, from the root down; 0, the default: no shrinkage.
    power : float
        Exponent of the class probabilities after they are averaged over trees; they are then
        divided by their sum. 1, the default, for regression.
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


@dataclass(slots=True, eq=False)
class LeafStatistics:
    """Sums of targets in every node of a forest, over in-bag and over out-of-bag rows.

    Leaf values and out-of-bag predictions follow from them for each way to fill leaves. The
    constructor computes the out-of-bag sums from the leaves, `y` and `weight`. M is the number of
    nodes of all T trees, n the number of training rows, q the number of targets.

    Parameters
    ----------
    out_of_bag_leaves : OutOfBagLeaves
        The leaf that each row reaches in each tree of whose bag it is out. Values of the nodes do
        not matter.
    in_bag_sums : ndarray of shape (M, 1 + n_outputs)
        Of the in-bag rows of each node: their weight, and the weighted sum of each output
        (indicator of a class, or number).
    y : ndarray of float64, shape (n, q)
        Targets of the training rows: numbers, or class codes.
    weight : ndarray of float64, shape (n,), or None
        Integer row weights; None: 1 each.
    output_groups : OutputGroups
        How many outputs belong to each of the q targets: 1 for a number or two classes, else one
        for each class. The outputs of a target are adjacent.
    scale : ndarray of shape (q,)
        Errors of a numeric target are divided by its scale; 1 for classes.
    n_threads : int
        Number of threads.
    """

    out_of_bag_leaves: OutOfBagLeaves
    in_bag_sums: Float64
    y: Float64
    weight: Float64 | None
    output_groups: OutputGroups
    scale: Float64
    n_threads: int
    _out_of_bag_sums: Float64 = field(init=False)

    def __post_init__(self) -> None:
        # A block of leaves is freed once its targets are summed.
        sums = [*map(self._sum_block, self.out_of_bag_leaves.iterate_blocks())]
        self._out_of_bag_sums = sums[0] if len(sums) == 1 else np.concatenate(sums)

    def _sum_block(self, block: tuple[Int32, Int64, Int32]) -> Float64:
        """Sum the targets of out-of-bag rows in each node of a block of trees.

        block: a tuple of three arrays: left child of each of its m nodes, (m,); root of each of its
        t trees, (t,); out-of-bag leaves, (t, n): ``~v`` = -1 - v for a row with leaf v that is out
        of the bag, 0 in the bag. All three number the nodes of the block from 0. Return for each of the
        block's m nodes the total weight, and the weighted sum of each output, (m, 1 + n_outputs).
        Targets and weights are the attributes `y` and `weight`.
        """
        return sum_out_of_bag_targets(
            *block, self.y, self.weight, self.output_groups.size_array, self.n_threads
        )

    @property
    def trees(self) -> Trees:
        """The T trees, which have M nodes together; their values are not used."""
        return self.out_of_bag_leaves.trees

    @property
    def _mean_weight(self) -> float:
        """Mean weight of the n rows; 1 without weights."""
        return compute_mean_weight(self.weight)

    def sum_targets(self, filled_by: FilledBy) -> Float64:
        """Return sums over the rows that fill each of the M nodes, (M, 1 + n_outputs).

        In column 0 the total weight, then the weighted sum of each output: of the indicator of a
        class, or of a number. filled_by: which rows these are: "in_bag", "out_of_bag", or "all" for
        both. With "out_of_bag", a tree without any out-of-bag row has the sums of its in-bag rows.
        These sums were computed with the object; nothing is read from rows here.
        """
        in_bag, out_of_bag = self.in_bag_sums, self._out_of_bag_sums
        if filled_by == "in_bag":
            return in_bag
        if filled_by == "all":
            return in_bag + out_of_bag
        empty = self.trees.root[out_of_bag[self.trees.root, 0] == 0]
        filled = out_of_bag.copy()
        filled[empty] = in_bag[empty]
        return filled

    def compute_values(self, leaves: Leaves) -> Float64:
        """Compute the values of all M nodes, (M, n_outputs); those of inner nodes are 0.

        The value of a leaf is the mean target of the rows that fill it, shrunk towards its parent's
        value: class probabilities, or numbers. leaves: which rows these are, and how much values
        are shrunk. Its exponent of probabilities, `power`, is not applied here, as it belongs to
        probabilities that are averaged over trees. A leaf without such rows has its parent's value.
        """
        sums = self.sum_targets(leaves.filled_by)
        shrinkage = leaves.shrinkage * self._mean_weight
        return compute_leaf_values(self.trees, sums, shrinkage, self.n_threads)

    def sum_predictions(
        self, leaves: Leaves, n: int, leaf: Int32 | None = None, begin: int = 0
    ) -> tuple[Float64, Int32]:
        """Sum up the predictions of n rows over the trees of which they are out of bag.

        Parameters
        ----------
        leaves : Leaves
            How leaves are filled; its power is not applied. If out-of-bag rows fill leaves, each
            row is left out of the leaves that predict it.
        n : int
            Number of rows.
        leaf : ndarray of int32, shape (T, >= n), or None
            The leaves that the rows reach: ``~v`` = -1 - v for a row that is out of the bag of the
            tree, with the index v of its leaf among all M nodes; 0 for rows in the bag. None:
            `first_leaves` of `out_of_bag_leaves`, which has the first n rows if n is at most 8192.
            Leaves that rows do not really reach, as after shuffling a feature, are allowed only
            with ``filled_by="in_bag"``.
        begin : int
            Index of the row that column 0 of `leaf` belongs to.

        Returns
        -------
        total : ndarray of shape (n, n_outputs)
            Sum of the predictions over trees.
        n_trees : ndarray of int32, shape (n,)
            Number of trees in the sum; 0, as the sum is, for a row in every bag.
        """
        leaf = self.out_of_bag_leaves.first_leaves if leaf is None else leaf
        rows = slice(begin, begin + leaf.shape[1])
        return sum_out_of_bag_predictions(
            self.trees.left,
            self.trees.root,
            leaf,
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            self.output_groups.size_array,
            self.sum_targets(leaves.filled_by),
            leaves.filled_by != "in_bag",
            leaves.shrinkage * self._mean_weight,
            n,
            self.n_threads,
        )

    def sum_all_predictions(self, leaves: Leaves) -> tuple[Float64, Int32]:
        """Sum up the predictions of all n rows over the trees of which they are out of bag.

        leaves: which rows' targets determine leaf values, and how much these are shrunk. Return the
        sums, (n, n_outputs), and the number of trees in each, (n,); both are 0 for a row in every
        bag. Rows are processed in blocks.
        """
        n, n_first = len(self.y), self.out_of_bag_leaves.first_leaves.shape[1]
        results = [self.sum_predictions(leaves, n_first)]
        step = max(1, _LEAVES_OF_BLOCK // len(self.trees))
        for begin in range(n_first, n, step):
            leaf = self.out_of_bag_leaves.find_leaves(begin, min(begin + step, n))
            results.append(self.sum_predictions(leaves, leaf.shape[1], leaf, begin))
        if len(results) == 1:
            return results[0]
        totals, counts = zip(*results, strict=True)
        return np.concatenate(totals), np.concatenate(counts)

    def choose_leaves(self, classes: bool, fills: tuple[FilledBy, ...] = AUTO_FILLS) -> Leaves:
        """Choose the way to fill leaves with the smallest mean out-of-bag loss.

        The candidates fill leaves from each of the sets of rows in `fills`, with shrinkage 0, 1 or
        3, and for classes with 12 exponents of probabilities, 0.8 to 4 (`POWERS`). Losses, by the
        targets `y` and averaged by `weight`, are those of the first 8192 rows (`N_COMPARED_ROWS`),
        without rows that no tree predicts. Return `PLAIN_LEAVES` (in-bag rows, shrinkage 0,
        exponent 1) if no tree predicts any of these rows, or if the candidate with the smallest
        mean loss lowers it by at most one standard error of the paired differences.

        classes: True for log loss, False for squared error; fills: sets of rows, "in_bag" among
        them.
        """
        n = min(len(self.y), N_COMPARED_ROWS)
        rows: Any = None
        losses: dict[Leaves, Float64] = {}
        for leaves in _iterate_candidates(fills):
            total, n_trees = self.sum_predictions(leaves, n)
            rows = np.flatnonzero(n_trees > 0)
            if not len(rows):
                return PLAIN_LEAVES
            mean = total[rows] / n_trees[rows, None]
            powers = POWERS if classes else (1.0,)
            loss_by_power = self.compute_losses(mean, rows, classes, powers)
            candidates = (leaves._replace(power=power) for power in powers)
            losses |= dict(zip(candidates, loss_by_power, strict=True))
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        best = min(losses, key=lambda leaves: float(np.average(losses[leaves], weights=weight)))
        return best if _is_better(losses[best] - losses[PLAIN_LEAVES], weight) else PLAIN_LEAVES

    def compute_losses(
        self, mean: Float64, rows: Any, classes: bool, powers: tuple[float, ...]
    ) -> list[Float64]:
        """Compute the loss of k rows by the targets `y`, summed over targets, for each exponent.

        Parameters
        ----------
        mean : ndarray of shape (k, n_outputs)
            Predictions averaged over trees.
        rows : ndarray of int, shape (k,), or slice
            Indices of the k rows among the n training rows, in the order of `mean`.
        classes : bool
            True for log loss (nats), False for squared error; errors are divided by `scale` before
            they are squared.
        powers : tuple of float
            Exponents of the class probabilities, which are then divided by their sum; not used for
            squared error.

        Returns
        -------
        list of ndarray of shape (k,)
            Log losses for each exponent, or a single array of squared errors.
        """
        by_target = [
            compute_losses_by_power(outputs, y, classes, powers, scale)
            for outputs, y, scale in zip(
                self.output_groups.split(mean), self.y[rows].T, self.scale, strict=True
            )
        ]
        return [sum(losses) for losses in zip(*by_target, strict=True)]


def _iterate_candidates(fills: tuple[FilledBy, ...]) -> Iterator[Leaves]:
    """Yield the ways to fill leaves that leaves="auto" compares, each with power 1.

    There are three for each set of rows in `fills`: with shrinkage 0, 1 and 3. Plain leaves, filled
    by in-bag rows without shrinkage, are among them if "in_bag" is in `fills`.
    """
    for filled_by in fills:
        for shrinkage in _SHRINKAGES:
            yield Leaves(filled_by, shrinkage)


def compute_losses_by_power(
    mean: Float64,
    y: Float64,
    classes: bool,
    powers: tuple[float, ...] = (1.0,),
    scale: float = 1.0,
) -> list[Float64]:
    """Compute the loss of each row of one target: squared error, or log loss for each power.

    Parameters
    ----------
    mean : ndarray of shape (k, n_outputs)
        Predictions averaged over trees: numbers, or class probabilities (of two classes that of the
        second).
    y : ndarray of float64, shape (k,)
        Numbers, or class codes.
    classes : bool
        Whether the target is a class.
    powers : tuple of float
        Exponents of the probabilities, which are then divided by their sum.
    scale : float
        Errors of numbers are divided by it.

    Returns
    -------
    list of ndarray of shape (k,)
        Squared errors in one array, or log losses (nats) in one array for each power.
    """
    if not classes:
        return [np.square((mean[:, 0] - y) / scale)]
    log_probabilities = np.log(np.maximum(expand_to_all_classes(mean), _LEAST))
    log_true = log_probabilities[np.arange(len(y)), y.astype(np.intp)]
    # The largest probability is at least 1 / K, so the sums do not underflow.
    totals = [np.log(np.exp(power * log_probabilities).sum(axis=1)) for power in powers]
    return [total - power * log_true for power, total in zip(powers, totals, strict=True)]


def _is_better(difference: Float64, weight: Float64) -> bool:
    """Return whether the weighted mean of differences is below 0 by more than its standard error.

    difference: loss of a candidate for `Leaves` minus loss of plain leaves (filled by in-bag rows,
    not shrunk) for each of k rows, (k,); weight: row weights, (k,).
    """
    fraction = weight / weight.sum()
    # Squares of large losses would overflow.
    difference = difference / max(np.abs(difference).max(), np.finfo(float).tiny)
    mean = float(fraction @ difference)
    error = np.sqrt(float(np.square(fraction) @ np.square(difference - mean)))
    return mean < -error


def expand_to_all_classes(mean: Float64) -> Float64:
    """Return the probabilities of all K classes, (n, K).

    mean: these probabilities, which are returned unchanged; or only that of the second of two
    classes, (n, 1), which is clipped to [0, 1].
    """
    if mean.shape[1] > 1:
        return mean
    second = np.clip(mean[:, 0], 0.0, 1.0)
    return np.column_stack([1.0 - second, second])


def compute_mean_weight(weight: Float64 | None) -> float:
    """Return the mean of the row weights, (n,); 1 if weight is None."""
    return 1.0 if weight is None else float(weight.mean())


def compute_leaf_values(trees: Trees, sums: Float64, shrinkage: float, n_threads: int) -> Float64:
    """Compute leaf values: means of targets that are shrunk towards the parents' values.

    Parameters
    ----------
    trees : Trees
        Trees with M nodes, whose own values do not matter.
    sums : ndarray of shape (M, 1 + n_outputs)
        Sums over the rows that fill each node: total weight, then the weighted sum of each output.
    shrinkage : float
        Weight, in the unit of column 0 of `sums`, that the parent's value gets in the mean of each
        node, from the root down; 0: none.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of shape (M, n_outputs)
        Values of the leaves; those of inner nodes are 0. A leaf of weight 0 has its parent's value,
        a tree of weight 0 the value 0.
    """
    value = shrink_leaves(trees.left, trees.root, sums, shrinkage, n_threads)
    return np.where((trees.left < 0)[:, None], value, 0.0)
