"""Mean squared error on scikit-learn's diabetes table, against scikit-learn's gradient boosting.

442 rows, 20 times five folds, the same for all; ours at its defaults and with `quality="best"`,
scikit-learn's at its defaults and with 500 trees of depth 4 at a learning rate of .01, as in its
example on this table. The figure of a row is the ratio of mean squared errors over all folds, its
target 1. `pairs` counts in how many of the 20 repeats ours is lower. Takes some minutes.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import RepeatedKFold, cross_val_score

from benchmarks.timing import Row, report
from certree import BoostedTreesRegressor

REPEATS, FOLDS = 20, 5
SLOW = {"n_estimators": 500, "max_depth": 4, "min_samples_split": 5, "learning_rate": 0.01}


def errors(model: object) -> np.ndarray:
    """Mean squared error of each repeat, (REPEATS,)."""
    X, y = load_diabetes(return_X_y=True)
    folds = RepeatedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    scores = cross_val_score(model, X, y, cv=folds, scoring="neg_mean_squared_error")
    return -scores.reshape(REPEATS, FOLDS).mean(axis=1)


def main() -> None:
    """Compare ours with both."""
    peers = {
        "GradientBoostingRegressor()": errors(GradientBoostingRegressor(random_state=0)),
        "500 trees of depth 4": errors(GradientBoostingRegressor(random_state=0, **SLOW)),
    }
    rows = []
    for quality in ("default", "best"):
        ours = errors(BoostedTreesRegressor(quality=quality, random_state=0))
        for peer, theirs in peers.items():
            means = f"{ours.mean():.0f} to {theirs.mean():.0f}"
            unit = f"ratio, {means}, {np.sum(ours < theirs)} of {REPEATS} pairs"
            figure = float(ours.mean() / theirs.mean())
            rows.append(Row(f'"{quality}"', None, peer, target=1.0, figure=figure, unit=unit))
    report("diabetes", rows)


if __name__ == "__main__":
    main()
