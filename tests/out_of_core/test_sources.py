"""Rows that are read so many at a time, and types of text."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certree.out_of_core.sources import FileRows


@pytest.mark.parametrize("block_rows", [1, 7, 100, 1000])
def test_chunks_hold_all_rows_in_turn(block_rows, tmp_path):
    for name, first in (("a", 0), ("b", 250), ("c", 250)):
        n = 250 if name != "b" else 0
        rows = pa.table({"x": np.arange(first, first + n), "y": np.zeros(n), "w": np.ones(n)})
        pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=60)
    source = FileRows(tmp_path, "y", "w", block_rows=block_rows)
    chunks = [*source.chunks()]
    sizes = [len(one.y) for one in chunks]
    assert set(sizes[:-1]) <= {block_rows}
    assert np.concatenate([one.X["x"].to_numpy() for one in chunks]).tolist() == [*range(500)]
    assert [one.X for one in source.chunks(targets_only=True)] == [None] * len(chunks)
    assert sum(one.weight.sum() for one in chunks) == 500


def test_types_of_text_are_those_of_all_of_it(tmp_path):
    lines = ["a,b,c,d,e,y", *["1,1,x,true,,0"] * 400_000, "2,1.5,1,false,,1", "3,7,,true,word,1"]
    (tmp_path / "rows.csv").write_text("\n".join([*lines, ""]))
    source = FileRows(tmp_path / "rows.csv", "y", block_rows=2**19)
    table = next(source.chunks()).X
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.string()]
    assert table.schema.types == kinds
    assert table["b"][-2].as_py() == 1.5
