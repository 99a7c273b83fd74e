"""What a model file holds of forests: no more of each node than it needs, as there are many."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.ensembles.forest import TreeForest
from certree.ensembles.leaves import FILLED_BY, Leaves
from certree.files.archive import Shapes
from certree.files.trees_form import expect_known_categories
from certree.tree import LEAF, Trees

_Arrays = dict[str, NDArray[Any]]

# Type and length of the columns: M nodes of all trees, of which I compare and L are leaves, T trees, c
# categories in sets.
_COLUMNS = {
    "compares": ("|b1", "M"),
    "feature": ("<i4", "I"),
    "threshold": ("<f8", "I"),
    "missing_left": ("|b1", "I"),
    "n_categories": ("<i4", "I"),
    "beyond": ("<i4", "I"),  # how far behind its parent a left child stands
    "categories": ("<i4", "c"),
    "root": ("<i8", "T"),
}

# What the header has of forests.
ENTRIES_OF_FOREST = frozenset({"seed", "origin", "leaves"})


def shapes_of_forest(
    model: TreeForest,
    header: dict[str, Any],  # noqa: ARG001 -- naive Bayes has a part of its shapes there
) -> Shapes:
    """Types and shapes of the arrays; number of features and classes are set."""
    said = "<f4" if is_classifier(model) else "<f8"
    return {
        **{f"trees.{name}": (dtype, (length,)) for name, (dtype, length) in _COLUMNS.items()},
        "trees.value": (said, ("L", model._n_outputs)),
        "trees.rows": ("<f4", ("L",)),
        "importances": ("<f8", (model.n_features_in_,)),
    }


def parts_of_forest(model: TreeForest) -> tuple[dict[str, Any], _Arrays]:
    """Take a fitted model apart: what goes into the header, and arrays by their names."""
    header = {"seed": model._seed, "origin": model._origin, "leaves": list(model.leaves_)}
    trees = model.trees_
    compares = trees.left != LEAF
    inner = np.flatnonzero(compares)
    columns = {
        "compares": compares,
        "feature": trees.feature[inner],
        "threshold": trees.threshold[inner],
        "missing_left": trees.missing_left[inner],
        "n_categories": np.diff(trees.category_start)[inner].astype(np.int32),
        "beyond": (trees.left[inner] - inner).astype(np.int32),
        "categories": trees.categories,
        "root": trees.root,
        # Shares of classes are numbers of four bytes.
        "value": trees.value[~compares].astype(np.float32 if is_classifier(model) else np.float64),
        "rows": model._rows[~compares].astype(np.float32),
    }
    arrays = {f"trees.{name}": values for name, values in columns.items()}
    return header, {**arrays, "importances": model._importances}


def restore_forest(model: TreeForest, header: dict[str, Any], arrays: _Arrays) -> None:
    """Check these parts and set the fitted attributes; number of features and classes are set."""
    for name in ("seed", "origin"):
        if type(header[name]) is not int or not 0 <= header[name] < 2**64:
            raise ValueError(f"{name} must be a whole number >= 0, got {header[name]!r}")
    model._seed, model._origin = header["seed"], header["origin"]
    model.leaves_ = _leaves(header["leaves"])
    part = {name: arrays[f"trees.{name}"] for name in (*_COLUMNS, "value", "rows")}
    if not (np.isfinite(part["rows"]).all() and (part["rows"] >= 0).all()):
        raise ValueError("leaves must have finite numbers of rows >= 0")
    trees = _trees(model, part)
    rows = np.zeros(len(trees.left))
    rows[~part["compares"]] = part["rows"]
    model._set_trees(trees, rows)
    model._importances, model._kept = arrays["importances"], None
    if not (np.isfinite(model._importances).all() and (model._importances >= 0).all()):
        raise ValueError("importances must be finite and non-negative")
    if is_classifier(model) and not _are_shares(model.trees_.value):
        raise ValueError("leaves of classes must say shares")


def _are_shares(value: NDArray[Any]) -> bool:
    """Whether what leaves say lies between 0 and 1, and all classes together have some."""
    inside = bool(((value >= 0) & (value <= 1)).all())
    return inside and bool(np.isfinite(value).all())


def _leaves(given: Any) -> Leaves:
    if not isinstance(given, list) or len(given) != 3 or given[0] not in FILLED_BY:
        raise ValueError(f"leaves must be a way to fill them and two numbers, got {given!r}")
    shrinkage, power = given[1:]
    if not all(type(one) in (int, float) and 0 <= one < 2**16 for one in (shrinkage, power)):
        raise ValueError(f"leaves must have finite numbers >= 0, got {given!r}")
    return Leaves(given[0], float(shrinkage), float(power))


def _trees(model: TreeForest, part: _Arrays) -> Trees:
    compares = part["compares"]
    m, inner = len(compares), np.flatnonzero(compares)
    if len(inner) != len(part["feature"]) or m - len(inner) != len(part["value"]):
        raise ValueError("compares must say of each node whether it is a leaf")
    if not len(part["root"]):
        raise ValueError("a forest has at least one tree, got none")
    left = np.full(m, LEAF, dtype=np.int64)
    left[inner] = inner + part["beyond"].astype(np.int64)
    if (left[inner] >= m).any() or (left[inner] < 0).any() or (part["n_categories"] < 0).any():
        raise ValueError("beyond and n_categories must lie within the trees")
    sizes = np.zeros(m, dtype=np.int64)
    sizes[inner] = part["n_categories"]
    value = np.zeros((m, part["value"].shape[1]))
    value[~compares] = part["value"]

    def spread(name: str) -> NDArray[Any]:
        column = np.zeros(m, dtype=part[name].dtype)
        column[inner] = part[name]
        return column

    trees = Trees(
        spread("feature"),
        spread("threshold"),
        left.astype(np.int32),
        np.ones(m, dtype=np.int32),
        model.n_features_in_,
        spread("missing_left"),
        np.concatenate([[0], np.cumsum(sizes)]),
        part["categories"],
        root=part["root"],
        value=value,
    )
    expect_known_categories(model, trees)
    return trees
