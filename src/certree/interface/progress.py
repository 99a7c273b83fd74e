"""Progress of long operations: bars in terminals and notebooks, else lines of text."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import perf_counter

from certree.interface.extras import import_extra
from certree.interface.formatting import format_duration, format_four_digits

# Number of lines if there is no bar. A long operation writes further lines: after ten seconds, or a
# tenth of the time that has passed, without one.
_N_LINES, _SECONDS_PER_LINE = 10, 10.0
# Whether lines are written if standard error is neither a terminal nor a notebook.
_writes_lines: ContextVar[bool] = ContextVar("_writes_lines", default=True)


@contextmanager
def hide_lines() -> Iterator[None]:
    """Context manager in which `show_progress` writes no lines of text; bars are still shown.

    The command line uses it, as it shows progress without being asked to.
    """
    token = _writes_lines.set(False)
    try:
        yield
    finally:
        _writes_lines.reset(token)


@contextmanager
def show_progress(shown: bool, total: int, description: str) -> Iterator[Callable[..., None]]:
    """Show progress on standard error; a context manager.

    In a terminal or a notebook this is a bar of the package rich. Elsewhere, such as in a log file,
    it is about ten lines of text without control characters, unless `hide_lines` is in effect. It is
    such lines everywhere if rich is not installed.

    Parameters
    ----------
    shown : bool
        Whether to show anything.
    total : int
        Number of steps.
    description : str
        Text beside the bar, or in front of each line.

    Yields
    ------
    callable
        ``advance(steps, note)`` advances the bar by this number of steps (default 1), and shows a
        note (default "") beside it. Pass both by position. It does nothing if nothing is shown.
    """
    if not shown:
        yield lambda _steps=1, _note="": None
        return
    console = None
    with suppress(ImportError):
        console = import_extra("rich.console", "cli").Console(stderr=True)
        bars = import_extra("rich.progress", "cli")
    if console is None:  # Without rich there are no bars, and no commands either.
        with _show_lines(total, description) as advance:
            yield advance
    elif console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal):
        with bars.Progress(console=console, transient=True) as bar:
            task = bar.add_task(description, total=total)
            yield lambda steps=1, note="": bar.update(
                task, advance=steps, description=f"{description} {note}".rstrip()
            )
    elif _writes_lines.get():
        with _show_lines(total, description) as advance:
            yield advance
    else:
        yield lambda _steps=1, _note="": None


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


@contextmanager
def _show_lines(total: int, description: str) -> Iterator[Callable[..., None]]:
    """Write lines of progress to standard error, about ten in all; a context manager.

    A line has the steps that are done, the note and an estimate of the time left. The last line has
    the total time. It follows at the end, also if fewer steps were needed, as by early stopping.

    total: number of steps; description: beginning of each line. Yield a function that is called as
    ``advance(steps=1, note="")``, as that of `show_progress`.
    """
    done = shown = 0
    last_note = ""
    begin = last_time = perf_counter()

    def write(note: str, duration: str) -> None:
        """Write a line to standard error: the number of steps that are done, a note, and a duration.

        note: text, or "" for none; duration: text such as "5 min left".
        """
        nonlocal shown, last_time
        shown, last_time = done, perf_counter()
        details = ", ".join(text for text in (note, duration) if text)
        sys.stderr.write(f"{description}: {done} of {total}, {details}\n")

    def advance(steps: int = 1, note: str = "") -> None:
        """Add steps to the progress, and write a line to standard error if it is time.

        It is time if a tenth of the steps has been done since the last line, or if at least ten
        seconds, and a tenth of the time so far, have passed since then. The last step has no line
        here. steps: number of steps since the last call; note: text in the line, behind the number
        of steps.
        """
        nonlocal done, last_note
        done, last_note = done + steps, note
        now = perf_counter()
        is_late = now - last_time >= max(_SECONDS_PER_LINE, (now - begin) / _N_LINES)
        if done < total and ((done - shown) * _N_LINES >= total or is_late):
            left = (total - done) * (now - begin) / max(done, 1)
            write(note, f"{format_duration(left)} left")

    yield advance
    if done:
        write(last_note, f"finished in {format_duration(perf_counter() - begin)}")
