"""Sets of classes that hold the true one: against the definition, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError

import certree
import reference
from certree import CertifiedTreeClassifier, Grid, Voting
from certree.certificates import count_prior
from certree.rows.split import train_calibration_split


def noisy(n=600, n_classes=3, seed=0):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=seed
    )


def fitted(n=600, n_classes=3, **switches):
    X, y = noisy(n, n_classes)
    return (
        CertifiedTreeClassifier(**{"train_size": 0.5, "random_state": 0, **switches}).fit(X, y),
        X,
        y,
    )


def shares_of_growing_rows(model, X, y):
    """The vote of the law that stops where training samples are few, by counts of these alone."""
    grow = train_calibration_split(len(y), 0.5, np.random.RandomState(0)).train
    stats = certree.count(model.tree_, X[grow], y[grow], len(model.classes_))
    posterior = count_prior(model.tree_, stats).distributions[0]
    return certree.vote(model.tree_, stats, posterior, Voting("mean", 1.0)).score[model.apply(X)]


@pytest.mark.parametrize(("coverage", "delta"), [(0.9, 0.05), (0.6, 0.3)])
def test_sets_are_those_of_the_definition(coverage, delta):
    model, X, y = fitted(300)
    shares = shares_of_growing_rows(model, X, y)
    weigh = train_calibration_split(300, 0.5, np.random.RandomState(0)).calibration
    expected = reference.compute_prediction_sets(shares[weigh], y[weigh], shares, coverage, delta)
    found = model.predict_set(X, coverage, delta, allow_empty=True)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, expected)
    (certificate,) = model.certify_set(coverage, delta)
    assert certificate.risk == pytest.approx(1 - found[weigh, y[weigh]].mean())
    assert certificate.bound <= (1 - coverage) * (1 + 1e-12)
    assert certificate.n == 150
    filled = model.predict_set(X, coverage, delta)
    np.testing.assert_array_equal(filled, reference.fill_empty_sets(expected, shares))


@pytest.mark.parametrize("per_class", [False, True])
def test_empty_sets_get_the_most_probable_class(per_class):
    model, X, _ = fitted(900)
    sets = model.predict_set(X, 0.3, per_class=per_class, allow_empty=True)
    filled = model.predict_set(X, 0.3, per_class=per_class)
    is_empty = ~sets.any(axis=1)
    assert is_empty.sum() > 20
    assert (filled[is_empty].sum(axis=1) == 1).all()
    np.testing.assert_array_equal(filled[~is_empty], sets[~is_empty])
    shares = shares_of_growing_rows(model, X, fitted(900)[2])
    np.testing.assert_array_equal(filled, reference.fill_empty_sets(sets, shares))
    for i in np.flatnonzero(is_empty)[:5]:
        np.testing.assert_array_equal(
            model.predict_set(X[[i]], 0.3, per_class=per_class), filled[[i]]
        )


def test_sets_of_every_class_are_those_of_its_own_rows():
    model, X, y = fitted(1500)
    shares = shares_of_growing_rows(model, X, y)
    weigh = train_calibration_split(1500, 0.5, np.random.RandomState(0)).calibration
    found = model.predict_set(X, 0.9, per_class=True, allow_empty=True)
    made = model.certify_set(0.9, per_class=True)
    for c, certificate in enumerate(made):
        own = weigh[y[weigh] == c]
        scores = np.sort(1 - shares[own, c])
        place = reference.find_covering_rank(len(own), 0.9, 0.05 / 3)
        np.testing.assert_array_equal(found[:, c], 1 - shares[:, c] <= scores[place - 1])
        assert certificate.n == len(own)
        assert certificate.risk == pytest.approx(1 - found[own, c].mean())
        assert f"of the {len(own)} calibration rows of class {c}, for all classes at once" in str(
            certificate
        )


def test_a_class_of_few_rows_is_in_every_set():
    X, y = noisy(800)
    y = np.where(np.random.default_rng(0).random(800) < 0.02, 3, y)
    model = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X, y)
    assert model.predict_set(X, 0.9, per_class=True)[:, 3].all()
    assert model.certify_set(0.9, per_class=True)[3] is None


def test_sets_do_not_depend_on_what_weighing_rows_choose():
    """Training samples alone order the classes; other truths of the others change how far to go."""
    X, y = noisy(400)
    weigh = train_calibration_split(400, 0.5, np.random.RandomState(0)).calibration
    other = y.copy()
    other[weigh] = np.random.default_rng(1).permutation(other[weigh])
    one, two = (
        CertifiedTreeClassifier(train_size=0.5, selection="vote", random_state=0).fit(X, target)
        for target in (y, other)
    )
    for few, many in zip(one.predict_set(X, 0.7), two.predict_set(X, 0.7), strict=True):
        assert (few <= many).all()
    assert two.predict_set(X, 0.7).sum() > one.predict_set(X, 0.7).sum()


def test_sets_grow_with_what_is_promised():
    model, X, _ = fitted()
    sizes = [model.predict_set(X, coverage).sum() for coverage in np.linspace(0.1, 0.98, 12)]
    assert sizes == sorted(sizes)
    assert model.predict_set(X, 0.9, 0.01).sum() >= model.predict_set(X, 0.9, 0.2).sum()


def test_classes_that_no_growing_row_has_are_in_no_set():
    X, y = load_iris(return_X_y=True)
    grow = train_calibration_split(150, 0.5, np.random.RandomState(0)).train
    is_weighing = ~np.isin(np.arange(150), grow)
    named = np.array(["setosa", "versicolor", "virginica"])[y].astype("<U20")
    few = np.flatnonzero(is_weighing)[:3]
    named[few] = "unknown"
    model = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X, named)
    assert "unknown" not in model.predict(X)
    held = model.predict_set(X, 0.8)
    assert held.shape == (150, 4)
    assert not held[:, model.classes_ == "unknown"].any()
    assert model.certify_set(0.8)[0].risk >= 3 / 75
    with pytest.raises(
        ValueError, match="cannot be guaranteed: 3 of 75 calibration rows have classes"
    ):
        model.predict_set(X, 0.95)
    # Nothing is certified of a class that is in every set.
    found = dict(zip(model.classes_, model.certify_set(0.6, per_class=True), strict=True))
    assert found.pop("unknown") is None
    assert all(found.values())
    assert model.predict_set(X, 0.6, per_class=True)[:, model.classes_ == "unknown"].all()


def test_bad_questions_say_what_was_expected(tmp_path):
    model, X, y = fitted(100, 2)
    with pytest.raises(NotFittedError):
        CertifiedTreeClassifier().predict_set(X)
    with pytest.raises(NotFittedError):
        CertifiedTreeClassifier().certify_set()
    with pytest.raises(
        ValueError, match=r"coverage=0.99 with delta=0.05 needs at least 299 calibration rows"
    ):
        model.predict_set(X, 0.99)
    with pytest.raises(ValueError, match="needs at least 36 calibration rows in a region"):
        fitted(30, 2)[0].certify_set(0.9, per_class=True)
    with pytest.raises(ValueError, match=r"coverage must lie between 0 and 1, got 1\.0"):
        model.predict_set(X, 1.0)
    with pytest.raises(ValueError, match="delta must lie between 0 and 1, got -1"):
        model.certify_set(0.5, -1)
    grouped = CertifiedTreeClassifier(random_state=0).fit(X, y, groups=np.arange(100) // 2)
    with pytest.raises(ValueError, match=r"one row of each new group to Guarantees\.by_rows"):
        grouped.predict_set(X)
    boxed = CertifiedTreeClassifier(Grid((X.min(axis=0), X.max(axis=0))), max_depth=4)
    with pytest.raises(ValueError, match="with another grower"):
        boxed.fit(X, y, classes=[0, 1]).predict_set(X)
    certree.save(model, tmp_path / "model", calibration_samples=False)
    with pytest.raises(ValueError, match="call it before saving"):
        certree.load(tmp_path / "model").predict_set(X)
