"""Families of certificates: one for each class, group, leaf or node, all of which hold together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Any

from numpy.typing import ArrayLike

from certree.certificates.certificate import (
    Certificate,
    Matches,
    compute_certificate,
    get_sampling_facts,
)
from certree.certificates.methods import METHODS, get_inequality
from certree.certificates.row_order import RowOrder
from certree.certificates.shift import Shift, make_shift
from certree.certificates.subsets.row_subsets import CodedLabels, RowSubset, encode_labels
from certree.interface.arrays import Float64, check_column
from certree.interface.formatting import align_columns, format_confidence
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_settings
from certree.rows.near_copies import NearCopies
from certree.rows.split import check_groups
from certree.rows.time_order import Period

# What the subsets of each method are, and which rate is 1 minus the error in them.
_WORDS = {
    "every_leaf": ("leaf", ""),
    "every_rule": ("rule", ""),
    "every_cell": ("node", ""),
    "every_class": ("class", "recall"),
    "every_prediction": ("predicted class", "precision"),
    "every_group": ("group", ""),
    "every_gap": ("gap of groups", ""),
}
# Longest table; of larger families the subsets with the most rows are listed.
_MOST_LINES = 24


@dataclass(frozen=True, slots=True)
class CertificateTerms:
    """Fields that all certificates of a family share.

    Confidence, and how the calibration rows were drawn. A family is a set of bounds that hold
    together.

    Parameters
    ----------
    delta : float
        Probability with which the guarantees may fail.
    share : float
        Fraction of delta that the family uses.
    grouped : bool
        Whether the independent observations are groups of rows.
    repeats : int or None
        Number of calibration rows that equal a row of the fit or another calibration row, and that
        were kept, since the value of `duplicates` allows them; None: they were not searched.
    distinct : bool
        Whether equal calibration rows were counted once.
    shift : Shift or None
        How far new rows may be from the calibration rows in distribution; None: not at all.
    matches : Matches or None
        Number of calibration rows that equal rows of the fit (`repeats` includes them), and how
        many of as many new rows would by chance; None: none do, or not compared.
    worst : int
        Number of rows among `repeats` that count as errors whatever is predicted.
    near_copies : NearCopies or None
        Result of the search for calibration rows that nearly equal training rows; None: no search.
    is_single_tree : bool
        Whether the labels of a vote are those of one small tree.
    row_order : RowOrder or None
        Result of the test of whether errors depend on the order of the rows; None: no test.
    period : Period or None
        Period of the calibration rows; None: rows have no times.
    """

    delta: float
    share: float
    grouped: bool = False
    repeats: int | None = 0
    distinct: bool = False
    shift: Shift | None = None
    matches: Matches | None = None
    worst: int = 0
    near_copies: NearCopies | None = None
    is_single_tree: bool = False
    row_order: RowOrder | None = None
    period: Period | None = None

    def __post_init__(self) -> None:
        validate_settings(self)


@dataclass(frozen=True, slots=True, eq=False)
class CertificateFamily(Mapping[Any, Certificate]):
    """Certificates on the error in subsets of the rows, which hold together with probability 1 - delta.

    A mapping from a subset (a class, a group, a pair of groups, a node number, or the number of a
    rule, such as "R1") to its `Certificate`, which is computed on access. `conditional_guarantees`
    makes it.

    Parameters
    ----------
    method : str
        Key of `METHODS`.
    subsets : dict of object to RowSubset
        Number of calibration rows and observed fraction of errors of each subset.
    terms : CertificateTerms
        Delta, the probability with which any bound may fail, and how the calibration rows were
        drawn: the fields that all certificates share.
    """

    method: str
    subsets: Mapping[Any, RowSubset]
    terms: CertificateTerms

    def __getitem__(self, key: Any) -> Certificate:
        """Compute the certificate of the error in one subset of the rows.

        It bounds the error on new rows of the subset; all certificates of the family hold together.
        key: a key of `subsets`, such as a class or a node number. Raises KeyError if it is unknown.
        """
        part, terms = self.subsets[key], self.terms
        inequality = get_inequality(self.method)
        if inequality.difference:  # which is negative if the error of the second group is higher
            observed = part.observed[0] - part.observed[1]
        else:
            observed = inequality.limit(*part.observed)
        return compute_certificate(
            self.method,
            part.observed,
            part.n,
            part.complexity,
            terms.delta,
            terms.share,
            risk=min(observed, 1.0),  # a sum of fractions may exceed 1 by rounding
            part=part.name,
            shift=terms.shift,
            is_single_tree=terms.is_single_tree,
            **get_sampling_facts(terms),
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.subsets)

    def __len__(self) -> int:
        return len(self.subsets)

    @property
    def worst(self) -> Certificate:
        """The certificate of this family that has the highest bound.

        While all bounds hold, the error of no subset, and of no mixture of subsets, exceeds that
        bound.
        """
        return max(self.values(), key=lambda certificate: certificate.bound)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the head and the rows of a table of subsets, as lists of str.

        The columns are the subset, its number of calibration rows, its observed error and its
        bound, and for classes also the lower bound on recall or precision. For pairs of groups they
        are the observed difference of their errors and its bound. If there are more than 24
        subsets, the 24 with the most rows are listed.
        """
        shown = set(nlargest(_MOST_LINES, self.subsets, key=lambda key: self.subsets[key].n))
        first, also = _WORDS.get(self.method, ("", ""))
        what = "difference" if get_inequality(self.method).difference else "error"
        head = [first, "calibration rows", f"observed {what}", f"{what} at most"]
        lines = []
        for key in self.subsets:
            if key in shown:
                one = self[key]
                bound = math.ceil(1000 * one.bound - 1e-9) / 1000
                observed = f"{round(one.risk, 3) + 0:.3f}" if one.n else ""  # without "-0.000"
                lines.append([one.part or "all rows", f"{one.n:,}", observed, f"{bound:.3f}"])
                if also:
                    lines[-1].append(f"{1 - bound:.3f}")
        return [*head, f"{also} at least"] if also else head, lines

    @property
    def title(self) -> str:
        """The sentence above the printed table of this family.

        It states the probability with which all bounds hold together, and what they limit.
        """
        sure = format_confidence(self.terms.delta * self.terms.share)
        subject = METHODS[self.method].get_subject(self.terms.is_single_tree)
        left = len(self) - _MOST_LINES
        most = f" (the {_MOST_LINES} with the most rows)" if left > 0 else ""
        source = f", for {self.terms.shift.source}," if self.terms.shift is not None else ""
        return f"With probability at least {sure}, {subject}{source} is at most{most}:"

    def __str__(self) -> str:
        """Return this family as text: its title, and a table with a line for each subset.

        A family is a set of bounds that hold together.
        """
        head, lines = self.table()
        return "\n".join([self.title, *align_columns([head, *lines])])

    def _repr_html_(self) -> str:
        return make_html_table(self.title, *self.table())


# Bounds from fewer calibration rows would be useless.
FEWEST_ROWS = 10
_ROUNDING = 1e-9

# The method of each family; "error" has the method of the certificate of all rows.
FAMILIES = {
    "error": "",
    "recall": "every_class",
    "precision": "every_prediction",
    "leaves": "every_leaf",
    "cells": "every_cell",
    "groups": "every_group",
    "gaps": "every_gap",
}
TREE_FAMILIES = ("leaves", "cells")
GROUP_FAMILIES = ("groups", "gaps")


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalGuarantees(Mapping[str, CertificateFamily]):
    """Several families of certificates by name, such as "recall" and "precision".

    A mapping; ``found["recall"]`` and ``found.recall`` return the same `CertificateFamily`.
    `conditional_guarantees` makes it.

    Parameters
    ----------
    families : dict of str to CertificateFamily
        Each family holds for all its subsets at once with probability ``1 - delta``, by itself.
        With ``conditional_guarantees(..., jointly=True)`` all families hold together.
    """

    families: Mapping[str, CertificateFamily]

    def __getitem__(self, name: str) -> CertificateFamily:
        return self.families[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)

    def __getattr__(self, name: str) -> CertificateFamily:
        """Return the family with this name, so that ``found.recall`` is ``found["recall"]``.

        Raises AttributeError if the name is unknown, or the family was not requested. A family is a
        set of bounds that hold together.
        """
        if name not in FAMILIES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name not in self.families:
            raise AttributeError(
                f"these guarantees must have been requested with the family {name!r}, but have only "
                f"{', '.join(self)}: pass families=None (and groups=, for families of groups) to the "
                "method that made them"
            )
        return self.families[name]

    def mix(self, shares: Mapping[Any, float] | ArrayLike) -> Certificate:
        """Bound the error for new rows in which the classes have other frequencies (label shift).

        The bound is the mean of the class bounds of the family "recall", weighted by the new
        frequencies, so it holds for all frequencies at once, which may be chosen after looking. It
        is at most ``recall.worst.bound``.

        Parameters
        ----------
        shares : dict of class to float, or array-like of shape (K,)
            Fraction of each class among the new rows; an array is in the order of the family's
            classes, and classes that a dict lacks have 0. Non-negative, with sum 1.

        Returns
        -------
        Certificate
            Upper bound on the error on such new rows, by the method "every_mix".

        Raises
        ------
        ValueError
            If the family "recall" was not requested, a class is unknown, or `shares` are not
            non-negative with sum 1.
        """
        if "recall" not in self.families:
            raise ValueError(
                'mix needs the family "recall": request it by families="recall", or families=None'
            )
        recall = self.families["recall"]
        new, rows = _check_class_fractions(shares, [*recall]), [*recall.subsets.values()]
        n = sum(part.n for part in rows)
        observed = [
            number
            for share, part in zip(new, rows, strict=True)
            for number in (share, part.observed[0], part.n / max(n, 1))
        ]
        words = [f"{share:.4g} of {key}" for share, key in zip(new, recall, strict=True) if share]
        mixed = RowSubset(", ".join(words), tuple(observed), n, rows[0].complexity)
        return CertificateFamily("every_mix", {"mix": mixed}, recall.terms)["mix"]

    def nearby(
        self, *, kl: float | None = None, total_variation: float | None = None
    ) -> ConditionalGuarantees:
        """Return the families for new rows from any distribution near that of the calibration rows.

        A family is a set of bounds that hold together. kl: largest divergence KL(calibration ||
        new) in nats; total_variation: largest total variation distance; exactly one must be passed.
        In each subset the distance is between its own distributions. The family "gaps" is left out,
        as it bounds differences. Raises ValueError if a family already has a shift.
        """
        shift = make_shift(kl, total_variation)
        kept = {name: family for name, family in self.items() if name != "gaps"}
        if any(family.terms.shift is not None for family in kept.values()):
            raise ValueError(
                "these guarantees already allow for a distribution shift (result of nearby): call "
                "nearby on the guarantees without shift"
            )
        return ConditionalGuarantees(
            {
                name: replace(family, terms=replace(family.terms, shift=shift))
                for name, family in kept.items()
            }
        )

    def __str__(self) -> str:
        """Return all families as text: title and table of each.

        A title states the confidence; a table has a line for each subset, such as a class. A family
        is a set of bounds that hold together.
        """
        return "\n\n".join(map(str, self.values()))

    def _repr_html_(self) -> str:
        return "".join(family._repr_html_() for family in self.values())


def _check_class_fractions(shares: Any, classes: list[Any]) -> list[float]:
    """Return the fraction of each class as a list of floats, in the order of `classes`.

    shares: a dictionary from class to fraction, or an array (K,). Raises ValueError if a class is
    unknown, or fractions are negative or do not sum to 1.
    """
    if isinstance(shares, Mapping):
        unknown = [key for key in shares if key not in classes]
        if unknown:
            raise ValueError(
                f"shares must have keys among the classes {classes}, got {unknown}: correct these "
                "keys, or leave them out"
            )
        shares = [shares.get(key, 0.0) for key in classes]
    given: Float64 = check_column("shares", shares, "float64", (len(classes),))
    if not ((given >= 0).all() and abs(given.sum() - 1) <= _ROUNDING):
        raise ValueError(
            f"shares must be non-negative and sum to 1, got {given.tolist()}: divide them by their sum"
        )
    return given.tolist()


def check_families(families: Any, impossible: Collection[str]) -> list[str]:
    """Return the names of the requested families of bounds as a list.

    A family is a set of bounds that hold together. "error" has one bound for all rows, "recall" one
    for each true class, "precision" one for each predicted class, "leaves" one for each leaf of a
    certified tree, "cells" one for each of its nodes, "groups" one for each group, and "gaps" one
    for the difference between each pair of groups. families: a name, a sequence of names, or None
    for all that are possible; impossible: names of families that cannot be computed. Raises
    ValueError for an unknown, repeated or impossible family.
    """
    if families is None:
        return [name for name in FAMILIES if name not in impossible]
    named = [families] if isinstance(families, str) else list(families)
    unknown = [name for name in named if name not in FAMILIES]
    if unknown or not named or len(set(named)) < len(named):
        raise ValueError(
            f"families must be some of {', '.join(FAMILIES)}, each once, got {families!r}"
        )
    for name in named:
        if name in impossible:
            needs = "a certified tree" if name in TREE_FAMILIES else "the argument groups"
            raise ValueError(
                f"families must not include {name!r} without {needs}: leave {name!r} out, or set "
                "families=None for all that are possible"
            )
    return named


def encode_groups(groups: ArrayLike, n: int) -> CodedLabels:
    """Encode the group of each of n rows as `CodedLabels`.

    It holds the different groups in ascending order (`names`), and the index of each row's group in
    them (`codes`). groups: group of each row, (n,). Raises ValueError if it has another shape, a
    missing value, or fewer than two different groups.
    """
    kinds = encode_labels("groups", check_groups(groups, n))
    if len(kinds.names) < 2:
        raise ValueError(
            f"groups must have at least two different values, got {len(kinds.names)}: leave groups "
            "out for bounds on all rows together"
        )
    return kinds
