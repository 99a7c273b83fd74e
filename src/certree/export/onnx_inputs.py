"""The inputs of ONNX graphs: a tensor of numbers, or a tensor for each column of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certree.export.calendar_steps import SHIFT_SECONDS, ZoneSteps, compute_part
from certree.export.formula import Formula, check_utf8
from certree.rows.categories import UNKNOWN_CODE
from certree.rows.dates import MICROSECONDS_PER_DAY

if TYPE_CHECKING:
    from certree.export.onnx_graph import Graph

# Number that stands for a missing date; it is NumPy's NaT.
MISSING_DATE = -(2**63)


def expect_inputs(formula: Formula, inputs: str, outputs: Sequence[str]) -> None:
    """Raise ValueError if `inputs` is unknown, or does not suit the features of a model.

    Parameters
    ----------
    formula : Formula
        The fitted model.
    inputs : {"matrix", "named"}
        Whether rows are one tensor, which cannot hold dates, or one for each feature.
    outputs : sequence of str
        Names of the outputs of the graph, which inputs must not have.
    """
    if inputs not in ("matrix", "named"):
        raise ValueError(f'inputs must be "matrix" or "named", got {inputs!r}')
    if inputs == "matrix" and formula.dates:
        raise ValueError(
            'inputs must be "named" for a model of dates, which a tensor of floats would round, got '
            '"matrix": use to_onnx("auto", inputs="named"), which takes dates as int64 microseconds '
            "since 1970"
        )
    if inputs == "named":
        names = _list_columns(formula)
        if refused := [name for name in names if not name or name in outputs]:
            raise ValueError(
                "feature names must not be empty, nor equal to names of outputs, for named inputs of "
                f"ONNX, got {refused[0]!r}: rename the column and fit again"
            )
        for name in names:
            check_utf8(name)


def choose_prefix(formula: Formula) -> str:
    """Return a prefix for the names of a graph's tensors with which no feature name begins.

    formula: the model to export. The prefix is "trees", followed by underscores if needed.
    """
    prefix = "trees"
    while any(str(name).startswith(prefix) for name in formula.names):
        prefix += "_"
    return prefix


def list_named_inputs(formula: Formula, dtype: Any) -> list[tuple[str, Any, list[int | None]]]:
    """Return a tuple (name, dtype, shape) for the input of each feature, of shape (n, 1).

    The caller declares these inputs in the ONNX model; `write_named_inputs` adds the nodes that
    read them. The features are the columns of the table; calendar parts of dates have no inputs.
    Dates and time spans have dtype int64, texts are objects, and other features have `dtype`.
    formula: the model to export.
    """
    return [
        (name, _get_input_dtype(formula, j, dtype), [None, 1])
        for j, name in enumerate(_list_columns(formula))
    ]


def _list_columns(formula: Formula) -> list[str]:
    """Return the names of the features that a user passes as columns: all but calendar parts.

    formula: the model to export. It computes calendar parts, such as the weekday, from its date
    columns.
    """
    return [str(name) for name in formula.names[: formula.n_features - len(formula.parts)]]


def _get_input_dtype(formula: Formula, feature: int, dtype: Any) -> Any:
    """Return the NumPy dtype of the ONNX input of a feature: int64, object (texts) or `dtype`.

    formula: the model to export; feature: index of the feature; dtype: dtype of numeric features.
    Dates are int64.
    """
    if formula.dates and feature in formula.dates:
        return np.dtype(np.int64)
    return np.dtype(object) if _has_texts(formula, feature) else dtype


def _has_texts(formula: Formula, feature: int) -> bool:
    """Return whether a feature is categorical with text categories, or with unknown ones.

    formula: the model to export; feature: index of the feature. Categories are unknown if the model
    file does not have their names.
    """
    names = formula.get_categories(feature)
    return names is not None and (not names or isinstance(names[0], str))


def write_named_inputs(graph: Graph, formula: Formula) -> str:
    """Add nodes that join the named inputs to a tensor of rows, and return the name of that tensor.

    The nodes read one input for each feature. This function does not declare these inputs: the
    caller adds those that `list_named_inputs` returns to the ONNX model. Dates become days, and
    categories their codes in the model. Missing values become NaN, and categories that are not of
    the model -1, or NaN if the model treats them as missing. The last columns of the tensor are the
    calendar parts, such as weekdays, that the model computes from dates.

    graph: the graph to which nodes are added; the tensor, (n, p), has its dtype. formula: the
    fitted model.
    """
    columns = []
    names = _list_columns(formula)
    for j, name in enumerate(names):
        categories = formula.get_categories(j)
        if formula.dates and j in formula.dates:
            columns.append(_write_days(graph, name))
        elif _has_texts(formula, j):
            texts = [*map(str, categories or ())]
            columns.append(_write_text_codes(graph, name, texts, formula.has_code_of_unknown))
        elif categories is not None:
            has_code = formula.has_code_of_unknown
            columns.append(write_number_codes(graph, name, categories, has_code))
        else:
            columns.append(name)
    seconds: dict[int, _Node] = {}
    for one in formula.parts:
        if one.feature not in seconds:
            seconds[one.feature] = _write_seconds(graph, names[one.feature], one.column.zone)
        number = compute_part(one.part, seconds[one.feature], lambda node: node)
        missing = graph.add("IsNaN", columns[one.feature])
        unknown = graph.constant([[np.nan]], graph.dtype)
        columns.append(graph.add("Where", missing, unknown, graph.cast(number.name, graph.dtype)))
    return graph.add("Concat", *columns, axis=1)


class _Node(NamedTuple):
    """An integer tensor of an ONNX graph, with which one computes as with a number >= 0.

    The operators +, -, *, % and // take an integer or another `_Node` on their right. They add a
    node to the graph, and return the `_Node` of its output. For negative numbers // rounds toward 0.

    Parameters
    ----------
    graph : Graph
        The graph.
    name : str
        Name of the tensor, (n, 1) int64.
    """

    graph: Graph
    name: str

    def _apply(self, operator: str, other: Any) -> _Node:
        operand = other.name if isinstance(other, _Node) else _add_integer(self.graph, other)
        return _Node(self.graph, self.graph.add(operator, self.name, operand))

    def __add__(self, other: Any) -> _Node:
        return self._apply("Add", other)

    def __sub__(self, other: Any) -> _Node:
        return self._apply("Sub", other)

    def __mul__(self, other: Any) -> _Node:
        return self._apply("Mul", other)

    def __mod__(self, other: Any) -> _Node:
        return self._apply("Mod", other)

    def __floordiv__(self, other: Any) -> _Node:
        return self._apply("Div", other)


def _add_integer(graph: Graph, number: Any) -> str:
    """Add an int64 constant of shape (1, 1) to a graph, and return the name of its tensor.

    number: an integer, the value of the constant.
    """
    return graph.constant([[int(number)]], np.int64)


def _write_seconds(graph: Graph, column: str, zone: str | None) -> _Node:
    """Add nodes that turn microseconds since 1970 UTC into seconds since 1970 in local time.

    `SHIFT_SECONDS`, the seconds of 2000 years, are added so that the result is not negative. graph:
    the graph, to which nodes are added. column: name of the input with microseconds, (n, 1) int64.
    zone: name of the time zone of the result; None: no zone. Missing dates become 1970-01-01. The
    result is the tensor of seconds, (n, 1).
    """
    missing = graph.add("Equal", column, _add_integer(graph, MISSING_DATE))
    known = graph.add("Where", missing, _add_integer(graph, 0), column)
    utc = (_Node(graph, known) + SHIFT_SECONDS * 10**6) // 10**6
    steps = ZoneSteps.find(zone)
    local = utc + int(steps.offsets[0])
    if not len(steps.starts):
        return local
    starts = graph.constant([steps.starts.tolist()], np.int64)
    is_after = graph.cast(graph.add("GreaterOrEqual", utc.name, starts), np.float64)
    changes = graph.constant(np.diff(steps.offsets)[:, None], np.float64)
    change = graph.cast(graph.add("MatMul", is_after, changes), np.int64)
    return local + _Node(graph, change)


def _write_days(graph: Graph, column: str) -> str:
    """Add nodes to a graph that convert microseconds (int64) to days; return the name of the result.

    Both count from 1970-01-01. graph: the graph, whose float dtype the result has; column: name of
    the tensor of microseconds, (n, 1), in which `MISSING_DATE` stands for a missing date, which
    becomes NaN.
    """
    missing = graph.add("Equal", column, graph.constant([[MISSING_DATE]], np.int64))
    per_day = graph.constant([[MICROSECONDS_PER_DAY]], np.float64)
    days = graph.add("Div", graph.cast(column, np.float64), per_day)
    known = graph.add("Where", missing, graph.constant([[np.nan]], np.float64), days)
    return graph.cast(known, graph.dtype)


def _write_text_codes(graph: Graph, column: str, names: list[str], has_code: bool) -> str:
    """Add nodes that turn texts into category codes; return the name of the codes.

    A category code is the index of a category in `names`; if `names` is empty, all texts become
    NaN. The empty text is a missing value unless it is a category. has_code: whether unknown
    categories become -1, not NaN. graph: the graph, whose float dtype the codes have; column: name
    of the tensor of texts, (n, 1).
    """
    for name in names:
        check_utf8(name)
    keys = names if "" in names else [*names, ""]
    codes = [*map(float, range(len(names))), *[np.nan] * (len(keys) - len(names))]
    default = UNKNOWN_CODE if has_code and names else np.nan
    values = {"keys_strings": keys, "values_floats": codes, "default_float": default}
    (encoded,) = graph.add_many(
        "LabelEncoder", [column], [graph.make_name()], domain="ai.onnx.ml", **values
    )
    return graph.cast(encoded, graph.dtype)


def write_number_codes(graph: Graph, column: str, names: Sequence[Any], has_code: bool) -> str:
    """Add nodes that turn numbers into category codes; return the name of the codes.

    graph: the graph, to which nodes are added. column: name of a tensor (n, 1) in the dtype of the
    graph, NaN for missing values. names: the categories, whose indices are their codes. has_code:
    whether unknown categories become -1; otherwise they become NaN.
    """
    categories = graph.constant(np.array([names], dtype=graph.dtype))
    is_equal = graph.cast(graph.add("Equal", column, categories), graph.dtype)
    code, n_matches = (
        graph.add("MatMul", is_equal, graph.constant(weights[:, None], graph.dtype))
        for weights in (np.arange(len(names)), np.ones(len(names)))
    )
    unknown = graph.constant(np.nan, graph.dtype)
    if has_code:
        code_of_unknown = graph.constant(UNKNOWN_CODE, graph.dtype)
        unknown = graph.add("Where", graph.add("IsNaN", column), unknown, code_of_unknown)
    return graph.add("Where", graph.cast(n_matches, np.bool_), code, unknown)
