"""Why a model says what it says: contributions of features, rules, and the cells around a row."""

from certree.explain.explanation import Explanation
from certree.explain.path import ExplainedCell
from certree.explain.rules import Condition, Rule, Rules

__all__ = ["Condition", "ExplainedCell", "Explanation", "Rule", "Rules"]
