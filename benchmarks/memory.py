"""Memory beyond the input of fits and predictions of boosted trees and forests, by kind of input.

A million rows of 28 numbers, two classes; mixed frames have three columns of categories and three of
integers. A fit makes three rounds or three small trees. Each case runs in a new process, after a fit to
few rows; its figure is by how many MB the memory in use rises. Targets: 150 MB for a fit of boosted
trees, 130 for a prediction. LightGBM runs the same cases, if it takes the input. Linux only.
"""

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import typer

from benchmarks.peers import make_lightgbm
from benchmarks.results import Row, report
from benchmarks.timing import run_in_new_process
from certree import ensembles

N_FEATURES, FEW, PEER = 28, 2000, "LightGBM"
CATEGORIES, INTEGERS = (3, 11, 20), (5, 6, 7)


def make_columns(n: int) -> dict[str, np.ndarray]:
    """Return normal columns."""
    rng = np.random.default_rng(0)
    return {f"x{j}": rng.standard_normal(n) for j in range(N_FEATURES)}


def make_array(n: int, dtype: str, order: Any) -> np.ndarray:
    """Return the columns as an array, without a second copy of all columns."""
    X, rng = np.empty((n, N_FEATURES), dtype=dtype, order=order), np.random.default_rng(0)
    for j in range(N_FEATURES):
        X[:, j] = rng.standard_normal(n)
    return X


def make_frame(n: int, dtype: str = "float64", kind: str = "columns") -> Any:
    """Return a frame of pandas from "columns", from an "array", or with "mixed" columns."""
    columns = {name: column.astype(dtype) for name, column in make_columns(n).items()}
    if kind == "array":
        return pd.DataFrame(make_array(n, "float64", "C"), columns=[*columns])
    if kind == "mixed":
        for j in INTEGERS:
            columns[f"x{j}"] = np.rint(10 * columns[f"x{j}"]).astype(np.int64)
        for j in CATEGORIES:
            codes = (abs(4 * columns[f"x{j}"]) % 8).astype(int)
            columns[f"x{j}"] = pd.Categorical(np.array(list("abcdefgh"))[codes])
    return pd.DataFrame(columns)


INPUTS: dict[str, Callable[[int], Any]] = {
    "float64, rows": lambda n: make_array(n, "float64", "C"),
    "float64, columns": lambda n: make_array(n, "float64", "F"),
    "float32, rows": lambda n: make_array(n, "float32", "C"),
    "float32, columns": lambda n: make_array(n, "float32", "F"),
    "pandas": make_frame,
    "pandas, float32": lambda n: make_frame(n, "float32"),
    "pandas of rows": lambda n: make_frame(n, kind="array"),
    "pandas, mixed": lambda n: make_frame(n, kind="mixed"),
    "Arrow": lambda n: pa.table(make_columns(n)),
    "polars": lambda n: pl.DataFrame(make_columns(n)),
}


def make_model(name: str) -> Any:
    """Return a model that is fitted quickly, of LightGBM or certree."""
    if name == PEER:
        return make_lightgbm("Classifier", n_estimators=3)
    if name == "forest":
        few = {"max_depth": 6, "leaves": "plain", "max_samples": 0.01}
        return ensembles.TreeForestClassifier(3, **few, random_state=0, n_jobs=1)
    kind = getattr(ensembles, f"BoostedTrees{name.capitalize()}")
    return kind(max_iter=3, random_state=0, n_jobs=1)


def read_status(field: str) -> int:
    """Return a field of the status of this process, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def measure_rise(run: Callable[[], Any]) -> float:
    """Return by how many MB a run raises the memory in use."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # free memory would hide what the run needs
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = read_status("VmRSS")
    run()
    return (read_status("VmHWM") - before) * 1024 / 1e6


def measure(kind: str, name: str, n: int) -> tuple[float, float, float]:
    """Return CPU seconds and MB of a fit, and MB of a prediction."""
    y = np.random.default_rng(1).random(n) > 0.5
    X, y = INPUTS[kind](n), y.astype(float if name == "regressor" else int)
    few = INPUTS[kind](FEW)
    make_model(name).fit(few, y[:FEW]).predict(few)
    model, start = make_model(name), time.process_time()
    fit = measure_rise(lambda: model.fit(X, y))
    seconds = time.process_time() - start
    return seconds, fit, measure_rise(lambda: model.predict(X))


def compare(kind: str, n: int, models: list[str]) -> list[Row]:
    """Return the rows of one kind of input."""
    rows, peer = [], ("", None)
    for name in [PEER, *models]:
        try:
            seconds, fit, predict = run_in_new_process(measure, kind, name, n)
        except Exception as error:  # noqa: BLE001 -- LightGBM does not take every input
            print(f"{name}, {kind}: {error}")
            continue
        times = (seconds, *peer) if name == "classifier" else (seconds,)
        goals = (150 if name in ("classifier", "regressor") else None, 130)
        if name == PEER:
            peer, goals = (PEER, seconds), (None, None)
        rows.append(Row(f"{name} fit, {kind}", *times, target=goals[0], figure=fit, unit="MB"))
        rows.append(Row(f"{name} predict, {kind}", target=goals[1], figure=predict, unit="MB"))
    return rows


def main(rows: int = 1_000_000, only: str = "", models: str = "classifier") -> None:
    """Measure all inputs; only: one input; models: classifier, regressor, forest, with commas."""
    kinds = [only] if only else INPUTS
    report("memory", [row for kind in kinds for row in compare(kind, rows, models.split(","))])


if __name__ == "__main__":
    typer.run(main)
