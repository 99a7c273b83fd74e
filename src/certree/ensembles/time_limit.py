"""The parameter `max_time` of boosted trees: measure rounds, and find out how many more fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Self


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Wall-clock time at which a fit begins, and at which its rounds must end.

    Parameters
    ----------
    begin, end : float
        Times of `time.perf_counter`, in seconds. By default there is no limit.
    """

    begin: float = 0.0
    end: float = inf

    @classmethod
    def start(cls, seconds: float | None) -> Self:
        """Return a limit that begins now and ends after some seconds. seconds: None for no limit."""
        if seconds is None:
            return cls()
        begin = perf_counter()
        return cls(begin, begin + float(seconds))

    @property
    def is_set(self) -> bool:
        """Whether there is a time limit, that is, whether `end` is finite."""
        return self.end < inf

    def divide(self, fraction: float, n: int, begin: float = 0.0) -> Iterator[Self]:
        """Divide a part of the time equally among n fits that run one after the other.

        fraction: fraction of the time at which the last fit must end; begin: fraction at which the
        first fit begins. Yield the limit of each fit.
        """
        for i in range(1, n + 1):
            yield self.take_fraction(begin + (fraction - begin) * i / n)

    def take_fraction(self, fraction: float) -> Self:
        """Return a limit with the same begin and a fraction of the time. fraction: in 0 .. 1."""
        if not self.is_set:
            return self
        return replace(self, end=self.begin + fraction * (self.end - self.begin))


@dataclass(slots=True)
class RoundTimer:
    """Measures the time of blocks of rounds, and predicts that of the next rounds from the last block.

    Parameters
    ----------
    limit : TimeLimit
        When the rounds must end.
    seconds : float
        Time that the last block took.
    """

    limit: TimeLimit
    seconds: float = 0.0
    _n_rounds: int = 0
    _begin: float = 0.0

    def has_time_for(self, n_rounds: int) -> bool:
        """Return whether n_rounds more rounds will probably end in time; True before the first block.

        They are assumed to take as long as those of the last block. n_rounds: number of rounds.
        """
        if not (self.limit.is_set and self._n_rounds):
            return True
        return perf_counter() + n_rounds * self.seconds / self._n_rounds <= self.limit.end

    def start_block(self) -> None:
        """Store the current time as the beginning of a block of rounds."""
        self._begin = perf_counter()

    def end_block(self, n_rounds: int) -> None:
        """Store the seconds since `start_block` as the time of a block of `n_rounds` rounds."""
        self.seconds, self._n_rounds = perf_counter() - self._begin, n_rounds
