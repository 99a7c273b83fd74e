"""The parameter `max_time` of boosted trees: measure rounds, and find out how many more fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Self


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Wall-clock time between the begin of a fit and the end of its rounds.

    Parameters
    ----------
    begin, end : float
        Times of `time.perf_counter`, in seconds. By default there is no limit.
    """

    begin: float = 0.0
    end: float = inf

    @classmethod
    def start(cls, seconds: float | None) -> Self:
        """Return a limit of so many seconds from now on; None: no limit."""
        if seconds is None:
            return cls()
        begin = perf_counter()
        return cls(begin, begin + float(seconds))

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return self.end < inf

    def divide(self, fraction: float, n: int, begin: float = 0.0) -> Iterator[Self]:
        """Yield the limits of n fits, one after the other, that end at this fraction of the time.

        begin: fraction of the time at which the first fit begins. The fits have equal shares.
        """
        for i in range(1, n + 1):
            yield self.take_fraction(begin + (fraction - begin) * i / n)

    def take_fraction(self, fraction: float) -> Self:
        """Return a limit with the same begin and this fraction of the time."""
        if not self.is_set:
            return self
        return replace(self, end=self.begin + fraction * (self.end - self.begin))


@dataclass(slots=True)
class RoundTimer:
    """Measures blocks of rounds, and predicts the time of the next ones by the last block.

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
        """Return whether so many rounds will end in time; True before the first block.

        They are assumed to take as long as those of the last block. n_rounds: number of rounds.
        """
        if not (self.limit.is_set and self._n_rounds):
            return True
        return perf_counter() + n_rounds * self.seconds / self._n_rounds <= self.limit.end

    def start_block(self) -> None:
        """Start to measure a block of rounds."""
        self._begin = perf_counter()

    def end_block(self, n_rounds: int) -> None:
        """Store the seconds since `start_block` as the time of a block of `n_rounds` rounds."""
        self.seconds, self._n_rounds = perf_counter() - self._begin, n_rounds
