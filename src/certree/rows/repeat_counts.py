"""How often the feature rows of a fit repeat, which tells how many of its rows new ones match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import UInt64, check_column, find_positions, freeze
from certree.interface.stored_state import StoredState
from certree.rows.hashes import extend_hashes, mark_run_starts, merge_hashes

# What a file holds of the counts: arrays by their names, which are those of the fields.
_ARRAYS = ("twice", "often")


@dataclass(frozen=True, slots=True, eq=False)
class RepeatCounts:
    """Counts of the rows of a fit by how many of them have the same features.

    Parameters
    ----------
    n : int
        Number of rows.
    n_distinct : int
        Number of different feature rows.
    twice, often : ndarray of uint64
        Hashes of the feature rows that exactly two rows have, and that three or more have, ascending.
    tables : tuple of int
        One hash for each table that the model was fitted to, whatever the order of its rows; see
        `hash_table`.
    """

    n: int
    n_distinct: int
    twice: UInt64
    often: UInt64
    tables: tuple[int, ...] = ()

    @classmethod
    def count(cls, ordered: UInt64, tables: Sequence[int] = ()) -> RepeatCounts:
        """Count rows by the ascending hashes of their features, one for each row."""
        starts = mark_run_starts(ordered)
        again = ordered[1:][~starts[1:]]
        thrice = ordered[2:][~starts[1:-1] & ~starts[2:]]
        often = merge_hashes(thrice)
        twice = merge_hashes(again)
        if len(often):
            twice = twice[~find_positions(often, twice)[1]]
        n_distinct = int(np.count_nonzero(starts))
        return cls(len(ordered), n_distinct, freeze(twice), often, tuple(tables))

    def add(self, known: UInt64, others: UInt64, tables: Sequence[int] = ()) -> RepeatCounts:
        """Count the rows together with others.

        Parameters
        ----------
        known : ndarray of uint64
            Hashes of the rows counted so far, ascending, perhaps among others.
        others : ndarray of uint64
            Hash of each row to add, ascending.
        tables : sequence of int
            Hashes of the tables that they make up.
        """
        new = merge_hashes(others)
        shared = new[find_positions(known, new)[1]] if len(known) else new[:0]
        # Each shared or repeated row as often as it was counted, up to three times.
        once = merge_hashes(shared, self.twice, self.often)
        counted = [once, self.twice, self.often, self.often]
        both = RepeatCounts.count(np.sort(np.concatenate([others, *counted])))
        return RepeatCounts(
            self.n + len(others),
            self.n_distinct + len(new) - len(shared),
            both.twice,
            both.often,
            (*self.tables, *tables),
        )

    @property
    def n_once(self) -> int:
        """Number of rows whose features no other row has."""
        return self.n_distinct - len(self.twice) - len(self.often)

    def is_fit_table(self, hashed: int) -> bool:
        """Whether a table with this hash is one of the fit, or all of them together."""
        return hashed in (sum(self.tables) % 2**64, *self.tables)

    def to_stored(self) -> dict[str, Any]:
        """What a file holds."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return {
            "n": self.n,
            "n_distinct": self.n_distinct,
            "tables": [*self.tables],
            **{f"n_{name}": len(of) for name, of in arrays.items()},
            # Arrays of a file are not empty.
            **{name: of for name, of in arrays.items() if len(of)},
        }

    @classmethod
    def from_stored(cls, stored: StoredState, hashes: UInt64) -> RepeatCounts:
        """Check what a file holds beside the hashes of the rows of the fit."""
        n_distinct = stored.get_integer("n_distinct", 1, len(hashes))
        n = stored.get_integer("n", n_distinct)
        arrays: dict[str, UInt64] = {}
        for name in _ARRAYS:
            length, values = (
                stored.get_integer(f"n_{name}", 0, n_distinct),
                np.zeros(0, dtype=np.uint64),
            )
            if length:
                values = check_column(name, stored[name], "uint64", (length,))
            arrays[name] = values
            if not (values[1:] > values[:-1]).all() or not find_positions(hashes, values)[1].all():
                raise ValueError(f"{name} must be ascending, distinct and among sample_hashes")
        tables = stored["tables"]
        if not isinstance(tables, list) or not all(
            type(one) is int and 0 <= one < 2**64 for one in tables
        ):
            raise ValueError(f"tables must be a list of hashes, got {tables!r}")
        counts = cls(n, n_distinct, tables=tuple(tables), **arrays)
        n_repeats = 2 * len(counts.twice) + 3 * len(counts.often)
        if counts.n_once < 0 or counts.n_once + n_repeats > n:
            raise ValueError(f"n must be the number of rows that are counted, got {n}")
        return counts


def hash_table(hashes: UInt64, target: NDArray[Any]) -> int:
    """Hash a table of rows, by the hashes of their features and their targets, in whatever order.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hashes of the features.
    target : ndarray of shape (n,) or (n, n_targets)
        Codes of classes.
    """
    return int(hash_table_rows(hashes, target).sum(dtype=np.uint64))


def hash_table_rows(hashes: UInt64, target: NDArray[Any]) -> UInt64:
    """Hash each row of a table, target included; the hash of the table is their sum."""
    columns = target.reshape(len(hashes), -1).T.astype(np.float64)
    return extend_hashes(hashes, *np.ascontiguousarray(columns))
