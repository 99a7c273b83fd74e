"""Seconds of fits and predictions of boosted trees, with their losses, against LightGBM.

adult (24,000 rows fitted), scikit-learn's breast cancer (400) and California housing (14,000); all
other rows are predicted. certree at its defaults and with `quality="fast"`, LightGBM with 100 rounds;
both with native categories, one thread and all cores, CPU and wall time. Both take turns; medians over
three draws of rows; the first run does not count, and runs below a second are repeated.
"""

import os
import statistics
import time
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np
import typer
from sklearn.metrics import log_loss, root_mean_squared_error

import certree
from benchmarks.peers import make_lightgbm
from benchmarks.results import Row, report
from benchmarks.tables import Data, load_tables
from benchmarks.timing import Run

ROWS = {"adult": 24_000, "sklearn_breast_cancer": 400, "california_housing": 14_000}


def measure_clocks(run: Run) -> tuple[float, float]:
    """Return CPU and wall seconds of a run."""
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu, time.perf_counter() - wall


def compare(name: str, data: Data, quality: str, n_jobs: int | None, seeds: int) -> Iterator[Row]:
    """Yield the rows of one table: times of fits and predictions, and the losses of both."""
    kind = "Regressor" if data.is_regression else "Classifier"
    where = data.categorical if data.categorical.any() else None
    pairs, losses = {"fit": [], "predict": []}, []
    for seed in range(seeds):
        train, test = data.draw(seed, ROWS[name])
        X, y, new = data.X[train], data.y[train], data.X[test]
        options = {"random_state": seed, "n_jobs": n_jobs}
        make = partial(getattr(certree, f"BoostedTrees{kind}"), quality=quality, **options)
        ours = make(categorical_features=where)
        peer = make_lightgbm(kind, **{**options, "n_jobs": n_jobs or os.cpu_count()})
        columns = np.flatnonzero(data.categorical).tolist()
        predict = [one.predict if data.is_regression else one.predict_proba for one in (ours, peer)]
        runs = {
            "fit": [partial(ours.fit, X, y), partial(peer.fit, X, y, categorical_feature=columns)],
            "predict": [partial(one, new) for one in predict],
        }
        for what, both in runs.items():
            is_short = max(measure_clocks(run)[1] for run in both) < 1
            for _ in range(5 if is_short else 1):
                pairs[what].append([measure_clocks(run) for run in both])
        loss = root_mean_squared_error if data.is_regression else log_loss
        losses.append([loss(data.y[test], one(new)) for one in predict])
    texts = " to ".join(f"{one:.4g}" for one in np.mean(losses, axis=0))
    threads = "one thread" if n_jobs == 1 else "all cores"
    label = "breast cancer" if name.startswith("sklearn") else name
    for what, found in pairs.items():
        for clock, word in enumerate(("CPU", "wall")):
            a, b = (statistics.median(pair[k][clock] for pair in found) for k in (0, 1))
            case = f'{label}, {what}, "{quality}", {threads}, {word}'
            yield Row(case, a, "LightGBM", b, unit=f"ratio, loss {texts}")


def main(only: str = ",".join(ROWS), seeds: int = 3) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    if not find_spec("lightgbm"):
        print('skipped: pip install "certree[bench]" for LightGBM')
        return
    warnings.simplefilter("ignore")  # LightGBM warns of names that rows of arrays do not have
    rows = [
        row
        for name, data in load_tables(only, shipped=True).items()
        for quality in ("default", "fast")
        for n_jobs in (1, None)
        for row in compare(name, data, quality, n_jobs, seeds)
    ]
    report("times", rows)


if __name__ == "__main__":
    typer.run(main)
