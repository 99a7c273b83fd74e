"""Features of a forest's rows of which codes of bins alone are known, row by row in a file."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import draw_rows
from certree.ensembles.leaves import N_COMPARED_ROWS
from certree.grow.binned_grower import RowSampling
from certree.grow.bins import MISSING, Bins, UInt8
from certree.interface.arrays import Int32, Int64
from certree.tree import LEAF, Trees, group_by_feature

# So many codes of rows that are sent down a tree at a time, and leaves of rows that are kept.
CODES_PER_BLOCK, LEAVES_PER_BLOCK = 2**20, 2**25


@dataclass(frozen=True, slots=True, eq=False)
class BinnedFeatures:
    """See `ForestFeatures`: the rows in their bins.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, p)
        Bins of the values, in the order in which rows are drawn.
    kept : Bins
        The bins, without codes.
    """

    codes: UInt8
    kept: Bins

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.kept.n_features

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:  # noqa: ARG002 -- they are known
        """See `ForestFeatures`."""
        return replace(self.kept, codes=self.codes.T)

    def walk(self, trees: Trees, drawing: RowSampling, n_threads: int) -> BinnedOutOfBagLeaves:
        """See `ForestFeatures`."""
        n = len(self.codes)
        is_out = np.empty((len(trees), -(-n // 8)), dtype=np.uint8)
        for number, own in enumerate(is_out):
            own[:] = np.packbits(draw_rows(n, drawing, number) == 0)
        return BinnedOutOfBagLeaves(
            trees, convert_trees_to_bin_codes(trees, self.kept), self.codes, is_out, n_threads
        )


@dataclass(frozen=True, eq=False)
class BinnedOutOfBagLeaves:
    """See `OutOfBagLeaves`: leaves are found when they are asked for, as those of all rows take much memory.

    Parameters
    ----------
    trees : Trees
        The trees.
    coded : Trees
        The same by codes.
    codes : ndarray of uint8, shape (n, p)
        The rows.
    is_out : ndarray of uint8, shape (T, ceil(n / 8))
        Whether rows are out of the bags, in packed bits.
    n_threads : int
        Number of threads.
    """

    trees: Trees
    coded: Trees
    codes: UInt8
    is_out: UInt8
    n_threads: int

    @cached_property
    def first(self) -> Int32:
        """See `OutOfBagLeaves`."""
        return self.leaf(0, min(len(self.codes), N_COMPARED_ROWS))

    def leaf(self, begin: int, end: int) -> Int32:
        """See `OutOfBagLeaves`."""
        leaf = self.coded.find_leaves(
            convert_codes_to_floats(self.codes[begin:end]), self.n_threads
        )
        first = begin // 8
        bits = np.unpackbits(self.is_out[:, first : -(-end // 8)], axis=1)
        return np.where(bits[:, begin - 8 * first :][:, : end - begin] > 0, ~leaf, 0)

    def parts(self) -> Iterator[tuple[Int32, Int64, Int32]]:
        """See `OutOfBagLeaves`."""
        n_trees = len(self.trees)
        step = max(1, min(n_trees, LEAVES_PER_BLOCK // len(self.codes)))
        with ThreadPoolExecutor(self.n_threads) as pool:
            for begin, end in pairwise([*range(0, n_trees, step), n_trees]):
                yield self._part(begin, end, pool)  # which nobody holds once the next is asked for

    def _part(self, begin: int, end: int, pool: ThreadPoolExecutor) -> tuple[Int32, Int64, Int32]:
        """See `OutOfBagLeaves`: some of the trees."""
        first, last = np.append(self.trees.root, self.trees.n_nodes)[[begin, end]]
        leaf = np.zeros((end - begin, len(self.codes)), dtype=np.int32)
        # Nodes are numbered among those of these trees.
        root = self.trees.root[begin:end] - first
        [*pool.map(self._send, range(begin, end), leaf, root)]
        left = self.trees.left[first:last]
        return np.where(left == LEAF, LEAF, left - first).astype(np.int32), root, leaf

    def _send(self, number: int, leaf: Int32, root: int) -> None:
        """Find the leaves (n,) of the rows that are out of the bag of a tree."""
        out = np.flatnonzero(np.unpackbits(self.is_out[number], count=len(leaf)))
        tree, step = self.coded.tree(number), max(1, CODES_PER_BLOCK // self.codes.shape[1])
        for start in range(0, len(out), step):
            rows = out[start : start + step]
            leaf[rows] = ~(tree.find_leaves(convert_codes_to_floats(self.codes[rows]), 1)[0] + root)


def convert_codes_to_floats(codes: UInt8) -> NDArray[np.float32]:
    """Codes as trees walk by them."""
    numbers = codes.astype(np.float32)
    numbers[codes == MISSING] = np.nan
    return numbers


def convert_trees_to_bin_codes(trees: Trees, bins: Bins) -> Trees:
    """Trees that send codes of rows where the trees on these bins send the rows themselves."""
    n_levels = np.diff(trees.category_start)
    threshold = np.zeros(trees.n_nodes)
    for j, nodes in group_by_feature(trees.feature, np.flatnonzero(trees.compares_numbers)):
        threshold[nodes] = (
            np.searchsorted(bins.bin_ranges(j)[1], trees.threshold[nodes], "right") - 1.0
        )
    node = np.repeat(np.arange(trees.n_nodes), n_levels)
    codes = np.zeros(len(node), dtype=np.int64)
    for j, places in group_by_feature(trees.feature[node], np.arange(len(node))):
        own = slice(*bins.category_start[j : j + 2])
        at = np.searchsorted(bins.category_codes[own], trees.categories[places])
        codes[places] = bins.category_bin[own][at]
    # Levels of a bin stand together in the set of a node.
    pairs = np.unique(node * (MISSING + 1) + codes)
    sizes = np.bincount(pairs // (MISSING + 1), minlength=trees.n_nodes)
    return trees.with_splits(
        threshold,
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        (pairs % (MISSING + 1)).astype(np.int32),
    )
