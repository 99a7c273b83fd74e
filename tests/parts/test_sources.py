"""Types that hold all values, and rows that are read so many at a time."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certree.parts.sources import FileRows, common_type, files_of

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


@pytest.mark.parametrize("part_rows", [1, 7, 100, 1000])
def test_chunks_hold_all_rows_in_turn(part_rows, tmp_path):
    for name, first in (("a", 0), ("b", 250), ("c", 250)):
        n = 250 if name != "b" else 0
        rows = pa.table({"x": np.arange(first, first + n), "y": np.zeros(n), "w": np.ones(n)})
        pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=60)
    source = FileRows(tmp_path, "y", "w", part_rows=part_rows)
    chunks = [*source.chunks()]
    sizes = [len(one.y) for one in chunks]
    assert set(sizes[:-1]) <= {part_rows}
    assert np.concatenate([one.X["x"].to_numpy() for one in chunks]).tolist() == [*range(500)]
    assert [one.X for one in source.chunks(targets_only=True)] == [None] * len(chunks)
    assert sum(one.weight.sum() for one in chunks) == 500


def test_what_is_hidden_or_no_table_is_passed_over(tmp_path):
    for name in ("a.parquet", "deep/b.csv", "_SUCCESS.csv", ".hidden/c.csv", "notes.txt"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("")
    assert [one.name for one in files_of(tmp_path)] == ["a.parquet", "b.csv"]


def test_types_of_text_are_those_of_all_of_it(tmp_path):
    lines = ["a,b,c,d,e,y", *["1,1,x,true,,0"] * 400_000, "2,1.5,1,false,,1", "3,7,,true,word,1"]
    (tmp_path / "rows.csv").write_text("\n".join([*lines, ""]))
    source = FileRows(tmp_path / "rows.csv", "y", part_rows=2**19)
    table = next(source.chunks()).X
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.string()]
    assert table.schema.types == kinds
    assert table["b"][-2].as_py() == 1.5
