"""Choose inverse temperatures, or a mixture of posteriors, by cross-validation.

The tree of each fold is grown once; after that, only the leaves of its validation rows are needed.
A family computes the validation losses of all its posteriors in one call, eight posteriors in each
pass over the nodes; for a path of nested prunings one pass gives the losses of all its alphas.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from certree._core import fit_mixture
from certree.interface.arrays import ArrayRecord, Float64, Int32
from certree.rows.folds import Fold, Indices
from certree.rows.training import WeightedTarget
from certree.stats import SeveralStats, Stats, TargetStats
from certree.tree import Tree
from certree.votes import Voting
from certree.weights.family import PosteriorFamily, Scoring, TuningCandidates, ValidationStatistics
from certree.weights.node_weights import NodeWeights, mix_posteriors

SingleSearch = Literal["joint", "error-first"]
Search = SingleSearch | Literal["mixture"]

# Takes (tree, leaf, y, weight, weight_unit); see `TreeVoteEstimator._compute_node_stats`.
ComputeNodeStats = Callable[[Tree, Int32, NDArray[Any], Float64 | None, float], Stats]

LOG_GRID = 2.0 ** np.linspace(-8, 6, 10)
MIXED_GRID = 2.0 ** np.arange(-8.0, 7.0, 2.0)
STEPS = 100  # of the EM algorithm; more gain nothing on held-out rows

# This many groups of validation rows determine the weights of a few dozen posteriors well; more would
# take longer than growing the trees.
_MAX_GROUPS = 1 << 17
# Posteriors of a smaller weight change no prediction noticeably.
_MIN_MIXTURE_WEIGHT = 1e-6
# Ridge penalty that pulls nearly equal posteriors to equal weights, which rounding would decide
# otherwise.
_RIDGE = 1e-3
# Sums of losses that differ by less are equal: in another unit of weight they are rounded differently.
_ROUNDING = 1e-12


def linear_grid(best: float) -> Float64:
    """Return the ten equally spaced values from best / 2 to 2 best, (10,); the fourth is `best`.

    best: the inverse temperature (or alpha) with the smallest validation loss on a coarser grid.
    Inverse temperatures are the factors of loss and size in the log weight of a pruning (the tree
    with some nodes turned into leaves).
    """
    return np.linspace(best / 2, 2 * best, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A kind of posterior (or pruning) that cross-validation may choose, and its way of voting.

    A pruning is a tree after some nodes have become leaves; a posterior is a distribution over all
    prunings of a tree, whose vote predicts.

    The constructor takes the two attributes.

    Attributes
    ----------
    family : callable
        ``family(tree, stats)`` takes a tree and the statistics of its nodes on training rows. It
        returns `TuningCandidates`: one posterior over prunings for each tuple of inverse
        temperatures (the factors of loss and size in the log weight of a pruning), or one pruning
        for each alpha (the factor of a pruning rule's penalty, such as the price of a leaf).
    voting : Voting
        How a pruning votes: by the majority label of the leaf that a row reaches, or by its
        smoothed class frequencies or mean.
    """

    family: Callable[[Tree, Any], TuningCandidates]
    voting: Voting


@dataclass(frozen=True, slots=True, eq=False)
class GrownFold:
    """The tree of one cross-validation fold, with statistics of its training and validation rows.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    tree : Tree
        The tree with m nodes; it was grown on the training rows of the fold; on all rows, if all
        folds share one tree; or without rows, if the grower ignores them.
    stats : NodeStats, SparseNodeStats, TargetStats or SeveralStats
        Statistics of the training rows of the fold in every node.
    validation : ndarray of float64, sparse entries, or list of these
        The `table` of the statistics of the validation rows (see `Stats`): class counts, (m, K), or
        row weight, mean and sum of squares of a numeric target, (m, 3). For more than 100 classes
        the sparse entries that `SparseNodeStats.table` has; a list with one table for each target
        if there are several targets.
    """

    tree: Tree
    stats: Stats
    validation: Any

    @classmethod
    def from_rows(
        cls,
        fold: Fold,
        tree: Tree,
        compute_stats: ComputeNodeStats,
        leaf: Int32,
        rows: WeightedTarget,
    ) -> Self:
        """Compute the node statistics of the training rows and of the validation rows of a fold.

        Parameters
        ----------
        fold : Fold
            Indices of its training and validation rows among n rows.
        tree : Tree
            The tree of the fold.
        compute_stats : callable
            ``compute_stats(tree, leaf, y, weight, weight_unit)`` returns the statistics of rows by
            node, from the leaf (node number), target and weight (or None: 1) of each, and the mean
            weight of all n rows.
        leaf : ndarray of int32, shape (n,)
            Node number in `tree` of the leaf that each of the n rows reaches.
        rows : WeightedTarget
            Targets and weights of the n rows, and the mean weight of a row.

        Returns
        -------
        GrownFold
            The tree, with the statistics of both sets of rows in its nodes.
        """

        def compute(indices: Indices) -> Stats:
            weight = None if rows.weight is None else rows.weight[indices]
            return compute_stats(tree, leaf[indices], rows.y[indices], weight, rows.weight_unit)

        return cls(tree, compute(fold.train), compute(fold.validation).table)

    def get_validation_statistics(self, voting: Voting) -> list[ValidationStatistics]:
        """Return, for each target, the votes of the nodes and statistics of the validation rows.

        The votes come from the training rows of the fold. A pruning is the tree with some nodes
        turned into leaves.

        Parameters
        ----------
        voting : Voting
            How a pruning votes: by majority label or by smoothed means.

        Returns
        -------
        list of ValidationStatistics
            One for each target. Several numeric targets are divided by their standard deviations in
            the training rows. Several targets are sorted by the bytes of their votes, so that
            results do not depend on the order of the columns of y.
        """
        if not isinstance(self.stats, SeveralStats):
            votes = voting.ballots(self.tree, self.stats)
            return [ValidationStatistics(votes.label, votes.frequency, self.validation)]
        targets = []
        for stats, validation, unit in zip(
            self.stats.of_each, self.validation, self.stats.deviations, strict=True
        ):
            node_predictions = voting.ballots(self.tree, stats)
            scored = ValidationStatistics(
                node_predictions.label, node_predictions.frequency, validation
            )
            targets.append(scored.rescale(unit) if isinstance(stats, TargetStats) else scored)
        return sorted(targets, key=ValidationStatistics.to_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """The validation loss of one candidate as a function of its inverse temperatures or alpha.

    A candidate is a kind of posterior or a pruning rule. Its parameters, called temperatures here,
    are the t inverse temperatures of a posterior (`lambda_error` and `lambda_penalty` of PAC-Bayes
    trees; `inverse_temperature` of Helmbold and Schapire's), or the single alpha of a pruning rule
    (the factor of its penalty; t = 1). The constructor takes the attributes in this order.

    Attributes
    ----------
    fold_entries : sequence of (TuningCandidates, ValidationStatistics)
        One pair for each fold and target: a `TuningCandidates`, which holds the posteriors, or
        prunings, of the fold's tree for all temperatures; and the votes of its nodes, with the
        statistics of the validation rows. Empty if there is no fold.
    scoring : {"error", "log_loss", "squared"}
        The loss. "error": weight of misclassified rows; "log_loss": nats; "squared": squared
        errors, for numeric targets.
    n_threads : int
        Number of threads; the losses do not depend on it.
    """

    fold_entries: Sequence[tuple[TuningCandidates, ValidationStatistics]]
    scoring: Scoring
    n_threads: int

    @classmethod
    def for_candidate(
        cls, folds: Sequence[GrownFold], candidate: Candidate, scoring: Scoring, n_threads: int = 1
    ) -> "Objective":
        """Build the posteriors and votes of a candidate on the trees of all folds.

        A posterior is a distribution over the prunings of a tree (the tree with some nodes turned
        into leaves). folds: tree and node statistics of each fold; candidate: the kind of
        posterior, or pruning rule; scoring: the loss; n_threads: number of threads. Raise
        ValueError if `scoring` is none of "error", "log_loss" and "squared".
        """
        if scoring not in ("error", "log_loss", "squared"):
            raise ValueError(f'scoring must be "error", "log_loss" or "squared", got {scoring!r}')
        fold_entries: list[tuple[TuningCandidates, ValidationStatistics]] = []
        for fold in folds:
            family = candidate.family(fold.tree, fold.stats)
            if not hasattr(family, "compute_losses"):
                raise TypeError(
                    "family of a pruning rule must return an object with solve and compute_losses, "
                    f"got {type(family).__name__}: define solve(self, tree, stats, alpha) in place of "
                    "family, by which cross-validation can choose alpha"
                )
            fold_entries += [
                (family, votes) for votes in fold.get_validation_statistics(candidate.voting)
            ]
        return cls(fold_entries, scoring, n_threads)

    def compute_losses(self, temperatures: Float64) -> Float64:
        """Compute the validation loss of g posteriors or prunings.

        Losses are summed over rows, folds and targets. A posterior is a distribution over the
        prunings of a tree (the tree with some nodes turned into leaves). temperatures: (g, t), one
        row for each posterior with its t inverse temperatures. If the candidate is a pruning rule,
        each row holds its alpha (factor of the penalty) alone, (g, 1). The candidate, not the
        caller, determines which. Return the g losses, (g,), in the order of the rows: weight of
        misclassified rows, nats, or weighted squared errors, as `scoring` says.
        """
        total = np.zeros(len(temperatures))
        for family, votes in self.fold_entries:
            total += family.compute_losses(temperatures, votes, self.scoring, self.n_threads)
        return total

    def predict_validation(self, temperatures: Float64) -> tuple[Float64, Float64, Float64]:
        """Predict the validation rows of all folds by each of g posteriors.

        Rows of one class in one leaf (for numeric targets, all rows in one leaf) form a group. The
        result has a groups; if there are more than 2**17, a random sample of them. A posterior is a
        distribution over the prunings of a tree (the tree with some nodes turned into leaves).

        Parameters
        ----------
        temperatures : ndarray of float64, shape (g, t)
            Parameters of each of the g posteriors, of the candidate for which this object was made:
            `lambda_error` and `lambda_penalty` of PAC-Bayes trees (t = 2), or the
            `inverse_temperature` of Helmbold and Schapire's (t = 1).

        Returns
        -------
        weight : ndarray of float64, shape (a,)
            Weight of the rows of each group.
        truth : ndarray of float64, shape (a,)
            1 in each group for classes; the mean target of the group for numbers.
        votes : ndarray of float64, shape (a, g)
            Probability of the group's class by each posterior, or the number that it predicts.

        Raises
        ------
        TypeError
            If the candidate has single prunings instead of posteriors.
        """
        blocks = []
        for family, votes in self.fold_entries:
            predictions = expect_family(family).predict_validation(
                temperatures, votes, self.scoring, self.n_threads
            )
            blocks.append(_subsample(predictions, max(1, _MAX_GROUPS // len(self.fold_entries))))
        weight, truth, predicted = map(np.concatenate, zip(*blocks, strict=True))
        return weight, truth, predicted


def _subsample(columns: tuple[Float64, ...], max_size: int) -> tuple[Float64, ...]:
    """Draw the same `max_size` entries of all columns at random, or return shorter columns unchanged.

    columns: arrays of one length n along their first axis. The draw depends on n alone (seed 0),
    and the drawn entries stay in order. Return a tuple of arrays, one for each column.
    """
    n = len(columns[0])
    if n <= max_size:
        return columns
    drawn = np.sort(np.random.default_rng(0).choice(n, max_size, replace=False))
    return tuple(column[drawn] for column in columns)


def expect_family(family: TuningCandidates) -> PosteriorFamily:
    """Return `family` unchanged if it holds posteriors over prunings, which a mixture needs.

    A pruning is the tree with some nodes turned into leaves. A posterior is a distribution over the
    prunings of a tree. family: the posteriors of one tree by their inverse temperatures (factors of
    loss and size in the log weight of a pruning), or its prunings by their alpha (factor of a
    penalty). Raise TypeError if it holds single prunings only, such as those of a cost-complexity
    path.
    """
    if not isinstance(family, PosteriorFamily):
        raise TypeError(
            'search="mixture" needs a family of posteriors over prunings, got '
            f'{type(family).__name__}, which has single prunings only: use search="joint"'
        )
    return family


@dataclass(frozen=True, slots=True, eq=False)
class Mixture(ArrayRecord):
    """The inverse temperatures that cross-validation chose: g posteriors and their weights.

    A posterior is a distribution over the prunings of a tree, that is, the trees that result if
    some nodes become leaves. Its inverse temperatures are the factors of loss and size in the log
    weight of a pruning. A single posterior is a mixture with g = 1 and weight 1. It holds no tree:
    `compute_posterior` computes the mixture on any tree.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    temperatures : ndarray of float64, shape (g, t)
        The t inverse temperatures of each posterior; for a single pruning, the alpha of its rule (g
        = t = 1).
    mixture_weights : ndarray of float64, shape (g,)
        Weight of each posterior; they sum to 1.
    candidate_names : sequence of str, length g
        Name of the candidate (kind of posterior) to which each posterior belongs, such as "error,
        leaves".
    """

    temperatures: Float64
    mixture_weights: Float64
    candidate_names: Sequence[str]

    def __post_init__(self) -> None:
        self._check("float64", (None,), "mixture_weights")
        weights = self.mixture_weights
        self._check("float64", (len(weights), None), "temperatures")
        if len(self.candidate_names) != len(weights):
            raise ValueError(
                f"candidate_names must have a name for each of {len(weights)} mixture_weights, got "
                f"{len(self.candidate_names)}"
            )
        if not ((weights >= 0).all() and np.isclose(weights.sum(), 1)):
            raise ValueError(
                f"mixture_weights must be probabilities that sum to 1, got {weights.tolist()}"
            )

    @classmethod
    def from_single(cls, family: str, temperatures: Sequence[float]) -> "Mixture":
        """Return the mixture of one posterior, which has weight 1.

        A posterior is a distribution over the prunings of a tree (the tree with some nodes turned
        into leaves); its inverse temperatures are the factors of loss and size in the log weight of
        a pruning. family: name of its candidate (kind of posterior), such as "error, leaves";
        temperatures: its t inverse temperatures, or its alpha.
        """
        return cls(np.array([temperatures], dtype=np.float64), np.ones(1), [family])

    def compute_posterior(
        self, candidates: Mapping[str, Candidate], tree: Tree, stats: Stats
    ) -> NodeWeights:
        """Compute the mixture of the posteriors over the prunings of a tree.

        A posterior is a distribution over the prunings of a tree (the tree with some nodes turned
        into leaves).

        Parameters
        ----------
        candidates : mapping of str to Candidate
            The candidates by the names in `candidate_names`.
        tree : Tree
            The tree.
        stats : Stats
            Statistics of its nodes, which weight the prunings.

        Returns
        -------
        NodeWeights
            The probability of each node to be a leaf of a pruning, and of each split.
        """
        family = cache(lambda name: candidates[name].family(tree, stats))
        posteriors = (
            family(name).solve(*row)
            for name, row in zip(self.candidate_names, self.temperatures, strict=True)
        )
        return (
            next(posteriors)
            if len(self.mixture_weights) == 1
            else mix_posteriors(tree, posteriors, self.mixture_weights)
        )


def mix_candidates(
    objectives: Mapping[str, Objective],
    temperatures: Sequence[float | None],
    advance: Callable[[], None] = lambda: None,
) -> Mixture:
    """Find the mixture of posteriors of all candidates whose vote has the smallest validation loss.

    The first temperature that is None takes eight values (`MIXED_GRID`: 2**-8, 2**-6, ..., 2**6);
    all others that are None are 0. Log loss and squared loss are convex in the mixture weights, so
    the optimum needs no search. Posteriors of weight below 1e-6 are dropped. A posterior is a
    distribution over the prunings of a tree (the tree with some nodes turned into leaves).

    Parameters
    ----------
    objectives : mapping of str to Objective
        The validation losses of each candidate, by its name.
    temperatures : sequence of float or None, length t
        The inverse temperatures (factors of loss and size in the log weight of a pruning) that the
        user has set; None for each that is to be chosen.
    advance : callable
        Called without arguments after each candidate, for a progress bar.

    Returns
    -------
    Mixture
        The posteriors of positive weight, with their weights, temperatures and candidates. If no
        temperature is None, the single posterior of the first candidate. If the objectives have no
        folds, the eight posteriors of the first candidate with equal weights.

    Raises
    ------
    TypeError
        If a candidate has single prunings instead of posteriors.
    """
    free = [i for i, value in enumerate(temperatures) if value is None]
    start = [0.0 if value is None else value for value in temperatures]
    first = next(iter(objectives))
    if not free:
        return Mixture.from_single(first, start)
    posteriors = _make_grid(np.array(start), free[:1], lambda _: MIXED_GRID)
    if not objectives[first].fold_entries:
        n = len(posteriors)
        return Mixture(posteriors, np.full(n, 1 / n), [first] * n)
    predictions = []
    for objective in objectives.values():
        rows, truth, votes = objective.predict_validation(posteriors)
        predictions.append(votes)
        advance()
    scoring = objectives[first].scoring
    weights = _fit_mixture_weights(scoring, rows, truth, np.concatenate(predictions, axis=1))
    kept = np.flatnonzero(weights > _MIN_MIXTURE_WEIGHT)
    names = [*objectives]
    candidate_names = [names[posterior // len(posteriors)] for posterior in kept]
    return Mixture(
        posteriors[kept % len(posteriors)], weights[kept] / weights[kept].sum(), candidate_names
    )


def _fit_mixture_weights(
    scoring: Scoring, rows: Float64, truth: Float64, votes: Float64
) -> Float64:
    """Compute the weights of the mixture of g posteriors with the smallest validation loss.

    Parameters
    ----------
    scoring : {"log_loss", "squared"}
        The loss.
    rows, truth, votes : ndarray of float64, shapes (a,), (a,) and (a, g)
        Row weight of each of a groups of validation rows; its truth (1 for classes, or the mean
        target); the probability of its class, or predicted number, by each posterior.

    Returns
    -------
    ndarray of float64, shape (g,)
        Non-negative weights that sum to 1: after 100 steps of the EM algorithm for "log_loss", the
        solution of a non-negative least-squares problem for "squared".
    """
    if scoring == "log_loss":
        return fit_mixture(rows, votes, STEPS)[0]
    # Wanted is the point nearest to 0 among the averages of the posteriors' errors. It has the
    # direction of the point nearest to the target once each error gets a coordinate 1 with target 1.
    # The unit is a power of two in which no error overflows, so that no other bit changes.
    unit = -np.frexp(max(np.abs(votes).max(), np.abs(truth).max()))[1]
    errors = np.ldexp(votes, unit) - np.ldexp(truth, unit)[:, None]
    # The same for row weights: their roots would be rounded differently if all weights double.
    errors *= np.sqrt(np.ldexp(rows, -np.frexp(rows.max())[1]))[:, None]
    size = np.abs(errors).max()
    if size == 0:
        return np.full(votes.shape[1], 1 / votes.shape[1])
    squares = (errors / size).T @ (errors / size)
    squares /= np.trace(squares) / len(squares)
    values, vectors = np.linalg.eigh(squares + _RIDGE * np.eye(len(squares)))
    ones = np.ones((1, len(squares)))
    system = np.concatenate([(vectors * np.sqrt(np.maximum(values, 0.0))).T, ones])
    weights: Float64 = nnls(system, np.append(np.zeros(len(squares)), 1.0))[0]
    return weights / weights.sum()


class TunableLoss(Protocol):
    """Protocol: a validation loss as a function of inverse temperatures, which `tune` minimises.

    `Objective` implements it for votes of prunings. There are t inverse temperatures (factors of
    loss and size in the log weight of a pruning); for a pruning rule they are its alpha alone.
    """

    @property
    def fold_entries(self) -> Sized:
        """A collection with one entry for each fold (and target); empty if there are no folds.

        `tune` reads only its length; if it is 0, inverse temperatures that are None become 1.
        Inverse temperatures are the factors of loss and size in the log weight of a pruning (the
        tree with some nodes turned into leaves).
        """

    def compute_losses(self, temperatures: Float64) -> Float64:
        """Compute the validation loss for each of g choices of the temperatures.

        Inverse temperatures are the factors of loss and size in the log weight of a pruning (the
        tree with some nodes turned into leaves). temperatures: (g, t), one choice of the t inverse
        temperatures in each row; for a pruning rule, one alpha in each row, (g, 1). Return the
        losses, (g,).
        """


def tune(
    objective: TunableLoss,
    temperatures: Sequence[float | None],
    search: SingleSearch = "joint",
    advance: Callable[[], None] = lambda: None,
) -> tuple[float, ...]:
    """Choose the inverse temperatures that are None by the smallest validation loss.

    A grid of ten values from 2**-8 to 2**6, equally spaced in the logarithm, is searched first;
    then ten equally spaced values from half to twice the best one. If losses are equal within
    rounding, the smallest temperatures win. Values that are not None are returned as they are. A
    pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    objective : TunableLoss
        The validation losses.
    temperatures : sequence of float or None, length t
        The inverse temperatures (factors of loss and size in the log weight of a pruning), or the
        alpha of a pruning rule, that are fixed; None for each that is to be chosen.
    search : {"joint", "error-first"}
        "joint": choose all on the product of their grids. "error-first": choose them one after the
        other in the order of `temperatures`; those that are not chosen yet are 1.
    advance : callable
        Called without arguments after each grid, for a progress bar.

    Returns
    -------
    tuple of float, length t
        All inverse temperatures. Those that are None become 1 if the objective has no folds.

    Raises
    ------
    ValueError
        If `search` is unknown.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5, for the grids.
    """
    if search not in ("joint", "error-first"):
        raise ValueError(f'search must be "joint" or "error-first", got {search!r}')
    free = [i for i, value in enumerate(temperatures) if value is None]
    best = np.array([1.0 if value is None else value for value in temperatures])
    if not objective.fold_entries:  # there are too few rows for a fold
        return tuple(map(float, best))
    rounds = [free] if search == "joint" else [[i] for i in free]
    for chosen in filter(None, rounds):
        for grid in (lambda _: LOG_GRID, linear_grid):
            candidates = _make_grid(best, chosen, grid)
            best = candidates[find_first_minimum(objective.compute_losses(candidates))]
            advance()
    return tuple(map(float, best))


def find_first_minimum(losses: Float64) -> int:
    """Return the first index of the smallest entry of a non-empty array, (g,).

    losses: the array. Entries within 1e-12 of the smallest one, relatively, count as equal to it.
    """
    smallest = losses.min()
    return int(np.argmax(losses <= smallest + _ROUNDING * abs(smallest)))


def find_best_loss(objective: TunableLoss) -> float:
    """Return the smallest validation loss over all values of a single inverse temperature or alpha.

    Inverse temperatures are the factors of loss and size in the log weight of a pruning (the tree
    with some nodes turned into leaves). objective: the losses, as a function of one inverse
    temperature, or of the alpha of a pruning rule. The result is the loss at the value that `tune`
    chooses.
    """
    return float(objective.compute_losses(np.array([tune(objective, [None])]))[0])


def _make_grid(start: Float64, chosen: list[int], grid: Callable[[float], Float64]) -> Float64:
    """Return the product of the grids of some temperatures, with `start` for the other ones.

    Inverse temperatures are the factors of loss and size in the log weight of a pruning (the tree
    with some nodes turned into leaves).

    Parameters
    ----------
    start : ndarray of float64, shape (t,)
        A value of each temperature.
    chosen : list of int
        Indices of the temperatures that vary.
    grid : callable
        Takes the start value of a temperature, and returns its values in ascending order.

    Returns
    -------
    ndarray of float64, shape (g, t)
        All combinations, in ascending order of the temperatures in `chosen`, the first one slowest.
    """
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
    """Choose the posterior with the smallest validation loss among all candidates, or a mixture.

    A posterior is a distribution over the prunings of a tree (the tree with some nodes turned into
    leaves).

    Parameters
    ----------
    objectives : mapping of str to Objective
        The validation losses of each candidate, by its name; on ties the first candidate wins.
    temperatures : sequence of float or None, length t
        The inverse temperatures (factors of loss and size in the log weight of a pruning), or the
        alpha of a pruning rule, that the user has set; None for each that is to be chosen.
    search : {"mixture", "joint", "error-first"}
        "mixture": a mixture of posteriors of all candidates, with the weights of the smallest loss.
        Otherwise a single posterior of the best candidate: "joint" chooses its temperatures
        together, on the product of their grids; "error-first" one after the other in the order of
        `temperatures`.
    advance : callable
        Called without arguments after each step of the search, for a progress bar.

    Returns
    -------
    Mixture
        The inverse temperatures and the candidate of each chosen posterior, and the weights of the
        posteriors; a single one has weight 1.
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
