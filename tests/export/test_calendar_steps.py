"""Calendar parts in the arithmetic of integers, as exports compute them."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree.export.calendar_steps import (
    SHIFT_DAYS,
    SHIFT_SECONDS,
    ZoneSteps,
    compute_part,
    count_days,
)

PARTS = ("month", "day", "weekday", "hour")
ZONES = ["Europe/Zurich", "America/New_York", "Africa/Casablanca", "+05:30", None]
EPOCH = dt.datetime(1970, 1, 1)


def keep(number):
    return number


def count_seconds(moment):
    return (moment - EPOCH) // dt.timedelta(seconds=1) + SHIFT_SECONDS


@given(st.datetimes())
def test_parts_of_all_years_are_those_of_python(moment):
    second = count_seconds(moment)
    for part in PARTS:
        expected = reference.read_calendar_part(moment, None, part)
        assert compute_part(part, second, keep) == expected
    days = count_days(moment.year, moment.month, moment.day, keep)
    assert days == (moment.date() - EPOCH.date()).days + SHIFT_DAYS


@pytest.mark.parametrize("zone", ZONES)
@given(moment=st.datetimes(dt.datetime(1900, 1, 2), dt.datetime(2100, 12, 30)))
def test_offsets_are_those_of_the_time_zone(zone, moment):
    steps, second = ZoneSteps.find(zone), count_seconds(moment)
    offset = int(steps.offsets[np.searchsorted(steps.starts, second, side="right")])
    for part in PARTS:
        expected = reference.read_calendar_part(moment, zone, part)
        assert compute_part(part, second + offset, keep) == expected
