"""Prunings: optimal prunings of a tree by several penalties, and nested paths of prunings.

A pruning is a posterior over prunings (`NodeWeights`) whose weights are 0 and 1.
"""

from certree.prunings.paths import (
    MergePath,
    PruningPath,
    SiblingMerge,
    cost_complexity_path,
    sibling_merge_path,
)
from certree.prunings.penalties import (
    CostComplexity,
    DepthPenalised,
    DescriptionLength,
    Pessimistic,
    cost_complexity,
    depth_penalised,
    minimum_description_length,
    pessimistic,
    prune,
    reduced_error,
)
from certree.prunings.rule import PruningRule
from certree.prunings.scott_nowak import (
    Polynomial,
    SpatiallyAdaptive,
    SquareRoot,
    polynomial_penalised,
    spatially_adaptive,
    square_root_penalised,
)

# fmt: off
__all__ = [
    "CostComplexity", "DepthPenalised", "DescriptionLength", "MergePath", "Pessimistic",
    "Polynomial", "PruningPath", "PruningRule", "SiblingMerge", "SpatiallyAdaptive", "SquareRoot",
    "cost_complexity", "cost_complexity_path", "depth_penalised", "minimum_description_length",
    "pessimistic", "polynomial_penalised", "prune", "reduced_error", "sibling_merge_path",
    "spatially_adaptive", "square_root_penalised",
]
# fmt: on
