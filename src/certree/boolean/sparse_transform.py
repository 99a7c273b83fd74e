"""All coefficients of a function with a sparse spectrum, from its values at chosen rows.

For a random binary matrix H with b columns and a shift p, the function is evaluated at the 2^b rows
H u + p (modulo 2), for all u. The Walsh-Hadamard transform of these values has 2^b buckets. Bucket j
holds the sum of all coefficients of sets S with H' S = j, each with the sign (-1)^(S p). If a bucket
holds one coefficient, its signs under the shifts by single features reveal S bit by bit. The
coefficient is subtracted from the buckets of all matrices, which isolates further coefficients there,
until no bucket holds any (peeling). Matrices are extended by columns, so earlier values are reused.
"""

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from certree._core import walsh_hadamard
from certree.boolean.bits import Bits, TwoValued
from certree.boolean.query_counter import QueryCounter, Recovered, draw_signs, expect_probability
from certree.boolean.sets import pack_indicators
from certree.boolean.spectrum import Spectrum
from certree.boolean.transform import MAX_BITS, spectrum_of_values
from certree.certificates.inequalities.bounds import binomial_upper
from certree.interface.arrays import Float64, Int64
from certree.interface.signatures import validate_arguments

_MATRICES = 3
# Number of columns of each matrix at the start.
_INITIAL_COLUMNS = 4
# Rows that are evaluated twice to detect noise, and rows on which the result is tested.
_REPEATED, _TESTED = 32, 256
_MAX_PASSES = 100

Sets = NDArray[np.uint8]


@validate_arguments
def sparse_transform(
    function: Any,
    n_features: int,
    *,
    coding: TwoValued = "0/1",
    budget: int | None = None,
    tolerance: float = 1e-9,
    delta: float = 0.05,
    random_state: Any = None,
) -> Recovered:
    """Find all Fourier coefficients of a function of two-valued features, if few of them are not 0.

    The function is evaluated at 3 (n_features + 1) 2^b + 272 rows that the algorithm chooses, or at
    all rows if these are fewer. The search starts with b = 4, and raises b by 1 until it has found all
    coefficients. With many coefficients other than 0, k of them, these are usually 2 to 5 times
    (n_features + 1) k rows. `n_queries` of the result is their number.

    Parameters
    ----------
    function : callable
        Takes rows, an array of integers (m, n_features) with the two values of `coding`, and
        returns one number for each: the same number whenever it gets the same row.
    n_features : int
        Number of features.
    coding : {"0/1", "-1/+1"}
        The two values of the features in the rows that `function` gets. Pass "-1/+1" for a function
        of signs, such as a product of features. With "0/1" it would be evaluated at rows of 0 and
        1, where it is another function with another spectrum, which no check can notice; the
        result's text states the two values.
    budget : int or None
        Largest number of rows at which the function is evaluated; None: as many as needed, which
        are all 2^n_features rows if too many coefficients are not 0.
    tolerance : float
        Numbers count as equal if they differ by less than this fraction of the largest absolute
        value of the function.
    delta : float
        Probability that the guarantee is wrong.
    random_state : int, RandomState or None
        Draws the random matrices that determine the rows to evaluate, and the rows on which the
        result is tested.

    Returns
    -------
    Recovered
        Its `spectrum` has the terms that were found. Its `guarantee` bounds the fraction of all
        rows at which spectrum and function differ, from 256 test rows: about ``ln(1 / delta) /
        256`` if they agree on all of these. If the budget ends before the search, `is_complete` is
        False, and the guarantee still holds.

    Raises
    ------
    TypeError
        If `function` is not callable, or does not return numbers.
    ValueError
        If `function` is noisy or does not return one number for each row, or the budget is too
        small.

    References
    ----------
    Amrollahi, Zandieh, Kapralov and Krause, "Efficiently learning Fourier sparse set functions",
    2019; Li, Bradley, Pawar and Ramchandran, "The SPRIGHT algorithm for robust sparse Hadamard
    transforms", 2015.
    """
    expect_probability(delta)
    queries = QueryCounter(function, Bits.two_valued(n_features, coding), budget)
    rng = check_random_state(random_state)
    matrices = [_Matrix(n_features, rng) for _ in range(_MATRICES)]
    n_columns, n_reserved = 0, _REPEATED + _TESTED
    sets, coefficients, is_complete = np.zeros((0, n_features), np.uint8), np.zeros(0), False
    while not is_complete:
        n_next = max(n_columns + 1, _INITIAL_COLUMNS)
        rows = _MATRICES * (n_features + 1) * (2**n_next - 2**n_columns * (n_columns > 0))
        if n_features <= MAX_BITS and 2**n_features <= rows and queries.allows(2**n_features):
            return _transform_all_rows(queries)
        if n_columns and not queries.allows(rows + n_reserved):
            break
        if not queries.allows(rows + n_reserved):
            raise ValueError(
                f"budget must be at least {rows + n_reserved} rows for {n_features} features, got "
                f"{budget}"
            )
        for matrix in matrices:
            matrix.extend(queries, n_next)
        if not n_columns:
            matrices[0].expect_no_noise(queries)
        n_columns = n_next
        sets, coefficients, is_complete = _peel(matrices, tolerance)
    masks = pack_indicators(sets.astype(bool))
    spectrum = Spectrum.from_terms(masks, coefficients[:, None], queries.bits)
    return _test_on_fresh_rows(queries, spectrum, is_complete, tolerance, delta, rng)


def _transform_all_rows(queries: QueryCounter) -> Recovered:
    """Evaluate the function at all 2^n rows and return its exact spectrum, with `is_complete` True.

    n is the number of features. queries: the function, whose budget (largest number of evaluations)
    must allow 2^n rows. It is certain that these are all coefficients, so the result's `delta` is
    0. Raise ValueError if the function is noisy at 32 rows, if the budget allows to evaluate these
    again.
    """
    n = len(queries.bits)
    signs = 1.0 - 2.0 * _to_bits(np.arange(2**n), n)
    values = queries.evaluate(signs)
    if queries.allows(_REPEATED):
        queries.expect_no_noise(signs[:_REPEATED], values[:_REPEATED])
    coding: Any = queries.bits.coding
    spectrum = spectrum_of_values(values, coding=coding)
    guarantee = "The function was evaluated at all rows: these are all coefficients"
    return Recovered(spectrum, queries.n_queries, queries.budget, 0.0, True, guarantee)


def _test_on_fresh_rows(
    queries: QueryCounter,
    spectrum: Spectrum,
    is_complete: bool,
    tolerance: float,
    delta: float,
    rng: np.random.RandomState,
) -> Recovered:
    """Compare spectrum and function at 256 fresh random rows, and build the result with its guarantee.

    Parameters
    ----------
    queries : QueryCounter
        The function, whose budget must allow 256 more rows.
    spectrum : Spectrum
        The terms that were found.
    is_complete : bool
        Whether the search ended before the budget did.
    tolerance : float
        The two differ at a row if their difference, divided by the largest absolute value of both
        at these rows and by the number of terms plus 1, is above this.
    delta : float
        Probability that the guarantee may fail.
    rng : RandomState
        Draws the rows.

    Returns
    -------
    Recovered
        Its guarantee is an exact binomial bound on the fraction of all rows where the two differ.
        `is_complete` is False if they differ at a test row.
    """
    signs = draw_signs(rng, _TESTED, len(queries.bits))
    values = queries.evaluate(signs)
    characters = spectrum.compute_characters(np.ascontiguousarray(signs.T))
    predicted = (characters.T @ spectrum.coefficients)[:, 0]
    # The rounding errors of all terms add up.
    n_terms, largest = len(spectrum) + 1, max(np.abs(values).max(), np.abs(predicted).max())
    n_wrong = int((np.abs(predicted - values) > tolerance * n_terms * largest).sum())
    fraction = binomial_upper(n_wrong, _TESTED, log(delta))
    guarantee = f"Spectrum and function differ on at most {fraction:.2%} of all rows" + (
        "" if is_complete else "; the budget ended before the search did"
    )
    is_complete = is_complete and n_wrong == 0
    return Recovered(spectrum, queries.n_queries, queries.budget, delta, is_complete, guarantee)


class _Matrix:
    """A random binary matrix H of b columns, and the function's values at the rows H u + p (modulo 2).

    Rows are here inputs of the function, as one bit for each feature. u runs over all 2^b numbers,
    as bits. The shift p is 0, or flips one feature: shift 0 flips none, and shift j + 1 flips
    feature j. A Walsh-Hadamard transform of the values gives sums of the function's coefficients;
    `transform` states which. A new object has no columns; `extend` draws them and evaluates the
    function.

    Parameters
    ----------
    n_features : int
        Number of features of the function; H has a bit for each of them in each column.
    rng : RandomState
        Draws the columns.
    """

    def __init__(self, n_features: int, rng: np.random.RandomState) -> None:
        self._rng, self._n = rng, n_features
        self._columns = np.zeros((0, n_features), dtype=np.uint8)
        self._values = np.zeros((n_features + 1, 0))

    def _compute_rows(self, first: int, last: int, shift: int) -> Sets:
        """Return the rows H u + p (modulo 2) for the numbers u = first, ..., last - 1, as bits.

        H is this random binary matrix; u stands for its bits, the lowest first. shift: 0 for p = 0,
        or j + 1 to flip feature j. Return inputs of the function, as an array of 0 and 1, (last -
        first, n_features).
        """
        numbers = _to_bits(np.arange(first, last), len(self._columns))
        rows = (numbers.astype(np.float32) @ self._columns.astype(np.float32)) % 2
        if shift:
            rows[:, shift - 1] = 1 - rows[:, shift - 1]
        return rows.astype(np.uint8)

    def extend(self, queries: QueryCounter, n_columns: int) -> None:
        """Draw columns until the matrix has `n_columns`.

        Evaluate the function, `queries`, at the rows (inputs) that the columns add, 2^n_columns in
        all for each of n_features + 1 shifts: no feature flipped, or one. Store the values in this
        object.
        """
        n_evaluated = self._values.shape[1]
        added = self._rng.randint(0, 2, size=(n_columns - len(self._columns), self._n))
        self._columns = np.vstack([self._columns, added.astype(np.uint8)])
        values = [
            queries.evaluate(1.0 - 2.0 * self._compute_rows(n_evaluated, 2**n_columns, shift))
            for shift in range(self._n + 1)
        ]
        self._values = np.hstack([self._values, np.array(values)])

    def expect_no_noise(self, queries: QueryCounter) -> None:
        """Evaluate the function again at the first 32 rows (or all, if fewer), to detect noise.

        queries: the function; its budget (largest number of evaluations) must allow these rows.
        Raise ValueError if a value differs from the one that `extend` stored.
        """
        last = min(_REPEATED, self._values.shape[1])
        queries.expect_no_noise(1.0 - 2.0 * self._compute_rows(0, last, 0), self._values[0, :last])

    @property
    def largest(self) -> float:
        """Largest absolute value of the function at the rows evaluated so far."""
        return float(np.abs(self._values).max())

    def transform(self) -> Float64:
        """Compute the sum of the function's coefficients in each of 2^b buckets, for b columns.

        The coefficient of a set S of features belongs to the bucket whose number has the bits H^T S
        (modulo 2), where S is a vector of 0 and 1, and H^T the transpose of the matrix. It uses the
        values that `extend` stored. Return an array (1 + n_features, 2^b). Row 0 has the sums. Row
        1 + j has the sums with the sign of a coefficient reversed if its set contains feature j;
        these are the sums of the function with feature j flipped.
        """
        scale = 1.0 / self._values.shape[1]
        values = np.ascontiguousarray(self._values)
        return np.array([walsh_hadamard(shifted, scale, 1) for shifted in values])

    def find_buckets(self, sets: Sets) -> Int64:
        """Return the number of the bucket to which the coefficient of each set belongs, (k,).

        sets: 1 where a feature belongs to a set, else 0, (k, n_features). The bits of the number,
        lowest first, are H^T S (modulo 2), where S is such a row, and H^T the transpose of the
        matrix. Numbers lie in 0 .. 2^b - 1 for b columns.
        """
        bits = (sets.astype(np.float32) @ self._columns.T.astype(np.float32)) % 2
        return bits.astype(np.int64) @ (1 << np.arange(len(self._columns), dtype=np.int64))


def _to_bits(numbers: NDArray[np.integer], n_bits: int) -> Sets:
    """Convert numbers, (k,), to bits 0 and 1, (k, n_bits), the lowest bit first."""
    return ((numbers[:, None] >> np.arange(n_bits)) & 1).astype(np.uint8)


def _peel(matrices: list[_Matrix], tolerance: float) -> tuple[Sets, Float64, bool]:
    """Find coefficients that are alone in a bucket, subtract them everywhere, and repeat.

    Each matrix assigns the coefficients of all sets of features to buckets, and gives the sum of
    each bucket, computed from values of the function. Stop when no bucket appears to hold exactly
    one coefficient, or after 100 passes.

    Parameters
    ----------
    matrices : list of _Matrix
        Random matrices of the same number of columns, with the values of the function.
    tolerance : float
        Sums count as 0 if they are at most this fraction of the function's largest value.

    Returns
    -------
    sets : ndarray of uint8, shape (k, n_features)
        1 where a feature belongs to the set of a coefficient.
    coefficients : ndarray of float64, shape (k,)
        Coefficient of each set.
    is_complete : bool
        Whether all buckets are empty at the end, so that all coefficients were found.
    """
    least = tolerance * max(matrix.largest for matrix in matrices)
    tables = [matrix.transform() for matrix in matrices]
    sums: dict[bytes, float] = {}
    for _ in range(_MAX_PASSES):
        n_found = 0
        for buckets, matrix in zip(tables, matrices, strict=True):
            sets, coefficients = _find_isolated(buckets, matrix, least)
            n_found += len(sets)
            signs = np.hstack([np.ones((len(sets), 1)), 1.0 - 2.0 * sets])
            for target, table in zip(matrices, tables, strict=True):
                places = target.find_buckets(sets)
                np.subtract.at(table.T, places, coefficients[:, None] * signs)
            for members, value in zip(sets, coefficients.tolist(), strict=True):
                sums[members.tobytes()] = sums.get(members.tobytes(), 0.0) + value
        if not n_found:
            break
    terms = {members: value for members, value in sums.items() if abs(value) > least}
    flat = np.frombuffer(b"".join(terms), dtype=np.uint8)
    is_complete = all(bool((np.abs(buckets) <= least).all()) for buckets in tables)
    n = len(tables[0]) - 1
    return flat.reshape(len(terms), n), np.array([*terms.values()], dtype=np.float64), is_complete


def _find_isolated(buckets: Float64, matrix: _Matrix, least: float) -> tuple[Sets, Float64]:
    """Return the sets and coefficients of the buckets that appear to hold exactly one coefficient.

    The sums of such a bucket have equal size in all rows of `buckets`. Their signs determine which
    features belong to the set, and `_Matrix.find_buckets` returns this bucket for that set.

    Parameters
    ----------
    buckets : ndarray of float64, shape (1 + n_features, n_buckets)
        Row 0: sum of the coefficients in each bucket. Row 1 + j: the same sum with the signs
        reversed of the coefficients whose sets contain feature j.
    matrix : _Matrix
        The matrix to which the buckets belong.
    least : float
        Sums and differences of at most this size count as 0.

    Returns
    -------
    sets : ndarray of uint8, shape (k, n_features)
        1 where a feature belongs to the set of a coefficient.
    coefficients : ndarray of float64, shape (k,)
        Coefficient of each set.
    """
    size = np.abs(buckets)
    has_one_size = (np.abs(size[1:] - size[0]) <= least).all(axis=0)
    places = np.flatnonzero(has_one_size & (size[0] > least))
    sets = ((buckets[1:, places] < 0) != (buckets[0, places] < 0)).T.astype(np.uint8)
    is_valid = matrix.find_buckets(sets) == places
    return np.ascontiguousarray(sets[is_valid]), buckets[0, places[is_valid]]
