"""Losses that boosting lowers: where it starts, which targets it takes, and what scores mean."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, fsum
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from certree import _core
from certree._core import fixed_unit
from certree.interface.arrays import Float64, Int32
from certree.parts.exact_sums import whole_numbers

# What outputs are for: the parameter of their loss, its share in that of a row, the first of the
# outputs, how many there are, and which target they have.
Goal = tuple[float, float, int, int, int]

# Numbers of outputs in some order.
Outputs = list[int] | slice

# So often at most the odds of classes are scaled to fit beside offsets, and until they fit so well.
_SCALINGS, _SCALED = 300, 1e-9


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of scores (n_outputs, n) at targets (n,)."""

    name: ClassVar[str]  # as the core knows it
    # The number that all rows decide together and gradients depend on: the mean of numbers of the rows,
    # a quantile of these, or none.
    scale: ClassVar[Literal["mean", "quantile"] | None] = None
    # Whether losses of several targets are in one unit as they stand, so that they can be added.
    has_one_unit: ClassVar[bool] = False

    n_outputs: int = 1
    quantile: float = 0.5
    depths: tuple[int, int] = (1, 0)  # documents that pairs and NDCG of queries look at; 0: all

    @property
    def is_log(self) -> bool:
        """Whether scores are logs of predictions."""
        return False

    @property
    def is_custom(self) -> bool:
        """Whether Python functions compute the loss, so that the core gets gradients each round."""
        return False

    @property
    def parameter(self) -> float:
        """The number that the core knows it by beside its name."""
        return self.quantile

    @property
    def core_name(self) -> str:
        """What the core knows it by."""
        return self.name

    @property
    def outputs(self) -> Outputs:
        """In which order outputs are added up."""
        return slice(None)

    @property
    def single(self) -> tuple[Loss, ...]:
        """The losses that it is the sum of: of each target, or each quantile."""
        return (self,)

    def goals(self) -> list[Goal]:
        """What the core is told of it beside its name."""
        return [(self.parameter, 1.0, 0, self.n_outputs, 0)]

    def targets(self, y: NDArray[Any]) -> Float64:
        """Targets as rounds take them, of numbers or codes of classes (n,)."""
        return y.astype(np.float64)

    def of_scores(self, y: Float64) -> Float64:
        """What means of levels are taken of, by targets as rounds take them."""
        return y

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Refuse targets that the loss is not made for."""

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """The best scores that are the same for all rows, beside offsets, (n_outputs,)."""
        raise NotImplementedError

    def compute_gradients(self, y: NDArray[Any], scores: Float64) -> tuple[Float64, Float64]:
        """Compute first and second derivatives of the loss by the scores, (n_outputs, n) each."""
        return _core.compute_gradients(self.name, self.parameter, y.astype(np.float64), scores)

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Loss of each row, (n,)."""
        return _core.compute_losses(self.name, self.parameter, y.astype(np.float64), scores)

    def stack_custom_gradients(self, y: Float64, scores: Float64) -> Float64:
        """Return gradients above Hessians, (2 * n_outputs, n); empty if the core computes the loss."""
        if not self.is_custom:
            return np.zeros((0, 0))
        return np.concatenate(self.compute_gradients(y, scores))

    def check_gradients(self, y: Float64, scores: Float64) -> None:
        """Raise ValueError if a user's gradients are not the derivatives of the user's loss."""

    def mean(self, y: Float64, scores: Float64, weight: Float64 | None) -> float:
        """Mean loss of rows, in whatever order they come."""
        return _core.compute_mean_loss(self.name, self.parameter, y, scores, weight)


@dataclass(frozen=True, slots=True)
class LogLoss(Loss):
    """Log loss of classes 0, 1, ...

    Scores are log odds of the second of two classes, of one output; or of more classes log
    probabilities but for a constant. Each of these is moved by itself, which Hessians times K / (K - 1)
    make up for (Friedman, "Greedy function approximation", 2001, Section 4.6).
    """

    name: ClassVar[str] = "classes"
    has_one_unit: ClassVar[bool] = True

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """Log odds or log probabilities of the classes, half a row more in each."""
        counts = _counts(y, weight, max(2, self.n_outputs))
        if offset is None:
            return self.start_of(counts)
        start = _scaled(counts + 0.5, weight, offset)
        return start[1:] - start[:1] if self.n_outputs == 1 else start

    def start_of(self, counts: Float64) -> Float64:
        """The same by the weights of the classes, at least two."""
        counts = counts + 0.5
        if self.n_outputs == 1:
            return np.log(counts[1:] / counts[:1])
        return np.log(counts / counts.sum())


class LossOfNumbers(Loss):
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


class SquaredLoss(LossOfNumbers):
    """Half of the squared error."""

    __slots__ = ()
    name = "squared_error"

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """The mean."""
        return np.atleast_1d(exact_mean(_above(y, offset), weight))


class QuantileLoss(LossOfNumbers):
    """Pinball loss of a quantile; that of one half is half of the absolute error.

    It has a kink, so a row's Hessian is that of the parabola which lies above the loss and touches it
    at the row's score (Hunter and Lange, "Quantile regression via an MM algorithm", 2000). Slopes are
    in units of the mean distance, so that Hessians are about 1.
    """

    __slots__ = ()
    name = "quantile"
    scale = "mean"

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """The quantile of the targets."""
        return np.atleast_1d(weighted_quantile(_above(y, offset), self.quantile, weight))


@dataclass(frozen=True, slots=True)
class HuberLoss(LossOfNumbers):
    """Squared error of the nearer rows, absolute error beyond a quantile of the distances.

    Hessians are those of parabolas that touch the loss.
    """

    name: ClassVar[str] = "huber"
    scale: ClassVar[Literal["mean", "quantile"] | None] = "quantile"
    quantile: float = 0.9

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """The median."""
        return np.atleast_1d(weighted_quantile(_above(y, offset), 0.5, weight))


class _LossOfPositive(LossOfNumbers):
    """Deviances of which scores are logs of predictions, and variances powers of these."""

    __slots__ = ()
    power: float

    @property
    def is_log(self) -> bool:
        """Scores are logs of predictions."""
        return True

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """The log of the mean, or of that by which exponentials of offsets are multiplied."""
        if offset is None:
            return np.log(np.atleast_1d(exact_mean(y, weight)))
        above = exact_mean(y * np.exp((1 - self.power) * offset[0]), weight)
        below = exact_mean(np.exp((2 - self.power) * offset[0]), weight)
        return np.log(np.atleast_1d(above)) - np.log(below)

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Numbers that are not negative, of which one is more than 0."""
        super().expect_domain(y)
        if y.min() < 0 or y.max() == 0:
            raise ValueError(f'loss="{self.name}" takes y >= 0 with a positive sum')


class PoissonLoss(_LossOfPositive):
    """Half of the Poisson deviance, but for what no prediction changes."""

    __slots__ = ()
    name = "poisson"
    power = 1.0


class GammaLoss(_LossOfPositive):
    """Half of the gamma deviance."""

    __slots__ = ()
    name = "gamma"
    power = 2.0

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Targets are positive."""
        super().expect_domain(y)
        if y.min() <= 0:
            raise ValueError('loss="gamma" takes y > 0')


@dataclass(frozen=True, slots=True)
class TweedieLoss(_LossOfPositive):
    """Half of the deviance of sums of a Poisson number of gamma amounts, many of which are 0.

    The variance is the power of the mean (Jorgensen, "Exponential dispersion models", 1987). Slopes are
    in units of the mean information, so that Hessians are about 1 whatever the unit of the targets is.
    """

    name: ClassVar[str] = "tweedie"
    scale: ClassVar[Literal["mean", "quantile"] | None] = "mean"
    power: float = 1.5

    @property
    def parameter(self) -> float:
        """The power."""
        return self.power


# Gains above lose documents of less relevance among the digits.
_MOST_RELEVANCE = 31


@dataclass(frozen=True, slots=True)
class RankingLoss(Loss):
    """1 - NDCG of queries, from whose pairs LambdaMART takes gradients."""

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

    def of_rows(self, *_: Any) -> Float64:
        """No row has a loss of its own."""
        raise ValueError(
            "a document has no loss by itself, and permutations know no queries: shuffle a feature "
            "and ask score(X, y, qid=...)"
        )

    def of_queries(self, y: Float64, score: Float64, weight: Float64 | None, query: Int32) -> float:
        """Mean over queries, whose rows stand together."""
        return _core.compute_mean_ranking_loss((query, *self.depths), y, score, weight)


def exact_mean(y: Float64, weight: Float64 | None) -> float:
    """The mean, in whatever order the values come."""
    if weight is None:
        return fsum(y) / len(y)
    return fsum(y * weight) / fsum(weight)


def _above(y: Float64, offset: Float64 | None) -> Float64:
    """Targets above offsets."""
    return y if offset is None else y - offset[0]


def _scaled(counts: Float64, weight: Float64 | None, offset: Float64) -> Float64:
    """What beside offsets lets classes be as frequent as counted, (K,): log probabilities.

    By iterative scaling (Darroch and Ratcliff, "Generalized iterative scaling for log-linear models",
    1972), which no step makes worse. Rows more than there are count as ones of the mean offset.
    """
    scores = np.vstack([np.zeros_like(offset), offset]) if len(offset) == 1 else offset
    n = scores.shape[1]
    weights = np.ones(n) if weight is None else weight
    means = [exact_mean(one, weight) for one in scores]
    scores = np.column_stack([scores, means])
    weights = np.append(weights, counts.sum() - fsum(weights))
    start = np.log(counts / counts.sum()) - means
    for _ in range(_SCALINGS):
        shares = softmax(start[:, None] + scores, axis=0)
        missing = np.log(counts / [fsum(weights * share) for share in shares])
        start += missing
        if np.abs(missing).max() < _SCALED:
            break
    return start


def _counts(y: NDArray[Any], weight: Float64 | None, n_classes: int) -> Float64:
    """Weight of each class, in whatever order the rows come."""
    if weight is None:
        return np.bincount(y.astype(np.intp), minlength=n_classes).astype(np.float64)
    return np.array([fsum(weight[y == k]) for k in range(n_classes)])


def weighted_quantile(y: Float64, quantile: float, weight: Float64 | None) -> float:
    """The smallest value with so large a share of the weight at or below it.

    Weights are added up as whole numbers, so that it hangs on no order.
    """
    order = np.argsort(y, kind="stable")
    if weight is None:
        place = rank_of(quantile, len(y))
    else:
        unit = fixed_unit(float(weight.max()), len(y))
        total = np.cumsum(whole_numbers(weight[order], unit))
        place = int(np.searchsorted(total, rank_of(quantile, int(total[-1])), side="right"))
    # Zeros without a sign, as their order is that of the rows.
    return float(y[order[place]]) + 0.0


def rank_of(quantile: float, total: int) -> int:
    """Where a quantile is among so many units of weight, the first being of rank 0."""
    return min(max(ceil(quantile * float(total)) - 1, 0), total - 1)
