"""All coefficients of a function that can be asked and has few of them.

Rows H u + p over all u of b bits (arithmetic modulo 2; H is a random matrix, p a shift) are as many as
there are buckets: the transform of their values has in bucket j the sum of all coefficients of sets S
with H' S = j, each with the sign (-1)^(S p). Where a bucket holds one coefficient, the shifts by single
features tell its set bit by bit. It is taken out of the buckets of all matrices, which leaves others
alone there, until nothing is left. Matrices grow by columns, so no row is asked twice.
"""

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from certree._core import walsh_hadamard
from certree.boolean.bits import Bits, TwoValued
from certree.boolean.queries import Queries, Recovered, drawn_signs, expect_probability
from certree.boolean.sets import packed
from certree.boolean.spectrum import Spectrum
from certree.boolean.transform import MOST_BITS, spectrum_of_values
from certree.certificates.inequalities.bounds import binomial_upper
from certree.interface.arrays import Float64, Int64
from certree.interface.signatures import validate_arguments

_MATRICES = 3
# Bits of a bucket at first.
_FIRST = 4
# Rows that are asked twice, and rows by which the result is judged.
_AGAIN, _JUDGED = 32, 256
_PASSES = 100

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
    """Find all coefficients of a function that has few, by asking it for its values.

    Between 2 and 5 times (n_features + 1) k rows are asked for k coefficients as a rule, or all rows,
    where these are fewer.

    Parameters
    ----------
    function : callable
        Takes rows, an array of integers (m, n_features), and gives one number for each, the same
        whenever it is asked.
    n_features : int
        Number of features.
    coding : {"0/1", "-1/+1"}
        The two values of features.
    budget : int or None
        At most so many rows are asked; None: as many as it takes, which for a function without small
        spectrum are all.
    tolerance : float
        Numbers that differ by less than this share of the largest value are the same.
    delta : float
        Probability that the promise is wrong.
    random_state : int, RandomState or None
        Draws the matrices, and rows by which the result is judged.

    Returns
    -------
    Recovered
        The promise is a bound on the share of all rows at which the spectrum is not the function,
        from fresh rows: about ``ln(1 / delta) / 256`` if they all agree. If the budget ends before the
        search does, `is_complete` is False, and the share tells what the terms are worth.

    Raises
    ------
    TypeError
        If `function` is not callable, or does not return numbers.
    ValueError
        If answers are noisy, or there is not one for each row, or the budget is too small for a start.

    References
    ----------
    Amrollahi, Zandieh, Kapralov and Krause, "Efficiently learning Fourier sparse set functions", 2019;
    Li, Bradley, Pawar and Ramchandran, "The SPRIGHT algorithm for robust sparse Hadamard transforms",
    2015.
    """
    expect_probability(delta)
    queries = Queries(function, Bits.two_valued(n_features, coding), budget)
    rng = check_random_state(random_state)
    matrices = [_Matrix(n_features, rng) for _ in range(_MATRICES)]
    n_bits, kept_back = 0, _AGAIN + _JUDGED
    sets, coefficients, is_complete = np.zeros((0, n_features), np.uint8), np.zeros(0), False
    while not is_complete:
        longer = max(n_bits + 1, _FIRST)
        rows = _MATRICES * (n_features + 1) * (2**longer - 2**n_bits * (n_bits > 0))
        if n_features <= MOST_BITS and 2**n_features <= rows and queries.allows(2**n_features):
            return _of_all_rows(queries, delta)
        if n_bits and not queries.allows(rows + kept_back):
            break
        if not queries.allows(rows + kept_back):
            raise ValueError(
                f"a budget of {budget} queries is too small: {rows + kept_back} are needed at least"
            )
        for one in matrices:
            one.lengthen(queries, longer)
        if not n_bits:
            matrices[0].expect_no_noise(queries)
        n_bits = longer
        sets, coefficients, is_complete = _peeled(matrices, tolerance)
    found = Spectrum.of(packed(sets.astype(bool)), coefficients[:, None], queries.bits)
    return _judged(queries, found, is_complete, tolerance, delta, rng)


def _of_all_rows(queries: Queries, delta: float) -> Recovered:
    n = len(queries.bits)
    signs = 1.0 - 2.0 * _bits_of(np.arange(2**n), n)
    values = queries.ask(signs)
    coding: Any = queries.bits.coding
    found = spectrum_of_values(values, coding=coding)
    promise = "All rows were asked: these are all coefficients"
    return Recovered(found, queries.n_queries, queries.budget, delta, True, promise)


def _judged(
    queries: Queries,
    found: Spectrum,
    is_complete: bool,
    tolerance: float,
    delta: float,
    rng: np.random.RandomState,
) -> Recovered:
    signs = drawn_signs(rng, _JUDGED, len(queries.bits))
    values = queries.ask(signs)
    said = (found.characters(np.ascontiguousarray(signs.T)).T @ found.coefficients)[:, 0]
    # Rounding adds up over terms.
    least = tolerance * (len(found) + 1) * max(np.abs(values).max(), np.abs(said).max())
    wrong = int((np.abs(said - values) > least).sum())
    share = binomial_upper(wrong, _JUDGED, log(delta))
    promise = f"They are not the function at {share:.2%} of all rows at most" + (
        "" if is_complete else "; the budget ended before the search did"
    )
    is_complete = is_complete and wrong == 0
    return Recovered(found, queries.n_queries, queries.budget, delta, is_complete, promise)


class _Matrix:
    """A random matrix H, and the values at the rows that it makes with each shift."""

    def __init__(self, n_features: int, rng: np.random.RandomState) -> None:
        self._rng, self._n = rng, n_features
        self._columns = np.zeros((0, n_features), dtype=np.uint8)
        self._values = np.zeros((n_features + 1, 0))

    def _rows(self, first: int, last: int, shift: int) -> Sets:
        """The rows of bits for numbers first .. last - 1, shifted by a feature; 0: by none."""
        numbers = _bits_of(np.arange(first, last), len(self._columns))
        rows = (numbers.astype(np.float32) @ self._columns.astype(np.float32)) % 2
        if shift:
            rows[:, shift - 1] = 1 - rows[:, shift - 1]
        return rows.astype(np.uint8)

    def lengthen(self, queries: Queries, n_bits: int) -> None:
        """Add columns up to so many, and ask for the values of the rows that come with them."""
        known = self._values.shape[1]
        more = self._rng.randint(0, 2, size=(n_bits - len(self._columns), self._n))
        self._columns = np.vstack([self._columns, more.astype(np.uint8)])
        values = [
            queries.ask(1.0 - 2.0 * self._rows(known, 2**n_bits, shift))
            for shift in range(self._n + 1)
        ]
        self._values = np.hstack([self._values, np.array(values)])

    def expect_no_noise(self, queries: Queries) -> None:
        last = min(_AGAIN, self._values.shape[1])
        queries.expect_no_noise(1.0 - 2.0 * self._rows(0, last, 0), self._values[0, :last])

    @property
    def largest(self) -> float:
        return float(np.abs(self._values).max())

    def buckets(self) -> Float64:
        """Sums of the coefficients of each bucket, for each shift: (1 + n, 2^b)."""
        scale = 1.0 / self._values.shape[1]
        values = np.ascontiguousarray(self._values)
        return np.array([walsh_hadamard(one, scale, 1) for one in values])

    def places(self, sets: Sets) -> Int64:
        """The bucket of each set."""
        bits = (sets.astype(np.float32) @ self._columns.T.astype(np.float32)) % 2
        return bits.astype(np.int64) @ (1 << np.arange(len(self._columns), dtype=np.int64))


def _bits_of(numbers: NDArray[np.integer], n_bits: int) -> Sets:
    """The bits of numbers, (k, n_bits)."""
    return ((numbers[:, None] >> np.arange(n_bits)) & 1).astype(np.uint8)


def _peeled(matrices: list[_Matrix], tolerance: float) -> tuple[Sets, Float64, bool]:
    """Sets and coefficients that stand alone in a bucket, and whether that leaves nothing."""
    least = tolerance * max(one.largest for one in matrices)
    buckets = [one.buckets() for one in matrices]
    found: dict[bytes, float] = {}
    for _ in range(_PASSES):
        n_before = 0
        for own, matrix in zip(buckets, matrices, strict=True):
            sets, coefficients = _alone(own, matrix, least)
            n_before += len(sets)
            signs = np.hstack([np.ones((len(sets), 1)), 1.0 - 2.0 * sets])
            for other, its in zip(matrices, buckets, strict=True):
                np.subtract.at(its.T, other.places(sets), coefficients[:, None] * signs)
            for one, value in zip(sets, coefficients.tolist(), strict=True):
                found[one.tobytes()] = found.get(one.tobytes(), 0.0) + value
        if not n_before:
            break
    terms = {one: value for one, value in found.items() if abs(value) > least}
    flat = np.frombuffer(b"".join(terms), dtype=np.uint8)
    is_complete = all(bool((np.abs(own) <= least).all()) for own in buckets)
    n = len(buckets[0]) - 1
    return flat.reshape(len(terms), n), np.array([*terms.values()], dtype=np.float64), is_complete


def _alone(buckets: Float64, matrix: _Matrix, least: float) -> tuple[Sets, Float64]:
    """Sets that seem to stand alone in their bucket, and their coefficients."""
    size = np.abs(buckets)
    same = (np.abs(size[1:] - size[0]) <= least).all(axis=0)
    places = np.flatnonzero(same & (size[0] > least))
    sets = ((buckets[1:, places] < 0) != (buckets[0, places] < 0)).T.astype(np.uint8)
    belongs = matrix.places(sets) == places
    return np.ascontiguousarray(sets[belongs]), buckets[0, places[belongs]]
