"""Cases that fit an estimator with hostile parameters or rows, and call its methods."""

import json
import pickle
from random import Random
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import has_fit_parameter

import certree
from certree import KD, Cart, Dyadic, Grid, PACBayesPosteriors, Voting
from certree.boolean import FourierClassifier, FourierRegressor
from certree.ensembles import CustomLoss
from certree.explain import Explanation, interaction_fractions, shapley_values
from certree.prunings.rule_names import RULES
from fuzz.hostile import spoilt
from fuzz.world import World

ESTIMATORS = [
    certree.PACBayesTreeClassifier,
    certree.PACBayesTreeRegressor,
    certree.PrunedTreeClassifier,
    certree.PrunedTreeRegressor,
    certree.AdaBoostTreeClassifier,
    certree.BoostedTreesClassifier,
    certree.BoostedTreesRegressor,
    certree.BoostedTreesRanker,
    certree.CertifiedForestClassifier,
    certree.CertifiedBoostedTreesClassifier,
    certree.CertifiedBoostedTreesRegressor,
    certree.TreeForestClassifier,
    certree.TreeForestRegressor,
    certree.HelmboldSchapireTreeClassifier,
    certree.CertifiedTreeClassifier,
    certree.CertifiedTreeRegressor,
    certree.NaiveBayesClassifier,
    certree.DecoratedTreeClassifier,
    certree.DecoratedTreeRegressor,
    FourierClassifier,
    FourierRegressor,
]
# Tables have few different rows, and more folds take longer.
TOLERANT: dict[str, Any] = {"cv": 2, "duplicates": "genuine"}
# What these raise where they are functions is theirs.
_CALLED = {"oob_score", "scoring"}
# Fits of a model in each node take long.
_CHANCES = [6, 6, 6, 6, 2, 2, 2, 2, 2, 2, 2, 2, 2, 6, 6, 6, 6, 1, 1, 2, 2]
_ASKED = [
    *("predict", "predict_proba", "predict_log_proba", "apply", "decision_path", "predict_std"),
    *("explain", "path", "rules", "export_text", "report", "selective_certificates", "score"),
    *("certify", "decision_function", "margins", "to_dict", "to_sklearn", "to_sql", "staged_loss"),
    *(
        "predict_interval",
        "predict_set",
        "certify_interval",
        "certify_set",
        "conditional_guarantees",
        "importance",
        "trees_to_dataframe",
    ),
]


def _squared_slopes(y: Any, score: Any) -> Any:
    return score - y, np.ones_like(y)


def _squared(y: Any, score: Any) -> Any:
    return (score - y) ** 2 / 2


def plausible_parameter(random: Random, parameter: str, p: int) -> Any:
    """Draw a value for a parameter of an estimator of p features; None keeps its default."""
    cut = random.choice([2, 5, 2.5])
    choices: dict[str, list[Any]] = {
        "grower": [
            *("cart", "kd", "dyadic", Cart(min_samples_split=cut), KD("cycle"), Dyadic()),
            *(Cart(splitter="random", max_features=1), Cart(max_leaf_nodes=4), KD(axis="spread")),
            *(
                Cart(criterion="gini"),
                Cart(min_samples_leaf=0.1),
                Cart(max_bins=random.choice([2, 7, 255])),
                Cart(max_bins=4, min_samples_leaf=2, max_leaf_nodes=random.choice([None, 5])),
                Cart("absolute_error"),
                Grid((-np.ones(p), np.ones(p))),
            ),
        ],
        "cv": [2, 3],
        "max_depth": [None, 0, 3, "log"],
        "rule": [*RULES],
        "alpha": [None, 0.0, 1.0],
        "lambda_error": [None, 0.0, 1.0, 1e300],
        "lambda_penalty": [None, 0.0, 1.0],
        "prior": [None, "leaves", "branching"],
        "search": [None, "joint", "error-first", "mixture"],
        "vote": ["mean", "majority", Voting("mean", 2.0)],
        "scoring": ["error", "log_loss"],
        "posteriors": ["bound", "cv", PACBayesPosteriors(lambda_error=1.0)],
        "class_weight": [None, "balanced"],
        "train_size": [0.35, 0.8],
        "duplicates": ["genuine", "copies"],
        "delta": [0.05, 1e-9],
        "coverage": [0.5, 0.9],
        "widths": ["scaled", "one", "leaf"],
        "max_samples": ["auto", 0.2, 0.9],
        "densities": ["auto", "normal", "histogram"],
        "power": [1.0, 1.5, "auto"],
        "min_samples_model": [2, 10],
        "smoothing": [0.0, 1.0],
        "inverse_temperature": [None, 0.0, 2.0],
        "loss": [
            *("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma"),
            *("tweedie", CustomLoss(_squared_slopes, _squared)),
        ],
        "prunings": ["vote", "none"],
        "standard_errors": [True],
        "max_iter": [1, 3],
        "n_estimators": [1, 9],
        "max_features": ["auto", 0.1, 1.0, 1, "sqrt"],
        "criterion": ["entropy", "log_loss", "squared_error", "poisson"],
        "max_leaf_nodes": [None, 2, 7],
        "interaction_cst": [None, [[0]], "pairwise", "no_interactions"],
        "l2_regularization": [0.0, 5.0],
        "learning_rate": [0.1, 1.0],
        "method": ["trees", "lasso", "omp", "low_degree", "low_degree_threshold"],
        "degree": [0, 1, 2],
        "max_terms": [None, 1, 5],
        "n_jobs": [None, 1, 2],
        "random_state": [0, 1],
        "monotonic_cst": [None, [1] + [0] * (p - 1)],
        "truncation_level": [1, 30],
        "ndcg_at": [None, 1, 10],
        "categorical_features": ["from_dtype", None, [0], [True] + [False] * (p - 1)],
        "early_stopping": [True, "auto"],
        "n_iter_no_change": [1, 3],
        "validation_fraction": [0.2, 0.5],
        "tol": [0.0, 0.1],
        "max_thresholds": ["auto", 2, 255],
        "quality": ["fast", "best"],
        "quantile": [None, 0.9, [0.1, 0.5, 0.9]],
        "subsample": [0.3, 1.0],
        "warm_start": [True],
        "min_samples_leaf": [1, 3, 20],
        "min_samples_split": [2, 9, 0.4],
        "min_impurity_decrease": [0.0, 0.1],
        "max_features_per_tree": [None, 1, 0.5],
        "splitter": ["best", "random"],
        "bootstrap": [True, False],
        "leaves": ["plain", "refilled", "shrunk", "honest"],
        "oob_score": [False, True],
        "selection": ["best", "training", "vote"],
        "bins": ["auto", 3],
        "var_smoothing": [0.0, 1e-3],
        "scale": [True, False],
    }
    return random.choice(choices[parameter]) if parameter in choices else None


def fit_and_ask(random: Random) -> None:
    """Fit an estimator, call random methods, and check that results are consistent."""
    world = World(random)
    model = _made(random, world)
    X, y = _rows(world, model), _target(random, world, model)
    rows = [X, y, *([world.sample_weight] if has_fit_parameter(model, "sample_weight") else [])]
    if random.random() < 0.5:
        k = random.randrange(len(rows))
        rows[k] = spoilt(random, rows[k])
    how = _queries(random, y) if has_fit_parameter(model, "qid") else {}
    _fit(model, *rows, **how)
    if random.random() < 0.1:
        model = pickle.loads(pickle.dumps(model))
    new = X if random.random() < 0.5 else spoilt(random, X)
    for name in random.sample(_ASKED, 4):
        if hasattr(model, name):
            ask(model, name, new, y, **how)
    if is_classifier(model) and new is X:
        told = model.predict_proba(rows[0])
        for shares in told if isinstance(told, list) else [told]:
            assert np.isfinite(shares).all(), "probabilities are no numbers"
            np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-9)


def _made(random: Random, world: World) -> Any:
    """Make an estimator with random parameters, one of which may be hostile."""
    estimator = random.choices(ESTIMATORS, _CHANCES)[0]
    names = [*estimator().get_params(deep=False)]
    parameters = {name: value for name, value in TOLERANT.items() if name in names}
    for name in random.sample(names, random.randrange(min(5, len(names)))):
        value = plausible_parameter(random, name, world.p)
        if value is not None:
            parameters[name] = value
    if random.random() < 0.3:
        name = random.choice(names)
        value = spoilt(random, parameters.get(name))
        if not (name in _CALLED and callable(value)):
            parameters[name] = value
    return estimator(**parameters)


def _rows(world: World, model: Any) -> Any:
    two_valued = isinstance(model, FourierClassifier | FourierRegressor)
    return (np.asarray(world.X) > 0).astype(float) if two_valued else world.X


def _queries(random: Random, y: Any) -> dict[str, Any]:
    """Draw queries of a few rows each, which need not be adjacent; at times hostile."""
    qid = np.arange(len(y)) % random.choice([1, 3, max(len(y), 1)])
    return {"qid": spoilt(random, qid) if random.random() < 0.1 else qid}


_TAKES_LABELS = (
    certree.BoostedTreesClassifier,
    certree.PACBayesTreeClassifier,
    certree.PrunedTreeClassifier,
    certree.TreeForestClassifier,
)
_TAKES_SEVERAL = (
    *_TAKES_LABELS,
    certree.BoostedTreesRegressor,
    certree.PACBayesTreeRegressor,
    certree.PrunedTreeRegressor,
    certree.TreeForestRegressor,
)


def _target(random: Random, world: World, model: Any) -> Any:
    if isinstance(model, certree.BoostedTreesRanker):
        return world.y
    takes_several = type(model) in _TAKES_SEVERAL and random.random() < 0.2
    if not is_classifier(model):
        return np.column_stack([world.target, world.y]) if takes_several else world.target
    names = random.choice([None, np.array(["a", "b", "c", "d"]), np.array([-5, 7, 9, 1000])])
    classes = world.y if names is None else names[world.y]
    return in_columns(classes) if takes_several else classes


def takes_labels(model: Any) -> bool:
    """Return whether an estimator takes several targets of classes."""
    return type(model) in _TAKES_LABELS


def in_columns(classes: Any) -> Any:
    """Return classes with a second target: the same classes in reverse order of the rows."""
    return np.column_stack([classes, classes[::-1]])


def _fit(model: Any, *rows: Any, **how: Any) -> None:
    """Fit, and assert that a fit that fails has changed nothing."""
    before = dict(vars(model))
    try:
        model.fit(*rows, **how)
    except Exception:
        assert vars(model).keys() == before.keys(), "a fit that failed has changed the model"
        raise


def ask(model: Any, name: str, X: Any, y: Any, **how: Any) -> Any:
    """Call a method of a fitted model with the arguments that it takes; how: further arguments for
    rows with a target.
    """
    method = getattr(model, name)
    if name in (
        "certify_interval",
        "certify_set",
        "export_text",
        "report",
        "selective_certificates",
        "to_sklearn",
        "trees_to_dataframe",
    ):
        return method()
    if name == "conditional_guarantees":
        promised = method()
        assert str(promised), "promises have no words"
        assert promised._repr_html_(), "promises have no page"
        return promised
    if name == "to_dict":
        return json.dumps(method(), allow_nan=False)
    if name == "to_sql":
        return method("rows")
    if name == "rules":
        rules = method(5)
        assert str(rules), "rules have no words"
        assert rules._repr_html_(), "rules have no page"
        return rules
    if name == "explain":
        return _explained(model, X)
    if name == "importance":
        return method("permutation", X, y)
    if name == "certify":
        return method(X, y, duplicates="genuine")
    if name in ("score", "margins", "staged_loss"):
        return method(X, y, **how)
    return method(X[:1] if name == "path" and isinstance(X, np.ndarray) and X.ndim else X)


def _explained(model: Any, X: Any) -> Any:
    """Assert that explanations can be printed, and that contributions sum to the prediction."""
    if hasattr(model, "_get_additive_trees") and isinstance(X, np.ndarray):
        shares = interaction_fractions(model, X, n_draws=20)
        assert shares.total >= 0, "a variance is negative"
        assert str(shares), "shares have no words"
        assert shares._repr_html_(), "shares have no page"
        _adds_up(model, X, shapley_values(model, X, X[:5]))
    return _adds_up(model, X, model.explain(X))


def _adds_up(model: Any, X: Any, explanation: Explanation) -> Explanation:
    assert str(explanation), "an explanation has no words"
    assert explanation._repr_html_(), "an explanation has no page"
    found = explanation.prediction
    if explanation.scale == "target":
        expected = np.reshape(model.predict(X), found.shape)
    elif hasattr(model, "decision_function"):
        expected = np.reshape(model.decision_function(X), found.shape)
    elif explanation.scale == "probability" and hasattr(model, "tree_"):
        said = model.predict_proba(X)
        expected = np.column_stack(said) if isinstance(said, list) else said
    else:
        return explanation
    largest = max(1.0, float(np.abs(explanation.contributions).max(initial=0.0)))
    np.testing.assert_allclose(found / largest, expected / largest, rtol=1e-9, atol=1e-9)
    return explanation
