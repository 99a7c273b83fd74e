"""What grows a tree: any object with a method `grow`, and what such objects are called in short."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from certree.grow.cart import Cart
from certree.grow.dyadic import Dyadic
from certree.grow.kd import KD
from certree.grow.sklearn_tree import SklearnTree
from certree.grow.training_samples import TrainingSamples
from certree.rows.folds import Fold
from certree.tree import Tree


class Grower(Protocol):
    """A way to grow T0; its parameters are the switches of growth."""

    # Whether rows have a part in the tree, so that those that grow it must not certify it.
    depends_on_rows: bool
    # Whether cuts keep to monotonic constraints.
    supports_monotonic_cst: bool

    def grow(self, rows: TrainingSamples) -> Tree:
        """Grow the tree of these rows."""


def grow_trees(
    grower: Grower,
    rows: TrainingSamples,
    folds: Sequence[Fold | None],
    advance: Callable[[], None] = lambda: None,
) -> list[Tree]:
    """Grow a tree on the training samples of each fold, None being all rows.

    All of them grow before any routes rows, so that rows go through the rooms once.
    """
    trees = []
    for fold in folds:
        part = rows if fold is None else rows.part(fold.train)
        trees.append(grower.grow(part))
        advance()
    return trees


GROWERS = {"cart": Cart, "dyadic": Dyadic, "kd": KD}


def resolve_grower(value: Any, **switches: Any) -> Grower:
    """The grower that a name, an object or a decision tree of scikit-learn means.

    Parameters
    ----------
    value : {"cart", "dyadic", "kd"}, grower, or scikit-learn decision tree
        What an estimator was given.
    **switches
        Those of a grower that is given by its name alone.

    Returns
    -------
    Grower

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if isinstance(value, str) and value in GROWERS:
        named: Grower = GROWERS[value](**switches)
        return named
    if not isinstance(value, type):
        if hasattr(value, "grow"):
            given: Grower = value
            return given
        if hasattr(value, "fit"):
            return SklearnTree(value)
    raise ValueError(
        'grower must be "cart", "dyadic", "kd", an object such as Cart(), or a scikit-learn '
        f"decision tree, got {value!r}"
    )
