"""Sets of categories as chains of cuts, for formats that compare thresholds only."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from certree.interface.arrays import Float64, Int32
from certree.tree import LEAF, Tree

# Each run of neighbouring codes needs a copy of what is below it.
_MOST_NODES = 2**22


class Chained(NamedTuple):
    """A tree that compares no sets.

    Attributes
    ----------
    tree : Tree
        The tree.
    origin : ndarray of int32, shape (m,)
        The node of the first tree that each node is a copy of, or a part.
    part : ndarray of shape (m,)
        Share of the rows of that node which a copy has, if rows are spread evenly over the codes.
    """

    tree: Tree
    origin: Int32
    part: Float64


class _Codes(NamedTuple):
    """Codes first .. last that rows may have somewhere, and whether they may lack the value."""

    first: int
    last: int
    missing: bool

    @property
    def n(self) -> int:
        return max(1, self.last - self.first + 1)


class _Run(NamedTuple):
    """Codes that go to the same child, and their share of those that do."""

    codes: _Codes
    child: int
    part: float


class _Place(NamedTuple):
    """What is still to be written: a node of the first tree, or the cuts between some of its runs."""

    node: int
    part: float
    known: dict[int, _Codes]  # of features that chains above have cut
    runs: list[_Run]


def chained(tree: Tree, n_categories: Sequence[int]) -> Chained:
    """Write a tree without sets, in which rows go the same way: their codes are known ones or NaN.

    Parameters
    ----------
    tree : Tree
        The tree.
    n_categories : sequence of int
        Number of categories of each feature.

    Returns
    -------
    Chained

    Raises
    ------
    ValueError
        If it would have more than 2**22 nodes.
    """
    if not len(tree.categories):
        return Chained(tree, np.arange(tree.n_nodes, dtype=np.int32), np.ones(tree.n_nodes))
    places: list[_Place] = []
    cuts: list[tuple[float, bool, int]] = []  # threshold, missing_left, left
    waiting = [_Place(0, 1.0, {}, [])]
    for given in waiting:  # which grows meanwhile: parents come first
        place = _settled(tree, n_categories, given)
        places.append(place)
        if tree.left[place.node] == LEAF:
            cuts.append((0.0, False, LEAF))
            continue
        threshold, missing_left, children = _children(tree, place)
        cuts.append((threshold, missing_left, len(waiting)))
        waiting += children
        if len(waiting) > _MOST_NODES:
            raise ValueError(
                f"chains of cuts for the sets of categories would need more than {_MOST_NODES} nodes: "
                "export a smaller tree, such as that of compact()"
            )
    origin = np.array([place.node for place in places], dtype=np.int32)
    threshold_of, missing, left = (list(column) for column in zip(*cuts, strict=True))
    plain = Tree(
        tree.feature[origin],
        np.array(threshold_of, dtype=np.float64),
        np.array(left, dtype=np.int32),
        np.ones(len(origin), dtype=np.int32),
        tree.n_features,
        np.array(missing, dtype=np.bool_),
    )
    return Chained(plain, origin, np.array([place.part for place in places]))


def _settled(tree: Tree, n_categories: Sequence[int], place: _Place) -> _Place:
    """Pass sets of which all codes that are left go to one child; find the runs of the next one."""
    while not place.runs and len(tree.category_set(place.node)):
        runs = _runs(tree, n_categories, place)
        if len(runs) > 1:
            return place._replace(runs=runs)
        place = place._replace(node=runs[0].child)
    return place


def _runs(tree: Tree, n_categories: Sequence[int], place: _Place) -> list[_Run]:
    """Neighbouring codes that go to the same child, in order; the last run may be NaN alone."""
    node, feature = place.node, int(tree.feature[place.node])
    codes = place.known.get(feature, _Codes(0, n_categories[feature] - 1, True))
    children = int(tree.left[node]), int(tree.left[node]) + 1
    of_missing, of_set = children if tree.missing_left[node] else children[::-1]
    inside = set(tree.category_set(node).tolist())
    missing, runs = codes.missing, []
    for is_inside, group in groupby(range(codes.first, codes.last + 1), inside.__contains__):
        stretch = [*group]
        # NaN goes with the first codes that go where it goes.
        with_missing = missing and not is_inside
        missing = missing and is_inside
        runs.append(
            (_Codes(stretch[0], stretch[-1], with_missing), of_set if is_inside else of_missing)
        )
    if missing:
        runs.append((_Codes(0, -1, True), of_missing))
    total = {child: sum(codes.n for codes, to in runs if to == child) for child in children}
    return [_Run(codes, child, codes.n / total[child]) for codes, child in runs]


def _children(tree: Tree, place: _Place) -> tuple[float, bool, list[_Place]]:
    """The cut at a place and what its children are to be."""
    node, feature = place.node, int(tree.feature[place.node])
    if not place.runs:
        left = int(tree.left[node])
        both = [place._replace(node=left), place._replace(node=left + 1)]
        return float(tree.threshold[node]), bool(tree.missing_left[node]), both
    half = len(place.runs) // 2
    first, second = place.runs[:half], place.runs[half:]
    missing_left = any(run.codes.missing for run in first)
    halves = [_half(place, feature, first), _half(place, feature, second)]
    return float(first[-1].codes.last), missing_left, halves


def _half(place: _Place, feature: int, runs: list[_Run]) -> _Place:
    if len(runs) > 1:
        return place._replace(runs=runs)
    run = runs[0]
    return _Place(run.child, place.part * run.part, {**place.known, feature: run.codes}, [])
