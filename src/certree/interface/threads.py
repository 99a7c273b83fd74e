"""The number of threads that `n_jobs` stands for."""

import os
from contextlib import nullcontext
from multiprocessing import current_process
from numbers import Integral

from joblib import cpu_count, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from sklearn.utils._param_validation import Interval

from certree.interface.signatures import validate_arguments

# Valid values of `n_jobs`, as constraints of scikit-learn.
N_JOBS = [
    Interval(Integral, -(2**31), -1, closed="both"),
    Interval(Integral, 1, 2**31 - 1, closed="both"),
    None,
]
# More threads would only wait for each other, on any machine.
_MAX_THREADS = 1024
# From this number of rows on, threads speed up the prediction of an ensemble.
_MIN_ROWS_FOR_THREADS = 128


@validate_arguments
def get_n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for a value of `n_jobs`, from 1 to 1024.

    None means 1, -1 all cores that this process may use, -2 all but one, and so on, as in
    scikit-learn. Raise ValueError for 0.
    """
    if n_jobs is None:
        return 1
    # joblib counts processes by default, which a daemon may not start; it may start threads.
    with parallel_config("threading") if current_process().daemon else nullcontext():
        return min(int(effective_n_jobs(n_jobs)), _MAX_THREADS)


def get_n_threads_or_all(n_jobs: int | None, n_rows: int = _MIN_ROWS_FOR_THREADS) -> int:
    """Return the number of threads of an ensemble, for which n_jobs=None means all.

    Parameters
    ----------
    n_jobs : int or None
        The parameter of the estimator. None: the n_jobs of joblib's `parallel_config` if it is set;
        1 in a worker of joblib; else all cores, but at most OMP_NUM_THREADS, as in scikit-learn's
        histogram boosting.
    n_rows : int
        Number of rows to predict; fewer than 128 take one thread.

    Returns
    -------
    int
        Number of threads, from 1 to 1024.
    """
    if n_rows < _MIN_ROWS_FOR_THREADS:
        return 1
    if n_jobs is not None:
        return get_n_threads(n_jobs)
    backend, configured = get_active_backend()
    if configured is not None:
        return get_n_threads(configured)
    if backend.nesting_level:
        return 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    n_threads = min(cpu_count(), _MAX_THREADS)
    return min(n_threads, max(1, int(limit))) if limit.isdecimal() else n_threads
