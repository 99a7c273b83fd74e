"""Certified fits of single trees to rows that lie in parts: those of the same rows in one table."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from certree.certificates.model_selection import PILOT
from certree.estimators.trees_on_parts import (
    TreesOfParts,
    expect_rows_for_classes,
    folds_that_choose,
)
from certree.estimators.tune import GrownFold, Mixture
from certree.interface.arrays import Int32
from certree.parts.cells_of_tree import FoldOfParts
from certree.parts.chunks import without_class_weights
from certree.parts.executors import Executor
from certree.parts.first_look import Learned, learn
from certree.parts.fit_hashes import hashes_of_fit
from certree.parts.sides import (
    DealtSides,
    GrowingSide,
    certifying_of_part,
    deal_sides,
    joined_sides,
)
from certree.rows.duplicates import expect_few_repeats
from certree.rows.hashes import distinct
from certree.rows.split import TrainCalibrationSplit
from certree.stats import Stats
from certree.tree import Tree

# Of the learning curve of the pilot.
_PILOT_FOLDS = 3


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
    shuffled : RandomState
        Deals them, whatever their shares are.
    """

    model: Any
    parts: Executor
    known: Learned
    shuffled: np.random.RandomState

    @classmethod
    def of(
        cls, model: Any, parts: Executor, random_state: np.random.RandomState
    ) -> CertifiedFitOfParts:
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
        known = learn(reader, parts)
        share = PILOT if isinstance(model.train_size, str) else model.train_size
        expect_rows_for_classes(known, share)
        return cls(model, parts, known, deepcopy(random_state))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.known.found.n

    def _dealt(self, share: float) -> tuple[DealtSides, Executor, Learned]:
        """Both sides, the one that grows, and what it has told the model."""
        drawn = deepcopy(self.shuffled)
        sides = deal_sides(self.parts, self.known.reader, share, drawn)
        expect_few_repeats(sides.repeats, sides.n_certifying, self.model.duplicates)
        growing, reader = GrowingSide(self.parts, sides), self.model
        if isinstance(getattr(reader, "class_weight", None), dict):
            reader = copy(reader)  # of all classes, some of which may not grow
            reader.class_weight = self.known.reader.class_weight
        learned = learn(reader, growing)
        learned.teach(self.model)
        self.model.preprocessor_ = None
        return sides, growing, learned

    def pilot(
        self, share: float, random_state: np.random.RandomState
    ) -> tuple[list[tuple[list[GrownFold], list[tuple[int, int]]]], int, int]:
        """What the learning curve of some rows takes: folds of each size, and numbers of rows."""
        _, growing, learned = self._dealt(share)
        trees = TreesOfParts.of(self.model, growing, learned, _PILOT_FOLDS, random_state)
        folds = []
        for is_turned in (True, False):
            numbered = (FoldOfParts(k, is_turned) for k in range(_PILOT_FOLDS))
            made = [one for one in map(trees.fold, numbered) if one.grown]
            grown = [fold for one in made for fold in one.grown]
            folds.append((grown, [(one.n, one.n_others) for one in made]))
        return folds, learned.found.n, self.n

    def grown(self, share: float, random_state: np.random.RandomState) -> GrownOnSide:
        """Grow the tree of a share of the rows, and choose posteriors by folds of them."""
        model, n_folds = self.model, folds_that_choose(self.model)
        sides, growing, learned = self._dealt(share)
        trees = TreesOfParts.of(model, growing, learned, n_folds, random_state)
        if is_classifier(model):
            model.sample_hashes_ = hashes_of_fit(growing, learned.found.n)
        with model._progress(range(n_folds)) as advance:
            folds = []
            for k in range(n_folds):
                folds += trees.fold(FoldOfParts(k)).grown
                advance()
            tree, _, stats = trees.whole()
            advance()
            return GrownOnSide(sides, learned, tree, stats, model._tuned(folds, advance), folds)

    def certifying(self, grown: GrownOnSide) -> tuple[TrainCalibrationSplit, Int32, Any, Any]:
        """Both sides, and leaf, target and weight of each row that certifies the tree."""
        sides = grown.sides
        about = grown.learned.reader, grown.tree, sides.reader, sides.division
        told = self.parts.make(certifying_of_part, *about, own=sides.masks)
        if is_classifier(self.model):
            others = hashes_of_fit(self.parts, sides.n_certifying)
            self.model.sample_hashes_ = distinct(self.model.sample_hashes_, others)
        return joined_sides(told, sides.repeats)


@dataclass(frozen=True, slots=True, eq=False)
class GrownOnSide:
    """What the rows that grow have made.

    Parameters
    ----------
    sides : DealtSides
        Which rows these are.
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
    """

    sides: DealtSides
    learned: Learned
    tree: Tree
    stats: Stats
    posteriors: Mixture
    folds: list[GrownFold]


def _expect_parts(model: Any) -> None:
    """Refuse what takes rows in memory."""
    folds_that_choose(model)
    if model.preprocessor is not None:
        raise ValueError("preprocessor takes rows in memory, got X that lies elsewhere")
    if model.duplicates == "copies":
        raise ValueError(
            'duplicates="copies" takes rows in memory, got X that lies elsewhere: keep one row of each, '
            "and give how many it stands for as sample_weight"
        )
