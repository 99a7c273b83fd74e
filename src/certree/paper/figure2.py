"""Figure 2 of the paper: error of each method against the number of training rows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from certree.paper.protocol import Outcome
from certree.paper.table2 import METHODS, Mean, compute_mean

# The paper's multiclass data sets, and five fractions from half to all of the training rows.
MULTICLASS_SETS = ("crowd", "wine", "digit", "letter")
FRACTIONS = tuple(float(fraction) for fraction in np.linspace(0.5, 1.0, 5))


@dataclass(frozen=True, slots=True)
class Curve:
    """Errors of one method on one data set and grower, by number of training rows.

    Parameters
    ----------
    dataset, grower, method : str
        Names.
    rows : tuple of int
        Numbers of training rows.
    errors : tuple of Mean
        Mean errors over the repetitions.
    """

    dataset: str
    grower: str
    method: str
    rows: tuple[int, ...]
    errors: tuple[Mean, ...]


def summarise_curves(outcomes: Sequence[Outcome]) -> list[Curve]:
    """Average outcomes over repetitions: one curve for each grower, data set and method."""
    groups: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for outcome in outcomes:
        for method in METHODS:
            if method in outcome.errors:
                key = (outcome.grower, outcome.dataset, method)
                sizes = groups.setdefault(key, {})
                sizes.setdefault(outcome.n_train, []).append(outcome.errors[method])
    return [
        Curve(
            dataset=dataset,
            grower=grower,
            method=method,
            rows=tuple(sorted(sizes)),
            errors=tuple(compute_mean(sizes[n]) for n in sorted(sizes)),
        )
        for (grower, dataset, method), sizes in groups.items()
    ]


def to_json(outcomes: Sequence[Outcome], curves: Sequence[Curve]) -> dict[str, Any]:
    """Return outcomes and curves as a dictionary for a JSON file."""
    return {
        "experiment": "figure2",
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "curves": [asdict(curve) for curve in curves],
    }
