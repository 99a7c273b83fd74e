"""Access to the content of a model file, by name, while a model is restored from it.

A fitted object is stored by two methods: ``__stored__()`` returns its arrays, `ArrayRecord`
objects, numbers, text and lists of these, by name. ``__restore__(stored)`` gets a `StoredState`,
checks it, and sets the same attributes. An `ArrayRecord` has `to_stored` and `from_stored`.
"""

from collections.abc import Mapping
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_column


class StoredState:
    """The content of a model file, or of a section of it.

    ``state[name]`` returns an entry or array, and raises ValueError if the file lacks it; ``name in
    state`` tests for it. Callers put the path of the file before the messages of errors.

    Parameters
    ----------
    entries : mapping
        Numbers, text and lists, by full name.
    arrays : mapping
        Arrays by full name; the mapping may read them from the file on access.
    section : str
        Section of the file. A full name is the section, a dot and the name in the section; for the
        whole file, "", it is the name alone.

    Attributes
    ----------
    replaced : dict from str to ndarray
        Arrays that this version of certree writes differently than the version that wrote the file,
        by full name. Sections of one file have this dictionary in common.
    """

    def __init__(
        self, entries: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], section: str = ""
    ) -> None:
        self._entries, self._arrays, self._section = entries, arrays, section
        self.replaced: dict[str, NDArray[Any]] = {}

    def _get_full_name(self, name: str) -> str:
        """Return the name in the whole file of a name in this section: "<section>.<name>".

        For the whole file, whose section is "", the name is unchanged.
        """
        return f"{self._section}.{name}" if self._section else name

    def __contains__(self, name: str) -> bool:
        """Return whether this section has an entry or array of this name."""
        full_name = self._get_full_name(name)
        return full_name in self._arrays or full_name in self._entries

    def __getitem__(self, name: str) -> Any:
        full_name = self._get_full_name(name)
        for content in (self._arrays, self._entries):
            if full_name in content:
                return content[full_name]
        raise ValueError(f"the model file lacks {full_name}: save the model again")

    def get_section(self, section: str) -> "StoredState":
        """Return the content of another section of the file.

        section: its full name, which does not depend on the section of this object.
        """
        state = StoredState(self._entries, self._arrays, section)
        state.replaced = self.replaced
        return state

    def replace_arrays(self, arrays: Mapping[str, Any]) -> None:
        """Record that arrays of this section were converted from the format of an earlier version.

        They are added to `replaced`, so that a check of the file knows that they differ from what
        it holds.

        arrays: the converted values by name in this section; values that are not arrays are
        ignored.
        """
        self.replaced |= {
            self._get_full_name(name): array
            for name, array in arrays.items()
            if isinstance(array, np.ndarray)
        }

    def get_numbers(
        self,
        name: str,
        shape: tuple[int | None, ...],
        least: float = -np.inf,
        most: float = np.inf,
    ) -> Float64:
        """Return an array of finite numbers as read-only float64.

        Parameters
        ----------
        name : str
            Name of the array in this section.
        shape : tuple of int or None
            Expected shape; None stands for any length.
        least, most : float
            Smallest and largest number that is allowed.

        Returns
        -------
        ndarray of float64
            The array, of the expected shape.

        Raises
        ------
        TypeError, ValueError
            If it is missing, has another dtype or shape, or a number is not finite or out of range.
        """
        values: Float64 = check_column(name, self[name], "float64", shape)
        if not (np.isfinite(values) & (values >= least) & (values <= most)).all():
            raise ValueError(
                f"the model file must have finite numbers in {least:g} .. {most:g} in {name}, got "
                "others: save the model again"
            )
        return values

    def get_number(self, name: str, least: float, most: float) -> float:
        """Return the entry `name` as float.

        Raise ValueError unless it is a finite number in least .. most.
        """
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(
                f"the model file must have a number as {name}, got {shortened(value)}: save the "
                "model again"
            )
        if not (least <= value <= most and abs(value) < np.inf):
            raise ValueError(
                f"the model file must have a finite {name} in {least:g} .. {most:g}, got {value}: "
                "save the model again"
            )
        return float(value)

    def get_integer(self, name: str, least: int = 0, most: int = 2**64 - 1) -> int:
        """Return the entry `name`; raise ValueError unless it is an int in least .. most."""
        value = self[name]
        if type(value) is not int or not least <= value <= most:
            raise ValueError(
                f"the model file must have an integer in {least} .. {most} as {name}, got "
                f"{value!r}: save the model again"
            )
        return value
