"""The rows of parts that grow and those that certify are those of one table."""

import numpy as np
import pytest

from certree import Cart, CertifiedTreeClassifier, CertifiedTreeRegressor
from certree.out_of_core.executors import LocalExecutor
from certree.out_of_core.metadata_pass import collect_metadata
from certree.out_of_core.train_calibration_split import (
    join_calibration_blocks,
    route_calibration_rows,
    select_training_set,
    split_blocks,
)
from certree.rows.split import TrainCalibrationSplitter
from same_models import ChunkedRows, make_groups, make_table, split_table

N = 300


def in_memory(model, X, y, weight, groups):
    deal = TrainCalibrationSplitter(0.4, np.random.RandomState(2), by_content=True)
    return model._prepare_training(X, y, weight, groups=groups, row_splitter=deal).split


def chunk_rows(chunk):
    """Numbers and targets of a chunk that grows."""
    return [*zip(np.asarray(chunk.X["x0"]).tolist(), np.asarray(chunk.y).tolist(), strict=True)]


@pytest.mark.parametrize("kind", [None, "text", "ints"])
@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_both_sides_are_those_of_one_table(target, weights, kind):
    groups, rows = make_groups(make_table(N, target, weights=weights or "real"), kind)
    groups = groups if kind else None
    X, y, weight = split_table(rows.drop_columns(["g"]), weights is not None)
    X = X.drop_columns(["colour"])  # whose codes are those of the rows that grow
    made = CertifiedTreeRegressor if target == "numbers" else CertifiedTreeClassifier
    model = made(Cart(max_bins=9), duplicates="genuine", random_state=0)
    expected = in_memory(model, X, y, weight, groups)
    parts = LocalExecutor(ChunkedRows(X, y, weight, [0, 1, 1, 200, N], groups), None, 1)
    metadata = collect_metadata(model, parts)
    sides = split_blocks(parts, metadata.encoder, 0.4, np.random.RandomState(2))
    assert (sides.n, sides.n_calibration) == (
        len(expected.train) + sides.n_calibration,
        len(expected.calibration),
    )
    assert sides.n_units == expected.n_units
    assert sides.repeats == expected.repeats
    growing = select_training_set(parts, sides.encoder, sides.sorter, sides.masks)
    seen = growing.scan(chunk_rows)
    places = np.arange(N) if expected.indices is None else expected.indices
    own = places[expected.train]
    assert seen == [*zip(X["x0"].to_numpy()[own].tolist(), y[own].tolist(), strict=True)]
    tree = model.fit(X, y, weight, groups).tree_
    about = metadata.encoder, tree, sides.encoder, sides.sorter, False
    masks = [(mask, None) for mask in sides.masks]
    blocks = parts.make_blocks(route_calibration_rows, *about, per_block=masks)
    found, leaf, numbers, weighed = join_calibration_blocks(blocks[::-1], sides.repeats, sides.keys)
    np.testing.assert_array_equal(found.units, expected.units)
    for name in ("train", "calibration", "indices"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.n_given == N
    if groups is not None:
        names, numbered = np.unique(expected.groups, return_inverse=True)
        np.testing.assert_array_equal(found.groups, numbered)
        assert len(names) == sides.n_groups == (60 if weights is None else 59)
    np.testing.assert_array_equal(leaf, model.apply(X.take(places[expected.calibration])))
    judged = y[places[expected.calibration]]
    np.testing.assert_array_equal(
        judged if target == "numbers" else metadata.attributes["classes_"][numbers],
        numbers if target == "numbers" else judged,
    )
    if weight is not None:
        np.testing.assert_array_equal(weighed, weight[places[expected.calibration]])


class Shuffled(ChunkedRows):
    """Rows that stand in another order in their chunk whenever they are read."""

    def chunks(self, *, targets_only=False):
        self.random = getattr(self, "random", None) or np.random.RandomState(0)
        for chunk in super().chunks(targets_only=targets_only):
            yield chunk.take(self.random.permutation(len(chunk.y)))


def rows_and_groups(chunk):
    return [*zip(chunk_rows(chunk), chunk.groups.tolist(), strict=True)]


def test_no_order_within_a_part_matters():
    groups, rows = make_groups(make_table(N), "text")
    X, y, _ = split_table(rows.drop_columns(["g"]), weighed=False)
    parts = LocalExecutor(Shuffled(X, y, None, [0, 150, N], groups), None, 1)
    metadata = collect_metadata(CertifiedTreeClassifier(Cart(max_bins=9)), parts)
    sides = split_blocks(parts, metadata.encoder, 0.4, np.random.RandomState(0))
    growing = select_training_set(parts, sides.encoder, sides.sorter, sides.masks)
    first, again = (growing.scan(rows_and_groups) for _ in range(2))
    assert first != again
    assert sorted(first) == sorted(again)
    every = {group for _, group in parts.scan(rows_and_groups)}
    assert len({group for _, group in first}) == round(0.4 * len(every))


def test_a_source_that_changes_is_refused():
    X, y, _ = split_table(make_table(N), weighed=False)
    source = ChunkedRows(X, y, None, [0, 100, N])
    parts = LocalExecutor(source, None, 1)
    metadata = collect_metadata(CertifiedTreeClassifier(Cart(max_bins=9)), parts)
    sides = split_blocks(parts, metadata.encoder, 0.5, np.random.RandomState(0))
    source.ends = [0, 99, N]
    with pytest.raises(ValueError, match="X must give the same rows"):
        select_training_set(parts, sides.encoder, sides.sorter, sides.masks).scan(chunk_rows)
