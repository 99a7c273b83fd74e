"""Losses of several targets of each row, which one tree serves, as it serves the scores of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from certree.ensembles.losses import Goal, Loss, Outputs
from certree.explain.output_groups import OutputGroups
from certree.interface.arrays import Float64, UInt64
from certree.rows.hashes import hash_target


@dataclass(frozen=True, slots=True)
class SeveralLosses(Loss):
    """The sum of losses of one kind, each of scores of its own.

    They are of several numbers, or quantiles, or columns of classes. Losses of numbers are each in
    units of what it is at the start, the same for all rows, so that no unit of a number matters, and
    their sum is a mean. Log losses are added up as they stand. That is done in an order that the
    targets tell, not the columns in which they stand.

    Parameters
    ----------
    of : tuple of Loss
        The losses.
    shares : tuple of float
        What each counts in the loss of a row; empty before the rows of the fit are known, and where
        each counts 1.
    order : tuple of int
        In which order they are added up; empty before the rows are known.
    """

    name: ClassVar[str] = "several"

    of: tuple[Loss, ...] = ()
    shares: tuple[float, ...] = ()
    order: tuple[int, ...] = ()

    @classmethod
    def each(cls, losses: Any, shares: tuple[float, ...] = ()) -> Self:
        """That of some losses."""
        of = tuple(losses)
        return cls(n_outputs=sum(one.n_outputs for one in of), of=of, shares=shares)

    @property
    def lanes(self) -> OutputGroups:
        """Which scores are of which target."""
        return OutputGroups(tuple(one.n_outputs for one in self.of))

    @property
    def core_name(self) -> str:
        """What the core knows each of them by."""
        return self.of[0].core_name

    @property
    def outputs(self) -> Outputs:
        """In which order outputs are added up: columns of classes as they tell it themselves."""
        if not self.of[0].has_one_unit:
            return slice(None)
        first, n_of = self.lanes.first_outputs, self.lanes.sizes
        return [first[k] + j for k in self.order for j in range(n_of[k])]

    @property
    def single(self) -> tuple[Loss, ...]:
        """The losses."""
        return self.of

    @property
    def is_log(self) -> bool:
        """Whether scores are logs of predictions."""
        return self.of[0].is_log

    def targets(self, y: NDArray[Any]) -> Float64:
        """Targets of each loss, (n_losses, n), by those of the rows: (n,) are of all of them."""
        shape = len(self.of), y.shape[-1]
        return np.ascontiguousarray(np.broadcast_to(y, shape), dtype=np.float64)

    def of_scores(self, y: Float64) -> Float64:
        """What each score is to tell, (n_outputs, n): a number, or whether a row has a class."""
        if not self.of[0].has_one_unit:
            return y
        columns = [(y[k], self.of[k].n_outputs) for k in self.order]
        flags = [one == np.arange(n)[:, None] if n > 1 else one[None] for one, n in columns]
        return np.concatenate(flags).astype(np.float64)

    def expect_domain(self, y: NDArray[Any]) -> None:
        """Refuse targets that the loss is not made for."""
        for one in np.atleast_2d(y):
            self.of[0].expect_domain(one)

    def known_by(self, y: NDArray[Any], weight: Float64 | None, rows: UInt64) -> Self:
        """The same beside the rows (n,) of a fit, told by their hashes."""
        targets = self.targets(y)
        known = self.in_order([hash_target(one, rows) for one in targets])
        if not known.asks_for_shares:
            return known
        lost = [
            loss.mean(one, np.repeat(loss.start(one, weight)[:, None], len(one), axis=1), weight)
            for loss, one in zip(self.of, targets, strict=True)
        ]
        return known.shared(lost)

    def in_order(self, keys: Sequence[int]) -> Self:
        """The same, whose losses are added up in the order of the keys of their targets."""
        # Of one target quantiles are told apart.
        about = [one.parameter for one in self.of], keys
        return replace(self, order=tuple(int(k) for k in np.lexsort(about)))

    @property
    def asks_for_shares(self) -> bool:
        """Whether losses are to be in units of what they are at the start, which is not known yet."""
        return not (self.shares or self.of[0].has_one_unit)

    def shared(self, lost: Sequence[float]) -> Self:
        """The same of losses that were so much at the start."""
        shares = tuple(1 / (len(lost) * one) if one > 0 else 1 / len(lost) for one in lost)
        return replace(self, shares=shares)

    def ordered(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets of rows, (n,) or (n, n_outputs), of which columns stand in that order."""
        return y if y.ndim == 1 else y[:, list(self.order)]

    def goals(self) -> list[Goal]:
        """What the core is told of each, in the order in which they are added up."""
        first = self.lanes.first_outputs
        return [
            (self.of[k].parameter, share, first[k], self.of[k].n_outputs, k)
            for k, share in zip(*self._in_order(), strict=True)
        ]

    def start(
        self, y: NDArray[Any], weight: Float64 | None, offset: Float64 | None = None
    ) -> Float64:
        """The best scores that are the same for all rows, beside offsets, (n_outputs,)."""
        return np.concatenate(
            [
                loss.start(one, weight, None if offset is None else offset[k : k + 1])
                for k, (loss, one) in enumerate(zip(self.of, self.targets(y), strict=True))
            ]
        )

    def of_rows(self, y: NDArray[Any], scores: Float64) -> Float64:
        """Loss of each row, (n,)."""
        return self._sum(lambda loss, *rows: loss.of_rows(*rows), y, scores)

    def mean(self, y: Float64, scores: Float64, weight: Float64 | None) -> float:
        """Mean loss of rows, in whatever order they come."""
        return float(self._sum(lambda loss, *rows: loss.mean(*rows, weight), y, scores))

    def _in_order(self) -> tuple[tuple[int, ...], list[float]]:
        n = len(self.of)
        unknown = 1.0 if self.of[0].has_one_unit else 1 / n
        order, shares = self.order or tuple(range(n)), self.shares or (unknown,) * n
        return order, [shares[k] for k in order]

    def _sum(self, of: Callable[..., Any], y: NDArray[Any], scores: Float64) -> Any:
        targets, parts = self.targets(y), self.lanes.split(scores, axis=0)
        return sum(
            share * of(self.of[k], targets[k], np.ascontiguousarray(parts[k]))
            for k, share in zip(*self._in_order(), strict=True)
        )
