"""Figures of the page on boosted trees that say what time buys."""

from typing import Any

import numpy as np

from benchmarks.boosting_quality import (
    AGAIN,
    FILE,
    LARGE,
    MANY,
    PEER,
    QUALITIES,
    SIZES,
    SLOW_PEER,
    few_rows,
    ratio,
)
from benchmarks.learning_curves import NUMBERS
from benchmarks.records import known
from benchmarks.results_on_pages import decimals, lines_where, short, table


def quality() -> str:
    """Losses and seconds of a fit over LightGBM's, by the number of rows."""
    rows = known(FILE)
    lines = []
    for numbers in (False, True):
        for n in SIZES:
            of = few_rows(rows, numbers, n)
            told = [
                figure
                for method in QUALITIES
                for figure in (
                    decimals(ratio(of, method, "error" if numbers else "log_loss"), 2),
                    short(ratio(of, method, "seconds")),
                )
            ]
            kind = f"{'numbers' if numbers else 'classes'}, {_tables(of)} tables"
            lines.append([kind, str(n), *told])
    words = (part for method in QUALITIES for part in (f"{method}: loss", "time"))
    return table(["", "rows", *words], lines)


def _tables(rows: list[dict[str, Any]]) -> int:
    return len({row["table"] for row in rows})


def quality_of_many() -> str:
    """Losses and seconds of a fit of many rows."""
    rows = {(row["table"], row["method"]): row for row in known(FILE) if row["rows"] == MANY}
    methods = (*QUALITIES, PEER, SLOW_PEER)
    lines = []
    for name in LARGE:
        field, word = ("error", "error") if name in NUMBERS else ("log_loss", "log loss")
        lines.append([name, word, *(decimals(rows[name, m][field], 4) for m in methods)])
        lines.append(["", "seconds", *(short(rows[name, m]["seconds"]) for m in methods)])
    return table(["", "", *methods], lines)


def over_default(method: str, field: str, n: str) -> str:
    """Geometric mean over tables of classes of what ours has over the default."""
    return decimals(ratio(few_rows(known(FILE), False, int(n)), method, field, "default"), 2)


def seed_moves() -> str:
    """By how many per cent another seed moves the log loss, in the median over fits of classes."""
    of = {
        (row["table"], row["rows"], row["split"], row["method"]): row["log_loss"]
        for row in known(FILE)
        if row["table"] not in NUMBERS
    }
    moved = [
        100 * abs(loss / of[(*place, "default")] - 1)
        for (*place, method), loss in of.items()
        if method == AGAIN
    ]
    return f"{np.median(moved):.1f} %"


def size_over_halves() -> str:
    """Standard errors over the difference of two fits to halves, from least to most."""
    sizes = [
        float(one["unit"].rpartition("size ")[2])
        for one in lines_where("uncertainty.csv", "case~two halves", "case~thirds")
    ]
    return f"{min(sizes):.1f} to {max(sizes):.1f}"
