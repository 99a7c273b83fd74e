"""Count the lines that only out-of-core tests reach: `python -m benchmarks.out_of_core_lines`.

Estimators fit rows in memory, and rows in files or on workers of Dask. The script runs the in-memory
tests, then the out-of-core tests, and counts by file:

lines
    Lines that the out-of-core tests execute and the in-memory tests do not: statements of Python, as
    coverage.py counts them, and lines of C++ with a counter, as gcov counts them.
in functions
    Lines of code, without comments and docstrings, of functions that only the out-of-core tests enter.

With `--tests`, lines that omitted in-memory tests would reach may count. Child processes are counted
too, but a process that is killed loses its lines of C++, and of Python unless SIGTERM ended it.
The core with counters is built in build/out_of_core_lines, in an environment of its own;
CMAKE_BUILD_PARALLEL_LEVEL limits the jobs. gcov must belong to the compiler.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections import defaultdict
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from coverage import Coverage

from benchmarks.code_size import find_core_lines, find_python_lines

PROJECT = Path(__file__).parent.parent
BUILD = PROJECT / "build" / "out_of_core_lines"
CORE_BUILD = BUILD / "core"
KIND = "CERTREE_TESTS_OF"  # environment variable: which of the tests pytest runs
# Node ids of the tests that read files block by block for a fit or a certificate, or use Dask.
OUT_OF_CORE = (
    "tests/out_of_core/*",
    "tests/*/test_out_of_core_*.py::*",
    "tests/certificates/test_batches.py::*",
    "tests/certificates/test_trained_classes.py::test_files_*",
    "tests/cli/test_app.py::*folder*",
    "tests/cli/test_app.py::test_a_regressor_is_evaluated_batch_by_batch",
    "tests/ensembles/test_groups.py::test_out_of_core_*",
    "tests/ensembles/test_label_columns.py::*dask*",
    "tests/rows/*::test_rows_in_files_*",
    "tests/rows/test_near_copies.py::test_what_cannot_be_compared_is_said",
    "tests/tables/test_reader*.py::*",
    "tests/tables/test_table_files.py::*",
    "tests/test_docs.py::*large_data*",
    "tests/test_fuzz.py::test_cases_find_nothing*",
    "tests/test_keywords.py::*dask*",
)
Lines = dict[str, set[int]]  # numbers of lines by file
Spans = dict[str, set[tuple[int, int]]]  # first and last line of each function's body, by file


def is_out_of_core(node_id: str) -> bool:
    """Return whether a test, named as pytest names it, is an out-of-core test."""
    return any(fnmatchcase(node_id, pattern) for pattern in OUT_OF_CORE)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep the tests of one kind; pytest calls this, as the module is its plugin, too."""
    wanted = os.environ[KIND] == "out_of_core"
    items[:] = [item for item in items if is_out_of_core(item.nodeid) == wanted]


def find_lines_of_first(first: Lines, second: Lines) -> Lines:
    """Return the lines that the first run executed and the second did not, without empty files."""
    only = {file: lines - second.get(file, set()) for file, lines in first.items()}
    return {file: lines for file, lines in only.items() if lines}


def find_functions_of_first(first: Lines, second: Lines, spans: Spans) -> Lines:
    """Return all lines of functions that the first run entered and the second did not."""
    found: Lines = defaultdict(set)
    for file in spans.keys() & first.keys():
        for start, end in spans[file]:
            body = set(range(start, end + 1))
            if body & first[file] and not body & second.get(file, set()):
                found[file] |= body
    return found


def run_tests(kind: str, python: str, tests: Sequence[str]) -> None:
    """Run the tests of one kind with coverage, and delete what earlier runs have counted."""
    for old in [*BUILD.glob(f"{kind}*"), *CORE_BUILD.rglob("*.gcda")]:
        old.unlink()
    command = [python, "-m", "coverage", "run", "-m", "pytest", "-q", "-p", "no:randomly"]
    command += ["-n", "logical", "-p", "benchmarks.out_of_core_lines", *tests]
    variables = {**os.environ, KIND: kind, "COVERAGE_FILE": str(BUILD / kind)}
    done = subprocess.run(command, cwd=PROJECT, env=variables, check=False)
    if done.returncode:
        print(f"{kind} tests: pytest ended with {done.returncode}; lines may be missing")


def read_python_lines(kind: str) -> Lines:
    """Return the statements of the package that the tests of one kind executed, by file."""
    coverage = Coverage(data_file=str(BUILD / kind))
    coverage.combine([str(path) for path in BUILD.glob(f"{kind}.*")])
    found = {}
    for file in coverage.get_data().measured_files():
        _, statements, _, missing, _ = coverage.analysis2(file)
        found[str(Path(file).relative_to(PROJECT))] = set(statements) - set(missing)
    return found


def find_python_functions(file: str) -> set[tuple[int, int]]:
    """Return the spans of the functions' bodies in a file, without signatures."""
    nodes = ast.walk(ast.parse((PROJECT / file).read_text()))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {(one.body[0].lineno, one.end_lineno or one.lineno) for one in functions}


def read_core_lines(spans: Spans) -> Lines:
    """Return the lines of the core that the last run executed; add its functions to the spans."""
    lines: Lines = defaultdict(set)
    command = ["gcov", "--json-format", "--stdout", *map(str, CORE_BUILD.rglob("*.gcda"))]
    done = subprocess.run(command, cwd=CORE_BUILD, capture_output=True, text=True, check=True)
    for unit in done.stdout.splitlines():
        for source in json.loads(unit)["files"]:
            path = (CORE_BUILD / source["file"]).resolve()
            if path.is_relative_to(PROJECT / "src"):
                file = str(path.relative_to(PROJECT))
                lines[file] |= {line["line_number"] for line in source["lines"] if line["count"]}
                spans[file] |= {(one["start_line"], one["end_line"]) for one in source["functions"]}
    return lines


def build_core() -> str:
    """Build a core with counters in an environment of its own; return the path of its Python."""
    folder = BUILD / "environment"
    venv.create(folder, symlinks=True)
    python = str(folder / "bin" / "python")
    variables = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    # All other packages are found where this environment has them.
    start = f"{sysconfig.get_path('purelib')}\nimport coverage; coverage.process_startup()\n"
    (packages / "developer.pth").write_text(start)
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "-I"]
    command += ["--no-deps", "--no-build-isolation", "-C", f"build-dir={CORE_BUILD}"]
    for name in ("CMAKE_CXX_FLAGS", "CMAKE_MODULE_LINKER_FLAGS"):
        command.append(f"-Ccmake.define.{name}=--coverage")
    subprocess.run([*command, "-e", "."], cwd=PROJECT, check=True)
    return python


def compare(
    lines: dict[str, Lines], spans: Spans, find_code: Callable[[str], set[int]]
) -> dict[str, dict[str, int]]:
    """Return both numbers of each file with lines of out-of-core tests only, and the totals.

    lines: the executed lines by kind of test. find_code: returns the lines of a file with code.
    """
    only = find_lines_of_first(lines["out_of_core"], lines["memory"])
    functions = find_functions_of_first(lines["out_of_core"], lines["memory"], spans)
    table = {}
    for file in sorted(only, key=lambda file: (-len(only[file]), file)):
        code = find_code((PROJECT / file).read_text())
        in_functions = functions.get(file, set()) & code
        table[file] = {"lines": len(only[file]), "in functions": len(in_functions)}
    total = {key: sum(row[key] for row in table.values()) for key in ("lines", "in functions")}
    return {**table, "total": total}


def main() -> None:
    """Run both kinds of tests, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python-only", action="store_true", help="build and count no C++")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="files and folders of tests")
    parser.add_argument("--json", type=Path, help="file for the counts and the lines")
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    python = sys.executable if arguments.python_only else build_core()
    python_lines, core_lines = dict[str, Lines](), dict[str, Lines]()
    core_functions: Spans = defaultdict(set)
    for kind in ("memory", "out_of_core"):
        run_tests(kind, python, arguments.tests)
        python_lines[kind] = read_python_lines(kind)
        core_lines[kind] = {} if arguments.python_only else read_core_lines(core_functions)
    functions = {file: find_python_functions(file) for file in python_lines["out_of_core"]}
    tables = {"Python": compare(python_lines, functions, find_python_lines)}
    if not arguments.python_only:
        tables["C++"] = compare(core_lines, core_functions, find_core_lines)
    for language, table in tables.items():
        print(f"\n{language + ' reached by out-of-core tests only':60}  lines  in functions")
        for file, row in table.items():
            print(f"{file:60}{row['lines']:>7}{row['in functions']:>14}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"tests": arguments.tests, **tables}, indent=1))


if __name__ == "__main__":
    main()
