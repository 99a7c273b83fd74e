"""Bounds on a risk, numbers in and number out.

All hold with probability at least ``1 - delta`` over the draw of n independent rows. `log_delta` is
the natural logarithm of delta, as the share of delta that one hypothesis of many has may be far
below the smallest double. `complexity` is in nats: minus the log of the prior mass of one
hypothesis, or the divergence of the posterior over hypotheses from the prior.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincc, betainccinv, betaln, gammaincc

from certree.certificates.inequalities.order_statistics import compute_cdf_bound
from certree.certificates.inequalities.weighted_errors import bound_weighted_errors

# Below, the incomplete beta function of doubles comes near its underflow.
_SMALLEST_TAIL = 1e-280
# Log of a level at which its square is far below the rounding of doubles.
_TINY = -40.0
# So many have a factorial whose logarithm is less precise than Stirling's formula.
_MANY_ROWS = 10**6
# Share of the level of a threshold's costs that both limits of the prevalence have; the band of each
# class has half of the rest.
_OF_PREVALENCE = 0.1
# Of more rows, or at a lower level, errors of two kinds are bounded each by itself.
_MOST_JOINT_ROWS, _LEAST_JOINT_LEVEL = 3000, -25.0


def _find_boundary(
    holds: Callable[[float], bool], inside: float, outside: float, guess: float
) -> float:
    """The number next to where a condition stops to hold, on the side of `outside`.

    A good guess saves most of the search.
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
    """Log of the continued fraction of the incomplete beta function, by Lentz's algorithm.

    Press, Teukolsky, Vetterling and Flannery, "Numerical Recipes", Section 6.4. It converges fast for
    ``x < (a + 1) / (a + b + 2)``.
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
    """Log of the probability of at most `errors` errors among n, each of probability p.

    For a number of errors that is not whole this is the incomplete beta function between the whole
    ones.
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
    """The largest risk at which so few errors are no less likely than delta.

    Parameters
    ----------
    errors : float
        Errors among the rows, 0 .. n.
    n : float
        Rows.
    log_delta : float
        Log of delta, < 0; -inf gives 1.

    Returns
    -------
    float

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
    """``share log(share / expected)``, where ``excess = expected - share`` is known better."""
    if share == 0:
        return 0.0
    if abs(excess) < share / 2:
        return -share * math.log1p(excess / share)
    return share * (math.log(share) - math.log(expected))


def kl(q: float, p: float) -> float:
    """Divergence of a coin of probability q from one of probability p, nats."""
    if p in (0, 1) and p != q:
        return math.inf
    return max(
        _compute_divergence_term(q, p, p - q) + _compute_divergence_term(1 - q, 1 - p, q - p), 0.0
    )


def kl_upper(q: float, nats: float) -> float:
    """The largest p with ``kl(q, p) <= nats``; q is clipped to 0 .. 1."""
    q = min(max(q, 0.0), 1.0)
    if q == 0:
        return -math.expm1(-nats)
    return _find_boundary(lambda p: kl(q, p) <= nats, q, 1.0, _kl_inverse(q, nats, 1))


def kl_lower(q: float, nats: float) -> float:
    """The smallest p with ``kl(q, p) <= nats``; q is clipped to 0 .. 1."""
    q = min(max(q, 0.0), 1.0)
    if q == 1:
        return math.exp(-nats)
    return _find_boundary(lambda p: kl(q, p) <= nats, q, 0.0, _kl_inverse(q, nats, -1))


def _kl_inverse(q: float, nats: float, side: int) -> float:
    """Where ``kl(q, p)`` is about `nats`, above or below q; q itself where that is far away.

    Newton's steps from Pinsker's bound, which lies outside; as the divergence is convex in p, they
    come nearer from there.
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
    """Log of ``sum_k C(n, k) (k/n)^k (1 - k/n)^(n - k)``.

    By Abel's identity the sum is ``n! / n^n sum_k n^k / k!``. It lies between sqrt(n) and 2 sqrt(n).

    References
    ----------
    Maurer, "A note on the PAC Bayesian theorem", arXiv:cs/0411099, 2004. Riordan, "Combinatorial
    identities", 1968, Section 1.5.
    """
    # n! by Stirling's formula where terms as large as its logarithm would cancel.
    log_factorial = math.lgamma(n + 1) - n * math.log(n) + n
    if n > _MANY_ROWS:
        log_factorial = 0.5 * math.log(2 * math.pi * n) + 1 / (12 * n)
    return log_factorial + math.log(gammaincc(n + 1, n))


def occam(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Bound on the risk of any hypothesis with a prior mass, from its share of errors.

    A complexity of 0 is one hypothesis that was fixed before the rows were seen.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005.
    """
    _check_log_delta(log_delta)
    return binomial_upper(_count_errors(risk, n), n, log_delta - complexity)


def occam_holds(bound: float, risk: float, n: float, complexity: float, log_delta: float) -> bool:
    """Whether `occam` is at most `bound`, without the search for its value."""
    errors = _count_errors(risk, n)
    return bound == 1 or (
        errors < n and log_binomial_tail(errors, n, bound) < log_delta - complexity
    )


def occam_leaf(risk: float, share: float, n: float, complexity: float, log_delta: float) -> float:
    """Bound on the risk in one of some disjoint leaves, for all of them at once.

    The leaf has the level ``1 - (1 - delta)^share``. Given how many rows fall into each leaf the
    numbers of errors are independent, so that with shares that sum to 1 all bounds hold together with
    probability ``1 - delta``.

    Parameters
    ----------
    risk : float
        Share of errors among the rows of the leaf.
    share : float
        Share of the leaf in delta, in (0, 1].
    n : float
        Rows of the leaf; none give the bound 1.
    complexity, log_delta : float
        As above.

    References
    ----------
    Sidak, "Rectangular confidence regions for the means of multivariate normal distributions", JASA
    1967, for levels of independent events; Clopper and Pearson, Biometrika 1934, for each.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    _check_log_delta(log_delta)
    log_level = log_delta - complexity
    if log_level < _TINY:  # Bernoulli's inequality, which is as good as equal there
        return occam(risk, n, 0.0, log_level + math.log(share))
    return occam(risk, n, 0.0, math.log(-math.expm1(share * math.log1p(-math.exp(log_level)))))


def occam_gap(
    risk: float, other: float, share: float, n: float, complexity: float, log_delta: float
) -> float:
    """Bound on how far the risk on one part of the rows is above that on another one.

    Upper limit of the one less lower limit of the other, half of delta each.

    Parameters
    ----------
    risk, other : float
        Shares of errors in the two parts.
    share : float
        Share of the rows of both that the first one has.
    n : float
        Rows of both.
    complexity, log_delta : float
        As above.

    References
    ----------
    Clopper and Pearson, Biometrika 1934, for each limit.
    """
    _check_log_delta(log_delta)
    half, first = log_delta - math.log(2), round(share * n)
    lowest = 1 - occam(1 - other, n - first, complexity, half)
    return max(occam(risk, first, complexity, half) - lowest, 0.0)


def occam_mix(*numbers: float) -> float:
    """Bound on the risk where parts of the rows come in known shares, by bounds on all of them.

    Parameters
    ----------
    *numbers : float
        For each part its share of the new rows, its share of errors and its share of the n rows; then
        n, complexity and log_delta as above, of the bounds on the parts.

    References
    ----------
    The law of total probability; Clopper and Pearson, Biometrika 1934, for each part.
    """
    *observed, n, complexity, log_delta = numbers
    total = sum(
        new * occam(risk, round(old * n), complexity, log_delta)
        for new, risk, old in _split_triples(observed)
    )
    return min(total, 1.0)


def _split_triples(numbers: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    if len(numbers) % 3:
        raise ValueError(f"expected three numbers for each part, got {len(numbers)}")
    return zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)


def prevalence_limits(positives: int, n: int, log_level: float) -> tuple[float, float]:
    """Lower and upper limit of the share of a class, by its rows among n: its part of a level."""
    half = log_level + math.log(_OF_PREVALENCE / 2)
    return 1 - binomial_upper(n - positives, n, half), binomial_upper(positives, n, half)


def compute_rate_level(log_level: float) -> float:
    """The part of a level that the rows of either class have for their band."""
    return log_level + math.log((1 - _OF_PREVALENCE) / 2)


def highest_cost(missed: Any, alarmed: Any, prevalence: tuple[float, float]) -> Any:
    """The largest mean of what is missed of one class and alarmed of another, by their limits.

    It is linear in the prevalence, so largest at one of its limits.
    """
    ends = (share * missed + (1 - share) * alarmed for share in prevalence)
    return np.maximum(*ends)


def threshold_cost(*numbers: float) -> float:
    """Bound on the mean cost at a threshold, for all thresholds and all costs at once.

    False negative and false positive rates are below the bands of equal local levels of their classes,
    and the prevalence is between its limits.

    Parameters
    ----------
    *numbers : float
        Shares of the rows that are missed positives, false alarms, and positives; cost of a miss and of
        a false alarm; n, complexity and log_delta as above.

    References
    ----------
    Those of `order_statistics.compute_cdf_bounds`; Clopper and Pearson, Biometrika 1934, for the prevalence.
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
    """Bound on the mean cost at one threshold, both fixed before the rows were seen.

    Parameters
    ----------
    *numbers : float
        Shares of the rows that are missed positives and false alarms; cost of either; n, complexity and
        log_delta as above.

    References
    ----------
    Buehler, "Confidence intervals for the product of two binomial parameters", JASA 1957, of at most
    3,000 rows; of more, Clopper and Pearson, Biometrika 1934, for either kind at half of the level.
    """
    missed, alarms, of_miss, of_alarm, n, complexity, log_delta = numbers
    _check_log_delta(log_delta)
    rows, log_level = int(n), log_delta - complexity
    errors, weights = (round(missed * rows), round(alarms * rows)), (of_miss, of_alarm)
    most, kinds = max(weights), sum(weight > 0 for weight in weights)
    if kinds == 2 and of_miss == of_alarm:
        return most * binomial_upper(sum(errors), rows, log_level)
    if kinds == 2 and rows <= _MOST_JOINT_ROWS and log_level >= _LEAST_JOINT_LEVEL:
        return bound_weighted_errors(errors, rows, weights, log_level)
    each = log_level - math.log(kinds)
    ends = (w * binomial_upper(k, rows, each) for k, w in zip(errors, weights, strict=True) if w)
    return min(sum(ends), most)


def _count_errors(risk: float, n: float) -> float:
    """Errors among n rows; a share of whole ones may miss the whole number by rounding."""
    errors = risk * n
    whole = round(errors)
    return whole if abs(errors - whole) <= 1e-9 * max(n, 1) else errors


def find_order_statistic(n: int, coverage: float, log_delta: float) -> int:
    """Which of n independent numbers, in ascending order, no more than a share of new ones exceeds.

    Parameters
    ----------
    n : int
        How many there are.
    coverage : float
        Share of new numbers, between 0 and 1, that are at most the number in that place.
    log_delta : float
        Natural logarithm of the probability that fewer are.

    Returns
    -------
    int
        From 1 on, the first place that serves, ``1 + quantile_{1 - delta} Bin(n, coverage)``; n + 1:
        not even the largest does.

    References
    ----------
    Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
    Statistics 1941. Ties make it hold all the more.
    """
    _check_log_delta(log_delta)

    def serves(place: int) -> bool:
        return log_binomial_tail(float(n - place), float(n), 1 - coverage) <= log_delta

    below, place = 0, n + 1
    while place - below > 1:
        middle = (below + place) // 2
        below, place = (below, middle) if serves(middle) else (middle, place)
    return place


def count_rows_to_cover(coverage: float, log_delta: float) -> int:
    """The fewest numbers of which the largest serves `find_order_statistic`: ``coverage**n <= delta``."""
    _check_log_delta(log_delta)
    n = max(math.ceil(log_delta / math.log(coverage)), 1)
    while find_order_statistic(n, coverage, log_delta) > n:  # rounding
        n += 1 + n // 2**40
    return n


def occam_mean(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """The same for losses between 0 and 1, which need not be whole.

    References
    ----------
    Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963.
    """
    _check_log_delta(log_delta)
    return kl_upper(risk, max(complexity - log_delta, 0.0) / n)


def occam_mean_holds(
    bound: float, risk: float, n: float, complexity: float, log_delta: float
) -> bool:
    """Whether `occam_mean` is at most `bound`, without the search for its value."""
    return bound == 1 or (risk <= bound and n * kl(risk, bound) >= complexity - log_delta)


def pac_bayes_kl(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Bound on the risk of a posterior over hypotheses, for all posteriors at once.

    References
    ----------
    Langford and Seeger, "Bounds for averaging classifiers", 2001; Maurer, "A note on the PAC Bayesian
    theorem", arXiv:cs/0411099, 2004.
    """
    return kl_upper(risk, _compute_pac_bayes_radius(n, complexity, log_delta))


def pac_bayes_lambda(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """The same without an inverse, at its best parameter; never below `pac_bayes_kl`.

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
    """Bound on the risk of a posterior at one parameter, for all posteriors and all parameters at once.

    Excess losses may take the place of the risk, with what they are known to lie too low by. Not cut
    at 1.

    Parameters
    ----------
    risk : float
        Observed risk of the posterior, of losses between 0 and 1.
    n : float
        Rows, >= 8.
    complexity, log_delta : float
        As above.
    lam : float
        The parameter, between 0 and 2.

    References
    ----------
    Thiemann, Igel, Wintenberger and Seldin, "A strongly quasiconvex PAC-Bayesian bound", ALT 2017, as
    in Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Proposition 1.
    """
    _check_log_delta(log_delta)
    if not n >= 8:
        raise ValueError(f"n must be at least 8, got {n!r}")
    lam = check_lambda_error(lam)
    nats = complexity + math.log(2) + math.log(n) / 2 - log_delta
    return (risk + nats / (lam * n)) / (1 - lam / 2)


def check_lambda_error(lam: float) -> float:
    """Check the parameter of these bounds, and return it."""
    if not 0 < lam < 2:
        raise ValueError(f"lambda_error must lie between 0 and 2, got {lam!r}")
    return float(lam)


def first_order(risk: float, n: float, complexity: float, log_delta: float) -> float:
    """Bound on the risk of a majority vote: twice that of the posterior.

    References
    ----------
    Langford and Shawe-Taylor, "PAC-Bayes and margins", NeurIPS 2002.
    """
    return min(2 * pac_bayes_kl(risk, n, complexity, log_delta), 1.0)


def first_order_range(
    risk: float, right: float, wrong: float, n: float, complexity: float, log_delta: float
) -> float:
    """Bound on the risk of a vote whose wrong shares are known to have gaps.

    Parameters
    ----------
    risk : float
        Observed risk of the posterior.
    right, wrong : float
        The posterior errs with at least these probabilities wherever the vote is right, and wrong.
    n, complexity, log_delta : float
        As above.

    References
    ----------
    Leblanc and Germain, "A framework for bounding deterministic risk with PAC-Bayes: applications to
    majority votes", arXiv:2510.25569, 2025. ``right = 0``, ``wrong = 1/2`` is `first_order`.
    """
    if wrong <= right:
        return 1.0
    excess = pac_bayes_kl(risk, n, complexity, log_delta) - right
    return min(max(excess / (wrong - right), 0.0), 1.0)


def tandem(both_wrong: float, n: float, complexity: float, log_delta: float) -> float:
    """Bound on the risk of a majority vote: four times the risk that two draws are both wrong.

    References
    ----------
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.
    """
    return tuples(both_wrong, 2, 2, 1, n, complexity, log_delta)


def either_wrong(one_wrong: float, n: float, complexity: float, log_delta: float) -> float:
    """Bound on the risk of a majority vote: 4/3 of the risk that one of two draws is wrong.

    Where the vote errs a draw errs with probability 1/2 or more, so one of two with 3/4 or more.
    """
    return tuples(one_wrong, 2, 1, 1, n, complexity, log_delta)


def at_least_wrong(p: float, n_draws: int, n_wrong: int) -> float:
    """Probability that at least `n_wrong` of `n_draws` coins of probability p fall."""
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
    """Bound on the risk of a majority vote from tuples of draws.

    The risk that at least `n_wrong` of `n_draws` draws are wrong, over what it is when each is wrong
    with probability 1/2. (1, 1) is `first_order`, (2, 2) `tandem` and (2, 1) `either_wrong`.

    Parameters
    ----------
    share : float
        Observed risk that at least `n_wrong` of `n_draws` draws are wrong.
    n_draws, n_wrong : int
        The kind of tuple.
    n_kinds : int
        CodedLabels of tuples that are tried; each has its part of delta.
    n, complexity, log_delta : float
        As above.

    References
    ----------
    Lacasse, Laviolette, Marchand and Turgeon-Boutin, "Learning with randomized majority votes", ECML
    2010, has the case ``n_wrong = (n_draws + 1) / 2``; the others follow in the same way.
    """
    if not 1 <= n_wrong <= n_draws:
        raise ValueError(f"n_wrong must lie in 1 .. {n_draws}, got {n_wrong!r}")
    risk = pac_bayes_kl(share, n, n_draws * complexity, log_delta - math.log(n_kinds))
    return min(risk / at_least_wrong(0.5, n_draws, n_wrong), 1.0)


def chebyshev_cantelli(risk: float, one_wrong: float) -> float:
    """Risk of a majority vote at most, by the mean and the variance of the wrong share.

    Parameters
    ----------
    risk : float
        Risk of the posterior, at most.
    one_wrong : float
        Probability that exactly one of two draws is wrong, at least.

    References
    ----------
    Lacasse, Laviolette, Marchand, Germain and Usunier, "PAC-Bayes bounds for the risk of the majority
    vote and the variance of the Gibbs classifier", NeurIPS 2006.
    """
    if risk >= 0.5 or one_wrong >= 0.5:
        return 1.0
    return min(max(1 - (1 - 2 * risk) ** 2 / (1 - 2 * one_wrong), 0.0), 1.0)


def c_bound(risk: float, one_wrong: float, n: float, complexity: float, log_delta: float) -> float:
    """The C-bound: the risk from above and the variance from below, half of delta each.

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
    """Bound on the risk of a majority vote by the risk of the posterior and how often two draws differ.

    Parameters
    ----------
    risk : float
        Observed risk of the posterior.
    differing : float
        Probability that two draws predict different classes.
    n_classes : int
        Must be 2: with more classes two draws may differ and both be wrong.
    n, complexity, log_delta : float
        As above; half of delta goes to each of the two observations.

    Raises
    ------
    ValueError
        If there are not two classes.

    References
    ----------
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.
    """
    if n_classes != 2:
        raise ValueError(f"the disagreement bound takes 2 classes, got {n_classes}")
    half = log_delta - math.log(2)
    highest = pac_bayes_kl(risk, n, complexity, half)
    lowest = kl_lower(differing, _compute_pac_bayes_radius(n, 2 * complexity, half))
    return min(max(4 * highest - 2 * lowest, 0.0), 1.0)


def single_draw(risk: float, n: float, log_ratio: float, log_delta: float) -> float:
    """Bound on the risk of one hypothesis that was drawn once from a posterior.

    It holds with probability ``1 - delta`` over the rows and the draw. `log_ratio`, the log of the
    posterior's probability of the hypothesis over the prior's, may be negative.

    References
    ----------
    Rivasplata, Kuzborskij, Szepesvari and Shawe-Taylor, "PAC-Bayes analysis beyond the usual bounds",
    NeurIPS 2020.
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
    """Bound on the error of a pruning by the rows that have chosen it, from one of its root fragments.

    Parameters
    ----------
    risk : float
        Observed error of the pruning, whose leaves the same rows have labelled.
    sizes : float
        Sum, over the leaves of the fragment, of the root of its share of the rows times the number of
        the pruning's leaves in it.
    roots : float
        The same of the share of the rows alone.
    leaves : float
        Leaves of the fragment.
    n : float
        Rows.
    complexity : float
        Log of the number of the smallest cells (nats).
    log_delta : float
        As above.

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
    """Upper bound on the expectation of a number from a range, by what n rows say of it.

    Parameters
    ----------
    mean, variance : float
        Mean of the n independent numbers, and their variance with n - 1 below the line.
    n : float
        How many there are, 2 at least.
    width : float
        Length of the range.
    log_delta : float
        Natural logarithm of the probability that the bound fails.

    Returns
    -------
    float

    References
    ----------
    Maurer and Pontil, "Empirical Bernstein bounds and sample-variance penalization", 2009, Theorem 4.
    """
    _check_log_delta(log_delta)
    if not n >= 2:
        raise ValueError(f"n must be at least 2, got {n}")
    nats = math.log(2) - log_delta
    return mean + math.sqrt(2 * variance * nats / n) + 7 * width * nats / (3 * (n - 1))


def _compute_pac_bayes_radius(n: float, complexity: float, log_delta: float) -> float:
    """How far the observed risk may be from the true one, nats per row."""
    _check_log_delta(log_delta)
    return max(complexity + log_xi(n) - log_delta, 0.0) / n


def _check_log_delta(log_delta: float) -> None:
    if not log_delta < 0:
        raise ValueError(f"log_delta must be negative, got {log_delta!r}")


@dataclass(frozen=True, slots=True)
class Inequality:
    """A bound, and what is left of it with ever more rows.

    Parameters
    ----------
    bound : callable
        The bound, of ``(*observed, n, complexity, log_delta)``.
    limit : callable
        What it tends to, of the same observed numbers.
    whole_errors : bool
        Whether it needs losses of 0 and 1, and so refuses groups of rows.
    difference : bool
        Whether it bounds a difference of two errors, which no rows have by themselves.
    """

    bound: Callable[..., float]
    limit: Callable[..., float]
    whole_errors: bool = False
    difference: bool = False


INEQUALITIES: dict[str, Inequality] = {
    "occam": Inequality(occam, lambda risk: risk, whole_errors=True),
    "occam_mean": Inequality(occam_mean, lambda risk: risk),
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
