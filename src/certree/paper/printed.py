"""What came out of an experiment, as tables for a terminal."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable

from certree.paper.figure2 import Curve
from certree.paper.protocol import PRUNING
from certree.paper.rates import Rate
from certree.paper.table1 import Extent
from certree.paper.table1 import notes as notes_of_table1
from certree.paper.table2 import (
    METHODS,
    REASONS,
    FarCell,
    Line,
    Mean,
    far_cells,
    mean_ratios,
    notes,
)


def table1(found: Sequence[Extent]) -> Iterator[RichTable | str]:
    """Table 1, and the notes to it."""
    grid = _grid("Data sets, as they are here (and in the paper)", "data set")
    for name in ("features", "classes", "training rows", "test rows"):
        grid.add_column(name, justify="right")
    for line in found:
        paper = line.paper or line.sizes
        sizes = [
            f"{ours} ({theirs})" if ours != theirs else str(ours)
            for ours, theirs in zip(line.sizes, paper, strict=True)
        ]
        grid.add_row(line.dataset, *sizes, str(line.n_test))
    yield grid
    yield from notes_of_table1(found)


def table2(table: Sequence[Line], repeats: int) -> Iterator[RichTable | str]:
    """Table 2, grower by grower, and the notes to it."""
    means = mean_ratios(table)
    for grower in dict.fromkeys(line.grower for line in table):
        rows = [line for line in table if line.grower == grower]
        methods = [name for name in METHODS if any(name in line.ratios for line in rows)]
        methods.remove(PRUNING)
        title = f"{grower} tree, {repeats} repetitions: error / error of pruning (paper's)"
        grid = _grid(title, "data set")
        for name in ("error of pruning", *methods):
            # In 80 columns there is room for seven letters a line.
            heading = re.sub(r" |(?<=-)|(?<=un)(?=pruned)", "\n", name)
            grid.add_column(heading, justify="right", no_wrap=True)
        for line in rows:
            cells = [_ratio(line, name) for name in methods]
            grid.add_row(line.dataset, _stacked(line.errors[PRUNING]), *cells)
        average = [f"{means[grower][name]:.3f}" for name in methods]
        grid.add_section()
        grid.add_row("mean", "", *average)
        yield grid
    yield from notes(table)
    far = far_cells(table)
    for grower in dict.fromkeys(cell.line.grower for cell in far):
        yield _far_from_the_paper(grower, [cell for cell in far if cell.line.grower == grower])
    if far:
        yield REASONS


def _grid(title: str, first: str) -> RichTable:
    grid = RichTable(
        title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
    )
    grid.add_column(first, no_wrap=True)
    return grid


def _ratio(line: Line, method: str) -> str:
    if method not in line.ratios:
        return "-"
    paper = line.paper(method)
    return _stacked(line.ratios[method]) + (f"\n({paper:.3f})" if paper is not None else "")


def _far_from_the_paper(grower: str, far: Sequence[FarCell]) -> RichTable:
    title = f"{grower} tree: beyond two standard errors (ours) of the paper's ratio"
    grid = _grid(title, "data set")
    for name in ("method", "ours", "paper's", "likely reason"):
        grid.add_column(name, no_wrap=True)
    for cell in far:
        ours = f"{cell.line.ratios[cell.method].value:.3f}"
        grid.add_row(cell.line.dataset, cell.method, ours, f"{cell.paper:.3f}", cell.reason)
    return grid


def _stacked(mean: Mean) -> str:
    return str(mean).replace(" ", "\n")


def figure2(curves: Sequence[Curve]) -> Iterator[RichTable]:
    """The errors of Figure 2, a table for each data set and grower."""
    for grower, dataset in dict.fromkeys((c.grower, c.dataset) for c in curves):
        rows = [c for c in curves if (c.grower, c.dataset) == (grower, dataset)]
        grid = _grid(f"{dataset}, {grower} tree: test error", "training rows")
        for n in rows[0].rows:
            grid.add_column(str(n), justify="right")
        for curve in rows:
            grid.add_row(curve.method, *map(str, curve.errors))
        yield grid


def rates(found: Sequence[Rate]) -> Iterator[RichTable | str]:
    """Excess errors and exponents, a table for each boundary and dimension."""
    for dimension, boundary in dict.fromkeys((rate.dimension, rate.boundary) for rate in found):
        group = [r for r in found if (r.dimension, r.boundary) == (dimension, boundary)]
        title = f"{boundary} boundary, {dimension} features: excess error"
        grid = _grid(title, "training rows")
        for rate in group:
            # In 80 columns there is room for some twelve letters a rule.
            grid.add_column(rate.rule.replace(" ", "\n"), justify="right", no_wrap=True)
        for n in sorted({n for rate in group for n in rate.rows}):
            grid.add_row(str(n), *(_excess(rate, n) for rate in group))
        grid.add_section()
        grid.add_row("exponent", *(_exponent(rate.fitted) for rate in group))
        grid.add_row("in theory", *(_exponent(rate.theory) for rate in group))
        yield grid
    yield "Excess: beyond the Bayes error. Exponents of (log n) / n, by the larger sizes."


def _excess(rate: Rate, rows: int) -> str:
    return f"{rate.excess[rate.rows.index(rows)].value:.2g}" if rows in rate.rows else "-"


def _exponent(exponent: Mean | float) -> str:
    if isinstance(exponent, float):
        return "-" if np.isnan(exponent) else f"{exponent:.2f}"
    return "-" if np.isnan(exponent.value) else exponent.rounded(2)
