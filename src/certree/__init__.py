"""Tree classifiers in which all prunings of one tree vote.

The flow, stage by stage::

    rows -> tree -> stats -> weights -> vote -> certificate

`grow_cart`, `grow_dyadic` and `grow_kd` grow a `Tree` over rows. `count` gives each of its nodes
`NodeStats`, or `measure` its `TargetStats` if the target is a number. `pac_bayes` and other posteriors
give each node its probability of being a leaf (`NodeWeights`), and `vote` pushes the votes of all
prunings down to the leaves (`Vote`). One pruning is the case in which those probabilities are 0 and
1. With rows that `held_out` keeps apart and a `Prior`, `occam_vote` and the other functions of
`certificates.METHODS` bound the error on new rows (`Certificate`).

The estimators `PACBayesTreeClassifier`, `PrunedTreeClassifier`, `HelmboldSchapireTreeClassifier`,
`PACBayesTreeRegressor` and `PrunedTreeRegressor` are these stages behind scikit-learn's interface.
`BoostedTreesClassifier` and `BoostedTreesRegressor` add up many small trees, whose prunings vote, too.
`BoostedTreesRanker` ranks the documents of queries by them.
`TreeForestClassifier` and `TreeForestRegressor` are random forests and extra trees;
`CertifiedForestClassifier` is a forest with a certificate, `CertifiedBoostedTreesClassifier` and
`CertifiedBoostedTreesRegressor` are boosted trees with one.
`CertifiedTreeRegressor` keeps rows apart that say how far it is off, with bands that hold new numbers.
`AdaBoostTreeClassifier` is AdaBoost with its bound on the training error.
`NaiveBayesClassifier` grows no tree: a yardstick for tables of numbers and categories.
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
    from certree import paper as paper
    from certree import parts as parts
    from certree import prunings as prunings
    from certree import rows as rows
    from certree import show as show
    from certree import stats as stats
    from certree import tree as tree
    from certree import votes as votes
    from certree import weights as weights
    from certree.certificates import certify
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
    "save",
    "vote",
]
# fmt: on

# In the order of the flow: a room imports those before it alone.
_ROOMS = (
    "interface", "rows", "tree", "grow", "parts", "stats", "weights", "prunings", "votes",
    "certificates", "export", "explain", "estimators", "ensembles", "files", "boolean", "show",
    "paper",
)  # fmt: skip
# Those with names of `__all__`. To look for a name room by room loads hardly more than its own
# room does.
_FRONT_ROOMS = (
    "rows", "tree", "grow", "stats", "weights", "prunings", "votes", "certificates", "estimators",
    "estimators.naive_bayes", "ensembles", "files",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"certree.{name}")
    if name in __all__:
        rooms = (import_module(f"certree.{room}") for room in _FRONT_ROOMS)
        globals()[name] = next(vars(room)[name] for room in rooms if name in vars(room))
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
