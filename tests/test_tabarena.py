"""The wrapper for TabArena, as far as it runs without TabArena's packages."""

import ast
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
from benchmarks.tabarena import bagging
from benchmarks.tabarena.certree.fitting import MOST_ROUNDS, fit_fold
from benchmarks.tables import Data

from certree import BoostedTreesClassifier

FOLDER = Path(inspect.getfile(fit_fold)).parent


def draw_table(kind, n=240, seed=0):
    random = np.random.default_rng(seed)
    X = np.column_stack([random.normal(size=(n, 2)), random.integers(0, 3, n)])
    X[::11, 0] = np.nan
    number = np.nan_to_num(X[:, 0]) + (X[:, 2] == 1) + 0.5 * random.normal(size=n)
    classes = {"binary": [0.3], "multiclass": [0.0, 0.8]}
    y = number if kind == "regression" else np.digitize(number, classes[kind])
    return Data(X, y, np.array([False, False, True]), kind == "regression")


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_eight_bagged_folds_predict_better_than_chance(kind):
    data = draw_table(kind)
    assert bagging.get_kind(data) == kind
    error, seconds = bagging.bag_folds(bagging.fit_certree, data, seed=0)
    chance = {"binary": 0.5, "multiclass": np.log(3), "regression": float(np.std(data.y))}
    assert 0 < error < 0.9 * chance[kind]
    assert seconds > 0


def split(kind="binary"):
    data = draw_table(kind)
    X = bagging.make_frame(data.X, data)
    assert X.dtypes["x2"] == "category"
    return (X[:160], data.y[:160]), (X[160:], data.y[160:])


def test_validation_rows_of_the_fold_end_the_rounds():
    training, validation = split()
    model = fit_fold("binary", {"random_state": 0}, training, validation, n_jobs=1)
    assert model.stopped_by_ == "early_stopping"
    assert model.n_iter_ < MOST_ROUNDS
    expected = BoostedTreesClassifier(
        early_stopping=True, max_iter=MOST_ROUNDS, n_iter_no_change=50, random_state=0
    ).fit(*training, X_val=validation[0], y_val=validation[1])
    np.testing.assert_array_equal(
        model.predict_proba(validation[0]), expected.predict_proba(validation[0])
    )
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        loaded.predict_proba(validation[0]), model.predict_proba(validation[0])
    )


def test_a_refit_makes_the_rounds_of_the_folds():
    training, _ = split()
    assert fit_fold("binary", {"max_iter": 7}, training).n_iter_ == 7
    fast = fit_fold("binary", {"random_state": 0}, training)
    assert fast.quality == "fast"


def test_time_ends_a_fold():
    training, validation = split("regression")
    model = fit_fold("regression", {}, training, validation, time_limit=1e-9)
    assert (model.n_iter_, model.stopped_by_) == (1, "max_time")


def test_validation_rows_of_unknown_classes_are_left_out():
    training, (X, y) = split()
    other = np.where(np.arange(len(y)) % 3 == 0, 2, y)
    known = other != 2
    with_other = fit_fold("binary", {"random_state": 0}, training, (X, other))
    without = fit_fold("binary", {"random_state": 0}, training, (X[known], y[known]))
    np.testing.assert_array_equal(with_other.predict_proba(X), without.predict_proba(X))


def test_other_problem_types_are_refused():
    training, _ = split()
    with pytest.raises(ValueError, match="problem_type must be one of binary, multiclass"):
        fit_fold("quantile", {}, training)


def test_the_search_space_names_parameters_of_the_model():
    tree = ast.parse((FOLDER / "hpo.py").read_text())
    spaces = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    names = {key.value for key in spaces[0].keys}
    assert names <= {*BoostedTreesClassifier().get_params()}
    assert len(names) == 8
