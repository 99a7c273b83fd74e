"""Cases of ensembles: boosting, forests, AdaBoost, certified forests, and intervals."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import certree
from benchmarks.answers import single_trees
from benchmarks.answers.hashes import Case, Parts, case, numbers, trees_parts
from benchmarks.answers.single_trees import BY_NAME, RISING, fit_model, model_parts, use, use_each
from benchmarks.answers.tables import Table, row_weights, table
from certree.ensembles import ConformalBandRegressor

# What else models are asked: each attribute or answer, if a model has it.
ATTRIBUTES = {
    "start": "start_",
    "rounds": "n_iter_",
    "thresholds": "thresholds_",
    "importances": "feature_importances_",
    "validation": "validation_score_",
    "out of bag": "oob_decision_function_",
    "numbers out of bag": "oob_prediction_",
    "score out of bag": "oob_score_",
    "votes of learners": "estimator_weights_",
    "errors of learners": "estimator_errors_",
    "bounds of learners": "error_bounds_",
    "training errors": "training_errors_",
    "rows": "sample_hashes_",
}
ANSWERS: Mapping[str, tuple[str, Callable[[Table], tuple[Any, ...]]]] = {
    "scores": ("decision_function", lambda data: (data.new,)),
    "leaves": ("apply", lambda data: (data.new,)),
    "staged": ("staged_predict", lambda data: (data.new,)),
    "staged probabilities": ("staged_predict_proba", lambda data: (data.new,)),
    "staged losses": ("staged_loss", lambda data: (data.new, data.truth)),
    "margins": ("margins", lambda data: (data.new, data.truth)),
    "proximity": ("proximity", lambda data: (data.new, [[0, 1], [1, 1]])),
}


def ensemble_parts(model: Any, data: Table) -> Parts:
    """Return all hashed parts of a fitted ensemble."""
    parts = model_parts(model, data)
    if getattr(model, "trees_", None) is not None:
        parts |= trees_parts(model.trees_)
    for part, name in ATTRIBUTES.items():
        if hasattr(model, name):
            values = getattr(model, name)
            parts[part] = [-1 if one is None else one for one in np.atleast_1d(values)]
    for part, (name, arguments) in ANSWERS.items():
        if hasattr(model, name):
            found = getattr(model, name)(*arguments(data))
            parts[part] = list(found) if part.startswith("staged ") or part == "staged" else found
    if hasattr(model, "explain"):
        explained = model.explain(data.new)
        parts["explained"] = (explained.base, explained.contributions)
    return parts


fit_all = partial(single_trees.fit_all, compute=ensemble_parts)


# -- boosting --------------------------------------------------------------------------------------

FEW = {"max_iter": 8}
# Options that classes and numbers share, for a table of four features.
STEPS: Mapping[str, Mapping[str, Any]] = {
    "learning rate": {"learning_rate": 0.4},
    "4 leaves": {"max_leaf_nodes": 4},
    "any leaves": {"max_leaf_nodes": None},
    "depth 2": {"max_depth": 2},
    "40 rows": {"min_samples_leaf": 40},
    "no l2": {"l2_regularization": 0.0},
    "half of the features": {"max_features": 0.5},
    "4 thresholds": {"max_thresholds": 4},
    "every threshold": {"max_thresholds": None},
    "half grow": {"subsample": 0.5},
    "all grow": {"subsample": 1.0},
    "whole trees": {"prunings": "none"},
    "whole trees, all grow": {"prunings": "none", "subsample": 1.0},
    "interactions": {"interaction_cst": [[0, 1], [2]]},
    "two threads": {"n_jobs": 2},
    "stopped early": {"early_stopping": True, "max_iter": 40, "n_iter_no_change": 3},
}
WEIGHTS = ("any", "eighths", "whole", "zero")
CODED = {"categorical_features": [0, 1]}

ALL = "normal, three, missing, whole, single, frame, cancer, digits, tiny, one class, constant"
BOOSTED = {
    **use_each(ALL, **FEW),
    **{name: ("normal", {**FEW, **switches}) for name, switches in STEPS.items()},
    **{f"weights, {kind}": use("normal", **FEW, weight=kind) for kind in WEIGHTS},
    "weights of three": use("three", **FEW, weight="any"),
    "coded": ("coded", {**FEW, **CODED}),
    "coded, weights": ("coded", {**FEW, **CODED, "weight": "any"}),
    "frame, one name": use("frame", **FEW, categorical_features=["colour", "place"]),
    "balanced": use("three", **FEW, class_weight="balanced"),
    "class weights": use("normal", **FEW, class_weight={0: 1.0, 1: 2.5}),
    "monotonic": use("normal", **FEW, monotonic_cst=RISING),
    "monotonic by name": use("frame", **FEW, monotonic_cst=BY_NAME),
    "rounds chosen": use("normal", max_leaf_nodes=8),
    "rounds chosen, three": use("iris", max_leaf_nodes=4, max_thresholds=4),
}
BOOSTED_NUMBERS = {
    "fast": use("wave", quality="fast"),
    "chosen rounds": use("diabetes"),
    **{name: ("wave", {**FEW, **switches}) for name, switches in STEPS.items()},
    **{f"weights, {kind}": use("wave", **FEW, weight=kind) for kind in WEIGHTS},
    **{
        f"{loss}{weight and ', weights'}": use(name, **FEW, loss=loss, weight=weight)
        for loss, name in {
            **dict.fromkeys(("squared_error", "absolute_error", "quantile"), "wave"),
            "huber": "diabetes",
            "poisson": "counts",
            "gamma": "positive",
        }.items()
        for weight in ("", "any")
    },
    "quantile .9": use("diabetes", **FEW, loss="quantile", quantile=0.9),
    "rough": use("rough wave", **FEW, categorical_features=[3]),
    "coded counts": use("counts", **FEW, loss="poisson", categorical_features=[3]),
    "monotonic": use("wave", **FEW, monotonic_cst=[0, 1, 0]),
    "monotonic medians": use("wave", **FEW, monotonic_cst=[0, 1, 0], loss="absolute_error"),
    "rounds chosen": use("wave", max_leaf_nodes=8),
}


@case
def refit(kind: str, name: str, rounds: str, weight: str = "", **params: Any) -> Parts:
    """Return the parts of a model that continues its fit twice with warm_start."""
    data = table(name)
    extra = {"sample_weight": row_weights(weight, len(data.y))} if weight else {}
    model = getattr(certree, kind)(**params, warm_start=True, random_state=0)
    for number in (3, 4, 9):
        model.set_params(**{rounds: number}).fit(data.X, data.y, **extra)
    return ensemble_parts(model, data)


@case
def validate(kind: str, name: str, **params: Any) -> Parts:
    """Return the parts of a model with an explicit validation set."""
    data = table(name)
    model = getattr(certree, kind)(**FEW, **params, random_state=0)
    model.fit(data.X, data.y, X_val=data.new, y_val=data.truth)
    return {"validation": model.validation_score_, "predictions": model.predict(data.new)}


# -- forests, AdaBoost -----------------------------------------------------------------------------

TREES = {"n_estimators": 7}
# Options that classes and numbers share.
GROWTH: Mapping[str, Mapping[str, Any]] = {
    **{
        f"{kind} leaves": {"leaves": kind, "oob_score": True, "n_estimators": 20}
        for kind in ("plain", "refilled", "shrunk", "honest")
    },
    "scored out of bag": {"oob_score": True, "n_estimators": 20},
    "depth 3": {"max_depth": 3},
    "10 rows to split": {"min_samples_split": 10},
    "a share of the rows to split": {"min_samples_split": 0.1},
    "5 rows in leaves": {"min_samples_leaf": 5},
    "a share of the rows in leaves": {"min_samples_leaf": 0.05},
    "every feature": {"max_features": None},
    "2 features": {"max_features": 2},
    "log of the features": {"max_features": "log2"},
    "2 features a tree": {"max_features_per_tree": 2},
    "least decrease": {"min_impurity_decrease": 0.01},
    "extra trees": {"splitter": "random", "bootstrap": False},
    "random cuts": {"splitter": "random"},
    "no bags": {"bootstrap": False},
    "60 rows": {"max_samples": 60},
    "half of the rows": {"max_samples": 0.5},
    "two threads": {"n_jobs": 2},
}
FOREST = {
    **use_each(ALL, **TREES),
    **{name: ("three", {**TREES, **switches}) for name, switches in GROWTH.items()},
    **{f"weights, {kind}": use("normal", **TREES, weight=kind) for kind in WEIGHTS},
    "entropy": use("three", **TREES, criterion="entropy"),
    "entropy of two": use("normal", **TREES, criterion="log_loss"),
    "coded": ("coded", {**TREES, **CODED}),
    "coded, random cuts": ("coded", {**TREES, **CODED, "splitter": "random"}),
    "coded, weights": ("coded", {**TREES, **CODED, "weight": "any"}),
    "balanced": use("three", **TREES, class_weight="balanced"),
    "class weights": use("normal", **TREES, class_weight={0: 1.0, 1: 2.5}),
}
FOREST_NUMBERS = {
    **use_each("wave, diabetes, counts", **TREES),
    **{name: ("wave", {**TREES, **switches}) for name, switches in GROWTH.items()},
    **{f"weights, {kind}": use("wave", **TREES, weight=kind) for kind in WEIGHTS},
    "rough": use("rough wave", **TREES, categorical_features=[3]),
    "rough, random cuts": use("rough wave", **TREES, categorical_features=[3], splitter="random"),
}


@case
def bag_importances(kind: str, name: str, **params: Any) -> Parts:
    """Return the parts of permutation importances from out-of-bag rows."""
    data, model = table(name), fit_model(name, getattr(certree, kind), **TREES, **params)
    return {"importances": model.out_of_bag_importances(data.X, data.y)}


@case
def fit_several(kind: str, name: str) -> Parts:
    """Return the parts of a forest with three targets, two of which depend on the other one."""
    data = table(name)
    signs = (data.X[:, 0] > data.X[:, 1]).astype(data.y.dtype)
    y = np.column_stack([data.y, signs, data.y + signs])
    model = getattr(certree, kind)(**TREES, oob_score=True, random_state=0).fit(data.X, y)
    return {
        "trees": model.trees_,
        "predicted": model.predict(data.X),
        "out of bags": np.hstack(getattr(model, model._oob_attribute)),
        "importances": model.out_of_bag_importances(data.X, y),
    }


ADABOOST = {
    **use_each("normal, three, missing, whole, frame, cancer, tiny, one class", n_estimators=10),
    **{
        f"weights, {kind}": use("normal", n_estimators=10, weight=kind)
        for kind in ("any", "whole", "zero")
    },
    "depth 2": use("normal", n_estimators=10, max_depth=2),
    "depth 3 of three": use("three", n_estimators=10, max_depth=3),
    "sure": use("cancer", n_estimators=10, max_depth=12),
    "slow": use("normal", n_estimators=10, learning_rate=0.5),
    "coded": use("coded", n_estimators=10, max_depth=2, **CODED),
    "two threads": use("normal", n_estimators=10, n_jobs=2),
    "scikit-learn": use("three", n_estimators=10, estimator=DecisionTreeClassifier(max_depth=2)),
    "naive Bayes": use("normal", n_estimators=5, estimator=GaussianNB()),
}
CERTIFIED_FOREST = {
    **use_each("normal, three, missing, whole, frame, cancer, one class", n_estimators=10),
    **{f"weights, {kind}": use("normal", n_estimators=10, weight=kind) for kind in ("any", "zero")},
    "half grow": use("normal", n_estimators=10, max_samples=0.5),
    "delta": use("three", n_estimators=10, delta=0.001),
    "entropy": use("normal", n_estimators=10, criterion="entropy"),
    "random cuts": use("normal", n_estimators=10, splitter="random"),
    "depth 3": use("cancer", n_estimators=10, max_depth=3),
    "coded": use("coded", n_estimators=10, **CODED),
    "two threads": use("normal", n_estimators=10, n_jobs=2),
}
CERTIFIED_BOOSTED = {
    **use_each("normal, three, missing, frame, one class", **FEW),
    **{f"weights, {kind}": use("normal", **FEW, weight=kind) for kind in ("any", "zero")},
    "half trains": use("normal", **FEW, train_size=0.5),
    "groups": use("normal", **FEW, groups=True),
    "fast": use("cancer", quality="fast"),
}


# -- intervals and sets ----------------------------------------------------------------------------

CERTIFIED_NUMBERS = {
    **use_each("wave, diabetes, counts"),
    "one width": use("diabetes", widths="one"),
    "widths of leaves": use("diabetes", widths="leaf"),
    "coverage": use("diabetes", coverage=0.8, delta=0.1),
    "kd": use("wave", grower="kd"),
    "rough": use("rough wave", categorical_features=[3]),
    "weights": use("wave", weight="any"),
    "groups": use("wave", groups=True),
    "half grow": use("diabetes", train_size=0.5),
    "monotonic": use("wave", monotonic_cst=[0, 1, 0]),
}

CERTIFIED_BOOSTED_NUMBERS = {
    **use_each("wave, diabetes, rough wave", **FEW),
    "one width": use("diabetes", **FEW, widths="one"),
    "median": use("diabetes", **FEW, loss="absolute_error", coverage=0.8),
    "weights": use("wave", **FEW, weight="any"),
    "groups": use("wave", **FEW, groups=True),
}


@case
def intervals(
    name: str, params: Mapping[str, Any], kind: Callable[..., Any] = certree.CertifiedTreeRegressor
) -> Parts:
    """Return the parts of a certified regressor with its prediction intervals."""
    data, model = table(name), fit_model(name, kind, **params)
    parts = ensemble_parts(model, data)
    if not params.get("groups"):
        parts["intervals"] = model.predict_interval(data.new)
        parts["narrower"] = model.predict_interval(data.new, 0.6, 0.2)
        promised = [one for one in model.certify_interval() if one is not None]
        parts["promised"] = [numbers(one) for one in promised]
    if kind is certree.CertifiedTreeRegressor:
        parts["by new rows"] = numbers(model.certify_pruning(whole_tree(model)))
    return parts


def whole_tree(model: Any) -> Any:
    """Return the pruning of a model with the largest posterior weight."""
    from certree.weights import map_pruning

    return map_pruning(model.tree_, model.weights_)


@case
def conformal(name: str, **params: Any) -> Parts:
    """Return the parts of intervals around predicted quantiles."""
    data = table(name)
    quantiles = certree.BoostedTreesRegressor("quantile", **FEW)
    model = ConformalBandRegressor(quantiles, random_state=0, **params).fit(data.X, data.y)
    explained = model.explain(data.new)
    return {
        "medians": model.predict(data.new),
        "intervals": model.predict_interval(data.new),
        "margin": (model.margin_, model.n_calibration_),
        "explained": (explained.base, explained.contributions),
    }


@case
def sets(name: str, **params: Any) -> Parts:
    """Return the parts of prediction sets and further guarantees of a certified classifier."""
    data, model = table(name), fit_model(name, certree.CertifiedTreeClassifier, **params)
    parts: Parts = {}
    for kind in (False, True):
        parts[f"sets, {kind}"] = model.predict_set(data.new, 0.8, 0.1, per_class=kind)
        promised = model.certify_set(0.8, 0.1, per_class=kind)
        parts[f"promised, {kind}"] = [numbers(one) for one in promised if one is not None]
    for family, found in model.conditional_guarantees(groups=np.arange(len(data.y)) % 3).items():
        parts[family] = [[str(key), *map(str, numbers(one))] for key, one in found.items()]
    weighed = model.conditional_guarantees(
        "error", weights=row_weights("any", len(data.y)), max_weight=3.0
    )
    parts["elsewhere"] = [numbers(one) for one in weighed["error"].values()]
    return parts


ENSEMBLES: Mapping[str, dict[str, Case]] = {
    "boosting": {
        **fit_all(certree.BoostedTreesClassifier, BOOSTED),
        "further rounds": refit("BoostedTreesClassifier", "normal", "max_iter"),
        "further rounds of three": refit("BoostedTreesClassifier", "three", "max_iter", "any"),
        "evaluated": validate("BoostedTreesClassifier", "three"),
    },
    "boosting regressor": {
        **fit_all(certree.BoostedTreesRegressor, BOOSTED_NUMBERS),
        "further rounds": refit("BoostedTreesRegressor", "wave", "max_iter"),
        "further rounds, poisson": refit(
            "BoostedTreesRegressor", "counts", "max_iter", loss="poisson"
        ),
        "evaluated": validate("BoostedTreesRegressor", "wave", loss="huber"),
    },
    "forest": {
        **fit_all(certree.TreeForestClassifier, FOREST),
        "further trees": refit("TreeForestClassifier", "three", "n_estimators", oob_score=True),
        "further trees, weights": refit("TreeForestClassifier", "normal", "n_estimators", "any"),
        "shuffled": bag_importances("TreeForestClassifier", "three"),
        "several targets": fit_several("TreeForestClassifier", "three"),
    },
    "forest regressor": {
        **fit_all(certree.TreeForestRegressor, FOREST_NUMBERS),
        "further trees": refit("TreeForestRegressor", "wave", "n_estimators"),
        "shuffled": bag_importances("TreeForestRegressor", "rough wave"),
        "several targets": fit_several("TreeForestRegressor", "wave"),
    },
    "adaboost": fit_all(certree.AdaBoostTreeClassifier, ADABOOST),
    "certified boosted": fit_all(certree.CertifiedBoostedTreesClassifier, CERTIFIED_BOOSTED),
    "certified forest": fit_all(certree.CertifiedForestClassifier, CERTIFIED_FOREST),
    "certified regressor": {case: intervals(*fit) for case, fit in CERTIFIED_NUMBERS.items()},
    "certified boosted regressor": {
        case: intervals(*fit, certree.CertifiedBoostedTreesRegressor)
        for case, fit in CERTIFIED_BOOSTED_NUMBERS.items()
    },
    "conformal": {
        "on average": conformal("wave"),
        "for one fit": conformal("diabetes", delta=0.1, coverage=0.8),
        "missing": conformal("rough wave", calibration_size=0.4),
    },
    "sets": {name: sets(name) for name in ("normal", "cancer", "three", "frame")},
}
