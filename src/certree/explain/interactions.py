"""Which features act, and which act together: shares of the variance of what a model says.

If features are independent, each distributed as in some rows, what a model says is a sum of a constant,
a function of each feature, one of each pair, and so on, no two of which are correlated: the analysis of
variance of Efron and Stein. Leaves are boxes, so that the functions of single features and of pairs are
sums of products, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import interactions
from certree.explain.summed import SummedTrees, summable, summed_trees
from certree.interface.arrays import Float64, Int32
from certree.interface.extras import import_extra
from certree.interface.formatting import align_columns
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads

# Leaves are compared pair by pair if they are no more; that takes the square of their number.
LEAVES = 1000
# Sums of squares of leaves are numbers.
_LARGEST = 1e140
# So many terms are shown.
_TERMS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Interactions:
    """Variance of what a model says, divided among features, pairs of them, and all else.

    Parameters
    ----------
    single : ndarray of float64, shape (p,)
        Variance that is due to each feature alone.
    pairs : ndarray of int, shape (m, 2)
        Pairs of features that some path compares; all others have no part in the variance.
    paired : ndarray of float64, shape (m,)
        Variance that is due to each of these pairs, beyond what its features make alone.
    higher : float
        Variance that is due to three features or more.
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
        """Variance of what the model says, summed over its outputs."""
        return float(self.single.sum() + self.paired.sum() + self.higher)

    def matrix(self) -> Float64:
        """Shares of the variance, (p, p): of single features on the diagonal, beside it of pairs."""
        shares: Float64 = np.diag(self.single)
        first, second = self.pairs.T
        shares[first, second] = shares[second, first] = self.paired
        shares /= self._whole
        return shares

    def share(self, variance: float) -> float:
        """What share of all variance some is; 0 where there is none."""
        return float(variance) / self._whole

    def terms(self) -> list[tuple[str, str | None, float]]:
        """Each feature (beside it None) and each pair with its share, the largest first."""
        names = self.feature_names
        features: list[tuple[str, str | None]] = [(name, None) for name in names]
        features += [(names[j], names[k]) for j, k in self.pairs.tolist()]
        share = np.concatenate([self.single, self.paired]) / self._whole
        order = np.argsort(-share, kind="stable").tolist()
        return [(*features[i], float(share[i])) for i in order]

    @property
    def _whole(self) -> float:
        return self.total if self.total > 0 else 1.0

    def to_frame(self) -> Any:
        """Give all terms as a data frame, the largest first.

        Returns
        -------
        pandas.DataFrame
            Columns "feature", "other" (missing for single features) and "share"; a line for each
            feature and each pair, and one without features for higher orders.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        terms = [*self.terms(), (None, None, self.share(self.higher))]
        feature, other, share = zip(*terms, strict=True)
        columns = {"feature": feature, "other": other, "share": share}
        return import_extra("pandas", "frames").DataFrame(columns)

    def __str__(self) -> str:
        return "\n".join(align_columns(self._table()[0]))

    def _repr_html_(self) -> str:
        (head, *lines), bars = self._table()
        return make_html_table("", head, lines, bars)

    def _table(self) -> tuple[list[list[str]], list[float]]:
        """The largest terms as a table of words, and their bars."""
        terms = [one for one in self.terms() if one[2] > 0]
        shown, hidden = terms[:_TERMS], terms[_TERMS:]
        lines = [
            [name if other is None else f"{name} & {other}", f"{share:.1%}"]
            for name, other, share in shown
        ]
        shares = [share for *_, share in shown]
        if hidden:
            shares.append(sum(share for *_, share in hidden))
            words = "1 other" if len(hidden) == 1 else f"{len(hidden)} others"
            lines.append([words, f"{shares[-1]:.1%}"])
        shares.append(self.share(self.higher))
        give = f" +- {self.share(self.error):.2%}" if self.error > 0 else ""
        lines.append(["three features or more", f"{shares[-1]:.1%}{give}"])
        largest = max(shares) or 1.0
        head = ["", f"share of the variance, {self.total:.5g}"]
        return [head, *lines], [share / largest for share in shares]


@validate_arguments
def interaction_fractions(
    model: Any,
    X: ArrayLike,
    *,
    max_bins: int | None = 64,
    n_draws: int = 1000,
    random_state: int = 0,
) -> Interactions:
    """Say how much of the variance of what a model says is due to which features and pairs.

    Features are taken as independent of each other, each with the values that it has in `X`. What is
    due to single features and to pairs is exact. What is due to more is exact, too, of at most 1000
    leaves; else it is estimated at draws of independent features, with its standard error.

    Parameters
    ----------
    model : estimator
        A fitted tree, vote, forest, boosted trees or AdaBoost of certree.
    X : array-like of shape (n, p)
        Rows whose features tell how each is distributed.
    max_bins : int or None
        A feature with more different cells between its cuts is divided into so many bins of about the
        same number of rows, each of which acts as its median does. None: nothing is put together.
        Categories are never put together.
    n_draws : int
        Number of draws where higher orders are estimated.
    random_state : int
        Seed of the draws.

    Returns
    -------
    Interactions
        Of shares of the classes (of forests before their power), raw scores of boosted trees, or
        numbers; variances of several classes are summed.

    Raises
    ------
    TypeError
        If the model has no trees whose leaves say numbers.
    ValueError
        If `max_bins` or `n_draws` is less than 2, or leaves say numbers beyond 1e140.

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
    for name, given in (("max_bins", max_bins), ("n_draws", n_draws)):
        if given is not None and given < 2:
            raise ValueError(f"{name} must be at least 2, got {given}")
    model = summable(model)
    names, n_threads = tuple(model._feature_names()), get_n_threads(model.n_jobs)
    rows = model._new_rows(X)
    return shares_of(summed_trees(model), rows, names, max_bins, n_threads, n_draws, random_state)


def shares_of(
    summed: SummedTrees,
    X: NDArray[Any],
    feature_names: tuple[str, ...],
    max_bins: int | None,
    n_threads: int,
    n_draws: int = 1000,
    random_state: int = 0,
) -> Interactions:
    """The same of trees and checked rows."""
    trees = summed.trees
    if np.abs(trees.value).max(initial=0.0) > _LARGEST:
        raise ValueError(f"leaves must say at most {_LARGEST:g}: the squares of more are infinite")
    cells = cells_of(summed, X, max_bins)
    few = int(trees.is_leaf.sum()) <= LEAVES
    draws = cells.drawn(0 if few else n_draws, np.random.default_rng(random_state))
    dividing: Any = interactions  # mypy does not count what stands behind a star
    single, first, second, paired, fitted, total = dividing(
        *trees.splits, trees.root, trees.value, *summed.branches(X), *cells, draws, few, n_threads
    )
    higher, error = max(total - float(single.sum() + paired.sum()), 0.0), 0.0
    if not few:
        said = summed.outputs(cells.rows(draws), n_threads) - summed.start
        rest = np.square(said - fitted).sum(axis=1)
        higher, error = float(rest.mean()), float(rest.std(ddof=1) / np.sqrt(len(rest)))
    pairs = np.column_stack([first, second])
    return Interactions(single, pairs, paired, higher, error, feature_names)


class FeatureCells(NamedTuple):
    """Cells of all features, C of each at most; those of mass 0 stand last.

    Attributes
    ----------
    value : ndarray of float64, shape (C, p)
        What stands for all in a cell.
    mass : ndarray of float64, shape (C, p)
        Probability of each cell.
    """

    value: Float64
    mass: Float64

    def drawn(self, n: int, random: np.random.Generator) -> Int32:
        """Cells of independent features, (n, p)."""
        places = random.random((n, self.mass.shape[1]))
        bounds = np.cumsum(self.mass, axis=0)
        last = (self.mass > 0).sum(axis=0) - 1
        found = [
            np.searchsorted(b, u, side="right") for b, u in zip(bounds.T, places.T, strict=True)
        ]
        return np.minimum(np.column_stack(found), last).astype(np.int32)

    def rows(self, cells: Int32) -> Float64:
        """Rows that lie in some cells, (n, p)."""
        return np.take_along_axis(self.value, cells, axis=0)


def cells_of(summed: SummedTrees, X: NDArray[Any], max_bins: int | None) -> FeatureCells:
    """The values of features between which no node tells a difference, or bins of them."""
    trees, p = summed.trees, X.shape[1]
    has_set = np.diff(trees.category_start) > 0
    found = []
    for j in range(p):
        here = ~trees.is_leaf & (trees.feature == j)
        is_set = bool((here & has_set).any())
        cuts = None if is_set else np.unique(trees.threshold[here])
        found.append(_cells_of_one(X[:, j].astype(np.float64), cuts, max_bins))
    most = max(len(value) for value, _ in found)
    cells = FeatureCells(np.full((most, p), np.nan), np.zeros((most, p)))
    for j, (value, mass) in enumerate(found):
        cells.value[: len(value), j], cells.mass[: len(mass), j] = value, mass
    return cells


def _cells_of_one(
    x: Float64, cuts: Float64 | None, max_bins: int | None
) -> tuple[Float64, Float64]:
    """A value and the probability of each cell of a feature; without cuts all values differ."""
    known = np.sort(x[~np.isnan(x)])
    cell = known if cuts is None else np.searchsorted(cuts, known)
    begin = np.unique(cell, return_index=True)[1]
    if cuts is not None and max_bins is not None and len(begin) > max_bins:
        wanted = np.arange(max_bins) * len(known) / max_bins
        begin = np.unique(begin[np.searchsorted(begin, wanted).clip(max=len(begin) - 1)])
    number = np.diff(begin, append=len(known))
    value, mass = known[begin + (number - 1) // 2], number / len(x)
    if len(known) < len(x):
        value, mass = np.append(value, np.nan), np.append(mass, 1 - len(known) / len(x))
    return value, mass
