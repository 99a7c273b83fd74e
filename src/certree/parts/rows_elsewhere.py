"""Rows in files, or on a cluster, as what holds their parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from certree.interface.extras import needed
from certree.parts.cluster import OnCluster, Partitions
from certree.parts.executors import Executor, Here, Source
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
def rows_elsewhere(X: Any, y: Any, sample_weight: Any, n_threads: int) -> Iterator[Executor]:
    """Hold the parts of rows in files, or on a cluster, until the block is left.

    Parameters
    ----------
    X : path, list of paths, pyarrow.dataset.Dataset, or collection of Dask
        Rows.
    y, sample_weight : str, or collections of Dask
        Target and weights; names of columns where rows are in files.
    n_threads : int
        Number of threads, where rows are in files.

    Yields
    ------
    Executor
    """
    client = current_client() if lies_on_cluster(X) else None
    if client is not None:
        yield OnCluster(Partitions(X, y, sample_weight), client)
        return
    of = Partitions if lies_on_cluster(X) else FileRows
    source: Source = of(X, y, sample_weight)
    with scratch() as kept:
        yield Here(source, kept, n_threads)
