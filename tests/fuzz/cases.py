"""Run the case of a number, and decide whether an exception of it is a finding."""

import os
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import sklearn

import certree
from fuzz.exports import export
from fuzz.files import load_broken
from fuzz.functions import Attempt, call, change_columns
from fuzz.interrupts import interrupt
from fuzz.models import fit_and_ask
from fuzz.refits import refit
from fuzz.relations import relate


def once(attempt: Callable[[Random], None]) -> Callable[[Random], Iterator[Attempt]]:
    """Return a kind of case that makes a single attempt."""

    def attempts(random: Random) -> Iterator[Attempt]:
        yield partial(attempt, random)

    return attempts


# What a case may be, and how often it is. Each is a number of attempts, one after the other.
KINDS: dict[str, tuple[Callable[[Random], Iterator[Attempt]], int]] = {
    "functions": (call, 20),
    "columns": (change_columns, 5),
    "models": (once(fit_and_ask), 5),
    "files": (once(load_broken), 10),
    "relations": (relate, 3),
    "refits": (refit, 2),
    "exports": (export, 2),
    "interrupts": (interrupt, 1),
}
# Files of ours, and of scikit-learn.
_OWN = (str(Path(certree.__file__).parent), str(Path(__file__).parent))
_PEER = f"{os.sep}sklearn{os.sep}"
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
    """Run a case; return the traceback of an unexpected exception, None if there was none."""
    # An interrupt within a fit leaves scikit-learn's switch as the fit had set it.
    sklearn.set_config(skip_parameter_validation=False)
    random = Random(case)
    kind = random.choices([*kinds], [KINDS[name][1] for name in kinds])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "no product of features explains y")  # targets are noise
        warnings.simplefilter("ignore", certree.RepeatedRowsWarning)  # tables are toys
        warnings.simplefilter("ignore", certree.NearCopiesWarning)
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")  # forests are small
        warnings.filterwarnings("ignore", ".* nearly is an identifier")  # numbers as categories
        warnings.filterwarnings(
            "ignore", ".*that float32 does not distinguish"
        )  # numbers are close
        warnings.filterwarnings("ignore", "sample_weight differs so much")  # some are drawn so
        for attempt in KINDS[kind][0](random):
            try:
                attempt()
            except Exception as error:  # noqa: BLE001 - whatever comes out is what this is for
                if not _is_said_well(error, kind):
                    return traceback.format_exc(limit=-6)
    return None


def _is_said_well(error: Exception, kind: str) -> bool:
    """Return whether an exception is of an expected type and its message states the problem in
    certree's words.
    """
    if not isinstance(error, ValueError | TypeError | MemoryError | Warning):
        return False
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = max(k for k, file in enumerate(frames) if file.startswith(_OWN))
    if any(_PEER in file for file in frames[own:]) or _PEER in str(error.__cause__):
        return True  # scikit-learn's users know its words
    if isinstance(error, Warning) or not str(error):
        return False
    # Of a broken file it is said in words of certree's that it is, and then what was met.
    return kind == "files" or not INTERNAL.search(str(error))
