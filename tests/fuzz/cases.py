"""A case by its number, and what counts as a finding."""

import os
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from random import Random

from fuzz.files import load_broken
from fuzz.functions import call, change_columns
from fuzz.models import fit_and_ask

# What a case may be, and how often it is.
KINDS: dict[str, tuple[Callable[[Random], None], int]] = {
    "functions": (call, 20),
    "columns": (change_columns, 5),
    "models": (fit_and_ask, 1),
    "files": (load_broken, 3),
}
# Words of nanobind, NumPy, SciPy, pandas and Python about themselves.
INTERNAL = re.compile(
    r"incompatible function arguments|_core\.|nanobind|unhashable|ufunc|broadcast|Python int"
    r"|has no attribute|cannot convert|invalid literal|Maximum allowed|out of bounds"
    r"|index out of range|unsupported operand|not supported between|truth value|inhomogeneous"
    r"|setting an array element|could not convert|could not be converted|positional argument"
    r"|NoneType|scalar arrays|cannot cast|Cannot cast|cannot be interpreted|must be real number"
    r"|can only concatenate|not iterable|not subscriptable|too large to convert|array is too big"
    r"|object of type .* has no len|int too large|math domain|escape sequence|negative dimensions"
)


def run(case: int, kinds: Sequence[str]) -> str | None:
    """Run a case; the trace of what went wrong, None if nothing did."""
    random = Random(case)
    kind = random.choices([*kinds], [KINDS[name][1] for name in kinds])[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            KINDS[kind][0](random)
    except Exception as error:  # noqa: BLE001 - whatever comes out is what this is for
        if not _is_said_well(error, kind):
            return traceback.format_exc(limit=-6)
    return None


def _is_said_well(error: Exception, kind: str) -> bool:
    """Whether people are told what was expected and what came."""
    if not isinstance(error, ValueError | TypeError | MemoryError | Warning):
        return False
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    if f"{os.sep}sklearn{os.sep}" in last.f_code.co_filename:
        return True  # scikit-learn's users know its words
    if isinstance(error, Warning) or not str(error):
        return False
    # Of a broken file it is said in words of certree's that it is, and then what was met.
    return kind == "files" or not INTERNAL.search(str(error))
