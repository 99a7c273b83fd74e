"""What is published: one version, tags, pins, and what people see who have no compiler."""

import importlib.metadata
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import certree

PROJECT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))


def test_the_version_stands_in_one_place_and_all_others_agree():
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    assert importlib.metadata.version("certree") == certree.__version__
    citation = (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {certree.__version__}\n" in citation
    entry = (PROJECT / "docs" / "project" / "cite.md").read_text(encoding="utf-8")
    assert f"  version = {{{certree.__version__}}}\n" in entry
    (year,) = re.findall(r"Copyright \(c\) (\d{4})", (PROJECT / "LICENSE").read_text("utf-8"))
    assert f"  year    = {{{year}}},\n" in entry


def test_classifiers_name_the_interpreters_that_workflows_try():
    told = PYPROJECT["project"]["classifiers"]
    assert "Typing :: Typed" in told
    assert (Path(certree.__file__).parent / "py.typed").exists()
    named = {one.rsplit(" ", 1)[1] for one in told if re.search(r":: 3\.\d+$", one)}
    tests = (PROJECT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert set(re.findall(r'"(3\.\d+)"', tests)) == named


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_say_what_has_run_and_call_what_is_there(workflow):
    text = workflow.read_text(encoding="utf-8")
    assert text.startswith("# No job of this file has ever run")
    targets = set(re.findall(r"run: make (\w+)", text))
    made = (PROJECT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", made, re.M) for target in targets)
    files = re.findall(r"python ([\w/]+\.py)", text)
    assert all((PROJECT / file).exists() for file in files)
    assert targets or files


def test_what_developers_install_is_pinned():
    text = (PROJECT / "developers.lock").read_text(encoding="utf-8")
    pins = {}
    for line in text.splitlines():
        pin = Requirement(line)
        pins.setdefault(pin.name.lower(), []).append(pin)
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *PYPROJECT["build-system"]["requires"]]
    for name in ("files", "frames", "plot", "cli", "onnx", "dev", "docs"):
        asked += extras[name]
    for requirement in map(Requirement, asked):
        if requirement.name == "certree":
            continue
        for pin in pins[requirement.name.lower()]:
            (version,) = pin.specifier
            assert version.operator == "=="
            assert requirement.specifier.contains(version.version), requirement


def test_make_bench_runs_what_there_is():
    made = (PROJECT / "Makefile").read_text(encoding="utf-8")
    (names,) = re.findall(r"^bench:.*\n\tfor name in ([\w ]+); do", made, re.M)
    missing = [one for one in names.split() if not (PROJECT / "benchmarks" / f"{one}.py").exists()]
    assert not missing


@pytest.mark.slow
def test_an_installed_certree_works():
    command = [sys.executable, str(PROJECT / "tests" / "smoke.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"certree {certree.__version__} works" in done.stdout


def released():
    return runpy.run_path(str(PROJECT / "release" / "check.py"))


def test_the_check_list_knows_what_is_done_and_what_nobody_here_knows():
    parts = ("of_version", "of_results", "of_facts")
    lines = {what: told for part in parts for told, what in released()[part]()}
    assert any(
        re.fullmatch(r"runs.csv has the versions of \d+ of \d+ files .*", one) for one in lines
    )
    assert lines["CITATION.cff has the same"] == "done"
    assert lines["[project.urls]: addresses of sources, pages and issues"] == "unknown"
    assert set(lines.values()) <= {"done", "open", "unknown"}


def test_the_check_list_sees_wheels_that_are_not_as_they_should_be(tmp_path):
    of_wheels = released()["of_wheels"]
    assert [told for told, _ in of_wheels(tmp_path)] == ["open"]
    files = {"certree/py.typed", "certree/_core.pyi", "certree/_core.abi3.so"}
    whole = tmp_path / "certree-1-cp312-abi3-manylinux_2_28_x86_64.whl"
    poor = tmp_path / "certree-1-cp312-abi3-linux_x86_64.whl"
    for wheel, names in ((whole, files), (poor, {"certree/py.typed"})):
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in names:
                archive.writestr(name, "")
    told = [(state, what.split(":")[0]) for state, what in of_wheels(tmp_path)]
    assert [state for state, name in told if name == whole.name] == ["done"] * 4
    assert [state for state, name in told if name == poor.name] == ["done", "open", "open", "open"]
    poor.unlink()
    whole.write_bytes(whole.read_bytes()[:-22] + b"\0" * 5 * 2**19 + whole.read_bytes()[-22:])
    assert next(of_wheels(tmp_path))[0] == "open"


def test_who_has_no_compiler_is_told_what_is_missing(tmp_path):
    cmake, ninja = (
        shutil.which(name, path=Path(sys.executable).parent) for name in ("cmake", "ninja")
    )
    if not cmake or not ninja:
        pytest.skip("cmake and ninja are not beside this Python")
    command = [cmake, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", "-S", PROJECT, "-B", tmp_path]
    nothing = {"PATH": str(tmp_path / "nothing")}
    done = subprocess.run(command, env=nothing, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    told = " ".join(done.stderr.split())
    assert "no C++ compiler was found. Install one that knows C++20" in told
