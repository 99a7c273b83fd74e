"""A loss of rows with several targets or quantiles: the weighted sum of one loss for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from certree.ensembles.losses import Loss, LossGroup, OutputOrder
from certree.ensembles.start_scores import TrainingTargets
from certree.explain.output_groups import OutputGroups
from certree.interface.arrays import Float64, UInt64
from certree.out_of_core.ranks import Links
from certree.rows.hashes import hash_target


@dataclass(frozen=True, slots=True)
class MultiOutputLoss(Loss):
    """The weighted sum of losses of one kind, each of its own outputs; one tree serves all of them.

    There is one loss for each numeric target, for each quantile of one target, or for each column
    of classes. A loss of numbers is divided by its mean before the first round and by the number of
    losses, so that units of targets do not matter. Log losses are added as they are. Losses are
    added in an order that depends on the values of the targets, so that permuted columns give
    exactly the same sums. `combine` makes it from its losses.

    Attributes
    ----------
    components : tuple of Loss
        The losses, one for each target or quantile, in the order of the columns of y.
    factors : tuple of float
        Factor of each loss in the sum. Empty for log losses, and before `with_training_rows`.
    order : tuple of int
        Indices of the losses in the order in which they are added. Empty before
        `with_training_rows`.
    """

    name: ClassVar[str] = "several"

    components: tuple[Loss, ...] = ()
    factors: tuple[float, ...] = ()
    order: tuple[int, ...] = ()

    @classmethod
    def combine(cls, losses: Iterable[Loss], factors: tuple[float, ...] = ()) -> Self:
        """Make the sum of losses of one kind, with the factors of an earlier fit if there are some.

        losses: one for each target or quantile; factors: factor of each loss in the sum, in the
        same order, or empty: they are not known yet.
        """
        components = tuple(losses)
        n_outputs = sum(loss.n_outputs for loss in components)
        return cls(n_outputs=n_outputs, components=components, factors=factors)

    @property
    def output_groups(self) -> OutputGroups:
        """The number of outputs of each loss, in the order of `components`.

        Its field `sizes` is a tuple of these numbers.
        """
        return OutputGroups(tuple(loss.n_outputs for loss in self.components))

    @property
    def core_name(self) -> str:
        """Name by which the C++ core finds the losses: that of the first, as all are of one kind."""
        return self.components[0].core_name

    @property
    def output_order(self) -> OutputOrder:
        """Order of the n_outputs scores in which floating-point sums over them are computed.

        Return a list of n_outputs indices, or ``slice(None)`` for the order of the scores. For
        classes, the outputs of target ``order[0]``, then those of ``order[1]``, and so on; for
        numbers the order of the columns.
        """
        if not self.components[0].has_classes:
            return slice(None)
        first, sizes = self.output_groups.first_outputs, self.output_groups.sizes
        return [first[k] + j for k in self.order for j in range(sizes[k])]

    @property
    def is_log(self) -> bool:
        """Whether predictions are the exponentials of the scores; all losses have the same link."""
        return self.components[0].is_log

    def encode_targets(self, y: NDArray[Any]) -> Float64:
        """Convert targets to an array with one row for each loss, (n_losses, n), float64.

        y: numbers or class codes, (n_losses, n), or (n,) if all losses are of one target.
        """
        shape = len(self.components), y.shape[-1]
        return np.ascontiguousarray(np.broadcast_to(y, shape), dtype=np.float64)

    def get_output_targets(self, y: Float64) -> Float64:
        """Return the targets from which category statistics, further features, are computed.

        The mean of these numbers over the rows of a category is a numeric feature of the category
        (target encoding). y: as `encode_targets` returns it. For numbers y itself, (n_losses, n). For
        classes indicators of 0 or 1, (n_outputs, n): one row for the second of two classes, or one
        row for each of K > 2 classes; targets in the order `order`.
        """
        if not self.components[0].has_classes:
            return y
        columns = [(y[k], self.components[k].n_outputs) for k in self.order]
        flags = [codes == np.arange(n)[:, None] if n > 1 else codes[None] for codes, n in columns]
        return np.concatenate(flags).astype(np.float64)

    def check_targets(self, y: NDArray[Any]) -> None:
        """Raise ValueError if the losses are not defined for one of the targets y.

        y: (n_losses, n), or (n,) for quantiles. The first loss checks all targets, as all are of
        one kind.
        """
        for target in np.atleast_2d(y):
            self.components[0].check_targets(target)

    def with_training_rows(self, y: NDArray[Any], weight: Float64 | None, rows: UInt64) -> Self:
        """Return a copy with `order`, and missing `factors`, computed from the training rows.

        `order` has the indices of the losses in the order in which they are added: by ascending hash
        of their target column together with `rows`, so that neither the order of the rows nor that
        of the columns matters. `factors` has the factor of each loss in the sum, 1 / (n_losses * its
        mean before the first round), so that units of targets do not matter. Factors of an earlier
        fit are kept; log losses get none.

        y: targets, (n_losses, n), or (n,) for quantiles; weight: row weights, (n,), or None; rows:
        hash of the features of each row, (n,).
        """
        targets = self.encode_targets(y)
        ordered = self.with_order([hash_target(target, rows) for target in targets])
        if not ordered.needs_factors:
            return ordered
        means = [
            loss.compute_mean(
                target,
                np.full((1, len(target)), start),
                weight,
            )
            for loss, target, start in zip(
                self.components, targets, self.compute_start(y, weight), strict=True
            )
        ]
        return ordered.with_factors(means)

    def with_order(self, keys: Sequence[int]) -> Self:
        """Return a copy that adds the losses by ascending keys, equal keys by ascending parameters.

        keys: hash of the target column of each loss together with the rows' features, (n_losses,).
        Quantiles of one target have equal keys and are added in ascending order. A parameter is
        that of the loss, such as its quantile.
        """
        sort_keys = [loss.parameter for loss in self.components], keys
        return replace(self, order=tuple(int(k) for k in np.lexsort(sort_keys)))

    @property
    def needs_factors(self) -> bool:
        """Whether `factors` must still be computed: losses have different units and no factors yet.

        Log losses never need them, as all are in nats.
        """
        return not (self.factors or self.components[0].has_classes)

    def with_factors(self, means: Sequence[float]) -> Self:
        """Return a copy whose losses have the factors 1 / (n_losses * mean).

        means: mean of each loss over the training rows before the first round, (n_losses,); if it
        is 0, the factor is 1 / n_losses.
        """
        n = len(means)
        factors = tuple(1 / (n * mean) if mean > 0 else 1 / n for mean in means)
        return replace(self, factors=factors)

    def reorder_columns(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return targets with their columns in the order in which losses are added (`order`).

        y: (n, n_losses), or (n,) for quantiles, which is returned as it is.
        """
        return y if y.ndim == 1 else y[:, list(self.order)]

    def list_groups(self) -> list[LossGroup]:
        """Return the groups of outputs that the C++ core reads, one tuple for each loss.

        Groups are in the order in which losses are added: loss ``order[0]`` first, or by column
        before `order` is set. A tuple has five numbers: parameter of the loss (such as its
        quantile), factor of the loss in the sum, index of its first output, number of its outputs,
        and its index k in `components`, which is also the row of its targets in the result of
        `encode_targets`. Indices refer to the order of `components`, not to `order`.
        """
        first = self.output_groups.first_outputs
        return [
            (self.components[k].parameter, factor, first[k], self.components[k].n_outputs, k)
            for k, factor in zip(*self._get_order_and_factors(), strict=True)
        ]

    def find_start(self, rows: TrainingTargets) -> Float64:
        """Return the start scores, constants with the least mean loss, loss after loss, (n_outputs,).

        rows: targets, weights and offsets of the training rows. Offsets are supported if each loss
        has one output.
        """
        return np.concatenate(
            [
                loss.find_start(rows.select(k, loss.n_outputs))
                for k, loss in enumerate(self.components)
            ]
        )

    def compute_row_losses(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Compute the sum over losses of factor times loss in each row, (n,).

        Before `with_training_rows` factors are 1 for log losses, and 1 / n_losses for others. y:
        targets, (n_losses, n), or (n,) for quantiles; scores: (n_outputs, n).
        """
        return self._sum(lambda loss, *rows: loss.compute_row_losses(*rows), y, scores)

    def compute_mean(
        self, y: Float64, scores: Float64, weight: Float64 | None, links: Links | None = None
    ) -> float:
        """Compute the weighted mean over rows of the sum over losses of factor times loss.

        Sums do not depend on the order of rows. y: targets, (n_losses, n), or (n,) for quantiles;
        scores: (n_outputs, n); weight: row weights, (n,), or None for equal weights; links:
        connections to other processes (ranks), whose rows count too, or None.
        """
        return float(
            self._sum(lambda loss, *rows: loss.compute_mean(*rows, weight, links), y, scores)
        )

    def _get_order_and_factors(self) -> tuple[tuple[int, ...], list[float]]:
        """Return indices and factors of the losses in the order in which they are added.

        Before `with_training_rows` this is the order of the columns, with equal factors. Both have
        n_losses entries: entry i is the index in `components`, or the factor, of the loss that is
        added as number i.
        """
        n = len(self.components)
        default = 1.0 if self.components[0].has_classes else 1 / n
        order, factors = self.order or tuple(range(n)), self.factors or (default,) * n
        return order, [factors[k] for k in order]

    def _sum(self, compute: Callable[..., Any], y: NDArray[Any], scores: Float64) -> Any:
        """Return the sum over all losses of factor times ``compute(loss, targets, scores)``.

        compute: gets a loss, its targets, (n,), and its scores, (n_outputs of the loss, n), and
        returns a number or an array; y, scores: targets of all losses, (n_losses, n), or (n,) for
        quantiles, and their scores, (n_outputs, n). Before factors are
        known they are 1 for log losses and 1 / n_losses for others.
        """
        targets, groups = self.encode_targets(y), self.output_groups.split(scores, axis=0)
        return sum(
            factor * compute(self.components[k], targets[k], np.ascontiguousarray(groups[k]))
            for k, factor in zip(*self._get_order_and_factors(), strict=True)
        )
