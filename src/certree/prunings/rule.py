"""The base class of pruning rules."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from certree.grow.dyadic import get_resolution
from certree.grow.grower import Grower
from certree.prunings.leaf_losses import SolvedPrunings
from certree.tree import Tree
from certree.weights.family import TuningCandidates
from certree.weights.node_weights import NodeWeights


class PruningRule(BaseEstimator):
    """Base class of pruning rules, which choose the pruning with the smallest errors + alpha * penalty.

    A pruning is the tree with some nodes turned into leaves. Errors are the weight of misclassified
    rows, or the loss of a numeric target. A subclass defines either `family` or `solve`, and by it
    the penalty; its constructor parameters are settings of the penalty (the base class has none).
    The estimator chooses alpha, for instance by cross-validation. The class attribute
    `reads_classes` is True for rules that need class counts and do not apply to numeric targets.
    """

    # Whether the rule needs class counts, so that it does not apply to numeric targets.
    reads_classes = False

    def family(self, tree: Tree, stats: Any) -> TuningCandidates:
        """Return the prunings with the smallest errors + alpha * penalty, for all alphas >= 0.

        A pruning is the tree with some nodes turned into leaves. alpha is the factor of its
        penalty. tree: the tree; stats: statistics of its nodes, such as `NodeStats`, the class
        counts. The returned object has a method `solve`, which returns the pruning for an alpha,
        and a method `compute_losses`, which scores prunings on a validation set. Here both call the
        method `solve` of the rule; subclasses with faster algorithms override this method.
        """
        return SolvedPrunings(tree, partial(self.solve, tree, stats))

    def solve(self, tree: Tree, stats: Any, alpha: float) -> NodeWeights:
        """Return the pruning with the smallest errors + alpha * penalty, for one alpha.

        A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: statistics
        of its nodes, such as `NodeStats`; alpha: factor of the penalty, >= 0. The result has weight
        1 at the leaves of the pruning and 0 at other nodes. Here the pruning is taken from the
        result of `family`, the prunings for all alphas. Subclasses override this method instead of
        `family` if their penalty is no sum over leaves; cross-validation then calls it for each
        alpha that it tries.
        """
        if type(self).family is not PruningRule.family:
            return self.family(tree, stats).solve(alpha)
        raise NotImplementedError(
            f"{type(self).__name__} must define solve(self, tree, stats, alpha), which returns the "
            "pruning of an alpha, or family(self, tree, stats), which returns those of all alphas: "
            "see the page on adding a pruning rule"
        )

    def match_grower(
        self,
        grower: Grower,
        n_features: int,  # noqa: ARG002 -- read by rules that set the resolution of the grower
    ) -> tuple[Callable[[Tree, Any], TuningCandidates], Grower]:
        """Return the method `family` and the tree grower, adapted to each other if needed.

        The rules of Scott and Nowak override it: their theorems fix the resolution of a dyadic
        grower, which is how often it halves each feature. All other rules inherit this method,
        which returns `family` and `grower` unchanged.

        Parameters
        ----------
        grower : Grower
            The object that grows the tree to be pruned: the parameter `grower` of the estimator.
        n_features : int
            Number of features, for rules that set the resolution of a dyadic grower.

        Returns
        -------
        family : callable
            ``family(tree, stats)`` returns the prunings of a tree (subtrees with the same root) for
            all alphas, the factors of the penalty.
        grower : Grower
            The grower that shall grow the tree.

        Raises
        ------
        ValueError
            If the grower has ``resolution="paper"``, which only the rules of Scott and Nowak
            support.
        """
        if get_resolution(grower) is not None:
            raise ValueError(
                f"grower must have resolution=None with rule={self!r}, got {grower!r}: pass a grower "
                "with resolution=None, or a rule of Scott and Nowak, such as rule=SquareRoot()"
            )
        return self.family, grower
