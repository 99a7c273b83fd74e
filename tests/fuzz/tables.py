"""Random tables with every kind of column, in every container, and targets that depend on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import time
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

Draw = Callable[[np.random.Generator, int], Any]

WORDS = [
    *("a", "b", "A", "B", "", "nan", "None", " a", "it's", 'say "x"', "é", "É", "1", "2.0", "TRUE"),
]


def _lacking(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    other = values.copy()
    other[rng.random(len(values)) < 0.3] = None if values.dtype == object else np.nan
    return other


def _words(rng: np.random.Generator, n: int) -> np.ndarray:
    chosen = rng.choice(len(WORDS), rng.integers(2, 6), replace=False)
    return np.array(WORDS, dtype=object)[rng.choice(chosen, n)]


def _integers_beyond(rng: np.random.Generator, n: int) -> np.ndarray:
    values = 2**53 + rng.integers(0, 4, n)
    values[0] = 2**53 + 1
    return values


def _infinite(rng: np.random.Generator, n: int) -> np.ndarray:
    values = rng.normal(size=n)
    values[rng.integers(n)] = rng.choice([np.inf, -np.inf])
    return values


NUMBERS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "huge": lambda rng, n: rng.normal(size=n) * 1e300,
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-310,
    "powers of two": lambda rng, n: 2.0 ** rng.integers(-60, 60, n),
    "neighbours": lambda rng, n: 1 + rng.integers(0, 9, n) * 2.0**-52,
    "few": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "constant": lambda rng, n: np.full(n, rng.choice([0.0, -0.0, 1.5])),
    "lacking": lambda rng, n: _lacking(rng.normal(size=n), rng),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "integers": lambda rng, n: rng.integers(-50, 50, n),
    "int8": lambda rng, n: rng.integers(-3, 3, n).astype(np.int8),
    "uint64": lambda rng, n: rng.integers(0, 2**53, n).astype(np.uint64),
    "booleans": lambda rng, n: rng.random(n) < 0.5,
}
CATEGORIES: dict[str, Draw] = {
    "words": _words,
    "words that lack": lambda rng, n: _lacking(_words(rng, n), rng),
    "levels": lambda rng, n: pd.Categorical(_words(rng, n), categories=WORDS),
    "levels that lack": lambda rng, n: pd.Categorical(_lacking(_words(rng, n), rng), WORDS),
    "levels of numbers": lambda rng, n: pd.Categorical(rng.integers(-2, 3, n).astype(float)),
    "bytes": lambda rng, n: rng.choice(np.array([b"a", b"b", b"\xff"], dtype=object), n),
}
# What a fit has to refuse, or to keep apart.
REFUSED: dict[str, Draw] = {
    "infinite": _infinite,
    "integers beyond 2^53": _integers_beyond,
    "times": lambda rng, n: np.array([time(h) for h in rng.integers(0, 9, n)], dtype=object),
    "words and numbers": lambda rng, n: rng.permutation(np.array(["a", 1, 2.5] * n, object)[:n]),
}
KINDS = NUMBERS | CATEGORIES | REFUSED
ARRAYS, FRAMES = ("array", "lists", "objects"), ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Table:
    """Columns by name, with the kinds of values they hold and the container that they are passed
    in.
    """

    columns: dict[str, Any]
    kinds: tuple[str, ...]
    container: str

    @property
    def n(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def is_numeric(self) -> bool:
        return all(kind in NUMBERS for kind in self.kinds)

    @property
    def refused(self) -> list[str]:
        """Names of the columns that a fit has to refuse."""
        return [name for name, kind in self._kind_of if kind in REFUSED]

    def refused_by(self, takes_infinities: bool) -> list[str]:
        """Return the names of the columns that a model refuses; takes_infinities: whether it
        accepts infinite numbers.
        """
        taken = {"infinite"} if takes_infinities else set()
        return [name for name, kind in self._kind_of if kind in {*REFUSED} - taken]

    def expect_said(self, error: Exception, takes_categories: bool) -> None:
        """Look that a refusal of times of day names one of their columns, where columns have names.

        Who takes no categories may as well name one of those, and bytes are none in all containers.
        """
        times = [name for name, kind in self._kind_of if kind == "times"]
        if self.container in FRAMES and times and times == self.refused:
            others = ("bytes",) if takes_categories else (*CATEGORIES,)
            names = [name for name, kind in self._kind_of if kind in ("times", *others)]
            assert any(name in str(error) for name in names), f"of {times} was said: {error}"

    @property
    def _kind_of(self) -> list[tuple[str, str]]:
        return [*zip(self.columns, self.kinds, strict=True)]

    def at(self, rows: Any) -> "Table":
        """Return the same table with other rows, by their numbers."""
        return replace(self, columns={name: of[rows] for name, of in self.columns.items()})

    @property
    def X(self) -> Any:
        """The table in its container, as it is passed to `fit`."""
        return _MADE[self.container]({name: as_given(of) for name, of in self.columns.items()})

    def numbers(self) -> np.ndarray:
        """Numbers, and codes of names by column, from which targets are computed."""
        return np.column_stack([_places(of) for of in self.columns.values()])


def as_given(column: Any) -> Any:
    """Return a column as an array, or as a pandas Categorical."""
    return column if isinstance(column, pd.Categorical) else np.asarray(column)


def _places(column: Any) -> np.ndarray:
    _, place = np.unique([repr(value) for value in column], return_inverse=True)
    return place


def _values(column: Any) -> list[Any]:
    """Return plain values, None for missing ones unless they are numbers."""
    if isinstance(column, pd.Categorical):
        return [None if value != value else value for value in column]
    return column.tolist()


def _objects(columns: dict[str, Any]) -> np.ndarray:
    array = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for j, column in enumerate(columns.values()):
        array[:, j] = _values(column)
    return array


def _polars(columns: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            name: pl.Series(name, _values(column), strict=False)
            if not isinstance(column, pd.Categorical) or column.categories.dtype.kind == "f"
            else pl.Series(name, _values(column), dtype=pl.Enum([*column.categories]))
            for name, column in columns.items()
        }
    )


def _pyarrow(columns: dict[str, Any]) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.array(column, from_pandas=False) for column in columns.values()], [*columns]
    )


_MADE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "array": lambda columns: np.column_stack([*columns.values()]),
    "lists": lambda columns: _objects(columns).tolist(),
    "objects": _objects,
    "pandas": pd.DataFrame,
    "polars": _polars,
    "pyarrow": _pyarrow,
}


def drawn_table(random: Random, kinds: Sequence[str], names: Sequence[str] = ()) -> Table:
    """Draw columns of some kinds, in a container that can hold them; names only in a data frame."""
    rng = np.random.default_rng(random.getrandbits(63))
    n = random.choice([8, 13, 24, 40])
    chosen = random.choices(kinds, k=random.choice([1, 2, 3, 4]))
    called = [*names] or [f"column {j}" for j in range(len(chosen))]
    columns = {name: KINDS[kind](rng, n) for name, kind in zip(called, chosen, strict=False)}
    table = Table(columns, tuple(chosen[: len(columns)]), "array")
    if names:
        return replace(table, container="pandas")
    return replace(table, container=random.choice(_containers(chosen)))


def _containers(kinds: Sequence[str]) -> Sequence[str]:
    """Return the containers that hold columns of these kinds without conversion."""
    if "words and numbers" in kinds:
        return ("lists", "objects", "pandas")
    is_matrix = len({*kinds}) == 1 and kinds[0] not in CATEGORIES
    if is_matrix or all(kind in NUMBERS for kind in kinds):
        return ARRAYS + FRAMES
    return ("objects", *FRAMES)  # scikit-learn makes text of lists that hold some


def drawn_target(random: Random, table: Table, classes: Sequence[Any] | None) -> np.ndarray:
    """Draw a target that depends on the first one or two columns and on noise: classes, or
    numbers.
    """
    rng = np.random.default_rng(random.getrandbits(63))
    places = table.numbers()
    signal = places[:, 0] + 2 * (places[:, -1] > np.median(places[:, -1]))
    if classes is None:
        scale = 1.0 if table.refused else random.choice([1.0, 1.0, 1.0, 1e-100, 1e100])
        return (signal + rng.normal(size=table.n)) * scale
    codes = np.where(rng.random(table.n) < 0.1, rng.integers(0, 9, table.n), signal) % len(classes)
    return np.array(classes)[codes.astype(int)]
