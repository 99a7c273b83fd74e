"""Selection of terms: propose sets, order them along a path, and validate how many to keep."""

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
from certree.boolean.low_degree import compute_correlations
from certree.boolean.model_spectrum import spectrum
from certree.boolean.sets import (
    argsort_masks,
    build_membership_matrix,
    count_sets,
    enumerate_sets,
    find_distinct,
)
from certree.boolean.spectrum import compute_characters
from certree.ensembles.boosting import BoostedTreesRegressor
from certree.interface.arrays import Float64, UInt64
from certree.interface.threads import get_n_threads

Search = Literal["lasso", "omp"]

# Number and depth of the boosted trees that propose sets.
_N_ROUNDS, _DEPTH = 200, 5
# Largest number of sets proposed by trees, and number of sets added by their correlations.
_MAX_BY_TREES, _N_BY_CORRELATION = 800, 200
# Largest number of sets times rows whose characters are computed in blocks, and at once.
_MAX_PRODUCTS_IN_BLOCKS, _MAX_PRODUCTS_AT_ONCE = 2 * 10**9, 2 * 10**8
# Each validated support is larger than the one before by this factor. Validation stops after this
# number of supports without a smaller error.
_GROWTH, _PATIENCE = 1.1, 10
# Number of steps of the first matching pursuit.
_FIRST_STEPS = 16
# Number of penalties of the Lasso, and the smallest as a fraction of the largest.
_N_PENALTIES, _SMALLEST_PENALTY = 60, 1e-3
# Largest number of columns whose matrix of inner products is computed beforehand.
_MAX_GRAM_COLUMNS = 5000
# Coefficients below this fraction of the largest are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SparsePolynomial:
    """The k terms of a sparse polynomial in signs of bits, and its score on the validation set.

    Parameters
    ----------
    masks : ndarray of uint64, shape (k, W)
        Set of bits of each term, as W = ceil(n_bits / 64) words: bit j belongs to it if bit j % 64
        of word j // 64 is 1.
    coefficients : ndarray of float64, shape (k,)
        Coefficient of each term.
    score : float
        R2 on the validation set of the polynomial fitted to the training rows; its baseline is the
        mean target of the training rows. It is optimistic, as the number of terms was chosen by it.
        0 if no polynomial has an error below that of the baseline by more than two standard errors
        of the difference, or there are fewer than two validation rows; NaN for methods without a
        validation set.
    """

    masks: UInt64
    coefficients: Float64
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Rows with two-valued features, and the numeric target of each row.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows, whose features have the two values of `bits.coding`.
    y : ndarray of float64, shape (n,)
        Target of each row.
    bits : Bits
        The bits of the rows; bit j is feature j.
    n_jobs : int or None
        Number of threads that work on these rows; None is one, -1 all.
    """

    X: NDArray[Any]
    y: Float64
    bits: Bits
    n_jobs: int | None

    def take(self, rows: NDArray[np.intp]) -> Examples:
        """Return the examples with the row numbers `rows`, (m,), in the order of these numbers."""
        return Examples(self.X[rows], self.y[rows], self.bits, self.n_jobs)

    def compute_characters(self, masks: UInt64) -> Float64:
        """Compute the product of the signs of each set's bits (its character) at each row.

        masks: sets of bits, (k, W), W = ceil(n_bits / 64); bit j belongs to a set if bit j % 64 of
        word j // 64 is 1. Return an array (n_rows, k) of -1 and 1.
        """
        members, signs = build_membership_matrix(masks, len(self.bits)), self.bits.signs(self.X)
        return compute_characters(members, signs, None, get_n_threads(self.n_jobs)).T


Propose = Callable[[Examples], UInt64]


def propose_by_trees(examples: Examples, degree: int, random_state: int) -> UInt64:
    """Propose sets of bits for terms: by boosted trees fitted to the examples, and by correlation.

    The first kind has the largest coefficients in the exact spectrum of 200 boosted trees of depth
    5: at most 800 sets and at most a third of the number of rows. The second kind has the 200 sets
    whose product of signs correlates most with y, among all sets of at most `degree` bits; a
    smaller degree is taken if the number of these sets times that of the rows is above 2e9. It
    finds interactions of features that have no effect alone, such as parities, which trees miss.

    Parameters
    ----------
    examples : Examples
        Rows and targets.
    degree : int
        Largest number of bits of the sets that are searched by correlation.
    random_state : int
        Seed of the boosted trees.

    Returns
    -------
    ndarray of uint64, shape (k, W)
        Masks of distinct sets, in the order of `Spectrum.masks`: bit j belongs to a set if bit j %
        64 of word j // 64 is 1.
    """
    y, bits, n_jobs = examples.y, examples.bits, examples.n_jobs
    model = BoostedTreesRegressor(
        max_iter=_N_ROUNDS,
        max_depth=_DEPTH,
        min_samples_leaf=1,
        l2_regularization=0.0,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    tree_spectrum = spectrum(model.fit(examples.X, y), coding=bits.coding, n_jobs=n_jobs)
    n_by_trees = min(max(len(y) // 3, 1), _MAX_BY_TREES)
    largest = np.argsort(-tree_spectrum.squares, kind="stable")[:n_by_trees]
    small = enumerate_sets(len(bits), limit_degree(len(bits), len(y), degree))
    signs, centred = bits.signs(examples.X), (y - y.mean())[:, None]
    correlations = compute_correlations(small, signs, centred, get_n_threads(n_jobs))[:, 0]
    correlated = np.argsort(-np.abs(correlations), kind="stable")[:_N_BY_CORRELATION]
    masks = np.concatenate([tree_spectrum.masks[largest], small[correlated]])
    masks = masks[argsort_masks(masks)]
    return masks[find_distinct(masks)]


def limit_degree(n_bits: int, n_rows: int, degree: int) -> int:
    """Lower a degree (largest number of bits of a set) until the sets are few enough to try them all.

    Return the largest degree, at most `degree`, for which the number of sets of at most that many
    of `n_bits` bits, times `n_rows`, is at most 2e9; 1 if there is none.
    """
    while degree > 1 and count_sets(n_bits, degree) * n_rows > _MAX_PRODUCTS_IN_BLOCKS:
        degree -= 1
    return degree


def propose_small_sets(examples: Examples, degree: int) -> UInt64:
    """Return the masks, (k, W), of all sets of at most `degree` of the examples' bits.

    Smaller sets come first. Bit j belongs to a set if bit j % 64 of word j // 64 of its mask is 1.
    Raise ValueError if the number of sets times the number of rows is above 2e8.
    """
    n_bits, n_rows = len(examples.bits), len(examples.y)
    if count_sets(n_bits, degree) * n_rows > _MAX_PRODUCTS_AT_ONCE:
        raise ValueError(
            f"degree must be small enough that the number of sets of at most degree={degree} of "
            f"{n_bits} features, times {n_rows} rows, is at most {_MAX_PRODUCTS_AT_ONCE:g}: use a "
            'smaller degree, or method="trees"'
        )
    return enumerate_sets(n_bits, degree)


def select(
    examples: Examples,
    propose: Propose,
    search: Search,
    max_terms: int | None,
    rng: np.random.RandomState,
) -> SparsePolynomial:
    """Choose terms among proposed sets of bits, and fit their coefficients by least squares.

    A fifth of the rows, drawn at random, is the validation set. The other rows propose sets and
    order them. Terms are added in this order; the number of terms with the smallest squared error
    on the validation set is chosen. The returned coefficients are fitted to all rows.

    Parameters
    ----------
    examples : Examples
        Rows and targets.
    propose : callable
        Takes `Examples` and returns masks, (k, W), of sets that may become terms: bit j belongs to
        a set if bit j % 64 of word j // 64 is 1. It is called with the rows outside the validation
        set.
    search : {"lasso", "omp"}
        How the sets are ordered: by the path of the Lasso, or by orthogonal matching pursuit.
    max_terms : int or None
        Largest number of terms besides the constant; None: no limit. There are never more terms
        than half the number of rows outside the validation set.
    rng : RandomState
        Draws the validation set.

    Returns
    -------
    SparsePolynomial
        The constant (empty set) first, then the chosen sets; terms with coefficients below 1e-12 of
        the largest are left out.
    """
    # Targets are divided by a power of two, as their fourth powers would overflow or underflow.
    unit = np.ldexp(1.0, np.frexp(np.abs(examples.y).max())[1] - 1)
    examples = replace(examples, y=examples.y / unit)
    validation_rows, fit_rows = np.split(rng.permutation(len(examples.y)), [len(examples.y) // 5])
    fit_set, validation_set = examples.take(fit_rows), examples.take(validation_rows)
    masks = propose(fit_set)
    masks = masks[masks.any(axis=1)]
    max_terms = min(len(fit_rows) // 2, max_terms or len(masks))
    support, score = np.zeros(0, dtype=np.intp), 0.0
    if len(validation_rows) > 1:
        columns = fit_set.compute_characters(masks)
        supports = _iterate_supports(columns, fit_set.y, search, max_terms)
        validation_columns = validation_set.compute_characters(masks)
        support, score = _choose_support(
            supports, columns, fit_set.y, validation_columns, validation_set.y
        )
    coefficients = _fit_least_squares(examples.compute_characters(masks[support]), examples.y)
    is_kept = np.abs(coefficients) > _ROUNDING * np.abs(coefficients).max()
    terms = np.concatenate([np.zeros((1, masks.shape[1]), dtype=np.uint64), masks[support]])
    return SparsePolynomial(terms[is_kept], coefficients[is_kept] * unit, score)


def _choose_support(
    supports: Iterator[NDArray[np.intp]],
    columns: Float64,
    y: Float64,
    validation_columns: Float64,
    validation_y: Float64,
) -> tuple[NDArray[np.intp], float]:
    """Choose the number of terms by the squared error on a validation set.

    Fit the columns of each support (column numbers of chosen terms) to the training rows, which are
    not in the validation set, by least squares. Stop after ten supports in a row without a smaller
    error.

    Parameters
    ----------
    supports : iterator of ndarray of int
        Supports, as arrays of ascending column numbers, each with more columns than the previous
        one.
    columns, y : ndarray of shape (n, k) and (n,)
        Product of the signs of each of k candidate sets, and the target, in the training rows.
    validation_columns, validation_y : ndarray of shape (m, k) and (m,)
        The same, in the validation set.

    Returns
    -------
    support : ndarray of int
        Columns of the best support. It is empty unless its mean squared error is below that of
        predicting the mean of `y` by more than two standard errors of the difference.
    score : float
        R2 on the validation set, against the mean of `y`; 0 if the support is empty.
    """
    best, n_worse = np.zeros(0, dtype=np.intp), 0
    constant_errors = least_errors = (validation_y - y.mean()) ** 2
    for support in supports:
        fitted = _fit_least_squares(columns[:, support], y)
        errors = (validation_y - fitted[0] - validation_columns[:, support] @ fitted[1:]) ** 2
        n_worse += 1
        if errors.mean() < least_errors.mean():
            best, least_errors, n_worse = support, errors, 0
        if n_worse == _PATIENCE:
            break
    gains = constant_errors - least_errors
    if gains.mean() <= 2 * gains.std() / sqrt(len(gains)):
        return best[:0], 0.0
    return best, 1 - float(least_errors.mean() / constant_errors.mean())


def _fit_least_squares(columns: Float64, y: Float64) -> Float64:
    """Fit `y`, (n,), by least squares on an intercept and `columns`, (n, k).

    Columns are the products of signs of candidate sets of bits. Return the coefficients, (1 + k,),
    intercept first.
    """
    design = np.column_stack([np.ones(len(y)), columns])
    coefficients: Float64 = lstsq(design, y, lapack_driver="gelsy")[0]
    return coefficients


def _iterate_supports(
    columns: Float64, y: Float64, search: Search, max_terms: int
) -> Iterator[NDArray[np.intp]]:
    """Yield growing supports (sets of column numbers) along the path of Lasso or matching pursuit.

    A support is yielded if it has more than 1.1 times as many columns as the one yielded before;
    the last support of the path is always yielded.

    Parameters
    ----------
    columns : ndarray of float64, shape (n, k)
        Candidate columns.
    y : ndarray of float64, shape (n,)
        Target of each row.
    search : {"lasso", "omp"}
        The Lasso with falling penalties, or orthogonal matching pursuit.
    max_terms : int
        The path ends before a support of more columns.

    Yields
    ------
    ndarray of int
        Ascending column numbers; nothing if `y` is constant.
    """
    centred, target = columns - columns.mean(axis=0), y - y.mean()
    if not max_terms or not columns.shape[1] or not np.any(target):
        return
    path = _iterate_matching_pursuit if search == "omp" else _iterate_lasso
    size, support = 0, np.zeros(0, dtype=np.intp)
    for coefficients in path(centred, target, max_terms):
        candidate = np.flatnonzero(coefficients)
        if len(candidate) > max_terms:
            break
        support = candidate
        if len(support) > _GROWTH * size:
            size = len(support)
            yield support
    if len(support) > size:
        yield support


def _iterate_matching_pursuit(columns: Float64, y: Float64, max_terms: int) -> Iterator[Float64]:
    """Yield the coefficients of all columns, (k,), after each step of orthogonal matching pursuit.

    columns: centred columns, (n, k); y: centred target, (n,); max_terms: largest number of steps,
    each of which adds one column. The pursuit first makes 16 steps; it runs again with four times
    as many when the caller asks for more.
    """
    n_yielded, n_steps = 0, _FIRST_STEPS
    while n_yielded < max_terms:
        with warnings.catch_warnings():
            # The pursuit warns when the residual is 0, where the path rightly ends.
            warnings.filterwarnings("ignore", "\\s*Orthogonal matching pursuit ended prematurely")
            path = orthogonal_mp(
                columns, y, n_nonzero_coefs=min(n_steps, max_terms), return_path=True
            )
        path = path.reshape(columns.shape[1], -1)
        if path.shape[1] <= n_yielded:
            return
        yield from path.T[n_yielded:]
        n_yielded, n_steps = n_steps, 4 * n_steps


def _iterate_lasso(
    columns: Float64,
    y: Float64,
    max_terms: int,  # noqa: ARG001
) -> Iterator[Float64]:
    """Yield the coefficients of all columns, (k,), of the Lasso for 59 falling penalties.

    Penalties fall geometrically, to 1/1000 of the smallest one for which all coefficients are 0.
    columns: centred columns, (n, k); y: centred target, (n,); max_terms is not used, but the
    signature equals that of `_iterate_matching_pursuit`. Each fit starts from the coefficients of
    the last one.
    """
    Xy = columns.T @ y
    # The Gram matrix saves time, but takes too much memory if there are many columns.
    gram = columns.T @ columns if columns.shape[1] <= _MAX_GRAM_COLUMNS else False
    coefficients = np.zeros(columns.shape[1])
    largest = np.abs(Xy).max() / len(y)
    for penalty in largest * np.geomspace(1.0, _SMALLEST_PENALTY, _N_PENALTIES)[1:]:
        coefficients = lasso_path(
            columns, y, alphas=[penalty], precompute=gram, Xy=Xy, coef_init=coefficients
        )[1][:, 0]
        yield coefficients
