"""Cases of explanations, exports and files of models."""

import json
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import certree
from benchmarks.answers.ensembles import CODED, FEW, TREES, ensemble_parts
from benchmarks.answers.hashes import Case, Parts, case, digest
from benchmarks.answers.single_trees import fit_model
from benchmarks.answers.tables import table
from certree import Cart, load, save
from certree.explain import banzhaf_values, interaction_fractions, shapley_values

TEN = {"n_estimators": 10}
LEAVES = {"grower": Cart(max_leaf_nodes=12)}
# Models that add up trees: a class, a table of small cases, parameters.
SUMS: Mapping[str, tuple[Any, str, Mapping[str, Any]]] = {
    "pac-bayes": (certree.PACBayesTreeClassifier, "normal", LEAVES),
    "pac-bayes, three": (certree.PACBayesTreeClassifier, "three", LEAVES),
    "pac-bayes, frame": (certree.PACBayesTreeClassifier, "frame", LEAVES),
    "pac-bayes, missing": (certree.PACBayesTreeClassifier, "missing", LEAVES),
    "pac-bayes numbers": (certree.PACBayesTreeRegressor, "rough wave", LEAVES),
    "pruned": (certree.PrunedTreeClassifier, "coded", CODED),
    "pruned numbers": (certree.PrunedTreeRegressor, "wave", {}),
    "helmbold-schapire": (certree.HelmboldSchapireTreeClassifier, "normal", LEAVES),
    "certified": (certree.CertifiedTreeClassifier, "frame", {"grower": Cart(max_leaf_nodes=12)}),
    "certified numbers": (certree.CertifiedTreeRegressor, "wave", LEAVES),
    "boosting": (certree.BoostedTreesClassifier, "frame", FEW),
    "boosting, three": (certree.BoostedTreesClassifier, "three", FEW),
    "boosting numbers": (certree.BoostedTreesRegressor, "rough wave", FEW),
    "boosting counts": (certree.BoostedTreesRegressor, "counts", {**FEW, "loss": "poisson"}),
    "forest": (certree.TreeForestClassifier, "frame", {**TREES, "max_depth": 5}),
    "forest, three": (certree.TreeForestClassifier, "three", {**TREES, "max_depth": 5}),
    "forest numbers": (certree.TreeForestRegressor, "rough wave", {**TREES, "max_depth": 5}),
    "certified forest": (certree.CertifiedForestClassifier, "three", {**TEN, "max_depth": 5}),
    "adaboost": (certree.AdaBoostTreeClassifier, "normal", {**TEN, "max_depth": 2}),
    "adaboost, three": (certree.AdaBoostTreeClassifier, "three", {**TEN, "max_depth": 3}),
}
OTHERS: Mapping[str, tuple[Any, str, Mapping[str, Any]]] = {
    "naive Bayes": (certree.NaiveBayesClassifier, "frame", {}),
    "balanced boosting": (
        certree.BoostedTreesClassifier,
        "three",
        {**FEW, "class_weight": "balanced"},
    ),
    "forest out of bag": (certree.TreeForestClassifier, "three", {**TREES, "oob_score": True}),
    "grouped": (certree.CertifiedTreeClassifier, "normal", {"groups": True}),
}


@case
def explain(estimator: Any, name: str, params: Mapping[str, Any]) -> Parts:
    """Return the parts of the explanations of a model."""
    data, model = table(name), fit_model(name, estimator, **params)
    new, background = data.new[:20], data.X[:25]
    parts: Parts = {}
    for how, values in (("shapley", shapley_values), ("banzhaf", banzhaf_values)):
        for kind, other in (("", None), (", background", background)):
            try:
                found = values(model, new, other)
            except ValueError as error:
                parts[how + kind] = type(error).__name__
                continue
            parts[how + kind] = (found.base, found.contributions)
    shared = interaction_fractions(model, data.X)
    of_some = (shared.single, shared.pairs, shared.paired)
    parts["interactions"] = (*of_some, shared.higher, shared.error)
    if hasattr(model, "rules"):
        parts["rules"] = [str(rule) for rule in model.rules()]
        parts["text"] = model.export_text()
        parts["path"] = [str(cell) for cell in model.path(data.new[:1])]
    return parts


@case
def export(estimator: Any, name: str, params: Mapping[str, Any]) -> Parts:
    """Return the parts of the exports of a model."""
    data, model = table(name), fit_model(name, estimator, **params)
    parts: Parts = {"dictionary": json.dumps(model.to_dict()), "sql": model.to_sql("rows")}
    for dtype in ("float32", "float64"):
        parts[f"onnx, {dtype}"] = digest(model.to_onnx(dtype).SerializeToString().hex())
    try:
        theirs = model.to_sklearn()
    except ValueError as error:
        parts["scikit-learn"] = type(error).__name__
    else:
        coded = model.categories_ is not None
        parts["scikit-learn"] = "" if coded else theirs.predict(data.new)
    return parts


@case
def save_and_load(estimator: Any, name: str, params: Mapping[str, Any]) -> Parts:
    """Return the parts of a model that was saved and loaded, and of one that was pickled."""
    data, model = table(name), fit_model(name, estimator, **params)
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model")
        read = load(Path(folder) / "model")
    pickled = pickle.loads(pickle.dumps(model))
    read_parts = ensemble_parts(read, data)
    return {
        **{f"file, {part}": value for part, value in read_parts.items()},
        **{f"pickle, {part}": value for part, value in ensemble_parts(pickled, data).items()},
        "parameters": str(read.get_params()),
    }


EXPORTS: Mapping[str, dict[str, Case]] = {
    "explained": {case: explain(*of) for case, of in SUMS.items()},
    "exported": {case: export(*of) for case, of in SUMS.items()},
    "kept": {case: save_and_load(*of) for case, of in (SUMS | OTHERS).items()},
}
