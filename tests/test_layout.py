"""The layout is the flow: a stage imports only earlier stages, and names say what is inside."""

import ast
import re
from pathlib import Path

import pytest

import certree

SOURCE = Path(certree.__file__).parent
# Every module, in the order of the flow.
ORDER = [
    "_core",
    "columns",
    "categories",
    "bounds",
    "rows",
    "tree",
    "grow.stopping",
    "grow.cart",
    "grow.dyadic",
    "grow.kd",
    "grow.sklearn_tree",
    "grow.partition",
    "stats",
    "heldout",
    "weights",
    "prunings",
    "adaptive",
    "votes",
    "divergence",
    "moments",
    "priors",
    "labelled",
    "certificate",
    "oracle",
    "progress",
    "tune",
    "explain",
    "selective",
    "deployment",
    "estimator",
    "certified",
    "classifier",
    "regressor",
    "decorated",
    "densities",
    "powers",
    "naive_bayes",
    "output",
    "stored_tree",
    "stored_naive_bayes",
    "storage",
    "tables",
    "experiments.protocol",
    "experiments.table2",
    "experiments.figure2",
    "experiments.rates",
    "plot",
    "cli",
]


def module_name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "certree":
            inner = node.module.removeprefix("certree").lstrip(".")
            for alias in node.names:
                longer = f"{inner}.{alias.name}".lstrip(".")
                yield longer if longer in ORDER else inner
        if isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("certree.")
                for alias in node.names
                if alias.name.startswith("certree.")
            )


def test_every_module_has_its_place():
    assert set(MODULES) | {"_core"} == set(ORDER)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_only_what_comes_before_it(name):
    allowed = set(ORDER[: ORDER.index(name)])
    # Types alone may look ahead.
    later = {"plot": {"estimator"}}.get(name, set())
    assert set(imported(MODULES[name])) <= allowed | later


def test_names_say_something():
    banned = re.compile(
        r"(^|_|\.)(utils?|helpers?|managers?|handler|info|base|impl|common|misc)($|_|\.)"
    )
    for name, path in MODULES.items():
        assert not banned.search(name), name
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                assert not banned.search(re.sub(r"(?<!^)(?=[A-Z])", "_", node.name).lower()), (
                    node.name
                )


def test_public_names_are_sorted_and_documented():
    assert certree.__all__ == sorted(certree.__all__)
    for name in certree.__all__:
        assert (getattr(certree, name).__doc__ or "").strip(), name


def test_the_package_does_not_print():
    for name, path in MODULES.items():
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"print", "exit", "quit"}, name
