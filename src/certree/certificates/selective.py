"""Selective classifiers: a vote that answers only where it is sure, and what holds where it does."""

from dataclasses import dataclass

import numpy as np

from certree.arrays import Float64
from certree.certificates.certificate import Certificate
from certree.certificates.occam import occam_answers
from certree.certificates.priors import Prior, allow_abstention, propose
from certree.certificates.weighing import HeldOut
from certree.signatures import checked
from certree.tree import Tree
from certree.votes import Vote

# Shares of the rows that are answered, at most; a margin for each is tried.
_COVERAGES = np.linspace(1, 0.05, 20)


@dataclass(frozen=True, slots=True)
class Selective:
    """A vote that answers where its margin is large enough, and a bound on its error there.

    Parameters
    ----------
    margin : float
        It answers where the class with the most votes is at least so far before the second.
    coverage : float
        Share of the weighing rows that it answers; observed, not promised.
    certificate : Certificate
        What holds of the rows that it answers.
    """

    margin: float
    coverage: float
    certificate: Certificate

    def __str__(self) -> str:
        """The margin, the coverage and the promise."""
        return (
            f"Answering where the margin is at least {self.margin:.4g} "
            f"({100 * self.coverage:.1f} % of the weighing rows): {self.certificate}"
        )


def margins(ballot: Vote) -> Float64:
    """By how much the class with the most votes is before the second in every cell, (m,)."""
    score = ballot.score
    if score.shape[1] == 1:
        return np.ones(len(score))
    two = np.partition(score, -2, axis=1)[:, -2:]
    return np.minimum(two[:, 1] - two[:, 0], 1.0)


@checked
def selective_certificates(
    held: HeldOut,
    ballot: Vote,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    fixed: bool = False,
) -> tuple[Selective, ...]:
    """Certify a vote that stays silent where its margin is small, for several margins at once.

    Which cells are silent is one more labelling, so all margins are covered together, whatever the
    weighing rows say for one of them. Of a vote that was fixed without them, the growing rows choose
    the margins, and the prior expects these labellings.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows.
    ballot : Vote
        Any vote in its cells.
    prior : Prior
        A prior made without the weighing rows, over the classes.
    delta, share : float
        As in `hold_out`.
    fixed : bool
        Whether the vote was fixed without the weighing rows.

    Returns
    -------
    tuple of Selective
        By rising margin; the first answers everywhere. At most 20.

    Raises
    ------
    ValueError
        If the rows come in groups, or the prior has seen other rows than the growing ones.

    References
    ----------
    Geifman and El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017, for the
    guarantee as such; the bound is Langford's, JMLR 2005.
    """
    lead, winner = margins(ballot.of(held.tree)), ballot.label
    tried = _margins(held.tree, lead, held.grown.n if fixed else held.stats.n)
    labels = {margin: np.where(lead >= margin, winner, held.n_classes) for margin in tried}
    silent = allow_abstention(prior)
    if fixed:
        silent = propose(silent, held.grown, [*labels.values()])
    leaves, found = held.tree.is_leaf, []
    for margin, label in labels.items():
        answered = float(held.stats.n[leaves & (lead >= margin)].sum())
        if answered > 0:
            certificate = occam_answers(held, label, silent, delta, share)
            found.append(Selective(margin, answered / float(held.stats.n[0]), certificate))
    return tuple(found)


def _margins(tree: Tree, lead: Float64, n: Float64) -> list[float]:
    """Margins that leave shares of some rows, (m,) in the nodes, to be answered; 0 is the first."""
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(-lead[leaves], kind="stable")]
    answered = np.cumsum(n[leaves]) / max(float(n[0]), 1.0)  # there may be no rows to go by
    last = np.searchsorted(answered, _COVERAGES[1:] * (1 + 1e-12), side="right") - 1
    last = last[(last >= 0) & (answered[last] > 0)]
    # Rounded down: margins that differ by rounding alone are not to be told apart.
    rounded = np.maximum(np.floor(1e4 * lead[leaves[last]] - 1e-6), 0) / 1e4
    return np.unique([0.0, *rounded]).tolist()
