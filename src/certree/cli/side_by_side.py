"""Ours and scikit-learn's, as they come, side by side on one table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier

from certree.ensembles import BoostedTreesClassifier, TreeForestClassifier
from certree.estimators import PACBayesTreeClassifier
from certree.interface.arrays import Float64

TEST_SIZE = 0.3
# Groups of like probability, equally many rows in each; alphas of prunings that are tried.
_GROUPS, _PRICES = 10, 20


class _TunedTree:
    """scikit-learn's tree, its ccp_alpha chosen by five folds."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Any:
        tree = DecisionTreeClassifier(random_state=0)
        alphas = np.unique(np.abs(tree.cost_complexity_pruning_path(X, y).ccp_alphas))
        some = alphas[np.linspace(0, len(alphas) - 1, _PRICES).astype(int)]
        return GridSearchCV(tree, {"ccp_alpha": np.unique(some)}, cv=5).fit(X, y)


METHODS: dict[str, Callable[[], Any]] = {
    "certree, one tree": lambda: PACBayesTreeClassifier(random_state=0),
    "certree, boosted trees": lambda: BoostedTreesClassifier(random_state=0),
    "certree, forest": lambda: TreeForestClassifier(random_state=0),
    "scikit-learn, tuned tree": _TunedTree,
    "scikit-learn, random forest": lambda: RandomForestClassifier(random_state=0),
    "scikit-learn, HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """How a method does on rows that no fit has seen, on average over splits.

    Parameters
    ----------
    name : str
        The method.
    error : float
        Share of the rows that it gets wrong.
    log_loss : float
        Mean log loss (nats).
    calibration : float
        How far the probability of the predicted class is from how often it comes true: the mean over
        ten groups of rows of like probability, of the rows of all splits.
    seconds : float
        Time of a fit.
    """

    name: str
    error: float
    log_loss: float
    calibration: float
    seconds: float


def side_by_side(
    X: NDArray[Any],
    y: NDArray[Any],
    repeats: int,
    advance: Callable[[], None] = lambda: None,
) -> list[Compared]:
    """Fit every method to seven tenths of the rows, and judge it by the others.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows of numbers.
    y : ndarray of shape (n,)
        Their classes.
    repeats : int
        Number of splits, at least 1.
    advance : callable
        Called after every split.

    Returns
    -------
    list of Compared
        In the order of `METHODS`.
    """
    judged: dict[str, list[tuple[Float64, NDArray[Any], NDArray[Any], float]]] = {}
    for seed in range(repeats):
        parts = train_test_split(X, y, test_size=TEST_SIZE, random_state=seed, stratify=y)
        X_grow, X_judge, y_grow, y_judge = parts
        for name, made in METHODS.items():
            begun = time.perf_counter()
            model = made().fit(X_grow, y_grow)
            seconds = time.perf_counter() - begun
            shares = model.predict_proba(X_judge)
            judged.setdefault(name, []).append((shares, model.classes_, y_judge, seconds))
        advance()
    return [_compared(name, splits) for name, splits in judged.items()]


def _compared(
    name: str, splits: list[tuple[Float64, NDArray[Any], NDArray[Any], float]]
) -> Compared:
    sure = np.concatenate([shares.max(axis=1) for shares, *_ in splits])
    right = np.concatenate(
        [classes[shares.argmax(axis=1)] == y for shares, classes, y, _ in splits]
    )
    losses = [log_loss(y, shares, labels=classes) for shares, classes, y, _ in splits]
    groups = np.array_split(np.argsort(sure, kind="stable"), _GROUPS)
    gaps = [abs(sure[group].mean() - right[group].mean()) for group in groups]
    return Compared(
        name,
        float(1 - right.mean()),
        float(np.mean(losses)),
        float(np.mean(gaps)),
        float(np.mean([seconds for *_, seconds in splits])),
    )
