"""Threads: how many `n_jobs` means."""

import os
from contextlib import nullcontext
from multiprocessing import current_process
from numbers import Integral

from joblib import cpu_count, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from sklearn.utils._param_validation import Interval

from certree.interface.signatures import validate_arguments

# What it may be, in scikit-learn's terms.
N_JOBS = [
    Interval(Integral, -(2**31), -1, closed="both"),
    Interval(Integral, 1, 2**31 - 1, closed="both"),
    None,
]
# More threads than this only wait for each other, on any machine.
_MOST_THREADS = 1024
# So many rows are worth more than one thread where all trees of an ensemble are asked.
_WORTH_THREADS = 128


@validate_arguments
def get_n_threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` means in scikit-learn's convention, 1024 at most."""
    if n_jobs is None:
        return 1
    # Processes are what joblib would start; a worker of a pool may start none, but threads.
    with parallel_config("threading") if current_process().daemon else nullcontext():
        return min(int(effective_n_jobs(n_jobs)), _MOST_THREADS)


def get_n_threads_or_all(n_jobs: int | None, n_rows: int = _WORTH_THREADS) -> int:
    """Number of threads of models whose fits are long: None means all that this process may use.

    A few rows to predict take one: to ask for more takes longer than their prediction.

    What joblib is told wins, one of its workers takes one, and OMP_NUM_THREADS bounds them, as it does
    for scikit-learn's own boosting: so do pools and clusters say that their workers share a machine.
    """
    if n_rows < _WORTH_THREADS:
        return 1
    if n_jobs is not None:
        return get_n_threads(n_jobs)
    backend, configured = get_active_backend()
    if configured is not None:
        return get_n_threads(configured)
    if backend.nesting_level:
        return 1
    bound = os.environ.get("OMP_NUM_THREADS", "")
    most = min(cpu_count(), _MOST_THREADS)
    return min(most, max(1, int(bound))) if bound.isdecimal() else most
