"""Boosted trees as they come against LightGBM that is tuned.

Eight tables of classes of the directory CERTREE_DATA, so many training rows each, half of them tables
that chose defaults. LightGBM's rate, leaves, rows in a leaf, shares of rows and columns, and l2 are
drawn 50 times and judged by the log loss of five folds, rounds stopping early on the validation
samples; the best one is fitted again. Our mean log loss should be at most its, at 1/50 of its time
(CPU, one thread each).
"""

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks.defaults import Data
from benchmarks.learning_curves import every_table, parts_of
from certree.ensembles import BoostedTreesClassifier

TABLES = (
    "adult", "bank_marketing", "credit_default", "eeg", "electricity", "magic04", "satimage", "spam",
)  # fmt: skip
MOST_ROUNDS, PATIENCE = 2000, 30


def drawn(random: np.random.Generator) -> dict[str, Any]:
    """Settings of LightGBM."""
    return {
        "learning_rate": float(np.exp(random.uniform(np.log(0.01), np.log(0.2)))),
        "num_leaves": int(np.exp(random.uniform(np.log(4), np.log(128)))),
        "min_child_samples": int(np.exp(random.uniform(np.log(2), np.log(100)))),
        "subsample": float(random.uniform(0.5, 1.0)),
        "subsample_freq": 1,
        "colsample_bytree": float(random.uniform(0.3, 1.0)),
        "reg_lambda": float(np.exp(random.uniform(np.log(1e-3), np.log(30)))),
    }


def tuned(X: np.ndarray, y: np.ndarray, where: list[int], n_settings: int) -> Any:
    """The best of some settings by five folds, fitted to all rows."""
    import lightgbm

    random = np.random.default_rng(0)
    plain = {"verbose": -1, "n_jobs": 1, "random_state": 0}
    best: tuple[float, dict[str, Any]] = (np.inf, {})
    for _ in range(n_settings):
        settings = drawn(random)
        losses, rounds = [], []
        for grow, judge in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
            model = lightgbm.LGBMClassifier(n_estimators=MOST_ROUNDS, **settings, **plain)
            model.fit(
                X[grow],
                y[grow],
                eval_set=[(X[judge], y[judge])],
                callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
                categorical_feature=where,
            )
            losses.append(next(iter(model.best_score_["valid_0"].values())))
            rounds.append(model.best_iteration_)
        n_rounds = max(1, round(float(np.mean(rounds)) * 1.25))  # there are more rows then
        if np.mean(losses) < best[0]:
            best = float(np.mean(losses)), {**settings, "n_estimators": n_rounds}
    return lightgbm.LGBMClassifier(**best[1], **plain).fit(X, y, categorical_feature=where)


def compared(data: Data, n: int, n_settings: int) -> list[tuple[float, float]]:
    """Log loss and seconds of both."""
    X, y, X_test, y_test = parts_of(data, n, 0, False)
    where = np.flatnonzero(data.categorical).tolist()
    found = []
    for fitted in (
        lambda: BoostedTreesClassifier(categorical_features=data.categorical, random_state=0).fit(
            X, y
        ),
        lambda: tuned(X, y, where, n_settings),
    ):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names of features and of arguments
            model = fitted()
        seconds = time.process_time() - start
        found.append((log_loss(y_test, model.predict_proba(X_test), labels=np.unique(y)), seconds))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--settings", type=int, default=50)
    parser.add_argument("--tables", nargs="+", default=[*TABLES])
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("boosting_tuned: skipped, CERTREE_DATA names no directory of tables")
        return
    tables = every_table(Path(directory))
    rows = []
    for name in options.tables:
        ours, theirs = compared(tables[name], options.rows, options.settings)
        rows.append((*ours, *theirs))
        print(
            f"{name:16} ours {ours[0]:.4f} in {ours[1]:.1f} s, tuned {theirs[0]:.4f} in "
            f"{theirs[1]:.0f} s",
            flush=True,
        )
    loss, seconds, tuned_loss, tuned_seconds = np.array(rows).T
    ratio = seconds.sum() / tuned_seconds.sum()
    print(
        f"mean log loss {loss.mean():.4f}, tuned {tuned_loss.mean():.4f} "
        f"({'met' if loss.mean() <= tuned_loss.mean() else 'MISSED'}); time 1/{1 / ratio:.0f} "
        f"(1/50: {'met' if ratio <= 1 / 50 else 'MISSED'})"
    )


if __name__ == "__main__":
    main()
