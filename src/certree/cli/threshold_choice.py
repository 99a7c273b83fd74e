"""Options of certify that choose decision thresholds by their certified rates and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from certree.certificates.thresholds import OperatingPoint, ThresholdGuarantees
from certree.interface.formatting import align_columns

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


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """How a threshold is chosen by its guarantees, and which thresholds a table shows.

    `parse_choice` makes it from the options of the command.

    Parameters
    ----------
    name : {"lowest_cost", "highest_threshold", "highest_recall"} or None
        Method of `ThresholdGuarantees` that chooses the threshold; None: none is chosen.
    arguments : tuple of float
        Arguments of the method: two costs, the smallest recall, or the smallest precision.
    thresholds : sequence of float
        Thresholds of the table; empty: up to ten that the guarantees choose.
    """

    name: str | None
    arguments: tuple[float, ...]
    thresholds: Sequence[float]

    def find_point(self, guarantees: ThresholdGuarantees) -> OperatingPoint | None:
        """Return the chosen threshold with its limits; None if none is to be chosen.

        guarantees: the limits at all thresholds. Raise ValueError if no threshold has the wanted
        recall or precision.
        """
        if self.name is None:
            return None
        choose: Callable[..., OperatingPoint] = getattr(guarantees, self.name)
        return choose(*self.arguments)

    def find_point_or_reason(self, guarantees: ThresholdGuarantees) -> OperatingPoint | str | None:
        """Return the same as `find_point`, but the message of the error instead of raising it."""
        try:
            return self.find_point(guarantees)
        except ValueError as error:
            return str(error)

    def format(self, guarantees: ThresholdGuarantees) -> str:
        """Return a table of thresholds and the chosen one as text, then those of each group.

        guarantees: the limits at all thresholds, of all rows and of each group. Raise ValueError
        if no threshold has the wanted recall or precision; for a group the text says so.
        """
        point = self.find_point(guarantees)
        head, lines = guarantees.table(self.thresholds or None)
        texts = [guarantees.title, *align_columns([head, *lines])]
        texts += [] if point is None else [str(point), *_state_exactly(point.threshold)]
        for name, group in guarantees.groups.items():
            found = self.find_point_or_reason(group)
            shown = [group.at(threshold) for threshold in self.thresholds]
            texts += [f"{name}: {one}" for one in (*shown, found) if one is not None]
        return "\n".join(texts)


def _state_exactly(threshold: float) -> list[str]:
    """Return a line with all digits of a threshold; no line if its four printed digits are all.

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
        --threshold-cost: cost of a missed row of the positive class, and of a false alarm.
    recall, precision : float or None
        --recall and --precision: smallest certified recall or precision.
    thresholds : sequence of float or None
        --threshold: thresholds of the table.

    Raises
    ------
    ValueError
        If more than one of the first three is used, or a threshold is not in [0, 1].
    """
    for threshold in thresholds or []:
        if not 0 <= threshold <= 1:
            raise ValueError(f"--threshold must lie in [0, 1], got {threshold}")
    ways = {
        "lowest_cost": costs,
        "highest_threshold": None if recall is None else (recall,),
        "highest_recall": None if precision is None else (precision,),
    }
    used = [(name, arguments) for name, arguments in ways.items() if arguments is not None]
    if len(used) > 1:
        raise ValueError(
            "--threshold-cost, --recall and --precision each choose a threshold: give one of them"
        )
    if not used:
        return ThresholdChoice(None, (), thresholds) if thresholds else None
    return ThresholdChoice(*used[0], thresholds or [])
