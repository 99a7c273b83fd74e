"""What the documentation shows must run, print what it says it prints, and hold every public name."""

import doctest
import re
import runpy
import shlex
import sys
import warnings
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

import certree
import certree.boolean
import certree.certificates.inequalities
import certree.certificates.subsets
import certree.explain
import certree.export
import certree.grow
import certree.paper
import certree.prunings
import certree.rows
import certree.stats
import certree.votes
import certree.weights
from certree.cli import app

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
GALLERY = sorted((PROJECT / "examples" / "gallery").glob("plot_*.py"))
SOURCE = PROJECT / "src"
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text("utf-8")]

# A block of code and, if one comes straight after it, the block with what it prints.
BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\s*^```output\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#:\s]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"^```python\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)

PACKAGES = [
    certree,
    certree.rows,
    certree.grow,
    certree.stats,
    certree.weights,
    certree.prunings,
    certree.votes,
    certree.certificates,
    certree.certificates.inequalities,
    certree.certificates.subsets,
    certree.paper,
    certree.export,
    certree.ensembles,
    certree.explain,
    certree.boolean,
]


# A block of commands, and what they print.
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Times, sizes and hashes of files, which differ between machines.
MEASURED = re.compile(
    r"(?<=in )[\d.]+ (ms|s|min)\b|(?<=\()[\d.]+ [kMG]?B(?=\))|(?<=file: )[0-9a-f]{64}\b"
)


def name_of(page):
    """A page as it is called among all others."""
    return page.relative_to(PROJECT).with_suffix("").as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
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


def run_commands(text):
    """Run the lines of a block that begin with a dollar sign, and return them with what is printed.

    They run in this process, as a new one takes seconds to start.
    """
    lines = []
    for line in [line for line in text.splitlines() if line.startswith("$ ")]:
        name, *arguments = shlex.split(line[2:])
        assert name == "certree"
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # commands print warnings
            done = CliRunner().invoke(app, arguments, env={"COLUMNS": "100", "NO_COLOR": "1"})
        lines.append(f"{line}\n{done.output}")
    return "".join(lines)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if CONSOLE.search(page.read_text("utf-8"))], ids=name_of
)
def test_commands_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        exec(compile(block.group(1), str(page), "exec"), namespace)
    for block in CONSOLE.findall(text):
        assert MEASURED.sub("", run_commands(block)) == MEASURED.sub("", block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def anchors_of(page):
    """What the headings of a page are called in links to them."""
    headings = HEADING.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_headings_of_a_page_lead_there(page):
    for target, anchor in ANCHOR.findall(page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        linked = page.parent / target if target else page
        assert anchor in anchors_of(linked), (target, anchor)


def names_on_pages():
    """Every word of the code on all pages."""
    words = set()
    for page in PAGES:
        for block, inline in CODE.findall(page.read_text(encoding="utf-8")):
            words.update(re.findall(r"\w+", block or inline))
    return words


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_has_a_place_in_the_documentation(package):
    shown = names_on_pages()
    missing = [
        name
        for name in package.__all__
        if name not in shown and "Examples\n" not in (getattr(package, name).__doc__ or "")
    ]
    assert not missing


def named_by_the_sources():
    """Functions, and files with tests, that the page of the sources names."""
    text = (PROJECT / "docs" / "theory" / "sources.md").read_text(encoding="utf-8")
    return set(re.findall(r"`(certree(?:\.\w+)+)`", text)), set(
        re.findall(r"`([\w/]+\.py)::(\w+)`", text)
    )


def is_there(name):
    """Whether a dotted name is that of something in a module."""
    module, _, attribute = name.rpartition(".")
    return hasattr(import_module(module), attribute)


def test_what_the_page_of_the_sources_names_exists():
    functions, tests = named_by_the_sources()
    assert len(functions) > 30
    assert len(tests) > 50
    assert not [name for name in functions if not is_there(name)]
    missing = [
        (file, test)
        for file, test in tests
        if f"\ndef {test}(" not in (PROJECT / "tests" / file).read_text(encoding="utf-8")
    ]
    assert not missing


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_examples_in_docstrings_print_what_they_say(module):
    name = ".".join(module.relative_to(SOURCE).with_suffix("").parts)
    outcome = doctest.testmod(import_module(name))
    assert outcome.attempted
    assert not outcome.failed


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.name)
def test_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    with mpl.rc_context():
        runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_a_script_of_the_gallery_runs_and_draws(script, tmp_path, monkeypatch):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from certree.show.picture import Picture

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")  # what other tests have left
    try:
        names = runpy.run_path(str(script))
        drawn = [*map(plt.figure, plt.get_fignums())]
        drawn += [one for one in names.values() if isinstance(one, Picture)]
        assert drawn
        assert all(ax.has_data() or ax.patches or ax.lines for one in drawn for ax in one.axes)
    finally:
        plt.close("all")


def test_what_made_a_file_of_results_is_written_down(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT))
    from benchmarks import results

    runs = tmp_path / "runs.csv"
    runs.write_text("file,date,versions\n")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    fits = [{"table": "spam", "method": "tree", "error": 0.25}]
    results.store("fits", fits)
    assert results.read_fits("fits") == fits
    header, line = runs.read_text().splitlines()
    assert line.startswith("fits.csv,")
    assert f"numpy {np.__version__}" in line
    runs.write_text(f"{header}\nfits.csv,1999-01-01,numpy 0\n")
    results.store("fits", fits * 2, added=True)
    assert "fits.csv,1999-01-01; " in runs.read_text()
    assert "numpy 0; numpy " in runs.read_text()
    results.store("fits", fits)
    assert "1999" not in runs.read_text()


def test_figures_on_pages_are_those_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT))
    from benchmarks.figures import FIGURES, MARKED, compute_figure, find_pages

    found = [
        (page, one[2], one[3])
        for page, path in find_pages().items()
        for one in MARKED.finditer(path.read_text(encoding="utf-8"))
    ]
    assert sorted(FIGURES) == sorted((page, name) for page, name, _ in found)
    stale = [one for one in found if compute_figure(*one[:2]) != one[2]]
    assert not stale, "make figures writes them anew"


def test_no_figure_in_a_sentence_begins_a_line(monkeypatch):
    """A comment there ends the paragraph, and what follows it is no Markdown."""
    monkeypatch.syspath_prepend(str(PROJECT))
    from benchmarks.figures import find_pages

    begins = re.compile(r"^ *<!-- figure[^>]*-->.", re.MULTILINE)
    texts = {page: path.read_text(encoding="utf-8") for page, path in find_pages().items()}
    assert not {page: begins.findall(text) for page, text in texts.items() if begins.search(text)}
