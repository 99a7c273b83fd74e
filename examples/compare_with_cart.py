"""All prunings of a tree that vote, against the one pruning that cross-validation chooses.

On random halves of scikit-learn's breast cancer set: CART with cost-complexity pruning, all
prunings of the same unpruned CART tree, and all prunings of a KD tree, which stops at pure cells
but cuts without looking at the classes. Each is tuned by five-fold cross-validation, once for the
error and once for the log loss. Printed are means over the halves with their standard errors;
smaller is better.
"""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier

from certree import PACBayesTreeClassifier
from certree.weights.family import Scoring

SPLITS = 6
SCORINGS: dict[Scoring, str] = {"error": "accuracy", "log_loss": "neg_log_loss"}


def one_pruning(X: np.ndarray, y: np.ndarray, scoring: Scoring) -> ClassifierMixin:
    cart = DecisionTreeClassifier(random_state=0)
    alphas = np.unique(np.abs(cart.cost_complexity_pruning_path(X, y).ccp_alphas))
    return GridSearchCV(cart, {"ccp_alpha": alphas}, scoring=SCORINGS[scoring], cv=5).fit(X, y)


def vote_on_cart(X: np.ndarray, y: np.ndarray, scoring: Scoring) -> ClassifierMixin:
    cart = DecisionTreeClassifier(random_state=0)
    model = PACBayesTreeClassifier(cart, vote="mean", scoring=scoring, cv=5, random_state=0)
    return model.fit(X, y)


def vote_on_kd(X: np.ndarray, y: np.ndarray, scoring: Scoring) -> ClassifierMixin:
    model = PACBayesTreeClassifier("kd", vote="mean", scoring=scoring, cv=5, random_state=0)
    return model.fit(X, y)


METHODS = {
    "CART, one pruning": one_pruning,
    "CART, all prunings": vote_on_cart,
    "KD, all prunings": vote_on_kd,
}


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    scores: dict[tuple[str, Scoring], list[tuple[float, float, float]]] = {}
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=seed
        )
        for scoring in SCORINGS:
            for name, fit in METHODS.items():
                share = fit(X_train, y_train, scoring).predict_proba(X_test)
                error = float(np.mean(share.argmax(axis=1) != y_test))
                brier = brier_score_loss(y_test, share[:, 1])
                outcome = (error, log_loss(y_test, share), brier)
                scores.setdefault((name, scoring), []).append(outcome)

    headings = ("error", "log loss", "Brier score")
    print(f"{'':20}{'tuned for':10}" + "".join(f"{heading:>16}" for heading in headings))
    for (name, scoring), values in scores.items():
        mean = np.mean(values, axis=0)
        spread = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
        cells = (f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))
        print(f"{name:20}{scoring:10}" + "".join(f"{cell:>16}" for cell in cells))
    print("\nA leaf of one pruning may give a class the probability 0; where that class comes, the")
    print("log loss counts 36 nats.")


if __name__ == "__main__":
    main()
