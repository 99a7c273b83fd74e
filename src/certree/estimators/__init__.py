"""The stages behind scikit-learn's interface."""

from certree.estimators.certified_classifier import CertifiedTreeClassifier
from certree.estimators.certified_regressor import CertifiedTreeRegressor
from certree.estimators.decorated import DecoratedTreeClassifier, DecoratedTreeRegressor
from certree.estimators.helmbold_schapire import HelmboldSchapireTreeClassifier
from certree.estimators.pac_bayes import PACBayesLaws, PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.estimators.pruned import PrunedTreeClassifier, PrunedTreeRegressor

# fmt: off
__all__ = [
    "CertifiedTreeClassifier", "CertifiedTreeRegressor", "DecoratedTreeClassifier",
    "DecoratedTreeRegressor", "HelmboldSchapireTreeClassifier", "PACBayesLaws",
    "PACBayesTreeClassifier", "PACBayesTreeRegressor", "PrunedTreeClassifier", "PrunedTreeRegressor",
]
# fmt: on
