"""Cases that fit an estimator to a table, and compute the same result in two ways."""

import copy
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils._param_validation import InvalidParameterError

import certree
from certree import load, save
from certree.boolean import FourierClassifier, FourierRegressor, spectrum
from certree.ensembles import ConformalBandRegressor
from fuzz.files import folder
from fuzz.functions import Attempt
from fuzz.hostile import spoilt
from fuzz.models import ESTIMATORS, TOLERANT, in_columns, plausible_parameter, takes_labels
from fuzz.tables import CATEGORIES, NUMBERS, REFUSED, drawn_table, drawn_target

_QUICK = {**TOLERANT, "max_iter": 3, "n_estimators": 5, "method": "omp", "random_state": 0}
_CLASSES = [["a", "b"], ["a", "A", "b"], [0, 1], [False, True], [-1.5, 2.0, 1e300], ["only one"]]
# What may be changed after the fit: it says how to compute, not what.
_OF_THE_RUN = {"n_jobs", "verbose"}

# Products of matrices, whose sums hang on how many rows there are.
_ROUND = (
    certree.NaiveBayesClassifier,
    certree.DecoratedTreeClassifier,
    certree.DecoratedTreeRegressor,
)

_OF_ROWS = [
    *("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "apply"),
    *("decision_function", "predict_std", "predict_interval", "staged_predict", "explain"),
    *("staged_predict_proba", "staged_decision_function", "predict_set"),
]
_MAY_REFUSE = {"predict_interval", "predict_set", "predict_std", "explain"}


class Subject:
    """An estimator, and a table that it is fitted to."""

    def __init__(
        self,
        random: Random,
        kinds: Sequence[str] = (),
        *,
        names: Sequence[str] = (),
        classes: Sequence[Any] = (),
    ) -> None:
        # Relations know no queries; those of rankers are in their own tests.
        asked = [one for one in ESTIMATORS if one is not certree.BoostedTreesRanker]
        estimator = random.choice([*asked, ConformalBandRegressor])
        is_boolean = estimator in (FourierClassifier, FourierRegressor)
        if not kinds:
            kinds = [*NUMBERS, *CATEGORIES]
            kinds += [random.choice([*REFUSED])] * 2 if random.random() < 0.1 else []
        self.table = drawn_table(random, ["booleans"] if is_boolean else kinds, names)
        self.X = self.table.X
        self.model = drawn_estimator(random, estimator, len(self.table.columns))
        known = (classes or random.choice(_CLASSES)) if is_classifier(self.model) else None
        self.y = drawn_target(random, self.table, known)
        if not classes and takes_labels(self.model) and random.random() < 0.3:
            self.y = in_columns(self.y)
        self.is_fitted = False

    def fit(self) -> None:
        """Fit, or assert that a column from which nothing can be learned is refused."""
        try:
            self.model.fit(self.X, self.y)
        except InvalidParameterError:
            raise  # columns have not been looked at
        except (ValueError, TypeError) as error:
            # Else targets or densities were refused, before times were looked for.
            if not any(words in str(error) for words in ("label type", "its density")):
                given = getattr(self.model, "categorical_features", None)
                self.table.expect_said(error, isinstance(given, str))
            raise
        bands = isinstance(self.model, ConformalBandRegressor)  # of boosted trees
        refused = self.table.refused_by(getattr(self.model, "_takes_infinities", bands))
        # Who says which columns are categories may say so of any.
        is_told = isinstance(getattr(self.model, "categorical_features", None), list)
        assert is_told or not refused, f"columns {refused} of {self.table.kinds} were taken"
        self.is_fitted = True


def drawn_estimator(random: Random, estimator: Callable[..., Any], p: int) -> Any:
    """Draw an estimator that fits fast, with random values of one or two parameters."""
    if estimator is ConformalBandRegressor:
        inner = certree.BoostedTreesRegressor("quantile", max_iter=2, random_state=0)
        return estimator(inner, coverage=0.5, calibration_size=0.5, random_state=0)
    names = [*estimator().get_params(deep=False)]
    parameters = {name: value for name, value in _QUICK.items() if name in names}
    for name in random.sample(names, random.choice([0, 1, 2])):
        value = plausible_parameter(random, name, p)
        if value is not None:
            parameters[name] = value
    return estimator(**parameters)


# -- what is asked ---------------------------------------------------------------------------------


def of_rows(model: Any, X: Any, *, by_keyword: bool = False) -> dict[str, list[np.ndarray]]:
    """Return all predictions of a model for rows, each as an array by rows; methods that refuse are
    left out.
    """
    said = {}
    for name in _OF_ROWS:
        if hasattr(model, name):
            try:
                method = getattr(model, name)
                answer = method(X=X) if by_keyword else method(X)
            except (ValueError, TypeError):
                if name not in _MAY_REFUSE:
                    raise
                continue
            said[name] = _arrays(answer)
    return said


def _arrays(answer: Any) -> list[np.ndarray]:
    if hasattr(answer, "contributions"):
        return [answer.prediction, answer.contributions]
    if isinstance(answer, np.ndarray):
        return [answer]
    # Stages of several columns of classes are lists.
    return [array for one in answer for array in _arrays(one)]


def _texts(model: Any, X: Any, y: Any) -> dict[str, str]:
    """Return all other results of a model as text, with the messages of those that it refuses."""
    asked: dict[str, Callable[[], Any]] = {
        "explain": lambda: str(model.explain(X)),
        "rules": lambda: str(model.rules(5)),
        "export_text": lambda: str(model.export_text()),
        "to_dict": lambda: json.dumps(model.to_dict()),
        "to_sql": lambda: model.to_sql("rows"),
        "score": lambda: str(model.score(X, y)),
        "staged_loss": lambda: str(model.staged_loss(X, y)),
        "report": lambda: str(model.report()),
        "conditional_guarantees": lambda: str(model.conditional_guarantees()),
        "selective_certificates": lambda: str(model.selective_certificates()),
        "certify_set": lambda: str(model.certify_set()),
        "certify_interval": lambda: str(model.certify_interval()),
        "feature_importances_": lambda: str(model.feature_importances_),
    }
    said = {}
    for name, ask in asked.items():
        if hasattr(model, name):
            try:
                said[name] = ask()
            except (ValueError, TypeError) as error:
                said[name] = repr(error)
    return said


def same(found: Any, expected: Any, rounding: float = 0.0, all_rows: Any = None) -> None:
    """Assert that predictions are equal, bit by bit or up to rounding of the largest one.

    Classes and leaf numbers must be equal.
    """
    among = expected if all_rows is None else all_rows
    assert found.keys() == expected.keys(), f"{[*found]} instead of {[*expected]}"
    for name, answer in expected.items():
        if isinstance(answer, str):
            assert found[name] == answer, f"{name}: {found[name]} instead of {answer}"
            continue
        # Logarithms make much of what rounding leaves of 0.
        plain = np.exp if rounding and name == "predict_log_proba" else np.asarray
        parts = (map(plain, one) for one in (found[name], answer, among[name]))
        for a, b, c in zip(*parts, strict=True):
            if not rounding or a.dtype.kind != "f":
                np.testing.assert_array_equal(a, b, err_msg=name)
            else:
                scale = np.abs(c[np.isfinite(c)]).max(initial=0.0)
                np.testing.assert_allclose(a, b, rounding, rounding * scale, err_msg=name)


# -- of one fit ------------------------------------------------------------------------------------


def one_row_alone(random: Random, subject: Subject) -> None:
    """Assert that the prediction of a row does not depend on the other rows of the table."""
    whole = of_rows(subject.model, subject.X)
    rounding = 1e-9 if isinstance(subject.model, _ROUND) else 0.0
    for row in random.sample(range(subject.table.n), 3):
        alone = of_rows(subject.model, subject.table.at([row]).X)
        expected = {name: [one[[row]] for one in said] for name, said in whole.items()}
        same(alone, expected, rounding, whole)


def rows_of_float32(random: Random, subject: Subject) -> None:
    """Assert that rows reach the same leaves if they are rounded to float32, or that a warning
    names features.
    """
    model, table = subject.model, subject.table
    if not table.is_numeric or not hasattr(model, "apply"):
        return
    wide = np.asarray(replace(table, container="array").X)
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    # A threshold of a Grid, such as 0, does not depend on the rows.
    if np.isinf(narrow).any() or ((narrow == 0) & (wide != 0)).any():
        return
    model = clone(model).fit(wide, subject.y)
    mask = None if model.categories_ is None else model.categories_.mask
    if mask is not None and not np.array_equal(narrow[:, mask], wide[:, mask], equal_nan=True):
        return  # numbers that name categories name others once they are rounded
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        leaves = model.apply(narrow)
    if any("float32 does not distinguish" in str(one.message) for one in said):
        assert not np.array_equal(narrow.astype(np.float64), wide, equal_nan=True)
        return
    neighbours = np.diff(np.sort(wide, axis=0), axis=0) <= np.spacing(
        np.abs(np.sort(wide, axis=0)[1:])
    )
    if (neighbours & (np.diff(np.sort(wide, axis=0), axis=0) > 0)).any():
        return  # no threshold between neighbouring numbers says which it was
    assert np.array_equal(leaves, model.apply(wide))


def rows_by_keyword(random: Random, subject: Subject) -> None:
    """Assert that rows passed by position and by keyword get the same predictions."""
    model, X = subject.model, subject.X
    same(of_rows(model, X, by_keyword=True), of_rows(model, X))


def parameters_are_those_of_the_fit(random: Random, subject: Subject) -> None:
    """Assert that parameters set after the fit change neither predictions nor what is saved."""
    model, X, y = subject.model, subject.X, subject.y
    before, texts = of_rows(model, X), _texts(model, X, y)
    others = {
        name: plausible_parameter(random, name, len(subject.table.columns))
        for name in model.get_params(deep=False)
        if name not in _OF_THE_RUN
    }
    others = {name: value for name, value in others.items() if value is not None}
    plausible = copy.copy(model).set_params(**others)
    fixed = _OF_THE_RUN | ({"estimator"} if isinstance(model, ConformalBandRegressor) else set())
    hostile = random.choice(
        sorted(model.get_params(deep=False).keys() - fixed)
    )  # its tags are asked
    changed = copy.copy(plausible)
    with suppress(ValueError, TypeError):  # some nouns refuse what spoils them
        changed.set_params(**{hostile: spoilt(random, others.get(hostile))})
    same(of_rows(changed, X), before)
    same(_texts(changed, X, y), texts)
    _same_through_a_file(plausible, X, before)


def _same_through_a_file(model: Any, X: Any, expected: dict[str, list[np.ndarray]]) -> None:
    path = Path(folder().name) / "kept"
    try:
        save(model, path)
    except (ValueError, TypeError):  # it says what cannot be saved, or does not go together
        return
    same(of_rows(load(path), X), expected)


def another_loss_is_no_warm_start(random: Random, subject: Subject) -> None:
    """Assert that warm-start rounds of another loss are refused, and leave the model unchanged."""
    model = copy.copy(subject.model)
    if "loss" not in model.get_params() or not hasattr(model, "warm_start"):
        return
    before = of_rows(model, subject.X)
    others = {"squared_error", "absolute_error", "huber"} - {model.loss}
    model.set_params(loss=random.choice(sorted(others)), warm_start=True, max_iter=5)
    try:
        model.fit(subject.X, subject.y)
    except ValueError:
        same(of_rows(model, subject.X), before)
    else:
        raise AssertionError("rounds of another loss were added")


def answers_are_their_askers(random: Random, subject: Subject) -> None:
    """Assert that writing to returned arrays changes no later result."""
    model, X = subject.model, subject.X
    before = copy.deepcopy(of_rows(model, X))
    for name, said in of_rows(model, X).items():
        for array in said if name != "explain" else ():
            assert array.flags.writeable, f"{name} cannot be written to"
            assert array.flags.c_contiguous, f"{name} is not contiguous"
            array[...] = np.zeros((), array.dtype)
    same(of_rows(model, X), before)


def rows_are_their_askers(random: Random, subject: Subject) -> None:
    """Assert that writing to the rows of the fit changes no prediction."""
    model, X = clone(subject.model), subject.table.X
    y = subject.y.copy()
    model.fit(X, y)
    rows = subject.table.at(np.arange(subject.table.n)).X
    before = copy.deepcopy(of_rows(model, rows))
    y[...] = y[::-1].copy()
    if isinstance(X, np.ndarray):
        X[...] = X[::-1].copy()
    same(of_rows(model, rows), before)


def foreign_classes_are_not_certified(random: Random, subject: Subject) -> None:
    """Assert that labels the model does not know are refused by certification."""
    model = subject.model
    if not hasattr(model, "certify") or not is_classifier(model):
        return
    foreign = np.arange(subject.table.n) % 2
    foreign = foreign if model.classes_.dtype.kind == "U" else np.array(["a", "b"])[foreign]
    try:
        model.certify(subject.X, foreign, duplicates="genuine")
    except (ValueError, TypeError):
        return
    raise AssertionError("labels of another type were certified")


def polynomials_decide_alike(random: Random, subject: Subject) -> None:
    """Assert that the spectrum of a model gives the scores of its rows."""
    model, table = subject.model, subject.table
    whole = not any("lack" in kind for kind in table.kinds)
    if (
        hasattr(model, "to_dict")
        and hasattr(model, "decision_function")
        and subject.y.ndim == 1
        and whole
        and table.is_numeric
        and getattr(model, "categories_", None) is None
    ):
        rows = np.asarray(replace(table, container="array").X).astype(float)
        found = spectrum(model, coding="thresholds").evaluate(rows)
        expected = np.reshape(model.decision_function(subject.X), (table.n, -1))
        np.testing.assert_allclose(found, expected, 1e-9, 1e-9)


def batches_are_learned_or_warned_of(random: Random, subject: Subject) -> None:
    """Assert that categories that the first batch lacks are learned, or cause a warning."""
    if not isinstance(subject.model, certree.NaiveBayesClassifier):
        return
    names = np.array(["a"] * 20 + ["b"] * 20, dtype=object)[:, None]
    y = np.arange(40) // 20
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", certree.RepeatedRowsWarning)  # which says nothing of it
        model = clone(subject.model).set_params(
            densities="auto", priors=None, class_weight=None, categorical_features="from_dtype"
        )
        for batch in (slice(0, 20), slice(20, 40)):
            model.partial_fit(names[batch], y[batch], classes=[0, 1])
    known = model.categories_ is not None and "b" in model.categories_.names[0]
    assert known or said, "a category was left out in silence"


def rows_come_and_go(random: Random, subject: Subject) -> None:
    """Assert that rows that leave a fit in a fixed box and join it again leave no trace."""
    kinds = (
        certree.PACBayesTreeClassifier,
        certree.PACBayesTreeRegressor,
        certree.PrunedTreeClassifier,
        certree.PrunedTreeRegressor,
    )
    if not isinstance(subject.model, kinds) or np.ndim(subject.y) > 1:
        return
    p = subject.model.n_features_in_
    given = {
        "grower": certree.Grid((-2 * np.ones(p), 2 * np.ones(p))),
        "max_depth": random.randrange(6),
        "class_weight": None,
        "monotonic_cst": None,
        **dict.fromkeys(("lambda_error", "lambda_penalty", "alpha", "inverse_temperature"), 1.0),
    }
    known = subject.model.get_params(deep=False)
    model = clone(subject.model).set_params(
        **{name: given[name] for name in given if name in known}
    )
    before = of_rows(model.fit(subject.X, subject.y), subject.X)
    some = np.array(random.sample(range(subject.table.n), max(1, subject.table.n // 3)))
    rows = subject.table.at(some).X, subject.y[some]
    if len(some) < subject.table.n:
        same(of_rows(model.forget(*rows).partial_fit(*rows), subject.X), before, 0.0)


RELATIONS: list[Callable[[Random, Subject], None]] = [
    one_row_alone,
    rows_of_float32,
    rows_by_keyword,
    parameters_are_those_of_the_fit,
    another_loss_is_no_warm_start,
    answers_are_their_askers,
    rows_are_their_askers,
    foreign_classes_are_not_certified,
    polynomials_decide_alike,
    batches_are_learned_or_warned_of,
    rows_come_and_go,
]


def relate(random: Random) -> Iterator[Attempt]:
    """Fit, and check two relations."""
    subject = Subject(random)
    yield subject.fit
    if subject.is_fitted:
        for relation in random.sample(RELATIONS, 2):
            yield partial(_hold, relation, random, subject)


def _hold(relation: Callable[[Random, Subject], None], random: Random, subject: Subject) -> None:
    """Check a relation; refusals of rows that were used in the fit are accepted."""
    try:
        relation(random, subject)
    except (ValueError, TypeError) as error:
        raise AssertionError(f"what was fitted cannot be asked: {error}") from error
