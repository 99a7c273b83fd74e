"""Losses that boosting lowers: where it starts, which targets it takes, and what scores mean."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certree import _core
from certree.interface.arrays import Float64, Int32


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of scores (n_outputs, n) at targets (n,)."""

    name: ClassVar[str]  # as the core knows it
    is_log: ClassVar[bool] = False  # whether scores are logs of predictions

    n_outputs: int = 1
    quantile: float = 0.5
    depths: tuple[int, int] = (1, 0)  # documents that pairs and NDCG of queries look at; 0: all

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Refuse targets that the loss is not made for."""

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The best scores that are the same for all rows, (n_outputs,)."""
        raise NotImplementedError

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Loss of each row, (n,)."""
        return _core.losses(self.name, self.quantile, y.astype(np.float64), scores)


@dataclass(frozen=True, slots=True)
class LogLoss(Loss):
    """Log loss of classes 0, 1, ...

    Scores are log odds of the second of two classes, of one output; or of more classes log
    probabilities but for a constant. Each of these is moved by itself, which Hessians times K / (K - 1)
    make up for (Friedman, "Greedy function approximation", 2001, Section 4.6).
    """

    name: ClassVar[str] = "classes"

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """Log odds or log probabilities of the classes, half a row more in each."""
        counts = _counts(y, weight, max(2, self.n_outputs)) + 0.5
        if self.n_outputs == 1:
            return np.log(counts[1:] / counts[:1])
        return np.log(counts / counts.sum())


class _LossOfNumbers(Loss):
    """What losses of numbers share."""

    __slots__ = ()

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Numbers whose squares are some."""
        most = np.abs(y).max()
        if not (most == 0 or 1e-100 < most < 1e100):
            raise ValueError(
                f"y must be in a unit in which its squares are float64, got values in {y.min():.3g} "
                f".. {y.max():.3g}: multiply it by a constant"
            )


class SquaredLoss(_LossOfNumbers):
    """Half of the squared error."""

    __slots__ = ()
    name = "squared_error"

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The mean."""
        return np.atleast_1d(exact_mean(y, weight))


class QuantileLoss(_LossOfNumbers):
    """Pinball loss of a quantile; that of one half is half of the absolute error.

    It has a kink, so a row's Hessian is that of the parabola which lies above the loss and touches it
    at the row's score (Hunter and Lange, "Quantile regression via an MM algorithm", 2000). Slopes are
    in units of the mean distance, so that Hessians are about 1.
    """

    __slots__ = ()
    name = "quantile"

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The quantile of the targets."""
        return np.atleast_1d(weighted_quantile(y, self.quantile, weight))


@dataclass(frozen=True, slots=True)
class HuberLoss(_LossOfNumbers):
    """Squared error of the nearer rows, absolute error beyond a quantile of the distances.

    Hessians are those of parabolas that touch the loss.
    """

    name: ClassVar[str] = "huber"
    quantile: float = 0.9

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The median."""
        return np.atleast_1d(weighted_quantile(y, 0.5, weight))


class _LossOfPositive(_LossOfNumbers):
    """Losses of which scores are logs of predictions."""

    __slots__ = ()
    is_log = True

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The log of the mean."""
        return np.log(np.atleast_1d(exact_mean(y, weight)))


class PoissonLoss(_LossOfPositive):
    """Half of the Poisson deviance, but for what no prediction changes."""

    __slots__ = ()
    name = "poisson"

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Counts are not negative, and one is more than 0."""
        super().expect_domain(y)
        if y.min() < 0 or y.max() == 0:
            raise ValueError('loss="poisson" takes y >= 0 with a positive sum')


class GammaLoss(_LossOfPositive):
    """Half of the gamma deviance."""

    __slots__ = ()
    name = "gamma"

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Targets are positive."""
        super().expect_domain(y)
        if y.min() <= 0:
            raise ValueError('loss="gamma" takes y > 0')


# Gains above lose documents of less relevance among the digits.
_MOST_RELEVANCE = 31


@dataclass(frozen=True, slots=True)
class RankingLoss(Loss):
    """1 - NDCG of queries, of whose pairs LambdaMART takes slopes."""

    name: ClassVar[str] = "ranking"

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Relevances whose gains are some."""
        if not (y.min() >= 0 and y.max() <= _MOST_RELEVANCE):
            raise ValueError(
                f"y must hold relevances in 0 .. {_MOST_RELEVANCE}, got values in {y.min():.3g} .. "
                f"{y.max():.3g}"
            )

    def start(self, *_: Any) -> Float64:
        """Nothing: what all rows share ranks none of them."""
        return np.zeros(1)

    def mean(self, y: Float64, score: Float64, weight: Float64 | None, query: Int32) -> float:
        """Mean over queries, whose rows stand together."""
        return _core.mean_ranking_loss((query, *self.depths), y, score, weight)


def exact_mean(y: Float64, weight: Float64 | None) -> float:
    """The mean, in whatever order the values come."""
    if weight is None:
        return fsum(y) / len(y)
    return fsum(y * weight) / fsum(weight)


def _counts(y: NDArray[Any], weight: Float64 | None, n_classes: int) -> Float64:
    """Weight of each class, in whatever order the rows come."""
    if weight is None:
        return np.bincount(y.astype(np.intp), minlength=n_classes).astype(np.float64)
    return np.array([fsum(weight[y == k]) for k in range(n_classes)])


def weighted_quantile(y: Float64, quantile: float, weight: Float64 | None) -> float:
    """The smallest value with so large a share of the weight at or below it."""
    weights = np.ones(len(y)) if weight is None else weight
    order = np.lexsort((weights, y))
    total = np.cumsum(weights[order])
    place = np.searchsorted(total, quantile * total[-1])
    return float(y[order][min(place, len(y) - 1)])
