"""Weights, groups and times reach the estimators through what scikit-learn builds around them."""

import warnings
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import has_fit_parameter

import certree
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.rows.training import training_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
CLASSES = Y + (X[:, 1] > 0.5)
TARGET = X[:, 0] + RNG.normal(size=90)
BOTH = np.column_stack([Y, 1 - Y])
# Each row is told from all others by its weight, and groups by theirs.
WEIGHT = 1 + np.arange(90) / 90
GROUPS = np.repeat(np.arange(30), 3)
LAW = {"lambda_error": 1.0, "lambda_penalty": 0.0}


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(estimator, method="fit", **asked):
    """The same, asking for metadata; this works while routing is on only."""
    with sklearn.config_context(enable_metadata_routing=True):
        return getattr(estimator, f"set_{method}_request")(**asked)


def classifier():
    return asking(PACBayesTreeClassifier(**LAW, max_depth=3), sample_weight=True)


def regressor():
    return asking(PACBayesTreeRegressor(**LAW, max_depth=3), sample_weight=True)


def seen_by(action):
    """What comes in at the door while something runs: target, weights and groups of every fit."""
    seen = []

    def door(model, X, y, sample_weight=None, **others):
        seen.append((np.asarray(y), sample_weight, others.get("groups")))
        return training_rows(model, X, y, sample_weight, **others)

    with patch("certree.rows.training.training_rows", door):
        action()
    assert seen
    return seen


def are_theirs(seen, target):
    """Whether every row of every fit has the weight that it was given."""
    for y, weight, _ in seen:
        if weight is None:
            return False
        row = np.searchsorted(WEIGHT, weight)
        if not ((WEIGHT[row] == weight).all() and (target[row] == y).all()):
            return False
    return True


GRID = {"max_depth": [1, 2]}
WEIGHED = {"sample_weight": WEIGHT}
SCORER = asking(get_scorer("accuracy"), "score", sample_weight=True)
FINAL = asking(LogisticRegression(), sample_weight=True)


def scored(search, **settings):
    """A search whose scores are weighed, too: scikit-learn asks what the scorer wants."""

    return search(classifier(), GRID, scoring=SCORER, **settings)


@pytest.mark.parametrize(
    "outer",
    [
        scored(GridSearchCV, cv=2),
        scored(RandomizedSearchCV, cv=2, n_iter=2),
        scored(HalvingGridSearchCV, cv=2),
        scored(HalvingRandomSearchCV, cv=2, n_candidates=2),
        CalibratedClassifierCV(classifier(), cv=2),
        VotingClassifier([("a", classifier()), ("b", classifier())]),
        StackingClassifier([("a", classifier())], final_estimator=FINAL, cv=2),
        FixedThresholdClassifier(classifier(), threshold=0.4),
        TunedThresholdClassifierCV(classifier(), scoring=SCORER, cv=2),
        make_pipeline(asking(StandardScaler(), sample_weight=False), classifier()),
        make_pipeline(
            ColumnTransformer([("a", "passthrough", [0, 1])], remainder="passthrough"), classifier()
        ),
        make_pipeline(
            FeatureUnion([("a", FunctionTransformer()), ("b", FunctionTransformer())]), classifier()
        ),
        pytest.param(
            make_pipeline(SelectFromModel(classifier()), classifier()),
            marks=pytest.mark.skipif(
                sklearn.__version__.startswith("1.6."),
                reason="its pipelines do not weigh what selects features",
            ),
        ),
        SelectFromModel(classifier()),
        GridSearchCV(
            make_pipeline(FunctionTransformer(), classifier()),
            {"pacbayestreeclassifier__max_depth": [1, 2]},
            scoring=asking(get_scorer("accuracy"), "score", sample_weight=False),
            cv=2,
        ),
    ],
    ids=lambda outer: type(outer).__name__,
)
def test_every_row_keeps_its_weight(outer):
    seen = seen_by(lambda: clone(outer).fit(X, Y, **WEIGHED))
    assert are_theirs(seen, Y)


@pytest.mark.parametrize(
    ("outer", "target"),
    [
        (OneVsRestClassifier(classifier()), CLASSES),
        (OneVsOneClassifier(classifier()), CLASSES),
        (OutputCodeClassifier(classifier(), random_state=0), CLASSES),
        (MultiOutputClassifier(classifier()), BOTH),
        (ClassifierChain(classifier()), BOTH),
        (MultiOutputRegressor(regressor()), BOTH + TARGET[:, None]),
        (RegressorChain(regressor()), BOTH + TARGET[:, None]),
        (VotingRegressor([("a", regressor())]), TARGET),
        (TransformedTargetRegressor(regressor()), TARGET),
        (RFE(classifier()), Y),
        (BaggingClassifier(classifier(), 3, random_state=0), Y),
        (BaggingRegressor(regressor(), 3, random_state=0), TARGET),
        (AdaBoostClassifier(classifier(), n_estimators=3), Y),
        (AdaBoostRegressor(regressor(), n_estimators=3), TARGET),
    ],
    ids=lambda one: type(one).__name__,
)
def test_weights_arrive_where_targets_are_recoded_or_rows_are_drawn(outer, target):
    try:
        seen = seen_by(lambda: clone(outer).fit(X, target, **WEIGHED))
    except NotImplementedError as error:  # what scikit-learn itself does not route yet
        pytest.skip(str(error))
    # AdaBoost and bagging of regressors may draw rows by their weights instead.
    draws = isinstance(outer, (AdaBoostRegressor, BaggingClassifier, BaggingRegressor))
    assert draws or all(weight is not None for _, weight, _ in seen)


@pytest.mark.parametrize(
    "judge",
    [
        cross_validate,
        cross_val_score,
        cross_val_predict,
        lambda *rows, **settings: learning_curve(*rows, train_sizes=[0.5], **settings),
        lambda *rows, **settings: validation_curve(
            *rows, param_name="max_depth", param_range=[1, 2], **settings
        ),
    ],
    ids=["cross_validate", "cross_val_score", "cross_val_predict", "learning", "validation"],
)
def test_judging_by_folds_weighs_every_row(judge):
    settings = {} if judge is cross_val_predict else {"scoring": SCORER}
    assert are_theirs(
        seen_by(lambda: judge(classifier(), X, Y, cv=2, params=WEIGHED, **settings)), Y
    )


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (PACBayesTreeClassifier(), Y),
        (PrunedTreeClassifier(), Y),
        (HelmboldSchapireTreeClassifier(), Y),
        (DecoratedTreeClassifier(min_samples_model=10), Y),
        (NaiveBayesClassifier(), Y),
        (PACBayesTreeRegressor(), TARGET),
        (AdaBoostTreeClassifier(n_estimators=4), Y),
        (BoostedTreesClassifier(max_iter=4), Y),
        (BoostedTreesRegressor(max_iter=4), TARGET),
        (CertifiedForestClassifier(4), Y),
        (CertifiedBoostedTreesClassifier(max_iter=4), Y),
        (CertifiedBoostedTreesRegressor(max_iter=4), TARGET),
        (TreeForestClassifier(4), Y),
        (TreeForestRegressor(4), TARGET),
        (PrunedTreeRegressor(), TARGET),
        (DecoratedTreeRegressor(min_samples_model=10), TARGET),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_pipeline_fits_what_a_direct_fit_does(estimator, target):
    weight = np.where(X[:, 2] > 0, 5.0, 0.0)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    inner = clone(estimator).set_fit_request(sample_weight=True)
    outer = make_pipeline(FunctionTransformer(), inner).fit(X, target, sample_weight=weight)
    direct = clone(estimator).fit(X, target, sample_weight=weight)
    answer = "predict_proba" if hasattr(direct, "predict_proba") else "predict"
    np.testing.assert_array_equal(getattr(outer, answer)(X), getattr(direct, answer)(X))


@pytest.mark.parametrize("estimator", [classifier(), regressor()])
def test_weights_that_were_not_asked_for_are_an_error(estimator):
    plain = type(estimator)(**LAW)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        make_pipeline(FunctionTransformer(), plain).fit(X, Y, sample_weight=WEIGHT)


@pytest.mark.parametrize(
    "outer",
    [
        lambda inner: make_pipeline(FunctionTransformer(), inner),
        lambda inner: GridSearchCV(inner, {"train_size": [0.3, 0.4]}, cv=GroupKFold(3)),
        lambda inner: RandomizedSearchCV(
            inner, {"train_size": [0.3, 0.4]}, n_iter=2, cv=GroupKFold(3)
        ),
        lambda inner: CalibratedClassifierCV(inner, cv=GroupKFold(3)),
        lambda inner: VotingClassifier([("a", inner)]),
    ],
    ids=["pipeline", "grid", "random", "calibrated", "voting"],
)
def test_groups_reach_the_certified_classifier(outer):
    inner = CertifiedTreeClassifier().set_fit_request(groups=True)
    seen = seen_by(lambda: outer(inner).fit(X, Y, groups=GROUPS))
    for y, _, groups in seen:
        assert groups is not None
        assert set(groups) <= set(GROUPS)
        for group in set(groups):
            assert sorted(y[groups == group]) == sorted(Y[group == GROUPS])


TIMED = [
    kind
    for kind in (getattr(certree, name) for name in certree.__all__)
    if hasattr(kind, "fit") and has_fit_parameter(kind, "time")
]
TIMES = RNG.permutation(90)
QUICK = {"n_estimators": 4, "max_iter": 4, "cv": 2, "min_samples_model": 10}


def test_estimators_that_hold_out_rows_take_times():
    names = {kind.__name__ for kind in TIMED}
    assert len(names) == 16
    assert all(has_fit_parameter(kind, "gap") for kind in TIMED)
    takes_independent = {one.__name__ for one in TIMED if has_fit_parameter(one, "independent")}
    assert takes_independent == {name for name in names if name.startswith("Certified")}


@pytest.mark.parametrize("kind", TIMED, ids=lambda kind: kind.__name__)
def test_times_reach_every_estimator_that_takes_them(kind):
    target = TARGET if kind.__name__.endswith("Regressor") else Y
    own = kind().get_params()
    quick = {name: value for name, value in QUICK.items() if name in own}
    how = {"time": TIMES, "gap": 3}
    if has_fit_parameter(kind, "independent"):
        how["independent"] = True
    inner = kind(**quick).set_fit_request(**dict.fromkeys(how, True))
    outer = make_pipeline(FunctionTransformer(), inner)
    name = kind.__name__.lower()
    parameter = "max_leaf_nodes" if "max_leaf_nodes" in own else "random_state"
    seen = []

    def record(model, X, y, *rest, **others):
        seen.append((np.asarray(y), others))
        return training_rows(model, X, y, *rest, **others)

    with patch("certree.rows.training.training_rows", record), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outer.fit(X, target, **how)
        GridSearchCV(outer, {f"{name}__{parameter}": [4]}, cv=2).fit(X, target, **how)
        cross_validate(outer, X, target, cv=2, params=how)
    assert len(seen) >= 6
    at_time = target[np.argsort(TIMES)]
    for y, others in seen:
        assert (at_time[others["time"]] == y).all()
        assert others["gap"] == 3
        assert others.get("independent", False) == how.get("independent", False)


def test_groups_stay_in_one_piece_in_cross_validation():
    inner = CertifiedTreeClassifier().set_fit_request(groups=True)
    settings = {"cv": GroupKFold(3), "params": {"groups": GROUPS}}
    found = cross_validate(inner, X, Y, return_estimator=True, **settings)
    assert all(one.certificate_.grouped for one in found["estimator"])
