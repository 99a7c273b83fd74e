"""Table 2 of the paper: each method's error over that of the optimal pruning, ours beside theirs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.experiments.protocol import (
    CONTESTANTS,
    EXPANDED,
    GIBBS,
    PARTITIONS,
    PRUNING,
    UNPRUNED,
    Outcome,
)

METHODS = (*(contestant.name for contestant in CONTESTANTS), UNPRUNED, GIBBS)

# The paper's ratios by partition and data set: SN-pruning, PAC-Bayes tree, HS-vote.
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
PAPER_COLUMN = {"SN-pruning": 0, "PAC-Bayes joint": 1, "PAC-Bayes error-first": 1, "HS-vote": 2}


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over repetitions and its standard error (NaN for one repetition)."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        return self.rounded(3)

    def rounded(self, digits: int) -> str:
        """Both with so many digits, the value alone if there is no error."""
        text = f"{self.value:z.{digits}f}"
        if np.isnan(self.standard_error):
            return text
        return f"{text} ±{self.standard_error:.{digits}f}"


def mean_of(values: ArrayLike) -> Mean:
    """Mean and standard error."""
    sample = np.asarray(values, dtype=np.float64)
    error = np.std(sample, ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else np.nan
    return Mean(float(np.mean(sample)), float(error))


@dataclass(frozen=True, slots=True)
class Line:
    """One data set on one partition.

    Parameters
    ----------
    dataset, partition : str
        Names.
    errors : dict of Mean
        Error of each method.
    ratios : dict of Mean
        Mean error over the mean error of the optimal pruning; the standard error is that of the
        differences to the pruning, repetition by repetition, over the same mean.
    outside : float or None
        Mean share of test rows in no cell that holds training rows.
    n_nodes : float
        Mean number of nodes of the tree.
    """

    dataset: str
    partition: str
    errors: dict[str, Mean]
    ratios: dict[str, Mean]
    outside: float | None
    n_nodes: float

    def paper(self, method: str) -> float | None:
        """The paper's ratio, if it has one."""
        if method not in PAPER_COLUMN or self.dataset not in PAPER.get(self.partition, {}):
            return None
        return PAPER[self.partition][self.dataset][PAPER_COLUMN[method]]


def lines(outcomes: Sequence[Outcome]) -> list[Line]:
    """Summarise outcomes over repetitions, by partition and data set."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.partition, outcome.dataset), []).append(outcome)
    order = [*PARTITIONS, EXPANDED]
    return [_line(groups[key]) for key in sorted(groups, key=lambda key: order.index(key[0]))]


def _line(group: Sequence[Outcome]) -> Line:
    methods = [name for name in METHODS if name in group[0].errors]
    baseline = np.array([outcome.errors[PRUNING] for outcome in group])
    # A set without errors has no ratios; NaN says so.
    mean = baseline.mean() or np.nan
    errors, ratios = {}, {}
    for name in methods:
        error = np.array([outcome.errors[name] for outcome in group])
        errors[name] = mean_of(error)
        difference = mean_of(error - baseline)
        ratios[name] = Mean(float(error.mean() / mean), float(difference.standard_error / mean))
    outside = [outcome.outside for outcome in group if outcome.outside is not None]
    return Line(
        dataset=group[0].dataset,
        partition=group[0].partition,
        errors=errors,
        ratios=ratios,
        outside=float(np.mean(outside)) if outside else None,
        n_nodes=float(np.mean([outcome.n_nodes for outcome in group])),
    )


def mean_ratios(table: Sequence[Line]) -> dict[str, dict[str, float]]:
    """Mean ratio of each method over the data sets, by partition."""
    means: dict[str, dict[str, float]] = {}
    for partition in dict.fromkeys(line.partition for line in table):
        rows = [line for line in table if line.partition == partition]
        means[partition] = {
            name: float(np.mean([line.ratios[name].value for line in rows if name in line.ratios]))
            for name in METHODS
            if any(name in line.ratios for line in rows)
        }
    return means


def notes(table: Sequence[Line]) -> list[str]:
    """What a reader of the table must know."""
    said = [
        "Ratio: mean error over mean error of the optimal pruning (below 1 is better); ± is the "
        "standard error over the repetitions. Paper: Nguyen and Kpotufe, NeurIPS 2018, Table 2."
    ]
    outside = [line for line in table if line.outside is not None]
    if outside:
        shares = ", ".join(
            f"{line.dataset} {100 * line.outside:.1f} %"
            for line in outside
            if line.outside is not None
        )
        said.append(f"Test rows outside every dyadic cell that holds training rows: {shares}.")
    names = {line.dataset for line in table}
    if "epileptic" in names:
        said.append("epileptic: rows of one recording stand on both sides of the random split.")
    repeated = [name for name in ("spam", "wine", "letter") if name in names]
    if repeated:
        said.append(f"{', '.join(repeated)}: repeated rows stand on both sides of the split.")
    return said


def as_json(outcomes: Sequence[Outcome], table: Sequence[Line]) -> dict[str, Any]:
    """Everything that came out, for a JSON file."""
    return {
        "experiment": "table2",
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "table": [asdict(line) for line in table],
        "mean_ratios": mean_ratios(table),
        "notes": notes(table),
    }
