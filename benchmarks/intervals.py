"""Prediction intervals of `CertifiedTreeRegressor` against MAPIE's split conformal prediction.

2000 random rows of public tables of numbers, half of which train and half of which calibrate; up to
10,000 other rows are new; 60 draws, 90 % coverage. certree's guarantee holds for the fit at hand with
probability 95 %, MAPIE's on average over fits. "Short" is the fraction of draws that cover less than
90 % of the new rows. Both use the same model.
"""

from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import typer

from benchmarks.results import Row, report
from benchmarks.tables import Data, load_tables
from certree import CertifiedTreeRegressor
from certree.rows.split import train_calibration_split

COVERAGE, ROWS, NEW_ROWS = 0.9, 2000, 10_000
TABLES = "abalone,bike_sharing,california_housing,diamonds"


def predict_intervals(data: Data, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield the intervals of each method on new rows, for one draw."""
    from mapie.regression import SplitConformalRegressor

    fit, new, _ = data.draw(seed, ROWS, NEW_ROWS)
    held = fit[train_calibration_split(ROWS, 0.5, np.random.RandomState(seed)).calibration]
    options = {"categorical_features": data.categorical, "random_state": seed}
    for widths in ("one", "scaled"):
        model = CertifiedTreeRegressor(duplicates="genuine", widths=widths, **options)
        model.fit(data.X[fit], data.y[fit])
        yield f"ours, {widths}", model.predict_interval(data.X[new])
        if widths == "one":
            peer = SplitConformalRegressor(model, confidence_level=COVERAGE)
            peer.conformalize(data.X[held], data.y[held])
            yield "MAPIE, absolute", peer.predict_interval(data.X[new])[1][:, :, 0]


def main(only: str = TABLES, draws: int = 60) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    if not find_spec("mapie"):
        print('skipped: pip install "certree[bench]" for MAPIE')
        return
    rows = []
    for name, data in load_tables(only).items():
        coverages, widths = defaultdict(list), defaultdict(list)
        for seed in range(draws):
            _, new, _ = data.draw(seed, ROWS, NEW_ROWS)
            for method, interval in predict_intervals(data, seed):
                low, high = interval.T
                coverages[method].append(np.mean((low <= data.y[new]) & (data.y[new] <= high)))
                widths[method].append(np.mean(high - low))
        for method, covered in coverages.items():
            short = np.mean(np.array(covered) < COVERAGE)
            unit = f"wide, {np.mean(covered):.3f} held, {short:.2f} short"
            rows.append(Row(f"{name}, {method}", figure=float(np.mean(widths[method])), unit=unit))
    report("intervals", rows)


if __name__ == "__main__":
    typer.run(main)
