"""The layout is the flow: a room imports only rooms before it, and names say what is inside."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import certree
import certree.boolean
import certree.estimators.naive_bayes
import certree.paper
import certree.show
from certree.certificates.model_selection import PILOT
from certree.ensembles.boosting import BoostedTrees
from certree.ensembles.forest import Forest
from certree.rows.training import RowInputMixin

SOURCE = Path(certree.__file__).parent
# Every room, in the order of the flow.
ROOMS = [
    "_core",
    "interface",
    "rows",
    "tree",
    "grow",
    "parts",
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
# Files of tests that no one module answers for, and why.
TESTS_OF_NO_MODULE = {
    "ensembles/test_groups.py": "groups of rows in the rounds and bags of all ensembles",
    "ensembles/test_relative_weights.py": "weights of rows in all ensembles",
    "test_categorical_estimators.py": "a switch of growth on its way through all estimators",
    "test_core.py": "what the extension itself refuses, of all rooms",
    "test_docs.py": "the documentation",
    "test_ensembles_of_sklearn.py": "estimators inside scikit-learn's ensembles",
    "test_front_door.py": "how names are found that are imported when they are used",
    "test_fuzz.py": "the fuzzer, which calls everything",
    "test_hostile.py": "what every parameter refuses",
    "test_interrupt.py": "every loop of the core",
    "test_keywords.py": "every argument by keyword, of all that is public",
    "test_layout.py": "the layout",
    "test_metadata_routing.py": "estimators inside what scikit-learn routes weights through",
    "test_missing.py": "rows that lack values, from growth to prediction",
    "test_release.py": "what is published",
    "test_regressor.py": "scikit-learn's contract, by all regressors",
    "test_sklearn.py": "scikit-learn's contract, by all classifiers",
    "test_words.py": "what commands and estimators say",
}
# Words of other libraries too, which say nothing of where a switch of growth is named.
EVERYDAY = {
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


def imported(path):
    """Modules of the package that a file imports, those for types alone left out."""
    tree = ast.parse(path.read_text())
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
            names = [name if leads_to(name) else node.module for name in inner]
        yield from (name.removeprefix("certree.") for name in names if leads_to(name))


def rooms_below(path):
    return {inner.split(".")[0] for inner in imported(path)}


def leads_to(name):
    inner = name.removeprefix("certree.")
    return name.startswith("certree.") and (inner in MODULES or inner in ROOMS)


def test_every_module_is_in_a_room():
    assert {name.split(".")[0] for name in MODULES} | {"_core"} == set(ROOMS)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_only_rooms_before_its_own(name):
    room = name.split(".")[0]
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    assert rooms_below(MODULES[name]) <= allowed


def is_a_test_of(path, room):
    """Whether a file of tests is named after a module of its room, or after all of the room."""
    modules = [one.stem for one in (SOURCE / room).glob("*.py") if one.stem != "__init__"]
    names = [*modules, room.name] if room.name else modules
    about = path.stem.removeprefix("test_")
    return any(about == name or about.startswith(f"{name}_") for name in names)


def test_tests_lie_in_the_rooms_of_what_they_test():
    # Programs, simulations and pages are not rooms of the package.
    apart = {"browser", "fuzz", "validity"}
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    files = [path for path in files if path.parts[0] not in apart]
    assert len(files) > 60
    homeless = {str(path) for path in files if not is_a_test_of(path, path.parent)}
    assert homeless == set(TESTS_OF_NO_MODULE)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_the_thread_sanitizer_is_given_every_file_with_tests_of_threads():
    plan = subprocess.run(
        ["make", "-n", "sanitize"], cwd=TESTS.parent, capture_output=True, text=True, check=True
    )
    given = set(re.findall(r"tests/\S*test_\w+\.py", plan.stdout))
    marked = [
        path for path in TESTS.rglob("test_*.py") if re.search(r"mark\.threads", path.read_text())
    ]
    assert given == {str(path.relative_to(TESTS.parent)) for path in marked}


def test_no_imports_go_round_in_a_circle():
    graph = {name: set(imported(path)) & set(MODULES) for name, path in MODULES.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


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


def occurring_twice(names):
    return {name for name, times in Counter(names).items() if times > 1}


def test_a_file_and_a_class_have_a_name_of_their_own():
    files = [path.name for path in MODULES.values()]
    assert occurring_twice(files) <= SHARED_NAMES
    nodes = [node for path in MODULES.values() for node in ast.walk(ast.parse(path.read_text()))]
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    assert not occurring_twice(name for name in classes if not name.startswith("_"))


def test_the_paper_is_asked_by_its_commands_alone():
    asking = {name for name, path in MODULES.items() if "paper" in rooms_below(path)}
    assert {name for name in asking if not name.startswith("paper.")} == {"cli.paper_commands"}


def test_files_know_no_model_by_name_and_no_private_attribute():
    rooms = (certree.estimators, certree.estimators.naive_bayes, certree.ensembles)
    models = {
        name
        for room in rooms
        for name in room.__all__
        if issubclass(getattr(room, name), RowInputMixin)
    }
    for name, path in MODULES.items():
        nodes = [*ast.walk(ast.parse(path.read_text()))] if name.startswith("files.") else []
        asked = [node for node in nodes if isinstance(node, ast.Attribute)]
        private = {ast.unparse(node) for node in asked if re.match("_[^_]", node.attr)}
        assert all(one.startswith("self.") for one in private), name
        named = {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not models & (named | {node.attr for node in asked}), name


def test_no_private_name_crosses_files():
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certree."):
                assert not [a.name for a in node.names if a.name.startswith("_")], name


@pytest.mark.parametrize("room", [certree, *(getattr(certree, name) for name in ROOMS[1:-2])])
def test_public_names_are_documented(room):
    for name in getattr(room, "__all__", []):
        assert (getattr(room, name).__doc__ or "").strip(), name


def test_the_front_door_is_no_crowd():
    # One more since documents are ranked: neither classes nor numbers say what that is. And one as
    # models predict files, beside what saves and loads them. And one by which a warning is filtered.
    assert len(certree.__all__) <= 44


def constructors():
    """Every class with parameters in the house."""
    rooms = [certree, certree.prunings, certree.grow]
    found = {getattr(room, name) for room in rooms for name in room.__all__}
    classes = [one for one in found if inspect.isclass(one) and issubclass(one, BaseEstimator)]
    return [one for one in classes if "__init__" in vars(one)]


@pytest.mark.parametrize("model", sorted(constructors(), key=lambda one: one.__name__))
def test_no_constructor_is_crowded_and_all_its_parameters_are_documented(model):
    parameters = [name for name in inspect.signature(model.__init__).parameters if name != "self"]
    # Ensembles have the names of scikit-learn's, as many as they are.
    assert len(parameters) <= 17 or issubclass(model, BoostedTrees | Forest)
    documented = re.findall(r"^    (\w+) : ", model.__doc__, re.M)
    assert [name for name in documented if name in parameters] == parameters


def classes_of_rooms():
    rooms = [certree, *(getattr(certree, name) for name in ROOMS[1:-2])]
    named = [getattr(room, name) for room in rooms for name in getattr(room, "__all__", [])]
    return sorted(set(filter(inspect.isclass, named)), key=lambda one: one.__qualname__)


@pytest.mark.parametrize("kind", classes_of_rooms())
def test_no_class_stands_on_a_tower(kind):
    # A forest of scikit-learn has 12. Trees that vote have one for what each kind of them can do: to be
    # made smaller, and to be joined and left by rows.
    assert len(kind.__mro__) <= 14


def test_a_switch_of_growth_is_named_in_few_files():
    growers = (certree.Cart, certree.KD, certree.Dyadic, certree.Grid)
    homes = {Path(inspect.getfile(one)): switches_of(one) for one in growers}
    # Experiments and the command line are callers; names of other libraries are names alone.
    outer = ("paper", "cli", "interface.parameter_aliases")
    inner = [path for name, path in MODULES.items() if not name.startswith(outer)]
    sources = {path: code_of(path.read_text()) for path in inner}
    for switch in set().union(*homes.values()) - EVERYDAY:
        named = {path for path, text in sources.items() if re.search(rf"\b{switch}\b", text)}
        elsewhere = {path.name for path in named if switch not in homes.get(path, ())}
        # Boosted trees are constructed in three files: plain, certified, and those that rank.
        assert len(elsewhere) <= 3, (switch, elsewhere)


def switches_of(grower):
    return set(inspect.signature(grower.__init__).parameters) - {"self"}


def code_of(text):
    """A file without its docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def test_functions_fit_a_screen():
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                lines = node.end_lineno - node.body[0].lineno + 1
                if ast.get_docstring(node):
                    lines = node.end_lineno - node.body[0].end_lineno
                assert lines <= 40, (name, node.name)


def test_the_package_does_not_print():
    for name, path in MODULES.items():
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"print", "exit", "quit"}, name


class Walk:
    """The rooms that rows pass: of functions that are handed them, or that have asked for them."""

    def __init__(self, n_features):
        self.n_features, self.rooms = n_features, []

    def __call__(self, frame, event, given):
        if event == "call" and is_inside(frame):
            local = [frame.f_locals.get(name) for name in frame.f_code.co_varnames]
            self.enter(frame, local)
        elif event == "return" and is_inside(frame):
            parts = given if isinstance(given, tuple) else (given,)
            caller = frame.f_back
            while caller is not None and not is_inside(caller):
                caller = caller.f_back
            self.enter(caller, parts)

    def enter(self, frame, handed):
        if frame is None or not any(map(self.holds_rows, handed)):
            return
        room = module_name(Path(frame.f_code.co_filename)).split(".")[0]
        self.rooms += [room] if self.rooms[-1:] != [room] else []

    def holds_rows(self, value):
        table = getattr(value, "X", value)
        return (
            isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] == self.n_features
        )


def is_inside(frame):
    return frame.f_code.co_filename.startswith(f"{SOURCE}/")


def rooms_of(task, n_features):
    walk = Walk(n_features)
    sys.setprofile(walk)
    try:
        task()
    finally:
        sys.setprofile(None)
    return walk.rooms


def climbs(rooms):
    """How often rows come from a room to a later one."""
    return sum(ROOMS.index(one) < ROOMS.index(after) for one, after in pairwise(rooms))


@pytest.mark.parametrize(
    ("name", "rooms"),
    [
        ("PACBayesTreeClassifier", "estimators rows estimators rows grow tree"),
        (
            "CertifiedTreeClassifier",
            "estimators rows estimators rows grow tree rows estimators rows grow tree",
        ),
    ],
)
def test_rows_come_from_the_door_to_growth_and_end_in_leaves(name, rooms):
    # Rows of the pilot of a certified fit do so twice; between, near copies are looked for among them.
    X = np.random.default_rng(0).normal(size=(300, 7))
    y = (X[:, 0] > 0).astype(int)
    model = getattr(certree, name)(random_state=0)
    assert rooms_of(lambda: model.fit(X, y), 7) == rooms.split()
    # What tells collections of Dask from rows stands before the method.
    assert rooms_of(lambda: model.predict_proba(X), 7) == [
        "parts",
        "rows",
        "estimators",
        "rows",
        "estimators",
        "tree",
    ]


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (certree.PACBayesTreeClassifier(random_state=0), 2),
        (certree.PACBayesTreeRegressor(random_state=0), 2),
        (certree.PrunedTreeClassifier(random_state=0), 2),
        (certree.CertifiedTreeClassifier(random_state=0), 4),
        (certree.CertifiedTreeRegressor(random_state=0), 2),
        (certree.CertifiedForestClassifier(20, random_state=0, n_jobs=1), 4),
    ],
)
def test_rows_hardly_ever_climb(model, most):
    X = np.random.default_rng(0).normal(size=(600, 7))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    table = np.where(X > 1.5, np.nan, X)
    weight = np.random.default_rng(1).integers(0, 3, 600)
    for rows, others in ((table, {"sample_weight": weight}), (X, {})):
        assert climbs(rooms_of(lambda r=rows, o=others: model.fit(r, y, **o), 7)) <= most
    if hasattr(model, "train_size_"):
        assert model.train_size_ != PILOT  # rows are dealt once more
