"""Losses that the user writes in Python: functions of targets and scores, and a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certree.ensembles.losses import Loss, RegressionLoss
from certree.ensembles.staged import make_constant_scores
from certree.ensembles.start_scores import TrainingTargets, take_target
from certree.interface.arrays import Float64, UInt64
from certree.out_of_core.exact_sums import exact_sum
from certree.out_of_core.executors import Executor
from certree.out_of_core.ranks import Links, sum_over_ranks
from certree.out_of_core.row_block import RowBlock

CustomLink = Literal["identity", "log"]

# Smallest second derivative, as in the core: smaller ones would give very large steps.
_MIN_HESSIAN = 1e-7
# Gradients are compared with differences of the loss in this many rows, at scores moved by a multiple
# of the mean absolute error; the difference is taken over a smaller multiple of it.
_N_CHECKED, _SHIFT, _DIFFERENCE = 256, 0.37, 1e-4
# Largest relative difference, beyond rounding; and the fraction of rows that may differ more, at kinks.
_TOLERANCE, _MAX_KINKS = 1e-3, 0.05
# Newton steps to the best constant, halvings of a step that raises the loss, and the relative step that
# ends them.
_MAX_STEPS, _MAX_HALVINGS, _MIN_STEP = 100, 30, 1e-12


@dataclass(frozen=True, slots=True)
class CustomLoss:
    """A loss of numbers that is written in Python, for ``BoostedTreesRegressor(loss=...)``.

    Both functions are called with the targets and scores of many rows, read-only float64 arrays of
    shape (n,), in any order. They must compute each row by itself, as rows come in several blocks
    if they are in files or on a cluster. They ignore weights: their results are multiplied by the
    weights. Rounds call them once for the rows of each machine, and more often with a validation
    set. `fit` compares gradients with differences of the loss in 256 rows. cloudpickle sends the
    functions to the workers of a cluster, which need the modules that they import.

    Parameters
    ----------
    gradient_hessian : callable
        ``gradient_hessian(y, score)`` returns the first and second derivatives of the loss by the
        score, (n,) each. Second derivatives must be >= 0. Where the loss has a kink or a straight
        part, return those of a parabola above the loss. `l2_regularization` has their unit.
    loss : callable
        ``loss(y, score)`` returns the loss of each row, (n,).
    link : {"identity", "log"}, default="identity"
        "identity": the prediction is the score; "log": the prediction is the exponential of the score.

    Raises
    ------
    TypeError
        If a function is not callable.
    ValueError
        If `link` has another value.

    Examples
    --------
    The loss log cosh is smooth and grows like the absolute error.

    >>> import numpy as np
    >>> from certree import BoostedTreesRegressor
    >>> from certree.ensembles import CustomLoss
    >>> def gradient_hessian(y, score):
    ...     tanh = np.tanh(score - y)
    ...     return tanh, 1 - tanh**2
    >>> def log_cosh(y, score):
    ...     return np.logaddexp(score - y, y - score) - np.log(2)
    >>> loss = CustomLoss(gradient_hessian, log_cosh)
    >>> model = BoostedTreesRegressor(loss, max_iter=5, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]).predict([[1.0]]).shape
    (1,)
    """

    # A model file holds no functions: a loaded model has None instead, and can predict.
    gradient_hessian: Callable[[Float64, Float64], Any] | None = field(
        default=None, metadata={"is_code": True}
    )
    loss: Callable[[Float64, Float64], Any] | None = field(default=None, metadata={"is_code": True})
    link: CustomLink = "identity"

    def __post_init__(self) -> None:
        functions = self.gradient_hessian, self.loss
        if functions != (None, None) and not all(map(callable, functions)):
            raise TypeError(
                f"gradient_hessian and loss must be callables, got {functions}: pass two functions of "
                "(y, score)"
            )
        if self.link not in get_args(CustomLink):
            raise ValueError(f'link must be "identity" or "log", got {self.link!r}')


@dataclass(frozen=True, slots=True)
class CustomLossAdapter(RegressionLoss):
    """A `CustomLoss` as a `Loss` of boosting rounds; it checks what the functions return.

    The constructor takes `functions` by name.

    Attributes
    ----------
    functions : CustomLoss
        The functions and the link of the user.
    """

    name: ClassVar[str] = "custom"
    functions: CustomLoss = CustomLoss()

    @property
    def is_log(self) -> bool:
        """Whether predictions are exponentials of the scores, by the link of the user."""
        return self.functions.link == "log"

    @property
    def is_custom(self) -> bool:
        """Whether Python functions compute the loss and pass gradients to the C++ core; True here."""
        return True

    def find_start(self, rows: TrainingTargets) -> Float64:
        """Compute the start score, the constant with the smallest mean loss, by Newton's method, (1,).

        A step that raises the loss is halved up to 30 times; the method ends if that does not help.
        rows: targets, weights and offsets of the training rows; the constant is added to the offsets.
        """
        constant = self._guess_start(rows)
        (least,) = rows.compute_means(_list_losses, self, constant)
        for _ in range(_MAX_STEPS):
            gradient, hessian = rows.compute_means(_list_gradients, self, constant)
            step = -gradient / hessian
            for _ in range(_MAX_HALVINGS):
                (loss,) = rows.compute_means(_list_losses, self, constant + step)
                if loss < least:
                    break
                step /= 2
            else:
                break
            constant, least = constant + step, loss
            if abs(step) <= _MIN_STEP * (1 + abs(constant)):
                break
        return np.atleast_1d(constant)

    def _guess_start(self, rows: TrainingTargets) -> float:
        """Return the constant score from which Newton's method starts.

        It is the mean of targets minus offsets; with link "log" the logarithm of the mean target over
        the mean exponential of the offsets, or 0 if the mean target is not positive. rows: targets,
        weights and offsets of the training rows.
        """
        means = rows.compute_means(_list_start_terms, self.is_log)
        if not self.is_log:
            return float(means[0])
        mean = means[0] / means[1]
        return float(np.log(mean)) if mean > 0 else 0.0

    def compute_gradients(
        self,
        y: NDArray[Any],
        scores: Float64,
        scale: float | None = None,  # noqa: ARG002 -- of other losses
    ) -> tuple[Float64, Float64]:
        """Compute first and second derivatives by the user's function, (1, n) each.

        y: targets, (n,); scores: (1, n); scale: not used. Second derivatives below 1e-7 become
        1e-7. Raise TypeError or ValueError if the function does not return two arrays (n,) of
        finite numbers, the second >= 0.
        """
        result = self._call("gradient_hessian", y, scores)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"gradient_hessian must return a pair of arrays, got {type(result).__name__}: return "
                "(gradients, Hessians)"
            )
        names = "gradients of gradient_hessian", "Hessians of gradient_hessian"
        gradient, hessian = (
            _copy_numbers(name, values, len(y)) for name, values in zip(names, result, strict=True)
        )
        if (hessian < 0).any():
            raise ValueError(
                f"Hessians of gradient_hessian must be >= 0, got {hessian.min():g}: return the second "
                "derivatives of a convex upper bound of the loss, such as a parabola"
            )
        return gradient[None], np.maximum(hessian, _MIN_HESSIAN)[None]

    def compute_row_losses(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Compute the loss of each row by the user's function, (n,).

        y: targets, (n,); scores: (1, n). Raise ValueError if the function does not return finite
        numbers, (n,).
        """
        return _copy_numbers("loss", self._call("loss", y, scores), len(y))

    def compute_mean(
        self, y: Float64, scores: Float64, weight: Float64 | None, links: Links | None = None
    ) -> float:
        """Compute the weighted mean of the losses, by an order-independent sum.

        y: targets, (n,); scores: (1, n); weight: weights of the rows, (n,), or None; links:
        connections to other processes, whose rows count too, or None.
        """
        losses = self.compute_row_losses(y, scores)
        total, n = sum_over_ranks(
            [
                exact_sum(losses if weight is None else losses * weight),
                exact_sum(np.ones(len(y)) if weight is None else weight),
            ],
            links,
        )
        return total / n

    def check_gradients(self, y: Float64, scores: Float64, keys: UInt64) -> None:
        """Raise ValueError if the user's gradients are not the derivatives of the user's loss.

        y: targets, (n,); scores: (1, n); keys: random keys of the rows, (n,). Gradients of the 256
        rows with the smallest keys are compared with difference quotients of the loss, at two
        shifted scores. They may differ by more than 0.1 % in 5 % of the cases, because of kinks. The
        order of the rows does not matter.
        """
        rows = _select_checked_rows(keys, y, scores)
        y, scores = y[rows], scores[:, rows]
        unit = 1.0 if self.is_log else float(np.abs(y - scores).mean()) or max(1.0, abs(y[0]))
        excess, compared = [], []
        for shift in (-_SHIFT * unit, _SHIFT * unit):
            moved, gap = scores + shift, _DIFFERENCE * unit
            ends = [self.compute_row_losses(y, moved + end) for end in (gap, -gap)]
            slope, (gradient, _) = (
                (ends[0] - ends[1]) / (2 * gap),
                self.compute_gradients(y, moved),
            )
            rounding = 8 * np.finfo(np.float64).eps * np.maximum(*np.abs(ends)) / gap
            largest = np.maximum(np.abs(gradient[0]), np.median(np.abs(gradient)))
            excess.append(np.abs(slope - gradient[0]) - _TOLERANCE * largest - rounding)
            compared.append((y, moved[0], gradient[0], slope))
        if np.mean(np.array(excess) > 0) > _MAX_KINKS:
            shift_index, row = np.unravel_index(np.argmax(excess), np.shape(excess))
            target, score, first, difference = (
                float(values[row]) for values in compared[shift_index]
            )
            raise ValueError(
                f"gradient_hessian must return the derivatives of loss: at y={target:.6g}, "
                f"score={score:.6g} its gradient is {first:.6g}, and the difference quotient of the "
                f"loss is {difference:.6g}: correct one of the two functions"
            )

    def _call(self, name: str, y: NDArray[Any], scores: Float64) -> Any:
        """Call a function of the user with read-only targets and scores, (n,) each.

        name: "gradient_hessian" or "loss"; y: (n,); scores: (1, n). Return the unchecked result. Raise
        ValueError if the model comes from a file, which holds no functions.
        """
        function = getattr(self.functions, name)
        if function is None:
            raise ValueError(
                f"loss must be a CustomLoss with functions, got {self.functions!r}: model files do not "
                "hold functions. The loaded model can predict; set loss and fit again to use the loss"
            )
        return function(*map(_make_read_only, (y, scores[0])))


def _list_start_terms(is_log: bool, y: Float64, offset: Float64) -> Float64:
    """Return the numbers of each row whose means give a first guess of the start score.

    is_log: whether predictions are exponentials of scores; y: targets, (n,); offset: offsets of the
    rows, (1, n). Return targets minus offsets, (1, n), or targets and exponentials of the offsets,
    (2, n).
    """
    return np.stack([y, np.exp(offset[0])]) if is_log else (y - offset[0])[None]


def _list_losses(loss: CustomLossAdapter, constant: float, y: Float64, offset: Float64) -> Float64:
    """Return the losses of rows at the scores constant + offset, (1, n).

    y: targets, (n,); offset: (1, n). loss: the custom loss.
    """
    return loss.compute_row_losses(y, constant + offset)[None]


def _list_gradients(
    loss: CustomLossAdapter, constant: float, y: Float64, offset: Float64
) -> Float64:
    """Return the gradients and Hessians of rows at the scores constant + offset, (2, n).

    y: targets, (n,); offset: (1, n). loss: the custom loss.
    """
    return np.concatenate(loss.compute_gradients(y, constant + offset))


def check_custom_gradients(executor: Executor, loss: Loss, start: Float64) -> None:
    """Raise ValueError if the gradients of a `CustomLoss` are not the derivatives of its loss.

    Other losses are not checked. executor: holds the training rows in blocks, in this process or
    others; loss: loss of the fit; start: its start score, (1,). In 256 random rows gradients are
    compared with difference quotients of the loss; see `CustomLossAdapter.check_gradients`.
    """
    if loss.is_custom:
        rows = zip(*executor.reduce(_list_checked_rows, start), strict=True)
        y, scores, keys = (np.concatenate(columns, axis=-1) for columns in rows)
        loss.check_gradients(y, scores, keys)


def _list_checked_rows(block: RowBlock, start: Float64) -> list[tuple[Float64, Float64, UInt64]]:
    """Return those rows of a block that may be among the 256 whose gradients are checked.

    They are the m <= 256 rows with the smallest random keys. start: start score, (1,), to which the
    offsets of the rows are added. Return a list with one tuple of targets (m,), scores (1, m) and
    keys (m,), or an empty list if the block has no rows.
    """
    if not block.n:
        return []
    y, keys = take_target(block, 0), np.asarray(block.keys)
    scores = make_constant_scores(start, block.n, block.offset)
    rows = _select_checked_rows(keys, y, scores)
    return [(y[rows], scores[:, rows], keys[rows])]


def _select_checked_rows(keys: UInt64, y: Float64, scores: Float64) -> NDArray[np.intp]:
    """Return the indices of the at most 256 rows whose gradients are checked, by ascending keys.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n,)
        Random keys of the rows; the smallest ones are selected.
    y : ndarray of shape (n,)
        Targets, by which rows of equal keys are ordered.
    scores : ndarray of shape (1, n)
        Scores, by which rows of equal keys and targets are ordered.
    """
    n = min(_N_CHECKED, len(keys))
    candidates = np.flatnonzero(keys <= np.partition(keys, n - 1)[n - 1])
    order = np.lexsort((scores[0, candidates], y[candidates], keys[candidates]))
    return candidates[order[:n]]


def _make_read_only(values: NDArray[Any]) -> Float64:
    """Return values as a float64 array that cannot be written to: a view, or a copy of another type."""
    view = np.asarray(values, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def _copy_numbers(name: str, result: Any, n: int) -> Float64:
    """Check what a function of the user has returned, and copy it as float64, (n,).

    name: name of the result for errors. Raise ValueError unless it has shape (n,) and finite numbers.
    """
    array = np.asarray(result)
    if array.dtype.kind not in "biuf" or array.shape != (n,):
        raise ValueError(
            f"{name} must have shape ({n},) and hold numbers, got {array.shape} of {array.dtype}: "
            "return one number for each row"
        )
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} must hold finite numbers, got {numbers[~np.isfinite(numbers)][0]}: clip the "
            "scores that the function gets before it takes exp or log of them, so that nothing "
            "overflows"
        )
    return numbers
