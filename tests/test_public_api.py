"""certree imports a public name on first use; type checkers, `dir`, `help` and pickle see all names."""

import ast
import pickle
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import certree

INIT = Path(certree.__file__)
# Libraries that take long to import and that only some programs need.
HEAVY = ("matplotlib", "typer", "pandas", "polars", "pyarrow", "dask", "onnx", "skl2onnx", "joblib",
         "scipy", "sklearn", "IPython")  # fmt: skip


def run_code(code):
    """Run code in a new interpreter and return the words that it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def read_checker_imports():
    """Return the module of every public name, as the imports for type checkers state it."""
    blocks = [node for node in ast.parse(INIT.read_text()).body if isinstance(node, ast.If)]
    imports = [line for block in blocks for line in block.body]
    return {alias.name: line.module for line in imports for alias in line.names}


def test_names_are_those_that_type_checkers_see():
    names = read_checker_imports()
    packages = {name for name, module in names.items() if module == "certree"}
    assert set(names) - packages == set(certree.__all__)
    for name, module in names.items():
        if name in packages:
            assert getattr(certree, name) is import_module(f"certree.{name}")
        else:
            assert getattr(certree, name) is getattr(import_module(module), name), name


def test_every_package_is_listed():
    folder = INIT.parent
    packages = {path.stem for path in folder.iterdir() if path.suffix in (".py", "")}
    packages -= {"__init__", "__main__", "__pycache__", "cli"}  # the program is not public
    assert packages == {
        name for name, module in read_checker_imports().items() if module == "certree"
    }
    shown = run_code("import certree; print(*dir(certree))")
    assert packages | set(certree.__all__) <= set(shown)


@pytest.mark.slow
def test_packages_are_attributes_after_import_certree():
    # Each is of a higher layer than the one before, so that it is imported by its attribute alone.
    packages = ["certificates", "explain", "show"]
    printed = run_code(
        "import sys, certree\n"
        f"for name in {packages}:\n"
        "    print(f'certree.{name}' in sys.modules, getattr(certree, name).__name__)"
    )
    assert printed == [word for name in packages for word in ("False", f"certree.{name}")]


@pytest.mark.slow
def test_names_are_found_in_any_order():
    names = sorted(read_checker_imports(), reverse=True)
    code = f"import certree\nfor name in {names}: print(getattr(certree, name).__name__)"
    assert run_code(code) == [getattr(certree, name).__name__ for name in names]


def test_import_certree_loads_nothing_heavy():
    loaded = run_code("import sys, certree; print(*sys.modules)")
    assert "certree" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {*HEAVY, "numpy"}
    assert [name for name in loaded if name.startswith("certree.")] == []


@pytest.mark.slow
def test_all_names_load_no_more_libraries_than_trees_of_scikit_learn():
    # scikit-learn loads pandas where it is installed.
    trees = {*run_code("import sys, sklearn.tree; print(*sys.modules)")}
    ours = {*run_code("import sys\nfrom certree import *\nprint(*sys.modules)")}
    more = {name.partition(".")[0] for name in ours} - {name.partition(".")[0] for name in trees}
    assert "certree" in more
    assert not more & set(HEAVY)


@pytest.mark.slow
def test_a_name_loads_no_higher_layer():
    # One process imports all names, as each takes seconds to start: earlier names count, too.
    left_out = {
        "Tree": "certree.grow",
        "vote": "certree.certificates",
        "certify": "certree.estimators",
        "PACBayesTreeClassifier": "certree.ensembles",
        "BoostedTreesClassifier": "certree.files",
        "load": "certree.boolean",
    }
    printed = run_code(
        "import sys, certree\n"
        f"for name, module in {left_out}.items():\n"
        "    print(getattr(certree, name).__name__, module in sys.modules)"
    )
    assert printed == [word for name in left_out for word in (name, "False")]


@pytest.mark.slow
def test_star_and_help_show_all_names():
    shown = run_code("from certree import *\nprint(*globals())")
    assert set(certree.__all__) <= set(shown)
    text = pydoc.plain(pydoc.render_doc(certree))
    assert all(name in text for name in certree.__all__)


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="module 'certree' has no attribute 'PACBayesTree'"):
        _ = certree.PACBayesTree
    with pytest.raises(ImportError, match="cannot import name 'PACBayesTree' from 'certree'"):
        exec("from certree import PACBayesTree")


@pytest.mark.slow
def test_a_pickle_loads_before_certree_is_imported(tmp_path):
    X, y = np.array([[0.0], [1.0]] * 9), np.array([0, 1] * 9)
    model = certree.PrunedTreeClassifier(random_state=0).fit(X, y)
    place = tmp_path / "model.pickle"
    place.write_bytes(pickle.dumps(model))
    read = f"import pickle; print(*pickle.load(open({str(place)!r}, 'rb')).predict([[0.0], [1.0]]))"
    assert run_code(read) == ["0", "1"]


@pytest.mark.slow
def test_threads_may_import_names_at_once():
    code = """
from concurrent.futures import ThreadPoolExecutor
import certree
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda name: getattr(certree, name), certree.__all__ * 4))
print(all(value is getattr(certree, name) for value, name in zip(found, certree.__all__ * 4)))
"""
    assert run_code(code) == ["True"]
