"""Figures of the pages on single trees: defaults, learning curves, and models in leaves."""

from typing import Any

import numpy as np

from benchmarks.defaults import REGRESSION
from benchmarks.learning_curves import NUMBERS, OURS, SMALL, TUNED, cells, chooses, geometric, lost
from benchmarks.records import RESULTS, known
from benchmarks.results_on_pages import decimals, lines_of, mean, short, table

# Of `defaults`: candidates, and what they are called on the page. The first is what others are over.
CLASSIFIERS = {
    "one law, majority, error, cv 2, Gini": "one posterior, majority vote, tuned by error, "
    "two folds, Gini",
    "one law, mean, error": "one posterior, mean vote, tuned by error, entropy, five folds",
    "one law, mean, log loss": "one posterior, mean vote, tuned by log loss, entropy, five folds",
    "mixture": "mixture, mean vote, entropy, smoothing .1, three folds (the defaults)",
    "mixture, cv 5": "the same with five folds",
    "mixture, cv 10": "the same with ten folds",
    "mixture, not smoothed": "the same not smoothed",
    "mixture, smoothing 0.5": "the same with smoothing .5",
    "mixture, smoothing 2": "the same with smoothing 2",
    "mixture, leaves": 'the same with the prior "leaves" alone',
    "mixture, Gini": "the same with Gini",
    "mixture, KD": "the same on the KD tree",
}
REGRESSORS = {
    "one pruning": "`PrunedTreeRegressor()`",
    "one pruning, sibling-merge": 'the same with `rule="sibling-merge"`',
    "mixture": "`PACBayesTreeRegressor()`: mixture, smoothing 2, five folds",
    "mixture, cv 3": "the same with three folds",
    "mixture, cv 10": "the same with ten folds",
    "mixture, not smoothed": "the same not smoothed",
    "mixture, KD": "the same on the KD tree",
    "leaves": 'one posterior, prior "leaves", no penalty',
    "leaves, penalty tuned": 'one posterior, prior "leaves", the penalty tuned',
    "branching": 'one posterior, prior "branching", no penalty',
}


def defaults(kind: str) -> str:
    """Make the table of means over data sets of candidate settings relative to the first one."""
    numbers = kind == "numbers"
    names = REGRESSORS if numbers else CLASSIFIERS
    fields = ["error", "seconds"] if numbers else ["error", "log_loss", "seconds"]
    means = _means_of_defaults(numbers, fields)
    first = means[next(iter(names))]
    lines = []
    for candidate, name in names.items():
        own = means[candidate]
        ratios = np.mean([np.divide(own[t], first[t]) for t in first], axis=0)
        told = [*(decimals(float(one)) for one in ratios[:-1]), f"{ratios[-1]:.1f}"]
        lines.append([name, *(["1"] * len(fields) if own is first else told)])
    losses = ["error"] if numbers else ["test error", "log loss"]
    return table(["greedy tree, 70 % of the rows", *losses, "time"], lines)


def _means_of_defaults(numbers: bool, fields: list[str]) -> dict[str, dict[str, np.ndarray]]:
    """Return means over splits by candidate and data set."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for one in lines_of("defaults.csv"):
        if (one["table"] in REGRESSION) == numbers:
            of = found.setdefault(one["candidate"], {}).setdefault(one["table"], [])
            of.append([float(one[field]) for field in fields])
    return {
        candidate: {name: np.mean(of, axis=0) for name, of in tables.items()}
        for candidate, tables in found.items()
    }


def against_tuned_tree() -> str:
    """Compare one tree of ours with scikit-learn's, on the tables that chose no default."""
    rows = [row for row in known(RESULTS / "learning_curves.csv") if not chooses(row["table"])]
    lines: list[list[str]] = []
    for numbers, fields in ((False, ("error", "log loss")), (True, ("root mean squared error",))):
        part = [row for row in rows if (row["table"] in NUMBERS) == numbers]
        ours, theirs = cells(part, OURS), cells(part, TUNED)
        for place, field in enumerate(fields):
            told = [lost(ours[cell][:, place], theirs[cell][:, place]) for cell in theirs]
            ratio = geometric(*_means(ours, theirs, place))
            times = "" if place else " and ".join(_times(ours, theirs))
            counts = [str(told.count(-1)), str(told.count(1))]
            lines.append([f"{field}, {len(theirs)} cells", decimals(ratio), *counts, times])
    few = f"time up to {SMALL} rows, and above"
    return table(["", "ratio", "better", "worse", few], lines)


def _means(ours: dict[Any, Any], theirs: dict[Any, Any], place: int) -> list[np.ndarray]:
    """Return the mean over splits of one figure, by combination of table and size."""
    return [np.array([of[cell][:, place].mean() for cell in theirs]) for of in (ours, theirs)]


def _times(ours: dict[Any, Any], theirs: dict[Any, Any]) -> list[str]:
    """Return our time divided by the peer's, for the smallest and the largest numbers of rows."""
    a, b = _means(ours, theirs, 2)
    small = np.array([n <= SMALL for _, n in theirs])
    ratios = [mean(list(a[part] / b[part])) for part in (small, ~small)]
    return [f"1/{1 / one:.0f}" for one in ratios]


MODELS = {
    "quadratic leaves": "quadratic leaves",
    "the same by rule (3)": "rule (3)",
    "the same by rule (3) as printed": "as printed",
    "naive Bayes leaves": "naive Bayes leaves",
    "all prunings": "all prunings",
    "one pruning": "one pruning",
    "SVC": "SVC",
}


def model_trees() -> str:
    """Make the table of excess errors of models in leaves by features and rows, and seconds of fits."""
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for one in lines_of("model_trees.csv"):
        if not one["peer"]:
            features, rows, model = one["case"].split(", ", 2)
            place = features.removesuffix(" features"), rows.removesuffix(" rows")
            found.setdefault(place, {})[model] = one
    lines = [
        [", ".join(place), *(_cell(told, model, "figure") for model in MODELS)]
        for place, told in found.items()
    ]
    lines += [
        [f"seconds, {', '.join(place)}", *(_cell(told, m, "certree_seconds") for m in MODELS)]
        for place, told in found.items()
        if place[0] == "3" and int(place[1]) >= 10_000
    ]
    return table(["features, rows", *MODELS.values()], lines)


def _cell(told: dict[str, dict[str, str]], model: str, column: str) -> str:
    """Format an excess error, or seconds; "-" if it was not run."""
    if model not in told:
        return "-"
    value = float(told[model][column])
    return decimals(value, 4) if column == "figure" else short(value)
