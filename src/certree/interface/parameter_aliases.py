"""Names of LightGBM, XGBoost, CatBoost and scikit-learn, and their names in certree.

They are names of parameters, of arguments of `fit`, of attributes and of classes. Error messages
suggest the name in certree. Some values of scikit-learn are accepted as synonyms.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from typing import Any

# Aliases by name in certree. An alias may belong to several names, of which an estimator has one.
_ALIASES = {
    "max_iter": "n_estimators num_iterations num_iteration n_iter num_trees num_tree num_round "
    "num_rounds num_boost_round nrounds iterations",
    "n_estimators": "max_iter num_iterations num_trees num_boost_round iterations n_trees",
    "learning_rate": "eta shrinkage_rate",
    "max_leaf_nodes": "num_leaves num_leaf max_leaves max_leaf",
    "max_depth": "depth",
    "min_samples_leaf": "min_child_samples min_data_in_leaf min_data",
    "min_impurity_decrease": "min_split_gain min_gain_to_split",
    "splitter": "extra_trees",
    "l2_regularization": "reg_lambda lambda_l2 l2_leaf_reg lambda",
    "max_features": "colsample_bytree feature_fraction colsample_bynode rsm sub_feature",
    "subsample": "bagging_fraction sub_row",
    "max_samples": "subsample bagging_fraction",
    "loss": "objective loss_function application",
    "quantile": "alpha quantile_alpha",
    "power": "tweedie_variance_power variance_power",
    "categorical_features": "categorical_feature cat_features cat_feature enable_categorical",
    "monotonic_cst": "monotone_constraints monotonic_constraints mc",
    "interaction_cst": "interaction_constraints",
    "class_weight": "scale_pos_weight is_unbalance auto_class_weights class_weights",
    "random_state": "seed random_seed",
    "n_jobs": "n_threads num_threads num_thread nthread nthreads thread_count",
    "verbose": "verbosity silent verbose_eval",
    "n_iter_no_change": "early_stopping_rounds early_stopping_round od_wait",
    "scoring": "eval_metric metric",
    "estimator": "base_estimator",
    "alpha": "ccp_alpha",
    "priors": "prior",
    "coverage": "confidence_level",
    "standard_errors": "posterior_sampling",
}
# Aliases of arguments of `fit`, by the arguments of certree that have their meaning.
_FIT_ALIASES = {
    "X_val and y_val": "eval_set eval_X eval_y validation_data",
    "sample_weight_val": "eval_sample_weight sample_weight_eval_set",
    "offset": "init_score base_margin baseline",
    "qid": "query_id group_id",
    "qid_val": "eval_qid",
    "group_val": "eval_group",
}
# Class names that users of other libraries look for.
_CLASS_ALIASES = {
    "BoostedTreesClassifier": "LGBMClassifier XGBClassifier CatBoostClassifier "
    "GradientBoostingClassifier HistGradientBoostingClassifier",
    "BoostedTreesRegressor": "LGBMRegressor XGBRegressor CatBoostRegressor "
    "GradientBoostingRegressor HistGradientBoostingRegressor",
    "BoostedTreesRanker": "LGBMRanker XGBRanker CatBoostRanker",
    "TreeForestClassifier": "RandomForestClassifier ExtraTreesClassifier",
    "TreeForestRegressor": "RandomForestRegressor ExtraTreesRegressor",
    "PACBayesTreeClassifier": "DecisionTreeClassifier",
    "PACBayesTreeRegressor": "DecisionTreeRegressor",
    "AdaBoostTreeClassifier": "AdaBoostClassifier",
}
# Parameters that single trees leave to their grower.
_CART_PARAMETERS = {
    *("criterion", "max_features", "max_leaf_nodes", "min_impurity_decrease", "min_samples_leaf"),
    *("max_bins", "min_samples_split", "min_weight_fraction_leaf", "splitter"),
}

# Values of scikit-learn, and their names in certree.
_VALUE_ALIASES = {"squared_error": "squared", "log_loss": "entropy"}


def translate_value(value: Any, allowed: Collection[str]) -> Any:
    """Translate a parameter value of scikit-learn, and return that of certree.

    "squared_error" becomes "squared", and "log_loss" becomes "entropy".

    allowed: the values that certree accepts. A value that is allowed or has no translation among
    them is returned unchanged.
    """
    if not isinstance(value, str) or value in allowed or _VALUE_ALIASES.get(value) not in allowed:
        return value
    return _VALUE_ALIASES[value]


def suggest_parameter(name: str, parameters: Iterable[str]) -> str | None:
    """Return the parameter that a name of LightGBM, XGBoost, CatBoost or scikit-learn stands for.

    Parameters
    ----------
    name : str
        The name that the user has passed.
    parameters : iterable of str
        Names of the parameters of an estimator.

    Returns
    -------
    str or None
        The parameter; "grower=Cart(name=...)" if it is one of the grower; None if `name` is a
        parameter itself, or is not known.
    """
    names = set(parameters)
    if name in names:
        return None
    for parameter, aliases in _ALIASES.items():
        if parameter in names and name in aliases.split():
            return parameter
    return f"grower=Cart({name}=...)" if name in _CART_PARAMETERS and "grower" in names else None


def check_for_aliases(model: Any, names: Iterable[str], parameters: Iterable[str]) -> None:
    """Raise TypeError if some names are parameters of other libraries; the message has certree's name.

    Parameters
    ----------
    model : estimator
        The estimator, for its name in the message.
    names : iterable of str
        The names that the user has passed; names that are unknown everywhere are ignored.
    parameters : iterable of str
        Names of the parameters of the estimator.
    """
    for name in names:
        suggestion = suggest_parameter(name, parameters)
        if suggestion is not None:
            raise TypeError(f"{type(model).__name__} has no parameter {name!r}: use {suggestion}")


def check_nested_parameters(
    model: Any, values: Mapping[str, Any], parameters: Iterable[str]
) -> None:
    """Raise ValueError for a key such as ``grower__alpha`` if only the estimator has `alpha`.

    The part before the two underscores names a component: a parameter of the estimator that has
    parameters itself.

    Parameters
    ----------
    model : estimator
        The estimator.
    values : mapping
        New values by key, as passed to `set_params`.
    parameters : iterable of str
        Names of the parameters of the estimator itself.

    Raises
    ------
    ValueError
        If `values` has a key ``component__name``, the component has no parameter `name`, and the
        estimator has one; the message names it.
    """
    names = set(parameters)
    for key in values:
        component, separator, name = key.partition("__")
        if not separator or name not in names:
            continue
        inner = values.get(component, getattr(model, component, None))
        if hasattr(inner, "get_params") and name not in inner.get_params(deep=False):
            raise ValueError(
                f"{key} is not a parameter of {type(model).__name__}, as {type(inner).__name__} has no "
                f"{name}: use {name}, which {type(model).__name__} itself has"
            )


def rejects_aliases(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate a constructor: a parameter name of another library raises an error with certree's name.

    The error is a TypeError. Other libraries are LightGBM, XGBoost, CatBoost and scikit-learn. Other
    keywords are passed on. init: the constructor, which the decorated one calls.
    """
    parameters = inspect.signature(init).parameters

    @wraps(init)
    def init_without_aliases(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if not kwargs.keys() <= parameters.keys():
            check_for_aliases(self, kwargs, parameters)
        init(self, *args, **kwargs)

    return init_without_aliases


def rejects_fit_aliases(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `fit`: an argument of other libraries raises a TypeError that has certree's name.

    Arguments such as `early_stopping_rounds`, which certree takes in the constructor, are among
    them. Other keywords are passed on. fit: the method, which the decorated one calls.
    """
    arguments = inspect.signature(fit).parameters

    @wraps(fit)
    def fit_without_aliases(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - arguments.keys():
            suggestion = _suggest_fit_argument(self, name, arguments)
            if suggestion is not None:
                raise TypeError(f"{type(self).__name__}.fit has no argument {name!r}: {suggestion}")
        return fit(self, *args, **kwargs)

    return fit_without_aliases


def _suggest_fit_argument(model: Any, name: str, arguments: Collection[str]) -> str | None:
    """Return what to pass instead of an argument of another library's `fit`, as text.

    Parameters
    ----------
    model : estimator
        The estimator whose `fit` was called.
    name : str
        The argument that `fit` does not have.
    arguments : collection of str
        Names of the arguments that it has.

    Returns
    -------
    str or None
        End of a message; None if the argument is not known.
    """
    for suggested, aliases in _FIT_ALIASES.items():
        if name in aliases.split() and suggested.split()[0] in arguments:
            return f"use {suggested}"
    parameters = model.get_params(deep=False)
    parameter = name if name in parameters else suggest_parameter(name, parameters)
    return None if parameter is None else f"pass {parameter} to the constructor"


class CertificateHint:
    """The attribute `certificate_` of estimators that do not certify their fits.

    Access raises an AttributeError whose message says how to get a certificate. A fit of a
    certified estimator sets the attribute on the object, where Python finds it first.
    """

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        name = (owner or type(model)).__name__
        if name.startswith("Certified"):
            raise AttributeError(f"{name} has certificate_ after fit only: call fit first")
        ways = []
        if f"Certified{name}" in _get_public_names():
            ways.append(f"fit a Certified{name}")
        if name.endswith("Classifier"):
            ways.append("call certree.certify with rows that were not in the fit")
        remedy = f": {', or '.join(ways)}" if ways else ""
        raise AttributeError(f"{name} has no certificate_{remedy}")


def _get_public_names() -> Collection[str]:
    """Return the names of certree's public classes and functions."""
    public: Collection[str] = import_module("certree").__all__
    return public


def suggest_public_name(name: str, public: Collection[str]) -> str | None:
    """Return the public name that somebody means who has written another one, or None.

    name: the name that does not exist: one with a typing error, or a class of another library.
    public: the names that exist.
    """
    for suggestion, aliases in _CLASS_ALIASES.items():
        if name in aliases.split():
            return suggestion
    return next(iter(get_close_matches(name, public, 1, 0.8)), None)
