"""A family of promises: one for each part of the rows, all of which hold at once."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Any

from certree.certificates.certificate import (
    METHODS,
    Certificate,
    certificate_of,
    inequality_of,
)
from certree.certificates.shift import Shift
from certree.notebook import html_table
from certree.signatures import expect_settings

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


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the rows: its name, what enters the bound, its rows, and the price of it (nats)."""

    name: str
    observed: tuple[float, ...]
    n: int
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class Family(Mapping[Any, Certificate]):
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
        certificate = certificate_of(
            self.method,
            part.observed,
            min(observed, 1.0),  # sums of shares are right to a few units of rounding
            part.n,
            part.complexity,
            terms.delta,
            terms.share,
            terms.grouped,
            part.name,
            terms.shift,
        )
        return replace(certificate, repeats=terms.repeats)

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
        sure = 100 * (1 - self.terms.delta * self.terms.share)
        subject = METHODS[self.method].subject
        left = len(self) - _MOST_LINES
        most = f" (the {_MOST_LINES} with the most rows)" if left > 0 else ""
        source = f", for {self.terms.shift.source}," if self.terms.shift is not None else ""
        return f"With probability at least {sure:.10g} %, {subject}{source} is at most{most}:"

    def __str__(self) -> str:
        """A title, and a line for each part."""
        head, lines = self.table()
        columns = list(zip(head, *lines, strict=True))
        widths = [max(map(len, column)) for column in columns]
        written = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in (head, *lines)
        ]
        return "\n".join([self.title, *written])

    def _repr_html_(self) -> str:
        return html_table(self.title, *self.table())
