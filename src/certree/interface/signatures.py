"""Type checks of arguments by the annotations of a function.

Arrays are checked in `arrays`; ranges of numbers are checked in the functions themselves.
"""

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
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

# Larger numbers are no probabilities with which a guarantee may fail, but confidences.
_LARGEST_DELTA = 0.5

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Types that annotations of numbers accept, and their description in messages. Text, None and arrays
# are not numbers, even if Python can convert them. Python's own types come first, as isinstance is much
# slower for abstract classes.
_NUMBERS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: ((int, Integral), "an integer"),
    float: ((float, int, Real), "a number"),
    NoneType: ((NoneType,), "None"),
}


class _Range(Interval):
    """An interval of scikit-learn that compares NumPy scalars in float64.

    NumPy itself would compare them in their own precision. The constructor is that of scikit-learn:
    type of the numbers, left end, right end, and closed, which of both ends belong to it.
    """

    def __contains__(self, value: Any) -> bool:
        return bool(super().__contains__(to_float(value)))


# Constraints of parameters of estimators, in the form of scikit-learn.
NONNEGATIVE = _Range(Real, 0, MAX_SETTING, closed="both")
POSITIVE = _Range(Real, 0, MAX_SETTING, closed="right")
COUNT = Interval(Integral, 1, None, closed="left")
# More rounds of boosting, or more trees in pairwise certificates, are most likely a mistake.
ROUNDS = Interval(Integral, 1, 100_000, closed="both")


def validate_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function: check the types of its arguments by its annotations at each call.

    Annotations of classes, protocols, numbers, literals, and of sequences of these are checked;
    those of arrays, callables and other containers are ignored.

    Parameters
    ----------
    function : callable
        The function.

    Returns
    -------
    callable
        The function with the check. It raises InvalidParameterError (a TypeError and ValueError),
        with the name of the parameter, what was expected and what came.
    """
    parameters = inspect.signature(function).parameters.values()
    star = inspect.Parameter.VAR_POSITIONAL
    names = [parameter.name for parameter in parameters if parameter.kind is not star]
    star_names = [parameter.name for parameter in parameters if parameter.kind is star]

    @wraps(function)
    def validated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        positional = zip(chain(names, cycle(star_names)), args, strict=False)
        _check_values(_read_expected(function), chain(positional, kwargs.items()))
        return function(*args, **kwargs)

    return validated


def validate_settings(owner: Any) -> None:
    """Check the attributes of an object by the annotations of its constructor.

    owner: the object; its attributes must have the names of the parameters. Raise
    InvalidParameterError (a TypeError and ValueError), which names the first parameter of another
    type. Annotations of arrays, callables and containers other than sequences are not checked.
    """
    kind = type(owner)
    # The annotation of a dataclass field may have a meaning only in the module of its own class.
    expected = _read_expected(kind if is_dataclass(kind) else kind.__init__)
    _check_values(expected, [(name, getattr(owner, name)) for name in expected])


# Accepted classes, functions that accept further values, and the description in messages.
_Expected = tuple[tuple[type, ...], tuple[Callable[[Any], bool], ...], str]


def expect_error_probability(delta: float) -> None:
    """Raise ValueError if delta, the probability with which a guarantee may fail, is above 0.5.

    Such a number is a confidence that was passed for its complement. The caller checks that it lies
    between 0 and 1.
    """
    if delta > _LARGEST_DELTA:
        raise ValueError(
            f"delta must be at most {_LARGEST_DELTA}, got {delta!r}: it is the probability with which "
            "a guarantee may fail, such as 0.05 for a confidence of 95 %"
        )


def _check_values(expected: dict[str, _Expected], values: Iterable[tuple[str, Any]]) -> None:
    """Raise InvalidParameterError for the first value that is not as expected.

    values: pairs of a parameter's name and its value. expected: for each name what is accepted, a
    tuple of three: classes; functions that take a value and return whether they accept it; and a
    description for the message. Names that `expected` lacks are not checked.
    """
    for name, value in values:
        if name not in expected:
            continue
        classes, _, description = expected[name]
        if not (isinstance(value, classes) or _is_accepted(expected[name], value)):
            # A single text in place of a sequence of texts is most likely its only member.
            remedy = ""
            if isinstance(value, str) and _is_accepted(expected[name], [value]):
                remedy = f": pass [{value!r}]"
            raise InvalidParameterError(
                f"{name} must be {description}, got {shortened(value)}{remedy}"
            )


def _is_accepted(expected: Any, value: Any) -> bool:
    """Return whether a value is of one of the accepted classes, or one of the functions accepts it.

    expected: tuple of three: accepted classes; functions that take a value and return whether they
    accept it; and a description for messages, which is not used here.
    """
    classes, accepts, _ = expected
    return isinstance(value, classes) or any(accept(value) for accept in accepts)


@cache
def _read_expected(function: Callable[..., Any]) -> dict[str, _Expected]:
    """Return what each parameter of a function or dataclass accepts, by name, from its annotations.

    Each value is a tuple of three: accepted classes; functions that take a value and return whether
    they accept it; and a description for messages.

    Parameters whose annotation is not checked are left out. Call it only when all names in the
    annotations are defined, so not while `function` is being decorated.
    """
    expected = {}
    for name, annotation in get_type_hints(function).items():
        # None comes first in messages, as in docstrings.
        alternatives = sorted(
            _iterate_alternatives(annotation), key=lambda kind: kind is not NoneType
        )
        checks = [_make_expected(kind) for kind in alternatives]
        if name != "return" and all(checks):
            classes, accepts, descriptions = zip(*filter(None, checks), strict=True)
            expected[name] = sum(classes, ()), sum(accepts, ()), " or ".join(descriptions)
    return expected


def _iterate_alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union annotation, also of nested unions, or the annotation itself."""
    if get_origin(annotation) in (Union, UnionType):
        for alternative in get_args(annotation):
            yield from _iterate_alternatives(alternative)
    else:
        yield annotation


def _make_expected(annotation: Any) -> _Expected | None:
    """Return what an annotation without union accepts; None if it is not checked.

    The result is a tuple of three: accepted classes; functions that take a value of another class
    and return whether they accept it; and a description for messages. If a class has the attribute
    `_example`, a call that makes such an object, the description contains it.
    """
    if get_origin(annotation) is Literal:
        options = get_args(annotation)
        return (
            (),
            (lambda value: isinstance(value, str) and value in options,),
            " or ".join(f'"{option}"' for option in options),
        )
    if get_origin(annotation) in (Sequence, tuple):
        return _make_expected_sequence(get_args(annotation))
    if annotation in _NUMBERS:
        types, description = _NUMBERS[annotation]
        # Other types may hold integers that exceed float64.
        bounded = tuple(kind for kind in types if kind in (bool, np.bool_, float, NoneType))
        return (
            bounded,
            (lambda value: isinstance(value, types) and _fits_float64(value),),
            description,
        )
    if annotation is Any or not isinstance(annotation, type) or get_origin(annotation) is not None:
        return None
    if getattr(annotation, "_is_protocol", False):
        members = [name for name in vars(annotation) if not name.startswith("_")]

        @cache
        def implements_protocol(kind: Hashable) -> bool:
            return all(hasattr(kind, name) for name in members)

        return (
            (),
            (lambda value: implements_protocol(cast(Hashable, type(value))),),
            _add_article(annotation),
        )
    description = _add_article(annotation)
    example = getattr(annotation, "_example", None)
    if isinstance(example, str):
        description = f"{description}, such as {example}"
    return (annotation,), (), description


def _make_expected_sequence(annotations: tuple[Any, ...]) -> _Expected | None:
    """Return what an annotation of a sequence or tuple accepts; None if a member is not checked.

    annotations: the annotations of the members. If there is one, or one followed by ``...``, the
    sequence may have any length. If there are k, it must have k members, each of its own
    annotation. Lists, tuples and one-dimensional arrays are sequences; strings are not. The result
    is a tuple of three: no classes, (); a tuple of one function that takes a value and returns
    whether it is such a sequence; and a description for messages.
    """
    is_open = len(annotations) == 1 or annotations[1:] == (...,)
    members = [_make_expected(kind) for kind in (annotations[:1] if is_open else annotations)]
    if not all(members):
        return None
    descriptions = [member[2] for member in filter(None, members)]

    def accepts(value: Any) -> bool:
        is_sequence = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        is_sequence = is_sequence or (isinstance(value, np.ndarray) and value.ndim == 1)
        if not is_sequence or not (is_open or len(value) == len(members)):
            return False
        return all(map(_is_accepted, cycle(members), value))

    if is_open:
        return (), (accepts,), f"a sequence, each {descriptions[0]}"
    return (), (accepts,), f"({', '.join(descriptions)})"


def _fits_float64(value: Any) -> bool:
    """Return whether `value`, a number, converts to float64 without OverflowError."""
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _add_article(kind: type) -> str:
    """Return the name of a class with its indefinite article, such as "a Tree" or "an Explainer"."""
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
