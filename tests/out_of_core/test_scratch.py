"""Arrays of blocks are in files, which are deleted in any case."""

import weakref
from dataclasses import replace

import numpy as np
import pytest

from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.scratch import open_scratch


def part(value, n=5):
    numbers = np.full(n, value, dtype=np.float64)
    return RowBlock(0, np.zeros((2, n), np.uint8), numbers, None, np.zeros(n, np.uint64))


def test_arrays_lie_in_files_until_the_block_is_left():
    with open_scratch() as kept:
        one = kept.store(part(1.0))
        assert (kept.folder / "0.y").stat().st_size == 40
        assert isinstance(one.y, np.memmap)
        assert one.y.tolist() == [1.0] * 5
        assert one.weight is None
        other = kept.store(part(2.0))
        assert one.y.tolist() == other.y.tolist() == [2.0] * 5  # the same place
        assert kept.store(part(3.0, 7)).y.tolist() == [3.0] * 7
        assert kept.store(other).y is other.y
    assert not kept.folder.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_where_a_fit_ends_early(error):
    folders = []

    def stop():
        with open_scratch() as kept:
            folders.append(kept.folder)
            kept.store(part(1.0))
            raise error

    with pytest.raises(error):
        stop()
    assert not folders[0].exists()


def test_an_empty_view_does_not_keep_its_array_in_memory():
    with open_scratch() as scratch:
        block = part(1.0, 1000)
        stored = scratch.store(replace(block, y_val=block.y[:0]))
        kept = weakref.ref(block.y)
        del block
        assert kept() is None
        assert stored.n_val == 0
