"""What the documentation shows must run, and print what it says it prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))

# A block of code and, if one comes straight after it, the block with what it prints.
BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\s*^```output\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_and_print_what_they_say(page, tmp_path, monkeypatch, capsys):
    text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    if not blocks:
        pytest.skip("no Python on this page")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks:
        code, output = block.groups()
        # Empty lines before the code make a traceback point to the line of the page.
        first = text[: block.start(1)].count("\n")
        exec(compile("\n" * first + code, str(page), "exec"), namespace)
        printed = capsys.readouterr().out
        if output is not None:
            assert printed == output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.name)
def test_example_runs(script, tmp_path):
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
