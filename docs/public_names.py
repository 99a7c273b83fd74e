"""The reference: a page for every public name, grouped by use, and one for the options of commands.

A name is documented where it is imported from first: certree, or its package. Below its docstring stand
the pages and scripts whose code uses it.
"""

import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

import certree
from certree.cli.app import list_commands

HERE = Path(__file__).parent
# The groups of the reference: title, sentence, and the packages whose names each lists. A name belongs
# to the package that defines it, wherever it is imported from.
GROUPS = {
    "Estimators": (
        "Classifiers, regressors and rankers with scikit-learn's interface.",
        ("estimators", "ensembles"),
    ),
    "Certificates": (
        "Guarantees about the error of fitted models on new rows.",
        ("certificates",),
    ),
    "Growers, prunings and votes": (
        "How trees grow, which prunings they have, and how these vote.",
        ("tree", "grow", "stats", "weights", "prunings", "votes"),
    ),
    "Explanations and plots": (
        "Why a model predicts what it predicts, in numbers, words and pictures.",
        ("explain", "show"),
    ),
    "Data": (
        "Tables, categories, dates, splits, and rows that do not fit in memory.",
        ("tables", "rows", "out_of_core"),
    ),
    "Exports and files": ("Models in files and in other tools.", ("export", "files")),
    "Boolean functions": ("Fourier analysis of trees over bits.", ("boolean",)),
    "The paper": ("The theory and the experiments of the paper.", ("paper",)),
}
CODE = re.compile(r"^```python\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
# Methods of scikit-learn's classes are documented there, but for these.
SHOWN_OF_SKLEARN = {"score"}


@functools.cache
def public_packages() -> dict[str, ModuleType]:
    """Return the packages with public names: certree first, then its packages with an `__all__`."""
    found = [certree]
    for info in pkgutil.walk_packages(certree.__path__, "certree."):
        hidden = any(part.startswith("_") for part in info.name.split("."))
        if info.ispkg and not hidden and not info.name.startswith("certree.cli"):
            module = importlib.import_module(info.name)
            found += [module] if hasattr(module, "__all__") else []
    return {module.__name__: module for module in found}


@functools.cache
def public_names() -> dict[str, list[str]]:
    """Return the names of each public package that no package before it has."""
    seen: set[int] = set()
    found = {}
    for package, module in public_packages().items():
        names = [name for name in module.__all__ if id(getattr(module, name)) not in seen]
        seen.update(id(getattr(module, name)) for name in names)
        found[package] = names
    return found


def group_names() -> dict[str, dict[str, list[str]]]:
    """Return, for each group of the reference, its names by the package that they are imported from."""
    home = {package: title for title, (_, packages) in GROUPS.items() for package in packages}
    groups: dict[str, dict[str, list[str]]] = {title: {} for title in GROUPS}
    packages = public_packages()
    for package, names in public_names().items():
        for name in names:
            value = getattr(packages[package], name)
            module = getattr(value, "__module__", None) or package
            title = home[(module if module.startswith("certree.") else package).split(".")[1]]
            groups[title].setdefault(package, []).append(name)
    return groups


def write_reference(place: Path) -> None:
    """Write the lists of names; autosummary writes the pages that they lead to."""
    place.mkdir(exist_ok=True)
    lines = ["Reference", "=========", "", "Every public class and function, grouped by use.", ""]
    for title, packages in group_names().items():
        lines += [title, "-" * len(title), "", GROUPS[title][0], ""]
        for package, names in packages.items():
            lines += [
                f"Import from ``{package}``:",
                "",
                f".. currentmodule:: {package}",
                "",
                ".. autosummary::",
                "   :toctree: names",
                "   :nosignatures:",
                "",
                *(f"   {name}" for name in sorted(names, key=str.lower)),
                "",
            ]
    title = "Command line"
    lines += [title, "-" * len(title), "", ".. toctree::", "", "   command_line", ""]
    write_if_new(place / "index.rst", "\n".join(lines))
    write_if_new(place / "command_line.rst", "\n".join(describe_commands()))


def describe_commands() -> list[str]:
    """Return the lines of a page with all options of each command, from the command line itself."""
    title = "Options of the command certree"
    lines = [title, "=" * len(title), "", ":doc:`/guide/command_line` has examples.", ""]
    for name, command in list_commands().items():
        lines += [name, "-" * len(name), "", command.get_short_help_str(1000), ""]
        rows = []
        for option in command.params:
            if option.param_type_name == "option":
                metavar = option.metavar if option.metavar and not option.is_flag else ""
                rows.append(f"   * - ``{' '.join([', '.join(option.opts), metavar]).strip()}``")
                rows.append(f"     - {escape_rst(option.help or '')}")
                rows.append(f"     - {escape_rst(describe_default(option))}".rstrip())
        if rows:
            head = [".. list-table::", "   :header-rows: 1", "", "   * - option", "     - meaning"]
            lines += [*head, "     - default", *rows, ""]
    return lines


def describe_default(option: Any) -> str:
    """Return the default of an option of click as text; "" for flags and options without one."""
    if option.required:
        return "required"
    if isinstance(option.show_default, str):
        return option.show_default
    is_shown = option.default is not None and not option.is_flag and not callable(option.default)
    return str(getattr(option.default, "value", option.default)) if is_shown else ""


def escape_rst(text: str) -> str:
    """Return a text with a backslash before the characters that reStructuredText interprets."""
    return re.sub(r"([\\*`|_])", r"\\\1", " ".join(text.split()))


def write_if_new(path: Path, text: str) -> None:
    """Write a file unless it has this text; Sphinx rebuilds only files with a new date."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def find_uses() -> dict[str, list[str]]:
    """Return the pages on which each word of code occurs."""
    found: dict[str, list[str]] = {}
    for page in sorted(HERE.rglob("*.md")):
        words = set()
        for block, inline in CODE.findall(page.read_text(encoding="utf-8")):
            words.update(re.findall(r"\w+", block or inline))
        for word in words:
            found.setdefault(word, []).append(page.relative_to(HERE).with_suffix("").as_posix())
    return found


def list_pages_with_name(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Add the list of pages that use a name to its docstring."""
    # Docstrings of scikit-learn link to pages that this site lacks and need fonts for their formulas.
    lines[:] = [re.sub(r":ref:`([^<`]+) <[^`]*>`", r"\1", line) for line in lines]
    lines[:] = [re.sub(r":math:(`[^`]*`)", r"`\1`", line) for line in lines]
    package, _, short = name.rpartition(".")
    if short in public_names().get(package, ()) and (where := app.config.certree_uses.get(short)):
        links = ", ".join(f":doc:`/{page}`" for page in where)
        lines += ["", f"**On these pages:** {links}", ""]


def skip_inherited(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool:
    """Return whether to skip a member: methods inherited from scikit-learn or Python are skipped."""
    home = getattr(inspect.unwrap(obj) if callable(obj) else obj, "__module__", "") or ""
    foreign = home.split(".")[0] in ("sklearn", "builtins", "collections", "typing")
    return skip or (foreign and name not in SHOWN_OF_SKLEARN and callable(obj))


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link code words that are public names, such as `Cart` or `certify(...)`, to the reference.

    A lower-case word without parentheses, package or underscore is left alone: it may be a parameter.
    """
    if app.env.docname.startswith("reference/"):
        return
    targets = {
        name: f"{package}.{name}" for package, names in public_names().items() for name in names
    }
    for literal in list(doctree.findall(nodes.literal)):
        word, call, _ = literal.astext().partition("(")
        package, _, name = word.rpartition(".")
        is_name = bool(call or package) or "_" in word or word[:1].isupper()
        target = targets.get(name) if is_name else None
        if target is None or (package and not target.startswith(f"{package}.")):
            continue
        if is_inside_link_or_title(literal):
            continue
        link = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=False
        )
        link["refdoc"] = app.env.docname
        literal.replace_self(link)
        link += literal


def is_inside_link_or_title(node: nodes.Node) -> bool:
    """Return whether a node stands in a title, or in a link, where a second link would be invalid."""
    while (node := node.parent) is not None:
        if isinstance(node, nodes.reference | addnodes.pending_xref | nodes.title):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions above to Sphinx."""
    app.add_config_value("certree_uses", find_uses(), "")
    app.connect("autodoc-process-docstring", list_pages_with_name, priority=800)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
