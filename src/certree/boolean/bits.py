"""What the bits of a row are."""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import ArrayRecord, Float64, Int32, check_matrix, to_array
from certree.interface.signatures import validate_arguments, validate_settings

Coding = Literal["0/1", "-1/+1", "thresholds"]

# Sets of more features than this fit into no memory.
_MOST_FEATURES = 1 << 20

TwoValued = Literal["0/1", "-1/+1"]

# The two values of a feature.
VALUES: dict[TwoValued, tuple[float, float]] = {"0/1": (0.0, 1.0), "-1/+1": (-1.0, 1.0)}


@dataclass(frozen=True, slots=True, eq=False)
class Bits(ArrayRecord):
    """Which bit of a row is which feature.

    Bit b of a feature counts as x = (-1)^b in characters. A feature of 0 and 1 is its own bit, so its 0
    counts as x = 1; a feature of -1 and +1 counts as what it is. A number has a bit for each threshold
    that it is compared with: x = -1 if the number is at most the threshold, and 1 if it is larger.

    Parameters
    ----------
    feature : array-like of int, shape (n_bits,)
        Feature that a bit belongs to.
    threshold : array-like of float, shape (n_bits,)
        What it is compared with.
    coding : {"0/1", "-1/+1", "thresholds"}
        Which values features have: the two that are named, or any numbers.
    n_features : int
        Number of features of the rows, p.

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If there is no bit, or a feature is none of p.
    """

    feature: Int32
    threshold: Float64
    coding: Coding
    n_features: int

    def __post_init__(self) -> None:
        self._check("int32", (None,), "feature")
        self._check("float64", (len(self.feature),), "threshold")
        validate_settings(self)
        if not len(self.feature):
            raise ValueError("there must be at least one bit, got none")
        if self.feature.min() < 0 or self.feature.max() >= self.n_features:
            raise ValueError(f"feature must lie in 0 .. {self.n_features - 1}")
        in_order = np.array_equal(self.feature, np.arange(len(self.feature)))
        if self.coding != "thresholds" and not (in_order and len(self.feature) == self.n_features):
            raise ValueError("features of two values are one bit each, in their order")

    @classmethod
    @validate_arguments
    def two_valued(cls, n_features: int, coding: TwoValued = "0/1") -> Bits:
        """Bits of features that have two values.

        Parameters
        ----------
        n_features : int
            Number of features.
        coding : {"0/1", "-1/+1"}
            The values.

        Returns
        -------
        Bits
        """
        if not 1 <= n_features <= _MOST_FEATURES:
            raise ValueError(f"n_features must lie in 1 .. {_MOST_FEATURES}, got {n_features}")
        threshold = np.full(n_features, sum(VALUES[coding]) / 2)
        feature = np.arange(n_features, dtype=np.int32)
        return cls(feature, threshold, coding, n_features)

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def left_is_one(self) -> bool:
        """The bit of rows that are at most the threshold."""
        return self.coding != "0/1"

    def equals(self, other: Bits) -> bool:
        """Whether two have the same meaning."""
        return (
            (self.coding, self.n_features) == (other.coding, other.n_features)
            and np.array_equal(self.feature, other.feature)
            and np.array_equal(self.threshold, other.threshold)
        )

    def signs(self, X: ArrayLike) -> Float64:
        """Give the bits of rows as x = (-1)^b.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of float64, shape (n_bits, n)
            -1 and 1; a row of the result is a bit.

        Raises
        ------
        TypeError
            If X is not numeric.
        ValueError
            If X has another number of features, a missing value, or values that the coding has not.
        """
        rows = self._rows(X)
        larger = rows.T[self.feature] > self.threshold[:, None]
        return np.where(larger, -1.0, 1.0) if self.coding == "0/1" else np.where(larger, 1.0, -1.0)

    def _rows(self, X: Any) -> NDArray[Any]:
        given = to_array("X", X)
        rows = check_matrix(given.astype(np.uint8) if given.dtype == np.bool_ else given)
        if rows.shape[1] != self.n_features:
            raise ValueError(f"X has {rows.shape[1]} features, but expected {self.n_features}")
        _expect_present(rows)
        if self.coding != "thresholds":
            low, high = VALUES[self.coding]
            other = rows[(rows != low) & (rows != high)]
            if other.size:
                raise ValueError(
                    f"features must have the values {low:g} and {high:g} only, got {other[0]:g}"
                )
        return rows

    def rows_of(self, signs: NDArray[np.floating]) -> Float64:
        """Give the rows (n, p) that have these signs (n, p), of features that have two values."""
        if self.coding == "thresholds":
            raise ValueError("not every choice of bits of thresholds belongs to a row")
        given = np.array(signs, dtype=np.float64)
        return (1.0 - given) / 2.0 if self.coding == "0/1" else given

    def names(self, feature_names: Any = None) -> list[str]:
        """Name the bits.

        Parameters
        ----------
        feature_names : sequence of str, or None
            Names of the features; None: "x[0]", "x[1]" and so on.

        Returns
        -------
        list of str
            Such as "x[3]", or "x[3] > 0.5" for a bit of a threshold, whose x is 1 where that holds.
        """
        if feature_names is None:
            feature_names = [f"x[{j}]" for j in range(self.n_features)]
        if self.coding != "thresholds":
            return [str(feature_names[j]) for j in self.feature]
        both = zip(self.feature, self.threshold, strict=True)
        return [f"{feature_names[j]} > {threshold:.6g}" for j, threshold in both]


def coding_of(X: NDArray[Any]) -> TwoValued:
    """Say which two values the features of rows have, "0/1" if they are all 1.

    Raises
    ------
    ValueError
        If they have others.
    """
    _expect_present(X)
    if np.isin(X, (0.0, 1.0)).all():
        return "0/1"
    if np.isin(X, (-1.0, 1.0)).all():
        return "-1/+1"
    other = X[~np.isin(X, (-1.0, 0.0, 1.0))]
    if not other.size:
        found = "-1, 0 and 1"
    else:
        first = other.flat[0]
        is_of_numpy = isinstance(first, float | np.floating | np.integer)
        found = f"{first:g}" if is_of_numpy else shortened(first)
    raise ValueError(f"features must have the values 0 and 1, or -1 and 1, got {found}")


def _expect_present(X: NDArray[Any]) -> None:
    if X.dtype.kind == "f" and np.isnan(X).any():
        raise ValueError("Input X contains NaN, and a bit is never missing")
