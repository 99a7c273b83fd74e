"""Rows in files, or on a cluster, as what holds their parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from certree.interface.extras import needed
from certree.parts.cluster import OnCluster, Partitions
from certree.parts.executors import Executor, Here, Source
from certree.parts.resources import client_now, limit_now
from certree.parts.scratch import scratch
from certree.parts.sources import FileRows
from certree.rows.elsewhere import lies_on_cluster


def current_client() -> Any:
    """The client of the cluster that this process uses; None: there is none."""
    try:
        return needed("distributed", "dask").get_client()
    except (ValueError, ImportError):
        return None


@contextmanager
def rows_elsewhere(
    X: Any, y: Any, sample_weight: Any, n_threads: int, *, shown: bool = False
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
    shown : bool
        Whether progress of what is read is shown.

    Yields
    ------
    Executor
    """
    source: Source | Partitions
    client, limit = client_now(), limit_now()
    if lies_on_cluster(X):
        if limit is not None:
            raise ValueError(
                "memory_limit is for files, got a collection of Dask: workers have a memory_limit of "
                "their own there"
            )
        source = Partitions(X, y, sample_weight)
        client = current_client() if client is None else client
    else:
        source = FileRows(X, y, sample_weight, is_limited=limit is not None)
    if client is not None:
        yield OnCluster(source, client)
        return
    with scratch() as kept:
        yield Here(source, kept, n_threads, shown=shown, limit=limit)
