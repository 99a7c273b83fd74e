"""A progress bar for long work, when somebody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter

from certree.interface.extras import import_extra
from certree.interface.formatting import format_duration, format_four_digits

# Where there are only lines, so many are written.
_LINES = 10


@contextmanager
def show_progress(shown: bool, total: int, description: str) -> Iterator[Callable[..., None]]:
    """Show a bar of `total` steps on standard error, if `shown`; yields what advances it.

    That takes a number of steps, 1 unless it is given, and a note that stands beside the bar from
    then on. Where rich is not installed there are lines instead.
    """
    console = None
    if shown:
        with suppress(ImportError):
            console = import_extra("rich.console", "cli").Console(stderr=True)
            bars = import_extra("rich.progress", "cli")
        if console is None:
            yield _lines(total, description)
            return
    # Where nobody sees it move, a bar would be an empty line.
    if console is None or not (console.is_terminal or console.is_jupyter):
        yield lambda _steps=1, _note="": None
        return
    with bars.Progress(console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps=1, note="": bar.update(
            task, advance=steps, description=f"{description} {note}".rstrip()
        )


class RowRate:
    """How many rows a second something takes, since it was made."""

    def __init__(self) -> None:
        self._n, self._begin = 0, perf_counter()

    def of(self, n: int) -> str:
        """The same in words, once n more have been taken."""
        self._n += n
        seconds = max(perf_counter() - self._begin, 1e-9)
        return f"{format_four_digits(float(f'{self._n / seconds:.2g}'))} rows/s"


def _lines(total: int, description: str) -> Callable[..., None]:
    """What tells of steps by lines on standard error, some of them in all."""
    done = told = 0
    begin = perf_counter()

    def advance(steps: int = 1, note: str = "") -> None:
        nonlocal done, told
        done += steps
        if done < total and (done - told) * _LINES < total:
            return
        told = done
        left = (total - done) * (perf_counter() - begin) / max(done, 1)
        more = [
            one for one in (note, f"{format_duration(left)} left" if done < total else "") if one
        ]
        sys.stderr.write(
            " ".join([f"{description}: {done} of {total}", ", ".join(more)]).rstrip() + "\n"
        )

    return advance
