"""With what fits on rows that lie elsewhere are made: a cluster.

That speaks neither of the model nor of its rows but of the machines at hand, so it is no parameter of
an estimator, which would be cloned, searched over and kept in files, and no argument of `fit`, which
pipelines and searches do not hand on. As with `sklearn.config_context`, it holds for a block of code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_CLIENT: ContextVar[Any] = ContextVar("client of fits on parts", default=None)


def client_now() -> Any:
    """The client that the block names which this is in; None: none."""
    return _CLIENT.get()


@contextmanager
def resources(*, client: Any = None) -> Iterator[None]:
    """Say with what fits of this block are made on rows in files and on clusters.

    Models do not depend on it. A block within another says all anew.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster that holds the parts of a fit: of a collection of Dask, and of files, which each
        of its workers must see by the same paths. None: collections are where the current client
        is, files are read here.

    Raises
    ------
    TypeError
        If `client` is no client of Dask.

    Examples
    --------
    >>> from certree.parts import resources
    >>> with resources(client=None):
    ...     pass  # model.fit("folder", "target")
    """
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
        raise TypeError(f"client must be a distributed.Client or None, got {type(client).__name__}")
    token = _CLIENT.set(client)
    try:
        yield
    finally:
        _CLIENT.reset(token)
