"""Names that other libraries give to parameters, and what these are called here.

Those of LightGBM, XGBoost, CatBoost and scikit-learn, for errors that say what to write instead. Words
of scikit-learn for values are taken as they are.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any

# By our name, the names elsewhere; a name may stand for several of ours, of which an estimator has one.
_ELSEWHERE = {
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
# What single trees leave to the grower of the tree.
_OF_CART = {
    *("criterion", "max_features", "max_leaf_nodes", "min_impurity_decrease", "min_samples_leaf"),
    *("max_bins", "min_samples_split", "min_weight_fraction_leaf", "splitter"),
}


# Words of scikit-learn for what has another one here.
_WORDS = {"squared_error": "squared", "log_loss": "entropy"}


def translate_value(value: Any, known: Collection[str]) -> Any:
    """What a value is called among known words; anything else stays as it is."""
    if not isinstance(value, str) or value in known or _WORDS.get(value) not in known:
        return value
    return _WORDS[value]


def suggest_parameter(name: str, parameters: Iterable[str]) -> str | None:
    """What to write among these parameters for the name of another library; None: nobody knows."""
    known = set(parameters)
    if name in known:
        return None
    for ours, theirs in _ELSEWHERE.items():
        if ours in known and name in theirs.split():
            return ours
    return f"grower=Cart({name}=...)" if name in _OF_CART and "grower" in known else None


def check_for_aliases(model: Any, given: Iterable[str], parameters: Iterable[str]) -> None:
    """Say what a parameter is called here that has the name of another library.

    Raises
    ------
    TypeError
        If there is such a parameter.
    """
    for name in given:
        ours = suggest_parameter(name, parameters)
        if ours is not None:
            raise TypeError(f"{type(model).__name__} has no parameter {name!r}: use {ours}")


def check_nested_parameters(
    model: Any, given: Mapping[str, Any], parameters: Iterable[str]
) -> None:
    """Refuse ``part__name`` where the estimator itself has the parameter, and its part does not.

    Parameters
    ----------
    model : estimator
        The estimator.
    given : mapping
        What is set, by name.
    parameters : iterable of str
        The estimator's own parameters.

    Raises
    ------
    ValueError
        If there is such a name; the error says which one to write instead.
    """
    known = set(parameters)
    for key in given:
        part, nested, name = key.partition("__")
        if not nested or name not in known:
            continue
        inner = given.get(part, getattr(model, part, None))
        if hasattr(inner, "get_params") and name not in inner.get_params(deep=False):
            raise ValueError(
                f"{key} is no parameter of {type(model).__name__}, as {type(inner).__name__} has no "
                f"{name}: use {name}, which {type(model).__name__} itself has"
            )


def rejects_aliases(init: Callable[..., None]) -> Callable[..., None]:
    """Let a constructor say so."""
    parameters = inspect.signature(init).parameters

    @wraps(init)
    def init_by_our_names(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if not kwargs.keys() <= parameters.keys():
            check_for_aliases(self, kwargs, parameters)
        init(self, *args, **kwargs)

    return init_by_our_names
