"""Bounds on the error of a certified tree in each of its nodes, as all views of the tree show them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certree.certificates.subsets.families import CertificateFamily
from certree.interface.formatting import format_confidence
from certree.weights.rule_numbers import RuleNumbers


@dataclass(frozen=True, slots=True, eq=False)
class NodeBounds:
    """Bounds on the error on new rows in the nodes of a certified tree, or why there are none.

    Parameters
    ----------
    family : CertificateFamily or None
        If rules (the paths from the root to the leaves) have numbers, a certificate for each rule,
        by its number, such as "R1"; else one for each node, by node number. All hold together.
        None: there are no bounds.
    numbers : RuleNumbers or None
        The numbers of the rules of the tree; None: they have none.
    reason : str
        Why there are no bounds, as a phrase; "" if there are bounds.
    calibration_rows : ndarray of int, shape (m,), or None
        Number of calibration rows in each node; None: not known.
    """

    family: CertificateFamily | None
    numbers: RuleNumbers | None = None
    reason: str = ""
    calibration_rows: NDArray[np.int64] | None = None

    @property
    def delta(self) -> float | None:
        """Probability with which any error may exceed its bound; None if there are no bounds."""
        return None if self.family is None else self.family.terms.delta

    def count_rows(self, node: int) -> int | None:
        """Return the number of calibration rows in node number `node`; None if it is not known."""
        return None if self.calibration_rows is None else int(self.calibration_rows[node])

    def get_bound(self, node: int) -> float | None:
        """Return the upper bound on the error in a node; None if there are no bounds.

        node: number of the node. If rules (the paths to the leaves) have numbers, and so bounds,
        the bound of a node with children is the largest of the rules below it.
        """
        if self.family is None:
            return None
        if self.numbers is None:
            return self.family[node].bound
        names = map(self.numbers.get_name, self.numbers.get_leaves(node))
        return max(self.family[name].bound for name in names)

    @property
    def title(self) -> str:
        """A sentence with the probability that all bounds hold, or with the reason for having none."""
        if self.delta is None:
            return f"Rules have no error bounds of their own: {self.reason}."
        confidence = format_confidence(self.delta)
        return f"Error bounds hold with probability {confidence}, all rules together."
