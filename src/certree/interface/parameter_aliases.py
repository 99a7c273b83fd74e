"""Names of LightGBM, XGBoost, CatBoost and scikit-learn, and their names in certree.

They are names of parameters, of arguments of methods, of attributes, of scores and of classes. Error
messages suggest the name in certree, or say why there is none. Some values of scikit-learn are
accepted as synonyms.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

Estimator = TypeVar("Estimator")

# Aliases by name in certree. An alias may belong to several names, of which an estimator has one.
_ALIASES = {
    "max_iter": "n_estimators num_iterations num_iteration n_iter num_trees num_tree num_round "
    "num_rounds num_boost_round nrounds iterations",
    "n_estimators": "max_iter num_iterations num_trees num_boost_round iterations n_trees",
    "max_time": "time_budget time_limit max_runtime_secs",
    "learning_rate": "eta shrinkage_rate",
    "max_leaf_nodes": "num_leaves num_leaf max_leaves max_leaf",
    "max_depth": "depth",
    "min_samples_leaf": "min_child_samples min_data_in_leaf min_data",
    "min_impurity_decrease": "min_split_gain min_gain_to_split",
    "splitter": "extra_trees",
    "max_thresholds": "extra_trees",
    "l2_regularization": "reg_lambda lambda_l2 l2_leaf_reg lambda",
    "max_features": "colsample_bytree feature_fraction colsample_bynode colsample_bylevel "
    "feature_fraction_bynode rsm sub_feature",
    "subsample": "bagging_fraction sub_row",
    "max_samples": "subsample bagging_fraction",
    "loss": "objective loss_function application",
    "criterion": "objective",
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
    "tol": "early_stopping_min_delta",
    "warm_start": "init_model xgb_model",
    "scoring": "eval_metric metric",
    "estimator": "base_estimator",
    "alpha": "ccp_alpha",
    "priors": "prior",
    "coverage": "confidence_level",
    "delta": "confidence confidence_level",
    "train_size": "test_size calibration_size",
    "standard_errors": "posterior_sampling",
}
# What messages suggest for a parameter or attribute, if its name alone is not enough.
_SUGGESTIONS = {
    "n_iter_no_change": "n_iter_no_change and early_stopping=True",
    "splitter": 'splitter="random"',
    "max_thresholds": "max_thresholds=1",
    "warm_start": "warm_start=True",
    "delta": "delta, which is 1 - confidence",
    "train_size": "train_size, the fraction of the rows that train",
    "validation_score_": "validation_score_, which a fit with validation rows sets",
    "feature_names_in_": "feature_names_in_, which a fit to a data frame sets",
    "to_dict": "to_dict()",
    "save": "save(model, path) of certree",
}
# Why users leave parameters and arguments of other libraries out: for estimators that have a certain
# parameter, a reason and the names to which it applies. Names in _ALIASES have precedence.
_UNNEEDED = (
    (
        "prunings",
        "prunings of each tree vote against splits that fit noise",
        "reg_alpha lambda_l1 path_smooth min_child_weight min_sum_hessian_in_leaf gamma "
        "max_delta_step min_split_gain min_gain_to_split ccp_alpha",
    ),
    (
        "min_samples_leaf",
        "numeric features have up to 255 bins",
        "max_bin max_bins border_count subsample_for_bin min_data_in_bin",
    ),
    (
        "subsample",
        "every round draws its rows anew",
        "bagging_freq subsample_freq sampling_method data_sample_strategy bootstrap_type",
    ),
    ("prunings", "certree has gradient boosting of trees only", "boosting_type boosting booster"),
    ("prunings", "trees grow best leaf first", "grow_policy"),
    (
        "prunings",
        "leaves of boosted trees are constants; DecoratedTreeRegressor fits a model in each leaf",
        "linear_tree",
    ),
    (
        "prunings",
        "the estimator and y determine the loss; a CustomLoss for two classes needs a "
        "BoostedTreesRegressor with targets 0 and 1",
        "objective loss_function application loss num_class",
    ),
    (
        "categorical_features",
        "certree encodes categories without settings",
        "cat_smooth cat_l2 max_cat_threshold max_cat_to_onehot one_hot_max_size",
    ),
    ("prunings", "the method importance has the argument kind", "importance_type"),
    ("scoring", "scoring is a single metric", "first_metric_only"),
    (
        "random_state",
        "fits with an integer random_state are reproducible",
        "deterministic force_col_wise force_row_wise",
    ),
    ("n_jobs", "certree runs on the CPU", "device device_type task_type tree_method gpu_id"),
    (
        "categorical_features",
        "the columns of a data frame name the features",
        "feature_name feature_names",
    ),
    ("early_stopping", "there is one validation set", "eval_names"),
    ("early_stopping", "early stopping keeps the best rounds", "use_best_model"),
    (
        "early_stopping",
        "early_stopping=True draws validation rows from the training rows",
        "X_val y_val sample_weight_val eval_set eval_X eval_y validation_data eval_sample_weight "
        "sample_weight_eval_set",
    ),
    (
        "early_stopping",
        "only fit of boosted trees without a certificate calls functions; verbose=1 shows progress",
        "callbacks",
    ),
    (
        "early_stopping",
        "it states the sizes of queries for BoostedTreesRanker; if rows depend on each other, pass "
        "groups, which has a value for each row",
        "group",
    ),
    ("early_stopping", "predictions start at the first round", "start_iteration"),
)
# Aliases of arguments of methods, by the arguments of certree that have their meaning.
_ARGUMENT_ALIASES = {
    "X_val and y_val": "eval_set eval_X eval_y validation_data",
    "sample_weight_val": "eval_sample_weight sample_weight_eval_set",
    "offset": "init_score base_margin baseline",
    "qid": "query_id group_id groups",
    "qid_val": "eval_qid",
    "group_val": "eval_group",
    "n_iter": "num_iteration iteration_range ntree_limit ntree_end",
}
# Aliases of arguments of `predict` and `predict_proba`, by the methods that do the same.
_CALL_ALIASES = {
    "decision_function": "raw_score output_margin",
    "apply": "pred_leaf",
    "explain": "pred_contrib pred_contribs",
}
# Aliases of arguments of functions and of other methods: the argument that replaces them, what the
# message says of it, and the aliases. The first argument that the function has is suggested.
_FUNCTION_ALIASES = (
    ("separator", "", "sep delimiter"),
    ("missing", ", a list of texts", "na_values"),
    (
        "dates",
        ', "dd/mm" or "mm/dd", if the order is not detected',
        "parse_dates dayfirst date_format",
    ),
    ("keep_text", ", a list of columns of codes; other types are detected", "dtype"),
    ("coverage", ", which is 1 - alpha", "alpha"),
    ("delta", "", "alpha"),
    ("kind", "", "importance_type"),
    ("max_features", "", "max_num_features"),
)
# Arguments by which other libraries stop early; certree scores X_val and y_val without stopping.
_EVAL_SETS = ("eval_set", "eval_X", "eval_y", "validation_data")
# Aliases of attributes of fitted models: for estimators that have a certain parameter, the attribute
# in certree and its aliases.
_ATTRIBUTE_ALIASES = (
    (
        "early_stopping",
        "n_iter_",
        "best_iteration_ best_iteration n_estimators_ tree_count_ best_ntree_limit",
    ),
    ("early_stopping", "validation_score_", "best_score_ best_score evals_result_ evals_result"),
    ("early_stopping", "trees_", "booster_ get_booster"),
    ("n_estimators", "trees_", "booster_ get_booster"),
    ("categorical_features", "feature_importances_", "feature_importance get_score get_fscore"),
    ("grower", "tree_", "booster_ get_booster"),
    ("categorical_features", "feature_names_in_", "feature_name_ feature_names_"),
    ("early_stopping", "to_dict", "dump_model get_dump"),
    ("categorical_features", "save", "save_model"),
    ("loss", "loss", "objective_"),
)
# Names of metrics, by the values of `scoring`.
_SCORING_ALIASES = {
    "loss": "binary_logloss multi_logloss logloss mlogloss Logloss MultiClass cross_entropy log_loss",
    "roc_auc": "auc AUC",
    "average_precision": "aucpr PRAUC",
    "accuracy": "error binary_error multi_error merror Accuracy",
    "neg_root_mean_squared_error": "rmse RMSE root_mean_squared_error",
    "neg_mean_squared_error": "mse MSE l2 mean_squared_error",
    "neg_mean_absolute_error": "mae MAE l1 mean_absolute_error",
    "neg_mean_absolute_percentage_error": "mape MAPE",
}
# Scores of the rows of a positive class, which scikit-learn expects to be 1, and their functions.
_POSITIVE_SCORES = {name: f"{name}_score" for name in ("f1", "precision", "recall", "jaccard")}
# Names of losses and of criteria of regressors, by the names of certree.
_LOSS_ALIASES = {
    "squared_error": "l2 L2 mse MSE rmse RMSE regression regression_l2 mean_squared_error "
    "reg:squarederror",
    "absolute_error": "l1 L1 mae MAE regression_l1 mean_absolute_error reg:absoluteerror",
    "huber": "reg:pseudohubererror",
    "poisson": "count:poisson Poisson",
    "gamma": "reg:gamma",
    "tweedie": "reg:tweedie Tweedie",
    "quantile": "Quantile pinball reg:quantileerror",
}
# Names of losses of classifiers.
_CLASS_LOSSES = (
    "binary binary:logistic logistic log_loss logloss Logloss cross_entropy multiclass MultiClass "
    "softmax multi:softmax multi:softprob"
)
# What to pass in place of the -1 that LightGBM accepts, by parameter.
_MINUS_ONE = {"max_depth": "None for no limit", "verbose": "0 for no output"}
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
    """Translate scikit-learn's name of a criterion, and return certree's name.

    "squared_error" becomes "squared", and "log_loss" becomes "entropy".

    value: value of a parameter such as `criterion`, of any type. allowed: the values that certree
    accepts. A value that is allowed or has no translation among them is returned unchanged.
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
        The parameter. If the estimator has a parameter `grower`, an object that grows its trees,
        and `name` is one of CART, such as max_features: "grower=Cart(max_features=...)". None if
        `name` is a parameter itself, or is not known.
    """
    names = set(parameters)
    if name in names:
        return None
    for parameter, aliases in _ALIASES.items():
        if parameter in names and name in aliases.split():
            return parameter
    return f"grower=Cart({name}=...)" if name in _CART_PARAMETERS and "grower" in names else None


def check_for_aliases(model: Any, names: Iterable[str], parameters: Iterable[str]) -> None:
    """Raise TypeError if some names are parameters of other libraries.

    The message has the name in certree, or says why the parameter is not needed.

    Parameters
    ----------
    model : estimator
        The estimator, for its name in the message.
    names : iterable of str
        The names that the user has passed; names that are unknown everywhere are ignored.
    parameters : iterable of str
        Names of the parameters of the estimator.
    """
    own = set(parameters)
    for name in names:
        suggestion = suggest_parameter(name, own)
        if suggestion is None:
            remedy = _say_why_unneeded(name, own)
        else:
            remedy = f"use {_SUGGESTIONS.get(suggestion, suggestion)}"
        if remedy is not None:
            raise TypeError(f"{type(model).__name__} has no parameter {name!r}: {remedy}")


def _say_why_unneeded(name: str, parameters: Collection[str]) -> str | None:
    """Return advice to leave out a parameter or an argument of another library; None if unknown.

    name: the name that the user has passed. parameters: names of the parameters of the estimator.
    The result is the end of a message, "leave it out, as ..." with the reason. It is None if `name`
    is a parameter of the estimator, or certree knows no reason (table `_UNNEEDED`).
    """
    if name in parameters:
        return None
    for parameter, reason, names in _UNNEEDED:
        if parameter in parameters and name in names.split():
            return f"leave it out, as {reason}"
    return None


def check_for_unknown_score(scoring: Any) -> None:
    """Raise ValueError if `scoring` is text, but neither "loss" nor a scorer's name in scikit-learn.

    scoring: value of the parameter of this name; one that is not text passes. If the value is the
    name of a metric in another library, such as "rmse", the message has scikit-learn's name.
    """
    from sklearn.metrics import get_scorer_names  # takes a while, and most fits need no scorer

    if not isinstance(scoring, str) or scoring in ("loss", *get_scorer_names()):
        return
    for suggestion, names in _SCORING_ALIASES.items():
        if scoring in names.split():
            remedy = f'use "{suggestion}"'
            break
    else:
        remedy = "choose one of sklearn.metrics.get_scorer_names()"
    raise ValueError(
        'scoring must be "loss", a scorer or the name of one in scikit-learn, got '
        f"{scoring!r}: {remedy}"
    )


def expect_positive_label(scoring: Any, classes: Any) -> None:
    """Raise ValueError if a score needs the positive class 1, but neither of two classes is 1.

    The scores are "f1", "precision", "recall" and "jaccard", whose positive class is 1 in
    scikit-learn. scoring: value of the parameter `scoring`; any other value passes. classes: classes
    of the model, (K,), or None for a regressor; unless there are two, all scores pass.
    """
    known = [] if classes is None else [*classes]
    if (
        len(known) == 2
        and isinstance(scoring, str)
        and scoring in _POSITIVE_SCORES
        and 1 not in known
    ):
        label, function = known[1], _POSITIVE_SCORES[scoring]
        label = label.item() if hasattr(label, "item") else label
        raise ValueError(
            f"scoring must name the positive class, as 1 is no class of y, got {scoring!r}: pass "
            f"make_scorer({function}, pos_label={label!r}), of sklearn.metrics, if it is {label!r}"
        )


def explain_invalid_value(message: str) -> str:
    """Append advice to scikit-learn's message on an invalid parameter, and return the message.

    The advice is what replaces a value that only another library has. message: the message as
    scikit-learn writes it, with the parameter's name in quotes, the values that are accepted, and
    the invalid one at its end. It is returned unchanged if certree does not know what replaces the
    value.
    """
    for name, replacement in _MINUS_ONE.items():
        if f"'{name}'" in message and message.endswith("Got -1 instead."):
            return f"{message} Pass {replacement}."
    found = re.fullmatch(r".*'(?:loss|criterion)' parameter of .* Got '([^']*)' instead\.", message)
    if found is None:
        return message
    if found[1] in _CLASS_LOSSES.split():
        return f"{message} Fit a classifier, such as BoostedTreesClassifier, if y holds classes."
    for suggestion, names in _LOSS_ALIASES.items():
        if found[1] in names.split() and f"'{suggestion}'" in message:
            return f'{message} Use "{suggestion}".'
    return message


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


# Methods that reject arguments of other libraries.
METHODS = ("fit", "predict", "predict_proba", "decision_function")


def rejects_argument_aliases(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method: an argument of other libraries raises a TypeError that has certree's name.

    Arguments such as `early_stopping_rounds`, which certree takes in the constructor, are among those
    of other libraries. These raise TypeError, too: other unknown keywords; a missing y in `fit`, if
    it is required; an X whose class has the attribute `_fit_remedy`, a text on what to pass instead,
    such as certree's `Table`. A method with ``**kwargs`` is returned unchanged. method: `fit`,
    `predict`, `predict_proba` or `decision_function`, which the decorated one calls.
    """
    arguments = inspect.signature(method).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in arguments.values()):
        return method

    @wraps(method)
    def call_without_aliases(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        if isinstance(remedy := getattr(type(X), "_fit_remedy", None), str):
            raise TypeError(
                f"X must be rows for {type(self).__name__}.{method.__name__}, got {type(X).__name__}: "
                f"{remedy}"
            )
        for name in kwargs:
            if name not in arguments:
                label = f"{type(self).__name__}.{method.__name__}"
                remedy = _suggest_argument(self, method.__name__, name, arguments)
                if remedy is None:
                    raise TypeError(f"{label}() got an unexpected keyword argument {name!r}")
                raise TypeError(f"{label} has no argument {name!r}: {remedy}")
        is_given = len(args) > 1 or "y" in kwargs
        if method.__name__ == "fit" and not is_given and _needs(arguments.get("y")):
            raise TypeError(
                f"{type(self).__name__}.fit misses y: pass the target of each row, or if X names files "
                'the name of its column, as in fit("rows.csv", "target")'
            )
        return method(self, *args, **kwargs)

    return call_without_aliases


def _needs(argument: inspect.Parameter | None) -> bool:
    """Return whether a function must be called with this argument: it has no default.

    argument: the argument in the function's signature, or None if the function lacks it, which
    gives False.
    """
    return argument is not None and argument.default is inspect.Parameter.empty


Function = TypeVar("Function", bound=Callable[..., Any])


def suggests_arguments(function: Function) -> Function:
    """Decorate a function: an argument of other libraries raises a TypeError that has certree's name.

    The error is raised when the function is called. function: the undecorated function, which must
    not have ``**kwargs``. Other unknown keywords are passed on to it.
    """
    arguments = inspect.signature(function).parameters
    # A constructor is called by the name of its class.
    label = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(function)
    def call_without_aliases(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - arguments.keys():
            for suggested, detail, aliases in _FUNCTION_ALIASES:
                if suggested in arguments and name in aliases.split():
                    raise TypeError(f"{label} has no argument {name!r}: use {suggested}{detail}")
        return function(*args, **kwargs)

    return cast(Function, call_without_aliases)


def _suggest_argument(model: Any, method: str, name: str, arguments: Collection[str]) -> str | None:
    """Return advice, as text, for a call with an argument that only another library's method has.

    Parameters
    ----------
    model : estimator
        The estimator whose method was called.
    method : str
        Name of the method.
    name : str
        The argument that the method does not have.
    arguments : collection of str
        Names of the arguments that it has.

    Returns
    -------
    str or None
        The end of an error message, such as "use sample_weight"; None if the argument is not known.
    """
    for suggested, aliases in _ARGUMENT_ALIASES.items():
        if name in aliases.split() and suggested.split()[0] in arguments:
            stops = name in _EVAL_SETS
            return f"use {suggested}{', and early_stopping=True to stop early' if stops else ''}"
    for call, aliases in _CALL_ALIASES.items():
        if method != "fit" and name in aliases.split() and hasattr(type(model), call):
            return f"call {call}(X)"
    parameters = model.get_params(deep=False)
    parameter = name if name in parameters else suggest_parameter(name, parameters)
    if parameter is None:
        return _say_why_unneeded(name, parameters)
    return f"pass {_SUGGESTIONS.get(parameter, parameter)} to the constructor"


class AttributeHint:
    """Descriptor of an attribute that only other libraries' models have, such as `best_iteration_`.

    Access raises an AttributeError. Its message names the attribute of certree if the estimator has
    one with this meaning. An estimator that sets the attribute itself is not affected.

    name: the attribute.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        kind: Any = owner or type(model)
        message = f"{kind.__name__!r} object has no attribute {self.name!r}"
        parameters = inspect.signature(kind.__init__).parameters
        for parameter, suggestion, aliases in _ATTRIBUTE_ALIASES:
            if parameter in parameters and self.name in aliases.split():
                message += f": use {_SUGGESTIONS.get(suggestion, suggestion)}"
                break
        raise AttributeError(message)


def add_attribute_hints(kind: type[Estimator]) -> type[Estimator]:
    """Decorate an estimator class: for attributes that it lacks, errors say what to use instead.

    These attributes are those of other libraries' models, such as `best_iteration_`, those of
    estimators with guarantees, and the rules of single trees. Access raises an AttributeError.
    Subclasses and mixins that stand before the class in the order of inheritance may define the
    attributes. kind: the class, which is changed and returned.
    """
    for name in {name for _, _, aliases in _ATTRIBUTE_ALIASES for name in aliases.split()}:
        setattr(kind, name, AttributeHint(name))
    for name in GUARANTEES:
        setattr(kind, name, GuaranteeHint(name))
    for name in ("rules", "export_text"):
        setattr(kind, name, RulesHint(name))
    return kind


class GuaranteeHint:
    """Descriptor of an attribute of estimators with guarantees, in estimators without them.

    An example is `certificate_`. Access raises an AttributeError whose message says how to get the
    guarantee. Classes that have the attribute define it themselves, or set it on the object in a
    fit, where Python finds it first.

    name: name of the attribute: certificate_, guarantees_, predict_set, predict_interval,
    predict_threshold or thresholds.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        kind = (owner or type(model)).__name__
        if self.name == "certificate_" and kind.startswith("Certified"):
            raise AttributeError(f"{kind} has certificate_ after fit only: call fit first")
        sets = inspect.getattr_static(owner or type(model), "predict_set")
        remedy = _explain_guarantee(kind, self.name, not isinstance(sets, GuaranteeHint))
        raise AttributeError(f"{kind} has no {self.name}{f': {remedy}' if remedy else ''}")


# Attributes of estimators with guarantees.
GUARANTEES = (
    *("certificate_", "guarantees_", "predict_set", "predict_interval", "predict_threshold"),
    "thresholds",
)


def _explain_guarantee(kind: str, name: str, has_sets: bool) -> str:
    """Return how to get a guarantee that an estimator lacks, as the end of a message.

    The text is "" if there is no way. kind: name of the estimator's class; name: the attribute that
    it lacks, such as "certificate_" or "predict_interval" (one of `GUARANTEES`); has_sets: whether it
    has prediction sets, the method `predict_set`, as certified classifiers have.
    """
    certified = f"Certified{kind}" if f"Certified{kind}" in _get_public_names() else ""
    if kind.endswith("Classifier"):
        if name == "predict_interval":
            name = "predict_set"
            if has_sets:
                return "call predict_set, as predictions are classes"
        if has_sets and not certified:
            return f"call guarantees_.{name}"
        rows = "with rows that were not in the fit"
        ways = [f"fit a {certified}"] if certified else []
        if name == "certificate_":
            return ", or ".join([*ways, f"call certree.certify {rows}"])
        member = "" if name == "guarantees_" else f", and then its {name}"
        return ", or ".join([*ways, f"call certree.certificates.Guarantees.by_rows {rows}{member}"])
    if not kind.endswith("Regressor"):
        return ""
    if kind.startswith("Certified"):
        return "call predict_interval, or read certificates_, as predictions are numbers"
    if name == "certificate_":
        return f"fit a {certified}" if certified else ""
    regressors = certified or "CertifiedBoostedTreesRegressor or CertifiedTreeRegressor"
    return f"fit a {regressors}, which has predict_interval"


class RulesHint:
    """Descriptor of a method that only single trees have, such as `rules`, in ensembles of trees.

    Access raises an AttributeError whose message says what to use instead. name: name of the
    method.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        kind: Any = owner or type(model)
        message = f"{kind.__name__!r} object has no attribute {self.name!r}"
        if hasattr(kind, "explain"):
            message += (
                ", which single trees have: call explain(X) for the parts of each prediction, or fit a "
                f"PrunedTree{'Classifier' if hasattr(kind, 'predict_proba') else 'Regressor'} for rules"
            )
        raise AttributeError(message)


def _get_public_names() -> Collection[str]:
    """Return the names of certree's public classes and functions."""
    public: Collection[str] = import_module("certree").__all__
    return public


def suggest_public_name(name: str, public: Collection[str]) -> str | None:
    """Return the public name of certree that a user probably means by an unknown name, or None.

    name: the name that does not exist: one with a typing error, or a class of another library.
    public: the names that exist.
    """
    for suggestion, aliases in _CLASS_ALIASES.items():
        if name in aliases.split():
            return suggestion
    return next(iter(get_close_matches(name, public, 1, 0.8)), None)
