"""The command ``certree``: it starts the command line, or prints which package is missing."""

import io
import os
import sys

from certree.interface.extras import import_extra


def main() -> None:
    """Run the command line `certree` on ``sys.argv``; `certree.cli` defines its commands.

    Exit with status 130 after Ctrl-C. Raise SystemExit with a message if a package of the optional
    dependencies "cli" is missing, or the output cannot be written.
    """
    try:
        _run()
    except KeyboardInterrupt:  # during imports; the command line handles it afterwards
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None


def _run() -> None:
    """Import and run the command line.

    Raise SystemExit with a message if an import fails or the output cannot be written, and with
    status 1 if the reader of a pipe has closed it.
    """
    try:
        for module in ("typer", "rich", "pyarrow"):
            import_extra(module, "cli")
    except ImportError as error:
        raise SystemExit(f"error: {error}") from None
    from certree.cli import app

    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that its encoding lacks are escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # buffered output may fail only here
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _forget_output()
        raise SystemExit(1) from None
    except OSError as error:
        _forget_output()
        raise SystemExit(
            f"error: standard output must take the result, but cannot be written: {error.strerror}. "
            "Redirect it to another place"
        ) from None


def _forget_output() -> None:
    """Redirect standard output to the null device.

    Call it after a write to standard output has failed. Otherwise Python would flush to a closed
    pipe at exit and fail again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
