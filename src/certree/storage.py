"""Model files: arrays and a JSON header, never code.

A model file is a zip archive of NumPy arrays. The array "header" holds JSON: format, version, class,
parameters and what else is no array. Nothing in a file is ever executed, and every part is checked
before a model is made of it.
"""

import json
import os
import zipfile
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from certree.categories import Categories
from certree.certificate import METHODS, Certificate
from certree.certified import CertifiedVote
from certree.classifier import (
    HelmboldSchapireClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    TreeVoteClassifier,
)
from certree.estimator import TreeVoteEstimator
from certree.output import write_whole
from certree.regressor import PACBayesTreeRegressor, PrunedTreeRegressor
from certree.stats import NodeStats, Stats, TargetStats
from certree.tree import Tree
from certree.tune import Mixture
from certree.votes import Vote
from certree.weights import NodeWeights

FORMAT, VERSION = "certree model", 1

_MODELS: dict[str, type[TreeVoteEstimator]] = {
    model.__name__: model
    for model in (
        HelmboldSchapireClassifier,
        PACBayesTreeClassifier,
        PACBayesTreeRegressor,
        PrunedTreeClassifier,
        PrunedTreeRegressor,
    )
}
# scikit-learn trees that a model may name as its partition.
_PARTITIONS = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)

_COLUMNS = {
    "tree": (
        "feature",
        "threshold",
        "left",
        "chain",
        "missing_left",
        "category_start",
        "categories",
    ),
    "weights": ("weight", "log_odds", "chain_entropy", "chain_mode"),
    "vote": ("score",),
}
_CLASS_STATS, _TARGET_STATS = ("counts", "label"), ("rows", "mean", "sse")


def _columns(model: type) -> dict[str, tuple[str, ...]]:
    """The arrays of a model by its parts."""
    stats = _CLASS_STATS if issubclass(model, TreeVoteClassifier) else _TARGET_STATS
    return {**_COLUMNS, "stats": stats}


def save(model: TreeVoteEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : fitted estimator of certree
        The model.
    path : path
        The file.

    Raises
    ------
    TypeError
        If the model is none of certree's, or a parameter is more than numbers, strings and
        dictionaries of them: a splitter or a random generator.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    if type(model).__name__ not in _MODELS:
        raise TypeError(f"expected a fitted model of certree, got {model!r}")
    model.get_depth()  # raises if the model is not fitted
    names = getattr(model, "feature_names_in_", None)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "model": type(model).__name__,
        "parameters": {
            name: _plain(name, value) for name, value in model.get_params(False).items()
        },
        "temperatures": model.temperatures_,
        "shares": model.shares_,
        "n_features": int(model.n_features_in_),
        "optimal_splits": model.tree_.optimal_splits,
        "categories": None if model.categories_ is None else model.categories_.names,
        "feature_names": None if names is None else [str(name) for name in names],
        "log_evidence": float(model.weights_.log_evidence),
    }
    arrays = {
        f"{part}.{name}": getattr(getattr(model, f"{part}_"), name)
        for part, names in _columns(type(model)).items()
        for name in names
    }
    if isinstance(model, TreeVoteClassifier):
        arrays["classes"] = _plain_classes(np.asarray(model.classes_))
        header["classes"] = arrays["classes"].dtype.str
        header["object_classes"] = bool(np.asarray(model.classes_).dtype == object)
    elif isinstance(model.stats_, TargetStats):
        header["unit"] = float(model.stats_.unit)
    if isinstance(model, CertifiedVote):
        header["certificates"] = [asdict(one) for one in model.certificates_]
        deployed = model.certificate_ in model.certificates_
        header["deployed"] = model.certificates_.index(model.certificate_) if deployed else None
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)

    def write(file: BinaryIO) -> None:
        np.savez_compressed(file, header=text, **arrays)

    write_whole(path, write)


def load(path: str | os.PathLike[str]) -> TreeVoteEstimator:
    """Read a model that `save` wrote. It predicts what the saved one did, bit by bit.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    fitted estimator of certree

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no model file, is damaged, or is of a later version.
    """
    arrays = _arrays(path)
    try:
        return _model(arrays)
    except Exception as error:  # whatever goes wrong, the file is the reason
        raise ValueError(f"{os.fspath(path)} is no valid model file: {error}") from error


def _plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.dtype == object:
        if not all(isinstance(label, str) for label in classes):
            raise TypeError("classes must be numbers, booleans or strings to be saved")
        return classes.astype(str)
    return classes


def _arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("not a zip archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # parsers of foreign bytes raise anything
        raise ValueError(f"{os.fspath(path)} is no model file, or damaged: {error}") from error


def _model(arrays: dict[str, NDArray[Any]]) -> TreeVoteEstimator:
    header = json.loads(arrays["header"].tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if header["version"] != VERSION:
        raise ValueError(f"its version is {header['version']!r}, this certree reads {VERSION}")
    if header["model"] not in _MODELS:
        raise ValueError(f"unknown model {header['model']!r}")
    parameters = {name: _restored(value) for name, value in header["parameters"].items()}
    model = _MODELS[header["model"]](**parameters)
    model._validate_params()
    columns = _columns(type(model))
    parts = {part: [arrays[f"{part}.{name}"] for name in names] for part, names in columns.items()}
    tree = Tree(
        **dict(zip(_COLUMNS["tree"], parts["tree"], strict=True)),
        n_features=_whole("n_features", header["n_features"]),
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
        if arrays["classes"].dtype.str != header["classes"]:
            raise ValueError(f"expected classes of type {header['classes']}")
        _set_classes(model, arrays["classes"], header["object_classes"], n_scores)
    else:
        rows, mean, sse = parts["stats"]
        stats = TargetStats(rows, mean, sse, float(header["unit"])).of(tree)
        n_scores = 1
    if ballot.score.shape != (tree.n_nodes, n_scores):
        raise ValueError(f"the vote has shape {ballot.score.shape}, not {tree.n_nodes, n_scores}")
    _set_features(model, tree, header["feature_names"])
    model.categories_ = _categories(header["categories"], tree.n_features)
    temperatures = header["temperatures"]
    if set(temperatures) != set(model._temperatures):
        raise ValueError(f"expected temperatures {model._temperatures}, got {temperatures}")
    shares = np.array(header["shares"], dtype=np.float64)
    laws = [
        np.broadcast_to(np.array(temperatures[name], dtype=np.float64), shares.shape)
        for name in model._temperatures
    ]
    model._set_laws(Mixture(np.stack(laws, axis=1), shares))
    model._set_fitted(tree, stats, law, ballot)
    if isinstance(model, CertifiedVote):
        _set_certificates(model, header["certificates"], header["deployed"])
    return model


def _set_certificates(model: CertifiedVote, saved: list[dict[str, Any]], deployed: Any) -> None:
    certificates = []
    for one in saved:
        if one["method"] not in METHODS:
            raise ValueError(f"unknown method {one['method']!r}")
        certificates.append(Certificate(**{**one, "observed": tuple(one["observed"])}))
    model.preprocessor_ = model.election_ = None
    model.certificates_ = tuple(certificates)
    model.certificate_ = None if deployed is None else model.certificates_[deployed]


def _set_classes(
    model: TreeVoteClassifier, classes: NDArray[Any], as_objects: bool, n_counted: int
) -> None:
    if classes.ndim != 1 or not len(classes) or max(2, len(classes)) != n_counted:
        raise ValueError(f"{classes.shape} classes do not go with {n_counted} counted ones")
    if classes.dtype.kind not in "biufU" or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes must be sorted and distinct numbers, booleans or strings")
    model.classes_ = classes.astype(object) if as_objects else classes
    model.n_classes_ = len(classes)


def _categories(names: Any, n_features: int) -> Categories | None:
    if names is None:
        return None
    if len(names) != n_features:
        raise ValueError(f"expected categories of {n_features} features, got {len(names)}")
    for known in names:
        kinds = {type(name) for name in known or ()}
        if known is not None and (kinds - {str} and kinds - {float}):
            raise ValueError(f"categories must be all strings or all numbers, got {known!r}")
        if known is not None and sorted(set(known)) != known:
            raise ValueError(f"categories must be sorted and distinct, got {known!r}")
    return Categories(tuple(None if known is None else tuple(known) for known in names))


def _set_features(model: TreeVoteEstimator, tree: Tree, names: list[str] | None) -> None:
    model.n_features_in_ = tree.n_features
    if names is None:
        return
    if (
        not isinstance(names, list)
        or len(names) != tree.n_features
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"expected {tree.n_features} feature names, got {names!r}")
    model.feature_names_in_ = np.array(names, dtype=object)


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a positive whole number, got {value!r}")
    return value


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON: an estimator becomes its name and its parameters."""
    if type(value).__name__ in _PARTITIONS:
        parameters = value.get_params()
        return {
            "estimator": type(value).__name__,
            "parameters": {key: _plain(key, inner) for key, inner in parameters.items()},
        }
    if isinstance(value, dict):
        return {"items": [[_plain(name, key), _plain(name, inner)] for key, inner in value.items()]}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(name, inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"parameter {name!r} cannot be saved: expected a number, a string or a scikit-learn decision "
        f"tree, got {value!r}"
    )


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "items" in value:
        return {_restored(key): _restored(inner) for key, inner in value["items"]}
    if value["estimator"] not in _PARTITIONS:
        raise ValueError(f"unknown partition {value['estimator']!r}")
    import sklearn.tree

    parameters = {key: _restored(inner) for key, inner in value["parameters"].items()}
    return getattr(sklearn.tree, value["estimator"])(**parameters)
