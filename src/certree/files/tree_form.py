"""What a model file holds of a tree in which prunings vote."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import push_down
from certree.certificates.parts.coverage import Bands, Scores
from certree.estimators.certified_classifier import CertifiedTreeClassifier
from certree.estimators.certified_regressor import CertifiedTreeRegressor
from certree.estimators.tree_vote import TreeVoteClassifier, TreeVoteEstimator
from certree.estimators.tune import Mixture
from certree.files.archive import Shapes
from certree.files.certificates_form import (
    ENTRIES_OF_CERTIFICATES,
    entries_of_certificates,
    restore_certificates,
)
from certree.files.trees_form import expect_known_categories
from certree.interface.arrays import codes
from certree.stats import NodeStats, SparseNodeStats, Stats, TargetStats
from certree.tree import Tree, threads
from certree.votes import Vote, vote
from certree.weights.node_weights import NodeWeights

_Columns = dict[str, tuple[str, str]]

# Type and length of the columns of each part: m nodes, c categories in sets, e counts beyond 0.
_TREE: _Columns = {
    "feature": ("<i4", "m"),
    "threshold": ("<f8", "m"),
    "left": ("<i4", "m"),
    "chain": ("<i4", "m"),
    "missing_left": ("|b1", "m"),
    "missing_both": ("|b1", "m"),
    "category_start": ("<i8", "m + 1"),
    "categories": ("<i4", "c"),
}
_LAW = ("weight", "log_odds", "chain_entropy", "chain_mode")
_WEIGHTS: _Columns = dict.fromkeys(_LAW, ("<f8", "m"))
_CLASS_STATS: _Columns = {"counts": ("<f8", "m"), "label": ("<i4", "m")}
_SPARSE_STATS: _Columns = {
    "begin": ("<i8", "m + 1"),
    "classes": ("<i4", "e"),
    "weight": ("<f8", "e"),
    "label": ("<i4", "m"),
}
_TARGET_STATS: _Columns = dict.fromkeys(("rows", "mean", "sse"), ("<f8", "m"))
# Of a certified regressor: N scores in r regions.
_BANDS: dict[str, _Columns] = {
    "bands": {"scale": ("<f8", "m"), "region": ("<i4", "m")},
    "scores": {"value": ("<f8", "N"), "start": ("<i8", "r + 1"), "mass": ("<f8", "r")},
}
# These have a second axis: classes, of which two are counted at least, or the one number predicted.
_TABLES = {"stats.counts", "vote.score"}


_CERTIFIED = (CertifiedTreeClassifier, CertifiedTreeRegressor)


def _columns(model: TreeVoteEstimator) -> dict[str, _Columns]:
    """The arrays of a model by its parts; the number of classes is set."""
    columns = {"tree": _TREE, "weights": _WEIGHTS}
    if isinstance(model, TreeVoteClassifier) and model._has_sparse_stats():
        return {**columns, "stats": _SPARSE_STATS}  # the vote is made of them
    stats = _CLASS_STATS if isinstance(model, TreeVoteClassifier) else _TARGET_STATS
    bands = _BANDS if isinstance(model, CertifiedTreeRegressor) else {}
    return {**columns, "vote": {"score": ("<f8", "m")}, "stats": stats, **bands}


def entries_of_tree(model: type) -> frozenset[str]:
    """What the header has of a tree."""
    entries = {"temperatures", "shares", "laws", "optimal_splits", "log_evidence"}
    if issubclass(model, _CERTIFIED):
        entries |= ENTRIES_OF_CERTIFICATES
    if issubclass(model, CertifiedTreeClassifier):
        entries |= {"grow_size"}
    return frozenset(entries if issubclass(model, TreeVoteClassifier) else entries | {"unit"})


def shapes_of_tree(
    model: TreeVoteEstimator,
    header: dict[str, Any],  # noqa: ARG001 -- naive Bayes has a part of its shapes there
) -> Shapes:
    """Types and shapes of the arrays; number of features and classes are set."""
    width = max(2, model.n_classes_) if isinstance(model, TreeVoteClassifier) else 1
    return {
        (full := f"{part}.{name}"): (dtype, (length, width) if full in _TABLES else (length,))
        for part, columns in _columns(model).items()
        for name, (dtype, length) in columns.items()
    }


def parts_of_tree(model: TreeVoteEstimator) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take a fitted model apart: what goes into the header, and arrays by their names."""
    header: dict[str, Any] = {
        "temperatures": model.temperatures_,
        "shares": model.shares_,
        "laws": model.laws_,
        "optimal_splits": model.tree_.optimal_splits,
        "log_evidence": float(model.weights_.log_evidence),
    }
    arrays = {
        f"{part}.{name}": getattr(getattr(model, f"{part}_"), name)
        for part, columns in _columns(model).items()
        for name in columns
    }
    if isinstance(model.stats_, TargetStats):
        header["unit"] = float(model.stats_.unit)
    if isinstance(model, _CERTIFIED):
        header |= entries_of_certificates(model)
    if isinstance(model, CertifiedTreeClassifier):
        header["grow_size"] = model.grow_size_
    return header, arrays


def restore_tree(
    model: TreeVoteEstimator, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Check these parts and set the fitted attributes; number of features and classes are set."""
    parts = {
        part: [arrays[f"{part}.{name}"] for name in columns]
        for part, columns in _columns(model).items()
    }
    tree = Tree(
        **dict(zip(_TREE, parts["tree"], strict=True)),
        n_features=model.n_features_in_,
        optimal_splits=header["optimal_splits"],
    )
    expect_known_categories(model, tree)
    weight, log_odds, *chains = parts["weights"]
    law = NodeWeights(weight, log_odds, _number(header["log_evidence"]), *chains).of(tree)
    # Each pruning has one leaf on every path; a vote of ones adds up to how many there are.
    leaves = push_down(tree.left, law.weight, None, np.ones((tree.n_nodes, 1)), 1)
    if not np.allclose(leaves[tree.is_leaf], 1):
        raise ValueError("weight must sum to 1 along every path of the tree")
    stats = _stats_of(model, header, parts["stats"]).of(tree)
    if isinstance(stats, SparseNodeStats):
        ballot = vote(tree, stats, law, model._voting())
    else:
        ballot = Vote(*parts["vote"])
    if isinstance(model, TreeVoteClassifier) and isinstance(ballot, Vote):
        _expect_shares(model, ballot, tree.is_leaf)
    model._set_laws(_laws(model, header))
    model._set_fitted(tree, stats, law, ballot)
    _expect_usable(model)
    if isinstance(model, CertifiedTreeRegressor):
        model.held_ = None
        model.bands_ = Bands(*parts["bands"]).of(tree)
        model.scores_ = Scores(*parts["scores"])
        if model.bands_.region.max() >= len(model.scores_.mass):
            raise ValueError("the bands have regions that no scores are of")
        restore_certificates(model, header)
    if isinstance(model, CertifiedTreeClassifier):
        model.election_ = model.judging_ = None
        model.grow_size_ = _grow_size(header["grow_size"])
        restore_certificates(model, header)


def _stats_of(
    model: TreeVoteEstimator, header: dict[str, Any], columns: list[NDArray[Any]]
) -> Stats:
    if not isinstance(model, TreeVoteClassifier):
        rows, mean, sse = columns
        return TargetStats(rows, mean, sse, _number(header["unit"]))
    if model._has_sparse_stats():
        begin, classes, weight, label = columns
        return SparseNodeStats(begin, classes, weight, label, model.n_classes_)
    return NodeStats(*columns)


def _grow_size(value: Any) -> float:
    share = _number(value)
    if not 0 <= share < 1:
        raise ValueError(f"grow_size must lie in [0, 1), got {share!r}")
    return share


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {value!r}")
    return float(value)


def _expect_shares(model: TreeVoteClassifier, ballot: Vote, is_leaf: NDArray[np.bool_]) -> None:
    """Votes in the leaves are shares, and the classes that there are have most of them."""
    if not np.allclose(ballot.score[is_leaf].sum(axis=1), 1) or ballot.score.min() < 0:
        raise ValueError("the votes in a leaf are no shares that sum to 1")
    if ballot.label[is_leaf].max() >= model.n_classes_:
        raise ValueError(
            f"a leaf votes for another class than the {model.n_classes_} that there are"
        )


def _expect_usable(model: TreeVoteEstimator) -> None:
    """What predictions look up of the parameters goes with the tree."""
    slopes = model._voting().slopes
    if slopes is not None and len(slopes) != model.n_features_in_:
        raise ValueError(f"slopes must have shape ({model.n_features_in_},), got {slopes.shape}")
    # Leaves compare none, but slopes look it up at all nodes.
    codes("feature", model.tree_.feature, model.tree_.n_nodes, model.n_features_in_)
    model._partition()
    threads(model.n_jobs)


def _laws(model: TreeVoteEstimator, header: dict[str, Any]) -> Mixture:
    temperatures, families = header["temperatures"], header["laws"]
    if not isinstance(temperatures, dict) or set(temperatures) != set(model._temperatures):
        raise ValueError(f"expected temperatures {model._temperatures}, got {temperatures!r}")
    if not isinstance(families, list) or not all(isinstance(name, str) for name in families):
        raise ValueError(f"laws must be a list of names, got {families!r}")
    shares = np.array(header["shares"], dtype=np.float64)
    laws = [
        np.broadcast_to(np.array(temperatures[name], dtype=np.float64), shares.shape)
        for name in model._temperatures
    ]
    if np.isnan(laws).any():
        raise ValueError(f"temperatures must be numbers, got {temperatures}")
    return Mixture(np.stack(laws, axis=1), shares, families)
