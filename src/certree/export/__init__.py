"""Exports of fitted models to scikit-learn, ONNX, SQL, JSON and data frames.

A `Formula` describes a model: trees, and a link from their sum to the prediction. Each format is
written from a formula; `explain.tree_model.TreeModel` has a method for each. `check_export` runs the
exports of a model and finds the rows on which they differ from the model.
"""

from certree.export.comparison import ExportCheck, ExportReport, check_export
from certree.export.converters import register_converters

__all__ = ["ExportCheck", "ExportReport", "check_export", "register_converters"]
