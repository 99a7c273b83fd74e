"""Figures of the page on boosted trees that say what time buys, and how far standard errors go."""

from benchmarks.boosting import SIZES, standings
from benchmarks.boosting_quality import FILE, PEERS, QUALITIES, TABLES
from benchmarks.learning_curves import NUMBERS, chooses
from benchmarks.records import RESULTS, known
from benchmarks.results_on_pages import decimals, lines_where, short, table


def quality() -> str:
    """Losses and seconds of a fit of many rows."""
    rows = {(row["table"], row["method"]): row for row in known(FILE)}
    methods = (*QUALITIES, *PEERS)
    lines = []
    for name in TABLES:
        field, word = ("error", "error") if name in NUMBERS else ("log_loss", "log loss")
        lines.append([name, word, *(decimals(rows[name, m][field], 4) for m in methods)])
        lines.append(["", "seconds", *(short(rows[name, m]["seconds"]) for m in methods)])
    return table(["", "", *methods], lines)


def booster_times(method: str) -> str:
    """Time of our fits over a method's at each number of rows, on the tables that chose nothing."""
    rows = [row for row in known(RESULTS / "boosting.csv") if not chooses(row["table"])]
    ratios = [standings([r for r in rows if r["rows"] == n], "seconds")[method][1] for n in SIZES]
    *first, last = (short(one) for one in ratios)
    return f"{', '.join(first)} and {last}"


def size_over_halves() -> str:
    """Standard errors over the difference of two fits to halves, from least to most."""
    sizes = [
        float(one["unit"].rpartition("size ")[2])
        for one in lines_where("uncertainty.csv", "case~two halves", "case~thirds")
    ]
    return f"{min(sizes):.1f} to {max(sizes):.1f}"
