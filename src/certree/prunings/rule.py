"""What chooses one pruning of a tree: any object with these."""

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from certree.grow.dyadic import resolution_of
from certree.grow.grower import Grower
from certree.tree import Tree
from certree.weights.family import Tunable


class PruningRule(BaseEstimator):
    """A rule with its settings: it charges a penalty, and prunings of every alpha are its family."""

    # Whether it reads more than losses and rows: the counts of classes.
    reads_classes = False

    def family(self, tree: Tree, stats: Any) -> Tunable:
        """The prunings of a tree, by their alpha."""
        raise NotImplementedError

    def matched(
        self,
        grower: Grower,
        n_features: int,  # noqa: ARG002 -- theirs read it whose theorem has a tree
    ) -> tuple[Callable[[Tree, Any], Tunable], Grower]:
        """The family and the grower, each as the other wants it."""
        if resolution_of(grower) is not None:
            raise ValueError(f"rule={self!r} takes no resolution, got grower={grower!r}")
        return self.family, grower
