"""From which share of repeated rows on a table with copies loses 3 % to the fit that knows the copies.

Rows are those of `benchmarks.weights`. Some of 1000 draws are copied, so that each of these stands 2
or 8 times in the table, until a share of its rows repeats others. Each classifier is fitted to the
table as it is, and with ``groups=`` the draw of each row. A line holds the mean loss of both over 4000
new rows and forty draws, for each share: the log loss, or the Brier score of pruned trees, whose
probabilities are 0 in some leaves. "passes" is the share at which the ratio of both losses passes
1.03, between two shares by a straight line (empty: it does not). `RepeatedRowsWarning` warns beyond a
quarter: `certree.rows.duplicates.MOST_REPEATED`.

Writes results/repeated_rows.csv; ``--draws`` makes more or fewer draws.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import brier_score_loss, log_loss

from benchmarks.records import RESULTS, store
from benchmarks.weights import drawn
from certree import (
    BoostedTreesClassifier,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    RepeatedRowsWarning,
    TreeForestClassifier,
)

ROWS, NEW = 1000, 4000
SHARES = 0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0
COPIES = 2, 8
LOST = 1.03
MODELS: dict[str, Callable[..., Any]] = {
    "pruned tree": PrunedTreeClassifier,
    "PAC-Bayes tree": PACBayesTreeClassifier,
    "Helmbold-Schapire tree": HelmboldSchapireTreeClassifier,
    "boosted trees": BoostedTreesClassifier,
    "forest": TreeForestClassifier,
}
# Pruned trees give probabilities of 0, of which the log loss of new rows is infinite.
BY_BRIER = (PrunedTreeClassifier,)


def draws_of(share: float, copies: int, seed: int) -> NDArray[np.intp]:
    """Choose the draw of each row of a table of which about a share repeats others."""
    copied = round(ROWS * share / (copies - share * (copies - 1)))
    counts = np.ones(ROWS, dtype=np.intp)
    counts[np.random.default_rng(seed).permutation(ROWS)[:copied]] = copies
    return np.repeat(np.arange(ROWS), counts)


def losses(model: Callable[..., Any], share: float, copies: int, seed: int) -> tuple[float, float]:
    """Log loss of the fit to a table as it is, and of the one that knows its groups."""
    (X, y), (new, truth) = drawn(ROWS, seed), drawn(NEW, seed)
    draw = draws_of(share, copies, seed)

    def loss(groups: NDArray[np.intp] | None) -> float:
        made = model(random_state=seed, n_jobs=1).fit(X[draw], y[draw], groups=groups)
        said = made.predict_proba(new)[:, 1]
        return float(brier_score_loss(truth, said) if model in BY_BRIER else log_loss(truth, said))

    return loss(None), loss(draw)


def crossing(ratios: list[float]) -> float | None:
    """Find the share at which a ratio passes 1.03 for good; None: it does not."""
    if ratios[-1] <= LOST:
        return None
    last = max((k for k, ratio in enumerate(ratios) if ratio <= LOST), default=0)
    ends = (ratios[last], ratios[last + 1]), (SHARES[last], SHARES[last + 1])
    return float(np.interp(LOST, *ends))


def main() -> None:
    """Measure the loss of each classifier by the share of repeated rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore", RepeatedRowsWarning)
    rows: list[dict[str, Any]] = []
    for name, model in MODELS.items():
        for copies in COPIES:
            told = np.array(
                [[losses(model, share, copies, seed) for seed in range(draws)] for share in SHARES]
            ).mean(axis=1)
            passed = crossing([*(told[:, 0] / told[:, 1])])
            at = "" if passed is None else f"{passed:.2f}"
            for share, (as_it_is, grouped) in zip(SHARES, told, strict=True):
                line = {"method": name, "copies": copies, "share": share}
                numbers = {"loss": f"{as_it_is:.4f}", "grouped": f"{grouped:.4f}"}
                rows.append({**line, **numbers, "passes": at})
            ratios = " ".join(f"{one:.3f}" for one in told[:, 0] / told[:, 1])
            print(f"{name:<24}{copies} times: {ratios}   3 % at {at or '-'}", flush=True)
    store(RESULTS / "repeated_rows.csv", rows)


if __name__ == "__main__":
    main()
