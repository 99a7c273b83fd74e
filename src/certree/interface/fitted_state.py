"""Atomic fits, and methods that read one consistent state of a fitted model.

A fit works on a copy of its estimator, whose attributes replace those of the estimator in a single step
at the end. A fit that fails or is interrupted changes nothing. A method that reads a fit works on
a snapshot: if another thread fits the model at the same time, the result comes from the old fit or from
the new one, never from both.

Parameters that are set after a fit are for the next fit. The model keeps the parameters of its fit in
`_fitted_with`, and snapshots have these.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from copy import copy
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import metaestimators

Model = TypeVar("Model")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


# Parameters that do not change results; a new value is used from then on, without another fit.
_READ_AFTER_FIT = frozenset({"n_jobs", "verbose"})


# Categories of warnings of the running fit, with those of its members. None: no fit is running.
_warned: ContextVar[set[type[Warning]] | None] = ContextVar("warned", default=None)


def is_first_in_fit(category: type[Warning]) -> bool:
    """Return whether this is the first warning of a category in the running fit, and record it.

    Fits of members, such as the learners of `AdaBoostTreeClassifier`, are part of the outermost fit.
    Outside of a fit every call returns True.
    """
    warned = _warned.get()
    if warned is None:
        return True
    is_first = category not in warned
    warned.add(category)
    return is_first


def _make_twin(model: Model, state: dict[str, Any]) -> Model:
    """Return an object of the same class with these attributes."""
    twin = object.__new__(type(model))
    twin.__dict__ = state
    return twin


def get_snapshot(model: Model) -> Model:
    """Return a shallow copy of a model with the parameters of its fit; later fits do not change it."""
    # Shallow is enough: a fit replaces attributes, and changes none in place.
    state = model.__dict__
    return _make_twin(model, {**state, **state.get("_fitted_with", {})})


def keep_parameters(model: Any) -> None:
    """Store the present parameters of a model as those of its fit; see `get_snapshot`."""
    parameters = model.get_params(deep=False).items()
    model._fitted_with = {
        name: _copy_parameter(value) for name, value in parameters if name not in _READ_AFTER_FIT
    }


def _copy_parameter(value: Any) -> Any:
    """Return a copy of a parameter that the caller could change in place; others are returned as is."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return clone(value)
    can_change = isinstance(value, list | dict) or hasattr(value, "__array__")
    return copy(value) if can_change else value


def check_parameters_of_fit(
    model: Any,
    *may_change: str,
    adds: str = "warm_start=True",
    anew: str = " with warm_start=False",
) -> None:
    """Raise ValueError if parameters have changed since the fit that is now to be extended.

    Parameters
    ----------
    model : estimator
        A fitted model.
    may_change : str
        Names of parameters that may have changed.
    adds : str
        The parameter or method that extends the fit, for the message.
    anew : str
        How to fit anew, for the message.
    """
    parameters = {name: getattr(model, name) for name in model._fitted_with}
    for name, before, value in _find_differences(model._fitted_with, parameters, may_change):
        raise ValueError(
            f"{name} must be {before!r}, as in the fit to which {adds} adds, got "
            f"{value!r}: set it back, or fit anew{anew}"
        )


def check_same_parameters(model: Any, other: Any, *may_differ: str) -> None:
    """Raise ValueError if two models were fitted with different parameters."""
    for name, one, two in _find_differences(model._fitted_with, other._fitted_with, may_differ):
        raise ValueError(
            f"both fits must be made with the same parameters, got {name}={one!r} and {name}={two!r}"
        )


def _find_differences(
    parameters: dict[str, Any], others: dict[str, Any], ignored: tuple[str, ...]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parameters with different values, as name and both values."""
    for name, value in parameters.items():
        if name not in ignored and not _are_equal(value, others[name]):
            yield name, value, others[name]


def _are_equal(one: Any, other: Any) -> bool:
    """Return whether two values of a parameter are equal; estimators are, if all parameters are."""
    if one is other:
        return True
    if hasattr(one, "get_params") and type(one) is type(other):
        others = other.get_params(deep=False)
        parameters = one.get_params(deep=False).items()
        return all(_are_equal(value, others[name]) for name, value in parameters)
    if hasattr(one, "__array__") or hasattr(other, "__array__"):
        return np.array_equal(one, other)
    if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
        return all(map(_are_equal, one, other))
    return bool(one == other)


def atomic_fit(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Decorate a method that fits: it sets all attributes in one step at its end, or none."""

    @wraps(fit)
    def fit_atomically(self: Model, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Model:
        twin = _make_twin(self, self.__dict__.copy())
        outermost = _warned.set(set()) if _warned.get() is None else None
        try:
            fit(twin, *args, **kwargs)
        finally:
            if outermost is not None:
                _warned.reset(outermost)
        keep_parameters(twin)
        self.__dict__ = twin.__dict__
        return self

    return fit_atomically


def fit_method(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Decorate a method that fits: it validates parameters first, and is an `atomic_fit`.

    Estimators that are fitted inside do not validate their parameters again.
    """
    return _decorate_fit(fit, True)


def meta_fit_method(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Do `fit_method` for a model whose members are estimators that validate their own parameters."""
    return _decorate_fit(fit, False)


def _decorate_fit(
    fit: Callable[Concatenate[Model, Arguments], Model], skip_nested: bool
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Return a fit as an `atomic_fit` that validates parameters first."""
    # scikit-learn's decorator is untyped, and would hide the types of the method.
    decorate: Any = _fit_context(prefer_skip_nested_validation=skip_nested)
    decorated: Callable[Concatenate[Model, Arguments], Model] = decorate(atomic_fit(fit))
    return decorated


def snapshot_method(
    method: Callable[Concatenate[Model, Arguments], Result],
) -> Callable[Concatenate[Model, Arguments], Result]:
    """Decorate a method that reads a fit: `self` is a snapshot, made when it is called."""

    @wraps(method)
    def call_on_snapshot(
        self: Model, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return method(get_snapshot(self), *args, **kwargs)

    return call_on_snapshot


def available_if(has_method: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Decorate a method, which exists if `has_method(model)` is true, and keep its types."""
    decorate: Callable[[Method], Method] = metaestimators.available_if(has_method)
    return decorate


def available_unless(
    why_not: Callable[[Any], str | None],
) -> Callable[[Method], Method]:
    """Decorate a method: it exists unless `why_not(model)` returns a reason, which the error states."""

    def decorate(method: Method) -> Method:
        descriptor: Any = _AvailableUnless(method, why_not)
        return cast(Method, descriptor)

    return decorate


class _AvailableUnless:
    """Descriptor of a method that exists unless there is a reason against it.

    scikit-learn's `available_if` would hide the reason behind its own error.
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


def check_one_target(caller: str, model: Any) -> None:
    """Raise ValueError if a model, of certree or scikit-learn, has several targets.

    The message begins with the caller, such as "a picture of a tree".
    """
    classes = getattr(model, "classes_", None)
    are_several = isinstance(classes, list) and any(np.ndim(labels) for labels in classes)
    n = getattr(model, "n_outputs_", 1) if classes is None else len(classes)
    if are_several or (classes is None and n > 1):
        kind = "Regressor" if classes is None else "Classifier"
        raise ValueError(
            f"{caller} takes a model of one target, got {type(model).__name__} of {n}: "
            f"sklearn.multioutput.MultiOutput{kind} fits one model for each column"
        )
