"""Figures of the pages on certificates: draws of rows, searches, copies, and forests."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from benchmarks.certificates import ASKED, SHARES, SIZES
from benchmarks.learning_curves import chooses
from benchmarks.results_on_pages import decimals, lines_of, lines_where, short, table

Column = np.ndarray


def _drawn() -> dict[tuple[str, int], dict[str, Column]]:
    """Return all draws by table and number of rows, with a column for each figure."""
    found: dict[tuple[str, int], list[dict[str, str]]] = defaultdict(list)
    for one in lines_of("certificates_draws.csv"):
        found[one["table"], int(one["size"])].append(one)
    return {
        cell: {
            name: np.array([float(one[name]) for one in lines])
            for name in lines[0]
            if name != "table"
        }
        for cell, lines in found.items()
    }


def _best_hold_out(of: dict[str, Column]) -> Column:
    """Return the hold-out bounds at the fraction of training rows with the lowest mean."""
    return min((of[f"hold-out {share}"] for share in SHARES), key=lambda one: one.mean())


def certified_trees() -> str:
    """Write the bound, the test error and the bound minus that of a hold-out, by table and rows."""
    cells = _drawn()
    names = dict.fromkeys(name for name, _ in cells)
    lines = []
    for name in sorted(names, key=lambda name: (chooses(name), name.startswith("sklearn"), name)):
        label = name.removeprefix("sklearn_") + (" *" if chooses(name) else "")
        told = [_one_cell(cells.get((name, size))) for size in SIZES]
        lines.append([label, *told])
    return table(["table", *(f"{size} rows" for size in SIZES)], lines)


def _one_cell(of: dict[str, Column] | None) -> str:
    if of is None:
        return ""
    ours = of["certree"].mean()
    difference = f"{ours - _best_hold_out(of).mean():+z.3f}".replace("0.", ".", 1)
    return " / ".join([decimals(ours), decimals(of["error"].mean()), difference])


# What is told of the draws of one table at one number of rows.
TOLD: dict[str, Callable[[dict[str, Column]], float]] = {
    "bound": lambda of: of["certree"].mean(),
    "hold-out": lambda of: _best_hold_out(of).mean(),
    "share that grows": lambda of: of["train_size"].mean(),
    "proposal": lambda of: of["proposal"].mean(),
    "broken": lambda of: np.mean(of["error"] > of["certree"]),
}


def over_asked(what: str) -> str:
    """Return the mean over the tables that were chosen beforehand, at each number of rows."""
    cells = _drawn()
    means = [
        np.mean([TOLD[what](cells[name, size]) for name in ASKED if (name, size) in cells])
        for size in SIZES
    ]
    *first, last = (decimals(float(one)) for one in means)
    return f"{', '.join(first)} and {last}"


def over_tables(what: str, size: str) -> str:
    """Return the smallest and the largest mean of a table, at one number of rows."""
    values = [TOLD[what](of) for (_, n), of in _drawn().items() if n == int(size)]
    return f"{short(min(values))} to {short(max(values))}"


def of_draws(what: str, size: str) -> str:
    """Return the mean over tables at one number of rows, in per cent."""
    values = [TOLD[what](of) for (_, n), of in _drawn().items() if n == int(size)]
    return f"{100 * np.mean(values):.0f} %"


FOREST = {
    "certificate": "forest",
    "test error": "its test error",
    "hold-out": "hold-out of a forest",
    "test error, hold-out": "its test error",
    "certified tree": "certified tree",
}


def _forests() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for one in lines_of("certified_forest.csv"):
        found[one["case"]][one["unit"]] = float(one["figure"])
    return found


def certified_forests() -> str:
    """Make the table of bounds and errors of certified forests, a hold-out of one, and a tree."""
    lines = [
        [name, *(decimals(told[figure]) for figure in FOREST)] for name, told in _forests().items()
    ]
    return table(["table", *FOREST.values()], lines)


def forest_over(what: str) -> str:
    """Return a forest's certificate over another figure of the same table, smallest to largest."""
    ratios = [told["certificate"] / told[what] for told in _forests().values()]
    return f"{short(min(ratios))} to {short(max(ratios))}"


def boosters_below_trees() -> str:
    """Return by how many per cent the bound of boosted trees is below a tree's, smallest to largest."""
    less = [
        100 * (1 - float(one["bound"]) / float(one["tree"]))
        for one in lines_where("certified_boosting.csv", "kind=odd")
    ]
    return f"{min(less):.0f} to {max(less):.0f} %"


def boosters_lose() -> str:
    """Return how much more a certified fit errs than one of all rows: means at each number of rows."""
    lost: dict[str, list[float]] = defaultdict(list)
    for one in lines_where("certified_boosting.csv", "kind=odd"):
        lost[one["rows"]].append(float(one["test error"]) - float(one["all rows"]))
    means = sorted(float(np.mean(of)) for of in lost.values())
    return f"{decimals(means[0])} to {decimals(means[-1])}"


def wider(kind: str) -> str:
    """Return by how many per cent our width is above MAPIE's, mean over fits, smallest to largest."""
    ours, theirs = {"one": ("ours, one", "MAPIE, absolute"), "sets": ("ours", "MAPIE, lac")}[kind]
    sizes = {one["case"]: float(one["figure"]) for one in lines_of("intervals.csv")}
    more = [
        100 * (sizes[f"{name}, {ours}"] / size - 1)
        for name, peer, size in ((*case.split(", ", 1), size) for case, size in sizes.items())
        if peer == theirs and f"{name}, {ours}" in sizes
    ]
    return f"{min(more):.0f} to {max(more):.0f} %"


def searched() -> str:
    """Return how many certificates that were searched for are false."""
    lines = [
        [
            one["case"] + (f" ({one['draws']} draws)" if one["draws"] != "100" else ""),
            decimals(float(one["broken"]), 2),
        ]
        for one in lines_of("searches.csv")
    ]
    return table(["95 % certificates with labels of fair coins", "below .5"], lines)


def copied() -> str:
    """Return how many certificates of trees are false if rows were copied, by setting."""
    found: dict[str, list[str]] = {}
    for one in lines_where("duplicates.csv", "model=tree"):
        share = decimals(float(one["false"]), 2) if one["false"] else "refused"
        found.setdefault(one["case"], []).append(share)
    head = ["`CertifiedTreeClassifier`", '"auto"', '"genuine"', '"copies"']
    return table(head, [[case, *shares] for case, shares in found.items()])
