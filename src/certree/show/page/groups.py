"""The section that compares groups of rows."""

from typing import Any

import numpy as np

from certree.certificates import Guarantees
from certree.interface.formatting import format_four_digits, format_percent
from certree.show.calibration import compared, exact_interval
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, folded, joined, table, tag
from certree.show.page.section import Section

# Groups that are compared, the largest, of which there are more than one.
_GROUPS = 30


def by_group(judged: Judged) -> Section | None:
    """How the model does on groups of rows, and what is promised of each."""
    kinds = judged.groups
    if kinds is None:
        return None
    rows = np.bincount(kinds.place, minlength=len(kinds.names))
    largest = np.argsort(-rows, kind="stable")[:_GROUPS].tolist()
    named = [(str(kinds.names[k]), np.flatnonzero(kinds.place == k)) for k in largest]
    left = len(kinds.names) - len(named)
    more = tag("p", f"{left:,} smaller groups are not shown.") if left else Html("")
    make = _of_numbers if judged.shares is None else _of_classes
    return Section(
        "groups", "How it does on groups", make(judged, named) + more + _promised(judged)
    )


def _of_classes(judged: Judged, named: list[tuple[str, Any]]) -> Html:
    """Errors, and whether probabilities come true."""
    assert judged.shares is not None  # asked of classifiers alone
    classes, wrong = np.asarray(judged.model.classes_), judged.predicted != judged.y
    errors, calibrated, subject = [], [], ""
    for name, rows in named:
        n, misses = len(rows), float(wrong[rows].sum())
        errors.append((name, f"{n:,}", f"{100 * misses / n:.1f} %", _between(misses, n)))
        subject, found = compared(classes, judged.shares[rows], judged.y[rows])
        hits = round(float(found.found @ found.rows))
        said = float(np.average(found.said, weights=found.rows))
        low, high = exact_interval(hits, n)
        verdict = "as said" if low <= said <= high else "too high" if said > high else "too low"
        said_and_found = (
            format_percent(said),
            format_percent(hits / n),
            _between(hits, n),
            verdict,
        )
        calibrated.append((name, *said_and_found, f"{100 * found.error:.1f} points"))
    caption = "Errors; intervals hold with 95 % for each group by itself"
    first = table(("group", "rows", "error", "95 % interval"), errors, caption)
    head = ("group", "said", "found", "95 % interval", "", "off on average")
    words = f"Calibration: the probability of {subject}, said and found"
    return first + table(head, calibrated, words)


def _between(hits: float, n: int) -> str:
    low, high = exact_interval(hits, n)
    return f"{100 * low:.1f} % to {100 * high:.1f} %"


def _of_numbers(judged: Judged, named: list[tuple[str, Any]]) -> Html:
    off = judged.predicted.astype(np.float64) - judged.y
    lines = [
        (
            name,
            f"{len(rows):,}",
            format_four_digits(float(np.sqrt(np.mean(off[rows] ** 2)))),
            format_four_digits(float(off[rows].mean())),
        )
        for name, rows in named
    ]
    head = ("group", "rows", "root mean squared error", "too high by, on average")
    return table(head, lines, "Errors, in units of the target")


def _promised(judged: Judged) -> Html:
    """What holds of the error in each group and between them, where the rows are new to the model."""
    assert judged.groups is not None  # asked where there are groups
    if judged.shares is None:
        return Html("")
    if judged.n_repeated != 0:
        return tag("p", "Nothing is promised of groups: the model may have seen the rows.")
    try:
        guarantees = Guarantees.by_rows(judged.model, judged.X, judged.y)
        names = np.array(judged.groups.names, dtype=object)
        found = guarantees.conditional_guarantees(
            ["groups", "gaps"], groups=names[judged.groups.place]
        )
    except ValueError as why:  # rows repeat each other, they are few, or there is one group
        return tag("p", f"Nothing is promised of groups: {why}.")
    parts = {"Promised error of each group": found.groups, "Promised gaps": found.gaps}
    tables = [
        folded(summary, table(*family.table(), family.title)) for summary, family in parts.items()
    ]
    return joined(tables)
