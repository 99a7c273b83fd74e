"""The front door imports a name when it is used, and every reader sees it as if it were there."""

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

FRONT = Path(certree.__file__)
# What takes long to import and is needed by some programs alone.
HEAVY = ("matplotlib", "typer", "pandas", "polars", "pyarrow", "dask", "onnx", "skl2onnx", "joblib",
         "scipy", "sklearn", "IPython")  # fmt: skip


def printed(code):
    """What code prints in an interpreter of its own."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def seen_by_checkers():
    """Where type checkers find every name of the front door."""
    blocks = [node for node in ast.parse(FRONT.read_text()).body if isinstance(node, ast.If)]
    imports = [line for block in blocks for line in block.body]
    return {alias.name: line.module for line in imports for alias in line.names}


def test_names_are_those_that_type_checkers_see():
    names = seen_by_checkers()
    rooms = {name for name, module in names.items() if module == "certree"}
    assert set(names) - rooms == set(certree.__all__)
    for name, module in names.items():
        if name in rooms:
            assert getattr(certree, name) is import_module(f"certree.{name}")
        else:
            assert getattr(certree, name) is getattr(import_module(module), name), name


def test_every_room_is_listed():
    folder = FRONT.parent
    rooms = {path.stem for path in folder.iterdir() if path.suffix in (".py", "")}
    rooms -= {"__init__", "__main__", "__pycache__", "cli"}  # programs are none
    assert rooms == {name for name, module in seen_by_checkers().items() if module == "certree"}
    shown = printed("import certree; print(*dir(certree))")
    assert rooms | set(certree.__all__) <= set(shown)


@pytest.mark.parametrize("room", ["certificates", "explain", "show"])
def test_a_room_is_there_after_import_certree(room):
    assert printed(f"import certree; print(certree.{room}.__name__)") == [f"certree.{room}"]


def test_names_are_there_whichever_is_asked_for_first():
    names = sorted(seen_by_checkers(), reverse=True)
    asked = f"import certree\nfor name in {names}: print(getattr(certree, name).__name__)"
    assert printed(asked) == [getattr(certree, name).__name__ for name in names]


def test_import_certree_loads_nothing_heavy():
    loaded = printed("import sys, certree; print(*sys.modules)")
    assert "certree" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {*HEAVY, "numpy"}
    assert [name for name in loaded if name.startswith("certree.")] == []


def test_all_names_load_what_trees_of_scikit_learn_do_and_no_extra():
    # scikit-learn loads pandas where it is installed.
    trees = {*printed("import sys, sklearn.tree; print(*sys.modules)")}
    ours = {*printed("import sys\nfrom certree import *\nprint(*sys.modules)")}
    more = {name.partition(".")[0] for name in ours} - {name.partition(".")[0] for name in trees}
    assert "certree" in more
    assert not more & set(HEAVY)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("Tree", "certree.grow"),
        ("vote", "certree.certificates"),
        ("certify", "certree.estimators"),
        ("PACBayesTreeClassifier", "certree.ensembles"),
        ("BoostedTreesClassifier", "certree.files"),
        ("load", "certree.boolean"),
    ],
)
def test_a_name_loads_no_room_after_its_own(name, left_out):
    loaded = printed(f"import sys\nfrom certree import {name}\nprint(*sys.modules)")
    assert left_out not in loaded


def test_star_and_help_show_all_names():
    shown = printed("from certree import *\nprint(*globals())")
    assert set(certree.__all__) <= set(shown)
    text = pydoc.plain(pydoc.render_doc(certree))
    assert all(name in text for name in certree.__all__)


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="module 'certree' has no attribute 'PACBayesTree'"):
        _ = certree.PACBayesTree
    with pytest.raises(ImportError, match="cannot import name 'PACBayesTree' from 'certree'"):
        exec("from certree import PACBayesTree")


def test_a_pickle_is_read_where_nothing_is_imported_yet(tmp_path):
    X, y = np.array([[0.0], [1.0]] * 9), np.array([0, 1] * 9)
    model = certree.PrunedTreeClassifier(random_state=0).fit(X, y)
    place = tmp_path / "model.pickle"
    place.write_bytes(pickle.dumps(model))
    read = f"import pickle; print(*pickle.load(open({str(place)!r}, 'rb')).predict([[0.0], [1.0]]))"
    assert printed(read) == ["0", "1"]


def test_threads_may_ask_for_names_at_once():
    asked = """
from concurrent.futures import ThreadPoolExecutor
import certree
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda name: getattr(certree, name), certree.__all__ * 4))
print(all(one is getattr(certree, name) for one, name in zip(found, certree.__all__ * 4)))
"""
    assert printed(asked) == ["True"]
