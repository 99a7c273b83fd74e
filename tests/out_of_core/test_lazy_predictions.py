"""Predictions for Dask collections are lazy Dask collections."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from certree import PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.ensembles import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def rows():
    rs = np.random.RandomState(0)
    frame = pd.DataFrame(rs.normal(size=(200, 3)), columns=[*"abc"])
    frame["d"] = pd.Categorical(np.array(["x", "y"])[rs.randint(0, 2, 200)])
    y = np.digitize(frame["a"] + (frame["d"] == "x"), [0, 1])
    return frame, y


def cut(frame, ends=(0, 50, 50, 200)):
    parts = [frame.iloc[a:b] for a, b in pairwise(ends)]
    return dd.from_map(lambda one: one, parts, meta=frame.iloc[:0])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_frames_keep_their_index(method, n_classes, rows):
    frame, y = rows
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(
        frame, np.minimum(y, n_classes - 1)
    )
    frame = frame.set_index(np.arange(200)[::-1])
    said = getattr(model, method)(cut(frame))
    assert isinstance(said, dd.Series if getattr(said, "ndim", 1) == 1 else dd.DataFrame)
    known = said.compute()
    assert (known.index == frame.index).all()
    expected = getattr(model, method)(frame)
    assert known.to_numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_arrays_are_computed_when_asked(method, rows):
    frame, y = rows
    X = frame[[*"abc"]].to_numpy()
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
    said = getattr(model, method)(da.from_array(X, chunks=((60, 0, 140), 2)))
    assert isinstance(said, da.Array)
    expected = getattr(model, method)(X)
    assert (said.shape, said.dtype) == (expected.shape, expected.dtype)
    assert said.compute().tobytes() == expected.tobytes()
    few = getattr(model, method)(da.from_array(X, chunks=(60, 3)), n_iter=1)
    assert few.compute().tobytes() == getattr(model, method)(X, n_iter=1).tobytes()


def test_numbers(rows):
    frame, y = rows
    model = BoostedTreesRegressor(max_iter=3, random_state=0).fit(frame, y)
    assert (model.predict(cut(frame)).compute() == model.predict(frame)).all()


def test_a_fit_that_comes_later_changes_no_answer(rows):
    frame, y = rows
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(frame, y)
    expected, said = model.predict_proba(frame), model.predict_proba(cut(frame))
    model.fit(frame, y[::-1])
    assert (said.compute().to_numpy() == expected).all()


def test_wrong_rows_are_refused_at_once(rows):
    frame, y = rows
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        model.predict(cut(frame[[*"abc"]]))
    with pytest.raises(ValueError, match="accepts only n_iter"):
        model.predict(cut(frame), offset=np.zeros(200))


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_forests_predict_collections(method, rows):
    frame, y = rows
    model = TreeForestClassifier(3, random_state=0).fit(frame, y)
    expected = getattr(model, method)(frame)
    said = getattr(model, method)(cut(frame))
    assert isinstance(said, dd.Series if expected.ndim == 1 else dd.DataFrame)
    assert said.compute().to_numpy().tobytes() == expected.tobytes()
    numbers = TreeForestRegressor(3, random_state=0).fit(frame, y)
    assert (numbers.predict(cut(frame)).compute() == numbers.predict(frame)).all()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_std"])
def test_single_trees_answer_collections(method, rows):
    frame, y = rows
    kind = PACBayesTreeRegressor if method == "predict_std" else PACBayesTreeClassifier
    model = kind(random_state=0).fit(frame, y)
    said, expected = (getattr(model, method)(X) for X in (cut(frame), frame))
    assert said.compute().to_numpy().tobytes() == expected.tobytes()
    assert said.compute().shape == expected.shape
