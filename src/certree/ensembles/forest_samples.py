"""The rows of a forest, in an order that does not depend on that in which they came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import whole_weights
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.rows.copies import copies
from certree.rows.folds import Indices
from certree.rows.hashes import content_keys, order_of_targets
from certree.rows.sparse_rows import AnyColumns
from certree.rows.training import Training
from certree.tree import Trees

# Kind, number of draws, and seed: see `BinnedGrower.drawing`.
Drawing = tuple[str, int, int]


class Walk(Protocol):
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


class DrawnFeatures(Protocol):
    """Features of rows in the order in which they are drawn."""

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        ...

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:
        """The rows as trees see them."""
        ...

    def walk(self, trees: Trees, drawing: Drawing, n_threads: int) -> Walk:
        """Send rows down trees."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class WalkInMemory:
    """See `Walk`: all rows at once, leaf of shape (T, n)."""

    trees: Trees
    first: Int32

    def leaf(self, begin: int, end: int) -> Int32:
        """See `Walk`."""
        return np.ascontiguousarray(self.first[:, begin:end])

    def parts(self) -> Iterator[tuple[Int32, Int64, Int32]]:
        """See `Walk`."""
        yield self.trees.left, self.trees.root, self.first


@dataclass(frozen=True, slots=True, eq=False)
class OrderedFeatures:
    """See `DrawnFeatures`: those of rows in memory, in the order that is given."""

    features: AnyColumns
    order: Indices

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.features.n_features

    @property
    def X(self) -> Any:  # noqa: N802
        """All of them in order, (n, p), sparse if they are: a copy; most of a fit does without."""
        return self.features.taken(self.order)

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:
        """See `DrawnFeatures`."""
        return Bins.of(self.features, categorical, fine_ends=True, n_jobs=n_jobs).at(self.order)

    def walk(self, trees: Trees, drawing: Drawing, n_threads: int) -> WalkInMemory:
        """See `DrawnFeatures`."""
        return WalkInMemory(trees, trees.out_of_bag(self.X, drawing, n_threads))


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows:
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
    def of(cls, training: Training) -> GivenRows:
        """Those of rows in memory."""
        sides, n = training.sides, len(training.y)
        indices = np.arange(n) if sides.indices is None else sides.indices
        n_given = n if sides.n_given is None else sides.n_given
        return cls(n_given, indices, training.y, training.weight)


def ordered(keys: UInt64) -> tuple[Indices, int]:
    """The order of rows by keys of their content, and a number that other rows do not have."""
    order = np.argsort(keys, kind="stable")
    digest = blake2b(keys[order].tobytes(), digest_size=7).digest()
    return order, int.from_bytes(digest, "little")


@dataclass(frozen=True, slots=True, eq=False)
class ForestSamples:
    """Rows that grow trees and judge them, by ascending keys of their content.

    Parameters
    ----------
    features : DrawnFeatures
        Features of the rows.
    y : ndarray of shape (n,), or (n, q)
        Codes of classes, or numbers; of several targets those of each.
    weight : ndarray of shape (n,), or None
        Whole weights; None: 1 each.
    place : ndarray of intp, shape (n,)
        Which of the rows given each is; one of a whole weight is there as many times.
    content : int
        A number that other rows, or other weights, do not have.
    columns : ndarray of intp, shape (q,)
        Which of the targets given each is: they stand in an order that they tell themselves, as do
        sums over them.
    """

    features: DrawnFeatures
    y: NDArray[Any]
    weight: Float64 | None
    place: Indices
    content: int
    columns: Indices

    @classmethod
    def of(cls, training: Training) -> ForestSamples:
        """Copy rows of whole weights, or make weights whole, and sort all by their content."""
        features, y, weight = training.features, training.y, training.weight
        indices = training.sides.indices
        place = np.arange(len(y)) if indices is None else indices
        copied = copies(weight, len(y))
        if copied is not None:
            features, y, weight = features.at(copied), y[copied], None
            place = place[copied]
        whole = None if weight is None else whole_weights(weight)
        columns = np.zeros(1, dtype=np.intp)
        if y.ndim == 2:
            columns = order_of_targets(y, *features.parts)
            y = y[:, columns]
        keys = content_keys(*features.parts, y, *(() if whole is None else (whole,)))
        order, content = ordered(keys)
        weighed = None if whole is None else whole[order]
        drawn = OrderedFeatures(features, order)
        return cls(drawn, y[order], weighed, place[order], content, columns)

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

    def mean_given(self, said: Float64, times: NDArray[Any], n: int) -> Float64:
        """Mean for each of n rows given of what its copies were told, (n, n_outputs), so many times.

        NaN for rows that were told nothing.
        """
        total, count = np.zeros((n, said.shape[1])), np.zeros(n)
        np.add.at(total, self.place, said)
        np.add.at(count, self.place, times)
        with np.errstate(invalid="ignore"):
            return total / np.where(count > 0, count, np.nan)[:, None]
