"""Certified fits of single trees to rows that lie in parts: those of the same rows in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.certificates.model_selection import PILOT, SHARES
from certree.estimators.trees_on_parts import (
    TreesOfParts,
    expect_rows_for_classes,
    folds_that_choose,
    need_of_tree,
)
from certree.estimators.tune import GrownFold, Mixture
from certree.interface.arrays import Float64, Int32
from certree.out_of_core.cells_of_tree import FoldOfParts, with_leaves_of_fold
from certree.out_of_core.chunks import without_class_weights
from certree.out_of_core.executors import Executor
from certree.out_of_core.first_look import Learned, effective_size, expect_groups_of_all, learn
from certree.out_of_core.fit_hashes import hashes_of_fit
from certree.out_of_core.memory_limit import Need
from certree.out_of_core.part import PartOfRows
from certree.out_of_core.resources import get_memory_limit
from certree.out_of_core.sides import (
    DealtSides,
    GrowingSide,
    deal_sides,
    join_calibration_blocks,
    route_calibration_rows,
    worst_rows_of_parts,
)
from certree.rows.duplicates import decide_worst_case
from certree.rows.split import TrainCalibrationSplit
from certree.stats import Stats
from certree.stats.exact_leaf_sums import Reduce, RoutedRows
from certree.tree import Tree

# Of the learning curve of the pilot.
_PILOT_FOLDS = 3
# Bytes of a leaf, and for each class of it, by which classifiers are elected.
_OF_LEAF = 1200, 400


@dataclass(slots=True, eq=False)
class CertifiedFitOfParts:
    """A fit to parts of which some rows grow and the others certify.

    Parameters
    ----------
    model : CertifiedTreeClassifier or CertifiedTreeRegressor
        The model, which learns what the rows that grow tell.
    parts : Executor
        Holds all rows.
    known : Learned
        What all rows tell, by which they are dealt.
    """

    model: Any
    parts: Executor
    known: Learned

    @classmethod
    def of(cls, model: Any, parts: Executor) -> CertifiedFitOfParts:
        """Learn what all rows tell.

        Raises
        ------
        ValueError
            If the fit is one that takes rows in memory.
        """
        _expect_parts(model)
        reader = model
        if isinstance(getattr(model, "class_weight", None), str):
            reader = without_class_weights(model)  # rows that certify have no say in them
        known = learn(reader, parts, has_parts=False)
        expect_rows_for_classes(known, _shares(model)[0])
        expect_groups_of_all(known.found, parts)
        if get_memory_limit() is not None and known.found.are_grouped:
            raise ValueError(
                "memory_limit takes certified trees of rows without groups, got groups, of which "
                "nobody knows how many there are before they are held"
            )
        parts.keep_to_limit(_need(model, known))
        return cls(model, parts, known)

    def _dealt(
        self, share: float, dealing: np.random.RandomState
    ) -> tuple[DealtSides, Executor, Learned]:
        """Both sides, the one that grows, and what it has told the model."""
        sides = deal_sides(self.parts, self.known.reader, share, dealing)
        if decide_worst_case(sides.repeats, sides.n_certifying, self.model.duplicates):
            sides = replace(sides, is_worst=worst_rows_of_parts(self.parts, sides.n))
        growing, reader = GrowingSide(self.parts, sides), self.model
        if isinstance(getattr(reader, "class_weight", None), dict):
            reader = copy(reader)  # of all classes, some of which may not grow
            reader.class_weight = self.known.reader.class_weight
        learned = learn(reader, growing, are_all=False)
        learned.teach(self.model)
        # That of the rows which certify, too, by the same weights of classes.
        size = self.known.attributes["effective_sample_size_"]
        if isinstance(getattr(reader, "class_weight", None), str):
            size = effective_size(self._weighing_all(learned.reader), self.parts)
        self.model.effective_sample_size_ = size
        self.model.preprocessor_ = None
        return sides, growing, learned

    def _weighing_all(self, reader: Any) -> Any:
        """A copy of what reads rows that grow; rows of classes which only certify count once."""
        reader, classes = copy(reader), self.known.found.classes
        assert classes is not None
        reader.class_weight = {**dict.fromkeys(classes[0].tolist(), 1.0), **reader.class_weight}
        return reader

    def pilot(
        self, share: float, dealing: np.random.RandomState, random_state: np.random.RandomState
    ) -> tuple[tuple[list[tuple[list[GrownFold], list[tuple[int, int]]]], int], DealtSides]:
        """What a learning curve takes, folds of each size and the number of rows; and both sides."""
        sides, growing, learned = self._dealt(share, dealing)
        trees = TreesOfParts.of(self.model, growing, learned, _PILOT_FOLDS, random_state)
        folds = []
        for is_turned in (True, False):
            numbered = (FoldOfParts(k, is_turned) for k in range(_PILOT_FOLDS))
            made = [one for one in map(trees.fold, numbered) if one.grown]
            grown = [fold for one in made for fold in one.grown]
            folds.append((grown, [(one.n, one.n_others) for one in made]))
        return (folds, self.known.found.n), sides

    def grown(
        self, share: float, dealing: np.random.RandomState, random_state: np.random.RandomState
    ) -> GrownOnSide:
        """Grow the tree of a share of the rows, and choose posteriors by folds of them.

        dealing: source of the order of all rows; random_state: of all else.
        """
        model, n_folds = self.model, folds_that_choose(self.model)
        sides, growing, learned = self._dealt(share, dealing)
        trees = TreesOfParts.of(model, growing, learned, n_folds, random_state)
        if is_classifier(model):
            classes = self.known.found.classes
            assert classes is not None
            model._calibration_classes = np.setdiff1d(classes[0], model.classes_)
            model.sample_hashes_, model._sample_counts = hashes_of_fit(growing, learned.found.n)
        with model._show_progress(range(n_folds)) as advance:
            folds, numbers = [], []
            for k in range(n_folds):
                if made := trees.fold(FoldOfParts(k)).grown:
                    growing.change(with_leaves_of_fold, k)
                    numbers.append(k)
                folds += made
                advance()
            tree, _, stats = trees.whole()
            advance()
            posteriors = model._tune(folds, advance)
        return GrownOnSide(sides, growing, learned, tree, stats, posteriors, folds, numbers)

    def route_calibration_set(
        self, grown: GrownOnSide
    ) -> tuple[TrainCalibrationSplit, Int32, Any, Any]:
        """Return the train/calibration split; leaf, target and weight of each calibration row."""
        sides = grown.sides
        about = grown.learned.reader, grown.tree, sides.reader, sides.division
        worst: list[Any] = sides.is_worst or [None] * len(sides.masks)
        masks = [*zip(sides.masks, worst, strict=True)]
        blocks = self.parts.make(route_calibration_rows, *about, own=masks)
        if is_classifier(self.model):
            model, n = self.model, sides.n_certifying
            beside = model.sample_hashes_, model._sample_counts
            model.sample_hashes_, model._sample_counts = hashes_of_fit(self.parts, n, beside)
        return join_calibration_blocks(blocks, sides.repeats)


@dataclass(frozen=True, slots=True, eq=False)
class GrownOnSide:
    """What the rows that grow have made.

    Parameters
    ----------
    sides : DealtSides
        Which rows these are.
    growing : Executor
        Holds them.
    learned : Learned
        What they tell of classes and features.
    tree : Tree
        Their tree.
    stats : NodeStats or TargetStats
        What they weigh in it.
    posteriors : Mixture
        The posteriors that they have chosen.
    folds : list of GrownFold
        By these folds.
    numbers : list of int
        Which folds these are.
    """

    sides: DealtSides
    growing: Executor
    learned: Learned
    tree: Tree
    stats: Stats
    posteriors: Mixture
    folds: list[GrownFold]
    numbers: list[int]

    def judged_errors(self, said: list[Float64], own: Int32) -> JudgedErrors:
        """How far the rows that folds judge lie off, by what these say in their nodes.

        own: where the nodes of the tree are in the one that predicts.
        """
        collect, of_fold = self.growing.collect, dict(zip(self.numbers, said, strict=True))
        largest = max(collect(_largest_off, of_fold))
        return JudgedErrors(
            largest >= 0,
            max(largest, 0.0),
            tuple(self.learned.found.ends[0].tolist()),
            lambda limit: partial(collect, _asked_off, of_fold, own, limit),
            self.stats.weight_unit,
        )


@dataclass(frozen=True, slots=True, eq=False)
class JudgedErrors:
    """Absolute errors of a cross-validation.

    Parameters
    ----------
    has_any : bool
        Whether there are any.
    largest : float
        The largest one; 0 where there are none.
    ends : tuple of two floats
        The smallest and the largest target.
    asking : callable
        ``asking(limit)`` asks the errors in units of a limit, in the leaves of what predicts.
    weight_unit : float
        Mean weight of a row that grows the tree; see `NodeStats`.
    """

    has_any: bool
    largest: float
    ends: tuple[float, float]
    asking: Callable[[float], Reduce]
    weight_unit: float


def _off(part: PartOfRows, of_fold: Mapping[int, Float64]) -> tuple[NDArray[np.bool_], Float64]:
    """Which rows of a part are judged, and how far these lie off."""
    said, judged = np.zeros(len(part.y)), np.zeros(len(part.y), dtype=np.bool_)
    for k, values in of_fold.items():
        rows = part.fold == k
        said[rows] = values[part.leaf_in_fold[rows]]
        judged |= rows
    return judged, np.abs(part.y - said)[judged]


def _largest_off(part: PartOfRows, of_fold: Mapping[int, Float64]) -> list[float]:
    """The largest error of a part; -1: none is judged."""
    return [float(_off(part, of_fold)[1].max(initial=-1.0))]


def _asked_off(
    part: PartOfRows,
    of_fold: Mapping[int, Float64],
    own: Int32,
    limit: float,
    f: Any,
    *given: Any,
) -> Any:
    """Ask the errors of a part in units of a limit, in the leaves of what predicts."""
    judged, off = _off(part, of_fold)
    weight = None if part.weight is None else part.weight[judged]
    return f(RoutedRows(own[np.asarray(part.leaf)[judged]], off / limit, weight), *given)


def _expect_parts(model: Any) -> None:
    """Refuse what takes rows in memory."""
    folds_that_choose(model)
    if model.preprocessor is not None:
        raise ValueError("preprocessor takes rows in memory, got X that lies elsewhere")
    if model.duplicates == "copies":
        raise ValueError(
            'duplicates="copies" takes rows in memory, got X that lies elsewhere: keep one row of '
            "each, and give how many it stands for as sample_weight"
        )


def _shares(model: Any) -> tuple[float, float]:
    """The least and the largest share of the rows that may grow the tree."""
    if isinstance(model.train_size, str):
        return PILOT, max(SHARES)
    return model.train_size, model.train_size


def _need(model: Any, known: Learned) -> Need:
    """What the fit holds in memory, from above: to grow a tree, and then to certify it."""
    least, most = _shares(model)
    n_folds = max(folds_that_choose(model), _PILOT_FOLDS if most > least else 0)
    of_leaf = _OF_LEAF if is_classifier(model) else (0, 0)
    n, need = known.found.n, need_of_tree(known, n_folds, most, of_leaf)
    n_certifying, of_weight = (1 - least) * n, 8.0 * (known.weighing is not None)
    # Which rows certify, also while it is decided; and what parts tell of these.
    always = need.always + (3 + of_weight) * n + (12 + of_weight) * n_certifying
    at_last = _at_last(model, n, n_certifying, of_weight)
    return replace(need, always=always, later=need.later + max(0.0, at_last - always))


def _at_last(model: Any, n: int, n_certifying: float, of_weight: float) -> float:
    """Bytes of what is known of rows where they certify, n_certifying of n."""
    is_small = model.max_leaf_nodes is not None  # which is certified after the whole tree
    if is_classifier(model):
        # Hashes; which rows are on which side, as they are told, kept, and compared with each other;
        # leaves and classes, as they are told and kept, and places.
        of_row, of_certifying = 51 + 8 * is_small, 24 + of_weight + 20 * is_small
    else:
        # Which rows are on which side; leaves, targets and errors, as they are told and put in order.
        of_row, of_certifying = 9, 100 + 15 * is_small
    return (of_row + of_weight) * n + (of_certifying + of_weight) * n_certifying
