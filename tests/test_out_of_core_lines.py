"""Counting of the lines that only out-of-core tests reach."""

import subprocess
from collections import defaultdict
from shutil import which

import pytest
from benchmarks import out_of_core_lines
from benchmarks.code_size import find_core_lines, find_python_lines

PROJECT = out_of_core_lines.PROJECT
FIT = '''def fit(X):
    """Fit the rows.

    They may be in files.
    """
    if is_out_of_core(X):
        # No more than a block is held.
        return fit_blocks(X)
    return fit_rows(X)


def fit_blocks(X):
    """Fit block by block."""
    model = None

    for block in X:
        model = update(model, block)
    return model
'''


def test_lines_of_the_first_run_alone_are_found():
    first = {"a.py": {1, 2, 3}, "b.py": {4}, "c.py": {5}}
    second = {"a.py": {2}, "b.py": {4, 6}, "d.py": {7}}
    assert out_of_core_lines.find_lines_of_first(first, second) == {"a.py": {1, 3}, "c.py": {5}}


def test_functions_that_the_first_run_alone_enters_are_found():
    spans = {"a.py": {(1, 3), (2, 3), (5, 9)}, "b.py": {(1, 2)}, "c.py": {(1, 1)}}
    first, second = {"a.py": {3, 6}, "b.py": {2}}, {"a.py": {9}, "c.py": {1}}
    found = out_of_core_lines.find_functions_of_first(first, second, spans)
    assert found == {"a.py": {1, 2, 3}, "b.py": {1, 2}}


def test_lines_of_files_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core_lines, "PROJECT", tmp_path)
    (tmp_path / "fit.py").write_text(FIT)
    spans = {"fit.py": out_of_core_lines.find_python_functions("fit.py")}
    assert spans == {"fit.py": {(2, 9), (13, 18)}}
    lines = {"memory": {"fit.py": {1, 6, 9, 12}}, "out_of_core": {"fit.py": {1, 6, 8, 12, 14, 18}}}
    table = out_of_core_lines.compare(lines, spans, find_python_lines)
    # Lines 8, 14 and 18; and all four lines of the second function, which is entered.
    expected = {"lines": 3, "in functions": 4}
    assert table == {"fit.py": expected, "total": expected}


def test_lines_of_code_have_numbers():
    assert find_python_lines(FIT) == {1, 6, 8, 9, 12, 14, 16, 17, 18}
    assert find_core_lines("int a;\n// b\n/* c\n\n*/ int d;\n\nint e; // f\n") == {1, 5, 7}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("tests/out_of_core/test_row_block.py::test_sums[1]", True),
        ("tests/ensembles/test_out_of_core_boosting_columns.py::test_fits", True),
        ("tests/ensembles/test_boosting.py::test_promises_on_parts_hold", False),
        ("tests/cli/test_app.py::test_a_folder_is_predicted_and_evaluated", True),
        ("tests/cli/test_app.py::test_fit", False),
    ],
)
def test_a_test_has_a_kind(test, expected):
    assert out_of_core_lines.is_out_of_core(test) == expected


@pytest.mark.parametrize("pattern", out_of_core_lines.OUT_OF_CORE)
def test_patterns_name_files(pattern):
    assert [*PROJECT.glob(pattern.partition("::")[0])]


CORE = """int add(int a, int b) {
  return a + b;
}
int multiply(int a, int b) {
  int product = 0;
  for (int i = 0; i < b; ++i) product += a;
  return product;
}
int main(int n, char**) {
  return n > 1 ? multiply(n, n) : add(n, -n);
}
"""


@pytest.mark.skipif(not (which("g++") and which("gcov")), reason="no g++ and gcov")
def test_lines_of_cpp_are_those_that_the_last_run_executed(tmp_path, monkeypatch):
    build = tmp_path / "build"
    for folder in (tmp_path / "src", build):
        folder.mkdir()
    (tmp_path / "src" / "sums.cpp").write_text(CORE)
    command = ["g++", "--coverage", "../src/sums.cpp", "-o", "sums"]
    subprocess.run(command, cwd=build, check=True)
    monkeypatch.setattr(out_of_core_lines, "PROJECT", tmp_path)
    monkeypatch.setattr(out_of_core_lines, "CORE_BUILD", build)
    spans, lines = defaultdict(set), {}
    for kind, arguments in (("memory", []), ("out_of_core", ["x"])):
        for old in build.glob("*.gcda"):
            old.unlink()
        subprocess.run([build / "sums", *arguments], cwd=build, check=False)
        lines[kind] = out_of_core_lines.read_core_lines(spans)
    assert lines["memory"] == {"src/sums.cpp": {1, 2, 9, 10}}
    assert spans == {"src/sums.cpp": {(1, 3), (4, 8), (9, 11)}}
    # The lines with a counter are 4 to 7; the function has a closing brace, too.
    expected = {"lines": 4, "in functions": 5}
    table = out_of_core_lines.compare(lines, spans, find_core_lines)
    assert table == {"src/sums.cpp": expected, "total": expected}
