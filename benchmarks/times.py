"""How long boosted trees take to fit and to predict, and how well they do, against LightGBM.

Three tables: adult (24,000 rows fitted, 24,842 others predicted), scikit-learn's breast cancer (400
fitted, 169 predicted) and California housing, numbers (14,000 and 6640). Ours at its defaults and
with `quality="fast"`, LightGBM with its 100 rounds; categories are native to both. One thread, and all
cores; CPU time of the process, and wall time. Both take turns, and times are medians over three
draws of the rows and as many seeds, the first run of each left out; what takes less than a second is
repeated. The machine may be busy: CPU times then say more than wall times, and ratios more than
either. Needs CERTREE_DATA, but for breast cancer, and LightGBM.
"""

import os
import statistics
import time
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss, root_mean_squared_error

from benchmarks.defaults import REGRESSION, Data, tables
from benchmarks.timing import Row, report
from certree import BoostedTreesClassifier, BoostedTreesRegressor

FITTED = {"adult": 24_000, "breast cancer": 400, "california_housing": 14_000}
SEEDS, SHORT, REPEATS = 3, 1.0, 5

Spent = tuple[float, float]  # CPU and wall seconds


def spent(run: Any) -> Spent:
    """CPU and wall time of one run."""
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu, time.perf_counter() - wall


def ours(name: str, data: Data, quality: str, seed: int, n_jobs: int | None) -> Any:
    """Our model."""
    model = BoostedTreesRegressor if name in REGRESSION else BoostedTreesClassifier
    return model(
        quality=quality,
        categorical_features=data.categorical if data.categorical.any() else None,
        random_state=seed,
        n_jobs=n_jobs,
    )


def theirs(name: str, seed: int, n_jobs: int | None) -> Any:
    """LightGBM's."""
    import lightgbm

    model = lightgbm.LGBMRegressor if name in REGRESSION else lightgbm.LGBMClassifier
    return model(random_state=seed, n_jobs=n_jobs or os.cpu_count(), verbose=-1)


def measured(name: str, data: Data, quality: str, n_jobs: int | None) -> Iterator[Row]:
    """Times of fits and predictions, and the loss of both."""
    numbers, n = name in REGRESSION, FITTED[name]
    where = {"categorical_feature": np.flatnonzero(data.categorical).tolist()}
    found: dict[str, list[tuple[Spent, Spent]]] = {"fit": [], "predict": []}
    losses = []
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(data.y))
        X, y, new = data.X[order[:n]], data.y[order[:n]], data.X[order[n:]]
        y = y.astype(np.float64) if numbers else y
        models = ours(name, data, quality, seed, n_jobs), theirs(name, seed, n_jobs)
        fits = [partial(models[0].fit, X, y), partial(models[1].fit, X, y, **where)]
        asks = [one.predict if numbers else one.predict_proba for one in models]
        predictions = [partial(ask, new) for ask in asks]
        for what, runs in (("fit", fits), ("predict", predictions)):
            first = [spent(run) for run in runs]
            short = max(wall for _, wall in first) < SHORT
            for _ in range(REPEATS if short else 1):
                found[what].append((spent(runs[0]), spent(runs[1])))
        judge = root_mean_squared_error if numbers else log_loss
        losses.append([judge(data.y[order[n:]], ask(new)) for ask in asks])
    loss = " to ".join(f"{one:.4g}" for one in np.mean(losses, axis=0))
    threads = "one thread" if n_jobs == 1 else "all cores"
    for what, pairs in found.items():
        for clock, label in enumerate(("CPU", "wall")):
            mine, peers = (statistics.median(pair[k][clock] for pair in pairs) for k in (0, 1))
            case = f'{name}, {what}, "{quality}", {threads}, {label}'
            yield Row(case, mine, "LightGBM", peers, unit=f"ratio, loss {loss}")


def main() -> None:
    """Measure all tables."""
    if not find_spec("lightgbm"):
        print('times: skipped, LightGBM is not installed: pip install "certree[bench]"')
        return
    directory = os.environ.get("CERTREE_DATA")
    known = tables(Path(directory)) if directory else {}
    X, y = load_breast_cancer(return_X_y=True)
    known["breast cancer"] = Data(X, y, np.zeros(X.shape[1], dtype=bool))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM of names that rows of arrays do not have
        rows = [
            row
            for name in FITTED
            if name in known
            for quality in ("default", "fast")
            for n_jobs in (1, None)
            for row in measured(name, known[name], quality, n_jobs)
        ]
    report("times", rows)


if __name__ == "__main__":
    main()
