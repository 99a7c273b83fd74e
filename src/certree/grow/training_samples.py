"""Rows that grow a tree, and what is said of them whatever the grower."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from certree._core import rank_rows
from certree.grow.bins import Bins
from certree.interface.arrays import (
    MAX_SETTING,
    Float64,
    Int32,
    check_column,
    check_matrix,
    check_row_weights,
    to_array,
)
from certree.interface.threads import get_n_threads
from certree.rows.categories import make_categorical_mask
from certree.rows.draw_order import sum_encoded_table
from certree.rows.features import DenseFeatures
from certree.rows.folds import Indices
from certree.rows.relative_weights import compute_relative_weights

MaxDepth = int | Literal["log"] | None
MonotonicCst = ArrayLike | Mapping[str, int] | None
MonotonicSigns = NDArray[np.int8] | None

# The core counts depth in int32 and adds the length of a run to it.
MAX_DEPTH = 2**30


class GrowthSettings(Protocol):
    """What is said of the growth of a tree beside its grower, wherever its rows lie."""

    @property
    def depth_limit(self) -> int:
        """Depth at which cells are leaves."""

    @property
    def slopes(self) -> MonotonicSigns:
        """See `TrainingSamples`."""

    @property
    def random_state(self) -> int | RandomState | None:
        """See `TrainingSamples`."""

    @property
    def n_jobs(self) -> int | None:
        """See `TrainingSamples`."""

    @property
    def feature_order(self) -> Int32:
        """See `TrainingSamples`."""


@dataclass(frozen=True, eq=False)
class TrainingSamples:
    """Checked rows that grow a tree, all of positive weight.

    Parameters
    ----------
    given : ndarray of shape (N, p)
        Rows of the whole; if these are no part of one, they are `X`.
    y : ndarray of shape (n,), or (n, q), or None
        Classes 0, 1, ... (int32), or a numeric target (float64); of several targets a column each.
    weight : ndarray of float64, shape (n,), or None
        Weight of each, relative to the others; None: 1. What counts rows counts each once.
    max_depth : int, "log" or None
        Cells at this depth are leaves; "log" is p times the whole part of log n, None no limit.
    categorical : ndarray of bool, shape (p,), or None
        Which features hold categories 0, 1, ...; None: none.
    slopes : ndarray of int8, shape (p,), or None
        1 or -1 where the mean of y must not fall or rise along a feature; None: 0 everywhere.
    random_state : int, RandomState or None
        Decides what is drawn.
    n_jobs : int or None
        Number of threads; None is one, -1 all. A tree does not depend on it.
    whole, indices
        The rows of which these are a part, and which of them; None if they are no part.
    compute_feature_order : callable, or None
        Gives `feature_order`; None: the rows themselves do.
    """

    given: NDArray[Any]
    y: NDArray[Any] | None = None
    weight: Float64 | None = None
    max_depth: MaxDepth = None
    categorical: NDArray[np.bool_] | None = None
    slopes: MonotonicSigns = None
    random_state: int | RandomState | None = None
    n_jobs: int | None = None
    whole: TrainingSamples | None = None
    indices: Indices | None = None
    compute_feature_order: Callable[[], Int32] | None = None
    _bins: dict[int, Bins] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        *,
        categorical_features: ArrayLike | None = None,
        monotonic_cst: MonotonicCst = None,
        **others: Any,
    ) -> TrainingSamples:
        """Check rows as the functions that grow a tree take them."""
        names = [*X.columns] if hasattr(X, "columns") else None
        rows = check_matrix(X)
        if rows.shape[0] == 0 or rows.shape[1] == 0:
            raise ValueError(
                f"X must have at least one row and one feature, got shape {rows.shape}"
            )
        mask = make_categorical_mask(categorical_features, rows.shape[1], names)
        slopes = check_monotonic_cst(monotonic_cst, rows.shape[1], names)
        target = _target(y, len(rows))
        weight = check_row_weights(sample_weight, len(rows))
        if weight is not None:
            present = weight > 0
            if not present.any():
                raise ValueError("sample_weight must be positive for at least one row")
            if not present.all():
                rows, weight = np.ascontiguousarray(rows[present]), weight[present]
                target = None if target is None else target[present]
        return cls(rows, target, weight, categorical=mask, slopes=slopes, **others)

    def on_bins(self, max_bins: int) -> Bins:
        """Put these rows into bins, whose edges are those of the whole."""
        bins = (self.whole or self)._bins_of_all(max_bins)
        return bins if self.indices is None else bins.select_rows(self.indices)

    def _bins_of_all(self, max_bins: int) -> Bins:
        if max_bins not in self._bins:
            self._bins[max_bins] = Bins.from_table(
                DenseFeatures((self.X,)),
                self.categorical,
                max_bins=max_bins,
                n_jobs=self.n_jobs,
                feature_order=self.feature_order,
            )
        return self._bins[max_bins]

    @cached_property
    def feature_order(self) -> Int32:
        """In which order features are looked at and drawn, (p,), as all rows of the whole tell."""
        if self.whole is not None:
            return self.whole.feature_order
        if self.compute_feature_order is not None:
            return self.compute_feature_order()
        return sum_encoded_table(
            self.X, self.y, self.categorical, get_n_threads(self.n_jobs)
        ).order_columns()

    def part(self, indices: Indices) -> TrainingSamples:
        """Select some of these rows."""
        y = None if self.y is None else self.y[indices]
        weight = None if self.weight is None else self.weight[indices]
        return replace(self, given=self.X, y=y, weight=weight, whole=self, indices=indices)

    @cached_property
    def X(self) -> NDArray[Any]:  # noqa: N802 # what growers are given is called so everywhere
        """The rows, (n, p): those of a part are copied once somebody reads them."""
        return self.given if self.indices is None else self.given[self.indices]

    def __len__(self) -> int:
        """Number of rows, n."""
        return len(self.given if self.indices is None else self.indices)

    @cached_property
    def order(self) -> NDArray[np.uint32]:
        """Ranks and indices of the rows in the order of every feature of numbers, in turns."""
        return rank_rows(self.X, self.category_codes, get_n_threads(self.n_jobs))

    @property
    def ranked(self) -> tuple[NDArray[np.uint32], Int32] | None:
        """The order of the whole and the place of these rows in it, so that it is sorted once.

        None where there is nothing to gain.
        """
        whole, indices = self.whole or self, self.indices
        if indices is None:
            shared = "order" in self.__dict__
            return (self.order, np.arange(len(self), dtype=np.int32)) if shared else None
        if not (np.diff(indices) > 0).all():
            return None
        place = np.full(len(whole), -1, dtype=np.int32)
        place[indices] = np.arange(len(indices), dtype=np.int32)
        return whole.order, place

    @property
    def category_codes(self) -> NDArray[np.uint8] | None:
        """Which features hold categories, as the core takes it."""
        given = self.categorical
        return None if given is None or not given.any() else given.view(np.uint8)

    @property
    def n_targets(self) -> int:
        """Number of targets of each row."""
        return 1 if self.y is None or self.y.ndim == 1 else self.y.shape[1]

    @property
    def levels(self) -> Int32 | None:
        """Classes, or a number for what targets have in a row: cells are pure by either."""
        if self.y is None or (self.y.ndim == 1 and self.y.dtype == np.int32):
            return self.y
        return np.unique(self.y, axis=0, return_inverse=True)[1].ravel().astype(np.int32)

    @cached_property
    def relative_weight(self) -> Float64 | None:
        """Weights in a unit of their own; None: all are equal."""
        if self.weight is None:
            return None
        weight = compute_relative_weights(self.weight)
        return None if (weight == weight[0]).all() else weight

    @property
    def total_weight(self) -> float:
        """Sum of these weights."""
        weight = self.relative_weight
        return float(len(self) if weight is None else weight.sum())

    def stopping(self, min_samples_split: Any) -> dict[str, Any]:
        """What says when a cell is not split any further, as the core's growers take it."""
        # NumPy compares in the precision of its own scalars, where the largest number may be infinite.
        if not 2 <= float(min_samples_split) <= MAX_SETTING:
            raise ValueError(f"min_samples_split must be at least 2, got {min_samples_split!r}")
        return {"min_samples_split": float(min_samples_split), "max_depth": self.depth_limit}

    @property
    def depth_limit(self) -> int:
        """Depth at which cells are leaves."""
        return resolve_max_depth(self.max_depth, int(self.given.shape[1]), len(self))


def resolve_max_depth(depth: Any, p: int, n: int) -> int:
    """Depth at which cells are leaves, of n rows of p features."""
    if depth is None:
        return MAX_DEPTH
    if isinstance(depth, str) and depth == "log":
        return min(MAX_DEPTH, p * int(np.log(max(n, 1.0))))
    if not isinstance(depth, Integral) or depth < 0:
        raise ValueError(f'max_depth must be None, "log" or a whole number >= 0, got {depth!r}')
    return min(MAX_DEPTH, int(depth))


def resolve_max_features(given: Any, p: int) -> int | None:
    """How many of p features are looked at, in scikit-learn's convention; None: all."""
    if given is None:
        return None
    if isinstance(given, str):
        return max(1, int(np.sqrt(p) if given == "sqrt" else np.log2(p)))
    return min(p, int(given)) if isinstance(given, Integral) else max(1, int(given * p))


def expect_poisson_targets(y: NDArray[Any], *, are_all: bool = True) -> None:
    """Refuse targets that have no Poisson deviance, in scikit-learn's words.

    Parameters
    ----------
    y : ndarray
        Targets, or the smallest and the largest of them.
    are_all : bool
        Whether they are those of all rows of the fit. Those of a fold may all be zero.

    Raises
    ------
    ValueError
        If a target is negative, or all targets are zero.
    """
    if y.min() < 0:
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression, got "
            f"{y.min():g}"
        )
    if are_all and y.max() == 0:
        raise ValueError(
            "Sum of y is not strictly positive which is necessary for Poisson regression, got zeros "
            'alone: use criterion="squared_error", or give y a positive value'
        )


def resolve_row_count(name: str, given: Any, least: int, n: float) -> float:
    """How many of n rows a parameter means, `least` at least: a number, or a share rounded up.

    Shares lie between 0 and 1; where 1 row is too few, 1.0 is a share, too, and numbers need not be
    whole.
    """
    needs_whole = least == 1
    if 0 < given < 1 or (given == 1 and not needs_whole and not isinstance(given, Integral)):
        return max(float(least), float(np.ceil(given * n)))
    # NumPy compares in the precision of its own scalars, where the largest number may be infinite.
    if not least <= float(given) <= MAX_SETTING or (
        needs_whole and not isinstance(given, Integral)
    ):
        raise ValueError(f"{name} must be at least {least}, or a share of the rows, got {given!r}")
    return float(given)


def _target(y: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Classes, or numbers; of several targets in columns."""
    if y is None:
        return None
    given = to_array("y", y)
    shape = (n, None) if given.ndim == 2 and given.shape[1] > 1 else (n,)
    if given.dtype.kind != "f":
        return check_column("y", y, "int32", shape)
    target = check_column("y", y, "float64", shape)
    if not np.isfinite(target).all():
        raise ValueError("y must be finite")
    return target


def check_monotonic_cst(
    monotonic_cst: MonotonicCst, p: int, names: Sequence[str] | None
) -> MonotonicSigns:
    """Constraints as a column of -1, 0 and 1, (p,); None if there are none."""
    if monotonic_cst is None:
        return None
    if isinstance(monotonic_cst, Mapping):
        known = [] if names is None else list(names)
        unknown = [name for name in monotonic_cst if name not in known]
        if unknown:
            raise ValueError(f"monotonic_cst names {unknown}, but the features are {known}")
        monotonic_cst = [monotonic_cst.get(name, 0) for name in known]
    given = to_array("monotonic_cst", monotonic_cst)
    if given.shape != (p,):
        raise ValueError(f"monotonic_cst must have shape ({p},), got {given.shape}")
    if not np.isin(given, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst must hold -1, 0 or 1, got {given.tolist()}")
    return given.astype(np.int8) if given.any() else None
