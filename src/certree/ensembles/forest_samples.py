"""The rows of a forest, in an order that does not depend on that in which they came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.grow.binned_grower import RowSampling
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.rows.folds import Indices, number_groups
from certree.rows.hashes import compute_content_keys, compute_keys, hash_samples, order_targets
from certree.rows.queries import compute_group_keys
from certree.rows.relative_weights import compute_integer_weights
from certree.rows.sparse_rows import DenseOrSparseFeatures
from certree.rows.training import Training
from certree.tree import Trees


class OutOfBagLeaves(Protocol):
    """Where rows arrive in trees out of whose bags they are: complements of leaves, 0 for others."""

    @property
    def trees(self) -> Trees:
        """The trees."""
        ...

    @property
    def first(self) -> Int32:
        """Those of the first rows, (T, any): of those that judge, at least."""
        ...

    def leaf(self, begin: int, end: int) -> Int32:
        """Those of some rows, (T, end - begin)."""
        ...

    def parts(self) -> Iterator[tuple[Int32, Int64, Int32]]:
        """Those of all rows, some trees at a time: their left children and roots, and leaves."""
        ...


class ForestFeatures(Protocol):
    """Features of rows in the order in which they are drawn."""

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        ...

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:
        """The rows as trees see them."""
        ...

    def walk(self, trees: Trees, drawing: RowSampling, n_threads: int) -> OutOfBagLeaves:
        """Send rows down trees."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class InMemoryOutOfBagLeaves:
    """See `OutOfBagLeaves`: all rows at once, leaf of shape (T, n)."""

    trees: Trees
    first: Int32

    def leaf(self, begin: int, end: int) -> Int32:
        """See `OutOfBagLeaves`."""
        return np.ascontiguousarray(self.first[:, begin:end])

    def parts(self) -> Iterator[tuple[Int32, Int64, Int32]]:
        """See `OutOfBagLeaves`."""
        yield self.trees.left, self.trees.root, self.first


@dataclass(frozen=True, slots=True, eq=False)
class SortedFeatures:
    """See `ForestFeatures`: those of rows in memory, in the order that is given."""

    features: DenseOrSparseFeatures
    order: Indices
    feature_order: Int32

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.features.n_features

    @property
    def X(self) -> Any:  # noqa: N802
        """All of them in order, (n, p), sparse if they are: a copy; most of a fit does without."""
        return self.features.take_matrix(self.order)

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:
        """See `ForestFeatures`."""
        look = self.feature_order
        bins = Bins.from_table(
            self.features, categorical, fine_ends=True, n_jobs=n_jobs, feature_order=look
        )
        return bins.select_rows(self.order)

    def walk(self, trees: Trees, drawing: RowSampling, n_threads: int) -> InMemoryOutOfBagLeaves:
        """See `ForestFeatures`."""
        return InMemoryOutOfBagLeaves(
            trees, trees.find_out_of_bag_leaves(self.X, drawing, n_threads)
        )


@dataclass(frozen=True, slots=True, eq=False)
class InputRows:
    """The rows of a fit in the order in which they were given, without those of weight zero.

    Parameters
    ----------
    n : int
        How many were given.
    indices : ndarray of intp, shape (any,)
        Which of these they are.
    y : ndarray of shape (any,), or (any, q)
        Codes of classes, or numbers.
    weight : ndarray of float64, shape (any,), or None
        Weights.
    """

    n: int
    indices: Indices
    y: NDArray[Any]
    weight: Float64 | None

    @classmethod
    def of(cls, training: Training) -> InputRows:
        """Those of rows in memory."""
        sides, n = training.split, len(training.y)
        indices = np.arange(n) if sides.indices is None else sides.indices
        n_given = n if sides.n_given is None else sides.n_given
        return cls(n_given, indices, training.y, training.weight)


def sort_by_keys(keys: UInt64, weight: Float64 | None) -> tuple[Indices, int]:
    """Sort rows by the keys of their content, and compute a number that no other rows have."""
    order = np.argsort(keys, kind="stable")
    digest = compute_digest(keys[order])
    return order, digest if weight is None else digest ^ compute_digest(weight[order])


def compute_digest(values: NDArray[Any]) -> int:
    """Compute a number of 56 bits that other values hardly ever have."""
    return int.from_bytes(blake2b(values.tobytes(), digest_size=7).digest(), "little")


@dataclass(frozen=True, slots=True, eq=False)
class ForestSamples:
    """Rows that grow trees and judge them, by ascending keys of their content.

    Parameters
    ----------
    features : ForestFeatures
        Features of the rows.
    y : ndarray of shape (n,), or (n, q)
        Codes of classes, or numbers; of several targets those of each.
    weight : ndarray of shape (n,), or None
        Whole weights; None: 1 each.
    place : ndarray of intp, shape (n,)
        Which of the rows given each is.
    content : int
        A number that other rows, or other weights or groups, do not have.
    columns : ndarray of intp, shape (q,)
        Which of the targets given each is: they stand in an order that they tell themselves, as do
        sums over them.
    feature_order : ndarray of int32, shape (p,)
        In which features are looked at and drawn.
    group : ndarray of int32, shape (n,), or None
        Number of each row's group, all rows of which are drawn together; None: each row by itself.
    """

    features: ForestFeatures
    y: NDArray[Any]
    weight: Float64 | None
    place: Indices
    content: int
    columns: Indices
    feature_order: Int32
    group: Int32 | None = None

    @classmethod
    def of(cls, training: Training) -> ForestSamples:
        """Turn weights into integers, and sort rows by their content."""
        features, y, weight = training.features, training.y, training.weight
        look = training.draw_order
        indices = training.split.indices
        place = np.arange(len(y)) if indices is None else indices
        whole = None if weight is None else compute_integer_weights(weight)
        columns = np.zeros(1, dtype=np.intp)
        if y.ndim == 2:
            columns = order_targets(y, *features.tables, order=look)
            y = y[:, columns]
        if training.split.groups is None:
            keys = compute_content_keys(*features.tables, y, weight=whole, order=look)
            order, content = sort_by_keys(keys, whole)
            group = None
        else:
            _, given = number_groups(training.split.groups)
            hashes = hash_samples(*features.tables, y, order=look)
            keys = compute_group_keys(hashes, given, whole)
            number = keys.argsort(kind="stable").argsort().astype(np.int32)[given]
            # Equal rows come by their groups, wherever they stand.
            by_group = np.argsort(number, kind="stable")
            weighed = None if whole is None else whole[by_group]
            hashes[by_group] = compute_keys(hashes[by_group], weighed)
            order, content = sort_by_keys(hashes, whole)
            group = number[order]
            content ^= compute_digest(group)
        weighed = None if whole is None else whole[order]
        drawn = SortedFeatures(features, order, look)
        return cls(drawn, y[order], weighed, place[order], content, columns, look, group)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.features.n_features

    @property
    def targets(self) -> Float64:
        """Targets as the core takes them, (n, q)."""
        return np.ascontiguousarray(self.y.reshape(len(self.y), -1), dtype=np.float64)

    @property
    def deviations(self) -> Float64:
        """Standard deviation of each target, (q,); 1 where it does not vary."""
        y, weight = self.targets, self.weights()
        variance = np.average((y - np.average(y, 0, weight)) ** 2, 0, weight)
        deviations: Float64 = np.where(np.ptp(y, axis=0) > 0, np.sqrt(variance), 1.0)
        return deviations

    def weights(self) -> Float64:
        """Weight of each row."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def average_by_input_row(self, said: Float64, times: NDArray[Any], n: int) -> Float64:
        """Compute the mean for each of n rows given of what it was told so many times, (n, n_outputs).

        NaN for rows that were told nothing.
        """
        mean = np.full((n, said.shape[1]), np.nan)
        told = times > 0
        mean[self.place[told]] = said[told] / times[told, None]
        return mean
