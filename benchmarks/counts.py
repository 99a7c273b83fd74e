"""Growing a tree from sums over bins against LightGBM, for gradients, 63 leaves and one thread.

What boosting does in a round: 70 % of the rows grow the tree (all of the large table), and the leaf of
every row is found. Rows of synthetic tables are normal, their columns shuffled; gradients and Hessians
are those of the log loss of a rough model. LightGBM grows on the same rows, with as many leaves and
bins, from gradients that are handed to it; it does not see the other rows. Times are CPU times of one
tree, the minimum of several in turn; the figure is certree's over LightGBM's. Bins are measured by
themselves.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import lightgbm
import numpy as np

from benchmarks.timing import Row, report
from certree.grow import BinnedGrower, Bins

LEAVES, LEAST_ROWS, GROWING = 63, 5, 0.7


def drawn(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows with shuffled columns, and noisy classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    signal = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3] ** 2 + rng.normal(size=n)
    return X[:, rng.permutation(p)], (signal > np.median(signal)).astype(float)


def adult() -> tuple[np.ndarray, np.ndarray] | None:
    """Adult with codes for names, its target last; None where it is not at hand."""
    from pyarrow import parquet

    path = Path(os.environ.get("CERTREE_DATA", "")) / "more" / "adult.parquet"
    if not path.exists():
        return None
    frame = parquet.read_table(path).to_pandas()
    codes = [
        column.to_numpy(float)
        if column.dtype.kind in "fiu"
        else np.unique(column.astype(str), return_inverse=True)[1].astype(float)
        for _, column in frame.items()
    ]
    return np.column_stack(codes[:-1]), codes[-1]


def cpu(run: Callable[[], object]) -> float:
    """CPU time of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def compared(name: str, X: np.ndarray, y: np.ndarray, share: float, repeats: int) -> list[Row]:
    """One tree on some of the rows, and the bins of all."""
    rng = np.random.default_rng(1)
    z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    q = 1 / (1 + np.exp(-z @ rng.normal(size=X.shape[1]) / X.shape[1]))
    g, h = q - y, q * (1 - q)
    order = rng.permutation(len(X))
    rows, others = (
        np.sort(part).astype(np.int32) for part in np.split(order, [int(share * len(X))])
    )
    bins: list[Bins] = []
    own_bins = cpu(lambda: bins.append(Bins.from_table(X)))
    settings = {"max_bin": 255, "min_data_in_bin": 1, "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(X[rows], y[rows], params=settings)
    peer_bins = cpu(data.construct)
    limits = {"num_leaves": LEAVES, "min_data_in_leaf": LEAST_ROWS, "min_sum_hessian_in_leaf": 0}
    theirs = lightgbm.Booster({**settings, **limits, "objective": "none"}, data)
    derivatives = g[rows].astype(np.float32), h[rows].astype(np.float32)
    grower = BinnedGrower(bins[0], max_leaves=LEAVES, min_samples_leaf=LEAST_ROWS)
    ours, peer = [], []
    for _ in range(repeats):
        ours.append(cpu(lambda: grower.grow_gradients(g, h, rows=rows, others=others)))
        peer.append(cpu(lambda: theirs.update(fobj=lambda *_: derivatives)))
    case = f"{name}, {len(X)} rows, p = {X.shape[1]}"
    return [
        Row(f"tree, {case}", min(ours), "LightGBM", min(peer), 1.0),
        Row(f"bins, {case}", own_bins, "LightGBM", peer_bins),
    ]


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large case")
    n = parser.parse_args().rows
    warnings.filterwarnings("ignore")
    rows = []
    for p in (28, 14):
        rows += compared("normal", *drawn(n // 25, p), GROWING, 30)
    table = adult()
    if table is not None:
        rows += compared("adult", *table, GROWING, 30)
    rows += compared("normal", *drawn(n, 28), 1.0, 4)
    report("counts", rows)


if __name__ == "__main__":
    main()
