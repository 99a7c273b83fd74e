"""How large the house is: `python -m benchmarks.house`.

Rooms, floors and arrows of the layout test; lines of code without blanks, comments and docstrings; and
what a fit walks through: files of the package whose functions are called, moves (calls that come from
another of its files), and calls. Each beside the goal.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

import certree
from certree import CertifiedForestClassifier, CertifiedTreeClassifier, PACBayesTreeClassifier

HOUSE = Path(certree.__file__).parent
CORE = HOUSE.parent / "core"
TESTS = HOUSE.parents[1] / "tests"

Triple = tuple[int, int, int]


def rooms() -> Triple:
    """Rooms, floors (the longest chain of rooms, each of which imports the next) and arrows."""
    sys.path.append(str(TESTS))
    from test_layout import MODULES, ROOMS, imported

    below: dict[str, set[str]] = {room: set() for room in ROOMS}
    for name, path in MODULES.items():
        room = name.split(".")[0]
        below[room] |= {inner.split(".")[0] for inner in imported(path)} - {room}
    floor: dict[str, int] = {}
    for room in TopologicalSorter(below).static_order():
        floor[room] = 1 + max((floor[inner] for inner in below[room]), default=0)
    return len(ROOMS), max(floor.values()), sum(map(len, below.values()))


def python_lines(text: str) -> int:
    """Lines that hold code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    skipped = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            skipped |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    held = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*layout, tokenize.ENDMARKER):
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - skipped)


def core_lines(text: str) -> int:
    """Lines of C++ that hold code."""
    bare = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    return sum(bool(line.strip()) for line in bare.splitlines())


def lines() -> tuple[int, int]:
    """Lines of code in Python and in C++."""
    core = [path for path in CORE.rglob("*") if path.suffix in (".hpp", ".cpp")]
    return (
        sum(python_lines(path.read_text()) for path in HOUSE.rglob("*.py")),
        sum(core_lines(path.read_text()) for path in core),
    )


def walked(run: Callable[[], Any]) -> Triple:
    """Files, moves and calls of a run after one that was not watched."""
    files: set[str] = set()
    moves = calls = 0

    def is_ours(frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(str(HOUSE))

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal moves, calls
        if event != "call" or not is_ours(frame):
            return
        file, caller = frame.f_code.co_filename, frame.f_back
        while caller is not None and not is_ours(caller):
            caller = caller.f_back
        files.add(file)
        calls += 1
        moves += caller is not None and caller.f_code.co_filename != file

    run()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return len(files), moves, calls


def main() -> None:
    """Print a table of what there is and what is wanted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=4000) > 0).astype(int)
    cancer = load_breast_cancer(return_X_y=True)
    fits: dict[str, tuple[Any, Any, Triple]] = {
        "plain fit": (PACBayesTreeClassifier(random_state=0), (X, y), (16, 600, 1200)),
        "certified fit": (CertifiedTreeClassifier(random_state=0), (X, y), (25, 2000, 4000)),
        "certified forest": (
            CertifiedForestClassifier(random_state=0, n_jobs=1),
            cancer,
            (25, 3000, 6000),
        ),
    }
    table: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
        ("rooms / floors / arrows", rooms(), (22, 11, 115)),
        ("lines of Python / of C++", lines(), (17_000, 9_300)),
    ]
    for name, (model, rows, goal) in fits.items():
        found = walked(lambda model=model, rows=rows: model.fit(*rows))  # type: ignore[misc]
        table.append((f"files / moves / calls of a {name}", found, goal))
    for name, found, goal in table:
        told, wanted = (" / ".join(f"{one:,}" for one in of) for of in (found, goal))
        missed = any(one > most for one, most in zip(found, goal, strict=True))
        print(f"{name:46} {told:22} goal {wanted:20} {'MISSED' if missed else 'met'}")


if __name__ == "__main__":
    main()
