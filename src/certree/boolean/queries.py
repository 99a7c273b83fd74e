"""Functions that can be asked: how often they were, and what was learned from their answers."""

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
    """What was learned of a function by asking it.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that were found.
    n_queries : int
        How many rows the function was asked.
    budget : int or None
        How many it could have been asked at most; None: any number.
    delta : float
        Probability, over the rows that were drawn, that `promise` is wrong.
    is_complete : bool
        Whether the search came to its end.
    promise : str
        What is known of the terms, as a sentence.
    """

    spectrum: Spectrum
    n_queries: int
    budget: int | None
    delta: float
    is_complete: bool
    promise: str

    def __str__(self) -> str:
        return (
            f"{len(self.spectrum)} terms from {self.n_queries} queries. {self.promise} "
            f"(with probability {1 - self.delta:.6g})"
        )


class Queries:
    """A function of rows with two-valued features, which counts what it is asked.

    Parameters
    ----------
    function : callable
        Takes rows of integers, (m, n_features), and gives a number for each.
    bits : Bits
        The features.
    budget : int or None
        How many rows it may be asked; None: any number.
    """

    def __init__(self, function: Function, bits: Bits, budget: int | None) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        if budget is not None and budget < 1:
            raise ValueError(f"budget must be at least 1, got {budget}")
        self._function, self.bits, self.budget, self.n_queries = function, bits, budget, 0

    def allows(self, n: int) -> bool:
        """Whether so many more rows may be asked."""
        return self.budget is None or self.n_queries + n <= self.budget

    def ask(self, signs: NDArray[Any]) -> Float64:
        """Give the values (m,) at rows whose signs (m, n_bits) are given.

        Raises
        ------
        TypeError
            If the answers are no numbers.
        ValueError
            If the budget does not suffice, or there is not one finite answer for each row.
        """
        n = len(signs)
        if not self.allows(n):
            raise ValueError(
                f"a budget of {self.budget} queries is too small: {self.n_queries} were made, and "
                f"{n} more are needed to go on"
            )
        rows = self.bits.rows_of(signs).astype(np.int64)  # that functions may take as bits
        answers = to_array("what function returns", self._function(rows))
        self.n_queries += n
        if answers.dtype.kind not in "biuf":
            raise TypeError(f"function must return numbers, got dtype {answers.dtype}")
        if answers.shape not in ((n,), (n, 1)):
            raise ValueError(
                f"function must take many rows and return one number for each: expected shape "
                f"({n},), got {answers.shape}"
            )
        values: Float64 = np.array(answers.reshape(n), dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("function must return finite numbers, got NaN or infinity")
        return values

    def expect_no_noise(self, signs: NDArray[Any], values: Float64) -> None:
        """Ask rows again, and raise a ValueError if the answers are others."""
        again = self.ask(signs)
        if not np.allclose(again, values, rtol=1e-12, atol=0):
            raise ValueError(
                "function answers the same row in different ways: kushilevitz_mansour and "
                "FourierRegressor take noise, this does not"
            )


def drawn_signs(rng: np.random.RandomState, n: int, n_bits: int) -> Float64:
    """Draw rows of fair bits, (n, n_bits) of -1 and 1."""
    return np.where(rng.randint(0, 2, size=(n, n_bits)) == 1, -1.0, 1.0)


def expect_probability(delta: float) -> None:
    """Check the probability that a promise is wrong."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta}")
