"""Parameters by the names of other libraries."""

import inspect
import re
from pathlib import Path

import pandas as pd
import pytest
import sklearn.metrics
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import InvalidParameterError

import certree
from certree.boolean import FourierRegressor
from certree.interface.parameter_aliases import (
    _ALIASES,
    _ARGUMENT_ALIASES,
    _ATTRIBUTE_ALIASES,
    _CALL_ALIASES,
    _CART_PARAMETERS,
    _CLASS_ALIASES,
    _SCORING_ALIASES,
    _UNNEEDED,
    GUARANTEES,
    GuaranteeHint,
    check_for_aliases,
    check_for_unknown_score,
    suggest_parameter,
)
from certree.show import plot_importance

ESTIMATORS = [
    kind
    for kind in (*(getattr(certree, name) for name in certree.__all__), FourierRegressor)
    if inspect.isclass(kind) and issubclass(kind, BaseEstimator)
]
FITTED = [kind for kind in ESTIMATORS if hasattr(kind, "fit")]
BOOSTED, FOREST = certree.BoostedTreesClassifier, certree.TreeForestRegressor


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        (BOOSTED, "n_estimators", "max_iter"),
        (BOOSTED, "num_leaves", "max_leaf_nodes"),
        (BOOSTED, "reg_lambda", "l2_regularization"),
        (BOOSTED, "cat_features", "categorical_features"),
        (BOOSTED, "depth", "max_depth"),
        (certree.BoostedTreesRegressor, "objective", "loss"),
        (certree.BoostedTreesRegressor, "alpha", "quantile"),
        (certree.CertifiedBoostedTreesClassifier, "seed", "random_state"),
        (FOREST, "max_iter", "n_estimators"),
        (FOREST, "subsample", "max_samples"),
        (certree.AdaBoostTreeClassifier, "base_estimator", "estimator"),
        (certree.PrunedTreeClassifier, "ccp_alpha", "alpha"),
        (certree.PrunedTreeClassifier, "criterion", r"grower=Cart\(criterion=...\)"),
        (FourierRegressor, "n_threads", "n_jobs"),
    ],
)
def test_the_error_says_what_a_parameter_is_called_here(kind, name, ours):
    message = f"{kind.__name__} has no parameter '{name}': use {ours}$"
    with pytest.raises(TypeError, match=message):
        kind(**{name: 3})
    model = kind()
    before = model.get_params()
    with pytest.raises(TypeError, match=message):
        model.set_params(**{name: 3})
    assert model.get_params() == before


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_what_is_suggested_exists_and_own_names_are_never_foreign(kind):
    parameters = kind._get_param_names()
    assert all(suggest_parameter(name, parameters) is None for name in parameters)
    check_for_aliases(BOOSTED(), parameters, parameters)
    foreign = {name for names in _ALIASES.values() for name in names.split()}
    for name in foreign | _CART_PARAMETERS:
        ours = suggest_parameter(name, parameters)
        if ours is not None and ours.startswith("grower"):
            assert name in inspect.signature(certree.Cart).parameters
        else:
            assert ours is None or ours in parameters


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_constructors_show_their_own_signature(kind):
    assert [*inspect.signature(kind).parameters] == [*inspect.signature(kind.__init__).parameters][
        1:
    ]
    assert sorted(inspect.signature(kind).parameters) == kind._get_param_names()
    assert kind.__init__.__doc__ != suggest_parameter.__doc__


def test_names_that_nobody_has_are_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        BOOSTED(colour=1)
    with pytest.raises(ValueError, match="Invalid parameter 'colour' for estimator"):
        BOOSTED().set_params(colour=1)
    with pytest.raises(TypeError, match="positional argument"):
        BOOSTED(1, 2, 3)


def test_a_class_of_a_user_may_have_such_a_parameter():
    class Slow(BOOSTED):
        def __init__(self, num_leaves=7, *, max_iter=3):
            self.num_leaves = num_leaves
            super().__init__(max_leaf_nodes=num_leaves, max_iter=max_iter)

    assert clone(Slow(num_leaves=5)).num_leaves == 5
    assert Slow().set_params(num_leaves=9).get_params() == {"max_iter": 3, "num_leaves": 9}


def test_the_page_has_the_names_that_errors_know():
    page = Path(__file__).parents[2] / "docs" / "compare" / "coming_from.md"
    text, _, rest = page.read_text().partition("## Arguments and attributes")
    entry = r"^\| `(\w+)`[^|]* \| ((?:`\w+`(?:, )?)+) \|$"
    rows = re.findall(entry, text, re.MULTILINE)
    shown = {ours: re.findall(r"\w+", theirs) for ours, theirs in rows}
    assert shown == {ours: theirs.split() for ours, theirs in _ALIASES.items()}
    table = text.partition("Leave the following")[2]
    unneeded = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.+) \|$", table, re.MULTILINE)
    assert [(re.findall(r"\w+", names), reason.replace("`", "")) for names, reason in unneeded] == [
        (names.split(), reason) for _, reason, names in _UNNEEDED if "X_val" not in names
    ]
    rows = re.findall(entry, rest, re.MULTILINE)
    known = [*_ARGUMENT_ALIASES.items(), *_CALL_ALIASES.items()]
    known += {names: (ours, names) for _, ours, names in _ATTRIBUTE_ALIASES}.values()
    assert {theirs.replace("`", "").replace(",", "") for _, theirs in rows} == {
        names for _, names in known
    }
    assert {ours for ours, _ in rows} <= {name for ours, _ in known for name in ours.split()} | {
        "trees_"
    }


@pytest.mark.parametrize("name", ["max_depth", "monotonic_cst", "random_state"])
def test_a_grower_is_not_given_what_the_tree_has(name):
    model = certree.PACBayesTreeClassifier(certree.Cart())
    match = rf"^grower__{name} is not a parameter .* Cart has no {name}: use {name}, which PACBayes"
    with pytest.raises(ValueError, match=match):
        model.set_params(**{f"grower__{name}": 1})
    search = GridSearchCV(model, {f"grower__{name}": [1]}, cv=2)
    with pytest.raises(ValueError, match=match):
        search.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    # scikit-learn's trees have such parameters themselves.
    if name != "monotonic_cst":
        model.set_params(grower=DecisionTreeClassifier(), **{f"grower__{name}": 1})
        assert getattr(model.grower, name) == 1


@pytest.mark.parametrize(
    ("kind", "name", "remedy"),
    [
        (BOOSTED, "eval_set", "use X_val and y_val, and early_stopping=True to stop early"),
        (BOOSTED, "init_score", "use offset"),
        (
            BOOSTED,
            "early_stopping_rounds",
            "pass n_iter_no_change and early_stopping=True to the constructor",
        ),
        (BOOSTED, "max_iter", "pass max_iter to the constructor"),
        (certree.BoostedTreesRanker, "eval_group", "use group_val"),
        (FOREST, "cat_features", "pass categorical_features to the constructor"),
    ],
)
def test_fit_says_what_to_pass_instead_of_an_argument_of_another_library(kind, name, remedy):
    with pytest.raises(
        TypeError, match=f"^{kind.__name__}.fit has no argument '{name}': {remedy}$"
    ):
        kind().fit([[0], [1]], [0, 1], **{name: 3})


def test_fit_without_validation_rows_or_an_unknown_argument_has_the_usual_error():
    for name in ("eval_set", "no_such_thing"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            FOREST().fit([[0], [1]], [0, 1], **{name: 3})


def test_aliases_of_arguments_are_no_arguments_of_certree():
    # Ranking has queries in place of groups, so that an alias may be an argument of another estimator.
    known = set()
    for kind in FITTED:
        for method in ("fit", "predict", "predict_proba"):
            if hasattr(kind, method):
                arguments = inspect.signature(getattr(kind, method)).parameters.keys()
                known |= arguments
                for named, aliases in (_ARGUMENT_ALIASES | _CALL_ALIASES).items():
                    if set(named.split(" and ")) & arguments:
                        assert not set(aliases.split()) & arguments
    assert {name for key in _ARGUMENT_ALIASES for name in key.split(" and ")} <= known


@pytest.mark.parametrize("name", [name for _, _, names in _UNNEEDED for name in names.split()])
def test_names_that_are_not_needed_have_a_reason(name):
    # Some names are parameters, arguments or aliases of some estimators, but not of all.
    kind = certree.CertifiedBoostedTreesClassifier
    message = f"{kind.__name__} has no parameter '{name}': leave it out, as .+"
    with pytest.raises(TypeError, match=message):
        kind(**{name: 1})
    with pytest.raises(TypeError, match=message):
        kind().set_params(**{name: 1})
    with pytest.raises(TypeError, match=f"^{kind.__name__}.fit has no argument '{name}': leave"):
        kind().fit([[0], [1]], [0, 1], **{name: 1})


@pytest.mark.parametrize(
    ("kind", "name", "remedy"),
    [
        (BOOSTED, "extra_trees", "use max_thresholds=1"),
        (FOREST, "extra_trees", 'use splitter="random"'),
        (FOREST, "min_split_gain", "use min_impurity_decrease"),
        (FOREST, "objective", "use criterion"),
        (certree.BoostedTreesRanker, "objective", "leave it out"),
        (BOOSTED, "early_stopping_rounds", "use n_iter_no_change and early_stopping=True"),
        (BOOSTED, "feature_fraction_bynode", "use max_features"),
    ],
)
def test_the_error_says_which_value_a_parameter_has(kind, name, remedy):
    with pytest.raises(TypeError, match=f"{kind.__name__} has no parameter '{name}': {remedy}"):
        kind(**{name: 3})


@pytest.mark.parametrize(
    ("method", "name", "remedy"),
    [
        *(("predict", name, "use n_iter") for name in _ARGUMENT_ALIASES["n_iter"].split()),
        *(("predict", "base_margin", "use offset"), ("predict_proba", "init_score", "use offset")),
        *(
            (method, name, rf"call {call}\(X\)")
            for method in ("predict", "predict_proba")
            for call, names in _CALL_ALIASES.items()
            for name in names.split()
        ),
    ],
)
def test_predictions_say_what_replaces_an_argument_of_another_library(method, name, remedy):
    model = BOOSTED()
    match = f"^BoostedTreesClassifier.{method} has no argument '{name}': {remedy}$"
    with pytest.raises(TypeError, match=match):
        getattr(model, method)([[0]], **{name: 1})


@pytest.mark.parametrize("kind", FITTED)
def test_errors_of_unknown_arguments_name_the_class_of_the_user(kind):
    for method in ("fit", "predict", "predict_proba", "decision_function"):
        if hasattr(kind, method):
            match = rf"^{kind.__name__}\.{method}\(\) got an unexpected keyword argument 'colour'$"
            with pytest.raises(TypeError, match=match):
                getattr(kind(), method)([[0], [1]], colour=1)


@pytest.mark.parametrize("kind", [BOOSTED, FOREST, certree.PACBayesTreeClassifier])
def test_attributes_of_other_libraries_have_a_hint(kind):
    own = {BOOSTED: {"max_iter": 2, "early_stopping": True}, FOREST: {"oob_score": True}}.get(
        kind, {}
    )
    model = kind(**own)
    fitted = kind(**own).fit(pd.DataFrame({"x": range(40)}), [0, 1] * 20)
    hinted = [entry for entry in _ATTRIBUTE_ALIASES if entry[0] in model.get_params()]
    assert len(hinted) > 1
    for _, suggestion, names in hinted:
        for name in names.split():
            match = f"^'{kind.__name__}' object has no attribute '{name}': use {suggestion}"
            with pytest.raises(AttributeError, match=match):
                getattr(model, name)
            assert not hasattr(model, name)
        assert hasattr(fitted, suggestion) or hasattr(certree, suggestion)


def test_attributes_have_no_hint_if_the_estimator_lacks_what_replaces_them():
    with pytest.raises(AttributeError, match=r"no attribute 'best_iteration_'$"):
        _ = FOREST().best_iteration_


@pytest.mark.parametrize("score", _SCORING_ALIASES)
def test_scores_of_other_libraries_have_a_hint(score):
    check_for_unknown_score(score)
    for name in _SCORING_ALIASES[score].split():
        with pytest.raises(
            ValueError, match=f"^scoring must be .*, got '{name}': use \"{score}\"$"
        ):
            check_for_unknown_score(name)


def test_a_fit_refuses_an_unknown_score():
    with pytest.raises(ValueError, match=r"got 'good': choose one of sklearn\.metrics"):
        BOOSTED(max_iter=2, scoring="good", early_stopping=True).fit([[0], [1]] * 9, [0, 1] * 9)


@pytest.mark.parametrize("kind", FITTED)
@pytest.mark.parametrize(("name", "value"), [("max_depth", "None"), ("verbose", "0")])
def test_a_fit_says_what_replaces_minus_one(kind, name, value):
    if name not in kind._get_param_names():
        pytest.skip("the estimator has no such parameter")
    with pytest.raises(InvalidParameterError, match=rf"Got -1 instead\. Pass {value} for no "):
        kind(**{name: -1}).fit([[0], [1]], [0, 1])
    with pytest.raises(InvalidParameterError, match=r"Got -2 instead\.$"):
        kind(**{name: -2}).fit([[0], [1]], [0, 1])


@pytest.mark.parametrize(
    ("values", "suggestion"),
    [
        ("l2 mse rmse regression", "squared_error"),
        ("l1 mae", "absolute_error"),
        ("reg:gamma", "gamma"),
    ],
)
def test_a_fit_says_what_replaces_a_loss(values, suggestion):
    X, y = [[0.0], [1.0]] * 9, [1.0, 2.0] * 9
    for value in values.split():
        match = rf"Got '{value}' instead\. Use \"{suggestion}\"\.$"
        with pytest.raises(InvalidParameterError, match=match):
            certree.BoostedTreesRegressor(loss=value).fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"'binary' instead\. Fit a classifier"):
        certree.BoostedTreesRegressor(loss="binary").fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"Got 'good' instead\.$"):
        certree.BoostedTreesRegressor(loss="good").fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("scoring", ["f1", "precision", "recall", "jaccard"])
def test_scores_of_a_positive_class_name_it(scoring):
    X, y = [[0.0], [1.0]] * 30, ["No", "Yes"] * 30
    model = BOOSTED(max_iter=30, early_stopping=True, scoring=scoring, random_state=0)
    match = rf"make_scorer\({scoring}_score, pos_label='Yes'\), of sklearn\.metrics"
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)
    scorer = make_scorer(getattr(sklearn.metrics, f"{scoring}_score"), pos_label="Yes")
    model.set_params(scoring=scorer).fit(X, y)
    model.set_params(scoring=scoring).fit(X, [0, 1] * 30)
    model.set_params(scoring=scoring).fit(X, [False, True] * 30)


def test_the_result_of_read_table_is_no_table_of_rows(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,a\n2,b\n" * 20)
    table = certree.read_table(tmp_path / "rows.csv", "y")
    model = BOOSTED(max_iter=2)
    match = r"got Table: pass table\.to_arrow\(\), and table\.y as y"
    for fit in (lambda: model.fit(table, table.y), lambda: model.fit(table)):
        with pytest.raises(TypeError, match=match):
            fit()
    model.fit(table.to_arrow(), table.y)
    for predict in (model.predict, model.predict_proba):
        with pytest.raises(TypeError, match=match):
            predict(table)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: certree.read_table("f.csv", sep=";"), "read_table .*'sep': use separator$"),
        (lambda: certree.read_table("f.csv", na_values=["?"]), "'na_values': use missing, a list"),
        (lambda: certree.read_table("f.csv", parse_dates=["x"]), "'parse_dates': use dates, "),
        (lambda: certree.certify(None, [[0]], [0], alpha=0.1), "certify .*'alpha': use delta$"),
        (
            lambda: certree.CertifiedTreeClassifier().predict_set([[0]], alpha=0.1),
            "predict_set .*'alpha': use coverage, which is 1 - alpha$",
        ),
        (
            lambda: certree.CertifiedTreeRegressor().predict_interval([[0]], alpha=0.1),
            "predict_interval .*'alpha': use coverage, which is 1 - alpha$",
        ),
        (lambda: BOOSTED().importance(importance_type="gain"), "'importance_type': use kind$"),
        (lambda: plot_importance(BOOSTED(), max_num_features=3), "use max_features$"),
        (lambda: certree.read_table("f.csv", colour=1), "unexpected keyword argument 'colour'"),
    ],
)
def test_functions_say_what_replaces_an_argument_of_another_library(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("kind", FITTED)
@pytest.mark.parametrize("name", GUARANTEES)
def test_missing_guarantees_name_a_way_that_exists(kind, name):
    member = inspect.getattr_static(kind, name)
    if not isinstance(member, GuaranteeHint):
        return
    with pytest.raises(AttributeError, match=f"^{kind.__name__} has ") as raised:
        getattr(kind(), name)
    assert not hasattr(kind(), name)
    message = str(raised.value)
    for way in re.findall(r"Certified\w+", message.partition("has")[2]):
        assert hasattr(certree, way)
        assert "Classifier" in way or is_regressor(kind())
    if name != "certificate_" and (is_regressor(kind()) or is_classifier(kind())):
        assert ": " in message
    if called := re.search(r"call (predict_\w+)", message):
        assert hasattr(kind, called[1])


@pytest.mark.parametrize(("kind", "single"), [(BOOSTED, "Classifier"), (FOREST, "Regressor")])
def test_sums_of_trees_say_what_replaces_rules(kind, single):
    for name in ("rules", "export_text"):
        with pytest.raises(
            AttributeError, match=rf"'{name}'.*explain\(X\).*PrunedTree{single} for"
        ):
            getattr(kind(), name)
        assert not hasattr(kind(), name)
    assert hasattr(certree.PrunedTreeClassifier, "export_text")


@pytest.mark.parametrize("kind", FITTED)
def test_a_missing_certificate_names_the_way_to_one(kind):
    with pytest.raises(AttributeError, match="certificate_") as raised:
        _ = kind().certificate_
    assert not hasattr(kind(), "certificate_")
    for name in re.findall(r"Certified\w+", str(raised.value)):
        assert hasattr(certree, name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("BoostedTreeClassifier", "BoostedTreesClassifier"),
        ("LGBMRegressor", "BoostedTreesRegressor"),
        ("RandomForestClassifier", "TreeForestClassifier"),
        ("growcart", "grow_cart"),
    ],
)
def test_the_package_suggests_the_name_that_was_meant(name, meant):
    with pytest.raises(AttributeError, match=f"did you mean {meant}\\?$"):
        getattr(certree, name)


def test_the_package_suggests_nothing_for_a_name_that_is_like_none():
    for name in ("zebra", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(certree, name)


def test_class_aliases_lead_to_public_classes():
    assert {*_CLASS_ALIASES} <= {*certree.__all__}


def test_names_of_confidence_splits_and_queries_are_known():
    with pytest.raises(TypeError, match="'confidence': use delta, which is 1 - confidence"):
        certree.CertifiedTreeClassifier(confidence=0.9)
    with pytest.raises(TypeError, match="'test_size': use train_size"):
        certree.CertifiedTreeClassifier(test_size=0.2)
    with pytest.raises(TypeError, match="no argument 'groups': use qid"):
        certree.BoostedTreesRanker().fit([[1.0]], [1], groups=[1])
