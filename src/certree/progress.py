"""A progress bar for long work, when somebody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(shown: bool, total: int, description: str) -> Iterator[Callable[[], None]]:
    """Show a bar of `total` steps on standard error, if `shown`; yields what advances it."""
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda: bar.advance(task)
