"""The section of the report with the tree explorer: trees as JSON, which page.js makes interactive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain.path import Explainer, ShownNode
from certree.interface.formatting import format_bound
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.markup import Html, tag, to_script_json
from certree.show.page.section import Section
from certree.show.style import CLASSES, DIVERGING
from certree.show.tree_summary import TreeSummary, summarize_tree

# Largest size of a tree's JSON (characters), and number of leaves that is tried first.
_MAX_CHARACTERS, _MAX_LEAVES = 600_000, 6000
# Leaves that are visible when the page opens.
_N_OPEN_LEAVES = 10
# Trees of an ensemble on a page, and the largest size of the JSON of each (characters).
_N_TREES, _MAX_CHARACTERS_OF_EACH = 3, 450_000
# Most rows that are counted in the nodes of an ensemble's trees.
_MAX_COUNTED_ROWS = 50_000
# Rows that the reader can select.
_N_EXAMPLES = 24


def build_explorer_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section with the tree explorer, which the reader opens node by node.

    evaluated: the fitted model, the rows of the report and their predictions. The section has the
    tree of the model, or the first three trees of an ensemble. It also has up to 24 rows, from the
    best to the worst predicted, whose paths can be shown. None if the model has no trees of
    certree.
    """
    model = evaluated.model
    trees = getattr(model, "trees_", None)
    if not isinstance(model, TreeVoteEstimator) and not trees:
        return None
    if trees:
        rows = evaluated.take_rows(evaluated.sample_indices(_MAX_COUNTED_ROWS))
        summaries = [summarize_tree(model, i, rows) for i in range(min(len(trees), _N_TREES))]
        encoded_trees = [
            encode_tree(summary, f"tree {i + 1} of {len(trees):,}", _MAX_CHARACTERS_OF_EACH)
            for i, summary in enumerate(summaries)
        ]
    else:
        summaries = [summarize_tree(model)]
        encoded_trees = [encode_tree(summaries[0], "the tree")]
    explainer = summaries[0].explainer
    categories = explainer.categories or [None] * len(explainer.feature_names)
    examples = evaluated.select_examples(_N_EXAMPLES)
    data = {
        "trees": encoded_trees,
        "features": [str(name) for name in explainer.feature_names],
        "categories": [
            None if names is None else [str(name) for name in names] for names in categories
        ],
        "rows": encode_rows(evaluated.encoded[examples]),
        "classes": CLASSES,
        "diverging": DIVERGING,
        "titles": [evaluated.describe_row(i) for i in examples.tolist()],
    }
    script = f'<script type="application/json" id="tree-data">{to_script_json(data)}</script>'
    bounds = summaries[0].bounds
    source = "of this page" if trees else "of the fit"
    sentence = f"The numbers in the nodes count rows {source}." if bounds is None else bounds.title
    text = tag("p", sentence)
    container = tag("div", id="explorer")
    return Section("tree", "Tree explorer", text + container + Html(script))


def encode_tree(
    summary: TreeSummary, title: str, max_characters: int = _MAX_CHARACTERS
) -> dict[str, Any]:
    """Return a tree as dictionaries and lists for JSON, without its least important leaves.

    Leaves are left out only if the tree is large. Nodes keep their children in the order of their
    rows times the posterior probability that a pruning (the tree with some nodes made leaves)
    splits them, which is 1 in an ensemble.

    Parameters
    ----------
    summary : TreeSummary
        The tree, with the prediction, the number of rows and the rule of each node.
    title : str
        Title of the tree on the page.
    max_characters : int
        Largest length of the JSON text. The largest number of leaves, at first 6000, is halved
        until the text fits or at most ten leaves are left.

    Returns
    -------
    dict
        What page.js reads. "title", "outputs" (classes, or None) and "scale" (unit) of the
        predictions, and "showsMissing" (whether rules mention missing values). Lists with an entry
        for each shown node, parents before children: "feature" (-1: a leaf), "threshold", "left"
        (entry of the left child, or -1; the right one is next), "missingLeft" (1 or 0), "rows",
        "output" (index of the shown class) and "prediction". Lists of entries: "open" (at first
        unfolded), "unseenLeft" and "missingBoth". Dictionaries by entry: "sets" (category codes of a
        split), "hiddenLeaves" (number of leaves left out below), and, if there are any, "dates"
        (thresholds of date features as text), "numbers" (names of the leaves' rules, such as "R3"),
        "bounds" (error bounds of leaves) and "calibrationRows". Numbers of rows and predictions that
        are no integers have five significant digits.
    """
    n_leaves = _MAX_LEAVES
    while True:
        data = _encode_nodes(summary, title, n_leaves)
        if n_leaves <= _N_OPEN_LEAVES or len(to_script_json(data)) <= max_characters:
            return data
        n_leaves //= 2


def _encode_nodes(summary: TreeSummary, title: str, max_leaves: int) -> dict[str, Any]:
    """Return the most important leaves of a tree, with the nodes above them, for JSON.

    Parameters
    ----------
    summary : TreeSummary
        The tree, with the prediction, the number of rows and the rule of each node.
    title : str
        Title of the tree on the page.
    max_leaves : int
        Largest number of leaves. Nodes keep their children in the order of their rows times the
        posterior probability that a pruning (the tree with some nodes made leaves) splits them,
        which is 1 in an ensemble.

    Returns
    -------
    dict
        The result of `encode_tree`, whose docstring explains each key, for a fixed number of leaves.
        "title", "outputs", "scale" and "showsMissing" are about the tree; "feature", "threshold",
        "left", "missingLeft", "rows", "output" and "prediction" are lists with an entry for each
        shown node; "open", "unseenLeft" and "missingBoth" list entries; "sets", "hiddenLeaves",
        "dates", "numbers", "bounds" and "calibrationRows" are dictionaries by entry. Nodes are
        ordered by depth; those whose children are left out count as leaves.
    """
    branches = _list_by_level(summary.select_branches(max_leaves))
    nodes = np.array([branch.cell.node for branch in branches])
    position = {node: i for i, node in enumerate(nodes.tolist())}
    tree, n_leaves_below = summary.tree, summary.n_leaves_below
    is_inner = [bool(branch.children) for branch in branches]
    outputs = np.array([summary.get_main_output(int(node)) for node in nodes])
    open_branches = _list_by_level(summary.select_branches(_N_OPEN_LEAVES))
    dates = _format_date_thresholds(summary.explainer, nodes, is_inner)
    ends = [(i, node) for i, node in enumerate(nodes.tolist()) if not is_inner[i]]
    return {
        "title": title,
        **({"dates": dates} if dates else {}),
        **_encode_rules(summary, ends),
        "showsMissing": summary.explainer.shows_missing,
        "feature": np.where(is_inner, tree.feature[nodes], -1).tolist(),
        "threshold": np.where(is_inner, np.nan_to_num(tree.threshold[nodes]), 0.0).tolist(),
        "left": [
            position[int(branch.children[0].cell.node)] if branch.children else -1
            for branch in branches
        ],
        "missingLeft": tree.missing_left[nodes].astype(int).tolist(),
        "unseenLeft": np.flatnonzero(tree.unseen_left[nodes]).tolist(),
        "missingBoth": np.flatnonzero(tree.missing_both[nodes]).tolist(),
        "sets": {
            i: codes
            for i, node in enumerate(nodes)
            if is_inner[i] and (codes := tree.category_set(int(node)).tolist())
        },
        "rows": [_round(value) for value in summary.explainer.rows_per_node[nodes]],
        "output": outputs.tolist(),
        "prediction": [_round(value) for value in summary.predictions[nodes, outputs]],
        "hiddenLeaves": {
            i: int(n_leaves_below[node])
            for i, node in enumerate(nodes)
            if branches[i].has_hidden_children
        },
        "open": [position[branch.cell.node] for branch in open_branches if branch.children],
        "outputs": None if summary.outputs is None else [str(name) for name in summary.outputs],
        "scale": summary.scale,
    }


def _encode_rules(summary: TreeSummary, ends: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return the rule names and error bounds of the leaves of a shown tree, for JSON.

    summary: the tree with the predictions and bounds of its nodes. ends: position among the shown
    nodes, and node number, of each shown leaf. The result has dictionaries by position: "numbers"
    (names of the rules, such as "R3"; only if rules have numbers), and, only if the model is
    certified, "bounds" (text) and "calibrationRows" (numbers of rows) of leaves that have them.
    """
    encoded: dict[str, Any] = {}
    numbers, bounds = summary.explainer.numbers, summary.bounds
    if numbers is not None:
        encoded["numbers"] = {i: numbers.get_name(node) for i, node in ends}
    if bounds is not None:
        found = {i: (bounds.get_bound(node), bounds.count_rows(node)) for i, node in ends}
        encoded["bounds"] = {
            i: format_bound(bound) for i, (bound, _) in found.items() if bound is not None
        }
        encoded["calibrationRows"] = {i: n for i, (_, n) in found.items() if n is not None}
    return encoded


def _format_date_thresholds(
    explainer: Explainer, nodes: NDArray[Any], is_inner: Sequence[bool]
) -> dict[int, str]:
    """Return the thresholds of splits on dates as text, by the position of the node in `nodes`.

    explainer: the tree, and its features that hold dates. nodes: numbers of nodes, (m,). is_inner:
    whether the children of each are shown.
    """
    tree, dates = explainer.tree, explainer.dates or {}
    return {
        i: dates[feature].format(float(tree.threshold[node]))
        for i, node in enumerate(nodes.tolist())
        if is_inner[i]
        and (feature := int(tree.feature[node])) in dates
        and not len(tree.category_set(node))
    }


def _list_by_level(root: ShownNode) -> list[ShownNode]:
    """Return all nodes of a subtree by depth, so that siblings are next to each other.

    root: the root of the subtree, which is the first node of the list. Only shown nodes are listed:
    the `children` of a ShownNode are its left and right child, or empty if they are not shown.
    """
    branches = [root]
    for branch in branches:
        branches.extend(branch.children)
    return branches


def _round(value: float) -> float:
    """Return a number rounded to five significant digits, for shorter JSON; integers stay exact."""
    value = float(value)
    return int(value) if value.is_integer() else float(f"{value:.5g}")


def encode_rows(encoded: NDArray[Any]) -> list[list[float | None]]:
    """Return encoded rows (n, p) as n lists of p numbers for JSON.

    encoded: numbers, with category codes in place of categories. Missing and infinite values become
    None.
    """
    return [[float(v) if np.isfinite(v) else None for v in row] for row in encoded]
