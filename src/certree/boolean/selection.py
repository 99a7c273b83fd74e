"""Which characters explain a target: proposals, a path of choices among them, one that is judged best."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq
from sklearn.linear_model import lasso_path, orthogonal_mp

from certree.arrays import Float64, UInt64
from certree.boolean.bits import Bits
from certree.boolean.low_degree import correlations
from certree.boolean.models import spectrum
from certree.boolean.sets import (
    ascending,
    low_degree_sets,
    members_of,
    number_of_sets,
    starts_of_equal,
)
from certree.boolean.spectrum import characters
from certree.ensembles.boosting import BoostedTreesRegressor

Search = Literal["lasso", "omp"]

# Trees propose so many characters at most, and correlations so many more.
_PROPOSED, _CORRELATED = 800, 200
# Sets times rows that are looked through, and numbers of the characters of all rows.
_MOST_LOOKS, _MOST_NUMBERS = 2 * 10**9, 2 * 10**8
# Choices that are judged along a path.
_JUDGED = 16
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
        R2 on rows that judged: coefficients for it were fitted on others, but the number of terms was
        chosen by it.
    """

    masks: UInt64
    coefficients: Float64
    score: float


def feasible_degree(n_bits: int, n_rows: int, degree: int) -> int:
    """The largest degree, up to the one given, whose sets can all be looked through."""
    while degree > 1 and number_of_sets(n_bits, degree) * n_rows > _MOST_LOOKS:
        degree -= 1
    return degree


def proposed_by_trees(
    X: NDArray[Any],
    y: Float64,
    bits: Bits,
    degree: int,
    *,
    random_state: int,
    n_jobs: int | None,
    n_threads: int,
) -> UInt64:
    """Sets of the largest coefficients of boosted trees, and small ones that correlate most with y.

    Trees grow by single features. What no single feature tells, such as a parity, only the correlations
    find.
    """
    model = BoostedTreesRegressor(
        max_iter=200,
        max_depth=5,
        learning_rate=0.1,
        prunings="none",
        random_state=random_state,
        n_jobs=n_jobs,
    )
    by_trees = spectrum(model.fit(X, y), coding=bits.coding, n_jobs=n_jobs)
    n_proposed = min(max(len(y) // 3, 1), _PROPOSED)
    largest = np.argsort(-by_trees.squares, kind="stable")[:n_proposed]
    small = low_degree_sets(len(bits), feasible_degree(len(bits), len(y), degree))
    found = correlations(small, bits.signs(X), (y - y.mean())[:, None], n_threads)[:, 0]
    correlated = np.argsort(-np.abs(found), kind="stable")[:_CORRELATED]
    both = np.concatenate([by_trees.masks[largest], small[correlated]])
    both = both[ascending(both)]
    return both[starts_of_equal(both)]


def all_small(bits: Bits, n_rows: int, degree: int) -> UInt64:
    """All sets of at most `degree` bits."""
    if number_of_sets(len(bits), degree) * n_rows > _MOST_NUMBERS:
        raise ValueError(
            f"all sets of degree {degree} of {len(bits)} features are too many for {n_rows} rows: "
            'method="trees" does not need them all'
        )
    return low_degree_sets(len(bits), degree)


def select(
    masks: UInt64,
    signs: Float64,
    y: Float64,
    search: Search,
    max_terms: int | None,
    rng: np.random.RandomState,
    n_threads: int,
) -> Selected:
    """Choose characters along a path, by rows that judge, and fit their coefficients by least squares."""
    has_bits = masks.any(axis=1)
    masks = masks[has_bits]
    table = characters(members_of(masks, len(signs)), signs, None, n_threads).T
    order = rng.permutation(len(y))
    judging, fitting = np.split(order, [len(y) // 5])
    most = max(min(len(fitting) // 2, max_terms or len(masks)), 0)
    best, best_error = np.zeros(0, dtype=np.intp), np.inf
    for support in _supports(table[fitting], y[fitting], search, most):
        said = _fitted(table[fitting][:, support], y[fitting])
        errors = y[judging] - said[0] - table[np.ix_(judging, support)] @ said[1:]
        error = float((errors**2).mean()) if len(judging) else np.inf
        if error < best_error:
            best, best_error = support, error
    coefficients = _fitted(table[:, best], y)
    kept = np.abs(coefficients) > _ROUNDING * np.abs(coefficients).max()
    terms = np.concatenate([np.zeros((1, masks.shape[1]), dtype=np.uint64), masks[best]])
    spread = float(y[judging].var()) if len(judging) else 0.0
    score = 1 - best_error / spread if spread > 0 else 0.0
    return Selected(terms[kept], coefficients[kept], score)


def _fitted(table: Float64, y: Float64) -> Float64:
    """Least squares: the constant, and behind it a coefficient for each column."""
    whole = np.column_stack([np.ones(len(y)), table])
    found: Float64 = lstsq(whole, y, lapack_driver="gelsy")[0]
    return found


def _supports(table: Float64, y: Float64, search: Search, most: int) -> Iterator[NDArray[np.intp]]:
    """Columns that are chosen, from none to at most so many."""
    yield np.zeros(0, dtype=np.intp)
    centred, target = table - table.mean(axis=0), y - y.mean()
    if not most or not table.shape[1] or not np.any(target):
        return
    if search == "omp":
        path = orthogonal_mp(centred, target, n_nonzero_coefs=most, return_path=True)
        path = path.reshape(table.shape[1], -1)
    else:
        path = lasso_path(centred, target, precompute=centred.shape[0] > centred.shape[1])[1]
    sizes = np.count_nonzero(path, axis=0)
    places = [int(np.argmax(sizes == size)) for size in np.unique(sizes) if 0 < size <= most]
    # Sizes are evenly spread in their logarithm.
    wanted = np.unique(np.geomspace(1, len(places), _JUDGED).round().astype(int)) if places else []
    for number in wanted:
        yield np.flatnonzero(path[:, places[number - 1]])
