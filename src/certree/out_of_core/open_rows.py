"""Open out-of-core or distributed rows: choose the source and the executor of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

from certree.interface.extras import import_extra
from certree.out_of_core.cluster import DaskExecutor, DaskRows
from certree.out_of_core.executors import Executor, LocalExecutor
from certree.out_of_core.plan import is_dry_run
from certree.out_of_core.resources import get_active_client, get_memory_limit
from certree.out_of_core.scratch import open_scratch
from certree.out_of_core.sources import FileRows
from certree.out_of_core.validation_set import ExecutorWithValidation, SourceWithValidation
from certree.rows.out_of_core import is_dask_collection
from certree.tables.table_source import with_format


def get_current_client() -> Any:
    """Return the current Dask client of this process.

    Return None if there is no client, or Dask is not installed.
    """
    try:
        return import_extra("distributed", "dask").get_client()
    except (ValueError, ImportError):
        return None


@contextmanager
def open_rows(
    X: Any,
    y: Any,
    sample_weight: Any,
    n_threads: int,
    *,
    groups: Any = None,
    offset: Any = None,
    time: Any = None,
    validation: tuple[Any, Any, Any, Any] | None = None,
    is_shown: bool = False,
) -> Iterator[Executor]:
    """Open out-of-core or distributed rows, and release them at the end of the with statement.

    Parameters
    ----------
    X : path, list of paths, pyarrow.dataset.Dataset, or Dask collection
        Features of the rows.
    y, sample_weight, groups, offset : str, list of str, Dask collection, or None
        Targets, weights, groups and offsets: names of columns, or collections if X is one. Only y and
        offset may be lists.
    n_threads : int
        Largest number of threads that read files.
    time : Dask collection or None
        Times of the rows of a collection; None: there are none, or they are a column of X.
    validation : tuple of four objects, or None
        Features, targets, weights and offsets of a validation set, as those of the rows. It may be of
        another kind than X. None: there is no such validation set.
    is_shown : bool
        Whether a progress bar shows how many rows of files have been read.

    Yields
    ------
    Executor
        Calls functions for each block of the rows; an `ExecutorWithValidation` if there is a
        validation set.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        If an argument is invalid; see `FileRows` and `DaskRows`. If a memory limit is set for a Dask
        collection.
    """
    client, rows = get_active_client(), _open_source(X, y, sample_weight, groups, offset, time)
    if is_dask_collection(X) and client is None:
        client = get_current_client()
    source: Any = rows
    if validation is not None:
        try:
            found = rows.inferred_schema.table_format if isinstance(rows, FileRows) else None
            X_val, y_val, weight_val, offset_val = validation
            source = SourceWithValidation(
                rows,
                _open_source(with_format(X_val, found), y_val, weight_val, None, offset_val),
            )
        except (ValueError, TypeError) as error:
            error.add_note("of X_val, y_val, sample_weight_val and offset_val")
            raise
    with open_scratch() as scratch:
        if client is not None:
            dask = DaskExecutor(source, client, n_threads, scratch)
            with _leave_task_slot(), closing(dask) as executor:
                yield _wrap_validation(executor, source)
            return
        local = LocalExecutor(
            source, scratch, n_threads, is_shown=is_shown, memory_limit=get_memory_limit()
        )
        yield _wrap_validation(local, source)


@contextmanager
def _leave_task_slot() -> Iterator[None]:
    """Return a context in which a Dask task that fits a model leaves its thread to other tasks.

    Otherwise the task could wait for its own tasks. The context does nothing outside of Dask tasks.
    """
    distributed = import_extra("distributed", "dask")
    try:
        distributed.get_worker()
        is_task = True
    except ValueError:
        is_task = False
    with ExitStack() as stack:
        if is_task:
            with suppress(KeyError):  # Dask 2024 raises it if the task has left its slot already
                stack.enter_context(distributed.worker_client())
        yield


def _open_source(
    X: Any, y: Any, sample_weight: Any, groups: Any, offset: Any, time: Any = None
) -> FileRows | DaskRows:
    """Return a source that reads the rows of files or of a Dask collection block by block.

    X: files or a Dask collection; y, sample_weight, groups, offset: names of columns, or Dask
    collections, or None; time: a Dask collection, or None. A `memory_limit` of `resources` is for files
    only. `open_rows` describes the errors.
    """
    limit = get_memory_limit()
    if not is_dask_collection(X):
        is_limited = limit is not None or is_dry_run()
        return FileRows(X, y, sample_weight, groups, offset, is_limited=is_limited)
    if limit is not None:
        raise ValueError(
            "memory_limit is for files, got a Dask collection as X: set the memory_limit of the "
            "workers in Dask, and remove memory_limit from resources"
        )
    return DaskRows(X, y, sample_weight, groups, offset, time)


def _wrap_validation(executor: Executor, source: Any) -> Executor:
    """Return an executor whose passes skip the validation set, if the source has one.

    source: the source that the executor reads. Without validation set the executor is returned
    unchanged.
    """
    if isinstance(source, SourceWithValidation):
        return ExecutorWithValidation(executor, source)
    return executor
