"""Simulated rates: how fast the error of the prunings of Scott and Nowak approaches the Bayes error.

Points are uniform on the unit cube. One class lies above the graph of a function of all coordinates but
the last, the other below it, and a fraction of the labels is wrong. The Bayes error is that fraction.
The excess error of a rule follows from how often it disagrees with the graph.
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
from certree.paper.table2 import Mean, compute_mean
from certree.prunings.rule import PruningRule
from certree.prunings.scott_nowak import SpatiallyAdaptive, SquareRoot

DIMENSIONS = (2, 3)
SIZES = tuple(2**power for power in range(8, 17, 2))
NOISE = 0.0
TEST_POINTS = 2**19
# Factor of the paper's constant. With the constant itself, only the root is kept for thousands of rows.
SCALE = 0.02
# Smoothness for which polynomials of degree 2 are optimal.
DECORATED_SMOOTHNESS = 3


def _zigzag(u: Float64) -> Float64:
    """Return ``4 |u mod 1 - 1/2| - 1`` at each number u: a zigzag line of period 1 in -1 .. 1.

    It is 1 at integers and -1 halfway between them. It is the Lipschitz counterpart of a sine wave,
    as the height of a boundary between classes.
    """
    return 4 * np.abs(u % 1 - 0.5) - 1


def _sine(u: Float64) -> Float64:
    """Return sin(2 pi u) for each number u, the height of a smooth boundary; its period is 1."""
    return np.sin(2 * np.pi * u)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary between two classes in the unit cube: the graph of a function.

    The function takes all features but the last and returns a height, which the last feature is
    compared with. Points above the graph are of class 1; the others are of class 0.

    Parameters
    ----------
    name : str
        Name of the boundary in tables of results.
    wave : callable
        A function of period 1 with values in -1 .. 1, elementwise. The height of the graph is 0.48
        plus 0.2 times the mean of ``wave(1.3 x + 0.1)`` over the features x but the last.
    smoothness : float
        Number of derivatives of the function; 1 for Lipschitz functions.
    """

    name: str
    wave: Callable[[Float64], Float64]
    smoothness: float

    def is_above(self, X: Float64) -> NDArray[np.bool_]:
        """Return whether each point lies above the boundary's graph, which is its class without noise.

        The last feature is compared with the height of the graph at the other features. X: points
        of the unit cube, (n, dimension), dimension >= 2. Return booleans, (n,).
        """
        # No bend or level is a dyadic number, where a dyadic tree would split exactly.
        height = 0.48 + 0.2 * self.wave(1.3 * X[:, :-1] + 0.1).mean(axis=1)
        return X[:, -1] > height


BOUNDARIES = (Boundary("Lipschitz", _zigzag, 1), Boundary("smooth", _sine, np.inf))


@dataclass(frozen=True, slots=True)
class RatedRule:
    """A classifier, and the rate at which its excess error falls in theory.

    The excess error is the error minus the Bayes error.

    Parameters
    ----------
    name : str
        Name of the classifier in tables of results.
    model : classifier
        It is cloned before each fit.
    exponent : callable
        Takes the number of features and the smoothness of the boundary. Returns the exponent r of
        the bound (log n / n)^r on the excess error of n training rows, up to a constant; NaN if
        there is no bound.
    """

    name: str
    model: PrunedTreeClassifier | DecoratedTreeClassifier
    exponent: Callable[[int, float], float]


def _make_pruned_tree(rule: PruningRule, alpha: float) -> PrunedTreeClassifier:
    """Return an unfitted classifier that prunes a dyadic tree by a penalty of Scott and Nowak.

    The tree halves each feature as often as their theorem states for the number of rows (Scott and
    Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS 2003). rule:
    an object with the penalty of each pruning (the tree with some nodes turned into leaves); alpha:
    factor of the penalty in the sum of error and penalty that the chosen pruning minimises.
    """
    return PrunedTreeClassifier(Dyadic(resolution="paper"), rule=rule, alpha=alpha)


def make_quadratic_leaf() -> Any:
    """Return an unfitted pipeline: logistic regression on polynomials of degree 2.

    The polynomials have all products of at most two features; features are not scaled.
    """
    return make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))


def _make_decorated_tree() -> DecoratedTreeClassifier:
    """Return an unfitted dyadic tree classifier with quadratic logistic regression in its leaves.

    A dyadic tree halves the features in turn. Each leaf has a model of its own: logistic regression
    on products of at most two features. The seed is 0.
    """
    # The default tree is at least as deep as that of the theorem for all numbers of rows used here.
    return DecoratedTreeClassifier(make_quadratic_leaf(), grower="dyadic", random_state=0)


def _compute_decorated_exponent(dimension: int, smoothness: float) -> float:
    """Return the exponent in theory for trees with quadratic models in their leaves.

    dimension: number of features; smoothness: number of derivatives of the boundary between the
    classes. With g = min(smoothness, 3) the exponent is g / (dimension + 2 g - 2): that of log n /
    n in a bound on the excess error (error minus Bayes error) of a tree fitted to n rows of
    `dimension` features.
    """
    gamma = min(smoothness, DECORATED_SMOOTHNESS)
    return gamma / (dimension + 2 * gamma - 2)


_ADAPTIVE = SpatiallyAdaptive(count_empty=True)
RULES = (
    RatedRule(
        "(1) square root",
        _make_pruned_tree(SquareRoot(count_empty=True), SCALE),
        lambda d, _: 1 / (d + 1),
    ),
    RatedRule("(2) spatially adaptive", _make_pruned_tree(_ADAPTIVE, SCALE), lambda d, _: 1 / d),
    RatedRule("(2) as printed", _make_pruned_tree(_ADAPTIVE, 1.0), lambda _, __: np.nan),
    RatedRule("decorated", _make_decorated_tree(), _compute_decorated_exponent),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one classifier on one simulated sample.

    Parameters
    ----------
    dimension : int
        Number of features.
    boundary, rule : str
        Name of the boundary between the classes in the sample, and name of the classifier.
    rows, repeat : int
        Number of training rows, and number of the repetition, from 0.
    excess : float
        Error of the fitted classifier minus the Bayes error.
    leaves : float
        Number of leaves of the fitted classifier.
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
    """Excess errors of a classifier by number of training rows, and the exponent of their fall.

    The excess error is the error minus the Bayes error. A problem is a boundary between two classes
    in a number of features.

    Parameters
    ----------
    dimension : int
        Number of features.
    boundary, rule : str
        Name of the boundary between the classes, and name of the classifier.
    rows : tuple of int
        Numbers of training rows, ascending.
    excess : tuple of Mean
        Mean excess error over the repetitions, for each number of rows.
    leaves : tuple of float
        Mean number of leaves, for each number of rows.
    theory : float
        Exponent of ``log n / n`` in the theoretical bound; NaN without one.
    fitted : Mean
        Exponent of ``log n / n`` fitted to the larger half of the numbers of rows; the middle one
        of an odd number belongs to it.
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
    def fitted_rows(self) -> tuple[int, ...]:
        """The larger half of `rows`, the numbers of training rows; the exponent is fitted to these."""
        return self.rows[len(self.rows) // 2 :]


def generate_even_points(dimension: int, n_points: int = TEST_POINTS) -> Float64:
    """Return points that fill the unit cube more evenly than random points, (n_points, dimension).

    Coordinate j of point i is the fractional part of i 2^(j / (dimension + 1)), for i and j from 1.

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
    """Draw training rows for a problem with a known boundary between two classes.

    Parameters
    ----------
    boundary : Boundary
        Points above it have class 1, others class 0.
    dimension, rows : int
        Numbers of features and rows.
    repeat : int
        Number of the repetition; with the numbers of features and rows it is the seed.
    noise : float
        Probability that a label is wrong.

    Returns
    -------
    X : ndarray of float64, shape (rows, dimension)
        Points, uniform on the unit cube.
    y : ndarray of int32, shape (rows,)
        Classes 0 and 1.
    """
    rng = np.random.default_rng([repeat, rows, dimension])
    X = rng.random((rows, dimension))
    return X, (boundary.is_above(X) ^ (rng.random(rows) < noise)).astype(np.int32)


def simulate(
    dimensions: Sequence[int] = DIMENSIONS,
    sizes: Sequence[int] = SIZES,
    repeats: int = 2,
    noise: float = NOISE,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> list[Trial]:
    """Fit the classifiers `RULES` to simulated samples of all sizes, and compute their excess errors.

    `RULES` are dyadic trees that are pruned by two penalties of Scott and Nowak (the second also
    with its printed constant), and a dyadic tree with quadratic models in its leaves. The
    boundaries between the two classes are a zigzag and a sine wave. Excess errors are differences
    to the Bayes error, computed on 2^19 evenly spread points.

    Parameters
    ----------
    dimensions : sequence of int
        Numbers of features, at least 2.
    sizes : sequence of int
        Numbers of training rows.
    repeats : int
        Number of repetitions, each with different rows.
    noise : float
        Fraction of wrong labels, which is the Bayes error, below 0.5.
    n_jobs : int or None
        Number of threads, one per sample; the trials do not depend on it.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    list of Trial
        In the order of dimensions, boundaries, sizes, repetitions and rules.

    Raises
    ------
    ValueError
        If a number is out of range, or a size is too small for the trees of a dimension.
    """
    _expect_arguments(dimensions, sizes, repeats, noise)
    points = {dimension: generate_even_points(dimension) for dimension in dimensions}
    tasks = list(product(dict.fromkeys(dimensions), BOUNDARIES, sorted(set(sizes)), range(repeats)))

    def task(dimension: int, boundary: Boundary, rows: int, repeat: int) -> list[Trial]:
        """Draw one sample of `rows` training rows; return the excess error of each classifier on it.

        dimension: number of features; boundary: the boundary between the two classes; repeat:
        number of the repetition, which determines the draw. The fraction of wrong labels, and the
        points on which errors are computed, are variables of the enclosing call.
        """
        sample = draw_rows(boundary, dimension, rows, repeat, noise)
        truth = boundary.is_above(points[dimension])
        trials = []
        for rule in RULES:
            model = clone(rule.model).fit(*sample)
            excess = (1 - 2 * noise) * float(np.mean(model.predict(points[dimension]) != truth))
            case = (dimension, boundary.name, rule.name, rows, repeat)
            trials.append(Trial(*case, excess, model.get_n_leaves()))
        return trials

    # The limit is set once for all samples, as overlapping fits would not restore it properly.
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


def _expect_arguments(
    dimensions: Sequence[int], sizes: Sequence[int], repeats: int, noise: float
) -> None:
    """Raise ValueError if an argument of `simulate` is out of range.

    dimensions: numbers of features, at least 2; sizes: numbers of training rows; repeats: number of
    repetitions, at least 1; noise: fraction of wrong labels, below 0.5. Also raise ValueError if
    the smallest size is too small for the dyadic tree of some dimension.
    """
    if not dimensions or min(dimensions) < 2:
        raise ValueError(
            f"dimensions must be at least one integer, each at least 2, got {list(dimensions)}"
        )
    if not sizes:
        raise ValueError("sizes must have at least one number of rows, got none")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    if not 0 <= noise < 0.5:
        raise ValueError(f"noise must be at least 0 and less than 0.5, got {noise}")
    for dimension in dimensions:
        # Rule (1) has the coarsest grid.
        dyadic_resolution(min(sizes), dimension, 1 / (dimension + 1))


def summarise_trials(trials: Iterable[Trial]) -> list[Rate]:
    """Average trials over repetitions, and fit how fast the excess error falls with more rows.

    The excess error is the error minus the Bayes error. It is modelled as a constant times ``(log n
    / n)^exponent`` for n training rows. trials: results of `simulate`. Return a `Rate`, with the
    positive exponent in its field `fitted`, for each combination of dimension (number of features),
    boundary between the classes and rule (classifier) in `trials`, in order of appearance.
    """
    groups: dict[tuple[int, str, str], dict[int, list[Trial]]] = {}
    for trial in trials:
        key = (trial.dimension, trial.boundary, trial.rule)
        groups.setdefault(key, {}).setdefault(trial.rows, []).append(trial)
    return [_fit_rate(*key, sizes) for key, sizes in groups.items()]


def _fit_rate(dimension: int, boundary: str, rule: str, sizes: dict[int, list[Trial]]) -> Rate:
    """Average the trials of one classifier on one problem over repetitions, and fit an exponent.

    A problem is a boundary between two classes in a number of features. The exponent is that of
    ``log n / n`` in the excess error (error minus Bayes error) after training on n rows.

    Parameters
    ----------
    dimension : int
        Number of features.
    boundary, rule : str
        Name of the boundary between the classes, "Lipschitz" or "smooth"; and name of the
        classifier, one of `RULES`.
    sizes : dict
        The trials, by number of training rows.

    Returns
    -------
    Rate
        Means for each number of rows, and the exponent fitted to the larger half of the numbers.
    """
    (smoothness,) = (each.smoothness for each in BOUNDARIES if each.name == boundary)
    (exponent,) = (each.exponent for each in RULES if each.name == rule)
    rows = tuple(sorted(sizes))
    excess = tuple(compute_mean([trial.excess for trial in sizes[n]]) for n in rows)
    larger = slice(len(rows) // 2, None)
    return Rate(
        dimension,
        boundary,
        rule,
        rows,
        excess,
        tuple(float(np.mean([trial.leaves for trial in sizes[n]])) for n in rows),
        exponent(dimension, smoothness),
        fit_exponent(rows[larger], [mean.value for mean in excess[larger]]),
    )


def compute_log_n_over_n(rows: Sequence[int]) -> Float64:
    """Compute ``log n / n`` for each number n of training rows in `rows`, (k,).

    Theoretical rates of excess errors are powers of it.
    """
    n = np.asarray(rows, dtype=np.float64)
    return np.log(n) / n


def fit_exponent(rows: Sequence[int], excess: Sequence[float]) -> Mean:
    """Fit the exponent r and a factor c of excess errors c (log n / n)^r.

    Both are fitted by least squares on logarithms; only r is returned.

    Parameters
    ----------
    rows : sequence of int
        Numbers of training rows n.
    excess : sequence of float
        Excess error (error minus Bayes error) for each n.

    Returns
    -------
    Mean
        The exponent and its standard error. The standard error is NaN below three sizes. Both are
        NaN below two sizes, or if an excess error is not positive.
    """
    errors = np.asarray(excess)
    if len(rows) < 2 or not (errors > 0).all():
        return Mean(np.nan, np.nan)
    x, y = np.log(compute_log_n_over_n(rows)), np.log(errors)
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    degrees_of_freedom = len(rows) - 2
    if not degrees_of_freedom:
        return Mean(slope, np.nan)
    error = np.sqrt(np.sum((y - slope * x) ** 2) / degrees_of_freedom / (x @ x))
    return Mean(slope, float(error))


def to_json(trials: Sequence[Trial], rates: Sequence[Rate]) -> dict[str, Any]:
    """Return trials and rates as a dictionary for a JSON file.

    Keys: "experiment", which is "rates", and "trials" and "rates", lists of dictionaries of their
    fields.
    """
    return {
        "experiment": "rates",
        "trials": [asdict(trial) for trial in trials],
        "rates": [asdict(rate) for rate in rates],
    }
