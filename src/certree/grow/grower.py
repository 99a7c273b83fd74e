"""The protocol of growers, their short names, and growth on folds."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from certree.grow.cart import Cart
from certree.grow.dyadic import Dyadic
from certree.grow.kd import KD
from certree.grow.sklearn_tree import SklearnTree
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Int32
from certree.interface.threads import get_n_threads
from certree.rows.folds import Fold, Indices
from certree.tree import Tree


class Grower(Protocol):
    """An object that grows a tree from training samples.

    The tree is large and not pruned; estimators then let its prunings (the tree with some nodes
    turned into leaves) vote, or choose one.

    The constructor parameters are the settings of growth.

    Attributes
    ----------
    depends_on_rows : bool
        Whether the tree depends on the values of the rows, features or targets. If it does, rows
        that grew the tree must not be in the calibration set.
    supports_monotonic_cst : bool
        Whether the splits satisfy the monotonic constraints of the training samples.
    """

    depends_on_rows: bool
    supports_monotonic_cst: bool

    def grow(self, rows: TrainingSamples) -> Tree:
        """Grow a tree and return it.

        rows: the training samples, with features, targets, row weights and settings such as the
        depth limit; the tree has no leaf values. Raise ValueError if the grower needs a target and
        `rows.y` is None.
        """


class GrownTree(NamedTuple):
    """A tree that was grown, and the rows of the fit as the tree's splits read them.

    Parameters
    ----------
    tree : Tree
        The tree.
    rows : TrainingSamples
        All samples of the fit, also those that did not grow the tree. For features of very many
        categories, the code of each category may be replaced by its rank in the order of the mean
        target of its rows; the tree then has thresholds on these ranks (`encoded_tree` has the
        corresponding sets of categories).
    """

    tree: Tree
    rows: TrainingSamples

    def find_leaves(self) -> Int32:
        """Return the leaf of `tree` that each row of `rows` reaches, as index of its node, (n,)."""
        return self.tree.route(self.rows.X, get_n_threads(self.rows.n_jobs))

    def replace_training_leaves(self, encoded_tree: Tree, leaf: Int32, train: Indices) -> Int32:
        """Replace the leaves of the training rows in an array of leaves of all rows; return the array.

        A certified fit has training and calibration rows; `rows` are the training rows. A training
        row may be in another leaf of the grown tree than of `encoded_tree` if ranks have replaced
        category codes (see `rows`). encoded_tree: the value of the property of this name; leaf: node
        number of the leaf of each of all n rows in that tree, (n,), which is changed in place:
        training rows get the node numbers of their leaves in `tree`, which has the same nodes;
        train: indices of the training rows among the n rows.
        """
        if encoded_tree is not self.tree:
            leaf[train] = self.find_leaves()
        return leaf

    @property
    def encoded_tree(self) -> Tree:
        """The tree with splits on category codes, for rows whose categories are encoded as in the fit.

        `tree` may instead split on ranks: the place of a category in the order of mean targets. The
        value is `tree` itself if no ranks have replaced category codes.
        """
        return self.rows.replace_ranks(self.tree)


def grow_trees(
    grower: Grower,
    rows: TrainingSamples,
    folds: Sequence[Fold | None],
    advance: Callable[[], None] = lambda: None,
) -> list[GrownTree]:
    """Grow one tree for each fold of a cross-validation, or on all rows.

    All trees are grown before the function returns, so before statistics of any of them are
    computed. Very many categories of a feature may be replaced by ranks, the places in the order of
    their mean targets, which are computed from the rows of each fold alone.

    Parameters
    ----------
    grower : Grower
        Grows each tree.
    rows : TrainingSamples
        All rows of the fit.
    folds : sequence of Fold or None
        Folds of a cross-validation, whose training rows ``fold.train`` (indices of `rows`) grow a
        tree; None stands for all rows.
    advance : callable without arguments
        Called after each tree, for instance by a progress bar.

    Returns
    -------
    list of GrownTree
        The tree of each fold, in the order of `folds`, with all rows as its splits read them.

    Raises
    ------
    TypeError, ValueError
        If `grower` returns an object that is no `Tree`, or a tree of another number of features.
    """
    trees = []
    for fold in folds:
        indices, ranked = None if fold is None else fold.train, rows
        if rows.rank_categories is not None:
            ranked = rows.rank_categories(indices)
        samples = ranked if indices is None else ranked.select(indices)
        tree: Any = grower.grow(samples)
        if not isinstance(tree, Tree):
            raise TypeError(f"grow of {grower!r} must return a Tree, got {type(tree).__name__}")
        if tree.n_features != samples.X.shape[1]:
            raise ValueError(
                f"grow of {grower!r} must return a tree of {samples.X.shape[1]} features, got one of "
                f"{tree.n_features}"
            )
        trees.append(GrownTree(tree, ranked))
        advance()
    return trees


GROWERS = {"cart": Cart, "dyadic": Dyadic, "kd": KD}


def resolve_grower(value: Any, **parameters: Any) -> Grower:
    """Return the grower that a name, an object or a decision tree of scikit-learn stands for.

    Parameters
    ----------
    value : {"cart", "dyadic", "kd"}, object with a method `grow`, or scikit-learn decision tree
        Value of an estimator's parameter `grower`.
    **parameters
        Constructor parameters of `Cart`, `Dyadic` or `KD`; used only if `value` is a name.

    Returns
    -------
    Grower
        A new grower for a name, `value` itself if it has a method `grow`, or a `SklearnTree` around
        an estimator with a method `fit`.

    Raises
    ------
    ValueError
        If `value` is a class, or has neither a known name nor a method `grow` or `fit`.
    TypeError
        If `value` has a method `grow`, but no attribute `depends_on_rows`.
    """
    if isinstance(value, str) and value in GROWERS:
        resolved: Grower = GROWERS[value](**parameters)
        return resolved
    if not isinstance(value, type):
        if hasattr(value, "grow"):
            custom: Grower = value
            if not isinstance(getattr(custom, "depends_on_rows", None), bool):
                raise TypeError(
                    "grower must have an attribute depends_on_rows, True or False, but "
                    f"{value!r} has none: set it to False if the tree is the same whatever the rows "
                    "and targets of the fit are, else to True"
                )
            return custom
        if hasattr(value, "fit"):
            return SklearnTree(value)
    raise ValueError(
        'grower must be "cart", "dyadic", "kd", an object such as Cart(), or a scikit-learn '
        f"decision tree, got {value!r}"
    )
