"""The reference: a page for every public name, found by the packages' own lists of them.

A name is shown where it is imported from first: on the front door, or in its room. Below what its
docstring says stand the pages and scripts whose code uses it.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import certree

HERE = Path(__file__).parent
TITLES = {
    "certree": "Models, growers and the verbs of the stages",
    "certree.rows": "Rows",
    "certree.parts": "Rows in files and on clusters",
    "certree.grow": "Growers",
    "certree.stats": "Statistics of nodes",
    "certree.weights": "Posteriors over prunings",
    "certree.prunings": "Pruning rules",
    "certree.votes": "Votes",
    "certree.certificates": "Certificates",
    "certree.certificates.inequalities": "Inequalities",
    "certree.certificates.subsets": "Guarantees on subsets of the rows",
    "certree.ensembles": "Ensembles",
    "certree.explain": "Explanations",
    "certree.show": "Pictures and the report",
    "certree.export": "Exports",
    "certree.boolean": "Trees over bits",
    "certree.paper": "The paper",
}
CODE = re.compile(r"^```python\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
# What scikit-learn's own classes bring along is documented there.
SHOWN_OF_SKLEARN = {"score"}


def rooms() -> dict[str, ModuleType]:
    """The packages with public names, in the order of the reference."""
    return {name: importlib.import_module(name) for name in TITLES}


def public_names() -> dict[str, list[str]]:
    """Of every room the names that no room before it has shown."""
    seen: set[int] = set()
    found = {}
    for room, module in rooms().items():
        own = [name for name in module.__all__ if id(getattr(module, name)) not in seen]
        seen.update(id(getattr(module, name)) for name in own)
        found[room] = own
    return found


def undocumented_rooms() -> list[str]:
    """Packages whose lists hold a name that the reference does not."""
    known = {id(getattr(m, name)) for room, m in rooms().items() for name in public_names()[room]}
    missing = []
    for found in pkgutil.walk_packages(certree.__path__, "certree."):
        if found.name.startswith(("certree.cli", "certree.__main__", "certree._core")):
            continue  # a program is described by its help
        module = importlib.import_module(found.name)
        if {id(getattr(module, name)) for name in getattr(module, "__all__", [])} - known:
            missing.append(found.name)
    return missing


def purpose(module: ModuleType) -> str:
    """The first sentence of a module's docstring, without the number of its stage."""
    first = (module.__doc__ or "").split("\n\n", 1)[0].replace("\n", " ")
    return re.sub(r"^\d \w+: ", "", first)


def write_reference(place: Path) -> None:
    """Write the lists of names; autosummary writes the pages that they lead to."""
    place.mkdir(exist_ok=True)
    lines = ["Reference", "=========", "", "Every public name, by where it is imported from.", ""]
    names = public_names()
    for room, module in rooms().items():
        title = f"{TITLES[room]}: {room}"
        lines += [title, "-" * len(title), "", capital(purpose(module)), ""]
        lines += [
            f".. currentmodule:: {room}",
            "",
            ".. autosummary::",
            "   :toctree: names",
            "   :nosignatures:",
            "",
        ]
        lines += [f"   {name}" for name in names[room]] + [""]
    write_if_new(place / "index.rst", "\n".join(lines))


def capital(sentence: str) -> str:
    """The sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def write_if_new(path: Path, text: str) -> None:
    """A file that stays as it is keeps its date, so that nothing is built again for it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def uses() -> dict[str, list[str]]:
    """Of every word of code on the pages, the pages that have it."""
    found: dict[str, list[str]] = {}
    for page in sorted(HERE.rglob("*.md")):
        words = set()
        for block, inline in CODE.findall(page.read_text(encoding="utf-8")):
            words.update(re.findall(r"\w+", block or inline))
        for word in words:
            found.setdefault(word, []).append(page.relative_to(HERE).with_suffix("").as_posix())
    return found


def say_where_it_is_used(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Add the pages with a name to what its docstring says."""
    # Docstrings of scikit-learn link to its own pages, and set formulas in letters from elsewhere.
    lines[:] = [re.sub(r":ref:`([^<`]+) <[^`]*>`", r"\1", line) for line in lines]
    lines[:] = [re.sub(r":math:(`[^`]*`)", r"`\1`", line) for line in lines]
    room, _, short = name.rpartition(".")
    if short in public_names().get(room, ()) and (where := app.config.certree_uses.get(short)):
        links = ", ".join(f":doc:`/{page}`" for page in where)
        lines += ["", f"**On these pages:** {links}", ""]


def leave_out(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool:
    """Skip what scikit-learn and Python bring along."""
    home = getattr(inspect.unwrap(obj) if callable(obj) else obj, "__module__", "") or ""
    foreign = home.split(".")[0] in ("sklearn", "builtins", "collections", "typing")
    return skip or (foreign and name not in SHOWN_OF_SKLEARN and callable(obj))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the two to Sphinx."""
    app.add_config_value("certree_uses", uses(), "")
    app.connect("autodoc-process-docstring", say_where_it_is_used, priority=800)
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
