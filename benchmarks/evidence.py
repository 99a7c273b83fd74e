"""The picture of the README: ours and everybody's, as they come, on public tables.

Log loss and error of 3000 training rows on up to 4000 others, on every table of classes for which
results/boosting.csv has all methods: its fits of boosting, and here those of single trees and forests
on the same rows. scikit-learn's tree is tuned by five folds (criterion, and price among 30), with
Laplace's rule in its leaves; all else is as it comes. Fits stand in results/evidence.csv and are not
made again; the picture is docs/images/evidence.png. Needs CERTREE_DATA.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.ensemble import RandomForestClassifier

from benchmarks.boosting import judged
from benchmarks.defaults import Data
from benchmarks.learning_curves import TunedTree, every_table, parts_of
from benchmarks.records import RESULTS, known, store
from certree import PACBayesTreeClassifier, TreeForestClassifier
from certree.show.picture import Picture
from certree.show.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILLION, use_style

ROWS, SPLIT = 3000, 0
FILE = RESULTS / "evidence.csv"
IMAGE = Path(__file__).parent.parent / "docs" / "images" / "evidence.png"
OURS = "boosted trees"
# What each method is called in the picture, its mark and its colour; ours are filled.
MARKS = {
    OURS: ("certree, boosted trees", "D", VERMILLION),
    "forest": ("certree, forest", "s", VERMILLION),
    "tree": ("certree, one tree", "o", VERMILLION),
    "CatBoost": ("CatBoost", "D", BLUE),
    "LightGBM": ("LightGBM", "D", GREEN),
    "HistGradientBoosting": ("scikit-learn, HistGradientBoosting", "D", ORANGE),
    "random forest": ("scikit-learn, random forest", "s", SKY),
    "tuned tree": ("scikit-learn, tuned tree", "o", PURPLE),
}


def methods(data: Data) -> dict[str, Callable[[], Any]]:
    """What is fitted here."""
    options = {"categorical_features": data.categorical, "random_state": 0}
    return {
        "tree": lambda: PACBayesTreeClassifier(**options),
        "forest": lambda: TreeForestClassifier(**options),
        "tuned tree": lambda: TunedTree(numbers=False),
        "random forest": lambda: RandomForestClassifier(random_state=0),
    }


def of_boosting() -> dict[str, dict[str, dict[str, float]]]:
    """Figures of boosting by table and method, of tables that have all."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in known(RESULTS / "boosting.csv"):
        if (row["rows"], row["split"]) == (ROWS, SPLIT) and not np.isnan(row["log_loss"]):
            method = OURS if row["method"] == "certree" else row["method"]
            found.setdefault(row["table"], {})[method] = row
    return {name: figures for name, figures in found.items() if {OURS, "CatBoost"} <= set(figures)}


def fitted(directory: Path, names: list[str]) -> list[dict[str, Any]]:
    """Fits of single trees and forests, those of the file and those that it lacks."""
    rows = known(FILE)
    done = {(row["table"], row["method"]) for row in rows}
    data = every_table(directory)
    for name in names:
        parts = parts_of(data[name], ROWS, SPLIT, numbers=False)
        for method, made in methods(data[name]).items():
            if (name, method) not in done:
                figures = judged(made(), parts, numbers=False)
                place = {"table": name, "rows": ROWS, "split": SPLIT, "method": method}
                rows.append({**place, **figures})
                store(FILE, rows, added=bool(done))
        print(name, flush=True)
    return rows


def draw_panel(ax: Axes, table: dict[str, dict[str, dict[str, float]]], field: str) -> None:
    """A line for each table: every method over our boosted trees."""
    places = np.arange(len(table))[::-1]
    for method, (label, mark, colour) in reversed(MARKS.items()):
        ratios = [one[method][field] / one[OURS][field] for one in table.values()]
        face = colour if label.startswith("certree") else "none"
        ax.plot(ratios, places, mark, color=colour, markerfacecolor=face, label=label, ls="none")
    ax.axvline(1, color=GREY, lw=0.8, zorder=0)
    ax.set_xscale("log")
    ticks = [0.5, 0.8, 1, 1.25, 1.5, 2, 3, 4]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(places, list(table))
    ax.grid(axis="y", color="#EEEEEE")
    best = sum(
        min(one[method][field] for method in MARKS) == one[OURS][field] for one in table.values()
    )
    words = "log loss" if field == "log_loss" else "error"
    ax.set_title(f"{words}: boosted trees of certree lowest on {best} of {len(table)} tables")
    ax.set_xlabel(f"{words} over that of certree's boosted trees (logarithmic)")


@use_style
def draw(table: dict[str, dict[str, dict[str, float]]]) -> Picture:
    """Both panels and the marks below."""
    figure = Picture(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    draw_panel(left, table, "log_loss")
    draw_panel(right, table, "error")
    marks, labels = left.get_legend_handles_labels()
    figure.legend(marks[::-1], labels[::-1], loc="outside lower center", ncols=4, labelcolor=INK)
    return figure


def main() -> None:
    """Fit, print and draw."""
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("evidence: skipped, CERTREE_DATA names no directory of tables")
        return
    table = of_boosting()
    for row in fitted(Path(directory), list(table)):
        table[row["table"]][row["method"]] = row
    for field in ("log_loss", "error"):
        for method in MARKS:
            ratios = [one[method][field] / one[OURS][field] for one in table.values()]
            wins = sum(ratio < 1 for ratio in ratios)
            mean = np.exp(np.mean(np.log(ratios)))
            print(f"{field:9} {method:22} {mean:.3f} of ours, lower on {wins} of {len(ratios)}")
    draw(table).savefig(IMAGE, dpi=150)


if __name__ == "__main__":
    main()
