"""What pruning rules are called in short."""

from certree.prunings.paths import SiblingMerge
from certree.prunings.penalties import (
    CostComplexity,
    DepthPenalised,
    DescriptionLength,
    Pessimistic,
)
from certree.prunings.rule import PruningRule
from certree.prunings.scott_nowak import Polynomial, SpatiallyAdaptive, SquareRoot

RULES: dict[str, type[PruningRule]] = {
    "cost-complexity": CostComplexity,
    "depth": DepthPenalised,
    "description-length": DescriptionLength,
    "pessimistic": Pessimistic,
    "polynomial": Polynomial,
    "sibling-merge": SiblingMerge,
    "spatially-adaptive": SpatiallyAdaptive,
    "square-root": SquareRoot,
}


def rule_of(value: str | PruningRule) -> PruningRule:
    """The rule that a name or an object means."""
    return RULES[value]() if isinstance(value, str) else value
