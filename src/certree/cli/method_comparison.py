"""Comparison of certree's and scikit-learn's classifiers on one table, with default settings."""

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
from threadpoolctl import threadpool_limits

from certree.ensembles import BoostedTreesClassifier, TreeForestClassifier
from certree.estimators import PACBayesTreeClassifier
from certree.interface.arrays import Float64

TEST_SIZE = 0.3
# Groups of rows with similar probabilities, of equal size, in which calibration is measured.
_N_GROUPS = 10
# Values of ccp_alpha that the tuned tree tries.
_N_ALPHAS = 20


class _TunedTree:
    """scikit-learn's DecisionTreeClassifier with ccp_alpha chosen by 5-fold cross-validation.

    The constructor has no arguments. The only method is `fit`; it returns the fitted search, which
    predicts.
    """

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Any:
        """Choose among at most 20 values of ccp_alpha, and return the fitted `GridSearchCV`.

        X: rows, (n, p). y: classes, (n,).
        """
        tree = DecisionTreeClassifier(random_state=0)
        alphas = np.unique(np.abs(tree.cost_complexity_pruning_path(X, y).ccp_alphas))
        grid = alphas[np.linspace(0, len(alphas) - 1, _N_ALPHAS).astype(int)]
        return GridSearchCV(tree, {"ccp_alpha": np.unique(grid)}, cv=5).fit(X, y)


METHODS: dict[str, Callable[[], Any]] = {
    "certree, one tree": lambda: PACBayesTreeClassifier(random_state=0),
    "certree, boosted trees": lambda: BoostedTreesClassifier(random_state=0),
    "certree, forest": lambda: TreeForestClassifier(random_state=0),
    "scikit-learn, tuned tree": _TunedTree,
    "scikit-learn, random forest": lambda: RandomForestClassifier(random_state=0),
    "scikit-learn, HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


@dataclass(frozen=True, slots=True)
class MethodScores:
    """Scores of one method on test rows, averaged over random train/test splits.

    Parameters
    ----------
    name : str
        The method, a key of `METHODS`.
    error : float
        Fraction of the test rows that are misclassified.
    log_loss : float
        Mean log loss (nats).
    calibration : float
        Calibration error: the mean distance between the probability of the predicted class and its
        frequency, over ten groups of rows of similar probability. The rows of all splits are
        pooled.
    seconds : float
        Mean time of a fit.
    """

    name: str
    error: float
    log_loss: float
    calibration: float
    seconds: float


def compare_methods(
    X: NDArray[Any],
    y: NDArray[Any],
    repeats: int,
    advance: Callable[[], None] = lambda: None,
) -> list[MethodScores]:
    """Compare three classifiers of certree and three of scikit-learn on one table.

    Each is fitted to random 70 % of the rows and scored on the other 30 %. OpenMP, which only
    scikit-learn uses, has one thread.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows of numbers.
    y : ndarray of shape (n,)
        Classes of the rows.
    repeats : int
        Number of random splits, at least 1.
    advance : callable
        Called without arguments after every split, to move a progress bar.

    Returns
    -------
    list of MethodScores
        Scores of each method, averaged over the splits, in the order of `METHODS`.
    """
    # By method, for each split: probabilities, classes of the columns, true classes, seconds.
    results: dict[str, list[tuple[Float64, NDArray[Any], NDArray[Any], float]]] = {}
    for seed in range(repeats):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=TEST_SIZE, random_state=seed, stratify=y
        )
        for name, create_model in METHODS.items():
            # OpenMP threads of HistGradientBoosting spin while they wait. On a busy machine a fit to
            # so few rows took 40 times longer with two of them.
            with threadpool_limits(1, user_api="openmp"):
                start = time.perf_counter()
                model = create_model().fit(X_train, y_train)
                seconds = time.perf_counter() - start
                probabilities = model.predict_proba(X_test)
            results.setdefault(name, []).append((probabilities, model.classes_, y_test, seconds))
        advance()
    return [_average_scores(name, splits) for name, splits in results.items()]


def _average_scores(
    name: str, splits: list[tuple[Float64, NDArray[Any], NDArray[Any], float]]
) -> MethodScores:
    """Compute the scores of a method from its results on all train/test splits.

    Parameters
    ----------
    name : str
        The method, a key of `METHODS`.
    splits : list of tuple
        For each split: probabilities of the test rows, (n, K); classes of their columns, (K,); true
        classes of the rows, (n,); seconds of the fit.

    Returns
    -------
    MethodScores
        Error, log loss, calibration error and seconds, averaged over the splits.
    """
    confidence = np.concatenate([probabilities.max(axis=1) for probabilities, *_ in splits])
    is_right = np.concatenate(
        [
            classes[probabilities.argmax(axis=1)] == y_test
            for probabilities, classes, y_test, _ in splits
        ]
    )
    losses = [
        log_loss(y_test, probabilities, labels=classes)
        for probabilities, classes, y_test, _ in splits
    ]
    groups = np.array_split(np.argsort(confidence, kind="stable"), _N_GROUPS)
    gaps = [abs(confidence[group].mean() - is_right[group].mean()) for group in groups]
    return MethodScores(
        name,
        float(1 - is_right.mean()),
        float(np.mean(losses)),
        float(np.mean(gaps)),
        float(np.mean([seconds for *_, seconds in splits])),
    )
