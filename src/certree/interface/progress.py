"""Progress bars for long operations."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter

from certree.interface.extras import import_extra
from certree.interface.formatting import format_duration, format_four_digits

# Number of lines if there is no bar.
_N_LINES = 10


@contextmanager
def show_progress(shown: bool, total: int, description: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error; a context manager.

    If rich is not installed, about ten lines of text are written instead of the bar. If rich is
    installed, nothing is shown unless standard error is a terminal or a notebook.

    Parameters
    ----------
    shown : bool
        Whether to show anything.
    total : int
        Number of steps.
    description : str
        Text beside the bar.

    Yields
    ------
    callable
        ``advance(steps, note)`` advances the bar by this number of steps (default 1), and shows a
        note (default "") beside it. Pass both by position. It does nothing if nothing is shown.
    """
    console = None
    if shown:
        with suppress(ImportError):
            console = import_extra("rich.console", "cli").Console(stderr=True)
            bars = import_extra("rich.progress", "cli")
        if console is None:
            yield _show_lines(total, description)
            return
    # In a file, a bar would be an empty line.
    if console is None or not (console.is_terminal or console.is_jupyter):
        yield lambda _steps=1, _note="": None
        return
    with bars.Progress(console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps=1, note="": bar.update(
            task, advance=steps, description=f"{description} {note}".rstrip()
        )


class RowRate:
    """Counts rows and measures their mean rate since the object was made.

    The constructor has no arguments.
    """

    def __init__(self) -> None:
        self._n, self._begin = 0, perf_counter()

    def update(self, n: int) -> str:
        """Count n more rows, and return the mean rate since the start, such as "12,000 rows/s"."""
        self._n += n
        seconds = max(perf_counter() - self._begin, 1e-9)
        return f"{format_four_digits(float(f'{self._n / seconds:.2g}'))} rows/s"


def _show_lines(total: int, description: str) -> Callable[..., None]:
    """Return a function that writes about ten lines of progress to standard error in all.

    total: number of steps; description: beginning of each line. The function is called as
    ``advance(steps=1, note="")``, as that of `show_progress`; a line has the steps that are done,
    the note and an estimate of the time left.
    """
    done = shown = 0
    begin = perf_counter()

    def advance(steps: int = 1, note: str = "") -> None:
        nonlocal done, shown
        done += steps
        if done < total and (done - shown) * _N_LINES < total:
            return
        shown = done
        left = (total - done) * (perf_counter() - begin) / max(done, 1)
        remaining = f"{format_duration(left)} left" if done < total else ""
        details = ", ".join(text for text in (note, remaining) if text)
        sys.stderr.write(f"{description}: {done} of {total} {details}".rstrip() + "\n")

    return advance
