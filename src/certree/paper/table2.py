"""Table 2 of the paper: the error of each method divided by that of the optimal pruning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.paper.protocol import (
    EXPANDED,
    EXPERIMENT_METHODS,
    GIBBS,
    GROWERS,
    HS_LABEL,
    HS_MEAN,
    PRUNING,
    UNPRUNED,
    Outcome,
)

METHODS = (*(method.name for method in EXPERIMENT_METHODS), UNPRUNED, GIBBS)

# Ratios printed in the paper, by grower and data set: SN-pruning, PAC-Bayes tree, HS-vote.
PAPER: dict[str, dict[str, tuple[float, float, float | None]]] = {
    "dyadic": {
        "spam": (1.118, 0.975, 1.224),
        "eeg": (0.979, 0.993, 1.029),
        "epileptic": (0.993, 0.992, 0.951),
        "crowd": (0.991, 1.020, None),
        "wine": (1.035, 0.991, None),
        "digit": (1.000, 0.936, None),
        "letter": (1.005, 0.993, None),
    },
    "kd": {
        "spam": (1.048, 1.020, 1.075),
        "eeg": (1.000, 0.990, 1.000),
        "epileptic": (0.977, 0.987, 0.907),
        "crowd": (1.001, 1.017, None),
        "wine": (1.010, 0.997, None),
        "digit": (0.994, 0.997, None),
        "letter": (1.000, 1.001, None),
    },
}
PAPER_COLUMN = {
    "SN-pruning": 0,
    "PAC-Bayes joint": 1,
    "PAC-Bayes error-first": 1,
    HS_MEAN: 2,
    HS_LABEL: 2,
}
# The paper's tree that corresponds to each of our growers; its dyadic tree has all regions.
PAPER_TREE = {"dyadic": "dyadic", EXPANDED: "dyadic", "kd": "kd"}
# Largest rounding error of a number with three decimals.
_ROUNDING = 0.0005

REASONS = (
    "Likely reasons. Empty cells: the ratio is near the paper's on the tree with leaves for "
    "regions "
    "without rows. Draw: the paper's ratio lies in the range of ten sets of five repetitions. "
    "Silent "
    "cells: if leaves without rows do not vote, as in the authors' code, the ratio comes at least "
    "half "
    "the way to the paper's. Unknown: no inverse temperatures give a ratio as low as the paper's, "
    "not "
    "even those that are best on the test rows of each repetition. Temperatures: other inverse "
    "temperatures would give the paper's ratio; tuned ones gave this range."
)


# Measured by `benchmarks/table2_borders.py`.
_BORDERS = (
    "digit: the authors' released pruning sends rows on a threshold to the right when it grows "
    "trees "
    "and to the left when it validates them. With such a pruning the ratios of PAC-Bayes on the "
    "tree "
    "of all regions are 0.978 (joint) and 0.970 (error-first)."
)

# For ratios that are far from the paper's: the smallest and the largest ratio of ten sets of five
# repetitions, the ratio with inverse temperatures that are best on the test rows, and the ratio if
# leaves without rows do not vote (`benchmarks/table2_cells.py`).
EXAMINED: dict[tuple[str, str, str], tuple[float, float, float, float]] = {
    ("dyadic", "spam", "SN-pruning"): (0.979, 1.037, 1.005, 1.017),
    ("dyadic", "spam", "PAC-Bayes joint"): (0.983, 1.024, 0.962, 0.994),
    ("dyadic", "spam", "PAC-Bayes error-first"): (0.995, 1.020, 0.963, 1.006),
    ("dyadic", "spam", HS_MEAN): (0.968, 1.010, 0.981, 0.991),
    ("dyadic", "spam", HS_LABEL): (0.975, 1.031, 0.981, 0.987),
    ("dyadic", "eeg", "PAC-Bayes error-first"): (0.999, 1.011, 0.987, 1.011),
    ("dyadic", "epileptic", HS_MEAN): (0.999, 1.039, 0.972, 1.007),
    ("dyadic", "epileptic", HS_LABEL): (0.991, 1.032, 1.005, 1.017),
    ("dyadic", "wine", "SN-pruning"): (1.000, 1.029, 1.000, 1.015),
    ("dyadic", "wine", "PAC-Bayes joint"): (0.974, 1.050, 0.999, 1.018),
    ("dyadic", "digit", "PAC-Bayes joint"): (1.000, 1.010, 0.997, 1.008),
    ("dyadic", "digit", "PAC-Bayes error-first"): (0.997, 1.006, 0.997, 1.000),
    ("dyadic", "letter", "SN-pruning"): (0.997, 1.001, 0.999, 1.001),
    ("dyadic", "letter", "PAC-Bayes joint"): (1.000, 1.001, 0.995, 1.000),
    ("dyadic", "letter", "PAC-Bayes error-first"): (0.999, 1.001, 0.995, 1.000),
    (EXPANDED, "spam", "PAC-Bayes joint"): (0.994, 1.027, 0.968, 0.994),
    (EXPANDED, "spam", "PAC-Bayes error-first"): (0.972, 1.012, 0.968, 0.995),
    (EXPANDED, "spam", HS_MEAN): (0.973, 1.006, 0.966, 0.982),
    (EXPANDED, "spam", HS_LABEL): (0.968, 1.007, 0.977, 0.982),
    (EXPANDED, "eeg", "SN-pruning"): (0.988, 1.038, 1.035, 1.035),
    (EXPANDED, "eeg", "PAC-Bayes joint"): (0.990, 1.011, 0.995, 1.001),
    (EXPANDED, "eeg", "PAC-Bayes error-first"): (0.993, 1.012, 0.996, 1.003),
    (EXPANDED, "epileptic", HS_LABEL): (0.969, 1.016, 0.969, 0.971),
    (EXPANDED, "crowd", "PAC-Bayes joint"): (0.993, 1.024, 0.979, 0.996),
    (EXPANDED, "crowd", "PAC-Bayes error-first"): (0.995, 1.019, 0.979, 0.995),
    (EXPANDED, "wine", "SN-pruning"): (0.985, 1.029, 1.006, 1.006),
    (EXPANDED, "wine", "PAC-Bayes joint"): (0.997, 1.010, 0.999, 0.997),
    (EXPANDED, "wine", "PAC-Bayes error-first"): (0.995, 1.011, 0.999, 0.993),
    (EXPANDED, "digit", "PAC-Bayes joint"): (0.996, 1.008, 0.997, 1.010),
    (EXPANDED, "digit", "PAC-Bayes error-first"): (0.998, 1.008, 0.995, 1.001),
    (EXPANDED, "letter", "PAC-Bayes joint"): (0.999, 1.003, 0.995, 0.996),
    (EXPANDED, "letter", "PAC-Bayes error-first"): (0.999, 1.001, 0.995, 0.995),
    ("kd", "spam", "SN-pruning"): (0.999, 1.033, 1.000, 1.007),
    ("kd", "spam", "PAC-Bayes joint"): (0.978, 1.017, 0.975, 0.995),
    ("kd", "spam", "PAC-Bayes error-first"): (0.982, 1.012, 0.974, 0.982),
    ("kd", "spam", HS_MEAN): (0.979, 1.014, 0.995, 1.004),
    ("kd", "spam", HS_LABEL): (0.983, 1.011, 0.990, 0.999),
    ("kd", "epileptic", HS_MEAN): (0.972, 1.010, 0.947, 0.972),
    ("kd", "epileptic", HS_LABEL): (0.981, 1.023, 0.960, 0.985),
    ("kd", "crowd", "PAC-Bayes joint"): (0.974, 1.003, 0.953, 0.974),
    ("kd", "crowd", "PAC-Bayes error-first"): (0.965, 1.009, 0.957, 0.983),
    ("kd", "wine", "SN-pruning"): (0.999, 1.010, 1.000, 1.002),
    ("kd", "wine", "PAC-Bayes error-first"): (1.000, 1.023, 0.999, 1.000),
    ("kd", "letter", "PAC-Bayes error-first"): (0.999, 1.000, 1.000, 1.000),
}


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over repetitions and its standard error. `str` formats both with three decimals.

    Parameters
    ----------
    value : float
        The mean.
    standard_error : float
        Standard error of the mean; NaN for a single repetition.
    """

    value: float
    standard_error: float

    def __str__(self) -> str:
        return self.rounded(3)

    def rounded(self, digits: int) -> str:
        """Format as "value ±standard error" with `digits` decimals.

        If the standard error is NaN, it is left out.
        """
        text = f"{self.value:z.{digits}f}"
        if np.isnan(self.standard_error):
            return text
        return f"{text} ±{self.standard_error:.{digits}f}"


def compute_mean(values: ArrayLike) -> Mean:
    """Compute the mean of `values`, (n,), and its standard error, which is NaN if n is 1."""
    sample = np.asarray(values, dtype=np.float64)
    error = np.std(sample, ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else np.nan
    return Mean(float(np.mean(sample)), float(error))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of Table 2: the mean test errors of all methods on one data set with one grower.

    A grower is an algorithm that grows a tree; a method prunes the tree, or lets its prunings
    (subtrees with the same root) vote. Ratios compare each method with the method "pruning":
    cost-complexity pruning chosen by cross-validation. The table is Table 2 of Nguyen and Kpotufe,
    "PAC-Bayes Tree", NeurIPS 2018.

    Parameters
    ----------
    dataset, grower : str
        Name of the data set; and name of the grower: "dyadic", "dyadic-expanded", "kd" or
        "kd-spread".
    errors : dict of Mean
        Mean test error of each method, by its name, such as "PAC-Bayes joint".
    ratios : dict of Mean
        Mean error of each method divided by the mean error of "pruning", by the method's name. The
        standard error is that of the differences to "pruning" in each repetition, divided by the
        mean error of "pruning".
    outside : float or None
        Mean fraction of the test rows in leaves without training rows; None for other growers than
        "dyadic-expanded".
    n_nodes : float
        Mean number of nodes of the tree.
    """

    dataset: str
    grower: str
    errors: dict[str, Mean]
    ratios: dict[str, Mean]
    outside: float | None
    n_nodes: float

    def paper(self, method: str) -> float | None:
        """Return the ratio that the paper's Table 2 prints for this data set, grower and method.

        The paper is Nguyen and Kpotufe (2018); a ratio is the method's test error divided by that
        of cost-complexity pruning. None if the paper has no such ratio.
        """
        row = PAPER.get(PAPER_TREE.get(self.grower, ""), {}).get(self.dataset)
        return row[PAPER_COLUMN[method]] if row and method in PAPER_COLUMN else None

    def is_far(self, method: str) -> bool:
        """Return whether this line's ratio for a method is far from the one that the paper prints.

        A ratio is far if the two differ by more than two standard errors of our ratio plus .0005,
        as the paper, Nguyen and Kpotufe (2018), rounds to three decimals. A ratio is the method's
        test error divided by that of cost-complexity pruning. False if the paper has no ratio or
        there is no standard error.
        """
        paper, ours = self.paper(method), self.ratios[method]
        if paper is None or np.isnan(ours.standard_error):
            return False
        return abs(ours.value - paper) > 2 * ours.standard_error + _ROUNDING


@dataclass(frozen=True, slots=True)
class DistantRatio:
    """A ratio of test errors that is far from the one that Table 2 of the paper prints.

    Parameters
    ----------
    line : Line
        Line of the table with the ratio.
    method : str
        Name of the method, whose test error is divided by that of cost-complexity pruning.
    paper : float
        The ratio that Nguyen and Kpotufe (2018) print.
    reason : str
        Likely reason of the difference. It begins with "empty cells" (the ratio is near the paper's
        on a tree that has leaves for regions without rows), "draw" (the paper's ratio lies in the
        range of ten sets of five repetitions, as in "draw: 0.979 to 1.037"), "silent cells" (the
        ratio is nearer to the paper's if leaves without rows do not vote), "unknown" (no inverse
        temperatures give a ratio as low as the paper's) or "temperatures" (other ones would give
        the paper's ratio); or it is "not examined".
    """

    line: Line
    method: str
    paper: float
    reason: str


def find_distant_ratios(table: Sequence[Line]) -> list[DistantRatio]:
    """Return the ratios of all lines that are far from the paper's, with the likely reasons.

    A ratio is the test error of a method divided by that of cost-complexity pruning; the paper is
    Nguyen and Kpotufe (2018). Far means a difference above two standard errors of our ratio plus
    .0005 for rounding. Ratios are in the order of the table.
    """
    expanded = {line.dataset: line for line in table if line.grower == EXPANDED}
    return [
        DistantRatio(
            line, method, paper, _find_reason(line, method, paper, expanded.get(line.dataset))
        )
        for line in table
        for method in line.ratios
        if (paper := line.paper(method)) is not None and line.is_far(method)
    ]


def _find_reason(line: Line, method: str, paper: float, expanded: Line | None) -> str:
    """Return the likely reason why a ratio differs from the paper's, such as "draw: 0.979 to 1.037".

    Parameters
    ----------
    line : Line
        Line of the table with the ratio.
    method : str
        Name of the method.
    paper : float
        The ratio that Nguyen and Kpotufe (2018) print.
    expanded : Line or None
        Line of the same data set with the grower "dyadic-expanded"; None if it was not run.

    Returns
    -------
    str
        The reason, with the ratios behind it, which except for "empty cells" come from the table
        `EXAMINED` of earlier experiments. "empty cells": the ratio of "dyadic-expanded", whose tree
        has leaves for regions without rows, is near the paper's; "draw": the paper's lies in the
        range of ten sets of five repetitions; "silent cells": the ratio is nearer to the paper's if
        leaves without rows do not vote; "unknown": the paper's is lower than that of the inverse
        temperatures (factors of errors and penalties) that are best on the test rows;
        "temperatures": other inverse temperatures would give the paper's; or "not examined".
    """
    if line.grower == "dyadic" and expanded and not expanded.is_far(method):
        return f"empty cells: {expanded.ratios[method].value:.3f} with them"
    if (line.grower, line.dataset, method) not in EXAMINED:
        return "not examined"
    smallest, largest, best, silent = EXAMINED[line.grower, line.dataset, method]
    if smallest - _ROUNDING <= paper <= largest + _ROUNDING:
        return f"draw: {smallest:.3f} to {largest:.3f}"
    if abs(silent - paper) <= abs(line.ratios[method].value - paper) / 2:
        return f"silent cells: {silent:.3f}"
    if paper < best:
        return f"unknown: {best:.3f} at best"
    return f"temperatures: {smallest:.3f} to {largest:.3f}"


def summarise_outcomes(outcomes: Sequence[Outcome]) -> list[Line]:
    """Average outcomes over repetitions: one line of Table 2 for each grower and data set.

    An outcome has the test errors of all methods in one repetition; a line has their means. Lines
    are in the order of the growers (algorithms that grow trees) "dyadic", "dyadic-expanded", "kd"
    and "kd-spread", then of the first appearance of the data set.
    """
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.grower, outcome.dataset), []).append(outcome)
    order = list(GROWERS)
    keys = sorted(groups, key=lambda key: order.index(key[0]))
    return [_summarise_group(groups[key]) for key in keys]


def _summarise_group(group: Sequence[Outcome]) -> Line:
    """Average the outcomes of all repetitions on one data set with one grower into a line.

    group: at least one outcome, all of the same data set and grower (algorithm that grows a tree).
    The line has the mean test error of each method, and its ratio to the mean error of "pruning",
    cost-complexity pruning; ratios are NaN if that is 0.
    """
    methods = [name for name in METHODS if name in group[0].errors]
    baseline = np.array([outcome.errors[PRUNING] for outcome in group])
    # Ratios are NaN if the pruning has no errors.
    mean = baseline.mean() or np.nan
    errors, ratios = {}, {}
    for name in methods:
        error = np.array([outcome.errors[name] for outcome in group])
        errors[name] = compute_mean(error)
        difference = compute_mean(error - baseline)
        ratios[name] = Mean(float(error.mean() / mean), float(difference.standard_error / mean))
    outside = [outcome.outside for outcome in group if outcome.outside is not None]
    return Line(
        dataset=group[0].dataset,
        grower=group[0].grower,
        errors=errors,
        ratios=ratios,
        outside=float(np.mean(outside)) if outside else None,
        n_nodes=float(np.mean([outcome.n_nodes for outcome in group])),
    )


def compute_mean_ratios(table: Sequence[Line]) -> dict[str, dict[str, float]]:
    """Compute the mean ratio of each method over the data sets of a table.

    Return it by grower (algorithm that grows a tree) and then by method. A ratio is the method's
    test error divided by that of the baseline "pruning", cost-complexity pruning.
    """
    means: dict[str, dict[str, float]] = {}
    for grower in dict.fromkeys(line.grower for line in table):
        rows = [line for line in table if line.grower == grower]
        means[grower] = {
            name: float(np.mean([line.ratios[name].value for line in rows if name in line.ratios]))
            for name in METHODS
            if any(name in line.ratios for line in rows)
        }
    return means


def _compute_distance(table: Sequence[Line], method: str) -> float | None:
    """Compute the mean absolute difference between a method's ratios and those that the paper prints.

    A ratio is the method's test error divided by that of cost-complexity pruning; the paper is
    Nguyen and Kpotufe (2018). table: lines of Table 2; method: name of the method. The mean is over
    the lines that have both ratios; None if there are none.
    """
    distances = [
        abs(line.ratios[method].value - paper)
        for line in table
        if method in line.ratios and (paper := line.paper(method)) is not None
    ]
    return float(np.mean(distances)) if distances else None


def write_notes(table: Sequence[Line]) -> list[str]:
    """Return sentences that explain the table and its differences to the paper's table.

    The paper is Nguyen and Kpotufe (2018). Sentences about a data set or grower (algorithm that
    grows a tree) appear only if the table has it.
    """
    notes = [
        "Ratio: mean error over mean error of the optimal pruning (below 1 is better); ± is the "
        "standard error over the repetitions. Paper: Nguyen and Kpotufe, NeurIPS 2018, Table 2.",
        f"{UNPRUNED}: the whole tree. {GIBBS}: one pruning, drawn anew for each test row from the "
        "posterior by which PAC-Bayes joint votes.",
    ]
    expanded = {line.dataset: line for line in table if line.grower == EXPANDED}
    if expanded:
        notes.append(
            f"{EXPANDED}: the dyadic tree of the paper, with every cell as a node, also empty ones."
        )
        fractions = ", ".join(
            f"{line.dataset} {100 * line.outside:.1f} %"
            for line in expanded.values()
            if line.outside is not None
        )
        notes.append(f"Test rows outside every dyadic cell with training rows: {fractions}.")
    routed = [line for line in table if line.grower == "dyadic" and line.dataset in expanded]
    if routed:
        errors = ", ".join(
            f"{line.dataset} {line.errors[PRUNING].value:.3f} and "
            f"{expanded[line.dataset].errors[PRUNING].value:.3f}"
            for line in routed
        )
        notes.append(f"Error of the dyadic pruning, routed and with every cell: {errors}.")
    mean, label = _compute_distance(table, HS_MEAN), _compute_distance(table, HS_LABEL)
    if mean is not None and label is not None:
        notes.append(
            "HS-vote by class frequencies (mean) or by labels: mean distances from the paper's "
            f"ratios {mean:.3f} and {label:.3f}."
        )
    names = {line.dataset for line in table}
    if routed and "digit" in names:
        notes.append(_BORDERS)
    if "epileptic" in names:
        notes.append("epileptic: training and test rows come from the same recordings.")
    repeated = [name for name in ("spam", "wine", "letter") if name in names]
    if repeated:
        notes.append(f"{', '.join(repeated)}: some test rows equal training rows.")
    return notes


def to_json(outcomes: Sequence[Outcome], table: Sequence[Line]) -> dict[str, Any]:
    """Return outcomes, table, ratios far from the paper's, and notes as a dictionary for a JSON file.

    Keys: "experiment", which is "table2"; "outcomes" (test errors of single repetitions) and
    "table" (lines with their means), lists of dictionaries of their fields; "mean_ratios", the mean
    ratio over data sets by grower (algorithm that grows a tree) and method; "far_from_paper", a
    list of dictionaries with "grower", "dataset", "method", "paper" (the ratio printed there) and
    "reason"; and "notes", a list of sentences.
    """
    return {
        "experiment": "table2",
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "table": [asdict(line) for line in table],
        "mean_ratios": compute_mean_ratios(table),
        "far_from_paper": [
            {
                "grower": ratio.line.grower,
                "dataset": ratio.line.dataset,
                "method": ratio.method,
                "paper": ratio.paper,
                "reason": ratio.reason,
            }
            for ratio in find_distant_ratios(table)
        ],
        "notes": write_notes(table),
    }
