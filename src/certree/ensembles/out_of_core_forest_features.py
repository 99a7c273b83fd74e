"""Features of a forest's rows as bin codes in a memory-mapped file, for out-of-core fits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from certree._core import draw_rows
from certree.ensembles.forest_leaves import N_COMPARED_ROWS
from certree.ensembles.forest_samples import SelectRows
from certree.grow.binned_grower import RowSampling
from certree.grow.bins import Bins, UInt8
from certree.grow.code_trees import (
    convert_codes_to_floats,
    convert_trees_to_bin_codes,
    iterate_row_blocks,
)
from certree.interface.arrays import Int32, Int64
from certree.stats.ranked_categories import RankedCategories
from certree.tree import LEAF, Trees

# Entries (trees times rows) of a block of leaves.
LEAVES_PER_BLOCK = 2**25


@dataclass(frozen=True, slots=True, eq=False)
class BinnedFeatures:
    """Features of a forest's training rows, of which only the bin codes are stored.

    It is used for out-of-core and distributed data, and has the interface `ForestFeatures`: bins
    from which trees grow, and the leaves that out-of-bag rows reach.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, p)
        Bin code of each value, rows in the order of `ForestSamples`; 255 for a missing value.
    edges : Bins
        The bin edges of the features, without codes.
    ranked : RankedCategories or None
        For features with very many categories: the rank of each category, its position in the order
        of mean targets. `codes` and `edges` have ranks in place of these categories. None: there are
        no such features.
    """

    codes: UInt8
    edges: Bins
    ranked: RankedCategories | None = None

    @property
    def n_features(self) -> int:
        """Number of features of the training rows, p."""
        return self.edges.n_features

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:  # noqa: ARG002 -- in edges
        """Return bin edges and bin codes of all rows, from which trees grow.

        Both arguments, categorical and n_jobs, are ignored, as the rows are binned already.
        """
        return replace(self.edges, codes=self.codes.T)

    def replace_ranks(self, trees: Trees) -> Trees:
        """Convert trees that were grown on these bins to trees that take encoded rows.

        Splits on ranks of categories (by mean target) become splits on sets of categories.
        """
        return trees if self.ranked is None else self.ranked.replace_by_category_sets(trees)

    def find_out_of_bag_leaves(
        self,
        trees: Trees,
        row_sampling: RowSampling,
        n_threads: int,
        select: SelectRows | None = None,
    ) -> BinnedOutOfBagLeaves:
        """Draw the bags (samples of rows) of the trees again, and return an object that finds leaves.

        It finds the leaves that rows reach in the trees of whose bags they are out.

        No leaves are computed yet. trees: trees that were grown on these bins; row_sampling: how their
        bags were drawn (number of draws, seed, with or without replacement); n_threads: number of
        threads that find leaves; select: takes the mask of the rows out of a tree's bag, (n,) bool,
        and returns the mask of those that count as such; None: all count.
        """
        n = len(self.codes)
        is_out = np.empty((len(trees), -(-n // 8)), dtype=np.uint8)
        for number, bits in enumerate(is_out):
            of_tree = draw_rows(n, row_sampling, number) == 0
            bits[:] = np.packbits(of_tree if select is None else select(of_tree))
        code_trees = convert_trees_to_bin_codes(trees, self.edges)
        return BinnedOutOfBagLeaves(trees, code_trees, self.codes, is_out, n_threads)


@dataclass(frozen=True, eq=False)
class BinnedOutOfBagLeaves:
    """Finds the leaves that out-of-bag rows reach in each tree, anew on each call.

    The leaves of all rows in all trees would take too much memory. The class has the interface
    `OutOfBagLeaves`.

    Parameters
    ----------
    trees : Trees
        The T trees. Their thresholds and categories are those of the original features.
    code_trees : Trees
        The same trees with bin codes as thresholds and categories, so that they take `codes`.
    codes : ndarray of uint8, shape (n, p)
        Bin codes of the rows.
    is_out : ndarray of uint8, shape (T, ceil(n / 8))
        Whether each row counts as out of the bag of each tree, as packed bits (`numpy.packbits`).
        In time order not all rows that are out of a bag count.
    n_threads : int
        Number of threads.
    """

    trees: Trees
    code_trees: Trees
    codes: UInt8
    is_out: UInt8
    n_threads: int

    @cached_property
    def first_leaves(self) -> Int32:
        """Out-of-bag leaves of the first k = min(n, 8192) rows, (T, k).

        An entry is ``~v`` = -1 - v if the row counts as out of the bag of the tree (see `is_out`),
        with the index v of its leaf among the nodes of all T trees; else 0. The losses of these
        rows decide from which rows leaf values are computed, such as in-bag or all rows, and how
        much they are shrunk.
        """
        return self.find_leaves(0, min(len(self.codes), N_COMPARED_ROWS))

    def find_leaves(self, begin: int, end: int) -> Int32:
        """Find out-of-bag leaves of rows begin .. end - 1, (T, end - begin).

        Each of the T trees has one row. An entry is ``~v`` = -1 - v if the row counts as out of the
        bag of the tree (see `is_out`), with the index v of its leaf among the nodes of all T trees;
        else 0.
        """
        floats = convert_codes_to_floats(self.codes[begin:end])
        leaf = self.code_trees.find_leaves(floats, self.n_threads)
        first = begin // 8
        bits = np.unpackbits(self.is_out[:, first : -(-end // 8)], axis=1)
        return np.where(bits[:, begin - 8 * first :][:, : end - begin] > 0, ~leaf, 0)

    def iterate_blocks(self) -> Iterator[tuple[Int32, Int64, Int32]]:
        """Yield the out-of-bag leaves of all n rows in blocks of t consecutive trees.

        Each block is a tuple: index of the left child of each of the block's m nodes, (m,), where
        the right child follows it, and negative at leaves; index of the root of each tree, (t,);
        out-of-bag leaves, (t, n): ``~v`` = -1 - v for a row with leaf v that counts as out of the
        bag (see `is_out`), else 0. All three number the nodes of the block from 0.
        """
        n_trees = len(self.trees)
        step = max(1, min(n_trees, LEAVES_PER_BLOCK // len(self.codes)))
        with ThreadPoolExecutor(self.n_threads) as pool:
            for begin, end in pairwise([*range(0, n_trees, step), n_trees]):
                # Without a reference here, a block is freed before the next one is computed.
                yield self._find_block(begin, end, pool)

    def _find_block(
        self, begin: int, end: int, pool: ThreadPoolExecutor
    ) -> tuple[Int32, Int64, Int32]:
        """Find the out-of-bag leaves of trees begin .. end - 1, each tree in a thread of the pool.

        begin, end: indices among the T trees of the object. Return for t = end - begin trees with m
        nodes the left child of each node, (m,), the root of each tree, (t,), and the out-of-bag
        leaves, (t, n): ``~v`` = -1 - v for a row with leaf v that counts as out of the bag, else 0.
        All three number the nodes of the block from 0.
        """
        first, last = np.append(self.trees.root, self.trees.n_nodes)[[begin, end]]
        leaf = np.zeros((end - begin, len(self.codes)), dtype=np.int32)
        # The nodes of the block are numbered from 0.
        root = self.trees.root[begin:end] - first
        [*pool.map(self._fill_leaves_of_tree, range(begin, end), leaf, root)]
        left = self.trees.left[first:last]
        return np.where(left == LEAF, LEAF, left - first).astype(np.int32), root, leaf

    def _fill_leaves_of_tree(self, number: int, leaf: Int32, root: int) -> None:
        """Write the leaves of the rows that are out of the bag of one tree into the array `leaf`.

        number: index of the tree among the T trees; leaf: array with an entry for each of the n
        rows, (n,). The entry of an out-of-bag row becomes ``~v`` = -1 - v, with the index v of the
        leaf that the row reaches; other entries stay. root: index of the tree's root in the
        numbering of v, which is `root` plus the index of the leaf within its tree.
        """
        out = np.flatnonzero(np.unpackbits(self.is_out[number], count=len(leaf)))
        tree = self.code_trees.tree(number)
        for block in iterate_row_blocks(len(out), self.codes.shape[1]):
            rows = out[block]
            floats = convert_codes_to_floats(self.codes[rows])
            leaf[rows] = ~(tree.find_leaves(floats, 1)[0] + root)
