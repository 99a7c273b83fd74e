"""Checksums are those of the values, however memory holds them."""

import numpy as np
import pyarrow as pa
import pytest

from certree.out_of_core.checksums import Checksums, checksum


def columns():
    """A column of each kind."""
    yield pa.array([1.5, None, -0.0, 3.0] * 5)
    yield pa.array([1, 2, None, 4] * 5, pa.int16())
    yield pa.array([True, None, False, True] * 5)
    yield pa.array(["a", "", None, "ééé"] * 5)
    yield pa.array(["a", "", None, "ééé"] * 5, pa.large_string())
    yield pa.array(["a", "b", None, "ééé"] * 5).dictionary_encode()
    yield pa.array([1, 2, None, 4] * 5).dictionary_encode()
    yield pa.array([1, 2, None, 4] * 5).cast(pa.timestamp("s"))
    yield pa.array([[1], None, [2], []] * 5)


every_column = pytest.mark.parametrize("column", [*columns()], ids=lambda one: str(one.type))


@every_column
def test_equal_values_have_equal_checksums(column):
    whole = checksum(pa.chunked_array([column]))
    padded = pa.concat_arrays([column.slice(0, 3), column])
    assert checksum(pa.chunked_array([padded.slice(3)])) == whole
    again = pa.array(column.to_pylist(), column.type)
    assert checksum(pa.chunked_array([again])) == whole


@every_column
def test_other_values_have_other_checksums(column):
    others = {checksum(pa.chunked_array([column]))}
    for k in range(3):
        order = np.arange(len(column))
        order[[k, k + 1]] = order[[k + 1, k]]
        others.add(checksum(pa.chunked_array([column.take(pa.array(order))])))
    assert len(others) == 4


def test_what_lies_under_a_missing_value_does_not_count():
    one, other = (
        pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\1"), pa.array([7, x]).buffers()[1]])
        for x in (1, 2)
    )
    assert checksum(pa.chunked_array([one])) == checksum(pa.chunked_array([other]))


def test_ends_of_words_count():
    one, other = (checksum(pa.chunked_array([pa.array(x)])) for x in (["ab", "c"], ["a", "bc"]))
    assert one != other


def test_a_block_that_differs_is_refused():
    known, rows = Checksums(), pa.table({"a": [1, 2], "b": ["x", "y"]})
    known.expect_same(rows, 0, "all", "file")
    known.expect_same(rows.select(["b"]), 0, "all", "file")
    with pytest.raises(ValueError, match=r"file has changed .* column 'a' has other values"):
        known.expect_same(rows.set_column(0, "a", [[1, 3]]), 0, "all", "file")
    with pytest.raises(ValueError, match="column 'a'"):
        known.expect_same(rows.slice(0, 1), 0, "all", "file")
    known.expect_same(rows.slice(0, 1), 0, "another", "file")
