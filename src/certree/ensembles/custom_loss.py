"""Losses that whoever fits has written: functions of targets and scores, and a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certree.ensembles.losses import LossOfNumbers, exact_mean
from certree.interface.arrays import Float64

CustomLink = Literal["identity", "log"]

# Hessians are kept from 0, where a step would have no end, as the core does it.
_LEAST_HESSIAN = 1e-7
# Slopes are compared with differences of the loss at so many rows, beside their scores by a part of the
# mean distance; differences are so small a part of it.
_CHECKED, _ASIDE, _DIFFERENCE = 256, 0.37, 1e-4
# They may be so far apart, beside rounding, but where the loss has a kink.
_APART, _KINKS = 1e-3, 0.05
# Newton's steps to the best constant, and how often one is halved that raises the loss.
_STEPS, _HALVES, _NEAR = 100, 30, 1e-12


@dataclass(frozen=True, slots=True)
class CustomLoss:
    """A loss of numbers that is written in Python, for ``BoostedTreesRegressor(loss=...)``.

    Its functions are called with the targets and scores of many rows, float64 of shape (n,) that must
    not be written to, and must treat every row by itself. They know no weights: what they say is
    multiplied by these. They are called once a round, and more often where rows judge. A fit compares
    gradients with differences of the loss.

    Parameters
    ----------
    gradient_hessian : callable
        ``gradient_hessian(y, score)`` gives the first and the second derivatives of the loss by the
        score, (n,) each. Second ones must not be negative. Where a loss has a kink or a straight part,
        give those of a parabola that lies above it. `l2_regularization` is in their unit.
    loss : callable
        ``loss(y, score)`` gives the loss of each row, (n,).
    link : {"identity", "log"}, default="identity"
        Whether the prediction is the score, or its exponential.

    Raises
    ------
    TypeError
        If a function is none.
    ValueError
        If the link is another one.

    Examples
    --------
    >>> import numpy as np
    >>> from certree import BoostedTreesRegressor
    >>> from certree.ensembles import CustomLoss
    >>> def slopes(y, score):  # of log cosh, which is smooth and grows like the absolute error
    ...     bent = np.tanh(score - y)
    ...     return bent, 1 - bent**2
    >>> def log_cosh(y, score):
    ...     return np.logaddexp(score - y, y - score) - np.log(2)
    >>> model = BoostedTreesRegressor(CustomLoss(slopes, log_cosh), max_iter=5, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]).predict([[1.0]]).shape
    (1,)
    """

    # A file holds no code; what it restores has none, and predicts.
    gradient_hessian: Callable[[Float64, Float64], Any] | None = field(
        default=None, metadata={"is_code": True}
    )
    loss: Callable[[Float64, Float64], Any] | None = field(default=None, metadata={"is_code": True})
    link: CustomLink = "identity"

    def __post_init__(self) -> None:
        functions = self.gradient_hessian, self.loss
        if functions != (None, None) and not all(map(callable, functions)):
            raise TypeError(f"gradient_hessian and loss must be functions, got {functions}")
        if self.link not in get_args(CustomLink):
            raise ValueError(f'link must be "identity" or "log", got {self.link!r}')


@dataclass(frozen=True, slots=True)
class LossOfFunctions(LossOfNumbers):
    """A custom loss, as rounds take it: what its functions say is checked."""

    name: ClassVar[str] = "custom"
    given: CustomLoss = CustomLoss()

    @property
    def is_log(self) -> bool:
        """Whether scores are logs of predictions."""
        return self.given.link == "log"

    @property
    def is_custom(self) -> bool:
        """It is not known to the core."""
        return True

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """A constant that Newton's steps from the mean do not better."""
        beside = np.zeros((1, len(y))) if offset is None else offset
        at = self._first_guess(y, weight, beside)
        least = self.mean(y, at + beside, weight)
        for _ in range(_STEPS):
            gradient, hessian = self.compute_gradients(y, at + beside)
            step = -exact_mean(gradient[0], weight) / exact_mean(hessian[0], weight)
            for _ in range(_HALVES):
                found = self.mean(y, at + step + beside, weight)
                if found < least:
                    break
                step /= 2
            else:
                break
            at, least = at + step, found
            if abs(step) <= _NEAR * (1 + abs(at)):
                break
        return np.atleast_1d(at)

    def _first_guess(self, y: Float64, weight: Float64 | None, offset: Float64) -> float:
        if not self.is_log:
            return exact_mean(y - offset[0], weight)
        mean = exact_mean(y, weight) / exact_mean(np.exp(offset[0]), weight)
        return float(np.log(mean)) if mean > 0 else 0.0

    def compute_gradients(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Compute first and second derivatives by the user's function, (1, n) each."""
        said = self._said("gradient_hessian", y, scores)
        if not isinstance(said, tuple | list) or len(said) != 2:
            raise TypeError(f"gradient_hessian must return two arrays, got {type(said).__name__}")
        gradient, hessian = (
            _numbers(name, one, len(y)) for name, one in zip(_SLOPES, said, strict=True)
        )
        if (hessian < 0).any():
            raise ValueError(
                f"second derivatives of gradient_hessian must not be negative, got {hessian.min():g}: "
                "give those of a parabola that lies above the loss"
            )
        return gradient[None], np.maximum(hessian, _LEAST_HESSIAN)[None]

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Loss of each row, (n,)."""
        return _numbers("loss", self._said("loss", y, scores), len(y))

    def mean(self, y: Float64, scores: Float64, weight: Float64 | None) -> float:
        """Mean loss of rows, in whatever order they come."""
        return exact_mean(self.of_rows(y, scores), weight)

    def check_gradients(self, y: Float64, scores: Float64) -> None:
        """Compare the user's gradients with differences of the user's loss at some of the rows."""
        some = slice(None, None, max(1, len(y) // _CHECKED))
        y, scores = y[some], scores[:, some]
        unit = 1.0 if self.is_log else float(np.abs(y - scores).mean()) or max(1.0, abs(y[0]))
        off, says = [], []
        for aside in (-_ASIDE * unit, _ASIDE * unit):
            at, gap = scores + aside, _DIFFERENCE * unit
            ends = [self.of_rows(y, at + one) for one in (gap, -gap)]
            slope, (gradient, _) = (ends[0] - ends[1]) / (2 * gap), self.compute_gradients(y, at)
            rounding = 8 * np.finfo(np.float64).eps * np.maximum(*np.abs(ends)) / gap
            most = np.maximum(np.abs(gradient[0]), np.median(np.abs(gradient)))
            off.append(np.abs(slope - gradient[0]) - _APART * most - rounding)
            says.append((y, at[0], gradient[0], slope))
        if np.mean(np.array(off) > 0) > _KINKS:
            side, row = np.unravel_index(np.argmax(off), np.shape(off))
            target, score, first, by_differences = (float(one[row]) for one in says[side])
            raise ValueError(
                f"gradient_hessian must return the derivatives of loss: at y={target:.6g}, "
                f"score={score:.6g} its gradient is {first:.6g}, and differences of the loss are "
                f"{by_differences:.6g}"
            )

    def _said(self, name: str, y: NDArray[Any], scores: Float64) -> Any:
        function = getattr(self.given, name)
        if function is None:
            raise ValueError(
                f"loss must be a CustomLoss with functions: {self.given!r} has none, as files hold no "
                "code. Its fit predicts; what takes a loss needs a fit with functions"
            )
        return function(*map(_read_only, (y, scores[0])))


_SLOPES = "first derivatives of gradient_hessian", "second derivatives of gradient_hessian"


def _read_only(values: NDArray[Any]) -> Float64:
    view = np.asarray(values, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def _numbers(name: str, said: Any, n: int) -> Float64:
    """A copy of what a function says of n rows."""
    given = np.asarray(said)
    if given.dtype.kind not in "biuf" or given.shape != (n,):
        raise ValueError(
            f"{name} must have shape ({n},) and hold numbers, got {given.shape} of {given.dtype}"
        )
    numbers = given.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} must hold finite numbers, got {numbers[~np.isfinite(numbers)][0]}"
        )
    return numbers
