"""Tables of the fitted attributes that model files hold, by which models are stored and restored.

A class of estimators declares ``_stored_fields``: for each name in a model file a `StoredField`,
which says which attribute it holds, how it is checked and which default files may leave out. Checks
that concern several attributes are in the method ``_finish_restore`` of the class.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from reprlib import repr as shortened
from types import UnionType
from typing import Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from certree.interface.arrays import ADDED_LATER, ArrayRecord, is_default
from certree.interface.stored_state import DamagedModelError, StoredState

_Record = TypeVar("_Record")

# Default of a field that every file holds.
REQUIRED = object()
# Default of a field whose attribute some fitted models lack.
UNSET = object()


def _read_entry(stored: StoredState, name: str, model: Any) -> Any:  # noqa: ARG001 -- as others
    """Return an entry of a model file without a check; `model` is not read."""
    return stored[name]


def _get_value(value: Any, model: Any) -> Any:  # noqa: ARG001 -- as others
    """Return the value of an attribute as it is; `model` is not read."""
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
    def integer(
        cls, attribute: str, least: int = 0, most: int = 2**64 - 1, default: Any = REQUIRED
    ) -> Self:
        """Return the field of an attribute that is an integer in least .. most."""
        return cls(
            attribute, lambda of, name, _: of.get_integer(name, least, most), default=default
        )

    @classmethod
    def number(
        cls, attribute: str, least: float, most: float = np.inf, default: Any = REQUIRED
    ) -> Self:
        """Return the field of an attribute that is a finite number in least .. most.

        The file holds it as a float.
        """

        def read(stored: StoredState, name: str, model: Any) -> float:  # noqa: ARG001 -- as others
            return stored.get_number(name, least, most)

        return cls(attribute, read, lambda value, _: float(value), default)

    @classmethod
    def numbers(
        cls,
        attribute: str,
        shape: tuple[str | int | None, ...],
        least: float = -np.inf,
        most: float = np.inf,
        default: Any = REQUIRED,
    ) -> Self:
        """Return the field of an attribute that is an array of finite numbers in least .. most.

        shape: its lengths; a text names the attribute of the model that has the length, such as
        "n_features_in_", and None stands for any length. The array is float64.
        """

        def read(stored: StoredState, name: str, model: Any) -> Any:
            return stored.get_numbers(name, get_shape(model, shape), least, most)

        return cls(attribute, read, default=default)

    @classmethod
    def record(cls, attribute: str, kind: type[ArrayRecord], default: Any = REQUIRED) -> Self:
        """Return the field of an attribute that is an `ArrayRecord` of the class `kind`.

        The file holds the fields of the record under "<name>.<field>".
        """

        def read(stored: StoredState, name: str, model: Any) -> Any:  # noqa: ARG001 -- as others
            return kind.from_stored(stored.get_section(name))

        return cls(attribute, read, default=default)


def store_fields(model: Any, table: dict[str, StoredField]) -> dict[str, Any]:
    """Return what a model file holds of the fields of a table, by stored name.

    model: the fitted estimator. Attributes that have their default value, or that the model lacks,
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

    Raise ValueError if a required field is missing, or a value fails the check of its field.
    """
    for name, field in table.items():
        if name in stored or field.default is REQUIRED:
            setattr(model, field.attribute, field.read(stored, name, model))
        elif field.default is not UNSET:
            setattr(model, field.attribute, field.default)


def get_shape(model: Any, shape: tuple[str | int | None, ...]) -> tuple[int | None, ...]:
    """Return a shape in which names of attributes of a model are replaced by their values.

    shape: lengths; None stands for any length. Names may have dots.
    """
    return tuple(attrgetter(n)(model) if isinstance(n, str) else n for n in shape)


def declare_record(attribute: str, kind: type[ArrayRecord], default: Any = REQUIRED) -> StoredField:
    """Return the field of an attribute that is an `ArrayRecord` of the class `kind`.

    The file holds its fields under "<name>.<field>".
    """
    return StoredField(
        attribute,
        lambda stored, name, _: kind.from_stored(stored.get_section(name)),
        default=default,
    )


def restore_dataclass(kind: type[_Record], entries: Any) -> _Record:
    """Return an object of a dataclass from its fields in the JSON header of a model file.

    Parameters
    ----------
    kind : type
        A dataclass whose fields are numbers, texts, tuples and dataclasses, or None.
    entries : object
        Its fields by name, as `dataclasses.asdict` returns them. Fields that a later version has
        added (metadata "is_added" is True) may be missing.

    Returns
    -------
    object of this class

    Raises
    ------
    ValueError
        If fields are missing or unknown, a value has another type than its field, a number is not
        finite, or the constructor refuses the values.
    """
    known: Any = fields(kind)  # type: ignore[arg-type]
    added = {one.name: one.default for one in known if ADDED_LATER.items() <= one.metadata.items()}
    names = [one.name for one in known]
    if not isinstance(entries, dict) or {*added, *entries} != {*names}:
        raise DamagedModelError(
            f"a {kind.__name__} must have the fields {', '.join(names)}, got {shortened(entries)}"
        )
    hints = get_type_hints(kind)
    values = {**added, **entries}.items()
    return kind(**{name: _restore_value(name, hints[name], value) for name, value in values})


def _restore_value(name: str, annotation: Any, value: Any) -> Any:
    """Return a value of a JSON header as the type of a dataclass field.

    name, annotation: name and type of the field; value: the value. Lists become tuples,
    dictionaries dataclasses. Raise ValueError if the type differs, or a number is not finite.
    """
    union = isinstance(annotation, UnionType)
    for kind in get_args(annotation) if union else (annotation,):
        if is_dataclass(kind) and isinstance(kind, type) and value is not None:
            return restore_dataclass(kind, value)
        if get_origin(kind) is tuple and isinstance(value, list):
            return tuple(_restore_value(name, get_args(kind)[0], inner) for inner in value)
        if get_origin(kind) is Literal and value in get_args(kind):
            return value
        is_number = kind is float and type(value) in (int, float) and math.isfinite(value)
        if is_number or (kind is not float and type(value) is kind):
            return value
    raise DamagedModelError(f"{name} must be of type {annotation}, got {shortened(value)}")
