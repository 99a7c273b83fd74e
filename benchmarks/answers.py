"""What the library answers, as hashes: `python -m benchmarks.answers [recorded.csv]`.

Fits models of every estimator, with every partition, rule, prior, vote and search, and runs every
stage by itself, on small tables. Each part of an answer (the tree, its statistics, the weights of
its nodes, the vote, predictions, certificates) becomes one hash, whose first 16 hex digits make one
line of a table: case, part, hash. Floating-point numbers count to the last bit, and arrays with
their dtype and shape.

Without an argument the table is written, with one hash for each case unless `--parts` is given. With
the file of a recorded table the two are compared: the cases that differ are printed, and the exit
status is 1 if there are any that were not meant to.

Answers depend on the machine and on the versions of NumPy, SciPy and scikit-learn: record both
tables in the same place.
"""

import argparse
import csv
import hashlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from certree import (
    KD,
    Cart,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    Dyadic,
    Grid,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    NodeStats,
    NodeWeights,
    PACBayesLaws,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    Tree,
    Voting,
    certificates,
    certify,
    count,
    grow,
    grow_cart,
    grow_dyadic,
    grow_kd,
    load,
    measure,
    pac_bayes,
    prunings,
    rows,
    save,
    vote,
    votes,
    weights,
)

RECORD = Path(__file__).parent / "results" / "answers.csv"

Parts = dict[str, Any]
Case = Callable[[], Parts]
Line = tuple[str, str, str]


# -- hashes ----------------------------------------------------------------------------------------


def digest(*values: Any) -> str:
    """First 16 hex digits of the SHA-256 of some arrays, numbers or texts."""
    sha = hashlib.sha256()
    for value in values:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.nan, array + 0.0).astype(array.dtype)
        texts = array.dtype.kind in "OUST"
        kind = "text" if texts else array.dtype.str
        sha.update(f"{kind} {array.shape} ".encode())
        sha.update(repr(array.tolist()).encode() if texts else array.tobytes())
    return sha.hexdigest()[:16]


def tree_parts(tree: Tree) -> Parts:
    """The columns of a tree."""
    columns = ("feature", "threshold", "left", "chain", "missing_left")
    sets = (tree.category_start, tree.categories)
    optimal = str(tree.optimal_splits)
    return {"tree": (*(getattr(tree, name) for name in columns), *sets), "optimal splits": optimal}


def weights_parts(law: NodeWeights) -> Parts:
    """The columns of a law over prunings."""
    chains = (law.log_evidence, law.chain_entropy, law.chain_mode)
    return {"weight": law.weight, "log odds": law.log_odds, "evidence and chains": chains}


def stats_columns(stats: Any) -> tuple[Any, ...]:
    """The columns of class counts, or of the moments of a number."""
    if isinstance(stats, NodeStats):
        return stats.counts, stats.label
    return stats.rows, stats.mean, stats.sse, stats.unit


def numbers(certificate: Any) -> tuple[Any, ...]:
    """The numbers of a certificate."""
    names = ("bound", "risk", "n", "complexity", "delta", "share")
    return tuple(getattr(certificate, name) for name in names)


def certificate_parts(certificate: Any) -> Parts:
    """A certificate with what follows from it."""
    shown = certificate.parts
    needed = [certificate.rows_needed(target) or -1 for target in (0.02, 0.1, 0.3, 0.5)]
    return {
        "certificate": (*numbers(certificate), *certificate.observed),
        "method": certificate.method,
        "parts of the bound": (shown.observed, shown.complexity, shown.confidence),
        "rows needed": needed,
    }


# -- tables ----------------------------------------------------------------------------------------


def normal_table(n: int, p: int, n_classes: int = 2) -> tuple[NDArray[Any], NDArray[Any]]:
    """Normal features, and classes that depend on three of them and on chance."""
    rng = np.random.default_rng(n + p)
    X = rng.normal(size=(n, p))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(edges, score)


def missing_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """The same with values missing."""
    X, y = normal_table(420, 4)
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    return X, y


def whole_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Whole numbers, so that many rows are alike."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 8, size=(360, 3)).astype(np.float64)
    return X, (X[:, 0] + X[:, 1] + rng.integers(0, 5, size=360) > 9).astype(np.int64)


def plane_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Two features in the unit square, and a noisy circle that is not in its middle."""
    rng = np.random.default_rng(3)
    X = rng.random((480, 2))
    inside = ((X - [0.3, 0.7]) ** 2).sum(axis=1) < 0.1
    return X, (inside ^ (rng.random(480) < 0.08)).astype(np.int64)


def line_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """One feature, and two noisy classes that take turns along it."""
    rng = np.random.default_rng(9)
    X = rng.random((800, 1))
    odd = np.isin((11 * X[:, 0]).astype(int), (1, 2, 4, 7, 8, 9))
    return X, (odd ^ (rng.random(800) < 0.1)).astype(np.int64)


def coded_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """Two features of categories 0, 1, ... and two of numbers, with values missing."""
    rng = np.random.default_rng(4)
    n = 400
    codes = np.column_stack([rng.integers(0, 6, n), rng.integers(0, 15, n)]).astype(np.float64)
    X = np.column_stack([codes, rng.normal(size=(n, 2))])
    y = (np.isin(codes[:, 0], (1, 4)) ^ (codes[:, 1] % 4 < 2)) | (X[:, 2] > 1.2)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y.astype(np.int64)


def frame_table() -> tuple[Any, NDArray[Any]]:
    """The same as a data frame with names of categories, and named classes."""
    import pandas as pd

    X, y = coded_table()
    colours = np.array(["red", "blue", "green", "black", "white", "grey"], dtype=object)
    colour = [None if np.isnan(code) else colours[int(code)] for code in X[:, 0]]
    place = [None if np.isnan(code) else f"place {int(code)}" for code in X[:, 1]]
    columns = {"colour": pd.Categorical(colour), "place": place, "u": X[:, 2], "v": X[:, 3]}
    return pd.DataFrame(columns), np.array(["no", "yes"])[y]


def wave_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """A number that depends on two of three features and on chance."""
    rng = np.random.default_rng(5)
    X = rng.random((420, 3))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=420)


def rough_wave_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """The same with values missing and a feature of categories."""
    X, y = wave_table()
    rng = np.random.default_rng(6)
    code = rng.integers(0, 7, len(y)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    return np.column_stack([X, code]), y + np.array([0.0, 1, 0, 2, 1, 0, 3])[code.astype(int)]


def bundled(name: str, n_rows: int | None = None) -> Callable[[], tuple[Any, Any]]:
    """One of scikit-learn's own tables, or its first rows."""

    def read() -> tuple[Any, Any]:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X[:n_rows], y[:n_rows]

    return read


TABLES: Mapping[str, Callable[[], tuple[Any, Any]]] = {
    "iris": bundled("iris"),
    "cultivars": bundled("wine"),
    "cancer": bundled("breast_cancer"),
    "digits": bundled("digits", 600),
    "diabetes": bundled("diabetes"),
    "normal": lambda: normal_table(480, 4),
    "three": lambda: normal_table(450, 5, n_classes=3),
    "single": lambda: (normal_table(480, 4)[0].astype(np.float32), normal_table(480, 4)[1]),
    "missing": missing_table,
    "whole": whole_table,
    "plane": plane_table,
    "line": line_table,
    "coded": coded_table,
    "frame": frame_table,
    "wave": wave_table,
    "rough wave": rough_wave_table,
    "tiny": lambda: normal_table(8, 3),
    "one class": lambda: (normal_table(60, 3)[0], np.full(60, 7)),
    "constant": lambda: (np.ones((40, 2)), np.arange(40) % 3),
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to fit and rows to predict."""

    X: Any
    y: NDArray[Any]
    new: Any
    truth: NDArray[Any]


@cache
def table(name: str) -> Table:
    """Shuffle a table; its last quarter is for prediction."""
    X, y = TABLES[name]()
    order = np.random.default_rng(7).permutation(len(y))
    first, last = order[: 3 * len(y) // 4], order[3 * len(y) // 4 :]
    part = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    return Table(part(first), y[first], part(last), y[last])


def row_weights(kind: str, n: int) -> NDArray[np.float64]:
    """Weights of rows: any number, eighths, whole numbers from 1 or from 0."""
    rng = np.random.default_rng(8)
    drawn = {
        "any": lambda: rng.uniform(0.2, 3.0, n),
        "eighths": lambda: rng.integers(2, 25, n) / 8,
        "whole": lambda: rng.integers(1, 4, n).astype(np.float64),
        "zero": lambda: rng.integers(0, 3, n).astype(np.float64),
    }
    return drawn[kind]()


# -- fitted models ---------------------------------------------------------------------------------


def fits(
    estimator: Callable[..., Any], cases: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> dict[str, Case]:
    """The cases of one estimator: each has a table, and parameters as `fitted` takes them."""

    def of(name: str, params: Mapping[str, Any]) -> Case:
        return lambda: model_parts(fitted(name, estimator, **params), table(name))

    return {case: of(name, params) for case, (name, params) in cases.items()}


def fitted(
    name: str,
    estimator: Callable[..., Any],
    *,
    weight: str = "",
    groups: bool = False,
    **params: Any,
) -> Any:
    """Fit a model to a table; its random state is 0."""
    data = table(name)
    model = estimator(**params)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    extra: dict[str, Any] = {}
    if weight:
        extra["sample_weight"] = row_weights(weight, len(data.y))
    if groups:
        extra["groups"] = np.arange(len(data.y)) // 3
    if estimator is CertifiedTreeClassifier and isinstance(params.get("partition"), Grid):
        extra["classes"] = np.unique(data.y)
    return model.fit(data.X, data.y, **extra)


def model_parts(model: Any, data: Table) -> Parts:
    """All parts of a fitted model."""
    parts: Parts = {"predictions": model.predict(data.new), "training": model.predict(data.X)}
    if hasattr(model, "predict_proba"):
        parts["probabilities"] = model.predict_proba(data.new)
    if hasattr(model, "classes_"):
        parts["classes"] = model.classes_
    if hasattr(model, "tree_"):
        parts |= tree_model_parts(model, data)
    if hasattr(model, "predict_spread") and not hasattr(model, "models_"):
        parts["spread"] = model.predict_spread(data.new)
    if getattr(model, "certificate_", None) is not None:
        parts |= certificate_parts(model.certificate_)
        for i, certificate in enumerate(model.certificates_):
            parts[f"certificates {i}"] = (certificate.method, *numbers(certificate))
    if hasattr(model, "power_"):
        parts["joint"] = (model.predict_joint_log_proba(data.new), model.power_)
    return parts


def tree_model_parts(model: Any, data: Table) -> Parts:
    """The stages of a model and what it says about itself."""
    path = model.path(data.new[:1])
    # The names of the temperatures are not part of the answer.
    temperatures = [np.atleast_1d(value) for value in model.temperatures_.values()]
    return {
        **tree_parts(model.tree_),
        **weights_parts(model.weights_),
        "stats": stats_columns(model.stats_),
        "vote": model.vote_.score,
        "temperatures": temperatures and np.concatenate(temperatures),
        "shares": model.shares_,
        "leaves": model.apply(data.new),
        "importances": model.feature_importances_,
        "explained": [(cell.node, cell.depth, cell.rows, cell.share) for cell in path],
        "sizes": (model.get_depth(), model.get_n_leaves(), model.weights_.expected_leaves),
    }


def fitted_in_parts() -> Parts:
    """Naive Bayes that learns the rows in three parts."""
    data = table("missing")
    model = NaiveBayesClassifier(densities="normal")
    for part in np.array_split(np.arange(len(data.y)), 3):
        model.partial_fit(data.X[part], data.y[part], classes=[0, 1])
    return model_parts(model, data)


def read_again() -> Parts:
    """A certified model that went through a file."""
    model = fitted("frame", CertifiedTreeClassifier)
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model")
        return model_parts(load(Path(folder) / "model"), table("frame"))


def after_certified(name: str, **params: Any) -> Case:
    """What a certified model promises when it is asked again."""

    def run() -> Parts:
        model, data = fitted(name, CertifiedTreeClassifier, **params), table(name)
        parts = selective_parts(model.selective_certificates())
        label, answered = model.predict_selective(data.new, 0.3)
        parts["answered"] = (label, answered)
        parts["by new rows"] = numbers(model.certify(data.new, data.truth))
        if not isinstance(params.get("partition"), Grid):
            likeliest = weights.map_pruning(model.tree_, model.weights_)
            parts["pruning"] = numbers(model.certify_pruning(likeliest))
            drawn = model.draw_pruning(random_state=3)
            parts["drawn"] = (drawn.pruning.weight, *numbers(drawn.certificate))
        return parts

    return run


def selective_parts(found: Any) -> Parts:
    """Margins, coverages and certificates of votes that abstain."""
    return {
        "margins": [(one.margin, one.coverage) for one in found],
        "selective": [numbers(one.certificate) for one in found],
    }


CORNERS = [[0.0, 0.0], [1.0, 1.0]]
FOLDS = KFold(4, shuffle=True, random_state=1)
LISTED_FOLDS = [(np.arange(100), np.arange(100, 160)), (np.arange(60, 160), np.arange(60))]
RISING = [1, 0, -1, 0]
BY_NAME = {"u": 1, "v": -1}

PARTITIONS: Mapping[str, Any] = {
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
    "10 rows": Cart(min_samples_split=10),
    "2 features": Cart(max_features=2),
    "half of the features": Cart(max_features=0.5),
    "root of the features": Cart(max_features="sqrt"),
    "log of the features": Cart(max_features="log2"),
    "random cuts of 3 features": Cart(splitter="random", max_features=3, max_leaf_nodes=40),
    "scikit-learn": DecisionTreeClassifier(max_depth=6),
}

PLAIN = {
    **{name: ("normal", {"partition": partition}) for name, partition in PARTITIONS.items()},
    **{
        name: (name, {})
        for name in ("iris", "cultivars", "cancer", "digits", "three", "single", "missing", "whole")
    },
    **{name: (name, {}) for name in ("frame", "tiny", "one class", "constant")},
    "leaves": ("cancer", {"prior": "leaves"}),
    "branching": ("cancer", {"prior": "branching"}),
    "majority": ("three", {"vote": "majority"}),
    "majority by error": ("three", {"vote": "majority", "scoring": "error"}),
    "smoothing 1/2": ("three", {"vote": Voting("mean", smoothing=0.5)}),
    "smoothing 0": ("three", {"vote": Voting("mean", smoothing=0.0)}),
    "mixture": ("normal", {"search": "mixture", "prior": "leaves"}),
    "mixture, penalty given": ("normal", {"lambda_penalty": 0.25}),
    "joint": ("normal", {"search": "joint"}),
    "error first": ("normal", {"search": "error-first"}),
    "by error": ("normal", {"scoring": "error"}),
    "error given": ("normal", {"lambda_error": 0.5, "search": "joint"}),
    "both given": ("normal", {"lambda_error": 0.5, "lambda_penalty": 0.125}),
    "least decrease": (
        "normal",
        {
            "partition": Cart(min_impurity_decrease=1 / 128),
            "lambda_error": 0.5,
            "lambda_penalty": 0.0,
        },
    ),
    "least decrease, weights": (
        "normal",
        {
            "partition": Cart(min_impurity_decrease=1 / 64),
            "lambda_error": 0.5,
            "lambda_penalty": 0.0,
            "weight": "eighths",
        },
    ),
    "depth 0": ("normal", {"max_depth": 0}),
    "depth 3": ("normal", {"max_depth": 3}),
    "kd, depth 5": ("normal", {"partition": "kd", "max_depth": 5}),
    "dyadic, log depth": ("normal", {"partition": "dyadic", "max_depth": "log"}),
    "balanced": ("three", {"class_weight": "balanced"}),
    "class weights": ("iris", {"class_weight": {0: 1.0, 1: 2.5, 2: 0.5}}),
    "weights": ("normal", {"weight": "any"}),
    "kd, weights": ("normal", {"weight": "any", "partition": "kd"}),
    "dyadic, weights": ("normal", {"weight": "any", "partition": "dyadic"}),
    "eighths": ("whole", {"weight": "eighths"}),
    "whole weights": ("whole", {"weight": "whole"}),
    "balanced, weights": ("three", {"class_weight": "balanced", "weight": "any"}),
    "scikit-learn, weights": (
        "normal",
        {"partition": DecisionTreeClassifier(min_samples_leaf=3), "weight": "any"},
    ),
    "kd, missing": ("missing", {"partition": "kd"}),
    "dyadic, missing": ("missing", {"partition": "dyadic"}),
    "missing, weights": ("missing", {"weight": "any"}),
    "kd, frame": ("frame", {"partition": "kd"}),
    "frame, weights": ("frame", {"weight": "any"}),
    "frame, one name": ("frame", {"categorical_features": ["colour", "place"]}),
    "coded by number": ("coded", {"categorical_features": [0, 1]}),
    "coded by mask": ("coded", {"categorical_features": [True, True, False, False]}),
    "coded as numbers": ("coded", {"categorical_features": None}),
    "monotonic": ("normal", {"monotonic_cst": RISING}),
    "monotonic by name": ("frame", {"monotonic_cst": BY_NAME}),
    "monotonic majority": ("normal", {"monotonic_cst": RISING, "vote": "majority"}),
    "monotonic 20 leaves": (
        "normal",
        {"monotonic_cst": RISING, "partition": Cart(max_leaf_nodes=20)},
    ),
    "five folds": ("normal", {"cv": 5}),
    "folds of a splitter": ("normal", {"cv": FOLDS}),
    "folds of a list": ("normal", {"cv": LISTED_FOLDS}),
    "two threads": ("normal", {"n_jobs": 2}),
}

CERTIFIED = {
    **{
        name: (name, {})
        for name in ("iris", "cancer", "digits", "three", "missing", "whole", "frame", "one class")
    },
    "kd": ("normal", {"partition": "kd"}),
    "dyadic": ("normal", {"partition": "dyadic"}),
    "kd, axes in turn": ("normal", {"partition": KD("cycle", min_samples_split=4)}),
    "scikit-learn": ("normal", {"partition": DecisionTreeClassifier(max_depth=6)}),
    "half grow": ("cancer", {"grow_size": 0.5}),
    "delta": ("cancer", {"delta": 0.001}),
    "the vote": ("normal", {"deploy": "vote"}),
    "the vote of three": ("three", {"deploy": "vote"}),
    "majority": ("cancer", {"vote": "majority", "deploy": "vote"}),
    "majority of three": ("three", {"vote": "majority", "deploy": "vote"}),
    "smoothing 1": ("three", {"vote": Voting("mean", smoothing=1.0), "deploy": "vote"}),
    "cv": ("cancer", {"laws": "cv", "deploy": "vote"}),
    "cv, branching": ("normal", {"laws": PACBayesLaws(prior="branching"), "deploy": "vote"}),
    "cv, error given": ("normal", {"laws": PACBayesLaws(lambda_error=0.5), "deploy": "vote"}),
    "cv, both given": (
        "normal",
        {"laws": PACBayesLaws(lambda_error=1.0, lambda_penalty=0.5), "deploy": "vote"},
    ),
    "cv, by error": ("normal", {"laws": PACBayesLaws(scoring="error"), "deploy": "vote"}),
    "cv, error first": (
        "normal",
        {"laws": PACBayesLaws(search="error-first"), "deploy": "vote", "vote": "majority"},
    ),
    "groups": ("normal", {"groups": True}),
    "groups, majority": ("normal", {"groups": True, "vote": "majority", "deploy": "vote"}),
    "groups, weights": ("normal", {"groups": True, "weight": "any"}),
    "weights": ("normal", {"weight": "any", "deploy": "vote"}),
    "whole weights": ("whole", {"weight": "whole"}),
    "balanced": ("three", {"class_weight": "balanced", "deploy": "vote"}),
    "balanced, majority": ("cancer", {"class_weight": "balanced", "vote": "majority"}),
    "weights, cv": ("normal", {"weight": "any", "laws": "cv", "deploy": "vote"}),
    "standardised": ("cancer", {"preprocessor": StandardScaler(), "partition": "kd"}),
    "components": ("cancer", {"preprocessor": PCA(4, random_state=0)}),
    "coded": ("coded", {"categorical_features": [0, 1], "deploy": "vote"}),
    "monotonic": ("normal", {"monotonic_cst": RISING, "deploy": "vote"}),
    "random cuts": ("cancer", {"partition": Cart(splitter="random", max_features="sqrt")}),
    "12 leaves": ("cancer", {"partition": Cart("gini", max_leaf_nodes=12)}),
    "depth 3": ("cancer", {"max_depth": 3}),
    "five folds": ("cancer", {"cv": 5}),
    "box": ("plane", {"partition": Grid(CORNERS)}),
    "box, depth 6": ("plane", {"partition": Grid(CORNERS), "max_depth": 6, "delta": 0.01}),
}

DYADIC_RULES = {
    "square-root": prunings.SquareRoot,
    "spatially-adaptive": prunings.SpatiallyAdaptive,
    "polynomial": prunings.Polynomial,
}
EVERY_RULE = ("cost-complexity", "depth", "sibling-merge", *DYADIC_RULES)
CLASS_RULES = (*EVERY_RULE, "pessimistic", "description-length")


def pruned(name: str, every_rule: tuple[str, ...]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Prunings by every rule, of greedy and dyadic trees, with a price that is given or chosen."""
    paper = Dyadic(resolution="paper")
    return {
        **{rule: (name, {"rule": rule}) for rule in every_rule},
        **{f"{rule}, price 1/2": (name, {"rule": rule, "price": 0.5}) for rule in every_rule},
        **{f"{rule}, dyadic": (name, {"rule": rule, "partition": "dyadic"}) for rule in every_rule},
        **{f"{rule}, paper": (name, {"rule": rule, "partition": paper}) for rule in DYADIC_RULES},
        **{
            f"{rule}, paper, empty leaves, price 1/64": (
                name,
                {"rule": make(count_empty=True), "partition": paper, "price": 1 / 64},
            )
            for rule, make in DYADIC_RULES.items()
        },
        **{
            f"{rule}, empty leaves": (
                name,
                {"rule": make(count_empty=True), "partition": Dyadic(min_samples_split=4)},
            )
            for rule, make in DYADIC_RULES.items()
        },
        "polynomial, smoothness 3": (
            name,
            {"rule": prunings.Polynomial(smoothness=3), "partition": "dyadic"},
        ),
    }


PRUNED = {
    **pruned("plane", CLASS_RULES),
    **{f"{rule}, cancer": ("cancer", {"rule": rule}) for rule in CLASS_RULES},
    **{name: (name, {}) for name in ("iris", "digits", "missing", "whole", "frame", "tiny")},
    **{
        f"{rule}, paper, line": ("line", {"rule": rule, "partition": Dyadic(resolution="paper")})
        for rule in DYADIC_RULES
    },
    "polynomial, smoothness 3, paper, line": (
        "line",
        {"rule": prunings.Polynomial(smoothness=3), "partition": Dyadic(resolution="paper")},
    ),
    "as objects, cost": ("three", {"rule": prunings.CostComplexity()}),
    "as objects, depth": ("three", {"rule": prunings.DepthPenalised()}),
    "as objects, merges": ("three", {"rule": prunings.SiblingMerge()}),
    "as objects, pessimistic": ("three", {"rule": prunings.Pessimistic()}),
    "as objects, description": ("three", {"rule": prunings.DescriptionLength()}),
    "log loss": ("three", {"scoring": "log_loss"}),
    "merges, log loss": ("three", {"scoring": "log_loss", "rule": "sibling-merge"}),
    "kd": ("normal", {"partition": "kd"}),
    "kd, depth rule": ("normal", {"partition": KD("cycle"), "rule": "depth"}),
    "scikit-learn": ("normal", {"partition": DecisionTreeClassifier(max_depth=8)}),
    "30 leaves": ("normal", {"partition": Cart("gini", max_leaf_nodes=30)}),
    "least decrease": (
        "normal",
        {"partition": Cart(min_impurity_decrease=1 / 128), "price": 1.0},
    ),
    "weights": ("normal", {"weight": "any"}),
    "weights, paper": (
        "plane",
        {"weight": "any", "rule": "square-root", "partition": Dyadic(resolution="paper")},
    ),
    "balanced": ("three", {"class_weight": "balanced"}),
    "monotonic": ("normal", {"monotonic_cst": RISING}),
    "three folds": ("normal", {"cv": 3, "max_depth": 6}),
}

PRUNED_NUMBERS = {
    **pruned("wave", EVERY_RULE),
    "diabetes": ("diabetes", {}),
    "rough": ("rough wave", {"categorical_features": [3]}),
    "weights": ("wave", {"weight": "any"}),
    "kd": ("wave", {"partition": "kd", "rule": "sibling-merge"}),
    "scikit-learn": ("wave", {"partition": DecisionTreeRegressor(max_depth=7)}),
    "monotonic": ("wave", {"monotonic_cst": [0, 1, 0]}),
    "25 leaves": ("diabetes", {"partition": Cart(max_leaf_nodes=25)}),
}

HELMBOLD_SCHAPIRE = {
    **{name: (name, {}) for name in ("cancer", "normal", "missing", "frame", "whole")},
    "temperature given": ("normal", {"temperature": 0.7}),
    "smoothing 2": ("normal", {"smoothing": 2.0}),
    "log loss": ("normal", {"scoring": "log_loss"}),
    "kd": ("normal", {"partition": "kd", "cv": 3}),
    "dyadic": ("normal", {"partition": Dyadic(min_samples_split=4)}),
    "weights": ("normal", {"weight": "any"}),
    "balanced": ("normal", {"class_weight": "balanced"}),
    "monotonic": ("normal", {"monotonic_cst": RISING}),
    "random cuts": ("normal", {"partition": Cart(splitter="random"), "max_depth": 7}),
}

NUMBERS = {
    **{name: (name, {}) for name in ("diabetes", "wave")},
    "any prior": ("diabetes", {"prior": None}),
    "branching": ("diabetes", {"prior": "branching"}),
    "smoothing 0": ("diabetes", {"smoothing": 0.0}),
    "both free": ("diabetes", {"lambda_penalty": None}),
    "error first": ("diabetes", {"lambda_penalty": None, "search": "error-first"}),
    "both given": ("diabetes", {"lambda_error": 0.4, "lambda_penalty": 0.1}),
    "kd": ("wave", {"partition": "kd"}),
    "kd, axes in turn": ("wave", {"partition": KD("cycle", min_samples_split=6)}),
    "dyadic": ("wave", {"partition": "dyadic"}),
    "scikit-learn": ("wave", {"partition": DecisionTreeRegressor(min_samples_leaf=4)}),
    "weights": ("wave", {"weight": "any"}),
    "whole weights": ("wave", {"weight": "whole", "partition": "kd"}),
    "monotonic": ("wave", {"monotonic_cst": [0, 1, 0]}),
    "rough": ("rough wave", {"categorical_features": [3]}),
    "rough, kd": ("rough wave", {"partition": "kd"}),
    "25 leaves": ("diabetes", {"partition": Cart(max_leaf_nodes=25)}),
    "random cuts": ("diabetes", {"partition": Cart(splitter="random", max_features="sqrt")}),
    "least decrease": (
        "diabetes",
        {"partition": Cart(min_impurity_decrease=16.0), "lambda_error": 0.25},
    ),
    "three folds": ("diabetes", {"cv": 3, "max_depth": 5}),
}

SMALL = {"max_depth": 3, "random_state": 0}
# Whole weights, as fractional ones would make it matter how rows are counted for 51 of them.
DECORATED = {
    "normal": ("normal", SMALL),
    "defaults": ("three", {}),
    "cancer": ("cancer", SMALL),
    "polynomial": ("normal", {**SMALL, "rule": "polynomial"}),
    "polynomial, price given": ("normal", {**SMALL, "rule": "polynomial", "price": 0.001}),
    "polynomial, smoothness 3": (
        "normal",
        {**SMALL, "rule": prunings.Polynomial(smoothness=3), "price": 0.0005},
    ),
    "log loss": ("normal", {**SMALL, "scoring": "log_loss"}),
    "naive Bayes": ("normal", {**SMALL, "leaf_estimator": GaussianNB()}),
    "naive Bayes, polynomial": (
        "three",
        {**SMALL, "leaf_estimator": GaussianNB(), "rule": "polynomial"},
    ),
    "ours, missing": (
        "missing",
        {**SMALL, "leaf_estimator": NaiveBayesClassifier(), "scale": False},
    ),
    "cart": ("normal", {**SMALL, "partition": "cart"}),
    "8 leaves": ("normal", {"partition": Cart("gini", max_leaf_nodes=8, min_samples_split=51)}),
    "dyadic": ("normal", {**SMALL, "partition": "dyadic"}),
    "axes in turn": ("normal", {**SMALL, "partition": KD("cycle", min_samples_split=101)}),
    "many rows": ("normal", {**SMALL, "min_model_rows": 120, "scale": False}),
    "weights": ("normal", {**SMALL, "weight": "whole"}),
    "weights, polynomial": ("normal", {**SMALL, "weight": "whole", "rule": "polynomial"}),
    "balanced": ("normal", {**SMALL, "class_weight": "balanced"}),
    "coded": (
        "coded",
        {
            **SMALL,
            "leaf_estimator": NaiveBayesClassifier(),
            "scale": False,
            "categorical_features": [0, 1],
            "partition": "cart",
        },
    ),
}
DECORATED_NUMBERS = {
    "wave": ("wave", SMALL),
    "diabetes": ("diabetes", {}),
    "cart": ("wave", {**SMALL, "partition": Cart(min_samples_split=81)}),
    "straight lines": ("wave", {**SMALL, "leaf_estimator": LinearRegression(), "scale": False}),
    "weights": ("wave", {**SMALL, "weight": "whole", "cv": 4}),
    "dyadic": ("wave", {**SMALL, "partition": "dyadic", "min_model_rows": 90}),
}

NAIVE_BAYES = {
    **{name: (name, {}) for name in ("iris", "cancer", "missing", "frame", "whole")},
    "normal densities": ("cultivars", {"densities": "normal"}),
    "histograms": ("cultivars", {"densities": "histogram", "bins": 7}),
    "histograms by rule": ("cultivars", {"densities": "histogram", "bins": "fd", "alpha": 0.5}),
    "of categories": ("whole", {"densities": "categorical"}),
    "of each": ("coded", {"densities": ["categorical", "categorical", "normal", "histogram"]}),
    "coded": ("coded", {"categorical_features": [0, 1]}),
    "weights": ("missing", {"weight": "any"}),
    "balanced": ("frame", {"class_weight": "balanced"}),
    "priors": ("iris", {"priors": [0.2, 0.3, 0.5]}),
    "power 1/2": ("cancer", {"power": 0.5}),
}

# Rows of weight zero of a certified fit are treated otherwise than in the first record, on purpose.
ZERO_WEIGHTS = {
    "plain": ("whole", {"weight": "zero"}),
    "plain, kd": ("whole", {"weight": "zero", "partition": "kd"}),
    "plain, cv listed": ("whole", {"weight": "zero", "cv": LISTED_FOLDS}),
}
ZERO_WEIGHTS_SPLIT = {
    "split": ("whole", {"weight": "zero"}),
    "split, the vote": ("whole", {"weight": "zero", "deploy": "vote"}),
}
# Names of cases, or how they begin, that differ from the record on purpose.
MEANT_TO_CHANGE: tuple[str, ...] = ()


# -- stages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A tree with the statistics of its rows, and a law over its prunings."""

    tree: Tree
    stats: Any
    law: NodeWeights


@cache
def grown(name: str, partition: str = "cart") -> Grown:
    """Grow a tree, count or measure its rows and weigh its prunings."""
    data = table(name)
    tree = TREES[f"{partition}, {name}"]()
    if data.y.dtype.kind == "f":
        stats = measure(tree, data.X, data.y)
    else:
        stats = count(tree, data.X, data.y, int(data.y.max()) + 1)
    return Grown(tree, stats, pac_bayes(tree, stats, 0.5, 0.1))


def growing(name: str, grower: Callable[..., Tree], weight: str = "", **switches: Any) -> Any:
    """How a tree grows from a table."""

    def run() -> Tree:
        data = table(name)
        if weight:
            switches["sample_weight"] = row_weights(weight, len(data.y))
        return grower(data.X, data.y, **switches)

    return run


GREEDY = {
    "gini": {},
    "entropy": {"criterion": "entropy"},
    "misclassification": {"criterion": "misclassification"},
    "random cuts": {"splitter": "random", "random_state": 3},
    "2 features": {"max_features": 2, "random_state": 4},
    "15 leaves": {"max_leaf_nodes": 15},
    "least decrease": {"min_impurity_decrease": 1 / 128},
    "least decrease, weights": {"min_impurity_decrease": 1 / 128, "weight": "eighths"},
    "12 rows": {"min_samples_split": 12},
    "depth 4": {"max_depth": 4},
    "log depth": {"max_depth": "log"},
    "monotonic": {"monotonic_cst": RISING},
    "weights": {"weight": "any"},
    "two threads": {"n_jobs": 2},
}
MEDIANS = {
    "in turn": {"axis": "cycle"},
    "by spread": {"axis": "spread"},
    "impure": {"axis": "spread", "stop_when_pure": False},
    "12 rows": {"axis": "cycle", "min_samples_split": 12, "max_depth": 6},
    "weights": {"axis": "spread", "weight": "any"},
}
MIDPOINTS = {
    "plain": {},
    "impure": {"stop_when_pure": False, "min_samples_split": 3},
    "log depth": {"max_depth": "log"},
    "paper": {"resolution": "paper"},
    "paper, exponent 1/2": {"resolution": "paper", "exponent": 0.5},
    "weights": {"weight": "any", "min_samples_split": 2},
}
TREES: Mapping[str, Callable[[], Tree]] = {
    **{
        f"cart, {name}": growing("normal", grow_cart, **{"criterion": "gini", **switches})
        for name, switches in GREEDY.items()
    },
    **{
        f"cart, {name}": growing(name, grow_cart, criterion="entropy")
        for name in ("normal", "three", "single", "missing", "plane")
    },
    "cart, wave": growing("wave", grow_cart, criterion="squared"),
    "cart, rough wave": growing(
        "rough wave", grow_cart, criterion="squared", categorical_features=[3]
    ),
    "cart, coded": growing("coded", grow_cart, criterion="gini", categorical_features=[0, 1]),
    "cart, coded at random": growing(
        "coded",
        grow_cart,
        criterion="gini",
        categorical_features=[0, 1],
        splitter="random",
        random_state=5,
    ),
    **{f"kd, {name}": growing("normal", grow_kd, **switches) for name, switches in MEDIANS.items()},
    "kd, missing": growing("missing", grow_kd, axis="spread"),
    "kd, three": growing("three", grow_kd, axis="spread"),
    **{f"dyadic, {name}": growing("plane", grow_dyadic, **s) for name, s in MIDPOINTS.items()},
    "dyadic, missing": growing("missing", grow_dyadic),
    "dyadic, plane": growing("plane", grow_dyadic),
    "dyadic, single": growing("single", grow_dyadic),
    "grid": lambda: grow.dyadic_grid(*CORNERS, 7),
    "scikit-learn": lambda: grow.from_sklearn(
        DecisionTreeClassifier(random_state=0).fit(table("three").X, table("three").y)
    ),
    "scikit-learn, missing": lambda: grow.from_sklearn(
        DecisionTreeClassifier(random_state=0).fit(table("missing").X, table("missing").y)
    ),
}


def grown_parts(make: Callable[[], Tree]) -> Case:
    """The parts of a tree."""
    return lambda: tree_parts(make())


def resolutions() -> Parts:
    """Resolutions of dyadic trees."""
    found = [
        grow.dyadic_resolution(n, p, exponent)
        for n in (1000, 10**6)
        for p in (1, 2, 3)
        for exponent in (None, 0.5, 1 / 4)
    ]
    return {"resolutions": found}


def counted() -> Parts:
    """Statistics of classes, with weights and labels that are given."""
    data, tree = table("three"), grown("three").tree
    weighted = count(tree, data.X, data.y, 3, sample_weight=row_weights("any", len(data.y)))
    labelled = count(tree, data.new, data.truth, 4, label=np.arange(tree.n_nodes) % 3)
    return {
        "plain": (*stats_columns(grown("three").stats), grown("three").stats.errors),
        "weighted": (*stats_columns(weighted), weighted.impurity, weighted.errors),
        "labelled": (*stats_columns(labelled), labelled.errors),
    }


def measured() -> Parts:
    """Statistics of numbers, with weights and a unit that is given."""
    data, tree = table("wave"), grown("wave").tree
    weighted = measure(tree, data.X, data.y, sample_weight=row_weights("any", len(data.y)))
    own_unit = measure(tree, data.new, data.truth, unit=0.25)
    return {
        "plain": stats_columns(grown("wave").stats),
        "weighted": (*stats_columns(weighted), weighted.loss),
        "own unit": (*stats_columns(own_unit), own_unit.loss),
    }


LAWS: Mapping[str, Callable[[Tree, Any], NodeWeights]] = {
    "leaves": lambda tree, stats: pac_bayes(tree, stats, 0.7, 0.2, "leaves"),
    "branching": lambda tree, stats: pac_bayes(tree, stats, 0.7, 0.2, "branching"),
    "branching, 0.9": lambda tree, stats: pac_bayes(tree, stats, 2.0, 0.0, "branching", 0.9),
    "own costs": lambda tree, stats: weights.average(tree, -0.1 * stats.loss, -0.3),
    "no cost of errors": lambda tree, stats: pac_bayes(tree, stats, 0.0, 0.0),
}
CLASS_LAWS: Mapping[str, Callable[[Tree, Any], NodeWeights]] = {
    "theorem": lambda tree, stats: weights.theorem_posterior(tree, stats, 0.5, 0.05),
    "Helmbold and Schapire": lambda tree, stats: weights.helmbold_schapire(tree, stats, 0.7),
}
PRUNINGS: Mapping[str, Callable[[Tree, Any], NodeWeights]] = {
    "own costs": lambda tree, stats: prunings.prune(tree, stats.loss + 1.5),
    "cost-complexity": lambda tree, stats: prunings.cost_complexity(tree, stats, 0.8),
    "depth": lambda tree, stats: prunings.depth_penalised(tree, stats, 0.05),
    "square root": lambda tree, stats: prunings.square_root_penalised(tree, stats, 0.02),
    "square root, empty leaves": lambda tree, stats: prunings.square_root_penalised(
        tree, stats, 0.01, count_empty=True
    ),
    "spatially adaptive": lambda tree, stats: prunings.spatially_adaptive(tree, stats, 0.02),
    "spatially adaptive, cells": lambda tree, stats: prunings.spatially_adaptive(
        tree, stats, 0.01, log_cells=9.0, count_empty=True
    ),
    "polynomial": lambda tree, stats: prunings.polynomial_penalised(tree, stats, 2, 0.02),
    "polynomial, own costs": lambda tree, stats: prunings.polynomial_penalised(
        tree, stats, 3, 0.005, log_cells=7.0, count_empty=True, cost=0.9 * stats.loss
    ),
}
CLASS_PRUNINGS: Mapping[str, Callable[[Tree, Any], NodeWeights]] = {
    "pessimistic": prunings.pessimistic,
    "pessimistic, 0.1": lambda tree, stats: prunings.pessimistic(tree, stats, 0.5, confidence=0.1),
    "description": prunings.minimum_description_length,
    "description, free splits": lambda tree, stats: prunings.minimum_description_length(
        tree, stats, 1.5, free_splits=True
    ),
    "reduced error": lambda tree, stats: prunings.reduced_error(
        tree, stats, NodeStats(np.roll(stats.counts, 1, axis=1), stats.label)
    ),
}


def law_parts(name: str, partition: str, make: Callable[[Tree, Any], NodeWeights]) -> Case:
    """A law or a pruning, and what is asked of it."""

    def run() -> Parts:
        tree, stats = grown(name, partition).tree, grown(name, partition).stats
        law = make(tree, stats)
        likeliest = weights.map_pruning(tree, law)
        parts = weights_parts(law)
        parts["likeliest"] = (likeliest.weight, likeliest.log_odds)
        parts["drawn"] = weights.sample_pruning(tree, law, 11).weight
        parts["reached"] = weights.reached(tree, law)
        parts["entropy"] = (weights.entropy(tree, law), law.expected_leaves)
        if isinstance(stats, NodeStats):
            parts["Gibbs risk"] = weights.gibbs_risk(stats, law)
        return parts

    return run


def path_parts(name: str, partition: str, cost: str | None) -> Case:
    """The paths of cost-complexity and of merges."""

    def run() -> Parts:
        stage = grown(name, partition)
        parts: Parts = {}
        for empty in (False, True):
            path = prunings.cost_complexity_path(stage.tree, stage.stats, cost, count_empty=empty)
            middle = path.pruning(len(path.prices) // 2)
            parts[f"path, {empty}"] = (path.prices, path.critical, middle.weight)
        merges = prunings.sibling_merge_path(stage.tree, stage.stats, cost)
        after = merges.after(len(merges.rises) // 2).weight
        parts["merges"] = (merges.prices, merges.critical, merges.order, merges.rises, after)
        return parts

    return run


def vote_parts(name: str, slopes: list[int] | None = None) -> Case:
    """Votes of a law by labels and by frequencies, or means and their spread."""

    def run() -> Parts:
        stage = grown(name)
        args = (stage.tree, stage.stats, stage.law)
        along = None if slopes is None else np.array(slopes, dtype=np.int8)
        means = {s: vote(*args, Voting("mean", s, along)) for s in (0.0, 0.1, 2.0)}
        parts: Parts = {f"mean, {s}": ballot.score for s, ballot in means.items()}
        if isinstance(stage.stats, NodeStats):
            majority = vote(*args, Voting("majority", slopes=along))
            parts["majority"] = (majority.score, majority.label)
        else:
            spread = votes.spread(*args, Voting("mean", 2.0, along))
            parts["spread"] = (spread.between, spread.within)
        return parts

    return run


def folded() -> Parts:
    """Folds by content."""
    parts: Parts = {}
    for name, weight in (("three", ""), ("whole", ""), ("whole", "whole"), ("wave", "any")):
        data, rng = table(name), np.random.RandomState(5)
        y = data.y if data.y.dtype.kind == "f" else data.y.astype(np.int32)
        w = row_weights(weight, len(y)) if weight else None
        dealt = rows.content_folds(data.X, y, 3, rng, w)
        parts[f"{name} {weight}"] = [side for fold in dealt for side in (fold.grow, fold.judge)]
    return parts


# -- certificates ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Rows that weigh a tree, a prior and a law over its prunings."""

    held: Any
    pruning: NodeWeights
    prior: Any
    law: NodeWeights


@cache
def held(name: str, groups: bool = False) -> Held:
    """One third of the rows grows, the others weigh."""
    data = table(name)
    place, K = np.arange(len(data.y)), int(data.y.max()) + 1
    grow_rows, weigh = place[: len(place) // 3], place[len(place) // 3 :]
    tree = grow_cart(data.X[grow_rows], data.y[grow_rows], criterion="entropy")
    parts = place // 4 if groups else None
    found = certificates.held_out(
        tree, data.X, data.y, K, grow=grow_rows, weigh=weigh, groups=parts
    )
    pruning = prunings.cost_complexity(tree, found.grown, 1.0)
    prior = certificates.mix_priors(
        certificates.trust_labels(certificates.branching_prior(tree, K), found.grown),
        certificates.count_prior(tree, found.grown),
        certificates.doubted_prior(tree, found.grown, pruning),
    )
    law = certificates.gibbs_posterior(tree, found.stats, prior.laws[0], 0.5, 0.01)
    return Held(found, pruning, prior, law)


def of_law(method: str) -> Callable[[Held], Any]:
    """Certify a law, or its majority vote."""
    return lambda one: certificates.certify_law(
        one.held, one.law, one.prior, 0.05, 0.5, method=method
    )


def label_of(one: Held) -> NDArray[Any]:
    """The vote's label of every node."""
    label: NDArray[Any] = vote(one.held.tree, one.held.stats, one.law, "majority").label
    return label


def answers_of(one: Held) -> Any:
    """Certify a vote that abstains in some cells."""
    label = np.where(np.arange(one.held.tree.n_nodes) % 5 == 0, one.held.n_classes, label_of(one))
    prior = certificates.allow_abstention(one.prior, 0.2)
    return certificates.occam_answers(one.held, label, prior)


METHODS: Mapping[str, Callable[[Held], Any]] = {
    "hold_out": lambda _: certificates.hold_out(17, 240, 0.05, 0.5),
    "hold_out_best": lambda _: certificates.hold_out_best([30, 17, 22], 240),
    "hold_out_mean": lambda one: certificates.hold_out_mean(0.07, 240, grouped=one.held.grouped),
    "occam_vote": lambda one: certificates.occam_vote(one.held, label_of(one), one.prior, 0.01),
    "occam_mean": lambda one: certificates.occam_mean(one.held, label_of(one), one.prior),
    "occam_answers": answers_of,
    "occam_pruning": lambda one: certificates.occam_pruning(one.held, one.pruning, one.prior),
    "single_draw": lambda one: (
        certificates.single_draw(one.held, one.law, one.prior, rng=9).certificate
    ),
    "gibbs_kl": of_law("gibbs_kl"),
    "gibbs_lambda": of_law("gibbs_lambda"),
    "vote_first_order": of_law("vote_first_order"),
    "vote_first_order_range": of_law("vote_first_order_range"),
    "vote_tandem": of_law("vote_tandem"),
    "vote_either_wrong": of_law("vote_either_wrong"),
    "vote_tuples": of_law("vote_tuples"),
    "vote_c_bound": of_law("vote_c_bound"),
    "vote_disagreement": of_law("vote_disagreement"),
}
WHOLE_ERRORS = ("hold_out", "hold_out_best", "occam_vote", "occam_answers", "occam_pruning")


def method_case(method: str, name: str, groups: bool = False) -> Case:
    """The certificate of one method, of `METHODS` of the library."""

    def run() -> Parts:
        if set(certificates.METHODS) != set(METHODS):
            raise ValueError("the methods are not those of the library")
        return certificate_parts(METHODS[method](held(name, groups)))

    return run


def tightest_parts() -> Parts:
    """The best of several certificates."""
    one = held("normal")
    several = [METHODS[name](one) for name in ("gibbs_kl", "hold_out")]
    return certificate_parts(certificates.tightest(*several))


def prior_parts(name: str) -> Case:
    """Priors, and the masses and divergences that they give."""

    def run() -> Parts:
        one = held(name)
        tree, K, grown_stats = one.held.tree, one.held.n_classes, one.held.grown
        made = {
            "branching": certificates.branching_prior(tree, K, 0.3),
            "size": certificates.size_prior(tree, K),
            "count": certificates.count_prior(tree, grown_stats, 5.0, 0.8),
            "centred": certificates.centred_prior(tree, grown_stats, one.pruning, 0.05),
            "doubted": certificates.doubted_prior(tree, grown_stats, one.pruning),
            "mixed": one.prior,
        }
        return {
            prior_name: (
                *(law.weight for law in prior.laws),
                prior.log_label,
                prior.log_share,
                prior.log_mass(label_of(one)),
                prior.log_mass_of_pruning(one.pruning),
                prior.divergence(one.law),
            )
            for prior_name, prior in made.items()
        }

    return run


def divergence_parts(name: str) -> Case:
    """Divergences between laws and the mass of a labelling."""

    def run() -> Parts:
        one = held(name)
        tree, prior = one.held.tree, one.prior.laws[1]
        return {
            "kl": certificates.kl_divergence(tree, one.law, prior),
            "kl of a pruning": certificates.kl_divergence(tree, one.pruning, prior),
            "renyi": [certificates.renyi_divergence(tree, one.law, prior, a) for a in (0.5, 2.0)],
            "mass": certificates.log_prior_mass(tree, prior, one.prior.log_label[0], label_of(one)),
        }

    return run


def moment_parts(name: str) -> Case:
    """Moments of the vote and of sums over leaves."""

    def run() -> Parts:
        one = held(name)
        tree, stats = one.held.tree, one.held.stats
        ballot = vote(tree, stats, one.law, "majority")
        least = certificates.wrong_range(tree, ballot)
        tuples = [(1, 1), (2, 1), (2, 2), (5, 3)]
        value = stats.errors + 1.0
        return {
            "wrong mass": certificates.wrong_mass(ballot),
            "tuples": [certificates.tuple_risk(tree, stats, ballot, *kind) for kind in tuples],
            "one wrong": certificates.one_wrong(tree, stats, ballot),
            "disagreement": certificates.disagreement(tree, stats, ballot),
            "margins": certificates.margin_moments(tree, stats, ballot),
            "range": (least.right, least.wrong),
            "leaf mean": certificates.leaf_mean(tree, one.law, value),
            "leaf variance": certificates.leaf_variance(tree, one.law, value),
        }

    return run


def selective_case(name: str) -> Case:
    """Certificates of votes that abstain."""

    def run() -> Parts:
        one = held(name)
        ballot = vote(one.held.tree, one.held.stats, one.law, Voting("mean", 0.1))
        return selective_parts(certificates.selective_certificates(one.held, ballot, one.prior))

    return run


def labelled_parts() -> Parts:
    """A law over labelled prunings of a grid that no row has grown."""
    data, tree = table("plane"), TREES["grid"]()
    every = np.arange(len(data.y))
    found = certificates.held_out(tree, data.X, data.y, 2, grow=[], weigh=every)
    prior = certificates.branching_prior(tree, 2)
    law = certificates.labelled_posterior(tree, found.stats, prior, 0.8)
    certificate = certificates.certify_law(found, law, prior, 0.05, 1.0, method="gibbs_kl")
    return {**weights_parts(law.weights), "share": law.share, **certificate_parts(certificate)}


def oracle_parts() -> Parts:
    """What is promised before any row is seen."""
    one = held("three")
    counts = one.held.stats.counts / one.held.stats.n[0]
    population = NodeStats(counts, one.held.grown.label)
    prior = certificates.branching_prior(one.held.tree, 3).laws[0]
    parts: Parts = {}
    for lam in (None, 0.5):
        bound = certificates.chernoff_oracle_bound(
            one.held.tree, population, prior, 5000, 0.1, 0.05, lambda_error=lam
        )
        parts[f"oracle, {lam}"] = (
            *(bound.excess, bound.gibbs_excess, bound.lambda_error, bound.risk, bound.complexity),
            bound.pruning.weight,
        )
        theorem = certificates.theorem_bound(
            one.held.tree, population, 10**6, 0.1, 0.05, lambda_error=lam
        )
        parts[f"theorem, {lam}"] = (
            *(theorem.excess, theorem.gibbs_excess, theorem.risk, theorem.penalty),
            theorem.pruning.weight,
        )
    parts["excess"] = [certificates.oracle_excess(excess, 3) for excess in (0.0, 0.01, 0.2)]
    parts["rate"] = [certificates.hoelder_rate(n, 0.7, 3) for n in (10, 1000)]
    return parts


def certified_elsewhere() -> Parts:
    """The certificate of a classifier of anybody, by new rows."""
    data = table("cancer")
    model = DecisionTreeClassifier(random_state=0).fit(data.X, data.y)
    return certificate_parts(certify(model, data.new, data.truth, 0.1))


ON_PLANE = ("plane", "dyadic")
STAGES: Mapping[str, Case] = {
    **{f"grow: {name}": grown_parts(make) for name, make in TREES.items()},
    "grow: resolutions": resolutions,
    "stats: count": counted,
    "stats: measure": measured,
    **{
        f"{kind}: {case}, {name}, {partition}": law_parts(name, partition, make)
        for kind, made in (("law", LAWS), ("pruning", PRUNINGS))
        for case, make in made.items()
        for name, partition in (("three", "cart"), ON_PLANE, ("wave", "cart"))
    },
    **{
        f"{kind}: {case}, {name}, {partition}": law_parts(name, partition, make)
        for kind, made in (("law", CLASS_LAWS), ("pruning", CLASS_PRUNINGS))
        for case, make in made.items()
        for name, partition in (("normal", "cart"), ON_PLANE)
    },
    **{
        f"path: {cost}, {name}, {partition}": path_parts(name, partition, cost)
        for cost, name, partition in (
            (None, "three", "cart"),
            ("error", *ON_PLANE),
            ("gini", "three", "cart"),
            ("entropy", *ON_PLANE),
            (None, "wave", "cart"),
            ("squared", "wave", "cart"),
        )
    },
    **{f"vote: {name}": vote_parts(name) for name in ("normal", "three", "wave", "coded")},
    "vote: normal, monotonic": vote_parts("normal", RISING),
    "vote: wave, monotonic": vote_parts("wave", [0, 1, 0]),
    "rows: folds": folded,
    **{f"certificate: {method}": method_case(method, "normal") for method in METHODS},
    **{
        f"certificate: {method}, three": method_case(method, "three")
        for method in METHODS
        if method != "vote_disagreement"
    },
    **{
        f"certificate: {method}, groups": method_case(method, "normal", groups=True)
        for method in METHODS
        if method not in WHOLE_ERRORS
    },
    "certificate: tightest": tightest_parts,
    "certificate: of anybody": certified_elsewhere,
    "certificate: labelled": labelled_parts,
    "certificate: oracle": oracle_parts,
    **{
        f"{kind}: {name}": make(name)
        for kind, make in (
            ("priors", prior_parts),
            ("divergences", divergence_parts),
            ("moments", moment_parts),
            ("selective", selective_case),
        )
        for name in ("normal", "three")
    },
}

MODELS: Mapping[str, dict[str, Case]] = {
    "pac-bayes": fits(PACBayesTreeClassifier, PLAIN),
    "pac-bayes regressor": fits(PACBayesTreeRegressor, NUMBERS),
    "certified": fits(CertifiedTreeClassifier, CERTIFIED),
    "pruned": fits(PrunedTreeClassifier, PRUNED),
    "pruned regressor": fits(PrunedTreeRegressor, PRUNED_NUMBERS),
    "helmbold-schapire": fits(HelmboldSchapireTreeClassifier, HELMBOLD_SCHAPIRE),
    "decorated": fits(DecoratedTreeClassifier, DECORATED),
    "decorated regressor": fits(DecoratedTreeRegressor, DECORATED_NUMBERS),
    "naive Bayes": {**fits(NaiveBayesClassifier, NAIVE_BAYES), "in parts": fitted_in_parts},
    "certified again": {
        "cancer": after_certified("cancer"),
        "three, the vote": after_certified("three", deploy="vote"),
        "box": after_certified("plane", partition=Grid(CORNERS)),
        "from a file": read_again,
    },
    "zero-weight": fits(PACBayesTreeClassifier, ZERO_WEIGHTS),
    "zero-weight certified": fits(CertifiedTreeClassifier, ZERO_WEIGHTS_SPLIT),
}
CASES: Mapping[str, Case] = {
    **{f"{group}: {name}": case for group, cases in MODELS.items() for name, case in cases.items()},
    **STAGES,
}


# -- running and comparing -------------------------------------------------------------------------


def lines(names: list[str]) -> Iterator[Line]:
    """Run cases; a line for each of their parts."""
    for name in names:
        try:
            parts = CASES[name]()
        except Exception as error:  # noqa: BLE001 -- the other cases are wanted all the same
            yield name, "raised", f"{type(error).__name__}: {error}"
            continue
        for part, value in parts.items():
            yield name, part, digest(*value) if isinstance(value, list | tuple) else digest(value)


Found = dict[tuple[str, str], str]


def read(path: Path) -> Found:
    """A recorded table; the part is "whole" where there is one hash for each case."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {(row[0], row[1] if len(row) == 3 else "whole"): row[-1] for row in rows}


def whole(found: Found) -> Found:
    """One hash for each case."""
    texts: dict[str, str] = {}
    for (case, part), value in found.items():
        texts[case] = texts.get(case, "") + f"{part} {value}\n"
    return {
        (case, "whole"): hashlib.sha256(text.encode()).hexdigest()[:16]
        for case, text in texts.items()
    }


def write(path: Path, found: Found) -> None:
    """Record a table."""
    of_cases = {part for _, part in found} == {"whole"}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "hash") if of_cases else ("case", "part", "hash"))
        writer.writerows(
            (case, *(() if of_cases else (part,)), value) for (case, part), value in found.items()
        )


def differing(old: Found, new: Found) -> dict[str, str]:
    """The cases that differ, and in which parts."""
    found: dict[str, list[str]] = {}
    for case, part in old | new:
        before, after = old.get((case, part)), new.get((case, part))
        if part == "raised" and after is not None:
            found.setdefault(case, []).append(after)
        elif before != after:
            how = " (new)" if before is None else " (gone)" if after is None else ""
            found.setdefault(case, []).append(part + how)
    return {case: ", ".join(parts) for case, parts in found.items()}


def main() -> None:
    """Record the answers, or compare them with a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recorded", nargs="?", type=Path, help="the table to compare with")
    parser.add_argument("--write", type=Path, default=RECORD, help="where the table goes")
    parser.add_argument("--only", default="", help="run the cases whose names hold this text")
    parser.add_argument("--parts", action="store_true", help="write a hash for each part")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [name for name in CASES if arguments.only in name]
    found = {(case, part): value for case, part, value in lines(names)}
    if arguments.recorded is None:
        write(arguments.write, found if arguments.parts else whole(found))
        raised = [f"{case}: {value}" for (case, part), value in found.items() if part == "raised"]
        print(f"{len(names)} cases, {len(found)} lines: {arguments.write}", *raised, sep="\n")
        sys.exit(bool(raised))
    recorded = {key: value for key, value in read(arguments.recorded).items() if key[0] in names}
    of_cases = {part for _, part in recorded} == {"whole"}
    changed = differing(recorded, whole(found) if of_cases else found)
    for case, parts in changed.items():
        note = " [meant to change]" if case.startswith(MEANT_TO_CHANGE) else ""
        print(f"{case}{note}: {parts}")
    unexpected = [case for case in changed if not case.startswith(MEANT_TO_CHANGE)]
    print(f"{len(names)} cases, {len(changed)} differ, {len(unexpected)} of them unexpectedly")
    sys.exit(bool(unexpected))


if __name__ == "__main__":
    main()
