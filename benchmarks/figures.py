"""Figures in README and docs come out of results/: `python -m benchmarks.figures` writes them anew.

A figure on a page stands between two comments, which nobody sees who reads the page:

    <!-- figure: lower; CatBoost; error -->four<!-- end -->

The first word names a function of FIGURES, the others are what it is given. `tests/test_docs.py`
fails where a page says anything else than the function; `make figures` runs this file.
"""

import re
import sys
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import (
    figures_of_boosting,
    figures_of_certificates,
    figures_of_docs,
    figures_of_scale,
    figures_of_table2,
    figures_of_trees,
)
from benchmarks.evidence import FILE, MARKS, OURS, of_boosting
from benchmarks.records import known
from benchmarks.results_on_pages import (
    average,
    largest,
    lines_of,
    made,
    mean,
    of_case,
    short,
    span,
    table,
)

PROJECT = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- figure: ([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
WORDS = [
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
# Files of results in which ours and a peer take turns, and at what.
RACES = {
    "cart": "growing one tree",
    "categorical": "one tree of boosting, with categories",
    "counts": "one tree of boosting, and its bins",
    "forest_growth": "growing a forest",
    "grow": "growing a KD tree",
    "predict": "predicting by one tree",
    "predict_boosted": "predicting by 100 trees",
    "shapley": "Shapley values",
    "single_tree": "a fit of one tree, tuned",
    "naive_bayes": "naive Bayes",
    "import_time": "importing a model",
}


def defined_in(page: ModuleType, one: Any) -> bool:
    """Return whether a name is a figure of a module: a public function that it does not import."""
    return isfunction(one) and one.__module__ == page.__name__ and not one.__name__.startswith("_")


def evidence() -> dict[str, dict[str, dict[str, float]]]:
    """Make the table of all losses of all methods on the tables of the README's picture."""
    tables = of_boosting()
    for row in known(FILE):
        tables[row["table"]][row["method"]] = row
    return tables


def how_many_tables() -> str:
    """Return the number of tables in the README's picture, in words."""
    return WORDS[len(evidence())]


def ratios(method: str, field: str, to: str = OURS) -> list[float]:
    """Return the ratio of a method's figure to another's on each table."""
    return [one[method][field] / one[to][field] for one in evidence().values()]


def mean_ratio(method: str, field: str, to: str = OURS) -> str:
    """Return the geometric mean of `ratios`."""
    return short(mean(ratios(method, field, to)))


def summary() -> str:
    """Make the table of losses, errors and times of every method relative to ours."""
    lines = []
    for method, (label, _, _) in MARKS.items():
        told = [label]
        for field in ("log_loss", "error"):
            ahead = sum(ratio < 1 for ratio in ratios(method, field))
            told += [f"{mean(ratios(method, field)):.2f}", "" if method == OURS else str(ahead)]
        lines.append([*told, short(mean(ratios(method, "seconds")))])
    head = ["method", "log loss", "lower on", "error", "lower on", "time of a fit"]
    return table(head, lines)


def wins(method: str, field: str = "log_loss") -> int:
    """Count the tables on which no other method has less of a field, such as "log_loss"."""
    return sum(
        min(MARKS, key=lambda name: one[name][field]) == method for one in evidence().values()
    )


def results() -> str:
    """Write the README's table: log loss and fit time over ours, and tables with the least log loss."""
    lines = [
        [
            label,
            f"{mean(ratios(method, 'log_loss')):.2f}",
            str(wins(method)),
            short(mean(ratios(method, "seconds"))),
        ]
        for method, (label, _, _) in MARKS.items()
    ]
    return table(["method", "log loss", "wins", "fit time"], lines)


def races() -> dict[tuple[str, str], list[float]]:
    """Return ratios of times of ours and a peer, run in turn, by race and peer."""
    found: dict[tuple[str, str], list[float]] = {}
    for name, what in RACES.items():
        for line in lines_of(f"{name}.csv"):
            if line["peer"] and line["ratio"]:
                found.setdefault((what, line["peer"]), []).append(float(line["ratio"]))
    return found


def speed() -> str:
    """Make the table of the smallest, median and largest ratio of times for every race and peer."""
    lines = [
        [*key, str(len(of)), *(short(float(value)) for value in (min(of), np.median(of), max(of)))]
        for key, of in races().items()
    ]
    head = ["what", "against", "cases", "time over theirs: least", "median", "most"]
    return table(head, lines)


def slower() -> str:
    """List the cases of every race and peer in which the peer took less time."""
    lines = [
        [*key, f"{sum(ratio > 1 for ratio in of)} of {len(of)}", short(max(of))]
        for key, of in races().items()
        if max(of) > 1
    ]
    return table(["what", "quicker", "in cases", "our time over theirs: most"], lines)


def behind(field: str) -> str:
    """List every table on which a method is ahead of our boosted trees, and by how much."""
    lines = []
    for name, one in evidence().items():
        best = min(MARKS, key=lambda method: one[method][field])
        if best != OURS:
            less = 100 * (1 - one[best][field] / one[OURS][field])
            lines.append([name, MARKS[best][0], f"{less:.1f} % lower"])
    return table(["table", "ahead", f"its {field.replace('_', ' ')}"], lines)


def single_trees() -> str:
    """Compare one tree of ours with a tuned tree: errors, log losses, and times of a fit."""
    found: dict[str, dict[str, str]] = {}
    for line in lines_of("single_tree.csv"):
        if line["peer"] != "GridSearchCV":
            continue
        name, _, fit = line["case"].partition(", ")
        told = found.setdefault(name, {})
        if fit == "fit":
            told["time"] = short(float(line["ratio"]))
        else:
            told[line["unit"]] = f"{float(line['figure']):.3f} / {float(line['target']):.3f}"
    lines = [[name, told["error"], told["log loss"], told["time"]] for name, told in found.items()]
    return table(["table", "error, ours / tuned", "log loss, ours / tuned", "time over its"], lines)


PAGES = (
    figures_of_boosting, figures_of_certificates, figures_of_docs, figures_of_scale,
    figures_of_table2, figures_of_trees,
)  # fmt: skip
FIGURES: dict[str, Callable[..., str]] = {
    one.__name__: one
    for one in (
        average, span, largest, how_many_tables, mean_ratio, results,
        summary,
        speed, slower, behind, single_trees, of_case, made,
        *(one for page in PAGES for one in vars(page).values() if defined_in(page, one)),
    )
}  # fmt: skip


def figure(words: str) -> str:
    """Compute the text of the figure that a comment with these words asks for."""
    name, *given = words.split("; ")
    if name not in FIGURES:
        raise ValueError(f"no figure is called {name!r}, there are {', '.join(FIGURES)}")
    return FIGURES[name](*given)


def renewed(text: str) -> str:
    """Return a page with all its figures computed from the results."""
    return MARKED.sub(lambda found: found[1] + figure(found[2]) + found[4], text)


def pages() -> list[Path]:
    """Return every page that may have figures."""
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def main() -> None:
    """Write the figures of all pages, and print the names of pages that have changed."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(PROJECT)} has new figures\n")


if __name__ == "__main__":
    main()
