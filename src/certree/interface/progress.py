"""A progress bar for long work, when somebody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from certree.interface.extras import needed

# Where there are only lines, so many are written.
_LINES = 10


@contextmanager
def progress(shown: bool, total: int, description: str) -> Iterator[Callable[..., None]]:
    """Show a bar of `total` steps on standard error, if `shown`; yields what advances it.

    That takes a number of steps, 1 unless it is given, and a note that stands beside the bar from
    then on. Where rich is not installed there are lines instead.
    """
    if not shown:
        yield lambda _steps=1, _note="": None
        return
    try:
        console = needed("rich.console", "cli").Console(stderr=True)
        made = needed("rich.progress", "cli").Progress(console=console, transient=True)
    except ImportError:
        yield _lines(total, description)
        return
    with made as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps=1, note="": bar.update(
            task, advance=steps, description=f"{description} {note}".rstrip()
        )


def _lines(total: int, description: str) -> Callable[..., None]:
    """What tells of steps by lines on standard error, some of them in all."""
    done = told = 0

    def advance(steps: int = 1, note: str = "") -> None:
        nonlocal done, told
        done += steps
        if done < total and (done - told) * _LINES < total:
            return
        told = done
        sys.stderr.write(f"{description}: {done} of {total} {note}".rstrip() + "\n")

    return advance
