"""The rows of a fit that others may join and leave: what is kept of each, in an order of its own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import (
    MAX_TOTAL_WEIGHT,
    ArrayRecord,
    Float64,
    Int32,
    UInt64,
    freeze,
    has_finite_total,
)
from certree.rows.hashes import (
    Float32Rounding,
    extend_hashes,
    hash_samples,
    mark_run_starts,
    merge_hashes,
    number_copies,
    order_by_hash,
)
from certree.rows.repeat_counts import RepeatCounts, hash_table

# Bits of a mask of features; a box has no deeper tree, which compares fewer.
_MOST_MASKED = 31


@dataclass(frozen=True, slots=True, eq=False)
class SeenRows(ArrayRecord):
    """What is kept of the rows that a fit has seen, so that their sums can be taken again.

    The rows stand in the order of `keys`, equal ones from the lightest on. So sums over them have the
    same bits in whatever order they came, and after whatever came and went between.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hashes of the features.
    rounded : ndarray of uint64, shape (n,), or None
        Hashes by which fractional rows are known once they have passed through float32, and `hashes`
        of the others; None where nobody asks for them. Earlier versions rounded all rows.
    leaf : ndarray of int32, shape (n,)
        Leaf of a tree that no row has a part in.
    y : ndarray of int32 or float64, shape (n,)
        Class, or a numeric target.
    weight : ndarray of float64, shape (n,), or None
        Weight of each row; None: 1 each.
    lacks : ndarray of int32, shape (n,), or None
        Bit j says that feature j is missing, of the first 31; None: none of them is.

    Raises
    ------
    TypeError, ValueError
        If columns are not of one length, rows are in another order, a target is not finite, or weights
        are not positive.
    """

    hashes: UInt64
    rounded: UInt64 | None
    leaf: Int32
    y: NDArray[Any]
    weight: Float64 | None
    lacks: Int32 | None

    def __post_init__(self) -> None:
        self._check("uint64", (None,), "hashes")
        n = (len(self.hashes),)
        self._check("int32", n, "leaf")
        given = [name for name in ("rounded", "weight", "lacks") if getattr(self, name) is not None]
        dtypes = {"rounded": "uint64", "weight": "float64", "lacks": "int32"}
        for name in given:
            self._check(dtypes[name], n, name)
        of_numbers = np.asarray(self.y).dtype.kind == "f"
        self._check("float64" if of_numbers else "int32", n, "y")
        if not np.isfinite(self.y).all() or np.signbit(self.y[self.y == 0]).any():
            raise ValueError("y must be finite, and 0 without a sign")
        if self.weight is not None and not (
            (self.weight > 0).all() and has_finite_total(self.weight) and (self.weight != 1).any()
        ):
            raise ValueError(
                f"weight must be positive, sum to at most {MAX_TOTAL_WEIGHT:g}, "
                "and be None if all are 1"
            )
        if self.lacks is not None and (self.lacks.min(initial=0) < 0 or not self.lacks.any()):
            raise ValueError("lacks must hold bits of features, and be None if there are none")
        order = order_by_hash(self.keys, self.weights)
        if (order != np.arange(*n)).any():
            raise ValueError("rows must stand in the order of their keys, and of their weights")

    @classmethod
    def from_rows(
        cls, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None, leaf: Int32, knows: bool
    ) -> SeenRows:
        """Keep what is asked for of some rows; `knows`: also hashes by which rounded ones are known."""
        rounded, hashes = None, hash_samples(X)
        if knows:
            is_fractional = Float32Rounding.inspect(X).is_fractional
            rounded = np.where(is_fractional, hash_samples(X, rounded=True), hashes)
        lacks = np.zeros(len(X), dtype=np.int32)
        for j in range(min(X.shape[1], _MOST_MASKED)):
            lacks |= np.isnan(X[:, j]).astype(np.int32) << j
        weight = np.ones(len(X)) if weight is None else weight
        y = y + y.dtype.type(0)
        # Rows of equal keys and weights are alike, in whatever order they stand.
        order = order_by_hash(_compute_keys(hashes, y), weight)
        columns = hashes, rounded, leaf, y, weight, lacks
        return _make_seen_rows([None if one is None else one[order] for one in columns])

    @classmethod
    def from_stored(cls, stored: Any, **known: Any) -> SeenRows:
        """Read what a file holds; those of earlier versions have another order."""
        names = [one.name for one in fields(cls)]
        columns: dict[str, Any] = {
            name: known[name] if name in known else stored[name] for name in names
        }
        lengths = {len(one) for one in columns.values() if one is not None}
        if len(lengths) != 1 or columns["hashes"] is None or columns["y"] is None:
            raise ValueError(f"columns of rows must be of one length, got {sorted(lengths)}")
        weight = columns["weight"]
        order = order_by_hash(_compute_keys(columns["hashes"], columns["y"]), weight)
        ordered: dict[str, Any] = {
            name: None if one is None else one[order] for name, one in columns.items()
        }
        stored.replace_arrays(ordered)
        return cls(**ordered)

    @property
    def keys(self) -> UInt64:
        """Hashes of features and target, (n,)."""
        return _compute_keys(self.hashes, self.y)

    @property
    def weights(self) -> Float64:
        """Weight of each row, (n,)."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def known(self) -> UInt64:
        """The hashes by which a model knows its rows again, ascending."""
        return merge_hashes(*(one for one in (self.hashes, self.rounded) if one is not None))

    @property
    def repeat_counts(self) -> RepeatCounts:
        """How often the features of the rows repeat."""
        return RepeatCounts.count(np.sort(self.hashes), (hash_table(self.hashes, self.y),))

    @property
    def _columns(self) -> tuple[Any, ...]:
        """All columns, also where they say the same of all rows."""
        lacks = np.zeros(len(self.y), dtype=np.int32) if self.lacks is None else self.lacks
        return self.hashes, self.rounded, self.leaf, self.y, self.weights, lacks

    def add(self, others: SeenRows) -> SeenRows:
        """These rows and others.

        Raises
        ------
        ValueError
            If their weights are too large to be added up.
        """
        pairs = zip(self._columns, others._columns, strict=True)
        both: list[Any] = [
            None if one is None else np.concatenate([one, two]) for one, two in pairs
        ]
        if not has_finite_total(both[4]):
            raise ValueError(f"the weights of all rows must sum to at most {MAX_TOTAL_WEIGHT:g}")
        order = order_by_hash(np.concatenate([self.keys, others.keys]), both[4])
        return _make_seen_rows([None if one is None else one[order] for one in both])

    def remove(self, others: SeenRows) -> SeenRows:
        """These rows without others.

        Raises
        ------
        ValueError
            If others are not among these, each as often as it is given, or if no rows are left.
        """
        places, are_here = _find_rows(self, others)
        if n_unknown := int(np.sum(~are_here)):
            raise ValueError(
                f"{n_unknown:,} of {len(are_here):,} rows are not among those of the fit, or not so "
                "often: expected features, target and weight as the fit was given them"
            )
        kept = np.ones(len(self.y), dtype=bool)
        kept[places] = False
        if not kept.any():
            raise ValueError(f"all {len(kept):,} rows of the fit would go, which leaves no model")
        return _make_seen_rows([None if one is None else one[kept] for one in self._columns])


def _compute_keys(hashes: UInt64, y: NDArray[Any]) -> UInt64:
    return extend_hashes(hashes, y.astype(np.float64))


def _make_seen_rows(columns: list[Any]) -> SeenRows:
    """Rows of all columns, those left out that say the same of all rows."""
    *others, weight, lacks = (None if one is None else freeze(one) for one in columns)
    weighs, lack = np.any(weight != 1), np.any(lacks)
    return SeenRows.from_checked(*others, weight if weighs else None, lacks if lack else None)


def _find_rows(known: SeenRows, given: SeenRows) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Find given rows among known ones, each for one copy: their places, and whether they are there."""
    n = len(known.y)
    keys = np.concatenate([known.keys, given.keys])
    weight = np.concatenate([known.weights, given.weights])
    order = order_by_hash(keys, weight)
    kind = np.empty(len(order), dtype=np.intp)
    kind[order] = np.cumsum(mark_run_starts(keys[order]) | mark_run_starts(weight[order]))
    own, asked = kind[:n], kind[n:]
    places = np.searchsorted(own, asked) + number_copies(mark_run_starts(asked)).view(np.int64)
    within = places.clip(max=n - 1)
    return within, (places == within) & (own[within] == asked)
