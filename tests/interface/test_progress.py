"""Progress on standard error: bars in terminals, lines elsewhere."""

import subprocess
import sys

import numpy as np
import pytest

from certree import BoostedTreesClassifier, PACBayesTreeClassifier, TreeForestClassifier
from certree.interface import progress
from certree.interface.progress import hide_lines, show_progress


def run_steps(n, total, seconds_per_step, monkeypatch, capsys):
    """Advance n of `total` steps on a clock of its own, and return the lines that were written."""
    clock = iter(np.arange(10 * n + 10) * seconds_per_step)
    now = [0.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    with show_progress(True, total, "fit") as advance:
        for i in range(n):
            now[0] = next(clock) + seconds_per_step
            advance(1, f"loss {i}")
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(("n", "total", "n_lines"), [(1000, 1000, 10), (3, 3, 3), (153, 1000, 2)])
def test_about_ten_lines_are_written(n, total, n_lines, monkeypatch, capsys):
    lines = run_steps(n, total, 1e-3, monkeypatch, capsys)
    assert len(lines) == n_lines
    assert lines[-1].startswith(f"fit: {n} of {total}, loss {n - 1}, finished in ")
    assert all(line.endswith(" left") for line in lines[:-1])


def test_slow_steps_write_a_line_each_and_long_fits_few(monkeypatch, capsys):
    assert len(run_steps(5, 1000, 11.0, monkeypatch, capsys)) == 6
    assert 30 < len(run_steps(1000, 100_000, 11.0, monkeypatch, capsys)) < 70


def test_nothing_is_written_by_commands_or_without_verbose(capsys):
    with hide_lines(), show_progress(True, 2, "fit") as advance:
        advance(2)
    with show_progress(False, 2, "fit") as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesClassifier(max_iter=40, verbose=1, random_state=0),
        BoostedTreesClassifier(max_iter=400, early_stopping=True, verbose=1, random_state=0),
        TreeForestClassifier(n_estimators=20, verbose=1, random_state=0),
        PACBayesTreeClassifier(verbose=1, random_state=0),
    ],
    ids=["boosted", "stopped", "forest", "tree"],
)
def test_fits_write_plain_lines_to_a_file(model, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model.fit(X, X[:, 0] + rng.normal(size=300) > 0)
    out, err = capsys.readouterr()
    assert out == ""
    assert 1 <= err.count("\n") <= 25
    assert err.isascii()
    assert err.replace("\n", "").isprintable()
    assert all(line.startswith(f"{type(model).__name__}: ") for line in err.splitlines())


@pytest.mark.slow
def test_a_redirected_script_writes_lines(tmp_path):
    code = (
        "import certree\n"
        "certree.BoostedTreesClassifier(max_iter=5, verbose=1).fit([[0], [1]] * 9, [0, 1] * 9)\n"
    )
    with open(tmp_path / "log", "wb") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, stderr=log, check=True)
    lines = (tmp_path / "log").read_bytes().splitlines()
    assert lines[-1].startswith(b"BoostedTreesClassifier: 5 of 5, loss ")
