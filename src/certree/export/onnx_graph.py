"""Models as graphs of ONNX.

Trees are one TreeEnsemble node of ``ai.onnx.ml`` 5, which has category sets and missing values. Its
leaves hold one number each, so they hold their own number: what leaves say is then looked up in a
table, whatever the number of classes is, and in float64 where float32 would round it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.export.formula import (
    Formula,
    compared,
    expect_int64,
    expect_utf8,
    rounded_down,
    with_labels,
)
from certree.export.onnx_chains import tree_ensemble_regressor
from certree.interface.extras import import_extra
from certree.rows.precision import warn_of_float32
from certree.tree import Tree

OPSET = 18
_IR_VERSION = 9
_LESS_EQUAL, _MEMBER = 0, 6  # of nodes_modes


_LARGEST = float(np.finfo(np.float32).max)

# A name, a dtype, and a shape in which None is any length.
_Value = tuple[str, Any, Sequence[int | None]]


@dataclass(slots=True)
class Graph:
    """Nodes and constants of a graph.

    Parameters
    ----------
    prefix : str
        Begins all names, so that graphs can be put together.
    dtype : numpy dtype
        Of rows and probabilities: float32 or float64.
    ml_opset : int
        Version of ``ai.onnx.ml``: 5, or 3, in which sets are chains of comparisons.
    """

    prefix: str
    dtype: Any
    ml_opset: int = 5
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def inner(self, name: str) -> "Graph":
        """A graph that a node of this one runs; it shares the constants."""
        return Graph(f"{self.prefix}_{name}", self.dtype, self.ml_opset, [], self.constants)

    def name(self) -> str:
        """A new name."""
        return f"{self.prefix}_{len(self.nodes)}"

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Name of a constant."""
        name = f"{self.prefix}_constant_{len(self.constants)}"
        array = np.ascontiguousarray(values, dtype) if np.ndim(values) else np.array(values, dtype)
        self.constants.append(import_extra("onnx.numpy_helper", "onnx").from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node of one output; returns its name."""
        return self.add_many(op, inputs, [output or self.name()], **attributes)[0]

    def add_many(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: list[str],
        domain: str = "",
        **attributes: Any,
    ) -> list[str]:
        """Add a node; returns the names of its outputs."""
        make_node = import_extra("onnx.helper", "onnx").make_node
        name = f"{self.prefix}_{op}_{len(self.nodes)}"
        self.nodes.append(make_node(op, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs

    def cast(self, name: str, dtype: Any) -> str:
        """Add a cast."""
        return self.add("Cast", name, to=_onnx_type(dtype))

    def branch(self, outputs: Sequence[_Value], inputs: Sequence[_Value] = ()) -> Any:
        """The nodes so far as a graph that another node runs."""
        begin, end = ([_typed(*one) for one in ends] for ends in (inputs, outputs))
        return import_extra("onnx.helper", "onnx").make_graph(self.nodes, self.prefix, begin, end)


def onnx_model(formula: Formula, dtype: Any) -> Any:
    """A model of ONNX with an input X (n, p) of a dtype: float32, float64, or what features need."""
    if dtype not in ("float32", "float64", "auto"):
        raise ValueError(f'dtype must be "float32", "float64" or "auto", got {dtype!r}')
    if dtype == "auto":
        needs_float64 = bool(formula.float64_names) or _predicts_beyond_float32(formula)
        dtype = "float64" if needs_float64 else "float32"
    make = import_extra("onnx.helper", "onnx")
    graph = Graph("trees", np.dtype(dtype))
    rows = _typed("X", graph.dtype, [None, formula.n_features])
    values = outputs_of(formula, graph.dtype)
    write(graph, formula, "X", [name for name, _, _ in values])
    outputs = [_typed(*one) for one in values]
    inside = make.make_graph(graph.nodes, "certree", [rows], outputs, graph.constants)
    opsets = [make.make_opsetid("", OPSET), make.make_opsetid("ai.onnx.ml", graph.ml_opset)]
    model = make.make_model(
        inside, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="certree"
    )
    known: dict[str, Any] = {"feature_names": formula.names}
    if formula.categories is not None:
        every = map(formula.categories_of, range(formula.n_features))
        known["categories"] = [None if one is None else list(one) for one in every]
    make.set_model_props(model, {name: json.dumps(value) for name, value in known.items()})
    return model


def outputs_of(formula: Formula, dtype: Any) -> list[_Value]:
    """The outputs, as skl2onnx calls those of classifiers and of regressors."""
    if formula.classes is None:
        return [("variable", dtype, [None, formula.n_outputs])]
    return [
        ("label", class_labels(formula).dtype, [None]),
        ("probabilities", dtype, [None, len(formula.classes)]),
    ]


def class_labels(formula: Formula) -> NDArray[Any]:
    """The classes as ONNX has them: int64, float64 or strings."""
    labels = formula.labels
    if isinstance(labels[0], str):
        for one in labels:
            expect_utf8(one)
        return np.array(labels, dtype=object)
    if isinstance(labels[0], float):
        return np.array(labels, dtype=np.float64)
    expect_int64(max(labels))
    return np.array(labels, dtype=np.int64)


def _typed(name: str, dtype: Any, shape: Sequence[int | None]) -> Any:
    make = import_extra("onnx.helper", "onnx")
    return make.make_tensor_value_info(name, _onnx_type(dtype), shape)


def _onnx_type(dtype: Any) -> int:
    number: int = import_extra("onnx.helper", "onnx").np_dtype_to_tensor_dtype(np.dtype(dtype))
    return number


def write(graph: Graph, formula: Formula, rows: str, outputs: list[str]) -> None:
    """Write the nodes from rows to the named outputs."""
    if graph.dtype == np.float32:
        _expect_float32(formula)
    if formula.kind != "tree":
        _write_ensemble(graph, formula, rows, outputs)
    elif not formula.sends_both_ways:
        _write_tree(graph, formula, rows, outputs)
    else:
        # Of all numbers, the cheapest question is whether their sum is one.
        lacking = graph.add("IsNaN", graph.add("ReduceSum", rows, keepdims=0))
        branches = {}
        for branch, written in (("then_branch", _write_blend), ("else_branch", _write_tree)):
            inner = graph.inner(branch)
            values = outputs_of(formula, graph.dtype)
            ends = [(f"{inner.prefix}_{name}", dtype, shape) for name, dtype, shape in values]
            written(inner, formula, rows, [name for name, *_ in ends])
            branches[branch] = inner.branch(ends)
        graph.add_many("If", [lacking], outputs, **branches)


def _predicts_beyond_float32(formula: Formula) -> bool:
    """Whether predictions may be larger than float32 holds, so that a graph would make them infinite.

    Sums of trees are bounded by their largest leaves, which may be those of no one row. So of a
    logarithm, which grows by little, the start alone counts.
    """
    if formula.classes is not None:
        return False
    start = np.abs(formula.start)
    if formula.link == "exp":
        return bool((formula.start > np.log(_LARGEST)).any())
    leaves = [np.abs(tree.value[tree.is_leaf]).max(axis=0) for tree in formula.trees]
    scale = len(leaves) if formula.kind == "forest" else 1
    with np.errstate(over="ignore"):
        return bool((np.sum([one / scale for one in leaves], axis=0) + start > _LARGEST).any())


def _expect_float32(formula: Formula) -> None:
    """Refuse predictions that float32 does not hold; warn of features whose values it moves."""
    if _predicts_beyond_float32(formula):
        raise ValueError(
            f"predictions may be larger than {_LARGEST:.3g}, the largest number of float32, of which a "
            'graph would make infinity: take dtype="float64", or fit to y in a larger unit'
        )
    remedy = 'Take dtype="float64", or dtype="auto", which does so if a feature needs it.'
    warn_of_float32(formula.float64_names, "The graph takes rows of float32", remedy)


def _leaf_numbers(graph: Graph, formula: Formula, rows: str) -> str:
    """Write what numbers the leaf of each row in each tree, (n, T) int64."""
    n_leaves = sum(tree.n_leaves for tree in formula.trees)
    if graph.dtype == np.float32 and n_leaves > 2**24:
        raise ValueError(
            f"float32 numbers 2**24 leaves, and there are {n_leaves}: take dtype=float64"
        )
    written, op = (
        (_tree_ensemble, "TreeEnsemble")
        if graph.ml_opset >= 5
        else (tree_ensemble_regressor, "TreeEnsembleRegressor")
    )
    attributes = written(formula.trees, graph.dtype)
    (number,) = graph.add_many(op, [rows], [graph.name()], domain="ai.onnx.ml", **attributes)
    return graph.cast(number, np.int64)


def _tree_ensemble(trees: Sequence[Tree], dtype: Any) -> dict[str, Any]:
    """Attributes of a TreeEnsemble node whose outputs, one for each tree, are the numbers of leaves."""
    parts = []
    n_nodes = n_leaves = 0
    for tree in trees:
        parts.append(_columns(tree, n_nodes, n_leaves))
        n_nodes += len(parts[-1]["featureids"])
        n_leaves += tree.n_leaves
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    as_tensor = import_extra("onnx.numpy_helper", "onnx").from_array
    splits = rounded_down(columns["splits"]) if dtype == np.float32 else columns["splits"]
    sizes = [tree.n_leaves for tree in trees]
    starts = np.cumsum([0, *(len(part["featureids"]) for part in parts[:-1])])
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


def _columns(tree: Tree, first_node: int, first_leaf: int) -> dict[str, NDArray[Any]]:
    """Inner nodes of a tree, numbered from one on; the true side is the left one, or the set's."""
    inner, is_leaf = np.flatnonzero(~tree.is_leaf), tree.is_leaf
    if not len(inner):  # a node of which both sides are the leaf
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
    left = tree.left[inner]
    true = np.where(has_set & missing_left, left + 1, left)
    false = 2 * left + 1 - true
    # Behind the members of each set stands NaN.
    members = np.insert(tree.categories.astype(np.float64), np.cumsum(sizes[has_set]), np.nan)
    return {
        "featureids": tree.feature[inner].astype(np.int64),
        "modes": np.where(has_set, _MEMBER, _LESS_EQUAL),
        "splits": np.where(has_set, 0.0, compared(tree.threshold[inner])),
        "missing_true": (missing_left & ~has_set).astype(np.int64),
        "truenodeids": place[true],
        "trueleafs": is_leaf[true].astype(np.int64),
        "falsenodeids": place[false],
        "falseleafs": is_leaf[false].astype(np.int64),
        "members": members,
    }


def _leaf_values(graph: Graph, formula: Formula) -> NDArray[Any]:
    """What the leaves of a single tree say, in the dtype of the graph, (L, K)."""
    tree = formula.trees[0]
    exact = tree.value[tree.is_leaf]
    values = exact.astype(graph.dtype)
    return values if formula.classes is None else with_labels(values, exact.argmax(axis=1))


def _write_tree(graph: Graph, formula: Formula, rows: str, outputs: list[str]) -> None:
    """Write a single tree: a look-up of what its leaves say."""
    numbers = _leaf_numbers(graph, formula, rows)
    values = _leaf_values(graph, formula)
    graph.add("GatherND", graph.constant(values), numbers, output=outputs[-1])
    if formula.classes is not None:
        labels = class_labels(formula)[values.argmax(axis=1)]
        graph.add("GatherND", graph.constant(labels), numbers, output=outputs[0])


def _write_ensemble(graph: Graph, formula: Formula, rows: str, outputs: list[str]) -> None:
    """Write many trees: sums of what leaves say, and the link."""
    numbers = _leaf_numbers(graph, formula, rows)
    table = np.concatenate([tree.value[tree.is_leaf] for tree in formula.trees])
    with np.errstate(over="ignore"):  # what float32 does not hold is kept as it is
        narrow = table.astype(np.float32)
    said = graph.add(
        "Gather", graph.constant(narrow if (narrow == table).all() else table), numbers
    )
    total = graph.add("ReduceSum", graph.cast(said, np.float64), graph.constant([1]), keepdims=0)
    if formula.kind == "forest":
        scores = graph.add("Div", total, graph.constant(float(len(formula.trees))))
    else:
        # onnxruntime leaves out an Add of a constant that is 0 in float32.
        scores = graph.add("Sum", total, graph.constant(formula.start))
    if formula.classes is None:
        predicted = _numbers(graph, formula, scores)
    else:
        ranked, predicted = _shares(graph, formula, scores)
        _write_label(graph, formula, ranked, outputs[0])
    graph.add("Cast", predicted, output=outputs[-1], to=_onnx_type(graph.dtype))


def _numbers(graph: Graph, formula: Formula, scores: str) -> str:
    """Write the numbers that scores predict."""
    if formula.link == "exp":
        return graph.add("Exp", scores)
    if formula.link == "sorted":
        ends = [graph.name(), f"{graph.name()}_places"]
        inputs = [scores, graph.constant([formula.n_outputs])]
        return graph.add_many("TopK", inputs, ends, axis=1, largest=0, sorted=1)[0]
    return scores


def _write_label(graph: Graph, formula: Formula, ranked: str, output: str) -> None:
    best = graph.add("ArgMax", ranked, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(class_labels(formula)), best, output=output)


def _shares(graph: Graph, formula: Formula, scores: str) -> tuple[str, str]:
    """Write what ranks the classes, and their probabilities."""
    if formula.link == "softmax":
        return scores, graph.add("Softmax", scores, axis=1)
    if formula.link == "logistic":
        both = graph.add("Concat", graph.add("Neg", scores), scores, axis=1)
        return both, graph.add("Sigmoid", both)
    if formula.says_second:
        inside = graph.add("Clip", scores, graph.constant(0.0), graph.constant(1.0))
        first = graph.add("Sub", graph.constant(1.0), inside)
        scores = graph.add("Concat", first, inside, axis=1)
    raised = (
        scores if formula.power == 1 else graph.add("Pow", scores, graph.constant(formula.power))
    )
    return scores, _divided(graph, raised)


def _divided(graph: Graph, shares: str) -> str:
    return graph.add("Div", shares, graph.add("ReduceSum", shares, graph.constant([1]), keepdims=1))


def _write_blend(graph: Graph, formula: Formula, rows: str, outputs: list[str]) -> None:
    """Write a single tree in which rows that lack a value may go both ways, level by level.

    Arrivals, a row at a node with a part of its vote, are as many as it takes: they start at the root,
    and each turn of the loop sends all of them on, until they are at leaves, which send them to
    themselves.
    """
    tree = formula.trees[0]
    n = graph.add("Gather", graph.add("Shape", rows), graph.constant(0))
    row = graph.add("Range", graph.constant(0), n, graph.constant(1))
    node = graph.add("Mul", row, graph.constant(0))
    part = graph.cast(graph.add("Equal", node, node), np.float64)
    depth = int(tree.splits_above.max())
    state = [f"{graph.prefix}_{name}" for name in ("row", "node", "part")]
    arrived = [f"{name}_arrived" for name in state]
    body = _turn(graph.inner("turn"), formula, rows)
    graph.add_many("Loop", [graph.constant(depth), "", row, node, part], arrived, body=body)
    row, node, part = arrived
    leaf = graph.add("Gather", graph.constant(np.cumsum(tree.is_leaf) - 1), node)
    said = graph.add("Gather", graph.constant(_leaf_values(graph, formula)), leaf)
    weighed = graph.add("Mul", graph.cast(said, np.float64), _column(graph, part))
    width = graph.constant([formula.n_outputs])
    shape = graph.add("Concat", graph.add("Unsqueeze", n, graph.constant([0])), width, axis=0)
    nothing = graph.add("Expand", graph.constant(0.0), shape)
    scores = graph.add("ScatterND", nothing, _column(graph, row), weighed, reduction="add")
    predicted = scores
    if formula.classes is not None:
        _write_label(graph, formula, scores, outputs[0])
        predicted = _divided(graph, scores)
    graph.add("Cast", predicted, output=outputs[-1], to=_onnx_type(graph.dtype))


def _column(graph: Graph, vector: str) -> str:
    return graph.add("Unsqueeze", vector, graph.constant([1]))


def _turn(graph: Graph, formula: Formula, rows: str) -> Any:
    """The body of the loop: arrivals at nodes become arrivals at their children."""
    tree = formula.trees[0]
    turn, goes_on, row, node, part = (
        f"{graph.prefix}_{name}" for name in ("turn", "goes_on", "row", "node", "part")
    )
    feature = graph.cast(graph.add("Gather", graph.constant(tree.feature), node), np.int64)
    at = graph.add("Concat", _column(graph, row), _column(graph, feature), axis=1)
    value = graph.add("GatherND", rows, at)
    lacks = graph.add("IsNaN", value)
    # Leaves send all on to the left, where they stay.
    of_missing = np.where(tree.is_leaf, 1.0, formula.missing_shares(0))
    share_of_lacking = graph.add(
        "Mul",
        graph.cast(lacks, np.float64),
        graph.add("Gather", graph.constant(of_missing), node),
    )
    has = graph.add("And", graph.add("Not", lacks), _is_left(graph, tree, node, value, lacks))
    share = graph.add("Add", share_of_lacking, graph.cast(has, np.float64))
    ends = _sent_on(graph, tree, row, node, part, share)
    on = graph.add("Identity", goes_on)
    dtypes: tuple[Any, ...] = (np.int64, np.int64, np.float64)
    before = zip((row, node, part), dtypes, strict=True)
    after = zip(ends, dtypes, strict=True)
    return graph.branch(
        [(on, np.bool_, []), *((name, dtype, [None]) for name, dtype in after)],
        [
            (turn, np.int64, []),
            (goes_on, np.bool_, []),
            *((name, dtype, [None]) for name, dtype in before),
        ],
    )


def _sent_on(graph: Graph, tree: Tree, row: str, node: str, part: str, share: str) -> list[str]:
    """Write the arrivals at the left children, to which a share goes, and at the right ones."""
    left_of = np.where(tree.is_leaf, np.arange(tree.n_nodes), tree.left).astype(np.int32)
    left = graph.cast(graph.add("Gather", graph.constant(left_of), node), np.int64)
    right = graph.add("Add", left, graph.constant(1))
    shares = share, graph.add("Sub", graph.constant(1.0), share)
    goes = [graph.add("Greater", one, graph.constant(0.0)) for one in shares]
    parts = [graph.add("Mul", part, one) for one in shares]
    ends = []
    for both in ([row, row], [left, right], parts):
        sides = zip(both, goes, strict=True)
        ends.append(
            graph.add("Concat", *(graph.add("Compress", *side, axis=0) for side in sides), axis=0)
        )
    return ends


def _is_left(graph: Graph, tree: Tree, node: str, value: str, lacks: str) -> str:
    """Write whether arrivals that have the value go to the left."""
    sizes = np.diff(tree.category_start)
    # No number is below what stands at nodes with sets, and any is at leaves.
    threshold = np.where(
        tree.is_leaf, np.inf, np.where(sizes > 0, -np.inf, compared(tree.threshold))
    )
    threshold = rounded_down(threshold) if graph.dtype == np.float32 else threshold
    below = graph.add("LessOrEqual", value, graph.add("Gather", graph.constant(threshold), node))
    sets = np.flatnonzero(sizes)
    if not len(sets):
        return below
    # A row for each set, behind one for nodes without; a column for each code, between two for others.
    n_codes = int(tree.categories.max()) + 1
    goes_left = np.zeros((len(sets) + 1, n_codes + 2), dtype=bool)
    number = np.zeros(tree.n_nodes, dtype=np.int32)
    number[sets] = np.arange(1, len(sets) + 1)
    goes_left[1:] = tree.missing_left[sets][:, None]
    owner = np.repeat(number, sizes)
    goes_left[owner, tree.categories + 1] = ~goes_left[owner, 0]
    of_set = graph.cast(graph.add("Gather", graph.constant(number), node), np.int64)
    ends = [graph.constant(end, np.float32) for end in (-1, n_codes)]
    code = graph.add("Where", lacks, ends[0], graph.cast(value, np.float32))
    column = graph.cast(graph.add("Clip", code, *ends), np.int64)
    column = graph.add("Add", column, graph.constant(1))
    at = graph.add("Concat", _column(graph, of_set), _column(graph, column), axis=1)
    return graph.add("Or", below, graph.add("GatherND", graph.constant(goes_left), at))
