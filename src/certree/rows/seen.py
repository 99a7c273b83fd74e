"""Records of the rows of a fit, from which an updatable model adds and removes rows."""

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
from certree.interface.stored_state import DamagedModelError
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

# Features in the bit mask `lacks`; a tree on a fixed box is not deep enough to compare more.
_MOST_MASKED = 31


@dataclass(frozen=True, slots=True, eq=False)
class SeenRows(ArrayRecord):
    """Hashes, leaves, targets and weights of the rows of a fit; rows can be added and removed.

    Models that can be updated keep such records as `seen_rows_`, in place of the rows, and sum up
    counts in the leaves of their tree from them. Records are sorted by `keys`, equal ones by
    weight, so that sums do not depend on the order in which rows were added and removed.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hash of the features of each row.
    rounded : ndarray of uint64, shape (n,), or None
        Hash of the features after rounding to float32, if the row holds a number with decimals that
        float32 does not represent exactly; else the same as `hashes`. In files of early versions
        all rows are rounded. None for regressors, which do not recognise rows of their fit.
    leaf : ndarray of int32, shape (n,)
        Node number of each row's leaf, in a tree that was fixed before the rows were seen.
    y : ndarray of int32 or float64, shape (n,)
        Class code or numeric target of each row.
    weight : ndarray of float64, shape (n,), or None
        Weight of each row; None: 1 each.
    lacks : ndarray of int32, shape (n,), or None
        Missing values of each row as bits: bit j is set if feature j is missing, for the first 31
        features. None: no value is missing.

    Raises
    ------
    TypeError, ValueError
        If arrays differ in length, rows are not sorted, a target is not finite, or a weight is not
        positive.
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
            raise DamagedModelError(
                "the model file's seen_rows.y must be finite, and 0.0 instead of -0.0"
            )
        if self.weight is not None and not (
            (self.weight > 0).all() and has_finite_total(self.weight) and (self.weight != 1).any()
        ):
            raise DamagedModelError(
                "the model file's seen_rows.weight must be positive, sum to at most "
                f"{MAX_TOTAL_WEIGHT:g}, and be None if all are 1"
            )
        if self.lacks is not None and (self.lacks.min(initial=0) < 0 or not self.lacks.any()):
            raise DamagedModelError(
                "the model file's seen_rows.lacks must hold non-negative bit masks of missing "
                "features, and be None if all are 0"
            )
        order = order_by_hash(self.keys, self.weights)
        if (order != np.arange(*n)).any():
            raise DamagedModelError(
                "the model file's seen_rows must be sorted by their keys, and equal keys by weight"
            )

    @classmethod
    def from_rows(
        cls,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: Float64 | None,
        leaf: Int32,
        with_rounded: bool,
    ) -> SeenRows:
        """Return a `SeenRows` of encoded rows and their leaves, sorted by key and weight.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Encoded rows: numbers, and codes for categories.
        y : ndarray of shape (n,)
            Class codes or numeric targets.
        weight : ndarray of shape (n,), or None
            Weight of each row; None: 1 each.
        leaf : ndarray of int32, shape (n,)
            Node number of each row's leaf.
        with_rounded : bool
            Whether to compute the field `rounded`; if not, it is None.

        Returns
        -------
        SeenRows
        """
        rounded, hashes = None, hash_samples(X)
        if with_rounded:
            is_fractional = Float32Rounding.inspect(X).is_fractional
            rounded = np.where(is_fractional, hash_samples(X, rounded=True), hashes)
        lacks = np.zeros(len(X), dtype=np.int32)
        for j in range(min(X.shape[1], _MOST_MASKED)):
            lacks |= np.isnan(X[:, j]).astype(np.int32) << j
        weight = np.ones(len(X)) if weight is None else weight
        y = y + y.dtype.type(0)
        # Rows with equal keys and weights are equal, so their order does not matter.
        order = order_by_hash(_compute_keys(hashes, y), weight)
        columns = hashes, rounded, leaf, y, weight, lacks
        return _make_seen_rows([None if one is None else one[order] for one in columns])

    @classmethod
    def from_stored(cls, stored: Any, **known: Any) -> SeenRows:
        """Return a `SeenRows` of the entries of a model file, and sort its rows, also in the entries.

        Files of early versions have another order. stored: `StoredState` with an entry for each field,
        by name; the sorted arrays replace its entries. known: values of fields that the file does not
        hold, by name. Raise a ValueError if arrays differ in length.
        """
        names = [one.name for one in fields(cls)]
        columns: dict[str, Any] = {
            name: known[name] if name in known else stored[name] for name in names
        }
        lengths = {len(one) for one in columns.values() if one is not None}
        if len(lengths) != 1 or columns["hashes"] is None or columns["y"] is None:
            raise DamagedModelError(
                f"the model file's seen_rows must have columns of one length, got {sorted(lengths)}"
            )
        weight = columns["weight"]
        order = order_by_hash(_compute_keys(columns["hashes"], columns["y"]), weight)
        ordered: dict[str, Any] = {
            name: None if one is None else one[order] for name, one in columns.items()
        }
        stored.replace_arrays(ordered)
        return cls(**ordered)

    @property
    def keys(self) -> UInt64:
        """Hash of the features and the target of each row, (n,) uint64; records are sorted by it.

        It is computed from the fields `hashes` and `y`.
        """
        return _compute_keys(self.hashes, self.y)

    @property
    def weights(self) -> Float64:
        """Weight of each row, (n,) float64, also if all are 1 and the field `weight` is None."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def known(self) -> UInt64:
        """Distinct values of `hashes` and, unless it is None, `rounded`, (k,) uint64, ascending.

        The function `find_known_rows` recognises rows of the fit by them.
        """
        return merge_hashes(*(one for one in (self.hashes, self.rounded) if one is not None))

    @property
    def repeat_counts(self) -> RepeatCounts:
        """Counts of the rows that share their features with no other row, with one, or with more.

        Rows are compared by `hashes`. The result is a `RepeatCounts`. Its field `tables` has a
        single entry, the hash of all rows.
        """
        return RepeatCounts.count(np.sort(self.hashes), (hash_table(self.hashes, self.y),))

    @property
    def _columns(self) -> tuple[Any, ...]:
        """All fields as arrays (n,): hashes, rounded, leaf, y, weight, lacks, in this order.

        If weight or lacks (bits of missing values) is None, the tuple has weights of 1, or bits of 0,
        in its place. Only rounded may be None.
        """
        lacks = np.zeros(len(self.y), dtype=np.int32) if self.lacks is None else self.lacks
        return self.hashes, self.rounded, self.leaf, self.y, self.weights, lacks

    def add(self, others: SeenRows) -> SeenRows:
        """Return the records of the rows of both objects in one; neither object is changed.

        others: records (hashes, leaves, targets, weights) of the rows to add, with leaves in the same
        tree.

        Raises
        ------
        ValueError
            If the sum of all weights exceeds 1e280.
        """
        pairs = zip(self._columns, others._columns, strict=True)
        both: list[Any] = [
            None if one is None else np.concatenate([one, two]) for one, two in pairs
        ]
        if not has_finite_total(both[4]):
            raise ValueError(
                f"sample_weight must sum to at most {MAX_TOTAL_WEIGHT:g}, earlier rows included, "
                "got more: fit again with sample_weight divided by a constant"
            )
        order = order_by_hash(np.concatenate([self.keys, others.keys]), both[4])
        return _make_seen_rows([None if one is None else one[order] for one in both])

    def remove(self, others: SeenRows) -> SeenRows:
        """Return the rows of this object without those of others; neither object is changed.

        For each row of others, one row with the same hash, target and weight is removed. others:
        records of the rows to remove.

        Raises
        ------
        ValueError
            If this object holds a row of others less often than others does, or not at all, or if
            no row would be left.
        """
        places, are_here = _find_rows(self, others)
        if n_unknown := int(np.sum(~are_here)):
            raise ValueError(
                f"X must hold rows of the fit, but {n_unknown:,} of {len(are_here):,} rows are not "
                "among those of the fit, or not so often: pass features, target and weight as they "
                "were passed to fit"
            )
        kept = np.ones(len(self.y), dtype=bool)
        kept[places] = False
        if not kept.any():
            raise ValueError(
                f"X must not hold all rows of the fit: all {len(kept):,} rows of the fit would go, "
                "which leaves no model. Keep at least one row"
            )
        return _make_seen_rows([None if one is None else one[kept] for one in self._columns])


def _compute_keys(hashes: UInt64, y: NDArray[Any]) -> UInt64:
    return extend_hashes(hashes, y.astype(np.float64))


def _make_seen_rows(columns: list[Any]) -> SeenRows:
    """Return a `SeenRows` with the given arrays in its six fields, without checks.

    columns: list of six arrays (n,): hashes, rounded, leaf, y, weight, lacks (bits of missing
    values). They are sorted by `SeenRows.keys`; rounded may be None. Weights that are all 1, and
    bits that are all 0, become None. The fields are read-only.
    """
    *others, weight, lacks = (None if one is None else freeze(one) for one in columns)
    weighs, lack = np.any(weight != 1), np.any(lacks)
    return SeenRows.from_checked(*others, weight if weighs else None, lacks if lack else None)


def _find_rows(records: SeenRows, wanted: SeenRows) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Match each of m wanted rows with a different record of the same key and weight.

    The key is the hash of features and target, `SeenRows.keys`. A row that is wanted twice needs
    two records. Return the index of the record of each wanted row, (m,), and whether there is one,
    (m,) bool. The index of a row without a record is arbitrary.
    """
    n = len(records.y)
    keys = np.concatenate([records.keys, wanted.keys])
    weight = np.concatenate([records.weights, wanted.weights])
    order = order_by_hash(keys, weight)
    kind = np.empty(len(order), dtype=np.intp)
    kind[order] = np.cumsum(mark_run_starts(keys[order]) | mark_run_starts(weight[order]))
    record_kind, wanted_kind = kind[:n], kind[n:]
    places = np.searchsorted(record_kind, wanted_kind) + number_copies(
        mark_run_starts(wanted_kind)
    ).view(np.int64)
    within = places.clip(max=n - 1)
    return within, (places == within) & (record_kind[within] == wanted_kind)
