"""Memory beyond the input of boosted trees, forests and their predictions, by the kind of the input.

A million rows of 28 numbers, two classes; in mixed frames three of the columns are categories and
three whole numbers. A fit makes three rounds, or grows three trees of few leaves, so that the intake
of rows is measured. Each case runs in a process of its own, after the same on a few rows; its figure
is how far the memory in use rises above what was in use before, in MB. At most 150 MB are asked of a
fit of boosted trees, and 130 of a prediction. LightGBM does the same where it is installed and takes
such input. Times are CPU times of the fit.

Linux alone, with its C library, says what the peak of a part of a process is.
"""

import argparse
import ctypes
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Row, report

N_FEATURES, FEW = 28, 2000
FIT, PREDICT = 150, 130
MODELS = ("classifier", "regressor", "forest")
PEER = "LightGBM"
# The features of mixed frames that hold categories, and those that hold whole numbers.
CATEGORIES, WHOLE = (3, 11, 20), (5, 6, 7)


def columns(n: int) -> list[np.ndarray]:
    """Normal features."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(n) for _ in range(N_FEATURES)]


def array(n: int, dtype: str, order: Any) -> np.ndarray:
    """The features as an array, made without a second one."""
    X = np.empty((n, N_FEATURES), dtype=dtype, order=order)
    for j, column in enumerate(columns(n)):
        X[:, j] = column
    return X


def mixed(n: int) -> dict[str, Any]:
    """Numbers, whole numbers and categories, by name."""
    made: dict[str, Any] = {f"x{j}": column for j, column in enumerate(columns(n))}
    for j in WHOLE:
        made[f"x{j}"] = np.rint(10 * made[f"x{j}"]).astype(np.int64)
    for j in CATEGORIES:
        made[f"x{j}"] = np.array(list("abcdefgh"))[(abs(4 * made[f"x{j}"]) % 8).astype(int)]
    return made


def pandas_frame(n: int, dtype: str) -> Any:
    """A frame as pandas makes it of columns."""
    import pandas as pd

    return pd.DataFrame({f"x{j}": one.astype(dtype) for j, one in enumerate(columns(n))})


def pandas_of_rows(n: int) -> Any:
    """A frame as pandas makes it of an array."""
    import pandas as pd

    return pd.DataFrame(array(n, "float64", "C"), columns=[f"x{j}" for j in range(N_FEATURES)])


def pandas_mixed(n: int) -> Any:
    """A frame with types of categories."""
    import pandas as pd

    made = mixed(n)
    for j in CATEGORIES:
        made[f"x{j}"] = pd.Categorical(made[f"x{j}"])
    return pd.DataFrame(made)


def arrow(n: int) -> Any:
    """A table of Arrow."""
    import pyarrow as pa

    return pa.table({f"x{j}": one for j, one in enumerate(columns(n))})


def polars(n: int) -> Any:
    """A frame of polars."""
    import polars as pl

    return pl.DataFrame({f"x{j}": one for j, one in enumerate(columns(n))})


INPUTS: dict[str, Callable[[int], Any]] = {
    "float64, rows": lambda n: array(n, "float64", "C"),
    "float64, columns": lambda n: array(n, "float64", "F"),
    "float32, rows": lambda n: array(n, "float32", "C"),
    "float32, columns": lambda n: array(n, "float32", "F"),
    "pandas": lambda n: pandas_frame(n, "float64"),
    "pandas, float32": lambda n: pandas_frame(n, "float32"),
    "pandas of rows": pandas_of_rows,
    "pandas, mixed": pandas_mixed,
    "Arrow": arrow,
    "polars": polars,
}


def model_of(name: str) -> Any:
    """A model that is soon fitted."""
    if name == PEER:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1)
    from certree.ensembles import (
        BoostedTreesClassifier,
        BoostedTreesRegressor,
        TreeForestClassifier,
    )

    if name == "forest":
        few = {"max_depth": 6, "leaves": "plain", "max_samples": 0.01}
        return TreeForestClassifier(3, **few, random_state=0, n_jobs=1)
    kind = BoostedTreesClassifier if name == "classifier" else BoostedTreesRegressor
    return kind(max_iter=3, random_state=0, n_jobs=1)


def of_status(field: str) -> int:
    """KiB that the system says of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def rise(run: Callable[[], Any]) -> float:
    """How far a run raises the memory in use, in MB."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free would hide what is asked for
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is in use from now on
    before = of_status("VmRSS")
    run()
    return (of_status("VmHWM") - before) * 1024 / 1e6


def print_case(kind: str, name: str, n: int) -> None:
    """Print seconds and memory of a fit, and memory of a prediction; in a process of its own."""
    y = np.random.default_rng(1).random(n) > 0.5
    X, target = INPUTS[kind](n), y.astype(float) if name == "regressor" else y.astype(int)
    few = INPUTS[kind](FEW)
    model_of(name).fit(few, target[:FEW]).predict(few)
    model = model_of(name)
    start = time.process_time()
    fit = rise(lambda: model.fit(X, target))
    took = time.process_time() - start
    print(took, fit, rise(lambda: model.predict(X)))


def measured(kind: str, name: str, n: int) -> tuple[float, ...] | None:
    """Seconds and memory of a fit, and memory of a prediction; None if it fails, as a peer may."""
    command = [sys.executable, "-m", "benchmarks.memory", "--case", kind, name, "--rows", str(n)]
    done = subprocess.run(command, check=name != PEER, capture_output=True, text=True)
    return tuple(map(float, done.stdout.split())) if done.returncode == 0 else None


def rows_of(kind: str, n: int, models: list[str]) -> list[Row]:
    """The lines of one kind of input."""
    peer, rows = measured(kind, PEER, n), []
    if peer is not None:
        for step, took, figure in (("fit", peer[0], peer[1]), ("predict", None, peer[2])):
            rows.append(Row(f"{PEER} {step}, {kind}", took, figure=figure, unit="MB"))
    for name in models:
        ours = measured(kind, name, n)
        assert ours is not None
        of_peer = (PEER, peer[0]) if peer is not None and name == "classifier" else ("", None)
        goal = None if name == "forest" else FIT
        rows.append(
            Row(f"{name} fit, {kind}", ours[0], *of_peer, target=goal, figure=ours[1], unit="MB")
        )
        rows.append(Row(f"{name} predict, {kind}", None, target=PREDICT, figure=ours[2], unit="MB"))
    return rows


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--inputs", nargs="*", default=[*INPUTS])
    parser.add_argument("--models", nargs="*", default=["classifier"], choices=MODELS)
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print_case(*options.case, options.rows)
        return
    found = [rows_of(kind, options.rows, options.models) for kind in options.inputs]
    report("memory", [row for rows in found for row in rows])


if __name__ == "__main__":
    main()
