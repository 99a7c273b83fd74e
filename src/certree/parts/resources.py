"""With what fits on rows that lie elsewhere are made: a cluster, and memory.

That speaks neither of the model nor of its rows but of the machine at hand, so it is no parameter of an
estimator, which would be cloned, searched over and kept in files, and no argument of `fit`, which
pipelines and searches do not hand on. As with `sklearn.config_context`, it holds for a block of code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Real
from typing import Any


@dataclass(frozen=True, slots=True)
class Resources:
    """What a fit may use; see `resources`."""

    client: Any = None
    memory_limit: int | None = None


_NONE = Resources()
_NOW: ContextVar[Resources] = ContextVar("resources of fits on parts", default=_NONE)


def resources_now() -> Resources:
    """What the block says that this is in."""
    return _NOW.get()


@contextmanager
def resources(*, client: Any = None, memory_limit: float | None = None) -> Iterator[None]:
    """Say with what fits of this block are made on rows in files and on clusters.

    Models do not depend on it. Blocks within others say all anew.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster that holds the parts of a fit: of a collection of Dask, and of files, which each
        of its workers must see by the same paths. None: collections are where the current client
        is, files are read here.
    memory_limit : float or None
        Bytes of memory that a fit to files may take beside what the process has already, without
        pages of files that the system may drop. None: parts have 2^19 rows, as many of them at a time
        as there are threads.

    Raises
    ------
    TypeError, ValueError
        If `client` is none of Dask, or `memory_limit` no number above 0. A fit that needs more raises
        a ValueError that names the least possible.

    Examples
    --------
    >>> from certree.parts import resources
    >>> with resources(memory_limit=2e9):
    ...     pass  # model.fit("folder", "target")
    """
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
        raise TypeError(f"client must be a distributed.Client or None, got {type(client).__name__}")
    given: Any = memory_limit
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, Real):
            raise TypeError(f"memory_limit must be a number of bytes or None, got {given!r}")
        if not 0 < given < 2**63:
            raise ValueError(f"memory_limit must be above 0, got {given!r}")
        given = int(given)
    token = _NOW.set(Resources(client, given))
    try:
        yield
    finally:
        _NOW.reset(token)
