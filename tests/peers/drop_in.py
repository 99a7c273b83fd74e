"""Puts certree's estimators where scikit-learn's tests import its own; a plugin of pytest.

A stand-in has the constructor of the class that it stands for, fits certree's by what its parameters
are called there, and leaves out those that have no counterpart. All that is asked of it goes to that
model.
"""

import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sklearn.ensemble
import sklearn.ensemble._hist_gradient_boosting.gradient_boosting as hist
import sklearn.tree
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import NotFittedError

import certree

_ROUNDS = {"n_estimators": "max_iter"}
_LOSSES = {"alpha": "quantile"}
_LEFT_TO_CART = {
    *("criterion", "splitter", "min_samples_split", "min_samples_leaf", "max_features"),
    *("max_leaf_nodes", "min_impurity_decrease", "min_weight_fraction_leaf"),
}
# Those of scikit-learn that a model of certree stands for, and names of parameters that differ.
STAND_INS: dict[str, tuple[Any, Callable[..., Any], dict[str, str]]] = {
    "GradientBoostingClassifier": (sklearn.ensemble, certree.BoostedTreesClassifier, _ROUNDS),
    "GradientBoostingRegressor": (
        sklearn.ensemble,
        certree.BoostedTreesRegressor,
        {**_ROUNDS, **_LOSSES},
    ),
    "HistGradientBoostingClassifier": (sklearn.ensemble, certree.BoostedTreesClassifier, {}),
    "HistGradientBoostingRegressor": (sklearn.ensemble, certree.BoostedTreesRegressor, {}),
    "RandomForestClassifier": (sklearn.ensemble, certree.TreeForestClassifier, {}),
    "RandomForestRegressor": (sklearn.ensemble, certree.TreeForestRegressor, {}),
    "DecisionTreeClassifier": (sklearn.tree, certree.PACBayesTreeClassifier, {}),
    "DecisionTreeRegressor": (sklearn.tree, certree.PACBayesTreeRegressor, {}),
}


def stand_in(peer: Any, ours: Callable[..., Any], names: dict[str, str]) -> Any:
    """A class with the constructor of a peer's that fits ours."""
    signature = inspect.signature(peer.__init__)
    known = inspect.signature(ours).parameters
    defaults = {name: one.default for name, one in signature.parameters.items() if name != "self"}

    def store(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        for name in defaults:
            setattr(self, name, given.arguments[name])

    def made(self: Any) -> Any:
        """Our model; what is left at the peer's default is left at ours."""
        changed = {
            names.get(name, name): getattr(self, name)
            for name, default in defaults.items()
            if repr(getattr(self, name)) != repr(default)
        }
        # Their tests mean so many rounds; ours would choose a number.
        for name in ("n_estimators", "max_iter"):
            if name in defaults:
                changed.setdefault(names.get(name, name), getattr(self, name))
        if changed.get("quantile") is not None and self.loss != "quantile":
            del changed["quantile"]
        left = _LEFT_TO_CART & {*changed} - {*known} if "grower" in known else ()
        cart = {name: changed.pop(name) for name in left}
        model = {name: value for name, value in changed.items() if name in known}
        return ours(certree.Cart(**cart), **model) if cart else ours(**model)

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> Any:
        before = self.__dict__.get("_model")
        model = made(self)
        if before is not None and getattr(self, "warm_start", False):
            model = before.set_params(**model.get_params(deep=False))
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._model = model.fit(X, y, **weight, **more)
        return self

    def answer(self: Any, name: str) -> Any:
        model = self.__dict__.get("_model")
        if name.startswith("__") or name == "_model":
            raise AttributeError(name)
        if model is None and hasattr(ours, name) and callable(getattr(ours, name)):

            def asked(*_: Any, **__: Any) -> Any:
                raise NotFittedError(f"This {peer.__name__} instance is not fitted yet.")

            return asked
        return getattr(model, name)

    mixin = ClassifierMixin if is_classifier(peer()) else RegressorMixin
    methods = {"fit": fit, "__getattr__": answer, "__init__": store}
    methods["__sklearn_tags__"] = lambda self: made(self).__sklearn_tags__()
    methods["predict"] = lambda self, X: answer(self, "predict")(X)
    methods |= {"__module__": __name__, "__qualname__": peer.__name__}
    made_class = type(peer.__name__, (mixin, BaseEstimator), methods)
    made_class.__init__.__signature__ = signature  # type: ignore[misc]
    return made_class


def pytest_configure() -> None:
    """Swap before tests are imported."""
    for name, (module, ours, names) in STAND_INS.items():
        made = globals()[name] = stand_in(getattr(module, name), ours, names)
        setattr(module, name, made)
        if hasattr(hist, name):
            setattr(hist, name, made)


_found: list[dict[str, str]] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Keep how each test ended, and by what error."""
    report = (yield).get_result()
    if report.when == "call" or report.outcome != "passed":
        cause = "" if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"
        _found.append({"test": item.nodeid, "outcome": report.outcome, "cause": cause[:300]})


def pytest_sessionfinish() -> None:
    """Hand over what was found."""
    Path(os.environ["PEERS_FOUND"]).write_text(json.dumps(_found))
