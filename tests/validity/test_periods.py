"""Bounds for rows in time order: losses that persist, react to earlier losses, or drift.

The conditional risk of each row is known, so that the mean over the period is too.
"""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import certree
from certree.certificates.hold_out import certify_row_errors
from certree.rows.time_order import Period
from run_length import LONG

N_DRAWS, N_FITS = (2000, 200) if LONG else (200, 6)
DELTA = 0.05
N_PERIOD, N_NEXT = 400, 200
PERIOD = Period("1", str(N_PERIOD))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def draw_stationary(rng, n):
    return np.full(n, 0.1)


def draw_autoregressive(rng, n):
    """The log odds of an error are an AR(1) process."""
    z = np.empty(n)
    z[0] = rng.normal()
    for t in range(1, n):
        z[t] = 0.97 * z[t - 1] + np.sqrt(1 - 0.97**2) * rng.normal()
    return sigmoid(1.2 * z - 2)


def draw_regimes(rng, n, mean_length=20):
    """Good and bad times of about 20 rows."""
    flips = np.cumsum(rng.random(n) < 1 / mean_length) + rng.integers(2)
    return np.where(flips % 2 == 0, 0.02, 0.35)


def draw_jump(rng, n):
    """The risk rises at a random row."""
    return np.where(np.arange(n) < rng.integers(n), 0.05, 0.25)


def draw_slow_drift(rng, n):
    return np.linspace(0.05, 0.2, n)


RISKS = {
    "stationary": draw_stationary,
    "autoregressive": draw_autoregressive,
    "regimes": draw_regimes,
    "long regimes": partial(draw_regimes, mean_length=150),
    "jump": draw_jump,
    "slow drift": draw_slow_drift,
}


def draw_losses(kind, seed, n=N_PERIOD + N_NEXT):
    """Conditional risks and losses of n rows, (n,) each."""
    rng = np.random.default_rng([seed, [*RISKS, "reacting", "adverse"].index(kind)])
    if kind in RISKS:
        risks = RISKS[kind](rng, n)
        return risks, rng.random(n) < risks
    risks, losses = np.empty(n), np.zeros(n, dtype=bool)
    for t in range(n):
        if kind == "reacting":  # errors come in bursts
            risks[t] = 0.05 + 0.5 * losses[max(t - 3, 0) : t].mean() if t else 0.05
        else:  # rows become easy as soon as few errors have been seen, which keeps the sum low
            excess = losses[:t].sum() - risks[:t].sum()
            risks[t] = 0.3 if excess > -1.9 * np.sqrt(0.21 * N_PERIOD) else 0.0
        losses[t] = rng.random() < risks[t]
    return risks, losses


def certify(losses, period=PERIOD):
    return certify_row_errors(losses, None, DELTA, period=period)


def expect_few(n_missed, n_draws):
    # A rate of delta would pass this with a probability of 0.999.
    assert n_missed <= binom.ppf(0.999, n_draws, DELTA), n_missed


@pytest.mark.parametrize("kind", [*RISKS, "reacting", "adverse"])
def test_bounds_of_a_fixed_model_hold_whatever_the_dependence(kind):
    n_missed, n_missed_next, excess = 0, 0, []
    for seed in range(N_DRAWS):
        risks, losses = draw_losses(kind, seed)
        of_period, later = risks[:N_PERIOD].mean(), risks[N_PERIOD:].mean()
        certificate = certify(losses[:N_PERIOD])
        n_missed += of_period > certificate.bound
        drift = max(later - of_period, 0.0)
        n_missed_next += later > certificate.nearby(drift=drift).bound + 1e-12
        excess.append(certificate.bound - of_period)
    expect_few(n_missed, N_DRAWS)
    expect_few(n_missed_next, N_DRAWS)
    assert np.mean(excess) < 0.08


def test_next_block_is_worse_than_promised_only_where_the_risk_has_risen():
    n_false, n_risen = 0, 0
    for seed in range(N_DRAWS):
        risks, losses = draw_losses("long regimes", seed)
        later, bound = risks[N_PERIOD:].mean(), certify(losses[:N_PERIOD]).bound
        n_false += later > bound
        n_risen += later > bound and later > risks[:N_PERIOD].mean()
    assert n_false - n_risen <= binom.ppf(0.999, N_DRAWS, DELTA)
    assert n_false > 0.1 * N_DRAWS  # the named assumption is needed


def test_bounds_for_independent_rows_fail_where_rows_depend():
    independent = Period("1", str(N_PERIOD), is_independent=True)
    rates = {}
    for name, period in (("dependent", PERIOD), ("independent", independent)):
        outcomes = [draw_losses("adverse", seed) for seed in range(N_DRAWS)]
        rates[name] = np.mean(
            [
                risks[:N_PERIOD].mean() > certify(losses[:N_PERIOD], period).bound
                for risks, losses in outcomes
            ]
        )
    assert rates["independent"] > rates["dependent"]


@pytest.mark.parametrize("model", ["tree", "boosted trees", "tree of calibration rows"])
def test_certificates_of_whole_fits_hold(model):
    """Labels have a noise that persists, so that the conditional risk of each row is known."""
    n_missed = 0
    for seed in range(N_FITS):
        rng, n = np.random.default_rng(seed), 900
        X = rng.integers(0, 8, (n, 2)).astype(float)
        grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
        noise = draw_regimes(rng, n, mean_length=30)
        y = ((X[:, 0] > 3) ^ (rng.random(n) < noise)).astype(int)
        switches = {
            "random_state": seed,
            "duplicates": "genuine",
            "delta": DELTA,
            "train_size": 0.4,
        }
        if model == "boosted trees":
            fitted = certree.CertifiedBoostedTreesClassifier(
                **switches, quality="fast", max_iter=20
            )
        else:
            selection = "best" if model == "tree" else "vote"
            fitted = certree.CertifiedTreeClassifier(**switches, selection=selection)
        order = rng.permutation(n)
        fitted.fit(X[order], y[order], time=order)
        certificate = fitted.certificate_
        other = (fitted.predict(grid) != (grid[:, 0] > 3)).mean()
        calibration = np.arange(n - certificate.n, n)
        risks = noise[calibration] * (1 - other) + (1 - noise[calibration]) * other
        n_missed += risks.mean() > certificate.bound
        assert certificate.method in ("hold_out_period", "occam_period")
    expect_few(n_missed, N_FITS)
