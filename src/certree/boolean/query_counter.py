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

    Returned by `kushilevitz_mansour` and `sparse_transform`. A spectrum is the function as a sum of
    coefficients times products of signs of features.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that were found.
    n_queries : int
        Number of rows at which the function was evaluated.
    budget : int or None
        Largest number of such rows that the caller allowed; None: no limit.
    delta : float
        Probability, over the draw of the rows, that `guarantee` is wrong.
    is_complete : bool
        Whether the search finished within the budget. From `sparse_transform`, the result must
        also agree with the function at all test rows.
    guarantee : str
        The guarantee as a sentence: which terms were found, and how large their errors may be.
    """

    spectrum: Spectrum
    n_queries: int
    budget: int | None
    delta: float
    is_complete: bool
    guarantee: str

    def __str__(self) -> str:
        # The two values, as a function of -1 and 1 has another spectrum at rows of 0 and 1.
        low, high = self.spectrum.bits.coding.split("/")
        return (
            f"{len(self.spectrum)} terms from {self.n_queries} queries at rows of {low} and {high}. "
            f"{self.guarantee} "
            f"(with probability {1 - self.delta:.6g})"
        )


class QueryCounter:
    """A function of rows with two-valued features, and the number of rows at which it was evaluated.

    Parameters
    ----------
    function : callable
        Takes rows of integers, (m, n_features), with the two values of the bits' coding, and
        returns one number for each.
    bits : Bits
        The coding and number of the features; bit j is feature j.
    budget : int or None
        Largest number of rows at which it may be evaluated; None: no limit.

    Attributes
    ----------
    n_queries : int
        Number of rows at which the function was evaluated so far.

    Raises
    ------
    TypeError
        If the function is not callable.
    ValueError
        If the budget is less than 1.
    """

    def __init__(self, function: Function, bits: Bits, budget: int | None) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        if budget is not None and budget < 1:
            raise ValueError(f"budget must be at least 1, got {budget}")
        self._function, self.bits, self.budget, self.n_queries = function, bits, budget, 0

    def allows(self, n: int) -> bool:
        """Return whether the budget (largest number of evaluations) allows `n` more rows."""
        return self.budget is None or self.n_queries + n <= self.budget

    def evaluate(self, signs: NDArray[Any]) -> Float64:
        """Evaluate the function at rows, and count them against the budget.

        Parameters
        ----------
        signs : ndarray of shape (m, n_bits)
            -1 or 1 for each bit of each row. They are converted to the two values of the features;
            a bit of 0 has the sign 1.

        Returns
        -------
        ndarray of float64, shape (m,)
            Value at each row.

        Raises
        ------
        TypeError
            If the function does not return numbers.
        ValueError
            If the budget does not suffice, or the function does not return one finite number per
            row.
        """
        n = len(signs)
        if not self.allows(n):
            raise ValueError(
                f"budget must be at least {self.n_queries + n} to go on, got {self.budget}: the "
                "function "
                f"was evaluated at {self.n_queries} rows, and {n} more are needed"
            )
        rows = self.bits.to_rows(signs).astype(np.int64)  # integers support bit operators
        returned = to_array("what function returns", self._function(rows))
        self.n_queries += n
        if returned.dtype.kind not in "biuf":
            raise TypeError(f"function must return numbers, got dtype {returned.dtype}")
        if returned.shape not in ((n,), (n, 1)):
            raise ValueError(
                "function must take an array of rows and return one number for each: expected "
                "shape "
                f"({n},), got {returned.shape}"
            )
        values: Float64 = np.array(returned.reshape(n), dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(
                "function must return a finite number for every row with two-valued features, got "
                "NaN or infinity"
            )
        return values

    def expect_no_noise(self, signs: NDArray[Any], values: Float64) -> None:
        """Evaluate the function at rows again; raise ValueError if a value differs, up to rounding.

        signs: -1 or 1 for each bit of each row, (m, n_bits); values: earlier values at these rows,
        (m,). The rows count against the budget, the largest number of evaluations.
        """
        if not np.allclose(self.evaluate(signs), values, rtol=1e-12, atol=0):
            raise ValueError(
                "function must return the same value whenever it gets the same row, got different "
                "values: use kushilevitz_mansour or FourierRegressor for noisy functions"
            )


def draw_signs(rng: np.random.RandomState, n: int, n_bits: int) -> Float64:
    """Draw `n` rows of independent signs from `rng`, (n, n_bits): -1 or 1 with probability 1/2."""
    return np.where(rng.randint(0, 2, size=(n, n_bits)) == 1, -1.0, 1.0)


def expect_probability(delta: float) -> None:
    """Raise ValueError unless delta, the probability that a bound fails, lies in (0, 1)."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
