"""Statistics of the nodes of a tree: class counts and labels, or moments of a numeric target."""

from certree.stats.nodes import NodeStats, Stats, count
from certree.stats.several import SeveralStats
from certree.stats.sparse import SparseNodeStats
from certree.stats.targets import TargetStats, measure, noise_variance

__all__ = [
    "NodeStats",
    "SeveralStats",
    "SparseNodeStats",
    "Stats",
    "TargetStats",
    "count",
    "measure",
    "noise_variance",
]
