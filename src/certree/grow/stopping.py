"""When a cell is not split any further: the switches that all partitions share."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.columns import Float64, Int32, column, matrix, row_weights

MaxDepth = int | Literal["log"] | None

# The core counts depth in int32 and adds the length of a run to it.
_DEEPEST = 2**30


@dataclass(frozen=True, slots=True, eq=False)
class GrowingRows:
    """The rows that grow a tree, checked, without those of weight zero.

    ``rules`` are the arguments of the core's growers that say when to stop.
    """

    X: NDArray[Any]
    y: Int32 | None
    target: Float64 | None
    rules: dict[str, Any]


def growing_rows(
    X: ArrayLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    min_rows: float,
    max_depth: MaxDepth,
    target: ArrayLike | None = None,
) -> GrowingRows:
    """Check the rows, their classes or their targets, and the stopping switches of a grower."""
    rows = matrix(X)
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ValueError(f"X must have at least one row and one feature, got shape {rows.shape}")
    classes: Int32 | None = None if y is None else column("y", y, "int32", (len(rows),))
    values: Float64 | None = None
    if target is not None:
        values = column("y", target, "float64", (len(rows),))
    weight = row_weights(sample_weight, len(rows))
    if weight is not None:
        present = weight > 0
        if not present.any():
            raise ValueError("sample_weight must be positive for at least one row")
        if not present.all():
            rows, weight = np.ascontiguousarray(rows[present]), weight[present]
            classes = None if classes is None else classes[present]
            values = None if values is None else values[present]
        if (weight == 1).all():
            weight = None
    if not min_rows >= 1:
        raise ValueError(f"min_rows must be at least 1, got {min_rows!r}")
    rules = {
        "weight": weight,
        # The core's leaves have fewer rows than this, ours have at most min_rows.
        "min_samples_split": float(np.nextafter(min_rows, np.inf)),
        "max_depth": depth_limit(max_depth, rows.shape, weight),
    }
    return GrowingRows(rows, classes, values, rules)


def depth_limit(max_depth: object, shape: tuple[int, ...], weight: Float64 | None) -> int:
    """Depth at which cells are leaves; "log" is p times the whole part of log n (n rows)."""
    n_rows, n_features = shape
    if max_depth is None:
        return _DEEPEST
    if max_depth == "log":
        n = n_rows if weight is None else max(float(weight.sum()), 1.0)
        return min(_DEEPEST, n_features * int(np.log(n)))
    if not isinstance(max_depth, Integral) or max_depth < 0:
        raise ValueError(f'max_depth must be None, "log" or a whole number >= 0, got {max_depth!r}')
    return min(_DEEPEST, int(max_depth))
