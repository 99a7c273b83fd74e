"""Loss functions of boosting: start scores, gradients, losses of rows, and checks of targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certree import _core
from certree.ensembles.start_scores import TrainingTargets, sum_exactly
from certree.interface.arrays import Float64, Int32, UInt64
from certree.out_of_core.exact_sums import round_sum
from certree.out_of_core.ranks import Links

# The outputs that one loss reads together: (parameter of the loss, factor of the loss in the loss of a
# row, index of the first output, number of outputs, index of the target).
LossGroup = tuple[float, float, int, int, int]

# Indices of the outputs, (n_outputs,), in the order in which sums over outputs add them.
OutputOrder = list[int] | slice

# Iterative scaling of class scores ends after this many steps, or when the largest step is below this.
_MAX_SCALING_STEPS, _MAX_SCALING_ERROR = 300, 1e-9


@dataclass(frozen=True, slots=True)
class Loss:
    """Base class of the losses of boosting, functions of the scores of rows and their targets.

    Scores have shape (n_outputs, n), targets (n,). A subclass sets `name` and defines
    `find_start`; the C++ core computes the loss and its derivatives by `core_name` and
    `parameter`. `name`, `has_classes` and `has_scale` belong to the class; the constructor takes
    `n_outputs`, `quantile` and `cutoffs` in this order.

    Attributes
    ----------
    name : str
        Name of the loss in the C++ core.
    has_classes : bool
        Whether targets are class codes. Losses of several targets are then added without a factor,
        as all are in nats.
    has_scale : bool
        Whether the gradients of a row depend on all rows, by one number: the mean absolute error for
        quantiles, Huber's limit, or the mean Fisher information for Tweedie's deviance.
    n_outputs : int
        Number of scores of a row; 1 by default.
    quantile : float
        The quantile of the pinball loss; for Huber's loss the quantile of the absolute errors from
        which on the loss is linear. 0.5 by default.
    cutoffs : tuple of two int
        For ranking: the truncation level of LambdaMART's pairs, and the number of ranks that NDCG
        counts, 0 for all; (1, 0) by default.
    """

    name: ClassVar[str]
    has_classes: ClassVar[bool] = False
    has_scale: ClassVar[bool] = False

    n_outputs: int = 1
    quantile: float = 0.5
    cutoffs: tuple[int, int] = (1, 0)

    @property
    def is_log(self) -> bool:
        """Whether the prediction is the exponential of the score; here False."""
        return False

    @property
    def is_custom(self) -> bool:
        """Whether Python functions compute the loss and pass gradients to the C++ core; False here."""
        return False

    @property
    def parameter(self) -> float:
        """The parameter of the loss that the C++ core needs besides the name; here `quantile`."""
        return self.quantile

    @property
    def core_name(self) -> str:
        """Name by which the C++ core finds the loss; here the class attribute `name`."""
        return self.name

    @property
    def output_order(self) -> OutputOrder:
        """Order of the n_outputs scores in which floating-point sums over them are computed.

        Here the order of the scores; `MultiOutputLoss` makes it independent of the order of
        targets. It is a list of n_outputs indices, or ``slice(None)`` for the order of the scores.
        """
        return slice(None)

    @property
    def components(self) -> tuple[Loss, ...]:
        """The losses that this loss is the weighted sum of, one for each target or quantile.

        Here a tuple of this loss alone.
        """
        return (self,)

    def list_groups(self) -> list[LossGroup]:
        """Return the groups of outputs that the C++ core reads, one for each target or quantile.

        Each is a tuple of five: parameter of the loss (such as a quantile), factor of the loss in
        the sum over targets, index of the first output, number of outputs, index of the target.
        Here there is one group with all outputs, factor 1 and target 0.
        """
        return [(self.parameter, 1.0, 0, self.n_outputs, 0)]

    def encode_targets(self, y: NDArray[Any]) -> Float64:
        """Convert targets, y, to the float64 array that the C++ core reads.

        y: numbers or class codes, (n,). Here the shape stays; `MultiOutputLoss` returns one row for
        each of its losses.
        """
        return y.astype(np.float64)

    def get_output_targets(self, y: Float64) -> Float64:
        """Return the targets from which category statistics, further features, are computed.

        The mean of these numbers over the rows of a category is a numeric feature of the category
        (target encoding). y: as `encode_targets` returns it. Here y itself; `MultiOutputLoss` of
        classes returns indicators of the classes, (n_outputs, n).
        """
        return y

    def check_targets(self, y: NDArray[Any]) -> None:
        """Raise ValueError if the loss is not defined for one of the targets y, (n,).

        Here all targets are accepted.
        """

    def compute_start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """Compute the constant scores with the smallest mean loss, (n_outputs,).

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets: numbers or class codes.
        weight : ndarray of float64, shape (n,), or None
            Weights of the rows; None: all are equal.
        offset : ndarray of float64, shape (n_outputs, n), or None
            Offsets of the rows, to which the constant is added; None: no offsets.
        """
        has_classes = self.components[0].has_classes
        return self.find_start(
            TrainingTargets.from_table(y, weight, offset, has_classes=has_classes)
        )

    def find_start(self, rows: TrainingTargets) -> Float64:
        """Compute the start score, the constant to which trees are added, (n_outputs,).

        It does not depend on the order of the rows or on their division into blocks. rows: targets,
        weights and offsets of the training rows, whose methods compute sums and quantiles over the
        blocks, in this process or on workers of a cluster.
        """
        raise NotImplementedError

    def compute_gradients(
        self, y: NDArray[Any], scores: Float64, scale: float | None = None
    ) -> tuple[Float64, Float64]:
        """Compute the first and second derivatives of the loss of each row by its scores.

        The gradients of some losses depend on one number of all rows, such as the limit of Huber's
        loss (`has_scale`). y: targets, (n,), numbers or class codes; scores: (n_outputs, n); scale:
        this number if these rows are a block of all rows; None: it is computed from these rows, or
        the loss has none. Return two arrays, (n_outputs, n) each. Where the loss has a kink, the
        second derivative is that of a parabola above the loss.
        """
        about = self.name, self.parameter, y.astype(np.float64), scores
        return _core.compute_gradients(*about, scale)

    def compute_scale_terms(self, y: Float64, scores: Float64) -> Float64:
        """Compute a number for each row, (n,), from which the scale of the gradients follows.

        The gradients of some losses (`has_scale`) depend on one number of all rows, the scale: the
        mean of these numbers or, for Huber's loss, a quantile of them. y: targets, (n,); scores:
        (1, n).
        """
        return _core.compute_scale_terms(self.name, self.parameter, y, scores)

    def compute_row_losses(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Compute the loss of each row, (n,), without weights.

        y: targets, (n,), numbers or class codes; scores: (n_outputs, n).
        """
        return _core.compute_losses(self.name, self.parameter, y.astype(np.float64), scores)

    def stack_custom_gradients(self, y: Float64, scores: Float64) -> Float64:
        """Compute gradients and second derivatives for the C++ core, if the user has written the loss.

        y: targets, (n,); scores: (n_outputs, n). Return the gradients of all outputs followed by
        the second derivatives, (2 * n_outputs, n); an empty array (0, 0) if the C++ core computes
        the loss itself.
        """
        if not self.is_custom:
            return np.zeros((0, 0))
        return np.concatenate(self.compute_gradients(y, scores))

    def check_gradients(self, y: Float64, scores: Float64, keys: UInt64) -> None:
        """Raise ValueError if the gradients of a custom loss are not the derivatives of the loss.

        y: targets, (n,); scores: (n_outputs, n), at which both are compared; keys: random keys of
        the rows, (n,), which select the rows that are checked. Here nothing is checked; see
        `CustomLossAdapter`.
        """

    def compute_mean(
        self, y: Float64, scores: Float64, weight: Float64 | None, links: Links | None = None
    ) -> float:
        """Compute the weighted mean of the losses of rows, by an order-independent sum.

        y: targets, (n,); scores: (n_outputs, n); weight: (n,), or None for equal weights; links:
        connections to other processes (ranks), whose rows count too, or None.
        """
        return _core.compute_mean_loss(self.name, self.parameter, y, scores, weight, links)


@dataclass(frozen=True, slots=True)
class LogLoss(Loss):
    """Log loss of class codes 0, 1, ...

    Two classes have one output, the log odds of the second class. K > 2 classes have K outputs,
    whose softmax are the probabilities. Each output takes its own Newton step as if the other
    outputs did not change; second derivatives are multiplied by K / (K - 1) to correct for that
    (Friedman, "Greedy function approximation: a gradient boosting machine", 2001, Section 4.6). The
    constructor takes `n_outputs`, as all losses; its other arguments do not matter.
    """

    name: ClassVar[str] = "classes"
    has_classes: ClassVar[bool] = True

    def find_start(self, rows: TrainingTargets) -> Float64:
        """Compute the start scores: log odds of two classes, (1,), or K > 2 log probabilities, (K,).

        Half a row is added to the weight of each class, so that none has probability 0. With offsets
        the constants are such that the mean probability of each class is its frequency. rows: class
        codes, weights and offsets of the training rows.
        """
        weights, total = rows.get_class_weights(max(2, self.n_outputs))
        counts = weights + 0.5
        if rows.has_offset:
            start = _fit_class_constants(counts, total, rows)
            return start[1:] - start[:1] if self.n_outputs == 1 else start
        if self.n_outputs == 1:
            return np.log(counts[1:] / counts[:1])
        return np.log(counts / counts.sum())


class RegressionLoss(Loss):
    """Base class of losses of numeric targets, the squares of which must not over- or underflow.

    It adds this check of targets to `Loss`, and has its constructor. A subclass sets `name`, and
    defines `find_start`: the constant score of least mean loss.
    """

    __slots__ = ()

    def check_targets(self, y: NDArray[Any]) -> None:
        """Raise ValueError unless the largest absolute target is 0 or in 1e-100 .. 1e100.

        y: numeric targets, (n,).
        """
        largest = np.abs(y).max()
        if not (largest == 0 or 1e-100 < largest < 1e100):
            raise ValueError(
                "y must have a largest absolute value between 1e-100 and 1e100, or be 0, got values in "
                f"{y.min():.3g} .. {y.max():.3g}: multiply y by a constant"
            )


class MeanLoss(RegressionLoss):
    """Base class of losses whose start score is a function of means over the rows.

    It has the constructor of `Loss`. A subclass defines `list_start_terms` and
    `compute_start_from_means`.
    """

    __slots__ = ()

    def list_start_terms(self, y: Float64, offset: Float64) -> Float64:
        """Return m numbers of each row, whose weighted means determine the start score, (m, n).

        y: targets, (n,); offset: offsets of the rows, (1, n).
        """
        raise NotImplementedError

    def compute_start_from_means(self, means: Float64) -> Float64:
        """Compute the start score (the constant that trees are added to), (1,), from weighted means.

        means: weighted means over the training rows of the m numbers of each row that
        `list_start_terms` returns, (m,); without offsets the weighted mean target, (1,).
        """
        raise NotImplementedError

    def find_start(self, rows: TrainingTargets) -> Float64:
        """Compute the start score: the constant with the smallest mean loss if offsets are added, (1,).

        rows: targets, weights and offsets of the training rows.
        """
        if not rows.has_offset:
            return self.compute_start_from_means(np.array([rows.compute_mean()]))
        return self.compute_start_from_means(rows.compute_means(self.list_start_terms))


class SquaredLoss(MeanLoss):
    """Half of the squared error of a number.

    The constructor needs no arguments.
    """

    __slots__ = ()
    name = "squared_error"

    def list_start_terms(self, y: Float64, offset: Float64) -> Float64:
        """Return y - offset, (1, n), whose weighted mean is the start score.

        y: targets, (n,); offset: offsets of the rows, (1, n).
        """
        return y - offset

    def compute_start_from_means(self, means: Float64) -> Float64:
        """Return the start score: the mean of the targets minus offsets. means: this mean, (1,)."""
        return means


class QuantileLoss(RegressionLoss):
    """Pinball loss of a quantile; for the quantile 0.5 it is half of the absolute error.

    The loss has a kink, so the second derivative of a row is that of the parabola that lies above
    the loss and touches it at the score of the row (Hunter and Lange, "Quantile regression via an
    MM algorithm", 2000). Gradient pairs are in units of the mean absolute error of all rows, so
    that second derivatives are about 1. The constructor takes `quantile` by name, 0.5 by default.
    """

    __slots__ = ()
    name = "quantile"
    has_scale = True

    def find_start(self, rows: TrainingTargets) -> Float64:
        """Find the start score: the weighted quantile of the targets minus offsets, (1,).

        The field `quantile` says which quantile. rows: targets of the training rows, with weights
        and offsets.
        """
        return rows.find_quantile(self.quantile)


@dataclass(frozen=True, slots=True)
class HuberLoss(RegressionLoss):
    """Huber's loss: half of the squared error up to a limit, linear in the absolute error beyond it.

    The limit is the quantile `quantile` of the absolute errors of all training rows; it changes
    from round to round. Second derivatives are those of parabolas that touch the loss from above.
    The constructor takes `quantile` by name, 0.9 by default.
    """

    name: ClassVar[str] = "huber"
    has_scale: ClassVar[bool] = True
    quantile: float = 0.9

    def find_start(self, rows: TrainingTargets) -> Float64:
        """Find the start score: the weighted median of the targets minus offsets, (1,).

        rows: targets of the training rows, with weights and offsets.
        """
        return rows.find_quantile(0.5)


class _LogLinkLoss(MeanLoss):
    """Base class of halved deviances with a log link.

    The prediction is the exponential of the score; the variance of a target is ``mean**power``.
    Subclasses set `name` and `power`, and have the constructor of `Loss`.
    """

    __slots__ = ()
    power: float

    @property
    def is_log(self) -> bool:
        """Whether the prediction is the exponential of the score; here True."""
        return True

    def list_start_terms(self, y: Float64, offset: Float64) -> Float64:
        """Return two numbers of each row, whose means determine the start score, (2, n).

        They are ``y * exp((1 - power) * offset)`` and ``exp((2 - power) * offset)``. The start
        score is the logarithm of the ratio of their weighted means: the constant c for which the
        weighted mean gradient at the scores ``offset + c`` is 0. y: targets, (n,); offset: (1, n).
        """
        exponent = offset[0]
        return np.stack(
            [y * np.exp((1 - self.power) * exponent), np.exp((2 - self.power) * exponent)]
        )

    def compute_start_from_means(self, means: Float64) -> Float64:
        """Return the start score, (1,): the logarithm of the mean target, or of a ratio of two means.

        means: the weighted mean target, (1,), if there are no offsets; else the weighted means of
        both numbers that `list_start_terms` returns for a row, (2,): the logarithm of the first
        divided by the second is returned.
        """
        start = np.log(means[:1])
        return start if len(means) == 1 else start - np.log(means[1])

    def check_targets(self, y: NDArray[Any]) -> None:
        """Raise ValueError if a target y, (n,), is negative or all are 0.

        Raise it also unless the largest target is in 1e-100 .. 1e100, as `RegressionLoss` does.
        """
        super().check_targets(y)
        if y.min() < 0 or y.max() == 0:
            raise ValueError(
                f'y must be >= 0 and have a positive value with loss="{self.name}", got values in '
                f"{y.min():.3g} .. {y.max():.3g}: drop negative rows, or use another loss"
            )


class PoissonLoss(_LogLinkLoss):
    """Half of the Poisson deviance, without the terms that do not depend on the prediction.

    The constructor needs no arguments; `power` is 1.
    """

    __slots__ = ()
    name = "poisson"
    power = 1.0


class GammaLoss(_LogLinkLoss):
    """Half of the gamma deviance, without the terms that do not depend on the prediction.

    The constructor needs no arguments; `power` is 2.
    """

    __slots__ = ()
    name = "gamma"
    power = 2.0

    def check_targets(self, y: NDArray[Any]) -> None:
        """Raise ValueError unless all targets y, (n,), are positive.

        Raise it also unless the largest target is in 1e-100 .. 1e100, as `RegressionLoss` does.
        """
        super().check_targets(y)
        if y.min() <= 0:
            raise ValueError(
                f'y must be > 0 with loss="gamma", got {y.min():.3g}: use loss="tweedie" if y may be 0'
            )


@dataclass(frozen=True, slots=True)
class TweedieLoss(_LogLinkLoss):
    """Half of the Tweedie deviance: a target is the sum of a Poisson number of gamma amounts.

    The variance is the mean to the power `power`, 1 < power < 2 (Jorgensen, "Exponential dispersion
    models", 1987). Gradient pairs are divided by the mean Fisher information of all rows, so that
    second derivatives are about 1 in any unit of the targets. The constructor takes `power` by
    name, 1.5 by default.
    """

    name: ClassVar[str] = "tweedie"
    has_scale: ClassVar[bool] = True
    power: float = 1.5

    @property
    def parameter(self) -> float:
        """The power of the variance, the parameter that the C++ core needs besides the name."""
        return self.power


# A gain 2**y - 1 of a larger relevance y would swamp small gains in float64 sums.
_MAX_RELEVANCE = 31


@dataclass(frozen=True, slots=True)
class RankingLoss(Loss):
    """1 - NDCG of queries; gradient pairs are those of LambdaMART.

    NDCG is the normalized discounted cumulative gain (Järvelin and Kekäläinen, 2002). The
    constructor takes `cutoffs` by name: the truncation level of LambdaMART's pairs and the number
    of ranks that NDCG counts, 0 for all.
    """

    name: ClassVar[str] = "ranking"

    def check_targets(self, y: NDArray[Any]) -> None:
        """Raise ValueError unless all relevances y, (n,), are in 0 .. 31."""
        if not (y.min() >= 0 and y.max() <= _MAX_RELEVANCE):
            raise ValueError(
                f"y must hold relevances in 0 .. {_MAX_RELEVANCE}, got values in {y.min():.3g} .. "
                f"{y.max():.3g}: map relevances to small integers from 0 on"
            )

    def compute_start(self, *_: Any) -> Float64:
        """Return array([0.0]): a constant does not change a ranking. Arguments are ignored."""
        return np.zeros(1)

    def compute_row_losses(self, *_: Any) -> Float64:
        """Raise ValueError: only a whole query has a loss, see `compute_query_loss`.

        Arguments are ignored.
        """
        raise ValueError(
            'importance kind="permutation" is not supported for rankings, as only whole queries have a '
            "loss: shuffle a column of X and compare score(X, y, qid=...) instead"
        )

    def compute_query_loss(
        self, y: Float64, score: Float64, weight: Float64 | None, query: Int32
    ) -> float:
        """Compute the weighted mean over queries of 1 - NDCG.

        The second of `cutoffs` is the number of ranks that NDCG counts, 0 for all. A query without
        relevant rows has NDCG 1.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Relevance of each row.
        score : ndarray of shape (n,)
            Score of each row.
        weight : ndarray of shape (n,), or None
            Weight of the query of each row; None: queries count equally.
        query : ndarray of int32, shape (n,)
            Number of the query of each row; rows of a query follow each other.
        """
        return _core.compute_mean_ranking_loss((query, *self.cutoffs), y, score, weight)


def list_offsets(offset: Float64) -> Float64:
    """Return the offsets of all classes, (K, n).

    An offset is a known score, to which boosting adds. offset: log odds of the second of two
    classes, (1, n), where the first class gets 0; or one offset for each of K > 2 classes, (K, n).
    """
    both = np.vstack([np.zeros_like(offset), offset]) if len(offset) == 1 else offset
    return np.ascontiguousarray(both)


def compute_class_probabilities(start: Float64, offset: Float64) -> Float64:
    """Compute the class probabilities of rows, the softmax of constants plus offsets, (K, n).

    start: constant score of each class, (K,); offset: known scores of the rows, (1, n) for two
    classes (log odds of the second) or (K, n). Sums over classes are in the order of the classes,
    so that a row has the same bits in any block.
    """
    scores = start[:, None] + list_offsets(offset)
    powers = np.exp(scores - scores.max(axis=0))
    total = powers[0].copy()
    for power in powers[1:]:
        total += power
    return powers / total


def _fit_class_constants(counts: Float64, n: float, rows: TrainingTargets) -> Float64:
    """Compute one constant for each class, (K,), that make mean probabilities equal to frequencies.

    Probabilities are softmax(constant + offset), where two classes have offsets 0 and `offset`. The
    method is iterative scaling (Darroch and Ratcliff, "Generalized iterative scaling for log-linear
    models", 1972); no step raises the loss.

    Parameters
    ----------
    counts : ndarray of shape (K,)
        Weight of each class. It may add up to more than the rows: the rest counts as rows that have
        the mean offset.
    n : float
        Sum of the weights of the rows.
    rows : TrainingTargets
        Offsets and weights of the rows.
    """
    means = np.array([round_sum(total) / n for total in rows.sum_terms(_take_class_offsets)])
    mean_row, rest = means[:, None], np.array([counts.sum() - n])
    start = np.log(counts / counts.sum()) - means
    for _ in range(_MAX_SCALING_STEPS):
        sums = rows.sum_terms(_compute_probability_terms, start) + sum_exactly(
            compute_class_probabilities(start, mean_row), rest
        )
        step = np.log(counts / [round_sum(total) for total in sums])
        start += step
        if np.abs(step).max() < _MAX_SCALING_ERROR:
            break
    return start


def _take_class_offsets(y: Float64, offset: Float64) -> Float64:
    """Return the offsets of all K classes, (K, n), as a function that `sum_terms` takes.

    y: targets, which do not matter; offset: log odds of the second of two classes, (1, n), where
    the first class gets 0; or (K, n).
    """
    del y
    return list_offsets(offset)


def _compute_probability_terms(start: Float64, y: Float64, offset: Float64) -> Float64:
    """Return the class probabilities of rows, (K, n), as a function that `sum_terms` takes.

    They are the softmax of start + offset. start: constant score of each class, (K,); y: targets,
    which do not matter; offset: log odds of the second of two classes, (1, n), or (K, n).
    """
    del y
    return compute_class_probabilities(start, offset)
