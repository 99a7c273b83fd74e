"""What time buys boosted trees on many rows: "fast", "default" and "best" beside LightGBM and CatBoost.

30,000 rows of four tables of the folder `more` of the directory CERTREE_DATA train, up to 4000 others
judge: error and log loss (root mean squared error over the standard deviation, of numbers), and seconds
of CPU of a fit, one thread each, seed 0, all else as it comes. Every fit is a line of
results/boosting_quality.csv; fits that stand there already are not made again.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.boosting import judged
from benchmarks.boosting import methods as as_they_come
from benchmarks.defaults import Data, tables
from benchmarks.learning_curves import NUMBERS, parts_of
from benchmarks.records import RESULTS, known, store
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor

FILE = RESULTS / "boosting_quality.csv"
ROWS = 30_000
TABLES = ("adult", "bank_marketing", "electricity", "diamonds")
QUALITIES, PEERS = ("fast", "default", "best"), ("LightGBM", "CatBoost")


def methods(data: Data, numbers: bool) -> dict[str, Callable[[], Any]]:
    """What is fitted."""
    ours = BoostedTreesRegressor if numbers else BoostedTreesClassifier
    options = {"categorical_features": data.categorical, "random_state": 0, "n_jobs": 1}
    peers = as_they_come(data, numbers)
    return {
        **{name: lambda name=name: ours(quality=name, **options) for name in QUALITIES},
        **{name: peers[name] for name in PEERS if name in peers},
    }


def main() -> None:
    """Fit what the file lacks."""
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("boosting_quality: skipped, CERTREE_DATA names no directory of tables")
        return
    rows = known(FILE)
    done = {(row["table"], row["method"]) for row in rows}
    found = tables(Path(directory))
    for name in TABLES:
        data, numbers = found[name], name in NUMBERS
        parts = parts_of(data, ROWS, 0, numbers)
        for label, made in methods(data, numbers).items():
            if (name, label) not in done:
                place = {"table": name, "rows": ROWS, "split": 0, "method": label}
                rows.append({**place, **judged(made(), parts, numbers)})
                store(FILE, rows, added=bool(done))
                print(*rows[-1].values(), flush=True)


if __name__ == "__main__":
    main()
