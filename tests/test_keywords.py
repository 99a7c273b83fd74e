"""Every public method and function takes each of its arguments by keyword."""

import importlib
import inspect
import pkgutil
from copy import deepcopy
from functools import cache

import numpy as np
import pytest

import certree
from certree.boolean import FourierClassifier, FourierRegressor
from certree.ensembles import ConformalBandRegressor
from certree.out_of_core.lazy_predictions import support_dask_collections
from certree.weights import map_pruning
from fuzz.models import ESTIMATORS
from interface.test_fitted_state import as_text

N = 60
KEYWORDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
DECORATED = (certree.DecoratedTreeClassifier, certree.DecoratedTreeRegressor)
CERTIFIED = (certree.CertifiedBoostedTreesClassifier, certree.CertifiedBoostedTreesRegressor)
BITS = (FourierClassifier, FourierRegressor)
# Models that fit fast.
QUICK = {"max_iter": 3, "n_estimators": 5, "max_depth": 4, "standard_errors": True,
         "min_samples_model": 10, "coverage": 0.8, "leaves": "plain", "random_state": 0}  # fmt: skip
BOX = {"grower": certree.Grid((-9 * np.ones(2), 9 * np.ones(2))), "alpha": 1.0,
       "lambda_error": 1.0, "lambda_penalty": 0.1, "inverse_temperature": 1.0}  # fmt: skip
# Methods that need a model with these parameters.
MODELS_FOR = {
    "out_of_bag_importances": {"oob_score": True},
    "certify_fit": {**BOX, "rule": "square-root"},
    **dict.fromkeys(["partial_fit", "forget", "merge"], BOX),
}
# What these models refuse, whatever they are given.
EXPORTS = ("to_code", "to_dict", "to_onnx", "to_sklearn", "to_sql", "trees_to_dataframe")
REFUSED = {(one, name) for one in DECORATED for name in EXPORTS}


def rows_for(estimator):
    """60 rows of two features, and two classes."""
    X = np.random.default_rng(0).normal(size=(N, 2))
    X = (X > 0).astype(float) if estimator in BITS else X
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)


def fitted(estimator, method):
    """A model of which a method can be called; it may be changed."""
    return deepcopy(_fitted(estimator, method if method in MODELS_FOR else None))


@cache
def _fitted(estimator, method):
    if estimator is ConformalBandRegressor:
        inner = certree.BoostedTreesRegressor("quantile", max_iter=2, random_state=0)
        return estimator(inner, random_state=0).fit(*rows_for(estimator))
    parameters = {**QUICK, **MODELS_FOR.get(method, {})}
    names = estimator().get_params(deep=False)
    model = estimator(**{name: value for name, value in parameters.items() if name in names})
    others = {"qid": np.arange(N) // 6} if estimator is certree.BoostedTreesRanker else {}
    if method == "out_of_bag_importances":
        others = {"sample_weight": np.ones(N), "groups": np.arange(N) // 2}
        others |= {"time": np.arange(N), "gap": 1}
    return model.fit(*rows_for(estimator), **others)


def arguments(model, name):
    """A value for each argument of a method; None for one of two that exclude each other."""
    X, y = rows_for(type(model))
    # New rows certify, but for bits, of which there are four.
    X = X + 0.01 if name == "certify" else X
    X, y = (X[:9], y[:9]) if name == "forget" else (X, y)
    offset = None if isinstance(model, CERTIFIED) else np.zeros(N)
    values = {
        "X": X, "y": y, "x": X[0], "X_val": X, "y_val": y, "sample_weight": np.ones(len(y)),
        "sample_weight_val": np.ones(N), "groups": np.arange(N) // 2, "offset": offset,
        "offset_val": offset, "callbacks": [lambda *_: None], "n_iter": 2, "qid": np.arange(N) // 6,
        "group": None, "qid_val": np.arange(N) // 6, "group_val": None, "classes": [0, 1],
        "delta": 0.2, "look": 1, "duplicates": "genuine", "coverage": 0.6, "per_class": False,
        "allow_empty": True, "language": "c", "name": "Model",
        "tolerance": 0.5, "families": "recall", "weights": None, "max_weight": None,
        "random_state": 0, "jointly": False, "max_leaves": 3, "deep": False, "n_repeats": 2,
        "kind": "split" if isinstance(model, certree.BoostedTreesRanker) else "permutation",
        "margin": 0.1, "pairs": [[0, 1]], "dtype": "float64", "table": "rows", "keep": ["id"],
        "time": np.arange(len(y)), "gap": 1, "independent": True, "inputs": "named",
        "pos_label": None, "threshold": None,
    }  # fmt: skip
    if name == "importance" and values["kind"] == "split":
        values |= {"X": None, "y": None, "offset": None}
    if name == "partial_fit" and not hasattr(model, "classes_"):
        values["classes"] = None
    if name == "conditional_guarantees":
        values["groups"] = None
    if name == "merge":
        values["other"] = fitted(type(model), name)
    if name == "certify_pruning":
        values["pruning"] = map_pruning(model.tree_, model.weights_)
    parameters = inspect.signature(getattr(model, name)).parameters.values()
    named = [one for one in parameters if one.kind in KEYWORDS]
    return named, {one.name: values[one.name] for one in named}


def methods_of(kind):
    """The names of the public methods of a class, but for those that scikit-learn makes of others."""
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        is_request = name.startswith("set_") and name.endswith("_request")
        if name.startswith("_") or isinstance(static, property) or is_request:
            continue
        if callable(getattr(kind, name, None)):
            yield name


def written_out(answer):
    """What a method returns as text; of a model what it predicts."""
    if not hasattr(answer, "get_params"):
        return as_text(answer)
    if type(answer).__module__.startswith("sklearn"):
        return repr(answer)
    return as_text(answer.predict(rows_for(type(answer))[0]))


def names_that_fail(wrapper):
    """What a wrapper says if it refuses by keyword what the function below takes so; else nothing."""
    below = inspect.signature(wrapper.__wrapped__).parameters
    names = [one.name for one in below.values() if one.kind in KEYWORDS and one.name != "self"]
    signature = inspect.signature(wrapper, follow_wrapped=False)
    bound = (None,) if "self" in below else ()
    try:
        signature.bind(*bound, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return ""


def wrappers(function):
    """All functions around another, the outermost first."""
    while hasattr(function, "__wrapped__"):
        yield function
        function = function.__wrapped__


def public_functions():
    """Every public function, and every method of a public class, by name."""
    for found in pkgutil.walk_packages(certree.__path__, "certree."):
        if found.name.startswith(("certree.cli", "certree.__main__", "certree._core")):
            continue
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value):
                for method in ("__init__", *methods_of(value)):
                    yield f"{name}.{method}", getattr(value, method)
            elif inspect.isfunction(value):
                yield name, value


ALL = [*ESTIMATORS, ConformalBandRegressor]
METHODS = [(one, name) for one in ALL for name in methods_of(one)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "name"), METHODS, ids=lambda one: getattr(one, "__name__", one)
)
def test_every_argument_is_taken_by_keyword(estimator, name):
    model = fitted(estimator, name)
    if not hasattr(model, name):  # which its parameters or its kind do not offer
        with pytest.raises(AttributeError):
            getattr(model, name)
        return
    named, given = arguments(model, name)
    if (estimator, name) in REFUSED:
        with pytest.raises(TypeError, match="its leaves hold models"):
            getattr(model, name)(**given)
        return
    if name == "find_rules" and model._number_rules() is None:  # prunings vote
        with pytest.raises(ValueError, match="find_rules needs a single tree"):
            getattr(model, name)(**given)
        return
    by_place = [given[one.name] for one in named if one.kind is one.POSITIONAL_OR_KEYWORD]
    by_keyword = {one.name: given[one.name] for one in named if one.kind is one.KEYWORD_ONLY}
    expected = getattr(deepcopy(model), name)(*by_place, **by_keyword)
    found = getattr(deepcopy(model), name)(**given)
    assert written_out(found) == written_out(expected)


def test_every_wrapper_takes_the_keywords_of_what_it_wraps():
    around = [(name, one) for name, value in public_functions() for one in wrappers(value)]
    assert len(around) > 300
    failing = {(name, one.__code__.co_name): names_that_fail(one) for name, one in around}
    assert {name: why for name, why in failing.items() if why} == {}


def test_rows_of_dask_are_taken_by_keyword():
    da = pytest.importorskip("dask.array")
    X, y = rows_for(certree.BoostedTreesClassifier)
    model = certree.BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
    lazy = da.from_array(X, chunks=(20, 2))
    for name in ("predict", "predict_proba", "decision_function"):
        found = getattr(model, name)(X=lazy, n_iter=2)
        assert found.compute().tobytes() == getattr(model, name)(X, n_iter=2).tobytes()


def test_a_wrapper_that_takes_rows_by_place_alone_is_found():
    def predict(self, X):
        return X

    def by_place(self, X, /):
        return predict(self, X)

    by_place.__wrapped__ = predict
    assert names_that_fail(by_place)
    assert not names_that_fail(support_dask_collections(predict))
