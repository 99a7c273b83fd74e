"""Send rows of which only the bin codes are known down trees that were grown on these bins."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from certree._core import mark_missing
from certree.grow.bins import MISSING, AnyTrees, Bins, UInt8
from certree.interface.arrays import Int32
from certree.tree import Tree, group_by_feature

# Codes that are converted to float32 at a time.
CODES_PER_BLOCK = 2**20


def iterate_row_blocks(n: int, n_features: int) -> Iterator[slice]:
    """Yield slices that divide the rows 0 .. n - 1 into blocks of about 2^20 numbers.

    The bin codes of a block are converted to float32 at once; the blocks limit the memory for this.
    n, n_features: numbers of rows and columns of the table of bin codes.
    """
    step = max(1, CODES_PER_BLOCK // max(1, n_features))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def convert_codes_to_floats(codes: UInt8) -> NDArray[np.float32]:
    """Convert bin codes to float32, and the code of missing values (255) to NaN.

    codes: an array of any shape; the result has the same shape.
    """
    floats = codes.astype(np.float32)
    floats[codes == MISSING] = np.nan
    return floats


def convert_trees_to_bin_codes(
    trees: AnyTrees, bins: Bins, unbinned: Collection[int] = ()
) -> AnyTrees:
    """Return trees that route rows by their bin codes instead of their values.

    A row of bin codes, as floats, reaches the same leaf in the returned trees as the row's values
    reach in `trees`. trees: trees whose thresholds lie at bin edges; bins: the bin edges and the
    bin of each category; unbinned: indices of categorical features for which rows have category
    codes, not bin codes, so that their category sets stay.
    """
    n_categories = np.diff(trees.category_start)
    threshold = np.zeros(trees.n_nodes)
    for j, nodes in group_by_feature(trees.feature, np.flatnonzero(trees.compares_numbers)):
        threshold[nodes] = (
            np.searchsorted(bins.bin_ranges(j)[1], trees.threshold[nodes], "right") - 1.0
        )
    node = np.repeat(np.arange(trees.n_nodes), n_categories)
    codes = np.zeros(len(node), dtype=np.int64)
    for j, entries in group_by_feature(trees.feature[node], np.arange(len(node))):
        if j in unbinned:
            codes[entries] = trees.categories[entries]
            continue
        of_feature = slice(*bins.category_start[j : j + 2])
        index = np.searchsorted(bins.category_codes[of_feature], trees.categories[entries])
        codes[entries] = bins.category_bin[of_feature][index]
    # Categories of one bin are always in the same category set.
    n_codes = max(MISSING, int(codes.max(initial=0))) + 1
    pairs = np.unique(node * n_codes + codes)
    sizes = np.bincount(pairs // n_codes, minlength=trees.n_nodes)
    return trees.with_splits(
        threshold,
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        (pairs % n_codes).astype(np.int32),
    )


def find_divided_feature(trees: AnyTrees, bins: Bins) -> int | None:
    """Return the index of a feature with a split inside a bin, or None if no split divides a bin.

    A split divides a bin if it sends some values of the bin left and others right;
    `convert_trees_to_bin_codes` cannot convert such trees. trees: trees that were grown on these or
    on other rows; bins: the bin edges and the bin of each category.
    """
    for j, nodes in group_by_feature(trees.feature, np.flatnonzero(trees.compares_numbers)):
        low, high = bins.bin_ranges(j)
        threshold = trees.threshold[nodes]
        upper = np.append(low, np.inf)[np.searchsorted(high, threshold, "right")]
        if (upper <= threshold).any():
            return int(j)
    node = np.repeat(np.arange(trees.n_nodes), np.diff(trees.category_start))
    for j, entries in group_by_feature(trees.feature[node], np.arange(len(node))):
        of_feature = slice(*bins.category_start[j : j + 2])
        known, category_bin = bins.category_codes[of_feature], bins.category_bin[of_feature]
        if not np.isin(trees.categories[entries], known).all():
            return int(j)
        own = category_bin[np.searchsorted(known, trees.categories[entries])].astype(np.int64)
        pairs, counts = np.unique(node[entries] * (MISSING + 1) + own, return_counts=True)
        if (counts != np.bincount(category_bin)[pairs % (MISSING + 1)]).any():
            return int(j)
    return None


def route_codes(tree: Tree, bins: Bins, codes: UInt8, leaf: Int32, n_threads: int) -> None:
    """Find the leaf of each of n rows by the bin codes of their values, and write it to `leaf`.

    Parameters
    ----------
    tree : Tree
        A tree that was grown on the bins.
    bins : Bins
        Bin edges of the p features.
    codes : ndarray of uint8, shape (n, p)
        Bin codes; 255 for a missing value.
    leaf : ndarray of int32, shape (n,)
        Output array: it is filled with the node number of each row's leaf.
    n_threads : int
        Number of threads.
    """
    code_tree = convert_trees_to_bin_codes(tree, bins)
    for rows in iterate_row_blocks(*codes.shape):
        leaf[rows] = code_tree.route(convert_codes_to_floats(codes[rows]), n_threads)


def learn_missing_from_codes(tree: Tree, bins: Bins, codes: UInt8) -> Tree:
    """Return a copy of a tree with `missing_both` set at the nodes where no row lacks a value.

    `missing_both` marks nodes that send rows without the value of their feature to both children,
    as the rows of the fit do not determine the child. tree: the tree; bins: the bins that it was
    grown on; codes: bin codes of the rows that grew it, (n, p), 255 for a missing value.
    `Tree.learn_missing` does the same by the values of the rows.
    """
    code_tree = convert_trees_to_bin_codes(tree, bins)
    found = np.zeros(tree.n_nodes, dtype=np.bool_)
    for rows in iterate_row_blocks(*codes.shape):
        block = codes[rows]
        some = block[(block == MISSING).any(axis=1)]
        found |= mark_missing(*code_tree.split_columns, convert_codes_to_floats(some)).view(
            np.bool_
        )
    return tree.with_missing_nodes(found)
