"""With what fits on rows that lie elsewhere are made: a cluster, or so much memory.

That speaks neither of the model nor of its rows but of the machines at hand, so it is no parameter of
an estimator, which would be cloned, searched over and kept in files, and no argument of `fit`, which
pipelines and searches do not hand on. As with `sklearn.config_context`, it holds for a block of code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from certree.parts.memory_limit import bytes_of

_CLIENT: ContextVar[Any] = ContextVar("client of fits on parts", default=None)
_LIMIT: ContextVar[int | None] = ContextVar("memory of fits on parts", default=None)


def get_active_client() -> Any:
    """The client that the block names which this is in; None: none."""
    return _CLIENT.get()


def get_memory_limit() -> int | None:
    """The bytes of memory that the block names which this is in; None: any number."""
    return _LIMIT.get()


@contextmanager
def resources(*, client: Any = None, memory_limit: int | str | None = None) -> Iterator[None]:
    """Say with what fits of this block are made on rows in files and on clusters.

    Models do not depend on it. A block within another says all anew.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster that holds the parts of a fit: of a collection of Dask, and of files, which each
        of its workers must see by the same paths. None: collections are where the current client
        is, files are read here.
    memory_limit : int, str or None
        What this process may hold in anonymous memory while it fits to files: bytes, or a size such as
        "2GB" or "500 MiB". What it holds before the fit counts, such as libraries and other rows;
        files of the scratch folder do not, which is best on a disk. Fewer threads then read smaller
        parts. If that may not do, an error names the least that does, before features are read; a fit
        stops with an error where very many categories or equal rows would take more than it. Takes
        Linux and paths of files. It is for no cluster, whose workers have a `memory_limit` of their own
        in Dask; fits to rows in memory and `predict_files` do not heed it. None: any number.

    Raises
    ------
    TypeError
        If `client` is no client of Dask, or `memory_limit` no size.
    ValueError
        If `memory_limit` is no size, or given beside a client.

    Examples
    --------
    >>> from certree.parts import resources
    >>> with resources(client=None):
    ...     pass  # model.fit("folder", "target")
    >>> with resources(memory_limit="2GB"):
    ...     pass  # the same
    """
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
        raise TypeError(f"client must be a distributed.Client or None, got {type(client).__name__}")
    limit = None if memory_limit is None else bytes_of(memory_limit)
    if limit is not None and client is not None:
        raise ValueError(
            "memory_limit is for files that are read here, got a client: workers of Dask have a "
            "memory_limit of their own"
        )
    tokens = _CLIENT.set(client), _LIMIT.set(limit)
    try:
        yield
    finally:
        _CLIENT.reset(tokens[0])
        _LIMIT.reset(tokens[1])
