"""Functions that are evaluated at chosen rows, with a budget, and the spectra learned from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.boolean.bits import Bits
from certree.boolean.spectrum import Spectrum
from certree.interface.arrays import Float64, to_array

Function = Callable[[NDArray[np.int64]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """The spectrum of a function, learned from its values at chosen rows.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that were found.
    n_queries : int
        Number of rows at which the function was evaluated.
    budget : int or None
        Largest number allowed; None: no limit.
    delta : float
        Probability, over the draw of the rows, that `guarantee` is wrong.
    is_complete : bool
        Whether the search finished within the budget and its result agreed with all test rows.
    guarantee : str
        A sentence that states what holds for the terms.
    """

    spectrum: Spectrum
    n_queries: int
    budget: int | None
    delta: float
    is_complete: bool
    guarantee: str

    def __str__(self) -> str:
        return (
            f"{len(self.spectrum)} terms from {self.n_queries} queries. {self.guarantee} "
            f"(with probability {1 - self.delta:.6g})"
        )


class QueryCounter:
    """A function of rows with two-valued features, with a count of the rows it was evaluated at.

    Parameters
    ----------
    function : callable
        Takes rows of integers (m, n_features) and returns one number for each.
    bits : Bits
        The features.
    budget : int or None
        Largest number of rows it may be evaluated at; None: no limit.
    """

    def __init__(self, function: Function, bits: Bits, budget: int | None) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        if budget is not None and budget < 1:
            raise ValueError(f"budget must be at least 1, got {budget}")
        self._function, self.bits, self.budget, self.n_queries = function, bits, budget, 0

    def allows(self, n: int) -> bool:
        """Return whether the budget allows `n` more rows."""
        return self.budget is None or self.n_queries + n <= self.budget

    def evaluate(self, signs: NDArray[Any]) -> Float64:
        """Evaluate the function at the rows with these signs, and count them.

        Parameters
        ----------
        signs : ndarray of shape (m, n_bits)
            -1 and 1 for each bit; see `Bits`.

        Returns
        -------
        ndarray of float64, shape (m,)

        Raises
        ------
        TypeError
            If the function does not return numbers.
        ValueError
            If the budget does not suffice, or the function does not return one finite number per row.
        """
        n = len(signs)
        if not self.allows(n):
            raise ValueError(
                f"a budget of {self.budget} queries is too small: {self.n_queries} were made, and "
                f"{n} more are needed to go on"
            )
        rows = self.bits.to_rows(signs).astype(np.int64)  # integers support bit operators
        returned = to_array("what function returns", self._function(rows))
        self.n_queries += n
        if returned.dtype.kind not in "biuf":
            raise TypeError(f"function must return numbers, got dtype {returned.dtype}")
        if returned.shape not in ((n,), (n, 1)):
            raise ValueError(
                f"function must take many rows and return one number for each: expected shape "
                f"({n},), got {returned.shape}"
            )
        values: Float64 = np.array(returned.reshape(n), dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("function must return finite numbers, got NaN or infinity")
        return values

    def expect_no_noise(self, signs: NDArray[Any], values: Float64) -> None:
        """Evaluate rows again, and raise ValueError if their values differ from `values`."""
        if not np.allclose(self.evaluate(signs), values, rtol=1e-12, atol=0):
            raise ValueError(
                "function must return the same value whenever it gets the same row, got different "
                "values: use kushilevitz_mansour or FourierRegressor for noisy functions"
            )


def draw_signs(rng: np.random.RandomState, n: int, n_bits: int) -> Float64:
    """Draw `n` rows of independent signs (n, n_bits), -1 and 1 with equal probability."""
    return np.where(rng.randint(0, 2, size=(n, n_bits)) == 1, -1.0, 1.0)


def expect_probability(delta: float) -> None:
    """Raise ValueError unless delta lies strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta}")
