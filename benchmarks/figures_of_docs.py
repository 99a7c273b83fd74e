"""Figures of the pages of docs: each function makes a table or number from files of results/."""

import re
from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks import boosting, forest
from benchmarks.learning_curves import NUMBERS, chooses
from benchmarks.records import RESULTS, known
from benchmarks.results_on_pages import (
    decimals,
    lines_of,
    lines_where,
    mean,
    short,
    table,
    the_line,
)

# Of `times`: the name on a page, and how many rows are fitted and predicted.
TIMED = {
    "adult": ("adult", "24,000, 24,842"),
    "breast cancer": ("breast cancer", "400, 169"),
    "california_housing": ("California housing, numbers", "14,000, 6640"),
}


def boosters() -> str:
    """Make the table of ranks and ratios of boosted trees, on the tables that chose no default."""
    rows = [row for row in known(RESULTS / "boosting.csv") if not chooses(row["table"])]
    classes = [row for row in rows if row["table"] not in NUMBERS]
    numbers = [row for row in rows if row["table"] in NUMBERS]
    loss, error = (boosting.standings(classes, field) for field in ("log_loss", "error"))
    off = boosting.standings(numbers, "error")
    names = {
        boosting.OURS: "`BoostedTreesClassifier`, `BoostedTreesRegressor`",
        "early stopping": "LightGBM, stopped early",
    }
    lines = [
        [
            names.get(name, name),
            f"{rank:.2f}",
            decimals(ratio),
            f"{error[name][0]:.2f}",
            decimals(error[name][1]),
            f"{off[name][0]:.2f}",
            decimals(off[name][1]),
        ]
        for name, (rank, ratio) in loss.items()
    ]
    head = ["", "rank by log loss", "ratio", "by error", "ratio", "by error of numbers", "ratio"]
    return table(head, lines)


def copies() -> str:
    """Return the fraction of repeated rows at which fits lose 3 %, and their loss at a quarter."""
    lines: dict[str, list[str]] = {}
    for one in lines_where("repeated_rows.csv", "share=0.25"):
        ratio = float(one["loss"]) / float(one["grouped"])
        lines.setdefault(one["method"], []).extend([one["passes"] or "-", decimals(ratio)])
    head = ["", "2 copies: 3 % at", "ratio at .25", "8 copies: 3 % at", "ratio at .25"]
    return table(head, [[name, *told] for name, told in lines.items()])


def times() -> str:
    """Make the table of losses and seconds of CPU on one thread, of ours and of LightGBM."""
    lines = []
    for case, (name, rows) in TIMED.items():
        told = {
            (what, quality): the_line(
                "times.csv", {"case": f'{case}, {what}, "{quality}", one thread, CPU'}
            )
            for what in ("fit", "predict")
            for quality in ("default", "fast")
        }
        seconds = [_seconds(told[what, "default"]) for what in ("fit", "predict")]
        fast = [short(float(told[what, "fast"]["ratio"])) for what in ("fit", "predict")]
        ours, theirs = _losses(told["fit", "default"])
        lines.append(
            [name, rows, f"{ours}, {theirs}", *seconds, _losses(told["fit", "fast"])[0], *fast]
        )
    head = [
        "", "rows fitted, predicted", "loss, ours and theirs", "fit", "predict",
        '"fast": loss', "fit", "predict",
    ]  # fmt: skip
    return table(head, lines)


def _seconds(line: dict[str, str]) -> str:
    """Return both times and their ratio."""
    ours, theirs, ratio = (float(line[one]) for one in ("certree_seconds", "peer_seconds", "ratio"))
    return f"{short(ours)} / {short(theirs)} = {short(ratio)}"


def _losses(line: dict[str, str]) -> list[str]:
    """Return our loss and the peer's, from "ratio, loss 0.2764 to 0.2785"."""
    found = [float(one) for one in line["unit"].partition("loss ")[2].split(" to ")]
    return [decimals(one, 0) if one > 100 else decimals(one, 4) for one in found]


def held(method: str, kind: str) -> str:
    """Return the smallest and largest percentage of true values within standard errors."""
    least, *_, most = sorted(
        100 * float(one["figure"])
        for one in lines_of("uncertainty.csv")
        if one["case"].endswith(f" rows, {method}") and _kind(one["case"]) == kind
    )
    return f"{least:.0f} to {most:.0f} %"


def _kind(case: str) -> str:
    """Return the kind of model that standard errors of a case belong to."""
    if "two halves" in case:
        return "halves"
    return "classes" if "classes" in case else "numbers"


def outputs(case: str, column: str) -> str:
    """Return figures of one fit to several outputs relative to others, such as of "forest, apart"."""
    what, _, kind = case.partition(", ")
    values = [
        float(one[column])
        for one in lines_of("outputs.csv")
        if one["outputs"] == what and kind in ("", one["table"])
    ]
    if column == "error":
        least, most = sorted(abs(100 * (one - 1)) for one in (min(values), max(values)))
        low, high = f"{least:.0f}", f"{most:.0f}"
    else:
        low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    told = low if low == high else f"{low} to {high}"
    return f"{told} %" if column == "error" else told


def predicted(peer: str, case: str) -> str:
    """Return our time of a prediction by 100 trees divided by a peer's, smallest to largest."""
    values = [
        float(one["ratio"])
        for one in lines_of("predict_boosted.csv")
        if one["peer"] == peer and case in one["case"]
    ]
    low, high = short(min(values)), short(max(values))
    return low if low == high else f"{low} to {high}"


FORESTS = {
    "forest, certree": "forest",
    "forest, codes": "the same, codes of categories as numbers",
    "forest, plain": "the same, plain leaves",
    "extra, plain": "extra trees, no bootstrap as scikit-learn's",
    "extra, drawn": "extra trees on drawn rows",
}


def forests() -> str:
    """Return losses and errors of forests divided by those of scikit-learn."""
    rows = known(RESULTS / "forest.csv")
    classes = [row for row in rows if row["table"] not in NUMBERS]
    numbers = [row for row in rows if row["table"] in NUMBERS]
    lines = [
        [
            name,
            decimals(forest.ratio(classes, method, "loss")),
            decimals(forest.ratio(classes, method, "error")),
            decimals(forest.ratio(numbers, method, "error")),
        ]
        for method, name in FORESTS.items()
    ]
    return table(["", "log loss", "error", "numbers"], lines)


def forest_times(method: str, field: str) -> str:
    """Return seconds of a fit or prediction divided by scikit-learn's, geometric mean over tables."""
    return short(forest.ratio(known(RESULTS / "forest.csv"), method, field))


def rankers() -> str:
    """Return NDCG of rankers by the truth, our difference to others, and our time divided by theirs."""
    found: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for one in lines_of("ranking.csv"):
        found[one["world"], one["method"]].append(one)
    methods = ["certree", "LightGBM", "CatBoost", "no vote"]
    worlds = sorted({world for world, _ in found})
    truth = {key: np.array([float(one["truth"]) for one in of]) for key, of in found.items()}
    lines = []
    for world in worlds:
        told = [decimals(truth[world, "certree"].mean())]
        for method in methods[1:]:
            more = truth[world, "certree"] - truth[world, method]
            error = more.std(ddof=1) / np.sqrt(len(more))
            told.append(
                f"{decimals(truth[world, method].mean())} "
                f"({more.mean():+.3f} ± {decimals(error)})".replace("0.", ".")
            )
        lines.append([world, *told])
    seconds = {
        method: mean([float(o["seconds"]) for world in worlds for o in found[world, method]])
        for method in methods
    }
    ratios = [short(seconds["certree"] / seconds[method]) for method in methods[1:]]
    lines.append(["seconds of CPU, ours over theirs", "", *ratios])
    return table(
        ["", "`BoostedTreesRanker`", "LightGBM", "CatBoost", 'ours, `prunings="none"`'], lines
    )


CLASSES = {"wine": "wine, 7 classes", "letter": "letter, 26 classes"}


def small_trees(*names: str) -> str:
    """Return bounds divided by test errors of small certified trees, and of the vote."""
    lines = []
    for one in lines_of("small_tree.csv"):
        if one["table"] in names:
            told = [
                f"{decimals(float(one[f'bound_{size}']))} / {decimals(float(one[f'error_{size}']))}"
                for size in ("8", "16", "all")
            ]
            name = CLASSES.get(one["table"], one["table"])
            lines.append([name, *told, f"{float(one['leaves_all']):.0f}"])
    return table(["table", "at most 8 leaves", "at most 16", "the vote", "its leaves"], lines)


def certified_boosters() -> str:
    """Return bounds and test errors of certified boosted trees, on tables that chose no default."""
    found: dict[int, list[dict[str, float]]] = defaultdict(list)
    for one in lines_of("certified_boosting.csv"):
        if one["kind"] == "odd":
            found[int(one["rows"])].append(
                {key: float(value) for key, value in one.items() if key not in ("table", "kind")}
            )
    lines = []
    for rows, cells in found.items():
        bound, tree = (mean([c[one] for c in cells]) for one in ("bound", "tree"))
        more = float(np.mean([c["bound"] - c["hold-out"] for c in cells]))
        lost = [c["test error"] - c["all rows"] for c in cells]
        lines.append([
            str(rows),
            str(len(cells)),
            short(bound / tree),
            f"{more:+.3f}".replace("0.", "."),
            f"{decimals(float(np.mean(lost)))} / {decimals(max(lost))}",
        ])  # fmt: skip
    head = [
        "rows", "tables", "its bound over that of `CertifiedTreeClassifier`",
        "its bound less that of a hold-out of one fifth",
        "its test error less that of all rows, mean / worst",
    ]  # fmt: skip
    return table(head, lines)


def bands(what: str) -> str:
    """Return mean widths of intervals or sizes of sets, and how many fits cover too little."""
    kinds = {
        "numbers": {"ours, scaled": 'ours, "scaled"', "ours, one": 'ours, "one"',
                    "MAPIE, absolute": "MAPIE, absolute"},
        "sets": {"ours": "ours", "MAPIE, lac": "MAPIE, LAC", "MAPIE, aps": "MAPIE, APS"},
    }[what]  # fmt: skip
    unit, head = {
        "numbers": ("wide", "table, mean width of prediction intervals"),
        "sets": ("classes", "table, mean classes in a set"),
    }[what]
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for one in lines_of("intervals.csv"):
        if one["unit"].startswith(unit):
            name, _, kind = one["case"].partition(", ")
            found[name][kind] = one
    lines = [
        [name, *(part for kind in kinds for part in _held_short(told.get(kind)))]
        for name, told in found.items()
    ]
    return table([head, *(part for kind in kinds.values() for part in (kind, "short"))], lines)


def _held_short(line: dict[str, str] | None) -> list[str]:
    """Return a width or size, and the fraction of fits that cover too little."""
    if line is None:
        return ["", ""]
    short_of = re.search(r"([\d.]+) short", line["unit"])
    figure = float(line["figure"])
    places = 0 if figure >= 1000 else 1 if figure >= 100 else 2
    return [decimals(figure, places), decimals(float(short_of[1]), 2) if short_of else ""]


THRESHOLDS = {
    "certified": "certified, cost named before",
    "by bands": "by the curves alone",
    "Bonferroni over 50": "Bonferroni",
    "true, certified": "true, at the certified threshold",
    "true, lowest": "true, lowest",
    "chosen, then one limit (no promise)": "one threshold, not chosen",
}


def thresholds() -> str:
    """Return certified costs at thresholds, and the true costs."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for one in lines_of("thresholds.csv"):
        name, _, what = one["case"].partition(", ")
        found[name][what] = float(one["figure"])
    lines = [
        [name, *(decimals(told[what]) for what in THRESHOLDS)]
        for name, told in sorted(found.items())
    ]
    return table(["table", *THRESHOLDS.values()], lines)


BAYES: dict[str, Any] = {
    "default": ("defaults", "GaussianNB", 0),
    "`power=1`": ("power 1", "GaussianNB", 0),
    "GaussianNB": ("defaults", "GaussianNB", 1),
    "CategoricalNB": ("defaults", "CategoricalNB", 1),
}


def naive_bayes() -> str:
    """Make the table of log losses of naive Bayes."""
    found: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(dict)
    for one in lines_of("naive_bayes.csv"):
        told = re.match(r"(\w+), (.+): log loss ([\d.]+) / ([\d.]+)", one["case"])
        if told:
            found[told[1]][told[2], one["peer"]] = [told[3], told[4]]
    lines = [
        [name, *(decimals(float(told[fit, peer][at])) for fit, peer, at in BAYES.values())]
        for name, told in found.items()
    ]
    return table(["table", *BAYES], lines)


def rules() -> str:
    """Return the mean error of each pruning rule over tables, relative to cost-complexity."""
    errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    leaves: dict[str, list[float]] = defaultdict(list)
    for one in lines_of("rules.csv"):
        errors[one["rule"]][one["table"]].append(float(one["error"]))
        leaves[one["rule"]].append(float(one["leaves"]))
    means = {rule: {t: np.mean(of) for t, of in told.items()} for rule, told in errors.items()}
    first = "cost-complexity"
    lines = []
    for rule, told in means.items():
        ratios = [told[name] / means[first][name] for name in told]
        error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
        fewer = sum(one < 1 for one in ratios)
        lines.append([
            rule.replace("constant", "alpha"),
            decimals(float(np.mean([*told.values()])), 4),
            "1" if rule == first else f"{decimals(float(np.mean(ratios)))} ± {decimals(error)}",
            f"{np.mean(leaves[rule]):.0f}",
            "" if rule == first else str(fewer),
        ])  # fmt: skip
    head = ["rule", "test error", "ratio", "leaves", "fewer errors on"]
    return table(head, sorted(lines, key=lambda line: float(line[1])))
