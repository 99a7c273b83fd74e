"""Count how often the feature rows of a fit occur, to count how many of them new rows equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import UInt64, check_column, find_positions, freeze
from certree.interface.stored_fields import restore_value
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.rows.hashes import extend_hashes, mark_run_starts, merge_hashes

# Array fields that a model file holds under their names.
_ARRAYS = ("twice", "often")


@dataclass(frozen=True, slots=True, eq=False)
class RepeatCounts:
    """How many rows of a fit share their features with no other row, with one, or with more.

    A model stores only distinct hashes of its rows. With these counts it can tell how many rows of
    its fit a table of new rows matches.

    Parameters
    ----------
    n : int
        Number of rows.
    n_distinct : int
        Number of distinct rows, compared by features.
    twice : ndarray of uint64
        Hashes of the features that exactly two rows have, ascending.
    often : ndarray of uint64
        Hashes of the features that three or more rows have, ascending.
    tables : tuple of int
        Hash of each table that was passed to the model, by `fit` and by each update; see
        `hash_table`.
    """

    n: int
    n_distinct: int
    twice: UInt64
    often: UInt64
    tables: tuple[int, ...] = ()

    @classmethod
    def count(cls, ordered: UInt64, tables: Sequence[int] = ()) -> RepeatCounts:
        """Count all rows and the distinct rows, and find the hashes that occur twice or more often.

        The result has both numbers (`n`, `n_distinct`), and two arrays: the hashes that occur exactly
        twice (`twice`), and those that occur at least three times (`often`).

        ordered: hash of the features of each row, (n,), ascending. tables: result of `hash_table`
        for each table of which the rows consist, which the instance stores to recognise a whole
        table later; () stores none.
        """
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
        """Return the counts after more rows are added; this object is not changed.

        Parameters
        ----------
        known : ndarray of uint64
            Distinct hashes of the features of all rows counted so far, ascending. It may contain
            hashes of no row, such as those of rounded rows.
        others : ndarray of uint64, shape (m,)
            Hash of the features of each row to add, ascending.
        tables : sequence of int
            Result of `hash_table` for each table of which the rows to add consist.

        Returns
        -------
        RepeatCounts
        """
        new = merge_hashes(others)
        shared = new[find_positions(known, new)[1]] if len(known) else new[:0]
        # Each shared or repeated row occurs as often as it was counted, up to three times.
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
        """Number of rows, of the `n` rows, whose features no other row has."""
        return self.n_distinct - len(self.twice) - len(self.often)

    def is_fit_table(self, hashed: int) -> bool:
        """Return whether a table equals one that `fit` or an update got, or all of these together.

        hashed: result of `hash_table` for the table.
        """
        return hashed in (sum(self.tables) % 2**64, *self.tables)

    def to_stored(self) -> dict[str, Any]:
        """Return the entries of a model file by name.

        They are all fields, and the lengths of `twice` and `often`. The lengths are "n_twice" and
        "n_often"; empty arrays are left out.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return {
            "n": self.n,
            "n_distinct": self.n_distinct,
            "tables": [*self.tables],
            **{f"n_{name}": len(of) for name, of in arrays.items()},
            # Model files hold no empty arrays.
            **{name: of for name, of in arrays.items() if len(of)},
        }

    @classmethod
    def from_stored(cls, stored: StoredState, hashes: UInt64) -> RepeatCounts:
        """Return the counts of a model file, from the entries that `to_stored` wrote.

        stored: the entries, by name. hashes: distinct hashes of the rows of the fit, ascending,
        from the same file. Raise a ValueError if entries contradict each other or the hashes.
        """
        n_distinct = stored.get_integer("n_distinct", 1, len(hashes))
        n = stored.get_integer("n", n_distinct)
        arrays: dict[str, UInt64] = {}
        for name in _ARRAYS:
            length = stored.get_integer(f"n_{name}", 0, n_distinct)
            held = stored[name] if length else np.zeros(0, dtype=np.uint64)
            arrays[name] = values = check_column(name, held, "uint64", (length,))
            if not (values[1:] > values[:-1]).all() or not find_positions(hashes, values)[1].all():
                raise DamagedModelError(
                    f"the model file's sample_counts.{name} must hold distinct hashes of its "
                    "sample_hashes in ascending order, got other hashes or another order"
                )
        tables = restore_value("tables", tuple[int, ...], stored["tables"], 0, 2**64 - 1)
        counts = cls(n, n_distinct, tables=tables, **arrays)
        n_repeats = 2 * len(counts.twice) + 3 * len(counts.often)
        if counts.n_once < 0 or counts.n_once + n_repeats > n:
            raise DamagedModelError(
                "the model file's sample_counts.n, the number of rows, must fit the hashes in "
                f"twice and often, got {n}"
            )
        return counts


def hash_table(hashes: UInt64, target: NDArray[Any]) -> int:
    """Hash a table to one integer below 2^64, which does not depend on the order of the rows.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hash of the features of each row.
    target : ndarray of shape (n,) or (n, n_targets)
        Class codes of each row.

    Returns
    -------
    int
        Results of two tables add up, modulo 2^64, to that of all their rows.
    """
    return int(hash_table_rows(hashes, target).sum(dtype=np.uint64))


def hash_table_rows(hashes: UInt64, target: NDArray[Any]) -> UInt64:
    """Hash each row of a table with its target, (n,) uint64; `hash_table` returns the sum.

    hashes: hash of the features of each row, (n,) uint64. target: class codes of each row, (n,) or
    (n, n_targets).
    """
    columns = target.reshape(len(hashes), -1).T.astype(np.float64)
    return extend_hashes(hashes, *np.ascontiguousarray(columns))
