"""Figures of the page on boosted trees: qualities against times, and sizes of standard errors."""

from benchmarks.boosting import (
    BEST,
    FAST,
    OURS,
    SIZES,
    Fits,
    lost,
    ratio_by_table,
    that_tell,
)
from benchmarks.learning_curves import NUMBERS, chooses
from benchmarks.records import RESULTS, known
from benchmarks.results_on_pages import decimals, short, table

QUALITIES = {"fast": FAST, "default": OURS, "best": BEST}
PEERS = ("LightGBM", "CatBoost")


def _that_count(numbers: bool) -> Fits:
    """Return the fits to the tables that chose no default, of numbers or of classes."""
    return [
        row
        for row in known(RESULTS / "boosting.csv")
        if not chooses(row["table"]) and (row["table"] in NUMBERS) == numbers
    ]


def _ratio(rows: Fits, field: str, ours: str, peer: str) -> str:
    """Return our figure divided by the peer's, with its standard error."""
    ratio, error, _ = ratio_by_table(rows, field, ours, peer)
    write = decimals if field != "seconds" else short
    return write(ratio) + (f"\u00a0±\u00a0{decimals(error)}" if field != "seconds" else "")


def qualities() -> str:
    """Make the table of losses and times of each quality relative to peers.

    Only tables count that chose no default.
    """
    classes, numbers = _that_count(numbers=False), _that_count(numbers=True)
    lines = []
    for rows, field, word in (
        (that_tell(classes), "log_loss", "log loss"),
        (numbers, "error", "root mean squared error"),
    ):
        for peer in PEERS:
            ratios = [_ratio(rows, field, ours, peer) for ours in QUALITIES.values()]
            lines.append([f"{word}, over {peer}'s", *ratios])
    for rows, word in ((classes, "classes"), (numbers, "numbers")):
        for few, size in ((True, f"to {SIZES[-1]} rows"), (False, "more rows")):
            some = [row for row in rows if (row["rows"] <= SIZES[-1]) == few]
            for peer in PEERS:
                ratios = [_ratio(some, "seconds", ours, peer) for ours in QUALITIES.values()]
                lines.append([f"time of a fit over {peer}'s, {word}, {size}", *ratios])
    return table(["", *QUALITIES], lines)


def lost_cells(numbers: str) -> str:
    """Count the tables and sizes at which CatBoost is better by over two standard errors."""
    are_numbers = numbers == "numbers"
    rows = _that_count(are_numbers)
    which, n_cells = lost(rows, "error" if are_numbers else "log_loss", "CatBoost")
    names = dict.fromkeys(name for name, _ in which)
    return f"{len(which)} of {n_cells}" + (f" ({', '.join(names)})" if names else "")
