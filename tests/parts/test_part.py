"""What becomes of a part is another one, or written over it where nobody makes it anew."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certree import _core
from certree.ensembles.losses import LogLoss
from certree.parts.part import (
    Cuts,
    Layout,
    PartOfRows,
    begin_round,
    begin_tree,
    digests,
    end_tree,
    go_on,
    largest,
    start,
)

GOALS = [((LogLoss(1).name, LogLoss(1).parameter, 1.0), 0, 1, 0)]
N, P, BINS = 700, 3, 20


def part(is_own):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, BINS, (P, N)).astype(np.uint8)
    keys = rng.integers(0, 2**64, N, dtype=np.uint64)
    made = PartOfRows(0, codes, (codes[0] > 9).astype(float), None, keys, is_own=is_own)
    return start(made, dict(digests(made)), np.zeros(1))


def layout():
    place = np.minimum(np.arange(256), BINS - 1).astype(np.uint8)
    n_bins = np.full(P, BINS, dtype=np.int32)
    return Layout(np.arange(P, dtype=np.int32), n_bins, np.tile(place, (P, 1)), n_bins, False)


def cuts():
    goes_left = (np.arange(256) < 10).astype(np.uint8)[None]
    return Cuts(np.array([[0, 1, 2]], dtype=np.uint64), np.zeros(1, dtype=np.int32), goes_left)


def round_of(before):
    """Parts of a round one after the other, and what they tell."""
    draws = (12345 | 1, 678 | 1, 0.7, np.zeros(0), None, (0, 1))
    first, most = begin_round(before, (0, None), largest, GOALS, draws)
    gradient, hessian, *terms = most.numbers[:4].tolist()
    of_all = gradient, hessian, most.n_growing, np.array(terms), N
    begun, root = begin_tree(first, GOALS, draws, of_all, layout())
    cut, sums = go_on(begun, cuts(), [1, 2], layout())
    sides = most.n_growing, N - most.n_growing, most.numbers[4:].reshape(-1, 2)
    none = Cuts(*(one[:0] for one in (cuts().keys, cuts().feature, cuts().goes_left)))
    ended, whole = end_tree(cut, GOALS, cuts(), none, {1: 1, 2: 2}, 3, sides)
    return [first, begun, cut, ended], (root, sums, whole)


def arrays(made):
    of_fields = {one.name: getattr(made, one.name) for one in fields(made)}
    return {name: one.copy() for name, one in of_fields.items() if isinstance(one, np.ndarray)}


def test_parts_stay_as_they_are_where_they_are_made_anew():
    before, n_of_codes = part(False)
    assert n_of_codes[0].tolist() == np.bincount(before.codes[0], minlength=256).tolist()
    known = arrays(before)
    parts, told = round_of(before)
    of_parts = [arrays(one) for one in parts]
    again, same = round_of(before)
    for one, other in zip(of_parts, again, strict=True):
        assert {k: v.tobytes() for k, v in one.items()} == {
            k: v.tobytes() for k, v in arrays(other).items()
        }
    assert told[1].by_bin.tobytes() == same[1].by_bin.tobytes()
    assert {k: v.tobytes() for k, v in arrays(before).items()} == {
        k: v.tobytes() for k, v in known.items()
    }


def test_parts_of_their_own_are_written_over_and_tell_the_same():
    _, told = round_of(part(False)[0])
    parts, same = round_of(part(True)[0])
    assert told[0].by_bin.tobytes() == same[0].by_bin.tobytes()
    assert told[1].by_bin.tobytes() == same[1].by_bin.tobytes()
    assert told[2].tobytes() == same[2].tobytes()
    assert parts[1].order is parts[3].order
    next_parts, _ = round_of(parts[3])
    assert next_parts[1].items is parts[1].items
    assert next_parts[3].leaf is parts[3].leaf


def test_sums_are_those_of_the_rows_of_a_cell():
    made, (root, sums, _) = round_of(part(False)[0])
    lanes = root.by_bin[0].reshape(P, 3, BINS)
    assert (lanes.sum(axis=2) == lanes[0].sum(axis=1)).all()
    assert lanes[0, 2].sum() == made[1].n_growing
    both = sums.by_bin.reshape(2, P, 3, BINS)
    assert (both.sum(axis=0) == lanes).all()
    assert (both[0, 0, :, 10:] == 0).all()
    assert (both[1, 0, :, :10] == 0).all()
    rows = made[1].order[: made[1].n_growing]
    for b in range(BINS):
        own = rows[made[1].codes[1, rows] == b]
        assert lanes[1, 1, b] == made[1].items[own, 1].sum()


def literal_sums(codes, items, rows, features, place, n_places):
    """Sums of gradients, of Hessians and numbers of rows by feature and place, one after the other."""
    found = []
    for j, to, n in zip(features, place, n_places, strict=True):
        for lane in (items[:, 0] >> 12, items[:, 1], np.ones(len(items), dtype=np.int64)):
            sums = [0] * n
            for i in rows:
                sums[to[codes[j, i]]] += int(lane[i])
            found += sums
    return found


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_sums_are_the_same_where_codes_lie_by_row_too(data, seed):
    rng = np.random.default_rng(seed)
    n, p = data.draw(st.integers(1, 600)), data.draw(st.integers(1, 100))
    features = np.flatnonzero(rng.random(p) < data.draw(st.sampled_from([0.1, 0.5, 1.0])))
    features = features.astype(np.int32)
    n_bins = rng.integers(1, 255, p).astype(np.int32)
    codes = (rng.random((p, n)) * n_bins[:, None]).astype(np.uint8)
    codes[rng.random((p, n)) < 0.1] = 255
    items = np.column_stack(
        [rng.integers(-(2**30), 2**30, n) * 4096 + 1, rng.integers(0, 2**30, n)]
    )
    order = np.flatnonzero(rng.random(n) < data.draw(st.sampled_from([0.02, 0.1, 1.0])))
    order = np.union1d(order, [n - 1])  # behind whose codes there are no others
    whole = np.arange(n, dtype=np.int32)
    whole[: len(order)] = order
    cells = np.array([[0, len(order)]])
    place = np.tile(np.arange(256), (len(features), 1))
    place = np.minimum(place, n_bins[features, None] - 1).astype(np.uint8)
    layout = features, n_bins, place, n_bins[features]
    told = [
        _core.part_sums(codes, of_rows, layout, whole, items, cells, False)[0]
        for of_rows in (np.zeros((0, 0), np.uint8), np.ascontiguousarray(codes.T))
    ]
    assert told[0].tobytes() == told[1].tobytes()
    assert told[0][0].tolist() == literal_sums(
        codes, items, order, features, place, n_bins[features]
    )


def test_codes_by_row_must_be_as_many():
    made, _ = round_of(part(False)[0])
    with pytest.raises(ValueError, match="codes_of_rows"):
        go_on(replace(made[1], codes_of_rows=np.zeros((N, P + 1), np.uint8)), cuts(), [0], layout())


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("place", np.full((P, 256), BINS, np.uint8), "place must lie in"),
        ("n_places", np.full(P, 257, np.int32), "place must lie in"),
        ("features", np.array([0, 1, P], np.int32), "features must lie in"),
        ("n_bins", np.full(P + 1, BINS, np.int32), "n_bins has length"),
    ],
)
def test_layouts_that_would_write_elsewhere_are_refused(name, wrong, message):
    made, _ = round_of(part(False)[0])
    with pytest.raises(ValueError, match=message):
        go_on(made[1], cuts(), [0], replace(layout(), **{name: wrong}))


def test_rows_that_are_none_are_refused():
    made, _ = round_of(part(False)[0])
    order = np.full(N, N, dtype=np.int32)
    with pytest.raises(ValueError, match="order must lie in"):
        go_on(replace(made[1], order=order), cuts(), [0], layout())
    leaf, steps, scores = np.full(N, 3, dtype=np.int32), np.zeros((3, 1)), np.zeros((1, N))
    with pytest.raises(ValueError, match="leaf must lie in"):
        _core.part_add_steps(scores, leaf, steps, scores)


@pytest.mark.parametrize("is_own", [False, True])
def test_steps_of_a_tree_are_taken_once_however_often_its_round_is_begun(is_own):
    ended = round_of(part(is_own)[0])[0][-1]
    before = ended.scores.copy()
    draws = (12345 | 1, 678 | 1, 0.7, np.zeros(0), None, (0, 1))
    for n_trees in (1, 2):
        tree = SimpleNamespace(value=np.array([[0.5], [1.25], [-2.0]]) * n_trees)
        expected = before + tree.value[ended.leaf].T
        for _ in range(2):
            ended, _ = begin_round(ended, (n_trees, tree), largest, GOALS, draws)
            np.testing.assert_array_equal(ended.scores, expected)
        before = expected
