"""The resources of fits to files and Dask collections: a cluster, or a limit of memory.

They describe the machine, not the model or its rows. So they are no parameters of an estimator,
which is cloned, searched over and saved, and no arguments of `fit`, which pipelines and searches do
not pass on. As with `sklearn.config_context`, they hold for a block of code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from certree.out_of_core.memory_limit import parse_size

_CLIENT: ContextVar[Any] = ContextVar("Dask client of fits", default=None)
_LIMIT: ContextVar[int | None] = ContextVar("memory limit of fits to files", default=None)


def get_active_client() -> Any:
    """Return the Dask client of the innermost `resources` block.

    None if the block has no client, or the caller is in no block.

    The block is the body of ``with resources(client=...)``, which runs fits on a Dask cluster.
    """
    return _CLIENT.get()


def get_memory_limit() -> int | None:
    """Return the memory limit in bytes of the innermost `resources` block.

    None if the block has no limit, or the caller is in no block.

    The block is the body of ``with resources(memory_limit=...)``, which limits fits to files.
    """
    return _LIMIT.get()


@contextmanager
def resources(*, client: Any = None, memory_limit: int | str | None = None) -> Iterator[None]:
    """Set the cluster or the memory limit of all fits in the body of a with statement.

    The fitted models do not depend on it. An inner block replaces both settings of an outer one.
    The settings hold for the current thread or asynchronous task (`contextvars`).

    Parameters
    ----------
    client : distributed.Client or None
        Client of the Dask cluster whose workers read the rows: partitions of a Dask collection, or
        files, which every worker must find under the same paths. None: Dask collections use the
        current client of Dask, and files are read in this process.
    memory_limit : int, str or None
        Most anonymous memory that this process may hold while it fits to files: a number of bytes,
        or a size such as "2GB" or "500 MiB". What it holds before the fit counts, such as libraries
        and tables in memory. Temporary files do not count: their folder should be on a disk, not in
        memory (tmpfs). A low limit lowers the number of threads and of rows per block. Needs Linux,
        and paths of files as X. It is not for clusters: Dask workers have their own `memory_limit`.
        Fits to rows in memory and `predict_files` ignore it. None: no limit.

    Yields
    ------
    None

    Raises
    ------
    TypeError
        If `client` is not a Dask client, or `memory_limit` is neither int nor str.
    ValueError
        If `memory_limit` is not a size, or both arguments are set. Fits raise it, too, if the limit
        is too small for them.

    Examples
    --------
    >>> from certree.out_of_core import resources
    >>> with resources(client=None):
    ...     pass  # model.fit("folder", "target")
    >>> with resources(memory_limit="2GB"):
    ...     pass  # the same
    """
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
        raise TypeError(
            f"client must be a distributed.Client or None, got {type(client).__name__}: pass "
            "distributed.Client(cluster)"
        )
    limit = None if memory_limit is None else parse_size(memory_limit)
    if limit is not None and client is not None:
        raise ValueError(
            "memory_limit is for files that this process reads, but client is set: leave out one "
            "of them. The workers of Dask have their own memory_limit"
        )
    tokens = _CLIENT.set(client), _LIMIT.set(limit)
    try:
        yield
    finally:
        _CLIENT.reset(tokens[0])
        _LIMIT.reset(tokens[1])
