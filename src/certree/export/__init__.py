"""Exports: fitted models as other libraries, databases and readers of JSON take them.

`Formula` says what a model computes: trees whose leaves are added up, and a link. Every format writes
it down in its own words; `explain.tree_model.TreeModel` has a method for each. `check_export` runs
the exports of a model and names the rows on which they differ from it.
"""

from certree.export.comparison import ExportCheck, ExportReport, check_export
from certree.export.converters import register_converters

__all__ = ["ExportCheck", "ExportReport", "check_export", "register_converters"]
