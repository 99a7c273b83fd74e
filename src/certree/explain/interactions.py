"""Analysis of variance of a model's output by features and pairs of features.

If features are independent, each distributed as in given rows, the output of a model is a sum of a
constant, a function of each feature, a function of each pair, and so on. No two of these functions are
correlated (the analysis of variance of Efron and Stein). Leaf regions are boxes, so the functions of
single features and of pairs are sums of products and can be computed exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import analyse_interactions
from certree.explain.additive_trees import AdditiveTrees, check_additive, get_additive_trees
from certree.interface.arrays import Float64, Int32
from certree.interface.extras import import_extra
from certree.interface.formatting import align_columns
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads

# Up to this number of leaves, all orders are exact. The time is the square of the number.
MAX_EXACT_LEAVES = 1000
# Sums of squares of leaf values must not overflow.
_MAX_LEAF_VALUE = 1e140
_MAX_TERMS_SHOWN = 12


@dataclass(frozen=True, slots=True, eq=False)
class Interactions:
    """The variance of a model's output, divided among features, pairs, and larger sets of features.

    Made by `interaction_fractions`, for features that are independent of each other. A model with
    several outputs has the sum of their variances.

    Parameters
    ----------
    single : ndarray of float64, shape (p,)
        Variance that is due to each feature alone: that of the mean output given its value.
    pairs : ndarray of int, shape (m, 2)
        Indices of the two features of pairs that occur together on a path; other pairs have no
        interaction.
    paired : ndarray of float64, shape (m,)
        Variance that is due to the interaction of each pair, beyond that of its two features alone.
    higher : float
        Variance that is due to interactions of three features or more.
    error : float
        Standard error of `higher`, if it is estimated; 0 if it is exact.
    feature_names : sequence of str, length p
        Names of the features.
    """

    single: Float64
    pairs: NDArray[np.integer]
    paired: Float64
    higher: float
    error: float
    feature_names: Sequence[str]

    @property
    def total(self) -> float:
        """Variance of the model's output (of features, pairs and larger sets), over all outputs."""
        return float(self.single.sum() + self.paired.sum() + self.higher)

    def matrix(self) -> Float64:
        """Return fractions of the total variance, (p, p): of features on the diagonal, of pairs off it.

        The matrix is symmetric; each pair counts twice in its sum. It is 0 for pairs that occur on
        no path, and lacks the fraction of three features or more. All 0 if the total variance is 0.
        """
        fractions: Float64 = np.diag(self.single)
        first, second = self.pairs.T
        fractions[first, second] = fractions[second, first] = self.paired
        fractions /= self._divisor
        return fractions

    def share(self, variance: float) -> float:
        """Return a variance of the output as a fraction of the total variance.

        If the total variance is 0, return `variance`, which is 0 then, too.
        """
        return float(variance) / self._divisor

    def terms(self) -> list[tuple[str, str | None, float]]:
        """List the fractions of the total variance of all features and pairs, largest first.

        Return tuples (feature name, None, fraction) for features, (name, name, fraction) for pairs.
        Fractions of 0 are included; that of three features or more is not.
        """
        names = self.feature_names
        features: list[tuple[str, str | None]] = [(name, None) for name in names]
        features += [(names[j], names[k]) for j, k in self.pairs.tolist()]
        fraction = np.concatenate([self.single, self.paired]) / self._divisor
        order = np.argsort(-fraction, kind="stable").tolist()
        return [(*features[i], float(fraction[i])) for i in order]

    @property
    def _divisor(self) -> float:
        """Variance of the model's output over the rows, the divisor of all fractions; 1 if it is 0."""
        return self.total if self.total > 0 else 1.0

    def to_frame(self) -> Any:
        """Convert the fractions of the variance to a data frame, the largest first.

        Returns
        -------
        pandas.DataFrame
            Columns "feature", "other" (the second feature of a pair, missing for single features)
            and "share", the fraction of the total variance. There is a line for each feature and
            each pair, and a last line without features for interactions of three features or more.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        terms = [*self.terms(), (None, None, self.share(self.higher))]
        feature, other, fraction = zip(*terms, strict=True)
        columns = {"feature": feature, "other": other, "share": fraction}
        return import_extra("pandas", "frames").DataFrame(columns)

    def __str__(self) -> str:
        return "\n".join(align_columns(self._make_table()[0]))

    def _repr_html_(self) -> str:
        (head, *lines), bars = self._make_table()
        return make_html_table("", head, lines, bars)

    def _make_table(self) -> tuple[list[list[str]], list[float]]:
        """Return the printed table of the twelve largest features and pairs, without those of 0.

        Returns
        -------
        lines : list of list of str
            Text cells, line by line: the heading, the features and pairs with their fractions, a
            line for the sum of all others, and one for three features or more.
        lengths : list of float
            Lengths of the bars of all lines but the heading; the longest is 1.
        """
        terms = [term for term in self.terms() if term[2] > 0]
        shown, hidden = terms[:_MAX_TERMS_SHOWN], terms[_MAX_TERMS_SHOWN:]
        lines = [
            [name if other is None else f"{name} & {other}", f"{fraction:.1%}"]
            for name, other, fraction in shown
        ]
        fractions = [fraction for *_, fraction in shown]
        if hidden:
            fractions.append(sum(fraction for *_, fraction in hidden))
            label = "1 other" if len(hidden) == 1 else f"{len(hidden)} others"
            lines.append([label, f"{fractions[-1]:.1%}"])
        fractions.append(self.share(self.higher))
        margin = f" +- {self.share(self.error):.2%}" if self.error > 0 else ""
        lines.append(["three features or more", f"{fractions[-1]:.1%}{margin}"])
        largest = max(fractions) or 1.0
        head = ["", f"share of the variance, {self.total:.5g}"]
        return [head, *lines], [fraction / largest for fraction in fractions]


@validate_arguments
def interaction_fractions(
    model: Any,
    X: ArrayLike,
    *,
    max_bins: int | None = 64,
    n_draws: int = 1000,
    random_state: int = 0,
) -> Interactions:
    """Compute the fractions of a model's variance that are due to single features and to pairs.

    Features are treated as independent of each other, each with the distribution that it has in
    `X`. The fractions of single features and of pairs are exact. That of three features or more is
    exact if all trees together have at most 1000 leaves. For more leaves it is estimated at random
    draws of independent features, with a standard error.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, boosted trees or AdaBoost of certree.
    X : array-like of shape (n, p)
        Rows that give the distribution of each feature.
    max_bins : int or None
        Largest number of bins of a numeric feature. A feature with more intervals between
        thresholds is divided into this number of bins with about the same number of rows, and each
        bin is represented by its median. None: no limit. Categories are never merged.
    n_draws : int
        Number of random rows by which interactions of three features or more are estimated if the
        trees have more than 1000 leaves.
    random_state : int
        Seed of the draws.

    Returns
    -------
    Interactions
        Variances of the probabilities of classes, of the raw scores of boosted trees, or of the
        predicted numbers. Variances of several outputs are summed. A forest's probabilities are
        averages over trees, before they are raised to the power ``leaves_.power``.

    Raises
    ------
    TypeError
        If the model has no trees with numeric leaves.
    ValueError
        If `max_bins` or `n_draws` is less than 2, or leaf values exceed 1e140.

    References
    ----------
    Efron and Stein, "The jackknife estimate of variance", Annals of Statistics 1981; Sobol,
    "Sensitivity estimates for nonlinear mathematical models", 1993.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from certree.ensembles import TreeForestRegressor
    >>> from certree.explain import interaction_fractions
    >>> X, y = make_friedman1(1000, random_state=0)
    >>> model = TreeForestRegressor(random_state=0).fit(X, y)
    >>> shares = interaction_fractions(model, X)
    >>> shares.pairs[shares.paired.argmax()].tolist()
    [0, 1]
    """
    for name, number in (("max_bins", max_bins), ("n_draws", n_draws)):
        if number is not None and number < 2:
            raise ValueError(f"{name} must be at least 2, got {number}")
    model = check_additive(model)
    names, n_threads = tuple(model._encoded_names()), get_n_threads(model.n_jobs)
    rows = model._encode_new_rows(X)
    trees = get_additive_trees(model)
    return compute_interactions(trees, rows, names, max_bins, n_threads, n_draws, random_state)


def compute_interactions(
    model: AdditiveTrees,
    X: NDArray[Any],
    feature_names: tuple[str, ...],
    max_bins: int | None,
    n_threads: int,
    n_draws: int = 1000,
    random_state: int = 0,
) -> Interactions:
    """Divide the variance of a model's output among features and pairs.

    Features are treated as independent of each other, each with its distribution in `X`. Variances
    of features and pairs are exact for the bins; that of three features or more is exact if all
    trees together have at most 1000 leaves, else estimated. Variances of several outputs are
    summed.

    Parameters
    ----------
    model : AdditiveTrees
        The model as a constant plus leaf values of trees.
    X : ndarray of shape (n, p)
        Numeric rows, categories as codes, that give the distribution of each feature.
    feature_names : tuple of str
        Names of the p features.
    max_bins : int or None
        Largest number of bins of a numeric feature; None: no limit.
    n_threads : int
        Number of threads.
    n_draws : int
        Number of random rows by which interactions of three features or more are estimated if there
        are more than 1000 leaves.
    random_state : int
        Seed of these rows.

    Returns
    -------
    Interactions
        The variances, and their estimated error.

    Raises
    ------
    ValueError
        If a leaf value exceeds 1e140 in size.
    """
    trees = model.trees
    if np.abs(trees.value).max(initial=0.0) > _MAX_LEAF_VALUE:
        raise ValueError(
            f"model must have leaf values of at most {_MAX_LEAF_VALUE:g} in size, as their squares "
            "would overflow: divide the target by a constant and fit again"
        )
    bins = bin_features(model, X, max_bins)
    is_exact = int(trees.is_leaf.sum()) <= MAX_EXACT_LEAVES
    draws = bins.draw(0 if is_exact else n_draws, np.random.default_rng(random_state))
    decompose: Any = analyse_interactions  # mypy does not count starred arguments
    single, first, second, paired, fitted, total = decompose(
        *trees.split_columns,
        trees.root,
        trees.value,
        *model.get_fractional_routing(X),
        *bins,
        draws,
        is_exact,
        n_threads,
    )
    higher, error = max(total - float(single.sum() + paired.sum()), 0.0), 0.0
    if not is_exact:
        outputs = model.compute_outputs(bins.get_values(draws), n_threads) - model.start
        squares = np.square(outputs - fitted).sum(axis=1)
        higher, error = float(squares.mean()), float(squares.std(ddof=1) / np.sqrt(len(squares)))
    pairs = np.column_stack([first, second])
    return Interactions(single, pairs, paired, higher, error, feature_names)


class FeatureBins(NamedTuple):
    """The bins into which the values of each feature are divided, at most C for each of p features.

    Unused bins of a feature come last and have probability 0.

    Attributes
    ----------
    value : ndarray of float64, shape (C, p)
        The value that represents each bin; NaN for missing values and for unused bins.
    mass : ndarray of float64, shape (C, p)
        Probability of each bin; columns sum to 1.
    """

    value: Float64
    mass: Float64

    def draw(self, n: int, random: np.random.Generator) -> Int32:
        """Draw random rows of independent features: the bin number of each feature, (n, p) int32.

        n: number of rows; random: generator that draws them. A bin is drawn with its probability,
        `mass`. Bin numbers are 0 .. C - 1, indices of rows of `value`.
        """
        quantiles = random.random((n, self.mass.shape[1]))
        bounds = np.cumsum(self.mass, axis=0)
        last = (self.mass > 0).sum(axis=0) - 1
        bins = [
            np.searchsorted(b, u, side="right") for b, u in zip(bounds.T, quantiles.T, strict=True)
        ]
        return np.minimum(np.column_stack(bins), last).astype(np.int32)

    def get_values(self, bins: Int32) -> Float64:
        """Convert bin numbers of all features in n rows, (n, p), to the bins' values, (n, p).

        bins: (n, p). Column j of `bins` has numbers of bins of feature j, as `draw` returns them.
        """
        return np.take_along_axis(self.value, bins, axis=0)


def bin_features(model: AdditiveTrees, X: NDArray[Any], max_bins: int | None) -> FeatureBins:
    """Divide the values of each feature at the thresholds of the trees, into at most `max_bins` bins.

    Each category is a bin in itself if a tree splits the feature by categories, and so are missing
    values.

    Parameters
    ----------
    model : AdditiveTrees
        The trees.
    X : ndarray of shape (n, p)
        Numeric rows, categories as codes, whose frequencies are the probabilities of the bins.
    max_bins : int or None
        Largest number of bins of a feature with thresholds, besides that of missing values; None:
        no limit.

    Returns
    -------
    FeatureBins
        The value and the probability of each bin of each feature.
    """
    trees, p = model.trees, X.shape[1]
    is_categorical = np.diff(trees.category_start) > 0
    features = []
    for j in range(p):
        splits = ~trees.is_leaf & (trees.feature == j)
        has_categories = bool((splits & is_categorical).any())
        thresholds = None if has_categories else np.unique(trees.threshold[splits])
        features.append(_bin_feature(X[:, j].astype(np.float64), thresholds, max_bins))
    n_bins = max(len(value) for value, _ in features)
    bins = FeatureBins(np.full((n_bins, p), np.nan), np.zeros((n_bins, p)))
    for j, (value, mass) in enumerate(features):
        bins.value[: len(value), j], bins.mass[: len(mass), j] = value, mass
    return bins


def _bin_feature(
    x: Float64, thresholds: Float64 | None, max_bins: int | None
) -> tuple[Float64, Float64]:
    """Divide the values of one feature into bins, and return their medians and probabilities.

    Parameters
    ----------
    x : ndarray of float64, shape (n,)
        Values of the feature; NaN are a bin in themselves.
    thresholds : ndarray of float64, or None
        Ascending thresholds between bins; None: each distinct value is a bin.
    max_bins : int or None
        Largest number of bins, besides that of NaN, if there are thresholds; None: no limit.

    Returns
    -------
    value, mass : ndarray of float64, shape (n_bins,)
        The lower median of the values in each bin, and the fraction of the rows in it. Bins without
        rows are left out; the bin of NaN is the last.
    """
    present = np.sort(x[~np.isnan(x)])
    interval = present if thresholds is None else np.searchsorted(thresholds, present)
    begin = np.unique(interval, return_index=True)[1]
    if thresholds is not None and max_bins is not None and len(begin) > max_bins:
        quantiles = np.arange(max_bins) * len(present) / max_bins
        begin = np.unique(begin[np.searchsorted(begin, quantiles).clip(max=len(begin) - 1)])
    n_rows = np.diff(begin, append=len(present))
    value, mass = present[begin + (n_rows - 1) // 2], n_rows / len(x)
    if len(present) < len(x):
        value, mass = np.append(value, np.nan), np.append(mass, 1 - len(present) / len(x))
    return value, mass
