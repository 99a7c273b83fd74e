"""Models as source code of C, Java and JavaScript, for programs without Python and ONNX.

The code holds the nodes of all trees in arrays, and a function that walks through them. It is made
from the dictionary of `make_plain_dict`; the templates are files beside this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template
from typing import Any, Literal

import certree
from certree.interface.formatting import format_quantity

Language = Literal["c", "java", "javascript"]

_TEMPLATES = {"c": "model.c", "java": "Model.java", "javascript": "model.js"}
# Largest number of characters of a Java string constant, with room for UTF-8 of three bytes.
_MAX_JAVA_TEXT = 20_000
# Most categories of a feature that a comment lists.
_MAX_CODES = 20
# Control characters as JSON writes them.
_CONTROL = re.compile(r"(?<!\\)\\u(00[01][0-9a-f])")
# Identifiers that no language reserves.
# Names of a class in Java, and prefixes of functions in C.
_NAMES = {"java": re.compile(r"[A-Z][A-Za-z0-9_]*\Z"), "c": re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")}


@dataclass(slots=True)
class _NodeArrays:
    """The nodes of all trees in arrays that have one entry for each node.

    Attributes
    ----------
    root : list of int
        Index of the root of each tree.
    feature : list of int
        Feature that a node compares; -1 for leaves.
    left : list of int
        Index of the left child, which the right one follows; for leaves the index of the first of
        their values in `value`.
    set : list of int
        Where the category set of a split begins in `sets`; -1 for leaves and splits at a threshold.
    sets : list of int
        All category sets, one after the other: the number of codes that go left, then these codes.
    threshold : list of float
        Largest value that goes left.
    missing_left, unseen_left : list of float
        Fraction of a row without a value, and of one with an unknown category, that goes left.
    value : list of float
        Values of all leaves, one after the other.
    """

    root: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    set: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing_left: list[float] = field(default_factory=list)
    unseen_left: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def add_tree(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Append the nodes of a tree to all arrays.

        nodes: an entry of "trees" in the dictionary of `make_plain_dict`: one dictionary for each
        node, the root first.
        """
        first = len(self.feature)
        self.root.append(first)
        for node in nodes:
            is_leaf, codes = "value" in node, node.get("left_categories")
            self.feature.append(-1 if is_leaf else node["feature"])
            self.left.append(len(self.value) if is_leaf else first + node["left"])
            self.set.append(-1 if codes is None else len(self.sets))
            self.threshold.append(node.get("threshold", 0.0))
            self.missing_left.append(float(node.get("missing_left", 0.0)))
            self.unseen_left.append(float(node.get("unseen_left", 0.0)))
            self.sets += [] if codes is None else [len(codes), *codes]
            self.value += node.get("value", [])


def write_source(document: Mapping[str, Any], language: Language, name: str) -> str:
    """Return source code that predicts rows as a model does.

    Parameters
    ----------
    document : dict
        The model, from `make_plain_dict`.
    language : {"c", "java", "javascript"}
        The language: C99, Java 11, or an ECMAScript module.
    name : str
        Prefix of functions in C, name of the class in Java; not used in JavaScript.

    Returns
    -------
    str
        The source code. It has no dependencies beside the language's standard library.

    Raises
    ------
    ValueError
        If `language` is none of these, `name` is no identifier of C, or for Java does not begin with
        a capital letter.
    """
    if language not in _TEMPLATES:
        raise ValueError(f"language must be one of {', '.join(_TEMPLATES)}, got {language!r}")
    if language in _NAMES and not _NAMES[language].match(name):
        first = "a capital letter" if language == "java" else "no digit"
        raise ValueError(
            "name, which the command line takes from the name of the file, must consist of letters, "
            f"digits and underscores and begin with {first}, got {name!r}"
        )
    arrays = _NodeArrays()
    for nodes in document["trees"]:
        arrays.add_tree(nodes)
    categories = [feature["categories"] for feature in document["features"]]
    classes, n_outputs = document["classes"], len(document["start"])
    results = [f"probability of {label}" for label in classes or ()]
    results = results or ["predicted number"] * n_outputs
    values = {
        "title": f"A certree model of {format_quantity(len(arrays.root), 'tree')}",
        "version": certree.__version__,
        "name": name,
        "features": _make_comment(_describe_features(document["features"], language)),
        "results": _make_comment(f"out[{k}] {text}" for k, text in enumerate(results)),
        "n_features": len(categories),
        "n_trees": len(arrays.root),
        "n_outputs": n_outputs,
        "n_results": len(results),
        "divisor": f"{len(arrays.root) if document['sum'] == 'mean' else 1}.0",
        "link": _write_link(document, language),
    }
    columns = {key: getattr(arrays, key) for key in _NodeArrays.__slots__}
    columns["start"] = document["start"]
    if language == "java":
        values |= {f"{key}_text": _quote_pieces(column) for key, column in columns.items()}
        values["category_arrays"] = _declare_java_categories(categories)
    else:
        # C allows no empty arrays.
        values |= {key: ", ".join(map(repr, column or [0])) for key, column in columns.items()}
        values["categories"] = ", ".join(map(json.dumps, categories))
        values |= _declare_c_categories(categories)
    template = files("certree.export") / "source_templates" / _TEMPLATES[language]
    return Template(template.read_text(encoding="utf-8")).substitute(values)


def _describe_features(features: Sequence[Mapping[str, Any]], language: Language) -> list[str]:
    """Return name, type and unit of each feature for comments, such as "x[1] size: number".

    The first 20 categories of a feature are listed. The codes of texts are listed as well, unless
    the language is JavaScript, whose code takes the texts. features: their entries in
    the dictionary of `make_plain_dict`; language: that of the source code.
    """
    texts = []
    for j, feature in enumerate(features):
        text, categories = "number", feature["categories"]
        if dates := feature.get("dates"):
            zone = f", time zone {dates['zone']}" if dates["zone"] else ""
            text = f"{'time span' if dates['kind'] == 'span' else 'date'}, {dates['unit']}{zone}"
        elif part := feature.get("part"):
            text = f"{part['name']} of {features[part['of']]['name']}"
        elif categories and _is_text(categories):
            has_codes = language != "javascript"
            listed = [f"{k} {name}" if has_codes else name for k, name in enumerate(categories)]
            text = f"category, {'with codes ' if has_codes else ''}{_list_first(listed)}"
        elif categories:
            text = f"category that is a number, {_list_first([*map(repr, categories)])}"
        texts.append(f"x[{j}] {feature['name']}: {text}")
    return texts


def _list_first(texts: Sequence[str]) -> str:
    """Return the first 20 texts as one string, separated by commas, with "..." if there are more."""
    return ", ".join([*texts[:_MAX_CODES], *(["..."] if len(texts) > _MAX_CODES else [])])


def _make_comment(texts: Iterable[str]) -> str:
    """Return texts as lines of a comment, to insert between "/*" and "*/" in any language.

    Each line begins with a line break and " *     ". Characters beyond ASCII become "?".
    """
    lines = [re.sub(r"[^ -~]", "?", text) for text in texts]
    lines = [line.replace("*/", "* /").replace("\\", "/") for line in lines]
    return "".join(f"\n *     {line}" for line in lines)


def _write_link(document: Mapping[str, Any], language: Language) -> str:
    """Return source code that computes the array `out` of predictions from the array `sum`.

    `sum` has the outputs of all trees, added up; the link turns them into probabilities or numbers,
    for instance by softmax. document: the model from `make_plain_dict`; its "link", "power" and
    "classes" are read. language: "c", "java" or "javascript".
    """
    is_script = language == "javascript"
    integer, number = ("let", "let") if is_script else ("int", "double")
    math, indent = ("", 4) if language == "c" else ("Math.", 2 if is_script else 8)
    all_results = f"for ({integer} k = 0; k < {{n}}; ++k)"
    each = all_results.format(n="N_OUTPUTS")
    n_results = len(document["classes"] or document["start"])
    normalise = f"{all_results.format(n=n_results)} out[k] /= total;"
    lines: list[str] = {
        "identity": [f"{each} out[k] = sum[k];"],
        "exp": [f"{each} out[k] = {math}exp(sum[k]);"],
        "sorted": [
            f"for ({integer} i = 1; i < N_OUTPUTS; ++i)",
            f"    for ({integer} j = i; j > 0 && sum[j - 1] > sum[j]; --j) {{",
            f"        {number} larger = sum[j - 1];",
            "        sum[j - 1] = sum[j];",
            "        sum[j] = larger;",
            "    }",
            f"{each} out[k] = sum[k];",
        ],
        "logistic": [
            f"out[0] = 1 / (1 + {math}exp(sum[0]));",
            f"out[1] = 1 / (1 + {math}exp(-sum[0]));",
        ],
        "softmax": [
            f"{number} largest = sum[0], total = 0;",
            f"{each} if (sum[k] > largest) largest = sum[k];",
            f"{each} total += out[k] = {math}exp(sum[k] - largest);",
            normalise,
        ],
        "shares": [
            f"{number} total = 0;",
            "out[0] = 1 - (out[1] = sum[0] < 0 ? 0 : sum[0] > 1 ? 1 : sum[0]);"
            if len(document["start"]) < n_results
            else f"{each} out[k] = sum[k];",
            f"{all_results.format(n=n_results)} total += out[k] = {math}pow(out[k], "
            f"{document['power']!r});",
            normalise,
        ],
    }[document["link"]]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _is_text(names: Sequence[Any] | None) -> bool:
    """Return whether a feature has categories that are texts, or none, as all values were missing.

    names: its categories; None: the feature is numeric.
    """
    return names is not None and (not names or isinstance(names[0], str))


def _quote(text: str) -> str:
    """Return a text as a string constant of C and Java, which interpret the same escapes.

    Characters beyond ASCII are written as they are, as C takes the bytes of UTF-8; control
    characters as octal escapes. So are two question marks, which begin a trigraph in C99: "??!" is
    a vertical bar.
    """
    escaped = json.dumps(text, ensure_ascii=False).replace("??", r"\077\077")
    return _CONTROL.sub(lambda match: f"\\{int(match[1], 16):03o}", escaped)


def _declare_c_categories(categories: Sequence[Sequence[Any] | None]) -> dict[str, str]:
    """Return C code that declares the category names of all features, as values of the C template.

    categories: for each feature its category names by code (texts or numbers), or None if the
    feature is numeric. The dictionary has the texts for four placeholders: "category_arrays"
    (declarations of one array per feature), "text_pointers" and "number_pointers" (for each feature
    the array of its texts or numbers, or 0), and "n_categories" (numbers of categories).
    """
    declarations, texts, numbers = [], [], []
    for j, names in enumerate(categories):
        kind = "const char *const" if _is_text(names) else "const double"
        write: Callable[[Any], str] = _quote if _is_text(names) else repr
        if names is not None:
            values = ", ".join(map(write, names)) or "0"  # C allows no empty arrays.
            declarations.append(f"static {kind} CATEGORIES_{j}[] = {{{values}}};\n")
        texts.append(f"CATEGORIES_{j}" if _is_text(names) else "0")
        numbers.append("0" if names is None or _is_text(names) else f"CATEGORIES_{j}")
    return {
        "category_arrays": "".join(declarations),
        "text_pointers": ", ".join(texts),
        "number_pointers": ", ".join(numbers),
        "n_categories": ", ".join(str(len(names or ())) for names in categories),
    }


def _declare_java_categories(categories: Sequence[Sequence[Any] | None]) -> str:
    """Return Java statements that set the category names of all features, for the Java template.

    The statements fill the arrays TEXTS and NUMBERS. categories: for each feature its category
    names by code (texts or numbers), or None if the feature is numeric.
    """
    lines = []
    for j, names in enumerate(categories):
        if names is not None and _is_text(names):
            lines.append(f"TEXTS[{j}] = new String[] {{{', '.join(map(_quote, names))}}};")
        elif names:
            lines.append(f"NUMBERS[{j}] = numbers({_quote_pieces(names)});")
    return "".join(f"        {line}\n" for line in lines)


def _quote_pieces(column: Sequence[float]) -> str:
    """Return numbers as Java string constants of at most 20,000 characters, joined by commas.

    The numbers in a constant are separated by blanks. Java limits the size of a constant, and that
    of the code that fills an array. column: the numbers, such as the thresholds of all nodes.
    """
    text = "".join(f"{number!r} " for number in column)
    pieces = [text[i : i + _MAX_JAVA_TEXT] for i in range(0, len(text), _MAX_JAVA_TEXT)]
    return ", ".join(map(_quote, pieces or [""]))
