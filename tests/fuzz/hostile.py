"""Hostile values: wrong types, shapes, dtypes, layouts and numbers."""

import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

NUMBERS = [
    *(0, 1, -1, 2, 3, 0.5, -0.5, 1.5, -0.0, 1e-17, 5e-324, 1e-300, 1e10, 1e300, 1.7e308),
    *(float("nan"), float("inf"), -float("inf"), 2**31 - 1, 2**31, -(2**31) - 1, 2**61, 2**63),
    *(2**64, 2**70, 10**400, True, False, Fraction(1, 3), 1j, np.float32(0.5), np.int8(-1)),
    *(np.uint64(2**64 - 1), np.float64("nan"), np.bool_(True), np.datetime64("2020-01-01")),
]
OTHERS = [
    *(None, "", "cart", "0.5", b"0.5", (), [], {}, object(), int, len, [1], (1, 2), {"a": 1}),
    *([[1.0], [2.0]], [[1], [2, 3]], np.array(3), np.array([1.0]), np.zeros((0, 0)), slice(3)),
]
_DTYPES = [
    *("float64", "float32", "float16", "longdouble", "int64", "int8", "uint8", "uint64", "bool"),
    *("complex128", "object", "U3", "S3", "datetime64[ns]", "timedelta64[s]", ">f8", ">i4"),
]
_EXTREMES = [
    *(np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324, 1e-310, 1e-200, 1e200, 1.7e308, -1.7e308),
    *(2.0**31, 2.0**53 + 2, 2.0**63, 1 + 2.0**-52, 0.5),
]


def spoilt(random: Random, value: Any) -> Any:
    """Return a hostile value in place of a value."""
    if isinstance(value, np.ndarray) and random.random() < 0.9:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _spoilt_array(random, value)
    if is_dataclass(value) and not isinstance(value, type) and random.random() < 0.8:
        return spoilt_column(random, value)
    return random.choice(NUMBERS if random.random() < 0.7 else OTHERS)


def spoilt_column(random: Random, value: Any) -> Any:
    """Return a copy of a dataclass with a hostile value in one of its fields."""
    field = random.choice([field.name for field in fields(value) if field.init])
    return replace(value, **{field: spoilt(random, getattr(value, field))})


def _spoilt_array(random: Random, values: np.ndarray) -> Any:
    ways: list[Callable[[Random, np.ndarray], Any]] = [_value, _dtype, _layout, _shape, _container]
    return random.choices(ways, weights=[5, 2, 3, 2, 1])[0](random, values)


def _value(random: Random, values: np.ndarray) -> Any:
    if not values.size or values.dtype.kind not in "fiub":
        return values
    other = values.copy() if values.dtype.kind in "fiu" else values.astype(float)
    if other.dtype.kind == "f":
        extreme = random.choice(_EXTREMES)
    else:
        limits = np.iinfo(other.dtype)
        extreme = random.choice([limits.min, limits.max, 0, 1, limits.max - 1, 7])
    if random.random() < 0.2:
        other[...] = extreme
    elif random.random() < 0.3 and other.dtype.kind == "f" and np.isfinite(extreme):
        other *= extreme
    else:
        other.flat[random.randrange(other.size)] = extreme
    return other


def _dtype(random: Random, values: np.ndarray) -> Any:
    dtype = random.choice(_DTYPES)
    # NumPy cannot write all times as strings, nor all numbers of Python as its own.
    return values if values.dtype.kind in "USmMO" else values.astype(dtype, casting="unsafe")


def _layout(random: Random, values: np.ndarray) -> Any:
    way = random.randrange(6)
    if way == 0:
        return np.asfortranarray(values)
    if way == 1 and values.ndim:  # every second row of a larger array
        wide = np.repeat(values, 2, axis=0)
        return wide[::2]
    if way == 2 and values.ndim:
        return values[::-1].copy()[::-1]
    if way == 3 and values.size:  # strides of zero
        return np.broadcast_to(values.flat[0], values.shape)
    if way == 4:  # not aligned
        memory = np.zeros(values.nbytes + 1, dtype=np.uint8)
        shifted = memory[1:].view(values.dtype).reshape(values.shape)
        shifted[...] = values
        return shifted
    other = values.copy()
    other.flags.writeable = False
    return other


def _shape(random: Random, values: np.ndarray) -> Any:
    way = random.randrange(7)
    if way == 0:
        return values[:-1] if values.ndim else values
    if way == 1:
        return np.concatenate([values, values[:1]]) if values.ndim else values
    if way == 2:
        return values.T
    if way == 3:
        return values[None]
    if way == 4:
        return values[..., None]
    if way == 5:
        return values[:0] if values.ndim else values
    return values[..., :0] if values.ndim else values


def _container(random: Random, values: np.ndarray) -> Any:
    way = random.randrange(5)
    if way == 0:
        return values.tolist()
    if way == 1:
        return tuple(values.tolist()) if values.ndim else values
    if way == 2:
        return np.ma.masked_array(values)
    if values.ndim == 2 and values.dtype.kind in "fiub":
        return pd.DataFrame(values) if way == 3 else sparse.csr_matrix(np.nan_to_num(values))
    return pd.Series(values) if values.ndim == 1 else values
