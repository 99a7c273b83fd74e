"""What a model file holds of forests with a certificate."""

from typing import Any

from numpy.typing import NDArray

from certree.ensembles.certified_forest import CertifiedForestClassifier
from certree.files.archive import Shapes
from certree.files.certificates_form import (
    ENTRIES_OF_CERTIFICATES,
    entries_of_certificates,
    restore_certificates,
)
from certree.files.trees_form import arrays_of_trees, shapes_of_trees, trees_of_arrays

ENTRIES_OF_CERTIFIED_FOREST = ENTRIES_OF_CERTIFICATES

# Sums of shares, which may be above 1 by their rounding.
_ROUNDING = 1e-9


def shapes_of_certified_forest(
    model: CertifiedForestClassifier,
    header: dict[str, Any],  # noqa: ARG001 -- naive Bayes has a part of its shapes there
) -> Shapes:
    """Types and shapes of the arrays; number of features and classes are set."""
    return shapes_of_trees(model._n_outputs)


def parts_of_certified_forest(
    model: CertifiedForestClassifier,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take a fitted model apart: what goes into the header, and arrays by their names."""
    return entries_of_certificates(model), arrays_of_trees(model.trees_)


def restore_certified_forest(
    model: CertifiedForestClassifier, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Check these parts and set the fitted attributes; number of features and classes are set."""
    trees = trees_of_arrays(model, arrays)
    if not len(trees):
        raise ValueError("a forest has at least one tree, got none")
    if not ((trees.value >= -_ROUNDING) & (trees.value <= 1 + _ROUNDING)).all():
        raise ValueError("nodes must say shares of classes, between 0 and 1")
    model.trees_ = trees
    restore_certificates(model, header)
