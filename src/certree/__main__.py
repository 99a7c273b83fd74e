"""The command ``certree``: it starts the command line, or says in one line what that needs."""

import io
import os
import sys

from certree.interface.extras import import_extra


def main() -> None:
    """Run the command line."""
    try:
        _run()
    except KeyboardInterrupt:  # the command line says so itself, once it has been imported
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None


def _run() -> None:
    try:
        for module in ("typer", "rich", "pyarrow"):
            import_extra(module, "cli")
    except ImportError as error:
        raise SystemExit(f"error: {error}") from None
    from certree.cli import app

    if isinstance(sys.stdout, io.TextIOWrapper):  # a name in letters that it lacks is no error
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # what is printed may fail only here
    except BrokenPipeError:  # who reads has seen enough
        _forget_output()
        raise SystemExit(1) from None
    except OSError as error:
        _forget_output()
        raise SystemExit(f"error: the output could not be written: {error.strerror}") from None


def _forget_output() -> None:
    """What is left of the output goes nowhere, so that Python does not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
