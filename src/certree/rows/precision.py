"""Warn where float32 rounds values past thresholds."""

import warnings
from collections.abc import Sequence


def warn_of_float32(names: Sequence[str], rounded_by: str, remedy: str) -> None:
    """Warn that float32 moves values of some features past thresholds of a model.

    Parameters
    ----------
    names : sequence of str
        Features whose thresholds lie between values that are one number of float32; if there are
        none, nothing is warned of.
    rounded_by : str
        What rounds rows to float32; the message starts with it.
    remedy : str
        What keeps the digits; the message ends with it.
    """
    if not len(names):
        return
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    features = "feature" if len(names) == 1 else f"{len(names)} features"
    warnings.warn(
        f"{rounded_by}, but the model compares values of the {features} {shown} that float32 does not "
        f"tell apart: rows may get other predictions than in float64. {remedy}",
        UserWarning,
        stacklevel=2,
    )
