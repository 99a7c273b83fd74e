"""The table of bin codes from which single trees of out-of-core fits grow."""

import numpy as np
import pytest

from certree import Cart, PACBayesTreeClassifier
from certree.estimators.out_of_core_trees import fit_tree_out_of_core
from certree.grow.bins import Bins
from certree.interface.fitted_state import atomic_fit
from certree.out_of_core import gathered_rows, joined_rows
from certree.out_of_core.executors import LocalBlocks, LocalExecutor
from certree.out_of_core.gathered_rows import BinnedSamples, gather_rows
from certree.out_of_core.joined_rows import MEMORY
from certree.out_of_core.memory_limit import BlockSizes
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.scratch import open_scratch
from certree.rows.features import DenseFeatures
from same_models import ChunkedRows, expect_same_tree, make_table, split_table


class Blocks(LocalBlocks):
    """Blocks in memory, and how many rows are copied at a time."""

    def __init__(self, parts, result_bytes, block_rows):
        super().__init__(parts, 1)
        self.block_sizes = BlockSizes(result_bytes=result_bytes, block_rows=block_rows)
        self.most = 0

    def reduce(self, f, *given):
        told = super().reduce(f, *given)
        if f is gathered_rows.copy_rows:
            self.most = max(self.most, sum(len(one[1]) for one in told))
        return told

    def choose_storage(self, n_bytes):
        del n_bytes
        return MEMORY


def make_blocks(sizes, *, has_weights=True, has_folds=True, p=3):
    rs, parts = np.random.RandomState(0), []
    for number, n in enumerate(sizes):
        codes = rs.randint(0, 256, (p, n)).astype(np.uint8)
        weight = rs.rand(n) if has_weights else None
        fold = {"fold": rs.randint(0, 3, n).astype(np.uint8)} if has_folds else {}
        y = rs.randint(0, 2, n).astype(float)
        parts.append(RowBlock(number, codes, y, weight, np.zeros(n, np.uint64), 7 + n, **fold))
    return parts


def make_bins(p=3):
    return Bins.from_table(DenseFeatures((np.arange(4.0 * p).reshape(4, p),)), None)


@pytest.mark.parametrize("most", [1, 300, 10**9])
@pytest.mark.parametrize("has_columns", [True, False])
def test_rows_are_gathered_in_the_order_of_their_blocks(most, has_columns):
    parts = make_blocks([5, 0, 4, 1, 9], has_weights=has_columns, has_folds=has_columns)
    blocks = Blocks([parts[k] for k in (3, 0, 4, 1, 2)], most * 28, 4)
    columns = {"has_weights": has_columns, "has_folds": has_columns}
    rows = gather_rows(blocks, make_bins(), has_classes=True, **columns)
    np.testing.assert_array_equal(rows.codes, np.concatenate([one.codes.T for one in parts]))
    np.testing.assert_array_equal(rows.y, np.concatenate([one.y for one in parts]))
    assert rows.y.dtype == np.int32
    if has_columns:
        np.testing.assert_array_equal(rows.weight, np.concatenate([one.weight for one in parts]))
        np.testing.assert_array_equal(rows.fold, np.concatenate([one.fold for one in parts]))
    else:
        assert rows.weight is None
        assert rows.fold is None
    assert blocks.most == min(most, 19)


def test_a_block_that_has_become_another_one_is_refused():
    blocks = Blocks(make_blocks([5, 4]), 10**6, 4)
    collect = blocks.reduce

    def changed(f, *given):
        told = collect(f, *given)
        if f is gathered_rows.list_sizes:
            blocks._blocks[1] = make_blocks([5, 3])[1]
        return told

    blocks.reduce = changed
    with pytest.raises(ValueError, match="partition 1 has other rows than before"):
        gather_rows(blocks, make_bins(), has_classes=True, has_weights=True, has_folds=True)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_sums_over_blocks_are_those_over_all_rows(n_threads):
    blocks = Blocks(make_blocks([5, 0, 4, 1, 9]), 10**6, 4)
    rows = gather_rows(blocks, make_bins(), has_classes=True, has_weights=True, has_folds=True)
    seen = []

    def add_up(block, factor):
        seen.append(len(block))
        return factor * int(block.sum())

    total = rows.make_reduce(lambda block: rows.y[block], n_threads)(add_up, 3)
    assert total == 3 * int(rows.y.sum())
    assert sorted(seen) == [3, 4, 4, 4, 4]


def test_selected_samples_have_the_codes_of_their_rows():
    X = np.random.RandomState(0).normal(size=(30, 3))
    bins = Bins.from_table(DenseFeatures((X,)), None, max_bins=6)
    table, y = np.ascontiguousarray(bins.codes.T), np.arange(30) % 2
    samples = BinnedSamples(table=table, y=y, edges=bins, storage=MEMORY)
    some = np.array([3, 8, 9, 21])
    chosen = samples.select(some)
    assert len(chosen) == 4
    np.testing.assert_array_equal(chosen.get_bins(6).codes, bins.codes[:, some])
    np.testing.assert_array_equal(chosen.y, y[some])
    assert samples.get_bins(6).codes.base is table or samples.get_bins(6).codes is table.T


@pytest.mark.parametrize("weights", ["real", None])
def test_trees_grow_from_files_as_in_memory(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(joined_rows, "_MOST_BYTES_IN_MEMORY", 0)
    X, y, weight = split_table(make_table(700, "three", weights=weights or "real"))
    weight = None if weights is None else weight
    model = PACBayesTreeClassifier(Cart(max_bins=30), random_state=0)

    @atomic_fit
    def fit(model):
        model.seen_rows_ = None
        with open_scratch() as kept:
            parts = LocalExecutor(ChunkedRows(X, y, weight, [0, 100, 700]), kept, 1)
            fit_tree_out_of_core(model, parts)
        return model

    there = fit(PACBayesTreeClassifier(Cart(max_bins=30), random_state=0))
    expect_same_tree(model.fit(X, y, weight), there, tmp_path)
