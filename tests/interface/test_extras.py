"""Without any extra certree learns, predicts and keeps models; what needs one says which."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from certree.interface.extras import import_extra

EXTRAS = ("pyarrow", "matplotlib", "typer", "rich", "pandas", "polars", "onnx", "skl2onnx", "skops")
BLOCK = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
import warnings
import numpy as np
import certree
warnings.filterwarnings("ignore", category=certree.RepeatedRowsWarning)  # toys repeat
"""


def alone(code, *arguments):
    """Run code where no extra is installed."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCK + textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_models_are_fitted_explained_and_kept_without_extras(tmp_path):
    done = alone(
        """
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        y = (X[:, 0] + 0.3 * rng.normal(size=200) > 0).astype(int)
        town = rng.choice(["Athens", "Bern", None], 200)
        mixed = np.column_stack([X.astype(object), town])
        for model, rows in (
            (certree.PACBayesTreeClassifier(random_state=0), X),
            (certree.PACBayesTreeClassifier(categorical_features=[3], random_state=0), mixed),
            (certree.PACBayesTreeRegressor(categorical_features=[3], random_state=0), mixed),
            (certree.NaiveBayesClassifier(categorical_features=[3]), mixed),
        ):
            model.fit(rows, y)
            assert str(model.explain(rows[:1]))
            certree.save(model, sys.argv[1])
            again = certree.load(sys.argv[1]).predict(rows)
            np.testing.assert_array_equal(again, model.predict(rows))
        assert {*model.categories_.names[3]} == {"Athens", "Bern"}
        from certree.files import tables
        assert tables.load("iris").X.shape == (150, 4)
        """,
        str(tmp_path / "model"),
    )
    assert done.returncode == 0, done.stderr


# Code, the package that it needs, and the extra that has it.
NEEDS = [
    ("from certree.tables.reader import read; read('table.csv')", "pyarrow", "files"),
    (
        "from certree.files.tables import load; open('own.parquet', 'w').close(); load('own', '.')",
        "pyarrow",
        "files",
    ),
    (
        "from certree.show import plot_tree\n"
        "plot_tree(certree.PrunedTreeClassifier().fit([[0], [1]] * 9, [0, 1] * 9))",
        "matplotlib",
        "plot",
    ),
    (
        "certree.PrunedTreeClassifier().fit([[0], [1]] * 9, [0, 1] * 9).rules().to_frame()",
        "pandas",
        "frames",
    ),
    ("from certree.paper import plot_table2; plot_table2([])", "matplotlib", "plot"),
    (
        "from certree.show import report\n"
        "X, y = [[0], [1]] * 9, [0, 1] * 9\n"
        "report(certree.PrunedTreeClassifier().fit(X, y), X, y, 'page.html')",
        "matplotlib",
        "plot",
    ),
    (
        "from sklearn.pipeline import make_pipeline\n"
        "model = certree.PrunedTreeClassifier().fit([[0], [1]] * 9, [0, 1] * 9)\n"
        "certree.save(make_pipeline(model), 'pipeline')",
        "skops",
        "pipelines",
    ),
    ("from certree.paper import plot_figure2; plot_figure2([])", "matplotlib", "plot"),
    ("from certree.paper import plot_rates; plot_rates([])", "matplotlib", "plot"),
    (
        "certree.PrunedTreeClassifier().fit([[0], [1]] * 9, [0, 1] * 9).to_onnx()",
        "onnx",
        "onnx",
    ),
    (
        "from certree.export import register_converters; register_converters()",
        "skl2onnx",
        "onnx",
    ),
]


@pytest.mark.slow
def test_what_needs_an_extra_says_which(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # One process runs them all, as each takes a second to start.
    done = alone(
        """
        import json
        for code in json.loads(sys.argv[1]):
            try:
                exec(code, {"certree": certree})
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
            else:
                print("no error")
        """,
        json.dumps([code for code, *_ in NEEDS]),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f'ImportError: {package} is not installed: pip install "certree[{extra}]"'
        for _, package, extra in NEEDS
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", ["PACBayesTreeClassifier(", "BoostedTreesClassifier(max_iter=3, "]
)
def test_progress_without_rich_is_told_by_lines(model):
    done = alone(f"certree.{model}verbose=1).fit([[0], [1]] * 9, [0, 1] * 9)")
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.strip().splitlines()
    assert 0 < len(lines) <= 11
    assert all(line.startswith(model.partition("(")[0] + ": ") for line in lines)
    if model.startswith("Boosted"):
        assert re.fullmatch(
            r"BoostedTreesClassifier: 3 of 3, loss 0\.\d+, finished in .*s", lines[-1]
        )


def test_the_command_without_its_extra_says_so_in_one_line():
    done = alone("from certree.__main__ import main; main()")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == 'error: typer is not installed: pip install "certree[cli]"\n'


def test_the_command_starts_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "certree", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "table2" in done.stdout


def test_a_module_that_fails_for_another_reason_is_not_said_to_be_missing(tmp_path, monkeypatch):
    Path(tmp_path / "half_a_package.py").write_text("import no_such_module_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        import_extra("half_a_package", "files")
