"""Atomic fits, and methods that read one consistent state of a fitted model.

A fit works on a copy of its estimator, whose attributes replace those of the estimator in a single
step at the end. A fit that fails or is interrupted changes nothing. A method that reads a fit works
on a snapshot: if another thread fits the model at the same time, the result comes from the old fit
or from the new one, never from both.

Parameters that are set after a fit are for the next fit. The model keeps the parameters of its fit
in `_fitted_with`, and snapshots have these.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from copy import copy
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import metaestimators

from certree.interface.signatures import expect_error_probability

Model = TypeVar("Model")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


# Parameters that do not change results; a new value is used from then on, without another fit.
_READ_AFTER_FIT = frozenset({"n_jobs", "verbose"})


# Private attribute of models that were fitted with groups: the name of their column, "" if unknown.
GROUPS_ATTRIBUTE = "_groups_column"
# Private attribute of models that were fitted to rows in time order: the name of the column of times.
TIME_ATTRIBUTE = "_time_column"
# Private attribute of models that were fitted to one row of each group: the name of the groups' column.
DRAWN_GROUPS_ATTRIBUTE = "_drawn_groups_column"


# Categories of warnings of the running fit, with those of its members. None: no fit is running.
_warned: ContextVar[set[type[Warning]] | None] = ContextVar("warned", default=None)


def is_first_in_fit(category: type[Warning]) -> bool:
    """Return whether a warning is the first of its category in the running fit.

    The category is recorded, so that later calls in the same fit return False. Fits of ensemble
    members, such as the trees of `AdaBoostTreeClassifier`, belong to the outermost fit. If no fit
    is running, nothing is recorded, and every call returns True.

    category: class of the warning, such as UserWarning.
    """
    warned = _warned.get()
    if warned is None:
        return True
    is_first = category not in warned
    warned.add(category)
    return is_first


def _make_with_attributes(model: Model, state: dict[str, Any]) -> Model:
    """Return a new object of the class of `model`, whose attributes are the dictionary `state`.

    The constructor is not called, and the dictionary is not copied: the object changes with it.
    """
    copied = object.__new__(type(model))
    copied.__dict__ = state
    return copied


def get_snapshot(model: Model) -> Model:
    """Return a shallow copy of a model, with the parameter values of its last fit.

    These values come from the model's attribute `_fitted_with`; before the first fit the copy has
    the present values. Parameters that were set after the fit do not appear in it, except n_jobs
    and verbose. Later fits of the model do not change the copy.
    """
    # Shallow is enough: a fit replaces attributes, and changes none in place.
    state = model.__dict__
    return _make_with_attributes(model, {**state, **state.get("_fitted_with", {})})


def keep_parameters(model: Any) -> None:
    """Store copies of the present parameter values of a model in its attribute `_fitted_with`.

    The attribute is a dict of values by name. `atomic_fit` calls this function at the end of a fit;
    `get_snapshot` reads the values. n_jobs and verbose are not stored.
    """
    parameters = model.get_params(deep=False).items()
    model._fitted_with = {
        name: _copy_parameter(value) for name, value in parameters if name not in _READ_AFTER_FIT
    }


def _copy_parameter(value: Any) -> Any:
    """Return a parameter value, copied if the caller could change it in place.

    Estimators are cloned; lists, dictionaries and arrays are copied; other values are returned
    unchanged.
    """
    if hasattr(value, "get_params") and not isinstance(value, type):
        return clone(value)
    can_change = isinstance(value, list | dict) or hasattr(value, "__array__")
    return copy(value) if can_change else value


def check_parameters_of_fit(
    model: Any,
    *may_change: str,
    extension: str = "warm_start=True",
    refit_hint: str = " with warm_start=False",
) -> None:
    """Raise ValueError if parameters have changed since a fit that is about to be extended.

    Parameters
    ----------
    model : estimator
        The fitted model, whose present parameters are compared with those of its fit, which are in
        its attribute `_fitted_with`.
    *may_change : str
        Names of parameters that may have changed.
    extension : str
        What extends the fit, for the message: the setting "warm_start=True", or the name of a
        method.
    refit_hint : str
        End of the message, which says how to fit from the start: text that begins with a space, or
        "".

    Raises
    ------
    ValueError
        If another parameter has changed; the message names it, with both values.
    """
    parameters = {name: getattr(model, name) for name in model._fitted_with}
    for name, before, value in _find_differences(model._fitted_with, parameters, may_change):
        raise ValueError(
            f"{name} must be {before!r}, as in the fit to which {extension} adds rows or trees, got "
            f"{value!r}: set it back, or fit the model anew{refit_hint}"
        )


def check_same_parameters(model: Any, other: Any, *may_differ: str) -> None:
    """Raise ValueError if two fitted models were fitted with different parameters.

    model, other: the models, of one class; may_differ: names of parameters that may differ. The
    message names the first other parameter, with both values.
    """
    for name, value, other_value in _find_differences(
        model._fitted_with, other._fitted_with, may_differ
    ):
        raise ValueError(
            f"other must have been fitted with {name}={value!r}, as the model itself, got "
            f"{name}={other_value!r}"
        )


def _find_differences(
    parameters: dict[str, Any], others: dict[str, Any], ignored: tuple[str, ...]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, first value and second value of each parameter that differs between two dictionaries.

    parameters, others: two dictionaries of values by name, with the same names; ignored: names that
    are not compared.
    """
    for name, value in parameters.items():
        if name not in ignored and not _are_equal(value, others[name]):
            yield name, value, others[name]


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two values of a parameter are equal.

    first, second: the two values, of any types. Estimators are equal if they have the same class
    and equal parameters; arrays, lists and tuples if their entries are equal.
    """
    if first is second:
        return True
    if hasattr(first, "get_params") and type(first) is type(second):
        others = second.get_params(deep=False)
        parameters = first.get_params(deep=False).items()
        return all(_are_equal(value, others[name]) for name, value in parameters)
    if hasattr(first, "__array__") or hasattr(second, "__array__"):
        return np.array_equal(first, second)
    if (
        isinstance(first, list | tuple)
        and type(first) is type(second)
        and len(first) == len(second)
    ):
        return all(map(_are_equal, first, second))
    return bool(first == second)


def atomic_fit(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Decorate a method that fits and returns its model: it changes all attributes at its end, or none.

    The method runs on a copy of the model, whose attributes replace those of the model in one step.
    If it raises, the model does not change. At the end copies of the parameter values are stored in
    the attribute `_fitted_with`. Before the fit, a ValueError is raised if the model has a parameter
    `delta`, the probability with which its guarantee may fail, above 0.5. fit: the undecorated
    method.
    """

    @wraps(fit)
    def fit_atomically(self: Model, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Model:
        if (delta := getattr(self, "delta", None)) is not None:
            expect_error_probability(delta)
        copied = _make_with_attributes(self, self.__dict__.copy())
        # An interrupt may come anywhere, so that the fit sets the variable in a context of its own.
        context = copy_context()
        if _warned.get() is None:
            context.run(_warned.set, set())
        context.run(fit, copied, *args, **kwargs)
        keep_parameters(copied)
        self.__dict__ = copied.__dict__
        return self

    return fit_atomically


def fit_method(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Decorate a method that fits and returns its model: check parameters, then fit atomically.

    Values are checked by the attribute `_parameter_constraints` of the model's class, as
    scikit-learn does; InvalidParameterError is raised. A parameter `delta`, the probability with
    which a guarantee may fail, raises ValueError if it is above 0.5. Estimators that the method fits
    as components of the model do not check their own parameters again. A fit that raises changes no
    attribute of the model. fit: the undecorated method.
    """
    return _decorate_fit(fit, True)


def meta_fit_method(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Decorate a method that fits a meta-estimator: check all parameters, then fit atomically.

    A fit that raises changes no attribute of the model. The decorator is `fit_method` for models
    with estimators as parameters, such as `estimator`: when the method fits these, they check their
    own parameter values, too. fit: the undecorated method.
    """
    return _decorate_fit(fit, False)


def _decorate_fit(
    fit: Callable[Concatenate[Model, Arguments], Model], skip_nested: bool
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Return a method that checks parameter values and then fits atomically.

    Atomically: a fit that raises changes no attribute of the model. Values are checked by the
    attribute `_parameter_constraints` of its class, as scikit-learn does. fit: the undecorated
    method; skip_nested: whether estimators that it fits as components of the model skip the check
    of their parameters.
    """
    # scikit-learn's decorator is untyped, and would hide the types of the method.
    decorate: Any = _fit_context(prefer_skip_nested_validation=skip_nested)
    decorated: Callable[Concatenate[Model, Arguments], Model] = decorate(atomic_fit(fit))
    return decorated


def snapshot_method(
    method: Callable[Concatenate[Model, Arguments], Result],
) -> Callable[Concatenate[Model, Arguments], Result]:
    """Decorate a method that reads a fitted model, so that a fit in another thread cannot interfere.

    At each call `self` is a shallow copy of the model at that moment, with the parameters of its
    fit; see `get_snapshot`. Attributes that the method sets are lost. method: the undecorated
    method.
    """

    @wraps(method)
    def call_on_snapshot(
        self: Model, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return method(get_snapshot(self), *args, **kwargs)

    return call_on_snapshot


def available_if(has_method: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Return a decorator for a method that exists only if `has_method(model)` returns True.

    Else access to the method raises AttributeError. It is scikit-learn's `available_if`, annotated
    so that type checkers see the type of the decorated method.
    """
    decorate: Callable[[Method], Method] = metaestimators.available_if(has_method)
    return decorate


def available_unless(
    why_not: Callable[[Any], str | None],
) -> Callable[[Method], Method]:
    """Return a decorator for a method that exists only if `why_not(model)` returns None.

    why_not: function that is called with the model at each access to the method. If it returns a
    reason as text, access raises AttributeError with this reason.
    """

    def decorate(method: Method) -> Method:
        descriptor: Any = _AvailableUnless(method, why_not)
        return cast(Method, descriptor)

    return decorate


class _AvailableUnless:
    """Descriptor of a method that exists only if a function of the model returns None.

    Otherwise access raises AttributeError with the reason that the function returns. Access on the
    class returns the method itself. scikit-learn's `available_if` would hide the reason behind its
    own error.

    Parameters
    ----------
    method : callable
        The method.
    why_not : callable
        Takes the model. Returns None, or the reason why it lacks the method.
    """

    def __init__(self, method: Callable[..., Any], why_not: Callable[[Any], str | None]) -> None:
        self._method, self._why_not = method, why_not
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type) -> Callable[..., Any]:
        if model is None:
            return self._method
        if reason := self._why_not(model):
            name = self._method.__name__
            raise AttributeError(f"{owner.__name__} has no attribute {name!r} here: {reason}")
        return MethodType(self._method, model)


def find_groups_column(model: Any) -> str | None:
    """Return the name of the column with the groups of a model's fit; None if it had no groups.

    Rows of one group, such as one patient, were drawn together. model: a fitted estimator. The name
    is "" if the fit had groups, but the name of their column is unknown, as in fits to arrays. So
    it is if the file of the model is from a version of certree that did not store the name; then the
    model's certificate (its guarantee) shows that there were groups.
    """
    return _find_column(model, GROUPS_ATTRIBUTE, "grouped")


def find_time_column(model: Any) -> str | None:
    """Return the name of the column with the times of a model's fit; None if rows had no times.

    model: a fitted estimator. The name is "" if the rows had times, but the name of their column is
    unknown, as in fits to arrays. So it is if the file of the model is from a version of certree
    that did not store the name; then the model's certificate (its guarantee) names a period.
    """
    return _find_column(model, TIME_ATTRIBUTE, "period")


def find_drawn_groups_column(model: Any) -> str | None:
    """Return the column of the groups of which a model was fitted to one row each; None if to all rows.

    model: a fitted estimator. Its fit got no groups, as rows of different groups are independent.
    """
    return _find_column(model, DRAWN_GROUPS_ATTRIBUTE)


def _find_column(model: Any, attribute: str, field: str = "") -> str | None:
    """Return the name of a column of a fit, which an attribute of the model holds.

    model: the fitted model; attribute: the attribute with the name; field: field of
    `model.certificate_` that is true if the fit had such a column; "" if there is none. If the
    attribute is missing or None, return "" if there is a certificate and the field is true, else
    None.
    """
    column: str | None = getattr(model, "__dict__", {}).get(attribute)
    if column is None and field and getattr(getattr(model, "certificate_", None), field, None):
        return ""
    return column


def name_groups_column(model: Any, column: str | None) -> None:
    """Store in a fitted model the name of the column with the groups of its rows.

    model: a fitted estimator, which is changed if it was fitted with groups; column: the name, or
    None to change nothing.
    """
    if column is not None and find_groups_column(model) is not None:
        setattr(model, GROUPS_ATTRIBUTE, column)


def name_drawn_groups_column(model: Any, column: str | None) -> None:
    """Store in a fitted model the column of the groups of which its fit had one row each.

    model: a fitted estimator, which is changed; column: the name, or None to change nothing.
    """
    if column is not None:
        setattr(model, DRAWN_GROUPS_ATTRIBUTE, column)


def expect_rows(n: int, purpose: str) -> None:
    """Raise ValueError if there are no rows to evaluate or to certify a model by.

    n: number of rows; purpose: what the rows are needed for, such as "certify a model", for the
    message.
    """
    if not n:
        raise ValueError(
            f"X and y must hold at least one row to {purpose}, got 0 rows: pass rows with known "
            "targets, and leave out empty batches"
        )


def check_one_target(caller: str, model: Any) -> None:
    """Raise ValueError if a fitted model, of certree or scikit-learn, has several targets.

    caller: what needs a single target, the beginning of the message, such as "a picture of a tree";
    model: the fitted model.
    """
    classes = getattr(model, "classes_", None)
    are_several = isinstance(classes, list) and any(np.ndim(labels) for labels in classes)
    n = getattr(model, "n_outputs_", 1) if classes is None else len(classes)
    if are_several or (classes is None and n > 1):
        kind = "Regressor" if classes is None else "Classifier"
        raise ValueError(
            f"{caller} needs a model with one target, got {type(model).__name__} with {n} "
            f"targets: fit one model for each column of y, as sklearn's MultiOutput{kind} does"
        )
