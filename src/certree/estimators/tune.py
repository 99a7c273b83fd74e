"""Choosing temperatures, or a mixture of posteriors, by cross-validation.

The tree of a fold grows once, and leaves are all that is seen of rows. All posteriors are weighed,
voted and judged on it in one call of their family, eight in each sweep over the nodes; a path of
prunings judges all its alphas at once.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from certree._core import fit_mixture
from certree.interface.arrays import ArrayRecord, Float64, Int32, check_column
from certree.rows.folds import Fold, Indices
from certree.rows.training import WeightedTarget
from certree.stats import SeveralStats, Stats, TargetStats
from certree.tree import Tree
from certree.votes import Voting
from certree.weights.family import Family, Scoring, Tunable, ValidationVotes
from certree.weights.node_weights import NodeWeights, mix_posteriors

SingleSearch = Literal["joint", "error-first"]
Search = SingleSearch | Literal["mixture"]

# Statistics of rows in their leaves: (tree, leaf, y, weight, weight_unit).
ComputeNodeStats = Callable[[Tree, Int32, NDArray[Any], Float64 | None, float], Stats]

LOG_GRID = 2.0 ** np.linspace(-8, 6, 10)
MIXED_GRID = 2.0 ** np.arange(-8.0, 7.0, 2.0)
STEPS = 100  # of the EM algorithm; more gain nothing on held-out rows

# Shares of a few dozen posteriors are known well from so many cells; more would take longer than
# growth.
_MAX_GROUPS = 1 << 17
# Posteriors with less of a mixture change no prediction that anybody would see.
_MIN_MIXTURE_WEIGHT = 1e-6
# Pulls nearly equal posteriors to equal shares, which rounding would decide over otherwise.
_RIDGE = 1e-3
# Sums of losses that differ by less are equal: in other units of weight they round otherwise.
_ROUNDING = 1e-12


def linear_grid(best: float) -> Float64:
    """Ten values from half to twice the best so far, itself among them."""
    return np.linspace(best / 2, 2 * best, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Posteriors, or prunings, to choose from, and how they vote.

    Parameters
    ----------
    family : callable
        ``family(tree, stats)``: the posteriors or the nested prunings.
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
        Grown on the training samples, on all, or on none.
    stats : NodeStats or TargetStats
        Statistics of the training samples.
    judging : ndarray of float64, shape (m, K) or (m, 3), or entries, or list of these
        What `Stats.table` says of the validation samples.
    """

    tree: Tree
    stats: Stats
    judging: Any

    @classmethod
    def of(
        cls, fold: Fold, tree: Tree, summarise: ComputeNodeStats, leaf: Int32, rows: WeightedTarget
    ) -> Self:
        """ComputeNodeStats the rows of a fold on both sides, by the leaves of all rows."""

        def side(some: Indices) -> Stats:
            weight = None if rows.weight is None else rows.weight[some]
            return summarise(tree, leaf[some], rows.y[some], weight, rows.weight_unit)

        return cls(tree, side(fold.train), side(fold.validation).table)

    def judged(self, voting: Voting) -> list[ValidationVotes]:
        """What nodes vote for, and what judges it; of several targets each by itself.

        Numbers then are in units of their deviation, and targets in an order that they tell themselves.
        """
        if not isinstance(self.stats, SeveralStats):
            votes = voting.ballots(self.tree, self.stats)
            return [ValidationVotes(votes.label, votes.frequency, self.validation)]
        judged = []
        for one, judging, unit in zip(
            self.stats.of_each, self.validation, self.stats.deviations, strict=True
        ):
            votes = voting.ballots(self.tree, one)
            said = ValidationVotes(votes.label, votes.frequency, judging)
            judged.append(said.rescale(unit) if isinstance(one, TargetStats) else said)
        return sorted(judged, key=ValidationVotes.to_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """Loss of a candidate on validation samples, summed over folds, for rows of temperatures.

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

    families: Sequence[tuple[Tunable, ValidationVotes]]
    scoring: Scoring
    n_threads: int

    @classmethod
    def of(
        cls, folds: Sequence[GrownFold], candidate: Candidate, scoring: Scoring, n_threads: int = 1
    ) -> "Objective":
        """Prepare a candidate on every fold."""
        if scoring not in ("error", "log_loss", "squared"):
            raise ValueError(f'scoring must be "error", "log_loss" or "squared", got {scoring!r}')
        families: list[tuple[Tunable, ValidationVotes]] = []
        for fold in folds:
            family = candidate.family(fold.tree, fold.stats)
            families += [(family, votes) for votes in fold.judged(candidate.voting)]
        return cls(families, scoring, n_threads)

    def compute_losses(self, temperatures: Float64) -> Float64:
        """Loss of each row of temperatures, (g, t) -> (g,)."""
        total = np.zeros(len(temperatures))
        for family, votes in self.families:
            total += family.compute_losses(temperatures, votes, self.scoring, self.n_threads)
        return total

    def votes(self, temperatures: Float64) -> tuple[Float64, Float64, Float64]:
        """What each vote gives to the validation samples: rows (a,), truth (a,) and votes (a, g).

        See `Family.predict_validation`; at most as many cells as mixtures are learned from.
        """
        parts = []
        for family, votes in self.families:
            judged = expect_family(family).predict_validation(
                temperatures, votes, self.scoring, self.n_threads
            )
            parts.append(_subsample(judged, max(1, _MAX_GROUPS // len(self.families))))
        rows, truth, given = map(np.concatenate, zip(*parts, strict=True))
        return rows, truth, given


def _subsample(columns: tuple[Float64, ...], most: int) -> tuple[Float64, ...]:
    """At most so many entries of columns, drawn alike whatever the columns hold."""
    n = len(columns[0])
    if n <= most:
        return columns
    drawn = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return tuple(column[drawn] for column in columns)


def expect_family(family: Tunable) -> Family:
    """The posteriors of a family that has more than single prunings to offer."""
    if not isinstance(family, Family):
        raise TypeError(f"only posteriors can be mixed, got {type(family).__name__}")
    return family


@dataclass(frozen=True, slots=True, eq=False)
class Mixture(ArrayRecord):
    """Posteriors and the share that each has in what is fitted; one posterior has all of it.

    Parameters
    ----------
    temperatures : ndarray of float64, shape (g, t)
        Temperatures of each posterior.
    shares : ndarray of float64, shape (g,)
        Shares; they sum to 1.
    families : sequence of str
        Name of the candidate that each posterior is of.
    """

    temperatures: Float64
    shares: Float64
    families: Sequence[str]

    def __post_init__(self) -> None:
        shares: Float64 = check_column("shares", self.shares, "float64", (None,))
        object.__setattr__(self, "shares", shares)
        rows = check_column("temperatures", self.temperatures, "float64", (len(shares), None))
        object.__setattr__(self, "temperatures", rows)
        if len(self.families) != len(shares):
            raise ValueError(f"there are {len(shares)} shares, but {len(self.families)} families")
        if not ((shares >= 0).all() and np.isclose(shares.sum(), 1)):
            raise ValueError("shares must be probabilities that sum to 1")

    @classmethod
    def from_single(cls, family: str, temperatures: Sequence[float]) -> "Mixture":
        """A single posterior."""
        return cls(np.array([temperatures], dtype=np.float64), np.ones(1), [family])

    def posterior(
        self, candidates: Mapping[str, Candidate], tree: Tree, stats: Stats
    ) -> NodeWeights:
        """The single posterior on a tree, or the mixture of several."""
        family = cache(lambda name: candidates[name].family(tree, stats))
        posteriors = (
            family(name).solve(*row)
            for name, row in zip(self.families, self.temperatures, strict=True)
        )
        return (
            next(posteriors)
            if len(self.shares) == 1
            else mix_posteriors(tree, posteriors, self.shares)
        )


def mix_candidates(
    objectives: Mapping[str, Objective],
    temperatures: Sequence[float | None],
    advance: Callable[[], None] = lambda: None,
) -> Mixture:
    """Mix posteriors of all candidates so that the held-out loss of their vote is small.

    The first temperature that is None takes the eight values of `MIXED_GRID`, the others that are
    None are 0. Log loss and squared loss are convex in the shares of the posteriors, so there is
    nothing to search.

    Parameters
    ----------
    objectives : mapping of str to Objective
        One for each candidate, by its name.
    temperatures : sequence of float or None
        The given ones, and None for each that is not.
    advance : callable
        Called after each candidate.

    Returns
    -------
    Mixture
        Equal shares of the first candidate's posteriors if there is no fold to learn them from.
    """
    free = [i for i, value in enumerate(temperatures) if value is None]
    start = [0.0 if value is None else value for value in temperatures]
    first = next(iter(objectives))
    if not free:
        return Mixture.from_single(first, start)
    posteriors = _make_grid(np.array(start), free[:1], lambda _: MIXED_GRID)
    if not objectives[first].families:
        return Mixture(
            posteriors, np.full(len(posteriors), 1 / len(posteriors)), [first] * len(posteriors)
        )
    given = []
    for objective in objectives.values():
        rows, truth, votes = objective.predict_validation(posteriors)
        given.append(votes)
        advance()
    shares = _fit_mixture_weights(
        objectives[first].scoring, rows, truth, np.concatenate(given, axis=1)
    )
    kept = np.flatnonzero(shares > _MIN_MIXTURE_WEIGHT)
    names = [*objectives]
    families = [names[posterior // len(posteriors)] for posterior in kept]
    return Mixture(posteriors[kept % len(posteriors)], shares[kept] / shares[kept].sum(), families)


def _fit_mixture_weights(
    scoring: Scoring, rows: Float64, truth: Float64, votes: Float64
) -> Float64:
    """Shares (g,) of posteriors, by what their votes (a, g) give to cells of validation samples."""
    if scoring == "log_loss":
        return fit_mixture(rows, votes, STEPS)[0]
    # The nearest point to 0 among the averages of the posteriors' errors. The point that is nearest
    # once a coordinate of 1 is added, and asked for, has the same direction.
    # In a unit in which no error overflows, a power of two, so that no bit of the others changes.
    unit = -np.frexp(max(np.abs(votes).max(), np.abs(truth).max()))[1]
    errors = np.ldexp(votes, unit) - np.ldexp(truth, unit)[:, None]
    # Likewise of the weights, whose roots would be rounded otherwise where all double.
    errors *= np.sqrt(np.ldexp(rows, -np.frexp(rows.max())[1]))[:, None]
    size = np.abs(errors).max()
    if size == 0:
        return np.full(votes.shape[1], 1 / votes.shape[1])
    squares = (errors / size).T @ (errors / size)
    squares /= np.trace(squares) / len(squares)
    values, vectors = np.linalg.eigh(squares + _RIDGE * np.eye(len(squares)))
    ones = np.ones((1, len(squares)))
    system = np.concatenate([(vectors * np.sqrt(np.maximum(values, 0.0))).T, ones])
    shares: Float64 = nnls(system, np.append(np.zeros(len(squares)), 1.0))[0]
    return shares / shares.sum()


class TunableLoss(Protocol):
    """What `tune` minimises."""

    @property
    def families(self) -> Sized:
        """What the temperatures choose from, for each fold."""

    def compute_losses(self, temperatures: Float64) -> Float64:
        """Loss of each row of temperatures, (g, t) -> (g,)."""


def tune(
    objective: TunableLoss,
    temperatures: Sequence[float | None],
    search: SingleSearch = "joint",
    advance: Callable[[], None] = lambda: None,
) -> tuple[float, ...]:
    """Choose the temperatures that are None, first on a log grid, then on a linear one.

    Parameters
    ----------
    objective : TunableLoss
        Such as an `Objective`; of losses that are equal but for rounding the smallest temperatures
        win.
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
            candidates = _make_grid(best, chosen, grid)
            best = candidates[find_first_minimum(objective.compute_losses(candidates))]
            advance()
    return tuple(map(float, best))


def find_first_minimum(losses: Float64) -> int:
    """Find the first of the losses that are the smallest but for rounding."""
    least = losses.min()
    return int(np.argmax(losses <= least + _ROUNDING * abs(least)))


def find_best_loss(objective: TunableLoss) -> float:
    """The smallest loss that `tune` finds for one temperature."""
    return float(objective.compute_losses(np.array([tune(objective, [None])]))[0])


def _make_grid(start: Float64, chosen: list[int], grid: Callable[[float], Float64]) -> Float64:
    """All rows that differ from `start` in the chosen temperatures, by their grids; ascending."""
    axes = np.meshgrid(*[grid(start[i]) for i in chosen], indexing="ij")
    candidates = np.tile(start, (axes[0].size, 1))
    candidates[:, chosen] = np.stack([axis.ravel() for axis in axes], axis=1)
    return candidates


def choose_posteriors(
    objectives: Mapping[str, Objective],
    temperatures: Sequence[float | None],
    search: Search,
    advance: Callable[[], None] = lambda: None,
) -> Mixture:
    """Choose one posterior of several candidates, or a mixture.

    Parameters
    ----------
    objectives : mapping of str to Objective
        One for each candidate, by its name; on ties the first wins.
    temperatures : sequence of float or None
        The given ones, and None for each to choose.
    search : {"mixture", "joint", "error-first"}
        See `mixture` and `tune`.
    advance : callable
        Called now and then.

    Returns
    -------
    Mixture
    """
    if search == "mixture":
        return mix_candidates(objectives, temperatures, advance)
    found = {
        name: tune(objective, temperatures, search, advance)
        for name, objective in objectives.items()
    }
    losses = {
        name: objective.compute_losses(np.array([found[name]]))[0]
        for name, objective in objectives.items()
    }
    best = [*losses][find_first_minimum(np.array([*losses.values()]))]
    return Mixture.from_single(best, found[best])
