"""Figures of the page on the paper's experiment."""

from collections import defaultdict

from benchmarks.results_on_pages import decimals, lines_of, table, the_line
from certree.paper.table2 import Line, Mean, compute_mean_ratios, find_distant_ratios

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


def table2_means() -> str:
    """Return mean ratios over the data sets, by grower."""
    found = compute_mean_ratios(_lines())
    lines = [[grower, *(decimals(means[m]) for m in RATIOS)] for grower, means in found.items()]
    return table(["grower", *RATIOS], lines)


def table2_count(grower: str = "") -> str:
    """Return how many of the comparable ratios are far from the paper's."""
    of = [line for line in _lines() if grower in ("", line.grower)]
    compared = sum(line.paper(m) is not None for line in of for m in line.ratios)
    return f"{len(find_distant_ratios(of))} of {compared}"


def table2_nodes(grower: str, dataset: str) -> str:
    """Return the mean number of nodes of a tree, in thousands."""
    one = next(of for of in _lines() if (of.grower, of.dataset) == (grower, dataset))
    return f"{1000 * round(one.n_nodes / 1000):,}"


def on_borders(dataset: str, column: str) -> str:
    """Return a pruning error, or its ratio to the released code's, if rows lie on thresholds."""
    return decimals(float(the_line("table2_borders.csv", {"dataset": dataset})[column]))
