"""Count lines of code: `python -m benchmarks.code_size`.

Lines of Python, of C++ and of the benchmarks, without blank lines, comments and docstrings.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import certree

PACKAGE = Path(certree.__file__).parent
CORE = PACKAGE.parent / "core"


def find_python_lines(text: str) -> set[int]:
    """Return the numbers, from 1, of the lines of a Python file that hold code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*layout, tokenize.ENDMARKER):
            code |= set(range(token.start[0], token.end[0] + 1))
    return code - docstrings


def count_python_lines(text: str) -> int:
    """Return the number of lines of a Python file that hold code."""
    return len(find_python_lines(text))


def find_core_lines(text: str) -> set[int]:
    """Return the numbers, from 1, of the lines of a C++ file that hold code."""
    comments = re.compile(r"/\*.*?\*/|//[^\n]*", flags=re.DOTALL)
    code = comments.sub(lambda found: "\n" * found[0].count("\n"), text)
    return {number for number, line in enumerate(code.splitlines(), 1) if line.strip()}


def count_core_lines(text: str) -> int:
    """Return the number of lines of a C++ file that hold code."""
    return len(find_core_lines(text))


def main() -> None:
    """Print the three numbers."""
    core = [path for path in CORE.rglob("*") if path.suffix in (".hpp", ".cpp")]
    counts = {
        "Python": sum(count_python_lines(path.read_text()) for path in PACKAGE.rglob("*.py")),
        "C++": sum(count_core_lines(path.read_text()) for path in core),
        "benchmarks": sum(
            count_python_lines(path.read_text()) for path in Path(__file__).parent.rglob("*.py")
        ),
    }
    for name, count in counts.items():
        print(f"{name:10} {count:7,}")


if __name__ == "__main__":
    main()
