"""Fit boosted trees to one fold as TabArena asks, without its packages."""

from typing import Any

import numpy as np

from certree import BoostedTreesClassifier, BoostedTreesRegressor

# Fraction of the time limit that rounds may take; the rest is for checks and predictions.
TIME_FRACTION = 0.95
# Early stopping ends nearly all fits before.
MOST_ROUNDS = 5000
N_ITER_NO_CHANGE = 50


def fit_fold(
    problem_type: str,
    parameters: dict[str, Any],
    training: tuple[Any, Any],
    validation: tuple[Any, Any] | None = None,
    *,
    time_limit: float | None = None,
    n_jobs: int = 1,
) -> Any:
    """Fit boosted trees to the training rows of a fold; its validation rows end the rounds.

    Parameters
    ----------
    problem_type : {"binary", "multiclass", "regression"}
        Kind of the target.
    parameters : dict
        Constructor parameters of the model.
    training : tuple of X and y
        Training rows: a data frame, and the targets.
    validation : tuple of X and y, or None
        Validation rows. None: nothing ends the rounds, whose number is the parameter `max_iter`, or
        that of quality "fast", as no rows may be held out from the training rows.
    time_limit : float or None
        Seconds that the fit may take; None: no limit.
    n_jobs : int
        Number of threads.

    Returns
    -------
    BoostedTreesClassifier or BoostedTreesRegressor
        The fitted model.

    Raises
    ------
    ValueError
        If the problem type is another one.
    """
    kinds = {
        "binary": BoostedTreesClassifier,
        "multiclass": BoostedTreesClassifier,
        "regression": BoostedTreesRegressor,
    }
    if problem_type not in kinds:
        raise ValueError(f"problem_type must be one of {', '.join(kinds)}, got {problem_type!r}")
    options = {"n_jobs": n_jobs, **parameters}
    if time_limit is not None:
        options["max_time"] = TIME_FRACTION * time_limit
    if validation is not None and problem_type != "regression":
        validation = _drop_unknown_classes(*validation, training[1])
    if validation is None:
        if options.get("max_iter", "auto") == "auto":
            options["quality"] = "fast"
        return kinds[problem_type](**options).fit(*training)
    stopping = {
        "early_stopping": True,
        "max_iter": MOST_ROUNDS,
        "n_iter_no_change": N_ITER_NO_CHANGE,
    }
    model = kinds[problem_type](**stopping | options)
    return model.fit(*training, X_val=validation[0], y_val=validation[1])


def _drop_unknown_classes(X: Any, y: Any, y_train: Any) -> tuple[Any, Any] | None:
    """Return validation rows of the classes that training rows have; None if none are left.

    y_train: classes of the training rows.
    """
    is_known = np.isin(np.asarray(y), np.asarray(y_train))
    return (X[is_known], y[is_known]) if is_known.any() else None
