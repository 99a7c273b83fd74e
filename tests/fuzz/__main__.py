"""Run random cases for some time, and print what they found."""

import argparse
import os
import sys

from fuzz.cases import KINDS, run
from fuzz.workers import watch


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time budget")
    parser.add_argument("--cases", type=int, default=10**12, help="at most so many numbers")
    parser.add_argument("--start", type=int, default=0, help="number of the first case: the seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds that a case may take")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--case", type=int, help="run this one alone, in this process")
    return parser.parse_args(arguments)


def main() -> bool:
    """Run cases and print a summary; return whether something was found."""
    options = options_of()
    if options.case is not None:
        finding = run(options.case, options.kinds)
        print(finding or "found nothing")
        return finding is not None
    n_ran, found = watch(options, run)
    print(f"{n_ran:,} cases, {len(found)} findings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
