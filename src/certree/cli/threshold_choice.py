"""Options of certify that choose decision thresholds by their certified rates and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from certree.certificates.thresholds import (
    OperatingPoint,
    ThresholdGuarantees,
    expect_certified_rate,
)
from certree.interface.formatting import align_columns
from certree.interface.positive_class import expect_threshold

Recall = Annotated[
    float | None,
    typer.Option(
        metavar="R",
        help="Certify all thresholds, and report the highest one with a recall of at least R.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="Certify all thresholds, and report the one of highest recall with a precision of at "
        "least P.",
    ),
]
TableThresholds = Annotated[
    list[float] | None,
    typer.Option(
        "--threshold",
        metavar="T",
        help="Certify all thresholds, and print a table of this one; repeat for more.",
        show_default="ten thresholds, if another option asks for them",
    ),
]
# Options that ask for guarantees of thresholds, as messages name them.
THRESHOLD_OPTIONS = "--threshold-cost, --recall, --precision or --threshold"
# Why recall and precision have other limits, and other thresholds, in a run without costs.
_STATES_PRICE_OF_COSTS = (
    "Half of delta is used for the bounds on the named costs: without --threshold-cost, recall and "
    "precision have closer limits, so that --recall and --precision choose other thresholds."
)


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """How decision thresholds are chosen by their guarantees, and which ones the output lists.

    `parse_choice` makes it from the options of the command.

    Parameters
    ----------
    criteria : dict of str to tuple of float
        Criteria by which thresholds are chosen: for each the method of `ThresholdGuarantees`
        ("lowest_cost", "highest_threshold" or "highest_recall") and its arguments: two costs, the
        smallest recall, or the smallest precision. Empty: no threshold is chosen.
    thresholds : sequence of float
        Thresholds of the option --threshold, which the output lists with their limits in a table;
        empty: the printed table has up to ten that the guarantees choose, and the JSON none.
    """

    criteria: dict[str, tuple[float, ...]]
    thresholds: Sequence[float]

    def find_points(self, guarantees: ThresholdGuarantees) -> dict[str, OperatingPoint]:
        """Return the threshold that each criterion chooses, with the limits of its rates.

        The keys are those of `criteria`, such as "lowest_cost"; an `OperatingPoint` has a threshold
        and confidence limits of its recall, precision and other rates. guarantees: the limits at all
        thresholds. Raise a ValueError if no threshold has the wanted recall or precision.
        """
        return {
            name: getattr(guarantees, name)(*arguments) for name, arguments in self.criteria.items()
        }

    def find_points_or_reasons(
        self, guarantees: ThresholdGuarantees
    ) -> dict[str, OperatingPoint | str]:
        """Return the threshold that each criterion chooses, or the reason why there is none.

        guarantees: limits of the rates at all thresholds. The keys are those of `criteria`, such as
        "lowest_cost". A value is the threshold with the limits of its rates; or, if no threshold
        meets the criterion, the message of the ValueError.
        """
        found: dict[str, OperatingPoint | str] = {}
        for name, arguments in self.criteria.items():
            try:
                found |= replace(self, criteria={name: arguments}).find_points(guarantees)
            except ValueError as error:
                found[name] = str(error)
        return found

    def format(self, guarantees: ThresholdGuarantees) -> str:
        """Return text with a table of thresholds and the chosen ones, then those of each group.

        guarantees: the limits at all thresholds, for all rows and for each group. Raise a
        ValueError if no threshold has the wanted recall or precision for all rows; for a group the
        text says so.
        """
        points = self.find_points(guarantees)
        head, lines = guarantees.table(self.thresholds or None)
        texts = [guarantees.title, *align_columns([head, *lines])]
        for criterion, point in points.items():
            texts += [f"{self._make_label(criterion)}{point}", *_state_exactly(point.threshold)]
        for name, group in guarantees.groups.items():
            shown = [group.at(threshold) for threshold in self.thresholds]
            found = self.find_points_or_reasons(group).items()
            chosen = [f"{self._make_label(criterion)}{one}" for criterion, one in found]
            texts += [f"{name}: {one}" for one in (*shown, *chosen)]
        if len(points) > 1:
            texts.append("All statements of this run hold together, with the probability above.")
        if "lowest_cost" in points and (len(points) > 1 or self.thresholds):
            texts.append(_STATES_PRICE_OF_COSTS)
        return "\n".join(texts)

    def _make_label(self, criterion: str) -> str:
        """Return a label such as "highest recall: " if there are several criteria; else "".

        criterion: name of the criterion.
        """
        return f"{criterion.replace('_', ' ')}: " if len(self.criteria) > 1 else ""


def _state_exactly(threshold: float) -> list[str]:
    """Return a list with a line that has all digits of a threshold; [] if four digits are exact.

    A rounded threshold may be higher, and then has a lower recall than the guarantee says.
    """
    if float(f"{threshold:.4g}") == threshold:
        return []
    return [f"unrounded, as for certree predict: --threshold {threshold!r}"]


def parse_choice(
    costs: tuple[float, float] | None,
    recall: float | None,
    precision: float | None,
    thresholds: Sequence[float] | None,
) -> ThresholdChoice | None:
    """Return how thresholds are chosen by the options of a command; None if none is used.

    Parameters
    ----------
    costs : pair of float or None
        Value of --threshold-cost: cost of a missed row of the positive class, and of a false alarm.
        As for the other arguments, None: the option is not used.
    recall, precision : float or None
        Values of --recall and --precision: smallest certified recall or precision.
    thresholds : sequence of float or None
        Values of --threshold: thresholds that the output lists with their limits.

    Returns
    -------
    ThresholdChoice or None
        The criteria by which thresholds are chosen, and the thresholds to list.

    Raises
    ------
    ValueError
        If a threshold is not in [0, 1], or a recall or precision not between 0 and 1.
    """
    for threshold in thresholds or []:
        expect_threshold(threshold)
    for name, least in (("recall", recall), ("precision", precision)):
        if least is not None:
            expect_certified_rate(name, least)
    criteria: dict[str, tuple[float, ...] | None] = {
        "lowest_cost": costs,
        "highest_threshold": None if recall is None else (recall,),
        "highest_recall": None if precision is None else (precision,),
    }
    used = {name: arguments for name, arguments in criteria.items() if arguments is not None}
    return ThresholdChoice(used, thresholds or []) if used or thresholds else None
