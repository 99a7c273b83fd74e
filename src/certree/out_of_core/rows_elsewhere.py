"""Rows in files, or on a cluster, as what holds their parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

from certree.interface.extras import import_extra
from certree.out_of_core.cluster import OnCluster, Partitions
from certree.out_of_core.executors import Executor, Here
from certree.out_of_core.judging_rows import PartsWithValidation, SourceWithValidation
from certree.out_of_core.plan import is_planned
from certree.out_of_core.resources import get_active_client, get_memory_limit
from certree.out_of_core.scratch import scratch
from certree.out_of_core.sources import FileRows
from certree.rows.out_of_core import is_dask_collection
from certree.tables.table_source import with_format


def current_client() -> Any:
    """The client of the cluster that this process uses; None: there is none."""
    try:
        return import_extra("distributed", "dask").get_client()
    except (ValueError, ImportError):
        return None


@contextmanager
def rows_elsewhere(
    X: Any,
    y: Any,
    sample_weight: Any,
    n_threads: int,
    *,
    groups: Any = None,
    offset: Any = None,
    judges: tuple[Any, Any, Any, Any] | None = None,
    shown: bool = False,
) -> Iterator[Executor]:
    """Hold the parts of rows in files, or on a cluster, until the block is left.

    Parameters
    ----------
    X : path, list of paths, pyarrow.dataset.Dataset, or collection of Dask
        Rows.
    y, sample_weight : str, or collections of Dask
        Target and weights; names of columns where rows are in files.
    n_threads : int
        Number of threads, where rows are in files.
    groups : str, collection of Dask, or None
        Group of each row, given as `y` is.
    offset : str, list of str, collection of Dask, or None
        Offset of each row, given as `y` is.
    judges : tuple of X, y, weights and offsets, or None
        Rows that judge, given as these are; they need not lie where the others do. None: there are
        none.
    shown : bool
        Whether progress of what is read is shown.

    Yields
    ------
    Executor
        With rows that judge a `PartsWithValidation`.
    """
    client, rows = get_active_client(), _source(X, y, sample_weight, groups, offset)
    if is_dask_collection(X) and client is None:
        client = current_client()
    source: Any = rows
    if judges is not None:
        try:
            found = rows.inferred_schema.table_format if isinstance(rows, FileRows) else None
            X_val, y_val, weight_val, offset_val = judges
            source = SourceWithValidation(
                rows, _source(with_format(X_val, found), y_val, weight_val, None, offset_val)
            )
        except (ValueError, TypeError) as error:
            error.add_note("of X_val, y_val, sample_weight_val and offset_val")
            raise
    with scratch() as kept:
        if client is not None:
            with _without_task_slot(), closing(OnCluster(source, client, kept)) as parts:
                yield _judged(parts, source)
            return
        yield _judged(Here(source, kept, n_threads, shown=shown, limit=get_memory_limit()), source)


def _without_task_slot() -> AbstractContextManager[Any]:
    """Give the slot of a task of Dask that fits a model to the tasks of the fit, until it ends."""
    distributed = import_extra("distributed", "dask")
    try:
        distributed.get_worker()
    except ValueError:  # no task
        return nullcontext()
    client: AbstractContextManager[Any] = distributed.worker_client()
    return client


def _source(X: Any, y: Any, sample_weight: Any, groups: Any, offset: Any) -> FileRows | Partitions:
    limit = get_memory_limit()
    if not is_dask_collection(X):
        is_limited = limit is not None or is_planned()
        return FileRows(X, y, sample_weight, groups, offset, is_limited=is_limited)
    if limit is not None:
        raise ValueError(
            "memory_limit is for files, got a collection of Dask: workers have a memory_limit of "
            "their own there"
        )
    return Partitions(X, y, sample_weight, groups, offset)


def _judged(parts: Executor, source: Any) -> Executor:
    if isinstance(source, SourceWithValidation):
        return PartsWithValidation(parts, source)
    return parts
