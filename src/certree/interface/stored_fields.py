"""Tables of the fitted attributes that model files hold, by which models are stored and restored.

A class of estimators declares ``_stored_fields``: for each name in a model file a `StoredField`,
which says which attribute it holds, how it is checked and which default files may leave out. Checks
that concern several attributes are in the method ``_finish_restore`` of the class.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from reprlib import repr as shortened
from types import UnionType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np

from certree.interface.arrays import ArrayRecord, is_default
from certree.interface.stored_state import DamagedModelError, StoredState

_LARGEST = float(np.finfo(np.float64).max)
# Default of a field that every file holds.
REQUIRED = object()
# Default of a field whose attribute some fitted models lack.
UNSET = object()


def _read_entry(stored: StoredState, name: str, model: Any) -> Any:  # noqa: ARG001 -- as others
    """Return an entry of a model file without a check.

    It is the default of `StoredField.read`. stored: the content of the file; name: name of the
    entry; model: not used, but passed to all functions that read a field.
    """
    return stored[name]


def _get_value(value: Any, model: Any) -> Any:  # noqa: ARG001 -- as others
    """Return the value of an attribute as it is, the default of `StoredField.write`.

    model: not used, but passed to all functions that write a field.
    """
    return value


@dataclass(frozen=True)
class StoredField:
    """How a model file holds one fitted attribute of an estimator.

    Parameters
    ----------
    attribute : str
        Name of the attribute.
    read : callable
        Takes the content of the file, the name of the field in it, and the model, whose earlier
        fields have been restored. Returns the checked value of the attribute. By default the entry
        is not checked.
    write : callable
        Takes the value of the attribute and the model. Returns what the file holds: an array, a
        record with a method `to_stored`, or a value that JSON can hold. By default the value itself.
    default : object
        Value that the file does not hold, and that the attribute gets if the file lacks the field.
        REQUIRED: all files have the field. UNSET: the attribute is then not set.
    """

    attribute: str
    read: Callable[[StoredState, str, Any], Any] = _read_entry
    write: Callable[[Any, Any], Any] = _get_value
    default: Any = REQUIRED

    @classmethod
    def value(
        cls,
        attribute: str,
        kind: Any,
        least: float = 0,
        most: float = 2**64 - 1,
        default: Any = REQUIRED,
    ) -> Self:
        """Return the `StoredField` of an attribute that is a number, text or tuple.

        It says how model files hold the attribute: as a value of the JSON header. attribute: name of
        the attribute; kind: its type, such as ``int``, ``int | None`` or ``tuple[str, ...]``; least,
        most: the smallest and the largest number that is allowed when a file is read; default: value
        of the attribute if the file lacks it; REQUIRED: all files have it.
        """
        return cls(
            attribute,
            lambda stored, name, _: restore_value(name, kind, stored[name], least, most),
            lambda value, _: float(value) if kind is float else value,
            default,
        )

    @classmethod
    def numbers(
        cls,
        attribute: str,
        shape: tuple[str | int | None, ...],
        least: float = -np.inf,
        most: float = np.inf,
        default: Any = REQUIRED,
    ) -> Self:
        """Return the `StoredField` of an attribute that is an array of numbers in least .. most.

        It says how model files hold the attribute. When a file is read, dtype, shape and range are
        checked, and that all numbers are finite. attribute: name of the attribute, a float64 array;
        shape: its lengths, in which a text names the attribute of the model that has the length,
        such as "n_features_in_", and None stands for any length; default: value of the attribute if
        the file lacks it; REQUIRED: all files have it.
        """

        def read(stored: StoredState, name: str, model: Any) -> Any:
            return stored.get_numbers(name, get_shape(model, shape), least, most)

        return cls(attribute, read, default=default)

    @classmethod
    def record(cls, attribute: str, kind: type[ArrayRecord], default: Any = REQUIRED) -> Self:
        """Return the `StoredField` of an attribute that is an `ArrayRecord` of the class `kind`.

        It says how model files hold the attribute. The file holds each field of the record under
        "<name>.<field>", where name is the stored name of the attribute. attribute: name of the
        attribute; default: its value if the file lacks it; REQUIRED: all files have it.
        """

        def read(stored: StoredState, name: str, model: Any) -> Any:  # noqa: ARG001 -- as others
            return kind.from_stored(stored.get_section(name))

        return cls(attribute, read, default=default)


def store_fields(model: Any, table: dict[str, StoredField]) -> dict[str, Any]:
    """Return what a model file holds of a fitted model: a dictionary of values by stored name.

    model: the fitted estimator. table: for each name in the file the field that says which
    attribute it holds, and how. Attributes that have their default value, or that the model lacks,
    are left out.
    """
    values = {name: getattr(model, field.attribute, field.default) for name, field in table.items()}
    return {
        name: table[name].write(value, model)
        for name, value in values.items()
        if not is_default(value, table[name].default)
    }


def restore_fields(model: Any, table: dict[str, StoredField], stored: StoredState) -> None:
    """Set the attributes of a model from the content of a model file, in the order of a table.

    model: the estimator, which is changed. table: for each name in the file the field that says
    which attribute it holds, and how. stored: entries and arrays of the file. An attribute that the
    file lacks gets the default of its field; it is not set if this is UNSET. Raise ValueError if a
    required field is missing, or a value fails the check of its field.
    """
    for name, field in table.items():
        if name in stored or field.default is REQUIRED:
            setattr(model, field.attribute, field.read(stored, name, model))
        elif field.default is not UNSET:
            setattr(model, field.attribute, field.default)


def get_shape(model: Any, shape: tuple[str | int | None, ...]) -> tuple[int | None, ...]:
    """Return a shape in which names of attributes of a model are replaced by their values.

    model: the estimator. shape: lengths, or names of attributes with a length, such as
    "n_features_in_"; None stands for any length and stays. Names may have dots.
    """
    return tuple(attrgetter(n)(model) if isinstance(n, str) else n for n in shape)


def restore_value(
    name: str, annotation: Any, value: Any, least: float = -_LARGEST, most: float = _LARGEST
) -> Any:
    """Check a value of the JSON header of a model file, and return it as a type.

    Parameters
    ----------
    name : str
        Name of the value, for messages.
    annotation : type
        A type of number, str, None, a Literal, a tuple of values of one type, a named tuple, a
        dataclass, or a union of these.
    value : object
        The value: a list or tuple for tuples, and for a dataclass its fields by name, as
        `dataclasses.asdict` returns them. Fields that a later version has added (metadata
        "is_added" is True) may be missing.
    least, most : float
        Smallest and largest number that is allowed, also in tuples. Numbers of dataclasses must be
        finite.

    Returns
    -------
    object of this type

    Raises
    ------
    ValueError
        If the value has another type, a number is out of range, fields are missing or unknown, or a
        constructor refuses the values.
    """
    kinds: tuple[Any, ...] = (
        get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    )
    for kind in kinds:
        is_number = kind in (int, float) and type(value) in (kind, int)
        if (is_number and least <= value <= most) or (type(value) is kind not in (int, float)):
            return value
        if get_origin(kind) is Literal and value in get_args(kind):
            return value
        if isinstance(value, list | tuple) and get_origin(kind) is tuple:
            return tuple(restore_value(name, get_args(kind)[0], one, least, most) for one in value)
        if isinstance(value, list) and hasattr(kind, "_fields"):
            pairs = zip(get_type_hints(kind).values(), value, strict=True)
            return kind(*[restore_value(name, hint, one, least, most) for hint, one in pairs])
        if isinstance(value, dict) and is_dataclass(kind):
            return _restore_dataclass(name, kind, value)
    limits = f" in {least} .. {most}" if most < _LARGEST else ""
    kind_name = getattr(annotation, "__name__", annotation)
    raise DamagedModelError(
        f"the model file's {name} must be of type {kind_name}{limits}, got {shortened(value)}"
    )


def _restore_dataclass(name: str, kind: Any, entries: dict[str, Any]) -> Any:
    """Return an object of a dataclass, `kind`, from the values of its fields in a model file.

    entries: the values by name of the field; those with metadata "is_added" may be missing. name:
    name of the object in messages. Raise DamagedModelError, a ValueError, if fields are missing or
    unknown, or a value has another type than the annotation of its field.
    """
    added = {one.name: one.default for one in fields(kind) if one.metadata.get("is_added")}
    hints, values = get_type_hints(kind), {**added, **entries}
    if values.keys() != {one.name for one in fields(kind)}:
        raise DamagedModelError(
            f"the model file's {name} must have the fields {[*hints]}, got {[*entries]}"
        )
    return kind(**{key: restore_value(key, hints[key], value) for key, value in values.items()})
