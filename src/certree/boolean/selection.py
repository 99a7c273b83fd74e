"""Which characters explain a target: proposals, a path of choices, and the one that is judged best."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq
from sklearn.linear_model import lasso_path, orthogonal_mp

from certree.boolean.bits import Bits
from certree.boolean.low_degree import correlations
from certree.boolean.sets import (
    ascending,
    low_degree_sets,
    members_of,
    number_of_sets,
    starts_of_equal,
)
from certree.boolean.spectra_of_models import spectrum
from certree.boolean.spectrum import characters
from certree.ensembles.boosting import BoostedTreesRegressor
from certree.interface.arrays import Float64, UInt64
from certree.interface.threads import get_n_threads

Search = Literal["lasso", "omp"]

# So many trees of such a depth propose.
_ROUNDS, _DEPTH = 200, 5
# They propose so many characters at most, and correlations so many more.
_PROPOSED, _CORRELATED = 800, 200
# Sets times rows that are looked through, and numbers of the characters of all rows.
_MOST_LOOKS, _MOST_NUMBERS = 2 * 10**9, 2 * 10**8
# A choice that is judged is larger by this factor than the one before; the search ends where so many
# in turn are worse than the best.
_GROWTH, _PATIENCE = 1.1, 10
# Steps of a matching pursuit at first.
_FIRST_STEPS = 16
# Penalties of the Lasso, as shares of the largest one that matters.
_PENALTIES, _SMALLEST_PENALTY = 60, 1e-3
_MOST_PRODUCTS = 5000
# A coefficient below this share of the largest is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """Characters with coefficients, and the share of the variance that they explain of other rows.

    Parameters
    ----------
    masks : ndarray of uint64, shape (k, W)
    coefficients : ndarray of float64, shape (k,)
    score : float
        R2 on rows that judged, against the mean of the others, by which coefficients were fitted; the
        number of terms was chosen by it. 0 where nothing is clearly better than that mean.
    """

    masks: UInt64
    coefficients: Float64
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Rows with two-valued features, and a number for each.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    y : ndarray of float64, shape (n,)
    bits : Bits
    n_jobs : int or None
    """

    X: NDArray[Any]
    y: Float64
    bits: Bits
    n_jobs: int | None

    def at(self, rows: NDArray[np.intp]) -> Examples:
        """Keep some of the rows."""
        return Examples(self.X[rows], self.y[rows], self.bits, self.n_jobs)

    def table(self, masks: UInt64) -> Float64:
        """Characters of sets, (n, k)."""
        members, signs = members_of(masks, len(self.bits)), self.bits.signs(self.X)
        return characters(members, signs, None, get_n_threads(self.n_jobs)).T


Propose = Callable[[Examples], UInt64]


def proposed_by_trees(examples: Examples, degree: int, random_state: int) -> UInt64:
    """Sets of the largest coefficients of boosted trees, and small ones that correlate most with y.

    Trees grow by single features. What no single feature tells, such as a parity, only the correlations
    find.
    """
    y, bits, n_jobs = examples.y, examples.bits, examples.n_jobs
    model = BoostedTreesRegressor(
        max_iter=_ROUNDS,
        max_depth=_DEPTH,
        min_samples_leaf=1,
        l2_regularization=0.0,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    by_trees = spectrum(model.fit(examples.X, y), coding=bits.coding, n_jobs=n_jobs)
    n_proposed = min(max(len(y) // 3, 1), _PROPOSED)
    largest = np.argsort(-by_trees.squares, kind="stable")[:n_proposed]
    small = low_degree_sets(len(bits), feasible_degree(len(bits), len(y), degree))
    signs, centred = bits.signs(examples.X), (y - y.mean())[:, None]
    found = correlations(small, signs, centred, get_n_threads(n_jobs))[:, 0]
    correlated = np.argsort(-np.abs(found), kind="stable")[:_CORRELATED]
    both = np.concatenate([by_trees.masks[largest], small[correlated]])
    both = both[ascending(both)]
    return both[starts_of_equal(both)]


def feasible_degree(n_bits: int, n_rows: int, degree: int) -> int:
    """The largest degree, up to the one given, whose sets can all be looked through."""
    while degree > 1 and number_of_sets(n_bits, degree) * n_rows > _MOST_LOOKS:
        degree -= 1
    return degree


def all_small(examples: Examples, degree: int) -> UInt64:
    """All sets of at most `degree` bits."""
    n_bits, n_rows = len(examples.bits), len(examples.y)
    if number_of_sets(n_bits, degree) * n_rows > _MOST_NUMBERS:
        raise ValueError(
            f"all sets of degree {degree} of {n_bits} features are too many for {n_rows} rows: "
            'method="trees" does not need them all'
        )
    return low_degree_sets(n_bits, degree)


def select(
    examples: Examples,
    propose: Propose,
    search: Search,
    max_terms: int | None,
    rng: np.random.RandomState,
) -> Selected:
    """Choose characters, and fit their coefficients by least squares.

    What is proposed, the path of choices and the coefficients that are judged come from four fifths of
    the rows; the others judge how many terms there are, and then all rows fit these.
    """
    unit = np.ldexp(1.0, np.frexp(np.abs(examples.y).max())[1] - 1)  # squares of squares are taken
    examples = replace(examples, y=examples.y / unit)
    judging, fitting = np.split(rng.permutation(len(examples.y)), [len(examples.y) // 5])
    known, judged = examples.at(fitting), examples.at(judging)
    masks = propose(known)
    masks = masks[masks.any(axis=1)]
    most = min(len(fitting) // 2, max_terms or len(masks))
    support, score = np.zeros(0, dtype=np.intp), 0.0
    if len(judging) > 1:
        table = known.table(masks)
        choices = _supports(table, known.y, search, most)
        support, score = _judged_best(choices, table, known.y, judged.table(masks), judged.y)
    coefficients = _fitted(examples.table(masks[support]), examples.y)
    kept = np.abs(coefficients) > _ROUNDING * np.abs(coefficients).max()
    terms = np.concatenate([np.zeros((1, masks.shape[1]), dtype=np.uint64), masks[support]])
    return Selected(terms[kept], coefficients[kept] * unit, score)


def _judged_best(
    choices: Iterator[NDArray[np.intp]],
    table: Float64,
    y: Float64,
    judging_table: Float64,
    judging_y: Float64,
) -> tuple[NDArray[np.intp], float]:
    """The choice with the smallest squared error on rows that judge, and its R2 there.

    R2 is against the mean of the other rows, as rows that judge may all have the same y. No columns are
    chosen, unless some are better by more than two standard errors.
    """
    best, n_worse = np.zeros(0, dtype=np.intp), 0
    without = least = (judging_y - y.mean()) ** 2
    for support in choices:
        said = _fitted(table[:, support], y)
        errors = (judging_y - said[0] - judging_table[:, support] @ said[1:]) ** 2
        n_worse += 1
        if errors.mean() < least.mean():
            best, least, n_worse = support, errors, 0
        if n_worse == _PATIENCE:
            break
    better = without - least
    if better.mean() <= 2 * better.std() / sqrt(len(better)):
        return best[:0], 0.0
    return best, 1 - float(least.mean() / without.mean())


def _fitted(table: Float64, y: Float64) -> Float64:
    """Least squares: the constant, and behind it a coefficient for each column."""
    whole = np.column_stack([np.ones(len(y)), table])
    found: Float64 = lstsq(whole, y, lapack_driver="gelsy")[0]
    return found


def _supports(table: Float64, y: Float64, search: Search, most: int) -> Iterator[NDArray[np.intp]]:
    """Columns that are chosen, at most so many: more and more, each time by a share."""
    centred, target = table - table.mean(axis=0), y - y.mean()
    if not most or not table.shape[1] or not np.any(target):
        return
    path = _matching_pursuit if search == "omp" else _lasso
    size, support = 0, np.zeros(0, dtype=np.intp)
    for coefficients in path(centred, target, most):
        chosen = np.flatnonzero(coefficients)
        if len(chosen) > most:
            break
        support = chosen
        if len(support) > _GROWTH * size:
            size = len(support)
            yield support
    if len(support) > size:
        yield support


def _matching_pursuit(table: Float64, y: Float64, most: int) -> Iterator[Float64]:
    """Coefficients after each step, of four times as many steps whenever more are asked for."""
    done, n_steps = 0, _FIRST_STEPS
    while done < most:
        with warnings.catch_warnings():
            # Nothing being left to explain is no matter of concern.
            warnings.filterwarnings("ignore", "\\s*Orthogonal matching pursuit ended prematurely")
            path = orthogonal_mp(table, y, n_nonzero_coefs=min(n_steps, most), return_path=True)
        path = path.reshape(table.shape[1], -1)
        if path.shape[1] <= done:
            return
        yield from path.T[done:]
        done, n_steps = n_steps, 4 * n_steps


def _lasso(table: Float64, y: Float64, most: int) -> Iterator[Float64]:  # noqa: ARG001
    """Coefficients for smaller and smaller penalties, each found from the one before."""
    slopes = table.T @ y
    # Sums of products of columns are worth their memory unless columns are many.
    products = table.T @ table if table.shape[1] <= _MOST_PRODUCTS else False
    found = np.zeros(table.shape[1])
    largest = np.abs(slopes).max() / len(y)
    for penalty in largest * np.geomspace(1.0, _SMALLEST_PENALTY, _PENALTIES)[1:]:
        found = lasso_path(
            table, y, alphas=[penalty], precompute=products, Xy=slopes, coef_init=found
        )[1][:, 0]
        yield found
