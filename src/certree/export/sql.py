"""Models as statements of SQL that DuckDB and SQLite run.

A statement is a chain of selects, each of which reads the one before. Names of others stand in the
first and the last one; those in between are names that no column has. Databases bound how deep
expressions are, and SQLite how deep they are nested in the text: long chains and sums are flat.
"""

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from certree.export.formula import Formula, compared, expect_int64, expect_utf8
from certree.tree import LEAF

_PREDICTION = "prediction"
_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def sql_statement(formula: Formula, table: str, keep: Sequence[str]) -> str:
    """A statement that selects what a model predicts for the rows of a table."""
    classes = [] if formula.classes is None else formula.labels
    if formula.link == "sorted":
        raise ValueError(
            "SQL sorts no columns of a row, as quantiles of one fit are: use to_onnx() or to_dict(), "
            "or fit a model for each quantile"
        )
    shares = _distinct([f"probability_{one}" for one in classes])
    n_numbers = 1 if classes else formula.n_outputs
    numbers = [_PREDICTION] if n_numbers == 1 else [f"{_PREDICTION}_{k}" for k in range(n_numbers)]
    _expect_apart(formula, keep, [*numbers, *shares])
    prefix = _free_prefix([table, *keep, *formula.names, *numbers, *shares])
    selects, read = _Selects.of(table, keep, prefix), _features_read(formula)
    columns = [_value(formula, one, selects.column(formula.names[one])) for one in read]
    values = dict(zip(read, selects.add("x", columns), strict=True))
    said = [_score(formula, values, k) for k in range(formula.n_outputs)]
    if not classes:
        predicted = [f"EXP({one})" if formula.link == "exp" else one for one in said]
        return selects.statement(keep, [*zip(predicted, numbers, strict=True)])
    ranked, probabilities = _probabilities(formula, selects, selects.add("score", said))
    best = _of_largest(ranked, [_literal(one) for one in classes])
    named = zip(probabilities, shares, strict=True)
    return selects.statement(keep, [(best, _PREDICTION), *named])


# -- names -----------------------------------------------------------------------------------------


def _folded(name: str) -> str:
    """What a name is to databases, which compare letters of ASCII without case, and only those."""
    return name.translate(_TO_LOWER)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of which none is another one's; behind a further one there is a number."""
    given, taken = {_folded(name) for name in names}, set[str]()
    distinct = []
    for name in names:
        found = name
        if _folded(name) in taken:
            numbered = (f"{name}_{number}" for number in count(2))
            found = next(one for one in numbered if _folded(one) not in given | taken)
        taken.add(_folded(found))
        distinct.append(found)
    return distinct


def _free_prefix(taken: Iterable[str]) -> str:
    """Letters with which none of some names begins."""
    folded = [_folded(name) for name in taken]
    prefix = "m_"
    while any(name.startswith(prefix) for name in folded):
        prefix += "_"
    return prefix


def _expect_apart(formula: Formula, keep: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse names that a database would take for one another."""
    if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
        raise TypeError(f"keep must be a sequence of names of columns, got {keep!r}")
    selected = dict[str, str]()
    for name in (*outputs, *keep):
        if _folded(name) in selected:
            raise ValueError(
                f"keep must hold other names than {selected[_folded(name)]!r}, which is selected "
                f"already, and databases do not tell by case, got {name!r}"
            )
        selected[_folded(name)] = name
    read = dict[str, str]()
    for feature in _features_read(formula):
        name = formula.names[feature]
        first = read.setdefault(_folded(name), name)
        if first != name:
            raise ValueError(
                f"features must differ by more than case, as databases do not tell them apart, got "
                f"{first!r} and {name!r}"
            )


def _written(text: str) -> str:
    """A name or a string that a statement can have."""
    expect_utf8(text)
    if "\0" in text:
        raise ValueError(f"a statement of SQL ends at a NUL, and there is one in {text!r}")
    return text


def _quoted(name: Any) -> str:
    """A name of a column or a table."""
    if not str(name):
        raise ValueError("SQL has no empty names: name the feature, the table or the column")
    return '"' + _written(str(name)).replace('"', '""') + '"'


def _literal(value: Any) -> str:
    """A constant; with an exponent, numbers are floating ones in every database."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        expect_int64(value)
        return str(value)
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return "'" + _written(str(value)).replace("'", "''") + "'"


# -- the chain of selects --------------------------------------------------------------------------


@dataclass(slots=True)
class _Selects:
    """Selects that read each other, the first one a table, and hand on the columns to keep.

    Each result is kept (MATERIALIZED): SQLite else copies expressions into each other, which doubles
    what is below a column that is read twice.

    Attributes
    ----------
    prefix : str
        Begins all names, as none of the table's.
    source : str
        What the next select reads.
    kept : list of str
        The columns to keep, as they are called there.
    before : list of str
        The selects so far.
    """

    prefix: str
    source: str
    kept: list[str]
    before: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, table: str, keep: Sequence[str], prefix: str) -> "_Selects":
        """Begin with a table."""
        selects = cls(prefix, f"{_quoted(table)} AS {prefix}table", [])
        selects.kept = [selects.column(name) for name in keep]
        return selects

    def column(self, name: str) -> str:
        """A column of the table. SQLite takes one that is not there for a string if it stands alone."""
        return f"{self.prefix}table.{_quoted(name)}"

    def add(self, kind: str, expressions: Sequence[str], hand_on: Sequence[str] = ()) -> list[str]:
        """Select expressions, and what the select before is to hand on; returns their names."""
        names = [f"{self.prefix}{kind}{number}" for number in range(len(expressions))]
        if names:
            kept = [f"{self.prefix}kept{number}" for number in range(len(self.kept))]
            given = [*self.kept, *hand_on, *expressions]
            text = self._select(zip(given, [*kept, *hand_on, *names], strict=True))
            self.source, self.kept = f"{self.prefix}{kind}s", kept
            self.before.append(f"{self.source} AS MATERIALIZED (\n{text}\n)")
        return names

    def statement(self, keep: Sequence[str], columns: Sequence[tuple[str, str]]) -> str:
        """The statement that ends with columns by names of their own."""
        named = [*zip(self.kept, keep, strict=True), *columns]
        text = self._select((expression, _quoted(name)) for expression, name in named)
        return f"WITH {', '.join(self.before)}\n{text}" if self.before else text

    def _select(self, columns: Iterable[tuple[str, str]]) -> str:
        named = (name if name == given else f"{given} AS {name}" for given, name in columns)
        return "SELECT\n" + ",\n".join(named) + f"\nFROM {self.source}"


# -- from columns to probabilities -----------------------------------------------------------------


def _features_read(formula: Formula) -> list[int]:
    """Features that some node compares."""
    compared = [tree.feature[~tree.is_leaf] for tree in formula.trees]
    features: list[int] = np.unique(np.concatenate(compared)).tolist()
    return features


def _value(formula: Formula, feature: int, column: str) -> str:
    """A column as the trees compare it: a number, or the code of a category; NULL is missing."""
    names = formula.categories_of(feature)
    if names is not None and not names:
        return "NULL"
    of_words = names is not None and isinstance(names[0], str)
    value = f"CAST({column} AS {'VARCHAR' if of_words else 'DOUBLE PRECISION'})"
    if names is None:
        return f"NULLIF({value}, 'NaN')"
    cases = (f"WHEN {_literal(name)} THEN {code}" for code, name in enumerate(names))
    return f"CASE {value} {' '.join(cases)} END"


def _probabilities(
    formula: Formula, selects: _Selects, scores: list[str]
) -> tuple[list[str], list[str]]:
    """What ranks the classes, and their probabilities."""
    if formula.link == "identity":
        return scores, scores
    ranked = scores
    if formula.link == "shares":
        if formula.says_second:
            inside = f"CASE WHEN {scores[0]} < 0e0 THEN 0e0 WHEN {scores[0]} > 1e0 THEN 1e0"
            scores = selects.add("second", [f"{inside} ELSE {scores[0]} END"])
            ranked = [f"1e0 - {scores[0]}", scores[0]]
        power = _literal(float(formula.power))
        parts = ranked if formula.power == 1 else [f"POWER({one}, {power})" for one in ranked]
        handed = scores
    else:
        ranked = ["0e0", scores[0]] if formula.link == "logistic" else scores
        (most,) = selects.add("most", [_of_largest(ranked, ranked)], scores)
        parts, handed = [f"EXP({one} - {most})" for one in ranked], scores
    parts = selects.add("part", parts, handed)
    (total,) = selects.add("total", [_joined(parts, " + ")], [*handed, *parts])
    return ranked, [f"{part} / {total}" for part in parts]


def _of_largest(numbers: Sequence[str], said: Sequence[str]) -> str:
    """What is said of the first of the largest numbers; functions for it have several names."""
    cases = "".join(
        f"WHEN {_joined([f'{one} >= {other}' for other in numbers[k + 1 :]], ' AND ')} THEN {said[k]}\n"
        for k, one in enumerate(numbers[:-1])
    )
    return f"CASE {cases}ELSE {said[-1]} END" if cases else said[-1]


def _joined(terms: Sequence[str], operator: str) -> str:
    """Terms in as many groups as each has: an expression is as deep as both together."""
    if len(terms) == 1:
        return terms[0]
    size = isqrt(len(terms) - 1) + 1
    groups = [operator.join(terms[k : k + size]) for k in range(0, len(terms), size)]
    return f"(({f'){operator}('.join(groups)}))"


def _score(formula: Formula, values: dict[int, str], k: int) -> str:
    """One of the outputs."""
    terms = [_tree(formula, number, values, k) for number in range(len(formula.trees))]
    if formula.kind == "tree":
        return terms[0]
    if formula.kind == "forest":
        return f"{_joined(terms, ' + ')} / {_literal(float(len(terms)))}"
    return f"{_literal(float(formula.start[k]))} + {_joined(terms, ' + ')}"


# -- trees -----------------------------------------------------------------------------------------


class _Said(NamedTuple):
    """What a node says: cases that are looked at in turn, and what holds if none of them does."""

    cases: str
    otherwise: str
    nesting: int

    @property
    def whole(self) -> str:
        """An expression."""
        return f"CASE {self.cases}ELSE {self.otherwise} END" if self.cases else self.otherwise


def _tree(formula: Formula, number: int, values: dict[int, str], k: int) -> str:
    """What a tree says, output k: for rows that may go both ways it is a sum over all leaves."""
    tree = formula.trees[number]
    plain = _expression(formula, number, values, k, both_ways=False)
    features = np.unique(tree.feature[tree.missing_both])
    if not len(features):
        return plain.whole
    lacking = _joined([f"{values[feature]} IS NULL" for feature in features], " OR ")
    blended = _expression(formula, number, values, k, both_ways=True)
    return f"CASE WHEN {lacking} THEN {blended.whole}\n{plain.cases}ELSE {plain.otherwise} END"


def _expression(
    formula: Formula, number: int, values: dict[int, str], k: int, *, both_ways: bool
) -> _Said:
    """What a tree says, from the leaves up; the child that is nested deeper comes last."""
    tree = formula.trees[number]
    share = formula.missing_shares(number)
    said: dict[int, _Said] = {}
    for node in range(tree.n_nodes - 1, -1, -1):
        left = int(tree.left[node])
        if left == LEAF:
            said[node] = _Said("", _literal(float(tree.value[node, k])), 0)
            continue
        x, conditions = values[int(tree.feature[node])], _conditions(formula, number, node, values)
        first, last = sorted((left, left + 1), key=lambda child: said[child].nesting)
        goes, goes_not = conditions[first - left], conditions[last - left]
        inner, outer = said.pop(first), said.pop(last)
        nesting = max(outer.nesting, inner.nesting + 1)
        if both_ways and tree.missing_both[node]:
            part = float(share[node]) if first == left else 1 - float(share[node])
            parts = _part(goes_not, goes, 1 - part), _part(goes, goes_not, part)
            text = f"({outer.whole} * {parts[0]}\n+ {inner.whole} * {parts[1]})"
            said[node] = _Said("", text, nesting)
        else:
            if tree.missing_left[node] == (first == left):
                goes = f"({goes} OR {x} IS NULL)"
            said[node] = _Said(
                f"WHEN {goes} THEN {inner.whole}\n{outer.cases}", outer.otherwise, nesting
            )
    return said[0]


def _part(goes: str, goes_not: str, share: float) -> str:
    """Part of a row that goes to a side."""
    return f"CASE WHEN {goes} THEN 1e0 WHEN {goes_not} THEN 0e0 ELSE {_literal(share)} END"


def _conditions(
    formula: Formula, number: int, node: int, values: dict[int, str]
) -> tuple[str, str]:
    """When rows that have the value go to the left, and when to the right."""
    tree = formula.trees[number]
    value, members = values[int(tree.feature[node])], tree.category_set(node).tolist()
    if not members:
        if np.isinf(compared(tree.threshold[node])):
            return f"{value} IS NOT NULL", f"{value} <> {value}"
        threshold = _literal(float(tree.threshold[node]))
        return f"{value} <= {threshold}", f"{value} > {threshold}"
    inside = _joined([f"{value} = {code}" for code in members], " OR ")
    outside = f"NOT {inside}"
    return (outside, inside) if tree.missing_left[node] else (inside, outside)
