"""Tests of the order of rows: against all pairs written out, and what certificates say of it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier

import certree
import reference
from certree.certificates.row_order import (
    _FEWEST_UNITS,
    _N_ORDERS,
    _SEED,
    RowOrder,
    RowOrderWarning,
    _compute_spectrum,
    _select_rows,
    _sum_products,
    compute_class_residuals,
    measure_row_order,
)
from certree.out_of_core import sources
from model_files import save_and_load

SENTENCE = " Errors depend on the order of the rows: the bound may not hold for later rows."
numbers = st.floats(-1, 1, width=16)


@given(
    st.integers(1, 3).flatmap(
        lambda k: st.lists(st.tuples(*[numbers] * k), min_size=1, max_size=30)
    )
)
def test_the_statistic_is_that_of_all_pairs(rows):
    columns = np.array(rows).T
    found = _sum_products(columns, _compute_spectrum(len(rows)))
    assert found == pytest.approx(reference.sum_products_by_distance(rows), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 9), numbers, numbers), min_size=2, max_size=30))
def test_the_test_is_the_literal_one(rows):
    units = np.unique([unit for unit, *_ in rows], return_inverse=True)[1]
    residuals = np.array([values for _, *values in rows])
    found = measure_row_order(units, 2, lambda some: residuals[some])
    losses = np.abs(residuals).sum(axis=1, keepdims=True)
    scaled = [reference.scale_units(one.tolist(), units.tolist()) for one in (residuals, losses)]
    means = [[*a, *b] for a, b in zip(*scaled, strict=True)]
    random = np.random.default_rng(_SEED)
    others = [
        reference.sum_products_by_distance([means[i] for i in random.permutation(len(means))])
        for _ in range(_N_ORDERS)
    ]
    observed, squares = reference.sum_products_by_distance(means), np.sum(np.square(means))
    assert found.n == len(means)
    if abs(observed - max(others)) > 1e-6:
        assert found.is_dependent == (observed > max(others))
    if squares > 0:
        neighbours = np.sum(np.array(means)[1:] * np.array(means)[:-1])
        assert found.correlation == pytest.approx(neighbours / squares, abs=1e-6)


def test_residuals_of_classes_are_classes_minus_probabilities():
    P = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
    np.testing.assert_allclose(
        compute_class_residuals(np.array([2, 3]), P), [[-0.2, -0.3, 0.5], [-0.1, -0.6, -0.3]]
    )
    np.testing.assert_allclose(compute_class_residuals(np.array([1]), P[:1, :2]), [[0.7]])


def test_numbers_count_by_their_ranks():
    residuals = np.sin(np.arange(200) / 10)
    units = np.arange(200)
    found = measure_row_order(units, 1, lambda some: residuals[some])
    assert found.is_dependent
    assert found == measure_row_order(units, 1, lambda some: (2 * residuals[some]) ** 9)


def test_losses_that_depend_on_the_order_are_found_whatever_their_sign():
    rng = np.random.default_rng(0)
    residuals = np.where(np.arange(400) < 200, 1.0, 0.3) * rng.choice([-1, 1], 400)
    for columns in (residuals, residuals[:, None]):
        for order, is_dependent in ((np.arange(400), True), (rng.permutation(400), False)):
            found = measure_row_order(np.arange(400), 1, lambda some, c=columns[order]: c[some])
            assert found.is_dependent == is_dependent


def test_residuals_without_differences_and_rows_have_no_order():
    assert measure_row_order(np.arange(50), 1, lambda some: np.zeros(len(some))) == RowOrder(
        50, 0.0, False
    )
    assert measure_row_order(None, 1, lambda some: np.zeros(len(some))) is None
    assert measure_row_order(np.arange(0), 1, lambda some: np.zeros(len(some))) is None
    for n in (1, 2, 3):
        assert not measure_row_order(np.arange(n), 1, lambda some: some / 1.0).is_dependent


def test_of_many_units_stretches_are_compared():
    units = np.random.default_rng(0).permutation(np.repeat(np.arange(5000), 2))
    rows, places = _select_rows(units, 1600)
    assert places.max() == 1599
    kept = np.unique(units[rows])
    assert (len(kept), kept[0], kept[-1]) == (1600, 0, 4999)
    assert (np.diff(kept) > 1).sum() == 15
    np.testing.assert_array_equal(kept[places], units[rows])
    asked = []
    found = measure_row_order(
        np.arange(10**5), 26, lambda some: asked.append(len(some)) or np.ones((len(some), 26))
    )
    assert found.n == _FEWEST_UNITS == asked[0]


@pytest.mark.parametrize(
    "wrong",
    [{"n": -1}, {"correlation": 1.5}, {"correlation": np.nan}, {"is_dependent": 2}],
    ids=str,
)
def test_impossible_results_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        RowOrder(**{"n": 5, "correlation": 0.5, "is_dependent": True, **wrong})


# -- certificates ----------------------------------------------------------------------------------


def drift(n=1000, seed=0):
    """Rows whose classes flip after each 50 rows, which no feature tells; and numbers that do."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    state = np.arange(n) // 50 % 2
    return X, (X[:, 0] > 0.5) ^ ((state == 1) & (rng.random(n) < 0.6)), X[:, 0] + state


CLASSIFIERS = [
    certree.CertifiedTreeClassifier(random_state=0),
    certree.CertifiedTreeClassifier(max_leaf_nodes=4, random_state=0),
    certree.CertifiedBoostedTreesClassifier(quality="fast", max_iter=20, random_state=0),
    certree.CertifiedForestClassifier(20, random_state=0),
]
REGRESSORS = [
    certree.CertifiedTreeRegressor(random_state=0),
    certree.CertifiedTreeRegressor(max_leaf_nodes=4, random_state=0),
    certree.CertifiedBoostedTreesRegressor(quality="fast", max_iter=20, random_state=0),
]


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=str)
def test_certificates_say_that_errors_depend_on_the_order(model, tmp_path):
    X, flips, level = drift()
    y = flips if hasattr(model, "predict_proba") else level
    shuffled = np.random.default_rng(1).permutation(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RowOrderWarning)  # no column is a date
        found = model.fit(X, y).certificate_
        assert found.row_order.is_dependent
        assert str(found).endswith(SENTENCE)
        assert found.assumptions[1].startswith("new rows resemble all parts of the table, not only")
        assert all(one.row_order == found.row_order for one in model.certificates_)
        loaded = save_and_load(model, tmp_path / "model")
        assert loaded.certificate_.assumptions == found.assumptions
        new = model.fit(X[shuffled], y[shuffled]).certificate_
    assert not new.row_order.is_dependent
    assert SENTENCE not in str(new)
    assert len(new.assumptions) == len(found.assumptions) - 1
    assert save_and_load(model, tmp_path / "model").certificate_.row_order is None


def test_the_order_changes_neither_tree_nor_bound():
    X, y, _ = drift()
    shuffled = np.random.default_rng(1).permutation(len(y))
    model = certree.CertifiedTreeClassifier(certree.Cart(max_bins=255), random_state=0)
    found, again = model.fit(X, y).certificate_, model.fit(X[shuffled], y[shuffled]).certificate_
    assert found == again
    assert found.row_order != again.row_order


def test_further_guarantees_say_it_too():
    X, y, _ = drift()
    model = certree.CertifiedTreeClassifier(random_state=0).fit(X, y)
    derived = [
        model.certificate_.at(0.1),
        model.certificate_.nearby(kl=0.01),
        model.conditional_guarantees()["recall"].worst,
        model.certify_set(0.5)[0],
        model.selective_certificates()[0].certificate,
        model.guarantees_.certify_pruning(model.guarantees_.draw_pruning(0).pruning),
        model.guarantees_.draw_pruning(0).certificate,
    ]
    assert [str(one).endswith(SENTENCE) for one in derived] == [True] * len(derived)


@pytest.mark.parametrize("is_frame", [False, True])
def test_certify_tests_the_rows_that_it_gets(is_frame):
    X, y, _ = drift()
    dummy = DummyClassifier(strategy="constant", constant=True).fit(X, y)
    y = np.arange(1000) // 100 % 2 == 0
    if is_frame:
        X = pd.DataFrame(X)
    found = certree.certify(dummy, X, y)
    assert found.row_order.is_dependent
    assert str(found).endswith(SENTENCE)
    assert certree.certificates.Guarantees.by_rows(dummy, X, y).certificate == found
    shuffled = np.random.default_rng(0).permutation(1000)
    other = certree.certify(dummy, X.iloc[shuffled] if is_frame else X[shuffled], y[shuffled])
    assert not other.row_order.is_dependent
    assert found == other


def test_regressors_certify_in_order_too():
    X, _, y = drift()
    model = certree.CertifiedTreeRegressor(random_state=0).fit(X, y[::-1])
    X_new, _, y_new = drift(seed=1)
    assert model.certify(X_new, y_new).row_order.is_dependent
    shuffled = np.random.default_rng(0).permutation(1000)
    assert not model.certify(X_new[shuffled], y_new[shuffled]).row_order.is_dependent


def test_a_column_of_dates_makes_the_note_a_warning(tmp_path):
    X, y, level = drift()
    frame = pd.DataFrame(X, columns=list("abc"))
    days = np.random.default_rng(0).permutation(pd.date_range("2024-01-01", periods=1000))
    frame["day"] = days
    message = "rows near each other are alike .* a column of dates.* Pass the times .* as time="
    model = certree.CertifiedTreeClassifier(random_state=0)
    with pytest.warns(RowOrderWarning, match=message):
        model.fit(frame, y)
    X_new, y_new, _ = drift(seed=2)
    new = pd.DataFrame(X_new, columns=list("abc")).assign(day=days)
    with pytest.warns(RowOrderWarning, match=message):
        certree.certify(model, new, y_new)
    new.assign(y=y_new).to_parquet(tmp_path / "new.parquet")
    with pytest.warns(RowOrderWarning, match=message):
        certree.certify(model, tmp_path / "new.parquet", "y")
    with pytest.warns(RowOrderWarning, match=message):
        certree.CertifiedTreeRegressor(random_state=0).fit(frame, level)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RowOrderWarning)
        for one in (model, certree.CertifiedForestClassifier(10, random_state=0)):
            assert one.fit(frame, y, time="day").certificate_.row_order is None


def test_groups_and_copies_are_one_row_each():
    """Rows of a group follow each other, and so do copies: only their order can depend on time."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.random((200, 3)), 5, axis=0), np.repeat(rng.random(200) < 0.5, 5)
    noisy, group = X + 1e-3 * rng.random(X.shape), np.repeat(np.arange(200), 5)
    new, truth = np.repeat(rng.random((200, 3)), 5, axis=0), np.repeat(rng.random(200) < 0.5, 5)
    dummy = DummyClassifier(strategy="constant", constant=True).fit(X, y)
    assert certree.certify(dummy, noisy, y).row_order.is_dependent
    for how in ({"groups": group}, {"duplicates": "genuine"}, {"duplicates": "copies"}):
        rows = noisy if "groups" in how else new
        found = certree.certify(dummy, rows, y if "groups" in how else truth, **how).row_order
        assert (found.n, found.is_dependent) == (200, False)
    model = certree.CertifiedTreeClassifier(train_size=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(noisy, y, groups=group).certificate_.row_order
        assert (found.n, found.is_dependent) == (100, False)
        for duplicates in ("genuine", "copies"):
            model.set_params(duplicates=duplicates).fit(X, y)
            assert not model.certificate_.row_order.is_dependent


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 995, 700])
def test_rows_of_files_are_tested_as_in_memory(n, tmp_path, monkeypatch):
    X, y, _ = drift()
    rows, more = np.arange(1000) % n, {"duplicates": "genuine"} if n == 700 else {}
    table = pd.DataFrame(X[rows], columns=list("abc")).assign(y=y[rows], group=rows // 3)
    table.to_parquet(tmp_path / "rows.parquet")
    model = certree.CertifiedTreeClassifier(certree.Cart(max_bins=255), random_state=0, **more)
    for features, has_groups in ((list("abc"), False), (list("abc"), True)):
        groups = table["group"] if has_groups else None
        expected = model.fit(table[features], y[rows], groups=groups).certificate_
        for block_rows in (2**19, 170, 90):
            monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
            columns = [*features, "y", *(["group"] if has_groups else [])]
            table[columns].to_parquet(tmp_path / "rows.parquet")
            name = "group" if has_groups else None
            found = model.fit(tmp_path / "rows.parquet", "y", groups=name).certificate_
            assert found.row_order == expected.row_order
            assert found == expected
    if n == 1000:
        found = model.fit(table[features], y).certificate_
        assert found.row_order.is_dependent
        assert str(found).endswith(SENTENCE)


def test_copies_in_files_are_not_tested(tmp_path):
    X, y, _ = drift()
    rows = np.arange(1000) % 700
    table = pd.DataFrame(X[rows], columns=list("abc")).assign(y=y[rows])
    table.to_parquet(tmp_path / "rows.parquet")
    grower = certree.Cart(max_bins=255)
    model = certree.CertifiedTreeClassifier(grower, duplicates="copies", random_state=0)
    assert model.fit(tmp_path / "rows.parquet", "y").certificate_.row_order is None
