"""Time of Shapley values and of shares of the variance, against shap.

A forest of 100 trees of depth 6 over 30 features of scikit-learn is explained by shap, and one of
ours, grown on the same 3000 rows, by `shapley_values`: 1000 rows each, with one thread, as shap has
one. Trees of both have about as many leaves. Boosted trees of about the same size are explained by a
background of 100 rows; the target is what woodelf 0.4.8 has taken, with two threads. Shares of the
variance up to pairs are those of a forest with 25,000 leaves. Figures are of the time of the processor,
which is the same on a machine that does other work, too; ours is one thread everywhere.

Targets: at most the time of shap by the rows of nodes; 0.8 s by a background; 0.1 s for the shares.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import shap
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from benchmarks.timing import Row, alternate, median, report
from certree.ensembles import BoostedTreesRegressor, TreeForestRegressor
from certree.explain import interaction_fractions, shap_trees, shapley_values

ROWS, REPEATS = 1000, 5
WOODELF, SHARES = 0.8, 0.1


def main() -> None:
    """Measure all of them."""
    X, y = make_friedman1(3000, 30, random_state=0)
    X = X.astype(np.float32).astype(np.float64)  # as scikit-learn's trees compare them
    asked = X[:ROWS]
    theirs = RandomForestRegressor(100, max_depth=6, random_state=0).fit(X, y)
    ours = TreeForestRegressor(100, max_depth=6, max_features=None, random_state=0).fit(X, y)
    by_shap, same = shap.TreeExplainer(theirs), shap.TreeExplainer(shap_trees(ours))
    rows = [
        _against("path, forest of scikit-learn", ours, by_shap, asked),
        _against("path, the same forest", ours, same, asked),
    ]
    boosted = BoostedTreesRegressor(
        max_iter=100, max_depth=6, max_leaf_nodes=64, random_state=0
    ).fit(X, y)
    background = X[-100:]
    rows.append(
        _within(
            "background of 100 rows", lambda: shapley_values(boosted, asked, background), WOODELF
        )
    )
    large = TreeForestRegressor(400, max_depth=6, max_features=None, random_state=0).fit(X, y)
    leaves = int((large.trees_.left < 0).sum())
    rows.append(
        _within(f"shares, {leaves:,} leaves", lambda: interaction_fractions(large, X), SHARES)
    )
    report("shapley", rows)


def _against(
    case: str, model: TreeForestRegressor, explainer: shap.TreeExplainer, X: np.ndarray
) -> Row:
    """Ours against shap, in turn: the ratio of the processor's times is bounded."""

    def ask() -> object:
        return shapley_values(model, X)

    def ask_shap() -> object:
        return explainer.shap_values(X, check_additivity=False)

    times = alternate(ask, ask_shap, REPEATS)
    ratio = _processor(ask) / _processor(ask_shap)
    return Row(case, times[0], "shap", times[1], target=1.0, figure=ratio)


def _within(case: str, run: Callable[[], object], target: float) -> Row:
    took = statistics.median(_processor(run) for _ in range(REPEATS))
    return Row(case, median(run, REPEATS), target=target, figure=took, unit="s")


def _processor(run: Callable[[], object]) -> float:
    """Time of the processor."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
