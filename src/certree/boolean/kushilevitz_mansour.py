"""Large coefficients of a function, from its values at chosen rows, by Kushilevitz and Mansour.

A prefix states for each of the first k features whether it belongs to a set. The squares of all
coefficients with one prefix sum to W = E f(y, z) f(y', z) chi(y y'). Here y and y' are independent
draws of the first k features, z is a draw of the others, and chi is the character of the prefix. All
prefixes of a coefficient of size theta have W >= theta^2, and few prefixes have. So the search extends
prefixes one feature at a time and drops those with a small W.

The estimates are ours: all prefixes of one length share their rows, each z is combined with several y
and all their pairs count, and rows are drawn until empirical Bernstein bounds decide each prefix.
"""

from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from certree.boolean.bits import Bits, TwoValued
from certree.boolean.query_counter import QueryCounter, Recovered, draw_signs, expect_probability
from certree.boolean.sets import pack_indicators
from certree.boolean.spectrum import Spectrum
from certree.certificates.inequalities.bounds import empirical_bernstein
from certree.interface.arrays import Float64
from certree.interface.signatures import validate_arguments

# Number of draws of y for each z, and of draws of z in the first round.
_Y_PER_Z, _FIRST_ROUND = 16, 64
# Smallest theta as a fraction of the largest value; the search would take years for smaller ones.
_SMALLEST_THETA = 1e-3
# Number of signed values that are held in memory at a time.
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
    """Find all Fourier coefficients of size `theta` or more, by evaluating a function at chosen rows.

    A coefficient belongs to a set of features: it is the mean over all rows of the function's value
    times the product of the signs of these features. The size of a number is its absolute value.

    Parameters
    ----------
    function : callable
        Takes rows, an array of integers (m, n_features) with the two values of `coding`, and
        returns one number for each. It may be noisy if the noise is independent in every
        evaluation; the coefficients are then those of its expectation.
    n_features : int
        Number of features.
    theta : float
        Smallest size of the coefficients to be found, at least `largest` / 1000.
    coding : {"0/1", "-1/+1"}
        The two values of the features in the rows that `function` gets. Pass "-1/+1" for a function
        of signs, such as a product of features. With "0/1" it would be evaluated at rows of 0 and
        1, where it is another function with another spectrum, which no check can notice; the
        result's text states the two values.
    largest : float
        Upper bound on the size of the function's values.
    delta : float
        Probability that the guarantee is wrong.
    budget : int or None
        Largest number of rows at which the function is evaluated; None: as many as needed. The
        number is about proportional to `n_features`, and grows at worst like theta^-4.
    random_state : int, RandomState or None
        Draws the rows.

    Returns
    -------
    Recovered
        Its `spectrum` has every set whose coefficient has size theta or more, and no set whose
        coefficient is smaller than ``theta / sqrt(2)``. All estimates are within theta / 4 of their
        coefficients. This holds with probability 1 - delta.

    Raises
    ------
    TypeError
        If `function` is not callable, or does not return numbers.
    ValueError
        If the budget is too small, theta is not in `largest` / 1000 .. `largest`, or `function`
        returns a number above `largest` or not one per row.

    References
    ----------
    Goldreich and Levin, "A hard-core predicate for all one-way functions", 1989; Kushilevitz and
    Mansour, "Learning decision trees using the Fourier spectrum", 1993; Maurer and Pontil, 2009.
    """
    expect_probability(delta)
    theta, largest = float(theta), float(largest)
    if not 0 < theta <= largest:
        raise ValueError(
            f"theta must be larger than 0 and at most largest={largest:g}, got {theta}"
        )
    queries = QueryCounter(function, Bits.two_valued(n_features, coding), budget)
    if theta / largest < _SMALLEST_THETA:
        raise ValueError(
            f"theta must be at least {_SMALLEST_THETA:g} * largest = "
            f"{_SMALLEST_THETA * largest:g}, "
            f"got {theta}: use a larger theta, as the number of queries grows like (largest / "
            "theta)^4"
        )
    log_delta = log(delta) - log(2)
    search = _PrefixSearch(queries, theta, largest, log_delta, check_random_state(random_state))
    prefixes = np.zeros((1, 0), dtype=bool)
    for _ in range(n_features):
        prefixes = search.extend(prefixes)
    coefficients = search.estimate_coefficients(prefixes, log_delta)
    spectrum = Spectrum.from_terms(pack_indicators(prefixes), coefficients[:, None], queries.bits)
    guarantee = (
        f"Every coefficient of size {theta:.6g} or more is among them, none is smaller than "
        f"{theta / 2**0.5:.6g}, and each is within {theta / 4:.6g}"
    )
    return Recovered(spectrum, queries.n_queries, budget, delta, True, guarantee)


class _PrefixSearch:
    """The search for all sets of features with large Fourier coefficients, feature by feature.

    A prefix states for each of the first k features whether it belongs to a set. Its weight W is
    the sum of the squared coefficients of all sets with this prefix. The search starts from the
    empty prefix. It extends prefixes by one feature at a time and drops those of small W. This
    object holds no prefixes: the caller passes them to `extend`.

    Parameters
    ----------
    queries : QueryCounter
        The function, which counts its evaluations.
    theta : float
        Smallest absolute value of the coefficients to be found; prefixes of smaller weight than
        theta^2 / 2 are dropped.
    largest : float
        Upper bound on the absolute values of the function.
    log_delta : float
        Logarithm of the probability that any of all decisions to keep or drop a prefix is wrong.
    rng : RandomState
        Draws the rows.
    """

    def __init__(
        self,
        queries: QueryCounter,
        theta: float,
        largest: float,
        log_delta: float,
        rng: np.random.RandomState,
    ) -> None:
        self._queries, self._theta, self._largest, self._rng = queries, theta, largest, rng
        # While no bound fails, kept prefixes have W >= theta^2 / 2, and all W of one length sum to at
        # most largest^2. That limits the number of estimates among which delta is divided.
        n_estimates = 4 * (largest / theta) ** 2 * len(queries.bits)
        self._log_delta_each = log_delta - log(n_estimates)

    def _evaluate(self, signs: Float64) -> Float64:
        """Evaluate the function at rows and return its values, (m,).

        signs: -1 or 1 for each feature, (m, n_features). Count the rows against the budget. Raise
        ValueError if an absolute value is above `largest` of the constructor, or the budget does
        not suffice.
        """
        values = self._queries.evaluate(signs)
        if values.size and np.abs(values).max() > self._largest:
            raise ValueError(
                "function must return numbers of absolute value at most "
                f"largest={self._largest:g}, got "
                f"{values[np.abs(values).argmax()]:g}: set largest to an upper bound"
            )
        return values

    def extend(self, prefixes: Prefixes) -> Prefixes:
        """Extend each prefix by one feature in both ways, and drop the extensions of small weight.

        W is the sum of the squared coefficients of all sets with the prefix. prefixes: whether each
        of the first features belongs to the set, (k, length) bool. Return the kept ones of the 2 k
        longer prefixes, (k', length + 1). All with a weight W >= theta^2 are kept, and none with W
        < theta^2 / 2, unless a confidence bound on W fails. Rows are drawn, and the function is
        evaluated at them, until every prefix is decided.
        """
        longer = np.concatenate(
            [np.column_stack([prefixes, np.full(len(prefixes), bit)]) for bit in (False, True)]
        )
        is_kept, is_decided = np.zeros(len(longer), dtype=bool), np.zeros(len(longer), dtype=bool)
        samples = np.zeros((len(longer), 0))
        n_rounds = 0
        while not is_decided.all():
            n_rounds += 1
            undecided = np.flatnonzero(~is_decided)
            fresh = np.zeros((len(longer), max(samples.shape[1], _FIRST_ROUND)))
            fresh[undecided] = self._estimate_weights(longer[undecided], fresh.shape[1])
            samples = np.hstack([samples, fresh])
            log_delta = self._log_delta_each - log(n_rounds * (n_rounds + 1))
            for i in undecided:
                is_decided[i], is_kept[i] = self._decide(samples[i], log_delta)
        return longer[is_kept]

    def _decide(self, sample: Float64, log_delta: float) -> tuple[bool, bool]:
        """Decide whether a prefix is kept, from estimates of its weight W.

        W is the sum of the squared coefficients of all sets with the prefix. Prefixes of W >=
        theta^2 are kept, those of W < theta^2 / 2 dropped; between both, either is right. theta,
        and the largest value of the function, which limits the estimates, are those of the
        constructor.

        Parameters
        ----------
        sample : ndarray of float64, shape (n,)
            Independent unbiased estimates of W.
        log_delta : float
            Logarithm of the probability that the empirical Bernstein bounds on W fail.

        Returns
        -------
        is_decided : bool
            Whether the bounds on W are narrow enough to decide.
        is_kept : bool
            Whether the prefix is kept; to be ignored if it is not decided.
        """
        mean, variance = float(sample.mean()), float(sample.var(ddof=1))
        value_range = self._largest**2 * (1 + 1 / (_Y_PER_Z - 1))
        upper = empirical_bernstein(mean, variance, len(sample), value_range, log_delta - log(2))
        half_width, square = upper - mean, self._theta**2
        if mean - half_width >= square / 2:
            return True, True
        if upper < square:
            return True, False
        return half_width <= square / 4, mean >= 3 * square / 4

    def _estimate_weights(self, prefixes: Prefixes, n: int) -> Float64:
        """Compute `n` independent unbiased estimates of the weight W of each prefix, (k, n).

        W is the sum of the squared coefficients of all sets with the prefix. prefixes: whether each
        of the first features belongs to the set, (k, length) bool. The function is evaluated at 16
        n rows, which all prefixes use; memory is limited by working in blocks.
        """
        n_at_once = max(_BLOCK // (_Y_PER_Z * max(len(prefixes), len(self._queries.bits))), 1)
        blocks = [
            self._estimate_block(prefixes, min(n_at_once, n - first))
            for first in range(0, n, n_at_once)
        ]
        return np.hstack(blocks)

    def _estimate_block(self, prefixes: Prefixes, n: int) -> Float64:
        """Compute `n` unbiased estimates of the weight W of each prefix, (k, n), all at once.

        W is the sum of the squared coefficients of all sets with the prefix. prefixes: whether each
        of the first features belongs to the set, (k, length) bool. Each estimate uses one draw z of
        the other features and 16 draws y of the first. It is the mean of f(y, z) f(y', z) chi(y)
        chi(y') over all pairs of different draws y and y', where f is the function and chi the
        product of the signs of the prefix's features.
        """
        length, n_bits = prefixes.shape[1], len(self._queries.bits)
        y = draw_signs(self._rng, n * _Y_PER_Z, length)
        z = np.repeat(draw_signs(self._rng, n, n_bits - length), _Y_PER_Z, axis=0)
        values = self._evaluate(np.hstack([y, z]))
        # The character of a set is -1 where an odd number of its features is -1.
        is_odd = ((y < 0).astype(np.float32) @ prefixes.T.astype(np.float32)) % 2
        signed = (values[:, None] * (1.0 - 2.0 * is_odd)).reshape(n, _Y_PER_Z, len(prefixes))
        squares = (values**2).reshape(n, _Y_PER_Z).sum(axis=1)
        pairs = signed.sum(axis=1) ** 2 - squares[:, None]
        return np.asarray(pairs.T) / (_Y_PER_Z * (_Y_PER_Z - 1))

    def estimate_coefficients(self, sets: Prefixes, log_delta: float) -> Float64:
        """Estimate the coefficient of each set of features as a mean over fresh random rows, (k,).

        The coefficient is the mean over all rows of the function's value times the product of the
        signs of the set's features. sets: whether each feature belongs to the set, (k, n_features)
        bool; log_delta: logarithm of the probability that any of the k estimates is more than a
        quarter of theta off (Hoeffding), which determines the number of rows. theta is the size
        from which the search finds a coefficient. Without sets the function is not evaluated.
        """
        if not len(sets):
            return np.zeros(0)
        ratio = 4 * self._largest / self._theta
        n = ceil(2 * ratio**2 * (log(2 * len(sets)) - log_delta))
        total, n_bits = np.zeros(len(sets)), len(self._queries.bits)
        n_at_once = max(_BLOCK // max(len(sets), n_bits), 1)
        for first in range(0, n, n_at_once):
            signs = draw_signs(self._rng, min(n_at_once, n - first), n_bits)
            is_odd = ((signs < 0).astype(np.float32) @ sets.T.astype(np.float32)) % 2
            total += self._evaluate(signs) @ (1.0 - 2.0 * is_odd)
        return total / n
