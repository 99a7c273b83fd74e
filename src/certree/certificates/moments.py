"""What the prunings that a law draws get wrong: one by one, in pairs and in tuples, and by how much.

A row's wrong mass is the probability that a drawn pruning gets it wrong. It takes one value for each
leaf of the tree and class, so that a mean over rows is a sum over that table.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincc, expit

from certree._core import sums_below
from certree.arrays import LARGEST, Float64, column
from certree.signatures import checked
from certree.stats import NodeStats
from certree.tree import Tree
from certree.votes import Vote
from certree.weights.node_weights import NodeWeights, reached

# More than anybody draws; beta functions of larger numbers lose their digits.
_MOST_DRAWS = 2**31 - 1
_ROUNDING = 1e-9


@checked
def wrong_mass(ballot: Vote) -> Float64:
    """Mass of the votes for other classes than each class, (m, K)."""
    score = ballot.score
    # Sums from both sides, as 1 - score would lose what is small.
    before, after = np.zeros_like(score), np.zeros_like(score)
    with np.errstate(over="ignore"):
        before[:, 1:] = np.cumsum(score[:, :-1], axis=1)
        after[:, :-1] = np.cumsum(score[:, :0:-1], axis=1)[:, ::-1]
        return np.minimum(before + after, 1.0)


def _shares(tree: Tree, ballot: Vote) -> Float64:
    """Check that the votes are shares of classes in the nodes of a tree, and return them."""
    score = ballot.of(tree).score
    if not ((score >= -_ROUNDING) & (score <= 1 + _ROUNDING)).all():
        raise ValueError("ballot must hold shares of classes, between 0 and 1")
    return score


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The rows of each leaf and class that has any, and the votes against and for that class.

    Parameters
    ----------
    rows, wrong, right : ndarray of float64, shape (a,)
        Number of rows, wrong mass and votes for the class.
    """

    rows: Float64
    wrong: Float64
    right: Float64

    @classmethod
    def of(cls, tree: Tree, stats: NodeStats, ballot: Vote) -> "Judged":
        """Judge the counted rows by the majority vote of a law."""
        held = np.where(tree.is_leaf[:, None], stats.of(tree).counts, 0) > 0
        if not held.any():
            raise ValueError("stats must count at least one row")
        # Nothing votes for classes beyond those of the vote.
        score = _shares(tree, ballot)
        beyond = (0, 0), (0, held.shape[1] - score.shape[1])
        wrong = np.pad(wrong_mass(ballot), beyond, constant_values=1.0)
        return cls(stats.counts[held], wrong[held], np.pad(score, beyond)[held])

    def mean(self, value: Float64) -> float:
        """Mean of a value over the rows."""
        return float(self.rows @ value / self.rows.sum())

    def tuple_risk(self, n_draws: int, n_wrong: int) -> float:
        """See the function of this name."""
        if not 1 <= n_wrong <= n_draws:
            raise ValueError(f"n_wrong must lie in 1 .. {n_draws}, got {n_wrong!r}")
        if n_draws > _MOST_DRAWS:
            raise ValueError(f"n_draws must be at most {_MOST_DRAWS}, got {n_draws!r}")
        if n_draws == 1:
            return self.mean(self.wrong)
        return self.mean(betaincc(n_draws - n_wrong + 1, n_wrong, 1 - self.wrong))

    def one_wrong(self) -> float:
        """See the function of this name."""
        return self.mean(2 * self.wrong * self.right)


@checked
def tuple_risk(
    tree: Tree, stats: NodeStats, ballot: Vote, n_draws: int = 1, n_wrong: int = 1
) -> float:
    """Share of rows that at least `n_wrong` of `n_draws` drawn prunings get wrong, expected, O(m K).

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of the rows.
    ballot : Vote
        Majority vote of the law that the prunings are drawn from.
    n_draws, n_wrong : int
        (1, 1) is the Gibbs risk, (2, 2) the tandem risk, (2, 1) the risk that either is wrong.

    Returns
    -------
    float

    References
    ----------
    Lacasse, Laviolette, Marchand and Turgeon-Boutin, "Learning with randomized majority votes", ECML
    2010.
    """
    return Judged.of(tree, stats, ballot).tuple_risk(n_draws, n_wrong)


@checked
def one_wrong(tree: Tree, stats: NodeStats, ballot: Vote) -> float:
    """Share of rows that exactly one of two drawn prunings gets wrong, expected, O(m K)."""
    return Judged.of(tree, stats, ballot).one_wrong()


@checked
def disagreement(tree: Tree, stats: NodeStats, ballot: Vote) -> float:
    """Share of rows for which two drawn prunings predict different classes, expected, O(m K).

    Their classes are not read. With two classes this is `one_wrong`.
    """
    differing = (_shares(tree, ballot) * wrong_mass(ballot)).sum(axis=1)
    rows = np.where(tree.is_leaf, stats.of(tree).n, 0.0)
    if not rows.any():
        raise ValueError("stats must count at least one row")
    return float(rows @ differing / rows.sum())


@checked
def margin_moments(tree: Tree, stats: NodeStats, ballot: Vote) -> tuple[float, float]:
    """First and second moment of the margin, votes for the class less votes for others, O(m K)."""
    return (1 - 2 * tuple_risk(tree, stats, ballot), 1 - 2 * one_wrong(tree, stats, ballot))


@dataclass(frozen=True, slots=True)
class WrongRange:
    """The smallest wrong mass anywhere in the tree, where the vote is right and where it is wrong."""

    right: float
    wrong: float


@checked
def wrong_range(tree: Tree, ballot: Vote) -> WrongRange:
    """Find the least mass of votes against the class that wins, and against any that does not.

    Over all leaves of the tree, also those without rows: new rows may lie in them.
    """
    if ballot.of(tree).score.shape[1] == 1:
        return WrongRange(0.0, 1.0)
    lowest = np.sort(wrong_mass(ballot)[tree.is_leaf], axis=1)
    return WrongRange(float(lowest[:, 0].min()), float(lowest[:, 1].min()))


@checked
def leaf_mean(tree: Tree, weights: NodeWeights, value: ArrayLike) -> float:
    """Expected sum of a value over the leaves of a drawn pruning, O(m)."""
    return float(weights.of(tree).weight @ _finite(tree, value))


@checked
def leaf_variance(tree: Tree, weights: NodeWeights, value: ArrayLike) -> float:
    """Variance of the sum of a value over the leaves of a drawn pruning, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    weights : NodeWeights
        The law.
    value : array-like of shape (m,)
        Value of a node as a leaf: 1 counts leaves, the errors give the errors of a pruning.

    Returns
    -------
    float
        The sum over nodes of the variance that their decision adds, by the law of total variance.
    """
    values = _finite(tree, value)
    log_odds = weights.of(tree).log_odds
    below = sums_below(tree.left, log_odds, values)
    inner = np.flatnonzero(~tree.is_leaf)
    child = tree.left[inner]
    step = values[inner] - (below[child] + below[child + 1])
    spread = expit(log_odds[inner]) * expit(-log_odds[inner]) * step**2
    return float(reached(tree, weights)[inner] @ spread)


def _finite(tree: Tree, value: ArrayLike) -> Float64:
    values: Float64 = column("value", value, "float64", (tree.n_nodes,))
    if not (np.abs(values) <= LARGEST).all():
        raise ValueError(f"value must be finite, and at most {LARGEST:g} in size")
    return values
