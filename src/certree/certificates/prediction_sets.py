"""Sets of classes that hold the true one: which shares order the classes, and how far a set goes."""

import numpy as np

from certree.arrays import Float64
from certree.certificates.coverage import Scores
from certree.certificates.priors import count_prior
from certree.certificates.weighing import HeldOut
from certree.votes import Voting

# Rows with the classes of its parent that every cell is given: no class has no share at all, so that
# classes which a leaf lacks are still told apart by what is around it.
_SMOOTHING = 1.0


def class_scores(held: HeldOut) -> Float64:
    """1 less the share of every class in every cell, (m, K), by the growing rows alone.

    All prunings vote by the law that stops where growing rows are few: a single one, or leaves that are
    pure, would leave most classes tied.
    """
    law = count_prior(held.tree, held.grown).laws[0]
    ballots = Voting("mean", _SMOOTHING).ballots(held.tree, held.grown)
    score: Float64 = 1 - ballots.cast(held.tree, law).score
    return score


def scores_of_truth(
    held: HeldOut, score: Float64, n_classes: int, *, per_class: bool = False
) -> Scores:
    """Scores of the classes that the weighing rows have.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows, each by itself.
    score : ndarray of shape (m, K)
        `class_scores`.
    n_classes : int
        Number of classes that there are.
    per_class : bool
        Whether every class is a region of its own, with as much of delta as the others. Else all rows
        are one region, in which no set holds a class that no growing row has.
    """
    leaves = np.flatnonzero(held.tree.is_leaf)
    counts = held.stats.counts[leaves].astype(np.int64)
    held_by = np.full(counts.shape, np.inf)
    held_by[:, :n_classes] = score[leaves, :n_classes]
    classes = np.broadcast_to(np.arange(counts.shape[1]), counts.shape)
    if per_class:
        counts, held_by, classes = (part[:, :n_classes] for part in (counts, held_by, classes))
    times = counts.ravel()
    value, region = np.repeat(held_by.ravel(), times), np.repeat(classes.ravel(), times)
    if not per_class:
        return Scores.of(value, np.zeros_like(region), np.ones(1))
    return Scores.of(value, region, np.full(n_classes, 1 / n_classes))
