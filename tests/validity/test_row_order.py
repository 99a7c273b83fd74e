"""Simulations of the test of row order: false alarms on shuffled tables, and tables in time order.

`make validity` draws each of them more often.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import certree
from certree.certificates.row_order import measure_row_order
from certree.rows.split import draw_copies, rank_units
from run_length import LONG

DRAWS = 300 if LONG else 40
# The probability of a false alarm is at most 1 / 100.
MOST_ALARMS = binom.ppf(0.999, DRAWS, 0.01)


def shuffle(rng, *columns):
    order = rng.permutation(len(columns[0]))
    return [column[order] for column in columns]


def count_alarms(draw):
    """Return in how many draws of (units, residuals) the test reports dependence."""
    alarms = 0
    for seed in range(DRAWS):
        units, residuals = draw(np.random.default_rng(seed))
        n_columns = 1 if residuals.ndim == 1 else residuals.shape[1]
        found = measure_row_order(units, n_columns, lambda some, values=residuals: values[some])
        alarms += found.is_dependent
    return alarms


@pytest.mark.parametrize("kind", ["numbers", "ties", "classes", "errors"])
def test_residuals_in_random_order_seldom_alarm(kind):
    def draw(rng):
        n = int(rng.integers(20, 600))
        values = {
            "numbers": lambda: rng.standard_cauchy(n),
            "ties": lambda: rng.integers(0, 3, n) / 1.0,
            "classes": lambda: (rng.integers(0, 4, n)[:, None] == np.arange(4)) - 0.25,
            "errors": lambda: (rng.random((n, 1)) < 0.05) * 1.0,
        }
        return np.arange(n), values[kind]()

    assert count_alarms(draw) <= MOST_ALARMS


@pytest.mark.parametrize("is_merged", [False, True])
@pytest.mark.parametrize("how", ["side by side", "shuffled"])
def test_copies_seldom_alarm(how, is_merged):
    """Rows with large residuals have more copies: by first copies they would come first."""

    def draw(rng):
        residuals = rng.normal(size=200)
        row = np.repeat(np.arange(200), np.where(residuals > 0.5, 8, 1))
        if how == "shuffled":
            (row,) = shuffle(rng, row)
        _, index, inverse = np.unique(row, return_index=True, return_inverse=True)
        first = index[inverse]
        if not is_merged:
            return rank_units(first), residuals[row]
        kept = np.unique(first)
        return rank_units(kept, draw_copies(first, kept)), residuals[row[kept]]

    assert count_alarms(draw) <= MOST_ALARMS


@pytest.mark.parametrize("how", ["side by side", "shuffled"])
def test_groups_seldom_alarm(how):
    """Large groups have large residuals, which the rows of a group have in common."""

    def draw(rng):
        size = rng.integers(1, 20, 100)
        group = np.repeat(np.arange(100), size)
        residuals = (rng.normal(size=100) + size / 5)[group] + rng.normal(size=len(group))
        if how == "shuffled":
            group, residuals = shuffle(rng, group, residuals)
        return rank_units(group), residuals

    assert count_alarms(draw) <= MOST_ALARMS


FITS = [
    certree.CertifiedTreeClassifier(certree.Cart(max_bins=255)),
    certree.CertifiedTreeClassifier(duplicates="copies"),
    certree.CertifiedForestClassifier(8),
    certree.CertifiedTreeRegressor(duplicates="genuine"),
]


@pytest.mark.parametrize("model", FITS, ids=str)
def test_shuffled_tables_seldom_alarm(model):
    """The rarer class was drawn twice, or a table of few values repeats rows."""
    alarms, n_fits = 0, 300 if LONG else 12
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        X, y = rng.random((300, 2)).round(3), rng.random(300) < 0.3
        if getattr(model, "duplicates", "auto") != "auto":
            X, y = np.vstack([X, X[y]]), np.append(y, y[y])
            X, y = shuffle(rng, X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.set_params(random_state=seed).fit(
                X, y if hasattr(model, "predict_proba") else X[:, 0] + y
            )
        alarms += model.certificate_.row_order.is_dependent
    assert alarms <= binom.ppf(0.999, n_fits, 0.01)


def read_window(name, first):
    """Return 3,000 rows of a table in time order, as numbers, and its target."""
    folder = Path(os.environ["CERTREE_DATA"])
    path = next(one for one in (folder, folder / "more") if (one / f"{name}.parquet").exists())
    table = pd.read_parquet(path / f"{name}.parquet").iloc[first : first + 3000]
    for column in table.columns[:-1]:
        if not pd.api.types.is_numeric_dtype(table[column]):
            table[column] = pd.factorize(table[column], sort=True)[0]
    return table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()


@pytest.mark.skipif("CERTREE_DATA" not in os.environ, reason="the tables are not here")
@pytest.mark.parametrize("name", ["eeg", "electricity", "bike_sharing"])
@pytest.mark.parametrize("first", [0, 3000, 6000])
def test_tables_in_time_order_are_reported(name, first):
    X, y = read_window(name, first)
    if name == "bike_sharing":
        y = y.astype(float)
        models = certree.CertifiedTreeRegressor, certree.CertifiedBoostedTreesRegressor
    else:
        models = certree.CertifiedTreeClassifier, certree.CertifiedBoostedTreesClassifier
    for kind in models[: 2 if LONG else 1]:
        model = kind(duplicates="genuine", random_state=0).fit(X, y)
        assert "depend on the order of the rows" in str(model.certificate_)
        assert any("errors depend on the order" in one for one in model.certificate_.assumptions)
