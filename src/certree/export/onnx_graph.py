"""Models as ONNX graphs.

Trees are one TreeEnsemble node of ``ai.onnx.ml`` 5, which supports category sets and missing values. A
leaf of it holds only one number, so it holds the number of the leaf. The values of leaves are then
looked up in a table, which may have any number of classes, and float64 where float32 would round.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.export.formula import (
    Formula,
    break_ties_by_label,
    check_int64,
    check_utf8,
    extend_largest_threshold,
    round_down_to_float32,
)
from certree.export.onnx_inputs import (
    MISSING_DATE,
    choose_prefix,
    expect_inputs,
    list_named_inputs,
    write_named_inputs,
)
from certree.export.onnx_ml3 import make_tree_ensemble_regressor
from certree.interface.extras import import_extra
from certree.interface.positive_class import find_positive_class
from certree.rows.precision import warn_of_float32
from certree.tree import Tree

OPSET = 18
_IR_VERSION = 9
_LESS_EQUAL, _MEMBER = 0, 6  # of nodes_modes


_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

# A name, a dtype, and a shape; None stands for any length.
_ValueInfo = tuple[str, Any, Sequence[int | None]]


@dataclass(slots=True)
class Graph:
    """The nodes and constants of an ONNX graph that is being written.

    A tensor of the graph is represented by its name, a string. Methods that add a node return the
    names of its outputs, which are the inputs of later nodes.

    Parameters
    ----------
    prefix : str
        First letters of all names, so that names of graphs that are combined differ.
    dtype : numpy dtype
        Type of the rows and of the predictions: float32 or float64.
    ml_opset : int, default=5
        Version of ``ai.onnx.ml``, the ONNX operators of trees: 5, or 3, in which category sets are
        chains of comparisons.
    nodes : list of onnx.NodeProto
        The nodes so far, each after those whose outputs it reads.
    constants : list of onnx.TensorProto
        The constants so far.
    """

    prefix: str
    dtype: Any
    ml_opset: int = 5
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def make_subgraph(self, name: str) -> "Graph":
        """Return an empty graph of the same types, to become the body of a control-flow node.

        name: added to the prefix of this graph, so that names in both differ. Constants added to
        the new graph become constants of this one.
        """
        return Graph(f"{self.prefix}_{name}", self.dtype, self.ml_opset, [], self.constants)

    def make_name(self) -> str:
        """Return a name for a node's output that no other output has: the prefix and a number.

        Repeated calls return the same name until a node is added.
        """
        return f"{self.prefix}_{len(self.nodes)}"

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add a constant tensor to the graph, and return its name.

        values: a number or an array of any shape. dtype: the numpy type to store it in; None: the
        type that numpy gives to the values.
        """
        name = f"{self.prefix}_constant_{len(self.constants)}"
        array = np.ascontiguousarray(values, dtype) if np.ndim(values) else np.array(values, dtype)
        self.constants.append(import_extra("onnx.numpy_helper", "onnx").from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, and return the name of the output.

        Parameters
        ----------
        op : str
            Name of an operator of ONNX, such as "Add".
        *inputs : str
            Names of the input tensors.
        output : str or None
            Name that the output gets; None: a new name.
        **attributes : object
            Attributes of the node, such as ``axis=1``.
        """
        return self.add_many(op, inputs, [output or self.make_name()], **attributes)[0]

    def add_many(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: list[str],
        domain: str = "",
        **attributes: Any,
    ) -> list[str]:
        """Add a node with any number of outputs, and return the names of the outputs.

        Parameters
        ----------
        op : str
            Name of an operator of ONNX, such as "TopK".
        inputs : sequence of str
            Names of the input tensors; "" for an optional input that is left out.
        outputs : list of str
            Names that the outputs get.
        domain : str, default=""
            Domain of the operator: "" for standard ONNX, or "ai.onnx.ml".
        **attributes : object
            Attributes of the node, such as ``axis=1``.

        Returns
        -------
        list of str
            `outputs`.
        """
        make_node = import_extra("onnx.helper", "onnx").make_node
        name = f"{self.prefix}_{op}_{len(self.nodes)}"
        self.nodes.append(make_node(op, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs

    def cast(self, name: str, dtype: Any) -> str:
        """Add a node that casts the tensor called `name` to a type; return the result's name.

        dtype: a numpy dtype, such as np.int64.
        """
        return self.add("Cast", name, to=_get_onnx_type(dtype))

    def build(self, outputs: Sequence[_ValueInfo], inputs: Sequence[_ValueInfo] = ()) -> Any:
        """Return the nodes so far as an onnx.GraphProto, to be the body of a control-flow node.

        outputs, inputs: tuples (name, dtype, shape) of the outputs and inputs of the body; a None
        in a shape stands for any length. Constants are not included: they belong to the outermost
        graph.
        """
        begin, end = ([_make_value_info(*value) for value in ends] for ends in (inputs, outputs))
        return import_extra("onnx.helper", "onnx").make_graph(self.nodes, self.prefix, begin, end)


def make_onnx_model(
    formula: Formula, dtype: str, inputs: str = "matrix", pos_label: Any = None
) -> Any:
    """Return a fitted model as an ONNX model.

    With inputs="matrix" its input "X" holds rows (n, p) as numbers, with NaN for missing values and
    codes in place of categories. With inputs="named" there is an input (n, 1) for each feature, as
    `list_named_inputs` describes.

    Parameters
    ----------
    formula : Formula
        The fitted model: its trees, and how their leaf values become predictions.
    dtype : {"float32", "float64", "auto"}
        Type of the input and of the predictions. "auto" is float64 if a feature needs it or
        predictions may exceed float32, else float32. Dates need float64.
    inputs : {"matrix", "named"}, default="matrix"
        Whether rows are one tensor, or one for each feature.
    pos_label : object or None
        The positive one of two classes, which the metadata name; None: no such entry.

    Returns
    -------
    onnx.ModelProto
        Outputs are "label" and "probabilities" of a classifier, or "variable", the predicted
        numbers. Names of features and categories are in its metadata as JSON.

    Raises
    ------
    ValueError
        If `dtype` or `inputs` is none of these values or does not suit dates, predictions or leaf
        numbers may be too large for float32, or `pos_label` is not one of two classes.
    """
    positive = find_positive_class(formula.classes, pos_label)
    if dtype not in ("float32", "float64", "auto"):
        raise ValueError(f'dtype must be "float32", "float64" or "auto", got {dtype!r}')
    if dtype == "auto":
        needs_float64 = bool(formula.float64_names or formula.dates)
        needs_float64 |= _predicts_beyond_float32(formula)
        dtype = "float64" if needs_float64 else "float32"
    make = import_extra("onnx.helper", "onnx")
    named = inputs == "named"
    graph = Graph(choose_prefix(formula) if named else "trees", np.dtype(dtype))
    ends = list_outputs(formula, graph.dtype)
    names = [name for name, _, _ in ends]
    expect_inputs(formula, inputs, names)
    _expect_float64_for_dates(formula, dtype)
    starts: Sequence[_ValueInfo] = [("X", graph.dtype, [None, formula.n_features])]
    if named:
        starts = list_named_inputs(formula, graph.dtype)
    write_formula(graph, formula, write_named_inputs(graph, formula) if named else "X", names)
    rows, outputs = ([_make_value_info(*value) for value in values] for values in (starts, ends))
    onnx_graph = make.make_graph(graph.nodes, "certree", rows, outputs, graph.constants)
    opsets = [make.make_opsetid("", OPSET), make.make_opsetid("ai.onnx.ml", graph.ml_opset)]
    model = make.make_model(
        onnx_graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="certree"
    )
    metadata = _make_metadata(formula)
    if pos_label is not None:
        metadata["pos_label"] = formula.labels[positive]
    make.set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
    return model


def _expect_float64_for_dates(formula: Formula, dtype: str) -> None:
    """Raise ValueError if `dtype` is "float32" and the model has date features, which it would round.

    formula: the model to export; dtype: "float32" or "float64".
    """
    if formula.dates and dtype == "float32":
        raise ValueError(
            'dtype must be "float64" or "auto" for a model of dates, which float32 would round to '
            'minutes, got "float32"'
        )


def _make_metadata(formula: Formula) -> dict[str, Any]:
    """Return the description of a model's features that the ONNX graph has as metadata.

    formula: the model to export. Keys are "feature_names", a list, and, if there are any, "parts"
    (for the name of each calendar part its date feature, "of", and "part", such as "month"),
    "categories" (for each feature the list of its categories, or None if it is numeric), and
    "dates" (for the name of each date feature "kind", "zone", "unit", and "missing", the integer
    that stands for a missing date).
    """
    metadata: dict[str, Any] = {"feature_names": formula.names}
    if formula.parts:
        metadata["parts"] = {
            formula.names[formula.n_features - len(formula.parts) + k]: {
                "of": formula.names[one.feature],
                "part": one.part,
            }
            for k, one in enumerate(formula.parts)
        }
    if formula.categories is not None:
        features = map(formula.get_categories, range(formula.n_features))
        metadata["categories"] = [None if names is None else list(names) for names in features]
    if formula.dates:
        metadata["dates"] = {
            str(formula.names[j]): {
                "kind": one.kind,
                "zone": one.zone,
                "unit": one.unit.replace("days", "microseconds"),
                "missing": MISSING_DATE,
            }
            for j, one in formula.dates.items()
        }
    return metadata


def list_outputs(formula: Formula, dtype: Any) -> list[_ValueInfo]:
    """Return a tuple (name, dtype, shape) for each output of a model's graph.

    The first length of each shape is None, which stands for any number n of rows. formula: the
    trees of the fitted model, and how their leaf values become predictions. A numeric target has
    "variable", of `dtype`, (n, n_outputs). A classifier has "label", (n,), and "probabilities", of
    `dtype`, (n, K). skl2onnx uses these names, too. dtype: float32 or float64.
    """
    if formula.classes is None:
        return [("variable", dtype, [None, formula.n_outputs])]
    return [
        ("label", make_class_labels(formula).dtype, [None]),
        ("probabilities", dtype, [None, len(formula.classes)]),
    ]


def make_class_labels(formula: Formula) -> NDArray[Any]:
    """Return the classes of a classifier as an array (K,) of int64, float64 or strings (objects).

    These are the types that ONNX supports; booleans become integers. formula: the fitted
    classifier, which has the classes.

    Raises
    ------
    ValueError
        If an integer has more than 64 bits, or a string has no encoding in UTF-8.
    """
    labels = formula.labels
    if isinstance(labels[0], str):
        for label in labels:
            check_utf8(label)
        return np.array(labels, dtype=object)
    if isinstance(labels[0], float):
        return np.array(labels, dtype=np.float64)
    check_int64(max(labels))
    return np.array(labels, dtype=np.int64)


def _make_value_info(name: str, dtype: Any, shape: Sequence[int | None]) -> Any:
    """Return the onnx.ValueInfoProto that describes an input or output of a graph.

    Parameters
    ----------
    name : str
        Name of the tensor.
    dtype : numpy dtype
        Type of the tensor's numbers.
    shape : sequence of int or None
        Shape of the tensor; None stands for any length.

    Returns
    -------
    onnx.ValueInfoProto
    """
    make = import_extra("onnx.helper", "onnx")
    return make.make_tensor_value_info(name, _get_onnx_type(dtype), shape)


def _get_onnx_type(dtype: Any) -> int:
    """Return the constant of onnx.TensorProto for a numpy dtype, such as 1 (FLOAT) for float32."""
    number: int = import_extra("onnx.helper", "onnx").np_dtype_to_tensor_dtype(np.dtype(dtype))
    return number


def write_formula(graph: Graph, formula: Formula, rows: str, outputs: list[str]) -> None:
    """Add to a graph the nodes that compute the predictions of a model.

    Parameters
    ----------
    graph : Graph
        The graph; nodes and constants are added to it.
    formula : Formula
        The fitted model: its trees, and how their leaf values become predictions.
    rows : str
        Name of the tensor of rows (n, p), with codes in place of categories, in the dtype of the
        graph.
    outputs : list of str
        Names that the tensors of predictions get: [labels (n,), probabilities (n, K)] for a
        classifier, [predicted numbers (n, n_outputs)] for a regressor.

    Raises
    ------
    ValueError
        If the graph has dtype float32, and predictions or leaf numbers may be too large for it.
    """
    if graph.dtype == np.float32:
        _check_float32(formula)
    if formula.kind != "tree":
        _write_ensemble(graph, formula, rows, outputs)
    elif not formula.has_fractional_routing:
        _write_tree(graph, formula, rows, outputs)
    else:
        # Some value is missing if the sum of all is NaN, which is the cheapest test.
        lacking = graph.add("IsNaN", graph.add("ReduceSum", rows, keepdims=0))
        branches = {}
        for branch, write_branch in (
            ("then_branch", _write_fractional_routing),
            ("else_branch", _write_tree),
        ):
            inner = graph.make_subgraph(branch)
            values = list_outputs(formula, graph.dtype)
            ends = [(f"{inner.prefix}_{name}", dtype, shape) for name, dtype, shape in values]
            write_branch(inner, formula, rows, [name for name, *_ in ends])
            branches[branch] = inner.build(ends)
        graph.add_many("If", [lacking], outputs, **branches)


def _predicts_beyond_float32(formula: Formula) -> bool:
    """Return whether predicted numbers may exceed the largest float32; False for classifiers.

    Predictions are bounded by the size of the start score (the constant that trees are added to)
    plus the sum (for a forest, the mean) of the largest absolute leaf values of all trees, although
    no row may reach all of these leaves. With the link "exp" only the start score is compared, with
    the logarithm of the largest float32: leaves change it little. formula: the trees of the fitted
    model, and how their leaf values become predictions.
    """
    if formula.classes is not None:
        return False
    start = np.abs(formula.start)
    if formula.link == "exp":
        return bool((formula.start > np.log(_LARGEST_FLOAT32)).any())
    leaves = [np.abs(tree.value[tree.is_leaf]).max(axis=0) for tree in formula.trees]
    scale = len(leaves) if formula.kind == "forest" else 1
    with np.errstate(over="ignore"):
        return bool(
            (
                np.sum([largest / scale for largest in leaves], axis=0) + start > _LARGEST_FLOAT32
            ).any()
        )


def _check_float32(formula: Formula) -> None:
    """Check that a graph of float32 can hold the predictions of a formula.

    Raise ValueError if predictions may exceed the largest float32. Warn with a UserWarning if some
    features need float64 to reach the same leaves. formula: the trees of the fitted model, and how
    their leaf values become predictions.
    """
    if _predicts_beyond_float32(formula):
        raise ValueError(
            'dtype must be "float64" or "auto", as predictions may be larger than '
            f"{_LARGEST_FLOAT32:.3g}, the largest number of float32: pass one of these, or fit to y in "
            "a larger unit"
        )
    remedy = 'Use dtype="float64", or dtype="auto", which means float64 if a feature needs it.'
    warn_of_float32(formula.float64_names, "The graph takes rows of float32", remedy)


def _write_leaf_numbers(graph: Graph, formula: Formula, rows: str) -> str:
    """Add nodes that find the leaf of each row in each tree, and return the name of their output.

    Leaves are numbered 0, 1, ... through all trees of `formula`, in the order of trees and nodes.

    Parameters
    ----------
    graph : Graph
        The graph; nodes and constants are added to it.
    formula : Formula
        The fitted model with its trees.
    rows : str
        Name of the tensor of rows, (n, p).

    Returns
    -------
    str
        Name of an int64 tensor (n, T) for T trees, with the number of the leaf that each row
        reaches.

    Raises
    ------
    ValueError
        If float32 cannot hold the number of every leaf.
    """
    n_leaves = sum(tree.n_leaves for tree in formula.trees)
    if graph.dtype == np.float32 and n_leaves > 2**24:
        raise ValueError(
            'dtype must be "float64" for more than 2**24 leaves, whose numbers float32 does not hold, '
            f'got "float32" and {n_leaves} leaves: pass dtype="float64"'
        )
    make_attributes, op = (
        (_make_tree_ensemble, "TreeEnsemble")
        if graph.ml_opset >= 5
        else (make_tree_ensemble_regressor, "TreeEnsembleRegressor")
    )
    attributes = make_attributes(formula.trees, graph.dtype)
    (number,) = graph.add_many(op, [rows], [graph.make_name()], domain="ai.onnx.ml", **attributes)
    return graph.cast(number, np.int64)


def _make_tree_ensemble(trees: Sequence[Tree], dtype: Any) -> dict[str, Any]:
    """Return the attributes of a TreeEnsemble node (``ai.onnx.ml`` 5) that returns leaf numbers.

    The result has the values of the attributes by name, such as "nodes_splits". trees: T trees,
    each of which fills a column of the output. dtype: numpy type of the input rows and of the
    output. The output (n, T) holds the number of the leaf that a row reaches; leaves are numbered
    0, 1, ... through all trees.
    """
    tree_columns: list[dict[str, NDArray[Any]]] = []
    n_nodes = n_leaves = 0
    for tree in trees:
        tree_columns.append(_make_node_columns(tree, n_nodes, n_leaves))
        n_nodes += len(tree_columns[-1]["featureids"])
        n_leaves += tree.n_leaves
    columns = {
        name: np.concatenate([nodes[name] for nodes in tree_columns]) for name in tree_columns[0]
    }
    as_tensor = import_extra("onnx.numpy_helper", "onnx").from_array
    splits = round_down_to_float32(columns["splits"]) if dtype == np.float32 else columns["splits"]
    sizes = [tree.n_leaves for tree in trees]
    starts = np.cumsum([0, *(len(nodes["featureids"]) for nodes in tree_columns[:-1])])
    tensors = {
        "nodes_modes": columns["modes"].astype(np.uint8),
        "nodes_splits": splits,
        "leaf_weights": np.arange(n_leaves, dtype=dtype),
    }
    if len(columns["members"]):
        tensors["membership_values"] = columns["members"].astype(dtype)
    numbers = ("featureids", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    return {
        "n_targets": len(trees),
        "aggregate_function": 1,
        "tree_roots": starts.tolist(),
        "leaf_targetids": np.repeat(np.arange(len(trees)), sizes).tolist(),
        "nodes_missing_value_tracks_true": columns["missing_true"].tolist(),
        **{f"nodes_{name}": columns[name].tolist() for name in numbers},
        **{name: as_tensor(values, name) for name, values in tensors.items()},
    }


def _make_node_columns(tree: Tree, first_node: int, first_leaf: int) -> dict[str, NDArray[Any]]:
    """Return the splits of a tree as columns, by names like those of a TreeEnsemble's attributes.

    Parameters
    ----------
    tree : Tree
        The tree.
    first_node, first_leaf : int
        Numbers of the first split and the first leaf of the tree, after those of the trees before.

    Returns
    -------
    dict of str to ndarray
        "featureids", "modes" (0: value <= threshold, 6: value in a category set), "splits"
        (threshold; 0 for a set), "missing_true" (1 if NaN goes to the true child), "truenodeids"
        and "falsenodeids" (numbers of the children among splits or leaves), "trueleafs" and
        "falseleafs" (1 if they are leaves), with an entry for each split; and "members", the
        category sets of all splits, each ended by NaN. The true child is the left one of a
        threshold, and the one that takes the members of a set. A tree of a single leaf has one
        split, to this leaf on both sides.
    """
    inner, is_leaf = np.flatnonzero(~tree.is_leaf), tree.is_leaf
    if not len(inner):  # ONNX needs a node: both of its children are the leaf.
        zero, leaf = np.zeros(1, dtype=np.int64), np.array([first_leaf])
        names = ("featureids", "modes", "missing_true")
        both = {
            "truenodeids": leaf,
            "falsenodeids": leaf,
            "trueleafs": zero + 1,
            "falseleafs": zero + 1,
        }
        return {**dict.fromkeys(names, zero), **both, "splits": np.zeros(1), "members": np.zeros(0)}
    place = np.where(
        is_leaf, np.cumsum(is_leaf) - 1 + first_leaf, np.cumsum(~is_leaf) - 1 + first_node
    )
    sizes = np.diff(tree.category_start)[inner]
    has_set, missing_left = sizes > 0, tree.missing_left[inner]
    left, unseen_left = tree.left[inner], tree.unseen_left[inner]
    true = np.where(unseen_left, left + 1, left)
    false = 2 * left + 1 - true
    # NaN ends the members of each set.
    members = np.insert(tree.categories.astype(np.float64), np.cumsum(sizes[has_set]), np.nan)
    return {
        "featureids": tree.feature[inner].astype(np.int64),
        "modes": np.where(has_set, _MEMBER, _LESS_EQUAL),
        "splits": np.where(has_set, 0.0, extend_largest_threshold(tree.threshold[inner])),
        "missing_true": (missing_left != unseen_left).astype(np.int64),
        "truenodeids": place[true],
        "trueleafs": is_leaf[true].astype(np.int64),
        "falsenodeids": place[false],
        "falseleafs": is_leaf[false].astype(np.int64),
        "members": members,
    }


def _get_leaf_values(graph: Graph, formula: Formula) -> NDArray[Any]:
    """Return the leaf values of a model with a single tree, (n_leaves, n_outputs).

    Leaves are in the order of their indices in the tree. Values are rounded to the dtype of the
    graph. For a classifier the most probable class of a leaf stays the same after rounding: if it
    ties with an earlier class, its value becomes the next larger floating-point number. formula:
    the trees of the fitted model, and how their leaf values become predictions. graph: its dtype is
    that of the values.
    """
    tree = formula.trees[0]
    exact = tree.value[tree.is_leaf]
    values = exact.astype(graph.dtype)
    return values if formula.classes is None else break_ties_by_label(values, exact.argmax(axis=1))


def _write_tree(graph: Graph, formula: Formula, rows: str, outputs: list[str]) -> None:
    """Add to a graph the nodes that predict with a model of a single tree.

    In the tree every row goes to one child of a node, also a row with a missing value;
    `_write_fractional_routing` is for trees that send some rows to both children.

    graph: nodes and constants are added to it. formula: the fitted model. rows: name of the tensor
    of rows, (n, p). outputs: names for the tensors of predictions: labels (n,) and probabilities
    (n, K) of a classifier, or numbers (n, n_outputs).
    """
    numbers = _write_leaf_numbers(graph, formula, rows)
    values = _get_leaf_values(graph, formula)
    graph.add("GatherND", graph.constant(values), numbers, output=outputs[-1])
    if formula.classes is not None:
        labels = make_class_labels(formula)[values.argmax(axis=1)]
        graph.add("GatherND", graph.constant(labels), numbers, output=outputs[0])


def _write_ensemble(graph: Graph, formula: Formula, rows: str, outputs: list[str]) -> None:
    """Add to a graph the nodes that predict with a forest or boosted trees.

    The nodes look up leaf values, sum them or take their mean over the trees, and apply the link of
    `formula`, the function from these sums to predictions.

    graph: nodes and constants are added to it. formula: the fitted model. rows: name of the tensor
    of rows, (n, p). outputs: names for the tensors of predictions: labels (n,) and probabilities
    (n, K) of a classifier, or numbers (n, n_outputs).
    """
    numbers = _write_leaf_numbers(graph, formula, rows)
    table = np.concatenate([tree.value[tree.is_leaf] for tree in formula.trees])
    with np.errstate(over="ignore"):  # Values that overflow stay float64.
        narrow = table.astype(np.float32)
    values = graph.add(
        "Gather", graph.constant(narrow if (narrow == table).all() else table), numbers
    )
    total = graph.add("ReduceSum", graph.cast(values, np.float64), graph.constant([1]), keepdims=0)
    if formula.kind == "forest":
        scores = graph.add("Div", total, graph.constant(float(len(formula.trees))))
    else:
        # Sum, as onnxruntime drops an Add of a constant that is 0 in float32.
        scores = graph.add("Sum", total, graph.constant(formula.start))
    if formula.classes is None:
        predicted = _write_numbers(graph, formula, scores)
    else:
        ranked, predicted = _write_probabilities(graph, formula, scores)
        _write_label(graph, formula, ranked, outputs[0])
    graph.add("Cast", predicted, output=outputs[-1], to=_get_onnx_type(graph.dtype))


def _write_numbers(graph: Graph, formula: Formula, scores: str) -> str:
    """Add nodes that turn outputs into predicted numbers by the link, and return their name.

    The link of the formula is "exp" (e to the power of the outputs), "sorted" (the outputs of each
    row in ascending order) or "identity". For the last one nothing is added, and `scores` is
    returned.

    Parameters
    ----------
    graph : Graph
        The graph; nodes and constants are added to it.
    formula : Formula
        The fitted regressor: its trees, and how their leaf values become predictions.
    scores : str
        Name of the tensor of outputs, (n, n_outputs).

    Returns
    -------
    str
        Name of the tensor of predicted numbers, (n, n_outputs).
    """
    if formula.link == "exp":
        return graph.add("Exp", scores)
    if formula.link == "sorted":
        ends = [graph.make_name(), f"{graph.make_name()}_places"]
        inputs = [scores, graph.constant([formula.n_outputs])]
        return graph.add_many("TopK", inputs, ends, axis=1, largest=0, sorted=1)[0]
    return scores


def _write_label(graph: Graph, formula: Formula, ranked: str, output: str) -> None:
    """Add nodes that give each row the class with the largest value, as a tensor (n,).

    Parameters
    ----------
    graph : Graph
        The graph; nodes and constants are added to it.
    formula : Formula
        The fitted classifier, which has the K classes.
    ranked : str
        Name of a tensor with a value for each class, (n, K). Among equal values the first class is
        predicted.
    output : str
        Name that the tensor of classes gets.
    """
    best = graph.add("ArgMax", ranked, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(make_class_labels(formula)), best, output=output)


def _write_probabilities(graph: Graph, formula: Formula, scores: str) -> tuple[str, str]:
    """Add nodes that turn the outputs of a classifier into class probabilities by its link.

    The link is "softmax", "logistic" (the only output is the log odds of the second class) or
    "shares" (the outputs to a power, divided by their sum).

    Parameters
    ----------
    graph : Graph
        The graph; nodes and constants are added to it.
    formula : Formula
        The fitted classifier: its trees, and how their leaf values become predictions.
    scores : str
        Name of the tensor of outputs, (n, n_outputs).

    Returns
    -------
    ranked : str
        Name of a tensor (n, K) whose largest value in a row is that of the predicted class: the
        values before softmax, sigmoid or power, whose rounding may make classes equal.
    probabilities : str
        Name of the tensor of class probabilities, (n, K).
    """
    if formula.link == "softmax":
        return scores, graph.add("Softmax", scores, axis=1)
    if formula.link == "logistic":
        both = graph.add("Concat", graph.add("Neg", scores), scores, axis=1)
        return both, graph.add("Sigmoid", both)
    if formula.has_second_class_only:
        second = graph.add("Clip", scores, graph.constant(0.0), graph.constant(1.0))
        first = graph.add("Sub", graph.constant(1.0), second)
        scores = graph.add("Concat", first, second, axis=1)
    raised = (
        scores if formula.power == 1 else graph.add("Pow", scores, graph.constant(formula.power))
    )
    return scores, _write_normalization(graph, raised)


def _write_normalization(graph: Graph, values: str) -> str:
    """Add nodes that divide the values of each row, (n, K), by their sum; return the result's name.

    values: name of the tensor of values, whose sums must not be 0. graph: nodes are added to it.
    """
    return graph.add("Div", values, graph.add("ReduceSum", values, graph.constant([1]), keepdims=1))


def _write_fractional_routing(
    graph: Graph, formula: Formula, rows: str, outputs: list[str]
) -> None:
    """Add nodes that predict with a single tree in which rows may go to both children of a node.

    These are rows that lack the value of the node's feature. The prediction is the mean of the
    leaves' values, weighted by the fractions of the row that reach them. It is computed by a Loop
    node of ONNX. Its state is a list of visits: a row, a node, and the fraction of the row there.
    Each row starts at the root. One iteration replaces each visit by visits of the children; leaves
    keep theirs.

    graph: nodes and constants are added to it. formula: the fitted model. rows: name of the tensor
    of rows, (n, p). outputs: names for the tensors of predictions: labels (n,) and probabilities
    (n, K) of a classifier, or numbers (n, n_outputs).
    """
    tree = formula.trees[0]
    n = graph.add("Gather", graph.add("Shape", rows), graph.constant(0))
    row = graph.add("Range", graph.constant(0), n, graph.constant(1))
    node = graph.add("Mul", row, graph.constant(0))
    fraction = graph.cast(graph.add("Equal", node, node), np.float64)
    depth = int(tree.splits_above.max())
    state = [f"{graph.prefix}_{name}" for name in ("row", "node", "part")]
    arrived = [f"{name}_arrived" for name in state]
    body = _make_loop_body(graph.make_subgraph("turn"), formula, rows)
    graph.add_many("Loop", [graph.constant(depth), "", row, node, fraction], arrived, body=body)
    row, node, fraction = arrived
    leaf = graph.add("Gather", graph.constant(np.cumsum(tree.is_leaf) - 1), node)
    values = graph.add("Gather", graph.constant(_get_leaf_values(graph, formula)), leaf)
    weighted = graph.add("Mul", graph.cast(values, np.float64), _write_column(graph, fraction))
    width = graph.constant([formula.n_outputs])
    shape = graph.add("Concat", graph.add("Unsqueeze", n, graph.constant([0])), width, axis=0)
    zeros = graph.add("Expand", graph.constant(0.0), shape)
    scores = graph.add("ScatterND", zeros, _write_column(graph, row), weighted, reduction="add")
    predicted = scores
    if formula.classes is not None:
        _write_label(graph, formula, scores, outputs[0])
        predicted = _write_normalization(graph, scores)
    graph.add("Cast", predicted, output=outputs[-1], to=_get_onnx_type(graph.dtype))


def _write_column(graph: Graph, vector: str) -> str:
    """Add a node to a graph that reshapes a tensor from (n,) to (n, 1); return the result's name.

    vector: name of the tensor. graph: the node is added to it.
    """
    return graph.add("Unsqueeze", vector, graph.constant([1]))


def _make_loop_body(graph: Graph, formula: Formula, rows: str) -> Any:
    """Return the body of the Loop of `_write_fractional_routing` as an onnx.GraphProto.

    The loop sends rows down a tree one split at a time; rows that lack the value of a node's
    feature may go to both children, a fraction to each. A visit is a row at a node. The body's
    inputs are the iteration, a condition that stays true, and the visits: rows, nodes and
    fractions, each (number of visits,). Its outputs are the condition and the visits one split
    further down; a visit with a fraction of 0 is left out.

    Parameters
    ----------
    graph : Graph
        An empty graph for the body; nodes and constants are added to it.
    formula : Formula
        The fitted model with one tree, and how its leaf values become predictions.
    rows : str
        Name of the tensor of rows (n, p), with codes in place of categories, in the outer graph.

    Returns
    -------
    onnx.GraphProto
    """
    tree = formula.trees[0]
    iteration, continues, row, node, fraction = (
        f"{graph.prefix}_{name}" for name in ("turn", "goes_on", "row", "node", "part")
    )
    feature = graph.cast(graph.add("Gather", graph.constant(tree.feature), node), np.int64)
    place = graph.add("Concat", _write_column(graph, row), _write_column(graph, feature), axis=1)
    value = graph.add("GatherND", rows, place)
    lacks = graph.add("IsNaN", value)
    # The left child of a leaf is the leaf itself, which keeps the whole row.
    missing_left = np.where(tree.is_leaf, 1.0, formula.compute_missing_left_fractions(0))
    left_if_missing = graph.add(
        "Mul",
        graph.cast(lacks, np.float64),
        graph.add("Gather", graph.constant(missing_left), node),
    )
    is_left = graph.add(
        "And", graph.add("Not", lacks), _write_is_left(graph, tree, node, value, lacks)
    )
    left_fraction = graph.add("Add", left_if_missing, graph.cast(is_left, np.float64))
    ends = _write_children(graph, tree, row, node, fraction, left_fraction)
    still_continues = graph.add("Identity", continues)
    dtypes: tuple[Any, ...] = (np.int64, np.int64, np.float64)
    before = zip((row, node, fraction), dtypes, strict=True)
    after = zip(ends, dtypes, strict=True)
    return graph.build(
        [(still_continues, np.bool_, []), *((name, dtype, [None]) for name, dtype in after)],
        [
            (iteration, np.int64, []),
            (continues, np.bool_, []),
            *((name, dtype, [None]) for name, dtype in before),
        ],
    )


def _write_children(
    graph: Graph, tree: Tree, row: str, node: str, fraction: str, left_fraction: str
) -> list[str]:
    """Add nodes that replace visits of nodes by visits of their children.

    A visit is a row, a node, and the fraction of the row there: rows that lack the value of a
    node's feature may go to both children.

    Parameters
    ----------
    graph : Graph
        The graph; nodes are added to it.
    tree : Tree
        The tree. The only child of a leaf is the leaf itself.
    row, node, fraction : str
        Names of the tensors of visits, each (number of visits,): index of the row, index of the
        node, and fraction of the row.
    left_fraction : str
        Name of the tensor (number of visits,) of the part of each visit's fraction that goes to the
        left child, from 0 to 1; the rest goes to the right one.

    Returns
    -------
    list of three str
        Names of the tensors of the new visits: rows, nodes and fractions. Visits of left children
        come first. Visits with fraction 0 are left out.
    """
    left_child = np.where(tree.is_leaf, np.arange(tree.n_nodes), tree.left).astype(np.int32)
    left = graph.cast(graph.add("Gather", graph.constant(left_child), node), np.int64)
    right = graph.add("Add", left, graph.constant(1))
    sent = left_fraction, graph.add("Sub", graph.constant(1.0), left_fraction)
    goes = [graph.add("Greater", sent_fraction, graph.constant(0.0)) for sent_fraction in sent]
    fractions = [graph.add("Mul", fraction, sent_fraction) for sent_fraction in sent]
    ends = []
    for both in ([row, row], [left, right], fractions):
        children = zip(both, goes, strict=True)
        ends.append(
            graph.add(
                "Concat", *(graph.add("Compress", *child, axis=0) for child in children), axis=0
            )
        )
    return ends


def _write_is_left(graph: Graph, tree: Tree, node: str, value: str, lacks: str) -> str:
    """Add nodes that say which visits go to the left child by their value, and return their output.

    A visit is a row at a node; a row may visit several nodes, as rows that lack the value of a
    node's feature may go to both children.

    Parameters
    ----------
    graph : Graph
        The graph; nodes are added to it.
    tree : Tree
        The tree.
    node : str
        Name of the tensor of the visited nodes, (number of visits,).
    value : str
        Name of the tensor of the rows' values of the nodes' features, (number of visits,); category
        codes at category sets.
    lacks : str
        Name of the tensor of booleans, (number of visits,): whether the value is missing. The
        result does not matter there, as the caller sends such rows by fractions.

    Returns
    -------
    str
        Name of the tensor of booleans, (number of visits,). True at leaves, whose only child counts
        as the left one.
    """
    sizes = np.diff(tree.category_start)
    # No number is at most -inf, at nodes with sets; every number is at most inf, at leaves.
    threshold = np.where(
        tree.is_leaf, np.inf, np.where(sizes > 0, -np.inf, extend_largest_threshold(tree.threshold))
    )
    threshold = round_down_to_float32(threshold) if graph.dtype == np.float32 else threshold
    below = graph.add("LessOrEqual", value, graph.add("Gather", graph.constant(threshold), node))
    sets = np.flatnonzero(sizes)
    if not len(sets):
        return below
    # A table of whether codes go left. Row 0 is for nodes without set, then a row for each set. Column
    # 0 is for unknown categories, the last column for codes that no set has, and those between for
    # codes.
    n_codes = int(tree.categories.max()) + 1
    goes_left = np.zeros((len(sets) + 1, n_codes + 2), dtype=bool)
    number = np.zeros(tree.n_nodes, dtype=np.int32)
    number[sets] = np.arange(1, len(sets) + 1)
    goes_left[1:] = tree.unseen_left[sets][:, None]
    owner = np.repeat(number, sizes)
    goes_left[owner, tree.categories + 1] = ~goes_left[owner, 0]
    set_row = graph.cast(graph.add("Gather", graph.constant(number), node), np.int64)
    ends = [graph.constant(end, np.float32) for end in (-1, n_codes)]
    code = graph.add("Where", lacks, ends[0], graph.cast(value, np.float32))
    column = graph.cast(graph.add("Clip", code, *ends), np.int64)
    column = graph.add("Add", column, graph.constant(1))
    place = graph.add("Concat", _write_column(graph, set_row), _write_column(graph, column), axis=1)
    return graph.add("Or", below, graph.add("GatherND", graph.constant(goes_left), place))
