"""Families of promises: one for each part of the rows, all of which hold at once."""

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
from certree.certificates.shift import Shift, make_shift
from certree.certificates.subsets.row_subsets import CodedLabels, RowSubset, encode_labels
from certree.interface.arrays import Float64, check_column
from certree.interface.formatting import align_columns, format_confidence
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_settings
from certree.rows.near_copies import NearCopies
from certree.rows.split import check_groups

# What the parts are, and what is promised of them beside the error.
_WORDS = {
    "every_leaf": ("leaf", ""),
    "every_cell": ("cell", ""),
    "every_class": ("class", "recall"),
    "every_prediction": ("predicted class", "precision"),
    "every_group": ("group", ""),
    "every_gap": ("gap of groups", ""),
}
# Of a longer family those parts are shown that have the most rows.
_MOST_LINES = 24


@dataclass(frozen=True, slots=True)
class Terms:
    """What all promises of one request share; the fields are those of `Certificate`."""

    delta: float
    share: float
    grouped: bool = False
    repeats: int | None = 0
    distinct: bool = False
    shift: Shift | None = None
    matches: Matches | None = None
    worst: int = 0
    near_copies: NearCopies | None = None

    def __post_init__(self) -> None:
        validate_settings(self)


@dataclass(frozen=True, slots=True, eq=False)
class CertificateFamily(Mapping[Any, Certificate]):
    """Promises on parts of the rows, all of which hold at once: a mapping of parts to certificates.

    Parameters
    ----------
    method : str
        Row of `METHODS`.
    parts : dict
        What was observed of each part. Keys are classes, groups, pairs of groups or numbers of nodes.
    terms : Terms
        What all certificates share.
    """

    method: str
    parts: Mapping[Any, RowSubset]
    terms: Terms

    def __getitem__(self, key: Any) -> Certificate:
        part, terms = self.parts[key], self.terms
        observed = get_inequality(self.method).limit(*part.observed)
        return compute_certificate(
            self.method,
            part.observed,
            part.n,
            part.complexity,
            terms.delta,
            terms.share,
            risk=min(observed, 1.0),  # sums of shares are right to a few units of rounding
            part=part.name,
            shift=terms.shift,
            **get_sampling_facts(terms),
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def worst(self) -> Certificate:
        """The certificate with the highest bound: no part is worse, and no mix of the parts."""
        return max(self.values(), key=lambda certificate: certificate.bound)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and lines: each part with its rows, its observed error and its bound, in words."""
        shown = set(nlargest(_MOST_LINES, self.parts, key=lambda key: self.parts[key].n))
        first, also = _WORDS.get(self.method, ("", ""))
        head = [first, "rows", "observed error", "error at most"]
        lines = []
        for key in self.parts:
            if key in shown:
                one = self[key]
                bound = math.ceil(1000 * one.bound - 1e-9) / 1000
                observed = f"{one.risk:.3f}" if one.n else ""
                lines.append([one.part or "all rows", f"{one.n:,}", observed, f"{bound:.3f}"])
                if also:
                    lines[-1].append(f"{1 - bound:.3f}")
        return [*head, f"{also} at least"] if also else head, lines

    @property
    def title(self) -> str:
        """The sentence above the table: what holds at once, and with which probability."""
        sure = format_confidence(self.terms.delta * self.terms.share)
        subject = METHODS[self.method].subject
        left = len(self) - _MOST_LINES
        most = f" (the {_MOST_LINES} with the most rows)" if left > 0 else ""
        source = f", for {self.terms.shift.source}," if self.terms.shift is not None else ""
        return f"With probability at least {sure}, {subject}{source} is at most{most}:"

    def __str__(self) -> str:
        """A title, and a line for each part."""
        head, lines = self.table()
        return "\n".join([self.title, *align_columns([head, *lines])])

    def _repr_html_(self) -> str:
        return make_html_table(self.title, *self.table())


# Of fewer rows nothing is promised that anybody could use.
FEWEST_ROWS = 10
_ROUNDING = 1e-9

# The row of METHODS of each family; the error has the row of what certifies the whole.
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
    """Families of guarantees, by name: ``found["recall"]``, or ``found.recall``.

    Parameters
    ----------
    families : dict of str to CertificateFamily
        Each holds for all of its parts at once with probability ``1 - delta``, by itself; if they were
        asked for jointly, so do all of them together.
    """

    families: Mapping[str, CertificateFamily]

    def __getitem__(self, name: str) -> CertificateFamily:
        return self.families[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)

    def __getattr__(self, name: str) -> CertificateFamily:
        if name not in FAMILIES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name not in self.families:
            raise AttributeError(
                f"{name} was not asked for, or there are no groups: there are {', '.join(self)}"
            )
        return self.families[name]

    def mix(self, shares: Mapping[Any, float] | ArrayLike) -> Certificate:
        """Bound the error where classes come in other shares, such as after a shift of labels.

        All mixes are covered at once by the promises on recall, and cost no more: the shares may be
        chosen after looking. No mix is worse than ``recall.worst``.

        Parameters
        ----------
        shares : dict of class to float, or array-like of shape (K,)
            Share of each class in the new rows, in the order of the classes; a dict may leave out those
            with a share of 0.

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If recall was not asked for, a class is unknown, or the shares are no shares that sum to 1.
        """
        if "recall" not in self.families:
            raise ValueError('mix needs the family "recall", which was not asked for')
        recall = self.families["recall"]
        new, rows = _check_class_fractions(shares, [*recall]), [*recall.parts.values()]
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
        """All promises for sources near this one; see `Certificate.nearby`, which says how near.

        Returns
        -------
        Promises
            Without those on gaps.
        """
        shift = make_shift(kl, total_variation)
        kept = {name: family for name, family in self.items() if name != "gaps"}
        if any(family.terms.shift is not None for family in kept.values()):
            raise ValueError("the promises speak of another source already")
        return ConditionalGuarantees(
            {
                name: replace(family, terms=replace(family.terms, shift=shift))
                for name, family in kept.items()
            }
        )

    def __str__(self) -> str:
        """One table after the other."""
        return "\n\n".join(map(str, self.values()))

    def _repr_html_(self) -> str:
        return "".join(family._repr_html_() for family in self.values())


def _check_class_fractions(shares: Any, classes: list[Any]) -> list[float]:
    """Share of each class, in their order."""
    if isinstance(shares, Mapping):
        unknown = [key for key in shares if key not in classes]
        if unknown:
            raise ValueError(f"shares must be of classes among {classes}, got {unknown}")
        shares = [shares.get(key, 0.0) for key in classes]
    given: Float64 = check_column("shares", shares, "float64", (len(classes),))
    if not ((given >= 0).all() and abs(given.sum() - 1) <= _ROUNDING):
        raise ValueError(f"shares must be non-negative and sum to 1, got {given.tolist()}")
    return given.tolist()


def check_families(families: Any, impossible: Collection[str]) -> list[str]:
    """Names of the families asked for; by default those that there can be."""
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
            needs = "a tree whose fit certifies" if name in TREE_FAMILIES else "groups"
            raise ValueError(f"the family {name} needs {needs}")
    return named


def encode_groups(groups: ArrayLike, n: int) -> CodedLabels:
    """The groups of n rows, of which there are two at least."""
    kinds = encode_labels("groups", check_groups(groups, n))
    if len(kinds.names) < 2:
        raise ValueError(f"groups must have at least two values, got {len(kinds.names)}")
    return kinds
