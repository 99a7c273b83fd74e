"""Classes that only calibration rows of a certified fit have, which are never predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_column
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.rows.folds import Indices
from certree.rows.training import get_first_untrained_code
from certree.stats import NodeStats

# Score of a class that is never predicted: its probability is 0 next to any other score, and float32
# can represent it.
_NEVER = -1e30


@dataclass(frozen=True, eq=False)
class TrainedClasses:
    """Which of the K classes of a certified fit occur among the training rows.

    Trees, scores and certificates use only these classes, so that calibration rows do not decide
    what can be predicted. Class codes, integers that stand for the class of a row, number the
    trained classes first, then the others. Both are in the order of ``classes_``.

    Parameters
    ----------
    is_trained : ndarray of bool, shape (K,)
        Whether a training row has each class, in the order of ``classes_``.
    """

    is_trained: NDArray[np.bool_]

    @classmethod
    def merge_classes(
        cls, trained: NDArray[Any], others: NDArray[Any]
    ) -> tuple[NDArray[Any], Self | None]:
        """Merge the classes of the training rows with those that only other rows have.

        trained, others: classes, both sorted and disjoint. Return the K classes of the sorted
        union, and the `TrainedClasses` that marks those of `trained`; None in its place if `others`
        is empty.
        """
        if not len(others):
            return trained, None
        classes = np.union1d(trained, others)
        return classes, cls(~np.isin(classes, others))

    @cached_property
    def n_trained(self) -> int:
        """Number of classes that training rows have, at least 1."""
        return int(self.is_trained.sum())

    @cached_property
    def n_codes(self) -> int:
        """Number of class codes reserved for classes that training rows have.

        It is `n_trained`, but at least 2; the second code is unused if there is one class.
        """
        return get_first_untrained_code(self.n_trained)

    @cached_property
    def class_positions(self) -> Indices:
        """Index in ``classes_`` of the class of each code, an int array.

        Its length is n_codes plus the number of classes that training rows lack. The unused second
        code of a single trained class has the index 0.
        """
        places = np.zeros(self.n_codes, dtype=np.intp)
        trained = np.flatnonzero(self.is_trained)
        places[: len(trained)] = trained
        return np.concatenate([places, np.flatnonzero(~self.is_trained)])

    def encode_positions(self, places: Indices) -> Indices:
        """Return the class code of each index in ``classes_``.

        places: indices, (n,); K and larger ones stand for classes that the model does not know,
        which have the code ``n_codes + K``, larger than all others.
        """
        others = self.n_codes + np.cumsum(~self.is_trained) - 1
        codes = np.where(self.is_trained, np.cumsum(self.is_trained) - 1, others)
        codes = np.append(codes, self.n_codes + len(codes))
        return codes[np.minimum(places, len(self.is_trained))]

    def expand_columns(self, values: NDArray[Any], fill: Any = 0) -> NDArray[Any]:
        """Return `values` with a column for each of the K classes, also those training rows lack.

        The columns of the classes that training rows have are copied, the others filled. values:
        (n, n_codes) or (n, n_trained), a column for each class code or trained class (the column of
        a single class's unused second code is added to the first); fill: value of the columns of
        other classes. Return (n, K) in the order of ``classes_``.
        """
        spread = np.full((len(values), len(self.is_trained)), fill, dtype=values.dtype)
        if values.shape[1] > self.n_trained:
            # With a single class smoothing may give the unused code a probability, which is added.
            values = values.sum(axis=1, keepdims=True)
        spread[:, self.is_trained] = values
        return spread

    def collapse_columns(self, values: NDArray[Any]) -> NDArray[Any]:
        """Drop the columns of classes that training rows lack; the inverse of `expand_columns`.

        values: (n, K), a column for each class of ``classes_``. Return (n, n_codes), a column for
        each class code of the trained classes; the unused second code of a single class gets 0.
        """
        taken = np.zeros((len(values), self.n_codes), dtype=values.dtype)
        taken[:, : self.n_trained] = values[:, self.is_trained]
        return taken

    def expand_stats(self, stats: NodeStats) -> NodeStats:
        """Return class counts with a column for each of the K classes of ``classes_``.

        stats: counts with a column for each code of classes that training rows have; other classes
        get counts of 0. Labels of nodes become indices in ``classes_`` instead of codes.
        """
        label = self.class_positions[stats.label].astype(np.int32)
        return replace(stats, counts=self.expand_columns(stats.counts), label=label)

    def collapse_stats(self, stats: NodeStats) -> NodeStats:
        """Return class counts with a column for each code, (m, n_codes); the inverse of `expand_stats`.

        Labels of nodes become codes. stats: counts with a column for each of the K classes of
        ``classes_``.
        """
        codes = np.cumsum(self.is_trained) - 1
        label = codes[stats.label].astype(np.int32)
        return replace(stats, counts=self.collapse_columns(stats.counts), label=label)

    def expand_scores(self, scores: Float64, is_start: bool = False) -> Float64:
        """Return `scores` with a column for each of the K classes, also those training rows lack.

        Parameters
        ----------
        scores : ndarray of shape (n, n_outputs)
            With one or two trained classes (n, 1): the log odds of the second one, not read if
            there is only one. With more a score for each.
        is_start : bool
            True: these are start scores, in which classes that training rows lack get -1e30, so
            that they are never predicted. False: these classes get 0.

        Returns
        -------
        ndarray of shape (n, 1) or (n, K)
            Log odds of the second class if K is 2, else a score for each class.
        """
        if self.n_trained <= 2:
            scores = np.column_stack([np.zeros(len(scores)), scores])[:, : self.n_trained]
        spread = self.expand_columns(scores, _NEVER if is_start else 0.0)
        return spread[:, 1:] - spread[:, :1] if spread.shape[1] == 2 else spread


def _restore_trained_classes(stored: StoredState, name: str, model: Any) -> TrainedClasses:
    """Return the `TrainedClasses` of a model file.

    stored, name: the content of the file, and the name of the array in it. model: the model that is
    restored, with K classes. Raise ValueError if the array is not (K,) bool, or all of it is equal:
    the file has such an array only if training rows have some, but not all classes.
    """
    is_trained = check_column(name, stored[name], "bool", (model.n_classes_,))
    if is_trained.all() or not is_trained.any():
        raise DamagedModelError(
            f"the model file's {name} must be True for some classes and False for others"
        )
    return TrainedClasses(is_trained)


# Field of model files; files whose training rows have all classes do not have it.
TRAINED_CLASSES_FIELD = StoredField(
    "_trained",
    _restore_trained_classes,
    lambda trained, _: trained.is_trained,
    default=None,
)
