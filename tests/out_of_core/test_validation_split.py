"""Rows that are held out of parts are those that are held out of one table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor
from certree.out_of_core.executors import LocalExecutor
from certree.out_of_core.memory_limit import BlockSizes
from certree.out_of_core.metadata_pass import collect_metadata
from certree.out_of_core.row_assignment import RowSorter
from certree.out_of_core.validation_split import split_validation_set
from same_models import ChunkedRows


def in_memory(model, X, y, weight, size, seed):
    """Rows, targets and weights of both sides."""
    return model._prepare_training(X, y, weight).hold_out_rows(size, np.random.RandomState(seed))


def in_parts(model, X, y, weight, ends, size, seed, compared_rows):
    parts = LocalExecutor(ChunkedRows(X, y, weight, ends), None, 1)
    metadata = collect_metadata(model, parts)
    parts.block_sizes = BlockSizes(compared_rows=compared_rows)
    held = split_validation_set(parts, metadata.encoder, metadata.weight_scaling, size, seed)
    sides = ([], [])
    for chunk, mask in zip(ChunkedRows(X, y, weight, ends).chunks(), held.masks, strict=True):
        training = held.sorter.read_rows(metadata.encoder, chunk)
        if training is not None:
            for to, one in zip(sides, held.sorter.split_rows(training, mask), strict=True):
                to.append(one)
    return sides, held


def listed(trainings, is_weighed):
    """Rows of a side with target and weight, in order."""
    rows = []
    for one in trainings:
        weight = one.weight if is_weighed else np.ones(len(one.y))
        table = np.column_stack([one.features.matrix, one.y, weight])
        rows += [tuple(row) for row in table.tolist()]
    return sorted(rows)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(8, 60),
    ends=st.lists(st.integers(0, 60), max_size=4),
    target=st.sampled_from(["classes", "numbers"]),
    weights=st.sampled_from([None, "whole", "real"]),
    share=st.sampled_from([0.3, 0.5]),
    compared_rows=st.sampled_from([5, 2**22]),
)
def test_both_sides_are_those_of_one_table(seed, n, ends, target, weights, share, compared_rows):
    rs = np.random.RandomState(seed)
    # Many rows are alike, and some of these have other weights.
    X, y = rs.randint(0, 3, (n, 2)).astype(float), rs.randint(0, 2, n)
    y[:4] = 0, 0, 1, 1
    weight = {
        None: None,
        "whole": rs.randint(1, 3, n).astype(float),
        "real": rs.choice([0.5, 0.7, 1.9], n),
    }[weights]
    made = BoostedTreesClassifier if target == "classes" else BoostedTreesRegressor
    y = y if target == "classes" else y.astype(float)
    ends = sorted([0, *(min(one, n) for one in ends), n])
    here = in_memory(made(), X, y, weight, share, seed)
    there, held = in_parts(made(), X, y, weight, ends, share, seed, compared_rows)
    for side, own, other in zip(
        here, there, (held.summary.train, held.summary.validation), strict=True
    ):
        assert other.n == len(side.y) == sum(len(one.y) for one in own)
    if weights is not None:
        for side, own in zip(here, there, strict=True):
            found = np.array(listed(own, True))
            # The mean weight of a side is the unit of its weights.
            rows = np.column_stack([side.features.matrix, side.y, side.weight / side.weight.mean()])
            np.testing.assert_allclose(found, np.array(sorted(map(tuple, rows.tolist()))))
        return
    for side, own in zip(here, there, strict=True):
        assert listed([side], False) == listed(own, False)


def test_parts_of_other_lengths_are_refused():
    model = BoostedTreesRegressor()
    training = model._prepare_training(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="a block has 3 rows, and had 2 before"):
        RowSorter(np.random.RandomState(0)).split_rows(training, np.zeros(2, dtype=bool))
