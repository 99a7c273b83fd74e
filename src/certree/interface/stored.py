"""What a file holds of something fitted, by name, as it is asked for when it is made again.

What has been fitted says what it is made of: ``__stored__()`` gives arrays, columns, numbers, text and
lists of these, and ``__restore__(stored)`` sets the same attributes again, and checks them. Columns do
so by `stored` and `restored`.
"""

from collections.abc import Mapping
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_column


class StoredState:
    """The arrays, and what else there is, that a file holds, or those of a part.

    Parameters
    ----------
    entries : mapping
        What is no array.
    arrays : mapping
        Arrays, which may be read only when they are asked for.
    part : str
        What names begin with, and a dot; empty: these are all.

    Attributes
    ----------
    renewed : dict of ndarray
        Arrays as this version holds them, by their full names, where earlier ones did otherwise.
    """

    def __init__(
        self, entries: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], part: str = ""
    ) -> None:
        self._entries, self._arrays, self._part = entries, arrays, part
        self.renewed: dict[str, NDArray[Any]] = {}

    def _full(self, name: str) -> str:
        return f"{self._part}.{name}" if self._part else name

    def __contains__(self, name: str) -> bool:
        """Whether a file holds it, as not all of its fits do."""
        return self._full(name) in self._arrays or self._full(name) in self._entries

    def __getitem__(self, name: str) -> Any:
        full = self._full(name)
        for held in (self._arrays, self._entries):
            if full in held:
                return held[full]
        raise ValueError(f"it lacks {full}")

    def of(self, part: str) -> "Stored":
        """The same of a part."""
        inner = StoredState(self._entries, self._arrays, part)
        inner.renewed = self.renewed
        return inner

    def renew(self, arrays: Mapping[str, Any]) -> None:
        """Take these for the ones of a file that an earlier version has written otherwise."""
        self.renewed |= {
            self._full(name): held for name, held in arrays.items() if isinstance(held, np.ndarray)
        }

    def numbers(
        self,
        name: str,
        shape: tuple[int | None, ...],
        least: float = -np.inf,
        most: float = np.inf,
    ) -> Float64:
        """An array of finite numbers of this shape, None for any length, and range."""
        values: Float64 = check_column(name, self[name], "float64", shape)
        if not (np.isfinite(values) & (values >= least) & (values <= most)).all():
            raise ValueError(f"{name} must hold finite numbers in {least:g} .. {most:g}")
        return values

    def number(self, name: str, least: float, most: float) -> float:
        """A finite number in a range."""
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a number, got {shortened(value)}")
        if not (least <= value <= most and abs(value) < np.inf):
            raise ValueError(f"{name} must be finite and in {least:g} .. {most:g}, got {value}")
        return float(value)

    def whole(self, name: str, least: int = 0, most: int = 2**64 - 1) -> int:
        """A whole number in a range."""
        value = self[name]
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{name} must be a whole number in {least} .. {most}, got {value!r}")
        return value
