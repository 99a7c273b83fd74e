"""A fit sets all attributes at once, and an answer reads those of one moment."""

import inspect
import multiprocessing
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import certree
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
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
from certree.fitted import state_of
from certree.weights import map_pruning

SOURCE = str(Path(certree.__file__).parent)
# Other forms of what `to_dict` writes, and models that have none.
ONE_FORMULA = {"to_onnx", "to_sklearn", "to_sql"}
DECORATED = (DecoratedTreeClassifier, DecoratedTreeRegressor)
MODELS = [
    AdaBoostTreeClassifier(n_estimators=5),
    BoostedTreesClassifier(max_iter=5, random_state=0),
    BoostedTreesRegressor(max_iter=5, random_state=0),
    CertifiedForestClassifier(2, random_state=0),
    TreeForestClassifier(2, random_state=0),
    TreeForestRegressor(2, random_state=0),
    PACBayesTreeClassifier(random_state=0),
    PACBayesTreeRegressor(random_state=0),
    PrunedTreeClassifier(random_state=0),
    PrunedTreeRegressor(random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    CertifiedTreeClassifier(random_state=0),
    CertifiedTreeRegressor(coverage=0.8, random_state=0),
    DecoratedTreeClassifier(min_model_rows=10, random_state=0),
    DecoratedTreeRegressor(min_model_rows=10, random_state=0),
    NaiveBayesClassifier(),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
# The lines of `reads_state` and `state_of`: a fit that ends before them is the one that answers.
LOOKED_UP = 4
# What is asked of the parameters, or of the class, and not of a fit.
OF_PARAMETERS = {"fit", "partial_fit", "set_params", "get_params", "score", "get_metadata_routing"}


def tables(model):
    """Two tables that have neither classes nor the shape of the tree in common."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    third = 0 if isinstance(model, HelmboldSchapireTreeClassifier) else 2 * (X[:, 2] > 0.5)
    return (X, 1 + (X[:, 0] > 0)), (X, 10 + (X[:, 1] > -0.5) + third)


def two_fits(model):
    return [fresh(model).fit(X, y) for X, y in tables(model)]


def fresh(model):
    return type(model)(**model.get_params(deep=False))


@contextmanager
def at_each_line(act):
    """Call a function before every line of the library that the block runs."""

    def traced(frame, event, _):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            act()
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        yield
    finally:
        sys.settrace(before)


def questions(model):
    """Every public method and property that reads a fit, as functions of the model."""
    X = tables(model)[0][0]
    given = {
        "path": (X[0],),
        "predict_selective": (X, 0.1),
        "certify": (),
        "margins": (X, tables(model)[0][1][:1].repeat(len(X))),
        "draw_pruning": (0,),
        "proximity": (X, [[0, 1], [2, 3]]),
        "staged_loss": tables(model)[0],
        "out_of_bag_importances": tables(model)[0],
    }
    for name in sorted(set(dir(type(model))) - OF_PARAMETERS):
        if name.startswith(("_", "set_")) or not hasattr(model, name):
            continue
        if name == "certify_fit":
            continue  # of a Grid alone, by the rows of the fit: test_fixed_box.py
        if name in ONE_FORMULA or (name == "to_dict" and isinstance(model, DECORATED)):
            continue
        member = inspect.getattr_static(type(model), name)
        if isinstance(member, property):
            yield name, lambda one, name=name: getattr(one, name)
        elif callable(member) or hasattr(member, "__get__"):
            takes_rows = "X" in inspect.signature(getattr(model, name)).parameters
            arguments = given.get(name, (X,) if takes_rows else ())
            if name == "certify_pruning":
                arguments = (map_pruning(model.tree_, model.weights_),)
            yield name, lambda one, name=name, arguments=arguments: getattr(one, name)(*arguments)


def as_text(answer):
    """Everything in an answer, written out."""
    if hasattr(answer, "toarray"):
        answer = answer.toarray()
    if isinstance(answer, Iterator):
        answer = [*answer]
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        if hasattr(answer, "pruning"):  # a draw: its weights are arrays
            return repr((answer.certificate, answer.pruning.weight))
        return repr(answer)


@every_model
def test_an_answer_comes_from_one_fit_whenever_another_ends(model):
    first, second = two_fits(model)
    for name, ask in questions(first):
        expected = as_text(ask(first))
        lines = []
        with at_each_line(lambda: lines.append(None)):  # noqa: B023
            ask(first)
        assert lines, name
        for k in range(LOOKED_UP, len(lines)):
            one, at = state_of(first), iter(range(len(lines) + 1))

            def another_fit_ends(one=one, at=at, k=k):
                if next(at, -1) == k:
                    one.__dict__ = second.__dict__

            with at_each_line(another_fit_ends):
                got = ask(one)
            assert as_text(got) == expected, (name, k)


@every_model
def test_a_fit_changes_nothing_before_its_end(model):
    (X, y), (other_X, other_y) = tables(model)
    one = fresh(model).fit(X, y)
    state, before = one.__dict__, dict(one.__dict__)
    changed = []

    def look():
        if one.__dict__ is state and state.items() != before.items():
            changed.append(True)

    with at_each_line(look):
        one.fit(other_X, other_y)
    assert not changed
    assert one.__dict__ is not state
    assert [*state] == [*before]
    assert all(state[name] is before[name] for name in before)


@every_model
def test_a_fit_that_is_interrupted_leaves_the_model_as_it_was(model):
    (X, y), (other_X, other_y) = tables(model)
    one = fresh(model).fit(X, y)
    before = dict(one.__dict__)
    for k in (3, 30, 300):
        at = iter(range(10**9))

        def interrupt(at=at, k=k):
            if next(at) == k:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), at_each_line(interrupt):
            one.fit(other_X, other_y)
        assert all(one.__dict__[name] is before[name] for name in before)
        assert len(one.__dict__) == len(before)


@every_model
def test_what_fails_leaves_the_model_as_it_was(model):
    (X, y), _ = tables(model)
    one = fresh(model).fit(X, y)
    before = dict(one.__dict__)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        one.fit(X[:, :2], y[:-1])
    assert all(one.__dict__[name] is before[name] for name in before)


@pytest.mark.threads
def test_threads_that_predict_while_another_fits_see_one_fit():
    model = PACBayesTreeClassifier(cv=2, random_state=0)
    (X, y), (_, other_y) = tables(model)
    known = [model.fit(X, target).predict_proba(X) for target in (other_y, y)]
    ends, mixtures, answers = threading.Event(), [], []

    def ask():
        while not ends.is_set():
            got = model.predict_proba(X)
            answers.append(None)
            if not any(np.array_equal(got, one) for one in known):
                mixtures.append(got)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=ask) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        for k in range(40):
            model.fit(X, (other_y, y)[k % 2])
    finally:
        ends.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert answers
    assert not mixtures


def fitted_and_predicted(model, X, y):
    with warnings.catch_warnings(action="error"):
        return model.fit(X, y), model.predict(X)


def predicted(model, X):
    with warnings.catch_warnings(action="error"):
        return model.predict(X)


@pytest.mark.threads
def test_workers_of_a_pool_fit_and_predict_the_same():
    # What is spawned knows nothing of this process, and may start no processes itself, but threads.
    models = [
        PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1, n_jobs=2),
        BoostedTreesRegressor(max_iter=3, n_jobs=2, random_state=0),
        TreeForestClassifier(n_estimators=3, n_jobs=2, random_state=0),
        NaiveBayesClassifier(),
    ]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for model in models:
            (X, y), _ = tables(model)
            here = clone(model).fit(X, y)
            there, said = pool.apply(fitted_and_predicted, (model, X, y))
            np.testing.assert_array_equal(said, here.predict(X))
            np.testing.assert_array_equal(there.predict(X), said)
            np.testing.assert_array_equal(pool.apply(predicted, (here, X)), said)
