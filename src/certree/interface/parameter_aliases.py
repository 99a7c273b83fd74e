"""Parameter names of LightGBM, XGBoost, CatBoost and scikit-learn, and their names in certree.

Error messages suggest the name in certree. Some values of scikit-learn are accepted as synonyms.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
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
# Parameters that single trees leave to their grower.
_CART_PARAMETERS = {
    *("criterion", "max_features", "max_leaf_nodes", "min_impurity_decrease", "min_samples_leaf"),
    *("max_bins", "min_samples_split", "min_weight_fraction_leaf", "splitter"),
}

# Values of scikit-learn, and their names in certree.
_VALUE_ALIASES = {"squared_error": "squared", "log_loss": "entropy"}


def translate_value(value: Any, allowed: Collection[str]) -> Any:
    """Translate a value of scikit-learn to one of the allowed values; return any other unchanged."""
    if not isinstance(value, str) or value in allowed or _VALUE_ALIASES.get(value) not in allowed:
        return value
    return _VALUE_ALIASES[value]


def suggest_parameter(name: str, parameters: Iterable[str]) -> str | None:
    """Return the parameter for which a name is an alias, or None if there is none.

    For a parameter of the grower it is "grower=Cart(name=...)".
    """
    names = set(parameters)
    if name in names:
        return None
    for own_name, aliases in _ALIASES.items():
        if own_name in names and name in aliases.split():
            return own_name
    return f"grower=Cart({name}=...)" if name in _CART_PARAMETERS and "grower" in names else None


def check_for_aliases(model: Any, names: Iterable[str], parameters: Iterable[str]) -> None:
    """Raise TypeError if one of the names is an alias of a parameter; the message has the parameter."""
    for name in names:
        suggestion = suggest_parameter(name, parameters)
        if suggestion is not None:
            raise TypeError(f"{type(model).__name__} has no parameter {name!r}: use {suggestion}")


def check_nested_parameters(
    model: Any, values: Mapping[str, Any], parameters: Iterable[str]
) -> None:
    """Raise ValueError for ``component__name`` if only the estimator itself has the parameter.

    Parameters
    ----------
    model : estimator
        The estimator.
    values : mapping
        New values by name, as `set_params` takes them.
    parameters : iterable of str
        Names of the parameters of the estimator itself.

    Raises
    ------
    ValueError
        If there is such a name; the message has the right one.
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
    """Decorate a constructor: `check_for_aliases` runs if a keyword is unknown."""
    parameters = inspect.signature(init).parameters

    @wraps(init)
    def init_without_aliases(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if not kwargs.keys() <= parameters.keys():
            check_for_aliases(self, kwargs, parameters)
        init(self, *args, **kwargs)

    return init_without_aliases
