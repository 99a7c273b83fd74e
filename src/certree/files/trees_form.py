"""What a model file holds of many trees as one set of columns."""

from typing import Any

from numpy.typing import NDArray

from certree.ensembles.trees import Trees
from certree.files.archive import Shapes

_Arrays = dict[str, NDArray[Any]]

# Type and length of the columns: M nodes of all trees, T trees, c categories in sets.
_COLUMNS = {
    "feature": ("<i4", "M"),
    "threshold": ("<f8", "M"),
    "left": ("<i4", "M"),
    "missing_left": ("|b1", "M"),
    "category_start": ("<i8", "M + 1"),
    "categories": ("<i4", "c"),
    "root": ("<i8", "T"),
}
_NAMES = (*_COLUMNS, "value")


def shapes_of_trees(n_outputs: int) -> Shapes:
    """Types and shapes of the arrays."""
    columns: Shapes = {
        f"trees.{name}": (dtype, (length,)) for name, (dtype, length) in _COLUMNS.items()
    }
    return {**columns, "trees.value": ("<f8", ("M", n_outputs))}


def arrays_of_trees(trees: Trees) -> _Arrays:
    """The columns by the names that they have in a file."""
    return {f"trees.{name}": getattr(trees, name) for name in _NAMES}


def trees_of_arrays(arrays: _Arrays, n_features: int) -> Trees:
    """Check the columns and put them together."""
    return Trees(**{name: arrays[f"trees.{name}"] for name in _NAMES}, n_features=n_features)
