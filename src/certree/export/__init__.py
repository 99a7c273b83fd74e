"""Exports: fitted models as other libraries, databases and readers of JSON take them.

`Formula` says what a model computes: trees whose leaves are added up, and a link. Every format writes
it down in its own words; `explain.tree_model.TreeModel` has a method for each.
"""

from certree.export.converters import register_converters

__all__ = ["register_converters"]
