"""Bits of rows: two-valued features, or comparisons of features with thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import ArrayRecord, Float64, Int32, check_matrix, to_array
from certree.interface.signatures import validate_arguments, validate_settings

Coding = Literal["0/1", "-1/+1", "thresholds"]

# Sets of more features than this do not fit into memory.
_MOST_FEATURES = 1 << 20

TwoValued = Literal["0/1", "-1/+1"]

# The two values of a feature.
VALUES: dict[TwoValued, tuple[float, float]] = {"0/1": (0.0, 1.0), "-1/+1": (-1.0, 1.0)}


@dataclass(frozen=True, slots=True, eq=False)
class Bits(ArrayRecord):
    """The definition of the bits of a row: the feature and the threshold behind each bit.

    In products of signs (characters), a bit b counts as the sign x = (-1)^b. A feature with the
    values 0 and 1 is its own bit, so 0 becomes x = 1. A feature with the values -1 and +1 is x
    itself. A numeric feature has one bit for each threshold: the bit is 1 (x = -1) if the number is
    at most the threshold, and 0 (x = 1) if it is larger.

    Parameters
    ----------
    feature : array-like of int, shape (n_bits,)
        Number of the feature behind each bit. If the coding has two values, bit j must be feature
        j.
    threshold : array-like of float, shape (n_bits,)
        Threshold with which the feature is compared; the middle of both values (0.5 or 0) if the
        coding has two values.
    coding : {"0/1", "-1/+1", "thresholds"}
        Values of the features: the two named values, or any numbers for "thresholds".
    n_features : int
        Number of features of the rows, p.

    Raises
    ------
    TypeError
        If an array's dtype does not convert to that of the parameter without loss.
    ValueError
        If there is no bit, a feature is outside 0 .. p - 1, or bit j is not feature j of two
        values.
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
            raise ValueError(
                "feature must have at least one entry, as each bit tests a feature, got none"
            )
        if self.feature.min() < 0 or self.feature.max() >= self.n_features:
            raise ValueError(
                f"feature must lie in 0 .. {self.n_features - 1}, got {self.feature.min()} .. "
                f"{self.feature.max()}"
            )
        is_in_order = np.array_equal(self.feature, np.arange(len(self.feature)))
        has_all = is_in_order and len(self.feature) == self.n_features
        if self.coding != "thresholds" and not has_all:
            raise ValueError(
                f"feature must be 0, 1, ..., n_features - 1 if coding={self.coding!r}, got "
                f"{shortened(self.feature.tolist())}: use Bits.two_valued"
            )

    @classmethod
    @validate_arguments
    def two_valued(cls, n_features: int, coding: TwoValued = "0/1") -> Bits:
        """Create the bits of `n_features` features with two values: bit j is feature j.

        Parameters
        ----------
        n_features : int
            Number of features, 1 .. 2^20.
        coding : {"0/1", "-1/+1"}
            The two values. A bit is 0 at the value 0 of "0/1", and at the value +1 of "-1/+1".

        Returns
        -------
        Bits
            With n_features bits; thresholds are the middle of both values: 0.5 for "0/1", 0 for
            "-1/+1".

        Raises
        ------
        ValueError
            If n_features is not in 1 .. 2^20.
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
        """Whether a bit is 1 for values at or below its threshold; a split sends these to the left.

        False for the coding "0/1", where the value 0 goes left, and its bit is 0. True for "-1/+1",
        where the bit of -1 is 1, and for "thresholds".
        """
        return self.coding != "0/1"

    def equals(self, other: Bits) -> bool:
        """Return whether `other` has the same coding, number of features, features and thresholds.

        Features and thresholds are compared bit by bit, in their order.
        """
        return (
            (self.coding, self.n_features) == (other.coding, other.n_features)
            and np.array_equal(self.feature, other.feature)
            and np.array_equal(self.threshold, other.threshold)
        )

    def signs(self, X: ArrayLike) -> Float64:
        """Compute the sign x = (-1)^b of each bit b of each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features, with the values that the coding of these bits names.

        Returns
        -------
        ndarray of float64, shape (n_bits, n)
            -1 and 1; each row of the result belongs to one bit.

        Raises
        ------
        TypeError
            If X is not numeric.
        ValueError
            If X has another number of features, a missing value, or values outside the coding.
        """
        rows = self._check_rows(X)
        larger = rows.T[self.feature] > self.threshold[:, None]
        return np.where(larger, -1.0, 1.0) if self.coding == "0/1" else np.where(larger, 1.0, -1.0)

    def _check_rows(self, X: Any) -> NDArray[Any]:
        """Check rows of features, (n, p), and return them as an array; booleans become 0 and 1.

        Raise TypeError if `X` is not numeric, and ValueError if it has another number of features,
        a NaN, or, unless the coding is "thresholds", a value other than the two of the coding.
        """
        array = to_array("X", X)
        rows = check_matrix(array.astype(np.uint8) if array.dtype == np.bool_ else array)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"X must have {self.n_features} features, as these bits have, got {rows.shape[1]}: "
                "pass the same columns in the same order"
            )
        _expect_no_missing(rows)
        if self.coding != "thresholds":
            low, high = VALUES[self.coding]
            unexpected = rows[(rows != low) & (rows != high)]
            if unexpected.size:
                raise ValueError(
                    f"X must have the values {low:g} and {high:g} only, got {unexpected[0]:g}: as "
                    f"coding={self.coding!r}, recode X, or use bits of another coding"
                )
        return rows

    def to_rows(self, signs: NDArray[np.floating]) -> Float64:
        """Convert signs of bits to the rows of two-valued features that have them.

        Parameters
        ----------
        signs : ndarray of float, shape (n, n_bits)
            -1 or 1 for each bit of each row; n_bits is the number of features. It is the transpose
            of what `signs` returns.

        Returns
        -------
        ndarray of float64, shape (n, n_bits)
            Features of each row. For the coding "0/1" the sign 1 becomes 0, and -1 becomes 1. For
            "-1/+1" the values are the signs themselves.

        Raises
        ------
        ValueError
            If the coding is "thresholds".
        """
        if self.coding == "thresholds":
            raise ValueError(
                'coding must be "0/1" or "-1/+1" to convert signs to rows, got "thresholds": '
                "not every combination of such bits belongs to a row, so pass rows instead of signs"
            )
        values = np.array(signs, dtype=np.float64)
        return (1.0 - values) / 2.0 if self.coding == "0/1" else values

    def names(self, feature_names: Any = None) -> list[str]:
        """Return a printable name for each bit, in the order of the bits.

        Parameters
        ----------
        feature_names : sequence of str, or None
            Names of the features, (n_features,); None: "x[0]", "x[1]" and so on.

        Returns
        -------
        list of str
            The name of the feature; for the coding "thresholds" a comparison such as "x[3] > 0.5",
            where the sign of the bit is 1 if the comparison holds, and -1 otherwise.
        """
        if feature_names is None:
            feature_names = [f"x[{j}]" for j in range(self.n_features)]
        if self.coding != "thresholds":
            return [str(feature_names[j]) for j in self.feature]
        pairs = zip(self.feature, self.threshold, strict=True)
        return [f"{feature_names[j]} > {threshold:.6g}" for j, threshold in pairs]


def infer_coding(X: NDArray[Any]) -> TwoValued:
    """Return which two values the features of the rows X, (n, p), have: "0/1" or "-1/+1".

    Both values are the same for all features. Return "0/1" if all values are 1.

    Raises
    ------
    ValueError
        If features have values outside both pairs, all of -1, 0 and 1, or a value is missing.
    """
    _expect_no_missing(X)
    if np.isin(X, (0.0, 1.0)).all():
        return "0/1"
    if np.isin(X, (-1.0, 1.0)).all():
        return "-1/+1"
    unexpected = X[~np.isin(X, (-1.0, 0.0, 1.0))]
    if not unexpected.size:
        shown = "-1, 0 and 1"
    else:
        first = unexpected.flat[0]
        is_number = isinstance(first, float | np.floating | np.integer)
        shown = f"{first:g}" if is_number else shortened(first)
    raise ValueError(
        f"X must have the values 0 and 1, or -1 and 1, got {shown}: use two values for all features"
    )


def _expect_no_missing(X: NDArray[Any]) -> None:
    """Raise ValueError if the array of floats `X` has a NaN; arrays of other dtypes pass."""
    if X.dtype.kind == "f" and np.isnan(X).any():
        raise ValueError(
            "Input X contains NaN, but every feature must have a value: impute values or drop rows"
        )
