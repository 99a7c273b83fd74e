"""What parts tell of the cells of a tree, against loops over rows."""

import pickle
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certree._core import add_tables, cut_cells, part_tables, tables_of_some, tree_of_cells
from certree.out_of_core.cells_of_tree import (
    FoldOfParts,
    Tables,
    WholeUnits,
    begin_cells,
    divide,
    settle,
    tables_of,
)
from certree.out_of_core.part import PartOfRows
from certree.rows.relative_weights import WeightUnit

P = 3


def parts_of(rs, n, ends, n_classes, weighed):
    """Parts of coded rows, as chunks become them."""
    codes = rs.choice([0, 1, 2, 7, 255], size=(P, n)).astype(np.uint8)
    y = rs.randint(0, n_classes or 20, n).astype(float)
    weight = rs.randint(1, 9, n).astype(float) if weighed else None
    if weighed:
        weight[0] = 1.0  # the common unit
    none = np.zeros(0, dtype=np.uint64)
    parts = []
    for number, (a, b) in enumerate(pairwise(ends)):
        own = None if weight is None else weight[a:b]
        parts.append(PartOfRows(number, np.ascontiguousarray(codes[:, a:b]), y[a:b], own, none))
    return codes, y, np.ones(n) if weight is None else weight, parts


def literal_tables(codes, y, weight, inside, lanes, n_classes, counts_rows):
    """Bins that rows of a cell have, and their sums, feature by feature."""
    n_bins, bins, sums = [], [], []
    for j in range(P):
        added = {}
        for i in np.flatnonzero(inside):
            of_bin = added.setdefault(int(codes[j, i]), Counter())
            if n_classes > 2:
                of_bin[int(y[i])] += int(weight[i])
            else:
                of_bin[0] += int(weight[i])
                of_bin[1] += int(weight[i] * y[i])
            of_bin["rows"] += 1
        n_bins.append(len(added))
        for one in sorted(added):
            bins.append(one)
            sums += [added[one][lane] for lane in lanes]
            sums += [added[one]["rows"]] * counts_rows
    return n_bins, bins, sums


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.sampled_from([0, 2, 5]),
    weighed=st.booleans(),
    ends=st.lists(st.integers(0, 60), max_size=4),
)
@settings(max_examples=25)
def test_tables_are_those_of_loops_over_rows(seed, n_classes, weighed, ends):
    rs = np.random.RandomState(seed)
    codes, y, weight, parts = parts_of(rs, 60, sorted([0, 60, *ends]), n_classes, weighed)
    known = {part.number: part.digest for part in parts}
    goes_left = rs.randint(0, 2, (1, 256)).astype(np.uint8)
    for i, part in enumerate(parts):
        units = WholeUnits(n_classes, WeightUnit.find(weight))
        begun, total = begin_cells(part, known, units, None)
        assert total.sum() >= len(part.y)
        parts[i], _ = divide(begun, np.zeros(1, np.int32), np.full(1, 1, np.int32), goes_left)
    cells = [c for c, side in enumerate((1, 0), start=1) if (goes_left[0, codes[1]] == side).any()]
    insides = [goes_left[0, codes[1]] == (c == 1) for c in cells]
    lanes = [
        np.unique(y[inside]).astype(int).tolist() if n_classes > 2 else [0, 1] for inside in insides
    ]
    starts = np.cumsum([0, *map(len, lanes)]).astype(np.int64)
    lane = np.concatenate(lanes).astype(np.int32)
    totals = starts, lane, np.ones(len(lane), dtype=np.int64)
    width = (np.diff(starts) + weighed).astype(np.int32)
    target = n_classes, "gini" if n_classes else "squared", weighed, False, 6, 0
    given_cells = np.array(cells, dtype=np.int32)
    told = [tables_of(part, given_cells, totals, target, width) for part in parts]
    whole = told[0]
    for one in told[1:]:
        whole = whole + one
    n_bins, bins, sums, about = whole.whole()
    expected = [
        literal_tables(codes, y, weight, inside, of_cell, n_classes, weighed)
        for inside, of_cell in zip(insides, lanes, strict=True)
    ]
    for found, k in ((n_bins, 0), (bins, 1), (sums, 2)):
        assert found.tolist() == [number for one in expected for number in one[k]]
    for c, inside in enumerate(insides):
        own = about[4 * c : 4 * c + 4].tolist()
        squares = int((weight[inside] ** 2).sum())
        assert own == [y[inside].min(), y[inside].max(), 0, squares]
    leaves = np.array([5, 6], dtype=np.int32)
    for part, (a, b) in zip(parts, pairwise(sorted([0, 60, *ends])), strict=True):
        settled, _ = settle(part, np.array([1, 2], dtype=np.int32), leaves)
        assert settled.leaf.tolist() == (6 - goes_left[0, codes[1, a:b]]).tolist()


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.sampled_from([0, 2, 5]), weighed=st.booleans())
@settings(max_examples=25)
def test_what_one_side_leaves_are_the_sums_of_the_other(seed, n_classes, weighed):
    rs = np.random.RandomState(seed)
    codes, y, weight, (part,) = parts_of(rs, 60, [0, 60], n_classes, weighed)
    units = WholeUnits(n_classes, WeightUnit.find(weight))
    begun, _ = begin_cells(part, {0: part.digest}, units, None)
    goes_left = rs.randint(0, 2, (1, 256)).astype(np.uint8)
    goes_left[0, codes[1, :2]] = 0, 1  # both sides have rows, if the first two differ there
    if len({*codes[1, :2]}) < 2:
        return
    cut, _ = divide(begun, np.zeros(1, np.int32), np.full(1, 1, np.int32), goes_left)
    sides = goes_left[0, codes[1]]
    target = n_classes, "gini" if n_classes else "squared", weighed, n_classes == 0, 6, 0

    def lanes_of(insides):
        lanes = [
            np.unique(y[one]).astype(np.int32) if n_classes > 2 else np.arange(2, dtype=np.int32)
            for one in insides
        ]
        sums = [
            [weight[one][y[one] == lane].sum() for lane in own]
            if n_classes > 2
            else [weight[one].sum(), (weight * y)[one].sum()]
            for one, own in zip(insides, lanes, strict=True)
        ]
        starts = np.cumsum([0, *map(len, lanes)]).astype(np.int64)
        return starts, np.concatenate(lanes), np.concatenate(sums).astype(np.int64)

    def told(cells, insides, n_added):
        lanes = lanes_of(insides)
        width = (np.diff(lanes[0])[:n_added] + weighed).astype(np.int32)
        return tables_of(cut, np.array(cells, np.int32), lanes, target, width).whole()

    left, right = sides == 1, sides == 0
    expected = told([1, 2], [left, right], 2)
    above, small = told([0], [left | right], 1), told([1, 2], [left, right], 1)
    places = np.array([[0, -1, -1], [0, 0, 1]], dtype=np.int32)
    given_ = small, lanes_of([left]), above, lanes_of([left | right]), lanes_of([left, right])
    for one, other in zip(tables_of_some(*given_, places, target), expected, strict=True):
        assert one.tolist() == other.tolist()
    for k, wrong in enumerate((1, 1, 2)):
        spoiled = places.copy()
        spoiled[1, k] = wrong
        with pytest.raises(ValueError, match="places must be those of cells"):
            tables_of_some(*given_, spoiled, target)
    turned = np.array([[0, 0, -1]], dtype=np.int32)
    with pytest.raises(ValueError, match=r"has the (lanes|bins) of the one above"):
        tables_of_some(above, given_[3], *given_[:2], lanes_of([left]), turned, target)


def test_rows_that_judge_are_sent_along_without_influence():
    rs = np.random.RandomState(0)
    _, y, _, parts = parts_of(rs, 40, [0, 40], 2, False)
    part = replace(parts[0], fold=rs.randint(0, 2, 40).astype(np.uint8))
    begun, total = begin_cells(part, {0: part.digest}, WholeUnits(2), FoldOfParts(1))
    grows = part.fold != 1
    assert total.tolist() == [grows.sum(), y[grows].sum()]
    goes_left = (np.arange(256) < 2).astype(np.uint8)[None]
    cut, _ = divide(begun, np.zeros(1, np.int32), np.zeros(1, np.int32), goes_left)
    left = part.codes[0] < 2
    sizes = (cut.ranges[1:, :, 1] - cut.ranges[1:, :, 0]).tolist()
    assert sizes == [[(side & grows).sum(), (side & ~grows).sum()] for side in (left, ~left)]


def one_table():
    return (
        np.array([1, 0], dtype=np.int32),
        np.array([3], dtype=np.uint8),
        np.array([2, 1], dtype=np.int64),
        np.zeros(4, dtype=np.int64),
    )


def test_tables_that_do_not_belong_together_are_refused():
    width, good = np.array([2], dtype=np.int32), one_table()
    assert add_tables(good, good, width)[2].tolist() == [4, 2]
    for k, spoiled in enumerate(([300, 0], [3, 3], [2], [0])):
        bad = [*good]
        bad[k] = np.array(spoiled, dtype=good[k].dtype)
        with pytest.raises(ValueError, match=r"must|entries|expected|have"):
            add_tables(good, tuple(bad), width)


def test_the_core_refuses_what_are_no_rows_or_cells():
    codes, order = np.zeros((1, 2), dtype=np.uint8), np.arange(2, dtype=np.int32)
    rows, cells = np.ones((2, 2), dtype=np.int64), np.array([[0, 2]], dtype=np.int64)
    lanes = (
        np.array([0, 2], dtype=np.int64),
        np.array([0, 1], dtype=np.int32),
        np.array([2, 2], dtype=np.int64),
    )
    target = 2, "gini", False, False, 1, 0
    part_tables(codes, order, rows, cells, 1, lanes, target)
    with pytest.raises(ValueError, match="cells must begin and end"):
        part_tables(codes, order, rows, cells + 1, 1, lanes, target)
    with pytest.raises(ValueError, match="y must hold classes"):
        part_tables(codes, order, rows * 2, cells, 1, lanes, target)
    with pytest.raises(ValueError, match="weights must be whole numbers above 0"):
        part_tables(codes, order, rows * 0, cells, 1, lanes, target)
    with pytest.raises(ValueError, match="lanes of a cell must ascend"):
        part_tables(codes, order, rows, cells, 1, (lanes[0], lanes[1] * 0, lanes[2]), target)
    child = np.array([0], dtype=np.int32)
    none, starts = np.zeros(1), np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="children must come after their parents"):
        tree_of_cells(
            child, child, none, none, child.astype(np.uint8), starts, child[:0], "depth", 9
        )
    assert callable(cut_cells)


def test_tables_are_added_up_a_few_times_however_many_parts_there_are():
    width = np.array([2], dtype=np.int32)
    added = Tables(width, (one_table(),))
    for _ in range(40):
        added = added + Tables(width, (one_table(),))
        assert len(added.tables) <= 7
    assert added.whole()[2].tolist() == [82, 41]
    # What is sent has each number once.
    (sent,) = pickle.loads(pickle.dumps(added, 5)).tables
    assert [one.tolist() for one in sent] == [one.tolist() for one in added.whole()]
