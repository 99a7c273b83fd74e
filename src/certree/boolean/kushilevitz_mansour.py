"""Large coefficients of a function that can be asked, by Kushilevitz and Mansour.

A prefix is a choice of which of the first k features a set has. The squares of all coefficients with
that prefix sum up to W = E f(y, z) f(y', z) chi(y y'), where y and y' are the first k features, drawn
independently, z the others, and chi the character of the prefix. A coefficient of size theta has
prefixes with W >= theta^2, and there are few of these; so the search goes from prefix to prefix.

The estimates are ours: all prefixes of a length share their rows, each z comes with several y, all
pairs of which count, and rows are drawn until each W is known well enough, by empirical Bernstein
bounds.
"""

from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from certree.boolean.bits import Bits, TwoValued
from certree.boolean.queries import Queries, Recovered, drawn_signs, expect_probability
from certree.boolean.sets import packed
from certree.boolean.spectrum import Spectrum
from certree.certificates.inequalities.bounds import empirical_bernstein
from certree.interface.arrays import Float64
from certree.interface.signatures import validate_arguments

# Each z comes with so many y, and is drawn so many times at first.
_TOGETHER, _FIRST = 16, 64
# Less than this share of the largest value would take years.
_SMALLEST = 1e-3
# So many numbers of a round are made at a time.
_BLOCK = 1 << 22

Prefixes = NDArray[np.bool_]


@validate_arguments
def kushilevitz_mansour(
    function: Any,
    n_features: int,
    theta: float,
    *,
    coding: TwoValued = "0/1",
    largest: float = 1.0,
    delta: float = 0.05,
    budget: int | None = None,
    random_state: Any = None,
) -> Recovered:
    """Find all coefficients of at least a size, by asking a function for its values.

    Parameters
    ----------
    function : callable
        Takes rows, an array of integers (m, n_features), and gives one number for each. Its answers may
        be noisy, if the noise of a row is drawn anew whenever it is asked; the coefficients are those
        of its expectation.
    n_features : int
        Number of features.
    theta : float
        Coefficients of this size and more are found.
    coding : {"0/1", "-1/+1"}
        The two values of features.
    largest : float
        No answer is larger in size.
    delta : float
        Probability that the promise is wrong.
    budget : int or None
        At most so many rows are asked; None: as many as it takes. The number grows like theta^-4.
    random_state : int, RandomState or None
        Draws the rows.

    Returns
    -------
    Recovered
        Every set whose coefficient has size theta or more is there, no set is there whose coefficient
        is smaller than ``theta / sqrt(2)``, and all coefficients are within theta / 4.

    Raises
    ------
    TypeError
        If `function` is not callable, or does not return numbers.
    ValueError
        If the budget is too small, an answer is too large, or there is not one for each row.

    References
    ----------
    Goldreich and Levin, "A hard-core predicate for all one-way functions", 1989; Kushilevitz and
    Mansour, "Learning decision trees using the Fourier spectrum", 1993; Maurer and Pontil, 2009.
    """
    expect_probability(delta)
    theta, largest = float(theta), float(largest)
    if not 0 < theta <= largest:
        raise ValueError(f"theta must lie between 0 and {largest:g}, got {theta}")
    queries = Queries(function, Bits.two_valued(n_features, coding), budget)
    if theta / largest < _SMALLEST:
        raise ValueError(
            f"theta must be at least {_SMALLEST:g} of largest, got {theta} of {largest}: the number of "
            "queries grows like theta^-4"
        )
    log_delta = log(delta) - log(2)
    search = _Search(queries, theta, largest, log_delta, check_random_state(random_state))
    prefixes = np.zeros((1, 0), dtype=bool)
    for _ in range(n_features):
        prefixes = search.lengthened(prefixes)
    coefficients = search.coefficients(prefixes, log_delta)
    found = Spectrum.of(packed(prefixes), coefficients[:, None], queries.bits)
    promise = (
        f"Every coefficient of size {theta:.6g} or more is among them, none is smaller than "
        f"{theta / 2**0.5:.6g}, and each is within {theta / 4:.6g}"
    )
    return Recovered(found, queries.n_queries, budget, delta, True, promise)


class _Search:
    """Which prefixes have coefficients below them that are large enough."""

    def __init__(
        self,
        queries: Queries,
        theta: float,
        largest: float,
        log_delta: float,
        rng: np.random.RandomState,
    ) -> None:
        self._queries, self._theta, self._largest, self._rng = queries, theta, largest, rng
        # While no bound fails, prefixes that stay have W of theta^2 / 2 at least, out of largest^2.
        n_estimates = 4 * (largest / theta) ** 2 * len(queries.bits)
        self._log_share = log_delta - log(n_estimates)

    def _ask(self, signs: Float64) -> Float64:
        values = self._queries.ask(signs)
        if values.size and np.abs(values).max() > self._largest:
            raise ValueError(
                f"function must return numbers of size {self._largest:g} at most (largest), got "
                f"{values[np.abs(values).argmax()]:g}"
            )
        return values

    def lengthened(self, prefixes: Prefixes) -> Prefixes:
        """The prefixes of one feature more whose W may be theta^2, and is at least half of it."""
        longer = np.concatenate(
            [np.column_stack([prefixes, np.full(len(prefixes), bit)]) for bit in (False, True)]
        )
        stays, known = np.zeros(len(longer), dtype=bool), np.zeros(len(longer), dtype=bool)
        samples = np.zeros((len(longer), 0))
        rounds = 0
        while not known.all():
            rounds += 1
            open_places = np.flatnonzero(~known)
            fresh = np.zeros((len(longer), max(samples.shape[1], _FIRST)))
            fresh[open_places] = self._drawn(longer[open_places], fresh.shape[1])
            samples = np.hstack([samples, fresh])
            log_delta = self._log_share - log(rounds * (rounds + 1))
            for place in open_places:
                known[place], stays[place] = self._decided(samples[place], log_delta)
        return longer[stays]

    def _decided(self, sample: Float64, log_delta: float) -> tuple[bool, bool]:
        """Whether W is known well enough, and whether its prefix stays then."""
        mean, variance = float(sample.mean()), float(sample.var(ddof=1))
        width = self._largest**2 * (1 + 1 / (_TOGETHER - 1))
        above = empirical_bernstein(mean, variance, len(sample), width, log_delta - log(2))
        half_width, square = above - mean, self._theta**2
        if mean - half_width >= square / 2:
            return True, True
        if above < square:
            return True, False
        return half_width <= square / 4, mean >= 3 * square / 4

    def _drawn(self, prefixes: Prefixes, n: int) -> Float64:
        """Independent unbiased estimates of each W, (prefixes, n)."""
        at_a_time = max(_BLOCK // (_TOGETHER * max(len(prefixes), len(self._queries.bits))), 1)
        parts = [
            self._estimates(prefixes, min(at_a_time, n - first)) for first in range(0, n, at_a_time)
        ]
        return np.hstack(parts)

    def _estimates(self, prefixes: Prefixes, n: int) -> Float64:
        length, n_bits = prefixes.shape[1], len(self._queries.bits)
        first = drawn_signs(self._rng, n * _TOGETHER, length)
        rest = np.repeat(drawn_signs(self._rng, n, n_bits - length), _TOGETHER, axis=0)
        values = self._ask(np.hstack([first, rest]))
        # The parity of a set is that of how many of its features are -1.
        odd = ((first < 0).astype(np.float32) @ prefixes.T.astype(np.float32)) % 2
        signed = (values[:, None] * (1.0 - 2.0 * odd)).reshape(n, _TOGETHER, len(prefixes))
        squares = (values**2).reshape(n, _TOGETHER).sum(axis=1)
        pairs = signed.sum(axis=1) ** 2 - squares[:, None]
        return np.asarray(pairs.T) / (_TOGETHER * (_TOGETHER - 1))

    def coefficients(self, sets: Prefixes, log_delta: float) -> Float64:
        """Means of the function times the character of each set, within theta / 4."""
        if not len(sets):
            return np.zeros(0)
        width = 4 * self._largest / self._theta
        n = ceil(2 * width**2 * (log(2 * len(sets)) - log_delta))
        total, n_bits = np.zeros(len(sets)), len(self._queries.bits)
        at_a_time = max(_BLOCK // max(len(sets), n_bits), 1)
        for first in range(0, n, at_a_time):
            signs = drawn_signs(self._rng, min(at_a_time, n - first), n_bits)
            odd = ((signs < 0).astype(np.float32) @ sets.T.astype(np.float32)) % 2
            total += self._ask(signs) @ (1.0 - 2.0 * odd)
        return total / n
