"""The picture and the table of README: certree and other libraries at their defaults on public tables.

Log loss, error and CPU seconds of single trees and forests fitted to 3000 rows, on the tables for
which `results/boosting.csv` has all boosting methods; up to 4000 other rows are for testing.
scikit-learn's tree is tuned by five folds. Fits that the result file has are not repeated. Draws
`docs/images/evidence.png`.
"""

from typing import Any

import typer
from matplotlib.axes import Axes
from sklearn.ensemble import RandomForestClassifier

from benchmarks.figures import LABELS, PROJECT, evidence_ratios, read
from benchmarks.peers import TunedTree, list_fits
from benchmarks.results import run_missing
from benchmarks.tables import Data, load_tables
from certree import PACBayesTreeClassifier, TreeForestClassifier
from certree.show.picture import Picture
from certree.show.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILLION, use_style

# Marks and colours in the order of labels.csv; marks of certree are filled.
MARKS, COLOURS = "DsoDDDso", [VERMILLION] * 3 + [BLUE, GREEN, ORANGE, SKY, PURPLE]
TICKS = [0.5, 0.8, 1, 1.25, 1.5, 2, 3, 4]


def make_methods(data: Data) -> dict[str, Any]:
    """Return functions that make the models."""
    options = {"categorical_features": data.categorical, "random_state": 0}
    return {
        "tree": lambda: PACBayesTreeClassifier(**options),
        "forest": lambda: TreeForestClassifier(**options),
        "tuned tree": lambda: TunedTree(is_regression=False),
        "random forest": lambda: RandomForestClassifier(random_state=0),
    }


def draw_panel(ax: Axes, field: str) -> None:
    """Draw a line for each table: every method over our boosted trees."""
    ratios = evidence_ratios(field)
    places = range(len(ratios))[::-1]
    marks = [*zip(LABELS["evidence"].items(), MARKS, COLOURS, strict=True)]
    for (method, label), mark, colour in marks[::-1]:
        face = colour if label.startswith("certree") else "none"
        ax.plot(
            ratios[method], places, mark, color=colour, markerfacecolor=face, label=label, ls="none"
        )
    ax.axvline(1, color=GREY, lw=0.8, zorder=0)
    ax.set_xscale("log")
    ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    ax.set_yticks(places, list(ratios.index))
    ax.grid(axis="y", color="#EEEEEE")
    best, words = (ratios.min(axis=1) == 1).sum(), field.replace("_", " ")
    ax.set_title(f"{words}: boosted trees of certree lowest on {best} of {len(ratios)} tables")
    ax.set_xlabel(f"{words} over that of certree's boosted trees (logarithmic)")


@use_style
def draw() -> Picture:
    """Draw both panels, with the legend below."""
    figure = Picture(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    draw_panel(left, "log_loss")
    draw_panel(right, "error")
    marks, labels = left.get_legend_handles_labels()
    figure.legend(marks[::-1], labels[::-1], loc="outside lower center", ncols=4, labelcolor=INK)
    return figure


def main(only: str = "") -> None:
    """Run the missing fits, and draw; only: names of tables, separated by commas."""
    fits = read(
        "boosting", "rows == 3000 & split == 0 & method == 'CatBoost' & log_loss == log_loss"
    )
    tables = load_tables(only or ",".join(fits.table), shipped=True)
    run_missing("evidence", list_fits(tables, lambda _: [3000], lambda _: 1, make_methods))
    draw().savefig(PROJECT / "docs" / "images" / "evidence.png", dpi=150)


if __name__ == "__main__":
    typer.run(main)
