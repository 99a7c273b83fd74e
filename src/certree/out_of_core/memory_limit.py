"""What fits on files hold in memory, by how much of the rows is looked at at a time, and the reverse.

All sizes are bytes of anonymous memory: files of the scratch folder are mapped, and are none. What is
held is told from above by a few terms: all that the process holds before the rows are read, rows as
they are read, what threads make of them, and what stays. Measured fits lie below it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

from certree.grow.bins import EDGE_ROWS
from certree.interface.extras import import_extra
from certree.out_of_core.plan import FitPlan

# Sizes as Dask writes them.
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
# Rows of a part where nothing limits it, so that what is made of them for a moment stays small; at
# least; and so many parts at most, as each has files.
PART_ROWS, _FEWEST, _MOST_PARTS = 2**19, 2**14, 2**11
# So many rows are looked at together, and bytes of sums asked for, for each row of a part.
_TOGETHER, _SUMS = 8, 192
# What objects of Python, modules that are loaded late, stacks of threads and pieces of memory that are
# too small to be given back take; all else is counted so many times.
_FIXED, _MARGIN = 24 * 2**20, 1.15
# Rows whose hashes are in a range may be so many times those that are to be, by chance.
_MOST_PORTIONS = 2
# Bytes of what is known of a part, beside its arrays.
_OF_PART = 20_000
# The sums of a bin: gradients, Hessians and rows. And bins of a feature.
_OF_BIN, _BINS = 24, 256


@dataclass(frozen=True, slots=True)
class Portions:
    """How much of the rows is looked at at a time.

    Parameters
    ----------
    n_threads : int
        So many parts.
    part_rows : int
        Rows of a part.
    together : int
        Rows of all parts whose hashes are looked at together.
    bytes_of_sums : int
        Bytes of sums, or of coded rows, that are asked of the parts at a time, about.
    """

    n_threads: int = 1
    part_rows: int = PART_ROWS
    together: int = _TOGETHER * PART_ROWS
    bytes_of_sums: int = _SUMS * PART_ROWS


@dataclass(frozen=True, slots=True)
class RowsRead:
    """What is known of rows in files.

    Parameters
    ----------
    n, n_features : int
        Numbers of rows and features.
    of_row : float
        Bytes of a row as it is read.
    of_words : float
        Bytes of what the words of a row become.
    reader : int
        Bytes that reading takes beside, and of which file.
    file : str
        The file that takes most.
    """

    n: int
    n_features: int
    of_row: float
    of_words: float
    reader: int
    file: str


@dataclass(frozen=True, slots=True)
class Need:
    """What a fit holds beside rows that are read, in bytes.

    Parameters
    ----------
    always : float
        From the first rows on to the end.
    worked : float
        For each row of a part that a thread reads.
    together : float
        For each row whose hash is looked at with others.
    later : float
        Once all rows are read.
    of_thread, of_thread_row : float
        Then for each thread, and for each row of its part.
    sums : float
        So many times the sums that are asked of the parts at a time, and once for each thread.
    scratch_row : float
        For each row in files of the scratch folder.
    """

    always: float
    worked: float
    together: float
    later: float
    of_thread: float = 0.0
    of_thread_row: float = 0.0
    sums: float = 0.0
    scratch_row: float = 0.0

    def most(self, rows: RowsRead, portions: Portions) -> float:
        """The most that is held at a time, beside what the process holds before."""
        n_threads, part_rows = portions.n_threads, min(portions.part_rows, rows.n)
        together = min(portions.together, rows.n)
        of_edges = 8.0 * (rows.n_features + 1)
        # Parts wait to be worked on, and what has been told of them to be added up.
        reading = rows.reader + (n_threads + 3) * part_rows * rows.of_row
        reading += n_threads * part_rows * (self.worked + rows.of_words)
        # Rows that tell edges of bins, before and after some more are added, and the smallest of both.
        reading += (3.1 if rows.n > EDGE_ROWS else 2.2) * min(rows.n, EDGE_ROWS) * of_edges
        reading += (n_threads + 1) * min(part_rows, EDGE_ROWS) * of_edges
        looking = (self.together + 20 * n_threads) * together
        later = self.later + (self.sums and self.sums + n_threads) * portions.bytes_of_sums
        later += n_threads * (self.of_thread + self.of_thread_row * part_rows)
        always = self.always + rows.n / portions.part_rows * _OF_PART
        return _FIXED + _MARGIN * (always + max(reading, looking, later))


def portions_within(limit: int, need: Need, rows: RowsRead, n_threads: int) -> Portions:
    """The largest portions with which a fit keeps to a limit: first of threads, then of rows.

    Raises
    ------
    ValueError
        If there are none. The error names the least that it can be made with.
    """
    give_back()
    before = held_now()
    ways = [*_ways(rows.n, n_threads)]
    for portions in ways:
        if before + need.most(rows, portions) <= limit:
            return portions
    # The process may hold somewhat more or less when it is tried again.
    least = before + min(need.most(rows, portions) for portions in ways)
    least = -(-int(1.02 * least) // 10**6) * 10**6
    large = ""
    if _MARGIN * rows.reader > 0.3 * (least - before):
        large = (
            f"; {rows.reader:,} of them are what is read of {rows.file} at a time, whose pages or "
            "batches are that large"
        )
    raise ValueError(
        f"memory_limit={limit:,} is too little for this fit: it takes at least {least:,} bytes, of "
        f"which the process holds {int(before):,} before the fit{large}"
    )


def make_plan(need: Need, rows: RowsRead, portions: Portions) -> FitPlan:
    """Return what a fit needs that reads rows in so large portions."""
    return FitPlan(
        rows.n,
        rows.n_features,
        -(-rows.n // portions.part_rows),
        portions.n_threads,
        int(held_now() + need.most(rows, portions)),
        int(need.scratch_row * rows.n),
    )


def _ways(n: int, n_threads: int) -> Iterator[Portions]:
    sizes, size = [], PART_ROWS
    while size >= _FEWEST and (size == PART_ROWS or size * _MOST_PARTS >= n):
        sizes.append(size)
        size //= 2
    for threads in range(n_threads, 0, -1):
        yield from (Portions(threads, one, _TOGETHER * one, _SUMS * one) for one in sizes)


def smallest_portions(n: int) -> Portions:
    """Those in which rows are read before it is known what a fit holds."""
    return [*_ways(n, 1)][-1]


def sums_of_cell(n_features: int) -> int:
    """Bytes of the sums of a cell."""
    return _OF_BIN * _BINS * n_features


def most_leaves(n: int, leaves: int | None, depth: int | None, rows_of_leaf: int) -> int:
    """How many leaves a tree of n rows has at most."""
    most = max(1, n // max(1, rows_of_leaf))
    if leaves is not None:
        most = min(most, leaves)
    return most if depth is None else min(most, 1 << min(depth, 62))


def bytes_of(size: Any) -> int:
    """A size that is given as a number of bytes, or in words as Dask takes them.

    Raises
    ------
    TypeError, ValueError
        If it is no size, or not above 0.
    """
    if isinstance(size, str):
        found = _SIZE.fullmatch(size)
        if found is None:
            raise ValueError(
                f'memory_limit must be a number of bytes, or a size such as "2GB" or "500 MiB", got '
                f"{size!r}"
            )
        number, unit, binary = found.groups()
        units = _BINARY if binary and unit else _UNITS
        given = int(float(number) * units[unit.lower()])
    elif isinstance(size, bool) or not isinstance(size, Integral):
        raise TypeError(
            f"memory_limit must be a number of bytes, a string or None, got {type(size).__name__}"
        )
    else:
        given = int(size)
    if given < 1:
        raise ValueError(f"memory_limit must be at least 1 byte, got {size!r}")
    return given


def numbers_of_categories(learned: Any) -> list[int]:
    """How many categories features have."""
    known = learned.attributes["categories_"]
    return [] if known is None else [len(one or ()) for one in known.names]


def most_categories(learned: Any) -> int:
    """How many categories a feature has at most."""
    return max(numbers_of_categories(learned), default=0)


def expect_within(limit: int, n_portions: float) -> None:
    """Stop where more is held than may be, which no number of rows tells before.

    n_portions: how many times the rows that are to be looked at together are.
    """
    held = held_now()
    if held > limit or n_portions > _MOST_PORTIONS:
        raise ValueError(
            f"the process holds {held:,} bytes where memory_limit leaves it {limit:,}, and needs more: "
            "features may have very many categories, words be much longer than the first ones, or very "
            "many rows be alike"
        )


# -- what this process holds


def held_now() -> int:
    """Anonymous memory of this process.

    Raises
    ------
    ValueError
        If the system does not tell.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ValueError("memory_limit takes Linux, which alone tells what a process holds in memory")


def give_back() -> None:
    """Give back to the system what has been freed, which libraries keep for themselves."""
    import_extra("pyarrow", "files").default_memory_pool().release_unused()
    _trim()(0)


@cache
def _trim() -> Any:
    """What lets GNU's C library give memory back; others keep less."""
    return getattr(ctypes.CDLL(None), "malloc_trim", int)
