"""A progress bar for long work, when somebody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from certree.interface.extras import needed


@contextmanager
def progress(shown: bool, total: int, description: str) -> Iterator[Callable[..., None]]:
    """Show a bar of `total` steps on standard error, if `shown`; yields what advances it.

    Raises
    ------
    ImportError
        If it is to be shown and rich is not installed.
    """
    if not shown:
        yield lambda _=1: None
        return
    console = needed("rich.console", "cli").Console(stderr=True)
    with needed("rich.progress", "cli").Progress(console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps=1: bar.advance(task, steps)
