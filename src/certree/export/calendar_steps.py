"""Calendar parts of dates in the arithmetic of integers, from which exports are written.

The numbers may be Python's integers, or objects that write nodes or SQL for each operation. They are
never negative, so that engines which round quotients toward 0 get the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certree.rows.calendar_parts import (
    LOG_BLOCK,
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    find_transitions,
)
from certree.rows.dates import CalendarPart

# Years for which exports know the changes of a time zone's offset.
FIRST_YEAR, LAST_YEAR = 1900, 2100
# Added to days and seconds since 1970, so that they are not negative from year 1 on: 2000 years,
# which are 5 * 400 years, and as many weeks.
SHIFT_DAYS = 5 * 146_097
SHIFT_SECONDS = SHIFT_DAYS * SECONDS_PER_DAY

# Keeps an intermediate number, such as by a name in SQL, and returns an object that stands for it.
Keep = Callable[[Any], Any]


def compute_part(part: CalendarPart, second: Any, keep: Keep) -> Any:
    """Compute a calendar part of a moment, such as its weekday, with integer arithmetic only.

    Parameters
    ----------
    part : {"month", "day", "weekday", "hour"}
        The part.
    second : int or object with its operators
        Seconds since 1970 in local time, plus `SHIFT_SECONDS` (2000 years, so that the number is
        not negative). An object, such as a SQL expression, writes its operations instead of
        computing them.
    keep : callable
        ``keep(number)`` stores an intermediate number that is used several times, for instance as a
        column of a SQL query, and returns an object that stands for it. For integers it returns its
        argument.

    Returns
    -------
    int or object
        Like `second`: month 1 to 12, day of the month 1 to 31, weekday 1 (Monday) to 7, or hour 0
        to 23.

    References
    ----------
    Hinnant, "chrono-compatible low-level date algorithms", civil_from_days.
    """
    if part == "hour":
        return second % SECONDS_PER_DAY // SECONDS_PER_HOUR
    day = second // SECONDS_PER_DAY
    if part == "weekday":
        return (day + 3) % 7 + 1  # 1970 began on a Thursday
    # Days since 1 March of a year that 400 divides, and years since then.
    day_of_era = keep((day + 719_468) % 146_097)
    year = keep(
        (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    )
    day_of_year = keep(day_of_era - (year * 365 + year // 4 - year // 100))
    month = keep((day_of_year * 5 + 2) // 153)  # 0 is March
    if part == "month":
        return (month + 2) % 12 + 1
    return day_of_year - (month * 153 + 2) // 5 + 1


def count_days(year: Any, month: Any, day: Any, keep: Keep) -> Any:
    """Return the number of days from 1970-01-01 to a date, plus `SHIFT_DAYS` (those of 2000 years).

    The sum is not negative. year, month, day: integers, or objects that write their operations,
    such as SQL expressions; years are at least 1. keep: ``keep(number)`` stores an intermediate
    number that is used several times, and returns an object that stands for it. The result is an
    integer, or an object like the arguments.
    """
    months = keep((month + 9) % 12)  # since March
    years = keep(year - months // 10 + 400)
    in_years = years * 365 + years // 4 - years // 100 + years // 400
    return in_years + (months * 153 + 2) // 5 + day + (SHIFT_DAYS - 146_097 - 719_469)


class ZoneSteps(NamedTuple):
    """Offsets of a time zone from UTC in the years 1900 to 2100.

    Parameters
    ----------
    starts : ndarray of int64, shape (k - 1,)
        Moments from which each offset but the first holds, in seconds since 1970 UTC plus
        `SHIFT_SECONDS` (2000 years, so that they are not negative).
    offsets : ndarray of int64, shape (k,)
        Seconds by which local time is ahead of UTC; earlier moments have the first offset.
    """

    starts: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def find(cls, zone: str | None) -> ZoneSteps:
        """Return the offsets of a time zone in the years 1900 to 2100.

        zone: its name, such as "Europe/Berlin"; None: dates have no zone, and the only offset is 0.
        """
        if zone is None:
            return cls(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
        ends = [np.datetime64(f"{year}-01-01", "s") for year in (FIRST_YEAR, LAST_YEAR + 1)]
        first, last = (int(one.astype(np.int64)) for one in ends)
        blocks = [
            find_transitions(zone, k) for k in range(first >> LOG_BLOCK, (last >> LOG_BLOCK) + 1)
        ]
        starts, offsets = (np.concatenate(one) for one in zip(*blocks, strict=True))
        is_inside = (starts > first) & (starts < last)
        begins = offsets[int(np.searchsorted(starts, first, side="right")) - 1]
        starts, offsets = starts[is_inside], np.append(begins, offsets[is_inside])
        changes = np.flatnonzero(np.diff(offsets))
        return cls(starts[changes] + SHIFT_SECONDS, offsets[np.append(0, changes + 1)])
