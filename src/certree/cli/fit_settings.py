"""Settings of a fit from the command line: parameters, constraints, weights, groups and test set."""

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from certree.interface.parameter_aliases import check_for_aliases
from certree.rows.time_order import RowTimes
from certree.tables.column_names import join_names, suggest_names

# Parameters that --set does not take, and what sets them instead.
_SET_ELSEWHERE = {
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "verbose": "--quiet",
    "categorical_features": "string columns of the table",
    "monotonic_cst": "--increasing and --decreasing",
}


def parse_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse the values of the option --set into parameters of an estimator.

    Parameters
    ----------
    assignments : sequence of str
        Texts such as "learning_rate=.05", one for each use of the option.

    Returns
    -------
    dict
        Values by parameter name. A value is a Python literal (number, list, True, None), or else
        the text.

    Raises
    ------
    ValueError
        If a text is not NAME=VALUE, or a name occurs twice.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        name = name.strip()
        if not sign or not name:
            raise ValueError(f"--set must be NAME=VALUE, such as max_depth=4, got {assignment!r}")
        if name in settings:
            raise ValueError(f"--set {name} is given twice: give it once")
        settings[name] = _parse_value(value.strip())
    return settings


def _parse_value(text: str) -> Any:
    """Parse a text as a Python literal, such as a number or list; return other text unchanged."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def apply_settings(model: Any, settings: dict[str, Any], used_options: Sequence[str]) -> None:
    """Set parameters of a model from --set; refuse those that another option of the command sets.

    Parameters
    ----------
    model : estimator
        Changed in place.
    settings : dict of str to object
        Values of parameters by name: numbers, lists, True, None or texts, as from `parse_settings`.
    used_options : sequence of str
        Parameters that the user has set by options of their own, such as "delta" by --delta, or
        "grower__max_leaf_nodes" by --max-leaf-nodes.

    Raises
    ------
    ValueError
        If another option sets a parameter, or the model has no such parameter.
    TypeError
        If another library uses this name for a parameter; the message gives certree's name.
    """
    parameters = list(model.get_params(deep=False))
    for name in settings:
        outer = name.partition("__")[0]
        if name in _SET_ELSEWHERE and name in parameters:
            raise ValueError(f"--set does not take {name}: use {_SET_ELSEWHERE[name]}")
        for used in used_options:
            # A new grower would drop what an option has set in the old one.
            if used == name or used.startswith(f"{name}__"):
                option = used.rpartition("__")[2].replace("_", "-")
                raise ValueError(f"--set {name} and --{option} set the same parameter: give one")
        if outer not in parameters:
            check_for_aliases(model, [name], parameters)
            raise ValueError(
                f"--set must name a parameter of {type(model).__name__}, got {name!r}: name one of "
                f"{join_names(parameters)}"
            )
    model.set_params(**settings)


def set_monotonic_constraints(
    model: Any, increasing: Sequence[str], decreasing: Sequence[str], features: Sequence[str]
) -> None:
    """Set `monotonic_cst` of a model from names of features.

    Parameters
    ----------
    model : estimator
        Changed in place, unless both lists are empty.
    increasing, decreasing : sequence of str
        Features along which predictions must not fall, and must not rise.
    features : sequence of str
        All features, in the order of the table.

    Raises
    ------
    ValueError
        If the model has no `monotonic_cst`, a feature does not exist, or one is in both lists.
    """
    if not increasing and not decreasing:
        return
    if "monotonic_cst" not in model.get_params(deep=False):
        raise ValueError(
            f"--increasing and --decreasing are not for {type(model).__name__}, which has no "
            "monotonic constraints: leave them out, or choose another --model"
        )
    for option, chosen in (("--increasing", increasing), ("--decreasing", decreasing)):
        if missing := [name for name in chosen if name not in features]:
            raise ValueError(
                f"{option} must name features, but there is no feature {missing[0]!r}: "
                f"{suggest_names(missing[0], features)}"
            )
    if both := set(increasing) & set(decreasing):
        raise ValueError(f"--increasing and --decreasing both name {min(both)!r}: give one")
    signs = [(name in increasing) - (name in decreasing) for name in features]
    model.set_params(monotonic_cst=signs)


def collect_fit_arguments(
    model: Any, columns: Sequence[Any], order: tuple[str | None, int, bool]
) -> dict[str, Any]:
    """Collect the keyword arguments of ``model.fit`` that options of the command set.

    Parameters
    ----------
    model : estimator
        The model to be fitted.
    columns : sequence of two (ndarray of shape (n,), str or None)
        Weight and group of each row, or names of these columns in a folder of tables; None if not
        used.
    order : tuple of (str or None, int, bool)
        Column of the rows' times, None if not used; number of rows to leave out between earlier and
        later rows; and whether rows with times are independent draws from one period.

    Returns
    -------
    dict of str to object
        The arguments that are used, by name: "sample_weight", "groups", "time", "gap",
        "independent".

    Raises
    ------
    ValueError
        If the model's `fit` does not take one of these arguments, or there are no times for a gap
        or independence.
    """
    names = "sample_weight", "groups", "time", "gap", "independent"
    time, gap, independent = order
    values = zip(names, (*columns, time, gap or None, independent or None), strict=True)
    arguments = {name: value for name, value in values if value is not None}
    options = {name: f"--{name}" for name in arguments} | {"sample_weight": "--weights"}
    for name in ("gap", "independent"):
        if name in arguments and time is None:
            raise ValueError(f"--{name} describes rows in time order: give --time COLUMN as well")
    for name in arguments:
        if not has_fit_parameter(model, name):
            raise ValueError(f"{options[name]} is not for {type(model).__name__}: leave it out")
    return arguments


def split_rows(
    n: int,
    test_size: float,
    seed: int,
    groups: NDArray[Any] | None,
    times: RowTimes | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split n rows into a training and a test set, at random or by time; groups stay together.

    Parameters
    ----------
    n : int
        Number of rows.
    test_size : float
        Fraction of the rows, or of the groups, in the test set.
    seed : int
        Seed of the draw.
    groups : ndarray of shape (n,), or None
        Group of each row; None: each row by itself.
    times : RowTimes or None
        Times of the rows, of which the latest are the test set; None: the split is random.

    Returns
    -------
    train, test : ndarray of int
        Indices of the rows of each set; together all n rows, unless times have a gap. One may be
        empty if there are few groups.
    """
    if times is not None:
        n_units = n if groups is None else len(np.unique(groups))
        earlier, latest = times.split_latest(round(test_size * n_units), groups)
        return np.flatnonzero(earlier), np.flatnonzero(latest)
    random = np.random.default_rng(seed)
    if groups is None:
        order = random.permutation(n)
        n_test = round(test_size * n)
        return order[n_test:], order[:n_test]
    names, codes = np.unique(groups, return_inverse=True)
    test_groups = random.permutation(len(names))[: round(test_size * len(names))]
    is_test = np.isin(codes, test_groups)
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
