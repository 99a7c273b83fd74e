"""The base class of pruning rules."""

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from certree.grow.dyadic import get_resolution
from certree.grow.grower import Grower
from certree.tree import Tree
from certree.weights.family import Tunable


class PruningRule(BaseEstimator):
    """A pruning rule with its settings: a penalty that is multiplied by alpha."""

    # Whether the rule needs class counts, so that it does not apply to numeric targets.
    reads_classes = False

    def family(self, tree: Tree, stats: Any) -> Tunable:
        """Return the pruning with the lowest errors + alpha * penalty, for every alpha >= 0.

        The statistics are those of the nodes.
        """
        raise NotImplementedError

    def match_grower(
        self,
        grower: Grower,
        n_features: int,  # noqa: ARG002 -- read by rules that set the resolution of the grower
    ) -> tuple[Callable[[Tree, Any], Tunable], Grower]:
        """Return the function to use as `family`, and the grower to use, for rule and grower together.

        Raises
        ------
        ValueError
            If the grower has a resolution, and the rule does not support it.
        """
        if get_resolution(grower) is not None:
            raise ValueError(f"rule={self!r} takes no resolution, got grower={grower!r}")
        return self.family, grower
