"""Converters for skl2onnx, which convert whole pipelines to ONNX graphs."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

import certree
from certree.export.formula import Formula, expect_no_parts
from certree.export.onnx_graph import OPSET, Graph, make_class_labels, write_formula
from certree.export.onnx_inputs import expect_inputs, write_number_codes
from certree.interface.extras import import_extra
from certree.rows.training import RowInputMixin

_ML_OPSET = 3
# Options of skl2onnx: whether it adds nodes that turn probabilities into dictionaries.
_CLASSIFIER_OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False]}


def register_converters() -> None:
    """Let skl2onnx convert pipelines that end with an estimator of certree.

    Call it once before skl2onnx's ``to_onnx``. It registers a converter for each estimator class
    that can be exported. The estimator takes one tensor of numbers, float32 or float64, as in
    `to_onnx`; a step before it must encode categories. skl2onnx supports ``ai.onnx.ml`` up to
    version 3, so categorical splits become chains of comparisons.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    """
    register = import_extra("skl2onnx", "onnx").update_registered_converter
    for name in certree.__all__:
        getattr(certree, name)  # This imports the packages of all estimators, which are lazy.
    for estimator in _iterate_exportable_estimators(RowInputMixin):
        register(
            estimator,
            f"Certree{estimator.__name__}",
            _set_shapes,
            _convert,
            options=_CLASSIFIER_OPTIONS if issubclass(estimator, ClassifierMixin) else None,
        )


def _iterate_exportable_estimators(kind: type) -> Iterator[type]:
    """Yield all direct and indirect subclasses of a class that can be fitted and exported.

    These are the subclasses with the methods `fit` and `_build_formula`, which writes a model as
    trees and a link. kind: the class, which is not yielded itself. Subclasses that other packages
    define count if these packages are imported. A class with several parents may come twice.
    """
    subclasses: list[type] = kind.__subclasses__()
    for subclass in subclasses:
        if hasattr(subclass, "fit") and hasattr(subclass, "_build_formula"):
            yield subclass
        yield from _iterate_exportable_estimators(subclass)


def _set_shapes(operator: Any) -> None:
    """Tell skl2onnx the types and shapes of the outputs of an estimator's operator.

    skl2onnx calls it as the shape calculator. operator: its Operator, whose `raw_operator` is the
    fitted estimator. The types of `operator.outputs` are set: labels (n,) and probabilities (n, K)
    for a classifier, numbers (n, 1) for a regressor. Probabilities and numbers are float64 if the
    input is, else float32.
    """
    types = import_extra("skl2onnx.common.data_types", "onnx")
    formula = operator.raw_operator._build_formula()
    expect_inputs(formula, "matrix", [])
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
    kind = make_class_labels(formula).dtype.kind
    label = {"i": types.Int64TensorType, "f": types.DoubleTensorType, "O": types.StringTensorType}[
        kind
    ]
    outputs[0].type, outputs[1].type = label([n]), number([n, len(formula.classes)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes and constants of a fitted estimator to the graph of a pipeline.

    skl2onnx calls it as the converter.

    Parameters
    ----------
    scope : skl2onnx Scope
        Gives names that are unused in the graph.
    operator : skl2onnx Operator
        Describes the step of the pipeline: its `raw_operator` is the fitted estimator. Its only
        input is the tensor of rows, (n, p); its outputs name the tensors to compute.
    container : skl2onnx ModelComponentContainer
        Gets the nodes, the constants and the versions of ONNX that they need.
    """
    types = import_extra("skl2onnx.common.data_types", "onnx")
    rows = operator.inputs[0]
    dtype = np.float64 if isinstance(rows.type, types.DoubleTensorType) else np.float32
    graph = Graph(scope.get_unique_operator_name("certree"), np.dtype(dtype), ml_opset=_ML_OPSET)
    formula = operator.raw_operator._build_formula()
    expect_no_parts(formula, "skl2onnx")
    write_formula(
        graph,
        formula,
        _encode_categories(graph, formula, rows.full_name),
        operator.output_full_names,
    )
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets |= {("", OPSET), ("ai.onnx.ml", _ML_OPSET)}


def _encode_categories(graph: Graph, formula: Formula, rows: str) -> str:
    """Add nodes that turn the numbers of categorical features into the model's category codes.

    In a pipeline, the numbers come from an encoder before the estimator. They are the estimator's
    categories, but not its codes if the encoder has more categories than the rows of the fit.
    Numbers that are no category of the fit become -1, or NaN if they count as missing values.

    Parameters
    ----------
    graph : Graph
        The graph; nodes and constants are added to it.
    formula : Formula
        The fitted estimator: its trees, and how their leaf values become predictions.
    rows : str
        Name of the tensor of rows, (n, p).

    Returns
    -------
    str
        Name of the tensor of rows (n, p), with codes in place of categories: `rows` if nothing has
        to change.
    """
    columns, is_changed = [], False
    for j in range(formula.n_features):
        column = graph.add("Gather", rows, graph.constant([j], np.int64), axis=1)
        names = formula.get_categories(j)
        if names is not None and _needs_encoding(names):
            column = write_number_codes(graph, column, names, formula.has_code_of_unknown)
            is_changed = True
        columns.append(column)
    return graph.add("Concat", *columns, axis=1) if is_changed else rows


def _needs_encoding(names: Sequence[Any]) -> bool:
    """Return whether a feature's categories are numbers other than 0, 1, ... in this order.

    Only such numbers differ from the model's category codes. names: the categories by code. Texts,
    which a tensor of numbers cannot hold, need no encoding: the result is False.
    """
    are_numbers = all(isinstance(name, int | float) for name in names)
    return are_numbers and list(names) != list(range(len(names)))
