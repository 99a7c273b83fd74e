"""Boosted trees on sparse rows: predictions, attributes and files are those of the dense table."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
    load,
    save,
)
from certree.ensembles import BoostedTreesRanker, boosting
from certree.explain import shapley_values
from certree.grow import bins as bins_module
from certree.rows import sparse_rows
from certree.rows.features import DenseFeatures
from certree.rows.training import Training


def table(n=400, p=60, density=0.1, seed=0, kind="mixed"):
    """Sparse rows; some values are stored zeros, negative, missing or infinite."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n, p, density, format="csr", random_state=rng)
    if kind == "counts":
        X.data = np.ceil(4 * X.data)
    if kind in ("mixed", "hostile"):
        X.data = X.data - 0.3
    if kind == "hostile":
        X.data[rng.random(X.nnz) < 0.1] = np.nan
        X.data[rng.random(X.nnz) < 0.05] = np.inf
        X.data[rng.random(X.nnz) < 0.05] = -np.inf
        X.data[rng.random(X.nnz) < 0.1] = 0.0
    return X


def target(X, model, seed=0):
    """Make numbers, or classes, that depend on the first features."""
    rng = np.random.default_rng(seed)
    said = np.nan_to_num(X[:, :10].toarray(), posinf=1, neginf=-1) @ rng.normal(size=10)
    numbers = said + 0.3 * rng.normal(size=len(said))
    n_classes = 3 if seed % 2 else 2
    return (
        np.digitize(numbers, np.quantile(numbers, np.arange(1, n_classes) / n_classes))
        if is_classifier(model)
        else numbers
    )


def expect_same_models(sparse_fit, dense_fit):
    """Compare fitted attributes and files, except for the time when they were written."""
    mine, theirs = vars(sparse_fit), vars(dense_fit)
    assert set(mine) == set(theirs)
    for name, one in mine.items():
        other = theirs[name]
        if hasattr(one, "__dataclass_fields__"):
            for field in one.__dataclass_fields__:
                np.testing.assert_array_equal(getattr(one, field), getattr(other, field), name)
        else:
            np.testing.assert_equal(one, other, name)


def expect_same_answers(model, dense_model, X, D):
    """Compare the predictions of both models on sparse and dense rows."""
    for rows in (X, X.tocsc(), sparse.coo_array(X), sparse.csr_matrix(X), D):
        np.testing.assert_array_equal(model.predict(rows), dense_model.predict(D))
    np.testing.assert_array_equal(model.apply(X), dense_model.apply(D))
    for mine, theirs in zip(model.staged_predict(X), dense_model.staged_predict(D), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    if is_classifier(model):
        np.testing.assert_array_equal(model.predict_proba(X), dense_model.predict_proba(D))
        np.testing.assert_array_equal(
            model.decision_function(X[:1]), dense_model.decision_function(D[:1])
        )


MODELS = [
    BoostedTreesClassifier(max_iter=6, random_state=0),
    BoostedTreesClassifier(quality="fast", max_iter=6, n_jobs=2, random_state=0),
    BoostedTreesClassifier(
        max_iter=4, max_leaf_nodes=None, min_samples_leaf=1, subsample=1.0, random_state=0
    ),
    BoostedTreesClassifier(max_iter=5, prunings="none", max_features=0.3, random_state=1),
    BoostedTreesRegressor(max_iter=6, random_state=0),
    BoostedTreesRegressor(max_iter=5, loss="absolute_error", max_thresholds=4, random_state=0),
    BoostedTreesRegressor(
        max_iter=5, monotonic_cst=[1, -1] + [0] * 58, interaction_cst=[[0, 1, 2], [2, 3]]
    ),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)
every_kind = pytest.mark.parametrize("kind", ["plain", "counts", "mixed", "hostile"])


@every_model
@every_kind
def test_a_fit_to_sparse_rows_is_that_of_the_dense_table(model, kind):
    X = table(kind=kind)
    D, y = X.toarray(), target(X, model, seed=len(kind))
    weight = np.random.default_rng(1).integers(0, 4, len(y)) / (1 + (kind == "mixed"))
    fitted, dense = (clone(model).set_params(random_state=3).fit(one, y, weight) for one in (X, D))
    expect_same_models(fitted, dense)
    expect_same_answers(fitted, dense, X, D)
    np.testing.assert_array_equal(fitted.importance("gain"), dense.importance("gain"))
    np.testing.assert_array_equal(
        fitted.importance("permutation", X, y), dense.importance("permutation", D, y)
    )
    np.testing.assert_array_equal(fitted.staged_loss(X, y), dense.staged_loss(D, y))
    assert fitted.score(X, y) == dense.score(D, y)


@given(st.integers(0, 2**20), st.integers(2, 40), st.integers(1, 30), st.floats(0.0, 1.0))
def test_any_sparse_table_is_its_dense_one(seed, n, p, density):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, p, density, format="csr", random_state=rng)
    X.data = rng.choice([0.0, 1.0, -1.0, 0.5, np.nan, np.inf], X.nnz)
    y = rng.normal(size=n)
    how = {"max_iter": 3, "min_samples_leaf": int(rng.integers(1, 4)), "random_state": seed}
    fitted, dense = (BoostedTreesRegressor(**how).fit(one, y) for one in (X, X.toarray()))
    expect_same_models(fitted, dense)
    np.testing.assert_array_equal(fitted.predict(X), dense.predict(X.toarray()))


def test_many_values_large_cells_and_threads_change_no_bit():
    rng = np.random.default_rng(0)
    X = sparse.random(9000, 25, 0.3, format="csr", random_state=rng)
    X.data = np.where(rng.random(X.nnz) < 0.3, -X.data, X.data)
    D, y = X.toarray(), target(X, BoostedTreesRegressor())
    models = [
        BoostedTreesRegressor(max_iter=4, max_leaf_nodes=60, n_jobs=n_jobs, random_state=0).fit(
            rows, y
        )
        for rows, n_jobs in ((D, 1), (X, 1), (X, 2), (X.astype(np.float64).tocsc(), 3))
    ]
    for one in models[1:]:
        expect_same_answers(one, models[0], X, D)
        np.testing.assert_array_equal(one.trees_.threshold, models[0].trees_.threshold)


@pytest.mark.parametrize("how", [{"max_features": 0.3}, {"max_thresholds": 3, "subsample": 1.0}])
def test_threads_share_the_features_of_a_one_hot_table(monkeypatch, how):
    monkeypatch.setattr(sparse_rows, "_MAX_STORED", 0.0)  # the dense table stays dense
    rng = np.random.default_rng(0)
    # Threads share features from 2^17 stored values on.
    categories = rng.integers(0, 10, (7000, 20)) + 10 * np.arange(20)
    D = np.zeros((7000, 201))
    D[np.arange(7000)[:, None], categories] = 1.0
    D[:, 200] = np.where(rng.random(7000) < 0.3, rng.normal(size=7000), 0.0)
    D[rng.random(7000) < 0.02, 7] = np.nan
    X, y = sparse.csr_array(D), target(sparse.csr_array(D[:, ::20]), BoostedTreesRegressor())
    dense, *fitted = (
        BoostedTreesRegressor(max_iter=4, n_jobs=n_jobs, random_state=0, **how).fit(rows, y)
        for rows, n_jobs in ((D, 1), (X, 1), (X, 2), (X, 5))
    )
    for one in fitted:
        expect_same_models(one.set_params(n_jobs=1), dense)
        np.testing.assert_array_equal(one.predict(X), dense.predict(D))


def test_bin_edges_come_from_the_same_rows(monkeypatch):
    monkeypatch.setattr(bins_module, "EDGE_ROWS", 500)
    X = table(2000, 6, 0.6)
    y = target(table(2000, 10, 0.5), BoostedTreesRegressor())
    fitted, dense = (
        BoostedTreesRegressor(max_iter=4, random_state=0).fit(one, y) for one in (X, X.toarray())
    )
    expect_same_models(fitted, dense)


def test_rounds_are_chosen_and_stopped_by_the_same_rows():
    X, X_val = table(500), table(200, seed=1)
    for model in (BoostedTreesClassifier(random_state=0), BoostedTreesRegressor(random_state=0)):
        y, y_val = target(X, model), target(X_val, model)
        chosen = [clone(model).fit(one, y) for one in (X, X.toarray())]
        assert chosen[0].n_iter_ == chosen[1].n_iter_
        model.set_params(early_stopping=True)
        for given_rows in ({}, {"X_val": X_val, "y_val": y_val}):
            dense_rows = {**given_rows, "X_val": X_val.toarray()} if given_rows else {}
            fitted = clone(model).fit(X, y, **given_rows)
            dense = clone(model).fit(X.toarray(), y, **dense_rows)
            np.testing.assert_array_equal(fitted.validation_score_, dense.validation_score_)
            expect_same_models(fitted, dense)
            if given_rows:  # one of both may be dense
                mixed = clone(model).fit(X, y, X_val=X_val.toarray(), y_val=y_val)
                np.testing.assert_array_equal(mixed.validation_score_, dense.validation_score_)
                mixed = clone(model).fit(X.toarray(), y, X_val=X_val, y_val=y_val)
                np.testing.assert_array_equal(mixed.validation_score_, dense.validation_score_)


def test_a_scorer_is_given_the_rows_as_they_are():
    X = table(300)
    y = target(X, BoostedTreesClassifier())
    how = {"early_stopping": True, "scoring": "neg_log_loss", "max_iter": 12, "random_state": 0}
    fitted, dense = (BoostedTreesClassifier(**how).fit(one, y) for one in (X, X.toarray()))
    np.testing.assert_array_equal(fitted.validation_score_, dense.validation_score_)


@pytest.mark.parametrize("way", ["rows", "offsets"])
def test_a_warm_start_goes_on(way):
    X = table(300)
    y = np.abs(target(X, BoostedTreesRegressor()))
    offset = {"offset": np.linspace(0, 1, 300)} if way == "offsets" else {}
    model = BoostedTreesRegressor(max_iter=3, warm_start=True, early_stopping=True, random_state=0)
    model.fit(X, y, **offset).set_params(max_iter=8).fit(X, y, **offset)
    dense = clone(model).fit(X.toarray(), y, **offset)
    np.testing.assert_array_equal(model.predict(X, **offset), dense.predict(X.toarray(), **offset))


def test_explanations_are_those_of_dense_rows():
    X = table(120, 12, 0.3)
    model = BoostedTreesClassifier(max_iter=5, random_state=0).fit(
        X, target(X, BoostedTreesClassifier())
    )
    D = X.toarray()
    for ask in (
        lambda rows: model.explain(rows).values,
        lambda rows: shapley_values(model, rows[:3], background=rows).values,
    ):
        np.testing.assert_array_equal(ask(X[:9]), ask(D[:9]))


def test_files_and_pickles_are_those_of_the_dense_fit(tmp_path):
    X = table()
    y = target(X, BoostedTreesClassifier())
    fitted, dense = (
        BoostedTreesClassifier(max_iter=4, random_state=0).fit(one, y) for one in (X, X.toarray())
    )
    save(fitted, tmp_path / "sparse")
    save(dense, tmp_path / "dense")
    assert (tmp_path / "sparse").read_bytes() == (tmp_path / "dense").read_bytes()
    for copy in (load(tmp_path / "sparse"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(copy.predict_proba(X), dense.predict_proba(X.toarray()))


def test_a_single_class_and_a_single_row_are_no_error():
    X = table(30)
    model = BoostedTreesClassifier(max_iter=2).fit(X, np.zeros(30))
    assert model.predict_proba(X).tolist() == [[1.0]] * 30
    one = BoostedTreesRegressor(max_iter=2).fit(X[:1], [3.0])
    assert one.predict(X[:1]).tolist() == [3.0]
    empty = sparse.csr_array((20, 3))
    nothing = BoostedTreesClassifier(max_iter=2, random_state=0).fit(empty, np.arange(20) % 2)
    assert nothing.predict_proba(empty).tolist() == [[0.5, 0.5]] * 20


def test_rankers_and_certified_models_follow():
    X = table(240, 30, 0.4, kind="hostile")
    numbers = target(X, BoostedTreesRegressor())
    y, group = np.clip(np.rint(numbers), 0, 3), np.repeat(12, 20)
    fitted, dense = (
        BoostedTreesRanker(max_iter=4, random_state=0).fit(one, y, group=group)
        for one in (X, X.toarray())
    )
    np.testing.assert_array_equal(fitted.predict(X), dense.predict(X.toarray()))
    classes = target(X, BoostedTreesClassifier())
    fitted, dense = (
        CertifiedBoostedTreesClassifier(max_iter=4, random_state=0).fit(one, classes)
        for one in (X, X.toarray())
    )
    assert fitted.certificate_ == dense.certificate_
    np.testing.assert_array_equal(fitted.predict_proba(X), dense.predict_proba(X.toarray()))


def test_wide_tables_start_from_the_mean(monkeypatch):
    X = table(100, 30)
    y = target(X, BoostedTreesRegressor())
    model = BoostedTreesRegressor(max_iter=2, random_state=0)
    assert model.fit(X, y)._n_first_trees > 0
    monkeypatch.setattr(boosting, "_MAX_LINEAR_VALUES", 2999)
    assert model.fit(X, y)._n_first_trees == 0
    assert model.fit(X[:99], y[:99])._n_first_trees > 0


# -- what is refused


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_what_sparse_rows_cannot_be_is_refused(container):
    X = container(np.eye(6))
    y = np.arange(6) % 2
    model = BoostedTreesClassifier(max_iter=2).fit(X, y)
    with pytest.raises(
        ValueError, match="X has 5 features, but BoostedTreesClassifier is expecting 6"
    ):
        model.predict(container(np.eye(5)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:5])
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.predict(container(np.zeros((0, 6))))
    with pytest.raises(ValueError, match=r"Complex data not supported|complex"):
        model.fit(container(np.eye(6) * 1j), y)
    with pytest.raises(ValueError, match="categorical_features must be None"):
        BoostedTreesClassifier(categorical_features=[0]).fit(X, y)
    with pytest.raises(ValueError, match="numbers that float64 represents exactly"):
        model.fit(container(np.eye(6, dtype=np.int64) * (2**60 + 1)), y)


def test_a_model_of_categories_takes_no_sparse_rows():
    D = np.arange(40.0).reshape(20, 2) % 3
    model = BoostedTreesClassifier(max_iter=2, categorical_features=[0]).fit(D, np.arange(20) % 2)
    with pytest.raises(ValueError, match="fitted on categorical features"):
        model.predict(sparse.csr_array(D))


@pytest.mark.parametrize(
    "model", [PACBayesTreeClassifier(), NaiveBayesClassifier(), CertifiedTreeClassifier()], ids=str
)
def test_models_without_sparse_support_name_those_with_it(model):
    with pytest.raises(TypeError, match=r"Sparse data was passed for X.*BoostedTreesClassifier"):
        model.fit(sparse.csr_array(np.eye(8)), np.arange(8) % 2)
    assert not model.__sklearn_tags__().input_tags.sparse


def test_rows_of_a_fit_are_known_again():
    X = table(300, 700, 0.01)
    y = target(X, BoostedTreesClassifier())
    fitted, dense = (
        BoostedTreesClassifier(max_iter=3, random_state=0).fit(one, y) for one in (X, X.toarray())
    )
    np.testing.assert_array_equal(fitted.sample_hashes_, dense.sample_hashes_)


# -- pipelines


def test_text_and_one_hot_tables_go_through_pipelines():
    words = np.array(["tree", "leaf", "root", "bark", "seed", "twig"])
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 6, (120, 8))
    texts = [" ".join(words[row]) for row in drawn]
    y = (drawn == 0).any(axis=1)
    booster = BoostedTreesClassifier(max_iter=40, learning_rate=0.3, random_state=0)
    model = make_pipeline(TfidfVectorizer(), booster)
    assert np.mean(cross_val_predict(model, texts, y, cv=3) == y) > 0.9
    levels = drawn[:, :3].astype(str)
    encoded = make_pipeline(OneHotEncoder(), BoostedTreesClassifier(max_iter=5, random_state=0))
    dense = make_pipeline(
        OneHotEncoder(sparse_output=False), BoostedTreesClassifier(max_iter=5, random_state=0)
    )
    np.testing.assert_array_equal(
        encoded.fit(levels, y).predict_proba(levels), dense.fit(levels, y).predict_proba(levels)
    )


@pytest.mark.slow
def test_wide_rows_take_little_time_and_memory():
    X, y = make_classification(300, 20, random_state=0)
    X = sparse.csr_array(X * (X > 1))
    wide = sparse.csr_array((X.data, X.indices * 100_000, X.indptr), shape=(300, 2_000_000))
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(wide, y)
    assert model.n_features_in_ == 2_000_000
    assert model.score(wide, y) > 0.7


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesClassifier(max_iter=8, random_state=0),
        BoostedTreesClassifier(max_iter=30, early_stopping=True, random_state=0),
        BoostedTreesRegressor(max_iter=8, quality="best", random_state=0),
        BoostedTreesRegressor(loss="huber", random_state=0),
        TreeForestClassifier(8, oob_score=True, random_state=0),
        TreeForestRegressor(8, leaves="honest", random_state=0),
    ],
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_dense_tables_of_zeros_are_fitted_as_sparse_ones(monkeypatch, model, dtype):
    X = table(300, 40, 0.08, seed=4)
    y = target(X, model, seed=4)
    D = X.toarray().astype(dtype)
    D[::30, 1] = np.nan
    converted = []
    to_sparse = Training.to_sparse
    monkeypatch.setattr(
        Training, "to_sparse", lambda self: converted.append(self) or to_sparse(self)
    )
    for rows in (D, pd.DataFrame(D)):
        dense_fit = clone(model).fit(rows, y)
        assert not converted
        with monkeypatch.context() as patch:
            patch.setattr(sparse_rows, "_MIN_VALUES", 0)
            sparse_fit = clone(model).fit(rows, y)
        assert converted
        converted.clear()
        expect_same_models(sparse_fit, dense_fit)
        np.testing.assert_array_equal(sparse_fit.predict(rows), dense_fit.predict(rows))


def test_a_validation_set_is_converted_with_the_training_rows(monkeypatch):
    X = table(300, 40, 0.08, seed=4)
    model = BoostedTreesClassifier(max_iter=40, early_stopping=True, random_state=0)
    y = target(X, model, seed=4)
    D = X.toarray()
    options = {"X_val": D[200:] + 0.0, "y_val": y[200:]}
    dense_fit = clone(model).fit(D[:200], y[:200], **options)
    monkeypatch.setattr(sparse_rows, "_MIN_VALUES", 0)
    expect_same_models(clone(model).fit(D[:200], y[:200], **options), dense_fit)


def test_what_is_not_mostly_zero_stays_dense(monkeypatch):
    monkeypatch.setattr(sparse_rows, "_MIN_VALUES", 100)
    ones, few = np.ones((20, 8)), np.zeros((20, 8))
    few[0] = 1.0
    assert sparse_rows.is_mostly_zero(DenseFeatures((few,)))
    assert not sparse_rows.is_mostly_zero(DenseFeatures((ones,)))
    assert not sparse_rows.is_mostly_zero(DenseFeatures((few[:10],)))
    wide = np.zeros((20, 80))
    wide[:, :3] = 1.0
    found = [sparse_rows.is_mostly_zero(DenseFeatures((wide,)), n) for n in (None, 80, 3, 2)]
    assert found == [True, True, True, False]
    columns = (*few.T[:7].copy(), few[:, 7].astype(np.float32))
    assert not sparse_rows.is_mostly_zero(DenseFeatures(columns))
    assert not sparse_rows.is_mostly_zero(sparse_rows.to_sparse(DenseFeatures((few,))))
    known = sparse_rows.to_sparse(DenseFeatures((few,)))
    np.testing.assert_array_equal(known.matrix.toarray(), few)
