"""Prunings: the 0/1 case of a law over prunings, optimal ones and nested paths of them."""

from certree.prunings.paths import MergePath, PruningPath, cost_complexity_path, sibling_merge_path
from certree.prunings.penalties import (
    cost_complexity,
    depth_penalised,
    minimum_description_length,
    pessimistic,
    prune,
    reduced_error,
)
from certree.prunings.scott_nowak import (
    polynomial_penalised,
    spatially_adaptive,
    square_root_penalised,
)

__all__ = [
    "MergePath",
    "PruningPath",
    "cost_complexity",
    "cost_complexity_path",
    "depth_penalised",
    "minimum_description_length",
    "pessimistic",
    "polynomial_penalised",
    "prune",
    "reduced_error",
    "sibling_merge_path",
    "spatially_adaptive",
    "square_root_penalised",
]
