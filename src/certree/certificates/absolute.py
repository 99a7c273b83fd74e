"""Certificates of regressors: how far they are off on average, no error counted beyond a limit.

The mean of errors that have no limit cannot be bounded by any number of rows: one row in a million may
be off by anything. So errors are cut at a limit that the growing rows alone have set.
"""

from dataclasses import dataclass, replace

import numpy as np

from certree.arrays import Float64, Int32, OfColumns, codes, column
from certree.certificates.certificate import Certificate, certificate_of
from certree.certificates.priors import Prior
from certree.signatures import POSITIVE, checked, expect_settings
from certree.stats import TargetStats
from certree.tree import Tree
from certree.votes import Voting
from certree.weights.node_weights import NodeWeights


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutNumbers(OfColumns):
    """A tree with the moments of its growing rows, and weighing rows that none of them have seen.

    Parameters
    ----------
    tree : Tree
        The tree, grown on the growing rows or on none.
    grown : TargetStats
        Moments of the growing rows.
    leaf : array-like of int, shape (N,)
        Leaf that each weighing row reaches.
    y : array-like of shape (N,)
        Target of each weighing row.
    weight : array-like of shape (N,)
        1 for each row; of rows in groups 1 / (weighing rows of its group).
    limit : float
        Absolute error that larger ones count as, in units of the target, by the growing rows.
    n : int
        Independent observations: weighing rows, or groups of them.
    grouped : bool
        Whether they are groups.

    Raises
    ------
    ValueError
        If sizes differ, a number is not finite, or there is no weighing row.
    """

    tree: Tree
    grown: TargetStats
    leaf: Int32
    y: Float64
    weight: Float64
    limit: float
    n: int
    grouped: bool = False

    def __post_init__(self) -> None:
        expect_settings(self)
        self.grown.of(self.tree)
        y: Float64 = column("y", self.y, "float64", (None,))
        weight: Float64 = column("weight", self.weight, "float64", y.shape)
        leaf = codes("leaf", self.leaf, len(y), self.tree.n_nodes)
        if not (np.isfinite(y).all() and self.limit in POSITIVE):
            raise ValueError(f"y and limit must be finite, and limit > 0, got {self.limit!r}")
        if self.n < 1 or not abs(weight.sum() - self.n) <= 1e-6 * self.n:
            raise ValueError(f"weight must sum to n = {self.n} >= 1, got {weight.sum():g}")
        for name, values in (("y", y), ("weight", weight), ("leaf", leaf)):
            object.__setattr__(self, name, values)

    def loss_of(self, value: Float64) -> float:
        """Mean absolute error, each cut at the limit and in units of it, where nodes predict so."""
        with np.errstate(over="ignore"):
            loss = np.minimum(np.abs(self.y - value[self.leaf]) / self.limit, 1.0)
        return float(self.weight @ loss) / self.n


@checked
def absolute_error(
    held: HeldOutNumbers, value: Float64, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the mean absolute error of predictions that were fixed without the weighing rows.

    Parameters
    ----------
    held : HeldOutNumbers
        The tree and the weighing rows.
    value : array-like of shape (m,)
        What each node predicts, in units of the target; leaves of the tree are read.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate
        Its ``unit`` is the limit of an error, so that ``bound * unit`` is in units of the target.

    References
    ----------
    Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963.
    """
    numbers: Float64 = column("value", value, "float64", (held.tree.n_nodes,))
    return _certified("absolute_error", held, numbers, 0.0, delta, share)


@checked
def absolute_error_pruning(
    held: HeldOutNumbers,
    pruning: NodeWeights,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    voting: Voting | None = None,
) -> Certificate:
    """Certify the mean absolute error of one pruning with the means of the growing rows.

    All prunings are covered at once, whatever chose this one.

    Parameters
    ----------
    held : HeldOutNumbers
        The tree and the weighing rows.
    pruning : NodeWeights
        Weights 0 and 1.
    prior : Prior
        A prior made without the weighing rows; its labels are not read.
    delta, share : float
        As in `hold_out`.
    voting : Voting or None
        How its leaves predict; None: by the mean of their growing rows.

    Returns
    -------
    Certificate
        As `absolute_error`.

    Raises
    ------
    ValueError
        If the prior is one of another tree, or the weights are not 0 and 1.
    """
    if prior.tree is not held.tree:
        raise ValueError("prior is one over the prunings of another tree")
    if not np.isin(pruning.of(held.tree).weight, (0, 1)).all():
        raise ValueError("pruning must have weights 0 and 1")
    means = Voting("mean") if voting is None else voting
    value = means.ballots(held.tree, held.grown).cast(held.tree, pruning).score[:, 0]
    nats = max(-prior.log_mass_of_pruning(pruning), 0.0)
    return _certified("absolute_error_pruning", held, value, nats, delta, share)


def _certified(
    method: str, held: HeldOutNumbers, value: Float64, nats: float, delta: float, share: float
) -> Certificate:
    risk = held.loss_of(value)
    made = certificate_of(method, (risk,), risk, held.n, nats, delta, share, held.grouped)
    return replace(made, unit=float(held.limit))
