"""The stages behind scikit-learn's interface."""

from certree.estimators.decorated import DecoratedTreeClassifier, DecoratedTreeRegressor
from certree.estimators.helmbold_schapire import HelmboldSchapireClassifier
from certree.estimators.pac_bayes import PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.estimators.pruned import PrunedTreeClassifier, PrunedTreeRegressor

__all__ = [
    "DecoratedTreeClassifier",
    "DecoratedTreeRegressor",
    "HelmboldSchapireClassifier",
    "PACBayesTreeClassifier",
    "PACBayesTreeRegressor",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
]
