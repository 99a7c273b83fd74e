"""The stages behind scikit-learn's interface."""

from certree.estimators.certified_classifier import CertifiedTreeClassifier
from certree.estimators.certified_regressor import CertifiedTreeRegressor
from certree.estimators.helmbold_schapire import HelmboldSchapireTreeClassifier
from certree.estimators.model_trees import DecoratedTreeClassifier, DecoratedTreeRegressor
from certree.estimators.pac_bayes import (
    PACBayesPosteriors,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
)
from certree.estimators.pruned import PrunedTreeClassifier, PrunedTreeRegressor

# fmt: off
__all__ = [
    "CertifiedTreeClassifier", "CertifiedTreeRegressor", "DecoratedTreeClassifier",
    "DecoratedTreeRegressor", "HelmboldSchapireTreeClassifier", "PACBayesPosteriors",
    "PACBayesTreeClassifier", "PACBayesTreeRegressor", "PrunedTreeClassifier", "PrunedTreeRegressor",
]
# fmt: on
