"""How often certificates fail after a search over seeds, or if all rows selected the features.

Labels are fair coins, so the true error is one half and a certificate below it is false; a fraction
.05 of them may be.
"""

from functools import partial

import numpy as np
import typer
from sklearn.feature_selection import SelectKBest

from benchmarks.duplicates import draw_coins
from benchmarks.results import store
from certree import CertifiedTreeClassifier


def find_lowest(n_seeds: int, n: int, draw: int) -> float:
    """Return the lowest bound over values of `random_state`."""
    X, y = draw_coins(n, draw)
    models = (CertifiedTreeClassifier(random_state=seed) for seed in range(n_seeds))
    return min(model.fit(X, y).certificate_.bound for model in models)


def select_features(k: int, n_features: int, is_inside: bool, draw: int) -> float:
    """Return the bound with the k best features of 200 rows, selected inside or before the fit."""
    X, y = draw_coins(200, draw, n_features=n_features)
    choice = SelectKBest(k=k)
    if not is_inside:
        X, choice = choice.fit_transform(X, y), None
    model = CertifiedTreeClassifier(preprocessor=choice, random_state=draw)
    return model.fit(X, y).certificate_.bound


SEEDS = "the lowest certificate of {} values of `random_state`, {} rows"
FEATURES = "{} of {} features, chosen {} 200 rows"
# Each case with the fraction of the draws that are run.
CASES = {
    "one fit, 300 rows of 3 features": (partial(find_lowest, 1, 300), 1),
    SEEDS.format(30, 300): (partial(find_lowest, 30, 300), 1),
    SEEDS.format(100, 200): (partial(find_lowest, 100, 200), 0.4),
    FEATURES.format(10, 1000, "as `preprocessor=`,"): (partial(select_features, 10, 1000, True), 1),
    FEATURES.format(10, 1000, "before `fit` by all"): (
        partial(select_features, 10, 1000, False),
        1,
    ),
    FEATURES.format(20, 5000, "before `fit` by all"): (
        partial(select_features, 20, 5000, False),
        1,
    ),
}


def main(draws: int = 100) -> None:
    """Count the certificates that are false."""
    rows = []
    for case, (bound, fraction) in CASES.items():
        false = [bound(draw) < 0.5 for draw in range(round(fraction * draws))]
        rows.append({"case": case, "draws": len(false), "broken": float(np.mean(false))})
        print(*rows[-1].values(), flush=True)
    store("searches", rows)


if __name__ == "__main__":
    typer.run(main)
