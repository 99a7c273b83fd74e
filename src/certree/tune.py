"""Choosing temperatures, or a mixture of laws, by cross-validation.

The tree of a fold grows once. All laws are weighed, voted and judged on it in one call of their family,
eight in each sweep over the nodes; a path of prunings judges all its prices at once.
"""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from certree._core import mix
from certree.arrays import Float64, Int32, OfColumns, column
from certree.grow.growing import GrowingRows
from certree.grow.partition import Partition
from certree.rows.folds import Fold
from certree.stats import Stats
from certree.tree import Tree, threads
from certree.votes import Voting
from certree.weights.family import Family, JudgedVotes, Scoring, Tunable
from certree.weights.node_weights import NodeWeights

OneLaw = Literal["joint", "error-first"]
Search = OneLaw | Literal["mixture"]

# Statistics of rows in their leaves: (tree, leaf, y, weight).
Summarise = Callable[[Tree, Int32, NDArray[Any], Float64 | None], Stats]

LOG_GRID = 2.0 ** np.linspace(-8, 6, 10)
MIXED_GRID = 2.0 ** np.arange(-8.0, 7.0, 2.0)
STEPS = 100  # of the EM algorithm; more gain nothing on held-out rows


def linear_grid(best: float) -> Float64:
    """Ten values from half to twice the best so far, itself among them."""
    return np.linspace(best / 2, 2 * best, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Laws, or prunings, to choose from, and how they vote.

    Parameters
    ----------
    family : callable
        ``family(tree, stats)``: the laws or the nested prunings.
    voting : Voting
        How prunings vote.
    """

    family: Callable[[Tree, Any], Tunable]
    voting: Voting


@dataclass(frozen=True, slots=True, eq=False)
class GrownFold:
    """The tree of one fold, and the rows that judge it, as arrays of the core.

    Parameters
    ----------
    tree : Tree
        Grown on the growing rows, or on all.
    stats : NodeStats or TargetStats
        Statistics of the growing rows.
    judging : ndarray of float64, shape (m, K) or (m, 3)
        The table of statistics of the judging rows.
    """

    tree: Tree
    stats: Stats
    judging: Float64


def grow_fold(
    fold: Fold, partition: Partition, rows: GrowingRows, summarise: Summarise
) -> GrownFold:
    """Grow the tree of a fold and summarise its rows on both sides, by `counted` or `measured`."""
    tree = partition.grow(rows.part(fold.grow, fold.grow_weight))
    # Of all rows at once: parts of X would be copies.
    leaf = tree.route(rows.X, threads(rows.n_jobs))
    return both_sides(fold, tree, summarise, leaf, rows.y)


def both_sides(fold: Fold, tree: Tree, summarise: Summarise, leaf: Int32, y: Any) -> GrownFold:
    """Summarise the rows of a fold on both sides, in a tree that they may not have grown."""
    stats = summarise(tree, leaf[fold.grow], y[fold.grow], fold.grow_weight)
    judging = summarise(tree, leaf[fold.judge], y[fold.judge], fold.judge_weight)
    return GrownFold(tree, stats, judging.table)


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """Loss of a candidate on judging rows, summed over folds, for rows of temperatures.

    Parameters
    ----------
    folds : sequence of GrownFold
        The folds.
    candidate : Candidate
        What is chosen from.
    scoring : {"error", "log_loss", "squared"}
        The loss; squared for numeric targets.
    n_threads : int
        Number of threads; the losses do not depend on it.
    """

    families: Sequence[tuple[Tunable, JudgedVotes]]
    scoring: Scoring
    n_threads: int

    @classmethod
    def of(
        cls, folds: Sequence[GrownFold], candidate: Candidate, scoring: Scoring, n_threads: int = 1
    ) -> "Objective":
        """Prepare a candidate on every fold."""
        if scoring not in ("error", "log_loss", "squared"):
            raise ValueError(f'scoring must be "error", "log_loss" or "squared", got {scoring!r}')
        families = []
        for fold in folds:
            votes = candidate.voting.ballots(fold.tree, fold.stats)
            judged = JudgedVotes(votes.label, votes.values, fold.judging)
            families.append((candidate.family(fold.tree, fold.stats), judged))
        return cls(families, scoring, n_threads)

    def losses(self, temperatures: Float64) -> Float64:
        """Loss of each row of temperatures, (g, t) -> (g,)."""
        total = np.zeros(len(temperatures))
        for family, votes in self.families:
            total += family.losses(temperatures, votes, self.scoring, self.n_threads)
        return total

    def shares(self, temperatures: Float64) -> tuple[Float64, Float64]:
        """What each law's vote gives to the right class: weights (a,) of rows, and shares (a, g)."""
        parts = []
        for family, votes in self.families:
            parts.append(laws_of(family).judged_shares(temperatures, votes, self.n_threads))
        rows, shares = zip(*parts, strict=True)
        return np.concatenate(rows), np.concatenate(shares)


def laws_of(family: Tunable) -> Family:
    """The laws of a family that has more than single prunings to offer."""
    if not isinstance(family, Family):
        raise TypeError(f"only laws can be mixed, got {type(family).__name__}")
    return family


@dataclass(frozen=True, slots=True, eq=False)
class Mixture(OfColumns):
    """Laws of one family and the share that each has in what is fitted; one law has all of it.

    Parameters
    ----------
    temperatures : ndarray of float64, shape (g, t)
        Temperatures of each law.
    shares : ndarray of float64, shape (g,)
        Shares; they sum to 1.
    """

    temperatures: Float64
    shares: Float64

    def __post_init__(self) -> None:
        shares: Float64 = column("shares", self.shares, "float64", (None,))
        object.__setattr__(self, "shares", shares)
        rows = column("temperatures", self.temperatures, "float64", (len(shares), None))
        object.__setattr__(self, "temperatures", rows)
        if not ((shares >= 0).all() and np.isclose(shares.sum(), 1)):
            raise ValueError("shares must be probabilities that sum to 1")

    @classmethod
    def of_one(cls, temperatures: Sequence[float]) -> "Mixture":
        """A single law."""
        return cls(np.array([temperatures], dtype=np.float64), np.ones(1))

    def law(self, family: Tunable) -> NodeWeights:
        """The single law of a family, or the mixture of several."""
        if len(self.shares) == 1:
            return family.at(*self.temperatures[0])
        return laws_of(family).mixed(self.temperatures, self.shares)


def mixture(
    objectives: Sequence[Objective],
    temperatures: Sequence[float | None],
    advance: Callable[[], None] = lambda: None,
) -> tuple[int, Mixture]:
    """Mix laws of different temperatures so that the held-out log loss of their vote is small.

    The first temperature that is None takes the eight values of `MIXED_GRID`, the others that are
    None are 0. Log loss is convex in the shares of the laws, so there is nothing to search.

    Parameters
    ----------
    objectives : sequence of Objective
        One for each method; the one whose mixture is best wins, on ties the first.
    temperatures : sequence of float or None
        The given ones, and None for each that is not.
    advance : callable
        Called after each method.

    Returns
    -------
    method : int
        Number of the method.
    laws : Mixture
        Equal shares if there is no fold to learn them from.
    """
    free = [i for i, value in enumerate(temperatures) if value is None]
    start = [0.0 if value is None else value for value in temperatures]
    if not free:
        return 0, Mixture.of_one(start)
    laws = _product(np.array(start), free[:1], lambda _: MIXED_GRID)
    if not objectives[0].families:
        return 0, Mixture(laws, np.full(len(laws), 1 / len(laws)))
    found = []
    for objective in objectives:
        found.append(mix(*objective.shares(laws), STEPS))
        advance()
    method = int(np.argmin([loss for _, loss in found]))
    return method, Mixture(laws, found[method][0])


class JudgedLoss(Protocol):
    """What `tune` minimises."""

    @property
    def families(self) -> Sized:
        """What the temperatures choose from, for each fold."""

    def losses(self, temperatures: Float64) -> Float64:
        """Loss of each row of temperatures, (g, t) -> (g,)."""


def tune(
    objective: JudgedLoss,
    temperatures: Sequence[float | None],
    search: OneLaw = "joint",
    advance: Callable[[], None] = lambda: None,
) -> tuple[float, ...]:
    """Choose the temperatures that are None, first on a log grid, then on a linear one.

    Parameters
    ----------
    objective : JudgedLoss
        Such as an `Objective`; on ties the smallest temperatures win.
    temperatures : sequence of float or None
        The given ones, and None for each to choose.
    search : {"joint", "error-first"}
        "joint": all at once, on the product of the grids. "error-first": one after the other, the
        later ones at 1 until their turn.
    advance : callable
        Called after each grid.

    Returns
    -------
    tuple of float
        All temperatures.

    Raises
    ------
    ValueError
        If `search` is unknown.

    References
    ----------
    The grids are those of Nguyen and Kpotufe, NeurIPS 2018, Section 5.
    """
    if search not in ("joint", "error-first"):
        raise ValueError(f'search must be "joint" or "error-first", got {search!r}')
    free = [i for i, value in enumerate(temperatures) if value is None]
    best = np.array([1.0 if value is None else value for value in temperatures])
    if not objective.families:  # too few rows for a fold: nothing to learn a temperature from
        return tuple(map(float, best))
    rounds = [free] if search == "joint" else [[i] for i in free]
    for chosen in filter(None, rounds):
        for grid in (lambda _: LOG_GRID, linear_grid):
            candidates = _product(best, chosen, grid)
            best = candidates[np.argmin(objective.losses(candidates))]
            advance()
    return tuple(map(float, best))


def _product(start: Float64, chosen: list[int], grid: Callable[[float], Float64]) -> Float64:
    """All rows that differ from `start` in the chosen temperatures, by their grids; ascending."""
    axes = np.meshgrid(*[grid(start[i]) for i in chosen], indexing="ij")
    candidates = np.tile(start, (axes[0].size, 1))
    candidates[:, chosen] = np.stack([axis.ravel() for axis in axes], axis=1)
    return candidates


def choose(
    objectives: Sequence[Objective],
    temperatures: Sequence[float | None],
    search: Search,
    advance: Callable[[], None] = lambda: None,
) -> tuple[int, Mixture]:
    """Choose one of several candidates, and its laws.

    Parameters
    ----------
    objectives : sequence of Objective
        One for each candidate; on ties the first wins.
    temperatures : sequence of float or None
        The given ones, and None for each to choose.
    search : {"mixture", "joint", "error-first"}
        See `mixture` and `tune`.
    advance : callable
        Called now and then.

    Returns
    -------
    best : int
        Number of the candidate.
    laws : Mixture
        Its laws.
    """
    if search == "mixture":
        return mixture(objectives, temperatures, advance)
    found = [tune(objective, temperatures, search, advance) for objective in objectives]
    losses = [
        objective.losses(np.array([values]))[0]
        for objective, values in zip(objectives, found, strict=True)
    ]
    best = int(np.argmin(losses))
    return best, Mixture.of_one(found[best])
