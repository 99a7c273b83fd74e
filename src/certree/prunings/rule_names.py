"""Short names of pruning rules."""

from typing import Any

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


def resolve_rule(value: Any) -> PruningRule:
    """Return the pruning rule that a name or an object stands for.

    A pruning rule is an object that chooses the pruning (subtree with the same root) of a tree.
    value: a key of the dict `RULES` from names to rules, such as "cost-complexity" or
    "square-root", for a new rule with default settings; or an object with a method `family`, which
    is returned.

    Raises
    ------
    ValueError
        If the value is not a key of `RULES` and has no method `family`, or is a class.
    """
    if isinstance(value, str) and value in RULES:
        return RULES[value]()
    if hasattr(value, "family") and not isinstance(value, type):
        rule: PruningRule = value
        return rule
    raise ValueError(
        "rule must be the name of a rule or an object such as CostComplexity(), expected one of "
        f"{', '.join(sorted(RULES))}, got {value!r}"
    )
