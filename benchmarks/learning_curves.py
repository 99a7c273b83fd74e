"""The default tree against scikit-learn's tuned tree, from 100 to 5000 training rows.

Public tables and those of scikit-learn; up to 4000 other rows are for testing. Five folds choose
alpha and criterion of scikit-learn's tree, and Laplace's rule smooths its leaves. 20 splits below
1000 rows, 5 from there on; one thread. Fits that the result file has are not repeated.
"""

import time
from functools import partial
from typing import Any

import typer

from benchmarks.peers import TunedTree, list_fits, measure_fit
from benchmarks.results import run_missing
from benchmarks.tables import Data, load_tables
from certree import PACBayesTreeClassifier, PACBayesTreeRegressor

SIZES = (100, 300, 1000, 3000, 5000)


def make_methods(data: Data) -> dict[str, Any]:
    """Return functions that make both models."""
    kind = PACBayesTreeRegressor if data.is_regression else PACBayesTreeClassifier
    return {
        "certree": lambda: kind(categorical_features=data.categorical, random_state=0),
        "tuned tree": lambda: TunedTree(data.is_regression),
    }


def main(only: str = "", splits: int = 20) -> None:
    """Run the missing fits; only: names of tables; splits: below 1000 rows, a quarter above."""
    fits = list_fits(
        load_tables(only, shipped=True),
        lambda n: [size for size in SIZES if size <= 0.75 * n],
        lambda n: splits if n < 1000 else -(-splits // 4),
        make_methods,
        partial(measure_fit, clock=time.perf_counter),
    )
    run_missing("learning_curves", fits)


if __name__ == "__main__":
    typer.run(main)
