"""Tree classifiers in which all prunings of one tree vote.

The flow, stage by stage::

    rows -> tree -> stats -> weights -> vote

`grow_cart`, `grow_dyadic` and `grow_kd` grow a `Tree` over rows. `count` gives each of its nodes
`NodeStats`, or `measure` its `TargetStats` if the target is a number. `pac_bayes` and the other laws
give each node its probability of being a leaf (`NodeWeights`), and `vote` pushes the votes of all
prunings down to the leaves (`Vote`). One pruning is the case in which those probabilities are 0 and
1. The estimators `PACBayesTreeClassifier`, `PrunedTreeClassifier`, `HelmboldSchapireClassifier`,
`PACBayesTreeRegressor` and `PrunedTreeRegressor` are these stages behind scikit-learn's interface.
"""

from certree.adaptive import (
    polynomial_penalised,
    spatially_adaptive,
    square_root_penalised,
)
from certree.categories import Categories
from certree.classifier import (
    HelmboldSchapireClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
)
from certree.grow.cart import grow_cart
from certree.grow.dyadic import dyadic_resolution, grow_dyadic
from certree.grow.kd import grow_kd
from certree.grow.sklearn_tree import from_sklearn
from certree.prunings import (
    MergePath,
    PruningPath,
    cost_complexity,
    cost_complexity_path,
    depth_penalised,
    minimum_description_length,
    pessimistic,
    prune,
    reduced_error,
    sibling_merge_path,
)
from certree.regressor import PACBayesTreeRegressor, PrunedTreeRegressor
from certree.stats import NodeStats, TargetStats, count, measure
from certree.storage import load, save
from certree.tree import Tree
from certree.votes import Spread, Vote, spread, vote
from certree.weights import (
    NodeWeights,
    average,
    entropy,
    gibbs_risk,
    helmbold_schapire,
    map_pruning,
    pac_bayes,
    reached,
    sample_pruning,
    theorem_posterior,
)

__version__ = "0.1.0"

__all__ = [
    "Categories",
    "HelmboldSchapireClassifier",
    "MergePath",
    "NodeStats",
    "NodeWeights",
    "PACBayesTreeClassifier",
    "PACBayesTreeRegressor",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
    "PruningPath",
    "Spread",
    "TargetStats",
    "Tree",
    "Vote",
    "average",
    "cost_complexity",
    "cost_complexity_path",
    "count",
    "depth_penalised",
    "dyadic_resolution",
    "entropy",
    "from_sklearn",
    "gibbs_risk",
    "grow_cart",
    "grow_dyadic",
    "grow_kd",
    "helmbold_schapire",
    "load",
    "map_pruning",
    "measure",
    "minimum_description_length",
    "pac_bayes",
    "pessimistic",
    "polynomial_penalised",
    "prune",
    "reached",
    "reduced_error",
    "sample_pruning",
    "save",
    "sibling_merge_path",
    "spatially_adaptive",
    "spread",
    "square_root_penalised",
    "theorem_posterior",
    "vote",
]
