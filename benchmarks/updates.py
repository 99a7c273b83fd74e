"""Rows that join and leave a fit in a given box, against a fit to all rows: CPU time.

A million rows of five numbers, a tree of 4096 leaves, and a thousand rows that come and go. The peer is
the fit that would be made without updates. Target: at most a quarter of its time.
"""

import argparse
import time
from functools import partial

import numpy as np
from sklearn.base import clone

from benchmarks.timing import Row, alternate, report
from certree import Grid, PACBayesTreeClassifier, PACBayesTreeRegressor

FEATURES, BATCH, SHARE = 5, 1000, 0.25
BOX = Grid([[-3.0] * FEATURES, [3.0] * FEATURES])
SETTINGS = {"max_depth": 12, "lambda_error": 1.0, "lambda_penalty": 0.1}


def main() -> None:
    """Time updates of both kinds of trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(arguments.rows, FEATURES))
    more = rng.normal(size=(BATCH, FEATURES))
    score = X[:, 0] + rng.normal(size=arguments.rows)
    rows = []
    for model, y in (
        (PACBayesTreeClassifier(BOX, **SETTINGS), (score > 0).astype(int)),
        (PACBayesTreeRegressor(BOX, **SETTINGS), score),
    ):
        fitted = clone(model).fit(X, y)
        fit = partial(clone(model).fit, X, y)
        for name in ("partial_fit", "forget"):  # the second takes out what the first has put in
            update = partial(getattr(fitted, name), more, y[:BATCH])
            times = alternate(update, fit, arguments.repeats, time.process_time)
            case = f"{type(model).__name__}.{name}, {BATCH} of {arguments.rows} rows"
            rows.append(Row(case, times[0], "fit", times[1], SHARE))
    report("updates", rows)


if __name__ == "__main__":
    main()
