"""Which grower a partition means."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from certree.arrays import Float64, Int32
from certree.grow.cart import Criterion, MaxFeatures, MonotonicCst, RankedRows, Splitter, grow_cart
from certree.grow.dyadic import Resolution, grow_dyadic
from certree.grow.kd import Axis, grow_kd
from certree.grow.sklearn_tree import from_sklearn
from certree.grow.stopping import MaxDepth
from certree.tree import Tree

Partition = Any  # "kd", "dyadic" or a scikit-learn decision tree


@dataclass(frozen=True, slots=True)
class Grower:
    """A partition with its switches: ``grower(X, y, sample_weight) -> Tree``.

    Parameters
    ----------
    partition : {"cart", "dyadic", "kd"} or scikit-learn decision tree
        The partition; an estimator is cloned and fitted, and stops by its own parameters.
    axis : {"cycle", "spread"}
        Of the KD partition; see `grow_kd`.
    resolution, exponent
        Of the dyadic partition; see `grow_dyadic`.
    criterion, splitter, max_leaves, min_gain, max_features, categorical_features, monotonic_cst
        Of the CART partition; see `grow_cart`.
    min_rows, max_depth, stop_when_pure
        See `grow_dyadic`.
    seed : int
        Random state of the CART partition, and of an estimator that has none of its own.
    n_jobs : int or None
        Number of threads.
    ranked : RankedRows or None
        See `on`.
    """

    partition: Partition
    axis: Axis = "cycle"
    criterion: Criterion = "gini"
    min_rows: float = 1
    max_depth: MaxDepth = None
    stop_when_pure: bool = True
    seed: int = 0
    n_jobs: int | None = None
    splitter: Splitter = "best"
    max_leaves: int | None = None
    min_gain: float = 0.0
    max_features: MaxFeatures = None
    categorical_features: NDArray[np.bool_] | None = None
    monotonic_cst: MonotonicCst = None
    resolution: Resolution = None
    exponent: float | None = None
    ranked: RankedRows | None = None

    def on(self, X: NDArray[Any]) -> "Grower":
        """The same grower for X and parts of it, which sorts X now if it ever has to."""
        if not isinstance(self.partition, str) or self.partition != "cart":
            return self
        return replace(self, ranked=RankedRows.of(X, self.categorical_features, self.n_jobs))

    def part(self, rows: NDArray[np.intp]) -> "Grower":
        """The same grower for these rows of X."""
        ascending = bool((np.diff(rows) > 0).all())
        ranked = self.ranked.part(rows) if self.ranked and ascending else None
        return replace(self, ranked=ranked)

    def __call__(
        self, X: NDArray[Any], y: Int32 | Float64, sample_weight: Float64 | None = None
    ) -> Tree:
        """Grow the tree of these rows; y holds classes or, as floating-point numbers, a target."""
        if isinstance(self.partition, str):
            switches: dict[str, Any] = {
                "min_rows": self.min_rows,
                "max_depth": self.max_depth,
                "stop_when_pure": self.stop_when_pure,
                "sample_weight": sample_weight,
                "n_jobs": self.n_jobs,
            }
            if self.partition == "dyadic":
                return grow_dyadic(
                    X,
                    _levels(y),
                    resolution=self.resolution,
                    exponent=self.exponent,
                    **switches,
                )
            if self.partition == "kd":
                return grow_kd(X, _levels(y), axis=self.axis, **switches)
            del switches["stop_when_pure"]  # a pure cell has no split that is worth anything
            if self.partition == "cart":
                return grow_cart(
                    X,
                    y,
                    criterion=self.criterion,
                    splitter=self.splitter,
                    max_leaves=self.max_leaves,
                    min_gain=self.min_gain,
                    max_features=self.max_features,
                    categorical_features=self.categorical_features,
                    monotonic_cst=self.monotonic_cst,
                    random_state=self.seed,
                    ranked=self.ranked,
                    **switches,
                )
        elif hasattr(self.partition, "fit") and not isinstance(self.partition, type):
            estimator = clone(self.partition)
            if getattr(estimator, "random_state", 0) is None:
                estimator.set_params(random_state=self.seed)
            weight = np.ones(len(y)) if sample_weight is None else sample_weight
            return from_sklearn(estimator.fit(X, y, sample_weight=weight))
        raise ValueError(
            'partition must be "cart", "dyadic", "kd" or a scikit-learn decision tree, '
            f"got {self.partition!r}"
        )


def _levels(y: NDArray[Any]) -> Int32:
    """Classes, or a number for each distinct value of a target: cells are pure by either."""
    return y if y.dtype == np.int32 else np.unique(y, return_inverse=True)[1].astype(np.int32)
