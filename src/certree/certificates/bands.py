"""Bands around what a tree predicts, whose proportions are fixed before the weighing rows are seen.

A weighing row's score is how far its target lies off the prediction, in units of the scale of its leaf.
`Scores` then say how many units hold a share of new rows.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from certree._core import push_down
from certree.arrays import Float64, Int32, OfColumns, codes, column
from certree.certificates.bounds import rows_to_cover
from certree.certificates.coverage import Scores, log_of_delta
from certree.stats.nodes import expect_nodes
from certree.tree import LEAF, Tree
from certree.weights.node_weights import NodeWeights, pruning_of, reached

# A region is expected to have so many times the weighing rows that its level takes: far fewer come by
# chance only, and with more of them the band is less wide than the largest score.
_SPARE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Bands(OfColumns):
    """How wide the bands of a tree's leaves are.

    Parameters
    ----------
    scale : array-like of shape (m,)
        What widths are multiples of at each node, in units of the target.
    region : array-like of int, shape (m,)
        Region of each node; each is covered for itself.
    """

    scale: Float64
    region: Int32

    def __post_init__(self) -> None:
        scale: Float64 = column("scale", self.scale, "float64", (None,))
        if not ((scale > 0) & (scale < np.inf)).all():
            raise ValueError("scale must hold finite numbers > 0")
        region = codes("region", self.region, len(scale), max(len(scale), 1))
        for name, values in (("scale", scale), ("region", region)):
            object.__setattr__(self, name, values)

    def of(self, tree: Tree) -> Self:
        """Check that the bands belong to a tree of this size, and return them."""
        expect_nodes(len(self.scale), tree)
        return self

    def scores(self, leaf: Int32, off: Float64, mass: Float64) -> Scores:
        """Scores of rows whose targets lie so far off, by the leaves that they reach."""
        with np.errstate(over="ignore"):  # a row that lies infinitely far off is in no band
            value = off / self.scale[leaf]
        return Scores.of(value, self.region[leaf], mass)

    def half_width(self, leaf: Int32, reach: Float64) -> Float64:
        """Half the width of the band in each of some leaves, in units of the target."""
        with np.errstate(over="ignore"):
            half: Float64 = reach[self.region[leaf]] * self.scale[leaf]
        return half


def leaf_regions(
    tree: Tree,
    pruning: NodeWeights,
    rows: Float64,
    n_weighing: int,
    coverage: float,
    delta: float,
) -> tuple[Int32, Float64]:
    """Make the leaves of a pruning regions, as far down as enough rows are to be expected.

    Parameters
    ----------
    tree : Tree
        The tree.
    pruning : NodeWeights
        Weights 0 and 1.
    rows : ndarray of shape (m,)
        Growing rows in each node, by which those that will weigh there are expected.
    n_weighing : int
        Number of weighing rows.
    coverage, delta : float
        What every region is to keep, all together.

    Returns
    -------
    region : ndarray of int32, shape (m,)
        Region of each node; 0 above all of them.
    mass : ndarray of shape (R,)
        Share of delta of each region, in proportion to one more than its growing rows.
    """
    total = float(rows[0])
    inner = np.flatnonzero((reached(tree, pruning) == 1) & (pruning.weight == 0))
    splits = np.zeros(tree.n_nodes, dtype=bool)
    log_delta = log_of_delta(delta)
    for node in inner.tolist():
        children = rows[tree.left[node] : tree.left[node] + 2]
        # A level below half of its share leaves room for the one row more that each region counts.
        levels = log_delta + np.log(np.maximum(children, 0.5) / (2 * total))
        needed = np.array([rows_to_cover(coverage, level) for level in levels.tolist()])
        splits[node] = (children * n_weighing >= _SPARE * needed * total).all()
    kept = pruning_of(tree, splits & (tree.left != LEAF))
    leaves = np.flatnonzero(kept.weight == 1)
    number = np.zeros((tree.n_nodes, 1))
    number[leaves, 0] = np.arange(len(leaves))
    region = push_down(tree.left, kept.weight, None, number, 1)[:, 0]
    parts = rows[leaves] + 1
    return np.round(region).astype(np.int32), parts / parts.sum()
