"""Forests on sparse rows: every answer, attribute and file is that of the dense table."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

from certree import CertifiedForestClassifier, TreeForestClassifier, TreeForestRegressor, save

MODELS = [
    TreeForestClassifier(6),
    TreeForestClassifier(5, criterion="entropy", max_features=None, min_samples_leaf=2),
    TreeForestClassifier(5, splitter="random", bootstrap=False, leaves="plain"),
    TreeForestClassifier(30, max_leaf_nodes=9, oob_score=True, n_jobs=2),
    TreeForestClassifier(4, max_features_per_tree=5, leaves="refilled"),
    TreeForestRegressor(30, oob_score=True),
    TreeForestRegressor(5, criterion="poisson", max_depth=5, min_samples_leaf=3),
    TreeForestRegressor(4, monotonic_cst=[1, -1] + [0] * 28, leaves="plain", max_samples=0.5),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)


def table(kind, n=300, p=30, density=0.15):
    """Sparse rows: positive, counts, or of both signs with missing and infinite ones."""
    rng = np.random.default_rng(len(kind))
    X = sparse.random(n, p, density, format="csr", random_state=rng)
    if kind == "counts":
        X.data = np.ceil(3 * X.data)
    if kind == "hostile":
        X.data = rng.choice([-1.0, 0.5, 0.0, np.nan, np.inf, -np.inf], X.nnz) * X.data
    return X


def target(X, model, n_classes):
    """Numbers that are not negative, or classes."""
    said = np.nan_to_num(X[:, :6].toarray(), posinf=1, neginf=-1).sum(axis=1)
    numbers = np.abs(said + np.random.default_rng(0).normal(size=len(said)) / 3)
    edges = np.quantile(numbers, np.arange(1, n_classes) / n_classes)
    return np.digitize(numbers, edges) if is_classifier(model) else np.rint(4 * numbers)


@every_model
@pytest.mark.parametrize("kind", ["positive", "counts", "hostile"])
@pytest.mark.parametrize("weights", ["none", "whole", "other"])
def test_a_forest_of_sparse_rows_is_that_of_the_dense_table(model, kind, weights):
    X = table(kind)
    D, y = X.toarray(), target(X, model, 2 + (kind == "counts"))
    rng = np.random.default_rng(1)
    weight = {"none": None, "whole": rng.integers(0, 4, 300), "other": rng.random(300) + 0.1}[
        weights
    ]
    fitted, dense = (clone(model).set_params(random_state=3).fit(one, y, weight) for one in (X, D))
    for name, one in vars(fitted).items():
        other = vars(dense)[name]
        if hasattr(one, "__dataclass_fields__"):
            for field in one.__dataclass_fields__:
                np.testing.assert_array_equal(getattr(one, field), getattr(other, field), name)
        else:
            np.testing.assert_equal(one, other, name)
    for rows in (X, X.tocsc(), sparse.coo_array(X), D):
        np.testing.assert_array_equal(fitted.predict(rows), dense.predict(D))
    np.testing.assert_array_equal(fitted.apply(X), dense.apply(D))
    pairs = rng.integers(0, 300, (20, 2))
    np.testing.assert_array_equal(fitted.proximity(X, pairs), dense.proximity(D, pairs))
    np.testing.assert_array_equal(fitted.explain(X[:5]).values, dense.explain(D[:5]).values)
    if is_classifier(model):
        np.testing.assert_array_equal(fitted.predict_proba(X), dense.predict_proba(D))


def test_permuted_importances_and_files_are_the_same(tmp_path):
    X = table("hostile")
    y = target(X, TreeForestClassifier(), 3)
    fitted, dense = (
        TreeForestClassifier(5, random_state=0).fit(one, y) for one in (X, X.toarray())
    )
    np.testing.assert_array_equal(
        fitted.out_of_bag_importances(X, y), dense.out_of_bag_importances(X.toarray(), y)
    )
    save(fitted, tmp_path / "sparse")
    save(dense, tmp_path / "dense")
    assert (tmp_path / "sparse").read_bytes() == (tmp_path / "dense").read_bytes()


def test_more_trees_are_added_to_a_warm_start():
    X = table("positive")
    y = target(X, TreeForestClassifier(), 2)
    model = TreeForestClassifier(3, warm_start=True, random_state=0).fit(X, y)
    model.set_params(n_estimators=6).fit(X, y)
    dense = TreeForestClassifier(6, random_state=0).fit(X.toarray(), y)
    np.testing.assert_array_equal(model.predict_proba(X), dense.predict_proba(X.toarray()))


def test_wide_rows_and_a_constant_table_are_no_error():
    X = table("counts")
    wide = sparse.csr_array((X.data, X.indices * 20_000, X.indptr), shape=(300, 600_000))
    y = target(X, TreeForestClassifier(), 2)
    assert TreeForestClassifier(2, random_state=0).fit(wide, y).score(wide, y) > 0.7
    nothing = sparse.csr_array((8, 3))
    assert TreeForestRegressor(2).fit(nothing, np.ones(8)).predict(nothing).tolist() == [1.0] * 8


def test_certified_forests_refuse_sparse_rows():
    with pytest.raises(TypeError, match=r"ForestClassifier requires dense data: use \.toarray"):
        CertifiedForestClassifier(2).fit(table("counts"), np.arange(300) % 2)
