"""Choosing temperatures by cross-validation.

The tree of a fold grows once. All grid points are weighed, voted and judged on it in one call of its
family of laws or path of prunings, which keeps no array of nodes by grid points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certree.columns import Float64
from certree.prunings import Tunable
from certree.rows import Fold
from certree.stats import Stats
from certree.tree import Tree
from certree.votes import Ballots, Kind, Slopes, ballots
from certree.weights import Scoring

Search = Literal["joint", "error-first"]

LOG_GRID = 2.0 ** np.linspace(-8, 6, 10)


def linear_grid(best: float) -> Float64:
    """Ten values from half to twice the best so far, itself among them."""
    return np.linspace(best / 2, 2 * best, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """What a tuner needs to know of a method.

    Parameters
    ----------
    family : callable
        ``family(tree, stats)``: the laws or the nested prunings that it chooses from.
    kind : {"majority", "mean"}
        How its prunings vote.
    smoothing : float
        Of the mean vote; see `vote`.
    slopes : ndarray of int8, shape (p,), or None
        Along which features predictions rise or fall; see `vote`.
    """

    family: Callable[[Tree, Any], Tunable]
    kind: Kind
    smoothing: float = 0.0
    slopes: Slopes = None


@dataclass(frozen=True, slots=True, eq=False)
class GrownFold:
    """The tree of one fold, and the rows that judge it, as arrays of the core.

    Parameters
    ----------
    tree : Tree
        Grown on the growing rows.
    stats : NodeStats or TargetStats
        Their statistics.
    holdout : ndarray of float64, shape (m, K) or (m, 3)
        The table of statistics of the judging rows.
    """

    tree: Tree
    stats: Stats
    holdout: Float64


def grow_fold(
    fold: Fold,
    grow: Callable[[NDArray[Any], NDArray[Any], Float64 | None], Tree],
    summarise: Callable[..., Stats],
    X: NDArray[Any],
    y: NDArray[Any],
) -> GrownFold:
    """Grow the tree of a fold and summarise its rows on both sides, by `count` or `measure`."""
    tree = grow(X[fold.grow], y[fold.grow], fold.grow_weight)
    stats = summarise(tree, X[fold.grow], y[fold.grow], sample_weight=fold.grow_weight)
    judging = summarise(tree, X[fold.judge], y[fold.judge], sample_weight=fold.judge_weight)
    return GrownFold(tree, stats, judging.table)


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """Held-out loss of a method, summed over folds, for rows of temperatures.

    Parameters
    ----------
    folds : sequence of GrownFold
        The folds.
    method : Method
        The method.
    scoring : {"error", "log_loss", "squared"}
        The loss; squared for numeric targets.
    n_threads : int
        Number of threads; the losses do not depend on it.
    """

    families: Sequence[tuple[GrownFold, Tunable, Ballots]]
    scoring: Scoring
    n_threads: int

    @classmethod
    def of(
        cls, folds: Sequence[GrownFold], method: Method, scoring: Scoring, n_threads: int = 1
    ) -> "Objective":
        """Prepare a method on every fold."""
        if scoring not in ("error", "log_loss", "squared"):
            raise ValueError(f'scoring must be "error", "log_loss" or "squared", got {scoring!r}')
        families = [
            (
                fold,
                method.family(fold.tree, fold.stats),
                ballots(fold.tree, fold.stats, method.kind, method.smoothing, method.slopes),
            )
            for fold in folds
        ]
        return cls(families, scoring, n_threads)

    def losses(self, temperatures: Float64) -> Float64:
        """Loss of each row of temperatures, (g, t) -> (g,)."""
        total = np.zeros(len(temperatures))
        for fold, family, votes in self.families:
            total += family.losses(
                temperatures,
                votes.label,
                votes.values,
                fold.holdout,
                self.scoring,
                self.n_threads,
            )
        return total


def tune(
    objective: Objective,
    temperatures: Sequence[float | None],
    search: Search = "joint",
    advance: Callable[[], None] = lambda: None,
) -> tuple[float, ...]:
    """Choose the temperatures that are None, first on a log grid, then on a linear one.

    Parameters
    ----------
    objective : Objective
        What is minimised; on ties the smallest temperatures win.
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
            axes = np.meshgrid(*[grid(best[i]) for i in chosen], indexing="ij")
            candidates = np.tile(best, (axes[0].size, 1))
            candidates[:, chosen] = np.stack([axis.ravel() for axis in axes], axis=1)
            best = candidates[np.argmin(objective.losses(candidates))]
            advance()
    return tuple(map(float, best))
