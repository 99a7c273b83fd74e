"""Types that hold all values of two."""

import pyarrow as pa
import pytest

from certree.tables.column_types import InferredColumn, choose_type, common_type

STRINGS = pa.dictionary(pa.int32(), pa.string())
PAIRS = [
    (pa.int8(), pa.int64(), pa.int64()),
    (pa.uint8(), pa.int8(), pa.int16()),
    (pa.uint32(), pa.int32(), pa.int64()),
    (pa.uint64(), pa.int64(), None),
    (pa.uint16(), pa.uint32(), pa.uint32()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.int32(), pa.float32(), pa.float64()),
    (pa.int64(), pa.float64(), None),
    (pa.null(), pa.string(), pa.string()),
    (pa.string(), STRINGS, pa.string()),
    (pa.large_string(), pa.string(), pa.string()),
    (pa.string(), pa.float64(), None),
    (pa.bool_(), pa.int8(), None),
    (STRINGS, pa.dictionary(pa.int8(), pa.string()), pa.string()),
    (pa.dictionary(pa.int8(), pa.int32()), pa.dictionary(pa.int8(), pa.int64()), pa.int64()),
    (pa.timestamp("s"), pa.date32(), None),
]


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS)
def test_common_types(one, other, expected):
    for found in (common_type(one, other), common_type(other, one)):
        if pa.types.is_dictionary(one) and pa.types.is_integer(expected):
            assert found == pa.dictionary(pa.int32(), expected)
        else:
            assert found == expected


@pytest.mark.parametrize(
    ("kind", "wanted", "expected"),
    [
        (pa.dictionary(pa.int8(), pa.int64()), pa.string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.bool_()), pa.string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.int64()), pa.float64(), pa.int64()),
        (pa.dictionary(pa.int8(), pa.int64()), None, pa.dictionary(pa.int8(), pa.int64())),
        (pa.dictionary(pa.int8(), pa.date32()), pa.string(), pa.dictionary(pa.int8(), pa.date32())),
        (STRINGS, pa.float64(), STRINGS),
    ],
)
def test_dictionaries_are_read_as_in_the_fit(kind, wanted, expected):
    assert choose_type(InferredColumn((kind,)), wanted) == expected
