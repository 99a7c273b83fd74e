"""Stage 4, weights: posteriors over the prunings of a tree."""

from certree.weights.family import average
from certree.weights.helmbold_schapire_posteriors import helmbold_schapire
from certree.weights.node_weights import (
    NodeWeights,
    entropy,
    gibbs_risk,
    map_pruning,
    reached,
    sample_pruning,
)
from certree.weights.pac_bayes_posteriors import pac_bayes, theorem_posterior

# fmt: off
__all__ = [
    "NodeWeights", "average", "entropy", "gibbs_risk", "helmbold_schapire", "map_pruning",
    "pac_bayes", "reached", "sample_pruning", "theorem_posterior",
]
# fmt: on
