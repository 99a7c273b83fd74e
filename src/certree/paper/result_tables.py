"""Results of the experiments, formatted as tables for a terminal."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable

from certree.paper.figure2 import Curve
from certree.paper.protocol import PRUNING
from certree.paper.rates import Rate
from certree.paper.table1 import DatasetSize
from certree.paper.table1 import write_notes as write_notes_of_table1
from certree.paper.table2 import (
    METHODS,
    REASONS,
    DistantRatio,
    Line,
    Mean,
    compute_mean_ratios,
    find_distant_ratios,
    write_notes,
)


def format_table1(sizes: Sequence[DatasetSize]) -> Iterator[RichTable | str]:
    """Yield Table 1 (sizes of data sets) for a terminal, then each note on it as a string.

    There is a row for each data set, and a column for each of the numbers of features, classes,
    training rows and test rows. The numbers that Nguyen and Kpotufe (2018) print are in brackets if
    they differ from those of `sizes`.
    """
    grid = _make_grid("Data sets, as they are here (and in the paper)", "data set")
    for name in ("features", "classes", "training rows", "test rows"):
        grid.add_column(name, justify="right")
    for size in sizes:
        paper = size.paper or size.sizes
        numbers = [
            f"{ours} ({printed})" if ours != printed else str(ours)
            for ours, printed in zip(size.sizes, paper, strict=True)
        ]
        grid.add_row(size.dataset, *numbers, str(size.n_test))
    yield grid
    yield from write_notes_of_table1(sizes)


def format_table2(table: Sequence[Line], repeats: int) -> Iterator[RichTable | str]:
    """Yield Table 2 (errors and ratios of all methods) for a terminal.

    A method prunes a decision tree, or lets its prunings (the tree with some nodes turned into
    leaves) vote. A ratio is its test error divided by that of cost-complexity pruning; the paper is
    Nguyen and Kpotufe (2018). table: the lines; repeats: number of repetitions, for the title.
    Yield one table for each grower (algorithm that grows the tree), with a row for each data set
    and a column for each method. Then yield each note as a string. Then, if any ratios differ from
    the paper's by more than two standard errors, yield a table of them for each grower, and a
    string that explains their reasons.
    """
    means = compute_mean_ratios(table)
    for grower in dict.fromkeys(line.grower for line in table):
        rows = [line for line in table if line.grower == grower]
        methods = [name for name in METHODS if any(name in line.ratios for line in rows)]
        methods.remove(PRUNING)
        title = f"{grower} tree, {repeats} repetitions: error / error of pruning (paper's)"
        grid = _make_grid(title, "data set")
        for name in ("error of pruning", *methods):
            # A terminal of 80 columns has room for seven letters in a line of a heading.
            heading = re.sub(r" |(?<=-)|(?<=un)(?=pruned)", "\n", name)
            grid.add_column(heading, justify="right", no_wrap=True)
        for line in rows:
            cells = [_format_ratio(line, name) for name in methods]
            grid.add_row(line.dataset, _format_on_two_lines(line.errors[PRUNING]), *cells)
        average = [f"{means[grower][name]:.3f}" for name in methods]
        grid.add_section()
        grid.add_row("mean", "", *average)
        yield grid
    yield from write_notes(table)
    distant = find_distant_ratios(table)
    for grower in dict.fromkeys(ratio.line.grower for ratio in distant):
        yield _format_distant(grower, [ratio for ratio in distant if ratio.line.grower == grower])
    if distant:
        yield REASONS


def _make_grid(title: str, first_column: str) -> RichTable:
    """Return a terminal table without rows; `first_column` is the heading of its only column.

    title: text above the table. The caller adds further columns, and rows.
    """
    grid = RichTable(
        title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
    )
    grid.add_column(first_column, no_wrap=True)
    return grid


def _format_ratio(line: Line, method: str) -> str:
    """Format the ratio of a method in one line of Table 2, and below it the paper's in brackets.

    A ratio is a test error divided by that of cost-complexity pruning. The paper is Nguyen and
    Kpotufe (2018); its ratio is left out if it prints none. Return "-" if the method was not run.
    """
    if method not in line.ratios:
        return "-"
    paper = line.paper(method)
    return _format_on_two_lines(line.ratios[method]) + (
        f"\n({paper:.3f})" if paper is not None else ""
    )


def _format_distant(grower: str, distant: Sequence[DistantRatio]) -> RichTable:
    """Return a terminal table of the ratios of one grower that are far from the paper's.

    A ratio is the test error of a method divided by that of cost-complexity pruning, on one data
    set. The paper is Nguyen and Kpotufe (2018); far means more than two standard errors of our
    ratio. grower: name of the algorithm that grew the trees, for the title; distant: the ratios.
    The table has a line for each: data set, method, our ratio, the paper's, and the likely reason
    of the difference.
    """
    title = f"{grower} tree: beyond two standard errors (ours) of the paper's ratio"
    grid = _make_grid(title, "data set")
    for name in ("method", "ours", "paper's", "likely reason"):
        grid.add_column(name, no_wrap=True)
    for ratio in distant:
        ours = f"{ratio.line.ratios[ratio.method].value:.3f}"
        grid.add_row(ratio.line.dataset, ratio.method, ours, f"{ratio.paper:.3f}", ratio.reason)
    return grid


def _format_on_two_lines(mean: Mean) -> str:
    """Format a mean, with "±" and its standard error in a second line unless it is NaN.

    Both have three decimals.
    """
    return str(mean).replace(" ", "\n")


def format_figure2(curves: Sequence[Curve]) -> Iterator[RichTable]:
    """Yield the test errors of Figure 2 as terminal tables, one for each data set and grower.

    This is Figure 2 of Nguyen and Kpotufe (2018). A grower is an algorithm that grows a tree.
    curves: the test errors, one curve for each method, data set and grower. A table has a row for
    each method and a column for each number of training rows.
    """
    for grower, dataset in dict.fromkeys((curve.grower, curve.dataset) for curve in curves):
        rows = [curve for curve in curves if (curve.grower, curve.dataset) == (grower, dataset)]
        grid = _make_grid(f"{dataset}, {grower} tree: test error", "training rows")
        for n in rows[0].rows:
            grid.add_column(str(n), justify="right")
        for curve in rows:
            grid.add_row(curve.method, *map(str, curve.errors))
        yield grid


def format_rates(rates: Sequence[Rate]) -> Iterator[RichTable | str]:
    """Yield simulated excess errors and their exponents for a terminal.

    rates: excess errors of each classifier, boundary and number of features, by number of training
    rows. Yield one table for each boundary and number of features: a row for each number of
    training rows, then the fitted exponents and those in theory; a column for each classifier. The last
    item is a string that explains them.
    """
    for dimension, boundary in dict.fromkeys((rate.dimension, rate.boundary) for rate in rates):
        group = [rate for rate in rates if (rate.dimension, rate.boundary) == (dimension, boundary)]
        title = f"{boundary} boundary, {dimension} features: excess error"
        grid = _make_grid(title, "training rows")
        for rate in group:
            # A terminal of 80 columns has room for about twelve letters for each rule.
            grid.add_column(rate.rule.replace(" ", "\n"), justify="right", no_wrap=True)
        for n in sorted({n for rate in group for n in rate.rows}):
            grid.add_row(str(n), *(_format_excess(rate, n) for rate in group))
        grid.add_section()
        grid.add_row("exponent", *(_format_exponent(rate.fitted) for rate in group))
        grid.add_row("in theory", *(_format_exponent(rate.theory) for rate in group))
        yield grid
    yield "Excess: beyond the Bayes error. Exponents of (log n) / n, by the larger sizes."


def _format_excess(rate: Rate, n_rows: int) -> str:
    """Format the mean excess error in `rate` at `n_rows` training rows; "-" if not simulated.

    The excess error is the error of a classifier minus the Bayes error, averaged over repetitions.
    """
    return f"{rate.excess[rate.rows.index(n_rows)].value:.2g}" if n_rows in rate.rows else "-"


def _format_exponent(exponent: Mean | float) -> str:
    """Format an exponent to two decimals, with its standard error if it has one; "-" for NaN."""
    if isinstance(exponent, float):
        return "-" if np.isnan(exponent) else f"{exponent:.2f}"
    return "-" if np.isnan(exponent.value) else exponent.rounded(2)
