"""Figures of the page on the paper's experiment."""

from collections import defaultdict

import numpy as np

from benchmarks.results_on_pages import decimals, lines_of, short, table, the_line
from certree.paper.protocol import EXPANDED, PRUNING
from certree.paper.table2 import PAPER_COLUMN, Line, Mean, compute_mean_ratios, find_distant_ratios

RATIOS = {
    "SN-pruning": "SN-pruning",
    "PAC-Bayes joint": "PAC-Bayes, joint search",
    "PAC-Bayes error-first": "PAC-Bayes, error first",
    "HS-vote": "HS-vote",
    "HS-vote label": "HS-vote label",
    "unpruned": "unpruned",
}


def _lines() -> list[Line]:
    """Return the lines of Table 2 from the recorded experiment."""
    found: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for one in lines_of("table2_errors.csv"):
        found[one["grower"], one["dataset"]].append(one)
    return [
        Line(
            dataset=dataset,
            grower=grower,
            errors={one["method"]: _mean(one, "error") for one in of},
            ratios={one["method"]: _mean(one, "ratio") for one in of},
            outside=float(of[0]["outside"]) if of[0]["outside"] else None,
            n_nodes=float(of[0]["nodes"]),
        )
        for (grower, dataset), of in found.items()
    ]


def _mean(one: dict[str, str], what: str) -> Mean:
    return Mean(float(one[what]), float(one[f"{what}_se"]))


def _with_error(mean: Mean) -> str:
    return f"{decimals(mean.value)} ±{decimals(mean.standard_error)}"


def table2(grower: str, title: str) -> str:
    """Make the table of pruning errors and ratios of all methods with one grower."""
    of = [line for line in _lines() if line.grower == grower]
    lines = [
        [
            line.dataset,
            _with_error(line.errors[PRUNING]),
            *(decimals(line.ratios[m].value) if m in line.ratios else "" for m in RATIOS),
        ]
        for line in of
    ]
    means = compute_mean_ratios(of)[grower]
    lines.append(["mean", "", *(decimals(means[m]) for m in RATIOS)])
    return table([title, "error of pruning", *RATIOS.values()], lines)


def table2_means() -> str:
    """Return mean ratios over the data sets, by grower."""
    found = compute_mean_ratios(_lines())
    lines = [[grower, *(decimals(means[m]) for m in RATIOS)] for grower, means in found.items()]
    return table(["grower", *RATIOS], lines)


def table2_empty_cells() -> str:
    """Return pruning errors on the dyadic tree without and with regions that have no rows."""
    of = {(line.grower, line.dataset): line for line in _lines()}
    lines = []
    for (grower, dataset), line in of.items():
        if grower == "dyadic":
            literal = of[EXPANDED, dataset]
            errors = [decimals(one.errors[PRUNING].value) for one in (line, literal)]
            lines.append([dataset, *errors, f"{100 * (literal.outside or 0):.1f} %"])
    return table(["data set", "routed", "every cell", "test rows in empty cells"], lines)


def table2_far() -> str:
    """Make the table of ratios that are far from the paper's, with likely reasons."""
    lines = [
        [
            cell.line.grower,
            cell.line.dataset,
            cell.method,
            _with_error(cell.line.ratios[cell.method]),
            decimals(cell.paper),
            cell.reason.replace("temperatures:", "inverse temperatures:").replace(" 0.", " ."),
        ]
        for cell in find_distant_ratios(_lines())
    ]
    return table(["tree", "data set", "method", "ours", "paper's", "likely reason"], lines)


def table2_count(grower: str = "") -> str:
    """Return how many of the comparable ratios are far from the paper's."""
    of = [line for line in _lines() if grower in ("", line.grower)]
    compared = sum(line.paper(m) is not None for line in of for m in line.ratios)
    return f"{len(find_distant_ratios(of))} of {compared}"


def table2_nodes(grower: str, dataset: str) -> str:
    """Return the mean number of nodes of a tree, in thousands."""
    one = next(of for of in _lines() if (of.grower, of.dataset) == (grower, dataset))
    return f"{1000 * round(one.n_nodes / 1000):,}"


def table2_distance(method: str) -> str:
    """Return the mean distance of a method's ratios from the paper's."""
    distances = [
        abs(line.ratios[method].value - paper)
        for line in _lines()
        if method in line.ratios and (paper := line.paper(method)) is not None
    ]
    return decimals(float(np.mean(distances)))


def on_borders(dataset: str, column: str) -> str:
    """Return a pruning error, or its ratio to the released code's, if rows lie on thresholds."""
    return decimals(float(the_line("table2_borders.csv", {"dataset": dataset})[column]))


def borders_move(*without: str) -> str:
    """Return the largest change of PAC-Bayes ratios by the released pruning, on other data sets."""
    moved = [
        abs(float(one[method]) - line.ratios[method].value)
        for one in lines_of("table2_borders.csv")
        for line in _lines()
        for method in PAPER_COLUMN
        if (line.grower, line.dataset) == (EXPANDED, one["dataset"])
        and method in one
        and one["dataset"] not in without
    ]
    return short(max(moved))
