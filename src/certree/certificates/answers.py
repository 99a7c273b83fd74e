"""Right and wrong answers by class, by prediction and by group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.arrays import array_of
from certree.certificates.family import Part
from certree.certificates.regions import Routed


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """The kind of each row, such as its class.

    Parameters
    ----------
    names : list
        The kinds there are.
    place : ndarray of int, shape (n,)
        Place of each row's kind among them; rows with the place after the last are of none.
    """

    names: Sequence[Any]
    place: NDArray[np.integer]

    def at(self, kept: NDArray[np.bool_]) -> "Kinds":
        """Those of some of the rows."""
        return replace(self, place=self.place[kept])


def kinds_of(name: str, values: ArrayLike) -> Kinds:
    """The kinds that occur.

    Raises
    ------
    ValueError
        If values cannot be told apart or put in order, or one is missing.
    """
    given = array_of(name, values)
    try:
        names, place = np.unique(given, return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{name} must hold values of one kind, all numbers or all text, got dtype {given.dtype}"
        ) from None
    if (names != names).any():  # NaN is not what it is
        raise ValueError(f"{name} must not be missing for any row")
    return Kinds(names.tolist(), place)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a classifier says of rows that it is judged by.

    Parameters
    ----------
    truth, predicted : Kinds
        Their classes and what is predicted.
    wrong : ndarray of bool, shape (n,)
        Which predictions are wrong.
    groups : Kinds or None
        Their groups.
    routed : Routed or None
        Where they are in the tree that predicts.
    nats : float
        Price of having been chosen by these rows: minus the log of a prior mass; 0: fixed before.
    """

    truth: Kinds
    predicted: Kinds
    wrong: NDArray[np.bool_]
    groups: Kinds | None = None
    routed: Routed | None = None
    nats: float = 0.0

    def at(self, kept: NDArray[np.bool_]) -> "Answers":
        """Those to some of the rows."""
        groups = None if self.groups is None else self.groups.at(kept)
        routed = None if self.routed is None else self.routed.at(kept)
        truth, predicted = self.truth.at(kept), self.predicted.at(kept)
        return replace(
            self,
            truth=truth,
            predicted=predicted,
            wrong=self.wrong[kept],
            groups=groups,
            routed=routed,
        )

    def counts(self, kinds: Kinds) -> tuple[list[float], list[int]]:
        """Share of errors and rows of each kind."""
        size = len(kinds.names) + 1
        n = np.bincount(kinds.place, minlength=size)[:-1]
        errors = np.bincount(kinds.place, self.wrong, minlength=size)[:-1]
        return (errors / np.maximum(n, 1)).tolist(), n.tolist()


def parts_of_kinds(answers: Answers, kinds: Kinds) -> dict[Any, Part]:
    """One part for each kind, with the same share of delta."""
    price = answers.nats + math.log(len(kinds.names))
    rows = zip(kinds.names, *answers.counts(kinds), strict=True)
    return {key: Part(str(key), (risk,), n, price) for key, risk, n in rows}


def parts_of_pairs(answers: Answers, kinds: Kinds) -> dict[tuple[Any, Any], Part]:
    """All pairs of kinds; upper and lower limits of each kind have the same share of delta.

    The inequality halves it between the two limits, and all pairs are of the same limits.
    """
    price = answers.nats + math.log(len(kinds.names))
    rows = list(zip(kinds.names, *answers.counts(kinds), strict=True))
    parts = {}
    for (key, risk, n), (other, its_risk, its_n) in permutations(rows, 2):
        share = n / max(n + its_n, 1)
        name = f"{key} and {other}"
        parts[key, other] = Part(name, (risk, its_risk, share), n + its_n, price)
    return parts
