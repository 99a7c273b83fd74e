"""What a release still needs: `make release-check` prints it, with what nobody here knows.

Each line is done, open (somebody can do it now) or unknown (it takes a fact from outside: an address,
an account, a person). Nothing is published by this file. `--wheels DIRECTORY` looks at built wheels
alone, and fails where one is too large or has the wrong tag.
"""

import argparse
import csv
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parent.parent
# Files of results that are of no run: the list of runs, and the answers that must not change.
NO_RUNS = {"runs.csv", "answers.csv"}
# Bytes of a wheel: 1.3 MB of core, and 1.1 MB of Python, much of which is docstrings for readers.
LARGEST = 5 * 2**19
DONE, OPEN, UNKNOWN = "done", "open", "unknown"

Line = tuple[str, str]  # the state, and what it is of


def read(path: str) -> str:
    """A file of the project, empty if there is none."""
    place = PROJECT / path
    return place.read_text(encoding="utf-8") if place.exists() else ""


def version() -> str:
    """The version, from its one place."""
    found = re.search(r'^__version__ = "([^"]+)"', read("src/certree/__init__.py"), re.M)
    if found is None:
        raise SystemExit("src/certree/__init__.py has no __version__")
    return found[1]


def state(holds: bool, otherwise: str = OPEN) -> str:
    """Done if it holds."""
    return DONE if holds else otherwise


def of_version() -> Iterator[Line]:
    """One version everywhere."""
    now, project = version(), tomllib.loads(read("pyproject.toml"))["project"]
    yield state("dev" not in now), f"the version, {now}, is that of a release"
    yield (
        state(project.get("dynamic") == ["version"]),
        "pyproject.toml takes the version from there",
    )
    yield state(f"version: {now}\n" in read("CITATION.cff")), "CITATION.cff has the same"
    cited = f"version = {{{now}}}" in read("docs/project/cite.md")
    yield state(cited), "docs/project/cite.md has the same"
    recipe = "src/certree/__init__.py" in read("release/conda/meta.yaml")
    yield state(recipe), "the conda recipe takes it from there, too"
    heading = f"## {now}\n" in read("CHANGELOG.md")
    yield state(heading), f"CHANGELOG.md has a section {now} that is no longer called unreleased"


def of_facts() -> Iterator[Line]:
    """What takes somebody who knows."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    yield (
        state("urls" in project, UNKNOWN),
        "[project.urls]: addresses of sources, pages and issues",
    )
    yield state("maintainers" in project, UNKNOWN), "maintainers, and where they are written to"
    cited = "date-released:" in read("CITATION.cff"), "doi:" in read("CITATION.cff")
    yield state(all(cited), UNKNOWN), "CITATION.cff: date of the release, and a DOI if there is one"
    recipe = read("release/conda/meta.yaml")
    yield state("sha256:" in recipe, UNKNOWN), "conda recipe: address and checksum of the sdist"
    yield (
        UNKNOWN,
        "a place for the site: all of build/versions goes there, and works at any address",
    )
    yield UNKNOWN, "whether the name is free where packages are published, and whose account it is"
    for workflow in sorted((PROJECT / ".github" / "workflows").glob("*.yml")):
        ran = "has ever run" not in workflow.read_text(encoding="utf-8")
        yield state(ran, UNKNOWN), f"{workflow.name} has run (its header says never)"


def of_wheels(directory: Path) -> Iterator[Line]:
    """Tags and sizes of what has been built."""
    wheels = sorted(directory.glob("*.whl"))
    if not wheels:
        yield OPEN, f"wheels in {directory.name}: none is built (make wheel)"
    for wheel in wheels:
        size, tags = wheel.stat().st_size, wheel.stem.split("-")[2:]
        yield state(size <= LARGEST), f"{wheel.name}: {size / 2**20:.2f} MB of at most 2.5"
        linked = not tags[-1].startswith("linux_")
        yield state(linked), f"{wheel.name}: its tag says where it may be installed"
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        typed = {"certree/py.typed", "certree/_core.pyi"} <= set(names)
        yield state(typed), f"{wheel.name}: has its types"
        cores = [name for name in names if re.search(r"certree/_core\.[^/]*(so|pyd)$", name)]
        yield state(len(cores) == 1), f"{wheel.name}: has one compiled core"


def of_results() -> Iterator[Line]:
    """Whether figures say what they were made with."""
    runs = {
        one["file"]: one for one in csv.DictReader(read("benchmarks/results/runs.csv").splitlines())
    }
    files = {one.name for one in (PROJECT / "benchmarks" / "results").glob("*.csv")} - NO_RUNS
    told = {name for name in files if "numpy" in runs.get(name, {}).get("versions", "")}
    yield (
        state(told == files),
        f"runs.csv has the versions of {len(told)} of {len(files)} files of results",
    )


def of_what_was_built() -> Iterator[Line]:
    """The wheels, the sources and the site."""
    yield from of_wheels(PROJECT / "dist")
    sources = [*(PROJECT / "dist").glob(f"certree-{version()}.tar.gz")]
    yield state(bool(sources)), "the sdist is built (make sdist)"
    site = read("build/site/index.html")
    yield state(f"certree {version()}" in site), "the site is built, of this version (make docs)"
    beside = read(f"build/versions/{version()}/_static/versions.js")
    yield (
        state(f'"{version()}"' in beside),
        "the site lies beside those of earlier releases, which build/versions has (make versions)",
    )
    yield OPEN, "make test, oldest, check, sanitize, browser and validity passed on this commit"
    yield (
        OPEN,
        "make wheel passed with PYTHON=python3.11 and with a later one, of the stable interface",
    )
    yield OPEN, "python -m benchmarks.answers: no answer differs that CHANGELOG.md does not name"
    yield OPEN, "make figures changed nothing, and no benchmark is older than what it measures"
    yield (
        OPEN,
        "CHANGELOG.md says whether files of the last release are read, and what to do if not",
    )


def main() -> int:
    """Print all lines; 1 if wheels that were named are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, help="look at the wheels of a directory alone")
    wheels = parser.parse_args().wheels
    every = (of_version, of_results, of_what_was_built, of_facts)
    parts = [of_wheels(wheels)] if wheels else [part() for part in every]
    lines = [line for part in parts for line in part]
    for told, what in lines:
        sys.stdout.write(f"{told:8} {what}\n")
    count = [sum(told == one for told, _ in lines) for one in (DONE, OPEN, UNKNOWN)]
    sys.stdout.write(f"\n{count[0]} done, {count[1]} open, {count[2]} unknown\n")
    return int(wheels is not None and count[0] < len(lines))


if __name__ == "__main__":
    sys.exit(main())
