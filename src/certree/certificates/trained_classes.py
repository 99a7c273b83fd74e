"""Classes of a certified fit that calibration samples alone have: listed, and never predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_column
from certree.interface.stored_state import StoredState
from certree.rows.folds import Indices
from certree.rows.training import get_first_untrained_code
from certree.stats import NodeStats

# The score of a class that is never predicted: its probability is 0 beside any other score, and float32
# holds it.
_NEVER = -1e30


@dataclass(frozen=True, eq=False)
class TrainedClasses:
    """Which classes of a certified fit training samples have.

    Trees, scores and certificates are made of these classes alone, so that calibration samples do not
    choose what may be predicted. Codes of rows number these classes first; see `Training.y`.

    Parameters
    ----------
    is_trained : ndarray of bool, shape (K,)
        Whether training samples have each class, in the order of `classes_`.
    """

    is_trained: NDArray[np.bool_]

    @classmethod
    def merge_classes(
        cls, trained: NDArray[Any], others: NDArray[Any]
    ) -> tuple[NDArray[Any], Self | None]:
        """Merge classes of training samples with others, both sorted; None if there are no others."""
        if not len(others):
            return trained, None
        classes = np.union1d(trained, others)
        return classes, cls(~np.isin(classes, others))

    @classmethod
    def from_stored(cls, stored: StoredState) -> Self | None:
        """Read what a file holds; None if training samples have all classes."""
        if "is_trained" not in stored:
            return None
        is_trained = check_column(
            "is_trained", stored["is_trained"], "bool", (len(stored["classes"]),)
        )
        if is_trained.all() or not is_trained.any():
            raise ValueError("is_trained must name some of the classes, and not all")
        return cls(is_trained)

    @cached_property
    def n_trained(self) -> int:
        """Number of trained classes."""
        return int(self.is_trained.sum())

    @cached_property
    def n_codes(self) -> int:
        """Number of codes of trained classes; counting takes two at least."""
        return get_first_untrained_code(self.n_trained)

    @cached_property
    def class_positions(self) -> Indices:
        """Place among all classes of each code, (n_codes + number of other classes,)."""
        places = np.zeros(self.n_codes, dtype=np.intp)
        trained = np.flatnonzero(self.is_trained)
        places[: len(trained)] = trained
        return np.concatenate([places, np.flatnonzero(~self.is_trained)])

    def encode_positions(self, places: Indices) -> Indices:
        """Return the code of each place among all classes; places beyond them have one of their own."""
        others = self.n_codes + np.cumsum(~self.is_trained) - 1
        codes = np.where(self.is_trained, np.cumsum(self.is_trained) - 1, others)
        codes = np.append(codes, self.n_codes + len(codes))
        return codes[np.minimum(places, len(self.is_trained))]

    def expand_columns(self, values: NDArray[Any], fill: Any = 0) -> NDArray[Any]:
        """Give columns of trained classes, (n, n_codes) or (n, n_trained), those of all, (n, K)."""
        spread = np.full((len(values), len(self.is_trained)), fill, dtype=values.dtype)
        if values.shape[1] > self.n_trained:
            # A single class has what smoothing gives the unused code.
            values = values.sum(axis=1, keepdims=True)
        spread[:, self.is_trained] = values
        return spread

    def collapse_columns(self, values: NDArray[Any]) -> NDArray[Any]:
        """Take columns of all classes back to those of codes, (n, n_codes): what `spread` undoes."""
        taken = np.zeros((len(values), self.n_codes), dtype=values.dtype)
        taken[:, : self.n_trained] = values[:, self.is_trained]
        return taken

    def expand_stats(self, stats: NodeStats) -> NodeStats:
        """Give counts of trained classes columns for all classes, and name labels by their places."""
        label = self.class_positions[stats.label].astype(np.int32)
        return replace(stats, counts=self.expand_columns(stats.counts), label=label)

    def collapse_stats(self, stats: NodeStats) -> NodeStats:
        """Take counts of all classes back to those of codes: what `expand_stats` undoes."""
        codes = np.cumsum(self.is_trained) - 1
        label = codes[stats.label].astype(np.int32)
        return replace(stats, counts=self.collapse_columns(stats.counts), label=label)

    def expand_scores(self, scores: Float64, is_start: bool = False) -> Float64:
        """Give scores of trained classes those of all classes.

        Parameters
        ----------
        scores : ndarray of shape (n, n_outputs)
            The log odds of the second of two classes, or a score for each of more.
        is_start : bool
            Whether these are scores to start from, which decide that others are never predicted.

        Returns
        -------
        ndarray of shape (n, 1) or (n, K)
            Likewise of all classes.
        """
        if self.n_trained <= 2:
            scores = np.column_stack([np.zeros(len(scores)), scores])[:, : self.n_trained]
        spread = self.expand_columns(scores, _NEVER if is_start else 0.0)
        return spread[:, 1:] - spread[:, :1] if spread.shape[1] == 2 else spread
