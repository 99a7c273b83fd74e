"""Rates: how fast prunings after Scott and Nowak come close to the Bayes error, by simulation.

Points are uniform on the unit cube. Above the graph of a function of all coordinates but the last is
one class, below it the other, and a share of the labels is wrong. So the Bayes error is that share,
and what a rule errs beside it is known from where it disagrees with the graph.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from threadpoolctl import threadpool_limits

from certree.estimators.model_trees import DecoratedTreeClassifier
from certree.estimators.pruned import PrunedTreeClassifier
from certree.grow.dyadic import Dyadic, dyadic_resolution
from certree.interface.arrays import Float64, Int32
from certree.interface.progress import show_progress
from certree.paper.table2 import Mean, mean_of
from certree.prunings.rule import PruningRule
from certree.prunings.scott_nowak import SpatiallyAdaptive, SquareRoot

DIMENSIONS = (2, 3)
SIZES = tuple(2**power for power in range(8, 17, 2))
NOISE = 0.0
TEST_POINTS = 2**19
# Of the printed constant, with which the root alone is kept up to thousands of rows.
SCALE = 0.02
# Polynomials of degree 2 are for boundaries with so many derivatives.
DECORATED_SMOOTHNESS = 3


def _zigzag(u: Float64) -> Float64:
    return 4 * np.abs(u % 1 - 0.5) - 1


def _sine(u: Float64) -> Float64:
    return np.sin(2 * np.pi * u)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A function whose graph divides the cube.

    Parameters
    ----------
    name : str
        What tables call it.
    wave : callable
        Values in -1 .. 1, of period 1.
    smoothness : float
        How often it can be differentiated; 1 for Lipschitz functions.
    """

    name: str
    wave: Callable[[Float64], Float64]
    smoothness: float

    def above(self, X: Float64) -> NDArray[np.bool_]:
        """Which points lie above the graph."""
        # No bend and no level falls on a dyadic number, where cells would meet it exactly.
        height = 0.48 + 0.2 * self.wave(1.3 * X[:, :-1] + 0.1).mean(axis=1)
        return X[:, -1] > height


BOUNDARIES = (Boundary("Lipschitz", _zigzag, 1), Boundary("smooth", _sine, np.inf))


@dataclass(frozen=True, slots=True)
class RatedRule:
    """A way to choose a tree, and the rate that theory promises.

    Parameters
    ----------
    name : str
        What tables call it.
    model : classifier
        It is cloned and fitted.
    exponent : callable
        Of ``log n / n`` in the bound, by dimension and smoothness; NaN where it says nothing yet.
    """

    name: str
    model: PrunedTreeClassifier | DecoratedTreeClassifier
    exponent: Callable[[int, float], float]


def _pruned(rule: PruningRule, alpha: float) -> PrunedTreeClassifier:
    """A rule on the tree of its theorem."""
    return PrunedTreeClassifier(Dyadic(resolution="paper"), rule=rule, alpha=alpha)


def quadratic_leaf() -> Any:
    """Logistic regression on polynomials of degree 2."""
    return make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))


def _decorated() -> DecoratedTreeClassifier:
    # The tree of the theorem is no deeper than that of the defaults, for any number of rows here.
    return DecoratedTreeClassifier(quadratic_leaf(), grower="dyadic", random_state=0)


def _decorated_exponent(dimension: int, smoothness: float) -> float:
    gamma = min(smoothness, DECORATED_SMOOTHNESS)
    return gamma / (dimension + 2 * gamma - 2)


_ADAPTIVE = SpatiallyAdaptive(count_empty=True)
RULES = (
    RatedRule(
        "(1) square root", _pruned(SquareRoot(count_empty=True), SCALE), lambda d, _: 1 / (d + 1)
    ),
    RatedRule("(2) spatially adaptive", _pruned(_ADAPTIVE, SCALE), lambda d, _: 1 / d),
    RatedRule("(2) as printed", _pruned(_ADAPTIVE, 1.0), lambda _, __: np.nan),
    RatedRule("decorated", _decorated(), _decorated_exponent),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One rule on one sample.

    Parameters
    ----------
    dimension : int
        Features.
    boundary, rule : str
        Names.
    rows, repeat : int
        Training rows, and number of the repetition.
    excess : float
        Error beyond the Bayes error.
    leaves : float
        Of the pruning.
    """

    dimension: int
    boundary: str
    rule: str
    rows: int
    repeat: int
    excess: float
    leaves: float


@dataclass(frozen=True, slots=True)
class Rate:
    """Excess errors of one rule on one problem, and how they fall.

    Parameters
    ----------
    dimension : int
        Features.
    boundary, rule : str
        Names.
    rows : tuple of int
        Training rows.
    excess : tuple of Mean
        Mean excess errors over the repetitions.
    leaves : tuple of float
        Mean numbers of leaves.
    theory : float
        Exponent of ``log n / n`` in the bound.
    fitted : Mean
        Exponent that fits the larger half of the sizes best.
    """

    dimension: int
    boundary: str
    rule: str
    rows: tuple[int, ...]
    excess: tuple[Mean, ...]
    leaves: tuple[float, ...]
    theory: float
    fitted: Mean

    @property
    def larger(self) -> tuple[int, ...]:
        """The sizes that the exponent is fitted to."""
        return self.rows[len(self.rows) // 2 :]


def even_points(dimension: int, n_points: int = TEST_POINTS) -> Float64:
    """Points that fill the cube more evenly than random ones, always the same.

    References
    ----------
    Niederreiter, "Random Number Generation and Quasi-Monte Carlo Methods", 1992, Section 3.1:
    Kronecker sequences of irrational numbers.
    """
    step = 2 ** (np.arange(1, dimension + 1) / (dimension + 1))
    return np.arange(1, n_points + 1)[:, None] * step % 1


def draw_rows(
    boundary: Boundary, dimension: int, rows: int, repeat: int, noise: float
) -> tuple[Float64, Int32]:
    """Draw the training rows of a repetition."""
    rng = np.random.default_rng([repeat, rows, dimension])
    X = rng.random((rows, dimension))
    return X, (boundary.above(X) ^ (rng.random(rows) < noise)).astype(np.int32)


def simulate(
    dimensions: Sequence[int] = DIMENSIONS,
    sizes: Sequence[int] = SIZES,
    repeats: int = 2,
    noise: float = NOISE,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> list[Trial]:
    """Run all rules on samples of all sizes.

    Parameters
    ----------
    dimensions : sequence of int
        Numbers of features, from 2 on.
    sizes : sequence of int
        Numbers of training rows.
    repeats : int
        Number of repetitions, each with rows of its own.
    noise : float
        Share of wrong labels, which is the Bayes error, below a half.
    n_jobs : int or None
        Number of threads, one per sample; the trials do not depend on it.
    verbose : bool
        Whether a progress bar is shown.

    Returns
    -------
    list of Trial
        In the order of dimensions, boundaries, sizes, repetitions and rules.

    Raises
    ------
    ValueError
        If a number is out of range, or a size too small for the trees of a dimension.
    """
    _check(dimensions, sizes, repeats, noise)
    points = {dimension: even_points(dimension) for dimension in dimensions}
    tasks = list(product(dict.fromkeys(dimensions), BOUNDARIES, sorted(set(sizes)), range(repeats)))

    def task(dimension: int, boundary: Boundary, rows: int, repeat: int) -> list[Trial]:
        sample = draw_rows(boundary, dimension, rows, repeat, noise)
        truth = boundary.above(points[dimension])
        trials = []
        for rule in RULES:
            model = clone(rule.model).fit(*sample)
            excess = (1 - 2 * noise) * float(np.mean(model.predict(points[dimension]) != truth))
            case = (dimension, boundary.name, rule.name, rows, repeat)
            trials.append(Trial(*case, excess, model.get_n_leaves()))
        return trials

    # Set once for all samples: fits that end in turn would not give back what they found.
    with (
        threadpool_limits(1, user_api="blas"),
        show_progress(verbose, len(tasks), "samples") as advance,
    ):
        workers = 1 if n_jobs is None else effective_n_jobs(n_jobs)
        results = Parallel(n_jobs=workers, prefer="threads", return_as="generator")(
            delayed(task)(*arguments) for arguments in tasks
        )
        trials: list[Trial] = []
        for result in results:
            trials += result
            advance()
    return trials


def _check(dimensions: Sequence[int], sizes: Sequence[int], repeats: int, noise: float) -> None:
    if not dimensions or min(dimensions) < 2:
        raise ValueError(f"dimensions must be at least 2, got {list(dimensions)}")
    if not sizes:
        raise ValueError("sizes must name at least one number of rows")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    if not 0 <= noise < 0.5:
        raise ValueError(f"noise must lie in 0 .. 0.5, below 0.5, got {noise}")
    for dimension in dimensions:
        # Rule (1) has the coarsest grid.
        dyadic_resolution(min(sizes), dimension, 1 / (dimension + 1))


def rates(trials: Iterable[Trial]) -> list[Rate]:
    """Summarise trials over repetitions, by dimension, boundary and rule."""
    groups: dict[tuple[int, str, str], dict[int, list[Trial]]] = {}
    for trial in trials:
        key = (trial.dimension, trial.boundary, trial.rule)
        groups.setdefault(key, {}).setdefault(trial.rows, []).append(trial)
    return [_rate(*key, sizes) for key, sizes in groups.items()]


def _rate(dimension: int, boundary: str, rule: str, sizes: dict[int, list[Trial]]) -> Rate:
    (smoothness,) = (each.smoothness for each in BOUNDARIES if each.name == boundary)
    (exponent,) = (each.exponent for each in RULES if each.name == rule)
    rows = tuple(sorted(sizes))
    excess = tuple(mean_of([trial.excess for trial in sizes[n]]) for n in rows)
    larger = slice(len(rows) // 2, None)
    return Rate(
        dimension,
        boundary,
        rule,
        rows,
        excess,
        tuple(float(np.mean([trial.leaves for trial in sizes[n]])) for n in rows),
        exponent(dimension, smoothness),
        fitted_exponent(rows[larger], [mean.value for mean in excess[larger]]),
    )


def shrinking(rows: Sequence[int]) -> Float64:
    """What rates are powers of: ``log n / n``."""
    n = np.asarray(rows, dtype=np.float64)
    return np.log(n) / n


def fitted_exponent(rows: Sequence[int], excess: Sequence[float]) -> Mean:
    """Least-squares exponent of ``log n / n``; its standard error needs three sizes, else NaN."""
    errors = np.asarray(excess)
    if len(rows) < 2 or not (errors > 0).all():
        return Mean(np.nan, np.nan)
    x, y = np.log(shrinking(rows)), np.log(errors)
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    spare = len(rows) - 2
    error = np.sqrt(np.sum((y - slope * x) ** 2) / spare / (x @ x)) if spare else np.nan
    return Mean(slope, float(error))


def as_json(trials: Sequence[Trial], found: Sequence[Rate]) -> dict[str, Any]:
    """Everything that came out, for a JSON file."""
    return {
        "experiment": "rates",
        "trials": [asdict(trial) for trial in trials],
        "rates": [asdict(rate) for rate in found],
    }
