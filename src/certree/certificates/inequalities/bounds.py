"""Upper bounds on a risk (expected loss on new rows) as functions of observed numbers.

Each bound holds with probability at least ``1 - delta`` over the draw of n independent calibration
rows. The shared parameters are:

n : float
    Number of rows, or of groups of rows.
complexity : float
    Price of choosing a hypothesis by the same rows, in nats: minus the log of its prior
    probability, or the divergence of the posterior over hypotheses from the prior; 0 for a
    hypothesis that was fixed before.
log_delta : float
    Natural logarithm of delta, < 0. Logarithms are used as delta may be far below the smallest
    double.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincc, betainccinv, betaln, gammaincc

from certree.certificates.inequalities.order_statistics import compute_cdf_bound
from certree.certificates.inequalities.weighted_errors import bound_weighted_errors

# Below this value the incomplete beta function is imprecise, as it is about to underflow.
_SMALLEST_TAIL = 1e-280
# Log of a level whose square is below the precision of doubles.
_TINY = -40.0
# For more rows Stirling's formula is more precise than the difference of lgamma and n log n.
_MANY_ROWS = 10**6
# Fraction of a threshold's level that the two limits of the prevalence use; the confidence band of each
# class uses half of the rest.
_OF_PREVALENCE = 0.1
# The tilts of the martingale bound double from the least one until one is at least this large.
_LARGE_TILT = 2.0
# Fraction of the level of the cost of two kinds of errors that the limits of both use, the log of the
# smallest level at which the two are bounded jointly, and the most rows: beyond them log-gamma is not
# precise enough, and the joint bound takes seconds.
_OF_LIMITS, _LEAST_JOINT_LEVEL, _MOST_JOINT_ROWS = 0.05, -600.0, 2**24


def _find_boundary(
    holds: Callable[[float], bool], inside: float, outside: float, guess: float
) -> float:
    """Find by bisection the number at which a monotone condition stops to hold, to the next double.

    Parameters
    ----------
    holds : callable of float to bool
        True at `inside` and up to the boundary, False from there to `outside`.
    inside, outside : float
        Ends of the search, in either order.
    guess : float
        Estimate of the boundary, which saves most steps if it is close.

    Returns
    -------
    float
        The first double past the boundary, at which `holds` is False; `outside` if there is none
        before it.
    """
    for number in (guess - 8 * math.ulp(guess), guess + 8 * math.ulp(guess)):
        if min(inside, outside) < number < max(inside, outside):
            if holds(number):
                inside = number
            else:
                outside = number
    while True:
        middle = inside + (outside - inside) / 2
        if middle in (inside, outside):
            return outside
        if holds(middle):
            inside = middle
        else:
            outside = middle


def _log_beta_fraction(a: float, b: float, x: float) -> float:
    """Compute the log of the continued fraction of the incomplete beta function at (a, b, x).

    a, b: parameters of the function, > 0; x: its argument, between 0 and 1. It converges fast for
    ``x < (a + 1) / (a + b + 2)``. By Lentz's algorithm: Press, Teukolsky, Vetterling and Flannery,
    "Numerical Recipes", Section 6.4.
    """
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    fraction, step, j = d, 0.0, 0
    while abs(step - 1) > 1e-15:
        j += 1
        even = j * (b - j) * x / ((a + 2 * j - 1) * (a + 2 * j))
        odd = -(a + j) * (a + b + j) * x / ((a + 2 * j) * (a + 2 * j + 1))
        step = 1.0
        for term in (even, odd):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            step *= c * d
        fraction *= step
    return math.log(fraction)


def log_binomial_tail(errors: float, n: float, p: float) -> float:
    """Compute log P(Bin(n, p) <= errors).

    It is the log of the probability that at most `errors` of n independent rows are errors. errors,
    n: numbers with 0 <= errors < n; p: probability of an error. If `errors` is not an integer, the
    incomplete beta function interpolates. Return -inf at p = 1.
    """
    a, b = n - errors, errors + 1
    tail = float(betaincc(b, a, p))
    if tail > _SMALLEST_TAIL:
        return math.log(tail)
    if p == 1:
        return -math.inf
    log_front = a * math.log1p(-p) + b * math.log(p) - float(betaln(a, b)) - math.log(a)
    return log_front + _log_beta_fraction(a, b, 1 - p)


def binomial_upper(errors: float, n: float, log_delta: float) -> float:
    """Compute the exact (Clopper-Pearson) upper confidence limit of a binomial probability.

    It is the largest p with ``P(Bin(n, p) <= errors) >= delta``.

    Parameters
    ----------
    errors : float
        Number of errors, 0 .. n.
    n : float
        Number of rows.
    log_delta : float
        Log of delta, < 0; -inf gives 1.

    Returns
    -------
    float
        The limit, 0 .. 1; 1 if all rows are errors.

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 1934. Langford, "Tutorial on practical prediction theory for
    classification", JMLR 2005.
    """
    if not 0 <= errors <= n:
        raise ValueError(f"errors must lie in 0 .. {n}, got {errors!r}")
    _check_log_delta(log_delta)
    if errors == n:
        return 1.0
    guess = float(betainccinv(errors + 1, n - errors, math.exp(log_delta)))
    return _find_boundary(lambda p: log_binomial_tail(errors, n, p) >= log_delta, 0.0, 1.0, guess)


def _compute_divergence_term(share: float, expected: float, excess: float) -> float:
    """Compute ``share * log(share / expected)``, one term of a divergence.

    share, expected: probabilities of one outcome under the two distributions; 0 if share is 0.
    excess: ``expected - share``, which the caller knows more precisely than the difference of the
    two.
    """
    if share == 0:
        return 0.0
    if abs(excess) < share / 2:
        return -share * math.log1p(excess / share)
    return share * (math.log(share) - math.log(expected))


def kl(q: float, p: float) -> float:
    """Compute the divergence (nats) of a Bernoulli distribution of mean q from one of mean p, kl(q, p).

    q, p: between 0 and 1. Return inf if p is 0 or 1 and q differs.
    """
    if p in (0, 1) and p != q:
        return math.inf
    return max(
        _compute_divergence_term(q, p, p - q) + _compute_divergence_term(1 - q, 1 - p, q - p), 0.0
    )


def kl_upper(q: float, nats: float) -> float:
    """Return the largest p with ``kl(q, p) <= nats``, for nats >= 0; q is clipped to 0 .. 1.

    kl(q, p) is the divergence of a Bernoulli distribution of mean q from one of mean p. If q is the
    mean of n independent losses in 0 .. 1, and nats is ``log(1 / delta) / n``, the result is an
    upper limit of the true mean, which fails with probability at most delta.
    """
    q = min(max(q, 0.0), 1.0)
    if q == 0:
        return -math.expm1(-nats)
    return _find_boundary(lambda p: kl(q, p) <= nats, q, 1.0, _kl_inverse(q, nats, 1))


def kl_lower(q: float, nats: float) -> float:
    """Return the smallest p with ``kl(q, p) <= nats``, for nats >= 0; q is clipped to 0 .. 1.

    kl(q, p) is the divergence of a Bernoulli distribution of mean q from one of mean p. If q is the
    mean of n independent losses in 0 .. 1, and nats is ``log(1 / delta) / n``, the result is a
    lower limit of the true mean, which fails with probability at most delta.
    """
    q = min(max(q, 0.0), 1.0)
    if q == 1:
        return math.exp(-nats)
    return _find_boundary(lambda p: kl(q, p) <= nats, q, 0.0, _kl_inverse(q, nats, -1))


def _kl_inverse(q: float, nats: float, side: int) -> float:
    """Estimate the p above q (side 1) or below q (side -1) at which ``kl(q, p) = nats``.

    kl(q, p) is the divergence (nats) of a Bernoulli distribution of mean q from one of mean p.
    Newton's method, at most ten steps, starts from the p of Pinsker's inequality, at which kl is at
    least `nats`. Return q if that p is outside (0, 1).
    """
    p = q + side * math.sqrt(nats / 2)
    if not 0 < p < 1:
        return q
    for _ in range(10):
        step = (kl(q, p) - nats) * p * (1 - p) / (p - q) if p != q else 0.0
        if not 0 < p - step < 1:
            break
        p -= step
        if abs(step) <= 4 * math.ulp(p):
            break
    return p


def log_xi(n: float) -> float:
    """Compute the log of Maurer's constant ``sum_k C(n, k) (k/n)^k (1 - k/n)^(n - k)``, for n > 0.

    By Abel's identity the sum is ``n! / n^n sum_k n^k / k!``. For n >= 1 it lies
    between sqrt(n) and 2 sqrt(n).

    References
    ----------
    Maurer, "A note on the PAC Bayesian theorem", arXiv:cs/0411099, 2004. Riordan, "Combinatorial
    identities", 1968, Section 1.5.
    """
    # Stirling's formula for large n, where the large terms of the difference would cancel.
    log_factorial = math.lgamma(n + 1) - n * math.log(n) + n
    if n > _MANY_ROWS:
        log_factorial = 0.5 * math.log(2 * math.pi * n) + 1 / (12 * n)
    return log_factorial + math.log(gammaincc(n + 1, n))


def occam(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the Occam bound on the error of a hypothesis with a prior probability.

    It is the Clopper-Pearson bound that fails with probability delta times that probability.

    risk: fraction of errors among the n rows; complexity: minus the log of the hypothesis' prior
    probability (nats); log_delta: log of the probability that any bound fails. The bound holds for
    all hypotheses at once.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005.
    """
    _check_log_delta(log_delta)
    return binomial_upper(_count_errors(risk, n), n, log_delta - complexity)


def occam_holds(bound: float, risk: float, n: float, complexity: float, log_delta: float) -> bool:
    """Return whether ``occam(risk, n, complexity, log_delta)`` is at most `bound`.

    Faster than computing the Occam bound. risk: fraction of errors among n rows; complexity: minus
    the log of the hypothesis' prior probability (nats); log_delta: log of the probability that any
    bound fails.
    """
    errors = _count_errors(risk, n)
    return bound == 1 or (
        errors < n and log_binomial_tail(errors, n, bound) < log_delta - complexity
    )


def occam_leaf(risk: float, share: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the bound on the error in one leaf, such that the bounds of all leaves hold together.

    The bound of the leaf fails with probability ``1 - (1 - delta)^share``. Given the number of rows
    in each leaf, errors of different leaves are independent, so that bounds whose shares sum to 1
    hold together with probability ``1 - delta``.

    Parameters
    ----------
    risk : float
        Fraction of errors among the rows of the leaf.
    share : float
        The leaf's exponent in this formula, in (0, 1]; the exponents of all leaves sum to 1.
    n : float
        Number of rows of the leaf; 0 gives the bound 1.
    complexity, log_delta : float
        Price of choosing by the rows (nats), the same for all leaves, by which log_delta is
        lowered; natural log of the probability that the bound of any leaf fails, < 0.

    Returns
    -------
    float
        Bound on the error in the leaf.

    Raises
    ------
    ValueError
        If `share` is not in (0, 1], or `log_delta` is not below 0.

    References
    ----------
    Sidak, "Rectangular confidence regions for the means of multivariate normal distributions", JASA
    1967, for independent events; Clopper and Pearson, Biometrika 1934, for each.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    _check_log_delta(log_delta)
    log_level = log_delta - complexity
    if log_level < _TINY:  # Bernoulli's inequality, which is almost an equality here
        return occam(risk, n, 0.0, log_level + math.log(share))
    return occam(risk, n, 0.0, math.log(-math.expm1(share * math.log1p(-math.exp(log_level)))))


def occam_gap(
    risk: float, other: float, share: float, n: float, complexity: float, log_delta: float
) -> float:
    """Bound the risk on one subset of rows minus the risk on another, disjoint subset.

    The upper limit of the first minus the lower limit of the second, with half of delta each.

    Parameters
    ----------
    risk, other : float
        Fraction of errors in the first and in the second subset.
    share : float
        Fraction of the n rows that are in the first subset.
    n : float
        Number of rows of both subsets together.
    complexity, log_delta : float
        Price of choosing by the rows (nats), by which log_delta is lowered; natural log of the
        probability that the bound fails, < 0.

    Returns
    -------
    float
        Bound on the difference, at least 0.

    References
    ----------
    Clopper and Pearson, Biometrika 1934, for each limit.
    """
    _check_log_delta(log_delta)
    half, first = log_delta - math.log(2), round(share * n)
    lowest = 1 - occam(1 - other, n - first, complexity, half)
    return max(occam(risk, first, complexity, half) - lowest, 0.0)


def occam_mix(*numbers: float) -> float:
    """Bound the risk when subsets of the rows have new, known frequencies, by bounds on all subsets.

    Parameters
    ----------
    *numbers : float
        For each subset three numbers: its fraction of the new rows, the fraction of errors in it,
        and its fraction of the n calibration rows. Then n, complexity and log_delta: number of
        rows; price of choosing by the rows (nats), by which log_delta is lowered; log of the
        probability that the bound fails. Complexity and log_delta are those of the bound on each
        single subset.

    Returns
    -------
    float
        The mean of the subsets' bounds, weighted by their fractions of the new rows; at most 1.

    References
    ----------
    The law of total probability; Clopper and Pearson, Biometrika 1934, for each subset.
    """
    *observed, n, complexity, log_delta = numbers
    total = sum(
        new * occam(risk, round(old * n), complexity, log_delta)
        for new, risk, old in _split_triples(observed)
    )
    return min(total, 1.0)


def _split_triples(numbers: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    """Yield the numbers in triples; raise ValueError if their count is not a multiple of three.

    Each triple is of one subset of the rows: its fraction of the new rows, the fraction of errors
    in it, and its fraction of the calibration rows.
    """
    if len(numbers) % 3:
        raise ValueError(
            "observed must be a flat list with three numbers for each subset of the rows (its fraction "
            "of the new rows, its fraction of errors, its fraction of the calibration rows), got "
            f"{len(numbers)} numbers, which is no multiple of 3: pass all three for each subset"
        )
    return zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)


def prevalence_limits(positives: int, n: int, log_level: float) -> tuple[float, float]:
    """Compute lower and upper confidence limits of the fraction of positive rows.

    positives: number of positive rows among n; log_level: natural log of the probability that any
    limit at any threshold fails. These two limits use a tenth of it, half of that each. Return
    (lower, upper).
    """
    half = log_level + math.log(_OF_PREVALENCE / 2)
    return 1 - binomial_upper(n - positives, n, half), binomial_upper(positives, n, half)


def compute_rate_level(log_level: float) -> float:
    """Return the log of the probability with which one class's confidence band may fail.

    The band limits the distribution of the scores of the rows of the class. log_level: natural log
    of the probability that any limit at any threshold fails; the band of each of the two classes
    uses 45 % of that probability.
    """
    return log_level + math.log((1 - _OF_PREVALENCE) / 2)


def highest_cost(missed: Any, alarmed: Any, prevalence: tuple[float, float]) -> Any:
    """Compute the largest mean cost of a row over all prevalences within limits.

    The mean cost ``pi * missed + (1 - pi) * alarmed`` is linear in the prevalence pi of the
    positive class, so it is largest at one of its limits.

    Parameters
    ----------
    missed : float or ndarray of shape (m,)
        Mean cost of a positive row.
    alarmed : float or ndarray of shape (m,)
        Mean cost of a negative row.
    prevalence : tuple of two floats
        Lower and upper limit of pi.

    Returns
    -------
    float or ndarray of shape (m,)
        In the units of the costs.
    """
    ends = (share * missed + (1 - share) * alarmed for share in prevalence)
    return np.maximum(*ends)


def threshold_cost(*numbers: float) -> float:
    """Bound the mean cost at a decision threshold, for all thresholds and all costs at once.

    Uses a simultaneous confidence band of the score distribution of each class, and limits of the
    prevalence.

    Parameters
    ----------
    *numbers : float
        In this order: number of false negatives, of false positives and of positive rows, each
        divided by n; cost of a false negative; cost of a false positive; n, complexity and
        log_delta (number of rows; price of choosing by the rows, nats, by which log_delta is
        lowered; log of the probability that the bound fails).

    Returns
    -------
    float
        Bound on the mean cost of a row.

    References
    ----------
    Those of `order_statistics.compute_cdf_bounds`; Clopper and Pearson, Biometrika 1934, for the
    prevalence.
    """
    missed, alarms, positive, of_miss, of_alarm, n, complexity, log_delta = numbers
    _check_log_delta(log_delta)
    rows, log_level = int(n), log_delta - complexity
    positives = round(positive * rows)
    negatives = rows - positives
    found = min(max(positives - round(missed * rows), 0), positives)
    rejected = min(max(negatives - round(alarms * rows), 0), negatives)
    of_rates = compute_rate_level(log_level)
    misses = of_miss * (1 - compute_cdf_bound(found, positives, of_rates))
    false_alarms = of_alarm * (1 - compute_cdf_bound(rejected, negatives, of_rates))
    limits = prevalence_limits(positives, rows, log_level)
    return float(highest_cost(misses, false_alarms, limits))


def named_cost(*numbers: float) -> float:
    """Bound the mean cost at one threshold; threshold and costs are fixed before the rows.

    Parameters
    ----------
    *numbers : float
        In this order: number of false negatives and of false positives, each divided by n; cost of
        a false negative; cost of a false positive; n, complexity and log_delta (number of rows;
        price of choosing by the rows, nats, by which log_delta is lowered; log of the probability
        that the bound fails).

    Returns
    -------
    float
        Bound on the mean cost of a row.

    References
    ----------
    Clopper and Pearson, Biometrika 1934, for upper limits of both error probabilities, which use a
    twentieth of the level, exp(log_delta - complexity); Buehler, "Confidence intervals for the
    product of two binomial parameters", JASA 1957, within these limits, at the rest of the level. If
    only one kind of error costs something, or both cost the same, the bound is that of Clopper and
    Pearson. Below a level of exp(-600), the smallest that float64 serves, and above 2^24 rows it is
    the cost at both upper limits.
    """
    missed, alarms, of_miss, of_alarm, n, complexity, log_delta = numbers
    _check_log_delta(log_delta)
    rows, log_level = int(n), log_delta - complexity
    errors, weights = (round(missed * rows), round(alarms * rows)), (of_miss, of_alarm)
    if of_miss == of_alarm:
        return of_miss * binomial_upper(sum(errors), rows, log_level)
    if not of_miss * of_alarm:
        only = errors[0] if of_miss else errors[1]
        return max(weights) * binomial_upper(only, rows, log_level)
    each = log_level + math.log(_OF_LIMITS / 2)
    limits = binomial_upper(errors[0], rows, each), binomial_upper(errors[1], rows, each)
    if log_level < _LEAST_JOINT_LEVEL or rows > _MOST_JOINT_ROWS:
        return min(of_miss * limits[0] + of_alarm * limits[1], max(weights))
    joint = log_level + math.log1p(-_OF_LIMITS)
    return bound_weighted_errors(errors, rows, weights, joint, limits)


def _count_errors(risk: float, n: float) -> float:
    """Return ``risk * n``, rounded to an integer if it is one up to rounding errors.

    risk: fraction of errors; n: number of rows.
    """
    errors = risk * n
    whole = round(errors)
    return whole if abs(errors - whole) <= 1e-9 * max(n, 1) else errors


def find_order_statistic(n: int, coverage: float, log_delta: float) -> int:
    """Find the rank of the calibration number that covers a fraction of new numbers.

    Parameters
    ----------
    n : int
        Number of independent calibration numbers.
    coverage : float
        Fraction of new numbers that shall be at most the one of that rank, between 0 and 1.
    log_delta : float
        Log of the probability that fewer are.

    Returns
    -------
    int
        ``1 + quantile_{1 - delta} Bin(n, coverage)``, the smallest rank (from 1, in ascending
        order) that covers; n + 1 if even the largest number does not.

    References
    ----------
    Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
    Statistics 1941. With ties the coverage is larger.
    """
    _check_log_delta(log_delta)

    def covers(place: int) -> bool:
        """Return whether the number of rank `place` covers the fraction `coverage` of new numbers.

        The rank counts from 1 in ascending order of the n calibration numbers. Uses `n`, `coverage`
        and `log_delta` of the enclosing function.
        """
        return log_binomial_tail(float(n - place), float(n), 1 - coverage) <= log_delta

    below, place = 0, n + 1
    while place - below > 1:
        middle = (below + place) // 2
        below, place = (below, middle) if covers(middle) else (middle, place)
    return place


def count_rows_to_cover(coverage: float, log_delta: float) -> int:
    """Return the smallest number of calibration numbers whose maximum covers a fraction of new numbers.

    coverage: fraction of new numbers that shall be at most the largest calibration number, between
    0 and 1; log_delta: log of the probability that fewer are. The result is the smallest n >= 1
    with ``coverage**n <= delta``.
    """
    _check_log_delta(log_delta)
    n = max(math.ceil(log_delta / math.log(coverage)), 1)
    while find_order_statistic(n, coverage, log_delta) > n:  # correct rounding errors
        n += 1 + n // 2**40
    return n


def occam_mean(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the Occam bound for losses between 0 and 1.

    It is the largest p with ``kl(risk, p) <= (complexity - log_delta) / n``.

    risk: mean loss of the n rows, 0 .. 1; complexity: minus the log of the hypothesis' prior
    probability (nats); log_delta: log of the probability that any bound fails.

    References
    ----------
    Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963.
    """
    _check_log_delta(log_delta)
    return kl_upper(risk, max(complexity - log_delta, 0.0) / n)


def occam_mean_holds(
    bound: float, risk: float, n: float, complexity: float, log_delta: float
) -> bool:
    """Return whether ``occam_mean(risk, n, complexity, log_delta)`` is at most `bound`.

    Faster than computing the bound. risk: mean loss of n rows; complexity: minus the log of the
    hypothesis' prior probability (nats); log_delta: log of the probability that any bound fails.
    """
    return bound == 1 or (risk <= bound and n * kl(risk, bound) >= complexity - log_delta)


def martingale_mean(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute an upper bound on the mean conditional risk of rows that may depend on each other.

    The conditional risk of a row is the expected loss given all earlier rows, for losses between 0
    and 1. For each tilt t > 0 the product of ``exp(-t loss) / (1 - c risk)`` with ``c = 1 -
    exp(-t)`` over the rows is a nonnegative supermartingale. As the logarithm is concave, it is at
    least ``exp(-t S) / (1 - c m)^n`` for the sum S of the losses and the mean m of the conditional
    risks. The bound is the largest m at which the mean of these numbers over a few tilts is at most
    1/delta.

    Parameters
    ----------
    risk : float
        Mean loss of the n rows, 0 .. 1.
    n : float
        Number of rows, fixed without their losses.
    complexity : float
        Minus the log of the hypothesis' prior probability (nats).
    log_delta : float
        Log of the probability that any bound fails.

    Returns
    -------
    float
        The bound, 0 .. 1.

    References
    ----------
    Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform Chernoff bounds via nonnegative
    supermartingales", Probability Surveys 2020. Robbins, "Statistical methods related to the law of
    the iterated logarithm", Annals of Mathematical Statistics 1970, for mixtures.
    """
    _check_log_delta(log_delta)
    nats = max(complexity - log_delta, 0.0)
    risk = min(max(risk, 0.0), 1.0)
    tilts = _choose_tilts(n, nats)
    return _find_boundary(
        lambda p: _log_martingale_mixture(p, risk, n, tilts) <= nats,
        risk,
        1.0,
        kl_upper(risk, (nats + math.log(len(tilts) + 1)) / n),
    )


def martingale_mean_holds(
    bound: float, risk: float, n: float, complexity: float, log_delta: float
) -> bool:
    """Return whether ``martingale_mean(risk, n, complexity, log_delta)`` is at most `bound`.

    Faster than computing the bound. risk: mean loss of n rows; complexity: minus the log of the
    hypothesis' prior probability (nats); log_delta: log of the probability that any bound fails.
    """
    nats = max(complexity - log_delta, 0.0)
    return bound == 1 or (
        risk < bound and _log_martingale_mixture(bound, risk, n, _choose_tilts(n, nats)) > nats
    )


def _choose_tilts(n: float, nats: float) -> list[float]:
    """Return the finite tilts t of the martingale bound, in ascending order.

    The bound averages ``exp(-t S) / (1 - (1 - exp(-t)) m)^n`` over tilts, where S is the sum of the
    n losses and m their mean conditional risk. The smallest tilt is best if the risk is one half;
    each further one is twice as large. n: number of rows; nats: minus the log of the probability
    that the bound fails, > 0.
    """
    tilts = [math.sqrt(8 * nats / n)]
    while tilts[-1] < _LARGE_TILT:
        tilts.append(2 * tilts[-1])
    return tilts


def _log_martingale_mixture(p: float, risk: float, n: float, tilts: Sequence[float]) -> float:
    """Compute the log of the mean over all tilts of ``exp(-t n risk) / (1 - (1 - exp(-t)) p)^n``.

    p: mean conditional risk, 0 .. 1; risk: mean loss of n rows; tilts: the finite tilts t. The tilt
    infinity is always added; it counts if the risk is 0.
    """
    logs = [-n * (t * risk + math.log1p(math.expm1(-t) * p)) for t in tilts]
    if risk == 0:
        logs.append(math.inf if p == 1 else -n * math.log1p(-p))
    largest = max(logs)
    if math.isinf(largest):
        return largest
    total = math.fsum(math.exp(one - largest) for one in logs)
    return largest + math.log(total / (len(tilts) + 1))


def pac_bayes_kl(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the PAC-Bayes-kl bound on the risk of a posterior, for all posteriors at once.

    A posterior is a distribution over hypotheses, which the rows may choose. risk: observed risk of
    a hypothesis drawn from it; n: number of rows; complexity: divergence of the posterior from the
    prior (nats); log_delta: log of the probability that the bound fails.

    References
    ----------
    Langford and Seeger, "Bounds for averaging classifiers", 2001; Maurer, "A note on the PAC
    Bayesian theorem", arXiv:cs/0411099, 2004.
    """
    return kl_upper(risk, _compute_pac_bayes_radius(n, complexity, log_delta))


def pac_bayes_lambda(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the PAC-Bayes-lambda bound at its best lambda: a closed form, never below `pac_bayes_kl`.

    It bounds the risk of a posterior, a distribution over hypotheses, which the rows may choose.
    risk: observed risk of a hypothesis drawn from it; n: number of rows; complexity: divergence of
    the posterior from the prior (nats); log_delta: log of the probability that the bound fails.

    References
    ----------
    Thiemann, Igel, Wintenberger and Seldin, "A strongly quasiconvex PAC-Bayesian bound", ALT 2017,
    with the constant of Maurer.
    """
    nats = n * _compute_pac_bayes_radius(n, complexity, log_delta)
    if nats == 0:
        return risk
    lam = 2 / (math.sqrt(2 * n * risk / nats + 1) + 1)
    return min((risk + nats / (lam * n)) / (1 - lam / 2), 1.0)


def pac_bayes_fixed_lambda(
    risk: float, n: float, complexity: float, log_delta: float, lam: float
) -> float:
    """Compute the PAC-Bayes-lambda bound at one lambda, for all posteriors and all lambdas at once.

    ``(risk + (complexity + log(2 sqrt(n)) - log_delta) / (lam n)) / (1 - lam / 2)``, not limited to
    1.

    Parameters
    ----------
    risk : float
        Observed risk of the posterior, of losses between 0 and 1; or, for a bound on the loss in
        excess of that of another predictor, the observed excess plus the amount by which sampling
        may lower it.
    n : float
        Number of rows, >= 8.
    complexity, log_delta : float
        Divergence of the posterior from the prior (nats); natural log of the probability that the
        bound fails, < 0.
    lam : float
        Lambda, between 0 and 2.

    Returns
    -------
    float
        The bound, on the risk or on the excess.

    References
    ----------
    Thiemann, Igel, Wintenberger and Seldin, "A strongly quasiconvex PAC-Bayesian bound", ALT 2017,
    as in Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Proposition 1.
    """
    _check_log_delta(log_delta)
    if not n >= 8:
        raise ValueError(f"n must be at least 8, got {n!r}: use more rows, or another method")
    lam = check_lambda_error(lam)
    nats = complexity + math.log(2) + math.log(n) / 2 - log_delta
    return (risk + nats / (lam * n)) / (1 - lam / 2)


def check_lambda_error(lam: float) -> float:
    """Return `lam` as a float, after a check that it is between 0 and 2.

    lam: the parameter lambda of the PAC-Bayes-lambda bound. Raises ValueError if it is not.
    """
    if not 0 < lam < 2:
        raise ValueError(
            f"lambda_error must lie between 0 and 2, got {lam!r}: use for instance 1.0"
        )
    return float(lam)


def first_order(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the first-order bound on the error of a majority vote: twice that of the posterior.

    The posterior is the distribution of the voting weights over the hypotheses. risk: observed risk
    of a hypothesis drawn from the posterior; n: number of rows; complexity: divergence of the
    posterior from the prior (nats); log_delta: log of the probability that the bound fails. At most
    1.

    References
    ----------
    Langford and Shawe-Taylor, "PAC-Bayes and margins", NeurIPS 2002.
    """
    return min(2 * pac_bayes_kl(risk, n, complexity, log_delta), 1.0)


def first_order_range(
    risk: float, right: float, wrong: float, n: float, complexity: float, log_delta: float
) -> float:
    """Bound the error of a majority vote by the posterior's risk, given the range of its wrong mass.

    The wrong mass of a row is the posterior probability of the hypotheses that predict it wrongly.
    The posterior is the distribution of the voting weights over the hypotheses.

    Parameters
    ----------
    risk : float
        Observed risk of the posterior.
    right, wrong : float
        Smallest wrong mass of any row that the vote predicts correctly, and wrongly.
    n, complexity, log_delta : float
        Number of independent rows; price of choosing by these rows (nats: minus the log prior
        probability of the hypothesis, or the divergence of the posterior from the prior); natural
        log of the probability that the bound fails, < 0.

    Returns
    -------
    float
        ``(PAC-Bayes-kl bound - right) / (wrong - right)``, limited to 0 .. 1; 1 if ``wrong <=
        right``.

    References
    ----------
    Leblanc and Germain, "A framework for bounding deterministic risk with PAC-Bayes: applications
    to majority votes", arXiv:2510.25569, 2025. ``right = 0``, ``wrong = 1/2`` is `first_order`.
    """
    if wrong <= right:
        return 1.0
    excess = pac_bayes_kl(risk, n, complexity, log_delta) - right
    return min(max(excess / (wrong - right), 0.0), 1.0)


def tandem(both_wrong: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the tandem bound on a majority vote: four times the risk that two draws are both wrong.

    The posterior is the distribution of the voting weights over the hypotheses. both_wrong:
    observed probability that two hypotheses drawn from the posterior are both wrong; n: number of
    rows; complexity: divergence of the posterior from the prior (nats); log_delta: log of the
    probability that the bound fails.

    References
    ----------
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.
    """
    return tuples(both_wrong, 2, 2, 1, n, complexity, log_delta)


def either_wrong(one_wrong: float, n: float, complexity: float, log_delta: float) -> float:
    """Bound the error of a majority vote by 4/3 of the risk that at least one of two draws is wrong.

    If the vote is wrong, a draw is wrong with probability at least 1/2, so at least one of two with
    at least 3/4. At most 1. The posterior is the distribution of the voting weights over the
    hypotheses. one_wrong: observed probability that at least one of two hypotheses drawn from the
    posterior is wrong; n: number of rows; complexity: divergence of the posterior from the prior
    (nats); log_delta: log of the probability that the bound fails.
    """
    return tuples(one_wrong, 2, 1, 1, n, complexity, log_delta)


def at_least_wrong(p: float, n_draws: int, n_wrong: int) -> float:
    """Compute P(Bin(n_draws, p) >= n_wrong), with 1 <= n_wrong <= n_draws.

    It is the probability that at least n_wrong of n_draws independent draws are wrong, if each is
    with probability p.
    """
    return float(betaincc(n_draws - n_wrong + 1, n_wrong, 1 - p))


def tuples(
    share: float,
    n_draws: int,
    n_wrong: int,
    n_kinds: int,
    n: float,
    complexity: float,
    log_delta: float,
) -> float:
    """Bound the error of a majority vote by the risk that several of some draws are wrong.

    The bound on the risk that at least `n_wrong` of `n_draws` draws are wrong, divided by that
    probability when each draw is wrong with probability 1/2. (n_draws, n_wrong) = (1, 1) is
    `first_order`, (2, 2) `tandem` and (2, 1) `either_wrong`. The posterior is the distribution of
    the voting weights over the hypotheses.

    Parameters
    ----------
    share : float
        Observed probability that at least `n_wrong` of `n_draws` hypotheses drawn from the
        posterior are wrong.
    n_draws, n_wrong : int
        Number of draws, and of wrong ones.
    n_kinds : int
        Number of pairs (n_draws, n_wrong) that are tried, which share delta equally.
    n, complexity, log_delta : float
        Number of independent rows; divergence of the posterior from the prior (nats), which counts
        once for each draw; natural log of the probability that the bound fails, < 0.

    Returns
    -------
    float
        At most 1.

    References
    ----------
    Lacasse, Laviolette, Marchand and Turgeon-Boutin, "Learning with randomized majority votes",
    ECML 2010, has the case ``n_wrong = (n_draws + 1) / 2``; the others follow in the same way.
    """
    if not 1 <= n_wrong <= n_draws:
        raise ValueError(f"n_wrong must lie in 1 .. {n_draws}, got {n_wrong!r}")
    risk = pac_bayes_kl(share, n, n_draws * complexity, log_delta - math.log(n_kinds))
    return min(risk / at_least_wrong(0.5, n_draws, n_wrong), 1.0)


def chebyshev_cantelli(risk: float, one_wrong: float) -> float:
    """Bound the error of a majority vote by the mean and the variance of its wrong mass.

    ``1 - (1 - 2 risk)^2 / (1 - 2 one_wrong)``; 1 if risk or one_wrong is at least 1/2. The
    posterior is the distribution of the voting weights over the hypotheses.

    Parameters
    ----------
    risk : float
        Upper bound on the risk of the posterior.
    one_wrong : float
        Lower bound on the probability that exactly one of two draws is wrong.

    Returns
    -------
    float
        The bound, 0 .. 1.

    References
    ----------
    Lacasse, Laviolette, Marchand, Germain and Usunier, "PAC-Bayes bounds for the risk of the
    majority vote and the variance of the Gibbs classifier", NeurIPS 2006.
    """
    if risk >= 0.5 or one_wrong >= 0.5:
        return 1.0
    return min(max(1 - (1 - 2 * risk) ** 2 / (1 - 2 * one_wrong), 0.0), 1.0)


def c_bound(risk: float, one_wrong: float, n: float, complexity: float, log_delta: float) -> float:
    """Compute the C-bound on the error of a majority vote, with half of delta for each observed number.

    It uses the mean and the variance of the probability that a drawn hypothesis is wrong; at most
    1. The posterior is the distribution of the voting weights over the hypotheses. risk: observed
    risk of the posterior (of a drawn hypothesis); one_wrong: observed probability that exactly one
    of two draws is wrong; n: number of rows; complexity: divergence of the posterior from the prior
    (nats); log_delta: log of the probability that the bound fails.

    References
    ----------
    Germain, Lacasse, Laviolette, Marchand and Roy, "Risk bounds for the majority vote: from a
    PAC-Bayesian analysis to a learning algorithm", JMLR 2015.
    """
    half = log_delta - math.log(2)
    highest = pac_bayes_kl(risk, n, complexity, half)
    lowest = kl_lower(one_wrong, _compute_pac_bayes_radius(n, 2 * complexity, half))
    return chebyshev_cantelli(highest, lowest)


def disagreement(
    risk: float, differing: float, n_classes: int, n: float, complexity: float, log_delta: float
) -> float:
    """Bound the error of a binary majority vote by the posterior's risk and its disagreement.

    ``4 * risk - 2 * differing``, each replaced by its confidence limit at half of delta. The
    posterior is the distribution of the voting weights over the hypotheses.

    Parameters
    ----------
    risk : float
        Observed risk of the posterior.
    differing : float
        Observed probability that two draws predict different classes.
    n_classes : int
        Must be 2: with more classes two draws may differ and both be wrong.
    n, complexity, log_delta : float
        Number of independent rows; price of choosing by these rows (nats: minus the log prior
        probability of the hypothesis, or the divergence of the posterior from the prior); natural
        log of the probability that the bound fails, < 0.

    Returns
    -------
    float
        Limited to 0 .. 1.

    Raises
    ------
    ValueError
        If `n_classes` is not 2.

    References
    ----------
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.
    """
    if n_classes != 2:
        raise ValueError(
            f"n_classes must be 2 for the disagreement bound, got {n_classes}: use another method"
        )
    half = log_delta - math.log(2)
    highest = pac_bayes_kl(risk, n, complexity, half)
    lowest = kl_lower(differing, _compute_pac_bayes_radius(n, 2 * complexity, half))
    return min(max(4 * highest - 2 * lowest, 0.0), 1.0)


def single_draw(risk: float, n: float, log_ratio: float, log_delta: float) -> float:
    """Bound the risk of one hypothesis that was drawn once from a posterior.

    Holds with probability ``1 - delta`` over the rows and the draw. risk: observed risk of the
    hypothesis; log_ratio: log of its posterior over its prior probability (nats), which may be
    negative; n: number of rows; log_delta: log of the probability that the bound fails.

    References
    ----------
    Rivasplata, Kuzborskij, Szepesvari and Shawe-Taylor, "PAC-Bayes analysis beyond the usual
    bounds", NeurIPS 2020.
    """
    return pac_bayes_kl(risk, n, log_ratio, log_delta)


def root_fragment(
    risk: float,
    sizes: float,
    roots: float,
    leaves: float,
    n: float,
    complexity: float,
    log_delta: float,
) -> float:
    """Bound the error of a pruning by the rows that chose and labelled it.

    The bound uses one root fragment of the pruning, which is a pruning of the pruning: it has the
    same root and stops at the same nodes or above.

    Parameters
    ----------
    risk : float
        Error of the pruning on the rows, which have also labelled its leaves.
    sizes : float
        Sum over the leaves v of the fragment of sqrt(p_v T_v), where p_v is the fraction of the
        rows in v and T_v the number of the pruning's leaves in v.
    roots : float
        Sum over the leaves v of the fragment of sqrt(p_v).
    leaves : float
        Number of leaves of the fragment.
    n : float
        Number of rows.
    complexity : float
        Log of the number of cells of the grid.
    log_delta : float
        Natural log of the probability that the bound fails, < 0.

    Returns
    -------
    float
        At most 1.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, Lemma 1, with its last term for each leaf of the fragment.
    """
    _check_log_delta(log_delta)
    nats = complexity + math.log(3) - log_delta
    of_size = math.sqrt(48 * math.log(2 * n) / n) * sizes
    of_cells = math.sqrt(24 * nats / n) * roots + 2 * leaves * nats / n
    return min(risk + of_size + of_cells, 1.0)


def empirical_bernstein(
    mean: float, variance: float, n: float, width: float, log_delta: float
) -> float:
    """Compute the empirical Bernstein upper bound on the mean of a bounded random variable.

    Parameters
    ----------
    mean, variance : float
        Mean of n independent observations, and their variance with divisor n - 1.
    n : float
        Number of observations, at least 2.
    width : float
        Length of the interval that contains all values.
    log_delta : float
        Log of the probability that the bound fails.

    Returns
    -------
    float
        The bound, which may exceed the largest value of the variable.

    References
    ----------
    Maurer and Pontil, "Empirical Bernstein bounds and sample-variance penalization", 2009, Theorem
    4.
    """
    _check_log_delta(log_delta)
    if not n >= 2:
        raise ValueError(f"n must be at least 2, got {n}")
    nats = math.log(2) - log_delta
    return mean + math.sqrt(2 * variance * nats / n) + 7 * width * nats / (3 * (n - 1))


def _compute_pac_bayes_radius(n: float, complexity: float, log_delta: float) -> float:
    """Compute the limit of the PAC-Bayes theorem on kl(observed, true risk), in nats: at least 0.

    kl(q, p) is the divergence of a Bernoulli distribution of mean q from one of mean p. The limit
    is ``(complexity + log_xi(n) - log_delta) / n`` for n rows, the divergence `complexity` (nats)
    and the log of the probability that the bound fails.
    """
    _check_log_delta(log_delta)
    return max(complexity + log_xi(n) - log_delta, 0.0) / n


def _check_log_delta(log_delta: float) -> None:
    """Raise ValueError unless `log_delta` is negative.

    log_delta: natural log of the probability that a bound fails; -inf is allowed, NaN is not.
    """
    if not log_delta < 0:
        raise ValueError(f"log_delta must be negative, got {log_delta!r}")


@dataclass(frozen=True, slots=True)
class Inequality:
    """A bound with its limit for an infinite number of rows; a value of the dict `INEQUALITIES`.

    `observed` stands for the observed numbers of the inequality, such as the fraction of errors;
    `complexity` is the price of choosing by the rows (nats), 0 if they have chosen nothing.

    Parameters
    ----------
    bound : callable
        Returns the bound for the arguments ``(*observed, n, complexity, log_delta)``.
    limit : callable
        Returns the limit of the bound as n grows, for the arguments ``*observed``.
    whole_errors : bool
        Whether losses must be 0 or 1 and rows independent, so that groups of rows are refused.
        False: losses between 0 and 1, such as mean losses of groups, are allowed.
    difference : bool
        Whether it bounds a difference of two risks.
    allows_dependence : bool
        Whether rows may depend on earlier rows.
    """

    bound: Callable[..., float]
    limit: Callable[..., float]
    whole_errors: bool = False
    difference: bool = False
    allows_dependence: bool = False


INEQUALITIES: dict[str, Inequality] = {
    "occam": Inequality(occam, lambda risk: risk, whole_errors=True),
    "occam_mean": Inequality(occam_mean, lambda risk: risk),
    "martingale_mean": Inequality(martingale_mean, lambda risk: risk, allows_dependence=True),
    "occam_leaf": Inequality(occam_leaf, lambda risk, _: risk, whole_errors=True),
    "occam_gap": Inequality(
        occam_gap, lambda risk, other, _: max(risk - other, 0.0), whole_errors=True, difference=True
    ),
    "occam_mix": Inequality(
        occam_mix,
        lambda *observed: sum(new * risk for new, risk, _ in _split_triples(observed)),
        whole_errors=True,
    ),
    "single_draw": Inequality(single_draw, lambda risk: risk),
    "pac_bayes_kl": Inequality(pac_bayes_kl, lambda risk: risk),
    "pac_bayes_lambda": Inequality(pac_bayes_lambda, lambda risk: risk),
    "first_order": Inequality(first_order, lambda risk: 2 * risk),
    "first_order_range": Inequality(
        first_order_range,
        lambda risk, right, wrong: (risk - right) / (wrong - right) if wrong > right else 1.0,
    ),
    "tandem": Inequality(tandem, lambda both_wrong: 4 * both_wrong),
    "either_wrong": Inequality(either_wrong, lambda one_wrong: 4 / 3 * one_wrong),
    "tuples": Inequality(
        tuples, lambda share, n_draws, n_wrong, _: share / at_least_wrong(0.5, n_draws, n_wrong)
    ),
    "c_bound": Inequality(c_bound, chebyshev_cantelli),
    "root_fragment": Inequality(root_fragment, lambda risk, *_: risk, whole_errors=True),
    "threshold_cost": Inequality(
        threshold_cost,
        lambda missed, alarms, _, of_miss, of_alarm: of_miss * missed + of_alarm * alarms,
        whole_errors=True,
    ),
    "named_cost": Inequality(
        named_cost,
        lambda missed, alarms, of_miss, of_alarm: of_miss * missed + of_alarm * alarms,
        whole_errors=True,
    ),
    "disagreement": Inequality(disagreement, lambda risk, differing, _: 4 * risk - 2 * differing),
}
