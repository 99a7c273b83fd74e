"""Explanations of predictions: contributions of features, interactions, rules and paths."""

from certree.explain.explanation import Explanation
from certree.explain.interactions import Interactions, interaction_fractions
from certree.explain.path import ExplainedCell, NestedCells
from certree.explain.rules import Condition, Rule, Rules
from certree.explain.shap_format import shap_trees
from certree.explain.shapley import banzhaf_values, shapley_values

__all__ = [
    "Condition",
    "ExplainedCell",
    "Explanation",
    "Interactions",
    "NestedCells",
    "Rule",
    "Rules",
    "banzhaf_values",
    "interaction_fractions",
    "shap_trees",
    "shapley_values",
]
