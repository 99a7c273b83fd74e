"""What a fit that certifies promises beside its error: of leaves, classes and groups of rows."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.election import Election, LabelledElection
from certree.certificates.hold_out import Certified
from certree.certificates.parts.answers import Answers, Kinds, Routed
from certree.certificates.parts.families import (
    FEWEST_ROWS,
    CertificateFamily,
    Promises,
    Terms,
    groups_among,
    promises_of,
)
from certree.interface.arrays import Int32, column
from certree.interface.fitted import reads_state
from certree.rows.deal import Sides
from certree.rows.folds import Indices
from certree.votes import Vote


@dataclass(frozen=True, slots=True, eq=False)
class WeighingRows:
    """The weighing rows of a fit, one by one.

    Parameters
    ----------
    given : ndarray of intp, shape (n,)
        Their places among the rows that were given to the fit.
    n_given : int
        How many those were.
    leaf, y : ndarray of int32, shape (n,)
        Leaf and class of each.
    """

    given: Indices
    n_given: int
    leaf: Int32
    y: Int32

    @classmethod
    def of(cls, sides: Sides, leaf: Int32, y: Int32) -> Self:
        """The weighing ones of some rows, with leaf and class of each of them all."""
        weigh, n = sides.weigh, len(y)
        given = weigh if sides.indices is None else sides.indices[weigh]
        n_given = n if sides.n_given is None else sides.n_given
        return cls(given, n_given, leaf[weigh], y[weigh])


class Promising(Certified):
    """A classifier whose fit certifies, and promises more by the same rows."""

    classes_: NDArray[Any]
    vote_: Vote
    election_: Election | LabelledElection | None
    _weighing: WeighingRows

    @abstractmethod
    def _elected(self) -> Election | LabelledElection:
        """The rows that certify the fit, and the prior."""

    @reads_state
    def promises(
        self,
        families: str | Sequence[str] | None = None,
        *,
        groups: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        max_weight: float | None = None,
        random_state: int = 0,
        delta: float | None = None,
        jointly: bool = False,
    ) -> Promises:
        """Promise more of what predicts than its error as a whole, by the rows that certify it.

        Each family holds for all of its parts at once with probability ``1 - delta``, by itself and
        apart from `certificate_`. What predicts may have been chosen by the same rows: it has its prior
        mass's share of delta. `certree.certificates.promises` does the same for any classifier by new
        rows.

        Parameters
        ----------
        families : str, sequence of str or None
            Which families: "error" of all rows, "recall" of each class, "precision" of each predicted
            class, error in the "leaves" of the smallest tree that predicts the same, in all "cells" of
            `tree_`, of which any may be picked after looking, and of "groups", "gaps" between them.
            None: all that there can be. Keys of leaves and cells are numbers of nodes of `tree_`, as
            `rules` has them.
        groups : array-like of shape (n,), or None
            A group of each row that was given to the fit, those that grow and those of weight zero
            included, such as a hospital, that was not chosen by looking at errors. Rows are drawn
            independently all the same.
        weights : array-like of shape (n,), or None
            For new rows from another source, whose density over that of these rows is known: that
            density at each row given to the fit, up to a factor. Weighing rows are kept with
            probability ``weight / max_weight``.
        max_weight : float or None
            The most that any weight may be, fixed without the rows.
        random_state : int
            Seed of these draws. To draw again and keep the better promise breaks it.
        delta : float or None
            Probability with which a family may fail; None: `delta` of the fit.
        jointly : bool
            Whether delta is divided by the number of families, which must then be chosen without
            looking, so that all of them hold together.

        Returns
        -------
        Promises
            A class, group or leaf without weighing rows has the bound 1.

        Raises
        ------
        ValueError
            If there are fewer than 10 weighing rows, also of those kept, a family or a setting is
            unknown, there is only one group, a weight is above `max_weight`, the model was fitted by
            groups, or it was loaded from a file.
        """
        election = self._elected()
        held, rows, label = election.held, self._weighing, self.vote_.label
        predicted = label[rows.leaf]
        names = self.classes_.tolist()
        kinds = None if groups is None else groups_among(groups, rows.n_given)
        answers = Answers(
            Kinds(names, rows.y),
            Kinds(names, predicted),
            np.asarray(predicted != rows.y),
            None if kinds is None else Kinds(kinds.names, kinds.place[rows.given]),
            Routed(held.tree, held.grown.n, label, rows.leaf),
            max(-election.prior.log_mass(label), 0.0),
        )
        if weights is not None:
            weights = column("weights", weights, "float64", (rows.n_given,))[rows.given]
        return promises_of(
            answers,
            families,
            Terms(self._delta(delta), 1.0, held.grouped),
            weights=weights,
            max_weight=max_weight,
            random_state=random_state,
            jointly=jointly,
        )

    def _why_no_promises(self) -> str | None:
        """Why there are no promises beside the error as a whole; None: there are."""
        if self.election_ is None:
            return "a model file does not keep the rows of the fit"
        if self.election_.held.grouped:
            return "the rows of the fit came in groups, and errors of single rows are counted"
        if len(self._weighing.y) < FEWEST_ROWS:
            return f"fewer than {FEWEST_ROWS} rows certify the fit"
        return None

    def _certified_cells(self) -> CertificateFamily | None:
        """Certificates of all nodes of the tree, at the delta of the fit."""
        if self._why_no_promises() is not None:
            return None
        return self.promises("cells", delta=self.certificate_.delta).cells
