"""Signatures at the door: what a public function is given is what its annotations say, or an error.

Arrays have a door of their own (`arrays`); ranges of numbers stand where their meaning does.
"""

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, wraps
from itertools import chain, cycle
from numbers import Integral, Real
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from sklearn.utils._param_validation import Interval, InvalidParameterError

from certree.interface.arrays import MAX_SETTING, to_float

_P = ParamSpec("_P")
_R = TypeVar("_R")

# What an annotation that stands for numbers accepts, and how error messages call it. Text, None and
# arrays are no numbers, whatever Python would make of them. Python's own types come first, as it takes
# much longer to ask for abstract ones.
_NUMBERS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: ((int, Integral), "a whole number"),
    float: ((float, int, Real), "a number"),
    NoneType: ((NoneType,), "None"),
}


class _Range(Interval):
    """An interval that also numbers of few digits are compared with as what they are."""

    def __contains__(self, value: Any) -> bool:
        return bool(super().__contains__(to_float(value)))


# What settings of estimators may be, in scikit-learn's terms.
NONNEGATIVE = _Range(Real, 0, MAX_SETTING, closed="both")
POSITIVE = _Range(Real, 0, MAX_SETTING, closed="right")
COUNT = Interval(Integral, 1, None, closed="left")
# More rounds of boosting, or trees that are judged in pairs, are a slip of the hand.
ROUNDS = Interval(Integral, 1, 100_000, closed="both")


def validate_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Check nouns, numbers and words that a function is given by its annotations.

    Parameters
    ----------
    function : callable
        Annotations of arrays, callables and containers are not looked at.

    Returns
    -------
    callable
        The same function; it raises a TypeError that names the parameter, what was expected and
        what came.
    """
    parameters = inspect.signature(function).parameters.values()
    several = inspect.Parameter.VAR_POSITIONAL
    names = [one.name for one in parameters if one.kind is not several]
    rest = [one.name for one in parameters if one.kind is several]

    @wraps(function)
    def door(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        by_place = zip(chain(names, cycle(rest)), args, strict=False)
        _expect(_expected(function), chain(by_place, kwargs.items()))
        return function(*args, **kwargs)

    return door


def validate_settings(owner: Any) -> None:
    """Check attributes that a constructor has stored, by its annotations as `checked` does."""
    expected = _expected(type(owner).__init__)
    _expect(expected, [(name, getattr(owner, name)) for name in expected])


# What a value may be: of some classes, or else what functions accept; and how error messages say it.
Expected = tuple[tuple[type, ...], tuple[Callable[[Any], bool], ...], str]


def _expect(expected: dict[str, Expected], given: Iterable[tuple[str, Any]]) -> None:
    for name, value in given:
        if name not in expected:
            continue
        one = expected[name]
        if not (isinstance(value, one[0]) or _is_one_of(one, value)):
            raise InvalidParameterError(f"{name} must be {one[2]}, got {shortened(value)}")


def _is_one_of(expected: Any, value: Any) -> bool:
    classes, accepts, _ = expected
    return isinstance(value, classes) or any(accept(value) for accept in accepts)


@cache
def _expected(function: Callable[..., Any]) -> dict[str, Expected]:
    """What each parameter may be; read at the first call, when all names are known."""
    expected = {}
    for name, annotation in get_type_hints(function).items():
        # None is named first, as where the values of a parameter are listed.
        alternatives = sorted(_alternatives(annotation), key=lambda one: one is not NoneType)
        kinds = [_kind(one) for one in alternatives]
        if name != "return" and all(kinds):
            classes, accepts, words = zip(*filter(None, kinds), strict=True)
            expected[name] = sum(classes, ()), sum(accepts, ()), " or ".join(words)
    return expected


def _alternatives(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, UnionType):
        for one in get_args(annotation):
            yield from _alternatives(one)
    else:
        yield annotation


def _kind(annotation: Any) -> Expected | None:
    """What one annotation accepts, in code and in words; None if it is not looked at."""
    if get_origin(annotation) is Literal:
        options = get_args(annotation)
        return (
            (),
            (lambda value: isinstance(value, str) and value in options,),
            " or ".join(f'"{option}"' for option in options),
        )
    if get_origin(annotation) in (Sequence, tuple):
        return _sequence(get_args(annotation))
    if annotation in _NUMBERS:
        types, words = _NUMBERS[annotation]
        # Whole numbers of Python may lie beyond all others.
        bounded = tuple(one for one in types if one in (bool, np.bool_, float, NoneType))
        return bounded, (lambda value: isinstance(value, types) and _is_float(value),), words
    if annotation is Any or not isinstance(annotation, type) or get_origin(annotation) is not None:
        return None
    if getattr(annotation, "_is_protocol", False):
        members = [name for name in vars(annotation) if not name.startswith("_")]

        @cache
        def keeps_to_it(kind: Hashable) -> bool:
            return all(hasattr(kind, name) for name in members)

        return (), (lambda value: keeps_to_it(cast(Hashable, type(value))),), _noun(annotation)
    return (annotation,), (), _noun(annotation)


def _sequence(parts: tuple[Any, ...]) -> Expected | None:
    """A sequence of any length, whose members are alike, or one of so many members."""
    is_open = len(parts) == 1 or parts[1:] == (...,)
    members = [_kind(part) for part in (parts[:1] if is_open else parts)]
    if not all(members):
        return None
    words = [member[2] for member in filter(None, members)]

    def accepts(value: Any) -> bool:
        listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        listed = listed or (isinstance(value, np.ndarray) and value.ndim == 1)
        if not listed or not (is_open or len(value) == len(members)):
            return False
        return all(map(_is_one_of, cycle(members), value))

    return (), (accepts,), f"a sequence, each {words[0]}" if is_open else f"({', '.join(words)})"


def _is_float(value: Any) -> bool:
    """Whether a number lies in the range of a float64."""
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _noun(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
