"""Check the layers of the package: no module imports a higher one, names are specific."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import certree
import certree.boolean
import certree.estimators.naive_bayes
import certree.paper
import certree.show
from certree.certificates.model_selection import PILOT
from certree.rows.training import RowInputMixin
from run_length import choose_seeds, select_drawn, split_cases

SOURCE = Path(certree.__file__).parent
# Every package and top-level module, lowest layer first.
LAYERS = [
    "_core",
    "interface",
    "tables",
    "rows",
    "tree",
    "grow",
    "out_of_core",
    "stats",
    "weights",
    "prunings",
    "votes",
    "certificates",
    "export",
    "explain",
    "estimators",
    "ensembles",
    "boolean",
    "files",
    "show",
    "paper",
    "cli",
    "__main__",
]
# A grower of forests, and the estimators that are forests.
SHARED_NAMES = {"forest.py"}
TESTS = Path(__file__).parent
# Test files that belong to no single module, and what they test.
TESTS_OF_NO_MODULE = {
    "cli/test_bank_path.py": "the commands of a bank, one after another",
    "out_of_core/test_faults.py": "faults of workers and clients in all fits on clusters",
    "ensembles/test_groups.py": "groups of rows in the rounds and bags of all ensembles",
    "ensembles/test_ranks.py": "several ranks that make the rounds of one process",
    "ensembles/test_relative_weights.py": "weights of rows in all ensembles",
    "test_categorical_estimators.py": "the parameters of categorical growth in all estimators",
    "test_core.py": "input that the extension module refuses",
    "test_deploy.py": "the programs of the page on deployment",
    "test_docs.py": "the documentation",
    "test_ensembles_of_sklearn.py": "estimators inside scikit-learn's ensembles",
    "test_fuzz.py": "the fuzzer, which calls every estimator",
    "test_hostile.py": "invalid values of every parameter",
    "test_interrupt.py": "every loop of the core",
    "test_keywords.py": "every public method with every argument by keyword",
    "test_layout.py": "the layers",
    "test_metadata_routing.py": "estimators inside scikit-learn's metadata routing",
    "test_mixed_table.py": "one table of dates, texts and decimals, along every way of a model",
    "test_missing.py": "missing values, from growth to prediction",
    "test_unseen_categories.py": "categories that a node has not seen, from growth to exports",
    "test_out_of_core_lines.py": "the count of lines that only out-of-core tests reach",
    "test_release.py": "the files of a release",
    "test_public_api.py": "the public names, which are imported on first use",
    "test_regressor.py": "scikit-learn's contract for all regressors",
    "test_sklearn.py": "scikit-learn's contract for all classifiers",
    "test_tabarena.py": "the wrapper for the TabArena benchmark",
    "test_time_order.py": "fits and certificates of rows in time order, of every kind of estimator",
    "test_words.py": "the words of commands and estimators",
}
# Parameters of growers that other libraries use as well, so that their names occur in many files.
COMMON_PARAMETERS = {
    "axis",
    "box",
    "exponent",
    "estimator",
    "criterion",
    "max_features",
    "max_leaf_nodes",
    "min_samples_leaf",
    "min_samples_split",
}


def module_name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}


@cache  # most tests read all modules
def parse(path):
    """Return the syntax tree of a file, which nobody changes."""
    return ast.parse(path.read_text())


def find_imports(path):
    """Yield the certree modules that a file imports, except imports for type checkers only."""
    tree = parse(path)
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{name}" for name in names]
            names = [name if is_certree_module(name) else node.module for name in inner]
        yield from (name.removeprefix("certree.") for name in names if is_certree_module(name))


def find_imported_layers(path):
    return {inner.split(".")[0] for inner in find_imports(path)}


def is_certree_module(name):
    inner = name.removeprefix("certree.")
    return name.startswith("certree.") and (inner in MODULES or inner in LAYERS)


def test_every_module_belongs_to_a_layer():
    assert {name.split(".")[0] for name in MODULES} | {"_core"} == set(LAYERS)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_module_imports_a_higher_layer(name):
    layer = name.split(".")[0]
    allowed = set(LAYERS[: LAYERS.index(layer) + 1])
    assert find_imported_layers(MODULES[name]) <= allowed


def is_named_after_a_module(path, package):
    """Return whether a test file has the name of a module in `package`, or of the package itself."""
    modules = [
        module.stem for module in (SOURCE / package).glob("*.py") if module.stem != "__init__"
    ]
    names = [*modules, package.name] if package.name else modules
    subject = path.stem.removeprefix("test_")
    return any(subject == name or subject.startswith(f"{name}_") for name in names)


def test_test_files_stand_in_the_package_that_they_test():
    without_package = {"browser", "fuzz", "validity"}
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    files = [path for path in files if path.parts[0] not in without_package]
    assert len(files) > 60
    others = {str(path) for path in files if not is_named_after_a_module(path, path.parent)}
    assert others == set(TESTS_OF_NO_MODULE)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_the_thread_sanitizer_runs_every_file_with_tests_of_threads():
    plan = subprocess.run(
        ["make", "-n", "sanitize"], cwd=TESTS.parent, capture_output=True, text=True, check=True
    )
    listed = set(re.findall(r"(?<!=)tests/\S*test_\w+\.py", plan.stdout))
    marked = [
        path for path in TESTS.rglob("test_*.py") if re.search(r"mark\.threads", path.read_text())
    ]
    assert listed == {str(path.relative_to(TESTS.parent)) for path in marked}


def test_each_test_belongs_to_make_test_or_to_the_rest():
    names = [*(f"tests/a.py::test_a[{i}]" for i in range(9)), "tests/a.py::test_b", "tests/a.py::c"]
    names += ["tests/validity/b.py::test_d"]
    items = [
        SimpleNamespace(
            nodeid=name,
            path=TESTS.parent / name.partition("::")[0],
            get_closest_marker=lambda _, name=name: name.endswith("c") or None,
        )
        for name in names
    ]
    few, others = ([item.nodeid for item in part] for part in split_cases(items))
    assert sorted([*few, *others]) == sorted(names)
    assert [name for name in few if "[" not in name] == ["tests/a.py::test_b"]
    assert len(few) == 4
    assert few == [item.nodeid for item in split_cases(items[::-1])[0]][::-1]


def test_long_runs_have_the_tests_that_draw():
    def drawn(): ...

    drawn.hypothesis = None
    asks, knows_nothing = SimpleNamespace(choose_seeds=choose_seeds), SimpleNamespace(LONG="a text")
    items = [
        SimpleNamespace(path=TESTS / folder / "test_a.py", obj=obj, module=module)
        for folder in ("grow", "validity")
        for obj in (drawn, None)
        for module in (asks, knows_nothing)
    ]
    kept, dropped = select_drawn(items)
    assert dropped == [items[3]]
    assert kept == [item for item in items if item is not items[3]]


def test_imports_have_no_cycles():
    graph = {name: set(find_imports(path)) & set(MODULES) for name, path in MODULES.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


def test_names_are_specific():
    banned = re.compile(
        r"(^|_|\.)(utils?|helpers?|managers?|handler|info|base|impl|common|misc)($|_|\.)"
    )
    for name, path in MODULES.items():
        assert not banned.search(name), name
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef):
                assert not banned.search(re.sub(r"(?<!^)(?=[A-Z])", "_", node.name).lower()), (
                    node.name
                )


def find_repeats(names):
    return {name for name, count in Counter(names).items() if count > 1}


def test_file_names_and_class_names_are_unique():
    files = [path.name for path in MODULES.values()]
    assert find_repeats(files) <= SHARED_NAMES
    nodes = [node for path in MODULES.values() for node in ast.walk(parse(path))]
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    assert not find_repeats(name for name in classes if not name.startswith("_"))


def test_only_the_commands_of_the_paper_import_the_paper():
    importing = {name for name, path in MODULES.items() if "paper" in find_imported_layers(path)}
    assert {name for name in importing if not name.startswith("paper.")} == {"cli.paper_commands"}


def test_files_name_no_model_and_no_private_attribute():
    packages = (certree.estimators, certree.estimators.naive_bayes, certree.ensembles)
    models = {
        name
        for package in packages
        for name in package.__all__
        if issubclass(getattr(package, name), RowInputMixin)
    }
    for name, path in MODULES.items():
        nodes = [*ast.walk(parse(path))] if name.startswith("files.") else []
        attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
        private = {ast.unparse(node) for node in attributes if re.match("_[^_]", node.attr)}
        assert all(expression.startswith("self.") for expression in private), name
        variables = {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not models & (variables | {node.attr for node in attributes}), name


def test_no_module_imports_a_private_name():
    for name, path in MODULES.items():
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certree."):
                assert not [a.name for a in node.names if a.name.startswith("_")], name


PACKAGES = [certree, *(getattr(certree, name) for name in LAYERS[1:-2])]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_public_names_are_documented(package):
    for name in getattr(package, "__all__", []):
        assert (getattr(package, name).__doc__ or "").strip(), name


def find_constructors():
    """Return every public class with constructor parameters."""
    packages = [certree, certree.prunings, certree.grow]
    found = {getattr(package, name) for package in packages for name in package.__all__}
    classes = [kind for kind in found if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]
    return [kind for kind in classes if "__init__" in vars(kind)]


@pytest.mark.parametrize("kind", sorted(find_constructors(), key=lambda kind: kind.__name__))
def test_all_parameters_are_documented_in_their_order(kind):
    parameters = [name for name in inspect.signature(kind.__init__).parameters if name != "self"]
    documented = re.findall(r"^(\w+) : ", inspect.getdoc(kind), re.M)
    assert [name for name in documented if name in parameters] == parameters


@pytest.mark.parametrize("kind", sorted(find_constructors(), key=lambda kind: kind.__name__))
def test_documented_defaults_are_those_of_the_constructor(kind):
    parameters = inspect.signature(kind.__init__).parameters
    documented = re.findall(r"^(\w+) : .*default=(.+)$", inspect.getdoc(kind), re.M)
    for name, default in documented:
        assert parameters[name].default == ast.literal_eval(default), name


def find_copied_descriptions():
    """Return the module and the dotted name of every object whose docstring has names in braces."""
    names = re.compile(r"^ +\{\w[\w, ]*\}(?: \{\w[\w, ]*\})*$", re.MULTILINE)
    found = []

    def search(module, node, path):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                inner = [*path, child.name]
                if names.search(ast.get_docstring(child, clean=False) or ""):
                    found.append((module, ".".join(inner)))
                search(module, child, inner)

    for module, file in MODULES.items():
        search(f"certree.{module}", parse(file), [])
    return found


@pytest.mark.parametrize(("module", "name"), find_copied_descriptions())
def test_copied_descriptions_are_complete_and_in_order(module, name):
    documented = attrgetter(name)(import_module(module))
    parameters = [name for name in inspect.signature(documented).parameters if name != "self"]
    text = inspect.getdoc(documented).split("Parameters\n----------\n")[1].split("\n\n")[0]
    headings = re.findall(r"^(\w[\w, ]*) : ", text, re.M)
    assert [name for heading in headings for name in heading.split(", ")] == parameters
    assert "\n{" not in inspect.getdoc(documented)


@pytest.mark.slow
def test_few_files_name_a_parameter_of_growth():
    growers = (certree.Cart, certree.KD, certree.Dyadic, certree.Grid)
    owners = {Path(inspect.getfile(kind)): read_parameters(kind) for kind in growers}
    # Experiments and the command line call growers; parameter_aliases holds names of other libraries.
    callers = ("paper", "cli", "interface.parameter_aliases")
    paths = [path for name, path in MODULES.items() if not name.startswith(callers)]
    sources = {path: remove_docstrings(path.read_text()) for path in paths}
    for parameter in set().union(*owners.values()) - COMMON_PARAMETERS:
        naming = {path for path, text in sources.items() if re.search(rf"\b{parameter}\b", text)}
        others = {path.name for path in naming if parameter not in owners.get(path, ())}
        # Boosted trees are constructed in three files: plain, certified, and those that rank. Bins
        # are made for training samples in memory, and gathered out of core.
        assert len(others) <= 4, (parameter, others)


def read_parameters(grower):
    return set(inspect.signature(grower.__init__).parameters) - {"self"}


def remove_docstrings(text):
    """Return the code of a file without its docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def test_functions_fit_a_screen():
    for name, path in MODULES.items():
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.FunctionDef):
                lines = node.end_lineno - node.body[0].lineno + 1
                if ast.get_docstring(node):
                    lines = node.end_lineno - node.body[0].end_lineno
                # The round loop of boosting, one step in each line, has 42.
                assert lines <= 42, (name, node.name)


def test_the_package_does_not_print():
    for name, path in MODULES.items():
        calls = {
            node.func.id
            for node in ast.walk(parse(path))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"print", "exit", "quit"}, name


class RowTrace:
    """Record the packages whose functions receive a table of rows, or get one back from a call.

    Set an instance as Python's profile function. A table is an array of `n_features` columns, or an
    object with such an array as attribute `X`.
    """

    def __init__(self, n_features):
        self.n_features, self.packages = n_features, []

    def __call__(self, frame, event, argument):
        if event == "call" and is_certree_frame(frame):
            arguments = [frame.f_locals.get(name) for name in frame.f_code.co_varnames]
            self.record(frame, arguments)
        elif event == "return" and is_certree_frame(frame):
            results = argument if isinstance(argument, tuple) else (argument,)
            caller = frame.f_back
            while caller is not None and not is_certree_frame(caller):
                caller = caller.f_back
            self.record(caller, results)

    def record(self, frame, values):
        if frame is None or not any(map(self.holds_rows, values)):
            return
        package = module_name(Path(frame.f_code.co_filename)).split(".")[0]
        self.packages += [package] if self.packages[-1:] != [package] else []

    def holds_rows(self, value):
        table = getattr(value, "X", value)
        return (
            isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] == self.n_features
        )


def is_certree_frame(frame):
    """Whether a frame runs code of certree, other than a wrapper that passes on what `fit` gets."""
    code = frame.f_code
    return code.co_filename.startswith(f"{SOURCE}/") and code.co_name != "fit_without_aliases"


def trace_rows(task, n_features):
    """Run `task` and return the names of the packages that its rows passed, in order."""
    trace = RowTrace(n_features)
    sys.setprofile(trace)
    try:
        task()
    finally:
        sys.setprofile(None)
    return trace.packages


def count_climbs(packages):
    """Return how often rows went from a package to one of a higher layer."""
    return sum(LAYERS.index(a) < LAYERS.index(b) for a, b in pairwise(packages))


@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("PACBayesTreeClassifier", "estimators rows estimators rows grow tree"),
        (
            "CertifiedTreeClassifier",
            "estimators rows estimators rows grow tree rows estimators rows grow tree",
        ),
    ],
)
def test_rows_pass_from_the_estimator_to_growth_and_end_in_leaves(name, packages):
    # Rows of a certified fit's pilot pass twice; in between the fit searches them for near copies.
    X = np.random.default_rng(0).normal(size=(300, 7))
    y = (X[:, 0] > 0).astype(int)
    model = getattr(certree, name)(random_state=0)
    assert trace_rows(lambda: model.fit(X, y), 7) == packages.split()
    # The wrapper that recognises Dask collections runs before the method.
    assert trace_rows(lambda: model.predict_proba(X), 7) == [
        "out_of_core",
        "rows",
        "estimators",
        "rows",
        "estimators",
        "tree",
    ]


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        (certree.PACBayesTreeClassifier(random_state=0), 2),
        (certree.PACBayesTreeRegressor(random_state=0), 2),
        (certree.PrunedTreeClassifier(random_state=0), 2),
        (certree.CertifiedTreeClassifier(random_state=0), 4),
        (certree.CertifiedTreeRegressor(random_state=0), 2),
        (certree.CertifiedForestClassifier(20, random_state=0, n_jobs=1), 4),
    ],
)
def test_rows_rarely_return_to_a_higher_layer(model, limit):
    X = np.random.default_rng(0).normal(size=(600, 7))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    table = np.where(X > 1.5, np.nan, X)
    weight = np.random.default_rng(1).integers(0, 3, 600)
    for rows, options in ((table, {"sample_weight": weight}), (X, {})):
        packages = trace_rows(lambda r=rows, o=options: model.fit(r, y, **o), 7)
        assert count_climbs(packages) <= limit
    if hasattr(model, "train_size_"):
        assert model.train_size_ != PILOT  # the fit split the rows again after the pilot
