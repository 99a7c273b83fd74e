"""What a fit has made is set at once, and read at once.

A fit works on a twin of its estimator, whose attributes become the estimator's in a single step: a fit
that fails or is interrupted has changed nothing. Who asks a model reads the attributes of one moment:
whatever another thread fits meanwhile, an answer comes from the old fit or from the new one, never from
parts of both.

Parameters that are set after a fit are those of the next one. A fit keeps those that it was made with,
and who asks a model reads these, whatever has become of the parameters since.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from copy import copy
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils.metaestimators import available_if

Model = TypeVar("Model")
Arguments = ParamSpec("Given")
Result = TypeVar("Answer")
Method = TypeVar("Method", bound=Callable[..., Any])


# How a model works, not what it is: whoever sets them means them from then on.
_READ_AFTER_FIT = frozenset({"n_jobs", "verbose"})


# What the running fit has warned of; fits of its members are part of it. None: no fit is running.
_warned: ContextVar[set[type[Warning]] | None] = ContextVar("warned", default=None)


def is_first_in_fit(category: type[Warning]) -> bool:
    """Return whether the running fit warns of a category for the first time, and remember that it does.

    Fits of members, as `AdaBoostTreeClassifier` makes them of its learners, are part of the outermost
    fit. Outside of a fit every call returns True.
    """
    warned = _warned.get()
    if warned is None:
        return True
    is_first = category not in warned
    warned.add(category)
    return is_first


def _twin(model: Model, state: dict[str, Any]) -> Model:
    twin = object.__new__(type(model))
    twin.__dict__ = state
    return twin


def get_snapshot(model: Model) -> Model:
    """Give a model as it is now, with the parameters of its fit, which no later fit changes."""
    # Attributes are not copied: fits put others in their place and leave these as they are.
    state = model.__dict__
    return _twin(model, {**state, **state.get("_fitted_with", {})})


def keep_parameters(model: Any) -> None:
    """Let a model answer by the parameters that it has now, whatever is set later."""
    parameters = model.get_params(deep=False).items()
    model._fitted_with = {
        name: _kept(value) for name, value in parameters if name not in _READ_AFTER_FIT
    }


def _kept(value: Any) -> Any:
    """A parameter that nobody can change from outside; what is given once, like a generator, stays."""
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
    """Refuse to add to a fit that was made with other parameters than the model has now."""
    parameters = {name: getattr(model, name) for name in model._fitted_with}
    for name, before, value in _differing(model._fitted_with, parameters, may_change):
        raise ValueError(
            f"{adds} adds to the fit before, which was made with {name}={before!r}, got "
            f"{name}={value!r}: set it back, or fit anew{anew}"
        )


def check_same_parameters(model: Any, other: Any, *may_differ: str) -> None:
    """Refuse two fits that were made with different parameters."""
    for name, one, two in _differing(model._fitted_with, other._fitted_with, may_differ):
        raise ValueError(
            f"both fits must be made with the same parameters, got {name}={one!r} and {name}={two!r}"
        )


def _differing(
    ones: dict[str, Any], others: dict[str, Any], left_out: tuple[str, ...]
) -> Iterator[tuple[str, Any, Any]]:
    """The parameters that mean different things in two fits, with both values."""
    for name, one in ones.items():
        if name not in left_out and not _are_same(one, others[name]):
            yield name, one, others[name]


def _are_same(one: Any, other: Any) -> bool:
    """Whether two values of a parameter mean the same."""
    if one is other:
        return True
    if hasattr(one, "get_params") and type(one) is type(other):
        parts = one.get_params(deep=False), other.get_params(deep=False)
        return all(_are_same(parts[0][name], parts[1][name]) for name in parts[0])
    if hasattr(one, "__array__") or hasattr(other, "__array__"):
        return np.array_equal(one, other)
    if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
        return all(map(_are_same, one, other))
    return bool(one == other)


def atomic_fit(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Let a method that fits set all attributes at its end, in one step."""

    @wraps(fit)
    def fitted_at_once(self: Model, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Model:
        twin = _twin(self, self.__dict__.copy())
        outermost = _warned.set(set()) if _warned.get() is None else None
        try:
            fit(twin, *args, **kwargs)
        finally:
            if outermost is not None:
                _warned.reset(outermost)
        keep_parameters(twin)
        self.__dict__ = twin.__dict__
        return self

    return fitted_at_once


def fit_method(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Let a method check the parameters first, and set all attributes at its end, in one step."""
    return _checks_parameters(fit, True)


def meta_fit_method(
    fit: Callable[Concatenate[Model, Arguments], Model],
) -> Callable[Concatenate[Model, Arguments], Model]:
    """Let a method do so whose members are estimators, which check parameters of their own."""
    return _checks_parameters(fit, False)


def _checks_parameters(
    fit: Callable[Concatenate[Model, Arguments], Model], checks_once: bool
) -> Callable[Concatenate[Model, Arguments], Model]:
    # scikit-learn's decorator has no types, and would take them from what it is put upon.
    decorate: Any = _fit_context(prefer_skip_nested_validation=checks_once)
    decorated: Callable[Concatenate[Model, Arguments], Model] = decorate(atomic_fit(fit))
    return decorated


def snapshot_method(
    method: Callable[Concatenate[Model, Arguments], Result],
) -> Callable[Concatenate[Model, Arguments], Result]:
    """Let a method answer by the fit that it finds when it is called."""

    @wraps(method)
    def answered_at_once(
        self: Model, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return method(get_snapshot(self), *args, **kwargs)

    return answered_at_once


def available_if(offers: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Let a method be there for models alone that offer it, and keep its types."""
    decorate: Callable[[Method], Method] = available_if(offers)
    return decorate


def available_unless(
    why_not: Callable[[Any], str | None],
) -> Callable[[Method], Method]:
    """Let a method be there for models alone that offer it; the error says why others do not."""

    def decorate(method: Method) -> Method:
        offered: Any = _OfferedUnless(method, why_not)
        return cast(Method, offered)

    return decorate


class _OfferedUnless:
    """A method that is there where nothing speaks against it, as scikit-learn's `available_if` has it.

    That one hides the reason behind an error of its own.
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


def check_one_target(what: str, model: Any) -> None:
    """Refuse a model of several targets, whoever's it is, where one is asked about."""
    classes = getattr(model, "classes_", None)
    are_several = isinstance(classes, list) and any(np.ndim(known) for known in classes)
    n = getattr(model, "n_outputs_", 1) if classes is None else len(classes)
    if are_several or (classes is None and n > 1):
        kind = "Regressor" if classes is None else "Classifier"
        raise ValueError(
            f"{what} takes a model of one target, got {type(model).__name__} of {n}: "
            f"sklearn.multioutput.MultiOutput{kind} fits one model for each column"
        )
