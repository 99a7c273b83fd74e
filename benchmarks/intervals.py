"""Bands and prediction sets beside MAPIE's split conformal prediction, on the same rows.

2000 rows of each public table, half of which grow the tree and half of which calibrate; up to 10,000
others are new. Means over 60 draws, for 90 % of new rows. Ours promise that for the fit at hand, with
probability 95 %; MAPIE's (the library of Cordier et al., COPA 2023) on average over fits, so that about
one half of its fits hold fewer. `short` is the share of draws in which the share of new rows held is
below 90 %; of ours it may be .05, and what so many new rows leave open. Our bands are wider for that
promise: `ours, on average` are the same scores at the place that MAPIE takes.

Regressors are the same model to both. Classifiers are not: ours orders classes by the vote of a law
that is fixed without the calibration samples, MAPIE by `PACBayesTreeClassifier` on the training
samples. Needs CERTREE_DATA and the extra `bench`; takes some minutes.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.defaults import REGRESSION, Data, tables
from benchmarks.timing import Row, report
from certree import CertifiedTreeClassifier, CertifiedTreeRegressor, PACBayesTreeClassifier
from certree.certificates.subsets import place_to_cover
from certree.rows.split import train_calibration_split

COVERAGE, DELTA = 0.9, 0.05
ROWS, NEW, DRAWS = 2000, 10_000, 60
TABLES = {
    *("abalone", "bike_sharing", "california_housing", "diamonds"),
    *("adult", "bank_marketing", "credit_default", "electricity", "letter", "magic04"),
    *("pendigits", "satimage", "spam"),
}


def measured(name: str, data: Data, mapie: Any) -> Iterator[Row]:
    """Size, share of new rows held and short draws of each way."""
    compare, unit = (_bands, "wide") if name in REGRESSION else (_sets, "classes")
    held, size = defaultdict(list), defaultdict(list)
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(len(data.y))
        fit, new = order[:ROWS], order[ROWS : ROWS + NEW]
        for way, inside, width in compare(data, fit, new, draw, mapie):
            held[way].append(np.mean(inside))
            size[way].append(np.mean(width))
    for way, shares in held.items():
        short = np.mean(np.array(shares) < COVERAGE)
        said = f"{unit}, {np.mean(shares):.3f} held, {short:.2f} short"
        yield Row(f"{name}, {way}", None, figure=float(np.mean(size[way])), unit=said)


def _bands(data: Data, fit: Any, new: Any, draw: int, mapie: Any) -> Iterator[tuple[str, Any, Any]]:
    y = data.y.astype(np.float64)
    calibrate = fit[train_calibration_split(ROWS, 0.5, np.random.RandomState(draw)).calibration]
    for widths in ("one", "scaled"):
        model = CertifiedTreeRegressor(
            duplicates="genuine",
            widths=widths,
            categorical_features=data.categorical,
            random_state=draw,
        ).fit(data.X[fit], y[fit])
        low, high = model.predict_interval(data.X[new]).T
        yield f"ours, {widths}", (low <= y[new]) & (y[new] <= high), high - low
        scores = model.conformity_scores_.value
        place = place_to_cover(len(scores), COVERAGE, None)
        half = scores[place - 1] * model.intervals_.scale[model.apply(data.X[new])]
        inside = np.abs(y[new] - model.predict(data.X[new])) <= half
        yield f"ours, {widths}, on average", inside, 2 * half
        if widths == "one":
            peer = mapie.regression.SplitConformalRegressor(model, confidence_level=COVERAGE)
            peer.conformalize(data.X[calibrate], y[calibrate])
            low, high = peer.predict_interval(data.X[new])[1][:, :, 0].T
            yield "MAPIE, absolute", (low <= y[new]) & (y[new] <= high), high - low


def _sets(data: Data, fit: Any, new: Any, draw: int, mapie: Any) -> Iterator[tuple[str, Any, Any]]:
    switches = {"categorical_features": data.categorical, "random_state": draw}
    model = CertifiedTreeClassifier(train_size=0.5, duplicates="genuine", **switches).fit(
        data.X[fit], data.y[fit]
    )
    place = np.searchsorted(model.classes_, data.y[new])
    rows = np.arange(len(new))
    found = model.predict_set(data.X[new], COVERAGE, DELTA)
    yield "ours", found[rows, place], found.sum(axis=1)
    sides = train_calibration_split(ROWS, 0.5, np.random.RandomState(draw))
    grow, calibrate = fit[sides.train], fit[sides.calibration]
    alone = PACBayesTreeClassifier(**switches).fit(data.X[grow], data.y[grow])
    for score in ("lac", "aps") if len(alone.classes_) > 2 else ("lac",):
        peer = mapie.classification.SplitConformalClassifier(
            alone, confidence_level=COVERAGE, conformity_score=score, random_state=draw
        )
        peer.conformalize(data.X[calibrate], data.y[calibrate])
        found = peer.predict_set(data.X[new])[1][:, :, 0]
        yield f"MAPIE, {score}", found[rows, place], found.sum(axis=1)


def main() -> None:
    """Measure all tables."""
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("intervals: skipped, CERTREE_DATA names no directory of tables")
        return
    try:
        import mapie.classification
        import mapie.regression
    except ImportError:
        print('intervals: skipped, mapie is not installed: pip install "certree[bench]"')
        return
    rows = [
        row
        for name, data in tables(Path(directory)).items()
        if name in TABLES
        for row in measured(name, data, mapie)
    ]
    report("intervals", rows)


if __name__ == "__main__":
    main()
