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
    """Test errors of one method with one grower on one data set, by number of training rows.

    Parameters
    ----------
    dataset, grower, method : str
        Name of the data set; name of the grower, the algorithm that grew the tree, such as "kd";
        and name of the method that prunes the tree, or lets its prunings (subtrees with the same
        root) vote, such as "PAC-Bayes joint".
    rows : tuple of int
        Numbers of training rows, ascending.
    errors : tuple of Mean
        Mean test error over the repetitions, for each number of rows.
    """

    dataset: str
    grower: str
    method: str
    rows: tuple[int, ...]
    errors: tuple[Mean, ...]


def summarise_curves(outcomes: Sequence[Outcome]) -> list[Curve]:
    """Average outcomes over repetitions: return one curve for each grower, data set and method.

    outcomes: the test errors of all methods on the tree of one grower (algorithm that grows a tree)
    in one repetition each. A curve has a point for each number of training rows among the outcomes.
    """
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
    """Return outcomes and curves as a dictionary for a JSON file.

    Keys: "experiment", which is "figure2", and "outcomes" and "curves", lists of dictionaries of
    their fields.
    """
    return {
        "experiment": "figure2",
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "curves": [asdict(curve) for curve in curves],
    }
