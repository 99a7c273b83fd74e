"""Models as statements of SQL."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from certree.export.formula import Formula
from certree.export.plain_dict import plain_classes
from certree.tree import LEAF

_NEVER = "1 = 0"
# What a layer of a statement selects: expressions by the names that the next one has for them.
_Layer = list[tuple[str, str]]


def sql_statement(formula: Formula, table: str, keep: Sequence[str]) -> str:
    """A statement that selects what a model predicts for the rows of a table."""
    layers, predicted = _layers(formula)
    kept = [_quoted(name) for name in keep]
    source = _quoted(table)
    columns = kept
    for number, layer in enumerate(layers):
        if number:
            source = f"({_select(columns, source)}) AS layer_{number}"
        columns = [*kept, *(f"{expression} AS {name}" for expression, name in layer)]
    if formula.classes is None:
        return _select(columns, source)
    source = f"({_select(columns, source)}) AS layer_{len(layers)}"
    return _select([*kept, predicted, *(name for _, name in layers[-1])], source)


def _select(columns: Sequence[str], source: str) -> str:
    return "SELECT\n" + ",\n".join(columns) + f"\nFROM {source}"


def _quoted(name: Any) -> str:
    """A name of a column or a table."""
    return '"' + str(name).replace('"', '""') + '"'


def _literal(value: Any) -> str:
    """A constant; with an exponent, numbers are floating ones in every database."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return "'" + str(value).replace("'", "''") + "'"


# -- from scores to predictions --------------------------------------------------------------------


def _layers(formula: Formula) -> tuple[list[_Layer], str]:
    """Layers up to the probabilities or the prediction, the innermost first, and the class column."""
    scores = [_score(formula, k) for k in range(formula.n_outputs)]
    if formula.classes is None:
        score = f"EXP({scores[0]})" if formula.link == "exp" else scores[0]
        return [[(score, '"prediction"')]], ""
    classes = plain_classes(formula)
    names = [_quoted(f"probability_{one}") for one in classes]
    best = f"CASE {_call('GREATEST', names)} " + " ".join(
        f"WHEN {name} THEN {_literal(one)}" for name, one in zip(names, classes, strict=True)
    )
    layers = [*_inner_layers(formula, scores)]
    shares = scores
    if layers:
        inner = [name for _, name in layers[-1]]
        shares = [f"{name} / ({' + '.join(inner)})" for name in inner]
    layers.append([*zip(shares, names, strict=True)])
    return layers, f'{best} END AS "prediction"'


def _inner_layers(formula: Formula, scores: list[str]) -> list[_Layer]:
    """The scores, and numbers of which the probabilities are the shares; none for a single tree."""
    if formula.link == "identity":
        return []
    names = [f"score_{k}" for k in range(len(scores))]
    if formula.link == "softmax":
        most = _call("GREATEST", names)
        parts = [f"EXP({name} - {most})" for name in names]
    elif formula.link == "logistic":
        parts = [f"1e0 / (1e0 + EXP({sign}{names[0]}))" for sign in ("", "-")]
    else:
        shares = names
        if formula.says_second:
            second = f"LEAST(GREATEST({names[0]}, 0e0), 1e0)"
            shares = [f"1e0 - {second}", second]
        power = _literal(float(formula.power))
        parts = shares if formula.power == 1 else [f"POWER({one}, {power})" for one in shares]
    numbered = [(part, f"part_{k}") for k, part in enumerate(parts)]
    return [[*zip(scores, names, strict=True)], numbered]


def _call(function: str, names: Sequence[str]) -> str:
    return f"{function}({', '.join(names)})" if len(names) > 1 else names[0]


def _score(formula: Formula, k: int) -> str:
    """One of the outputs."""
    terms = [_tree(formula, number, k) for number in range(len(formula.trees))]
    if formula.kind == "tree":
        return terms[0]
    if formula.kind == "forest":
        return f"{_sum(terms)} / {_literal(float(len(terms)))}"
    return f"{_literal(float(formula.start[k]))} + {_sum(terms)}"


def _sum(terms: Sequence[str]) -> str:
    """A sum in halves, as databases bound the depth of expressions."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_sum(terms[:half])}\n+ {_sum(terms[half:])})"


# -- trees -----------------------------------------------------------------------------------------


def _tree(formula: Formula, number: int, k: int) -> str:
    """What a tree says, output k: for rows that may go both ways it is a sum over all leaves."""
    plain = _expression(formula, number, k, both_ways=False)
    lacking = _lacking(formula, number)
    if not lacking:
        return plain
    blended = _expression(formula, number, k, both_ways=True)
    return f"CASE WHEN {' OR '.join(lacking)} THEN {blended} ELSE {plain} END"


def _lacking(formula: Formula, number: int) -> list[str]:
    """Conditions of which one holds if a row may go both ways."""
    tree, _ = formula.trees[number]
    conditions = []
    for feature in np.unique(tree.feature[tree.missing_both]):
        column, names = _quoted(formula.names[feature]), formula.categories_of(feature)
        conditions.append(f"{column} IS NULL")
        if names:
            conditions.append(f"NOT {_is_any(column, names)}")
    return conditions


def _is_any(column: str, names: Sequence[Any]) -> str:
    """Whether a column has one of the names; some databases make a slow join of each IN."""
    equal = (f"{column} = {_literal(name)}" for name in names)
    return f"({' OR '.join(equal)})" if names else _NEVER


def _expression(formula: Formula, number: int, k: int, *, both_ways: bool) -> str:
    """What a tree says, written from the leaves up."""
    tree, value = formula.trees[number]
    share = formula.missing_shares(number)
    said: dict[int, str] = {}
    for node in range(tree.n_nodes - 1, -1, -1):
        left = int(tree.left[node])
        if left == LEAF:
            said[node] = _literal(float(value[node, k]))
            continue
        is_left, is_right = _conditions(formula, number, node)
        first, second = said.pop(left), said.pop(left + 1)
        if both_ways and tree.missing_both[node]:
            to_left = _part(is_left, is_right, float(share[node]))
            to_right = _part(is_right, is_left, 1 - float(share[node]))
            said[node] = f"({to_left} * {first}\n+ {to_right} * {second})"
        elif tree.missing_left[node]:
            said[node] = f"CASE WHEN {is_right} THEN {second}\nELSE {first} END"
        else:
            said[node] = f"CASE WHEN {is_left} THEN {first}\nELSE {second} END"
    return said[0]


def _part(goes: str, goes_not: str, share: float) -> str:
    """Part of a row that goes to a side."""
    return f"CASE WHEN {goes} THEN 1e0 WHEN {goes_not} THEN 0e0 ELSE {_literal(share)} END"


def _conditions(formula: Formula, number: int, node: int) -> tuple[str, str]:
    """When rows that have the value go to the left, and when to the right."""
    tree, _ = formula.trees[number]
    feature = int(tree.feature[node])
    column, goes_left = _quoted(formula.names[feature]), formula.goes_left(number, node)
    if goes_left is None:
        threshold = _literal(float(tree.threshold[node]))
        return f"{column} <= {threshold}", f"{column} > {threshold}"
    names = formula.categories_of(feature) or ()
    to_left = [name for name, left in zip(names, goes_left, strict=True) if left]
    to_right = [name for name, left in zip(names, goes_left, strict=True) if not left]
    return _is_any(column, to_left), _is_any(column, to_right)
