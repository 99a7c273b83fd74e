"""How many rows train a model that the others certify."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from certree.certificates.model_selection import PILOT, CurvePoint, fraction_to_train
from certree.rows.training import Training


def rows_to_train(
    train_size: Literal["auto"] | float,
    delta: float,
    dealt: Callable[[float], Training],
    learning_curve: Callable[[Training], Sequence[CurvePoint]],
    **expected: float,
) -> tuple[Training, float]:
    """Reveal rows to a model until it is time to stop, and keep the others to certify it.

    Parameters
    ----------
    train_size : "auto" or float
        Share of the rows, or groups, that train; "auto": by the learning curve of a pilot.
    delta : float
        Probability with which the certificate may fail.
    dealt : callable
        Deals the rows so that such a share of them trains; a larger share holds all of a smaller one.
    learning_curve : callable
        What models of parts of the training samples get wrong.
    **expected
        Complexity and exponent of `fraction_to_train`.

    Returns
    -------
    training : Training
        The rows.
    share : float
        What share of them trains.
    """
    if not isinstance(train_size, str):
        return dealt(float(train_size)), float(train_size)
    pilot = dealt(PILOT)
    groups = pilot.sides.groups
    n_units = len(pilot.y) if groups is None else len(np.unique(groups))
    curve = learning_curve(pilot)
    share = fraction_to_train(curve, n_units, delta, groups is not None, **expected)
    return pilot if share == PILOT else dealt(share), share
