"""Rows of forests that lie in parts: they are read part by part, and lie in bins row by row then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.ensembles.binned_features import LEAVES_PER_BLOCK, BinnedFeatures
from certree.ensembles.forest_samples import ForestSamples, InputRows, sort_by_content
from certree.ensembles.leaves import N_COMPARED_ROWS
from certree.estimators.trees_on_parts import find_rankable_features
from certree.explain.output_groups import OutputGroups
from certree.grow.bins import EDGE_ROWS
from certree.grow.code_trees import CODES_PER_BLOCK
from certree.interface.arrays import Float64, Int32, UInt64
from certree.interface.threads import get_n_threads_or_all
from certree.out_of_core.chunks import Chunk, Weighing, positive, without_class_weights
from certree.out_of_core.executors import Executor
from certree.out_of_core.first_look import Learned, learn
from certree.out_of_core.fit_hashes import set_hashes_of_fit
from certree.out_of_core.made_parts import Sketched, make_parts, sketched, warn_of_identifiers
from certree.out_of_core.memory_limit import (
    Need,
    bound_leaves,
    count_group_bytes,
    count_most_categories,
    count_rank_bytes,
)
from certree.out_of_core.part import PartOfRows, digests, expect_same_rows
from certree.out_of_core.scratch import Scratch
from certree.rows.duplicates import warn_of_repeated_rows
from certree.rows.folds import Indices
from certree.rows.hashes import count_rows_with_copies
from certree.rows.relative_weights import NO_WEIGHTS, WeightUnit
from certree.stats.category_statistics import (
    MAX_SET_CATEGORIES,
    HighCardinalityFeatures,
    list_categories,
)

# Share of the rows that a tree draws, about; others are drawn again and again.
_DRAWN = 0.64


@dataclass(frozen=True, slots=True, eq=False)
class WholeWeighing(Weighing):
    """How rows of forests are weighed, whose weights are whole numbers.

    Parameters
    ----------
    of_weights : WeightUnit
        What decides the integers that weights become.
    """

    of_weights: WeightUnit = NO_WEIGHTS

    def __call__(self, weight: Float64) -> Float64:
        """Weights of some rows as whole numbers, as those of all rows tell."""
        return self.of_weights.to_integers(weight)


def samples_of_parts(
    model: Any, parts: Executor, kept: Scratch, *, continues: bool = False
) -> tuple[ForestSamples, InputRows]:
    """Read the rows of a forest, and let the model know classes and features.

    Parameters
    ----------
    model : TreeForest
        The model.
    parts : Executor
        Holds the rows.
    kept : Scratch
        Where their codes lie from then on.
    continues : bool
        Whether trees are added to those of the fitted model, which must have had the same rows.

    Returns
    -------
    rows : ForestSamples
        The rows as they are drawn.
    given : InputRows
        The same as they came; none if no score of rows out of bags is asked for.

    Raises
    ------
    ValueError, TypeError
        If rows are wrong, as `fit` says.
    """
    learned = learn(without_class_weights(model) if model._has_balanced_bags else model, parts)
    learned = learned.with_numbered_groups(parts)
    if continues:
        learned.expect_same_encoding(model)
    else:
        learned.set_attributes(model)
    parts.keep_to_limit(_need(model, learned))
    weighing = learned.weighing
    if weighing is not None:
        found = learned.found
        weighing = WholeWeighing(found.largest, of_weights=found.weight_unit)
    known = _sketched(parts, learned, weighing)
    warn_of_identifiers(model, known.sketch)
    many = find_rankable_features(model, known.sketch) if learned.found.n_targets == 1 else ()
    bins, _ = make_parts(parts, learned.reader, known, fine_ends=True, many=many)
    if is_classifier(model):
        set_hashes_of_fit(model, parts, known.n, continues=continues)
    order, content, group = _put_in_order(parts, known.n)
    p, n_targets = bins.n_features, learned.found.n_targets
    codes, y, weight, places = _gathered(parts, kept, known.n, p, n_targets, len(many))
    given, place = _NONE, _NONE.indices
    if model.oob_score:
        given, place = _given(model, parts, learned)
        place = place[order]
    if is_classifier(model):
        y = y.astype(np.int32)
    columns = np.array(known.order or [0], dtype=np.intp)
    y = y[:, 0] if len(columns) == 1 else y[:, columns]
    drawn, look = BinnedFeatures(codes, bins), learned.draw_order
    rows = ForestSamples(drawn, y, weight, place, content, columns, look, group)
    return _rank_categories(model, rows, drawn, many, places), given


def _rank_categories(
    model: Any, rows: ForestSamples, drawn: BinnedFeatures, many: tuple[int, ...], places: Int32
) -> ForestSamples:
    """Replace the categories of the features `many` by ranks in the codes of the rows.

    drawn: features of the rows, whose codes are overwritten; places: place of each row's category
    among all of the feature, (q, n). See `ForestSamples.rank_categories`, which does it in memory.
    """
    if not many:
        return rows
    categories = tuple(list_categories(drawn.edges, j) for j in many)
    n_classes = model.n_classes_ if is_classifier(model) else 1
    found = rows.rank_rows(HighCardinalityFeatures(many, categories, places), n_classes)
    if found is None:
        return rows
    drawn.codes[:, [*found.categories.features]] = found.ranks.T
    edges = found.replace_in_bins(drawn.edges)
    return replace(rows, features=BinnedFeatures(drawn.codes, edges, found.categories))


def _sketched(parts: Executor, learned: Learned, weighing: Weighing | None) -> Sketched:
    """What decides the bins of all rows, and the order of several targets."""
    found = learned.found
    largest = found.largest_targets if found.n_targets > 1 else None
    known = sketched(parts, learned.reader, weighing, found.n, largest=largest)
    order = np.argsort(known.sketch.target_keys, kind="stable")
    return replace(known, order=tuple(order.tolist()))


def _need(model: Any, learned: Learned) -> Need:
    """What the fit holds in memory, from above; most of it goes with the rows, however read."""
    n, p, q = learned.found.n, model._n_encoded, learned.found.n_targets
    n_trees, n_threads = int(model.n_estimators), get_n_threads_or_all(model.n_jobs)
    classes = np.atleast_1d(getattr(model, "n_classes_", np.ones(q)))
    of_weight = 8.0 * (learned.weighing is not None)
    n_lanes = OutputGroups.for_classes(classes).n_outputs
    grown = model._compute_growth_parameters(n, p)
    # A tree has a leaf for each row that is drawn at most.
    drawn = _DRAWN if model.bootstrap else 1.0
    of_leaf = grown["min_samples_leaf"]
    n_leaves = bound_leaves(ceil(drawn * n), model.max_leaf_nodes, model.max_depth, of_leaf)
    nodes = (
        2.0 * n_leaves * n_trees * (80 + 52 * (1 + n_lanes) + 12 * count_most_categories(learned))
    )
    # Hashes and keys, as they are put in order, beside rows that have told edges of bins; then targets
    # and weights, as they are told and taken.
    at_first = (72.0 + 64.0 * learned.found.are_grouped) * n + 8.0 * (p + 1) * min(n, EDGE_ROWS)
    held = (16.0 * q + 2 * of_weight + 4 * learned.found.are_grouped) * n
    # The same as whole numbers; and what a thread draws: numbers of rows, their items, of which some
    # are moved, and codes of cells that have become small.
    small = 8 if is_classifier(model) and q == 1 else 16
    of_draw = 4 + drawn * (2 * (24 if of_weight or model._has_balanced_bags else small) + p / 6)
    # Rows that are drawn, what they weigh relative to others, and as integers.
    of_draw += 40.0 * model._has_balanced_bags
    ranking = count_rank_bytes(learned, MAX_SET_CATEGORIES) * n
    growing = (8 * q + 12 * q * (q > 1) + of_weight + n_threads * of_draw) * n
    judging = _need_out_of_bag(model, n, p, n_lanes, classes.sum()) if model.bootstrap else 0.0
    return Need(
        always=16.0 * is_classifier(model) * n + count_group_bytes(n, learned.n_groups),
        worked=17 * p + 200,
        together=150,
        later=max(at_first, held + max(growing, judging, ranking)) + nodes,
        of_thread_row=2 * p + 100,
        sums=2 + 60 / p,
        scratch_row=2.0 * p + 8 * q + 40,
    )


def _need_out_of_bag(model: Any, n: int, p: int, n_lanes: int, n_said: float) -> float:
    """Bytes of where rows out of bags arrive, and of what is said of them, from above.

    n_said: how many numbers are told of a row.
    """
    n_trees, n_threads = int(model.n_estimators), get_n_threads_or_all(model.n_jobs)
    # Which rows are out of bags, and leaves of some trees, and of the rows that judge.
    known = n * n_trees / 8
    walked = 4.0 * min(n * n_trees, max(n, LEAVES_PER_BLOCK)) + 14.0 * n_trees * min(
        n, N_COMPARED_ROWS
    )
    walked += n_threads * (5.0 * n + 10.0 * CODES_PER_BLOCK)
    if not model.oob_score:
        return known + walked
    # Rows as they came, and leaves of some of them; then what is said of all, and its score.
    asked = (14.0 * n_trees + 5.0 * p) * min(n, LEAVES_PER_BLOCK // n_trees + 1)
    asked += (60.0 + 16 * n_lanes) * n
    return known + max(walked, asked, (80.0 + 28 * n_lanes + 30 * n_said) * n)


_NONE = InputRows(0, np.zeros(0, dtype=np.intp), np.zeros(0), None)


def _put_in_order(parts: Executor, n: int) -> tuple[Indices, int, Int32 | None]:
    """Sort the rows of all blocks, and replace the keys of each block by positions in this order.

    n: number of rows. Return what `sort_by_content` returns for the rows, block after block.
    """
    known = dict(parts.collect(digests))
    told = sorted(parts.collect(hashes_of), key=itemgetter(0))
    ends = np.cumsum([0, *(len(one[1]) for one in told)])
    if ends[-1] != n:
        raise ValueError(
            f"the rows are {ends[-1]} where they were {n} before: their source must give the same "
            "rows whenever it is read"
        )
    weights = [one[2] for one in told if one[2] is not None]
    groups = [one[3] for one in told if one[3] is not None]
    weight = np.concatenate(weights) if weights else None
    hashes, group = np.concatenate([one[1] for one in told]), None
    if groups:  # Groups whose rows all have weight 0 have no number.
        group = np.unique(np.concatenate(groups), return_inverse=True)[1].astype(np.int32)
    else:
        warn_of_repeated_rows(count_rows_with_copies(hashes), n)
    order, content, group = sort_by_content(hashes, weight, group)
    place = np.empty(n, dtype=np.uint64)
    place[order] = np.arange(n, dtype=np.uint64)
    parts.change(at_places, known, own=[place[begin:end] for begin, end in pairwise(ends)])
    return order, content, group


def _gathered(
    parts: Executor, kept: Scratch, n: int, p: int, n_targets: int, n_many: int
) -> tuple[NDArray[np.uint8], Float64, Float64 | None, Int32]:
    """Codes (n, p), targets (n, n_targets), weights and places (n_many, n) of rows in their order.

    n_many: number of features of which blocks keep the places of categories.
    """
    codes: NDArray[np.uint8] = kept.room("codes", (n, p), np.uint8)
    y, weight = np.empty((n, n_targets)), np.empty(n)
    places = np.empty((n_many, n), dtype=np.int32)
    step, is_weighed = max(1, parts.portions.bytes_of_sums // p), False
    for begin in range(0, n, step):
        for place, own, of_many, numbers, weights in parts.collect(
            rows_between, begin, begin + step
        ):
            codes[place], y[place], places[:, place] = own, numbers, of_many
            if weights is not None:
                weight[place], is_weighed = weights, True
    # What is no memmap any more still lies in the file.
    return np.asarray(codes), y, weight if is_weighed else None, places


def _given(model: Any, parts: Executor, learned: Learned) -> tuple[InputRows, Indices]:
    """The rows as they came, and which of these those that grow trees are, part by part."""
    told = parts.look(rows_given, learned.reader, targets_only=True)
    ends = np.cumsum([0, *(one[0] for one in told)])
    indices = np.concatenate([one[1] + begin for one, begin in zip(told, ends, strict=False)])
    target = np.concatenate([one[2] for one in told if len(one[2])])
    y = model._find_class_codes("y", target).T.astype(np.int32) if is_classifier(model) else target
    if learned.weighing is None:
        return InputRows(int(ends[-1]), indices, y, None), indices
    weight = np.concatenate([one[3] for one in told])
    return InputRows(int(ends[-1]), indices, y, weight), indices


# -- what parts are asked


def hashes_of(
    part: PartOfRows,
) -> list[tuple[int, UInt64, Float64 | None, NDArray[np.intp] | None]]:
    """Return number, and hashes, weights and groups of the rows, of a block, as a list of one entry."""
    weight = None if part.weight is None else np.array(part.weight)
    group = None if part.group is None else np.array(part.group)
    return [(part.number, np.array(part.keys), weight, group)]


def at_places(part: PartOfRows, known: Mapping[int, int], place: UInt64) -> tuple[PartOfRows, int]:
    """A part that knows the places of its rows among all; these are what they have been."""
    expect_same_rows(part, known)
    return replace(part, keys=place), 0


def rows_between(part: PartOfRows, first: int, end: int) -> list[tuple[Any, ...]]:
    """The rows of a part whose places lie in a range, as a list of one entry.

    It has these places, codes, places of categories, targets, and weights or None.
    """
    rows = np.flatnonzero((part.keys >= np.uint64(first)) & (part.keys < np.uint64(end)))
    rows = rows[np.argsort(part.keys[rows])]
    weight = None if part.weight is None else part.weight[rows]
    place = part.keys[rows].astype(np.intp)
    y = np.atleast_2d(part.y)[:, rows].T
    codes = np.ascontiguousarray(part.codes[:, rows].T)
    return [(place, codes, part.places[:, rows], y, weight)]


def rows_given(chunk: Chunk, reader: Any) -> list[tuple[Any, ...]]:
    """How many rows a chunk has, and which weigh something: their numbers, targets and weights."""
    n = len(chunk.y)
    rows = positive(reader, replace(chunk, X=np.arange(n)[:, None]))
    if rows is None:
        return [(n, np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0))]
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    return [(n, rows.X[:, 0].astype(np.intp), rows.y, weight)]
