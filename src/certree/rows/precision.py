"""Warn if float32 rounds values across thresholds of a model."""

import warnings
from collections.abc import Sequence


def warn_of_float32(names: Sequence[str], rounded_by: str, remedy: str) -> None:
    """Warn that float32 may send values of some features to the wrong side of a threshold.

    Parameters
    ----------
    names : sequence of str
        Features with a threshold between two float64 values that round to one float32 number.
        Without such features there is no warning.
    rounded_by : str
        Where rows are rounded to float32, such as "X holds float32"; the message starts with it.
    remedy : str
        What to do instead, a sentence; the message ends with it.
    """
    if not len(names):
        return
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    features = "feature" if len(names) == 1 else f"{len(names)} features"
    warnings.warn(
        f"{rounded_by}, but the model compares values of the {features} {shown} that float32 does not "
        f"distinguish: rows may get other predictions than in float64. {remedy}",
        UserWarning,
        stacklevel=2,
    )
