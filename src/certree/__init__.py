"""Tree classifiers in which all prunings of one tree vote.

The flow, stage by stage::

    rows -> tree -> stats -> weights -> vote -> certificate

`grow_cart`, `grow_dyadic` and `grow_kd` grow a `Tree` over rows. `count` gives each of its nodes
`NodeStats`, or `measure` its `TargetStats` if the target is a number. `pac_bayes` and the other laws
give each node its probability of being a leaf (`NodeWeights`), and `vote` pushes the votes of all
prunings down to the leaves (`Vote`). One pruning is the case in which those probabilities are 0 and
1. With rows that `held_out` keeps apart and a `Prior`, `occam_vote` and the other functions of
`certificate.METHODS` bound the error on new rows (`Certificate`).

The estimators `PACBayesTreeClassifier`, `PrunedTreeClassifier`, `HelmboldSchapireClassifier`,
`PACBayesTreeRegressor` and `PrunedTreeRegressor` are these stages behind scikit-learn's interface.
`NaiveBayesClassifier` grows no tree: a yardstick for tables of numbers and categories.
"""

from certree.adaptive import (
    polynomial_penalised,
    spatially_adaptive,
    square_root_penalised,
)
from certree.categories import Categories
from certree.certificate import (
    Certificate,
    gibbs_kl,
    gibbs_lambda,
    hold_out,
    hold_out_best,
    hold_out_mean,
    occam_answers,
    occam_mean,
    occam_pruning,
    occam_vote,
    single_draw,
    tightest,
    vote_c_bound,
    vote_disagreement,
    vote_either_wrong,
    vote_first_order,
    vote_first_order_range,
    vote_tandem,
    vote_tuples,
)
from certree.classifier import (
    HelmboldSchapireClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
)
from certree.decorated import DecoratedTreeClassifier, DecoratedTreeRegressor
from certree.deployment import certify
from certree.divergence import kl_divergence, log_prior_mass, renyi_divergence
from certree.grow.cart import grow_cart
from certree.grow.dyadic import dyadic_grid, dyadic_resolution, grow_dyadic
from certree.grow.kd import grow_kd
from certree.grow.sklearn_tree import from_sklearn
from certree.heldout import HeldOut, held_out
from certree.labelled import LabelledWeights, labelled_posterior
from certree.moments import (
    disagreement,
    leaf_mean,
    leaf_variance,
    margin_moments,
    one_wrong,
    tuple_risk,
    wrong_mass,
    wrong_range,
)
from certree.naive_bayes import NaiveBayesClassifier
from certree.oracle import OracleBound, hoelder_rate, oracle_bound, oracle_excess
from certree.priors import (
    Prior,
    allow_abstention,
    branching_prior,
    centred_prior,
    count_prior,
    doubted_prior,
    gibbs_posterior,
    mixture,
    size_prior,
    trust_labels,
)
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
from certree.selective import Selective, selective_certificates
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
    "Certificate",
    "DecoratedTreeClassifier",
    "DecoratedTreeRegressor",
    "HeldOut",
    "HelmboldSchapireClassifier",
    "LabelledWeights",
    "MergePath",
    "NaiveBayesClassifier",
    "NodeStats",
    "NodeWeights",
    "OracleBound",
    "PACBayesTreeClassifier",
    "PACBayesTreeRegressor",
    "Prior",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
    "PruningPath",
    "Selective",
    "Spread",
    "TargetStats",
    "Tree",
    "Vote",
    "allow_abstention",
    "average",
    "branching_prior",
    "centred_prior",
    "certify",
    "cost_complexity",
    "cost_complexity_path",
    "count",
    "count_prior",
    "depth_penalised",
    "disagreement",
    "doubted_prior",
    "dyadic_grid",
    "dyadic_resolution",
    "entropy",
    "from_sklearn",
    "gibbs_kl",
    "gibbs_lambda",
    "gibbs_posterior",
    "gibbs_risk",
    "grow_cart",
    "grow_dyadic",
    "grow_kd",
    "held_out",
    "helmbold_schapire",
    "hoelder_rate",
    "hold_out",
    "hold_out_best",
    "hold_out_mean",
    "kl_divergence",
    "labelled_posterior",
    "leaf_mean",
    "leaf_variance",
    "load",
    "log_prior_mass",
    "map_pruning",
    "margin_moments",
    "measure",
    "minimum_description_length",
    "mixture",
    "occam_answers",
    "occam_mean",
    "occam_pruning",
    "occam_vote",
    "one_wrong",
    "oracle_bound",
    "oracle_excess",
    "pac_bayes",
    "pessimistic",
    "polynomial_penalised",
    "prune",
    "reached",
    "reduced_error",
    "renyi_divergence",
    "sample_pruning",
    "save",
    "selective_certificates",
    "sibling_merge_path",
    "single_draw",
    "size_prior",
    "spatially_adaptive",
    "spread",
    "square_root_penalised",
    "theorem_posterior",
    "tightest",
    "trust_labels",
    "tuple_risk",
    "vote",
    "vote_c_bound",
    "vote_disagreement",
    "vote_either_wrong",
    "vote_first_order",
    "vote_first_order_range",
    "vote_tandem",
    "vote_tuples",
    "wrong_mass",
    "wrong_range",
]
