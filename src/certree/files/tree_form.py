"""What a model file holds of a tree in which prunings vote."""

from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.certificates.certificate import METHODS, Certificate
from certree.estimators.certified import CertifiedTreeClassifier
from certree.estimators.tree_vote import TreeVoteClassifier, TreeVoteEstimator
from certree.stats import NodeStats, Stats, TargetStats
from certree.tree import Tree
from certree.tune import Mixture
from certree.votes import Vote
from certree.weights.node_weights import NodeWeights

_SPLITS = ("feature", "threshold", "left", "chain", "missing_left")
_COLUMNS = {
    "tree": (*_SPLITS, "category_start", "categories"),
    "weights": ("weight", "log_odds", "chain_entropy", "chain_mode"),
    "vote": ("score",),
}


_CLASS_STATS, _TARGET_STATS = ("counts", "label"), ("rows", "mean", "sse")


def _columns(model: type) -> dict[str, tuple[str, ...]]:
    """The arrays of a model by its parts."""
    stats = _CLASS_STATS if issubclass(model, TreeVoteClassifier) else _TARGET_STATS
    return {**_COLUMNS, "stats": stats}


def parts_of_tree(model: TreeVoteEstimator) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take a fitted model apart: what goes into the header, and arrays by their names."""
    header: dict[str, Any] = {
        "temperatures": model.temperatures_,
        "shares": model.shares_,
        "optimal_splits": model.tree_.optimal_splits,
        "log_evidence": float(model.weights_.log_evidence),
    }
    arrays = {
        f"{part}.{name}": getattr(getattr(model, f"{part}_"), name)
        for part, names in _columns(type(model)).items()
        for name in names
    }
    if isinstance(model.stats_, TargetStats):
        header["unit"] = float(model.stats_.unit)
    if isinstance(model, CertifiedTreeClassifier):
        header["certificates"] = [asdict(one) for one in model.certificates_]
        header["deployed"] = model.certificates_.index(model.certificate_)
    return header, arrays


def restore_tree(
    model: TreeVoteEstimator, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Check these parts and set the fitted attributes; number of features and classes are set."""
    columns = _columns(type(model))
    parts = {part: [arrays[f"{part}.{name}"] for name in names] for part, names in columns.items()}
    tree = Tree(
        **dict(zip(_COLUMNS["tree"], parts["tree"], strict=True)),
        n_features=model.n_features_in_,
        optimal_splits=header["optimal_splits"],
    )
    weight, log_odds, *chains = parts["weights"]
    law = NodeWeights(weight, log_odds, float(header["log_evidence"]), *chains).of(tree)
    ballot = Vote(*parts["vote"])
    if isinstance(model, TreeVoteClassifier):
        stats: Stats = NodeStats(*parts["stats"]).of(tree)
        n_scores = stats.table.shape[1]
        if not np.allclose(ballot.score[tree.is_leaf].sum(axis=1), 1) or ballot.score.min() < 0:
            raise ValueError("the votes in a leaf are no shares that sum to 1")
        model.n_classes_ = len(model.classes_)
        if max(2, model.n_classes_) != n_scores:
            raise ValueError(f"{model.n_classes_} classes do not go with {n_scores} counted ones")
    else:
        rows, mean, sse = parts["stats"]
        stats = TargetStats(rows, mean, sse, float(header["unit"])).of(tree)
        n_scores = 1
    if ballot.score.shape != (tree.n_nodes, n_scores):
        raise ValueError(f"the vote has shape {ballot.score.shape}, not {tree.n_nodes, n_scores}")
    model._set_laws(_laws(model, header["temperatures"], header["shares"]))
    model._set_fitted(tree, stats, law, ballot)
    if isinstance(model, CertifiedTreeClassifier):
        _set_certificates(model, header["certificates"], header["deployed"])


def _laws(model: TreeVoteEstimator, temperatures: dict[str, Any], given: list[float]) -> Mixture:
    if set(temperatures) != set(model._temperatures):
        raise ValueError(f"expected temperatures {model._temperatures}, got {temperatures}")
    shares = np.array(given, dtype=np.float64)
    laws = [
        np.broadcast_to(np.array(temperatures[name], dtype=np.float64), shares.shape)
        for name in model._temperatures
    ]
    return Mixture(np.stack(laws, axis=1), shares)


def _set_certificates(
    model: CertifiedTreeClassifier, saved: list[dict[str, Any]], deployed: Any
) -> None:
    certificates, entries = [], {field.name for field in fields(Certificate)}
    for one in saved:
        if set(one) != entries:
            raise ValueError(f"expected a certificate with {sorted(entries)}, got {one!r}")
        if one["method"] not in METHODS:
            raise ValueError(f"unknown method {one['method']!r}")
        certificates.append(Certificate(**{**one, "observed": tuple(one["observed"])}))
    if deployed not in range(len(certificates)):
        raise ValueError(
            f"deployed must be one of {len(certificates)} certificates, got {deployed!r}"
        )
    model.election_ = None
    model.certificates_ = tuple(certificates)
    model.certificate_ = model.certificates_[deployed]
