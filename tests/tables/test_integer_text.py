"""Columns of text that hold integers: only those whose text no conversion changes."""

import pyarrow as pa
import pytest

from certree.tables.integer_text import convert_integer_text, holds_integers


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["0", "-7", "123456789012345678"], True),
        (["1", None], True),
        (["01", "2"], False),
        (["-0"], False),
        (["+1"], False),
        (["1.0"], False),
        (["1 ", "2"], False),
        (["1\n"], False),
        (["", "1"], False),
        (["1234567890123456789"], False),
        (["a"], False),
    ],
)
def test_integers_are_those_that_are_printed_alike(texts, expected):
    column = pa.chunked_array([pa.array(texts, pa.string())])
    assert holds_integers(column) == expected
    found = convert_integer_text(column)
    assert (found.type == pa.int64()) == expected
    if expected:
        assert [None if x is None else str(x) for x in found.to_pylist()] == texts


def test_columns_without_texts_stay_as_they_are():
    for column in (pa.array([None], pa.string()), pa.array([], pa.string()), pa.array([1.5])):
        assert convert_integer_text(column) is column
