"""Access to the content of a model file, by name, while a model is restored from it.

A fitted object is stored by two methods: ``__stored__()`` returns its arrays, `ArrayRecord` objects,
numbers, text and lists of these, by name. ``__restore__(stored)`` gets a `StoredState`, checks it, and
sets the same attributes. An `ArrayRecord` has `to_stored` and `from_stored`.
"""

from collections.abc import Mapping
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_column


class StoredState:
    """The content of a model file, or of a section of it.

    Messages of errors are the second half of a sentence that begins with the path of the file.

    Parameters
    ----------
    entries : mapping
        Everything but arrays: numbers, text and lists, by full name.
    arrays : mapping
        Arrays by full name; they may be read when they are requested.
    section : str
        Prefix of full names, without the dot between prefix and name; empty: the whole file.

    Attributes
    ----------
    replaced : dict of ndarray
        Arrays that this version writes differently than the version that wrote the file, by full name.
    """

    def __init__(
        self, entries: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], section: str = ""
    ) -> None:
        self._entries, self._arrays, self._section = entries, arrays, section
        self.replaced: dict[str, NDArray[Any]] = {}

    def _get_full_name(self, name: str) -> str:
        """Return the name of an entry of this section in the whole file."""
        return f"{self._section}.{name}" if self._section else name

    def __contains__(self, name: str) -> bool:
        """Return whether the section has an entry or array of this name."""
        full_name = self._get_full_name(name)
        return full_name in self._arrays or full_name in self._entries

    def __getitem__(self, name: str) -> Any:
        full_name = self._get_full_name(name)
        for content in (self._arrays, self._entries):
            if full_name in content:
                return content[full_name]
        raise ValueError(f"it lacks {full_name}")

    def get_section(self, section: str) -> "StoredState":
        """Return a section of the file by its full name, which does not depend on this section."""
        state = StoredState(self._entries, self._arrays, section)
        state.replaced = self.replaced
        return state

    def replace_arrays(self, arrays: Mapping[str, Any]) -> None:
        """Record how this version writes arrays that an earlier version has written differently."""
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
        """Return an array of finite numbers; raise ValueError for another shape or range.

        None in the shape stands for any length.
        """
        values: Float64 = check_column(name, self[name], "float64", shape)
        if not (np.isfinite(values) & (values >= least) & (values <= most)).all():
            raise ValueError(f"{name} must hold finite numbers in {least:g} .. {most:g}")
        return values

    def get_number(self, name: str, least: float, most: float) -> float:
        """Return a finite number; raise ValueError if it is outside the range."""
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a number, got {shortened(value)}")
        if not (least <= value <= most and abs(value) < np.inf):
            raise ValueError(f"{name} must be finite and in {least:g} .. {most:g}, got {value}")
        return float(value)

    def get_integer(self, name: str, least: int = 0, most: int = 2**64 - 1) -> int:
        """Return an integer; raise ValueError if it is outside the range."""
        value = self[name]
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{name} must be an integer in {least} .. {most}, got {value!r}")
        return value
