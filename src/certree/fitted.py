"""What a fit has made is set at once, and read at once.

A fit works on a twin of its estimator, whose attributes become the estimator's in a single step: a fit
that fails or is interrupted has changed nothing. Who asks a model reads the attributes of one moment:
whatever another thread fits meanwhile, an answer comes from the old fit or from the new one, never from
parts of both.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Model = TypeVar("Model")
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class KeepsParameters:
    """Estimators whose constructors keep what they are given."""

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep ``locals()`` of a constructor, each parameter under its own name."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)


def _twin(model: Model, state: dict[str, Any]) -> Model:
    twin = object.__new__(type(model))
    twin.__dict__ = state
    return twin


def state_of(model: Model) -> Model:
    """Give a model as it is now, which no later fit changes."""
    # Attributes are not copied: fits put others in their place and leave these as they are.
    return _twin(model, model.__dict__)


def replaces_state(
    fit: Callable[Concatenate[Model, Given], Model],
) -> Callable[Concatenate[Model, Given], Model]:
    """Let a method that fits set all attributes at its end, in one step."""

    @wraps(fit)
    def fitted_at_once(self: Model, /, *args: Given.args, **kwargs: Given.kwargs) -> Model:
        twin = _twin(self, self.__dict__.copy())
        fit(twin, *args, **kwargs)
        self.__dict__ = twin.__dict__
        return self

    return fitted_at_once


def reads_state(
    method: Callable[Concatenate[Model, Given], Answer],
) -> Callable[Concatenate[Model, Given], Answer]:
    """Let a method answer by the fit that it finds when it is called."""

    @wraps(method)
    def answered_at_once(self: Model, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        return method(state_of(self), *args, **kwargs)

    return answered_at_once
