"""What the command line says of a fit beside its rows: parameters, slopes, weights and groups."""

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from certree.files.tables import listed
from certree.interface.parameter_aliases import check_for_aliases

# Parameters that other options, or the table, say.
_ELSEWHERE = {
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "verbose": "--quiet",
    "categorical_features": "columns of strings",
    "monotonic_cst": "--increasing and --decreasing",
}


def settings_of(given: Sequence[str]) -> dict[str, Any]:
    """Parameters by their names, of words such as ``learning_rate=.05``.

    Values are read as Python writes numbers, lists, True and None; all others are strings.
    """
    found: dict[str, Any] = {}
    for words in given:
        name, sign, value = words.partition("=")
        name = name.strip()
        if not sign or not name:
            raise ValueError(f"expected --set NAME=VALUE, such as max_depth=4, got {words!r}")
        if name in found:
            raise ValueError(f"--set {name} is given twice")
        found[name] = _value(value.strip())
    return found


def _value(words: str) -> Any:
    try:
        return ast.literal_eval(words)
    except (ValueError, SyntaxError):
        return words


def set_all(model: Any, settings: dict[str, Any], options: Sequence[str]) -> None:
    """Set parameters of a model that no other option says.

    Raises
    ------
    ValueError
        If another option says one, or the model has none of that name.
    TypeError
        If it has the name of another library.
    """
    known = list(model.get_params(deep=False))
    for name in settings:
        outer = name.partition("__")[0]
        if name in _ELSEWHERE and name in known:
            raise ValueError(f"--set {name} is said by {_ELSEWHERE[name]}")
        if name in options:
            raise ValueError(f"--set {name} and --{name.replace('_', '-')} say the same")
        if outer not in known:
            check_for_aliases(model, [name], known)
            kind = type(model).__name__
            raise ValueError(f"{kind} has no parameter {name!r}; there are {listed(known)}")
    model.set_params(**settings)


def set_slopes(
    model: Any, increasing: Sequence[str], decreasing: Sequence[str], features: Sequence[str]
) -> None:
    """Let predictions rise and fall along features, by the names of columns.

    Raises
    ------
    ValueError
        If the model keeps no slopes, there is no such feature, or one is to rise and to fall.
    """
    if not increasing and not decreasing:
        return
    if "monotonic_cst" not in model.get_params(deep=False):
        raise ValueError(f"{type(model).__name__} keeps no slopes: it has no monotonic_cst")
    if missing := [name for name in (*increasing, *decreasing) if name not in features]:
        raise ValueError(
            f"no feature {missing[0]!r} to rise or fall along; there are {listed(features)}"
        )
    if both := set(increasing) & set(decreasing):
        raise ValueError(f"predictions cannot rise and fall along {min(both)!r}")
    slopes = [(name in increasing) - (name in decreasing) for name in features]
    model.set_params(monotonic_cst=slopes)


def rows_say(model: Any, weights: Any, groups: Any) -> dict[str, Any]:
    """What columns, or their names, say of the rows of a fit, by the names of its arguments."""
    given = {"sample_weight": weights, "groups": groups}
    flags = {"sample_weight": "--weights", "groups": "--groups"}
    found = {name: values for name, values in given.items() if values is not None}
    for name in found:
        if not has_fit_parameter(model, name):
            raise ValueError(f"{flags[name]} is not for {type(model).__name__}")
    return found


def held_out_rows(
    n: int, share: float, seed: int, groups: NDArray[Any] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that judge and rows that grow, in a random order; groups stay whole."""
    random = np.random.default_rng(seed)
    if groups is None:
        order = random.permutation(n)
        return order[: round(share * n)], order[round(share * n) :]
    names, place = np.unique(groups, return_inverse=True)
    judging = random.permutation(len(names))[: round(share * len(names))]
    is_judge = np.isin(place, judging)
    return np.flatnonzero(is_judge), np.flatnonzero(~is_judge)
