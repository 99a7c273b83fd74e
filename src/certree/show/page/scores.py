"""How well a model does, with the interval that its rows leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.interface.formatting import format_four_digits
from certree.show.calibration import exact_interval
from certree.show.page.judged import Judged

# Standard errors to either side of a mean, for 95 %; draws of the bootstrap.
_STANDARD_ERRORS, _DRAWS = 1.96, 200


@dataclass(frozen=True, slots=True)
class Score:
    """A number about new rows, and where it lies with about 95 % probability.

    Parameters
    ----------
    name : str
        What it is.
    value, low, high : float
        The number on these rows, and the ends of the interval.
    is_share : bool
        Whether it is a share of rows, which is said in percent.
    how : str
        What the interval rests on.
    """

    name: str
    value: float
    low: float
    high: float
    is_share: bool
    how: str

    def said(self, number: float) -> str:
        """One of the numbers in words."""
        return f"{100 * number:.1f} %" if self.is_share else format_four_digits(number)

    def __str__(self) -> str:
        """The score and its interval."""
        return (
            f"{self.name} {self.said(self.value)} ({self.said(self.low)} to {self.said(self.high)})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """How far off a model is, row by row; what some rows tell, without the rows.

    Parameters
    ----------
    losses : ndarray of float64, shape (n,)
        Log losses (nats) of classes; squared errors of numbers.
    wrong : ndarray of bool, shape (n,), or None
        Which rows are predicted wrongly; None: the target is a number.
    y : ndarray of float64, shape (n,), or None
        The numbers; None: the target is a class.
    n_repeated : int or None
        How many rows also occur among those of the fit; None: the model does not know.
    """

    losses: Float64
    wrong: NDArray[np.bool_] | None
    y: Float64 | None
    n_repeated: int | None

    @classmethod
    def of(cls, judged: Judged) -> Self:
        """That of rows that are judged together."""
        if judged.shares is not None:
            wrong = np.asarray(judged.predicted != judged.y)
            return cls(judged.row_losses, wrong, None, judged.n_repeated)
        y, predicted = judged.y, judged.predicted.astype(np.float64)
        return cls((y - predicted) ** 2, None, y, judged.n_repeated)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """That of rows that were judged one after the other."""

        def together(name: str) -> Any:
            every = [getattr(one, name) for one in parts]
            return None if every[0] is None else np.concatenate(every)

        repeated = [one.n_repeated for one in parts if one.n_repeated is not None]
        return cls(
            together("losses"),
            together("wrong"),
            together("y"),
            sum(repeated) if repeated else None,
        )

    def scores(self) -> list[Score]:
        """Error and log loss of a classifier; root mean squared error and R2 of a regressor."""
        if self.y is not None:
            return _of_numbers(self.y, self.losses)
        assert self.wrong is not None
        wrong, n = float(self.wrong.sum()), len(self.losses)
        low, high = exact_interval(wrong, n)
        error = Score("Error", wrong / n, low, high, True, "exact, Clopper and Pearson")
        return [error, _mean("Log loss (nats)", self.losses)]


def scores_of(judged: Judged) -> list[Score]:
    """The scores of rows that are judged together."""
    return Told.of(judged).scores()


def _mean(name: str, losses: Float64) -> Score:
    mean, error = float(losses.mean()), _standard_error(losses)
    low, high = max(mean - _STANDARD_ERRORS * error, 0.0), mean + _STANDARD_ERRORS * error
    return Score(name, mean, low, high, False, "1.96 standard errors")


def _standard_error(values: Float64) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _of_numbers(y: Float64, squares: Float64) -> list[Score]:
    squared = _mean("", squares)
    value, low, high = np.sqrt([squared.value, squared.low, squared.high]).tolist()
    scores = [Score("Root mean squared error", value, low, high, False, squared.how)]
    if y.std() > 0:
        scores.append(_explained(y, squares))
    return scores


def _explained(y: NDArray[np.float64], squares: Float64) -> Score:
    """R2 with the quantiles of a bootstrap."""
    centred = y - y.mean()
    columns = np.column_stack([np.ones(len(y)), centred, centred**2, squares])
    random = np.random.default_rng(0)
    p = np.full(len(y), 1 / len(y))
    drawn = np.array([random.multinomial(len(y), p) @ columns for _ in range(_DRAWS)])
    n, first, second, missed = drawn.T
    spread = second - first**2 / n
    found = 1 - missed[spread > 0] / spread[spread > 0]
    low, high = np.quantile(found, [0.025, 0.975])
    value = float(1 - squares.sum() / (centred**2).sum())
    return Score("R2, share of the variance", value, float(low), float(high), False, "bootstrap")
