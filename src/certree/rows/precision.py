"""Warn if float32 rounds values across thresholds of a model."""

import warnings
from collections.abc import Sequence


def warn_of_float32(names: Sequence[str], rounded_by: str, remedy: str) -> None:
    """Issue a UserWarning that float32 may send rows to the wrong side of a threshold.

    Parameters
    ----------
    names : sequence of str
        Names of the affected features: those that a tree splits between two float64 values that
        become the same number in float32. If it is empty, there is no warning.
    rounded_by : str
        What rounds rows to float32, such as "X holds float32"; the warning starts with it.
    remedy : str
        What to do instead, as a sentence; the warning ends with it.
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
