"""Families of promises: one for each part of the rows, all of which hold at once."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.certificate import Certificate, certificate_of
from certree.certificates.hold_out import outcomes, repeated
from certree.certificates.methods import METHODS, inequality_of
from certree.certificates.parts.answers import (
    Answers,
    Kinds,
    Part,
    Routed,
    cell_parts,
    kinds_of,
    leaf_parts,
    parts_of_kinds,
    parts_of_pairs,
)
from certree.certificates.shift import Shift, kept_by_weights, shift_nearby
from certree.interface.arrays import Float64, column
from certree.interface.notebook import html_table
from certree.interface.signatures import checked, expect_settings
from certree.interface.words import aligned, surely
from certree.rows.deal import checked_groups

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
    shift: Shift | None = None

    def __post_init__(self) -> None:
        expect_settings(self)


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
    parts: Mapping[Any, Part]
    terms: Terms

    def __getitem__(self, key: Any) -> Certificate:
        part, terms = self.parts[key], self.terms
        observed = inequality_of(self.method).limit(*part.observed)
        return certificate_of(
            self.method,
            part.observed,
            part.n,
            part.complexity,
            terms.delta,
            terms.share,
            risk=min(observed, 1.0),  # sums of shares are right to a few units of rounding
            grouped=terms.grouped,
            part=part.name,
            shift=terms.shift,
            repeats=terms.repeats,
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
        sure = surely(self.terms.delta * self.terms.share)
        subject = METHODS[self.method].subject
        left = len(self) - _MOST_LINES
        most = f" (the {_MOST_LINES} with the most rows)" if left > 0 else ""
        source = f", for {self.terms.shift.source}," if self.terms.shift is not None else ""
        return f"With probability at least {sure}, {subject}{source} is at most{most}:"

    def __str__(self) -> str:
        """A title, and a line for each part."""
        head, lines = self.table()
        return "\n".join([self.title, *aligned([head, *lines])])

    def _repr_html_(self) -> str:
        return html_table(self.title, *self.table())


# Of fewer rows nothing is promised that anybody could use.
FEWEST_ROWS = 10
_ROUNDING = 1e-9

_Parts = Mapping[Any, Part]


def _everywhere(answers: Answers) -> _Parts:
    risk = float(answers.wrong.mean())
    return {"all rows": Part("", (risk,), len(answers.wrong), answers.nats)}


def _by_group(parts: Callable[[Answers, Kinds], _Parts]) -> Callable[[Answers], _Parts]:
    def of(answers: Answers) -> _Parts:
        assert answers.groups is not None  # else the family is refused
        return parts(answers, answers.groups)

    return of


def _by_region(
    parts: Callable[[Routed, NDArray[np.bool_], float], _Parts],
) -> Callable[[Answers], _Parts]:
    def of(answers: Answers) -> _Parts:
        assert answers.routed is not None
        return parts(answers.routed, answers.wrong, answers.nats)

    return of


# The row of METHODS of each family, and its parts; the error has the row of a vote or of a hold-out.
_FAMILIES: dict[str, tuple[str, Callable[[Answers], _Parts]]] = {
    "error": ("", _everywhere),
    "recall": ("every_class", lambda answers: parts_of_kinds(answers, answers.truth)),
    "precision": ("every_prediction", lambda answers: parts_of_kinds(answers, answers.predicted)),
    "leaves": ("every_leaf", _by_region(leaf_parts)),
    "cells": ("every_cell", _by_region(cell_parts)),
    "groups": ("every_group", _by_group(parts_of_kinds)),
    "gaps": ("every_gap", _by_group(parts_of_pairs)),
}
_OF_TREES = ("leaves", "cells")
_OF_GROUPS = ("groups", "gaps")


@dataclass(frozen=True, slots=True, eq=False)
class Promises(Mapping[str, CertificateFamily]):
    """Families of promises, by name: ``promises["recall"]``, or ``promises.recall``.

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
        if name not in _FAMILIES:
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
        new, rows = _shares(shares, [*recall]), [*recall.parts.values()]
        n = sum(part.n for part in rows)
        observed = [
            number
            for share, part in zip(new, rows, strict=True)
            for number in (share, part.observed[0], part.n / max(n, 1))
        ]
        words = [f"{share:.4g} of {key}" for share, key in zip(new, recall, strict=True) if share]
        mixed = Part(", ".join(words), tuple(observed), n, rows[0].complexity)
        return CertificateFamily("every_mix", {"mix": mixed}, recall.terms)["mix"]

    def nearby(
        self, *, kl: float | None = None, total_variation: float | None = None
    ) -> "Promises":
        """All promises for sources near this one; see `Certificate.nearby`, which says how near.

        Returns
        -------
        Promises
            Without those on gaps.
        """
        shift = shift_nearby(kl, total_variation)
        kept = {name: family for name, family in self.items() if name != "gaps"}
        if any(family.terms.shift is not None for family in kept.values()):
            raise ValueError("the promises speak of another source already")
        return Promises(
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


def _shares(shares: Any, classes: list[Any]) -> list[float]:
    """Share of each class, in their order."""
    if isinstance(shares, Mapping):
        unknown = [key for key in shares if key not in classes]
        if unknown:
            raise ValueError(f"shares must be of classes among {classes}, got {unknown}")
        shares = [shares.get(key, 0.0) for key in classes]
    given: Float64 = column("shares", shares, "float64", (len(classes),))
    if not ((given >= 0).all() and abs(given.sum() - 1) <= _ROUNDING):
        raise ValueError(f"shares must be non-negative and sum to 1, got {given.tolist()}")
    return given.tolist()


@checked
def promises_of(
    answers: Answers,
    families: str | Sequence[str] | None,
    terms: Terms,
    *,
    weights: ArrayLike | None = None,
    max_weight: float | None = None,
    random_state: int = 0,
    jointly: bool = False,
) -> Promises:
    """Promises by rows that have been looked up; the parameters are those of `promises`."""
    named = _named(families, answers)
    if (weights is None) != (max_weight is None):
        raise ValueError(
            "weights come with max_weight, the most that any may be, fixed without the rows"
        )
    if weights is not None and max_weight is not None:
        kept = kept_by_weights(weights, max_weight, len(answers.wrong), random_state)
        answers = answers.at(kept)
        terms = replace(terms, shift=Shift("weights", max_weight))
    if len(answers.wrong) < FEWEST_ROWS:
        left = "" if weights is None else " that the weights keep"
        raise ValueError(
            f"promises take at least {FEWEST_ROWS} held-out rows{left}, got {len(answers.wrong)}"
        )
    if jointly:
        terms = replace(terms, share=terms.share / len(named))
    whole = "hold_out" if answers.routed is None else "occam_vote"
    found = {}
    for name in named:
        method, parts = _FAMILIES[name]
        found[name] = CertificateFamily(method or whole, parts(answers), terms)
        next(iter(found[name].values()))  # rows in groups and a wrong delta are refused now
    return Promises(found)


def _named(families: Any, answers: Answers) -> list[str]:
    """Names of the families asked for; by default those that there can be."""
    impossible = _OF_TREES if answers.routed is None else ()
    if answers.groups is None:
        impossible = (*impossible, *_OF_GROUPS)
    if families is None:
        return [name for name in _FAMILIES if name not in impossible]
    named = [families] if isinstance(families, str) else list(families)
    unknown = [name for name in named if name not in _FAMILIES]
    if unknown or not named or len(set(named)) < len(named):
        raise ValueError(
            f"families must be some of {', '.join(_FAMILIES)}, each once, got {families!r}"
        )
    for name in named:
        if name in impossible:
            needs = "a tree whose fit certifies" if name in _OF_TREES else "groups"
            raise ValueError(f"the family {name} needs {needs}")
    return named


def groups_among(groups: ArrayLike, n: int) -> Kinds:
    """The groups of n rows, of which there are two at least."""
    kinds = kinds_of("groups", checked_groups(groups, n))
    if len(kinds.names) < 2:
        raise ValueError(f"groups must have at least two values, got {len(kinds.names)}")
    return kinds


@checked
def promises(
    classifier: Any,
    X: Any,
    y: ArrayLike,
    families: str | Sequence[str] | None = None,
    *,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    max_weight: float | None = None,
    random_state: int = 0,
    delta: float = 0.05,
    jointly: bool = False,
    repeats: Literal["genuine"] | None = None,
) -> Promises:
    """Promise more of any fitted classifier, by rows that were never used, than its error as a whole.

    Parameters
    ----------
    classifier : fitted classifier
        Of certree, scikit-learn or anybody, with ``predict``.
    X : array-like of shape (n, p)
        Rows that neither its fit, nor its choice among others, nor any step before has seen.
    y : array-like of shape (n,)
        Their classes.
    families : str, sequence of str or None
        Which families: "error" of all rows, "recall" of each class, "precision" of each predicted
        class, error of "groups", "gaps" between them. None: all that there can be. A class or group
        without any row has no promise.
    groups : array-like of shape (n,), or None
        A group of each row, such as a hospital, that was not chosen by looking at errors. Rows are
        drawn independently all the same.
    weights : array-like of shape (n,), or None
        For new rows from another source, whose density over that of these rows is known: that density
        at each row, up to a factor. Each row is kept with probability ``weight / max_weight``, and
        those that are kept are independent draws of the other source.
    max_weight : float or None
        The most that any weight may be, fixed without the rows.
    random_state : int
        Seed of these draws. To draw again and keep the better promise breaks it.
    delta : float
        Probability with which a family may fail.
    jointly : bool
        Whether delta is divided by the number of families, which must then be chosen without looking,
        so that all of them hold together.
    repeats : {"genuine"} or None
        Whether rows that occur in the fit as well were drawn anew; see `certree.certify`.

    Returns
    -------
    Promises

    Raises
    ------
    ValueError
        If there are fewer than 10 rows, also of those kept, a family or a setting is unknown, there is
        only one group, a weight is above `max_weight`, the classifier can know none of the classes, or
        rows occur in the fit as well.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 1934.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from certree.certificates import promises
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    >>> print(promises(tree, X[300:], y[300:], "recall"))
    With probability at least 95 %, for all classes at once, this classifier's error is at most:
    class  rows  observed error  error at most  recall at least
    0        66           0.030          0.106            0.894
    1       203           0.133          0.188            0.812
    """
    predicted, truth = outcomes(classifier, X, y)
    known = repeated(classifier, X, repeats)
    answers = Answers(
        kinds_of("y", truth),
        kinds_of("predictions", predicted),
        np.asarray(predicted != truth),
        None if groups is None else groups_among(groups, len(truth)),
    )
    return promises_of(
        answers,
        families,
        Terms(delta, 1.0, repeats=known),
        weights=weights,
        max_weight=max_weight,
        random_state=random_state,
        jointly=jointly,
    )
