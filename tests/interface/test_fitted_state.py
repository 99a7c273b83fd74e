"""A fit sets all attributes at once, and an answer reads those of one moment."""

import inspect
import multiprocessing
import pickle
import re
import sys
import threading
import warnings
from collections.abc import Iterator, ValuesView
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import QuantileRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import certree
from certree import (
    KD,
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesPosteriors,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    RepeatedRowsWarning,
    TreeForestClassifier,
    TreeForestRegressor,
    Voting,
    certify,
)
from certree.boolean import FourierClassifier, FourierRegressor
from certree.ensembles import ConformalBandRegressor
from certree.explain import interaction_fractions, shap_trees, shapley_values
from certree.interface.fitted_state import get_snapshot
from certree.interface.parameter_aliases import GuaranteeHint, RulesHint
from certree.prunings import Polynomial
from certree.weights import map_pruning
from run_length import LONG

SOURCE = str(Path(certree.__file__).parent)
# Other forms of what `to_dict` writes, and models that have none.
ONE_FORMULA = {"to_code", "to_onnx", "to_sklearn", "to_sql", "trees_to_dataframe"}
DECORATED = (DecoratedTreeClassifier, DecoratedTreeRegressor)
MODELS = [
    AdaBoostTreeClassifier(n_estimators=5),
    BoostedTreesClassifier(max_iter=5, random_state=0),
    BoostedTreesRegressor(max_iter=5, random_state=0),
    CertifiedForestClassifier(2, random_state=0),
    CertifiedBoostedTreesClassifier(max_iter=5, random_state=0),
    CertifiedBoostedTreesRegressor(max_iter=5, coverage=0.8, random_state=0),
    TreeForestClassifier(2, random_state=0),
    TreeForestRegressor(2, random_state=0),
    PACBayesTreeClassifier(random_state=0),
    PACBayesTreeRegressor(random_state=0),
    PrunedTreeClassifier(random_state=0),
    PrunedTreeRegressor(random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    CertifiedTreeClassifier(random_state=0),
    CertifiedTreeRegressor(coverage=0.8, random_state=0),
    DecoratedTreeClassifier(min_samples_model=10, random_state=0),
    DecoratedTreeRegressor(min_samples_model=10, random_state=0),
    NaiveBayesClassifier(),
]
# Other losses, ways to vote and learners, which read other parameters.
FURTHER = [
    *(
        BoostedTreesRegressor(loss, max_iter=5, random_state=0)
        for loss in ("absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie")
    ),
    BoostedTreesClassifier(max_iter=5, monotonic_cst=[1, 0, 0], random_state=0),
    AdaBoostTreeClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=5, random_state=0),
    TreeForestClassifier(30, criterion="entropy", max_samples=0.5, oob_score=True, random_state=0),
    TreeForestRegressor(3, leaves="shrunk", bootstrap=False, random_state=0),
    PACBayesTreeClassifier(KD(), vote="majority", monotonic_cst=None, random_state=0),
    PACBayesTreeClassifier(Cart(), vote=Voting(), monotonic_cst=[1, 0, 0], random_state=0),
    PACBayesTreeRegressor(smoothing=7.0, monotonic_cst=np.array([1, 0, 0]), random_state=0),
    PrunedTreeClassifier(rule=Polynomial(), alpha=1.0, random_state=0),
    HelmboldSchapireTreeClassifier(smoothing=9.0, inverse_temperature=1.0, random_state=0),
    CertifiedTreeClassifier(
        posteriors=PACBayesPosteriors(lambda_error=1.0), delta=0.2, random_state=0
    ),
    CertifiedTreeClassifier(vote="majority", preprocessor=StandardScaler(), random_state=0),
    CertifiedTreeRegressor(coverage=0.7, delta=0.2, widths="leaf", smoothing=9.0, random_state=0),
    DecoratedTreeClassifier(GaussianNB(), min_samples_model=10, random_state=0),
    NaiveBayesClassifier("histogram", bins=4, power=0.5, priors=[0.5, 0.5]),
    CertifiedBoostedTreesClassifier(max_iter=4, train_size=0.6, delta=0.2, random_state=0),
    CertifiedBoostedTreesRegressor(
        "huber", max_iter=4, train_size=0.6, coverage=0.7, widths="one", random_state=0
    ),
    ConformalBandRegressor(BoostedTreesRegressor("quantile", max_iter=3), random_state=0),
    ConformalBandRegressor(QuantileRegressor(), coverage=0.5, random_state=0),
    FourierClassifier(random_state=0),
    FourierRegressor("low_degree", degree=1, max_terms=2),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
all_models = pytest.mark.parametrize("model", MODELS + FURTHER, ids=repr)
# What is asked of the parameters, or of the class, and not of a fit.
OF_PARAMETERS = {"fit", "partial_fit", "set_params", "get_params", "score", "get_metadata_routing"}


def tables(model):
    """Two tables that have neither classes nor the shape of the tree in common."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    if isinstance(model, FourierClassifier | FourierRegressor):
        X = (X > 0).astype(float)
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
        "importance": ("permutation", *tables(model)[0]),
        "out_of_bag_importances": tables(model)[0],
    }
    for name in sorted(set(dir(type(model))) - OF_PARAMETERS):
        if name.startswith(("_", "set_")) or not hasattr(model, name):
            continue
        if name == "find_rules" and model._number_rules() is None:
            continue  # prunings vote: explain/test_rules.py
        if name == "certify_fit":
            continue  # of a Grid alone, by the rows of the fit: certificates/test_fixed_box.py
        if name in ONE_FORMULA or (name == "to_dict" and isinstance(model, DECORATED)):
            continue
        member = inspect.getattr_static(type(model), name)
        if isinstance(member, GuaranteeHint | RulesHint):
            continue  # it says what to use instead
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
        # NumPy has two types of int64, and writes only one of them out.
        return re.sub(r",\s+dtype=int64", "", repr(in_full(answer)))


def in_full(answer):
    """What columns say in short, field by field."""
    if is_dataclass(answer):
        parts = {one.name: in_full(getattr(answer, one.name)) for one in fields(answer)}
        return type(answer).__name__, parts
    if isinstance(answer, list | tuple):
        return [*map(in_full, answer)]
    return answer


def asked(ask):
    """What is answered, or why nothing is."""
    try:
        return as_text(ask())
    except ValueError as error:
        return repr(error)


def moments(n):
    """All of n moments, or those in which a fit is read and some spread over the others."""
    n_spread = 40 if LONG else 8
    if n <= 16 + n_spread:
        return range(n)
    return [*range(16), *np.linspace(16, n - 1, n_spread).astype(int)]


@every_model
def test_an_answer_comes_from_one_fit_whenever_another_ends(model):
    first, second = two_fits(model)
    for name, ask in questions(first):
        known = [asked(lambda one=one, ask=ask: ask(one)) for one in (first, second)]
        lines = []
        with at_each_line(lambda: lines.append(None)):  # noqa: B023
            ask(first)
        assert lines, name
        for k in moments(len(lines)):
            one, at = get_snapshot(first), iter(range(len(lines) + 1))

            def another_fit_ends(one=one, at=at, k=k):
                if next(at, -1) == k:
                    one.__dict__ = second.__dict__

            with at_each_line(another_fit_ends):
                got = asked(lambda one=one, ask=ask: ask(one))
            assert got in known, (name, k)


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


class Untouched:
    """What nobody may look at."""

    def __getattr__(self, name):
        if name == "get_params":  # what `set_params` looks for in the values before
            raise AttributeError(name)
        raise AssertionError(f"{name} was read")

    def __sklearn_tags__(self):
        return BaseEstimator().__sklearn_tags__()  # which speak of the next fit

    def _touched(self, *_):
        raise AssertionError("a parameter was read after the fit")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _touched
    __bool__ = __len__ = __iter__ = __call__ = __array__ = __float__ = __index__ = _touched


def answers(model):
    """What a model says whatever it is asked, also by functions that take models."""
    X, y = tables(model)[0]
    told = {name: asked(lambda ask=ask: ask(model)) for name, ask in questions(model)}
    if hasattr(model, "to_sql") and not isinstance(model, DECORATED):
        told["to_sql"] = asked(lambda: model.to_sql("rows"))
    if hasattr(model, "_get_additive_trees"):
        told |= {
            "shapley_values": as_text(shapley_values(model, X[:5], X[:9])),
            "shap_trees": asked(lambda: shap_trees(model, X)),
            "interaction_fractions": as_text(interaction_fractions(model, X).paired),
        }
    if is_classifier(model):
        told["certify of others"] = asked(lambda: certify(model, 1 - X, y))
    return told


@all_models
def test_parameters_that_are_set_after_the_fit_change_no_answer(model, tmp_path):
    one = clone(model).fit(*tables(model)[0])
    names = sorted(set(one.get_params(deep=False)) - {"n_jobs", "verbose"})
    nested = [name for name in one.get_params() if "__" in name]
    expected = answers(one)
    for value in (None, Untouched()):
        one.set_params(**dict.fromkeys(nested, None))
        one.set_params(**dict.fromkeys(names, value))
        nested = []
        assert answers(one) == expected
    assert answers(pickle.loads(pickle.dumps(one))) == expected
    try:
        certree.save(one, tmp_path / "model.certree")
    except TypeError:
        return  # holds fitted estimators of others
    loaded = certree.load(tmp_path / "model.certree")
    before = through_file(clone(model).fit(*tables(model)[0]), tmp_path)
    assert repr(loaded) == repr(before)
    assert answers(loaded) == answers(before)


def through_file(model, folder):
    certree.save(model, folder / "other.certree")
    return certree.load(folder / "other.certree")


def arrays_in(answer):
    """The arrays that somebody is handed, one after the other."""
    if sparse.issparse(answer):
        yield from (answer.data, answer.indices, answer.indptr)
    elif isinstance(answer, np.ndarray):
        yield answer
    elif type(answer) is dict:
        yield from arrays_in(answer.values())
    elif isinstance(answer, Iterator | tuple | list | ValuesView):
        for part in answer:
            yield from arrays_in(part)


def spoilt(ask):
    """What arrays held before they were written to, or why there are none."""
    try:
        answer = ask()
    except ValueError as error:
        return repr(error)
    held = []
    for array in arrays_in(answer):
        assert array.flags.writeable
        assert array.flags.c_contiguous
        held.append(array.copy())
        array[...] = "?" if array.dtype.kind in "OU" else 1 - array.astype(int)
    return as_text(held)


@pytest.mark.filterwarnings("ignore:no product of features explains y:UserWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("n_classes", [2, 3, 9])
@all_models
def test_who_writes_to_an_answer_changes_no_other(model, n_classes):
    X, y = tables(model)[0]
    if is_classifier(model) and n_classes > 2:
        slopes, two = getattr(model, "monotonic_cst", None), HelmboldSchapireTreeClassifier
        if slopes is not None or isinstance(model, two) or getattr(model, "priors", None):
            pytest.skip("two classes only")
        y = np.arange(len(y)) % n_classes + 1
    elif n_classes > 2:
        pytest.skip("a number")
    one = clone(model).fit(X, y)
    asks = dict(questions(one))
    asks["row alone"] = lambda one: one.predict(X[:1])
    if hasattr(one, "_get_additive_trees"):
        asks["shap_trees"] = lambda one: shap_trees(one, X)
    for name, ask in asks.items():
        before = spoilt(lambda ask=ask: ask(one))
        assert spoilt(lambda ask=ask: ask(one)) == before, name


ROW_BY_ROW = ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba")
ROW_BY_ROW += ("decision_function", "predict_interval", "predict_std", "predict_set", "apply")


@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("model", MODELS[:-3] + MODELS[-1:], ids=lambda one: type(one).__name__)
def test_a_row_is_told_the_same_alone_and_among_others(model, n_classes):
    X = np.random.default_rng(0).normal(size=(400, 3))
    X[::9, 1] = np.nan
    edges = np.linspace(-1, 1, n_classes - 1) if n_classes > 2 else [0.0]
    y = np.digitize(X[:, 0] + 0.3 * X[:, 2], edges)
    if isinstance(model, HelmboldSchapireTreeClassifier):
        y = np.minimum(y, 1)
    one = clone(model).fit(X, y)
    for name in ROW_BY_ROW:
        if hasattr(one, name):
            ask = getattr(one, name)
            whole = ask(X)[:40]
            alone = np.concatenate([ask(X[i : i + 1]) for i in range(40)])
            np.testing.assert_array_equal(alone, whole)
            np.testing.assert_array_equal(ask(X[:40]), whole)


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


@pytest.mark.slow
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


def test_an_interrupt_at_any_line_leaves_the_warnings_of_later_fits():
    X, y = np.repeat(np.arange(20.0)[:, None], 4, axis=0), np.repeat([0, 1], 40)
    model, n_interrupts = PACBayesTreeClassifier(random_state=0), 0
    before = sys.gettrace()

    def interrupt_at(line):
        """Return a trace function that raises KeyboardInterrupt at a line of `fit_atomically`."""
        lines = iter(range(1, line + 1))

        def trace(frame, event, _):
            is_fit = frame.f_code.co_name == "fit_atomically"
            if is_fit and event == "line" and next(lines) == line:
                raise KeyboardInterrupt
            return trace if is_fit else None

        return trace

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedRowsWarning)
        while True:
            sys.settrace(interrupt_at(n_interrupts + 1))
            try:
                model.fit(X, y)
                break
            except KeyboardInterrupt:
                n_interrupts += 1
            finally:
                sys.settrace(before)
            with pytest.warns(RepeatedRowsWarning):
                PACBayesTreeClassifier(random_state=0).fit(X, y)
    assert n_interrupts > 4
