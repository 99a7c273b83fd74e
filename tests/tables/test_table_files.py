"""Which files a folder holds, and which of them change while they are read."""

import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from certree import BoostedTreesClassifier, read_table
from certree.out_of_core.sources import FileRows
from certree.tables.formats import open_file
from certree.tables.table_files import FileState, list_files


def test_what_is_hidden_or_no_table_is_passed_over(tmp_path):
    for name in ("a.parquet", "deep/b.csv", "_SUCCESS.csv", ".hidden/c.csv", "notes.txt"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("")
    assert [one.name for one in list_files(tmp_path)] == ["a.parquet", "b.csv"]


# -- files that change while they are read -----------------------------------------------------------


def as_before(path, change):
    """Change a file, and give it the time of before."""
    before = path.stat()
    change(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def put(path, table, *, n_rows=100):
    """Write a table in place, as the suffix says."""
    with path.open("r+b" if path.exists() else "wb") as file:
        if path.suffix == ".parquet":
            how = {"compression": "none", "use_dictionary": False}
            parquet.write_table(table, file, row_group_size=n_rows, **how)
        elif path.suffix == ".arrow":
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table, n_rows)
        else:
            csv.write_csv(table, file)
        file.truncate()
    return path


def numbers(seed, n=2000):
    """A table whose files have the same length for every seed."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    return pa.table({"a": rng.integers(100, 999, n), "b": rng.integers(100, 999, n), "y": y})


every_suffix = pytest.mark.parametrize("suffix", [".arrow", ".parquet", ".csv"])


@every_suffix
def test_rights_are_no_change_and_another_file_of_that_name_is(suffix, tmp_path):
    path = put(tmp_path / f"t{suffix}", numbers(0))
    file = open_file(path)
    path.chmod(0o600)
    file.expect_unchanged()
    other = put(tmp_path / f"other{suffix}", numbers(1))

    def replace(path):
        os.replace(other, path)

    as_before(path, replace)
    assert FileState.read(path)[:2] == file.states[path][:2]
    with pytest.raises(ValueError, match="has changed while it was read"):
        file.expect_unchanged()


def test_other_processes_compare_no_numbers_of_files(tmp_path):
    path = put(tmp_path / "t.csv", numbers(0))
    sent = pickle.loads(pickle.dumps(open_file(path)))
    as_before(path, lambda path: os.replace(shutil.copy(path, tmp_path / "copy"), path))
    sent.expect_unchanged()


@every_suffix
@pytest.mark.parametrize("is_limited", [False, True])
def test_rows_that_were_rewritten_in_place_are_refused(suffix, is_limited, tmp_path):
    path = put(tmp_path / f"t{suffix}", numbers(0))
    rows = FileRows(path, "y", block_rows=500, is_limited=is_limited)
    list(rows.chunks())
    list(rows.chunks())
    as_before(path, lambda path: put(path, numbers(1)))
    assert open_file(path).states == rows._tables[0].states
    with pytest.raises(ValueError, match=rf"t\{suffix} has changed .* has other values"):
        list(rows.chunks())


@every_suffix
def test_no_rows_of_a_changed_file_go_on(suffix, tmp_path):
    path = put(tmp_path / f"t{suffix}", numbers(0))
    batches = open_file(path).batches(["a", "y"], 100)
    next(batches)
    put(path, numbers(1))
    os.utime(path, ns=(0, 0))
    with pytest.raises(ValueError, match=rf"t\{suffix} has changed"):
        next(batches)


@pytest.mark.slow
@every_suffix
def test_a_file_that_is_truncated_is_refused(suffix, tmp_path):
    """In an interpreter of its own, which a bus error would end."""
    path = put(tmp_path / f"t{suffix}", numbers(0, 200_000), n_rows=200_000)
    code = (
        "import sys; from pathlib import Path; from certree.tables.formats import open_file\n"
        "path = Path(sys.argv[1]); batches = open_file(path).batches(['a', 'y'], 50_000)\n"
        "first = next(batches)\n"
        "with path.open('r+b') as file: file.truncate(9000)\n"
        "for column in first.columns: len(set(column.to_pylist()))\n"
        "try: [*batches]\n"
        "except ValueError as error: print(error)"
    )
    run = [sys.executable, "-c", code, str(path)]
    said = subprocess.run(run, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"{path} has changed while it was read")


@every_suffix
def test_a_fit_to_a_file_that_is_rewritten_fails_and_changes_nothing(suffix, tmp_path, monkeypatch):
    path = put(tmp_path / f"t{suffix}", numbers(0))
    model = BoostedTreesClassifier(max_iter=2, random_state=0).fit(path, "y")
    before, passes = dict(model.__dict__), []
    chunks = FileRows.chunks

    def rewriting(self, **how):
        if passes:
            as_before(path, lambda path: put(path, numbers(1)))
        passes.append(how)
        return chunks(self, **how)

    monkeypatch.setattr(FileRows, "chunks", rewriting)
    with pytest.raises(ValueError, match=rf"t\{suffix} has changed while it was read"):
        model.fit(path, "y")
    assert len(passes) > 1
    assert all(model.__dict__[name] is before[name] for name in before)


@pytest.mark.parametrize(
    ("suffix", "function"), [("xlsx", "read_excel"), ("XLS", "read_excel"), ("json", "read_json")]
)
def test_formats_that_pandas_reads_are_named(suffix, function, tmp_path):
    file = tmp_path / f"rows.{suffix}"
    file.touch()
    with pytest.raises(ValueError, match=rf"read it by pandas\.{function} and pass the data frame"):
        read_table(file)
