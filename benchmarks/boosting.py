"""Boosted trees at their defaults against other libraries: losses and CPU seconds of fits.

Public tables with 300, 1000, 3000 and up to 30,000 random training rows, and up to 4000 other test
rows. Log loss and error (for numbers: root mean squared error over the standard deviation). certree
runs at its three qualities; the other libraries at their defaults with native categories, if they
have them, and LightGBM also with early stopping (rate .05, 15 % validation rows, at most 2000
rounds). One thread each. The CPU time of fits below .2 seconds is the median of five. Fits that the
result file has are not repeated.
"""

import time
import warnings
from typing import Any

import typer

from benchmarks.peers import list_fits, make_boosters, measure_fit
from benchmarks.results import run_missing
from benchmarks.tables import Data, Split, load_tables
from benchmarks.timing import measure_median
from certree import BoostedTreesClassifier, BoostedTreesRegressor

SIZES, MAX_ROWS = (300, 1000, 3000), 30_000
# Fits that take fewer seconds are repeated so many times.
SHORT_SECONDS, N_REPEATS = 0.2, 5
QUALITIES = {"certree": "default", "certree fast": "fast", "certree best": "best"}


def choose_sizes(n: int) -> list[int]:
    """Return the numbers of training rows for a table of n rows."""
    most = min(3 * n // 4, MAX_ROWS)
    return [size for size in SIZES if size <= most] + [most] * (2 * most > 3 * SIZES[-1])


def make_methods(data: Data) -> dict[str, Any]:
    """Return functions that make the compared models."""
    kind = BoostedTreesRegressor if data.is_regression else BoostedTreesClassifier
    options = {"categorical_features": data.categorical, "random_state": 0, "n_jobs": 1}
    ours = {name: lambda q=q: kind(quality=q, **options) for name, q in QUALITIES.items()}
    return ours | make_boosters(data)


def measure_fits(model: Any, split: Split) -> dict[str, float]:
    """Fit a model, again if it takes little time, and return losses and median seconds."""
    found = measure_fit(model, split)
    if found["seconds"] < SHORT_SECONDS:
        X, y, *_ = split
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in measure_fit
            clock = time.process_time
            found["seconds"] = measure_median(lambda: model.fit(X, y), N_REPEATS, clock)
    return found


def main(only: str = "", splits: int = 3) -> None:
    """Run the missing fits; only: names of tables, separated by commas."""
    tables = load_tables(only, shipped=True)
    fits = list_fits(tables, choose_sizes, lambda _: splits, make_methods, measure_fits)
    run_missing("boosting", fits)


if __name__ == "__main__":
    typer.run(main)
