"""Ranges of rows of Arrow files are read without a map, and no more than these."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from certree.tables.arrow_files import ArrowFile

N = 10_003
WORDS = np.array(["", "a", "bb", "ééé", "x" * 40], dtype=object)


def all_types(*, nested=False):
    """A table of every type that a column of a file may have."""
    rng = np.random.default_rng(0)

    def drawn(values, kind=None, *, lacking=True):
        return pa.array(values, kind, mask=rng.random(N) < 0.1 if lacking else None)

    words = [WORDS[rng.integers(0, 5, N)] for _ in range(3)]
    table = pa.table(
        {
            "nothing": pa.nulls(N),
            "number": drawn(rng.normal(size=N)),
            "small": drawn(rng.integers(0, 9, N).astype("i2"), lacking=False),
            "bool": drawn(rng.random(N) < 0.5),
            "text": drawn(words[0], pa.string()),
            "large text": drawn(words[1], pa.large_string(), lacking=False),
            "category": drawn(words[2], pa.string()).dictionary_encode(),
            "code": drawn(rng.integers(0, 9, N)).dictionary_encode(),
            "time": drawn(rng.integers(0, 10**9, N)).cast(pa.timestamp("s")),
            "decimal": drawn(rng.integers(0, 99, N)).cast(pa.decimal128(30, 2)),
        }
    )
    return table.append_column("list", pa.array([[1, 2]] * N)) if nested else table


def written(table, path, n_batch=N, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(path, table.schema, options=options) as file:
        file.write_table(table, n_batch)
    return path


@pytest.mark.parametrize("n_rows", [1000, 4096, N + 5])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("n_batch", [N, 1701])
@pytest.mark.parametrize("compression", [None, "lz4"])
def test_ranges_are_the_rows_of_the_file(compression, n_batch, nested, n_rows, tmp_path):
    table = all_types(nested=nested)
    with ArrowFile(written(table, tmp_path / "t.arrow", n_batch, compression)) as file:
        assert file.schema == table.schema
        assert sum(file.lengths) == N
        for names in (table.column_names, ["code", "number"], ["text", "bool"]):
            numbers = range(len(file.lengths))
            read = [one for i in numbers for one in file.read_ranges(names, i, n_rows)]
            assert max(map(len, read)) <= n_rows
            assert pa.Table.from_batches(read).equals(table.select(names))


def test_no_rows_and_no_batches(tmp_path):
    table = all_types()
    for one in (table.slice(0, 0), pa.table({"a": pa.array([], pa.string())})):
        with ArrowFile(written(one, tmp_path / "t.arrow")) as file:
            assert sum(file.lengths) == 0
            assert not [*file.read_ranges(one.column_names, 0, 9)] if file.lengths else True


def test_feather_of_pandas_is_read(tmp_path):
    table = all_types()
    pa.feather.write_feather(table, tmp_path / "t.feather")
    with ArrowFile(tmp_path / "t.feather") as file:
        read = [one for i in range(len(file.lengths)) for one in file.read_ranges(["text"], i, 999)]
    assert pa.Table.from_batches(read).equals(table.select(["text"]))


def test_of_a_single_batch_a_range_is_held(tmp_path):
    n = 400_000
    table = pa.table({f"x{j}": np.random.default_rng(j).normal(size=n) for j in range(5)})
    path = written(table, tmp_path / "t.arrow", n)
    before, held = pa.total_allocated_bytes(), []
    with ArrowFile(path) as file:
        for batch in file.read_ranges(table.column_names, 0, 2**14):
            held.append(pa.total_allocated_bytes() - before)
            del batch
    assert max(held) < 3 * 2**14 * 5 * 8 < table.nbytes / 6


def test_files_that_end_early_are_refused(tmp_path):
    path = written(all_types(), tmp_path / "t.arrow", 5000)
    content = path.read_bytes()
    for n in np.linspace(0, len(content) - 1, 60).astype(int):
        path.write_bytes(content[:n])
        with pytest.raises(pa.ArrowInvalid):
            ArrowFile(path)


def test_a_file_that_is_truncated_while_it_is_read_is_refused(tmp_path):
    path = written(all_types(), tmp_path / "t.arrow")
    size = path.stat().st_size
    with ArrowFile(path) as file:
        ranges = file.read_ranges(["number", "text"], 0, 100)
        next(ranges)
        with path.open("r+b") as other:
            other.truncate(size // 20)
        with pytest.raises(pa.ArrowInvalid, match="truncated"):
            list(ranges)


def test_damaged_metadata_is_refused_or_read(tmp_path):
    """A changed byte raises an error of Arrow, or changes values, and never ends the interpreter."""
    table = all_types()
    path = written(table, tmp_path / "t.arrow", 5000)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    (n_footer,) = struct.unpack("<i", content[-10:-6])
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[len(content) - 10 - rng.integers(0, n_footer)] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            with ArrowFile(path) as file:
                names = file.schema.names
                for i in range(len(file.lengths)):
                    list(file.read_ranges(names, i, 1000))
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            refused += 1
    assert refused
