"""Converters for skl2onnx, with which whole pipelines become graphs of ONNX."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from certree.export.formula import Formula
from certree.export.onnx_graph import OPSET, Graph, class_labels, write
from certree.interface.extras import import_extra
from certree.rows.training import TakesRows

_ML_OPSET = 3
# Whether probabilities are dictionaries: skl2onnx adds the nodes that make them.
_OF_CLASSIFIERS = {"zipmap": [True, False, "columns"], "nocl": [True, False]}


def register_converters() -> None:
    """Let skl2onnx convert pipelines that end with an estimator of certree.

    The estimator takes one tensor of numbers, float32 or float64, as it does in `to_onnx`; a step
    before it codes categories. As skl2onnx knows ``ai.onnx.ml`` up to version 3, sets of categories
    become chains of comparisons.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    """
    register = import_extra("skl2onnx", "onnx").update_registered_converter
    for estimator in _kinds_of(TakesRows):
        register(
            estimator,
            f"Certree{estimator.__name__}",
            _set_shapes,
            _convert,
            options=_OF_CLASSIFIERS if issubclass(estimator, ClassifierMixin) else None,
        )


def _kinds_of(kind: type) -> Iterator[type]:
    """All classes derived from one that can be fitted and exported, those of others included."""
    below: list[type] = kind.__subclasses__()
    for one in below:
        if hasattr(one, "fit") and hasattr(one, "_formula"):
            yield one
        yield from _kinds_of(one)


def _set_shapes(operator: Any) -> None:
    """Tell skl2onnx what the outputs are."""
    types = import_extra("skl2onnx.common.data_types", "onnx")
    formula = operator.raw_operator._formula()
    rows = operator.inputs[0].type
    n = rows.shape[0] if rows.shape else None
    number = (
        types.DoubleTensorType
        if isinstance(rows, types.DoubleTensorType)
        else types.FloatTensorType
    )
    outputs = operator.outputs
    if formula.classes is None:
        outputs[0].type = number([n, 1])
        return
    kind = class_labels(formula).dtype.kind
    label = {"i": types.Int64TensorType, "f": types.DoubleTensorType, "O": types.StringTensorType}[
        kind
    ]
    outputs[0].type, outputs[1].type = label([n]), number([n, len(formula.classes)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the nodes of an estimator into the graph of a pipeline."""
    types = import_extra("skl2onnx.common.data_types", "onnx")
    rows = operator.inputs[0]
    dtype = np.float64 if isinstance(rows.type, types.DoubleTensorType) else np.float32
    graph = Graph(scope.get_unique_operator_name("certree"), np.dtype(dtype), ml_opset=_ML_OPSET)
    formula = operator.raw_operator._formula()
    write(graph, formula, _coded(graph, formula, rows.full_name), operator.output_full_names)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets |= {("", OPSET), ("ai.onnx.ml", _ML_OPSET)}


def _coded(graph: Graph, formula: Formula, rows: str) -> str:
    """Rows whose categories are codes: places among those of the fit, and NaN for any other.

    What codes categories before the estimator has seen all rows, the estimator perhaps some of them.
    """
    columns, changed = [], False
    for j in range(formula.n_features):
        column = graph.add("Gather", rows, graph.constant([j], np.int64), axis=1)
        names = formula.categories_of(j)
        if names is not None and _are_numbers_elsewhere(names):
            known = graph.constant(np.array([names], dtype=graph.dtype))
            same = graph.cast(graph.add("Equal", column, known), graph.dtype)
            place, times = (
                graph.add("MatMul", same, graph.constant(weights[:, None], graph.dtype))
                for weights in (np.arange(len(names)), np.ones(len(names)))
            )
            unknown = graph.constant(np.nan, graph.dtype)
            column = graph.add("Where", graph.cast(times, np.bool_), place, unknown)
            changed = True
        columns.append(column)
    return graph.add("Concat", *columns, axis=1) if changed else rows


def _are_numbers_elsewhere(names: Sequence[Any]) -> bool:
    """Whether categories are numbers other than their places."""
    numbers = all(isinstance(name, int | float) for name in names)
    return numbers and list(names) != list(range(len(names)))
