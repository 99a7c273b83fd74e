"""Loss of fits to tables with repeated rows, against fits with `groups` that know the copies.

1000 rows of two classes with known probabilities; random rows are copied 2 or 8 times until a fraction
of the table repeats others. Mean loss on 4000 new rows over forty draws: log loss, or the Brier score
of pruned trees. "passes" is the fraction at which the ratio of the losses passes 1.03, interpolated;
empty if it never does. `RepeatedRowsWarning` warns above `certree.rows.duplicates.MOST_REPEATED`.
"""

import warnings
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.metrics import brier_score_loss, log_loss

import certree
from benchmarks.results import store

ROWS, NEW_ROWS, LOST = 1000, 4000, 1.03
FRACTIONS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0)
MODELS: dict[str, Any] = {
    "pruned tree": certree.PrunedTreeClassifier,
    "PAC-Bayes tree": certree.PACBayesTreeClassifier,
    "Helmbold-Schapire tree": certree.HelmboldSchapireTreeClassifier,
    "boosted trees": certree.BoostedTreesClassifier,
    "forest": certree.TreeForestClassifier,
}


def draw_rows(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw rows and classes."""
    random = np.random.default_rng((seed, n))
    X = random.normal(size=(n, 6))
    score = 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) - np.maximum(X[:, 3], 0) + 0.3
    return X, (random.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)


def copy_rows(fraction: float, copies: int, seed: int) -> NDArray[np.intp]:
    """Return indices of rows, of which about a fraction repeats others."""
    n_copied = round(ROWS * fraction / (copies - fraction * (copies - 1)))
    counts = np.ones(ROWS, dtype=np.intp)
    counts[np.random.default_rng(seed).permutation(ROWS)[:n_copied]] = copies
    return np.repeat(np.arange(ROWS), counts)


def measure(name: str, fraction: float, copies: int, seed: int) -> list[float]:
    """Return the losses of the fit without groups and of the fit with groups."""
    (X, y), (new, truth) = draw_rows(ROWS, seed), draw_rows(NEW_ROWS, seed)
    rows = copy_rows(fraction, copies, seed)
    loss = brier_score_loss if name == "pruned tree" else log_loss  # its probabilities may be 0
    model = MODELS[name](random_state=seed, n_jobs=1)
    fits = (model.fit(X[rows], y[rows], groups=groups) for groups in (None, rows))
    return [loss(truth, fit.predict_proba(new)[:, 1]) for fit in fits]


def find_crossing(ratios: NDArray[Any]) -> str:
    """Return the fraction from which a ratio stays above 1.03; "" if there is none."""
    if ratios[-1] <= LOST:
        return ""
    last = max(np.flatnonzero(ratios <= LOST), default=0)
    pair = slice(last, last + 2)
    return f"{np.interp(LOST, ratios[pair], FRACTIONS[pair]):.2f}"


def main(draws: int = 40) -> None:
    """Measure the loss of each classifier by the fraction of repeated rows."""
    warnings.simplefilter("ignore", certree.RepeatedRowsWarning)
    rows = []
    for name in MODELS:
        for copies in (2, 8):
            found = [[measure(name, f, copies, s) for s in range(draws)] for f in FRACTIONS]
            losses = np.mean(found, axis=1)
            passes = find_crossing(losses[:, 0] / losses[:, 1])
            for fraction, (plain, grouped) in zip(FRACTIONS, losses, strict=True):
                key = {"method": name, "copies": copies, "share": fraction}
                rows.append(
                    {**key, "loss": f"{plain:.4f}", "grouped": f"{grouped:.4f}", "passes": passes}
                )
            print(name, copies, passes, flush=True)
    store("repeated_rows", rows)


if __name__ == "__main__":
    typer.run(main)
