"""Insert figures from result files into README and docs: `python -m benchmarks.figures`.

Each figure is one row of `figures.csv`. On its page it is between `<!-- figure: NAME -->` and
`<!-- end -->`. The columns of `figures.csv`:

* page, name: where the figure is;
* file: the result file, without ".csv"; where: a pandas query that selects its lines;
* value: a pandas expression of its columns, or what the function in `format` needs to know;
* head: the first line of a Markdown table;
* by: values with the same entry in this column are averaged first;
* format: the function of this module that writes the figure.

`tests/test_docs.py` fails if a page differs from the results.
"""

import csv
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.results import RESULTS
from benchmarks.tables import REGRESSION, has_chosen_defaults
from certree.paper.table2 import Line, Mean, compute_mean_ratios, find_distant_ratios

Frame = pd.DataFrame
Rows = list[list[str]]


def read_table(name: str) -> list[dict[str, str]]:
    """Read a table of figures or of labels."""
    with (Path(__file__).parent / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PROJECT = Path(__file__).parents[1]
MARKED = re.compile(r"(<!-- figure: ([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
FIGURES = {(row["page"], row["name"]): row for row in read_table("figures")}
# The names on pages of the entries of result files, in the order of the pages.
LABELS: dict[str, dict[str, str]] = defaultdict(dict)
for _row in read_table("labels"):
    LABELS[_row["figure"]][_row["entry"]] = _row["label"]
WORDS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"


def read(file: str, where: str = "") -> Frame:
    """Read a result file, and select the lines of a query."""
    lines = pd.read_csv(RESULTS / f"{file}.csv", engine="pyarrow")  # it rounds correctly
    return lines.query(where, engine="python") if where else lines


# -- numbers and Markdown tables


def short(value: float) -> str:
    """Return two or three digits; numbers below 1 without their zero."""
    if value >= 999.5:  # as 1,000, not 1e+03
        return f"{float(f'{value:.3g}'):,.0f}"
    if value >= 0.995:
        return f"{value:.3g}" if value >= 10 else f"{value:.2f}"
    return f"{value:.2g}".removeprefix("0")


def fixed(value: float, places: int = 3) -> str:
    """Return a number with so many decimals; numbers below 1 without their zero."""
    return format(value, f"{',' if value >= 10_000 else ''}.{places}f").removeprefix("0")


def signed(value: float) -> str:
    """Return a number with its sign and three decimals."""
    return f"{value:+z.3f}".replace("0.", ".", 1)


def geometric(values: pd.Series) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def markdown(head: str, rows: Rows) -> str:
    """Return a Markdown table between empty lines; head: its first line."""
    rule = " | ".join(["---"] * len(head.split(" | ")))
    lines = [head, rule, *(" | ".join(row) for row in rows)]
    return "\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n\n"


def pivot(lines: Frame, index: str, columns: str, value: str, figure: str) -> Rows:
    """Return a table of one line for each entry of `index`, and one column for each label."""
    cells, labels = lines.pivot_table(value, index, columns, sort=False), LABELS[figure]
    return [[str(key), *map(fixed, row[[*labels]])] for key, row in cells.iterrows()]


# -- one number, or a range of numbers


def span(values: pd.Series, form=short) -> str:
    """Return the smallest and the largest value, or one if both are written alike."""
    low, high = form(values.min()), form(values.max())
    return low if low == high else f"{low} to {high}"


RANGES = {
    "span": span,
    "span_1": lambda values: span(values, "{:.1f}".format),
    "span_3": lambda values: span(values, fixed),
    "span_percent": lambda values: span(values, "{:.0f}".format) + " %",
    "mean_percent": lambda values: f"{values.mean():.0f} %",
    "largest": lambda values: short(values.abs().max()),
    "thousands": lambda values: f"{1000 * round(values.mean() / 1000):,}",
}


# -- boosted trees and other methods on public tables


def read_evidence(field: str) -> Frame:
    """Return a field of the fits to 3000 rows, by table and method, for tables with all methods."""
    fits = read("boosting", "rows == 3000 & split == 0 & log_loss == log_loss")
    fits = pd.concat([fits.replace({"method": {"certree": "boosted trees"}}), read("evidence")])
    return fits.pivot_table(field, "table", "method", sort=False)[[*LABELS["evidence"]]].dropna()


def evidence_ratios(field: str) -> Frame:
    """Return the ratios to the field of our boosted trees, by table and method."""
    found = read_evidence(field)
    return found.div(found["boosted trees"], axis=0)


def evidence_results(*_) -> Rows:
    """Write the mean log loss and time relative to boosted trees, and tables won."""
    losses, seconds = evidence_ratios("log_loss"), evidence_ratios("seconds")
    wins = losses.idxmin(axis=1).value_counts()
    return [
        [label, f"{geometric(losses[m]):.2f}", str(wins.get(m, 0)), short(geometric(seconds[m]))]
        for m, label in LABELS["evidence"].items()
    ]


def evidence_summary(*_) -> Rows:
    """Write mean losses, errors and times relative to boosted trees."""
    ratios = {field: evidence_ratios(field) for field in ("log_loss", "error", "seconds")}
    lines = []
    for method, label in LABELS["evidence"].items():
        cells = [label]
        for field in ("log_loss", "error"):
            ratio = ratios[field][method]
            lower = "" if method == "boosted trees" else str((ratio < 1).sum())
            cells += [f"{geometric(ratio):.2f}", lower]
        lines.append([*cells, short(geometric(ratios["seconds"][method]))])
    return lines


def evidence_tables(*_) -> str:
    """Write the number of tables in words."""
    return WORDS.split()[len(read_evidence("error")) - 10]


def evidence_time_over_lightgbm(*_) -> str:
    """Write the mean time of boosted trees over LightGBM's."""
    return short(1 / geometric(evidence_ratios("seconds")["LightGBM"]))


def evidence_behind(_: Frame, field: str) -> Rows:
    """List the tables on which another method is better than boosted trees."""
    ratios = evidence_ratios(field)
    best = ratios.idxmin(axis=1)
    return [
        [table, LABELS["evidence"][method], f"{100 * (1 - ratios.loc[table, method]):.1f} % lower"]
        for table, method in best.items()
        if method != "boosted trees"
    ]


# Losses below LEAST count as LEAST. Log losses of CatBoost below TELLS distinguish no methods.
LEAST, TELLS = 1e-3, 0.01
PEERS = ("LightGBM", "CatBoost")


def select_tables(fits: Frame, is_regression: bool) -> Frame:
    """Return the fits to tables of numbers or of classes that were not used to choose defaults."""
    is_kept = (fits.table.isin(REGRESSION) == is_regression) & ~fits.table.map(has_chosen_defaults)
    return fits[is_kept]


def pivot_fits(fits: Frame, field: str) -> Frame:
    """Return a field by (table, rows, split) and method; small losses count as LEAST."""
    lines = fits.assign(value=fits[field].clip(lower=LEAST))
    return lines.pivot_table("value", ["table", "rows", "split"], "method", sort=False)


def boosting_ranks(fits: Frame, _: str) -> Rows:
    """Write the mean rank of each method, and our loss divided by its loss."""
    fits = fits[~fits.method.isin(["certree fast", "certree best"])]
    names = LABELS["boosting_ranks"]
    columns = []
    for is_regression, field in ((False, "log_loss"), (False, "error"), (True, "error")):
        means = pivot_fits(select_tables(fits, is_regression), field)
        # NumPy's mean, as pandas' rounds differently and so changes the ranks of equal errors.
        means = means.groupby(["table", "rows"]).agg(lambda one: np.mean(one.to_numpy())).dropna()
        columns.append((means.rank(axis=1).mean(), np.log(means).mean()))
    lines = []
    for method in columns[0][0].sort_values(kind="stable").index:
        cells = [names.get(method, method)]
        for rank, log in columns:
            cells += [f"{rank[method]:.2f}", fixed(np.exp(log["certree"] - log[method]))]
        lines.append(cells)
    return lines


def compare_by_table(fits: Frame, field: str, ours: str, peer: str) -> tuple[float, float]:
    """Return the geometric mean over tables of our field over the peer's, and its standard error."""
    pairs = pivot_fits(fits, field)[[ours, peer]].dropna()
    means = pairs.groupby(["table", "rows"]).mean()
    logs = np.log(means[ours] / means[peer]).groupby("table").mean()
    ratio = float(np.exp(logs.mean()))
    return ratio, ratio * logs.sem()


def boosting_qualities(fits: Frame, _: str) -> Rows:
    """Write losses and times of each quality relative to other libraries."""
    names, classes = LABELS["boosting_qualities"], select_tables(fits, False)
    numbers = select_tables(fits, True)
    losses = pivot_fits(classes, "log_loss").groupby(["table", "rows"]).CatBoost.mean().fillna(1)
    cells = classes.set_index(["table", "rows"]).index
    telling = classes[cells.isin(losses[losses > TELLS].index)]
    lines = []
    for rows, field, word in (
        (telling, "log_loss", "log loss"),
        (numbers, "error", "root mean squared error"),
    ):
        for peer in PEERS:
            ratios = [compare_by_table(rows, field, ours, peer) for ours in names]
            texts = [f"{fixed(ratio)}\u00a0±\u00a0{fixed(error)}" for ratio, error in ratios]
            lines.append([f"{word}, over {peer}'s", *texts])
    for rows, kind in ((classes, "classes"), (numbers, "numbers")):
        for is_small, size in ((True, "to 3000 rows"), (False, "more rows")):
            some = rows[(rows.rows <= 3000) == is_small]
            for peer in PEERS:
                ratios = [compare_by_table(some, "seconds", q, peer)[0] for q in names]
                label = f"time of a fit over {peer}'s, {kind}, {size}"
                lines.append([label, *map(short, ratios)])
    return lines


def boosting_worse(fits: Frame, field: str) -> str:
    """Count tables and sizes where CatBoost is better by more than two standard errors."""
    pairs = pivot_fits(select_tables(fits, field == "error"), field)[
        ["certree", "CatBoost"]
    ].dropna()
    cells = (pairs.certree - pairs.CatBoost).groupby(["table", "rows"], sort=False)
    cells = cells.agg(["mean", "sem", "count"]).query("count > 1")
    worse = cells[cells["mean"] > 2 * cells["sem"]]
    names = ", ".join(dict.fromkeys(worse.index.get_level_values("table")))
    return f"{len(worse)} of {len(cells)}" + (f" ({names})" if names else "")


def boosting_times(lines: Frame, _: str) -> Rows:
    """Write losses and seconds of CPU on one thread of certree and LightGBM."""
    lines = lines.set_index("case")
    rows = []
    for table, label in LABELS["boosting_times"].items():
        cells = {
            (what, quality): lines.loc[f'{table}, {what}, "{quality}", one thread, CPU']
            for what in ("fit", "predict")
            for quality in ("default", "fast")
        }
        losses = {}
        for quality in ("default", "fast"):
            found = map(float, cells["fit", quality].unit.partition("loss ")[2].split(" to "))
            losses[quality] = [fixed(loss, 0 if loss > 100 else 4) for loss in found]
        times = [
            f"{short(one.certree_seconds)} / {short(one.peer_seconds)} = {short(one.ratio)}"
            for one in (cells["fit", "default"], cells["predict", "default"])
        ]
        fast = [short(cells[what, "fast"].ratio) for what in ("fit", "predict")]
        rows.append([label, ", ".join(losses["default"]), *times, losses["fast"][0], *fast])
    return rows


# -- single trees


def defaults(lines: Frame, _: str) -> Rows:
    """Write means of candidate settings relative to the first one."""
    means = lines.groupby(["candidate", "table"])[["error", "log_loss", "seconds"]].mean()
    names = LABELS["defaults"]
    first, *_ = names
    rows = []
    for candidate, label in names.items():
        error, loss, seconds = (means.loc[candidate] / means.loc[first]).mean()
        cells = [fixed(error), fixed(loss), f"{seconds:.1f}"]
        rows.append([label, *(["1"] * 3 if candidate == first else cells)])
    return rows


def learning_curves(fits: Frame, _: str) -> Rows:
    """Compare one tree of certree with scikit-learn's tuned tree, from 100 to 5000 rows."""
    rows = []
    for is_regression, names in (
        (False, {"error": "error", "log_loss": "log loss"}),
        (True, {"error": "root mean squared error"}),
    ):
        some = select_tables(fits, is_regression)
        for field, name in names.items():
            pairs = some.pivot_table([field, "seconds"], ["table", "rows", "split"], "method")
            ours, peer = (
                pairs[[field, "seconds"]].xs(m, axis=1, level=1) for m in ("certree", "tuned tree")
            )
            cells = (ours[field] - peer[field]).groupby(["table", "rows"]).agg(["mean", "sem"])
            is_clear = cells["mean"].abs() > 2 * cells["sem"]
            counts = [str((is_clear & (sign * cells["mean"] > 0)).sum()) for sign in (-1, 1)]
            a, b = (one.groupby(["table", "rows"]).mean() for one in (ours, peer))
            ratio = geometric((a[field] + LEAST) / (b[field] + LEAST))
            time = b.seconds / a.seconds
            is_small = time.index.get_level_values("rows") <= 1000
            times = [f"1/{geometric(time[rows]):.0f}" for rows in (is_small, ~is_small)]
            last = "" if field == "log_loss" else " and ".join(times)
            rows.append([f"{name}, {len(cells)} cells", fixed(ratio), *counts, last])
    return rows


def single_trees(lines: Frame, _: str) -> Rows:
    """Compare one tree of certree with a tuned tree: errors, log losses, times of a fit."""
    rows = []
    lines = lines[lines.peer == "GridSearchCV"]
    for table, some in lines.groupby(lines.case.str.partition(",")[0], sort=False):
        fit, *losses = some.itertuples()
        cells = [f"{one.figure:.3f} / {one.target:.3f}" for one in losses]
        rows.append([table, *cells, short(fit.ratio)])
    return rows


def rules(lines: Frame, _: str) -> Rows:
    """Write the mean error of each pruning rule, relative to cost-complexity."""
    errors = lines.pivot_table("error", "table", "rule")
    leaves = lines.groupby("rule").leaves.mean()
    rows = []
    for rule, mean in errors.mean().sort_values().items():
        ratio = errors[rule] / errors["cost-complexity"]
        cells = [f"{fixed(ratio.mean())} ± {fixed(ratio.sem())}", str((ratio < 1).sum())]
        ratio_text, lower = ("1", "") if rule == "cost-complexity" else cells
        label = rule.replace("constant", "alpha")
        rows.append([label, fixed(mean, 4), ratio_text, f"{leaves[rule]:.0f}", lower])
    return rows


def model_trees(lines: Frame, _: str) -> Rows:
    """Write excess errors of models in leaves by features and rows, and seconds of fits."""
    names, lines = LABELS["model_trees"], lines[lines.peer.isna()]
    parts = lines.case.str.extract(r"(?P<p>\d+) features, (?P<n>\d+) rows, (?P<model>.*)")
    lines = lines.assign(place=parts.p + ", " + parts.n, model=parts.model)
    rows = []
    for prefix, value, form in (
        ("", "figure", lambda x: fixed(x, 4)),
        ("seconds, ", "certree_seconds", short),
    ):
        cells = lines.pivot_table(value, "place", "model", sort=False)
        for place, row in cells.iterrows():
            if not prefix or (place.startswith("3, ") and int(place.split(", ")[1]) >= 10_000):
                texts = ["-" if np.isnan(row[m]) else form(row[m]) for m in names]
                rows.append([prefix + place, *texts])
    return rows


def naive_bayes(lines: Frame, _: str) -> Rows:
    """Write log losses of naive Bayes."""
    pattern = r"(?P<table>\w+), (?P<fit>.+): log loss (?P<ours>[\d.]+) / (?P<theirs>[\d.]+)"
    found = lines.case.str.extract(pattern).assign(peer=lines.peer)
    rows = []
    for table, some in found.groupby("table", sort=False):
        cells = some.set_index(["fit", "peer"])
        keys = [("defaults", "GaussianNB", "ours"), ("power 1", "GaussianNB", "ours")]
        keys += [("defaults", peer, "theirs") for peer in ("GaussianNB", "CategoricalNB")]
        rows.append([table, *(fixed(float(cells.loc[(f, p), who])) for f, p, who in keys)])
    return rows


# -- forests, several outputs, rankings, repeated rows


def compare_forests(fits: Frame, method: str, field: str) -> float:
    """Return the mean field over tables relative to scikit-learn's."""
    means = fits.pivot_table(field, "table", "method")
    least = LEAST if field in ("loss", "error") else 1e-9
    peer = means[method.split(",")[0] + ", scikit-learn"].clip(lower=least)
    return geometric(means[method].clip(lower=least) / peer)


def forest_losses(fits: Frame, _: str) -> Rows:
    """Write losses and errors of forests relative to scikit-learn's."""
    numbers = fits.table.isin(REGRESSION)
    return [
        [
            label,
            fixed(compare_forests(fits[~numbers], method, "loss")),
            fixed(compare_forests(fits[~numbers], method, "error")),
            fixed(compare_forests(fits[numbers], method, "error")),
        ]
        for method, label in LABELS["forest_losses"].items()
    ]


def forest_time(fits: Frame, field: str) -> str:
    """Write the time of a fit or a prediction relative to scikit-learn's."""
    return short(compare_forests(fits, "forest, certree", field))


def ranking(fits: Frame, _: str) -> Rows:
    """Write NDCG of rankers, our difference from others, and times."""
    others = LABELS["ranking"]
    truth = fits.pivot_table("truth", ["world", "seed"], "method")
    rows = []
    for world, some in truth.groupby("world"):
        cells = [fixed(some.certree.mean())]
        for method in others:
            more = some.certree - some[method]
            text = f"{fixed(some[method].mean())} ({more.mean():+.3f} ± {fixed(more.sem())})"
            cells.append(text.replace("0.", "."))
        rows.append([world, *cells])
    seconds = fits.groupby("method").seconds.agg(geometric)
    ratios = [short(seconds["certree"] / seconds[method]) for method in others]
    rows.append(["seconds of CPU, ours over theirs", "", *ratios])
    return rows


def repeated_rows(lines: Frame, _: str) -> Rows:
    """Write the fraction of repeated rows at which fits lose 3 %, and the loss at a quarter."""
    rows = []
    for method, some in lines.groupby("method", sort=False):
        cells = [
            ["-" if np.isnan(one.passes) else f"{one.passes:.2f}", fixed(one.loss / one.grouped)]
            for one in some.itertuples()
        ]
        rows.append([method, *cells[0], *cells[1]])
    return rows


def time_windows(lines: Frame, _: str) -> Rows:
    """Write losses of fits by time over those of default fits, and false certificates, by table."""
    rows = []
    for table, some in lines.groupby("table", sort=False):
        ratios = [some[f"{name}_time"] / some[name] for name in ("boosted", "forest")]
        losses = [f"{fixed(geometric(one), 2)} ({fixed(one.max(), 2)})" for one in ratios]
        counts = []
        for suffix in ("", "_time"):
            fits = some.dropna(subset=[f"false{suffix}"])
            is_false = fits[f"false{suffix}"] == 1
            n_unsaid = int((is_false & (fits[f"said{suffix}"] == 0)).sum())
            counts.append(f"{int(is_false.sum())} of {len(fits)}, {n_unsaid}")
        rows.append([str(table), *losses, *counts])
    return rows


# -- certificates

NAMED = ["sklearn_breast_cancer", "spam", "adult", "bank_marketing", "credit_default", "letter"]
SIZES = (300, 1000, 5000)


def mean_bounds(draws: Frame) -> Frame:
    """Return means by table and size, with the bound of the best hold-out."""
    means = draws.groupby(["table", "size"]).mean()
    return means.assign(**{"hold-out": means.filter(like="hold-out").min(axis=1)})


def certified_trees(draws: Frame, _: str) -> Rows:
    """Write bound, test error and bound minus that of a hold-out, by table and size."""
    means = mean_bounds(draws)

    def cell(table: str, size: int) -> str:
        if (table, size) not in means.index:
            return ""
        one = means.loc[table, size]
        difference = signed(one.certree - one["hold-out"])
        return f"{fixed(one.certree)} / {fixed(one.error)} / {difference}"

    tables = draws.table.unique()
    order = sorted(tables, key=lambda t: (has_chosen_defaults(t), t.startswith("sklearn"), t))
    return [
        [
            t.removeprefix("sklearn_") + (" *" if has_chosen_defaults(t) else ""),
            *(cell(t, size) for size in SIZES),
        ]
        for t in order
    ]


def means_of_named_tables(draws: Frame, value: str) -> str:
    """Write the mean over the tables named beforehand, for each size."""
    means = mean_bounds(draws).pivot_table(value, "table", "size").reindex(NAMED).mean()
    *first, last = (fixed(means[size]) for size in SIZES)
    return f"{', '.join(first)} and {last}"


def certified_boosting(lines: Frame, _: str) -> Rows:
    """Write bounds and test errors of certified boosted trees."""
    rows = []
    for size, some in lines.groupby("rows"):
        lost = some["test error"] - some["all rows"]
        rows.append(
            [
                str(size),
                str(len(some)),
                short(geometric(some.bound) / geometric(some.tree)),
                signed((some.bound - some["hold-out"]).mean()),
                f"{fixed(lost.mean())} / {fixed(lost.max())}",
            ]
        )
    return rows


def certified_forests(lines: Frame, _: str) -> Rows:
    """Write bounds and errors of certified forests, of a hold-out and of a tree."""
    return pivot(lines, "case", "unit", "figure", "certified_forests")


def forest_bound_over(lines: Frame, value: str) -> str:
    """Write the range of a forest's bound over another figure."""
    cells = lines.pivot_table("figure", "case", "unit")
    return span(cells.certificate / cells[value])


def small_trees(lines: Frame, _: str) -> Rows:
    """Write bounds and test errors of small certified trees, and of the vote."""
    names = LABELS["small_trees"]
    rows = []
    for _, one in lines[lines.table.isin(names)].iterrows():
        cells = [f"{fixed(one[f'bound_{k}'])} / {fixed(one[f'error_{k}'])}" for k in (8, 16, "all")]
        rows.append([names[one.table], *cells, f"{one.leaves_all:.0f}"])
    return rows


def searches(lines: Frame, _: str) -> Rows:
    """Write how many certificates are false after a search."""
    return [
        [one.case + ("" if one.draws == 100 else f" ({one.draws} draws)"), fixed(one.broken, 2)]
        for one in lines.itertuples()
    ]


def duplicates(lines: Frame, _: str) -> Rows:
    """Write how many certificates are false if rows were copied."""
    cells = lines.pivot_table("false", "case", "duplicates", dropna=False, sort=False)
    words = ["auto", "genuine", "copies"]
    return [
        [case, *("refused" if np.isnan(row[w]) else fixed(row[w], 2) for w in words)]
        for case, row in cells.iterrows()
    ]


def thresholds(lines: Frame, _: str) -> Rows:
    """Write certified costs at thresholds, and the true costs."""
    parts = lines.case.str.extract("(?P<table>[^,]+), (?P<what>.*)")
    lines = lines.assign(**parts).sort_values("table", kind="stable")
    return pivot(lines, "table", "what", "figure", "thresholds")


def read_intervals(lines: Frame) -> Frame:
    """Return widths of intervals, with table, method, and the fraction of short fits."""
    lines = lines[lines.unit.str.startswith("wide")]
    parts = lines.case.str.extract("(?P<table>[^,]+), (?P<method>.*)")
    return lines.assign(**parts, short=lines.unit.str.extract(r"([\d.]+) short")[0].astype(float))


def intervals(lines: Frame, _: str) -> Rows:
    """Write mean widths of prediction intervals, and how many fits cover too little."""
    methods = LABELS["intervals"]
    rows = []
    for table, some in read_intervals(lines).groupby("table", sort=False):
        cells = [table]
        for method in methods:
            one = some[some.method == method].iloc[0]
            places = 0 if one.figure >= 1000 else 1 if one.figure >= 100 else 2
            cells += [fixed(one.figure, places), fixed(one.short, 2)]
        rows.append(cells)
    [part for label in methods.values() for part in (label, "short")]
    return rows


def intervals_wider(lines: Frame, _: str) -> str:
    """Write by how many per cent our intervals are wider than MAPIE's."""
    widths = read_intervals(lines).pivot_table("figure", "table", "method")
    return RANGES["span_percent"](100 * (widths["ours, one"] / widths["MAPIE, absolute"] - 1))


# -- times


def group_races() -> list[tuple[str, str, pd.Series]]:
    """Return the ratios of times that were measured in turn, by race and peer."""
    return [
        (what, peer, some.ratio)
        for file, what in LABELS["races"].items()
        for peer, some in read(file, "ratio == ratio").groupby("peer", sort=False)
    ]


def speed(*_) -> Rows:
    """Write the smallest, median and largest ratio of times of each race and peer."""
    return [
        [what, peer, str(len(ratio)), *map(short, (ratio.min(), ratio.median(), ratio.max()))]
        for what, peer, ratio in group_races()
    ]


def slower(*_) -> Rows:
    """Write the races in which a peer took less time."""
    return [
        [what, peer, f"{(ratio > 1).sum()} of {len(ratio)}", short(ratio.max())]
        for what, peer, ratio in group_races()
        if ratio.max() > 1
    ]


# -- large data

CASE = (
    r"(?P<what>.*): (?P<n>[\d.e+]+) x (?P<p>\d+), (?P<rounds>\d+) rounds of 31 leaves"
    r"(?:, rate (?P<rate>[\d.]+))?"
)


def read_scale(lines: Frame) -> Frame:
    """Return the lines with size (n, p), rounds and learning rate."""
    parts = lines.case.str.fullmatch(CASE)
    found = lines[parts].case.str.extract(CASE).astype({"n": float, "p": int, "rounds": int})
    return lines.join(found, how="inner")


def scale_costs(lines: Frame, _: str) -> Rows:
    """Write CPU seconds, memory and disk space of fits out of core and in memory."""
    lines = read_scale(lines)

    def write(value: float, form: str = ",.0f") -> Rows:
        return "" if np.isnan(value) else format(value, form)

    rows = []
    for (n, p, rounds), of_size in lines[lines.rate.isna()].groupby(["n", "p", "rounds"]):
        some = of_size.set_index("what").reindex([*of_size.what, "memory, peak"])
        some = some[~some.index.duplicated()]
        if "files, CPU" not in some.index:
            continue
        cpu, peak = some.loc["files, CPU"], some.figure
        cells = [cpu.peer_seconds, peak["memory, peak"], cpu.certree_seconds]
        cells += [some.certree_seconds["files, wall"], peak["files, peak"]]
        ratio = "" if np.isnan(cpu.ratio) else short(cpu.ratio)
        sizes = [f"{n:,.0f} x {p}", str(rounds)]
        rows.append([*sizes, *map(write, cells), write(peak["scratch"], ".2f"), ratio])
    return rows


def scale_cluster(lines: Frame, _: str) -> Rows:
    """Write seconds and log losses of fits of certree and LightGBM on one cluster."""
    rows = []
    by_size = read_scale(lines).set_index("what").groupby(["rate", "n", "p", "rounds"])
    for (rate, n, p, rounds), some in by_size:
        one = some.loc["Dask"]
        losses = [some.figure[f"Dask, {who}"] for who in ("certree", "lightgbm")]
        times = map(short, (float(rate), one.certree_seconds, one.peer_seconds, one.ratio))
        texts = ", ".join(f"{loss:.4f}".removeprefix("0") for loss in losses)
        rows.append([f"{n:,.0f} x {p}", str(rounds), *times, texts])
    return rows


def largest_fits(lines: Frame, p: str) -> Frame:
    """Return the out-of-core fits of 100 rounds with p features, by rows; the largest is last."""
    lines = read_scale(lines)
    some = lines[lines.rate.isna() & (lines.rounds == 100) & (lines.p == int(p))]
    some = some.assign(value=some.figure.where(some.unit != "ratio", some.certree_seconds))
    return some.pivot_table("value", "n", "what").dropna(subset=["scratch"])


def scale_projection(lines: Frame, value: str) -> str:
    """Estimate the cost of a fit of n rows and p features from the largest measured ones."""
    what, n, p = value.split("; ")
    fits = largest_fits(lines, p)
    last, growth = fits.iloc[-1], float(n) / fits.index[-1]
    peaks = fits["files, peak"].iloc[-2:]
    slope = (peaks.iloc[1] - peaks.iloc[0]) / (peaks.index[1] - peaks.index[0])
    projections = {
        "minutes": last["files, wall"] * growth / 60,
        "scratch": last["scratch"] * growth,
        "memory": (peaks.iloc[1] + slope * (float(n) - peaks.index[1])) / 1000,
    }
    return short(projections[what])


# -- the paper's experiment


def table2_lines(results: Frame) -> list[Line]:
    """Return the lines of Table 2 from the recorded experiment."""
    found = []
    for (grower, dataset), some in results.groupby(["grower", "dataset"], sort=False):
        by_method = list(some.itertuples())
        first = by_method[0]
        found.append(
            Line(
                dataset=dataset,
                grower=grower,
                errors={one.method: Mean(one.error, one.error_se) for one in by_method},
                ratios={one.method: Mean(one.ratio, one.ratio_se) for one in by_method},
                outside=None if np.isnan(first.outside) else first.outside,
                n_nodes=first.nodes,
            )
        )
    return found


def table2_ratios(results: Frame, _: str) -> Rows:
    """Write mean ratios over the data sets, by grower."""
    names = ["SN-pruning", "PAC-Bayes joint", "PAC-Bayes error-first"]
    names += ["HS-vote", "HS-vote label", "unpruned"]
    found = compute_mean_ratios(table2_lines(results))
    return [[grower, *(fixed(means[name]) for name in names)] for grower, means in found.items()]


def table2_distant_ratios(results: Frame, _: str) -> str:
    """Write how many of the comparable ratios are far from the paper's."""
    lines = table2_lines(results)
    n_compared = sum(line.paper(name) is not None for line in lines for name in line.ratios)
    return f"{len(find_distant_ratios(lines))} of {n_compared}"


# -- pages


def compute_figure(page: str, name: str) -> str:
    """Return the text of a figure, which `figures.csv` describes."""
    figure = FIGURES[page, name]
    lines = Frame() if figure["file"] == "*" else read(figure["file"], figure["where"])
    if (form := figure["format"]) not in RANGES:
        found = globals()[form](lines, figure["value"])
        return found if isinstance(found, str) else markdown(figure["head"], found)
    values = lines.eval(figure["value"], engine="python")
    return RANGES[form](values.groupby(lines[figure["by"]]).mean() if figure["by"] else values)


def insert_figures(page: str, text: str) -> str:
    """Return the text of a page with all figures computed from the results."""
    return MARKED.sub(lambda m: m[1] + compute_figure(page, m[2]) + m[4], text)


def find_pages() -> dict[str, Path]:
    """Return the pages that may have figures, by their paths in the project."""
    paths = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
    return {path.relative_to(PROJECT).as_posix(): path for path in paths}


def main() -> None:
    """Write the figures of all pages, and print the names of pages that changed."""
    for page, path in find_pages().items():
        text = path.read_text(encoding="utf-8")
        if (new := insert_figures(page, text)) != text:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{page} has new figures\n")


if __name__ == "__main__":
    main()
