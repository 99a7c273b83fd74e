"""Losses that boosting lowers: where it starts, which way to go, and what scores mean."""

from dataclasses import dataclass
from math import fsum, ldexp
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, xlogy

from certree._core import log_loss_slopes
from certree.interface.arrays import Float64, plain

# Hessians are kept from 0, where a step would have no end.
_LEAST_HESSIAN = 1e-7
# Distances below this share of their mean count as so large where a loss has a kink.
_KINK = 0.1


class Loss(Protocol):
    """A loss of scores (n_outputs, n) at targets (n,)."""

    @property
    def n_outputs(self) -> int:
        """Scores of a row."""

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Refuse targets that the loss is not made for."""

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The best scores that are the same for all rows, (n_outputs,)."""

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Gradients and Hessians of each row's loss, (n_outputs, n) each."""

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Loss of each row, (n,)."""

    def dispersion(self, y: NDArray[Any], scores: Float64, weight: Float64 | None) -> float:
        """What the loss is divided by to be the negative log of a likelihood (nats)."""


class _Likelihood:
    """Losses that are negative logs of likelihoods as they are."""

    def dispersion(self, *_: Any) -> float:
        """1."""
        return 1.0


@dataclass(frozen=True, slots=True)
class LogLoss(_Likelihood):
    """Log loss of two classes, 0 and 1; scores are log odds."""

    n_outputs: int = 1

    def expect_domain(self, y: NDArray[Any]) -> None:
        """All classes are fine."""

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """Log odds of the classes, half a row more in each."""
        counts = _counts(y, weight, 2) + 0.5
        return np.log(counts[1:] / counts[:1])

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Errors of the probabilities, and their variances."""
        return _slopes_of_classes(y, scores)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Negative log probability of the class."""
        return np.logaddexp(0.0, np.where(y == 1, -scores[0], scores[0]))


@dataclass(frozen=True, slots=True)
class SoftmaxLoss(_Likelihood):
    """Log loss of more classes; scores are log probabilities but for a constant."""

    n_outputs: int

    def expect_domain(self, y: NDArray[Any]) -> None:
        """All classes are fine."""

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """Log shares of the classes, half a row more in each."""
        counts = _counts(y, weight, self.n_outputs) + 0.5
        return np.log(counts / counts.sum())

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Errors of the probabilities, and their variances times K / (K - 1).

        Each score is moved by itself, which the factor makes up for (Friedman, "Greedy function
        approximation", 2001, Section 4.6).
        """
        return _slopes_of_classes(y, scores)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Negative log probability of the class."""
        found: Float64 = -log_softmax(scores, axis=0)[y, np.arange(len(y))]
        return found


def _slopes_of_classes(y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
    return log_loss_slopes(plain(y, np.int32), scores, _LEAST_HESSIAN)


class _OfNumbers:
    """What losses of one number share."""

    n_outputs: ClassVar[int] = 1
    is_log: ClassVar[bool] = False  # whether scores are logs of predictions

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Numbers whose squares are some."""
        most = np.abs(y).max()
        if not (most == 0 or 1e-100 < most < 1e100):
            raise ValueError(
                f"y must be in a unit in which its squares are float64, got values in {y.min():.3g} "
                f".. {y.max():.3g}: multiply it by a constant"
            )

    def dispersion(self, y: NDArray[Any], scores: Float64, weight: Float64 | None) -> float:
        """Mean loss: that of the most likely scale."""
        losses, total = self.of_rows(y, scores), float(len(y))
        if weight is not None:
            losses, total = losses * weight, sum_in_any_order(weight)
        mean = sum_in_any_order(losses) / total
        return mean if mean > 0 else 1.0

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        raise NotImplementedError


class SquaredLoss(_OfNumbers):
    """Half of the squared error."""

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The mean."""
        return np.atleast_1d(exact_mean(y, weight))

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Errors, and ones."""
        return scores - y, np.ones_like(scores)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Half of the squared error."""
        return 0.5 * (scores[0] - y) ** 2

    def dispersion(self, y: NDArray[Any], scores: Float64, weight: Float64 | None) -> float:
        """The mean squared error."""
        return 2.0 * _OfNumbers.dispersion(self, y, scores, weight)


@dataclass(frozen=True, slots=True)
class QuantileLoss(_OfNumbers):
    """Pinball loss of a quantile; that of one half is half of the absolute error.

    It has a kink, so a row's Hessian is that of the parabola which lies above the loss and touches it
    at the row's score (Hunter and Lange, "Quantile regression via an MM algorithm", 2000).
    """

    quantile: float = 0.5

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The quantile of the targets."""
        return np.atleast_1d(weighted_quantile(y, self.quantile, weight))

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """In units of the mean distance, so that Hessians are about 1."""
        distance = np.abs(y - scores)
        unit = sum_in_any_order(distance[0]) / len(y)
        if unit == 0:
            return np.zeros_like(scores), np.ones_like(scores)
        gradient = np.where(y > scores, -self.quantile, 1 - self.quantile)
        gradient[y == scores] = 0.0
        return 2 * unit * gradient, unit / np.maximum(distance, _KINK * unit)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """The pinball loss."""
        above = y - scores[0]
        return np.maximum(self.quantile * above, (self.quantile - 1) * above)

    def dispersion(self, y: NDArray[Any], scores: Float64, weight: Float64 | None) -> float:
        """The mean loss, times what slopes are multiplied by."""
        unit = sum_in_any_order(np.abs(y - scores[0])) / len(y)
        return _OfNumbers.dispersion(self, y, scores, weight) * 2 * unit if unit > 0 else 1.0


@dataclass(frozen=True, slots=True)
class HuberLoss(_OfNumbers):
    """Squared error of the nearer rows, absolute error beyond a quantile of the distances."""

    quantile: float = 0.9

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The median."""
        return np.atleast_1d(weighted_quantile(y, 0.5, weight))

    def _bend(self, y: NDArray[Any], scores: Float64) -> float:
        return float(np.quantile(np.abs(y - scores), self.quantile))

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Errors cut off at the bend, and what parabolas that touch there have."""
        bend, above = self._bend(y, scores), y - scores
        far = np.abs(above) > bend
        hessian = np.ones_like(scores)
        hessian[far] = bend / np.abs(above[far])
        return -np.clip(above, -bend, bend), np.maximum(hessian, _LEAST_HESSIAN)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """The loss with the bend of these rows."""
        bend, distance = self._bend(y, scores), np.abs(y - scores[0])
        near = np.minimum(distance, bend)
        return near * (distance - 0.5 * near)

    def dispersion(self, y: NDArray[Any], scores: Float64, weight: Float64 | None) -> float:
        """Twice the mean loss, as for squares."""
        return 2.0 * _OfNumbers.dispersion(self, y, scores, weight)


class _OfPositive(_Likelihood, _OfNumbers):
    """Losses of which scores are logs of predictions; these are likelihoods."""

    is_log = True

    def start(self, y: NDArray[Any], weight: Float64 | None) -> Float64:
        """The log of the mean."""
        return np.log(np.atleast_1d(exact_mean(y, weight)))


class PoissonLoss(_OfPositive):
    """Half of the Poisson deviance, but for what no prediction changes."""

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Counts are not negative, and one is more than 0."""
        _OfNumbers.expect_domain(self, y)
        if y.min() < 0 or y.max() == 0:
            raise ValueError('loss="poisson" takes y >= 0 with a positive sum')

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Errors of the means, and the means."""
        mean = np.exp(scores)
        return mean - y, np.maximum(mean, _LEAST_HESSIAN)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Half of the deviance."""
        return xlogy(y, y) - y - y * scores[0] + np.exp(scores[0])


class GammaLoss(_OfPositive):
    """Half of the gamma deviance."""

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Targets are positive."""
        _OfNumbers.expect_domain(self, y)
        if y.min() <= 0:
            raise ValueError('loss="gamma" takes y > 0')

    def slopes(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Relative errors, and ratios of targets to means."""
        ratio = y * np.exp(-scores)
        return 1 - ratio, np.maximum(ratio, _LEAST_HESSIAN)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Half of the deviance."""
        ratio = y * np.exp(-scores[0])
        return ratio - 1 - np.log(ratio)


def exact_mean(y: Float64, weight: Float64 | None) -> float:
    """The mean, in whatever order the values come."""
    if weight is None:
        return fsum(y) / len(y)
    return fsum(y * weight) / fsum(weight)


def sum_in_any_order(terms: Float64) -> float:
    """A sum that is the same to the last bit whatever the order of its terms: one of whole numbers."""
    largest = np.abs(terms).max(initial=0.0)
    if largest == 0 or not np.isfinite(largest):
        return float(largest)
    # As many digits as all terms together may have without leaving int64.
    exponent = 62 - len(terms).bit_length() - int(np.frexp(largest)[1])
    whole = np.ldexp(terms, exponent).astype(np.int64)
    return ldexp(float(whole.sum()), -exponent)


def _counts(y: NDArray[Any], weight: Float64 | None, n_classes: int) -> Float64:
    """Weight of each class, in whatever order the rows come."""
    if weight is None:
        return np.bincount(y, minlength=n_classes).astype(np.float64)
    return np.array([fsum(weight[y == k]) for k in range(n_classes)])


def weighted_quantile(y: Float64, quantile: float, weight: Float64 | None) -> float:
    """The smallest value with so large a share of the weight at or below it."""
    weights = np.ones(len(y)) if weight is None else weight
    order = np.lexsort((weights, y))
    total = np.cumsum(weights[order])
    place = np.searchsorted(total, quantile * total[-1])
    return float(y[order][min(place, len(y) - 1)])
