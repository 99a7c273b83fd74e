"""Trees, forests and boosted trees with guarantees, in which all prunings of a tree vote.

The stages of a classifier::

    rows -> tree -> stats -> weights -> vote -> certificate

`grow_cart`, `grow_dyadic` and `grow_kd` grow a `Tree` from rows. `count` computes `NodeStats`, the
class counts of its nodes, or `measure` the `TargetStats` of a numeric target. `pac_bayes` and other
posteriors compute the probability of each node to be a leaf of a pruning (`NodeWeights`); a single
pruning has probabilities 0 and 1. `vote` computes the prediction of all prunings in each leaf
(`Vote`). With a calibration set and a `Prior`, `occam_vote` and the other functions of
`certificates.METHODS` bound the error on new rows (`Certificate`).

The estimators `PACBayesTreeClassifier`, `PrunedTreeClassifier`, `HelmboldSchapireTreeClassifier`,
`PACBayesTreeRegressor` and `PrunedTreeRegressor` run these stages behind scikit-learn's interface.
`CertifiedTreeClassifier` and `CertifiedTreeRegressor` set a calibration set aside and certify their
error. `TreeForestClassifier` and `TreeForestRegressor` are random forests and extra trees;
`BoostedTreesClassifier`, `BoostedTreesRegressor` and `BoostedTreesRanker` are gradient boosting.
`CertifiedForestClassifier`, `CertifiedBoostedTreesClassifier` and `CertifiedBoostedTreesRegressor`
have certificates. `AdaBoostTreeClassifier` is AdaBoost with its bound on the training error, and
`NaiveBayesClassifier` a baseline without trees.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# What type checkers see. Programs import a name when they use it, by `__getattr__` below.
if TYPE_CHECKING:
    from certree import boolean as boolean
    from certree import certificates as certificates
    from certree import ensembles as ensembles
    from certree import estimators as estimators
    from certree import explain as explain
    from certree import export as export
    from certree import files as files
    from certree import grow as grow
    from certree import interface as interface
    from certree import out_of_core as out_of_core
    from certree import paper as paper
    from certree import prunings as prunings
    from certree import rows as rows
    from certree import show as show
    from certree import stats as stats
    from certree import tables as tables
    from certree import tree as tree
    from certree import votes as votes
    from certree import weights as weights
    from certree.certificates import RowOrderWarning, certify
    from certree.ensembles import (
        AdaBoostTreeClassifier,
        BoostedTreesClassifier,
        BoostedTreesRanker,
        BoostedTreesRegressor,
        CertifiedBoostedTreesClassifier,
        CertifiedBoostedTreesRegressor,
        CertifiedForestClassifier,
        TreeForestClassifier,
        TreeForestRegressor,
    )
    from certree.estimators import (
        CertifiedTreeClassifier,
        CertifiedTreeRegressor,
        DecoratedTreeClassifier,
        DecoratedTreeRegressor,
        HelmboldSchapireTreeClassifier,
        PACBayesPosteriors,
        PACBayesTreeClassifier,
        PACBayesTreeRegressor,
        PrunedTreeClassifier,
        PrunedTreeRegressor,
    )
    from certree.estimators.naive_bayes import NaiveBayesClassifier
    from certree.files import load, predict_files, save
    from certree.grow import KD, Cart, Dyadic, Grid, grow_cart, grow_dyadic, grow_kd
    from certree.prunings import prune
    from certree.rows import NearCopiesWarning, RepeatedRowsWarning
    from certree.stats import NodeStats, TargetStats, count, measure
    from certree.tables import TableSource, read_table
    from certree.tree import Tree
    from certree.votes import Vote, Voting, vote
    from certree.weights import NodeWeights, pac_bayes

__version__ = "0.1.0.dev0"

# fmt: off
__all__ = [
    "KD",
    "AdaBoostTreeClassifier",
    "BoostedTreesClassifier",
    "BoostedTreesRanker",
    "BoostedTreesRegressor",
    "Cart",
    "CertifiedBoostedTreesClassifier",
    "CertifiedBoostedTreesRegressor",
    "CertifiedForestClassifier",
    "CertifiedTreeClassifier",
    "CertifiedTreeRegressor",
    "DecoratedTreeClassifier",
    "DecoratedTreeRegressor",
    "Dyadic",
    "Grid",
    "HelmboldSchapireTreeClassifier",
    "NaiveBayesClassifier",
    "NearCopiesWarning",
    "NodeStats",
    "NodeWeights",
    "PACBayesPosteriors",
    "PACBayesTreeClassifier",
    "PACBayesTreeRegressor",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
    "RepeatedRowsWarning",
    "RowOrderWarning",
    "TableSource",
    "TargetStats",
    "Tree",
    "TreeForestClassifier",
    "TreeForestRegressor",
    "Vote",
    "Voting",
    "certify",
    "count",
    "grow_cart",
    "grow_dyadic",
    "grow_kd",
    "load",
    "measure",
    "pac_bayes",
    "predict_files",
    "prune",
    "read_table",
    "save",
    "vote",
]
# fmt: on

# In order of imports: a package imports only packages before it.
_PACKAGES = (
    "interface", "tables", "rows", "tree", "grow", "out_of_core", "stats", "weights", "prunings",
    "votes", "certificates", "export", "explain", "estimators", "ensembles", "files", "boolean",
    "show", "paper",
)  # fmt: skip
# Packages that define the names of `__all__`. They are imported one by one until the name is found,
# which loads little more than the package of the name.
_PUBLIC_PACKAGES = (
    "tables", "rows", "tree", "grow", "stats", "weights", "prunings", "votes", "certificates",
    "estimators", "estimators.naive_bayes", "ensembles", "files",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"certree.{name}")
    if name in __all__:
        packages = (import_module(f"certree.{package}") for package in _PUBLIC_PACKAGES)
        globals()[name] = next(vars(package)[name] for package in packages if name in vars(package))
        return globals()[name]
    aliases = import_module("certree.interface.parameter_aliases")
    suggestion = None if name.startswith("_") else aliases.suggest_public_name(name, __all__)
    hint = f": did you mean {suggestion}?" if suggestion else ""
    # With a name, but no object, Python adds no suggestion of its own.
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
