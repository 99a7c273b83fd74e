"""Hash results of the library: `python -m benchmarks.answers [recorded.csv]`."""

import csv
import hashlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.answers.ensembles import ENSEMBLES
from benchmarks.answers.exports import EXPORTS
from benchmarks.answers.guarantees import CERTIFICATES
from benchmarks.answers.hashes import Case, digest
from benchmarks.answers.single_trees import SINGLE_TREES
from benchmarks.answers.stages import STAGES

RECORD = Path(__file__).parents[1] / "results" / "answers.csv"

Line = tuple[str, str, str]

# Names of cases, or how they begin, that differ from the record on purpose.
MEANT_TO_CHANGE: tuple[str, ...] = ()

CASES: Mapping[str, Case] = {
    **{
        f"{group}: {name}": case
        for models in (SINGLE_TREES, ENSEMBLES, EXPORTS)
        for group, cases in models.items()
        for name, case in cases.items()
    },
    **STAGES,
    **CERTIFICATES,
}


# -- running and comparing -------------------------------------------------------------------------


def lines(names: list[str]) -> Iterator[Line]:
    """Run the named cases; return a line (case, part, hash) for each of their parts."""
    for name in names:
        try:
            parts = CASES[name]()
        except Exception as error:  # noqa: BLE001 -- the other cases are wanted all the same
            yield name, "raised", f"{type(error).__name__}: {error}"
            continue
        for part, value in parts.items():
            yield name, part, digest(*value) if isinstance(value, list | tuple) else digest(value)


Found = dict[tuple[str, str], str]


def read(path: Path) -> Found:
    """Read a recorded table; the part is "whole" if the record has one hash for each case."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {(row[0], row[1] if len(row) == 3 else "whole"): row[-1] for row in rows}


def whole(found: Found) -> Found:
    """Combine the hashes of all parts of each case into one hash for each case."""
    texts: dict[str, str] = {}
    for (case, part), value in found.items():
        texts[case] = texts.get(case, "") + f"{part} {value}\n"
    return {
        (case, "whole"): hashlib.sha256(text.encode()).hexdigest()[:16]
        for case, text in texts.items()
    }


def write(path: Path, found: Found) -> None:
    """Write a table of hashes as a record."""
    of_cases = {part for _, part in found} == {"whole"}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "hash") if of_cases else ("case", "part", "hash"))
        writer.writerows(
            (case, *(() if of_cases else (part,)), value) for (case, part), value in found.items()
        )


def differing(old: Found, new: Found) -> dict[str, str]:
    """Return the cases whose hashes differ between two tables, and in which parts."""
    found: dict[str, list[str]] = {}
    for case, part in old | new:
        before, after = old.get((case, part)), new.get((case, part))
        if part == "raised" and after is not None:
            found.setdefault(case, []).append(after)
        elif before != after:
            how = " (new)" if before is None else " (gone)" if after is None else ""
            found.setdefault(case, []).append(part + how)
    return {case: ", ".join(parts) for case, parts in found.items()}


def main(
    recorded: Annotated[Path | None, typer.Argument()] = None,
    target: Annotated[Path, typer.Option("--write")] = RECORD,
    only: str = "",
    parts: bool = False,
) -> None:
    """Write a record of the hashes, or compare with one and print the cases that differ.

    recorded: the table to compare with; --write: where the table goes; only: run the cases whose
    names hold this text; parts: write a hash for each part.
    """
    warnings.simplefilter("ignore")
    names = [name for name in CASES if only in name]
    found = {(case, part): value for case, part, value in lines(names)}
    if recorded is None:
        write(target, found if parts else whole(found))
        raised = [f"{case}: {value}" for (case, part), value in found.items() if part == "raised"]
        print(f"{len(names)} cases, {len(found)} lines: {target}", *raised, sep="\n")
        sys.exit(bool(raised))
    old = {key: value for key, value in read(recorded).items() if key[0] in names}
    of_cases = {part for _, part in old} == {"whole"}
    changed = differing(old, whole(found) if of_cases else found)
    for case, where in changed.items():
        note = " [meant to change]" if case.startswith(MEANT_TO_CHANGE) else ""
        print(f"{case}{note}: {where}")
    unexpected = [case for case in changed if not case.startswith(MEANT_TO_CHANGE)]
    print(f"{len(names)} cases, {len(changed)} differ, {len(unexpected)} of them unexpectedly")
    sys.exit(bool(unexpected))


if __name__ == "__main__":
    typer.run(main)
