"""What `n_jobs` means."""

import joblib
import pytest

import certree
from certree.interface.threads import get_n_threads, get_n_threads_or_all


def test_long_fits_take_the_threads_that_a_process_may_use(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert get_n_threads_or_all(None) == joblib.cpu_count()
    assert get_n_threads_or_all(3) == 3
    assert get_n_threads_or_all(-1) == get_n_threads(-1)
    with joblib.parallel_config(n_jobs=2):
        assert get_n_threads_or_all(None) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert get_n_threads_or_all(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # by level, which says nothing of one process
    assert get_n_threads_or_all(None) == joblib.cpu_count()


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_workers_of_joblib_take_one_thread(backend):
    jobs = (joblib.delayed(get_n_threads_or_all)(None) for _ in range(3))
    assert joblib.Parallel(2, backend=backend)(jobs) == [1, 1, 1]


def test_numbers_that_mean_no_threads_are_refused_before_anything_is_done():
    for model in (certree.TreeForestClassifier, certree.PrunedTreeRegressor):
        with pytest.raises(
            ValueError, match=r"The 'n_jobs' parameter .* must be an int in the range"
        ):
            model(n_jobs=10**400).fit([[0.0], [1.0]], [0, 1])
        with pytest.raises(
            ValueError, match=r"The 'n_jobs' parameter .* must be an int in the range"
        ):
            model(n_jobs=0).fit([[0.0], [1.0]], [0, 1])
