"""The calibration set of a certified tree, with the tree and the training set's counts and prior."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from certree.certificates.calibration_set import CalibrationSet, HeldOut
from certree.certificates.model_selection import (
    LabelledSelection,
    ModelSelection,
    make_structure_prior,
)
from certree.certificates.priors import Prior, branching_prior
from certree.certificates.subsets.coverage import compute_class_scores
from certree.interface.arrays import (
    ADDED_LATER,
    STORED_ELSEWHERE,
    Float64,
    Int32,
    check_codes,
    freeze,
)
from certree.rows.split import TrainCalibrationSplit
from certree.stats import NodeStats
from certree.tree import Tree
from certree.weights.node_weights import make_pruning


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeCalibrationSet(CalibrationSet):
    """The calibration set of a certified tree, by row, with what was fixed before it was seen.

    Certified tree classifiers make it in ``fit``, and model files store it: it is all that
    guarantees of a loaded tree are computed from. The constructor takes the arguments of
    `CalibrationSet`, whose `y` holds class codes, and five more.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    grown : NodeStats
        Class counts of the training set in each node; their majority labels the nodes.
    splits : array-like of bool, shape (m,), or None
        Whether the most likely pruning by the training set splits each node; None: the tree was
        made without a training set (`Grid`), or the fit has not chosen it yet.
    leaf : array-like of int, shape (n,)
        Node number of the leaf of `tree` that each calibration row reaches.
    n_others : int
        Number of class codes after those of `grown`, at least 1: `y` may have these codes too, for
        classes that no training row has.

    Raises
    ------
    ValueError
        If shapes or codes do not fit together, or `leaf` holds a node that is no leaf.
    """

    tree: Tree = field(metadata=STORED_ELSEWHERE)
    grown: NodeStats = field(metadata=STORED_ELSEWHERE)
    splits: NDArray[np.bool_] | None
    leaf: Int32
    n_others: int = field(default=1, metadata=ADDED_LATER)
    _stored_first = ("splits", "given", "n_given", "leaf")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.grown.check_tree(self.tree)
        n, n_nodes = len(self.given), self.tree.n_nodes
        object.__setattr__(self, "leaf", check_codes("leaf", self.leaf, n, n_nodes))
        check_codes("y", self.y, n, self.grown.n_classes + self.n_others)
        if self.splits is not None:
            self._check("bool", (n_nodes,), "splits")
        if not self.tree.is_leaf[self.leaf].all():
            raise ValueError(
                "leaf must hold numbers of leaves of the tree, got nodes that are split"
            )

    @classmethod
    def from_fit(
        cls, split: TrainCalibrationSplit, tree: Tree, grown: NodeStats, leaf: Int32, y: Int32
    ) -> Self:
        """Collect the calibration set of a fit, and count its rows in the nodes of the tree.

        split: which rows of the fit are training and calibration rows; tree, grown: the tree and
        the class counts of its training rows; leaf, y: node number of the leaf, and class code, of
        each calibration row, (n,). `with_selection` adds the field `splits`.
        """
        n_others = max(1, int(y.max(initial=0)) + 1 - grown.n_classes)
        rows = cls.from_split(
            split, y, tree=tree, grown=grown, splits=None, leaf=leaf, n_others=n_others
        )
        return rows._with_counts(split.train, split.calibration)

    def move_to_tree(self, tree: Tree, grown: NodeStats, node_map: Int32) -> Self:
        """Return the same rows in a smaller tree, which contains the regions of the tree's nodes.

        tree, grown: the smaller tree and the class counts of the training rows in its nodes;
        node_map: for each node of the present tree, the node of the smaller one that contains it.
        """
        rows = replace(self, tree=tree, grown=grown, leaf=node_map[self.leaf])
        return rows._with_counts(self.held.grow, self.held.weigh)

    def with_selection(self, model_selection: ModelSelection | LabelledSelection) -> Self:
        """Return the calibration set with `splits` and what else the fit's choice has computed.

        A labelled pruning is the tree with some nodes turned into leaves, and a label for each
        leaf. model_selection: the data by which the fit chose its model with this calibration set.
        The splits of its most likely pruning become the field `splits`; None for a
        `LabelledSelection`. Its `held` (class counts of both sets in each node) and `structure`
        (prior over labelled prunings) become the cached attributes of the result, which saves
        computing them again.
        """
        splits = None
        if isinstance(model_selection, ModelSelection):
            splits = freeze(model_selection.likeliest.log_odds > 0)
        rows = replace(self, splits=splits)
        # Fill the cached properties with what the selection has already computed.
        vars(rows).update(held=model_selection.held, structure=model_selection.structure)
        return rows

    def _with_counts(self, train: NDArray[np.intp], calibration: NDArray[np.intp]) -> Self:
        """Count the rows in each node, store the counts as `held`, and return this object.

        train, calibration: indices of the training and the calibration rows in the table of the
        fit; `held` (a `HeldOut`) stores both. Without this call it has no indices of training rows.
        """
        vars(self)["held"] = self.count_classes(
            self.tree, self.grown, self.leaf, train, calibration
        )
        return self

    @cached_property
    def held(self) -> HeldOut:
        """Class counts of training and calibration set in each node, as a `HeldOut`.

        Counted from the fields `leaf`, `y` and `weight`, and computed once. `HeldOut.grown` holds
        the counts of the training rows, `HeldOut.stats` those of the calibration rows. Calibration
        rows of classes that no training row has, and repeated rows that count as errors whatever is
        predicted, are in a column of `HeldOut.stats` after the classes of `grown`.
        """
        return self.count_classes(self.tree, self.grown, self.leaf, self.given[:0], self.given)

    @cached_property
    def structure(self) -> Prior:
        """The prior over labelled prunings that was fixed before the calibration rows were seen.

        A labelled pruning is `tree` with some nodes turned into leaves, and a label for each leaf.
        The `Prior` gives a probability to each; minus its log (nats) is the complexity in bounds on
        what the calibration rows choose. It mixes three priors with weight 1/3 each: the branching
        prior (each node that is reached becomes a leaf with probability 1/2), the count prior (a
        node of n training rows does with probability 10 / (10 + n)), and the mean of seven centred
        priors. In these a node decides otherwise than the pruning of the field `splits` with
        probability .1, .03, .01, .003, .001, .0003 or .0001.

        All of them give a leaf most probably the label of its training rows, by the counts of the
        field `grown`. If there is no training set (`splits` is None), it is the branching prior
        alone, and all labels are equally likely. Computed once.
        """
        if self.splits is None:
            return branching_prior(self.tree, self.grown.n_classes)
        return make_structure_prior(self.tree, self.grown, make_pruning(self.tree, self.splits))

    def check_training_set(self) -> HeldOut:
        """Return `held`, after a check that there is a training set.

        `held` is a `HeldOut`: class counts of the training and the calibration rows in each node.

        Raises
        ------
        ValueError
            If the tree was made without one (the field `splits` is None), so that nodes have no
            labels.
        """
        if self.splits is None:
            raise ValueError(
                "grower must not be a Grid for this method, as the nodes of a Grid have no labels: fit "
                'the model with another grower, such as grower="cart"'
            )
        return self.held

    @cached_property
    def score(self) -> Float64:
        """Conformity score of each class in each node, (m, K), from the training set alone.

        It is 1 minus the probability of the class by the vote of all prunings (`tree` with some
        nodes turned into leaves) under a prior that stops at a node of n training rows with
        probability 10 / (10 + n). The class counts are those of the field `grown`; computed once.
        Raises ValueError if there is no training set.
        """
        return compute_class_scores(self.check_training_set())
