"""Cases of models of one tree, with every grower, rule, prior, vote and search."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import certree
from benchmarks.answers import hashes
from benchmarks.answers.hashes import Case, Parts, case
from benchmarks.answers.tables import Table, row_weights, table
from certree import KD, Cart, Dyadic, Grid, Voting, prunings, weights


def use(name: str, **params: Any) -> tuple[str, dict[str, Any]]:
    """Return a fit of a case: the name of its table, and parameters for `fit_model`."""
    return name, params


def use_each(names: str, **params: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return a fit to each of some tables, by the name of the table."""
    return {name: use(name, **params) for name in names.split(", ")}


def by_cv(**parameters: Any) -> dict[str, Any]:
    """Return parameters of a certified vote whose posteriors cross-validation chooses."""
    return {"posteriors": certree.PACBayesPosteriors(**parameters), "selection": "vote"}


def fit_model(
    name: str, kind: Callable[..., Any], /, *, weight: str = "", groups: bool = False, **params: Any
) -> Any:
    """Fit a model to a table; its random state is 0."""
    data = table(name)
    model = kind(**params)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if "duplicates" in model.get_params():  # tables have few different rows
        model.set_params(duplicates="genuine")
    extra: dict[str, Any] = {}
    if weight:
        extra["sample_weight"] = row_weights(weight, len(data.y))
    if groups:
        extra["groups"] = np.arange(len(data.y)) // 3
    if kind is certree.CertifiedTreeClassifier and isinstance(params.get("grower"), Grid):
        extra["classes"] = np.unique(data.y)
    return model.fit(data.X, data.y, **extra)


def model_parts(model: Any, data: Table) -> Parts:
    """Return all hashed parts of a fitted model."""
    parts: Parts = {"predictions": model.predict(data.new), "training": model.predict(data.X)}
    if hasattr(model, "predict_proba"):
        parts["probabilities"] = model.predict_proba(data.new)
    if hasattr(model, "classes_"):
        parts["classes"] = model.classes_
    if hasattr(model, "tree_"):
        parts |= tree_model_parts(model, data)
    if hasattr(model, "predict_std") and not hasattr(model, "leaf_estimators_"):
        parts["spread"] = model.predict_std(data.new)
    if getattr(model, "certificate_", None) is not None:
        parts |= hashes.certificate_parts(model.certificate_)
        for i, certificate in enumerate(model.certificates_):
            parts[f"certificates {i}"] = (certificate.method, *hashes.numbers(certificate))
    if hasattr(model, "power_"):
        parts["joint"] = (model.predict_joint_log_proba(data.new), model.power_)
    return parts


@case
def fit_parts(estimator: Any, compute: Callable[..., Parts], name: str, params: Any) -> Parts:
    """Return the parts of a model that is fitted to a table."""
    return compute(fit_model(name, estimator, **params), table(name))


def fit_all(kind: Any, cases: Mapping[str, Any], compute: Any = model_parts) -> dict[str, Case]:
    """Return the cases of one estimator: each has a table, and parameters for `fit_model`."""
    return {name: fit_parts(kind, compute, *fit) for name, fit in cases.items()}


def tree_model_parts(model: Any, data: Table) -> Parts:
    """Return the stages of a model, and its printed descriptions."""
    path = model.path(data.new[:1])
    # The names of the temperatures are not part of the answer.
    temperatures = [np.atleast_1d(value) for value in model.best_params_.values()]
    return {
        **hashes.tree_parts(model.tree_),
        **hashes.weights_parts(model.weights_),
        "stats": hashes.stats_columns(model.stats_),
        "vote": model.vote_.score,
        "temperatures": temperatures and np.concatenate(temperatures),
        "shares": model.mixture_weights_,
        "leaves": model.apply(data.new),
        "importances": model.feature_importances_,
        "explained": [(cell.node, cell.depth, cell.rows, cell.share) for cell in path],
        "sizes": (model.get_depth(), model.get_n_leaves(), model.weights_.expected_leaves),
    }


def fit_batches() -> Parts:
    """Return the parts of naive Bayes that learns the rows in three batches."""
    data = table("missing")
    model = certree.NaiveBayesClassifier(densities="normal")
    for part in np.array_split(np.arange(len(data.y)), 3):
        model.partial_fit(data.X[part], data.y[part], classes=[0, 1])
    return model_parts(model, data)


@case
def update(name: str, kind: Callable[..., Any], **params: Any) -> Parts:
    """Return the parts of a fit in a fixed box to which rows are added and removed."""
    data = table(name)
    box = Grid([data.X.min(axis=0), data.X.max(axis=0)])
    weight = row_weights("any", len(data.y))
    model, half = kind(box, max_depth=5, **params), len(data.y) // 2
    for rows in (slice(half, None), slice(half)):
        model.partial_fit(data.X[rows], data.y[rows], sample_weight=weight[rows])
    gone = slice(half - 20, half + 20)
    model.forget(data.X[gone], data.y[gone], sample_weight=weight[gone])
    return model_parts(model, data)


def reload() -> Parts:
    """Return the parts of a certified model that was saved and loaded."""
    model = fit_model("frame", certree.CertifiedTreeClassifier)
    with tempfile.TemporaryDirectory() as folder:
        certree.save(model, Path(folder) / "model")
        return model_parts(certree.load(Path(folder) / "model"), table("frame"))


@case
def certify_again(name: str, **params: Any) -> Parts:
    """Return the parts of certificates that are computed after the fit."""
    model, data = fit_model(name, certree.CertifiedTreeClassifier, **params), table(name)
    parts = hashes.selective_parts(model.selective_certificates())
    label, answered = model.predict_selective(data.new, 0.3)
    parts["answered"] = (label, answered)
    parts["by new rows"] = hashes.numbers(model.certify(data.new, data.truth))
    if not isinstance(params.get("grower"), Grid):
        likeliest = weights.map_pruning(model.tree_, model.weights_)
        parts["pruning"] = hashes.numbers(model.certify_pruning(likeliest))
        drawn = model.draw_pruning(random_state=3)
        parts["drawn"] = (drawn.pruning.weight, *hashes.numbers(drawn.certificate))
    return parts


CORNERS = [[0.0, 0.0], [1.0, 1.0]]
FOLDS = KFold(4, shuffle=True, random_state=1)
LISTED_FOLDS = [(np.arange(100), np.arange(100, 160)), (np.arange(60, 160), np.arange(60))]
RISING = [1, 0, -1, 0]
BY_NAME = {"u": 1, "v": -1}

PAPER, SMOOTH = Dyadic(resolution="paper"), prunings.Polynomial(smoothness=3)
GROWERS: Mapping[str, Any] = {
    "cart": "cart",
    "kd": "kd",
    "dyadic": "dyadic",
    "kd, axes in turn": KD("cycle"),
    "kd, 10 rows": KD(min_samples_split=10),
    "kd, impure": KD(stop_when_pure=False),
    "dyadic, 10 rows": Dyadic(min_samples_split=10),
    "dyadic, impure": Dyadic(min_samples_split=5, stop_when_pure=False),
    "gini": Cart("gini"),
    "misclassification": Cart("misclassification"),
    "random cuts": Cart(splitter="random"),
    "20 leaves": Cart(max_leaf_nodes=20),
    "bins": Cart(max_bins=255),
    "few bins": Cart("gini", max_bins=16, max_leaf_nodes=40),
    "10 rows": Cart(min_samples_split=10),
    "2 features": Cart(max_features=2),
    "half of the features": Cart(max_features=0.5),
    "root of the features": Cart(max_features="sqrt"),
    "log of the features": Cart(max_features="log2"),
    "random cuts of 3 features": Cart(splitter="random", max_features=3, max_leaf_nodes=40),
    "scikit-learn": DecisionTreeClassifier(max_depth=6),
}

GIVEN = {"lambda_error": 0.5, "lambda_penalty": 0.0}
PLAIN = {
    **{name: use("normal", grower=grower) for name, grower in GROWERS.items()},
    **use_each("iris, cultivars, cancer, digits, three, single, missing, whole"),
    **use_each("frame, tiny, one class, constant"),
    "leaves": use("cancer", prior="leaves"),
    "branching": use("cancer", prior="branching"),
    "majority": use("three", vote="majority"),
    "majority by error": use("three", vote="majority", scoring="error"),
    "smoothing 1/2": use("three", vote=Voting("mean", smoothing=0.5)),
    "smoothing 0": use("three", vote=Voting("mean", smoothing=0.0)),
    "mixture": use("normal", search="mixture", prior="leaves"),
    "mixture, penalty given": use("normal", lambda_penalty=0.25),
    "joint": use("normal", search="joint"),
    "error first": use("normal", search="error-first"),
    "by error": use("normal", scoring="error"),
    "error given": use("normal", lambda_error=0.5, search="joint"),
    "both given": use("normal", lambda_error=0.5, lambda_penalty=0.125),
    "least decrease": use("normal", grower=Cart(min_impurity_decrease=1 / 128), **GIVEN),
    "least decrease, weights": use(
        "normal", grower=Cart(min_impurity_decrease=1 / 64), **GIVEN, weight="eighths"
    ),
    "depth 0": use("normal", max_depth=0),
    "depth 3": use("normal", max_depth=3),
    "kd, depth 5": use("normal", grower="kd", max_depth=5),
    "dyadic, log depth": use("normal", grower="dyadic", max_depth="log"),
    "balanced": use("three", class_weight="balanced"),
    "class weights": use("iris", class_weight={0: 1.0, 1: 2.5, 2: 0.5}),
    "weights": use("normal", weight="any"),
    "kd, weights": use("normal", weight="any", grower="kd"),
    "dyadic, weights": use("normal", weight="any", grower="dyadic"),
    "eighths": use("whole", weight="eighths"),
    "whole weights": use("whole", weight="whole"),
    "balanced, weights": use("three", class_weight="balanced", weight="any"),
    "scikit-learn, weights": use(
        "normal", grower=DecisionTreeClassifier(min_samples_leaf=3), weight="any"
    ),
    "kd, missing": use("missing", grower="kd"),
    "dyadic, missing": use("missing", grower="dyadic"),
    "missing, weights": use("missing", weight="any"),
    "kd, frame": use("frame", grower="kd"),
    "frame, weights": use("frame", weight="any"),
    "frame, one name": use("frame", categorical_features=["colour", "place"]),
    "coded by number": use("coded", categorical_features=[0, 1]),
    "coded by mask": use("coded", categorical_features=[True, True, False, False]),
    "coded as numbers": use("coded", categorical_features=None),
    "monotonic": use("normal", monotonic_cst=RISING),
    "monotonic by name": use("frame", monotonic_cst=BY_NAME),
    "monotonic majority": use("normal", monotonic_cst=RISING, vote="majority"),
    "monotonic 20 leaves": use("normal", monotonic_cst=RISING, grower=Cart(max_leaf_nodes=20)),
    "five folds": use("normal", cv=5),
    "folds of a splitter": use("normal", cv=FOLDS),
    "folds of a list": use("normal", cv=LISTED_FOLDS),
    "two threads": use("normal", n_jobs=2),
}

CERTIFIED = {
    **use_each("iris, cancer, digits, three, missing, whole, frame, one class"),
    "kd": use("normal", grower="kd"),
    "dyadic": use("normal", grower="dyadic"),
    "kd, axes in turn": use("normal", grower=KD("cycle", min_samples_split=4)),
    "scikit-learn": use("normal", grower=DecisionTreeClassifier(max_depth=6)),
    "half grow": use("cancer", train_size=0.5),
    "delta": use("cancer", delta=0.001),
    "the vote": use("normal", selection="vote"),
    "the vote of three": use("three", selection="vote"),
    "majority": use("cancer", vote="majority", selection="vote"),
    "majority of three": use("three", vote="majority", selection="vote"),
    "smoothing 1": use("three", vote=Voting("mean", smoothing=1.0), selection="vote"),
    "cv": use("cancer", posteriors="cv", selection="vote"),
    "cv, branching": use("normal", **by_cv(prior="branching")),
    "cv, error given": use("normal", **by_cv(lambda_error=0.5)),
    "cv, both given": use("normal", **by_cv(lambda_error=1.0, lambda_penalty=0.5)),
    "cv, by error": use("normal", **by_cv(scoring="error")),
    "cv, error first": use("normal", **by_cv(search="error-first"), vote="majority"),
    "groups": use("normal", groups=True),
    "groups, majority": use("normal", groups=True, vote="majority", selection="vote"),
    "groups, weights": use("normal", groups=True, weight="any"),
    "weights": use("normal", weight="any", selection="vote"),
    "whole weights": use("whole", weight="whole"),
    "balanced": use("three", class_weight="balanced", selection="vote"),
    "balanced, majority": use("cancer", class_weight="balanced", vote="majority"),
    "weights, cv": use("normal", weight="any", posteriors="cv", selection="vote"),
    "standardised": use("cancer", preprocessor=StandardScaler(), grower="kd"),
    "components": use("cancer", preprocessor=PCA(4, random_state=0)),
    "coded": use("coded", categorical_features=[0, 1], selection="vote"),
    "monotonic": use("normal", monotonic_cst=RISING, selection="vote"),
    "random cuts": use("cancer", grower=Cart(splitter="random", max_features="sqrt")),
    "12 leaves": use("cancer", grower=Cart("gini", max_leaf_nodes=12)),
    "depth 3": use("cancer", max_depth=3),
    "five folds": use("cancer", cv=5),
    "box": use("plane", grower=Grid(CORNERS)),
    "box, depth 6": use("plane", grower=Grid(CORNERS), max_depth=6, delta=0.01),
}

DYADIC_RULES = {
    "square-root": prunings.SquareRoot,
    "spatially-adaptive": prunings.SpatiallyAdaptive,
    "polynomial": prunings.Polynomial,
}
EVERY_RULE = ("cost-complexity", "depth", "sibling-merge", *DYADIC_RULES)
CLASS_RULES = (*EVERY_RULE, "pessimistic", "description-length")


def pruned(name: str, every_rule: tuple[str, ...]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return prunings by every rule, of greedy and dyadic trees, with a fixed or a chosen alpha."""
    return {
        **{rule: use(name, rule=rule) for rule in every_rule},
        **{f"{rule}, price 1/2": use(name, rule=rule, alpha=0.5) for rule in every_rule},
        **{f"{rule}, dyadic": use(name, rule=rule, grower="dyadic") for rule in every_rule},
        **{f"{rule}, paper": use(name, rule=rule, grower=PAPER) for rule in DYADIC_RULES},
        **{
            f"{rule}, paper, empty leaves, price 1/64": use(
                name, rule=make(count_empty=True), grower=PAPER, alpha=1 / 64
            )
            for rule, make in DYADIC_RULES.items()
        },
        **{
            f"{rule}, empty leaves": use(
                name, rule=make(count_empty=True), grower=Dyadic(min_samples_split=4)
            )
            for rule, make in DYADIC_RULES.items()
        },
        "polynomial, smoothness 3": use(name, rule=SMOOTH, grower="dyadic"),
    }


PRUNED = {
    **pruned("plane", CLASS_RULES),
    **{f"{rule}, cancer": use("cancer", rule=rule) for rule in CLASS_RULES},
    **use_each("iris, digits, missing, whole, frame, tiny"),
    **{f"{rule}, paper, line": use("line", rule=rule, grower=PAPER) for rule in DYADIC_RULES},
    "polynomial, smoothness 3, paper, line": use("line", rule=SMOOTH, grower=PAPER),
    "as objects, cost": use("three", rule=prunings.CostComplexity()),
    "as objects, depth": use("three", rule=prunings.DepthPenalised()),
    "as objects, merges": use("three", rule=prunings.SiblingMerge()),
    "as objects, pessimistic": use("three", rule=prunings.Pessimistic()),
    "as objects, description": use("three", rule=prunings.DescriptionLength()),
    "log loss": use("three", scoring="log_loss"),
    "merges, log loss": use("three", scoring="log_loss", rule="sibling-merge"),
    "kd": use("normal", grower="kd"),
    "kd, depth rule": use("normal", grower=KD("cycle"), rule="depth"),
    "scikit-learn": use("normal", grower=DecisionTreeClassifier(max_depth=8)),
    "30 leaves": use("normal", grower=Cart("gini", max_leaf_nodes=30)),
    "least decrease": use("normal", grower=Cart(min_impurity_decrease=1 / 128), alpha=1.0),
    "weights": use("normal", weight="any"),
    "weights, paper": use("plane", weight="any", rule="square-root", grower=PAPER),
    "balanced": use("three", class_weight="balanced"),
    "monotonic": use("normal", monotonic_cst=RISING),
    "three folds": use("normal", cv=3, max_depth=6),
}

PRUNED_NUMBERS = {
    **pruned("wave", EVERY_RULE),
    "diabetes": use("diabetes"),
    "rough": use("rough wave", categorical_features=[3]),
    "weights": use("wave", weight="any"),
    "kd": use("wave", grower="kd", rule="sibling-merge"),
    "scikit-learn": use("wave", grower=DecisionTreeRegressor(max_depth=7)),
    "monotonic": use("wave", monotonic_cst=[0, 1, 0]),
    "25 leaves": use("diabetes", grower=Cart(max_leaf_nodes=25)),
}

HELMBOLD_SCHAPIRE = {
    **use_each("cancer, normal, missing, frame, whole"),
    "temperature given": use("normal", inverse_temperature=0.7),
    "smoothing 2": use("normal", smoothing=2.0),
    "log loss": use("normal", scoring="log_loss"),
    "kd": use("normal", grower="kd", cv=3),
    "dyadic": use("normal", grower=Dyadic(min_samples_split=4)),
    "weights": use("normal", weight="any"),
    "balanced": use("normal", class_weight="balanced"),
    "monotonic": use("normal", monotonic_cst=RISING),
    "random cuts": use("normal", grower=Cart(splitter="random"), max_depth=7),
}

NUMBERS = {
    **use_each("diabetes, wave"),
    "any prior": use("diabetes", prior=None),
    "branching": use("diabetes", prior="branching"),
    "smoothing 0": use("diabetes", smoothing=0.0),
    "both free": use("diabetes", lambda_penalty=None),
    "error first": use("diabetes", lambda_penalty=None, search="error-first"),
    "both given": use("diabetes", lambda_error=0.4, lambda_penalty=0.1),
    "kd": use("wave", grower="kd"),
    "kd, axes in turn": use("wave", grower=KD("cycle", min_samples_split=6)),
    "dyadic": use("wave", grower="dyadic"),
    "scikit-learn": use("wave", grower=DecisionTreeRegressor(min_samples_leaf=4)),
    "weights": use("wave", weight="any"),
    "whole weights": use("wave", weight="whole", grower="kd"),
    "monotonic": use("wave", monotonic_cst=[0, 1, 0]),
    "rough": use("rough wave", categorical_features=[3]),
    "rough, kd": use("rough wave", grower="kd"),
    "25 leaves": use("diabetes", grower=Cart(max_leaf_nodes=25)),
    "bins": use("diabetes", grower=Cart(max_bins=255)),
    "few bins, 25 leaves": use("rough wave", grower=Cart(max_bins=16, max_leaf_nodes=25)),
    "random cuts": use("diabetes", grower=Cart(splitter="random", max_features="sqrt")),
    "least decrease": use("diabetes", grower=Cart(min_impurity_decrease=16.0), lambda_error=0.25),
    "three folds": use("diabetes", cv=3, max_depth=5),
}

SMALL = {"max_depth": 3, "random_state": 0}
OURS = {"leaf_estimator": certree.NaiveBayesClassifier(), "scale": False}
# Whole weights, as fractional ones would make it matter how rows are counted for 51 of them.
DECORATED = {
    "normal": ("normal", SMALL),
    "defaults": use("three"),
    "cancer": ("cancer", SMALL),
    "polynomial": use("normal", **SMALL, rule="polynomial"),
    "polynomial, price given": use("normal", **SMALL, rule="polynomial", alpha=0.001),
    "polynomial, smoothness 3": use("normal", **SMALL, rule=SMOOTH, alpha=0.0005),
    "log loss": use("normal", **SMALL, scoring="log_loss"),
    "naive Bayes": use("normal", **SMALL, leaf_estimator=GaussianNB()),
    "naive Bayes, polynomial": use(
        "three", **SMALL, leaf_estimator=GaussianNB(), rule="polynomial"
    ),
    "ours, missing": use("missing", **SMALL, **OURS),
    "cart": use("normal", **SMALL, grower="cart"),
    "8 leaves": use("normal", grower=Cart("gini", max_leaf_nodes=8, min_samples_split=51)),
    "dyadic": use("normal", **SMALL, grower="dyadic"),
    "axes in turn": use("normal", **SMALL, grower=KD("cycle", min_samples_split=101)),
    "many rows": use("normal", **SMALL, min_samples_model=120, scale=False),
    "weights": use("normal", **SMALL, weight="whole"),
    "weights, polynomial": use("normal", **SMALL, weight="whole", rule="polynomial"),
    "balanced": use("normal", **SMALL, class_weight="balanced"),
    "coded": use("coded", **SMALL, **OURS, categorical_features=[0, 1], grower="cart"),
}
DECORATED_NUMBERS = {
    "wave": ("wave", SMALL),
    "diabetes": use("diabetes"),
    "cart": use("wave", **SMALL, grower=Cart(min_samples_split=81)),
    "straight lines": use("wave", **SMALL, leaf_estimator=LinearRegression(), scale=False),
    "weights": use("wave", **SMALL, weight="whole", cv=4),
    "dyadic": use("wave", **SMALL, grower="dyadic", min_samples_model=90),
}

NAIVE_BAYES = {
    **use_each("iris, cancer, missing, frame, whole"),
    "normal densities": use("cultivars", densities="normal"),
    "histograms": use("cultivars", densities="histogram", bins=7),
    "histograms by rule": use("cultivars", densities="histogram", bins="fd", alpha=0.5),
    "of categories": use("whole", densities="categorical"),
    "of each": use("coded", densities=["categorical", "categorical", "normal", "histogram"]),
    "coded": use("coded", categorical_features=[0, 1]),
    "weights": use("missing", weight="any"),
    "balanced": use("frame", class_weight="balanced"),
    "priors": use("iris", priors=[0.2, 0.3, 0.5]),
    "power 1/2": use("cancer", power=0.5),
}

# Rows of weight zero of a certified fit are treated otherwise than in the first record, on purpose.
ZERO_WEIGHTS = {
    "plain": use("whole", weight="zero"),
    "plain, kd": use("whole", weight="zero", grower="kd"),
    "plain, cv listed": use("whole", weight="zero", cv=LISTED_FOLDS),
}
ZERO_WEIGHTS_SPLIT = {
    "split": use("whole", weight="zero"),
    "split, the vote": use("whole", weight="zero", selection="vote"),
}

SINGLE_TREES: Mapping[str, dict[str, Case]] = {
    "pac-bayes": fit_all(certree.PACBayesTreeClassifier, PLAIN),
    "pac-bayes regressor": fit_all(certree.PACBayesTreeRegressor, NUMBERS),
    "certified": fit_all(certree.CertifiedTreeClassifier, CERTIFIED),
    "pruned": fit_all(certree.PrunedTreeClassifier, PRUNED),
    "pruned regressor": fit_all(certree.PrunedTreeRegressor, PRUNED_NUMBERS),
    "helmbold-schapire": fit_all(certree.HelmboldSchapireTreeClassifier, HELMBOLD_SCHAPIRE),
    "decorated": fit_all(certree.DecoratedTreeClassifier, DECORATED),
    "decorated regressor": fit_all(certree.DecoratedTreeRegressor, DECORATED_NUMBERS),
    "naive Bayes": fit_all(certree.NaiveBayesClassifier, NAIVE_BAYES) | {"in parts": fit_batches},
    "certified again": {
        "cancer": certify_again("cancer"),
        "three, the vote": certify_again("three", selection="vote"),
        "box": certify_again("plane", grower=Grid(CORNERS)),
        "from a file": reload,
    },
    "updated": {
        "classes": update(
            "plane", certree.PACBayesTreeClassifier, lambda_error=1.0, lambda_penalty=0.1
        ),
        "numbers": update(
            "wave", certree.PACBayesTreeRegressor, lambda_error=0.5, lambda_penalty=0.0
        ),
        "pruned": update("plane", certree.PrunedTreeClassifier, alpha=1.0),
    },
    "zero-weight": fit_all(certree.PACBayesTreeClassifier, ZERO_WEIGHTS),
    "zero-weight certified": fit_all(certree.CertifiedTreeClassifier, ZERO_WEIGHTS_SPLIT),
}
