"""The fuzzer finds what it is to find, and a few of its cases find nothing."""

import inspect
import warnings
from contextlib import nullcontext
from math import fsum

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from fuzz import cases, functions, refits, relations, world
from fuzz.__main__ import options_of
from fuzz.planted import planted
from fuzz.workers import watch


# An interrupt may come while the garbage is collected, where Python can only print what is raised.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", cases.KINDS)
def test_cases_find_nothing(kind):
    n_cases = {"functions": 100, "columns": 40, "models": 60, "files": 150, "interrupts": 15}
    findings = {k: cases.run(k, [kind]) for k in range(n_cases.get(kind, 50))}
    assert not {k: text for k, text in findings.items() if text is not None}


def test_all_public_functions_are_called():
    assert len(functions.FUNCTIONS) > 60
    parameters = {
        f"{name}.{parameter.name}": parameter.name
        for name, function in functions.FUNCTIONS.items()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    }
    drawn = {own if own in world.PLAUSIBLE else name for own, name in parameters.items()}
    assert drawn == {*world.PLAUSIBLE}


def test_a_case_is_its_number():
    def draws(case):
        drawn = world.World(cases.Random(case))
        return [drawn.X, drawn.y, drawn.tree.threshold]

    for k in range(20):
        for a, b in zip(draws(k), draws(k), strict=True):
            np.testing.assert_array_equal(a, b)


def fails(error):
    def case(random):
        raise error

    return case


def warns(random):
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("case", "finds"),
    [
        (fails(ValueError("n must be positive, got -1")), False),
        (fails(TypeError("expected a Tree, got 1")), False),
        (fails(ValueError()), True),
        (fails(IndexError("index 3")), True),
        (fails(TypeError("count(): incompatible function arguments")), True),
        (fails(ValueError("operands could not be broadcast together")), True),
        (fails(AssertionError("another answer than the slow twin's")), True),
        (warns, True),
    ],
)
def test_what_is_a_finding(monkeypatch, case, finds):
    monkeypatch.setitem(cases.KINDS, "planted", (cases.once(case), 1))
    assert (cases.run(0, ["planted"]) is not None) == finds


# -- relations find what breaks them -----------------------------------------------------------------


class Planted(BaseEstimator):
    """A regressor with a fault."""

    def __init__(self, fault="", factor=1.0):
        self.fault = fault
        self.factor = factor

    def fit(self, _, y):
        self.fault_ = self.fault
        self.target_ = y if self.fault == "keeps" else y.copy()
        return self

    def predict(self, X):
        said = np.full(len(X), self.target_[1])
        if self.fault_ == "asks parameters":
            said *= self.factor
        if self.fault_ == "asks how many":
            said += len(X)
        if self.fault_ == "keeps its answer":
            self.said_ = said = vars(self).get("said_", said)
        said.flags.writeable = self.fault_ != "read-only"
        return said


@pytest.mark.parametrize(
    ("fault", "relation"),
    [
        ("asks how many", relations.one_row_alone),
        ("asks parameters", relations.parameters_are_those_of_the_fit),
        ("read-only", relations.answers_are_their_askers),
        ("keeps its answer", relations.answers_are_their_askers),
        ("keeps", relations.rows_are_their_askers),
    ],
)
def test_relations_find_faults(monkeypatch, fault, relation):
    monkeypatch.setattr(relations, "plausible_parameter", lambda *_: 2.0)
    monkeypatch.setattr(relations, "save", fails(TypeError("no file")))
    for planted_fault, finds in (("", False), (fault, True)):
        subject = relations.Subject(cases.Random(2))
        subject.model, subject.y = Planted(planted_fault), np.arange(1.0, subject.table.n + 1)
        subject.fit()
        with pytest.raises(AssertionError) if finds else nullcontext():
            relation(cases.Random(0), subject)


class PlantedByPosition(Planted):
    """A regressor that takes rows by position alone."""

    def predict(self, X, /):
        return super().predict(X)


@pytest.mark.parametrize("model", [Planted(), PlantedByPosition()])
def test_rows_that_are_taken_by_position_alone_are_found(model):
    subject = relations.Subject(cases.Random(2))
    subject.model, subject.y = model, np.arange(1.0, subject.table.n + 1)
    subject.fit()
    finds = isinstance(model, PlantedByPosition)
    with pytest.raises(AssertionError, match="keyword") if finds else nullcontext():
        relations._hold(relations.rows_by_keyword, cases.Random(0), subject)


class PlantedMean(BaseEstimator):
    """A regressor that predicts a weighted mean, with a fault."""

    def __init__(self, fault=""):
        self.fault = fault

    def fit(self, _, y, sample_weight=None):
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        is_seen = np.full(len(y), True) if self.fault == "counts rows of no weight" else weight > 0
        n = is_seen.sum()
        unit = 1.0 if self.fault == "has a unit" else fsum(weight) / n
        self.mean_ = fsum(weight * y) / unit / (n + 1.0)
        self.effective_sample_size_ = weight.sum() ** 2 / (weight**2).sum()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize(
    ("fault", "relation"),
    [
        ("has a unit", refits.another_unit_of_weights),
        ("counts rows of no weight", refits.rows_of_no_weight),
    ],
)
def test_relations_of_weights_find_faults(fault, relation):
    for planted_fault in ("", fault):
        subject = relations.Subject(cases.Random(2))
        subject.model, subject.y = PlantedMean(planted_fault), np.arange(1.0, subject.table.n + 1)
        subject.fit()
        with pytest.raises(AssertionError) if planted_fault else nullcontext():
            for k in range(9):
                relation(cases.Random(k), subject)


def test_crashes_and_hangs_are_reported_and_the_rest_goes_on(capfd):
    options = options_of(["--seconds=100", "--cases=12", "--processes=2", "--patience=4"])
    n_ran, found = watch(options, planted)
    assert n_ran == 12
    assert sorted(found) == [
        (3, "the interpreter ended with -6"),
        (5, "takes more than 4 seconds"),
        (6, "found"),
    ]
    assert "-- case 6" in capfd.readouterr().out
