"""Sums of cells: of parts together, and by bin, by what is told of the smaller ones of siblings."""

import numpy as np
import pytest

from certree._core import add_sums, sums_by_bin


def literal(told, columns, above, rows, n_cells, width):
    """The same, number by number."""
    made = np.full((n_cells, width), -1)
    for c, (up, small, large) in enumerate(rows):
        for b in range(width):
            own = 0
            for i, column in enumerate(range(width) if columns is None else columns):
                if column == b:
                    own = told[c, i]
            if small >= 0:
                made[small, b] = own
            if large >= 0:
                made[large, b] = above[up, b] - own
    return made


def case(seed, n=5, width=7):
    """Cells of which the smaller, the larger or both are wanted, in any order."""
    rng = np.random.default_rng(seed)
    columns = None if seed % 2 else np.sort(rng.choice(width, 4, replace=False))
    sides = rng.integers(0, 3, n)  # the smaller one, the larger one, or both
    n_cells = int((sides < 2).sum() + 2 * (sides == 2).sum())
    free = iter(rng.permutation(n_cells).tolist())
    rows = [
        (up, next(free) if side != 1 else -1, next(free) if side != 0 else -1)
        for up, side in zip(rng.permutation(n).tolist(), sides.tolist(), strict=True)
    ]
    told = rng.integers(-(2**60), 2**60, (n, width if columns is None else len(columns)))
    above = rng.integers(-(2**60), 2**60, (n, width))
    return told, columns, above, np.array(rows, dtype=np.int32), n_cells, width


@pytest.mark.parametrize("seed", range(8))
def test_sums_of_siblings(seed):
    given = case(seed)
    np.testing.assert_array_equal(sums_by_bin(*given), literal(*given))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, np.array([0, 1, 2, 7]), r"columns must lie in 0 .. 6"),
        (1, None, "told must be by all bins"),
        (3, np.full((5, 3), 9, dtype=np.int32), "rows must be those of cells, or -1"),
        (3, np.zeros((5, 3), dtype=np.int32), "each row of the sums must be that of one child"),
        (4, 11, "at most two children"),
        (4, -1, "at most two children"),
    ],
)
def test_sums_of_nothing_are_refused(place, value, message):
    given = [*case(0)]
    given[place] = value
    with pytest.raises(ValueError, match=message):
        sums_by_bin(*given)


def test_a_larger_child_has_a_cell_above():
    told, columns, above, rows, n_cells, width = case(2)
    assert (rows[:, 2] >= 0).any()
    rows[:, 0] = 5
    with pytest.raises(ValueError, match="those of the cells that are cut"):
        sums_by_bin(told, columns, above, rows, n_cells, width)


def test_memory_of_sums_that_are_held_is_given_to_no_others():
    """What nobody holds any more is written over, and a view holds all of its array."""
    rng = np.random.default_rng(0)
    held = []
    for i in range(300):
        shape = int(rng.integers(0, 9)), int(rng.integers(1, 3000))
        one, other = rng.integers(-(2**60), 2**60, (2, *shape))
        made = add_sums(one, other)
        np.testing.assert_array_equal(made, one + other)
        assert not made.flags.writeable
        if i % 3 == 0:
            held.append((made[len(made) // 2 :], (one + other)[len(made) // 2 :]))
        if len(held) > 20:
            del held[int(rng.integers(len(held)))]
    for made, expected in held:
        np.testing.assert_array_equal(made, expected)
    with pytest.raises(ValueError, match="other"):
        add_sums(np.zeros((2, 3), dtype=np.int64), np.zeros((3, 3), dtype=np.int64))
