"""Access to the content of a model file, by name, while a model is restored from it.

An estimator declares the attributes that its file holds; see `certree.interface.stored_fields`. An
`ArrayRecord` has `to_stored` and `from_stored`.
"""

from collections.abc import Mapping
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_column


class DamagedModelError(ValueError):
    """The content of a model file is not what `certree.save` writes.

    The text says what was expected of which entry, and what the file holds. `certree.load` puts the
    path of the file in front of it, and says at the end what to do.
    """


class StoredState:
    """The content of a model file, or of a section of it.

    ``state[name]`` returns an entry or array, and raises `DamagedModelError` if the file lacks it.
    ``name in state`` tests for an entry or array, or for a section with at least one of them. The
    method `get_section` returns a section.

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
        Arrays that were converted from the format of an earlier version of certree, as this version
        writes them, by full name. Empty at first; the method `replace_arrays` adds them. Sections of
        one file have this dictionary in common.
    """

    def __init__(
        self, entries: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], section: str = ""
    ) -> None:
        self._entries, self._arrays, self._section = entries, arrays, section
        self.replaced: dict[str, NDArray[Any]] = {}

    def _get_full_name(self, name: str) -> str:
        """Return the name in the whole model file of a name in this section: "<section>.<name>".

        If this object is the content of the whole file, its section is "", and the name is unchanged.
        """
        return f"{self._section}.{name}" if self._section else name

    def __contains__(self, name: str) -> bool:
        """Return whether this section of a model file has an entry, array or section of this name."""
        full_name = self._get_full_name(name)
        return any(
            key == full_name or key.startswith(f"{full_name}.")
            for key in (*self._arrays, *self._entries)
        )

    def __getitem__(self, name: str) -> Any:
        full_name = self._get_full_name(name)
        for content in (self._arrays, self._entries):
            if full_name in content:
                return content[full_name]
        raise DamagedModelError(f"the model file lacks {full_name}")

    def get_section(self, section: str) -> "StoredState":
        """Return the content of a section of the model file, as another `StoredState`.

        section: its full name in the file, which does not depend on the section of this object.
        """
        state = StoredState(self._entries, self._arrays, section)
        state.replaced = self.replaced
        return state

    def replace_arrays(self, arrays: Mapping[str, Any]) -> None:
        """Record that arrays of this section of a model file were converted from an earlier format.

        The arrays are added to `replaced`, so that a check of the file knows that they differ from
        what the file holds.

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
        """Return an array of finite numbers from this section of a model file, as read-only float64.

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
        values: Float64 = check_column(self._get_full_name(name), self[name], "float64", shape)
        if not (np.isfinite(values) & (values >= least) & (values <= most)).all():
            raise DamagedModelError(
                f"the model file's {self._get_full_name(name)} must hold finite numbers in {least:g} "
                f".. {most:g}"
            )
        return values

    def get_number(self, name: str, least: float, most: float) -> float:
        """Return a number of this section of a model file as float.

        name: its name in the section. Raise ValueError unless the file has it, as a finite number in
        least .. most.
        """
        value = self[name]
        if type(value) not in (int, float) or not (least <= value <= most and abs(value) < np.inf):
            raise DamagedModelError(
                f"the model file's {self._get_full_name(name)} must be a finite number in {least:g} .. "
                f"{most:g}, got {shortened(value)}"
            )
        return float(value)

    def get_integer(self, name: str, least: int = 0, most: int = 2**64 - 1) -> int:
        """Return an integer of this section of a model file.

        name: its name in the section. Raise ValueError unless the file has it, as an int in
        least .. most.
        """
        value = self[name]
        if type(value) is not int or not least <= value <= most:
            raise DamagedModelError(
                f"the model file's {self._get_full_name(name)} must be an integer in {least} .. "
                f"{most}, got {shortened(value)}"
            )
        return value
