"""Forests, boosted trees and AdaBoost; and forests and boosted trees with certificates."""

from certree.ensembles.adaboost import AdaBoostTreeClassifier
from certree.ensembles.boosting import BoostedTreesClassifier, BoostedTreesRegressor
from certree.ensembles.certified_boosting import (
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
)
from certree.ensembles.certified_forest import CertifiedForestClassifier
from certree.ensembles.conformal import ConformalBandRegressor
from certree.ensembles.custom_loss import CustomLoss
from certree.ensembles.forest import TreeForestClassifier, TreeForestRegressor
from certree.ensembles.forest_leaves import Leaves
from certree.ensembles.ranker import BoostedTreesRanker

__all__ = [
    "AdaBoostTreeClassifier",
    "BoostedTreesClassifier",
    "BoostedTreesRanker",
    "BoostedTreesRegressor",
    "CertifiedBoostedTreesClassifier",
    "CertifiedBoostedTreesRegressor",
    "CertifiedForestClassifier",
    "ConformalBandRegressor",
    "CustomLoss",
    "Leaves",
    "TreeForestClassifier",
    "TreeForestRegressor",
]
