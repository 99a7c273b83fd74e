"""What a model file holds of many trees as one set of columns."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.files.archive import Shapes
from certree.tree import Trees

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


def trees_of_arrays(model: Any, arrays: _Arrays) -> Trees:
    """Check the columns and put them together; number of features and categories are set."""
    columns: dict[str, Any] = {name: arrays[f"trees.{name}"] for name in _NAMES}
    chain = np.ones(len(columns["left"]), dtype=np.int32)
    trees = Trees(**columns, chain=chain, n_features=model.n_features_in_)
    expect_known_categories(model, trees)
    return trees


def expect_known_categories(model: Any, nodes: Trees) -> None:
    """Sets of trees hold categories that the features of a model have."""
    if not len(nodes.categories):
        return
    names = ((),) * model.n_features_in_ if model.categories_ is None else model.categories_.names
    n_known = np.array([len(known or ()) for known in names])
    node = np.repeat(np.arange(len(nodes.left)), np.diff(nodes.category_start))
    if (nodes.categories >= n_known[nodes.feature[node]]).any():
        raise ValueError("the tree compares categories that are not among those of the features")
